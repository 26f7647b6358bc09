/* SPDX-License-Identifier: MIT */
/* Reports for itself, as the injected library does for a program: it is never confined. */
#include <stdio.h>
#include <gpupart.h>

int main(void)
{
	static struct gpupart_report_process process;
	struct gpupart_report *report;
	struct gpupart *gp;
	const char *id;

	if (gpupart_open(&gp) || gpupart_report_open(gp, &report, &id))
		return 1;
	if (gpupart_report_start(gp, id) || gpupart_strict_start(gp, false) ||
	    gpupart_report_get(report, 0, &process)) {
		fprintf(stderr, "%s\n", gpupart_error(gp));
		return 1;
	}
	gpupart_report_end();
	printf("confined: %s, without room: %u\n",
	       process.state == GPUPART_REPORT_CONFINED ? "yes" : process.why,
	       gpupart_report_lost(report));
	if (gpupart_config_strict(gp) < 0)
		printf("%s\n", gpupart_error(gp));
	gpupart_report_close(report);
	gpupart_close(gp);
	return 0;
}

/* Prints:
 * confined: GPUPART_SET is not in its environment, without room: 0
 */
