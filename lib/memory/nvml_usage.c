// SPDX-License-Identifier: MIT
/*
 * See nvml_usage.h. What is asked is some 10 us each (measured on an H200), so callers ask seldom.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <unistd.h>
#include "lib/memory/nvml_usage.h"

#define MAX_PROCESSES	256
#define NOT_TOLD	UINT64_MAX

/* nvml.h of NVIDIA's: nvmlProcessInfo_t of nvmlDeviceGetComputeRunningProcesses_v3. */
struct process_info {
	unsigned int pid;
	unsigned long long used;
	unsigned int gpu_instance, compute_instance;
};

/* nvmlMemory_t */
struct memory_info {
	unsigned long long total, free, used;
};

static int (*find)(const char *pci, void **device);
static int (*list)(void *device, unsigned int *nr, struct process_info *infos);
static int (*info)(void *device, struct memory_info *memory);
static int (*simulated)(int device, uint64_t *own, uint64_t *all);
static int (*simulated_processes)(int device);

struct symbols {
	const ElfW(Sym) *table;
	const char *strings;
	const uint32_t *gnu_hash, *hash;
};

static struct symbols symbols_of(const struct link_map *map)
{
	struct symbols symbols = { NULL, NULL, NULL, NULL };

	for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
		/* The loader has made addresses of them already, but where it must not write. */
		uintptr_t at = d->d_un.d_ptr < map->l_addr ? d->d_un.d_ptr + map->l_addr :
							     d->d_un.d_ptr;

		if (d->d_tag == DT_SYMTAB)
			symbols.table = (const void *)at;
		else if (d->d_tag == DT_STRTAB)
			symbols.strings = (const void *)at;
		else if (d->d_tag == DT_GNU_HASH)
			symbols.gnu_hash = (const void *)at;
		else if (d->d_tag == DT_HASH)
			symbols.hash = (const void *)at;
	}
	return symbols;
}

static bool is_named(const struct symbols *symbols, uint32_t nr, const char *name)
{
	return symbols->table[nr].st_shndx != SHN_UNDEF &&
	       !strcmp(symbols->strings + symbols->table[nr].st_name, name);
}

/* The number of a symbol, or 0. */
static uint32_t find_by_gnu_hash(const struct symbols *symbols, const char *name)
{
	const uint32_t *head = symbols->gnu_hash, *buckets = head + 4 + 2 * head[2];
	const uint32_t *chain = buckets + head[0];
	uint32_t hash = 5381, nr, first = head[1];

	for (const char *c = name; *c; c++)
		hash = hash * 33 + (unsigned char)*c;
	nr = head[0] ? buckets[hash % head[0]] : 0;
	for (; nr >= first && nr; nr++) {
		if ((chain[nr - first] | 1) == (hash | 1) && is_named(symbols, nr, name))
			return nr;
		if (chain[nr - first] & 1)
			break;
	}
	return 0;
}

static uint32_t find_by_hash(const struct symbols *symbols, const char *name)
{
	for (uint32_t nr = 1; nr < symbols->hash[1]; nr++)
		if (is_named(symbols, nr, name))
			return nr;
	return 0;
}

/*
 * Not by dlsym(): what it gives inside a tenant are the functions that tell of the share,
 * and what is wanted here is what is really so.
 */
static void *own_symbol(void *lib, const char *name)
{
	struct symbols symbols;
	struct link_map *map;
	uint32_t nr = 0;

	if (dlinfo(lib, RTLD_DI_LINKMAP, &map))
		return NULL;
	symbols = symbols_of(map);
	if (!symbols.table || !symbols.strings)
		return NULL;
	if (symbols.gnu_hash)
		nr = find_by_gnu_hash(&symbols, name);
	if (!nr && symbols.hash)
		nr = find_by_hash(&symbols, name);
	return nr ? (void *)(map->l_addr + symbols.table[nr].st_value) : NULL;
}

void memory_real_open(const struct cuda_api *cuda)
{
	int (*start)(void);
	void *lib;

	simulated = cuda->sim_memory;
	simulated_processes = cuda->sim_processes;
	if (cuda->sim_capture)
		return;
	/* Never closed: the program may use it as well. */
	lib = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!lib)
		return;
	*(void **)&start = own_symbol(lib, "nvmlInit_v2");
	if (!start || start())
		return;
	*(void **)&list = own_symbol(lib, "nvmlDeviceGetComputeRunningProcesses_v3");
	*(void **)&info = own_symbol(lib, "nvmlDeviceGetMemoryInfo");
	*(void **)&find = own_symbol(lib, "nvmlDeviceGetHandleByPciBusId_v2");
}

int memory_real_own(const char *pci, int device, uint64_t *bytes)
{
	struct process_info infos[MAX_PROCESSES];
	unsigned int nr = MAX_PROCESSES, own = getpid();
	uint64_t all;
	void *handle;

	if (simulated)
		return !simulated(device, bytes, &all) && *bytes != NOT_TOLD ? 0 : -EOPNOTSUPP;
	if (!find || !list || find(pci, &handle) || list(handle, &nr, infos))
		return -EOPNOTSUPP;
	for (unsigned int i = 0; i < nr && i < MAX_PROCESSES; i++)
		if (infos[i].pid == own && infos[i].used != NOT_TOLD) {
			*bytes = infos[i].used;
			return 0;
		}
	return -ENOENT;
}

bool memory_real_all(const char *pci, int device, uint64_t *bytes)
{
	struct memory_info memory;
	uint64_t own;
	void *handle;

	if (simulated)
		return !simulated(device, &own, bytes);
	if (!find || !info || find(pci, &handle) || info(handle, &memory))
		return false;
	*bytes = memory.used;
	return true;
}

int memory_real_processes(const char *pci, int device)
{
	struct process_info infos[MAX_PROCESSES];
	unsigned int nr = MAX_PROCESSES;
	void *handle;

	if (simulated_processes)
		return simulated_processes(device);
	if (!find || !list || find(pci, &handle) || list(handle, &nr, infos))
		return -1;
	return nr;
}
