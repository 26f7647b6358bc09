/* SPDX-License-Identifier: MIT */
/* What runs confined, all of it, and whose GPU it is on. Knows no command. */
#ifndef GPUPART_CLI_TARGET_SHOWN_H
#define GPUPART_CLI_TARGET_SHOWN_H

#include <stddef.h>
#include <gpupart_manage.h>

/*
 * All processes, or jobs, that the library shows, however many: how many, or a negative
 * errno with a sentence in @gp. The caller frees *list.
 */
int shown_processes(struct gpupart *gp, struct gpupart_process **list);
int shown_jobs(struct gpupart *gp, struct gpupart_job **list);

/* Whose topology is meant. */
struct shown_gpu {
	const char *source, *pci;
	bool simulated;
	unsigned int uid;	/* the user who says so */
	int pid;		/* a process of that user's, or 0 */
};

/*
 * Opens it. A capture that another user names is opened only where it is a sample that
 * ships; with @ask also by a process that becomes that user, which may take a while, and
 * then *topo has another source's name. 0, or -errno with a sentence in @why.
 */
int shown_topology(const struct shown_gpu *gpu, bool ask, struct gpupart_topology **topo,
		   char *why, size_t len);

/* The calling process, root's, is from now on user @uid's, of process @pid: 0 or -errno. */
int shown_become(unsigned int uid, int pid);

#endif
