/* SPDX-License-Identifier: MIT */
/*
 * What a program is told of a set's SMs where it asks the driver how many there are, or
 * what they hold. Must not know how a set becomes mask bits, nor how questions come here.
 */
#ifndef GPUPART_LIB_SMCOUNT_H
#define GPUPART_LIB_SMCOUNT_H

#include "cuda.h"
#include "scope.h"

/* What is asked: the driver's functions by the arguments that they have in common. */
enum smcount_question {
	SMCOUNT_ATTRIBUTE,
	SMCOUNT_GRID,			/* that fills the GPU */
	SMCOUNT_CLUSTERS,		/* that run at once */
	SMCOUNT_CLUSTER_SIZE,
	SMCOUNT_DEVICE_RESOURCE,
	SMCOUNT_CONTEXT_RESOURCE,
	SMCOUNT_GREEN_RESOURCE,		/* of a green context */
	SMCOUNT_AFFINITY,
};

/* From now on (or no more) for questions about @gpu. -EOPNOTSUPP with a sentence. */
int smcount_tell(struct gpupart *gp, struct gpupart_gpu *gpu, bool on);

/* How many SMs the limit and the process's set leave now. */
unsigned int smcount_now(const struct gpupart_gpu *gpu);

/*
 * Puts the set's answer where the driver has put its own. @args: the function's arguments
 * as the members of a structure, what is between them unknown; @ctx: the context that was
 * current. Calls the driver, which must not ask us again meanwhile.
 */
void smcount_answer(const struct cuda_api *cuda, enum smcount_question question,
		    const uint64_t *args, void *ctx);

#endif
