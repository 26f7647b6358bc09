/* SPDX-License-Identifier: MIT */
/* What a command is to the table in gpupart.c. Knows no command's insides. */
#ifndef GPUPART_CLI_CMD_H
#define GPUPART_CLI_CMD_H

/* Exit statuses, as Documentation/man/gpupart.1 promises them. */
enum {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,	/* a check that did not hold, an output that could not be written */
	EXIT_USAGE = 2,		/* or not supported here */
	EXIT_RUN_FAILED = 125,	/* of run: everything before the program starts */
	EXIT_RUN_NOT_EXECUTABLE = 126,
	EXIT_RUN_NOT_FOUND = 127,
};

struct cmd {
	const char *name;
	int (*run)(int argc, char **argv);	/* argv[0] is the command's name */
	const char *summary;
	const char *help;
};

int cmd_topology(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_set(int argc, char **argv);
int cmd_ps(int argc, char **argv);
int cmd_top(int argc, char **argv);
int cmd_cdi(int argc, char **argv);
int cmd_plan(int argc, char **argv);
int cmd_trace(int argc, char **argv);
int cmd_verify(int argc, char **argv);
int cmd_stat(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_demo(int argc, char **argv);
int cmd_sim(int argc, char **argv);
int cmd_qos(int argc, char **argv);
int cmd_slurm_conf(int argc, char **argv);
int cmd_slurm_node(int argc, char **argv);

extern const char topology_help[], run_help[], set_help[], ps_help[], top_help[], cdi_help[],
	plan_help[], trace_help[], verify_help[], bench_help[], stat_help[], sim_help[],
	qos_help[], slurm_conf_help[], slurm_node_help[],
	doctor_help[], demo_help[];

/* main()'s own, for a command that starts itself anew (paths.c). */
extern char **cmd_argv;

/*
 * One line on stderr, "gpupart CMD: ...", whatever bytes the values in it have;
 * returns @status.
 */
__attribute__((format(printf, 3, 4)))
int cmd_fail(const char *cmd, int status, const char *fmt, ...);

/* The same for a remark; "gpupart: ..." where @cmd is NULL. */
__attribute__((format(printf, 2, 3)))
void cmd_note(const char *cmd, const char *fmt, ...);

/* The status for a failure of the library: a bad value or not supported here, or failed. */
int cmd_status(int err);

#endif
