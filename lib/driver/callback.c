// SPDX-License-Identifier: MIT
/*
 * Subscribes to the driver's callbacks, and passes the callbacks to observers. Functions that
 * register observers take a lock. Code in a callback reads published data and takes no lock.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "lib/core/environment.h"
#include "lib/core/fork.h"
#include "lib/driver/callback.h"
#include "lib/driver/tools.h"
#include "lib/private.h"

#define CBID_TMD_BUILT	1

#define MAX_OBSERVERS	16	/* bits of wants[] */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FORK_RENEWS(lock);
static bool subscribed, released;
static atomic_bool unusable;	/* the launch callback is missing or has an unknown form */
static bool tools_wanted;	/* driver_tools_want() was called */
static int tools_result = -ENOENT;
static char tools_why[160] = "profilers were not requested";
static struct driver_table table;
static const struct cuda_api *cuda;

/*
 * The observers. At the start of a driver function, they are called in this order. Inner
 * observers are at the end of the array. All other observers are at the start.
 */
static _Atomic(const struct driver_observer *) observers[MAX_OBSERVERS];
/*
 * The index of wants[] is the number of a driver function. If observers[n] watches the function,
 * bit n is set. Then row_of[n] is the function's row in observers[n].
 */
static _Atomic uint16_t wants[DRIVER_MAX_CBID];
static _Atomic uint8_t row_of[MAX_OBSERVERS][DRIVER_MAX_CBID];
/*
 * The driver's name of each function. The library has checked these names. The driver's strings
 * never change.
 */
static _Atomic(const char *) names[DRIVER_MAX_CBID];

static void no_launch(const struct launch_params *params)
{
	(void)params;
}

static _Atomic(void (*)(const struct launch_params *)) on_launch = no_launch;

_Thread_local unsigned char driver_inside;
static _Thread_local int hidden;

bool driver_own(bool own)
{
	bool was = driver_inside;

	if (driver_inside != DRIVER_UNSEEN)
		driver_inside = own;
	return was;
}

void driver_hide(int by)
{
	hidden += by;
}

bool driver_is_own(void)
{
	return driver_inside || hidden;
}

static const struct driver_observer *observer_at(unsigned int n)
{
	return atomic_load_explicit(&observers[n], memory_order_acquire);
}

const char *driver_function_name(int cbid)
{
#define CBID(cbid, name) cbid,
#define NAME(cbid, name) #name "\0"
	static const uint16_t cbids[] = { DRIVER_FUNCTIONS(CBID) };
	static const char text[] = DRIVER_FUNCTIONS(NAME);
	const char *name = text;

	for (unsigned int i = 0; i < sizeof(cbids) / sizeof(cbids[0]); i++) {
		if (cbids[i] == cbid)
			return name;
		name += strlen(name) + 1;
	}
	return NULL;
}

bool driver_function_seen(int cbid)
{
	return atomic_load_explicit(&names[cbid], memory_order_relaxed);
}

static const struct driver_function *row_at(const struct driver_observer *observer,
					    unsigned int row)
{
	return (const void *)((const char *)observer->rows + row * observer->row_size);
}

static inline void call_one(unsigned int n, int cbid, const struct cuda_call_params *params)
{
	const struct driver_observer *observer = observer_at(n);

	/* If this is NULL, the observer was refused. */
	if (observer && driver_inside <= observer->own)
		observer->call(row_at(observer, row_of[n][cbid]), params);
}

/*
 * This function is not inline. Otherwise a function with one observer would have to save more
 * registers on the stack.
 */
static __attribute__((noinline, cold)) void call_all(unsigned int left, int cbid,
					       const struct cuda_call_params *params)
{
	unsigned int n;

	if (params->site == CUDA_SITE_BEGIN)
		for (; left; left &= left - 1)
			call_one(__builtin_ctz(left), cbid, params);
	else
		for (; left; left &= ~(1u << n)) {
			n = 31 - __builtin_clz(left);
			call_one(n, cbid, params);
		}
}

static void on_call(int cbid, const struct cuda_call_params *params);

/* Called when the driver reports a function with a new name. Handles the observers in @left. */
static __attribute__((noinline, cold)) void on_new_name(unsigned int left, int cbid,
						  const struct cuda_call_params *params)
{
	const char *name = driver_function_name(cbid);
	const struct driver_observer *observer;

	/*
	 * If the driver reports a number without a name, no row of an observer matches this
	 * number.
	 */
	if (params->name && (!name || !strcmp(params->name, name))) {
		atomic_store_explicit(&names[cbid], params->name, memory_order_relaxed);
		on_call(cbid, params);
		return;
	}
	for (unsigned int n; left; left &= left - 1) {
		n = __builtin_ctz(left);
		observer = observer_at(n);
		if (observer && observer->other && driver_inside <= observer->own)
			observer->other(row_at(observer, row_of[n][cbid]), params);
	}
}

/*
 * This function is not inline, and calls of it are tail calls. Otherwise a launch would have to
 * save more registers on the stack.
 */
static __attribute__((noinline)) void on_call(int cbid, const struct cuda_call_params *params)
{
	unsigned int left;

	if (params->size < sizeof(*params) || params->cbid != (uint32_t)cbid ||
	    !params->result || (uint32_t)cbid >= DRIVER_MAX_CBID)
		return;
	left = atomic_load_explicit(&wants[cbid], memory_order_acquire);
	if (!left)
		return;
	if (!params->name ||
	    params->name != atomic_load_explicit(&names[cbid], memory_order_relaxed))
		on_new_name(left, cbid, params);
	else if (left & (left - 1))
		call_all(left, cbid, params);
	else
		call_one(__builtin_ctz(left), cbid, params);
}

static __attribute__((noinline)) void on_resource(int cbid, const struct resource_params *params)
{
	if (!RESOURCE_HAS(params, ctx))
		return;
	for (unsigned int n = 0; n < MAX_OBSERVERS; n++) {
		const struct driver_observer *observer = observer_at(n);

		if (observer && observer->resource)
			observer->resource(cbid, params);
	}
}

/*
 * The driver's callback. An allocation from a memory pool can take as little as 0.2 us.
 * Additional instructions in this function make such an allocation measurably slower.
 */
static void on_callback(void *user, int domain, int cbid, const void *params)
{
	(void)user;
	if (__builtin_expect(!params, 0))
		return;
	if (__builtin_expect(domain == DRIVER_DOMAIN_LAUNCH && cbid == CBID_TMD_BUILT, 1))
		atomic_load_explicit(&on_launch, memory_order_relaxed)(params);
	else if (domain == DRIVER_DOMAIN_API)
		on_call(cbid, params);
	else if (domain == DRIVER_DOMAIN_RESOURCE)
		on_resource(cbid, params);
}

static int enable_none(uint32_t on, uint32_t handle, int domain, int cbid)
{
	(void)on;
	(void)handle;
	(void)domain;
	(void)cbid;
	return CUDA_ERROR_NOT_INITIALIZED;
}

/*
 * Stops all observation in the child of a fork. CUDA does not work in the child. If another
 * thread of the parent was in the driver, the driver's locks stay locked in the child.
 */
static void in_child(void)
{
	table.enable = enable_none;
}

/*
 * Returns the index of @observer. If @observer is not registered, returns -1. The caller holds
 * the lock.
 */
static int number_of(const struct driver_observer *observer)
{
	for (int n = 0; n < MAX_OBSERVERS; n++)
		if (observer_at(n) == observer)
			return n;
	return -1;
}

/*
 * Returns the index for a new observer. If no index is free, returns -1. The caller holds the
 * lock.
 */
static int free_place(const struct driver_observer *observer)
{
	for (int i = 0; i < MAX_OBSERVERS; i++) {
		int n = observer->inner ? MAX_OBSERVERS - 1 - i : i;

		if (!observer_at(n))
			return n;
	}
	return -1;
}

/* Starts or stops watching one row. The caller holds the lock. */
static int watch_one(unsigned int number, int cbid, unsigned int row, bool on)
{
	uint16_t bit = 1u << number, others = ~bit;

	row_of[number][cbid] = row;
	if (on)
		others = atomic_fetch_or(&wants[cbid], bit);
	else
		others &= atomic_fetch_and(&wants[cbid], others);
	return !on && others ? 0 : table.enable(on, table.handle, DRIVER_DOMAIN_API, cbid);
}

static int watch(const struct driver_observer *observer, unsigned int group, bool on)
{
	int number = number_of(observer), first = -1, cbid, result;
	unsigned int i;

	if (number < 0)
		return CUDA_ERROR_NOT_INITIALIZED;
	for (i = 0; (cbid = row_at(observer, i)->cbid); i++) {
		if (group != DRIVER_ALL && row_at(observer, i)->group != group)
			continue;
		result = watch_one(number, cbid, i, on);
		if (first < 0)
			first = result;
	}
	for (cbid = 1; group == DRIVER_ALL && cbid < DRIVER_MAX_CBID; cbid++)
		if (!(atomic_load(&wants[cbid]) & 1u << number) == on)
			watch_one(number, cbid, i, on);
	return first < 0 ? 0 : first;
}

/* The caller holds the lock. */
static int subscribe_only(struct gpupart *gp, const struct cuda_api *api,
			  driver_callback_fn callback, struct driver_table *into)
{
	int err;

	if (released)
		return ctx_fail(gp, -ESHUTDOWN,
				"this process was detached and has missed later events, so it cannot attach again");
	err = driver_subscribe(gp, api, callback, into);
	if (err == -EOPNOTSUPP)
		driver_callback_unusable();
	return err;
}

/* The caller holds the lock. */
static int subscribe(struct gpupart *gp, const struct cuda_api *api,
		     const struct driver_observer *observer)
{
	bool wanted;
	int err;

	if (subscribed)
		return observer->first ? ctx_fail(gp, -EBUSY, "this process is attached already") :
					 0;
	wanted = tools_wanted || environment_read().profile;
	err = subscribe_only(gp, api, wanted ? tools_callback(on_callback, driver_is_own) :
				      on_callback, &table);
	if (err)
		return err;
	/* If profilers cannot subscribe, launches are still confined. */
	if (wanted) {
		tools_result = tools_let_in(gp, &table);
		snprintf(tools_why, sizeof(tools_why), "%s",
			 tools_result && gp ? gpupart_error(gp) : "");
	}
	pthread_atfork(NULL, NULL, in_child);
	cuda = api;
	subscribed = true;
	return 0;
}

/* The caller holds the lock. */
static int add(struct gpupart *gp, const struct driver_observer *observer)
{
	int n = free_place(observer), result;

	if (n < 0)
		return ctx_fail(
			gp, -ENOSPC,
			"the observer \"%s\" cannot be added: there are already %d observers",
			observer->name, MAX_OBSERVERS);
	if (observer->launch) {
		result = table.enable(1, table.handle, DRIVER_DOMAIN_LAUNCH, CBID_TMD_BUILT);
		if (result) {
			driver_callback_unusable();
			return ctx_fail(gp, -EOPNOTSUPP,
					"this driver refused to enable the launch callback: %s",
					cuda_strerror(cuda, result));
		}
		atomic_store(&on_launch, observer->launch);
	}
	atomic_store_explicit(&observers[n], observer, memory_order_release);
	result = observer->rows ? watch(observer, 0, true) : 0;
	if (result) {
		watch(observer, 0, false);
		atomic_store(&observers[n], NULL);
		return ctx_fail(gp, -EOPNOTSUPP, "this driver does not report calls: %s",
				cuda_strerror(cuda, result));
	}
	return 0;
}

__attribute__((cold))
int driver_observe(struct gpupart *gp, const struct cuda_api *api,
		   const struct driver_observer *observer)
{
	int err;

	fork_guard();
	FORK_HOLD(&lock);
	if (number_of(observer) >= 0)
		return 0;
	err = subscribe(gp, api, observer);
	return err ? err : add(gp, observer);
}

__attribute__((cold))
int driver_watch(const struct driver_observer *observer, unsigned int group, bool on)
{
	FORK_HOLD(&lock);
	return watch(observer, group, on);
}

int driver_watch_resource(enum driver_resource kind)
{
	FORK_HOLD(&lock);
	return table.enable(1, table.handle, DRIVER_DOMAIN_RESOURCE, kind);
}

__attribute__((cold))
int driver_free(struct gpupart *gp, const struct cuda_api *api)
{
	struct driver_table tried = { .bytes = 0 };
	int err, result;

	fork_guard();
	FORK_HOLD(&lock);
	err = subscribed ? 0 : subscribe_only(gp, api, on_callback, &tried);
	if (subscribed || err)
		return err;
	result = tried.unsubscribe(tried.handle);
	return result ? ctx_fail(gp, -EIO, "this driver did not end the subscription: %s",
				 cuda_strerror(api, result)) : 0;
}

__attribute__((cold))
int driver_release(struct gpupart *gp)
{
	int err, result;

	fork_guard();
	FORK_HOLD(&lock);
	for (int n = 0; n < MAX_OBSERVERS; n++)
		if (observer_at(n) && observer_at(n)->stays)
			return ctx_fail(gp, -EBUSY,
					"the observer \"%s\" needs the driver's callbacks",
					observer_at(n)->name);
	err = tools_shut_out(gp);
	if (err)
		return err;
	result = subscribed ? table.unsubscribe(table.handle) : 0;
	if (result)
		return ctx_fail(gp, -EIO, "this driver did not end the subscription: %s",
				cuda_strerror(cuda, result));
	atomic_store(&on_launch, no_launch);
	for (int n = 0; n < MAX_OBSERVERS; n++)
		atomic_store(&observers[n], NULL);
	/*
	 * Some observers may still watch functions. These observers must not use the ended
	 * subscription.
	 */
	table.enable = enable_none;
	released = true;
	subscribed = false;
	return 0;
}

bool driver_table_get(struct driver_table *found)
{
	FORK_HOLD(&lock);
	if (subscribed)
		*found = table;
	return subscribed;
}

void driver_callback_unusable(void)
{
	atomic_store(&unusable, true);
}

bool gpupart_callback_unusable(void)
{
	return atomic_load(&unusable);
}

int driver_tools_want(struct gpupart *gp)
{
	fork_guard();
	FORK_HOLD(&lock);
	tools_wanted = !subscribed || tools_result != -ENOENT;
	return tools_wanted ? 0 : ctx_fail(gp, -EBUSY,
			"this process is already attached, and profilers cannot be added later");
}

int driver_tools(struct gpupart *gp)
{
	FORK_HOLD(&lock);
	return tools_result ? ctx_fail(gp, tools_result, "%s", tools_why) : 0;
}
