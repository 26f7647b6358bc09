/* SPDX-License-Identifier: MIT */
/*
 * Declarations that the groups of rows of `gpupart verify` share. A row is a claim about sets.
 * Launches test this claim. Each launch records the SMs on which it ran.
 */
#ifndef GPUPART_LIB_VERIFY_VERIFY_H
#define GPUPART_LIB_VERIFY_VERIFY_H

#include "lib/confine/probe.h"

struct verify {
	struct gpupart *gp;
	struct gpupart_gpu *gpu;
	struct probe *probe;
	const struct cuda_api *cuda;
	const struct gpupart_topology *topo;
	struct gpupart_tpcset all;	/* the usable TPCs, which are all TPCs or the TPCs of the
					 * outer limit */
	bool outer;			/* there is an outer limit */
	bool disproven;	/* the mask bits differ from the table, so no more launches are masked */
	void *stream[5];		/* indexed by enum verify_stream */
	const struct verify_row *row;	/* the current row */
	char detail[512];
};

enum verify_stream {
	VERIFY_BLOCKING, VERIFY_NON_BLOCKING, VERIFY_PRIORITY,	/* created for the rows */
	VERIFY_LEGACY, VERIFY_PER_THREAD,			/* default streams */
};

struct verify_row {
	const char *name, *what;
	int (*run)(struct verify *v);	/* returns 1 if the claim is true, 0 if it is
					 * false, or -errno */
	unsigned int flags;
	enum verify_stream stream, other;	/* the streams, for a row about streams */
	/*
	 * These members are for a row about parts of the GPU. They return the TPCs of part @i, and
	 * contain the noun for the parts.
	 */
	struct gpupart_tpcset (*part)(const struct gpupart_topology *topo, unsigned int i);
	const char *nouns;
};

#define NEEDS_STREAMS	1
#define NEEDS_CLUSTERS	2
#define NEEDS_ALL	4	/* the row makes launches that an outer limit forbids */
#define NEEDS_THREE	8	/* the row needs three TPCs */
#define NEEDS_UGPUS	16
#define NEEDS_COOPERATIVE 32
#define SLOW		64

/* The groups of rows. Each array ends with a row without a name. */
extern const struct verify_row verify_rows_parts[], verify_rows_scopes[], verify_rows_vgpcs[],
	verify_rows_concurrent[];

/* Sets the detail of the row. The detail is a text about the measurement, for the user. */
__attribute__((format(printf, 2, 3)))
void verify_detail(struct verify *v, const char *fmt, ...);

/*
 * Makes one launch and checks whether exactly the SMs of @expected ran blocks. If this is true,
 * returns 1. If it is false, sets the detail and returns 0. If the launch failed, returns -errno.
 * If @next is not NULL, it is a set for the next launch, and the function sets it before each try.
 */
int verify_ran_as(struct verify *v, struct probe_launch *launch,
		  const struct gpupart_tpcset *expected, const struct gpupart_tpcset *next);
/* Does the same as verify_ran_as(), but launches on @stream, with twice as many blocks as SMs. */
int verify_ran(struct verify *v, void *stream, const struct gpupart_tpcset *expected,
	       const struct gpupart_tpcset *next);

/* Returns set number @n of three disjoint sets. Each set has every third usable TPC. */
struct gpupart_tpcset verify_third(const struct verify *v, unsigned int n);

#endif
