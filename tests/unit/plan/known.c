// SPDX-License-Identifier: MIT
/*
 * Compares plans with plans that were computed by hand. Each row of the table has a small GPU,
 * demands, and the result. The result is the number of each tenant's TPCs in each GPC, or an
 * error message. A comment at the row gives the reason.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/topo/topology.h"
#include "tests/tap.h"

#define MAX_GPCS 8
#define MAX_TENANTS 5

static const struct row {
	const char *why;
	/*
	 * For each GPC: the number of its TPCs, the number of its TPCs in the virtual GPC if this
	 * number differs, and the uGPU.
	 */
	const char *gpu;
	struct gpupart_demand demands[MAX_TENANTS];
	/* The numbers of TPCs of each GPC, tenant by tenant, or the message. */
	const char *expected;
} rows[] = {
	{ "one tenant has everything", "4@0 4@0 4@1 4@1",
	  { { .name = "a" } }, "4 4 4 4" },
	{ "who is equal gets equal shares, and each its uGPU", "4@0 4@0 4@1 4@1",
	  { { .name = "a" }, { .name = "b" } }, "4 4 0 0|0 0 4 4" },
	/* The shares of 16 TPCs are 3 to 1. Tenant b has more weight and chooses first. */
	{ "shares go by weight", "4@0 4@0 4@1 4@1",
	  { { .name = "a" }, { .name = "b", .weight = 3 } }, "0 0 0 4|4 4 4 0" },
	{ "who spreads has as many of each", "4@0 4@0 4@1 4@1",
	  { { .name = "a", .max_tpcs = 3, .spread = true } }, "1 1 1 0" },
	{ "and 4 of one that hold a cluster of 8 where it has 4", "4@0 4@0 4@1 4@1",
	  { { .name = "a", .max_tpcs = 4, .spread = true } }, "4 0 0 0" },
	/* GPC 0 has room for the cluster. The other 3 TPCs are distributed evenly. */
	{ "and the rest as even as can be", "4@0 4@0 4@1 4@1",
	  { { .name = "a", .max_tpcs = 7, .spread = true } }, "4 1 1 1" },
	/* GPCs of 3 TPCs and singletons have no room for a cluster of 8, for any tenant. */
	{ "but as many of each where no virtual GPC has 4", "3@0 5/3@0 3@1 3@1",
	  { { .name = "a", .max_tpcs = 4, .spread = true } }, "1 1 1 1" },
	/*
	 * Tenant b needs whole GPCs with 7 TPCs, so it needs GPC 0. No other GPC has 4 TPCs for
	 * tenant a.
	 */
	{ "and where others' demands leave no such set", "4@0 3@0 3@1 2@1",
	  { { .name = "a", .max_tpcs = 5, .spread = true },
	    { .name = "b", .min_tpcs = 7, .max_tpcs = 7, .gpcs = true } },
	  "0 0 3 2|4 3 0 0" },
	/*
	 * Packing has priority, so tenant b has 4 TPCs in GPC 0. The 3 TPCs of tenant a are
	 * distributed evenly over the other GPCs.
	 */
	{ "who spreads keeps out of the GPCs of those who pack", "4@0 4@0 4@1 4@1",
	  { { .name = "a", .max_tpcs = 3, .spread = true }, { .name = "b", .max_tpcs = 4 } },
	  "0 1 1 1|4 0 0 0" },
	{ "and holds a cluster beside them", "4@0 4@0 4@1 4@1",
	  { { .name = "a", .max_tpcs = 6, .spread = true }, { .name = "b", .max_tpcs = 4 } },
	  "0 1 4 1|4 0 0 0" },
	/* 5 TPCs need two GPCs of 4 TPCs. The share of each tenant is 8. */
	{ "whole GPCs are rounded up", "4@0 4@0 4@1 4@1",
	  { { .name = "a", .min_tpcs = 5, .gpcs = true }, { .name = "b", .min_tpcs = 5 } },
	  "4 4 0 0|0 0 4 4" },
	{ "apart is another uGPU, though one has room for both", "4@0 4@0 4@0 4@1",
	  { { .name = "a", .max_tpcs = 2, .apart = "b" }, { .name = "b", .max_tpcs = 2 } },
	  "2 0 0 0|0 0 0 2" },
	/* Only uGPU 1 has 8 TPCs. Tenant a demands more and chooses first. */
	{ "same is one uGPU that has room for both", "6@0 4@1 4@1",
	  { { .name = "a", .min_tpcs = 5, .same = "b" }, { .name = "b", .min_tpcs = 3 } },
	  "0 4 1|0 0 3" },
	/* 8 blocks need 4 TPCs of one virtual GPC. Two TPCs of GPC 0 are singletons. */
	{ "a cluster does not fit into singletons", "4/2@0 4@0",
	  { { .name = "a", .max_tpcs = 4, .cluster = 8 } }, "0 4" },
	{ "nor does it into a whole GPC of them", "4/2@0 4/2@0 3@0 4@0",
	  { { .name = "a", .max_tpcs = 4, .cluster = 8, .gpcs = true } }, "0 0 0 4" },
	/*
	 * Each tenant's share of 18 TPCs is 9 TPCs. The only way to make such shares is 5 + 4 and
	 * 3 + 3 + 3.
	 */
	{ "the only two halves of five GPCs", "5@0 3@0 3@0 4@0 3@0",
	  { { .name = "a", .min_tpcs = 9, .max_tpcs = 9, .gpcs = true },
	    { .name = "b", .min_tpcs = 9, .max_tpcs = 9, .gpcs = true } },
	  "5 0 0 4 0|0 3 3 0 3" },
	/*
	 * The GPCs have 18 TPCs, and the demands 5, 6 and 7 also add up to 18. The tenants get 2
	 * + 3, 3 + 3 and 4 + 3 TPCs. The tenant with 7 TPCs chooses first.
	 */
	{ "all of six GPCs, in the one way there is", "2@0 3@0 3@0 4@0 3@0 3@0",
	  { { .name = "a", .min_tpcs = 5, .gpcs = true },
	    { .name = "b", .min_tpcs = 6, .gpcs = true },
	    { .name = "c", .min_tpcs = 7, .gpcs = true } },
	  "2 0 0 0 0 3|0 0 3 0 3 0|0 3 0 4 0 0" },
	/*
	 * The share is 12 / 3 = 4 TPCs, but GPCs of 3 TPCs give only 3 or 6 TPCs. 3 is nearer to
	 * 4 than 6.
	 */
	{ "as near to its share as GPCs allow", "3@0 3@0 3@0 3@0",
	  { { .name = "a", .gpcs = true }, { .name = "b" }, { .name = "c" } },
	  "3 0 0 0|0 3 2 0|0 0 1 3" },
	/* Tenant a has three of the four GPCs for its 9 TPCs, and tenant b needs two GPCs. */
	{ "a demand that cannot be met", "4@0 4@0 4@1 4@1",
	  { { .name = "a", .min_tpcs = 9, .gpcs = true },
	    { .name = "b", .min_tpcs = 5, .gpcs = true } },
	  "tenant b: min=5,gpcs cannot be met beside a on 16 TPCs: min=4 would do" },
	/* Tenant a has two GPCs for its 4 TPCs, so 6 TPCs remain. */
	{ "nor this one, whole or not", "3@0 3@0 3@0 3@0",
	  { { .name = "a", .min_tpcs = 4, .gpcs = true }, { .name = "b", .min_tpcs = 7 } },
	  "tenant b: min=7 cannot be met beside a on 12 TPCs: min=6 would do" },
	/*
	 * There are two uGPUs, so at most two tenants can be apart from each other. The third
	 * tenant has no uGPU.
	 */
	{ "three apart on two uGPUs", "4@0 4@1",
	  { { .name = "a", .apart = "b+c" }, { .name = "b", .apart = "c" }, { .name = "c" } },
	  "tenant c: min=1,apart=a,apart=b cannot be met beside a, b on 8 TPCs: "
	  "no tie to others by same or apart would do" },
	/* A set of whole GPCs has 7 or 14 TPCs. */
	{ "a maximum between two sums", "7@0 7@0",
	  { { .name = "a", .min_tpcs = 5, .max_tpcs = 6, .gpcs = true } },
	  "tenant a: min=5,max=6,gpcs cannot be met on 14 TPCs: max=7, or no gpcs would do" },
};

/*
 * Parses a text such as "4/2@1 ..". The module reports two SMs per TPC, and the TPCs in the order
 * of the GPCs.
 */
static struct gpupart_topology *make_gpu(const char *text, unsigned int *nr_gpcs)
{
	static struct topo_sm sms[TOPO_MAX_SMS];
	struct gpupart_gpu_info info = { .source = "made up", .mig = -1 };
	unsigned int tpc = 0, single = MAX_GPCS;
	struct gpupart_topology *topo;
	char *end;

	for (*nr_gpcs = 0; *text; text = end + (*end == ' ')) {
		unsigned int nr = strtoul(text, &end, 10), nr_main = nr, ugpu;

		if (*end == '/')
			nr_main = strtoul(end + 1, &end, 10);
		ugpu = strtoul(end + 1, &end, 10);
		for (unsigned int i = 0; i < nr; i++, tpc++)
			for (unsigned int sm = 0; sm < 2; sm++)
				sms[2 * tpc + sm] = (struct topo_sm){
					.gpc = *nr_gpcs, .local_tpc = i, .local_sm = sm,
					.tpc = tpc, .vgpc = i < nr_main ? *nr_gpcs :
					single + tpc, .tpc_in_vgpc = i < nr_main ? i : 0,
					.ugpu = ugpu, .cpc = -1, .virtual_tpc = -1,
					.measured_bit = -1 };
		++*nr_gpcs;
	}
	return topo_build(NULL, &info, sms, 2 * tpc, NULL, 0, &topo) ? NULL : topo;
}

static void write_counts(const struct gpupart_topology *topo, unsigned int nr_gpcs,
			 const struct gpupart_plan *plan, char *text)
{
	*text = 0;
	for (unsigned int t = 0; t < plan->nr_tenants; t++)
		for (unsigned int gpc = 0; gpc < nr_gpcs; gpc++) {
			struct gpupart_tpcset of = gpupart_topology_gpc(topo, gpc)->tpcs;

			of = gpupart_tpcset_and(&of, &plan->tenants[t].set);
			text += sprintf(text, "%s%u", gpc ? " " : t ? "|" : "",
					gpupart_tpcset_count(&of));
		}
}

static void check(struct gpupart *gp, const struct row *row)
{
	unsigned int nr = 0, nr_gpcs;
	struct gpupart_topology *topo = make_gpu(row->gpu, &nr_gpcs);
	struct gpupart_plan plan;
	char text[512] = "no such GPU";

	while (nr < MAX_TENANTS && row->demands[nr].name)
		nr++;
	if (topo && gpupart_plan_make(gp, topo, NULL, row->demands, nr, &plan))
		snprintf(text, sizeof(text), "%s", gpupart_error(gp));
	else if (topo)
		write_counts(topo, nr_gpcs, &plan, text);
	if (!tap_ok(!strcmp(text, row->expected), "%s", row->why))
		printf("# is       %s\n# expected %s\n", text, row->expected);
	gpupart_topology_close(topo);
}

/*
 * The GPU has 32 GPCs of 2 to 12 TPCs, which is more than real GPUs have. Each of the 16 tenants
 * demands 14 TPCs in whole GPCs.
 */
static void refuses_hard(struct gpupart *gp)
{
	struct gpupart_demand demands[GPUPART_PLAN_MAX_TENANTS];
	char text[GPUPART_MAX_GPCS * 8], names[GPUPART_PLAN_MAX_TENANTS][4], *at = text;
	struct gpupart_topology *topo;
	struct gpupart_plan plan;
	unsigned int nr_gpcs;
	int err;

	for (unsigned int i = 0; i < GPUPART_MAX_GPCS; i++)
		at += sprintf(at, "%s%u@0", i ? " " : "", 2 + i * 7 % 11);
	for (unsigned int i = 0; i < GPUPART_PLAN_MAX_TENANTS; i++) {
		sprintf(names[i], "t%u", i);
		demands[i] = (struct gpupart_demand){ .name = names[i], .min_tpcs = 14,
						      .max_tpcs = 14, .gpcs = true };
	}
	topo = make_gpu(text, &nr_gpcs);
	err = topo ? gpupart_plan_make(gp, topo, NULL, demands, GPUPART_PLAN_MAX_TENANTS, &plan) :
		     -ENOMEM;
	tap_ok(err == -E2BIG &&
		       strstr(gpupart_error(gp), "no plan for 16 tenants on 32 GPCs was found in "),
	       "what takes too many steps is refused: %s", gpupart_error(gp));
	gpupart_topology_close(topo);
}

int main(void)
{
	struct gpupart *gp;

	if (gpupart_open(&gp))
		return 1;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check(gp, &rows[i]);
	refuses_hard(gp);
	gpupart_close(gp);
	return tap_done();
}
