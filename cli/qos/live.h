/* SPDX-License-Identifier: MIT */
/*
 * Running programs as tenants: measures what each did since the last time, and sets its TPCs.
 * One thread.
 */
#ifndef GPUPART_CLI_QOS_LIVE_H
#define GPUPART_CLI_QOS_LIVE_H

#include <sys/types.h>
#include "cli/qos/kernels.h"
#include "cli/qos/pace.h"
#include "cli/qos/qos.h"
#include "cli/util/process.h"
#include "lib/private.h"

#define LIVE_MAX_MEMBERS 64	/* most processes of a tenant that are measured */

/* What a program reports: units of work, or answered requests. */
enum live_kind { LIVE_UNITS, LIVE_ANSWERS, LIVE_NR_KINDS };

/* What arrived on the socket since the last take. */
struct live_lines {
	uint64_t milli, reports, reported_ns;
};

/* A process of a tenant. */
struct live_member {
	int pid;
	struct gpupart_remote *remote;
	struct gpupart_progress last;	/* counters at the last read */
	struct gpupart_records_reader *records;	/* NULL: no completion records */
	struct kernels_look looks[2];	/* with completion records: at the last take, and now */
	bool drained;	/* launches from before the last change of its set have ended */
	uint64_t ended;			/* launches that ended, at the last read */
	struct pace paces[LIVE_NR_KINDS];
	struct gpupart_tpcset given;	/* its set when it was found or set; or empty */
	bool seen;			/* found in the current list of processes */
};

struct live_tenant {
	const char *name;
	pid_t child;			/* started by this command and still running; 0: none */
	int status;			/* exit status, once it ended */
	bool adopted;			/* runs, but this command did not start it */
	bool gone;
	int pid;			/* of an adopted process without a job */
	char job[GPUPART_JOB_STRLEN];	/* "": not known yet */
	char within[GPUPART_JOB_STRLEN];	/* adopted: its job, or the job of its pid */
	struct live_member *members;
	unsigned int nr_members;
	char note[GPUPART_TPCSET_STRLEN];	/* set of its job when this command set it; or "" */
	bool changed;			/* another program changed its set */
	struct gpupart_tpcset found;	/* .. to this one */
	uint64_t said_ns;		/* time of the last warning about it */
	bool many;	/* it has more than LIVE_MAX_MEMBERS processes, already warned */
	bool by_records;		/* completed launches count, reports do not */
	struct gpupart_records *alone;	/* solo times of kernels; NULL: not used */
	unsigned int to_learn;	/* takes left in which it runs alone, to learn solo times */
	/* Sums since the last take. */
	uint64_t reported_milli, reports, launches, ended;
	uint64_t pauses[GPUPART_NR_LATENCIES];	/* histogram of the times between reports */
	uint64_t rest[LIVE_NR_KINDS];	/* work of processes that ended, thousandths */
	uint64_t latencies[GPUPART_NR_LATENCIES];
	bool ever_told;			/* it has reported at least once */
	bool ever_units;		/* .. units of work; then requests do not count */
	struct live_lines lines[LIVE_NR_KINDS];
	struct pace paces[LIVE_NR_KINDS];	/* of reports on the socket */
	uint64_t since_change;	/* reports, or completed launches, since its set changed */
	uint64_t changed_ns;		/* time of that change */
};

struct live {
	char pci[20];
	struct live_tenant tenants[QOS_MAX_TENANTS];
	unsigned int nr;
	bool look;			/* something changed: live_find() must run now */
	uint64_t found_ns;		/* time of the last live_find() */
	uint64_t read_ns;		/* time of the last live_read() */
	int socket;			/* for programs that do not use the library; -1: none */
	char socket_path[108];
	bool passed_over;		/* a line was ignored, already warned */
	/* For programs that are not tenants: others.c. */
	const struct args *args;
	struct gpupart_topology *topo;
	bool has_around, reported_everywhere, reported_unlisted;
	struct gpupart_tpcset around;	/* the set in which this command itself runs */
	struct qos_others others, to_be;	/* all; those known only from their environment */
	bool others_changed;		/* since the caller last cleared it */
	uint64_t next_environments_ns;
};

/*
 * Finds the processes of each tenant, and programs that are not tenants. Does so once a second,
 * or sooner if @now or if something changed.
 */
void live_find(struct live *live, bool now);

/*
 * Finds programs that have TPCs but are not tenants, in lists that the caller made, and stores
 * them in live->others. From time to time it reads the environments of all processes, which
 * takes long.
 */
void live_find_others(struct live *live, const struct gpupart_process *processes,
		      int nr_processes, const struct gpupart_job *jobs, int nr_jobs);
/* Prints @what, and which programs have which TPCs. */
void live_print_others(const struct live *live, const char *what);

/*
 * The TPCs that tenant @i may have: those of the job around it, without those of programs that
 * are not tenants.
 */
struct gpupart_tpcset live_available(const struct live *live, unsigned int i);

/* Reads the lines that arrived on the socket. */
void live_listen(struct live *live);

/* Adds what each program did since the last read. Sets live->read_ns. */
void live_read(struct live *live);

/*
 * Fills *measured with what tenant @i did since the last take, over @ns, and resets the sums.
 */
void live_take(struct live *live, unsigned int i, const struct qos_tenant *tenant,
	       const struct qos_spec *spec, uint64_t ns, struct qos_measured *measured);

/*
 * The percentile, in thousandths, of @nr requests counted in the histogram @latencies. Requests
 * of one bin count as evenly spread over it.
 */
uint64_t live_percentile(const uint64_t latencies[GPUPART_NR_LATENCIES], uint64_t nr,
			 unsigned int thousandths);

/* Discards what was measured so far. */
void live_restart(struct live *live);

/*
 * Whether reports of tenant @i are about its new set: it has reported often enough since the
 * change, or @drain_ns have passed.
 */
bool live_settled(const struct live *live, unsigned int i, uint64_t drain_ns);

/*
 * Whether the launches of tenant @i from before its set changed have ended. Uses completion
 * records, for @most_ns at most. Without records the same as live_settled().
 */
bool live_drained(struct live *live, unsigned int i, uint64_t drain_ns, uint64_t most_ns);

/*
 * Whether another program changed the set of tenant @i. Prints a warning, at most once a
 * minute.
 */
bool live_is_changed(struct live *live, unsigned int i);

/* Sets the TPCs of tenant @i. Returns 0, or -errno with a message in gpupart_error(). */
int live_set(struct live *live, unsigned int i, const struct gpupart_tpcset *set);

/* Opens the socket that GPUPART_QOS names to programs. A failure is only a warning. */
void live_open_socket(struct live *live);
void live_close(struct live *live);

#endif
