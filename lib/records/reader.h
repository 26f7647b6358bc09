/* SPDX-License-Identifier: MIT */
/*
 * Declares a reader of the records of one process on one GPU. The files read.c and watch.c share
 * this header. Two threads must not use the same reader.
 */
#ifndef GPUPART_LIB_RECORDS_READER_H
#define GPUPART_LIB_RECORDS_READER_H

#include <sys/types.h>
#include <gpupart_manage.h>
#include "lib/records/records.h"

struct reader_entry {
	struct records_entry launch;
	uint64_t key;		/* the key for sorting, which is the latest valid time of this
				 * launch and of earlier launches in its ring */
	uint64_t seq;
	unsigned int ring;
	bool timed;		/* the launch's number was visible before its time was read */
};

/* The launches for which gpupart_records_drained() waits. */
struct reader_drain {
	enum { DRAIN_BEGUN, DRAIN_INSIDE, DRAIN_NUMBERED } step;
	uint64_t loose;			/* number of launches so far that were not confined
					 * to their set */
	struct state_lane lanes[STATE_NR_LANES];	/* lanes of threads that may be in a
							 * launch */
	/*
	 * The numbers of the last launches for which the reader waits. The array @ring has the
	 * numbers in the rings. The array @after has the numbers in rings that also have unrecorded
	 * launches. The array @graph has the numbers of graphs.
	 */
	uint64_t ring[STATE_NR_RINGS], after[STATE_NR_RINGS], graph[STATE_NR_GRAPHS];
};

struct gpupart_records_reader {
	int pid;			/* 0: the reader reads this process */
	uid_t uid;
	unsigned int gpu;		/* the GPU's index in the state page */
	char pci[20];
	int dir, page_fd, records_fd;	/* file descriptors; -1: not open */
	char file[48];
	struct watch *watch;		/* NULL: gpupart_records_watch() was not called */
	void (*watch_free)(struct watch *watch);
	/* The mappings for gpupart_records_busy(). Its first call creates the mappings. */
	const struct state_page *page;
	const struct records_section *section;
	uint64_t done[STATE_NR_RINGS];	/* launches up to this number have ended in each ring */
	struct reader_drain drain;
	/* The following members are valid only during one reading. */
	struct state_records copy;
	struct records_graph_cell graphs[STATE_NR_GRAPHS];
	struct records_cell cells[RECORDS_LONG];
	struct records_note notes[RECORDS_LONG];
	unsigned int nr_entries;
	struct reader_entry entries[RECORDS_NR_CELLS];
};

/*
 * Copies launches @first to @last of ring @n into reader->entries. These launches must have
 * ended. Returns the number of launches copied. The time of a launch is valid if the launch's
 * number was visible before the time was read.
 */
unsigned int reader_ring(struct gpupart_records_reader *reader, unsigned int n, uint64_t first,
			 uint64_t last);

/*
 * Finds the row of the function @name among the *nr rows in @rows. Each row has @size bytes and
 * begins with a name. If no row has this name, adds a row and returns the new row. If there are
 * already GPUPART_RECORDS_NR_FUNCTIONS rows, returns the last row. The last row has no name.
 */
void *reader_row(void *rows, size_t size, unsigned int *nr, const char *name);

/* Reads @len bytes at offset @at of the process's state page. If the read fails, returns false. */
bool reader_page(const struct gpupart_records_reader *reader, size_t at, void *into, size_t len);

uint64_t reader_graph(const struct gpupart_records_reader *reader, unsigned int entry);

/* If the process has ended, or if it executes another program now, returns false. */
bool reader_lives(const struct gpupart_records_reader *reader);

/*
 * Does the same as gpupart_records_read(), but also works for a process that has ended. If the
 * state page of the process cannot be read, returns false.
 */
bool reader_read(struct gpupart_records_reader *reader, struct gpupart_records *records);

/* Reads @len bytes at offset @at of the section. Returns false if the file is shorter. */
bool reader_section(struct gpupart_records_reader *reader, size_t at, void *into, size_t len);

#endif
