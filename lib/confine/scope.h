/* SPDX-License-Identifier: MIT */
/*
 * Which set applies to a launch: limit AND (next launch, else function, else stream,
 * else thread, else process, else all). Setters may lock; what the launch callback
 * calls does not, nor allocate, nor fail. Knows no mask bit's polarity.
 */
#ifndef GPUPART_LIB_CONFINE_SCOPE_H
#define GPUPART_LIB_CONFINE_SCOPE_H

#include <stdatomic.h>
#include <stddef.h>
#include "lib/driver/device.h"
#include "lib/records/records.h"
#include "lib/state/process_block.h"
#include "lib/state/ring.h"
#include "lib/tmd/part.h"

/* A created stream by its handle; a default stream by its context and, per thread, the thread. */
struct scope_id {
	void *handle;		/* or a function's */
	void *ctx;
	const void *thread;
};

/* Of in_use. */
#define SCOPE_USED		CONTROL_USED
#define SCOPE_USED_FUNCTIONS	2	/* functions have or had some */
#define SCOPE_USED_MODULES	4	/* modules that launch from the GPU are to be counted */
#define SCOPE_USED_LENDS	CONTROL_USED_LENDS

#define SCOPE_MAX_ENTRIES	4096
#define SCOPE_TABLE_BITS	13
#define SCOPE_TABLE_SIZE	(1u << SCOPE_TABLE_BITS)
#define SCOPE_MAX_PROBES	64
#define SCOPE_KEY_NEVER		0
#define SCOPE_KEY_GONE		1

/* A stream or a function with a set. */
struct scope_entry {
	_Atomic uint64_t key;	/* where the stream's TMD or the function is, or one of the above */
	struct ring ring;
	struct scope_id id;
	uint64_t object;	/* it goes with this object of the driver's; 0: none */
	const void *ctx;	/* and with this context, or, of a function: */
};

#define SCOPE_BY_RULE ((const void *)1)	/* a rule gave it its set */

/* Open addressing by key. Readers take no lock. */
struct scope_table {
	atomic_uint nr;			/* in use */
	struct scope_entry *entries;	/* SCOPE_TABLE_SIZE; NULL until the first is in use */
	uint16_t used[SCOPE_MAX_ENTRIES]; /* which of them, the first nr count */
};

struct rules;

struct gpupart_gpu {
	struct driver_gpu driver;
	atomic_bool trusted;		/* the map was checked on this GPU */
	struct control_gpu *shared;	/* the limit, and whether launches are worth a look */
	struct ring process;
	atomic_bool sms_told;		/* the program is told the SMs of these two */
	bool has_environment;		/* it was looked at, what it says is the outer limit */
	struct scope_table streams, functions;	/* with sets */
	struct tmd_parts parts;		/* of green contexts */
	struct rules *rules;		/* of kernel names: rules.c; NULL: never one yet */
	atomic_uint function_sets;	/* counts up when a function's set changes */
	bool learned;			/* check_gpu() went through */
	/* How streams are told apart: filled by self_check.c. */
	atomic_bool streams_known;
	unsigned int stream_tmd_offset;	/* of the TMD's address in the driver's stream object */
	char streams_why[160];		/* why not, where it is made up */
	struct gpupart_check check;
	struct records *_Atomic records;	/* of its launches; NULL: none, for @records_why */
	struct records *_Atomic recorder;	/* once a context has them, or NULL likewise */
	char records_why[192];
};

_Static_assert(!offsetof(struct gpupart_gpu, driver), "scope_gpu_of(NULL) is NULL");

/* The whole of an attached GPU that lib/driver found, or NULL. */
static inline struct gpupart_gpu *scope_gpu_of(struct driver_gpu *found)
{
	return (struct gpupart_gpu *)found;
}

/* The @n'th attached GPU, or NULL after the last. */
static inline struct gpupart_gpu *scope_gpu(unsigned int n)
{
	return scope_gpu_of(driver_gpu(n));
}

/* A launch of our own, to learn from or to check with. */
struct scope_own {
	enum { OWN_UNTOUCHED, OWN_LEAVE_OUT, OWN_RECORD } mode;
	const struct gpupart_gpu *gpu;
	const struct gpupart_tpcset *left_out;	/* for OWN_LEAVE_OUT */
	struct records_trial *trial;		/* for OWN_RECORD */
	bool seen;				/* the callback came */
	enum tmd_outcome outcome;
	uint32_t params_size;			/* of the callback; 0: it did not come */
	void *tmd;				/* where its TMD stood */
	unsigned char bytes[TMD_MAX_SIZE];	/* the first of it, as the driver built it */
	size_t nr_bytes;			/* of these, that could be read */
};

/* A thread's own set on one GPU; all zero: none. */
struct scope_sticky {
	struct tmd_allow allow;
	struct gpupart_tpcset set;
};

/* A graph is being launched, uploaded or instantiated by this thread: graph.c. */
struct scope_graph {
	const struct gpupart_gpu *gpu;	/* whose sets @set is for */
	bool has_set;			/* of the stream, or for this launch */
	bool is_next;			/* it is for this launch: it goes before functions' */
	struct tmd_allow set;
	struct graph_nodes *nodes;	/* what was put into its nodes before; NULL: not known */
	unsigned int nr_built;		/* TMDs built meanwhile */
	struct records_mark *mark;	/* NULL: its completion is unknown */
};

/* A call that launches a kernel, in a program whose outstanding work is bounded: lend.c. */
struct scope_lend {
	const struct gpupart_gpu *gpu;	/* this launch may have lent TPCs there; NULL: no */
	bool refused, got;		/* by the callback: it must not, or has them */
	struct lend_kernel *kernel;
	uint64_t key, ns;		/* of the kernel; its time at most, 0: not known */
	const struct records *records;	/* by the callback: where its record is */
	const struct records_ring *ring;	/* the same; NULL: it has none */
	uint64_t seq;
};

#define SCOPE_MAX_GPUS DRIVER_MAX_GPUS	/* bits of next_gpus */

/* What the callback looks at first; one a thread. */
struct scope_thread {
	bool special;			/* one of the pointers is in use */
	bool in_graph_call;		/* inside one that has to do with graphs */
	bool in_launch;			/* inside a launch function of the driver's interface */
	uint64_t next_gpus;		/* bit n: a next-launch set waits on GPU number n */
	struct tmd_allow *next;		/* SCOPE_MAX_GPUS, by number; NULL: never one yet */
	struct scope_sticky *sticky;	/* the same */
	struct scope_graph *graph;
	struct scope_own *own;
	struct scope_lend *lend;
};

extern _Thread_local struct scope_thread scope_thread;

/*
 * Launch functions are seen from their begin to their end, so that a next-launch set is
 * for a launch of the program's and no kernel of the driver's own.
 */
extern atomic_bool scope_launches_watched;

/* What applies to one launch; a NULL is "none". Apart from what it points into: in registers. */
struct scope_now {
	const struct tmd_allow *limit, *set;
};

struct scope_copies {
	struct tmd_allow limit, set;
};

/* Launches on @gpu are worth a look from now on. Takes the setters' lock the first time. */
void scope_used(struct gpupart_gpu *gpu, unsigned char how);

/* @set NULL takes it away. @set must be checked. */
GPUPART_PRIVATE
void scope_ring_set(struct gpupart_gpu *gpu, struct ring *ring, const struct gpupart_tpcset *set);
/* False and all TPCs of @gpu where there is none. */
bool scope_ring_get(const struct ring *ring, const struct gpupart_gpu *gpu,
		    struct gpupart_tpcset *set);

/* As they are: limit.h. */
GPUPART_PRIVATE
bool scope_limit_set(struct gpupart_gpu *gpu, enum limit_part part,
		     const struct gpupart_tpcset *set);
bool scope_limit_cap(struct gpupart_gpu *gpu, const struct gpupart_tpcset *set);
GPUPART_PRIVATE
void scope_limit_get(const struct gpupart_gpu *gpu, struct limit_sets *sets);
/* Between them no thread of this process sets a limit or another set. */
void scope_hold(void);
void scope_release(void);

/*
 * What the limit and the process's set leave of @gpu together: what launches get that no
 * rarer scope has a set for. False, and all TPCs, where it has neither.
 */
bool scope_everywhere(const struct gpupart_gpu *gpu, struct gpupart_tpcset *set);

/* The thread's next launch on @gpu takes @set; NULL: none waits. -ENOMEM with a sentence. */
int scope_next_set(struct gpupart *gp, struct gpupart_gpu *gpu, const struct gpupart_tpcset *set);
/* The one that waits on @gpu, which then waits no more; false where there is none. */
GPUPART_PRIVATE
bool scope_next_take(const struct gpupart_gpu *gpu, struct tmd_allow *set);
/* None waits anywhere; false: as before. */
bool scope_next_drop(void);
/* It waits again. */
GPUPART_PRIVATE
void scope_next_put_back(const struct gpupart_gpu *gpu, const struct tmd_allow *set);
/* The calling thread's launches are our own from now on; NULL: they are the program's. */
void scope_own_begin(struct scope_own *own);
/* What the calling thread's launches are nodes of from now on; NULL: of nothing. */
void scope_graph_begin(struct scope_graph *graph);
/* The calling thread is in a function that may build nodes of graphs, or no more. */
void scope_graph_call(bool in);
/* The calling thread is in a call that @lend is of; NULL: no more. */
void scope_lend_begin(struct scope_lend *lend);

/* @set NULL takes the thread's own away. -ENOMEM with a sentence. */
GPUPART_PRIVATE
int scope_sticky_set(struct gpupart *gp, struct gpupart_gpu *gpu, const struct gpupart_tpcset *set);
GPUPART_PRIVATE
bool scope_sticky_get(const struct gpupart_gpu *gpu, struct gpupart_tpcset *set);
/* Memory of the calling thread's sets; when it ends. */
void scope_thread_free(void);

/*
 * Sets what has an entry already, or takes the entry away (@set NULL): true.
 * False where it has none: the caller finds its key and calls scope_add().
 */
GPUPART_PRIVATE
bool scope_set_known(struct gpupart_gpu *gpu, struct scope_table *table, const struct scope_id *id,
		     const struct gpupart_tpcset *set);
/* @what in the plural is for the sentence. */
int scope_add(struct gpupart *gp, struct gpupart_gpu *gpu, struct scope_table *table,
	      const char *what, const struct scope_id *id, uint64_t object, const void *ctx,
	      uint64_t key, const struct gpupart_tpcset *set);
GPUPART_PRIVATE
bool scope_get_known(const struct scope_table *table, const struct scope_id *id,
		     struct gpupart_tpcset *set, bool *has_set);

/* What a rule has for @function; NULL: nothing. One that the program gave a set keeps it. */
int scope_set_by_rule(struct gpupart_gpu *gpu, void *function, void *module,
		      const struct gpupart_tpcset *set);

/* Its object, context or thread goes: so do the entries. 0 or NULL matches nothing, three all. */
void scope_gone(struct gpupart_gpu *gpu, struct scope_table *table, uint64_t object,
		const void *ctx, const void *thread);

/*
 * What applies to nodes of a graph on @gpu that are built now, in one number: equal
 * numbers, equal sets. @set as in struct scope_graph, or NULL.
 */
uint64_t scope_print(const struct gpupart_gpu *gpu, const struct tmd_allow *set);

/* Moves whenever a set is published that scope_print() looks at, and never back. */
uint64_t scope_publications(const struct gpupart_gpu *gpu);

/* ------------------- the callback's half: inline, every launch pays for it */

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
 * What scope_find() gave for @key. Meanwhile it may have gone, and its place may be another's:
 * whose words were read shows the place's key, which moved before they were written.
 */
static inline __attribute__((always_inline))
bool scope_entry_read(const struct scope_entry *entry, uint64_t key, unsigned int nr_words,
		      struct tmd_allow *allow)
{
	return scope_ring_read(&entry->ring, nr_words, allow) &&
	       atomic_load_explicit(&entry->key, memory_order_relaxed) == key;
}

/* The rarer scopes first, in their order. True: one of them has a set. */
bool scope_resolve_rare(const struct gpupart_gpu *gpu, const void *tmd, const void *function,
			struct tmd_allow *set);

/*
 * False where nothing applies. Uses up the thread's next-launch set. @rare: the thread is
 * special or functions have sets, which the caller has looked at. Both it and @nr_words, the
 * map's or more, are constants, so that each is straight code.
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
