/* SPDX-License-Identifier: MIT */
/* Finds TPCs that are in the limits of other programs. Call these functions from one thread. */
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
 * A search. This struct has the GPU and the lists to search. The search calls a function of this
 * struct for each program that it finds.
 */
struct neighbours {
	const struct args *args;
	const struct gpupart_topology *topo;
	const char *pci;
	const struct gpupart_process *processes;
	const struct gpupart_job *jobs;
	int nr_processes, nr_jobs;	/* below 0 if the listing failed */
	void (*found)(void *user, const struct neighbour *found);
	void *user;
	bool (*is_left_out)(int pid);	/* returns whether to ignore a process; NULL: ignore none */
};

/* Searches the lists for programs. Uses the state pages of the programs. */
void neighbours_shown(const struct neighbours *neighbours);

/*
 * Finds programs that have not yet used the @nr GPUs of @list. Reads the environments of all
 * processes, so the function is slow. Uses the process list of the first entry in @list. If an
 * environment is too long, does not read it. Returns the number of such environments.
 */
unsigned int neighbours_to_be(const struct neighbours *list, unsigned int nr);

/*
 * Returns whether @pci is the address of the search's GPU. If this GPU is simulated, @source must
 * also be the capture of this GPU.
 */
bool neighbours_is_here(const struct neighbours *neighbours, const char *pci, const char *source,
			bool simulated);

/*
 * Returns the TPCs in the limits of all other visible programs on the GPU at @pci. The limit of the
 * outer run is @within, or NULL. Programs with exactly the limit @within belong to the outer run,
 * so ignores these programs. Also ignores the programs that @args excludes. On a simulated GPU,
 * also ignores programs with other captures.
 */
struct gpupart_tpcset neighbours_tpcs(const struct args *args, const struct gpupart_topology *topo,
				      const char *pci, const struct gpupart_tpcset *within);

/*
 * Does the same as neighbours_tpcs(), but for the @nr GPUs of @list, in one search. In each entry
 * of @list, the caller sets args, topo and pci. Adds the TPCs of GPU i to tpcs[i].
 */
void neighbours_add(struct neighbours *list, unsigned int nr, struct gpupart_tpcset *tpcs);

/*
 * Call this function if the user gave @set explicitly. Prints which running program has TPCs of
 * @set.
 */
void neighbours_note(const struct args *args, const struct gpupart_topology *topo, const char *pci,
		     const struct gpupart_tpcset *within, const struct gpupart_tpcset *set);

/*
 * Acquires a lock. A process needs this lock to choose a set that avoids other programs. Each user
 * has one lock. The start of the program or the exit of this process releases the lock. After the
 * start, other processes can see the program. If locking is impossible, prints a remark and returns
 * 0. If other processes hold the lock for a minute, returns an error.
 */
int neighbours_lock(void);

#endif
