/* SPDX-License-Identifier: MIT */
/*
 * A GPU's memory as this process is charged for it in its tenant's ledger: what it asked
 * for, what pools and graphs keep, what the driver takes for itself. Knows none of the
 * driver's functions by number. All but where it says so under memory.c's lock.
 */
#ifndef GPUPART_LIB_MEMORY_GPU_H
#define GPUPART_LIB_MEMORY_GPU_H

#include <pthread.h>
#include <stdatomic.h>
#include "cuda.h"
#include "ledger.h"

#define MEMORY_MAX_DEVICES 64

struct memory_gpu {
	char pci[LEDGER_PCI_LEN];
	int device;			/* CUDA's number */
	int index;			/* the ledger's */
	uint64_t total;			/* bytes that it really has */
	/* Charged, in bytes; unseen: of that, what the driver's figure does not have. */
	uint64_t held, unseen, overhead, pools, graphs;
	uint64_t lacking;		/* of what is charged ahead for code: it did not fit */
	uint64_t foreign;		/* in the driver's figure, and another's */
	uint64_t growing;		/* by which pools may grow in calls under way */
	void *pool;			/* the one in use; NULL: to be asked for */
	/* Charged ahead for pools, when; and of it, what threads have since the epoch began. */
	uint64_t ahead, ahead_ns, lent;
	const void *last_thread;
	bool many_threads;
	const void *stream;	/* of the last call on a pool that was looked at */
	bool many_streams;
	atomic_uint nr_empty;		/* slabs with nothing in them; without the lock */
	unsigned int in_flight;		/* calls that get or give back memory now */
	uint64_t measured_ns;
	bool due;			/* to be measured at the next occasion */
	bool has_graphs;		/* that get memory */
	bool told;			/* the driver's figure for this process was there once */
	void *primary;			/* the device's primary context, or NULL */
	uint64_t trims;			/* how often graphs' memory was given back */
	void **known_pools;
	unsigned int nr_pools;
};

/*
 * Once, before the others. @lock is memory.c's: while a GPU is waited for it is another
 * thread's to take, as what runs there may end only once that has gone on.
 */
void memory_gpu_start(const struct cuda_api *cuda, pthread_mutex_t *lock);

/* NULL: no such device, or no room in the ledger. Calls the driver at first. */
struct memory_gpu *memory_gpu_of_device(int device);
/* Whether it found any, ever. */
bool memory_gpu_any(void);
/* Found by memory_gpu_of_device() before; without the lock. */
struct memory_gpu *memory_gpu_known(int device);

/*
 * 0, or -ENOMEM when all that the process could give back, pools' unused memory and its own
 * reckoning's slack, was given back. It must leave what is charged ahead for code.
 */
int memory_gpu_charge(struct memory_gpu *gpu, uint64_t bytes);
void memory_gpu_charge_always(struct memory_gpu *gpu, uint64_t bytes);
void memory_gpu_release(struct memory_gpu *gpu, uint64_t bytes);

/* What an allocation of @bytes takes. */
uint64_t memory_gpu_rounded(uint64_t bytes);

/* A new slab around @address, of @ctx, charged: 0, -ENOMEM. */
int memory_gpu_slab(struct memory_gpu *gpu, uint64_t address, const void *ctx);
/* Slabs with nothing in them go. */
void memory_gpu_drop_empty(struct memory_gpu *gpu);

/*
 * Has the driver's own take (contexts, code, stacks) charged as it is now. @strict: -ENOMEM
 * where more than was charged before does not fit. Not while others' calls are under way:
 * then it is done later. False where the driver does not tell.
 */
bool memory_gpu_measure(struct memory_gpu *gpu, bool strict, int *err);
/* That, if it has not been done for a while. */
void memory_gpu_measure_soon(struct memory_gpu *gpu);

/* A pool whose memory is this GPU's, or NULL for the one that is in use there now; which. */
void *memory_gpu_pool(struct memory_gpu *gpu, void *pool);
void memory_gpu_pool_goes(void *pool);
/* The GPU that it was named for, or is the default or current one of; or NULL. */
struct memory_gpu *memory_gpu_of_pool(const void *pool);
/* Threads' credits of an earlier epoch are void. Without the lock. */
extern atomic_uint memory_gpu_epoch __attribute__((visibility("hidden")));

/*
 * Before @bytes come out of a pool, where there is plenty: true, and what its growth could
 * take is charged, also for @credit bytes more of @thread.
 */
bool memory_gpu_pool_ahead(struct memory_gpu *gpu, uint64_t bytes, const void *thread,
			   uint64_t *credit);
/*
 * Where there is not: 0, and its growth is charged, or it has room; -ENOMEM. After 0
 * memory_gpu_pool_ends() with the same @bytes is wanted, and then memory_gpu_pool_after().
 */
int memory_gpu_pool_before(struct memory_gpu *gpu, void *pool, const void *stream, uint64_t bytes);
/* The call has ended: what its pool grew by is in what pools have. */
void memory_gpu_pool_ends(struct memory_gpu *gpu, uint64_t bytes);
/* As much as pools have now; -ENOMEM: that is more than fits. */
int memory_gpu_pool_after(struct memory_gpu *gpu);
/* Then, when what was too much is free: pools give back what they keep; it is charged for. */
void memory_gpu_pool_undone(struct memory_gpu *gpu);

/* A capture began (1) or ended (-1): while there is one nobody waits for what runs. */
void memory_gpu_captures(int more);

/* Graphs' memory: before one that may take @bytes more runs, and as much as there is now. */
int memory_gpu_graph_before(struct memory_gpu *gpu, uint64_t bytes);
void memory_gpu_graph_after(struct memory_gpu *gpu);

/* What the program is told: bytes that it may still have, and has in all. */
void memory_gpu_answer(struct memory_gpu *gpu, uint64_t *free, uint64_t *total);

#endif
