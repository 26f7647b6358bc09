/* SPDX-License-Identifier: MIT */
/* Reads C++ names of kernels, mangled by the rules of the Itanium ABI. */
#ifndef GPUPART_LIB_CONFINE_KERNEL_NAME_H
#define GPUPART_LIB_CONFINE_KERNEL_NAME_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The qualified name in @mangled without arguments, for example "at::native::copy_kernel", for
 * templates and ordinary functions. False if it is not such a name, or has a form that is not
 * understood.
 */
bool kernel_name_read(const char *mangled, char *name, size_t len);

#endif
