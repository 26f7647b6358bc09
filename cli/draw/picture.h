/* SPDX-License-Identifier: MIT */
/* Pictures of a GPU and of who has which part of it, as SVG and for a terminal. */
#ifndef GPUPART_CLI_DRAW_PICTURE_H
#define GPUPART_CLI_DRAW_PICTURE_H

#include "cli/util/out.h"

/* Who has a set: drawn in a colour, with a tag in every TPC's box and a line of the legend. */
struct picture_tenant {
	const char *name;	/* any text */
	struct gpupart_tpcset set;
};

/* Everything is the caller's. A TPC may be in several sets. */
struct picture {
	const struct gpupart_topology *topo;
	const char *title;	/* any text; NULL: none but the GPU's name */
	unsigned int nr_tenants;	/* 0: nobody has anything, there is no legend of sets */
	const struct picture_tenant *tenants;
};

/* An SVG file of its own: the same bytes for the same picture. */
void picture_svg(struct out *out, const struct picture *picture);

/*
 * In 80 columns, with letters in the boxes; in colour, with boxes and lines, where @out
 * has them. Wider only where one TPC's SMs are.
 */
void picture_text(struct out *out, const struct picture *picture);

/*
 * A column of a row over time: the tenant's letter, where there is colour in its colour; '.'
 * of nobody (-1). @before is the column before it; after the last one the colour is ended.
 */
void picture_slice(const struct out *out, int tenant, int before);

/* ------------------------------------------------- what both are drawn from: picture.c */

/* One GPC's part of a picture. */
struct picture_panel {
	unsigned int gpc;
	int ugpu;	/* -1: not told */
	struct gpupart_tpcset tpcs;
	uint32_t floorswept;	/* set bit = a position of it where there is no TPC */
};

struct picture_layout {
	unsigned int nr_panels;
	struct picture_panel panels[GPUPART_MAX_GPCS];
	unsigned int max_boxes;		/* of a panel: TPCs and floorswept positions */
	unsigned int max_sms;		/* of a TPC */
	unsigned int last_sm;		/* the largest SM's number */
	bool singletons;		/* some TPC is one */
	bool vgpcs;			/* virtual GPCs are told */
	unsigned int nr_floorswept;	/* TPCs */
	bool floorswept_told;		/* of every GPC */
	int nr_floorswept_gpcs;		/* -1: not told */
	unsigned int nr_known_gpcs, floorswept_gpcs[GPUPART_MAX_GPCS];	/* which, physical */
};

void picture_layout(struct picture_layout *layout, const struct gpupart_topology *topo);

/* Lines and corners of boxes in a terminal; corners by enum picture_edge. */
enum picture_edge { PICTURE_TOP, PICTURE_BETWEEN, PICTURE_BOTTOM };

struct picture_signs {
	const char *side, *line, *floorswept, *present, *absent;
	const char *left[3], *mid[3], *right[3];
};

/* In the characters that @out has. */
const struct picture_signs *picture_signs(const struct out *out);

/* The line above, between or below @nr boxes of @width columns, @indent columns to the right. */
void picture_edge(const struct out *out, enum picture_edge edge, unsigned int indent,
		  unsigned int width, unsigned int nr);

#define PICTURE_TAG_LEN 4
#define PICTURE_SHORT_TAGS 52	/* so many are one letter */

/* "A" to "Z", "a" to "z", then "A2".. Returns @tag. */
const char *picture_tag(unsigned int tenant, char tag[PICTURE_TAG_LEN]);

/* Who has @tpc: how many, the first @max of them in @owners. */
unsigned int picture_owners(const struct picture *picture, unsigned int tpc,
			    unsigned int *owners, unsigned int max);

/* TPCs that nobody has, and those that several have. */
struct gpupart_tpcset picture_free(const struct picture *picture);
struct gpupart_tpcset picture_shared(const struct picture *picture);

/* The columns that tags take in a TPC's box; 0 where there are no tenants. */
unsigned int picture_tags_columns(const struct picture *picture);

/* "A", "AB" or "A+", as it stands in a TPC's box; "" where nobody has it. Returns @tags. */
const char *picture_tags(const struct picture *picture, unsigned int tpc, char tags[8]);

/* The columns that @text takes. */
unsigned int picture_columns(const char *text);

/*
 * The first line of @text in @columns, broken after a blank or a comma where it can be:
 * copied to @line (of more than 4 * @columns bytes), and the rest is returned.
 */
const char *picture_line(const char *text, unsigned int columns, char *line, size_t len);

/* "9 TPCs, 18 SMs". Returns @text. */
const char *picture_size(char *text, size_t len, const struct gpupart_topology *topo,
			 const struct gpupart_tpcset *set);

#endif
