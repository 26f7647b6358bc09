// SPDX-License-Identifier: MIT
/*
 * Command buffers in pinned memory. Each channel has a ring. The CPU writes commands to the ring,
 * and the host interface reads them. If a ring is full, the CPU waits.
 */
#include "sim/pipe/pipe.h"

bool cmdbuf_put(struct pipe *pipe, struct channel *channel, const struct command *from)
{
	struct command *command;

	if (channel->nr == pipe->scenario->host.ring)
		return false;
	command = pool_new(pipe, &pipe->free_commands, sizeof(*command));
	if (!command)
		return true;	/* the run ends with this error */
	*command = *from;
	command->next = NULL;
	if (!channel->head)
		channel->tail = &channel->head;
	*channel->tail = command;
	channel->tail = &command->next;
	channel->nr++;
	host_doorbell(pipe, channel);
	return true;
}

void cmdbuf_take(struct pipe *pipe, struct channel *channel)
{
	struct command *command = channel->head;
	struct program *full = channel->full;

	channel->head = command->next;
	channel->nr--;
	command->next = pipe->free_commands;
	pipe->free_commands = command;
	if (full) {
		channel->full = full->next;
		cpu_buffer_free(pipe, full);
	}
}
