/* SPDX-License-Identifier: MIT */
/* Reads the value of --gpupart. */
#ifndef GPUPART_SLURM_OPTIONS_H
#define GPUPART_SLURM_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORDS_LEN 128	/* size of the longest text; a longer text does not fit into a grant */

struct words {
	unsigned int tpcs;	/* number of TPCs that Slurm counts, from 1 to 256 */
	bool gpcs;		/* only whole GPCs */
	bool ugpu;		/* all TPCs in one uGPU */
	unsigned int cluster;	/* blocks of the largest cluster, or 0 */
	uint64_t memory;	/* quota in bytes, a multiple of 1 MiB, or 0 */
	/* number of seconds that a task waits for TPCs after the start of the job */
	unsigned int wait;
};

/*
 * Returns 0, or -EINVAL with a reason in @why. The reason is one line and names the invalid part.
 */
int words_read(const char *text, struct words *words, char *why, size_t len);

#endif
