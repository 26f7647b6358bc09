// SPDX-License-Identifier: MIT
/*
 * Whether all fit: a search over kinds of GPCs that remembers every state it has decided.
 * Must not know which GPC is which, nor what is best.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "plan_price.h"
#include "plan_whole.h"

#define NODE_STEPS	30		/* what a node costs, in steps of the innermost loop */
#define PRICED_AT	1		/* turns: what is easy is done before */
#define PRICE_STEPS	50000
#define FIRST_TURN	(100 * NODE_STEPS)
#define NR_TURNS	20
#define NR_KNOWN	32768		/* a power of two */
#define SUM_WORDS	(GPUPART_MAX_TPCS / 64 + 1)
#define NOBODY		PLAN_MAX_TENANTS

/* Bit s: a sum of s TPCs can be had. */
struct sums {
	uint64_t has[SUM_WORDS];
};

/* Of all GPCs, and of such that one of them holds the home. */
struct reach {
	struct sums any, homely;
};

/* A state that was decided. */
struct known {
	uint32_t epoch;
	uint16_t tenants, exact;	/* what the one with an exact sum wants; 0 nobody */
	uint8_t left[PLAN_MAX_GPCS];
};

struct plan_whole {
	const struct plan_ask *ask;
	unsigned int nr_whole, steps, max_steps;
	uint32_t epoch;
	unsigned int kind_of[PLAN_MAX_GPCS], words, first_level, levels;
	struct plan_market m;			/* nothing taken */
	uint8_t left[PLAN_MAX_GPCS];		/* of each kind */
	unsigned int whole_left, broken;	/* TPCs: in these, and in others */
	struct plan_room room;			/* both */
	unsigned int nr_shares, shares_nr;
	struct plan_need shares[PLAN_MAX_TENANTS];
	unsigned int key_of[PLAN_MAX_TENANTS][2];	/* without its home, with it */
	unsigned int exact_tenant, exact_sum;
	bool exact_home;
	/* Of a search that takes long, another order is tried. */
	unsigned int turn, turn_end;		/* steps */
	/* The last way that was found. */
	uint32_t has_way;
	uint8_t way[PLAN_MAX_TENANTS][PLAN_MAX_GPCS];
	struct plan_prices prices;
	struct known known[NR_KNOWN];
	uint8_t verdict[NR_KNOWN];	/* whether it fits */
};

/* A tenant's demand at a node. */
struct want {
	unsigned int kinds, gpcs, tpcs;	/* there are for it */
	unsigned int min, max, key;
	unsigned int least;		/* that GPCs make */
	struct sums sums;		/* that it may have */
};

/* A node: what all tenants want, and who is next. */
struct node {
	uint32_t tenants;
	unsigned int next, most;	/* the largest sum that leaves the others their least */
	struct want wants[PLAN_MAX_TENANTS];
};

/* The sets of one tenant, while they are gone through. */
struct cover {
	const struct want *want;
	const struct plan_key *key;
	uint32_t others;
	unsigned int sum;
	uint8_t taken[PLAN_MAX_GPCS];
	struct reach from[PLAN_MAX_GPCS + 1];
};

/* ------------------------------------------------------------------- sums */

static bool sums_have(const struct sums *sums, unsigned int sum)
{
	return sum < 64 * SUM_WORDS && sums->has[sum / 64] >> sum % 64 & 1;
}

/* Adds to @sums those of @from with @nr more; both may be the same. */
static void sums_add(struct sums *sums, const struct sums *from, unsigned int nr,
		     unsigned int nr_words)
{
	int words = nr / 64;
	unsigned int bits = nr % 64;

	for (int i = (int)nr_words - 1; i >= words; i--) {
		uint64_t word = from->has[i - words] << bits;

		if (bits && i > words)
			word |= from->has[i - words - 1] >> (64 - bits);
		sums->has[i] |= word;
	}
}

static bool holds(const struct plan_whole *w, const struct plan_key *key, unsigned int kind)
{
	return w->m.kinds[kind].nr_main >= key->home;
}

static bool may_take(const struct plan_whole *w, const struct plan_key *key, unsigned int kind)
{
	return key->ugpu == PLAN_ANY_UGPU || key->ugpu == w->m.kinds[kind].ugpu;
}

/* Adds what one more kind makes possible. Without a home every set is homely. */
static void reach_kind(const struct plan_whole *w, const struct plan_key *key, unsigned int kind,
		       struct reach *reach)
{
	unsigned int nr = w->m.kinds[kind].nr;

	if (!may_take(w, key, kind))
		return;
	for (unsigned int i = 0; i < w->left[kind]; i++) {
		if (key->home > 1) {
			sums_add(&reach->homely, &reach->homely, nr, w->words);
			if (holds(w, key, kind))
				sums_add(&reach->homely, &reach->any, nr, w->words);
		}
		sums_add(&reach->any, &reach->any, nr, w->words);
	}
}

static const struct sums *reach_sums(const struct plan_key *key, const struct reach *reach)
{
	return key->home > 1 ? &reach->homely : &reach->any;
}

/* ------------------------------------------------------- what cannot be met */

/* What of @sums is from @min to @max; the lowest of it, 0 none. */
static unsigned int cut_sums(const struct plan_whole *w, struct sums *to, const struct sums *sums,
			     unsigned int min, unsigned int max)
{
	unsigned int least = 0;

	for (unsigned int i = 0; i < w->words; i++) {
		uint64_t word = sums->has[i];

		if (min >= 64 * i + 64 || max < 64 * i)
			word = 0;
		if (min > 64 * i && min < 64 * i + 64)
			word &= ~0ull << min % 64;
		if (max >= 64 * i && max < 64 * i + 63)
			word &= (2ull << max % 64) - 1;
		to->has[i] = word;
		if (word && !least)
			least = 64 * i + __builtin_ctzll(word);
	}
	return least;
}

static unsigned int count_sums(const struct plan_whole *w, const struct sums *sums,
			       unsigned int most)
{
	struct sums cut;
	unsigned int nr = 0;

	cut_sums(w, &cut, sums, 0, most);
	for (unsigned int i = 0; i < w->words; i++)
		nr += __builtin_popcountll(cut.has[i]);
	return nr;
}

static void count_kinds(const struct plan_whole *w, struct want *want)
{
	want->kinds = want->gpcs = want->tpcs = 0;
	for (unsigned int kind = 0; kind < w->m.nr_kinds; kind++)
		if (w->left[kind] && may_take(w, &w->m.keys[want->key], kind) &&
		    w->m.kinds[kind].nr <= want->max) {
			want->kinds++;
			want->gpcs += w->left[kind];
			want->tpcs += w->left[kind] * w->m.kinds[kind].nr;
		}
}

/* About how many sets it has, for each of its sums. */
static unsigned int guess_sets(const struct want *want)
{
	unsigned int size = (want->least * want->gpcs + want->tpcs / 2) / (want->tpcs + 1);
	uint64_t sets = want->kinds;

	for (unsigned int i = 1; i < size && i < want->kinds && sets < 1 << 20; i++)
		sets = sets * (want->kinds - i) / (i + 1);
	return sets < 1 << 20 ? sets + 1 : 1 << 20;
}

/* Each tenant's own view. False: one of them cannot have anything that it wants. */
static bool find_wants(const struct plan_whole *w, struct node *node)
{
	struct reach reach[2 * PLAN_MAX_TENANTS];
	uint32_t there = 0;

	for (uint32_t left = node->tenants; left; left &= left - 1) {
		unsigned int i = __builtin_ctz(left);
		const struct plan_tenant *t = &w->ask->tenants[i];
		struct want *want = &node->wants[i];
		bool exact = i == w->exact_tenant;

		want->min = exact ? w->exact_sum : t->min;
		want->max = exact ? w->exact_sum : t->max;
		/* What has more than that can do without a GPC. */
		if (want->max > want->min + w->ask->gpu.largest)
			want->max = want->min + w->ask->gpu.largest;
		want->key = w->key_of[i][!exact || w->exact_home];
		if (!(there >> want->key & 1)) {
			there |= 1u << want->key;
			reach[want->key] = (struct reach){ { { 1 } }, { { 0 } } };
			for (unsigned int kind = 0; kind < w->m.nr_kinds; kind++)
				reach_kind(w, &w->m.keys[want->key], kind, &reach[want->key]);
		}
		want->least = cut_sums(w, &want->sums, reach_sums(&w->m.keys[want->key],
								  &reach[want->key]),
				       want->min, want->max);
		if (!want->least)
			return false;
		count_kinds(w, want);
	}
	return true;
}

/* From the larger homes down, each needs a GPC of its own that holds it. */
static bool homes_have_gpcs(const struct plan_whole *w, const struct node *node)
{
	for (unsigned int home = 2; home <= GPUPART_MAX_TPCS; home *= 2) {
		unsigned int wanted = 0, there = 0;

		for (uint32_t left = node->tenants; left; left &= left - 1)
			wanted += w->m.keys[node->wants[__builtin_ctz(left)].key].home >= home;
		if (!wanted)
			return true;
		for (unsigned int kind = 0; kind < w->m.nr_kinds; kind++)
			there += w->m.kinds[kind].nr_main >= home ? w->left[kind] : 0;
		if (wanted > there)
			return false;
	}
	return true;
}

/* Whatever, but always the same. */
static unsigned int shuffle(const struct plan_whole *w, unsigned int what)
{
	uint32_t hash = (w->turn * 64 + what) * 2654435761u;

	hash = (hash ^ hash >> 15) * 2246822519u;
	return w->turn ? hash >> 28 : 0;
}

/* The one with the fewest sums to choose from is next. */
static void find_next(const struct plan_whole *w, struct node *node, const struct plan_need *needs,
		      unsigned int nr_needs, unsigned int spare)
{
	uint64_t fewest = ~0ull, sets;
	struct plan_room room = w->room;

	for (unsigned int i = 0; i < nr_needs; i++)
		if (needs[i].ugpu != PLAN_ANYWHERE)
			room.nr[needs[i].ugpu] -= needs[i].nr;
	for (uint32_t left = node->tenants; left; left &= left - 1) {
		unsigned int i = __builtin_ctz(left), most = spare;
		const struct want *want = &node->wants[i];
		unsigned int ugpu = w->m.keys[want->key].ugpu;

		if (ugpu != PLAN_ANY_UGPU && room.nr[ugpu] < most)
			most = room.nr[ugpu];
		most += want->least;
		sets = (uint64_t)count_sums(w, &want->sums, most) * guess_sets(want) *
		       (16 + shuffle(w, 32 + i));
		if (sets < fewest || (sets == fewest && want->min > node->wants[node->next].min)) {
			fewest = sets;
			node->next = i;
			node->most = most;
		}
	}
}

/* False only where not all can have their least. */
static bool look(const struct plan_whole *w, struct node *node)
{
	struct plan_need needs[PLAN_MAX_TENANTS];
	unsigned int nr = w->nr_shares, whole = 0, spare, shares;

	if (!find_wants(w, node))
		return false;
	memcpy(needs, w->shares, nr * sizeof(*needs));
	for (uint32_t left = node->tenants; left; left &= left - 1) {
		const struct want *want = &node->wants[__builtin_ctz(left)];
		unsigned int ugpu = w->m.keys[want->key].ugpu;

		needs[nr++] = (struct plan_need){ want->least, 0, ugpu == PLAN_ANY_UGPU ?
						  PLAN_ANYWHERE : (int)ugpu };
		whole += want->least;
	}
	/* Who shares has first what nobody can have whole. */
	shares = w->shares_nr > w->broken ? w->shares_nr - w->broken : 0;
	if (whole + shares > w->whole_left || !plan_fits(&w->room, needs, nr) ||
	    !homes_have_gpcs(w, node))
		return false;
	spare = w->whole_left - whole - shares;
	find_next(w, node, needs, nr, spare);
	return true;
}

/* ------------------------------------------------------------ what is known */

static unsigned int known_place(const struct plan_whole *w, uint32_t tenants, struct known *key)
{
	bool exact = w->exact_tenant < NOBODY && tenants >> w->exact_tenant & 1;
	uint64_t hash, part;

	key->epoch = w->epoch;
	key->tenants = tenants;
	key->exact = exact ? 0x8000 | w->exact_home << 13 | w->exact_tenant << 9 | w->exact_sum : 0;
	memcpy(key->left, w->left, sizeof(key->left));
	hash = ((uint64_t)key->epoch << 32 | (uint32_t)key->tenants << 16 | key->exact) *
	       0x9e3779b97f4a7c15ull;
	for (unsigned int i = 0; i < sizeof(key->left); i += sizeof(part)) {
		memcpy(&part, key->left + i, sizeof(part));
		hash = (hash ^ hash >> 29 ^ part) * 0xbf58476d1ce4e5b9ull;
	}
	return (hash ^ hash >> 32) % NR_KNOWN;
}

static void spend_kind(struct plan_whole *w, unsigned int kind, int nr)
{
	const struct plan_kind *k = &w->m.kinds[kind];

	w->left[kind] -= nr;
	w->whole_left -= nr * (int)k->nr;
	w->room.nr[k->ugpu] -= nr * (int)k->nr;
	for (unsigned int level = 1; level <= w->levels; level++)
		w->room.places[level][k->ugpu] -= nr * (int)(k->nr_main >> level);
}

/* Whether the last way that was found still is one. */
static bool way_holds(struct plan_whole *w, uint32_t tenants)
{
	uint8_t used[PLAN_MAX_GPCS] = { 0 };
	bool fits;

	/* Who wants an exact sum now did not, then. */
	if (tenants & ~w->has_way)
		return false;
	for (uint32_t left = tenants; left; left &= left - 1)
		for (unsigned int kind = 0; kind < PLAN_MAX_GPCS; kind++)
			used[kind] += w->way[__builtin_ctz(left)][kind];
	for (unsigned int kind = 0; kind < w->m.nr_kinds; kind++)
		if (used[kind] > w->left[kind])
			return false;
	for (unsigned int kind = 0; kind < w->m.nr_kinds; kind++)
		if (used[kind])
			spend_kind(w, kind, used[kind]);
	fits = plan_fits(&w->room, w->shares, w->nr_shares);
	for (unsigned int kind = 0; kind < w->m.nr_kinds; kind++)
		if (used[kind])
			spend_kind(w, kind, -(int)used[kind]);
	return fits;
}

/* ------------------------------------------------------------------ prices */

/* Prices for what is left now; as long as the question is the same. */
static void find_prices(struct plan_whole *w, uint32_t tenants)
{
	struct plan_market *m = &w->m;

	memcpy(m->there, w->left, sizeof(w->left));
	m->nr_tenants = w->nr_whole;
	m->end = 64 * w->words <= GPUPART_MAX_TPCS ? 64 * w->words : GPUPART_MAX_TPCS + 1;
	for (unsigned int i = 0; i < w->nr_whole; i++) {
		const struct plan_tenant *t = &w->ask->tenants[i];
		bool exact = i == w->exact_tenant;

		m->min[i] = !(tenants >> i & 1) ? 0 : exact ? w->exact_sum : t->min;
		m->max[i] = exact ? w->exact_sum : t->max;
		m->key[i] = w->key_of[i][!exact || w->exact_home];
	}
	plan_prices_find(m, &w->prices);
	w->steps += PRICE_STEPS;
}

/* ------------------------------------------------------------- the search */

static int fit(struct plan_whole *w, uint32_t tenants);

/* Whether it could do without one of its GPCs. */
static bool has_too_many(const struct plan_whole *w, const struct cover *c)
{
	unsigned int homes = 0;

	for (unsigned int kind = 0; kind < w->m.nr_kinds; kind++)
		homes += holds(w, c->key, kind) ? c->taken[kind] : 0;
	for (unsigned int kind = 0; kind < w->m.nr_kinds; kind++)
		if (c->taken[kind] && c->sum - w->m.kinds[kind].nr >= c->want->min &&
		    homes > holds(w, c->key, kind))
			return true;
	return false;
}

/* Goes through the sets of @left more TPCs of GPCs of @kind and later ones. */
static int cover(struct plan_whole *w, struct cover *c, unsigned int kind, unsigned int left,
		 bool home)
{
	unsigned int nr, most;
	int err;

	if (!plan_whole_spend(w, 1))
		return -E2BIG;
	if (!left)
		return home || has_too_many(w, c) ? -ENOSPC : fit(w, c->others);
	if (!sums_have(home ? &c->from[kind].homely : &c->from[kind].any, left))
		return -ENOSPC;
	nr = w->m.kinds[kind].nr;
	most = may_take(w, c->key, kind) ? w->left[kind] : 0;
	if (most > left / nr)
		most = left / nr;
	for (unsigned int i = 0; i <= most; i++) {
		unsigned int n = shuffle(w, kind) & 1 ? i : most - i;

		c->taken[kind] = n;
		spend_kind(w, kind, n);
		err = cover(w, c, kind + 1, left - n * nr,
			    home && !(n && holds(w, c->key, kind)));
		spend_kind(w, kind, -(int)n);
		if (err != -ENOSPC)
			return err;
	}
	c->taken[kind] = 0;
	return -ENOSPC;
}

/* The next tenant's sets, those that leave the most first. */
static int branch(struct plan_whole *w, const struct node *node)
{
	const struct want *want = &node->wants[node->next];
	struct cover c = { .want = want, .key = &w->m.keys[want->key],
			   .others = node->tenants & ~(1u << node->next) };
	int err = -ENOSPC;

	c.from[w->m.nr_kinds] = (struct reach){ { { 1 } }, { { 0 } } };
	for (unsigned int kind = w->m.nr_kinds; kind-- > 0;) {
		c.from[kind] = c.from[kind + 1];
		reach_kind(w, c.key, kind, &c.from[kind]);
	}
	for (c.sum = want->least; c.sum <= node->most && err == -ENOSPC; c.sum++)
		if (sums_have(&want->sums, c.sum))
			err = cover(w, &c, 0, c.sum, c.key->home > 1);
	if (!err) {
		memcpy(w->way[node->next], c.taken, sizeof(c.taken));
		w->has_way |= 1u << node->next;
	}
	return err;
}

static int fit(struct plan_whole *w, uint32_t tenants)
{
	struct node node = { .tenants = tenants & ((1u << w->nr_whole) - 1), .next = NOBODY };
	struct known key;
	unsigned int place;
	int err;

	if (!node.tenants)
		return plan_fits(&w->room, w->shares, w->nr_shares) ? 0 : -ENOSPC;
	place = known_place(w, node.tenants, &key);
	if (!memcmp(&w->known[place], &key, sizeof(key)))
		return w->verdict[place] ? 0 : -ENOSPC;
	if (!plan_whole_spend(w, NODE_STEPS))
		return -E2BIG;
	if (w->steps > w->turn_end)
		return -EAGAIN;
	if (way_holds(w, node.tenants))
		err = 0;
	else if (w->prices.nr && !plan_prices_allow(&w->m, &w->prices, w->left, node.tenants))
		err = -ENOSPC;
	else
		err = look(w, &node) ? branch(w, &node) : -ENOSPC;
	if (err && err != -ENOSPC)
		return err;
	w->known[place] = key;
	w->verdict[place] = !err;
	return err;
}

/* What is known to be no way stays known, so that the turns before are not for nothing. */
int plan_whole_fit(struct plan_whole *w, uint32_t tenants)
{
	unsigned int steps = FIRST_TURN;
	int err;

	w->prices.nr = 0;
	for (w->turn = 0;; w->turn++) {
		if (w->turn == PRICED_AT)
			find_prices(w, tenants & ((1u << w->nr_whole) - 1));
		w->turn_end = w->turn < NR_TURNS ? w->steps + steps : ~0u;
		err = fit(w, tenants);
		if (err != -EAGAIN)
			return err;
		steps += steps / 4;
	}
}

int plan_whole_fit_exactly(struct plan_whole *w, uint32_t tenants, unsigned int tenant,
			   unsigned int sum, bool home)
{
	unsigned int words = w->words;
	int err;

	w->exact_tenant = tenant;
	w->exact_sum = sum;
	w->exact_home = home;
	if (w->words < sum / 64 + 1)
		w->words = sum / 64 + 1;
	w->has_way &= ~(1u << tenant);
	err = plan_whole_fit(w, tenants);
	w->has_way &= ~(1u << tenant);
	w->words = words;
	w->exact_tenant = NOBODY;
	return err;
}

bool plan_whole_may(struct plan_whole *w, uint32_t tenants)
{
	struct node node = { .tenants = tenants & ((1u << w->nr_whole) - 1), .next = NOBODY };

	w->steps += NODE_STEPS;
	return look(w, &node);
}

/* ---------------------------------------------------------------- set up */

/* What of a GPC's largest virtual GPC any of these tenants can tell. */
static unsigned int tell_main(const struct plan_whole *w, uint32_t tenants, unsigned int nr_main)
{
	unsigned int whole = 1;

	for (unsigned int i = 0; i < w->nr_whole; i++)
		while (tenants >> i & 1 && whole < w->ask->tenants[i].home && 2 * whole <= nr_main)
			whole *= 2;
	/* Who has room for a home has it for two of half the size. */
	nr_main = w->levels ? nr_main >> w->first_level << w->first_level : 0;
	return nr_main > whole ? nr_main : whole;
}

static unsigned int key_at(struct plan_whole *w, unsigned int ugpu, unsigned int home)
{
	unsigned int i = 0;

	while (i < w->m.nr_keys && (w->m.keys[i].ugpu != ugpu || w->m.keys[i].home != home))
		i++;
	if (i == w->m.nr_keys)
		w->m.keys[w->m.nr_keys++] = (struct plan_key){ ugpu, home };
	return i;
}

/* Tenants' needs; @map has the uGPUs somebody is bound to, one for each, and 0 for others. */
static void bind_tenants(struct plan_whole *w, const int *ugpu, uint32_t tenants,
			 const unsigned int *map)
{
	w->nr_shares = w->shares_nr = w->m.nr_keys = w->levels = 0;
	w->words = 1;
	w->first_level = PLAN_MAX_LEVELS;
	for (unsigned int i = 0; i < w->ask->nr; i++) {
		const struct plan_tenant *t = &w->ask->tenants[i];
		unsigned int at = ugpu[i] == PLAN_ANYWHERE ? PLAN_ANY_UGPU : map[ugpu[i]];
		unsigned int most = t->min + w->ask->gpu.largest;

		if (!(tenants >> i & 1))
			continue;
		if (i < w->nr_whole) {
			w->key_of[i][0] = key_at(w, at, 1);
			w->key_of[i][1] = key_at(w, at, t->home);
			if (most >= 64 * w->words)
				w->words = most / 64 + 1;
			continue;
		}
		w->shares[w->nr_shares++] = (struct plan_need){
			t->min, t->home > 1 ? t->home : 0,
			at == PLAN_ANY_UGPU ? PLAN_ANYWHERE : (int)at };
		w->shares_nr += t->min;
		if (t->home > 1 && t->home < 1u << w->first_level)
			w->first_level = __builtin_ctz(t->home);
		while (t->home >> (w->levels + 1))
			w->levels++;
	}
	if (w->words > SUM_WORDS)
		w->words = SUM_WORDS;
}

static unsigned int find_kind(struct plan_whole *w, const struct plan_kind *kind)
{
	unsigned int at = 0;

	while (at < w->m.nr_kinds && memcmp(&w->m.kinds[at], kind, sizeof(*kind)))
		at++;
	return at;
}

/* The larger ones first. */
static void add_kind(struct plan_whole *w, const struct plan_kind *kind)
{
	unsigned int at = w->m.nr_kinds++;

	for (; at > 0 && w->m.kinds[at - 1].nr < kind->nr; at--)
		w->m.kinds[at] = w->m.kinds[at - 1];
	w->m.kinds[at] = *kind;
}

static void bind_gpcs(struct plan_whole *w, uint32_t tenants, const unsigned int *map, int only)
{
	const struct plan_gpu *gpu = &w->ask->gpu;
	struct plan_kind kinds[PLAN_MAX_GPCS];

	w->m.nr_kinds = w->whole_left = w->broken = 0;
	memset(w->left, 0, sizeof(w->left));
	for (unsigned int turn = 0; turn < 2; turn++)
		for (unsigned int gpc = 0; gpc < gpu->nr_gpcs; gpc++) {
			const struct plan_gpc *g = &gpu->gpcs[gpc];
			unsigned int at;

			if (only != PLAN_ANYWHERE && only != (int)g->ugpu)
				continue;
			kinds[gpc] = (struct plan_kind){ g->nr, tell_main(w, tenants, g->nr_main),
						    map[g->ugpu] };
			at = find_kind(w, &kinds[gpc]);
			if (!turn && g->whole && g->nr && at == w->m.nr_kinds)
				add_kind(w, &kinds[gpc]);
			if (!turn)
				continue;
			plan_room_add(&w->room, map[g->ugpu], g->nr, g->nr_main);
			w->kind_of[gpc] = at;
			if (g->whole && g->nr) {
				w->left[at]++;
				w->whole_left += g->nr;
			} else {
				w->broken += g->nr;
			}
		}
}

/* Who shares has first what nobody can have whole. */
static void bind_shares(struct plan_whole *w)
{
	struct plan_market *m = &w->m;
	unsigned int broken[PLAN_MAX_UGPUS], spare = 0;

	m->nr_ugpus = w->room.nr_ugpus;
	m->shares = 0;
	memset(m->shares_at, 0, sizeof(m->shares_at));
	memcpy(broken, w->room.nr, sizeof(broken));
	for (unsigned int kind = 0; kind < m->nr_kinds; kind++)
		broken[m->kinds[kind].ugpu] -= w->left[kind] * m->kinds[kind].nr;
	for (unsigned int i = 0; i < w->nr_shares; i++)
		*(w->shares[i].ugpu == PLAN_ANYWHERE ? &m->shares :
		  &m->shares_at[w->shares[i].ugpu]) += w->shares[i].nr;
	for (unsigned int u = 0; u < m->nr_ugpus; u++) {
		unsigned int nr = m->shares_at[u] < broken[u] ? m->shares_at[u] : broken[u];

		m->shares_at[u] -= nr;
		spare += broken[u] - nr;
	}
	m->shares -= m->shares < spare ? m->shares : spare;
}

void plan_whole_bind(struct plan_whole *w, const int *ugpu, uint32_t tenants, int only)
{
	unsigned int map[PLAN_MAX_UGPUS] = { 0 }, nr = 1;

	for (unsigned int i = 0; i < w->ask->nr; i++)
		if (tenants >> i & 1 && ugpu[i] != PLAN_ANYWHERE && !map[ugpu[i]])
			map[ugpu[i]] = nr++;
	plan_room_clear(&w->room, nr);
	bind_tenants(w, ugpu, tenants, map);
	bind_gpcs(w, tenants, map, only);
	bind_shares(w);
	w->exact_tenant = NOBODY;
	w->has_way = 0;
	w->prices.nr = 0;
	w->epoch++;
	w->steps += NODE_STEPS;
}

void plan_whole_take(struct plan_whole *w, unsigned int gpc)
{
	spend_kind(w, w->kind_of[gpc], 1);
}

void plan_whole_put(struct plan_whole *w, unsigned int gpc)
{
	spend_kind(w, w->kind_of[gpc], -1);
}

bool plan_whole_spend(struct plan_whole *w, unsigned int steps)
{
	w->steps += steps;
	return w->steps <= w->max_steps;
}

unsigned int plan_whole_steps(const struct plan_whole *w)
{
	return w->steps;
}

void plan_whole_start(struct plan_whole *w, const struct plan_ask *ask, unsigned int max_steps)
{
	w->ask = ask;
	w->max_steps = max_steps;
	w->steps = w->nr_whole = 0;
	for (unsigned int i = 0; i < ask->nr; i++)
		w->nr_whole += ask->tenants[i].whole;
}

struct plan_whole *plan_whole_new(void)
{
	return calloc(1, sizeof(struct plan_whole));
}

void plan_whole_free(struct plan_whole *w)
{
	free(w);
}
