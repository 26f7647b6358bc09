/* SPDX-License-Identifier: MIT */
/*
 * Makes sure, before anything is masked, that the mask bits mean on this GPU what
 * the table says, and learns how streams are told apart.
 */
#ifndef GPUPART_LIB_CONFINE_SELF_CHECK_H
#define GPUPART_LIB_CONFINE_SELF_CHECK_H

#include "lib/confine/probe.h"

/*
 * With launches: finds the TMD layout, checks the map (or finds that it was checked
 * before), learns streams. Fills gpu->driver.map, ->trusted, ->streams_known, ->check.
 */
int check_gpu(struct gpupart *gp, struct gpupart_gpu *gpu, struct probe *probe);

/*
 * -EBUSY where a launch with records that are read back (of the probe that was entered)
 * would spoil a capture of the program's: of any stream that waits for the legacy default
 * stream, as reading back does, or of @stream (NULL: one that the program cannot capture).
 * What another thread begins to capture afterwards is not seen.
 */
int check_no_capture(struct gpupart *gp, const struct probe *probe, void *stream);

/*
 * Finds by launches which of the @nr_bits mask bits of a TMD each TPC has, into @bits, and leaves
 * any map in gpu->driver.map. check_gpu() calls check_learn, where that is set, if the formula of
 * a layout does not hold. -EPROTO where the bits are no order of the TPCs.
 */
typedef int check_learner(struct gpupart *gp, struct gpupart_gpu *gpu, struct probe *probe,
			  void *stream, unsigned int nr_bits, uint8_t bits[GPUPART_MAX_TPCS]);
GPUPART_PRIVATE extern check_learner *check_learn;

/* The launches of the check alone, on @stream, whatever is cached. */
GPUPART_PRIVATE
int check_map(struct gpupart *gp, struct gpupart_gpu *gpu, struct probe *probe, void *stream);

/*
 * Without launches: finds a layout whose map was checked before, by the user's cache
 * or by @key (hexadecimal, from a parent that checked; may be NULL).
 */
int check_gpu_known(struct gpupart *gp, struct gpupart_gpu *gpu, const char *key);

/*
 * Whether next-launch sets find their launch: the driver tells of launches as expected, which
 * a launch of our own shows once. After api_watch_launches(). -EOPNOTSUPP. An attach without
 * launches makes none here either: what the program's launches show counts then.
 */
int check_launches(struct gpupart *gp, struct gpupart_gpu *gpu);

#endif
