// SPDX-License-Identifier: MIT
/*
 * When a kernel has ended, writes the completion records that the release slots of its TMD
 * request. As measured on H200 boards, the GPU writes first the time and then the payload. Each
 * of the two is one store of 8 bytes.
 */
#include <stdlib.h>
#include "sim/cuda/sim.h"

/*
 * The addresses of the driver's own words are below 2^40. The simulation never accesses these
 * words.
 */
#define OWN_WORDS 0x200000000

/* A record that is not written yet. */
struct late {
	struct late *next;
	struct sim_ctx *ctx;
	struct sim_release release;
	uint64_t number, time, due;
};

static struct late *first_late, **last_late = &first_late;

uint64_t release_words(unsigned int slot)
{
	return OWN_WORDS + 16 * slot;
}

static void store(const struct sim_release *release, uint64_t time)
{
	uint64_t payload = release->wide ? release->payload : (uint32_t)release->payload;

	if (release->words == 4) {
		uint64_t *cell = (uint64_t *)(uintptr_t)release->address;

		__atomic_store_n(&cell[1], time, __ATOMIC_RELAXED);
		if (sim_faults()->release_torn)
			engine_sleep(sim_faults()->release_torn * 1000);
		__atomic_store_n(&cell[0], payload, __ATOMIC_RELEASE);
	} else {
		uint32_t *word = (uint32_t *)(uintptr_t)release->address;

		if (release->adds)
			__atomic_fetch_add(word, payload, __ATOMIC_RELEASE);
		else
			__atomic_store_n(word, payload, __ATOMIC_RELEASE);
	}
}

static void write_record(struct sim_ctx *ctx, const struct sim_release *release, uint64_t number,
			 uint64_t time)
{
	uint64_t bytes = 4 * release->words;

	if (ctx->error || !ctx->live)
		return;
	if (release->own && release->address / 64 == OWN_WORDS / 64)
		return;
	if (release->address % bytes || !memory_of_ctx(ctx, release->address, bytes)) {
		sim_print(
			"device %d: launch %llu: the launch's record at %#llx is outside the device's memory",
			ctx->device, (unsigned long long)number,
			(unsigned long long)release->address);
		launch_failed(ctx, CUDA_ERROR_ILLEGAL_ADDRESS);
		return;
	}
	store(release, time);
}

static void put_off(const struct sim_kernel *kernel, const struct sim_release *release,
		    uint64_t time)
{
	struct late *late = malloc(sizeof(*late));

	if (!late)
		return;		/* simulates a lost record, which the GPU never writes */
	*late = (struct late){
		NULL, kernel->ctx, *release, kernel->number, time,
		time + sim_faults()->release_late * 1000,
	};
	*last_late = late;
	last_late = &late->next;
}

void release_ended(const struct sim_kernel *kernel, uint64_t time)
{
	const struct sim_faults *faults = sim_faults();
	const struct sim_release *release = kernel->grid.releases;

	if (faults->lose_context && kernel->number == faults->lose_context) {
		sim_print("device %d: launch %llu of %s fails, because GPUPART_SIM_FAULTS requests "
			  "a failure", kernel->ctx->device,
			  (unsigned long long)kernel->number, kernel->code->name);
		launch_failed(kernel->ctx, CUDA_ERROR_LAUNCH_FAILED);
	}
	for (unsigned int i = 0; i < kernel->grid.nr_releases; i++, release++) {
		if (release->own)
			write_record(kernel->ctx, release, kernel->number, time);
		else if (faults->release_lost)
			continue;
		else if (faults->release_late)
			put_off(kernel, release, time);
		else
			write_record(kernel->ctx, release, kernel->number, time);
	}
}

void release_discard_ctx(const struct sim_ctx *ctx)
{
	struct late **link = &first_late, *late;

	while ((late = *link))
		if (late->ctx == ctx) {
			*link = late->next;
			free(late);
		} else {
			link = &late->next;
		}
	last_late = link;
}

/* All records have the same delay, so the records of a GPU are sorted by time. */
uint64_t release_late(const struct sim_gpu *gpu, uint64_t time)
{
	struct late **link = &first_late, *late;

	while ((late = *link)) {
		if (late->ctx->gpu != gpu) {
			link = &late->next;
			continue;
		}
		if (late->due > time)
			return late->due;
		write_record(late->ctx, &late->release, late->number, late->time);
		*link = late->next;
		if (!late->next)
			last_late = link;
		free(late);
	}
	return UINT64_MAX;
}
