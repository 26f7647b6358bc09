// SPDX-License-Identifier: MIT
/*
 * Tests when the parent of a program scans /proc. Other users can open the driver's device all the
 * time, and have many processes. Each ms of the test is one iteration of a loop.
 */
#include "tests/tap.h"
#include "cli/start/run_parent.c"

void __wrap_witness_look(struct witness *witness, int root, bool simulated);
bool __wrap_witness_woken(int watch);
long __wrap_process_now_ms(void);
clock_t __wrap_clock(void);

static const struct run_wishes strict = { .strict = true };
static struct args args;
static long now, cpu, cost_us, gap, scanned_at;
static unsigned int nr_scans, nr_calls;
static bool opened;

void __wrap_witness_look(struct witness *witness, int root, bool simulated)
{
	(void)witness;
	(void)root;
	(void)simulated;
	gap = now - scanned_at > gap ? now - scanned_at : gap;
	scanned_at = now;
	cpu += cost_us;
	now += cost_us / 1000;
	nr_scans++;
}

bool __wrap_witness_woken(int watch)
{
	bool was = opened;

	(void)watch;
	opened = false;
	return was;
}

long __wrap_process_now_ms(void)
{
	return now;
}

clock_t __wrap_clock(void)
{
	return cpu;
}

/*
 * Calls look() like parent_wait() for @ms. If @opens is true, the device is opened in each ms. The
 * kernel sends SIGIO for an open only if no open is waiting to be read.
 */
static void wait_ms(struct run *run, long ms, bool opens)
{
	static long next;
	long end = now + ms;

	nr_scans = nr_calls = gap = 0;
	scanned_at = now;
	for (; now < end; now++) {
		if (opens && !opened) {
			opened = true;
			next = now;
		}
		if (now >= next) {
			nr_calls++;
			next = look(run, 1);
			next += now;
		}
	}
}

int main(void)
{
	static struct run run = { .args = &args, .wishes = &strict };
	long spent;

	if (gpupart_open(&cmd_gp) || gpupart_report_open(cmd_gp, &run.report, &run.id))
		return 1;
	now = 1000000;
	wait_ms(&run, 60000, false);
	tap_ok(gap <= 2000 && nr_scans <= 40, "no opens: %u scans in 60 s, every %ld ms", nr_scans,
	       gap);
	opened = true;
	wait_ms(&run, 21 + STRICT_EVERY, false);
	tap_ok(nr_scans >= 1, "an open causes a scan");
	wait_ms(&run, 50, false);
	tap_ok(nr_scans >= 1, "and another one");
	cost_us = 1000;
	wait_ms(&run, 60000, true);
	tap_ok(gap <= LOOK_LEAST + 1, "cheap scans: one at least every %ld ms", gap);
	tap_ok(nr_calls < 6000, "opens woke the parent %u times in 60 s", nr_calls);
	cost_us = 30000;
	spent = cpu;
	wait_ms(&run, 60000, true);
	spent = cpu - spent;
	tap_ok(spent < 60000000 / 18, "costly scans: %ld us of CPU time in 60 s", spent);
	tap_ok(gap <= 2000, "one at least every %ld ms", gap);
	cost_us = 500000;
	wait_ms(&run, 60000, true);
	tap_ok(gap <= 2000 + STRICT_EVERY, "with --strict, very costly ones, too: %ld ms", gap);
	return tap_done();
}
