/* SPDX-License-Identifier: MIT */
/*
 * A topo_reader that reads a register file in memory. If an address is not in the file, a read
 * of this address is refused, as a GPU refuses it. Reads are counted. For the tests of kmod's
 * pure files.
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
	int err;			/* if not 0, every read fails with this error */
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

/* Exits if the file cannot be read, because then there is nothing to test. */
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
