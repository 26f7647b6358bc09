// SPDX-License-Identifier: MIT
/*
 * watch KEEPER MEMORY-MIB OUT: observes a node from outside, fifty times per second, until a
 * signal ends the program. It runs in the mount namespace of the process KEEPER. It writes these
 * lines to OUT, with the time T in ms: "held T JOB NR LIST" and "free T JOB" for the TPCs of
 * jobs, "use T JOB LIST" for a new limit of a process, and "bad T WHAT" for an error. An error is
 * a TPC that two jobs share, or too much memory.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <gpupart_manage.h>

#define MAX 512

static volatile sig_atomic_t ended;
static struct gpupart_grant grants[2][MAX];
static struct gpupart_process processes[2][MAX];
static struct gpupart_tenant tenants[MAX];
static FILE *out;

static void on_end(int sig)
{
	(void)sig;
	ended = 1;
}

static long now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static bool given(const struct gpupart_grant *grant)
{
	return !gpupart_tpcset_empty(&grant->set);
}

static const struct gpupart_grant *find(const struct gpupart_grant *list, int nr, const char *name)
{
	for (int i = 0; i < nr; i++)
		if (given(&list[i]) && !strcmp(list[i].name, name))
			return &list[i];
	return NULL;
}

static void tell_grants(const struct gpupart_grant *now, int nr, const struct gpupart_grant *before,
			int nr_before, long at)
{
	char list[GPUPART_TPCSET_STRLEN];

	for (int i = 0; i < nr_before; i++)
		if (given(&before[i]) && !find(now, nr, before[i].name))
			fprintf(out, "free %ld %s\n", at, before[i].name);
	for (int i = 0; i < nr; i++) {
		if (!given(&now[i]) || find(before, nr_before, now[i].name))
			continue;
		gpupart_tpcset_format_list(&now[i].set, list, sizeof(list));
		fprintf(out, "held %ld %s %u %s\n", at, now[i].name,
			gpupart_tpcset_count(&now[i].set), list);
	}
}

static void check_grants(const struct gpupart_grant *list, int nr, uint64_t memory, long at)
{
	uint64_t sum = 0;

	for (int i = 0; i < nr; i++) {
		sum += list[i].memory;
		for (int j = 0; j < i; j++)
			if (!strcmp(list[i].pci, list[j].pci) &&
			    gpupart_tpcset_intersects(&list[i].set, &list[j].set))
				fprintf(out, "bad %ld jobs %s and %s hold the same TPCs\n", at,
					list[i].name, list[j].name);
	}
	if (sum > memory)
		fprintf(out, "bad %ld jobs hold %llu bytes of memory\n", at,
			(unsigned long long)sum);
}

/*
 * Reads the real limits of processes from their state pages. Reports a conflict of two limits
 * only if both processes are still alive after the read of their pages.
 */
static void check_processes(const struct gpupart_process *list, int nr, long at)
{
	struct gpupart_tpcset a, b;

	for (int i = 0; i < nr; i++) {
		if (*list[i].problem || (list[i].counters.launches && !*list[i].limit))
			fprintf(out, "bad %ld process %d of job %s is not confined: %s\n", at,
				list[i].pid, list[i].name, list[i].problem);
		for (int j = 0; j < i; j++)
			if (strcmp(list[i].name, list[j].name) && *list[i].limit &&
			    *list[j].limit && !strcmp(list[i].pci, list[j].pci) &&
			    !gpupart_tpcset_parse_list(NULL, list[i].limit, &a) &&
			    !gpupart_tpcset_parse_list(NULL, list[j].limit, &b) &&
			    gpupart_tpcset_intersects(&a, &b) && !kill(list[i].pid, 0) &&
			    !kill(list[j].pid, 0))
				fprintf(out, "bad %ld processes of jobs %s and %s: %s, %s\n", at,
					list[i].name, list[j].name, list[i].limit, list[j].limit);
	}
}

static void tell_processes(const struct gpupart_process *now, int nr,
			   const struct gpupart_process *before, int nr_before, long at)
{
	for (int i = 0; i < nr; i++) {
		bool known = false;

		for (int j = 0; j < nr_before; j++)
			known |= before[j].pid == now[i].pid;
		if (!known && *now[i].limit)
			fprintf(out, "use %ld %s %s\n", at, now[i].name, now[i].limit);
	}
}

static void check_tenants(uint64_t memory, long at)
{
	int nr = gpupart_tenant_list(NULL, tenants, MAX, sizeof(struct gpupart_tenant));
	uint64_t used = 0;

	for (int i = 0; i < nr && i < MAX; i++) {
		used += tenants[i].used;
		if (tenants[i].quota && tenants[i].used > tenants[i].quota)
			fprintf(out, "bad %ld tenant %s uses more than its quota\n", at,
				tenants[i].name);
	}
	if (used > memory)
		fprintf(out, "bad %ld tenants use %llu bytes\n", at, (unsigned long long)used);
}

static int min(int a, int b)
{
	return a < b ? a : b;
}

int main(int argc, char **argv)
{
	const struct timespec pause = { .tv_nsec = 20000000 };
	uint64_t memory = argc > 2 ? strtoull(argv[2], NULL, 10) << 20 : 0;
	struct sigaction action = { .sa_handler = on_end };
	int nr[2] = { 0 }, nr_processes[2] = { 0 }, fd;
	unsigned int look = 0;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%s/ns/mnt", argc > 1 ? argv[1] : "");
	out = argc > 3 ? fopen(argv[3], "w") : NULL;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (!out || fd < 0 || setns(fd, CLONE_NEWNS))
		return 2;
	sigaction(SIGTERM, &action, NULL);
	for (; !ended; look++) {
		unsigned int a = look % 2, b = !a;
		long at = now_ms();

		nr[a] = min(gpupart_grant_list(NULL, grants[a], MAX,
					       sizeof(struct gpupart_grant)), MAX);
		tell_grants(grants[a], nr[a], grants[b], nr[b], at);
		check_grants(grants[a], nr[a], memory, at);
		/* Ten times per second. */
		if (look % 5 < 2) {
			nr_processes[a] = min(gpupart_process_list(NULL, processes[a], MAX,
								   sizeof(processes[a][0])), MAX);
			check_processes(processes[a], nr_processes[a], at);
			tell_processes(processes[a], nr_processes[a], processes[b],
				       nr_processes[b], at);
			check_tenants(memory, at);
		}
		nanosleep(&pause, NULL);
	}
	fprintf(out, "end %ld %u\n", now_ms(), look);
	return fclose(out) ? 1 : 0;
}
