// SPDX-License-Identifier: MIT
/*
 * Tests internal functions of device.c, which find the GPU of a launch. Contexts of two GPUs may
 * share a table entry, and there may be more contexts than entries. A few functions of this test
 * replace the driver.
 */
#include "lib/driver/device.c"
#include "tests/tap.h"

static _Thread_local void *current_ctx;
static _Thread_local int current_device;

static _Thread_local unsigned int asked;

static cuda_result ctx_current(void **ctx)
{
	asked++;
	*ctx = current_ctx;
	return 0;
}

static cuda_result ctx_device(int *device)
{
	*device = current_device;
	return 0;
}

static int untold_device = -1;	/* the driver does not report the PCI address of this device */

static cuda_result device_count(int *count)
{
	*count = 2;
	return 0;
}

static cuda_result device_pci(char *pci, int len, int device)
{
	snprintf(pci, len, "0000:0%d:00.0", device);
	return device == untold_device;
}

static cuda_result device_attr(int *value, int attr, int device)
{
	*value = attr + device;
	return 0;
}

static struct cuda_api api = {
	.ctx_current = ctx_current, .ctx_device = ctx_device, .device_count = device_count,
	.device_pci = device_pci, .device_attr = device_attr,
};
static struct driver_gpu on[2];
static void *ctx[2];
static atomic_bool stop;

/* Launches repeatedly in this context. Each launch overwrites the table entry. */
static void *remembers(void *number)
{
	int device = (uintptr_t)number;

	current_ctx = ctx[device];
	current_device = device;
	while (!atomic_load(&stop))
		gpu_by_context(ctx[device]);
	return NULL;
}

/* Searches upwards from @at. Returns the next context with the same table entries as @like. */
static void *same_place(void *at, const void *like)
{
	do
		at = (char *)at + 64;
	while (context_place(at, 0) != context_place(like, 0));
	return at;
}

static void crowd(void)
{
	void *crowd[NR_CONTEXT_PLACES + 1], *at = ctx[1];
	unsigned int known = 0;

	context_forget(ctx[0]);
	context_forget(ctx[1]);
	tap_ok(!gpu_by_context(ctx[0]) && !gpu_by_context(ctx[1]), "gone, neither is known");
	for (int i = 0; i < NR_CONTEXT_PLACES + 1; i++) {
		at = same_place(at, ctx[0]);
		crowd[i] = at;
		driver_context_on(at, i & 1);
		if (i == NR_CONTEXT_PLACES - 1)
			for (int c = 0; c <= i; c++)
				known += gpu_by_context(crowd[c]) == &on[c & 1];
	}
	tap_ok(known == NR_CONTEXT_PLACES, "%u contexts that share their places are known", known);
	tap_ok(gpu_by_context(crowd[NR_CONTEXT_PLACES]) == &on[NR_CONTEXT_PLACES & 1],
	       "of more the newest is");
	driver_context_on(crowd[3], 0);
	tap_ok(gpu_by_context(crowd[3]) == &on[0], "one on another device now is known there");
	context_forget(crowd[3]);
	tap_ok(!gpu_by_context(crowd[3]) && gpu_by_context(crowd[4]) == &on[0],
	       "and gone alone");
	driver_context_on(crowd[4], -1);
	driver_context_on(crowd[4], MAX_GPUS);
	tap_ok(gpu_by_context(crowd[4]) == &on[0], "a device that is none changes nothing");
}

/*
 * A second enumeration may have a different result, but the device of an attached GPU must not
 * change.
 */
static void learn(void)
{
	static struct gpupart_topology topo[2] = {
		{ .info.pci = "0000:00:00.0" }, { .info.pci = "0000:01:00.0" },
	};

	for (int i = 0; i < 2; i++) {
		on[i].topo = &topo[i];
		atomic_store(&by_device[i], NULL);
	}
	tap_ok(!driver_gpu_add(NULL, &on[0]) && driver_gpu_of_device(0) == &on[0] &&
		       !driver_gpu_of_device(1), "one of two devices is attached");
	tap_ok(!driver_gpu_of_launch(NULL), "a launch without a context is on none of them");
	untold_device = 0;
	tap_ok(!driver_gpu_add(NULL, &on[1]) && driver_gpu_of_device(1) == &on[1],
	       "the other is, too");
	tap_ok(driver_gpu_of_device(0) == &on[0], "and the first is not forgotten");
}

static void tell(int cbid, void *of)
{
	on_resource(cbid, &(struct resource_params){ .size = sizeof(struct resource_params),
						     .ctx = of });
}

/*
 * Checks that the library finds the right GPU for launches in the context @of. @of is current on
 * @device. Returns the number of calls of CUDA.
 */
static unsigned int launches(void *of, int device, const char *words)
{
	unsigned int right = 0;

	asked = 0;
	current_ctx = of;
	current_device = device;
	for (int i = 0; i < 100; i++)
		right += driver_gpu_of_launch(of) == &on[device];
	tap_ok(right == 100, "%s: its launches are on its GPU (%u of 100)", words, right);
	return asked;
}

/*
 * If the driver reports the creation and the destruction of a context, a launch in this context
 * needs no call of CUDA.
 */
static void told(void)
{
	void *made = same_place(ctx[1], ctx[0]), *odd = (char *)made + 8;
	unsigned int nr;

	tap_ok((nr = launches(made, 0, "one that was there before")) == 100,
	       "CUDA is asked at each (%u)", nr);
	tell(DRIVER_CTX_MADE, made);
	nr = launches(made, 0, "made, but CUDA does not tell of ends");
	tap_ok(nr == 100, "CUDA is asked at each (%u)", nr);
	atomic_store(&ends_reported, true);
	tell(DRIVER_CTX_MADE, made);
	tap_ok((nr = launches(made, 0, "a made one")) == 1, "CUDA is asked at the first (%u)", nr);
	current_ctx = NULL;
	tap_ok(driver_gpu_of_launch(made) == &on[0], "known where none is current");
	tell(DRIVER_CTX_DESTROYED, made);
	tap_ok(!driver_gpu_of_launch(made), "gone, it is not known any more");
	tell(DRIVER_CTX_MADE, made);
	tap_ok((nr = launches(made, 1, "another at its address")) == 1, "asked once (%u)", nr);
	tell(DRIVER_CTX_MADE, made);
	current_ctx = NULL;
	tap_ok(!driver_gpu_of_launch(made), "one whose predecessor's end was not told: not known");
	nr = launches(made, 0, "and then current");
	tap_ok(nr == 1, "asked once (%u)", nr);
	tell(DRIVER_CTX_MADE, odd);
	tap_ok((nr = launches(odd, 1, "at an odd address")) == 100, "asked at each (%u)", nr);
	tap_ok(driver_gpu_of_launch(made) == &on[0], "its neighbour's place is its own");
	tell(DRIVER_CTX_MADE, NULL);
	tap_ok(!driver_gpu_of_launch(NULL), "no context is on no GPU");
}

int main(void)
{
	unsigned int wrong = 0, known = 0;
	pthread_t thread[2];

	cuda = &api;
	ctx[0] = (void *)0x7f0000000040;
	ctx[1] = same_place(ctx[0], ctx[0]);
	for (uintptr_t i = 0; i < 2; i++) {
		atomic_store(&by_device[i], &on[i]);
		pthread_create(&thread[i], NULL, remembers, (void *)i);
	}
	/*
	 * This thread has no current context. So it finds both contexts by the table entries of
	 * other threads.
	 */
	for (unsigned int i = 0; i < 100000000; i++) {
		struct driver_gpu *gpu = gpu_by_context(ctx[i % 2]);

		known += gpu != NULL;
		wrong += gpu && gpu != &on[i % 2];
	}
	atomic_store(&stop, true);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	tap_ok(known, "contexts that share a place are remembered (%u times)", known);
	tap_ok(!wrong, "and none as on the other's GPU (%u times)", wrong);
	crowd();
	learn();
	told();
	return tap_done();
}
