// SPDX-License-Identifier: MIT
/*
 * Makes libsmctrl's own queries to NVIDIA's driver, and prints libsmctrl's messages. Each message
 * is one line on stderr. A single call writes the line.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "lib/smctrl/smctrl.h"

void smctrl_say(const char *fmt, ...)
{
	char line[1024] = "libsmctrl: ";
	size_t len = strlen(line);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line + len, sizeof(line) - len - 1, fmt, ap);
	va_end(ap);
	/*
	 * A message may contain the text of an environment variable. Do not send control characters
	 * from this text to the terminal.
	 */
	for (char *c = line; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	strcat(line, "\n");
	fputs(line, stderr);
}

struct smctrl_driver smctrl_driver;
static bool driver_found;

static void driver_find(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);

	if (!lib)
		return;
	smctrl_driver.init = dlsym(lib, "cuInit");
	smctrl_driver.device_count = dlsym(lib, "cuDeviceGetCount");
	smctrl_driver.device_pci = dlsym(lib, "cuDeviceGetPCIBusId");
	smctrl_driver.ctx_current = dlsym(lib, "cuCtxGetCurrent");
	smctrl_driver.ctx_device = dlsym(lib, "cuCtxGetDevice");
	smctrl_driver.ctx_push = dlsym(lib, "cuCtxPushCurrent_v2");
	smctrl_driver.ctx_pop = dlsym(lib, "cuCtxPopCurrent_v2");
	smctrl_driver.primary_retain = dlsym(lib, "cuDevicePrimaryCtxRetain");
	smctrl_driver.primary_release = dlsym(lib, "cuDevicePrimaryCtxRelease_v2");
	/*
	 * Drivers before 11.0 have only the first of these functions. Both functions have the
	 * same arguments.
	 */
	if (!smctrl_driver.primary_release)
		smctrl_driver.primary_release = dlsym(lib, "cuDevicePrimaryCtxRelease");
	smctrl_driver.primary_state = dlsym(lib, "cuDevicePrimaryCtxGetState");
	smctrl_driver.sim_capture = dlsym(lib, "gpupart_sim_capture");
	driver_found = smctrl_driver.init && smctrl_driver.device_count &&
		       smctrl_driver.device_pci && smctrl_driver.ctx_current &&
		       smctrl_driver.ctx_device && smctrl_driver.ctx_push &&
		       smctrl_driver.ctx_pop && smctrl_driver.primary_retain &&
		       smctrl_driver.primary_release && smctrl_driver.primary_state;
}

bool smctrl_driver_there(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, driver_find);
	return driver_found;
}

void smctrl_device_pci(int device, char pci[20])
{
	pci[0] = 0;
	if (smctrl_driver.device_pci(pci, 20, device))
		pci[0] = 0;
	for (char *c = pci; *c; c++)
		if (*c >= 'A' && *c <= 'F')
			*c += 'a' - 'A';
}
