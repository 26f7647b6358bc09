// SPDX-License-Identifier: MIT
/* Prints the report of `gpupart stat` as text and as JSON. */
#include <stdarg.h>
#include <string.h>
#include "cli/stat/stat.h"
#include "cli/util/process.h"

#define NR_KERNELS 10
#define LEFT 14
#define MEANING \
	"The start of a kernel is not recorded. Its time is counted from its submission or from " \
	"the end of the previous launch on its stream, whichever is later. Two values are the " \
	"bounds that the clocks of CPU and GPU allow. Copies have no records."

/* Divides the time of a kernel by the time of all kernels. Uses the mean of each pair of bounds. */
static double share_of(const struct gpupart_records_kernel *k,
		       const struct gpupart_records_watched *w)
{
	double all = 0;

	for (unsigned int i = 0; i < w->nr_kernels; i++)
		all += (double)w->kernels[i].least_ns + w->kernels[i].most_ns;
	return all ? ((double)k->least_ns + k->most_ns) / all : 0;
}

static double mean_outstanding(const struct stat_row *row)
{
	const uint64_t looks = row->outstanding_looks;

	return looks ? (double)row->outstanding_sum / looks : 0;
}

/* Returns a text: why @row has no records, and what to do. */
static const char *why_no_records(const struct stat_row *row)
{
	char off[4];

	if (row->last.records.on && !row->first.records.on)
		return "it has launched nothing";
	if (row->last.records.on || (row->ended && !row->looks))
		return "there were fewer than 2 samples before it ended, or before the time of -d";
	process_variable(row->process.pid, "GPUPART_RECORDS", off, sizeof(off));
	return !strcmp(off, "0") ? "it was started with GPUPART_RECORDS=0: remove that variable" :
	       "it has no context on this GPU, or its launches are not recorded: see the row "
	       "'records' of 'gpupart doctor'";
}

/* Returns true if the program did not use this GPU, but used another GPU. */
static bool is_unused(const struct stat_report *report, const struct stat_row *row)
{
	bool other = false;

	for (unsigned int i = 0; i < report->nr_rows; i++)
		other |= report->rows[i].process.pid == row->process.pid &&
			 report->rows[i].last.records.on;
	return report->program && other && !row->last.records.on;
}

/* ------------------------------------------------------------------- text */

__attribute__((format(printf, 3, 4)))
static void say(struct out *out, const char *label, const char *fmt, ...)
{
	char text[512], left[LEFT + 1];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	snprintf(left, sizeof(left), "%-*s", LEFT - 1, label);
	out_wrap(out, 0, left, text);
}

static const char *time_text(char text[48], double least, double most)
{
	const double unit = most < 1e6 ? 1e3 : most < 1e9 ? 1e6 : 1e9;

	return stat_range(text, least / unit, most / unit, "-",
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

/* If the row has no completion records, returns false. */
static bool print_row(struct out *out, const struct stat_row *row)
{
	const struct gpupart_records *r = &row->last.records;
	const struct gpupart_process *p = &row->process;
	char share[48], graphs[64];
	struct stat_counts c;

	say(out, "process", "%d%s%s, GPU %s%s%s", p->pid, *p->name ? " " : "", p->name,
		 p->pci, p->simulated ? ", simulated" : "", row->ended ? ", has ended" : "");
	if (!stat_count(&row->first, &row->last, &c)) {
		say(out, "no records", "%s", why_no_records(row));
		return false;
	}
	say(out, "GPU busy", "%s of the time", stat_share(share, c.least, c.most));
	if (r->all_known)
		say(out, "GPU idle",
			 "%s: no launch was outstanding; the GPU waited for the CPU or for copies "
			 "(gpupart cannot tell which); the threads used %.2f CPUs",
			 stat_share(share, 1 - c.most, 1 - c.least), c.cpus);
	snprintf(graphs, sizeof(graphs), ", including %llu graphs without a record", c.graphs);
	say(out, "launches", "%.0f per second: %llu launches in %.2f s%s; %llu of them ended",
	    c.launches / c.seconds, c.launches, c.seconds, c.graphs ? graphs : "", c.ended);
	say(out, "outstanding", "%llu %s, %.1f on average, %llu at most",
	    (unsigned long long)r->outstanding, row->ended ? "at its end" : "now",
	    mean_outstanding(row), (unsigned long long)row->outstanding_max);
	if (r->unknown || c.unrecorded)
		say(out, "unknown",
			 "%llu launches (%llu of them graphs) may still be running, so the GPU may "
			 "have been busy all the time; launches without a record: %llu in this "
			 "time, %llu in total",
			 (unsigned long long)r->unknown, (unsigned long long)r->graphs,
			 c.unrecorded, (unsigned long long)r->unrecorded);
	if (row->last.watched.missed)
		say(out, "missed",
		    "%llu launches ended between two samples, so they were counted but not timed",
		    (unsigned long long)row->last.watched.missed);
	print_kernels(out, &row->last.watched);
	return true;
}

static const char *bytes_text(char text[32], uint64_t bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	double value = bytes;
	int unit = 0;

	for (; value >= 1024 && unit < 4; unit++)
		value /= 1024;
	snprintf(text, 32, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
	return text;
}

static void print_program(struct out *out, const struct stat_report *report)
{
	static const char *const words[] = {
		[GPUPART_STAT_TO_GPU] = "to the GPU", [GPUPART_STAT_FROM_GPU] = "from it",
		[GPUPART_STAT_INSIDE] = "inside it", [GPUPART_STAT_OTHER] = "other",
	};
	const struct stat_program *p = report->program;
	char copies[256] = "", text[64], size[32];

	snprintf(text, sizeof(text), p->signal ? "ended by signal %d" : "ended with status %d",
		 p->signal ? p->signal : p->status);
	say(out, "program", "%s after %.2f s%s%s%s", text, p->seconds, p->set ? ", on TPCs " : "",
	    p->set ? p->set : "", report->simulated ? ", simulated" : "");
	for (int i = 0; i < GPUPART_STAT_NR_DIRECTIONS; i++)
		if (p->sum.copies[i])
			out_append(copies, sizeof(copies), "%s%s %llu (%s)", *copies ? ", " : "",
				   words[i], (unsigned long long)p->sum.copies[i],
				   bytes_text(size, p->sum.bytes[i]));
	if (p->nr_processes) {
		say(out, "copies", "%s", *copies ? copies : "none");
		say(out, "CPU waits", "%.2f s, in %llu calls", p->sum.wait_ns / 1e9,
		    (unsigned long long)p->sum.waits);
	}
	if (p->nr_lost)
		say(out, "", "%u processes that called CUDA are not included", p->nr_lost);
	fputc('\n', out->file);
}

static void print_verdict(struct out *out, const struct stat_report *report)
{
	struct stat_verdict v;
	char label[64];

	stat_judge(report, &v);
	snprintf(label, sizeof(label), "%s:", v.verdict);
	fprintf(out->file, "%s", out->bold);
	out_wrap(out, 0, label, v.why);
	fputs(out->plain, out->file);
	if (v.advice)
		out_wrap(out, 0, "-", v.advice);
}

static void show_text(struct out *out, const struct stat_report *report)
{
	bool any = false;

	if (report->program)
		print_program(out, report);
	for (unsigned int i = 0; i < report->nr_rows; i++) {
		if (is_unused(report, &report->rows[i]))
			continue;
		any |= print_row(out, &report->rows[i]);
		if (any || report->program || i + 1 < report->nr_rows)
			fputc('\n', out->file);
	}
	if (report->program)
		print_verdict(out, report);
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

static json_t *json_counts(const struct stat_counts *c, const struct gpupart_records *r)
{
	return json_pack("{s:f, s:o, s:o, s:b, s:f, s:I, s:f, s:I, s:I, s:I, s:I}",
		"seconds", c->seconds, "busy", json_range(c->least, c->most),
		"idle", json_range(1 - c->most, 1 - c->least), "all_known", r->all_known,
		"cpus", c->cpus, "launches", (json_int_t)c->launches, "launches_per_second",
		c->launches / c->seconds, "launches_ended", (json_int_t)c->ended,
		"graphs", (json_int_t)c->graphs, "unrecorded", (json_int_t)c->unrecorded,
		"outstanding", (json_int_t)r->outstanding);
}

static json_t *json_row(const struct stat_row *row)
{
	const struct gpupart_process *p = &row->process;
	const struct stat_sample *last = &row->last;
	struct stat_counts c;
	bool on = stat_count(&row->first, last, &c);
	json_t *object = json_pack("{s:i, s:o, s:s, s:b, s:b, s:b, s:o}", "pid", p->pid,
		"name", out_json_text(p->name), "gpu", p->pci, "simulated", p->simulated,
		"ended", row->ended, "records", on,
		"why", on ? json_null() : json_string(why_no_records(row)));

	if (!on)
		return object;
	json_object_update_new(object, json_counts(&c, &last->records));
	json_object_update_new(object, json_pack("{s:I, s:I, s:I, s:f, s:I, s:o}",
		"unrecorded_in_all", (json_int_t)last->records.unrecorded,
		"unknown", (json_int_t)last->records.unknown,
		"missed", (json_int_t)last->watched.missed,
		"outstanding_mean", mean_outstanding(row),
		"outstanding_max", (json_int_t)row->outstanding_max,
		"kernels", json_kernels(&last->watched)));
	return object;
}

static json_t *json_copies(const struct gpupart_stat_process *sum)
{
	static const char *const directions[] = {
		[GPUPART_STAT_TO_GPU] = "to_gpu", [GPUPART_STAT_FROM_GPU] = "from_gpu",
		[GPUPART_STAT_INSIDE] = "inside", [GPUPART_STAT_OTHER] = "other",
	};
	json_t *copies = json_object();

	for (int i = 0; i < GPUPART_STAT_NR_DIRECTIONS; i++)
		json_object_set_new(copies, directions[i], json_pack("{s:I, s:I}",
			"count", (json_int_t)sum->copies[i], "bytes", (json_int_t)sum->bytes[i]));
	return copies;
}

static json_t *json_program(const struct stat_report *report)
{
	const struct stat_program *p = report->program;
	json_t *argv = json_array(), *advice = json_array();
	struct stat_verdict v;

	stat_judge(report, &v);
	for (char **arg = p->argv; *arg; arg++)
		json_array_append_new(argv, out_json_text(*arg));
	if (v.advice)
		json_array_append_new(advice, json_string(v.advice));
	return json_pack("{s:o, s:i, s:o, s:f, s:o, s:s, s:s, s:o, s:o, s:o, s:I, s:f, s:i}",
		"program", argv, "status", p->status,
		"signal", p->signal ? json_integer(p->signal) : json_null(),
		"seconds", p->seconds, "set", out_json_tpcs(&p->tpcs),
		"verdict", v.verdict, "why", v.why, "advice", advice,
		"busy", json_range(v.least, v.most), "copies", json_copies(&p->sum),
		"waits", (json_int_t)p->sum.waits, "wait_seconds", p->sum.wait_ns / 1e9,
		"processes_left_out", p->nr_lost);
}

static json_t *show_json(const struct stat_report *report)
{
	json_t *root = out_json_new("stat", report->simulated), *processes = json_array();

	if (report->program)
		json_object_update_new(root, json_program(report));
	for (unsigned int i = 0; i < report->nr_rows; i++)
		if (!is_unused(report, &report->rows[i]))
			json_array_append_new(processes, json_row(&report->rows[i]));
	json_object_set_new(root, "processes", processes);
	if (report->intervals)
		json_object_set(root, "intervals", report->intervals);
	return root;
}

int stat_show(struct out *out, const struct stat_report *report)
{
	if (report->args->json)
		out_json_write(out, show_json(report));
	else
		show_text(out, report);
	return out_close(out);
}

void stat_interval(const struct stat_report *report, struct stat_row *row, double seconds)
{
	char busy[48];
	struct stat_counts c;
	json_t *object;

	gpupart_records_watched(row->reader, &row->last.watched);
	if (!stat_count(&row->reported, &row->last, &c))
		return;
	row->reported = row->last;
	if (!report->intervals) {
		remark("%.1f s: %d: %.0f launches/s, GPU busy %s, %llu outstanding", seconds,
		       row->process.pid, c.launches / c.seconds,
		       stat_share(busy, c.least, c.most),
		       (unsigned long long)row->last.records.outstanding);
		return;
	}
	object = json_pack("{s:f, s:i, s:s}", "end_seconds", seconds, "pid", row->process.pid,
			   "gpu", row->process.pci);
	json_object_update_new(object, json_counts(&c, &row->last.records));
	json_array_append_new(report->intervals, object);
}
