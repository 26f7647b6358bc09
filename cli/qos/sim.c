// SPDX-License-Identifier: MIT
/*
 * gpupart qos sim: drives the policy with the simulated pipeline. The streams of a scenario are the
 * tenants. In each epoch, the pipeline runs with the sets of the last decision.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "cli/qos/qos.h"
#include "cli/sim/scenario.h"
#include "cli/sim/scenario_files.h"
#include "cli/util/alloc.h"
#include "cli/util/message.h"

#define KNOWN_RUNS	5	/* number of runs of a kernel after which its longest time is
				 * known */

/* Runs of a borrower's kernel, without and with lent TPCs. */
struct seen {
	uint64_t longest_ns[2];
	unsigned int runs;	/* without */
};

/* Sums over the launches of one tenant in an epoch. */
struct taken {
	uint64_t work;			/* thousandths of blocks */
	uint64_t *latencies;
	unsigned int nr, room;
	uint64_t borrowed;		/* launches on lent TPCs */
	uint64_t within;		/* launches within the latency goal */
};

struct plant {
	struct yaml yaml;
	struct qos_setup setup;
	struct qos_session session;
	unsigned int phase, nr_run;	/* current phase; number of epochs in this phase so far */
	struct scenario scenario;	/* the scenario of the current phase */
	struct pipe_gpu gpu;
	struct pipe_stream *streams;
	unsigned int tenant_of[PIPE_MAX_PROGRAMS * 4];	/* by stream; QOS_MAX_TENANTS: no tenant */
	struct pipe_set sets[QOS_MAX_TENANTS];
	struct pipe_set wide[QOS_MAX_TENANTS];	/* the sets for launches with clusters */
	/* number of TPCs of one virtual GPC that the tenant's largest cluster needs */
	unsigned int cluster[QOS_MAX_TENANTS];
	struct pipe_set lent[QOS_MAX_TENANTS];	/* TPCs of a borrower and of its lender */
	uint64_t limit_ns[QOS_MAX_TENANTS];	/* for a borrower's kernels; 0: none */
	struct seen *seen[QOS_MAX_TENANTS];	/* by kernel, in this phase and under one set */
	struct gpupart_tpcset seen_under[QOS_MAX_TENANTS];	/* that set */
	bool *may_borrow[QOS_MAX_TENANTS];	/* by kernel */
	struct taken taken[QOS_MAX_TENANTS];
	struct pipe_result result;
};

static void take_block(void *user, const struct pipe_block *block)
{
	struct plant *plant = user;
	unsigned int tenant = plant->tenant_of[block->stream];
	uint64_t stop = plant->setup.epoch_ns, all = block->end - block->start;

	if (tenant == QOS_MAX_TENANTS || block->start >= stop)
		return;
	/*
	 * If the epoch ends during the block, count only the part of the block before the end of
	 * the epoch.
	 */
	if (block->end <= stop)
		plant->taken[tenant].work += 1000;
	else if (all)
		plant->taken[tenant].work += 1000 * (stop - block->start) / all;
}

static void find_may_borrow(struct plant *plant, unsigned int tenant, unsigned int kernel)
{
	const struct seen *seen = &plant->seen[tenant][kernel];
	uint64_t limit = plant->limit_ns[tenant];

	plant->may_borrow[tenant][kernel] = limit && seen->runs >= KNOWN_RUNS &&
					    seen->longest_ns[0] <= limit &&
					    seen->longest_ns[1] <= limit;
}

static void learn_time(struct plant *plant, unsigned int tenant, const struct pipe_launch *launch)
{
	struct seen *seen = &plant->seen[tenant][launch->kernel];
	uint64_t ns = launch->end - launch->issued, *longest = &seen->longest_ns[launch->lent];

	*longest = ns > *longest ? ns : *longest;
	seen->runs += !launch->lent;
	plant->taken[tenant].borrowed += launch->lent;
	find_may_borrow(plant, tenant, launch->kernel);
}

static void take_launch(void *user, const struct pipe_launch *launch)
{
	struct plant *plant = user;
	unsigned int tenant = plant->tenant_of[launch->stream];
	struct taken *taken;

	if (tenant == QOS_MAX_TENANTS || launch->end > plant->setup.epoch_ns ||
	    launch->kernel == UINT32_MAX)
		return;
	learn_time(plant, tenant, launch);
	taken = &plant->taken[tenant];
	if (taken->nr == taken->room) {
		taken->room = 2 * taken->room + 64;
		taken->latencies = alloc_resized(taken->latencies, taken->room,
						 sizeof(*taken->latencies));
	}
	taken->latencies[taken->nr++] = launch->end - launch->asked;
	taken->within += launch->end - launch->asked <= plant->setup.tenants[tenant].latency_ns;
}

/* ------------------------------------------------------------------------ a phase */

static unsigned int tenant_named(const struct qos_setup *setup, const char *stream)
{
	for (unsigned int i = 0; i < setup->nr; i++)
		if (!strcmp(setup->specs[i].stream, stream))
			return i;
	return QOS_MAX_TENANTS;
}

static const struct pipe_stream *stream_of(const struct plant *plant, unsigned int tenant)
{
	const struct pipe_stream *s = plant->scenario.pipe.streams;

	while (strcmp(s->name, plant->setup.specs[tenant].stream))
		s++;
	return s;
}

/* As in a live run, TPCs are lent only under MPS, and only to another process. */
static void check_lending(struct plant *plant)
{
	const struct qos_setup *setup = &plant->setup;

	for (unsigned int i = 0, lender; i < setup->nr && !plant->yaml.failed; i++) {
		lender = qos_lender_of(setup, i);
		if (lender == QOS_MAX_TENANTS)
			continue;
		if (!plant->scenario.pipe.gpus[0].mps)
			yaml_fail(&plant->yaml, NULL,
				  "lend: TPCs are lent only under MPS: add 'mps: yes' to gpu");
		else if (stream_of(plant, i)->process == stream_of(plant, lender)->process)
			yaml_fail(&plant->yaml, NULL,
				  "lend: %s and %s are in the same process, which cannot lend TPCs to itself",
				  setup->tenants[i].name, setup->tenants[lender].name);
	}
}

/* Checks that each tenant has a stream, and that the scenario has one GPU. */
static bool check_scenario(struct plant *plant)
{
	const struct pipe_scenario *pipe = &plant->scenario.pipe;
	const struct qos_setup *setup = &plant->setup;
	unsigned int i, s;

	if (pipe->nr_gpus != 1)
		yaml_fail(&plant->yaml, NULL, "gpus: qos needs 1 GPU, not %u", pipe->nr_gpus);
	if (pipe->nr_streams > PIPE_MAX_PROGRAMS * 4)
		yaml_fail(&plant->yaml, NULL, "streams: there are more than %d streams",
			  PIPE_MAX_PROGRAMS * 4);
	for (i = 0; i < setup->nr && !plant->yaml.failed; i++) {
		for (s = 0; s < pipe->nr_streams; s++)
			if (!strcmp(pipe->streams[s].name, setup->specs[i].stream))
				break;
		plant->yaml.failed = s == pipe->nr_streams;
		if (plant->yaml.failed)
			usage_error("%s:%d: %s: there is no stream '%s'", setup->path,
				    setup->specs[i].line, setup->tenants[i].name,
				    setup->specs[i].stream);
	}
	if (!plant->yaml.failed)
		check_lending(plant);
	return !plant->yaml.failed;
}

static void phase_free(struct plant *plant)
{
	scenario_free(&plant->scenario);
	free(plant->streams);
	plant->streams = NULL;
	for (unsigned int i = 0; i < QOS_MAX_TENANTS; i++) {
		free(plant->seen[i]);
		free(plant->may_borrow[i]);
		plant->seen[i] = NULL;
		plant->may_borrow[i] = NULL;
	}
}

/*
 * Does the same as the library. If a launch has a cluster, and no virtual GPC of the set has room
 * for the cluster, the launch gets more TPCs. In a graph, all kernels get more TPCs. If a step
 * names a set, this set is not changed.
 */
static void find_clusters(struct plant *plant, const struct pipe_step *steps, unsigned int nr)
{
	const struct pipe_scenario *pipe = &plant->scenario.pipe;
	unsigned int largest, n, tenant;

	for (; nr; nr--, steps++) {
		const struct pipe_graph *graph = NULL;

		tenant = plant->tenant_of[steps->stream];
		largest = 0;
		if (steps->kind == PIPE_LOOP)
			find_clusters(plant, steps->body, steps->nr_body);
		if (steps->kind == PIPE_LAUNCH)
			largest = pipe->kernels[steps->what].cluster;
		if (steps->kind == PIPE_GRAPH)
			graph = &pipe->graphs[steps->what];
		for (n = 0; graph && n < graph->nr_nodes; n++)
			if (pipe->kernels[graph->nodes[n].kernel].cluster > largest)
				largest = pipe->kernels[graph->nodes[n].kernel].cluster;
		if (!largest || tenant == QOS_MAX_TENANTS || steps->set)
			continue;
		/* This plant owns the scenario, so it may change the steps. */
		((struct pipe_step *)steps)->set = &plant->wide[tenant];
		n = plant->gpu.map.nr_sms / plant->gpu.map.nr_tpcs;
		largest = (largest + n - 1) / n;
		if (largest > plant->cluster[tenant])
			plant->cluster[tenant] = largest;
	}
}

/* Returns 0 or an exit status. */
static int phase_make(struct plant *plant, unsigned int run)
{
	struct pipe_scenario *pipe = &plant->scenario.pipe;
	unsigned int s, tenant;

	phase_free(plant);
	if (!scenario_make(&plant->scenario, &plant->yaml, run) || !check_scenario(plant))
		return EXIT_USAGE;
	plant->gpu = pipe->gpus[0];
	plant->gpu.mps = true;
	pipe->gpus = &plant->gpu;
	pipe->stop_ns = plant->setup.epoch_ns;
	plant->streams = alloc_zeroed(pipe->nr_streams, sizeof(*plant->streams));
	memcpy(plant->streams, pipe->streams, pipe->nr_streams * sizeof(*plant->streams));
	for (s = 0; s < pipe->nr_streams; s++) {
		tenant = tenant_named(&plant->setup, plant->streams[s].name);
		plant->tenant_of[s] = tenant;
		if (tenant < QOS_MAX_TENANTS)
			plant->streams[s].set = &plant->sets[tenant];
	}
	for (tenant = 0; tenant < plant->setup.nr; tenant++) {
		plant->seen[tenant] = alloc_zeroed(pipe->nr_kernels + 1, sizeof(struct seen));
		plant->may_borrow[tenant] = alloc_zeroed(pipe->nr_kernels + 1, sizeof(bool));
	}
	pipe->streams = plant->streams;
	memset(plant->cluster, 0, sizeof(plant->cluster));
	for (s = 0; s < pipe->nr_programs; s++)
		find_clusters(plant, pipe->programs[s].steps, pipe->programs[s].nr_steps);
	return 0;
}

/* ------------------------------------------------------------------------ an epoch */

static int by_time(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static uint64_t percentile(struct taken *taken, unsigned int thousandths)
{
	uint64_t rank;

	if (!taken->nr)
		return 0;
	qsort(taken->latencies, taken->nr, sizeof(*taken->latencies), by_time);
	rank = ((uint64_t)taken->nr * thousandths + 999) / 1000;
	return taken->latencies[rank ? rank - 1 : 0];
}

static int run_epoch(struct plant *plant)
{
	struct pipe_watch watch = { .user = plant, .block = take_block, .launch = take_launch };
	int err;

	for (unsigned int i = 0; i < plant->setup.nr; i++) {
		plant->taken[i].work = 0;
		plant->taken[i].nr = 0;
		plant->taken[i].borrowed = 0;
		plant->taken[i].within = 0;
	}
	err = pipe_run(&plant->scenario.pipe, &watch, &plant->result);
	if (err)
		return cmd_fail(cmd_name, err == -EINVAL ? EXIT_USAGE : EXIT_FAILED, "%s:%d: %s",
				plant->yaml.path, plant->result.line, plant->result.why);
	return 0;
}

/*
 * Returns the number of TPCs of virtual GPC @vgpc in @set. If @set is NULL, counts all TPCs of
 * @vgpc on the GPU.
 */
static unsigned int nr_in(const struct qos_board *board, const struct gpupart_tpcset *set,
			  unsigned int vgpc)
{
	unsigned int nr = 0;

	for (unsigned int t = 0; t < board->nr_tpcs; t++)
		nr += board->vgpc[t] == vgpc && (!set || gpupart_tpcset_has(set, t));
	return nr;
}

/*
 * Sets the TPCs of tenant @i. If launches with clusters need a larger set, they get the smallest
 * set with room for the clusters.
 */
static void give_set(struct plant *plant, unsigned int i, const struct gpupart_tpcset *set)
{
	const struct qos_board *board = &plant->session.board;
	unsigned int nr = plant->cluster[i], best = QOS_UNKNOWN_PLACE + 1, has = 0;
	struct gpupart_tpcset wide = *set;

	for (unsigned int vgpc = 0; vgpc <= QOS_UNKNOWN_PLACE; vgpc++)
		if (nr_in(board, NULL, vgpc) >= nr &&
		    (best > QOS_UNKNOWN_PLACE || nr_in(board, set, vgpc) > has)) {
			best = vgpc;
			has = nr_in(board, set, vgpc);
		}
	for (unsigned int t = 0; t < board->nr_tpcs && has < nr; t++)
		if (board->vgpc[t] == best && !gpupart_tpcset_has(&wide, t)) {
			gpupart_tpcset_add(&wide, t);
			has++;
		}
	memcpy(plant->sets[i].allowed, set->allowed, sizeof(set->allowed));
	memcpy(plant->wide[i].allowed, wide.allowed, sizeof(wide.allowed));
}

/*
 * Returns whether borrower @i has its turn on the TPCs of @lender. The length of a turn, in epochs,
 * is proportional to the borrower's weight.
 */
static bool has_turn(const struct plant *plant, unsigned int i, unsigned int lender)
{
	const struct qos_setup *setup = &plant->setup;
	unsigned int all = 0, before = 0, n, at;

	for (n = 0; n < setup->nr; n++) {
		if (qos_lender_of(setup, n) != lender)
			continue;
		all += setup->tenants[n].weight ?: 1;
		if (n < i)
			before = all;
	}
	if (!all)
		return false;
	at = plant->session.now.epoch % all;
	return at >= before && at < before + (setup->tenants[i].weight ?: 1);
}

/* If the last decision allows it, lends TPCs to tenant @i. */
static void lend(struct plant *plant, unsigned int i)
{
	const struct pipe_scenario *pipe = &plant->scenario.pipe;
	unsigned int lender = qos_lender_of(&plant->setup, i), s, from;
	const struct qos_verdict *tenants = plant->session.now.tenants;
	struct gpupart_tpcset both;

	if (lender == QOS_MAX_TENANTS)
		return;
	both = gpupart_tpcset_or(&tenants[i].set, &tenants[lender].set);
	memcpy(plant->lent[i].allowed, both.allowed, sizeof(both.allowed));
	if (!gpupart_tpcset_equal(&plant->seen_under[i], &tenants[i].set))
		memset(plant->seen[i], 0, pipe->nr_kernels * sizeof(struct seen));
	plant->seen_under[i] = tenants[i].set;
	plant->limit_ns[i] = has_turn(plant, i, lender) ? tenants[lender].lend_ns : 0;
	for (s = 0; s < pipe->nr_kernels; s++)
		find_may_borrow(plant, i, s);
	for (from = 0; plant->tenant_of[from] != lender; from++)
		;
	for (s = 0; s < pipe->nr_streams; s++)
		if (plant->tenant_of[s] == i) {
			plant->streams[s].lender = from + 1;
			plant->streams[s].lent = &plant->lent[i];
			plant->streams[s].may_borrow = plant->may_borrow[i];
		}
}

/* Returns whether programs could borrow TPCs of tenant @i in the epoch. */
static bool was_lent(const struct plant *plant, unsigned int i)
{
	return plant->setup.tenants[i].lend && plant->session.now.tenants[i].lend_ns;
}

static int measure(struct qos_session *session, struct qos_measured *measured)
{
	struct plant *plant = session->user;
	const struct qos_setup *setup = &plant->setup;
	int status = 0;
	unsigned int i;

	/* Each epoch begins on an idle GPU, so all TPCs have drained. */
	for (i = 0; i < setup->nr && session->now.swapping; i++)
		measured[i].drained = true;
	if (session->now.swapping)
		return 0;
	if (plant->nr_run == setup->phases[plant->phase].epochs) {
		plant->nr_run = 0;
		session->over = ++plant->phase == setup->nr_phases;
		if (session->over)
			return 0;
		status = phase_make(plant, setup->phases[plant->phase].run);
	}
	for (i = 0; i < setup->nr; i++)
		give_set(plant, i, &session->now.tenants[i].set);
	for (i = 0; i < setup->nr && !status; i++)
		lend(plant, i);
	if (!status)
		status = run_epoch(plant);
	for (i = 0; i < setup->nr; i++)
		measured[i] = (struct qos_measured){
			.valid = true, .ns = setup->epoch_ns, .work = plant->taken[i].work,
			.nr = plant->taken[i].nr, .lent = was_lent(plant, i),
			.borrowed = plant->taken[i].borrowed,
			.stopped = setup->tenants[i].lend && !plant->taken[i].work,
			.latency_ns = percentile(&plant->taken[i], setup->tenants[i].percentile),
			.answered = setup->tenants[i].latency_ns ? plant->taken[i].nr : 0,
			.within = plant->taken[i].within,
		};
	session->time_ns += setup->epoch_ns;
	plant->nr_run++;
	return status;
}

/*
 * Copies the @nr steps to *@room, except for steps that submit work to streams of other tenants.
 * *@room has room for @nr steps. Returns the number of copied steps.
 */
static unsigned int steps_alone(const struct plant *plant, unsigned int i,
				const struct pipe_step *steps, unsigned int nr,
				struct pipe_step **room)
{
	struct pipe_step *alone = *room;
	unsigned int kept = 0;

	*room += nr;
	for (; nr; nr--, steps++) {
		bool work = steps->kind == PIPE_LAUNCH || steps->kind == PIPE_GRAPH ||
			    steps->kind == PIPE_COPY;

		if (work && plant->tenant_of[steps->stream] != i)
			continue;
		alone[kept] = *steps;
		if (steps->kind == PIPE_LOOP) {
			alone[kept].body = *room;
			alone[kept].nr_body = steps_alone(plant, i, steps->body, steps->nr_body,
							  room);
			if (!alone[kept].nr_body)
				continue;
		}
		kept++;
	}
	return kept;
}

/*
 * Measures the solo speed of each tenant with a goal of alpha: runs the tenant's stream alone on
 * all TPCs, in the first phase.
 */
static int measure_alone(struct plant *plant)
{
	struct gpupart_tpcset all = gpupart_tpcset_first(plant->gpu.map.nr_tpcs);
	const struct pipe_scenario whole = plant->scenario.pipe;
	struct pipe_scenario *pipe = &plant->scenario.pipe;
	struct pipe_program *alone = alloc_zeroed(whole.nr_programs + 1, sizeof(*alone));
	struct pipe_step *steps = alloc_zeroed(plant->scenario.nr_steps + 1, sizeof(*steps));
	unsigned int i, p;
	int status = 0;

	for (i = 0; i < plant->setup.nr && !status; i++) {
		struct qos_tenant *t = &plant->setup.tenants[i];
		struct pipe_step *room = steps;

		if (t->goal != QOS_ALPHA || t->alone)
			continue;
		for (p = 0; p < whole.nr_programs; p++) {
			alone[p] = whole.programs[p];
			alone[p].steps = room;
			alone[p].nr_steps = steps_alone(plant, i, whole.programs[p].steps,
							whole.programs[p].nr_steps, &room);
		}
		give_set(plant, i, &all);
		pipe->programs = alone;
		status = run_epoch(plant);
		t->alone = (unsigned __int128)plant->taken[i].work * 1000000000 /
			   plant->setup.epoch_ns;
		if (!status && !t->alone)
			status = usage_error("%s:%d: %s does no work in an epoch, even if it runs "
				"alone",
					     plant->yaml.path, plant->setup.specs[i].line, t->name);
	}
	pipe->programs = whole.programs;
	free(alone);
	free(steps);
	return status;
}

static void find_board(const struct pipe_map *map, struct qos_board *board)
{
	unsigned int sms = map->nr_sms / map->nr_tpcs;

	*board = (struct qos_board){
		.nr_tpcs = map->nr_tpcs,
		.cluster_tpcs = (GPUPART_PORTABLE_CLUSTER + sms - 1) / sms,
	};
	for (unsigned int s = 0; s < map->nr_sms; s++) {
		board->gpc[map->sms[s].tpc] = map->sms[s].gpc;
		board->ugpu[map->sms[s].tpc] = map->sms[s].ugpu;
		board->vgpc[map->sms[s].tpc] = map->sms[s].vgpc;
	}
}

/*
 * Finds the GPU of the first phase, and checks that all other phases have the same GPU.
 * Afterwards the first phase is the current phase.
 */
static int find_gpu(struct plant *plant)
{
	const struct qos_setup *setup = &plant->setup;
	struct qos_board *first = &plant->session.board, board;
	const char *title = "";
	int status;

	for (unsigned int p = 0; p < setup->nr_phases; p++) {
		status = phase_make(plant, setup->phases[p].run);
		if (status)
			return status;
		find_board(&plant->gpu.map, p ? &board : first);
		first->shapes = setup->shapes;
		if (!p)
			title = plant->gpu.chip.title;
		else if (strcmp(plant->gpu.chip.title, title) || board.nr_tpcs != first->nr_tpcs)
			return usage_error(
				"%s:%d: phase %u runs on %s with %u TPCs, but phase 1 runs on %s "
				"with %u TPCs: all phases must use one GPU",
				setup->path, setup->phases[p].line, p + 1, plant->gpu.chip.title,
				board.nr_tpcs, title, first->nr_tpcs);
		else if (memcmp(board.gpc, first->gpc, sizeof(board.gpc)) ||
			 memcmp(board.ugpu, first->ugpu, sizeof(board.ugpu)))
			return usage_error(
				"%s:%d: phase %u has TPCs in other GPCs than phase 1: all phases "
				"must use one GPU",
				setup->path, setup->phases[p].line, p + 1);
	}
	snprintf(plant->session.gpu, sizeof(plant->session.gpu), "%s (simulated)", title);
	return phase_make(plant, setup->phases[0].run);
}

/* ----------------------------------------------------------------------------- all */

static int simulate(struct plant *plant)
{
	yaml_node_t *node = yaml_get(&plant->yaml, yaml_root(&plant->yaml), "qos");
	int status;

	if (!node)
		yaml_fail(&plant->yaml, NULL, "has no 'qos:' part with tenants");
	if (!node || !qos_setup_read(&plant->setup, &plant->yaml, node, QOS_FILE_SCENARIO))
		return EXIT_USAGE;
	status = find_gpu(plant) ?: measure_alone(plant);
	qos_setup_floors(&plant->setup, &plant->session.board);
	return status ?: qos_session_run(&plant->session);
}

int qos_sim(const struct args *args, const struct qos_options *options)
{
	static const struct qos_driver driver = { .command = "qos sim", .measure = measure };
	static struct plant plant;
	char path[PATH_MAX];
	int status;

	plant.session = (struct qos_session){
		.args = args, .options = options, .driver = &driver, .user = &plant,
		.setup = &plant.setup, .simulated = true,
	};
	status = scenario_find(args->program[0], path, sizeof(path));
	if (status)
		return status;
	status = yaml_open(&plant.yaml, "", path, "a scenario");
	if (!status) {
		status = simulate(&plant);
		qos_setup_free(&plant.setup);
		phase_free(&plant);
		for (unsigned int i = 0; i < QOS_MAX_TENANTS; i++)
			free(plant.taken[i].latencies);
		yaml_close(&plant.yaml);
	}
	return status;
}
