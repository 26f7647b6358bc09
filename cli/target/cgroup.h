/* SPDX-License-Identifier: MIT */
/* Finds the pod, container and Slurm job of a process from the path of its cgroup. */
#ifndef GPUPART_CLI_TARGET_CGROUP_H
#define GPUPART_CLI_TARGET_CGROUP_H

struct cgroup_ids {
	char pod[37];		/* the UID of a Kubernetes pod, with hyphens; or "" */
	char container[65];	/* 64 hexadecimal digits, or "" */
	char slurm[16];		/* job id in decimal, or "" */
};

/* Parses the content of /proc/PID/cgroup, for both versions of cgroups. */
void cgroup_parse(const char *text, struct cgroup_ids *ids);

/* Reads the ids of process @pid. All ids are "" if this fails. */
void cgroup_read(int pid, struct cgroup_ids *ids);

#endif
