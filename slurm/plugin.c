// SPDX-License-Identifier: MIT
/*
 * gpupart_spank.so: --gpupart of srun, sbatch and salloc. slurmd's prolog notes a job's part of a
 * GPU, its tasks start in it, slurmd's epilog gives it back.
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

/* As SPANK_PLUGIN() has it, and seen by Slurm though all else is hidden. */
PUBLIC const char plugin_name[] = "gpupart";
PUBLIC const char plugin_type[] = "spank";
PUBLIC const unsigned int plugin_version = SLURM_VERSION_NUMBER;
PUBLIC const unsigned int spank_plugin_version = 1;

PUBLIC spank_f slurm_spank_init, slurm_spank_job_prolog, slurm_spank_task_init_privileged,
	slurm_spank_job_epilog;

#define EXIT_AGAIN 75	/* EX_TEMPFAIL of sysexits.h: Slurm's RequeueExit may name it */

extern char **environ;

/* Where it is given it is checked, so that a wrong word is told at once. */
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
	.usage = "a part of one GPU of each node: N TPCs; see gpupart's slurm.md",
	.has_arg = 1,
	.cb = take,
};

/* This package's own command: 0, or what it says. */
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
 * slurmd begins: its GPUs are looked at once, not at each job; simulated ones stay what they
 * were said to be. What was noted for jobs that ended while it was away goes.
 */
static void begin_node(void)
{
	if (run_node("--boot"))
		slurm_error("gpupart: 'gpupart slurm-node --boot' failed: run it by hand");
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

/* The GPU that Slurm took the TPCs from: it is Slurm's word, a prolog's environment is root's. */
static int counted_gpu(void)
{
	const char *gpus = getenv("SLURM_JOB_GPUS");

	return gpus && *gpus >= '0' && *gpus <= '9' ? atoi(gpus) : -1;
}

/* By the node's settings. */
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

/* By those, or by the word "strict" behind the plugin's path in plugstack.conf. */
static bool is_strict(int ac, char **av)
{
	bool strict = node_is_strict();

	for (int i = 0; i < ac; i++)
		if (!strcmp(av[i], "strict"))
			strict = true;
		else
			slurm_error("gpupart: plugstack.conf: '%s': wants strict or nothing",
				    av[i]);
	return strict;
}

static int give(const struct give_job *job, char *why, size_t len)
{
	struct gpupart_grant grant;
	int err = give_job(job, &grant, why, len);

	/* Perhaps what is in the way is of a job that ended while the node was away. */
	if (!err && !give_is_given(&grant) && job->gpu >= 0) {
		run_node("--clean");
		err = give_job(job, &grant, why, len);
	}
	return err;
}

/*
 * What is the job's own matter is no failure: its tasks say what there is to say. What would
 * end every job here is: Slurm then drains the node and queues the job anew. That is by the
 * status of this process, which is the prolog's alone: Slurm does not look at what an optional
 * plugin returns.
 */
int slurm_spank_job_prolog(spank_t spank, int ac, char **av)
{
	struct give_job job = { .gpu = counted_gpu() };
	char *text = NULL, why[1024];
	struct words words;
	int err;

	if (spank_option_getopt(spank, &option, &text) != ESPANK_SUCCESS || !text)
		return 0;
	if (spank_get_item(spank, S_JOB_ID, &job.job) != ESPANK_SUCCESS ||
	    spank_get_item(spank, S_JOB_UID, &job.uid) != ESPANK_SUCCESS) {
		slurm_error("gpupart: Slurm does not tell whose job this is");
		return 0;
	}
	job.strict = is_strict(ac, av);
	job.words = &words;
	job.asked = text;
	if (words_read(text, &words, why, sizeof(why)))
		err = give_nothing(&job, why, why, sizeof(why));
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

/* For the job's first task: notes a set that holds no cluster of 8 although its size allows one. */
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
			"gpupart: job %u: TPCs %s hold clusters of at most %u blocks: a kernel with larger clusters is given more TPCs; no %u free TPCs held clusters of %d; cluster=%d asks for such\n",
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
	/* A step's own option says nothing that Slurm counted: what the job was given holds. */
	if (give_find(job, &grant) || grant.uid != uid) {
		if (asked)
			refuse(job,
			       "it was given no TPCs on this node: either --gpupart was given to a step and not to its job, or slurmd ran no prolog for the job, as Slurm 22.05 does if a job starts again within about 2 s; submit it again");
		return 0;
	}
	if (!give_is_given(&grant)) {
		first = spank_get_item(spank, S_TASK_ID, &task) == ESPANK_SUCCESS && !task;
		give_wait(&grant, first);
	}
	if (!give_is_given(&grant))
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
