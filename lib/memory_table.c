// SPDX-License-Identifier: MIT
/*
 * See memory_table.h. Items are chained in a table that doubles; slabs are counted in a
 * tree of two levels by their number, where no entry moves. Must not know a quota.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include "memory_table.h"

/* ---------------------------------------------------------------------------- items */

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

/* Where there is no memory for more chains they become longer. */
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

static struct memory_item **link_of(enum memory_key by, uint64_t key)
{
	struct memory_item **link = nr_chains ? chain_of(by, key) : NULL;

	while (link && *link && ((*link)->key != key || (*link)->by != by))
		link = &(*link)->next;
	return link && *link ? link : NULL;
}

struct memory_item *memory_table_find(enum memory_key by, uint64_t key)
{
	struct memory_item **link = link_of(by, key);

	return link ? *link : NULL;
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
	struct memory_item **link = link_of(by, key);

	return link ? unlink_item(link) : NULL;
}

struct memory_item *memory_table_take_if(bool (*wanted)(const struct memory_item *item,
							const void *arg),
					 const void *arg, unsigned int *at)
{
	for (; *at < nr_chains; ++*at)
		for (struct memory_item **link = &chains[*at]; *link; link = &(*link)->next)
			if (wanted(*link, arg))
				return unlink_item(link);
	return NULL;
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

/* ---------------------------------------------------------------------------- slabs */

#define LEAF_BITS	14
#define ROOT_BITS	14	/* 49 bits of address: what GPUs of today have */

/* 0: no slab; else one more than the allocations in it. HIDDEN: a large one begins there. */
typedef _Atomic uint32_t slab_count;

#define HIDDEN	(1u << 31)

static _Atomic(slab_count *) leaves[1 << ROOT_BITS];

static slab_count *count_of(uint64_t address)
{
	uint64_t nr = address / MEMORY_SLAB;
	slab_count *leaf;

	if (nr >> (ROOT_BITS + LEAF_BITS))
		return NULL;
	leaf = atomic_load_explicit(&leaves[nr >> LEAF_BITS], memory_order_acquire);
	return leaf ? &leaf[nr & ((1u << LEAF_BITS) - 1)] : NULL;
}

bool memory_slab_enter(uint64_t address)
{
	slab_count *count = count_of(address);
	uint32_t nr = count ? atomic_load_explicit(count, memory_order_relaxed) : 0;

	while (nr & ~HIDDEN)
		if (atomic_compare_exchange_weak(count, &nr, nr + 1))
			return true;
	return false;
}

bool memory_slab_leave(uint64_t address, bool *empty)
{
	slab_count *count = count_of(address);
	uint32_t nr = count ? atomic_load_explicit(count, memory_order_relaxed) : 0;

	while ((nr & ~HIDDEN) > 1)
		if (atomic_compare_exchange_weak(count, &nr, nr - 1)) {
			*empty = (nr & ~HIDDEN) == 2;
			return true;
		}
	return false;
}

bool memory_slab_there(uint64_t address)
{
	slab_count *count = count_of(address);

	uint32_t nr = count ? atomic_load_explicit(count, memory_order_relaxed) : 0;

	return nr && !(nr & HIDDEN);
}

void memory_slab_hide(uint64_t address, bool hide)
{
	slab_count *count = count_of(address);

	if (count && hide)
		atomic_fetch_or(count, HIDDEN);
	else if (count)
		atomic_fetch_and(count, ~HIDDEN);
}

bool memory_slab_make(uint64_t address)
{
	uint64_t nr = address / MEMORY_SLAB;
	slab_count *leaf;

	if (nr >> (ROOT_BITS + LEAF_BITS))
		return false;
	if (!atomic_load_explicit(&leaves[nr >> LEAF_BITS], memory_order_relaxed)) {
		leaf = calloc(1u << LEAF_BITS, sizeof(*leaf));
		if (!leaf)
			return false;
		atomic_store_explicit(&leaves[nr >> LEAF_BITS], leaf, memory_order_release);
	}
	/* Whatever large one began there is gone. */
	atomic_store(count_of(address), 2);
	return true;
}

bool memory_slab_drop(uint64_t address, bool empty)
{
	slab_count *count = count_of(address);
	uint32_t nr = 1;

	if (!count)
		return false;
	return empty ? atomic_compare_exchange_strong(count, &nr, 0) :
		       atomic_fetch_and(count, HIDDEN) & ~HIDDEN;
}
