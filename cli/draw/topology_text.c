// SPDX-License-Identifier: MIT
/* Prints a topology, or a set of its TPCs, as text of 80 columns. */
#include <stdlib.h>
#include "cli/draw/picture.h"
#include "cli/draw/topology.h"

static int compare_numbers(const void *a, const void *b)
{
	unsigned int left = *(const unsigned int *)a, right = *(const unsigned int *)b;

	return (left > right) - (left < right);
}

static void print_sms(struct out *out, int indent, const struct gpupart_topology *topo,
		      const struct gpupart_tpcset *tpcs)
{
	unsigned int sms[GPUPART_MAX_TPCS * GPUPART_MAX_SMS_PER_TPC], nr = 0;
	char text[8192];

	for (int tpc = gpupart_tpcset_next(tpcs, 0); tpc >= 0;
	     tpc = gpupart_tpcset_next(tpcs, tpc + 1)) {
		const struct gpupart_tpc *t = gpupart_topology_tpc(topo, tpc);

		for (unsigned int i = 0; i < t->nr_sms; i++)
			sms[nr++] = t->sms[i];
	}
	qsort(sms, nr, sizeof(sms[0]), compare_numbers);
	out_numbers(text, sizeof(text), sms, nr);
	out_wrap(out, indent, "SMs ", text);
}

/*
 * Returns the number of positions in a GPC of the chip's design. If the design is not known, uses
 * the highest position of a TPC.
 */
static unsigned int nr_positions(const struct gpupart_topology *topo)
{
	unsigned int nr = gpupart_topology_info(topo)->max_tpcs_per_gpc;

	for (unsigned int gpc = 0; gpc < gpupart_topology_nr_gpcs(topo); gpc++) {
		const struct gpupart_gpc *g = gpupart_topology_gpc(topo, gpc);
		unsigned int count = gpupart_tpcset_count(&g->tpcs);

		if (count > nr)
			nr = count;
		while (nr < 32 && g->present_tpcs >> nr)
			nr++;
	}
	return nr;
}

struct grid {
	unsigned int nr;	/* cells in a row */
	int digits, pad;
	bool fuses;		/* there is a column of fuse positions */
	const struct picture_signs *signs;
};

static int grid_width(const struct grid *pic)
{
	return 14 + (int)pic->nr * (pic->pad + pic->digits + 2) + 1 +
	       (pic->fuses ? 2 + (int)pic->nr : 0);
}

static void print_row(struct out *out, const struct grid *pic,
		      const struct gpupart_topology *topo, unsigned int gpc, bool first)
{
	const struct gpupart_gpc *g = gpupart_topology_gpc(topo, gpc);
	int tpc = gpupart_tpcset_next(&g->tpcs, 0);

	if (first && g->ugpu >= 0)
		fprintf(out->file, "%suGPU %-2d%s ", out->bold, g->ugpu, out->plain);
	else
		fprintf(out->file, "%8s", "");
	fprintf(out->file, "GPC %-2u%s", gpc, pic->signs->side);
	for (unsigned int i = 0; i < pic->nr; i++) {
		if (tpc >= 0) {
			fprintf(out->file, "%*d%s%s", pic->pad + pic->digits, tpc,
				topology_is_singleton(topo, tpc) ? "*" : " ", pic->signs->side);
			tpc = gpupart_tpcset_next(&g->tpcs, tpc + 1);
		} else {
			fprintf(out->file, "%s%*s%s %s", out->dim, pic->pad + pic->digits, "-",
				out->plain, pic->signs->side);
		}
	}
	if (pic->fuses) {
		fputs("  ", out->file);
		for (unsigned int i = 0; i < pic->nr && g->present_tpcs; i++)
			fputs(g->present_tpcs >> i & 1 ? pic->signs->present : pic->signs->absent,
			      out->file);
		if (!g->present_tpcs)
			fputc('?', out->file);
	}
	fputc('\n', out->file);
}

void topology_picture(struct out *out, const struct gpupart_topology *topo)
{
	struct grid pic = { .signs = picture_signs(out) };
	unsigned int order[GPUPART_MAX_GPCS], nr = topology_order_gpcs(topo, order);
	bool fuses = false, singletons = false, absent = false;
	int ugpu = -2;

	pic.nr = nr_positions(topo);
	for (unsigned int i = 0; i < nr; i++) {
		const struct gpupart_gpc *g = gpupart_topology_gpc(topo, order[i]);

		fuses |= g->present_tpcs != 0;
		absent |= gpupart_tpcset_count(&g->tpcs) < pic.nr;
	}
	for (unsigned int tpc = 0; tpc < gpupart_topology_nr_tpcs(topo); tpc++)
		singletons |= topology_is_singleton(topo, tpc);
	pic.digits = gpupart_topology_nr_tpcs(topo) > 100 ? 3 : 2;
	pic.pad = 1;
	pic.fuses = fuses;
	if (grid_width(&pic) > OUT_COLUMNS)
		pic.pad = 0;
	if (grid_width(&pic) > OUT_COLUMNS)
		pic.fuses = false;
	if (!nr || grid_width(&pic) > OUT_COLUMNS)
		return;		/* the lists below the picture have the same contents */

	fputc('\n', out->file);
	for (unsigned int i = 0; i < nr; i++) {
		const struct gpupart_gpc *g = gpupart_topology_gpc(topo, order[i]);

		if (!i && pic.fuses) {
			int before = grid_width(&pic) - (int)pic.nr;

			/* Print a heading with the last digit of each position. */
			fprintf(out->file, "%*s", before, "");
			for (unsigned int j = 0; j < pic.nr; j++)
				fprintf(out->file, "%u", j % 10);
			fputc('\n', out->file);
		}
		if (g->ugpu != ugpu)
			picture_edge(out, i ? PICTURE_BETWEEN : PICTURE_TOP, 14,
				     pic.pad + pic.digits + 1, pic.nr);
		print_row(out, &pic, topo, order[i], g->ugpu != ugpu);
		ugpu = g->ugpu;
	}
	picture_edge(out, PICTURE_BOTTOM, 14, pic.pad + pic.digits + 1, pic.nr);
	fprintf(out->file, "%14sTPC numbers%s%s\n", "",
		singletons ? ", * a singleton (only TPC of its virtual GPC)" : "",
		absent ? ", - absent" : "");
	if (pic.fuses)
		fprintf(out->file,
			"%14son the right the positions of the fuses: %s present, %s "
			"floorswept\n", "",
			pic.signs->present, pic.signs->absent);
}

static void print_floorswept(struct out *out, const struct gpupart_topology *topo,
			     const struct gpupart_gpc *g)
{
	unsigned int max = gpupart_topology_info(topo)->max_tpcs_per_gpc;
	unsigned int absent[32], nr = 0;
	char text[256];

	if (!g->present_tpcs || !max)
		return;
	for (unsigned int i = 0; i < max && i < 32; i++)
		if (!(g->present_tpcs >> i & 1))
			absent[nr++] = i;
	out_numbers(text, sizeof(text), absent, nr);
	fprintf(out->file, "    floorswept positions: %s\n", nr ? text : "none");
}

static void print_gpc(struct out *out, const struct gpupart_topology *topo, unsigned int gpc)
{
	const struct gpupart_gpc *g = gpupart_topology_gpc(topo, gpc);
	char text[GPUPART_TPCSET_STRLEN], singletons[1024] = "";
	int vgpc = topology_main_vgpc(topo, g);

	fprintf(out->file, "  %sGPC %u%s: ", out->bold, gpc, out->plain);
	if (g->gpc_phys >= 0)
		fprintf(out->file, "physical GPC %d, ", g->gpc_phys);
	if (vgpc >= 0)
		fprintf(out->file, "virtual GPC %d, ", vgpc);
	fprintf(out->file, "%u TPCs, %u SMs\n", gpupart_tpcset_count(&g->tpcs),
		topology_nr_sms(topo, &g->tpcs));
	gpupart_tpcset_format_list(&g->tpcs, text, sizeof(text));
	out_wrap(out, 4, "TPCs", text);
	print_sms(out, 4, topo, &g->tpcs);
	print_floorswept(out, topo, g);
	for (int tpc = gpupart_tpcset_next(&g->tpcs, 0); tpc >= 0;
	     tpc = gpupart_tpcset_next(&g->tpcs, tpc + 1))
		if (topology_is_singleton(topo, tpc))
			out_append(singletons, sizeof(singletons), "%sTPC %d (virtual GPC %d)",
			       *singletons ? ", " : "", tpc, gpupart_topology_tpc(topo, tpc)->vgpc);
	if (*singletons)
		out_wrap(out, 4, "singletons:", singletons);
}

static void print_floorswept_gpcs(struct out *out, const struct gpupart_topology *topo)
{
	unsigned int max = gpupart_topology_info(topo)->max_gpcs;
	unsigned int absent[GPUPART_MAX_GPCS], nr_known;
	int nr = topology_floorswept_gpcs(topo, absent, &nr_known);
	char text[256];

	fputs("floorswept GPCs: ", out->file);
	if (nr < 0) {
		fputs(OUT_NOT_REPORTED "\n", out->file);
	} else if (!nr) {
		fprintf(out->file, "none of %u\n", max);
	} else if (!nr_known) {
		fprintf(out->file, "%d of %u; which ones: " OUT_NOT_REPORTED "\n", nr, max);
	} else {
		out_numbers(text, sizeof(text), absent, nr_known);
		fprintf(out->file, "physical %s of %u\n", text, max);
	}
}

void topology_text(struct out *out, const struct gpupart_topology *topo)
{
	const struct gpupart_gpu_info *info = gpupart_topology_info(topo);
	unsigned int order[GPUPART_MAX_GPCS], nr = topology_order_gpcs(topo, order), measured = 0;
	struct gpupart_tpcset all = gpupart_topology_all(topo), ugpu_tpcs;
	bool no_phys = false, no_fuses = false;
	int ugpu = -2;

	out_gpu_text(out, topo);
	if (*info->origin)
		out_wrap(out, 0, "captured:", info->origin);
	fprintf(out->file, "UUID: %s\n", *info->uuid ? info->uuid : OUT_NOT_REPORTED);
	fprintf(out->file, "MIG: %s\n",
		info->mig < 0 ? OUT_NOT_REPORTED
		: info->mig   ? "on"
			      : "off");
	print_floorswept_gpcs(out, topo);
	if (!gpupart_topology_nr_ugpus(topo))
		fputs("uGPUs: " OUT_NOT_REPORTED "\n", out->file);
	if (!gpupart_topology_end_vgpc(topo))
		fputs("virtual GPCs: " OUT_NOT_REPORTED "\n", out->file);
	for (unsigned int tpc = 0; tpc < gpupart_topology_nr_tpcs(topo); tpc++)
		measured += gpupart_topology_tpc(topo, tpc)->measured_bit >= 0;
	if (measured)
		fprintf(out->file, "mask bits measured: %u of %u TPCs\n", measured,
			gpupart_topology_nr_tpcs(topo));
	topology_picture(out, topo);
	if (!nr) {
		fputs("GPCs: " OUT_NOT_REPORTED "\n", out->file);
		print_sms(out, 0, topo, &all);
	}
	for (unsigned int i = 0; i < nr; i++) {
		const struct gpupart_gpc *g = gpupart_topology_gpc(topo, order[i]);

		if (g->ugpu != ugpu) {
			ugpu_tpcs = gpupart_topology_ugpu(topo, g->ugpu);
			fputc('\n', out->file);
			if (g->ugpu >= 0)
				fprintf(out->file, "%suGPU %d%s: %u TPCs, %u SMs\n", out->bold,
					g->ugpu, out->plain, gpupart_tpcset_count(&ugpu_tpcs),
					topology_nr_sms(topo, &ugpu_tpcs));
		}
		ugpu = g->ugpu;
		no_phys |= g->gpc_phys < 0;
		no_fuses |= !g->present_tpcs || !info->max_tpcs_per_gpc;
		print_gpc(out, topo, order[i]);
	}
	if (no_phys || no_fuses)
		fprintf(out->file, "\n%s: " OUT_NOT_REPORTED "\n", !no_fuses ? "physical GPCs" :
			no_phys ? "physical GPCs, floorswept positions" : "floorswept positions");
}

void topology_strip(struct out *out, const struct gpupart_topology *topo, const char *label,
		    const struct gpupart_tpcset *set)
{
	unsigned int order[GPUPART_MAX_GPCS], nr = topology_order_gpcs(topo, order), column = 0;
	bool gaps = 10 + gpupart_topology_nr_tpcs(topo) + nr <= OUT_COLUMNS + 4;
	const struct picture_signs *signs = picture_signs(out);
	int width = gaps ? OUT_COLUMNS : OUT_COLUMNS - 8;

	fprintf(out->file, "%-7s", label);
	for (unsigned int i = 0; i < nr; i++) {
		const struct gpupart_gpc *g = gpupart_topology_gpc(topo, order[i]);

		if (gaps && i)
			fputc(' ', out->file);
		for (int tpc = gpupart_tpcset_next(&g->tpcs, 0); tpc >= 0;
		     tpc = gpupart_tpcset_next(&g->tpcs, tpc + 1)) {
			if (column && !(column % width))
				fprintf(out->file, "\n%7s", "");
			column++;
			fputs(gpupart_tpcset_has(set, tpc) ? signs->present : signs->absent,
			      out->file);
		}
	}
	fputc('\n', out->file);
}
