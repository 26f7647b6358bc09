// SPDX-License-Identifier: MIT
/*
 * Tests that a slow user does not delay the figures of other users. The processes of a slow user
 * take long to read.
 */
#include <time.h>
#include <unistd.h>
#include "tests/tap.h"
#include "cli/target/usage.c"

#define MANY	100		/* number of processes of the slow user; each takes SLOW_NS */
#define SLOW_NS	20000000
#define ALL	(USAGE_MAX_READERS + 8)

static unsigned int nr_read[3];		/* by the last digit of the pid */
static bool slow;

int __wrap_gpupart_records_open(struct gpupart *gp, int pid, const char *pci,
				struct gpupart_records_reader **reader);
int __wrap_gpupart_records_read(struct gpupart *gp, struct gpupart_records_reader *reader,
				struct gpupart_records *records, size_t size);
void __wrap_gpupart_records_close(struct gpupart_records_reader *reader);

/* The test never uses this reader. */
int __wrap_gpupart_records_open(struct gpupart *gp, int pid, const char *pci,
				struct gpupart_records_reader **reader)
{
	(void)gp;
	(void)pci;
	*reader = (void *)(uintptr_t)pid;
	return 0;
}

static uint64_t test_cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

int __wrap_gpupart_records_read(struct gpupart *gp, struct gpupart_records_reader *reader,
				struct gpupart_records *records, size_t size)
{
	const unsigned int of = (uintptr_t)reader % 10;
	const uint64_t begun = test_cpu_ns();

	(void)gp;
	(void)size;
	while (slow && of == 1 && test_cpu_ns() - begun < SLOW_NS)
		;
	nr_read[of]++;
	records->on = true;
	return 0;
}

void __wrap_gpupart_records_close(struct gpupart_records_reader *reader)
{
	(void)reader;
}

/*
 * Adds @nr processes of @uid to @list, beginning at index *at. Each new pid ends in the digit
 * @of.
 */
static void add(struct gpupart_process *list, unsigned int *at, unsigned int nr, unsigned int uid,
		unsigned int of)
{
	for (unsigned int i = 0; i < nr; i++, ++*at) {
		list[*at].uid = uid;
		list[*at].pid = 1000 + 10 * *at + of;
	}
}

int main(void)
{
	static struct gpupart_process list[ALL + 8];
	struct usage usage = { 0 };
	unsigned int nr = 0, own = geteuid();

	slow = true;
	add(list, &nr, MANY, own + 1, 1);
	add(list, &nr, 4, own + 2, 2);
	add(list, &nr, 4, own, 0);
	usage_update(&usage, list, nr, 1000000000);
	tap_ok(nr_read[1] > 0 && nr_read[1] < MANY / 2,
	       "of %d processes of another user, slow ones, %u are read", MANY, nr_read[1]);
	tap_ok(!usage_of(&usage, MANY - 1)->records.on, "the others have no figures");
	tap_ok(nr_read[2] == 4 && nr_read[0] == 4, "further users' are all read");
	memset(nr_read, 0, sizeof(nr_read));
	usage_update(&usage, list, nr, 2000000000);
	tap_ok(nr_read[1] > 0 && nr_read[1] < MANY / 2 && nr_read[2] == 4 && nr_read[0] == 4,
	       "so it is at the next look");
	usage_drop(&usage);

	slow = false;
	nr = 0;
	memset(nr_read, 0, sizeof(nr_read));
	add(list, &nr, ALL, own + 1, 1);
	add(list, &nr, 4, own + 2, 2);
	add(list, &nr, 4, own, 0);
	usage_update(&usage, list, nr, 1000000000);
	tap_ok(nr_read[1] < USAGE_MAX_READERS && nr_read[2] == 4 && nr_read[0] == 4,
	       "%d processes of one user leave readers to others: %u, %u and %u are read", ALL,
	       nr_read[1], nr_read[2], nr_read[0]);
	usage_update(&usage, list, nr, 2000000000);
	tap_ok(nr_read[2] == 8 && nr_read[0] == 8, "and at the next look");
	usage_drop(&usage);

	nr = 0;
	memset(nr_read, 0, sizeof(nr_read));
	add(list, &nr, USAGE_MAX_READERS, own, 0);
	usage_update(&usage, list, nr, 1000000000);
	tap_ok(nr_read[0] == USAGE_MAX_READERS, "one's own have all that there are");
	usage_drop(&usage);
	return tap_done();
}
