// SPDX-License-Identifier: MIT
/*
 * Whether tenants fit into what is left, for all that can be left at once: a row of bits a
 * tenant, made of the row before by moving it by each of the tenant's smallest sets. Must not
 * know what is asked of it, nor which GPC is which.
 */
#include <string.h>
#include "lib/plan/table.h"

#define WORD_BITS	64
#define SHARES_STEPS	20	/* a word of the first row */
#define MAX_COST	1500000	/* in steps, where there is a smaller one */
#define MAX_NODES	20000	/* while sets are listed, a tenant */

/* ------------------------------------------------------------------ states */

/* Chooses the kinds that fill a word best: the largest product of their states up to 64. */
static uint32_t find_low(const struct plan_table *t)
{
	uint32_t with[WORD_BITS + 1] = { 0 }, best = 0;
	bool can[WORD_BITS + 1] = { false, true };

	for (unsigned int kind = 0; kind < t->kinds->nr; kind++) {
		unsigned int states = t->there[kind] + 1;

		for (unsigned int size = WORD_BITS / states; size > 0 && states > 1; size--)
			if (can[size] && !can[size * states]) {
				can[size * states] = true;
				with[size * states] = with[size] | 1u << kind;
			}
	}
	for (unsigned int size = 1; size <= WORD_BITS; size++)
		if (can[size])
			best = with[size];
	return best;
}

static void find_enough(struct plan_table *t, unsigned int kind, unsigned int bits)
{
	for (unsigned int nr = 0; nr <= t->there[kind]; nr++) {
		t->enough[kind][nr] = 0;
		for (unsigned int bit = 0; bit < bits; bit++)
			if (bit / t->stride[kind] % (t->there[kind] + 1u) >= nr)
				t->enough[kind][nr] |= 1ull << bit;
	}
}

/* Of kinds that are the same to those inside, the first stands for all. */
static void find_states(struct plan_table *t)
{
	unsigned int bits = 1, words = 1;
	uint32_t low;

	plan_view_find(t->kinds, &t->view);
	memset(t->there, 0, sizeof(t->there));
	for (unsigned int kind = 0; kind < t->kinds->nr; kind++)
		t->there[t->view.first[kind]] += t->kinds->there[kind];
	low = find_low(t);
	for (unsigned int kind = 0; kind < t->kinds->nr && words <= PLAN_TABLE_WORDS; kind++) {
		unsigned int first = t->view.first[kind];
		unsigned int *size = low >> first & 1 ? &bits : &words;

		t->low[kind] = low >> first & 1;
		t->stride[kind] = first < kind ? t->stride[first] : *size;
		*size *= t->there[kind] + 1;
	}
	t->words = words <= PLAN_TABLE_WORDS ? words : 0;
	for (unsigned int kind = 0; kind < t->kinds->nr && t->words; kind++)
		if (t->low[kind])
			find_enough(t, kind, bits);
}

void plan_table_start(struct plan_table *t, const struct plan_kinds *k)
{
	t->kinds = k;
	t->nr_rows = t->words = t->steps = 0;
	t->inside = 0;
	t->nr_shares = ~0u;
}

void plan_table_seek(const struct plan_table *t, const uint8_t *left, unsigned int *at)
{
	at[0] = at[1] = 0;
	for (unsigned int kind = 0; kind < t->kinds->nr; kind++)
		at[t->low[kind]] += left[kind] * t->stride[kind];
}

bool plan_table_fits(const struct plan_table *t, int row, const unsigned int *at)
{
	return t->bits[row + 1][at[0]] >> at[1] & 1;
}

int plan_table_find(const struct plan_table *t, uint32_t tenants)
{
	int row = (int)t->nr_rows - 1;

	while (row >= 0 && t->rows[row] != tenants)
		row--;
	return row;
}

/* ------------------------------------------------------- those who share */

/*
 * Places at all levels in one word, a field each with a bit above the largest number: so many
 * can be added, and compared, at once.
 */
static unsigned int field(unsigned int level)
{
	return level * (21 - level) / 2;
}

struct walk {
	struct plan_table *t;
	unsigned int levels, nr_ugpus, nr, kinds[PLAN_MAX_GPCS];
	uint64_t adds[PLAN_MAX_GPCS];		/* by a GPC of the kind */
	uint64_t rest[PLAN_MAX_GPCS + 1][PLAN_MAX_UGPUS];	/* by all from a kind on */
	uint64_t guard, wanted;			/* by those bound nowhere */
	uint64_t bound[PLAN_MAX_UGPUS];
	uint64_t places[PLAN_MAX_UGPUS];	/* now */
};

/* What a uGPU's places are worth to others than those bound to it. False: not enough. */
static bool count_places(const struct walk *w, unsigned int ugpu, uint64_t places,
			 uint64_t *count)
{
	uint64_t rest = (places | w->guard) - w->bound[ugpu];
	unsigned int below = GPUPART_MAX_TPCS;

	if ((rest & w->guard) != w->guard)
		return false;
	for (unsigned int level = 0; level <= w->levels; level++) {
		unsigned int nr = rest >> field(level) & ((1u << (9 - level)) - 1);

		nr = nr < below ? nr : below;
		below = nr / 2;
		*count += (uint64_t)nr << field(level);
	}
	return true;
}

/* Whether what is left now and @more are enough for those who share. */
static bool is_enough(const struct walk *w, const uint64_t *more)
{
	uint64_t count = 0;

	for (unsigned int u = 0; u < w->nr_ugpus; u++)
		if (!count_places(w, u, w->places[u] + more[u], &count))
			return false;
	return (((count | w->guard) - w->wanted) & w->guard) == w->guard;
}

/* Sets the @bits of this word and those that come of it by all numbers of later kinds. */
static void set_all(const struct walk *w, unsigned int i, unsigned int word, uint64_t bits)
{
	unsigned int kind, stride;

	if (i == w->nr) {
		w->t->bits[0][word] |= bits;
		return;
	}
	kind = w->kinds[i];
	stride = w->t->stride[kind];
	for (unsigned int nr = 0; nr < w->t->there[kind]; nr++)
		if (w->t->low[kind])
			bits |= bits << stride;
		else
			set_all(w, i + 1, word + (nr + 1) * stride, bits);
	set_all(w, i + 1, word, bits);
}

/* Goes through all numbers of the @i'th kind and later ones, as far as these matter. */
static void walk(struct walk *w, unsigned int i, unsigned int word, unsigned int bit)
{
	unsigned int kind, ugpu;

	if (is_enough(w, w->rest[w->nr])) {
		set_all(w, i, word, 1ull << bit);
		return;
	}
	if (i == w->nr || !is_enough(w, w->rest[i]))
		return;
	kind = w->kinds[i];
	ugpu = w->t->kinds->kind[kind].ugpu;
	for (unsigned int nr = 0; nr <= w->t->there[kind]; nr++) {
		unsigned int by = nr * w->t->stride[kind];

		walk(w, i + 1, word + (w->t->low[kind] ? 0 : by), bit + (w->t->low[kind] ? by : 0));
		w->places[ugpu] += w->adds[i];
	}
	w->places[ugpu] -= w->adds[i] * (w->t->there[kind] + 1u);
}

static void add_need(const struct walk *w, const struct plan_need *need, uint64_t *to)
{
	*to += need->nr;
	for (unsigned int level = 1; level <= w->levels; level++)
		*to += (uint64_t)(need->home >> level) << field(level);
}

static uint64_t places_of(const struct walk *w, const struct plan_kind *kind)
{
	uint64_t places = 0;

	for (unsigned int level = 0; level <= w->levels; level++)
		places += (uint64_t)plan_kind_places(kind, level) << field(level);
	return places;
}

/* The larger kinds first, which decide the most. */
static void add_kinds(struct walk *w)
{
	const struct plan_kinds *k = w->t->kinds;

	for (unsigned int kind = 0; kind < k->nr; kind++)
		if (w->t->there[kind])
			w->kinds[w->nr++] = kind;
	for (unsigned int i = w->nr; i-- > 0;) {
		const struct plan_kind *kind = &k->kind[w->kinds[i]];

		w->adds[i] = places_of(w, kind);
		memcpy(w->rest[i], w->rest[i + 1], sizeof(w->rest[i]));
		w->rest[i][kind->ugpu] += w->adds[i] * w->t->there[w->kinds[i]];
	}
}

static void fill_shares(struct plan_table *t, const struct plan_question *q)
{
	const struct plan_kinds *k = t->kinds;
	struct walk w = { .t = t, .levels = k->levels, .nr_ugpus = k->nr_ugpus };

	memset(t->bits[0], q->nr_shares ? 0 : 0xff, t->words * sizeof(uint64_t));
	t->steps += t->words * (q->nr_shares ? SHARES_STEPS : 1);
	if (!q->nr_shares)
		return;
	for (unsigned int level = 0; level <= w.levels; level++)
		w.guard |= 1ull << (field(level) + 9 - level);
	for (unsigned int u = 0; u < k->nr_ugpus; u++) {
		w.places[u] = k->broken.nr[u];
		for (unsigned int level = 1; level <= w.levels; level++)
			w.places[u] += (uint64_t)k->broken.places[level][u] << field(level);
	}
	add_kinds(&w);
	for (unsigned int i = 0; i < q->nr_shares; i++)
		add_need(&w, &q->shares[i], q->shares[i].ugpu == PLAN_ANYWHERE ? &w.wanted :
			 &w.bound[q->shares[i].ugpu]);
	walk(&w, 0, 0, 0);
}

/* ---------------------------------------------------------------- patterns */

/* A tenant's sets that could not do without one of their GPCs, while they are listed. */
struct list {
	struct plan_table *t;
	struct plan_demand d;
	int ugpu;
	unsigned int nodes, rest[PLAN_MAX_GPCS + 1];	/* TPCs of this kind and those after it */
	uint8_t taken[PLAN_MAX_GPCS];
};

static unsigned int there(const struct list *l, unsigned int kind)
{
	return l->ugpu == PLAN_ANYWHERE || l->ugpu == (int)l->t->kinds->kind[kind].ugpu ?
	       l->t->there[kind] : 0;
}

static bool has_too_many(const struct list *l, unsigned int sum, unsigned int homes)
{
	for (unsigned int kind = 0; kind < l->t->kinds->nr; kind++) {
		const struct plan_kind *k = &l->t->kinds->kind[kind];

		if (l->taken[kind] && sum - k->nr >= l->d.min &&
		    homes > (k->nr_main >= l->d.home))
			return true;
	}
	return false;
}

/* False: they are too many. */
static bool list_sets(struct list *l, unsigned int kind, unsigned int sum, unsigned int homes)
{
	const struct plan_kind *k = &l->t->kinds->kind[kind];
	unsigned int holds;

	if (++l->nodes > MAX_NODES)
		return false;
	if (sum >= l->d.min && homes) {
		if (has_too_many(l, sum, homes))
			return true;
		if (l->t->nr_patterns == PLAN_TABLE_PATTERNS)
			return false;
		memcpy(l->t->patterns[l->t->nr_patterns++], l->taken, sizeof(l->taken));
		return true;
	}
	if (kind == l->t->kinds->nr || sum + l->rest[kind] < l->d.min)
		return true;
	holds = k->nr_main >= l->d.home;
	for (unsigned int nr = 0; nr <= there(l, kind) && sum + nr * k->nr <= l->d.max; nr++) {
		l->taken[kind] = nr;
		if (!list_sets(l, kind + 1, sum + nr * k->nr, homes + nr * holds))
			return false;
		/* One more would be too many. */
		if (sum + nr * k->nr >= l->d.min && homes + nr * holds)
			break;
	}
	l->taken[kind] = 0;
	return true;
}

static bool find_patterns(struct plan_table *t, const struct plan_question *q, unsigned int tenant)
{
	struct list l = { .t = t, .d = plan_question_demand(q, t->kinds, tenant),
			  .ugpu = q->ugpu[tenant] };
	bool all;

	for (unsigned int kind = t->kinds->nr; kind-- > 0;)
		l.rest[kind] = l.rest[kind + 1] + there(&l, kind) * t->kinds->kind[kind].nr;
	t->nr_patterns = 0;
	all = list_sets(&l, 0, 0, 0);
	t->steps += l.nodes;
	return all;
}

/* Whom it is to be of. */
enum scope { WITHOUT_CLUSTERS, BOUND_NOWHERE, ALL };

static uint32_t find_inside(const struct plan_table *t, const struct plan_question *q,
			    enum scope scope)
{
	uint32_t inside = 0;

	for (unsigned int i = 0; i < t->kinds->nr_whole; i++)
		if (q->tenants >> i & 1 && (scope == ALL || q->ugpu[i] == PLAN_ANYWHERE) &&
		    (scope != WITHOUT_CLUSTERS || t->kinds->ask->tenants[i].home == 1))
			inside |= 1u << i;
	return inside;
}

/* Gets ready for these, unless it was before. */
static void set_inside(struct plan_table *t, const struct plan_question *q, uint32_t inside)
{
	struct plan_view view = { 0 };
	bool same = t->inside == inside;

	plan_question_view(q, t->kinds, inside, &view);
	for (uint32_t left = inside; left; left &= left - 1) {
		unsigned int i = __builtin_ctz(left);

		same &= t->ugpu[i] == q->ugpu[i];
		t->ugpu[i] = q->ugpu[i];
	}
	if (same && t->view.ugpus == view.ugpus && t->view.homes == view.homes)
		return;
	t->inside = inside;
	t->view = view;
	t->nr_rows = 0;
	t->nr_shares = ~0u;
	find_states(t);
}

/* About what moving a row by the sets that are listed takes. */
static unsigned int row_steps(const struct plan_table *t)
{
	unsigned int steps = 0;

	for (unsigned int i = 0; i < t->nr_patterns; i++) {
		unsigned int words = t->words;

		for (unsigned int kind = 0; kind < t->kinds->nr; kind++)
			if (t->patterns[i][kind] && !t->low[kind])
				words -= words * t->patterns[i][kind] / (t->there[kind] + 1);
		steps += 10 + words / 8;
	}
	return steps;
}

static unsigned int find_cost(struct plan_table *t, const struct plan_question *q)
{
	unsigned int cost = t->words * (q->nr_shares ? SHARES_STEPS : 1);

	if (!t->words || !t->inside)
		return 0;
	for (uint32_t left = t->inside; left; left &= left - 1) {
		if (!find_patterns(t, q, __builtin_ctz(left)))
			return 0;
		cost += row_steps(t);
	}
	return cost;
}

unsigned int plan_table_plan(struct plan_table *t, const struct plan_question *q, bool all)
{
	unsigned int cost = 0;

	for (int scope = all ? ALL : BOUND_NOWHERE; scope >= WITHOUT_CLUSTERS; scope--) {
		set_inside(t, q, find_inside(t, q, scope));
		cost = find_cost(t, q);
		if (cost && cost <= MAX_COST)
			return cost;
	}
	return cost;
}

/* -------------------------------------------------------------------- rows */

/* A set moves the row before by @shift bits and @off words, where enough is left. */
struct move {
	uint64_t *to;
	const uint64_t *from;
	uint64_t enough;
	unsigned int shift, off, nr;
	/* Kinds told by words, the largest stride first, to the last that is of the set. */
	unsigned int stride[PLAN_MAX_GPCS], least[PLAN_MAX_GPCS], most[PLAN_MAX_GPCS];
};

static void move_words(const struct move *m, unsigned int first, unsigned int nr)
{
	uint64_t *to = m->to + first;
	const uint64_t *from = m->from + first - m->off;

	for (unsigned int i = 0; i < nr; i++)
		to[i] |= from[i] << m->shift & m->enough;
}

static void move_from(const struct move *m, unsigned int i, unsigned int first)
{
	unsigned int stride = m->stride[i];

	if (i + 1 == m->nr) {
		move_words(m, first + m->least[i] * stride,
			   (m->most[i] + 1 - m->least[i]) * stride);
		return;
	}
	for (unsigned int nr = m->least[i]; nr <= m->most[i]; nr++)
		move_from(m, i + 1, first + nr * stride);
}

static void move_by(struct plan_table *t, struct move *m, const uint8_t *pattern)
{
	const struct plan_kinds *k = t->kinds;
	unsigned int last = k->nr;

	m->shift = m->off = m->nr = 0;
	m->enough = ~0ull;
	for (unsigned int kind = k->nr; kind-- > 0;) {
		if (!pattern[kind])
			continue;
		if (t->low[kind]) {
			m->shift += pattern[kind] * t->stride[kind];
			m->enough &= t->enough[kind][pattern[kind]];
		} else {
			m->off += pattern[kind] * t->stride[kind];
			last = kind;
		}
	}
	/* Strides grow with the kind. */
	for (unsigned int kind = k->nr; kind-- > last;) {
		if (t->low[kind] || !t->there[kind])
			continue;
		m->stride[m->nr] = t->stride[kind];
		m->least[m->nr] = pattern[kind];
		m->most[m->nr++] = t->there[kind];
	}
	if (m->nr)
		move_from(m, 0, 0);
	else
		move_words(m, 0, t->words);
}

static void fill_row(struct plan_table *t, unsigned int row)
{
	struct move m = { .to = t->bits[row + 1], .from = t->bits[row] };

	memset(m.to, 0, t->words * sizeof(uint64_t));
	for (unsigned int i = 0; i < t->nr_patterns; i++)
		move_by(t, &m, t->patterns[i]);
	t->steps += row_steps(t);
}

static bool same_shares(const struct plan_table *t, const struct plan_question *q)
{
	if (t->nr_shares != q->nr_shares)
		return false;
	for (unsigned int i = 0; i < q->nr_shares; i++)
		if (t->shares[i].nr != q->shares[i].nr || t->shares[i].home != q->shares[i].home ||
		    t->shares[i].ugpu != q->shares[i].ugpu)
			return false;
	return true;
}

void plan_table_fill(struct plan_table *t, const struct plan_question *q)
{
	unsigned int row = 0;
	uint32_t tenants = 0;

	if (!same_shares(t, q)) {
		t->nr_rows = 0;
		t->nr_shares = q->nr_shares;
		memcpy(t->shares, q->shares, q->nr_shares * sizeof(*q->shares));
		fill_shares(t, q);
	}
	for (unsigned int i = t->kinds->nr_whole; i-- > 0;) {
		if (!(t->inside >> i & 1))
			continue;
		tenants |= 1u << i;
		if (row++ < t->nr_rows)
			continue;
		t->rows[t->nr_rows++] = tenants;
		find_patterns(t, q, i);
		fill_row(t, row - 1);
	}
}
