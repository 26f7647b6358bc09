/* SPDX-License-Identifier: MIT */
/* Reads the completion records of this process, which has made no launches. */
#include <inttypes.h>
#include <stdio.h>
#include <gpupart_manage.h>

int main(void)
{
	struct gpupart_records_reader *reader;
	struct gpupart_records records;
	struct gpupart_gpu *gpu;
	struct gpupart *gp;

	if (gpupart_open(&gp))
		return 1;
	if (gpupart_attach(gp, NULL, NULL, &gpu) ||
	    gpupart_records_open(gp, 0, gpupart_topology_info(gpupart_gpu_topology(gpu))->pci,
				 &reader) ||
	    gpupart_records_read(gp, reader, &records, sizeof(records))) {
		fprintf(stderr, "%s\n", gpupart_error(gp));
		return 1;
	}
	printf("%" PRIu64 " launches ended, %" PRIu64 " did not yet, busy for %" PRIu64 " ns\n",
	       records.ended, records.outstanding, records.busy_ns);
	gpupart_records_close(reader);
	gpupart_close(gp);
	return 0;
}

/* Prints:
 * 0 launches ended, 0 did not yet, busy for 0 ns
 */
