// SPDX-License-Identifier: MIT
/*
 * hook.c with its insides: which GPU a launch is on, where two GPUs' contexts share a
 * slot. The driver here is a few functions of this test.
 */
#include "../../lib/hook.c"
#include "tap.h"

static _Thread_local void *current_ctx;
static _Thread_local int current_device;

static cuda_result ctx_current(void **ctx)
{
	*ctx = current_ctx;
	return 0;
}

static cuda_result ctx_device(int *device)
{
	*device = current_device;
	return 0;
}

static struct cuda_api api = { .ctx_current = ctx_current, .ctx_device = ctx_device };
static struct control_gpu shared[2];
static struct gpupart_gpu on[2] = { { .shared = &shared[0] }, { .shared = &shared[1] } };
static void *ctx[2];
static atomic_bool stop;

/* Launches in its context, so that the slot is written again and again. */
static void *remembers(void *number)
{
	int device = (uintptr_t)number;

	current_ctx = ctx[device];
	current_device = device;
	while (!atomic_load(&stop))
		gpu_by_context(ctx[device]);
	return NULL;
}

int main(void)
{
	unsigned int wrong = 0, known = 0;
	pthread_t thread[2];

	cuda = &api;
	ctx[0] = (void *)0x7f0000000040;
	for (ctx[1] = (char *)ctx[0] + 64;
	     (uint32_t)((uintptr_t)ctx[1] >> 6) * 0x9e3779b1u >> 26 !=
	     (uint32_t)((uintptr_t)ctx[0] >> 6) * 0x9e3779b1u >> 26;
	     ctx[1] = (char *)ctx[1] + 64)
		;
	for (uintptr_t i = 0; i < 2; i++) {
		atomic_store(&by_device[i], &on[i]);
		pthread_create(&thread[i], NULL, remembers, (void *)i);
	}
	/* This thread has neither current: it knows them by what the others left. */
	for (unsigned int i = 0; i < 100000000; i++) {
		struct gpupart_gpu *gpu = gpu_by_context(ctx[i % 2]);

		known += gpu != NULL;
		wrong += gpu && gpu != &on[i % 2];
	}
	atomic_store(&stop, true);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	tap_ok(known, "contexts that share a slot are remembered (%u times)", known);
	tap_ok(!wrong, "and none as on the other's GPU (%u times)", wrong);
	return tap_done();
}
