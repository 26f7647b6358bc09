// SPDX-License-Identifier: MIT
/* Opens NVIDIA's driver and initializes it for a GPU; see driver.h. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "cli/target/driver.h"

int driver_open(struct driver *driver, char *why, size_t len)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);

	if (!lib) {
		snprintf(why, len, "%s", dlerror());
		return -ENOENT;
	}
	memset(driver, 0, sizeof(*driver));
#define FIND(name, args) *(void **)&driver->name = dlsym(lib, #name);
#define NEED(name, args) \
	if (!driver->name) { \
		snprintf(why, len, "libcuda.so.1 has no " #name); \
		return -EOPNOTSUPP; \
	}
	DRIVER_NEEDED(FIND)
	DRIVER_OPTIONAL(FIND)
	DRIVER_NEEDED(NEED)
	return 0;
}

int driver_check(const struct driver *driver, const char *call, int result, char *why, size_t len)
{
	const char *name;

	if (!result)
		return 0;
	if (!driver->cuGetErrorName || driver->cuGetErrorName(result, &name))
		name = "error";
	snprintf(why, len, "%s: %s (%d)", call, name, result);
	return -EIO;
}

static int find_device(struct driver *driver, const char *pci, char *why, size_t len)
{
	char at[32] = "";
	int nr = 0, err;

	err = driver_check(driver, "cuDeviceGetCount", driver->cuDeviceGetCount(&nr), why, len);
	for (int i = 0; !err && i < nr; i++) {
		err = driver_check(driver, "cuDeviceGet", driver->cuDeviceGet(&driver->device, i),
				   why, len);
		if (!err && *pci && driver->cuDeviceGetPCIBusId(at, sizeof(at), driver->device))
			*at = 0;
		if (!err && (!*pci || !strcasecmp(at, pci)))
			return 0;
	}
	if (!err)
		snprintf(why, len, "CUDA does not report the GPU %s", pci);
	return err ? err : -ENODEV;
}

int driver_start(struct driver *driver, const char *pci, char *why, size_t len)
{
	return driver_check(driver, "cuInit", driver->cuInit(0), why, len) ?:
	       find_device(driver, pci, why, len) ?:
	       driver_check(driver, "cuDevicePrimaryCtxRetain",
			    driver->cuDevicePrimaryCtxRetain(&driver->ctx, driver->device),
			    why, len) ?:
	       driver_check(driver, "cuCtxSetCurrent", driver->cuCtxSetCurrent(driver->ctx),
			    why, len);
}

int driver_green(const struct driver *driver, void **green, char *why, size_t len)
{
	unsigned char all[DRIVER_RESOURCE_BYTES] = { 0 }, part[DRIVER_RESOURCE_BYTES] = { 0 };
	unsigned int nr = 1;
	void *desc;

	if (!driver->cuGreenCtxCreate || !driver->cuDeviceGetDevResource ||
	    !driver->cuDevSmResourceSplitByCount || !driver->cuDevResourceGenerateDesc) {
		snprintf(why, len, "this driver has no green contexts");
		return -EOPNOTSUPP;
	}
	return driver_check(driver, "cuDeviceGetDevResource",
			    driver->cuDeviceGetDevResource(driver->device, all,
							   DRIVER_RESOURCE_SM), why, len) ?:
	       driver_check(driver, "cuDevSmResourceSplitByCount",
			    driver->cuDevSmResourceSplitByCount(part, &nr, all, NULL, 0, 0),
			    why, len) ?:
	       driver_check(driver, "cuDevResourceGenerateDesc",
			    driver->cuDevResourceGenerateDesc(&desc, part, 1), why, len) ?:
	       driver_check(driver, "cuGreenCtxCreate",
			    driver->cuGreenCtxCreate(green, desc, driver->device,
						     DRIVER_GREEN_STREAM), why, len);
}
