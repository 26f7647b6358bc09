// SPDX-License-Identifier: MIT
/*
 * Measures the cost of LD_AUDIT=libgpupart-nvml.so in a program that never uses NVML. It measures
 * the start of the program, and calls of functions in shared libraries. Measurements with the
 * library and without the library alternate. The result is the minimum of many measured times,
 * because other load only makes a measurement longer.
 */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <gpupart_manage.h>

#define NR_STARTS	200
#define NR_ROUNDS	20
/* the calls are made in this number of parts; each part is shorter than a time slice */
#define NR_PIECES	40
#define NR_CALLS	1000000
/* maximum ratio to the plain call; the plain call's time varies at least this much between runs */
#define MOST		1.05

extern char **environ;

static double now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1e6 + ts.tv_nsec / 1e3;
}

/*
 * A separate process measures the time of a call of a nearly empty function through the PLT, in
 * ns.
 */
static int measure_calls(void)
{
	double start, took, least = 1e12;

	gpupart_version();
	for (int piece = 0; piece < NR_PIECES; piece++) {
		start = now_us();
		for (int i = 0; i < NR_CALLS; i++)
			gpupart_version();
		took = (now_us() - start) * 1e3 / NR_CALLS;
		if (took < least)
			least = took;
	}
	printf("%.4f\n", least);
	return 0;
}

/*
 * Runs the command @argv and stores its output in @line. Returns the time until the command has
 * ended, in us.
 */
static double run(char **argv, const char *audit, char *line, int len)
{
	posix_spawn_file_actions_t actions;
	double start;
	int ends[2], status;
	ssize_t got;
	pid_t pid;

	if (audit) {
		setenv("LD_AUDIT", audit, 1);
		setenv("GPUPART_TENANT", "bench", 1);
	}
	if (pipe(ends))
		exit(1);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
	posix_spawn_file_actions_addclose(&actions, ends[0]);
	start = now_us();
	if (posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ))
		exit(1);
	close(ends[1]);
	got = read(ends[0], line, len - 1);
	line[got > 0 ? got : 0] = 0;
	waitpid(pid, &status, 0);
	start = now_us() - start;
	close(ends[0]);
	posix_spawn_file_actions_destroy(&actions);
	unsetenv("LD_AUDIT");
	unsetenv("GPUPART_TENANT");
	if (status) {
		fprintf(stderr, "%s ended with %d\n", argv[0], status);
		exit(1);
	}
	return start;
}

/*
 * Starts @argv @nr times without the library and @nr times with the library, alternately. Stores
 * the minimum time without the library in [0], and with the library in [1].
 */
static void compare_starts(const char *what, char **argv, const char *audit, int nr)
{
	double least[2] = { 1e12, 1e12 }, took;
	char line[256];

	for (int i = 0; i < 2 * nr; i++) {
		took = run(argv, i % 2 ? audit : NULL, line, sizeof(line));
		if (took < least[i % 2])
			least[i % 2] = took;
	}
	printf("%-28s %9.0f us, audited %9.0f us: %.0f us more, %.3f\n", what, least[0], least[1],
	       least[1] - least[0], least[1] / least[0]);
}

int main(int argc, char **argv)
{
	char *calls[] = { argv[0], "calls", NULL }, *nothing[] = { "true", NULL };
	char *python[] = { "python3", "-c", "import ctypes, json, socket", NULL };
	double least[2] = { 1e12, 1e12 }, took;
	char line[256];

	if (argc == 2 && !strcmp(argv[1], "calls"))
		return measure_calls();
	if (argc != 2) {
		fprintf(stderr, "wants the path of libgpupart-nvml.so\n");
		return 1;
	}
	compare_starts("start and end of true", nothing, argv[1], NR_STARTS);
	if (!system("python3 -c 'import ctypes' 2>/dev/null"))
		compare_starts("python3 with some modules", python, argv[1], NR_ROUNDS);
	for (int i = 0; i < 2 * NR_ROUNDS; i++) {
		run(calls, i % 2 ? argv[1] : NULL, line, sizeof(line));
		took = atof(line);
		if (took > 0 && took < least[i % 2])
			least[i % 2] = took;
	}
	printf("%-28s %9.3f ns, audited %9.3f ns: %.3f  %s\n", "a call by the PLT", least[0],
	       least[1], least[1] / least[0], least[1] / least[0] <= MOST ? "ok" : "too much");
	return least[1] / least[0] > MOST;
}
