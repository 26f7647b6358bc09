// SPDX-License-Identifier: MIT
/*
 * A fake libcuda.so for tests/cli/drivers.sh. It has only the table of callbacks. FAKE_DRIVER
 * sets its properties: bytes=N slot 0, features=N, cbids=N of domain 0xB, subscribe=N the result
 * of a subscription, unsubscribe=N the result of the second unsubscription, enable=N the result
 * for cbid 2, refuse=N the result for a cbid that does not exist, none=1 no table, empty=1 no
 * slot 4. At exit, it prints the enabled callbacks and the remaining subscriptions on stderr. It
 * shares no code with the library or with the simulated driver.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_SLOTS 16

static int subscribed, enabled[8];
static const void *table[MAX_SLOTS];

static long setting(const char *name, long unset)
{
	const char *all = getenv("FAKE_DRIVER"), *at = all;
	size_t len = strlen(name);

	for (; at && *at; at++)
		if ((at == all || at[-1] == ' ') && !strncmp(at, name, len) && at[len] == '=')
			return strtol(at + len + 1, NULL, 0);
	return unset;
}

static int subscribe(uint32_t *handle, void *callback, void *user)
{
	(void)user;
	if (setting("subscribe", 0))
		return setting("subscribe", 0);
	if (!callback)
		return 1;
	if (subscribed)
		return 210;
	subscribed = 1;
	*handle = 1;
	return 0;
}

static int unsubscribe(uint32_t handle)
{
	static int nr;

	if (nr++ && setting("unsubscribe", 0))
		return setting("unsubscribe", 0);
	if (handle != 1 || !subscribed)
		return 1;
	subscribed = 0;
	return 0;
}

static int enable(uint32_t on, uint32_t handle, int domain, int cbid)
{
	if (handle != 1 || !subscribed || domain != 0xb || cbid < 0)
		return 1;
	if (cbid >= setting("cbids", 4))
		return setting("refuse", 1);
	if (cbid == 2 && setting("enable", 0))
		return setting("enable", 0);
	enabled[cbid] = on;
	return 0;
}

static int feature(uint32_t on, uint32_t handle, uint32_t number)
{
	return on == 1 && handle == 1 && number < setting("features", 0) ? 0 : 1;
}

static int nr_features(uint32_t *count, uint32_t zero, uint32_t handle)
{
	if (zero || handle != 1)
		return 1;
	*count = setting("features", 0);
	return 0;
}

/* The memory after the end of the table has the address of this function. */
static int beyond(void)
{
	fprintf(stderr, "a slot was called that the table does not have\n");
	abort();
}

__attribute__((visibility("default")))
int cuGetExportTable(const void **found, const unsigned char *uuid);

int cuGetExportTable(const void **found, const unsigned char *uuid)
{
	long bytes = setting("bytes", 96);

	if (uuid[0] != 0x2c || uuid[15] != 0x4b || setting("none", 0))
		return 500;
	for (long i = 1; i < MAX_SLOTS; i++)
		table[i] = (const void *)beyond;
	table[0] = (const void *)(uintptr_t)bytes;
	table[3] = (const void *)subscribe;
	table[4] = setting("empty", 0) ? NULL : (const void *)unsubscribe;
	table[6] = (const void *)enable;
	if (bytes >= 80)
		table[9] = (const void *)feature;
	if (bytes >= 88)
		table[10] = (const void *)nr_features;
	*found = table;
	return 0;
}

__attribute__((destructor))
static void tell_left(void)
{
	for (int cbid = 0; cbid < 8; cbid++)
		if (enabled[cbid])
			fprintf(stderr, "left enabled: %d\n", cbid);
	if (subscribed)
		fprintf(stderr, "left subscribed\n");
}
