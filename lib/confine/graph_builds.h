/* SPDX-License-Identifier: MIT */
/*
 * The builds of an executable graph. One build is the program's own executable graph. The other
 * builds are variants. Each variant is for a different set, and the library instantiates it from
 * a clone of the graph. Two threads must not use the builds of a graph at the same time. The
 * driver has the same rule for executable graphs. The design is explained in
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
	unsigned int counted;	/* number of this build's kernels that count for the graph's
				 * record */
	unsigned int version;	/* version of the clone at the last update of this build */
	bool built;		/* launched or uploaded at least once */
	bool settled;		/* all nodes of this build were built for @print */
	/* Some nodes were not built again because the driver refuses to change them. */
	bool partial;
	uint64_t print;		/* fingerprint of the sets for which the nodes were built */
	uint64_t used;		/* number of the last use; the least recently used build has the
				 * lowest number */
};

struct graph_builds {
	struct graph_build build[GRAPH_MAX_BUILDS];	/* build[0] is the program's own
							 * executable graph */
	/*
	 * A clone of the graph. The clone contains all changes of the program. Without a clone,
	 * the graph cannot be built again.
	 */
	void *clone;
	unsigned int version;	/* number of changes of @clone so far */
	unsigned int most;	/* maximum number of builds */
	uint64_t flags;		/* flags of the program's instantiation */
	uint64_t nr_used;
	/*
	 * These members describe the last launch. The caller writes these members. They are
	 * needed because launches of different builds must not overlap.
	 */
	struct graph_build *last;	/* NULL: no launch yet, or the build was removed */
	bool recorded;			/* @event was recorded after the last launch */
	struct scope_id stream;		/* the stream of the last launch; all 0: no launch yet */
	/*
	 * True if the stream of the last launch may have been destroyed. Any thread may set this
	 * flag.
	 */
	atomic_bool stream_gone;
	/*
	 * Launches into one stream run in order. So there is an event only after the graph was
	 * launched into a second stream, or after the build of the last launch was removed.
	 */
	void *event;
	void *ctx;			/* the context of @event and of the variants, or NULL */
};

/* A launch or an upload, together with the sets that apply to it. */
struct graph_want {
	struct scope_graph *scope;
	const struct scope_id *stream;
	uint64_t print;
	bool launch;
	bool fresh;		/* result: the build is new, so this launch builds its nodes */
};

/* Returns true if the nodes of @b are built for the sets with fingerprint @print. */
static inline bool graph_build_is_for(const struct graph_build *b, uint64_t print)
{
	return b->built && b->settled && b->print == print;
}

/* Returns true if the last launch was into @stream and @stream still exists. */
bool graph_builds_in(const struct graph_builds *builds, const struct scope_id *stream);

/* Returns true if each launch must record the event. */
static inline bool graph_builds_record(const struct graph_builds *builds)
{
	return builds->event && builds->most > 1;
}

/*
 * Chooses the build for a launch, and makes the launch wait for the last launch of any build. The
 * stream of the launch must not be in a capture. Usually the nodes of the chosen build are
 * already built for the sets. Otherwise the build is new, or the caller must build it again.
 */
struct graph_build *graph_builds_pick(const struct cuda_api *cuda, struct graph_builds *builds,
				      struct graph_want *want);

/* Removes all variants. Calls the driver, so the caller must not hold a lock. */
void graph_builds_drop(const struct cuda_api *cuda, struct graph_builds *builds);

/*
 * Called when the context @ctx is destroyed. The variants in @ctx are destroyed with the
 * context.
 */
void graph_builds_lost(struct graph_builds *builds, const void *ctx);

/* Frees @builds. The driver objects of @builds are destroyed later. */
void graph_builds_free(struct graph_builds *builds);

enum graph_garbage { GARBAGE_GRAPH, GARBAGE_EXEC, GARBAGE_EVENT };
/*
 * Makes the next call of graph_collect() destroy @object. If @object is NULL, does nothing. This
 * function is for code that runs inside a driver call. If graph_collect() is not called again,
 * the object is not destroyed.
 */
void graph_throw_away(enum graph_garbage what, void *object);
void graph_collect(const struct cuda_api *cuda);

#endif
