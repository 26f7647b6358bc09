// SPDX-License-Identifier: MIT
/*
 * Tests the delay that a waiting refused job causes for other jobs. It counts the runs of the
 * planner under the node's lock. It also measures a wait while another process holds the lock.
 * The node is made from a capture, and almost all of its GPU is allocated.
 */
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include "slurm/node_file.c"
#include "slurm/node_gpu.c"
#include "slurm/node_lock.c"
#include "slurm/options.c"
#include "slurm/allocate.c"
#include "tests/tap.h"

#define CAPTURE "tests/data/gh100-h200-e/capture.txt"

int __real_gpupart_plan_make(struct gpupart *gp, const struct gpupart_topology *topo,
			     const struct gpupart_tpcset *within,
			     const struct gpupart_demand *demands, unsigned int nr,
			     struct gpupart_plan *plan);
int __wrap_gpupart_plan_make(struct gpupart *gp, const struct gpupart_topology *topo,
			     const struct gpupart_tpcset *within,
			     const struct gpupart_demand *demands, unsigned int nr,
			     struct gpupart_plan *plan);

static unsigned int nr_plans, nr_locked;

static bool is_locked(void)
{
	int fd = open(NODE_LOCK, O_RDWR | O_CLOEXEC);
	bool locked = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB);

	if (fd >= 0)
		close(fd);
	return locked;
}

int __wrap_gpupart_plan_make(struct gpupart *gp, const struct gpupart_topology *topo,
			     const struct gpupart_tpcset *within,
			     const struct gpupart_demand *demands, unsigned int nr,
			     struct gpupart_plan *plan)
{
	nr_plans++;
	nr_locked += is_locked();
	return __real_gpupart_plan_make(gp, topo, within, demands, nr, plan);
}

unsigned int left_kill(struct left *left, unsigned int job, const struct gpupart_grant *grant,
		       const char **why)
{
	(void)left;
	(void)job;
	(void)grant;
	(void)why;
	return 0;
}

static bool make_node(void)
{
	struct node_gpu gpu = {
		.key = "0", .memory = 1ull << 36, .pci = "0000:01:00.0", .source = "rm",
	};
	char row[NODE_GPU_ROW];
	FILE *file;

	if (mkdir(NODE_GPU_FOLDER, 0755) ||
	    system("cp " CAPTURE " " NODE_GPU_FOLDER "/gpu-0.capture"))
		return false;
	node_gpu_row(&gpu, row);
	file = fopen(NODE_GPU_FILE, "w");
	return file && fputs(row, file) >= 0 && !fclose(file);
}

static int ask(unsigned int number, const char *text, struct gpupart_grant *grant)
{
	struct words words;
	struct allocate_job job = { .job = number, .uid = 4711, .words = &words, .asked = text };
	char why[512];

	nr_plans = nr_locked = 0;
	if (words_read(text, &words, why, sizeof(why)))
		return -EINVAL;
	return allocate_job(&job, grant, why, sizeof(why));
}

static double seconds_since(const struct timespec *begun)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec - begun->tv_sec + (now.tv_nsec - begun->tv_nsec) / 1e9;
}

/* Runs @what in a child after @ms. */
static pid_t later(void (*what)(void), unsigned int ms)
{
	const struct timespec pause = { ms / 1000, ms % 1000 * 1000000l };
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	nanosleep(&pause, NULL);
	what();
	_exit(0);
}

static void give_first_back(void)
{
	char why[512];

	give_back(1, why, sizeof(why));
}

static void hold_lock(void)
{
	const struct timespec pause = { .tv_sec = 7 };
	char why[512];

	if (node_lock(NODE_LOCK, 1, why, sizeof(why)) >= 0)
		nanosleep(&pause, NULL);
}

static void test_refused(void)
{
	struct gpupart_grant grant;

	tap_ok(!ask(1, "tpcs=60", &grant) && allocate_is_granted(&grant), "a job has nearly all");
	tap_ok(!ask(2, "tpcs=30,gpcs,ugpu,wait=2", &grant) && !allocate_is_granted(&grant) &&
	       strstr(grant.why, "there are no 30 free TPCs in whole GPCs in one uGPU"),
	       "the next one is refused: %s", grant.why);
	tap_ok(nr_plans > 10 && nr_locked <= 2,
	       "what would do was planned for without the lock: %u plans, %u with it", nr_plans,
	       nr_locked);
}

/* The second job waits for the end of the first job. */
static void test_wait(void)
{
	struct gpupart_grant grant, other;
	struct timespec begun;
	pid_t pid;

	allocate_find(2, &grant);
	clock_gettime(CLOCK_MONOTONIC, &begun);
	nr_plans = nr_locked = 0;
	allocate_wait(&grant, true);
	tap_ok(!allocate_is_granted(&grant) && strstr(grant.why, "no 30 free TPCs") &&
	       seconds_since(&begun) >= 2 && seconds_since(&begun) < 8 && nr_plans <= 40 &&
	       nr_locked == nr_plans,
	       "2 s of waiting are %u plans, and its reason is kept: %s", nr_plans, grant.why);
	ask(2, "tpcs=30,wait=14", &grant);
	pid = later(hold_lock, 0);
	later(give_first_back, 8000);
	allocate_wait(&grant, true);
	tap_ok(allocate_is_granted(&grant),
	       "another has the lock for 7 s: the wait outlasts it: %s", grant.why);
	waitpid(pid, NULL, 0);
	wait(NULL);
	other = grant;
	memset(&grant.set, 0, sizeof(grant.set));
	nr_plans = 0;
	allocate_wait(&grant, false);
	tap_ok(gpupart_tpcset_equal(&grant.set, &other.set) && !nr_plans,
	       "another task of the job finds what the first one got, and plans nothing");
}

int main(void)
{
	if (geteuid() || unshare(CLONE_NEWNS) ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("none", "/run", "tmpfs", 0, "mode=755")) {
		tap_skip("no /run of its own can be had here");
		return tap_done();
	}
	if (!tap_ok(make_node(), "a node with one GPU"))
		return tap_done();
	test_refused();
	test_wait();
	return tap_done();
}
