// SPDX-License-Identifier: MIT
/*
 * Tests captures. A written capture can be opened, and a second write gives the same bytes. A
 * truncated capture and a capture with a flipped bit are refused. Wrong content is refused, and
 * the message gives the line. Captures of made-up GPUs can be opened and are consistent.
 */
#include <errno.h>
#include <sys/stat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/core/hash.h"
#include "lib/topo/topology.h"
#include "tests/tap.h"

#define NR_GENERATED 26

static struct gpupart *gp;

static char *read_text(const char *path, size_t *len)
{
	FILE *file = fopen(path, "r");
	char *text = calloc(1, 1 << 20);

	*len = file && text ? fread(text, 1, (1 << 20) - 1, file) : 0;
	if (file)
		fclose(file);
	return text;
}

static const char *board_path(char board)
{
	static char path[64];

	snprintf(path, sizeof(path), "tests/data/gh100-h200-%c/capture.txt", board);
	return path;
}

static const char *generated_path(unsigned int number)
{
	static char path[4096];

	snprintf(path, sizeof(path), "%s/tests/generated/%02u.capture",
		 getenv("BUILD") ? getenv("BUILD") : "build", number);
	return path;
}

/* ------------------------------------------------------------ write and read back */

static bool writes_back(const char *path)
{
	struct gpupart_topology *topo;
	char *text, *written = NULL;
	bool same = false;
	size_t len;

	text = read_text(path, &len);
	if (!gpupart_topology_open(gp, path, NULL, &topo)) {
		same = !gpupart_topology_capture(gp, topo, NULL, &written) &&
		       strlen(written) == len && !memcmp(written, text, len);
		gpupart_topology_close(topo);
	} else {
		printf("# %s\n", gpupart_error(gp));
	}
	free(written);
	free(text);
	return same;
}

static void test_back(void)
{
	struct gpupart_topology *topo, *again;
	char *text = NULL;
	char board;

	for (board = 'a'; board <= 'g'; board++)
		tap_ok(writes_back(board_path(board)), "board %c is written back byte by byte",
		       board);
	if (gpupart_topology_open(gp, board_path('e'), NULL, &topo)) {
		tap_ok(false, "board e opens");
		return;
	}
	tap_ok(!gpupart_topology_capture(gp, topo, "a person, manually", &text) &&
		       strstr(text, "\norigin = a person, manually\n") &&
		       !topo_file_parse(gp, "memory", text, strlen(text), &again),
	       "who captured it goes into the capture");
	tap_ok(!strcmp(gpupart_topology_info(again)->origin, "a person, manually") &&
		       !strcmp(gpupart_topology_info(again)->source, "memory") &&
		       gpupart_topology_hash(again) == gpupart_topology_hash(topo),
	       "and comes out of it");
	gpupart_topology_close(again);
	free(text);
	tap_ok(gpupart_topology_capture(gp, topo, "two\nlines", &text) == -EINVAL &&
		       gpupart_topology_capture(gp, topo, " blank", &text) == -EINVAL &&
		       strstr(gpupart_error(gp), "one line of plain ASCII"),
	       "%s", gpupart_error(gp));
	strcpy(topo->info.name, "\x1b[31m");
	tap_ok(gpupart_topology_capture(gp, topo, NULL, &text) == -EINVAL &&
		       strstr(gpupart_error(gp), "the GPU's name cannot be written"),
	       "%s", gpupart_error(gp));
	strcpy(topo->info.name, "");
	strcpy(topo->text_rm, "two\nlines");
	tap_ok(gpupart_topology_capture(gp, topo, NULL, &text) == -EINVAL &&
		       strstr(gpupart_error(gp), "the source of [rm] cannot be written"),
	       "%s", gpupart_error(gp));
	topo->text_rm[0] = 0;
	topo->compute_class = 0xcec0;
	tap_ok(!gpupart_topology_capture(gp, topo, NULL, &text) &&
		       strstr(text, "\ncompute-class = 0xcec0\n") &&
		       !topo_file_parse(gp, "memory", text, strlen(text), &again) &&
		       again->compute_class == 0xcec0,
	       "the compute class goes into the capture, and comes out of it");
	gpupart_topology_close(again);
	free(text);
	topo->compute_class = 0;
	/* A live source may not know these values. */
	memset(&topo->info, 0, sizeof(topo->info));
	topo->info.mig = -1;
	topo->info.simulated = true;
	topo->text_rm[0] = 0;
	tap_ok(!gpupart_topology_capture(gp, topo, NULL, &text) &&
		       !topo_file_parse(gp, "", text, strlen(text), &again),
	       "a GPU of which little is known");
	tap_ok(again->info.mig == -1 && !again->info.max_gpcs && !again->info.name[0] &&
		       again->info.simulated && !strcmp(again->text_rm, "unknown"),
	       "stays so");
	gpupart_topology_close(again);
	gpupart_topology_close(topo);
	free(text);
}

/* ---------------------------------------------------------------------- damage */

/*
 * Tries every truncation, and flips bits. With @step 1, all eight bits of each byte are flipped
 * in turn. With @step 8, one bit of each byte is flipped.
 */
static void test_damage(const char *path, unsigned int step)
{
	unsigned int cuts = 0, flips = 0, took = 0;
	struct gpupart_topology *topo;
	size_t len, at, bit;
	char *text;
	int err;

	text = read_text(path, &len);
	for (at = 0; at < len; at++) {
		char *cut = malloc(at ? at : 1);

		/*
		 * Uses a separate block of memory, so that a read beyond the end of the block is
		 * detected.
		 */
		memcpy(cut, text, at);
		err = topo_file_parse(gp, path, cut, at, &topo);
		cuts += err == -EBADMSG && strstr(gpupart_error(gp), ": line ");
		if (!err)
			gpupart_topology_close(topo);
		free(cut);
	}
	tap_ok(len > 100 && cuts == len, "%s: %u of %zu cuts refused", path, cuts, len);
	for (bit = step == 1 ? 0 : 3; bit < 8 * len; bit += step, took++) {
		text[bit / 8] ^= 1 << bit % 8;
		err = topo_file_parse(gp, path, text, len, &topo);
		flips += err == -EBADMSG && strstr(gpupart_error(gp), ": line ");
		if (!err)
			gpupart_topology_close(topo);
		text[bit / 8] ^= 1 << bit % 8;
	}
	tap_ok(took && flips == took, "%s: %u of %u flipped bits refused", path, flips, took);
	err = topo_file_parse(gp, path, text, len, &topo);
	tap_ok(!err, "%s: and as it was it opens", path);
	if (!err)
		gpupart_topology_close(topo);
	free(text);
}

/* --------------------------------------------------------------- wrong content */

/*
 * Returns the capture of board e. The first @old is replaced (NULL: no replacement), and the
 * checksum is corrected.
 */
static char *changed(const char *base, const char *old, const char *with, unsigned int *line)
{
	const char *at = old ? strstr(base, old) : base;
	char *text = malloc(strlen(base) + strlen(with) + 64), *sum;
	const char *c;

	if (!at)
		abort();
	for (*line = 1, c = base; c < at; c++)
		*line += *c == '\n';
	sprintf(text, "%.*s%s%s", (int)(at - base), base, with, at + (old ? strlen(old) : 0));
	sum = text + strlen(text) - strlen("checksum = 0123456789abcdef\n");
	sprintf(sum, "checksum = %016llx\n",
		(unsigned long long)hash_bytes(HASH_INIT, text, sum - text));
	return text;
}

static const struct {
	const char *old, *with;
	int further; /* the line in the message, relative to the change; -1 any */
	const char *sentence; /* NULL: opens */
} contents[] = {
	{ "# gpupart capture 1\n", "# gpupart capture 1\n# a word for people\n\n", 0, NULL },
	{ "0\t1\t0\t0", "0 1  0\t 0", 0, NULL },
	{ "name = NVIDIA H200\n", "", 0, NULL },
	{ "max-gpcs = 8\n", "max-gpcs = unknown\n", 0, NULL },
	{ "# gpupart capture 1", "# gpupart capture 2", 0,
	  "version \"2\" of the capture format is unknown" },
	{ "# gpupart capture 1", "# gpupart capture 10", 0, "version \"10\"" },
	{ "# gpupart capture 1", "# gpupart capture ", 0, "version \"\"" },
	{ "[gpu]", "[gpus]", 0, "there is no section [gpus]" },
	{ "[gpu]", "[gpu", 0, "\"[gpu\" is not a section" },
	{ "[gpu]", "[", 0, "\"[\" is not a section" },
	{ "[gpu]", "[]", 0, "there is no section []" },
	{ "[gpc-map]", "[gpu]", 0, "section [gpu] appears twice, first in line 3" },
	{ "[gpu]\n", "", 0, "\"name = NVIDIA H200\" is before the first section" },
	{ "name = NVIDIA", "nom = NVIDIA", 0, "[gpu] has no key \"nom\"" },
	{ "name = NVIDIA H200", "name = ", 0, "the line starts or ends with a blank" },
	{ "name = NVIDIA H200", "name=NVIDIA", 0, "is not \"key = value\"" },
	{ "name = NVIDIA H200", "name =  NVIDIA", 0, "has a tab, or more than one blank after" },
	{ "name = NVIDIA H200", "name = NVIDIA\tH200", 0,
	  "has a tab, or more than one blank after" },
	{ "name = NVIDIA H200", "name", 0,
	  "[gpu] can contain only lines of the form \"key = value\", not \"name\"" },
	{ "name = NVIDIA H200", " name = NVIDIA H200", 0, "the line starts or ends with a blank" },
	{ "pci = unknown", "name = again", 0, "\"name\" appears twice" },
	{ "pci = unknown", "pci = 0000:0d:00.0 and then some more", 0,
	  "pci is longer than 19 bytes: \"0000:0d:00.0 and then" },
	{ "pci = unknown", "pci = hello", 0,
	  "pci \"hello\" is not an address such as 0000:0d:00.0 or 17000000.gpu, or unknown" },
	{ "pci = unknown", "pci = 17000000.GPU", 0, "pci \"17000000.GPU\" is not an address" },
	{ "pci = unknown", "pci = 17000000.", 0, "pci \"17000000.\" is not an address" },
	{ "pci = unknown", "pci = gpu.0", 0, "pci \"gpu.0\" is not an address" },
	{ "pci = unknown", "pci = 1700000000.gpugpugpu", 0, "pci is longer than 19 bytes" },
	{ "pci = unknown", "pci = 0000:0d:00", 0, "pci \"0000:0d:00\"" },
	{ "pci = unknown", "pci = 0d:00.0", 0, "pci \"0d:00.0\"" },
	{ "pci = unknown", "pci = 000:0d:00.0", 0, "pci \"000:0d:00.0\"" },
	{ "pci = unknown", "pci = 0000:d:00.0", 0, "pci \"0000:d:00.0\"" },
	{ "pci = unknown", "pci = 0000:0d:0.0", 0, "pci \"0000:0d:0.0\"" },
	{ "pci = unknown", "pci = 0000:0d:00.00", 0, "pci \"0000:0d:00.00\"" },
	{ "pci = unknown", "pci = 0000:0g:00.0", 0, "pci \"0000:0g:00.0\"" },
	{ "pci = unknown", "pci = 0000:0d:20.0", 0, "pci \"0000:0d:20.0\"" },
	{ "pci = unknown", "pci = 0000:0d:00.8", 0, "pci \"0000:0d:00.8\"" },
	{ "pci = unknown", "pci = 000000000:0d:00.0", 0, "pci \"000000000:0d:00.0\"" },
	{ "uuid = unknown", "uuid = x", 0,
	  "uuid \"x\" is not GPU- and 8-4-4-4-12 hexadecimal digits, or unknown" },
	{ "uuid = unknown", "uuid = 01234567-89ab-cdef-0123-456789abcdef", 0,
	  "uuid \"01234567-89ab" },
	{ "uuid = unknown", "uuid = GPU-01234567-89ab-cdef-0123-456789abcde", 0,
	  "456789abcde\" is not GPU-" },
	{ "uuid = unknown", "uuid = GPU-01234567-89ab-cdef-0123-456789abcdef0", 0,
	  "456789abcdef0\" is not GPU-" },
	{ "uuid = unknown", "uuid = GPU-01234567-89ab-cdef-0123+456789abcdef", 0,
	  "0123+456789abcdef\" is not GPU-" },
	{ "uuid = unknown", "uuid = GPU-01234567-89ab-cdeg-0123-456789abcdef", 0,
	  "cdeg-0123-456789abcdef\" is not GPU-" },
	{ "uuid = unknown", "uuid = GPU-01234567-89AB-cdef-0123-456789abcdef", 0, NULL },
	{ "max-gpcs = 8", "max-gpcs = 32", 0, NULL },
	{ "max-gpcs = 8", "max-gpcs = 33", 0, "max-gpcs \"33\" is not 1-32 or unknown" },
	{ "max-tpcs-per-gpc = 9", "max-tpcs-per-gpc = 256", 0, NULL },
	{ "max-tpcs-per-gpc = 9", "max-tpcs-per-gpc = 0", 0, "max-tpcs-per-gpc \"0\"" },
	{ "max-tpcs-per-gpc = 9", "max-tpcs-per-gpc = 257", 0,
	  "max-tpcs-per-gpc \"257\" is not 1-256 or unknown" },
	{ "max-tpcs-per-gpc = 9", "max-tpcs-per-gpc = 65535", 0, "max-tpcs-per-gpc \"65535\"" },
	{ "max-tpcs-per-gpc = 9", "max-tpcs-per-gpc = 4294967295", 0,
	  "max-tpcs-per-gpc \"4294967295\"" },
	{ "chip-id = 0x180", "chip-id = 180", 0, "chip-id \"180\" is not 0x1-0x3ff" },
	{ "chip-id = 0x180", "chip-id = 0x400", 0, "chip-id \"0x400\" is not 0x1-0x3ff" },
	{ "mig = off", "compute-class = 0xcbc0\nmig = off", 0, NULL },
	{ "mig = off", "compute-class = unknown\nmig = off", 0, NULL },
	{ "mig = off", "compute-class = 0xffff\nmig = off", 0, NULL },
	{ "mig = off", "compute-class = 0x10000\nmig = off", 0,
	  "compute-class \"0x10000\" is not 0x1-0xffff or unknown" },
	{ "mig = off", "compute-class = 52160\nmig = off", 0, "compute-class \"52160\"" },
	{ "mig = off", "compute-class = 0\nmig = off", 0, "compute-class \"0\"" },
	{ "mig = off", "mig = no", 0, "mig \"no\" is not on, off or unknown" },
	{ "max-gpcs = 8", "max-gpcs = 0", 0, "max-gpcs \"0\" is not 1-32 or unknown" },
	{ "max-gpcs = 8", "max-gpcs = 08", 0, "max-gpcs \"08\"" },
	{ "max-gpcs = 8", "max-gpcs = 0x8", 0, "max-gpcs \"0x8\"" },
	{ "max-gpcs = 8", "max-gpcs = 4294967304", 0, "max-gpcs \"4294967304\"" },
	{ "simulated = no", "simulated = unknown", 0, "simulated \"unknown\" is not yes or no" },
	{ "source = RM control", "sauce = RM control", 0, "[rm] has no key \"sauce\"" },
	{ "columns = sm gpc", "source = twice\ncolumns = sm gpc", 0,
	  "\"source\" appears twice in [rm]" },
	{ "columns = sm gpc local_tpc", "columns = sm local_tpc gpc", 0,
	  "the columns of [rm] are \"sm gpc local_tpc" },
	{ "columns = sm gpc local_tpc local_sm tpc vgpc tpc_in_vgpc ugpu cpc virtual_tpc\n", "", 0,
	  "a row of [rm] is above the line \"columns = " },
	{ "columns = sm bit\n", "", 0, "a row of [measured-bits] is above the line" },
	{ "\n0\t1\t0\t0\t", "\n0\t1\t0\t0\t0\t", 1, "11 fields, but a row of [rm] has 10" },
	{ "\n0\t1\t0\t0\t", "\n0\t1\t0\t", 1, "9 fields, but a row of [rm] has 10" },
	{ "\n1\t1\t0\t1", "\n2\t1\t0\t1", 1,
	  "this line describes SM \"2\" but must describe SM 1" },
	{ "\n1\t1\t0\t1", "\n01\t1\t0\t1", 1,
	  "this line describes SM \"01\" but must describe SM 1" },
	{ "\n1\t1\t0\t1", "\n1\t1\t0\tx", 1, "\"x\" in column 4 is not a number" },
	{ "\n1\t1\t0\t1", "\n1\t1\t0\t-1", 1, "\"-1\" in column 4 is not a number" },
	{ "\n1\t1\t0\t1", "\n1\t99999999999999999999\t0\t1", 1, "in column 2 is not a number" },
	{ "\n1\t1\t0\t1", "\n1\t1\t1\t1", 1,
	  "both in TPC 0, but the first has local TPC 0 and the second has 1" },
	{ "\n1\t1\t0\t1", "\n1\t-\t0\t1", 1, "SM 1 has no GPC" },
	{ "\n1\t1\t0\t1", "\n1\t32\t0\t1", 1, "SM 1: GPC 32 is out of range" },
	{ "\n130\t1\t5\t0\t65\t19\t0\t1\t2\t5\n131\t1\t5\t1\t65\t19",
	  "\n130\t1\t5\t0\t66\t19\t0\t1\t2\t5\n131\t1\t5\t1\t66\t19", 1,
	  "SM 130 belongs to TPC 66, but TPC 65 has no SM" },
	{ "columns = sm bit\n", "columns = sm bit\ncolumns = sm bit\n", 1,
	  "\"columns\" appears twice in [measured-bits]" },
	{ "\n0\t0x1ff\t0\n", "\n0\t511\t0\n", 1,
	  "present TPCs \"511\" are not a mask such as 0x1ff" },
	{ "\n0\t0x1ff\t0\n", "\n0\t0x0\t0\n", 1,
	  "present TPCs \"0x0\" are not a mask such as 0x1ff" },
	{ "\n0\t0x1ff\t0\n", "\n0\t0x1fe\t0\n", 1,
	  "GPC 0 has 9 TPCs in the SM order but physical GPC 0 has 8" },
	{ "\n0\t0x1ff\t0\n", "\n9\t0x1ff\t0\n", 1, "physical GPC 9 is out of range (0-7)" },
	{ "\n0\t0x1ff\t0\n", "\n1\t0x1ff\t0\n", 2, "physical GPC 1 is reported twice" },
	{ "\n0\t0x1ff\t0\n", "\n-\t0x1ff\t0\n", 1, "physical GPC -1 is out of range" },
	{ "\n0\t0x1ff\t0\n", "\nx\t0x1ff\t0\n", 1, "physical GPC \"x\" is not a number" },
	{ "\n0\t0x1ff\t0\n", "\n0\t0x1ff\t8\n", 1, "cannot be GPC 8" },
	{ "[measured-bits]\n",
	  "[registers]\nsource = x\ncolumns = offset value\n0x8 0x1\n0x8 0x2\n\n[measured-bits]\n",
	  4, "register 0x000008 must be listed before register 0x000008" },
	{ "[measured-bits]\n",
	  "[registers]\nsource = x\ncolumns = offset value\n0x9 0x1\n\n[measured-bits]\n", 3,
	  "register offset \"0x9\" is not a multiple of 4" },
	{ "[measured-bits]\n",
	  "[registers]\nsource = x\ncolumns = offset value\n0x8 0x100000000\n\n[measured-bits]\n",
	  3, "register value \"0x100000000\" is not a 32-bit value" },
	{ "[measured-bits]\n", "[registers]\ncolumns = offset value\n0x8 0x1\n\n[measured-bits]\n",
	  0, "[registers] does not name its source" },
	{ "columns = sm bit\n", "columns = sm bit\n132 7\n", 1,
	  "this line describes SM 132, but the SM order has only SMs 0-131" },
	{ "columns = sm bit\n", "columns = sm bit\n1024 7\n", 1,
	  "SM \"1024\" is not a number below 1024" },
	{ "columns = sm bit\n", "columns = sm bit\n0 256\n", 1,
	  "bit \"256\" is not a number below 256" },
	{ "columns = sm bit\n", "columns = sm bit\n3 9\n", 5,
	  "SM 3 appears twice in this section, first in line" },
	{ "\n2\t9\n3\t9\n", "\n2\t9\n3\t10\n", -1, "measured bit 9 and the second has 10" },
	{ "\n2\t9\n3\t9\n", "\n2\t0\n3\t0\n", -1,
	  "TPCs 0 and 1 (SM 2) cannot both have the measured bit 0" },
};

static void test_contents(void)
{
	struct gpupart_topology *topo;
	char *base, *text, where[32];
	unsigned int i, line;
	size_t len;
	int err;

	base = read_text(board_path('e'), &len);
	for (i = 0; i < sizeof(contents) / sizeof(contents[0]); i++) {
		text = changed(base, contents[i].old, contents[i].with, &line);
		err = topo_file_parse(gp, "it", text, strlen(text), &topo);
		snprintf(where, sizeof(where), "it: line %u: ", line + contents[i].further);
		if (!contents[i].sentence) {
			tap_ok(!err, "change %u opens", i);
			if (!err)
				gpupart_topology_close(topo);
		} else {
			tap_ok(err == -EINVAL && strstr(gpupart_error(gp), contents[i].sentence) &&
				       !strncmp(gpupart_error(gp), where,
						contents[i].further < 0 ? 4 : strlen(where)) &&
				       topo_file_parse(NULL, "it", text, strlen(text), &topo) ==
					       -EINVAL,
			       "change %u: %s", i, gpupart_error(gp));
		}
		free(text);
	}
	free(base);
}

/* An address is always stored in lower case, because it is compared with CUDA's addresses. */
static void test_pci(void)
{
	static const char *const spelled[][2] = {
		{ "0000:0D:00.0", "0000:0d:00.0" },
		{ "00000000:0D:1F.7", "0000:0d:1f.7" },
		{ "00010000:0d:00.0", "10000:0d:00.0" },
		{ "17000000.gpu", "17000000.gpu" },
		{ "ABCD:EF:00.0", "abcd:ef:00.0" },
	};
	struct gpupart_topology *topo;
	char *base, *text, with[40];
	unsigned int i, line;
	size_t len;

	base = read_text(board_path('e'), &len);
	for (i = 0; i < sizeof(spelled) / sizeof(spelled[0]); i++) {
		snprintf(with, sizeof(with), "pci = %s", spelled[i][0]);
		text = changed(base, "pci = unknown", with, &line);
		if (tap_ok(!topo_file_parse(gp, "it", text, strlen(text), &topo), "%s opens",
			   with)) {
			tap_ok(!strcmp(topo->info.pci, spelled[i][1]), "as %s", topo->info.pci);
			gpupart_topology_close(topo);
		}
		free(text);
	}
	free(base);
}

static const struct {
	const char *text;
	size_t len; /* 0: its length */
	int err;
	const char *sentence;
} strange[] = {
	{ "", 0, -EBADMSG, "line 1: the file is empty" },
	{ "\n", 0, -EBADMSG, "line 1: this is not a capture" },
	{ "<svg/>", 0, -EBADMSG,
	  "line 1: this is not a capture: a capture starts with \"# gpupart capture 1\"" },
	{ "# gpupart capture 1\r\n\r\n[gpu]\r\n", 0, -EBADMSG,
	  "line 1: the line has a carriage return" },
	{ "# gpupart capture 1\n\n[gpu]\nname = a\0b\n", 37, -EBADMSG,
	  "line 4: the line has a NUL byte" },
	{ "# gpupart capture 1\n\n[gpu]\nname = \x1b[2J\n", 0, -EBADMSG,
	  "line 4: the line has byte 0x1b" },
	{ "# gpupart capture 1\n\n[gpu]\nname = \xc3\xa9\n", 0, -EBADMSG,
	  "line 4: the line has byte 0xc3" },
	{ "# gpupart capture 1\n", 0, -EBADMSG, "the last line is not \"checksum = \"" },
	{ "checksum = 0123456789abcdef\n", 0, -EBADMSG, "this is not a capture" },
	{ "# gpupart capture 1\nchecksum = 0123456789ABCDEF\n", 0, -EBADMSG,
	  "line 2: the checksum does not match the 1 lines above it" },
	{ "# gpupart capture 1\nchecksum = 0123456789abcdef", 0, -EBADMSG,
	  "line 2: the file ends inside" },
};

static void test_strange(void)
{
	char path[] = "/tmp/gpupart-capture-XXXXXX", *base, *text, *large;
	struct gpupart_topology *topo;
	unsigned int i, line;
	size_t len, at;
	int fd, err;

	for (i = 0; i < sizeof(strange) / sizeof(strange[0]); i++) {
		len = strange[i].len ? strange[i].len : strlen(strange[i].text);
		err = topo_file_parse(gp, "it", strange[i].text, len, &topo);
		tap_ok(err == strange[i].err && strstr(gpupart_error(gp), strange[i].sentence),
		       "strange file %u: %s", i, gpupart_error(gp));
	}

	base = read_text(board_path('e'), &len);
	text = changed("# gpupart capture 1\n\n[gpu]\nname = x\n\nchecksum = 0123456789abcdef\n",
		       NULL, "", &line);
	tap_ok(topo_file_parse(gp, "it", text, strlen(text), &topo) == -ENODATA &&
		       strstr(gpupart_error(gp), "no SM order (section [rm])"),
	       "%s", gpupart_error(gp));
	free(text);

	/* The checksum is correct, but not on a separate line. */
	text = changed("# gpupart capture 1\n\n[gpu]\nname = xchecksum = 0123456789abcdef\n", NULL,
		       "", &line);
	tap_ok(topo_file_parse(gp, "it", text, strlen(text), &topo) == -EBADMSG &&
		       strstr(gpupart_error(gp), "line 4: the last line is not"),
	       "%s", gpupart_error(gp));
	free(text);

	/* A checksum in capitals consists of different bytes, so the file is different. */
	text = strdup(base);
	for (at = len - 17; at < len; at++)
		if (text[at] >= 'a' && text[at] <= 'f')
			text[at] -= 'a' - 'A';
	tap_ok(strcmp(text, base) && topo_file_parse(gp, "it", text, len, &topo) == -EBADMSG,
	       "a checksum in capitals: %s", gpupart_error(gp));
	free(text);
	free(base);

	/* More SMs and more GPCs than the maximum. */
	large = malloc(1 << 20);
	at = sprintf(large,
		"# gpupart capture 1\n[rm]\nsource = x\ncolumns = sm gpc local_tpc local_sm tpc "
		"vgpc tpc_in_vgpc ugpu cpc virtual_tpc\n");
	for (i = 0; i < TOPO_MAX_SMS + 1; i++)
		at += sprintf(large + at, "%u 0 - - %u - - - - -\n", i, i / 4 % 256);
	sprintf(large + at, "checksum = 0123456789abcdef\n");
	text = changed(large, NULL, "", &line);
	tap_ok(topo_file_parse(gp, "it", text, strlen(text), &topo) == -EINVAL &&
		       strstr(gpupart_error(gp), "line 1029: there are more than 1024 SMs"),
	       "%s", gpupart_error(gp));
	free(text);
	at = sprintf(large,
		"# gpupart capture 1\n[gpc-map]\nsource = x\n"
		"columns = gpc_phys present_tpcs gpc\n");
	for (i = 0; i < GPUPART_MAX_GPCS + 1; i++)
		at += sprintf(large + at, "%u - -\n", i);
	sprintf(large + at, "checksum = 0123456789abcdef\n");
	text = changed(large, NULL, "", &line);
	tap_ok(topo_file_parse(gp, "it", text, strlen(text), &topo) == -EINVAL &&
		       strstr(gpupart_error(gp), "line 37: there are more than 32 GPCs"),
	       "%s", gpupart_error(gp));
	free(text);
	free(large);

	fd = mkstemp(path);
	tap_ok(fd >= 0 && !ftruncate(fd, (4 << 20) + 1) &&
		       gpupart_topology_open(gp, path, NULL, &topo) == -EFBIG &&
		       strstr(gpupart_error(gp), "larger than 4 MiB"),
	       "%s", gpupart_error(gp));
	tap_ok(!ftruncate(fd, 4 << 20) &&
		       gpupart_topology_open(gp, path, NULL, &topo) == -EBADMSG &&
		       strstr(gpupart_error(gp), "NUL"),
	       "%s", gpupart_error(gp));
	close(fd);
	unlink(path);
	tap_ok(gpupart_topology_open(gp, "tests", NULL, &topo) == -EISDIR, "%s", gpupart_error(gp));
}

/* -------------------------------------------------------------- made-up GPUs */

/* Checks the invariants of every GPU. Uses only public functions. */
static bool hangs_together(const struct gpupart_topology *topo)
{
	unsigned int nr_tpcs = gpupart_topology_nr_tpcs(topo), nr_sms = 0, tpc, gpc, id, i;
	struct gpupart_tpcset all = gpupart_topology_all(topo), seen = { 0 }, part;
	bool good = gpupart_tpcset_count(&all) == nr_tpcs;

	for (gpc = 0; gpc < gpupart_topology_nr_gpcs(topo); gpc++) {
		part = gpupart_topology_gpc(topo, gpc)->tpcs;
		good &= !gpupart_tpcset_empty(&part) && !gpupart_tpcset_intersects(&part, &seen);
		good &= gpupart_topology_gpc(topo, gpc)->gpc_phys >= 0;
		good &= (unsigned int)__builtin_popcount(
				gpupart_topology_gpc(topo, gpc)->present_tpcs) ==
			gpupart_tpcset_count(&part);
		seen = gpupart_tpcset_or(&seen, &part);
	}
	good &= gpupart_tpcset_equal(&seen, &all);
	memset(&seen, 0, sizeof(seen));
	for (id = 0; id < gpupart_topology_end_vgpc(topo); id++) {
		part = gpupart_topology_vgpc(topo, id);
		good &= !gpupart_tpcset_intersects(&part, &seen);
		good &= id < gpupart_topology_info(topo)->max_gpcs ||
			gpupart_tpcset_count(&part) <= 1;
		seen = gpupart_tpcset_or(&seen, &part);
	}
	good &= gpupart_tpcset_equal(&seen, &all);
	memset(&seen, 0, sizeof(seen));
	for (id = 0; id < gpupart_topology_nr_ugpus(topo); id++) {
		part = gpupart_topology_ugpu(topo, id);
		good &= !gpupart_tpcset_empty(&part) && !gpupart_tpcset_intersects(&part, &seen);
		seen = gpupart_tpcset_or(&seen, &part);
	}
	good &= gpupart_tpcset_equal(&seen, &all) || !gpupart_topology_nr_ugpus(topo);
	for (tpc = 0; tpc < nr_tpcs; tpc++) {
		const struct gpupart_tpc *t = gpupart_topology_tpc(topo, tpc);

		part = gpupart_topology_gpc(topo, t->gpc)->tpcs;
		good &= gpupart_tpcset_has(&part, tpc) && t->nr_sms > 0;
		good &= t->tpc_in_gpc >= 0 &&
			(unsigned int)t->tpc_in_gpc < gpupart_tpcset_count(&part);
		part = gpupart_topology_vgpc(topo, t->vgpc);
		good &= gpupart_tpcset_has(&part, tpc) && t->measured_bit >= 0;
		for (i = 0; i < t->nr_sms; i++)
			good &= gpupart_topology_sm_tpc(topo, t->sms[i]) == (int)tpc;
		nr_sms += t->nr_sms;
	}
	return good && nr_sms == gpupart_topology_nr_sms(topo);
}

static void test_generated(void)
{
	static const struct {
		unsigned int nr_tpcs, nr_gpcs, nr_sms, nr_ugpus, max_gpcs, max_tpcs_per_gpc;
	} known[NR_GENERATED] = {
		[3] = { 4, 1, 8, 1, 1, 5 },	[7] = { 39, 6, 39, 2, 6, 7 },
		[10] = { 33, 6, 66, 0, 6, 6 },	[11] = { 256, 32, 512, 2, 32, 8 },
		[15] = { 1, 1, 2, 1, 1, 1 },	[16] = { 48, 6, 96, 2, 10, 9 },
		[17] = { 29, 3, 87, 1, 3, 10 },
	};
	struct gpupart_topology *topo;
	uint64_t hashes[NR_GENERATED];
	bool different = true;
	unsigned int i, other;

	for (i = 0; i < NR_GENERATED; i++) {
		const char *path = generated_path(i);

		hashes[i] = i;
		if (!tap_ok(!gpupart_topology_open(gp, path, NULL, &topo), "generated %u opens",
			    i)) {
			printf("# %s\n", gpupart_error(gp));
			continue;
		}
		tap_ok(hangs_together(topo), "generated %u hangs together", i);
		/*
		 * Made-up board 16 has the maxima as registers. The library also writes the
		 * maxima as keys.
		 */
		tap_ok(writes_back(path) == (i != 16), "generated %u is written back", i);
		if (known[i].nr_tpcs)
			tap_ok(topo->nr_tpcs == known[i].nr_tpcs &&
				       topo->nr_gpcs == known[i].nr_gpcs &&
				       topo->nr_sms == known[i].nr_sms &&
				       topo->nr_ugpus == known[i].nr_ugpus &&
				       topo->info.max_gpcs == known[i].max_gpcs &&
				       topo->info.max_tpcs_per_gpc == known[i].max_tpcs_per_gpc,
			       "generated %u has what it was made with", i);
		hashes[i] = gpupart_topology_hash(topo);
		for (other = 0; other < i; other++)
			different &= hashes[other] != hashes[i];
		gpupart_topology_close(topo);
	}
	tap_ok(different, "their hashes differ");
}

/*
 * If a capture has both, keys take precedence over the registers with the design maxima. A
 * refused register has no value.
 */
static void test_maxima(void)
{
	static const struct {
		const char *key, *reg;
		unsigned int max_gpcs;
	} tries[] = {
		{ "max-gpcs = 8", "0x022430\t0x00000009", 8 },
		{ "max-gpcs = unknown", "0x022430\t0x00000009", 9 },
		{ "max-gpcs = unknown", "0x022430\t0xbadf5040", 0 },
		{ "max-gpcs = unknown", "0x022430\t0x00000020", 32 },
		{ "max-gpcs = unknown", "0x022430\t0x00000021", 0 },
		{ "max-gpcs = unknown", "0x02242c\t0x00000009", 0 },
	};
	struct gpupart_topology *topo;
	char *base, *text, *again;
	unsigned int i, line;
	size_t len;

	base = read_text(board_path('a'), &len);
	for (i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		text = changed(base, "max-gpcs = 8", tries[i].key, &line);
		again = changed(text, "0x022430\t0x00000008", tries[i].reg, &line);
		tap_ok(!topo_file_parse(gp, "it", again, strlen(again), &topo) &&
			       topo->info.max_gpcs == tries[i].max_gpcs &&
			       topo->info.max_tpcs_per_gpc == 9,
		       "%s with register %s", tries[i].key, tries[i].reg);
		gpupart_topology_close(topo);
		free(text);
		free(again);
	}
	free(base);
}

static void test_registers(void)
{
	struct gpupart_topology *topo;
	bool boot = false;
	unsigned int i;

	if (gpupart_topology_open(gp, board_path('a'), NULL, &topo)) {
		tap_ok(false, "board a opens");
		return;
	}
	for (i = 0; i < topo->nr_registers; i++)
		boot |= topo->registers[i].offset == 0xa00 &&
			topo->registers[i].value == 0x180a1000;
	tap_ok(topo->nr_registers == 545 && boot, "board a has 545 registers, BOOT_42 among them");
	tap_ok(strstr(topo->text_registers, "EXEC_REG_OPS") &&
		       strstr(topo->text_rm, "0x2080121b") &&
		       strstr(topo->text_gpc_map, "0x2080122b") && !topo->text_bits[0],
	       "each section's source is kept");
	gpupart_topology_close(topo);
}

/* Files that block the reader or have no end must not be opened. */
static void test_no_files(void)
{
	static const struct {
		const char *path, *words;
		int err;
	} tries[] = {
		{ NULL, "pipe", -EINVAL }, { "/dev/zero", "device", -EINVAL },
		{ "/dev/tty", "device", -EINVAL }, { "/", "folder", -EISDIR },
		{ "/nonexistent/x", "No such file", -ENOENT },
	};
	char folder[] = "/tmp/gpupart-capture-XXXXXX", pipe_path[64];
	struct gpupart_topology *topo;

	if (!tap_ok(mkdtemp(folder), "a folder is made"))
		return;
	snprintf(pipe_path, sizeof(pipe_path), "%s/pipe", folder);
	tap_ok(!mkfifo(pipe_path, 0600), "a pipe is made");
	for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		const char *path = tries[i].path ? tries[i].path : pipe_path;
		int err;

		alarm(60);
		err = gpupart_topology_open(gp, path, NULL, &topo);
		alarm(0);
		tap_ok(err == tries[i].err && strstr(gpupart_error(gp), path) &&
			       strstr(gpupart_error(gp), tries[i].words),
		       "no file: %s", gpupart_error(gp));
	}
	unlink(pipe_path);
	rmdir(folder);
}

int main(void)
{
	gpupart_open(&gp);
	test_no_files();
	test_back();
	test_damage(board_path('e'), 1);
	test_damage(board_path('a'), 8);
	test_damage(generated_path(15), 1);
	test_contents();
	test_pci();
	test_strange();
	test_generated();
	test_registers();
	test_maxima();
	gpupart_close(gp);
	return tap_done();
}
