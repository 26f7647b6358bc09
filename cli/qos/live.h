/* SPDX-License-Identifier: MIT */
/*
 * Programs as tenants: the sensor, what they did since it was asked last, and the actuator, which
 * gives them sets.
 */
#ifndef GPUPART_CLI_QOS_LIVE_H
#define GPUPART_CLI_QOS_LIVE_H

#include <sys/types.h>
#include "cli/qos/kernels.h"
#include "cli/qos/pace.h"
#include "cli/qos/qos.h"
#include "cli/util/process.h"
#include "lib/private.h"

#define LIVE_MAX_MEMBERS 64	/* processes of a tenant that are watched */

/* What is told of: units of work, and requests that were answered. */
enum live_kind { LIVE_UNITS, LIVE_ANSWERS, LIVE_NR_KINDS };

/* What came by the socket since it was looked at last. */
struct live_lines {
	uint64_t milli, reports, told_ns;
};

/* A process of a tenant's. */
struct live_member {
	int pid;
	struct gpupart_remote *remote;
	struct gpupart_progress last;	/* what was taken into account */
	struct gpupart_records_reader *records;	/* NULL: it has none */
	struct kernels_look looks[2];	/* where records count: at the last take, and now */
	bool drained;			/* launches from before its set changed have ended */
	uint64_t ended;			/* launches, as they had it last */
	struct pace paces[LIVE_NR_KINDS];
	struct gpupart_tpcset given;	/* its set, when it was given or seen first; or empty */
	bool seen;			/* it is still listed */
};

struct live_tenant {
	const char *name;
	pid_t child;			/* started by us and not ended; 0 */
	int status;			/* of one that ended */
	bool adopted;			/* it runs, and was not started by us */
	bool gone;
	int pid;			/* adopted alone */
	char job[GPUPART_JOB_STRLEN];	/* "" not known yet */
	char within[GPUPART_JOB_STRLEN];	/* of an adopted one: its job, or that of its pid */
	struct live_member *members;
	unsigned int nr_members;
	char note[GPUPART_TPCSET_STRLEN];	/* its job's set, as it was given; or "" */
	bool changed;			/* somebody else set another one */
	struct gpupart_tpcset found;	/* .. this one */
	uint64_t said_ns;		/* when that was said last */
	bool many;			/* more processes than are watched, which was said */
	bool by_records;		/* launches that ended count, and no report does */
	struct gpupart_records *alone;	/* times of kernels alone; NULL: they do not count */
	unsigned int to_learn;		/* so many more takes are of it alone */
	/* Since the last take. */
	uint64_t told_milli, reports, launches, ended;
	uint64_t pauses[GPUPART_NR_LATENCIES];	/* between reports of units */
	uint64_t rest[LIVE_NR_KINDS];	/* of processes that ended, thousandths */
	uint64_t latencies[GPUPART_NR_LATENCIES];
	bool ever_told;			/* it reported once */
	bool ever_units;		/* .. units: requests are none then */
	struct live_lines lines[LIVE_NR_KINDS];
	struct pace paces[LIVE_NR_KINDS];	/* who sends them, as if it were one */
	uint64_t since_change;		/* reports, or launches that ended, since its set changed */
	uint64_t changed_ns;		/* when that was */
};

struct live {
	char pci[20];
	struct live_tenant tenants[QOS_MAX_TENANTS];
	unsigned int nr;
	bool look;			/* something has changed: live_find() at once */
	uint64_t found_ns;		/* when that was last */
	uint64_t read_ns;		/* when live_read() was */
	int socket;			/* lines of programs that do not use the library; -1 none */
	char socket_path[108];
	bool passed_over;		/* a line on it was, and that was said */
	/* For programs that are no tenants: others.c. */
	const struct args *args;
	struct gpupart_topology *topo;
	bool has_around, told_everywhere, told_unlisted;
	struct gpupart_tpcset around;	/* that this command itself runs in */
	struct qos_others others, to_be;	/* all of them; those known by their environment */
	bool others_changed;		/* since the caller looked at it last */
	uint64_t next_environments_ns;
};

/*
 * Finds the processes of each tenant, and programs that are no tenants: once a second, or where it
 * has to.
 */
void live_find(struct live *live, bool now);

/*
 * Who has TPCs and is no tenant, into live->others: from lists that were made already. Costs
 * little but now and then, when the environments of all processes are read.
 */
void live_find_others(struct live *live, const struct gpupart_process *processes,
		      int nr_processes, const struct gpupart_job *jobs, int nr_jobs);
/* A line: @what, and who has which TPCs. */
void live_tell_others(const struct live *live, const char *what);

/*
 * What tenant @i may have: what the jobs around it leave to it, less what programs have that are
 * no tenants.
 */
struct gpupart_tpcset live_room(const struct live *live, unsigned int i);

/* Takes what came to the socket. */
void live_listen(struct live *live);

/* Adds what each did since it was read last; live->read_ns is when. */
void live_read(struct live *live);

/* What tenant @i did since the last take, over @ns, as the policy wants it; begins anew. */
void live_take(struct live *live, unsigned int i, const struct qos_tenant *tenant,
	       const struct qos_spec *spec, uint64_t ns, struct qos_measured *measured);

/*
 * The percentile, in thousandths, of @nr requests that are counted in @latencies; those in one
 * place of it as if they were spread evenly.
 */
uint64_t live_percentile(const uint64_t latencies[GPUPART_NR_LATENCIES], uint64_t nr,
			 unsigned int thousandths);

/* Begins to measure anew: what came before does not count. */
void live_forget(struct live *live);

/*
 * Whether what tenant @i tells is of its new set: it reported often enough since the change, or
 * @drain_ns have passed.
 */
bool live_settled(const struct live *live, unsigned int i, uint64_t drain_ns);

/*
 * Whether what tenant @i launched before its set changed has ended. By its records, as long as
 * @most_ns have not passed; where they do not tell, as live_settled().
 */
bool live_drained(struct live *live, unsigned int i, uint64_t drain_ns, uint64_t most_ns);

/* Whether somebody else has set another set than tenant @i was given; said, not too often. */
bool live_is_changed(struct live *live, unsigned int i);

/* Gives tenant @i a set: 0, or -errno with a sentence in gpupart_error(). */
int live_set(struct live *live, unsigned int i, const struct gpupart_tpcset *set);

/* The socket that GPUPART_QOS names to programs. Failing is no harm: a line says so. */
void live_open_socket(struct live *live);
void live_close(struct live *live);

#endif
