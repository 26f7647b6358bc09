/* SPDX-License-Identifier: MIT */
/*
 * Lists the commands for the table in gpupart.c. Explains the return values of functions in cli/.
 */
#ifndef GPUPART_CLI_CMD_H
#define GPUPART_CLI_CMD_H

#include <stdbool.h>
#include "cli/util/alloc.h"
#include "cli/util/message.h"

/*
 * Most functions in cli/ that can fail return a value with the following meaning. Other functions
 * return a count, a descriptor or -errno. If the value is 0, the caller continues. Any other value
 * is an error of message.h, or CMD_ENDED with an exit status. The error message was already printed
 * on stderr. The caller returns the value unchanged. At the end, main() calls cmd_exit_status() to
 * convert the value to an exit status. A child that fails to execute a program does the same.
 */
struct cmd {
	const char *name;
	/* argv[0] is the name of the command, and argv[-1] is the name of the program. */
	int (*run)(int argc, char **argv);
	bool starts; /* the command starts a program; the command's own exit statuses must differ
		      * from those of the program */
	const char *summary;
	const char *help;
};

/* The commands, in the order in which 'gpupart --help' prints them. */
#define COMMANDS(C) \
	C("topology", topology, false, "show a GPU's GPCs, virtual GPCs, TPCs and SMs") \
	C("run", run, true, "run a program inside a set of TPCs") \
	C("set", set, false, "change the set of a running process or job") \
	C("ps", ps, false, "list what runs under gpupart") \
	C("top", top, false, "show live what runs: a map of each GPU, a row for each job") \
	C("metrics", metrics, false, "report what runs to Prometheus") \
	C("cdi", cdi, false, "write a CDI device: containers inside a set") \
	C("plan", plan, false, "make disjoint sets from the demands of tenants") \
	C("trace", trace, false, "show which block runs on which SM, and when") \
	C("verify", verify, false, "prove on the GPU that sets confine launches") \
	C("bench", bench, false, "measure isolation and overhead on the GPU") \
	C("stat", stat, true, "find out whether the CPU or the GPU bounds a program") \
	C("doctor", doctor, false, "show what works on this machine, and what to do") \
	C("sim", sim, false, "run a scenario on a model of the GPU's scheduling") \
	C("qos", qos, false, "keep programs at their goals, share the rest") \
	C("tune", tune, false, "find the best sets for programs by measuring them") \
	C("slurm-conf", slurm_conf, false, "write the lines for Slurm's configuration files") \
	C("slurm-node", slurm_node, false, "prepare this node's GPUs for Slurm; list grants") \
	C("demo", demo, false, "show in a minute what gpupart does")

#define DECLARE(word, name, starts, summary) \
	int cmd_##name(int argc, char **argv); \
	extern const char name##_help[];
COMMANDS(DECLARE)
#undef DECLARE

#endif
