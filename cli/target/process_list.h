/* SPDX-License-Identifier: MIT */
/* Lists all processes, jobs, grants and tenants, and opens the topologies of their GPUs. */
#ifndef GPUPART_CLI_TARGET_SHOWN_H
#define GPUPART_CLI_TARGET_SHOWN_H

#include <stddef.h>
#include <gpupart_manage.h>

/*
 * Lists all processes, jobs, grants, tenants or processes of tenants. Returns their number, or
 * -errno with the error message in @gp. The caller frees *list.
 */
int shown_processes(struct gpupart *gp, struct gpupart_process **list);
int shown_jobs(struct gpupart *gp, struct gpupart_job **list);
int shown_grants(struct gpupart *gp, struct gpupart_grant **list);
int shown_tenants(struct gpupart *gp, struct gpupart_tenant **list);
int shown_tenant_processes(struct gpupart *gp, struct gpupart_tenant_process **list);

/* Makes a row for each GPU of each process in @list. Returns their number; frees: the caller. */
int shown_rows(struct gpupart *gp, const struct gpupart_process *list, int nr,
	       struct gpupart_process **rows);

/* Whether job @id is @around or was started inside it. */
bool shown_is_inside(const struct gpupart_job *jobs, int nr, const char *id, const char *around);

/* Whether the name of @p, or of a job that contains it, is @name. */
bool shown_is_named(const struct gpupart_job *jobs, int nr, const struct gpupart_process *p,
		    const char *name);

/*
 * Returns the job on the GPU at @pci whose limit applies to job @id: that job or the innermost one
 * around it; NULL if there is none. A run on several GPUs is one job for each GPU, each inside the
 * previous one.
 */
const struct gpupart_job *shown_job_on(const struct gpupart_job *jobs, int nr, const char *id,
				       const char *pci);

/* The GPU of a process or job. */
struct shown_gpu {
	const char *source, *pci;
	bool simulated;
	unsigned int uid;	/* the user who wrote this */
	int pid;		/* a process of that user, or 0 */
};

/*
 * Opens the topology. A capture that another user names is opened only if it is a sample; with @ask
 * also by a child that becomes that user, which may take a while and changes the source's name in
 * *topo. Returns 0, or -errno with a reason in @why.
 */
int shown_topology(const struct shown_gpu *gpu, bool ask, struct gpupart_topology **topo,
		   char *why, size_t len);

/* First member of the result of a function called by shown_as(). */
struct shown_result {
	int err;		/* 0 or -errno */
	char why[512];		/* reason of a failure */
};

/*
 * Calls @fn in a child with the rights of user @uid and the group of process @pid (0: not known),
 * because root must not trust another user's files. @fn fills the @len bytes of @result.
 */
void shown_as(unsigned int uid, int pid,
	      void (*fn)(const void *arg, void *result), const void *arg,
	      struct shown_result *result, size_t len);

#endif
