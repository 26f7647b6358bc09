// SPDX-License-Identifier: MIT
/*
 * Tests the time at which the TPCs of a tenant may get a new owner. The records of the tenant's
 * processes determine this time. Without records, the reports of the processes or a fixed delay
 * determine this time. Tests also that each request counts, whether or not TPCs were moving.
 */
#include <errno.h>
#include "cli/qos/live.h"
#include "lib/private.h"
#include "tests/tap.h"

#define DRAIN_NS	100
#define MOST_NS		500

static uint64_t now_ns;
static int results[3];		/* data of the records of each process, by address */
static unsigned int asked[3];

uint64_t __wrap_process_now_ns(void);
int __wrap_gpupart_records_drained(struct gpupart *gp, struct gpupart_records_reader *reader);

uint64_t __wrap_process_now_ns(void)
{
	return now_ns;
}

int __wrap_gpupart_records_drained(struct gpupart *gp, struct gpupart_records_reader *reader)
{
	int *result = (int *)(void *)reader;

	(void)gp;
	asked[result - results]++;
	return *result;
}

/* The goal is in the middle of a bin of the histogram. */
static void requests(void)
{
	static struct live live = { .nr = 1, .socket = -1 };
	const struct qos_tenant tenant = { .goal = QOS_LATENCY, .latency_ns = 16500000,
					   .percentile = 990 };
	const struct qos_spec spec = { 0 };
	struct live_tenant *t = &live.tenants[0];
	struct qos_measured m;
	unsigned int short_bin = 0, bin = 0;

	while (gpupart_latency_least(short_bin + 1) <= 5000000)
		short_bin++;
	while (gpupart_latency_least(bin + 1) <= tenant.latency_ns)
		bin++;
	t->goal_ns = tenant.latency_ns;
	t->latencies[short_bin] = 10;
	t->latencies[bin + 1] = 3;
	live_restart(&live);
	t->latencies[short_bin] = 100;
	live_take(&live, 0, &tenant, &spec, 1, &m);
	tap_ok(m.nr == 100 && m.answered == 113 && m.within == 110,
	       "requests while TPCs moved count, but not in the epoch: %llu, %llu of %llu",
	       (unsigned long long)m.nr, (unsigned long long)m.within,
	       (unsigned long long)m.answered);
	t->latencies[bin] = 1000;
	live_take(&live, 0, &tenant, &spec, 1, &m);
	tap_ok(m.answered == 1000 && m.within == 1000 * (tenant.latency_ns -
	       gpupart_latency_least(bin)) / (gpupart_latency_least(bin + 1) -
	       gpupart_latency_least(bin)) && m.within > 200 && m.within < 800,
	       "of 1000 requests in the goal's bin, %llu", (unsigned long long)m.within);
	t->latencies[GPUPART_NR_LATENCIES - 1] = 5;
	live_take(&live, 0, &tenant, &spec, 1, &m);
	tap_ok(m.answered == 5 && !m.within, "none of the longest bin");
	t->goal_ns = UINT64_MAX;
	t->latencies[GPUPART_NR_LATENCIES - 1] = 5;
	live_take(&live, 0, &tenant, &spec, 1, &m);
	tap_ok(m.answered == 5 && !m.within, "whatever the goal is");
	t->goal_ns = 0;
	t->latencies[bin] = 5;
	live_take(&live, 0, &tenant, &spec, 1, &m);
	tap_ok(m.nr == 5 && !m.answered, "without a latency goal, no request is within it");
}

/* The program still uses its old TPCs, and no other tenant may get them. */
static void empty_set(struct live *live)
{
	const struct gpupart_tpcset none = { 0 };

	now_ns = 0;
	tap_ok(!live_set(live, 0, &none) && !live_drained(live, 0, DRAIN_NS, MOST_NS),
	       "an empty set: the old TPCs stay in use");
	now_ns = MOST_NS;
	tap_ok(!live_drained(live, 0, DRAIN_NS, MOST_NS), "for any time");
	live->tenants[0].gone = true;
	tap_ok(live_drained(live, 0, DRAIN_NS, MOST_NS), "until the program ends");
}

int main(void)
{
	static struct live_member members[3];
	static struct live live = { .nr = 1 };
	struct live_tenant *t = &live.tenants[0];

	t->members = members;
	t->nr_members = 3;
	for (int m = 0; m < 3; m++)
		members[m].records = (void *)&results[m];
	results[0] = 1;
	t->since_change = 2;
	now_ns = DRAIN_NS + 1;
	tap_ok(!live_drained(&live, 0, DRAIN_NS, MOST_NS),
	       "launches run: neither reports nor the time say that they have ended");
	results[1] = -ESRCH;
	results[2] = 0;
	tap_ok(!live_drained(&live, 0, DRAIN_NS, MOST_NS), "a process is gone, one is left");
	results[2] = 1;
	now_ns = 0;
	t->since_change = 0;
	tap_ok(live_drained(&live, 0, DRAIN_NS, MOST_NS), "all have ended: at once");
	tap_ok(asked[0] == 1 && asked[1] == 2, "who has drained is not asked again");
	members[1].drained = members[2].drained = false;
	results[1] = 0;
	results[2] = -ENODATA;
	tap_ok(!live_drained(&live, 0, DRAIN_NS, MOST_NS), "unknown: not at once");
	t->since_change = 2;
	tap_ok(live_drained(&live, 0, DRAIN_NS, MOST_NS), "but after two reports");
	t->since_change = 1;
	now_ns = DRAIN_NS;
	tap_ok(live_drained(&live, 0, DRAIN_NS, MOST_NS), "or after a time");
	members[2].records = NULL;
	now_ns = DRAIN_NS - 1;
	tap_ok(!live_drained(&live, 0, DRAIN_NS, MOST_NS), "without records not at once either");
	t->since_change = 2;
	tap_ok(live_drained(&live, 0, DRAIN_NS, MOST_NS), "and by the same rule");
	t->nr_members = 2;
	now_ns = MOST_NS - 1;
	tap_ok(!live_drained(&live, 0, DRAIN_NS, MOST_NS), "a kernel that does not end");
	now_ns = MOST_NS;
	tap_ok(live_drained(&live, 0, DRAIN_NS, MOST_NS), "does not delay the others for ever");
	empty_set(&live);
	requests();
	return tap_done();
}
