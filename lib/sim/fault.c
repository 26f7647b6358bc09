// SPDX-License-Identifier: MIT
/*
 * Faults that the simulated driver plays, and its seed, from the environment. Must
 * not know what they do; README.md says it.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../hash.h"
#include "sim.h"

#define TMD_VERSION_V04_00	0x40
#define HOOK_TABLE_BYTES	96
#define HOOK_PARAMS_BYTES	88

static struct sim_faults faults;

void sim_say(const char *fmt, ...)
{
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	fprintf(stderr, "simulated libcuda: %s\n", line);
}

/* A number, or @unset where the variable is not there or is none. */
static uint64_t number(const char *name, uint64_t unset)
{
	const char *text = getenv(name);
	uint64_t value;
	char *end;

	if (!text || !*text)
		return unset;
	value = strtoull(text, &end, 0);
	if (*end) {
		sim_say("%s=%s is no number and was ignored", name, text);
		return unset;
	}
	return value;
}

/* "A:B" or "A.B" into two numbers; what is not there or is none leaves them alone. */
static void pair(const char *name, char between, int *first, int *second)
{
	const char *text = getenv(name);
	char *middle, *end = NULL;
	long a, b = 0;

	if (!text || !*text)
		return;
	a = strtol(text, &middle, 10);
	if (middle != text && *middle == between)
		b = strtol(middle + 1, &end, 10);
	if (!end || end == middle + 1 || *end || a < 0 || b < 0) {
		sim_say("%s=%s is not two numbers with '%c' between and was ignored", name, text,
			between);
		return;
	}
	*first = a;
	*second = b;
}

#define H200_MEMORY (143771ull << 20)	/* nvidia-smi's figure */

static void fault_setup(void)
{
	pid_t pid = getpid();

	faults.tmd_version = number("GPUPART_SIM_TMD_VERSION", TMD_VERSION_V04_00);
	faults.no_table = number("GPUPART_SIM_NO_TABLE", 0);
	faults.drop_callback = number("GPUPART_SIM_DROP_CALLBACK", 0);
	faults.mps = number("GPUPART_SIM_MPS", 0);
	faults.table_size = number("GPUPART_SIM_TABLE_SIZE", HOOK_TABLE_BYTES);
	faults.params_size = number("GPUPART_SIM_PARAMS_SIZE", HOOK_PARAMS_BYTES);
	faults.no_stream_pointer = !number("GPUPART_SIM_STREAM_POINTER", 1);
	faults.no_stream_events = number("GPUPART_SIM_NO_STREAM_EVENTS", 0);
	faults.move_tmd = number("GPUPART_SIM_MOVE_TMD", 0);
	faults.fixed_arguments = number("GPUPART_SIM_FIXED_ARGUMENTS", 0);
	faults.no_memory_figure = number("GPUPART_SIM_NO_MEMORY_FIGURE", 0);
	faults.other_memory = number("GPUPART_SIM_OTHER_MEMORY", 0);
	faults.memory = number("GPUPART_SIM_MEMORY", H200_MEMORY);
	faults.lazy_code = number("GPUPART_SIM_LAZY_CODE", 0);
	faults.host_clock = number("GPUPART_SIM_HOST_CLOCK", 0);
	faults.capturing = number("GPUPART_SIM_CAPTURING", 0);
	faults.no_mps_attribute = number("GPUPART_SIM_NO_MPS_ATTRIBUTE", 0);
	faults.no_api = number("GPUPART_SIM_NO_API", 0);
	faults.nr_clusters = number("GPUPART_SIM_CLUSTERS", 0);
	faults.renamed = number("GPUPART_SIM_RENAMED", 0);
	faults.subscribers = number("GPUPART_SIM_SUBSCRIBERS", 1);
	if (faults.subscribers > SIM_MAX_SUBSCRIBERS)
		faults.subscribers = SIM_MAX_SUBSCRIBERS;
	faults.reuse_contexts = number("GPUPART_SIM_REUSE_CONTEXTS", 0);
	faults.move_tpc = faults.move_bit = -1;
	pair("GPUPART_SIM_MOVE_BIT", ':', &faults.move_tpc, &faults.move_bit);
	faults.cc_major = 9;
	pair("GPUPART_SIM_CC", '.', &faults.cc_major, &faults.cc_minor);
	/* Another process, another layout of the stream objects: as another driver version. */
	faults.seed = number("GPUPART_SIM_SEED", hash_bytes(HASH_INIT, &pid, sizeof(pid)));
}

const struct sim_faults *sim_faults(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, fault_setup);
	return &faults;
}
