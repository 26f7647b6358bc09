// SPDX-License-Identifier: MIT
/* Shows what `gpupart stat` found in the records of running processes, as text and as JSON. */
#include <stdlib.h>
#include <string.h>
#include "cli/stat/running.h"
#include "cli/stat/stat.h"

#define NR_KERNELS 10
#define MEANING \
	"A kernel's begin is not recorded: its time is taken from its submission or, if that is later, the end of the launch before it on its stream. Two values: the clocks of CPU and GPU leave open which. Copies have no records."

/* What happened between two samples. */
struct counts {
	unsigned long long launches, ended, graphs, unrecorded;
	double seconds, least, most, cpus;
};

/* What is more by now, of a process that may write anything. */
static uint64_t more(uint64_t now, uint64_t before)
{
	return now > before ? now - before : 0;
}

/* False: too little was read. */
static bool count(const struct running_sample *from, const struct running_sample *to,
		  struct counts *c)
{
	const struct gpupart_records *a = &from->records, *b = &to->records;
	const double watched = to->watched.ns - from->watched.ns;

	if (!watched)
		return false;
	c->seconds = (to->at_ns - from->at_ns) / 1e9;
	c->graphs = more(b->graphs, a->graphs);
	c->unrecorded = more(b->unrecorded, a->unrecorded);
	c->launches = more(b->issued, a->issued) + c->unrecorded + c->graphs;
	c->ended = more(b->ended, a->ended);
	c->cpus = more(to->cpu_ns, from->cpu_ns) / 1e9 / c->seconds;
	c->least = (to->watched.least_ns - from->watched.least_ns) / watched;
	c->most = (to->watched.most_ns - from->watched.most_ns) / watched;
	return true;
}

/* Of the time of all kernels, by the middle of both values. */
static double share_of(const struct gpupart_records_kernel *k,
		       const struct gpupart_records_watched *w)
{
	double all = 0;

	for (unsigned int i = 0; i < w->nr_kernels; i++)
		all += (double)w->kernels[i].least_ns + w->kernels[i].most_ns;
	return all ? ((double)k->least_ns + k->most_ns) / all : 0;
}

/* Where @row has no records: why, and what to do. */
static const char *lack(const struct running_row *row)
{
	char path[32], *word = NULL;
	bool off = false;
	size_t room = 0;
	FILE *file;

	if (row->last.records.on || (row->ended && !row->looks))
		return "it was not read twice before it ended, or before -d was over";
	snprintf(path, sizeof(path), "/proc/%d/environ", row->process.pid);
	file = fopen(path, "re");
	while (file && !off && getdelim(&word, &room, 0, file) > 0)
		off = !strcmp(word, "GPUPART_RECORDS=0");
	free(word);
	if (file)
		fclose(file);
	return off ? "it was started with GPUPART_RECORDS=0: start it without that" :
	       "its launches are not recorded: 'gpupart doctor' says why, in the row records";
}

/* ------------------------------------------------------------------- text */

/* "31.0 to 44.2%": one value where both are the same within 2% of them. */
static const char *range(char text[48], double least, double most, const char *to,
			 const char *unit)
{
	if (most - least <= 0.02 * most)
		snprintf(text, 48, "%.1f%s", (least + most) / 2, unit);
	else
		snprintf(text, 48, "%.1f%s%.1f%s", least, to, most, unit);
	return text;
}

static const char *share_text(char text[48], double least, double most)
{
	return range(text, 100 * least, 100 * most, " to ", "%");
}

static const char *time_text(char text[48], double least, double most)
{
	const double unit = most < 1e6 ? 1e3 : most < 1e9 ? 1e6 : 1e9;

	return range(text, least / unit, most / unit, "-",
		     most < 1e6 ? " us" : most < 1e9 ? " ms" : " s");
}

static void print_kernels(struct out *out, const struct gpupart_records_watched *w)
{
	char mean[48], longest[48];

	if (w->nr_kernels)
		fprintf(out->file, "%s%9s %7s %15s %10s  KERNEL%s\n", out->bold, "COUNT", "SHARE",
			"MEAN", "LONGEST", out->plain);
	for (unsigned int i = 0; i < w->nr_kernels && i < NR_KERNELS; i++) {
		const struct gpupart_records_kernel *k = &w->kernels[i];

		fprintf(out->file, "%9llu %6.1f%% %15s %10s  %s\n", (unsigned long long)k->count,
			100 * share_of(k, w), time_text(mean, (double)k->least_ns / k->count,
							(double)k->most_ns / k->count),
			time_text(longest, k->longest_ns, k->longest_ns),
			*k->name ? k->name : "(name not known)");
	}
}

/* False: it has no records. */
static bool print_row(struct out *out, const struct running_row *row)
{
	const struct gpupart_records *r = &row->last.records;
	const struct gpupart_process *p = &row->process;
	char share[48];
	struct counts c;

	stat_row(out, "process", "%d%s%s, GPU %s%s%s", p->pid, *p->name ? " " : "", p->name,
		 p->pci, p->simulated ? ", simulated" : "", row->ended ? ", has ended" : "");
	if (!count(&row->first, &row->last, &c)) {
		stat_row(out, "no records", "%s", lack(row));
		return false;
	}
	stat_row(out, "GPU busy", "%s of the time", share_text(share, c.least, c.most));
	if (r->all_known)
		stat_row(out, "GPU idle",
			 "%s: no launch was outstanding; it waits for the CPU or for copies, which are not told apart; its threads used %.2f CPUs",
			 share_text(share, 1 - c.most, 1 - c.least), c.cpus);
	stat_row(out, "launches",
		 "%.0f a second: %llu, %llu graphs without a record among them, in %.2f s; %llu ended",
		 c.launches / c.seconds, c.launches, c.graphs, c.seconds, c.ended);
	stat_row(out, "outstanding", "%llu now, %.1f on average, %llu at most",
		 (unsigned long long)r->outstanding, (double)row->outstanding_sum / row->looks,
		 (unsigned long long)row->outstanding_max);
	if (r->unknown || c.unrecorded)
		stat_row(out, "unknown",
			 "%llu launches may not have ended, %llu graphs among them: it may be busy all the time; unrecorded: %llu in this time, %llu in all",
			 (unsigned long long)r->unknown, (unsigned long long)r->graphs,
			 c.unrecorded, (unsigned long long)r->unrecorded);
	if (row->last.watched.missed)
		stat_row(out, "missed", "%llu launches ended that could not be read one by one",
			 (unsigned long long)row->last.watched.missed);
	print_kernels(out, &row->last.watched);
	return true;
}

void running_text(struct out *out, const struct running *running)
{
	bool any = false;

	for (unsigned int i = 0; i < running->nr_rows; i++) {
		any |= print_row(out, &running->rows[i]);
		if (any || i + 1 < running->nr_rows)
			fputc('\n', out->file);
	}
	if (any)
		out_wrap(out, 0, "", MEANING);
}

/* ------------------------------------------------------------------- JSON */

static json_t *json_range(double least, double most)
{
	return json_pack("{s:f, s:f}", "least", least, "most", most);
}

static json_t *json_kernels(const struct gpupart_records_watched *w)
{
	json_t *all = json_array();

	for (unsigned int i = 0; i < w->nr_kernels && i < NR_KERNELS; i++) {
		const struct gpupart_records_kernel *k = &w->kernels[i];

		json_array_append_new(all, json_pack("{s:o, s:I, s:f, s:o, s:f}",
			"name", out_json_text(k->name), "count", (json_int_t)k->count,
			"share", share_of(k, w), "mean_seconds",
			json_range(k->least_ns / 1e9 / k->count, k->most_ns / 1e9 / k->count),
			"longest_seconds", k->longest_ns / 1e9));
	}
	return all;
}

static json_t *json_counts(const struct counts *c, const struct gpupart_records *r)
{
	return json_pack("{s:f, s:o, s:o, s:b, s:f, s:I, s:f, s:I, s:I, s:I, s:I}",
		"seconds", c->seconds, "busy", json_range(c->least, c->most),
		"idle", json_range(1 - c->most, 1 - c->least), "all_known", r->all_known,
		"cpus", c->cpus, "launches", (json_int_t)c->launches, "launches_per_second",
		c->launches / c->seconds, "launches_ended", (json_int_t)c->ended,
		"graphs", (json_int_t)c->graphs, "unrecorded", (json_int_t)c->unrecorded,
		"outstanding", (json_int_t)r->outstanding);
}

static json_t *json_row(const struct running_row *row)
{
	const struct gpupart_process *p = &row->process;
	const struct running_sample *last = &row->last;
	struct counts c;
	bool on = count(&row->first, last, &c);
	json_t *object = json_pack("{s:i, s:o, s:s, s:b, s:b, s:b, s:o}", "pid", p->pid,
		"name", out_json_text(p->name), "gpu", p->pci, "simulated", p->simulated,
		"ended", row->ended, "records", on,
		"why", on ? json_null() : json_string(lack(row)));

	if (!on)
		return object;
	json_object_update_new(object, json_counts(&c, &last->records));
	json_object_update_new(object, json_pack("{s:I, s:I, s:I, s:f, s:I, s:o}",
		"unrecorded_in_all", (json_int_t)last->records.unrecorded,
		"unknown", (json_int_t)last->records.unknown,
		"missed", (json_int_t)last->watched.missed,
		"outstanding_mean", (double)row->outstanding_sum / row->looks,
		"outstanding_max", (json_int_t)row->outstanding_max,
		"kernels", json_kernels(&last->watched)));
	return object;
}

void running_json(json_t *root, const struct running *running)
{
	json_t *processes = json_array();

	for (unsigned int i = 0; i < running->nr_rows; i++)
		json_array_append_new(processes, json_row(&running->rows[i]));
	json_object_set_new(root, "processes", processes);
	if (running->intervals)
		json_object_set(root, "intervals", running->intervals);
}

void running_interval(const struct running *running, struct running_row *row, double seconds)
{
	char busy[48];
	struct counts c;
	json_t *object;

	gpupart_records_watched(row->reader, &row->last.watched);
	if (!count(&row->told, &row->last, &c))
		return;
	row->told = row->last;
	if (!running->intervals) {
		remark("%.1f s: %d: %.0f launches/s, GPU busy %s, %llu outstanding", seconds,
		       row->process.pid, c.launches / c.seconds,
		       share_text(busy, c.least, c.most),
		       (unsigned long long)row->last.records.outstanding);
		return;
	}
	object = json_pack("{s:f, s:i, s:s}", "end_seconds", seconds, "pid", row->process.pid,
			   "gpu", row->process.pci);
	json_object_update_new(object, json_counts(&c, &row->last.records));
	json_array_append_new(running->intervals, object);
}
