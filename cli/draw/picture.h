/* SPDX-License-Identifier: MIT */
/* Draws a GPU and its partitions, as SVG and as text for a terminal. */
#ifndef GPUPART_CLI_DRAW_PICTURE_H
#define GPUPART_CLI_DRAW_PICTURE_H

#include "cli/util/out.h"

/*
 * The owner of a set. An owner has a colour, a letter, and a line in the legend. The letter is in
 * the box of each TPC of the set.
 */
struct picture_tenant {
	const char *name;	/* may contain any bytes */
	struct gpupart_tpcset set;
};

/* A picture. The caller frees the memory of all pointers. A TPC may belong to several sets. */
struct picture {
	const struct gpupart_topology *topo;
	const char *title;	/* may contain any bytes; NULL: the title is the GPU's name */
	unsigned int nr_tenants;	/* 0: no sets and no legend */
	const struct picture_tenant *tenants;
};

/* Writes a complete SVG file. For the same picture, the file is always identical. */
void picture_svg(struct out *out, const struct picture *picture);

/*
 * Writes text of 80 columns, with letters in the boxes. If @out supports colours and line
 * characters, uses them. If a single TPC needs more than 80 columns for its SMs, the text is wider.
 */
void picture_text(struct out *out, const struct picture *picture);

/*
 * Prints one column of a row. In a row, time runs from left to right. If @tenant is -1, prints '.'.
 * Otherwise prints the letter of @tenant. If @out has colours, the letter has the tenant's colour.
 * The previous column showed @before. After the last column, the caller prints out->plain to end
 * the colour.
 */
void picture_slice(const struct out *out, int tenant, int before);

/* ------------------------------------------- parts of both forms: picture.c */

/* One GPC of a picture. */
struct picture_panel {
	unsigned int gpc;
	int ugpu;	/* -1: not known */
	struct gpupart_tpcset tpcs;
	uint32_t floorswept;	/* 1: the position has no TPC */
};

struct picture_layout {
	unsigned int nr_panels;
	struct picture_panel panels[GPUPART_MAX_GPCS];
	unsigned int max_boxes;	/* maximum of TPC positions in a panel */
	unsigned int max_sms;		/* maximum number of SMs in a TPC */
	unsigned int last_sm;		/* the largest SM number */
	bool singletons;		/* the GPU has singletons */
	bool vgpcs;			/* virtual GPCs are known */
	unsigned int nr_floorswept;	/* number of floorswept TPCs */
	bool floorswept_known;		/* floorswept TPCs are known for every GPC */
	int nr_floorswept_gpcs;		/* -1: not known */
	/* physical numbers of the floorswept GPCs, where known */
	unsigned int nr_known_gpcs, floorswept_gpcs[GPUPART_MAX_GPCS];
};

void picture_layout(struct picture_layout *layout, const struct gpupart_topology *topo);

/* Characters for the lines and corners of boxes. The index of the corners is enum picture_edge. */
enum picture_edge { PICTURE_TOP, PICTURE_BETWEEN, PICTURE_BOTTOM };

struct picture_signs {
	const char *side, *line, *floorswept, *present, *absent;
	const char *left[3], *mid[3], *right[3];
};

/* Returns the characters that @out supports. */
const struct picture_signs *picture_signs(const struct out *out);

/*
 * Prints the line above, between or below @nr boxes. Each box has @width columns. The line follows
 * @indent blanks.
 */
void picture_edge(const struct out *out, enum picture_edge edge, unsigned int indent,
		  unsigned int width, unsigned int nr);

#define PICTURE_TAG_LEN 4
#define PICTURE_SHORT_TAGS 52	/* number of tenants with a name of one letter */

/*
 * Writes the short name of a tenant to @tag. The names are "A" to "Z", "a" to "z", "A2" and so on.
 * Returns @tag.
 */
const char *picture_tag(unsigned int tenant, char tag[PICTURE_TAG_LEN]);

/* Returns the number of owners of @tpc. Stores the first @max owners in @owners. */
unsigned int picture_owners(const struct picture *picture, unsigned int tpc,
			    unsigned int *owners, unsigned int max);

/*
 * The first function returns the TPCs that belong to no set. The second function returns the TPCs
 * that belong to several sets.
 */
struct gpupart_tpcset picture_free(const struct picture *picture);
struct gpupart_tpcset picture_shared(const struct picture *picture);

/* Returns the number of columns for letters in a TPC's box. If there are no tenants, returns 0. */
unsigned int picture_tags_columns(const struct picture *picture);

/* Writes the letters in the box of a TPC to @tags: "A", "AB", "A+", or "". Returns @tags. */
const char *picture_tags(const struct picture *picture, unsigned int tpc, char tags[8]);

/* Returns the width of @text in columns. */
unsigned int picture_columns(const char *text);

/*
 * Copies the first line of @text to @line. The line has at most @columns columns. The buffer @line
 * must have more than 4 * @columns bytes. If possible, breaks the line after a blank or a comma.
 * Returns the rest of @text.
 */
const char *picture_line(const char *text, unsigned int columns, char *line, size_t len);

/* Writes a size such as "9 TPCs, 18 SMs" to @text. Returns @text. */
const char *picture_size(char *text, size_t len, const struct gpupart_topology *topo,
			 const struct gpupart_tpcset *set);

#endif
