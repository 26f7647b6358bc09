/* SPDX-License-Identifier: MIT */
/*
 * Subscribes to the driver's callbacks and calls observers. A process has one subscription and
 * several observers. The driver may call a callback in any thread. The member @launch of an
 * observer is a function that takes no lock and cannot fail.
 */
#ifndef GPUPART_LIB_DRIVER_CALLBACK_H
#define GPUPART_LIB_DRIVER_CALLBACK_H

#include "lib/driver/functions.h"
#include "lib/driver/table.h"

/*
 * The launch parameters that the driver reports when it builds a TMD. This struct has the first
 * 40 bytes. The parameters of every known driver have these bytes.
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
	void *ctx;		/* for events of graphs, this is the graph */
	/*
	 * For streams, the object to which the handle points. For other events, a module or a
	 * source graph.
	 */
	uint64_t object;
	void *exec;
};

/* True if the driver has written the 8 bytes of @member. */
#define RESOURCE_HAS(params, member) \
	((params)->size >= offsetof(struct resource_params, member) + 8)

#define DRIVER_MAX_CBID	1024

/* Each row in an observer's table of driver functions begins with this struct. */
struct driver_function {
	/*
	 * The number of the function, CBID_*. In the last row, this number is 0. The last row
	 * applies to all functions without a row.
	 */
	uint16_t cbid;
	uint8_t group;		/* the group for driver_watch(); functions of group 0 are watched
				 * from the start */
	uint8_t kind;		/* the observer chooses the meaning of this member */
};

/*
 * At the start of a driver function, observers are called in the order in which they were
 * registered. At the end of the function, observers are called in reverse order. Each observer
 * is called for the functions that it watches, and for all resource events.
 */
struct driver_observer {
	const char *name;
	const struct driver_function *rows;	/* at most one row for each cbid; NULL: no rows */
	size_t row_size;
	bool first;			/* this observer must be registered before all others */
	/* while this observer is registered, the subscription cannot end */
	bool stays;
	/*
	 * True if this observer changes arguments of driver functions. At the start of a driver
	 * function, it is called after all other observers. At the end, it is called before all
	 * other observers.
	 */
	bool inner;
	bool own;			/* the observer is also called for the library's own
					 * calls */
	/* at most one observer may set this member */
	void (*launch)(const struct launch_params *params);
	void (*call)(const struct driver_function *row, const struct cuda_call_params *params);
	/*
	 * In this driver, the number of a row may belong to a different function. Then @other is
	 * called instead of @call. If @other is NULL, the different function is ignored.
	 */
	void (*other)(const struct driver_function *row, const struct cuda_call_params *params);
	void (*resource)(int cbid, const struct resource_params *params);
};

/*
 * Registers @observer. If this process has no subscription, the function subscribes. The observer
 * must never be freed. Further calls with the same observer do nothing. The function can be
 * called before cuInit. If the driver refuses the subscription or is unknown, the function
 * returns -EOPNOTSUPP, and the error message gives the details. If @observer must be the first
 * observer but another observer is already registered, the function returns -EBUSY. If there are
 * too many observers, the function returns -ENOSPC.
 */
int driver_observe(struct gpupart *gp, const struct cuda_api *api,
		   const struct driver_observer *observer);

/* The group of all functions that the driver reports, even functions without a row. */
#define DRIVER_ALL 255

/*
 * Starts or stops watching the functions of @group for a registered @observer. Returns the
 * driver's result for the first function of the group. Some drivers lack some of the other
 * functions, so their results are ignored.
 */
int driver_watch(const struct driver_observer *observer, unsigned int group, bool on);

/* Enables resource events of this kind. Returns 0 or the driver's result. */
int driver_watch_resource(enum driver_resource kind);

/*
 * Ends the subscription. After that, no observer is called. But if another thread is already in a
 * call of an observer, this call continues. The process cannot subscribe again, because it would
 * have missed events, so driver_observe() returns -ESHUTDOWN. If an observer has @stays set,
 * driver_release() returns -EBUSY, and the error message names the observer. If the driver
 * refuses to end the subscription, the function returns -EIO.
 */
int driver_release(struct gpupart *gp);

/*
 * Returns 0 if this process has subscribed or can subscribe. Otherwise returns the error that
 * driver_observe() would return.
 */
int driver_free(struct gpupart *gp, const struct cuda_api *api);

/*
 * Returns the name of the driver function with this number. If no observer watches the function,
 * returns NULL.
 */
const char *driver_function_name(int cbid);
/*
 * Returns true if the driver reported at least one call of this function with the expected name.
 * An observer must have watched the function during this call.
 */
bool driver_function_seen(int cbid);

/*
 * Allows tools to subscribe later. GPUPART_PROFILE=1 has the same effect. Call this function
 * before the first driver_observe(). After driver_observe(), this function returns -EBUSY.
 */
int driver_tools_want(struct gpupart *gp);

/*
 * Returns 0 if tools may subscribe. If this was not requested, or if this process has not
 * subscribed yet, returns -ENOENT. If tools cannot subscribe, returns -EACCES, and the error
 * sentence gives the reason.
 */
int driver_tools(struct gpupart *gp);

/* Stores the driver's table in *table. Before the first driver_observe(), returns false. */
bool driver_table_get(struct driver_table *table);

/* Records that the driver's launch callback is missing or has an unknown form. */
void driver_callback_unusable(void);

/*
 * If the argument is true, the calling thread's driver calls are calls of the library. Observers
 * are not called for these calls. Returns the old value.
 */
GPUPART_PRIVATE
bool driver_own(bool own);
/*
 * The value that driver_own() sets. With DRIVER_UNSEEN, no observer is called for the calling
 * thread's driver calls, and driver_own() changes nothing.
 */
#define DRIVER_UNSEEN 2
extern _Thread_local unsigned char driver_inside;

/*
 * A profiler may have subscribed through the library. This function hides the calling thread's
 * launches and calls from this profiler. Observers still receive these launches and calls. With
 * the argument 1, hiding begins. With the argument -1, hiding ends. Calls of this function can be
 * nested.
 */
void driver_hide(int by);

/* Returns true if the calling thread's driver calls are calls of the library, or are hidden. */
bool driver_is_own(void);

#endif
