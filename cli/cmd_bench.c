// SPDX-License-Identifier: MIT
/* gpupart bench: runs each part in a separate process, and prints and writes the reports. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include "cli/bench/bench.h"
#include "cli/cmd.h"
#include "cli/target/args.h"
#include "cli/util/atomic_file.h"
#include "cli/util/child.h"
#include "cli/util/number.h"
#include "cli/util/out.h"

const char bench_help[] =
"Usage: gpupart bench [NAME ...] [--quick] [-i CAPTURE] [--gpu GPU] [--json] [-o DIR]\n"
"       gpupart bench peers --a PROGRAM --b PROGRAM [--both PROGRAM] [--goal GOAL]\n"
"                     [--seconds S] [--rounds N] [--only WAYS] [OPTIONS]\n"
"Measures isolation, overhead and the cost of changing sets on this GPU. Each part\n"
"prints a table, a summary, and the figures that it must reach. Without NAME all parts\n"
"except peers run, in a few minutes:\n"
"\n"
"  isolation   victims next to neighbours: no partition, interleaved, aligned\n"
"  scaling     run time against the number of TPCs, packed and spread\n"
"  overlap     two kernels on overlapping sets\n"
"  slots       how many waiting kernels delay an independent partition\n"
"  dynamic     38 launches in 17 sets on two streams\n"
"  protect     an inference loop next to a misbehaving program\n"
"  software    the same share of the GPU, by looping blocks instead of by a mask\n"
"  overhead    cost of launches, of sets, and of changes from outside; compared with\n"
"              green contexts and MPS\n"
"  criteria    whether launches stay inside their sets, and the cost of isolation\n"
"  peers       two programs with each way to share a GPU; runs only if it is named\n"
"\n"
"      --quick         fewer launches of each kind\n"
"  -i, --input CAPTURE run on the simulated GPU of CAPTURE: every step runs, but no\n"
"                      figure is judged\n"
"      --gpu GPU       an index in PCI order, a PCI address or a UUID\n"
"      --json          print JSON, schema gpupart/1\n"
"  -o, --output DIR    also write Markdown, JSON and SVG files there; README.md lists\n"
"                      all parts in DIR, also those of earlier runs\n"
"\n"
"Options of peers. The shell runs each PROGRAM. For each finished unit of work it must\n"
"print a line with the milliseconds that the unit took (see share/examples/peers.py):\n"
"      --a PROGRAM     the program whose latency is judged\n"
"      --b PROGRAM     the other program\n"
"      --both PROGRAM  runs both in one process, for priorities and green contexts;\n"
"                      its arguments are 'priority' or 'green' and two files, for the\n"
"                      lines of A and of B\n"
"      --goal GOAL     the goal of A for qos, as in its files: 'latency: 8ms'\n"
"      --seconds S     seconds for each way in a round (5)\n"
"      --rounds N      number of rounds; each measures all ways (3)\n"
"      --only WAYS     some of alone,slices,mps,mps-percent,priority,green,packed,\n"
"                      gpcs,balanced,spread,overlap,qos,lending; overlap: one\n"
"                      program on all TPCs, the other on all but a few\n"
"\n"
"The GPU should be idle: the work of other programs on it changes the figures.\n"
"\n"
"Exit status: 0 all judged figures were reached, 1 a figure was not reached or a part\n"
"failed, 2 bench cannot run here.\n"
"\n"
"Examples:\n"
"  gpupart bench -o results\n"
"  gpupart bench isolation protect --quick\n"
"  gpupart bench -i sample:h200 --quick -o simulated\n"
"  gpupart bench peers --a 'python3 peers.py decode' --b 'python3 peers.py train'\n";

#define REPORT_BYTES	(4 << 20)
#define PART_SECONDS	240
#define PROBE_SECONDS	60
#define PEERS_SECONDS	86400	/* each way has its own time limit */

const struct bench_part bench_parts[] = {
	{ "isolation", "a victim next to a neighbour", bench_isolation, false, false },
	{ "scaling", "run time against TPCs", bench_scaling, false, false },
	{ "overlap", "overlapping sets", bench_overlap, false, false },
	{ "slots", "slots of the work distributor", bench_slots, false, false },
	{ "dynamic", "a new set at each launch", bench_dynamic, false, false },
	{ "protect", "next to a faulty program", bench_protect, false, false },
	{ "software", "a share in software", bench_software, false, false },
	{ "overhead", "cost on the host", bench_overhead, true, false },
	{ "criteria", "when sharing is acceptable", bench_criteria, false, false },
	{ "peers", "ways to share a GPU", bench_peers, true, true },
};

const unsigned int bench_nr_parts = sizeof(bench_parts) / sizeof(bench_parts[0]);

/* The result of a child process that examines the GPU before the measurements. */
struct probe_answer {
	int err;
	char why[512];
	char limit[GPUPART_TPCSET_STRLEN];	/* "": no limit */
	struct gpupart_gpu_info info;
};

struct session {
	const struct args *args;
	const char *dir;		/* directory for files, or NULL */
	struct bench bench;		/* each part gets a copy of this struct */
	struct gpupart_gpu_info info;
	json_t *reports;
	struct out out;
	unsigned int nr_failed, nr_skipped, nr_not_held;
};

static void be_probe(void *arg, void *result)
{
	struct probe_answer *answer = result;
	struct gpupart_tpcset limit;
	struct bench b = *(struct bench *)arg;

	answer->err = gpupart_attach(cmd_gp, b.selector, NULL, &b.gpu);
	if (answer->err) {
		snprintf(answer->why, sizeof(answer->why), "%s", gpupart_error(cmd_gp));
		return;
	}
	answer->info = *gpupart_topology_info(gpupart_gpu_topology(b.gpu));
	if (gpupart_limit_get(b.gpu, &limit))
		gpupart_tpcset_format_list(&limit, answer->limit, sizeof(answer->limit));
}

struct part_call {
	struct bench bench;
	const struct bench_part *part;
};

/*
 * Runs in the child. Writes the part's report as JSON text. If the report is too long, writes "".
 */
static void be_part(void *arg, void *result)
{
	struct part_call *call = arg;
	struct bench *b = &call->bench;
	json_t *report = report_new(call->part->name, call->part->title, b->simulated);
	int err = call->part->attaches_itself ? 0 : bench_attach(b);
	size_t len;

	if (!err)
		err = call->part->run(b, report);
	if (err) {
		json_object_set_new(report, "status",
				    json_string(err == -EOPNOTSUPP ? "skipped" : "failed"));
		json_object_set_new(report, "why", json_string(out_clean(b->why)));
	}
	len = json_dumpb(report, result, REPORT_BYTES, JSON_COMPACT);
	if (len >= REPORT_BYTES)
		*(char *)result = 0;
}

static json_t *failed_report(const struct bench_part *part, const char *why)
{
	json_t *report = report_new(part->name, part->title, false);

	json_object_set_new(report, "status", json_string("failed"));
	json_object_set_new(report, "why", json_string(why));
	return report;
}

static json_t *measure(const struct session *s, const struct bench_part *part)
{
	struct part_call call = { s->bench, part };
	char *text = alloc_zeroed(1, REPORT_BYTES), why[256];
	json_t *report;

	if (child_call(be_part, &call, text, REPORT_BYTES,
		       part->takes_programs ? PEERS_SECONDS : PART_SECONDS, why, sizeof(why)))
		report = failed_report(part, why);
	else
		report = json_loads(text, 0, NULL);
	free(text);
	return report ? report : failed_report(part, "the report of the part could not be read");
}

/* ---------------------------------------------------------------------- files */

/*
 * Returns the temporary path of a new file. When the new file is complete, it replaces the old
 * file.
 */
static void new_path(const struct session *s, const char *name, char *path, size_t len)
{
	snprintf(path, len, "%s/.%s.new", s->dir, name);
}

static FILE *file_in(const struct session *s, const char *name, int *status)
{
	char path[4096];
	FILE *file;

	new_path(s, name, path, sizeof(path));
	unlink(path);	/* a run that was killed may have left this file */
	file = fopen(path, "wxe");
	if (!file)
		*status = failure("-o %s/%s: %s", s->dir, name, strerror(errno));
	return file;
}

static void file_done(const struct session *s, FILE *file, const char *name, int *status)
{
	char path[4096], final[4096];
	bool bad = ferror(file);

	new_path(s, name, path, sizeof(path));
	snprintf(final, sizeof(final), "%s/%s", s->dir, name);
	if (fclose(file) || bad)
		*status = failure("-o %s: writing failed", final);
	else if (rename(path, final))
		*status = failure("-o %s: %s", final, strerror(errno));
	else
		return;
	unlink(path);
}

/* If the directory is missing, creates the directory. Checks that the directory is writable. */
static int check_dir(const struct session *s)
{
	int status = 0;
	char path[4096];
	FILE *file;

	if (mkdir(s->dir, 0777) && errno != EEXIST)
		return failure("-o %s: %s", s->dir, strerror(errno));
	if (atomic_file_check_link(s->dir) < 0)
		return failure("-o %s: %s", s->dir, atomic_file_strerror(-ELOOP));
	file = file_in(s, "README.md", &status);
	if (!file)
		return status;
	fclose(file);
	new_path(s, "README.md", path, sizeof(path));
	unlink(path);
	return 0;
}

static void gpu_words(const struct session *s, char *text, size_t len)
{
	snprintf(text, len, "%s%s%s, driver %s%s", s->info.name, *s->info.uuid ? ", " : "",
		 s->info.uuid, s->info.driver, s->info.simulated ? " (simulated)" : "");
}

static json_t *json_head(const struct session *s)
{
	json_t *root = out_json_new("bench", s->info.simulated);

	json_object_set_new(root, "gpu", out_json_gpu(&s->info));
	json_object_set_new(root, "quick", json_boolean(s->bench.quick));
	return root;
}

static void dump_json(const struct session *s, const char *name, json_t *root, int *status)
{
	FILE *file = file_in(s, name, status);

	if (file) {
		json_dumpf(root, file, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
		fputc('\n', file);
		file_done(s, file, name, status);
	}
	json_decref(root);
}

static int write_part(const struct session *s, json_t *report)
{
	char name[64], gpu[256];
	json_t *root = json_head(s), *chart;
	int status = 0;
	FILE *file;
	size_t i;

	gpu_words(s, gpu, sizeof(gpu));
	json_object_update(root, report);
	snprintf(name, sizeof(name), "%s.json", report_at(report, "name"));
	dump_json(s, name, root, &status);
	snprintf(name, sizeof(name), "%s.md", report_at(report, "name"));
	file = file_in(s, name, &status);
	if (file) {
		report_markdown(file, report, s->info.simulated, gpu);
		file_done(s, file, name, &status);
	}
	json_array_foreach(json_object_get(report, "charts"), i, chart) {
		file = file_in(s, report_at(chart, "file"), &status);
		if (!file)
			continue;
		report_svg(file, chart, s->info.simulated);
		file_done(s, file, report_at(chart, "file"), &status);
	}
	return status;
}

/*
 * Returns the report of @part from this run. If this run has no such report, returns the report
 * from the file of an earlier run. If there is no such file, returns NULL.
 */
static json_t *report_of(const struct session *s, const struct bench_part *part, bool *earlier)
{
	json_t *report;
	char path[4096];
	size_t i;

	*earlier = false;
	json_array_foreach(s->reports, i, report)
		if (!strcmp(report_at(report, "name"), part->name))
			return json_incref(report);
	*earlier = true;
	snprintf(path, sizeof(path), "%s/%s.json", s->dir, part->name);
	report = json_load_file(path, 0, NULL);
	if (!strcmp(report_at(report, "command"), "bench") &&
	    !strcmp(report_at(report, "name"), part->name))
		return report;
	json_decref(report);
	return NULL;
}

/* Writes the name of the GPU that the earlier run used. This run may use a different GPU. */
static void index_earlier(FILE *file, const json_t *report)
{
	const json_t *gpu = json_object_get(report, "gpu");
	bool simulated = json_is_true(json_object_get(report, "simulated"));

	fprintf(file, "From an earlier run: %s%s%s, driver %s%s\n\n",
		report_at(gpu, "name"), *report_at(gpu, "uuid") ? ", " : "",
		report_at(gpu, "uuid"), report_at(gpu, "driver"), simulated ?
		" (simulated): times mean nothing, and ratios are not judged" : "");
}

static void index_part(FILE *file, json_t *report, bool earlier)
{
	const char *name = report_at(report, "name");
	unsigned int nr_ok = 0, nr = 0;
	json_t *check, *words;
	size_t i;

	json_array_foreach(json_object_get(report, "checks"), i, check) {
		nr += strcmp(report_at(check, "result"), "not judged") != 0;
		nr_ok += !strcmp(report_at(check, "result"), "ok");
	}
	fprintf(file, "\n## [%s](%s.md): %s\n\n", name, name, report_at(report, "title"));
	if (earlier)
		index_earlier(file, report);
	if (strcmp(report_at(report, "status"), "done"))
		fprintf(file, "**%s**: %s\n", report_at(report, "status"),
			report_at(report, "why"));
	json_array_foreach(json_object_get(report, "meaning"), i, words)
		if (json_is_string(words))
			fprintf(file, "%s\n", json_string_value(words));
	if (nr)
		fprintf(file, "\nHeld: %u of %u.\n", nr_ok, nr);
	json_array_foreach(json_object_get(report, "charts"), i, words)
		fprintf(file, "\n![%s](%s)\n", report_at(words, "title"), report_at(words, "file"));
}

/*
 * Writes an index of all reports in the directory. The caller calls this function after each part.
 */
static int write_index(const struct session *s)
{
	int status = 0;
	FILE *file = file_in(s, "README.md", &status);
	time_t now = time(NULL);
	char gpu[256], day[32];
	struct tm tm;

	if (!file)
		return status;
	gpu_words(s, gpu, sizeof(gpu));
	strftime(day, sizeof(day), "%Y-%m-%d", gmtime_r(&now, &tm));
	fprintf(file, "# gpupart bench%s\n\n%s; gpupart %s; %s\n",
		s->info.simulated ? " (simulated)" : "", gpu, gpupart_version(), day);
	if (s->info.simulated)
		fputs("\n**simulated**: times mean nothing, and ratios are not judged.\n", file);
	for (unsigned int i = 0; i < bench_nr_parts; i++) {
		bool earlier;
		json_t *report = report_of(s, &bench_parts[i], &earlier);

		if (report)
			index_part(file, report, earlier);
		json_decref(report);
	}
	file_done(s, file, "README.md", &status);
	return status;
}

/* Writes all reports of this run to one file. */
static int write_whole(const struct session *s)
{
	json_t *root = json_head(s);
	int status = 0;

	json_object_set(root, "parts", s->reports);
	dump_json(s, "bench.json", root, &status);
	return status;
}

/* -------------------------------------------------------------------- the run */

static const struct bench_part *find_part(const char *name)
{
	for (unsigned int i = 0; i < bench_nr_parts; i++)
		if (!strcmp(bench_parts[i].name, name))
			return &bench_parts[i];
	return NULL;
}

static int check_names(const struct args *args)
{
	char all[256] = "";

	for (unsigned int i = 0; i < bench_nr_parts; i++)
		out_append(all, sizeof(all), "%s%s", i ? ", " : "", bench_parts[i].name);
	for (char **name = args->program; *name; name++)
		if (!find_part(*name))
			return usage_error("'%s' is not a part: the parts are %s", *name, all);
	return 0;
}

static bool is_wanted(const struct args *args, const struct bench_part *part)
{
	for (char **name = args->program; *name; name++)
		if (!strcmp(*name, part->name))
			return true;
	return !*args->program && !part->takes_programs;
}

static int run_part(struct session *s, const struct bench_part *part)
{
	double start = bench_now_us();
	int written, indexed;
	const char *status;
	json_t *report;

	if (isatty(STDERR_FILENO))
		remark("%s ...", part->name);
	report = measure(s, part);
	json_object_set_new(report, "seconds", json_real((bench_now_us() - start) / 1e6));
	status = report_at(report, "status");
	s->nr_failed += !strcmp(status, "failed");
	s->nr_skipped += !strcmp(status, "skipped");
	s->nr_not_held += report_nr_failed(report);
	json_array_append_new(s->reports, report);
	if (!s->args->json)
		report_text(&s->out, report);
	if (!s->dir)
		return 0;
	written = write_part(s, report);
	indexed = write_index(s);
	return written ?: indexed;
}

static int finish(struct session *s, int written, double seconds)
{
	unsigned int nr = json_array_size(s->reports);
	int status = s->dir ? write_whole(s) : 0;
	json_t *root;

	if (s->args->json) {
		root = json_head(s);
		json_object_update_new(root, json_pack("{s:O, s:i, s:i, s:i, s:f}",
			"parts", s->reports, "nr_failed", s->nr_failed, "nr_skipped", s->nr_skipped,
			"nr_not_held", s->nr_not_held, "seconds", seconds));
		out_json_write(&s->out, root);
	} else {
		fprintf(s->out.file, "\n%u part%s%s: %u failed, %u skipped; %u figure%s did not "
			"hold; %.0f s\n", nr, nr == 1 ? "" : "s",
			s->info.simulated ? " (simulated)" : "", s->nr_failed, s->nr_skipped,
			s->nr_not_held, s->nr_not_held == 1 ? "" : "s", seconds);
	}
	status = written ?: status;
	written = out_close(&s->out);
	if (s->nr_failed || s->nr_not_held)
		return EXIT_FAILED;
	if (!status && nr == s->nr_skipped)
		return usage_error("nothing could be measured here");
	return status ?: written;
}

static int run_all(struct session *s)
{
	double start = bench_now_us();
	char gpu[256];
	int status = out_open(&s->out, NULL), written = 0;

	if (status)
		return status;
	gpu_words(s, gpu, sizeof(gpu));
	if (!s->args->json)
		fprintf(s->out.file, "%s%s\n", gpu, s->info.simulated ?
			": times mean nothing, and ratios are not judged" : "");
	s->reports = json_array();
	for (unsigned int i = 0; i < bench_nr_parts; i++)
		if (is_wanted(s->args, &bench_parts[i])) {
			status = run_part(s, &bench_parts[i]);
			written = written ?: status;
		}
	status = finish(s, written, (bench_now_us() - start) / 1e6);
	json_decref(s->reports);
	return status;
}

/* Checks the GPU in a child. Returns 0 or an error. */
static int probe(struct session *s)
{
	struct probe_answer answer = { 0 };
	char why[256];
	int err = child_call(be_probe, &s->bench, &answer, sizeof(answer), PROBE_SECONDS, why,
			     sizeof(why));

	if (err)
		return failure("%s", why);
	if (answer.err)
		return args_fail_gpu(s->args, answer.err, answer.why);
	if (*answer.limit)
		return usage_error(
			"the limit %s (GPUPART_SET) applies to this process: start gpupart outside the run",
			answer.limit);
	s->info = answer.info;
	s->bench.simulated = s->info.simulated;
	snprintf(s->bench.pci, sizeof(s->bench.pci), "%s", s->info.pci);
	return 0;
}

/* arguments of the part "peers", or NULL */
struct peers_words {
	const char *a, *b, *seconds, *rounds;
	struct peers_options options;
};

static int read_count(const char *option, const char *text, unsigned int fallback,
		      unsigned int *count)
{
	unsigned long value = fallback;

	if (text && !number_whole(text, 3600, &value))
		return usage_error("%s %s: must be a number from 1 to 3600", option, text);
	*count = value;
	return 0;
}

static int check_peers(const struct args *args, struct peers_words *words, struct bench *b)
{
	struct peers_options *options = &words->options;
	bool named = false, given = words->a || words->b || words->seconds || words->rounds ||
				    options->both || options->goal || options->only;

	for (char **name = args->program; *name; name++)
		named |= !strcmp(*name, "peers");
	if (given && !named)
		return usage_error(
			"--a, --b, --both, --goal, --seconds, --rounds and --only are options of the part peers: 'gpupart bench peers ...'");
	if (named && (!words->a || !*words->a || !words->b || !*words->b))
		return usage_error("peers needs --a PROGRAM and --b PROGRAM");
	options->programs[0] = words->a;
	options->programs[1] = words->b;
	b->peers = options;
	return peers_check(options) ?:
	       read_count("--seconds", words->seconds, 5, &options->seconds) ?:
	       read_count("--rounds", words->rounds, 3, &options->rounds);
}

int cmd_bench(int argc, char **argv)
{
	struct peers_words words = { 0 };
	bool quick = false;
	const struct args_option own[] = {
		{ .name = "quick", .given = &quick },
		{ .name = "a", .value = &words.a },
		{ .name = "b", .value = &words.b },
		{ .name = "both", .value = &words.options.both },
		{ .name = "goal", .value = &words.options.goal },
		{ .name = "only", .value = &words.options.only },
		{ .name = "rounds", .value = &words.rounds },
		{ .name = "seconds", .value = &words.seconds },
		{ 0 },
	};
	struct args args = { 0 };
	struct session s = { .args = &args };
	struct gpupart_topology *topo = NULL;
	int status;

	status = args_parse(&args, ARGS_SIM | ARGS_GPU | ARGS_JSON | ARGS_OUTPUT | ARGS_NAMES, own,
			    bench_help, argc, argv) ?:
		 check_names(&args) ?:
		 check_peers(&args, &words, &s.bench) ?:
		 args_simulate(&args);
	if (status)
		return status;
	s.dir = args.output;
	s.bench.quick = quick;
	/*
	 * Set this variable before CUDA starts. If possible, CUDA then gives each stream its own
	 * hardware queue.
	 */
	setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
	status = args_gpu(&args, &s.bench.selector) ?: probe(&s);
	if (!status && words.a)
		status = args_topology(&args, &topo);
	s.bench.topo = topo;
	if (!status && s.dir)
		status = check_dir(&s);
	if (!status)
		status = run_all(&s);
	gpupart_topology_close(topo);
	return status;
}
