// SPDX-License-Identifier: MIT
/* The command: a table and how to look into it. Must not know what a command does. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <gpupart.h>
#include "cmd.h"
#include "out.h"

static const struct cmd cmds[] = {
	{ "topology", cmd_topology, "show a GPU's GPCs, virtual GPCs, TPCs and SMs", topology_help },
	{ "run", cmd_run, "run a program inside a set of TPCs", run_help },
	{ "verify", cmd_verify, "prove on the GPU that sets confine launches", verify_help },
	{ "doctor", cmd_doctor, "what works on this machine and what to do", doctor_help },
	{ "demo", cmd_demo, "the main job in a minute", demo_help },
};

char **cmd_argv;

static const struct cmd *find(const char *name)
{
	for (size_t i = 0; i < sizeof(cmds) / sizeof(cmds[0]); i++)
		if (!strcmp(cmds[i].name, name))
			return &cmds[i];
	return NULL;
}

static int usage(void)
{
	struct out out;

	out_open(&out, NULL);
	fputs("Usage: gpupart COMMAND [OPTIONS] [-- PROGRAM ARGS]\n"
	      "TPC partitions of NVIDIA GPUs.\n\nCommands:\n", out.file);
	for (size_t i = 0; i < sizeof(cmds) / sizeof(cmds[0]); i++)
		fprintf(out.file, "  %-10s %s\n", cmds[i].name, cmds[i].summary);
	fputs("  help CMD   how to use a command, with examples; also gpupart CMD --help\n\n"
	      "  --version  the version\n", out.file);
	return out_close(&out, NULL);
}

static int print(const char *text, const char *end)
{
	struct out out;

	out_open(&out, NULL);
	fprintf(out.file, "%s%s", text, end);
	return out_close(&out, NULL);
}

int main(int argc, char **argv)
{
	const struct cmd *cmd;
	bool help;

	/*
	 * Where one of the three was closed a file opened later would take its place.
	 * Each is held by one that refuses what it is for; close-on-exec keeps a
	 * program under run as it was.
	 */
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			(void)!open("/dev/null", (fd ? O_RDONLY : O_WRONLY) | O_CLOEXEC);
	cmd_argv = argv;
	if (argc < 2)
		return cmd_fail(NULL, EXIT_USAGE, "no command: see 'gpupart --help'");
	if (!strcmp(argv[1], "--version"))
		return print(gpupart_version(), "\n");
	help = !strcmp(argv[1], "help") || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h");
	if (help && argc == 2)
		return usage();
	cmd = find(argv[help ? 2 : 1]);
	if (!cmd)
		return cmd_fail(NULL, EXIT_USAGE, "'%s' is not a command: see 'gpupart --help'",
				argv[help ? 2 : 1]);
	if (help || (argc == 3 && !strcmp(argv[2], "--help")))
		return print(cmd->help, "");
	return cmd->run(argc - 1, argv + 1);
}
