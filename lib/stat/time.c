// SPDX-License-Identifier: MIT
/*
 * See time.h. A piece of work ends at an event recorded after it; it begins at the end of the
 * one before it in its stream, at an event recorded before it where that says nothing, and
 * never before the call that submitted it has ended. So most need one event. Where even that
 * would cost too much, looking is interrupted.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "lib/driver/callback.h"
#include "lib/stat/fold.h"
#include "lib/stat/time.h"

#define RING		4096		/* pieces of work that are not looked at yet */
#define RING_LEAST	8		/* free places, or looking is interrupted */
#define SLICE_NS	10000000	/* after so long it is seen whether it costs too much .. */
#define COST_PARTS	30		/* .. : more than a 30th of the thread's time */
#define FULL_NS		5000000		/* without looking, after all places were taken */
#define CLOCK_NS	100000000	/* the two clocks are compared so often */
#define SETUP_NS	20000000	/* at most, until the first comparison */
#define FINISH_NS	200000000	/* at most, for what is still running at the end */
#define RECORD_NS	20000		/* recording an event takes 1 us, or longer: no room */
#define OWN_MOST_NS	(2 * RECORD_NS)	/* a call's; longer: another thread had the CPU */
#define POLL_NS		500000
#define IDLE_NS		5000000

enum item_kind { ITEM_WORK, ITEM_WAIT, ITEM_CUT };

struct item {
	enum item_kind kind;
	bool copy, waits;
	void *before, *after;
	uint64_t asked;			/* just before the event before it was recorded */
	uint64_t begin, end;		/* the call */
	uint64_t untimed;		/* work before it whose time is not taken */
};

struct stat_ctx {
	void *ctx;
	atomic_bool dead;
	struct gpupart_stat_gpu *sums;

	/* Guarded by lock, which nobody holds while in the driver. */
	pthread_mutex_t lock;
	struct item ring[RING];
	unsigned int head, tail;	/* first and one after the last, counted on */
	void *events[2 * RING];		/* not in use */
	unsigned int nr_events, nr_made;
	const void *last_order;		/* what was submitted last, or NULL: not known */
	unsigned int nr_inside;		/* threads between begin and end */
	bool stretch;
	pthread_t stretch_thread;
	uint64_t slice_start, slice_own, paused_until;

	/* Guarded by reading, held while the driver is asked about events. */
	pthread_mutex_t reading;
	void *clock_stream, *clock_base, *clock_next;
	bool clock_asked;
	uint64_t clock_asked_at;	/* CPU */
	int64_t base_ns;		/* of the base event, since the first of them */
	int64_t offset, offset_before;	/* CPU less GPU, the largest that was seen */
	int64_t last_end;
	struct stat_fold fold;
};

static const struct cuda_api *cuda;
static struct gpupart_stat_process *process;
static pthread_mutex_t ctxs_lock = PTHREAD_MUTEX_INITIALIZER;
static struct stat_ctx *_Atomic ctxs[GPUPART_STAT_MAX_GPUS];
static atomic_uint nr_ctxs;
static atomic_bool finished;

uint64_t stat_time_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static void sleep_ns(long ns)
{
	struct timespec ts = { .tv_nsec = ns };

	nanosleep(&ts, NULL);
}

/* ---------------------------------------------------------------------- clocks */

/* False: the context, or the driver, is no more. */
static bool gpu_time(struct stat_ctx *c, void *event, int64_t *ns)
{
	float ms;

	if (cuda->event_elapsed(&ms, c->clock_base, event))
		return false;
	*ns = c->base_ns + (int64_t)((double)ms * 1e6);
	return true;
}

/*
 * An event that was not yet recorded at @cpu was reached at @gpu: so the difference is
 * at least theirs. The largest is the nearest, and includes what a submission takes at
 * least to reach an idle GPU.
 */
static void clocks_compare(struct stat_ctx *c, uint64_t cpu, int64_t gpu)
{
	if ((int64_t)cpu - gpu > c->offset)
		c->offset = (int64_t)cpu - gpu;
}

static int64_t on_gpu(const struct stat_ctx *c, uint64_t cpu)
{
	return (int64_t)cpu - (c->offset > c->offset_before ? c->offset : c->offset_before);
}

static bool clock_ask(struct stat_ctx *c)
{
	c->clock_asked_at = stat_time_now();
	c->clock_asked = !cuda->event_record(c->clock_next, c->clock_stream);
	return c->clock_asked;
}

/*
 * Events tell milliseconds since another event as a float: the other must be near, so it
 * is exchanged. Of the comparisons before the last two nothing is kept: clocks drift.
 */
static bool clock_answer(struct stat_ctx *c)
{
	int result = cuda->event_query(c->clock_next);
	void *base = c->clock_base;
	int64_t ns;

	if (result == CUDA_ERROR_NOT_READY)
		return true;
	if (result || !gpu_time(c, c->clock_next, &ns))
		return false;
	c->offset_before = c->offset;
	c->offset = (int64_t)c->clock_asked_at - ns;
	c->clock_base = c->clock_next;
	c->clock_next = base;
	c->base_ns = ns;
	c->clock_asked = false;
	return true;
}

static bool clock_care(struct stat_ctx *c)
{
	if (c->clock_asked)
		return clock_answer(c);
	return stat_time_now() - c->clock_asked_at < CLOCK_NS || clock_ask(c);
}

/* ------------------------------------------------------------- reading of events */

static void give_back(struct stat_ctx *c, const struct item *item)
{
	pthread_mutex_lock(&c->lock);
	if (item->before)
		c->events[c->nr_events++] = item->before;
	if (item->after)
		c->events[c->nr_events++] = item->after;
	c->head++;
	pthread_mutex_unlock(&c->lock);
}

static bool take_item(struct stat_ctx *c, struct item *item)
{
	bool there;

	pthread_mutex_lock(&c->lock);
	there = c->head != c->tail;
	if (there)
		*item = c->ring[c->head % RING];
	pthread_mutex_unlock(&c->lock);
	return there;
}

/* 1: done, 0: it is not over yet, -1: nothing can be found out any more. */
static int read_work(struct stat_ctx *c, const struct item *item)
{
	struct stat_work *work = &c->fold.work[c->fold.nr_work];
	int result = cuda->event_query(item->after);
	int64_t start = c->last_end, called;

	if (result == CUDA_ERROR_NOT_READY)
		return 0;
	if (result || !gpu_time(c, item->after, &work->end) ||
	    (item->before && !gpu_time(c, item->before, &start)))
		return -1;
	if (item->before)
		clocks_compare(c, item->asked, start);
	work->asked = on_gpu(c, item->begin);
	called = on_gpu(c, item->end);
	work->submitted = item->waits ? work->asked : called;
	work->start = start > work->submitted ? start : work->submitted;
	if (work->start > work->end)
		work->start = work->end;
	work->copy = item->copy;
	c->last_end = work->end;
	c->fold.untimed_over = item->untimed;
	c->fold.nr_work++;
	return 1;
}

static int read_item(struct stat_ctx *c, const struct item *item)
{
	struct stat_fold *fold = &c->fold;

	switch (item->kind) {
	case ITEM_WORK:
		if (fold->nr_work == STAT_BATCH)
			stat_fold_batch(fold);
		return read_work(c, item);
	case ITEM_WAIT:
		if (fold->nr_waits == STAT_BATCH)
			stat_fold_batch(fold);
		if (fold->nr_waits < STAT_BATCH)
			fold->waits[fold->nr_waits++] = (struct stat_wait){
				on_gpu(c, item->begin), on_gpu(c, item->end),
			};
		return 1;
	case ITEM_CUT:
		stat_fold_end(fold, on_gpu(c, item->begin));
		return 1;
	}
	return 1;
}

/* With reading held. False: something is left. */
static bool read_all(struct stat_ctx *c)
{
	struct item item;
	void *pushed;
	int done = 1;

	if (atomic_load(&c->dead) || cuda->ctx_push(c->ctx))
		return true;
	if (!clock_care(c))
		done = -1;
	while (done > 0 && take_item(c, &item)) {
		done = read_item(c, &item);
		if (done > 0)
			give_back(c, &item);
	}
	cuda->ctx_pop(&pushed);
	stat_fold_batch(&c->fold);
	if (done < 0)
		atomic_store(&c->dead, true);
	return done;
}

static void *read_always(void *unused)
{
	int relaxed = CUDA_CAPTURE_MODE_RELAXED;
	bool all = true;

	(void)unused;
	driver_own(true);
	/* What we ask must not end a capture that another thread makes. */
	cuda->capture_mode(&relaxed);
	while (!atomic_load(&finished)) {
		sleep_ns(all ? IDLE_NS : POLL_NS);
		all = true;
		for (unsigned int i = 0; i < atomic_load(&nr_ctxs); i++) {
			struct stat_ctx *c = atomic_load(&ctxs[i]);

			pthread_mutex_lock(&c->reading);
			if (!read_all(c) || c->stretch)
				all = false;
			pthread_mutex_unlock(&c->reading);
		}
	}
	return NULL;
}

/* -------------------------------------------------------------------- contexts */

static bool start_reader(void)
{
	sigset_t all, before;
	pthread_t thread;
	int err;

	/* The program's signals are for its own threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&thread, NULL, read_always, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!err)
		pthread_detach(thread);
	return !err;
}

static bool clock_setup(struct stat_ctx *c)
{
	uint64_t start = stat_time_now();
	int result;

	if (cuda->stream_create(&c->clock_stream, CUDA_STREAM_NON_BLOCKING) ||
	    cuda->event_create(&c->clock_base, 0) || cuda->event_create(&c->clock_next, 0) ||
	    cuda->event_record(c->clock_base, c->clock_stream))
		return false;
	/* The first is the clock's zero; from the second on the two clocks are known. */
	c->offset = c->offset_before = (int64_t)start;
	while ((result = cuda->event_query(c->clock_base)) == CUDA_ERROR_NOT_READY)
		if (stat_time_now() - start > SETUP_NS)
			return false;
	if (result || !clock_ask(c))
		return false;
	while (c->clock_asked)
		if (!clock_answer(c) || stat_time_now() - start > SETUP_NS)
			return false;
	c->offset_before = c->offset;
	return true;
}

static void describe(struct gpupart_stat_gpu *sums)
{
	char pci[20] = "";
	int device = 0, sms = 0;

	if (!cuda->ctx_device(&device)) {
		cuda->device_pci(pci, sizeof(pci), device);
		cuda->device_attr(&sms, CUDA_ATTR_MULTIPROCESSORS, device);
	}
	for (char *p = pci; *p; p++)
		if (*p >= 'A' && *p <= 'F')
			*p += 'a' - 'A';
	memcpy(sums->pci, pci, sizeof(pci));
	sums->nr_sms = sms > 0 ? sms : 1;
}

/* With ctxs_lock held. */
static struct stat_ctx *ctx_add(void *ctx)
{
	unsigned int nr = atomic_load(&nr_ctxs);
	int mode = CUDA_CAPTURE_MODE_RELAXED;
	struct stat_ctx *c;

	if (nr == GPUPART_STAT_MAX_GPUS || (!nr && !start_reader()))
		return NULL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->ctx = ctx;
	c->sums = &process->gpus[nr];
	c->fold.sums = c->sums;
	pthread_mutex_init(&c->lock, NULL);
	pthread_mutex_init(&c->reading, NULL);
	describe(c->sums);
	cuda->capture_mode(&mode);
	if (!clock_setup(c))
		atomic_store(&c->dead, true);
	cuda->capture_mode(&mode);
	atomic_store(&ctxs[nr], c);
	atomic_store(&nr_ctxs, nr + 1);
	__atomic_store_n(&process->nr_gpus, nr + 1, __ATOMIC_RELEASE);
	return c;
}

/* A context may come to be where a dead one was. */
static struct stat_ctx *ctx_find(const void *ctx)
{
	unsigned int nr = atomic_load(&nr_ctxs);

	while (nr--) {
		struct stat_ctx *c = atomic_load(&ctxs[nr]);

		if (c->ctx == ctx)
			return c;
	}
	return NULL;
}

struct stat_ctx *stat_time_ctx(void *ctx)
{
	struct stat_ctx *c = ctx_find(ctx);

	if (!ctx || atomic_load(&finished))
		return NULL;
	if (c && c->ctx)
		return c;
	pthread_mutex_lock(&ctxs_lock);
	c = ctx_find(ctx);
	if (!c)
		c = ctx_add(ctx);
	pthread_mutex_unlock(&ctxs_lock);
	return c;
}

/* The context, or the process, ends. */
static void untimed_is_over(struct stat_ctx *c)
{
	uint64_t untimed = __atomic_load_n(&c->sums->untimed, __ATOMIC_RELAXED);

	__atomic_store_n(&c->sums->untimed_over, untimed, __ATOMIC_RELAXED);
}

void stat_time_settle(const void *ctx, bool gone)
{
	for (unsigned int i = 0; i < atomic_load(&nr_ctxs); i++) {
		struct stat_ctx *c = atomic_load(&ctxs[i]);

		if (ctx && c->ctx != ctx)
			continue;
		pthread_mutex_lock(&c->reading);
		read_all(c);
		if (gone) {
			untimed_is_over(c);
			atomic_store(&c->dead, true);
			c->ctx = NULL;
		}
		pthread_mutex_unlock(&c->reading);
	}
}

void stat_time_ctx_goes(const void *ctx)
{
	struct stat_ctx *c = ctx_find(ctx);

	if (!c)
		return;
	atomic_store(&c->dead, true);
	c->ctx = NULL;
}

void stat_time_finish(void)
{
	uint64_t start = stat_time_now();

	for (unsigned int i = 0; i < atomic_load(&nr_ctxs); i++) {
		struct stat_ctx *c = atomic_load(&ctxs[i]);

		pthread_mutex_lock(&c->reading);
		while (!read_all(c) && stat_time_now() - start < FINISH_NS)
			sleep_ns(POLL_NS);
		untimed_is_over(c);
		/* From now on the reader asks no driver that may be on its way out. */
		atomic_store(&c->dead, true);
		pthread_mutex_unlock(&c->reading);
		__atomic_fetch_add(&process->unresolved, c->tail - c->head, __ATOMIC_RELAXED);
	}
	atomic_store(&finished, true);
}

/* --------------------------------------------------------- what the program does */

static void put(struct stat_ctx *c, const struct item *item)
{
	c->ring[c->tail++ % RING] = *item;
}

static void interrupt(struct stat_ctx *c, uint64_t now, uint64_t ns)
{
	const struct item cut = { .kind = ITEM_CUT, .begin = now };

	put(c, &cut);
	c->stretch = false;
	c->paused_until = now + ns;
}

/* With lock held: whether the time of what comes now is taken. */
static bool worth_it(struct stat_ctx *c, uint64_t now)
{
	uint64_t slice, due;

	if (!c->stretch) {
		if (now < c->paused_until || c->tail - c->head + 2 * RING_LEAST > RING)
			return false;
		c->stretch = true;
		c->stretch_thread = pthread_self();
		c->last_order = NULL;
		c->slice_start = now;
		c->slice_own = 0;
	}
	slice = now - c->slice_start;
	if (c->tail - c->head + RING_LEAST > RING) {
		interrupt(c, now, FULL_NS);
	} else if (slice >= SLICE_NS) {
		due = c->slice_own * COST_PARTS;
		if (due > slice)
			interrupt(c, now, due - slice > SLICE_NS ? due - slice : SLICE_NS);
		c->slice_start = now;
		c->slice_own = 0;
	}
	return c->stretch;
}

/* NULL where there is none to be had. Calls the driver. */
static void *take_event(struct stat_ctx *c)
{
	int mode = CUDA_CAPTURE_MODE_RELAXED;
	void *event = NULL;
	bool make;

	pthread_mutex_lock(&c->lock);
	if (c->nr_events)
		event = c->events[--c->nr_events];
	make = !event && c->nr_made < 2 * RING;
	c->nr_made += make;
	pthread_mutex_unlock(&c->lock);
	if (!make)
		return event;
	cuda->capture_mode(&mode);
	if (cuda->event_create(&event, 0))
		event = NULL;
	cuda->capture_mode(&mode);
	return event;
}

/*
 * Where the command buffer is full, an event waits for room as the next launch would: that
 * is no cost of measuring.
 */
static bool record(struct stat_ticket *ticket, void *event)
{
	uint64_t start = stat_time_now(), taken;
	bool good = !cuda->event_record(event, ticket->stream);

	taken = stat_time_now() - start;
	if (taken > RECORD_NS)
		ticket->blocked += taken;
	return good;
}

static void put_event(struct stat_ctx *c, void *event)
{
	if (!event)
		return;
	pthread_mutex_lock(&c->lock);
	c->events[c->nr_events++] = event;
	pthread_mutex_unlock(&c->lock);
}

/* It leaves again; its time is not taken, so of the next one more must be known. */
static void leave(struct stat_ctx *c)
{
	pthread_mutex_lock(&c->lock);
	c->nr_inside--;
	c->last_order = NULL;
	pthread_mutex_unlock(&c->lock);
	__atomic_fetch_add(&c->sums->untimed, 1, __ATOMIC_RELAXED);
}

/* Where the order alone says when it begins, no event before it is needed. */
static bool enter(struct stat_ctx *c, const void *order, bool waits, bool *needs_before)
{
	bool good;

	pthread_mutex_lock(&c->lock);
	good = !atomic_load_explicit(&c->dead, memory_order_relaxed) &&
	       worth_it(c, stat_time_now());
	if (good) {
		*needs_before = waits || c->nr_inside || c->last_order != order;
		c->nr_inside++;
		c->last_order = order;
	}
	pthread_mutex_unlock(&c->lock);
	if (!good)
		__atomic_fetch_add(&c->sums->untimed, 1, __ATOMIC_RELAXED);
	return good;
}

void stat_time_begin(struct stat_ctx *c, const void *order, struct stat_ticket *ticket)
{
	bool needs_before;
	int capturing = 0, refused;

	ticket->ctx = NULL;
	ticket->before = NULL;
	ticket->blocked = 0;
	refused = cuda->stream_capturing(ticket->stream, &capturing);
	ticket->captured = !refused && capturing;
	if (ticket->captured || !enter(c, order, ticket->waits, &needs_before))
		return;
	/* Where nobody may even ask, a capture is going on that an event would end. */
	if (refused)
		goto leave;
	if (needs_before) {
		ticket->before = take_event(c);
		ticket->asked = stat_time_now();
		if (!ticket->before || !record(ticket, ticket->before))
			goto leave;
	}
	ticket->ctx = c;
	return;

leave:
	put_event(c, ticket->before);
	leave(c);
}

static void forget(struct stat_ctx *c, const struct item *item)
{
	put_event(c, item->before);
	put_event(c, item->after);
	leave(c);
}

void stat_time_end(struct stat_ticket *ticket, uint64_t end, bool good)
{
	struct stat_ctx *c = ticket->ctx;
	struct item item = {
		.kind = ITEM_WORK, .copy = ticket->copy, .waits = ticket->waits,
		.before = ticket->before, .asked = ticket->asked,
		.begin = ticket->begin,
	};

	if (good && !atomic_load_explicit(&c->dead, memory_order_relaxed)) {
		item.after = take_event(c);
		good = item.after && record(ticket, item.after);
	} else {
		good = false;
	}
	if (!good) {
		forget(c, &item);
		return;
	}
	item.end = end + ticket->blocked;
	item.untimed = __atomic_load_n(&c->sums->untimed, __ATOMIC_RELAXED);
	pthread_mutex_lock(&c->lock);
	good = c->tail - c->head < RING;
	if (good) {
		c->nr_inside--;
		put(c, &item);
	}
	pthread_mutex_unlock(&c->lock);
	if (!good)
		forget(c, &item);
}

void stat_time_wait(struct stat_ctx *c, uint64_t begin, uint64_t end)
{
	const struct item item = { .kind = ITEM_WAIT, .begin = begin, .end = end };

	pthread_mutex_lock(&c->lock);
	if (c->stretch && c->tail - c->head + RING_LEAST <= RING)
		put(c, &item);
	pthread_mutex_unlock(&c->lock);
}

void stat_time_depend(struct stat_ctx *c)
{
	pthread_mutex_lock(&c->lock);
	c->last_order = NULL;
	pthread_mutex_unlock(&c->lock);
}

/* On a busy host a thread may stand still anywhere: that is no cost of measuring. */
void stat_time_own(struct stat_ctx *c, uint64_t ns)
{
	if (ns > OWN_MOST_NS)
		ns = OWN_MOST_NS;
	pthread_mutex_lock(&c->lock);
	if (c->stretch) {
		c->slice_own += ns;
		if (pthread_equal(c->stretch_thread, pthread_self()))
			__atomic_fetch_add(&c->sums->own_ns, ns, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&c->lock);
}

void stat_time_start(const struct cuda_api *api, struct gpupart_stat_process *sums)
{
	cuda = api;
	process = sums;
}
