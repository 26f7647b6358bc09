// SPDX-License-Identifier: MIT
/*
 * See cupti.h. Its counters are those of a GPU, or of the process that counts: under MPS, of
 * all tenants together. Must not begin to count, which stops others' profilers.
 */
#include <dlfcn.h>
#include <glob.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cupti.h"

#define CAP_SYS_ADMIN	21	/* capabilities(7) */
#define CAP_PERFMON	38

/* The loader's way, then CUDA's folders, then those of Python packages, as PyTorch brings it. */
static const char *const names[] = { "libcupti.so.13", "libcupti.so.12", "libcupti.so" };
static const char *const patterns[] = {
	"/usr/local/cuda*/extras/CUPTI/lib64/libcupti.so*",
	"/usr/local/cuda*/lib64/libcupti.so*",
	"/usr/lib*/python3*/*-packages/nvidia/c*/lib/libcupti.so*",
	"/usr/local/lib/python3*/*-packages/nvidia/c*/lib/libcupti.so*",
	"/opt/*/lib/python3*/site-packages/nvidia/c*/lib/libcupti.so*",
};

/* Of the files that @pattern stands for, the first that can be loaded. */
static void *load_one_of(const char *pattern, char *path, size_t len)
{
	void *lib = NULL;
	glob_t found;

	if (glob(pattern, 0, NULL, &found))
		return NULL;
	for (size_t i = 0; i < found.gl_pathc && !lib; i++) {
		lib = dlopen(found.gl_pathv[i], RTLD_NOW | RTLD_LOCAL);
		if (lib)
			snprintf(path, len, "%s", found.gl_pathv[i]);
	}
	globfree(&found);
	return lib;
}

static void *load_of_python(char *path, size_t len)
{
	const char *env = getenv("VIRTUAL_ENV");
	char pattern[1024];

	if (!env || snprintf(pattern, sizeof(pattern),
			     "%s/lib/python3*/site-packages/nvidia/c*/lib/libcupti.so*",
			     env) >= (int)sizeof(pattern))
		return NULL;
	return load_one_of(pattern, path, len);
}

static void *load(char *path, size_t len)
{
	const char *named = getenv("GPUPART_CUPTI");
	void *lib = NULL;
	size_t i;

	if (named && *named) {
		snprintf(path, len, "%s", named);
		return dlopen(named, RTLD_NOW | RTLD_LOCAL);
	}
	for (i = 0; i < sizeof(names) / sizeof(names[0]) && !lib; i++) {
		lib = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
		if (lib)
			snprintf(path, len, "%s", names[i]);
	}
	if (!lib)
		lib = load_of_python(path, len);
	for (i = 0; i < sizeof(patterns) / sizeof(patterns[0]) && !lib; i++)
		lib = load_one_of(patterns[i], path, len);
	return lib;
}

/* Whether @line, "KEY: VALUE", is in the file at @path; then its number in @base. */
static bool read_number(const char *path, const char *key, int base, uint64_t *value)
{
	FILE *file = fopen(path, "re");
	size_t len = strlen(key);
	bool found = false;
	char line[256];

	while (file && !found && fgets(line, sizeof(line), file)) {
		found = !strncmp(line, key, len) && line[len] == ':';
		if (found)
			*value = strtoull(line + len + 1, NULL, base);
	}
	if (file)
		fclose(file);
	return found;
}

/* The driver lets administrators alone count, unless it was loaded otherwise. */
static bool may_count(void)
{
	uint64_t admin_only = 0, has = 0;

	if (!read_number("/proc/driver/nvidia/params", "RmProfilingAdminOnly", 10, &admin_only) ||
	    !admin_only)
		return true;
	return read_number("/proc/self/status", "CapEff", 16, &has) &&
	       (has >> CAP_SYS_ADMIN & 1 || has >> CAP_PERFMON & 1);
}

const char *cupti_why_not(char *why, size_t len)
{
	int (*version)(uint32_t *version);
	uint32_t api = 0;
	char path[512] = "";
	void *lib = load(path, sizeof(path));

	if (!lib) {
		snprintf(why, len, "no libcupti.so was found (GPUPART_CUPTI=FILE names it)%s%.200s",
			 *path ? ": " : "", path);
		return why;
	}
	*(void **)&version = dlsym(lib, "cuptiGetVersion");
	if (!version || version(&api))
		snprintf(why, len, "%.200s is no CUPTI", path);
	else if (!may_count())
		snprintf(why, len, "%.200s may not count: RmProfilingAdminOnly is 1 in "
			 "/proc/driver/nvidia/params, and this is no administrator", path);
	else
		snprintf(why, len, "%.200s (API %" PRIu32 ") counts a GPU's instructions, not "
			 "those of each tenant: reported and launches are of each", path, api);
	dlclose(lib);
	return why;
}
