// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Finds the numbers of the TPCs. Reads the numbers from the work distributor's table, or computes
 * the numbers by the published rules.
 */
#include "topo.h"
#include "regs.h"

/*
 * Compares the TPCs of each logical GPC in fs->tpcs with the fuses. Describes the difference in
 * @text.
 */
static void compare_with_fuses(struct gpu_floorsweep *fs, unsigned int nr_tpcs,
			       unsigned int nr_gpcs, char *text, size_t len)
{
	u8 ordered[GPUPART_MAX_GPCS] = { 0 }, fused[GPUPART_MAX_GPCS] = { 0 };
	int of_size[33] = { 0 };
	unsigned int i, gpc;

	if (nr_tpcs != fs->nr_tpcs || nr_gpcs != fs->nr_gpcs) {
		snprintf(text, len, "the table has %u TPCs in %u GPCs, the fuses %u in %u", nr_tpcs,
			 nr_gpcs, fs->nr_tpcs, fs->nr_gpcs);
		return;
	}
	for (i = 0; i < nr_tpcs; i++)
		ordered[fs->tpcs[i].gpc]++;
	if (fs->has_map) {
		for (gpc = 0; gpc < nr_gpcs; gpc++) {
			fused[gpc] = popcount32(fs->present_tpcs[fs->gpc_phys[gpc]]);
			if (ordered[gpc] == fused[gpc])
				continue;
			snprintf(text, len,
				 "the table has %u TPCs in GPC %u, the fuses %u in physical GPC %u",
				 ordered[gpc], gpc, fused[gpc], fs->gpc_phys[gpc]);
			return;
		}
		return;
	}
	/* The mapping of GPCs is not known. So compare the number of GPCs of each size. */
	for (gpc = 0; gpc < nr_gpcs; gpc++)
		of_size[ordered[gpc]]++;
	for (gpc = 0; gpc < fs->max_gpcs; gpc++)
		if (fs->present_gpcs & 1u << gpc)
			of_size[popcount32(fs->present_tpcs[gpc])]--;
	for (i = 0; i < 33; i++) {
		if (!of_size[i])
			continue;
		snprintf(text, len, "the table has %d more GPCs of %u TPCs than the fuses",
			 of_size[i], i);
		return;
	}
}

int gp_topo_order_read(struct topo_reader *reader, const struct chip_cell *cell,
		       struct gpu_floorsweep *fs)
{
	u32 seen[GPUPART_MAX_GPCS] = { 0 };
	unsigned int nr_tpcs, nr_gpcs, tpc;
	u32 word = 0;

	if (gp_topo_rd32(reader, NV_PGRAPH_PRI_CWD_FS, &word))
		goto fault;
	nr_tpcs = NV_PGRAPH_PRI_CWD_FS_NUM_TPCS(word);
	nr_gpcs = NV_PGRAPH_PRI_CWD_FS_NUM_GPCS(word);
	/* Before Hopper, all words of an idle GPU are 0. */
	if (!nr_tpcs || nr_tpcs > 4u * cell->nr || !nr_gpcs || nr_gpcs > GPUPART_MAX_GPCS) {
		snprintf(fs->order_why, sizeof(fs->order_why),
			 "0x%x counts %u TPCs and %u GPCs: %s", NV_PGRAPH_PRI_CWD_FS, nr_tpcs,
			 nr_gpcs,
			 nr_tpcs ? "its table has no room for them"
				 : "no graphics context is loaded");
		fs->unloaded = !nr_tpcs;
		return -ENODATA;
	}
	for (tpc = 0; tpc < nr_tpcs; tpc++) {
		struct gpu_tpc *entry = &fs->tpcs[tpc];

		if (tpc % 4 == 0 && gp_topo_rd32(reader, cell->at + tpc, &word))
			goto fault;
		entry->tpc_in_gpc = NV_PGRAPH_PRI_CWD_GPC_TPC_ID_TPC(word, tpc % 4);
		entry->gpc = NV_PGRAPH_PRI_CWD_GPC_TPC_ID_GPC(word, tpc % 4);
		if (entry->gpc >= nr_gpcs) {
			snprintf(fs->order_why, sizeof(fs->order_why),
				 "the table puts TPC %u into GPC %u of %u", tpc, entry->gpc,
				 nr_gpcs);
			return -ENODATA;
		}
		/* If all words are zero, every entry would be TPC 0 of GPC 0. */
		if (seen[entry->gpc] & 1u << entry->tpc_in_gpc) {
			snprintf(fs->order_why, sizeof(fs->order_why),
				 "the table has TPC %u of GPC %u twice", entry->tpc_in_gpc,
				 entry->gpc);
			return -ENODATA;
		}
		seen[entry->gpc] |= 1u << entry->tpc_in_gpc;
	}
	fs->order = TOPO_ORDER_READ;
	fs->nr_ordered = nr_tpcs;
	compare_with_fuses(fs, nr_tpcs, nr_gpcs, fs->disagree, sizeof(fs->disagree));
	return 0;
fault:
	fs->unloaded = true;
	gp_topo_fault_text(&reader->fault, fs->order_why, sizeof(fs->order_why));
	fs->complete = false;
	return -EIO;
}

static int order_round_robin(struct gpu_floorsweep *fs)
{
	unsigned int tpc_in_gpc, gpc, tpc = 0;

	if (!fs->has_map)
		return -ENODATA;
	for (tpc_in_gpc = 0; tpc_in_gpc < fs->max_tpcs_per_gpc; tpc_in_gpc++) {
		for (gpc = 0; gpc < fs->nr_gpcs; gpc++) {
			if (tpc_in_gpc >= popcount32(fs->present_tpcs[fs->gpc_phys[gpc]]))
				continue;
			if (tpc == GPUPART_MAX_TPCS)
				return -ENODATA;
			fs->tpcs[tpc].gpc = gpc;
			fs->tpcs[tpc++].tpc_in_gpc = tpc_in_gpc;
		}
	}
	fs->nr_ordered = tpc;
	return 0;
}

/*
 * All chips of these generations have at most this number of GPCs. The struct must fit on a kernel
 * stack.
 */
#define GREEDY_MAX_GPCS 16
#define GREEDY_MAX_PES 4
#define GREEDY_MAX_TPCS 16	/* maximum number of TPCs in a GPC */
#define GREEDY_SCALE 512

struct greedy {
	unsigned int nr_gpcs, nr_pes;
	/* TPCs without a number; the index of a bit is the index by PES */
	u16 left[GREEDY_MAX_GPCS];
	u16 pes[GREEDY_MAX_GPCS][GREEDY_MAX_PES];
	u8 count[GREEDY_MAX_GPCS];	/* TPCs of the GPC before any TPC has a number */
};

/*
 * Computes the balance of the remaining TPCs. The rule is the same as in nouveau and in
 * gv100_gr_config_init_sm_id_table() of nvgpu.
 */
static u64 greedy_score(const struct greedy *g)
{
	unsigned int gpc, pes, sum = 0, most = 0, live_pes = 0;
	unsigned int average, least = ~0u, world, deviation = 0;

	for (gpc = 0; gpc < g->nr_gpcs; gpc++) {
		unsigned int nr = popcount32(g->left[gpc]);

		sum += nr;
		if (nr > most)
			most = nr;
		if (GREEDY_SCALE * nr / g->count[gpc] < least)
			least = GREEDY_SCALE * nr / g->count[gpc];
		for (pes = 0; pes < g->nr_pes; pes++)
			if (g->left[gpc] & g->pes[gpc][pes])
				live_pes++;
	}
	if (!most)
		return 0;
	average = GREEDY_SCALE * sum / g->nr_gpcs;
	for (gpc = 0; gpc < g->nr_gpcs; gpc++) {
		unsigned int scaled = GREEDY_SCALE * popcount32(g->left[gpc]);

		deviation += average > scaled ? average - scaled : scaled - average;
	}
	world = GREEDY_SCALE * live_pes / (g->nr_gpcs * g->nr_pes);
	return ((u64)least << 20) + ((u64)world << 10) +
	       (GREEDY_SCALE - deviation / g->nr_gpcs / most);
}

/*
 * Converts the index of a TPC by PES to a dense index. The dense index first counts the TPCs of PES
 * 0, then the TPCs of PES 1, and so on.
 */
static unsigned int greedy_dense(const struct greedy *g, unsigned int gpc, unsigned int bit)
{
	unsigned int pes, before = 0;

	for (pes = 0; pes < g->nr_pes; pes++) {
		if (g->pes[gpc][pes] & 1u << bit)
			return before + popcount32(g->pes[gpc][pes] & topo_mask(bit));
		before += popcount32(g->pes[gpc][pes]);
	}
	return TOPO_UNKNOWN;
}

static int order_greedy(struct topo_reader *reader, const struct chip_cell *cell,
			struct gpu_floorsweep *fs)
{
	struct greedy g = { .nr_gpcs = fs->nr_gpcs };
	unsigned int gpc, pes, bit, tpc, total = 0;
	char mismatch[sizeof(fs->disagree)] = "";
	int err;

	if (fs->nr_gpcs > GREEDY_MAX_GPCS || fs->max_tpcs_per_gpc > GREEDY_MAX_TPCS)
		return -ENODATA;
	err = gp_topo_read_maximum(reader, NV_PTOP_SCAL_NUM_PES_PER_GPC, GREEDY_MAX_PES, &g.nr_pes);
	if (err)
		return err;
	for (gpc = 0; gpc < g.nr_gpcs; gpc++) {
		for (pes = 0; pes < g.nr_pes; pes++) {
			u32 at = cell->at + 4 * pes + NV_PGRAPH_GPC_STRIDE * gpc;
			u32 word;

			err = gp_topo_rd32(reader, at, &word);
			if (err)
				return err;
			if (word & ~topo_mask(fs->max_tpcs_per_gpc) || word & g.left[gpc])
				return gp_topo_nonsense(reader, at, word);
			g.pes[gpc][pes] = word;
			g.left[gpc] |= word;
		}
		g.count[gpc] = popcount32(g.left[gpc]);
		if (!g.count[gpc])
			return -ENODATA;
		total += g.count[gpc];
	}
	if (total > GPUPART_MAX_TPCS)
		return -ENODATA;
	for (tpc = 0; tpc < total; tpc++) {
		unsigned int best_gpc = 0, best_bit = 0;
		bool found = false;
		u64 best = 0;

		for (gpc = 0; gpc < g.nr_gpcs; gpc++) {
			for (bit = 0; bit < fs->max_tpcs_per_gpc; bit++) {
				u64 score;

				if (!(g.left[gpc] & 1u << bit))
					continue;
				g.left[gpc] &= ~(1u << bit);
				score = greedy_score(&g);
				g.left[gpc] |= 1u << bit;
				/*
				 * If two GPCs are equally good, the first GPC is used. This is the
				 * same as in nouveau.
				 */
				if (found && score <= best)
					continue;
				found = true;
				best = score;
				best_gpc = gpc;
				best_bit = bit;
			}
		}
		g.left[best_gpc] &= ~(1u << best_bit);
		fs->tpcs[tpc].gpc = best_gpc;
		fs->tpcs[tpc].tpc_in_gpc = greedy_dense(&g, best_gpc, best_bit);
	}
	compare_with_fuses(fs, total, g.nr_gpcs, mismatch, sizeof(mismatch));
	if (mismatch[0])
		return -ENODATA;
	fs->nr_ordered = total;
	return 0;
}

void gp_topo_order_compute(struct topo_reader *reader, struct gpu_floorsweep *fs)
{
	const struct chip_cell *cell = gp_chip_cell(fs->chip, CHIP_ORDER);
	int err;

	if (!cell)
		return;
	if (cell->kind == CHIP_ORDER_ROUND_ROBIN)
		err = order_round_robin(fs);
	else
		err = order_greedy(reader, cell, fs);
	if (!err)
		fs->order = TOPO_ORDER_COMPUTED;
	else if (err != -ENODATA)
		fs->complete = false;
}
