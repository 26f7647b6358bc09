/* SPDX-License-Identifier: MIT */
/*
 * Running programs as tenants. Measures how much work each program did since the last
 * measurement, and sets its TPCs. Call all functions from one thread.
 */
#ifndef GPUPART_CLI_QOS_LIVE_H
#define GPUPART_CLI_QOS_LIVE_H

#include <sys/types.h>
#include "cli/qos/kernels.h"
#include "cli/qos/pace.h"
#include "cli/qos/qos.h"
#include "cli/start/lend.h"
#include "cli/util/process.h"
#include "lib/private.h"

#define LIVE_MAX_MEMBERS 64	/* maximum number of processes that are measured for a tenant */

/* The kinds of reports: units of work, and answered requests. */
enum live_kind { LIVE_UNITS, LIVE_ANSWERS, LIVE_NR_KINDS };

/* The sum of the lines that arrived on the socket since the last live_take(). */
struct live_lines {
	uint64_t milli, reports, reported_ns;
};

/* A process of a tenant. */
struct live_member {
	int pid;
	struct gpupart_remote *remote;
	struct gpupart_progress last;	/* counters at the last read */
	struct gpupart_records_reader *records;	/* NULL: no completion records */
	struct kernels_look looks[2];	/* completion records at the last live_take(), and now */
	bool drained;	/* all launches from before the last change of its set have ended */
	uint64_t ended;			/* number of ended launches at the last read */
	struct pace paces[LIVE_NR_KINDS];
	struct gpupart_tpcset given;	/* the set that the process had at first, or got later;
					 * or empty */
	bool seen;			/* found in the current list of processes */
	char report[64];		/* its GPUPART_REPORT, or "" */
};

struct live_tenant {
	const char *name;
	pid_t child;		/* the running child that this command started; 0: none */
	pid_t group;	/* process group of that child, even after its end; 0: none */
	int status;			/* exit status of the child after its end */
	bool adopted;			/* the program runs, but this command did not start it */
	bool gone;
	int pid;			/* pid of an adopted process without a job */
	char job[GPUPART_JOB_STRLEN];	/* "": not known yet */
	bool several;			/* other jobs have the same name, also on other GPUs */
	char within[GPUPART_JOB_STRLEN];	/* if the program was adopted: its job, or the job
						 * of its pid */
	struct live_member *members;
	unsigned int nr_members;
	char note[GPUPART_TPCSET_STRLEN];	/* the set that this command gave to its job, or
						 * "" */
	/*
	 * For lending, if this command started the program. If @report is NULL, the program does
	 * not lend or borrow.
	 */
	struct gpupart_report *report;
	const char *report_id;
	struct lend_wishes lend;	/* of a borrower */
	pid_t watcher;			/* the process that watches its lender; 0: none */
	uint64_t borrowed;		/* number of launches on lent TPCs before the last
					 * lend_take() */
	bool lent; /* at the last lend_take(), programs could borrow its TPCs */
	bool keeps;	/* its set is empty, so its programs still use their old TPCs */
	bool changed;			/* another program changed its set to @found */
	struct gpupart_tpcset found;
	uint64_t said_ns;		/* time of the last warning about a changed set */
	bool many;	/* a warning about more than LIVE_MAX_MEMBERS processes was printed */
	bool by_records;		/* progress comes from completed launches, not from
					 * reports */
	struct gpupart_records *alone;	/* solo times of kernels; NULL: not used */
	unsigned int to_learn;	/* number of further live_take() calls while the program runs
				 * alone to learn times */
	/* Sums since the last live_take(). */
	uint64_t reported_milli, reports, launches, ended;
	/* histogram of the times between reports of a program that reports no requests */
	uint64_t pauses[GPUPART_NR_LATENCIES];
	uint64_t rest[LIVE_NR_KINDS];	/* work of ended processes, in thousandths of a unit */
	uint64_t latencies[GPUPART_NR_LATENCIES];
	uint64_t goal_ns;		/* its latency goal; 0: none */
	/* Requests since the last live_take(); requests within the goal. */
	uint64_t answered, in_goal;
	bool ever_told;			/* it has reported at least once */
	bool ever_units;	/* it has reported units of work, so its requests do not count */
	struct live_lines lines[LIVE_NR_KINDS];
	struct pace paces[LIVE_NR_KINDS];	/* the pace of reports on the socket */
	uint64_t since_change;	/* number of reports or completed launches since its set changed
				 * */
	uint64_t changed_ns;		/* time of the last change of its set */
	/*
	 * Time of the live_read() that found its last progress, of the line that reported it, or of
	 * a later change of its set.
	 */
	uint64_t moved_ns;
};

/* Returns what 'gpupart set' needs to change only the job of this tenant: its name or its id. */
static inline const char *live_job_name(const struct live_tenant *t)
{
	return t->several ? t->job : t->name;
}

struct live {
	char pci[20];
	struct live_tenant tenants[QOS_MAX_TENANTS];
	unsigned int nr;
	bool look;			/* something changed, so live_find() must search now */
	uint64_t found_ns;		/* time of the last live_find() */
	uint64_t read_ns;		/* time of the last live_read() */
	int socket;	/* receives reports of programs that do not use the library; -1: none */
	char socket_path[108];
	bool passed_over;		/* a warning about an ignored line was printed */
	/* The members below are about programs that are not tenants. */
	const struct args *args;
	struct gpupart_topology *topo;
	bool has_around, reported_everywhere, reported_unlisted;
	struct gpupart_tpcset around;	/* the set in which this command itself runs */
	/* all such programs; programs that are known only from their environment */
	struct qos_others others, to_be;
	bool others_changed;	/* true if @others changed since live_print_new_others() */
	uint64_t next_environments_ns;
};

/*
 * Finds the processes of each tenant, and programs that are not tenants. If @now is false and
 * nothing has changed, searches at most once a second.
 */
void live_find(struct live *live, bool now);

/*
 * Finds the programs that have TPCs but are not tenants, and stores them in live->others. The
 * caller provides lists of all processes and jobs. Some calls read the environments of all
 * processes, too. Such a call takes a long time.
 */
void live_find_others(struct live *live, const struct gpupart_process *processes,
		      int nr_processes, const struct gpupart_job *jobs, int nr_jobs);
/*
 * If these programs or their TPCs changed since the last call, prints @what, then the programs and
 * their TPCs, and returns true.
 */
bool live_print_new_others(struct live *live, const char *what);

/*
 * Returns the TPCs that tenant @i may have. These are the TPCs of the job around the tenant,
 * without the TPCs of programs that are not tenants.
 */
struct gpupart_tpcset live_available(const struct live *live, unsigned int i);

/* Reads the lines that arrived on the socket. */
void live_listen(struct live *live);

/* Calls live_listen(). Adds the work of each program since the last read. Sets live->read_ns. */
void live_read(struct live *live);

/*
 * Fills *measured with the work of tenant @i since the last live_take(), which was @ns ago.
 * Resets the sums.
 */
void live_take(struct live *live, unsigned int i, const struct qos_tenant *tenant,
	       const struct qos_spec *spec, uint64_t ns, struct qos_measured *measured);

/*
 * Returns a percentile of the histogram @latencies, which counts @nr requests. If @thousandths is
 * 990, the percentile is the 99th. Assumes that the requests of a bin are spread evenly over the
 * bin.
 */
uint64_t live_percentile(const uint64_t latencies[GPUPART_NR_LATENCIES], uint64_t nr,
			 unsigned int thousandths);

/* Discards all measurements since the last live_take(), except for the numbers of requests. */
void live_restart(struct live *live);

/*
 * Returns whether the reports of tenant @i are about its new set. This is true if the tenant has
 * reported often enough since the change of its set, or if @drain_ns have passed.
 */
bool live_settled(const struct live *live, unsigned int i, uint64_t drain_ns);

/*
 * Tenant @i made launches before its set changed. Returns whether all these launches have ended.
 * Uses completion records. After @most_ns, always returns true. Without completion records, returns
 * the result of live_settled(). If live_set() set an empty set, returns false.
 */
bool live_drained(struct live *live, unsigned int i, uint64_t drain_ns, uint64_t most_ns);

/*
 * Returns whether another program changed the set of tenant @i. If so, prints a warning, at most
 * once a minute.
 */
bool live_is_changed(struct live *live, unsigned int i);

/*
 * Sets the TPCs of tenant @i. If @set is empty, its programs keep their old TPCs, so live_drained()
 * returns false until the next call. Returns 0, or -errno with a message in gpupart_error().
 */
int live_set(struct live *live, unsigned int i, const struct gpupart_tpcset *set);

/*
 * Opens the socket for reports. GPUPART_QOS contains its path. If the socket cannot be opened,
 * prints a warning and continues.
 */
void live_open_socket(struct live *live);
void live_close(struct live *live);

#endif
