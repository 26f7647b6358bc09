/* SPDX-License-Identifier: MIT */
/* Runs the quick checks of the proof. */
#include <stdio.h>
#include <gpupart_manage.h>

static void row(const struct gpupart_verify_row *row, void *user)
{
	unsigned int *nr_proven = user;

	if (row->result == GPUPART_VERIFY_PASS)
		(*nr_proven)++;
	else if (row->result == GPUPART_VERIFY_FAIL)
		printf("%s: %s\n", row->name, row->detail);
}

int main(void)
{
	struct gpupart_gpu *gpu;
	struct gpupart *gp;
	unsigned int nr_proven = 0;
	int failed;

	if (gpupart_open(&gp) || gpupart_attach(gp, NULL, NULL, &gpu))
		return 1;
	failed = gpupart_verify(gp, gpu, GPUPART_VERIFY_QUICK, row, &nr_proven);
	if (failed < 0) {
		fprintf(stderr, "%s\n", gpupart_error(gp));
		return 1;
	}
	printf("%s, %d failed\n", nr_proven ? "proven" : "nothing was asked", failed);
	gpupart_close(gp);
	return failed != 0;
}

/* Prints:
 * proven, 0 failed
 */
