// SPDX-License-Identifier: MIT
/*
 * tests/cli/fail.sh preloads this library into a program. The library makes allocation number
 * FAIL_AT of the program fail. Then it creates the file FAIL_MARK. Allocations are counted from
 * the start of main(), and include the allocations of other libraries.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

/* The C library's own functions, by the names for wrappers. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t nr, size_t size);
void *__libc_realloc(void *memory, size_t size);

static atomic_long left = -1;
static const char *mark;

__attribute__((constructor))
static void begin(void)
{
	const char *at = getenv("FAIL_AT");

	mark = getenv("FAIL_MARK");
	atomic_store(&left, at ? atol(at) : -1);
	/* Allocations must not fail in the children of this program. */
	unsetenv("FAIL_AT");
}

static int fails(void)
{
	int fd;

	if (atomic_load(&left) <= 0 || atomic_fetch_sub(&left, 1) != 1)
		return 0;
	fd = mark ? open(mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0600) : -1;
	if (fd >= 0)
		close(fd);
	errno = ENOMEM;
	return 1;
}

__attribute__((visibility("default")))
void *malloc(size_t size)
{
	return fails() ? NULL : __libc_malloc(size);
}

__attribute__((visibility("default")))
void *calloc(size_t nr, size_t size)
{
	return fails() ? NULL : __libc_calloc(nr, size);
}

__attribute__((visibility("default")))
void *realloc(void *memory, size_t size)
{
	return fails() ? NULL : __libc_realloc(memory, size);
}
