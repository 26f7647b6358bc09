// SPDX-License-Identifier: MIT
/*
 * Tests the counts of launches. The numbers of issued, ended and outstanding launches must be
 * exact. Unknown launches must not count as idle.
 */
#include <pthread.h>
#include "tests/unit/records/gpu.h"

#define CTX(n)		((void *)(uintptr_t)(0x7000 + 64 * (n)))
#define NR_THREADS	8
#define NR_STREAMS	4	/* of each thread */
#define NR_LAUNCHES	20000

static struct stream streams[NR_THREADS][NR_STREAMS], many[100];

/* Each stream ends its launches in order, and has at most 40 outstanding launches. */
static void *launch_some(void *arg)
{
	struct stream *mine = arg;
	struct launched waiting[NR_STREAMS][40] = { 0 };
	unsigned int random = (uintptr_t)arg;

	for (int i = 0; i < NR_LAUNCHES; i++)
		for (int s = 0; s < NR_STREAMS; s++) {
			end(waiting[s][i % 40]);
			waiting[s][i % 40] = launch(&mine[s]);
			random = random * 1103515245 + 12345;
			if (random >> 16 & 1)
				continue;
			/* Ends all waiting launches. */
			for (int j = 1; j <= 40; j++) {
				end(waiting[s][(i + j) % 40]);
				waiting[s][(i + j) % 40].cell = NULL;
			}
		}
	for (int s = 0; s < NR_STREAMS; s++)
		for (int j = 0; j < 40 - 3; j++)
			end(waiting[s][(NR_LAUNCHES + j) % 40]);
	return NULL;
}

/* While threads launch, a later call of busy() may give a different result. */
static uint64_t outstanding_now(void)
{
	struct gpupart_records_reader *reader;
	struct gpupart_records r;
	bool good = !gpupart_records_open(gp, 0, PCI, &reader) &&
		    !gpupart_records_read(gp, reader, &r, sizeof(r));

	gpupart_records_close(reader);
	return good ? r.outstanding : ~0ull;
}

static void of_threads(void)
{
	const uint64_t all = (uint64_t)NR_THREADS * NR_STREAMS * NR_LAUNCHES;
	pthread_t threads[NR_THREADS];
	struct gpupart_records r;

	for (int t = 0; t < NR_THREADS; t++) {
		for (int s = 0; s < NR_STREAMS; s++)
			streams[t][s].ctx = CTX(0);
		pthread_create(&threads[t], NULL, launch_some, streams[t]);
	}
	for (int i = 0; i < 20; i++)
		if (outstanding_now() > NR_THREADS * NR_STREAMS * 41)
			tap_ok(false, "more is outstanding than can be");
	for (int t = 0; t < NR_THREADS; t++)
		pthread_join(threads[t], NULL);
	tap_ok(read_own(&r) && r.issued == all && r.ended + r.outstanding == all &&
	       r.outstanding <= NR_THREADS * NR_STREAMS * 3 && !r.unrecorded && !r.unknown,
	       "%d threads with %d streams each: %lu issued, %lu ended, %lu outstanding",
	       NR_THREADS, NR_STREAMS, r.issued, r.ended, r.outstanding);
	tap_ok(r.nr_functions == 1 && r.functions[0].count + r.untimed == r.ended &&
	       r.kernels_ns >= r.busy_ns && r.busy_ns && r.last_end_ns,
	       "all ended ones are in the totals: %lu of the function, %lu untimed",
	       r.functions[0].count, r.untimed);
}

static void of_one(void)
{
	struct stream *s = &many[0];
	struct launched a, b, c;

	tap_ok(reads(0, 0, 0, 0, 0), "none at first");
	s->ctx = CTX(0);
	a = launch(s);
	b = launch(s);
	c = launch(s);
	tap_ok(a.cell && b.cell && c.cell && a.cell != b.cell && reads(3, 0, 3, 0, 0),
	       "three are outstanding");
	end(a);
	tap_ok(reads(3, 1, 2, 0, 0), "one has ended");
	/*
	 * If launches end out of order, the stream stays busy. In measurements, launches of a
	 * stream never ended out of order.
	 */
	end(c);
	tap_ok(reads(3, 1, 2, 0, 0), "a record that is late or lost keeps the ones behind it busy");
	end(b);
	tap_ok(reads(3, 3, 0, 0, 0), "all have ended");
}

static void full_ring(void)
{
	static struct launched l[RECORDS_LONG + 100];
	struct stream *s = &many[0];
	int recorded = 0;

	s->ctx = CTX(0);
	for (int i = 0; i < RECORDS_LONG + 100; i++) {
		l[i] = launch(s);
		recorded += l[i].cell != NULL;
	}
	tap_ok(recorded == RECORDS_LONG && reads(RECORDS_LONG, 0, RECORDS_LONG, 100, 100),
	       "a full ring: 100 launches are unrecorded, and unknown");
	for (int i = 0; i < RECORDS_LONG; i++)
		end(l[i]);
	tap_ok(reads(RECORDS_LONG, RECORDS_LONG, 0, 100, 100),
	       "all others have ended: those are unknown yet");
	l[0] = launch(s);
	tap_ok(l[0].cell && reads(RECORDS_LONG + 1, RECORDS_LONG, 1, 100, 100), "one more");
	end(l[0]);
	tap_ok(reads(RECORDS_LONG + 1, RECORDS_LONG + 1, 0, 100, 0),
	       "by the order of the stream they have ended, too");
}

static void used_slot(void)
{
	unsigned char before[TMD_MAX_SIZE];
	struct stream *s = &many[0];
	struct launched l;

	s->ctx = CTX(0);
	build(s);
	s->tmd[SLOT(2)] = 1;
	s->tmd[ADDRESS(2)] = 0x40;
	l = launch_built(s, 1);
	tap_ok(l.cell && s->tmd[SLOT(2)] == 1 && s->tmd[ADDRESS(2)] == 0x40 &&
	       s->tmd[SLOT(1)] == 1, "slot 2 is in use: slot 1");
	end(l);
	build(s);
	s->tmd[SLOT(1)] = s->tmd[SLOT(2)] = 1;
	memcpy(before, s->tmd, sizeof(before));
	launch_built(s, 1);
	tap_ok(!memcmp(before, s->tmd, sizeof(before)) && reads(1, 1, 0, 1, 1),
	       "both are in use: unrecorded, and nothing is written");
	end(launch(s));
	tap_ok(reads(2, 2, 0, 1, 0), "and it has ended with the next one");
	build(s);
	s->tmd[map.layout->version_byte]++;
	memcpy(before, s->tmd, sizeof(before));
	launch_built(s, 1);
	tap_ok(!memcmp(before, s->tmd, sizeof(before)) && reads(2, 2, 0, 2, 1),
	       "a TMD of another version: unrecorded, and nothing is written");
}

static void many_streams(void)
{
	struct launched l[100];
	int recorded = 0;

	for (int i = 0; i < 100; i++) {
		many[i].ctx = CTX(0);
		l[i] = launch(&many[i]);
		recorded += l[i].cell != NULL;
	}
	tap_ok(recorded == 64 && reads(64, 0, 64, 36, 36), "the 65th stream has no ring");
	for (int i = 0; i < 100; i++)
		end(l[i]);
	tap_ok(reads(64, 64, 0, 36, 36), "the ends of its launches are unknown");
	records_stream_gone(records, (uintptr_t)many[0].tmd);
	tap_ok(launch(&many[99]).cell, "one goes: another has its ring");
}

static void stream_reused(void)
{
	struct stream *s = &many[0];
	struct launched a, b, other;

	s->ctx = many[1].ctx = CTX(0);
	for (int i = 1; i < 64; i++) {
		many[i].ctx = CTX(0);
		end(launch(&many[i]));
	}
	a = launch(s);
	records_stream_gone(records, (uintptr_t)s->tmd);
	other = launch(&many[64]);
	many[64].ctx = CTX(0);
	tap_ok(!other.cell, "a stream that went with work outstanding keeps its ring");
	b = launch(s);
	tap_ok(!b.cell, "its TMD's address comes again: another stream, which has none");
	end(a);
	b = launch(s);
	tap_ok(b.cell && b.cell != a.cell, "until that work has ended");
	end(b);
	tap_ok(reads(65, 65, 0, 2, 2), "and all is counted");
}

/*
 * First there is work with records, and then work without records. The stream of the first work
 * is destroyed, and a new stream reuses its ring.
 */
static void unrecorded_gone(void)
{
	const uint64_t all = RECORDS_LONG + RECORDS_SHORT + 65;
	static struct launched l[RECORDS_LONG + 1];
	struct stream *s = &many[0], *next = &many[64];
	struct launched other;

	for (int i = 0; i <= 65; i++)
		many[i].ctx = CTX(0);
	for (int i = 0; i <= RECORDS_LONG; i++)
		l[i] = launch(s);
	for (int i = 0; i < RECORDS_LONG; i++)
		end(l[i]);
	records_stream_gone(records, (uintptr_t)s->tmd);
	for (int i = 1; i < 64; i++)
		end(launch(&many[i]));
	tap_ok(!l[RECORDS_LONG].cell && reads(RECORDS_LONG + 63, RECORDS_LONG + 63, 0, 1, 1),
	       "a stream went, and its last launch has no record");
	records_stream_gone(records, (uintptr_t)many[2].tmd);
	other = launch(&many[65]);
	end(other);
	tap_ok(other.cell && reads(RECORDS_LONG + 64, RECORDS_LONG + 64, 0, 1, 1) &&
	       !records->shown->nowhere, "another ring is taken before that one");
	l[0] = launch(next);
	tap_ok(l[0].cell && reads(RECORDS_LONG + 65, RECORDS_LONG + 64, 1, 1, 1),
	       "the last ring: another stream has it");
	end(l[0]);
	tap_ok(reads(RECORDS_LONG + 65, RECORDS_LONG + 65, 0, 1, 1),
	       "what that stream ends tells nothing of the other's launch");
	for (int i = 0; i <= RECORDS_SHORT; i++)
		l[i] = launch(&many[63]);
	for (int i = 0; i < RECORDS_SHORT; i++)
		end(l[i]);
	records_context_gone(records, CTX(0));
	tap_ok(reads(all, all, 0, 2, 2),
	       "a launch without a record is the last one of its context");
	records_context(records, &cuda, CTX(1));
	tap_ok(reads(all, all, 0, 2, 1),
	       "the context's memory is taken again: it is over");
}

/*
 * Returns true if one stream has made @issued launches and @outstanding of these launches have
 * not ended. Sets *busy to the time of the ended launches.
 */
static bool reads_of(const struct stream *s, uint64_t issued, uint64_t outstanding,
		     uint64_t *busy)
{
	struct gpupart_records_reader *reader;
	struct gpupart_records r;
	bool good = !gpupart_records_open(gp, 0, PCI, &reader) &&
		    !records_read_ring(gp, reader, records,
				       records_ring_of(records, (uintptr_t)s->tmd), &r, sizeof(r));

	gpupart_records_close(reader);
	*busy = r.busy_ns;
	good = good && r.on && r.issued == issued && r.outstanding == outstanding &&
	       r.ended + outstanding == issued && r.kernels_ns == r.busy_ns && !r.nr_functions;
	if (!good)
		printf("# issued %lu ended %lu outstanding %lu busy %lu\n", r.issued, r.ended,
		       r.outstanding, r.busy_ns);
	return good;
}

#define SECOND	1000000000ull
#define AGES	(100000 * SECOND)

/*
 * Changes the records. After the change, @at on the GPU's clock is the time of the launch's
 * submission.
 */
static void submitted_at(struct launched launched, uint64_t at)
{
	const struct records_cell *cells = records->contexts[0].mapped;
	const uint64_t ago = gpu_now() - at, counter = records_counter();

	if (launched.cell)
		records->section->notes[launched.cell - cells].submitted = counter -
			(uint64_t)(((__uint128_t)ago << 32) / records->shown->clock.scale);
}

/*
 * Several launches are submitted before the first launch ends. Each launch must get its own time.
 */
static bool run(struct stream *s, unsigned int nr, uint64_t ns, uint64_t *at)
{
	struct launched launched[32];

	for (unsigned int i = 0; i < nr; i++) {
		launched[i] = launch(s);
		submitted_at(launched[i], *at);
	}
	for (unsigned int i = 0; i < nr; i++) {
		if (!launched[i].cell)
			return false;
		*at += ns;
		end_at(launched[i], *at);
	}
	return true;
}

/* Makes launches. These launches cause the folding of earlier launches. */
static void warm(struct stream *s, uint64_t *at)
{
	run(s, 16, 0, at);
	run(s, 16, 0, at);
}

static void of_streams(void)
{
	struct stream *a = &many[0], *b = &many[1], *later = &many[64];
	uint64_t at = gpu_now() - AGES, end_of_b, busy, before;

	for (int i = 0; i <= 64; i++)
		many[i].ctx = CTX(0);
	tap_ok(reads_of(a, 0, 0, &busy) && !busy, "a stream that nothing was launched on");
	warm(a, &at);
	reads_of(a, 32, 0, &before);
	run(a, 20, SECOND, &at);
	tap_ok(reads_of(a, 52, 0, &busy) && busy - before <= 20 * SECOND &&
	       busy - before > 19 * SECOND, "20 launches of 1 s: busy for %lu ns", busy - before);
	tap_ok(run(b, 16, 500 * SECOND, &at) && reads_of(a, 52, 0, &before) && before == busy,
	       "another stream is not counted");
	launch(a);
	tap_ok(reads_of(a, 53, 1, &before) && before == busy && reads_of(b, 16, 0, &before) &&
	       reads(69, 68, 1, 0, 0), "one outstanding");
	for (int i = 2; i < 64; i++)
		run(&many[i], 1, 1, &at);
	warm(&many[2], &at);
	end_of_b = at;
	run(b, 20, 500 * SECOND, &end_of_b);
	records_stream_gone(records, (uintptr_t)b->tmd);
	run(later, 1, 0, &at);
	/* These launches show the current time. */
	for (int i = 0; i < 16; i++)
		end(launch(&many[2]));
	tap_ok(reads_of(later, 1, 0, &before) && before < 400 * SECOND,
	       "a stream with another's ring, of which not all was folded, begins with %lu ns",
	       before);
	warm(later, &at);
	tap_ok(reads_of(later, 33, 0, &before) && before < 400 * SECOND,
	       "and when that is folded, still with %lu ns", before);
	at = end_of_b;
	warm(later, &at);
	reads_of(later, 65, 0, &before);
	tap_ok(run(later, 30, SECOND, &at) && reads_of(later, 95, 0, &busy) &&
	       busy - before <= 30 * SECOND && busy - before > 29 * SECOND,
	       "30 launches of 1 s: busy for %lu ns", busy - before);
}

static void contexts(void)
{
	struct stream *s = &many[0];
	struct launched a, b;

	s->ctx = CTX(1);
	tap_ok(!launch(s).cell && reads(0, 0, 0, 1, 1), "an unknown context");
	records_context(records, &cuda, CTX(1));
	a = launch(s);
	b = launch(s);
	end(a);
	tap_ok(reads(2, 1, 1, 1, 1), "is known");
	records_context_gone(records, CTX(1));
	tap_ok(reads(2, 1, 0, 1, 2), "it goes: what is outstanding becomes unknown");
	tap_ok(!launch(s).cell && reads(2, 1, 0, 2, 3), "launches in it are unrecorded");
	refuses_registered = 712;
	records_context(records, &cuda, CTX(1));
	b = launch(s);
	tap_ok(b.cell && b.cell != a.cell, "it comes again, the driver still has the old memory");
	end(b);
	tap_ok(reads(3, 2, 0, 2, 3), "which stays unknown");
	records_context_gone(records, CTX(1));
	refuses_registered = 0;
	records_context(records, &cuda, CTX(2));
	s->ctx = CTX(2);
	tap_ok(reads(3, 3, 0, 2, 2), "the driver took the old memory again: that work is over");
	b = launch(s);
	tap_ok(b.cell, "and launches are recorded there");
}

static void failed_launch(void)
{
	struct stream *s = &many[0];

	s->ctx = CTX(0);
	launch(s);
	records_launch_ends(0);
	tap_ok(reads(1, 0, 1, 0, 0), "a launch that was made");
	launch(s);
	records_launch_ends(719);
	tap_ok(reads(2, 0, 2, 0, 0), "an error of another one's keeps it busy");
	records_launch_ends(1);
	tap_ok(reads(2, 0, 2, 0, 0), "one call ends once");
	s = &many[1];
	s->ctx = CTX(0);
	launch(s);
	records_launch_ends(1);
	tap_ok(reads(3, 1, 2, 0, 0), "one that was not made has ended");
	launch(s);
	records_launch_begins();
	records_launch_ends(1);
	tap_ok(reads(4, 1, 3, 0, 0),
	       "a call that failed before its launch: the one before stays busy");
	s = &many[2];
	s->ctx = CTX(0);
	end(launch(s));
	tap_ok(reads(5, 2, 3, 0, 0), "and the stream goes on");
}

static void two_at_once(void)
{
	struct stream *s = &many[0];
	struct launched l;
	int nr = 0;

	s->ctx = CTX(0);
	end(launch(s));
	for (int i = 0; i < STATE_NR_RINGS; i++)
		if (records->rings[i].ctx)
			records->rings[i].ready = NULL;
	tap_ok(!launch(s).cell && !launch(s).cell && reads(1, 1, 0, 2, 2),
	       "two launches of one stream at once: nothing is known of it any more");
	/* The first of the two launches leaves the callback. */
	records_ring_of(records, (uintptr_t)s->tmd)->ready = CTX(0);
	tap_ok(!launch(s).cell && !launch(s).cell && reads(1, 1, 0, 4, 4),
	       "also after the first of the two has left the callback");
	many[1].ctx = CTX(0);
	end(launch(&many[1]));
	tap_ok(reads(2, 2, 0, 4, 4), "another stream has a ring");
	records_stream_gone(records, (uintptr_t)s->tmd);
	l = launch(s);
	tap_ok(l.cell && reads(3, 2, 1, 4, 4), "a new stream with this TMD has another ring");
	end(l);
	records_context_gone(records, CTX(0));
	tap_ok(reads(3, 3, 0, 4, 4), "the context is destroyed: nothing more is known yet");
	records_context(records, &cuda, CTX(1));
	tap_ok(reads(3, 3, 0, 4, 0), "the context's memory is used again: all has ended");
	for (int i = 0; i < 64; i++) {
		many[i].ctx = CTX(1);
		nr += launch(&many[i]).cell != NULL;
	}
	tap_ok(nr == 64 && reads(67, 3, 64, 4, 0), "and all 64 rings can be used");
}

static unsigned int nr_asked;

static cuda_result fake_name(const char **name, void *function)
{
	nr_asked++;
	*name = function == (void *)0x1000 ? "first" : "second";
	return 0;
}

static void launch_9(struct stream *s, uint64_t function)
{
	for (int i = 0; i < 9; i++) {
		build(s);
		end(launch_built(s, function));
	}
}

static void names(void)
{
	static const struct cuda_api asked = { .func_name = fake_name };
	struct stream *s = &many[0];
	struct gpupart_records r;

	s->ctx = CTX(0);
	launch_9(s, 0x1000);
	records_names(records->shown->functions, records, &asked);
	records_names(records->shown->functions, records, &asked);
	tap_ok(nr_asked == 1 && read_own(&r) && r.nr_functions == 1 &&
	       !strcmp(r.functions[0].name, "first"), "a function's name is asked for once");
	launch_9(s, 0x2000);
	records_module_gone(records);
	records_names(records->shown->functions, records, &asked);
	tap_ok(nr_asked == 1 && read_own(&r) && r.nr_functions == 2 &&
	       r.functions[0].count + r.functions[1].count == 18 &&
	       (!r.functions[0].name[0] || !r.functions[1].name[0]),
	       "not of one whose module was unloaded");
	launch_9(s, 0x1000);
	launch_9(s, 0x1000);
	records_names(records->shown->functions, records, &asked);
	tap_ok(nr_asked == 2 && read_own(&r) && r.nr_functions == 2 &&
	       r.functions[0].count + r.functions[1].count == 36,
	       "at the same address is another one, by the same name the same row");
}

static void forked(void)
{
	struct stream *s = &many[0];
	struct launched a, b;
	int status;
	pid_t pid;

	s->ctx = CTX(0);
	a = launch(s);
	fflush(stdout);
	pid = fork();
	if (!pid)
		_exit(launch(s).cell || !reads(0, 0, 0, 1, 1));
	waitpid(pid, &status, 0);
	b = launch(s);
	end(a);
	end(b);
	tap_ok(WIFEXITED(status) && reads(2, 2, 0, 0, 0) == true,
	       "a fork's child changes nothing of its parent's");
}

int main(void)
{
	static void (*const tests[])(void) = {
		of_threads, of_one, full_ring, used_slot, many_streams, stream_reused,
		unrecorded_gone, of_streams, contexts,
		failed_launch, two_at_once, names, forked,
	};

	for (unsigned int i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		gpu_child(tests[i]);
	return tap_done();
}
