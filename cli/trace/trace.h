/* SPDX-License-Identifier: MIT */
/* Blocks on SMs over time: what is launched, what its blocks recorded, how it is drawn. */
#ifndef GPUPART_CLI_TRACE_TRACE_H
#define GPUPART_CLI_TRACE_TRACE_H

#include "cli/draw/picture.h"

#define TRACE_MAX_SETS		PICTURE_SHORT_TAGS	/* a letter each */
#define TRACE_MAX_BLOCKS	20000	/* of all launches together: what a picture can show */
#define TRACE_MAX_NS		10000000
#define TRACE_MAX_ITERATIONS	1000000

/* One block. Times are %globaltimer's less the first start of all. */
struct trace_block {
	unsigned int set, launch, block, smid, tpc;
	uint64_t start_ns, end_ns;
};

struct trace {
	struct gpupart_gpu *gpu;
	struct picture picture;		/* the topology, and the sets as its tenants */
	unsigned int nr_launches;	/* into each set */
	unsigned int threads;		/* of a block */
	bool counted;			/* work is multiply-adds, else ns */
	uint32_t work;
	unsigned int blocks[TRACE_MAX_SETS];	/* of a launch into that set */

	/* What trace_run() found; records belongs to the caller, free() it. */
	unsigned int nr_records;
	struct trace_block *records;	/* by set, launch, block */
	uint64_t first_ns;		/* %globaltimer of the first start */
	uint64_t span_ns;		/* to the last end */
	unsigned int nr_outside;	/* blocks that ran outside of their set */
};

/*
 * Launches into every set, each from a stream of its own, and waits. An SM holds one
 * block at a time where the GPU has shared memory to see to that. 0, or -errno with a
 * sentence in @why.
 */
int trace_run(struct trace *trace, char *why, size_t len);

/* As SVG, rows of SMs; in 80 columns of text, rows of TPCs. */
void trace_svg(struct out *out, const struct trace *trace);
void trace_text(struct out *out, const struct trace *trace);

#endif
