// SPDX-License-Identifier: MIT
/*
 * Mask bits in an order that no row has, on boards that are made up: they are refused. GB100 and
 * GB202 build TMDs V04_01 and V05_00, TU102 and GA102 those with 64 mask bits.
 */
#include "tests/lib/scenario.h"

/* Of @sim, "@/TPCS-CHIP": the generated board with so many TPCs, as a capture of that chip. */
static void prepare_board(const struct scenario *s)
{
	static const unsigned int boards[][2] = { { 24, 22 }, { 74, 23 }, { 94, 24 }, { 160, 25 } };
	static char text[1 << 18];
	unsigned int tpcs = 0, chip = 0, i;
	char path[4096], *at;
	size_t len;
	FILE *file;

	sscanf(s->sim, "@/%u-%x", &tpcs, &chip);
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
	at = strstr(text, "checksum = ");
	sprintf(at, "checksum = %016llx\n",
		(unsigned long long)hash_bytes(HASH_INIT, text, at - text));
	file = fopen(expand(s->sim, path, sizeof(path)), "w");
	fputs(text, file);
	fclose(file);
}

/* Whether launches obey sets of the lowest TPC, the highest, and each third. */
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

/* In the sentence is a TPC, a bit, and that nothing was done. */
static void child_refused(void)
{
	struct gpupart_topology *topo;
	struct gpupart_tpcset seen, all;
	struct program p;
	int err = attach(NULL);

	tap_ok(err == -EPROTO && strstr(gpupart_error(gp), "does not stand for TPC") &&
		       strstr(gpupart_error(gp), "nothing is masked"),
	       "refused: %d %s", err, err ? gpupart_error(gp) : "");
	if (!tap_ok(!gpupart_topology_open(gp, getenv("GPUPART_SIM"), NULL, &topo) &&
			    !program_start(&p, 0), "a program"))
		return;
	all = gpupart_topology_all(topo);
	tap_ok(!program_census(&p, topo, NULL, &seen) && gpupart_tpcset_equal(&seen, &all),
	       "its launches run on all %u TPCs", gpupart_tpcset_count(&all));
}

static void child_no_order(void)
{
	int err = attach(NULL);

	tap_ok(err == -ENODEV, "no such GPU can be: %d %s", err, err ? gpupart_error(gp) : "");
}

#define GPU(board, version, child, ...) \
	{ board " " version " " #__VA_ARGS__, child, "@/" board, \
	  { "GPUPART_SIM_FAULTS=tmd-version=" version "" __VA_ARGS__ }, prepare_board }

#define V02_03 "0x23"
#define V02_04 "0x24"
#define V03_00 "0x30"
#define V04_01 "0x41"
#define V05_00 "0x50"

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
	GPU("24-1b2", V05_00, child_no_order, ",order=permuted"),
	GPU("24-1b2", V05_00, child_no_order, ",order=holes:x"),
	GPU("74-162", V02_03, child_no_order, ",order=holes:1"),
};

int main(int argc, char **argv)
{
	return scenario_main(argc, argv, scenarios, sizeof(scenarios) / sizeof(scenarios[0]));
}
