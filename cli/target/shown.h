/* SPDX-License-Identifier: MIT */
/* What runs confined, all of it, and whose GPU it is on. */
#ifndef GPUPART_CLI_TARGET_SHOWN_H
#define GPUPART_CLI_TARGET_SHOWN_H

#include <stddef.h>
#include <gpupart_manage.h>

/*
 * All processes, jobs, grants, tenants or their processes that the library shows, however many:
 * how many, or a negative errno with a sentence in @gp. The caller frees *list.
 */
int shown_processes(struct gpupart *gp, struct gpupart_process **list);
int shown_jobs(struct gpupart *gp, struct gpupart_job **list);
int shown_grants(struct gpupart *gp, struct gpupart_grant **list);
int shown_tenants(struct gpupart *gp, struct gpupart_tenant **list);
int shown_tenant_processes(struct gpupart *gp, struct gpupart_tenant_process **list);

/* A row for each GPU of each process of @list: their number; the caller frees *@rows. */
int shown_rows(struct gpupart *gp, const struct gpupart_process *list, int nr,
	       struct gpupart_process **rows);

/* Whether job @id is @around, or was begun in it. */
bool shown_is_inside(const struct gpupart_job *jobs, int nr, const char *id, const char *around);

/* Whether @p is called @name or belongs to a job that is. */
bool shown_is_named(const struct gpupart_job *jobs, int nr, const struct gpupart_process *p,
		    const char *name);

/*
 * The job on the GPU at @pci that holds for job @id: that one, or the first around it; NULL: none.
 * A run on several GPUs is a job a GPU, each inside the one before.
 */
const struct gpupart_job *shown_job_on(const struct gpupart_job *jobs, int nr, const char *id,
				       const char *pci);

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

/* What a struct that a function called by shown_as() fills begins with. */
struct shown_result {
	int err;		/* 0 or -errno */
	char why[512];		/* the sentence where it failed */
};

/*
 * Calls @fn with the rights of user @uid and the group of process @pid (0: none is known), in a
 * child: root trusts nothing that is another user's. @fn fills the @len bytes of @result.
 */
void shown_as(unsigned int uid, int pid,
	      void (*fn)(const void *arg, void *result), const void *arg,
	      struct shown_result *result, size_t len);

#endif
