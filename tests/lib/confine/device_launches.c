// SPDX-License-Identifier: MIT
/*
 * Tests launches of kernels that can launch other kernels from the GPU, on the simulated driver.
 * It tests which of these launches the library counts, and which it cannot count.
 */
#include <elf.h>
#include "tests/lib/scenario.h"

/* Binaries that consist of a header and names. The library reads no other parts. */
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
	/* The name is far from the start of the image, and is a part of a longer string. */
	strcpy(launching.names + 70000, ".text.__cudaCDP2LaunchDeviceV2");
	strcpy(graph.names + 70000, "cudaGraphLaunch");
	strcpy(plain.names + 70000, ".text.LaunchedByNobody");
}

/*
 * The children of this simulated kernel run on all SMs. Two modules have the kernel: one module
 * may launch children, and the other module may not.
 */
#define PARENT ".visible .entry gpupart_parent(.param .u64 out, .param .u32 spin_ns)\n"
static const char parent_launching[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
	PARENT "{ call cudaLaunchDeviceV2; ret; }\n";
static const char parent_plain[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
	PARENT "{ ret; }\n";

static CU (*cuLibraryLoadData)(P *, const void *, P, P, U, P, P, U);
static CU (*cuLibraryUnload)(P);
static CU (*cuLibraryGetKernel)(P *, P, const char *);
static CU (*cuKernelGetFunction)(P *, P);
static CU (*cuLaunchKernelEx)(const void *, P, P *, P *);
static CU (*cuStreamBeginCapture)(P, int);
static CU (*cuStreamEndCapture)(P, P *);
static CU (*cuGraphInstantiate)(P *, P, U64);
static CU (*cuGraphLaunch)(P, P);

static void libraries_open(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);

	*(void **)&cuLibraryLoadData = dlsym(lib, "cuLibraryLoadData");
	*(void **)&cuLibraryUnload = dlsym(lib, "cuLibraryUnload");
	*(void **)&cuLibraryGetKernel = dlsym(lib, "cuLibraryGetKernel");
	*(void **)&cuKernelGetFunction = dlsym(lib, "cuKernelGetFunction");
	*(void **)&cuLaunchKernelEx = dlsym(lib, "cuLaunchKernelEx");
	*(void **)&cuStreamBeginCapture = dlsym(lib, "cuStreamBeginCapture_v2");
	*(void **)&cuStreamEndCapture = dlsym(lib, "cuStreamEndCapture");
	*(void **)&cuGraphInstantiate = dlsym(lib, "cuGraphInstantiateWithFlags");
	*(void **)&cuGraphLaunch = dlsym(lib, "cuGraphLaunch");
}

static P module_of(const void *image)
{
	P module = NULL;

	return cuModuleLoadData(&module, image) ? NULL : module;
}

/*
 * Launches a kernel of @module three times. Returns the number of counted launches. If the
 * library did not see all launches, returns -1.
 */
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

/*
 * The counter counts launches of kernels that can launch other kernels. The library confines the
 * counted launches.
 */
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

/* Tests a driver that does not report modules. */
static void not_told(void)
{
	struct program p;

	if (!begin(&p))
		return;
	tap_ok(counted(module_of(&launching), "k") == 0, "nothing is found, and the program runs");
}

/* Reads the values that other processes see for this process. */
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

/* -------------------------------------------------------------------- refusals */

#define BLOCKS 132	/* one per SM */

/*
 * Launches @function, which is a parent kernel or a census kernel. Stores the TPCs of the
 * records. Returns the result of the launch.
 */
static CU launch_into(struct program *p, P function, struct gpupart_tpcset *seen)
{
	static struct { unsigned int smid, cluster; U64 start, end; } records[BLOCKS];
	const struct gpupart_topology *topo = gpupart_gpu_topology(gpu);
	P fill = dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "cuMemsetD8_v2");
	P args[] = { &p->out, &(U){ 1000 } };
	CU result;

	((CU (*)(U64, unsigned char, size_t))fill)(p->out, 0xff, sizeof(records));
	result = cuLaunchKernel(function, BLOCKS, 1, 1, 32, 1, 1, 0, NULL, args, NULL);
	memset(seen, 0, sizeof(*seen));
	if (cuStreamSynchronize(NULL) || cuMemcpyDtoH(records, p->out, sizeof(records)))
		return -1;
	for (int i = 0; i < BLOCKS; i++)
		if (records[i].smid != ~0u)
			gpupart_tpcset_add(seen, gpupart_topology_sm_tpc(topo, records[i].smid));
	return result;
}

static bool begin_in(struct program *p, const char *text)
{
	struct gpupart_tpcset set;

	if (!begin(p))
		return false;
	libraries_open();
	set = list(text);
	return tap_ok(!gpupart_process_set(gp, gpu, &set), "a set");
}

static P kernel_of(const void *image, P *library)
{
	P kernel = NULL;

	if (cuLibraryLoadData(library, image, NULL, NULL, 0, NULL, NULL, 0) ||
	    cuLibraryGetKernel(&kernel, *library, "gpupart_parent"))
		return NULL;
	return kernel;
}

/*
 * The children of these launches run on any TPC. So in the tests below, the library must refuse
 * the launches.
 */
static void escape(void)
{
	struct gpupart_tpcset seen;
	struct program p;
	P function, library, kernel;

	if (!begin_in(&p, "0-7"))
		return;
	tap_ok(!cuModuleGetFunction(&function, module_of(parent_launching), "gpupart_parent") &&
		       !launch_into(&p, function, &seen) && gpupart_tpcset_count(&seen) == 66,
	       "children of a confined kernel: on %u TPCs", gpupart_tpcset_count(&seen));
	kernel = kernel_of(parent_launching, &library);
	tap_ok(kernel && !launch_into(&p, kernel, &seen) && gpupart_tpcset_count(&seen) == 66,
	       "of a library's kernel: on %u", gpupart_tpcset_count(&seen));
	tap_ok(in_all() == 2, "both are counted: %llu", in_all());
}

/*
 * Creates a graph with one launch of the program's kernel. If the graph could not be created,
 * returns NULL.
 */
static P graph_of(struct program *p)
{
	P stream, captured, exec;

	return cuStreamCreate(&stream, 1) || cuStreamBeginCapture(stream, 2) ||
			       program_launch(p, stream, 4, 0) ||
			       cuStreamEndCapture(stream, &captured) ||
			       cuGraphInstantiate(&exec, captured, 0) ?
		       NULL : exec;
}

static void refused(void)
{
	static const void *const images[] = { &launching, &graph, text_launching,
					      parent_launching };
	struct program p;
	P one, library;
	CU result;

	if (!begin_in(&p, "0-7"))
		return;
	for (unsigned int i = 0; i < sizeof(images) / sizeof(images[0]); i++) {
		one = &p;
		tap_ok(cuModuleLoadData(&one, images[i]) == 800 && !one, "image %u is refused", i);
		library = &p;
		result = cuLibraryLoadData(&library, images[i], NULL, NULL, 0, NULL, NULL, 0);
		tap_ok(result == 800 && !library, "and as a library");
	}
	one = graph_of(&p);
	tap_ok(one && !cuGraphLaunch(one, NULL), "none of them is left: graphs are launched");
	one = module_of(&plain);
	tap_ok(one && counted(one, "k") == 0, "a module that cannot launch is loaded, and runs");
	tap_ok(!cuModuleUnload(one), "and goes");
	tap_ok(cuModuleLoadData(&one, "no image") == 200 && cuModuleUnload(&p) == 400 &&
		       cuLaunchKernel(&p, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL) == 400,
	       "other errors are as without");
	tap_ok(!program_launch(&p, NULL, 4, 0) && !cuStreamSynchronize(NULL) && !in_all(),
	       "the program's kernel still runs");
}

static CU launch_ex(struct program *p, P function)
{
	const struct {
		U grid[3], block[3], shared;
		P stream, attributes;
		U nr;
	} config = { { 1, 1, 1 }, { 32, 1, 1 }, 0, NULL, NULL, 0 };
	P args[] = { &p->out, &(U){ 0 } };

	return cuLaunchKernelEx(&config, function, args, NULL);
}

/* The first use of a library's kernel loads the library's code. */
static void refused_lazily(void)
{
	struct gpupart_tpcset seen, set;
	P kernel, function = NULL, library, first, exec;
	struct program p;

	if (!begin_in(&p, "0-7"))
		return;
	set = list("0-7");
	exec = graph_of(&p);
	tap_ok(exec && !cuGraphLaunch(exec, NULL), "a graph");
	kernel = kernel_of(parent_plain, &library);
	tap_ok(kernel && !launch_into(&p, kernel, &seen) && gpupart_tpcset_count(&seen) == 66,
	       "a library's kernel that cannot launch runs");
	kernel = kernel_of(parent_launching, &first);
	tap_ok(!!kernel, "one that can is not loaded yet");
	for (int i = 0; i < 2; i++)
		tap_ok(launch_into(&p, kernel, &seen) == 800 && !gpupart_tpcset_count(&seen),
		       "its launch is refused, and does not run");
	tap_ok(launch_ex(&p, kernel) == 800, "by cuLaunchKernelEx");
	tap_ok(!cuKernelGetFunction(&function, kernel) &&
		       launch_into(&p, function, &seen) == 800 && !gpupart_tpcset_count(&seen),
	       "and as a function");
	tap_ok(ran_on(&p, NULL, &set), "the program's own launches go on");
	tap_ok(cuGraphLaunch(exec, NULL) == 800, "graphs do not, while it is there");
	tap_ok(!cuLibraryUnload(first) && !cuGraphLaunch(exec, NULL), "without it they do");
	kernel = kernel_of(parent_launching, &library);
	tap_ok(kernel && cuKernelGetFunction(&function, kernel) == 800,
	       "asked for its function it is refused, too");
	tap_ok(launch_into(&p, function, &seen) == 800 && !gpupart_tpcset_count(&seen),
	       "and what was got all the same");
	tap_ok(!cuStreamSynchronize(NULL) && !in_all(), "none was launched");
}

static void refused_by_option(void)
{
	struct gpupart_attach_options options = { sizeof(options), .no_device_launch = 2 };
	struct gpupart_tpcset seen;
	struct program p;
	P function;
	P early, late;

	images_make();
	if (!tap_ok(!gpupart_open(&gp) && !driver_open() && !program_start(&p, 0), "a program"))
		return;
	early = module_of(parent_launching);
	tap_ok(gpupart_attach(gp, "cuda:0", &options, &gpu) == -EINVAL &&
		       strstr(gpupart_error(gp), "option no_device_launch must be 0 or 1, not 2"),
	       "2 is no value: %s", gpupart_error(gp));
	tap_ok(!gpupart_attach(gp, "cuda:0", NULL, &gpu), "attached");
	late = module_of(text_launching);
	tap_ok(late && counted(late, "parent") == 3, "loaded and counted");
	options.no_device_launch = 1;
	tap_ok(!gpupart_attach(gp, "cuda:0", &options, &gpu), "attached with the option");
	tap_ok(cuModuleLoadData(&p.ctx, parent_launching) == 800 && module_of(&plain),
	       "such modules are refused, others not");
	tap_ok(counted(late, "parent") == -3, "one from before that is known does not run");
	tap_ok(!cuModuleGetFunction(&function, early, "gpupart_parent") &&
		       !launch_into(&p, function, &seen), "one from before the attach does");
}

/* If a driver does not report modules, the library cannot prevent forbidden launches. */
static void refused_untold(void)
{
	int err = attach("cuda:0");

	tap_ok(err == -EOPNOTSUPP && strstr(gpupart_error(gp), "GPUPART_NO_DEVICE_LAUNCH=1"),
	       "no attach: %s", gpupart_error(gp));
}

#define REFUSE "GPUPART_NO_DEVICE_LAUNCH=1"
#define FAULT(name) "GPUPART_SIM_FAULTS=" name

static const struct scenario scenarios[] = {
	{ "modules", modules, "@e", { NULL }, NULL },
	{ "confined", confined, "@e", { NULL }, NULL },
	{ "loaded-before", loaded_before, "@e", { NULL }, NULL },
	{ "not-told", not_told, "@e", { "GPUPART_SIM_FAULTS=no-stream-events" }, NULL },
	{ "shown", shown, "@e", { NULL }, NULL },
	{ "escape", escape, "@e", { NULL }, NULL },
	{ "refused", refused, "@e", { REFUSE }, NULL },
	{ "refused-lazily", refused_lazily, "@e", { REFUSE, FAULT("lazy-libraries") }, NULL },
	{ "refused-by-option", refused_by_option, "@e", { NULL }, NULL },
	{ "escape-lazily", escape, "@e", { FAULT("lazy-libraries") }, NULL },
	{ "refused-untold", refused_untold, "@e", { REFUSE, FAULT("no-stream-events") }, NULL },
};

int main(int argc, char **argv)
{
	return scenario_main(argc, argv, scenarios, sizeof(scenarios) / sizeof(scenarios[0]));
}
