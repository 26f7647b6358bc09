/* SPDX-License-Identifier: MIT */
/*
 * Captures: the text format of a saved topology, as a table that the reader and the writer
 * share.
 *
 * A capture has a first line, sections, and a last line with the checksum of all bytes before
 * that line. A section has lines of the form "key = value", and then rows. The section's
 * "columns" line names the fields of a row, which are separated by blanks. "-" or "unknown"
 * marks an unknown value. Empty lines and lines that begin with '#' are comments.
 */
#ifndef GPUPART_LIB_TOPO_CAPTURE_H
#define GPUPART_LIB_TOPO_CAPTURE_H

#include "lib/topo/topology.h"

#define FIRST_WORDS  "# gpupart capture "
#define FIRST_LINE   FIRST_WORDS "1"
#define CHECKSUM_KEY "checksum = "
#define CHECKSUM_LEN (sizeof(CHECKSUM_KEY) - 1 + 16 + 1) /* including the line feed */
#define UNKNOWN	     "unknown"

enum form { FORM_TEXT, FORM_PCI, FORM_UUID, FORM_MIG, FORM_YES, FORM_ROW, FORM_DECIMAL, FORM_HEX };

/* A key of [gpu], or a column of another section. It describes a member of a struct. */
struct value {
	const char *name;	/* NULL: messages use the number of the column */
	enum form form;
	size_t offset, size;
	const char *wrong;	/* message for an invalid value */
	/*
	 * For numbers, which have 32 bits: the text of an unknown value, and the number that
	 * represents it.
	 */
	const char *none;
	int none_is;
	uint32_t min, max, multiple_of;
	int digits;		/* minimum number of hexadecimal digits */
	bool optional;		/* the key is not written if its value is unknown */
};

enum { IN_GPU, IN_RM, IN_GPC_MAP, IN_REGISTERS, IN_BITS, NR_SECTIONS, IN_NONE = NR_SECTIONS };

/* The contents of [gpu]. */
struct capture_gpu {
	struct gpupart_gpu_info info;
	unsigned int compute_class;	/* see struct gpupart_topology */
};

struct section {
	const char *name;
	const struct value *values;
	unsigned int nr_values;
	const char *columns;	/* NULL: the section has only keys */
	size_t source;		/* offset of the section's source string in the topology */
	size_t row_size;
	unsigned int max_rows;	/* maximum number of rows; 0: the number of lines of the file */
	const char *noun;	/* noun for the section's rows in messages */
	bool sparse;		/* rows without a measured bit are omitted */
};

extern const struct section capture_sections[NR_SECTIONS];

#endif
