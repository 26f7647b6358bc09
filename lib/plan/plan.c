// SPDX-License-Identifier: MIT
/*
 * Implements gpupart_plan_make(). Converts demands and a topology to numbers of TPCs, and converts
 * the resulting numbers to sets. The numbers follow rules 1 to 5 of gpupart_manage.h. Rules 1 and 2
 * are in search.c, rule 3 is in arithmetic.c, and rules 4 and 5 are in place.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/core/state_dir.h"
#include "lib/plan/pack.h"
#include "lib/plan/plan.h"
#include "lib/topo/cluster.h"

#define MAX_WEIGHT 1000
#define MAX_CLUSTER 128		/* maximum number of blocks of a cluster; current GPUs
				 * launch clusters of up to 16 blocks */

/* The TPCs of each GPC. The other files of the planner use only the numbers of TPCs. */
struct members {
	struct gpupart_tpcset all[PLAN_MAX_GPCS], main[PLAN_MAX_GPCS];
};

static void describe_gpu(const struct gpupart_topology *topo, const struct gpupart_tpcset *within,
			 struct plan_gpu *gpu, struct members *members)
{
	gpu->nr_gpcs = gpupart_topology_nr_gpcs(topo);
	gpu->nr_bindable = gpupart_topology_nr_ugpus(topo);
	gpu->nr_ugpus = gpu->nr_bindable + 1;
	gpu->sms_per_tpc = topo_sms_per_tpc(topo);
	for (unsigned int i = 0; i < gpu->nr_gpcs; i++) {
		const struct gpupart_gpc *gpc = gpupart_topology_gpc(topo, i);
		struct plan_gpc *g = &gpu->gpcs[i];

		members->all[i] = gpupart_tpcset_and(&gpc->tpcs, within);
		members->main[i] = cluster_tpcs(topo, &members->all[i]);
		g->ugpu = gpc->ugpu < 0 ? gpu->nr_bindable : (unsigned int)gpc->ugpu;
		g->nr = gpupart_tpcset_count(&members->all[i]);
		g->nr_main = gpupart_tpcset_count(&members->main[i]);
		g->whole = gpupart_tpcset_equal(&members->all[i], &gpc->tpcs);
		if (gpupart_tpcset_count(&gpc->tpcs) > gpu->largest)
			gpu->largest = gpupart_tpcset_count(&gpc->tpcs);
	}
}

static int check_names(struct gpupart *gp, const struct gpupart_demand *demands, unsigned int nr)
{
	if (!nr || nr > PLAN_MAX_TENANTS)
		return ctx_fail(gp, -EINVAL,
				"%u tenants were given, but a plan has 1 to %d tenants", nr,
				PLAN_MAX_TENANTS);
	for (unsigned int i = 0; i < nr; i++) {
		const char *name = demands[i].name;

		if (!name || !state_dir_name_valid(name))
			return ctx_fail(gp, -EINVAL,
					"tenant '%s': the name must be 1 to 63 characters from A-Z a-z 0-9 . _ -, not starting with '-'",
					name ? name : "");
		for (unsigned int j = 0; j < i; j++)
			if (!strcmp(demands[j].name, name))
				return ctx_fail(gp, -EINVAL, "two tenants have the same name %s",
						name);
	}
	return 0;
}

/* Converts a list of tenants such as "a+b" to bits. */
static int read_names(struct gpupart *gp, const struct gpupart_demand *demands, unsigned int nr,
		      unsigned int self, const char *key, const char *text, uint32_t *bits)
{
	*bits = 0;
	while (text && *text) {
		size_t len = strcspn(text, "+");
		unsigned int i = 0;

		while (i < nr && (strlen(demands[i].name) != len ||
				  strncmp(demands[i].name, text, len)))
			i++;
		if (i == nr)
			return ctx_fail(gp, -EINVAL, "tenant %s: %s=%.*s: there is no such tenant",
					demands[self].name, key, (int)len, text);
		if (i == self)
			return ctx_fail(gp, -EINVAL, "tenant %s: %s=%s is the tenant itself",
					demands[self].name, key, demands[self].name);
		*bits |= 1u << i;
		text += len + (text[len] == '+');
	}
	return 0;
}

static int read_demand(struct gpupart *gp, const struct gpupart_demand *d, struct plan_gpu *gpu,
		       struct plan_tenant *t)
{
	*t = (struct plan_tenant){
		.name = d->name, .min = d->min_tpcs ? d->min_tpcs : 1,
		.max = d->max_tpcs ? d->max_tpcs : GPUPART_MAX_TPCS,
		.weight = d->weight ? d->weight : 1, .cluster = d->cluster,
		.whole = d->gpcs, .spread = d->spread && !d->gpcs,
		.balanced = d->gpcs && d->spread,
	};
	if (t->min > GPUPART_MAX_TPCS || d->max_tpcs > GPUPART_MAX_TPCS)
		return ctx_fail(gp, -EINVAL, "tenant %s: %s=%u: a GPU has at most %d TPCs", d->name,
				t->min > GPUPART_MAX_TPCS ? "min" : "max",
				t->min > GPUPART_MAX_TPCS ? t->min : d->max_tpcs,
				GPUPART_MAX_TPCS);
	if (t->min > t->max)
		return ctx_fail(gp, -EINVAL, "tenant %s: min=%u is above max=%u", d->name, t->min,
				t->max);
	if (t->weight > MAX_WEIGHT)
		return ctx_fail(gp, -EINVAL, "tenant %s: weight=%u: must be 1 to %d", d->name,
				t->weight, MAX_WEIGHT);
	if (t->cluster > MAX_CLUSTER)
		return ctx_fail(gp, -EINVAL, "tenant %s: cluster=%u: must be at most %d blocks",
				d->name, t->cluster, MAX_CLUSTER);
	if (t->balanced && !gpu->nr_bindable)
		return ctx_fail(gp, -EOPNOTSUPP,
				"tenant %s: shape=balanced: the uGPU of each GPC is unknown",
				d->name);
	t->home = plan_home(gpu, t->cluster);
	if (t->home > t->max)
		return ctx_fail(gp, -EINVAL,
				"tenant %s: cluster=%u needs %u TPCs in one GPC, but max=%u allows fewer",
				d->name, t->cluster, t->home, t->max);
	if (t->min < t->home)
		t->min = t->home;
	return 0;
}

static int read_demands(struct gpupart *gp, const struct gpupart_topology *topo,
			const struct gpupart_demand *demands, unsigned int nr,
			struct plan_ask *ask)
{
	struct plan_tenant *t = ask->tenants;
	int err = check_names(gp, demands, nr);

	for (unsigned int i = 0; i < nr && !err; i++) {
		err = read_demand(gp, &demands[i], &ask->gpu, &t[i]);
		t[i].given = i;
		if (!err)
			err = read_names(gp, demands, nr, i, "same", demands[i].same, &t[i].same);
		if (!err)
			err = read_names(gp, demands, nr, i, "apart", demands[i].apart,
					 &t[i].apart);
		if (!err && (t[i].same | t[i].apart) && !ask->gpu.nr_bindable)
			err = ctx_fail(gp, -EOPNOTSUPP,
				       "tenant %s: %s=%s: %s does not report uGPUs", t[i].name,
				       t[i].same ? "same" : "apart",
				       t[i].same ? demands[i].same : demands[i].apart,
				       gpupart_topology_info(topo)->source);
	}
	if (err)
		return err;
	for (unsigned int i = 0; i < nr * nr; i++) {
		t[i / nr].same |= (t[i % nr].same >> i / nr & 1) << i % nr;
		t[i / nr].apart |= (t[i % nr].apart >> i / nr & 1) << i % nr;
	}
	for (unsigned int i = 0; i < nr; i++)
		if (t[i].balanced && (t[i].same | t[i].apart))
			return ctx_fail(gp, -EINVAL,
					"tenant %s: shape=balanced needs GPCs of every uGPU, but 'same' or 'apart' restricts the tenant to one uGPU",
					t[i].name);
	ask->nr = nr;
	plan_rank(ask);
	return 0;
}

/*
 * Moves the @nr lowest TPCs of @from to @to. If @from has fewer TPCs, moves all TPCs of @from.
 * Returns the number of moved TPCs.
 */
static unsigned int move_lowest(struct gpupart_tpcset *from, struct gpupart_tpcset *to,
				unsigned int nr)
{
	struct gpupart_tpcset moved = pack_lowest(from, nr);

	*to = gpupart_tpcset_or(to, &moved);
	*from = gpupart_tpcset_andnot(from, &moved);
	return gpupart_tpcset_count(&moved);
}

static void name_tpcs(const struct plan_ask *ask, const struct plan_counts *counts,
		      const struct members *members, struct gpupart_tpcset *sets)
{
	for (unsigned int gpc = 0; gpc < ask->gpu.nr_gpcs; gpc++) {
		struct gpupart_tpcset inside = members->main[gpc], outside;
		unsigned int rest[PLAN_MAX_TENANTS], nr;

		outside = gpupart_tpcset_andnot(&members->all[gpc], &inside);
		for (unsigned int i = 0; i < ask->nr; i++) {
			nr = counts->home[i] == (int)gpc ? ask->tenants[i].home : 0;
			rest[i] = counts->nr[i][gpc] - move_lowest(&inside, &sets[i], nr);
		}
		for (unsigned int turn = 0; turn < 2; turn++)
			for (unsigned int i = 0; i < ask->nr; i++) {
				bool clusters = ask->tenants[i].home > 1;

				if (clusters == turn)
					continue;
				nr = move_lowest(clusters ? &inside : &outside, &sets[i], rest[i]);
				move_lowest(clusters ? &outside : &inside, &sets[i], rest[i] - nr);
			}
	}
}

/* The input and the working memory of one call of gpupart_plan_make(). */
struct making {
	struct plan_ask ask;
	struct members members;
	struct plan_search *search;
	struct plan_counts counts;
	struct gpupart_tpcset sets[PLAN_MAX_TENANTS];
	unsigned int steps;
};

/* Computes the counts and the sets for @ask, and overwrites earlier results. */
static int make_sets(struct making *m)
{
	int err = plan_search(m->search, &m->ask, PLAN_MAX_STEPS - m->steps, false, &m->counts);

	m->steps += m->counts.steps;
	if (!err && !plan_place(&m->ask, &m->counts))
		err = -EIO;
	memset(m->sets, 0, sizeof(m->sets));
	if (!err)
		name_tpcs(&m->ask, &m->counts, &m->members, m->sets);
	return err;
}

/* Returns whether the set has enough TPCs for a cluster of GPUPART_PORTABLE_CLUSTER blocks. */
static bool is_large(const struct gpupart_topology *topo, const struct gpupart_tpcset *set)
{
	return gpupart_tpcset_count(set) * topo_sms_per_tpc(topo) >= GPUPART_PORTABLE_CLUSTER;
}

static bool holds(const struct gpupart_topology *topo, const struct gpupart_tpcset *set)
{
	return gpupart_set_cluster(topo, set) >= GPUPART_PORTABLE_CLUSTER;
}

/*
 * Changes the plan so that large sets can hold a cluster. The function handles the tenants in order
 * of rank. For each tenant, it tries to make a plan with a home for this tenant. This plan must
 * keep a home for each earlier tenant whose set can hold a cluster. If there is no such plan, the
 * tenant's set does not change.
 */
static int hold_clusters(const struct gpupart_topology *topo, struct making *m)
{
	unsigned int home = plan_home(&m->ask.gpu, GPUPART_PORTABLE_CLUSTER);
	uint32_t cannot = 0;
	struct making with;

	for (unsigned int i = 0; i < m->ask.nr; i++) {
		int err;

		if (cannot >> i & 1 || !is_large(topo, &m->sets[i]) || holds(topo, &m->sets[i]) ||
		    m->ask.tenants[i].home >= home || m->ask.tenants[i].max < home)
			continue;
		with = *m;
		for (unsigned int j = 0; j <= i; j++) {
			struct plan_tenant *t = &with.ask.tenants[j];

			if ((j < i && !holds(topo, &m->sets[j])) || t->home >= home ||
			    t->max < home)
				continue;
			t->home = home;
			t->min = t->min < home ? home : t->min;
		}
		err = make_sets(&with);
		m->steps = with.steps;
		if (err && err != -ENOSPC)
			return err;
		if (err) {
			/*
			 * If there is no plan with these homes, there is no plan with more homes
			 * either.
			 */
			cannot |= 1u << i;
			continue;
		}
		*m = with;
		/*
		 * In the old plan, a set without a home may have had room for a cluster. In the new
		 * plan, this room may be missing.
		 */
		i = ~0u;
	}
	return 0;
}

static int make_plan(struct gpupart *gp, const struct gpupart_topology *topo, struct making *m)
{
	int err;

	m->search = calloc(1, plan_search_size);
	if (!m->search)
		return ctx_fail(gp, -ENOMEM, "no memory");
	err = make_sets(m);
	if (!err)
		err = hold_clusters(topo, m);
	if (err == -ENOSPC)
		err = plan_explain(gp, m->search, &m->ask, &m->steps);
	else if (err == -EIO)
		ctx_fail(gp, err, "internal error of the planner: please report these demands");
	else if (err)
		ctx_fail(gp, err,
			 "no plan for %u tenants on %u GPCs was found in %u steps: ask for fewer whole GPCs",
			 m->ask.nr, m->ask.gpu.nr_gpcs, m->steps);
	free(m->search);
	return err;
}

int gpupart_plan_make(struct gpupart *gp, const struct gpupart_topology *topo,
		      const struct gpupart_tpcset *within, const struct gpupart_demand *demands,
		      unsigned int nr, struct gpupart_plan *plan)
{
	struct gpupart_tpcset all = gpupart_topology_all(topo);
	struct making m = { .steps = 0 };
	int err = within && !gpupart_tpcset_empty(within) ? gpupart_set_check(gp, topo, within) : 0;

	describe_gpu(topo, within ? within : &all, &m.ask.gpu, &m.members);
	if (!err)
		err = read_demands(gp, topo, demands, nr, &m.ask);
	if (!err)
		err = make_plan(gp, topo, &m);
	plan->nr_steps = m.steps;
	if (err)
		return err;
	memset(plan, 0, sizeof(*plan));
	plan->topology_hash = gpupart_topology_hash(topo);
	plan->optimal = true;
	plan->nr_steps = m.steps;
	plan->nr_tenants = nr;
	for (unsigned int i = 0; i < nr; i++) {
		struct gpupart_plan_tenant *t = &plan->tenants[m.ask.tenants[i].given];

		strcpy(t->name, m.ask.tenants[i].name);
		t->set = m.sets[i];
		t->ugpu = m.counts.ugpu[i];
	}
	return 0;
}

int gpupart_plan_check(struct gpupart *gp, const struct gpupart_topology *topo,
		       uint64_t topology_hash)
{
	const struct gpupart_gpu_info *info = gpupart_topology_info(topo);
	uint64_t hash = gpupart_topology_hash(topo);

	if (hash == topology_hash)
		return 0;
	return ctx_fail(gp, -ESTALE,
			"the plan was made for topology %016llx, but %s has topology %016llx with TPCs in other GPCs: make a new plan",
			(unsigned long long)topology_hash, *info->pci ? info->pci : info->source,
			(unsigned long long)hash);
}
