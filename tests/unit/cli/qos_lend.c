// SPDX-License-Identifier: MIT
/*
 * Tests when the QoS policy lends TPCs of a tenant and for how long, who borrows from whom, and
 * that a log of a run with lending leads to the same decisions.
 */
#include <errno.h>
#include <string.h>
#include "cli/qos/qos.h"
#include "tests/tap.h"

#define MS	1000000ull
#define GOAL	(10 * MS)
#define BARE	3	/* epochs without lending before TPCs are lent */

static struct qos_tenant tenants[2];
static struct qos_measured measured[2];
static struct qos_policy *policy;
static struct qos_decision now;

/* Begins with a tenant with a latency goal that always has 4 TPCs, and a best-effort tenant. */
static void begin(void)
{
	static const struct qos_board board = { .nr_tpcs = 16 };
	static const struct qos_rules rules;
	char why[QOS_MESSAGE_SIZE];

	qos_policy_free(policy);
	policy = NULL;
	if (qos_policy_new(&board, &rules, tenants, 2, &policy, &now, why)) {
		tap_ok(false, "a policy: %s", why);
		exit(1);
	}
}

static void begin_serve(uint64_t goal_ns, uint64_t lend_ns)
{
	tenants[0] = (struct qos_tenant){
		.name = "serve", .goal = QOS_LATENCY, .latency_ns = goal_ns, .floor = 4,
		.ceiling = 4, .lend = true, .lend_ns = lend_ns,
	};
	tenants[1] = (struct qos_tenant){ .name = "batch" };
	begin();
}

/*
 * One epoch in which the tenant has this latency. TPCs were lent in it if the last decision was to
 * lend. If @answered is not 0, this number of requests was answered, and @late of them were late.
 * Returns the limit from now on.
 */
static uint64_t epoch_with(uint64_t latency_ns, uint64_t answered, uint64_t late)
{
	const bool lent = now.tenants[0].lend_ns;

	measured[0] = (struct qos_measured){
		.valid = true, .drained = true, .ns = 200 * MS, .nr = 100,
		.latency_ns = latency_ns, .lent = lent,
		.answered = answered, .within = answered - late,
	};
	measured[1] = (struct qos_measured){
		.valid = true, .drained = true, .ns = 200 * MS,
		.work = 1000000 * now.tenants[1].nr_tpcs,
	};
	do
		qos_policy_step(policy, measured, &now);
	while (now.swapping);
	return now.tenants[0].lend_ns;
}

static uint64_t epoch(uint64_t latency_ns)
{
	return epoch_with(latency_ns, 0, 0);
}

static uint64_t epochs(unsigned int nr, uint64_t latency_ns)
{
	while (nr--)
		epoch(latency_ns);
	return now.tenants[0].lend_ns;
}

/* Returns the number of epochs with this latency until TPCs are lent; 999: they are not lent. */
static unsigned int until_lent(uint64_t latency_ns)
{
	for (unsigned int nr = 1; nr < 999; nr++)
		if (epoch(latency_ns))
			return nr;
	return 999;
}

static void slack(void)
{
	unsigned int nr;

	begin_serve(GOAL, 0);
	nr = until_lent(6 * MS);
	tap_ok(nr == BARE, "without a limit, TPCs are lent after %u epochs without lending", nr);
	tap_ok(now.tenants[0].lend_ns == 4 * MS, "the limit is the slack: %llu ns",
	       (unsigned long long)now.tenants[0].lend_ns);
	tap_ok(!now.tenants[1].lend_ns, "a tenant without a goal lends nothing");
	tap_ok(epoch(9 * MS) == 4 * MS, "a latency with lending does not change the slack");

	begin_serve(GOAL, 0);
	epochs(BARE - 1, 6 * MS);
	tap_ok(epoch(9 * MS) == 4 * MS, "one slow epoch without lending has no effect");
	begin_serve(GOAL, 0);
	epoch(9 * MS);
	tap_ok(epochs(BARE - 1, 6 * MS) == 4 * MS, "also if it is the first one");
	begin_serve(GOAL, 0);
	epoch(6 * MS);
	tap_ok(epochs(BARE - 1, 8 * MS) == 2 * MS, "a second one counts at once");
	begin_serve(GOAL, 0);
	epochs(BARE - 1, 8 * MS);
	epoch(0);
	tap_ok(now.tenants[0].lend_ns > 2 * MS && now.tenants[0].lend_ns < 5 * MS,
	       "a lower one counts slowly: %llu ns", (unsigned long long)now.tenants[0].lend_ns);
}

static void given(void)
{
	unsigned int nr;

	begin_serve(GOAL, 300000);
	nr = until_lent(6 * MS);
	tap_ok(nr == BARE && now.tenants[0].lend_ns == 300000,
	       "a given limit, after %u epochs: %llu ns", nr,
	       (unsigned long long)now.tenants[0].lend_ns);
	tenants[0].goal = QOS_RATE;
	tenants[0].rate = 1000;
	begin();
	for (nr = 0; nr < BARE; nr++) {
		measured[0] = (struct qos_measured){
			.valid = true, .ns = 200 * MS, .work = 1000000,
		};
		measured[1] = measured[0];
		qos_policy_step(policy, measured, &now);
	}
	tap_ok(now.tenants[0].lend_ns == 300000, "also with a rate: %llu ns",
	       (unsigned long long)now.tenants[0].lend_ns);
}

static void limits(void)
{
	begin_serve(GOAL, 0);
	tap_ok(!epochs(50, GOAL), "no slack: nothing is lent");
	begin_serve(GOAL, 0);
	tap_ok(!epochs(50, GOAL - QOS_LEND_LEAST + 1), "a slack below %u ns: nothing is lent",
	       QOS_LEND_LEAST);
	begin_serve(GOAL, 0);
	tap_ok(epochs(50, GOAL - QOS_LEND_LEAST) == QOS_LEND_LEAST, "%u ns are lent",
	       QOS_LEND_LEAST);
	begin_serve(5ull * QOS_LEND_MOST, 0);
	tap_ok(epochs(50, MS) == QOS_LEND_MOST, "a longer slack is limited to %u ns",
	       QOS_LEND_MOST);
	begin_serve(GOAL, 0);
	tap_ok(!epochs(50, 2 * GOAL), "a missed goal: nothing is lent");
	begin_serve(GOAL, 300000);
	tap_ok(until_lent(2 * GOAL) == 999, "nor with a given limit");
}

/* Misses with lending. The first pause has 5 epochs, and then the pauses double up to 160. */
static void pauses(void)
{
	static const unsigned int wanted[] = { 5, 10, 20, 40, 80, 160, 160 };
	unsigned int nr, n;

	begin_serve(GOAL, 0);
	until_lent(6 * MS);
	for (n = 0; n < sizeof(wanted) / sizeof(wanted[0]); n++) {
		nr = epoch(2 * GOAL) ? 0 : until_lent(6 * MS);
		if (!tap_ok(nr == wanted[n], "after miss %u, nothing is lent for %u epochs", n + 1,
			    nr))
			break;
	}
	epochs(49, 6 * MS);
	epoch(2 * GOAL);
	nr = until_lent(6 * MS);
	tap_ok(nr == 160, "49 good epochs with lending: %u epochs", nr);
	epochs(50, 6 * MS);
	epoch(2 * GOAL);
	nr = until_lent(6 * MS);
	tap_ok(nr == 5, "50 good epochs: %u epochs again", nr);
}

/* An epoch with 36 requests. Some of them are late, so their 99th percentile misses the goal. */
static bool epoch_late(unsigned int late)
{
	return epoch_with(late ? 2 * GOAL : 6 * MS, 36, late);
}

/* Runs 100 epochs with lending. One request is late in every @every epochs. */
static unsigned int epochs_late(unsigned int percentile, unsigned int every)
{
	unsigned int nr = 0;

	begin_serve(GOAL, 0);
	tenants[0].percentile = percentile;
	begin();
	while (!epoch_late(0))
		;
	for (unsigned int e = 1; e <= 100; e++)
		nr += epoch_late(e % every == 0);
	return nr;
}

/* A goal for 99% of the requests allows one late request in three epochs of 36 requests. */
static void late_requests(void)
{
	unsigned int nr = epochs_late(990, 5);

	tap_ok(nr == 100, "99%%: a late request in every 180 ends no lending: %u of 100 epochs",
	       nr);
	tap_ok(!epoch_late(1), "two in two epochs end it");
	nr = epochs_late(990, 5);
	tap_ok(nr == 100 && !epoch_late(2), "two in one epoch, too");
	nr = epochs_late(999, 30);
	tap_ok(nr == 100, "99.9%%: one in every 1080 does not end it: %u of 100", nr);
	nr = epochs_late(999, 5);
	tap_ok(nr < 70, "one in every 180 does: %u of 100", nr);
	nr = epochs_late(0, 100);
	tap_ok(nr == 99, "all requests: one late request ends it");

	epochs_late(990, 200);
	for (nr = 0; nr < 50 && epoch_with(6 * MS, 1000, 10); nr++)
		;
	tap_ok(nr == 50, "10 of 1000 requests in each epoch do not end it: %u epochs", nr);
	tap_ok(!epoch_with(6 * MS, 1000, 12), "12 end it");
}

static void measured_again(void)
{
	unsigned int nr;

	begin_serve(GOAL, 0);
	until_lent(6 * MS);
	for (nr = 1; epoch(6 * MS) && nr < 999; nr++)
		;
	tap_ok(nr == 200, "after %u epochs with lending, nothing is lent", nr);
	nr = until_lent(7 * MS);
	tap_ok(nr == BARE && now.tenants[0].lend_ns < 4 * MS,
	       "until the latency without lending was measured in %u epochs: %llu ns", nr,
	       (unsigned long long)now.tenants[0].lend_ns);
}

static void moved(void)
{
	unsigned int nr;

	begin_serve(GOAL, 300000);
	tenants[0].floor = 8;
	tenants[0].ceiling = 12;
	begin();
	until_lent(9 * MS);
	epoch(2 * GOAL);
	tap_ok(now.tenants[0].nr_tpcs == 8 && !now.tenants[0].lend_ns,
	       "a miss with lending ends the lending, and changes no set");
	epoch(2 * GOAL);
	tap_ok(now.tenants[0].nr_tpcs > 8 && !now.tenants[0].lend_ns,
	       "a miss without lending raises it to %u TPCs, which are not lent",
	       now.tenants[0].nr_tpcs);
	begin();
	epochs(BARE - 1, 9 * MS);
	epoch(2 * GOAL);
	nr = until_lent(9 * MS);
	tap_ok(nr >= BARE && nr < 50,
	       "the latency is measured anew with the new set: %u epochs", nr);
}

/* A load that needs 5 TPCs. */
struct load {
	const char *what;
	enum qos_goal goal;
	unsigned int nr_slow;		/* the first epochs, which are three times as slow */
	unsigned int nr_steep;		/* the first epochs, in which fewer than 9 TPCs are slow */
	bool silent;			/* the best-effort tenant has no signal */
	unsigned int at;		/* the number of TPCs is compared after this epoch */
	unsigned int least_lent;	/* in this number of epochs, TPCs must be lent */
};

/* Stores the number of TPCs after each epoch. Returns the number of epochs with lending. */
static unsigned int run_load(const struct load *load, bool lend, unsigned int *counts)
{
	unsigned int nr_lent = 0, n;
	bool slow;

	begin_serve(GOAL, lend && load->goal == QOS_RATE ? 300000 : 0);
	tenants[0].goal = load->goal;
	tenants[0].rate = 500000;
	tenants[0].lend = lend;
	tenants[0].floor = 2;
	tenants[0].ceiling = 0;
	begin();
	for (unsigned int e = 0; e < load->at; e++) {
		n = now.tenants[0].nr_tpcs;
		slow = e < load->nr_slow || (e < load->nr_steep && n < 9);
		measured[0] = (struct qos_measured){
			.valid = true, .drained = true, .ns = 200 * MS, .nr = 100,
			.latency_ns = (slow ? 3 : 1) * 40 * MS / n,
			.work = load->goal == QOS_RATE ? 26000 * n / (slow ? 3 : 1) : 0,
			.lent = lend && now.tenants[0].lend_ns,
		};
		nr_lent += measured[0].lent;
		measured[1] = (struct qos_measured){
			.valid = !load->silent, .drained = true, .ns = 200 * MS,
			.work = 1000000 * now.tenants[1].nr_tpcs,
		};
		do
			qos_policy_step(policy, measured, &now);
		while (now.swapping);
		counts[e] = now.tenants[0].nr_tpcs;
	}
	return nr_lent;
}

/* A tenant that lends has no more TPCs than it would have without lending. */
static void lowered(void)
{
	static const struct load loads[] = {
		{ "a slow start", QOS_LATENCY, 10, 0, false, 100, 50 },
		{ "a miss that is forgotten after 256 epochs", QOS_RATE, 1, 0, false, 400, 320 },
		{ "misses after lowerings", QOS_RATE, 5, 60, false, 325, 200 },
		{ "no best-effort tenant can use the TPCs", QOS_LATENCY, 10, 0, true, 400, 330 },
	};
	unsigned int without[400], with[400], nr, e;

	for (unsigned int i = 0; i < sizeof(loads) / sizeof(loads[0]); i++) {
		const struct load *load = &loads[i];

		run_load(load, false, without);
		nr = run_load(load, true, with);
		e = load->at - 1;
		tap_ok(with[e] <= without[e] && nr >= load->least_lent,
		       "%s: %u TPCs with lending, %u without; lent in %u of %u epochs",
		       load->what, with[e], without[e], nr, load->at);
	}
	run_load(&loads[0], false, without);
	run_load(&loads[0], true, with);
	for (e = 0; e < loads[0].at && with[e] == without[e]; e++)
		;
	tap_ok(e == loads[0].at, "until the last lowering, lending changes no epoch: %u", e);
}

/*
 * In the first 40 epochs, the tenant misses its goal with all TPCs. Later the best-effort tenant
 * becomes faster, so the controller forgets the speeds. The tenant then needs 24 TPCs of 42.
 */
static void stuck_start(void)
{
	static const struct qos_board board = { .nr_tpcs = 42 };
	static const struct qos_rules rules;
	char why[QOS_MESSAGE_SIZE];
	unsigned int n, lent = 0;

	begin_serve(GOAL, 600000);
	tenants[0].floor = tenants[0].ceiling = 0;
	qos_policy_free(policy);
	if (qos_policy_new(&board, &rules, tenants, 2, &policy, &now, why)) {
		tap_ok(false, "a policy: %s", why);
		return;
	}
	for (unsigned int e = 0; e < 300; e++) {
		n = now.tenants[0].nr_tpcs;
		measured[0] = (struct qos_measured){
			.valid = true, .drained = true, .ns = 200 * MS, .nr = 36,
			.latency_ns = 23 * GOAL / n * (e < 40 ? 2 : 1),
			.lent = now.tenants[0].lend_ns,
		};
		lent += measured[0].lent;
		measured[1] = (struct qos_measured){
			.valid = true, .drained = true, .ns = 200 * MS,
			.work = 1000000 * now.tenants[1].nr_tpcs * (e < 60 ? 1 : 3),
		};
		do
			qos_policy_step(policy, measured, &now);
		while (now.swapping);
	}
	tap_ok(now.tenants[0].nr_tpcs <= 25 && lent >= 100,
	       "after a start that was too slow with all TPCs: %u TPCs, lent in %u of 300 epochs",
	       now.tenants[0].nr_tpcs, lent);
}

/*
 * Another command, such as `run --lend --lend-limit`, borrows all the time. The controller cannot
 * end this lending.
 */
static void by_another_command(void)
{
	begin_serve(GOAL, 0);
	tenants[0].lend = false;
	tenants[0].ceiling = 12;
	begin();
	for (unsigned int nr = 0; nr < 20; nr++) {
		measured[0] = (struct qos_measured){
			.valid = true, .drained = true, .ns = 200 * MS, .nr = 100,
			.latency_ns = 11 * GOAL / now.tenants[0].nr_tpcs, .lent = true,
		};
		do
			qos_policy_step(policy, measured, &now);
		while (now.swapping);
	}
	tap_ok(now.tenants[0].nr_tpcs > 10,
	       "misses raise a tenant from which another command always borrows: %u TPCs",
	       now.tenants[0].nr_tpcs);
}

/* Another command borrows all the time from a tenant that lends. The controller lends, too. */
static void beside_another_command(void)
{
	unsigned int nr_lent = 0;

	begin_serve(GOAL, 0);
	for (unsigned int nr = 0; nr < 600; nr++) {
		measured[0] = (struct qos_measured){
			.valid = true, .drained = true, .ns = 200 * MS, .nr = 100,
			.latency_ns = 6 * MS, .lent = true,
		};
		qos_policy_step(policy, measured, &now);
		nr_lent += now.tenants[0].lend_ns > 0;
	}
	tap_ok(nr_lent > 500, "in %u of 600 epochs", nr_lent);
}

static void without_requests(void)
{
	begin_serve(GOAL, 0);
	until_lent(6 * MS);
	measured[0] = (struct qos_measured){ .valid = true, .ns = 200 * MS, .lent = true };
	qos_policy_step(policy, measured, &now);
	tap_ok(now.tenants[0].state == QOS_IDLE && now.tenants[0].lend_ns == 4 * MS,
	       "without requests it lends on");
	measured[0] = (struct qos_measured){ .ns = 200 * MS, .lent = true };
	qos_policy_step(policy, measured, &now);
	tap_ok(now.tenants[0].state == QOS_LOST && !now.tenants[0].lend_ns,
	       "without a signal it lends nothing");
	measured[0].gone = true;
	qos_policy_step(policy, measured, &now);
	tap_ok(now.tenants[0].state == QOS_GONE && !now.tenants[0].lend_ns, "nor after its end");
}

/* A tenant with a rate has no work in an epoch. Only if its launches have stopped, it lends on. */
static void without_work(void)
{
	begin_serve(GOAL, 300000);
	tenants[0].goal = QOS_RATE;
	tenants[0].rate = 1000;
	begin();
	for (unsigned int nr = 0; nr < BARE + 3; nr++) {
		measured[0] = (struct qos_measured){
			.valid = true, .ns = 200 * MS, .work = nr == BARE + 1 ? 0 : 1000000,
			.stopped = nr == BARE + 1, .lent = nr >= BARE,
		};
		qos_policy_step(policy, measured, &now);
		if (nr > BARE)
			tap_ok(now.tenants[0].lend_ns == 300000 &&
			       now.tenants[0].state == (measured[0].work ? QOS_GOOD : QOS_IDLE),
			       measured[0].work ? "it launches again and has not missed its goal" :
						  "its launches have stopped: it lends on");
	}
	measured[0].work = 0;
	qos_policy_step(policy, measured, &now);
	tap_ok(now.tenants[0].state == QOS_LOST && !now.tenants[0].lend_ns,
	       "it launches, but no signal comes: it lends nothing");
}

static uint64_t idle_epochs(unsigned int nr)
{
	while (nr--) {
		measured[0] = (struct qos_measured){
			.valid = true, .drained = true, .ns = 200 * MS, .stopped = true,
			.lent = now.tenants[0].lend_ns,
		};
		do
			qos_policy_step(policy, measured, &now);
		while (now.swapping);
	}
	return now.tenants[0].lend_ns;
}

/* Launches of the tenant have stopped before the first result, or before its set changes. */
/*
 * The latency without lending is to be measured again. Idle epochs do not measure it, so the
 * earlier latency does not count when requests come.
 */
static void measured_after_idle(void)
{
	unsigned int nr, lent = 0;

	begin_serve(GOAL, 0);
	until_lent(6 * MS);
	while (now.tenants[0].lend_ns)
		epoch(6 * MS);
	idle_epochs(2);
	tap_ok(!epoch(9 * MS) && !epoch(9 * MS) && epoch(9 * MS) == MS,
	       "after idle epochs, the latency is measured in 3 epochs: the limit is %llu ns",
	       (unsigned long long)now.tenants[0].lend_ns);

	/* From epoch 400 on, the latency is higher. Every second epoch is idle. */
	begin_serve(GOAL, 0);
	for (nr = 0; nr < 1000; nr++) {
		if (nr % 2)
			idle_epochs(1);
		else
			epoch(nr < 400 ? 6 * MS : 9 * MS);
		lent += nr < 400 && now.tenants[0].lend_ns;
	}
	tap_ok(lent > 350 && now.tenants[0].lend_ns == MS,
	       "every second epoch is idle: lent in %u of 400 epochs, the limit is %llu ns", lent,
	       (unsigned long long)now.tenants[0].lend_ns);
}

static void idle(void)
{
	const struct gpupart_tpcset none = { { 0 } };
	struct gpupart_tpcset held = none;

	begin_serve(GOAL, 300000);
	tap_ok(idle_epochs(2) == 300000, "it lends before its first request");
	begin_serve(GOAL, 0);
	tap_ok(!idle_epochs(30), "but not if the slack of its goal is unknown");
	begin_serve(GOAL, 300000);
	tenants[0].goal = QOS_RATE;
	tenants[0].rate = 1000;
	begin();
	tap_ok(idle_epochs(2) == 300000, "also with a rate");
	for (unsigned int given = 0; given < 2; given++) {
		begin_serve(GOAL, given ? 300000 : 0);
		until_lent(6 * MS);
		gpupart_tpcset_add(&held, __builtin_ctzll(now.tenants[0].set.allowed[0]));
		qos_policy_hold(policy, &held);
		tap_ok(idle_epochs(10) == (given ? 300000 : 4 * MS),
		       "its set changed while it was idle: it lends again, %s",
		       given ? "with a given limit" : "up to the slack");
		held = none;
	}
}

static void refused_one(const char *words)
{
	static const struct qos_board board = { .nr_tpcs = 16 };
	static const struct qos_rules rules;
	struct qos_policy *none;
	char why[QOS_MESSAGE_SIZE] = "";

	tap_ok(qos_policy_new(&board, &rules, tenants, 2, &none, &now, why) == -EINVAL &&
	       strstr(why, words), "refused: %s", why);
}

static void refused(void)
{
	begin_serve(GOAL, 0);
	tenants[1].lend = true;
	refused_one("batch: lend: only a tenant with a goal lends; best effort borrows");
	tenants[1] = tenants[0];
	strcpy(tenants[1].name, "more");
	refused_one("lend: no tenant is best effort, so no tenant can borrow");
	begin_serve(GOAL, 0);
	tenants[0].goal = QOS_RATE;
	tenants[0].rate = 1000;
	refused_one("serve: the value auto of lend needs a latency goal; use a time as the value");
}

/* A tenant that lends never borrows, so there is no circle. */
static void lenders(void)
{
	static struct qos_setup setup = { .nr = 7 };
	char got[40] = "";

	for (unsigned int i = 0; i < setup.nr; i++)
		setup.tenants[i].goal = i % 2 ? QOS_BEST_EFFORT : QOS_LATENCY;
	tap_ok(qos_lender_of(&setup, 1) == QOS_MAX_TENANTS, "no tenant lends: none borrows");
	setup.tenants[2].lend = setup.tenants[6].lend = true;
	for (unsigned int i = 0; i < setup.nr; i++)
		sprintf(got + strlen(got), "%u ", qos_lender_of(&setup, i));
	tap_ok(!strcmp(got, "64 2 64 6 64 2 64 "),
	       "the best-effort tenants are distributed, and no other tenant borrows: %s", got);
}

/* ---------------------------------------------------------------------------- log */

/* Writes the first line of a log, or one step, as text and reads it again. */
static json_t *as_text(json_t *line)
{
	char *text = json_dumps(line, JSON_PRESERVE_ORDER);
	json_t *again = json_loads(text, 0, NULL);

	free(text);
	json_decref(line);
	return again;
}

static void log_replays(void)
{
	static struct qos_setup setup, read;
	static struct qos_session session, replayed;
	char why[QOS_MESSAGE_SIZE] = "", difference[512] = "";
	bool good, borrowed = false, missed = false;
	struct qos_measured m[2];
	json_t *line, *step;

	begin_serve(GOAL, 0);
	setup = (struct qos_setup){ .path = "", .epoch_ns = 200 * MS, .nr = 2 };
	memcpy(setup.tenants, tenants, sizeof(tenants));
	session = (struct qos_session){ .setup = &setup, .board = { .nr_tpcs = 16 } };
	replayed.setup = &read;
	good = !qos_session_begin(&session);
	line = as_text(qos_log_begin(&session));
	good = good && qos_log_read_begin(line, &read, &replayed, why) &&
	       !qos_session_begin(&replayed);
	json_decref(line);
	tap_ok(good && read.tenants[0].lend && !read.tenants[1].lend, "a log begins: %s", why);
	for (unsigned int e = 0; good && e < 100; e++) {
		bool swap = session.now.swapping;

		measured[0] = (struct qos_measured){
			.valid = true, .drained = true, .ns = 200 * MS, .nr = 100,
			.latency_ns = e % 40 == 30 ? 2 * GOAL : 6 * MS,
			.lent = session.now.tenants[0].lend_ns,
		};
		measured[1] = (struct qos_measured){
			.valid = true, .drained = true, .ns = 200 * MS, .work = 5000000,
			.borrowed = session.now.tenants[0].lend_ns ? 10 + e : 0,
		};
		qos_policy_step(session.policy, measured, &session.now);
		step = as_text(qos_log_step(&session, swap, measured));
		good = qos_log_read_step(step, &replayed, m, why);
		qos_policy_step(replayed.policy, m, &replayed.now);
		line = as_text(qos_log_step(&replayed, swap, m));
		qos_log_difference(step, line, difference, sizeof(difference));
		good = good && !*difference && m[0].lent == measured[0].lent &&
		       m[1].borrowed == measured[1].borrowed &&
		       replayed.now.tenants[0].lend_ns == session.now.tenants[0].lend_ns;
		borrowed |= m[1].borrowed;
		missed |= m[0].lent && !replayed.now.tenants[0].lend_ns;
		json_decref(line);
		json_decref(step);
	}
	tap_ok(good && borrowed && missed, "100 epochs replay to the same limits: %s%s", why,
	       difference);
	qos_policy_free(session.policy);
	qos_policy_free(replayed.policy);
}

int main(void)
{
	slack();
	given();
	limits();
	pauses();
	late_requests();
	measured_again();
	moved();
	lowered();
	stuck_start();
	measured_after_idle();
	by_another_command();
	beside_another_command();
	without_requests();
	without_work();
	idle();
	refused();
	lenders();
	log_replays();
	qos_policy_free(policy);
	return tap_done();
}
