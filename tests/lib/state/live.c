// SPDX-License-Identifier: MIT
/*
 * Tests limits from outside. The limited processes launch on the simulated GPU. A limit must take
 * effect at the next launch. All processes of a job must change together. The writer of a limit
 * or the limited process may be killed. The other process must then stay correct, and no file may
 * remain.
 */
#include <dirent.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include "lib/private.h"
#include "tests/lib/scenario.h"

#define NR_KILLS 1000

static struct gpupart_process shown[1024];

static bool find_process(pid_t pid, struct gpupart_process *process)
{
	int nr = gpupart_process_list(gp, shown, 1024, sizeof(struct gpupart_process));

	for (int i = 0; i < nr && i < 1024; i++)
		if (shown[i].pid == pid) {
			*process = shown[i];
			return true;
		}
	return false;
}

/* Returns true if a file of @pid is in the folder. */
static bool has_file(pid_t pid)
{
	char path[64], start[32];
	struct dirent *entry;
	bool found = false;
	DIR *dir;

	snprintf(path, sizeof(path), "/dev/shm/gpupart-%u", geteuid());
	snprintf(start, sizeof(start), "%d.", pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		found |= !strncmp(entry->d_name, start, strlen(start));
	if (dir)
		closedir(dir);
	return found;
}

static void wait_a_moment(void)
{
	usleep(1000);
}

/* ------------------------------------------------------- a process that launches */

/* The values that the process reports to its parent. */
struct launcher {
	atomic_bool ready, stop, told;
	struct gpupart_tpcset seen;	/* if @told is true, the TPCs of the last launch */
	atomic_bool look;		/* request a report of the next launch */
	atomic_bool become;		/* exec another program */
};

static struct launcher *launchers_map(unsigned int nr)
{
	void *map = mmap(NULL, nr * sizeof(struct launcher), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return map == MAP_FAILED ? NULL : map;
}

static void launch_on(struct launcher *me)
{
	struct program p;

	if (attach(NULL) || gpupart_process_publish(gp, "live") || program_start(&p, 0))
		_exit(1);
	atomic_store(&me->ready, true);
	while (!atomic_load(&me->stop)) {
		if (atomic_load(&me->become))
			execlp("sleep", "sleep", "60", NULL);
		bool look = atomic_load(&me->look);
		struct gpupart_tpcset seen;

		if (program_census(&p, gpupart_gpu_topology(gpu), NULL, &seen))
			_exit(2);
		gpupart_progress_add(3);
		gpupart_latency_report(1000000);
		if (look) {
			me->seen = seen;
			atomic_store(&me->look, false);
			atomic_store(&me->told, true);
		}
	}
	exit(0);
}

/* When this process ends, the child ends too, even while the child is stopped. */
static pid_t start_launcher(struct launcher *me)
{
	pid_t pid;

	memset(me, 0, sizeof(*me));
	fflush(stdout);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		launch_on(me);
	}
	return pid;
}

static bool wait_ready(const struct launcher *me)
{
	for (int i = 0; i < 20000 && !atomic_load(&me->ready); i++)
		wait_a_moment();
	return atomic_load(&me->ready);
}

/* Returns true if the next complete launch of the process runs on @want. */
static bool ran(struct launcher *me, const struct gpupart_tpcset *want)
{
	/* A launch that had begun may still use the old set. */
	for (int round = 0; round < 2; round++) {
		atomic_store(&me->told, false);
		atomic_store(&me->look, true);
		for (int i = 0; i < 10000 && !atomic_load(&me->told); i++)
			wait_a_moment();
	}
	return gpupart_tpcset_equal(&me->seen, want);
}

static bool ends(pid_t pid)
{
	int status = -1;

	return waitpid(pid, &status, 0) == pid && !status;
}

static void child_change(void)
{
	struct launcher *me = launchers_map(1);
	struct gpupart_tpcset set, before, all;
	struct gpupart_remote *remote = NULL;
	struct gpupart_process process;
	struct gpupart_progress progress;
	uint64_t reported_ns, now_ns;
	struct timespec now;
	unsigned int place = 0;
	uint64_t units, reports = 0;
	pid_t pid;
	int err;

	if (!tap_ok(me && !gpupart_open(&gp), "opens"))
		return;
	pid = start_launcher(me);
	if (!tap_ok(pid > 0 && wait_ready(me) && find_process(pid, &process), "it is listed"))
		return;
	all = gpupart_tpcset_first(66);
	tap_ok(process.simulated && process.nr_gpus == 1 && !*process.limit, "with no limit");
	tap_ok(ran(me, &all), "and runs everywhere");
	set = list("3,9-12");
	err = gpupart_process_limit_set(gp, pid, process.pci, &set, &before);
	tap_ok(!err && gpupart_tpcset_empty(&before), "a limit: %s", err ? gpupart_error(gp) : "");
	tap_ok(ran(me, &set), "its launches obey");
	tap_ok(find_process(pid, &process) && !strcmp(process.limit, "3,9-12"), "the list has it");
	err = gpupart_process_limit_set(gp, pid, process.pci, NULL, &before);
	tap_ok(!err && gpupart_tpcset_equal(&before, &set) && ran(me, &all), "and none again");
	err = gpupart_remote_open(gp, pid, process.pci, &remote);
	tap_ok(!err, "kept open: %s", err ? gpupart_error(gp) : "");
	for (int i = 0; !err && i < 1000; i++) {
		set = list(i % 2 ? "60" : "61-63");
		err = gpupart_remote_set(gp, remote, &set, &before);
	}
	tap_ok(!err && ran(me, &set) && gpupart_tpcset_count(&before) == 3, "a thousand sets: %s",
	       err ? gpupart_error(gp) : "");
	err = gpupart_remote_get(gp, remote, &before);
	tap_ok(!err && gpupart_tpcset_equal(&before, &set), "the last one is read back");
	before = list("5");
	err = gpupart_process_limit_set(gp, pid, process.pci, &before, NULL);
	tap_ok(!err && !gpupart_remote_get(gp, remote, &set) && gpupart_tpcset_equal(&before, &set),
	       "what another sets is seen");
	err = gpupart_remote_set(gp, remote, NULL, NULL);
	tap_ok(!err && ran(me, &all), "and none at the end");
	tap_ok(!gpupart_remote_get(gp, remote, &set) && gpupart_tpcset_empty(&set),
	       "which is read back as none");
	err = gpupart_remote_progress(gp, remote, &progress);
	tap_ok(!err && progress.launches > 0 && progress.units % 3 == 0 && progress.units > 0,
	       "its progress: %llu launches, %llu units", (unsigned long long)progress.launches,
	       (unsigned long long)progress.units);
	tap_ok(progress.reports == progress.units / 3, "told in %llu reports",
	       (unsigned long long)progress.reports);
	reported_ns = progress.reported_ns;
	clock_gettime(CLOCK_MONOTONIC, &now);
	now_ns = now.tv_sec * 1000000000ull + now.tv_nsec;
	tap_ok(reported_ns <= now_ns && now_ns - reported_ns < 60000000000 &&
	       progress.answered_ns + 60000000000 > reported_ns && progress.answered_ns <= now_ns,
	       "the last of them %llu ns ago", (unsigned long long)(now_ns - reported_ns));
	units = progress.units;
	tap_ok(ran(me, &all) && !gpupart_remote_progress(gp, remote, &progress) &&
		       progress.units > units && progress.reported_ns > reported_ns,
	       "which goes on: %llu units", (unsigned long long)progress.units);
	for (unsigned int i = 0; i < GPUPART_NR_LATENCIES; i++) {
		if (gpupart_latency_least(i) <= 1000000)
			place = i;
		reports += progress.latencies[i];
	}
	tap_ok(progress.latencies[place] + 1 >= progress.units / 3 &&
	       reports == progress.latencies[place] && gpupart_latency_least(place) > 930000,
	       "and how long requests took: %llu", (unsigned long long)reports);
	memset(&set, 0, sizeof(set));
	err = gpupart_process_limit_set(gp, pid, process.pci, &set, NULL);
	tap_ok(err == -EINVAL && strstr(gpupart_error(gp), "empty"), "an empty one: %s",
	       gpupart_error(gp));
	set = list("0,66");
	err = gpupart_process_limit_set(gp, pid, process.pci, &set, NULL);
	tap_ok(err == -EINVAL && strstr(gpupart_error(gp), "TPC 66"), "a TPC that is not there: %s",
	       gpupart_error(gp));
	set = list("0");
	err = gpupart_process_limit_set(gp, pid, "0000:77:00.0", &set, NULL);
	tap_ok(err == -ENODEV && strstr(gpupart_error(gp), "0000:77:00.0"), "another GPU: %s",
	       gpupart_error(gp));
	tap_ok(gpupart_process_limit_set(gp, pid, NULL, &set, NULL) == -EINVAL, "no GPU");
	err = gpupart_process_limit_set(gp, getpid(), process.pci, &set, NULL);
	tap_ok(err == -ESRCH && strstr(gpupart_error(gp), "process"), "a process without: %s",
	       gpupart_error(gp));
	tap_ok(ran(me, &all), "none of these changed it");
	atomic_store(&me->stop, true);
	tap_ok(ends(pid) && !has_file(pid), "it ends well and leaves nothing");
	err = gpupart_process_limit_set(gp, pid, process.pci, &set, NULL);
	tap_ok(err == -ESRCH, "a process that is gone: %s", gpupart_error(gp));
	err = gpupart_remote_set(gp, remote, &set, NULL);
	tap_ok(err == -ESRCH, "also one that was kept open: %s", gpupart_error(gp));
	tap_ok(gpupart_remote_progress(gp, remote, &progress) == -ESRCH, "whose progress is none");
	tap_ok(gpupart_remote_get(gp, remote, &set) == -ESRCH, "and whose limit is none");
	gpupart_remote_close(remote);
}

/*
 * The process executes another program, which keeps the pid. No code of the new program reads the
 * limit.
 */
static void child_become(void)
{
	struct launcher *me = launchers_map(1);
	struct gpupart_tpcset set = list("3"), before;
	struct gpupart_remote *remote = NULL;
	struct gpupart_process process;
	pid_t pid;
	int err;

	if (!tap_ok(me && !gpupart_open(&gp), "opens"))
		return;
	pid = start_launcher(me);
	if (!tap_ok(pid > 0 && wait_ready(me) && find_process(pid, &process), "it is listed"))
		return;
	err = gpupart_remote_open(gp, pid, process.pci, &remote);
	if (!err)
		err = gpupart_remote_set(gp, remote, &set, &before);
	tap_ok(!err, "a limit: %s", err ? gpupart_error(gp) : "");
	atomic_store(&me->become, true);
	for (int i = 0; i < 10000 && find_process(pid, &process); i++)
		wait_a_moment();
	tap_ok(!find_process(pid, &process) && !kill(pid, 0),
	       "one that became another program is not listed");
	err = gpupart_remote_set(gp, remote, &set, &before);
	tap_ok(err == -ESRCH, "what was kept open says so: %s", gpupart_error(gp));
	err = gpupart_process_limit_set(gp, pid, process.pci, &set, NULL);
	tap_ok(err == -ESRCH, "so does what is found anew: %s", gpupart_error(gp));
	gpupart_remote_close(remote);
	/* Another process may have the page open, because it sets the limits of all processes. */
	for (int i = 0; i < 1000 && !find_process(pid, &process) && has_file(pid); i++)
		wait_a_moment();
	tap_ok(!find_process(pid, &process) && !has_file(pid), "its page is removed");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/*
 * Another program of the same user truncates a process's page. In some cases, it truncates the
 * page before the page is opened. In other cases, it truncates the page later.
 */
static void child_cut(void)
{
	struct launcher *me = launchers_map(1);
	struct gpupart_tpcset set = list("3"), before;
	struct gpupart_remote *remote = NULL;
	struct gpupart_progress progress;
	struct gpupart_process process;
	char command[128];
	pid_t pid;

	if (!tap_ok(me && !gpupart_open(&gp), "opens"))
		return;
	pid = start_launcher(me);
	if (!tap_ok(pid > 0 && wait_ready(me) && find_process(pid, &process) &&
		    !gpupart_remote_open(gp, pid, process.pci, &remote), "it is opened"))
		return;
	kill(pid, SIGSTOP);
	snprintf(command, sizeof(command), "truncate -s 0 /dev/shm/gpupart-%u/%d.*[!s]", geteuid(),
		 pid);
	tap_ok(!system(command), "its page is cut to nothing");
	tap_ok(gpupart_remote_get(gp, remote, &before) == -ESRCH &&
	       strstr(gpupart_error(gp), "was truncated"), "no limit: %s", gpupart_error(gp));
	tap_ok(gpupart_remote_set(gp, remote, &set, NULL) == -ESRCH &&
	       strstr(gpupart_error(gp), "was truncated"), "none is set: %s", gpupart_error(gp));
	tap_ok(gpupart_remote_progress(gp, remote, &progress) == -ESRCH, "no progress");
	gpupart_remote_lends(remote);
	gpupart_remote_close(remote);
	tap_ok(gpupart_remote_open(gp, pid, process.pci, &remote) == -ESRCH, "nor is it found: %s",
	       gpupart_error(gp));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* ------------------------------------------------------------------------- kills */

/* A sequence of limits. Limit n has the TPCs n, n + 8, n + 16, and so on. */
static struct gpupart_tpcset nth(unsigned int n)
{
	struct gpupart_tpcset set = { { 0 } };

	for (unsigned int tpc = n; tpc < 66; tpc += 8)
		gpupart_tpcset_add(&set, tpc);
	return set;
}

static bool is_nth(const char *limit)
{
	struct gpupart_tpcset set, want;

	if (!*limit)
		return true;
	if (gpupart_tpcset_parse_list(NULL, limit, &set))
		return false;
	want = nth(gpupart_tpcset_next(&set, 0) % 8);
	return gpupart_tpcset_equal(&set, &want);
}

/* The new process sets limits until it is killed. */
static pid_t start_setter(pid_t of, const char *pci, unsigned int seed)
{
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid)
		for (;;) {
			struct gpupart_tpcset set = nth(rand_r(&seed) % 8);
			int err = gpupart_process_limit_set(gp, of, pci, &set, NULL);

			/* The other process may have ended. No other error is allowed. */
			if (err && err != -ESRCH)
				_exit(1);
		}
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Returns true if the process continues to launch, and its next launch runs on the listed TPCs. */
static bool is_right(pid_t pid, struct launcher *me)
{
	struct gpupart_process process;
	struct gpupart_tpcset set;

	if (!find_process(pid, &process) || !is_nth(process.limit))
		return false;
	set = gpupart_tpcset_first(66);
	if (*process.limit)
		set = list(process.limit);
	return ran(me, &set);
}

static void child_kills(void)
{
	unsigned int seed = 3, nr_wrong = 0, nr_left = 0, nr_setters = 0, nr_launchers = 0;
	struct launcher *me = launchers_map(1);
	struct gpupart_process process;
	pid_t launcher, setter;

	if (!tap_ok(me && !gpupart_open(&gp), "opens"))
		return;
	launcher = start_launcher(me);
	if (!tap_ok(wait_ready(me) && find_process(launcher, &process), "a process launches"))
		return;
	setter = start_setter(launcher, process.pci, 0);
	for (int n = 1; n <= NR_KILLS; n++) {
		usleep(rand_r(&seed) % 3000);
		if (rand_r(&seed) % 8) {
			nr_setters++;
			end_child(setter);
			if (n % 16 == 0)
				nr_wrong += !wait_ready(me) || !is_right(launcher, me);
			else if (atomic_load(&me->ready))
				nr_wrong += !find_process(launcher, &process) ||
					    !is_nth(process.limit);
		} else {
			nr_launchers++;
			end_child(launcher);
			usleep(rand_r(&seed) % 500);
			end_child(setter);
			nr_wrong += find_process(launcher, &process);
			nr_left += has_file(launcher);
			launcher = start_launcher(me);
			/* Sometimes the process is killed while it is still starting. */
			if (rand_r(&seed) % 2)
				wait_ready(me);
		}
		setter = start_setter(launcher, process.pci, n);
	}
	end_child(setter);
	tap_ok(wait_ready(me) && is_right(launcher, me), "the last one is right");
	end_child(launcher);
	tap_ok(!find_process(launcher, &process) && !has_file(launcher),
	       "and swept when it is killed");
	tap_ok(!nr_wrong && !nr_left, "%u setters and %u launchers killed: %u wrong, %u left",
	       nr_setters, nr_launchers, nr_wrong, nr_left);
}

/* --------------------------------------------------------------------------- jobs */

#define NR_OF_JOB 8

static struct gpupart_job jobs[256];

static const struct gpupart_job *find_job(const char *id)
{
	int nr = gpupart_job_list(gp, jobs, 256, sizeof(struct gpupart_job));

	for (int i = 0; i < nr && i < 256; i++)
		if (!strcmp(jobs[i].id, id))
			return &jobs[i];
	return NULL;
}

static unsigned int nr_on(struct launcher *l, unsigned int nr, const struct gpupart_tpcset *want)
{
	unsigned int right = 0;

	for (unsigned int i = 0; i < nr; i++)
		right += ran(&l[i], want);
	return right;
}

/* A process of the job publishes its page immediately, and attaches a GPU later. */
static void launch_later(struct launcher *me, int go)
{
	char c;

	if (gpupart_process_publish(gp, "later"))
		_exit(1);
	atomic_store(&me->ready, true);
	if (read(go, &c, 1) != 1)
		_exit(3);
	atomic_store(&me->ready, false);
	launch_on(me);
}

static void child_job_early(void)
{
	static const char *const bad_names[] = { "../../x\n", "-x", "a b", "\033[1m", "\xc3\xa4" };
	static const char *const bad_pcis[] = { "", "0", "0000:01:00", "0000:01:00.0x", "../x" };
	struct gpupart_tpcset first = list("0-7"), second = list("8-15");
	struct launcher *me = launchers_map(1);
	char id[GPUPART_JOB_STRLEN];
	struct gpupart_topology *topo;
	struct timespec begin, end;
	int go[2], err, nr_bad = 0;
	pid_t pid;

	if (!tap_ok(me && !gpupart_open(&gp) && !pipe(go) &&
			    !gpupart_topology_open(gp, getenv("GPUPART_SIM"), NULL, &topo),
		    "opens"))
		return;
	for (int i = 0; i < 5; i++) {
		nr_bad += gpupart_job_begin(gp, bad_names[i], topo, "0000:01:00.0", &first, id) ==
			  -EINVAL;
		nr_bad += gpupart_job_begin(gp, "x", topo, bad_pcis[i], &first, id) == -EINVAL;
	}
	tap_ok(nr_bad == 10, "what is no name or no address: %s", gpupart_error(gp));
	err = gpupart_job_begin(gp, "early", topo, "0000:01:00.0", &first, id);
	if (!tap_ok(!err, "a job begins: %s", err ? gpupart_error(gp) : ""))
		return;
	setenv("GPUPART_JOB", id, 1);
	setenv("GPUPART_SET", "0-7", 1);
	memset(me, 0, sizeof(*me));
	fflush(stdout);
	pid = fork();
	if (!pid)
		launch_later(me, go[0]);
	wait_ready(me);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	err = gpupart_job_limit_set(gp, id, &second, NULL);
	clock_gettime(CLOCK_MONOTONIC, &end);
	tap_ok(!err && end.tv_sec - begin.tv_sec < 10, "a process without a GPU as yet: %s",
	       err ? gpupart_error(gp) : "");
	tap_ok(write(go[1], "x", 1) == 1 && !usleep(100000) && wait_ready(me) && ran(me, &second),
	       "it begins in the new set");
	end_child(pid);
}

static void child_job(void)
{
	struct launcher *l = launchers_map(NR_OF_JOB + 2);
	struct gpupart_tpcset first, second, third, before;
	char id[GPUPART_JOB_STRLEN], inner[GPUPART_JOB_STRLEN], none[GPUPART_JOB_STRLEN];
	struct gpupart_topology *topo;
	const struct gpupart_job *job;
	pid_t pids[NR_OF_JOB + 2], begins;
	int err;

	if (!tap_ok(l && !gpupart_open(&gp) &&
			    !gpupart_topology_open(gp, getenv("GPUPART_SIM"), NULL, &topo),
		    "opens"))
		return;
	first = list("0-7");
	second = list("8-15");
	third = list("10-11,40");
	err = gpupart_job_begin(gp, "eight", topo, "0000:01:00.0", &first, id);
	if (!tap_ok(!err, "a job begins: %s", err ? gpupart_error(gp) : ""))
		return;
	setenv("GPUPART_JOB", id, 1);
	setenv("GPUPART_SET", "0-7", 1);
	job = find_job(id);
	tap_ok(job && !strcmp(job->name, "eight") && job->pid == getpid() &&
		       !strcmp(job->limit, "0-7") && job->simulated && !*job->parent,
	       "it is listed");
	for (int i = 0; i < NR_OF_JOB; i++)
		pids[i] = start_launcher(&l[i]);
	for (int i = 0; i < NR_OF_JOB; i++)
		wait_ready(&l[i]);
	tap_ok(nr_on(l, NR_OF_JOB, &first) == NR_OF_JOB, "its eight processes run in its set");
	err = gpupart_job_limit_set(gp, id, &second, &before);
	tap_ok(!err && gpupart_tpcset_equal(&before, &first), "another set: %s",
	       err ? gpupart_error(gp) : "");
	tap_ok(nr_on(l, NR_OF_JOB, &second) == NR_OF_JOB, "all eight obey");
	pids[NR_OF_JOB] = start_launcher(&l[NR_OF_JOB]);
	tap_ok(wait_ready(&l[NR_OF_JOB]) && ran(&l[NR_OF_JOB], &second),
	       "and one that begins later, whatever its environment says");

	/* Tests a `gpupart run` inside another `gpupart run`. */
	fflush(stdout);
	begins = fork();
	if (!begins) {
		char nested[GPUPART_JOB_STRLEN];

		if (gpupart_job_begin(gp, "inner", topo, "0000:01:00.0", &third, nested))
			_exit(1);
		setenv("GPUPART_JOB", nested, 1);
		launch_on(&l[NR_OF_JOB + 1]);
	}
	pids[NR_OF_JOB + 1] = begins;
	before = list("10-11");
	tap_ok(wait_ready(&l[NR_OF_JOB + 1]) && ran(&l[NR_OF_JOB + 1], &before),
	       "a job inside it has what both allow");
	err = gpupart_job_limit_set(gp, id, &first, NULL);
	tap_ok(!err && ran(&l[NR_OF_JOB + 1], &first), "or what the outer one allows");
	third = list("0-1,40");
	inner[0] = 0;
	for (int i = 0, nr = gpupart_job_list(gp, jobs, 256,
					      sizeof(struct gpupart_job)); i < nr; i++)
		if (!strcmp(jobs[i].parent, id))
			strcpy(inner, jobs[i].id);
	err = gpupart_job_limit_set(gp, inner, &third, NULL);
	before = list("0-1");
	tap_ok(!err && ran(&l[NR_OF_JOB + 1], &before) && ran(&l[0], &first),
	       "the inner one changes alone: %s", err ? gpupart_error(gp) : "");

	third = list("65-66");
	err = gpupart_job_limit_set(gp, id, &third, NULL);
	tap_ok(err == -EINVAL && strstr(gpupart_error(gp), "TPC 66"), "a TPC that is not there: %s",
	       gpupart_error(gp));
	memset(&third, 0, sizeof(third));
	tap_ok(gpupart_job_limit_set(gp, id, &third, NULL) == -EINVAL, "an empty set");
	tap_ok(gpupart_job_limit_set(gp, id, NULL, NULL) == -EINVAL &&
		       strstr(gpupart_error(gp), "the set for the job is missing"),
	       "no set: %s", gpupart_error(gp));
	tap_ok(gpupart_job_limit_set(gp, NULL, &first, NULL) == -EINVAL &&
		       strstr(gpupart_error(gp), "id"), "no id: %s", gpupart_error(gp));
	tap_ok(gpupart_set_parse(gp, topo, NULL, &third) == -EINVAL &&
		       strstr(gpupart_error(gp), "the text of the set is missing"),
	       "no words: %s", gpupart_error(gp));
	tap_ok(gpupart_job_begin(gp, NULL, topo, "0000:01:00.0", NULL, none) == -EINVAL &&
		       strstr(gpupart_error(gp), "the set is missing"), "a job of no set: %s",
	       gpupart_error(gp));
	tap_ok(gpupart_job_begin(gp, NULL, topo, NULL, &first, none) == -EINVAL &&
		       gpupart_job_begin(gp, NULL, topo, "../../etc", &first, none) == -EINVAL &&
		       gpupart_job_begin(gp, NULL, topo, "01:00.0", &first, none) == -EINVAL &&
		       strstr(gpupart_error(gp), "\"01:00.0\""), "a job of no GPU: %s",
	       gpupart_error(gp));
	tap_ok(gpupart_job_limit_set(gp, "../x", &first, NULL) == -ESRCH, "no job");
	tap_ok(nr_on(l, NR_OF_JOB + 1, &first) == NR_OF_JOB + 1, "none of these changed it");
	for (int i = 0; i < NR_OF_JOB + 2; i++)
		end_child(pids[i]);
	tap_ok(!find_job(inner), "a job without a process is forgotten");
	tap_ok(find_job(id), "one whose first process lives is not");
}

static const struct scenario scenarios[] = {
	{ "change", child_change, "@b", { NULL }, NULL },
	{ "become", child_become, "@b", { NULL }, NULL },
	{ "cut", child_cut, "@b", { NULL }, NULL },
	{ "kills", child_kills, "@b", { NULL }, NULL },
	{ "job", child_job, "@b", { NULL }, NULL },
	{ "job-early", child_job_early, "@b", { NULL }, NULL },
};

int main(int argc, char **argv)
{
	return scenario_main(argc, argv, scenarios, sizeof(scenarios) / sizeof(scenarios[0]));
}
