/* SPDX-License-Identifier: MIT */
/*
 * A topo_reader for the tests of kmod's pure files. It reads a register file in memory. Like a
 * GPU, it refuses a read of an address that is not in the file. It counts the reads.
 */
#ifndef GPUPART_TESTS_KMOD_REGFILE_H
#define GPUPART_TESTS_KMOD_REGFILE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "kmod/topo.h"

#define REGFILE_MAX 4096
#define REGFILE_NO_SUCH_ADDRESS 0xbadf5040

struct regfile {
	struct topo_reader reader;
	unsigned int nr, reads, refused;
	u32 offset[REGFILE_MAX], value[REGFILE_MAX];
	u32 asked[REGFILE_MAX];		/* the offsets of the first @nr_asked reads, in order */
	unsigned int nr_asked;
	/* one register with a bad value; bad_value 0: no register has a bad value */
	u32 bad_offset, bad_value;
	int err;			/* 0, or the error of every read */
};

__attribute__((unused))
static int regfile_rd32(struct topo_reader *reader, u32 offset, u32 *value)
{
	struct regfile *file = (struct regfile *)reader;
	unsigned int i;

	file->reads++;
	if (file->nr_asked < REGFILE_MAX)
		file->asked[file->nr_asked++] = offset;
	if (file->err)
		return file->err;
	if (file->bad_value && offset == file->bad_offset) {
		*value = file->bad_value;
		return 0;
	}
	for (i = 0; i < file->nr; i++) {
		if (file->offset[i] == offset) {
			*value = file->value[i];
			return 0;
		}
	}
	file->refused++;
	*value = REGFILE_NO_SUCH_ADDRESS;
	return 0;
}

/* If the file cannot be read, exits, because there is nothing to test. */
__attribute__((unused))
static void regfile_load(struct regfile *file, const char *path)
{
	char line[160];
	FILE *f = fopen(path, "r");

	if (!f) {
		perror(path);
		exit(1);
	}
	memset(file, 0, sizeof(*file));
	file->reader.rd32 = regfile_rd32;
	while (fgets(line, sizeof(line), f)) {
		if (line[0] == '#')
			continue;
		if (file->nr == REGFILE_MAX ||
		    sscanf(line, "%x %x", &file->offset[file->nr], &file->value[file->nr]) != 2) {
			fprintf(stderr, "%s: bad line: %s", path, line);
			exit(1);
		}
		file->nr++;
	}
	fclose(f);
}

__attribute__((unused))
static void regfile_set(struct regfile *file, u32 offset, u32 value)
{
	unsigned int i;

	for (i = 0; i < file->nr && file->offset[i] != offset; i++)
		;
	file->offset[i] = offset;
	file->value[i] = value;
	if (i == file->nr)
		file->nr++;
}

#endif
