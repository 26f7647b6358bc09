// SPDX-License-Identifier: MIT
/*
 * Fuzz target: demands on made-up GPUs. Some TPCs of these GPUs are not available. The result is
 * an error message or a plan. A plan must meet each tenant's demand with available TPCs, and the
 * sets must be disjoint. A second run must make the same plan.
 */
#include <errno.h>
#include "lib/topo/topology.h"
#include "tests/fuzz/fuzz.h"

/* maximum number of tenants; this target searches for errors, not for slow cases */
#define MOST 5

static struct gpupart *gp;
static char names[MOST][8];

static struct gpupart_topology *make_board(struct input *in)
{
	static struct topo_sm sms[TOPO_MAX_SMS];
	static const struct gpupart_gpu_info info = { .mig = -1 };
	unsigned int nr_gpcs = input_u8(in) % 6 + 1, nr_ugpus = input_u8(in) % 2 + 1, nr = 0;
	struct gpupart_topology *topo;

	for (unsigned int gpc = 0, tpc = 0; gpc < nr_gpcs; gpc++) {
		unsigned int nr_tpcs = input_u8(in) % 6 + 1;

		for (unsigned int i = 0; i < nr_tpcs; i++, tpc++)
			for (unsigned int s = 0; s < 2; s++)
				sms[nr++] = (struct topo_sm){
					gpc, i, s, tpc, -1, -1,
					gpc * nr_ugpus / nr_gpcs, -1, -1, -1,
				};
	}
	return topo_build(gp, &info, sms, nr, NULL, 0, &topo) ? NULL : topo;
}

static const char *others(struct input *in, unsigned int nr)
{
	return input_u8(in) % 4 ? NULL : names[input_u8(in) % nr];
}

static unsigned int make_demands(struct input *in, struct gpupart_demand *list)
{
	unsigned int nr = input_u8(in) % MOST + 1;

	memset(list, 0, MOST * sizeof(*list));
	for (unsigned int i = 0; i < nr; i++) {
		unsigned int how = input_u8(in);

		snprintf(names[i], sizeof(names[i]), "t%u", how & 128 ? i / 2 : i);
		list[i].name = names[i];
		list[i].min_tpcs = input_u8(in) % 12;
		list[i].max_tpcs = how & 1 ? input_u8(in) % 20 : 0;
		list[i].gpcs = how & 2;
		list[i].cluster = how & 4 ? input_u8(in) % 20 : 0;
		list[i].weight = how & 8 ? input_u8(in) : 0;
		list[i].spread = how & 16;
		list[i].same = how & 32 ? others(in, nr) : NULL;
		list[i].apart = how & 64 ? others(in, nr) : NULL;
	}
	return nr;
}

static void check_tenant(const struct gpupart_topology *topo, const struct gpupart_demand *d,
			 const struct gpupart_tpcset *within, const struct gpupart_tpcset *set)
{
	MUST(!gpupart_set_check(gp, topo, set) && gpupart_tpcset_subset(set, within));
	MUST(gpupart_tpcset_count(set) >= d->min_tpcs);
	MUST(!d->max_tpcs || gpupart_tpcset_count(set) <= d->max_tpcs);
	for (unsigned int gpc = 0; d->gpcs && gpc < gpupart_topology_nr_gpcs(topo); gpc++) {
		struct gpupart_tpcset of = gpupart_topology_gpc(topo, gpc)->tpcs;

		of = gpupart_tpcset_and(&of, within);
		MUST(!gpupart_tpcset_intersects(set, &of) || gpupart_tpcset_subset(&of, set));
	}
}

static void make_plan(const struct gpupart_topology *topo, const struct gpupart_tpcset *within,
		      const struct gpupart_demand *list, unsigned int nr)
{
	static struct gpupart_plan plan, again;
	struct gpupart_tpcset seen = { { 0 } };
	int err;

	gp->error[0] = 0;
	err = gpupart_plan_make(gp, topo, within, list, nr, &plan);
	if (err) {
		MUST(err == -EINVAL || err == -ENOSPC || err == -EOPNOTSUPP || err == -E2BIG);
		MUST(gpupart_error(gp)[0]);
		return;
	}
	MUST(plan.nr_tenants == nr);
	for (unsigned int i = 0; i < nr; i++) {
		const struct gpupart_tpcset *set = &plan.tenants[i].set;

		MUST(!strcmp(plan.tenants[i].name, list[i].name));
		MUST(!gpupart_tpcset_intersects(set, &seen));
		check_tenant(topo, &list[i], within, set);
		seen = gpupart_tpcset_or(&seen, set);
	}
	MUST(!gpupart_plan_make(gp, topo, within, list, nr, &again));
	for (unsigned int i = 0; i < nr; i++)
		MUST(gpupart_tpcset_equal(&plan.tenants[i].set, &again.tenants[i].set));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gpupart_demand list[MOST];
	struct input in = { data, size };
	struct gpupart_topology *topo;
	struct gpupart_tpcset within;
	unsigned int nr;

	if (!gp)
		MUST(!gpupart_open(&gp));
	fuzz_words = gp->error;
	topo = make_board(&in);
	if (!topo)
		return 0;
	nr = make_demands(&in, list);
	within = gpupart_topology_all(topo);
	for (unsigned int i = input_u8(&in) % 4; i && gpupart_tpcset_count(&within) > 1; i--) {
		unsigned int tpc = input_u8(&in) % gpupart_topology_nr_tpcs(topo);

		gpupart_tpcset_del(&within, tpc);
	}
	make_plan(topo, &within, list, nr);
	gpupart_topology_close(topo);
	return 0;
}
