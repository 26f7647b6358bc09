/* SPDX-License-Identifier: MIT */
/*
 * Recognises modules whose kernels can launch other kernels or graphs from the GPU. For such
 * launches, the driver does not call the launch callback. A module is unknown if it was loaded
 * before the driver began to report module loads. Launches of unknown modules are not counted.
 */
#ifndef GPUPART_LIB_CONFINE_MODULE_H
#define GPUPART_LIB_CONFINE_MODULE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * The driver has a number for the origin of each module. Measured in
 * Documentation/internals/hardware.md.
 */
enum module_kind {
	/*
	 * The origin of the driver's own modules. The driver loads these modules with each
	 * context. All these modules contain names of the device runtime.
	 */
	MODULE_DRIVER = 1,
	MODULE_PROGRAM = 2,
};

/*
 * Maximum number of modules in the table. If there are more modules, module_find() returns true
 * for every module. Then too many launches may be counted, but never too few.
 */
#define MODULE_TABLE_SIZE 256

#define MODULE_KERNEL_LEN 160

/*
 * Called when the driver has loaded @module from the @size bytes at @image. Returns true if
 * kernels of the module can launch other kernels. Then @kernel is the name of one kernel of the
 * module. A long name is shortened, and an unknown name is "". The function takes a lock and may
 * run for a long time.
 */
bool module_loaded(const void *module, const void *image, uint64_t size, uint32_t kind,
		   char kernel[MODULE_KERNEL_LEN]);
/* Called before the driver unloads the module. A later module may have the same address. */
void module_unloaded(const void *module);

/*
 * The current number of modules whose kernels can launch other kernels. A module that did not fit
 * into the table stays in this number, even after the driver has unloaded the module.
 */
extern atomic_uint module_nr_launching __attribute__((visibility("hidden")));

/* Searches the table. Returns true if kernels of @module can launch other kernels. */
bool module_find(const void *module);

/*
 * Returns true if any module has kernels that can launch other kernels. This function is for the
 * launch callback. The relaxed memory order is sufficient. The program itself makes sure that a
 * function is loaded before another thread launches the function.
 */
static inline bool module_any(void)
{
	return atomic_load_explicit(&module_nr_launching, memory_order_relaxed);
}

#endif
