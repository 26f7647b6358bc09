// SPDX-License-Identifier: MIT
/*
 * Tests kmod's pure files with register files. The arguments are all .regs files. The tests cover
 * chips and refusals. In turn, each register gets a bad value.
 */
#include "tests/kmod/regfile.h"
#include "kmod/regs.h"
#include "kmod/text.h"
#include "tests/tap.h"

static struct regfile file;
static struct gpu_engines engines, engines_good;
static char page[1 << 16], page_good[1 << 16];

static void test_table(void)
{
	unsigned int i, column, tags = 0, sources = 0, ordered = 0;

	for (i = 0; i < gp_nr_chips; i++) {
		if (i && gp_chips[i].id <= gp_chips[i - 1].id)
			ordered++;
		for (column = 0; column < CHIP_COLUMNS; column++) {
			const struct chip_cell *cell = &gp_chips[i].cells[column];

			tags += cell->tag > CHIP_INFERRED;
			sources += (cell->tag != CHIP_ABSENT) != (cell->source && *cell->source);
		}
	}
	tap_ok(gp_nr_chips >= 60, "there are %u chips", gp_nr_chips);
	tap_ok(ordered == 0, "their ids ascend, so none stands twice");
	tap_ok(tags == 0 && sources == 0, "every cell has a tag and every tag a source");
	tap_ok(gp_chip_find(0x180) && !strcmp(gp_chip_find(0x180)->name, "GH100"),
	       "0x180 is GH100");
	tap_ok(!gp_chip_find(0x182) && !gp_chip_find(0x1ff) && !gp_chip_find(0),
	       "a neighbour's row is not taken");
	tap_ok(gp_chip_cell(gp_chip_find(0x180), CHIP_ORDER) == NULL &&
	       gp_chip_cell(gp_chip_find(0x192), CHIP_ORDER) == NULL &&
	       gp_chip_cell(gp_chip_find(0x1b2), CHIP_ORDER) == NULL,
	       "no rule invents an order on Hopper, Ada or Blackwell");
}

static void test_bad_reads(void)
{
	static const struct { u32 value; const char *meaning; } cases[] = {
		{ 0xffffffff, "off the bus, in reset or asleep" },
		{ 0xbadf1201, "client in reset" },
		{ 0xbadf1300, "client floorswept" },
		{ 0xbadf2000, "orphan: the GPC or FBP is floorswept" },
		{ 0xbadf5040, "no such address" },
		{ 0xbadf5046, "power gated" },
		{ 0xbadf5099, "client error" },
		{ 0xbadf5120, "privilege level violation" },
		{ 0xbadf0200, "locked after a security fault" },
		{ 0xbad00100, "host timeout" },
		{ 0xbadf3000, "ring dead" },
		{ 0xbadabcde, "refused, reason not known" },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *meaning = gp_topo_bad_read(cases[i].value);

		tap_ok(meaning && !strcmp(meaning, cases[i].meaning), "%#x is: %s", cases[i].value,
		       meaning ? meaning : "(a good value)");
	}
	tap_ok(!gp_topo_bad_read(0) && !gp_topo_bad_read(0xbacfffff) &&
	       !gp_topo_bad_read(0xbae00000) &&
	       !gp_topo_bad_read(0x180000a1), "other values are values");
}

/* Writes all data from a GPU into one page. If there is no page to show, returns false. */
static bool all_pages(char *out, struct gpu_engines *table)
{
	struct text text = { .buf = out, .size = sizeof(page) };
	struct text_topology topology = { .name = "gpu0", .bus_name = "bus" };
	struct text_engines text_of = { .engines = table };
	struct gpu_floorsweep fs;
	struct gpu_id id;
	u64 ns;
	int err;

	out[0] = 0;
	if (gp_topo_identify(&file.reader, &id) || !id.chip ||
	    gp_topo_read(id.chip, &file.reader, &fs))
		return false;
	topology.id = &id;
	topology.fs = &fs;
	gp_text_topology_memory(&topology, &file.reader);
	gp_text_topology(&text, &topology);
	err = gp_topo_read_engines(id.chip, &file.reader, table);
	if (err == -EOPNOTSUPP)
		return true;
	if (err)
		return false;
	text_of.chip = id.chip;
	gp_text_engines_copy(&text_of, &file.reader);
	gp_text_engines(&text, &text_of);
	if (gp_topo_read_timer(id.chip, &file.reader, &ns))
		return false;
	return !text.overflow;
}

static unsigned int complete_no(const char *text)
{
	unsigned int nr = 0;

	while ((text = strstr(text, "complete    no"))) {
		nr++;
		text++;
	}
	return nr;
}

/*
 * Refuses one register at a time. Then there must be no page, or the page must end with "complete
 * no".
 */
static void test_each_register_bad(const char *path)
{
	static const u32 values[] = { 0xffffffff, 0xbadf5040, 0xbadf1201 };
	static u32 offsets[REGFILE_MAX];
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	unsigned int nr, i, v, tried = 0, wrong = 0, good_no;
	u32 first_wrong = 0;

	regfile_load(&file, path);
	if (!all_pages(page_good, &engines_good)) {
		tap_ok(!strncmp(name, "refused-", 8), "%s: nothing is shown", name);
		return;
	}
	good_no = complete_no(page_good);
	nr = file.nr_asked;
	memcpy(offsets, file.asked, sizeof(offsets));
	for (i = 0; i < nr; i++) {
		for (v = 0; v < ARRAY_SIZE(values); v++) {
			u32 usual = 0;

			file.bad_value = 0;
			regfile_rd32(&file.reader, offsets[i], &usual);
			/* A register that is always refused needs no test. */
			if (gp_topo_bad_read(usual))
				continue;
			file.bad_offset = offsets[i];
			file.bad_value = values[v];
			tried++;
			if (all_pages(page, &engines) &&
			    (complete_no(page) <= good_no && !strcmp(page, page_good))) {
				wrong++;
				first_wrong = offsets[i];
			} else if (page[0] && strstr(page, "0xffffffff present")) {
				wrong++;
				first_wrong = offsets[i];
			}
			/* A page that differs must end with "complete no". */
			if (all_pages(page, &engines) && strcmp(page, page_good) &&
			    complete_no(page) == 0) {
				wrong++;
				first_wrong = offsets[i];
			}
		}
	}
	file.bad_value = 0;
	tap_ok(tried > 20 && !wrong, "%s: %u refusals, none of them hidden (first hidden %#x)",
	       name, tried, first_wrong);
	tap_ok(all_pages(page, &engines) && !strcmp(page, page_good),
	       "%s: afterwards all is as before", name);
	file.err = -ENODEV;
	tap_ok(!all_pages(page, &engines) && file.reader.fault.err == -ENODEV,
	       "%s: a GPU that is gone shows nothing", name);
}

static void test_cwd_traps(const char *path)
{
	struct gpu_floorsweep fs;
	unsigned int w;

	regfile_load(&file, path);
	gp_topo_read(gp_chip_find(0x180), &file.reader, &fs);
	tap_ok(fs.order == TOPO_ORDER_READ && fs.nr_ordered == 66,
	       "66 TPCs: words past 0x405b00's count are not read as TPCs");
	regfile_set(&file, NV_PGRAPH_PRI_CWD_FS, 0x0800 | 0x08);
	gp_topo_read(gp_chip_find(0x180), &file.reader, &fs);
	tap_ok(fs.order == TOPO_ORDER_READ && fs.nr_ordered == 8 && fs.disagree[0],
	       "fewer TPCs there than by the fuses: %s", fs.disagree);
	regfile_set(&file, NV_PGRAPH_PRI_CWD_FS, 0x4208);
	for (w = 0; w < 24; w++)
		regfile_set(&file, NV_PGRAPH_PRI_CWD_GPC_TPC_ID_GH100 + 4 * w, 0);
	gp_topo_read(gp_chip_find(0x180), &file.reader, &fs);
	tap_ok(fs.order == TOPO_ORDER_UNKNOWN, "a table of zeros is refused: %s", fs.order_why);
	regfile_set(&file, NV_PGRAPH_PRI_CWD_GPC_TPC_ID_GH100, 0x90302010);
	gp_topo_read(gp_chip_find(0x180), &file.reader, &fs);
	tap_ok(fs.order == TOPO_ORDER_UNKNOWN && fs.tpcs[0].gpc == TOPO_UNKNOWN,
	       "a GPC that is not there is refused: %s", fs.order_why);
	regfile_set(&file, NV_PGRAPH_PRI_CWD_FS, 0xff08);
	gp_topo_read(gp_chip_find(0x180), &file.reader, &fs);
	tap_ok(fs.order == TOPO_ORDER_UNKNOWN, "more TPCs than the table holds are refused: %s",
	       fs.order_why);
	regfile_set(&file, NV_PTOP_SCAL_NUM_GPCS, 0);
	tap_ok(gp_topo_read(gp_chip_find(0x180), &file.reader, &fs) == -ERANGE,
	       "no GPC at all cannot be");
}

static int timer_steps(struct topo_reader *reader, u32 offset, u32 *value)
{
	static u32 low = 0xbadf1200;
	static unsigned int reads;

	(void)reader;
	reads++;
	*value = offset == NV_PTIMER_TIME_0 ? (low += 0x20) : reads > 1 ? 8 : 7;
	return 0;
}

static void test_timer(const char *path)
{
	struct topo_reader steps = { .rd32 = timer_steps };
	u64 ns = 0;
	int err;

	regfile_load(&file, path);
	err = gp_topo_read_timer(gp_chip_find(0x180), &file.reader, &ns);
	tap_ok(!err && ns == (0x18e9dfcbull << 32 | 0x800f6440), "the timer is %#llx ns",
	       (unsigned long long)ns);
	err = gp_topo_read_timer(gp_chip_find(0x180), &steps, &ns);
	tap_ok(!err && ns >> 32 == 8 && (ns & 0xfff00000) == 0xbad00000,
	       "a carry is seen, and a time that looks like a refusal is a time: %#llx",
	       (unsigned long long)ns);
	file.bad_offset = NV_PTIMER_TIME_0;
	file.bad_value = 0xbadf5040;
	tap_ok(gp_topo_read_timer(gp_chip_find(0x180), &file.reader, &ns) == -EIO,
	       "a refusal stays one");
}

static struct {
	u32 offset;
	unsigned int for_good, for_a_second;
} kept;

static void count_kept(struct topo_reader *reader, u32 offset, u32 value, bool lasts)
{
	(void)reader;
	(void)value;
	if (offset != kept.offset)
		return;
	kept.for_good += lasts;
	kept.for_a_second += !lasts;
}

/* Possible values of fuses and maxima are kept forever. Impossible values are not kept. */
static void test_kept(const char *path)
{
	static const struct { u32 offset, wrong; } words[] = {
		{ NV_PTOP_SCAL_NUM_GPCS, 0 }, { NV_PTOP_SCAL_NUM_TPC_PER_GPC, 0 },
		{ 0x820c1c, 0xff }, { 0x820c1c, 0xfff00fff }, { 0x820c38, 0x1ff },
	};
	const struct chip *chip = gp_chip_find(0x180);
	struct gpu_floorsweep fs;
	unsigned int i;
	u32 value;

	regfile_load(&file, path);
	file.reader.keep = count_kept;
	for (i = 0; i < ARRAY_SIZE(words); i++) {
		memset(&kept, 0, sizeof(kept));
		kept.offset = words[i].offset;
		tap_ok(!gp_topo_read(chip, &file.reader, &fs) && kept.for_good,
		       "%#x is kept for good", kept.offset);
		kept.for_good = 0;
		regfile_rd32(&file.reader, kept.offset, &value);
		regfile_set(&file, kept.offset, words[i].wrong);
		tap_ok(gp_topo_read(chip, &file.reader, &fs) == -ERANGE && !kept.for_good,
		       "but not %#x", words[i].wrong);
		regfile_set(&file, kept.offset, value);
	}
}

/*
 * Some registers change all the time. Of these registers, only refusals are kept, for one second.
 */
static void test_live_refusals(const char *path)
{
	static struct gpu_runlist runlist;
	const struct chip *chip = gp_chip_find(0x180);

	regfile_load(&file, path);
	gp_topo_read_engines(chip, &file.reader, &engines);
	file.reader.keep = count_kept;
	file.reader.live = true;
	memset(&kept, 0, sizeof(kept));
	kept.offset = 0xc00108;
	gp_topo_read_runlist(&file.reader, &engines, 0xc00000, &runlist);
	tap_ok(!kept.for_good && !kept.for_a_second, "a runlist's register is not kept");
	file.bad_offset = kept.offset;
	file.bad_value = 0xbadf1201;
	tap_ok(gp_topo_read_runlist(&file.reader, &engines, 0xc00000, &runlist) == -EIO &&
	       kept.for_a_second == 1 && !kept.for_good, "its refusal is, for a second");
}

static void test_overflow(void)
{
	char small[16];
	struct text text = { .buf = small, .size = sizeof(small) };

	gp_text_add(&text, "%s", "fifteen letters");
	tap_ok(!text.overflow && text.len == 15, "what fits is there");
	gp_text_add(&text, "x");
	tap_ok(text.overflow, "what does not makes the page unfit");
}

int main(int argc, char **argv)
{
	const char *h200 = NULL, *busy = NULL;
	int i;

	test_table();
	test_bad_reads();
	test_overflow();
	for (i = 1; i < argc; i++) {
		test_each_register_bad(argv[i]);
		if (strstr(argv[i], "gh100-h200-a"))
			h200 = argv[i];
		if (strstr(argv[i], "gh100-runlists-busy"))
			busy = argv[i];
	}
	if (tap_ok(h200 != NULL, "the captured board is among the register files")) {
		test_cwd_traps(h200);
		test_timer(h200);
		test_kept(h200);
	}
	if (tap_ok(busy != NULL, "so are runlists"))
		test_live_refusals(busy);
	return tap_done();
}
