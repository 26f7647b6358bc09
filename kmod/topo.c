// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Row + reads -> struct gpu_floorsweep and its companions. Knows no bus, no lock and
 * no text format. Fuse polarity ends here.
 */
#include "topo.h"
#include "regs.h"

/* ---------------------------------------------------------------- bad reads */

/* Codes of the priv ring, bits 31:8. nvgpu priv_ring_{gp10b,ga10b}; OGKM's ringstation. */
static const struct {
	u32 code;
	const char *meaning;
} bad_codes[] = {
	{ 0xbad001, "host timeout" },
	{ 0xbad002, "host decode error" },
	{ 0xbad00f, "host FECS error" },
	{ 0xbad0b0, "frame buffer acknowledge timeout" },
	{ 0xbadf10, "client timeout" },
	{ 0xbadf11, "address not in any range" },
	{ 0xbadf12, "client in reset" },
	{ 0xbadf13, "client floorswept" },
	{ 0xbadf14, "client stuck acknowledging" },
	{ 0xbadf15, "client expected acknowledge" },
	{ 0xbadf16, "fence error" },
	{ 0xbadf17, "sub-id error" },
	{ 0xbadf18, "read data wait" },
	{ 0xbadf19, "byte enable error" },
	{ 0xbadf20, "orphan: the GPC or FBP is floorswept" },
	{ 0xbadf21, "power not good in time" },
	{ 0xbadf22, "orphan: power gated" },
	{ 0xbadf23, "power gated" },
	{ 0xbadf24, "orphan: GC GPC" },
	{ 0xbadf25, "target GC GPC" },
	{ 0xbadf26, "local decode error" },
	{ 0xbadf27, "poisoned" },
	{ 0xbadf28, "transaction type error" },
	{ 0xbadf30, "ring dead" },
	{ 0xbadf31, "ring dead, low power" },
	{ 0xbadf40, "trap" },
	{ 0xbadf41, "target mask violation" },
	{ 0xbadf51, "privilege level violation" },
	{ 0xbadf52, "indirect access error" },
	{ 0xbadf53, "local ring error" },
	{ 0xbadf54, "falcon memory access error" },
	{ 0xbadf55, "route error" },
	{ 0xbadf56, "custom error" },
	{ 0xbadf57, "source enable violation" },
	{ 0xbadf59, "indirect source violation" },
	{ 0xbadf60, "security sensor lock" },
};

/* 0xbadf50 is "client error"; bits 7:0 say which. nvgpu priv_ring_ga10b. */
static const struct {
	u32 extra;
	const char *meaning;
} client_errors[] = {
	{ 0x40, "no such address" },
	{ 0x41, "task protection" },
	{ 0x42, "external error" },
	{ 0x43, "index out of range" },
	{ 0x44, "reset" },
	{ 0x45, "register in reset" },
	{ 0x46, "power gated" },
	{ 0x47, "unit floorswept" },
	{ 0x48, "unit's clock is off" },
};

const char *topo_bad_read(u32 value)
{
	unsigned int i;

	if (value == 0xffffffff)
		return "off the bus, in reset or asleep";
	/* OGKM and nvdebug use this very test; no register here can hold such a value. */
	if ((value & 0xfff00000) != 0xbad00000)
		return NULL;
	/* OGKM gb100/dev_nv_xal_ep_zb.h: a pattern, not a code. */
	if (value == 0xbadf0200)
		return "locked after a security fault";
	if (value >> 8 == 0xbadf50) {
		for (i = 0; i < ARRAY_SIZE(client_errors); i++)
			if (client_errors[i].extra == (value & 0xff))
				return client_errors[i].meaning;
		return "client error";
	}
	for (i = 0; i < ARRAY_SIZE(bad_codes); i++)
		if (bad_codes[i].code == value >> 8)
			return bad_codes[i].meaning;
	return "refused, reason not known";
}

bool topo_bad_for_good(u32 value)
{
	return value == 0xbadf5040;	/* no such address */
}

int topo_rd32(struct topo_reader *reader, u32 offset, u32 *value)
{
	int err = reader->rd32(reader, offset, value);

	if (!err && topo_bad_read(*value))
		err = -EIO;
	if (err) {
		reader->fault.err = err;
		reader->fault.offset = offset;
		reader->fault.value = err == -EIO ? *value : 0;
	}
	return err;
}

/* A part could not be had; unless it never will be, it is worth another try. */
static void incomplete(struct gpu_floorsweep *fs, const struct topo_reader *reader)
{
	fs->complete = false;
	if (reader->fault.err != -EIO || !topo_bad_for_good(reader->fault.value))
		fs->retry = true;
}

/* A value that was read and cannot be. */
static int nonsense(struct topo_reader *reader, u32 offset, u32 value)
{
	reader->fault.err = -ERANGE;
	reader->fault.offset = offset;
	reader->fault.value = value;
	return -ERANGE;
}

void topo_fault_text(const struct topo_fault *fault, char *text, size_t len)
{
	if (fault->err == -EIO)
		snprintf(text, len, "0x%x reads 0x%x: %s", fault->offset, fault->value,
			 topo_bad_read(fault->value));
	else if (fault->err == -ERANGE)
		snprintf(text, len, "0x%x reads 0x%x, which cannot be", fault->offset,
			 fault->value);
	else
		snprintf(text, len, "%s", topo_unreadable(fault->err));
}

const char *topo_unreadable(int err)
{
	switch (err) {
	case -ENODEV:
		return "gone";
	case -EHOSTDOWN:
		return "asleep, and could not be woken";
	case -ENXIO:
		return "not enabled: its registers are not decoded";
	case -ENOMEM:
		return "no memory to read it with";
	default:
		return "could not be read";
	}
}

/* ---------------------------------------------------------------- identity */

int topo_identify(struct topo_reader *reader, struct gpu_id *id)
{
	u32 boot_1;
	int err;

	memset(id, 0, sizeof(*id));
	err = topo_rd32(reader, NV_PMC_BOOT_0, &id->boot_0);
	if (err)
		return err;
	if (!NV_PMC_BOOT_0_ARCH_1(id->boot_0) &&
	    NV_PMC_BOOT_0_ARCH_0(id->boot_0) < NV_PMC_BOOT_0_ARCH_0_FERMI) {
		id->chip_id = REG_FIELD(id->boot_0, 28, 20);
		id->why = "older than any chip in the table";
		return 0;
	}
	err = topo_rd32(reader, NV_PMC_BOOT_42, &id->boot_42);
	if (err)
		return err;
	id->chip_id = NV_PMC_BOOT_42_CHIP_ID(id->boot_42);
	err = topo_rd32(reader, NV_PMC_BOOT_1, &boot_1);
	if (err)
		return err;
	if (NV_PMC_BOOT_1_VGPU(boot_1)) {
		id->why = "a virtual function or vGPU, whose registers are not the GPU's";
		return 0;
	}
	id->chip = chip_find(id->chip_id);
	if (!id->chip)
		id->why = "not in the table of chips";
	return 0;
}

/* ---------------------------------------------------------------- topology */

static u32 mask(unsigned int bits)
{
	return bits >= 32 ? 0xffffffff : (1u << bits) - 1;
}

/* The units that are there: the fuse (and Kepler's software mask) says which are not. */
static int read_present(struct topo_reader *reader, const struct chip_cell *fuse,
			unsigned int index, unsigned int nr, u32 *present)
{
	u32 floorswept, by_software = 0;
	int err;

	err = topo_rd32(reader, fuse->at + 4 * index, &floorswept);
	if (!err && fuse->at2)
		err = topo_rd32(reader, fuse->at2 + 4 * index, &by_software);
	if (err)
		return err;
	*present = ~(floorswept | by_software) & mask(nr);
	return 0;
}

static int read_maximum(struct topo_reader *reader, u32 offset, u32 limit, u32 *value)
{
	u32 word;
	int err = topo_rd32(reader, offset, &word);

	if (err)
		return err;
	*value = NV_PTOP_SCAL_VALUE(word);
	if (*value == 0 || *value > limit)
		return nonsense(reader, offset, word);
	return 0;
}

static void map_ascending(struct gpu_floorsweep *fs)
{
	unsigned int gpc_phys, gpc = 0;

	for (gpc_phys = 0; gpc_phys < fs->max_gpcs; gpc_phys++)
		if (fs->present_gpcs & 1u << gpc_phys)
			fs->gpc_phys[gpc++] = gpc_phys;
	fs->has_map = true;
}

static void map_smc(struct topo_reader *reader, const struct chip_cell *cell,
		    struct gpu_floorsweep *fs)
{
	u8 gpc_phys[GPUPART_MAX_GPCS], ugpu[GPUPART_MAX_GPCS];
	u32 seen = 0, word;
	unsigned int gpc;

	for (gpc = 0; gpc < fs->nr_gpcs; gpc++) {
		if (topo_rd32(reader, cell->at + 4 * gpc, &word)) {
			topo_fault_text(&reader->fault, fs->map_why, sizeof(fs->map_why));
			incomplete(fs, reader);
			return;
		}
		/* Bit 31, "valid", is 0 on H200 boards: what is checked is that it is a map. */
		gpc_phys[gpc] = NV_PSMCARB_PARTITION_GPC_MAP_PHYSICAL(word);
		ugpu[gpc] = NV_PSMCARB_PARTITION_GPC_MAP_UGPU(word);
		if (!(fs->present_gpcs & 1u << gpc_phys[gpc]) || seen & 1u << gpc_phys[gpc]) {
			snprintf(fs->map_why, sizeof(fs->map_why),
				 "0x%x names physical GPC %u for GPC %u, which cannot be",
				 cell->at + 4 * gpc, gpc_phys[gpc], gpc);
			return;
		}
		seen |= 1u << gpc_phys[gpc];
	}
	memcpy(fs->gpc_phys, gpc_phys, fs->nr_gpcs);
	memcpy(fs->ugpu, ugpu, fs->nr_gpcs);
	fs->has_map = true;
}

static void read_map(struct topo_reader *reader, struct gpu_floorsweep *fs)
{
	const struct chip_cell *cell = chip_cell(fs->chip, CHIP_GPC_MAP);

	if (!cell)
		snprintf(fs->map_why, sizeof(fs->map_why), "not published for this chip");
	else if (cell->kind == CHIP_GPC_MAP_ASCENDING)
		map_ascending(fs);
	else
		map_smc(reader, cell, fs);
}

/* The TPCs each logical GPC has in @tpcs against what the fuses leave it. */
static void compare_with_fuses(struct gpu_floorsweep *fs, const struct gpu_tpc *tpcs,
			       unsigned int nr_tpcs, unsigned int nr_gpcs, char *text, size_t len)
{
	u8 ordered[GPUPART_MAX_GPCS] = { 0 }, fused[GPUPART_MAX_GPCS] = { 0 };
	int of_size[33] = { 0 };
	unsigned int i, gpc;

	if (nr_tpcs != fs->nr_tpcs || nr_gpcs != fs->nr_gpcs) {
		snprintf(text, len, "%u TPCs in %u GPCs there, %u in %u by the fuses", nr_tpcs,
			 nr_gpcs, fs->nr_tpcs, fs->nr_gpcs);
		return;
	}
	for (i = 0; i < nr_tpcs; i++)
		ordered[tpcs[i].gpc]++;
	if (fs->has_map) {
		for (gpc = 0; gpc < nr_gpcs; gpc++) {
			fused[gpc] = popcount32(fs->present_tpcs[fs->gpc_phys[gpc]]);
			if (ordered[gpc] == fused[gpc])
				continue;
			snprintf(text, len,
				 "GPC %u has %u TPCs there, physical GPC %u has %u by the fuses",
				 gpc, ordered[gpc], fs->gpc_phys[gpc], fused[gpc]);
			return;
		}
		return;
	}
	/* Which GPC is which is not known: there must be as many of each size. */
	for (gpc = 0; gpc < nr_gpcs; gpc++)
		of_size[ordered[gpc] < 33 ? ordered[gpc] : 32]++;
	for (gpc = 0; gpc < fs->max_gpcs; gpc++)
		if (fs->present_gpcs & 1u << gpc)
			of_size[popcount32(fs->present_tpcs[gpc])]--;
	for (i = 0; i < 33; i++) {
		if (!of_size[i])
			continue;
		snprintf(text, len, "%d more GPCs of %u TPCs there than by the fuses", of_size[i],
			 i);
		return;
	}
}

/* 0 when the table was there and made sense, else order_why says what was wrong. */
static int read_cwd(struct topo_reader *reader, const struct chip_cell *cell,
		    struct gpu_floorsweep *fs)
{
	u32 seen[GPUPART_MAX_GPCS] = { 0 };
	unsigned int nr_tpcs, nr_gpcs, tpc;
	u32 word = 0;

	if (topo_rd32(reader, NV_PGRAPH_PRI_CWD_FS, &word))
		goto fault;
	nr_tpcs = NV_PGRAPH_PRI_CWD_FS_NUM_TPCS(word);
	nr_gpcs = NV_PGRAPH_PRI_CWD_FS_NUM_GPCS(word);
	/* Before Hopper an idle GPU reads zeros everywhere. */
	if (!nr_tpcs || nr_tpcs > 4u * cell->nr || !nr_gpcs || nr_gpcs > GPUPART_MAX_GPCS) {
		snprintf(fs->order_why, sizeof(fs->order_why),
			 "0x%x counts %u TPCs and %u GPCs: %s", NV_PGRAPH_PRI_CWD_FS, nr_tpcs,
			 nr_gpcs,
			 nr_tpcs ? "its table has no room for them"
				 : "no graphics context is loaded");
		return -ENODATA;
	}
	for (tpc = 0; tpc < nr_tpcs; tpc++) {
		struct gpu_tpc *entry = &fs->tpcs[tpc];

		if (tpc % 4 == 0 && topo_rd32(reader, cell->at + tpc, &word))
			goto fault;
		entry->tpc_in_gpc = NV_PGRAPH_PRI_CWD_GPC_TPC_ID_TPC(word, tpc % 4);
		entry->gpc = NV_PGRAPH_PRI_CWD_GPC_TPC_ID_GPC(word, tpc % 4);
		if (entry->gpc >= nr_gpcs) {
			snprintf(fs->order_why, sizeof(fs->order_why),
				 "the table puts TPC %u into GPC %u of %u", tpc, entry->gpc,
				 nr_gpcs);
			return -ENODATA;
		}
		/* All zeros looks like TPC 0 of GPC 0 again and again. */
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
	compare_with_fuses(fs, fs->tpcs, nr_tpcs, nr_gpcs, fs->disagree, sizeof(fs->disagree));
	return 0;
fault:
	topo_fault_text(&reader->fault, fs->order_why, sizeof(fs->order_why));
	incomplete(fs, reader);
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

/* More than any chip of these generations has, and small enough for a kernel's stack. */
#define GREEDY_MAX_GPCS 16
#define GREEDY_MAX_PES 4
#define GREEDY_MAX_TPCS 16	/* in a GPC */
#define GREEDY_SCALE 512

struct greedy {
	unsigned int nr_gpcs, nr_pes;
	u16 left[GREEDY_MAX_GPCS];	/* TPCs not numbered yet, by PES-aware index */
	u16 pes[GREEDY_MAX_GPCS][GREEDY_MAX_PES];
	u8 count[GREEDY_MAX_GPCS];	/* at the start */
};

/* How well balanced what is left is. nvgpu gv100_gr_config_init_sm_id_table, nouveau alike. */
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

/* A PES-aware TPC index as the dense one: the TPCs of the PESs before, then below it in its own. */
static unsigned int greedy_dense(const struct greedy *g, unsigned int gpc, unsigned int bit)
{
	unsigned int pes, before = 0;

	for (pes = 0; pes < g->nr_pes; pes++) {
		if (g->pes[gpc][pes] & 1u << bit)
			return before + popcount32(g->pes[gpc][pes] & mask(bit));
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
	err = read_maximum(reader, NV_PTOP_SCAL_NUM_PES_PER_GPC, GREEDY_MAX_PES, &g.nr_pes);
	if (err)
		return err;
	for (gpc = 0; gpc < g.nr_gpcs; gpc++) {
		for (pes = 0; pes < g.nr_pes; pes++) {
			u32 at = cell->at + 4 * pes + NV_PGRAPH_GPC_STRIDE * gpc;
			u32 word;

			err = topo_rd32(reader, at, &word);
			if (err)
				return err;
			if (word & ~mask(fs->max_tpcs_per_gpc) || word & g.left[gpc])
				return nonsense(reader, at, word);
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
				/* A tie stays with the first: as NVIDIA's driver (nouveau). */
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
	compare_with_fuses(fs, fs->tpcs, total, g.nr_gpcs, mismatch, sizeof(mismatch));
	if (mismatch[0])
		return -ENODATA;
	fs->nr_ordered = total;
	return 0;
}

static void compute_order(struct topo_reader *reader, struct gpu_floorsweep *fs)
{
	const struct chip_cell *cell = chip_cell(fs->chip, CHIP_ORDER);
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
		incomplete(fs, reader);
}

int topo_read(const struct chip *chip, struct topo_reader *reader, struct gpu_floorsweep *fs)
{
	const struct chip_cell *gpc_fuse = chip_cell(chip, CHIP_FUSE_GPC);
	const struct chip_cell *tpc_fuse = chip_cell(chip, CHIP_FUSE_TPC);
	const struct chip_cell *cpc_fuse = chip_cell(chip, CHIP_FUSE_CPC);
	const struct chip_cell *sms = chip_cell(chip, CHIP_SMS_PER_TPC);
	const struct chip_cell *cwd = chip_cell(chip, CHIP_CWD);
	unsigned int gpc_phys;
	u32 word;
	int err;

	memset(fs, 0, sizeof(*fs));
	memset(fs->gpc_phys, TOPO_UNKNOWN, sizeof(fs->gpc_phys));
	memset(fs->ugpu, TOPO_UNKNOWN, sizeof(fs->ugpu));
	fs->chip = chip;
	fs->complete = true;
	if (!gpc_fuse || !tpc_fuse || !chip_cell(chip, CHIP_MAXIMA))
		return -EOPNOTSUPP;
	fs->sms_per_tpc = sms ? sms->nr : 0;

	err = read_maximum(reader, NV_PTOP_SCAL_NUM_GPCS, GPUPART_MAX_GPCS, &fs->max_gpcs);
	if (!err)
		err = read_maximum(reader, NV_PTOP_SCAL_NUM_TPC_PER_GPC, 31, &fs->max_tpcs_per_gpc);
	if (!err)
		err = read_present(reader, gpc_fuse, 0, fs->max_gpcs, &fs->present_gpcs);
	if (err)
		return err;
	fs->nr_gpcs = popcount32(fs->present_gpcs);
	for (gpc_phys = 0; gpc_phys < fs->max_gpcs; gpc_phys++) {
		/* What a floorswept GPC's own fuses say means nothing. */
		if (!(fs->present_gpcs & 1u << gpc_phys))
			continue;
		err = read_present(reader, tpc_fuse, gpc_phys, fs->max_tpcs_per_gpc,
				   &fs->present_tpcs[gpc_phys]);
		if (err)
			return err;
		fs->nr_tpcs += popcount32(fs->present_tpcs[gpc_phys]);
	}
	if (cpc_fuse) {
		fs->has_cpcs = true;
		for (gpc_phys = 0; gpc_phys < fs->max_gpcs; gpc_phys++) {
			if (!(fs->present_gpcs & 1u << gpc_phys))
				continue;
			if (topo_rd32(reader, cpc_fuse->at + 4 * gpc_phys, &word)) {
				fs->has_cpcs = false;
				incomplete(fs, reader);
				break;
			}
			fs->floorswept_cpcs[gpc_phys] = popcount32(word);
		}
	}
	read_map(reader, fs);

	if (!cwd)
		snprintf(fs->order_why, sizeof(fs->order_why), "this chip has no such table");
	if (!cwd || read_cwd(reader, cwd, fs))
		compute_order(reader, fs);
	/* A table that is not loaded yet may be later. */
	if (cwd && fs->order != TOPO_ORDER_READ)
		fs->retry = true;
	if (fs->order == TOPO_ORDER_UNKNOWN)
		memset(fs->tpcs, TOPO_UNKNOWN, sizeof(fs->tpcs));
	return 0;
}

unsigned int topo_cwd_words(const struct gpu_floorsweep *fs)
{
	return fs->order == TOPO_ORDER_READ ? (fs->nr_ordered + 3) / 4 : 0;
}

/* ----------------------------------------------------------------- engines */

/* OGKM ga100/dev_top.h and its addendum, gb100/dev_top.h; the words are those nvdebug shows. */
static const struct {
	unsigned int type;
	const char *name;
} engine_names[] = {
	{ 0, "Graphics/Compute" },
	{ 1, "COPY0" },
	{ 2, "COPY1" },
	{ 3, "COPY2" },
	{ 8, "MSPDEC: Picture Decoder" },
	{ 9, "MSPPP: Post Processing" },
	{ 10, "MSVLD: Variable Length Decoder" },
	{ 11, "MSENC: Encoder" },
	{ 12, "VIC: Video Image Compositor" },
	{ 13, "SEC: Sequencer" },
	{ 14, "NVENC: NVIDIA Video Encoder" },
	{ 15, "NVENC1: NVIDIA Video Encoder #1" },
	{ 16, "NVDEC: NVIDIA Video Decoder" },
	{ 18, "IOCTRL: I/O Controller" },
	{ 19, "LCE: Logical Copy Engine" },
	{ 20, "GSP: GPU System Processor" },
	{ 21, "NVJPG: NVIDIA JPEG Decoder" },
	{ 22, "OFA: Optical Flow Accelerator" },
	{ 23, "FLA: Fabric Logical Addressing" },
	{ 24, "HSHUB: High Speed Hub" },
	{ 25, "C2C" },
	{ 26, "FSP" },
	{ 0x1f, "TMR" },
	{ 0x33, "PBUS" },
	{ 0x34, "PTOP" },
	{ 0x35, "HUBMMU" },
};

const char *topo_engine_name(unsigned int type)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(engine_names); i++)
		if (engine_names[i].type == type)
			return engine_names[i].name;
	return NULL;
}

static void tagged_row(u32 row, struct gpu_engine *engine)
{
	switch (NV_PTOP_DEVICE_INFO_ENTRY(row)) {
	case NV_PTOP_DEVICE_INFO_ENTRY_DATA:
		if (NV_PTOP_DEVICE_INFO_DATA_NOT_ENUM2(row))
			break;
		engine->instance = NV_PTOP_DEVICE_INFO_DATA_INST(row);
		engine->pri_base = NV_PTOP_DEVICE_INFO_DATA_PRI(row);
		if (NV_PTOP_DEVICE_INFO_DATA_FAULT_VALID(row))
			engine->fault = NV_PTOP_DEVICE_INFO_DATA_FAULT(row);
		break;
	case NV_PTOP_DEVICE_INFO_ENTRY_ENUM:
		if (NV_PTOP_DEVICE_INFO_ENUM_ENGINE_VALID(row))
			engine->engine_id = NV_PTOP_DEVICE_INFO_ENUM_ENGINE(row);
		if (NV_PTOP_DEVICE_INFO_ENUM_RUNLIST_VALID(row))
			engine->runlist = NV_PTOP_DEVICE_INFO_ENUM_RUNLIST(row);
		if (NV_PTOP_DEVICE_INFO_ENUM_INTR_VALID(row))
			engine->intr = NV_PTOP_DEVICE_INFO_ENUM_INTR(row);
		if (NV_PTOP_DEVICE_INFO_ENUM_RESET_VALID(row))
			engine->reset = NV_PTOP_DEVICE_INFO_ENUM_RESET(row);
		break;
	case NV_PTOP_DEVICE_INFO_ENTRY_TYPE:
		engine->type = NV_PTOP_DEVICE_INFO_TYPE_ENUM(row);
		break;
	}
}

static void indexed_row(unsigned int index, u32 row, struct gpu_engine *engine)
{
	switch (index) {
	case 0:
		engine->type = NV_PTOP_DEVICE_INFO2_0_TYPE(row);
		engine->instance = NV_PTOP_DEVICE_INFO2_0_INST(row);
		engine->fault = NV_PTOP_DEVICE_INFO2_0_FAULT(row);
		break;
	case 1:
		engine->reset = NV_PTOP_DEVICE_INFO2_1_RESET(row);
		engine->pri_base = NV_PTOP_DEVICE_INFO2_1_PRI(row);
		break;
	case 2:
		engine->rleng = NV_PTOP_DEVICE_INFO2_2_RLENG(row);
		engine->runlist_pri_base = NV_PTOP_DEVICE_INFO2_2_RUNLIST_PRI(row);
		break;
	}
}

void topo_engine_row(const struct chip *chip, unsigned int index, u32 row,
		     struct gpu_engine *engine)
{
	if (index == 0) {
		memset(engine, 0, sizeof(*engine));
		engine->type = 0xffff;
		engine->engine_id = -1;
		engine->runlist = -1;
		engine->intr = -1;
		engine->reset = -1;
		engine->fault = -1;
		engine->rleng = -1;
	}
	if (chip->cells[CHIP_ENGINES].kind == CHIP_ENGINES_TAGGED)
		tagged_row(row, engine);
	else
		indexed_row(index, row, engine);
}

static int engines_of_die(const struct chip *chip, const struct chip_cell *cell,
			  struct topo_reader *reader, unsigned int die,
			  struct gpu_engines *engines)
{
	u32 base = cell->at + die * NV_PTOP_DIE_STRIDE;
	unsigned int nr_rows = 64, index = 0, i;
	struct gpu_engine engine = { 0 };
	int err;

	if (cell->kind == CHIP_ENGINES_ROWS) {
		u32 at = NV_PTOP_DEVICE_INFO_CFG + die * NV_PTOP_DIE_STRIDE, config;

		err = topo_rd32(reader, at, &config);
		if (err)
			return err;
		nr_rows = NV_PTOP_DEVICE_INFO_CFG_NUM_ROWS(config);
		/* 2: GA100 to GB100; 3: GB20C, the same rows (nvgpu hw_top_gb20c.h). */
		if (NV_PTOP_DEVICE_INFO_CFG_VERSION(config) != 2 &&
		    NV_PTOP_DEVICE_INFO_CFG_VERSION(config) != 3)
			return nonsense(reader, at, config);
		if (!nr_rows || nr_rows > TOPO_MAX_ROWS)
			return nonsense(reader, at, config);
	}
	for (i = 0; i < nr_rows; i++) {
		u32 row;

		err = topo_rd32(reader, base + 4 * i, &row);
		if (err)
			return err;
		/* There are empty rows between and inside the groups of rows. */
		if (cell->kind == CHIP_ENGINES_TAGGED ? !NV_PTOP_DEVICE_INFO_ENTRY(row) : !row)
			continue;
		/* A lone row is no engine. */
		if (cell->kind == CHIP_ENGINES_ROWS && !index && !NV_PTOP_DEVICE_INFO_CHAIN(row))
			continue;
		if (engines->nr_rows == TOPO_MAX_ROWS || index > 8)
			return nonsense(reader, base + 4 * i, row);
		engines->rows[engines->nr_rows] = row;
		engines->row_index[engines->nr_rows++] = index;
		topo_engine_row(chip, index, row, &engine);
		index++;
		if (NV_PTOP_DEVICE_INFO_CHAIN(row))
			continue;
		if (engines->nr == TOPO_MAX_ENGINES)
			return nonsense(reader, base + 4 * i, row);
		engine.die = die;
		engines->engines[engines->nr++] = engine;
		index = 0;
	}
	return 0;
}

int topo_read_engines(const struct chip *chip, struct topo_reader *reader,
		      struct gpu_engines *engines)
{
	const struct chip_cell *cell = chip_cell(chip, CHIP_ENGINES);
	unsigned int die;
	int err;

	memset(engines, 0, sizeof(*engines));
	if (!cell)
		return -EOPNOTSUPP;
	for (die = 0; die < cell->nr; die++) {
		if (die == 1)
			engines->rows_die1 = engines->nr_rows;
		err = engines_of_die(chip, cell, reader, die, engines);
		if (err)
			return err;
	}
	return 0;
}

/* ------------------------------------------------------------ copy engines */

int topo_read_copy(const struct chip *chip, struct topo_reader *reader, struct gpu_copy *copy)
{
	const struct chip_cell *pces = chip_cell(chip, CHIP_PCE);
	const struct chip_cell *grces = chip_cell(chip, CHIP_GRCE);
	unsigned int pce, grce;
	u32 word = 0;
	int err;

	memset(copy, 0, sizeof(*copy));
	memset(copy->pce_lce, TOPO_UNKNOWN, sizeof(copy->pce_lce));
	memset(copy->grce_lce, TOPO_UNKNOWN, sizeof(copy->grce_lce));
	if (!pces || !grces)
		return -EOPNOTSUPP;
	err = topo_rd32(reader, NV_CE_PCE_MAP, &copy->present_pces);
	if (err)
		return err;
	for (pce = 0; pce < 32; pce++) {
		unsigned int lce, none;

		if (!(copy->present_pces & 1u << pce))
			continue;
		if (pces->kind == CHIP_PCE_NIBBLES) {
			if (pce >= 8)
				return nonsense(reader, NV_CE_PCE_MAP, copy->present_pces);
			err = topo_rd32(reader, pces->at, &word);
			lce = word >> (4 * pce) & 0xf;
			none = NV_CE_PCE2LCE_LCE_NONE_GP100;
		} else {
			if (pces->nr && pce >= pces->nr)
				return nonsense(reader, NV_CE_PCE_MAP, copy->present_pces);
			err = topo_rd32(reader, pces->at + 4 * pce, &word);
			lce = NV_CE_PCE2LCE_LCE(word);
			none = NV_CE_PCE2LCE_LCE_NONE;
		}
		if (err)
			return err;
		if (lce != none)
			copy->pce_lce[pce] = lce;
	}
	copy->nr_grces = grces->nr;
	for (grce = 0; grce < grces->nr; grce++) {
		if (pces->kind == CHIP_PCE_NIBBLES) {
			err = topo_rd32(reader, grces->at, &word);
			word = word >> (8 * grce) & 0xff;
			if (!err && word & 0x8)
				copy->grce_lce[grce] = word & 0x7;
		} else {
			err = topo_rd32(reader, grces->at + 4 * grce, &word);
			if (!err &&
			    NV_CE_GRCE_CONFIG_SHARED_LCE(word) != NV_CE_GRCE_CONFIG_SHARED_LCE_NONE)
				copy->grce_lce[grce] = NV_CE_GRCE_CONFIG_SHARED_LCE(word);
		}
		if (err)
			return err;
	}
	return 0;
}

/* ------------------------------------------------------------------ memory */

int topo_read_memory(const struct chip *chip, struct topo_reader *reader,
		     struct gpu_memory *memory)
{
	const struct chip_cell *fbps = chip_cell(chip, CHIP_FUSE_FBP);
	const struct chip_cell *ltcs = chip_cell(chip, CHIP_FUSE_LTC);
	unsigned int fbp;
	u32 present;
	int err;

	memset(memory, 0, sizeof(*memory));
	memory->nr_ltcs = -1;
	if (!fbps)
		return -EOPNOTSUPP;
	err = read_maximum(reader, NV_PTOP_SCAL_NUM_FBPS, 31, &memory->max_fbps);
	if (!err)
		err = read_present(reader, fbps, 0, memory->max_fbps, &memory->present_fbps);
	if (err)
		return err;
	memory->nr_fbps = popcount32(memory->present_fbps);
	if (!ltcs)
		return 0;
	err = read_maximum(reader, NV_PTOP_SCAL_NUM_LTC_PER_FBP, 31, &memory->ltcs_per_fbp);
	if (!err)
		err = read_maximum(reader, NV_PTOP_SCAL_NUM_SLICES_PER_LTC, 31,
				   &memory->slices_per_ltc);
	if (err)
		return err;
	memory->nr_ltcs = 0;
	for (fbp = 0; fbp < memory->max_fbps; fbp++) {
		if (!(memory->present_fbps & 1u << fbp))
			continue;
		err = read_present(reader, ltcs, fbp, memory->ltcs_per_fbp, &present);
		if (err)
			return err;
		memory->nr_ltcs += popcount32(present);
	}
	return 0;
}

int topo_read_local_memory(const struct chip *chip, struct topo_reader *reader, u64 *bytes)
{
	const struct chip_cell *cell = chip_cell(chip, CHIP_MEMORY);
	u32 word, magnitude;
	int err;

	if (!cell)
		return -EOPNOTSUPP;
	err = topo_rd32(reader, cell->at, &word);
	if (err)
		return err;
	if (cell->kind == CHIP_MEMORY_MAG6)
		magnitude = NV_PFB_PRI_MMU_LOCAL_MEMORY_RANGE_MAG_GP100(word);
	else
		magnitude = NV_PFB_PRI_MMU_LOCAL_MEMORY_RANGE_MAG_GH100(word);
	*bytes = ((u64)magnitude << NV_PFB_PRI_MMU_LOCAL_MEMORY_RANGE_SCALE(word)) << 20;
	/* Check bits live in the memory itself there: nvgpu gv100_fb_get_vidmem_size. */
	if (cell->kind == CHIP_MEMORY_MAG6 && NV_PFB_PRI_MMU_LOCAL_MEMORY_RANGE_ECC(word))
		*bytes = *bytes / 16 * 15;
	return 0;
}

/* ------------------------------------------------------------------- timer */

/*
 * For a millisecond of every 4.3 seconds the low word looks like a refusal. Time goes
 * on between two reads; a refusal stays what it is.
 */
static int read_timer_low(struct topo_reader *reader, u32 at, u32 *low)
{
	u32 before;
	int err = reader->rd32(reader, at, &before);

	if (!err && !topo_bad_read(before)) {
		*low = before;
		return 0;
	}
	if (!err)
		err = reader->rd32(reader, at, low);
	if (!err && *low != before && *low != 0xffffffff)
		return 0;
	reader->fault.err = err ? err : -EIO;
	reader->fault.offset = at;
	reader->fault.value = err ? 0 : *low;
	return reader->fault.err;
}

int topo_read_timer(const struct chip *chip, struct topo_reader *reader, u64 *ns)
{
	const struct chip_cell *cell = chip_cell(chip, CHIP_TIMER);
	u32 low, high, again;
	unsigned int tries;
	int err;

	if (!cell)
		return -EOPNOTSUPP;
	err = topo_rd32(reader, NV_PTIMER_TIME_1, &high);
	/* High changes every 4.3 s: more than one repeat is a broken timer. */
	for (tries = 0; !err && tries < 4; tries++) {
		err = read_timer_low(reader, cell->at, &low);
		if (!err)
			err = topo_rd32(reader, NV_PTIMER_TIME_1, &again);
		if (!err && again == high) {
			*ns = (u64)NV_PTIMER_TIME_1_NSEC(high) << 32 | NV_PTIMER_TIME_0_NSEC(low);
			return 0;
		}
		high = again;
	}
	return err ? err : nonsense(reader, NV_PTIMER_TIME_1, again);
}
