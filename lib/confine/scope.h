/* SPDX-License-Identifier: MIT */
/*
 * Finds the set that applies to a launch. The scopes are the next launch, the function, the
 * stream, the thread and the process, in this order. The first scope that has a set determines
 * the set. The launch gets the intersection of this set and the limit. If no scope has a set, the
 * limit applies. Functions that change a set may take locks. Functions for the launch callback
 * take no lock, allocate no memory and cannot fail.
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
 * Identifies a stream or a function. A stream that the program created is identified by its
 * handle. The legacy default stream is identified by its context. A per-thread default stream is
 * identified by its context and its thread.
 */
struct scope_id {
	void *handle;		/* handle of a stream or a function */
	void *ctx;
	const void *thread;
};

static inline bool scope_id_equal(const struct scope_id *a, const struct scope_id *b)
{
	return a->handle == b->handle && a->ctx == b->ctx && a->thread == b->thread;
}

/* Flags of the value that scope_in_use() returns. */
#define SCOPE_USED		STATE_USED
#define SCOPE_USED_FUNCTIONS	2	/* functions have sets, or had sets before */
#define SCOPE_USED_MODULES	4	/* there are modules whose kernels can launch other
					 * kernels; launches from these modules are counted */
#define SCOPE_USED_LENDS	STATE_USED_LENDS

#define SCOPE_MAX_ENTRIES	4096
#define SCOPE_TABLE_BITS	13
#define SCOPE_TABLE_SIZE	(1u << SCOPE_TABLE_BITS)
#define SCOPE_MAX_PROBES	64
#define SCOPE_KEY_NEVER		0
#define SCOPE_KEY_GONE		1

/* A stream or a function with a set. */
struct scope_entry {
	_Atomic uint64_t key;	/* address of the stream's TMD, or address of the function, or a
				 * value above */
	struct ring ring;
	struct scope_id id;
	/*
	 * When the driver destroys this object, the library removes the entry. If there is no
	 * object, this member is 0.
	 */
	uint64_t object;
	/*
	 * When this context is destroyed, the library removes the entry. For a function, this
	 * member may be SCOPE_BY_RULE.
	 */
	const void *ctx;
};

#define SCOPE_BY_RULE ((const void *)1)	/* a rule gave the function its set */

/* A hash table with open addressing. Readers take no lock. */
struct scope_table {
	atomic_uint nr;			/* entries in use */
	struct scope_entry *entries;	/* SCOPE_TABLE_SIZE entries; NULL until an entry is used */
	/* indexes of the entries in use; the first nr indexes are valid */
	uint16_t used[SCOPE_MAX_ENTRIES];
};

struct rules;

struct gpupart_gpu {
	struct driver_gpu driver;
	atomic_bool trusted;		/* the map was checked on this GPU */
	/* contains the limit and the flags of scope_in_use() */
	struct state_gpu *shared;
	struct ring process;
	/*
	 * If true, the program sees fewer SMs. These are the SMs that both the limit and @process
	 * allow.
	 */
	atomic_bool sms_limited;
	bool has_environment;		/* the limit in the environment was read */
	struct scope_table streams, functions;	/* the streams and functions that have sets */
	struct tmd_parts parts;		/* the TPCs of green contexts */
	struct rules *rules;		/* rules for kernel names, see rules.c; NULL: no rules
					 * yet */
	atomic_uint function_sets;	/* number of changes to the sets of functions */
	bool learned;			/* check_gpu() succeeded */
	/*
	 * The next three members describe how to distinguish streams. The code in self_check.c
	 * sets them.
	 */
	atomic_bool streams_known;
	/*
	 * The driver's stream object contains the TMD's address at this offset in bytes. If this is
	 * 0, the offset is unknown.
	 */
	unsigned int stream_tmd_offset;
	char streams_error[160];		/* the reason why streams cannot be distinguished */
	struct gpupart_check check;
	/*
	 * Records of launches on this GPU. If there are no records, this member is NULL, and
	 * @records_why has the reason.
	 */
	struct records *_Atomic records;
	/* If a context has records, equal to @records. Otherwise NULL. */
	struct records *_Atomic recorder;
	char records_why[192];
};

_Static_assert(!offsetof(struct gpupart_gpu, driver), "scope_gpu_of(NULL) must be NULL");

/* Converts the type of an attached GPU. Argument @found may be NULL. */
static inline struct gpupart_gpu *scope_gpu_of(struct driver_gpu *found)
{
	return (struct gpupart_gpu *)found;
}

/* Does the same as driver_gpu_of_context(). */
static inline struct gpupart_gpu *scope_gpu_of_context(void *ctx)
{
	return scope_gpu_of(driver_gpu_of_context(ctx));
}

/* Returns the attached GPU with number @n. If there is no such GPU, returns NULL. */
static inline struct gpupart_gpu *scope_gpu(unsigned int n)
{
	return scope_gpu_of(driver_gpu(n));
}

/*
 * The data of one probe launch. With probe launches, the library learns or checks how the driver
 * and the GPU behave.
 */
struct scope_own {
	enum { OWN_UNTOUCHED, OWN_LEAVE_OUT, OWN_RECORD } mode;
	const struct gpupart_gpu *gpu;
	const struct gpupart_tpcset *left_out;	/* for OWN_LEAVE_OUT */
	struct records_trial *trial;		/* for OWN_RECORD */
	bool seen;				/* the callback was called for this launch */
	enum tmd_outcome outcome;
	uint32_t params_size;			/* size of the launch parameters in the callback,
						 * or 0 */
	void *tmd;				/* address of the launch's TMD */
	/* The first bytes of the TMD, before the library changed them. */
	unsigned char bytes[TMD_MAX_SIZE];
	size_t nr_bytes;			/* number of these bytes that could be read */
};

/* The set of a thread on one GPU. All bytes are 0 if the thread has no set. */
struct scope_thread_set {
	struct tmd_allow allow;
	struct gpupart_tpcset set;
};

/* The graph that this thread is launching, uploading or instantiating. See graph.c. */
struct scope_graph {
	const struct gpupart_gpu *gpu;	/* the GPU to which @set applies */
	bool has_set;			/* true if @set is valid; the set comes from the launch
					 * or from a stream */
	/* true if @set is a next-launch set, which replaces sets of functions */
	bool is_next;
	struct tmd_allow set;
	/* The masks that the library wrote into the graph's nodes before, or NULL. */
	struct graph_nodes *nodes;
	unsigned int nr_built;		/* number of TMDs that the driver built in this call */
	struct records_mark *mark;	/* NULL: the library cannot know when the graph ends */
};

/*
 * The lending state of one launch call. It is used in programs whose outstanding launches are
 * bounded. See lend.c.
 */
struct scope_lend {
	const struct gpupart_gpu *gpu;	/* GPU on which the launch may use lent TPCs, or NULL */
	/*
	 * The callback sets @refused if the launch must not use lent TPCs. It sets @got if the
	 * launch uses lent TPCs.
	 */
	bool refused, got;
	struct lend_kernel *kernel;
	/* The kernel's key, and the kernel's longest time in ns. An unknown time is 0. */
	uint64_t key, ns;
	/* The callback sets this member to the records that contain the launch's record. */
	const struct records *records;
	/*
	 * The callback sets this member to the ring of the launch's record. If there is no
	 * record, this member is NULL.
	 */
	const struct records_ring *ring;
	uint64_t seq;
};

#define SCOPE_MAX_GPUS DRIVER_MAX_GPUS	/* number of bits in next_gpus */

/* Flags of scope_thread.special. */
#define SCOPE_IN_LAUNCH	1	/* this thread is in an observed launch function */
#define SCOPE_HAS	2	/* this thread has a set or another unusual state */
#define SCOPE_IN_GRAPHS	4	/* this thread is in a driver call for graphs */

/* The state of one thread. The callback reads this state first. */
struct scope_thread {
	unsigned char special;		/* SCOPE_IN_LAUNCH, SCOPE_HAS and SCOPE_IN_GRAPHS */
	uint64_t next_gpus;		/* bit n is set if the thread has a next-launch set on
					 * GPU number n */
	/* array of next-launch sets; the index is the GPU's number; NULL: no set yet */
	struct tmd_allow *next;
	struct scope_thread_set *sets;	/* array of the thread's sets; the index is the
						 * GPU's number */
	struct scope_graph *graph;
	struct scope_own *own;
	struct scope_lend *lend;
};

extern _Thread_local struct scope_thread scope_thread;

/*
 * True if the library observes the start and the end of launch functions. Then a next-launch set
 * applies to a launch of the program, and not to a kernel of the driver.
 */
extern atomic_bool scope_launches_watched;

/*
 * The limit and the set that apply to one launch. If there is no limit, @limit is NULL. If there
 * is no set, @set is NULL. The compiler keeps this struct in registers.
 */
struct scope_now {
	const struct tmd_allow *limit, *set;
};

struct scope_copies {
	struct tmd_allow limit, set;
};

/*
 * After this call, the callback checks launches on @gpu. The first call acquires the same lock as
 * functions that change a set.
 */
void scope_used(struct gpupart_gpu *gpu, unsigned char how);

/*
 * Stores @set in @ring. If @set is NULL, the function removes the set in @ring. Any other @set
 * must be valid.
 */
GPUPART_PRIVATE
void scope_ring_set(struct gpupart_gpu *gpu, struct ring *ring, const struct gpupart_tpcset *set);
/*
 * Reads the set in @ring into @set. If @ring has no set, returns false, and @set gets all TPCs of
 * @gpu.
 */
bool scope_ring_get(const struct ring *ring, const struct gpupart_gpu *gpu,
		    struct gpupart_tpcset *set);

/* These functions do the same as the functions in limit.h. */
GPUPART_PRIVATE
bool scope_limit_set(struct gpupart_gpu *gpu, enum limit_part part,
		     const struct gpupart_tpcset *set);
GPUPART_PRIVATE
void scope_limit_get(const struct gpupart_gpu *gpu, struct limit_sets *sets);
/*
 * Between scope_hold() and scope_release(), no other thread of this process can change a limit or
 * a set.
 */
void scope_hold(void);
void scope_release(void);

/*
 * Stores in @set the intersection of the limit and the process's set on @gpu. If no narrower
 * scope has a set, this intersection applies to launches. If the process has no limit and no set,
 * the function returns false, and @set gets all TPCs.
 */
bool scope_effective_set(const struct gpupart_gpu *gpu, struct gpupart_tpcset *set);

/*
 * Gives @set to the thread's next launch on @gpu. If @set is NULL, the function removes the
 * next-launch set. Returns 0, or -ENOMEM with an error message.
 */
int scope_next_set(struct gpupart *gp, struct gpupart_gpu *gpu, const struct gpupart_tpcset *set);
/*
 * Moves the thread's next-launch set on @gpu into @set. If the thread has no such set, returns
 * false.
 */
GPUPART_PRIVATE
bool scope_next_take(const struct gpupart_gpu *gpu, struct tmd_allow *set);
/* Removes all next-launch sets of the thread. If the thread had no such set, returns false. */
bool scope_next_drop(void);
/* Restores a set that scope_next_take() returned. */
GPUPART_PRIVATE
void scope_next_put_back(const struct gpupart_gpu *gpu, const struct tmd_allow *set);
/*
 * After this call, launches of the calling thread belong to the probe launch @own. If @own is
 * NULL, these launches are launches of the program.
 */
void scope_own_begin(struct scope_own *own);
/*
 * After this call, launches of the calling thread are nodes of @graph. If @graph is NULL, these
 * launches do not belong to a graph.
 */
void scope_graph_begin(struct scope_graph *graph);
/* Records whether the calling thread is in a driver function that may build nodes of graphs. */
void scope_graph_call(bool in);
/*
 * Sets the lending state of the calling thread's driver call. With NULL, the call has no lending
 * state.
 */
void scope_lend_begin(struct scope_lend *lend);

/*
 * Gives @set to the calling thread. If @set is NULL, the function removes the thread's set.
 * Returns 0, or -ENOMEM with an error message.
 */
GPUPART_PRIVATE
int scope_set_thread(struct gpupart *gp, struct gpupart_gpu *gpu,
			 const struct gpupart_tpcset *set);
GPUPART_PRIVATE
bool scope_thread_set_get(const struct gpupart_gpu *gpu, struct gpupart_tpcset *set);
/* Called when the calling thread ends. Frees the thread's sets. */
void scope_thread_free(void);

/*
 * Changes the set of an existing entry and returns true. If @set is NULL, the function removes
 * the entry. If there is no entry, the function returns false. The caller must then find the key
 * and call scope_add().
 */
GPUPART_PRIVATE
bool scope_set_known(struct gpupart_gpu *gpu, struct scope_table *table, const struct scope_id *id,
		     const struct gpupart_tpcset *set);
/*
 * Adds an entry with a set. The error message contains the plural noun @what, for example
 * "streams".
 */
int scope_add(struct gpupart *gp, struct gpupart_gpu *gpu, struct scope_table *table,
	      const char *what, const struct scope_id *id, uint64_t object, const void *ctx,
	      uint64_t key, const struct gpupart_tpcset *set);
/* Reads the set of an entry. If the entry does not exist or has no set, returns false. */
GPUPART_PRIVATE
bool scope_get_known(const struct scope_table *table, const struct scope_id *id,
		     struct gpupart_tpcset *set);

/*
 * Gives the set of a rule to @function. If @set is NULL, the set of an earlier rule is removed.
 * If the program gave @function a set, @function keeps that set.
 */
int scope_set_by_rule(struct gpupart_gpu *gpu, void *function, void *module,
		      const struct gpupart_tpcset *set);

/*
 * Removes the entries of a destroyed object, context or thread. An argument that is 0 or NULL
 * matches no entry. If all three arguments are 0 or NULL, the function removes all entries.
 */
void scope_destroyed(struct gpupart_gpu *gpu, struct scope_table *table, uint64_t object,
		const void *ctx, const void *thread);

/*
 * Returns a fingerprint of the sets that a graph node would get if the driver built the node on
 * @gpu now. Equal fingerprints mean equal sets. The argument @set has the same meaning as in
 * struct scope_graph, and may be NULL.
 */
uint64_t scope_fingerprint(const struct gpupart_gpu *gpu, const struct tmd_allow *set);

/*
 * Returns a number that never decreases. If a set that scope_fingerprint() reads is published,
 * the number increases.
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
 * Reads the set of the entry that scope_find() returned for @key. If another thread has reused
 * the entry, returns false. In a reused entry, the key changes before the words of the set
 * change.
 */
static inline __attribute__((always_inline))
bool scope_entry_read(const struct scope_entry *entry, uint64_t key, unsigned int nr_words,
		      struct tmd_allow *allow)
{
	return scope_ring_read(&entry->ring, nr_words, allow) &&
	       atomic_load_explicit(&entry->key, memory_order_relaxed) == key;
}

/*
 * Finds the entry with @key in @table, and reads its set. If there is no such entry, or if it has
 * no set, returns false.
 */
static inline __attribute__((always_inline))
bool scope_table_read(const struct scope_table *table, const void *key, unsigned int nr_words,
		      struct tmd_allow *allow)
{
	const struct scope_entry *entry = NULL;

	if (atomic_load_explicit(&table->nr, memory_order_acquire))
		entry = scope_find(table, (uintptr_t)key);
	return entry && scope_entry_read(entry, (uintptr_t)key, nr_words, allow);
}

/* Returns true if a next-launch set of this thread applies to the current launch. */
static inline bool scope_next_applies(void)
{
	return scope_thread.next_gpus && !scope_thread.graph &&
	       (scope_thread.special & SCOPE_IN_LAUNCH ||
		!atomic_load_explicit(&scope_launches_watched, memory_order_relaxed));
}

/*
 * Checks the graph's next-launch set, the function, the stream and the thread, in this order. If
 * one of these scopes has a set, returns true.
 */
bool scope_resolve_rare(const struct gpupart_gpu *gpu, const void *tmd, const void *function,
			struct tmd_allow *set);

/*
 * Finds the limit and the set of a launch, and removes the thread's next-launch set. If the
 * launch has no limit and no set, returns false. The caller must set @rare if the thread is
 * special or if functions have sets. The map must have at most @nr_words mask words. Callers pass
 * constants for @rare and @nr_words. So the compiler makes separate code without branches for
 * each case.
 */
static inline __attribute__((always_inline))
bool scope_resolve(const struct gpupart_gpu *gpu, const void *tmd, const void *function, bool rare,
		   unsigned int nr_words, struct scope_copies *copies, struct scope_now *now)
{
	now->limit =
		scope_limit_read(gpu, nr_words, &copies->limit) ? &copies->limit : NULL;
	now->set = &copies->set;
	if (rare ? (scope_next_applies() && scope_next_take(gpu, &copies->set)) ||
		   scope_resolve_rare(gpu, tmd, function, &copies->set) :
		   scope_table_read(&gpu->streams, tmd, nr_words, &copies->set))
		return true;
	if (scope_ring_read(&gpu->process, nr_words, &copies->set))
		return true;
	now->set = NULL;
	return now->limit;
}

#endif
