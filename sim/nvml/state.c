// SPDX-License-Identifier: MIT
/*
 * Answers queries about power and clocks. The values come from a test, because a simulated GPU has
 * no power and no clocks.
 */
#include <stdio.h>
#include "sim/nvml/nvml.h"

#define CLOCK_SM	1
#define CLOCK_MEMORY	2

/* Returns value number @nth of the fault nvml-state. */
static nvmlReturn_t state_value(nvmlDevice_t device, unsigned int nth, unsigned int *figure)
{
	const char *text = sim_faults()->nvml_state;
	unsigned int figures[3];
	nvmlReturn_t rc = nvml_check(device);
	int nr;

	if (rc)
		return rc;
	nr = text ? sscanf(text, "%u:%u:%u", &figures[0], &figures[1], &figures[2]) : 0;
	if (nr <= (int)nth)
		return NVML_ERROR_NOT_SUPPORTED;
	*figure = figures[nth];
	return NVML_SUCCESS;
}

EXPORT nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *mw)
{
	return mw ? state_value(device, 0, mw) : NVML_ERROR_INVALID_ARGUMENT;
}

EXPORT nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, unsigned int clock,
					   unsigned int *mhz)
{
	if (!mhz || (clock != CLOCK_SM && clock != CLOCK_MEMORY))
		return NVML_ERROR_INVALID_ARGUMENT;
	return state_value(device, clock == CLOCK_SM ? 1 : 2, mhz);
}
