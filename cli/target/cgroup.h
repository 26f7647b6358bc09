/* SPDX-License-Identifier: MIT */
/* Which pod, container and Slurm job a process belongs to, as the path of its cgroup names them. */
#ifndef GPUPART_CLI_TARGET_CGROUP_H
#define GPUPART_CLI_TARGET_CGROUP_H

struct cgroup_ids {
	char pod[37];		/* the UID of a Kubernetes pod, with hyphens; or "" */
	char container[65];	/* 64 hexadecimal digits, or "" */
	char slurm[16];		/* job id in decimal, or "" */
};

/* From the content of /proc/PID/cgroup, of either version of cgroups. */
void cgroup_parse(const char *text, struct cgroup_ids *ids);

/* Of process @pid; all "" where it cannot be read. */
void cgroup_read(int pid, struct cgroup_ids *ids);

#endif
