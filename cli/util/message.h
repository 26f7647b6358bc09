/* SPDX-License-Identifier: MIT */
/* Prints error messages and remarks on stderr. Defines the exit statuses of the command. */
#ifndef GPUPART_CLI_UTIL_MESSAGE_H
#define GPUPART_CLI_UTIL_MESSAGE_H

#include <stdbool.h>

/*
 * Errors of the functions in cli/; see struct cmd. The values are the exit statuses in
 * Documentation/man/gpupart.1.
 */
enum {
	EXIT_FAILED = 1,	/* a failed check, or an output that could not be written */
	EXIT_USAGE = 2,		/* wrong usage, or not supported here */
	EXIT_RUN_STRICT = 123,	/* run --strict: a launch was not confined */
	EXIT_RUN_FAILED = 125,	/* run: a failure before the program starts */
	EXIT_RUN_NOT_EXECUTABLE = 126,
	EXIT_RUN_NOT_FOUND = 127,
	CMD_ENDED = 256,	/* ORed with an exit status; not an error, but the command stops */
};

/* Returns the exit status for @result. If the command starts a program, @starts is true. */
int cmd_exit_status(int result, bool starts);

/* The name of the program, with which all messages begin: "gpupart" unless main() changes it. */
extern const char *cmd_program;

/*
 * The name of the command. It follows in all messages of the command. Before main() sets the name,
 * it is NULL.
 */
extern const char *cmd_name;

/*
 * Prints one line on stderr. The line begins with "gpupart CMD: ", where gpupart is cmd_program.
 * If @cmd is NULL, the line begins with "gpupart: ". Replaces control characters in values. Returns
 * @error.
 */
__attribute__((format(printf, 3, 4)))
int cmd_fail(const char *cmd, int error, const char *fmt, ...);

/* Prints a remark in the same way. A remark is not an error. */
__attribute__((format(printf, 2, 3)))
void cmd_note(const char *cmd, const char *fmt, ...);

/*
 * These functions print messages of the current command. Function error_of() is for an error of the
 * library; @err is the -errno.
 */
#define usage_error(...)	cmd_fail(cmd_name, EXIT_USAGE, __VA_ARGS__)
#define failure(...)		cmd_fail(cmd_name, EXIT_FAILED, __VA_ARGS__)
#define error_of(err, ...)	cmd_fail(cmd_name, cmd_status(err), __VA_ARGS__)
#define remark(...)		cmd_note(cmd_name, __VA_ARGS__)

/* Converts an -errno of the library to EXIT_USAGE or EXIT_FAILED. */
int cmd_status(int err);

/*
 * Replaces control characters and invalid UTF-8 in @text. Writes '?' in place of each of these
 * bytes. Returns @text.
 */
char *out_clean(char *text);

#endif
