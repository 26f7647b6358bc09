// SPDX-License-Identifier: MIT
/*
 * Finds the mask bit of each TPC with launches. This is needed if no formula for the GPU is known.
 * In each launch, one bit disables a TPC, and this TPC runs no block. A process must request this
 * code, and the code runs before other threads attach.
 */
#include <errno.h>
#include "lib/confine/self_check.h"

#define NR_ROUNDS	3	/* a bit must disable the same TPC in this number of launches */
#define MAX_ROUNDS	9	/* maximum number of launches; other programs can keep SMs busy */

static unsigned int *learn_launches;

/*
 * Finds the TPC that bit number @nth of the map disables, and stores the TPC in *tpc. If the bit
 * disables no TPC, stores -1.
 */
static int learn_bit(struct gpupart *gp, struct gpupart_gpu *gpu, struct probe *probe,
		     void *stream, unsigned int nth, int *tpc)
{
	struct gpupart_tpcset gone = gpupart_topology_all(gpu->driver.topo), whole = { { 0 } };
	struct gpupart_tpcset some, all_sms;
	unsigned int nr_tpcs = gpu->driver.topo->nr_tpcs, nr_gone;

	for (int round = 1; round <= MAX_ROUNDS; round++) {
		int err = check_without(gp, gpu, probe, stream, nth, &some, &all_sms);

		if (err)
			return err;
		++*learn_launches;
		gone = gpupart_tpcset_andnot(&gone, &some);
		whole = gpupart_tpcset_or(&whole, &all_sms);
		nr_gone = gpupart_tpcset_count(&gone);
		if (nr_gone + gpupart_tpcset_count(&whole) < nr_tpcs || nr_gone > 1)
			continue;
		*tpc = gpupart_tpcset_next(&gone, 0);
		if (*tpc < 0 || round >= NR_ROUNDS)
			return 0;
	}
	return ctx_fail(gp, -EPROTO,
			"mask bit %u of TMD %s does not belong to exactly one TPC: in %d launches with this bit set, %u of %u TPCs never ran a block, and %u TPCs ran a block on each SM; is another program using the GPU?",
			gpu->driver.map.bit_of_tpc[nth],
			tmd_layout_name(gpu->driver.map.layout), MAX_ROUNDS, nr_gone, nr_tpcs,
			gpupart_tpcset_count(&whole));
}

static int learn_map(struct gpupart *gp, struct gpupart_gpu *gpu, struct probe *probe,
		     void *stream, unsigned int nr_bits, uint8_t bits[GPUPART_MAX_TPCS])
{
	const struct gpupart_topology *topo = gpu->driver.topo;
	const struct tmd_layout *layout = gpu->driver.map.layout;
	struct gpupart_tpcset found = { { 0 } };
	uint8_t asked[GPUPART_MAX_TPCS];
	int err = 0, tpc = -1;

	for (unsigned int bit = 0; bit < nr_bits && !err; bit++) {
		unsigned int nth = bit % topo->nr_tpcs;

		/*
		 * A map has exactly one bit for each TPC. If there are more bits to test, build
		 * another map with the next bits.
		 */
		for (unsigned int i = 0; !nth && i < topo->nr_tpcs; i++)
			asked[i] = (bit + i) % nr_bits;
		if (!nth)
			err = tmd_map_build(gp, topo, layout, asked, &gpu->driver.map);
		if (!err)
			err = learn_bit(gp, gpu, probe, stream, nth, &tpc);
		if (err || tpc < 0)
			continue;
		if (gpupart_tpcset_has(&found, tpc))
			return ctx_fail(gp, -EPROTO,
					"mask bits %u and %u of TMD %s both belong to TPC %d",
					bits[tpc], bit, tmd_layout_name(layout), tpc);
		gpupart_tpcset_add(&found, tpc);
		bits[tpc] = bit;
	}
	for (tpc = 0; !err && tpc < (int)topo->nr_tpcs; tpc++)
		if (!gpupart_tpcset_has(&found, tpc))
			return ctx_fail(gp, -EPROTO, "no mask bit of TMD %s belongs to TPC %d",
					tmd_layout_name(layout), tpc);
	return err;
}

void gpupart_learn(unsigned int *nr_launches)
{
	*nr_launches = 0;
	learn_launches = nr_launches;
	check_learn = learn_map;
}
