/* SPDX-License-Identifier: MIT */
/*
 * Which modules hold kernels that can launch others from the GPU (dynamic parallelism,
 * graphs launched from the device): such launches never come by the callback. What was
 * loaded before the driver was asked to tell of modules is not known, nor are its launches counted.
 */
#ifndef GPUPART_LIB_CONFINE_MODULE_H
#define GPUPART_LIB_CONFINE_MODULE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Where a module comes from, in the driver's numbers (measured:
 * Documentation/internals/hardware.md).
 */
enum module_kind {
	MODULE_DRIVER = 1,	/* the driver's own: with each context, and all hold the words */
	MODULE_PROGRAM = 2,
};

/*
 * So many are told apart at most. Once one found no place, every module may be it: launches are
 * then counted too often, never too seldom.
 */
#define MODULE_TABLE_SIZE 256

#define MODULE_KERNEL_LEN 160

/*
 * The driver has loaded @module from the @size bytes at @image: whether its kernels can launch
 * others, and then in @kernel the name of one that it has, cut or "" where none was found. Takes a
 * lock, may take long.
 */
bool module_loaded(const void *module, const void *image, uint64_t size, uint32_t kind,
		   char kernel[MODULE_KERNEL_LEN]);
/* It is about to go: its address is free for another. */
void module_gone(const void *module);

/* How many there are now; those that found no place in the table stay for ever. */
extern atomic_uint module_nr_launching __attribute__((visibility("hidden")));

/* Whether kernels of @module can launch others: looks at the table. */
bool module_find(const void *module);

/*
 * Whether there is any such module: for the launch callback, one load. Relaxed, since a
 * program that launches what another thread loaded has the order by the way it came to
 * know the function.
 */
static inline bool module_any(void)
{
	return atomic_load_explicit(&module_nr_launching, memory_order_relaxed);
}

#endif
