// SPDX-License-Identifier: MIT
/* gpupart qos: parses the options, prints the help, and calls the subcommand. */
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
"Divides the GPU's TPCs between programs, so that programs with a goal meet it and the\n"
"others share the rest. It decides again in every epoch, from the measured progress.\n"
"\n"
"  run                 start the programs of FILE, or adopt running ones, and set\n"
"                      their TPCs. If qos run is killed, the programs keep their\n"
"                      sets, and the next qos run adopts the programs\n"
"  calibrate           run each program of FILE by itself on all TPCs and measure its\n"
"                      solo speed, which a goal alpha refers to; then stop it\n"
"  sim SCENARIO        run the controller with the simulated GPU: SCENARIO is a\n"
"                      scenario of 'gpupart sim' with tenants (a file, or a name such\n"
"                      as qos-burst)\n"
"  replay LOG          decide again from the measurements in a log, and report each\n"
"                      decision that differs\n"
"\n"
"  -f, --file FILE     tenants and their goals, as YAML\n"
"      --tenant NAME:GOALS  a tenant and its goals, separated by commas: alpha=SHARE\n"
"                      and alone=RATE, rate=RATE, or latency=TIME and percentile=P\n"
"                      (no goal: best effort); weight=, floor=, ceiling=, signal=,\n"
"                      durations=; lend=auto or lend=TIME: best effort may use its\n"
"                      TPCs while it is idle; job=NAME or pid=PID adopts a running\n"
"                      program. One tenant without job and pid runs PROGRAM\n"
"      --epoch TIME    length of an epoch, with --tenant (200ms)\n"
"  -i, --input CAPTURE use the simulated GPU of CAPTURE (sample:h200 or a file)\n"
"      --gpu GPU       an index in PCI order, a PCI address or a UUID\n"
"      --mps           run the programs at the same time, through NVIDIA MPS: see\n"
"                      'gpupart help run'\n"
"      --epochs N      stop after N epochs; the programs keep their sets\n"
"      --seconds S     how long to measure each program, 1-3600 (10)\n"
"      --dry-run       print the decisions, but start and change nothing\n"
"      --log LOG       write each decision, its measurements and its reason to LOG, as\n"
"                      a JSON line\n"
"      --json          print JSON, schema gpupart/1; run prints the lines of the log,\n"
"                      and without -o its programs write their stdout to stderr\n"
"      --of FORM       text (the default) or svg: goal, progress and TPCs of each\n"
"                      tenant over time (the default for -o FILE.svg)\n"
"  -o, --output FILE   write FILE; FILE.svg: as with --of svg, FILE.json: with --json\n"
"\n"
"Documentation/user/qos.md describes the decisions and the format of files.\n"
"\n"
"Programs report progress by gpupart_progress_add(), by gpupart_latency_report(), or\n"
"by a line to the datagram socket in GPUPART_QOS: 'NAME units 12' or 'NAME latency\n"
"3.5ms'. If a program does not report, its launches are counted.\n"
"\n"
"Exit status: 0 done, 1 failed or a replay decided differently, 2 the file is wrong.\n"
"Of run: the status of the first program that did not end with 0, or 128 plus the\n"
"number of the signal that ended it; 127 not found, 126 not executable, 125 any other\n"
"failure before the programs start.\n"
"\n"
"Examples:\n"
"  gpupart qos run -f tenants.yaml --mps --log run.log\n"
"  gpupart qos run --tenant serve:latency=20ms --tenant train:job=train -- ./serve\n"
"  gpupart qos sim qos-neighbour -o run.svg\n"
"  gpupart qos sim qos-burst --log run.log && gpupart qos replay run.log\n";

/*
 * @wants is the name of the argument. For a subcommand that reads the file of -f, @wants is NULL.
 */
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

/*
 * Returns an option that the user gave and that this subcommand does not accept. If there is no
 * such option, returns NULL.
 */
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

/* If an output file is also an input file, returns an error. Otherwise returns 0. */
static int check_files(const struct args *args, const struct command *command,
		       const struct qos_options *options)
{
	const char *input = command->wants ? args->program[0] : options->file;
	const char *log = options->log, *output = args->output;

	if (same_file(input, log) || same_file(input, output))
		return usage_error("%s %s: this file is also the input",
				   same_file(input, log) ? "--log" : "-o",
				   same_file(input, log) ? log : output);
	if (same_file(log, output) || (log && output && !strcmp(log, output) && access(log, F_OK)))
		return usage_error("--log %s and -o %s are the same file", log, output);
	return 0;
}

static int check_options(const struct args *args, const struct command *command,
			 const struct qos_options *options)
{
	const char *wants = command->wants, *option = misplaced(command, options);

	if (option)
		return usage_error("%s is not an option of 'gpupart qos %s'", option,
				   command->name);
	if (wants ? !args->program[0] : !options->file && !options->tenants.nr)
		return usage_error("no %s: see 'gpupart qos --help'",
				   wants ? wants : "file (-f) and no --tenant");
	if (options->file && options->tenants.nr)
		return usage_error("-f %s and --tenant %s: use only one of them", options->file,
				   options->tenants.texts[0]);
	if (options->file && options->epoch)
		return usage_error(
			"--epoch %s: cannot be used with -f, because the file sets the epoch",
			options->epoch);
	if (args->program[0] && !options->tenants.nr && (!wants || args->program[1]))
		return usage_error("unexpected argument '%s': only one %s is allowed",
				   args->program[!!wants], wants ? wants : "-f FILE");
	if (options->of && strcmp(options->of, "text") && strcmp(options->of, "svg"))
		return usage_error("--of %s: must be text or svg", options->of);
	if (!strcmp(command->name, "calibrate") && out_is_svg(args->output))
		return usage_error("-o %s: calibrate cannot draw a picture", args->output);
	if (options->of && args->json)
		return usage_error("--json and --of %s: use only one of them", options->of);
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

	if (argc < 2)
		return usage_error("no command: see 'gpupart qos --help'");
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(argv[1], commands[i].name))
			command = &commands[i];
	if (!command && strcmp(argv[1], "--help"))
		return usage_error("'%s' is not a subcommand of qos: see 'gpupart qos --help'",
				   argv[1]);
	argv[1] = argv[0];
	return run_command(command ? command : commands, argc - 1, argv + 1);
}
