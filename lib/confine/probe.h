/* SPDX-License-Identifier: MIT */
/*
 * Probe launches on a GPU. Each block records the time and the SM on which it ran. The launch
 * callback records the parameters and the TMD of the launch.
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
	 * The process that created the probe. In a child of a fork, the lock may stay locked
	 * forever.
	 */
	pid_t pid;
	pthread_mutex_t lock;		/* locked from probe_enter() to probe_leave() */
	const struct cuda_api *cuda;
	const struct gpupart_gpu *gpu;
	void *ctx;
	int device;
	/* The probe has retained @ctx, the primary context of @device. */
	atomic_bool retained;
	void *module, *cluster_module;
	void *function[PROBE_NR_KERNELS];	/* PROBE_CLUSTER is NULL if the GPU has no
						 * clusters */
	cuda_ptr records;
	unsigned int max_blocks;
	/*
	 * With this number of bytes of dynamic shared memory per block, exactly one block fits
	 * on an SM.
	 */
	unsigned int shared;
	struct probe_record *host;	/* records of the latest launch that was read back */
};

struct probe_launch {
	enum probe_kernel kernel;
	void *stream;
	unsigned int blocks, threads, shared;
	unsigned int cluster;		/* x size of a cluster, in blocks; 0: no clusters */
	bool cooperative;
	const struct tmd_shape *shape;	/* if not NULL, used instead of @blocks, @threads,
					 * @cluster and so on */
	uint32_t argument;		/* spin_ns or iterations */
	cuda_ptr records;		/* 0: use the probe's own records */
};

#define PROBE_SPIN_NS 4000

/*
 * Returns a probe. If the calling thread's current context is on CUDA device @device, the probe
 * is in this context. Otherwise the probe is in the device's primary context, and the function
 * retains this context one time. All callers share the probe, and it exists as long as its
 * context.
 */
GPUPART_PRIVATE
int probe_get(struct gpupart *gp, const struct cuda_api *cuda, const struct gpupart_gpu *gpu,
	      int device, struct probe **probe);

/*
 * Locks the probe for this thread and makes the probe's context current. While the probe is
 * locked, no driver call of the library can become part of a stream capture. A thread may nest
 * calls of this function.
 */
GPUPART_PRIVATE
int probe_enter(struct gpupart *gp, struct probe *probe, int *capture_mode);
GPUPART_PRIVATE
void probe_leave(struct probe *probe, int capture_mode);
/* Calls probe_get() and probe_enter() for a GPU whose device number is known. */
int probe_begin(struct gpupart *gp, const struct gpupart_gpu *gpu, struct probe **probe,
		int *capture_mode);

/*
 * Starts a probe launch. @own determines how the callback handles the launch. @own may be NULL.
 */
GPUPART_PRIVATE
int probe_start(struct gpupart *gp, struct probe *probe, const struct probe_launch *launch,
		struct scope_own *own);

/*
 * Returns the number of clusters of @size blocks that the GPU can hold at the same time, with
 * one SM for each block. The number comes from the driver. Returns 0 if a launch with such
 * clusters would never finish, or if the driver cannot answer.
 */
GPUPART_PRIVATE
unsigned int probe_clusters_held(struct probe *probe, unsigned int size);

/* Waits for @stream and reads back @blocks records into probe->host. */
GPUPART_PRIVATE
int probe_finish(struct gpupart *gp, struct probe *probe, void *stream, unsigned int blocks);

/*
 * Makes a launch that runs a block on every SM that the launch may use. *some is set to the TPCs
 * that ran a block, and *whole to the TPCs that ran a block on each of their SMs.
 */
int probe_census(struct gpupart *gp, struct probe *probe, void *stream, struct scope_own *own,
		 struct gpupart_tpcset *some, struct gpupart_tpcset *whole);

/*
 * Makes such a launch with the number of blocks and the cluster size of @launch. Counts the
 * blocks on each SM in @sm_blocks, an array of TOPO_MAX_SMS entries that the function first sets
 * to 0. Each SM runs one block at a time.
 */
GPUPART_PRIVATE
int probe_census_as(struct gpupart *gp, struct probe *probe, struct probe_launch *launch,
		    struct scope_own *own, unsigned int *sm_blocks);

#endif
