/* SPDX-License-Identifier: MIT */
/*
 * Makes sure, before anything is masked, that the mask bits mean on this GPU what
 * the table says, and learns how streams are told apart.
 */
#ifndef GPUPART_LIB_CHECK_H
#define GPUPART_LIB_CHECK_H

#include "probe.h"

/*
 * With launches: finds the TMD layout, checks the map (or finds that it was checked
 * before), learns streams. Fills gpu->map, ->trusted, ->streams_known, ->check.
 */
int check_gpu(struct gpupart *gp, struct gpupart_gpu *gpu, struct probe *probe);

/* The launches of the check alone, on @stream, whatever is cached. */
int check_map(struct gpupart *gp, struct gpupart_gpu *gpu, struct probe *probe, void *stream);

/*
 * Without launches: finds a layout whose map was checked before, by the user's cache
 * or by @key (hexadecimal, from a parent that checked; may be NULL).
 */
int check_gpu_known(struct gpupart *gp, struct gpupart_gpu *gpu, const char *key);

/*
 * Whether next-launch sets find their launch: the driver tells of launches as expected, which
 * a launch of our own shows once. After hook_watch_launches(). -EOPNOTSUPP. An attach without
 * launches makes none here either: what the program's launches show counts then.
 */
int check_launches(struct gpupart *gp, struct gpupart_gpu *gpu);

#endif
