// SPDX-License-Identifier: MIT
/* gpupart qos: its words and which of its commands is meant. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/cmd.h"
#include "cli/qos/qos.h"
#include "cli/util/paths.h"
#include "cli/target/args.h"

const char qos_help[] =
"Usage: gpupart qos run {-f FILE | --tenant NAME:GOALS...} [--epoch TIME]\n"
"                       [-i CAPTURE] [--gpu GPU] [--mps] [--log LOG] [--epochs N]\n"
"                       [--dry-run] [--json | --of FORM] [-o FILE] [[--] PROGRAM ARGS]\n"
"       gpupart qos calibrate {-f FILE | --tenant NAME:GOALS...} [-i CAPTURE]\n"
"                       [--gpu GPU] [--mps] [--seconds S] [--json] [-o FILE]\n"
"                       [[--] PROGRAM ARGS]\n"
"       gpupart qos sim SCENARIO [--log LOG] [--json | --of FORM] [-o FILE]\n"
"       gpupart qos replay LOG [--json | --of FORM] [-o FILE]\n"
"Gives TPCs to programs so that those with a goal meet it and the rest get what is\n"
"left, anew every epoch, from the progress that they made.\n"
"\n"
"  run                 starts the programs of FILE, or adopts running ones, and gives\n"
"                      them sets; when it is killed the sets stay, and the next one\n"
"                      takes them over\n"
"  calibrate           each program of FILE by itself on all TPCs: its speed alone,\n"
"                      against which a share (alpha) is measured; then it is ended\n"
"  sim SCENARIO        the controller around the simulated GPU: a scenario of 'gpupart\n"
"                      sim' with tenants in it (a file, or one that ships: qos-burst)\n"
"  replay LOG          what was measured, from a log, through the policy once more:\n"
"                      says where another decision comes of it\n"
"\n"
"  -f, --file FILE     tenants and their goals, as YAML\n"
"      --tenant NAME:GOALS  the same in words, joined by commas, one for each tenant:\n"
"                      alpha=SHARE and alone=RATE, rate=RATE, or latency=TIME and\n"
"                      percentile=P (none: best effort); weight=, floor=, ceiling=,\n"
"                      signal=, durations=; job=NAME or pid=PID that runs; one\n"
"                      without has PROGRAM\n"
"      --epoch TIME    with --tenant: 200ms without it\n"
"  -i, --input CAPTURE on the simulated GPU made of it (sample:h200 or a file)\n"
"      --gpu GPU       an index in PCI order, a PCI address or a UUID\n"
"      --mps           at the same time, by NVIDIA's MPS: see 'gpupart help run'\n"
"      --epochs N      end after so many; the sets stay\n"
"      --seconds S     how long each is measured, 1-3600; 10 without it\n"
"      --dry-run       decide and say so, start and change nothing\n"
"      --log LOG       every decision, with what was measured and the reason, as a\n"
"                      JSON line\n"
"      --json          as JSON, schema gpupart/1; of run the lines of the log; without\n"
"                      -o its programs have stderr as their stdout\n"
"      --of FORM       text (the default) or svg: goal, progress and TPCs of every\n"
"                      tenant over time; what -o FILE.svg writes without it\n"
"  -o, --output FILE   write there; FILE.svg: as --of svg, FILE.json: as --json\n"
"\n"
"Documentation/user/qos.md says how it decides and how files are written.\n"
"\n"
"Programs tell their progress by gpupart_progress_add(), gpupart_latency_report(), or\n"
"a line to the datagram socket that GPUPART_QOS names: 'NAME units 12' or 'NAME\n"
"latency 3.5ms'. Of one that tells nothing launches count.\n"
"\n"
"Exit status: 0 done, 1 failed, or another decision in a replay, 2 the file is wrong.\n"
"Of run: that of the first program that did not end with 0, 128 and the signal's\n"
"number where one ended it; 127 it is not there, 126 it cannot be executed, 125\n"
"anything that went wrong before they started.\n"
"\n"
"Examples:\n"
"  gpupart qos run -f tenants.yaml --mps --log run.log\n"
"  gpupart qos run --tenant serve:latency=20ms --tenant train:job=train -- ./serve\n"
"  gpupart qos sim qos-neighbour -o run.svg\n"
"  gpupart qos sim qos-burst --log run.log && gpupart qos replay run.log\n";

/* @wants: a word, or NULL: it takes a file with -f. */
static const struct command {
	const char *name;
	int (*run)(const struct args *args, const struct qos_options *options);
	const char *wants;
	unsigned int takes;
} commands[] = {
	{ "run", qos_run, NULL, ARGS_SIM | ARGS_GPU },
	{ "calibrate", qos_calibrate, NULL, ARGS_SIM | ARGS_GPU },
	{ "sim", qos_sim, "SCENARIO", 0 },
	{ "replay", qos_replay, "LOG", 0 },
};

/* An option that only other commands take, or NULL. */
static const char *misplaced(const struct command *command, const struct qos_options *o)
{
	const struct { bool given; const char *option, *commands; } rows[] = {
		{ o->file, "-f", "run calibrate" }, { o->tenants.nr, "--tenant", "run calibrate" },
		{ o->epoch, "--epoch", "run calibrate" }, { o->mps, "--mps", "run calibrate" },
		{ o->epochs, "--epochs", "run" }, { o->dry_run, "--dry-run", "run" },
		{ o->seconds, "--seconds", "calibrate" }, { o->log, "--log", "run sim" },
		{ o->of, "--of", "run sim replay" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].given && !strstr(rows[i].commands, command->name))
			return rows[i].option;
	return NULL;
}

static bool same_file(const char *a, const char *b)
{
	struct stat st;

	return a && b && paths_same(a, b) && !stat(a, &st) && S_ISREG(st.st_mode);
}

/* What is read and what is written: 0, or an error. */
static int check_files(const struct args *args, const struct command *command,
		       const struct qos_options *options)
{
	const char *input = command->wants ? args->program[0] : options->file;
	const char *log = options->log, *output = args->output;

	if (same_file(input, log) || same_file(input, output))
		return usage_error("%s %s: is what it reads",
				   same_file(input, log) ? "--log" : "-o",
				   same_file(input, log) ? log : output);
	if (same_file(log, output) || (log && output && !strcmp(log, output) && access(log, F_OK)))
		return usage_error("--log %s and -o %s: are one file", log, output);
	return 0;
}

static int check_options(const struct args *args, const struct command *command,
			 const struct qos_options *options)
{
	const char *wants = command->wants, *option = misplaced(command, options);

	if (option)
		return usage_error("%s is no option of 'gpupart qos %s'", option, command->name);
	if (wants ? !args->program[0] : !options->file && !options->tenants.nr)
		return usage_error("no %s: see 'gpupart qos --help'",
				   wants ? wants : "file (-f) and no --tenant");
	if (options->file && options->tenants.nr)
		return usage_error("-f %s and --tenant %s: take one", options->file,
				   options->tenants.texts[0]);
	if (options->file && options->epoch)
		return usage_error("--epoch %s: is the file's, with -f", options->epoch);
	if (args->program[0] && !options->tenants.nr && (!wants || args->program[1]))
		return usage_error("'%s': one %s is enough", args->program[!!wants],
				   wants ? wants : "-f FILE");
	if (options->of && strcmp(options->of, "text") && strcmp(options->of, "svg"))
		return usage_error("--of %s: wants text or svg", options->of);
	if (!strcmp(command->name, "calibrate") && out_is_svg(args->output))
		return usage_error("-o %s: calibrate draws no picture", args->output);
	if (options->of && args->json)
		return usage_error("--json and --of %s: take one", options->of);
	return check_files(args, command, options);
}

static int run_command(const struct command *command, int argc, char **argv)
{
	bool started = false;
	struct qos_options options = { .started = &started };
	const struct args_option own[] = {
		{ .name = "of", .value = &options.of }, { .name = "log", .value = &options.log },
		{ .name = "file", .letter = 'f', .value = &options.file },
		{ .name = "tenant", .values = &options.tenants },
		{ .name = "epoch", .value = &options.epoch },
		{ .name = "epochs", .value = &options.epochs },
		{ .name = "seconds", .value = &options.seconds },
		{ .name = "dry-run", .given = &options.dry_run },
		{ .name = "mps", .given = &options.mps }, { 0 },
	};
	struct args args = { 0 };
	int status;

	status = args_parse(&args, ARGS_JSON | ARGS_OUTPUT |
			    (command->wants ? ARGS_NAMES : ARGS_PROGRAM) | command->takes, own,
			    qos_help, argc, argv) ?:
		 check_options(&args, command, &options);
	alloc_before_start = !strcmp(command->name, "run");
	if (!status && command->takes)
		status = args_simulate(&args);
	if (!status)
		status = command->run(&args, &options);
	return cmd_exit_status(status, !strcmp(command->name, "run") && !started);
}

int cmd_qos(int argc, char **argv)
{
	const struct command *command = NULL;
	char **words;
	int status;

	if (argc < 2)
		return usage_error("no command: see 'gpupart qos --help'");
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(argv[1], commands[i].name))
			command = &commands[i];
	if (!command && strcmp(argv[1], "--help"))
		return usage_error("'%s' is none of its commands: see 'gpupart qos --help'",
				   argv[1]);
	/* main()'s own words stay as they are: on the simulated GPU it is started anew. */
	words = alloc_zeroed(argc, sizeof(*words));
	memcpy(words, argv + 1, (argc - 1) * sizeof(*words));
	words[0] = argv[0];
	status = run_command(command ? command : commands, argc - 1, words);
	free(words);
	return status;
}
