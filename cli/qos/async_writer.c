// SPDX-License-Identifier: MIT
/* Buffers output. A thread writes the output to a descriptor. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "cli/qos/async_writer.h"

#define BUFFER		(1 << 16)	/* buffer of stdio, large enough for a line of a log */
#define CHUNK		4096	/* bytes of one write(): small, so that progress is noticed */
#define PATIENCE_S	2

struct pump {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	FILE *file;
	int fd, err;			/* err: errno of a failed write, which discards the
					 * buffer */
	char *bytes;			/* in the buffer */
	size_t nr, room;
	bool writing;			/* the thread is in a write() */
	unsigned long chunks;		/* number of written chunks */
	bool ending, ended;
};

static int write_some(int fd, const char *bytes, size_t *nr)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLOUT };
	ssize_t len = write(fd, bytes, *nr < CHUNK ? *nr : CHUNK);

	*nr = len > 0 ? len : 0;
	if (len > 0 || (len < 0 && errno == EINTR))
		return 0;
	if (len < 0 && errno == EAGAIN)
		return poll(&poll_fd, 1, -1) < 0 && errno != EINTR ? errno : 0;
	return len < 0 ? errno : EIO;
}

static int write_all(struct pump *p, const char *bytes, size_t nr)
{
	int err = 0;

	for (size_t done = 0, len; done < nr && !err; done += len) {
		len = nr - done;
		err = write_some(p->fd, bytes + done, &len);
		pthread_mutex_lock(&p->lock);
		p->chunks += !!len;
		pthread_mutex_unlock(&p->lock);
	}
	return err;
}

static void *work(void *arg)
{
	struct pump *p = arg;

	pthread_mutex_lock(&p->lock);
	while (p->nr || !p->ending) {
		char *bytes = p->bytes;
		size_t nr = p->nr;
		int err;

		if (!nr) {
			pthread_cond_wait(&p->changed, &p->lock);
			continue;
		}
		p->bytes = NULL;
		p->nr = p->room = 0;
		p->writing = true;
		pthread_mutex_unlock(&p->lock);
		err = write_all(p, bytes, nr);
		free(bytes);
		pthread_mutex_lock(&p->lock);
		p->writing = false;
		if (err)
			p->err = err;
		pthread_cond_broadcast(&p->changed);
	}
	p->ended = true;
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

static int add(struct pump *p, const char *bytes, size_t nr)
{
	if (p->err)
		return p->err;
	if (nr > ASYNC_WRITER_MAX - p->nr)
		return EAGAIN;
	if (nr > p->room - p->nr) {
		size_t room = 2 * p->room > p->nr + nr ? 2 * p->room : p->nr + nr;
		char *more = realloc(p->bytes, room);

		if (!more)
			return ENOMEM;
		p->bytes = more;
		p->room = room;
	}
	memcpy(p->bytes + p->nr, bytes, nr);
	p->nr += nr;
	return 0;
}

static ssize_t take(void *arg, const char *bytes, size_t nr)
{
	struct pump *p = arg;
	int err;

	pthread_mutex_lock(&p->lock);
	err = add(p, bytes, nr);
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
	if (!err)
		return nr;
	errno = err;
	return 0;
}

struct pump *async_writer_open(int fd)
{
	const cookie_io_functions_t functions = { .write = take };
	struct pump *p = calloc(1, sizeof(*p));
	pthread_condattr_t attr;
	pthread_t thread;

	if (!p)
		return NULL;
	p->fd = fd;
	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&p->changed, &attr);
	pthread_condattr_destroy(&attr);
	p->file = fopencookie(p, "w", functions);
	if (p->file && !setvbuf(p->file, NULL, _IOFBF, BUFFER) &&
	    !pthread_create(&thread, NULL, work, p)) {
		pthread_detach(thread);
		return p;
	}
	if (p->file)
		fclose(p->file);
	free(p);
	return NULL;
}

FILE *async_writer_file(struct pump *p)
{
	return p->file;
}

bool async_writer_pending(struct pump *p)
{
	bool waits;

	pthread_mutex_lock(&p->lock);
	waits = p->nr || p->writing;
	pthread_mutex_unlock(&p->lock);
	return waits;
}

/*
 * Returns true if everything was written, or if the reader made no progress for 2 s. The caller
 * holds the lock.
 */
static bool ends(struct pump *p)
{
	unsigned long before = p->chunks;
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += PATIENCE_S;
	while (!p->ended && !pthread_cond_timedwait(&p->changed, &p->lock, &until))
		;
	return p->ended || p->chunks == before;
}

int async_writer_close(struct pump *p)
{
	int err = fclose(p->file) ? -errno : 0;

	pthread_mutex_lock(&p->lock);
	p->ending = true;
	pthread_cond_broadcast(&p->changed);
	while (!ends(p))
		;
	if (!p->ended) {
		/* The blocked thread uses its own copy of the bytes, so the buffer is safe. */
		pthread_mutex_unlock(&p->lock);
		return err ? err : -EAGAIN;
	}
	if (p->err)
		err = -p->err;
	pthread_mutex_unlock(&p->lock);
	pthread_cond_destroy(&p->changed);
	pthread_mutex_destroy(&p->lock);
	free(p->bytes);
	free(p);
	return err;
}
