// SPDX-License-Identifier: MIT
/* Allocates memory. If there is no memory, ends the command. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "cli/util/alloc.h"
#include "cli/util/message.h"
#include "lib/private.h"

bool alloc_before_start;
struct gpupart *cmd_gp;

void alloc_failed(void)
{
	exit(cmd_exit_status(failure("no memory"), alloc_before_start));
}

static void *checked(void *memory)
{
	if (!memory)
		alloc_failed();
	return memory;
}

void *alloc_zeroed(size_t nr, size_t size)
{
	return checked(calloc(nr, size));
}

void *alloc_resized(void *old, size_t nr, size_t size)
{
	return checked(reallocarray(old, nr, size));
}

char *alloc_text(const char *fmt, ...)
{
	char *text;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		alloc_failed();
	va_end(ap);
	return text;
}

char *alloc_part(const char *list, char separator, unsigned int n)
{
	size_t len;

	list = gpupart_list_part(list, separator, n, &len);
	return list ? checked(strndup(list, len)) : NULL;
}

FILE *alloc_file(char **text, size_t *len)
{
	return checked(open_memstream(text, len));
}

void alloc_file_close(FILE *file)
{
	if (ferror(file) | fclose(file))
		alloc_failed();
}

struct gpupart *alloc_gpupart(void)
{
	struct gpupart *gp;

	if (gpupart_open(&gp))
		alloc_failed();
	return gp;
}
