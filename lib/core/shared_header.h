/* SPDX-License-Identifier: MIT */
/*
 * Declares the header of all files that processes share. These files are the state page, the
 * records, the ledger, the job and the grant. A reader from another version of gpupart uses this
 * header to list the file's owner and to count the owner's TPCs and memory. Such a reader never
 * writes to the file. This code depends only on libc.
 *
 * The structures of the header and of a GPU always stay version 1. No member is moved or removed,
 * and no member changes its meaning. Members can be added at the end of both structures, and the
 * header contains the lengths of these structures. The data after these structures has a separate
 * layout number, the member @layout. See Documentation/internals/shared-files.md.
 */
#ifndef GPUPART_LIB_CORE_SHARED_HEADER_H
#define GPUPART_LIB_CORE_SHARED_HEADER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <gpupart.h>
#include "lib/core/ctx.h"

#define SHARED_MAX_GPUS	32	/* maximum number of GPUs that a reader reads */

enum shared_kind { SHARED_PROCESS = 1, SHARED_LEDGER, SHARED_JOB, SHARED_GRANT, SHARED_RECORDS };

/* "gpupart" and the kind, little endian. */
#define SHARED_MAGIC(kind) (0x74726170757067u | (uint64_t)(kind) << 56)

struct shared_header {
	/* SHARED_MAGIC(); the writer writes it last */
	_Atomic uint64_t magic;
	int32_t pid;			/* pid of the owner, in the owner's pid namespace; 0: no
					 * owner */
	uint32_t layout;		/* version of the data after the GPUs */
	uint64_t start;			/* start time of the owner, clock ticks since boot */
	uint64_t pid_namespace;		/* inode of the owner's pid namespace */
	/* name of the process, job or tenant; strings are terminated */
	char name[64];
	/* The id of this job, or the id of the process's job. If there is no job, the id is "". */
	char id[64];
	char parent[64];		/* id of the job in which this job was started, or "" */
	uint32_t uid;			/* uid of the owner; for a grant, uid of the user who has
					 * the grant */
	uint32_t header_size;		/* bytes of this structure in the file; at least 256 */
	uint32_t gpus_at, gpu_size;	/* offset of the first GPU, and distance from one GPU to
					 * the next, in bytes */
	_Atomic uint32_t nr_gpus;
	uint32_t reserved;		/* 0 */
	uint64_t size;			/* size in bytes; a shorter file is incomplete */
};

/*
 * The place of 64-bit words that may change while other processes read the words. The offset of
 * word i is @at + @stride * i.
 */
struct shared_place {
	/*
	 * @at and @stride are in bytes; @nr is the number of words, and 0 means that the place
	 * is unused
	 */
	uint32_t at, stride, nr;
	uint32_t count_at;		/* for a set, the offset of the 64-bit count */
};

struct shared_gpu {
	char pci[20];
	uint16_t nr_tpcs;		/* number of TPCs of the GPU; 0: not known yet */
	uint8_t simulated;
	/* 1: the grant is strict; 0: it is not strict, or the writer did not fill this in */
	uint8_t strict;
	_Atomic uint64_t quota;		/* for a ledger, the quota in bytes; 0: no quota */
	uint64_t memory;		/* bytes charged or granted; unused if @held is used */
	struct gpupart_tpcset tpcs;	/* allowed TPCs (empty: all TPCs); unused if @set is used */
	/* entry (count % nr) is the set in force; count 0: all TPCs */
	struct shared_place set;
	/* The sum of these words is the charged memory in bytes. There are at most 4096 words. */
	struct shared_place held;
	char key[20];		/* key of a grant; "": no key, or the writer did not fill it in */
	uint8_t reserved[4];	/* 0 */
};

_Static_assert(sizeof(struct shared_header) == 256 && sizeof(struct shared_gpu) == 128 &&
	       sizeof(struct gpupart_tpcset) == 32, "frozen");

enum shared_version {
	SHARED_NONE,	/* the file is of another kind, or it is incomplete */
	SHARED_SAME,	/* the file has this kind and this layout */
	SHARED_OTHER,	/* the file has this kind, but another layout */
};

struct shared_seen {
	struct shared_header header;
	unsigned int nr_gpus;
	struct shared_gpu gpus[SHARED_MAX_GPUS];	/* sets and memory are copied from their
							 * places, and strings are terminated */
};

/*
 * Sets the layout number, the sizes and the place of the GPUs in @header. Does not set the magic.
 * The GPUs follow the header. The file has @size bytes.
 */
GPUPART_PRIVATE
void shared_init(struct shared_header *header, uint32_t layout, uint64_t size);

bool shared_is(const struct shared_header *header, enum shared_kind kind, uint32_t layout);

/* Reads only the header. */
enum shared_version shared_version(int fd, enum shared_kind kind, uint32_t layout,
				   struct shared_header *header);

/*
 * If @file is a regular file of @uid, opens it for reading. The function never follows links and
 * never blocks. Returns a descriptor or -errno. Stores the result of shared_read() in *version.
 */
__attribute__((visibility("default")))
int shared_open(int dir, const char *file, uid_t uid, enum shared_kind kind, uint32_t layout,
		struct shared_seen *seen, enum shared_version *version);

enum shared_version shared_read(int fd, enum shared_kind kind, uint32_t layout,
				struct shared_seen *seen);

#endif
