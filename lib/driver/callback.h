/* SPDX-License-Identifier: MIT */
/*
 * Subscribes to the driver's callbacks and calls observers. A process has one subscription and
 * several observers. The driver may make a callback in any thread. The function @launch of an
 * observer takes no lock and cannot fail.
 */
#ifndef GPUPART_LIB_DRIVER_CALLBACK_H
#define GPUPART_LIB_DRIVER_CALLBACK_H

#include "lib/driver/functions.h"
#include "lib/driver/table.h"

/*
 * The parameters of a launch when its TMD is built. This struct contains only the first 40
 * bytes, because these bytes exist in the parameters of every known size.
 */
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
	void *ctx;		/* the graph, for events of graphs */
	/* The object to which a stream's handle points, or a module, or a source graph. */
	uint64_t object;
	void *exec;
};

/* True if the driver filled in the 8 bytes of @member. */
#define RESOURCE_HAS(params, member) \
	((params)->size >= offsetof(struct resource_params, member) + 8)

#define DRIVER_MAX_CBID	1024

/* The beginning of each row in an observer's table of driver functions. */
struct driver_function {
	/*
	 * CBID_*. The value 0 marks the last row, which applies to all functions that have no
	 * row.
	 */
	uint16_t cbid;
	uint8_t group;		/* group for driver_watch(); 0: watched from the start */
	uint8_t kind;		/* the observer chooses the meaning of this member */
};

/*
 * At the start of a driver function, observers are called in the order in which they were
 * registered. At the end of the function, observers are called in reverse order. Each observer
 * is called for the functions that it watches, and for all resource events.
 */
struct driver_observer {
	const char *name;
	const struct driver_function *rows;	/* at most one row for each cbid; NULL: none */
	size_t row_size;
	bool first;			/* no other observer may be registered before it */
	/* the subscription cannot end while the observer is registered */
	bool stays;
	/*
	 * True if this observer changes arguments of driver functions. At the start of a
	 * function, this observer is called after all other observers. At the end of the
	 * function, this observer is called before all other observers.
	 */
	bool inner;
	bool own;			/* also call the observer for functions that the library
					 * calls */
	/* at most one observer sets this member */
	void (*launch)(const struct launch_params *params);
	void (*call)(const struct driver_function *row, const struct cuda_call_params *params);
	/*
	 * Called instead of @call if the number of a row belongs to a different function in this
	 * driver. NULL: ignore the different function.
	 */
	void (*other)(const struct driver_function *row, const struct cuda_call_params *params);
	void (*resource)(int cbid, const struct resource_params *params);
};

/*
 * Registers @observer, which must never be freed, and subscribes if necessary. Further calls
 * with the same observer do nothing. The function can be called before cuInit. -EOPNOTSUPP: the
 * driver refused the subscription or is not as expected. The error sentence gives the details.
 * -EBUSY: @observer must be the first observer, but another observer is already registered.
 * -ENOSPC: there are too many observers.
 */
int driver_observe(struct gpupart *gp, const struct cuda_api *api,
		   const struct driver_observer *observer);

/* The group of all functions that the driver reports, with or without a row. */
#define DRIVER_ALL 255

/*
 * Starts or stops watching the functions of @group for a registered @observer. Returns the
 * driver's result for the first function of the group. The results for the other functions are
 * ignored, because some drivers lack some of these functions.
 */
int driver_watch(const struct driver_observer *observer, unsigned int group, bool on);

/* Enables resource events of this kind. Returns 0 or the driver's result. */
int driver_watch_resource(enum driver_resource kind);

/*
 * Ends the subscription. After that, no observer is called any more. But if another thread is
 * already in a call of an observer, that call may still run to its end. The process cannot
 * subscribe again, because it misses events in the meantime. driver_observe() then returns
 * -ESHUTDOWN. -EBUSY: an observer has @stays set; the error sentence names it. -EIO: the driver
 * refused to end the subscription.
 */
int driver_release(struct gpupart *gp);

/*
 * Returns 0 if this process has subscribed or may subscribe, or else the error that
 * driver_observe() would return.
 */
int driver_free(struct gpupart *gp, const struct cuda_api *api);

/* Returns the name of the function with this number, or NULL if no observer watches it. */
const char *driver_function_name(int cbid);
/*
 * Returns true if the driver reported a call of this function, with the expected name, while an
 * observer watched it.
 */
bool driver_function_seen(int cbid);

/*
 * Allows tools to subscribe later, as GPUPART_PROFILE=1 does. Call this function before the
 * first driver_observe(). After driver_observe() it returns -EBUSY.
 */
int driver_tools_want(struct gpupart *gp);

/*
 * Returns 0 if tools may subscribe. -ENOENT: this was not requested, or the process has not
 * subscribed yet. -EACCES: tools cannot subscribe; the error sentence gives the reason.
 */
int driver_tools(struct gpupart *gp);

/*
 * Stores the driver's table in the argument. Returns false if driver_observe() was not called
 * yet.
 */
bool driver_table_get(struct driver_table *table);

/* Records that the driver's launch callback is missing or has an unknown form. */
void driver_callback_unusable(void);

/*
 * If the argument is true, the calling thread's driver calls are treated as calls of the
 * library, and observers are not called for them. Returns the old value.
 */
GPUPART_PRIVATE
bool driver_own(bool own);

/*
 * Hides the calling thread's launches and calls from a profiler that subscribed through the
 * library. Observers still receive these launches and calls. @by is 1 to start hiding, and -1 to
 * stop hiding. Calls of this function can be nested.
 */
void driver_hide(int by);

#endif
