// SPDX-License-Identifier: MIT
/*
 * Tests two attaches in one process, on the simulated driver. The first attach is at the start,
 * like with `gpupart run`. The program itself makes the second attach while its threads launch.
 * Launches read certain data, and the address of this data must not change.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "lib/confine/scope.h"
#include "lib/driver/cuda.h"
#include "tests/tap.h"

#define CAPTURE "tests/data/gh100-h200-b/capture.txt"

/*
 * The dynamic loader reads its search path before main(). So the test executes itself again with
 * the simulated driver in the path.
 */
static void start_anew(char **argv)
{
	const char *build = getenv("BUILD");
	char sim[4096], cache[] = "/tmp/gpupart-attach-XXXXXX";

	snprintf(sim, sizeof(sim), "%s/lib/gpupart/sim", build ? build : "build");
	if (access(sim, F_OK) || !mkdtemp(cache)) {
		tap_skip("no simulated driver in %s", sim);
		exit(tap_done());
	}
	setenv("LD_LIBRARY_PATH", sim, 1);
	setenv("GPUPART_SIM", CAPTURE, 1);
	setenv("XDG_CACHE_HOME", cache, 1);
	execv("/proc/self/exe", argv);
	exit(2);
}

/* First, another process proves the mask bits. Then this process can use the stored proof. */
static bool proven_before(void)
{
	struct gpupart_gpu *gpu;
	struct gpupart *gp;
	int status = 1;
	pid_t pid = fork();

	if (!pid)
		_exit(gpupart_open(&gp) || gpupart_attach(gp, NULL, NULL, &gpu));
	return pid > 0 && waitpid(pid, &status, 0) == pid && !status;
}

int main(int argc, char **argv)
{
	struct gpupart_gpu *early = NULL, *again = NULL;
	const struct cuda_api *cuda;
	struct gpupart *gp;
	char command[4096];

	(void)argc;
	if (!getenv("GPUPART_SIM"))
		start_anew(argv);
	if (!tap_ok(proven_before(), "the bits were proven by another process") ||
	    !tap_ok(!gpupart_open(&gp) && !cuda_open(gp, &cuda) && !cuda->init(0) &&
			    !gpupart_attach_early(gp, NULL, NULL, &early), "attached early"))
		return tap_done();
	/* No TPC has the highest number, so the library never writes the map's entry for it. */
	early->driver.map.bit_of_tpc[GPUPART_MAX_TPCS - 1] = 0xbeef;
	tap_ok(!gpupart_attach(gp, NULL, NULL, &again) && again == early, "attached again");
	tap_ok(early->driver.map.bit_of_tpc[GPUPART_MAX_TPCS - 1] == 0xbeef && early->learned,
	       "the map that launches read was not made anew");
	gpupart_close(gp);
	snprintf(command, sizeof(command), "rm -rf %s", getenv("XDG_CACHE_HOME"));
	return system(command) || tap_done();
}
