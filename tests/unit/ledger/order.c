// SPDX-License-Identifier: MIT
/*
 * What a process was granted moves from what it reserved to what it uses while others add both up:
 * it counts once or twice, never not at all.
 */
#include <pthread.h>
#include <stdatomic.h>

/* Each load takes a while, in which others write. */
static inline void wait_a_little(void)
{
	for (volatile int i = 0; i < 50; i++)
		;
}

#undef atomic_load
#define atomic_load(from) \
	({ __auto_type value = atomic_load_explicit(from, memory_order_seq_cst); \
	   wait_a_little(); value; })
#include "lib/ledger/ledger.c"
#include "tests/tap.h"

#define NR_GRANTS 4000000

static struct ledger_slot slot;
static atomic_ulong nr_asked;	/* reserved, and perhaps granted */
static atomic_bool done;

static void *ask_and_get(void *unused)
{
	for (unsigned long i = 1; i <= NR_GRANTS; i++) {
		atomic_fetch_add(&slot.gpus[0].reserved, 1);
		atomic_store(&nr_asked, i);
		grant(&slot.gpus[0], 1);
	}
	atomic_store(&done, true);
	return unused;
}

int main(void)
{
	unsigned long nr_sums = 0, nr_missed = 0, asked;
	struct sums sums;
	pthread_t thread;

	if (pthread_create(&thread, NULL, ask_and_get, NULL))
		return 1;
	while (!atomic_load(&done)) {
		asked = atomic_load(&nr_asked);
		sums = (struct sums){ 0, 0 };
		sum_slot(&slot, 0, &sums);
		nr_missed += sums.used + sums.reserved < asked;
		nr_sums++;
	}
	pthread_join(thread, NULL);
	tap_ok(!nr_missed, "%lu sums beside %d grants: %lu missed one", nr_sums, NR_GRANTS,
	       nr_missed);
	return tap_done();
}
