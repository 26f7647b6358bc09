/* SPDX-License-Identifier: MIT */
/*
 * Modules whose kernels can launch others from the GPU (dynamic parallelism, graphs launched
 * from the device): the callback does not see such launches. Modules that were loaded before
 * the driver reported module loads are unknown, and their launches are not counted.
 */
#ifndef GPUPART_LIB_CONFINE_MODULE_H
#define GPUPART_LIB_CONFINE_MODULE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The origin of a module, as the driver numbers it (measured:
 * Documentation/internals/hardware.md).
 */
enum module_kind {
	MODULE_DRIVER = 1,	/* the driver's own, loaded with each context; all contain the
				 * names */
	MODULE_PROGRAM = 2,
};

/*
 * The most modules that are distinguished. Once there are more, every module may be one of
 * them, so launches may be counted too often but never too rarely.
 */
#define MODULE_TABLE_SIZE 256

#define MODULE_KERNEL_LEN 160

/*
 * Called when the driver has loaded @module from the @size bytes at @image. Returns whether its
 * kernels can launch others; @kernel is then the name of one of its kernels, cut to fit, or ""
 * if none was found. Takes a lock and may take long.
 */
bool module_loaded(const void *module, const void *image, uint64_t size, uint32_t kind,
		   char kernel[MODULE_KERNEL_LEN]);
/* The module is about to be unloaded, and its address may be reused. */
void module_unloaded(const void *module);

/*
 * The current number of such modules; those that did not fit into the table are never
 * subtracted.
 */
extern atomic_uint module_nr_launching __attribute__((visibility("hidden")));

/* Whether kernels of @module can launch others; searches the table. */
bool module_find(const void *module);

/*
 * Whether there is any such module: one load, for the launch callback. The load can be relaxed:
 * a program that launches a function that another thread loaded already has that order from the
 * way it got the function.
 */
static inline bool module_any(void)
{
	return atomic_load_explicit(&module_nr_launching, memory_order_relaxed);
}

#endif
