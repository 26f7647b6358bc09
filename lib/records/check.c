// SPDX-License-Identifier: MIT
/* Uses probe launches to prove that completion records work with a GPU and its driver. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include "lib/records/records.h"

#define TRIAL_BYTES	65536		/* the size in bytes of the largest memory page */
#define TRIAL_PAYLOAD	0x6770757061727400ull
#define WAIT_MS		100
#define LATE_NS		1000000000ull	/* maximum time in ns between the end of the
					 * last block and the end of the grid */

/*
 * Slot 0 belongs to the driver. The driver uses it to signal the end of an ordinary launch. So slot
 * 0 shows whether the row is correct. All other slots must be empty.
 */
void records_trial_launch(struct records_trial *trial, void *tmd)
{
	struct tmd_release_seen seen;

	trial->why = NULL;
	if (!tmd_release_read(trial->map, tmd, 0, &seen) || !seen.enabled || !seen.words ||
	    !seen.address || seen.address % 4) {
		trial->why = "the driver's own release slot is not at the expected place";
		return;
	}
	for (unsigned int slot = 1; slot < tmd_release_slots(trial->map); slot++)
		if (!tmd_release_read(trial->map, tmd, slot, &seen) || !seen.zero)
			trial->why = "a release slot that should be free is in use";
	if (!trial->why && !tmd_release_write(trial->map, tmd, trial->slot, &trial->release))
		trial->why = "a release slot cannot be written";
}

/* The launch has ended, so its record is visible now or soon. */
static const char *judge(const struct records_trial *trial, struct records_cell *cell)
{
	static const struct timespec moment = { .tv_nsec = 1000000 };
	uint64_t time;

	for (int i = 0; i < WAIT_MS && !records_has(cell, trial->release.payload); i++)
		nanosleep(&moment, NULL);
	if (!records_has(cell, trial->release.payload))
		return "the GPU wrote no record of a launch";
	time = atomic_load(&cell->time);
	return time >= trial->ended && time - trial->ended < LATE_NS ? NULL :
	       "the time in a record is not the end of the launch";
}

int records_check(struct gpupart *gp, const struct cuda_api *cuda, const struct tmd_map *map,
		  int (*launch)(struct gpupart *gp, struct records_trial *trial, void *arg),
		  void *arg)
{
	struct records_trial trial = { .map = map };
	struct records_cell *cells;
	const char *why = NULL;
	cuda_ptr address;
	int result, err = 0;

	if (!cuda->host_register || !cuda->host_unregister || !cuda->host_pointer)
		return ctx_fail(gp, -EOPNOTSUPP,
				"this driver has no function that registers host memory");
	cells = aligned_alloc(TRIAL_BYTES, TRIAL_BYTES);
	if (!cells)
		return ctx_fail(gp, -ENOMEM, "out of memory");
	result = cuda->host_register(cells, TRIAL_BYTES, CUDA_HOST_DEVICEMAP);
	if (result)
		free(cells);
	else
		result = cuda->host_pointer(&address, cells, 0);
	if (result)
		return ctx_fail(gp, -EPROTO, "cuMemHostRegister: %s", cuda_strerror(cuda, result));
	for (unsigned int slot = tmd_release_slots(map) - 1; slot && !err && !why; slot--) {
		atomic_store(&cells[slot].payload, 0);
		atomic_store(&cells[slot].time, 0);
		trial.slot = slot;
		trial.release = (struct tmd_release){
			.address = address + slot * sizeof(cells[0]),
			.payload = TRIAL_PAYLOAD + slot, .kind = TMD_RELEASE_TIME,
		};
		trial.why = "the driver did not call the launch callback for a launch";
		err = launch(gp, &trial, arg);
		why = err ? NULL : trial.why ? trial.why : judge(&trial, &cells[slot]);
	}
	/*
	 * The expected record is missing. The GPU may still write it to this memory, so do not
	 * free the memory.
	 */
	if (!err && !why && !cuda->host_unregister(cells))
		free(cells);
	return !why ? err : ctx_fail(gp, -EPROTO, "TMD %s: %s", tmd_layout_name(map->layout), why);
}
