/* SPDX-License-Identifier: MIT */
/*
 * Recognises modules whose kernels can launch other kernels from the GPU (dynamic parallelism,
 * graphs launched from the device). The launch callback is not called for such launches. Modules
 * that were loaded before the driver reported module loads are unknown, and their launches are
 * not counted.
 */
#ifndef GPUPART_LIB_CONFINE_MODULE_H
#define GPUPART_LIB_CONFINE_MODULE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The driver's number for the origin of a module. Measured in
 * Documentation/internals/hardware.md.
 */
enum module_kind {
	/*
	 * Modules of the driver have this origin. The driver loads them with each context. All
	 * of them contain the names for which the check searches.
	 */
	MODULE_DRIVER = 1,
	MODULE_PROGRAM = 2,
};

/*
 * The number of modules that the table can hold. If there are more such modules, module_find()
 * returns true for every module. Too many launches may then be counted, but never too few.
 */
#define MODULE_TABLE_SIZE 256

#define MODULE_KERNEL_LEN 160

/*
 * Called when the driver has loaded @module from the @size bytes at @image. Returns true if
 * kernels of the module can launch other kernels. In this case @kernel is the name of one kernel
 * of the module, shortened to fit, or "" if no name was found. The function takes a lock and may
 * run for a long time.
 */
bool module_loaded(const void *module, const void *image, uint64_t size, uint32_t kind,
		   char kernel[MODULE_KERNEL_LEN]);
/*
 * Called when the module is about to be unloaded. The address of the module may be reused
 * afterwards.
 */
void module_unloaded(const void *module);

/*
 * The current number of modules whose kernels can launch other kernels. A module that did not
 * fit into the table is still counted after the program has unloaded it.
 */
extern atomic_uint module_nr_launching __attribute__((visibility("hidden")));

/* Returns true if kernels of @module can launch other kernels. Searches the table. */
bool module_find(const void *module);

/*
 * Returns true if there is any module whose kernels can launch other kernels. This function is
 * for the launch callback and reads only one variable, with relaxed memory order. If another
 * thread loaded the function that this thread launches, the program itself has already ordered
 * the loading before the launch.
 */
static inline bool module_any(void)
{
	return atomic_load_explicit(&module_nr_launching, memory_order_relaxed);
}

#endif
