// SPDX-License-Identifier: MIT
/*
 * Tests the tenant that a process joins, the values in a tenant's row, and the removal of
 * tenants.
 */
#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <gpupart_manage.h>
#include "lib/core/state_dir.h"
#include "lib/memory/call_state.h"
#include "lib/memory/tenant.h"
#include "tests/tap.h"

#define GPU "0000:0d:00.0"

static char name[GPUPART_TENANT_STRLEN];
static struct gpupart *gp;

static bool says(const char *part)
{
	if (!strstr(gpupart_error(gp), part))
		printf("# %s\n", gpupart_error(gp));
	return strstr(gpupart_error(gp), part);
}

/* Finds the row of the tenant. If there is no row or more than one row, returns false. */
static bool find(struct gpupart_tenant *tenant)
{
	static struct gpupart_tenant list[256];
	int nr = gpupart_tenant_list(gp, list, 256, sizeof(struct gpupart_tenant)), found = 0;

	for (int i = 0; i < nr && i < 256; i++)
		if (!strcmp(list[i].name, name)) {
			*tenant = list[i];
			found++;
		}
	return found == 1;
}

static bool find_process(int pid, struct gpupart_tenant_process *process)
{
	static struct gpupart_tenant_process list[256];
	int nr = gpupart_tenant_process_list(gp, list, 256,
					     sizeof(struct gpupart_tenant_process));

	for (int i = 0; i < nr && i < 256; i++)
		if (list[i].pid == pid && !strcmp(list[i].tenant, name)) {
			*process = list[i];
			return true;
		}
	return false;
}

static void test_outside(void)
{
	struct gpupart_tenant tenant;
	uint64_t before = 9;

	unsetenv("GPUPART_TENANT");
	tap_ok(gpupart_tenant_get(gp, NULL, GPU, &tenant) == -ESRCH && says("to no tenant"),
	       "a process that is in none");
	tap_ok(gpupart_tenant_get(gp, name, GPU, &tenant) == -ESRCH && says(name) &&
	       gpupart_tenant_quota_set(gp, name, GPU, 5, NULL) == -ESRCH && says(name),
	       "a tenant that is not there");
	tap_ok(gpupart_tenant_begin(gp, "a/b", GPU, 5, NULL) == -EINVAL && says("'a/b'"),
	       "no tenant's name");
	tap_ok(gpupart_tenant_begin(gp, name, "0", 5, NULL) == -EINVAL && says("\"0\""),
	       "no PCI address");
	tap_ok(gpupart_tenant_begin(gp, name, GPU, 0, NULL) == -EINVAL && says("0 bytes"),
	       "no quota");
	tap_ok(!gpupart_tenant_begin(gp, name, GPU, 1000, &before) && !before &&
	       !gpupart_tenant_get(gp, name, GPU, &tenant) && tenant.quota == 1000 &&
	       !tenant.used && !tenant.nr_processes, "one that is begun");
	tap_ok(!gpupart_tenant_quota_set(gp, name, "00000000:0D:00.0", 900, &before) &&
	       before == 1000, "a GPU's address in other letters is the same GPU's");
	tap_ok(!find(&tenant), "whom no process and no job holds is forgotten by who lists");
	tap_ok(gpupart_tenant_get(gp, name, GPU, &tenant) == -ESRCH, "and is not there any more");
}

static void test_inside(void)
{
	struct gpupart_tenant_process process;
	struct gpupart_tenant tenant;
	struct ledger *ledger;
	int gpu, other;

	tap_ok(!tenant_ledger() && tenant_gpu(GPU) == -ESRCH, "no tenant starts by itself");
	tap_ok(gpupart_memory_start(gp, "-x", 5) == -EINVAL && says("'-x'") && says("characters"),
	       "no tenant's name");
	setenv("GPUPART_TENANT", name, 1);
	setenv("GPUPART_MEM", "20G", 1);
	tap_ok(gpupart_memory_start(gp, NULL, 0) == -EINVAL && says("GPUPART_MEM=20G"),
	       "GPUPART_MEM that is no number of bytes");
	setenv("GPUPART_MEM", "2000", 1);
	tap_ok(!gpupart_memory_start(gp, NULL, 0) && tenant_ledger(), "started by the environment");
	tap_ok(!gpupart_memory_start(gp, NULL, 7) && !gpupart_memory_start(gp, name, 7),
	       "a second time is no harm");
	tap_ok(gpupart_memory_start(gp, "another", 7) == -EBUSY && says(name),
	       "but in one tenant only");
	ledger = tenant_ledger();
	tap_ok(find(&tenant) && !*tenant.pci && tenant.nr_processes == 1 &&
	       find_process(getpid(), &process) && !*process.pci,
	       "it is shown before it uses a GPU");
	gpu = tenant_gpu(GPU);
	other = tenant_gpu("0000:e1:00.0");
	tap_ok(gpu >= 0 && other >= 0 && other != gpu && ledger_quota(ledger, gpu) == 2000 &&
	       ledger_quota(ledger, other) == 2000, "each GPU has the quota");
	tap_ok(tenant_gpu("0000:0D:00.0") == gpu && tenant_gpu("nothing") == -EINVAL,
	       "a GPU's address in other letters is the same GPU's, and no address none's");
	ledger_charge(ledger, gpu, 1500);
	tap_ok(!gpupart_tenant_quota_set(gp, NULL, GPU, 1000, NULL) &&
	       tenant_gpu(GPU) == gpu && ledger_quota(ledger, gpu) == 1000 &&
	       ledger_charge(ledger, gpu, 1) == -ENOMEM,
	       "one that was set later stays, below the use too");
	tap_ok(!gpupart_tenant_get(gp, NULL, GPU, &tenant) && !strcmp(tenant.name, name) &&
	       tenant.uid == geteuid() && tenant.quota == 1000 && tenant.used == 1500 &&
	       tenant.nr_processes == 1 && !tenant.simulated, "as this process's tenant shows");
	tap_ok(find_process(getpid(), &process) && !strcmp(process.pci, GPU) &&
	       process.used == 1500 && process.inner_pid == getpid() && process.uid == geteuid() &&
	       !strcmp(process.program, program_invocation_short_name) && !process.uncounted,
	       "and its process, with its name");
	memory_uncounted("cuOther");
	tap_ok(find_process(getpid(), &process) && process.uncounted == 1,
	       "and its calls that may have got what is not counted");
}

/* A child that uses a GPU must be in the tenant and have its own slot. */
static void test_child(void)
{
	struct gpupart_tenant tenant;
	int wstatus;
	pid_t pid = fork();

	if (!pid) {
		int gpu = 0;
		bool good = ledger_charge(tenant_ledger(), gpu, 1) == -ESRCH;

		gpu = tenant_gpu(GPU);
		good = good && gpu >= 0 && !ledger_used_own(tenant_ledger(), gpu) &&
		       ledger_used(tenant_ledger(), gpu) == 1500 &&
		       !gpupart_tenant_get(gp, NULL, GPU, &tenant) && tenant.nr_processes == 2;
		ledger_charge_always(tenant_ledger(), gpu, 10);
		_exit(!(good && ledger_used(tenant_ledger(), gpu) == 1510));
	}
	tap_ok(waitpid(pid, &wstatus, 0) == pid && !wstatus,
	       "a child of a fork joins where it uses a GPU");
	tap_ok(!gpupart_tenant_get(gp, NULL, GPU, &tenant) && tenant.used == 1500 &&
	       tenant.nr_processes == 1, "and what it had goes with it");
}

/* Tests a tenant without a name, in a separate process, because a process joins only one tenant. */
static void test_own_name(void)
{
	char path[100];
	glob_t found;
	int wstatus;
	pid_t pid = fork();

	if (!pid) {
		char self[40];

		unsetenv("GPUPART_TENANT");
		snprintf(self, sizeof(self), "%d", getpid());
		execl("/proc/self/exe", "unit-memory-tenant", self, NULL);
		_exit(9);
	}
	tap_ok(waitpid(pid, &wstatus, 0) == pid && !wstatus,
	       "without a name a process is a tenant of its own");
	snprintf(path, sizeof(path), STATE_DIR_ROOT "/gpupart-%u/mem-%d-*", geteuid(), pid);
	tap_ok(glob(path, 0, NULL, &found) == GLOB_NOMATCH, "and takes its file along");
}

static int in_own(const char *pid)
{
	struct gpupart_tenant tenant;

	return !(!gpupart_memory_start(gp, NULL, 77) && tenant_gpu(GPU) >= 0 &&
		 !gpupart_tenant_get(gp, NULL, GPU, &tenant) && tenant.quota == 77 &&
		 !strncmp(tenant.name, pid, strlen(pid)) && tenant.name[strlen(pid)] == '-');
}

static void test_sizes(void)
{
	static const struct { const char *text; uint64_t bytes; } good[] = {
		{ "1", 1 }, { "4096", 4096 }, { "7B", 7 }, { "20G", 20ull << 30 },
		{ "20g", 20ull << 30 }, { "512M", 512 << 20 }, { "1.5GiB", 3ull << 29 },
		{ "1.5gib", 3ull << 29 }, { "2K", 2048 }, { "2kb", 2000 }, { "8GB", 8000000000 },
		{ "0.5T", 1ull << 39 }, { "1.000001M", (1 << 20) + 1 }, { "1048576T", 1ull << 60 },
		{ "0.25K", 256 },
	};
	static const char *const bad[][2] = {
		{ "", "not a size" }, { "G", "not a size" },
		{ "-1", "not a size" }, { " 1", "not a size" },
		{ ".5G", "not a size" }, { "5X", "unknown unit" }, { "5 G", "unknown unit" },
		{ "5GiBs", "unknown unit" },
		{ "5.G", "unknown unit" }, { "5Gi", "unknown unit" }, { "0x10", "unknown unit" },
		{ "1.5", "fraction" },
		{ "1.5B", "fraction" }, { "0", "0 bytes" }, { "0.0G", "0 bytes" },
		{ "1048577T", "too large" }, { "1048576.5T", "too large" },
		{ "99999999999999999999999", "too large" },
	};
	uint64_t bytes;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		bytes = 0;
		tap_ok(!gpupart_memory_parse(gp, good[i].text, &bytes) && bytes == good[i].bytes,
		       "%s is %llu bytes (wanted %llu)", good[i].text, (unsigned long long)bytes,
		       (unsigned long long)good[i].bytes);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		tap_ok(gpupart_memory_parse(gp, bad[i][0], &bytes) == -EINVAL && says(bad[i][1]),
		       "'%s': %s", bad[i][0], gpupart_error(gp));
	tap_ok(gpupart_memory_parse(gp, NULL, &bytes) == -EINVAL, "none at all");
}

static void test_limit(void)
{
	struct gpupart_tenant tenant;

	tap_ok(gpupart_memory_limit(gp, GPU, 1001) == -EPERM && says("1001 bytes exceeds"),
	       "from inside a quota of outside's is not made wider");
	tap_ok(!gpupart_memory_limit(gp, GPU, 999) &&
	       !gpupart_tenant_get(gp, NULL, GPU, &tenant) && tenant.quota == 999,
	       "but smaller it may be");
	tap_ok(gpupart_memory_limit(gp, GPU, 0) == -EINVAL, "if it is one");
	unsetenv("GPUPART_MEM");
	tap_ok(!gpupart_memory_limit(gp, GPU, 3000) &&
	       !gpupart_tenant_get(gp, NULL, GPU, &tenant) && tenant.quota == 3000,
	       "and one's own is changed as one likes");
}

int main(int argc, char **argv)
{
	struct gpupart_tenant tenant;

	if (gpupart_open(&gp))
		return 1;
	if (argc > 1)
		return in_own(argv[1]);
	snprintf(name, sizeof(name), "test-tenant-%d", getpid());
	test_outside();
	test_inside();
	if (getenv("TEST_EMULATOR"))
		tap_skip("%s leaves a child what madvise() takes from it: a fork",
			 getenv("TEST_EMULATOR"));
	else
		test_child();
	test_limit();
	test_sizes();
	test_own_name();
	ledger_last_out(tenant_ledger());
	tap_ok(gpupart_tenant_get(gp, name, GPU, &tenant) == -ESRCH && !find(&tenant),
	       "the last one out takes the file away");
	return tap_done();
}
