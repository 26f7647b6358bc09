// SPDX-License-Identifier: MIT
/*
 * Lists tenants, sets their quotas, removes tenants that no process uses, and manages the tenant
 * of this process. The ledgers of tenants are in the same directory as the state pages.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/core/environment.h"
#include "lib/core/fork.h"
#include "lib/core/rows.h"
#include "lib/driver/cuda.h"
#include "lib/ledger/ledger.h"
#include "lib/memory/tenant.h"
#include "lib/state/grant.h"
#include "lib/state/state_page.h"
#include "lib/topo/topology.h"


_Static_assert(GPUPART_TENANT_STRLEN == LEDGER_NAME_LEN, "both names have the same length");

static pthread_mutex_t own_lock = PTHREAD_MUTEX_INITIALIZER;
FORK_RENEWS(own_lock);
static struct ledger *_Atomic own_ledger;
static struct {
	pid_t pid;
	char name[LEDGER_NAME_LEN];
	uint64_t quota;		/* quota on each GPU in bytes; 0: no quota */
} own;

struct ledger *tenant_ledger(void)
{
	return atomic_load_explicit(&own_ledger, memory_order_acquire);
}

/* The driver may not be loaded yet, so this function is called again for each new GPU. */
static void mark_simulated(struct ledger *ledger)
{
	const struct cuda_api *cuda = cuda_loaded();

	if (cuda && cuda->sim_capture)
		ledger_set_simulated(ledger);
}

/* The caller holds the lock. */
static int join(void)
{
	struct ledger *ledger;
	int err = ledger_join(own.name, &ledger);

	if (err)
		return err;
	own.pid = getpid();
	mark_simulated(ledger);
	atomic_store_explicit(&own_ledger, ledger, memory_order_release);
	return 0;
}

int tenant_gpu(const char *pci)
{
	struct grant_limit given;
	char address[20];
	uint64_t bytes;
	int gpu;

	if (!pci || !topo_address_read(pci, address))
		return -EINVAL;
	FORK_HOLD(&own_lock);
	if (!tenant_ledger())
		return -ESRCH;
	gpu = own.pid != getpid() ? join() : 0;
	if (!gpu)
		gpu = ledger_gpu(tenant_ledger(), address);
	if (gpu < 0)
		return gpu;
	mark_simulated(tenant_ledger());
	grant_limit(geteuid(), address, own.name, &given);
	/* A quota for all GPUs replaces the grant's quota, but cannot exceed it. */
	bytes = ledger_set_quota_first(tenant_ledger(), gpu,
				       given.memory && (!own.quota || given.memory < own.quota)
					       ? given.memory : own.quota);
	if (given.memory && bytes > given.memory)
		ledger_set_quota(tenant_ledger(), gpu, given.memory, NULL);
	return gpu;
}

/* Leaves the tenant that this process created for itself. No job keeps this tenant. */
static void leave(void)
{
	if (own.pid == getpid())
		ledger_last_out(tenant_ledger());
}

static const char *words_of(int err)
{
	switch (err) {
	case -EPERM:
		return "its file or directory below /dev/shm is not private to this user";
	case -EPROTO:
		return
			"its file below /dev/shm is damaged or from another version of gpupart: only that version can change its quota until its processes and its job have ended";
	case -EUSERS:
		return "it has too many processes";
	case -EBUSY:
		return "another process has kept its file locked for 5 s";
	case -ENOSPC:
		return "/dev/shm is full";
	default:
		return NULL;
	}
}

static int fail(struct gpupart *gp, const char *name, int err)
{
	if (err == -ENOENT)
		return ctx_fail(gp, -ESRCH,
				"there is no tenant %s: no job or tenant of that name has a memory quota",
				name);
	return ctx_fail(gp, err, "tenant %s: %s%s", name,
			words_of(err) ? "" : "the tenant's file in /dev/shm: ",
			words_of(err) ? words_of(err) : strerror(-err));
}

/* The caller holds the lock. */
static int start(struct gpupart *gp, const char *name, uint64_t bytes)
{
	struct environment environment = environment_read();
	int err;

	if (!bytes)
		bytes = environment_mem(&environment);
	if (!bytes && environment.mem)
		return ctx_fail(gp, -EINVAL,
				ENVIRONMENT_MEM "=%.40s: must be a number of bytes, at least 1",
				environment.mem);
	if (name)
		snprintf(own.name, sizeof(own.name), "%s", name);
	else
		snprintf(own.name, sizeof(own.name), "%d-%llx-%llx", getpid(),
			 (unsigned long long)state_dir_process_start(getpid()),
			 (unsigned long long)state_dir_pid_namespace());
	own.quota = bytes;
	err = join();
	/*
	 * The call that lists the tenants also removes a file that another version of the library
	 * left.
	 */
	if (err == -EPROTO && gpupart_tenant_list(gp, NULL, 0,
						  sizeof(struct gpupart_tenant)) >= 0)
		err = join();
	if (!err && !environment.job)
		atexit(leave);
	return err ? fail(gp, own.name, err) : 0;
}

static int check_name(struct gpupart *gp, const char *name)
{
	return state_dir_name_valid(name) ? 0 :
	       ctx_fail(gp, -EINVAL,
			"tenant name '%.80s': must be 1 to 63 characters from A-Z a-z 0-9 . _ -, not starting with '-'",
			name);
}

int tenant_start(struct gpupart *gp, const char *name, uint64_t bytes)
{
	if (!name)
		name = environment_read().tenant;
	if (name && check_name(gp, name))
		return -EINVAL;
	fork_guard();
	FORK_HOLD(&own_lock);
	if (!tenant_ledger())
		return start(gp, name, bytes);
	return !name || !strcmp(name, own.name) ? 0 :
	       ctx_fail(gp, -EBUSY, "this process belongs to tenant %s and cannot join tenant %s",
			own.name, name);
}

int tenant_limit(struct gpupart *gp, const char *pci, uint64_t bytes)
{
	struct gpupart_tenant tenant;
	int err = gpupart_tenant_get(gp, NULL, pci, &tenant);

	if (err)
		return err;
	if (!tenant.quota)
		tenant.quota = own.quota;
	if (environment_read().mem && tenant.quota && bytes > tenant.quota)
		return ctx_fail(gp, -EPERM,
				"tenant %s: a quota of %llu bytes exceeds the quota of %llu bytes that was set outside this process",
				tenant.name, (unsigned long long)bytes,
				(unsigned long long)tenant.quota);
	return gpupart_tenant_quota_set(gp, NULL, pci, bytes, NULL);
}

/* A list of the living jobs. The code fills the list when the first tenant needs it. */
struct living {
	bool asked, unsure;
	struct gpupart_job *jobs;
	int nr_jobs;
};

static void ask(struct living *living)
{
	int room = 0, nr = 64;

	living->asked = true;
	/*
	 * Usually, the list is long enough. If there are more jobs, try again with a longer list.
	 */
	while (nr > room) {
		free(living->jobs);
		room = nr + 16;
		living->jobs = calloc(room, sizeof(*living->jobs));
		nr = living->jobs ? gpupart_job_list(NULL, living->jobs, room,
						     sizeof(struct gpupart_job)) : -1;
	}
	living->unsure = nr < 0;
	living->nr_jobs = nr < 0 ? 0 : nr;
}

static const struct gpupart_job *job_of(const struct living *living, const char *tenant)
{
	for (int i = 0; i < living->nr_jobs; i++)
		if (!strcmp(living->jobs[i].name, tenant) || !strcmp(living->jobs[i].id, tenant))
			return &living->jobs[i];
	return NULL;
}

/*
 * Returns true if the tenant's GPUs are simulated. The tenant's processes show this. If the tenant
 * has no process yet, the tenant's job shows it.
 */
static bool is_simulated(const struct living *living, uid_t uid, const struct ledger_view *view)
{
	const struct gpupart_job *job = uid == geteuid() ? job_of(living, view->tenant) : NULL;

	for (unsigned int i = 0; i < view->nr_processes; i++)
		if (view->processes[i].simulated)
			return true;
	return job && job->simulated;
}

struct visit;
typedef void (*see_fn)(struct visit *visit, uid_t uid, const struct ledger_view *view);

struct visit {
	see_fn see;		/* this function is called for each tenant */
	void *list;
	unsigned int max, nr;
	struct living living;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

/*
 * Removes a tenant of this user if the tenant has no process and its job is not alive. Returns true
 * if the tenant was removed.
 */
static bool forget(struct visit *visit, const char *tenant)
{
	return !visit->living.unsure && !job_of(&visit->living, tenant) && ledger_sweep(tenant);
}

static void visit_user(struct visit *visit, uid_t uid)
{
	uint64_t budget = state_dir_budget_begin(uid);
	unsigned int room = ledger_list(uid, NULL, 0) + 16, nr;
	char (*names)[LEDGER_NAME_LEN] = calloc(room, sizeof(*names));
	struct ledger_view *view;

	nr = names ? ledger_list(uid, names, room) : 0;
	if (nr > room)
		nr = room;
	if (nr)
		qsort(names, nr, sizeof(*names), by_name);
	for (unsigned int i = 0; i < nr && !state_dir_budget_spent(budget); i++) {
		int err = ledger_read(uid, names[i], &view);
		bool empty = err == -EPROTO || (!err && !view->nr_processes);

		if (!visit->living.asked)
			ask(&visit->living);
		if (!(uid == geteuid() && empty && forget(visit, names[i])) && !err)
			visit->see(visit, uid, view);
		if (!err)
			free(view);
	}
	free(names);
}

static unsigned int visit_all(struct visit *visit)
{
	struct state_dirs folders;
	uid_t uid;

	visit_user(visit, geteuid());
	state_dirs_begin(&folders);
	while (state_dirs_next(&folders, &uid))
		visit_user(visit, uid);
	free(visit->living.jobs);
	return visit->nr;
}

static void fill_tenant(struct gpupart_tenant *tenant, uid_t uid, const struct ledger_view *view)
{
	memset(tenant, 0, sizeof(*tenant));
	snprintf(tenant->name, sizeof(tenant->name), "%s", view->tenant);
	tenant->uid = uid;
	tenant->nr_processes = view->nr_processes;
	tenant->other_version = view->other_version;
}

static void add_row(struct visit *visit, const void *row, size_t size)
{
	if (visit->nr < visit->max)
		memcpy((char *)visit->list + visit->nr * size, row, size);
	visit->nr++;
}

static void see_tenant(struct visit *visit, uid_t uid, const struct ledger_view *view)
{
	struct gpupart_tenant row;
	unsigned int before = visit->nr;

	fill_tenant(&row, uid, view);
	row.simulated = is_simulated(&visit->living, uid, view);
	for (unsigned int gpu = 0; gpu < view->nr_gpus; gpu++) {
		row.quota = view->gpus[gpu].quota;
		row.used = view->gpus[gpu].used;
		if ((row.quota || row.used) && topo_address_read(view->gpus[gpu].pci, row.pci))
			add_row(visit, &row, sizeof(row));
	}
	row.quota = row.used = row.pci[0] = 0;
	if (visit->nr == before)
		add_row(visit, &row, sizeof(row));
}

static void see_processes(struct visit *visit, uid_t uid, const struct ledger_view *view)
{
	struct gpupart_tenant_process row = { .uid = uid };

	snprintf(row.tenant, sizeof(row.tenant), "%s", view->tenant);
	for (unsigned int i = 0; i < view->nr_processes; i++) {
		const struct ledger_process *process = &view->processes[i];
		unsigned int before = visit->nr;

		row.pid = process->pid;
		row.uncounted = process->uncounted;
		row.inner_pid = process->inner;
		snprintf(row.program, sizeof(row.program), "%s", process->program);
		for (unsigned int gpu = 0; gpu < view->nr_gpus; gpu++) {
			row.used = process->used[gpu];
			if (row.used && topo_address_read(view->gpus[gpu].pci, row.pci))
				add_row(visit, &row, sizeof(row));
		}
		row.used = row.pci[0] = 0;
		if (visit->nr == before)
			add_row(visit, &row, sizeof(row));
	}
}

/* @arg points to the structure that selects the tenants to list. */
static int list_seen(struct gpupart *gp, const void *arg, void *rows, unsigned int max)
{
	struct visit visit = { .see = *(const see_fn *)arg, .list = rows, .max = max };

	(void)gp;
	return visit_all(&visit);
}

int gpupart_tenant_list(struct gpupart *gp, struct gpupart_tenant *list, unsigned int max,
			size_t size)
{
	static const see_fn see = see_tenant;

	return rows_resized(gp, list, max, size, sizeof(*list), list_seen, &see);
}

int gpupart_tenant_process_list(struct gpupart *gp, struct gpupart_tenant_process *list,
				unsigned int max, size_t size)
{
	static const see_fn see = see_processes;

	return rows_resized(gp, list, max, size, sizeof(*list), list_seen, &see);
}

/*
 * Returns @name or, if @name is NULL, the name of this process's own tenant. If there is no such
 * tenant, sets the error message and returns NULL.
 */
static const char *name_of(struct gpupart *gp, const char *name, int *err)
{
	*err = 0;
	if (!name && tenant_ledger())
		name = own.name;
	if (!name)
		name = environment_read().tenant;
	if (!name)
		*err = ctx_fail(gp, -ESRCH, "this process belongs to no tenant");
	else
		*err = check_name(gp, name);
	return *err ? NULL : name;
}

static int read_address(struct gpupart *gp, const char *given, char pci[20])
{
	if (given && topo_address_read(given, pci))
		return 0;
	return ctx_fail(gp, -EINVAL, "\"%.63s\" is not a PCI address such as \"0000:0d:00.0\"",
			given ? given : "");
}

int gpupart_tenant_get(struct gpupart *gp, const char *name, const char *pci,
		       struct gpupart_tenant *tenant)
{
	struct ledger_view *view;
	struct living living = { 0 };
	char address[20];
	int err;

	name = name_of(gp, name, &err);
	if (!err)
		err = read_address(gp, pci, address);
	if (err)
		return err;
	err = ledger_read(geteuid(), name, &view);
	if (err)
		return fail(gp, name, err);
	fill_tenant(tenant, geteuid(), view);
	ask(&living);
	tenant->simulated = is_simulated(&living, geteuid(), view);
	free(living.jobs);
	snprintf(tenant->pci, sizeof(tenant->pci), "%s", address);
	tenant->quota = view->quota;
	for (unsigned int gpu = 0; gpu < view->nr_gpus; gpu++)
		if (!strcmp(view->gpus[gpu].pci, address)) {
			tenant->quota = view->gpus[gpu].quota;
			tenant->used = view->gpus[gpu].used;
		}
	free(view);
	return 0;
}

static int set_quota(struct gpupart *gp, const char *name, const char *pci, uint64_t bytes,
		     bool make, uint64_t *before)
{
	char address[20];
	struct grant_limit given;
	int err;

	name = name_of(gp, name, &err);
	if (!err && (pci || make))
		err = read_address(gp, pci, address);
	if (err)
		return err;
	if (!bytes)
		return ctx_fail(gp, -EINVAL,
				"tenant %s: the quota is 0 bytes but must be at least 1 byte",
				name);
	grant_limit(geteuid(), pci || make ? address : NULL, name, &given);
	if (given.memory && bytes > given.memory)
		return ctx_fail(gp, -EPERM,
				"tenant %s: the quota of %llu bytes exceeds the %llu bytes that were granted to the tenant's user",
				name, (unsigned long long)bytes, (unsigned long long)given.memory);
	err = ledger_set_quota_of(name, pci ? address : NULL, bytes, make, before);
	return err ? fail(gp, name, err) : 0;
}

int gpupart_tenant_quota_set(struct gpupart *gp, const char *name, const char *pci,
			     uint64_t bytes, uint64_t *before)
{
	return set_quota(gp, name, pci, bytes, false, before);
}

int gpupart_tenant_begin(struct gpupart *gp, const char *name, const char *pci, uint64_t bytes,
			 uint64_t *before)
{
	/* First remove the tenants that are no longer needed. */
	gpupart_tenant_list(gp, NULL, 0, sizeof(struct gpupart_tenant));
	return set_quota(gp, name, pci, bytes, true, before);
}
