/* SPDX-License-Identifier: MIT */
/*
 * The QoS policy: decides from the progress of each tenant in the last epoch which TPCs it gets
 * in the next one. The caller measures progress and sets the TPCs. The policy is not part of
 * libgpupart.
 *
 * All numbers are integers: speeds in thousandths of a unit a second, scores and shares in
 * thousandths. The same calls give the same decisions on every machine, in any order of the
 * tenants. One thread for each policy.
 */
#ifndef GPUPART_CLI_QOS_POLICY_GPUPART_QOS_H
#define GPUPART_CLI_QOS_POLICY_GPUPART_QOS_H

#include <gpupart_manage.h>

#define QOS_MAX_TENANTS	64
#define QOS_REASON_SIZE		192	/* size of a text about one tenant */
#define QOS_MESSAGE_SIZE	1024	/* size of a text about all of them */
#define QOS_UNKNOWN_PLACE	255	/* an unknown GPC or uGPU */

/* The location of each TPC. */
struct qos_board {
	unsigned int nr_tpcs;		/* 1 .. 256 */
	uint8_t gpc[GPUPART_MAX_TPCS], ugpu[GPUPART_MAX_TPCS];
	uint8_t vgpc[GPUPART_MAX_TPCS];	/* equal: blocks of one cluster may run on both */
	/* A set of at least this many TPCs must have this many of one vgpc; 0: no such rule. */
	unsigned int cluster_tpcs;
	bool shapes;			/* try other shapes than packed */
	struct gpupart_tpcset held;	/* TPCs of programs that are not tenants, at the start */
};

/* How the TPCs of a set are arranged. */
enum qos_shape {
	QOS_PACKED,		/* few GPCs, those of one uGPU first */
	QOS_BALANCED,		/* whole GPCs, alternating between the uGPUs */
	QOS_SPREAD,		/* the same number of each GPC */
	QOS_SHAPES,
};

enum qos_goal {
	QOS_BEST_EFFORT,	/* it gets the remaining TPCs */
	QOS_ALPHA,		/* a share of its solo speed */
	QOS_RATE,		/* units a second */
	QOS_LATENCY,		/* the longest time for a request */
};

struct qos_tenant {
	char name[64];		/* unique */
	enum qos_goal goal;
	uint32_t alpha;		/* ALPHA: thousandths, 1 .. 1000 */
	uint64_t alone;		/* solo speed; 0: not known, not allowed for ALPHA */
	uint64_t rate;		/* RATE */
	uint64_t latency_ns;	/* LATENCY */
	unsigned int weight;	/* 1 .. 1000; 0 means 1 */
	unsigned int floor, ceiling;	/* TPCs; 0: one, and all */
	struct gpupart_tpcset adopted;	/* its TPCs before the start; empty: none */
};

/* A value of 0 means the default, which each comment states. */
struct qos_rules {
	unsigned int step;	/* most TPCs by which a share changes: a third of all */
	uint32_t hysteresis;	/* thousandths of a goal by which it is exceeded on purpose: 20 */
	unsigned int dwell;	/* good epochs before a guaranteed tenant is lowered: 2 */
	unsigned int hold;	/* epochs without a signal during which the plan stays: 10 */
};

/* Measurements of one tenant in its last epoch. */
struct qos_measured {
	bool valid;		/* there was a signal */
	bool gone;		/* the program ended */
	bool drained;		/* no block runs any more on the TPCs that it gave up */
	bool disturbed;		/* its set was not the decided one: the epoch does not count */
	uint64_t ns;		/* length of its epoch */
	uint64_t work;		/* done in it, thousandths of a unit */
	uint64_t reports;	/* number of reports with that work; 0: not known, @work is exact */
	bool exact;		/* units that were begun at either end are counted in part */
	uint64_t told;	/* reported work, if @work is something else; for display only */
	uint64_t nr;		/* for a latency: answered requests */
	uint64_t latency_ns;	/* their wanted percentile */
};

enum qos_class { QOS_UNKNOWN, QOS_COMPUTE, QOS_MEMORY };

enum qos_state {
	QOS_WAITING,		/* no signal yet */
	QOS_GOOD,		/* the goal is met; best effort: it makes progress */
	QOS_MISSED,
	QOS_IDLE,		/* it had no requests */
	QOS_LOST,		/* no signal any more */
	QOS_STUCK,		/* missed, and more TPCs do not help */
	QOS_GONE,		/* it ended; the set is empty */
	QOS_DISTURBED,	/* others changed its set or use its TPCs: the epoch does not count */
};

/* The decision about one tenant. */
struct qos_verdict {
	struct gpupart_tpcset set;	/* from now on */
	struct gpupart_tpcset coming;	/* to be added when its present owners have drained */
	unsigned int nr_tpcs;		/* of both sets */
	bool changed;			/* @set differs from the last decision */
	uint64_t pending_since;	/* epoch since which @coming is not empty; 0: it is empty */
	enum qos_state state;
	enum qos_class class;
	enum qos_shape shape;
	unsigned int optimum;	/* TPCs beyond which it hardly gets faster; 0: not known */
	uint64_t speed;			/* in the epoch; 0 for a latency */
	uint32_t score;	/* relative to the goal, 1000 meets it; 0 without a goal */
	uint32_t since_start;		/* the same, over all epochs */
	char why[QOS_REASON_SIZE];
};

struct qos_decision {
	uint64_t epoch;			/* the epoch that ended: 0 is the first allocation */
	bool changed;			/* any set has changed */
	bool swapping;			/* TPCs are draining: no epoch has begun */
	struct gpupart_tpcset reserved;	/* off: no tenant may use them */
	struct gpupart_tpcset held;	/* in use by other programs: no tenant gets them */
	struct qos_verdict tenants[QOS_MAX_TENANTS];	/* in the order of the caller */
	char words[QOS_MESSAGE_SIZE];		/* a message for the user, or "" */
};

struct qos_policy;

/*
 * Creates a policy for @nr tenants (1 .. 64), and makes its first decision. The policy
 * allocates no other memory later. Returns 0, or an error with a message in @why, of
 * QOS_MESSAGE_SIZE bytes: -EINVAL if the options contradict each other, -ENOSPC if the GPU has too
 * few TPCs for the floors, -ENOMEM.
 */
int qos_policy_new(const struct qos_board *board, const struct qos_rules *rules,
		   const struct qos_tenant *tenants, unsigned int nr, struct qos_policy **policy,
		   struct qos_decision *first, char *why);
void qos_policy_free(struct qos_policy *policy);

/*
 * @held: the TPCs of programs that are not tenants, from now on. After the end of the next
 * epoch tenants do not get them. Exception: if too few TPCs are left for the floors, of at
 * least one TPC each, the missing ones are shared with those programs, and the decision says
 * so.
 */
void qos_policy_hold(struct qos_policy *policy, const struct gpupart_tpcset *held);

/*
 * Ends an epoch. If the last decision was `swapping`, this ends no epoch and reads only drained
 * and gone: the caller calls again when a tenant has drained, and starts to measure when no
 * decision is swapping any more.
 */
void qos_policy_step(struct qos_policy *policy, const struct qos_measured *measured,
		     struct qos_decision *decision);

/* Stable names: "compute", "memory" and so on. */
const char *qos_class_name(enum qos_class class);
const char *qos_state_name(enum qos_state state);
const char *qos_goal_name(enum qos_goal goal);
const char *qos_shape_name(enum qos_shape shape);

/* Fills *board from a topology. */
void qos_board_of(const struct gpupart_topology *topo, struct qos_board *board);

#endif
