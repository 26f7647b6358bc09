// SPDX-License-Identifier: MIT
/*
 * Allocates a set and a quota to a job, from the TPCs and the memory that no other job has.
 * Handles one job at a time. Writes a grant, which all users of the node can read.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "slurm/allocate.h"
#include "slurm/node_file.h"
#include "slurm/node_lock.h"
#include "slurm/orphans.h"
#include "lib/private.h"

#define LOCK_SECONDS 5
#define FIRST_PAUSE_NS 20000000
#define MOST_PAUSE_NS 800000000
#define MIB (1ull << 20)

bool allocate_is_granted(const struct gpupart_grant *grant)
{
	return !gpupart_tpcset_empty(&grant->set);
}

static void name_job(unsigned int job, struct gpupart_grant *grant)
{
	snprintf(grant->id, sizeof(grant->id), "0-%x", job);
	snprintf(grant->name, sizeof(grant->name), "%u", job);
}

/* The TPCs and the memory, in bytes, that other jobs have on one GPU. */
struct taken {
	struct gpupart_tpcset tpcs;
	uint64_t memory;
};

/*
 * Lists all grants of the node. Returns the number of grants or -errno. The caller must free
 * *list.
 */
static int list_grants(struct gpupart_grant **list)
{
	int nr = gpupart_grant_list(NULL, NULL, 0, sizeof(struct gpupart_grant)), room = nr + 16;

	*list = nr >= 0 ? calloc(room, sizeof(**list)) : NULL;
	if (nr < 0)
		return nr;
	nr = *list ? gpupart_grant_list(NULL, *list, room,
					sizeof(struct gpupart_grant)) : -ENOMEM;
	return nr < room ? nr : room;
}

/*
 * Adds up all grants on the GPU, without the grant of job @id. Copies the grant of job @id to
 * *own.
 */
static int look(const char *id, const char *pci, struct taken *taken, struct gpupart_grant *own)
{
	struct gpupart_grant *list;
	int nr = list_grants(&list);

	memset(taken, 0, sizeof(*taken));
	own->id[0] = 0;
	/* This process holds the lock, so the list cannot become longer. */
	for (int i = 0; i < nr; i++) {
		if (!strcmp(list[i].id, id)) {
			*own = list[i];
		} else if (!strcmp(list[i].pci, pci) && allocate_is_granted(&list[i])) {
			taken->tpcs = gpupart_tpcset_or(&taken->tpcs, &list[i].set);
			taken->memory += list[i].memory;
		}
	}
	free(list);
	return nr < 0 ? nr : 0;
}

static unsigned int largest_gpc(const struct gpupart_topology *topo)
{
	unsigned int largest = 1;

	for (unsigned int g = 0; g < gpupart_topology_nr_gpcs(topo); g++) {
		unsigned int nr = gpupart_tpcset_count(&gpupart_topology_gpc(topo, g)->tpcs);

		largest = nr > largest ? nr : largest;
	}
	return largest;
}

static int plan_within(struct gpupart *gp, const struct gpupart_topology *topo,
		       const struct words *words, const struct gpupart_tpcset *within,
		       struct gpupart_tpcset *set)
{
	unsigned int gpc = largest_gpc(topo);
	struct gpupart_demand demand = {
		.name = "job", .min_tpcs = words->tpcs, .max_tpcs = words->tpcs,
		.gpcs = words->gpcs, .cluster = words->cluster,
	};
	struct gpupart_plan plan;
	int err;

	/*
	 * The set has at most the number of TPCs that Slurm counted. GPCs differ in size, so the
	 * set can have fewer TPCs. The difference is less than a GPC.
	 */
	if (words->gpcs)
		demand.min_tpcs = words->tpcs > gpc - 1 ? words->tpcs - (gpc - 1) : 1;
	if (gpupart_tpcset_empty(within))
		return -ENOSPC;
	err = gpupart_plan_make(gp, topo, within, &demand, 1, &plan);
	if (!err)
		*set = plan.tenants[0].set;
	return err;
}

/*
 * Makes a plan within one uGPU. Prefers a uGPU that has room for a cluster. Among several such
 * uGPUs, prefers the uGPU with the fewest free TPCs.
 */
static int plan_in_ugpu(struct gpupart *gp, const struct gpupart_topology *topo,
			const struct words *words, const struct gpupart_tpcset *within,
			struct gpupart_tpcset *set)
{
	unsigned int fewest = ~0u;
	bool holds = false;
	int err = -ENOSPC;

	for (unsigned int u = 0; u < gpupart_topology_nr_ugpus(topo); u++) {
		struct gpupart_tpcset half = gpupart_topology_ugpu(topo, u), found;
		unsigned int left;
		bool held;

		half = gpupart_tpcset_and(&half, within);
		left = gpupart_tpcset_count(&half);
		if (plan_within(gp, topo, words, &half, &found))
			continue;
		held = gpupart_set_cluster(topo, &found) >= GPUPART_PORTABLE_CLUSTER;
		if (held < holds || (held == holds && left >= fewest))
			continue;
		holds = held;
		fewest = left;
		*set = found;
		err = 0;
	}
	return err;
}

static int plan(const struct gpupart_topology *topo, const struct words *words,
		const struct gpupart_tpcset *within, struct gpupart_tpcset *set, char *why,
		size_t len)
{
	struct gpupart *gp;
	int err = gpupart_open(&gp);

	if (err) {
		snprintf(why, len, "no memory");
		return err;
	}
	err = words->ugpu ? plan_in_ugpu(gp, topo, words, within, set)
			  : plan_within(gp, topo, words, within, set);
	if (err)
		snprintf(why, len, "%s", gpupart_error(gp));
	gpupart_close(gp);
	return err;
}

/* Returns the largest possible number of TPCs at this moment, or 0. */
static unsigned int would_do(const struct gpupart_topology *topo, const struct words *words,
			     const struct gpupart_tpcset *within)
{
	struct words less = *words;
	struct gpupart_tpcset set;
	char why[512];

	while (--less.tpcs)
		if (!plan(topo, &less, within, &set, why, sizeof(why)))
			return less.tpcs;
	return 0;
}

static void say_kind(const struct words *words, char *text, size_t len)
{
	int n = snprintf(text, len, "%s%s", words->gpcs ? " in whole GPCs" : "",
			 words->ugpu ? " in one uGPU" : "");

	if (words->cluster && n >= 0 && (size_t)n < len)
		snprintf(text + n, len - n, " with room for clusters of %u blocks", words->cluster);
}

/* The function is slow, because it makes many plans. So the caller must not hold the lock. */
static void say_refused(const struct node_gpu *board, const struct words *words,
			const struct gpupart_tpcset *within, char *why, size_t len)
{
	char list[GPUPART_TPCSET_STRLEN], kind[128], instead[256] = "";
	unsigned int less = would_do(board->topo, words, within);
	struct words plain = { .tpcs = words->tpcs };
	struct gpupart_tpcset set;
	char unused[512];

	say_kind(words, kind, sizeof(kind));
	gpupart_tpcset_format_list(within, list, sizeof(list));
	if (less)
		snprintf(instead, sizeof(instead), "; tpcs=%u%s would be possible now", less, kind);
	if (*kind && !plan(board->topo, &plain, within, &set, unused, sizeof(unused)))
		snprintf(instead + strlen(instead), sizeof(instead) - strlen(instead),
			 "; tpcs=%u without conditions would be possible now", words->tpcs);
	snprintf(why, len, "there are no %u free TPCs%s on GPU %s: %u are free, TPCs %.160s%s",
		 words->tpcs, kind, board->pci, gpupart_tpcset_count(within),
		 *list ? list : "-", instead);
}

/*
 * Chooses the set and the memory. If not enough TPCs or memory are free, returns false. The
 * caller must hold the lock.
 */
static bool place(const struct node_gpu *board, const struct words *words,
		  const struct taken *taken, const struct gpupart_tpcset *within,
		  struct gpupart_grant *grant)
{
	if (taken->memory + words->memory > board->memory && words->memory) {
		snprintf(grant->why, sizeof(grant->why),
			 "there are no %llu free MiB on GPU %s: other jobs have %llu of its %llu MiB",
			 (unsigned long long)(words->memory / MIB), board->pci,
			 (unsigned long long)(taken->memory / MIB),
			 (unsigned long long)(board->memory / MIB));
		return false;
	}
	if (plan(board->topo, words, within, &grant->set, grant->why, sizeof(grant->why))) {
		memset(&grant->set, 0, sizeof(grant->set));
		grant->why[0] = 0;
		return false;
	}
	grant->memory = words->memory;
	return true;
}

static int give_on(const struct allocate_job *job, const struct node_gpu *board,
		   struct gpupart_grant *grant, char *why, size_t len)
{
	struct gpupart_tpcset within = gpupart_topology_all(board->topo);
	struct gpupart_grant own;
	struct taken taken;
	bool placed = false;
	int fd, err;

	fd = node_lock(NODE_LOCK, job->again ? 0 : LOCK_SECONDS, why, len);
	if (fd < 0)
		return fd;
	err = look(grant->id, board->pci, &taken, &own);
	/*
	 * Keep an existing grant of this job in two cases. In the first case, the grant has a
	 * different version, so its request is not known. In the second case, the grant has the
	 * same request, so the prolog runs for the second time. The grant of an older job with
	 * the same number has a different user or a different request.
	 */
	if (!err && own.id[0] && own.uid == job->uid && allocate_is_granted(&own) &&
	    (own.other_version || (!strcmp(own.asked, grant->asked) &&
				   !strcmp(own.pci, grant->pci)))) {
		*grant = own;
		close(fd);
		return 0;
	}
	within = gpupart_tpcset_andnot(&within, &taken.tpcs);
	if (!err)
		placed = place(board, job->words, &taken, &within, grant);
	if (placed)
		err = gpupart_grant_put(NULL, grant);
	close(fd);
	if (!err && !placed && job->again)
		*grant = own;
	/* A refusal does not affect other jobs, so no lock is needed. */
	if (!err && !placed && !job->again) {
		if (!*grant->why)
			say_refused(board, job->words, &within, grant->why, sizeof(grant->why));
		err = gpupart_grant_put(NULL, grant);
	}
	if (err)
		snprintf(why, len, "its grant cannot be written below " GPUPART_GRANT_ROOT ": %s",
			 err == -EPROTO ?
			 "another version of gpupart wrote a grant for a job with this number; 'gpupart slurm-node --clean' removes those of ended jobs"
			 : strerror(-err));
	return err;
}

static void name_grant(const struct allocate_job *job, struct gpupart_grant *grant)
{
	memset(grant, 0, sizeof(*grant));
	name_job(job->job, grant);
	grant->uid = job->uid;
	grant->strict = job->strict;
	/* Write the whole text of the request, because a waiting task reads it again. */
	_Static_assert(sizeof(grant->asked) >= WORDS_LEN, "the option was read, so it fits");
	snprintf(grant->asked, sizeof(grant->asked), "%s", job->asked);
}

static int note_refused(const struct gpupart_grant *grant, char *why, size_t len)
{
	int err = gpupart_grant_put(NULL, grant);

	if (err)
		snprintf(why, len, "%s, and this cannot be recorded: %s", grant->why,
			 strerror(-err));
	return err;
}

int allocate_refuse(const struct allocate_job *job, const char *because, char *why, size_t len)
{
	struct gpupart_grant grant;

	name_grant(job, &grant);
	snprintf(grant.why, sizeof(grant.why), "%s", because);
	return note_refused(&grant, why, len);
}

int allocate_job(const struct allocate_job *job, struct gpupart_grant *grant, char *why, size_t len)
{
	struct node_gpu board = { 0 };
	int err;

	name_grant(job, grant);
	if (job->gpu < 0) {
		snprintf(grant->why, sizeof(grant->why), "%s",
			 "Slurm counted no TPCs for this job: check that slurmctld's job_submit.lua calls gpupart.lua");
		return note_refused(grant, why, len);
	}
	err = boards_open(job->gpu, &board, grant->why, sizeof(grant->why));
	if (err) {
		snprintf(why, len, "%s", grant->why);
		note_refused(grant, why, len);
		return err;
	}
	snprintf(grant->pci, sizeof(grant->pci), "%s", board.pci);
	snprintf(grant->source, sizeof(grant->source), "%s", board.source);
	snprintf(grant->key, sizeof(grant->key), "%s", board.key);
	grant->nr_tpcs = gpupart_topology_nr_tpcs(board.topo);
	err = give_on(job, &board, grant, why, len);
	boards_close(&board);
	return err;
}

int allocate_find(unsigned int job, struct gpupart_grant *grant)
{
	struct gpupart_grant *list, wanted;
	int nr = list_grants(&list), err = nr < 0 ? nr : -ESRCH;

	name_job(job, &wanted);
	for (int i = 0; err && i < nr; i++)
		if (!strcmp(list[i].id, wanted.id)) {
			*grant = list[i];
			err = 0;
		}
	free(list);
	return err;
}

void allocate_wait(struct gpupart_grant *grant, bool first)
{
	struct timespec now, pause = { .tv_nsec = FIRST_PAUSE_NS };
	struct allocate_job job = { .uid = grant->uid, .asked = grant->asked,
				.strict = grant->strict, .again = true };
	char why[512], asked[sizeof(grant->asked)];
	struct node_gpu board;
	struct words words;
	long next_ns;
	int err = 0;
	time_t end;

	snprintf(asked, sizeof(asked), "%s", grant->asked);
	if (words_read(asked, &words, why, sizeof(why)) || !*grant->pci ||
	    boards_find(grant->pci, &board, why, sizeof(why)))
		return;
	job.job = atoi(grant->name);
	job.gpu = board.number;
	job.words = &words;
	job.asked = asked;
	/* Use a monotonic clock, because the time of day may change during the wait. */
	clock_gettime(CLOCK_MONOTONIC, &now);
	end = now.tv_sec + words.wait;
	while (words.wait && !allocate_is_granted(grant) && now.tv_sec <= end &&
	       (!err || err == -EBUSY)) {
		struct gpupart_grant found = *grant;

		nanosleep(&pause, NULL);
		/* Increase the pause each time, so that waiting jobs do not delay other jobs. */
		next_ns = 2 * pause.tv_nsec;
		pause.tv_nsec = next_ns < MOST_PAUSE_NS ? next_ns : MOST_PAUSE_NS;
		err = first ? allocate_job(&job, &found, why, sizeof(why))
			    : allocate_find(job.job, &found);
		if (!err)
			*grant = found;
		clock_gettime(CLOCK_MONOTONIC, &now);
	}
}

int give_back(unsigned int job, char *why, size_t len)
{
	const char *state;
	struct gpupart_grant grant;
	struct left left = { NULL, 0 };
	struct gpupart *gp;
	unsigned int nr_left;
	int err = allocate_find(job, &grant);

	if (err == -ESRCH)
		return 0;
	if (err) {
		snprintf(why, len, GPUPART_GRANT_ROOT ": %s", strerror(-err));
		return err;
	}
	nr_left = left_kill(&left, job, &grant, &state);
	free(left.list);
	if (nr_left) {
		snprintf(why, len, "%u of its processes %s: its grant is kept", nr_left,
			 state);
		return -EBUSY;
	}
	err = gpupart_open(&gp);
	if (err) {
		snprintf(why, len, "no memory");
		return err;
	}
	err = gpupart_grant_drop(gp, grant.id);
	if (err)
		snprintf(why, len, "%s", gpupart_error(gp));
	gpupart_close(gp);
	return err;
}
