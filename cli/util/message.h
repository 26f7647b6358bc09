/* SPDX-License-Identifier: MIT */
/* Error messages and remarks on stderr, and the exit statuses of the command. */
#ifndef GPUPART_CLI_UTIL_MESSAGE_H
#define GPUPART_CLI_UTIL_MESSAGE_H

#include <stdbool.h>

/*
 * The results of the command's functions. 0 means continue. Any other result is one of these
 * errors, or CMD_ENDED; see struct cmd. The values are the exit statuses that
 * Documentation/man/gpupart.1 promises.
 */
enum {
	EXIT_FAILED = 1,	/* a failed check, or an output that could not be written */
	EXIT_USAGE = 2,		/* wrong usage, or not supported here */
	EXIT_RUN_STRICT = 123,	/* run --strict: a launch was not confined */
	EXIT_RUN_FAILED = 125,	/* run: a failure before the program starts */
	EXIT_RUN_NOT_EXECUTABLE = 126,
	EXIT_RUN_NOT_FOUND = 127,
	CMD_ENDED = 256,	/* ORed with an exit status; this is not an error, but the command
				 * stops */
};

/* Returns the exit status for @result. @starts is true if the command starts a program. */
int cmd_exit_status(int result, bool starts);

/*
 * The name of the command. All messages of the command begin with this name. main() sets it. It
 * is NULL before.
 */
extern const char *cmd_name;

/*
 * Prints one line on stderr: "gpupart CMD: ...", or "gpupart: ..." if @cmd is NULL. Replaces
 * control characters in values. Returns @error.
 */
__attribute__((format(printf, 3, 4)))
int cmd_fail(const char *cmd, int error, const char *fmt, ...);

/* Prints a remark, which is not an error, in the same way. */
__attribute__((format(printf, 2, 3)))
void cmd_note(const char *cmd, const char *fmt, ...);

/* Messages of the current command. error_of() is for an error @err (-errno) of the library. */
#define usage_error(...)	cmd_fail(cmd_name, EXIT_USAGE, __VA_ARGS__)
#define failure(...)		cmd_fail(cmd_name, EXIT_FAILED, __VA_ARGS__)
#define error_of(err, ...)	cmd_fail(cmd_name, cmd_status(err), __VA_ARGS__)
#define remark(...)		cmd_note(cmd_name, __VA_ARGS__)

/* Converts an -errno of the library to EXIT_USAGE or EXIT_FAILED. */
int cmd_status(int err);

/*
 * Overwrites each byte of @text that belongs to a control character or to invalid UTF-8 with
 * '?'. Returns @text.
 */
char *out_clean(char *text);

#endif
