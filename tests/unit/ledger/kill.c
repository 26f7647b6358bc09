// SPDX-License-Identifier: MIT
/*
 * Runs a thousand processes that join, charge and release. Each process is killed at a random
 * moment. Immediately after each kill, the ledger must have exactly the charges of the living
 * processes. The rest of the quota must be available.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "lib/core/state_dir.h"
#include "lib/ledger/file.h"
#include "tests/ledger_leave.h"
#include "tests/tap.h"

#define GPU	"0000:0d:00.0"
#define QUOTA	10000
#define OWN	1000		/* charge of this process during the whole test */
#define ROUNDS	500		/* two processes are killed in each round */

static char tenant[LEDGER_NAME_LEN];

/* Does all operations of a program on its ledger, until the process is killed. */
static void work(unsigned int seed)
{
	struct ledger *ledger;
	char pci[LEDGER_PCI_LEN];
	int gpu;

	for (;;) {
		if (ledger_join(tenant, &ledger))
			_exit(1);
		/* The number of GPUs increases with each round until it reaches the maximum. */
		snprintf(pci, sizeof(pci), "0000:%02x:00.1", rand_r(&seed) % 20);
		ledger_gpu(ledger, pci);
		gpu = ledger_gpu(ledger, GPU);
		for (int i = rand_r(&seed) % 2000; i; i--) {
			uint64_t bytes = rand_r(&seed) % 6000;

			if (!ledger_charge(ledger, gpu, bytes) && rand_r(&seed) % 4)
				ledger_release(ledger, gpu, bytes);
			else if (i % 100 == 0)
				ledger_release(ledger, gpu, QUOTA);
			if (i % 500 == 0)
				ledger_used(ledger, gpu);
		}
		/*
		 * Usually the process leaves the ledger. In some rounds, the process only forgets
		 * its pointer and stays in the ledger until it is killed.
		 */
		if (rand_r(&seed) % 8)
			ledger_leave(ledger, rand_r(&seed) % 2);
	}
}

static pid_t start(unsigned int *seed)
{
	unsigned int own = rand_r(seed);
	pid_t pid = fork();

	if (!pid)
		work(own);
	return pid;
}

static void kill_it(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/*
 * The list must never show more memory than the quota, must never show a dead process, and must
 * always show this process.
 */
static bool look(pid_t dead, bool alone)
{
	struct ledger_view *view;
	uint64_t used = 0, ours = 0;
	bool good = true;

	if (ledger_read(geteuid(), tenant, &view))
		return false;
	for (unsigned int gpu = 0; gpu < view->nr_gpus; gpu++) {
		if (strcmp(view->gpus[gpu].pci, GPU))
			continue;
		used = view->gpus[gpu].used;
		for (unsigned int i = 0; i < view->nr_processes; i++)
			if (view->processes[i].pid == getpid())
				ours = view->processes[i].used[gpu];
	}
	for (unsigned int i = 0; i < view->nr_processes; i++)
		good = good && view->processes[i].pid != dead;
	good = good && ours == OWN && used >= OWN;
	/*
	 * Between two reads, other processes join and leave. So only unchanged values are exact.
	 */
	good = good && (!alone || (used == OWN && view->nr_processes == 1));
	if (!good)
		printf("# %llu bytes of %u processes, %llu ours\n", (unsigned long long)used,
		       view->nr_processes, (unsigned long long)ours);
	free(view);
	return good;
}

int main(void)
{
	const char *given = getenv("LEDGER_SEED");
	unsigned int seed = given ? strtoul(given, NULL, 10) : (unsigned int)time(NULL);
	int wrong_look = 0, wrong_one = 0, wrong_all = 0, wrong_quota = 0, gpu;
	struct ledger *ledger;
	char path[200];

	printf("# LEDGER_SEED=%u\n", seed);
	snprintf(tenant, sizeof(tenant), "test-kill-%d", getpid());
	if (!tap_ok(!ledger_join(tenant, &ledger), "joined"))
		return tap_done();
	gpu = ledger_gpu(ledger, GPU);
	ledger_set_quota(ledger, gpu, QUOTA, NULL);
	ledger_charge(ledger, gpu, OWN);
	for (int round = 0; round < ROUNDS; round++) {
		pid_t one = start(&seed), other = start(&seed);

		usleep(rand_r(&seed) % 2000);
		wrong_look += !look(0, false);
		kill_it(one);
		wrong_one += !look(one, false);
		usleep(rand_r(&seed) % 300);
		kill_it(other);
		wrong_all += !look(other, true) || ledger_used(ledger, gpu) != OWN;
		/* No reservations and no locks of dead processes may remain. */
		wrong_quota += ledger_charge(ledger, gpu, QUOTA - OWN + 1) == 0;
		wrong_quota += ledger_charge(ledger, gpu, QUOTA - OWN) != 0;
		ledger_release(ledger, gpu, QUOTA - OWN);
	}
	tap_ok(!wrong_look, "two processes that charge and release are seen (wrong: %d of %d)",
	       wrong_look, ROUNDS);
	tap_ok(!wrong_one, "one is killed, and is not seen any more (wrong: %d)", wrong_one);
	tap_ok(!wrong_all, "both are killed: what is left is ours, exactly (wrong: %d)", wrong_all);
	tap_ok(!wrong_quota, "and all the rest can be had, and no more (wrong: %d)", wrong_quota);
	ledger_leave(ledger, true);
	snprintf(path, sizeof(path), STATE_DIR_ROOT "/gpupart-%u/mem-%s", geteuid(), tenant);
	tap_ok(access(path, F_OK), "no file is left");
	return tap_done();
}
