// SPDX-License-Identifier: MIT
/*
 * Handles TPCs of programs that are not tenants. Decides which of these TPCs tenants give up. Finds
 * the tenants whose epoch was disturbed.
 */
#include "cli/qos/policy/internal.h"

static bool is_tenants(const struct qos_policy *p, unsigned int tpc)
{
	for (unsigned int i = 0; i < p->nr; i++)
		if (gpupart_tpcset_has(&p->actors[i].set, tpc))
			return true;
	return false;
}

void qos_find_held(struct qos_policy *p)
{
	struct gpupart_tpcset all = gpupart_tpcset_first(p->board.nr_tpcs);
	unsigned int least = 0, left;

	for (unsigned int i = 0; i < p->nr; i++)
		if (p->actors[i].state != QOS_GONE)
			least += p->actors[i].least;
	p->held = gpupart_tpcset_and(&p->board.held, &all);
	p->shared = (struct gpupart_tpcset){ 0 };
	left = qos_free(p);
	/* The floors have priority. First use TPCs that a tenant already has. */
	for (unsigned int round = 0; round < 2; round++)
		for (unsigned int t = p->board.nr_tpcs; t-- > 0 && left < least; ) {
			if (!gpupart_tpcset_has(&p->held, t) || (!round && !is_tenants(p, t)))
				continue;
			gpupart_tpcset_del(&p->held, t);
			gpupart_tpcset_add(&p->shared, t);
			left++;
		}
}

bool qos_newly_held(const struct qos_policy *p, const struct qos_actor *a)
{
	struct gpupart_tpcset came = gpupart_tpcset_andnot(&p->board.held, &p->announced);

	return gpupart_tpcset_intersects(&came, &a->set);
}

static void say_set(struct qos_policy *p, const struct gpupart_tpcset *set, const char *what)
{
	char list[GPUPART_TPCSET_STRLEN];
	bool one = gpupart_tpcset_count(set) == 1;

	if (gpupart_tpcset_empty(set))
		return;
	gpupart_tpcset_format_list(set, list, sizeof(list));
	qos_add_message(p, "TPC%s %.300s %s %s", one ? "" : "s", list, one ? "is" : "are", what);
}

void qos_report_held(struct qos_policy *p)
{
	struct gpupart_tpcset all = gpupart_tpcset_first(p->board.nr_tpcs), now, came, went;

	now = gpupart_tpcset_and(&p->board.held, &all);
	came = gpupart_tpcset_andnot(&now, &p->announced);
	went = gpupart_tpcset_andnot(&p->announced, &now);
	say_set(p, &came, "used by other programs: no tenant gets them");
	say_set(p, &went, "free again");
	if (!gpupart_tpcset_empty(&came))
		say_set(p, &p->shared, "shared with other programs, because too few are left for "
			"the floors");
	p->announced = now;
}
