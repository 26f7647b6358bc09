// SPDX-License-Identifier: MIT
/*
 * Tests which driver calls the choice of a build makes. A few functions of this test replace the
 * driver and count its calls. The function launch() does the same as the caller in graph.c.
 */
#include <stdlib.h>
#include "lib/confine/graph_builds.c"
#include "tests/tap.h"

static char contexts[2], streams[3];
static unsigned int nr_made, nr_events, nr_recorded, nr_event_waits, nr_waits;
static unsigned int nr_late;
static bool refuses_updates, captured;
static char *last_made;

static cuda_result ctx_current(void **ctx)
{
	*ctx = &contexts[0];
	return 0;
}

static cuda_result ctx_push(void *ctx)
{
	return ctx != &contexts[0];
}

static cuda_result ctx_pop(void **ctx)
{
	*ctx = &contexts[0];
	return 0;
}

static cuda_result ctx_sync(void)
{
	nr_waits++;
	return 0;
}

static cuda_result stream_ctx(void *stream, void **ctx)
{
	*ctx = &contexts[stream == &streams[2]];
	return 0;
}

static cuda_result capture_mode(int *mode)
{
	(void)mode;
	return 0;
}

static cuda_result event_create(void **event, unsigned int flags)
{
	(void)flags;
	*event = &nr_events;
	nr_events++;
	return 0;
}

static cuda_result event_destroy(void *event)
{
	(void)event;
	return 0;
}

static cuda_result event_record(void *event, void *stream)
{
	nr_late += event == &nr_events && stream == &streams[0];
	return 0;
}

static cuda_result stream_capturing(void *stream, int *capturing)
{
	*capturing = captured && stream == &streams[0];
	return 0;
}

static cuda_result event_wait(void *stream, void *event, unsigned int flags)
{
	(void)stream;
	(void)event;
	(void)flags;
	nr_event_waits++;
	return 0;
}

static cuda_result graph_nodes(void *graph, void **nodes, size_t *nr)
{
	(void)graph;
	(void)nodes;
	*nr = 0;
	return 0;
}

static cuda_result graph_instantiate(void **exec, void *graph, uint64_t flags)
{
	(void)graph;
	(void)flags;
	*exec = last_made = malloc(1);
	nr_made++;
	return 0;
}

static cuda_result graph_upload(void *exec, void *stream)
{
	(void)exec;
	(void)stream;
	return 0;
}

static cuda_result exec_destroy(void *exec)
{
	free(exec);
	return 0;
}

static cuda_result graph_destroy(void *graph)
{
	free(graph);
	return 0;
}

static cuda_result graph_update(void *exec, void *graph, struct cuda_graph_update *info)
{
	(void)exec;
	(void)graph;
	(void)info;
	return refuses_updates;
}

static const struct cuda_api api = {
	.ctx_current = ctx_current, .ctx_push = ctx_push, .ctx_pop = ctx_pop,
	.ctx_sync = ctx_sync, .stream_ctx = stream_ctx, .capture_mode = capture_mode,
	.event_create = event_create, .event_destroy = event_destroy, .event_wait = event_wait,
	.event_record = event_record, .stream_capturing = stream_capturing,
	.graph_nodes = graph_nodes, .graph_instantiate = graph_instantiate,
	.graph_upload = graph_upload, .graph_update = graph_update,
	.exec_destroy = exec_destroy, .graph_destroy = graph_destroy,
};

static struct graph_builds *begin(void)
{
	struct graph_builds *builds = calloc(1, sizeof(*builds));

	if (!builds)
		abort();
	builds->build[0].exec = builds;
	builds->clone = malloc(1);
	builds->most = GRAPH_MAX_BUILDS;
	nr_made = nr_events = nr_recorded = nr_event_waits = nr_waits = nr_late = 0;
	refuses_updates = captured = false;
	return builds;
}

static void end(struct graph_builds *builds)
{
	graph_builds_free(builds);
	graph_collect(&api);
	free(builds);
}

/* Launches for the sets with fingerprint @print. Returns the index of the launched build. */
static long launch(struct graph_builds *builds, int stream, uint64_t print)
{
	const struct scope_id id = { .handle = &streams[stream] };
	struct scope_graph scope = { .mark = NULL };
	struct graph_want want = { &scope, &id, print, true, false };
	struct graph_build *b = graph_builds_pick(&api, builds, &want);

	b->built = b->settled = true;
	b->print = print;
	builds->recorded = graph_builds_record(builds);
	nr_recorded += builds->recorded;
	builds->last = b;
	builds->stream = id;
	atomic_store(&builds->stream_gone, false);
	graph_collect(&api);
	return b - builds->build;
}

static bool calls(unsigned int events, unsigned int recorded, unsigned int event_waits,
		  unsigned int waits)
{
	if (nr_events == events && nr_recorded == recorded && nr_event_waits == event_waits &&
	    nr_waits == waits)
		return true;
	printf("# %u events, recorded %u times, waited for %u times; %u waits of the CPU\n",
	       nr_events, nr_recorded, nr_event_waits, nr_waits);
	return false;
}

static void one_stream(void)
{
	struct graph_builds *builds = begin();
	long first = launch(builds, 0, 1), second = launch(builds, 0, 2);
	int wrong = 0;

	for (int n = 0; n < 100; n++)
		wrong += launch(builds, 0, 1) != first || launch(builds, 0, 2) != second;
	tap_ok(!wrong && first == 0 && second > 0 && nr_made == 1, "one stream: two builds");
	tap_ok(calls(0, 0, 0, 0), "and no event");
	end(builds);
}

static void two_streams(void)
{
	struct graph_builds *builds = begin();
	long second;

	launch(builds, 0, 1);
	second = launch(builds, 0, 2);
	tap_ok(launch(builds, 1, 1) == second && calls(1, 1, 0, 0),
	       "a second stream: the build of the last launch, which the driver lets wait");
	tap_ok(launch(builds, 0, 2) != second && nr_made == 2 && calls(1, 2, 1, 0),
	       "later launches of other builds wait for the event");
	tap_ok(launch(builds, 0, 1) == 0 && calls(1, 3, 1, 0),
	       "in the same stream they do not");
	end(builds);
}

static void same_build(void)
{
	struct graph_builds *builds = begin();
	long second;

	launch(builds, 0, 1);
	second = launch(builds, 0, 2);
	tap_ok(launch(builds, 1, 2) == second && launch(builds, 0, 2) == second &&
		       calls(0, 0, 0, 0), "one build in two streams needs no event");
	end(builds);
}

static void removed(void)
{
	struct graph_builds *builds = begin();

	launch(builds, 0, 1);
	launch(builds, 0, 2);
	graph_builds_drop(&api, builds);
	tap_ok(launch(builds, 0, 1) == 0 && calls(1, 1, 0, 0),
	       "the last build is removed: a launch into the same stream waits for nothing");
	end(builds);

	/* What happens to the old stream after the removal makes no difference. */
	for (int way = 0; way < 3; way++) {
		builds = begin();
		launch(builds, 0, 1);
		launch(builds, 0, 2);
		graph_builds_drop(&api, builds);
		captured = way == 1;
		atomic_store(&builds->stream_gone, way == 2);
		tap_ok(launch(builds, 1, 1) == 0 && nr_late == 1 && calls(1, 1, 1, 0),
		       "into another: it waits for an event%s", way == 0 ? "" : way == 1 ?
		       ", although the old stream is captured now" :
		       ", although the old stream was destroyed");
		end(builds);
	}

	for (int way = 0; way < 3; way++) {
		builds = begin();
		launch(builds, 0, 1);
		launch(builds, 0, 2);
		captured = way == 0;
		atomic_store(&builds->stream_gone, way == 1);
		if (way == 2)
			builds->stream.handle = CUDA_STREAM_PER_THREAD;
		graph_builds_drop(&api, builds);
		tap_ok(launch(builds, 1, 1) == 0 && !nr_late && calls(1, 1, 0, 1),
		       "%s: the CPU waits", way == 0 ? "its stream was captured" : way == 1 ?
		       "its stream was destroyed before" : "a thread's default stream");
		end(builds);
	}

	builds = begin();
	launch(builds, 0, 1);
	launch(builds, 0, 2);
	graph_builds_drop(&api, builds);
	builds->most = 1;
	launch(builds, 1, 1);
	tap_ok(launch(builds, 0, 1) == 0 && calls(1, 0, 1, 0),
	       "a graph that keeps one build records no event");
	end(builds);

	builds = begin();
	launch(builds, 0, 1);
	launch(builds, 0, 2);
	builds->version++;
	refuses_updates = true;
	tap_ok(launch(builds, 1, 2) == 0 && nr_late == 1 && calls(1, 0, 1, 0),
	       "also if an update removed it");
	end(builds);

	builds = begin();
	launch(builds, 0, 1);
	launch(builds, 0, 2);
	launch(builds, 1, 1);
	launch(builds, 1, 2);
	graph_builds_drop(&api, builds);
	tap_ok(launch(builds, 0, 1) == 0 && calls(1, 3, 1, 0), "if there is an event, for this");
	end(builds);
}

/* The variants do not have changes that the library has not seen, so it keeps one build. */
static void one_build(void)
{
	struct graph_builds *builds = begin();

	launch(builds, 0, 1);
	launch(builds, 0, 2);
	builds->most = 1;
	tap_ok(launch(builds, 1, 2) == 0 && nr_late == 1 && calls(1, 0, 1, 0),
	       "only one build is possible now: its launch waits for the last variant");
	end(builds);
}

static void stream_destroyed(void)
{
	struct graph_builds *builds = begin();
	long second;

	launch(builds, 0, 1);
	second = launch(builds, 0, 2);
	atomic_store(&builds->stream_gone, true);
	tap_ok(launch(builds, 0, 1) == second && calls(1, 1, 0, 0),
	       "the same handle after a stream was destroyed is a second stream");
	end(builds);
}

static void context_destroyed(void)
{
	struct graph_builds *builds = begin();

	launch(builds, 0, 1);
	launch(builds, 0, 2);
	free(last_made);	/* the driver destroys it */
	graph_builds_lost(builds, &contexts[0]);
	tap_ok(launch(builds, 1, 1) == 0 && calls(0, 0, 0, 0),
	       "after the context was destroyed, there is nothing to wait for");
	end(builds);
}

static void another_context(void)
{
	struct graph_builds *builds = begin();

	launch(builds, 0, 1);
	launch(builds, 0, 2);
	tap_ok(launch(builds, 2, 1) == 0 && builds->most == 1 && calls(1, 0, 1, 0),
	       "a stream of another context: the variants are removed, and it waits for an event");
	end(builds);
}

int main(void)
{
	one_stream();
	two_streams();
	same_build();
	removed();
	one_build();
	stream_destroyed();
	context_destroyed();
	another_context();
	return tap_done();
}
