/* SPDX-License-Identifier: MIT */
/*
 * Captures: the text format of a saved topology, as a table that reader and writer share.
 *
 * The format: a first line, sections, and a last line with the checksum of every byte before
 * it. A section has "key = value" lines and then rows, with as many fields as its "columns"
 * line names, separated by blanks; "-" or "unknown" marks unknown values. Lines that start with
 * '#' and empty lines are comments.
 */
#ifndef GPUPART_LIB_TOPO_CAPTURE_H
#define GPUPART_LIB_TOPO_CAPTURE_H

#include "lib/topo/topology.h"

#define FIRST_WORDS  "# gpupart capture "
#define FIRST_LINE   FIRST_WORDS "1"
#define CHECKSUM_KEY "checksum = "
#define CHECKSUM_LEN (sizeof(CHECKSUM_KEY) - 1 + 16 + 1) /* including its newline */
#define UNKNOWN	     "unknown"

enum form { FORM_TEXT, FORM_PCI, FORM_UUID, FORM_MIG, FORM_YES, FORM_ROW, FORM_DECIMAL, FORM_HEX };

/* A key of [gpu], or a column of another section: describes a member of a struct. */
struct value {
	const char *name;	/* NULL: messages use the column's number */
	enum form form;
	size_t offset, size;
	const char *wrong;	/* message for an invalid value */
	/*
	 * For numbers, which have 32 bits: the text for an unknown value, and the number that
	 * stands for it.
	 */
	const char *none;
	int none_is;
	uint32_t min, max, multiple_of;
	int digits;		/* least number of hexadecimal digits */
	bool optional;		/* not written if the value is unknown */
};

enum { IN_GPU, IN_RM, IN_GPC_MAP, IN_REGISTERS, IN_BITS, NR_SECTIONS, IN_NONE = NR_SECTIONS };

/* The contents of [gpu]. */
struct capture_gpu {
	struct gpupart_gpu_info info;
	unsigned int compute_class;	/* as in struct gpupart_topology */
};

struct section {
	const char *name;
	const struct value *values;
	unsigned int nr_values;
	const char *columns;	/* NULL: the section has only keys */
	size_t source;		/* offset of its source string in the topology */
	size_t row_size;
	unsigned int max_rows;	/* 0: as many as the file has lines */
	const char *noun;	/* noun for its rows in messages */
	bool sparse;		/* rows without a measured bit are omitted */
};

extern const struct section capture_sections[NR_SECTIONS];

#endif
