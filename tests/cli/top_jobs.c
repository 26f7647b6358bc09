// SPDX-License-Identifier: MIT
/*
 * For tests/cli/top.sh. With the arguments SOURCE NR, creates NR jobs of one TPC. The jobs exist
 * until this program is killed.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <gpupart_manage.h>

int main(int argc, char **argv)
{
	struct gpupart_topology *topo;
	struct gpupart *gp;
	int fds[2], nr = argc == 3 ? atoi(argv[2]) : 0;
	char done;

	if (!nr || pipe(fds) || gpupart_open(&gp) ||
	    gpupart_topology_open(gp, argv[1], NULL, &topo))
		return 1;
	for (int i = 0; i < nr; i++) {
		struct gpupart_tpcset set = { { 1ull << i % 64 } };
		char name[16], id[GPUPART_JOB_STRLEN];

		if (fork())
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		snprintf(name, sizeof(name), "many%d", i);
		if (gpupart_job_begin(gp, name, topo, "0000:01:00.0", &set, id))
			fprintf(stderr, "%s\n", gpupart_error(gp));
		if (write(fds[1], "", 1) != 1)
			return 1;
		pause();
	}
	for (int i = 0; i < nr; i++)
		if (read(fds[0], &done, 1) != 1)
			return 1;
	puts("begun");
	fflush(stdout);
	pause();
	return 0;
}
