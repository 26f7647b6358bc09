/* SPDX-License-Identifier: MIT */
/* What stands behind --gpupart: read, and nothing else. */
#ifndef GPUPART_SLURM_OPTIONS_H
#define GPUPART_SLURM_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORDS_LEN 128	/* with its end: what is noted of a job has no more room */

struct words {
	unsigned int tpcs;	/* that Slurm counts: 1 .. 256 */
	bool gpcs;		/* whole GPCs alone */
	bool ugpu;		/* all in one uGPU */
	unsigned int cluster;	/* blocks of the largest cluster; 0 none */
	uint64_t memory;	/* bytes, whole MiB; 0: no quota */
	unsigned int wait;	/* seconds for TPCs that fit, once Slurm has begun the job */
};

/* 0, or -EINVAL with a sentence in @why that names the word, which is text on one line. */
int words_read(const char *text, struct words *words, char *why, size_t len);

#endif
