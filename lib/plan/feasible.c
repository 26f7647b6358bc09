// SPDX-License-Identifier: MIT
/*
 * Whether all fit: a search over kinds of GPCs that remembers every state it has decided, has
 * states that take long priced, and leaves questions to a table where that is the cheaper way.
 * Must not know which GPC is which, nor what is best.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/plan/feasible.h"
#include "lib/plan/price.h"
#include "lib/plan/table.h"

#define NODE_STEPS	30		/* what a node costs, in steps of the innermost loop */
#define NR_TURNS	20
#define NR_KNOWN	16384		/* a power of two */
#define SUM_WORDS	(GPUPART_MAX_TPCS / 64 + 1)
#define FIRST_PRICES	30		/* turns a state is priced for, and more the next time */
#define MOST_PRICES	120
#define NR_VIEWS	32		/* a power of two */

/* When a closer look pays, in steps. Defined already: at other times, the answers are the same. */
#ifndef PRICED_AT
#define FIRST_TURN	(100 * NODE_STEPS)
#define PRICED_AT	3000		/* in a state, before it is priced */
#define TABLE_AT	20000		/* in searches that were given up, before a table is one */
#define TABLE_SHARE	2		/* of what it costs: one in so many must have been spent */
#define ALL_AT		100000		/* in one question, before one of all tenants is */
#endif

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
	uint64_t ugpus;			/* where */
	uint8_t left[PLAN_MAX_GPCS];
};

struct plan_whole {
	const struct plan_ask *ask;
	struct plan_kinds kinds;
	struct plan_question q;
	unsigned int steps, max_steps;		/* here, without prices and table */
	uint32_t epoch;
	int only;				/* while it is of what is in one uGPU alone */
	unsigned int words;			/* of sums that are of interest */
	uint8_t left[PLAN_MAX_GPCS];		/* of each kind */
	unsigned int whole_left, broken;	/* TPCs: in these, and in others */
	struct plan_room room;			/* both */
	unsigned int shares_nr;
	/* Of a search that takes long, another order is tried. */
	unsigned int turn, turn_end;		/* steps */
	unsigned int patience;			/* steps until a state is priced, beside its own */
	unsigned int hard, hard_before;		/* steps in searches of more than a turn */
	enum { TABLE_UNKNOWN, TABLE_NEVER, TABLE_LATER, TABLE_USED } table_is;
	struct plan_view views[NR_VIEWS];
	unsigned int table_cost;
	uint32_t inside;			/* tenants that it tells of */
	unsigned int at[2];			/* what is left in it */
	bool settled;
	/* The last way that was found; and of the last that had an exact sum what it had then. */
	unsigned int last_exact;
	uint8_t exact_way[PLAN_MAX_GPCS], taken_since[PLAN_MAX_GPCS];
	uint32_t has_way;
	uint8_t way[PLAN_MAX_TENANTS][PLAN_MAX_GPCS];
	struct known known[NR_KNOWN];
	uint8_t verdict[NR_KNOWN];	/* whether it fits */
	struct plan_prices prices;
	struct plan_table table;
};

/* A tenant's demand at a node. */
struct want {
	unsigned int kinds, gpcs, tpcs;	/* there are for it */
	struct plan_demand d;
	int ugpu;
	uint64_t ugpus;			/* where it may have some, of those */
	unsigned int least;		/* that GPCs make */
	struct sums sums;		/* that it may have */
};

/* A node: what all tenants want, and who is next. */
struct node {
	uint32_t tenants, choice;	/* and of whom the next is chosen */
	struct plan_view view;
	unsigned int next, most;	/* the largest sum that leaves the others their least */
	struct want wants[PLAN_MAX_TENANTS];
	/* Until it is priced. */
	uint8_t left[PLAN_MAX_GPCS];
	unsigned int start, limit, prices;
};

/* The sets of one tenant, while they are gone through. */
struct cover {
	const struct want *want;
	struct node *node;
	uint32_t others;
	unsigned int sum;
	int row;			/* of the table, that tells of the others; -1 none */
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

static bool holds(const struct plan_whole *w, const struct want *want, unsigned int kind)
{
	return w->kinds.kind[kind].nr_main >= want->d.home;
}

static bool may_take(const struct plan_whole *w, const struct want *want, unsigned int kind)
{
	unsigned int ugpu = w->kinds.kind[kind].ugpu;

	return (want->ugpu == PLAN_ANYWHERE || want->ugpu == (int)ugpu) &&
	       want->ugpus >> ugpu & 1;
}

/* Adds what one more kind makes possible. Without a home every set is homely. */
static void reach_kind(const struct plan_whole *w, const struct want *want, unsigned int kind,
		       struct reach *reach)
{
	unsigned int nr = w->kinds.kind[kind].nr;

	if (!may_take(w, want, kind))
		return;
	for (unsigned int i = 0; i < w->left[kind]; i++) {
		if (want->d.home > 1) {
			sums_add(&reach->homely, &reach->homely, nr, w->words);
			if (holds(w, want, kind))
				sums_add(&reach->homely, &reach->any, nr, w->words);
		}
		sums_add(&reach->any, &reach->any, nr, w->words);
	}
}

static const struct sums *reach_sums(const struct want *want, const struct reach *reach)
{
	return want->d.home > 1 ? &reach->homely : &reach->any;
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
	for (unsigned int kind = 0; kind < w->kinds.nr; kind++)
		if (w->left[kind] && may_take(w, want, kind) &&
		    w->kinds.kind[kind].nr <= want->d.max) {
			want->kinds++;
			want->gpcs += w->left[kind];
			want->tpcs += w->left[kind] * w->kinds.kind[kind].nr;
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

/* What can be had of all that is left; the same for all that are alike. */
static void find_reach(const struct plan_whole *w, const struct node *node, unsigned int tenant,
		       struct reach *reach)
{
	const struct want *want = &node->wants[tenant];

	for (uint32_t left = node->tenants & ((1u << tenant) - 1); left; left &= left - 1) {
		unsigned int other = __builtin_ctz(left);

		if (node->wants[other].ugpu == want->ugpu &&
		    node->wants[other].ugpus == want->ugpus &&
		    node->wants[other].d.home == want->d.home) {
			reach[tenant] = reach[other];
			return;
		}
	}
	reach[tenant] = (struct reach){ { { 1 } }, { { 0 } } };
	for (unsigned int kind = 0; kind < w->kinds.nr; kind++)
		reach_kind(w, want, kind, &reach[tenant]);
}

/* Each tenant's own view. False: one of them cannot have anything that it wants. */
static bool find_wants(const struct plan_whole *w, struct node *node)
{
	struct reach reach[PLAN_MAX_TENANTS];

	for (uint32_t left = node->tenants; left; left &= left - 1) {
		unsigned int i = __builtin_ctz(left);
		struct want *want = &node->wants[i];

		want->d = plan_question_demand(&w->q, &w->kinds, i);
		want->ugpu = plan_question_ugpu(&w->q, i);
		want->ugpus = i == w->q.exact_tenant ? w->q.exact_ugpus : ~0ull;
		find_reach(w, node, i, reach);
		want->least = cut_sums(w, &want->sums, reach_sums(want, &reach[i]), want->d.min,
				       want->d.max);
		if (!want->least)
			return false;
		count_kinds(w, want);
	}
	return true;
}

static bool is_asked_about(const struct plan_whole *w, unsigned int kind)
{
	return w->only == PLAN_ANYWHERE || w->only == (int)w->kinds.kind[kind].ugpu;
}

/* From the larger homes down, each needs a GPC of its own that holds it. */
static bool homes_have_gpcs(const struct plan_whole *w, const struct node *node)
{
	for (unsigned int home = 2; home <= GPUPART_MAX_TPCS; home *= 2) {
		unsigned int wanted = 0, there = 0;

		for (uint32_t left = node->tenants; left; left &= left - 1)
			wanted += node->wants[__builtin_ctz(left)].d.home >= home;
		if (!wanted)
			return true;
		for (unsigned int kind = 0; kind < w->kinds.nr; kind++)
			if (is_asked_about(w, kind) && w->kinds.kind[kind].nr_main >= home)
				there += w->left[kind];
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
	unsigned int room[PLAN_MAX_UGPUS];

	memcpy(room, w->room.nr, w->room.nr_ugpus * sizeof(*room));
	for (unsigned int i = 0; i < nr_needs; i++)
		if (needs[i].ugpu != PLAN_ANYWHERE)
			room[needs[i].ugpu] -= needs[i].nr;
	for (uint32_t left = node->choice; left; left &= left - 1) {
		unsigned int i = __builtin_ctz(left), most = spare;
		const struct want *want = &node->wants[i];

		if (want->ugpu != PLAN_ANYWHERE && room[want->ugpu] < most)
			most = room[want->ugpu];
		most += want->least;
		sets = (uint64_t)count_sums(w, &want->sums, most) * guess_sets(want) *
		       (16 + shuffle(w, 32 + i));
		if (sets < fewest ||
		    (sets == fewest && node->next < PLAN_NOBODY &&
		     want->d.min > node->wants[node->next].d.min)) {
			fewest = sets;
			node->next = i;
			node->most = most;
		}
	}
}

/* Of those who share. */
static unsigned int find_needs(const struct plan_whole *w, struct plan_need *needs)
{
	unsigned int nr = 0;

	for (unsigned int i = 0; i < w->q.nr_shares; i++)
		if (w->only == PLAN_ANYWHERE || w->only == w->q.shares[i].ugpu)
			needs[nr++] = w->q.shares[i];
	return nr;
}

/* False only where not all can have their least. */
static bool look(const struct plan_whole *w, struct node *node)
{
	struct plan_need needs[PLAN_MAX_TENANTS];
	unsigned int nr, whole = 0, spare, shares;

	if (!find_wants(w, node))
		return false;
	nr = find_needs(w, needs);
	for (uint32_t left = node->tenants; left; left &= left - 1) {
		const struct want *want = &node->wants[__builtin_ctz(left)];

		needs[nr++] = (struct plan_need){ want->least, 0, want->ugpu };
		whole += want->least;
	}
	/* Who shares has first what nobody can have whole. */
	shares = w->shares_nr > w->broken ? w->shares_nr - w->broken : 0;
	if ((whole + shares > w->whole_left && w->only == PLAN_ANYWHERE) ||
	    !plan_fits(&w->room, needs, nr) || !homes_have_gpcs(w, node))
		return false;
	spare = w->only == PLAN_ANYWHERE ? w->whole_left - whole - shares :
		w->room.nr[w->only];
	find_next(w, node, needs, nr, spare);
	return true;
}

/* ------------------------------------------------------------ what is known */

static bool wants_exactly(const struct plan_whole *w, uint32_t tenants)
{
	return w->q.exact_tenant < PLAN_NOBODY && tenants >> w->q.exact_tenant & 1;
}

/* What those who are still without their set can tell. Until the next one is asked for. */
static const struct plan_view *find_view(struct plan_whole *w, uint32_t tenants)
{
	struct plan_view view = { 0 }, *known;
	uint64_t hash;

	plan_question_view(&w->q, &w->kinds, tenants, &view);
	hash = (view.ugpus * 64 + view.homes) * 0x9e3779b97f4a7c15ull;
	known = &w->views[hash >> 32 & (NR_VIEWS - 1)];
	if (known->ugpus != view.ugpus || known->homes != view.homes) {
		plan_view_find(&w->kinds, &view);
		*known = view;
	}
	return known;
}

static unsigned int known_place(const struct plan_whole *w, uint32_t tenants,
				const struct plan_view *view, struct known *key)
{
	uint64_t hash, part;

	key->epoch = w->epoch * (PLAN_MAX_UGPUS + 1) + w->only + 1;
	key->tenants = tenants;
	key->exact = wants_exactly(w, tenants) ? 0x8000 | w->q.exact_home << 13 |
		     w->q.exact_tenant << 9 | w->q.exact_sum : 0;
	key->ugpus = key->exact ? w->q.exact_ugpus : 0;
	memset(key->left, 0, sizeof(key->left));
	for (unsigned int kind = 0; kind < w->kinds.nr; kind++)
		if (is_asked_about(w, kind))
			key->left[view->first[kind]] += w->left[kind];
	hash = ((uint64_t)key->epoch << 32 | (uint32_t)key->tenants << 16 | key->exact) *
	       0x9e3779b97f4a7c15ull ^ key->ugpus * 0xd6e8feb86659fd93ull;
	for (unsigned int i = 0; i < sizeof(key->left); i += sizeof(part)) {
		memcpy(&part, key->left + i, sizeof(part));
		hash = (hash ^ hash >> 29 ^ part) * 0xbf58476d1ce4e5b9ull;
	}
	return (hash ^ hash >> 32) % NR_KNOWN;
}

static void spend_kind(struct plan_whole *w, unsigned int kind, int nr)
{
	const struct plan_kind *k = &w->kinds.kind[kind];

	w->left[kind] -= nr;
	if (w->table_is == TABLE_USED)
		w->at[w->table.low[kind]] -= nr * w->table.stride[kind];
	w->whole_left -= nr * (int)k->nr;
	w->room.nr[k->ugpu] -= nr * (int)k->nr;
	for (unsigned int level = 1; level <= w->kinds.levels; level++)
		w->room.places[level][k->ugpu] -= nr * (int)(k->nr_main >> level);
}

static bool shares_fit(const struct plan_whole *w)
{
	struct plan_need needs[PLAN_MAX_TENANTS];
	unsigned int nr = find_needs(w, needs);

	return plan_fits(&w->room, needs, nr);
}

/* Whether what one had of an exact sum, without what it has got of that, is what it wants. */
static bool exact_way_holds(const struct plan_whole *w, uint8_t *way)
{
	const struct plan_question *q = &w->q;
	unsigned int sum = 0, home = q->exact_home ? w->ask->tenants[q->exact_tenant].home : 1;
	bool homely = false;

	if (w->last_exact != q->exact_tenant)
		return false;
	for (unsigned int kind = 0; kind < w->kinds.nr; kind++) {
		const struct plan_kind *k = &w->kinds.kind[kind];

		if (w->exact_way[kind] < w->taken_since[kind])
			return false;
		way[kind] = w->exact_way[kind] - w->taken_since[kind];
		sum += way[kind] * k->nr;
		homely |= way[kind] && k->nr_main >= home;
		if (way[kind] && !(q->exact_ugpus >> k->ugpu & 1))
			return false;
	}
	return sum == q->exact_sum && homely;
}

/* Whether the last way that was found still is one. */
static bool way_holds(struct plan_whole *w, uint32_t tenants)
{
	uint8_t used[PLAN_MAX_GPCS] = { 0 };
	bool fits;

	if (wants_exactly(w, tenants)) {
		if (!exact_way_holds(w, used))
			return false;
		tenants &= ~(1u << w->q.exact_tenant);
	}
	if (tenants & ~w->has_way)
		return false;
	for (uint32_t left = tenants; left; left &= left - 1)
		for (unsigned int kind = 0; kind < PLAN_MAX_GPCS; kind++)
			used[kind] += w->way[__builtin_ctz(left)][kind];
	for (unsigned int kind = 0; kind < w->kinds.nr; kind++)
		if (used[kind] > w->left[kind])
			return false;
	for (unsigned int kind = 0; kind < w->kinds.nr; kind++)
		if (used[kind])
			spend_kind(w, kind, used[kind]);
	fits = shares_fit(w);
	for (unsigned int kind = 0; kind < w->kinds.nr; kind++)
		if (used[kind])
			spend_kind(w, kind, -(int)used[kind]);
	return fits;
}

/* ------------------------------------------------------------- the search */

static int fit(struct plan_whole *w, uint32_t tenants);

/* Whether it could do without one of its GPCs. */
static bool has_too_many(const struct plan_whole *w, const struct cover *c)
{
	unsigned int homes = 0;

	for (unsigned int kind = 0; kind < w->kinds.nr; kind++)
		homes += holds(w, c->want, kind) ? c->taken[kind] : 0;
	for (unsigned int kind = 0; kind < w->kinds.nr; kind++)
		if (c->taken[kind] && c->sum - w->kinds.kind[kind].nr >= c->want->d.min &&
		    homes > holds(w, c->want, kind))
			return true;
	return false;
}

/*
 * A node whose search has taken as long as pricing it takes is priced, and the less often the
 * less that helps. True: that shows that there is no way.
 */
static bool price_node(struct plan_whole *w, struct node *node)
{
	unsigned int before = w->prices.steps;

	if (w->only != PLAN_ANYWHERE || w->steps - node->start <= node->limit + w->patience)
		return false;
	if (plan_prices_find(&w->prices, &w->q, node->left, node->tenants, node->prices)) {
		w->patience /= 2;
		return true;
	}
	w->patience = 2 * w->patience + (w->prices.steps - before);
	node->start = w->steps;
	node->limit *= 4;
	if (node->prices < MOST_PRICES)
		node->prices *= 2;
	return false;
}

/* The others' turn. -ECANCELED: there is no way, whatever this tenant has. */
static int fit_others(struct plan_whole *w, struct cover *c)
{
	if (has_too_many(w, c))
		return -ENOSPC;
	/* The table has said that they fit. */
	if (c->row >= 0 && !(c->others & ~w->inside))
		return 0;
	return price_node(w, c->node) ? -ECANCELED : fit(w, c->others);
}

/* How many of a kind. What makes no difference is taken of the first of twins. */
static unsigned int can_take(const struct plan_whole *w, const struct cover *c, unsigned int kind)
{
	int twin = c->node->view.twin[kind];

	return may_take(w, c->want, kind) && (twin < 0 || !w->left[twin]) ? w->left[kind] : 0;
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
		return home ? -ENOSPC : fit_others(w, c);
	if (!sums_have(home ? &c->from[kind].homely : &c->from[kind].any, left))
		return -ENOSPC;
	nr = w->kinds.kind[kind].nr;
	most = can_take(w, c, kind);
	if (most > left / nr)
		most = left / nr;
	for (unsigned int i = 0; i <= most; i++) {
		unsigned int n = shuffle(w, kind) & 1 ? i : most - i;

		c->taken[kind] = n;
		spend_kind(w, kind, n);
		/* What is left only becomes less. */
		err = n && c->row >= 0 && !plan_table_fits(&w->table, c->row, w->at) ? -ENOSPC :
		      cover(w, c, kind + 1, left - n * nr,
			    home && !(n && holds(w, c->want, kind)));
		spend_kind(w, kind, -(int)n);
		if (err != -ENOSPC)
			return err;
	}
	c->taken[kind] = 0;
	return -ENOSPC;
}

/* The row that tells of those of @tenants that the table is of. */
static int row_of(const struct plan_whole *w, uint32_t tenants)
{
	return tenants & w->inside ? plan_table_find(&w->table, tenants & w->inside) : -1;
}

/* The next tenant's sets, those that leave the most first. */
static int branch(struct plan_whole *w, struct node *node)
{
	const struct want *want = &node->wants[node->next];
	struct cover c = { .want = want, .node = node,
			   .others = node->tenants & ~(1u << node->next) };
	int err = -ENOSPC;

	c.row = row_of(w, c.others);
	if (c.row >= 0 && !plan_table_fits(&w->table, c.row, w->at))
		return -ENOSPC;
	memcpy(node->left, w->left, sizeof(node->left));
	node->start = w->steps;
	node->limit = PRICED_AT;
	node->prices = FIRST_PRICES;
	c.from[w->kinds.nr] = (struct reach){ { { 1 } }, { { 0 } } };
	for (unsigned int kind = w->kinds.nr; kind-- > 0;) {
		c.from[kind] = c.from[kind + 1];
		reach_kind(w, want, kind, &c.from[kind]);
	}
	for (c.sum = want->least; c.sum <= node->most && err == -ENOSPC; c.sum++)
		if (sums_have(&want->sums, c.sum))
			err = cover(w, &c, 0, c.sum, want->d.home > 1);
	if (w->only != PLAN_ANYWHERE)
		return err;
	if (!err && node->next == w->q.exact_tenant) {
		memcpy(w->exact_way, c.taken, sizeof(c.taken));
		memset(w->taken_since, 0, sizeof(w->taken_since));
		w->last_exact = node->next;
	} else if (!err) {
		memcpy(w->way[node->next], c.taken, sizeof(c.taken));
		w->has_way |= 1u << node->next;
	}
	return err == -ECANCELED ? -ENOSPC : err;
}

static int open_node(struct plan_whole *w, uint32_t tenants)
{
	struct node node = { .tenants = tenants, .choice = tenants & ~w->inside,
			     .view = *find_view(w, tenants), .next = PLAN_NOBODY };

	return look(w, &node) ? branch(w, &node) : -ENOSPC;
}

/* Whether those bound to a uGPU fit into what is left of it, each by itself. */
static int fit_apart(struct plan_whole *w, uint32_t tenants)
{
	uint32_t in[PLAN_MAX_UGPUS] = { 0 }, inside = w->inside;
	int err = 0;

	if (w->only != PLAN_ANYWHERE)
		return 0;
	for (uint32_t left = tenants; left; left &= left - 1) {
		int ugpu = plan_question_ugpu(&w->q, __builtin_ctz(left));

		if (ugpu != PLAN_ANYWHERE)
			in[ugpu] |= left & -left;
	}
	w->inside = 0;
	for (unsigned int u = 0; u < w->kinds.nr_ugpus && !err; u++) {
		w->only = u;
		if (in[u] && in[u] != tenants)
			err = fit(w, in[u]);
	}
	w->only = PLAN_ANYWHERE;
	w->inside = inside;
	return err;
}

static int look_closer(struct plan_whole *w, uint32_t tenants)
{
	int err;

	if (w->only == PLAN_ANYWHERE && !plan_prices_allow(&w->prices, &w->q, w->left, tenants))
		return -ENOSPC;
	err = fit_apart(w, tenants);
	return err ? err : open_node(w, tenants);
}

static int fit(struct plan_whole *w, uint32_t tenants)
{
	struct known key;
	unsigned int place;
	int err;

	if (!tenants)
		return shares_fit(w) ? 0 : -ENOSPC;
	if (!(tenants & ~w->inside))
		return plan_table_fits(&w->table, row_of(w, tenants), w->at) ? 0 : -ENOSPC;
	place = known_place(w, tenants, find_view(w, tenants), &key);
	if (!memcmp(&w->known[place], &key, sizeof(key)))
		return w->verdict[place] ? 0 : -ENOSPC;
	if (!plan_whole_spend(w, NODE_STEPS))
		return -E2BIG;
	if (w->steps > w->turn_end)
		return -EAGAIN;
	err = way_holds(w, tenants) ? 0 : look_closer(w, tenants);
	if (err && err != -ENOSPC)
		return err;
	w->known[place] = key;
	w->verdict[place] = !err;
	return err;
}

/* ------------------------------------------------------------------ the table */

/*
 * After a search that took long: whether the table is the cheaper way from now on. One of all
 * tenants is, while groups may still move, only for a question that is a hard one by itself.
 */
static bool want_table(struct plan_whole *w)
{
	if (!w->settled && w->hard - w->hard_before > ALL_AT) {
		w->settled = true;
		w->table_is = TABLE_UNKNOWN;
	}
	if (w->hard < TABLE_AT || w->table_is == TABLE_NEVER || w->table_is == TABLE_USED)
		return false;
	if (w->table_is == TABLE_UNKNOWN) {
		w->table_cost = plan_table_plan(&w->table, &w->q, w->settled);
		w->table_is = w->table_cost ? TABLE_LATER : TABLE_NEVER;
	}
	return w->table_is != TABLE_NEVER && w->hard >= w->table_cost / TABLE_SHARE;
}

/* What is known to be no way stays known, so that the turns before are not for nothing. */
int plan_whole_fit(struct plan_whole *w, uint32_t tenants)
{
	unsigned int steps = FIRST_TURN;
	int err;

	tenants &= (1u << w->kinds.nr_whole) - 1;
	w->patience /= 2;
	for (w->turn = 0;; w->turn++) {
		w->inside = w->table_is == TABLE_USED ? w->table.inside : 0;
		if (w->q.exact_tenant < PLAN_NOBODY)
			w->inside &= ~(1u << w->q.exact_tenant);
		w->turn_end = w->turn < NR_TURNS ? w->steps + steps : ~0u;
		err = fit(w, tenants);
		if (err != -EAGAIN)
			return err;
		w->hard += steps;
		if (want_table(w)) {
			plan_table_fill(&w->table, &w->q);
			w->table_is = TABLE_USED;
			plan_table_seek(&w->table, w->left, w->at);
		}
		steps += steps / 4;
	}
}

int plan_whole_fit_exactly(struct plan_whole *w, uint32_t tenants, unsigned int tenant,
			   unsigned int sum, bool home, uint64_t ugpus)
{
	unsigned int words = w->words;
	int err;

	w->q.exact_tenant = tenant;
	w->q.exact_sum = sum;
	w->q.exact_home = home;
	w->q.exact_ugpus = ugpus;
	if (w->words < sum / 64 + 1)
		w->words = sum / 64 + 1;
	err = plan_whole_fit(w, tenants);
	w->words = words;
	w->q.exact_tenant = PLAN_NOBODY;
	return err;
}

static uint32_t whole_ones(const struct plan_whole *w)
{
	return w->q.tenants & ((1u << w->kinds.nr_whole) - 1);
}

bool plan_whole_may(struct plan_whole *w)
{
	struct node node = { .tenants = whole_ones(w), .next = PLAN_NOBODY };

	w->steps += NODE_STEPS;
	return look(w, &node) && plan_prices_allow(&w->prices, &w->q, w->left, node.tenants);
}

bool plan_whole_may_closely(struct plan_whole *w, unsigned int *steps)
{
	unsigned int before = w->prices.steps;
	bool may = !plan_prices_find(&w->prices, &w->q, w->left, whole_ones(w), FIRST_PRICES);

	*steps = w->prices.steps - before;
	return may;
}

/* ---------------------------------------------------------------- set up */

static void bind_gpcs(struct plan_whole *w, int only)
{
	const struct plan_kinds *k = &w->kinds;

	w->room = k->broken;
	w->whole_left = w->broken = 0;
	memset(w->left, 0, sizeof(w->left));
	for (unsigned int u = 0; u < k->nr_ugpus; u++)
		if (only == PLAN_ANYWHERE || only == (int)u)
			w->broken += k->broken.nr[u];
	for (unsigned int kind = 0; kind < k->nr; kind++) {
		const struct plan_kind *of = &k->kind[kind];

		if (only != PLAN_ANYWHERE && only != (int)of->ugpu)
			continue;
		w->left[kind] = k->there[kind];
		w->whole_left += k->there[kind] * of->nr;
		w->room.nr[of->ugpu] += k->there[kind] * of->nr;
		for (unsigned int level = 1; level < PLAN_MAX_LEVELS; level++)
			w->room.places[level][of->ugpu] += k->there[kind] * (of->nr_main >> level);
	}
}

void plan_whole_bind(struct plan_whole *w, uint32_t tenants, const struct plan_unit *units,
		     unsigned int nr_units, int only)
{
	plan_question_set(&w->q, &w->kinds, tenants, units, nr_units);
	bind_gpcs(w, only);
	w->shares_nr = 0;
	for (unsigned int i = 0; i < w->q.nr_shares; i++)
		w->shares_nr += w->q.shares[i].nr;
	w->words = 1;
	for (unsigned int i = 0; i < w->kinds.nr_whole; i++) {
		unsigned int most = w->ask->tenants[i].min + w->ask->gpu.largest;

		if (tenants >> i & 1 && most >= 64 * w->words)
			w->words = most / 64 + 1;
	}
	if (w->words > SUM_WORDS)
		w->words = SUM_WORDS;
	w->has_way = 0;
	w->patience = 0;
	w->hard_before = w->hard;
	w->last_exact = PLAN_NOBODY;
	w->settled = false;
	/* The table is of all GPCs. */
	w->table_is = only == PLAN_ANYWHERE ? TABLE_UNKNOWN : TABLE_NEVER;
	plan_prices_ask(&w->prices);
	w->epoch++;
	w->only = PLAN_ANYWHERE;
	w->steps += NODE_STEPS;
}

void plan_whole_settle(struct plan_whole *w)
{
	w->settled = true;
	w->table_is = TABLE_UNKNOWN;
}

void plan_whole_take(struct plan_whole *w, unsigned int gpc)
{
	spend_kind(w, w->kinds.of[gpc], 1);
	w->taken_since[w->kinds.of[gpc]]++;
}

void plan_whole_put(struct plan_whole *w, unsigned int gpc)
{
	spend_kind(w, w->kinds.of[gpc], -1);
	w->taken_since[w->kinds.of[gpc]]--;
}

unsigned int plan_whole_steps(const struct plan_whole *w)
{
	return w->steps + w->prices.steps + w->table.steps;
}

bool plan_whole_spend(struct plan_whole *w, unsigned int steps)
{
	w->steps += steps;
	return plan_whole_steps(w) <= w->max_steps;
}

void plan_whole_start(struct plan_whole *w, const struct plan_ask *ask, unsigned int max_steps)
{
	w->ask = ask;
	w->max_steps = max_steps;
	w->steps = w->hard = 0;
	memset(w->views, 0, sizeof(w->views));
	plan_kinds_find(&w->kinds, ask);
	plan_prices_start(&w->prices, &w->kinds);
	plan_table_start(&w->table, &w->kinds);
}

struct plan_whole *plan_whole_new(void)
{
	return calloc(1, sizeof(struct plan_whole));
}

void plan_whole_free(struct plan_whole *w)
{
	free(w);
}
