// SPDX-License-Identifier: MIT
/*
 * This code is for a run that borrows TPCs. The code watches the lender, which is the program
 * that lends these TPCs. If another process truncates the lender's files, nothing is lent.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "lib/confine/report.h"
#include "lib/core/clock.h"
#include "lib/core/environment.h"
#include "lib/private.h"
#include "lib/records/records.h"
#include "lib/state/grant.h"
#include "lib/state/job.h"

#define LEASE_NS	50000000ull
#define MEASURE_NS	1000000		/* time for the first measurement of the counter's rate */
#define LIMITS_NS	100000000ull	/* time between two checks of this run's limits */
#define TURN_NS		10000000ull	/* idle time of the lender in a turn of weight 1 */
#define NEVER		UINT64_MAX

struct gpupart_lender {
	struct lend_memory *own;
	struct report_memory *memory;	/* of the lender */
	uint64_t attached;		/* value of @attached before the search for the lender's
					 * processes */
	/* the lender's TPCs, the TPCs that this run may borrow, the TPCs that the caller allows */
	struct gpupart_tpcset tpcs, lent, within;
	unsigned int nr;
	struct gpupart_remote *remotes[GPUPART_LENDER_MAX];
	struct gpupart_records_reader *readers[GPUPART_LENDER_MAX];
	uint64_t counter, ns;		/* CPU counter and time when the lender was opened */
	uint64_t limits_ns;		/* time of the last check of this run's limits */
	unsigned int place;		/* index of this run among the lender's borrowers */
	uint64_t renewed;		/* the time that this run wrote at its place */
	uint64_t looked_ns, used_ns;	/* time of the latest call of has_turn(), and idle time of
					 * the lender in this turn */
	uint64_t ends_ns;		/* 0 during the turn; NEVER while TPCs are still lent
					 * after the turn; then the time when the next borrower
					 * gets the turn */
	uint64_t longest_ns; /* maximum time for which launches of this turn may be outstanding */
	char pci[20];
};

/* Converts the public type of @report to struct memfd. */
static struct lend_memory *lend_of(const struct gpupart_report *report)
{
	return &((struct report_memory *)((const struct memfd *)report)->head)->lend;
}

void gpupart_lend_name(struct gpupart_report *report, const char *job, unsigned int weight)
{
	struct lend_memory *lend = lend_of(report);

	snprintf(lend->name, sizeof(lend->name), "%s", job);
	lend->weight = weight;
}

void gpupart_lend_bound(struct gpupart_report *report, uint64_t depth_ns, uint64_t limit_ns)
{
	struct lend_memory *own = lend_of(report);

	if (own->depth_ns == depth_ns && own->limit_ns == limit_ns)
		return;
	/* A watcher that was killed may have left an odd number. */
	atomic_fetch_or(&own->number, 1);
	own->depth_ns = depth_ns;
	own->limit_ns = limit_ns;
	atomic_fetch_add(&own->number, 1);
}

int gpupart_lending_get(struct gpupart *gp, const char *id, struct gpupart_lending *lending)
{
	struct report_memory *memory;
	const struct lend_memory *lend;
	struct lend_lender lender;
	int err = report_map(gp, id, &memory);
	uint64_t now = clock_monotonic_ns(), number;

	if (err)
		return err;
	lend = &memory->lend;
	/* The program may write any value. So limit the values to the range of a JSON number. */
	*lending = (struct gpupart_lending){
		.depth_ns = lend->depth_ns & INT64_MAX, .limit_ns = lend->limit_ns & INT64_MAX,
		.counts = {
			.lent = atomic_load(&lend->lent) & INT64_MAX,
			.revoked = atomic_load(&lend->revoked) & INT64_MAX,
			.waited = atomic_load(&lend->waited) & INT64_MAX,
			.expired = atomic_load(&lend->expired) & INT64_MAX,
			.unbounded = atomic_load(&lend->unbounded) & INT64_MAX,
		},
	};
	memcpy(lending->lender, lend->name, sizeof(lending->lender));
	memfd_clean(lending->lender, sizeof(lending->lender));
	number = atomic_load(&lend->number);
	lender = lend->lender;
	atomic_thread_fence(memory_order_acquire);
	/*
	 * While the watcher changes the lender, nothing is lent. If the watcher was stopped or
	 * killed, its lease has expired.
	 */
	if (!(number & 1) && atomic_load(&lend->number) == number && *lender.report &&
	    records_counter() < atomic_load(&lend->lease)) {
		memcpy(lending->pci, lender.pci, sizeof(lending->pci));
		memfd_clean(lending->pci, sizeof(lending->pci));
		lending->tpcs = lender.tpcs;
	}
	for (unsigned int n = 0; n < LEND_MAX_BORROWERS; n++)
		lending->nr_borrowers += atomic_load(&lend->borrowers[n]) >= now;
	munmap(memory, sizeof(*memory));
	return 0;
}

/*
 * If the run of @lender itself borrows, returns -EBUSY. The result does not depend on the limit, so
 * that borrowers cannot form a cycle.
 */
static int refuse_borrower(struct gpupart *gp, const struct gpupart_lender *lender)
{
	return lender->memory->lend.limit_ns || *lender->memory->lend.name ?
	       ctx_fail(gp, -EBUSY, "the lender itself borrows TPCs") : 0;
}

/*
 * Adds a process of the lender. Several processes lend the union of their sets. While one process
 * is busy, the lender lends nothing.
 */
static int add_process(struct gpupart *gp, struct gpupart_lender *lender, int pid, const char *pci)
{
	struct gpupart_remote *remote = NULL;
	struct gpupart_tpcset set;
	int err = gpupart_remote_open(gp, pid, pci, &remote) ?:
		  gpupart_remote_get(gp, remote, &set);

	if (!err && gpupart_tpcset_empty(&set))
		err = ctx_fail(gp, -EINVAL, "process %d has no set that it could lend", pid);
	err = err ?: gpupart_records_open(gp, pid, pci, &lender->readers[lender->nr]);
	if (err) {
		gpupart_remote_close(remote);
		return err;
	}
	lender->remotes[lender->nr++] = remote;
	lender->tpcs = gpupart_tpcset_or(&lender->tpcs, &set);
	gpupart_remote_lends(remote);
	return 0;
}

/*
 * Finds a free place among the lender's borrowers. An earlier borrower at this place may have
 * been killed.
 */
static int take_place(struct gpupart *gp, struct gpupart_lender *lender)
{
	uint64_t now = clock_monotonic_ns(), until;

	for (lender->place = 0; lender->place < LEND_MAX_BORROWERS; lender->place++) {
		_Atomic uint64_t *place = &lender->memory->lend.borrowers[lender->place];

		until = atomic_load(place);
		lender->renewed = now + LEASE_NS;
		if (until >= now || !atomic_compare_exchange_strong(place, &until, lender->renewed))
			continue;
		/*
		 * This run may have had the same lender before, and may still have outstanding
		 * launches.
		 */
		until = atomic_load(&lender->memory->lend.until);
		if (until == lender->own->claimed && until > now)
			lender->longest_ns = until - now;
		return 0;
	}
	return ctx_fail(gp, -ENOSPC, "it lends to %d other runs already", LEND_MAX_BORROWERS);
}

/*
 * Keeps this run's place for a further LEASE_NS, or frees the place. If another borrower took the
 * place because this watcher was stopped for longer, returns -EAGAIN.
 */
static int renew_place(struct gpupart_lender *lender, uint64_t until)
{
	uint64_t was = lender->renewed;

	lender->renewed = until;
	return atomic_compare_exchange_strong(&lender->memory->lend.borrowers[lender->place], &was,
					      until) ? 0 : -EAGAIN;
}

/*
 * Returns the next borrower that still runs. If no other borrower still runs, returns this
 * borrower.
 */
static unsigned int find_next(const struct gpupart_lender *lender, uint64_t now)
{
	unsigned int place = lender->place;

	do
		place = (place + 1) % LEND_MAX_BORROWERS;
	while (place != lender->place && atomic_load(&lender->memory->lend.borrowers[place]) < now);
	return place;
}

/*
 * This borrower may launch until @lease_ns. The function makes all other borrowers wait until
 * these launches have ended. If another borrower took the turn while this watcher was stopped,
 * the function returns false.
 */
static bool claim(struct gpupart_lender *lender, uint64_t until, uint64_t lease_ns)
{
	uint64_t ends = lease_ns + lender->longest_ns;

	if (!atomic_compare_exchange_strong(&lender->memory->lend.until, &until, ends))
		return false;
	lender->own->claimed = ends;
	return true;
}

/*
 * Returns true if this borrower has the turn. If the borrower with the turn has ended, the
 * function takes the turn. While launches of another borrower may still run on lent TPCs, the
 * function returns false.
 */
static bool holds_turn(struct gpupart_lender *lender, uint64_t until, uint64_t now)
{
	struct lend_memory *lends = &lender->memory->lend;
	uint64_t turn = atomic_load(&lends->turn);

	if (until != lender->own->claimed && now < until)
		return false;
	return turn == lender->place ||
	       ((turn >= LEND_MAX_BORROWERS || atomic_load(&lends->borrowers[turn]) < now) &&
		atomic_compare_exchange_strong(&lends->turn, &turn, lender->place));
}

/*
 * Returns true if this borrower may borrow now. A turn ends when the lender was idle for a fixed
 * time in total. Then this borrower's launches on lent TPCs must end. After that, the next turn
 * begins.
 */
static bool has_turn(struct gpupart_lender *lender, bool idle)
{
	struct lend_memory *lends = &lender->memory->lend, *own = lender->own;
	uint64_t now = clock_monotonic_ns(), since = now - lender->looked_ns;
	uint64_t until = atomic_load(&lends->until), turn = lender->place, most;
	unsigned int next = find_next(lender, now);

	lender->looked_ns = now;
	if (!holds_turn(lender, until, now)) {
		lender->used_ns = lender->ends_ns = lender->longest_ns = 0;
		return false;
	}
	/* Launches on lent TPCs may be queued after launches on the run's own TPCs. */
	most = own->depth_ns > own->limit_ns ? own->depth_ns : own->limit_ns;
	lender->longest_ns = lender->longest_ns > most ? lender->longest_ns : most;
	lender->used_ns += idle ? since : 0;
	if (next == lender->place)
		lender->used_ns = lender->ends_ns = 0;
	if (!lender->ends_ns && lender->used_ns < TURN_NS * (own->weight ? own->weight : 1))
		return claim(lender, until, now + LEASE_NS);
	/*
	 * TPCs are still lent until the caller writes @idle. So the pause begins at the next
	 * call.
	 */
	if (!lender->ends_ns || lender->ends_ns == NEVER)
		lender->ends_ns = lender->ends_ns ? now + lender->longest_ns : NEVER;
	if (now < lender->ends_ns)
		return false;
	lender->used_ns = lender->ends_ns = lender->longest_ns = 0;
	if (claim(lender, until, now))
		atomic_compare_exchange_strong(&lends->turn, &turn, next);
	return false;
}

/*
 * Sets @set to the TPCs of the lender that this run may use. The user's grants must allow these
 * TPCs. The current limit of the outer run must also allow them. If there is no such TPC, returns
 * -EPERM.
 */
static int find_lent(struct gpupart *gp, struct gpupart_lender *lender, struct gpupart_tpcset *set)
{
	const char *job = environment_read().job;
	struct gpupart_tpcset outer;
	struct grant_limit given;

	lender->limits_ns = clock_monotonic_ns();
	*set = gpupart_tpcset_and(&lender->within, &lender->tpcs);
	if (job && job_limit(job, lender->pci, &outer))
		*set = gpupart_tpcset_and(set, &outer);
	if (gpupart_tpcset_empty(set))
		return ctx_fail(gp, -EPERM,
				"the limit of the outer run contains none of the lender's TPCs");
	if (gpupart_grant_exempts(geteuid()) || !grant_limit(geteuid(), lender->pci, NULL, &given))
		return 0;
	*set = gpupart_tpcset_and(set, &given.tpcs);
	return gpupart_tpcset_empty(set) ?
	       ctx_fail(gp, -EPERM, "none of the lender's TPCs on %s were granted to this user",
			lender->pci) : 0;
}

/*
 * Publishes the lender to the processes of the run. When @number changes, these processes read
 * the lender again.
 */
static void show(struct lend_memory *own, const char *id, const char *pci,
		 const struct gpupart_tpcset *tpcs)
{
	atomic_store(&own->lease, 0);
	atomic_store(&own->idle, NEVER);
	atomic_fetch_or(&own->number, 1);
	own->lender = (struct lend_lender){ .tpcs = *tpcs };
	memcpy(own->lender.report, id, strnlen(id, sizeof(own->lender.report) - 1));
	memcpy(own->lender.pci, pci, strnlen(pci, sizeof(own->lender.pci) - 1));
	atomic_fetch_add(&own->number, 1);
}

int gpupart_lender_open(struct gpupart *gp, struct gpupart_report *report, const char *id,
			const char *pci, const int *pids, unsigned int nr,
			const struct gpupart_tpcset *within, struct gpupart_lender **opened)
{
	struct gpupart_lender *lender = calloc(1, sizeof(*lender));
	int err;

	if (!lender)
		return ctx_fail(gp, -ENOMEM, "out of memory for a lender");
	lender->own = lend_of(report);
	lender->place = LEND_MAX_BORROWERS;
	snprintf(lender->pci, sizeof(lender->pci), "%s", pci);
	lender->within = within ? *within : gpupart_tpcset_first(GPUPART_MAX_TPCS);
	lender->counter = records_counter();
	lender->ns = lender->looked_ns = clock_monotonic_ns();
	err = report_map(gp, id, &lender->memory) ?: refuse_borrower(gp, lender);
	/*
	 * Set @lends first. If a process starts now, it sees @lends, or the code below finds the
	 * process.
	 */
	if (!err) {
		atomic_store(&lender->memory->lend.lends, 1);
		lender->attached = atomic_load(&lender->memory->lend.attached);
	}
	for (unsigned int n = 0; !err && n < nr && n < GPUPART_LENDER_MAX; n++) {
		err = add_process(gp, lender, pids[n], pci);
		/*
		 * If a process does not use this GPU, it is never busy on this GPU, so skip the
		 * process.
		 */
		if (err == -ENODEV && (n + 1 < nr || lender->nr))
			err = 0;
	}
	err = err ?: find_lent(gp, lender, &lender->lent) ?: take_place(gp, lender);
	if (err) {
		gpupart_lender_close(lender);
		return err;
	}
	nanosleep(&(struct timespec){ .tv_nsec = MEASURE_NS }, NULL);
	show(lender->own, id, pci, &lender->lent);
	*opened = lender;
	return 0;
}

/*
 * Checks that the lender's processes and their TPCs did not change. Also checks that this user's
 * grants still allow these TPCs.
 */
static int check_same(struct gpupart *gp, struct gpupart_lender *lender)
{
	struct gpupart_tpcset all = { { 0 } }, set;
	int err;

	for (unsigned int n = 0; n < lender->nr; n++) {
		err = gpupart_remote_get(gp, lender->remotes[n], &set);
		if (err)
			return err;
		all = gpupart_tpcset_or(&all, &set);
	}
	if (atomic_load(&lender->memory->lend.attached) != lender->attached ||
	    !gpupart_tpcset_equal(&lender->tpcs, &all))
		return -EAGAIN;
	if (clock_monotonic_ns() - lender->limits_ns > LIMITS_NS) {
		err = find_lent(gp, lender, &set);
		if (err || !gpupart_tpcset_equal(&set, &lender->lent))
			return err ?: -EAGAIN;
	}
	return refuse_borrower(gp, lender);
}

int gpupart_lender_update(struct gpupart *gp, struct gpupart_lender *lender)
{
	struct lend_memory *own = lender->own;
	uint64_t last = atomic_load(&lender->memory->lend.busy), counter = records_counter();
	double rate = (double)(counter - lender->counter) / (clock_monotonic_ns() - lender->ns);
	int busy = check_same(gp, lender) ?: renew_place(lender, clock_monotonic_ns() + LEASE_NS);

	for (unsigned int n = 0; !busy && n < lender->nr; n++)
		busy = gpupart_records_busy(gp, lender->readers[n]);
	if (busy >= 0 && !has_turn(lender, !busy))
		busy = 1;
	/*
	 * When the record of a later launch becomes visible, that launch writes a different
	 * number to @busy.
	 */
	atomic_store(&own->idle, busy ? NEVER : last);
	atomic_store(&own->lease, busy < 0 ? 0 : counter + (uint64_t)(LEASE_NS * rate));
	return busy < 0 ? busy : !busy;
}

void gpupart_lender_close(struct gpupart_lender *lender)
{
	if (!lender)
		return;
	show(lender->own, "", "", &(struct gpupart_tpcset){ { 0 } });
	if (lender->place < LEND_MAX_BORROWERS) {
		if (lender->longest_ns)
			claim(lender, lender->own->claimed, clock_monotonic_ns());
		renew_place(lender, 0);
	}
	for (unsigned int n = 0; n < lender->nr; n++) {
		gpupart_remote_close(lender->remotes[n]);
		gpupart_records_close(lender->readers[n]);
	}
	if (lender->memory)
		munmap(lender->memory, sizeof(*lender->memory));
	free(lender);
}
