// SPDX-License-Identifier: MIT
/*
 * Writes results as text of 80 columns. Rows of `gpupart verify` and `gpupart doctor` have 100
 * columns. The text is legible without colour. If the source does not report a value, the text has
 * OUT_NOT_REPORTED.
 */
#include <stdarg.h>
#include <string.h>
#include "cli/util/out.h"
#include "cli/util/paths.h"
#include "lib/private.h"

#define ROW_COLUMNS 100		/* width of a row of verify or doctor */
#define ROW_INDENT 28		/* column of the sentence in a row */

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
	unsigned int nr_others = gpupart_tpcset_count(set);
	const char *sep = " (GPC ";

	if (gpupart_tpcset_format_list(set, text, len) < 0)
		*text = 0;
	for (unsigned int gpc = 0; gpc < gpupart_topology_nr_gpcs(topo); gpc++) {
		const struct gpupart_gpc *g = gpupart_topology_gpc(topo, gpc);

		if (gpupart_tpcset_empty(&g->tpcs) || !gpupart_tpcset_subset(&g->tpcs, set))
			continue;
		out_append(text, len, "%s%u", sep, gpc);
		nr_others -= gpupart_tpcset_count(&g->tpcs);
		sep = ",";
	}
	if (*sep == ',' && nr_others)
		out_append(text, len, " and %u TPC%s", nr_others, nr_others > 1 ? "s" : "");
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

/*
 * Finds the last @end in the first @room characters of @text. Returns the length of the text up to
 * this @end. If there is no @end, returns 0.
 */
static int break_after(const char *text, int room, char end)
{
	while (room > 0 && text[room - 1] != end)
		room--;
	return room;
}

/* Prints @text from column @indent on, wrapped to @columns columns. */
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
	fold(out, OUT_COLUMNS, indent + (int)strlen(label) + 1, text);
}

void out_gpu_text(struct out *out, const struct gpupart_topology *topo)
{
	const struct gpupart_gpu_info *info = gpupart_topology_info(topo);
	char source[280];

	fprintf(out->file, "%s%s%s%s", out->bold,
		*info->name ? info->name : "GPU (name " OUT_NOT_REPORTED ")", out->plain,
		info->simulated ? " (simulated)" : "");
	if (*info->pci)
		fprintf(out->file, ", %s", info->pci);
	if (*info->driver)
		fprintf(out->file, ", driver %s", info->driver);
	if (info->chip_id)
		fprintf(out->file, ", chip 0x%x", info->chip_id);
	if (gpupart_topology_compute_class(topo))
		fprintf(out->file, ", class 0x%x", gpupart_topology_compute_class(topo));
	fprintf(out->file, "\n%u SMs in %u TPCs", gpupart_topology_nr_sms(topo),
		gpupart_topology_nr_tpcs(topo));
	if (gpupart_topology_nr_gpcs(topo))
		fprintf(out->file, " in %u GPCs", gpupart_topology_nr_gpcs(topo));
	if (gpupart_topology_nr_ugpus(topo))
		fprintf(out->file, " in %u uGPUs", gpupart_topology_nr_ugpus(topo));
	fprintf(out->file, "\nsource: %s%s\n", paths_is_live(info->source) ? "" : "capture ",
		paths_source(info->source, source, sizeof(source)));
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
	out_flush(out);
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
		"  widened: no TPC in both limit and set %lu, driver's own mask %lu,\n"
		"           cluster %lu, cooperative %lu\n",
		(unsigned long)c->widened_empty, (unsigned long)c->widened_driver,
		(unsigned long)c->widened_cluster, (unsigned long)c->widened_cooperative);
	fprintf(out->file,
		"  not confined: unknown version %lu, bits not proven %lu, other GPU %lu\n",
		(unsigned long)c->unconfinable_version, (unsigned long)c->unconfinable_map,
		(unsigned long)c->unconfinable_gpu);
}
