// SPDX-License-Identifier: MIT
/*
 * The pace of reports, and what it says of the one that comes next. Must not know a clock, a
 * process nor a tenant.
 */
#include "qos_pace.h"

#define LATE 3	/* times as long as those before: it does not go on */

void pace_told(struct pace *pace, uint64_t milli, uint64_t reports, uint64_t told_ns)
{
	if (!reports)
		return;
	if (pace->told_ns && told_ns > pace->told_ns)
		pace->each_ns = (told_ns - pace->told_ns) / reports;
	pace->told_ns = told_ns;
	pace->each_milli = milli / reports;
}

uint64_t pace_part(const struct pace *pace, uint64_t now_ns)
{
	uint64_t since;

	if (!pace->each_ns || now_ns <= pace->told_ns)
		return 0;
	since = now_ns - pace->told_ns;
	if (since / LATE > pace->each_ns)
		return 0;
	if (since > pace->each_ns)
		since = pace->each_ns;
	return (unsigned __int128)pace->each_milli * since / pace->each_ns;
}
