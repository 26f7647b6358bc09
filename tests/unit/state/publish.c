// SPDX-License-Identifier: MIT
/*
 * Tests changes of a set while a process's page moves into its file. The pwrite() of the page
 * waits for another thread. That thread sets a set, or waits for a lock.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "lib/confine/scope.h"
#include "lib/core/state_dir.h"
#include "lib/state/state_page.h"
#include "tests/tap.h"

ssize_t __real_pwrite(int fd, const void *data, size_t len, off_t at);
ssize_t __wrap_pwrite(int fd, const void *data, size_t len, off_t at);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static bool copied, given, accepted, named;
static struct gpupart_gpu gpu;

/*
 * Returns true if this process's page has its final name. If the page has this name, other
 * processes check the writer of the page.
 */
static bool has_name(void)
{
	char path[96];

	snprintf(path, sizeof(path), "/dev/shm/gpupart-%u/%d.%llx", geteuid(), getpid(),
		 (unsigned long long)state_dir_pid_namespace());
	return !access(path, F_OK);
}

ssize_t __wrap_pwrite(int fd, const void *data, size_t len, off_t at)
{
	ssize_t written = __real_pwrite(fd, data, len, at);
	struct timespec until;

	if (len != sizeof(struct state_page))
		return written;
	named = has_name();
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	pthread_mutex_lock(&lock);
	copied = true;
	pthread_cond_broadcast(&changed);
	/*
	 * If a writer waits for this thread, the writer has not written its set yet. It writes
	 * the set after the move.
	 */
	while (!given && pthread_cond_timedwait(&changed, &lock, &until) != ETIMEDOUT)
		;
	pthread_mutex_unlock(&lock);
	return written;
}

static const struct gpupart_tpcset four = { { 0xf } };

static void give_thread_set(void)
{
	accepted = !scope_set_thread(NULL, &gpu, &four);
}

static void give_next(void)
{
	accepted = !scope_next_set(NULL, &gpu, &four);
}

static void give_modules(void)
{
	scope_used(&gpu, SCOPE_USED_MODULES);
	accepted = true;
}

static void give_limit(void)
{
	accepted = scope_limit_set(&gpu, LIMIT_OUTER, &four);
}

static void *give_meanwhile(void *give)
{
	pthread_mutex_lock(&lock);
	while (!copied)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	(*(void (**)(void))give)();
	pthread_mutex_lock(&lock);
	given = true;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* Runs in a child, because a process can publish only once. */
static void try(const char *what, void (*give)(void), unsigned char used, bool limited)
{
	struct gpupart_gpu_info info = { .pci = "0000:0d:00.0" };
	struct limit_sets sets;
	pthread_t thread;
	int status = 1;
	bool shown;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	if (!pid) {
		gpu.shared = state_add_gpu(&info, 1);
		gpu.driver.map.nr_tpcs = 66;
		for (int i = 0; i < 66; i++)
			gpu.driver.map.bit_of_tpc[i] = i;
		pthread_create(&thread, NULL, give_meanwhile, &give);
		shown = gpu.shared && !gpupart_process_publish(NULL, "publish");
		pthread_join(thread, NULL);
		tap_ok(shown && copied && accepted, "the process is shown while %s is given", what);
		/*
		 * The page looks like the page of a dead process until its file is open for
		 * writing.
		 */
		tap_ok(!named && has_name(), "its file has its name once it is whole");
		tap_ok((scope_in_use(&gpu) & used) == used, "%s is not lost: launches look for it",
		       what);
		if (limited)
			tap_ok(limit_get(&gpu.shared->limit, &sets) &&
			       gpupart_tpcset_equal(&sets.in_force, &four), "nor is its value");
		fflush(stdout);
		/* The exit of the process removes the page. */
		exit(tap_failed);
	}
	waitpid(pid, &status, 0);
	/* The child's TAP lines have separate numbers. */
	tap_count += 3 + limited;
	tap_failed += status != 0;
}

int main(void)
{
	pthread_cond_init(&changed, NULL);
	try("a thread's set", give_thread_set, SCOPE_USED, false);
	try("a next launch's set", give_next, SCOPE_USED, false);
	try("a module that launches", give_modules, SCOPE_USED_MODULES, false);
	try("a limit", give_limit, SCOPE_USED, true);
	return tap_done();
}
