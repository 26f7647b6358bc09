// SPDX-License-Identifier: MIT
/* Reads the records of one stream of this process. Any thread may call these functions. */
#include <errno.h>
#include "lib/confine/recording.h"
#include "lib/core/peek.h"
#include "lib/private.h"
#include "lib/records/records.h"

/*
 * Stores the ring of @stream on @gpu in *ring. If the stream has no ring yet, stores NULL. If the
 * program did not create @stream, returns -EINVAL. If there are no records, returns -EOPNOTSUPP,
 * and the error message gives the reason.
 */
static int ring_of(struct gpupart *gp, struct gpupart_gpu *gpu, void *stream,
		   const struct records_ring **ring)
{
	struct records *records = atomic_load(&gpu->records);
	uint64_t object, tmd;
	char why[192];

	if (!records || !gpu->streams_known) {
		gpupart_records_lack(gpu, why, sizeof(why));
		return ctx_fail(gp, -EOPNOTSUPP, "no records: %s", *why ? why : gpu->streams_error);
	}
	if (!peek_word(stream, &object) ||
	    !peek_word((char *)(uintptr_t)object + gpu->stream_tmd_offset, &tmd))
		return ctx_fail(gp, -EINVAL, "%p is not an existing stream", stream);
	*ring = records_ring_of(records, tmd);
	return 0;
}

int gpupart_records_stream(struct gpupart *gp, struct gpupart_gpu *gpu, void *stream,
			   struct gpupart_records *records, size_t size)
{
	struct gpupart_records_reader *reader;
	const struct records_ring *ring = NULL;
	int err = ring_of(gp, gpu, stream, &ring);

	if (err)
		return err;
	err = gpupart_records_open(gp, 0, gpu->driver.topo->info.pci, &reader);
	if (err)
		return err;
	err = records_read_ring(gp, reader, ring, records, size);
	gpupart_records_close(reader);
	return err;
}
