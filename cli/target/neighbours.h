/* SPDX-License-Identifier: MIT */
/* Which TPCs of a GPU other programs are limited to now. */
#ifndef GPUPART_CLI_TARGET_NEIGHBOURS_H
#define GPUPART_CLI_TARGET_NEIGHBOURS_H

#include <stdbool.h>
#include <gpupart_manage.h>

struct args;

/* One of them: what it is limited to, or will be. */
struct neighbour {
	int pid;
	const char *name, *job;	/* "" for none; GPUPART_NAME and the job's id */
	struct gpupart_tpcset set;
};

/* The GPU and the processes to look at; found() is called for each process with a limit there. */
struct neighbours {
	const struct args *args;
	const struct gpupart_topology *topo;
	const char *pci;
	const struct gpupart_process *processes;
	const struct gpupart_job *jobs;
	int nr_processes, nr_jobs;	/* below 0: they could not be listed */
	void (*found)(void *user, const struct neighbour *found);
	void *user;
	bool (*is_left_out)(int pid);	/* a process that does not count; NULL: all do */
};

/* Those that show themselves: only the lists are looked at. */
void neighbours_shown(const struct neighbours *neighbours);

/*
 * Those that have not used the @nr GPUs of @list yet, by the environments of all processes, which
 * takes a while: how many of them are too long and were not read. What runs is @list's first one's.
 */
unsigned int neighbours_to_be(const struct neighbours *list, unsigned int nr);

/* Whether they mean the GPU that is asked for: on a simulated one, of the same capture. */
bool neighbours_is_here(const struct neighbours *neighbours, const char *pci, const char *source,
			bool simulated);

/*
 * The limits on the GPU at @pci of all other programs that can be seen, but for those
 * that @args ignores. @within is the
 * limit of the run around this one (NULL none): who has just that one is our kin. On a
 * simulated GPU those count that simulate the same captures.
 */
struct gpupart_tpcset neighbours_tpcs(const struct args *args, const struct gpupart_topology *topo,
				      const char *pci, const struct gpupart_tpcset *within);

/*
 * The same of the @nr GPUs of @list, of which args, topo and pci are given, by one look: added to
 * the set of each in @tpcs.
 */
void neighbours_add(struct neighbours *list, unsigned int nr, struct gpupart_tpcset *tpcs);

/* Notes which program that uses the GPU now has TPCs of @set, which the user wrote out. */
void neighbours_note(const struct args *args, const struct gpupart_topology *topo, const char *pci,
		     const struct gpupart_tpcset *within, const struct gpupart_tpcset *set);

/*
 * Lets one process of a user's at a time work out a set that is clear of the others, until it is
 * started or ends: by then others see it. 0, also where there can be no lock, which is noted; or
 * an error: one process has held it for a minute.
 */
int neighbours_lock(void);

#endif
