/* SPDX-License-Identifier: MIT */
/*
 * The header of every file that processes share: the page of a process and its records, the ledger
 * of a tenant, the note of a job, the grant of a node. By it a reader of another version lists the
 * entry and counts what it holds; such a reader writes nothing into the file. Needs libc alone.
 *
 * Both structures are version 1 for ever: no member moves, changes its meaning or goes. Either
 * grows at its end: its length stands in the header. What follows them is the layout's own, and
 * another number in @layout says that it is another one. Documentation/internals/shared-files.md.
 */
#ifndef GPUPART_LIB_CORE_SHARED_HEADER_H
#define GPUPART_LIB_CORE_SHARED_HEADER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <gpupart.h>
#include "lib/core/ctx.h"

#define SHARED_MAX_GPUS	32	/* that a reader looks at */

enum shared_kind { SHARED_PROCESS = 1, SHARED_LEDGER, SHARED_JOB, SHARED_GRANT, SHARED_RECORDS };

/* "gpupart" and the kind, little endian. */
#define SHARED_MAGIC(kind) (0x74726170757067u | (uint64_t)(kind) << 56)

struct shared_header {
	_Atomic uint64_t magic;		/* SHARED_MAGIC(); written last: the rest is whole */
	int32_t pid;			/* owner, in its own pid namespace; 0: no process owns it */
	uint32_t layout;		/* version of all that follows the GPUs */
	uint64_t start;			/* of the owner, clock ticks since boot */
	uint64_t pid_namespace;		/* inode of the owner's */
	char name[64];			/* of the process, job, tenant; an end is in each text */
	char id[64];			/* of the job: a process belongs to it, or "" */
	char parent[64];		/* id of the job that a job was begun in, or "" */
	uint32_t uid;			/* owner; of a grant the user that it is given to */
	uint32_t header_size;		/* of this structure in the file; 256 or more */
	uint32_t gpus_at, gpu_size;	/* bytes: of the first GPU, and from one to the next */
	_Atomic uint32_t nr_gpus;
	uint32_t reserved;		/* 0 */
	uint64_t size;			/* bytes; a file that is shorter is not whole */
};

/* 64-bit words that change while others read: word @i is @stride * i bytes behind @at. */
struct shared_place {
	uint32_t at, stride, nr;	/* bytes, bytes, words; @nr 0: not used */
	uint32_t count_at;		/* of a set: where the 64-bit count stands */
};

struct shared_gpu {
	char pci[20];
	uint16_t nr_tpcs;		/* of the GPU; 0: not known yet */
	uint8_t simulated;
	uint8_t strict;		/* of a grant, as its own; 0 also where its writer told nothing */
	_Atomic uint64_t quota;		/* of a ledger: bytes its processes may hold; 0: any */
	uint64_t memory;		/* bytes held, or given; not used where @held is */
	struct gpupart_tpcset tpcs;	/* allowed TPCs, none: all; not used where @set is */
	struct shared_place set;	/* the set in force: number count % nr; count 0: all TPCs */
	struct shared_place held;	/* their sum is the memory held; 4096 at most */
	char key[20];		/* of a grant, as its own; "" also where its writer told nothing */
	uint8_t reserved[4];	/* 0 */
};

_Static_assert(sizeof(struct shared_header) == 256 && sizeof(struct shared_gpu) == 128 &&
	       sizeof(struct gpupart_tpcset) == 32, "frozen");

enum shared_version {
	SHARED_NONE,	/* no file of this kind, or not whole */
	SHARED_SAME,	/* of this kind and layout */
	SHARED_OTHER,	/* of this kind and another layout */
};

struct shared_seen {
	struct shared_header header;
	unsigned int nr_gpus;
	struct shared_gpu gpus[SHARED_MAX_GPUS];	/* sets and memory resolved, texts ended */
};

/* For what writes @header but its magic: of the layout @layout, GPUs behind it, @size bytes. */
GPUPART_PRIVATE
void shared_init(struct shared_header *header, uint32_t layout, uint64_t size);

bool shared_is(const struct shared_header *header, enum shared_kind kind, uint32_t layout);

/* The header alone. */
enum shared_version shared_version(int fd, enum shared_kind kind, uint32_t layout,
				   struct shared_header *header);

/*
 * Opens @file of @uid for reading, unless it is no regular file of that user's: nothing is followed
 * or waited for. A descriptor or -errno, and as shared_read() in *version.
 */
__attribute__((visibility("default")))
int shared_open(int dir, const char *file, uid_t uid, enum shared_kind kind, uint32_t layout,
		struct shared_seen *seen, enum shared_version *version);

enum shared_version shared_read(int fd, enum shared_kind kind, uint32_t layout,
				struct shared_seen *seen);

#endif
