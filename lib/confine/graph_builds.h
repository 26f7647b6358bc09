/* SPDX-License-Identifier: MIT */
/*
 * The builds of an executable graph: the program's own, and variants that the library
 * instantiates from a clone of its graph, each for another set. Only one thread at a time may
 * use them, as the driver requires for executable graphs. The design is explained in
 * Documentation/internals/decisions/graph-variants.md.
 */
#ifndef GPUPART_LIB_CONFINE_GRAPH_BUILDS_H
#define GPUPART_LIB_CONFINE_GRAPH_BUILDS_H

#include "lib/confine/scope.h"
#include "lib/core/environment.h"
#include "lib/driver/cuda.h"

#define GRAPH_MAX_BUILDS ENVIRONMENT_MOST_GRAPH_SETS

struct graph_build {
	void *exec;		/* the driver's handle; NULL: this entry is free */
	struct graph_nodes *nodes;
	unsigned int counted;	/* its kernels that count for the graph's record */
	unsigned int version;	/* of the clone that it was last updated to */
	bool built;		/* launched or uploaded at least once */
	bool settled;		/* all its nodes were built for @print */
	bool partial;		/* except some that the driver refuses to change */
	uint64_t print;		/* fingerprint of the sets that its nodes were built for */
	uint64_t used;		/* the lowest number is the least recently used */
};

struct graph_builds {
	struct graph_build build[GRAPH_MAX_BUILDS];	/* the first is the program's own */
	void *clone;		/* of the graph, with all changes; NULL: it cannot be built again */
	unsigned int version;	/* incremented at each change of the clone */
	unsigned int most;	/* number of builds that are allowed */
	uint64_t flags;		/* of the program's instantiation */
	uint64_t nr_used;
	/*
	 * The last launch, written by the caller: launches of different builds must not
	 * overlap.
	 */
	struct graph_build *last;	/* NULL: there was none, or it was destroyed */
	bool recorded;			/* @event shows its end */
	struct scope_id stream;		/* the stream of the last launch */
	atomic_bool stream_gone;	/* that stream may be destroyed; any thread may set it */
	void *event, *ctx;		/* the context of @event and of the variants */
};

/* A launch or an upload, and the sets that apply to it. */
struct graph_want {
	struct scope_graph *scope;
	const struct scope_id *stream;
	uint64_t print;
	bool launch;
	bool fresh;		/* the build was made for it, and its nodes are built */
};

/* Whether @b is built for @print. */
static inline bool graph_build_is_for(const struct graph_build *b, uint64_t print)
{
	return b->built && b->settled && b->print == print;
}

/* Whether the last launch went into @stream, and that stream still exists. */
bool graph_builds_in(const struct graph_builds *builds, const struct scope_id *stream);

/*
 * Chooses the build for a launch into a stream that is not captured, and orders it after the
 * last launch of any build. The build is already built for the sets, was never built, is a new
 * variant, or must be built again.
 */
struct graph_build *graph_builds_pick(const struct cuda_api *cuda, struct graph_builds *builds,
				      struct graph_want *want);

/* Removes all variants. Does not call the driver. */
void graph_builds_drop(struct graph_builds *builds);

/* The context @ctx is destroyed, and its variants with it. */
void graph_builds_lost(struct graph_builds *builds, const void *ctx);

/* Frees @builds; its driver objects are destroyed later. */
void graph_builds_free(struct graph_builds *builds);

enum graph_garbage { GARBAGE_GRAPH, GARBAGE_EXEC, GARBAGE_EVENT };
/*
 * For use inside a driver call: @object (may be NULL) is destroyed at the next graph_collect(),
 * if there is one.
 */
void graph_throw_away(enum graph_garbage what, void *object);
void graph_collect(const struct cuda_api *cuda);

#endif
