// SPDX-License-Identifier: MIT
/*
 * Checks a scenario before its run, and rejects a scenario that can never finish. Examples are a
 * block that fits on no SM, an empty set, a cluster or cooperative grid that is too large for the
 * GPU, and an event that no program records. Also rejects a run that would exceed the range of
 * the clock or take unreasonably long.
 */
#include <errno.h>
#include "sim/pipe/pipe.h"

/* Adds and multiplies numbers. The results are limited to UINT64_MAX. */
static uint64_t plus(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t times(uint64_t a, uint64_t b)
{
	return b && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

/* ------------------------------------------------------------------------ launches */

static int check_block(struct pipe *pipe, const struct pipe_chip *chip,
		       const struct pipe_kernel *kernel, int line)
{
	if (kernel->threads > chip->block_threads)
		return pipe_error(pipe, -EINVAL, line,
				  "kernel %s: a block of %u threads is too large: the %s allows %u",
				  kernel->name, kernel->threads, chip->name, chip->block_threads);
	if (chip->block_shared && kernel->shared > chip->block_shared)
		return pipe_error(pipe, -EINVAL, line, "kernel %s: a block with %u bytes of "
				  "shared memory fits on no SM of the %s, which allows %u bytes",
				  kernel->name, kernel->shared, chip->name, chip->block_shared);
	if (!pipe_occupancy(chip, kernel))
		return pipe_error(pipe, -EINVAL, line, "kernel %s: a block of %u threads, "
				  "%u registers a thread and %u bytes of shared memory fits on "
				  "no SM of the %s", kernel->name, kernel->threads,
				  kernel->registers ? kernel->registers : 32, kernel->shared,
				  chip->name);
	if (kernel->cluster > chip->cluster)
		return pipe_error(pipe, -EINVAL, line,
				  chip->cluster ? "kernel %s: clusters of %u blocks: the %s allows "
				  "at most %u" :
				  "kernel %s: clusters of %u blocks: the %s has no clusters",
				  kernel->name, kernel->cluster, chip->name, chip->cluster);
	if (kernel->cluster && kernel->blocks % kernel->cluster)
		return pipe_error(pipe, -EINVAL, line,
				  "kernel %s: %llu blocks are not a multiple of the cluster size "
				  "%u",
				  kernel->name, (unsigned long long)kernel->blocks,
				  kernel->cluster);
	return 0;
}

/*
 * Rejects a run time @ns that is too long. @ns is a lower limit: the waves run one after the
 * other, and each wave takes the solo time of one block.
 */
static int check_time(struct pipe *pipe, const struct pipe_step *step,
		      const struct pipe_kernel *kernel, uint64_t ns)
{
	if (ns <= PIPE_LAST_NS || pipe->scenario->stop_ns)
		return 0;
	return pipe_error(pipe, -EOVERFLOW, step->line, "kernel %s on stream %s: it takes longer "
			  "than 19 hours", kernel->name,
			  pipe->scenario->streams[step->stream].name);
}

static int check_launch(struct pipe *pipe, const struct pipe_step *step, unsigned int nr)
{
	const struct pipe_stream *stream = &pipe->scenario->streams[step->stream];
	const struct pipe_kernel *kernel = &pipe->scenario->kernels[nr];
	struct machine *machine = slices_machine(pipe, stream->gpu, stream->process);
	const struct pipe_set *set = step->set ? step->set : stream->set;
	uint64_t allowed[MAX_WORDS], any = 0, units, room;

	if (check_block(pipe, &machine->gpu->chip, kernel, step->line))
		return pipe->error;
	balance_mask(machine, set, allowed);
	for (unsigned int i = 0; i < MAX_WORDS; i++)
		any |= allowed[i];
	if (!any)
		return pipe_error(pipe, -EINVAL, step->line,
				  "kernel %s on stream %s: its set has no TPC of this GPU",
				  kernel->name, stream->name);
	units = kernel->cluster ? kernel->blocks / kernel->cluster : kernel->blocks;
	room = balance_capacity(machine, kernel, allowed);
	if (!room)
		return pipe_error(pipe, -EINVAL, step->line, "kernel %s on stream %s: a cluster "
				  "of %u blocks fits into no virtual GPC of its set",
				  kernel->name, stream->name, kernel->cluster);
	if (kernel->cooperative && room < units)
		return pipe_error(pipe, -EINVAL, step->line,
				  "kernel %s on stream %s: it is cooperative, but its set can "
				  "hold only %llu of its %llu %s at once",
				  kernel->name, stream->name,
				  (unsigned long long)room, (unsigned long long)units,
				  kernel->cluster ? "clusters" : "blocks");
	return check_time(pipe, step, kernel, times(divide_up(units, room),
						    machine->shapes[nr].ns));
}

static int check_graph(struct pipe *pipe, const struct pipe_step *step)
{
	const struct pipe_graph *graph = &pipe->scenario->graphs[step->what];

	for (unsigned int i = 0; i < graph->nr_nodes && !pipe->error; i++)
		check_launch(pipe, step, graph->nodes[i].kernel);
	return pipe->error;
}

/* -------------------------------------------------------------------------- events */

bool check_records(const struct pipe_step *steps, unsigned int nr, unsigned int event)
{
	for (unsigned int i = 0; i < nr; i++) {
		if (steps[i].kind == PIPE_RECORD && steps[i].what == event)
			return true;
		if (steps[i].kind == PIPE_LOOP && steps[i].amount &&
		    check_records(steps[i].body, steps[i].nr_body, event))
			return true;
	}
	return false;
}

static int check_wait(struct pipe *pipe, const struct pipe_step *step)
{
	const struct pipe_scenario *scenario = pipe->scenario;

	for (unsigned int i = 0; i < scenario->nr_programs; i++)
		if (check_records(scenario->programs[i].steps, scenario->programs[i].nr_steps,
				  step->what))
			return 0;
	return pipe_error(pipe, -EINVAL, step->line,
			  "event %s is waited for, but no program records it",
			  scenario->events[step->what]);
}

static int check_steps(struct pipe *pipe, const struct pipe_step *steps, unsigned int nr)
{
	for (unsigned int i = 0; i < nr && !pipe->error; i++)
		switch (steps[i].kind) {
		case PIPE_LAUNCH:
			check_launch(pipe, &steps[i], steps[i].what);
			break;
		case PIPE_GRAPH:
			check_graph(pipe, &steps[i]);
			break;
		case PIPE_WAIT:
		case PIPE_SYNC_EVENT:
			check_wait(pipe, &steps[i]);
			break;
		case PIPE_LOOP:
			check_steps(pipe, steps[i].body, steps[i].nr_body);
			break;
		default:
			break;
		}
	return pipe->error;
}

/* -------------------------------------------------------------------------- length */

/* Lower limits of the resources and times that a sequence of steps needs. */
struct length {
	uint64_t steps, blocks, ns;	/* @steps includes the rounds of loops; @ns is CPU time */
};

static uint64_t blocks_of(const struct pipe *pipe, const struct pipe_step *step)
{
	const struct pipe_graph *graph;
	uint64_t blocks = 0;

	if (step->kind == PIPE_LAUNCH)
		return pipe->scenario->kernels[step->what].blocks;
	if (step->kind != PIPE_GRAPH)
		return 0;
	graph = &pipe->scenario->graphs[step->what];
	for (unsigned int i = 0; i < graph->nr_nodes; i++)
		blocks = plus(blocks, pipe->scenario->kernels[graph->nodes[i].kernel].blocks);
	return blocks;
}

/*
 * Adds up the steps. Returns the first step at which the sum exceeds a limit. If the sum exceeds
 * no limit, returns NULL.
 */
static const struct pipe_step *add_up(const struct pipe *pipe, const struct pipe_step *steps,
				      unsigned int nr, uint64_t rounds, struct length *length)
{
	const struct pipe_step *most = NULL, *step;

	for (unsigned int i = 0; i < nr && !most; i++) {
		step = &steps[i];
		length->steps = plus(length->steps, rounds);
		if (step->kind == PIPE_LOOP) {
			most = add_up(pipe, step->body, step->nr_body, times(rounds, step->amount),
				      length);
			continue;
		}
		length->blocks = plus(length->blocks, times(rounds, blocks_of(pipe, step)));
		length->ns = plus(length->ns, times(rounds, cpu_cost(&pipe->scenario->host, step)));
		if (length->steps > PIPE_MOST_STEPS || length->blocks > PIPE_MOST_BLOCKS ||
		    length->ns > PIPE_LAST_NS)
			most = step;
	}
	return most;
}

static int check_length(struct pipe *pipe, const struct pipe_program *program)
{
	struct length length = { .ns = program->start_ns };
	const struct pipe_step *step;

	step = add_up(pipe, program->steps, program->nr_steps, 1, &length);
	/*
	 * Ignore steps after the end of the run. If the steps of a round take no time, the loop
	 * never ends.
	 */
	if (!step || (pipe->scenario->stop_ns && length.ns >= pipe->scenario->stop_ns))
		return 0;
	if (length.ns > PIPE_LAST_NS)
		return pipe_error(pipe, -EOVERFLOW, step->line,
				  "program %s: it takes longer than 19 hours", program->name);
	return pipe_error(pipe, -EOVERFLOW, step->line, "program %s: more than %llu %s",
			  program->name, length.steps > PIPE_MOST_STEPS ? PIPE_MOST_STEPS :
			  PIPE_MOST_BLOCKS, length.steps > PIPE_MOST_STEPS ? "steps" : "blocks");
}

int check_scenario(struct pipe *pipe)
{
	const struct pipe_scenario *scenario = pipe->scenario;

	for (unsigned int i = 0; i < scenario->nr_programs && !pipe->error; i++)
		check_steps(pipe, scenario->programs[i].steps, scenario->programs[i].nr_steps);
	for (unsigned int i = 0; i < scenario->nr_programs && !pipe->error; i++)
		check_length(pipe, &scenario->programs[i]);
	return pipe->error;
}
