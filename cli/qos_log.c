// SPDX-License-Identifier: MIT
/*
 * The log of decisions: a JSON line a step, with all that went in and all that came out, and
 * lines read back. Decides nothing.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "qos.h"

static json_t *set_json(const struct gpupart_tpcset *set)
{
	char text[GPUPART_TPCSET_STRLEN];

	gpupart_tpcset_format_list(set, text, sizeof(text));
	return json_string(text);
}

static json_t *line_new(const struct qos_session *session, const char *event)
{
	return json_pack("{s:s, s:s, s:b, s:s}", "schema", "gpupart/1", "command", "qos",
			 "simulated", session->simulated, "event", event);
}

static const char *signal_name(enum qos_signal signal)
{
	static const char *const names[] = { "auto", "reported", "launches" };

	return names[signal];
}

/* What is told of the GPU, where it is. */
#define NR_STATES 3
static const char *const state_keys[NR_STATES] = { "power_mw", "sm_mhz", "memory_mhz" };

static int *state_value(struct nvml_state *state, unsigned int i)
{
	return i == 0 ? &state->power_mw : i == 1 ? &state->sm_mhz : &state->memory_mhz;
}

/* ------------------------------------------------------------------------- written */

static json_t *decision_json(const struct qos_setup *setup, const struct qos_decision *d)
{
	json_t *tenants = json_array();

	for (unsigned int i = 0; i < setup->nr; i++) {
		const struct qos_verdict *v = &d->tenants[i];

		json_array_append_new(tenants, json_pack(
			"{s:s, s:o, s:o, s:i, s:b, s:I, s:s, s:s, s:i, s:I, s:I, s:I, s:s}",
			"name", setup->tenants[i].name, "set", set_json(&v->set),
			"coming", set_json(&v->coming), "nr_tpcs", v->nr_tpcs,
			"changed", v->changed, "pending_since", (json_int_t)v->pending_since,
			"state", qos_state_name(v->state), "class", qos_class_name(v->class),
			"optimum", v->optimum, "speed_milli", (json_int_t)v->speed,
			"score_milli", (json_int_t)v->score,
			"since_start_milli", (json_int_t)v->since_start, "reason", v->why));
	}
	return json_pack("{s:I, s:b, s:b, s:o, s:s, s:o}", "epoch", (json_int_t)d->epoch,
			 "changed", d->changed, "swapping", d->swapping,
			 "reserved", set_json(&d->reserved), "words", d->words,
			 "tenants", tenants);
}

/* Programs that are no tenants, where that is news. */
static json_t *others_json(const struct qos_others *others)
{
	json_t *list = json_array();

	for (unsigned int i = 0; i < others->nr; i++)
		json_array_append_new(list, json_pack(
			"{s:s, s:i, s:o}", "name", others->list[i].name, "pid",
			others->list[i].pid, "set", set_json(&others->list[i].set)));
	return list;
}

static json_t *tenants_json(const struct qos_setup *setup)
{
	json_t *tenants = json_array();

	for (unsigned int i = 0; i < setup->nr; i++) {
		const struct qos_tenant *t = &setup->tenants[i];

		json_array_append_new(tenants, json_pack(
			"{s:s, s:s, s:I, s:I, s:I, s:I, s:i, s:s, s:i, s:i, s:i, s:o}",
			"name", t->name, "goal", qos_goal_name(t->goal),
			"alpha_milli", (json_int_t)t->alpha, "alone_milli", (json_int_t)t->alone,
			"rate_milli", (json_int_t)t->rate,
			"latency_ns", (json_int_t)t->latency_ns,
			"percentile_milli", setup->specs[i].percentile,
			"signal", signal_name(setup->specs[i].signal), "weight", t->weight,
			"floor", t->floor, "ceiling", t->ceiling, "adopted",
			set_json(&t->adopted)));
	}
	return tenants;
}

static json_t *places_json(const uint8_t *places, unsigned int nr)
{
	json_t *list = json_array();

	for (unsigned int i = 0; i < nr; i++)
		json_array_append_new(list, json_integer(places[i]));
	return list;
}

json_t *qos_log_begin(const struct qos_session *session)
{
	const struct qos_setup *setup = session->setup;
	const struct qos_board *board = &session->board;
	json_t *line = line_new(session, "begin");

	json_object_set_new(line, "gpu", json_string(session->gpu));
	json_object_set_new(line, "epoch_ns", json_integer(setup->epoch_ns));
	json_object_set_new(line, "rules", json_pack(
		"{s:i, s:i, s:i, s:i}", "step", setup->rules.step, "hysteresis_milli",
		setup->rules.hysteresis, "dwell", setup->rules.dwell, "hold",
		setup->rules.hold));
	json_object_set_new(line, "board", json_pack(
		"{s:o, s:o}", "gpc", places_json(board->gpc, board->nr_tpcs), "ugpu",
		places_json(board->ugpu, board->nr_tpcs)));
	json_object_set_new(line, "tenants", tenants_json(setup));
	if (session->others.nr)
		json_object_set_new(line, "others", others_json(&session->others));
	json_object_set_new(line, "decision", decision_json(setup, &session->now));
	return line;
}

json_t *qos_log_step(const struct qos_session *session, uint64_t time_ns, bool swap,
		     const struct qos_measured *measured)
{
	json_t *line = line_new(session, swap ? "swap" : "epoch"), *list = json_array();
	struct nvml_state state = session->state;

	for (unsigned int i = 0; i < session->setup->nr; i++) {
		const struct qos_measured *m = &measured[i];
		json_t *tenant = json_pack(
			"{s:s, s:b, s:b, s:b, s:I, s:I, s:I, s:I}",
			"name", session->setup->tenants[i].name, "valid", m->valid,
			"gone", m->gone, "drained", m->drained, "ns", (json_int_t)m->ns,
			"work_milli", (json_int_t)m->work, "requests", (json_int_t)m->nr,
			"latency_ns", (json_int_t)m->latency_ns);

		if (m->reports)
			json_object_set_new(tenant, "reports", json_integer(m->reports));
		if (m->exact)
			json_object_set_new(tenant, "exact", json_true());
		if (m->disturbed)
			json_object_set_new(tenant, "disturbed", json_true());
		json_array_append_new(list, tenant);
	}
	json_object_set_new(line, "time_ns", json_integer(time_ns));
	json_object_set_new(line, "measured", list);
	if (session->others_changed)
		json_object_set_new(line, "others", others_json(&session->others));
	for (unsigned int i = 0; i < NR_STATES; i++)
		if (*state_value(&state, i) >= 0)
			json_object_set_new(line, state_keys[i],
					    json_integer(*state_value(&state, i)));
	json_object_set_new(line, "decision", decision_json(session->setup, &session->now));
	return line;
}

int qos_log_write(FILE *file, const json_t *line)
{
	int bad = json_dumpf(line, file, JSON_COMPACT | JSON_PRESERVE_ORDER);

	fputc('\n', file);
	return bad || fflush(file) || ferror(file) ? -EIO : 0;
}

/* ---------------------------------------------------------------------------- read */

/* A value of an object, checked; the first that is wrong is said. */
struct reader {
	char *why;
	bool bad;
};

static json_t *get(struct reader *r, const json_t *object, const char *key, json_type type)
{
	json_t *value = json_object_get(object, key);

	if (value && (json_typeof(value) == type || (type == JSON_TRUE && json_is_boolean(value))))
		return value;
	if (!r->bad)
		snprintf(r->why, QOS_WORDS, "%s is %s", key,
			 value ? "of another kind" : "missing");
	r->bad = true;
	return NULL;
}

static uint64_t get_number(struct reader *r, const json_t *object, const char *key, uint64_t most)
{
	const json_t *value = get(r, object, key, JSON_INTEGER);
	json_int_t n = value ? json_integer_value(value) : 0;

	if (n < 0 || (uint64_t)n > most) {
		if (!r->bad)
			snprintf(r->why, QOS_WORDS, "%s is %lld", key, (long long)n);
		r->bad = true;
		return 0;
	}
	return n;
}

static void get_text(struct reader *r, const json_t *object, const char *key, char *text,
		     size_t len)
{
	const json_t *value = get(r, object, key, JSON_STRING);
	const char *is = value ? json_string_value(value) : "";

	if (strlen(is) >= len) {
		if (!r->bad)
			snprintf(r->why, QOS_WORDS, "%s is too long", key);
		r->bad = true;
		is = "";
	}
	strcpy(text, is);
	/* Some of it is shown as it stands. */
	if (!strcmp(out_clean(text), is))
		return;
	if (!r->bad)
		snprintf(r->why, QOS_WORDS, "%s has a control character in it", key);
	r->bad = true;
}

static bool get_bool(struct reader *r, const json_t *object, const char *key)
{
	const json_t *value = get(r, object, key, JSON_TRUE);

	return value && json_is_true(value);
}

static void get_places(struct reader *r, const json_t *board, const char *key, uint8_t *places,
		       unsigned int *nr)
{
	const json_t *list = get(r, board, key, JSON_ARRAY);
	size_t size = list ? json_array_size(list) : 0;

	if (list && (!size || size > GPUPART_MAX_TPCS || (*nr && *nr != size))) {
		if (!r->bad)
			snprintf(r->why, QOS_WORDS, "board.%s has %zu TPCs", key, size);
		r->bad = true;
	}
	for (size_t i = 0; i < size && !r->bad; i++)
		places[i] = json_integer_value(json_array_get(list, i));
	*nr = size;
}

/* The name of a thing that has few. */
static unsigned int get_name(struct reader *r, const json_t *object, const char *key,
			     const char *(*name)(unsigned int), unsigned int nr)
{
	char text[32];

	get_text(r, object, key, text, sizeof(text));
	for (unsigned int i = 0; i < nr; i++)
		if (!strcmp(text, name(i)))
			return i;
	if (!r->bad)
		snprintf(r->why, QOS_WORDS, "%s is '%s'", key, text);
	r->bad = true;
	return 0;
}

static const char *goal_of(unsigned int i)
{
	return qos_goal_name(i);
}

static const char *signal_of(unsigned int i)
{
	return signal_name(i);
}

static void get_set(struct reader *r, const json_t *object, const char *key,
		    struct gpupart_tpcset *set)
{
	char list[GPUPART_TPCSET_STRLEN];

	get_text(r, object, key, list, sizeof(list));
	if (!*list || !gpupart_tpcset_parse_list(NULL, list, set))
		return;
	if (!r->bad)
		snprintf(r->why, QOS_WORDS, "%s is '%.100s'", key, list);
	r->bad = true;
}

/* Where there are some, or they changed; whether it is there. */
static bool get_others(struct reader *r, const json_t *line, struct qos_others *others)
{
	const json_t *list;
	size_t nr;

	if (!json_object_get(line, "others"))
		return false;
	list = get(r, line, "others", JSON_ARRAY);
	nr = list ? json_array_size(list) : 0;
	if (nr > QOS_MOST_OTHERS) {
		if (!r->bad)
			snprintf(r->why, QOS_WORDS, "others are %zu", nr);
		r->bad = true;
		nr = 0;
	}
	*others = (struct qos_others){ .nr = nr };
	for (size_t i = 0; i < nr && !r->bad; i++) {
		const json_t *other = json_array_get(list, i);

		get_text(r, other, "name", others->list[i].name, sizeof(others->list[i].name));
		others->list[i].pid = get_number(r, other, "pid", INT_MAX);
		get_set(r, other, "set", &others->list[i].set);
	}
	return true;
}

static void read_tenant(struct reader *r, const json_t *object, struct qos_tenant *t,
			struct qos_spec *spec)
{
	*t = (struct qos_tenant){ 0 };
	*spec = (struct qos_spec){ 0 };
	get_text(r, object, "name", t->name, sizeof(t->name));
	if (!r->bad && !qos_name_good(t->name)) {
		snprintf(r->why, QOS_WORDS, "name '%s': " QOS_NAME_WANTS, t->name);
		r->bad = true;
	}
	t->goal = get_name(r, object, "goal", goal_of, 4);
	t->alpha = get_number(r, object, "alpha_milli", 1000);
	t->alone = get_number(r, object, "alone_milli", INT64_MAX);
	t->rate = get_number(r, object, "rate_milli", INT64_MAX);
	t->latency_ns = get_number(r, object, "latency_ns", INT64_MAX);
	spec->percentile = get_number(r, object, "percentile_milli", 1000);
	spec->signal = get_name(r, object, "signal", signal_of, 3);
	t->weight = get_number(r, object, "weight", 1000);
	t->floor = get_number(r, object, "floor", GPUPART_MAX_TPCS);
	t->ceiling = get_number(r, object, "ceiling", GPUPART_MAX_TPCS);
	get_set(r, object, "adopted", &t->adopted);
}

static bool read_kind(struct reader *r, const json_t *line, char event[32])
{
	char text[32];

	get_text(r, line, "schema", text, sizeof(text));
	if (!r->bad && strcmp(text, "gpupart/1")) {
		snprintf(r->why, QOS_WORDS, "schema is '%s', not gpupart/1", text);
		r->bad = true;
	}
	get_text(r, line, "command", text, sizeof(text));
	if (!r->bad && strcmp(text, "qos")) {
		snprintf(r->why, QOS_WORDS, "is of command '%s', not of qos", text);
		r->bad = true;
	}
	get_text(r, line, "event", event, 32);
	return !r->bad;
}

bool qos_log_read_begin(const json_t *line, struct qos_setup *setup, struct qos_session *session,
			char *why)
{
	struct reader r = { .why = why };
	const json_t *rules, *board, *tenants;
	struct qos_board *b = &session->board;
	char event[32];

	if (!read_kind(&r, line, event))
		return false;
	if (strcmp(event, "begin")) {
		snprintf(why, QOS_WORDS, "event is '%s', not begin", event);
		return false;
	}
	session->simulated = get_bool(&r, line, "simulated");
	get_text(&r, line, "gpu", session->gpu, sizeof(session->gpu));
	setup->epoch_ns = get_number(&r, line, "epoch_ns", INT64_MAX);
	rules = get(&r, line, "rules", JSON_OBJECT);
	board = get(&r, line, "board", JSON_OBJECT);
	tenants = get(&r, line, "tenants", JSON_ARRAY);
	get(&r, line, "decision", JSON_OBJECT);
	if (r.bad)
		return false;
	setup->rules = (struct qos_rules){
		.step = get_number(&r, rules, "step", GPUPART_MAX_TPCS),
		.hysteresis = get_number(&r, rules, "hysteresis_milli", 250),
		.dwell = get_number(&r, rules, "dwell", 1000),
		.hold = get_number(&r, rules, "hold", 100000),
	};
	get_places(&r, board, "gpc", b->gpc, &b->nr_tpcs);
	get_places(&r, board, "ugpu", b->ugpu, &b->nr_tpcs);
	setup->nr = json_array_size(tenants);
	if (!r.bad && (!setup->nr || setup->nr > QOS_MAX_TENANTS)) {
		snprintf(why, QOS_WORDS, "there are %u tenants", setup->nr);
		return false;
	}
	for (unsigned int i = 0; i < setup->nr && !r.bad; i++)
		read_tenant(&r, json_array_get(tenants, i), &setup->tenants[i],
			    &setup->specs[i]);
	get_others(&r, line, &session->others);
	qos_session_hold(session);
	return !r.bad;
}

/* What is not there is false. */
static bool is_true(struct reader *r, const json_t *measured, const char *key)
{
	return json_object_get(measured, key) && get_bool(r, measured, key);
}

bool qos_log_read_step(const json_t *line, struct qos_session *session, uint64_t *time_ns,
		       struct qos_measured *measured, char *why)
{
	const struct qos_setup *setup = session->setup;
	struct nvml_state *state = &session->state;
	struct reader r = { .why = why };
	char name[64], event[32];
	const json_t *list;

	if (!read_kind(&r, line, event))
		return false;
	if (!strcmp(event, "begin")) {
		snprintf(why, QOS_WORDS, "another run begins here: a log is of one");
		return false;
	}
	if (strcmp(event, "epoch") && strcmp(event, "swap")) {
		snprintf(why, QOS_WORDS, "event is '%s', neither epoch nor swap", event);
		return false;
	}
	*time_ns = get_number(&r, line, "time_ns", INT64_MAX);
	for (unsigned int i = 0; i < NR_STATES; i++)
		*state_value(state, i) = json_object_get(line, state_keys[i]) ?
					 (int)get_number(&r, line, state_keys[i], INT_MAX) : -1;
	session->others_changed = get_others(&r, line, &session->others);
	list = get(&r, line, "measured", JSON_ARRAY);
	get(&r, line, "decision", JSON_OBJECT);
	if (!r.bad && json_array_size(list) != setup->nr) {
		snprintf(why, QOS_WORDS, "measured has %zu tenants, not %u",
			 json_array_size(list), setup->nr);
		return false;
	}
	for (unsigned int i = 0; i < setup->nr && !r.bad; i++) {
		const json_t *m = json_array_get(list, i);

		get_text(&r, m, "name", name, sizeof(name));
		if (!r.bad && strcmp(name, setup->tenants[i].name)) {
			snprintf(why, QOS_WORDS, "measured[%u] is %s, not %s", i, name,
				 setup->tenants[i].name);
			return false;
		}
		measured[i] = (struct qos_measured){
			.valid = get_bool(&r, m, "valid"), .gone = get_bool(&r, m, "gone"),
			.drained = get_bool(&r, m, "drained"),
			.disturbed = is_true(&r, m, "disturbed"), .exact = is_true(&r, m, "exact"),
			.ns = get_number(&r, m, "ns", INT64_MAX),
			.work = get_number(&r, m, "work_milli", INT64_MAX),
			.nr = get_number(&r, m, "requests", INT64_MAX),
			.latency_ns = get_number(&r, m, "latency_ns", INT64_MAX),
			.reports = json_object_get(m, "reports") ?
				   get_number(&r, m, "reports", INT64_MAX) : 0,
		};
	}
	return !r.bad;
}

/* ---------------------------------------------------------------------- differences */

static char *short_json(const json_t *value)
{
	return value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_PRESERVE_ORDER)
		     : NULL;
}

static void say_values(const char *at, const json_t *logged, const json_t *now, char *text,
		       size_t len)
{
	char *a = short_json(logged), *b = short_json(now);

	snprintf(text, len, "%s was %.300s and is now %.300s", at, a ? a : "not there",
		 b ? b : "not there");
	free(a);
	free(b);
}

static void find_difference(const char *at, const json_t *a, const json_t *b, char *text,
			    size_t len)
{
	char below[256];
	const char *key;
	json_t *value;
	size_t i;

	if (json_equal(a, b) || *text)
		return;
	if (json_is_object(a) && json_is_object(b)) {
		json_object_foreach((json_t *)a, key, value) {
			snprintf(below, sizeof(below), "%s%s%s", at, *at ? "." : "", key);
			find_difference(below, value, json_object_get(b, key), text, len);
		}
	} else if (json_is_array(a) && json_is_array(b) &&
		   json_array_size(a) == json_array_size(b)) {
		json_array_foreach(a, i, value) {
			snprintf(below, sizeof(below), "%s[%zu]", at, i);
			find_difference(below, value, json_array_get(b, i), text, len);
		}
	}
	if (!*text)
		say_values(at, a, b, text, len);
}

void qos_log_difference(const json_t *logged, const json_t *now, char *text, size_t len)
{
	*text = 0;
	find_difference("", logged, now, text, len);
}
