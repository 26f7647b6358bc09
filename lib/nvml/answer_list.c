// SPDX-License-Identifier: MIT
/*
 * Answers a tenant's queries for the list of a GPU's processes. The library writes the whole list
 * into private memory. Then this code copies the entries of the tenant's processes to the program's
 * list.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "lib/nvml/answer.h"
#include "lib/nvml/share.h"

#define MAX_ENTRIES	65536	/* maximum length of a list; no GPU has more processes */
#define FILL		0x5a	/* memory is filled with this value, to find entries
				 * that the library did not write */
#define SMALL		2048	/* size in bytes of a buffer on the stack, large enough
				 * for most lists */
#define NO_FIGURE	SIZE_MAX

/*
 * A function that calls the library. The library writes at most *nr entries to @entries, and
 * changes *nr.
 */
struct asker {
	int (*ask)(struct asker *asker, unsigned int *nr, void *entries);
	uintptr_t real;
	void *device;
	uint64_t last_seen;
	bool by_struct;		/* the function also gets the caller's struct, @mine */
	void *mine;
	uint32_t version, mode;	/* members of the caller's struct */
};

/* The form of the entries of a list. */
struct kind {
	size_t bytes;		/* size of one entry */
	size_t pid_at, used_at;	/* offsets in an entry; NO_FIGURE: the entry has no such
				 * member */
	bool or_details;	/* entries may have an additional member */
	bool none_fails;	/* for an empty list the result is NVML_ERROR_NOT_FOUND */
	uint32_t version;	/* version of the caller's struct; 0: it has no version */
};

struct list {
	char small[SMALL];
	char *entries, *large;	/* @entries is @small or @large */
	unsigned int nr;
	size_t entry_bytes;	/* before the call: size of the largest possible entry */
	const struct kind *kind;
};

/*
 * Reads the whole list of the library. The number of processes can change between two calls, so the
 * function may need several tries.
 */
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

/* Removes the entries of processes that do not belong to the tenant. */
static void keep_own(struct list *list, const struct share *share)
{
	const uint64_t not_available = NVML_NOT_AVAILABLE;
	unsigned int nr = 0;
	uint64_t used;
	uint32_t pid;

	for (unsigned int i = 0; i < list->nr; i++) {
		char *from = list->entries + i * list->entry_bytes;
		char *to = list->entries + nr * list->entry_bytes;

		memcpy(&pid, from + list->kind->pid_at, sizeof(pid));
		if (!share_has(share, pid, &used))
			continue;
		memmove(to, from, list->entry_bytes);
		if (list->kind->used_at != NO_FIGURE &&
		    !memcmp(to + list->kind->used_at, &not_available, sizeof(not_available)))
			memcpy(to + list->kind->used_at, &used, sizeof(used));
		nr++;
	}
	list->nr = nr;
}

/* Copies the tenant's entries into the program's list of *nr entries. */
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

/* Returns true if the library wrote entries with the additional member. */
static bool has_details(const struct list *list, size_t entry_bytes)
{
	const char *at = list->entries + list->nr * entry_bytes;
	const char *after = list->entries + list->nr * sizeof(struct nvml_process_detail);

	while (at < after && *at == FILL)
		at++;
	return at < after;
}

/*
 * Answers with the tenant's processes. If the tenant has no share, or there is no list to fill, the
 * library itself answers.
 */
static int answer(struct copy *copy, struct asker *asker, const struct kind *kind,
		  unsigned int *nr, void *entries)
{
	struct list list = { .kind = kind, .entry_bytes = kind->bytes };
	int (*real)(void *, void *) = (void *)asker->real, rc;
	struct share share;

	if (!nr || (asker->version == kind->version && !entries && (*nr || kind->none_fails)) ||
	    !answer_open(copy, asker->device, &share))
		return asker->by_struct ? real(asker->device, asker->mine) :
					  asker->ask(asker, nr, entries);
	if (kind->or_details)
		list.entry_bytes = sizeof(struct nvml_process_detail);
	rc = fetch(&list, asker);
	/*
	 * Only newer drivers support this version of the struct. Answer like a driver that does
	 * not support this version.
	 */
	if (rc == NVML_SUCCESS && asker->version != kind->version)
		rc = NVML_ERROR_VERSION_MISMATCH;
	if (rc == NVML_SUCCESS) {
		if (kind->or_details && !has_details(&list, kind->bytes))
			list.entry_bytes = kind->bytes;
		rc = give_own(&list, &share, nr, entries);
	}
	if (rc == NVML_SUCCESS && kind->none_fails && !*nr)
		rc = NVML_ERROR_NOT_FOUND;
	free(list.large);
	share_close(&share);
	return rc;
}

static int ask_list(struct asker *asker, unsigned int *nr, void *entries)
{
	int (*real)(void *, unsigned int *, void *) = (void *)asker->real;

	return real(asker->device, nr, entries);
}

int answer_list(struct copy *copy, enum copy_function which, void *device, unsigned int *nr,
		void *processes)
{
	static const struct kind v1 = { .bytes = sizeof(struct nvml_process_v1),
					.pid_at = offsetof(struct nvml_process_v1, pid),
					.used_at = offsetof(struct nvml_process_v1, used) };
	static const struct kind v2 = { .bytes = sizeof(struct nvml_process_v2),
					.pid_at = offsetof(struct nvml_process_v2, pid),
					.used_at = offsetof(struct nvml_process_v2, used),
					.or_details = true };
	const bool is_v1 = which == COPY_COMPUTE || which == COPY_GRAPHICS || which == COPY_MPS;
	struct asker asker = { .ask = ask_list, .real = copy->real[which], .device = device };

	return answer(copy, &asker, is_v1 ? &v1 : &v2, nr, processes);
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
	static const struct kind kind = { .bytes = sizeof(struct nvml_process_detail),
					  .pid_at = offsetof(struct nvml_process_detail, pid),
					  .used_at = offsetof(struct nvml_process_detail, used),
					  .version = NVML_DETAIL_LIST_V1 };
	struct asker asker = { .ask = ask_details, .real = copy->real[which], .device = device,
			       .by_struct = true, .mine = mine };

	if (!mine)
		return answer(copy, &asker, &kind, NULL, NULL);
	asker.version = mine->version;
	asker.mode = mine->mode;
	return answer(copy, &asker, &kind, &mine->nr, mine->processes);
}

int answer_pids(struct copy *copy, enum copy_function which, void *device, unsigned int *nr,
		unsigned int *pids)
{
	static const struct kind kind = { .bytes = sizeof(*pids), .used_at = NO_FIGURE };
	struct asker asker = { .ask = ask_list, .real = copy->real[which], .device = device };

	return answer(copy, &asker, &kind, nr, pids);
}

static int ask_samples(struct asker *asker, unsigned int *nr, void *entries)
{
	int (*real)(void *, void *, unsigned int *, unsigned long long) = (void *)asker->real;

	return real(asker->device, entries, nr, asker->last_seen);
}

int answer_samples(struct copy *copy, enum copy_function which, void *device,
		   struct nvml_sample *samples, unsigned int *nr, unsigned long long last_seen)
{
	static const struct kind kind = { .bytes = sizeof(*samples),
					  .pid_at = offsetof(struct nvml_sample, pid),
					  .used_at = NO_FIGURE, .none_fails = true };
	struct asker asker = { .ask = ask_samples, .real = copy->real[which],
			       .device = device, .last_seen = last_seen };

	return answer(copy, &asker, &kind, nr, samples);
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
	static const struct kind kind = { .bytes = sizeof(struct nvml_utilization),
					  .pid_at = offsetof(struct nvml_utilization, pid),
					  .used_at = NO_FIGURE, .none_fails = true,
					  .version = NVML_UTILIZATIONS_V1 };
	struct asker asker = { .ask = ask_utilizations, .real = copy->real[which],
			       .device = device, .by_struct = true, .mine = mine };

	if (!mine)
		return answer(copy, &asker, &kind, NULL, NULL);
	asker.version = mine->version;
	asker.last_seen = mine->last_seen;
	return answer(copy, &asker, &kind, &mine->nr, mine->processes);
}
