/* SPDX-License-Identifier: MIT */
/*
 * The builds of an executable graph. One build is the program's own executable graph. The other
 * builds are variants. The library instantiates each variant from a clone of the graph for
 * another set. Only one thread at a time may use the builds of a graph, as the driver requires
 * for executable graphs. The design is explained in
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
	unsigned int counted;	/* number of kernels of this build that are counted for the
				 * graph's record */
	unsigned int version;	/* version of the clone at the last update of this build */
	bool built;		/* launched or uploaded at least once */
	bool settled;		/* all its nodes were built for @print */
	/* Some nodes were not built again because the driver refuses to change them. */
	bool partial;
	uint64_t print;		/* fingerprint of the sets for which its nodes were built */
	uint64_t used;		/* the build with the lowest number is the least recently used
				 * build */
};

struct graph_builds {
	struct graph_build build[GRAPH_MAX_BUILDS];	/* build[0] is the program's own
							 * executable graph */
	/* Clone of the graph with all changes; NULL: the graph cannot be built again. */
	void *clone;
	unsigned int version;	/* the number of changes of @clone so far */
	unsigned int most;	/* number of builds that are allowed */
	uint64_t flags;		/* flags of the program's instantiation */
	uint64_t nr_used;
	/*
	 * The last launch. The caller writes these members. The library needs them because
	 * launches of different builds must not overlap.
	 */
	struct graph_build *last;	/* NULL: no launch yet, or the build was destroyed */
	bool recorded;			/* @event was recorded after the last launch */
	struct scope_id stream;		/* the stream of the last launch */
	/*
	 * True if the stream of the last launch may have been destroyed. Any thread may set this
	 * flag.
	 */
	atomic_bool stream_gone;
	void *event, *ctx;		/* the context of @event and of the variants */
};

/* A launch or an upload, and the sets that apply to it. */
struct graph_want {
	struct scope_graph *scope;
	const struct scope_id *stream;
	uint64_t print;
	bool launch;
	bool fresh;		/* the build is new, and its nodes are built for this launch */
};

/* Returns true if the nodes of @b are built for the sets with fingerprint @print. */
static inline bool graph_build_is_for(const struct graph_build *b, uint64_t print)
{
	return b->built && b->settled && b->print == print;
}

/* Returns true if the last launch was into @stream and @stream still exists. */
bool graph_builds_in(const struct graph_builds *builds, const struct scope_id *stream);

/*
 * Chooses the build for a launch into a stream that is not being captured, and orders this
 * launch after the last launch of any build. The chosen build may already be built for the sets.
 * If the chosen build is not built for the sets, it was never built, is a new variant, or must
 * be built again.
 */
struct graph_build *graph_builds_pick(const struct cuda_api *cuda, struct graph_builds *builds,
				      struct graph_want *want);

/* Removes all variants. Does not call the driver. */
void graph_builds_drop(struct graph_builds *builds);

/*
 * Called when the context @ctx is destroyed. The variants in @ctx are destroyed with the
 * context.
 */
void graph_builds_lost(struct graph_builds *builds, const void *ctx);

/* Frees @builds. The driver objects of @builds are destroyed later. */
void graph_builds_free(struct graph_builds *builds);

enum graph_garbage { GARBAGE_GRAPH, GARBAGE_EXEC, GARBAGE_EVENT };
/*
 * Schedules @object, which may be NULL, for destruction at the next call of graph_collect().
 * Code that runs inside a driver call uses this function. If graph_collect() is not called
 * again, the object is not destroyed.
 */
void graph_throw_away(enum graph_garbage what, void *object);
void graph_collect(const struct cuda_api *cuda);

#endif
