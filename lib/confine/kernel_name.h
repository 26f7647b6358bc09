/* SPDX-License-Identifier: MIT */
/* Reads C++ names of kernels, as the Itanium ABI mangles them. */
#ifndef GPUPART_LIB_CONFINE_KERNEL_NAME_H
#define GPUPART_LIB_CONFINE_KERNEL_NAME_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The qualified name in @mangled without arguments, "at::native::copy_kernel" of a template's or an
 * ordinary function's: false where it is none, or one that this does not understand.
 */
bool kernel_name_read(const char *mangled, char *name, size_t len);

#endif
