// SPDX-License-Identifier: MIT
/* Reads memory through system calls. See peek.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/uio.h>
#include <unistd.h>
#include "lib/core/peek.h"

/* the smallest page size */
#define PAGE 4096

/*
 * Some containers refuse process_vm_readv(), and some emulators do not have it. If the call fails,
 * the code does not try it again.
 */
static atomic_bool refused;

/* Reads all @len bytes, or returns -errno. */
static int read_piece(const void *at, void *into, size_t len)
{
	struct iovec local = { into, len }, remote = { (void *)(uintptr_t)at, len };
	ssize_t nr = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);

	if (nr < 0)
		return -errno;
	return (size_t)nr == len ? 0 : -EFAULT;
}

/*
 * Reads the bytes through a pipe. This works because write() returns EFAULT for a bad address.
 */
static int pipe_piece(const int pipe[2], const void *at, void *into, size_t len)
{
	ssize_t nr = write(pipe[1], at, len);

	if (nr < 0)
		return -errno;
	return read(pipe[0], into, nr) == nr && (size_t)nr == len ? 0 : -EFAULT;
}

static size_t piece_after(const char *at, size_t done, size_t len)
{
	size_t room = PAGE - (uintptr_t)(at + done) % PAGE;

	return room < len - done ? room : len - done;
}

/*
 * Reads the memory piece by piece. Each piece is within one page. If @pipe is not NULL, reads
 * through this pipe.
 */
static size_t read_pieces(const int *pipe, const char *at, char *into, size_t len)
{
	size_t done = 0, piece;
	int err;

	for (; done < len; done += piece) {
		piece = piece_after(at, done, len);
		err = pipe ? pipe_piece(pipe, at + done, into + done, piece) :
			     read_piece(at + done, into + done, piece);
		if (err)
			break;
	}
	return done;
}

size_t peek(const void *at, void *into, size_t len)
{
	int ends[2], err = -EPERM;
	size_t done;

	if (!atomic_load_explicit(&refused, memory_order_relaxed))
		err = read_piece(at, into, len);
	if (!err)
		return len;
	/* One of the pages is not mapped, so read the pages before it. */
	if (err != -ENOSYS && err != -EPERM)
		return read_pieces(NULL, at, into, len);
	atomic_store_explicit(&refused, true, memory_order_relaxed);
	if (pipe2(ends, O_CLOEXEC))
		return 0;
	done = read_pieces(ends, at, into, len);
	close(ends[0]);
	close(ends[1]);
	return done;
}
