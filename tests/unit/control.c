// SPDX-License-Identifier: MIT
/*
 * Blocks of processes as one user shows them to another: what is no block must neither
 * hold the reader nor end it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
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

int main(void)
{
	signal(SIGALRM, too_long);
	alarm(10);
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
