// SPDX-License-Identifier: MIT
/*
 * Tests the environment of a job's tasks. It tests long values of the job's variables. It also
 * tests path lists with similar entries: the new path begins or ends with such an entry, but is
 * longer.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "tests/tap.h"

#if __has_include(<slurm/spank.h>)
#include <unistd.h>

/* The package's file next to the plugin exists. */
#define access(path, mode) ((void)(path), 0)
#include "cli/util/tunables_value.c"
#include "slurm/environment.c"

/* The job's environment. */
static struct {
	const char *name;
	char *value;
} variables[32];

static char **variable(const char *name)
{
	unsigned int i = 0;

	while (variables[i].name && strcmp(variables[i].name, name))
		i++;
	variables[i].name = name;
	return &variables[i].value;
}

static void put(const char *name, char *value)
{
	char **at = variable(name);

	free(*at);
	*at = value;
}

static const char *got(const char *name)
{
	return *variable(name) ? *variable(name) : "";
}

static bool simulated;
/* address of the frame of set() on the stack, which grows down */
static const char *top, *deepest;

/* Like Slurm's function, truncates a longer value. */
spank_err_t spank_getenv(spank_t spank, const char *name, char *buf, int len)
{
	const char *value = *variable(name);

	(void)spank;
	if (!value)
		return ESPANK_ENV_NOEXIST;
	return snprintf(buf, len, "%s", value) < len ? ESPANK_SUCCESS : ESPANK_NOSPACE;
}

spank_err_t spank_setenv(spank_t spank, const char *name, const char *value, int overwrite)
{
	char here;

	(void)spank;
	(void)overwrite;
	if (!deepest || &here < deepest)
		deepest = &here;
	put(name, strdup(value));
	return ESPANK_SUCCESS;
}

spank_err_t spank_unsetenv(spank_t spank, const char *name)
{
	(void)spank;
	put(name, NULL);
	return ESPANK_SUCCESS;
}

int boards_find(const char *pci, struct node_gpu *board, char *why, size_t len)
{
	(void)why;
	(void)len;
	memset(board, 0, sizeof(*board));
	board->simulated = simulated;
	snprintf(board->pci, sizeof(board->pci), "%s", pci);
	return 0;
}

char *boards_simulated(void)
{
	return strdup("a");
}

static char *filled(const char *begin, size_t len)
{
	char *text = malloc(len + 1);

	memset(text, 'x', len);
	memcpy(text, begin, strlen(begin));
	text[len] = 0;
	return text;
}

static const struct gpupart_grant grant = {
	.id = "0-7b", .name = "123", .pci = "0000:01:00.0", .memory = 1 << 30, .strict = true,
	.set.allowed = { 15 },
};

static int set(char *why, size_t len)
{
	char here;

	*why = 0;
	top = &here;
	return environment_set(NULL, &grant, why, len);
}

/*
 * A value has @len bytes. If the task's environment does not have the complete value, the task
 * must not start.
 */
static void try_long(const char *name, const char *begin, size_t len)
{
	char *value = filled(begin, len), why[256];
	int err;

	put(name, strdup(value));
	err = set(why, sizeof(why));
	tap_ok(err ? !!strstr(why, name) : !!strstr(got(name), value),
	       "%s of %zu KiB: %s", name, len >> 10, err ? why : "is kept");
	free(value);
	put(name, NULL);
}

/*
 * The job's variable @name contains the path of the package's @file. There are other characters
 * before or after this path.
 */
static void try_list(const char *name, const char *before, const char *file, const char *after)
{
	char *path = environment_package(true, file), whole[2 * PATH_MAX], *copy, *rest, *one;
	unsigned int times = 0;
	char why[256];

	snprintf(whole, sizeof(whole), "%s%s%s", before, path, after);
	put(name, strdup(whole));
	tap_ok(!set(why, sizeof(why)), "%s=%s", name, whole);
	rest = copy = strdup(got(name));
	while ((one = strsep(&rest, ": ")))
		times += !strcmp(one, path);
	tap_ok(times == 1 && strstr(got(name), whole), "has %s %u times, and what it had", path,
	       times);
	free(copy);
	free(path);
	put(name, NULL);
}

/* slurmd's threads have small stacks; builds with sanitizers have larger frames. */
static void try_stack(void)
{
	char why[256];

	simulated = true;
	deepest = NULL;
	tap_ok(!set(why, sizeof(why)) && !strcmp(got("GPUPART_SIM"), "a"), "of a simulated GPU");
	tap_ok(top - deepest < 16 << 10, "%td bytes of stack", top - deepest);
	simulated = false;
}

int main(void)
{
	char why[256];

	tap_ok(!set(why, sizeof(why)) && !strcmp(got("GPUPART_SET"), "0-3"), "a task is confined");
	try_stack();
	put("LD_PRELOAD", NULL);
	put("LD_AUDIT", NULL);
	put("GLIBC_TUNABLES", NULL);
	put("CUDA_INJECTION64_PATH", NULL);
	for (size_t len = 60 << 10; len <= 260 << 10; len += 40 << 10) {
		try_long("LD_PRELOAD", "", len);
		try_long("LD_AUDIT", "", len);
		try_long("GLIBC_TUNABLES", "glibc.malloc.check=", len);
	}
	try_long("CUDA_INJECTION64_PATH", "/other/tool/", 100);
	put("CUDA_INJECTION64_PATH", filled("/other/tool/libgpupart-inject.so/", 5000));
	tap_ok(set(why, sizeof(why)) || strstr(got("LD_PRELOAD"), "/libgpupart-inject.so"),
	       "a tool's path of 5000 characters: %s", why);
	put("CUDA_INJECTION64_PATH", strdup("/opt/libgpupart-inject.so.d/tool.so"));
	tap_ok(!set(why, sizeof(why)) && !strcmp(got("CUDA_INJECTION64_PATH"),
						 "/opt/libgpupart-inject.so.d/tool.so"),
	       "a tool in a folder of our library's name keeps its place");
	put("CUDA_INJECTION64_PATH", strdup("/outside/libgpupart-inject.so"));
	tap_ok(!set(why, sizeof(why)) && strncmp(got("CUDA_INJECTION64_PATH"), "/outside/", 9),
	       "another gpupart's library does not");
	put("CUDA_INJECTION64_PATH", NULL);
	put("LD_PRELOAD", NULL);
	put("LD_AUDIT", NULL);
	try_list("LD_PRELOAD", "", "libgpupart-inject.so", ".old");
	try_list("LD_PRELOAD", "/a.so:", "libgpupart-inject.so", " /b.so");
	try_list("LD_PRELOAD", "/x", "libgpupart-inject.so", "");
	try_list("LD_AUDIT", "/a.so:", "libgpupart-nvml.so", "2");
	try_list("LD_AUDIT", "", "libgpupart-nvml.so", ":/a.so");
	return tap_done();
}
#else
int main(void)
{
	tap_skip("Slurm's headers are not here");
	return tap_done();
}
#endif
