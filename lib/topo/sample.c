// SPDX-License-Identifier: MIT
/* Finds the captures that are installed as samples. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/topo/topology.h"

#define SAMPLE_END ".capture"

/*
 * Finds the full path of the file whose mapping contains @address. Returns false if the path is
 * too long.
 */
static bool mapped_file(const void *address, char *path, size_t len)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	size_t room = 0;
	char *line = NULL;
	bool found = false;

	while (maps && getline(&line, &room, maps) > 0) {
		unsigned long start, end;
		int at = 0;

		if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %n", &start, &end, &at) < 2 || !at ||
		    (uintptr_t)address < start || (uintptr_t)address >= end)
			continue;
		line[strcspn(line, "\n")] = 0;
		found = line[at] == '/' && strlen(line + at) < len;
		if (found)
			strcpy(path, line + at);
		break;
	}
	free(line);
	if (maps)
		fclose(maps);
	return found;
}

/*
 * Finds the directory of this library. If the library is statically linked, finds the directory of
 * the program. The loader may store a relative path. Such a path is relative to the current
 * directory at the time when the file was loaded.
 */
static bool library_folder(char *folder, size_t len)
{
	const void *own = (void *)(uintptr_t)library_folder;
	Dl_info info;

	if (dladdr(own, &info) && info.dli_fname[0] == '/' && strlen(info.dli_fname) < len)
		strcpy(folder, info.dli_fname);
	else if (!mapped_file(own, folder, len))
		return false;
	*strrchr(folder, '/') = 0;
	return true;
}

/*
 * Stores the path of directory number @nr in @folder. Several directories may contain samples. If
 * there is no directory with this number, returns false.
 */
static bool sample_folder(unsigned int nr, char *folder, size_t len)
{
	static const char *const below_library[] = {
		"/../share/gpupart/captures",
		"/../../share/gpupart/captures",
	};
	char library[PATH_MAX];
	int wrote;

	if (nr > 2)
		return false;
	if (nr == 2)
		wrote = snprintf(folder, len, "%s", GPUPART_DATADIR "/captures");
	else if (library_folder(library, sizeof(library)))
		wrote = snprintf(folder, len, "%s%s", library, below_library[nr]);
	else
		wrote = 0;
	if (wrote <= 0 || (size_t)wrote >= len)
		folder[0] = 0;
	return true;
}

static bool is_sample_name(const char *name)
{
	return *name && strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") == strlen(name);
}

static int is_sample_file(const struct dirent *entry)
{
	size_t len = strlen(entry->d_name);

	return len > strlen(SAMPLE_END) &&
	       !strcmp(entry->d_name + len - strlen(SAMPLE_END), SAMPLE_END);
}

static void name_samples(const char *folder, char *names, size_t len)
{
	struct dirent **entries;
	size_t at = 0;
	int nr, i;

	names[0] = 0;
	nr = scandir(folder, &entries, is_sample_file, alphasort);
	for (i = 0; i < nr; i++) {
		int shown = strlen(entries[i]->d_name) - strlen(SAMPLE_END);

		if (at + shown + 3 < len)
			at += sprintf(names + at, "%s%.*s", at ? ", " : "", shown,
				      entries[i]->d_name);
		free(entries[i]);
	}
	if (nr >= 0)
		free(entries);
}

int topo_file_sample(struct gpupart *gp, const char *name, char *path, size_t len)
{
	char folder[PATH_MAX], names[300];
	unsigned int i;
	int wrote;

	for (i = 0; is_sample_name(name) && sample_folder(i, folder, sizeof(folder)); i++) {
		wrote = snprintf(path, len, "%s/%s" SAMPLE_END, folder, name);
		if (folder[0] && wrote > 0 && (size_t)wrote < len && !access(path, F_OK))
			return 0;
	}
	for (i = 0; sample_folder(i, folder, sizeof(folder)); i++) {
		name_samples(folder, names, sizeof(names));
		if (names[0])
			return ctx_fail(gp, -ENOENT,
					"there is no sample \"%s\"; the samples are %s", name,
					names);
	}
	return ctx_fail(gp, -ENOENT, "there is no sample \"%s\": no samples are installed in %s",
			name, GPUPART_DATADIR "/captures");
}
