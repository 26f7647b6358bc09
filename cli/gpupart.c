// SPDX-License-Identifier: MIT
/* The command: a table and how to look into it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <gpupart_manage.h>
#include "cli/cmd.h"
#include "cli/util/out.h"
#include "cli/util/paths.h"

static const struct cmd cmds[] = {
	{ "topology", cmd_topology, false, "show a GPU's GPCs, virtual GPCs, TPCs and SMs",
	  topology_help },
	{ "run", cmd_run, true, "run a program inside a set of TPCs", run_help },
	{ "set", cmd_set, false, "change the set of a running process or job", set_help },
	{ "ps", cmd_ps, false, "what runs under gpupart", ps_help },
	{ "top", cmd_top, false, "the same, again and again", top_help },
	{ "cdi", cmd_cdi, false, "what a container needs to run inside a set", cdi_help },
	{ "plan", cmd_plan, false, "make disjoint sets of what tenants ask for", plan_help },
	{ "trace", cmd_trace, false, "which block runs on which SM, and when", trace_help },
	{ "verify", cmd_verify, false, "prove on the GPU that sets confine launches", verify_help },
	{ "bench", cmd_bench, false, "measure on the GPU what a partition is worth", bench_help },
	{ "stat", cmd_stat, true, "what bounds a program: the CPU, the GPU or copies", stat_help },
	{ "doctor", cmd_doctor, false, "what works on this machine and what to do", doctor_help },
	{ "sim", cmd_sim, false, "run a scenario on the simulated GPU's scheduling pipeline",
	  sim_help },
	{ "qos", cmd_qos, false, "keep a program at its goal and give the rest away", qos_help },
	{ "slurm-conf", cmd_slurm_conf, false, "what Slurm's files say of this node's GPUs",
	  slurm_conf_help },
	{ "slurm-node", cmd_slurm_node, false,
	  "this node's GPUs for Slurm's plugin; what jobs hold", slurm_node_help },
	{ "demo", cmd_demo, false, "the main job in a minute", demo_help },
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
	return out_close(&out, NULL);
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

/* Whether the help of @cmd explains @word, as that of qos explains "qos run". */
static bool has_subcommand(const struct cmd *cmd, const char *word)
{
	char line[64];

	snprintf(line, sizeof(line), "gpupart %s %s ", cmd->name, word);
	return strstr(cmd->help, line);
}

static int extra(const char *word)
{
	return cmd_fail(NULL, EXIT_USAGE, "'%s' is not expected: see 'gpupart --help'", word);
}

int main(int argc, char **argv)
{
	const struct cmd *cmd;
	bool help;

	/* A file opened later must not take the place of a closed one of the three. */
	for (int fd = 0; fd <= 2; fd++)
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			(void)!open("/dev/null", (fd ? O_RDONLY : O_WRONLY) | O_CLOEXEC);
	/* Started anew by paths_enter_sim(), it would be shown as "exe". */
	prctl(PR_SET_NAME, "gpupart");
	paths_set_argv(argv);
	if (argc < 2)
		return cmd_fail(NULL, EXIT_USAGE, "no command: see 'gpupart --help'");
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
	return cmd_exit_status(cmd->run(argc - 1, argv + 1), cmd->starts);
}
