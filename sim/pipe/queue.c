// SPDX-License-Identifier: MIT
/*
 * A heap of events by time. The heap contains each event at most once. Events with equal times are
 * removed in the order in which they were inserted.
 */
#include <errno.h>
#include <stdlib.h>
#include "sim/pipe/pipe.h"

int queue_init(struct queue *queue, uint32_t room)
{
	queue->heap = malloc(sizeof(*queue->heap) * (room + 1u));
	queue->room = room;
	queue->nr = 0;
	queue->order = 0;
	return queue->heap ? 0 : -ENOMEM;
}

void queue_fini(struct queue *queue)
{
	free(queue->heap);
}

static inline bool before(const struct entry *a, const struct entry *b)
{
	return a->time != b->time ? a->time < b->time : a->order < b->order;
}

static void up(struct queue *queue, uint32_t i, struct entry entry)
{
	struct entry *heap = queue->heap;
	uint32_t parent;

	for (; i; i = parent) {
		parent = (i - 1) / 2;
		if (!before(&entry, &heap[parent]))
			break;
		heap[i] = heap[parent];
		heap[i].what->at = i + 1;
	}
	heap[i] = entry;
	entry.what->at = i + 1;
}

static void down(struct queue *queue, uint32_t i, struct entry entry)
{
	struct entry *heap = queue->heap;
	uint32_t child;

	for (; (child = 2 * i + 1) < queue->nr; i = child) {
		if (child + 1 < queue->nr && before(&heap[child + 1], &heap[child]))
			child++;
		if (!before(&heap[child], &entry))
			break;
		heap[i] = heap[child];
		heap[i].what->at = i + 1;
	}
	heap[i] = entry;
	entry.what->at = i + 1;
}

static void take_out(struct queue *queue, uint32_t i)
{
	struct entry last = queue->heap[--queue->nr];

	queue->heap[i].what->at = 0;
	if (i == queue->nr)
		return;
	if (i && before(&last, &queue->heap[(i - 1) / 2]))
		up(queue, i, last);
	else
		down(queue, i, last);
}

void queue_set(struct queue *queue, struct queue_event *what, uint64_t time)
{
	struct entry entry = { time, queue->order, what };
	uint32_t i;

	if (time == NEVER) {
		if (what->at)
			take_out(queue, what->at - 1);
		return;
	}
	if (what->at && what->time == time)
		return;
	queue->order++;
	what->time = time;
	if (!what->at) {
		up(queue, queue->nr++, entry);
		return;
	}
	i = what->at - 1;
	if (i && before(&entry, &queue->heap[(i - 1) / 2]))
		up(queue, i, entry);
	else
		down(queue, i, entry);
}

struct queue_event *queue_next(struct queue *queue)
{
	struct queue_event *first;

	if (!queue->nr)
		return NULL;
	first = queue->heap[0].what;
	take_out(queue, 0);
	return first;
}
