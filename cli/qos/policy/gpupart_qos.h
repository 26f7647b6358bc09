/* SPDX-License-Identifier: MIT */
/*
 * The QoS policy. After each epoch it decides which TPCs each tenant gets in the next epoch. It
 * decides from the progress of the tenants in the last epoch. The caller measures the progress
 * and sets the TPCs. The policy is not part of libgpupart.
 *
 * All numbers are integers. Speeds are in thousandths of a unit a second. Scores and shares are
 * in thousandths. The same calls lead to the same decisions on every machine and in any order of
 * the tenants. Use each policy from one thread.
 */
#ifndef GPUPART_CLI_QOS_POLICY_GPUPART_QOS_H
#define GPUPART_CLI_QOS_POLICY_GPUPART_QOS_H

#include <gpupart_manage.h>

#define QOS_MAX_TENANTS	64
#define QOS_REASON_SIZE		192	/* size of a text about one tenant */
#define QOS_MESSAGE_SIZE	1024	/* size of a text about all tenants */
#define QOS_UNKNOWN_PLACE	255	/* an unknown GPC or uGPU */

/* The location of each TPC. */
struct qos_board {
	unsigned int nr_tpcs;		/* 1 .. 256 */
	uint8_t gpc[GPUPART_MAX_TPCS], ugpu[GPUPART_MAX_TPCS];
	uint8_t vgpc[GPUPART_MAX_TPCS];	/* virtual GPC; all blocks of a cluster run in the same
					 * virtual GPC */
	/*
	 * A set with this number of TPCs or more must have this number of TPCs in one virtual GPC.
	 * If the number is 0, there is no such rule.
	 */
	unsigned int cluster_tpcs;
	bool shapes;			/* try shapes other than QOS_PACKED */
	struct gpupart_tpcset held;	/* TPCs of programs that are not tenants, at the start */
};

/* How the TPCs of a set are arranged. */
enum qos_shape {
	QOS_PACKED,		/* in few GPCs, and in one uGPU if possible */
	QOS_BALANCED,		/* whole GPCs, alternating between the uGPUs */
	QOS_SPREAD,		/* the same number of TPCs in each GPC */
	QOS_SHAPES,
};

enum qos_goal {
	QOS_BEST_EFFORT,	/* no goal: the tenant gets the remaining TPCs */
	QOS_ALPHA,		/* a share of its solo speed */
	QOS_RATE,		/* a number of units a second */
	QOS_LATENCY,		/* a maximum time for a request */
};

struct qos_tenant {
	char name[64];		/* unique */
	enum qos_goal goal;
	uint32_t alpha;		/* for QOS_ALPHA: thousandths of the solo speed, 1 .. 1000 */
	uint64_t alone;		/* solo speed, which QOS_ALPHA requires; 0: not known */
	uint64_t rate;		/* for QOS_RATE */
	uint64_t latency_ns;	/* for QOS_LATENCY */
	/*
	 * for QOS_LATENCY: thousandths of the requests that must keep the latency: 990 is the 99th
	 * percentile; 0 means all
	 */
	unsigned int percentile;
	unsigned int weight;	/* 1 .. 1000; 0 means 1 */
	unsigned int floor, ceiling;	/* numbers of TPCs; floor 0 means 1, ceiling 0 means all */
	struct gpupart_tpcset adopted;	/* its TPCs before the start of the policy; may be empty */
	/*
	 * for a guaranteed tenant: while the tenant is idle, it lends its TPCs to best-effort
	 * tenants
	 */
	bool lend;
	/* time limit of kernels on lent TPCs, QOS_LEND_LEAST .. QOS_LEND_MOST; 0: the slack */
	uint64_t lend_ns;
};

/* smallest and largest limit of lending, in ns */
#define QOS_LEND_LEAST	1000u
#define QOS_LEND_MOST	1000000000u

/* A value of 0 means the default. Each comment ends with the default. */
struct qos_rules {
	/*
	 * the largest change of a share in one decision, in TPCs; default: a third of all TPCs
	 */
	unsigned int step;
	/* margin by which the policy tries to exceed a goal, in thousandths; default: 20 */
	uint32_t hysteresis;
	/* number of good epochs after which a guaranteed tenant may get fewer TPCs; default: 2 */
	unsigned int dwell;
	/* epochs without a signal during which the plan does not change; default: 10 */
	unsigned int hold;
};

/* Measurements of one tenant in its last epoch. */
struct qos_measured {
	bool valid;		/* there was a signal */
	bool gone;		/* the program ended */
	bool drained;		/* all blocks on the TPCs that it gave up have ended */
	bool lent;		/* other programs could use its TPCs while it was idle */
	bool stopped;		/* it lends, launched nothing, and has no outstanding launch */
	bool disturbed;		/* its set was not the decided set, so the epoch does not count */
	uint64_t ns;		/* length of the epoch */
	uint64_t work;		/* work done in the epoch, in thousandths of a unit */
	uint64_t reports;	/* number of reports in the epoch; 0: not known, and @work is
				 * exact */
	bool exact;		/* if a unit crosses an end of the epoch, @work includes a part
				 * of the unit */
	/*
	 * number of launches on lent TPCs; if it is not 0, the tenant used more than its own TPCs
	 */
	uint64_t borrowed;
	/* reported work, if @work does not come from reports; for display only */
	uint64_t reported;
	uint64_t nr;		/* for QOS_LATENCY: number of answered requests */
	uint64_t latency_ns;	/* for QOS_LATENCY: latency at the percentile of the goal */
	/*
	 * for QOS_LATENCY: answered requests since the previous epoch, including the time of
	 * swaps; answered requests within the latency
	 */
	uint64_t answered, within;
};

enum qos_class { QOS_UNKNOWN, QOS_COMPUTE, QOS_MEMORY };

enum qos_state {
	QOS_WAITING,		/* no signal yet */
	QOS_GOOD,		/* the goal is met, or a best-effort tenant makes progress */
	QOS_MISSED,
	QOS_IDLE,		/* the tenant had no requests */
	QOS_LOST,		/* the tenant had a signal, but now has none */
	QOS_STUCK,		/* the goal is missed, and more TPCs do not help */
	QOS_GONE,		/* the program ended; its set is empty */
	/* another program changed the tenant's set or uses its TPCs; the epoch does not count */
	QOS_DISTURBED,
};

/* Returns whether a tenant in this state has a speed or a score. */
static inline bool qos_has_result(enum qos_state state)
{
	return state == QOS_GOOD || state == QOS_MISSED || state == QOS_STUCK;
}

/* The decision about one tenant. */
struct qos_verdict {
	/*
	 * The TPCs to use from now on. During a swap, they may include TPCs that are @coming to
	 * another tenant, because this tenant still waits for TPCs that replace them.
	 */
	struct gpupart_tpcset set;
	struct gpupart_tpcset coming;	/* TPCs to add when their present owners have drained */
	unsigned int nr_tpcs;		/* number of TPCs after the swap */
	bool changed;			/* @set differs from the last decision */
	uint64_t pending_since;	/* first epoch in which @coming was not empty; 0: @coming is empty
				 * */
	enum qos_state state;
	enum qos_class class;
	enum qos_shape shape;
	unsigned int optimum;	/* number of TPCs above which it hardly gets faster; 0: not known */
	/*
	 * For a guaranteed tenant: from now on, kernels of other programs may use its TPCs for this
	 * time. If the time is 0, it lends nothing. If the tenant does not lend to tenants, the
	 * time is set, too, because other programs may borrow its TPCs.
	 */
	uint64_t lend_ns;
	uint64_t speed;			/* speed in the epoch; 0 for QOS_LATENCY */
	uint32_t score;		/* progress relative to the goal; 1000: the goal is met exactly;
				 * 0: there is no goal */
	uint32_t since_start;		/* the score over all epochs */
	char why[QOS_REASON_SIZE];
};

struct qos_decision {
	uint64_t epoch;			/* the epoch that ended; 0: the first allocation */
	bool changed;			/* at least one set has changed */
	bool swapping;			/* TPCs are draining, and no epoch has begun */
	struct gpupart_tpcset reserved;	/* TPCs that no tenant may use */
	struct gpupart_tpcset held;	/* TPCs of other programs, which no tenant gets */
	struct qos_verdict tenants[QOS_MAX_TENANTS];	/* in the order of the caller */
	char words[QOS_MESSAGE_SIZE];		/* a message for the user, or "" */
};

struct qos_policy;

/*
 * Creates a policy for @nr tenants (1 .. 64), and makes its first decision. The policy does not
 * allocate memory later. Returns 0 or a negative errno. If the options contradict each other,
 * returns -EINVAL. If the GPU has too few TPCs for the floors, returns -ENOSPC. After an error,
 * @why contains a message. The size of @why is QOS_MESSAGE_SIZE bytes.
 */
int qos_policy_new(const struct qos_board *board, const struct qos_rules *rules,
		   const struct qos_tenant *tenants, unsigned int nr, struct qos_policy **policy,
		   struct qos_decision *first, char *why);
void qos_policy_free(struct qos_policy *policy);

/*
 * Tells the policy that @held are now the TPCs of programs that are not tenants. From the end of
 * the next epoch, tenants do not get these TPCs. There is one exception, because each tenant has a
 * floor of at least one TPC. If too few TPCs are left for all floors, tenants share some TPCs with
 * the other programs. The decision then has a message.
 */
void qos_policy_hold(struct qos_policy *policy, const struct gpupart_tpcset *held);

/*
 * Ends an epoch and decides about the next one. If the last decision was `swapping`, the call does
 * not end an epoch. Then it reads only the members `drained` and `gone` of @measured. While
 * decisions are `swapping`, call this function whenever a tenant has drained. When a decision is
 * not `swapping`, begin to measure the next epoch.
 */
void qos_policy_step(struct qos_policy *policy, const struct qos_measured *measured,
		     struct qos_decision *decision);

/* Return names that do not change between versions: "compute", "memory" and so on. */
const char *qos_class_name(enum qos_class class);
const char *qos_state_name(enum qos_state state);
const char *qos_goal_name(enum qos_goal goal);
const char *qos_shape_name(enum qos_shape shape);

/* Fills *board from a topology. */
void qos_board_of(const struct gpupart_topology *topo, struct qos_board *board);

#endif
