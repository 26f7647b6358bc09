// SPDX-License-Identifier: MIT
/* Shows what `gpupart stat` found, as text and as JSON. */
#include <string.h>
#include "cli/stat/stat.h"

#define LEFT 14

static const char *const directions[] = {
	[GPUPART_STAT_TO_GPU] = "to_gpu", [GPUPART_STAT_FROM_GPU] = "from_gpu",
	[GPUPART_STAT_INSIDE] = "inside", [GPUPART_STAT_OTHER] = "other",
};

__attribute__((format(printf, 3, 4)))
void stat_row(struct out *out, const char *label, const char *fmt, ...)
{
	char text[512], left[LEFT + 1];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	snprintf(left, sizeof(left), "%-*s", LEFT - 1, label);
	out_wrap(out, 0, left, text);
}

static const char *bytes_text(char *text, size_t len, uint64_t bytes)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
	double value = bytes;
	int unit = 0;

	for (; value >= 1024 && unit < 4; unit++)
		value /= 1024;
	snprintf(text, len, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
	return text;
}

static void print_copies(struct out *out, const struct gpupart_stat_process *sum)
{
	static const char *const words[] = {
		[GPUPART_STAT_TO_GPU] = "to the GPU", [GPUPART_STAT_FROM_GPU] = "from it",
		[GPUPART_STAT_INSIDE] = "inside it", [GPUPART_STAT_OTHER] = "other",
	};
	char text[256] = "", size[32];

	for (int i = 0; i < GPUPART_STAT_NR_DIRECTIONS; i++)
		if (sum->copies[i])
			out_append(text, sizeof(text), "%s%s %llu (%s)", *text ? ", " : "",
				   words[i], (unsigned long long)sum->copies[i],
				   bytes_text(size, sizeof(size), sum->bytes[i]));
	stat_row(out, "copies", "%s", *text ? text : "none");
}

static void print_gpu(struct out *out, const struct stat_result *r)
{
	const struct gpupart_stat_gpu *gpu = &r->sum.gpus[0];

	stat_row(out, "GPU busy",
	    "%.1f%% of the time: kernels %.1f%%, copies %.1f%%, both at once %.1f%%",
	    100 * r->shares[STAT_BUSY], 100 * r->shares[STAT_KERNELS],
	    100 * r->shares[STAT_COPIES], 100 * r->shares[STAT_BOTH]);
	stat_row(out, "GPU idle",
	    "%.1f%% with nothing submitted (of that, %.0f%% while the CPU waited, too), %.1f%% while what was submitted waited for something else",
	    100 * r->shares[STAT_STARVED], 100 * r->starved_waiting,
	    100 * r->shares[STAT_HELD]);
	stat_row(out, "queue",
	    "%llu before it in the median, %.1f on average, %llu at most, at a submission; %.1f%% of the time the CPU had no room for more",
	    (unsigned long long)r->depth_median, r->depth, (unsigned long long)gpu->depth_max,
	    100 * r->blocked);
	stat_row(out, "CPU",
	    "waits %.1f%% of the time, in %llu calls and %llu questions; launches %.1f%%",
	    100 * r->cpu_waits, (unsigned long long)r->sum.syncs,
	    (unsigned long long)r->sum.queries, 100 * r->cpu_launches);
	stat_row(out, "measured",
	    "%llu of %llu launches, fills and copies, in %.2f s; measuring took %.1f%% of the time",
	    (unsigned long long)gpu->timed, (unsigned long long)(gpu->timed + gpu->untimed),
	    gpu->stretches_ns / 1e9, 100 * r->cost);
	if (r->sum.unresolved)
		stat_row(out, "", "%llu more were not seen to end before the program did",
		    (unsigned long long)r->sum.unresolved);
}

static void print_processes(struct out *out, const struct stat_result *r)
{
	for (unsigned int i = 0; r->nr_processes > 1 && i < r->nr_processes; i++) {
		const struct gpupart_stat_process *p = &r->processes[i];
		uint64_t busy = 0, stretches = 0;
		char name[sizeof(p->name) + 1];

		for (unsigned int g = 0; g < p->nr_gpus; g++) {
			busy += p->gpus[g].busy_ns;
			stretches += p->gpus[g].stretches_ns;
		}
		snprintf(name, sizeof(name), "%.*s", (int)sizeof(p->name), p->name);
		stat_row(out, i ? "" : "processes",
		    "%llu %s: %llu launches, GPU busy %.1f%%, CPU waits %.2f s",
		    (unsigned long long)p->pid, out_clean(name),
		    (unsigned long long)(p->kernels + p->graphs),
		    stretches ? 100.0 * busy / stretches : 0, p->wait_ns / 1e9);
	}
	if (r->nr_lost)
		stat_row(out, "", "%u more are not in this", r->nr_lost);
}

void stat_text(struct out *out, const struct stat_result *r)
{
	const struct gpupart_stat_process *sum = &r->sum;
	char ended[64];

	snprintf(ended, sizeof(ended), r->signal ? "ended by signal %d" : "ended with status %d",
		 r->signal ? r->signal : r->status);
	stat_row(out, "program", "%s after %.2f s%s%s%s", ended, r->seconds,
	    r->set ? ", on TPCs " : "", r->set ? r->set : "", r->simulated ? ", simulated" : "");
	if (r->nr_processes) {
		stat_row(out, "launches",
		    "%llu kernels, %llu graphs, in %.2f s: %.0f a second; %llu fills",
		    (unsigned long long)sum->kernels, (unsigned long long)sum->graphs, r->span,
		    r->rate, (unsigned long long)sum->fills);
		print_copies(out, sum);
	}
	if (sum->gpus[0].timed)
		print_gpu(out, r);
	print_processes(out, r);
	fprintf(out->file, "\n%s", out->bold);
	snprintf(ended, sizeof(ended), "%s:", r->verdict);
	out_wrap(out, 0, ended, r->why);
	fputs(out->plain, out->file);
	if (r->advice)
		out_wrap(out, 0, "-", r->advice);
}

static json_t *number(uint64_t n)
{
	return json_integer(n);
}

static json_t *seconds(uint64_t ns)
{
	return json_real(ns / 1e9);
}

static json_t *json_gpu(const struct gpupart_stat_gpu *gpu)
{
	return json_pack("{s:s so so so so so so so so so so so so so}",
		"pci", gpu->pci, "nr_sms", number(gpu->nr_sms), "timed", number(gpu->timed),
		"untimed", number(gpu->untimed), "stretches_seconds", seconds(gpu->stretches_ns),
		"measuring_seconds", seconds(gpu->own_ns), "busy_seconds", seconds(gpu->busy_ns),
		"kernels_seconds", seconds(gpu->kernels_ns),
		"copies_seconds", seconds(gpu->copies_ns),
		"starved_seconds", seconds(gpu->starved_ns),
		"starved_waiting_seconds", seconds(gpu->both_ns),
		"held_seconds", seconds(gpu->held_ns), "blocked_seconds", seconds(gpu->blocked_ns),
		"depth_max", number(gpu->depth_max));
}

static void set_counts(json_t *object, const struct gpupart_stat_process *p)
{
	json_t *copies = json_object();

	json_object_set_new(object, "kernels", number(p->kernels));
	json_object_set_new(object, "graphs", number(p->graphs));
	json_object_set_new(object, "fills", number(p->fills));
	for (int i = 0; i < GPUPART_STAT_NR_DIRECTIONS; i++)
		json_object_set_new(copies, directions[i],
				    json_pack("{s:o, s:o}", "count", number(p->copies[i]),
					      "bytes", number(p->bytes[i])));
	json_object_set_new(object, "copies", copies);
	json_object_set_new(object, "waits", number(p->syncs));
	json_object_set_new(object, "queries", number(p->queries));
	json_object_set_new(object, "wait_seconds", seconds(p->wait_ns));
	json_object_set_new(object, "launch_seconds", seconds(p->launch_ns));
	json_object_set_new(object, "measuring_seconds", seconds(p->own_ns));
	json_object_set_new(object, "unresolved", number(p->unresolved));
}

static json_t *json_processes(const struct stat_result *r)
{
	json_t *all = json_array();

	for (unsigned int i = 0; i < r->nr_processes; i++) {
		const struct gpupart_stat_process *p = &r->processes[i];
		json_t *process, *gpus = json_array();
		char name[sizeof(p->name) + 1];

		snprintf(name, sizeof(name), "%.*s", (int)sizeof(p->name), p->name);
		process = json_pack("{s:o, s:s}", "pid", number(p->pid), "name", out_clean(name));
		set_counts(process, p);
		for (unsigned int g = 0; g < p->nr_gpus; g++)
			json_array_append_new(gpus, json_gpu(&p->gpus[g]));
		json_object_set_new(process, "gpus", gpus);
		json_array_append_new(all, process);
	}
	return all;
}

static json_t *json_shares(const struct stat_result *r)
{
	static const char *const names[] = { "busy", "kernels", "copies", "kernels_and_copies",
					     "starved", "held" };
	json_t *shares = json_object();

	for (int i = 0; i < STAT_NR_SHARES; i++)
		json_object_set_new(shares, names[i], json_real(r->shares[i]));
	json_object_set_new(shares, "starved_while_cpu_waits", json_real(r->starved_waiting));
	json_object_update_new(shares, json_pack("{s:f, s:f, s:f, s:f, s:f, s:o, s:o}",
		"queue_full", r->blocked, "cpu_waits", r->cpu_waits,
		"cpu_launches", r->cpu_launches, "measuring", r->cost, "depth_mean", r->depth,
		"depth_median", number(r->depth_median),
		"depth_max", number(r->sum.gpus[0].depth_max)));
	return shares;
}

void stat_json(json_t *root, const struct stat_result *r)
{
	json_t *advice = json_array(), *program = json_array(), *total = json_object();
	char word[256];

	for (char **arg = r->program; *arg; arg++) {
		snprintf(word, sizeof(word), "%s", *arg);
		json_array_append_new(program, json_string(out_clean(word)));
	}
	if (r->advice)
		json_array_append_new(advice, json_string(r->advice));
	set_counts(total, &r->sum);
	json_object_update_new(root, json_pack(
		"{s:o, s:i, s:o, s:f, s:o, s:s, s:s, s:o, s:f, s:f, s:o, s:o, s:o, s:i}",
		"program", program, "status", r->status,
		"signal", r->signal ? json_integer(r->signal) : json_null(),
		"seconds", r->seconds, "set", out_json_tpcs(&r->tpcs),
		"verdict", r->verdict, "why", r->why, "advice", advice, "span_seconds", r->span,
		"launches_per_second", r->rate, "shares", json_shares(r), "total", total,
		"processes", json_processes(r), "processes_left_out", r->nr_lost));
}
