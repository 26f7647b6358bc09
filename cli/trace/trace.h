/* SPDX-License-Identifier: MIT */
/*
 * Traces blocks on SMs over time. Declares the launches, the records of the blocks, and the
 * drawing.
 */
#ifndef GPUPART_CLI_TRACE_TRACE_H
#define GPUPART_CLI_TRACE_TRACE_H

#include "cli/draw/picture.h"

#define TRACE_MAX_SETS		PICTURE_SHORT_TAGS	/* one letter for each set */
/* maximum number of blocks in all launches; a picture cannot show more blocks */
#define TRACE_MAX_BLOCKS	20000
#define TRACE_MAX_NS		10000000
#define TRACE_MAX_ITERATIONS	1000000

/* One block. The times of the block are values of %globaltimer relative to the first start. */
struct trace_block {
	unsigned int set, launch, block, smid, tpc;
	uint64_t start_ns, end_ns;
};

struct trace {
	struct gpupart_gpu *gpu;
	struct picture picture;		/* the topology, and the sets as its tenants */
	unsigned int nr_launches;	/* number of launches into each set */
	unsigned int threads;		/* number of threads in a block */
	bool counted;			/* true: @work is a number of multiply-adds; false: ns */
	uint32_t work;
	unsigned int blocks[TRACE_MAX_SETS];	/* number of blocks of a launch into each set */

	/* Results of trace_run(). The caller frees @records with free(). */
	unsigned int nr_records;
	struct trace_block *records;	/* ordered by set, launch, block */
	uint64_t first_ns;		/* %globaltimer of the first start */
	uint64_t span_ns;		/* time from the first start to the last end */
	unsigned int nr_outside;	/* number of blocks that ran outside their set */
};

/*
 * Makes launches into every set, and waits for their end. Each set has its own stream. If the GPU
 * has enough shared memory, an SM runs one block at a time. Returns 0, or -errno with a message in
 * @why.
 */
int trace_run(struct trace *trace, char *why, size_t len);

/*
 * trace_svg() draws an SVG with a row for each SM. The function trace_text() draws text of 80
 * columns with a row for each TPC.
 */
void trace_svg(struct out *out, const struct trace *trace);
void trace_text(struct out *out, const struct trace *trace);

#endif
