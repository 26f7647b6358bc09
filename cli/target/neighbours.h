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

/* A search: the GPU, the lists to search, and the function to call for each program found. */
struct neighbours {
	const struct args *args;
	const struct gpupart_topology *topo;
	const char *pci;
	const struct gpupart_process *processes;
	const struct gpupart_job *jobs;
	int nr_processes, nr_jobs;	/* below 0 if they could not be listed */
	void (*found)(void *user, const struct neighbour *found);
	void *user;
	bool (*is_left_out)(int pid);	/* a process that does not count; NULL: all do */
};

/* Finds programs in the lists, that is, by their state pages. */
void neighbours_shown(const struct neighbours *neighbours);

/*
 * Finds programs that have not yet used the @nr GPUs of @list, by reading the environments of all
 * processes, which takes a while. Uses the process list of the first entry of @list. Returns the
 * number of environments that were not read because they are too long.
 */
unsigned int neighbours_to_be(const struct neighbours *list, unsigned int nr);

/* Whether @pci and @source are the GPU of the search; a simulated one has the same capture. */
bool neighbours_is_here(const struct neighbours *neighbours, const char *pci, const char *source,
			bool simulated);

/*
 * Returns the TPCs in the limits of all other visible programs on the GPU at @pci, except the
 * programs that @args ignores. @within is the limit of the outer run, or NULL. A program with
 * exactly that limit belongs to the outer run and is ignored. On a simulated GPU only programs with
 * the same captures count.
 */
struct gpupart_tpcset neighbours_tpcs(const struct args *args, const struct gpupart_topology *topo,
				      const char *pci, const struct gpupart_tpcset *within);

/*
 * The same for the @nr GPUs of @list, with args, topo and pci set, in one search. Adds the TPCs of
 * GPU i to tpcs[i].
 */
void neighbours_add(struct neighbours *list, unsigned int nr, struct gpupart_tpcset *tpcs);

/* Prints which running program has TPCs of @set, which the user gave explicitly. */
void neighbours_note(const struct args *args, const struct gpupart_topology *topo, const char *pci,
		     const struct gpupart_tpcset *within, const struct gpupart_tpcset *set);

/*
 * Takes a lock so that only one process of a user at a time chooses a set that avoids other
 * programs. The lock is released when this process ends, or when the program starts: other
 * processes can see the program from then on. If locking is impossible, prints a remark and
 * returns 0. Returns an error if another process has held the lock for a minute.
 */
int neighbours_lock(void);

#endif
