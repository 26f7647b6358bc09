// SPDX-License-Identifier: MIT
/*
 * Implements a hash table of allocations. See allocations.h. The table has chains and doubles its
 * size when it is full.
 */
#include <stdlib.h>
#include "lib/memory/allocations.h"

#define FIRST_SIZE 1024

static struct memory_item **chains;
static unsigned int nr_chains, nr_items;

static struct memory_item **chain_of(enum memory_key by, uint64_t key)
{
	uint64_t hash = (key ^ (uint64_t)by << 56) * 0x9e3779b97f4a7c15ull;

	return &chains[(hash >> 32) & (nr_chains - 1)];
}

static void insert(struct memory_item *item)
{
	struct memory_item **chain = chain_of(item->by, item->key);

	item->next = *chain;
	*chain = item;
}

/* If memory is short, the table keeps its size, and the chains become longer. */
static bool grow(void)
{
	unsigned int size = nr_chains ? nr_chains * 2 : FIRST_SIZE, before = nr_chains;
	struct memory_item **old = chains, **new = calloc(size, sizeof(*new)), *item;

	if (!new)
		return nr_chains;
	chains = new;
	nr_chains = size;
	for (unsigned int i = 0; i < before; i++)
		while ((item = old[i])) {
			old[i] = item->next;
			insert(item);
		}
	free(old);
	return true;
}

void memory_table_put(struct memory_item *item)
{
	insert(item);
	nr_items++;
}

struct memory_item *memory_table_add(enum memory_key by, uint64_t key)
{
	struct memory_item *item = calloc(1, sizeof(*item));

	if (!item || (nr_items >= nr_chains && !grow())) {
		free(item);
		return NULL;
	}
	item->by = by;
	item->key = key;
	item->handles = 1;
	memory_table_put(item);
	return item;
}

struct memory_item *memory_table_find(enum memory_key by, uint64_t key)
{
	struct memory_item *item = nr_chains ? *chain_of(by, key) : NULL;

	while (item && (item->key != key || item->by != by))
		item = item->next;
	return item;
}

static struct memory_item *unlink_item(struct memory_item **link)
{
	struct memory_item *item = *link;

	*link = item->next;
	item->next = NULL;
	nr_items--;
	return item;
}

struct memory_item *memory_table_take(enum memory_key by, uint64_t key)
{
	struct memory_item *item = memory_table_find(by, key), **link;

	if (!item)
		return NULL;
	for (link = chain_of(by, key); *link != item; link = &(*link)->next)
		;
	return unlink_item(link);
}

struct memory_item *memory_table_take_all(bool (*wanted)(const struct memory_item *item,
							 const void *arg), const void *arg)
{
	struct memory_item *all = NULL, *item;

	for (unsigned int i = 0; i < nr_chains; i++)
		for (struct memory_item **link = &chains[i]; *link;)
			if (wanted(*link, arg)) {
				item = unlink_item(link);
				item->next = all;
				all = item;
			} else {
				link = &(*link)->next;
			}
	return all;
}

struct memory_item *memory_table_search(bool (*wanted)(const struct memory_item *item,
						       const void *arg), const void *arg)
{
	for (unsigned int i = 0; i < nr_chains; i++)
		for (struct memory_item *item = chains[i]; item; item = item->next)
			if (wanted(item, arg))
				return item;
	return NULL;
}
