// SPDX-License-Identifier: MIT
/* gpupart qos: its words and which of its commands is meant. Must not know what they do. */
#include <string.h>
#include "args.h"
#include "cmd.h"
#include "qos.h"

const char qos_help[] =
"Usage: gpupart qos sim SCENARIO [--log LOG] [--json | --of FORM] [-o FILE]\n"
"       gpupart qos replay LOG [--json | --of FORM] [-o FILE]\n"
"Gives TPCs to programs so that those with a goal meet it and the rest get what is\n"
"left, anew every epoch, from the progress that they made.\n"
"\n"
"  sim SCENARIO        the controller around the simulated GPU: a scenario of 'gpupart\n"
"                      sim' with tenants in it (a file, or one that ships: qos-burst)\n"
"  replay LOG          what was measured, from a log, through the policy once more:\n"
"                      says where another decision comes of it\n"
"\n"
"      --log LOG       every decision, with what was measured and the reason, as a\n"
"                      JSON line\n"
"      --json          as JSON, schema gpupart/1\n"
"      --of FORM       text (the default) or svg: goal, progress and TPCs of every\n"
"                      tenant over time; what -o FILE.svg writes without it\n"
"  -o, --output FILE   write there\n"
"\n"
"Documentation/qos.md says how it decides and how files are written.\n"
"\n"
"Exit status: 0 done, 1 failed, or another decision in a replay, 2 the file is wrong.\n"
"\n"
"Examples:\n"
"  gpupart qos sim qos-neighbour -o run.svg\n"
"  gpupart qos sim qos-burst --log run.log && gpupart qos replay run.log\n";

static const struct {
	const char *name;
	int (*run)(const struct args *args, const struct qos_options *options);
	const char *wants;
} commands[] = {
	{ "sim", qos_sim, "SCENARIO" },
	{ "replay", qos_replay, "LOG" },
};

static int check_options(const struct args *args, const struct qos_options *options,
			 const char *wants)
{
	if (!args->program[0])
		return cmd_fail(args->cmd, EXIT_USAGE, "no %s: see 'gpupart qos --help'", wants);
	if (args->program[1])
		return cmd_fail(args->cmd, EXIT_USAGE, "'%s': one %s is enough", args->program[1],
				wants);
	if (options->of && strcmp(options->of, "text") && strcmp(options->of, "svg"))
		return cmd_fail(args->cmd, EXIT_USAGE, "--of %s: wants text or svg", options->of);
	if (options->of && args->json)
		return cmd_fail(args->cmd, EXIT_USAGE, "--json and --of %s: take one",
				options->of);
	return -1;
}

int cmd_qos(int argc, char **argv)
{
	struct qos_options options = { 0 };
	const struct args_option own[] = {
		{ .name = "of", .value = &options.of }, { .name = "log", .value = &options.log },
		{ 0 },
	};
	struct args args = { 0 };
	unsigned int i;
	int status;

	if (argc < 2)
		return cmd_fail("qos", EXIT_USAGE, "no command: see 'gpupart qos --help'");
	for (i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (!strcmp(argv[1], commands[i].name))
			break;
	if (i == sizeof(commands) / sizeof(commands[0]) && strcmp(argv[1], "--help"))
		return cmd_fail("qos", EXIT_USAGE,
				"'%s' is none of its commands: see 'gpupart qos --help'", argv[1]);
	argv[1] = argv[0];
	status = args_parse(&args, ARGS_JSON | ARGS_OUTPUT | ARGS_NAMES, own, qos_help, argc - 1,
			    argv + 1);
	if (status < 0)
		status = check_options(&args, &options, commands[i].wants);
	return status < 0 ? commands[i].run(&args, &options) : status;
}
