/* SPDX-License-Identifier: MIT */
/*
 * Finds the pod, the container and the Slurm job of a process. Uses the cgroup path of the process.
 */
#ifndef GPUPART_CLI_TARGET_CGROUP_H
#define GPUPART_CLI_TARGET_CGROUP_H

struct cgroup_ids {
	char pod[37];		/* the UID of a Kubernetes pod, with hyphens; or "" */
	char container[65];	/* 64 hexadecimal digits, or "" */
	char slurm[16];		/* job id in decimal, or "" */
};

/* Parses the content of /proc/PID/cgroup, for both versions of cgroups. */
void cgroup_parse(const char *text, struct cgroup_ids *ids);

/* Reads the ids of process @pid. If this fails, sets all ids to "". */
void cgroup_read(int pid, struct cgroup_ids *ids);

#endif
