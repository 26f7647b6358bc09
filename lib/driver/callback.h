/* SPDX-License-Identifier: MIT */
/*
 * The driver's callbacks: one subscription per process, and its observers. Callbacks may come
 * from any thread. An observer's @launch takes no lock and cannot fail.
 */
#ifndef GPUPART_LIB_DRIVER_CALLBACK_H
#define GPUPART_LIB_DRIVER_CALLBACK_H

#include "lib/driver/functions.h"
#include "lib/driver/table.h"

/* Parameters of a launch whose TMD is built: the first 40 bytes, which all known sizes have. */
struct launch_params {
	uint32_t size, pad;
	void *ctx;
	void *module;
	void *function;
	void *tmd;
};

/* Events of contexts, streams, modules and graphs. */
enum driver_resource {
	DRIVER_CTX_DESTROYED = 2,
	DRIVER_STREAM_MADE = 4,
	DRIVER_STREAM_DESTROYED = 5,
	DRIVER_MODULE_LOADED = 17,
	DRIVER_MODULE_GOES = 18,
	DRIVER_CTX_MADE = 24,
	DRIVER_GRAPH_GONE = 36,
	DRIVER_GRAPH_EXEC_MADE = 40,
	DRIVER_GRAPH_EXEC_GOES = 41,
};

struct resource_params {
	uint32_t size, pad;
	void *ctx;		/* for graphs: the graph */
	uint64_t object;	/* the object that a stream's handle points to; a module; a
				 * source graph */
	void *exec;
};

/* Whether the driver filled in @member, which has 8 bytes. */
#define RESOURCE_HAS(params, member) \
	((params)->size >= offsetof(struct resource_params, member) + 8)

#define DRIVER_MAX_CBID	1024

/* The beginning of each row in an observer's table of driver functions. */
struct driver_function {
	uint16_t cbid;		/* CBID_*; 0: the last row, for functions without a row */
	uint8_t group;		/* 0: watched from the start; else a group for driver_watch() */
	uint8_t kind;		/* for the observer's use */
};

/*
 * Observers are called in the order of registration, at the end of a function in reverse order.
 * Each is called for the functions that it watches, and for all resource events.
 */
struct driver_observer {
	const char *name;
	const struct driver_function *rows;	/* at most one row for each cbid; NULL: none */
	size_t row_size;
	bool first;			/* no other observer may be registered before it */
	bool stays;			/* the subscription cannot end while it is registered */
	/*
	 * It changes arguments: its begin comes after, and its end before, those of other
	 * observers.
	 */
	bool inner;
	bool own;			/* also call it for functions that the library itself
					 * calls */
	void (*launch)(const struct launch_params *params);	/* set in one observer at most */
	void (*call)(const struct driver_function *row, const struct cuda_call_params *params);
	/*
	 * Called instead of @call if the driver has another function at that number. NULL:
	 * ignore it.
	 */
	void (*other)(const struct driver_function *row, const struct cuda_call_params *params);
	void (*resource)(int cbid, const struct resource_params *params);
};

/*
 * Registers @observer, which must live for ever, and subscribes if necessary; further calls do
 * nothing. Works before cuInit. -EOPNOTSUPP: the error sentence says what the driver refused or
 * offered instead. -EBUSY: it must be the first, but is not. -ENOSPC.
 */
int driver_observe(struct gpupart *gp, const struct cuda_api *api,
		   const struct driver_observer *observer);

/* The group of all functions that the driver reports, with or without a row. */
#define DRIVER_ALL 255

/*
 * Starts or stops watching the functions of @group for a registered @observer. Returns the
 * driver's result for the first of them, because some drivers lack some of the others.
 */
int driver_watch(const struct driver_observer *observer, unsigned int group, bool on);

/* Enables resource events of this kind: 0 or the driver's result. */
int driver_watch_resource(enum driver_resource kind);

/*
 * Unsubscribes; no observer is called any more, except for a last call that another thread may
 * be in. This is final, because later events are missed: driver_observe() then returns
 * -ESHUTDOWN. -EBUSY: an observer that stays; the error sentence names it. -EIO: the driver
 * refused.
 */
int driver_release(struct gpupart *gp);

/* Whether this process may subscribe, or has: 0, or what driver_observe() would return. */
int driver_free(struct gpupart *gp, const struct cuda_api *api);

/* NULL: no observer watches a function with this number. */
const char *driver_function_name(int cbid);
/* Whether a call of it was reported, with the right name, while an observer watched it. */
bool driver_function_seen(int cbid);

/*
 * Call it before the first driver_observe(): tools that subscribe later are let in, as with
 * GPUPART_PROFILE=1. Later it returns -EBUSY.
 */
int driver_tools_want(struct gpupart *gp);

/*
 * Whether tools are let in: 0; -ENOENT: not requested, or not subscribed yet; -EACCES with the
 * reason why not.
 */
int driver_tools(struct gpupart *gp);

/* The driver's table; false before the first driver_observe(). */
bool driver_table_get(struct driver_table *table);

/*
 * Sets whether the calling thread's driver calls are the library's own, which observers do not
 * see. Returns the old value.
 */
GPUPART_PRIVATE
bool driver_own(bool own);

/*
 * 1: hides the calling thread's launches and calls from a profiler that was let in (observers
 * still see them); -1 ends that. Calls nest.
 */
void driver_hide(int by);

#endif
