/* SPDX-License-Identifier: MIT */
/*
 * Proof on the GPU: what the groups of rows share. A row is a claim that is tested with
 * launches that record where they ran.
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
	struct gpupart_tpcset all;	/* what may be used: all TPCs, or a limit from outside */
	bool outer;			/* there is such a limit */
	bool disproven;	/* the mask bits are not those of the table: mask no more launches */
	void *stream[5];		/* by enum verify_stream */
	const struct verify_row *row;	/* the current row */
	char detail[512];
};

enum verify_stream {
	VERIFY_BLOCKING, VERIFY_NON_BLOCKING, VERIFY_PRIORITY,	/* created for this */
	VERIFY_LEGACY, VERIFY_PER_THREAD,			/* default streams */
};

struct verify_row {
	const char *name, *what;
	int (*run)(struct verify *v);	/* 1: the claim holds, 0: it does not, or -errno */
	unsigned int flags;
	enum verify_stream stream, other;	/* of a row about a stream */
};

#define NEEDS_STREAMS	1
#define NEEDS_CLUSTERS	2
#define NEEDS_ALL	4	/* makes launches that a limit from outside forbids */
#define NEEDS_THREE	8	/* TPCs */
#define NEEDS_UGPUS	16
#define NEEDS_COOPERATIVE 32
#define SLOW		64

/* The groups; each ends with a row without a name. */
extern const struct verify_row verify_rows_parts[], verify_rows_scopes[], verify_rows_vgpcs[],
	verify_rows_concurrent[];

/* What was measured, for the user. */
__attribute__((format(printf, 2, 3)))
void verify_detail(struct verify *v, const char *fmt, ...);

/*
 * Makes one launch: did exactly the SMs of @expected run? Returns 1, 0 with the detail set, or
 * a negative errno. @next (may be NULL) is the next-launch set for each try.
 */
int verify_ran_as(struct verify *v, struct probe_launch *launch,
		  const struct gpupart_tpcset *expected, const struct gpupart_tpcset *next);
/* The same with twice as many blocks as SMs, on @stream. */
int verify_ran(struct verify *v, void *stream, const struct gpupart_tpcset *expected,
	       const struct gpupart_tpcset *next);

/* One of three disjoint sets of what may be used: number @n of every three TPCs. */
struct gpupart_tpcset verify_third(const struct verify *v, unsigned int n);

#endif
