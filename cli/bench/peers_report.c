// SPDX-License-Identifier: MIT
/* Reports the results of the part peers: tables, a picture, and the comparison with each peer. */
#include <string.h>
#include "cli/bench/peers.h"

/* Returns the way in which program @n runs alone, or NULL if this way was not measured. */
static const struct peers_way *alone(const struct peers_way *ways, unsigned int nr, unsigned int n)
{
	for (unsigned int i = 0; i < nr; i++)
		if (ways[i].kind == PEERS_ALONE && ways[i].command[n] && !*ways[i].why)
			return &ways[i];
	return NULL;
}

/* Returns the figure @f of @way as a part of the same figure of @solo. */
static json_t *part(const struct peers_way *way, const struct peers_way *solo, enum peers_figure f)
{
	return solo && solo->figures[f].value > 0 ?
	       json_real(way->figures[f].value / solo->figures[f].value) : json_null();
}

/* Appends a figure and the bounds of its interval to @row. */
static void add_value(json_t *row, const struct peers_value *value)
{
	json_array_append_new(row, json_real(value->value));
	json_array_append_new(row, json_real(value->low));
	json_array_append_new(row, json_real(value->high));
}

static json_t *add_row(json_t *table, const struct peers_way *way)
{
	json_t *row = json_pack("[s]", way->name);

	json_array_append_new(json_object_get(table, "rows"), row);
	return row;
}

static void report_speeds(json_t *report, const struct peers_way *ways, unsigned int nr)
{
	json_t *table = report_table_whole(report, "Speed", "way|A a second|from|to|of alone|"
					   "B a second|from|to|of alone");
	const struct peers_way *a = alone(ways, nr, 0), *b = alone(ways, nr, 1);

	for (unsigned int i = 0; i < nr; i++) {
		json_t *row = *ways[i].why ? NULL : add_row(table, &ways[i]);

		if (!row) {
			report_mean(report, "Not measured: %s: %s.", ways[i].name, ways[i].why);
			continue;
		}
		add_value(row, &ways[i].figures[PEERS_RATE]);
		json_array_append_new(row, part(&ways[i], a, PEERS_RATE));
		add_value(row, &ways[i].figures[PEERS_OTHER]);
		json_array_append_new(row, part(&ways[i], b, PEERS_OTHER));
		if (ways[i].kind == PEERS_COST)
			report_mean(report, "Not compared: %s, which shows what gpupart itself "
				    "costs.", ways[i].name);
	}
}

/* If A completed no unit of work, it has no latency and no row. */
static void report_latencies(json_t *report, const struct peers_way *ways, unsigned int nr)
{
	json_t *table = report_table_whole(report, "Latency of A", "way|p50 ms|from|to|p99 ms|"
					   "from|to|of alone|p99.9 ms|from|to|of alone");
	const struct peers_way *solo = alone(ways, nr, 0);

	for (unsigned int i = 0; i < nr; i++) {
		const struct peers_value *f = ways[i].figures;
		json_t *row = f[PEERS_RATE].value > 0 && !*ways[i].why ?
			      add_row(table, &ways[i]) : NULL;

		if (!row)
			continue;
		add_value(row, &f[PEERS_P50]);
		add_value(row, &f[PEERS_P99]);
		json_array_append_new(row, part(&ways[i], solo, PEERS_P99));
		add_value(row, &f[PEERS_P999]);
		json_array_append_new(row, part(&ways[i], solo, PEERS_P999));
	}
}

/*
 * Draws the speed of B against the latency of A. A program with a request rate has the same speed
 * in nearly all ways, so A's speed would not distinguish them.
 */
static void draw(json_t *report, const struct peers_way *ways, unsigned int nr)
{
	const struct peers_way *a = alone(ways, nr, 0), *b = alone(ways, nr, 1);
	bool has_solo = a && b && a->figures[PEERS_P99].value > 0 &&
			b->figures[PEERS_OTHER].value > 0;
	json_t *chart =
		report_chart(report, "peers.svg", REPORT_POINTS, "Two programs that share the GPU",
			     has_solo ? "A, p99 latency alone / p99 latency (numbers: TPCs or "
			     "percentage of A, or TPCs of A/B)" : "A, p99 latency in ms (numbers: "
			     "TPCs or percentage of A, or TPCs of A/B)",
			     has_solo ? "B, fraction of solo speed" : "B, units a second", false);

	for (unsigned int i = 0; i < nr; i++) {
		const struct peers_value *f = ways[i].figures;

		if (ways[i].kind == PEERS_ALONE || *ways[i].why || !(f[PEERS_RATE].value > 0))
			continue;
		report_mark(chart, *ways[i].size ? ways[i].family : ways[i].name, has_solo ?
			    a->figures[PEERS_P99].value / f[PEERS_P99].value : f[PEERS_P99].value,
			    has_solo ? f[PEERS_OTHER].value / b->figures[PEERS_OTHER].value :
			    f[PEERS_OTHER].value, json_string(ways[i].size));
	}
}

/* ---------------------------------------------------------------------- comparison */

/* A peer and the ways of gpupart that are the nearest to it. */
struct nearest {
	const struct peers_way *by_verdict[PEERS_BETTER + 1];
	enum peers_figure worst;	/* of by_verdict[PEERS_WORSE] */
	double loss;
};

static void find_nearest(const struct peers_way *ways, unsigned int nr,
			 const struct peers_way *peer, struct nearest *found)
{
	enum peers_verdict verdict;
	enum peers_figure worst;
	double loss;

	*found = (struct nearest){ .loss = 0 };
	for (unsigned int i = 0; i < nr; i++) {
		if (ways[i].kind != PEERS_OURS || *ways[i].why)
			continue;
		verdict = peers_compare(ways[i].figures, peer->figures, &worst, &loss);
		if (verdict != PEERS_WORSE) {
			found->by_verdict[verdict] = &ways[i];
		} else if (!found->by_verdict[PEERS_WORSE] || loss < found->loss) {
			found->by_verdict[PEERS_WORSE] = &ways[i];
			found->worst = worst;
			found->loss = loss;
		}
	}
	if (!found->by_verdict[PEERS_EQUAL])
		found->by_verdict[PEERS_EQUAL] = found->by_verdict[PEERS_BETTER];
}

static const char *name_of(const struct peers_way *way)
{
	return way ? way->name : "none";
}

/* Describes why no way of gpupart is as good as @peer. If there is such a way, returns "". */
static const char *shortfall(const struct nearest *found, const struct peers_way *peer,
			     char text[160])
{
	static const char *const names[] = {
		[PEERS_RATE] = "A a second", [PEERS_P99] = "A's p99 ms",
		[PEERS_OTHER] = "B a second",
	};
	const struct peers_way *way = found->by_verdict[PEERS_WORSE];
	char numbers[2][32];

	*text = 0;
	if (found->by_verdict[PEERS_EQUAL] || !way)
		return text;
	snprintf(text, 160, "%s: %s %s, peer %s", way->name, names[found->worst],
		 report_number(way->figures[found->worst].value, numbers[0]),
		 report_number(peer->figures[found->worst].value, numbers[1]));
	return text;
}

static void compare(json_t *report, const struct peers_way *ways, unsigned int nr, bool is_judged)
{
	unsigned int nr_peers = 0, nr_all = 0, nr_held = 0, nr_better = 0;
	char text[160], measured[64] = "";
	json_t *table = NULL;
	struct nearest found;

	for (unsigned int i = 0; i < nr; i++) {
		nr_all += ways[i].kind == PEERS_PEER;
		if (ways[i].kind != PEERS_PEER || *ways[i].why)
			continue;
		if (!table)
			table = report_table(report, "Peers", "peer|not worse|10% better|"
					     "if none: the nearest, and the figure that is worse");
		find_nearest(ways, nr, &ways[i], &found);
		report_row(table, "[s,s,s,s]", ways[i].name,
			   name_of(found.by_verdict[PEERS_EQUAL]),
			   name_of(found.by_verdict[PEERS_BETTER]),
			   shortfall(&found, &ways[i], text));
		nr_peers++;
		nr_held += found.by_verdict[PEERS_EQUAL] != NULL;
		nr_better += found.by_verdict[PEERS_BETTER] != NULL;
	}
	if (!nr_peers)
		return;
	if (nr_peers < nr_all)
		snprintf(measured, sizeof(measured), " (only %u of %u peers were measured)",
			 nr_peers, nr_all);
	snprintf(text, sizeof(text), "share of the peers for which a way of gpupart is not worse "
		 "in either program%s", measured);
	report_check(report, is_judged, text, (double)nr_held / nr_peers, REPORT_AT_LEAST, 1);
	snprintf(text, sizeof(text), "share for which one is 10%% better in one program and not "
		 "worse in the other%s", measured);
	report_check(report, is_judged, text, (double)nr_better / nr_peers, REPORT_AT_LEAST, 0.5);
}

void peers_report(json_t *report, const struct peers_way *ways, unsigned int nr, bool compares,
		  bool is_judged)
{
	report_speeds(report, ways, nr);
	report_latencies(report, ways, nr);
	draw(report, ways, nr);
	if (compares)
		compare(report, ways, nr, is_judged);
}
