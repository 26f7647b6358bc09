// SPDX-License-Identifier: MIT
/*
 * Writes the report of this process. See report.h. Processes write to the memory of the run
 * without a lock.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>
#include "lib/confine/report.h"
#include "lib/core/environment.h"
#include "lib/core/hash.h"
#include "lib/core/state_dir.h"

#define KEY_GONE (~0ull)

atomic_bool report_joined;
struct lend_memory *report_lend;
static struct gpupart_report_process *own;
static struct gpupart_report_process kept;	/* used if this process has no entry in a run's
						 * report */
static struct report_memory *without_place;	/* a report that had no free entry for this
						 * process */

/*
 * The keys of the kernels in @own. A key is one word that contains a function's address and the
 * reason.
 */
static struct {
	_Atomic uint64_t key;
	_Atomic(const void *) module;
} keys[GPUPART_REPORT_NR_KERNELS];
atomic_bool report_unnamed;
static atomic_bool naming;

/* Writes the state of the process before the first attach. */
static void begin(const struct environment *environment)
{
	snprintf(own->why, sizeof(own->why), "%s",
		 environment->untouched ? ENVIRONMENT_OFF "=1 is in its environment" :
		 !environment->set	? ENVIRONMENT_SET " is not in its environment" :
					  "it ended before its launches were confined");
}

/*
 * Returns an entry that can be reused. The process of this entry was confined, has ended, and has
 * nothing to report. If there is no such entry, returns NULL.
 */
static struct gpupart_report_process *place_again(struct report_memory *memory)
{
	uint64_t namespace = state_dir_pid_namespace();

	for (unsigned int i = 0; i < REPORT_MAX_PROCESSES && state_dir_proc_is_own(); i++) {
		struct gpupart_report_process *p = &memory->processes[i];
		unsigned int state = GPUPART_REPORT_CONFINED;

		if (p->pid_namespace == namespace && p->start && !p->others &&
		    !p->kernels[0].count && !state_dir_process_lives(p->pid, p->start) &&
		    __atomic_compare_exchange_n(&p->state, &state, GPUPART_REPORT_BEGUN, false,
						__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return p;
	}
	return NULL;
}

/* Gets an entry for this process in the report @id. */
static int take_place(struct gpupart *gp, const char *id)
{
	struct report_memory *memory;
	unsigned int nr;
	int err = report_map(gp, id, &memory);

	if (err)
		return err;
	report_lend = &memory->lend;
	nr = atomic_fetch_add(&memory->nr, 1);
	own = nr < REPORT_MAX_PROCESSES ? &memory->processes[nr] : place_again(memory);
	if (!own) {
		without_place = memory;
		return ctx_fail(gp, -ENOSPC, "the report is full: it already contains %u processes",
				REPORT_MAX_PROCESSES);
	}
	if (nr >= REPORT_MAX_PROCESSES)
		atomic_fetch_sub(&memory->nr, 1);
	return 0;
}

int gpupart_report_start(struct gpupart *gp, const char *id)
{
	struct environment environment = environment_read();
	int err;

	if (own)
		return 0;
	err = id ? take_place(gp, id) : 0;
	if (!own)
		own = &kept;
	prctl(PR_GET_NAME, own->name);
	begin(&environment);
	own->start = state_dir_process_start(getpid());
	own->pid_namespace = state_dir_pid_namespace();
	__atomic_store_n(&own->pid, getpid(), __ATOMIC_RELEASE);
	atomic_store_explicit(&report_joined, true, memory_order_release);
	return err;
}

void report_attached(struct gpupart *gp, int err, const struct gpupart_gpu_info *info)
{
	if (!own)
		return;
	if (err) {
		snprintf(own->why, sizeof(own->why), "%.255s", gp->error);
		return;
	}
	snprintf(own->pci, sizeof(own->pci), "%s", info->pci);
	snprintf(own->source, sizeof(own->source), "%s", info->source);
	own->simulated = info->simulated;
	__atomic_store_n(&own->state, GPUPART_REPORT_CONFINED, __ATOMIC_RELEASE);
}

void report_refused(bool worked)
{
	if (own)
		__atomic_store_n(&own->state, worked ? GPUPART_REPORT_REFUSED :
				 GPUPART_REPORT_NOT_REFUSED, __ATOMIC_RELEASE);
	if (without_place && worked)
		atomic_fetch_add(&without_place->nr_refused, 1);
	without_place = NULL;
}

/*
 * Returns the entry for @key, or a free entry that gets @key. If all entries are in use, returns
 * NULL.
 */
static struct gpupart_report_kernel *place(uint64_t key, const void *module,
					   const struct gpupart_report_kernel *kernel)
{
	for (unsigned int i = 0; i < GPUPART_REPORT_NR_KERNELS; i++) {
		uint64_t found = 0;

		if (atomic_compare_exchange_strong(&keys[i].key, &found, key)) {
			own->kernels[i].outside = kernel->outside;
			own->kernels[i].cluster = kernel->cluster;
			own->kernels[i].nr_tpcs = kernel->nr_tpcs;
			own->kernels[i].limit = kernel->limit;
			atomic_store(&keys[i].module, module);
			atomic_store(&report_unnamed, true);
			return &own->kernels[i];
		}
		if (found == key)
			return &own->kernels[i];
	}
	return NULL;
}

void report_outside(const void *function, const void *module,
		    const struct gpupart_report_kernel *kernel)
{
	struct gpupart_report_kernel *at;

	if (!atomic_load_explicit(&report_joined, memory_order_acquire))
		return;
	at = place((uint64_t)(uintptr_t)function << 4 | kernel->outside, module, kernel);
	__atomic_fetch_add(at ? &at->count : &own->others, 1, __ATOMIC_RELAXED);
}

void report_module_refused(const char *name)
{
	const struct gpupart_report_kernel refused = { .outside = GPUPART_REFUSED_MODULE };
	uint64_t key = hash_bytes(HASH_INIT, name, strlen(name)) << 4 | refused.outside;
	struct gpupart_report_kernel *at = report_joined ? place(key, NULL, &refused) : NULL;

	if (!at)
		return;
	snprintf(at->name, sizeof(at->name), "%s", name);
	__atomic_fetch_add(&at->count, 1, __ATOMIC_RELAXED);
}

void report_names(const struct cuda_api *cuda)
{
	const char *name;

	if (!atomic_load_explicit(&report_unnamed, memory_order_relaxed) || !cuda->func_name ||
	    atomic_exchange(&naming, true))
		return;
	atomic_store(&report_unnamed, false);
	for (unsigned int i = 0; i < GPUPART_REPORT_NR_KERNELS; i++) {
		uint64_t key = atomic_load(&keys[i].key);
		void *function = (void *)(uintptr_t)(key >> 4);

		if (key == KEY_GONE || !function || (key & 15) == GPUPART_REFUSED_MODULE ||
		    own->kernels[i].name[0])
			continue;
		if (!cuda->func_name(&name, function) && name)
			snprintf(own->kernels[i].name, sizeof(own->kernels[i].name), "%s", name);
	}
	atomic_store(&naming, false);
}

void report_module_gone(const void *module)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	if (!atomic_load_explicit(&report_joined, memory_order_acquire))
		return;
	for (unsigned int i = 0; i < GPUPART_REPORT_NR_KERNELS; i++)
		if (atomic_load(&keys[i].module) == module)
			atomic_store(&keys[i].key, KEY_GONE);
	/*
	 * Another thread may be reading a name. That thread may be waiting for this unload, so do
	 * not wait long.
	 */
	for (int i = 0; i < 20 && atomic_load(&naming); i++)
		nanosleep(&pause, NULL);
}

const struct gpupart_report_process *gpupart_report_end(void)
{
	const struct cuda_api *cuda = cuda_loaded();

	if (!own || own->pid != getpid())
		return NULL;
	if (cuda)
		report_names(cuda);
	return own == &kept ? own : NULL;
}
