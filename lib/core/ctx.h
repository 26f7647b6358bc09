/* SPDX-License-Identifier: MIT */
/* Declares the context, which stores the error message of the last failed call. */
#ifndef GPUPART_LIB_CORE_CTX_H
#define GPUPART_LIB_CORE_CTX_H

#include "lib/private.h"

/*
 * This macro marks functions of libgpupart.so.0 that libgpupart-manage.so.0 of the same build uses.
 * The functions are exported, but they are not part of the public interface.
 */
#define GPUPART_PRIVATE __attribute__((visibility("default")))

struct gpupart {
	char error[512];
};

/*
 * Stores the error message in @gp and returns @err, a negative errno. If @gp is NULL, stores
 * nothing. Example: return ctx_fail(gp, -EINVAL, "TPC %u does not exist: ...", tpc);
 */
__attribute__((format(printf, 3, 4)))
GPUPART_PRIVATE
int ctx_fail(struct gpupart *gp, int err, const char *fmt, ...);

/* Does the same as ctx_fail(), and also appends a colon and the previous error message of @gp. */
__attribute__((format(printf, 3, 4)))
GPUPART_PRIVATE
int ctx_fail_because(struct gpupart *gp, int err, const char *fmt, ...);

#endif
