// SPDX-License-Identifier: MIT
/*
 * Results as text for people, 80 columns (rows 100), legible without colour. What a source does
 * not tell is said to be so. Must not know where a topology comes from.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "out.h"

#define COLUMNS 80
#define ROW_COLUMNS 100		/* of a row of verify or doctor */
#define ROW_INDENT 28		/* what a row has before its sentence */
#define NOT_TOLD "not told by this source"

bool out_is_singleton(const struct gpupart_topology *topo, unsigned int tpc)
{
	const struct gpupart_tpc *t = gpupart_topology_tpc(topo, tpc);
	struct gpupart_tpcset vgpc;

	/* The virtual GPCs that GPCs are have the ids below the number of GPCs. */
	if (!t || t->vgpc < (int)gpupart_topology_nr_gpcs(topo))
		return false;
	vgpc = gpupart_topology_vgpc(topo, t->vgpc);
	return gpupart_tpcset_count(&vgpc) == 1;
}

void out_append(char *text, size_t len, const char *fmt, ...)
{
	size_t used = strlen(text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text + used, len - used, fmt, ap);
	va_end(ap);
}

const char *out_set(char *text, size_t len, const struct gpupart_topology *topo,
		    const struct gpupart_tpcset *set)
{
	const char *sep = " (GPC ";

	if (gpupart_tpcset_format_list(set, text, len) < 0)
		*text = 0;
	for (unsigned int gpc = 0; gpc < gpupart_topology_nr_gpcs(topo); gpc++) {
		const struct gpupart_gpc *g = gpupart_topology_gpc(topo, gpc);

		if (gpupart_tpcset_empty(&g->tpcs) || !gpupart_tpcset_subset(&g->tpcs, set))
			continue;
		out_append(text, len, "%s%u", sep, gpc);
		sep = ",";
	}
	if (*sep == ',')
		out_append(text, len, ")");
	return text;
}

void out_numbers(char *text, size_t len, const unsigned int *numbers, unsigned int nr)
{
	*text = 0;
	for (unsigned int i = 0, last; i < nr; i = last + 1) {
		for (last = i; last + 1 < nr && numbers[last + 1] == numbers[last] + 1; last++)
			;
		out_append(text, len, i ? ",%u" : "%u", numbers[i]);
		if (last > i)
			out_append(text, len, "-%u", numbers[last]);
	}
}

static int compare_numbers(const void *a, const void *b)
{
	unsigned int left = *(const unsigned int *)a, right = *(const unsigned int *)b;

	return (left > right) - (left < right);
}

/* How many of the first @room letters end with the last @end among them; 0 none. */
static int break_after(const char *text, int room, char end)
{
	while (room > 0 && text[room - 1] != end)
		room--;
	return room;
}

/* @text from column @indent on, @columns wide; what follows stands below it. */
static void fold(struct out *out, int columns, int indent, const char *text)
{
	int room = columns - indent;

	while ((int)strlen(text) > room) {
		int cut = break_after(text, room + 1, ' ');
		bool blank = cut > 0;

		if (!cut)
			cut = break_after(text, room, ',');
		if (!cut)
			break;
		fprintf(out->file, "%.*s\n%*s", blank ? cut - 1 : cut, text, indent, "");
		text += cut;
	}
	fprintf(out->file, "%s\n", text);
}

void out_wrap(struct out *out, int indent, const char *label, const char *text)
{
	fprintf(out->file, "%*s%s ", indent, "", label);
	fold(out, COLUMNS, indent + (int)strlen(label) + 1, text);
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

unsigned int out_nr_sms(const struct gpupart_topology *topo, const struct gpupart_tpcset *tpcs)
{
	unsigned int nr = 0;

	for (int tpc = gpupart_tpcset_next(tpcs, 0); tpc >= 0;
	     tpc = gpupart_tpcset_next(tpcs, tpc + 1))
		nr += gpupart_topology_tpc(topo, tpc)->nr_sms;
	return nr;
}

void out_gpu_text(struct out *out, const struct gpupart_topology *topo)
{
	const struct gpupart_gpu_info *info = gpupart_topology_info(topo);
	bool live = !strcmp(info->source, "rm") || !strcmp(info->source, "kernel");

	fprintf(out->file, "%s%s%s%s", out->bold, *info->name ? info->name :
		"GPU (name " NOT_TOLD ")", out->plain, info->simulated ? " (simulated)" : "");
	if (*info->pci)
		fprintf(out->file, ", %s", info->pci);
	if (*info->driver)
		fprintf(out->file, ", driver %s", info->driver);
	if (info->chip_id)
		fprintf(out->file, ", chip 0x%x", info->chip_id);
	fprintf(out->file, "\n%u SMs in %u TPCs", gpupart_topology_nr_sms(topo),
		gpupart_topology_nr_tpcs(topo));
	if (gpupart_topology_nr_gpcs(topo))
		fprintf(out->file, " in %u GPCs", gpupart_topology_nr_gpcs(topo));
	if (gpupart_topology_nr_ugpus(topo))
		fprintf(out->file, " in %u uGPUs", gpupart_topology_nr_ugpus(topo));
	fprintf(out->file, "\nsource: %s%s\n", live ? "" : "capture ", info->source);
}

unsigned int out_order_gpcs(const struct gpupart_topology *topo,
			    unsigned int order[GPUPART_MAX_GPCS])
{
	unsigned int nr = 0;

	for (int ugpu = -1; ugpu < (int)gpupart_topology_nr_ugpus(topo); ugpu++)
		for (unsigned int gpc = 0; gpc < gpupart_topology_nr_gpcs(topo); gpc++)
			if (gpupart_topology_gpc(topo, gpc)->ugpu == ugpu)
				order[nr++] = gpc;
	return nr;
}

/* The positions a GPC has: the design's, or as many as are seen where that is not told. */
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

struct picture {
	unsigned int nr;	/* cells a row */
	int digits, pad;
	bool fuses;		/* with the column of fuse positions */
	const char *side, *line, *left[3], *mid[3], *right[3];	/* top, between, bottom */
	const char *present, *absent;
};

static int picture_width(const struct picture *pic)
{
	return 14 + (int)pic->nr * (pic->pad + pic->digits + 2) + 1 +
	       (pic->fuses ? 2 + (int)pic->nr : 0);
}

static void picture_line(struct out *out, const struct picture *pic, int which)
{
	fprintf(out->file, "%14s%s", "", pic->left[which]);
	for (unsigned int i = 0; i < pic->nr; i++) {
		for (int j = 0; j < pic->pad + pic->digits + 1; j++)
			fputs(pic->line, out->file);
		fputs(i + 1 < pic->nr ? pic->mid[which] : pic->right[which], out->file);
	}
	fputc('\n', out->file);
}

static void picture_row(struct out *out, const struct picture *pic,
			const struct gpupart_topology *topo, unsigned int gpc, bool first)
{
	const struct gpupart_gpc *g = gpupart_topology_gpc(topo, gpc);
	int tpc = gpupart_tpcset_next(&g->tpcs, 0);

	if (first && g->ugpu >= 0)
		fprintf(out->file, "%suGPU %-2d%s ", out->bold, g->ugpu, out->plain);
	else
		fprintf(out->file, "%8s", "");
	fprintf(out->file, "GPC %-2u%s", gpc, pic->side);
	for (unsigned int i = 0; i < pic->nr; i++) {
		if (tpc >= 0) {
			fprintf(out->file, "%*d%s%s", pic->pad + pic->digits, tpc,
				out_is_singleton(topo, tpc) ? "*" : " ", pic->side);
			tpc = gpupart_tpcset_next(&g->tpcs, tpc + 1);
		} else {
			fprintf(out->file, "%s%*s%s %s", out->dim, pic->pad + pic->digits, "-",
				out->plain, pic->side);
		}
	}
	if (pic->fuses) {
		fputs("  ", out->file);
		for (unsigned int i = 0; i < pic->nr && g->present_tpcs; i++)
			fputs(g->present_tpcs >> i & 1 ? pic->present : pic->absent, out->file);
		if (!g->present_tpcs)
			fputc('?', out->file);
	}
	fputc('\n', out->file);
}

void out_picture(struct out *out, const struct gpupart_topology *topo)
{
	static const struct picture ascii = {
		.side = "|", .line = "-", .left = { "+", "+", "+" }, .mid = { "+", "+", "+" },
		.right = { "+", "+", "+" }, .present = "#", .absent = ".",
	}, box = {
		.side = "│", .line = "─", .left = { "┌", "├", "└" }, .mid = { "┬", "┼", "┴" },
		.right = { "┐", "┤", "┘" }, .present = "■", .absent = "·",
	};
	struct picture pic = out->utf8 ? box : ascii;
	unsigned int order[GPUPART_MAX_GPCS], nr = out_order_gpcs(topo, order);
	bool fuses = false, singletons = false, absent = false;
	int ugpu = -2;

	pic.nr = nr_positions(topo);
	for (unsigned int i = 0; i < nr; i++) {
		const struct gpupart_gpc *g = gpupart_topology_gpc(topo, order[i]);

		fuses |= g->present_tpcs != 0;
		absent |= gpupart_tpcset_count(&g->tpcs) < pic.nr;
	}
	for (unsigned int tpc = 0; tpc < gpupart_topology_nr_tpcs(topo); tpc++)
		singletons |= out_is_singleton(topo, tpc);
	pic.digits = gpupart_topology_nr_tpcs(topo) > 100 ? 3 : 2;
	pic.pad = 1;
	pic.fuses = fuses;
	if (picture_width(&pic) > COLUMNS)
		pic.pad = 0;
	if (picture_width(&pic) > COLUMNS)
		pic.fuses = false;
	if (!nr || picture_width(&pic) > COLUMNS)
		return;		/* the lists say it all the same */

	fputc('\n', out->file);
	for (unsigned int i = 0; i < nr; i++) {
		const struct gpupart_gpc *g = gpupart_topology_gpc(topo, order[i]);

		if (!i && pic.fuses) {
			int before = picture_width(&pic) - (int)pic.nr;

			/* The digits of the positions, over their column. */
			fprintf(out->file, "%*s", before, "");
			for (unsigned int j = 0; j < pic.nr; j++)
				fprintf(out->file, "%u", j % 10);
			fputc('\n', out->file);
		}
		if (g->ugpu != ugpu)
			picture_line(out, &pic, i ? 1 : 0);
		picture_row(out, &pic, topo, order[i], g->ugpu != ugpu);
		ugpu = g->ugpu;
	}
	picture_line(out, &pic, 2);
	fprintf(out->file, "%14sTPC numbers%s%s\n", "",
		singletons ? ", * a singleton (virtual GPC of its own)" : "",
		absent ? ", - absent" : "");
	if (pic.fuses)
		fprintf(out->file,
			"%14son the right the fuses' positions: %s present, %s floorswept\n", "",
			pic.present, pic.absent);
}

int out_main_vgpc(const struct gpupart_topology *topo, const struct gpupart_gpc *gpc)
{
	for (int tpc = gpupart_tpcset_next(&gpc->tpcs, 0); tpc >= 0;
	     tpc = gpupart_tpcset_next(&gpc->tpcs, tpc + 1))
		if (!out_is_singleton(topo, tpc))
			return gpupart_topology_tpc(topo, tpc)->vgpc;
	return -1;
}

static void print_floorswept(struct out *out, const struct gpupart_topology *topo,
			     const struct gpupart_gpc *g)
{
	unsigned int max = gpupart_topology_info(topo)->max_tpcs_per_gpc;
	unsigned int absent[32], nr = 0;
	char text[256];

	if (!g->present_tpcs || !max) {
		fprintf(out->file, "    floorswept positions: " NOT_TOLD "\n");
		return;
	}
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
	int vgpc = out_main_vgpc(topo, g);

	fprintf(out->file, "  %sGPC %u%s: physical GPC ", out->bold, gpc, out->plain);
	if (g->gpc_phys >= 0)
		fprintf(out->file, "%d", g->gpc_phys);
	else
		fputs(NOT_TOLD, out->file);
	if (vgpc >= 0)
		fprintf(out->file, ", virtual GPC %d", vgpc);
	fprintf(out->file, ", %u TPCs, %u SMs\n", gpupart_tpcset_count(&g->tpcs),
		out_nr_sms(topo, &g->tpcs));
	gpupart_tpcset_format_list(&g->tpcs, text, sizeof(text));
	out_wrap(out, 4, "TPCs", text);
	print_sms(out, 4, topo, &g->tpcs);
	print_floorswept(out, topo, g);
	for (int tpc = gpupart_tpcset_next(&g->tpcs, 0); tpc >= 0;
	     tpc = gpupart_tpcset_next(&g->tpcs, tpc + 1))
		if (out_is_singleton(topo, tpc))
			out_append(singletons, sizeof(singletons), "%sTPC %d (virtual GPC %d)",
			       *singletons ? ", " : "", tpc, gpupart_topology_tpc(topo, tpc)->vgpc);
	if (*singletons)
		out_wrap(out, 4, "singletons:", singletons);
}

int out_floorswept_gpcs(const struct gpupart_topology *topo, unsigned int gpcs[GPUPART_MAX_GPCS],
			unsigned int *nr_known)
{
	unsigned int max = gpupart_topology_info(topo)->max_gpcs;
	unsigned int nr = gpupart_topology_nr_gpcs(topo);
	bool there[GPUPART_MAX_GPCS] = { false };

	*nr_known = 0;
	if (!max || max > GPUPART_MAX_GPCS)
		return -1;
	if (nr >= max)
		return 0;
	for (unsigned int gpc = 0; gpc < nr; gpc++) {
		int gpc_phys = gpupart_topology_gpc(topo, gpc)->gpc_phys;

		if (gpc_phys < 0)
			return max - nr;
		there[gpc_phys % GPUPART_MAX_GPCS] = true;
	}
	for (unsigned int i = 0; i < max; i++)
		if (!there[i])
			gpcs[(*nr_known)++] = i;
	return *nr_known;
}

static void print_floorswept_gpcs(struct out *out, const struct gpupart_topology *topo)
{
	unsigned int max = gpupart_topology_info(topo)->max_gpcs;
	unsigned int absent[GPUPART_MAX_GPCS], nr_known;
	int nr = out_floorswept_gpcs(topo, absent, &nr_known);
	char text[256];

	fputs("floorswept GPCs: ", out->file);
	if (nr < 0) {
		fputs(NOT_TOLD "\n", out->file);
	} else if (!nr) {
		fprintf(out->file, "none of %u\n", max);
	} else if (!nr_known) {
		fprintf(out->file, "%d of %u, which ones is " NOT_TOLD "\n", nr, max);
	} else {
		out_numbers(text, sizeof(text), absent, nr_known);
		fprintf(out->file, "physical %s of %u\n", text, max);
	}
}

void out_topology_text(struct out *out, const struct gpupart_topology *topo)
{
	const struct gpupart_gpu_info *info = gpupart_topology_info(topo);
	unsigned int order[GPUPART_MAX_GPCS], nr = out_order_gpcs(topo, order), measured = 0;
	struct gpupart_tpcset all = gpupart_topology_all(topo), ugpu_tpcs;
	int ugpu = -2;

	out_gpu_text(out, topo);
	if (*info->origin)
		out_wrap(out, 0, "captured:", info->origin);
	fprintf(out->file, "UUID: %s\n", *info->uuid ? info->uuid : NOT_TOLD);
	fprintf(out->file, "MIG: %s\n", info->mig < 0 ? NOT_TOLD : info->mig ? "on" : "off");
	print_floorswept_gpcs(out, topo);
	if (!gpupart_topology_nr_ugpus(topo))
		fputs("uGPUs: " NOT_TOLD "\n", out->file);
	if (!gpupart_topology_end_vgpc(topo))
		fputs("virtual GPCs: " NOT_TOLD "\n", out->file);
	for (unsigned int tpc = 0; tpc < gpupart_topology_nr_tpcs(topo); tpc++)
		measured += gpupart_topology_tpc(topo, tpc)->measured_bit >= 0;
	if (measured)
		fprintf(out->file, "mask bits measured: %u of %u TPCs\n", measured,
			gpupart_topology_nr_tpcs(topo));
	out_picture(out, topo);
	if (!nr) {
		fputs("GPCs: " NOT_TOLD "\n", out->file);
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
					out_nr_sms(topo, &ugpu_tpcs));
		}
		ugpu = g->ugpu;
		print_gpc(out, topo, order[i]);
	}
}

void out_strip(struct out *out, const struct gpupart_topology *topo, const char *label,
	       const struct gpupart_tpcset *set)
{
	unsigned int order[GPUPART_MAX_GPCS], nr = out_order_gpcs(topo, order), column = 0;
	bool gaps = 10 + gpupart_topology_nr_tpcs(topo) + nr <= COLUMNS + 4;
	const char *in = out->utf8 ? "■" : "#", *not_in = out->utf8 ? "·" : ".";
	int width = gaps ? COLUMNS : COLUMNS - 8;

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
			fputs(gpupart_tpcset_has(set, tpc) ? in : not_in, out->file);
		}
	}
	fputc('\n', out->file);
}

void out_row(struct out *out, const char *word, bool bad, const char *name, const char *what,
	     const char *detail)
{
	fprintf(out->file, "%s%-4s%s  %-20s  ", bad ? out->red : out->bold, word, out->plain, name);
	if (*detail && ROW_INDENT + strlen(what) + 3 + strlen(detail) <= ROW_COLUMNS) {
		fprintf(out->file, "%s - %s\n", what, detail);
	} else {
		fold(out, ROW_COLUMNS, ROW_INDENT, what);
		if (*detail) {
			fprintf(out->file, "%*s", ROW_INDENT, "");
			fold(out, ROW_COLUMNS, ROW_INDENT, detail);
		}
	}
	fflush(out->file);
}

void out_advice(struct out *out, const char *advice)
{
	fprintf(out->file, "%*s-> ", ROW_INDENT, "");
	fold(out, ROW_COLUMNS, ROW_INDENT + 3, advice);
}

void out_counters_text(struct out *out, const struct gpupart_counters *c)
{
	fprintf(out->file, "launches: %lu, confined %lu\n", (unsigned long)c->launches,
		(unsigned long)c->confined);
	fprintf(out->file,
		"  widened: limit and set left nothing %lu, driver's own mask %lu,\n"
		"           cluster %lu, cooperative %lu\n",
		(unsigned long)c->widened_empty, (unsigned long)c->widened_driver,
		(unsigned long)c->widened_cluster, (unsigned long)c->widened_cooperative);
	fprintf(out->file,
		"  not confined: unknown version %lu, bits not proven %lu, other GPU %lu\n",
		(unsigned long)c->unconfinable_version, (unsigned long)c->unconfinable_map,
		(unsigned long)c->unconfinable_gpu);
}
