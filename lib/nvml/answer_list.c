// SPDX-License-Identifier: MIT
/*
 * Lists of a GPU's processes as a tenant sees them: the library is asked for all, into memory
 * of ours, and the program gets its own of that. Must not know how we come between the two.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "lib/nvml/answer.h"
#include "lib/nvml/share.h"

#define MAX_ENTRIES	65536	/* of a list; no GPU has as many processes */
#define FILL		0x5a	/* where the library wrote nothing */
#define SMALL		2048	/* bytes: what most lists fit into, on the stack */
#define NO_FIGURE	SIZE_MAX

/* How the library is asked: for at most *nr entries into @entries, *nr as it leaves that. */
struct asker {
	int (*ask)(struct asker *asker, unsigned int *nr, void *entries);
	uintptr_t real;
	void *device;
	uint64_t last_seen;
	uint32_t version, mode;
};

struct list {
	char small[SMALL];
	char *entries, *large;	/* @entries is one of the two */
	unsigned int nr;
	size_t entry_bytes;	/* at most, before they are there */
	size_t pid_at, used_at;	/* bytes from an entry's begin; NO_FIGURE: it has none */
};

/* All that the library has. Its processes come and go, so it may need more than one try. */
static int fetch(struct list *list, struct asker *asker)
{
	unsigned int room = SMALL / list->entry_bytes;
	int rc = NVML_SUCCESS;

	list->entries = list->small;
	for (int i = 0; i < 8; i++) {
		list->nr = room;
		memset(list->entries, FILL, room * list->entry_bytes);
		rc = asker->ask(asker, &list->nr, list->entries);
		if (rc != NVML_ERROR_INSUFFICIENT_SIZE || list->nr > MAX_ENTRIES)
			break;
		room = (list->nr > room ? list->nr : room) * 3 / 2;
		free(list->large);
		list->large = malloc(room * list->entry_bytes);
		if (!list->large)
			break;
		list->entries = list->large;
	}
	if (list->nr > room)
		list->nr = room;
	return rc;
}

/* Leaves what is the tenant's. */
static void keep_own(struct list *list, const struct share *share)
{
	const uint64_t not_told = NVML_NOT_AVAILABLE;
	unsigned int nr = 0;
	uint64_t used;
	uint32_t pid;

	for (unsigned int i = 0; i < list->nr; i++) {
		char *from = list->entries + i * list->entry_bytes;
		char *to = list->entries + nr * list->entry_bytes;

		memcpy(&pid, from + list->pid_at, sizeof(pid));
		if (!share_has(share, pid, &used))
			continue;
		memmove(to, from, list->entry_bytes);
		if (list->used_at != NO_FIGURE &&
		    !memcmp(to + list->used_at, &not_told, sizeof(not_told)))
			memcpy(to + list->used_at, &used, sizeof(used));
		nr++;
	}
	list->nr = nr;
}

/* What is the tenant's into the program's list of *nr entries. */
static int give_own(struct list *list, const struct share *share, unsigned int *nr,
		    void *entries)
{
	int rc = NVML_ERROR_INSUFFICIENT_SIZE;

	keep_own(list, share);
	if (list->nr <= *nr) {
		rc = NVML_SUCCESS;
		if (list->nr)
			memcpy(entries, list->entries, list->nr * list->entry_bytes);
	}
	*nr = list->nr;
	return rc;
}

static void end(struct list *list, struct share *share)
{
	free(list->large);
	share_close(share);
}

/* ------------------------------------------------------------------------ processes */

static int ask_list(struct asker *asker, unsigned int *nr, void *entries)
{
	int (*real)(void *, unsigned int *, void *) = (void *)asker->real;

	return real(asker->device, nr, entries);
}

/* Whether the library wrote entries of the kind that has a field more. */
static bool has_details(const struct list *list, size_t entry_bytes)
{
	const char *at = list->entries + list->nr * entry_bytes;
	const char *after = list->entries + list->nr * sizeof(struct nvml_process_detail);

	while (at < after && *at == FILL)
		at++;
	return at < after;
}

int answer_list(struct copy *copy, enum copy_function which, void *device, unsigned int *nr,
		void *processes)
{
	const bool v1 = which == COPY_COMPUTE || which == COPY_GRAPHICS || which == COPY_MPS;
	const size_t entry_bytes = v1 ? sizeof(struct nvml_process_v1) :
					sizeof(struct nvml_process_v2);
	struct asker asker = { .ask = ask_list, .real = copy->real[which], .device = device };
	struct list list = { .entry_bytes = sizeof(struct nvml_process_detail),
			     .pid_at = offsetof(struct nvml_process_v1, pid),
			     .used_at = offsetof(struct nvml_process_v1, used) };
	struct share share;
	int rc;

	if (!nr || (*nr && !processes) || !answer_open(copy, device, &share))
		return ask_list(&asker, nr, processes);
	rc = fetch(&list, &asker);
	if (rc == NVML_SUCCESS) {
		if (v1 || !has_details(&list, entry_bytes))
			list.entry_bytes = entry_bytes;
		rc = give_own(&list, &share, nr, processes);
	}
	end(&list, &share);
	return rc;
}

static int ask_details(struct asker *asker, unsigned int *nr, void *entries)
{
	int (*real)(void *, struct nvml_detail_list *) = (void *)asker->real;
	struct nvml_detail_list all = { .version = asker->version, .mode = asker->mode,
					.nr = *nr, .processes = entries };
	int rc = real(asker->device, &all);

	*nr = all.nr;
	return rc;
}

int answer_details(struct copy *copy, enum copy_function which, void *device,
		   struct nvml_detail_list *mine)
{
	int (*real)(void *, struct nvml_detail_list *) = (void *)copy->real[which];
	struct asker asker = { .ask = ask_details, .real = copy->real[which],
			       .device = device };
	struct list list = { .entry_bytes = sizeof(struct nvml_process_detail),
			     .pid_at = offsetof(struct nvml_process_detail, pid),
			     .used_at = offsetof(struct nvml_process_detail, used) };
	struct share share;
	int rc;

	if (!mine || (mine->version == NVML_DETAIL_LIST_V1 && mine->nr && !mine->processes) ||
	    !answer_open(copy, device, &share))
		return real(device, mine);
	asker.version = mine->version;
	asker.mode = mine->mode;
	rc = fetch(&list, &asker);
	/* A version that only a newer driver knows: as by a driver that does not. */
	if (rc == NVML_SUCCESS)
		rc = mine->version == NVML_DETAIL_LIST_V1 ?
			     give_own(&list, &share, &mine->nr, mine->processes) :
			     NVML_ERROR_VERSION_MISMATCH;
	end(&list, &share);
	return rc;
}

int answer_pids(struct copy *copy, enum copy_function which, void *device, unsigned int *nr,
		unsigned int *pids)
{
	struct asker asker = { .ask = ask_list, .real = copy->real[which], .device = device };
	struct list list = { .entry_bytes = sizeof(*pids),
			     .pid_at = 0,
			     .used_at = NO_FIGURE };
	struct share share;
	int rc;

	if (!nr || (*nr && !pids) || !answer_open(copy, device, &share))
		return ask_list(&asker, nr, pids);
	rc = fetch(&list, &asker);
	if (rc == NVML_SUCCESS)
		rc = give_own(&list, &share, nr, pids);
	end(&list, &share);
	return rc;
}

/* ---------------------------------------------------------------------- utilization */

static int ask_samples(struct asker *asker, unsigned int *nr, void *entries)
{
	int (*real)(void *, void *, unsigned int *, unsigned long long) = (void *)asker->real;

	return real(asker->device, entries, nr, asker->last_seen);
}

/* As give_own(); that there is none is an error here. */
static int give_some(struct list *list, const struct share *share, unsigned int *nr,
		     void *entries)
{
	int rc = give_own(list, share, nr, entries);

	return rc == NVML_SUCCESS && !*nr ? NVML_ERROR_NOT_FOUND : rc;
}

int answer_samples(struct copy *copy, enum copy_function which, void *device,
		   struct nvml_sample *samples, unsigned int *nr, unsigned long long last_seen)
{
	struct asker asker = { .ask = ask_samples, .real = copy->real[which],
			       .device = device, .last_seen = last_seen };
	struct list list = { .entry_bytes = sizeof(*samples),
			     .pid_at = offsetof(struct nvml_sample, pid),
			     .used_at = NO_FIGURE };
	struct share share;
	int rc;

	if (!nr || !samples || !answer_open(copy, device, &share))
		return ask_samples(&asker, nr, samples);
	rc = fetch(&list, &asker);
	if (rc == NVML_SUCCESS)
		rc = give_some(&list, &share, nr, samples);
	end(&list, &share);
	return rc;
}

static int ask_utilizations(struct asker *asker, unsigned int *nr, void *entries)
{
	int (*real)(void *, struct nvml_utilizations *) = (void *)asker->real;
	struct nvml_utilizations all = { .version = asker->version, .nr = *nr,
					 .last_seen = asker->last_seen, .processes = entries };
	int rc = real(asker->device, &all);

	*nr = all.nr;
	return rc;
}

int answer_utilizations(struct copy *copy, enum copy_function which, void *device,
			struct nvml_utilizations *mine)
{
	int (*real)(void *, struct nvml_utilizations *) = (void *)copy->real[which];
	struct asker asker = { .ask = ask_utilizations, .real = copy->real[which],
			       .device = device };
	struct list list = { .entry_bytes = sizeof(struct nvml_utilization),
			     .pid_at = offsetof(struct nvml_utilization, pid),
			     .used_at = NO_FIGURE };
	struct share share;
	int rc;

	if (!mine || (mine->version == NVML_UTILIZATIONS_V1 && !mine->processes) ||
	    !answer_open(copy, device, &share))
		return real(device, mine);
	asker.version = mine->version;
	asker.last_seen = mine->last_seen;
	rc = fetch(&list, &asker);
	/* A version that only a newer driver knows: as by a driver that does not. */
	if (rc == NVML_SUCCESS)
		rc = mine->version == NVML_UTILIZATIONS_V1 ?
			     give_some(&list, &share, &mine->nr, mine->processes) :
			     NVML_ERROR_VERSION_MISMATCH;
	end(&list, &share);
	return rc;
}
