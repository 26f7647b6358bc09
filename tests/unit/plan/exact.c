// SPDX-License-Identifier: MIT
/*
 * Compares the planner's plans with all possible plans. The test uses small made-up GPUs. It
 * enumerates every way to give TPCs, homes and uGPUs to tenants. It keeps the ways that meet the
 * demands. From these ways, it selects the best way by the criteria in gpupart_manage.h, one
 * criterion after the other. The test shares no code with the planner.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/topo/topology.h"
#include "tests/tap.h"

#define MAX_T 5
#define MAX_G 6
#define MAX_U 2
#define MAX_LIST 3000000

/* A made-up GPU and its demands. Tenants have their index in @demands. */
static unsigned int nr_g, nr_t, nr_u, size[MAX_G], main_size[MAX_G], gpc_ugpu[MAX_G];
static bool intact[MAX_G];
static struct gpupart_demand demands[MAX_T];
static unsigned int min[MAX_T], max[MAX_T], home_size[MAX_T], weight[MAX_T];
static bool bound[MAX_T];
static char same_text[MAX_T][64], apart_text[MAX_T][64];
static unsigned int rank[MAX_T];	/* rank[0] is the tenant that chooses first */
static unsigned int largest;

struct way {
	unsigned char x[MAX_T][MAX_G];
	signed char home[MAX_T], ugpu[MAX_T];
};

static struct way *list;
static unsigned int nr_list;
static bool too_many;

static uint64_t seed = 88172645463325252ull;

static unsigned int below(unsigned int end)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (seed >> 20) % end;
}

static unsigned int total(const struct way *w, unsigned int t)
{
	unsigned int sum = 0;

	for (unsigned int g = 0; g < nr_g; g++)
		sum += w->x[t][g];
	return sum;
}

static bool names(const char *text, unsigned int t)
{
	/* In this test, each name has one letter. */
	return text && strchr(text, *demands[t].name);
}

static bool related(unsigned int a, unsigned int b, bool same)
{
	return same ? names(demands[a].same, b) || names(demands[b].same, a) :
		      names(demands[a].apart, b) || names(demands[b].apart, a);
}

/* ------------------------------------------------------------- all possible plans */

/* A tenant with spread GPCs must have the same number of GPCs from each uGPU. */
static bool balanced(const struct way *w, unsigned int t)
{
	unsigned int nr[MAX_U] = { 0 };

	for (unsigned int g = 0; g < nr_g; g++)
		nr[gpc_ugpu[g]] += w->x[t][g] > 0;
	return nr_u < 2 || nr[0] == nr[1];
}

static bool good(const struct way *w)
{
	for (unsigned int t = 0; t < nr_t; t++) {
		unsigned int sum = total(w, t);
		bool homely = home_size[t] == 1;

		if (sum < min[t] || sum > max[t])
			return false;
		for (unsigned int g = 0; g < nr_g; g++) {
			if (!w->x[t][g])
				continue;
			if (w->ugpu[t] >= 0 && w->ugpu[t] != (int)gpc_ugpu[g])
				return false;
			if (!demands[t].gpcs)
				continue;
			if (!intact[g] || w->x[t][g] != size[g])
				return false;
			homely |= main_size[g] >= home_size[t];
		}
		if (demands[t].gpcs && (!homely || (demands[t].spread && !balanced(w, t))))
			return false;
		if (w->home[t] >= 0 && w->x[t][w->home[t]] < home_size[t])
			return false;
		for (unsigned int other = 0; other < nr_t; other++)
			if (other != t && related(t, other, w->ugpu[t] != w->ugpu[other]))
				return false;
	}
	for (unsigned int g = 0; g < nr_g; g++) {
		unsigned int homes = 0;

		for (unsigned int t = 0; t < nr_t; t++)
			homes += w->home[t] == (int)g ? home_size[t] : 0;
		if (homes > main_size[g])
			return false;
	}
	return true;
}

static void list_bonds(struct way *w, unsigned int t)
{
	if (t == nr_t) {
		if (!good(w))
			return;
		if (nr_list == MAX_LIST)
			too_many = true;
		else
			list[nr_list++] = *w;
		return;
	}
	for (int u = bound[t] ? 0 : -1; u < (bound[t] ? (int)nr_u : 0); u++)
		for (int h = home_size[t] > 1 && !demands[t].gpcs ? 0 : -1;
		     h < (home_size[t] > 1 && !demands[t].gpcs ? (int)nr_g : 0); h++) {
			w->ugpu[t] = u;
			w->home[t] = h;
			list_bonds(w, t + 1);
		}
}

static void list_counts(struct way *w, unsigned int g, unsigned int t, unsigned int left)
{
	unsigned int most = left;

	if (too_many)
		return;
	if (t == nr_t) {
		t = 0;
		if (++g < nr_g)
			left = most = size[g];
	}
	if (g == nr_g) {
		for (unsigned int i = 0; i < nr_t; i++)
			if (total(w, i) < min[i])
				return;
		list_bonds(w, 0);
		return;
	}
	w->x[t][g] = 0;
	if (total(w, t) + most > max[t])
		most = max[t] - total(w, t);
	for (unsigned int n = 0; n <= most; n++) {
		if (n && demands[t].gpcs && (!intact[g] || n != size[g]))
			continue;
		w->x[t][g] = n;
		list_counts(w, g, t + 1, left - n);
	}
	w->x[t][g] = 0;
}

/* ------------------------------------------------------------------------ keys */

#define KEY_LEN 32

/* Keeps the entries of the list with the lexicographically lowest key. */
static void keep_lowest(void (*key)(const struct way *w, unsigned int t, int *k), unsigned int t)
{
	int lowest[KEY_LEN], k[KEY_LEN];
	unsigned int kept = 0;

	for (unsigned int i = 0; i < nr_list; i++) {
		int cmp = -1;

		memset(k, 0, sizeof(k));
		key(&list[i], t, k);
		if (kept)
			for (int j = 0, done = 0; j < KEY_LEN && !done; j++) {
				done = k[j] != lowest[j];
				cmp = k[j] < lowest[j] ? -1 : k[j] > lowest[j];
			}
		if (cmp < 0) {
			memcpy(lowest, k, sizeof(k));
			kept = 0;
		}
		if (cmp <= 0)
			list[kept++] = list[i];
	}
	nr_list = kept;
}

static bool grouped[MAX_T][MAX_T];
static unsigned int promised[MAX_U], ugpu_size[MAX_U];

static void key_ugpu(const struct way *w, unsigned int t, int *k)
{
	k[0] = -(int)(ugpu_size[(int)w->ugpu[t]] - promised[(int)w->ugpu[t]]);
	k[1] = w->ugpu[t];
}

static void level_ugpus(void)
{
	bool done[MAX_T] = { false };

	memset(promised, 0, sizeof(promised));
	memset(grouped, 0, sizeof(grouped));
	for (unsigned int a = 0; a < nr_t; a++)
		for (unsigned int b = 0; b < nr_t; b++)
			grouped[a][b] = a == b || related(a, b, true);
	for (unsigned int turn = 0; turn < nr_t; turn++)
		for (unsigned int a = 0; a < nr_t; a++)
			for (unsigned int b = 0; b < nr_t; b++)
				for (unsigned int c = 0; c < nr_t; c++)
					grouped[a][b] |= grouped[a][c] && grouped[c][b];
	for (unsigned int i = 0; i < nr_t; i++) {
		unsigned int t = rank[i];

		if (!bound[t] || done[t])
			continue;
		keep_lowest(key_ugpu, t);
		for (unsigned int other = 0; other < nr_t; other++)
			if (grouped[t][other]) {
				done[other] = true;
				promised[(int)list[0].ugpu[t]] += min[other];
			}
	}
}

/* The TPCs of each tenant at this moment, and the resulting order of GPCs for one tenant. */
static unsigned char so_far[MAX_T][MAX_G];
static unsigned int order[MAX_G];

static void find_order(unsigned int t)
{
	unsigned int crowd[MAX_U + 1] = { 0 };
	unsigned int nr = 0;

	for (unsigned int u = 0; u < nr_u; u++)
		for (unsigned int other = 0; other < nr_t; other++) {
			bool there = false;

			for (unsigned int g = 0; g < nr_g; g++)
				there |= gpc_ugpu[g] == u && so_far[other][g] && other != t;
			crowd[u] += there;
		}
	for (unsigned int c = 0; c <= nr_t; c++)
		for (unsigned int u = 0; u < nr_u; u++)
			for (unsigned int g = 0; g < nr_g; g++)
				if (crowd[u] == c && gpc_ugpu[g] == u)
					order[nr++] = g;
}

/* Returns true if there is a plan with at least these numbers. */
static bool exists(const unsigned int *nr)
{
	for (unsigned int i = 0; i < nr_list; i++) {
		bool enough = true;

		for (unsigned int t = 0; t < nr_t; t++)
			enough &= total(&list[i], t) >= nr[t];
		if (enough)
			return true;
	}
	return false;
}

/*
 * Returns true if the numbers in @nr fit into the uGPUs. Ignores the borders of GPCs. Does not
 * count the TPCs of a GPC that one tenant has completely.
 */
static bool counts_fit(unsigned int first, const unsigned int *nr)
{
	unsigned int room[MAX_U] = { 0 }, loose = 0, all = 0;

	for (unsigned int g = 0; g < nr_g; g++) {
		bool taken = false;

		for (unsigned int t = 0; t < nr_t; t++)
			taken |= so_far[t][g];
		room[gpc_ugpu[g]] += taken ? 0 : size[g];
	}
	for (unsigned int i = first; i < nr_t; i++) {
		unsigned int t = rank[i];

		if (list[0].ugpu[t] < 0)
			loose += nr[t];
		else if (nr[t] > room[(int)list[0].ugpu[t]])
			return false;
		else
			room[(int)list[0].ugpu[t]] -= nr[t];
	}
	for (unsigned int u = 0; u < nr_u; u++)
		all += room[u];
	return loose <= all;
}

/*
 * Distributes TPCs by the rule in the header. At the call, @nr has the minima. At the return, @nr
 * has the results.
 */
static void deal(unsigned int first, unsigned int *nr, bool counts_only)
{
	bool done[MAX_T] = { false };

	for (;;) {
		int best = -1;

		for (unsigned int i = first; i < nr_t; i++) {
			unsigned int t = rank[i];

			if (done[t] || nr[t] >= max[t])
				continue;
			if (best < 0 || nr[t] * weight[best] < nr[best] * weight[t])
				best = t;
		}
		if (best < 0)
			return;
		nr[best]++;
		if (counts_only ? !counts_fit(first, nr) : !exists(nr)) {
			nr[best]--;
			done[best] = true;
		}
	}
}

static unsigned int fair;

static void key_whole(const struct way *w, unsigned int t, int *k)
{
	unsigned int ugpus = 0;

	for (unsigned int u = 0; u < nr_u; u++) {
		bool there = false;

		for (unsigned int g = 0; g < nr_g; g++)
			there |= gpc_ugpu[g] == u && w->x[t][g];
		ugpus += there;
	}
	k[0] = 2 * abs((int)total(w, t) - (int)fair) + (ugpus - 1) * largest;
	k[1] = ugpus;
	k[2] = -(int)total(w, t);
	for (unsigned int i = 0; i < nr_g; i++)
		k[3 + i] = -!!w->x[t][order[i]];
}

static unsigned int level_whole(void)
{
	unsigned int i, nr[MAX_T];

	memset(so_far, 0, sizeof(so_far));
	for (i = 0; i < nr_t && demands[rank[i]].gpcs; i++) {
		unsigned int t = rank[i];

		memcpy(nr, min, sizeof(nr));
		deal(i, nr, true);
		fair = nr[t];
		find_order(t);
		keep_lowest(key_whole, t);
		memcpy(so_far[t], list[0].x[t], sizeof(so_far[t]));
	}
	return i;
}

static void level_amounts(unsigned int first)
{
	unsigned int nr[MAX_T], kept = 0;

	for (unsigned int t = 0; t < nr_t; t++)
		nr[t] = demands[t].gpcs ? 0 : min[t];
	deal(first, nr, false);
	for (unsigned int i = 0; i < nr_list; i++) {
		bool equal = true;

		for (unsigned int j = first; j < nr_t; j++)
			equal &= total(&list[i], rank[j]) == nr[rank[j]];
		if (equal)
			list[kept++] = list[i];
	}
	nr_list = kept;
}

static void key_home(const struct way *w, unsigned int t, int *k)
{
	for (unsigned int i = 0; rank[i] != t; i++)
		k[0] += w->home[rank[i]] == w->home[t];
	for (unsigned int i = 0; i < nr_g; i++)
		if (order[i] == (unsigned int)w->home[t])
			k[1] = i;
}

static void key_pack(const struct way *w, unsigned int t, int *k)
{
	bool ugpu[MAX_U] = { false };
	unsigned int at = 3;

	for (unsigned int i = 0; i < nr_g; i++) {
		unsigned int g = order[i];

		k[at + i] = -!!w->x[t][g];
		k[at + nr_g + 1 + i] = -w->x[t][g];
		if (!w->x[t][g])
			continue;
		ugpu[gpc_ugpu[g]] = true;
		k[2]++;
		if (w->home[t] == (int)g)
			continue;
		k[0] += !intact[g];
		for (unsigned int other = 0; other < nr_t; other++)
			k[0] += other != t && so_far[other][g];
	}
	for (unsigned int u = 0; u < nr_u; u++)
		k[1] += ugpu[u];
	if (w->home[t] >= 0)
		k[at + nr_g] = -w->x[t][(int)w->home[t]];
}

static int falling(const void *a, const void *b)
{
	return *(const int *)b - *(const int *)a;
}

static void key_spread(const struct way *w, unsigned int t, int *k)
{
	int *open = k + 1, *packed = k + 1 + MAX_G, *first = k + 1 + 2 * MAX_G;

	for (unsigned int i = 0; i < nr_g; i++) {
		unsigned int g = order[i];
		bool packs = !intact[g];

		for (unsigned int other = 0; other < nr_t; other++)
			packs |= !demands[other].spread && so_far[other][g];
		(packs ? packed : open)[i] = w->x[t][g];
		k[0] += packs ? w->x[t][g] : 0;
		first[i] = -w->x[t][g];
	}
	qsort(open, MAX_G, sizeof(*open), falling);
	qsort(packed, MAX_G, sizeof(*packed), falling);
}

static void level_sets(unsigned int first)
{
	for (unsigned int i = first; i < nr_t; i++)
		if (home_size[rank[i]] > 1) {
			find_order(rank[i]);
			keep_lowest(key_home, rank[i]);
			so_far[rank[i]][(int)list[0].home[rank[i]]] = home_size[rank[i]];
		}
	for (unsigned int i = first; i < nr_t; i++) {
		find_order(rank[i]);
		keep_lowest(demands[rank[i]].spread ? key_spread : key_pack, rank[i]);
		memcpy(so_far[rank[i]], list[0].x[rank[i]], sizeof(so_far[0]));
	}
}

static int rank_order(const void *a, const void *b)
{
	unsigned int l = *(const unsigned int *)a, r = *(const unsigned int *)b;
	int form_l = demands[l].gpcs ? 0 : 1 + demands[l].spread;
	int form_r = demands[r].gpcs ? 0 : 1 + demands[r].spread;
	int keys[] = { form_l - form_r, weight[r] - weight[l], min[r] - min[l],
		       home_size[r] - home_size[l] };

	for (unsigned int i = 0; i < 4; i++)
		if (keys[i])
			return keys[i];
	return strcmp(demands[l].name, demands[r].name);
}

/* ----------------------------------------------------------------------- GPUs */

static struct gpupart_tpcset within;

static struct gpupart_topology *make_gpu(unsigned int max_size)
{
	struct gpupart_gpu_info info = { .source = "made up", .mig = -1 };
	struct topo_sm sms[TOPO_MAX_SMS];
	unsigned int tpc = 0, single = nr_g, nr_main;
	struct gpupart_topology *topo;

	memset(sms, 0, sizeof(sms));
	within = gpupart_tpcset_first(0);
	largest = 0;
	memset(ugpu_size, 0, sizeof(ugpu_size));
	for (unsigned int g = 0; g < nr_g; g++) {
		unsigned int nr = 1 + below(max_size), gone;

		gpc_ugpu[g] = g < nr_u ? g : below(nr_u);
		nr_main = below(3) ? nr : 1 + below(nr);
		gone = below(6) ? 0 : below(nr);
		intact[g] = !gone;
		size[g] = nr - gone;
		main_size[g] = nr_main;
		largest = nr > largest ? nr : largest;
		ugpu_size[gpc_ugpu[g]] += size[g];
		/* The first TPCs of the virtual GPC are not in @within. */
		if (gone < nr_main)
			main_size[g] -= gone;
		else
			main_size[g] = 1;
		if (main_size[g] < 1)
			main_size[g] = 1;
		for (unsigned int i = 0; i < nr; i++, tpc++) {
			if (i >= gone)
				gpupart_tpcset_add(&within, tpc);
			for (unsigned int sm = 0; sm < 2; sm++)
				sms[2 * tpc + sm] = (struct topo_sm){
					.gpc = g, .local_tpc = i, .local_sm = sm, .tpc = tpc,
					.vgpc = i < nr_main ? g : single, .tpc_in_vgpc =
					i < nr_main ? i : 0, .ugpu = gpc_ugpu[g], .cpc = -1,
					.virtual_tpc = -1, .measured_bit = -1 };
			single += i >= nr_main;
		}
	}
	return topo_build(NULL, &info, sms, 2 * tpc, NULL, 0, &topo) ? NULL : topo;
}

static unsigned int nr_balanced;

static void ask(unsigned int most, bool whole_only)
{
	static const char *const letters[MAX_T] = { "a", "b", "c", "d", "e" };
	unsigned int all = gpupart_tpcset_count(&within);

	memset(bound, 0, sizeof(bound));
	for (unsigned int t = 0; t < nr_t; t++) {
		struct gpupart_demand *d = &demands[t];
		unsigned int cluster = below(3) ? 0 : 1 + below(8);

		*d = (struct gpupart_demand){ .name = letters[t], .weight = 1 + below(3),
					      .min_tpcs = 1 + below(1 + most * all / 100 / nr_t),
					      .gpcs = whole_only || !below(4), .cluster = cluster };
		d->spread = !d->gpcs && !below(3);
		home_size[t] = cluster <= 2 ? 1 : cluster <= 4 ? 2 : 4;
		d->max_tpcs = below(2) ? 0 : d->min_tpcs + below(all);
		if (d->max_tpcs && d->max_tpcs < home_size[t])
			d->max_tpcs = home_size[t];
		*same_text[t] = *apart_text[t] = 0;
		for (unsigned int other = 0; other < nr_t; other++) {
			char *text = below(2) ? same_text[t] : apart_text[t];

			if (other == t || below(8 * nr_t))
				continue;
			sprintf(text + strlen(text), "%s%s", *text ? "+" : "", letters[other]);
			bound[t] = bound[other] = true;
		}
		d->same = *same_text[t] ? same_text[t] : NULL;
		d->apart = *apart_text[t] ? apart_text[t] : NULL;
		min[t] = d->min_tpcs < home_size[t] ? home_size[t] : d->min_tpcs;
		max[t] = d->max_tpcs ? d->max_tpcs : 256;
		weight[t] = d->weight;
		rank[t] = t;
	}
	for (unsigned int t = 0; t < nr_t; t++) {
		demands[t].spread |= demands[t].gpcs && !bound[t] && !below(3);
		nr_balanced += demands[t].gpcs && demands[t].spread && nr_u == 2;
	}
	qsort(rank, nr_t, sizeof(rank[0]), rank_order);
}

/* ----------------------------------------------------------------- comparison */

static unsigned int nr_found, nr_refused, nr_wrong, nr_seen, nr_unordered, nr_advice, nr_bad_advice;
/* The number of sets that can run a cluster, and the number of sets that cannot run a cluster. */
static unsigned int nr_held, nr_not_held;

static void show(const struct gpupart_topology *topo, const struct gpupart_plan *plan)
{
	for (unsigned int g = 0; g < nr_g; g++)
		printf("# GPC %u: %u TPCs, %u for clusters, uGPU %u%s\n", g, size[g], main_size[g],
		       gpc_ugpu[g], intact[g] ? "" : ", not all in bounds");
	for (unsigned int t = 0; t < nr_t; t++) {
		const struct gpupart_demand *d = &demands[t];

		printf("# %s: min %u max %u%s%s home %u weight %u same %s apart %s:", d->name,
		       min[t], max[t], d->gpcs ? " gpcs" : "", d->spread ? " spread" : "",
		       home_size[t], weight[t], d->same ? d->same : "-", d->apart ? d->apart : "-");
		for (unsigned int g = 0; g < nr_g && nr_list && plan; g++) {
			struct gpupart_tpcset of = gpupart_topology_gpc(topo, g)->tpcs;

			of = gpupart_tpcset_and(&of, &plan->tenants[t].set);
			printf(" %u/%u", gpupart_tpcset_count(&of), list[0].x[t][g]);
		}
		printf(" home %d\n", nr_list ? list[0].home[t] : -1);
	}
}

/*
 * Checks that the sets have these numbers of TPCs, and are disjoint and within the bounds. Also
 * checks that each home is in one virtual GPC.
 */
static bool agrees(const struct gpupart_topology *topo, const struct gpupart_plan *plan)
{
	struct gpupart_tpcset seen = { 0 };
	bool equal = true;

	for (unsigned int t = 0; t < nr_t; t++) {
		const struct gpupart_tpcset *set = &plan->tenants[t].set;
		unsigned int most = 0;

		equal &= !gpupart_tpcset_intersects(&seen, set) &&
			 gpupart_tpcset_subset(set, &within);
		seen = gpupart_tpcset_or(&seen, set);
		for (unsigned int g = 0; g < nr_g; g++) {
			struct gpupart_tpcset of = gpupart_topology_gpc(topo, g)->tpcs;

			of = gpupart_tpcset_and(&of, set);
			equal &= gpupart_tpcset_count(&of) == list[0].x[t][g];
		}
		for (unsigned int v = 0; v < gpupart_topology_end_vgpc(topo); v++) {
			struct gpupart_tpcset of = gpupart_topology_vgpc(topo, v);

			of = gpupart_tpcset_and(&of, set);
			if (gpupart_tpcset_count(&of) > most)
				most = gpupart_tpcset_count(&of);
		}
		equal &= most >= home_size[t] && plan->tenants[t].ugpu == list[0].ugpu[t];
	}
	return equal && plan->optimal && plan->nr_tenants == nr_t;
}

/* Checks that a different order of the demands gives the same sets. */
static bool same_reversed(struct gpupart *gp, const struct gpupart_topology *topo,
			  const struct gpupart_plan *plan)
{
	struct gpupart_demand reversed[MAX_T];
	struct gpupart_plan again;
	bool equal;

	for (unsigned int t = 0; t < nr_t; t++)
		reversed[t] = demands[nr_t - 1 - t];
	equal = !gpupart_plan_make(gp, topo, &within, reversed, nr_t, &again);
	for (unsigned int t = 0; t < nr_t && equal; t++)
		equal = gpupart_tpcset_equal(&again.tenants[t].set,
					     &plan->tenants[nr_t - 1 - t].set);
	return equal;
}

static int plan_now(struct gpupart *gp, const struct gpupart_topology *topo)
{
	struct gpupart_plan plan;

	return gpupart_plan_make(gp, topo, &within, demands, nr_t, &plan);
}

static bool number_after(const char *text, const char *key, unsigned int *value)
{
	text = strstr(text, key);
	*value = text ? strtoul(text + strlen(key), NULL, 10) : 0;
	return text;
}

/*
 * Tries each suggestion of a message such as "tenant X: ...: min=3, or max=9, or cluster=4, or no
 * gpcs, ... would do". Also checks that one TPC more is not possible.
 */
static void check_advice(struct gpupart *gp, const struct gpupart_topology *topo)
{
	char said[512], *ways;
	struct gpupart_demand d;
	unsigned int t = 0, value;

	snprintf(said, sizeof(said), "%s", gpupart_error(gp));
	ways = strstr(said, " TPCs: ");
	if (!ways || strstr(said, "others do not fit") || !strstr(said, "would do"))
		return;
	while (t < nr_t && said[7] != *demands[t].name)
		t++;
	if (t == nr_t) {
		nr_bad_advice++;
		return;
	}
	d = demands[t];
	if (number_after(ways, "min=", &value)) {
		nr_advice++;
		demands[t].min_tpcs = value;
		nr_bad_advice += plan_now(gp, topo) != 0;
		demands[t].min_tpcs = value + 1;
		nr_bad_advice += plan_now(gp, topo) != -ENOSPC;
		demands[t] = d;
	}
	if (number_after(ways, "max=", &value)) {
		nr_advice++;
		demands[t].max_tpcs = value;
		nr_bad_advice += plan_now(gp, topo) != 0;
		demands[t].max_tpcs = value - 1;
		nr_bad_advice += plan_now(gp, topo) != -ENOSPC;
		demands[t] = d;
	}
	if (number_after(ways, "cluster=", &value)) {
		nr_advice++;
		demands[t].cluster = value;
		demands[t].min_tpcs = min[t];
		nr_bad_advice += plan_now(gp, topo) != 0;
		demands[t].cluster = 2 * value;
		nr_bad_advice += plan_now(gp, topo) != -ENOSPC;
		demands[t] = d;
	}
	if (strstr(ways, "shape=gpcs")) {
		nr_advice++;
		demands[t].spread = false;
		nr_bad_advice += plan_now(gp, topo) != 0;
		demands[t] = d;
	}
	if (strstr(ways, "no gpcs")) {
		nr_advice++;
		demands[t].gpcs = false;
		nr_bad_advice += plan_now(gp, topo) != 0;
		demands[t] = d;
	}
}

/* Makes all plans, and keeps only the best plans. */
static void solve(void)
{
	struct way w = { 0 };
	unsigned int first;

	nr_list = 0;
	list_counts(&w, 0, 0, size[0]);
	nr_seen += nr_list / 1000;
	if (too_many || !nr_list)
		return;
	level_ugpus();
	first = level_whole();
	level_amounts(first);
	level_sets(first);
}

/* Allocates up to @nr of the @left TPCs. Returns the number of allocated TPCs. */
static unsigned int take(unsigned int *left, unsigned int nr)
{
	nr = nr < *left ? nr : *left;
	*left -= nr;
	return nr;
}

/*
 * Converts the numbers in @w to individual TPCs. Then finds the tenants with 4 TPCs in one
 * virtual GPC.
 */
static void find_holders(const struct way *w, bool *holds)
{
	memset(holds, 0, MAX_T * sizeof(*holds));
	for (unsigned int g = 0; g < nr_g; g++) {
		unsigned int in = main_size[g], out = size[g] - main_size[g];
		unsigned int has[MAX_T] = { 0 }, rest[MAX_T];

		for (unsigned int i = 0; i < nr_t; i++) {
			if (w->home[rank[i]] == (int)g)
				has[rank[i]] = take(&in, home_size[rank[i]]);
			rest[rank[i]] = w->x[rank[i]][g] - has[rank[i]];
		}
		for (unsigned int i = 0; i < 2 * nr_t; i++) {
			unsigned int t = rank[i % nr_t];

			if ((home_size[t] > 1) == (i < nr_t)) {
				unsigned int inside = home_size[t] > 1 ? take(&in, rest[t]) :
						      rest[t] - take(&out, rest[t]);

				if (home_size[t] > 1)
					take(&out, rest[t] - inside);
				else
					take(&in, inside);
				has[t] += inside;
			}
		}
		for (unsigned int t = 0; t < nr_t; t++)
			holds[t] |= has[t] >= 4;
	}
}

/*
 * Gives a home of 4 TPCs to tenant @last. Also gives a home to each tenant of higher rank that
 * can hold a cluster.
 */
static void want_homes(unsigned int last, const bool *holds)
{
	for (unsigned int i = 0; i <= last; i++) {
		unsigned int t = rank[i];

		if ((i < last && !holds[t]) || home_size[t] >= 4)
			continue;
		home_size[t] = 4;
		min[t] = min[t] < 4 ? 4 : min[t];
	}
}

/* After solve(), applies the rule for clusters in gpupart_manage.h. */
static void hold_clusters(void)
{
	unsigned int min_was[MAX_T], home_was[MAX_T];
	struct way best;
	bool holds[MAX_T];

	for (unsigned int i = 0; i < nr_t && nr_list && !too_many; i++) {
		best = list[0];
		find_holders(&best, holds);
		if (total(&best, rank[i]) < 4 || holds[rank[i]])
			continue;
		memcpy(min_was, min, sizeof(min));
		memcpy(home_was, home_size, sizeof(home_size));
		want_homes(i, holds);
		solve();
		if (nr_list) {
			nr_held++;
			i = ~0u;
			continue;
		}
		nr_not_held++;
		memcpy(min, min_was, sizeof(min));
		memcpy(home_size, home_was, sizeof(home_size));
		list[0] = best;
		nr_list = 1;
	}
}

static void compare(struct gpupart *gp, unsigned int max_size, unsigned int most, bool whole_only)
{
	struct gpupart_topology *topo = make_gpu(max_size);
	struct gpupart_plan plan;
	int err;

	if (!topo) {
		nr_wrong++;
		return;
	}
	ask(most, whole_only);
	too_many = false;
	solve();
	if (too_many)
		goto close_topo;
	err = gpupart_plan_make(gp, topo, &within, demands, nr_t, &plan);
	if (!nr_list || err) {
		nr_refused++;
		if (nr_list || err != -ENOSPC) {
			printf("# %d, %u ways: %s\n", err, nr_list, gpupart_error(gp));
			show(topo, NULL);
			nr_wrong++;
		}
		check_advice(gp, topo);
		goto close_topo;
	}
	hold_clusters();
	if (too_many)
		goto close_topo;
	nr_found++;
	if (!nr_list || !agrees(topo, &plan)) {
		if (nr_wrong++ < 3) {
			printf("# not the best (%u): set/best of each GPC\n", nr_list);
			show(topo, &plan);
		}
	}
	nr_unordered += !same_reversed(gp, topo, &plan);
close_topo:
	gpupart_topology_close(topo);
}

static void kind(struct gpupart *gp, const char *what, unsigned int times, unsigned int gpcs,
		 unsigned int tenants, unsigned int max_size, unsigned int most, bool whole_only)
{
	nr_found = nr_refused = nr_wrong = nr_seen = nr_unordered = 0;
	for (unsigned int i = 0; i < times; i++) {
		nr_g = 1 + below(gpcs);
		nr_t = 1 + below(tenants);
		nr_u = nr_g > 1 ? 1 + below(2) : 1;
		compare(gp, max_size, most, whole_only);
	}
	tap_ok(!nr_wrong && nr_found > times / 8,
	       "%s: %u plans are the best of all, %u refused have none; %u wrong (%u thousand ways)",
	       what, nr_found, nr_refused, nr_wrong, nr_seen);
	tap_ok(!nr_unordered, "%s: the demands in another order, the same sets", what);
}

int main(void)
{
	struct gpupart *gp;

	list = malloc(MAX_LIST * sizeof(*list));
	if (!list || gpupart_open(&gp))
		return 1;
	kind(gp, "3 GPCs of 4, 3 tenants", 3000, 3, 3, 4, 60, false);
	kind(gp, "3 GPCs of 4, 3 tenants, tight", 2000, 3, 3, 4, 120, false);
	kind(gp, "3 GPCs of 3, 4 tenants", 1500, 3, 4, 3, 60, false);
	kind(gp, "2 GPCs of 3, 5 tenants", 3000, 2, 5, 3, 50, false);
	kind(gp, "6 GPCs of 9, 4 tenants, all whole", 4000, 6, 4, 9, 90, true);
	kind(gp, "4 GPCs of 2, 4 tenants", 2000, 4, 4, 2, 50, false);
	tap_ok(nr_held > 200 && nr_not_held > 50,
	       "%u sets hold a cluster of 8 by the rule for that, %u cannot", nr_held, nr_not_held);
	tap_ok(nr_balanced > 1000, "%u demands for GPCs of both uGPUs, as many of each",
	       nr_balanced);
	tap_ok(!nr_bad_advice && nr_advice > 200,
	       "what would do does, and one more would not: %u sentences, %u wrong", nr_advice,
	       nr_bad_advice);
	gpupart_close(gp);
	free(list);
	return tap_done();
}
