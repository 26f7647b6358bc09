// SPDX-License-Identifier: MIT
/* Makes sure by launches of our own that records can be used on a GPU with its driver. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include "lib/records/records.h"

#define TRIAL_BYTES	65536		/* a page, of whatever size it is */
#define TRIAL_PAYLOAD	0x6770757061727400ull
#define WAIT_MS		100
#define LATE_NS		1000000000ull	/* from the end of the last block to that of the grid */

/*
 * Slot 0 is the driver's, and tells whether the row is right: it signals the end of an ordinary
 * launch with it. All others are to be empty.
 */
void records_trial_launch(struct records_trial *trial, void *tmd)
{
	struct tmd_release_seen seen;

	trial->why = NULL;
	if (!tmd_release_read(trial->map, tmd, 0, &seen) || !seen.enabled || !seen.words ||
	    !seen.address || seen.address % 4) {
		trial->why = "the driver's own release slot is not where it should be";
		return;
	}
	for (unsigned int slot = 1; slot < tmd_release_slots(trial->map); slot++)
		if (!tmd_release_read(trial->map, tmd, slot, &seen) || !seen.zero)
			trial->why = "a release slot is in use that should be free";
	if (!trial->why && !tmd_release_write(trial->map, tmd, trial->slot, &trial->release))
		trial->why = "a release slot cannot be written";
}

/* The launch has ended: its record is there, or comes in a moment. */
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
	       "the time in a record is not when the launch ended";
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
		return ctx_fail(gp, -EOPNOTSUPP, "this driver does not register memory");
	cells = aligned_alloc(TRIAL_BYTES, TRIAL_BYTES);
	if (!cells)
		return ctx_fail(gp, -ENOMEM, "no memory");
	result = cuda->host_register(cells, TRIAL_BYTES, CUDA_HOST_DEVICEMAP);
	if (result)
		free(cells);
	else
		result = cuda->host_pointer(&address, cells, 0);
	if (result)
		return ctx_fail(gp, -EPROTO, "cuMemHostRegister: %s", cuda_words(cuda, result));
	for (unsigned int slot = tmd_release_slots(map) - 1; slot && !err && !why; slot--) {
		atomic_store(&cells[slot].payload, 0);
		atomic_store(&cells[slot].time, 0);
		trial.slot = slot;
		trial.release = (struct tmd_release){
			.address = address + slot * sizeof(cells[0]),
			.payload = TRIAL_PAYLOAD + slot, .kind = TMD_RELEASE_TIME,
		};
		trial.why = "the driver did not call back for a launch";
		err = launch(gp, &trial, arg);
		why = err ? NULL : trial.why ? trial.why : judge(&trial, &cells[slot]);
	}
	/* What was not seen to be written may be written later: that memory stays. */
	if (!err && !why && !cuda->host_unregister(cells))
		free(cells);
	return !why ? err : ctx_fail(gp, -EPROTO, "TMD %s: %s", tmd_layout_name(map->layout), why);
}
