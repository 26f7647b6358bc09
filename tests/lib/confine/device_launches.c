// SPDX-License-Identifier: MIT
/*
 * Launches of kernels that can launch others from the GPU, on the simulated driver: which
 * of them are counted, and which cannot be.
 */
#include <elf.h>
#include "tests/lib/scenario.h"

/* Binaries as far as anybody looks at them: a head, and names. */
struct image {
	Elf64_Ehdr head;
	char names[100000];
};

static struct image launching = {
	.head = { .e_ident = ELFMAG "\2\1\1", .e_shoff = sizeof(struct image) },
}, graph, plain;

static const char text_launching[] =
	".version 8.0\n.target sm_90\n.address_size 64\n"
	".extern .func (.param .b32 r) cudaLaunchDeviceV2 (.param .b64 a, .param .b64 s)\n;\n"
	".visible .entry parent()\n{ ret; }\n";

static void images_make(void)
{
	graph = plain = launching;
	/* Far in, and not as a string of its own. */
	strcpy(launching.names + 70000, ".text.__cudaCDP2LaunchDeviceV2");
	strcpy(graph.names + 70000, "cudaGraphLaunch");
	strcpy(plain.names + 70000, ".text.LaunchedByNobody");
}

static P module_of(const void *image)
{
	P module = NULL;

	return cuModuleLoadData(&module, image) ? NULL : module;
}

/* Launches a kernel of @module three times: how many were counted, and all seen (else -1). */
static long long counted(P module, const char *name)
{
	struct gpupart_counters before, after;
	P function;

	if (cuModuleGetFunction(&function, module, name))
		return -2;
	gpupart_counters_get(&before);
	for (int i = 0; i < 3; i++)
		if (cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL))
			return -3;
	gpupart_counters_get(&after);
	if (cuStreamSynchronize(NULL) || after.launches - before.launches != 3)
		return -1;
	return after.device_launches - before.device_launches;
}

static unsigned long long in_all(void)
{
	struct gpupart_counters counters;

	gpupart_counters_get(&counters);
	return counters.device_launches;
}

static bool begin(struct program *p)
{
	images_make();
	return tap_ok(!attach("cuda:0") && !program_start(p, 0), "attached: %s",
		      gpupart_error(gp));
}

static void modules(void)
{
	P one, two, driver_fill;
	struct program p;
	U64 memory;

	if (!begin(&p))
		return;
	tap_ok(!in_all(), "the check's own launches are not such");
	tap_ok(counted(module_of(&plain), "k") == 0, "a binary that does not launch");
	one = module_of(&launching);
	two = module_of(&launching);
	tap_ok(counted(one, "k") == 3, "a binary that launches kernels from the GPU");
	tap_ok(counted(module_of(&plain), "k") == 0, "one beside it that does not");
	tap_ok(counted(module_of(&graph), "k") == 3, "one that launches graphs from there");
	tap_ok(counted(module_of(text_launching), "parent") == 3, "PTX that launches");
	tap_ok(program_launch(&p, NULL, 1, 0) == 0 && !cuStreamSynchronize(NULL) &&
		       in_all() == 9, "PTX that does not");
	driver_fill = dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "cuMemsetD8_v2");
	tap_ok(!cuMemAlloc(&memory, 1 << 20) &&
		       !((CU (*)(U64, unsigned char, size_t))driver_fill)(memory, 0, 1 << 20) &&
		       in_all() == 9, "a fill is a kernel of the driver's own, and not counted");
	tap_ok(!cuModuleUnload(one) && counted(two, "k") == 3, "one goes, and the other counts");
	tap_ok(!cuModuleUnload(two) && in_all() == 12, "and goes");
	for (int i = 0; i < 500; i++) {
		one = module_of(&launching);
		if (!one || cuModuleUnload(one))
			break;
	}
	tap_ok(one && counted(module_of(&plain), "k") == 0,
	       "a plain one after 500 that came and went");
	tap_ok(counted(module_of(&launching), "k") == 3, "and one that launches");
}

/* The counter says what can be. The launches themselves are confined as any. */
static void confined(void)
{
	struct gpupart_counters before, after;
	struct gpupart_tpcset set;
	struct program p;
	P parent;

	if (!begin(&p))
		return;
	set = list("0-7");
	parent = module_of(&launching);
	tap_ok(!gpupart_process_set(gp, gpu, &set), "a set");
	gpupart_counters_get(&before);
	tap_ok(counted(parent, "gpupart_empty") == 3, "counted");
	gpupart_counters_get(&after);
	tap_ok(after.confined - before.confined == 3 && after.launches - before.launches == 3,
	       "and confined, each launch once");
}

static void loaded_before(void)
{
	struct program p;
	P early;

	images_make();
	if (!tap_ok(!gpupart_open(&gp) && !driver_open() && !program_start(&p, 0), "a program"))
		return;
	early = module_of(&launching);
	if (!tap_ok(!gpupart_attach(gp, "cuda:0", NULL, &gpu),
	    "attached late: %s", gpupart_error(gp)))
		return;
	tap_ok(counted(early, "k") == 0, "a module from before cannot be known");
	tap_ok(counted(module_of(&launching), "k") == 3, "one from after is");
}

/* A driver that does not tell of modules. */
static void not_told(void)
{
	struct program p;

	if (!begin(&p))
		return;
	tap_ok(counted(module_of(&launching), "k") == 0, "nothing is found, and the program runs");
}

/* What this process shows to others. */
static void shown(void)
{
	struct gpupart_process list[64];
	unsigned long long seen = 0;
	struct program p;
	int nr;

	if (!begin(&p))
		return;
	gpupart_process_publish(gp, "parent");
	tap_ok(counted(module_of(&launching), "k") == 3, "counted");
	nr = gpupart_process_list(gp, list, 64, sizeof(struct gpupart_process));
	for (int i = 0; i < nr && i < 64; i++)
		if (list[i].pid == getpid())
			seen = list[i].counters.device_launches;
	tap_ok(seen == 3, "others see it: %llu", seen);
}

static const struct scenario scenarios[] = {
	{ "modules", modules, "@e", { NULL }, NULL },
	{ "confined", confined, "@e", { NULL }, NULL },
	{ "loaded-before", loaded_before, "@e", { NULL }, NULL },
	{ "not-told", not_told, "@e", { "GPUPART_SIM_FAULTS=no-stream-events" }, NULL },
	{ "shown", shown, "@e", { NULL }, NULL },
};

int main(int argc, char **argv)
{
	return scenario_main(argc, argv, scenarios, sizeof(scenarios) / sizeof(scenarios[0]));
}
