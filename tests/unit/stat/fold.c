// SPDX-License-Identifier: MIT
/* Sums from times: what ran, what was idle and why, how deep the queue was. */
#include <stdlib.h>
#include "lib/stat/fold.h"
#include "tests/tap.h"

static struct gpupart_stat_gpu sums;
static struct stat_fold *fold;

static void begin(void)
{
	sums = (struct gpupart_stat_gpu){ .nr_sms = 100 };
	free(fold);
	fold = calloc(1, sizeof(*fold));
	if (!fold)
		exit(1);
	fold->sums = &sums;
}

static void work(int64_t asked, int64_t submitted, int64_t start, int64_t end, bool copy)
{
	fold->work[fold->nr_work++] = (struct stat_work){
		.asked = asked, .submitted = submitted, .start = start, .end = end, .copy = copy,
	};
}

static void is_sum(const char *what, uint64_t got, uint64_t wanted)
{
	if (!tap_ok(got == wanted, "%s: %llu", what, (unsigned long long)wanted))
		printf("# got %llu\n", (unsigned long long)got);
}

static void test_idle(void)
{
	begin();
	work(0, 10, 10, 110, false);
	/* Submitted 90 after the GPU ran dry; then while it was busy, but held until 450. */
	work(190, 200, 200, 300, false);
	work(220, 230, 450, 500, false);
	fold->waits[fold->nr_waits++] = (struct stat_wait){ 100, 150 };
	fold->waits[fold->nr_waits++] = (struct stat_wait){ 140, 160 };
	stat_fold_end(fold, 530);
	is_sum("busy", sums.busy_ns, 250);
	is_sum("starved, with what came after the last", sums.starved_ns, 90 + 30);
	is_sum("held", sums.held_ns, 150);
	is_sum("starved while the CPU waited, waits that overlap counted once", sums.both_ns, 50);
	is_sum("all of it", sums.stretches_ns, 520);
	is_sum("timed", sums.timed, 3);
	/* A new stretch begins with its own first work: what was between is not looked at. */
	work(10000, 10010, 10010, 10020, false);
	stat_fold_end(fold, 10020);
	is_sum("a second stretch: all of it", sums.stretches_ns, 530);
	is_sum("a second stretch: starved as before", sums.starved_ns, 120);
}

static void test_overlap(void)
{
	begin();
	/* Two kernels at once, a copy beside their end and beyond; submitted in another order. */
	work(0, 1, 50, 200, false);
	work(1, 2, 0, 100, false);
	work(2, 3, 150, 300, true);
	stat_fold_batch(fold);
	is_sum("busy", sums.busy_ns, 300);
	is_sum("kernels", sums.kernels_ns, 200);
	is_sum("copies", sums.copies_ns, 150);
	/* The next batch goes on where this one ended; its first lies within what is known. */
	work(3, 4, 250, 310, false);
	work(4, 5, 310, 320, true);
	stat_fold_batch(fold);
	is_sum("on: busy", sums.busy_ns, 320);
	is_sum("on: kernels", sums.kernels_ns, 260);
	is_sum("on: copies", sums.copies_ns, 160);
	is_sum("on: nothing idle", sums.starved_ns + sums.held_ns, 0);
}

static void test_depth(void)
{
	uint64_t many = 0;

	begin();
	/* 300 submitted at once, 1 us apart, of 1 ms each: the n'th finds n before it. */
	for (int i = 0; i < 300; i++)
		work(i * 1000, i * 1000 + 500, i * 1000000, (i + 1) * 1000000, false);
	stat_fold_batch(fold);
	is_sum("at most", sums.depth_max, 299);
	is_sum("sum", sums.depth_sum, 299 * 300 / 2);
	is_sum("none was blocked", sums.blocked_ns, 0);
	/* Of the 300, 10 are over by then; what is asked for takes long: there is no room. */
	work(10000000, 10900000, 300000000, 301000000, false);
	stat_fold_batch(fold);
	is_sum("of the next batch", sums.depth_sum, 299 * 300 / 2 + 290);
	is_sum("blocked", sums.blocked_ns, 900000);
	/* As long, with little before it, is no lack of room. */
	work(300500000, 301400000, 301400000, 301500000, false);
	stat_fold_batch(fold);
	is_sum("not blocked", sums.blocked_ns, 900000);
	for (int i = 0; i < GPUPART_STAT_NR_DEPTHS; i++)
		many += sums.depths[i];
	is_sum("each in one place", many, 302);
	is_sum("one found none: the first", sums.depths[0], 1);
	for (int i = 1; i < GPUPART_STAT_NR_DEPTHS; i++)
		if (gpupart_stat_depth(i) <= gpupart_stat_depth(i - 1))
			many = 0;
	tap_ok(many, "places rise");
	is_sum("exact up to 16, then two a power of two", gpupart_stat_depth(16), 16);
	is_sum("then", gpupart_stat_depth(17), 24);
	is_sum("then", gpupart_stat_depth(18), 32);
	/* 24 to 31 have one place: 8 of the 300. */
	is_sum("the place of 24", sums.depths[17], 8);
}

/* More than there is room for is not lost, batch after batch. */
static void test_batches(void)
{
	begin();
	for (int64_t i = 0; i < 5 * STAT_BATCH; i++) {
		if (fold->nr_work == STAT_BATCH)
			stat_fold_batch(fold);
		work(i, i, i * 10, i * 10 + 5, false);
	}
	stat_fold_end(fold, 0);
	is_sum("busy", sums.busy_ns, 5 * STAT_BATCH * 5);
	is_sum("held", sums.held_ns, (5 * STAT_BATCH - 1) * 5);
	is_sum("timed", sums.timed, 5 * STAT_BATCH);
}

int main(void)
{
	test_idle();
	test_overlap();
	test_depth();
	test_batches();
	return tap_done();
}
