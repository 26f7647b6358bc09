// SPDX-License-Identifier: MIT
/*
 * The work distribution unit of one context. When the TMU passes a task on, the task gets a slot.
 * The task keeps the slot until its last block has ended. The sorted table contains the tasks
 * with unassigned blocks, by priority. If the TMU has a task of higher priority, a task with
 * unassigned blocks can lose its slot to that task.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "sim/pipe/pipe.h"

/* Inserts the task after the tasks with the same priority. */
static void sort_in(struct task *task)
{
	struct machine *machine = task->machine;
	struct task **link = &machine->sorted, *above = NULL;

	while (*link && (*link)->priority >= task->priority) {
		above = *link;
		link = &above->below;
	}
	task->above = above;
	task->below = *link;
	if (*link)
		(*link)->above = task;
	*link = task;
	task->sorted = true;
	/* While the task was not in the table, blocks may have ended on any SM. */
	memset(task->closed, 0, sizeof(task->closed));
	task->stuck = false;
}

void wdu_unsort(struct task *task)
{
	if (!task->sorted)
		return;
	if (task->above)
		task->above->below = task->below;
	else
		task->machine->sorted = task->below;
	if (task->below)
		task->below->above = task->above;
	task->sorted = false;
}

/*
 * Returns the last task in the table. This task has the lowest priority and still has unassigned
 * blocks.
 */
static struct task *lowest(const struct machine *machine)
{
	struct task *task = machine->sorted;

	while (task && task->below)
		task = task->below;
	return task;
}

static void evict(struct task *task)
{
	wdu_unsort(task);
	task->slot = false;
	task->launch.evicted++;
	task->machine->nr_slots--;
	tmu_return(task);
}

void wdu_accept(struct machine *machine)
{
	struct task *task, *low;

	while ((task = tmu_head(machine))) {
		if (machine->nr_slots == machine->gpu->chip.slots) {
			low = lowest(machine);
			if (!low || low->priority >= task->priority)
				return;
			evict(low);
		}
		tmu_take(machine, task);
		task->slot = true;
		machine->nr_slots++;
		sort_in(task);
	}
}

void wdu_block_done(struct pipe *pipe, struct task *task)
{
	struct machine *machine = task->machine;

	task->resident--;
	if (task->resident || task->given < task->units)
		return;
	/* Only tasks with unassigned blocks are evicted, so this task still has its slot here. */
	task->slot = false;
	machine->nr_slots--;
	machine->work--;
	launch_done(pipe, task);
	machine_dirty(machine);
	slices_work_changed(pipe, machine);
}

/* --------------------------------------------------------------- a context's hardware */

void machine_busy(struct pipe *pipe, struct machine *machine)
{
	machine->busy_from = pipe->now;
	if (!pipe->nr_busy++)
		pipe->busy_from = pipe->now;
}

void machine_idle(struct pipe *pipe, struct machine *machine)
{
	pipe->result->gpus[machine->gpu_index].busy_ns += pipe->now - machine->busy_from;
	if (!--pipe->nr_busy)
		pipe->result->busy_ns += pipe->now - pipe->busy_from;
}

int machine_init(struct pipe *pipe, struct machine *machine, unsigned int gpu,
		 unsigned int process)
{
	const struct pipe_scenario *scenario = pipe->scenario;
	unsigned int i, nr_sms;

	machine->pipe = pipe;
	machine->gpu = &scenario->gpus[gpu];
	machine->gpu_index = gpu;
	machine->process = process;
	nr_sms = machine->gpu->map.nr_sms;
	machine->words = (nr_sms + 63) / 64;
	machine->heads = calloc(machine->gpu->chip.priorities, sizeof(*machine->heads));
	machine->tails = calloc(machine->gpu->chip.priorities, sizeof(*machine->tails));
	machine->sms = calloc(nr_sms, sizeof(*machine->sms));
	machine->shapes = calloc(scenario->nr_kernels + 1u, sizeof(*machine->shapes));
	if (!machine->heads || !machine->tails || !machine->sms || !machine->shapes)
		return -ENOMEM;
	for (i = 0; i < nr_sms; i++)
		sm_init(&machine->sms[i], machine, i);
	for (i = 0; i < scenario->nr_kernels; i++)
		shape_make(&machine->shapes[i], &machine->gpu->chip, &scenario->kernels[i]);
	memory_init(machine);
	balance_init(machine);
	return 0;
}

void machine_fini(struct machine *machine)
{
	free(machine->heads);
	free(machine->tails);
	free(machine->sms);
	free(machine->shapes);
}

void machine_dirty(struct machine *machine)
{
	if (machine->dirty_listed)
		return;
	machine->dirty_listed = true;
	machine->next_dirty = machine->pipe->dirty;
	machine->pipe->dirty = machine;
}

void machine_sm_dirty(struct sm *sm)
{
	struct machine *machine = sm->machine;

	if (!sm->dirty) {
		sm->dirty = true;
		machine->dirty[machine->nr_dirty++] = sm;
	}
	machine_dirty(machine);
}

void machine_settle(struct pipe *pipe, struct machine *machine)
{
	machine->dirty_listed = false;
	if (!machine->active)
		return;
	wdu_accept(machine);
	balance(pipe, machine);
	memory_settle(pipe, machine);
	for (unsigned int i = 0; i < machine->nr_dirty; i++) {
		machine->dirty[i]->dirty = false;
		sm_settle(pipe, machine->dirty[i]);
	}
	machine->nr_dirty = 0;
}
