// SPDX-License-Identifier: MIT
/*
 * Lending between the programs of `gpupart qos run`; see lend.h. `gpupart run --lend` uses the same
 * watchers. This process and the watchers share memory, which contains the limit of each lender.
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include "cli/qos/lend.h"
#include "cli/start/lend.h"
#include "cli/util/message.h"

unsigned int qos_lender_of(const struct qos_setup *setup, unsigned int i)
{
	unsigned int lenders[QOS_MAX_TENANTS], nr = 0, nr_before = 0;

	for (unsigned int n = 0; n < setup->nr; n++) {
		/* The policy refuses best effort tenants that lend. */
		if (setup->tenants[n].lend && setup->tenants[n].goal != QOS_BEST_EFFORT)
			lenders[nr++] = n;
		nr_before += n < i && setup->tenants[n].goal == QOS_BEST_EFFORT;
	}
	return nr && setup->tenants[i].goal == QOS_BEST_EFFORT ? lenders[nr_before % nr] :
								 QOS_MAX_TENANTS;
}

/* Returns the name with which a watcher finds the processes of tenant @i. */
static const char *job_of(const struct control *c, unsigned int i)
{
	return *c->setup.specs[i].job ? c->setup.specs[i].job : c->setup.tenants[i].name;
}

void lend_open(struct control *c, unsigned int i)
{
	const unsigned int lender = qos_lender_of(&c->setup, i);
	struct live_tenant *t = &c->live.tenants[i];
	struct lend_wishes *wishes = &t->lend;

	if (c->calibrating || (!c->setup.tenants[i].lend && lender == QOS_MAX_TENANTS))
		return;
	if (gpupart_report_open(cmd_gp, &t->report, &t->report_id)) {
		t->report = NULL;
		remark("%s: does not lend and does not borrow TPCs: %s", t->name,
		       gpupart_error(cmd_gp));
		return;
	}
	if (lender == QOS_MAX_TENANTS)
		return;
	*wishes = (struct lend_wishes){
		.job = job_of(c, lender), .borrower = t->name,
		/* The watcher sets the bound together with the limit. */
		.depth_ns = QOS_LEND_MOST, .nr_weight = c->setup.tenants[i].weight ?: 1,
	};
	lend_prepare(wishes, t->report);
}

/* Reads the report of the run that started @t. All processes of a run have the same report. */
static bool read_lending(const struct live_tenant *t, struct gpupart_lending *lending)
{
	const char *id = t->report ? t->report_id : t->nr_members ? t->members[0].report : "";

	return *id && !gpupart_lending_get(NULL, id, lending);
}

bool lend_borrows(const struct live_tenant *t, struct gpupart_lending *lending)
{
	for (unsigned int m = 0; m < t->nr_members; m++)
		if (*t->members[m].report &&
		    !gpupart_lending_get(NULL, t->members[m].report, lending) && *lending->lender)
			return true;
	return false;
}

/*
 * A running program cannot begin to borrow. To borrow, a program must observe each launch from its
 * start.
 */
static void begin_adopted(struct live_tenant *t, const char *lender)
{
	const char *id = t->nr_members ? t->members[0].report : "";
	struct gpupart_lending lending;

	if (lend_borrows(t, &lending))
		t->borrowed = lending.counts.lent;
	else if (*id && gpupart_lending_get(NULL, id, &lending))
		remark(
			"%s: borrows no TPCs, because the command that started it has ended: restart the program",
		       t->name);
	else
		remark(
			"%s: borrows no TPCs, because another command started it without --lend: use 'gpupart run --lend %s'",
		       t->name, lender);
}

void lend_begin(struct control *c)
{
	struct lend_orders *orders = NULL;

	for (unsigned int i = 0; i < c->setup.nr; i++) {
		const unsigned int lender = qos_lender_of(&c->setup, i);
		struct live_tenant *t = &c->live.tenants[i];

		if (lender == QOS_MAX_TENANTS)
			continue;
		if (!t->report) {
			if (t->adopted)
				begin_adopted(t, job_of(c, lender));
			continue;
		}
		if (!orders)
			orders = mmap(NULL, QOS_MAX_TENANTS * sizeof(*orders),
				      PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		if (orders == MAP_FAILED) {
			remark("nothing is lent: %s", strerror(errno));
			return;
		}
		c->orders = orders;
		t->lend.orders = &orders[lender];
		fflush(NULL);
		t->watcher = lend_watch((struct args *)c->live.args, &t->lend, t->report,
					t->report_id);
	}
}

void lend_order(struct control *c, const struct qos_decision *decision)
{
	for (unsigned int i = 0; c->orders && i < c->setup.nr; i++)
		if (c->setup.tenants[i].lend) {
			atomic_store(&c->orders[i].until_ns,
				     process_now_ns() + 1000000 * control_hold_ms(c));
			atomic_store(&c->orders[i].limit_ns, decision->tenants[i].lend_ns);
		}
}

void lend_take(struct control *c, unsigned int i, struct qos_measured *measured)
{
	struct live_tenant *t = &c->live.tenants[i];
	const uint64_t before = t->borrowed;
	struct gpupart_lending lending;

	measured->lent = t->lent;
	t->lent = false;
	if (!read_lending(t, &lending))
		return;
	t->lent = lending.nr_borrowers;
	t->borrowed = lending.counts.lent;
	measured->lent |= t->lent;
	measured->borrowed = t->borrowed > before ? t->borrowed - before : 0;
}

void lend_close(struct control *c)
{
	for (unsigned int i = 0; i < c->live.nr; i++) {
		struct live_tenant *t = &c->live.tenants[i];

		if (!t->watcher)
			continue;
		kill(t->watcher, SIGKILL);
		waitpid(t->watcher, NULL, 0);
		t->watcher = 0;
		/* The program may run on. */
		gpupart_lend_bound(t->report, QOS_LEND_MOST, 0);
	}
}
