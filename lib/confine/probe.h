/* SPDX-License-Identifier: MIT */
/*
 * Probe launches on a GPU, which record where and when each block ran, and what the callback
 * saw of them.
 */
#ifndef GPUPART_LIB_CONFINE_PROBE_H
#define GPUPART_LIB_CONFINE_PROBE_H

#include <pthread.h>
#include <sys/types.h>
#include "lib/confine/scope.h"
#include "lib/driver/cuda.h"

struct probe_record {
	uint32_t smid;
	uint32_t cluster;
	uint64_t start, end;	/* %globaltimer, in ns */
};

enum probe_kernel { PROBE_EMPTY, PROBE_CENSUS, PROBE_WORK, PROBE_CLUSTER, PROBE_NR_KERNELS };

struct probe {
	struct probe *next;
	pid_t pid;			/* in a child of this process, the lock may be locked for
					 * ever */
	pthread_mutex_t lock;		/* held from probe_enter() to probe_leave() */
	const struct cuda_api *cuda;
	const struct gpupart_gpu *gpu;
	void *ctx;
	int device;
	atomic_bool retained;		/* it retains @ctx, the primary context of @device */
	void *module, *cluster_module;
	void *function[PROBE_NR_KERNELS];	/* PROBE_CLUSTER is NULL if the GPU has no
						 * clusters */
	cuda_ptr records;
	unsigned int max_blocks;
	unsigned int shared; /* dynamic shared memory with which one block fits on an SM */
	struct probe_record *host;	/* records of the last launch that was read back */
};

struct probe_launch {
	enum probe_kernel kernel;
	void *stream;
	unsigned int blocks, threads, shared;
	unsigned int cluster;		/* blocks of a cluster in x, 0: none */
	bool cooperative;
	const struct tmd_shape *shape;	/* replaces blocks, threads, cluster and so on */
	uint32_t argument;		/* spin_ns or iterations */
	cuda_ptr records;		/* 0: the probe's own */
};

#define PROBE_SPIN_NS 4000

/*
 * Returns a probe in the calling thread's current context if that is on CUDA device @device,
 * else in the device's primary context, which is retained once. The probe is shared and kept as
 * long as its context.
 */
GPUPART_PRIVATE
int probe_get(struct gpupart *gp, const struct cuda_api *cuda, const struct gpupart_gpu *gpu,
	      int device, struct probe **probe);

/*
 * Locks the probe for this thread, which may nest the call, makes its context current, and
 * keeps our calls out of any stream capture.
 */
GPUPART_PRIVATE
int probe_enter(struct gpupart *gp, struct probe *probe, int *capture_mode);
GPUPART_PRIVATE
void probe_leave(struct probe *probe, int capture_mode);

/* Starts a launch. @own (may be NULL) tells the callback what to do with it. */
GPUPART_PRIVATE
int probe_start(struct gpupart *gp, struct probe *probe, const struct probe_launch *launch,
		struct scope_own *own);

/*
 * The number of clusters of @size blocks, one SM per block, that the GPU holds at once
 * according to the driver. 0: such a launch would never finish, or the driver cannot be asked.
 */
GPUPART_PRIVATE
unsigned int probe_clusters_held(struct probe *probe, unsigned int size);

/* Waits for @stream and reads back @blocks records into probe->host. */
GPUPART_PRIVATE
int probe_finish(struct gpupart *gp, struct probe *probe, void *stream, unsigned int blocks);

/*
 * Makes a launch that gives a block to every SM it may use. Counts the blocks on each SM in
 * @sm_blocks (TOPO_MAX_SMS entries, cleared first). An SM holds one block at a time.
 */
int probe_census(struct gpupart *gp, struct probe *probe, void *stream, struct scope_own *own,
		 unsigned int *sm_blocks);

/* The same as another kind of launch: @launch sets blocks, cluster and cooperative. */
GPUPART_PRIVATE
int probe_census_as(struct gpupart *gp, struct probe *probe, struct probe_launch *launch,
		    struct scope_own *own, unsigned int *sm_blocks);

#endif
