/* SPDX-License-Identifier: MIT */
/* Lists all processes, jobs, grants and tenants, and opens the topologies of their GPUs. */
#ifndef GPUPART_CLI_TARGET_PROCESS_LIST_H
#define GPUPART_CLI_TARGET_PROCESS_LIST_H

#include <stddef.h>
#include <gpupart_manage.h>

/*
 * List all processes, jobs, grants, tenants or processes of tenants. Return the number of entries,
 * or -errno with the error message in @gp. The caller frees *list.
 */
int shown_processes(struct gpupart *gp, struct gpupart_process **list);
int shown_jobs(struct gpupart *gp, struct gpupart_job **list);
int shown_grants(struct gpupart *gp, struct gpupart_grant **list);
int shown_tenants(struct gpupart *gp, struct gpupart_tenant **list);
int shown_tenant_processes(struct gpupart *gp, struct gpupart_tenant_process **list);

/* Makes a row for each GPU of each process. Returns the number of rows. The caller frees *rows. */
int shown_rows(struct gpupart *gp, const struct gpupart_process *list, int nr,
	       struct gpupart_process **rows);

/* Returns whether job @id is the job @around or was started inside it. */
bool shown_is_inside(const struct gpupart_job *jobs, int nr, const char *id, const char *around);

/* Returns whether the process @p or a job that contains @p has the name @name. */
bool shown_is_named(const struct gpupart_job *jobs, int nr, const struct gpupart_process *p,
		    const char *name);

/*
 * Returns the job on the GPU at @pci whose limit applies to job @id. This is job @id or the
 * innermost job around it on this GPU. Returns NULL if there is no such job. A run on several GPUs
 * is one job for each GPU. Each of these jobs is inside the job of the previous GPU.
 */
const struct gpupart_job *shown_job_on(const struct gpupart_job *jobs, int nr, const char *id,
				       const char *pci);

/* The GPU of a process or job. */
struct shown_gpu {
	const char *source, *pci;
	bool simulated;
	unsigned int uid;	/* the user who wrote these values */
	int pid;		/* a process of that user, or 0 */
};

/*
 * Opens the topology of @gpu. If another user named a capture, this process opens the capture only
 * if it is a sample. If @ask is true, a child process with that user's rights opens any other
 * capture. This may take a while, and *topo then has another source name. Returns 0, or -errno with
 * a reason in @why.
 */
int shown_topology(const struct shown_gpu *gpu, bool ask, struct gpupart_topology **topo,
		   char *why, size_t len);

/* The first member of a result that a function called by shown_as() fills in. */
struct shown_result {
	int err;		/* 0 or -errno */
	char why[512];		/* reason of the failure */
};

/*
 * Calls @fn in a child that has the rights of user @uid and the group of process @pid (0: not
 * known). A child is needed because root must not trust another user's files. @fn fills in the @len
 * bytes of @result.
 */
void shown_as(unsigned int uid, int pid,
	      void (*fn)(const void *arg, void *result), const void *arg,
	      struct shown_result *result, size_t len);

#endif
