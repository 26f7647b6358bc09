// SPDX-License-Identifier: MIT
/*
 * Measures how long a change of a partition takes with green contexts and with MPS. Child processes
 * make the measurements. The children do not attach to the GPU.
 */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cli/bench/bench.h"
#include "cli/mps/mps_daemon.h"
#include "cli/util/child.h"

struct answer {
	int err;
	double us;
	char why[512];
};

/* Calls @fn in a child process. The struct bench of the child has not used CUDA. */
static int ask(struct bench *b, void (*fn)(void *arg, void *result), double *us)
{
	struct answer answer = { 0 };
	int err = child_call(fn, b, &answer, sizeof(answer), 60, b->why, sizeof(b->why));

	if (!err && answer.err)
		err = bench_fail(b, answer.err, "%s", answer.why);
	*us = answer.us;
	return err;
}

static void hand_back(struct bench *b, int err, double us, struct answer *answer)
{
	answer->err = err;
	answer->us = us;
	snprintf(answer->why, sizeof(answer->why), "%s", err ? b->why : "");
}

/* ------------------------------------------------------------------- green contexts */

#define GREEN_SMS	16
#define NR_GREEN	20

static int make_green(struct bench *b, double *us)
{
	unsigned char all[DRIVER_RESOURCE_BYTES] = { 0 }, part[DRIVER_RESOURCE_BYTES] = { 0 };
	void *desc, *green;
	unsigned int nr = 1;
	int nr_sms = 0;
	double took[NR_GREEN];
	int err = bench_start(b);

	if (!err && (!b->cu.cuGreenCtxCreate || !b->cu.cuDeviceGetDevResource ||
		     !b->cu.cuDevSmResourceSplitByCount || !b->cu.cuDevResourceGenerateDesc ||
		     !b->cu.cuGreenCtxDestroy))
		err = bench_fail(b, -EOPNOTSUPP, "this driver has no green contexts");
	if (!err)
		err = CU(b, cuDeviceGetAttribute, &nr_sms, DRIVER_ATTR_NR_SMS, b->cu.device);
	if (!err && nr_sms < GREEN_SMS)
		err = bench_fail(b, -EOPNOTSUPP, "this GPU has fewer than %d SMs", GREEN_SMS);
	if (!err)
		err = CU(b, cuDeviceGetDevResource, b->cu.device, all, DRIVER_RESOURCE_SM) ?:
		      CU(b, cuDevSmResourceSplitByCount, part, &nr, all, NULL, 0, GREEN_SMS);
	for (int i = 0; !err && i < NR_GREEN; i++) {
		double start = bench_now_us();

		err = CU(b, cuDevResourceGenerateDesc, &desc, part, 1) ?:
		      CU(b, cuGreenCtxCreate, &green, desc, b->cu.device, DRIVER_GREEN_STREAM);
		took[i] = bench_now_us() - start;
		if (!err)
			err = CU(b, cuGreenCtxDestroy, green);
	}
	*us = err ? 0 : stats_median(took, NR_GREEN);
	return err;
}

static void be_green(void *arg, void *result)
{
	double us = 0;
	int err = make_green(arg, &us);

	hand_back(arg, err, us, result);
}

int overhead_green(struct bench *b, json_t *report)
{
	double us;
	int err = ask(b, be_green, &us);

	if (!err)
		report_figure(report, OVERHEAD_TABLE, GREEN_ROW, us, "us");
	return err;
}

/* ------------------------------------------------------------------------------- MPS */

/*
 * Runs a process. Measures the time from the start of the process to the end of its first kernel.
 */
static void be_client(void *arg, void *result)
{
	struct kernel kernel = { .code = BENCH_HOLD, .blocks = 1, .threads = 32, .n = 1 };
	double start = bench_now_us();
	struct bench *b = arg;
	struct slots slots;
	int err = bench_start(b) ?:
		  slots_open(b, &slots, 1) ?:
		  kernel_launch(b, NULL, &kernel, &slots, 0) ?:
		  CU(b, cuCtxSynchronize);

	hand_back(b, err, bench_now_us() - start, result);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

/*
 * Starts a cleanup process. After the end of this process, the cleanup process ends the daemon and
 * removes the directory.
 */
static pid_t start_keeper(struct mps_daemon *daemon, int *pipe_end)
{
	char byte;
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return -1;
	fflush(NULL);
	pid = fork();
	if (pid) {
		close(fds[0]);
		*pipe_end = fds[1];
		return pid;
	}
	setsid();
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	close(fds[1]);
	while (read(fds[0], &byte, 1) < 0 && errno == EINTR)
		;
	mps_daemon_end(daemon);
	nftw(daemon->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	_exit(0);
}

static int daemon_and_client(struct bench *b, struct mps_daemon *daemon, double *us)
{
	double client;
	int err = mps_daemon_have(daemon);

	if (err)
		return bench_fail(b, -EOPNOTSUPP, "%s", daemon->why);
	err = ask(b, be_client, &client);
	*us += client;
	return err;
}

static int restart(struct bench *b, struct mps_daemon *daemon, json_t *report)
{
	double start, client = 0;
	int err;

	setenv(MPS_DAEMON_PIPES, daemon->dir, 1);
	err = daemon_and_client(b, daemon, &client);
	if (err)
		return err;
	start = bench_now_us();
	mps_daemon_end(daemon);
	err = daemon_and_client(b, daemon, &client);
	if (!err)
		report_figure(report, OVERHEAD_TABLE, MPS_ROW,
			      (bench_now_us() - start) / 1e3, "ms");
	return err;
}

int overhead_mps(struct bench *b, json_t *report)
{
	struct mps_daemon daemon = { 0 };
	char log[PATH_MAX];
	double us;
	int err, end = -1;
	pid_t keeper;

	err = ask(b, be_client, &us);
	if (err)
		return err;
	report_figure(report, OVERHEAD_TABLE, PROCESS_ROW, us / 1e3, "ms");
	if (b->simulated)
		return bench_fail(b, -EOPNOTSUPP, "not available with the simulated driver");
	if (mps_daemon_find_control(&daemon))
		return bench_fail(b, -EOPNOTSUPP, "%s", daemon.why);
	snprintf(daemon.dir, sizeof(daemon.dir), "%s/gpupart-bench-XXXXXX", P_tmpdir);
	if (!mkdtemp(daemon.dir))
		return bench_fail(b, -errno, "%s: %s", daemon.dir, strerror(errno));
	mps_daemon_path(&daemon, "log", log);
	if (mkdir(log, 0700)) {
		err = bench_fail(b, -errno, "%s: %s", log, strerror(errno));
		rmdir(daemon.dir);
		return err;
	}
	keeper = start_keeper(&daemon, &end);
	if (keeper < 0) {
		nftw(daemon.dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
		return bench_fail(b, -EAGAIN, "cannot create a process for the daemon");
	}
	err = restart(b, &daemon, report);
	unsetenv(MPS_DAEMON_PIPES);
	close(end);
	waitpid(keeper, NULL, 0);
	return err;
}
