// SPDX-License-Identifier: MIT
/*
 * Tests the computations of bench: statistics, unions of intervals, axes, sets on every board.
 */
#include <math.h>
#include <stdlib.h>
#include "tests/tap.h"
#include "cli/bench/peers_figures.c"
#include "cli/bench/peers_report.c"
#include "cli/bench/report.c"
#include "cli/bench/report_svg.c"
#include "cli/bench/sets.c"
#include "cli/bench/stats.c"

static bool near(double a, double b)
{
	return fabs(a - b) < 1e-9 * (1 + fabs(b));
}

static void test_stats(void)
{
	double odd[] = { 5, 1, 3 }, even[] = { 4, 1, 3, 2 }, hundred[100], one[] = { 7 };
	struct stats s;

	tap_ok(stats_median(odd, 3) == 3, "the median of three is the middle one");
	tap_ok(stats_median(even, 4) == 2.5, "of four the mean of the two in the middle");
	tap_ok(stats_median(odd, 0) == 0, "of none 0");
	for (int i = 0; i < 100; i++)
		hundred[i] = 100 - i;
	s = stats_of(hundred, 100);
	tap_ok(s.p99 == 99 && s.max == 100 && s.min == 1 && s.nr == 100,
	       "99%% of 1 to 100 do not exceed 99 (%g)", s.p99);
	tap_ok(stats_quantile(hundred, 100, 1) == 1 && stats_quantile(hundred, 100, 50) == 50 &&
	       stats_quantile(hundred, 99, 1) == 1 && stats_quantile(hundred, 0, 50) == 0,
	       "1%% do not exceed 1, 50%% not 50; of none 0");
	tap_ok(near(s.mean, 50.5) && near(s.sd, sqrt(100 * 101 / 12.0)),
	       "mean and standard deviation (%g, %g)", s.mean, s.sd);
	s = stats_of(one, 1);
	tap_ok(s.p99 == 7 && s.sd == 0 && s.median == 7, "of one: itself, no deviation");
	s = stats_of(one, 0);
	tap_ok(!s.nr && !s.mean && !s.p99, "of none: nothing");
}

/* If high values follow low values, the times have not settled. */
static void test_settled(void)
{
	const double dips[] = { 300, 150, 156, 155, 152, 145 }, falls[] = { 9, 8, 7 },
		     flat[] = { 5, 5, 5 };
	/* L2 reads on sets spread over 31 to 40 of the 66 TPCs of an H200, and on all TPCs. */
	const double h200[] = { 150.6, 149.4, 152.1, 155.8, 154.9, 152.9, 150.1, 149.6, 148.6,
				146.9, 145.2 };

	tap_ok(stats_settled(dips, 6, 1.05) == 4, "settled where all behind are as low (%u)",
	       stats_settled(dips, 6, 1.05));
	tap_ok(stats_settled(h200, 11, 1.05) == 6, "on an H200 from 37 TPCs on (%u)",
	       31 + stats_settled(h200, 11, 1.05));
	tap_ok(stats_settled(falls, 3, 1.05) == 2, "what falls to the end: at the last");
	tap_ok(stats_settled(flat, 3, 1.05) == 0, "what never changes: at the first");
	tap_ok(stats_settled(flat, 0, 1.05) == 0, "of none: 0");
}

static void test_spans(void)
{
	struct stats_span spans[] = { { 50, 60 }, { 10, 20 }, { 20, 30 }, { 12, 15 }, { 25, 40 } },
			  whole = { 12, 38 }, half = { 30, 50 }, none = { 100, 200 },
			  empty = { 5, 5 };
	unsigned int nr = stats_join(spans, 5);

	tap_ok(nr == 2 && spans[0].start == 10 && spans[0].end == 40 && spans[1].start == 50,
	       "spans that touch or hold each other are one (%u left)", nr);
	tap_ok(stats_covered(spans, nr, &whole) == 1, "a span inside is covered");
	tap_ok(stats_covered(spans, nr, &half) == 0.5, "one half outside is half covered");
	tap_ok(stats_covered(spans, nr, &none) == 0, "one outside is not");
	tap_ok(stats_covered(spans, nr, &empty) == 0, "an empty one is not");
	tap_ok(stats_join(spans, 0) == 0, "no spans stay none");
}

static void test_axes(void)
{
	static const struct {
		double range, step;
	} steps[] = { { 8, 1 }, { 9, 2 }, { 66, 10 }, { 0.8, 0.1 }, { 1000, 200 }, { 41, 10 } };
	struct axis axis = { .min = 3, .max = 66 }, log_axis = { .log = true };
	bool any = false;

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		tap_ok(near(stats_step(steps[i].range, 8), steps[i].step),
		       "at most 8 steps of %g: %g", steps[i].range, stats_step(steps[i].range, 8));
	tap_ok(stats_step(0, 8) == 1 && stats_step(-1, 8) == 1, "no range: a step all the same");
	axis_round(&axis, true);
	tap_ok(axis.min == 0 && axis.max == 70 && axis.step == 10,
	       "an axis from 0 to a whole step");
	tap_ok(near(scaled(&axis, 35), 0.5), "its middle is in the middle");
	axis_include(&log_axis, 1.3, &any);
	axis_include(&log_axis, 0, &any);
	axis_include(&log_axis, 120, &any);
	axis_round(&log_axis, false);
	tap_ok(log_axis.min == 0 && near(log_axis.max, log10(200)),
	       "a logarithmic one: from a power of ten to 1, 2 or 5 of one; 0 is not on it");
	tap_ok(near(scaled(&log_axis, 200), 1) && near(scaled(&log_axis, 1), 0), "to scale");
}

/* Returns true if every number after @attribute in @text is between 0 and @max. */
static bool all_inside(const char *text, const char *attribute, double max)
{
	unsigned int nr = 0;

	for (const char *at = text; (at = strstr(at, attribute)); nr++) {
		double value = atof(at += strlen(attribute));

		if (!(value >= 0 && value <= max))
			return false;
	}
	return nr > 0;
}

static void test_chart(const char *chart_text, const char *what)
{
	json_t *chart = json_loads(chart_text, 0, NULL);
	char *text = NULL;
	size_t len;
	FILE *file = open_memstream(&text, &len);

	report_svg(file, chart, true);
	fclose(file);
	tap_ok(strstr(text, ">simulated<") && strstr(text, "</svg>"), "%s: whole, and simulated",
	       what);
	tap_ok(all_inside(text, " y=\"", 2000) && all_inside(text, " x=\"", WIDTH) &&
	       !strstr(text, "\"-") && !strstr(text, "nan"), "%s: nothing outside", what);
	tap_ok(strstr(text, "a &lt;b&gt; &amp; c") != NULL, "%s: words are escaped", what);
	free(text);
	json_decref(chart);
}

/* Checks that a chart has @nr letters, and that no letter covers another letter. */
static void test_letters(const char *chart_text, unsigned int nr, const char *what)
{
	json_t *chart = json_loads(chart_text, 0, NULL);
	double (*at)[2] = calloc(nr, sizeof(*at)), width, height;
	unsigned int found = 0, covered = 0;
	char *text = NULL;
	size_t len;
	FILE *file = open_memstream(&text, &len);

	report_svg(file, chart, true);
	fclose(file);
	for (const char *line = text; (line = strstr(line, "<rect ")); line++) {
		double x, y;

		if (sscanf(line, "<rect x=\"%lf\" y=\"%lf\" width=\"%lf\" height=\"%lf\"", &x, &y,
			   &width, &height) != 4 || height != 12 ||
		    !memmem(line, strcspn(line, "\n"), "rx=\"2\"", 6))
			continue;
		for (unsigned int i = 0; i < found && i < nr; i++)
			covered += fabs(at[i][0] - x) < width && fabs(at[i][1] - y) < height;
		if (found < nr)
			memcpy(at[found], (double[]){ x, y }, sizeof(at[0]));
		found++;
	}
	tap_ok(found == nr && !covered, "%s: %u letters of %u, %u on another", what, found, nr,
	       covered);
	free(at);
	free(text);
	json_decref(chart);
}

#define CHART(kind, log, series) \
	"{\"kind\":\"" kind "\",\"title\":\"a <b> & c\",\"x\":\"x\",\"y\":\"u\",\"log\":" log \
	",\"series\":[" series "]}"
#define SERIES(label, points) "{\"label\":\"" label "\",\"points\":[" points "]}"

static void test_charts(void)
{
	test_chart(CHART("bars", "true", SERIES("s", "[\"A\",0.99],[\"B\",11.5]") ","
			 SERIES("t", "[\"B\",0.5]")), "bars below 1");
	test_chart(CHART("bars", "true", SERIES("s", "[\"A\",0.99],[\"B\",6]")),
		   "a bar a little below 1");
	test_chart(CHART("lines", "true", SERIES("s", "[1,500],[2,250.5],[66,9]")), "lines");
	test_chart(CHART("timeline", "false", SERIES("s", "[\"1\",0,5],[\"2\",4,9]")),
		   "a timeline");
	test_chart(CHART("points", "false", SERIES("s", "[1,500,\"46\"],[2,250.5,\"&\"]")),
		   "points");
	test_chart(CHART("bars", "false", SERIES("s", "")), "no bars at all");
#define EQUAL "[1,1,\"3\"],[1,1,\"5\"],[1,1.02,\"4\"]"
	test_letters(CHART("points", "false", SERIES("s", EQUAL ",[9,9,\"\"]") ","
			   SERIES("t", EQUAL ",[9,9,\"\"]")), 2 + 8, "equal points");
	test_letters(CHART("lines", "false", SERIES("s", "[0,1],[5,0.61],[5,0.2]") ","
			   SERIES("t", "[5,0.62]") "," SERIES("u", "[5,0.6]")), 3 + 5,
		     "lines with points that are almost equal");
}

static bool disjoint(const struct sets *sets, int which)
{
	return !gpupart_tpcset_intersects(&sets->of[which].victim, &sets->of[which].neighbour);
}

static int ugpu_of(const struct gpupart_topology *topo, const struct gpupart_tpcset *set)
{
	int first = gpupart_tpcset_next(set, 0), ugpu = gpupart_topology_tpc(topo, first)->ugpu;

	for (int t = first; t >= 0; t = gpupart_tpcset_next(set, t + 1))
		if (gpupart_topology_tpc(topo, t)->ugpu != ugpu)
			return -2;
	return ugpu;
}

/* If a TPC is in several sets, returns -1. */
static int ugpus_differ(const struct gpupart_topology *topo, const struct sets *s, int which)
{
	int victim = ugpu_of(topo, &s->of[which].victim),
	    neighbour = ugpu_of(topo, &s->of[which].neighbour);

	return victim < 0 || neighbour < 0 ? -1 : victim != neighbour;
}

static unsigned int nr_gpcs_of(const struct gpupart_topology *topo,
			       const struct gpupart_tpcset *set)
{
	unsigned int nr = 0;

	for (unsigned int gpc = 0; gpc < gpupart_topology_nr_gpcs(topo); gpc++)
		nr += gpupart_tpcset_intersects(&gpupart_topology_gpc(topo, gpc)->tpcs, set);
	return nr;
}

static bool is_right(const struct gpupart_topology *topo, const struct sets *s)
{
	struct gpupart_tpcset all = gpupart_topology_all(topo), both;

	for (int which = SETS_INTERLEAVED; which < SETS_REST; which++)
		if (!disjoint(s, which) ||
		    gpupart_tpcset_count(&s->of[which].victim) != s->nr_tpcs ||
		    gpupart_tpcset_count(&s->of[which].neighbour) != s->nr_tpcs)
			return false;
	both = gpupart_tpcset_or(&s->of[SETS_REST].victim, &s->of[SETS_REST].neighbour);
	return s->nr_tpcs == SETS_TPCS && disjoint(s, SETS_REST) &&
	       gpupart_tpcset_equal(&both, &all) &&
	       gpupart_tpcset_count(&s->of[SETS_NONE].victim) == 2 * SETS_TPCS &&
	       gpupart_tpcset_equal(&s->of[SETS_NONE].victim, &s->of[SETS_NONE].neighbour) &&
	       nr_gpcs_of(topo, &s->of[SETS_INTERLEAVED].victim) == 2 &&
	       nr_gpcs_of(topo, &s->of[SETS_INTERLEAVED].neighbour) == 2 &&
	       nr_gpcs_of(topo, &s->of[SETS_GPC].victim) == 1 &&
	       nr_gpcs_of(topo, &s->of[SETS_GPC].neighbour) == 1 &&
	       ugpus_differ(topo, s, SETS_GPC) == 0 && ugpus_differ(topo, s, SETS_UGPU) == 1;
}

/* Each set contains the previous set and one more TPC. */
static bool grows(const struct gpupart_topology *topo,
		  struct gpupart_tpcset (*form)(const struct gpupart_topology *, unsigned int))
{
	struct gpupart_tpcset before = { { 0 } };

	for (unsigned int nr = 1; nr <= gpupart_topology_nr_tpcs(topo); nr++) {
		struct gpupart_tpcset set = form(topo, nr);

		if (gpupart_tpcset_count(&set) != nr || !gpupart_tpcset_subset(&before, &set))
			return false;
		before = set;
	}
	return true;
}

static void test_board(struct gpupart *gp, const char *board)
{
	struct gpupart_topology *topo;
	struct gpupart_tpcset set;
	struct sets sets;
	char path[64];

	snprintf(path, sizeof(path), "tests/data/gh100-h200-%s/capture.txt", board);
	if (!tap_ok(!gpupart_topology_open(gp, path, NULL, &topo), "board %s", board))
		return;
	sets_choose(topo, &sets);
	tap_ok(is_right(topo, &sets), "board %s: sets as they are called", board);
	tap_ok(grows(topo, sets_packed) && grows(topo, sets_spread),
	       "board %s: packed and spread sets of every size, each in the next", board);
	set = sets_spread(topo, gpupart_topology_nr_gpcs(topo));
	tap_ok(nr_gpcs_of(topo, &set) == gpupart_topology_nr_gpcs(topo),
	       "board %s: spread is one of each GPC", board);
	gpupart_topology_close(topo);
}

/*
 * Fills in measurements of @nr seconds, with @rate units in each second. A unit takes @ms, but
 * every hundredth unit takes ten times as long. Program B made @other units.
 */
static struct peers_second *seconds_of(unsigned int nr, unsigned int rate, float ms,
				       unsigned int other)
{
	struct peers_second *seconds = calloc(nr, sizeof(*seconds));

	for (unsigned int i = 0; i < nr; i++) {
		/* A difference of one unit may be chance. */
		seconds[i].nr_b = other + i % 2;
		for (unsigned int k = 0; k < rate + i % 3; k++)
			peers_add_time(&seconds[i], k % 100 ? ms : 10 * ms);
	}
	return seconds;
}

static void figures_for(unsigned int rate, float ms, unsigned int other,
			struct peers_value figures[PEERS_NR])
{
	struct peers_second *seconds = seconds_of(15, rate, ms, other);

	peers_figures(seconds, 15, true, figures);
	for (int i = 0; i < 15; i++)
		free(seconds[i].ms);
	free(seconds);
}

static enum peers_verdict compared(const struct peers_value ours[PEERS_NR],
				   const struct peers_value peer[PEERS_NR])
{
	enum peers_figure worst;
	double loss;

	return peers_compare(ours, peer, &worst, &loss);
}

static void test_peers(void)
{
	static const float values[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 };
	struct peers_value peer[PEERS_NR], ours[PEERS_NR], none[PEERS_NR];

	tap_ok(peers_quantile(values, 10, 500) == 5 && peers_quantile(values, 10, 990) == 10 &&
	       peers_quantile(values, 10, 1) == 1 && peers_quantile(values, 0, 500) == 0,
	       "peers: quantiles");
	figures_for(200, 2, 50, peer);
	tap_ok(near(peer[PEERS_RATE].value, 201) && peer[PEERS_P50].value == 2 &&
	       peer[PEERS_P999].value == 20 && near(peer[PEERS_OTHER].value, 50 + 7 / 15.0),
	       "peers: the figures of 15 seconds (%g, %g, %g, %g)", peer[PEERS_RATE].value,
	       peer[PEERS_P50].value, peer[PEERS_P999].value, peer[PEERS_OTHER].value);
	tap_ok(peer[PEERS_RATE].low < 201 && peer[PEERS_RATE].high > 201 &&
	       peer[PEERS_RATE].low > 200 && peer[PEERS_RATE].high < 202,
	       "peers: the rate's interval is within those of the seconds (%g to %g)",
	       peer[PEERS_RATE].low, peer[PEERS_RATE].high);
	tap_ok(compared(peer, peer) == PEERS_EQUAL, "peers: the same is equal");
	figures_for(200, 2, 56, ours);
	tap_ok(compared(ours, peer) == PEERS_BETTER, "peers: B 12%% faster is better");
	tap_ok(compared(peer, ours) == PEERS_WORSE, "peers: and the other way round worse");
	figures_for(200, 2, 54, ours);
	tap_ok(compared(ours, peer) == PEERS_EQUAL, "peers: 8%% is not 10%%");
	figures_for(200, 3, 70, ours);
	tap_ok(compared(ours, peer) == PEERS_WORSE,
	       "peers: A slower is worse, whatever B gains");
	figures_for(150, 2, 70, ours);
	tap_ok(compared(ours, peer) == PEERS_WORSE, "peers: so is a lower rate of A");
	figures_for(0, 2, 50, none);
	none[PEERS_RATE] = none[PEERS_P99] = (struct peers_value){ 0, 0, 0 };
	tap_ok(compared(peer, none) == PEERS_BETTER &&
	       compared(none, peer) == PEERS_WORSE,
	       "peers: an A that does nothing is worse, though it has no latency");
	peers_figures(NULL, 0, true, none);
	tap_ok(none[PEERS_RATE].value == 0 && none[PEERS_P99].high == 0, "peers: of nothing 0");
}

/* In each of 10 seconds, A completes 20000 units, which take 1 ms, 2 ms, and so on. */
static void test_peers_fast(void)
{
	struct peers_second seconds[10] = { 0 };
	struct peers_value figures[PEERS_NR];

	for (unsigned int i = 0; i < 200000; i++)
		peers_add_time(&seconds[i / 20000], i % 20000 + 1);
	peers_figures(seconds, 10, true, figures);
	tap_ok(figures[PEERS_RATE].value == 20000 && figures[PEERS_RATE].low == 20000,
	       "peers: every unit of a fast program counts (%g)", figures[PEERS_RATE].value);
	tap_ok(fabs(figures[PEERS_P50].value / 10000 - 1) < 0.03 &&
	       fabs(figures[PEERS_P99].value / 19800 - 1) < 0.003 &&
	       figures[PEERS_P99].low < figures[PEERS_P99].high,
	       "peers: its stored latencies are from the whole second (%g, %g)",
	       figures[PEERS_P50].value, figures[PEERS_P99].value);
	peers_figures(seconds, 10, false, figures);
	tap_ok(figures[PEERS_RATE].value == 20000 &&
	       fabs(figures[PEERS_P50].value / 10000 - 1) < 0.03,
	       "peers: the same figures without intervals");
	for (int i = 0; i < 10; i++)
		free(seconds[i].ms);
}

static const char *cell(const json_t *report, const char *title, size_t row, size_t column,
			char text[32])
{
	const json_t *rows = json_object_get(report_find_table(report, title), "rows"),
		     *value = json_array_get(json_array_get(rows, row), column);

	if (json_is_string(value))
		return json_string_value(value);
	return json_is_real(value) ? report_number(json_real_value(value), text) : "-";
}

static bool is_cell(const json_t *report, const char *title, size_t row, size_t column,
		    const char *wanted)
{
	char text[32];
	const char *got = cell(report, title, row, column, text);

	if (strcmp(got, wanted))
		printf("# %s, row %zu, column %zu: %s, wanted %s\n", title, row, column, got,
		       wanted);
	return !strcmp(got, wanted);
}

static size_t nr_rows(const json_t *report, const char *title)
{
	return json_array_size(json_object_get(report_find_table(report, title), "rows"));
}

/* The point of a chart's series: "LABEL X Y WORDS", or "". */
static const char *point_of(const json_t *report, size_t series, size_t point, char text[128])
{
	const json_t *chart = json_array_get(json_object_get(report, "charts"), 0),
		     *of = json_array_get(json_object_get(chart, "series"), series),
		     *at = json_array_get(json_object_get(of, "points"), point);

	*text = 0;
	if (at)
		snprintf(text, 128, "%s %.3f %.3f %s", report_at(of, "label"),
			 json_number_value(json_array_get(at, 0)),
			 json_number_value(json_array_get(at, 1)),
			 json_string_value(json_array_get(at, 2)));
	return text;
}

/* Returns the string @n of @list, or the string @key of object @n. If it is missing, returns "". */
static const char *text_at(const json_t *report, const char *list, size_t n, const char *key)
{
	const json_t *item = json_array_get(json_object_get(report, list), n);

	return key ? report_at(item, key) : json_string_value(item) ?: "";
}

/* Alone, A has a p99 latency of 10 ms and B has 100 units a second. */
static void test_peers_report(void)
{
	static struct peers_way ways[] = {
		{ .name = "A alone", .family = "alone", .command = { "a" } },
		{ .name = "B alone", .family = "alone", .command = { NULL, "b" } },
		{ .name = "MPS", .family = "mps", .kind = PEERS_PEER },
		{ .name = "starved", .family = "starved", .kind = PEERS_PEER },
		{ .name = "broken", .family = "packed", .size = "9", .kind = PEERS_OURS,
		  .why = "A ended" },
		{ .name = "packed 24", .family = "packed", .size = "24", .kind = PEERS_OURS },
		{ .name = "packed 33", .family = "packed", .size = "33", .kind = PEERS_OURS },
		{ .name = "qos", .family = "qos", .kind = PEERS_OURS },
		/* better than each peer */
		{ .name = "overlap 66", .family = "overlap", .kind = PEERS_COST },
	};
	static const double values[][PEERS_NR] = {
		{ 250, 8, 10, 11, 0 }, { 0, 0, 0, 0, 100 }, { 250, 12, 20, 40, 50 },
		{ 0, 0, 0, 0, 90 }, { 0 }, { 250, 14, 25, 30, 60 }, { 250, 10, 16, 18, 45 },
		{ 250, 9, 12, 13, 10 }, { 500, 6, 8, 9, 95 },
	};
	json_t *report = report_new("peers", "x", false), *few = report_new("peers", "x", false),
	       *part = report_new("peers", "x", false);
	char text[128];

	for (unsigned int i = 0; i < 9; i++)
		for (unsigned int f = 0; f < PEERS_NR; f++)
			ways[i].figures[f] = (struct peers_value){
				values[i][f], 0.99 * values[i][f], 1.01 * values[i][f],
			};
	peers_report(report, ways, 9, true, true);
	tap_ok(nr_rows(report, "Speed") == 8 && is_cell(report, "Speed", 2, 0, "MPS") &&
	       is_cell(report, "Speed", 2, 5, "50.00") && is_cell(report, "Speed", 2, 6, "49.50") &&
	       is_cell(report, "Speed", 2, 7, "50.50") && is_cell(report, "Speed", 2, 8, "0.500"),
	       "peers: speeds with intervals, and as a part of the solo speed");
	tap_ok(nr_rows(report, "Latency of A") == 6 &&
	       is_cell(report, "Latency of A", 1, 0, "MPS") &&
	       is_cell(report, "Latency of A", 1, 2, "11.88") &&
	       is_cell(report, "Latency of A", 1, 7, "2.000") &&
	       is_cell(report, "Latency of A", 1, 8, "40.00") &&
	       is_cell(report, "Latency of A", 1, 9, "39.60") &&
	       is_cell(report, "Latency of A", 1, 10, "40.40"),
	       "peers: each percentile with its interval; an A that does nothing has no latency");
	tap_ok(nr_rows(report, "Peers") == 2 && is_cell(report, "Peers", 0, 1, "none") &&
	       is_cell(report, "Peers", 0, 2, "none") &&
	       is_cell(report, "Peers", 0, 3, "packed 33: B a second 45.00, peer 50.00"),
	       "peers: none is as good as MPS, and the table has the nearest and what is worse");
	tap_ok(is_cell(report, "Speed", 7, 0, "overlap 66") &&
	       is_cell(report, "Latency of A", 5, 0, "overlap 66") &&
	       !strcmp(text_at(report, "meaning", 1, NULL), "Not compared: overlap 66, which shows "
		       "what gpupart itself costs."),
	       "peers: the way that shows what gpupart costs is shown, but not compared");
	for (unsigned int f = 0; f < PEERS_NR; f++)
		ways[6].figures[f].high += ways[6].figures[f].value / 5;
	peers_report(few, ways, 9, false, true);
	tap_ok(!report_find_table(few, "Peers") && !json_array_size(json_object_get(few, "checks")),
	       "peers: if it was measured for a short time, nothing is compared");
	peers_report(few, ways, 9, true, true);
	tap_ok(is_cell(few, "Peers", 0, 1, "packed 33") && is_cell(few, "Peers", 0, 3, ""),
	       "peers: if the intervals overlap, packed 33 is not worse");
	tap_ok(!strcmp(point_of(report, 0, 0, text), "MPS 0.500 0.500 ") &&
	       !strcmp(point_of(report, 1, 0, text), "packed 0.400 0.600 24") &&
	       !strcmp(point_of(report, 1, 1, text), "packed 0.625 0.450 33") &&
	       !strcmp(point_of(report, 2, 0, text), "qos 0.833 0.100 "),
	       "peers: the picture has A's latency and B's speed, by family (%s)", text);
	snprintf(ways[3].why, sizeof(ways[3].why), "B ended");
	peers_report(part, ways, 9, true, true);
	tap_ok(!strcmp(text_at(part, "meaning", 0, NULL), "Not measured: starved: B ended.") &&
	       !strcmp(text_at(part, "meaning", 1, NULL), "Not measured: broken: A ended."),
	       "peers: ways that could not be measured are named in the summary");
	tap_ok(!strstr(text_at(report, "checks", 1, "what"), "measured") &&
	       strstr(text_at(part, "checks", 0, "what"), "(only 1 of 2 peers were measured)") &&
	       strstr(text_at(part, "checks", 1, "what"), "(only 1 of 2 peers were measured)"),
	       "peers: checks say if they do not judge all peers");
	json_decref(report);
	json_decref(few);
	json_decref(part);
}

int main(void)
{
	static const char *const boards[] = { "a", "b", "e" };
	struct gpupart *gp;

	if (gpupart_open(&gp))
		return 1;
	test_stats();
	test_settled();
	test_spans();
	test_axes();
	test_charts();
	test_peers();
	test_peers_fast();
	test_peers_report();
	for (int i = 0; i < 3; i++)
		test_board(gp, boards[i]);
	gpupart_close(gp);
	return tap_done();
}
