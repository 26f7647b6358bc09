/* SPDX-License-Identifier: MIT */
/* Reads C++ names of kernels. These names are mangled by the rules of the Itanium ABI. */
#ifndef GPUPART_LIB_CONFINE_KERNEL_NAME_H
#define GPUPART_LIB_CONFINE_KERNEL_NAME_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Converts @mangled to a qualified name without arguments, for example "at::native::copy_kernel".
 * The function works for templates and for ordinary functions. If @mangled is not a mangled name,
 * or has an unknown form, returns false.
 */
bool kernel_name_read(const char *mangled, char *name, size_t len);

#endif
