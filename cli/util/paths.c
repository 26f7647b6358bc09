// SPDX-License-Identifier: MIT
/* Finds the files of the package. Restarts the command with the simulated GPU. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/util/alloc.h"
#include "cli/util/message.h"
#include "cli/util/path_list.h"
#include "cli/util/paths.h"

int paths_full(const char *path, char *full, size_t len)
{
	char real[PATH_MAX];

	if (!realpath(path, real))
		return -errno;
	return snprintf(full, len, "%s", real) < (int)len ? 0 : -ENAMETOOLONG;
}

int paths_package(const char *name, char *path, size_t len)
{
	/*
	 * Do not use &gpupart_version. In a program without PIC, this is the address of a stub in
	 * the program.
	 */
	void *version = dlsym(RTLD_DEFAULT, "gpupart_version");
	char lib[PATH_MAX];
	Dl_info info;
	int err;

	if (!version || !dladdr(version, &info) || !info.dli_fname)
		return -ENOENT;
	err = paths_full(info.dli_fname, lib, sizeof(lib));
	if (err)
		return err;
	*strrchr(lib, '/') = 0;
	if (snprintf(path, len, "%s/gpupart/%s", lib, name) >= (int)len)
		return -ENAMETOOLONG;
	return access(path, F_OK) ? -errno : 0;
}

const char *paths_advice(const char *name, char *path, size_t len)
{
	char full[PATH_MAX];
	int err = paths_package(name, full, sizeof(full));

	if (err) {
		snprintf(path, len, "%s: %s", name, strerror(-err));
		return "reinstall gpupart";
	}
	snprintf(path, len, "%s", full);
	if (!access(full, R_OK))
		return NULL;
	snprintf(path, len, "%s: %s", full, strerror(errno));
	return "make it readable for this user";
}

bool paths_same(const char *a, const char *b)
{
	struct stat sa, sb;

	return !stat(a, &sa) && !stat(b, &sb) && sa.st_dev == sb.st_dev && sa.st_ino == sb.st_ino;
}

bool paths_is_inject(const char *path)
{
	return path_is_named(path, PATHS_INJECT);
}

const char *paths_source(const char *path, char *text, size_t len)
{
	const char *name = strrchr(path, '/');
	char file[PATH_MAX], ours[PATH_MAX], *end;

	snprintf(file, sizeof(file), "../../share/gpupart/captures%s", name ? name : "/");
	if (paths_package(file, ours, sizeof(ours)) || !paths_same(path, ours))
		return path;
	snprintf(text, len, "sample:%s", name + 1);
	end = strrchr(text, '.');
	if (end)
		*end = 0;
	return text;
}

bool paths_is_live(const char *source)
{
	return !strcmp(source, "kernel") || !strcmp(source, "rm");
}

static char **main_argv;

void paths_set_argv(int argc, char **argv)
{
	main_argv = alloc_zeroed(argc + 1, sizeof(*argv));
	memcpy(main_argv, argv, argc * sizeof(*argv));
}

int paths_enter_sim(const char *capture)
{
	const char *libs = getenv("LD_LIBRARY_PATH"), *sim = getenv("GPUPART_SIM");
	char folder[PATH_MAX], *joined;
	size_t len;
	int err;

	err = paths_package(PATHS_SIM, folder, sizeof(folder));
	if (err)
		return usage_error("the simulated driver is not installed (%s): %s", PATHS_SIM,
				   strerror(-err));
	len = strlen(folder);
	if (sim && !strcmp(sim, capture) && libs && !strncmp(libs, folder, len) &&
	    (!libs[len] || libs[len] == ':'))
		return 0;
	if (strchr(capture, ':'))
		return usage_error("-i %s: the path of a capture must not contain a colon",
				   capture);
	if (strpbrk(folder, ":;"))
		return usage_error(
			"%s: the loader does not support a directory with a colon or semicolon in its name",
			folder);
	joined = alloc_text("%s%s%s", folder, libs && *libs ? ":" : "", libs ? libs : "");
	setenv("LD_LIBRARY_PATH", joined, 1);
	setenv("GPUPART_SIM", capture, 1);
	free(joined);
	execv("/proc/self/exe", main_argv);
	return usage_error("cannot restart gpupart: %s", strerror(errno));
}

bool paths_read_line(const char *path, char *text, size_t len)
{
	FILE *file = fopen(path, "re");
	bool good = file && fgets(text, len, file);

	if (file)
		fclose(file);
	if (good)
		text[strcspn(text, "\n")] = 0;
	return good;
}
