// SPDX-License-Identifier: MIT
/*
 * Keeps a list of the loaded copies of libnvidia-ml. For each copy, the list contains the copy's
 * functions, their replacements, and the ioctl function that the copy calls.
 */
#include <stddef.h>
#include <string.h>
#include "lib/core/symbols.h"
#include "lib/nvml/answer.h"
#include "lib/nvml/copy.h"

static struct copy copies[COPY_MAX];

#define FORWARD(copy, id, kind, parameters, ...) \
	static int kind##_##copy##_##id parameters \
	{ \
		return answer_##kind(&copies[copy], COPY_##id, __VA_ARGS__); \
	}
#define DEFINE_memory(copy, id) \
	FORWARD(copy, id, memory, (void *device, struct nvml_memory *memory), device, memory)
#define DEFINE_memory_v2(copy, id) \
	FORWARD(copy, id, memory_v2, (void *device, struct nvml_memory_v2 *memory), device, memory)
#define DEFINE_list(copy, id) \
	FORWARD(copy, id, list, (void *device, unsigned int *nr, void *list), device, nr, list)
#define DEFINE_details(copy, id) \
	FORWARD(copy, id, details, (void *device, struct nvml_detail_list *list), device, list)
#define DEFINE_samples(copy, id) \
	FORWARD(copy, id, samples, (void *device, struct nvml_sample *list, unsigned int *nr, \
				    unsigned long long last_seen), device, list, nr, last_seen)
#define DEFINE_utilizations(copy, id) \
	FORWARD(copy, id, utilizations, (void *device, struct nvml_utilizations *list), device, \
		list)
#define DEFINE_pids(copy, id) \
	FORWARD(copy, id, pids, (void *device, unsigned int *nr, unsigned int *pids), device, nr, \
		pids)
#define DEFINE_stats(copy, id) \
	FORWARD(copy, id, stats, (void *device, unsigned int pid, void *stats), device, pid, stats)
#define DEFINE(copy, kind, id, name) DEFINE_##kind(copy, id)
#define ADDRESS(copy, kind, id, name) [COPY_##id] = (void *)kind##_##copy##_##id,
#define NAME(copy, kind, id, name) [COPY_##id] = name,

COPY_FUNCTIONS(DEFINE, 0)
COPY_FUNCTIONS(DEFINE, 1)
COPY_FUNCTIONS(DEFINE, 2)
COPY_FUNCTIONS(DEFINE, 3)

static void *const ours[COPY_MAX][COPY_NR_FUNCTIONS] = {
	{ COPY_FUNCTIONS(ADDRESS, 0) },
	{ COPY_FUNCTIONS(ADDRESS, 1) },
	{ COPY_FUNCTIONS(ADDRESS, 2) },
	{ COPY_FUNCTIONS(ADDRESS, 3) },
};

/* The function that the copy calls instead of ioctl(). */
#define IOCTL(copy) \
	static int ioctl_##copy(int fd, unsigned long request, void *arg) \
	{ \
		return answer_ioctl(&copies[copy], fd, request, arg); \
	}

IOCTL(0)
IOCTL(1)
IOCTL(2)
IOCTL(3)

static void *const ioctls[COPY_MAX] = { (void *)ioctl_0, (void *)ioctl_1, (void *)ioctl_2,
					(void *)ioctl_3 };

static const char *const names[COPY_NR_FUNCTIONS] = { COPY_FUNCTIONS(NAME, 0) };

/* The list begins with the newest function. The code uses the first function that exists. */
static const char *const pci_names[] = { "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2",
					 "nvmlDeviceGetPciInfo" };

static void take_symbols(struct copy *copy, const struct link_map *map)
{
	const struct symbols symbols = symbols_of(map);
	uintptr_t pci = 0;

	for (size_t i = 0; i < COPY_NR_FUNCTIONS; i++)
		atomic_store(&copy->real[i], symbols_find(&symbols, names[i]));
	for (size_t i = 0; !pci && i < sizeof(pci_names) / sizeof(pci_names[0]); i++)
		pci = symbols_find(&symbols, pci_names[i]);
	copy->pci = (int (*)(void *, struct nvml_pci *))pci;
}

bool copy_is_nvml(const char *path)
{
	static const char file[] = "libnvidia-ml.so";
	const char *slash = strrchr(path, '/');

	return !strncmp(slash ? slash + 1 : path, file, sizeof(file) - 1);
}

struct copy *copy_open(const struct link_map *map)
{
	struct copy *copy = copies;

	while (copy < copies + COPY_MAX && copy->taken)
		copy++;
	if (copy == copies + COPY_MAX)
		return NULL;
	take_symbols(copy, map);
	copy->taken = copy->pci;
	return copy->taken ? copy : NULL;
}

struct copy *copy_of(uintptr_t cookie)
{
	uintptr_t first = (uintptr_t)copies;

	return cookie >= first && cookie < first + sizeof(copies) ? (struct copy *)cookie : NULL;
}

uintptr_t copy_bind(struct copy *copy, const char *name, uintptr_t address)
{
	for (size_t i = 0; i < COPY_NR_FUNCTIONS; i++)
		if (address && !strcmp(name, names[i])) {
			atomic_store(&copy->real[i], address);
			return (uintptr_t)ours[copy - copies][i];
		}
	return address;
}

bool copy_may_call(const struct link_map *map)
{
	const struct symbols symbols = symbols_of(map);

	return symbols_find(&symbols, "ioctl");
}

uintptr_t copy_bind_call(struct copy *copy, const char *name, uintptr_t address)
{
	if (!address || strcmp(name, "ioctl"))
		return address;
	atomic_store(&copy->ioctl, address);
	return (uintptr_t)ioctls[copy - copies];
}
