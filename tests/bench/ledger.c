// SPDX-License-Identifier: MIT
/*
 * Measures the cost of memory accounting in nanoseconds. It measures queries. For several numbers
 * of processes in the tenant, it measures a charge and a release without contention. The results
 * are medians of blocks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include "lib/ledger/ledger.h"
#include "tests/ledger_leave.h"

#define NR_BLOCKS	41
#define NR_CALLS	20000
/* maximum time in ns for a charge or release with up to 8 processes */
#define LIMIT_NS	200

static double blocks[NR_BLOCKS];

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_RAW, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double say(const char *what, unsigned int nr)
{
	qsort(blocks, NR_BLOCKS, sizeof(blocks[0]), by_value);
	printf("%-28s %4u in the tenant   median %9.1f ns  (least %.1f, most %.1f)\n", what, nr,
	       blocks[NR_BLOCKS / 2], blocks[0], blocks[NR_BLOCKS - 1]);
	return blocks[NR_BLOCKS / 2];
}

#define TIME(nr_calls, call) do { \
	for (int b = 0; b < NR_BLOCKS; b++) { \
		uint64_t begin = now_ns(); \
		for (int i = 0; i < (nr_calls); i++) \
			call; \
		blocks[b] = (double)(now_ns() - begin) / (nr_calls); \
	} \
} while (0)

/* Like in real use, each process has one slot. All processes except the first process are idle. */
static bool measure(struct ledger *ledger, unsigned int nr)
{
	int gpu = ledger_gpu(ledger, "0000:0d:00.0"), bad = 0;
	double pair;

	ledger_set_quota(ledger, gpu, 1ull << 40, NULL);
	TIME(NR_CALLS, (bad += ledger_charge(ledger, gpu, 4096),
			ledger_release(ledger, gpu, 4096)));
	pair = say("a charge and a release", nr);
	TIME(NR_CALLS / 200, bad += !!ledger_used(ledger, gpu));
	say("what is used", nr);
	ledger_charge_always(ledger, gpu, 1ull << 40);
	TIME(NR_CALLS / 200, bad += !ledger_charge(ledger, gpu, 1));
	say("a charge that is refused", nr);
	ledger_release(ledger, gpu, 1ull << 40);
	if (!bad && (nr > 8 || pair < 2 * LIMIT_NS))
		return true;
	printf("%s\n", bad ? "something failed" : "above the limit");
	return false;
}

int main(void)
{
	static const unsigned int sizes[] = { 1, 8, 64 };
	struct ledger *ledgers[64];
	char tenant[LEDGER_NAME_LEN];
	unsigned int nr = 0;
	bool good = true;

	snprintf(tenant, sizeof(tenant), "bench-%d", getpid());
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (; nr < sizes[i]; nr++)
			if (ledger_join(tenant, &ledgers[nr]))
				return 1;
		good = measure(ledgers[0], nr) && good;
	}
	while (nr--)
		ledger_leave(ledgers[nr], true);
	return good ? 0 : 1;
}
