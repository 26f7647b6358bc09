// SPDX-License-Identifier: MIT
/*
 * The report of 'gpupart run'; see run_report.h. If several processes launched the same kernel, the
 * report has one line for this kernel. The report may suggest a set of the same size with room for
 * a cluster. For this, it reads the topology of the process and searches the TPCs inside the limit
 * of an outer run. TPCs that no other program uses now come first.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "cli/start/run.h"
#include "cli/start/run_report.h"
#include "cli/target/neighbours.h"
#include "cli/util/alloc.h"
#include "cli/util/message.h"
#include "cli/util/out.h"
#include "lib/private.h"

#define MAX_LINES 12
#define RUN "run"
#define FIRST_TIME_NAMESPACE 0xeffffffa	/* PROC_TIME_INIT_INO in linux/proc_ns.h */

bool run_report_breach(const struct gpupart_report_process *process)
{
	uint64_t outside = process->others;

	for (int i = 0; i < GPUPART_REPORT_NR_KERNELS; i++)
		if (process->kernels[i].outside != GPUPART_REFUSED_MODULE)
			outside += process->kernels[i].count;
	return outside || process->state == GPUPART_REPORT_NOT_REFUSED;
}

/* Returns the inode of this process's namespace @kind. If the inode cannot be read, returns 0. */
static uint64_t own_namespace(const char *kind)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/self/ns/%s", kind);
	return stat(path, &st) ? 0 : st.st_ino;
}

enum run_report_found run_report_find(const struct gpupart_report *report,
				      const struct process *p)
{
	uint64_t pids = own_namespace("pid"), times = own_namespace("time");
	enum run_report_found result = RUN_REPORT_ABSENT;
	struct gpupart_report_process found;
	bool same_pids, comparable;

	for (unsigned int n = 0; !gpupart_report_get(report, n, &found); n++) {
		same_pids = pids && found.pid_namespace == pids;
		/* Start times in the report refer to the first time namespace of the machine. */
		comparable = found.start && p->start && (!times || times == FIRST_TIME_NAMESPACE);
		if ((same_pids && found.pid != p->pid) ||
		    (comparable && found.start != p->start))
			continue;
		if (same_pids && comparable)
			return RUN_REPORT_PRESENT;
		result = RUN_REPORT_UNKNOWN;
	}
	return result;
}

/*
 * Suggests a set with room for the cluster of @kernel. The set has as many TPCs as the kernel's
 * limit. If there is no such set, writes "".
 */
static void advise(const struct args *args, char *text, size_t len,
		   const struct gpupart_report_process *process,
		   const struct gpupart_report_kernel *kernel)
{
	unsigned int nr = gpupart_tpcset_count(&kernel->limit);
	struct gpupart_tpcset none = { 0 }, all, around, others, left, set;
	const struct gpupart_tpcset *outer;
	struct gpupart_topology *topo;
	char list[OUT_SET_STRLEN];

	text[0] = 0;
	if (!kernel->cluster || gpupart_topology_open(NULL, process->source, process->simulated ?
						      NULL : process->pci, &topo))
		return;
	if (run_outer_limit(args, topo, process->pci, &around, &outer))
		outer = NULL;
	all = outer ? *outer : gpupart_topology_all(topo);
	others = neighbours_tpcs(args, topo, process->pci, outer);
	left = gpupart_tpcset_andnot(&all, &others);
	if (!gpupart_set_pick(topo, kernel->cluster, &none, &kernel->limit, &left, nr, &set))
		snprintf(text, len, "; -t %s, with the same number of TPCs, would fit",
			 out_set(list, sizeof(list), topo, &set));
	else if (!gpupart_set_pick(topo, kernel->cluster, &none, &kernel->limit, &all, nr, &set))
		snprintf(text, len,
			 "; no %u free TPCs fit; TPCs %s would, but other programs use some of them",
			 nr, out_set(list, sizeof(list), topo, &set));
	else
		snprintf(text, len, "; no set of %u TPCs%s fits", nr,
			 outer ? " inside GPUPART_SET" : "");
	gpupart_topology_close(topo);
}

static void write_reason(char *text, size_t len, const struct gpupart_report_kernel *kernel)
{
	switch (kernel->outside) {
	case GPUPART_OUTSIDE_DRIVER:
		snprintf(text, len, "the driver itself disables all TPCs of the set for it");
		break;
	case GPUPART_OUTSIDE_CLUSTER:
		if (kernel->cluster)
			snprintf(text, len,
				 "no virtual GPC of the set has room for its clusters of %u blocks: it got %u TPCs",
				 kernel->cluster, kernel->nr_tpcs);
		else
			snprintf(text, len,
				 "all its clusters must run at once: it got %u TPCs",
				 kernel->nr_tpcs);
		break;
	case GPUPART_OUTSIDE_COOPERATIVE:
		snprintf(text, len,
			 "its cooperative grid needs %u TPCs at once: use --sm-count to report the set's SMs to the program",
			 kernel->nr_tpcs);
		break;
	case GPUPART_OUTSIDE_VERSION:
		snprintf(text, len, "gpupart does not support this type of launch");
		break;
	case GPUPART_OUTSIDE_GPU:
		snprintf(text, len, "it ran on a GPU without a set");
		break;
	default:
		snprintf(text, len, "the mask bits of the GPU are not proven");
	}
}

static bool same(const struct gpupart_report_kernel *a, const struct gpupart_report_kernel *b)
{
	return !strcmp(a->name, b->name) && a->outside == b->outside && a->cluster == b->cluster &&
	       gpupart_tpcset_equal(&a->limit, &b->limit);
}

static void say_module(const struct gpupart_report_kernel *kernel, bool simulated)
{
	bool one = kernel->count == 1;

	remark(
		"%llu module%s with %s%s %s refused%s: kernels of such a module can launch further kernels from the GPU: see gpupart-device-launches(7)",
		(unsigned long long)kernel->count, one ? "" : "s",
		*kernel->name ? "kernel " : "kernels of unknown name", kernel->name,
		one ? "was" : "were", simulated ? " (simulated)" : "");
}

static void say_kernel(const struct args *args, const struct gpupart_report_process *process,
		       const struct gpupart_report_kernel *kernel)
{
	char why[200], advice[OUT_SET_STRLEN + 128], list[GPUPART_TPCSET_STRLEN];

	if (kernel->outside == GPUPART_REFUSED_MODULE) {
		say_module(kernel, args->simulated);
		return;
	}
	write_reason(why, sizeof(why), kernel);
	advise(args, advice, sizeof(advice), process, kernel);
	gpupart_tpcset_format_list(&kernel->limit, list, sizeof(list));
	remark("%llu %s outside %s%s%s: %s: %s%s", (unsigned long long)kernel->count,
	       kernel->count == 1 ? "launch" : "launches", *list ? "TPCs " : "the set", list,
	       args->simulated ? " (simulated)" : "",
	       *kernel->name ? kernel->name : "a kernel of unknown name", why, advice);
}

/* Prints a line for each kernel. Adds launches without a line to *@rest. */
static void say_launches(const struct gpupart_report *report, const struct args *args,
			 uint64_t *rest)
{
	/* Too large for a small stack. */
	static struct gpupart_report_kernel said[MAX_LINES];
	static struct gpupart_report_process of[MAX_LINES], p;
	unsigned int nr = 0, k;

	for (unsigned int n = 0; !gpupart_report_get(report, n, &p); n++) {
		*rest += p.others;
		for (int i = 0; i < GPUPART_REPORT_NR_KERNELS; i++) {
			if (!p.kernels[i].count)
				continue;
			for (k = 0; k < nr && !same(&said[k], &p.kernels[i]); k++)
				;
			if (k < nr) {
				said[k].count += p.kernels[i].count;
			} else if (nr < MAX_LINES) {
				of[nr] = p;
				said[nr++] = p.kernels[i];
			} else {
				*rest += p.kernels[i].count;
			}
		}
	}
	for (k = 0; k < nr; k++)
		say_kernel(args, &of[k], &said[k]);
}

static void say_unconfined(const struct gpupart_report *report, const struct witness *witness,
			   bool simulated)
{
	const char *sim = simulated ? " (simulated)" : "";
	struct gpupart_report_process p;
	char name[16];

	for (unsigned int n = 0; !gpupart_report_get(report, n, &p); n++)
		if (p.state == GPUPART_REPORT_REFUSED)
			remark("process %d (%s) could not use CUDA%s: %s", p.pid, p.name, sim,
			       p.why);
		else if (p.state != GPUPART_REPORT_CONFINED)
			remark("process %d (%s) used CUDA%s and was never confined: %s", p.pid,
			       p.name, sim, p.why);
	for (unsigned int i = 0; i < witness->nr; i++) {
		const struct witness_process *w = &witness->processes[i];
		enum run_report_found found = w->looks > 1 ? run_report_find(report, &w->process) :
							     RUN_REPORT_PRESENT;

		memcpy(name, w->name, sizeof(name));
		if (found != RUN_REPORT_PRESENT)
			remark("process %d (%s) used CUDA%s and %s confined: %s", w->process.pid,
			       out_clean(name), sim,
			       found == RUN_REPORT_ABSENT ? "was never" : "may never have been",
			       "libgpupart-inject.so was not loaded into it");
	}
}

void run_report_say_hidden(const struct gpupart_report *report, const struct witness *witness,
			   bool simulated)
{
	char name[16];

	if (!witness->hidden.pid ||
	    (!witness->more_hidden &&
	     run_report_find(report, &witness->hidden) == RUN_REPORT_PRESENT))
		return;
	memcpy(name, witness->hidden_name, sizeof(name));
	cmd_note(RUN,
		 "strict: process %d (%s)%s cannot be examined by this user: this process may have used CUDA%s without a limit",
		 witness->hidden.pid, out_clean(name), witness->more_hidden ? " and others" : "",
		 simulated ? " (simulated)" : "");
}

void run_report_say(const struct gpupart_report *report, const struct witness *witness,
		    const struct args *args)
{
	const char *sim = args->simulated ? " (simulated)" : "";
	unsigned int refused, lost = gpupart_report_lost(report, &refused);
	uint64_t rest = 0;

	lost -= refused;
	say_unconfined(report, witness, args->simulated);
	say_launches(report, args, &rest);
	if (rest)
		remark("%llu launches of further kernels ran outside the set%s",
		       (unsigned long long)rest, sim);
	if (refused)
		remark("%u further process%s could not use CUDA%s: the report was full",
		       refused, refused == 1 ? "" : "es", sim);
	if (lost)
		remark(
			"%u further process%s used CUDA%s: it is not known whether %s launches were confined",
			lost, lost == 1 ? "" : "es", sim, lost == 1 ? "its" : "their");
}
