/* SPDX-License-Identifier: MIT */
/*
 * Declares the text format of captures, which are saved topologies. The reader and the writer share
 * this table.
 *
 * A capture has a first line, sections, and a last line with the checksum of all bytes before that
 * line. A section begins with lines of the form "key = value". Its rows follow these lines. The
 * line "columns" of a section lists the names of the fields of a row. Blanks separate the fields.
 * "-" or "unknown" marks an unknown value. Empty lines and lines that begin with '#' are comments.
 */
#ifndef GPUPART_LIB_TOPO_CAPTURE_H
#define GPUPART_LIB_TOPO_CAPTURE_H

#include "lib/topo/topology.h"

#define FIRST_WORDS  "# gpupart capture "
#define FIRST_LINE   FIRST_WORDS "1"
#define CHECKSUM_KEY "checksum = "
#define CHECKSUM_LEN (sizeof(CHECKSUM_KEY) - 1 + 16 + 1) /* the length includes the line feed */
#define UNKNOWN	     "unknown"

enum form { FORM_TEXT, FORM_PCI, FORM_UUID, FORM_MIG, FORM_YES, FORM_ROW, FORM_DECIMAL, FORM_HEX };

/*
 * Describes a key of the section [gpu], or a column of another section. The value is a member of a
 * struct.
 */
struct value {
	const char *name;	/* if NULL, messages contain the number of the column */
	enum form form;
	size_t offset, size;
	const char *wrong;	/* message for an invalid value */
	/*
	 * The next two members are used only for 32-bit numbers. They contain the text that marks
	 * an unknown value, and the number that represents an unknown value.
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
	bool sparse;		/* a row without a measured bit is omitted */
};

extern const struct section capture_sections[NR_SECTIONS];

#endif
