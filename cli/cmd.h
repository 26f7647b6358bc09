/* SPDX-License-Identifier: MIT */
/* The commands, for the table in gpupart.c. */
#ifndef GPUPART_CLI_CMD_H
#define GPUPART_CLI_CMD_H

#include "cli/util/message.h"

struct cmd {
	const char *name;
	/* argv[0] is the command's name, argv[-1] the program's. */
	int (*run)(int argc, char **argv);
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
