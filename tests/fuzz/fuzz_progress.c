// SPDX-License-Identifier: MIT
/*
 * Fuzz target: the lines that programs write to the socket of `gpupart qos`, a datagram a line
 * of the input. Each counts for the tenant that it names, once, or not at all.
 */
#include <sys/socket.h>
#include "../../cli/qos_live.h"
#include "fuzz.h"

static const char *left;

ssize_t __wrap_recv(int fd, void *room, size_t len, int flags);

ssize_t __wrap_recv(int fd, void *room, size_t len, int flags)
{
	size_t nr;

	(void)flags;
	MUST(fd == 5);
	if (!*left)
		return -1;
	nr = strcspn(left, "\n");
	memcpy(room, left, nr < len ? nr : len);
	left += nr;
	left += *left == '\n';
	return nr < len ? nr : len;
}

static uint64_t nr_lines_of(const char *text, const char *name)
{
	uint64_t nr = 0;

	for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
		const char *word = text + strspn(text, " \t\r");

		nr += !strncmp(word, name, strlen(name));
	}
	return nr;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = { "llm", "batch" };
	static struct live live;
	char *text = fuzz_text(data, size);

	memset(&live, 0, sizeof(live));
	live.cmd = "qos";
	live.nr = 2;
	live.socket = 5;
	for (int i = 0; i < 2; i++)
		live.tenants[i].name = names[i];
	left = text;
	live_listen(&live);
	for (int i = 0; i < 2; i++) {
		struct live_tenant *t = &live.tenants[i];
		uint64_t latencies = 0;

		for (int k = 0; k < GPUPART_NR_LATENCIES; k++)
			latencies += t->latencies[k];
		MUST(latencies <= t->since_change && t->ever_told == !!t->since_change);
		MUST(t->since_change <= nr_lines_of(text, names[i]));
		if (!t->since_change)
			MUST(!t->told_milli);
	}
	free(text);
	return 0;
}
