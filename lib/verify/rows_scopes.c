// SPDX-License-Identifier: MIT
/* These rows test the scopes that can have a set. They also test which of several sets applies. */
#include "lib/verify/verify.h"

static int row_process(struct verify *v)
{
	struct gpupart_tpcset set = verify_third(v, 0);

	int err = gpupart_process_set(v->gp, v->gpu, &set);

	return err ? err : verify_ran(v, v->stream[VERIFY_NON_BLOCKING], &set, NULL);
}

static int row_limit(struct verify *v)
{
	struct gpupart_tpcset limit = verify_third(v, 1);
	int err, ran;

	err = gpupart_limit_set(v->gp, v->gpu, &limit);
	if (err)
		return err;
	ran = verify_ran(v, v->stream[VERIFY_NON_BLOCKING], &limit, NULL);
	err = gpupart_limit_set(v->gp, v->gpu, NULL);
	return err ? err : ran;
}

/*
 * A set on one stream confines the launches on that stream. Launches on another stream run as
 * before.
 */
static int row_stream(struct verify *v)
{
	void *stream = v->stream[v->row->stream], *other = v->stream[v->row->other];
	struct gpupart_tpcset set = verify_third(v, 2), process = verify_third(v, 0);
	int err, ran;

	err = gpupart_process_set(v->gp, v->gpu, &process);
	if (!err)
		err = gpupart_stream_set(v->gp, v->gpu, stream, &set);
	if (err)
		return err;
	ran = verify_ran(v, stream, &set, NULL);
	if (ran == 1)
		ran = verify_ran(v, other, &process, NULL);
	err = gpupart_stream_set(v->gp, v->gpu, stream, NULL);
	if (ran == 1 && !err)
		ran = verify_ran(v, stream, &process, NULL);
	return err ? err : ran;
}

static int row_next(struct verify *v)
{
	struct gpupart_tpcset process = verify_third(v, 0), next = verify_third(v, 1);
	int ran = gpupart_process_set(v->gp, v->gpu, &process);

	if (ran)
		return ran;
	ran = verify_ran(v, v->stream[VERIFY_NON_BLOCKING], &next, &next);
	/* The set applies to one launch. The next launch gets the process's set again. */
	return ran == 1 ? verify_ran(v, v->stream[VERIFY_NON_BLOCKING], &process, NULL) : ran;
}

static int row_precedence(struct verify *v)
{
	struct gpupart_tpcset process = verify_third(v, 0), stream = verify_third(v, 1);
	struct gpupart_tpcset next = verify_third(v, 2);
	int err, ran;

	err = gpupart_process_set(v->gp, v->gpu, &process);
	if (!err)
		err = gpupart_stream_set(v->gp, v->gpu, v->stream[VERIFY_NON_BLOCKING], &stream);
	if (err)
		return err;
	ran = verify_ran(v, v->stream[VERIFY_NON_BLOCKING], &next, &next);
	if (ran == 1)
		ran = verify_ran(v, v->stream[VERIFY_NON_BLOCKING], &stream, NULL);
	if (ran == 1)
		ran = verify_ran(v, v->stream[VERIFY_BLOCKING], &process, NULL);
	err = gpupart_stream_set(v->gp, v->gpu, v->stream[VERIFY_NON_BLOCKING], NULL);
	return err ? err : ran;
}

/*
 * A launch uses the TPCs that are in both the limit and the set. If there are no such TPCs, the
 * launch uses the limit and is counted.
 */
static int row_limit_wins(struct verify *v)
{
	struct gpupart_tpcset a = verify_third(v, 0), b = verify_third(v, 1);
	struct gpupart_tpcset c = verify_third(v, 2), had, limit;
	bool has = gpupart_limit_get(v->gpu, &had);
	struct gpupart_counters before, after;
	int err, ran;

	limit = gpupart_tpcset_or(&a, &b);
	err = gpupart_limit_set(v->gp, v->gpu, &limit);
	if (err)
		return err;
	/*
	 * The set has TPCs outside the limit. The launch may use only the TPCs inside the limit.
	 */
	b = gpupart_tpcset_or(&b, &c);
	err = gpupart_process_set(v->gp, v->gpu, &b);
	b = verify_third(v, 1);
	ran = err ? err : verify_ran(v, v->stream[VERIFY_NON_BLOCKING], &b, NULL);
	gpupart_counters_get(&before);
	if (ran == 1)
		ran = verify_ran(v, v->stream[VERIFY_NON_BLOCKING], &limit, &c);
	gpupart_counters_get(&after);
	if (ran == 1 && after.widened_empty == before.widened_empty) {
		verify_detail(
			v,
			"a launch was not counted as widened, although its set is wholly outside the limit");
		ran = 0;
	}
	err = gpupart_limit_set(v->gp, v->gpu, has ? &had : NULL);
	return err ? err : ran;
}

#define FOR_STREAM(name, words, stream_of_row, other_of_row) \
	{ "stream-" name, "a set of " words " stream confines it and no other", row_stream, \
	  .flags = NEEDS_THREE | NEEDS_STREAMS, .stream = stream_of_row, .other = other_of_row }

const struct verify_row verify_rows_scopes[] = {
	{ "process", "a set of the process confines it", row_process, .flags = NEEDS_THREE },
	{ "limit", "a limit confines launches", row_limit, .flags = NEEDS_THREE },
	FOR_STREAM("blocking", "a blocking", VERIFY_BLOCKING, VERIFY_NON_BLOCKING),
	FOR_STREAM("non-blocking", "a non-blocking", VERIFY_NON_BLOCKING, VERIFY_PRIORITY),
	FOR_STREAM("priority", "a priority", VERIFY_PRIORITY, VERIFY_BLOCKING),
	FOR_STREAM("legacy", "the legacy default", VERIFY_LEGACY, VERIFY_NON_BLOCKING),
	FOR_STREAM("per-thread", "the per-thread default", VERIFY_PER_THREAD, VERIFY_NON_BLOCKING),
	{ "next", "a next-launch set confines one launch and no second", row_next,
	  .flags = NEEDS_THREE },
	{ "precedence", "next launch over stream over process", row_precedence,
	  .flags = NEEDS_THREE | NEEDS_STREAMS },
	{ "limit-wins",
	  "no set escapes the limit; one wholly outside is widened to it, and counted",
	  row_limit_wins, .flags = NEEDS_THREE },
	{ 0 }
};
