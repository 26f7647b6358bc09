/* SPDX-License-Identifier: MIT */
/* Changes the limit of another process several times. */
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <gpupart_manage.h>

#define PCI_LEN	20

/* Runs in the other process: publishes it, writes to @out when it is ready, and waits. */
static void other(int out)
{
	struct gpupart_gpu *gpu;
	struct gpupart *gp;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (gpupart_open(&gp) || gpupart_attach(gp, NULL, NULL, &gpu) ||
	    gpupart_process_publish(gp, "example"))
		_exit(1);
	if (write(out, gpupart_topology_info(gpupart_gpu_topology(gpu))->pci, PCI_LEN) == PCI_LEN)
		pause();
	_exit(1);
}

static int start(char *pci)
{
	int fds[2], pid;

	if (pipe(fds))
		return -1;
	pid = fork();
	if (!pid)
		other(fds[1]);
	close(fds[1]);
	return read(fds[0], pci, PCI_LEN) == PCI_LEN ? pid : -1;
}

int main(void)
{
	char pci[PCI_LEN], list[GPUPART_TPCSET_STRLEN];
	struct gpupart_tpcset set, before;
	struct gpupart_remote *remote;
	struct gpupart *gp;
	int pid = start(pci);

	if (pid < 0 || gpupart_open(&gp))
		return 1;
	if (gpupart_remote_open(gp, pid, pci, &remote)) {
		fprintf(stderr, "%s\n", gpupart_error(gp));
		return 1;
	}
	for (unsigned int nr = 8; nr <= 24; nr += 8) {
		set = gpupart_tpcset_first(nr);
		if (gpupart_remote_set(gp, remote, &set, &before))
			return 1;
		gpupart_tpcset_format_list(&before, list, sizeof(list));
		printf("%u TPCs, before: %s\n", nr, *list ? list : "no limit");
	}
	gpupart_remote_close(remote);
	gpupart_close(gp);
	return 0;
}

/* Prints:
 * 8 TPCs, before: no limit
 * 16 TPCs, before: 0-7
 * 24 TPCs, before: 0-15
 */
