/* SPDX-License-Identifier: MIT */
/*
 * Before any launch is masked, this code checks that the GPU has the mask bits of the table. The
 * code also learns how streams can be distinguished.
 */
#ifndef GPUPART_LIB_CONFINE_SELF_CHECK_H
#define GPUPART_LIB_CONFINE_SELF_CHECK_H

#include "lib/confine/probe.h"

/*
 * Checks a GPU by launches. The function finds the TMD layout and learns how streams can be
 * distinguished. It also checks the map, unless the cache has the result of an earlier check.
 * The function fills gpu->driver.map, ->trusted, ->streams_known and ->check.
 */
int check_gpu(struct gpupart *gp, struct gpupart_gpu *gpu, struct probe *probe);

/*
 * Returns -EBUSY if a stream capture of the program would become invalid when the library reads
 * back the records of a probe launch. This happens if a stream that synchronizes with the legacy
 * default stream is being captured, or if @stream is being captured. If @stream is NULL, the
 * launch is on a stream that the program cannot capture. The caller must have called
 * probe_enter(). If another thread begins a capture later, this function does not detect it.
 */
int check_no_capture(struct gpupart *gp, const struct probe *probe, void *stream);

/*
 * For each TPC, finds by launches which of the @nr_bits mask bits of a TMD belongs to the TPC,
 * and stores this bit in @bits. gpu->driver.map has no defined value afterwards. If the formula
 * of a layout is wrong and check_learn is set, check_gpu() calls check_learn. -EPROTO: the bits
 * do not correspond to TPCs.
 */
typedef int check_learner(struct gpupart *gp, struct gpupart_gpu *gpu, struct probe *probe,
			  void *stream, unsigned int nr_bits, uint8_t bits[GPUPART_MAX_TPCS]);
GPUPART_PRIVATE extern check_learner *check_learn;

/*
 * Makes a launch without TPC @tpc, which means that only the mask bit that the map has for this
 * TPC is set. *some and *whole are set to the TPCs that ran blocks, as in probe_census().
 */
GPUPART_PRIVATE
int check_without(struct gpupart *gp, struct gpupart_gpu *gpu, struct probe *probe, void *stream,
		  unsigned int tpc, struct gpupart_tpcset *some, struct gpupart_tpcset *whole);

/* Makes the launches of the check on @stream, even if the cache has a result. */
GPUPART_PRIVATE
int check_map(struct gpupart *gp, struct gpupart_gpu *gpu, struct probe *probe, void *stream);

/*
 * Finds a layout whose map was already checked, and makes no launches. The result of the check
 * is in the user's cache or in @key. @key is hexadecimal, comes from a parent process that made
 * the check, and may be NULL.
 */
int check_gpu_known(struct gpupart *gp, struct gpupart_gpu *gpu, const char *key);

/*
 * Checks with one probe launch per process whether the driver reports launches as expected.
 * Next-launch sets need these reports. Call this function after api_watch_launches(). Returns 0
 * or -EOPNOTSUPP. If the GPU was attached without launches, this function makes no launch. In
 * this case the first launch of the program shows whether the driver reports launches.
 */
int check_launches(struct gpupart *gp, struct gpupart_gpu *gpu);

#endif
