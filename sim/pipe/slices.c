// SPDX-License-Identifier: MIT
/*
 * Time slices on one GPU. Without MPS, a context has all SMs for a time slice, or until it has no
 * more work. While another context has the GPU, the blocks of a context make no progress.
 */
#include <errno.h>
#include <stdlib.h>
#include "sim/pipe/pipe.h"

static struct machine *current(const struct slices *slices)
{
	return &slices->machines[slices->now];
}

/*
 * Returns the next context with work. The search begins after the current context. If no other
 * context has work, returns the current context.
 */
static unsigned int next_with_work(const struct slices *slices)
{
	unsigned int i, at;

	for (i = 1; i < slices->nr; i++) {
		at = (slices->now + i) % slices->nr;
		if (slices->machines[at].work)
			return at;
	}
	return slices->now;
}

static void stop(struct pipe *pipe, struct machine *machine)
{
	machine->active = false;
	if (machine->nr_running)
		machine_idle(pipe, machine);
	for (unsigned int i = 0; i < machine->gpu->map.nr_sms; i++)
		if (machine->sms[i].used)
			sm_freeze(pipe, &machine->sms[i]);
}

static void go_on(struct pipe *pipe, struct machine *machine)
{
	machine->active = true;
	if (machine->nr_running)
		machine_busy(pipe, machine);
	for (unsigned int i = 0; i < machine->gpu->map.nr_sms; i++)
		sm_thaw(pipe, &machine->sms[i]);
	machine_dirty(machine);
}

/* Called at the end of a slice or at the end of a switch. */
static void on_slice_end(struct pipe *pipe, struct queue_event *what)
{
	struct slices *slices = (struct slices *)what;
	const struct pipe_chip *chip = &current(slices)->gpu->chip;
	unsigned int next;

	if (slices->switching) {
		slices->switching = false;
		go_on(pipe, current(slices));
		queue_set(&pipe->queue, what, pipe->now + chip->slice_ns);
		return;
	}
	next = next_with_work(slices);
	if (next == slices->now)
		return;	/* the context keeps the GPU until another context has work */
	stop(pipe, current(slices));
	pipe->result->gpus[current(slices)->gpu_index].switches++;
	slices->now = next;
	slices->switching = true;
	queue_set(&pipe->queue, what, pipe->now + chip->switch_ns);
}

void slices_work_changed(struct pipe *pipe, struct machine *machine)
{
	struct slices *slices = &pipe->slices[machine->gpu_index];

	if (slices->nr == 1 || slices->switching)
		return;
	if (!current(slices)->work && next_with_work(slices) != slices->now)
		queue_set(&pipe->queue, &slices->queue_event, pipe->now);
	else if (machine != current(slices) && !slices->queue_event.at)
		queue_set(&pipe->queue, &slices->queue_event,
			  pipe->now + machine->gpu->chip.slice_ns);
}

struct machine *slices_machine(struct pipe *pipe, unsigned int gpu, unsigned int process)
{
	struct slices *slices = &pipe->slices[gpu];

	return &slices->machines[slices->nr == 1 ? 0 : process];
}

int slices_init(struct pipe *pipe, unsigned int gpu)
{
	struct slices *slices = &pipe->slices[gpu];

	slices->queue_event.come = on_slice_end;
	slices->nr = pipe->scenario->gpus[gpu].mps ? 1 : pipe->scenario->nr_processes;
	slices->nr += !slices->nr;	/* a GPU without processes still has one machine */
	slices->machines = calloc(slices->nr, sizeof(*slices->machines));
	if (!slices->machines)
		return -ENOMEM;
	for (unsigned int i = 0; i < slices->nr; i++)
		if (machine_init(pipe, &slices->machines[i], gpu, i))
			return -ENOMEM;
	slices->machines[0].active = true;
	return 0;
}

/* Adds the unfinished blocks of @sm to the results of their launches. */
static void look_at(struct pipe_gpu_result *result, const struct sm *sm, uint64_t now)
{
	const struct resident *resident;

	for (unsigned int i = 0; i < sm->blocks; i++) {
		resident = &sm->residents[sm->age[i]];
		if (resident->start > now)
			continue;
		if (!result->last || resident->task->launch.start < result->first)
			result->first = resident->task->launch.start;
		result->last = now;
	}
}

void slices_stop(struct pipe *pipe, struct slices *slices)
{
	struct machine *machine;
	unsigned int i, j;

	for (i = 0; i < slices->nr; i++) {
		machine = &slices->machines[i];
		for (j = 0; j < machine->gpu->map.nr_sms; j++)
			look_at(&pipe->result->gpus[machine->gpu_index], &machine->sms[j],
				pipe->now);
		if (machine->active)
			stop(pipe, machine);
	}
}

void slices_fini(struct slices *slices)
{
	for (unsigned int i = 0; slices->machines && i < slices->nr; i++)
		machine_fini(&slices->machines[i]);
	free(slices->machines);
}
