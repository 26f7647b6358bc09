// SPDX-License-Identifier: MIT
/*
 * Draws a GPU for a terminal of 80 columns. Each TPC has a box, and the boxes of floorswept TPCs
 * are hatched. Each tenant has a letter and, on a terminal with colours, a colour. If COLUMNS is
 * less than 80, the text below the boxes is wrapped to COLUMNS.
 */
#include <stdlib.h>
#include <string.h>
#include "cli/draw/palette.h"
#include "cli/draw/picture.h"
#include "cli/draw/topology.h"

#define COLUMNS	80
#define LABEL	7	/* columns on the left of a GPC's TPCs */
#define MAX_NAME 44	/* columns for the name of a tenant */

const struct picture_signs *picture_signs(const struct out *out)
{
	static const struct picture_signs ascii = {
		.side = "|", .line = "-", .floorswept = "/", .present = "#", .absent = ".",
		.left = { "+", "+", "+" }, .mid = { "+", "+", "+" }, .right = { "+", "+", "+" },
	}, box = {
		.side = "│", .line = "─", .floorswept = "▒", .present = "■", .absent = "·",
		.left = { "┌", "├", "└" }, .mid = { "┬", "┼", "┴" }, .right = { "┐", "┤", "┘" },
	};

	return out->utf8 ? &box : &ascii;
}

struct page {
	struct out *out;
	const struct picture *picture;
	struct picture_layout layout;
	const struct picture_signs *signs;
	unsigned int width, per_line;	/* width of a box; number of boxes in a line */
	unsigned int digits, tag;	/* columns for the number of a TPC; columns for letters */
};

/* One box of a line. If the box is not a TPC, @tpc is -1. */
struct cell {
	int tpc;
	int floorswept;		/* the position, or -1 */
};

static unsigned int format_sms(char *text, size_t len, const struct gpupart_tpc *t)
{
	*text = 0;
	if (t->nr_sms <= 2)
		for (unsigned int i = 0; i < t->nr_sms; i++)
			out_append(text, len, "%s%u", i ? " " : "", t->sms[i]);
	else
		out_numbers(text, len, t->sms, t->nr_sms);
	return strlen(text);
}

static void measure(struct page *page)
{
	unsigned int nr = gpupart_topology_nr_tpcs(page->picture->topo);
	char text[64];

	page->digits = snprintf(text, sizeof(text), "%u", nr - 1);
	page->tag = picture_tags_columns(page->picture);
	page->width = page->digits + page->layout.singletons + (page->tag ? 1 + page->tag : 0);
	for (unsigned int tpc = 0; tpc < nr; tpc++) {
		unsigned int len = format_sms(text, sizeof(text),
					      gpupart_topology_tpc(page->picture->topo, tpc));

		if (len > page->width)
			page->width = len;
	}
	page->per_line = (COLUMNS - LABEL - 1) / (page->width + 1);
	if (page->per_line > page->layout.max_boxes)
		page->per_line = page->layout.max_boxes;
	if (!page->per_line)
		page->per_line = 1;
}

void picture_edge(const struct out *out, enum picture_edge edge, unsigned int indent,
		  unsigned int width, unsigned int nr)
{
	const struct picture_signs *signs = picture_signs(out);

	fprintf(out->file, "%*s%s", indent, "", signs->left[edge]);
	for (unsigned int i = 0; i < nr; i++) {
		for (unsigned int j = 0; j < width; j++)
			fputs(signs->line, out->file);
		fputs(i + 1 < nr ? signs->mid[edge] : signs->right[edge], out->file);
	}
	fputc('\n', out->file);
}

static void put_colour(const struct out *out, unsigned int tenant)
{
	const struct palette_colour *colour = palette_tenant(tenant);

	fprintf(out->file, "\033[48;5;%d;38;5;%dm", colour->terminal_fill, colour->terminal_ink);
}

void picture_slice(const struct out *out, int tenant, int before)
{
	char tag[PICTURE_TAG_LEN];

	if (*out->plain && tenant != before) {
		fputs(out->plain, out->file);
		if (tenant >= 0)
			put_colour(out, tenant);
	}
	fputc(tenant < 0 ? '.' : *picture_tag(tenant, tag), out->file);
}

/*
 * Selects the colour of the TPC's first owner. If there is no owner or the terminal has no colours,
 * returns false.
 */
static bool begin_colour(const struct page *page, int tpc)
{
	unsigned int owner;

	if (!*page->out->plain || tpc < 0 || !picture_owners(page->picture, tpc, &owner, 1))
		return false;
	put_colour(page->out, owner);
	return true;
}

/*
 * Prints a line of a TPC's box. The upper line has the TPC's number and letters, and the lower line
 * has its SMs.
 */
static void print_tpc(const struct page *page, int tpc, bool lower)
{
	const struct gpupart_topology *topo = page->picture->topo;
	char text[64], tags[8];
	bool colour = begin_colour(page, tpc);

	if (lower) {
		format_sms(text, sizeof(text), gpupart_topology_tpc(topo, tpc));
	} else {
		snprintf(text, sizeof(text), "%*d", page->digits, tpc);
		if (page->layout.singletons)
			strcat(text, topology_is_singleton(topo, tpc) ? "*" : " ");
	}
	fprintf(page->out->file, "%s%s%s", lower || colour ? "" : page->out->bold, text,
		lower || colour ? "" : page->out->plain);
	fprintf(page->out->file, "%*s", (int)(page->width - strlen(text)),
		lower ? "" : picture_tags(page->picture, tpc, tags));
	if (colour)
		fputs(page->out->plain, page->out->file);
}

static void print_cells(const struct page *page, const char *label, const struct cell *cells,
			unsigned int nr, bool lower)
{
	FILE *file = page->out->file;

	fprintf(file, "%s%-*s%s%s", lower ? "" : page->out->bold, LABEL, label,
		lower ? "" : page->out->plain, page->signs->side);
	for (unsigned int i = 0; i < nr; i++) {
		if (cells[i].tpc >= 0) {
			print_tpc(page, cells[i].tpc, lower);
		} else if (cells[i].floorswept >= 0) {
			fputs(page->out->dim, file);
			for (unsigned int j = 0; j < page->width; j++)
				fputs(page->signs->floorswept, file);
			fputs(page->out->plain, file);
		} else {
			fprintf(file, "%*s", page->width, "");
		}
		fputs(page->signs->side, file);
	}
	fputc('\n', file);
}

static unsigned int fill_cells(const struct picture_panel *panel, struct cell *cells)
{
	unsigned int nr = 0;

	for (int tpc = gpupart_tpcset_next(&panel->tpcs, 0); tpc >= 0;
	     tpc = gpupart_tpcset_next(&panel->tpcs, tpc + 1))
		cells[nr++] = (struct cell){ tpc, -1 };
	for (int i = 0; i < 32; i++)
		if (panel->floorswept >> i & 1)
			cells[nr++] = (struct cell){ -1, i };
	return nr;
}

static void print_panel(const struct page *page, const struct picture_panel *panel, bool first)
{
	struct cell cells[GPUPART_MAX_TPCS + 32 + COLUMNS];
	unsigned int nr = fill_cells(panel, cells);
	char label[2][16];
	int vgpc = topology_main_vgpc(page->picture->topo,
				      gpupart_topology_gpc(page->picture->topo, panel->gpc));

	snprintf(label[0], sizeof(label[0]), "GPC %u", panel->gpc);
	*label[1] = 0;
	if (vgpc >= 0)
		snprintf(label[1], sizeof(label[1]), " v %d", vgpc);
	while (nr % page->per_line || !nr)
		cells[nr++] = (struct cell){ -1, -1 };
	for (unsigned int i = 0; i < nr; i += page->per_line) {
		picture_edge(page->out, first && !i ? PICTURE_TOP : PICTURE_BETWEEN, LABEL,
			     page->width, page->per_line);
		print_cells(page, i ? "" : label[0], cells + i, page->per_line, false);
		print_cells(page, i ? "" : label[1], cells + i, page->per_line, true);
	}
}

static void print_panels(const struct page *page)
{
	const struct picture_layout *layout = &page->layout;
	const struct gpupart_topology *topo = page->picture->topo;
	char size[48];

	for (unsigned int i = 0; i < layout->nr_panels; i++) {
		int ugpu = layout->panels[i].ugpu;
		bool first = !i || ugpu != layout->panels[i - 1].ugpu;
		bool last = i + 1 == layout->nr_panels || ugpu != layout->panels[i + 1].ugpu;

		if (first && ugpu >= 0) {
			struct gpupart_tpcset set = gpupart_topology_ugpu(topo, ugpu);

			fprintf(page->out->file, "\n%suGPU %d%s: %s\n", page->out->bold, ugpu,
				page->out->plain, picture_size(size, sizeof(size), topo, &set));
		} else if (first) {
			fputc('\n', page->out->file);
		}
		print_panel(page, &layout->panels[i], first);
		if (last)
			picture_edge(page->out, PICTURE_BOTTOM, LABEL, page->width, page->per_line);
	}
}

static void print_signs(const struct page *page)
{
	const struct picture_layout *layout = &page->layout;
	char text[256], list[128];

	out_wrap(page->out, 0, "Each box is a TPC:",
		 "its number, and below it the %smid numbers of its SMs");
	if (layout->vgpcs)
		out_wrap(page->out, 0, "v 3:", "the virtual GPC of the TPCs of a GPC");
	if (layout->singletons)
		out_wrap(page->out, 0, "*:", "a singleton, the only TPC of its virtual GPC");
	if (layout->nr_floorswept) {
		snprintf(text, sizeof(text), "floorswept (fused off), %u TPC%s",
			 layout->nr_floorswept, layout->nr_floorswept == 1 ? "" : "s");
		snprintf(list, sizeof(list), "%s:", page->signs->floorswept);
		out_wrap(page->out, 0, list, text);
	}
	if (!layout->floorswept_known)
		fputs("which TPCs are floorswept: not reported by this source\n", page->out->file);
	if (layout->nr_floorswept_gpcs < 0) {
		fputs("whether GPCs are floorswept: not reported by this source\n",
		      page->out->file);
	} else if (layout->nr_floorswept_gpcs) {
		out_numbers(list, sizeof(list), layout->floorswept_gpcs, layout->nr_known_gpcs);
		snprintf(text, sizeof(text), "%d%s%s", layout->nr_floorswept_gpcs,
			 *list ? ", physical " : "", list);
		out_wrap(page->out, 0, "floorswept GPCs:", text);
	}
}

static void print_tenant(const struct page *page, unsigned int tenant)
{
	const struct picture_tenant *t = &page->picture->tenants[tenant];
	const struct palette_colour *colour = palette_tenant(tenant);
	char text[OUT_SET_STRLEN + 64], size[48], tag[PICTURE_TAG_LEN], name[4 * MAX_NAME + 1];
	const char *rest;

	picture_tag(tenant, tag);
	if (*page->out->plain)
		fprintf(page->out->file, "\033[48;5;%d;38;5;%dm %s %s%*s", colour->terminal_fill,
			colour->terminal_ink, tag, page->out->plain, (int)(4 - strlen(tag)), "");
	else
		fprintf(page->out->file, " %-4s ", tag);
	rest = picture_line(*t->name ? t->name : "(no name)", MAX_NAME, name, sizeof(name));
	fprintf(page->out->file, "%s%s%s%s: %s\n", page->out->bold, out_clean(name),
		*rest ? "..." : "", page->out->plain,
		picture_size(size, sizeof(size), page->picture->topo, &t->set));
	out_wrap(page->out, 6, "TPCs",
		 out_set(text, sizeof(text), page->picture->topo, &t->set));
}

static void print_tenants(const struct page *page)
{
	struct gpupart_tpcset none = picture_free(page->picture);
	struct gpupart_tpcset shared = picture_shared(page->picture);
	char text[OUT_SET_STRLEN];

	if (!page->picture->nr_tenants)
		return;
	fputc('\n', page->out->file);
	for (unsigned int i = 0; i < page->picture->nr_tenants; i++)
		print_tenant(page, i);
	if (!gpupart_tpcset_empty(&shared))
		out_wrap(page->out, 0, "in several sets: TPCs",
			 out_set(text, sizeof(text), page->picture->topo, &shared));
	if (!gpupart_tpcset_empty(&none))
		out_wrap(page->out, 0, "in no set: TPCs",
			 out_set(text, sizeof(text), page->picture->topo, &none));
}

/*
 * Returns the width for text. On a narrow terminal, the width is COLUMNS. The width of boxes does
 * not depend on COLUMNS.
 */
static int columns(void)
{
	const char *text = getenv("COLUMNS");
	int nr = text ? atoi(text) : 0;

	return nr >= 20 && nr < COLUMNS ? nr : COLUMNS;
}

/*
 * Returns the number of bytes up to the next blank or the end. Stores the width of these bytes in
 * *wide. The width of an escape sequence is 0.
 */
static size_t word_len(const char *at, int *wide)
{
	const char *start = at;

	for (*wide = 0; *at && *at != ' ' && *at != '\n'; at++) {
		if (*at == '\033')
			at += strcspn(at, "m\n");
		else
			*wide += (*at & 0xc0) != 0x80;
		if (!*at)
			break;
	}
	return at - start;
}

/*
 * Prints the text from @at up to the next '\n', and wraps it. The second and later lines are
 * indented to the column of the first word.
 */
static const char *fold_line(FILE *file, const char *at, int room)
{
	int indent = strspn(at, " "), column = 0, wide;

	while (*at && *at != '\n') {
		int blanks = strspn(at, " ");
		size_t len = word_len(at + blanks, &wide);

		if (column > indent && column + blanks + wide > room) {
			fprintf(file, "\n%*s", indent, "");
			column = indent;
			at += blanks;
			blanks = 0;
		}
		fprintf(file, "%.*s", (int)(blanks + len), at);
		column += blanks + wide;
		at += blanks + len;
	}
	fputc('\n', file);
	return *at ? at + 1 : at;
}

/* Prints the output of @print, wrapped to the width of the terminal. */
static void print_folded(struct page *page, void (*print)(const struct page *page))
{
	struct out *out = page->out, narrow = *out;
	char *text = NULL;
	size_t len;

	narrow.file = columns() < COLUMNS ? open_memstream(&text, &len) : NULL;
	if (!narrow.file) {
		print(page);
		return;
	}
	page->out = &narrow;
	print(page);
	page->out = out;
	fclose(narrow.file);
	for (const char *at = text; at && *at;)
		at = fold_line(out->file, at, columns());
	free(text);
}

static void print_head(const struct page *page)
{
	char title[4 * COLUMNS + 1];
	const char *rest;

	if (page->picture->title) {
		rest = picture_line(page->picture->title, COLUMNS - 3, title, sizeof(title));
		fprintf(page->out->file, "%s%s%s%s\n", page->out->bold, out_clean(title),
			*rest ? "..." : "", page->out->plain);
	}
	out_gpu_text(page->out, page->picture->topo);
}

void picture_text(struct out *out, const struct picture *picture)
{
	struct page page = {
		.out = out, .picture = picture, .signs = picture_signs(out),
	};

	picture_layout(&page.layout, picture->topo);
	measure(&page);
	print_folded(&page, print_head);
	print_panels(&page);
	print_folded(&page, print_tenants);
	fputc('\n', out->file);
	print_folded(&page, print_signs);
}
