// SPDX-License-Identifier: MIT
/*
 * Creates the report of a run, and reads the entries of the run's processes. Programs of the user
 * write these entries, so they may contain wrong sizes or control characters. This code limits
 * the sizes and removes the characters.
 */
#include <errno.h>
#include "lib/confine/report.h"

/* Converts the public type of @report to struct memfd. */
static struct report_memory *memory_of(const struct gpupart_report *report)
{
	return (struct report_memory *)((const struct memfd *)report)->head;
}

int gpupart_report_open(struct gpupart *gp, struct gpupart_report **report, const char **id)
{
	return memfd_open(gp, REPORT_NAME, REPORT_MAGIC, sizeof(struct report_memory),
			  (struct memfd **)report, id);
}

int gpupart_report_get(const struct gpupart_report *report, unsigned int n,
		       struct gpupart_report_process *process)
{
	if (n >= atomic_load(&memory_of(report)->nr) || n >= REPORT_MAX_PROCESSES)
		return -ENOENT;
	*process = memory_of(report)->processes[n];
	memfd_clean(process->name, sizeof(process->name));
	memfd_clean(process->pci, sizeof(process->pci));
	memfd_clean(process->source, sizeof(process->source));
	memfd_clean(process->why, sizeof(process->why));
	for (unsigned int i = 0; i < GPUPART_REPORT_NR_KERNELS; i++)
		memfd_clean(process->kernels[i].name, sizeof(process->kernels[i].name));
	return 0;
}

unsigned int gpupart_report_lost(const struct gpupart_report *report, unsigned int *nr_refused)
{
	unsigned int nr = atomic_load(&memory_of(report)->nr);
	unsigned int nr_lost = nr > REPORT_MAX_PROCESSES ? nr - REPORT_MAX_PROCESSES : 0;

	*nr_refused = atomic_load(&memory_of(report)->nr_refused);
	if (*nr_refused > nr_lost)
		*nr_refused = nr_lost;
	return nr_lost;
}
