// SPDX-License-Identifier: MIT
/*
 * Replaces entries of the driver's table. The driver accepts one subscriber. A tool that
 * subscribes through the new entries shares the library's subscription. A function is enabled
 * while the library or the tool needs the function. The measurements are in
 * Documentation/internals/hardware.md, "Callback".
 */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "lib/core/fork.h"
#include "lib/driver/tools.h"

#define NR_DOMAINS	32
#define NR_CBIDS	1024
/* drivers accept names of this size, including the terminating 0 */
#define NAME_LEN	64

struct tool {
	struct tool *next;
	driver_callback_fn callback;
	void *user;
	char name[NAME_LEN];
};

/*
 * A thread holds this lock while it runs a new entry, and also during the driver calls of that
 * entry.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
FORK_RENEWS(lock);

static _Atomic(void *) *table;		/* the driver's table; NULL: tools cannot subscribe */
static size_t table_bytes;		/* size of the used part of the table */
static void *of_driver[NR_SLOTS];	/* the original entries; NULL: the entry was not replaced
					 * or does not exist */
static uint32_t our_handle;
static driver_callback_fn our_callback;
static bool (*is_own)(void);
static int (*driver_enable)(uint32_t on, uint32_t handle, int domain, int cbid);

/*
 * List of all tools so far. The structs are never freed. If a tool has ended, a callback may
 * still read its struct.
 */
static struct tool *known;
static _Atomic(const struct tool *) tool;

/*
 * The functions that the library enabled and the functions that the tool enabled. Each cbid has
 * one bit in each struct.
 */
struct enabled {
	_Atomic uint64_t cbids[NR_DOMAINS][NR_CBIDS / 64];
};

static struct enabled ours, tools;

static bool in_range(int domain, int cbid)
{
	return domain >= 0 && domain < NR_DOMAINS && cbid >= 0 && cbid < NR_CBIDS;
}

static bool has(struct enabled *of, int domain, int cbid)
{
	return in_range(domain, cbid) &&
	       atomic_load_explicit(&of->cbids[domain][cbid / 64], memory_order_acquire) >>
			       cbid % 64 & 1;
}

/*
 * Calls the tool. Launches and calls of the library are hidden from the tool, but contexts and
 * streams of the library are not.
 */
static void call_tool(int domain, int cbid, const void *params)
{
	const struct tool *to = atomic_load_explicit(&tool, memory_order_acquire);

	if (to && has(&tools, domain, cbid) &&
	    (domain == DRIVER_DOMAIN_RESOURCE || !is_own()))
		to->callback(to->user, domain, cbid, params);
}

static void call_ours(int domain, int cbid, const void *params)
{
	if (has(&ours, domain, cbid))
		our_callback(NULL, domain, cbid, params);
}

/*
 * Calls the tool and the library. The tool is called before the library masks a TMD. The tool
 * sees the program's original arguments.
 */
static void call_both(void *user, int domain, int cbid, const void *params)
{
	const struct cuda_call_params *call = params;

	(void)user;
	if (domain == DRIVER_DOMAIN_API && call && call->size >= sizeof(*call) &&
	    call->site != CUDA_SITE_BEGIN) {
		call_ours(domain, cbid, params);
		call_tool(domain, cbid, params);
	} else {
		call_tool(domain, cbid, params);
		call_ours(domain, cbid, params);
	}
}

driver_callback_fn tools_callback(driver_callback_fn callback, bool (*own)(void))
{
	our_callback = callback;
	is_own = own;
	return call_both;
}

/*
 * Enables or disables a driver function for the library or for the tool. While the other of the
 * two needs the function, the function stays enabled. The caller holds the lock.
 */
static int enable_for(struct enabled *of, const struct enabled *other, uint32_t on, int domain,
		      int cbid)
{
	_Atomic uint64_t *word;
	uint64_t bit;
	int result;

	if (!in_range(domain, cbid))
		return driver_enable(on, our_handle, domain, cbid);
	word = &of->cbids[domain][cbid / 64];
	bit = 1ull << cbid % 64;
	if (on) {
		bool was = atomic_fetch_or(word, bit) & bit;

		result = driver_enable(1, our_handle, domain, cbid);
		if (result && !was)
			atomic_fetch_and(word, ~bit);
		return result;
	}
	result = atomic_load(&other->cbids[domain][cbid / 64]) & bit ?
			 0 : driver_enable(0, our_handle, domain, cbid);
	if (!result)
		atomic_fetch_and(word, ~bit);
	return result;
}

static int enable_ours(uint32_t on, uint32_t handle, int domain, int cbid)
{
	FORK_HOLD(&lock);

	(void)handle;
	return enable_for(&ours, &tools, on, domain, cbid);
}

/* The caller holds the lock. */
static bool is_subscribed(uint32_t handle)
{
	return handle == our_handle && atomic_load(&tool);
}

static int tool_enable(uint32_t on, uint32_t handle, int domain, int cbid)
{
	FORK_HOLD(&lock);
	return is_subscribed(handle) ? enable_for(&tools, &ours, on, domain, cbid) :
				       CUDA_ERROR_INVALID_VALUE;
}

/*
 * Marks all functions in the domains @first to @last. If @on is false, removes these marks. The
 * caller holds the lock.
 */
static void mark_domains(bool on, int first, int last)
{
	for (int domain = first; domain <= last; domain++)
		for (int cbid = 0; cbid < NR_CBIDS; cbid++) {
			_Atomic uint64_t *word = &tools.cbids[domain][cbid / 64];

			if (on) {
				atomic_fetch_or(word, 1ull << cbid % 64);
			} else if (has(&tools, domain, cbid)) {
				enable_for(&tools, &ours, 0, domain, cbid);
				/*
				 * A whole domain was enabled, so unused numbers are marked too.
				 * Remove the mark.
				 */
				atomic_fetch_and(word, ~(1ull << cbid % 64));
			}
		}
}

static int enable_domains(uint32_t on, uint32_t handle, int first, int last)
{
	const union {
		void *entry;
		int (*domain)(uint32_t on, uint32_t handle, int domain);
		int (*all)(uint32_t on, uint32_t handle);
	} driver = { of_driver[first == last ? SLOT_ENABLE_DOMAIN : SLOT_ENABLE_ALL] };
	int result = 0;

	FORK_HOLD(&lock);
	if (!is_subscribed(handle) || !in_range(first, 0))
		return CUDA_ERROR_INVALID_VALUE;
	if (on)
		result = first == last ? driver.domain(1, our_handle, first) :
					 driver.all(1, our_handle);
	if (!result)
		mark_domains(on, first, last);
	return result;
}

static int tool_enable_domain(uint32_t on, uint32_t handle, int domain)
{
	return enable_domains(on, handle, domain, domain);
}

static int tool_enable_all(uint32_t on, uint32_t handle)
{
	return enable_domains(on, handle, 0, NR_DOMAINS - 1);
}

/* Stores a tool. If there is not enough memory, returns NULL. The caller holds the lock. */
static const struct tool *remember(driver_callback_fn callback, void *user, const char *name)
{
	struct tool *new;

	for (new = known; new; new = new->next)
		if (new->callback == callback && new->user == user &&
		    !strncmp(new->name, name ? name : "", NAME_LEN - 1))
			return new;
	new = calloc(1, sizeof(*new));
	if (!new)
		return NULL;
	new->callback = callback;
	new->user = user;
	snprintf(new->name, sizeof(new->name), "%s", name ? name : "");
	new->next = known;
	known = new;
	return new;
}

static int tool_subscribe_named(uint32_t *handle, driver_callback_fn callback, void *user,
				const char *name, char *other, size_t len)
{
	const struct tool *there, *new;

	if (!handle || !callback)
		return CUDA_ERROR_INVALID_VALUE;
	FORK_HOLD(&lock);
	there = atomic_load(&tool);
	if (there && other && len)
		snprintf(other, len, "%s", there->name[0] ? there->name : "<not provided>");
	if (there)
		return CUDA_ERROR_ALREADY_ACQUIRED;
	new = remember(callback, user, name);
	if (!new)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*handle = our_handle;
	atomic_store_explicit(&tool, new, memory_order_release);
	return 0;
}

static int tool_subscribe(uint32_t *handle, driver_callback_fn callback, void *user)
{
	return tool_subscribe_named(handle, callback, user, NULL, NULL, 0);
}

static int tool_unsubscribe(uint32_t handle)
{
	FORK_HOLD(&lock);
	if (!is_subscribed(handle))
		return CUDA_ERROR_INVALID_VALUE;
	atomic_store(&tool, NULL);
	mark_domains(false, 0, NR_DOMAINS - 1);
	return 0;
}

static const struct {
	int slot;
	void (*entry)(void);
} replaced[] = {
	{ SLOT_SUBSCRIBE, (void (*)(void))tool_subscribe },
	{ SLOT_UNSUBSCRIBE, (void (*)(void))tool_unsubscribe },
	{ SLOT_ENABLE, (void (*)(void))tool_enable },
	{ SLOT_ENABLE_DOMAIN, (void (*)(void))tool_enable_domain },
	{ SLOT_ENABLE_ALL, (void (*)(void))tool_enable_all },
	{ SLOT_SUBSCRIBE_NAMED, (void (*)(void))tool_subscribe_named },
};

#define NR_REPLACED (sizeof(replaced) / sizeof(replaced[0]))

/*
 * Returns the protection of the memory from @start to @end. If parts of this memory have
 * different protections, returns -1.
 */
static int protection_of(uintptr_t start, uintptr_t end)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	uintptr_t low, high;
	int protection = -1;
	char line[512], bits[5];

	while (maps && protection < 0 && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &low, &high, bits) == 3 &&
		    low <= start && end <= high)
			protection = (bits[0] == 'r' ? PROT_READ : 0) |
				     (bits[1] == 'w' ? PROT_WRITE : 0) |
				     (bits[2] == 'x' ? PROT_EXEC : 0);
	if (maps)
		fclose(maps);
	return protection;
}

static void write_slots(bool in)
{
	void *entry;

	for (unsigned int i = 0; i < NR_REPLACED; i++) {
		if (!of_driver[replaced[i].slot])
			continue;
		memcpy(&entry, &replaced[i].entry, sizeof(entry));
		atomic_store(&table[replaced[i].slot],
			     in ? entry : of_driver[replaced[i].slot]);
	}
}

/*
 * Replaces entries of the table, or restores the original entries. For the change, the function
 * makes the memory writable. Afterwards the function restores the memory's protection.
 */
static int replace(struct gpupart *gp, bool in)
{
	uintptr_t page = sysconf(_SC_PAGESIZE), start = (uintptr_t)table & -page;
	size_t len = ((uintptr_t)table + table_bytes - start + page - 1) & -page;
	int was = protection_of(start, start + len);

	if (was < 0 || was & PROT_EXEC)
		return ctx_fail(gp, -EACCES,
				"profilers cannot be used: the driver's callback table is in memory that is %s",
				was < 0 ? "of several kinds" : "executable");
	if (!(was & PROT_WRITE) && mprotect((void *)start, len, was | PROT_WRITE))
		return ctx_fail(gp, -EACCES,
				"profilers cannot be used: the driver's callback table cannot be made writable: %s",
				strerror(errno));
	write_slots(in);
	if (!(was & PROT_WRITE))
		mprotect((void *)start, len, was);
	return 0;
}

int tools_let_in(struct gpupart *gp, struct driver_table *found)
{
	int err;

	FORK_HOLD(&lock);
	table = (_Atomic(void *) *)(uintptr_t)found->at;
	table_bytes = found->bytes < sizeof(of_driver) ? found->bytes : sizeof(of_driver);
	for (unsigned int i = 0; i < NR_REPLACED; i++)
		if ((replaced[i].slot + 1) * sizeof(void *) <= table_bytes)
			of_driver[replaced[i].slot] = atomic_load(&table[replaced[i].slot]);
	our_handle = found->handle;
	driver_enable = found->enable;
	err = replace(gp, true);
	if (err)
		table = NULL;
	/*
	 * Set @enable even after a failure. The function call_both() ignores callbacks that
	 * enable_ours() did not record.
	 */
	found->enable = enable_ours;
	return err;
}

int tools_shut_out(struct gpupart *gp)
{
	const struct tool *there;
	int err;

	FORK_HOLD(&lock);
	there = atomic_load(&tool);
	if (there)
		return ctx_fail(gp, -EBUSY, "a profiler is subscribed: %s",
				there->name[0] ? there->name : "name unknown");
	err = table ? replace(gp, false) : 0;
	if (!err)
		table = NULL;
	return err;
}
