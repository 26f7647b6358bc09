/* SPDX-License-Identifier: MIT */
/*
 * Named sets and defaults: the user's configuration file, and behind it the node's. What stands in
 * both is the user's.
 */
#ifndef GPUPART_CLI_TARGET_SETTINGS_H
#define GPUPART_CLI_TARGET_SETTINGS_H

struct setting {
	char *key, *value;
	char *from;		/* "/etc/gpupart/config:3: " */
};

/*
 * What "default.@key" is, in *setting, which stays; NULL where no file has it: 0, or an error of a
 * line in one of the files.
 */
int settings_default(const char *key, const struct setting **setting);

/* The set called @name, as "-u 0": 0, or an error, which lists those there are. */
int settings_set(const char *name, const struct setting **setting);

/*
 * Says once that the user's file is ignored, if it is and was asked. Not before args_simulate(),
 * which may start the command anew. Of the node's file, 'gpupart run' and doctor say it.
 */
void settings_note(void);

/* Reports all mistakes in both files on stderr, for a command that goes on without them. */
void settings_report(void);

#endif
