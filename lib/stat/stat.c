// SPDX-License-Identifier: MIT
/*
 * This code runs in each process that `gpupart stat` measures. It registers the process with this
 * command, so that the command can read the process's records. The code also counts copies and
 * waits, because records do not contain them. Any thread may call these functions.
 */
#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>
#include "lib/confine/recording.h"
#include "lib/records/records.h"
#include "lib/stat/shared_memory.h"

#define SEEN_PATIENCE	2000	/* maximum wait in ms; if the command takes longer, it must be
				 * stopped or dead */

static const struct cuda_api *cuda;
static struct gpupart_stat_process *process;
static _Thread_local uint64_t wait_begin;

static void add(uint64_t *count, uint64_t n)
{
	__atomic_fetch_add(count, n, __ATOMIC_RELAXED);
}

static void on_call(const struct driver_function *fn, const struct cuda_call_params *params)
{
	const struct stat_call *call = (const void *)fn;

	if (params->site == CUDA_SITE_BEGIN) {
		wait_begin = call->waits ? records_counter() : 0;
		return;
	}
	/* In the child of a fork all driver calls fail. */
	if (*params->result)
		return;
	if (wait_begin) {
		add(&process->wait_ns, records_counter() - wait_begin);
		add(&process->waits, 1);
		wait_begin = 0;
	}
	if (fn->kind == STAT_NO_COPY || !params->arguments)
		return;
	add(&process->copies[fn->kind], 1);
	add(&process->bytes[fn->kind], stat_call_bytes(call, params->arguments));
}

/*
 * Publishes the GPUs whose records other processes can read. Creates the files of these records for
 * the command.
 */
static int show_gpus(struct gpupart *gp)
{
	for (uint32_t n = 0; n < state_nr_gpus(state_page_own) && n < GPUPART_STAT_MAX_GPUS; n++) {
		if (!records_file_section(gp, n))
			return -ENOMEM;
		memcpy(process->pci[n], state_page_own->gpus[n].pci, sizeof(process->pci[n]));
		process->nr_gpus = n + 1;
	}
	return 0;
}

/*
 * Waits until the command has opened the files. From then on, the command can read them completely,
 * even if this process is killed.
 */
static void wait_until_seen(const struct stat_place *place)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	for (int i = 0; i < SEEN_PATIENCE && !atomic_load(&place->seen); i++)
		nanosleep(&pause, NULL);
}

int gpupart_stat_start(struct gpupart *gp, const char *id)
{
	static const struct driver_observer observer = {
		.name = "stat", .stays = true, .rows = &stat_calls[0].fn,
		.row_size = sizeof(stat_calls[0]), .call = on_call,
	};
	struct stat_place *place;
	struct memfd_head *head;
	struct stat_memory *memory;
	unsigned int nr;
	int err = memfd_map(gp, id, STAT_NAME, STAT_MAGIC, sizeof(*memory), &head);

	if (err)
		return err;
	memory = (struct stat_memory *)head;
	nr = atomic_fetch_add(&memory->nr_processes, 1);
	if (nr >= GPUPART_STAT_MAX_PROCESSES)
		return ctx_fail(gp, -ENOSPC,
				"the measurement is full: it already contains %u processes",
				GPUPART_STAT_MAX_PROCESSES);
	place = &memory->places[nr];
	process = &place->process;
	prctl(PR_GET_NAME, process->name);
	process->pid = getpid();
	err = show_gpus(gp) ?: cuda_open(gp, &cuda) ?: driver_observe(gp, cuda, &observer);
	if (err)
		process->nr_gpus = 0;
	atomic_store(&place->whole, true);
	if (!err)
		wait_until_seen(place);
	return err;
}
