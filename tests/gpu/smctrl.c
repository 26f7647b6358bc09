// SPDX-License-Identifier: MIT
/*
 * Tests libsmctrl's interface on a real GPU. With libsmctrl_validate_stream_mask(), it tests
 * every single TPC, ranges, each scope, and the precedence of the scopes. It prints the cost of
 * calls. The program is linked only with libsmctrl. It also runs on the simulated driver.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
#include <libsmctrl.h>
#include "tests/tap.h"

static int (*cuDevicePrimaryCtxRetain)(void **, int);
static int (*cuCtxSetCurrent)(void *);
static int (*cuStreamCreate)(void **, unsigned int);

static int driver_open(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);

	if (!lib)
		return -1;
	*(void **)&cuDevicePrimaryCtxRetain = dlsym(lib, "cuDevicePrimaryCtxRetain");
	*(void **)&cuCtxSetCurrent = dlsym(lib, "cuCtxSetCurrent");
	*(void **)&cuStreamCreate = dlsym(lib, "cuStreamCreate");
	return !cuDevicePrimaryCtxRetain || !cuCtxSetCurrent || !cuStreamCreate;
}

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static uint128_t range(unsigned int low, unsigned int end)
{
	uint128_t mask = 0;

	return libsmctrl_make_mask_ext(&mask, low, end) ? 0 : mask;
}

static bool is(void *stream, int low, int end)
{
	return !libsmctrl_validate_stream_mask(stream, low, end, false);
}

static void scopes(void *s, void *other, int nr)
{
	int first_64 = nr < 64 ? nr : 64;

	tap_ok(is(s, 3, 7) && is(NULL, 3, 7), "global, set before any call of CUDA");
	libsmctrl_set_global_mask(1);
	tap_ok(is(s, 1, first_64), "64 bits: TPCs 1-%d of %d", first_64 - 1, nr);
	libsmctrl_set_global_mask((uint128_t)0);
	tap_ok(is(s, 0, nr), "128 bits, none forbidden: all");
	libsmctrl_set_global_mask(range(nr - 2, nr));
	tap_ok(is(s, nr - 2, nr), "128 bits: the last two");
	tap_ok(!libsmctrl_set_stream_mask(s, ~0xffull) && is(s, 0, 8) && is(other, nr - 2, nr),
	       "a stream overrides global");
	libsmctrl_set_next_mask(range(nr - 1, nr));
	tap_ok(is(s, nr - 1, nr) && is(s, 0, 8), "next overrides both, once");
	tap_ok(!libsmctrl_set_stream_mask(NULL, ~0x30ull) && is(NULL, 4, 6) && is((void *)1, 4, 6),
	       "the legacy default stream");
	tap_ok(!libsmctrl_set_stream_mask((void *)2, ~0xc0ull) && is((void *)2, 6, 8),
	       "the per-thread default stream");
	tap_ok(libsmctrl_set_stream_mask_ext(s, ~(uint128_t)0) && is(s, 0, 8),
	       "a mask that leaves nothing changes nothing");
}

static void every_tpc(void *s, int nr)
{
	int bad = 0;

	for (int tpc = 0; tpc < nr; tpc++)
		bad += libsmctrl_set_stream_mask_ext(s, range(tpc, tpc + 1)) ||
		       !is(s, tpc, tpc + 1);
	tap_ok(!bad, "each of %d TPCs by itself: %d wrong", nr, bad);
	srand(1);
	bad = 0;
	for (int i = 0; i < 200; i++) {
		int low = rand() % nr, end = low + 1 + rand() % (nr - low);

		bad += libsmctrl_set_stream_mask_ext(s, range(low, end)) || !is(s, low, end);
	}
	tap_ok(!bad, "200 ranges: %d wrong", bad);
}

static void gpcs(void *s, int nr)
{
	uint128_t *masks, all = 0;
	uint32_t nr_gpcs = 0;
	bool good = !libsmctrl_get_gpc_info_ext(&nr_gpcs, &masks, 0);

	for (uint32_t gpc = 0; good && gpc < nr_gpcs; gpc++) {
		good = masks[gpc] && !(all & masks[gpc]);
		all |= masks[gpc];
	}
	tap_ok(good && all == ~range(0, nr), "%u GPCs have every TPC once", nr_gpcs);
	tap_ok(!libsmctrl_set_stream_mask_ext(s, 0) && is(s, 0, nr), "a stream with all again");
}

static void costs(void *s)
{
	enum { NR = 1000000 };
	double start = now_ns();

	for (int i = 0; i < NR; i++)
		libsmctrl_set_stream_mask(s, ~1ull << i % 8);
	printf("# a stream's mask: %.0f ns\n", (now_ns() - start) / NR);
	start = now_ns();
	for (int i = 0; i < NR; i++)
		libsmctrl_set_next_mask(~1ull << i % 8);
	printf("# the next mask: %.0f ns\n", (now_ns() - start) / NR);
	start = now_ns();
	for (int i = 0; i < NR; i++)
		libsmctrl_set_global_mask(~1ull << i % 8);
	printf("# the global mask: %.0f ns\n", (now_ns() - start) / NR);
}

int main(void)
{
	double start = now_ns();
	void *ctx, *s, *other;
	uint32_t nr = 0;

	libsmctrl_set_global_mask(~0x78ull);
	printf("# the first mask: %.1f ms\n", (now_ns() - start) / 1e6);
	if (!libsmctrl_is_init() || driver_open())
		return 77;
	if (!tap_ok(!libsmctrl_get_tpc_info_cuda(&nr, 0) && nr > 8 &&
			    !cuDevicePrimaryCtxRetain(&ctx, 0) && !cuCtxSetCurrent(ctx) &&
			    !cuStreamCreate(&s, 1) && !cuStreamCreate(&other, 0),
		    "a program on the first GPU"))
		return tap_done();
	scopes(s, other, nr);
	every_tpc(s, nr);
	gpcs(s, nr);
	costs(s);
	return tap_done();
}
