/* SPDX-License-Identifier: MIT */
/* The context, which stores the error sentence of a call that failed. */
#ifndef GPUPART_LIB_CORE_CTX_H
#define GPUPART_LIB_CORE_CTX_H

#include "lib/private.h"

/*
 * Marks functions of libgpupart.so.0 that libgpupart-manage.so.0 of the same build uses. They
 * are exported, but they are not part of the public interface.
 */
#define GPUPART_PRIVATE __attribute__((visibility("default")))

struct gpupart {
	char error[512];
};

/*
 * Stores the error sentence in @gp, which may be NULL, and returns @err, which is a negative
 * errno. Example: return ctx_fail(gp, -EINVAL, "TPC %u does not exist: ...", tpc);
 */
__attribute__((format(printf, 3, 4)))
GPUPART_PRIVATE
int ctx_fail(struct gpupart *gp, int err, const char *fmt, ...);

/* Does the same as ctx_fail(). It also appends a colon and the previous error sentence of @gp. */
__attribute__((format(printf, 3, 4)))
GPUPART_PRIVATE
int ctx_fail_because(struct gpupart *gp, int err, const char *fmt, ...);

#endif
