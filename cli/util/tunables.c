// SPDX-License-Identifier: MIT
/*
 * Sets GLIBC_TUNABLES for a program. With this value, the program's libraries have enough static
 * TLS.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/util/message.h"
#include "cli/util/tunables.h"
#include "cli/util/tunables_value.h"

/* Opens the file that execvp() would execute for @program. If there is no such file, returns -1. */
static int open_program(const char *program)
{
	const char *at = getenv("PATH");
	char path[PATH_MAX];
	int len;

	if (strchr(program, '/'))
		return open(program, O_RDONLY | O_CLOEXEC);
	for (; at && *at; at += len + (at[len] == ':')) {
		len = strcspn(at, ":");
		if (snprintf(path, sizeof(path), "%.*s%s%s", len, at, len ? "/" : "", program) <
			    (int)sizeof(path) && !access(path, X_OK))
			return open(path, O_RDONLY | O_CLOEXEC);
	}
	return -1;
}

/*
 * Returns whether the program is linked with ThreadSanitizer. In this case the program's file
 * contains the name of the library.
 */
static bool names_tsan(const char *program)
{
	static const char name[] = "libtsan.so";
	int fd = open_program(program);
	void *file = MAP_FAILED;
	const char *at;
	bool found = false;
	struct stat st;

	if (fd < 0)
		return false;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size >= 4)
		file = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (file != MAP_FAILED) {
		at = memcmp(file, "\177ELF", 4) ? NULL : memmem(file, st.st_size - 1, name,
							       strlen(name));
		/*
		 * The file of this command contains the library's name without a version. So search
		 * for the name with a version.
		 */
		found = at && at[strlen(name)] == '.';
		munmap(file, st.st_size);
	}
	close(fd);
	return found;
}

void tunables_raise(const char *audited)
{
	char *joined = tunables_join(getenv(TUNABLES), !audited ? TUNABLES_TLS :
				     names_tsan(audited) ? TUNABLES_TLS_TSAN : TUNABLES_TLS_AUDIT);

	if (!joined || setenv(TUNABLES, joined, 1))
		remark(TUNABLES " could not be set: no memory");
	free(joined);
}
