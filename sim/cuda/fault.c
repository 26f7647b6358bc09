// SPDX-License-Identifier: MIT
/*
 * Reads the faults that tests request in GPUPART_SIM_FAULTS. README.md lists the faults. Only a
 * build with SIM_FAULTS reads this variable. So the installed driver has no faults.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/core/hash.h"
#include "sim/cuda/sim.h"

#define TMD_VERSION_V04_00	0x40
#define HOOK_TABLE_BYTES	96
#define HOOK_PARAMS_BYTES	88
#define HOOK_FEATURES		11

static struct sim_faults faults;

void sim_print(const char *fmt, ...)
{
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	fprintf(stderr, "simulated libcuda: %s\n", line);
}

#define H200_MEMORY (143771ull << 20)	/* as reported by nvidia-smi */

#ifdef SIM_FAULTS
enum kind {
	FLAG,		/* bool, no value */
	NUMBER,		/* uint64_t */
	PAIR,		/* int [2], separated by ":" or "." */
	TEXT,		/* const char * */
};

#define AT(kind, member)	kind, offsetof(struct sim_faults, member)

static const struct known {
	const char *name;
	enum kind kind;
	size_t at;
} known[] = {
	{ "capturing", AT(FLAG, capturing) },
	{ "cc", AT(PAIR, cc) },
	{ "clock-drift", AT(NUMBER, clock_drift) },
	{ "clusters", AT(NUMBER, nr_clusters) },
	{ "drop-callback", AT(FLAG, drop_callback) },
	{ "features", AT(NUMBER, features) },
	{ "fixed-arguments", AT(FLAG, fixed_arguments) },
	{ "graph-memory", AT(NUMBER, graph_memory) },
	{ "graphs", AT(NUMBER, graphs) },
	{ "host-clock", AT(FLAG, host_clock) },
	{ "host-thread", AT(FLAG, host_thread) },
	{ "lazy-code", AT(NUMBER, lazy_code) },
	{ "lazy-libraries", AT(FLAG, lazy_libraries) },
	{ "lose-context", AT(NUMBER, lose_context) },
	{ "memory", AT(NUMBER, memory) },
	{ "move-bit", AT(PAIR, move_bit) },
	{ "move-field", AT(PAIR, move_field) },
	{ "move-tmd", AT(FLAG, move_tmd) },
	{ "mps", AT(FLAG, mps) },
	{ "no-api", AT(FLAG, no_api) },
	{ "no-memory-figure", AT(FLAG, no_memory_figure) },
	{ "no-mps-attribute", AT(FLAG, no_mps_attribute) },
	{ "no-stream-events", AT(FLAG, no_stream_events) },
	{ "no-stream-pointer", AT(FLAG, no_stream_pointer) },
	{ "no-table", AT(FLAG, no_table) },
	{ "nvml", AT(TEXT, nvml) },
	{ "nvml-ioctl", AT(NUMBER, nvml_ioctl) },
	{ "nvml-newer", AT(FLAG, nvml_newer) },
	{ "nvml-state", AT(TEXT, nvml_state) },
	{ "nvml-wide", AT(FLAG, nvml_wide) },
	{ "order", AT(TEXT, order) },
	{ "other-memory", AT(NUMBER, other_memory) },
	{ "params-size", AT(NUMBER, params_size) },
	{ "release-busy", AT(FLAG, release_busy) },
	{ "release-late", AT(NUMBER, release_late) },
	{ "release-lost", AT(FLAG, release_lost) },
	{ "release-torn", AT(NUMBER, release_torn) },
	{ "release-wrong", AT(NUMBER, release_wrong) },
	{ "renamed", AT(NUMBER, renamed) },
	{ "reuse-contexts", AT(FLAG, reuse_contexts) },
	{ "sealed-table", AT(FLAG, sealed_table) },
	{ "seed", AT(NUMBER, seed) },
	{ "stale-tmd", AT(FLAG, stale_tmd) },
	{ "subscribers", AT(NUMBER, subscribers) },
	{ "table-size", AT(NUMBER, table_size) },
	{ "tmd-pointer", AT(NUMBER, tmd_pointer) },
	{ "tmd-version", AT(NUMBER, tmd_version) },
};

/* If the type of @value is wrong for the fault, changes nothing and returns false. */
static bool set_fault(const struct known *fault, const char *value)
{
	void *to = (char *)&faults + fault->at;
	unsigned int first, second;
	uint64_t number;
	char *end, rest;

	if ((fault->kind == FLAG) != !value)
		return false;
	if (fault->kind == FLAG) {
		*(bool *)to = true;
		return true;
	}
	if (fault->kind == TEXT) {
		*(const char **)to = value;
		return true;
	}
	if (fault->kind == PAIR) {
		if (sscanf(value, "%u%*1[:.]%u%c", &first, &second, &rest) != 2)
			return false;
		((int *)to)[0] = first;
		((int *)to)[1] = second;
		return true;
	}
	number = strtoull(value, &end, 0);
	if (end == value || *end)
		return false;
	*(uint64_t *)to = number;
	return true;
}

/* "no-table,move-bit=7:0" */
static void read_faults(void)
{
	const char *list = getenv("GPUPART_SIM_FAULTS");
	size_t i, nr = sizeof(known) / sizeof(known[0]);
	char *next, *name, *value;

	next = faults.texts = strdup(list ? list : "");
	while (next && (name = strsep(&next, ","))) {
		value = strchr(name, '=');
		if (value)
			*value++ = 0;
		for (i = 0; i < nr && strcmp(known[i].name, name); i++)
			;
		if (*name && (i == nr || !set_fault(&known[i], value)))
			sim_print("GPUPART_SIM_FAULTS: ignoring %s%s%s, which is not a fault", name,
				value ? "=" : "", value ? value : "");
	}
}
#else
static void read_faults(void)
{
}
#endif

static void fault_setup(void)
{
	pid_t pid = getpid();

	faults = (struct sim_faults){
		.tmd_version = TMD_VERSION_V04_00, .table_size = HOOK_TABLE_BYTES,
		.params_size = HOOK_PARAMS_BYTES, .features = HOOK_FEATURES,
		.memory = H200_MEMORY, .subscribers = 1, .graphs = UINT64_MAX,
		.move_bit = { -1, -1 }, .cc = { 9, 0 }, .nvml_ioctl = UINT64_MAX,
		.release_wrong = UINT64_MAX,
		/*
		 * Each process has a different layout of the stream objects, because each version
		 * of NVIDIA's driver has a different layout.
		 */
		.seed = hash_bytes(HASH_INIT, &pid, sizeof(pid)),
	};
	read_faults();
	if (faults.subscribers > SIM_MAX_SUBSCRIBERS)
		faults.subscribers = SIM_MAX_SUBSCRIBERS;
}

const struct sim_faults *sim_faults(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, fault_setup);
	return &faults;
}
