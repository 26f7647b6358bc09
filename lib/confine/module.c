// SPDX-License-Identifier: MIT
/*
 * Finds the modules that can launch kernels from the GPU. When the driver loads a module, this
 * code searches the module's image for names of the device runtime.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include "lib/confine/module.h"
#include "lib/core/fork.h"
#include "lib/core/peek.h"

/*
 * These are parts of names in the device runtime. If a cubin contains such a name, the cubin can
 * launch kernels. Source: Documentation/internals/hardware.md, "The launch callback". The full
 * names are __cudaCDP2LaunchDeviceV2, __cuda_syscall_cnpv2LaunchDeviceV2, cudaLaunchDeviceV2 and
 * cudaGraphLaunch. The third name belongs to the older runtime (CDP1). A module that fills memory
 * from the device also contains the second name. If a module is linked with the runtime but
 * launches nothing, it contains none of these names.
 */
static const char launch_kernel[] = "LaunchDevice", launch_graph[] = "cudaGraphLaunch";
/*
 * Each kernel has a section for its arguments. The section's name is this prefix followed by the
 * kernel's name.
 */
static const char arguments_of[] = ".nv.constant0.";

#define OVERLAP (sizeof(launch_graph) - 2)	/* one name may begin in one piece and end in the
						 * next piece */
#define PIECE	(64 << 10)
#define MAX_IMAGE (2ull << 30)	/* offsets in a cubin are smaller than this */

#define FREE 1

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FORK_TAKES(lock, 1);
/* A thread holds this lock while it reads an image. A fork does not wait for this lock. */
static pthread_mutex_t read_lock = PTHREAD_MUTEX_INITIALIZER;
FORK_RENEWS(read_lock);
/* Each entry is the address of a module, or FREE. A thread that writes an entry holds the lock. */
static _Atomic uintptr_t table[MODULE_TABLE_SIZE];
static atomic_uint nr_places;	/* all entries after this number of entries are free */
static atomic_bool too_many;
atomic_uint module_nr_launching;

/*
 * Returns the index of the first entry with @module. If there is no such entry, returns
 * MODULE_TABLE_SIZE.
 */
static unsigned int place_of(uintptr_t module)
{
	unsigned int end = atomic_load_explicit(&nr_places, memory_order_relaxed);

	for (unsigned int at = 0; at < end; at++)
		if (atomic_load_explicit(&table[at], memory_order_relaxed) == module)
			return at;
	return MODULE_TABLE_SIZE;
}

bool module_find(const void *module)
{
	return place_of((uintptr_t)module) != MODULE_TABLE_SIZE ||
	       atomic_load_explicit(&too_many, memory_order_relaxed);
}

static void take_out(uintptr_t module)
{
	unsigned int at = place_of(module), end = nr_places;

	if (at == MODULE_TABLE_SIZE)
		return;
	table[at] = FREE;
	module_nr_launching--;
	while (end && table[end - 1] == FREE)
		end--;
	nr_places = end;
}

static void put_in(uintptr_t module)
{
	unsigned int at = place_of(FREE);

	if (at == MODULE_TABLE_SIZE)
		at = nr_places;
	if (at == MODULE_TABLE_SIZE) {
		if (!atomic_exchange(&too_many, true))
			module_nr_launching++;
		return;
	}
	table[at] = module;
	if (at == nr_places)
		nr_places++;
	module_nr_launching++;
}

/*
 * The image belongs to the driver, and no header documents its address and size. So the code
 * reads the image in a safe way. At a wrong address, the read fails without a fault. The code
 * stops at the first unmapped page.
 */
static bool image_launches(const char *image, uint64_t size, char kernel[MODULE_KERNEL_LEN])
{
	static char piece[OVERLAP + PIECE];	/* too large for the stack */
	uint64_t at = 0;
	size_t kept = 0;
	char *name;

	FORK_HOLD(&read_lock);
	*kernel = 0;
	if (size > MAX_IMAGE)
		size = MAX_IMAGE;
	while (at < size) {
		size_t want = size - at < PIECE ? size - at : PIECE, len;
		size_t nr = peek(image + at, piece + kept, want);

		if (!nr || (!at && (nr < 4 || memcmp(piece, "\177ELF", 4))))
			return false;
		len = kept + nr;
		name = memmem(piece, len, arguments_of, sizeof(arguments_of) - 1);
		if (name && !*kernel) {
			name += sizeof(arguments_of) - 1;
			snprintf(kernel, MODULE_KERNEL_LEN, "%.*s", (int)(piece + len - name),
				 name);
		}
		if (memmem(piece, len, launch_kernel, sizeof(launch_kernel) - 1) ||
		    memmem(piece, len, launch_graph, sizeof(launch_graph) - 1))
			return true;
		at += nr;
		kept = len < OVERLAP ? len : OVERLAP;
		memmove(piece, piece + len - kept, kept);
	}
	return false;
}

bool module_loaded(const void *module, const void *image, uint64_t size, uint32_t kind,
		   char kernel[MODULE_KERNEL_LEN])
{
	bool launches;

	if ((uintptr_t)module <= FREE)
		return false;
	launches = kind != MODULE_DRIVER && image_launches(image, size, kernel);
	FORK_HOLD(&lock);
	/*
	 * An earlier module had this address, and the driver did not report the unload of the
	 * earlier module.
	 */
	take_out((uintptr_t)module);
	if (launches)
		put_in((uintptr_t)module);
	return launches;
}

void module_unloaded(const void *module)
{
	FORK_HOLD(&lock);

	if ((uintptr_t)module > FREE)
		take_out((uintptr_t)module);
}
