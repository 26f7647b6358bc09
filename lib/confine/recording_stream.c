// SPDX-License-Identifier: MIT
/* Reads the records of one stream of this process. Any thread. */
#include "lib/confine/recording.h"
#include "lib/records/records.h"

int gpupart_records_stream(struct gpupart *gp, struct gpupart_gpu *gpu, void *stream,
			   struct gpupart_records *records, size_t size)
{
	struct gpupart_records_reader *reader;
	const struct records_ring *ring;
	int err = recording_ring(gp, gpu, stream, &ring);

	if (err)
		return err;
	err = gpupart_records_open(gp, 0, gpu->driver.topo->info.pci, &reader);
	if (err)
		return err;
	err = records_read_ring(gp, reader, ring, records, size);
	gpupart_records_close(reader);
	return err;
}
