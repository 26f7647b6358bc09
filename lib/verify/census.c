// SPDX-License-Identifier: MIT
/* Checks that a launch ran on exactly the SMs of a set. */
#include <stdarg.h>
#include <stdio.h>
#include "lib/verify/verify.h"

#define MAX_TRIES 4	/* Another program may keep an SM busy, and a launch then runs no block on
			 * this SM. So several tries may be needed. */

void verify_detail(struct verify *v, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(v->detail, sizeof(v->detail), fmt, ap);
	va_end(ap);
}

int verify_ran_as(struct verify *v, struct probe_launch *launch,
		  const struct gpupart_tpcset *expected, const struct gpupart_tpcset *next)
{
	unsigned int sm_blocks[TOPO_MAX_SMS], missing = 0;
	char list[GPUPART_TPCSET_STRLEN];

	gpupart_tpcset_format_list(expected, list, sizeof(list));
	for (int tries = 0; tries < MAX_TRIES; tries++) {
		int err = next ? gpupart_next_set(v->gp, v->gpu, next) : 0;

		if (!err)
			err = probe_census_as(v->gp, v->probe, launch, NULL, sm_blocks);
		if (err)
			return err;
		missing = 0;
		for (unsigned int sm = 0; sm < v->topo->nr_sms; sm++) {
			unsigned int tpc = gpupart_topology_sm_tpc(v->topo, sm);
			bool in = gpupart_tpcset_has(expected, tpc);

			if (sm_blocks[sm] && !in) {
				verify_detail(v,
					"TPC %u (SM %u) ran %u blocks of a launch confined to TPCs %s",
					tpc, sm, sm_blocks[sm], list);
				return 0;
			}
			if (!sm_blocks[sm] && in && !missing++)
				verify_detail(v,
					"TPC %u (SM %u) ran no block of a launch confined to TPCs %s",
					tpc, sm, list);
		}
		if (!missing) {
			v->detail[0] = 0;
			return 1;
		}
	}
	return 0;
}

int verify_ran(struct verify *v, void *stream, const struct gpupart_tpcset *expected,
	       const struct gpupart_tpcset *next)
{
	struct probe_launch launch = { .stream = stream, .blocks = v->topo->nr_sms * 2 };

	return verify_ran_as(v, &launch, expected, next);
}

struct gpupart_tpcset verify_third(const struct verify *v, unsigned int n)
{
	struct gpupart_tpcset set = { { 0 } };
	unsigned int at = 0;

	for (int tpc = gpupart_tpcset_next(&v->all, 0); tpc >= 0;
	     tpc = gpupart_tpcset_next(&v->all, tpc + 1), at++)
		if (at % 3 == n)
			gpupart_tpcset_add(&set, tpc);
	return set;
}
