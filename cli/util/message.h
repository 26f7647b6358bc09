/* SPDX-License-Identifier: MIT */
/* Error messages and remarks on stderr, and the exit statuses of the command. */
#ifndef GPUPART_CLI_UTIL_MESSAGE_H
#define GPUPART_CLI_UTIL_MESSAGE_H

#include <stdbool.h>

/*
 * What a function of the command returns: 0 to continue, else one of these errors, or CMD_ENDED;
 * see struct cmd. The values are the exit statuses that Documentation/man/gpupart.1 promises.
 */
enum {
	EXIT_FAILED = 1,	/* a check that did not hold, an output that could not be written */
	EXIT_USAGE = 2,		/* or not supported here */
	EXIT_RUN_STRICT = 123,	/* of run --strict: a launch was not confined */
	EXIT_RUN_FAILED = 125,	/* of run: a failure before the program starts */
	EXIT_RUN_NOT_EXECUTABLE = 126,
	EXIT_RUN_NOT_FOUND = 127,
	CMD_ENDED = 256,	/* or'ed with an exit status: nothing is left to do */
};

/* The exit status for @result. @starts: it is the result of a command that starts a program. */
int cmd_exit_status(int result, bool starts);

/* The command that runs, which main() sets: its messages begin with it. NULL: none as yet. */
extern const char *cmd_name;

/*
 * One line on stderr, "gpupart CMD: ...", whatever bytes the values in it have; "gpupart: ..." if
 * @cmd is NULL. Returns @error.
 */
__attribute__((format(printf, 3, 4)))
int cmd_fail(const char *cmd, int error, const char *fmt, ...);

/* The same for a remark. */
__attribute__((format(printf, 2, 3)))
void cmd_note(const char *cmd, const char *fmt, ...);

/* Those of the command that runs; error_of() is for a failure @err of the library. */
#define usage_error(...)	cmd_fail(cmd_name, EXIT_USAGE, __VA_ARGS__)
#define failure(...)		cmd_fail(cmd_name, EXIT_FAILED, __VA_ARGS__)
#define error_of(err, ...)	cmd_fail(cmd_name, cmd_status(err), __VA_ARGS__)
#define remark(...)		cmd_note(cmd_name, __VA_ARGS__)

/* The error for a failure of the library: a bad value or not supported here, or failed. */
int cmd_status(int err);

/*
 * Puts a '?' in the place of every byte of @text that is a control character, a part of
 * one, or no UTF-8. Returns @text.
 */
char *out_clean(char *text);

#endif
