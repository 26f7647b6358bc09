// SPDX-License-Identifier: MIT
/* The command gpupart: the table of the commands, main(), and the output of --help. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <gpupart_manage.h>
#include "cli/cmd.h"
#include "cli/overview.h"
#include "cli/util/out.h"
#include "cli/util/paths.h"

static const struct cmd cmds[] = {
#define ROW(word, name, starts, summary) { word, cmd_##name, starts, summary, name##_help },
	COMMANDS(ROW)
};

static const struct cmd *find(const char *name)
{
	for (size_t i = 0; i < sizeof(cmds) / sizeof(cmds[0]); i++)
		if (!strcmp(cmds[i].name, name))
			return &cmds[i];
	return NULL;
}

static int print(const char *text, const char *end)
{
	struct out out;

	out_open(&out, NULL);
	fprintf(out.file, "%s%s", text, end);
	return out_close(&out);
}

static int usage(void)
{
	struct out out;

	out_open(&out, NULL);
	fputs("Usage: gpupart COMMAND [OPTIONS] [-- PROGRAM ARGS]\n"
	      "TPC partitions of NVIDIA GPUs.\n\nCommands:\n", out.file);
	for (size_t i = 0; i < sizeof(cmds) / sizeof(cmds[0]); i++)
		fprintf(out.file, "  %-10s %s\n", cmds[i].name, cmds[i].summary);
	fputs("  help CMD   show how to use a command, with examples; also gpupart CMD --help\n\n"
	      "  --version  print the version\n", out.file);
	return out_close(&out);
}

/* Returns whether the help of @cmd describes the subcommand @word, such as "qos run". */
static bool has_subcommand(const struct cmd *cmd, const char *word)
{
	char line[64];

	snprintf(line, sizeof(line), "gpupart %s %s ", cmd->name, word);
	return strstr(cmd->help, line);
}

static int extra(const char *word)
{
	return cmd_fail(NULL, EXIT_USAGE, "unexpected argument '%s': see 'gpupart --help'", word);
}

int main(int argc, char **argv)
{
	const struct cmd *cmd;
	bool help;

	/* Files that this command opens later must not get descriptor 0, 1 or 2. */
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			(void)!open("/dev/null", (fd ? O_RDONLY : O_WRONLY) | O_CLOEXEC);
	/*
	 * Set the name of the process, because paths_enter_sim() has executed /proc/self/exe.
	 * Without this call, ps would print "exe" as the name.
	 */
	prctl(PR_SET_NAME, "gpupart");
	paths_set_argv(argc, argv);
	if (argc < 2) {
		cmd_gp = alloc_gpupart();
		return cmd_exit_status(overview(), false);
	}
	if (!strcmp(argv[1], "--version"))
		return argc > 2 ? extra(argv[2]) : print(gpupart_version(), "\n");
	help = !strcmp(argv[1], "help") || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h");
	if (help && argc == 2)
		return usage();
	if (help && argc == 3 && !strcmp(argv[2], "help"))
		return usage();
	cmd = find(argv[1 + help]);
	if (!cmd)
		return cmd_fail(NULL, EXIT_USAGE, "'%s' is not a command: see 'gpupart --help'",
				argv[1 + help]);
	if (help && argc > 3 && (argc > 4 || !has_subcommand(cmd, argv[3])))
		return extra(argv[argc > 4 ? 4 : 3]);
	if (help || (argc == 3 && !strcmp(argv[2], "--help")))
		return print(cmd->help, "");
	cmd_name = cmd->name;
	alloc_before_start = cmd->starts;
	cmd_gp = alloc_gpupart();
	return cmd_exit_status(cmd->run(argc - 1, argv + 1), cmd->starts);
}
