// SPDX-License-Identifier: MIT
/*
 * Which demand cannot be met and what would do, each found by searching again with it. Must
 * not guess: what no search confirmed is not said.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "plan.h"

struct words {
	char text[400];
};

__attribute__((format(printf, 2, 3)))
static void add(struct words *words, const char *fmt, ...)
{
	size_t used = strlen(words->text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(words->text + used, sizeof(words->text) - used, fmt, ap);
	va_end(ap);
}

static bool feasible(const struct plan_ask *ask)
{
	struct plan_counts counts;
	struct plan_ask ranked = *ask;

	plan_rank(&ranked);
	return !plan_search(&ranked, &counts);
}

/* The highest value below @value, from @lowest on, with which it fits: 0 none. */
static unsigned int highest_min(struct plan_ask *ask, struct plan_tenant *t)
{
	unsigned int asked = t->min, good = 0, low = t->home, high = asked;

	while (low < high) {
		t->min = (low + high) / 2;
		if (feasible(ask)) {
			good = t->min;
			low = t->min + 1;
		} else {
			high = t->min;
		}
	}
	t->min = asked;
	return good;
}

static unsigned int lowest_max(struct plan_ask *ask, struct plan_tenant *t)
{
	unsigned int asked = t->max, good = 0, low = asked + 1, high = GPUPART_MAX_TPCS + 1;

	while (low < high) {
		t->max = (low + high) / 2;
		if (feasible(ask)) {
			good = t->max;
			high = t->max;
		} else {
			low = t->max + 1;
		}
	}
	t->max = asked;
	return good;
}

/* The largest cluster below the one asked for; the minimum stays. */
static unsigned int largest_cluster(struct plan_ask *ask, struct plan_tenant *t)
{
	unsigned int asked = t->home, good = 0;

	for (t->home = asked / 2; t->home && !good; t->home /= 2)
		if (feasible(ask))
			good = t->home * ask->gpu.sms_per_tpc;
	t->home = asked;
	return good;
}

static bool feasible_alone(const struct plan_ask *ask, unsigned int tenant)
{
	struct plan_ask changed = *ask;
	uint32_t bit = 1u << ask->tenants[tenant].given;

	for (unsigned int i = 0; i < ask->nr; i++) {
		changed.tenants[i].same &= ~bit;
		changed.tenants[i].apart &= ~bit;
	}
	changed.tenants[tenant].same = changed.tenants[tenant].apart = 0;
	return feasible(&changed);
}

static bool feasible_without(const struct plan_ask *ask, unsigned int tenant)
{
	struct plan_ask changed = *ask;

	memmove(&changed.tenants[tenant], &changed.tenants[tenant + 1],
		(ask->nr - tenant - 1) * sizeof(changed.tenants[0]));
	changed.nr--;
	return changed.nr && feasible(&changed);
}

/* What of @tenant's demand would do where it asks for less, joined by "or". */
static void find_ways(const struct plan_ask *ask, unsigned int tenant, struct words *words)
{
	struct plan_ask changed = *ask;
	struct plan_tenant *t = &changed.tenants[tenant];
	unsigned int value = highest_min(&changed, t);

	if (value)
		add(words, "min=%u", value);
	value = t->whole ? lowest_max(&changed, t) : 0;
	if (value)
		add(words, "%smax=%u", *words->text ? ", or " : "", value);
	value = largest_cluster(&changed, t);
	if (value)
		add(words, "%scluster=%u", *words->text ? ", or " : "", value);
	if (t->whole) {
		t->whole = false;
		if (feasible(&changed))
			add(words, "%sno gpcs", *words->text ? ", or " : "");
		t->whole = true;
	}
	if ((t->same | t->apart) && feasible_alone(ask, tenant))
		add(words, "%sno same or apart with it", *words->text ? ", or " : "");
	if (!*words->text && feasible_without(ask, tenant))
		add(words, "the others without it");
}

/* The demand in the words it was made with. */
static void describe(const struct plan_ask *ask, unsigned int tenant, struct words *words)
{
	const struct plan_tenant *t = &ask->tenants[tenant];

	add(words, "tenant %s: min=%u", t->name, t->min);
	if (t->max < GPUPART_MAX_TPCS)
		add(words, ",max=%u", t->max);
	if (t->whole)
		add(words, ",gpcs");
	if (t->cluster > ask->gpu.sms_per_tpc)
		add(words, ",cluster=%u", t->cluster);
	for (unsigned int i = 0; i < ask->nr; i++)
		if (t->same >> ask->tenants[i].given & 1)
			add(words, ",same=%s", ask->tenants[i].name);
	for (unsigned int i = 0; i < ask->nr; i++)
		if (t->apart >> ask->tenants[i].given & 1)
			add(words, ",apart=%s", ask->tenants[i].name);
}

int plan_explain(struct gpupart *gp, const struct plan_ask *ask)
{
	struct words demand = { "" }, beside = { "" }, ways = { "" };
	struct plan_ask first = *ask;
	unsigned int tenant, others = 0, nr = 0;

	/* The first that does not fit beside those before it. */
	for (first.nr = 1; first.nr < ask->nr && feasible(&first); first.nr++)
		;
	tenant = first.nr - 1;
	for (unsigned int gpc = 0; gpc < ask->gpu.nr_gpcs; gpc++)
		nr += ask->gpu.gpcs[gpc].nr;
	for (; others < tenant && others < 3; others++)
		add(&beside, "%s%s", others ? ", " : " beside ", ask->tenants[others].name);
	if (others < tenant)
		add(&beside, " and %u more", tenant - others);
	describe(ask, tenant, &demand);
	find_ways(ask, tenant, &ways);
	if (!*ways.text) {
		find_ways(&first, tenant, &ways);
		if (*ways.text && tenant + 1 < ask->nr)
			add(&ways, " (then others do not fit yet)");
	}
	return ctx_fail(gp, -ENOSPC, "%.240s cannot be met%.120s on %u TPCs%s%s%s", demand.text,
			beside.text, nr, *ways.text ? ": " : "", ways.text,
			*ways.text ? " would do" : "");
}
