/* SPDX-License-Identifier: MIT */
/*
 * Which set applies to a launch: limit AND (next launch, else stream, else process,
 * else all). Setters may lock; what the launch callback calls does not, nor
 * allocate, nor fail. Knows no mask bit's polarity.
 */
#ifndef GPUPART_LIB_SCOPE_H
#define GPUPART_LIB_SCOPE_H

#include <stdatomic.h>
#include "tmd.h"

/*
 * A set that is replaced while launches read it: eight slots, and a count of
 * publications whose remainder is the slot in force. A reader that finds the count
 * moved by seven or more while it copied has to copy again. All zero means: none.
 */
#define SCOPE_SLOTS 8

struct scope_ring {
	_Atomic uint64_t published;
	struct {
		_Atomic uint64_t tmd_bits[GPUPART_MAX_TMD_BITS / 64];
		_Atomic uint64_t tpcs[GPUPART_TPCSET_WORDS];
	} slot[SCOPE_SLOTS];
};

/* A created stream by its handle; a default stream by its context and, per thread, the thread. */
struct scope_stream_id {
	void *handle;
	void *ctx;
	const void *thread;
};

#define SCOPE_MAX_STREAMS	4096
#define SCOPE_TABLE_BITS	13
#define SCOPE_TABLE_SIZE	(1u << SCOPE_TABLE_BITS)
#define SCOPE_MAX_PROBES	64
#define SCOPE_TMD_NEVER		0
#define SCOPE_TMD_GONE		1

struct scope_stream {
	_Atomic uint64_t tmd;	/* address of the stream's TMD, or one of the two above */
	struct scope_ring ring;
	struct scope_stream_id id;
	uint64_t object;	/* the driver's object behind the handle, 0 for a default stream */
	const void *ctx;	/* it goes with this context */
};

struct gpupart_gpu {
	struct gpupart_topology *topo;
	unsigned int compute_class;
	struct tmd_map map;
	atomic_bool sm_limits_known;	/* map.sm was filled */
	atomic_bool trusted;		/* the map was checked on this GPU */
	atomic_bool in_use;		/* a set was given once: launches are worth a look */
	struct scope_ring limit, process;
	bool has_outer;			/* a limit from outside, that no call here widens */
	struct gpupart_tpcset outer;
	atomic_uint nr_streams;		/* with sets */
	struct scope_stream *streams;	/* 1 << SCOPE_TABLE_BITS, open addressing by tmd */
	uint16_t used[SCOPE_MAX_STREAMS]; /* which of them, the first nr_streams count */
	int control_place;		/* in the block that others see */
	int device;			/* CUDA's number of it, -1 where none was asked for yet */
	bool learned;			/* check_gpu() went through */
	/* How streams are told apart: filled by check.c. */
	bool streams_known;
	unsigned int stream_tmd_offset;	/* of the TMD's address in the driver's stream object */
	char streams_why[160];		/* why not */
	struct gpupart_check check;
};

/* A launch of our own, to learn from or to check with. */
struct scope_own {
	enum { OWN_UNTOUCHED, OWN_LEAVE_OUT } mode;
	const struct gpupart_gpu *gpu;
	const struct gpupart_tpcset *left_out;	/* for OWN_LEAVE_OUT */
	bool seen;				/* the callback came */
	enum tmd_outcome outcome;
	void *tmd;				/* where its TMD stood */
	unsigned char bytes[384];		/* as the driver built it */
};

/* What the callback looks at first; one a thread. */
struct scope_thread {
	const struct gpupart_gpu *next_gpu;	/* a next-launch set is waiting */
	struct tmd_allow next;
	struct scope_own *own;
};

extern _Thread_local struct scope_thread scope_thread;

/* What applies to one launch; a NULL is "none". Points into @limit_copy and @set_copy. */
struct scope_now {
	const struct tmd_allow *limit, *set;
	struct tmd_allow limit_copy, set_copy;
};

/* @set NULL takes it away. @set must be checked. */
void scope_ring_set(struct gpupart_gpu *gpu, struct scope_ring *ring,
		    const struct gpupart_tpcset *set);
/* False and all TPCs of @gpu where there is none. */
bool scope_ring_get(const struct scope_ring *ring, const struct gpupart_gpu *gpu,
		    struct gpupart_tpcset *set);

/*
 * Sets a stream that has an entry already, or takes the entry away (@set NULL): true.
 * False where it has none: the caller
 * finds its TMD and calls scope_stream_add().
 */
bool scope_stream_set_known(struct gpupart_gpu *gpu, const struct scope_stream_id *id,
			    const struct gpupart_tpcset *set);
int scope_stream_add(struct gpupart *gp, struct gpupart_gpu *gpu, const struct scope_stream_id *id,
		     uint64_t object, const void *ctx, uint64_t tmd,
		     const struct gpupart_tpcset *set);
bool scope_stream_get_known(struct gpupart_gpu *gpu, const struct scope_stream_id *id,
			    struct gpupart_tpcset *set, bool *has_set);

/* Its stream, context or thread goes: so do the entries. 0 or NULL matches nothing. */
void scope_stream_gone(struct gpupart_gpu *gpu, uint64_t object, const void *ctx,
		       const void *thread);

/* ------------------- the callback's half: inline, every launch pays for it */

/*
 * Copies the set in force; false where there is none. A copy is torn only by writers
 * that publish seven times while 32 bytes are read, and then it is made again: 64
 * times at most, since a launch must not wait for ever.
 */
static inline __attribute__((always_inline))
bool scope_ring_read(const struct scope_ring *ring, unsigned int nr_words, struct tmd_allow *allow)
{
	uint64_t before, after, any = 0;

	for (int tries = 0; tries < 64; tries++) {
		before = atomic_load_explicit(&ring->published, memory_order_acquire);
		if (!before)
			return false;
		any = 0;
		for (unsigned int i = 0; i < nr_words; i++) {
			allow->tmd_bits[i] =
				atomic_load_explicit(&ring->slot[before % SCOPE_SLOTS].tmd_bits[i],
						     memory_order_relaxed);
			any |= allow->tmd_bits[i];
		}
		atomic_thread_fence(memory_order_acquire);
		after = atomic_load_explicit(&ring->published, memory_order_relaxed);
		if (__builtin_expect(after - before < SCOPE_SLOTS - 1, 1))
			break;
	}
	return any;
}

static inline unsigned int scope_table_start(uint64_t tmd)
{
	return (tmd >> 4) * 0x9e3779b97f4a7c15ull >> (64 - SCOPE_TABLE_BITS);
}

static inline const struct scope_stream *
scope_stream_of_tmd(const struct gpupart_gpu *gpu, uint64_t tmd)
{
	unsigned int at = scope_table_start(tmd);

	for (int probe = 0; probe < SCOPE_MAX_PROBES; probe++, at = (at + 1) % SCOPE_TABLE_SIZE) {
		uint64_t key = atomic_load_explicit(&gpu->streams[at].tmd, memory_order_acquire);

		if (key == tmd)
			return &gpu->streams[at];
		if (key == SCOPE_TMD_NEVER)
			break;
	}
	return NULL;
}

/* One body for two counts of words, so that each is straight code. */
static inline __attribute__((always_inline))
bool scope_resolve_words(const struct gpupart_gpu *gpu, const void *tmd, struct scope_now *now,
		   unsigned int nr_words)
{
	struct scope_thread *thread = &scope_thread;
	const struct scope_stream *stream;

	now->limit =
		scope_ring_read(&gpu->limit, nr_words, &now->limit_copy) ? &now->limit_copy : NULL;
	now->set = &now->set_copy;
	if (__builtin_expect(thread->next_gpu == gpu, 0)) {
		thread->next_gpu = NULL;
		now->set_copy = thread->next;
		return true;
	}
	if (atomic_load_explicit(&gpu->nr_streams, memory_order_relaxed)) {
		stream = scope_stream_of_tmd(gpu, (uintptr_t)tmd);
		if (stream && scope_ring_read(&stream->ring, nr_words, &now->set_copy))
			return true;
	}
	if (scope_ring_read(&gpu->process, nr_words, &now->set_copy))
		return true;
	now->set = NULL;
	return now->limit;
}

/* False where nothing applies. Uses up the thread's next-launch set. */
static inline bool scope_resolve(const struct gpupart_gpu *gpu, const void *tmd,
				 struct scope_now *now)
{
	if (__builtin_expect(gpu->map.nr_words == 2, 1))
		return scope_resolve_words(gpu, tmd, now, 2);
	return scope_resolve_words(gpu, tmd, now, GPUPART_MAX_TMD_BITS / 64);
}

#endif
