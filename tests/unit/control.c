// SPDX-License-Identifier: MIT
/*
 * Blocks of processes as one user shows them to another: what is no block must neither
 * hold the reader nor end it.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "control.h"
#include "tap.h"

static struct gpupart *gp;
static char folder[64], path[128];

/* Whether the list has this process in it, and how many there are of its pid. */
static int times_listed(void)
{
	static struct gpupart_process list[256];
	int nr = gpupart_process_list(gp, list, 256), mine = 0;

	for (int i = 0; i < nr && i < 256; i++)
		mine += list[i].pid == getpid() && !strcmp(list[i].name, "job");
	return nr < 0 ? nr : mine;
}

static void too_long(int signal)
{
	static const char words[] = "not ok - the reader waits for ever\n";

	(void)signal;
	unlink(path);
	if (write(1, words, sizeof(words) - 1) < 0)
		_exit(2);
	_exit(1);
}

/* A file in the folder that no process of ours made. */
static int put_file(const char *name, size_t size)
{
	char file[128];
	int fd;

	snprintf(file, sizeof(file), "%s/%s", folder, name);
	fd = open(file, O_RDWR | O_CREAT | O_TRUNC, 0600);
	return fd < 0 || ftruncate(fd, size) || close(fd);
}

/* More threads than lanes, all at once: some count in lane 0 together. */
#define NR_THREADS	(2 * CONTROL_NR_LANES)
#define NR_COUNTS	20000

static pthread_barrier_t all_there;

static void *count_some(void *unused)
{
	pthread_barrier_wait(&all_there);
	for (int i = 0; i < NR_COUNTS; i++)
		control_count(CONTROL_WIDENED_CLUSTER);
	/* None ends before all have counted: no lane comes free meanwhile. */
	pthread_barrier_wait(&all_there);
	return unused;
}

static uint64_t counted(void)
{
	struct gpupart_counters counters;

	gpupart_counters_get(&counters);
	return counters.widened_cluster;
}

static void test_threads(void)
{
	pthread_t threads[NR_THREADS];
	uint64_t before = counted();

	for (int round = 1; round <= 2; round++) {
		int nr = 0;

		pthread_barrier_init(&all_there, NULL, NR_THREADS);
		while (nr < NR_THREADS && !pthread_create(&threads[nr], NULL, count_some, NULL))
			nr++;
		if (nr < NR_THREADS) {
			tap_skip("only %d threads", nr);
			exit(tap_done());
		}
		while (nr)
			pthread_join(threads[--nr], NULL);
		tap_ok(counted() - before == (uint64_t)round * NR_THREADS * NR_COUNTS,
		       "%d threads lose no count, round %d", NR_THREADS, round);
		pthread_barrier_destroy(&all_there);
	}
	control_count(CONTROL_WIDENED_CLUSTER);
	tap_ok(control_lane, "a lane came free when its thread ended");
}

static void test_child(void)
{
	int status = 1;
	pid_t pid = fork();

	if (!pid) {
		bool fresh = !counted();

		control_count(CONTROL_WIDENED_CLUSTER);
		_exit(!(fresh && counted() == 1));
	}
	if (pid > 0)
		waitpid(pid, &status, 0);
	tap_ok(!status, "the child of a fork counts from 0, its parent's threads gone");
}

/* Somebody who was stopped while he set our limit. */
static void test_lock(void)
{
	char file[256], c;
	struct timespec begin, end;
	int told[2];
	pid_t pid;

	snprintf(file, sizeof(file), "%s/%d.%llx", folder, getpid(),
		 (unsigned long long)control_pid_namespace());
	if (!tap_ok(!pipe(told), "a pipe"))
		return;
	pid = fork();
	if (!pid) {
		int fd = open(file, O_RDWR);

		if (fd < 0 || flock(fd, LOCK_EX) || write(told[1], "x", 1) != 1)
			_exit(1);
		pause();
	}
	close(told[1]);
	if (!tap_ok(read(told[0], &c, 1) == 1, "another process holds the block"))
		return;
	clock_gettime(CLOCK_MONOTONIC, &begin);
	control_lock();
	control_unlock();
	clock_gettime(CLOCK_MONOTONIC, &end);
	tap_ok(end.tv_sec - begin.tv_sec >= 4 && end.tv_sec - begin.tv_sec < 20,
	       "it is passed by after a while");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	control_lock();
	control_unlock();
	clock_gettime(CLOCK_MONOTONIC, &end);
	tap_ok(end.tv_sec - begin.tv_sec < 4, "when it is gone there is nothing to wait for");
}

int main(void)
{
	signal(SIGALRM, too_long);
	alarm(60);
	snprintf(folder, sizeof(folder), "/dev/shm/gpupart-%u", geteuid());
	if (gpupart_open(&gp) || gpupart_process_publish(gp, "job")) {
		tap_skip("nothing can be published here: %s", gp ? gpupart_error(gp) : "");
		return tap_done();
	}
	tap_ok(times_listed() == 1, "this process is listed");
	control_count(CONTROL_CONFINED);
	control_count(CONTROL_FREE);
	struct gpupart_counters counters;

	gpupart_counters_get(&counters);
	tap_ok(counters.launches == 2 && counters.confined == 1,
	       "counts are kept when it is shown");
	test_threads();
	test_child();
	test_lock();

	snprintf(path, sizeof(path), "%s/1-pipe", folder);
	unlink(path);
	if (tap_ok(!mkfifo(path, 0600), "a pipe is made"))
		tap_ok(times_listed() == 1, "a pipe that nobody writes holds nobody up");
	unlink(path);
	tap_ok(!put_file("1-empty", 0) && !put_file("1-zero", sizeof(struct control_block)) &&
	       !put_file("1-long", sizeof(struct control_block) + 1) && times_listed() == 1,
	       "files that are no blocks are passed over");
	for (const char *const *name = (const char *const[]){ "1-empty", "1-zero", "1-long", NULL };
	     *name; name++) {
		snprintf(path, sizeof(path), "%s/%s", folder, *name);
		tap_ok(!unlink(path), "and left alone: %s", *name);
	}
	gpupart_close(gp);
	return tap_done();
}
