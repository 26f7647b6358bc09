/* SPDX-License-Identifier: MIT */
/*
 * When the GPU does what a program gives it: events around the work, read by a thread of its
 * own.
 */
#ifndef GPUPART_LIB_STAT_TIME_H
#define GPUPART_LIB_STAT_TIME_H

#include "lib/driver/cuda.h"

struct stat_ctx;

/* Work that is being submitted, between the begin and the end of the call. */
struct stat_ticket {
	struct stat_ctx *ctx;	/* NULL: its time is not taken */
	void *stream;		/* a handle that means the same to every thread's calls */
	void *before;		/* the event, or NULL */
	uint64_t asked;		/* when it was to be recorded */
	uint64_t begin;		/* what the call itself began */
	bool waits, copy;
	uint64_t blocked;	/* recording an event had to wait so long: no room in the buffer */
	bool captured;		/* by the begin: it is put into a graph, and does not run */
};

/* CLOCK_MONOTONIC in ns. */
uint64_t stat_time_now(void);

/* Once: sums go to @process. */
void stat_time_start(const struct cuda_api *cuda, struct gpupart_stat_process *process);

/* The current context, or NULL: it cannot be timed. */
struct stat_ctx *stat_time_ctx(void *ctx);

/*
 * Before the call: ticket->stream, waits and copy are filled in; @order is the
 * same for what is done in order. Without ticket->ctx afterwards its time is not taken.
 */
void stat_time_begin(struct stat_ctx *ctx, const void *order, struct stat_ticket *ticket);

/* After it; @good: it gave the GPU something to do. ticket->blocked is whole then. */
void stat_time_end(struct stat_ticket *ticket, uint64_t end, bool good);

/* The CPU waited for what is in this context. */
void stat_time_wait(struct stat_ctx *ctx, uint64_t begin, uint64_t end);

/* What is submitted next does not begin when what was before it in its stream has ended. */
void stat_time_depend(struct stat_ctx *ctx);

/* The calling thread spent @ns on measuring what it does in this context. */
void stat_time_own(struct stat_ctx *ctx, uint64_t ns);

/* What is over is looked at now: the contexts may go. @gone: they (@ctx NULL: all) do. */
void stat_time_settle(const void *ctx, bool gone);

/* The driver tells, at a place where it must not be called. */
void stat_time_ctx_goes(const void *ctx);

/* The process ends. */
void stat_time_finish(void);

#endif
