// SPDX-License-Identifier: MIT
/*
 * Tests the conditions for trusting a map. It counts how often the uploaded TMDs leave out each
 * TPC. It also tests which stored checks the library accepts.
 */
#include <dirent.h>
#include "tests/lib/scenario.h"

/* ------------------------------------------------------- launches seen by the driver */

#define MASK_VALID 31
#define MASK_FIRST 2432

static const unsigned char table_id[16] = {
	0x2c, 0x8e, 0x0a, 0xd8, 0x07, 0x10, 0xab, 0x4e,
	0x90, 0xdd, 0x54, 0x71, 0x9f, 0xe5, 0xf7, 0x4b,
};

/* Counts launches by the set mask bits of the uploaded TMD. */
static unsigned int nr_alone[128], nr_several, nr_masked;

static bool bit_of(const unsigned char *tmd, unsigned int bit)
{
	return tmd[bit / 8] >> bit % 8 & 1;
}

static void on_upload(void *user, int domain, int cbid, const void *params)
{
	const unsigned char *tmd = ((const P *)params)[4];
	unsigned int nr = 0, last = 0;

	(void)user;
	(void)domain;
	(void)cbid;
	if (!bit_of(tmd, MASK_VALID))
		return;
	for (unsigned int bit = 0; bit < 128; bit++)
		if (bit_of(tmd, MASK_FIRST + bit)) {
			nr++;
			last = bit;
		}
	nr_masked++;
	if (nr == 1)
		nr_alone[last]++;
	else
		nr_several++;
}

static int watch_uploads(void)
{
	CU (*subscribe)(uint32_t *, void (*)(void *, int, int, const void *), void *);
	CU (*enable)(uint32_t, uint32_t, int, int);
	const void *found;
	uint32_t handle;

	if (driver_open() || cuGetExportTable(&found, table_id))
		return -1;
	*(const void **)&subscribe = ((const void *const *)found)[3];
	*(const void **)&enable = ((const void *const *)found)[6];
	return subscribe(&handle, on_upload, NULL) || enable(1, handle, 0xb, 2);
}

static void child_rounds(void)
{
	const struct gpupart_topology *topo;
	unsigned int least = ~0u, nr = 0;
	struct gpupart_check check;

	if (!tap_ok(!watch_uploads() && !attach(NULL), "attaches under our eyes"))
		return;
	topo = gpupart_gpu_topology(gpu);
	gpupart_gpu_check(gpu, &check);
	for (unsigned int tpc = 0; tpc < gpupart_topology_nr_tpcs(topo); tpc++) {
		unsigned int times = nr_alone[gpupart_topology_tpc(topo, tpc)->measured_bit];

		nr += times;
		if (times < least)
			least = times;
	}
	tap_ok(least >= 3, "each TPC was left out, alone, by %u launches or more", least);
	tap_ok(!nr_several && nr == nr_masked && nr == check.nr_launches,
	       "and all %u masked launches were such; %u are counted", nr_masked,
	       check.nr_launches);
	tap_ok(!check.from_cache, "it was measured");
}

/*
 * A block of another program occupies an SM. During this time, the library cannot prove the TPC
 * of this SM.
 */
static int attach_beside(unsigned int ns)
{
	struct program p;
	P stream;

	if (driver_open() || program_start(&p, 0) || cuStreamCreate(&stream, 1) ||
	    program_launch(&p, stream, 1, ns))
		return -EIO;
	return attach(NULL);
}

static void child_hidden(void)
{
	int err = attach_beside(4000000000u);

	/* A single block runs on the first singleton. */
	tap_ok(err == -EPROTO && strstr(gpupart_error(gp), "TPC 62 could not be proven"),
	       "an SM that is never free: %d %s", err, gpupart_error(gp));
}

static void child_hidden_for_a_while(void)
{
	struct gpupart_check check;
	unsigned int nr_tpcs;
	int err = attach_beside(8000000);

	if (!tap_ok(!err, "an SM that is free again in time: %s", err ? gpupart_error(gp) : ""))
		return;
	gpupart_gpu_check(gpu, &check);
	nr_tpcs = gpupart_topology_nr_tpcs(gpupart_gpu_topology(gpu));
	tap_ok(check.nr_proven == nr_tpcs && check.nr_launches > 3 * nr_tpcs,
	       "took more rounds: %u launches", check.nr_launches);
}

/* ------------------------------------------------------------- stored checks */

static void attach_expecting(bool from_cache)
{
	struct gpupart_check check;
	int err = attach(NULL);

	if (!tap_ok(!err, "attaches: %s", err ? gpupart_error(gp) : ""))
		return;
	gpupart_gpu_check(gpu, &check);
	tap_ok(check.from_cache == from_cache && !check.nr_launches == from_cache,
	       "%s: %u launches", from_cache ? "by what was checked before" : "measured now",
	       check.nr_launches);
}

static void child_remembered(void) { attach_expecting(true); }
static void child_measured(void) { attach_expecting(false); }
static void child_confined(void) { program_unaware("5-9"); }
static void child_free(void) { program_unaware(NULL); }

/* An untried row can confine launches after a proof. */
static void child_untried(void)
{
	struct gpupart_tpcset set = list("5-9");
	struct program p;
	P stream;

	attach_expecting(false);
	tap_ok(!program_start(&p, 0) && !cuStreamCreate(&stream, 1) &&
		       !gpupart_process_set(gp, gpu, &set) && ran_on(&p, stream, &set),
	       "a grid runs in its set");
}

static void refused_naming(int want, const char *word)
{
	int err = attach(NULL);

	tap_ok(err == want && strstr(gpupart_error(gp), word), "refused: %d %s", err,
	       err ? gpupart_error(gp) : "");
}

static void child_mig(void) { refused_naming(-EOPNOTSUPP, "MIG is enabled"); }
static void child_type(void) { refused_naming(-EPROTO, "the wrong type field"); }
static void child_cluster(void) { refused_naming(-EPROTO, "the wrong cluster field"); }
static void child_cooperative(void) { refused_naming(-EPROTO, "the wrong cooperative field"); }
static void child_threads(void) { refused_naming(-EPROTO, "the wrong threads field"); }
static void child_registers(void) { refused_naming(-EPROTO, "the wrong registers field"); }
static void child_shared(void) { refused_naming(-EPROTO, "the wrong shared memory field"); }
static void child_mps(void) { refused_naming(-EOPNOTSUPP, "under MPS"); }

static void child_moving_tmd(void)
{
	struct gpupart_tpcset set;
	struct program p;
	int err = attach(NULL);
	P stream;

	if (!tap_ok(!err && !program_start(&p, 0) && !cuStreamCreate(&stream, 0), "attaches: %s",
		    err ? gpupart_error(gp) : ""))
		return;
	set = list("0-3");
	err = gpupart_stream_set(gp, gpu, stream, &set);
	tap_ok(err == -EOPNOTSUPP && strstr(gpupart_error(gp), "moves a stream's TMD"),
	       "no stream set: %s", err ? gpupart_error(gp) : "");
	tap_ok(!gpupart_process_set(gp, gpu, &set) && ran_on(&p, stream, &set),
	       "a process set holds all the same");
}

/* ------------------------------------------------------------------- parent */

#define NR_LINES 4

/* Writes board b to the scratch file @name. Replaces some lines of the [gpu] section. */
static void write_capture(const char *name, const char *const lines[NR_LINES])
{
	static const char *const old[NR_LINES] = {
		"uuid = unknown", "driver = 580.159\n", "chip-id = 0x180", "mig = off",
	};
	char path[4096], *text = calloc(1, 1 << 20), *at;
	size_t len;
	FILE *file;

	snprintf(path, sizeof(path), BOARD, 'b');
	file = fopen(path, "r");
	len = fread(text, 1, (1 << 20) - 4096, file);
	fclose(file);
	for (int i = 0; i < NR_LINES; i++) {
		at = strstr(text, old[i]);
		if (!at)
			abort();
		memmove(at + strlen(lines[i]), at + strlen(old[i]), len - (at - text));
		memcpy(at, lines[i], strlen(lines[i]));
		len += strlen(lines[i]) - strlen(old[i]);
	}
	at = text + len - strlen("checksum = 0123456789abcdef\n");
	sprintf(at, "checksum = %016llx\n",
		(unsigned long long)hash_bytes(HASH_INIT, text, at - text));
	file = fopen(expand(name, path, sizeof(path)), "w");
	fputs(text, file);
	fclose(file);
	free(text);
}

#define UUID(end)   "uuid = GPU-01234567-89ab-cdef-0123-4567890000" end
#define DRIVER(end) "driver = 580.1" end "\n"
#define GH100 "chip-id = 0x180"
#define GB100 "chip-id = 0x1a0"	/* the rows of this board, V04_01 and V05_00, are untried */

static void write_captures(void)
{
	static const struct {
		const char *name, *lines[NR_LINES];
	} captures[] = {
		{ "@/first", { UUID("01"), DRIVER("59"), GH100, "mig = off" } },
		{ "@/uuid", { UUID("02"), DRIVER("59"), GH100, "mig = off" } },
		{ "@/driver", { UUID("01"), DRIVER("60"), GH100, "mig = off" } },
		{ "@/mig", { UUID("01"), DRIVER("59"), GH100, "mig = unknown" } },
		{ "@/mig-on", { UUID("01"), DRIVER("59"), GH100, "mig = on" } },
		{ "@/gb100", { UUID("03"), DRIVER("59"), GB100, "mig = off" } },
	};

	for (unsigned int i = 0; i < sizeof(captures) / sizeof(captures[0]); i++)
		write_capture(captures[i].name, captures[i].lines);
}

static void prepare_captures(const struct scenario *s)
{
	(void)s;
	write_captures();
}

/* Finds the only file of a checked map in the cache. The proof of records is another file. */
static char *cache_file(char path[4096])
{
	struct dirent *entry;
	DIR *dir;

	expand("@/cache/gpupart/checked", path, 4096);
	dir = opendir(path);
	key[0] = 0;
	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.' && strncmp(entry->d_name, "records-", 8))
			snprintf(key, sizeof(key), "%.31s", entry->d_name);
	if (dir)
		closedir(dir);
	strcat(strcat(path, "/"), key);
	return path;
}

/* A child checks the first capture and stores the result. */
static void prepare_known(const struct scenario *s)
{
	static const struct scenario first = { "first", child_measured, "@/first", { NULL }, NULL };
	char path[4096];
	int status;

	write_captures();
	status = child_quiet(&first);
	cache_file(path);
	tap_ok(!status && strlen(key) == 16, "%s: one check is remembered", s->name);
}

/*
 * Replaces the content of the file. The new content is the first @keep digits of the key, and
 * then @tail.
 */
static void forge(const struct scenario *s, int keep, const char *tail)
{
	char path[4096];
	FILE *file;

	prepare_known(s);
	file = fopen(cache_file(path), "w");
	fprintf(file, "%.*s%s", keep, key, tail);
	fclose(file);
}

static void prepare_other(const struct scenario *s) { forge(s, 0, "0123456789abcdef\n"); }
static void prepare_empty(const struct scenario *s) { forge(s, 0, ""); }
static void prepare_cut(const struct scenario *s) { forge(s, 15, "\n"); }
static void prepare_no_newline(const struct scenario *s) { forge(s, 16, "0"); }
static void prepare_longer(const struct scenario *s) { forge(s, 16, "\nand more\n"); }

/*
 * If sudo keeps HOME, the cache belongs to a different user. That user can write any key into the
 * cache.
 */
static void prepare_of_another(const struct scenario *s)
{
	char path[4096];

	prepare_known(s);
	if (geteuid())
		tap_skip("%s: only root can give a file to another user", s->name);
	else if (chown(cache_file(path), 65534, 65534))
		tap_ok(0, "%s: %s", s->name, path);
}

/* If this process is not root, the file belongs to this user and is accepted. */
static void child_of_another(void) { attach_expecting(geteuid() != 0); }

static void prepare_writable(const struct scenario *s)
{
	char path[4096];

	prepare_known(s);
	tap_ok(!chmod(cache_file(path), 0666), "%s: all may write it", s->name);
}

/* The process knows the key, but the key's file was removed. */
static void prepare_key(const struct scenario *s)
{
	char path[4096];

	prepare_known(s);
	tap_ok(!unlink(cache_file(path)), "%s: and forgotten", s->name);
}

static void prepare_pipe(const struct scenario *s)
{
	char path[4096];
	int fd;

	(void)s;
	mkdir(expand("@/mps", path, sizeof(path)), 0700);
	fd = open(expand("@/mps/control", path, sizeof(path)), O_CREAT | O_WRONLY, 0600);
	close(fd);
}

#define INJECT "CUDA_INJECTION64_PATH=@inject", "GPUPART_SET=5-9"

/* Fields of an untried row. In each test one field is replaced by a byte of 0. */
#define V04_01(name, child, ...) \
	{ "v04_01" name, child, "@/gb100", \
	  { "GPUPART_SIM_FAULTS=tmd-version=0x41" __VA_ARGS__ }, prepare_captures }
#define V05_00(name, child, ...) \
	{ "v05_00" name, child, "@/gb100", \
	  { "GPUPART_SIM_FAULTS=tmd-version=0x50" __VA_ARGS__ }, prepare_captures }

static const struct scenario scenarios[] = {
	V04_01("", child_untried),
	V04_01("-type", child_type, ",move-field=2:200"),
	V04_01("-cluster-x", child_cluster, ",move-field=268:200"),
	V04_01("-cluster-y", child_cluster, ",move-field=269:200"),
	V04_01("-cluster-z", child_cluster, ",move-field=270:200"),
	V04_01("-cluster-x-is-y", child_cluster, ",move-field=268:269"),
	V04_01("-cooperative-x", child_cooperative, ",move-field=276:200"),
	V04_01("-cooperative-y", child_cooperative, ",move-field=278:200"),
	V04_01("-cooperative-z", child_cooperative, ",move-field=280:200"),
	V04_01("-threads-x-is-y", child_threads, ",move-field=144:146"),
	V04_01("-threads-z", child_threads, ",move-field=148:200"),
	V04_01("-registers", child_registers, ",move-field=150:200"),
	V04_01("-shared", child_shared, ",move-field=74:200"),
	V05_00("", child_untried),
	V05_00("-type", child_type, ",move-field=18:200"),
	V05_00("-cluster-y", child_cluster, ",move-field=257:200"),
	V05_00("-cooperative-x", child_cooperative, ",move-field=264:200"),
	V05_00("-threads-z", child_threads, ",move-field=140:200"),
	V05_00("-registers", child_registers, ",move-field=141:200"),
	V05_00("-shared", child_shared, ",move-field=144:200"),
	{ "rounds", child_rounds, "@b", { "GPUPART_SIM_FAULTS=subscribers=2" }, NULL },
	{ "rounds-board-e", child_rounds, "@e", { "GPUPART_SIM_FAULTS=subscribers=2" }, NULL },
	{ "hidden", child_hidden, "@b", { NULL }, NULL },
	{ "hidden-for-a-while", child_hidden_for_a_while, "@b", { NULL }, NULL },
	{ "first", child_measured, "@/first", { NULL }, prepare_captures },
	{ "remembered", child_remembered, "@/first", { NULL }, prepare_known },
	{ "other-content", child_measured, "@/first", { NULL }, prepare_other },
	{ "empty-content", child_measured, "@/first", { NULL }, prepare_empty },
	{ "cut-content", child_measured, "@/first", { NULL }, prepare_cut },
	{ "no-newline", child_measured, "@/first", { NULL }, prepare_no_newline },
	{ "longer-content", child_measured, "@/first", { NULL }, prepare_longer },
	{ "of-another-user", child_of_another, "@/first", { NULL }, prepare_of_another },
	{ "writable-by-all", child_measured, "@/first", { NULL }, prepare_writable },
	{ "other-uuid", child_measured, "@/uuid", { NULL }, prepare_known },
	{ "other-driver", child_measured, "@/driver", { NULL }, prepare_known },
	{ "other-mig", child_measured, "@/mig", { NULL }, prepare_known },
	{ "key", child_confined, "@/first", { INJECT, "GPUPART_CHECKED=@key" }, prepare_key },
	{ "no-key", child_free, "@/first", { INJECT }, prepare_key },
	{ "wrong-key",
	  child_free,
	  "@/first",
	  { INJECT, "GPUPART_CHECKED=0123456789abcdef" },
	  prepare_key },
	{ "empty-key", child_free, "@/first", { INJECT, "GPUPART_CHECKED=" }, prepare_key },
	{ "mig-on", child_mig, "@/mig-on", { NULL }, prepare_captures },
	{ "mps-pipe",
	  child_mps,
	  "@b",
	  { "GPUPART_SIM_FAULTS=no-mps-attribute", "CUDA_MPS_PIPE_DIRECTORY=@/mps" },
	  prepare_pipe },
	{ "mps-no-pipe",
	  child_measured,
	  "@b",
	  { "GPUPART_SIM_FAULTS=no-mps-attribute", "CUDA_MPS_PIPE_DIRECTORY=@/none" },
	  prepare_pipe },
	{ "mps-pipe-of-another",
	  child_measured,
	  "@b",
	  { "CUDA_MPS_PIPE_DIRECTORY=@/mps" },
	  prepare_pipe },
	{ "moving-tmd", child_moving_tmd, "@b", { "GPUPART_SIM_FAULTS=move-tmd" }, NULL },
};

int main(int argc, char **argv)
{
	return scenario_main(argc, argv, scenarios, sizeof(scenarios) / sizeof(scenarios[0]));
}
