// SPDX-License-Identifier: MIT
/*
 * What a process asks of its GPUs and how long it waits for them, for `gpupart stat`: counts its
 * calls and has its work timed. In a process that is measured, and in no other.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "lib/stat/block.h"
#include "lib/stat/watched_functions.h"
#include "lib/stat/time.h"

static const struct cuda_api *cuda;
static struct gpupart_stat_process *process;
static atomic_bool off = true;

/* The call that this thread is in. */
static _Thread_local struct {
	const struct stat_call *call;
	struct stat_ctx *ctx;
	struct stat_ticket ticket;
	uint64_t begin, own;
	uint64_t asked_since;	/* it has been told "not yet" since then */
} now;

static void add(uint64_t *count, uint64_t n)
{
	__atomic_fetch_add(count, n, __ATOMIC_RELAXED);
}

static bool is_work(const struct stat_call *call)
{
	return call->fn.kind <= STAT_COPY;
}

/* Of several threads that wait, the last to begin is told of. */
static void note_wait(uint64_t since)
{
	__atomic_store_n(&process->waits_since_ns, since, __ATOMIC_RELAXED);
}

static void note_wait_over(uint64_t since)
{
	__atomic_compare_exchange_n(&process->waits_since_ns, &since, 0, false, __ATOMIC_RELAXED,
				    __ATOMIC_RELAXED);
}

static bool waits(const struct stat_call *call)
{
	return call->fn.kind == STAT_SYNC || call->flags & STAT_WAITS;
}

/* ----------------------------------------------------------------------- begin */

static void begin_work(const struct stat_call *call, const struct cuda_call_params *params)
{
	void *stream = stat_calls_stream(call, params->arguments);
	bool own = stream == CUDA_STREAM_PER_THREAD ||
		   (!stream && call->flags & STAT_PER_THREAD);
	/* Per-thread default streams have one handle, and are one a thread. */
	const void *order = own ? (const void *)&now : stream ? stream : CUDA_STREAM_LEGACY;

	now.ticket = (struct stat_ticket){
		.stream = own ? CUDA_STREAM_PER_THREAD : stream ? stream : CUDA_STREAM_LEGACY,
		.waits = call->flags & STAT_WAITS,
		.copy = call->fn.kind == STAT_COPY,
	};
	if (now.ctx)
		stat_time_begin(now.ctx, order, &now.ticket);
}

static void begin(const struct stat_call *call, const struct cuda_call_params *params)
{
	uint64_t start = stat_time_now(), none = 0;

	now.call = call;
	now.ctx = NULL;
	if (call->fn.kind == STAT_CTX_RELEASE)
		stat_time_settle(NULL, false);
	else if (call->fn.kind == STAT_CTX_END)
		stat_time_settle(*(void *const *)params->arguments, true);
	else if (params->ctx && call->fn.kind != STAT_QUERY)
		now.ctx = stat_time_ctx(params->ctx);
	if (is_work(call)) {
		__atomic_compare_exchange_n(&process->first_ns, &none, start, false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
		begin_work(call, params);
	}
	if (call->fn.kind == STAT_DEPEND && now.ctx)
		stat_time_depend(now.ctx);
	now.begin = now.ticket.begin = stat_time_now();
	now.own = now.begin - start;
	if (waits(call))
		note_wait(now.begin);
}

/* ------------------------------------------------------------------------- end */

/*
 * A program that asks again and again whether it must wait, waits: from the first "not
 * yet" to the answer that is another.
 */
static void end_query(uint64_t end, int result)
{
	add(&process->queries, 1);
	if (result != CUDA_ERROR_NOT_READY) {
		if (now.asked_since)
			add(&process->wait_ns, end - now.asked_since);
		note_wait_over(now.asked_since);
		now.asked_since = 0;
	} else if (!now.asked_since) {
		now.asked_since = now.begin;
		note_wait(now.begin);
	}
}

/* Who does something else has not waited for the answer. */
static void forget_questions(void)
{
	if (now.asked_since)
		note_wait_over(now.asked_since);
	now.asked_since = 0;
}

static void end_wait(uint64_t end)
{
	add(&process->syncs, 1);
	add(&process->wait_ns, end - now.begin);
	if (now.ctx)
		stat_time_wait(now.ctx, now.begin, end);
}

static void count_copy(const struct stat_call *call,
		       const void *arguments)
{
	unsigned int direction = stat_calls_direction(cuda, call, arguments);

	add(&process->copies[direction], 1);
	add(&process->bytes[direction], stat_calls_bytes(call, arguments));
}

static void end_work(const struct stat_call *call,
		     const struct cuda_call_params *params, uint64_t end)
{
	bool good = !*params->result;

	if (now.ticket.ctx)
		stat_time_end(&now.ticket, end, good);
	if (!good || now.ticket.captured)
		return;
	if (call->fn.kind == STAT_KERNEL)
		add(&process->kernels, 1);
	else if (call->fn.kind == STAT_GRAPH)
		add(&process->graphs, 1);
	else if (call->fn.kind == STAT_FILL)
		add(&process->fills, 1);
	else
		count_copy(call, params->arguments);
	if (call->flags & STAT_WAITS)
		end_wait(end);
	else
		add(&process->launch_ns, end - now.begin + now.ticket.blocked);
}

static void end(const struct stat_call *call,
		const struct cuda_call_params *params)
{
	uint64_t over = stat_time_now();

	/* What began before this process was measured has no begin. */
	if (now.call != call)
		return;
	now.call = NULL;
	if (waits(call))
		note_wait_over(now.begin);
	if (is_work(call))
		end_work(call, params, over);
	else if (call->fn.kind == STAT_SYNC)
		end_wait(over);
	if (call->fn.kind == STAT_QUERY)
		end_query(over, *params->result);
	else
		forget_questions();
	__atomic_store_n(&process->last_ns, over, __ATOMIC_RELAXED);
	now.own += stat_time_now() - over;
	if (is_work(call))
		now.own -= now.ticket.blocked < now.own ? now.ticket.blocked : now.own;
	/* A question that takes longer delays nothing but the next one. */
	if (call->fn.kind != STAT_QUERY)
		add(&process->own_ns, now.own);
	if (now.ctx)
		stat_time_own(now.ctx, now.own);
}

static void on_call(const struct driver_function *fn, const struct cuda_call_params *params)
{
	const struct stat_call *call = (const void *)fn;

	/* cuCtxSynchronize has no arguments. */
	if (atomic_load_explicit(&off, memory_order_relaxed) ||
	    (!params->arguments && fn->kind != STAT_SYNC))
		return;
	/* Functions that we call are not the program's. */
	driver_own(true);
	if (params->site == CUDA_SITE_BEGIN)
		begin(call, params);
	else
		end(call, params);
	driver_own(false);
}

static void on_resource(int cbid, const struct resource_params *params)
{
	if (cbid == DRIVER_CTX_GOES && !atomic_load_explicit(&off, memory_order_relaxed))
		stat_time_ctx_goes(params->ctx);
}

/* ----------------------------------------------------------------------- start */

/* A forked child has no reader, and what it cannot do with CUDA is not to be measured. */
static void after_fork(void)
{
	atomic_store(&off, true);
}

static void at_exit(void)
{
	if (atomic_exchange(&off, true))
		return;
	driver_own(true);
	stat_time_finish();
}

static int start(struct gpupart *gp, struct stat_block *block)
{
	static const struct driver_observer observer = {
		.name = "stat", .first = true, .stays = true, .rows = &stat_calls[0].fn,
		.row_size = sizeof(stat_calls[0]), .call = on_call, .resource = on_resource,
	};
	int err;

	if (!(cuda->event_create && cuda->event_record && cuda->event_query &&
	      cuda->event_elapsed))
		return ctx_fail(gp, -EOPNOTSUPP,
				"this driver is too old: its libcuda.so.1 has no events");
	err = driver_observe(gp, cuda, &observer);
	if (err)
		return err;
	driver_watch_resource(DRIVER_CTX_GOES);
	return stat_block_join(gp, block, &process);
}

int gpupart_stat_start(struct gpupart *gp, const char *id)
{
	struct stat_block *block;
	int err;

	if (!id)
		return ctx_fail(gp, -EINVAL, "no place to be measured for is given");
	if (process)
		return ctx_fail(gp, -EBUSY, "this process is measured already");
	err = stat_block_map(gp, id, &block);
	if (err)
		return err;
	err = cuda_open(gp, &cuda);
	if (!err)
		err = start(gp, block);
	if (err) {
		/* Of what found no room that is known already. */
		if (err != -ENOSPC)
			stat_block_refuse(block);
		return err;
	}
	stat_time_start(cuda, process);
	pthread_atfork(NULL, NULL, after_fork);
	atexit(at_exit);
	atomic_store(&off, false);
	return 0;
}
