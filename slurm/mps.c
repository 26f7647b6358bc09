// SPDX-License-Identifier: MIT
/*
 * Makes the tasks of a job clients of the node's MPS daemon. Without MPS, jobs on disjoint sets
 * of a GPU run in time slices. slurmstepd calls this code as root before the task's program
 * starts. After an error, the task starts without MPS.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "slurm/node_file.h"
#include "slurm/mps.h"
#include "cli/mps/mps_daemon.h"

void mps_join_task(spank_t spank, unsigned int job, const struct gpupart_grant *grant)
{
	char wanted[8] = "", taken[PATH_MAX] = "", why[PATH_MAX + 128];
	static struct mps_daemon daemon = { .why = "cannot set " MPS_DAEMON_PIPES };
	struct node_gpu board = { 0 };
	bool is_own, is_node;
	int task = 0, err;

	spank_getenv(spank, "GPUPART_MPS", wanted, sizeof(wanted));
	spank_getenv(spank, MPS_DAEMON_PIPES, taken, sizeof(taken));
	is_node = !strcmp(taken, MPS_DAEMON_NODE);
	is_own = *taken && !is_node;
	err = strcmp(wanted, "0") ? mps_daemon_find_node(&daemon) : -ENOENT;
	if (!err && !is_own &&
	    spank_setenv(spank, MPS_DAEMON_PIPES, MPS_DAEMON_NODE, 1) == ESPANK_SUCCESS)
		return;
	/*
	 * The job's script may have set this variable. With the variable, the program would wait
	 * for a daemon that does not answer.
	 */
	if (err && is_node)
		spank_unsetenv(spank, MPS_DAEMON_PIPES);
	if (err == -ENOENT || spank_get_item(spank, S_TASK_ID, &task) != ESPANK_SUCCESS || task)
		return;
	boards_find(grant->pci, &board, why, sizeof(why));
	snprintf(why, sizeof(why), "%s", daemon.why);
	if (is_own)
		snprintf(why, sizeof(why),
			 "its %s=%.200s excludes it from the node's MPS daemon (set GPUPART_MPS=0 if that is intended)",
			 MPS_DAEMON_PIPES, taken);
	dprintf(STDERR_FILENO,
		"gpupart: job %u: %s: this job and others run on the GPU%s in time slices instead of at the same time\n",
		job, why, board.simulated ? ", simulated," : "");
}
