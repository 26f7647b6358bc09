// SPDX-License-Identifier: MIT
/*
 * Tests launches on the simulated driver, without the library. It tests the SM of each block, the
 * content of TMDs, and launches that can never finish. Other tests rely on these facts.
 */
#include "tests/sim/cuda/program.h"

/* ------------------------------------------------------------------- placement */

/*
 * Tests a whole capture. It first uses all SMs, then all TPCs without one TPC, and then one TPC
 * at a time.
 */
static void every_tpc(const char *path)
{
	unsigned int bad_out = 0, bad_alone = 0, sm;
	struct shape shape = { .threads = 1024 };

	if (!read_truth(path))
		return;
	hook_start();
	begin_on(0);
	shape.blocks = 2 * truth.nr_sms;
	check(ran_exactly_on(&shape, every), "an unmasked census sees all %u SMs", truth.nr_sms);
	for (the_tpc = 0; the_tpc < truth.nr_tpcs; the_tpc++) {
		off_none();
		for (sm = 0; truth.tpc[sm] != (int)the_tpc; sm++)
			;
		off_bit(truth.bit[sm]);
		if (truth.nr_tpcs > 1)
			bad_out += !ran_exactly_on(&shape, not_the_tpc);
		off_unless(only_the_tpc);
		bad_alone += !ran_exactly_on(&shape, only_the_tpc);
	}
	check(!bad_out, "each measured bit removes its TPC and no other (%u of %u do not)",
	      bad_out, truth.nr_tpcs);
	check(!bad_alone, "each TPC alone: %u of %u do not run there alone", bad_alone,
	      truth.nr_tpcs);
	hook.on = false;
	check(ran_exactly_on(&shape, every), "and unmasked again all");
	check(cu.gpupart_sim_hung() == 0, "nothing hung");
}

static void refused(const char *arg)
{
	(void)arg;
	check(cu.cuInit(0) == CUDA_ERROR_NO_DEVICE, "cuInit says no device");
	check(cu.gpupart_sim_capture(0) == NULL, "and there is no capture");
}

/* For TPC 7, the driver uses a different mask bit than the capture. */
static void moved_bit(const char *path)
{
	struct shape shape = { .threads = 1024 };

	read_truth(path);
	hook_start();
	begin_on(0);
	shape.blocks = 2 * truth.nr_sms;
	the_tpc = 7;
	off_none();
	off_bit(truth.bit[14]);
	check(ran_exactly_on(&shape, every), "its old bit removes nothing");
	off_none();
	off_bit(100);
	check(ran_exactly_on(&shape, not_the_tpc), "bit 100 removes it");
}

/*
 * If the mask is not valid, mask bits have no effect. Mask bits without a TPC never have an
 * effect.
 */
static void mask_rules(const char *path)
{
	struct shape shape = { .threads = 1024 };
	unsigned int bit, sm;

	read_truth(path);
	hook_start();
	begin_on(0);
	shape.blocks = 2 * truth.nr_sms;
	off_none();
	for (bit = 0; bit < 128; bit++) {
		for (sm = 0; sm < truth.nr_sms && truth.bit[sm] != (int)bit; sm++)
			;
		if (sm == truth.nr_sms)
			off_bit(bit);
	}
	check(ran_exactly_on(&shape, every), "bits that belong to no TPC change nothing");
	off_unless(none);
	hook.not_valid = true;
	check(ran_exactly_on(&shape, every), "nor does any bit while the mask is not valid");
	hook.not_valid = false;
	off_none();
	hook.spoil = true;
	TRY(launch(&shape, 0));
	check(cu.cuCtxSynchronize() == CUDA_ERROR_LAUNCH_FAILED,
	      "a callback that changes the grid fails the launch");
}

/* ------------------------------------------------------------------------ hangs */

static void hangs(const char *which)
{
	static struct record records[MAX_BLOCKS];
	struct shape shape = { .blocks = 4, .threads = 1024 };
	CUmodule module_40;
	CUdeviceptr out, spare;
	bool hang = true;

	read_truth(BOARD_B);
	hook_start();
	begin_on(0);
	TRY(cu.cuFuncSetAttribute(f_cluster, CU_FUNCTION_NON_PORTABLE_CLUSTER, 1));
	TRY(cu.cuFuncSetAttribute(f_census, CU_FUNCTION_MAX_DYNAMIC_SHARED, 100 * 1024));
	off_unless(none);
	the_tpc = 5;
	if (!strcmp(which, "all bits")) {
		memset(hook.off, 0xff, sizeof(hook.off));
	} else if (!strcmp(which, "one TPC left")) {
		off_unless(only_the_tpc);
		hang = false;
	} else if (!strcmp(which, "cluster of 4 on singletons")) {
		off_unless(only_singletons);
		shape.cluster = 4;
	} else if (!strcmp(which, "cluster of 2 on singletons")) {
		off_unless(only_singletons);
		shape.cluster = 2;
		hang = false;
	} else if (!strncmp(which, "cluster of 16", 13)) {
		off_unless(only_vgpc_0);	/* 8 SMs, each with room for two such blocks */
		shape.cluster = shape.blocks = 16;
		shape.function = f_cluster;
		if (strstr(which, "load balancing")) {
			shape.policy = CU_CLUSTER_POLICY_LOAD_BALANCING;
			hang = false;
		}
	} else if (!strncmp(which, "cooperative", 11)) {
		off_unless(only_the_tpc);
		shape.cooperative = true;
		if (strstr(which, "fits"))
			hang = false;
		if (strstr(which, "by shared"))	/* two blocks of 101 KiB fit on an SM */
			shape.threads = 32, shape.shared = 100 * 1024;
		if (strstr(which, "by registers")) {	/* 16 blocks of 3 warps fit on an SM */
			TRY(cu.cuModuleLoadData(&module_40, ptx_40_registers));
			TRY(cu.cuModuleGetFunction(&shape.function, module_40, "gpupart_census"));
			shape.threads = 96;
			shape.blocks = 32;
		}
		if (strstr(which, "by blocks")) {
			shape.threads = 32;
			shape.blocks = 64;
		}
		if (strstr(which, "cluster"))
			shape.cluster = 2;
		shape.blocks += hang * (shape.cluster ? 2 : 1);
	} else if (strcmp(which, "all TPCs")) {
		check(false, "no such case");
	}
	if (!hang) {
		check(run(&shape, records) == CUDA_SUCCESS, "finishes");
		check(cu.gpupart_sim_hung() == 0, "nothing counted");
		return;
	}
	check(run(&shape, records) == CUDA_ERROR_LAUNCH_TIMEOUT, "the wait says 702");
	check(cu.gpupart_sim_hung() == 1, "one launch counted, not %d", cu.gpupart_sim_hung());
	check(cu.cuCtxSynchronize() == CUDA_ERROR_LAUNCH_TIMEOUT, "every later wait says 702");
	hook.on = false;
	check(run(&shape, records) == CUDA_ERROR_LAUNCH_TIMEOUT && cu.gpupart_sim_hung() == 1,
	      "a good launch after it does not mend it and is not counted");
	/* Device memory is host memory, so all earlier work with this memory must have ended. */
	TRY(cu.cuMemAlloc_v2(&out, 24));
	memset((void *)(uintptr_t)out, 0x77, 24);
	TRY(launch(&(struct shape){ .blocks = 1, .threads = 32 }, out));
	TRY(cu.cuMemAlloc_v2(&spare, 1));
	cu.cuMemFree_v2(spare);		/* runs all queued work */
	check(*(uint32_t *)(uintptr_t)out == 0x77777777, "and does not run");
}

/* --------------------------------------------------------------------- clusters */

static unsigned int find_root(const unsigned int *parent, unsigned int sm)
{
	while (parent[sm] != sm)
		sm = parent[sm];
	return sm;
}

static void clusters(const char *path)
{
	static struct record records[MAX_BLOCKS];
	struct shape shape = { .threads = 1024, .cluster = 2 };
	unsigned int i, sm, parent[MAX_SMS], bad = 0, shared = 0, lone = 0, together, other;
	unsigned int on_sm[MAX_SMS];
	uint32_t words[4];

	read_truth(path);
	hook_start();
	begin_on(0);
	TRY(cu.cuFuncSetAttribute(f_cluster, CU_FUNCTION_NON_PORTABLE_CLUSTER, 1));
	shape.function = f_cluster;
	shape.blocks = 6 * truth.nr_sms;
	for (sm = 0; sm < truth.nr_sms; sm++)
		parent[sm] = sm;
	check(run(&shape, records) == 0 && count(records, shape.blocks, on_sm), "clusters of 2");
	for (sm = 0; sm < truth.nr_sms; sm++)
		lone += !on_sm[sm];
	check(!lone, "take all SMs (%u left out)", lone);
	for (i = 0; i < shape.blocks; i++) {
		other = i - i % 2;
		bad += records[i].cluster != i / 2;
		bad += truth.vgpc[records[i].smid] != truth.vgpc[records[other].smid];
		shared += i != other && records[i].smid == records[other].smid;
		parent[find_root(parent, records[i].smid)] =
			find_root(parent, records[other].smid);
	}
	check(!bad, "stay inside one virtual GPC and know their number (%u do not)", bad);
	check(!shared, "one block an SM (%u share)", shared);
	memcpy(words, hook.tmd + 304, sizeof(words));
	check(!(hook.tmd[3] & 0x80) && !words[0] && !words[3], "the driver masks nothing");

	shape.cluster = 3;
	TRY(run(&shape, records));
	check(!(hook.tmd[3] & 0x80), "nor with clusters of 3");
	shape.cluster = 4;
	shape.blocks = 64;
	check(run(&shape, records) == 0 && count(records, 64, on_sm), "clusters of 4");
	memcpy(words, hook.tmd + 304, sizeof(words));
	check(hook.tmd[3] & 0x80 && words[0] == 0 && words[1] == 0 && words[2] == 0xffffff00 &&
		words[3] == 0xffffffff,
	      "the driver's own mask is as measured: %08x %08x", words[2], words[3]);
	for (bad = 0, sm = 0; sm < truth.nr_sms; sm++)
		bad += only_singletons(sm) && on_sm[sm];
	check(!bad, "and keeps them off the singletons");
	shape.policy = CU_CLUSTER_POLICY_LOAD_BALANCING;
	TRY(run(&shape, records));
	memcpy(words, hook.tmd + 304, sizeof(words));
	check(!(hook.tmd[3] & 0x80) && !words[3] && !(hook.tmd[275] & 0x80),
	      "not with load balancing");
	shape.policy = CU_CLUSTER_POLICY_SPREAD;
	TRY(run(&shape, records));
	check(!(hook.tmd[3] & 0x80) && hook.tmd[275] & 0x80, "spreading asked for: no mask");

	shape.policy = CU_CLUSTER_POLICY_DEFAULT;
	shape.cluster = 16;
	shape.blocks = 20 * 16;
	TRY(run(&shape, records));
	together = at_once(records, shape.blocks, 16);
	check(together == 14, "14 clusters of 16 fit at once, as measured; here %u", together);
	TRY(cu.cuFuncSetAttribute(f_cluster, CU_FUNCTION_NON_PORTABLE_CLUSTER, 0));
	check(launch(&shape, 0) == CUDA_ERROR_INVALID_CLUSTER_SIZE, "16 is not portable");
	shape.cluster = 3;
	check(launch(&shape, 0) == CUDA_ERROR_INVALID_CLUSTER_SIZE, "320 blocks by 3");
}

/*
 * Tests a grid in three dimensions. Every block must run one time. Its cluster must have the
 * number that CUDA defines.
 */
static void three_dimensions(const char *arg)
{
	unsigned int gx = 6, gy = 4, gz = 3, x, y, z, bad = 0, i;
	struct cu_launch_attribute attribute = { .id = CU_LAUNCH_CLUSTER_DIMENSION };
	struct cu_launch_config config = { gx, gy, gz, 32, 2, 2, 0, NULL, &attribute, 1 };
	struct record records[72];
	uint32_t spin = 10;
	CUdeviceptr out;
	void *params[] = { &out, &spin };

	(void)arg;
	hook_start();
	begin_on(0);
	attribute.value.cluster.x = 2;
	attribute.value.cluster.y = 2;
	attribute.value.cluster.z = 1;
	TRY(cu.cuMemAlloc_v2(&out, sizeof(records)));
	TRY(cu.cuMemsetD8_v2(out, 0xff, sizeof(records)));
	TRY(cu.cuLaunchKernelEx(&config, f_cluster, params, NULL));
	TRY(cu.cuMemcpyDtoH_v2(records, out, sizeof(records)));
	for (i = 0, z = 0; z < gz; z++)
		for (y = 0; y < gy; y++)
			for (x = 0; x < gx; x++, i++)
				bad += records[i].cluster != x / 2 + 3 * (y / 2) + 6 * z;
	check(!bad, "%u of 72 blocks have the wrong cluster", bad);
	check(hook.tmd[128] == 3 && hook.tmd[132] == 2 && hook.tmd[136] == 3 &&
		hook.tmd[268] == 2 && hook.tmd[269] == 2 && hook.tmd[270] == 1 &&
		hook.tmd[144] == 32 && hook.tmd[146] == 2 && hook.tmd[148] == 2,
	      "the TMD counts clusters, their size and threads");
}

/* --------------------------------------------------------------------- attributes */

/* The attributes of a real GPU of this type, by CUDA's attribute numbers. */
static void attributes(const char *arg)
{
	static const struct {
		int attribute, value;
	} device[] = {
		{ 1, 1024 }, { 2, 1024 }, { 3, 1024 }, { 4, 64 }, { 5, INT32_MAX }, { 6, 65535 },
		{ 7, 65535 }, { 8, 49152 }, { 9, 65536 }, { 10, 32 }, { 11, INT32_MAX },
		{ 12, 65536 }, { 13, 1000000 }, { 16, 132 }, { 31, 1 }, { 34, 0 }, { 39, 2048 },
		{ 41, 1 }, { 50, 0 }, { 75, 9 }, { 76, 0 }, { 82, 65536 }, { 95, 1 }, { 106, 32 },
		{ 111, 1024 }, { 120, 1 },
	}, function[] = {
		{ 0, 1024 }, { 2, 0 }, { 3, 0 }, { 5, 90 }, { 6, 90 }, { 9, -1 }, { 11, 0 },
		{ 14, 0 },
	};
	int value;

	(void)arg;
	begin_on(0);
	for (size_t i = 0; i < sizeof(device) / sizeof(device[0]); i++)
		check(cu.cuDeviceGetAttribute(&value, device[i].attribute, 0) == 0 &&
		      value == device[i].value, "attribute %d of the GPU: %d",
		      device[i].attribute, value);
	for (size_t i = 0; i < sizeof(function) / sizeof(function[0]); i++)
		check(cu.cuFuncGetAttribute(&value, function[i].attribute, f_census) == 0 &&
		      value == function[i].value, "attribute %d of a function: %d",
		      function[i].attribute, value);
	check(cu.cuFuncGetAttribute(&value, 99, f_census) == 1, "one that is none");
	check(cu.cuFuncGetAttribute(NULL, 0, f_census) == 1, "told nowhere");
}

/* -------------------------------------------------------------------- TMD bytes */

static unsigned int tmd_field(unsigned int high, unsigned int low)
{
	unsigned int value = 0, bit;

	for (bit = high + 1; bit-- > low; )
		value = value * 2 + (hook.tmd[bit / 8] >> bit % 8 & 1);
	return value;
}

static void tmd_bytes(const char *arg)
{
	struct shape shape = { .blocks = 8, .threads = 96, .shared = 1000 };
	static struct record records[MAX_BLOCKS];
	CUdeviceptr memory;
	int registers;

	(void)arg;
	hook_start();
	begin_on(0);
	TRY(cu.cuFuncGetAttribute(&registers, CU_FUNCTION_REGISTERS, f_census));
	TRY(run(&shape, records));
	check(hook.params[0] % (1ull << 32) == 88, "params say 88 bytes");
	check(hook.params[1] == (uintptr_t)ctx && hook.params[2] == (uintptr_t)module &&
		hook.params[3] == (uintptr_t)f_census, "context, module, function");
	check(hook.tmd[72] == 0x40, "version 0x40");
	check(tmd_field(25, 23) == 2, "type 2");
	check(tmd_field(1055, 1024) == 8 && tmd_field(1071, 1056) == 1 &&
		tmd_field(1103, 1088) == 1, "grid");
	check(tmd_field(1167, 1152) == 96, "threads");
	check(tmd_field(601, 584) == 2048, "shared memory %u", tmd_field(601, 584));
	check(tmd_field(1208, 1200) == (unsigned int)registers, "registers");
	check(!tmd_field(31, 31) && !tmd_field(2463, 2432) && !tmd_field(2559, 2528), "no mask");
	shape.cooperative = true;
	TRY(run(&shape, records));
	check(tmd_field(25, 23) == 4 && tmd_field(1055, 1024) == 1 && hook.tmd[276] == 8 &&
		hook.tmd[278] == 1 && hook.tmd[280] == 1, "cooperative: type 4, blocks at 276");
	shape.cluster = 2;
	TRY(run(&shape, records));
	check(tmd_field(25, 23) == 5 && tmd_field(1055, 1024) == 1 && hook.tmd[276] == 4 &&
		hook.tmd[268] == 2, "both: type 5, clusters at 276");
	shape.cooperative = false;
	TRY(run(&shape, records));
	check(tmd_field(25, 23) == 3 && tmd_field(1055, 1024) == 4 && hook.tmd[276] == 0 &&
		hook.tmd[268] == 2 && hook.tmd[269] == 1 && hook.tmd[275] & 0x80,
	      "cluster: type 3, clusters in the grid, spread");
	TRY(cu.cuLaunchKernel(f_other, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
	check(tmd_field(601, 584) == 3200, "static shared memory is found: %u of 2048 + 4 + 1024",
	      tmd_field(601, 584));
	TRY(cu.cuMemAlloc_v2(&memory, 1 << 20));
	hook.built = 0;
	TRY(cu.cuMemsetD8_v2(memory, 1, 65535));
	check(hook.built == 0, "a small cuMemset is no launch");
	TRY(cu.cuMemsetD8_v2(memory, 1, 65536));
	check(hook.built == 1 && hook.params[2] != (uintptr_t)module && hook.params[2] &&
		tmd_field(601, 584) == 0 && tmd_field(25, 23) == 2,
	      "a large one is, of a module never seen");
	TRY(cu.cuMemcpyDtoDAsync_v2(memory + (1 << 19), memory, 65536, NULL));
	check(hook.built == 2, "a large copy too");
	check(hook.uploaded == hook.built + 5, "cbid 2 follows each cbid 1");
}

/* ------------------------------------------------------------------ cooperative */

static void cooperative(const char *arg)
{
	static struct record records[MAX_BLOCKS];
	struct shape shape = { .threads = 1024, .cooperative = true };
	unsigned int i, later, nr;
	CUdeviceptr out, out2;
	CUstream stream;
	uint32_t spin = 500;
	void *params[] = { &out, &spin };

	(void)arg;
	read_truth(BOARD_B);
	hook_start();
	begin_on(0);
	nr = shape.blocks = 2 * truth.nr_sms;
	TRY(run(&shape, records));
	later = nr - at_once(records, nr, 1);
	check(!later, "%u of %u blocks start when others have ended", later, nr);
	shape.blocks++;
	check(launch(&shape, 0) == CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "one more: 720");
	check(cu.cuLaunchCooperativeKernel(f_census, nr + 1, 1, 1, 1024, 1, 1, 0, NULL, params) ==
		CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, "the older entry point agrees");

	/*
	 * A kernel occupies the SMs of a cooperative grid. The grid waits for the end of this
	 * kernel. Then all blocks of the grid start at the same time.
	 */
	TRY(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	TRY(cu.cuMemAlloc_v2(&out, nr * sizeof(*records)));
	TRY(cu.cuMemAlloc_v2(&out2, sizeof(*records)));
	TRY(launch(&(struct shape){ .blocks = 1, .threads = 32, .stream = stream,
				    .value = 5000 }, out2));
	TRY(cu.cuLaunchCooperativeKernel(f_census, nr, 1, 1, 1024, 1, 1, 0, NULL, params));
	TRY(cu.cuCtxSynchronize());
	TRY(cu.cuMemcpyDtoH_v2(records, out, nr * sizeof(*records)));
	TRY(cu.cuMemcpyDtoH_v2(records + nr, out2, sizeof(*records)));
	for (later = nr - at_once(records, nr, 1), i = 0; i < nr; i++)
		later += records[i].start < records[nr].end;
	check(!later, "waits for another kernel, then starts whole (%u do not)", later);
}

/* -------------------------------------------------------------------- occupancy */

static void occupancy(const char *arg)
{
	static const struct {
		int threads, shared, blocks;
	} row[] = {
		{ 1024, 0, 2 }, { 512, 0, 4 }, { 32, 0, 32 }, { 64, 0, 32 }, { 96, 0, 21 },
		{ 33, 0, 32 }, { 32, 100 * 1024, 2 }, { 32, 76800, 3 }, { 32, 232448, 1 },
		{ 1025, 0, 0 }, { 32, 232449, 0 },
	};
	static struct record records[MAX_BLOCKS];
	struct shape shape = { .blocks = 264, .threads = 32, .shared = 200 * 1024 };
	unsigned int i, together;
	CUmodule module_40;
	CUfunction f_40;
	int blocks;

	(void)arg;
	begin_on(0);
	TRY(cu.cuModuleLoadData(&module_40, ptx_40_registers));
	TRY(cu.cuModuleGetFunction(&f_40, module_40, "gpupart_census"));
	TRY(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f_40, 96, 0));
	check(blocks == 16, "40 registers, 96 threads: %d, not 16", blocks);
	TRY(cu.cuFuncSetAttribute(f_census, CU_FUNCTION_MAX_DYNAMIC_SHARED, shape.shared));
	TRY(run(&shape, records));
	together = at_once(records, shape.blocks, 1);
	check(together == 132, "of blocks with 200 KiB one an SM runs: %u at once", together);
	for (i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		TRY(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f_census,
								   row[i].threads, row[i].shared));
		check(blocks == row[i].blocks, "%d threads, %d bytes: %d blocks, not %d",
		      row[i].threads, row[i].shared, row[i].blocks, blocks);
	}
}

/*
 * Tests every capture in @folder. If the TPCs of a capture do not fit into a mask of 128 bits,
 * the driver must refuse the capture.
 */
static void generated(const char *folder)
{
	char path[1024], env_text[1100];
	const char *env[] = { env_text, NULL };
	struct dirent *entry;
	DIR *dir = opendir(folder);
	unsigned int nr = 0, sm, wide;

	for (; dir && (entry = readdir(dir)); ) {
		if (!strstr(entry->d_name, ".capture"))
			continue;
		nr++;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		snprintf(env_text, sizeof(env_text), "GPUPART_SIM=%s", path);
		report = stdout;
		read_truth_quietly(path);
		for (wide = 0, sm = 0; sm < truth.nr_sms; sm++)
			wide |= truth.bit[sm] > 127;
		if (wide)
			scenario(entry->d_name, refused, "", env, "above 127");
		else
			scenario(entry->d_name, every_tpc, path, env, NULL);
	}
	if (dir)
		closedir(dir);
	if (nr)
		tap_ok(nr >= 20, "%u generated captures", nr);
	else
		tap_skip("no generated captures in %s", folder);
}

int main(void)
{
	static const char *const boards[] = { "b", "c", "d", "e", "f", "g" };
	static const struct {
		const char *which, *words;
	} hang[] = {
		{ "all TPCs", "disables all TPCs" },
		{ "all bits", "disables all TPCs" },
		{ "one TPC left", NULL },
		{ "cluster of 4 on singletons", "disables all TPCs" },
		{ "cluster of 2 on singletons", NULL },
		{ "cluster of 16 in 8 SMs", "16 blocks fits into no virtual GPC" },
		{ "cluster of 16 in 8 SMs, load balancing", NULL },
		{ "cooperative, fits 2 SMs", NULL },
		{ "cooperative, one too many", "4 of its 5 blocks" },
		{ "cooperative, fits by shared memory", NULL },
		{ "cooperative, one too many by shared memory", "4 of its 5 blocks" },
		{ "cooperative, fits by registers", NULL },
		{ "cooperative, one too many by registers", "32 of its 33 blocks" },
		{ "cooperative, fits by blocks", NULL },
		{ "cooperative, one too many by blocks", "64 of its 65 blocks" },
		{ "cooperative clusters, fits", NULL },
		{ "cooperative clusters, one too many", "2 of its 3 clusters" },
	};
	const char *b[] = { "GPUPART_SIM=" BOARD_B, NULL };
	const char *e[] = { "GPUPART_SIM=" BOARD_E, NULL };
	const char *move[] = { b[0], "GPUPART_SIM_FAULTS=move-bit=7:100", NULL };
	const char *build = getenv("BUILD");
	char path[512], env_text[600];
	const char *env[] = { env_text, NULL };
	unsigned int i;

	for (i = 0; i < sizeof(boards) / sizeof(boards[0]); i++) {
		snprintf(path, sizeof(path), "tests/data/gh100-h200-%s/capture.txt", boards[i]);
		snprintf(env_text, sizeof(env_text), "GPUPART_SIM=%s", path);
		scenario(boards[i], every_tpc, path, env, NULL);
	}
	snprintf(env_text, sizeof(env_text), "GPUPART_SIM=tests/data/gh100-h200-a/capture.txt");
	scenario("no measured bits", refused, "", env, "TPC 0 has no measured bit");
	snprintf(env_text, sizeof(env_text), "GPUPART_SIM=no/such.capture");
	scenario("no capture", refused, "", env, "no/such.capture");
	scenario("GPUPART_SIM unset", refused, "", env + 1, "GPUPART_SIM is empty");
	snprintf(path, sizeof(path), "%s/tests/generated", build ? build : "build");
	generated(path);

	scenario("mask rules", mask_rules, BOARD_B, b, "changed byte 128");
	scenario("moved bit", moved_bit, BOARD_B, move, NULL);
	for (i = 0; i < sizeof(hang) / sizeof(hang[0]); i++)
		scenario(hang[i].which, hangs, hang[i].which, b, hang[i].words);
	scenario("clusters b", clusters, BOARD_B, b, NULL);
	scenario("clusters e", clusters, BOARD_E, e, NULL);
	scenario("three dimensions", three_dimensions, "", b, NULL);
	scenario("attributes", attributes, "", b, NULL);
	scenario("TMD bytes", tmd_bytes, "", b, NULL);
	scenario("cooperative", cooperative, "", b, NULL);
	scenario("occupancy", occupancy, "", b, NULL);
	return tap_done();
}
