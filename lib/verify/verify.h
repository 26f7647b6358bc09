/* SPDX-License-Identifier: MIT */
/*
 * Proof on the GPU: what the groups of rows share. A row is a claim, tried with launches that
 * record where they ran.
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
	struct gpupart_tpcset all;	/* what may be used: all, or a limit from outside */
	bool outer;			/* there is such a limit */
	bool disproven;	/* the mask bits are not what the table says: mask nothing more */
	void *stream[5];		/* by enum verify_stream */
	const struct verify_row *row;	/* that is being tried */
	char detail[512];
};

enum verify_stream {
	VERIFY_BLOCKING, VERIFY_NON_BLOCKING, VERIFY_PRIORITY,	/* made for this */
	VERIFY_LEGACY, VERIFY_PER_THREAD,			/* default streams */
};

struct verify_row {
	const char *name, *what;
	int (*run)(struct verify *v);	/* 1 holds, 0 does not, or -errno */
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

/* The groups, each ended by a row without a name. */
extern const struct verify_row verify_rows_parts[], verify_rows_scopes[], verify_rows_vgpcs[],
	verify_rows_concurrent[];

/* What was seen, for a person. */
__attribute__((format(printf, 2, 3)))
void verify_detail(struct verify *v, const char *fmt, ...);

/*
 * One launch: did exactly the SMs of @expected run? 1 yes, 0 no with the detail set, or a
 * negative errno. @next is given to each try (may be NULL).
 */
int verify_ran_as(struct verify *v, struct probe_launch *launch,
		  const struct gpupart_tpcset *expected, const struct gpupart_tpcset *next);
/* The same of twice as many blocks as there are SMs, on @stream. */
int verify_ran(struct verify *v, void *stream, const struct gpupart_tpcset *expected,
	       const struct gpupart_tpcset *next);

/* Of three disjoint sets of what may be used, the @n'th: the n'th of each three TPCs. */
struct gpupart_tpcset verify_third(const struct verify *v, unsigned int n);

#endif
