// SPDX-License-Identifier: MIT
/*
 * Tests internal functions of callback.c on a fake driver. For each function, it tests the called
 * observers and the order of the calls.
 */
#include <string.h>
#include "lib/driver/callback.c"
#include "tests/tap.h"

/* Driver functions with adjacent numbers. */
#define FIVE	CBID_cuCtxCreate
#define SIX	CBID_cuCtxDestroy
#define SEVEN	CBID_cuCtxDetach
#define EIGHT	CBID_cuInit
#define REFUSED	CBID_cuDeviceGetAttribute	/* a function that this driver does not report */

static struct cuda_api api;
static bool enabled[DRIVER_MAX_CBID];
static driver_callback_fn callback;
static char seen[64];
static unsigned int wrong_rows;

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

static const struct driver_function
	all[] = { { FIVE, 0, 0 }, { SEVEN, 0, 0 }, { SIX, 1, 0 }, { 0, 0, 0 } },
	one[] = { { SIX, 2, 0 }, { 0, 0, 0 } },
	not_all[] = { { REFUSED, 0, 0 }, { EIGHT, 0, 0 }, { 0, 0, 0 } };

#define OBSERVER(letter) \
	static void call_##letter(const struct driver_function *row, \
				  const struct cuda_call_params *params) \
	{ \
		wrong_rows += row->cbid != params->cbid; \
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

static void other_i(const struct driver_function *row, const struct cuda_call_params *params)
{
	wrong_rows += row->cbid != params->cbid;
	strcat(seen, "other");
}

#define ROWS(table) .rows = table, .row_size = sizeof((table)[0])

static const struct driver_observer
	a = { .name = "a", ROWS(all), .call = call_a, .resource = resource_a,
	      .launch = launch_a },
	b = { .name = "b", ROWS(one), .call = call_b, .resource = resource_b },
	inner = { .name = "inner", .inner = true, .own = true, ROWS(all),
		  .call = call_i, .other = other_i, .resource = resource_i },
	refused = { .name = "refused", ROWS(not_all), .call = call_r,
		    .resource = resource_r },
	first = { .name = "first", .first = true, .call = call_r };

static const char *tell_named(int cbid, int site, const char *name)
{
	int result = 0;
	struct cuda_call_params params = {
		.size = sizeof(params), .cbid = cbid, .site = site, .result = &result,
		.name = name,
	};

	seen[0] = 0;
	callback(NULL, DRIVER_DOMAIN_API, cbid, &params);
	return seen;
}

static const char *tell(int cbid, int site)
{
	return tell_named(cbid, site, driver_function_name(cbid));
}

static const char *tell_resource(uint32_t size)
{
	struct resource_params params = { .size = size };

	seen[0] = 0;
	callback(NULL, DRIVER_DOMAIN_RESOURCE, DRIVER_CTX_DESTROYED, &params);
	return seen;
}

static void test_order(struct gpupart *gp)
{
	struct driver_table found;

	tap_ok(!driver_table_get(&found), "there is no table before the first observer");
	tap_ok(!driver_observe(gp, &api, &inner) && !driver_observe(gp, &api, &a) &&
	       !driver_observe(gp, &api, &b) && !driver_observe(gp, &api, &a),
	       "three observers, one of them registered twice");
	tap_ok(!enabled[SIX] && !driver_watch(&inner, 1, true) && !driver_watch(&a, 1, true) &&
	       enabled[SIX], "another group of functions is watched when it is asked for");
	tap_ok(driver_table_get(&found) && found.enable == enable, "there is one now");
	tap_ok(enabled[FIVE] && enabled[SEVEN] && !enabled[EIGHT],
	       "what they watch is enabled, and no more");
	tap_ok(!strcmp(tell(SIX, CUDA_SITE_BEGIN), "ai"),
	       "a function is for those that watch it: %s", seen);
	tap_ok(!driver_watch(&b, 2, true), "another watches it too");
	tap_ok(!strcmp(tell(SIX, CUDA_SITE_BEGIN), "abi"), "a begin: the inner one is last: %s",
	       seen);
	tap_ok(!strcmp(tell(SIX, CUDA_SITE_END), "iba"), "an end is in reverse order: %s", seen);
	tap_ok(!strcmp(tell_resource(sizeof(struct resource_params)), "abi"),
	       "resources are for all that look at them: %s", seen);
	tap_ok(!strcmp(tell_resource(8), ""), "parameters too small for any are not read");
}

static void test_own(void)
{
	tap_ok(!driver_own(true), "functions that are the library's own");
	tap_ok(!strcmp(tell(SIX, CUDA_SITE_BEGIN), "i"), "are for who asked for these: %s", seen);
	tap_ok(driver_own(false), "and no longer are");
}

static void test_stop(void)
{
	driver_watch(&b, 2, false);
	tap_ok(!strcmp(tell(SIX, CUDA_SITE_BEGIN), "ai") && enabled[SIX],
	       "one watches no more, the others do");
	driver_watch(&a, 1, false);
	driver_watch(&inner, 1, false);
	tap_ok(!strcmp(tell(SIX, CUDA_SITE_BEGIN), "") && !enabled[SIX], "the last disables it");
}

static void test_refused(struct gpupart *gp)
{
	tap_ok(driver_observe(gp, &api, &first) == -EBUSY, "too late to be first: %s", gp->error);
	tap_ok(driver_observe(gp, &api, &refused) == -EOPNOTSUPP, "a driver without it: %s",
	       gp->error);
	tap_ok(!enabled[EIGHT] && !strcmp(tell(EIGHT, CUDA_SITE_BEGIN), "") &&
	       !strcmp(tell_resource(sizeof(struct resource_params)), "abi"),
	       "then nothing of it is left");
	tap_ok(driver_observe(gp, &api, &refused) == -EOPNOTSUPP, "and it is refused again");
}

static void test_parameters(void)
{
	struct cuda_call_params params = {
		.size = sizeof(params) - 8, .cbid = FIVE, .result = &(int){ 0 },
	};
	struct launch_params launch = { .size = sizeof(launch) };

	seen[0] = 0;
	callback(NULL, DRIVER_DOMAIN_API, FIVE, &params);
	params.size = sizeof(params);
	callback(NULL, DRIVER_DOMAIN_API, SEVEN, &params);
	params.cbid = (uint32_t)-1;
	callback(NULL, DRIVER_DOMAIN_API, -1, &params);
	params.cbid = DRIVER_MAX_CBID;
	callback(NULL, DRIVER_DOMAIN_API, DRIVER_MAX_CBID, &params);
	callback(NULL, DRIVER_DOMAIN_API, FIVE, NULL);
	tap_ok(!seen[0], "parameters that are not a function's are not passed on");
	callback(NULL, DRIVER_DOMAIN_LAUNCH, CBID_TMD_BUILT, &launch);
	callback(NULL, DRIVER_DOMAIN_LAUNCH, CBID_TMD_BUILT + 1, &launch);
	callback(NULL, DRIVER_DOMAIN_LAUNCH, CBID_TMD_BUILT, NULL);
	tap_ok(!strcmp(seen, "launch"), "a launch is for its observer: %s", seen);
}

/* A driver may use a known number for a different function. */
static void test_names(void)
{
	tap_ok(!strcmp(tell_named(FIVE, CUDA_SITE_BEGIN, "cuOther"), "other"),
	       "another function is for those alone that want to know: %s", seen);
	tap_ok(!strcmp(tell_named(FIVE, CUDA_SITE_BEGIN, NULL), "other"),
	       "so is one without a name: %s", seen);
	tap_ok(!strcmp(tell(FIVE, CUDA_SITE_BEGIN), "ai") && driver_function_seen(FIVE) &&
	       !driver_function_seen(SEVEN), "the right name is for all of them: %s", seen);
	tap_ok(!wrong_rows, "each was given its own row");
	tap_ok(!driver_function_name(0) && !driver_function_name(DRIVER_MAX_CBID),
	       "0 is no function");
	tap_ok(driver_watch(&first, 0, true), "what is not registered watches nothing");
}

/* "CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2 = 243," */
static void test_header(FILE *header)
{
	char line[256], name[128];
	int cbid, wrong = 0, found = 0;

	while (header && fgets(line, sizeof(line), header)) {
		if (sscanf(line, " CUPTI_DRIVER_TRACE_CBID_%127[^ =] = %d", name, &cbid) != 2 ||
		    !driver_function_name(cbid))
			continue;
		found++;
		wrong += !!strcmp(driver_function_name(cbid), name);
	}
	if (!header)
		tap_skip("no header of CUPTI's here");
	else
		tap_ok(found > 170 && !wrong, "%d numbers are those of CUPTI's header, %d are not",
		       found, wrong);
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
	test_names();
	test_header(fopen("/usr/local/cuda/include/cupti_driver_cbid.h", "re"));
	gpupart_close(gp);
	return tap_done();
}
