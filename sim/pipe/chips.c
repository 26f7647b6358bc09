// SPDX-License-Identifier: MIT
/*
 * The table of GPUs, with a row for each GPU. A scenario selects a GPU by its name. Sizes come
 * from CUDA's programming guide (technical specifications by compute capability) and from
 * NVIDIA's product pages. The source column of a row names the values that were measured.
 */
#include <string.h>
#include "sim/pipe/pipe.h"

/*
 * All chips have the host latencies of the H200. For all chips, the following values are
 * assumptions: the length of a time slice, the time of a switch between processes, and the
 * numbers of PBDMAs and channels.
 */
#define HOST_SIDE \
	.doorbell_ns = 600, .fetch_ns = 500, .frontend_ns = 500, .done_ns = 700, \
	.begin_ns = 190, .place_ps = 300, .copy_ns = 1500, .node_ns = 900, \
	.switch_ns = 100000, .slice_ns = 2000000, .pbdmas = 2, .channels = 32, .priorities = 6

static const struct pipe_chip chips[] = {
	{
		.name = "gtx1060", .title = "GeForce GTX 1060 3GB",
		.nr_gpcs = 2, .nr_tpcs = 9, .sms_per_tpc = 1, .nr_ugpus = 1,
		.quarters = 4, .warps = 16, .registers = 16384, .register_unit = 256,
		.shared = 98304, .shared_unit = 256, .block_shared = 49152,
		.blocks = 32, .block_threads = 1024,
		.mhz = 1708, .issue = 1, .latency = 6, .slots = 32, .copy_engines = 2,
		.sm_rate = 50000, .gpc_rate = 250000, .ugpu_rate = 500000, .dram_rate = 192000,
		.link_rate = 12000, .warp_rate = 6000, HOST_SIDE, .order = PIPE_ORDER_TPC,
		.source = "compute capability 6.1; 32 slots: the paper's figure 12",
	}, {
		.name = "p100", .title = "Tesla P100",
		.nr_gpcs = 6, .nr_tpcs = 28, .sms_per_tpc = 2, .nr_ugpus = 1,
		.quarters = 2, .warps = 32, .registers = 32768, .register_unit = 256,
		.shared = 65536, .shared_unit = 256, .block_shared = 49152,
		.blocks = 32, .block_threads = 1024,
		.mhz = 1480, .issue = 1, .latency = 6, .slots = 128, .copy_engines = 2,
		.sm_rate = 90000, .gpc_rate = 400000, .ugpu_rate = 2000000, .dram_rate = 732000,
		.link_rate = 12000, .warp_rate = 6000, HOST_SIDE, .order = PIPE_ORDER_TPC,
		.source = "compute capability 6.0",
	}, {
		.name = "titan-v", .title = "Titan V",
		.nr_gpcs = 6, .nr_tpcs = 40, .sms_per_tpc = 2, .nr_ugpus = 1,
		.quarters = 4, .warps = 16, .registers = 16384, .register_unit = 256,
		.shared = 98304, .shared_unit = 256, .blocks = 32, .block_threads = 1024,
		.mhz = 1455, .issue = 2, .latency = 4, .slots = 128, .copy_engines = 2,
		.sm_rate = 90000, .gpc_rate = 500000, .ugpu_rate = 2200000, .dram_rate = 652000,
		.link_rate = 12000, .warp_rate = 6000, HOST_SIDE, .order = PIPE_ORDER_TPC,
		.source = "compute capability 7.0",
	}, {
		.name = "rtx2080ti", .title = "GeForce RTX 2080 Ti",
		.nr_gpcs = 6, .nr_tpcs = 34, .sms_per_tpc = 2, .nr_ugpus = 1,
		.quarters = 4, .warps = 8, .registers = 16384, .register_unit = 256,
		.shared = 65536, .shared_unit = 256, .blocks = 16, .block_threads = 1024,
		.mhz = 1545, .issue = 2, .latency = 4, .slots = 128, .copy_engines = 2,
		.sm_rate = 90000, .gpc_rate = 450000, .ugpu_rate = 2000000, .dram_rate = 616000,
		.link_rate = 12000, .warp_rate = 6000, HOST_SIDE, .order = PIPE_ORDER_TPC,
		.source = "compute capability 7.5; a warp in 2 clocks: 16 FP32 lanes a quarter",
	}, {
		.name = "rtx3070", .title = "GeForce RTX 3070",
		.nr_gpcs = 6, .nr_tpcs = 23, .sms_per_tpc = 2, .nr_ugpus = 1,
		.quarters = 4, .warps = 12, .registers = 16384, .register_unit = 256,
		.shared = 102400, .shared_reserved = 1024, .shared_unit = 128, .blocks = 16,
		.block_threads = 1024,
		.mhz = 1725, .issue = 1, .latency = 4, .slots = 128, .copy_engines = 2,
		.sm_rate = 90000, .gpc_rate = 350000, .ugpu_rate = 1800000, .dram_rate = 448000,
		.link_rate = 24000, .warp_rate = 6000, HOST_SIDE, .order = PIPE_ORDER_TPC,
		.source = "compute capability 8.6",
	}, {
		.name = "a100", .title = "A100",
		.nr_gpcs = 7, .nr_tpcs = 54, .sms_per_tpc = 2, .nr_ugpus = 2,
		.quarters = 4, .warps = 16, .registers = 16384, .register_unit = 256,
		.shared = 167936, .shared_reserved = 1024, .shared_unit = 128, .blocks = 32,
		.block_threads = 1024,
		.mhz = 1410, .issue = 2, .latency = 4, .slots = 128, .copy_engines = 2,
		.sm_rate = 90000, .gpc_rate = 700000, .ugpu_rate = 2500000,
		.dram_rate = 1555000, .link_rate = 24000, .warp_rate = 6000, HOST_SIDE,
		.order = PIPE_ORDER_TPC, .source = "compute capability 8.0",
	}, {
		.name = "h200", .title = "H200",
		.nr_gpcs = 8, .nr_tpcs = 66, .sms_per_tpc = 2, .nr_ugpus = 2,
		.quarters = 4, .warps = 16, .registers = 16384, .register_unit = 256,
		.shared = 233472, .shared_reserved = 1024, .shared_unit = 128, .blocks = 32,
		.block_threads = 1024, .cluster = 16,
		.mhz = 1980, .issue = 1, .latency = 4, .slots = 128, .copy_engines = 3,
		.sm_rate = 240000, .gpc_rate = 1520000, .gpc_dram_rate = 1240000,
		.ugpu_rate = 4600000, .ugpu_dram_rate = 2790000,
		.dram_rate = 4750000, .link_rate = 55000, .warp_rate = 9000, HOST_SIDE,
		.order = PIPE_ORDER_VGPC, .sample = "sample:h200",
		.source = "measured: Documentation/results/h200-traces.md; slots: compute "
			  "capability 9.0; copy engines, link: assumed",
	},
};

const struct pipe_chip *pipe_chip_row(unsigned int i)
{
	return i < sizeof(chips) / sizeof(chips[0]) ? &chips[i] : NULL;
}

const struct pipe_chip *pipe_chip_find(const char *name)
{
	for (unsigned int i = 0; pipe_chip_row(i); i++)
		if (!strcmp(chips[i].name, name))
			return &chips[i];
	return NULL;
}
