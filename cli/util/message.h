/* SPDX-License-Identifier: MIT */
/* Error messages and remarks on stderr, and the exit statuses of the command. */
#ifndef GPUPART_CLI_UTIL_MESSAGE_H
#define GPUPART_CLI_UTIL_MESSAGE_H

/* Exit statuses, as Documentation/man/gpupart.1 promises them. */
enum {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,	/* a check that did not hold, an output that could not be written */
	EXIT_USAGE = 2,		/* or not supported here */
	EXIT_RUN_STRICT = 123,	/* of run --strict: a launch was not confined */
	EXIT_RUN_FAILED = 125,	/* of run: everything before the program starts */
	EXIT_RUN_NOT_EXECUTABLE = 126,
	EXIT_RUN_NOT_FOUND = 127,
};

/*
 * One line on stderr, "gpupart CMD: ...", whatever bytes the values in it have;
 * returns @status.
 */
__attribute__((format(printf, 3, 4)))
int cmd_fail(const char *cmd, int status, const char *fmt, ...);

/* The same for a remark; "gpupart: ..." where @cmd is NULL. */
__attribute__((format(printf, 2, 3)))
void cmd_note(const char *cmd, const char *fmt, ...);

/* The status for a failure of the library: a bad value or not supported here, or failed. */
int cmd_status(int err);

#endif
