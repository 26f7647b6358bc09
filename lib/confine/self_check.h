/* SPDX-License-Identifier: MIT */
/*
 * Checks, before any launch is masked, that the mask bits of this GPU are those of the table,
 * and learns how streams can be distinguished.
 */
#ifndef GPUPART_LIB_CONFINE_SELF_CHECK_H
#define GPUPART_LIB_CONFINE_SELF_CHECK_H

#include "lib/confine/probe.h"

/*
 * Makes launches: finds the TMD layout, checks the map (or finds that it was checked before)
 * and learns about streams. Fills gpu->driver.map, ->trusted, ->streams_known and ->check.
 */
int check_gpu(struct gpupart *gp, struct gpupart_gpu *gpu, struct probe *probe);

/*
 * Returns -EBUSY if reading back the records of a launch (of the probe that was entered) would
 * invalidate a capture of the program: of any stream that waits for the legacy default stream,
 * or of @stream (NULL: a stream that the program cannot capture). A capture that another thread
 * begins later is not detected.
 */
int check_no_capture(struct gpupart *gp, const struct probe *probe, void *stream);

/*
 * Finds by launches which of the @nr_bits mask bits of a TMD belongs to each TPC, into @bits;
 * gpu->driver.map may hold any map afterwards. check_gpu() calls check_learn, if it is set,
 * when the formula of a layout is wrong. -EPROTO: the bits do not correspond to TPCs.
 */
typedef int check_learner(struct gpupart *gp, struct gpupart_gpu *gpu, struct probe *probe,
			  void *stream, unsigned int nr_bits, uint8_t bits[GPUPART_MAX_TPCS]);
GPUPART_PRIVATE extern check_learner *check_learn;

/* Makes the launches of the check on @stream, whatever the cache holds. */
GPUPART_PRIVATE
int check_map(struct gpupart *gp, struct gpupart_gpu *gpu, struct probe *probe, void *stream);

/*
 * Without launches: finds a layout whose map was checked before, according to the user's cache
 * or to @key (hexadecimal, from a parent process that checked; may be NULL).
 */
int check_gpu_known(struct gpupart *gp, struct gpupart_gpu *gpu, const char *key);

/*
 * Whether next-launch sets find their launch: a probe launch shows once that the driver reports
 * launches as expected. Call it after api_watch_launches(). -EOPNOTSUPP. After an attach
 * without launches no launch is made here either; the program's launches show it.
 */
int check_launches(struct gpupart *gp, struct gpupart_gpu *gpu);

#endif
