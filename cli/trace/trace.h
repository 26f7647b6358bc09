/* SPDX-License-Identifier: MIT */
/* Traces blocks on SMs over time: what to launch, what blocks recorded, and drawing it. */
#ifndef GPUPART_CLI_TRACE_TRACE_H
#define GPUPART_CLI_TRACE_TRACE_H

#include "cli/draw/picture.h"

#define TRACE_MAX_SETS		PICTURE_SHORT_TAGS	/* each is named by one letter */
#define TRACE_MAX_BLOCKS	20000	/* of all launches together: the limit of a picture */
#define TRACE_MAX_NS		10000000
#define TRACE_MAX_ITERATIONS	1000000

/* One block. Times are %globaltimer relative to the first start. */
struct trace_block {
	unsigned int set, launch, block, smid, tpc;
	uint64_t start_ns, end_ns;
};

struct trace {
	struct gpupart_gpu *gpu;
	struct picture picture;		/* the topology, and the sets as its tenants */
	unsigned int nr_launches;	/* into each set */
	unsigned int threads;		/* in a block */
	bool counted;			/* work is multiply-adds; else ns */
	uint32_t work;
	unsigned int blocks[TRACE_MAX_SETS];	/* in a launch into that set */

	/* Results of trace_run(). The caller frees records with free(). */
	unsigned int nr_records;
	struct trace_block *records;	/* ordered by set, launch, block */
	uint64_t first_ns;		/* %globaltimer of the first start */
	uint64_t span_ns;		/* time from it to the last end */
	unsigned int nr_outside;	/* blocks that ran outside their set */
};

/*
 * Launches into every set, each from its own stream, and waits for the end. An SM runs one
 * block at a time if the GPU has enough shared memory to enforce that. Returns 0, or -errno
 * with a message in @why.
 */
int trace_run(struct trace *trace, char *why, size_t len);

/* As SVG with rows of SMs; as text of 80 columns with rows of TPCs. */
void trace_svg(struct out *out, const struct trace *trace);
void trace_text(struct out *out, const struct trace *trace);

#endif
