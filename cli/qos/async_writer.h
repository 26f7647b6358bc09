/* SPDX-License-Identifier: MIT */
/*
 * Buffers output on a thread, so that a blocked reader cannot delay the caller. A stopped terminal
 * is an example of a blocked reader.
 */
#ifndef GPUPART_CLI_QOS_ASYNC_WRITER_H
#define GPUPART_CLI_QOS_ASYNC_WRITER_H

#include <stdbool.h>
#include <stdio.h>

/* size limit of the buffer in bytes; a write that exceeds this limit fails with EAGAIN */
#define ASYNC_WRITER_MAX	(16 << 20)

struct pump;

/*
 * Opens a writer to @fd. The caller still owns @fd. If there is not enough memory or the thread
 * cannot be created, returns NULL. The caller must not call fork() afterwards.
 */
struct pump *async_writer_open(int fd);
FILE *async_writer_file(struct pump *pump);
/* Returns true while the buffer holds data. */
bool async_writer_pending(struct pump *pump);
/*
 * Writes the remaining data, then closes and frees the writer. Gives up after 2 s without progress.
 * Returns 0, or a negative errno if some of the data was not written.
 */
int async_writer_close(struct pump *pump);

#endif
