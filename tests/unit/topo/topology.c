// SPDX-License-Identifier: MIT
/*
 * Tests the topology object. Every board is compared with values that do not come from the
 * library. The tests cover queries in both directions, text forms of sets, selectors, and every
 * refusal of topo_build().
 */
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/topo/topology.h"
#include "tests/tap.h"

static struct gpupart *gp;

static struct gpupart_topology *open_capture(const char *path)
{
	struct gpupart_topology *topo = NULL;

	if (gpupart_topology_open(gp, path, NULL, &topo))
		printf("# %s\n", gpupart_error(gp));
	return topo;
}

static const char *generated(unsigned int number)
{
	static char path[4096];

	snprintf(path, sizeof(path), "%s/tests/generated/%02u.capture",
		 getenv("BUILD") ? getenv("BUILD") : "build", number);
	return path;
}

/* ------------------------------------------------------------------- boards */

static struct gpupart_tpcset list(const char *text)
{
	struct gpupart_tpcset set = { 0 };

	gpupart_tpcset_parse_list(NULL, text, &set);
	return set;
}

static bool tpc_as_expected(const struct gpupart_topology *topo, const char *line)
{
	struct gpupart_tpcset sms = { 0 }, expected;
	int id, gpc, tpc_in_gpc, vgpc, tpc_in_vgpc, cpc, ugpu, bit;
	const struct gpupart_tpc *tpc;
	char text[64];
	unsigned int i;

	if (sscanf(line, "tpc %d %d %d %d %d %d %d %d %63s", &id, &gpc, &tpc_in_gpc, &vgpc,
		   &tpc_in_vgpc, &cpc, &ugpu, &bit, text) != 9)
		return false;
	tpc = gpupart_topology_tpc(topo, id);
	if (!tpc)
		return false;
	/*
	 * The SM numbers of these boards are below a set's maximum, so the test uses sets to sort
	 * and compare the SM numbers.
	 */
	expected = list(text);
	for (i = 0; i < tpc->nr_sms; i++) {
		gpupart_tpcset_add(&sms, tpc->sms[i]);
		if (gpupart_topology_sm_tpc(topo, tpc->sms[i]) != id)
			return false;
	}
	return tpc->gpc == gpc && tpc->tpc_in_gpc == tpc_in_gpc && tpc->vgpc == vgpc &&
	       tpc->tpc_in_vgpc == tpc_in_vgpc && tpc->cpc == cpc && tpc->ugpu == ugpu &&
	       tpc->measured_bit == bit && tpc->nr_sms == gpupart_tpcset_count(&expected) &&
	       gpupart_tpcset_equal(&sms, &expected);
}

static bool gpc_as_expected(const struct gpupart_topology *topo, const char *line)
{
	const struct gpupart_gpc *gpc;
	struct gpupart_tpcset expected;
	int id, gpc_phys, ugpu;
	unsigned int present;
	char text[256];

	if (sscanf(line, "gpc %d %d %x %d %255s", &id, &gpc_phys, &present, &ugpu, text) != 5)
		return false;
	gpc = gpupart_topology_gpc(topo, id);
	expected = list(text);
	return gpc && gpc->gpc_phys == gpc_phys && gpc->present_tpcs == present &&
	       gpc->ugpu == ugpu && gpupart_tpcset_equal(&gpc->tpcs, &expected);
}

static void test_board(const char *folder)
{
	const char *board = strrchr(folder, '/') + 1;
	const struct gpupart_gpu_info *info;
	struct gpupart_topology *topo;
	unsigned int nr_tpcs = 0, nr_gpcs = 0;
	char path[4096], line[512];
	bool good = true;
	FILE *file;

	snprintf(path, sizeof(path), "%s/capture.txt", folder);
	topo = open_capture(path);
	if (!tap_ok(!!topo, "%s opens", board))
		return;
	info = gpupart_topology_info(topo);
	tap_ok(!strcmp(info->name, "NVIDIA H200") && !strcmp(info->driver, "580.159") &&
		       !strcmp(info->source, path) && info->chip_id == 0x180 && info->mig == 0 &&
		       info->max_gpcs == 8 && info->max_tpcs_per_gpc == 9 && !info->simulated &&
		       !info->pci[0] && !info->uuid[0] && strstr(info->origin, "board"),
	       "%s: what is known of the GPU", board);
	tap_ok(gpupart_topology_nr_tpcs(topo) == 66 && gpupart_topology_nr_gpcs(topo) == 8 &&
		       gpupart_topology_nr_sms(topo) == 132 &&
		       gpupart_topology_nr_ugpus(topo) == 2 &&
		       gpupart_topology_end_vgpc(topo) == 20,
	       "%s: counts", board);

	snprintf(path, sizeof(path), "%s/expected.txt", folder);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof(line), file)) {
		bool row = true;

		if (!strncmp(line, "tpc", 3)) {
			row = tpc_as_expected(topo, line);
			nr_tpcs++;
		} else if (!strncmp(line, "gpc", 3)) {
			row = gpc_as_expected(topo, line);
			nr_gpcs++;
		}
		if (!row)
			printf("# not so: %s", line);
		good &= row;
	}
	if (file)
		fclose(file);
	tap_ok(good && nr_tpcs == 66 && nr_gpcs == 8, "%s: %u TPCs and %u GPCs are as expected",
	       board, nr_tpcs, nr_gpcs);
	gpupart_topology_close(topo);
}

static void test_boards(void)
{
	glob_t boards;
	size_t i;

	if (glob("tests/data/gh100-h200-?", 0, NULL, &boards)) {
		tap_ok(false, "boards are there");
		return;
	}
	for (i = 0; i < boards.gl_pathc; i++)
		test_board(boards.gl_pathv[i]);
	tap_ok(boards.gl_pathc == 7, "seven boards");
	globfree(&boards);
}

/* The numbers of board e, which a person has read from NVIDIA's table. */
static void test_board_e(void)
{
	struct gpupart_topology *topo = open_capture("tests/data/gh100-h200-e/capture.txt");
	struct gpupart_tpcset gpc1 = list("0,8,16,24,62,65"), ugpu0, ugpu1, all, set;
	const struct gpupart_gpc *gpc;
	const struct gpupart_tpc *tpc;

	if (!topo) {
		tap_ok(false, "board e opens");
		return;
	}
	gpc = gpupart_topology_gpc(topo, 1);
	tap_ok(gpupart_tpcset_equal(&gpc->tpcs, &gpc1) && gpc->gpc_phys == 5 &&
		       gpc->present_tpcs == 0x1f8 && gpc->ugpu == 1,
	       "board e: GPC 1 has 6 TPCs, two of them singletons");
	tpc = gpupart_topology_tpc(topo, 65);
	tap_ok(tpc->gpc == 1 && tpc->tpc_in_gpc == 5 && tpc->vgpc == 19 && tpc->tpc_in_vgpc == 0 &&
		       tpc->sms[0] == 130 && tpc->sms[1] == 131 && tpc->measured_bit == 83,
	       "board e: TPC 65 is a singleton of GPC 1");
	set = gpupart_topology_vgpc(topo, 0);
	gpc1 = list("0,8,16,24");
	tap_ok(gpupart_tpcset_equal(&set, &gpc1), "board e: virtual GPC 0 is the rest of GPC 1");
	set = gpupart_topology_vgpc(topo, 12);
	tap_ok(gpupart_tpcset_empty(&set), "board e: virtual GPC 12 is not there");
	set = gpupart_topology_vgpc(topo, UINT32_MAX);
	tap_ok(gpupart_tpcset_empty(&set), "nor is the virtual GPC of all ones");
	ugpu0 = gpupart_topology_ugpu(topo, 0);
	ugpu1 = gpupart_topology_ugpu(topo, 1);
	all = gpupart_topology_all(topo);
	set = gpupart_tpcset_or(&ugpu0, &ugpu1);
	tap_ok(gpupart_tpcset_count(&ugpu0) == 33 && gpupart_tpcset_count(&ugpu1) == 33 &&
		       gpupart_tpcset_equal(&set, &all),
	       "board e: two uGPUs of 33 TPCs");
	set = gpupart_topology_ugpu(topo, 2);
	tap_ok(gpupart_tpcset_empty(&set), "board e: no uGPU 2");
	tap_ok(!gpupart_topology_tpc(topo, 66) && !gpupart_topology_gpc(topo, 8) &&
		       gpupart_topology_sm_tpc(topo, 132) == -1,
	       "board e: no TPC 66, GPC 8, SM 132");
	gpupart_topology_close(topo);
}

static void test_hash(void)
{
	struct gpupart_topology *b = open_capture("tests/data/gh100-h200-b/capture.txt");
	struct gpupart_topology *d = open_capture("tests/data/gh100-h200-d/capture.txt");
	struct gpupart_topology *e = open_capture("tests/data/gh100-h200-e/capture.txt");
	int *fields[] = { &e->tpcs[65].gpc,  &e->tpcs[65].tpc_in_gpc,
			  &e->tpcs[65].vgpc, &e->tpcs[65].tpc_in_vgpc,
			  &e->tpcs[65].ugpu, (int *)&e->tpcs[65].sms[1],
			  (int *)&e->nr_tpcs };
	uint64_t hash = gpupart_topology_hash(e);
	bool good = true;
	unsigned int i;

	tap_ok(gpupart_topology_hash(b) == gpupart_topology_hash(d),
	       "boards b and d have the same membership and hash");
	tap_ok(gpupart_topology_hash(b) != hash, "board e has not");
	for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		--*fields[i];
		good &= gpupart_topology_hash(e) != hash;
		++*fields[i];
	}
	tap_ok(good && gpupart_topology_hash(e) == hash, "each id changes the hash");
	gpupart_topology_close(b);
	gpupart_topology_close(d);
	gpupart_topology_close(e);
}

/* ------------------------------------------------------------ text forms of sets */

static const struct {
	const char *words, *list; /* list NULL: refused */
	const char *sentence;
} h200_words[] = {
	{ "0-7", "0-7", NULL },
	{ "tpc:3", "3", NULL },
	{ "0-65", "0-65", NULL },
	{ "gpc:1", "0,8,16,24,62-65", NULL },
	{ "gpc:0,0-0", "6,14,22,30,37,44,51,58,60", NULL },
	{ "ugpu:0,1", "0-65", NULL },
	{ "gpc:1,2+40-43", NULL, NULL }, /* filled in below */
	{ "hex:0x3,00000000", "32-33", NULL },
	{ "hex:3+tpc:5+7", "0-1,5,7", NULL },
	{ "0-10:2", "0,2,4,6,8,10", NULL },
	{ "66", NULL, "TPC 66 does not exist: this GPU has TPCs 0-65" },
	{ "0-66", NULL, "TPC 66 does not exist: this GPU has TPCs 0-65" },
	{ "300", NULL, "TPC 300 does not exist: this GPU has TPCs 0-65" },
	{ "99999999999999999999", NULL, "TPC 99999999999999999999 does not exist" },
	{ "hex:40000000000000000", NULL, "TPC 66 does not exist: this GPU has TPCs 0-65" },
	{ "gpc:8", NULL, "GPC 8 does not exist: this GPU has GPCs 0-7" },
	{ "gpc:0-8", NULL, "GPC 8 does not exist" },
	{ "ugpu:2", NULL, "uGPU 2 does not exist: this GPU has uGPUs 0-1" },
	{ "gpc:", NULL, "list of GPCs is empty" },
	{ "gpc:3-1", NULL, "\"3-1\": the range is reversed, write \"1-3\"" },
	{ "hex:", NULL, "no digits" },
	{ "hex:0", NULL, "the set is empty" },
	{ "", NULL, "the set is empty" },
	{ "+", NULL, "before the first plus sign" },
	{ "+1", NULL, "before the first plus sign in \"+1\"" },
	{ "1+", NULL, "after the last plus sign in \"1+\"" },
	{ "1++2", NULL, "between two plus signs in \"1++2\"" },
	{ "1,+2", NULL, "after the last comma in \"1,\"" },
	{ "0x3f", NULL, "\"0x3f\": a mask is written \"hex:0x3f\"" },
	{ "vgpc:1", NULL, "\"vgpc:1\": a term is" },
	{ "all", NULL, "\"all\": a term is" },
	{ "GPC:1", NULL, "\"GPC:1\": a term is" },
	{ " gpc:1", NULL, "has a blank" },
	{ "gpc: 1", NULL, "has a blank" },
};

static void test_words(void)
{
	struct gpupart_topology *topo = open_capture("tests/data/gh100-h200-b/capture.txt");
	struct gpupart_tpcset set, before, expected;
	unsigned int i;
	int err;

	for (i = 0; topo && i < sizeof(h200_words) / sizeof(h200_words[0]); i++) {
		const char *words = h200_words[i].words;

		memset(&set, 0x5a, sizeof(set));
		before = set;
		err = gpupart_set_parse(gp, topo, words, &set);
		if (h200_words[i].sentence) {
			tap_ok(err == -EINVAL &&
				       strstr(gpupart_error(gp), h200_words[i].sentence) &&
				       gpupart_tpcset_equal(&set, &before) &&
				       gpupart_set_parse(NULL, topo, words, &set) == -EINVAL,
			       "\"%s\" refused: %s", words, gpupart_error(gp));
			continue;
		}
		if (h200_words[i].list) {
			expected = list(h200_words[i].list);
		} else {
			expected = gpupart_tpcset_or(&gpupart_topology_gpc(topo, 1)->tpcs,
						     &gpupart_topology_gpc(topo, 2)->tpcs);
			before = list("40-43");
			expected = gpupart_tpcset_or(&expected, &before);
		}
		tap_ok(!err && gpupart_tpcset_equal(&set, &expected), "\"%s\" is understood",
		       words);
	}
	memset(&set, 0, sizeof(set));
	tap_ok(gpupart_set_check(gp, topo, &set) == -EINVAL && strstr(gpupart_error(gp), "empty"),
	       "check refuses the empty set");
	set = gpupart_tpcset_first(68);
	tap_ok(gpupart_set_check(gp, topo, &set) == -EINVAL &&
		       !strcmp(gpupart_error(gp), "TPC 66 does not exist: this GPU has TPCs 0-65"),
	       "check: %s", gpupart_error(gp));
	set = gpupart_tpcset_first(66);
	tap_ok(!gpupart_set_check(gp, topo, &set), "check takes all 66");
	gpupart_topology_close(topo);

	topo = open_capture(generated(10));
	tap_ok(topo && gpupart_set_parse(gp, topo, "ugpu:0", &set) == -EINVAL &&
		       strstr(gpupart_error(gp), "the uGPUs of this GPU are unknown"),
	       "unknown uGPUs: %s", gpupart_error(gp));
	tap_ok(topo && !gpupart_topology_nr_ugpus(topo) &&
		       gpupart_topology_gpc(topo, 0)->ugpu == -1 &&
		       gpupart_topology_tpc(topo, 0)->ugpu == -1,
	       "unknown uGPUs are -1 and none");
	gpupart_topology_close(topo);
	topo = open_capture(generated(15));
	tap_ok(topo && gpupart_set_parse(gp, topo, "1", &set) == -EINVAL &&
		       !strcmp(gpupart_error(gp), "TPC 1 does not exist: this GPU has only TPC 0"),
	       "one TPC: %s", gpupart_error(gp));
	gpupart_topology_close(topo);
}

/* ------------------------------------------------------------------ selectors */

static const struct {
	const char *selector;
	bool selects;
} selectors[] = {
	{ "3", true },
	{ "03", true },
	{ "0", false },
	{ "33", false },
	{ "4294967299", false },
	{ "0000:0d:00.0", true },
	{ "0000:0D:00.0", true },
	{ "00000000:0D:00.0", true },
	{ "0d:00.0", true },
	{ "d:0.0", true },
	{ "0d:00", true },
	{ "0000:0d:00", true },
	{ "0001:0d:00.0", false },
	{ "0d:00.1", false },
	{ "0c:00.0", false },
	{ "0d:01.0", false },
	{ "0d:00.", false },
	{ "0d:00.00", false },
	{ "0d:00.0 ", false },
	{ "0d", false },
	{ "0:0:0d:00.0", false },
	{ "0d:", false },
	{ ":0d:00.0", false },
	{ "GPU-01234567-89ab-cdef-0123-456789abcdef", true },
	{ "01234567-89ab-cdef-0123-456789abcdef", true },
	{ "gpu-01234567-89AB-CDEF-0123-456789ABCDEF", true },
	{ "GPU-01234567", false },
	{ "GPU-", false },
	{ "", false },
	{ "H200", false },
	{ "GPU-01234567-89ab-cdef-0123-456789abcdee", false },
};

static void test_selectors(void)
{
	struct gpupart_gpu_info info = { .pci = "0000:0d:00.0",
					 .uuid = "GPU-01234567-89ab-cdef-0123-456789abcdef" };
	struct gpupart_gpu_info unknown = { .mig = -1 };
	unsigned int i;

	for (i = 0; i < sizeof(selectors) / sizeof(selectors[0]); i++)
		tap_ok(topo_selects(selectors[i].selector, &info, 3) == selectors[i].selects &&
			       (selectors[i].selector[0] == '3' ||
				selectors[i].selector[0] == '0' ||
				!topo_selects(selectors[i].selector, &unknown, 3)),
		       "\"%s\" %s GPU 3 at 0000:0d:00.0", selectors[i].selector,
		       selectors[i].selects ? "is" : "is not");
	snprintf(info.pci, sizeof(info.pci), "17000000.gpu");
	tap_ok(topo_selects("17000000.gpu", &info, 3) && topo_selects("3", &info, 3) &&
		       !topo_selects("17000000.gp", &info, 3) &&
		       !topo_selects("17000000.gpu1", &info, 3) &&
		       !topo_selects("17000000", &info, 3) && !topo_selects("gpu", &info, 3) &&
		       !topo_selects("0000:0d:00.0", &info, 3),
	       "an integrated GPU goes by its device's name");
	tap_ok(!topo_selects("", &unknown, 0) && !topo_selects("GPU-", &unknown, 0) &&
		       !topo_selects("00:00.0", &unknown, 0),
	       "nothing but its index selects an unknown GPU");
}

/* -------------------------------------------------------------------- sources */

static void test_sources(void)
{
	struct gpupart_topology *topo = NULL;
	struct gpupart_gpu_info info;
	char sentence[512];
	int err, nr;

	tap_ok(gpupart_topology_open(gp, "tests/data/gh100-h200-b/capture.txt", "0", &topo) == 0,
	       "a capture's GPU is index 0");
	gpupart_topology_close(topo);
	tap_ok(gpupart_topology_open(gp, "tests/data/gh100-h200-b/capture.txt", "1", &topo) ==
			       -ENODEV &&
		       strstr(gpupart_error(gp), "is not \"1\""),
	       "not 1: %s", gpupart_error(gp));
	tap_ok(gpupart_topology_open(gp, generated(2), "0000:03:00.0", &topo) == 0,
	       "a capture's GPU by its PCI address");
	gpupart_topology_close(topo);
	tap_ok(gpupart_topology_open(gp, "tests/no-such-file", NULL, &topo) == -ENOENT &&
		       strstr(gpupart_error(gp), "tests/no-such-file: "),
	       "%s", gpupart_error(gp));
	tap_ok(gpupart_topology_open(gp, "sample:h200-e", NULL, &topo) == 0, "sample:h200-e opens");
	gpupart_topology_close(topo);
	tap_ok(gpupart_topology_open(gp, "sample:h200", NULL, &topo) == 0, "sample:h200 opens");
	gpupart_topology_close(topo);
	tap_ok(gpupart_topology_open(gp, "sample:h900", NULL, &topo) == -ENOENT &&
		       strstr(gpupart_error(gp), "no sample \"h900\"; the samples are h200") &&
		       strstr(gpupart_error(gp), "h200-e"),
	       "%s", gpupart_error(gp));
	tap_ok(gpupart_topology_open(gp, "sample:../captures/h200", NULL, &topo) == -ENOENT,
	       "a sample's name is not a path");
	tap_ok(gpupart_topology_open(gp, "sample:", NULL, &topo) == -ENOENT, "nor empty");
	/*
	 * On a machine with a driver, these selectors open a GPU. On a machine without a driver,
	 * the error message comes from the source.
	 */
	err = gpupart_topology_open(gp, "rm", NULL, &topo);
	snprintf(sentence, sizeof(sentence), "%s", err ? gpupart_error(gp) : "");
	if (!err)
		gpupart_topology_close(topo);
	tap_ok(!err || strstr(sentence, "river"), "rm: %d %s", err, sentence);
	err = gpupart_topology_open(gp, NULL, NULL, &topo);
	if (!err)
		gpupart_topology_close(topo);
	tap_ok(err ? sentence[0] && strstr(gpupart_error(gp), sentence) : true,
	       "no source named: what rm says, or a topology: %d", err);
	nr = gpupart_gpu_list(gp, NULL, &info, 1, sizeof(struct gpupart_gpu_info));
	tap_ok(err ? nr < 0 || nr == 0 : nr > 0, "and as many GPUs: %d", nr);
	tap_ok(gpupart_gpu_list(gp, "sample:h200", &info, 1,
				sizeof(struct gpupart_gpu_info)) == -EINVAL &&
		       strstr(gpupart_error(gp), "is a capture of one GPU"),
	       "%s", gpupart_error(gp));
}

/* -------------------------------------------------------- refusals of topo_build() */

#define NR_SMS 12
#define NR_MAP 2

/* Two GPCs of three TPCs of two SMs; the last TPC is a singleton. */
static const struct gpupart_gpu_info small_info = { .max_gpcs = 4,
						    .max_tpcs_per_gpc = 4,
						    .mig = -1 };

static void small_gpu(struct topo_sm *sms, struct topo_gpc *map)
{
	unsigned int smid;

	for (smid = 0; smid < NR_SMS; smid++) {
		int tpc = smid / 2;

		sms[smid] = (struct topo_sm){
			tpc % 2, tpc / 2, smid % 2, tpc,     tpc % 2,
			tpc / 2, tpc % 2, 0,	    tpc / 2, tpc % 2 * 4 + tpc / 2
		};
		if (tpc == 5) {
			sms[smid].vgpc = 7;
			sms[smid].tpc_in_vgpc = 0;
			sms[smid].measured_bit = 16 + 3;
		}
	}
	map[0] = (struct topo_gpc){ 0, 2, 0x7 };
	map[1] = (struct topo_gpc){ 1, 0, 0xd };
}

#define SM(member) (offsetof(struct topo_sm, member) / sizeof(int))

static const struct {
	int sm, other, field, value; /* this field of the SMs sm..other is changed to value */
	const char *sentence; /* NULL: accepted */
	int blamed;
} changes[] = {
	{ 4, 5, SM(local_tpc), -1, NULL, 0 },
	{ 4, 5, SM(ugpu), 1, "GPC 0 cannot be in uGPU 0 and in uGPU 1", 4 },
	{ 0, 11, SM(ugpu), -1, NULL, 0 },
	{ 0, 11, SM(vgpc), -1, NULL, 0 },
	{ 0, 11, SM(cpc), -1, NULL, 0 },
	{ 0, 11, SM(measured_bit), -1, NULL, 0 },
	{ 3, 3, SM(gpc), 0,
	  "SMs 2 and 3 are both in TPC 1, but the first has GPC 1 and the second has 0", 3 },
	{ 3, 3, SM(local_tpc), 2, "SMs 2 and 3 are both in TPC 1, but the first has local TPC", 3 },
	{ 3, 3, SM(vgpc), 2, "virtual GPC 1 and the second has 2", 3 },
	{ 3, 3, SM(tpc_in_vgpc), 3, "TPC in the virtual GPC 0 and the second has 3", 3 },
	{ 3, 3, SM(ugpu), 0, "uGPU 1 and the second has 0", 3 },
	{ 3, 3, SM(cpc), 1, "CPC 0 and the second has 1", 3 },
	{ 3, 3, SM(virtual_tpc), 1, "virtual TPC 0 and the second has 1", 3 },
	{ 3, 3, SM(measured_bit), 5, "measured bit 4 and the second has 5", 3 },
	{ 3, 3, SM(local_sm), 0, "SMs 2 and 3 are both local SM 0 of TPC 1", 3 },
	{ 3, 3, SM(local_sm), 4, "SM 3: local SM 4 is out of range (0-3)", 3 },
	{ 2, 3, SM(gpc), -1, "SM 2 has no GPC", 2 },
	{ 2, 2, SM(tpc), -1, "SM 2 has no TPC", 2 },
	{ 2, 3, SM(gpc), 32, "SM 2: GPC 32 is out of range (0-31)", 2 },
	{ 2, 3, SM(gpc), -7, "SM 2: GPC -7 is out of range (0-31)", 2 },
	{ 2, 3, SM(vgpc), -2, "SM 2: virtual GPC -2 is out of range", 2 },
	{ 2, 3, SM(vgpc), 64, "SM 2: virtual GPC 64 is out of range (0-63)", 2 },
	{ 2, 3, SM(tpc), 256, "SM 2: TPC 256 is out of range (0-255)", 2 },
	{ 2, 3, SM(local_tpc), 32, "SM 2: local TPC 32 is out of range (0-31)", 2 },
	{ 2, 3, SM(tpc_in_vgpc), 256, "SM 2: TPC in the virtual GPC 256 is out of range", 2 },
	{ 2, 3, SM(ugpu), 32, "SM 2: uGPU 32 is out of range", 2 },
	{ 2, 3, SM(cpc), 32, "SM 2: CPC 32 is out of range", 2 },
	{ 2, 3, SM(measured_bit), 256, "SM 2: measured bit 256 is out of range (0-255)", 2 },
	{ 2, 3, SM(virtual_tpc), 256, "SM 2: virtual TPC 256 is out of range", 2 },
	{ 10, 11, SM(tpc), 6, "SM 10 belongs to TPC 6, but TPC 5 has no SM", 10 },
	{ 4, 5, SM(local_tpc), 0, "TPCs 0 and 2 (SM 4) are both local TPC 0 of GPC 0", 4 },
	{ 4, 5, SM(tpc_in_vgpc), 0, "TPCs 0 and 2 (SM 4) are both TPC 0 of virtual GPC 0", 4 },
	{ 4, 5, SM(measured_bit), 4, "TPCs 1 and 2 (SM 4) cannot both have the measured bit 4", 4 },
	{ 8, 9, SM(tpc_in_vgpc), 4,
	  "SM 8: TPC 4 of virtual GPC 0 cannot exist on a chip with at most 4", 8 },
};

static void test_build(void)
{
	struct gpupart_gpu_info info = small_info;
	struct topo_sm sms[NR_SMS], *many;
	struct gpupart_topology *topo;
	struct topo_gpc map[NR_MAP], rows[GPUPART_MAX_GPCS + 1] = { 0 };
	struct topo_blame blame;
	unsigned int i;
	int sm, err;

	small_gpu(sms, map);
	err = topo_build(gp, &info, sms, NR_SMS, map, NR_MAP, &topo);
	if (!tap_ok(!err, "the small GPU is good"))
		return;
	tap_ok(topo->nr_tpcs == 6 && topo->nr_gpcs == 2 && topo->end_vgpc == 8 &&
		       topo->nr_ugpus == 2 && topo->gpcs[0].gpc_phys == 2 &&
		       topo->gpcs[1].present_tpcs == 0xd && topo->tpcs[5].gpc == 1 &&
		       topo->tpcs[5].vgpc == 7 && topo->tpcs[5].tpc_in_gpc == 2,
	       "and a TPC of a GPC may be in another virtual GPC");
	gpupart_topology_close(topo);

	for (i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		small_gpu(sms, map);
		for (sm = changes[i].sm; sm <= changes[i].other; sm++)
			((int *)&sms[sm])[changes[i].field] = changes[i].value;
		err = topo_build_blame(gp, &info, sms, NR_SMS, map, NR_MAP, &topo, &blame);
		if (!changes[i].sentence) {
			tap_ok(!err, "change %u is good", i);
			if (!err)
				gpupart_topology_close(topo);
			continue;
		}
		tap_ok(err == -EINVAL && strstr(gpupart_error(gp), changes[i].sentence) &&
			       blame.sm == changes[i].blamed && blame.gpc_row == -1,
		       "change %u: %s", i, gpupart_error(gp));
	}

	/* All values are zero, like on an idle GPU before Hopper. */
	memset(sms, 0, sizeof(sms));
	for (i = 0; i < NR_SMS; i++) {
		sms[i].tpc = i / 2;
		sms[i].local_sm = i % 2;
		sms[i].measured_bit = -1;
	}
	tap_ok(topo_build(gp, &info, sms, NR_SMS, NULL, 0, &topo) == -EINVAL &&
		       strstr(gpupart_error(gp), "asleep"),
	       "all zeros: %s", gpupart_error(gp));

	/* The local ids of the TPCs have gaps, but the ranks in the GPC have no gaps. */
	small_gpu(sms, map);
	for (i = 0; i < NR_SMS; i++)
		sms[i].local_tpc = sms[i].gpc ? 30 - 7 * sms[i].local_tpc : -1;
	err = topo_build(gp, &info, sms, NR_SMS, map, NR_MAP, &topo);
	tap_ok(!err && topo->tpcs[1].tpc_in_gpc == 2 && topo->tpcs[3].tpc_in_gpc == 1 &&
		       topo->tpcs[5].tpc_in_gpc == 0 && topo->tpcs[0].tpc_in_gpc == -1,
	       "tpc_in_gpc is dense where local ids are known, -1 elsewhere");
	if (!err)
		gpupart_topology_close(topo);

	/* Tests a GPC number that does not exist, and a fifth SM of a TPC. */
	small_gpu(sms, map);
	for (i = 0; i < NR_SMS; i++)
		sms[i].gpc *= 2;
	tap_ok(topo_build_blame(gp, &info, sms, NR_SMS, NULL, 0, &topo, &blame) == -EINVAL &&
		       strstr(gpupart_error(gp),
			      "SM 2 belongs to GPC 2, but GPC 1 has no SM") &&
		       blame.sm == 2,
	       "%s", gpupart_error(gp));
	small_gpu(sms, map);
	for (i = 0; i < 5; i++) {
		sms[i] = sms[0];
		sms[i].local_sm = -1;
	}
	tap_ok(topo_build(gp, &info, sms, NR_SMS, NULL, 0, &topo) == -EINVAL &&
		       strstr(gpupart_error(gp), "SM 4: TPC 0 has more than 4 SMs"),
	       "%s", gpupart_error(gp));

	/* The design maxima. */
	small_gpu(sms, map);
	info.max_gpcs = 1;
	tap_ok(topo_build(gp, &info, sms, NR_SMS, NULL, 0, &topo) == -EINVAL &&
		       strstr(gpupart_error(gp),
			      "SM 2: GPC 1 cannot exist on a chip with at most 1"),
	       "%s", gpupart_error(gp));
	info = small_info;
	info.max_tpcs_per_gpc = 2;
	tap_ok(topo_build(gp, &info, sms, NR_SMS, NULL, 0, &topo) == -EINVAL &&
		       strstr(gpupart_error(gp), "GPC 0 has 3 TPCs, but the chip has at most 2"),
	       "%s", gpupart_error(gp));
	info = small_info;

	/* The GPC map. */
	map[1].gpc_phys = 2;
	tap_ok(topo_build_blame(gp, &info, sms, NR_SMS, map, NR_MAP, &topo, &blame) == -EINVAL &&
		       strstr(gpupart_error(gp), "physical GPC 2 is reported twice") &&
		       blame.gpc_row == 1 && blame.sm == -1,
	       "%s", gpupart_error(gp));
	small_gpu(sms, map);
	map[1].gpc = 0;
	tap_ok(topo_build(gp, &info, sms, NR_SMS, map, NR_MAP, &topo) == -EINVAL &&
		       strstr(gpupart_error(gp), "physical GPCs 2 and 0 cannot both be GPC 0"),
	       "%s", gpupart_error(gp));
	small_gpu(sms, map);
	map[1].gpc = 2;
	tap_ok(topo_build(gp, &info, sms, NR_SMS, map, NR_MAP, &topo) == -EINVAL &&
		       strstr(gpupart_error(gp), "physical GPC 0 cannot be GPC 2"),
	       "%s", gpupart_error(gp));
	small_gpu(sms, map);
	map[0].gpc_phys = 4;
	tap_ok(topo_build(gp, &info, sms, NR_SMS, map, NR_MAP, &topo) == -EINVAL &&
		       strstr(gpupart_error(gp), "physical GPC 4 is out of range (0-3)"),
	       "%s", gpupart_error(gp));
	small_gpu(sms, map);
	map[1].present_tpcs = 0xf;
	tap_ok(topo_build(gp, &info, sms, NR_SMS, map, NR_MAP, &topo) == -EINVAL &&
		       strstr(gpupart_error(gp),
			      "GPC 1 has 3 TPCs in the SM order but physical GPC 0 has 4"),
	       "%s", gpupart_error(gp));
	small_gpu(sms, map);
	map[0].gpc = map[1].gpc = -1;
	err = topo_build(gp, &info, sms, NR_SMS, map, NR_MAP, &topo);
	tap_ok(!err && topo->gpcs[0].gpc_phys == -1 && topo->gpcs[1].present_tpcs == 0,
	       "a map without logical ids is kept and says nothing of GPCs");
	if (!err)
		gpupart_topology_close(topo);

	/* Tests too few and too many SMs. */
	tap_ok(topo_build(gp, &info, sms, 0, NULL, 0, &topo) == -EINVAL &&
		       strstr(gpupart_error(gp), "0 SMs, which is out of range"),
	       "%s", gpupart_error(gp));
	many = calloc(TOPO_MAX_SMS + 1, sizeof(*many));
	tap_ok(topo_build(gp, &info, many, TOPO_MAX_SMS + 1, NULL, 0, &topo) == -EINVAL &&
		       strstr(gpupart_error(gp), "out of range (1-1024)"),
	       "%s", gpupart_error(gp));
	free(many);
	tap_ok(topo_build(gp, &info, sms, NR_SMS, rows, GPUPART_MAX_GPCS + 1, &topo) == -EINVAL &&
		       strstr(gpupart_error(gp), "33 GPCs, which is out of range"),
	       "%s", gpupart_error(gp));
	gpupart_topology_close(NULL);
}

/*
 * Tests two sources. If only one source has a value, there is no contradiction. If both sources
 * have a value, the values must be equal.
 */
static void test_agree(void)
{
	struct gpupart_topology *a, *b;

	if (gpupart_topology_open(gp, "tests/data/gh100-h200-e/capture.txt", NULL, &a) ||
	    gpupart_topology_open(gp, "tests/data/gh100-h200-e/capture.txt", NULL, &b)) {
		tap_ok(0, "%s", gpupart_error(gp));
		return;
	}
	tap_ok(gpupart_topology_agree(a, b), "a source agrees with itself");
	for (unsigned int tpc = 0; tpc < b->nr_tpcs; tpc++)
		b->tpcs[tpc].vgpc = b->tpcs[tpc].tpc_in_vgpc = b->tpcs[tpc].cpc = -1;
	b->tpcs[7].tpc_in_gpc = 1 - b->tpcs[7].tpc_in_gpc;
	tap_ok(gpupart_topology_agree(a, b) && gpupart_topology_agree(b, a),
	       "and with one that tells no virtual GPCs and counts within GPCs otherwise");
	b->tpcs[65].gpc = 0;
	tap_ok(!gpupart_topology_agree(a, b), "a TPC in another GPC is noticed");
	b->tpcs[65].gpc = a->tpcs[65].gpc;
	b->tpcs[64].sms[1]++;
	tap_ok(!gpupart_topology_agree(a, b), "another SM is noticed");
	b->tpcs[64].sms[1]--;
	b->gpcs[3].present_tpcs ^= 1;
	tap_ok(!gpupart_topology_agree(a, b), "another fuse is noticed");
	b->gpcs[3].present_tpcs = 0;
	tap_ok(gpupart_topology_agree(a, b), "fuses that are not told are not");
	b->nr_tpcs--;
	tap_ok(!gpupart_topology_agree(a, b), "a TPC less is noticed");
	b->nr_tpcs++;
	gpupart_topology_close(a);
	gpupart_topology_close(b);
}

/* The module's topology has no virtual GPCs. They come from NVIDIA's driver. */
static void test_vgpcs(void)
{
	struct gpupart_topology *rm, *kernel;
	unsigned int wrong = 0;

	if (gpupart_topology_open(gp, "tests/data/gh100-h200-e/capture.txt", NULL, &rm) ||
	    gpupart_topology_open(gp, "tests/data/gh100-h200-e/capture.txt", NULL, &kernel)) {
		tap_ok(0, "%s", gpupart_error(gp));
		return;
	}
	kernel->end_vgpc = 0;
	for (unsigned int tpc = 0; tpc < kernel->nr_tpcs; tpc++)
		kernel->tpcs[tpc].vgpc = kernel->tpcs[tpc].tpc_in_vgpc = -1;
	for (unsigned int sm = 0; sm < kernel->nr_sms; sm++)
		kernel->sms[sm].vgpc = kernel->sms[sm].tpc_in_vgpc = -1;
	kernel->tpcs[3].gpc ^= 1;
	topo_take_vgpcs(kernel, rm);
	tap_ok(!gpupart_topology_end_vgpc(kernel) && kernel->tpcs[5].vgpc == -1,
	       "not from a source that says otherwise of a TPC");
	kernel->tpcs[3].gpc ^= 1;
	topo_take_vgpcs(kernel, rm);
	for (unsigned int tpc = 0; tpc < rm->nr_tpcs; tpc++)
		wrong += kernel->tpcs[tpc].vgpc != rm->tpcs[tpc].vgpc ||
			 kernel->tpcs[tpc].tpc_in_vgpc != rm->tpcs[tpc].tpc_in_vgpc;
	tap_ok(!wrong && gpupart_topology_hash(kernel) == gpupart_topology_hash(rm) &&
	       !memcmp(kernel->sms, rm->sms, sizeof(rm->sms)) &&
	       gpupart_topology_end_vgpc(kernel) == gpupart_topology_end_vgpc(rm),
	       "virtual GPCs are as the other source tells them");
	kernel->tpcs[0].vgpc = 3;
	topo_take_vgpcs(kernel, rm);
	tap_ok(kernel->tpcs[0].vgpc == 3, "what it tells itself stays");
	gpupart_topology_close(rm);
	gpupart_topology_close(kernel);
}

int main(void)
{
	gpupart_open(&gp);
	test_boards();
	test_board_e();
	test_hash();
	test_agree();
	test_vgpcs();
	test_words();
	test_selectors();
	test_sources();
	test_build();
	gpupart_close(gp);
	return tap_done();
}
