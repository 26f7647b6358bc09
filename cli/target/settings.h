/* SPDX-License-Identifier: MIT */
/*
 * Named sets and defaults from the configuration files of the user and of the node. If both files
 * have a key, the user's value applies.
 */
#ifndef GPUPART_CLI_TARGET_SETTINGS_H
#define GPUPART_CLI_TARGET_SETTINGS_H

struct setting {
	char *key, *value;
	char *from;		/* such as "/etc/gpupart/config:3: " */
};

/*
 * Sets *setting to the setting "default.@key", which is never freed. If there is no such setting,
 * sets *setting to NULL. Returns 0, or an error if one of the files has an invalid line.
 */
int settings_default(const char *key, const struct setting **setting);

/*
 * Finds the named set @name, whose value is text such as "-u 0". Returns 0, or an error with a list
 * of all names.
 */
int settings_set(const char *name, const struct setting **setting);

/*
 * If the user's file is ignored, prints a message about this once. Call this after
 * args_simulate(), which may execute the command again. For the node's file, 'gpupart run' and
 * 'gpupart doctor' print such a message.
 */
void settings_note(void);

/*
 * Prints all mistakes in both files on stderr. This function is for a command that continues
 * without the files.
 */
void settings_report(void);

#endif
