// SPDX-License-Identifier: MIT
/*
 * Fuzz target: register values for the kernel module's pure files, for every chip. A register has
 * any value, refuses the read, or does not answer. The reported units must be exactly the units
 * that are not fused off. A map must be a permutation. An order must contain each TPC one time. A
 * page with a refused read must not be complete.
 */
#include <errno.h>
#include "kmod/regs.h"
#include "kmod/text.h"
#include "tests/fuzz/fuzz.h"

#define MOST_READS	8192	/* more registers than all pages together read */
#define PAGE_BYTES	(1 << 18)

static struct input in;
static struct answer {
	u32 offset, value;
	int err;
} answers[MOST_READS];
static unsigned int nr_answers;
static bool refused;		/* since the flag was cleared, a read was refused */

static struct gpu_engines engines;
static char page[PAGE_BYTES], again[PAGE_BYTES];

/* ------------------------------------------------------------------------ a GPU */

/*
 * A register keeps its value after the first read. A byte of the input selects the kind, and the
 * value follows in the input.
 */
static struct answer *answer_of(u32 offset)
{
	static const u32 bad[] = { 0xffffffff, 0xbadf5040, 0xbadf1201, 0xbad00100 };
	unsigned int i, how;

	for (i = 0; i < nr_answers; i++)
		if (answers[i].offset == offset)
			return &answers[i];
	MUST(nr_answers < MOST_READS);
	answers[i] = (struct answer){ .offset = offset };
	nr_answers++;
	how = input_u8(&in);
	switch (how % 8) {
	case 0:
	case 1:
		answers[i].value = how >> 3;
		break;
	case 2:
		answers[i].value = ~(u32)input_u8(&in);
		break;
	case 3:
		answers[i].value = how >> 3 | input_u8(&in) << 8;
		break;
	case 4:
		answers[i].value = bad[(how >> 3) % ARRAY_SIZE(bad)];
		break;
	case 5:
		answers[i].err = how & 0x80 ? -ENODEV : -EHOSTDOWN;
		break;
	default:
		input_bytes(&in, &answers[i].value, sizeof(answers[i].value));
	}
	return &answers[i];
}

static int rd32(struct topo_reader *reader, u32 offset, u32 *value)
{
	const struct answer *answer = answer_of(offset);

	(void)reader;
	MUST(offset < NV_BAR0_USED && !(offset & 3));
	*value = answer->value;
	refused |= answer->err || gp_topo_bad_read(answer->value);
	return answer->err;
}

/* Selects a chip of the table, or uses any chip id from the input. */
static void choose_chip(void)
{
	unsigned int chip = input_u8(&in);

	nr_answers = 0;
	if (chip >= gp_nr_chips)
		return;
	answers[0] = (struct answer){ NV_PMC_BOOT_0, (u32)gp_chips[chip].id << 20 | 0xa1, 0 };
	answers[1] = (struct answer){ NV_PMC_BOOT_42, (u32)gp_chips[chip].id << 20 | 0xa1000, 0 };
	answers[2] = (struct answer){ NV_PMC_BOOT_1, 0, 0 };
	nr_answers = 3;
	/* Mark the chip as newer. Older chips have an id only in BOOT_0. */
	answers[0].value |= 1 << 8;
}

/* -------------------------------------------------------------------- invariants */

static u32 raw(u32 offset)
{
	for (unsigned int i = 0; i < nr_answers; i++)
		if (answers[i].offset == offset)
			return answers[i].value;
	MUST(!"a register that was not asked for");
	return 0;
}

static u32 present(const struct chip_cell *fuse, unsigned int index, unsigned int nr)
{
	u32 floorswept = raw(fuse->at + 4 * index);

	if (fuse->at2)
		floorswept |= raw(fuse->at2 + 4 * index);
	return ~floorswept & (u32)((1ull << nr) - 1);
}

static void check_present(const struct gpu_floorsweep *fs)
{
	unsigned int nr_gpcs = 0, nr_tpcs = 0;

	MUST(fs->max_gpcs && fs->max_gpcs <= GPUPART_MAX_GPCS);
	MUST(fs->max_tpcs_per_gpc && fs->max_tpcs_per_gpc < 32);
	MUST(fs->present_gpcs == present(gp_chip_cell(fs->chip, CHIP_FUSE_GPC), 0, fs->max_gpcs));
	for (unsigned int gpc = 0; gpc < GPUPART_MAX_GPCS; gpc++) {
		if (gpc >= fs->max_gpcs || !(fs->present_gpcs >> gpc & 1)) {
			MUST(!fs->present_tpcs[gpc]);
			continue;
		}
		MUST(fs->present_tpcs[gpc] == present(gp_chip_cell(fs->chip, CHIP_FUSE_TPC), gpc,
						      fs->max_tpcs_per_gpc));
		nr_tpcs += __builtin_popcount(fs->present_tpcs[gpc]);
		nr_gpcs++;
	}
	MUST(fs->nr_gpcs == nr_gpcs && fs->nr_tpcs == nr_tpcs);
}

static void check_map(const struct gpu_floorsweep *fs)
{
	u32 seen = 0;

	for (unsigned int gpc = 0; gpc < GPUPART_MAX_GPCS; gpc++) {
		unsigned int phys = fs->gpc_phys[gpc];

		if (!fs->has_map || gpc >= fs->nr_gpcs) {
			MUST(phys == TOPO_UNKNOWN && fs->ugpu[gpc] == TOPO_UNKNOWN);
			continue;
		}
		MUST(phys < fs->max_gpcs && fs->present_gpcs >> phys & 1 && !(seen >> phys & 1));
		MUST(fs->ugpu[gpc] < 2 || fs->ugpu[gpc] == TOPO_UNKNOWN);
		seen |= 1u << phys;
	}
	MUST(!fs->has_map || seen == fs->present_gpcs);
	MUST(fs->has_map || fuzz_printable(fs->map_why, sizeof(fs->map_why)));
}

static int ascending(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/*
 * Checks the number of TPCs of each GPC. It must be the number of TPCs that are not fused off.
 * Without a map, the GPCs may be in any order.
 */
static void check_sizes(const struct gpu_floorsweep *fs, const int *ordered)
{
	int of[GPUPART_MAX_GPCS] = { 0 }, fused[GPUPART_MAX_GPCS] = { 0 };
	unsigned int nr = 0;

	memcpy(of, ordered, sizeof(of));
	for (unsigned int gpc = 0; gpc < fs->nr_gpcs && fs->has_map; gpc++)
		fused[gpc] = __builtin_popcount(fs->present_tpcs[fs->gpc_phys[gpc]]);
	for (unsigned int gpc = 0; gpc < fs->max_gpcs && !fs->has_map; gpc++)
		if (fs->present_gpcs >> gpc & 1)
			fused[nr++] = __builtin_popcount(fs->present_tpcs[gpc]);
	if (!fs->has_map) {
		qsort(of, GPUPART_MAX_GPCS, sizeof(of[0]), ascending);
		qsort(fused, GPUPART_MAX_GPCS, sizeof(fused[0]), ascending);
	}
	MUST(!memcmp(of, fused, sizeof(of)));
}

static void check_order(const struct gpu_floorsweep *fs)
{
	static bool seen[GPUPART_MAX_GPCS][32];
	int of[GPUPART_MAX_GPCS] = { 0 };

	MUST(fuzz_printable(fs->order_why, sizeof(fs->order_why)));
	MUST(fuzz_printable(fs->disagree, sizeof(fs->disagree)));
	if (fs->order == TOPO_ORDER_UNKNOWN) {
		MUST(*fs->order_why);
		for (unsigned int i = 0; i < GPUPART_MAX_TPCS; i++)
			MUST(fs->tpcs[i].gpc == TOPO_UNKNOWN);
		return;
	}
	MUST(fs->nr_ordered <= GPUPART_MAX_TPCS);
	memset(seen, 0, sizeof(seen));
	for (unsigned int i = 0; i < fs->nr_ordered; i++) {
		const struct gpu_tpc *tpc = &fs->tpcs[i];

		MUST(tpc->gpc < GPUPART_MAX_GPCS && tpc->tpc_in_gpc < 32);
		MUST(!seen[tpc->gpc][tpc->tpc_in_gpc]);
		seen[tpc->gpc][tpc->tpc_in_gpc] = true;
		of[tpc->gpc]++;
	}
	/*
	 * If an order of GPCs contradicts the fuses, the page must report the contradiction. An
	 * order that is computed from the fuses cannot contradict the fuses.
	 */
	MUST(fs->order == TOPO_ORDER_READ || !*fs->disagree);
	if (*fs->disagree)
		return;
	MUST(fs->nr_ordered == fs->nr_tpcs);
	check_sizes(fs, of);
	for (unsigned int gpc = 0; gpc < GPUPART_MAX_GPCS; gpc++)
		for (int i = 0; fs->order == TOPO_ORDER_COMPUTED && i < of[gpc]; i++)
			MUST(seen[gpc][i]);
}

/* Checks a page that ends with a flag. The flag shows whether the page is complete. */
static void check_page(const struct text *text, bool complete)
{
	static const char yes[] = "\ncomplete    yes\n", no[] = "\ncomplete    no\n";
	const char *end = complete ? yes : no;

	MUST(!text->overflow && text->len == strlen(text->buf));
	for (size_t i = 0; i < text->len; i++)
		MUST(text->buf[i] == '\n' || (text->buf[i] >= ' ' && text->buf[i] <= '~'));
	MUST(text->len >= strlen(end) && !strcmp(text->buf + text->len - strlen(end), end));
}

/* ------------------------------------------------------------------------ pages */

/* If the page does not exist, returns false with a reason. */
static bool show_topology(char *room)
{
	struct topo_reader reader = { .rd32 = rd32 };
	struct text text = { .buf = room, .size = PAGE_BYTES };
	struct text_topology shown = { .name = "gpu0", .bus_name = "0000:01:00.0" };
	const struct gpu_memory *memory = &shown.memory;
	struct gpu_floorsweep fs;
	struct gpu_id id;
	bool any;
	int err;

	refused = false;
	if (gp_topo_identify(&reader, &id))
		return false;
	MUST(!id.chip == !!id.why);
	if (!id.chip) {
		gp_text_refused(&text, &id);
		return false;
	}
	MUST(!refused && id.chip->id == id.chip_id);
	err = gp_topo_read(id.chip, &reader, &fs);
	if (err) {
		MUST(err == -EOPNOTSUPP || reader.fault.err == err);
		return false;
	}
	/* Like a refused read, an impossible map makes the page incomplete. */
	MUST(!(refused && fs.complete) && (fs.complete || reader.fault.err || *fs.map_why));
	any = !fs.complete;
	check_present(&fs);
	check_map(&fs);
	check_order(&fs);
	shown.id = &id;
	shown.fs = &fs;
	gp_text_topology_memory(&shown, &reader);
	err = shown.memory_fault.err;
	any |= err && err != -EOPNOTSUPP;
	MUST(err || memory->nr_fbps == (unsigned int)__builtin_popcount(memory->present_fbps));
	MUST(err || memory->nr_ltcs <= (int)(memory->nr_fbps * memory->ltcs_per_fbp));
	err = shown.local_memory_fault.err;
	any |= err && err != -EOPNOTSUPP;
	MUST(any || !refused);
	gp_text_topology(&text, &shown);
	check_page(&text, !any);
	gp_text_chip(&text, &id);
	MUST(!text.overflow);
	return true;
}

static void show_engines(void)
{
	struct topo_reader reader = { .rd32 = rd32 };
	struct text text = { .buf = page, .size = sizeof(page) };
	struct text_engines shown = { .engines = &engines };
	const struct gpu_copy *copy = &shown.copy;
	struct gpu_id id;
	u64 ns;
	int err;

	MUST(!gp_topo_identify(&reader, &id) && id.chip);
	refused = false;
	err = gp_topo_read_engines(id.chip, &reader, &engines);
	if (err)
		return;
	MUST(!refused && engines.nr <= TOPO_MAX_ENGINES && engines.nr_rows <= TOPO_MAX_ROWS);
	shown.chip = id.chip;
	gp_text_engines_copy(&shown, &reader);
	err = shown.copy_fault.err;
	MUST(err || !refused);
	for (unsigned int i = 0; i < 32 && !err; i++)
		MUST(copy->pce_lce[i] == TOPO_UNKNOWN ||
		     (copy->pce_lce[i] < 16 && copy->present_pces >> i & 1));
	gp_text_engines(&text, &shown);
	check_page(&text, !err || err == -EOPNOTSUPP);
	text = (struct text){ .buf = page, .size = sizeof(page) };
	gp_text_device_info(&text, id.chip, &engines);
	if (!err)
		gp_text_copy_topology(&text, copy);
	MUST(!text.overflow);
	/* If a clock stands still, the code must not report its time and must not wait for it. */
	err = gp_topo_read_timer(id.chip, &reader, &ns);
	MUST(err || !(ns & 0x1f));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	in = (struct input){ data, size };
	choose_chip();
	if (!show_topology(page))
		return 0;
	MUST(show_topology(again) && !strcmp(page, again));
	show_engines();
	return 0;
}
