// SPDX-License-Identifier: MIT
/*
 * Draws a GPU as SVG. Nested boxes show uGPUs, GPCs, TPCs and SMs. Each tenant has a colour and a
 * letter.
 */
#include <string.h>
#include "cli/draw/page.h"
#include "cli/draw/topology.h"

#define PAD		8	/* distance between a box and its contents */
#define GAP		4	/* between TPCs */
#define LABEL		104	/* width of the text on the left of a GPC */
#define BOX_HEIGHT	46	/* of a TPC */
#define SM_HEIGHT	17
#define INSET		4	/* distance of text from the edge of a TPC's box */
#define MAX_PER_LINE	12	/* maximum number of TPCs in a line */
#define MAX_WIDTH	1700
#define MIN_WIDTH	700
#define LINE		18	/* height of a line of normal text */

struct drawing {
	struct page page;
	const struct picture *picture;
	struct picture_layout layout;
	double sm_width, box_width, panel_width;
	unsigned int per_line, columns;	/* number of TPCs in a line; number of panels in a row */
};

static unsigned int digits(unsigned int number)
{
	return snprintf(NULL, 0, "%u", number);
}

/* ------------------------------------------------------------------- measures */

static unsigned int nr_boxes(const struct picture_panel *panel)
{
	return gpupart_tpcset_count(&panel->tpcs) + __builtin_popcount(panel->floorswept);
}

static double panel_height(const struct drawing *d, const struct picture_panel *panel)
{
	unsigned int lines = (nr_boxes(panel) + d->per_line - 1) / d->per_line;

	return 2 * PAD + lines * (BOX_HEIGHT + GAP) - GAP;
}

/* Returns the number of panels of the uGPU whose first panel is @first. */
static unsigned int group_size(const struct drawing *d, unsigned int first)
{
	unsigned int last = first;

	while (last + 1 < d->layout.nr_panels &&
	       d->layout.panels[last + 1].ugpu == d->layout.panels[first].ugpu)
		last++;
	return last + 1 - first;
}

/* Returns the largest height of the panels in the row that begins with @first. */
static double row_height(const struct drawing *d, unsigned int first, unsigned int end)
{
	double height = 0;

	for (unsigned int i = first; i < end && i < first + d->columns; i++)
		height = fmax(height, panel_height(d, &d->layout.panels[i]));
	return height;
}

static double group_height(const struct drawing *d, unsigned int first)
{
	unsigned int end = first + group_size(d, first);
	double height = PAD + (d->layout.panels[first].ugpu >= 0 ? LINE + 2 : 0);

	for (unsigned int i = first; i < end; i += d->columns)
		height += row_height(d, i, end) + PAD;
	return height;
}

static double all_groups_height(const struct drawing *d)
{
	double height = PAD;

	for (unsigned int i = 0; i < d->layout.nr_panels; i += group_size(d, i))
		height += group_height(d, i) + PAD;
	return height;
}

static double width_of(const struct drawing *d)
{
	return 2 * MARGIN + 4 * PAD + d->columns * (d->panel_width + PAD) - PAD;
}

static void measure(struct drawing *d)
{
	const struct picture_layout *layout = &d->layout;
	unsigned int lines, nr_tpcs = gpupart_topology_nr_tpcs(d->picture->topo);

	d->sm_width = page_text_width(digits(layout->last_sm), SMALL) + 6;
	d->box_width = 2 * INSET + page_text_width(digits(nr_tpcs - 1), BIG);
	if (layout->singletons)
		d->box_width += 3 + page_text_width(3, SMALL);
	if (d->picture->nr_tenants)
		d->box_width += 3 + page_text_width(picture_tags_columns(d->picture), BIG);
	d->box_width = fmax(d->box_width, layout->max_sms * (d->sm_width + 3) + 5);
	if (layout->nr_floorswept)
		d->box_width = fmax(d->box_width, page_text_width(6, SMALL) + 10);
	lines = (layout->max_boxes + MAX_PER_LINE - 1) / MAX_PER_LINE;
	d->per_line = lines ? (layout->max_boxes + lines - 1) / lines : 1;
	d->panel_width = 2 * PAD + LABEL + d->per_line * (d->box_width + GAP) - GAP;
	/* Put more panels in each row until the page is not longer than a sheet of paper. */
	d->columns = 1;
	while (d->columns < layout->nr_panels && all_groups_height(d) > 1.3 * width_of(d)) {
		d->columns++;
		if (width_of(d) > MAX_WIDTH) {
			d->columns--;
			break;
		}
	}
	d->page.width = fmax(width_of(d), MIN_WIDTH);
}

/* ------------------------------------------------------------------------ TPCs */

/*
 * Fills a TPC's box with the colours of its owners, side by side. Returns the colour for text on
 * the box.
 */
static const char *draw_fill(struct drawing *d, double x, double y, double width, double height,
			     const unsigned int *owners, unsigned int nr)
{
	const char *ink = PALETTE_INK;
	char fill[16];

	if (!nr) {
		svg_rect(d->page.file, x, y, width, height, PALETTE_BAND, PALETTE_EDGE, "");
		return ink;
	}
	for (unsigned int i = 0; i < nr; i++)
		svg_rect(d->page.file, x + i * width / nr, y, width / nr, height,
			 palette_fill(owners[i], fill), "none", " class=\"fill\"");
	svg_rect(d->page.file, x, y, width, height, "none", PALETTE_INK, "");
	if (nr > 1)
		return ink;
	return palette_tenant(owners[0])->ink;
}

/* Draws a background behind a text on two colours. The text has @columns columns. */
static void draw_plate(struct drawing *d, double x, double y, unsigned int columns)
{
	svg_rect(d->page.file, x - 1, y - 14, page_text_width(columns, BIG) + 2, 17, PALETTE_PAPER,
		 "none", "");
}

/* Writes the tooltip of a TPC. A viewer shows this text at the mouse pointer. */
static void draw_tip(struct drawing *d, unsigned int tpc, const unsigned int *owners,
		     unsigned int nr)
{
	const struct gpupart_tpc *t = gpupart_topology_tpc(d->picture->topo, tpc);

	fprintf(d->page.file, "<title>TPC %u: SMs", tpc);
	for (unsigned int i = 0; i < t->nr_sms; i++)
		fprintf(d->page.file, "%s%u", i ? "," : " ", t->sms[i]);
	fprintf(d->page.file, "; GPC %d", t->gpc);
	if (t->vgpc >= 0)
		fprintf(d->page.file, "; virtual GPC %d", t->vgpc);
	if (t->ugpu >= 0)
		fprintf(d->page.file, "; uGPU %d", t->ugpu);
	for (unsigned int i = 0; i < nr; i++) {
		fputs("; ", d->page.file);
		svg_escape(d->page.file, d->picture->tenants[owners[i]].name);
	}
	fputs("</title>\n", d->page.file);
}

static void draw_sms(struct drawing *d, const struct gpupart_tpc *t, double x, double y)
{
	double step = (d->box_width - 4) / (t->nr_sms ? t->nr_sms : 1);
	char text[16];

	for (unsigned int i = 0; i < t->nr_sms; i++) {
		double left = x + 3 + i * step, width = step - 2;

		svg_rect(d->page.file, left, y, width, SM_HEIGHT, PALETTE_PAPER, PALETTE_EDGE,
			 " stroke-width=\"0.8\"");
		snprintf(text, sizeof(text), "%u", t->sms[i]);
		svg_text(d->page.file, left + width / 2, y + 13, SMALL, MIDDLE, text);
	}
}

static void draw_tpc(struct drawing *d, unsigned int tpc, double x, double y)
{
	const struct picture *picture = d->picture;
	const struct gpupart_tpc *t = gpupart_topology_tpc(picture->topo, tpc);
	unsigned int owners[4], nr = picture_owners(picture, tpc, owners, 4);
	char text[16], style[64], single[16] = "", tags[8];
	const char *ink;

	nr = nr > 4 ? 4 : nr;
	fprintf(d->page.file, "<g class=\"tpc\" data-tpc=\"%u\">", tpc);
	draw_tip(d, tpc, owners, nr);
	ink = draw_fill(d, x, y, d->box_width, BOX_HEIGHT, owners, nr);
	snprintf(text, sizeof(text), "%u", tpc);
	if (topology_is_singleton(picture->topo, tpc))
		snprintf(single, sizeof(single), "v%d", t->vgpc);
	picture_tags(picture, tpc, tags);
	if (nr > 1) {
		draw_plate(d, x + INSET, y + 18, strlen(text) + strlen(single));
		draw_plate(d, x + d->box_width - INSET - page_text_width(strlen(tags), BIG),
			   y + 18, strlen(tags));
	}
	snprintf(style, sizeof(style), " fill=\"%s\"", ink);
	svg_text(d->page.file, x + INSET + 3 + page_text_width(strlen(text), BIG), y + 17, SMALL,
		 style, single);
	snprintf(style, sizeof(style), BOLD " fill=\"%s\"", ink);
	svg_text(d->page.file, x + INSET, y + 18, BIG, style, text);
	snprintf(style, sizeof(style), BOLD END " fill=\"%s\"", ink);
	svg_text(d->page.file, x + d->box_width - INSET, y + 18, BIG, style, tags);
	draw_sms(d, t, x, y + BOX_HEIGHT - SM_HEIGHT - 4);
	fputs("</g>\n", d->page.file);
}

/* Draws a hatched box with text in it. */
static void draw_floorswept(struct drawing *d, double x, double y, double width, double height,
			    const char *class, const char *words)
{
	double plate = page_text_width(strlen(words), SMALL) + 6;
	char style[32];

	snprintf(style, sizeof(style), " class=\"%s\"", class);
	svg_rect(d->page.file, x, y, width, height, PALETTE_OFF, PALETTE_EDGE, style);
	svg_rect(d->page.file, x + (width - plate) / 2, y + height / 2 - 9, plate, 17,
		 PALETTE_PAPER, "none", "");
	svg_text(d->page.file, x + width / 2, y + height / 2 + 4, SMALL,
		 MIDDLE " fill=\"" PALETTE_NOTE "\"", words);
}

/* ------------------------------------------------------------------------ GPCs */

static void draw_label(struct drawing *d, const struct picture_panel *panel, double x, double y)
{
	const struct gpupart_gpc *g = gpupart_topology_gpc(d->picture->topo, panel->gpc);
	int vgpc = topology_main_vgpc(d->picture->topo, g);
	char text[32];

	snprintf(text, sizeof(text), "GPC %u", panel->gpc);
	svg_text(d->page.file, x, y + 14, NORMAL, BOLD, text);
	y += 14;
	if (g->gpc_phys >= 0) {
		y += 14;
		snprintf(text, sizeof(text), "physical %d", g->gpc_phys);
		svg_text(d->page.file, x, y, SMALL, " fill=\"" PALETTE_NOTE "\"", text);
	}
	if (vgpc >= 0) {
		snprintf(text, sizeof(text), "virtual %d", vgpc);
		svg_text(d->page.file, x, y + 14, SMALL, " fill=\"" PALETTE_NOTE "\"", text);
	}
}

static void draw_panel(struct drawing *d, const struct picture_panel *panel, double x, double y,
		       double height)
{
	unsigned int at = 0;
	char words[24];

	svg_rect(d->page.file, x, y, d->panel_width, height, PALETTE_BOX, PALETTE_EDGE,
		 " class=\"gpc\"");
	draw_label(d, panel, x + PAD, y + PAD);
	x += PAD + LABEL;
	y += PAD;
	for (int tpc = gpupart_tpcset_next(&panel->tpcs, 0); tpc >= 0;
	     tpc = gpupart_tpcset_next(&panel->tpcs, tpc + 1), at++)
		draw_tpc(d, tpc, x + at % d->per_line * (d->box_width + GAP),
			 y + at / d->per_line * (BOX_HEIGHT + GAP));
	for (unsigned int i = 0; i < 32; i++) {
		if (!(panel->floorswept >> i & 1))
			continue;
		snprintf(words, sizeof(words), "off %u", i);
		draw_floorswept(d, x + at % d->per_line * (d->box_width + GAP),
				y + at / d->per_line * (BOX_HEIGHT + GAP), d->box_width,
				BOX_HEIGHT, "off", words);
		at++;
	}
}

static void draw_group(struct drawing *d, unsigned int first)
{
	unsigned int end = first + group_size(d, first);
	double x = MARGIN + PAD, y = d->page.y + PAD;
	int ugpu = d->layout.panels[first].ugpu;
	char text[80], size[48];

	svg_rect(d->page.file, x, d->page.y, d->page.width - 2 * x, group_height(d, first),
		 PALETTE_BAND, PALETTE_EDGE, ugpu >= 0 ? " class=\"ugpu\"" : "");
	if (ugpu >= 0) {
		struct gpupart_tpcset set = gpupart_topology_ugpu(d->picture->topo, ugpu);

		snprintf(text, sizeof(text), "uGPU %d: %s", ugpu,
			 picture_size(size, sizeof(size), d->picture->topo, &set));
		svg_text(d->page.file, x + PAD, y + 13, NORMAL, BOLD, text);
		y += LINE + 2;
	}
	for (unsigned int i = first; i < end; i += d->columns) {
		double height = row_height(d, i, end);

		for (unsigned int j = i; j < end && j < i + d->columns; j++)
			draw_panel(d, &d->layout.panels[j],
				   x + PAD + (j - i) * (d->panel_width + PAD), y, height);
		y += height + PAD;
	}
}

/* Draws hatched boxes for the floorswept GPCs, below the other GPCs. */
static void draw_floorswept_gpcs(struct drawing *d)
{
	double width = d->page.width - 2 * (MARGIN + PAD);
	char words[64];

	for (int i = 0; i < d->layout.nr_floorswept_gpcs; i++) {
		if ((unsigned int)i < d->layout.nr_known_gpcs)
			snprintf(words, sizeof(words), "physical GPC %u: floorswept",
				 d->layout.floorswept_gpcs[i]);
		else
			snprintf(words, sizeof(words), "a GPC: floorswept");
		draw_floorswept(d, MARGIN + PAD, d->page.y, width, 26, "off-gpc", words);
		d->page.y += 26 + PAD;
	}
}

/* Draws the outer box before its contents. So the height is computed first. */
static void draw_gpu(struct drawing *d)
{
	int nr = d->layout.nr_floorswept_gpcs > 0 ? d->layout.nr_floorswept_gpcs : 0;

	svg_rect(d->page.file, MARGIN, d->page.y, d->page.width - 2 * MARGIN,
		 all_groups_height(d) + nr * (26 + PAD), PALETTE_PAPER, PALETTE_INK,
		 " stroke-width=\"2\"");
	d->page.y += PAD;
	for (unsigned int i = 0; i < d->layout.nr_panels; i += group_size(d, i)) {
		draw_group(d, i);
		d->page.y += group_height(d, i) + PAD;
	}
	draw_floorswept_gpcs(d);
}

/* ----------------------------------------------------------------------- words */

static void format_tenant(const struct drawing *d, const struct picture_tenant *t, char *text,
			  size_t len)
{
	char list[OUT_SET_STRLEN], size[48];

	snprintf(text, len, "TPCs %s: %s", out_set(list, sizeof(list), d->picture->topo, &t->set),
		 picture_size(size, sizeof(size), d->picture->topo, &t->set));
}

static void draw_tenants(struct drawing *d)
{
	struct gpupart_tpcset none = picture_free(d->picture), shared = picture_shared(d->picture);
	char text[OUT_SET_STRLEN + 64], size[48], list[OUT_SET_STRLEN];

	if (!d->picture->nr_tenants)
		return;
	d->page.y += 12;
	for (unsigned int i = 0; i < d->picture->nr_tenants; i++) {
		format_tenant(d, &d->picture->tenants[i], text, sizeof(text));
		page_legend(&d->page, i, d->picture->tenants[i].name, text);
	}
	if (!gpupart_tpcset_empty(&shared)) {
		snprintf(text, sizeof(text), "in several sets: TPCs %s",
			 out_set(list, sizeof(list), d->picture->topo, &shared));
		page_text(&d->page, MARGIN, NORMAL, "", text);
	}
	if (!gpupart_tpcset_empty(&none)) {
		snprintf(text, sizeof(text), "in no set: TPCs %s: %s",
			 out_set(list, sizeof(list), d->picture->topo, &none),
			 picture_size(size, sizeof(size), d->picture->topo, &none));
		page_text(&d->page, MARGIN, NORMAL, "", text);
	}
	d->page.y += 4;
}

/* Explains singletons by an example. */
static void draw_example(struct drawing *d)
{
	const struct gpupart_topology *topo = d->picture->topo;
	unsigned int tpc = 0;
	char text[160];

	while (!topology_is_singleton(topo, tpc))
		tpc++;
	snprintf(text, sizeof(text), "v%d: TPC %u is a singleton, the only TPC of virtual GPC %d.",
		 gpupart_topology_tpc(topo, tpc)->vgpc, tpc, gpupart_topology_tpc(topo, tpc)->vgpc);
	page_text(&d->page, MARGIN, SMALL, "", text);
}

/* Explains the signs in the boxes. */
static void draw_signs(struct drawing *d)
{
	const struct picture_layout *layout = &d->layout;
	unsigned int position = 0;
	char text[160];

	d->page.y += 4;
	page_text(&d->page, MARGIN, SMALL, "",
		   "Each box is a TPC: its number, and below it the %smid numbers of its SMs.");
	if (layout->singletons)
		draw_example(d);
	if (!layout->vgpcs)
		page_text(&d->page, MARGIN, SMALL, "",
			   "Virtual GPCs: not reported by this "
			   "source.");
	if (layout->nr_floorswept) {
		for (unsigned int i = 0; i < layout->nr_panels; i++)
			if (layout->panels[i].floorswept)
				position = __builtin_ctz(layout->panels[i].floorswept);
		snprintf(text, sizeof(text),
			 "Hatched: floorswept (fused off), %u TPC%s; off %u: at position %u of "
			 "its GPC.",
			 layout->nr_floorswept, layout->nr_floorswept == 1 ? "" : "s", position,
			 position);
		page_text(&d->page, MARGIN, SMALL, "", text);
	}
	if (!layout->floorswept_known)
		page_text(&d->page, MARGIN, SMALL, "",
			   "Which TPCs are floorswept: not reported by this source.");
	if (layout->nr_floorswept_gpcs < 0)
		page_text(&d->page, MARGIN, SMALL, "",
			   "Whether GPCs are floorswept: not reported by this source.");
}

void picture_svg(struct out *out, const struct picture *picture)
{
	const struct gpupart_gpu_info *info = gpupart_topology_info(picture->topo);
	struct drawing d = { .picture = picture };

	picture_layout(&d.layout, picture->topo);
	measure(&d);
	page_begin(&d.page);
	page_head(&d.page, picture);
	draw_gpu(&d);
	draw_tenants(&d);
	draw_signs(&d);
	page_end(&d.page, out, picture->title ? picture->title : *info->name ? info->name : "GPU",
		 picture->nr_tenants);
}
