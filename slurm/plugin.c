// SPDX-License-Identifier: MIT
/*
 * gpupart_spank.so provides the option --gpupart of srun, sbatch and salloc. The prolog of slurmd
 * writes a job's grant. The tasks of the job start with this grant. The epilog of slurmd removes
 * the grant.
 */
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <slurm/spank.h>
#include "slurm/allocate.h"
#include "slurm/environment.h"
#include "slurm/mps.h"
#include "slurm/node_file.h"
#include "slurm/options.h"
#include "lib/private.h"

#define PUBLIC __attribute__((visibility("default")))

/* Like SPANK_PLUGIN(), but exports the symbols. By default, this library hides its symbols. */
PUBLIC const char plugin_name[] = "gpupart";
PUBLIC const char plugin_type[] = "spank";
PUBLIC const unsigned int plugin_version = SLURM_VERSION_NUMBER;
PUBLIC const unsigned int spank_plugin_version = 1;

PUBLIC spank_f slurm_spank_init, slurm_spank_job_prolog, slurm_spank_task_init_privileged,
	slurm_spank_job_epilog;

#define EXIT_AGAIN 75	/* EX_TEMPFAIL of sysexits.h, for Slurm's RequeueExit */

extern char **environ;

/* Checks the option at the submission of the job, so that the user sees errors immediately. */
static int take(int val, const char *text, int remote)
{
	struct words words;
	char why[256];

	(void)val;
	if (remote || !words_read(text, &words, why, sizeof(why)))
		return 0;
	slurm_error("--gpupart %s", why);
	return -1;
}

static struct spank_option option = {
	.name = "gpupart",
	.arginfo = "tpcs=N[,gpcs][,ugpu][,cluster=N][,mem=SIZE][,wait=S]",
	.usage = "N TPCs of one GPU of each node; see gpupart's slurm.md",
	.has_arg = 1,
	.cb = take,
};

/* Runs this package's command. Returns the wait status of the command, or -1. */
static int run_node(const char *argument)
{
	char *argv[] = { "gpupart", "slurm-node", (char *)argument, NULL };
	char *path = environment_package(false, "gpupart");
	int status = 0, err;
	pid_t pid;

	err = path ? posix_spawn(&pid, path, NULL, NULL, argv, environ) : ENOENT;
	free(path);
	if (err)
		return -1;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return status;
}

/*
 * Called at the start of slurmd. Examines the GPUs one time for all jobs. Keeps simulated GPUs.
 * Some jobs may have ended while slurmd was not running. Removes the grants of these jobs.
 */
static void begin_node(void)
{
	if (run_node("--boot"))
		slurm_error(
			"gpupart: 'gpupart slurm-node --boot' failed: run this command by hand");
}

int slurm_spank_init(spank_t spank, int ac, char **av)
{
	(void)ac;
	(void)av;
	if (spank_context() == S_CTX_SLURMD) {
		begin_node();
		return 0;
	}
	return spank_option_register(spank, &option) == ESPANK_SUCCESS ? 0 : -1;
}

/*
 * Returns the number of the GPU whose TPCs Slurm counted. The environment of a prolog is
 * trustworthy, because it comes from Slurm.
 */
static int counted_gpu(void)
{
	const char *gpus = getenv("SLURM_JOB_GPUS");

	return gpus && *gpus >= '0' && *gpus <= '9' ? atoi(gpus) : -1;
}

/* Returns true if the node's configuration file makes jobs strict. */
static bool node_is_strict(void)
{
	struct gpupart *gp;
	int found;

	if (gpupart_open(&gp))
		return true;
	found = gpupart_config_strict(gp);
	if (found < 0)
		slurm_error("gpupart: %s", gpupart_error(gp));
	gpupart_close(gp);
	return config_is_strict(found);
}

/*
 * Returns true if jobs are strict. Jobs are strict in two cases: the configuration file makes
 * them strict, or "strict" follows the plugin's path in plugstack.conf.
 */
static bool is_strict(int ac, char **av)
{
	bool strict = node_is_strict();

	for (int i = 0; i < ac; i++)
		if (!strcmp(av[i], "strict"))
			strict = true;
		else
			slurm_error(
				"gpupart: plugstack.conf: '%s' is not an argument of the plugin: the only argument is 'strict'",
				av[i]);
	return strict;
}

static int give(const struct allocate_job *job, char *why, size_t len)
{
	struct gpupart_grant grant;
	int err = allocate_job(job, &grant, why, len);

	/* A job may have ended while the node was down. Such a job may still have TPCs. */
	if (!err && !allocate_is_granted(&grant) && job->gpu >= 0) {
		run_node("--clean");
		err = allocate_job(job, &grant, why, len);
	}
	return err;
}

/*
 * The refusal of one job is not a failure of the plugin. The job's tasks report the refusal. An
 * error that affects every job on this node is a failure. After a failure, Slurm drains the node
 * and requeues the job. Slurm ignores the return value of an optional plugin. So this process,
 * which runs only the prolog, exits with an error.
 */
int slurm_spank_job_prolog(spank_t spank, int ac, char **av)
{
	struct allocate_job job = { .gpu = counted_gpu() };
	char *text = NULL, why[1024];
	struct words words;
	int err;

	if (spank_option_getopt(spank, &option, &text) != ESPANK_SUCCESS || !text)
		return 0;
	if (spank_get_item(spank, S_JOB_ID, &job.job) != ESPANK_SUCCESS ||
	    spank_get_item(spank, S_JOB_UID, &job.uid) != ESPANK_SUCCESS) {
		slurm_error("gpupart: Slurm does not report the job's number and user");
		return 0;
	}
	job.strict = is_strict(ac, av);
	job.words = &words;
	job.asked = text;
	if (words_read(text, &words, why, sizeof(why)))
		err = allocate_refuse(&job, why, why, sizeof(why));
	else
		err = give(&job, why, sizeof(why));
	if (err) {
		slurm_error("gpupart: job %u: %s", job.job, why);
		exit(EXIT_FAILURE);
	}
	return 0;
}

static void refuse(unsigned int job, const char *why)
{
	dprintf(STDERR_FILENO, "gpupart: job %u: %s\n", job, why);
	_exit(EXIT_AGAIN);
}

/*
 * Called for the job's first task. A set may have enough TPCs for a cluster of 8 blocks, but no
 * virtual GPC with enough room. For such a set, prints a message.
 */
static void note_clusters(spank_t spank, unsigned int job, const struct gpupart_grant *grant)
{
	unsigned int task, cluster, nr = gpupart_tpcset_count(&grant->set);
	struct gpupart_tpcset one = gpupart_tpcset_first(1);
	char list[GPUPART_TPCSET_STRLEN], why[512];
	struct node_gpu board;

	if (spank_get_item(spank, S_TASK_GLOBAL_ID, &task) != ESPANK_SUCCESS || task ||
	    boards_find(grant->pci, &board, why, sizeof(why)) ||
	    boards_open(board.number, &board, why, sizeof(why)))
		return;
	cluster = gpupart_set_cluster(board.topo, &grant->set);
	if (cluster < GPUPART_PORTABLE_CLUSTER && gpupart_topology_end_vgpc(board.topo) &&
	    nr * gpupart_set_cluster(board.topo, &one) >= GPUPART_PORTABLE_CLUSTER) {
		gpupart_tpcset_format_list(&grant->set, list, sizeof(list));
		dprintf(STDERR_FILENO,
			"gpupart: job %u: TPCs %s have room for clusters of at most %u blocks: a kernel with larger clusters gets more TPCs; no %u free TPCs had room for clusters of %d; cluster=%d requests such a set\n",
			job, list, cluster, nr, GPUPART_PORTABLE_CLUSTER,
			GPUPART_PORTABLE_CLUSTER);
	}
	boards_close(&board);
}

int slurm_spank_task_init_privileged(spank_t spank, int ac, char **av)
{
	struct gpupart_grant grant;
	unsigned int job = 0, uid = 0;
	char *text = NULL, why[512];
	int task = 0;
	bool asked, first;

	(void)ac;
	(void)av;
	asked = spank_option_getopt(spank, &option, &text) == ESPANK_SUCCESS;
	if (spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS ||
	    spank_get_item(spank, S_JOB_UID, &uid) != ESPANK_SUCCESS)
		return asked ? -1 : 0;
	/*
	 * Slurm does not count the --gpupart option of a job step, so the job's grant applies to
	 * the step.
	 */
	if (allocate_find(job, &grant) || grant.uid != uid) {
		if (asked)
			refuse(job,
			       "the job has no TPCs on this node: either --gpupart was used for a step but not for its job, or slurmd ran no prolog for the job (Slurm 22.05 runs no prolog if a job restarts within about 2 s); submit the job again");
		return 0;
	}
	if (!allocate_is_granted(&grant)) {
		first = spank_get_item(spank, S_TASK_ID, &task) == ESPANK_SUCCESS && !task;
		allocate_wait(&grant, first);
	}
	if (!allocate_is_granted(&grant))
		refuse(job, grant.why);
	if (environment_set(spank, &grant, why, sizeof(why)))
		refuse(job, why);
	mps_join_task(spank, job, &grant);
	note_clusters(spank, job, &grant);
	return 0;
}

int slurm_spank_job_epilog(spank_t spank, int ac, char **av)
{
	unsigned int job;
	char why[512];

	(void)ac;
	(void)av;
	if (spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS)
		return 0;
	if (give_back(job, why, sizeof(why)))
		slurm_error("gpupart: job %u: %s", job, why);
	return 0;
}
