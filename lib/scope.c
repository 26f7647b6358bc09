// SPDX-License-Identifier: MIT
/*
 * Who overrides whom. Must not know how a set is put into a TMD, nor how the driver
 * calls us.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include "scope.h"

_Thread_local struct scope_thread scope_thread;

/* Among setters only: the callback takes no lock. Never held across a call of the driver. */
static pthread_mutex_t set_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---------------------------------------------------------------------- ring */

static void ring_publish(struct scope_ring *ring, const struct tmd_map *map,
			 const struct gpupart_tpcset *set)
{
	uint64_t next = atomic_load_explicit(&ring->published, memory_order_relaxed) + 1;
	struct tmd_allow allow = { 0 };

	if (set)
		tmd_map_convert(map, set, &allow);
	/* The slot's last words may still be under way to a reader that must see the count move. */
	atomic_thread_fence(memory_order_release);
	for (int i = 0; i < GPUPART_MAX_TMD_BITS / 64; i++)
		atomic_store_explicit(&ring->slot[next % SCOPE_SLOTS].tmd_bits[i],
				      allow.tmd_bits[i], memory_order_relaxed);
	for (int i = 0; i < GPUPART_TPCSET_WORDS; i++)
		atomic_store_explicit(&ring->slot[next % SCOPE_SLOTS].tpcs[i],
				      set ? set->allowed[i] : 0, memory_order_relaxed);
	atomic_store_explicit(&ring->published, next, memory_order_release);
}

static bool ring_get(const struct scope_ring *ring, struct gpupart_tpcset *set)
{
	uint64_t at = atomic_load_explicit(&ring->published, memory_order_relaxed);

	for (int i = 0; i < GPUPART_TPCSET_WORDS; i++)
		set->allowed[i] = atomic_load_explicit(&ring->slot[at % SCOPE_SLOTS].tpcs[i],
						       memory_order_relaxed);
	return at && !gpupart_tpcset_empty(set);
}

void scope_ring_set(struct gpupart_gpu *gpu, struct scope_ring *ring,
		    const struct gpupart_tpcset *set)
{
	pthread_mutex_lock(&set_lock);
	ring_publish(ring, &gpu->map, set);
	atomic_store_explicit(&gpu->in_use, true, memory_order_relaxed);
	pthread_mutex_unlock(&set_lock);
}

bool scope_ring_get(const struct scope_ring *ring, const struct gpupart_gpu *gpu,
		    struct gpupart_tpcset *set)
{
	bool has;

	/* The writers' lock: what is read cannot be torn. */
	pthread_mutex_lock(&set_lock);
	has = ring_get(ring, set);
	pthread_mutex_unlock(&set_lock);
	if (!has)
		*set = gpupart_topology_all(gpu->topo);
	return has;
}

/* ------------------------------------------------------------------- streams */

static bool id_equal(const struct scope_stream_id *a, const struct scope_stream_id *b)
{
	return a->handle == b->handle && a->ctx == b->ctx && a->thread == b->thread;
}

static bool entry_used(const struct scope_stream *entry)
{
	return atomic_load_explicit(&entry->tmd, memory_order_relaxed) > SCOPE_TMD_GONE;
}

/* By identity, under the lock. A small cache answers for a stream that is set again and again. */
static struct scope_stream *stream_of_id(struct gpupart_gpu *gpu, const struct scope_stream_id *id)
{
	static struct scope_stream *cache[256];
	struct scope_stream **cached =
		&cache[((uintptr_t)id->handle >> 4 ^ (uintptr_t)id->ctx >> 12) * 0x9e3779b1u >> 24 &
		       255];

	if (!atomic_load_explicit(&gpu->nr_streams, memory_order_relaxed))
		return NULL;
	if (*cached && *cached >= gpu->streams && *cached < gpu->streams + SCOPE_TABLE_SIZE &&
	    entry_used(*cached) && id_equal(&(*cached)->id, id))
		return *cached;
	for (unsigned int n = 0; n < atomic_load_explicit(&gpu->nr_streams, memory_order_relaxed);
	     n++)
		if (id_equal(&gpu->streams[gpu->used[n]].id, id))
			return *cached = &gpu->streams[gpu->used[n]];
	return NULL;
}

/* Takes the entry at used[@n] away; under the lock. */
static void entry_remove(struct gpupart_gpu *gpu, unsigned int n)
{
	struct scope_stream *entry = &gpu->streams[gpu->used[n]];
	unsigned int nr = atomic_load_explicit(&gpu->nr_streams, memory_order_relaxed);

	ring_publish(&entry->ring, &gpu->map, NULL);
	atomic_store_explicit(&entry->tmd, SCOPE_TMD_GONE, memory_order_release);
	gpu->used[n] = gpu->used[nr - 1];
	atomic_store_explicit(&gpu->nr_streams, nr - 1, memory_order_relaxed);
}

bool scope_stream_set_known(struct gpupart_gpu *gpu, const struct scope_stream_id *id,
			    const struct gpupart_tpcset *set)
{
	struct scope_stream *entry;

	pthread_mutex_lock(&set_lock);
	entry = stream_of_id(gpu, id);
	if (entry && set) {
		ring_publish(&entry->ring, &gpu->map, set);
	} else if (entry) {
		unsigned int n = 0;

		while (gpu->used[n] != entry - gpu->streams)
			n++;
		entry_remove(gpu, n);
	}
	pthread_mutex_unlock(&set_lock);
	return entry;
}

bool scope_stream_get_known(struct gpupart_gpu *gpu, const struct scope_stream_id *id,
			    struct gpupart_tpcset *set, bool *has_set)
{
	struct scope_stream *entry;

	pthread_mutex_lock(&set_lock);
	entry = stream_of_id(gpu, id);
	*has_set = entry && ring_get(&entry->ring, set);
	pthread_mutex_unlock(&set_lock);
	return entry;
}

int scope_stream_add(struct gpupart *gp, struct gpupart_gpu *gpu, const struct scope_stream_id *id,
		     uint64_t object, const void *ctx, uint64_t tmd,
		     const struct gpupart_tpcset *set)
{
	struct scope_stream *entry = NULL;
	unsigned int at = scope_table_start(tmd);
	int err = 0;

	pthread_mutex_lock(&set_lock);
	for (int probe = 0; probe < SCOPE_MAX_PROBES; probe++, at = (at + 1) % SCOPE_TABLE_SIZE) {
		uint64_t key = atomic_load_explicit(&gpu->streams[at].tmd, memory_order_relaxed);

		/* The address itself: its stream went without a word, this one has it now. */
		if (key == tmd) {
			entry = &gpu->streams[at];
			break;
		}
		if (key <= SCOPE_TMD_GONE && !entry)
			entry = &gpu->streams[at];
		if (key == SCOPE_TMD_NEVER)
			break;
	}
	if (!entry ||
	    (!entry_used(entry) &&
	     atomic_load_explicit(&gpu->nr_streams, memory_order_relaxed) >= SCOPE_MAX_STREAMS)) {
		err = ctx_fail(gp, -ENOSPC, "more than %u streams have sets: take some away",
			       SCOPE_MAX_STREAMS);
		goto unlock;
	}
	ring_publish(&entry->ring, &gpu->map, set);
	atomic_store_explicit(&gpu->in_use, true, memory_order_relaxed);
	entry->id = *id;
	entry->object = object;
	entry->ctx = ctx;
	if (!entry_used(entry))
		gpu->used[atomic_fetch_add_explicit(&gpu->nr_streams, 1, memory_order_relaxed)] =
			entry - gpu->streams;
	atomic_store_explicit(&entry->tmd, tmd, memory_order_release);
unlock:
	pthread_mutex_unlock(&set_lock);
	return err;
}

void scope_stream_gone(struct gpupart_gpu *gpu, uint64_t object, const void *ctx,
		       const void *thread)
{
	if (!atomic_load_explicit(&gpu->nr_streams, memory_order_relaxed))
		return;
	pthread_mutex_lock(&set_lock);
	for (unsigned int n = 0;
	     n < atomic_load_explicit(&gpu->nr_streams, memory_order_relaxed); ) {
		const struct scope_stream *entry = &gpu->streams[gpu->used[n]];

		if ((object && entry->object == object) || (ctx && entry->ctx == ctx) ||
		    (thread && entry->id.thread == thread))
			entry_remove(gpu, n);
		else
			n++;
	}
	pthread_mutex_unlock(&set_lock);
}
