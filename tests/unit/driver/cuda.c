// SPDX-License-Identifier: MIT
/*
 * Tests internal functions of cuda.c. For each entry point, it tests the symbol names that the
 * library searches.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

static const char *missing = "";
static char library;

static void *fake_dlopen(const char *name, int flags)
{
	(void)name, (void)flags;
	return &library;
}

/* Returns a different address for each name, and NULL for the missing name. */
static void *fake_dlsym(void *lib, const char *name)
{
	static char room[256][64];
	int i = 0;

	while (i < 255 && *room[i] && strcmp(room[i], name))
		i++;
	strncpy(room[i], name, sizeof(room[i]) - 1);
	return lib == &library && strcmp(name, missing) ? room[i] : NULL;
}

#define dlopen fake_dlopen
#define dlsym fake_dlsym
#include "lib/driver/cuda.c"
#include "tests/tap.h"

static bool is(const void *member, const char *name)
{
	const char *found;

	memcpy(&found, member, sizeof(found));
	return found && !strcmp(found, name);
}

int main(void)
{
	unsigned int nr_wrong = 0, nr = 0;
	const struct cuda_api *api;
	struct gpupart gp;

	missing = "cuGetExportTable";
	tap_ok(cuda_open(&gp, &api) == -EOPNOTSUPP && strstr(gp.error, "has no cuGetExportTable"),
	       "the last that is needed is missing: %s", gp.error);
	missing = "cuInit";
	tap_ok(cuda_open(&gp, &api) == -EOPNOTSUPP && strstr(gp.error, "has no cuInit"),
	       "the first that is needed is missing: %s", gp.error);
	missing = "cuGetErrorName";
	if (!tap_ok(!cuda_open(&gp, &api), "the first that is not needed is missing: no error"))
		return tap_done();
	tap_ok(!api->error_name, "and NULL");
#define WRONG(member, symbol, args) \
	nr++, nr_wrong += !is(&api->member, symbol) && strcmp(symbol, missing);
	CUDA_NEEDED(WRONG)
	CUDA_OPTIONAL(WRONG)
	tap_ok(!nr_wrong, "each of %u is its member (%u are not)", nr, nr_wrong);
	tap_ok(is(&api->sim_capture, "gpupart_sim_capture") &&
		       is(&api->sim_topology, "gpupart_sim_topology") &&
		       is(&api->sim_memory, "gpupart_sim_memory") &&
		       is(&api->sim_processes, "gpupart_sim_processes"),
	       "and so are the simulated driver's own");
	return tap_done();
}
