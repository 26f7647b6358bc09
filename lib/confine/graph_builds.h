/* SPDX-License-Identifier: MIT */
/*
 * The builds of an executable graph: the program's own, and variants, which the library
 * instantiates from a clone of its graph, each for another set. One thread at a time, as the driver
 * asks of executable graphs. Why it is so: Documentation/internals/decisions/graph-variants.md.
 */
#ifndef GPUPART_LIB_CONFINE_GRAPH_BUILDS_H
#define GPUPART_LIB_CONFINE_GRAPH_BUILDS_H

#include "lib/confine/scope.h"
#include "lib/core/environment.h"
#include "lib/driver/cuda.h"

#define GRAPH_MAX_BUILDS ENVIRONMENT_MOST_GRAPH_SETS

struct graph_build {
	void *exec;		/* the driver's handle; NULL: this place is free */
	struct graph_nodes *nodes;
	unsigned int counted;	/* its kernels that count for the graph's record */
	unsigned int version;	/* of the clone that it was last updated to */
	bool built;		/* launched or uploaded once */
	bool settled;		/* and all of its nodes with what @print stands for */
	bool partial;		/* all but some, which the driver refuses to change */
	uint64_t print;		/* what its nodes were built for */
	uint64_t used;		/* the lowest was not used for the longest time */
};

struct graph_builds {
	struct graph_build build[GRAPH_MAX_BUILDS];	/* the first is the program's own */
	void *clone;		/* of the graph, with all changes; NULL: cannot be built again */
	unsigned int version;	/* counts its changes */
	unsigned int most;	/* builds that there may be */
	uint64_t flags;		/* of the program's instantiation */
	uint64_t nr_used;
	/* Of the last launch, written by the caller: those of several builds do not overlap. */
	struct graph_build *last;	/* NULL: there was none, or it is gone */
	bool recorded;			/* @event shows its end */
	struct scope_id stream;		/* that it went into */
	atomic_bool stream_gone;	/* perhaps; any thread says so */
	void *event, *ctx;		/* in whose context it is, as the variants are */
};

/* A launch or an upload, by what applies to it. */
struct graph_want {
	struct scope_graph *scope;
	const struct scope_id *stream;
	uint64_t print;
	bool launch;
	bool fresh;		/* the build was made for it, and its nodes are built */
};

/* @b is built for @print. */
static inline bool graph_build_is_for(const struct graph_build *b, uint64_t print)
{
	return b->built && b->settled && b->print == print;
}

/* The last launch went into @stream, which is still that one. */
bool graph_builds_in(const struct graph_builds *builds, const struct scope_id *stream);

/*
 * The build for a launch into a stream that is not captured, which then follows the last one of any
 * build: it is built for that, was never built, is a new variant, or is to be built again.
 */
struct graph_build *graph_builds_pick(const struct cuda_api *cuda, struct graph_builds *builds,
				      struct graph_want *want);

/* Takes all variants away. The driver is not called. */
void graph_builds_drop(struct graph_builds *builds);

/* The context @ctx goes, and with it what the driver has of its variants. */
void graph_builds_lost(struct graph_builds *builds, const void *ctx);

/* @builds goes: what it holds of the driver's is thrown away. */
void graph_builds_free(struct graph_builds *builds);

enum graph_garbage { GARBAGE_GRAPH, GARBAGE_EXEC, GARBAGE_EVENT };
/* Inside the driver: @object (may be NULL) is destroyed at the next graph_collect(), if at all. */
void graph_throw_away(enum graph_garbage what, void *object);
void graph_collect(const struct cuda_api *cuda);

#endif
