// SPDX-License-Identifier: MIT
/*
 * engineuse GPU SECONDS: does the same as `gpupart ps --engines`, through the module in the
 * guest. If an engine was not idle, prints the activities of the engine in thousandths of the
 * samples. On a failure, prints the error message.
 */
#include <stdio.h>
#include <stdlib.h>
#include "lib/private.h"

int main(int argc, char **argv)
{
	static struct gpupart_engine_use list[GPUPART_MAX_ENGINES];
	struct gpupart_gpu_info info;
	struct gpupart *gp;
	int nr;

	if (argc != 3 || gpupart_open(&gp))
		return 2;
	nr = gpupart_engine_uses(gp, argv[1], "kernel", atof(argv[2]), NULL, NULL, &info, list);
	if (nr < 0) {
		printf("error %s\n", gpupart_error(gp));
		return 1;
	}
	printf("%s %s %d engines\n", info.pci, info.source, nr);
	for (int i = 0; i < nr; i++) {
		if (list[i].idle == list[i].samples)
			continue;
		printf("runlist 0x%x engine %u.%u samples %u switching %u", list[i].runlist,
		       list[i].type, list[i].instance, list[i].samples,
		       1000 * list[i].switching / list[i].samples);
		for (unsigned int t = 0; t < list[i].nr_tsgs; t++)
			printf(" tsg %u %u", list[i].tsgs[t].tsg,
			       1000 * list[i].tsgs[t].samples / list[i].samples);
		putchar('\n');
	}
	gpupart_close(gp);
	return 0;
}
