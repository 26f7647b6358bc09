// SPDX-License-Identifier: MIT
/*
 * Draws the map of a GPU. The map shows the TPCs of each GPC, with the letters and the colours of
 * their jobs.
 */
#include <stdlib.h>
#include "cli/draw/palette.h"
#include "cli/draw/picture.h"
#include "cli/top/top.h"
#include "cli/util/alloc.h"

#define LABEL 7		/* "uGPU 0 " at the start of a line, "GPC 12 " before a GPC */

/*
 * Prints a TPC in @width columns. In 1 column, prints the letter of the TPC's first job. In 2
 * columns, prints the letters of its jobs. In 6 columns, prints its number and the letters of its
 * jobs.
 */
static void put_tpc(struct top_view *view, const struct picture *picture, unsigned int tpc,
		    unsigned int y, unsigned int x, unsigned int width)
{
	unsigned int first, nr = picture_owners(picture, tpc, &first, 1);
	char tags[8] = ".";

	if (nr)
		picture_tags(picture, tpc, tags);
	if (width == 6)
		x = top_put(view, y, x, TOP_DIM, "%3u ", tpc);
	top_put(view, y, x, nr ? TOP_TENANT + first % PALETTE_TENANTS : TOP_DIM, "%-*.*s",
		width > 1 ? 2 : 1, width > 1 ? 2 : 1, tags);
}

/*
 * Draws the map in at most @lines lines, from line @y on. Returns the number of lines of the map.
 */
static unsigned int put_map(struct top_view *view, const struct picture *picture, unsigned int y,
			    unsigned int lines, unsigned int width)
{
	const bool apart = width > 1;
	unsigned int start = apart ? LABEL : 0, x = start, line = 0, columns;
	struct picture_layout layout;
	int ugpu = -2;

	picture_layout(&layout, picture->topo);
	columns = start + layout.max_boxes * (width + apart);
	if (apart && start + columns > view->width + 1)
		return -1;
	for (unsigned int i = 0; i < layout.nr_panels; i++) {
		const struct picture_panel *panel = &layout.panels[i];
		unsigned int at;

		if (apart && x > start && (x + columns > view->width + 1 || panel->ugpu != ugpu)) {
			line++;
			x = start;
		}
		if (apart && line < lines) {
			if (panel->ugpu != ugpu && panel->ugpu >= 0)
				top_put(view, y + line, 0, TOP_BOLD, "uGPU %d", panel->ugpu);
			top_put(view, y + line, x, TOP_DIM, "GPC %u", panel->gpc);
		}
		ugpu = panel->ugpu;
		at = x + start;
		for (int tpc = gpupart_tpcset_next(&panel->tpcs, 0); tpc >= 0;
		     tpc = gpupart_tpcset_next(&panel->tpcs, tpc + 1)) {
			if (at >= view->width) {
				line++;
				at = 0;
			}
			if (line < lines)
				put_tpc(view, picture, tpc, y + line, at, width);
			at += width + apart;
		}
		x = apart ? x + columns : at + 1;
	}
	return layout.nr_panels ? line + 1 : 0;
}

unsigned int top_map(struct top_view *view, const struct top *top, unsigned int y,
		     unsigned int lines)
{
	static const unsigned int widths[] = { 6, 2, 1 };
	/* a tenant for each letter */
	struct picture_tenant *tenants = alloc_zeroed(top->nr_letters + 1, sizeof(*tenants));
	const struct picture picture = { .topo = top->model.gpus[view->gpu].topo,
					 .nr_tenants = top->nr_letters, .tenants = tenants };
	struct gpupart_tpcset taken = { { 0 } };
	unsigned int nr = !picture.topo;

	/* The remaining TPCs belong to jobs without a limit. */
	for (unsigned int pass = 0; pass < 2; pass++)
		for (unsigned int i = 0; i < top->model.nr_rows; i++) {
			const struct model_row *job = &top->model.rows[i];

			if (job->job >= 0 || job->gpu != view->gpu || job->limited == pass)
				continue;
			tenants[job->letter].set = pass ? gpupart_tpcset_andnot(&job->set, &taken) :
							  job->set;
			taken = pass ? taken : gpupart_tpcset_or(&taken, &job->set);
		}
	for (unsigned int i = 0; i < sizeof(widths) / sizeof(widths[0]) && !nr; i++)
		if (put_map(view, &picture, y, 0, widths[i]) <= lines)
			nr = put_map(view, &picture, y, lines, widths[i]);
	free(tenants);
	return picture.topo ? nr : 0;
}
