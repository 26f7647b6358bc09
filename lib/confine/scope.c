// SPDX-License-Identifier: MIT
/* Finds the set that applies to a launch. See scope.h. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "lib/confine/scope.h"
#include "lib/core/fork.h"
#include "lib/core/hash.h"

_Thread_local struct scope_thread scope_thread;
atomic_bool scope_launches_watched;

/*
 * Functions that change sets acquire this lock. The launch callback takes no lock. No thread
 * holds this lock during a driver call.
 */
static pthread_mutex_t set_lock = PTHREAD_MUTEX_INITIALIZER;
FORK_TAKES(set_lock, 2);

/* ---------------------------------------------------------------------- ring */

static void publish(struct ring *ring, const struct tmd_map *map, const struct gpupart_tpcset *set)
{
	struct tmd_allow allow = { 0 };

	if (set)
		tmd_map_convert(map, set, &allow);
	ring_publish(ring, &allow, set);
}

static bool ring_get(const struct ring *ring, struct gpupart_tpcset *set)
{
	uint64_t at = atomic_load_explicit(&ring->published, memory_order_relaxed);

	for (int i = 0; i < GPUPART_TPCSET_WORDS; i++)
		set->allowed[i] = atomic_load_explicit(&ring->slot[at % RING_SLOTS].tpcs[i],
						       memory_order_relaxed);
	return at && !gpupart_tpcset_empty(set);
}

/*
 * The caller must hold the lock. Otherwise the write could be lost while the state page moves
 * into its file.
 */
static void mark_used(struct gpupart_gpu *gpu, unsigned char how)
{
	atomic_fetch_or_explicit(&gpu->shared->in_use, how, memory_order_relaxed);
}

void scope_used(struct gpupart_gpu *gpu, unsigned char how)
{
	if ((scope_in_use(gpu) & how) == how)
		return;
	FORK_HOLD(&set_lock);
	mark_used(gpu, how);
}

void scope_ring_set(struct gpupart_gpu *gpu, struct ring *ring, const struct gpupart_tpcset *set)
{
	FORK_HOLD(&set_lock);
	publish(ring, &gpu->driver.map, set);
	mark_used(gpu, SCOPE_USED);
}

bool scope_ring_get(const struct ring *ring, const struct gpupart_gpu *gpu,
		    struct gpupart_tpcset *set)
{
	/* Hold the lock of the writers. Otherwise the result could be a mix of two sets. */
	FORK_HOLD(&set_lock);
	if (ring_get(ring, set))
		return true;
	*set = gpupart_topology_all(gpu->driver.topo);
	return false;
}

void scope_hold(void)
{
	pthread_mutex_lock(&set_lock);
}

void scope_release(void)
{
	pthread_mutex_unlock(&set_lock);
}

bool scope_limit_set(struct gpupart_gpu *gpu, enum limit_part part,
		     const struct gpupart_tpcset *set)
{
	bool good;

	FORK_HOLD(&set_lock);
	good = limit_set_inside(&gpu->shared->limit, part, &gpu->driver.map, set);
	mark_used(gpu, SCOPE_USED);
	return good;
}

void scope_limit_get(const struct gpupart_gpu *gpu, struct limit_sets *sets)
{
	/*
	 * If other processes write all the time, the read fails. Then there is no limit to
	 * report.
	 */
	if (!limit_get(&gpu->shared->limit, sets))
		memset(sets, 0, sizeof(*sets));
}

__attribute__((cold))
bool scope_effective_set(const struct gpupart_gpu *gpu, struct gpupart_tpcset *set)
{
	bool has = scope_ring_get(&gpu->process, gpu, set), limited;
	struct gpupart_tpcset both;
	struct limit_sets limit;

	scope_limit_get(gpu, &limit);
	limited = !gpupart_tpcset_empty(&limit.in_force);
	if (limited) {
		both = gpupart_tpcset_and(&limit.in_force, set);
		/* If the intersection is empty, the limit applies. Launches have the same rule. */
		*set = gpupart_tpcset_empty(&both) ? limit.in_force : both;
	}
	return limited || has;
}

/* -------------------------------------------------------- streams and functions */

static bool entry_used(const struct scope_entry *entry)
{
	return atomic_load_explicit(&entry->key, memory_order_relaxed) > SCOPE_KEY_GONE;
}

static unsigned int nr_entries(const struct scope_table *table)
{
	return atomic_load_explicit(&table->nr, memory_order_relaxed);
}

/*
 * Finds the entry that has this id. The caller holds the lock. If the set of an id changes often,
 * a small cache makes the search fast.
 */
static struct scope_entry *entry_of_id(const struct scope_table *table, const struct scope_id *id)
{
	static struct scope_entry *cache[256];
	struct scope_entry **cached =
		&cache[((uintptr_t)id->handle >> 4 ^ (uintptr_t)id->ctx >> 12) * 0x9e3779b1u >> 24 &
		       255];

	if (!nr_entries(table))
		return NULL;
	if (*cached && *cached >= table->entries && *cached < table->entries + SCOPE_TABLE_SIZE &&
	    entry_used(*cached) && scope_id_equal(&(*cached)->id, id))
		return *cached;
	for (unsigned int n = 0; n < nr_entries(table); n++)
		if (scope_id_equal(&table->entries[table->used[n]].id, id))
			return *cached = &table->entries[table->used[n]];
	return NULL;
}

/*
 * Removed entries make searches longer, even searches in the launch callback. A search ends at a
 * free entry. So if the entry after @at is free, this function frees the removed entry @at and
 * the removed entries before @at. Meanwhile, readers get the same results.
 */
static void table_shorten(struct scope_table *table, unsigned int at)
{
	struct scope_entry *entries = table->entries;

	if (atomic_load_explicit(&entries[(at + 1) % SCOPE_TABLE_SIZE].key,
				 memory_order_relaxed) != SCOPE_KEY_NEVER)
		return;
	while (atomic_load_explicit(&entries[at].key, memory_order_relaxed) == SCOPE_KEY_GONE) {
		atomic_store_explicit(&entries[at].key, SCOPE_KEY_NEVER, memory_order_relaxed);
		at = (at + SCOPE_TABLE_SIZE - 1) % SCOPE_TABLE_SIZE;
	}
}

/* Removes the entry at used[@n]. The caller holds the lock. */
static void entry_remove(struct gpupart_gpu *gpu, struct scope_table *table, unsigned int n)
{
	struct scope_entry *entry = &table->entries[table->used[n]];
	unsigned int nr = nr_entries(table);

	publish(&entry->ring, &gpu->driver.map, NULL);
	atomic_store_explicit(&entry->key, SCOPE_KEY_GONE, memory_order_release);
	table_shorten(table, table->used[n]);
	table->used[n] = table->used[nr - 1];
	atomic_store_explicit(&table->nr, nr - 1, memory_order_release);
}

static void table_changed(struct gpupart_gpu *gpu, const struct scope_table *table)
{
	/* If a reader sees the new count, it also sees the new set. */
	if (table == &gpu->functions)
		atomic_fetch_add_explicit(&gpu->function_sets, 1, memory_order_release);
}

bool scope_set_known(struct gpupart_gpu *gpu, struct scope_table *table, const struct scope_id *id,
		     const struct gpupart_tpcset *set)
{
	struct scope_entry *entry;

	FORK_HOLD(&set_lock);
	entry = entry_of_id(table, id);
	if (entry && entry->ctx == SCOPE_BY_RULE)
		entry->ctx = NULL;
	if (entry && set) {
		publish(&entry->ring, &gpu->driver.map, set);
	} else if (entry) {
		unsigned int n = 0;

		while (table->used[n] != entry - table->entries)
			n++;
		entry_remove(gpu, table, n);
	}
	if (entry)
		table_changed(gpu, table);
	return entry;
}

bool scope_get_known(const struct scope_table *table, const struct scope_id *id,
		     struct gpupart_tpcset *set)
{
	struct scope_entry *entry;

	/* Most tables are empty. Without this check, each launch of a graph acquires the lock. */
	if (!nr_entries(table))
		return false;
	FORK_HOLD(&set_lock);
	entry = entry_of_id(table, id);
	return entry && ring_get(&entry->ring, set);
}

__attribute__((cold))
int scope_add(struct gpupart *gp, struct gpupart_gpu *gpu, struct scope_table *table,
	      const char *what, const struct scope_id *id, uint64_t object, const void *ctx,
	      uint64_t key, const struct gpupart_tpcset *set)
{
	struct scope_entry *entry = NULL;
	unsigned int at = scope_table_start(key);

	FORK_HOLD(&set_lock);
	if (!table->entries)
		table->entries = calloc(SCOPE_TABLE_SIZE, sizeof(*table->entries));
	if (!table->entries)
		return ctx_fail(gp, -ENOMEM, "out of memory while giving sets to %s", what);
	for (int probe = 0; probe < SCOPE_MAX_PROBES; probe++, at = (at + 1) % SCOPE_TABLE_SIZE) {
		uint64_t found =
			atomic_load_explicit(&table->entries[at].key, memory_order_relaxed);

		/*
		 * The entry belongs to an earlier object at this address. The driver did not
		 * report that the earlier object was destroyed.
		 */
		if (found == key) {
			entry = &table->entries[at];
			break;
		}
		if (found <= SCOPE_KEY_GONE && !entry)
			entry = &table->entries[at];
		if (found == SCOPE_KEY_NEVER)
			break;
	}
	if (!entry || (!entry_used(entry) && nr_entries(table) >= SCOPE_MAX_ENTRIES))
		return ctx_fail(gp, -ENOSPC, "more than %u %s have sets: remove some of the sets",
				SCOPE_MAX_ENTRIES, what);
	publish(&entry->ring, &gpu->driver.map, set);
	mark_used(gpu, table == &gpu->functions ? SCOPE_USED_FUNCTIONS : SCOPE_USED);
	entry->id = *id;
	entry->object = object;
	entry->ctx = ctx;
	if (!entry_used(entry)) {
		table->used[nr_entries(table)] = entry - table->entries;
		atomic_fetch_add_explicit(&table->nr, 1, memory_order_release);
	}
	atomic_store_explicit(&entry->key, key, memory_order_release);
	table_changed(gpu, table);
	return 0;
}

__attribute__((cold))
int scope_set_by_rule(struct gpupart_gpu *gpu, void *function, void *module,
		      const struct gpupart_tpcset *set)
{
	const struct scope_id id = { .handle = function };
	const struct scope_entry *entry;
	struct gpupart_tpcset before;
	bool same;

	pthread_mutex_lock(&set_lock);
	entry = entry_of_id(&gpu->functions, &id);
	/* If the function already has this set, graphs need not be built again. */
	same = entry ? entry->ctx != SCOPE_BY_RULE ||
		       (set && ring_get(&entry->ring, &before) &&
			gpupart_tpcset_equal(&before, set)) : !set;
	pthread_mutex_unlock(&set_lock);
	if (same || (!set && scope_set_known(gpu, &gpu->functions, &id, NULL)))
		return 0;
	return set ? scope_add(NULL, gpu, &gpu->functions, "functions", &id, (uintptr_t)module,
			       SCOPE_BY_RULE, (uintptr_t)function, set) : 0;
}

__attribute__((cold))
void scope_destroyed(struct gpupart_gpu *gpu, struct scope_table *table, uint64_t object,
		const void *ctx, const void *thread)
{
	bool all = !object && !ctx && !thread;

	if (!nr_entries(table))
		return;
	FORK_HOLD(&set_lock);
	for (unsigned int n = 0; n < nr_entries(table); ) {
		const struct scope_entry *entry = &table->entries[table->used[n]];

		if (all || (object && entry->object == object) || (ctx && entry->ctx == ctx) ||
		    (thread && entry->id.thread == thread))
			entry_remove(gpu, table, n);
		else
			n++;
	}
}

/* -------------------------------------------------------------------- threads */

static void special_update(void)
{
	bool has = scope_thread.next_gpus || scope_thread.sets || scope_thread.graph ||
		   scope_thread.own || scope_thread.lend;

	scope_thread.special = (scope_thread.special & ~SCOPE_HAS) | (has ? SCOPE_HAS : 0);
}

__attribute__((cold)) int scope_set_thread(struct gpupart *gp, struct gpupart_gpu *gpu,
					       const struct gpupart_tpcset *set)
{
	struct scope_thread_set *own;

	if (!scope_thread.sets && !set)
		return 0;
	if (!scope_thread.sets)
		scope_thread.sets = calloc(SCOPE_MAX_GPUS, sizeof(*scope_thread.sets));
	if (!scope_thread.sets)
		return ctx_fail(gp, -ENOMEM, "out of memory for a thread's sets");
	own = &scope_thread.sets[gpu->driver.number];
	memset(own, 0, sizeof(*own));
	if (set) {
		own->set = *set;
		tmd_map_convert(&gpu->driver.map, set, &own->allow);
		scope_used(gpu, SCOPE_USED);
	}
	special_update();
	return 0;
}

bool scope_thread_set_get(const struct gpupart_gpu *gpu, struct gpupart_tpcset *set)
{
	if (!scope_thread.sets ||
	    gpupart_tpcset_empty(&scope_thread.sets[gpu->driver.number].set))
		return false;
	*set = scope_thread.sets[gpu->driver.number].set;
	return true;
}

int scope_next_set(struct gpupart *gp, struct gpupart_gpu *gpu, const struct gpupart_tpcset *set)
{
	uint64_t bit = (uint64_t)1 << gpu->driver.number;

	if (set && !scope_thread.next) {
		scope_thread.next = calloc(SCOPE_MAX_GPUS, sizeof(*scope_thread.next));
		if (!scope_thread.next)
			return ctx_fail(gp, -ENOMEM,
					"out of memory for a thread's next-launch sets");
	}
	if (set) {
		tmd_map_convert(&gpu->driver.map, set, &scope_thread.next[gpu->driver.number]);
		scope_thread.next_gpus |= bit;
		scope_used(gpu, SCOPE_USED);
	} else {
		scope_thread.next_gpus &= ~bit;
	}
	special_update();
	return 0;
}

bool scope_next_take(const struct gpupart_gpu *gpu, struct tmd_allow *set)
{
	uint64_t bit = (uint64_t)1 << gpu->driver.number;

	if (!(scope_thread.next_gpus & bit))
		return false;
	scope_thread.next_gpus &= ~bit;
	*set = scope_thread.next[gpu->driver.number];
	special_update();
	return true;
}

bool scope_next_drop(void)
{
	bool any = scope_thread.next_gpus;

	scope_thread.next_gpus = 0;
	special_update();
	return any;
}

void scope_next_put_back(const struct gpupart_gpu *gpu, const struct tmd_allow *set)
{
	scope_thread.next[gpu->driver.number] = *set;
	scope_thread.next_gpus |= (uint64_t)1 << gpu->driver.number;
	special_update();
}

void scope_thread_free(void)
{
	free(scope_thread.sets);
	free(scope_thread.next);
	scope_thread.sets = NULL;
	scope_thread.next = NULL;
	scope_thread.next_gpus = 0;
	special_update();
}

void scope_own_begin(struct scope_own *own)
{
	scope_thread.own = own;
	special_update();
}

void scope_graph_begin(struct scope_graph *graph)
{
	scope_thread.graph = graph;
	special_update();
}

void scope_graph_call(bool in)
{
	scope_thread.special &= ~SCOPE_IN_GRAPHS;
	scope_thread.special |= in ? SCOPE_IN_GRAPHS : 0;
}

void scope_lend_begin(struct scope_lend *lend)
{
	scope_thread.lend = lend;
	special_update();
}

/* ------------------------------------------------------------------ resolution */

static bool allow_any(const struct tmd_allow *allow)
{
	uint64_t any = 0;

	for (int i = 0; i < GPUPART_MAX_TMD_BITS / 64; i++)
		any |= allow->tmd_bits[i];
	return any;
}

static const struct tmd_allow *thread_set_of(const struct gpupart_gpu *gpu)
{
	const struct scope_thread_set *thread_set = scope_thread.sets;

	if (thread_set)
		thread_set += gpu->driver.number;
	return thread_set && allow_any(&thread_set->allow) ? &thread_set->allow : NULL;
}

bool scope_resolve_rare(const struct gpupart_gpu *gpu, const void *tmd, const void *function,
			struct tmd_allow *set)
{
	const unsigned int words = GPUPART_MAX_TMD_BITS / 64;
	const struct scope_graph *graph = scope_thread.graph;
	const struct tmd_allow *thread_set;

	if (graph && graph->is_next && graph->gpu == gpu) {
		*set = graph->set;
		return true;
	}
	if (scope_table_read(&gpu->functions, function, words, set))
		return true;
	if (graph) {
		if (graph->gpu == gpu && graph->has_set) {
			*set = graph->set;
			return true;
		}
	} else if (scope_table_read(&gpu->streams, tmd, words, set)) {
		return true;
	}
	thread_set = thread_set_of(gpu);
	if (thread_set)
		*set = *thread_set;
	return thread_set;
}

uint64_t scope_fingerprint(const struct gpupart_gpu *gpu, const struct tmd_allow *set)
{
	const unsigned int words = GPUPART_MAX_TMD_BITS / 64;
	/*
	 * These values determine the sets of nodes. If a limit or set does not exist, its bits
	 * are 0.
	 */
	struct {
		uint64_t number, functions;
		struct tmd_allow limit, set;
	} print = { .number = gpu->driver.number + 1 };

	print.functions = atomic_load_explicit(&gpu->function_sets, memory_order_acquire);
	scope_limit_read(gpu, words, &print.limit);
	if (!set)
		set = thread_set_of(gpu);
	if (set)
		print.set = *set;
	else
		scope_ring_read(&gpu->process, words, &print.set);
	return hash_words(HASH_INIT, &print, sizeof(print) / sizeof(uint64_t));
}

uint64_t scope_publications(const struct gpupart_gpu *gpu)
{
	return atomic_load_explicit(&gpu->process.published, memory_order_acquire) +
	       atomic_load_explicit(&gpu->shared->limit.published, memory_order_acquire) +
	       atomic_load_explicit(&gpu->function_sets, memory_order_acquire);
}
