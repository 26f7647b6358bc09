/* SPDX-License-Identifier: MIT */
/*
 * The QoS policy: which TPCs each tenant of a GPU has in the next epoch, from how far it
 * came in the last one. Knows no clock, no process and no file: who holds it measures and
 * carries out. Not a part of libgpupart: linked into what uses it (cli/qos/policy).
 *
 * Whole numbers throughout: speeds in thousandths of a unit a second, scores and shares in
 * thousandths. The same calls give the same decisions, on every machine, whatever the order
 * of the tenants.
 */
#ifndef GPUPART_CLI_QOS_POLICY_GPUPART_QOS_H
#define GPUPART_CLI_QOS_POLICY_GPUPART_QOS_H

#include <gpupart_manage.h>

#define QOS_MAX_TENANTS	64
#define QOS_WHY		192	/* a sentence about a tenant */
#define QOS_WORDS	1024	/* one about all of them */
#define QOS_NOWHERE	255	/* a GPC or uGPU that is not told */

/* Where each TPC is, as far as the policy cares. */
struct qos_board {
	unsigned int nr_tpcs;		/* 1 .. 256 */
	uint8_t gpc[GPUPART_MAX_TPCS], ugpu[GPUPART_MAX_TPCS];
	uint8_t vgpc[GPUPART_MAX_TPCS];	/* equal where blocks of one cluster may be on both */
	/* TPCs of one vgpc that each set of as many TPCs or more is to have; 0: none. */
	unsigned int cluster_tpcs;
	bool shapes;			/* other shapes than packed are tried */
	struct gpupart_tpcset held;	/* at the begin, by programs that are no tenants */
};

/* How the TPCs of a set lie. */
enum qos_shape {
	QOS_PACKED,		/* along GPCs, those of one uGPU first */
	QOS_BALANCED,		/* whole GPCs, of the uGPUs in turn */
	QOS_SPREAD,		/* as many of each GPC */
	QOS_SHAPES,
};

enum qos_goal {
	QOS_BEST_EFFORT,	/* it gets what is left */
	QOS_ALPHA,		/* a share of its speed alone */
	QOS_RATE,		/* units a second */
	QOS_LATENCY,		/* a time that its requests are to take at most */
};

struct qos_tenant {
	char name[64];		/* no two alike */
	enum qos_goal goal;
	uint32_t alpha;		/* ALPHA: thousandths, 1 .. 1000 */
	uint64_t alone;		/* speed alone; 0 not known, which ALPHA does not allow */
	uint64_t rate;		/* RATE */
	uint64_t latency_ns;	/* LATENCY */
	unsigned int weight;	/* 1 .. 1000; 0 is 1 */
	unsigned int floor, ceiling;	/* TPCs; 0: one, all */
	struct gpupart_tpcset adopted;	/* that it has already; empty: none */
};

/* 0 anywhere takes the default, which stands behind it. */
struct qos_rules {
	unsigned int step;	/* TPCs, at most, by which one's share changes: a third of all */
	uint32_t hysteresis;	/* of a goal, by which a goal is overfulfilled on purpose: 20 */
	unsigned int dwell;	/* good epochs before a guaranteed tenant is lowered: 2 */
	unsigned int hold;	/* epochs without a signal in which the plan stands: 10 */
};

/* What came of one tenant's last epoch. */
struct qos_measured {
	bool valid;		/* there was a signal */
	bool gone;		/* the program ended */
	bool drained;		/* what it gave up is free of its blocks */
	bool disturbed;		/* its set was not the one decided: the epoch does not count */
	uint64_t ns;		/* that its epoch lasted */
	uint64_t work;		/* done in it, thousandths of a unit */
	uint64_t reports;	/* in which that was told; 0: not known, and @work is whole */
	bool exact;		/* what was under way at both ends is counted for its part */
	uint64_t told;		/* what it reported, if @work is not of that; decides nothing */
	uint64_t nr;		/* requests that were answered, of a latency */
	uint64_t latency_ns;	/* the percentile asked for, of those */
};

enum qos_class { QOS_UNKNOWN, QOS_COMPUTE, QOS_MEMORY };

enum qos_state {
	QOS_WAITING,		/* nothing was heard of it yet */
	QOS_GOOD,		/* the goal is met; of best effort: it goes on */
	QOS_MISSED,
	QOS_IDLE,		/* it was asked for nothing */
	QOS_LOST,		/* the signal is */
	QOS_STUCK,		/* missed, and TPCs do not help */
	QOS_GONE,		/* it ended; the set is empty */
	QOS_DISTURBED,		/* others changed its set, or came to its TPCs: nothing counts */
};

/* What is decided of one tenant. */
struct qos_verdict {
	struct gpupart_tpcset set;	/* from now on */
	struct gpupart_tpcset coming;	/* to be added when others have drained */
	unsigned int nr_tpcs;		/* of both */
	bool changed;			/* @set is not what it was */
	uint64_t pending_since;		/* epoch; 0: nothing is coming to it */
	enum qos_state state;
	enum qos_class class;
	enum qos_shape shape;
	unsigned int optimum;		/* TPCs beyond which it hardly gains; 0 not known */
	uint64_t speed;			/* in the epoch; of a latency 0 */
	uint32_t score;			/* against the goal, 1000 meets it; 0 without a goal */
	uint32_t since_start;		/* the same, of all epochs together */
	char why[QOS_WHY];
};

struct qos_decision {
	uint64_t epoch;			/* that ended: 0 is the first allocation */
	bool changed;			/* any set is another than before */
	bool swapping;			/* TPCs wait to be drained: no epoch has begun */
	struct gpupart_tpcset reserved;	/* off: nobody's */
	struct gpupart_tpcset held;	/* others have them: given to nobody */
	struct qos_verdict tenants[QOS_MAX_TENANTS];	/* in the order they were given */
	char words[QOS_WORDS];		/* what people should know, or "" */
};

struct qos_policy;

/*
 * A policy for @nr tenants (1 .. 64), and its first decision. All memory that it ever takes
 * is the object. 0, or with a sentence in @why of QOS_WORDS bytes: -EINVAL what is asked for
 * contradicts itself, -ENOSPC floors that the GPU does not have the TPCs for, -ENOMEM.
 */
int qos_policy_new(const struct qos_board *board, const struct qos_rules *rules,
		   const struct qos_tenant *tenants, unsigned int nr, struct qos_policy **policy,
		   struct qos_decision *first, char *why);
void qos_policy_free(struct qos_policy *policy);

/*
 * @held: what programs that are no tenants have from now on. No tenant has any of it after the
 * next epoch's end, but where too few TPCs would be left for the floors, at least one each:
 * then those that are missing are shared with the others, and that is said.
 */
void qos_policy_hold(struct qos_policy *policy, const struct gpupart_tpcset *held);

/*
 * The end of an epoch. While the last decision was `swapping`, only drained and gone are
 * looked at, and no epoch ends; the caller comes again when something drained, and begins
 * to measure when nothing is swapping any more.
 */
void qos_policy_step(struct qos_policy *policy, const struct qos_measured *measured,
		     struct qos_decision *decision);

/* "compute", "memory" and so on: stable words. */
const char *qos_class_name(enum qos_class class);
const char *qos_state_name(enum qos_state state);
const char *qos_goal_name(enum qos_goal goal);
const char *qos_shape_name(enum qos_shape shape);

/* The board of a topology. */
void qos_board_of(const struct gpupart_topology *topo, struct qos_board *board);

#endif
