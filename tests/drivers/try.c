// SPDX-License-Identifier: MIT
/*
 * Loads one libcuda.so, and tests its table of callbacks. The test needs no GPU and no cuInit.
 * The program first tests each slot itself. Then it runs the library's code on the same table. It
 * prints a row with these columns, separated by " | ": bytes, features, subscribe, enable 0 to 3,
 * enable 4, accepted features, unsubscribe, and the library's message. If the library can use the
 * driver, the exit status is 0, otherwise 1.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include "lib/core/ctx.h"
#include "lib/driver/table.h"

/*
 * The test does not use the library's constants, so that it detects a wrong constant in the
 * library.
 */
static const unsigned char uuid[16] = {
	0x2c, 0x8e, 0x0a, 0xd8, 0x07, 0x10, 0xab, 0x4e,
	0x90, 0xdd, 0x54, 0x71, 0x9f, 0xe5, 0xf7, 0x4b,
};

static void ignore(void *user, int domain, int cbid, const void *params)
{
	(void)user;
	(void)domain;
	(void)cbid;
	(void)params;
}

/*
 * Counts the features that slot 9 accepts. The accepted features are consecutive and begin with
 * 0.
 */
static void try_features(const void *slot, uint32_t handle, char *text, size_t len)
{
	int (*feature)(uint32_t, uint32_t, uint32_t);
	uint32_t nr = 0;

	memcpy(&feature, &slot, sizeof(feature));
	while (nr < 64 && !feature(1, handle, nr))
		nr++;
	snprintf(text, len, nr > 1 ? "0-%u" : nr ? "%u" : "none", nr ? nr - 1 : 0);
}

/* If there is no table, returns false. */
static bool try_slots(const struct cuda_api *api)
{
	int (*subscribe)(uint32_t *, driver_callback_fn, void *), (*unsubscribe)(uint32_t);
	int (*count)(uint32_t *, uint32_t, uint32_t), on[5], result;
	char features[16] = "-", accepts[16] = "-";
	const void *const *table = NULL;
	driver_enable_fn enable;
	uint32_t handle = 0, nr = 0;
	size_t bytes;

	if (api->export_table((const void **)&table, uuid) || !table)
		return false;
	bytes = (uintptr_t)table[0];
	if (bytes < 56 || bytes > 4096 || bytes % 8 || !table[3] || !table[4] || !table[6]) {
		printf("%zu | - | - | - | - | - | -", bytes);
		return true;
	}
	memcpy(&subscribe, &table[3], sizeof(subscribe));
	memcpy(&unsubscribe, &table[4], sizeof(unsubscribe));
	memcpy(&enable, &table[6], sizeof(enable));
	result = subscribe(&handle, ignore, NULL);
	for (int cbid = 0; cbid < 5; cbid++) {
		on[cbid] = enable(1, handle, DRIVER_DOMAIN_LAUNCH, cbid);
		if (!on[cbid])
			enable(0, handle, DRIVER_DOMAIN_LAUNCH, cbid);
	}
	if (bytes / 8 > 10) {
		memcpy(&count, &table[10], sizeof(count));
		if (!count(&nr, 0, handle))
			snprintf(features, sizeof(features), "%u", nr);
	}
	if (bytes / 8 > 9)
		try_features(table[9], handle, accepts, sizeof(accepts));
	printf("%zu | %s | %d | %d %d %d %d | %d | %s | %d", bytes, features, result, on[0], on[1],
	       on[2], on[3], on[4], accepts, result ? 0 : unsubscribe(handle));
	return true;
}

int main(int argc, char **argv)
{
	struct driver_table table = { 0 };
	struct cuda_api api = { 0 };
	struct gpupart gp = { 0 };
	void *lib;
	int err;

	if (argc != 2) {
		fprintf(stderr, "usage: %s LIBCUDA.SO\n", argv[0]);
		return 2;
	}
	lib = dlopen(argv[1], RTLD_NOW);
	if (!lib) {
		printf("- | - | - | - | - | - | - | cannot be loaded: %s\n", dlerror());
		return 1;
	}
	*(void **)&api.export_table = dlsym(lib, "cuGetExportTable");
	*(void **)&api.error_name = dlsym(lib, "cuGetErrorName");
	if (!api.export_table || !try_slots(&api))
		printf("- | - | - | - | - | - | -");
	err = api.export_table ? driver_subscribe(&gp, &api, ignore, &table) : -1;
	if (err)
		printf(" | refused: %s\n", api.export_table ? gp.error : "no cuGetExportTable");
	else
		printf(" | accepted\n");
	return err != 0;
}
