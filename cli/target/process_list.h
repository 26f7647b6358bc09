/* SPDX-License-Identifier: MIT */
/* Lists all processes, jobs, grants and tenants. Opens the topologies of their GPUs. */
#ifndef GPUPART_CLI_TARGET_PROCESS_LIST_H
#define GPUPART_CLI_TARGET_PROCESS_LIST_H

#include <stddef.h>
#include <gpupart_manage.h>

/*
 * Each function makes a list: processes, jobs, grants, tenants, or processes of tenants. A function
 * returns the number of entries. After an error, it returns -errno, and @gp has the error message.
 * The caller frees *list.
 */
int shown_processes(struct gpupart *gp, struct gpupart_process **list);
int shown_jobs(struct gpupart *gp, struct gpupart_job **list);
int shown_grants(struct gpupart *gp, struct gpupart_grant **list);
int shown_tenants(struct gpupart *gp, struct gpupart_tenant **list);
int shown_tenant_processes(struct gpupart *gp, struct gpupart_tenant_process **list);

/* Makes a row for each GPU of each process. Returns the number of rows. The caller frees *rows. */
int shown_rows(struct gpupart *gp, const struct gpupart_process *list, int nr,
	       struct gpupart_process **rows);

/*
 * Returns true if job @id and job @around are the same, or if job @id was started inside @around.
 */
bool shown_is_inside(const struct gpupart_job *jobs, int nr, const char *id, const char *around);

/* Returns whether process @p, or a job that contains @p, has the name @name. */
bool shown_is_named(const struct gpupart_job *jobs, int nr, const struct gpupart_process *p,
		    const char *name);

/*
 * Finds the job whose limit applies to job @id on the GPU at @pci. This can be job @id. Otherwise
 * it is the innermost outer job on this GPU. If there is no such job, returns NULL. A run on
 * several GPUs has a job for each GPU. Each of these jobs is inside the job of the previous GPU.
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
 * Opens the topology of @gpu. Another user may have named a capture. If this capture is a sample,
 * this process opens the sample. If it is not a sample and @ask is true, a child process with that
 * user's rights opens the capture. The child may be slow, and *topo then has a different source
 * name. Returns 0, or returns -errno and writes a reason to @why.
 */
int shown_topology(const struct shown_gpu *gpu, bool ask, struct gpupart_topology **topo,
		   char *why, size_t len);

/* A result of a function that shown_as() calls. This struct is the first member of the result. */
struct shown_result {
	int err;		/* 0 or -errno */
	char why[512];		/* reason of the failure */
};

/*
 * Calls @fn in a child process with the rights of user @uid and the group of process @pid. If the
 * process is not known, @pid is 0. Root needs the child, because root must not trust another user's
 * files. The function @fn fills in the @len bytes of @result.
 */
void shown_as(unsigned int uid, int pid,
	      void (*fn)(const void *arg, void *result), const void *arg,
	      struct shown_result *result, size_t len);

#endif
