/* SPDX-License-Identifier: MIT */
/*
 * Finds the set that applies to a launch: limit AND (next launch, else function, else stream,
 * else thread, else process, else all TPCs). Setters may take locks; the functions that the
 * launch callback calls take no lock, do not allocate and cannot fail.
 */
#ifndef GPUPART_LIB_CONFINE_SCOPE_H
#define GPUPART_LIB_CONFINE_SCOPE_H

#include <stdatomic.h>
#include <stddef.h>
#include "lib/driver/device.h"
#include "lib/records/records.h"
#include "lib/state/state_page.h"
#include "lib/state/ring.h"
#include "lib/tmd/part.h"

/*
 * Identifies a created stream by its handle, and a default stream by its context and, if it is
 * per-thread, by the thread.
 */
struct scope_id {
	void *handle;		/* of a stream or a function */
	void *ctx;
	const void *thread;
};

/* Flags of in_use. */
#define SCOPE_USED		STATE_USED
#define SCOPE_USED_FUNCTIONS	2	/* functions have or had sets */
#define SCOPE_USED_MODULES	4	/* launches of modules that launch from the GPU must be
					 * counted */
#define SCOPE_USED_LENDS	STATE_USED_LENDS

#define SCOPE_MAX_ENTRIES	4096
#define SCOPE_TABLE_BITS	13
#define SCOPE_TABLE_SIZE	(1u << SCOPE_TABLE_BITS)
#define SCOPE_MAX_PROBES	64
#define SCOPE_KEY_NEVER		0
#define SCOPE_KEY_GONE		1

/* A stream or a function with a set. */
struct scope_entry {
	_Atomic uint64_t key;	/* address of the stream's TMD or of the function, or one of the
				 * values above */
	struct ring ring;
	struct scope_id id;
	uint64_t object;	/* removed with this object of the driver; 0: none */
	const void *ctx;	/* and with this context; of a function this or: */
};

#define SCOPE_BY_RULE ((const void *)1)	/* a rule set its set */

/* A hash table with open addressing. Readers take no lock. */
struct scope_table {
	atomic_uint nr;			/* entries in use */
	struct scope_entry *entries;	/* SCOPE_TABLE_SIZE entries; NULL until the first is used */
	uint16_t used[SCOPE_MAX_ENTRIES]; /* their indexes; the first nr are valid */
};

struct rules;

struct gpupart_gpu {
	struct driver_gpu driver;
	atomic_bool trusted;		/* the map was checked on this GPU */
	struct state_gpu *shared;	/* the limit, and whether launches must be checked */
	struct ring process;
	atomic_bool sms_told;		/* report the SMs of these two sets to the program */
	bool has_environment;		/* the environment was read; it gave the outer limit */
	struct scope_table streams, functions;	/* that have sets */
	struct tmd_parts parts;		/* of green contexts */
	struct rules *rules;		/* by kernel name: rules.c; NULL: none yet */
	atomic_uint function_sets;	/* incremented when a function's set changes */
	bool learned;			/* check_gpu() succeeded */
	/* How to distinguish streams: set by self_check.c. */
	atomic_bool streams_known;
	unsigned int stream_tmd_offset;	/* of the TMD's address in the driver's stream object */
	char streams_error[160];		/* the reason if streams cannot be distinguished */
	struct gpupart_check check;
	struct records *_Atomic records;	/* of its launches; NULL: none, for the reason in
						 * @records_why */
	struct records *_Atomic recorder;	/* the same, once a context has records; else
						 * NULL */
	char records_why[192];
};

_Static_assert(!offsetof(struct gpupart_gpu, driver), "scope_gpu_of(NULL) must be NULL");

/* Converts an attached GPU of lib/driver; NULL stays NULL. */
static inline struct gpupart_gpu *scope_gpu_of(struct driver_gpu *found)
{
	return (struct gpupart_gpu *)found;
}

/* Attached GPU number @n, or NULL after the last. */
static inline struct gpupart_gpu *scope_gpu(unsigned int n)
{
	return scope_gpu_of(driver_gpu(n));
}

/* A probe launch, to learn from or to check with. */
struct scope_own {
	enum { OWN_UNTOUCHED, OWN_LEAVE_OUT, OWN_RECORD } mode;
	const struct gpupart_gpu *gpu;
	const struct gpupart_tpcset *left_out;	/* for OWN_LEAVE_OUT */
	struct records_trial *trial;		/* for OWN_RECORD */
	bool seen;				/* the callback was called */
	enum tmd_outcome outcome;
	uint32_t params_size;			/* size seen by the callback; 0: it was not
						 * called */
	void *tmd;				/* address of its TMD */
	unsigned char bytes[TMD_MAX_SIZE];	/* its first bytes, as the driver built it */
	size_t nr_bytes;			/* number of these bytes that could be read */
};

/* A thread's own set on one GPU; all zero: none. */
struct scope_thread_set {
	struct tmd_allow allow;
	struct gpupart_tpcset set;
};

/* A graph that this thread is launching, uploading or instantiating: graph.c. */
struct scope_graph {
	const struct gpupart_gpu *gpu;	/* the GPU of @set */
	bool has_set;			/* of the stream, or of this launch */
	bool is_next;			/* a next-launch set: has priority over those of
					 * functions */
	struct tmd_allow set;
	struct graph_nodes *nodes;	/* what was put into its nodes before; NULL: unknown */
	unsigned int nr_built;		/* TMDs that were built in this call */
	struct records_mark *mark;	/* NULL: its completion is unknown */
};

/* A call that launches a kernel, in a program whose outstanding work is bounded: lend.c. */
struct scope_lend {
	const struct gpupart_gpu *gpu;	/* the launch may use lent TPCs there; NULL: it may not */
	bool refused, got;		/* set by the callback: it must not use them, or does */
	struct lend_kernel *kernel;
	uint64_t key, ns;		/* of the kernel; its longest time, 0: unknown */
	const struct records *records;	/* set by the callback: where its record is */
	const struct records_ring *ring;	/* set by the callback; NULL: no record */
	uint64_t seq;
};

#define SCOPE_MAX_GPUS DRIVER_MAX_GPUS	/* number of bits in next_gpus */

/* What the callback reads first; one for each thread. */
struct scope_thread {
	bool special;			/* one of the pointers is in use */
	bool in_graph_call;		/* in a driver call that concerns graphs */
	bool in_launch;			/* in a launch function of the driver */
	uint64_t next_gpus;		/* bit n: there is a next-launch set for GPU number n */
	struct tmd_allow *next;		/* SCOPE_MAX_GPUS entries by number; NULL: none yet */
	struct scope_thread_set *sticky;	/* the same */
	struct scope_graph *graph;
	struct scope_own *own;
	struct scope_lend *lend;
};

extern _Thread_local struct scope_thread scope_thread;

/*
 * Launch functions are observed from begin to end, so that a next-launch set applies to a
 * launch of the program and not to a kernel of the driver.
 */
extern atomic_bool scope_launches_watched;

/* What applies to one launch; NULL: none. The struct itself is kept in registers. */
struct scope_now {
	const struct tmd_allow *limit, *set;
};

struct scope_copies {
	struct tmd_allow limit, set;
};

/* From now on launches on @gpu must be checked. Takes the setters' lock the first time. */
void scope_used(struct gpupart_gpu *gpu, unsigned char how);

/* @set NULL removes it. @set must be valid. */
GPUPART_PRIVATE
void scope_ring_set(struct gpupart_gpu *gpu, struct ring *ring, const struct gpupart_tpcset *set);
/* False, and all TPCs of @gpu, if there is none. */
bool scope_ring_get(const struct ring *ring, const struct gpupart_gpu *gpu,
		    struct gpupart_tpcset *set);

/* As in limit.h. */
GPUPART_PRIVATE
bool scope_limit_set(struct gpupart_gpu *gpu, enum limit_part part,
		     const struct gpupart_tpcset *set);
bool scope_limit_cap(struct gpupart_gpu *gpu, const struct gpupart_tpcset *set);
GPUPART_PRIVATE
void scope_limit_get(const struct gpupart_gpu *gpu, struct limit_sets *sets);
/* Between these calls no thread of this process can set a limit or a set. */
void scope_hold(void);
void scope_release(void);

/*
 * The intersection of the limit and the process's set on @gpu, which applies to launches
 * without a set of a narrower scope. False, and all TPCs, if there is neither.
 */
bool scope_effective_set(const struct gpupart_gpu *gpu, struct gpupart_tpcset *set);

/*
 * Sets the set of the thread's next launch on @gpu; NULL: none. -ENOMEM with an error sentence.
 */
int scope_next_set(struct gpupart *gp, struct gpupart_gpu *gpu, const struct gpupart_tpcset *set);
/* Takes the thread's next-launch set on @gpu and removes it; false if there is none. */
GPUPART_PRIVATE
bool scope_next_take(const struct gpupart_gpu *gpu, struct tmd_allow *set);
/* Removes all next-launch sets of the thread; false if there were none. */
bool scope_next_drop(void);
/* Restores a set that was taken. */
GPUPART_PRIVATE
void scope_next_put_back(const struct gpupart_gpu *gpu, const struct tmd_allow *set);
/*
 * From now on the calling thread's launches are probe launches; NULL: they are the program's.
 */
void scope_own_begin(struct scope_own *own);
/* The graph whose nodes the calling thread's launches are; NULL: none. */
void scope_graph_begin(struct scope_graph *graph);
/* Whether the calling thread is in a driver function that may build nodes of graphs. */
void scope_graph_call(bool in);
/* The lending state of the call that the calling thread is in; NULL: none. */
void scope_lend_begin(struct scope_lend *lend);

/* @set NULL removes the thread's set. -ENOMEM with an error sentence. */
GPUPART_PRIVATE
int scope_set_thread(struct gpupart *gp, struct gpupart_gpu *gpu,
			 const struct gpupart_tpcset *set);
GPUPART_PRIVATE
bool scope_sticky_get(const struct gpupart_gpu *gpu, struct gpupart_tpcset *set);
/* Frees the calling thread's sets; called when it ends. */
void scope_thread_free(void);

/*
 * Changes the set of an existing entry, or removes the entry (@set NULL), and returns true.
 * Returns false if there is no entry: the caller then finds the key and calls scope_add().
 */
GPUPART_PRIVATE
bool scope_set_known(struct gpupart_gpu *gpu, struct scope_table *table, const struct scope_id *id,
		     const struct gpupart_tpcset *set);
/* @what is the plural noun for the error sentence. */
int scope_add(struct gpupart *gp, struct gpupart_gpu *gpu, struct scope_table *table,
	      const char *what, const struct scope_id *id, uint64_t object, const void *ctx,
	      uint64_t key, const struct gpupart_tpcset *set);
GPUPART_PRIVATE
bool scope_get_known(const struct scope_table *table, const struct scope_id *id,
		     struct gpupart_tpcset *set, bool *has_set);

/* Applies a rule's set to @function; NULL: removes it. A set that the program gave is kept. */
int scope_set_by_rule(struct gpupart_gpu *gpu, void *function, void *module,
		      const struct gpupart_tpcset *set);

/*
 * An object, context or thread is destroyed: its entries are removed. 0 or NULL matches
 * nothing; if all three are empty, everything is removed.
 */
void scope_destroyed(struct gpupart_gpu *gpu, struct scope_table *table, uint64_t object,
		const void *ctx, const void *thread);

/*
 * A fingerprint of the sets that apply to graph nodes built on @gpu now: equal numbers mean
 * equal sets. @set as in struct scope_graph, or NULL.
 */
uint64_t scope_fingerprint(const struct gpupart_gpu *gpu, const struct tmd_allow *set);

/*
 * A number that changes whenever a set is published that scope_fingerprint() reads; it never
 * returns to an old value.
 */
uint64_t scope_publications(const struct gpupart_gpu *gpu);

/* ------------------- the callback's part: inline, because every launch runs it */

static inline __attribute__((always_inline))
bool scope_ring_read(const struct ring *ring, unsigned int nr_words, struct tmd_allow *allow)
{
	return ring_read(&ring->published, RING_SLOTS, nr_words, allow);
}

static inline __attribute__((always_inline))
bool scope_limit_read(const struct gpupart_gpu *gpu, unsigned int nr_words, struct tmd_allow *allow)
{
	return ring_read(&gpu->shared->limit.published, LIMIT_SLOTS, nr_words, allow);
}

static inline unsigned char scope_in_use(const struct gpupart_gpu *gpu)
{
	return atomic_load_explicit(&gpu->shared->in_use, memory_order_relaxed);
}

static inline unsigned int scope_table_start(uint64_t tmd)
{
	return (tmd >> 4) * 0x9e3779b97f4a7c15ull >> (64 - SCOPE_TABLE_BITS);
}

static inline const struct scope_entry *scope_find(const struct scope_table *table, uint64_t key)
{
	const struct scope_entry *entries = table->entries;
	unsigned int at = scope_table_start(key);

	for (int probe = 0; probe < SCOPE_MAX_PROBES; probe++, at = (at + 1) % SCOPE_TABLE_SIZE) {
		uint64_t found = atomic_load_explicit(&entries[at].key, memory_order_acquire);

		if (__builtin_expect(found == key, 1))
			return &entries[at];
		if (found == SCOPE_KEY_NEVER)
			break;
	}
	return NULL;
}

/*
 * Reads the set of the entry that scope_find() returned for @key. The entry may have been
 * reused meanwhile: its key, which changes before its words, shows that.
 */
static inline __attribute__((always_inline))
bool scope_entry_read(const struct scope_entry *entry, uint64_t key, unsigned int nr_words,
		      struct tmd_allow *allow)
{
	return scope_ring_read(&entry->ring, nr_words, allow) &&
	       atomic_load_explicit(&entry->key, memory_order_relaxed) == key;
}

/* Checks the narrower scopes in order. Returns true if one of them has a set. */
bool scope_resolve_rare(const struct gpupart_gpu *gpu, const void *tmd, const void *function,
			struct tmd_allow *set);

/*
 * Returns false if nothing applies. Uses up the thread's next-launch set. @rare: the thread is
 * special or functions have sets, as the caller found. @rare and @nr_words (at least the map's)
 * are constants, so that each case becomes straight code.
 */
static inline __attribute__((always_inline))
bool scope_resolve(const struct gpupart_gpu *gpu, const void *tmd, const void *function, bool rare,
		   unsigned int nr_words, struct scope_copies *copies, struct scope_now *now)
{
	const struct scope_entry *stream;

	now->limit =
		scope_limit_read(gpu, nr_words, &copies->limit) ? &copies->limit : NULL;
	now->set = &copies->set;
	if (rare) {
		if (scope_resolve_rare(gpu, tmd, function, &copies->set))
			return true;
	} else if (atomic_load_explicit(&gpu->streams.nr, memory_order_acquire)) {
		stream = scope_find(&gpu->streams, (uintptr_t)tmd);
		if (stream && scope_entry_read(stream, (uintptr_t)tmd, nr_words, &copies->set))
			return true;
	}
	if (scope_ring_read(&gpu->process, nr_words, &copies->set))
		return true;
	now->set = NULL;
	return now->limit;
}

#endif
