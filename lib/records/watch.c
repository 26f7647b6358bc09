// SPDX-License-Identifier: MIT
/*
 * Watches the launches of a process. To do this, the code reads the process's rings again and
 * again. It computes a lower and an upper bound of the process's busy time. The exact busy time is
 * unknown, because the exact offset between the CPU's clock and the GPU's clock is unknown. Times
 * are in nanoseconds of the CPU's clock, except where a comment says otherwise.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/private.h"
#include "lib/records/clocks.h"
#include "lib/records/reader.h"

#define WINDOW_NS	1000000000	/* the code keeps launches for this time, and points of
					 * the clocks for twice this time */
#define PAUSE_US	20000		/* pause between two readings; the pause is
					 * shorter if rings fill faster */
#define PAUSE_LEAST_US	500
#define PAUSE_CLOCKS_US	3000		/* the pause while few bounds of the clocks are known */
#define POLL_NS		500000		/* maximum time in each reading for polling the
					 * end of a launch */
#define POLL_ENDS	4
#define NARROW_NS	10000		/* maximum time between two polls; after a
					 * longer time, the CPU ran other threads */
#define NR_NARROW	8		/* when the code has seen this number of ends within
					 * NARROW_NS, it polls no longer in this window */
/*
 * The longest time from the end of a kernel until the CPU sees its record. This value is an
 * assumption. On an H200, the record of an empty kernel is visible 8.3 us after the start of the
 * launch call. The launch itself takes most of this time.
 */
#define TRAVEL_NS	3000
/*
 * A record may be late by 1/LATE_PART of the time between two readings. Such a delay does not make
 * a bound wrong.
 */
#define LATE_PART	16
#define MAX_FUNCTIONS	1024
#define NR_PLACES	2048
#define MAX_LAUNCHES	(1u << 20)	/* Maximum number of launches in a window. The code needs a
					 * maximum, because a process may write times in the
					 * future. */
#define MAX_NS		(1ull << 61)

/* ------------------------------------------------------------------- observed launches */

enum { MOST, LEAST };	/* the upper and the lower bound of the busy time */

struct launch {
	uint64_t end;			/* GPU time */
	uint64_t submitted, function;	/* CPU counter at the launch's submission; the
					 * launch's function */
	unsigned char ring;
	bool after_missed;		/* the reader missed earlier launches in the same ring */
	bool before;			/* the launch ended before the first reading */
	bool runs;			/* the launch has not ended */
};

struct watch_ring {
	uint64_t known;			/* launches up to this number were read */
	uint64_t not_ended;		/* CPU counter at a moment when the next launch had not
					 * ended; for graphs, the one submitted at @running */
	int64_t last_end[2];		/* for each bound: the end of the last launch in
					 * the totals */
	uint64_t last_time;		/* the end of the same launch in GPU time */
	int64_t later_end[2];		/* end of the last launch that belongs to both this window
					 * and the next window */
	bool missed, stopped;
};

struct span {
	int64_t begin, end;
};

struct spans {
	struct span *list;
	unsigned int nr, room;
};

struct function {
	uint64_t key;
	struct gpupart_records_kernel kernel;	/* if the count of this entry is 0, this entry is
						 * free */
};

struct watch {
	bool begun;			/* true: new launches are counted */
	bool waits;			/* no launch was seen yet; the measured time
					 * begins with the first launch */
	bool over;			/* the process has ended */
	int64_t from;			/* the totals include everything that happened
					 * before this time */
	int64_t looked, looked_before;	/* times of the latest reading and of the reading before
					 * it */
	uint64_t unrecorded;
	bool all_known;
	unsigned int pause_us;
	uint64_t running;		/* the submission of a graph, see not_ended */
	unsigned int recent;		/* the ring in which the latest end was seen */
	int64_t active;			/* time of the latest end in ring @recent */
	unsigned int nr_narrow;		/* number of ends seen within NARROW_NS, halved
					 * in each window */
	struct points points[2];
	struct watch_ring rings[STATE_NR_RINGS];
	struct launch *launches;
	unsigned int nr, room;
	struct spans spans[2];
	struct function functions[NR_PLACES + 1];	/* a hash table by key; functions that do
							 * not fit into the table share the last
							 * entry */
	unsigned int nr_functions;
	/*
	 * Results of the latest reading: the launches that had not ended, and the times of
	 * graphs that the process had not recorded yet.
	 */
	struct launch pending[STATE_NR_RINGS + STATE_NR_GRAPHS];
	unsigned int nr_pending;
	struct gpupart_records_watched totals;
};

static void watch_free(struct watch *watch)
{
	free(watch->launches);
	free(watch->spans[MOST].list);
	free(watch->spans[LEAST].list);
	free(watch);
}

/*
 * Makes room for one more element of @size bytes at the end of *list. Returns NULL if memory is
 * short.
 */
static void *grown(void *list, unsigned int nr, unsigned int *room, size_t size)
{
	if (nr == *room) {
		unsigned int more = *room ? 2 * *room : 1024;
		void *new = realloc(*(void **)list, more * size);

		if (!new)
			return NULL;
		*(void **)list = new;
		*room = more;
	}
	return *(char **)list + nr * size;
}

/* ------------------------------------------------------------------- a window */

/* Neighbouring intervals of a ring arrive one after the other, so the code merges them. */
static void span_add(struct watch *watch, int mode, int64_t begin, int64_t end, int64_t to)
{
	struct spans *spans = &watch->spans[mode];
	struct span *last = spans->nr ? &spans->list[spans->nr - 1] : NULL;

	begin = begin > watch->from ? begin : watch->from;
	end = end < to ? end : to;
	if (begin >= end)
		return;
	if (last && last->end == begin) {
		last->end = end;
		return;
	}
	last = grown(&spans->list, spans->nr, &spans->room, sizeof(*last));
	if (last) {
		*last = (struct span){ begin, end };
		spans->nr++;
	} else {
		/* Launches that the reader missed may have been running in this time. */
		watch->all_known = false;
	}
}

static int by_begin(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return (x->begin > y->begin) - (x->begin < y->begin);
}

static uint64_t spans_union(struct spans *spans)
{
	int64_t end = INT64_MIN;
	uint64_t ns = 0;

	if (spans->nr)
		qsort(spans->list, spans->nr, sizeof(spans->list[0]), by_begin);
	for (unsigned int i = 0; i < spans->nr; i++) {
		const struct span *s = &spans->list[i];

		if (s->end <= end)
			continue;
		ns += s->end - (s->begin > end ? s->begin : end);
		end = s->end;
	}
	spans->nr = 0;
	return ns;
}

static struct function *function_of(struct watch *watch, uint64_t key)
{
	unsigned int at = (key >> 4) * 0x9e3779b97f4a7c15ull >> 32;
	struct function *f = &watch->functions[at % NR_PLACES];

	for (; f->kernel.count && f->key != key; f = &watch->functions[at % NR_PLACES])
		at++;
	if (f->kernel.count)
		return f;
	if (watch->nr_functions == MAX_FUNCTIONS)
		return &watch->functions[NR_PLACES];
	watch->nr_functions++;
	f->key = key;
	return f;
}

/*
 * Counts a launch of the function @key. The launch took at least @least ns and at most @most ns.
 * Its predecessor ended @since ns before it, so it took at most @since ns.
 */
static void function_count(struct watch *watch, uint64_t key, uint64_t since, uint64_t least,
			   uint64_t most)
{
	struct function *f = function_of(watch, key);

	f->kernel.count++;
	most = most < since ? most : since;
	f->kernel.least_ns += least < most ? least : most;
	f->kernel.most_ns += most;
	if (most > f->kernel.longest_ns)
		f->kernel.longest_ns = most;
}

/*
 * Intervals of graphs are not sorted. An interval may begin before the end of the previous
 * interval.
 */
static bool is_graph(const struct launch *launch)
{
	return launch->ring == RECORDS_GRAPH_RING;
}

static void launch_times(const struct watch *watch, const struct launch *launch, int64_t begin[2],
			 int64_t end[2])
{
	const struct watch_ring *ring = &watch->rings[launch->ring];
	const int64_t submitted = clocks_cpu_ns(launch->submitted);
	const int64_t low = watch->points[MOST].nr_hull ?
			    points_hull_at(&watch->points[MOST], launch->end) :
			    (int64_t)launch->end - watch->looked;
	int64_t high = watch->points[LEAST].nr_hull ?
		       -points_hull_at(&watch->points[LEAST], launch->end) : low;

	/* A record is not visible before it has arrived in memory. */
	high = high > low + TRAVEL_NS ? high : low + TRAVEL_NS;
	end[MOST] = launch->runs ? INT64_MAX : (int64_t)launch->end - low;
	end[LEAST] = launch->runs ? INT64_MAX : (int64_t)launch->end - high;
	for (int mode = MOST; mode <= LEAST; mode++) {
		if (end[mode] < submitted)
			end[mode] = submitted;
		begin[mode] = submitted > ring->later_end[mode] || is_graph(launch) ?
			      submitted : ring->later_end[mode];
		if (begin[mode] > end[mode])
			begin[mode] = end[mode];
	}
}

/*
 * Adds a launch to the window that ends at @to. Returns false if the launch also belongs to the
 * next window.
 */
static bool launch_add(struct watch *watch, const struct launch *launch, int64_t to)
{
	struct watch_ring *ring = &watch->rings[launch->ring];
	const int64_t submitted = clocks_cpu_ns(launch->submitted);
	int64_t end[2], begin[2];
	uint64_t since;

	launch_times(watch, launch, begin, end);
	if (launch->after_missed && is_graph(launch)) {
		watch->all_known = false;
	} else if (launch->after_missed) {
		begin[MOST] = ring->later_end[MOST];
		begin[LEAST] = end[LEAST];
	}
	if (!launch->before)
		for (int mode = MOST; mode <= LEAST; mode++)
			span_add(watch, mode, begin[mode], end[mode], to);
	memcpy(ring->later_end, end, sizeof(end));
	if (ring->stopped || (end[MOST] > to && !watch->over))
		return false;
	memcpy(ring->last_end, end, sizeof(end));
	since = launch->end - (is_graph(launch) ? launch->function : ring->last_time);
	ring->last_time = launch->end;
	watch->totals.missed += launch->after_missed;
	if (!launch->before && !launch->after_missed)
		function_count(watch, is_graph(launch) ? RECORDS_GRAPH_KEY : launch->function,
			       since, end[LEAST] - submitted, end[MOST] - submitted);
	return true;
}

static void window_pending(struct watch *watch, int64_t to)
{
	for (unsigned int i = 0; i < watch->nr_pending; i++) {
		const struct launch *launch = &watch->pending[i];
		int64_t begin[2], end[2];

		launch_times(watch, launch, begin, end);
		for (int mode = MOST; mode <= LEAST; mode++)
			span_add(watch, mode, begin[mode], end[mode], to);
		if (watch->over && !launch->runs)
			function_count(watch, RECORDS_GRAPH_KEY, UINT64_MAX,
				       end[LEAST] - begin[LEAST], end[MOST] - begin[MOST]);
	}
}

static void window_launches(struct watch *watch, int64_t to)
{
	unsigned int kept = 0;

	for (unsigned int n = 0; n < STATE_NR_RINGS; n++) {
		struct watch_ring *ring = &watch->rings[n];

		ring->stopped = false;
		memcpy(ring->later_end, ring->last_end, sizeof(ring->last_end));
	}
	for (unsigned int i = 0; i < watch->nr; i++) {
		const struct launch *launch = &watch->launches[i];
		struct watch_ring *ring = &watch->rings[launch->ring];

		if (launch_add(watch, launch, to))
			continue;
		ring->stopped = true;
		watch->launches[kept++] = *launch;
	}
	watch->nr = kept;
	window_pending(watch, to);
}

/*
 * Adds everything that happened before the previous reading to the totals. Now it is known which
 * launches had ended at the time of the previous reading.
 */
static void window_close(struct watch *watch)
{
	const int64_t to = watch->looked_before;
	const uint64_t ns = to - watch->from;

	if (watch->waits || to <= watch->from)
		return;
	points_hull(&watch->points[MOST], NULL);
	if (watch->points[MOST].nr_hull)
		points_hull(&watch->points[LEAST], &watch->points[MOST]);
	window_launches(watch, to);
	points_forget(&watch->points[MOST], 2 * WINDOW_NS);
	points_forget(&watch->points[LEAST], 2 * WINDOW_NS);
	watch->totals.ns += ns;
	watch->totals.least_ns += spans_union(&watch->spans[LEAST]);
	watch->totals.most_ns += watch->all_known ? spans_union(&watch->spans[MOST]) : ns;
	watch->spans[MOST].nr = 0;
	watch->all_known = true;
	watch->nr_narrow /= 2;
	watch->from = to;
}

/* ------------------------------------------------------------------- a reading */

/* Another process wrote these times and can choose any values, so avoid an overflow. */
static bool is_sane(const struct records_entry *launch)
{
	return launch->submitted && launch->time < MAX_NS &&
	       (uint64_t)clocks_cpu_ns(launch->submitted) < MAX_NS;
}

/* Adds a launch to the list. Returns false if memory is short. */
static bool entry_add(struct watch *watch, const struct reader_entry *entry, bool before)
{
	struct watch_ring *ring = &watch->rings[entry->ring];
	struct launch *launch;

	if (!is_sane(&entry->launch) || watch->nr == MAX_LAUNCHES) {
		watch->totals.missed += !before;
		ring->missed = !before;
		return true;
	}
	launch = grown(&watch->launches, watch->nr, &watch->room, sizeof(*launch));
	if (!launch)
		return false;
	*launch = (struct launch){
		.end = entry->launch.time, .submitted = entry->launch.submitted,
		.function = entry->launch.function, .ring = entry->ring,
		.after_missed = ring->missed, .before = before,
	};
	ring->missed = false;
	watch->nr++;
	return true;
}

static int64_t ahead_of(const struct records_entry *launch)
{
	return launch->time - clocks_cpu_ns(launch->submitted);
}

/* Reads the launches of ring @n that have ended since the last reading. */
static bool ring_look(struct gpupart_records_reader *reader, unsigned int n, uint64_t before)
{
	const struct state_ring *shown = &reader->copy.rings[n];
	const unsigned int entries = records_entries(n);
	struct watch *watch = reader->watch;
	struct watch_ring *ring = &watch->rings[n];
	const struct records_entry *last = NULL, *best = NULL;
	uint64_t known = ring->known;
	int64_t seen;
	bool first = !watch->begun;

	if (first)
		known = shown->folded > records_base(n) ? shown->folded - 1 : shown->folded;
	if (shown->folded > known && shown->folded - known >= entries) {
		watch->totals.missed += shown->folded - known - entries + 1;
		known = shown->folded - entries + 1;
		ring->missed = true;
	}
	reader->nr_entries = 0;
	if (shown->folded > known)
		reader_ring(reader, n, known + 1, shown->folded);
	seen = clocks_cpu_ns(records_counter());
	for (unsigned int i = 0; i < reader->nr_entries; i++) {
		const struct records_entry *launch = &reader->entries[i].launch;

		if (!entry_add(watch, &reader->entries[i], first))
			return false;
		if (!is_sane(launch))
			continue;
		if (ring->not_ended &&
		    (n == RECORDS_GRAPH_RING ? launch->submitted == watch->running : !i))
			points_add(&watch->points[LEAST], launch->time,
				   clocks_cpu_ns(ring->not_ended) - TRAVEL_NS -
				   (seen - clocks_cpu_ns(ring->not_ended)) / LATE_PART);
		last = launch;
		if (!best || ahead_of(launch) < ahead_of(best))
			best = launch;
	}
	if (last) {
		/* The process writes the cells of graphs itself, so polling them shows nothing. */
		if (n != RECORDS_GRAPH_RING)
			watch->recent = n;
		watch->active = watch->looked;
		points_add(&watch->points[MOST], last->time, seen);
		points_add(&watch->points[LEAST], best->time, clocks_cpu_ns(best->submitted));
	}
	known += reader->nr_entries;
	ring->known = first ? shown->folded : known;
	ring->not_ended = shown->issued > known ? before : 0;
	if (reader->nr_entries > entries / 4 && watch->pause_us > PAUSE_LEAST_US)
		watch->pause_us /= 2;
	return true;
}

static void pending_add(struct watch *watch, unsigned int ring, uint64_t submitted, uint64_t end,
			bool runs)
{
	if (is_sane(&(struct records_entry){ .time = end, .submitted = submitted }))
		watch->pending[watch->nr_pending++] = (struct launch){
			.end = end, .submitted = submitted, .ring = ring, .runs = runs,
		};
}

/* If ring @n has an outstanding launch, reads the launch that will end next. */
static void ring_running(struct gpupart_records_reader *reader, unsigned int n)
{
	const struct state_ring *shown = &reader->copy.rings[n];
	const uint64_t seq = reader->watch->rings[n].known + 1;
	struct records_note note;

	if (shown->issued >= seq && !shown->lost &&
	    reader_section(reader, offsetof(struct records_section,
					    notes[records_first(n) + seq % records_entries(n)]),
			   &note, sizeof(note)))
		pending_add(reader->watch, n, note.submitted, 0, true);
}

/*
 * If a launch ends between two polls, the times of the two polls give both bounds of the offset. So
 * the function polls one ring for a while. It chooses the ring in which the latest end was seen.
 */
static void poll_ends(struct gpupart_records_reader *reader)
{
	struct watch *watch = reader->watch;
	const unsigned int n = watch->recent, entries = records_entries(n);
	uint64_t seq = watch->rings[n].known + 1;
	const int64_t start = clocks_cpu_ns(records_counter());
	struct records_cell cell;
	int64_t asked, answered, not_ended = 0;

	for (int ends = 0; ends < POLL_ENDS; ) {
		const size_t at = offsetof(struct records_section,
					   cells[records_first(n) + seq % entries]);

		asked = clocks_cpu_ns(records_counter());
		if (asked - start > POLL_NS || !reader_section(reader, at, &cell, sizeof(cell)))
			return;
		answered = clocks_cpu_ns(records_counter());
		if (!records_reached(&cell, seq)) {
			not_ended = asked;
			continue;
		}
		/* If a reader has seen the launch's number, it can also read the launch's time. */
		if (not_ended && reader_section(reader, at, &cell, sizeof(cell)) &&
		    records_has(&cell, seq) && cell.time < MAX_NS) {
			points_add(&watch->points[MOST], cell.time, answered);
			/* A record may be late, so compare the first ends with later ends, too. */
			if (answered - not_ended < NARROW_NS && watch->nr_narrow++ > NR_NARROW / 2)
				points_add(&watch->points[LEAST], cell.time, not_ended - TRAVEL_NS);
			ends++;
		}
		not_ended = 0;
		seq++;
	}
}

static struct watch *watch_new(const struct gpupart_records *now, int64_t at)
{
	struct watch *watch = calloc(1, sizeof(*watch));

	if (!watch)
		return NULL;
	watch->from = watch->looked = at;
	watch->points[MOST].sign = 1;
	watch->points[LEAST].sign = -1;
	watch->unrecorded = now->unrecorded;
	watch->all_known = true;
	watch->begun = watch->waits = !now->on;
	for (unsigned int n = 0; watch->waits && n < STATE_NR_RINGS; n++)
		watch->rings[n].known = records_base(n);
	return watch;
}

/*
 * The measured time begins at the first launch or at the previous reading, whichever is later.
 */
static void first_launch(struct watch *watch, const struct gpupart_records *now)
{
	int64_t first = INT64_MAX;

	if (!watch->waits)
		return;
	watch->from = watch->looked_before;
	watch->waits = !now->issued && !now->unrecorded && !now->graphs;
	for (unsigned int i = 0; i < watch->nr + watch->nr_pending; i++) {
		const struct launch *launch = i < watch->nr ? &watch->launches[i] :
					      &watch->pending[i - watch->nr];

		if (clocks_cpu_ns(launch->submitted) < first)
			first = clocks_cpu_ns(launch->submitted);
	}
	/* This launch may have been submitted after the reading began. */
	if (first > watch->from && first != INT64_MAX)
		watch->from = first;
}

static bool look(struct gpupart_records_reader *reader, const struct gpupart_records *now,
		 uint64_t before)
{
	struct watch *watch = reader->watch;

	if (!now->all_known || now->unrecorded != watch->unrecorded)
		watch->all_known = false;
	watch->unrecorded = now->unrecorded;
	watch->pause_us += watch->pause_us / 8;
	if (!watch->pause_us || watch->pause_us > PAUSE_US)
		watch->pause_us = PAUSE_US;
	watch->nr_pending = 0;
	for (unsigned int n = 0; n < STATE_NR_RINGS; n++) {
		if (!ring_look(reader, n, before))
			return false;
		ring_running(reader, n);
	}
	for (unsigned int n = 0; n < reader->copy.nr_graphs; n++) {
		const uint64_t since = reader->copy.graph[n].since, left = reader_graph(reader, n);

		pending_add(watch, RECORDS_GRAPH_RING, since, reader->graphs[n].end.time, left);
		if (since && left) {
			watch->running = since;
			watch->rings[RECORDS_GRAPH_RING].not_ended = before;
		}
	}
	watch->begun = true;
	first_launch(watch, now);
	return true;
}

int gpupart_records_watch(struct gpupart *gp, struct gpupart_records_reader *reader,
			  struct gpupart_records *now, unsigned int *pause_us)
{
	struct watch *watch = reader->watch;
	struct records_cell cell;
	uint64_t before;
	bool lives;

	clocks_measure();
	before = records_counter();
	lives = reader_lives(reader);
	/* Between the two lines above, the process may have launched and ended. */
	if (!lives)
		before = records_counter();
	*pause_us = PAUSE_US;
	if (!reader_read(reader, now) || (!lives && !watch))
		return ctx_fail(gp, -ESRCH, "process %d has ended, or executes another program now",
				reader->pid);
	/* Open the file now, because its name disappears when the process ends. */
	reader_section(reader, 0, &cell, sizeof(cell));
	if (!watch)
		watch = reader->watch = watch_new(now, clocks_cpu_ns(before));
	reader->watch_free = watch_free;
	if (watch) {
		watch->looked_before = watch->looked;
		watch->looked = clocks_cpu_ns(before);
	}
	if (!watch || (now->on && !look(reader, now, before)))
		return ctx_fail(gp, -ENOMEM, "out of memory for watching process %d", reader->pid);
	if (!lives) {
		/* The process has ended, so no more launches can end. */
		watch->over = true;
		watch->looked_before = watch->looked;
		return ctx_fail(gp, -ESRCH, "process %d has ended", reader->pid);
	}
	if (watch->looked - watch->active < WINDOW_NS)
		poll_ends(reader);
	if (watch->looked - watch->from > WINDOW_NS)
		window_close(watch);
	*pause_us = watch->pause_us;
	if (watch->nr_narrow < NR_NARROW && watch->looked - watch->active < WINDOW_NS &&
	    *pause_us > PAUSE_CLOCKS_US)
		*pause_us = PAUSE_CLOCKS_US;
	return 0;
}

/* -------------------------------------------------------------------- the result */

static int by_most(const void *a, const void *b)
{
	const struct gpupart_records_kernel *x = a, *y = b;

	return (x->most_ns < y->most_ns) - (x->most_ns > y->most_ns);
}

/*
 * Finds the name of a function. The state page of the process may contain the name that the driver
 * reports for the function.
 */
static void name_find(const struct state_records *copy, struct function *f)
{
	if (f->key == RECORDS_GRAPH_KEY)
		strcpy(f->kernel.name, RECORDS_GRAPH_NAME);
	for (unsigned int i = 0; !f->kernel.name[0] && i < STATE_NR_FUNCTIONS; i++)
		if ((copy->functions[i].key | 1) == (f->key | 1))
			state_dir_copy_text(f->kernel.name, sizeof(f->kernel.name),
					  copy->functions[i].name,
					  sizeof(copy->functions[i].name));
}

void gpupart_records_watched(struct gpupart_records_reader *reader,
			     struct gpupart_records_watched *watched)
{
	struct watch *watch = reader->watch;
	struct gpupart_records_kernel *to;

	memset(watched, 0, sizeof(*watched));
	if (!watch)
		return;
	window_close(watch);
	*watched = watch->totals;
	for (unsigned int i = 0; i <= NR_PLACES; i++) {
		const struct gpupart_records_kernel *from = &watch->functions[i].kernel;

		if (!from->count)
			continue;
		name_find(&reader->copy, &watch->functions[i]);
		/* A function that was unloaded and loaded again has several keys. */
		to = reader_row(watched->kernels, sizeof(*to), &watched->nr_kernels, from->name);
		to->count += from->count;
		to->least_ns += from->least_ns;
		to->most_ns += from->most_ns;
		if (from->longest_ns > to->longest_ns)
			to->longest_ns = from->longest_ns;
	}
	qsort(watched->kernels, watched->nr_kernels, sizeof(watched->kernels[0]), by_most);
}
