// SPDX-License-Identifier: MIT
/*
 * Estimates the unreported work from the time between reports. Remembers work that was counted
 * before its report.
 */
#include "cli/qos/pace.h"

#define LATE 3	/* after this number of intervals, a report is not expected any more */

uint64_t pace_add(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t above(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

void pace_report(struct pace *pace, uint64_t work, uint64_t reports, uint64_t reported_ns)
{
	pace->reported = pace_add(pace->reported, work);
	if (!reports)
		return;
	if (pace->reported_ns && reported_ns > pace->reported_ns)
		pace->each_ns = (reported_ns - pace->reported_ns) / reports;
	pace->reported_ns = reported_ns;
	pace->each = work / reports;
}

/* Returns whether unreported work can be estimated at @now_ns. */
static bool is_known(const struct pace *pace, uint64_t now_ns)
{
	return pace->each_ns && above(pace->reported_ns, now_ns) <= pace->each_ns &&
	       above(now_ns, pace->reported_ns) / LATE <= pace->each_ns;
}

uint64_t pace_part(const struct pace *pace, uint64_t now_ns)
{
	uint64_t since = above(now_ns, pace->reported_ns);

	if (!is_known(pace, now_ns))
		return 0;
	if (since > pace->each_ns)
		since = pace->each_ns;
	return (unsigned __int128)pace->each * since / pace->each_ns;
}

uint64_t pace_take(struct pace *pace, uint64_t now_ns, bool any, bool *exact)
{
	uint64_t work = 0, done, part = pace_part(pace, now_ns);
	bool known = is_known(pace, now_ns);

	if ((pace->reported || part) && !(known && pace->known))
		*exact = false;
	/* The first interval may have begun before the measurement. */
	if (!pace->begun)
		pace->ahead = pace_add(pace->ahead, part);
	pace->begun = pace->each_ns;
	pace->known = known;
	pace->part = part;
	if (!any)
		return 0;
	done = pace_add(pace_add(pace->reported, pace->owed), part);
	if (done > pace->ahead) {
		work = done - pace->ahead;
		pace->ahead = part;
	} else {
		pace->ahead -= done - part;
	}
	pace->reported = pace->owed = 0;
	return work;
}

void pace_discard(struct pace *pace, uint64_t now_ns)
{
	uint64_t part = pace_part(pace, now_ns);

	pace->owed = pace_add(pace->owed, above(pace->part, pace->ahead));
	pace->ahead = pace_add(part, above(pace->ahead, pace->part));
	pace->part = part;
	pace->reported = 0;
	pace->begun = pace->each_ns;
	pace->known = is_known(pace, now_ns);
}

uint64_t pace_remaining(const struct pace *pace)
{
	return above(pace_add(pace->reported, pace->owed), pace->ahead);
}
