// SPDX-License-Identifier: MIT
/*
 * Fuzz target: the environments of other processes. `gpupart run -n` reads them to find the
 * future limits of these processes. The input is either any bytes or an environment in the usual
 * form. If the code finds a set, the board must have the set's TPCs. If the variables are for
 * this GPU, the found set must equal the set in the variables.
 */
#include <stdarg.h>
/* The code that reads one process is internal. */
#include "cli/target/neighbours.c"
#include "lib/topo/topology.h"
#include "tests/fuzz/fuzz.h"

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

/*
 * Returns the first variable with this name. The bytes after the last zero byte are also a
 * variable.
 */
static const char *variable(const char *name, char room[512])
{
	size_t len = strlen(name);

	*room = 0;
	for (size_t at = 0; at < text_len; at += strnlen(text + at, text_len - at) + 1) {
		size_t here = strnlen(text + at, text_len - at);

		/* For readers of strings, an empty string ends the environment. */
		if (!here)
			return room;
		if (here <= len || memcmp(text + at, name, len) || text[at + len] != '=')
			continue;
		snprintf(room, 512, "%.*s", (int)(here - len - 1), text + at + len + 1);
		return room;
	}
	return room;
}

/* The last result, and the number of results. */
struct seen {
	unsigned int nr;
	struct gpupart_tpcset set;
};

static void see(void *user, const struct neighbour *found)
{
	struct seen *seen = user;
	char room[512];

	MUST(found->pid == 4242);
	variable("GPUPART_NAME", room);
	MUST(!strncmp(found->name, room, sizeof(room) - 1));
	variable("GPUPART_JOB", room);
	MUST(!strncmp(found->job, room, sizeof(room) - 1));
	seen->nr++;
	seen->set = found->set;
}

static void look_at_it(const struct neighbours *n, struct reading *reading)
{
	char *environment = read_environment(4242, reading);

	if (environment && *value_of(environment, "GPUPART_GPU"))
		look_at_words(n, 4242, environment);
	free(environment);
}

static void read_it(const char *bytes, size_t len, struct gpupart_job *job)
{
	static char room[512], other[512];
	struct args args = { .cmd = "run" };
	struct seen seen = { .nr = 0 };
	struct neighbours n = {
		.args = &args, .topo = topo, .pci = PCI, .jobs = job, .nr_jobs = 1,
		.found = see, .user = &seen,
	};
	struct gpupart_tpcset expected;
	struct reading reading = { 0 };
	const char *words;
	bool wanted, listed;

	text = bytes;
	text_len = len;
	look_at_it(&n, &reading);
	MUST(!reading.nr_skipped && seen.nr <= 1);
	free(reading.users);
	reading = (struct reading){ 0 };
	words = !strcmp(variable("GPUPART_JOB", room), job->id) ? job->limit :
								  variable("GPUPART_SET", room);
	wanted = *words && strlen(words) < sizeof(room) - 1 &&
		 !gpupart_set_parse(gp, topo, words, &expected) &&
		 !strcasecmp(variable("GPUPART_GPU", other), PCI) &&
		 strcmp(variable("GPUPART_DISABLE", other), "1");
	/* In a list of GPUs, each GPU has a set. */
	listed = strchr(variable("GPUPART_GPU", other), ',') ||
		 strchr(variable("GPUPART_SET", other), ';');
	wanted &= !listed;
	if (strlen(words) < sizeof(room) - 1 && !listed)
		MUST(seen.nr == wanted);
	if (!seen.nr)
		return;
	MUST(!gpupart_set_check(gp, topo, &seen.set));
	MUST(!wanted || gpupart_tpcset_equal(&seen.set, &expected));
	args.ignored_name = variable("GPUPART_NAME", other);
	look_at_it(&n, &reading);
	free(reading.users);
	MUST(strlen(other) == sizeof(other) - 1 || seen.nr == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char before[] = "PATH=/bin\0GPUPART_GPU=0000:01:00.0\0GPUPART_SET=";
	struct gpupart_job job = { .id = "5-5-1", .pci = PCI, .limit = "3" };
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
