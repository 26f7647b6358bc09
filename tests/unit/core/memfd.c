// SPDX-License-Identifier: MIT
/*
 * Opening a device or a FIFO has effects. So the library must check the type of a file before it
 * opens the file.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>
#include "lib/core/memfd.h"
#include "tests/tap.h"

#define NAME	"gpupart-test"
#define MAGIC	0x1234567812345678
#define SIZE	8192

static struct gpupart *gp;

int main(void)
{
	char folder[] = "/tmp/memfd.XXXXXX", fifo[32], file[32], events[4096];
	int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	struct memfd_head *head;
	struct memfd *memfd;
	const char *id;

	if (!tap_ok(!gpupart_open(&gp) && mkdtemp(folder), "a folder"))
		return tap_done();
	snprintf(fifo, sizeof(fifo), "%s/fifo", folder);
	snprintf(file, sizeof(file), "%s/file", folder);
	tap_ok(!mkfifo(fifo, 0600) && !mknod(file, S_IFREG | 0600, 0) &&
	       inotify_add_watch(watch, folder, IN_OPEN) >= 0, "a FIFO and a file in it");
	tap_ok(memfd_map(gp, fifo, NAME, MAGIC, SIZE, &head) == -EINVAL, "the FIFO: %s",
	       gpupart_error(gp));
	tap_ok(memfd_map(gp, file, NAME, MAGIC, SIZE, &head) == -EINVAL, "the file: %s",
	       gpupart_error(gp));
	tap_ok(read(watch, events, sizeof(events)) < 0 && errno == EAGAIN, "neither was opened");
	tap_ok(memfd_map(gp, "/proc/self/fd/999", NAME, MAGIC, SIZE, &head) == -ENOENT,
	       "nothing: %s", gpupart_error(gp));
	tap_ok(!memfd_open(gp, NAME, MAGIC, SIZE, &memfd, &id), "memory of that name");
	tap_ok(memfd_map(gp, id, "another", MAGIC, SIZE, &head) == -EINVAL, "by another name: %s",
	       gpupart_error(gp));
	tap_ok(memfd_map(gp, id, NAME, MAGIC + 1, SIZE, &head) == -EPROTO, "another version: %s",
	       gpupart_error(gp));
	tap_ok(memfd_map(gp, id, NAME, MAGIC, 2 * SIZE, &head) == -EPROTO, "another size");
	tap_ok(!memfd_map(gp, id, NAME, MAGIC, SIZE, &head) && head->size == SIZE, "it is mapped");
	unlink(fifo);
	unlink(file);
	rmdir(folder);
	return tap_done();
}
