/* SPDX-License-Identifier: MIT */
/* Finds another process with confined launches, and changes the limit of this process. */
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <gpupart_manage.h>

#define PCI_LEN	20
#define MAX	64

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
	static struct gpupart_process list[MAX];
	struct gpupart_tpcset set = gpupart_tpcset_first(8);
	char pci[PCI_LEN];
	struct gpupart *gp;
	int pid = start(pci), nr;

	if (pid < 0 || gpupart_open(&gp))
		return 1;
	if (gpupart_process_limit_set(gp, pid, pci, &set, NULL)) {
		fprintf(stderr, "%s\n", gpupart_error(gp));
		return 1;
	}
	nr = gpupart_process_list(gp, list, MAX, sizeof(struct gpupart_process));
	for (int i = 0; i < nr && i < MAX; i++)
		if (list[i].pid == pid)
			printf("%s: limit %s%s\n", list[i].name, list[i].limit,
			       list[i].simulated ? " (simulated)" : "");
	gpupart_close(gp);
	return nr < 0;
}

/* Prints:
 * example: limit 0-7 (simulated)
 */
