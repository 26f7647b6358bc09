/* SPDX-License-Identifier: MIT */
/* What stands behind --gpupart: read, and nothing else. */
#ifndef GPUPART_SLURM_WORDS_H
#define GPUPART_SLURM_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As long as what was asked for can be noted: gpupart.h, struct gpupart_grant. */
#define WORDS_MAX 128

struct words {
	unsigned int tpcs;	/* that Slurm counts: 1 .. 256 */
	bool gpcs;		/* whole GPCs alone */
	bool ugpu;		/* all in one uGPU */
	unsigned int cluster;	/* blocks of the largest cluster; 0 none */
	uint64_t memory;	/* bytes, whole MiB; 0: no quota */
	unsigned int wait;	/* seconds for TPCs that fit, once Slurm has begun the job */
};

/* 0, or -EINVAL with a sentence in @why that names the word. */
int words_read(const char *text, struct words *words, char *why, size_t len);

#endif
