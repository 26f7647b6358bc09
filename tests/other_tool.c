// SPDX-License-Identifier: MIT
/*
 * The injected library of another tool. At each call, it appends a line to the file
 * OTHER_TOOL_LOG. It does not use gpupart.
 */
#include <stdio.h>
#include <stdlib.h>

int InitializeInjection(void) __attribute__((visibility("default")));

int InitializeInjection(void)
{
	const char *path = getenv("OTHER_TOOL_LOG");
	FILE *log = path ? fopen(path, "a") : NULL;

	if (log) {
		fputs("called\n", log);
		fclose(log);
	}
	return 1;
}
