/* SPDX-License-Identifier: MIT */
/* The commands, for the table in gpupart.c. */
#ifndef GPUPART_CLI_CMD_H
#define GPUPART_CLI_CMD_H

#include <stdbool.h>
#include "cli/util/alloc.h"
#include "cli/util/message.h"

/*
 * One rule holds for all functions of the command that can fail and return no count, no descriptor
 * and no -errno: 0 means continue. Anything else is an error of message.h, whose message is on
 * stderr already, or CMD_ENDED with an exit status, such as that of a program; the caller returns
 * it unchanged. cmd_exit_status() makes the exit status from it: in main(), and in children that
 * were to become a program.
 */
struct cmd {
	const char *name;
	/* argv[0] is the command's name, argv[-1] the program's. */
	int (*run)(int argc, char **argv);
	bool starts;	/* a program: its own exit status must differ from the program's */
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

#endif
