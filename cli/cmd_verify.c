// SPDX-License-Identifier: MIT
/* gpupart verify: runs the library's checks on a GPU and prints a row for each check. */
#include "cli/cmd.h"
#include "cli/target/args.h"
#include "cli/util/out.h"
#include "cli/util/process.h"
#include "lib/private.h"

const char verify_help[] =
"Usage: gpupart verify [--quick] [--learn] [-i CAPTURE] [--gpu GPU] [--json] [-o FILE]\n"
"Proves on the GPU that sets of every TPC, GPC, uGPU and scope confine launches. It\n"
"makes launches whose blocks record the SM on which they run. Prints one row for each\n"
"check; takes at most 10 s on an H200.\n"
"\n"
"      --quick         only the checks that take less than a second\n"
"      --learn         if the order of the mask bits is in no table, find it by\n"
"                      launches, prove it, and store it for this user\n"
"  -i, --input CAPTURE use the simulated GPU of CAPTURE (sample:h200 or a file)\n"
"      --gpu GPU       an index in PCI order, a PCI address or a UUID\n"
"      --json          print JSON, schema gpupart/1\n"
"  -o, --output FILE   write FILE instead of stdout; FILE.json: as with --json\n"
"\n"
"Exit status: 0 every check passed, 1 a check failed, 2 verify cannot run here.\n"
"\n"
"Examples:\n"
"  gpupart verify\n"
"  gpupart verify --quick --json | jq .nr_failed\n"
"  gpupart verify -i sample:h200\n";

struct tally {
	struct out out;
	json_t *rows;		/* for JSON; NULL: rows are printed at once */
	unsigned int nr[3];	/* number of rows, indexed by result */
};

static const char *const words[] = {
	[GPUPART_VERIFY_PASS] = "PASS", [GPUPART_VERIFY_FAIL] = "FAIL",
	[GPUPART_VERIFY_SKIP] = "SKIP",
};

static void take_row(const struct gpupart_verify_row *row, void *user)
{
	struct tally *tally = user;
	const char *detail = row->detail ? row->detail : "";

	tally->nr[row->result]++;
	if (!tally->rows) {
		out_row(&tally->out, words[row->result], row->result == GPUPART_VERIFY_FAIL,
			row->name, row->what, detail);
		return;
	}
	json_array_append_new(tally->rows, json_pack("{s:s, s:s, s:s, s:o}",
		"name", row->name, "what", row->what,
		"result", row->result == GPUPART_VERIFY_PASS ? "pass" :
			  row->result == GPUPART_VERIFY_FAIL ? "fail" : "skip",
		"detail", out_json_text(detail)));
}

static void print_check(struct out *out, const struct gpupart_check *check,
			unsigned int nr_learnt)
{
	if (nr_learnt)
		fprintf(out->file, "mask bits: order found with %u launches\n",
			nr_learnt);
	fprintf(out->file, "mask bits: layout %s, %u TPCs proven, ", check->layout,
		check->nr_proven);
	if (check->from_cache)
		fputs("checked earlier\n", out->file);
	else
		fprintf(out->file, "checked now with %u launches\n", check->nr_launches);
	if (*check->streams)
		fprintf(out->file, "stream sets: not possible here: %s\n", check->streams);
	if (*check->graphs)
		fprintf(out->file, "graphs: keep the set of their first launch here: %s\n",
			check->graphs);
	fputc('\n', out->file);
}

static json_t *json_check(const struct gpupart_check *check, unsigned int nr_learnt)
{
	return json_pack("{s:s, s:b, s:i, s:i, s:i, s:o, s:o, s:s}", "layout", check->layout,
			 "from_cache", check->from_cache, "nr_proven", check->nr_proven,
			 "nr_launches", check->nr_launches, "nr_learn_launches", nr_learnt,
			 "streams_refused", out_json_text(check->streams),
			 "graphs_kept", out_json_text(check->graphs), "key", check->key);
}

static int verify(const struct args *args, bool quick, unsigned int nr_learnt,
		  struct gpupart_gpu *gpu)
{
	const struct gpupart_topology *topo = gpupart_gpu_topology(gpu);
	struct gpupart_counters counters;
	struct gpupart_check check;
	struct tally tally = { 0 };
	json_t *root = NULL;
	uint64_t start;
	double seconds;
	int status, failed;

	status = out_open(&tally.out, args);
	if (status)
		return status;
	gpupart_gpu_check(gpu, &check);
	if (args->json) {
		root = out_json_new("verify", gpupart_topology_info(topo)->simulated);
		tally.rows = json_array();
		json_object_update_new(root, json_pack("{s:o, s:o, s:o, s:o}",
			"gpu", out_json_gpu(gpupart_topology_info(topo)),
			"compute_class", out_json_count(gpupart_topology_compute_class(topo)),
			"check", json_check(&check, nr_learnt), "rows", tally.rows));
	} else {
		out_gpu_text(&tally.out, topo);
		print_check(&tally.out, &check, nr_learnt);
	}
	start = process_now_ns();
	failed = gpupart_verify(cmd_gp, gpu, quick ? GPUPART_VERIFY_QUICK : 0, take_row, &tally);
	seconds = (process_now_ns() - start) / 1e9;
	gpupart_counters_get(&counters);
	if (root) {
		json_object_update_new(root, json_pack("{s:i, s:i, s:i, s:s?, s:f, s:o}",
			"nr_passed", tally.nr[GPUPART_VERIFY_PASS],
			"nr_failed", tally.nr[GPUPART_VERIFY_FAIL],
			"nr_skipped", tally.nr[GPUPART_VERIFY_SKIP],
			"error", failed < 0 ? gpupart_error(cmd_gp) : NULL, "seconds", seconds,
			"counters", out_json_counters(&counters)));
		out_json_write(&tally.out, root);
	} else {
		fprintf(tally.out.file, "\n%u passed, %u failed, %u skipped in %.1f s\n",
			tally.nr[GPUPART_VERIFY_PASS], tally.nr[GPUPART_VERIFY_FAIL],
			tally.nr[GPUPART_VERIFY_SKIP], seconds);
		out_counters_text(&tally.out, &counters);
	}
	status = out_close(&tally.out);
	if (failed < 0)
		return error_of(failed, "%s", gpupart_error(cmd_gp));
	return failed || tally.nr[GPUPART_VERIFY_FAIL] ? EXIT_FAILED : status;
}

int cmd_verify(int argc, char **argv)
{
	bool quick = false, learn = false;
	const struct args_option own[] = {
		{ .name = "quick", .given = &quick }, { .name = "learn", .given = &learn }, { 0 },
	};
	unsigned int nr_learnt = 0;
	struct args args = { 0 };
	struct gpupart_gpu *gpu;
	const char *selector;
	int status, err;

	status = args_parse(&args, ARGS_SIM | ARGS_GPU | ARGS_JSON | ARGS_OUTPUT, own, verify_help,
			    argc, argv) ?:
		 args_simulate(&args);
	if (status)
		return status;
	status = args_gpu(&args, &selector);
	if (!status) {
		if (learn)
			gpupart_learn(&nr_learnt);
		err = gpupart_attach(cmd_gp, selector, NULL, &gpu);
		status = err ? args_fail_gpu(&args, err, gpupart_error(cmd_gp)) :
			       verify(&args, quick, nr_learnt, gpu);
	}
	return status;
}
