// SPDX-License-Identifier: MIT
/*
 * Sets the environment of a job's tasks: the set, the quota, and the libraries that apply them.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/util/path_list.h"
#include "cli/util/tunables_value.h"
#include "slurm/environment.h"
#include "slurm/node_file.h"

#define VALUE_MAX (128u << 10)	/* MAX_ARG_STRLEN: the limit of execve() */
#define INJECT "libgpupart-inject.so"

char *environment_package(bool lib, const char *name)
{
	static char found;
	char *own, *path = NULL;
	Dl_info info;

	own = dladdr(&found, &info) ? realpath(info.dli_fname, NULL) : NULL;
	if (!own)
		return NULL;
	/* This is lib/gpupart/gpupart_spank.so. */
	*strrchr(own, '/') = 0;
	if (asprintf(&path, "%s/%s%s", own, lib ? "" : "../../bin/", name) < 0)
		path = NULL;
	free(own);
	if (path && access(path, F_OK)) {
		free(path);
		return NULL;
	}
	return path;
}

/*
 * Returns the job's value of @variable, or "". The caller must free the string. On an error,
 * returns NULL and stores a reason in @why. The errors are too little memory, and a value that is
 * too long for execve().
 */
static char *value_of(spank_t spank, const char *variable, char *why, size_t len)
{
	char *value = calloc(1, VALUE_MAX);

	if (!value) {
		snprintf(why, len, "no memory");
	} else if (spank_getenv(spank, variable, value, VALUE_MAX) == ESPANK_NOSPACE) {
		snprintf(why, len, "its %s has %u KiB or more: no program can start with it",
			 variable, VALUE_MAX >> 10);
		free(value);
		return NULL;
	}
	return value;
}

/*
 * If the job's value of @variable does not contain @path yet, adds @path before or after the
 * value.
 */
static int join(spank_t spank, const char *variable, const char *path, bool before, char *why,
		size_t len)
{
	char *old = value_of(spank, variable, why, len), *joined = NULL;
	const char *separators = strcmp(variable, "LD_PRELOAD") ? PATH_LIST_OTHERS
								: PATH_LIST_PRELOAD;
	int err = 0;

	if (!old)
		return -EINVAL;
	if (path_list_has(old, separators, path))
		goto free_old;
	if (*old && asprintf(&joined, "%s:%s", before ? path : old, before ? old : path) < 0)
		err = -ENOMEM;
	if (!err && spank_setenv(spank, variable, joined ? joined : path, 1) != ESPANK_SUCCESS)
		err = -EINVAL;
	free(joined);
free_old:
	free(old);
	return err;
}

/*
 * Adds the injected library to the driver's variable. If another tool already uses this variable,
 * adds the library to LD_PRELOAD instead.
 */
static int inject(spank_t spank, bool strict, char *why, size_t len)
{
	char *path = environment_package(true, INJECT), *taken;
	int err = -EINVAL;
	bool is_taken;

	if (!path) {
		snprintf(why, len, INJECT " is not installed in the directory of the plugin");
		return -ENOENT;
	}
	taken = value_of(spank, "CUDA_INJECTION64_PATH", why, len);
	if (!taken)
		goto free_path;
	is_taken = *taken && !path_is_named(taken, INJECT);
	free(taken);
	/*
	 * A preloaded library always gets its thread-local memory. Libraries that the program
	 * loads later cannot use up this memory.
	 */
	if ((is_taken || strict) && join(spank, "LD_PRELOAD", path, true, why, len))
		goto free_path;
	if (is_taken || spank_setenv(spank, "CUDA_INJECTION64_PATH", path, 1) == ESPANK_SUCCESS)
		err = 0;
free_path:
	free(path);
	return err;
}

/*
 * Reserves @bytes of static TLS for libraries that are loaded later. Keeps the job's other
 * tunables of glibc.
 */
static int raise_tls(spank_t spank, size_t bytes, char *why, size_t len)
{
	char *old = value_of(spank, TUNABLES, why, len), *joined = NULL;

	if (old)
		joined = tunables_join(old, bytes);
	free(old);
	if (joined && spank_setenv(spank, TUNABLES, joined, 1) == ESPANK_SUCCESS)
		bytes = 0;
	free(joined);
	return bytes ? -ENOMEM : 0;
}

static int simulate(spank_t spank, char *why, size_t len)
{
	char *path = environment_package(true, "sim"), *captures = boards_simulated();
	int err = -ENOENT;

	if (path)
		err = join(spank, "LD_LIBRARY_PATH", path, true, why, len);
	if (!err && (!captures ||
		     spank_setenv(spank, "GPUPART_SIM", captures, 1) != ESPANK_SUCCESS))
		err = -EINVAL;
	free(captures);
	free(path);
	return err;
}

static int set_memory(spank_t spank, const struct gpupart_grant *grant, char *why, size_t len)
{
	char *path, bytes[24];
	int err = 0;

	snprintf(bytes, sizeof(bytes), "%llu", (unsigned long long)grant->memory);
	if (spank_setenv(spank, "GPUPART_TENANT", grant->name, 1) != ESPANK_SUCCESS ||
	    spank_setenv(spank, "GPUPART_MEM", bytes, 1) != ESPANK_SUCCESS)
		return -EINVAL;
	/*
	 * If this library is missing, the quota still applies, but nvidia-smi shows the memory of
	 * the whole GPU.
	 */
	path = environment_package(true, "libgpupart-nvml.so");
	if (path && !strpbrk(path, ":$"))
		err = join(spank, "LD_AUDIT", path, false, why, len);
	free(path);
	return err;
}

static int set_all(spank_t spank, const struct gpupart_grant *grant, const struct node_gpu *board)
{
	char list[GPUPART_TPCSET_STRLEN];
	const struct {
		const char *name, *value;
	} values[] = {
		{ "GPUPART_SET", list }, { "GPUPART_GPU", grant->pci },
		{ "GPUPART_NAME", grant->name }, { "GPUPART_JOB", grant->id },
		{ "GPUPART_CHECKED", board->key },
	};
	/*
	 * These variables come from the shell that submitted the job. This shell is on another
	 * node, and may be inside a `gpupart run`.
	 */
	static const char *const others[] = { "GPUPART_DISABLE", "GPUPART_TENANT", "GPUPART_MEM",
					      "GPUPART_STRICT", "GPUPART_REPORT" };

	gpupart_tpcset_format_list(&grant->set, list, sizeof(list));
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		spank_unsetenv(spank, others[i]);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
		if (spank_setenv(spank, values[i].name, values[i].value, 1) != ESPANK_SUCCESS)
			return -EINVAL;
	if (grant->strict && spank_setenv(spank, "GPUPART_STRICT", "1", 1) != ESPANK_SUCCESS)
		return -EINVAL;
	return 0;
}

int environment_set(spank_t spank, const struct gpupart_grant *grant, char *why, size_t len)
{
	struct node_gpu board;
	int err = boards_find(grant->pci, &board, why, len);

	if (err)
		return err;
	snprintf(why, len, "cannot set the environment of its tasks");
	err = set_all(spank, grant, &board);
	if (!err)
		err = inject(spank, grant->strict, why, len);
	if (!err)
		err = raise_tls(spank, grant->memory ? TUNABLES_TLS_AUDIT : TUNABLES_TLS, why, len);
	if (!err && board.simulated)
		err = simulate(spank, why, len);
	if (!err && grant->memory)
		err = set_memory(spank, grant, why, len);
	return err;
}
