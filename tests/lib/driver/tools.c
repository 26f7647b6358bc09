// SPDX-License-Identifier: MIT
/*
 * Tests a tool that subscribes after gpupart, like CUPTI. It uses the simulated driver. It tests
 * which events the driver reports to the tool. The tool must not affect confinement. The library
 * must accept a tool only on request.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include "lib/private.h"
#include "tests/lib/scenario.h"

#define DOMAIN_RESOURCE	2
#define DOMAIN_API	6
#define DOMAIN_LAUNCH	0xb
#define TMD_BUILT	1
#define STREAM_MADE	4
#define LAUNCH_KERNEL	307
#define NR_TIMES	100

typedef void (*callback_fn)(void *user, int domain, int cbid, const void *params);

static const struct {
	size_t bytes;
	void *slot1, *slot2;
	int (*subscribe)(uint32_t *handle, callback_fn callback, void *user);
	int (*unsubscribe)(uint32_t handle);
	void *slot5;
	int (*enable)(uint32_t on, uint32_t handle, int domain, int cbid);
	int (*enable_domain)(uint32_t on, uint32_t handle, int domain);
	int (*enable_all)(uint32_t on, uint32_t handle);
	int (*feature)(uint32_t on, uint32_t handle, uint32_t feature);
	void *slot10;
	int (*subscribe_named)(uint32_t *handle, callback_fn callback, void *user, const char *name,
			       char *other, size_t len);
} *table;

static struct program p;
static struct gpupart_tpcset set;
static P s;

/* The events that the driver reported to the tool. */
static atomic_uint told_launches, told_calls, told_streams, told_others;
static char order[16];		/* events of one launch: begin, TMD, end */
static atomic_bool masked;	/* at the report to the tool, a TMD already had a mask */

static void tool(void *user, int domain, int cbid, const void *params)
{
	const U64 *words = params;
	char letter = 0;

	(void)user;
	if (domain == DOMAIN_LAUNCH && cbid == TMD_BUILT) {
		atomic_fetch_add(&told_launches, 1);
		/* In layout V04_00, this is the valid bit of the mask. */
		if (((const uint32_t *)(uintptr_t)words[4])[19] >> 31)
			atomic_store(&masked, true);
		letter = 't';
	} else if (domain == DOMAIN_API && cbid == LAUNCH_KERNEL) {
		atomic_fetch_add(&told_calls, 1);
		letter = words[10] >> 32 ? 'e' : 'b';
	} else if (domain == DOMAIN_RESOURCE && cbid == STREAM_MADE) {
		atomic_fetch_add(&told_streams, 1);
	} else {
		atomic_fetch_add(&told_others, 1);
	}
	if (letter && strlen(order) < sizeof(order) - 1)
		order[strlen(order)] = letter;
}

static void find_table(void)
{
	static const unsigned char uuid[16] = {
		0x2c, 0x8e, 0x0a, 0xd8, 0x07, 0x10, 0xab, 0x4e,
		0x90, 0xdd, 0x54, 0x71, 0x9f, 0xe5, 0xf7, 0x4b,
	};

	cuGetExportTable((const void **)&table, uuid);
}

/* Returns the access rights of the table's memory, such as "r--p". */
static const char *protection(void)
{
	static char bits[5] = "?";
	FILE *maps = fopen("/proc/self/maps", "r");
	uintptr_t low, high;
	char line[512], now[5];

	while (maps && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &low, &high, now) == 3 &&
		    low <= (uintptr_t)table && (uintptr_t)table < high)
			strcpy(bits, now);
	if (maps)
		fclose(maps);
	return bits;
}

static bool begins(unsigned int profilers)
{
	struct gpupart_attach_options options = { sizeof(options), .profilers = profilers };
	int err;

	if (gpupart_open(&gp) || driver_open())
		return false;
	find_table();
	err = gpupart_attach(gp, NULL, &options, &gpu);
	if (!tap_ok(!err && !program_start(&p, 0) && !cuStreamCreate(&s, 1), "attached: %s",
		    err ? gpupart_error(gp) : ""))
		return false;
	set = list("0-3");
	return tap_ok(!gpupart_process_set(gp, gpu, &set) && ran_on(&p, s, &set), "confined");
}

static bool confined(void)
{
	return ran_on(&p, s, &set);
}

static void let_in(void)
{
	uint32_t handle = 0, second = 0;
	struct gpupart_gpu *other_gpu;
	char other[64] = "";
	P stream;

	if (!begins(1))
		return;
	tap_ok(!gpupart_profilers(gp), "profilers are let in: %s", gpupart_error(gp));
	tap_ok(!strcmp(protection(), "r--p"), "the table is read only again: %s", protection());
	tap_ok(!table->subscribe_named(&handle, tool, NULL, "a tool", other, sizeof(other)),
	       "a tool subscribes");
	tap_ok(table->subscribe_named(&second, tool, &p, "b", other, sizeof(other)) == 210 &&
	       !strcmp(other, "a tool"), "a second one is refused: %s has the place", other);
	tap_ok(table->subscribe(&second, tool, &p) == 210, "without a name, too");
	tap_ok(confined() && !told_launches && !told_calls && !told_others,
	       "it gets no callback that it did not enable");
	tap_ok(table->enable(1, handle + 1, DOMAIN_LAUNCH, TMD_BUILT) == 1,
	       "another's handle is no handle");
	tap_ok(!table->enable(1, handle, DOMAIN_LAUNCH, TMD_BUILT) &&
	       !table->enable(1, handle, DOMAIN_API, LAUNCH_KERNEL) &&
	       !table->enable(1, handle, DOMAIN_RESOURCE, STREAM_MADE), "it enables three");
	tap_ok(table->enable(1, handle, DOMAIN_LAUNCH, 4) == 1 &&
	       table->enable(1, handle, 31, 1023) == 1 && table->enable(1, handle, 77, 1) == 1 &&
	       table->enable(1, handle, DOMAIN_API, -1) == 1, "functions that are none: refused");
	tap_ok(confined() && told_launches == 1 && told_calls == 2 && !strcmp(order, "bte"),
	       "a confined launch: %u TMD, %u sides of a call, in the order %s", told_launches,
	       told_calls, order);
	tap_ok(!masked, "the tool sees the TMD as the driver built it");
	tap_ok(!cuStreamCreate(&stream, 1) && told_streams == 1, "a stream that is made");
	told_launches = told_calls = 0;
	tap_ok(!gpupart_attach(gp, "cuda:1", NULL, &other_gpu) && !told_launches && !told_calls,
	       "the launches that prove another GPU's bits are not the program's (%u, %u)",
	       told_launches, told_calls);
	tap_ok(gpupart_detach(gp) == -EBUSY && strstr(gpupart_error(gp), "a tool"),
	       "no detach meanwhile: %s", gpupart_error(gp));
	tap_ok(confined(), "and still confined");
	tap_ok(!table->enable(0, handle, DOMAIN_LAUNCH, TMD_BUILT) &&
	       !table->enable(0, handle, DOMAIN_API, LAUNCH_KERNEL), "it disables them");
	told_launches = told_calls = 0;
	tap_ok(confined() && !told_launches && !told_calls, "confined, without more callbacks");
	tap_ok(!table->unsubscribe(handle) && table->unsubscribe(handle) == 1,
	       "it unsubscribes, once");
	tap_ok(table->enable(1, handle, DOMAIN_LAUNCH, TMD_BUILT) == 1, "and enables nothing then");
	tap_ok(confined() && !told_launches, "confined without it");
}

static void whole_domains(void)
{
	uint32_t handle;

	if (!begins(1))
		return;
	tap_ok(!table->subscribe(&handle, tool, NULL), "a tool subscribes");
	tap_ok(!table->enable_domain(1, handle, DOMAIN_LAUNCH) && confined() && told_launches == 1,
	       "a domain: told of %u launches", told_launches);
	tap_ok(!table->enable_domain(0, handle, DOMAIN_LAUNCH) && confined() && told_launches == 1,
	       "no more, and confined");
	tap_ok(table->enable_domain(1, handle, 33) == 1 && table->enable_domain(1, handle, -1) == 1,
	       "domains that are none are refused");
	tap_ok(!table->enable_all(1, handle) && confined() && told_launches == 2 && told_others,
	       "all: told of %u launches and %u others", told_launches, told_others);
	tap_ok(!table->enable_all(0, handle), "all off");
	told_others = 0;
	tap_ok(confined() && told_launches == 2 && !told_others, "told of nothing, and confined");
	tap_ok(!table->enable_all(1, handle) && !table->unsubscribe(handle), "gone with all on");
	tap_ok(confined() && told_launches == 2 && !told_others, "told of nothing, and confined");
	gpupart_process_set(gp, gpu, NULL);
	set = gpupart_topology_all(gpupart_gpu_topology(gpu));
	tap_ok(!gpupart_detach(gp) && confined(), "detached: %s", gpupart_error(gp));
	tap_ok(!strcmp(protection(), "r--p"), "the table is read only: %s", protection());
	tap_ok(!table->subscribe(&handle, tool, NULL) &&
	       !table->enable(1, handle, DOMAIN_LAUNCH, TMD_BUILT) && confined() &&
	       told_launches == 3, "and a tool has the driver's own place");
}

static void again_and_again(void)
{
	unsigned int good = 0;
	uint32_t handle;

	if (!begins(1))
		return;
	for (int i = 0; i < NR_TIMES; i++)
		good += !table->subscribe(&handle, tool, order + i % sizeof(order)) &&
			!table->enable_domain(1, handle, DOMAIN_LAUNCH) && confined() &&
			told_launches == (unsigned int)i + 1 && !table->unsubscribe(handle) &&
			confined();
	tap_ok(good == NR_TIMES, "subscribed and gone %u times of %d", good, NR_TIMES);
}

static atomic_bool stop;

static void *comes_and_goes(void *unused)
{
	uint32_t handle;

	(void)unused;
	while (!atomic_load(&stop))
		if (!table->subscribe(&handle, tool, NULL)) {
			table->enable_all(1, handle);
			table->unsubscribe(handle);
		}
	return NULL;
}

static void meanwhile(void)
{
	pthread_t thread[2];
	unsigned int good = 0;

	if (!begins(1))
		return;
	for (int i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, comes_and_goes, NULL);
	for (int i = 0; i < NR_TIMES; i++)
		good += confined();
	atomic_store(&stop, true);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	tap_ok(good == NR_TIMES, "confined %u times of %d while tools come and go", good, NR_TIMES);
}

static void not_asked(void)
{
	struct gpupart_attach_options options = { sizeof(options), .profilers = 1 };
	uint32_t handle;

	if (!begins(0))
		return;
	tap_ok(table->subscribe(&handle, tool, NULL) == 210, "the driver refuses a tool");
	tap_ok(gpupart_profilers(gp) == -ENOENT, "without the option: %s", gpupart_error(gp));
	tap_ok(gpupart_attach(gp, NULL, &options, &gpu) == -EBUSY, "too late to ask: %s",
	       gpupart_error(gp));
	options.profilers = 2;
	tap_ok(gpupart_attach(gp, NULL, &options, &gpu) == -EINVAL, "2: %s", gpupart_error(gp));
	tap_ok(confined(), "confined");
}

static void by_environment(void)
{
	uint32_t handle;

	if (!begins(0))
		return;
	tap_ok(!table->subscribe(&handle, tool, NULL) && !gpupart_profilers(gp), "it comes in");
	tap_ok(confined(), "confined");
}

static void proves(void)
{
	tap_ok(!gpupart_open(&gp) && !gpupart_attach(gp, NULL, NULL, &gpu), "proven");
}

/* Proves the mask bits. `gpupart run` does the same before it starts a program. */
static void prepare(const struct scenario *scenario)
{
	struct scenario before = { "proves", proves, scenario->sim, { NULL }, NULL };

	tap_ok(!child_quiet(&before), "%s: proven before", scenario->name);
}

/* The program runs like under `gpupart run --profile`. */
static void injected(void)
{
	struct gpupart_topology *topo;
	uint32_t handle;

	gpupart_open(&gp);
	if (!tap_ok(!gpupart_topology_open(gp, getenv("GPUPART_SIM"), NULL, &topo) &&
		    !driver_open() && !program_start(&p, 0) && !cuStreamCreate(&s, 1), "a program"))
		return;
	find_table();
	tap_ok(!table->subscribe(&handle, tool, NULL) &&
	       !table->enable_domain(1, handle, DOMAIN_LAUNCH), "a tool is let in");
	tap_ok(!program_census(&p, topo, s, &set) && gpupart_tpcset_count(&set) == 4 &&
	       told_launches == 1, "it gets callbacks of launches, which ran on %u TPCs",
	       gpupart_tpcset_count(&set));
}

static void sealed(void)
{
	uint32_t handle;

	if (!begins(1))
		return;
	tap_ok(gpupart_profilers(gp) == -EACCES &&
	       strstr(gpupart_error(gp), "profilers cannot be used: ") &&
	       strstr(gpupart_error(gp), "made writable"),
	       "not let in: %s", gpupart_error(gp));
	tap_ok(table->subscribe(&handle, tool, NULL) == 210, "the driver refuses a tool");
	tap_ok(confined(), "confined all the same");
}

static void older(void)
{
	uint32_t handle;

	if (!begins(1))
		return;
	tap_ok(!table->subscribe(&handle, tool, NULL) && !table->enable_all(1, handle) &&
	       confined() && told_launches == 1, "a tool is let in by a table of 72 bytes");
	tap_ok(!table->unsubscribe(handle) && confined(), "and goes");
}

static void tool_first(void)
{
	struct gpupart_attach_options options = { sizeof(options), .profilers = 1 };
	uint32_t handle;

	if (gpupart_open(&gp) || driver_open())
		return;
	find_table();
	tap_ok(!table->subscribe(&handle, tool, NULL), "a tool subscribes before us");
	tap_ok(gpupart_attach(gp, NULL, &options, &gpu) == -EBUSY, "it has the place: %s",
	       gpupart_error(gp));
	tap_ok(!table->unsubscribe(handle) && !gpupart_attach(gp, NULL, &options, &gpu) &&
	       !table->subscribe(&handle, tool, NULL), "gone, we have it, and let it in");
}

static const struct scenario scenarios[] = {
	{ "let-in", let_in, "@b:@e", { NULL }, NULL },
	{ "whole-domains", whole_domains, "@b", { NULL }, NULL },
	{ "again-and-again", again_and_again, "@b", { NULL }, NULL },
	{ "meanwhile", meanwhile, "@b", { NULL }, NULL },
	{ "not-asked", not_asked, "@b", { NULL }, NULL },
	{ "by-environment", by_environment, "@b", { "GPUPART_PROFILE=1" }, NULL },
	{ "injected", injected, "@b",
	  { "CUDA_INJECTION64_PATH=@inject", "GPUPART_SET=0-3", "GPUPART_PROFILE=1" }, prepare },
	{ "proves", proves, "@b", { NULL }, NULL },
	{ "sealed", sealed, "@b", { "GPUPART_SIM_FAULTS=sealed-table" }, NULL },
	{ "older", older, "@b", { "GPUPART_SIM_FAULTS=table-size=72" }, NULL },
	{ "tool-first", tool_first, "@b", { NULL }, NULL },
};

int main(int argc, char **argv)
{
	return scenario_main(argc, argv, scenarios, sizeof(scenarios) / sizeof(scenarios[0]));
}
