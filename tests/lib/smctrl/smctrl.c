// SPDX-License-Identifier: MIT
/*
 * Tests libsmctrl's interface on the simulated driver, with a program for libsmctrl. It tests the
 * SMs of the launches, return values, and messages on stderr. It compares %smid with the table in
 * the capture. It uses libgpupart only in an attempt to escape from a cap.
 */
#include <dirent.h>
#include <limits.h>
#include <malloc.h>
#include <sys/mman.h>
#include <gpupart_manage.h>
#include <libsmctrl.h>
#include "tests/sim/cuda/program.h"

#define ONE		((uint128_t)1)
#define FIRST(nr)	((ONE << (nr)) - 1)
#define RANGE(low, end)	(FIRST(end) & ~FIRST(low))
#define ALL		FIRST(66)	/* both boards have 66 TPCs */

static char cache[] = "/tmp/gpupart-test-XXXXXX", cache_env[64];

/* ------------------------------------------------------------------ messages on stderr */

static int said_fd = -1;

static void listen_to_stderr(void)
{
	said_fd = memfd_create("stderr", 0);
	fflush(stderr);
	dup2(said_fd, 2);
}

/*
 * Returns true if exactly @lines lines were written since the last call and the lines contain
 * @word.
 */
static bool said(int lines, const char *word)
{
	char text[8192];
	off_t len = lseek(said_fd, 0, SEEK_END);
	int nr = 0;
	bool good;

	len = pread(said_fd, text, sizeof(text) - 1, 0);
	text[len < 0 ? 0 : len] = 0;
	if (ftruncate(said_fd, 0))
		return false;
	lseek(said_fd, 0, SEEK_SET);
	for (char *c = text; *c; c++)
		nr += *c == '\n';
	good = nr == lines && (!word || strstr(text, word));
	for (char *line = strtok(text, "\n"); !good && line; line = strtok(NULL, "\n"))
		check(false, "said: %s", line);
	return good;
}

/* ------------------------------------------------------------------ where launches run */

#define BLOCKS 264

/*
 * Returns the TPCs of one launch on @stream. If the launch failed, returns 0. Sets *whole to true
 * if the launch used both SMs of each TPC.
 */
static uint128_t ran_within(CUfunction census, CUstream stream, bool *whole)
{
	static __thread struct record records[BLOCKS];
	static __thread CUdeviceptr out;
	static __thread CUcontext of;
	uint128_t sms[2] = { 0 };
	struct shape shape = {
		.blocks = BLOCKS, .threads = 32, .shared = 200000, .stream = stream,
		.function = census,
	};
	CUcontext now;

	cu.cuCtxGetCurrent(&now);
	if (of != now && cu.cuMemAlloc_v2(&out, sizeof(records)))
		return 0;
	of = now;
	if (launch(&shape, out) || cu.cuStreamSynchronize(stream) ||
	    cu.cuMemcpyDtoH_v2(records, out, sizeof(records)))
		return 0;
	for (unsigned int block = 0; block < BLOCKS; block++)
		sms[records[block].smid % 2] |= ONE << records[block].smid / 2;
	*whole = sms[0] == sms[1];
	return sms[0] | sms[1];
}

/*
 * Returns the TPCs of one launch. The GPU must be idle before the launch. If the launch failed,
 * or if it used only one SM of a TPC, returns 0.
 */
static uint128_t ran_on(CUfunction census, CUstream stream)
{
	bool whole;
	uint128_t tpcs = ran_within(census, stream, &whole);

	return whole ? tpcs : 0;
}

static bool on(CUstream stream, uint128_t tpcs)
{
	uint128_t is = ran_on(f_census, stream);

	if (is != tpcs)
		fprintf(report, "not on %#llx%016llx, but %#llx%016llx\n",
			(unsigned long long)(tpcs >> 64), (unsigned long long)tpcs,
			(unsigned long long)(is >> 64), (unsigned long long)is);
	return is == tpcs;
}

static CUfunction census_here(void)
{
	CUmodule own;
	CUfunction function = NULL;

	if (cu.cuModuleLoadData(&own, ptx) ||
	    cu.cuModuleGetFunction(&function, own, "gpupart_census") ||
	    cu.cuFuncSetAttribute(function, 8, 200000))
		return NULL;
	return function;
}

static void program_on(int device)
{
	begin_on(device);
	TRY(cu.cuFuncSetAttribute(f_census, 8, 200000));
}

/* ---------------------------------------------------------------------- scenarios */

static void scopes(const char *unused)
{
	CUstream s, other, legacy = NULL, by_name = (CUstream)1, per_thread = (CUstream)2;

	(void)unused;
	libsmctrl_set_global_mask(~0xffull);
	check(libsmctrl_is_init() == 1, "a first mask makes ready by itself");
	program_on(0);
	TRY(cu.cuStreamCreate(&s, 1));
	TRY(cu.cuStreamCreate(&other, 0));
	check(on(s, FIRST(8)), "global, set before any call of CUDA: TPCs 0-7, SMs 0-15");
	libsmctrl_set_global_mask(0x1);
	check(on(s, RANGE(1, 64)), "64 bits with only TPC 0 forbidden: 1-63, not 64 and 65");
	libsmctrl_set_global_mask(0);
	check(on(s, FIRST(64)), "64 bits with none forbidden: 0-63");
	libsmctrl_set_global_mask((uint128_t)0);
	check(on(s, ALL), "128 bits with none forbidden: all 66");
	libsmctrl_set_global_mask(~(ONE << 65));
	check(on(s, ONE << 65), "128 bits, TPC 65 alone");
	libsmctrl_set_global_mask(~(__int128)(ONE << 64));
	check(on(s, ONE << 64), "a signed one, TPC 64 alone");
	set_sm_mask(~0x30ull);
	check(on(s, 0x30), "the old name of the global function");

	check(!libsmctrl_set_stream_mask(s, ~0xf00ull) && on(s, 0xf00) && on(other, 0x30),
	      "stream overrides global, on that stream alone");
	libsmctrl_set_global_mask(~0x3ull);
	check(on(s, 0xf00) && on(other, 0x3), "in whichever order they are set");
	check(!libsmctrl_set_stream_mask_ext(s, ~(RANGE(60, 66))) && on(s, RANGE(60, 66)),
	      "128 bits for a stream");
	check(!libsmctrl_set_stream_mask_ext(s, 0) && on(s, ALL),
	      "a stream's mask that forbids none overrides global too");
	libsmctrl_set_stream_mask(s, ~0xf00ull);

	libsmctrl_set_next_mask(~0x1ull);
	check(on(s, 0x1) && on(s, 0xf00), "next overrides stream, for one launch");
	libsmctrl_set_next_mask(~0x40ull);
	check(on(other, 0x40) && on(other, 0x3), "next overrides global, for one launch");
	libsmctrl_set_next_mask(~(ONE << 65 | 1));
	check(on(s, ONE << 65 | 1) && on(s, 0xf00), "128 bits for the next launch");
	libsmctrl_set_next_mask(~0x1ull);
	libsmctrl_set_next_mask(~0x2ull);
	check(on(s, 0x2) && on(s, 0xf00), "the later of two next masks");

	check(!libsmctrl_set_stream_mask(legacy, ~0x4ull) && on(legacy, 0x4) && on(by_name, 0x4),
	      "the legacy default stream, by both handles");
	check(!libsmctrl_set_stream_mask(by_name, ~0x8ull) && on(legacy, 0x8),
	      "set by its handle 1");
	check(!libsmctrl_set_stream_mask(per_thread, ~0x10ull) && on(per_thread, 0x10) &&
		      on(legacy, 0x8),
	      "the per-thread default stream");
	check(!cu.gpupart_sim_hung() && said(0, NULL), "nothing hung, nothing said");
}

static void left_nothing(const char *unused)
{
	uint64_t narrow = 5;
	uint128_t wide = 5;
	CUstream s;

	(void)unused;
	program_on(0);
	TRY(cu.cuStreamCreate(&s, 1));
	libsmctrl_set_global_mask(~0x7ull);
	libsmctrl_set_stream_mask(s, ~0x70ull);
	libsmctrl_set_global_mask(~0ull);
	check(said(1, "global mask 0xffffffffffffffffffffffffffffffff enables no TPC"),
	      "global: one line");
	check(libsmctrl_set_stream_mask(s, ~0ull) == EINVAL && said(1, "stream mask"),
	      "stream: one line and EINVAL");
	check(libsmctrl_set_stream_mask_ext(s, ALL) == EINVAL && said(1, "enables no TPC"),
	      "stream, 128 bits: all that this GPU has");
	libsmctrl_set_global_mask(ALL);
	check(said(1, "enables no TPC"), "global, 128 bits");
	check(on(s, 0x70) && on(NULL, 0x7), "and nothing was changed");
	libsmctrl_set_next_mask(~0ull);
	check(said(1, "next mask"), "next: one line");
	check(on(s, 0x70), "the next launch is as if it had not been set");
	libsmctrl_set_next_mask(~0x1ull);
	libsmctrl_set_next_mask(~(uint128_t)0);
	check(said(1, "next mask") && on(s, 0x1), "one that was waiting waits on");

	check(libsmctrl_set_stream_mask((void *)0xdead0, ~1ull) == EINVAL &&
		      said(1, "0xdead0 is not a stream"),
	      "a stream that is none");
	check(libsmctrl_make_mask(&narrow, 3, 3) == EINVAL &&
		      libsmctrl_make_mask(&narrow, 4, 3) == EINVAL &&
		      libsmctrl_make_mask(&narrow, 0, 65) == EINVAL &&
		      libsmctrl_make_mask_ext(&wide, 0, 129) == EINVAL && narrow == 5 && wide == 5,
	      "a range that is none makes no mask");
	check(!cu.gpupart_sim_hung() && said(0, NULL), "nothing hung");
}

static void helpers(const char *unused)
{
	uint64_t narrow;
	uint128_t wide;
	CUstream s;

	(void)unused;
	check(!libsmctrl_make_mask(&narrow, 5, 10) && narrow == ~0x3e0ull, "TPCs 5-9");
	check(!libsmctrl_make_mask(&narrow, 0, 64) && narrow == 0, "TPCs 0-63 in 64 bits");
	check(!libsmctrl_make_mask(&narrow, 63, 64) && narrow == ~(1ull << 63), "TPC 63");
	check(!libsmctrl_make_mask_ext(&wide, 60, 66) && wide == ~RANGE(60, 66), "TPCs 60-65");
	check(!libsmctrl_make_mask_ext(&wide, 0, 128) && wide == 0, "128 of them");
	check(!libsmctrl_make_mask_ext(&wide, 127, 128) && wide == ~(ONE << 127), "TPC 127");

	check(!libsmctrl_is_init(), "not ready before anything was asked for");
	check(!libsmctrl_init() && libsmctrl_is_init() == 1 && !libsmctrl_init_from_cuda(),
	      "made ready by name");
	check(libsmctrl_get_version()[0] && strchr(libsmctrl_get_version(), '.'), "a version: %s",
	      libsmctrl_get_version());

	program_on(0);
	TRY(cu.cuStreamCreate(&s, 1));
	libsmctrl_make_mask_ext(&wide, 60, 66);
	libsmctrl_set_stream_mask_ext(s, wide);
	check(!libsmctrl_validate_stream_mask(s, 60, 66, false), "a stream's mask is validated");
	check(libsmctrl_validate_stream_mask(s, 59, 66, false) == -1 &&
		      libsmctrl_validate_stream_mask(s, 60, 65, false) == -1 &&
		      libsmctrl_validate_stream_mask(s, -1, 0, false) == -1,
	      "and told from others: too few, too many, none");
	check(!libsmctrl_validate_stream_mask(NULL, 0, 66, false), "a stream without a mask");
	check(said(0, NULL), "nothing said");
}

/* ------------------------------------------------------------------- information */

/* Returns the TPCs of @gpc from the table in the capture. */
static uint128_t truth_of_gpc(const char *path, int gpc)
{
	FILE *file = fopen(path, "r");
	char line[1024], section[64] = "";
	int sm, in_gpc, tpc;
	uint128_t tpcs = 0;

	while (file && fgets(line, sizeof(line), file)) {
		if (line[0] == '[')
			sscanf(line, "[%63[^]]]", section);
		else if (!strcmp(section, "rm") &&
			 sscanf(line, "%d %d %*s %*s %d", &sm, &in_gpc, &tpc) == 3 &&
			 in_gpc == gpc)
			tpcs |= ONE << tpc;
	}
	if (file)
		fclose(file);
	return tpcs;
}

static void gpcs_are(int dev, const char *path)
{
	uint128_t *masks, *again, seen = 0;
	uint32_t nr = 0, nr_tpcs;
	bool good = !libsmctrl_get_gpc_info_ext(&nr, &masks, dev);

	if (!check(good && nr > 1, "GPU %d has %u GPCs", dev, nr))
		return;
	for (uint32_t gpc = 0; gpc < nr; gpc++) {
		good &= masks[gpc] && masks[gpc] == truth_of_gpc(path, gpc) &&
			!(masks[gpc] & seen);
		seen |= masks[gpc];
	}
	check(good && seen == ALL, "each has the TPCs that the capture says, together all");
	check(!libsmctrl_get_gpc_info_ext(&nr, &again, dev) && again == masks,
	      "the array is the library's and stays");
	check(!libsmctrl_get_tpc_info(&nr_tpcs, dev) && nr_tpcs == 66, "it has 66 TPCs");
}

static void information(const char *path)
{
	uint64_t *narrow = NULL;
	uint128_t *wide;
	uint32_t nr = 99;
	CUstream s;

	gpcs_are(0, path);
	check(!libsmctrl_is_init(), "asked without making the GPU ready");
	check(libsmctrl_get_gpc_info(&nr, &narrow, 0) == ERANGE && !narrow && nr < 99,
	      "66 TPCs do not fit into 64 bits: ERANGE");
	check(!libsmctrl_get_tpc_info_cuda(&nr, 0) && nr == 66, "the same by CUDA's number");
	check(said(0, NULL), "nothing said");
	check(libsmctrl_get_tpc_info(&nr, 1) == ENODEV && said(1, "PCI number 1"), "no second GPU");
	check(libsmctrl_get_gpc_info_ext(&nr, &wide, -1) == ENODEV && said(1, "PCI number -1") &&
		      libsmctrl_get_gpc_info(&nr, &narrow, 1000) == ENODEV &&
		      said(1, "number 1000"),
	      "nor numbers that are none");
	check(nr == 0, "which have no GPCs, for programs that do not look at the error");
	check(libsmctrl_get_tpc_info_cuda(&nr, 1) == ENODEV && said(1, "CUDA number 1") &&
		      libsmctrl_get_tpc_info_cuda(&nr, -1) == ENODEV && said(1, "CUDA number -1"),
	      "nor by CUDA's number");

	program_on(0);
	TRY(cu.cuStreamCreate(&s, 1));
	libsmctrl_get_gpc_info_ext(&nr, &wide, 0);
	libsmctrl_set_stream_mask_ext(s, ~wide[1]);
	check(on(s, truth_of_gpc(path, 1)), "~masks[1] confines to GPC 1");
}

/* The generated GPU has fewer TPCs, so its mask fits into 64 bits. */
static void information_narrow(const char *path)
{
	uint64_t *masks = NULL;
	uint32_t nr = 0, nr_tpcs = 0;
	bool good = !libsmctrl_get_tpc_info(&nr_tpcs, 0);

	check(good && nr_tpcs && nr_tpcs <= 64, "%u TPCs", nr_tpcs);
	good = !libsmctrl_get_gpc_info(&nr, &masks, 0) && nr;
	check(good, "%u GPCs in 64 bits", nr);
	for (uint32_t gpc = 0; gpc < nr; gpc++)
		good &= masks[gpc] && masks[gpc] == (uint64_t)truth_of_gpc(path, gpc);
	check(good, "each has the TPCs that the capture says");
}

/* --------------------------------------------------------------------- several GPUs */

static void two_gpus(const char *unused)
{
	CUstream here, there;
	CUfunction first;
	CUcontext ctx0;

	(void)unused;
	libsmctrl_set_global_mask(~0x3cull);
	program_on(0);
	ctx0 = ctx;
	first = f_census;
	TRY(cu.cuStreamCreate(&here, 1));
	check(on(here, 0x3c), "global holds on the first GPU");
	program_on(1);
	TRY(cu.cuStreamCreate(&there, 1));
	check(on(there, 0x3c), "and on the second, used later");
	check(!libsmctrl_set_stream_mask(here, ~0x1ull) &&
		      !libsmctrl_set_stream_mask(there, ~0x2ull),
	      "streams of both, while the second is current");
	check(on(there, 0x2), "the second's obeys its own");
	libsmctrl_set_next_mask(~0x80ull);
	check(on(there, 0x80) && on(there, 0x2), "next is for the current GPU's next launch");
	check(!libsmctrl_validate_stream_mask(there, 1, 2, false), "validated on its GPU");
	TRY(cu.cuCtxSetCurrent(ctx0));
	check(ran_on(first, here) == 0x1, "the first's obeys its own");
	libsmctrl_set_next_mask(~0x100ull);
	check(ran_on(first, here) == 0x100 && ran_on(first, here) == 0x1,
	      "next, with the other current");
	check(said(0, NULL), "nothing said");
}

/*
 * The second GPU is smaller. So a mask may allow some TPCs of the first GPU, but no TPC of the
 * second GPU.
 */
static void small_gpu(const char *unused)
{
	uint128_t high = ONE << 65;
	uint32_t nr = 0;
	CUstream here, there;
	bool good = !libsmctrl_get_tpc_info_cuda(&nr, 1);

	(void)unused;
	check(good && nr < 60, "the second has %u TPCs", nr);
	libsmctrl_set_global_mask(~high);
	check(said(1, "enables no TPC of the GPU at"), "TPC 65 alone: one line, of the small GPU");
	program_on(0);
	TRY(cu.cuStreamCreate(&here, 1));
	check(on(here, high), "the large one obeys");
	check(!libsmctrl_set_stream_mask_ext(here, ~(ONE << 64)) && on(here, ONE << 64) &&
		      said(0, NULL),
	      "a stream of the large GPU");
	program_on(1);
	TRY(cu.cuStreamCreate(&there, 1));
	check(libsmctrl_set_stream_mask_ext(there, ~high) == EINVAL && said(1, "enables no TPC"),
	      "a stream of the small one: one line");
}

static void pci_order(const char *path)
{
	uint32_t nr;

	/*
	 * CUDA_VISIBLE_DEVICES reverses the order of the GPUs. The argument dev still counts the
	 * GPUs by address.
	 */
	gpcs_are(0, path);
	check(!libsmctrl_get_tpc_info_cuda(&nr, 1) && nr == 66 &&
		      !libsmctrl_get_tpc_info_cuda(&nr, 0) && nr < 66,
	      "CUDA's numbers are its own");
}

/* ---------------------------------------------------------------------- environment */

static void cap(const char *unused)
{
	CUstream s;

	(void)unused;
	program_on(0);
	TRY(cu.cuStreamCreate(&s, 1));
	libsmctrl_set_global_mask((uint128_t)0);
	check(on(s, RANGE(4, 12)), "the cap holds beside a global mask that forbids none");
	libsmctrl_set_stream_mask(s, ~0xffull);
	check(on(s, RANGE(4, 8)), "beside a stream's");
	libsmctrl_set_next_mask(~0x810ull);
	check(on(s, 0x810), "beside the next launch's");
	libsmctrl_set_next_mask(~0x3ull);
	check(on(s, RANGE(4, 12)), "a mask that has nothing in common with it: the cap alone");
	check(!cu.gpupart_sim_hung() && said(0, NULL), "nothing hung, nothing said");
}

static void cap_escape(const char *unused)
{
	struct gpupart_tpcset all, part;
	struct gpupart_gpu *gpu;
	struct gpupart *gp;
	CUstream s;

	(void)unused;
	program_on(0);
	TRY(cu.cuStreamCreate(&s, 1));
	libsmctrl_set_global_mask((uint128_t)0);
	if (!check(!gpupart_open(&gp) && !gpupart_attach(gp, NULL, NULL, &gpu),
		   "gpupart beside it"))
		return;
	all = gpupart_topology_all(gpupart_gpu_topology(gpu));
	check(!gpupart_limit_set(gp, gpu, NULL) && on(s, RANGE(4, 12)), "no limit: the cap");
	check(gpupart_limit_set(gp, gpu, &all) == -EPERM && on(s, RANGE(4, 12)),
	      "all TPCs as the limit: refused");
	part = gpupart_tpcset_first(6);
	check(gpupart_limit_set(gp, gpu, &part) == -EPERM && on(s, RANGE(4, 12)),
	      "a limit partly outside: refused");
	part = (struct gpupart_tpcset){ { 0x30 } };
	check(!gpupart_limit_set(gp, gpu, &part) && on(s, RANGE(4, 6)), "a limit inside");
	check(!gpupart_limit_set(gp, gpu, NULL) && on(s, RANGE(4, 12)), "and back to the cap");
	check(!gpupart_process_set(gp, gpu, NULL) && on(s, RANGE(4, 12)), "no set of the process");
	check(said(0, NULL), "nothing said");
	gpupart_close(gp);
}

/* Tests caps that have no effect. The argument is the expected message. */
static void cap_ignored(const char *word)
{
	CUstream s;

	libsmctrl_set_global_mask(~(uint128_t)0xf);
	check(said(*word ? 1 : 0, *word ? word : NULL), "one line: %s", word);
	program_on(0);
	TRY(cu.cuStreamCreate(&s, 1));
	check(on(s, 0xf), "the program's own masks hold");
}

static void other_was_called(void)
{
	char line[1024] = "";
	FILE *log = fopen(getenv("GPUPART_LOG"), "r");
	bool good = log && fgets(line, sizeof(line), log);

	line[strcspn(line, "\n")] = 0;
	check(good && strstr(line, "confined to TPCs 4-30"), "the other tool was called too: %s",
	      line);
	if (log)
		fclose(log);
}

static void unaware(const char *how)
{
	CUstream s;

	program_on(0);
	TRY(cu.cuStreamCreate(&s, 1));
	if (!strcmp(how, "unchecked")) {
		check(said(1, "LIBSMCTRL_MASK has no effect until"), "says that it is not yet");
		check(on(s, ALL), "a program that sets no mask, mask bits not checked before");
		libsmctrl_set_next_mask(~(uint128_t)0xffff);
		check(on(s, RANGE(4, 12)) && on(s, RANGE(4, 12)), "from the first mask on it is");
	} else {
		check(on(s, RANGE(4, 12)), "a program that sets no mask at all is capped");
		check(said(0, NULL), "nothing said");
	}
	if (!strcmp(how, "unaware-beside"))
		other_was_called();
}

/*
 * The CUDA runtime has created no context yet. Later it will use the first GPU's primary context.
 */
static void before_context(const char *unused)
{
	(void)unused;
	check(!libsmctrl_set_stream_mask(NULL, ~0x4ull) &&
		      !libsmctrl_set_stream_mask((void *)2, ~0x8ull) && said(0, NULL),
	      "masks of default streams before there is a context");
	program_on(0);
	check(on(NULL, 0x4) && on((CUstream)2, 0x8), "hold when it is there");
}

static bool active(int device)
{
	unsigned int flags;
	int is = -1;

	TRY(cu.cuDevicePrimaryCtxGetState(device, &flags, &is));
	return is;
}

/* A thread without a current context makes each call a hundred times. */
static int mask_default_streams(void)
{
	int wrong = 0;

	for (int i = 0; i < 100; i++)
		wrong += libsmctrl_set_stream_mask(NULL, ~0x4ull) ||
			 libsmctrl_set_stream_mask((void *)2, ~0x8ull) ||
			 libsmctrl_validate_stream_mask(NULL, 2, 3, false);
	return wrong;
}

/* Returns the number of GPUs with checked mask bits. Each of these GPUs has one file. */
static int nr_checked(void)
{
	char path[128];
	struct dirent *entry;
	DIR *dir;
	int nr = 0;

	snprintf(path, sizeof(path), "%s/gpupart/checked", cache);
	dir = opendir(path);
	while (dir && (entry = readdir(dir)))
		nr += entry->d_name[0] != '.' && strncmp(entry->d_name, "records-", 8);
	if (dir)
		closedir(dir);
	return nr;
}

/* The library makes check launches and a context only on GPUs with a mask. */
static void one_of_two(const char *unused)
{
	CUstream s;

	(void)unused;
	program_on(1);
	TRY(cu.cuStreamCreate(&s, 1));
	check(!libsmctrl_set_stream_mask(s, ~0x2ull) && on(s, 0x2), "a stream of the second GPU");
	libsmctrl_set_next_mask(~0x80ull);
	check(on(s, 0x80) && !libsmctrl_validate_stream_mask(s, 1, 2, false),
	      "its next launch, and what is validated");
	check(nr_checked() == 1 && !active(0), "nothing is done on the first GPU");
	libsmctrl_set_global_mask(~0x3cull);
	check(nr_checked() == 2 && said(0, NULL), "a global mask is for both");
}

static void init_of_two(const char *unused)
{
	(void)unused;
	check(!libsmctrl_init() && nr_checked() == 2 && said(0, NULL),
	      "init makes all of the process's GPUs ready");
}

static void cap_of_two(const char *unused)
{
	CUstream s;

	(void)unused;
	program_on(0);
	TRY(cu.cuStreamCreate(&s, 1));
	check(!libsmctrl_set_stream_mask(s, ~0x30ull) && on(s, 0x30), "a mask on the first GPU");
	program_on(1);
	TRY(cu.cuStreamCreate(&s, 1));
	check(on(s, RANGE(4, 12)) && said(0, NULL), "the cap holds on the second, too");
}

static void contexts_of_two(const char *unused)
{
	CUcontext primary;

	(void)unused;
	TRY(cu.cuInit(0));
	check(libsmctrl_set_stream_mask(NULL, ~0x4ull) == EINVAL && said(1, "no current context"),
	      "two GPUs and no context: EINVAL, one line");
	check(!active(0) && !active(1), "a context is made on none of them");
	TRY(cu.cuDevicePrimaryCtxRetain(&primary, 1));
	check(libsmctrl_set_stream_mask(NULL, ~0x4ull) == EINVAL && said(1, "no current context"),
	      "the program uses the second GPU alone: EINVAL, one line");
	check(libsmctrl_validate_stream_mask(NULL, 2, 3, false) == -1 &&
		      said(1, "no current context"),
	      "nor is it validated");
	check(!active(0), "a context is not made on the first");
	TRY(cu.cuDevicePrimaryCtxRelease_v2(1));
	TRY(cu.cuDevicePrimaryCtxRetain(&primary, 0));
	check(!mask_default_streams() && said(0, NULL), "the program uses the first GPU: masked");
	TRY(cu.cuDevicePrimaryCtxRelease_v2(0));
	check(!active(0) && !active(1), "and its context ends when the program releases it");
}

static void contexts_of_one(const char *unused)
{
	(void)unused;
	TRY(cu.cuInit(0));
	check(libsmctrl_set_stream_mask(NULL, ~0ull) == EINVAL && said(1, "enables no TPC") &&
		      libsmctrl_validate_stream_mask(NULL, 0, 66, false) == 0 && !active(0),
	      "what sets no mask leaves no context");
	check(!mask_default_streams() && said(0, NULL) && active(0),
	      "one GPU: its context is made");
	TRY(cu.cuDevicePrimaryCtxRelease_v2(0));
	check(!active(0), "and is held once, however many calls there were");
}

static char self[2048];

/* The library reads its environment at the load. So this test starts a new program. */
static void again(const char *how)
{
	dup2(fileno(report), 1);
	execl(self, self, how, (char *)NULL);
}

static void disabled(const char *unused)
{
	CUstream s;

	(void)unused;
	libsmctrl_set_global_mask(~0x1ull);
	program_on(0);
	TRY(cu.cuStreamCreate(&s, 1));
	check(!libsmctrl_set_stream_mask(s, ~0x1ull) && on(s, ALL) && said(0, NULL),
	      "GPUPART_DISABLE=1: as if we were not there");
}

/* A tool of this test uses the driver's slot. The tool keeps a log. */
static void beside_another(const char *unused)
{
	const char *build = getenv("BUILD");
	char text[4096];

	(void)unused;
	snprintf(text, sizeof(text), "%s/lib/gpupart/libgpupart-inject.so",
		 build ? build : "build");
	setenv("CUDA_INJECTION64_PATH", text, 1);
	snprintf(text, sizeof(text), "%s/log", cache);
	setenv("GPUPART_LOG", text, 1);
	again("unaware-beside");
}

/* ------------------------------------------------------------------------- drivers */

static void refused(const char *word)
{
	CUstream s;

	libsmctrl_set_global_mask(~0x1ull);
	check(said(1, word), "one line: %s", word);
	libsmctrl_set_next_mask(~0x1ull);
	program_on(0);
	TRY(cu.cuStreamCreate(&s, 1));
	check(libsmctrl_set_stream_mask(s, ~0x1ull) > 0, "an errno for a stream");
	said(0, NULL);
	check(libsmctrl_init() > 0, "and for init");
	check(on(s, ALL), "the program runs, without any mask");
}

static void no_streams(const char *unused)
{
	CUstream s;

	(void)unused;
	program_on(0);
	TRY(cu.cuStreamCreate(&s, 1));
	libsmctrl_set_global_mask(~0x1ull);
	check(said(0, NULL), "global is taken");
	check(libsmctrl_set_stream_mask(s, ~0x2ull) == EOPNOTSUPP && said(1, "is not applied"),
	      "a stream's mask is refused: one line");
	check(on(s, 0x1), "and not applied");
}

static void no_driver(const char *unused)
{
	uint32_t nr;

	(void)unused;
	libsmctrl_set_global_mask(~0x1ull);
	check(said(1, "driver library"), "one line");
	libsmctrl_set_global_mask(~0x1ull);
	libsmctrl_set_next_mask(~0x1ull);
	check(said(0, NULL), "once");
	check(libsmctrl_set_stream_mask(NULL, ~0x1ull) == ENOENT && !libsmctrl_is_init() &&
		      libsmctrl_init() == ENOENT,
	      "errnos, and not ready");
	check(libsmctrl_get_tpc_info_cuda(&nr, 0) == ENOENT && said(1, "CUDA number 0"),
	      "no TPCs either");
}

/* ------------------------------------------------------------------------- threads */

#define THREADS 8

static pthread_barrier_t barrier;
static int escaped;

/*
 * All threads make the first call at the same time. Each thread launches as soon as its call has
 * returned.
 */
static void *racer(void *arg)
{
	uintptr_t n = (uintptr_t)arg;
	uint128_t want = n % 2 ? ONE << n : RANGE(0, 16), ran;
	CUfunction census;
	CUstream s;
	bool whole;

	if (cu.cuCtxSetCurrent(ctx) || cu.cuStreamCreate(&s, 1) || !(census = census_here())) {
		__atomic_fetch_add(&escaped, 1, __ATOMIC_RELAXED);
		return NULL;
	}
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < 20; i++) {
		if (n % 2)
			libsmctrl_set_next_mask(~want);
		else
			libsmctrl_set_global_mask(~want);
		/* Other threads keep SMs busy, so some SMs may not be seen. */
		ran = ran_within(census, s, &whole);
		if (!ran || ran & ~want)
			__atomic_fetch_add(&escaped, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void race(const char *unused)
{
	pthread_t threads[THREADS];

	(void)unused;
	program_on(0);
	pthread_barrier_init(&barrier, NULL, THREADS);
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, racer, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	check(!escaped, "%d of %d launches escaped", escaped, THREADS * 20);
	check(said(0, NULL), "nothing said");
}

/*
 * Freed memory is filled and kept. So the test detects a write of a thread that still uses freed
 * memory.
 */
#define MAX_KEPT 256

extern void __libc_free(void *block);
static __thread bool keeps;
static struct {
	unsigned char *at;
	size_t size;
} kept[MAX_KEPT];
static int nr_kept;

__attribute__((visibility("default")))
void free(void *block)
{
	if (!keeps || !block || nr_kept == MAX_KEPT) {
		__libc_free(block);
		return;
	}
	kept[nr_kept].at = block;
	kept[nr_kept].size = malloc_usable_size(block);
	memset(block, 0xa5, kept[nr_kept].size);
	nr_kept++;
}

static bool kept_is_whole(void)
{
	for (int i = 0; i < nr_kept; i++)
		for (size_t at = 0; at < kept[i].size; at++)
			if (kept[i].at[at] != 0xa5)
				return false;
	return true;
}

static pthread_key_t later;
static CUstream later_stream;
static int later_rounds, later_wrong;

/*
 * A destructor of a key that was created after the library's key. So the destructor of the
 * library's key has already run. The C library calls this destructor in every round of
 * destructors.
 */
static void use_later(void *rounds)
{
	intptr_t left = (intptr_t)rounds;

	later_wrong += libsmctrl_set_stream_mask(later_stream, ~(1ull << left)) != 0;
	later_wrong += libsmctrl_set_stream_mask((void *)0xdead0, ~1ull) != EINVAL;
	later_rounds++;
	if (left > 1)
		pthread_setspecific(later, (void *)(left - 1));
}

static void *ender(void *unused)
{
	TRY(cu.cuCtxSetCurrent(ctx));
	libsmctrl_set_global_mask(~(uint128_t)0xf);
	pthread_setspecific(later, (void *)(intptr_t)PTHREAD_DESTRUCTOR_ITERATIONS);
	keeps = true;
	return unused;
}

static void thread_ends(const char *unused)
{
	pthread_t thread;

	(void)unused;
	program_on(0);
	TRY(cu.cuStreamCreate(&later_stream, 1));
	libsmctrl_set_global_mask(~(uint128_t)0xff);
	pthread_key_create(&later, use_later);
	pthread_create(&thread, NULL, ender, NULL);
	pthread_join(thread, NULL);
	check(later_rounds == PTHREAD_DESTRUCTOR_ITERATIONS && !later_wrong,
	      "%d calls after a thread's context was closed, %d wrong", later_rounds, later_wrong);
	check(nr_kept && kept_is_whole(), "none writes into what was freed, %d blocks", nr_kept);
	check(said(PTHREAD_DESTRUCTOR_ITERATIONS, "0xdead0 is not a stream"), "each is reported");
	check(on(later_stream, 0x2), "the last mask holds");
}

static int nr_destroyed;

static void count_destroyed(void *value)
{
	nr_destroyed += value != &nr_destroyed;
}

static void *without_key(void *key)
{
	CUstream s;

	pthread_setspecific(*(pthread_key_t *)key, &nr_destroyed);
	TRY(cu.cuCtxSetCurrent(ctx));
	TRY(cu.cuStreamCreate(&s, 1));
	libsmctrl_set_global_mask(~(uint128_t)0xff);
	check(on(s, 0xff), "global");
	check(!libsmctrl_set_stream_mask(s, ~0xf0ull) && on(s, 0xf0), "stream");
	/* To free the memory of this mask at the end of the thread, the library needs a key. */
	libsmctrl_set_next_mask(~0xf00ull);
	check(said(1, "all its thread-specific keys") && on(s, 0xf0), "next: refused, and said");
	libsmctrl_set_global_mask(~(uint128_t)0);
	check(said(1, "enables no TPC"), "an error is reported");
	check(!libsmctrl_init(), "init");
	check(pthread_getspecific(*(pthread_key_t *)key) == &nr_destroyed,
	      "the program's own key has the program's value");
	return NULL;
}

static void no_keys(const char *unused)
{
	static pthread_key_t keys[PTHREAD_KEYS_MAX];
	pthread_t thread;
	int nr = 0;

	(void)unused;
	program_on(0);
	while (nr < PTHREAD_KEYS_MAX && !pthread_key_create(&keys[nr], count_destroyed))
		nr++;
	check(nr && pthread_key_create(&keys[0], NULL), "%d keys, and no more", nr);
	pthread_create(&thread, NULL, without_key, &keys[0]);
	pthread_join(thread, NULL);
	check(!nr_destroyed, "and its destructor gets no other");
}

/* ------------------------------------------------------------------------- scenarios */

static void (*body_of)(const char *);

static void body(const char *arg)
{
	listen_to_stderr();
	body_of(arg);
}

static void with(const char *name, void (*run_body)(const char *), const char *arg,
		 const char *sim, const char *e1, const char *e2)
{
	static char sim_env[8192];
	const char *env[] = { sim_env, cache_env, e1, e2, NULL };

	snprintf(sim_env, sizeof(sim_env), "GPUPART_SIM=%s", sim);
	body_of = run_body;
	scenario(name, run_body == again || run_body == beside_another ? run_body : body, arg, env,
		 NULL);
}

static void forget(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s/*", cache);
	if (system(command))
		tap_ok(0, "%s", command);
}

/* A fake libcuda.so.1, first in the loader's path. */
static void without_driver(void)
{
	const char *build = getenv("BUILD");
	char path[128], library_path[2200];
	FILE *none;

	snprintf(path, sizeof(path), "%s/libcuda.so.1", cache);
	snprintf(library_path, sizeof(library_path), "LD_LIBRARY_PATH=%s:%s/lib", cache,
		 build ? build : "build");
	none = fopen(path, "w");
	if (!none) {
		tap_ok(0, "%s", path);
		return;
	}
	fputs("not a library\n", none);
	fclose(none);
	with("no driver", again, "no-driver", BOARD_B, library_path, NULL);
}

static void parent(void)
{
	const char *build = getenv("BUILD");
	char small[4096], sims[8300];

	snprintf(small, sizeof(small), "%s/tests/generated/03.capture", build ? build : "build");
	with("b", scopes, "", BOARD_B, NULL, NULL);
	with("e", scopes, "", BOARD_E, NULL, NULL);
	with("b, from the cache", scopes, "", BOARD_B, NULL, NULL);
	with("nothing left", left_nothing, "", BOARD_E, NULL, NULL);
	with("helpers", helpers, "", BOARD_B, NULL, NULL);
	with("information, b", information, BOARD_B, BOARD_B, NULL, NULL);
	with("information, e", information, BOARD_E, BOARD_E, NULL, NULL);
	with("information, small", information_narrow, small, small, NULL, NULL);
	snprintf(sims, sizeof(sims), "%s:%s", BOARD_B, BOARD_E);
	with("two GPUs, from the cache", two_gpus, "", sims, NULL, NULL);
	forget();
	with("two GPUs", two_gpus, "", sims, NULL, NULL);
	forget();
	with("one of two GPUs", one_of_two, "", sims, NULL, NULL);
	forget();
	with("init of two GPUs", init_of_two, "", sims, NULL, NULL);
	forget();
	with("cap of two GPUs", cap_of_two, "", sims, "LIBSMCTRL_MASK=~0xff0", NULL);
	snprintf(sims, sizeof(sims), "%s:%s", BOARD_E, small);
	with("a small GPU", small_gpu, "", sims, NULL, NULL);
	with("PCI order", pci_order, BOARD_E, sims, "CUDA_VISIBLE_DEVICES=1,0", NULL);

	with("cap", cap, "", BOARD_B, "LIBSMCTRL_MASK=~0xff0", NULL);
	with("cap, not inverted", cap, "", BOARD_B,
	     "LIBSMCTRL_MASK=fffffffffffffffffffffffffffff00F", NULL);
	with("cap and GPUPART_SET", cap, "", BOARD_B, "LIBSMCTRL_MASK=~0XfFF",
	     "GPUPART_SET=4-30");
	with("cap against gpupart", cap_escape, "", BOARD_B, "LIBSMCTRL_MASK=~0xff0", NULL);
	with("cap against gpupart, with GPUPART_SET", cap_escape, "", BOARD_B,
	     "LIBSMCTRL_MASK=~0xfff", "GPUPART_SET=4-30");
	with("cap none", cap_ignored, "", BOARD_B, "LIBSMCTRL_MASK=", NULL);
	with("cap of no word", cap_ignored, "is not a mask", BOARD_B, "LIBSMCTRL_MASK=0xfg", NULL);
	with("cap of no digit", cap_ignored, "is not a mask", BOARD_B, "LIBSMCTRL_MASK=0x", NULL);
	with("cap of no digit, inverted", cap_ignored, "is not a mask", BOARD_B,
	     "LIBSMCTRL_MASK=~", NULL);
	with("cap too long", cap_ignored, "is not a mask", BOARD_B,
	     "LIBSMCTRL_MASK=0x1ffffffffffffffffffffffffffffffff", NULL);
	with("cap leaves nothing", cap_ignored, "enables no TPC", BOARD_B, "LIBSMCTRL_MASK=~0",
	     NULL);
	with("cap against GPUPART_SET", cap_ignored, "enables no TPC", BOARD_B,
	     "LIBSMCTRL_MASK=~0xff0", "GPUPART_SET=0-3");
	with("unaware", again, "unaware", BOARD_B, "LIBSMCTRL_MASK=~0xff0", NULL);
	with("unaware, and GPUPART_SET", again, "unaware", BOARD_B, "LIBSMCTRL_MASK=~0xfff",
	     "GPUPART_SET=4-30");
	with("unaware, beside another tool", beside_another, "", BOARD_B, "LIBSMCTRL_MASK=~0xfff",
	     "GPUPART_SET=4-30");
	with("before a context", before_context, "", BOARD_B, NULL, NULL);
	with("contexts, one GPU", contexts_of_one, "", BOARD_B, NULL, NULL);
	snprintf(sims, sizeof(sims), "%s:%s", BOARD_B, BOARD_E);
	with("contexts, two GPUs", contexts_of_two, "", sims, NULL, NULL);
	with("disabled", disabled, "", BOARD_B, "GPUPART_DISABLE=1", NULL);
	forget();
	with("unaware, unchecked", again, "unchecked", BOARD_B, "LIBSMCTRL_MASK=~0xff0", NULL);

	with("a thread ends", thread_ends, "", BOARD_B, NULL, NULL);
	with("no keys", no_keys, "", BOARD_B, NULL, NULL);
	for (int i = 0; i < 5; i++) {
		forget();
		with("race", race, "", BOARD_B, NULL, NULL);
	}
	forget();
	with("no table", refused, "no launch callback", BOARD_B, "GPUPART_SIM_FAULTS=no-table",
	     NULL);
	with("moved bit", refused, "TPC 17 ", BOARD_B, "GPUPART_SIM_FAULTS=move-bit=17:120", NULL);
	with("no stream events", no_streams, "", BOARD_B, "GPUPART_SIM_FAULTS=no-stream-events",
	     NULL);
	with("no stream pointer", no_streams, "", BOARD_B, "GPUPART_SIM_FAULTS=no-stream-pointer",
	     NULL);
	without_driver();
	forget();
	rmdir(cache);
}

int main(int argc, char **argv)
{
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (len < 0)
		return 1;
	if (argc == 2) {
		report = stdout;
		listen_to_stderr();
		if (strcmp(argv[1], "no-driver"))
			load();
		(strcmp(argv[1], "no-driver") ? unaware : no_driver)(argv[1]);
		return 0;
	}
	unsetenv("CUDA_VISIBLE_DEVICES");
	unsetenv("CUDA_INJECTION64_PATH");
	unsetenv("LIBSMCTRL_MASK");
	unsetenv("GPUPART_SET");
	if (!mkdtemp(cache))
		return 1;
	snprintf(cache_env, sizeof(cache_env), "XDG_CACHE_HOME=%s", cache);
	parent();
	return tap_done();
}
