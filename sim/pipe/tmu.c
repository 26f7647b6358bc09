// SPDX-License-Identifier: MIT
/*
 * The task management unit. It has a singly linked list for each priority, and adds tasks at the
 * tail. When the work distribution unit has a free slot, the unit gets the first task of the list
 * with the highest priority.
 */
#include "sim/pipe/pipe.h"

void tmu_add(struct pipe *pipe, struct task *task)
{
	struct machine *machine = task->machine;
	unsigned int priority = task->priority;

	task->next = NULL;
	if (machine->heads[priority])
		machine->tails[priority]->next = task;
	else
		machine->heads[priority] = task;
	machine->tails[priority] = task;
	machine->waiting++;
	machine->work++;
	machine_dirty(machine);
	slices_work_changed(pipe, machine);
}

void tmu_return(struct task *task)
{
	struct machine *machine = task->machine;
	unsigned int priority = task->priority;

	task->next = machine->heads[priority];
	if (!task->next)
		machine->tails[priority] = task;
	machine->heads[priority] = task;
	machine->waiting++;
}

struct task *tmu_head(const struct machine *machine)
{
	unsigned int priority = machine->gpu->chip.priorities;

	if (!machine->waiting)
		return NULL;
	while (priority--)
		if (machine->heads[priority])
			return machine->heads[priority];
	return NULL;
}

void tmu_take(struct machine *machine, struct task *task)
{
	machine->heads[task->priority] = task->next;
	task->next = NULL;
	machine->waiting--;
}
