/* SPDX-License-Identifier: MIT */
/*
 * Named sets and defaults, from the configuration files of the user and of the node. The user's
 * value of a key applies if both have one.
 */
#ifndef GPUPART_CLI_TARGET_SETTINGS_H
#define GPUPART_CLI_TARGET_SETTINGS_H

struct setting {
	char *key, *value;
	char *from;		/* "/etc/gpupart/config:3: " */
};

/*
 * Points *setting to "default.@key", which is never freed, or to NULL without one. Returns 0, or an
 * error for an invalid line in one of the files.
 */
int settings_default(const char *key, const struct setting **setting);

/* Finds the set @name, such as "-u 0". Returns 0, or an error with a list of all names. */
int settings_set(const char *name, const struct setting **setting);

/*
 * Prints once if the user's file was read and is ignored. Call it after args_simulate(), which may
 * execute the command again. 'gpupart run' and doctor print it for the node's file.
 */
void settings_note(void);

/* Reports all mistakes in both files on stderr, for a command that goes on without them. */
void settings_report(void);

#endif
