/* SPDX-License-Identifier: MIT */
/*
 * Makes probe launches on a GPU. Each block records its SM and its times. The launch callback
 * records the parameters and the TMD of the launch.
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
	/*
	 * The process that created the probe. A child of a fork must not use the probe, because
	 * the lock may stay locked there.
	 */
	pid_t pid;
	pthread_mutex_t lock;		/* probe_enter() locks it, and probe_leave() unlocks it */
	const struct cuda_api *cuda;
	const struct gpupart_gpu *gpu;
	void *ctx;
	int device;
	/*
	 * True if @ctx is the primary context of @device and the probe has retained this context.
	 */
	atomic_bool retained;
	void *module, *cluster_module;
	void *function[PROBE_NR_KERNELS];	/* if the GPU has no clusters, entry
						 * PROBE_CLUSTER is NULL */
	cuda_ptr records;
	unsigned int max_blocks;
	/*
	 * If each block has this number of bytes of dynamic shared memory, exactly one block fits
	 * on an SM.
	 */
	unsigned int shared;
	struct probe_record *host;	/* records of the launch that was last read back */
};

struct probe_launch {
	enum probe_kernel kernel;
	void *stream;
	unsigned int blocks, threads, shared;
	unsigned int cluster;		/* number of blocks of a cluster in x; 0: no clusters */
	bool cooperative;
	const struct tmd_shape *shape;	/* if not NULL, this shape replaces @blocks, @threads,
					 * @cluster and so on */
	uint32_t argument;		/* spin_ns or iterations */
	cuda_ptr records;		/* 0: use the probe's own records */
};

#define PROBE_SPIN_NS 4000

/*
 * Returns a probe. If the thread's current context is on CUDA device @device, the probe is in
 * this context. Otherwise the probe is in the device's primary context. The function retains the
 * primary context one time. All callers share the probe. The probe exists as long as its context.
 */
GPUPART_PRIVATE
int probe_get(struct gpupart *gp, const struct cuda_api *cuda, const struct gpupart_gpu *gpu,
	      int device, struct probe **probe);

/*
 * Locks the probe for this thread, and makes the probe's context current. While the probe is
 * locked, driver calls of the library do not become part of a stream capture. A thread may call
 * the function again before probe_leave().
 */
GPUPART_PRIVATE
int probe_enter(struct gpupart *gp, struct probe *probe, int *capture_mode);
GPUPART_PRIVATE
void probe_leave(struct probe *probe, int capture_mode);
/* Calls probe_get() and probe_enter() for @gpu. The device number of @gpu must be known. */
int probe_begin(struct gpupart *gp, const struct gpupart_gpu *gpu, struct probe **probe,
		int *capture_mode);

/*
 * Starts a probe launch. Argument @own determines how the callback handles the launch. Argument
 * @own may be NULL.
 */
GPUPART_PRIVATE
int probe_start(struct gpupart *gp, struct probe *probe, const struct probe_launch *launch,
		struct scope_own *own);

/*
 * The driver computes how many clusters of @size blocks the GPU can run at the same time. For
 * this, each block needs its own SM. Returns this number. If the driver cannot answer, or if such
 * a launch would never end, returns 0.
 */
GPUPART_PRIVATE
unsigned int probe_clusters_held(struct probe *probe, unsigned int size);

/* Waits for @stream and reads back @blocks records into probe->host. */
GPUPART_PRIVATE
int probe_finish(struct gpupart *gp, struct probe *probe, void *stream, unsigned int blocks);

/*
 * Makes a launch that runs at least one block on every SM that the mask allows. Sets *some to the
 * TPCs that ran a block. Sets *whole to the TPCs that ran a block on each of their SMs.
 */
int probe_census(struct gpupart *gp, struct probe *probe, void *stream, struct scope_own *own,
		 struct gpupart_tpcset *some, struct gpupart_tpcset *whole);

/*
 * Makes the launch @launch. Each SM runs one block at a time. The function counts the blocks on
 * each SM in the array @sm_blocks, which has TOPO_MAX_SMS entries. First the function sets these
 * entries to 0.
 */
GPUPART_PRIVATE
int probe_census_as(struct gpupart *gp, struct probe *probe, struct probe_launch *launch,
		    struct scope_own *own, unsigned int *sm_blocks);

#endif
