// SPDX-License-Identifier: MIT
/*
 * Creates the report of a run and reads what its processes left. These are words that the user's
 * programs wrote: bounded, and cleaned of control characters.
 */
#include <errno.h>
#include <stdlib.h>
#include "lib/confine/report_block.h"

struct gpupart_report {
	struct report_block *block;
	int fd;
	char id[MEMFD_ID_LEN];
};

int gpupart_report_open(struct gpupart *gp, struct gpupart_report **out, const char **id)
{
	struct gpupart_report *report = calloc(1, sizeof(*report));
	struct memfd_head *head;
	int err;

	if (!report)
		return ctx_fail(gp, -ENOMEM, "no memory");
	err = memfd_make(gp, REPORT_NAME, REPORT_MAGIC, sizeof(*report->block), &head,
			 &report->fd, report->id);
	if (err) {
		free(report);
		return err;
	}
	report->block = (struct report_block *)head;
	*out = report;
	*id = report->id;
	return 0;
}

int gpupart_report_get(const struct gpupart_report *report, unsigned int n,
		       struct gpupart_report_process *process)
{
	if (n >= atomic_load(&report->block->nr) || n >= REPORT_MAX_PROCESSES)
		return -ENOENT;
	*process = report->block->processes[n];
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
	unsigned int nr = atomic_load(&report->block->nr);
	unsigned int nr_lost = nr > REPORT_MAX_PROCESSES ? nr - REPORT_MAX_PROCESSES : 0;

	*nr_refused = atomic_load(&report->block->nr_refused);
	if (*nr_refused > nr_lost)
		*nr_refused = nr_lost;
	return nr_lost;
}
