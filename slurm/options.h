/* SPDX-License-Identifier: MIT */
/* Reads the value of --gpupart. */
#ifndef GPUPART_SLURM_OPTIONS_H
#define GPUPART_SLURM_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WORDS_LEN 128	/* size of the longest text; a grant has room for no more */

struct words {
	unsigned int tpcs;	/* number of TPCs, which Slurm counts: 1 to 256 */
	bool gpcs;		/* only whole GPCs */
	bool ugpu;		/* all TPCs in one uGPU */
	unsigned int cluster;	/* blocks of the largest cluster, or 0 */
	uint64_t memory;	/* quota in bytes, a multiple of 1 MiB, or 0 */
	unsigned int wait;	/* seconds that a task waits for TPCs after Slurm has started
				 * the job */
};

/* Returns 0, or -EINVAL with a reason in @why: one line that names the invalid part. */
int words_read(const char *text, struct words *words, char *why, size_t len);

#endif
