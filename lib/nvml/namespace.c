// SPDX-License-Identifier: MIT
/*
 * Replaces functions of libc in this library. In the loader's audit namespace libc is a
 * separate copy from the program's: it never sees threads end or the program fork. Its malloc
 * would keep the caches of ended threads, and its locks could stay locked in the child of a
 * fork.
 */
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define EXPORT	__attribute__((visibility("default")))
#define HEAD	64	/* before each allocation, also for its alignment */

static size_t *head_of(void *memory)
{
	return (size_t *)((char *)memory - HEAD);
}

EXPORT void *malloc(size_t bytes)
{
	size_t *head;

	if (bytes > PTRDIFF_MAX - HEAD)
		goto none;
	head = mmap(NULL, bytes + HEAD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	if (head == MAP_FAILED)
		goto none;
	*head = bytes;
	return (char *)head + HEAD;
none:
	errno = ENOMEM;
	return NULL;
}

EXPORT void free(void *memory)
{
	if (memory)
		munmap(head_of(memory), *head_of(memory) + HEAD);
}

EXPORT void *calloc(size_t nr, size_t bytes)
{
	size_t all;

	/* New mappings are zero. */
	return malloc(__builtin_mul_overflow(nr, bytes, &all) ? SIZE_MAX : all);
}

EXPORT void *realloc(void *memory, size_t bytes)
{
	void *new = malloc(bytes);

	if (new && memory) {
		memcpy(new, memory, bytes < *head_of(memory) ? bytes : *head_of(memory));
		free(memory);
	}
	return new;
}

/*
 * Of the code that is linked here only ledger_read() is called, which only reads and locks no
 * files. It takes this lock on behalf of callers that lock files, whose locks a fork must not
 * keep.
 */
int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	(void)mutex;
	return 0;
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	(void)mutex;
	return 0;
}

int pthread_once(pthread_once_t *once, void (*init)(void))
{
	(void)once, (void)init;
	return 0;
}
