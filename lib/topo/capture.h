/* SPDX-License-Identifier: MIT */
/*
 * Captures: the text form of a saved topology, as a table that its reader and its writer share.
 *
 * The form: a first line, sections, a last line with the checksum of every byte before it. A
 * section has "key = value" lines, then rows of as many fields as its "columns" names, separated
 * by blanks; "-" or "unknown" for what is not known. Lines that start with '#' and empty lines
 * are for people.
 */
#ifndef GPUPART_LIB_TOPO_CAPTURE_H
#define GPUPART_LIB_TOPO_CAPTURE_H

#include "lib/topo/topology.h"

#define FIRST_WORDS  "# gpupart capture "
#define FIRST_LINE   FIRST_WORDS "1"
#define CHECKSUM_KEY "checksum = "
#define CHECKSUM_LEN (sizeof(CHECKSUM_KEY) - 1 + 16 + 1) /* with its newline */
#define UNKNOWN	     "unknown"

enum form { FORM_TEXT, FORM_PCI, FORM_UUID, FORM_MIG, FORM_YES, FORM_ROW, FORM_DECIMAL, FORM_HEX };

/* A key of [gpu], or a column of another section: a member of a struct. */
struct value {
	const char *name;	/* NULL: a message has the column's number instead */
	enum form form;
	size_t offset, size;
	const char *wrong;	/* what a message says of another value */
	/* Of numbers, which are in 32 bits: what stands for none, and the number that this is. */
	const char *none;
	int none_is;
	uint32_t min, max, multiple_of;
	int digits;		/* hexadecimal ones, at least */
	bool optional;		/* not written where there is none */
};

enum { IN_GPU, IN_RM, IN_GPC_MAP, IN_REGISTERS, IN_BITS, NR_SECTIONS, IN_NONE = NR_SECTIONS };

/* What [gpu] holds. */
struct capture_gpu {
	struct gpupart_gpu_info info;
	unsigned int compute_class;	/* of struct gpupart_topology */
};

struct section {
	const char *name;
	const struct value *values;
	unsigned int nr_values;
	const char *columns;	/* NULL: keys only */
	size_t source;		/* where in the topology its source's text is */
	size_t row_size;
	unsigned int max_rows;	/* 0: as many as there are lines */
	const char *noun;	/* of rows, for a message */
	bool sparse;		/* rows without a measured bit are left out */
};

extern const struct section capture_sections[NR_SECTIONS];

#endif
