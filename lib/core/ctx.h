/* SPDX-License-Identifier: MIT */
/* The context: where a failing call leaves its sentence. */
#ifndef GPUPART_LIB_CORE_CTX_H
#define GPUPART_LIB_CORE_CTX_H

#include "lib/private.h"

/* Of libgpupart.so.0, for libgpupart-manage.so.0 of the same build: exported, and not public. */
#define GPUPART_PRIVATE __attribute__((visibility("default")))

struct gpupart {
	char error[512];
};

/*
 * Keeps the sentence in @gp (which may be NULL) and returns @err, a negative
 * errno: return ctx_fail(gp, -EINVAL, "TPC %u is not there: ...", tpc);
 */
__attribute__((format(printf, 3, 4)))
GPUPART_PRIVATE
int ctx_fail(struct gpupart *gp, int err, const char *fmt, ...);

/* The same with the words of an inner failure kept behind a colon. */
__attribute__((format(printf, 3, 4)))
GPUPART_PRIVATE
int ctx_fail_because(struct gpupart *gp, int err, const char *fmt, ...);

#endif
