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

/* In the order of the list that 'gpupart --help' prints. */
#define COMMANDS(C) \
	C("topology", topology, false, "show a GPU's GPCs, virtual GPCs, TPCs and SMs") \
	C("run", run, true, "run a program inside a set of TPCs") \
	C("set", set, false, "change the set of a running process or job") \
	C("ps", ps, false, "what runs under gpupart") \
	C("top", top, false, "the same live: a map, and a row a job") \
	C("metrics", metrics, false, "the same for Prometheus") \
	C("cdi", cdi, false, "what a container needs to run inside a set") \
	C("plan", plan, false, "make disjoint sets of what tenants ask for") \
	C("trace", trace, false, "which block runs on which SM, and when") \
	C("verify", verify, false, "prove on the GPU that sets confine launches") \
	C("bench", bench, false, "measure on the GPU what a partition is worth") \
	C("stat", stat, true, "what bounds a program: the CPU, the GPU or copies") \
	C("doctor", doctor, false, "what works on this machine and what to do") \
	C("sim", sim, false, "run a scenario on the simulated GPU's scheduling pipeline") \
	C("qos", qos, false, "keep a program at its goal and give the rest away") \
	C("tune", tune, false, "find the best sets of programs by measuring them") \
	C("slurm-conf", slurm_conf, false, "what Slurm's files say of this node's GPUs") \
	C("slurm-node", slurm_node, false, "this node's GPUs for Slurm's plugin; what jobs hold") \
	C("demo", demo, false, "the main job in a minute")

#define DECLARE(word, name, starts, summary) \
	int cmd_##name(int argc, char **argv); \
	extern const char name##_help[];
COMMANDS(DECLARE)
#undef DECLARE

#endif
