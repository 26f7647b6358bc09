/* SPDX-License-Identifier: MIT */
/* Finds the TPCs of a GPU that are in the limits of other programs. One thread. */
#ifndef GPUPART_CLI_TARGET_NEIGHBOURS_H
#define GPUPART_CLI_TARGET_NEIGHBOURS_H

#include <stdbool.h>
#include <gpupart_manage.h>

struct args;

/* A program and its current or future limit. */
struct neighbour {
	int pid;
	const char *name, *job;	/* GPUPART_NAME and the job's id, or "" */
	struct gpupart_tpcset set;
};

/*
 * A search. The struct has the GPU, the lists to search, and the function to call for each
 * program that is found.
 */
struct neighbours {
	const struct args *args;
	const struct gpupart_topology *topo;
	const char *pci;
	const struct gpupart_process *processes;
	const struct gpupart_job *jobs;
	int nr_processes, nr_jobs;	/* below 0 if they could not be listed */
	void (*found)(void *user, const struct neighbour *found);
	void *user;
	bool (*is_left_out)(int pid);	/* returns true if a process must be ignored; NULL: ignore
					 * no process */
};

/* Finds programs in the lists by their state pages. */
void neighbours_shown(const struct neighbours *neighbours);

/*
 * Finds programs that have not yet used the @nr GPUs of @list. Reads the environments of all
 * processes, which takes a while. Uses the process list of the first entry of @list. Returns the
 * number of environments that were not read because they are too long.
 */
unsigned int neighbours_to_be(const struct neighbours *list, unsigned int nr);

/*
 * Returns whether @pci and @source are those of the GPU of the search. If the GPU is simulated,
 * the captures must also be the same.
 */
bool neighbours_is_here(const struct neighbours *neighbours, const char *pci, const char *source,
			bool simulated);

/*
 * Returns the TPCs in the limits of all other visible programs on the GPU at @pci, except the
 * programs that @args ignores. @within is the limit of the outer run, or NULL. If a program has
 * exactly the limit @within, it belongs to the outer run and is ignored. On a simulated GPU,
 * ignores programs with other captures.
 */
struct gpupart_tpcset neighbours_tpcs(const struct args *args, const struct gpupart_topology *topo,
				      const char *pci, const struct gpupart_tpcset *within);

/*
 * Does the same as neighbours_tpcs() for the @nr GPUs of @list, in one search. The caller sets
 * args, topo and pci in each entry. Adds the TPCs of GPU i to tpcs[i].
 */
void neighbours_add(struct neighbours *list, unsigned int nr, struct gpupart_tpcset *tpcs);

/* The user gave @set explicitly. Prints which running program has TPCs of @set. */
void neighbours_note(const struct args *args, const struct gpupart_topology *topo, const char *pci,
		     const struct gpupart_tpcset *within, const struct gpupart_tpcset *set);

/*
 * Takes a lock. Only one process of a user can have this lock and choose a set that avoids other
 * programs. The lock is released when this process ends or when the program starts. From then
 * on, other processes can see the program. If locking is impossible, prints a remark and returns
 * 0. If other processes hold the lock for a minute, returns an error.
 */
int neighbours_lock(void);

#endif
