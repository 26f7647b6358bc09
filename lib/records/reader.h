/* SPDX-License-Identifier: MIT */
/*
 * A reader of the records of one process on one GPU, shared by read.c and watch.c. For one
 * thread.
 */
#ifndef GPUPART_LIB_RECORDS_READER_H
#define GPUPART_LIB_RECORDS_READER_H

#include <sys/types.h>
#include <gpupart_manage.h>
#include "lib/records/records.h"

struct reader_entry {
	struct records_entry launch;
	uint64_t key;		/* its time, or a later one of an earlier launch in its ring */
	uint64_t seq;
	unsigned int ring;
	bool timed;		/* its number was visible before its time was read */
};

/* The launches that gpupart_records_drained() waits for. */
struct reader_drain {
	enum { DRAIN_BEGUN, DRAIN_INSIDE, DRAIN_NUMBERED } step;
	uint64_t loose;			/* launches so far that were not confined to their set */
	struct state_lane lanes[STATE_NR_LANES];	/* of threads that may be in a launch */
	/*
	 * Launches up to these numbers: of rings, of rings with unrecorded launches after them,
	 * and of graphs.
	 */
	uint64_t ring[STATE_NR_RINGS], after[STATE_NR_RINGS], graph[STATE_NR_GRAPHS];
};

struct gpupart_records_reader {
	int pid;			/* 0: this process */
	uid_t uid;
	unsigned int gpu;		/* its index in the state page */
	char pci[20];
	int dir, block_fd, records_fd;	/* -1: not open */
	char file[48];
	struct watch *watch;		/* NULL: gpupart_records_watch() was not called */
	void (*watch_free)(struct watch *watch);
	/* For gpupart_records_busy(): mapped at the first call. */
	const struct state_page *block;
	const struct records_section *section;
	uint64_t done[STATE_NR_RINGS];	/* launches up to this number have ended */
	struct reader_drain drain;
	/* For one reading. */
	struct state_records copy;
	struct records_graph_cell graphs[STATE_NR_GRAPHS];
	struct records_cell cells[RECORDS_LONG];
	struct records_note notes[RECORDS_LONG];
	unsigned int nr_entries;
	struct reader_entry entries[RECORDS_NR_CELLS];
};

/*
 * Copies the launches of ring @n from @first to @last, which have ended, into reader->entries.
 * Returns their number. A time is valid if the launch's number was visible before it was read.
 */
unsigned int reader_ring(struct gpupart_records_reader *reader, unsigned int n, uint64_t first,
			 uint64_t last);

/*
 * Finds the row of the function @name among *nr rows of @size bytes, which begin with a name.
 * If there is none, returns a new row, or the last one, without a name, if there are already
 * GPUPART_RECORDS_NR_FUNCTIONS.
 */
void *reader_row(void *rows, size_t size, unsigned int *nr, const char *name);

/* Reads from the process's state page at offset @at. */
bool reader_block(const struct gpupart_records_reader *reader, size_t at, void *into, size_t len);

uint64_t reader_graph(const struct gpupart_records_reader *reader, unsigned int entry);

/* False: the process has ended, or executes another program. */
bool reader_lives(const struct gpupart_records_reader *reader);

/*
 * Like gpupart_records_read(), also for a process that has ended; false: its state page could
 * not be read.
 */
bool reader_read(struct gpupart_records_reader *reader, struct gpupart_records *records);

/* Reads @len bytes of the section at offset @at. Fails if the file is shorter. */
bool reader_section(struct gpupart_records_reader *reader, size_t at, void *into, size_t len);

#endif
