/* SPDX-License-Identifier: MIT */
/*
 * The driver's callbacks: one subscription a process, and its observers. Callbacks may come from
 * any thread; an observer neither locks nor fails in @launch.
 */
#ifndef GPUPART_LIB_DRIVER_CALLBACK_H
#define GPUPART_LIB_DRIVER_CALLBACK_H

#include "lib/driver/functions.h"
#include "lib/driver/table.h"

/* Of a built TMD: the first 40 bytes, which every size that was seen has. */
struct launch_params {
	uint32_t size, pad;
	void *ctx;
	void *module;
	void *function;
	void *tmd;
};

/* What happens to contexts, streams, modules and graphs. */
enum driver_resource {
	DRIVER_CTX_GOES = 2,
	DRIVER_STREAM_MADE = 4,
	DRIVER_STREAM_GOES = 5,
	DRIVER_MODULE_LOADED = 17,
	DRIVER_MODULE_GOES = 18,
	DRIVER_CTX_MADE = 24,
	DRIVER_GRAPH_GONE = 36,
	DRIVER_GRAPH_EXEC_MADE = 40,
	DRIVER_GRAPH_EXEC_GOES = 41,
};

struct resource_params {
	uint32_t size, pad;
	void *ctx;		/* of graphs: the graph */
	uint64_t object;	/* what a stream's handle points to; a module; a source graph */
	void *exec;
};

/* Whether the driver gave @member, of 8 bytes. */
#define RESOURCE_HAS(params, member) \
	((params)->size >= offsetof(struct resource_params, member) + 8)

#define DRIVER_MAX_CBID	1024

/* How each row of an observer's table of API functions begins. */
struct driver_function {
	uint16_t cbid;		/* CBID_*; 0: the last row, of functions that have none */
	uint8_t group;		/* 0: watched from the start; else what driver_watch() names */
	uint8_t kind;		/* the observer's own */
};

/*
 * Observers are called in order of registration, at the end of a function in reverse order. Each is
 * called for the API functions that it watches, and for all resources.
 */
struct driver_observer {
	const char *name;
	const struct driver_function *rows;	/* each cbid in one row at most; NULL: none */
	size_t row_size;
	bool first;			/* no other may be registered before it */
	bool stays;			/* the subscription is not given back while it is there */
	/* Changes arguments: it begins after, and ends before, those that are not inner. */
	bool inner;
	bool own;			/* it is called for functions that the library calls, too */
	void (*launch)(const struct launch_params *params);	/* of one observer at most */
	void (*call)(const struct driver_function *row, const struct cuda_call_params *params);
	/* In place of @call: the driver has another function at that number. NULL: ignored. */
	void (*other)(const struct driver_function *row, const struct cuda_call_params *params);
	void (*resource)(int cbid, const struct resource_params *params);
};

/*
 * Registers @observer, which must live for ever, and subscribes where that was not done; later
 * calls do nothing. Works before cuInit. -EOPNOTSUPP with what the driver refused or offered
 * instead, -EBUSY for one that is not the first, -ENOSPC.
 */
int driver_observe(struct gpupart *gp, const struct cuda_api *api,
		   const struct driver_observer *observer);

/* A group of each observer: all functions that the driver reports, with or without a row. */
#define DRIVER_ALL 255

/*
 * A registered @observer watches the functions of @group too, or no more. The driver's result for
 * the first of them: some drivers lack some of the others.
 */
int driver_watch(const struct driver_observer *observer, unsigned int group, bool on);

/* Resources of this kind are called back from now on: 0 or the driver's result. */
int driver_watch_resource(enum driver_resource kind);

/*
 * Unsubscribes, and no observer is called any more: by another thread it may be called for the
 * last time meanwhile. For ever, since what happens from now on is not seen: driver_observe() is
 * -ESHUTDOWN then. -EBUSY with the observer that stays; -EIO the driver refused.
 */
int driver_release(struct gpupart *gp);

/* Whether this process may subscribe, or has: 0 or what driver_observe() would return. */
int driver_free(struct gpupart *gp, const struct cuda_api *api);

/* NULL: no observer watches a function of this number. */
const char *driver_function_name(int cbid);
/* Whether a call of it was reported, by the right name, while an observer watched it. */
bool driver_function_seen(int cbid);

/*
 * Before the first driver_observe(): tools that subscribe later are let in, as GPUPART_PROFILE=1
 * asks for too. -EBUSY afterwards.
 */
int driver_tools_want(struct gpupart *gp);

/* Whether they are: 0, -ENOENT nobody asked or nothing was subscribed yet, -EACCES with why not. */
int driver_tools(struct gpupart *gp);

/* The driver's table; false before the first driver_observe(). */
bool driver_table_get(struct driver_table *table);

/*
 * Whether the functions that the calling thread calls from now on are the library's own, and no
 * observer's business. Returns what was so before.
 */
GPUPART_PRIVATE
bool driver_own(bool own);

/*
 * 1: a profiler that was let in is not told of the launches and calls that the calling thread makes
 * until -1 takes it back; observers are.
 */
void driver_hide(int by);

#endif
