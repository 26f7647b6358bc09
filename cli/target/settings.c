// SPDX-License-Identifier: MIT
/*
 * Reads named sets and defaults from two files; see settings.h. Call these functions from one
 * thread.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include "cli/target/check.h"
#include "cli/target/settings.h"
#include "cli/util/alloc.h"
#include "cli/util/message.h"
#include "cli/util/out.h"
#include "lib/private.h"

static struct setting *settings;	/* the user's settings, followed by the node's */
static unsigned int nr_settings;
static char *ignored[2];		/* the reason why a file is not read, or NULL */
static int node_status;			/* result of reading the node's file */

static const struct setting *find(const char *kind, const char *name)
{
	for (unsigned int i = 0; i < nr_settings; i++)
		if (!strncmp(settings[i].key, kind, strlen(kind)) &&
		    !strcmp(settings[i].key + strlen(kind), name))
			return &settings[i];
	return NULL;
}

static bool is_key(const char *key)
{
	return (!strncmp(key, "set.", 4) && check_is_name(key + 4)) ||
	       !strcmp(key, "default.input") || !strcmp(key, "default.shape");
}

static int add_line(const struct gpupart_config *config)
{
	const char *key = config->key;

	/* The library reads the key "strict". */
	if (!config->own && !strcasecmp(key, "strict"))
		return 0;
	if (!is_key(key))
		return usage_error(
			"%s:%u: '%.40s' is not a key: must be %sset.NAME, default.input or default.shape",
			config->path, config->line, key, config->own ? "" : "strict, ");
	if (!*config->value)
		return usage_error("%s:%u: '%.40s' has no value", config->path, config->line, key);
	settings = alloc_resized(settings, nr_settings + 1, sizeof(*settings));
	settings[nr_settings++] = (struct setting){
		alloc_text("%s", key), alloc_text("%s", config->value),
		alloc_text("%s:%u: ", config->path, config->line),
	};
	return 0;
}

static int read_file(const char *path, bool own)
{
	struct gpupart_config config;
	int found, status = 0;

	gpupart_config_open(&config, path, own);
	while (!status && (found = gpupart_config_next(cmd_gp, &config)) > 0)
		status = add_line(&config);
	if (status || !found)
		return status;
	if (found != -EPERM && found != -EACCES)
		return error_of(-EINVAL, "%s", gpupart_error(cmd_gp));
	ignored[own] = alloc_text("%s", gpupart_error(cmd_gp));
	return 0;
}

/* Returns the path of the user's file, or NULL. The caller frees the path. */
static char *user_path(void)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

	if (config && *config == '/')
		return alloc_text("%s/gpupart/config", config);
	return home && *home == '/' ? alloc_text("%s/.config/gpupart/config", home) : NULL;
}

static int read_files(void)
{
	static bool is_read;
	char *path;
	int status = 0;

	if (is_read)
		return 0;
	is_read = true;
	path = user_path();
	if (path)
		status = read_file(path, true);
	free(path);
	node_status = read_file(GPUPART_CONFIG, false);
	return status ?: node_status;
}

void settings_note(void)
{
	if (ignored[true])
		remark("%s", ignored[true]);
	free(ignored[true]);
	ignored[true] = NULL;
}

void settings_report(void)
{
	read_files();
	settings_note();
	/*
	 * The library reads the key "strict". It also rejects a file that others could have
	 * written. Check both here.
	 */
	if (!node_status && gpupart_config_strict(cmd_gp) < 0)
		remark("%s", gpupart_error(cmd_gp));
}

int settings_default(const char *key, const struct setting **setting)
{
	int status = read_files();

	*setting = find("default.", key);
	return status;
}

int settings_set(const char *name, const struct setting **setting)
{
	char names[400] = "";
	int status = read_files();

	*setting = find("set.", name);
	if (status || *setting)
		return status;
	settings_note();
	if (ignored[false])
		remark("%s", ignored[false]);
	for (unsigned int i = 0; i < nr_settings; i++)
		if (!strncmp(settings[i].key, "set.", 4) &&
		    find("set.", settings[i].key + 4) == &settings[i])
			out_append(names, sizeof(names), "%s@%s", *names ? ", " : "",
				   settings[i].key + 4);
	if (*names)
		return usage_error("@%.64s: no such set: the named sets are %s", name, names);
	return usage_error(
		"@%.64s: no such set: add a line such as 'set.%.64s = -u 0' to ~/.config/gpupart/config or %s",
		name, *name ? name : "NAME", GPUPART_CONFIG);
}
