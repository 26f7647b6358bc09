/* SPDX-License-Identifier: MIT */
/*
 * Reads named sets and defaults from the user's configuration file and from the node's
 * configuration file. If a key is in both files, the user's value applies.
 */
#ifndef GPUPART_CLI_TARGET_SETTINGS_H
#define GPUPART_CLI_TARGET_SETTINGS_H

struct setting {
	char *key, *value;
	char *from;		/* such as "/etc/gpupart/config:3: " */
};

/*
 * Sets *setting to the setting "default.@key". This setting is never freed. If there is no such
 * setting, sets *setting to NULL. If one of the files has an invalid line, returns an error.
 * Otherwise returns 0.
 */
int settings_default(const char *key, const struct setting **setting);

/*
 * Finds the named set @name. Its value is text such as "-u 0". If there is no such set, prints a
 * list of all names and returns an error. Otherwise returns 0.
 */
int settings_set(const char *name, const struct setting **setting);

/*
 * If the user's file is ignored, prints a message once. Call this function after args_simulate(),
 * because args_simulate() may execute the command again. If the node's file is ignored, 'gpupart
 * run' and 'gpupart doctor' print a message.
 */
void settings_note(void);

/*
 * Prints all mistakes in both files on stderr. For a command that can continue without the files.
 */
void settings_report(void);

#endif
