// SPDX-License-Identifier: MIT
/*
 * callback.c with its insides, on a driver of this test's: who is called for what, and in which
 * order.
 */
#include <string.h>
#include "lib/driver/callback.c"
#include "tests/tap.h"

#define REFUSED	77	/* a function that this driver does not tell of */

static struct cuda_api api;
static bool enabled[DRIVER_MAX_CBID];
static driver_callback_fn callback;
static char seen[64];

static int enable(uint32_t on, uint32_t handle, int domain, int cbid)
{
	(void)handle;
	if (domain == DRIVER_DOMAIN_API && cbid == REFUSED && on)
		return CUDA_ERROR_INVALID_VALUE;
	if (domain == DRIVER_DOMAIN_API)
		enabled[cbid] = on;
	return 0;
}

int driver_subscribe(struct gpupart *gp, const struct cuda_api *cuda_api, driver_callback_fn fn,
		     struct driver_table *found)
{
	(void)gp;
	(void)cuda_api;
	callback = fn;
	found->enable = enable;
	return 0;
}

static int cbids(unsigned int n)
{
	return n < 3 ? 5 + (int)n : -1;
}

static int one_cbid(unsigned int n)
{
	return n ? -1 : 6;
}

static int refused_cbids(unsigned int n)
{
	return n == 0 ? REFUSED : n == 1 ? 8 : -1;
}

#define OBSERVER(letter) \
	static void call_##letter(int cbid, const struct cuda_call_params *params) \
	{ \
		(void)cbid; \
		(void)params; \
		strcat(seen, #letter); \
	} \
	static void resource_##letter(int cbid, const struct resource_params *params) \
	{ \
		(void)cbid; \
		(void)params; \
		strcat(seen, #letter); \
	}

OBSERVER(a)
OBSERVER(b)
OBSERVER(i)
OBSERVER(r)

static void launch_a(const struct launch_params *params)
{
	(void)params;
	strcat(seen, "launch");
}

static void quick_i(int cbid, const struct cuda_call_params *params)
{
	strcat(seen, "quick ");
	if (cbid != 7)
		driver_call(cbid, params);
}

static const struct driver_observer
	a = { .name = "a", .cbids = cbids, .call = call_a, .resource = resource_a,
	      .launch = launch_a },
	b = { .name = "b", .call = call_b, .resource = resource_b },
	inner = { .name = "inner", .inner = true, .own = true, .cbids = cbids, .call = call_i,
		  .resource = resource_i },
	refused = { .name = "refused", .cbids = refused_cbids, .call = call_r,
		    .resource = resource_r },
	first = { .name = "first", .first = true, .call = call_r },
	quick = { .name = "quick", .call = call_r, .quick = quick_i };

static const char *tell(int cbid, int site)
{
	int result = 0;
	struct cuda_call_params params = {
		.size = sizeof(params), .cbid = cbid, .site = site, .result = &result,
	};

	seen[0] = 0;
	callback(NULL, DRIVER_DOMAIN_API, cbid, &params);
	return seen;
}

static const char *tell_resource(uint32_t size)
{
	struct resource_params params = { .size = size };

	seen[0] = 0;
	callback(NULL, DRIVER_DOMAIN_RESOURCE, DRIVER_CTX_GOES, &params);
	return seen;
}

static void test_order(struct gpupart *gp)
{
	struct driver_table found;

	tap_ok(!driver_table_get(&found), "there is no table before the first observer");
	tap_ok(!driver_observe(gp, &api, &inner) && !driver_observe(gp, &api, &a) &&
	       !driver_observe(gp, &api, &b) && !driver_observe(gp, &api, &a),
	       "three observers, one of them registered twice");
	tap_ok(driver_table_get(&found) && found.enable == enable, "there is one now");
	tap_ok(enabled[5] && enabled[7] && !enabled[8], "what they watch is enabled, and no more");
	tap_ok(!strcmp(tell(6, CUDA_SITE_BEGIN), "ai"),
	       "a function is for those that watch it: %s", seen);
	tap_ok(!driver_watch(&b, one_cbid, true), "another watches it too");
	tap_ok(!strcmp(tell(6, CUDA_SITE_BEGIN), "abi"), "a begin: the inner one is last: %s",
	       seen);
	tap_ok(!strcmp(tell(6, CUDA_SITE_END), "iba"), "an end is in reverse order: %s", seen);
	tap_ok(!strcmp(tell_resource(sizeof(struct resource_params)), "abi"),
	       "resources are for all that look at them: %s", seen);
	tap_ok(!strcmp(tell_resource(8), ""), "parameters too small for any are not read");
}

static void test_own(void)
{
	tap_ok(!driver_own(true), "functions that are the library's own");
	tap_ok(!strcmp(tell(6, CUDA_SITE_BEGIN), "i"), "are for who asked for these: %s", seen);
	tap_ok(driver_own(false), "and no longer are");
}

static void test_stop(void)
{
	driver_watch(&b, one_cbid, false);
	tap_ok(!strcmp(tell(6, CUDA_SITE_BEGIN), "ai") && enabled[6],
	       "one watches no more, the others do");
	driver_watch(&a, one_cbid, false);
	driver_watch(&inner, one_cbid, false);
	tap_ok(!strcmp(tell(6, CUDA_SITE_BEGIN), "") && !enabled[6], "the last disables it");
}

static void test_refused(struct gpupart *gp)
{
	tap_ok(driver_observe(gp, &api, &first) == -EBUSY, "too late to be first: %s", gp->error);
	tap_ok(driver_observe(gp, &api, &refused) == -EOPNOTSUPP, "a driver without it: %s",
	       gp->error);
	tap_ok(!enabled[8] && !strcmp(tell(8, CUDA_SITE_BEGIN), "") &&
	       !strcmp(tell_resource(sizeof(struct resource_params)), "abi"),
	       "then nothing of it is left");
	tap_ok(driver_observe(gp, &api, &refused) == -EOPNOTSUPP, "and it is refused again");
}

static void test_parameters(void)
{
	struct cuda_call_params params = {
		.size = sizeof(params) - 8, .cbid = 5, .result = &(int){ 0 },
	};
	struct launch_params launch = { .size = sizeof(launch) };

	seen[0] = 0;
	callback(NULL, DRIVER_DOMAIN_API, 5, &params);
	params.size = sizeof(params);
	callback(NULL, DRIVER_DOMAIN_API, 7, &params);
	params.cbid = (uint32_t)-1;
	callback(NULL, DRIVER_DOMAIN_API, -1, &params);
	params.cbid = DRIVER_MAX_CBID;
	callback(NULL, DRIVER_DOMAIN_API, DRIVER_MAX_CBID, &params);
	callback(NULL, DRIVER_DOMAIN_API, 5, NULL);
	tap_ok(!seen[0], "parameters that are not a function's are not passed on");
	callback(NULL, DRIVER_DOMAIN_LAUNCH, CBID_TMD_BUILT, &launch);
	callback(NULL, DRIVER_DOMAIN_LAUNCH, CBID_TMD_BUILT + 1, &launch);
	callback(NULL, DRIVER_DOMAIN_LAUNCH, CBID_TMD_BUILT, NULL);
	tap_ok(!strcmp(seen, "launch"), "a launch is for its observer: %s", seen);
}

static void test_quick(struct gpupart *gp)
{
	tap_ok(!driver_observe(gp, &api, &quick), "one that counts instructions");
	tap_ok(!strcmp(tell(5, CUDA_SITE_BEGIN), "quick ai"), "is before all others: %s", seen);
	tap_ok(!strcmp(tell(7, CUDA_SITE_BEGIN), "quick "), "and may be the only one: %s", seen);
}

int main(void)
{
	struct gpupart *gp;

	if (gpupart_open(&gp))
		return 1;
	test_order(gp);
	test_own();
	test_stop();
	test_refused(gp);
	test_parameters();
	test_quick(gp);
	gpupart_close(gp);
	return tap_done();
}
