/* SPDX-License-Identifier: MIT */
/* A process reports, another one reads it: who decides about sets. */
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <gpupart_manage.h>

#define PCI_LEN	20

/* The other process: shows itself, says on @out that it is ready, and ends with the first one. */
static void other(int out)
{
	struct gpupart_gpu *gpu;
	struct gpupart *gp;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (gpupart_open(&gp) || gpupart_attach(gp, NULL, NULL, &gpu) ||
	    gpupart_process_publish(gp, "example"))
		_exit(1);
	gpupart_progress_add(12);
	gpupart_latency_report(3500000);
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
	static struct gpupart_progress progress;
	struct gpupart_remote *remote;
	char pci[PCI_LEN];
	struct gpupart *gp;
	int pid = start(pci);

	if (pid < 0 || gpupart_open(&gp) || gpupart_remote_open(gp, pid, pci, &remote))
		return 1;
	if (gpupart_remote_progress(gp, remote, &progress)) {
		fprintf(stderr, "%s\n", gpupart_error(gp));
		return 1;
	}
	printf("%llu units\n", (unsigned long long)progress.units);
	for (unsigned int i = 0; i < GPUPART_NR_LATENCIES; i++)
		if (progress.latencies[i])
			printf("%llu request that took %llu ns or a little more\n",
			       (unsigned long long)progress.latencies[i],
			       (unsigned long long)gpupart_latency_least(i));
	gpupart_remote_close(remote);
	gpupart_close(gp);
	return 0;
}

/* Prints:
 * 12 units
 * 1 request that took 3407872 ns or a little more
 */
