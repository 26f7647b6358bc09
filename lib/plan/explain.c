// SPDX-License-Identifier: MIT
/*
 * Explains which demand cannot be met, and which changes would make a plan possible. A search must
 * confirm each change before the code reports the change.
 */
#include <errno.h>
#include <string.h>
#include "lib/plan/plan.h"
#include "lib/topo/topology.h"

struct words {
	char text[400];
	size_t at;
};

#define add(words, ...) \
	topo_append((words)->text, sizeof((words)->text), &(words)->at, __VA_ARGS__)

/* The demands that a search tries, and the number of steps that the searches may still take. */
struct why {
	struct plan_search *search;
	struct plan_ask ask;
	unsigned int steps, *spent;
};

/*
 * Returns 0 if the demands fit, -ENOSPC if they do not fit, or -E2BIG if the search did not find
 * the answer.
 */
static int decide(struct why *why)
{
	struct plan_ask ranked = why->ask;
	struct plan_counts counts;
	int err;

	if (!why->steps)
		return -E2BIG;
	plan_rank(&ranked);
	/* If one search takes many steps, it must leave steps for the other searches. */
	err = plan_search(why->search, &ranked, why->steps / 3 + 1000, true, &counts);
	*why->spent += counts.steps;
	why->steps -= counts.steps < why->steps ? counts.steps : why->steps;
	return err;
}

/*
 * The pointer @field points to a member of one of the demands in @why. The function tries other
 * values of this member up to @far. The distance between two values is @step. Returns the nearest
 * value with which the demands fit. If no search found such a value, returns 0.
 */
static unsigned int nearest(struct why *why, unsigned int *field, int step, unsigned int far)
{
	unsigned int asked = *field, low = 1, high = far + 1;
	int err = 0;

	while (low < high && err != -E2BIG) {
		unsigned int off = (low + high) / 2;

		*field = asked + step * (int)off;
		err = decide(why);
		if (err)
			low = off + 1;
		else
			high = off;
	}
	*field = asked;
	return err != -E2BIG && high <= far ? asked + step * (int)high : 0;
}

/*
 * Returns the largest cluster size that fits and is smaller than the requested size. The demand's
 * minimum number of TPCs stays the same.
 */
static unsigned int largest_cluster(struct why *why, struct plan_tenant *t)
{
	unsigned int asked = t->home, good = 0;

	for (t->home = asked / 2; t->home && !good; t->home /= 2)
		if (!decide(why))
			good = t->home * why->ask.gpu.sms_per_tpc;
	t->home = asked;
	return good;
}

static bool feasible_unbound(const struct why *why, unsigned int tenant)
{
	struct why changed = *why;
	struct plan_tenant *t = changed.ask.tenants;
	uint32_t bit = 1u << t[tenant].given;

	for (unsigned int i = 0; i < changed.ask.nr; i++) {
		t[i].same &= ~bit;
		t[i].apart &= ~bit;
	}
	t[tenant].same = t[tenant].apart = 0;
	return !decide(&changed);
}

static bool feasible_without(const struct why *why, unsigned int tenant)
{
	struct why changed = *why;
	struct plan_tenant *t = &changed.ask.tenants[tenant];

	memmove(t, t + 1, (changed.ask.nr - tenant - 1) * sizeof(*t));
	changed.ask.nr--;
	return changed.ask.nr && !decide(&changed);
}

/* Lists smaller demands of @tenant that would fit. The word "or" separates the demands. */
static void find_ways(struct why *why, unsigned int tenant, struct words *words)
{
	struct plan_tenant *t = &why->ask.tenants[tenant];
	unsigned int value = nearest(why, &t->min, -1, t->min - t->home);

	if (value)
		add(words, "min=%u", value);
	value = t->whole ? nearest(why, &t->max, 1, GPUPART_MAX_TPCS - t->max) : 0;
	if (value)
		add(words, "%smax=%u", *words->text ? ", or " : "", value);
	value = largest_cluster(why, t);
	if (value)
		add(words, "%scluster=%u", *words->text ? ", or " : "", value);
	if (t->balanced) {
		t->balanced = false;
		if (!decide(why))
			add(words, "%sshape=gpcs", *words->text ? ", or " : "");
		t->balanced = true;
	} else if (t->whole) {
		t->whole = false;
		if (!decide(why))
			add(words, "%sno gpcs", *words->text ? ", or " : "");
		t->whole = true;
	}
	if ((t->same | t->apart) && feasible_unbound(why, tenant))
		add(words, "%sno tie to others by same or apart", *words->text ? ", or " : "");
	if (!*words->text && feasible_without(why, tenant))
		add(words, "the others without it");
}

/* Formats a demand in the form in which the user wrote it. */
static void describe(const struct plan_ask *ask, unsigned int tenant, struct words *words)
{
	const struct plan_tenant *t = &ask->tenants[tenant];

	add(words, "tenant %s: min=%u", t->name, t->min);
	if (t->max < GPUPART_MAX_TPCS)
		add(words, ",max=%u", t->max);
	if (t->whole)
		add(words, t->balanced ? ",shape=balanced" : ",gpcs");
	if (t->cluster > ask->gpu.sms_per_tpc)
		add(words, ",cluster=%u", t->cluster);
	for (unsigned int i = 0; i < ask->nr; i++)
		if (t->same >> ask->tenants[i].given & 1)
			add(words, ",same=%s", ask->tenants[i].name);
	for (unsigned int i = 0; i < ask->nr; i++)
		if (t->apart >> ask->tenants[i].given & 1)
			add(words, ",apart=%s", ask->tenants[i].name);
}

/* Returns the first tenant that does not fit together with the tenants before it. */
static unsigned int first_refused(struct plan_search *search, const struct plan_ask *ask,
				  unsigned int *steps)
{
	struct why why = { search, *ask, PLAN_MAX_WHY_STEPS, steps };
	unsigned int low = 1, high = ask->nr;

	while (low < high) {
		why.ask.nr = (low + high) / 2;
		if (decide(&why) == -ENOSPC)
			high = why.ask.nr;
		else
			low = why.ask.nr + 1;
	}
	return low - 1;
}

int plan_explain(struct gpupart *gp, struct plan_search *search, const struct plan_ask *ask,
		 unsigned int *steps)
{
	struct words demand = { "", 0 }, beside = { "", 0 }, ways = { "", 0 };
	unsigned int tenant = first_refused(search, ask, steps), others = 0, nr = 0;
	struct why why = { search, *ask, PLAN_MAX_WHY_STEPS, steps };

	for (unsigned int gpc = 0; gpc < ask->gpu.nr_gpcs; gpc++)
		nr += ask->gpu.gpcs[gpc].nr;
	for (; others < tenant && others < 3; others++)
		add(&beside, "%s%s", others ? ", " : " beside ", ask->tenants[others].name);
	if (others < tenant)
		add(&beside, " and %u more", tenant - others);
	describe(ask, tenant, &demand);
	find_ways(&why, tenant, &ways);
	if (!*ways.text && tenant + 1 < ask->nr) {
		why = (struct why){ search, *ask, PLAN_MAX_WHY_STEPS, steps };
		why.ask.nr = tenant + 1;
		find_ways(&why, tenant, &ways);
		if (*ways.text)
			add(&ways, " (then others do not fit yet)");
	}
	return ctx_fail(gp, -ENOSPC, "%.240s cannot be met%.120s on %u TPCs%s%s%s", demand.text,
			beside.text, nr, *ways.text ? ": " : "", ways.text,
			*ways.text ? " would do" : "");
}
