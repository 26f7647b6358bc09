/* SPDX-License-Identifier: MIT */
/* Pictures of a GPU and of its partitions, as SVG and as text for a terminal. */
#ifndef GPUPART_CLI_DRAW_PICTURE_H
#define GPUPART_CLI_DRAW_PICTURE_H

#include "cli/util/out.h"

/*
 * The owner of a set: it has a colour, a letter in the box of each of its TPCs, and a line of
 * the legend.
 */
struct picture_tenant {
	const char *name;	/* may contain any bytes */
	struct gpupart_tpcset set;
};

/* A picture. The caller owns all pointers. A TPC may belong to several sets. */
struct picture {
	const struct gpupart_topology *topo;
	const char *title;	/* may contain any bytes; NULL: only the GPU's name */
	unsigned int nr_tenants;	/* 0: no sets, and no legend of them */
	const struct picture_tenant *tenants;
};

/* A complete SVG file. The same picture gives the same bytes. */
void picture_svg(struct out *out, const struct picture *picture);

/*
 * Text of 80 columns, with letters in the boxes; with colours and line characters if @out
 * supports them. It is wider only if the SMs of one TPC need more.
 */
void picture_text(struct out *out, const struct picture *picture);

/*
 * Prints one column of a row over time: the letter of @tenant, or '.' if @tenant is -1. The letter
 * has the colour of the tenant if @out has colours. @before is the tenant of the previous column.
 * After the last column the caller prints out->plain to end the colour.
 */
void picture_slice(const struct out *out, int tenant, int before);

/* ------------------------------------------- parts of both forms: picture.c */

/* One GPC of a picture. */
struct picture_panel {
	unsigned int gpc;
	int ugpu;	/* -1: not known */
	struct gpupart_tpcset tpcs;
	uint32_t floorswept;	/* a set bit is a position without a TPC */
};

struct picture_layout {
	unsigned int nr_panels;
	struct picture_panel panels[GPUPART_MAX_GPCS];
	unsigned int max_boxes;		/* in a panel: TPCs and floorswept positions */
	unsigned int max_sms;		/* in a TPC */
	unsigned int last_sm;		/* the largest number of an SM */
	bool singletons;		/* there are singletons */
	bool vgpcs;			/* virtual GPCs are known */
	unsigned int nr_floorswept;	/* TPCs */
	bool floorswept_told;		/* for every GPC */
	int nr_floorswept_gpcs;		/* -1: not known */
	/* physical numbers of those that are known */
	unsigned int nr_known_gpcs, floorswept_gpcs[GPUPART_MAX_GPCS];
};

void picture_layout(struct picture_layout *layout, const struct gpupart_topology *topo);

/* Characters for the lines and corners of boxes. Corners are indexed by enum picture_edge. */
enum picture_edge { PICTURE_TOP, PICTURE_BETWEEN, PICTURE_BOTTOM };

struct picture_signs {
	const char *side, *line, *floorswept, *present, *absent;
	const char *left[3], *mid[3], *right[3];
};

/* The characters that @out supports. */
const struct picture_signs *picture_signs(const struct out *out);

/* Prints the line above, between or below @nr boxes of @width columns, after @indent blanks. */
void picture_edge(const struct out *out, enum picture_edge edge, unsigned int indent,
		  unsigned int width, unsigned int nr);

#define PICTURE_TAG_LEN 4
#define PICTURE_SHORT_TAGS 52	/* tenants with a name of one letter */

/* Names: "A" to "Z", "a" to "z", then "A2".. Returns @tag. */
const char *picture_tag(unsigned int tenant, char tag[PICTURE_TAG_LEN]);

/* Returns the number of owners of @tpc. Stores the first @max owners in @owners. */
unsigned int picture_owners(const struct picture *picture, unsigned int tpc,
			    unsigned int *owners, unsigned int max);

/* Return the TPCs that belong to no set, and the TPCs that belong to several sets. */
struct gpupart_tpcset picture_free(const struct picture *picture);
struct gpupart_tpcset picture_shared(const struct picture *picture);

/* Returns how many columns the box of a TPC has for letters. 0: there are no tenants. */
unsigned int picture_tags_columns(const struct picture *picture);

/* Writes the letters in the box of a TPC to @tags: "A", "AB", "A+", or "". Returns @tags. */
const char *picture_tags(const struct picture *picture, unsigned int tpc, char tags[8]);

/* The width of @text in columns. */
unsigned int picture_columns(const char *text);

/*
 * Copies the first line of @text, at most @columns wide, to @line, which has more than 4 *
 * @columns bytes. Breaks after a blank or a comma if possible. Returns the rest of @text.
 */
const char *picture_line(const char *text, unsigned int columns, char *line, size_t len);

/* "9 TPCs, 18 SMs". Returns @text. */
const char *picture_size(char *text, size_t len, const struct gpupart_topology *topo,
			 const struct gpupart_tpcset *set);

#endif
