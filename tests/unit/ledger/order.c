// SPDX-License-Identifier: MIT
/*
 * A granted amount moves from a process's reservation to its usage. At the same time, other
 * processes add up reservations and usage. The amount may count one or two times, but never zero
 * times. After each memory access of one side, the other side runs.
 */
#include <stdatomic.h>
#include <stddef.h>

static void (*other)(void);

static inline void let_other_act(void)
{
	void (*act)(void) = other;

	other = NULL;
	if (act)
		act();
}

#undef atomic_load
#define atomic_load(from) \
	({ __auto_type value = atomic_load_explicit(from, memory_order_seq_cst); \
	   let_other_act(); value; })
#undef atomic_fetch_add
#define atomic_fetch_add(to, by) \
	({ __auto_type value = atomic_fetch_add_explicit(to, by, memory_order_seq_cst); \
	   let_other_act(); value; })
#undef atomic_fetch_sub
#define atomic_fetch_sub(from, by) \
	({ __auto_type value = atomic_fetch_sub_explicit(from, by, memory_order_seq_cst); \
	   let_other_act(); value; })
#include "lib/ledger/ledger.c"
#include "tests/tap.h"

static struct ledger_slot slot;
static struct sums sums;

static void get(void)
{
	grant(&slot.gpus[0], 1);
}

static void add_up(void)
{
	sum_slot(&slot, 0, &sums);
}

static void begin(void (*act)(void))
{
	memset(&slot, 0, sizeof(slot));
	memset(&sums, 0, sizeof(sums));
	slot.gpus[0].reserved = 1;
	other = act;
}

int main(void)
{
	begin(get);
	add_up();
	tap_ok(!other && slot.gpus[0].used == 1 && sums.used + sums.reserved >= 1,
	       "granted after the first load of a sum: it is in the sum");
	begin(add_up);
	get();
	tap_ok(!other && slot.gpus[0].used == 1 && sums.used + sums.reserved >= 1,
	       "a sum after the first step of a grant: it is in the sum");
	return tap_done();
}
