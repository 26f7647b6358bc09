// SPDX-License-Identifier: MIT
/*
 * Tests the options of an attach, the test for a possible attach, and the detach from the driver.
 * It uses gpupart.h on the simulated driver.
 */
#include <pthread.h>
#include <stdatomic.h>
#include "lib/private.h"
#include "tests/lib/scenario.h"

#define NOT_PERMITTED 800

static struct program program;

static bool says(const char *words)
{
	return strstr(gpupart_error(gp), words);
}

/*
 * Returns true if the driver accepts another tool. Then a second subscription to the table
 * succeeds.
 */
static bool place_is_free(void)
{
	static const unsigned char uuid[16] = { 0x2c, 0x8e, 0x0a, 0xd8, 0x07, 0x10, 0xab, 0x4e,
						0x90, 0xdd, 0x54, 0x71, 0x9f, 0xe5, 0xf7, 0x4b };
	int (*subscribe)(uint32_t *, void *, void *), (*unsubscribe)(uint32_t);
	void *const *table;
	uint32_t handle;

	if (cuGetExportTable((const void **)&table, uuid))
		return false;
	*(void **)&subscribe = table[3];
	*(void **)&unsubscribe = table[4];
	return !subscribe(&handle, place_is_free, NULL) && !unsubscribe(handle);
}

static void child_options(void)
{
	struct {
		struct gpupart_attach_options options;
		char more[24];
	} newer = { .options = { .size = sizeof(newer) } };
	struct gpupart_attach_options options = { .size = 0 };

	tap_ok(!gpupart_open(&gp) && !driver_open(), "a context");
	tap_ok(gpupart_attach(gp, NULL, &options, &gpu) == -EINVAL &&
		       says("the options have 0 bytes"),
	       "no size: %s", gpupart_error(gp));
	options.size = sizeof(options.size);
	tap_ok(gpupart_attach(gp, NULL, &options, &gpu) == -EINVAL && says("at least 12"),
	       "too short");
	newer.more[3] = 1;
	tap_ok(gpupart_attach(gp, NULL, &newer.options, &gpu) == -E2BIG && says("byte 27"),
	       "newer, with something unknown: %s", gpupart_error(gp));
	options = (struct gpupart_attach_options){ .size = sizeof(options), .unconfined = 2 };
	tap_ok(gpupart_attach(gp, NULL, &options, &gpu) == -EINVAL &&
		       says("option unconfined must be 0 (run) or 1 (fail), not 2"),
	       "a value that is none");
	newer.more[3] = 0;
	tap_ok(!gpupart_attach(gp, NULL, &newer.options, &gpu), "newer, nothing unknown is set");
	options = (struct gpupart_attach_options){ .size = 12 };
	tap_ok(!gpupart_attach(gp, NULL, &options, &gpu), "older");
}

static void child_available(void)
{
	tap_ok(!gpupart_open(&gp) && !driver_open(), "a context");
	tap_ok(!gpupart_available(gp, NULL) && place_is_free(),
	       "it could be attached: nothing is taken");
	tap_ok(gpupart_available(gp, "9") == -ENODEV && says("9 is not a simulated GPU"),
	       "not that one");
	tap_ok(!gpupart_attach(gp, NULL, NULL, &gpu) && !gpupart_available(gp, NULL),
	       "nor is it later");
	tap_ok(!gpupart_detach(gp) && gpupart_available(gp, NULL) == -ESHUTDOWN, "detached: %s",
	       gpupart_error(gp));
}

static void child_unavailable(void)
{
	tap_ok(!gpupart_open(&gp) && gpupart_available(gp, NULL) == -ECANCELED &&
		       says("GPUPART_DISABLE"), "kept out: %s", gpupart_error(gp));
}

static void child_detach(void)
{
	struct gpupart_tpcset set, all;
	struct gpupart_gpu *again;
	P stream;

	if (!tap_ok(!attach(NULL) && !program_start(&program, 0) && !cuStreamCreate(&stream, 0),
		    "attached, a program"))
		return;
	set = list("0-3");
	all = gpupart_topology_all(gpupart_gpu_topology(gpu));
	tap_ok(!gpupart_stream_set(gp, gpu, stream, &set) && !gpupart_process_set(gp, gpu, &set) &&
		       !gpupart_limit_set(gp, gpu, &set) &&
		       !gpupart_function_set(gp, gpu, program.function, &set) &&
		       ran_on(&program, stream, &set) && !place_is_free(), "confined");
	tap_ok(!gpupart_detach(gp) && place_is_free(), "detached: the place is free");
	tap_ok(ran_on(&program, stream, &all) && ran_on(&program, NULL, &all),
	       "its launches have the whole GPU");
	tap_ok(!gpupart_stream_get(gpu, stream, &set) && !gpupart_process_get(gpu, &set) &&
		       !gpupart_function_get(gpu, program.function, &set) &&
		       !gpupart_limit_get(gpu, &set), "the sets are gone");
	set = list("0-3");
	tap_ok(gpupart_process_set(gp, gpu, &set) == -EOPNOTSUPP, "none is given: %s",
	       gpupart_error(gp));
	tap_ok(!gpupart_detach(gp), "again is no error");
	tap_ok(gpupart_attach(gp, NULL, NULL, &again) == -ESHUTDOWN && says("detached"),
	       "it is for ever: %s", gpupart_error(gp));
}

static void child_limit(void)
{
	struct gpupart_tpcset set = { { 0 } };

	tap_ok(!attach(NULL) && !program_start(&program, 0), "attached, a program");
	set = list("0-3");
	tap_ok(gpupart_detach(gp) == -EPERM && says("limit that another process set") &&
		       ran_on(&program, NULL, &set), "a limit from outside stays: %s",
	       gpupart_error(gp));
}

static void child_fail(void)
{
	const struct gpupart_attach_options options = {
		.size = sizeof(options), .unconfined = GPUPART_UNCONFINED_FAIL,
	};
	struct gpupart_tpcset set;

	tap_ok(!gpupart_open(&gp) && !driver_open() && !gpupart_attach(gp, NULL, &options, &gpu) &&
		       !program_start(&program, 0), "attached, unconfined launches fail");
	set = list("0-3");
	tap_ok(!gpupart_limit_set(gp, gpu, &set) && ran_on(&program, NULL, &set),
	       "confined: it runs");
	tap_ok(gpupart_detach(gp) == -EPERM && says("strict"), "it stays: %s", gpupart_error(gp));
}

static void child_fail_at_once(void)
{
	const struct gpupart_attach_options options = {
		.size = sizeof(options), .unconfined = GPUPART_UNCONFINED_FAIL,
	};

	tap_ok(!gpupart_open(&gp) && !driver_open() && !cuInit(0) && !program_start(&program, 0) &&
		       !program_launch(&program, NULL, 1, 0), "a program");
	tap_ok(gpupart_attach(gp, "9", &options, &gpu) == -ENODEV && says("not a simulated GPU"),
	       "it cannot be attached: %s", gpupart_error(gp));
	tap_ok(program_launch(&program, NULL, 1, 0) == NOT_PERMITTED, "its launches fail");
}

static void child_fail_without_context(void)
{
	const struct gpupart_attach_options options = {
		.size = sizeof(options), .unconfined = GPUPART_UNCONFINED_FAIL,
	};

	tap_ok(!driver_open() && !cuInit(0) && !program_start(&program, 0), "a program");
	tap_ok(gpupart_attach(NULL, "9", &options, &gpu) == -ENODEV, "no context, no such GPU");
	tap_ok(program_launch(&program, NULL, 1, 0) == NOT_PERMITTED, "its launches fail");
}

static atomic_bool stop;
static atomic_uint launched, failed;

static void *launches(void *unused)
{
	(void)unused;
	cuCtxSetCurrent(program.ctx);
	while (!atomic_load(&stop)) {
		failed += !!program_launch(&program, NULL, 4, 0);
		cuStreamSynchronize(NULL);
		launched++;
	}
	return NULL;
}

static void child_while_launching(void)
{
	pthread_t thread[4];
	unsigned int before;
	struct gpupart_tpcset set;

	if (!tap_ok(!attach(NULL) && !program_start(&program, 0), "attached, a program"))
		return;
	set = list("0-3");
	gpupart_process_set(gp, gpu, &set);
	for (int i = 0; i < 4; i++)
		pthread_create(&thread[i], NULL, launches, NULL);
	while (launched < 200)
		usleep(100);
	tap_ok(!gpupart_detach(gp), "detached while four threads launch");
	before = launched;
	while (launched < before + 200)
		usleep(100);
	stop = true;
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	tap_ok(!failed, "no launch failed of %u", launched);
}

static int free_descriptor(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

/* Tests structures of other versions. These structures have different sizes. */
static void child_rows(void)
{
	int before;
	struct {
		struct gpupart_process row;
		char later[40];
	} newer[2];
	struct gpupart_process full[2];
	char older[2][sizeof(full[0].pid) + sizeof(full[0].name)];

	if (!tap_ok(!attach(NULL) && !gpupart_process_publish(gp, "rows") &&
			    gpupart_process_list(gp, full, 2, sizeof(full[0])) == 1, "one process"))
		return;
	memset(older, 0x55, sizeof(older));
	tap_ok(gpupart_process_list(gp, (void *)older, 2, sizeof(older[0])) == 1 &&
		       !memcmp(older[0], &full[0], sizeof(older[0])) && older[1][0] == 0x55,
	       "an older struct: its beginning, and nothing behind");
	memset(newer, 0x55, sizeof(newer));
	tap_ok(gpupart_process_list(gp, (void *)newer, 2, sizeof(newer[0])) == 1 &&
		       newer[0].row.pid == getpid() && !strcmp(newer[0].row.name, "rows") &&
		       !newer[0].later[0] && !newer[0].later[39] && newer[1].later[0] == 0x55,
	       "a newer struct: zeros at its end");
	tap_ok(gpupart_process_list(gp, full, 2, 0) == -EINVAL && says("the row has 0 bytes"),
	       "size 0");
	tap_ok(gpupart_process_list(gp, full, 2, 1 << 20) == -EINVAL, "a size that is none: %s",
	       gpupart_error(gp));
	tap_ok(gpupart_process_list(gp, NULL, 0, 8) == 1, "how many there are");
	before = free_descriptor();
	tap_ok(!gpupart_job_list(gp, NULL, 0, 8) && free_descriptor() == before,
	       "a list of jobs leaves no descriptor open");
}

static const struct scenario scenarios[] = {
	{ "options", child_options, "@b", { NULL }, NULL },
	{ "available", child_available, "@b", { NULL }, NULL },
	{ "unavailable", child_unavailable, "@b", { "GPUPART_DISABLE=1" }, NULL },
	{ "detach", child_detach, "@b", { NULL }, NULL },
	{ "limit", child_limit, "@b", { "GPUPART_SET=0-3" }, NULL },
	{ "fail", child_fail, "@b", { NULL }, NULL },
	{ "fail-at-once", child_fail_at_once, "@b", { NULL }, NULL },
	{ "fail-without-context", child_fail_without_context, "@b", { NULL }, NULL },
	{ "while-launching", child_while_launching, "@b", { NULL }, NULL },
	{ "rows", child_rows, "@b", { NULL }, NULL },
};

int main(int argc, char **argv)
{
	return scenario_main(argc, argv, scenarios, sizeof(scenarios) / sizeof(scenarios[0]));
}
