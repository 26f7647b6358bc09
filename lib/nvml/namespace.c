// SPDX-License-Identifier: MIT
/*
 * Replaces some functions of libc in this library. The loader's audit namespace has a separate
 * copy of libc. This copy is not informed when threads of the program end or when the program
 * forks. So its malloc() would keep the caches of threads that ended, and its locks could stay
 * locked in the child of a fork.
 */
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define EXPORT	__attribute__((visibility("default")))
#define HEAD	64	/* bytes before each allocation; a multiple of the alignment */

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

	/* The kernel fills the memory of new mappings with zeros. */
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
 * This library locks no file, so it needs no mutex. Only ledger_read() uses a mutex, because other
 * libraries contain the same code and lock files. In those libraries, the mutex prevents the child
 * of a fork from keeping the locks.
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
