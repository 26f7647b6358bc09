// SPDX-License-Identifier: MIT
/*
 * Fuzz target: the environments of other processes, as `run -n` reads them for what those will be
 * limited to: any bytes, and one as programs have it. A set that is found is of the board, and is
 * the one that the variables say, where they are of this GPU.
 */
#include <stdarg.h>
/* What is made of one process is its own affair. */
#include "../../cli/neighbours.c"
#include <topo.h>
#include "fuzz.h"

#define PCI	"0000:01:00.0"

static struct gpupart *gp;
static struct gpupart_topology *topo;
static const char *text;
static size_t text_len;

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);

int __wrap_open(const char *path, int flags, ...)
{
	if (!strcmp(path, "/proc/4242/environ"))
		path = fuzz_file(text, text_len);
	return __real_open(path, flags, 0600);
}

static void set_up(void)
{
	static const struct gpupart_gpu_info info = { .mig = -1 };
	static struct topo_sm sms[20];

	for (int i = 0; i < 20; i++)
		sms[i] = (struct topo_sm){ i / 2 % 2, i / 4, i % 2, i / 2, -1, -1, -1, -1, -1, -1 };
	MUST(!gpupart_open(&gp) && !topo_build(gp, &info, sms, 20, NULL, 0, &topo));
}

/* The first variable of that name; what is behind the last zero is one as well. */
static const char *variable(const char *name, char room[512])
{
	size_t len = strlen(name);

	*room = 0;
	for (size_t at = 0; at < text_len; at += strnlen(text + at, text_len - at) + 1) {
		size_t here = strnlen(text + at, text_len - at);

		/* An empty one ends it, for who reads it as strings. */
		if (!here)
			return room;
		if (here <= len || memcmp(text + at, name, len) || text[at + len] != '=')
			continue;
		snprintf(room, 512, "%.*s", (int)(here - len - 1), text + at + len + 1);
		return room;
	}
	return room;
}

static void read_it(const char *bytes, size_t len, struct gpupart_job *job)
{
	static char room[512], other[512];
	struct args args = { .cmd = "run" };
	struct neighbours n = { .args = &args, .topo = topo, .pci = PCI };
	struct gpupart_tpcset set, expected;
	const char *words;
	bool found, wanted;

	n.jobs = job;
	n.nr_jobs = 1;
	text = bytes;
	text_len = len;
	found = limit_to_be(&n, "4242", &set);
	MUST(!n.nr_too_long);
	words = !strcmp(variable("GPUPART_JOB", room), job->id) ? job->limit :
								  variable("GPUPART_SET", room);
	wanted = *words && strlen(words) < sizeof(room) - 1 &&
		 !gpupart_set_parse(gp, topo, words, &expected) &&
		 !strcasecmp(variable("GPUPART_GPU", other), PCI) &&
		 strcmp(variable("GPUPART_DISABLE", other), "1");
	if (strlen(words) < sizeof(room) - 1)
		MUST(found == wanted);
	if (!found)
		return;
	MUST(!gpupart_set_check(gp, topo, &set));
	MUST(!wanted || gpupart_tpcset_equal(&set, &expected));
	args.ignored_name = variable("GPUPART_NAME", other);
	MUST(!limit_to_be(&n, "4242", &set));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char before[] = "PATH=/bin\0GPUPART_GPU=0000:01:00.0\0GPUPART_SET=";
	struct gpupart_job job = { .id = "5-5-1", .limit = "3" };
	char *made = malloc(sizeof(before) + size + 1);

	MUST(made);
	if (!gp)
		set_up();
	read_it((const char *)data, size, &job);
	memcpy(made, before, sizeof(before) - 1);
	if (size)
		memcpy(made + sizeof(before) - 1, data, size);
	read_it(made, sizeof(before) - 1 + size, &job);
	free(made);
	return 0;
}
