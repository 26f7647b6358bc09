// SPDX-License-Identifier: MIT
/*
 * The main program of a fuzz target without libFuzzer. It runs each file of the target's corpus
 * one time, in a separate process. The arguments are the files and folders of the corpus. Without
 * arguments, the corpus of the program fuzz-NAME is ../corpus/NAME, relative to the program.
 */
#include <dirent.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/fuzz/fuzz.h"
#include "tests/tap.h"

#define MAX_BYTES (1 << 20)

static void try_in_child(const char *path)
{
	FILE *file = fopen(path, "re");
	uint8_t *exact, *data = malloc(MAX_BYTES);
	size_t size;

	if (!file || !data)
		exit(2);
	size = fread(data, 1, MAX_BYTES, file);
	/*
	 * The buffer has exactly this size. So a sanitizer detects reads beyond the end of the
	 * buffer.
	 */
	exact = malloc(size);
	if (size)
		memcpy(exact, data, size);
	free(data);
	fclose(file);
	LLVMFuzzerTestOneInput(exact, size);
	free(exact);
	exit(0);
}

static void try_file(const char *path)
{
	int status = -1;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (!pid)
		try_in_child(path);
	tap_ok(pid > 0 && waitpid(pid, &status, 0) == pid && !status, "%s", path);
	if (status)
		printf("# it ended with status %d\n", status);
}

static int not_hidden(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void try_all(const char *path)
{
	struct dirent **entries;
	struct stat st;
	char below[4096];
	int nr;

	if (stat(path, &st) || !S_ISDIR(st.st_mode)) {
		try_file(path);
		return;
	}
	nr = scandir(path, &entries, not_hidden, alphasort);
	tap_ok(nr > 0, "%s has inputs", path);
	for (int i = 0; i < nr; i++) {
		snprintf(below, sizeof(below), "%s/%s", path, entries[i]->d_name);
		try_all(below);
		free(entries[i]);
	}
	if (nr >= 0)
		free(entries);
}

int main(int argc, char **argv)
{
	const char *slash = strrchr(argv[0], '/'), *name = strrchr(argv[0], '-');
	char path[4096];

	for (int i = 1; i < argc; i++)
		try_all(argv[i]);
	if (argc == 1) {
		snprintf(path, sizeof(path), "%.*s/../corpus/%s",
			 slash ? (int)(slash - argv[0]) : 1, slash ? argv[0] : ".",
			 name ? name + 1 : "");
		try_all(path);
	}
	return tap_done();
}
