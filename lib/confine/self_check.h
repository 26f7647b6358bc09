/* SPDX-License-Identifier: MIT */
/*
 * Before the library masks any launch, this code checks that the mask bits of the map are right.
 * The code also learns how to distinguish streams.
 */
#ifndef GPUPART_LIB_CONFINE_SELF_CHECK_H
#define GPUPART_LIB_CONFINE_SELF_CHECK_H

#include "lib/confine/probe.h"

/*
 * Checks a GPU by launches. The function finds the TMD layout and learns how to distinguish
 * streams. If the cache has no result of an earlier check, the function also checks the map. The
 * results are in gpu->driver.map, gpu->trusted, gpu->streams_known and gpu->check.
 */
int check_gpu(struct gpupart *gp, struct gpupart_gpu *gpu, struct probe *probe);

/*
 * When the library reads back the records of a probe launch, some stream captures would become
 * invalid. Returns -EBUSY if there is such a capture. These are captures of @stream, and captures
 * of streams that synchronize with the legacy default stream. If @stream is NULL, the launch is
 * on a stream that the program cannot capture. The caller must have called probe_enter(). The
 * function does not detect a capture that another thread begins later.
 */
int check_no_capture(struct gpupart *gp, const struct probe *probe, void *stream);

/*
 * A TMD has @nr_bits mask bits. This function finds the mask bit of each TPC by launches, and
 * stores the bit in @bits. Afterwards the value of gpu->driver.map is undefined. If the bits do
 * not correspond to TPCs, the function returns -EPROTO. If the formula of a layout is wrong and
 * check_learn is set, check_gpu() calls check_learn.
 */
typedef int check_learner(struct gpupart *gp, struct gpupart_gpu *gpu, struct probe *probe,
			  void *stream, unsigned int nr_bits, uint8_t bits[GPUPART_MAX_TPCS]);
GPUPART_PRIVATE extern check_learner *check_learn;

/*
 * Makes a launch without TPC @tpc. The function sets one mask bit, which the map has for this
 * TPC. Like probe_census(), it sets *some and *whole to the TPCs that ran blocks.
 */
GPUPART_PRIVATE
int check_without(struct gpupart *gp, struct gpupart_gpu *gpu, struct probe *probe, void *stream,
		  unsigned int tpc, struct gpupart_tpcset *some, struct gpupart_tpcset *whole);

/* Checks the map by launches on @stream, even if the cache has a result. */
GPUPART_PRIVATE
int check_map(struct gpupart *gp, struct gpupart_gpu *gpu, struct probe *probe, void *stream);

/*
 * Finds a layout whose map was already checked. The function makes no launches. The result of the
 * check is in the user's cache or in @key. A parent process that made the check passes the
 * hexadecimal @key. Argument @key may be NULL.
 */
int check_gpu_known(struct gpupart *gp, struct gpupart_gpu *gpu, const char *key);

/*
 * Checks that the driver reports launches in the expected way. Next-launch sets need these
 * reports. For this check, a process makes one probe launch. Call this function after
 * api_watch_launches(). Returns 0 or -EOPNOTSUPP. If the GPU was attached without launches, this
 * function makes no launch. Then the program's first launch shows whether the driver reports
 * launches.
 */
int check_launches(struct gpupart *gp, struct gpupart_gpu *gpu);

#endif
