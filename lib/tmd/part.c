// SPDX-License-Identifier: MIT
/*
 * Chooses the parts of green contexts. See part.h. The contexts are in the order of their first
 * launches. The part of a context depends on the parts of earlier contexts. So when the limit
 * changes, all threads compute the same parts without a lock. When a context is destroyed, the
 * other contexts keep their parts, and get a new order from their next launches. If another
 * thread changes the table at the same time, two parts may overlap more than necessary. But every
 * part stays inside the limit.
 */
#include "lib/tmd/field.h"
#include "lib/tmd/part.h"

enum { FREE, TAKEN, THERE };	/* values of tmd_part.state; TAKEN: a thread is writing the entry */

#define CLUSTER_SMS 8	/* all GPUs with clusters support this size */

static struct tmd_allow words_read(const _Atomic uint64_t *from)
{
	struct tmd_allow r;

	for (int i = 0; i < WORDS64; i++)
		r.tmd_bits[i] = atomic_load_explicit(&from[i], memory_order_acquire);
	return r;
}

static void words_write(_Atomic uint64_t *to, const struct tmd_allow *from)
{
	for (int i = 0; i < WORDS64; i++)
		atomic_store_explicit(&to[i], from->tmd_bits[i], memory_order_release);
}

static bool allow_equal(const struct tmd_allow *a, const struct tmd_allow *b)
{
	return !memcmp(a, b, sizeof(*a));
}

static bool allow_meet(const struct tmd_allow *a, const struct tmd_allow *b)
{
	struct tmd_allow both = allow_and(a, b);

	return !allow_empty(&both);
}

/* ------------------------------------------------------------------------ who came */

static bool is_there(const struct tmd_part *part)
{
	return atomic_load_explicit(&part->state, memory_order_acquire) == THERE;
}

/* The driver left the TPCs @left to a context. Returns true if @part belongs to this context. */
static bool is_of(const struct tmd_map *map, const struct tmd_part *part,
		  const struct tmd_allow *left, bool spared)
{
	struct tmd_allow its = words_read(part->left);

	if (spared)
		its = allow_andnot(&its, &map->singles);
	return allow_equal(&its, left);
}

/*
 * Positions in the order are numbers that wrap around. Returns the distance from the position
 * @came to the position of @part.
 */
static int later(const struct tmd_part *part, unsigned int came)
{
	return (int)(atomic_load_explicit(&part->came, memory_order_relaxed) - came);
}

static unsigned int epoch_of(const atomic_uint *epoch)
{
	return atomic_load_explicit(epoch, memory_order_relaxed);
}

/* Moves @part to the end of the order. */
static void move_to_end(struct tmd_parts *parts, struct tmd_part *part)
{
	atomic_store(&part->came, atomic_fetch_add(&parts->nr_came, 1));
}

/* Writes @part for the context to which the driver left @left. This thread has taken @part. */
static void fill(struct tmd_parts *parts, struct tmd_part *part, const struct tmd_allow *left)
{
	static const struct tmd_allow none;

	words_write(part->limit, &none);
	words_write(part->left, left);
	atomic_store(&part->epoch, epoch_of(&parts->epoch));
	move_to_end(parts, part);
	atomic_store_explicit(&part->state, THERE, memory_order_release);
}

/*
 * Finds the entry of a context. A new context gets a free entry or the oldest entry. If another
 * thread has just taken that entry, returns NULL.
 */
static struct tmd_part *place_of(const struct tmd_map *map, const struct tmd_allow *left,
				 bool spared)
{
	struct tmd_part *oldest = &map->parts->part[0], *part;
	unsigned int state = FREE;

	for (part = map->parts->part; part < map->parts->part + TMD_PARTS; part++) {
		if (!is_there(part)) {
			if (!atomic_compare_exchange_strong(&part->state, &state, TAKEN))
				return NULL;
			fill(map->parts, part, left);
			return part;
		}
		if (is_of(map, part, left, spared))
			return part;
		if (later(oldest, atomic_load(&part->came)) > 0)
			oldest = part;
	}
	state = THERE;
	if (!atomic_compare_exchange_strong(&oldest->state, &state, TAKEN))
		return NULL;
	fill(map->parts, oldest, left);
	return oldest;
}

/* Lists the contexts in their order, from the first context to @last. */
static unsigned int in_order(struct tmd_parts *parts, struct tmd_part *last,
			     struct tmd_part **order)
{
	unsigned int came = atomic_load(&last->came), nr = 0, at;

	for (unsigned int n = 0; n < TMD_PARTS; n++) {
		struct tmd_part *part = &parts->part[n];

		if (part == last || !is_there(part) || later(part, came) > 0)
			continue;
		for (at = nr++; at && later(order[at - 1], atomic_load(&part->came)) > 0; at--)
			order[at] = order[at - 1];
		order[at] = part;
	}
	order[nr++] = last;
	return nr;
}

/* Clears the table. Afterwards, a context may get a different part of the same limit. */
static void forget(struct tmd_parts *parts)
{
	static const struct tmd_allow none;

	for (unsigned int n = 0; n < TMD_PARTS; n++) {
		words_write(parts->part[n].limit, &none);
		atomic_store_explicit(&parts->part[n].state, FREE, memory_order_release);
	}
}

void tmd_parts_show(struct tmd_parts *parts, unsigned int nr_tpcs)
{
	if (atomic_exchange(&parts->nr_shown, nr_tpcs) != nr_tpcs)
		forget(parts);
}

void tmd_parts_context_destroyed(struct tmd_parts *parts)
{
	atomic_fetch_add(&parts->epoch, 1);
}

/* ------------------------------------------------------------------ a part's TPCs */

/*
 * Moves @nr TPCs of @pool into @part. If a virtual GPC has enough TPCs for a cluster, the
 * function moves these TPCs together. Then it prefers TPCs that are useless for clusters. So
 * other contexts find room for clusters.
 */
static void pick(const struct tmd_map *map, struct tmd_allow *part, struct tmd_allow pool,
		 unsigned int nr)
{
	unsigned int unit = map->sms_per_tpc ? CLUSTER_SMS / map->sms_per_tpc : CLUSTER_SMS;

	pool = allow_andnot(&pool, part);
	while (nr && !allow_empty(&pool)) {
		struct tmd_allow best = pool;
		unsigned int take = nr, fewest = ~0u;

		for (unsigned int v = 0; v < map->nr_vgpcs; v++) {
			struct tmd_allow in = allow_and(&pool, &map->vgpc[v]);
			unsigned int has = allow_count(&in);
			unsigned int over = has % unit ? has % unit : unit;

			if (has && nr >= unit && has >= unit) {
				best = in;
				take = unit;
				break;
			}
			if (has && over < fewest) {
				best = in;
				fewest = over;
				take = over < nr ? over : nr;
			}
		}
		allow_add_lowest(part, &best, take);
		pool = allow_andnot(&pool, part);
		nr -= take;
	}
}

/*
 * The TPCs @left are a fraction of the GPU, and the context gets the same fraction of @limit.
 * Returns this number of TPCs, rounded down. The number is at least 1.
 */
static unsigned int share(const struct tmd_map *map, const struct tmd_allow *limit,
			  const struct tmd_allow *left)
{
	unsigned int all = atomic_load_explicit(&map->parts->nr_shown, memory_order_relaxed);
	unsigned int has = allow_count(limit), nr;

	nr = allow_count(left) * has / (all ? all : map->nr_tpcs);
	return nr > has ? has : nr ? nr : 1;
}

/*
 * Computes the part of the context to which the driver left @left. There are @nr earlier
 * contexts. The array @before has the TPCs that the driver left to the earlier contexts. The
 * array @its has the parts of these contexts. If the driver's TPCs of two contexts overlap, the
 * parts may overlap too. Otherwise the overlap of the parts is as small as possible. The function
 * first avoids overlaps with the latest contexts.
 */
static struct tmd_allow choose(const struct tmd_map *map, const struct tmd_allow *limit,
			       const struct tmd_allow *left, const struct tmd_allow *before,
			       const struct tmd_allow *its, unsigned int nr)
{
	unsigned int want = share(map, limit, left);
	struct tmd_allow pool = *limit, common = { { 0 } }, part = { { 0 } };

	for (unsigned int n = nr; n--; ) {
		struct tmd_allow rest = allow_andnot(&pool, &its[n]);

		if (allow_meet(&before[n], left)) {
			for (int i = 0; i < WORDS64; i++)
				common.tmd_bits[i] |= its[n].tmd_bits[i];
		} else if (allow_count(&rest) >= want) {
			pool = rest;
		} else {
			pick(map, &part, rest, want);
			break;
		}
	}
	common = allow_and(&common, &pool);
	for (int i = 0; i < 2; i++) {
		unsigned int has = allow_count(&part);

		pick(map, &part, i ? pool : common, want > has ? want - has : 0);
	}
	return part;
}

/* ------------------------------------------------------------------------ answers */

static bool answer_read(const struct tmd_part *part, const struct tmd_allow *limit,
			struct tmd_allow *answer)
{
	unsigned int version = atomic_load_explicit(&part->version, memory_order_acquire);
	struct tmd_allow of = words_read(part->limit);

	*answer = words_read(part->part);
	return !(version & 1) && allow_equal(&of, limit) &&
	       atomic_load_explicit(&part->version, memory_order_relaxed) == version;
}

/*
 * Stores @answer, which is the part for @limit. If another thread is also storing an answer, does
 * nothing.
 */
static void answer_write(struct tmd_part *part, const struct tmd_allow *limit,
			 const struct tmd_allow *answer)
{
	unsigned int version = atomic_load_explicit(&part->version, memory_order_relaxed);

	if (version & 1 || !atomic_compare_exchange_strong(&part->version, &version, version + 1))
		return;
	words_write(part->limit, limit);
	words_write(part->part, answer);
	atomic_store_explicit(&part->version, version + 2, memory_order_release);
}

static bool inside(const struct tmd_allow *a, const struct tmd_allow *b)
{
	struct tmd_allow beyond = allow_andnot(a, b);

	return allow_empty(&beyond);
}

/*
 * Returns true if the stored answer of @part is still right. It may overlap the answer of another
 * context of this epoch if the driver's TPCs of the two contexts overlap. No other overlap is
 * allowed.
 */
static bool keeps(const struct tmd_parts *parts, const struct tmd_part *part, unsigned int epoch,
		  const struct tmd_allow *limit)
{
	struct tmd_allow left = words_read(part->left), answer, others, its;
	const struct tmd_part *other;

	if (!answer_read(part, limit, &answer))
		return false;
	for (other = parts->part; other < parts->part + TMD_PARTS; other++) {
		if (other == part || !is_there(other) || epoch_of(&other->epoch) != epoch)
			continue;
		others = words_read(other->left);
		if (!answer_read(other, limit, &its) ||
		    (!allow_meet(&left, &others) && allow_meet(&answer, &its)) ||
		    (inside(&left, &others) && !inside(&answer, &its)) ||
		    (inside(&others, &left) && !inside(&its, &answer)))
			return false;
	}
	return true;
}

/*
 * Handles the first launch of a context in @epoch. The context has the entry @part. If the stored
 * answer is dropped, the context moves to the end of the order again. Then this context is after
 * all contexts that kept their answers.
 */
static __attribute__((noinline)) void come_anew(struct tmd_parts *parts, struct tmd_part *part,
						unsigned int epoch, const struct tmd_allow *limit)
{
	static const struct tmd_allow none;

	if (atomic_exchange(&part->epoch, epoch) == epoch)
		return;
	move_to_end(parts, part);
	if (keeps(parts, part, epoch, limit))
		return;
	answer_write(part, &none, &none);
	move_to_end(parts, part);
}

struct tmd_allow tmd_part(const struct tmd_map *map, const struct tmd_allow *limit,
			  const struct tmd_allow *left, bool spared)
{
	struct tmd_allow before[TMD_PARTS], its[TMD_PARTS];
	struct tmd_part *place = place_of(map, left, spared), *order[TMD_PARTS];
	unsigned int nr, epoch = epoch_of(&map->parts->epoch);

	if (!place)
		return choose(map, limit, left, NULL, NULL, 0);
	if (__builtin_expect(epoch_of(&place->epoch) != epoch, 0))
		come_anew(map->parts, place, epoch, limit);
	if (answer_read(place, limit, &its[0]))
		return its[0];
	nr = in_order(map->parts, place, order);
	for (unsigned int n = 0; n < nr; n++) {
		before[n] = words_read(order[n]->left);
		if (!answer_read(order[n], limit, &its[n])) {
			its[n] = choose(map, limit, &before[n], before, its, n);
			answer_write(order[n], limit, &its[n]);
		}
	}
	return its[nr - 1];
}
