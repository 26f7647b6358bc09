/* SPDX-License-Identifier: MIT */
/*
 * Shared declarations of the fuzz targets. A target consists of a file fuzz_NAME.c and a folder
 * corpus/NAME in this folder. tests/Makefile.inc links a target with libFuzzer. For `make check`,
 * it links the target with replay.c instead.
 */
#ifndef GPUPART_TESTS_FUZZ_H
#define GPUPART_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/*
 * The message of a failed check contains this text. A target can set the pointer to the last
 * error message of a context.
 */
extern const char *fuzz_words;

/*
 * Checks an invariant for every input. If the check fails, stores the input and prints this
 * message.
 */
#define MUST(what)                                                             \
	do {                                                                   \
		if (!(what)) {                                                 \
			fprintf(stderr, "%s:%d: does not hold: %s%s%s\n",       \
				__FILE__, __LINE__, #what,                     \
				*fuzz_words ? "; last words: " : "", fuzz_words); \
			abort();                                               \
		}                                                              \
	} while (0)

/* ------------------------------------------------------------------ input in pieces */

struct input {
	const uint8_t *at;
	size_t left;
};

/* After the end of the input, these functions return zeros. */
static inline void input_bytes(struct input *in, void *to, size_t len)
{
	size_t have = len < in->left ? len : in->left;

	if (have)
		memcpy(to, in->at, have);
	memset((char *)to + have, 0, len - have);
	in->at += have;
	in->left -= have;
}

static inline unsigned int input_u8(struct input *in)
{
	uint8_t value;

	input_bytes(in, &value, sizeof(value));
	return value;
}

static inline unsigned int input_u16(struct input *in)
{
	unsigned int low = input_u8(in);

	return low | input_u8(in) << 8;
}

static inline uint64_t input_u64(struct input *in)
{
	uint64_t value;

	input_bytes(in, &value, sizeof(value));
	return value;
}

/*
 * Overwrites parts of @block. The whole rest of the input consists of pieces. A piece has two
 * bytes of offset, one byte of length, and the new bytes.
 */
static inline void input_patch(struct input *in, void *block, size_t size)
{
	while (in->left > 3) {
		size_t at = input_u16(in), len = input_u8(in);

		at %= size;
		if (len > size - at)
			len = size - at;
		if (len > in->left)
			len = in->left;
		input_bytes(in, (char *)block + at, len);
	}
}

/* ------------------------------------------------------------------------ common.c */

/*
 * Creates a file with these bytes. Returns the path of the file. The path is the same for each
 * call, and private to this process.
 */
const char *fuzz_file(const void *data, size_t size);

/* Returns the input up to its first zero byte, as a string. The caller must free the string. */
char *fuzz_text(const uint8_t *data, size_t size);

/*
 * Counts the lines that the command would have written on stderr. Also stores the text of the
 * last line.
 */
extern unsigned int fuzz_lines, fuzz_notes;
extern char fuzz_line[4096];

/* Returns true if @text is printable ASCII and ends with a zero byte within @room bytes. */
bool fuzz_printable(const char *text, size_t room);

/* Opens an output file. Its content is discarded. */
FILE *fuzz_nowhere(void);

#endif
