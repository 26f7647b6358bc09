// SPDX-License-Identifier: MIT
/*
 * After a process's set has changed, finds out when all launches with the old set have ended. See
 * lib/private.h.
 *
 * A launch first reads its set and gets its number later. Between these two steps, a flag in the
 * lane of the thread is set. The thread sets this flag without a fence. Instead, the reader of the
 * flags calls membarrier(), which makes a fence for all threads. A thread whose flag is set after
 * the fence may still use the old set. A thread whose flag is not set reads the new set at its next
 * launch. After each thread whose flag was set has left its launch, every launch with the old set
 * has a number.
 */
#include <errno.h>
#include <linux/membarrier.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <gpupart_manage.h>
#include "lib/private.h"
#include "lib/records/reader.h"

static uint64_t nr_launches(const struct state_lane *lane)
{
	uint64_t nr = 0;

	for (unsigned int i = 0; i < STATE_NR_LAUNCHES; i++)
		nr += lane->counters[i];
	return nr;
}

/* Returns the number of launches that may have used TPCs outside their set. */
static uint64_t nr_loose(const struct state_lane *lanes)
{
	static const enum state_counter loose[] = {
		STATE_WIDENED_DRIVER, STATE_WIDENED_CLUSTER, STATE_WIDENED_COOPERATIVE,
		STATE_UNCONFINABLE_MAP, STATE_GRAPH_STALE,
	};
	uint64_t nr = 0;

	for (unsigned int n = 0; n < STATE_NR_LANES; n++)
		for (unsigned int i = 0; i < sizeof(loose) / sizeof(loose[0]); i++)
			nr += lanes[n].counters[loose[i]];
	return nr;
}

/*
 * If the library cannot know when this process's launches end, returns the reason. Otherwise
 * returns NULL.
 */
static const char *why_unknown(const struct state_records *records,
			       const struct state_lane *lanes)
{
	uint64_t unread = 0, on_device = 0;

	for (unsigned int n = 0; n < STATE_NR_LANES; n++) {
		unread += lanes[n].counters[STATE_UNCONFINABLE_VERSION] +
			  lanes[n].counters[STATE_UNCONFINABLE_GPU];
		on_device += lanes[n].counters[STATE_DEVICE_LAUNCHES];
	}
	return !records->on ? "it has no records of launches" :
	       !records->fenced ? "its kernel has no membarrier()" :
	       lanes->launching || lanes->graphs ? "more than 63 of its threads launch" :
	       records->graphs ? "launches of some of its graphs have no records" :
	       on_device ? "it has kernels that launch kernels" :
	       unread ? "some of its launches could not be read" :
	       records->nowhere ? "launches on some of its streams have no records" : NULL;
}

/* Returns true if each thread that was in a launch at the time of @then has left that launch. */
static bool all_left(const struct state_lane *then, const struct state_lane *now)
{
	for (unsigned int n = 1; n < STATE_NR_LANES; n++)
		/*
		 * Each launch increases the count by 1. If the count has increased by 1 since
		 * @then, the counted launch may be the launch that was running at @then. If the
		 * count has increased by 2, a later launch has been counted, too.
		 */
		if ((then[n].launching && now[n].launching &&
		     nr_launches(&now[n]) - nr_launches(&then[n]) < 2) ||
		    (then[n].graphs & 1 && now[n].graphs == then[n].graphs))
			return false;
	return true;
}

static void note_numbers(struct gpupart_records_reader *reader)
{
	const struct state_records *copy = &reader->copy;
	struct reader_drain *drain = &reader->drain;

	for (unsigned int n = 0; n < RECORDS_GRAPH_RING; n++) {
		drain->ring[n] = copy->rings[n].issued;
		drain->after[n] = copy->rings[n].waiting ? copy->rings[n].after : 0;
	}
	for (unsigned int n = 0; n < STATE_NR_GRAPHS; n++)
		drain->graph[n] = copy->graph[n].issued;
}

/*
 * Returns 1, 0 or -ENODATA. The function checks outstanding launches before unknown launches,
 * because fewer launches may be unknown when the outstanding launches have ended.
 */
static int numbers_ended(struct gpupart *gp, const struct gpupart_records_reader *reader)
{
	const struct state_records *copy = &reader->copy;
	const struct reader_drain *drain = &reader->drain;
	uint64_t lost = 0, waiting = 0;
	bool outstanding = false;

	for (unsigned int n = 0; n < RECORDS_GRAPH_RING; n++) {
		const struct state_ring *ring = &copy->rings[n];
		bool left = ring->folded < drain->ring[n];

		outstanding |= left && !ring->lost;
		lost += left && ring->lost;
		waiting += ring->waiting && ring->folded < drain->after[n];
	}
	for (unsigned int n = 0; n < copy->nr_graphs; n++) {
		bool left = copy->graph[n].issued - reader_graph(reader, n) < drain->graph[n];

		outstanding |= left && !copy->graph[n].lost;
		lost += left && copy->graph[n].lost;
	}
	if (!outstanding && (lost || waiting))
		return ctx_fail(gp, -ENODATA, "process %d: %s", reader->pid, lost ?
				"a context was lost while launches ran in it" :
				"a stream's last launches have no records");
	return !outstanding;
}

/* Executes a memory fence in all threads of the processes that registered with membarrier(). */
static bool fence(void)
{
	return !syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}

/*
 * Makes one step of @drain. Before the call, the caller must read @lanes, then make a fence, and
 * then read the copy in @reader. Returns 1, 0 or -ENODATA.
 */
static int step(struct gpupart *gp, struct gpupart_records_reader *reader,
		const struct state_lane *lanes)
{
	struct reader_drain *drain = &reader->drain;

	/*
	 * If a launch was counted before this moment, it has a number or is still in the callback.
	 */
	if (drain->step == DRAIN_BEGUN || nr_loose(lanes) != drain->loose) {
		drain->loose = nr_loose(lanes);
		memcpy(drain->lanes, lanes, sizeof(drain->lanes));
		drain->step = DRAIN_INSIDE;
		return 0;
	}
	if (drain->step == DRAIN_NUMBERED)
		return numbers_ended(gp, reader);
	if (!all_left(drain->lanes, lanes))
		return 0;
	note_numbers(reader);
	drain->step = DRAIN_NUMBERED;
	return 0;
}

void gpupart_records_drain(struct gpupart_records_reader *reader)
{
	reader->drain.step = DRAIN_BEGUN;
}

int gpupart_records_drained(struct gpupart *gp, struct gpupart_records_reader *reader)
{
	struct state_lane lanes[STATE_NR_LANES];
	struct gpupart_records now;
	const char *why;
	int err, result = 0;

	/* If the process launches nothing, all three steps succeed immediately. */
	for (int i = 0; i < 3 && !result; i++) {
		why = !fence() ? "this kernel has no membarrier()" :
		      !reader_page(reader, offsetof(struct state_page, lanes), lanes,
				    sizeof(lanes)) ? "its state page cannot be read" : NULL;
		fence();
		err = gpupart_records_read(gp, reader, &now, sizeof(now));
		if (err)
			return err;
		why = why ? why : why_unknown(&reader->copy, lanes);
		result = why ? ctx_fail(gp, -ENODATA, "process %d: %s", reader->pid, why) :
			       step(gp, reader, lanes);
	}
	return result;
}
