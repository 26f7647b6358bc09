// SPDX-License-Identifier: MIT
/* Reads the records of one stream of this process. Any thread may call these functions. */
#include <errno.h>
#include "lib/confine/recording.h"
#include "lib/private.h"
#include "lib/records/records.h"

int gpupart_records_stream(struct gpupart *gp, struct gpupart_gpu *gpu, void *stream,
			   struct gpupart_records *records, size_t size)
{
	struct gpupart_records_reader *reader;
	struct records *own = atomic_load(&gpu->records);
	char why[192];
	struct records_ring *ring;
	int err;

	if (!own || !gpu->streams_known) {
		gpupart_records_lack(gpu, why, sizeof(why));
		return ctx_fail(gp, -EOPNOTSUPP, "no records: %s", *why ? why : gpu->streams_error);
	}
	if (!records_ring_of_stream(own, stream, gpu->stream_tmd_offset, false, &ring))
		return ctx_fail(gp, -EINVAL, "%p is not an existing stream", stream);
	err = gpupart_records_open(gp, 0, gpu->driver.topo->info.pci, &reader);
	if (err)
		return err;
	err = records_read_ring(gp, reader, own, ring, records, size);
	gpupart_records_close(reader);
	return err;
}
