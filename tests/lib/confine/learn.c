// SPDX-License-Identifier: MIT
/*
 * Tests made-up boards. No row of the table has the order of their mask bits, so the library
 * refuses such mask bits. On request, the library learns the mask bits, and then every process
 * knows them. The TMDs of GB100 and GB202 have the versions V04_01 and V05_00. The TMDs of TU102
 * and GA102 have 64 mask bits.
 */
#include <dirent.h>
#include "lib/private.h"
#include "tests/lib/scenario.h"

/*
 * @sim is "@/TPCS-CHIP". It means the generated board with TPCS TPCs, as a capture of the chip
 * CHIP. The text ends with "?" if the maximum number of GPCs of the chip is unknown, and with
 * "+CLASS" if the driver reports the compute class.
 */
static void prepare_board(const struct scenario *s)
{
	static const unsigned int boards[][2] = { { 24, 22 }, { 74, 23 }, { 94, 24 }, { 160, 25 } };
	static char text[1 << 18];
	unsigned int tpcs = 0, chip = 0, class = 0, i;
	char path[4096], *at;
	size_t len;
	FILE *file;

	sscanf(s->sim, "@/%u-%x+%x", &tpcs, &chip, &class);
	for (i = 0; i < 3 && boards[i][0] != tpcs; i++)
		;
	snprintf(path, sizeof(path), "%s/tests/generated/%u.capture", build, boards[i][1]);
	file = fopen(path, "r");
	if (!file)
		abort();
	len = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[len] = 0;
	at = strstr(text, "chip-id = 0x180");
	if (!at || boards[i][0] != tpcs || chip < 0x100 || chip > 0xfff)
		abort();
	at[sprintf(at, "chip-id = 0x%x", chip)] = '\n';
	at = strstr(text, "max-gpcs = ");
	if (strchr(s->sim, '?'))
		memmove(at, strstr(at, "simulated = "), strlen(strstr(at, "simulated = ")) + 1);
	if (class) {
		memmove(at + 23, at, strlen(at) + 1);
		memcpy(at + sprintf(at, "compute-class = 0x%04x", class), "\n", 1);
	}
	at = strstr(text, "checksum = ");
	sprintf(at, "checksum = %016llx\n",
		(unsigned long long)hash_bytes(HASH_INIT, text, at - text));
	file = fopen(expand(s->sim, path, sizeof(path)), "w");
	fputs(text, file);
	fclose(file);
}

/*
 * Tests that launches stay in their sets. The sets are the lowest TPC, the highest TPC, and every
 * third TPC.
 */
static void sets_hold(void)
{
	unsigned int nr = gpupart_topology_nr_tpcs(gpupart_gpu_topology(gpu));
	struct gpupart_tpcset sets[3] = { { { 0 } } };
	struct program p;
	P stream;

	gpupart_tpcset_add(&sets[0], 0);
	gpupart_tpcset_add(&sets[1], nr - 1);
	for (unsigned int tpc = 1; tpc < nr; tpc += 3)
		gpupart_tpcset_add(&sets[2], tpc);
	if (!tap_ok(!program_start(&p, 0) && !cuStreamCreate(&stream, 1), "a program"))
		return;
	for (int i = 0; i < 3; i++)
		tap_ok(!gpupart_process_set(gp, gpu, &sets[i]) && ran_on(&p, stream, &sets[i]),
		       "a launch runs in its set of %u of %u TPCs",
		       gpupart_tpcset_count(&sets[i]), nr);
}

static void child_holds(void)
{
	int err = attach(NULL);

	if (tap_ok(!err, "attaches: %s", err ? gpupart_error(gp) : ""))
		sets_hold();
}

/* Checks that the message names a TPC and a bit, and says that nothing is masked. */
static void child_refused(void)
{
	struct gpupart_topology *topo;
	struct gpupart_tpcset seen, all;
	struct program p;
	int err = attach(NULL);

	if (strchr(getenv("GPUPART_SIM"), '?'))
		tap_ok(err == -EOPNOTSUPP && strstr(gpupart_error(gp), "needs the chip's maximum"),
		       "no formula: %d %s", err, err ? gpupart_error(gp) : "");
	else
		tap_ok(err == -EPROTO && strstr(gpupart_error(gp), "does not disable TPC") &&
			       strstr(gpupart_error(gp), "no launch is confined"),
		       "refused: %d %s", err, err ? gpupart_error(gp) : "");
	if (!tap_ok(!gpupart_topology_open(gp, getenv("GPUPART_SIM"), NULL, &topo) &&
			    !program_start(&p, 0), "a program"))
		return;
	all = gpupart_topology_all(topo);
	tap_ok(!program_census(&p, topo, NULL, &seen) && gpupart_tpcset_equal(&seen, &all),
	       "its launches run on all %u TPCs", gpupart_tpcset_count(&all));
}

static unsigned int nr_learnt;

static int attach_learning(void)
{
	int err = gpupart_open(&gp);

	if (err)
		return err;
	gpupart_learn(&nr_learnt);
	return attach(NULL);
}

static void child_learns(void)
{
	struct gpupart_check check;
	unsigned int nr;
	int err = attach_learning();

	if (!tap_ok(!err, "attaches: %s", err ? gpupart_error(gp) : ""))
		return;
	nr = gpupart_topology_nr_tpcs(gpupart_gpu_topology(gpu));
	gpupart_gpu_check(gpu, &check);
	tap_ok(nr_learnt > 3 * nr, "learnt with %u launches", nr_learnt);
	tap_ok(!check.from_cache && check.nr_proven == nr && check.nr_launches >= 3 * nr,
	       "and proven with %u", check.nr_launches);
	sets_hold();
}

/* If a formula gives the right mask bits, the library does not learn them. */
static void child_has_not_to_learn(void)
{
	int err = attach_learning();

	if (tap_ok(!err && !nr_learnt, "attaches with %u launches to learn: %s", nr_learnt,
		   err ? gpupart_error(gp) : ""))
		sets_hold();
}

static void refused_to_learn(const char *words)
{
	int err = attach_learning();

	tap_ok(err == -EPROTO && strstr(gpupart_error(gp), words), "refused: %d %s", err,
	       err ? gpupart_error(gp) : "");
	tap_ok(nr_learnt > 0, "after %u launches to learn", nr_learnt);
	err = gpupart_attach(gp, NULL, NULL, &gpu);
	tap_ok(err == -EPROTO, "and again: %d %s", err, err ? gpupart_error(gp) : "");
}

/* The hardware uses the mask bit of TPC 3 for TPC 5. */
static void child_two_tpcs(void) { refused_to_learn("with this bit set, 2 of 24 TPCs"); }

/* A block of another program occupies an SM. The block only uses GPU time. */
static int learn_beside(unsigned int ns)
{
	struct program p;
	P stream;

	if (driver_open() || program_start(&p, 0) || cuStreamCreate(&stream, 1) ||
	    program_launch(&p, stream, 1, ns))
		return -EIO;
	return attach_learning();
}

static void child_beside(void)
{
	int err = learn_beside(4000000000u);

	tap_ok(err == -EPROTO && strstr(gpupart_error(gp), "is another program using the GPU?"),
	       "an SM that is never free: %d %s", err, err ? gpupart_error(gp) : "");
}

static void child_beside_for_a_while(void)
{
	int err = learn_beside(120000);

	if (!tap_ok(!err, "an SM that is free again in time: %s", err ? gpupart_error(gp) : ""))
		return;
	tap_ok(nr_learnt > 304, "took more launches than 304: %u", nr_learnt);
	sets_hold();
}

static void child_knows(void)
{
	struct gpupart_check check;
	int err = attach(NULL);

	if (!tap_ok(!err, "attaches: %s", err ? gpupart_error(gp) : ""))
		return;
	gpupart_gpu_check(gpu, &check);
	tap_ok(check.from_cache, "by what was learnt before");
	sets_hold();
}

static void child_confined(void) { program_unaware("5-9,23"); }
static void child_free(void) { program_unaware(NULL); }

/*
 * If the table of chips has no row for the chip, the compute class decides. If the table has a
 * row, the compute class must agree with the row.
 */
static void child_no_class(void)
{
	int err = attach(NULL);

	tap_ok(err == -EOPNOTSUPP && strstr(gpupart_error(gp), "for its compute class"),
	       "refused: %d %s", err, err ? gpupart_error(gp) : "");
}

static void child_no_order(void)
{
	int err = attach(NULL);

	tap_ok(err == -ENODEV, "no such GPU can be: %d %s", err, err ? gpupart_error(gp) : "");
}

/* ------------------------------------------------------------------- parent */

static void path_of(const char *dir, const char *name, char path[4096])
{
	expand(dir, path, 4096);
	snprintf(path + strlen(path), 4096 - strlen(path), "/%s", name);
}

/*
 * A child learns the map. Stores the path of the map's file in @map, and the map's hash in the
 * variable key.
 */
static void learn_before(const struct scenario *s, char map[4096])
{
	struct scenario learns = *s;
	char path[4096];
	struct dirent *entry;
	DIR *dir;
	int status;

	learns.name = "learns";
	learns.env[1] = learns.env[2] = learns.env[3] = NULL;
	prepare_board(s);
	status = child_quiet(&learns);
	map[0] = key[0] = 0;
	dir = opendir(expand("@/cache/gpupart/checked", path, sizeof(path)));
	while (dir && (entry = readdir(dir))) {
		if (!strncmp(entry->d_name, "V05_00-GPU-", 11))
			path_of("@/cache/gpupart/checked", entry->d_name, map);
		else if (strlen(entry->d_name) == 16)
			strcpy(key, entry->d_name);
	}
	if (dir)
		closedir(dir);
	tap_ok(!status && map[0] && key[0], "%s: the map is kept, and key %s", s->name, key);
}

static void prepare_learnt(const struct scenario *s)
{
	char map[4096];

	learn_before(s, map);
}

/*
 * Changes the file of the map in one of four ways: exchanges two bytes, truncates the file to
 * @len, makes the file longer, or sets the mode to @mode.
 */
static void spoil(const struct scenario *s, unsigned int swapped, long len, mode_t mode)
{
	unsigned char bits[256] = { 0 }, was;
	char map[4096];
	FILE *file;

	learn_before(s, map);
	file = fopen(map, "r+");
	if (!tap_ok(file && fread(bits, 1, sizeof(bits), file) == 24, "a byte a TPC"))
		return;
	was = bits[swapped];
	bits[swapped] = bits[0];
	bits[0] = was;
	rewind(file);
	fwrite(bits, 1, len, file);
	fclose(file);
	tap_ok(!truncate(map, len) && !chmod(map, mode), "%s: spoilt", s->name);
}

static void prepare_same(const struct scenario *s) { spoil(s, 0, 24, 0600); }
static void prepare_swapped(const struct scenario *s) { spoil(s, 7, 24, 0600); }
static void prepare_cut(const struct scenario *s) { spoil(s, 0, 23, 0600); }
static void prepare_longer(const struct scenario *s) { spoil(s, 0, 25, 0600); }
static void prepare_writable(const struct scenario *s) { spoil(s, 0, 24, 0666); }

/* The map exists, but the key of its proof does not exist. */
static void prepare_no_key(const struct scenario *s)
{
	char map[4096], path[4096];

	learn_before(s, map);
	path_of("@/cache/gpupart/checked", key, path);
	tap_ok(!unlink(path), "%s: and forgotten", s->name);
}

#define GPU(board, version, child, ...) \
	{ board " " version " " #child " " #__VA_ARGS__, child, "@/" board, \
	  { "GPUPART_SIM_FAULTS=tmd-version=" version "" __VA_ARGS__ }, prepare_board }

#define V02_03 "0x23"
#define V02_04 "0x24"
#define V03_00 "0x30"
#define V04_01 "0x41"
#define V05_00 "0x50"

#define LEARNT "GPUPART_SIM_FAULTS=tmd-version=0x50,order=holes:9"
#define INJECT "CUDA_INJECTION64_PATH=@inject", "GPUPART_SET=5-9,23"

static const struct scenario scenarios[] = {
	GPU("24-1b2", V05_00, child_holds),
	GPU("74-1a0", V05_00, child_holds),
	GPU("94-1b2", V05_00, child_holds),
	GPU("160-1a0", V05_00, child_holds),
	GPU("74-1a0", V04_01, child_holds),
	GPU("160-1a0", V04_01, child_holds),
	GPU("24-162", V02_03, child_holds, ",order=number"),
	GPU("24-172", V02_04, child_holds, ",order=number"),
	GPU("24-172", V03_00, child_holds, ",order=number"),
	GPU("24-162", V02_03, child_refused, ",order=interleaved"),
	GPU("24-1b2", V05_00, child_refused, ",order=interleaved"),
	GPU("74-1a0", V05_00, child_refused, ",order=interleaved"),
	GPU("94-1b2", V05_00, child_refused, ",order=interleaved"),
	GPU("160-1a0", V05_00, child_refused, ",order=interleaved"),
	GPU("74-1a0", V04_01, child_refused, ",order=permuted:1"),
	GPU("94-1b2", V05_00, child_refused, ",order=permuted:2"),
	GPU("160-1a0", V05_00, child_refused, ",order=permuted:3"),
	GPU("24-1b2", V05_00, child_refused, ",order=holes:4"),
	GPU("160-1a0", V04_01, child_refused, ",order=holes:5"),
	GPU("24-172", V03_00, child_refused, ",order=holes:6"),
	GPU("24-162", V02_03, child_learns, ",order=interleaved"),
	GPU("24-1b2", V05_00, child_learns, ",order=interleaved"),
	GPU("74-1a0", V05_00, child_learns, ",order=interleaved"),
	GPU("94-1b2", V05_00, child_learns, ",order=interleaved"),
	GPU("160-1a0", V05_00, child_learns, ",order=interleaved"),
	GPU("74-1a0", V04_01, child_learns, ",order=permuted:1"),
	GPU("94-1b2", V05_00, child_learns, ",order=permuted:2"),
	GPU("160-1a0", V05_00, child_learns, ",order=permuted:3"),
	GPU("24-1b2", V05_00, child_learns, ",order=holes:4"),
	GPU("160-1a0", V04_01, child_learns, ",order=holes:5"),
	GPU("24-172", V03_00, child_learns, ",order=holes:6"),
	GPU("24-1b2?", V05_00, child_refused, ",order=interleaved"),
	GPU("24-1b2?", V05_00, child_learns, ",order=interleaved"),
	GPU("160-1a0", V05_00, child_has_not_to_learn, ""),
	GPU("24-1bb+cec0", V05_00, child_holds),
	GPU("24-1bb+cec0", V05_00, child_refused, ",order=interleaved"),
	GPU("24-1bb+cec0", V05_00, child_learns, ",order=interleaved"),
	GPU("24-1bb", V05_00, child_no_class),
	GPU("24-1b2+cdc0", V05_00, child_no_class),
	GPU("24-1b2", V05_00, child_two_tpcs, ",order=number,move-bit=5:3"),
	{ "beside", child_beside, "@/24-1b2", { LEARNT }, prepare_board },
	{ "beside-for-a-while", child_beside_for_a_while, "@/24-1b2", { LEARNT }, prepare_board },
	{ "learns", child_learns, "@/24-1b2", { LEARNT }, prepare_board },
	{ "known", child_knows, "@/24-1b2", { LEARNT }, prepare_learnt },
	{ "known-written-again", child_knows, "@/24-1b2", { LEARNT }, prepare_same },
	{ "other-order", child_refused, "@/24-1b2", { LEARNT }, prepare_swapped },
	{ "cut", child_refused, "@/24-1b2", { LEARNT }, prepare_cut },
	{ "longer", child_refused, "@/24-1b2", { LEARNT }, prepare_longer },
	{ "writable-by-all", child_refused, "@/24-1b2", { LEARNT }, prepare_writable },
	{ "no-key", child_refused, "@/24-1b2", { LEARNT }, prepare_no_key },
	{ "learns-again", child_learns, "@/24-1b2", { LEARNT }, prepare_swapped },
	{ "program", child_confined, "@/24-1b2", { LEARNT, INJECT }, prepare_learnt },
	{ "program-by-key", child_confined, "@/24-1b2", { LEARNT, INJECT, "GPUPART_CHECKED=@key" },
	  prepare_no_key },
	{ "program-by-no-key", child_free, "@/24-1b2", { LEARNT, INJECT }, prepare_no_key },
	{ "program-by-other-map", child_free, "@/24-1b2",
	  { LEARNT, INJECT, "GPUPART_CHECKED=@key" }, prepare_swapped },
	GPU("24-1b2", V05_00, child_no_order, ",order=permuted"),
	GPU("24-1b2", V05_00, child_no_order, ",order=holes:x"),
	GPU("74-162", V02_03, child_no_order, ",order=holes:1"),
};

int main(int argc, char **argv)
{
	return scenario_main(argc, argv, scenarios, sizeof(scenarios) / sizeof(scenarios[0]));
}
