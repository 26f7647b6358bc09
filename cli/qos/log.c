// SPDX-License-Identifier: MIT
/*
 * Writes and reads the log of decisions. The log has one JSON line for each step, with all
 * measurements and decisions. For each kind of object, one function both writes and reads it.
 */
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "cli/qos/qos.h"
#include "cli/target/check.h"

/* ------------------------------------------------------------------------- values */

struct io {
	char *why; /* buffer of QOS_MESSAGE_SIZE bytes for a message when reading; NULL when
		    * writing */
	bool bad;		/* a value was wrong; @why describes the first wrong value */
};

__attribute__((format(printf, 2, 3)))
static void bad(struct io *io, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	if (io->why && !io->bad)
		vsnprintf(io->why, QOS_MESSAGE_SIZE, fmt, ap);
	va_end(ap);
	io->bad = true;
}

/* When writing, stores @fresh at @key. When reading, returns the value at @key. */
static json_t *io_value(struct io *io, json_t *object, const char *key, json_t *fresh,
			json_type type)
{
	json_t *value;

	if (!io->why)
		json_object_set_new(object, key, fresh);
	else
		json_decref(fresh);
	value = json_object_get(object, key);
	if (value && (json_typeof(value) == type || (type == JSON_TRUE && json_is_boolean(value))))
		return value;
	bad(io, "%s is %s", key, value ? "of the wrong type" : "missing");
	return NULL;
}

static json_t *io_object(struct io *io, json_t *object, const char *key)
{
	return io_value(io, object, key, json_object(), JSON_OBJECT);
}

/* Entry @i of a list of objects. */
static json_t *io_entry(struct io *io, json_t *list, unsigned int i)
{
	if (!io->why)
		json_array_append_new(list, json_object());
	return json_array_get(list, i);
}

static void io_bool(struct io *io, json_t *object, const char *key, bool *value)
{
	const json_t *is = io_value(io, object, key, json_boolean(*value), JSON_TRUE);

	if (io->why)
		*value = json_is_true(is);
}

static void io_number(struct io *io, json_t *object, const char *key, uint64_t *value,
		      uint64_t most)
{
	json_int_t n = json_integer_value(io_value(io, object, key, json_integer(*value),
						   JSON_INTEGER));

	if (!io->why)
		return;
	if (n < 0 || (uint64_t)n > most) {
		bad(io, "%s is %lld", key, (long long)n);
		n = 0;
	}
	*value = n;
}

static void io_uint(struct io *io, json_t *object, const char *key, unsigned int *value,
		    unsigned int most)
{
	uint64_t wide = *value;

	io_number(io, object, key, &wide, most);
	*value = wide;
}

static void io_text(struct io *io, json_t *object, const char *key, char *text, size_t len)
{
	const char *is = json_string_value(io_value(io, object, key, json_string(text),
						    JSON_STRING));

	if (!io->why)
		return;
	if (is && strlen(is) >= len)
		bad(io, "%s is too long", key);
	snprintf(text, len, "%s", is ? is : "");
	/* This command prints some of these strings unchanged. */
	if (is && strcmp(out_clean(text), is))
		bad(io, "%s contains a control character", key);
}

static void io_set(struct io *io, json_t *object, const char *key, struct gpupart_tpcset *set)
{
	char list[GPUPART_TPCSET_STRLEN];

	gpupart_tpcset_format_list(set, list, sizeof(list));
	io_text(io, object, key, list, sizeof(list));
	if (!io->why)
		return;
	*set = (struct gpupart_tpcset){ 0 };
	if (*list && gpupart_tpcset_parse_list(NULL, list, set))
		bad(io, "%s is '%.100s'", key, list);
}

/* Writes or reads one of @nr names, and returns the index of the name. */
static unsigned int io_name(struct io *io, json_t *object, const char *key, unsigned int value,
			    const char *const *names, unsigned int nr)
{
	char text[32];

	snprintf(text, sizeof(text), "%s", names[value]);
	io_text(io, object, key, text, sizeof(text));
	for (value = 0; value < nr; value++)
		if (!strcmp(text, names[value]))
			return value;
	bad(io, "%s is '%s'", key, text);
	return 0;
}

/* ------------------------------------------------------------------------ objects */

static void io_tenant(struct io *io, json_t *o, struct qos_tenant *t, struct qos_spec *spec)
{
	static const char *const signals[] = { "auto", "reported", "launches", "kernels" };
	const char *const goals[] = { qos_goal_name(0), qos_goal_name(1), qos_goal_name(2),
				      qos_goal_name(3) };

	io_text(io, o, "name", t->name, sizeof(t->name));
	if (!check_is_name(t->name))
		bad(io, "name '%s': " QOS_NAME_RULE, t->name);
	t->goal = io_name(io, o, "goal", t->goal, goals, 4);
	io_uint(io, o, "alpha_milli", &t->alpha, 1000);
	io_number(io, o, "alone_milli", &t->alone, INT64_MAX);
	io_number(io, o, "rate_milli", &t->rate, INT64_MAX);
	io_number(io, o, "latency_ns", &t->latency_ns, INT64_MAX);
	io_uint(io, o, "percentile_milli", &t->percentile, 1000);
	spec->signal = io_name(io, o, "signal", spec->signal, signals, 4);
	io_uint(io, o, "weight", &t->weight, 1000);
	io_uint(io, o, "floor", &t->floor, GPUPART_MAX_TPCS);
	io_uint(io, o, "ceiling", &t->ceiling, GPUPART_MAX_TPCS);
	io_set(io, o, "adopted", &t->adopted);
	if (t->lend || json_object_get(o, "lend")) {
		io_bool(io, o, "lend", &t->lend);
		io_number(io, o, "lend_ns", &t->lend_ns, QOS_LEND_MOST);
	}
}

/* The log omits optional values that are false or 0. */
static void io_measured(struct io *io, json_t *o, struct qos_measured *m)
{
	io_bool(io, o, "valid", &m->valid);
	io_bool(io, o, "gone", &m->gone);
	io_bool(io, o, "drained", &m->drained);
	io_number(io, o, "ns", &m->ns, INT64_MAX);
	io_number(io, o, "work_milli", &m->work, INT64_MAX);
	io_number(io, o, "requests", &m->nr, INT64_MAX);
	io_number(io, o, "latency_ns", &m->latency_ns, INT64_MAX);
	if (m->answered || json_object_get(o, "answered"))
		io_number(io, o, "answered", &m->answered, INT64_MAX);
	if (m->within || json_object_get(o, "within"))
		io_number(io, o, "within", &m->within, INT64_MAX);
	if (m->reports || json_object_get(o, "reports"))
		io_number(io, o, "reports", &m->reports, INT64_MAX);
	if (m->reported || json_object_get(o, "reported_milli"))
		io_number(io, o, "reported_milli", &m->reported, INT64_MAX);
	if (m->exact || json_object_get(o, "exact"))
		io_bool(io, o, "exact", &m->exact);
	if (m->borrowed || json_object_get(o, "borrowed"))
		io_number(io, o, "borrowed", &m->borrowed, INT64_MAX);
	if (m->lent || json_object_get(o, "lent"))
		io_bool(io, o, "lent", &m->lent);
	if (m->stopped || json_object_get(o, "stopped"))
		io_bool(io, o, "stopped", &m->stopped);
	if (m->disturbed || json_object_get(o, "disturbed"))
		io_bool(io, o, "disturbed", &m->disturbed);
}

static void io_places(struct io *io, json_t *o, const char *key, uint8_t *places, unsigned int *nr)
{
	json_t *list = io_value(io, o, key, json_array(), JSON_ARRAY);
	size_t size = json_array_size(list);

	for (unsigned int i = 0; !io->why && i < *nr; i++)
		json_array_append_new(list, json_integer(places[i]));
	if (!io->why)
		return;
	if (list && (!size || size > GPUPART_MAX_TPCS || (*nr && *nr != size)))
		bad(io, "'board.%s' has a wrong number of TPCs: %zu", key, size);
	for (size_t i = 0; i < size && !io->bad; i++)
		places[i] = json_integer_value(json_array_get(list, i));
	*nr = size;
}

/*
 * Writes or reads the programs that are not tenants. If @news is false, writes nothing. Returns
 * whether the line lists such programs.
 */
static bool io_others(struct io *io, json_t *line, struct qos_others *others, bool news)
{
	json_t *list, *o;

	if (io->why)
		news = json_object_get(line, "others");
	if (!news)
		return false;
	list = io_value(io, line, "others", json_array(), JSON_ARRAY);
	if (io->why)
		others->nr = json_array_size(list);
	if (others->nr > QOS_MOST_OTHERS) {
		bad(io, "there are too many other programs: %u", others->nr);
		others->nr = 0;
	}
	for (unsigned int i = 0; i < others->nr && !io->bad; i++) {
		struct qos_other *other = &others->list[i];
		unsigned int pid = other->pid;

		o = io_entry(io, list, i);
		io_text(io, o, "name", other->name, sizeof(other->name));
		io_uint(io, o, "pid", &pid, INT_MAX);
		other->pid = pid;
		io_set(io, o, "set", &other->set);
	}
	return true;
}

/* Writes or reads a power or a clock; -1: not known. */
static void io_state(struct io *io, json_t *line, const char *key, int *value)
{
	unsigned int is = *value;

	if (json_object_get(line, key) || (!io->why && *value >= 0))
		io_uint(io, line, key, &is, INT_MAX);
	*value = is;
}

json_t *qos_set_json(const struct gpupart_tpcset *set)
{
	char text[GPUPART_TPCSET_STRLEN];

	gpupart_tpcset_format_list(set, text, sizeof(text));
	return json_string(text);
}

/* Only writes. A replay makes its own decision and compares both. */
static void io_decision(struct io *io, json_t *line, const struct qos_session *s)
{
	const struct qos_decision *d = &s->now;
	json_t *tenants;

	if (io->why) {
		io_object(io, line, "decision");
		return;
	}
	tenants = json_array();
	for (unsigned int i = 0; i < s->setup->nr; i++) {
		const struct qos_verdict *v = &d->tenants[i];

		json_array_append_new(tenants, json_pack(
			"{s:s, s:o, s:o, s:i, s:b, s:I, s:s, s:s, s:i, s:I, s:I, s:I, s:s}",
			"name", s->setup->tenants[i].name, "set", qos_set_json(&v->set),
			"coming", qos_set_json(&v->coming), "nr_tpcs", v->nr_tpcs,
			"changed", v->changed, "pending_since", (json_int_t)v->pending_since,
			"state", qos_state_name(v->state), "class", qos_class_name(v->class),
			"optimum", v->optimum, "speed_milli", (json_int_t)v->speed,
			"score_milli", (json_int_t)v->score,
			"since_start_milli", (json_int_t)v->since_start, "reason", v->why));
		if (s->setup->tenants[i].lend)
			json_object_set_new(json_array_get(tenants, i), "lend_ns",
					    json_integer(v->lend_ns));
		if (s->board.shapes)
			json_object_set_new(json_array_get(tenants, i), "shape",
					    json_string(qos_shape_name(v->shape)));
	}
	json_object_set_new(line, "decision", json_pack(
		"{s:I, s:b, s:b, s:o, s:s, s:o}", "epoch", (json_int_t)d->epoch,
		"changed", d->changed, "swapping", d->swapping,
		"reserved", qos_set_json(&d->reserved), "words", d->words, "tenants", tenants));
}

/* -------------------------------------------------------------------------- lines */

/* The first members of every line. */
static void io_head(struct io *io, json_t *line, bool *simulated, char event[32])
{
	char schema[32] = "gpupart/1", command[32] = "qos";

	io_text(io, line, "schema", schema, sizeof(schema));
	if (strcmp(schema, "gpupart/1"))
		bad(io, "'schema' is '%s' but must be 'gpupart/1'", schema);
	io_text(io, line, "command", command, sizeof(command));
	if (strcmp(command, "qos"))
		bad(io, "'command' is '%s' but must be 'qos'", command);
	io_bool(io, line, "simulated", simulated);
	io_text(io, line, "event", event, 32);
}

static void io_begin(struct io *io, json_t *line, struct qos_setup *setup, struct qos_session *s)
{
	char event[32] = "begin";
	json_t *o;

	io_head(io, line, &s->simulated, event);
	if (strcmp(event, "begin"))
		bad(io, "'event' is '%s' but must be 'begin'", event);
	io_text(io, line, "gpu", s->gpu, sizeof(s->gpu));
	io_number(io, line, "epoch_ns", &setup->epoch_ns, INT64_MAX);
	o = io_object(io, line, "rules");
	io_uint(io, o, "step", &setup->rules.step, GPUPART_MAX_TPCS);
	io_uint(io, o, "hysteresis_milli", &setup->rules.hysteresis, 250);
	io_uint(io, o, "dwell", &setup->rules.dwell, 1000);
	io_uint(io, o, "hold", &setup->rules.hold, 100000);
	o = io_object(io, line, "board");
	io_places(io, o, "gpc", s->board.gpc, &s->board.nr_tpcs);
	io_places(io, o, "ugpu", s->board.ugpu, &s->board.nr_tpcs);
	/*
	 * Logs of older versions lack this key, because those versions did not handle clusters.
	 */
	if (io->why ? !!json_object_get(o, "cluster_tpcs") : s->board.cluster_tpcs) {
		io_places(io, o, "vgpc", s->board.vgpc, &s->board.nr_tpcs);
		io_uint(io, o, "cluster_tpcs", &s->board.cluster_tpcs, GPUPART_MAX_TPCS);
	}
	/* Logs of older versions lack this key, because those versions had only packed sets. */
	if (io->why ? !!json_object_get(o, "shapes") : s->board.shapes)
		io_bool(io, o, "shapes", &s->board.shapes);
	o = io_value(io, line, "tenants", json_array(), JSON_ARRAY);
	if (io->why)
		setup->nr = json_array_size(o);
	if (!setup->nr || setup->nr > QOS_MAX_TENANTS)
		bad(io, "there are %u tenants, but there must be 1 to %d", setup->nr,
		    QOS_MAX_TENANTS);
	for (unsigned int i = 0; i < setup->nr && !io->bad; i++)
		io_tenant(io, io_entry(io, o, i), &setup->tenants[i], &setup->specs[i]);
	io_others(io, line, &s->others, s->others.nr);
	io_decision(io, line, s);
}

static void io_step(struct io *io, json_t *line, struct qos_session *s, bool swap,
		    struct qos_measured *measured)
{
	const struct qos_setup *setup = s->setup;
	bool simulated = s->simulated;
	char event[32], name[64];
	json_t *list, *o;

	strcpy(event, swap ? "swap" : "epoch");
	io_head(io, line, &simulated, event);
	if (!strcmp(event, "begin"))
		bad(io, "another run begins here, but a log has only one run");
	if (strcmp(event, "epoch") && strcmp(event, "swap"))
		bad(io, "'event' is '%s' but must be 'epoch' or 'swap'", event);
	io_number(io, line, "time_ns", &s->time_ns, INT64_MAX);
	list = io_value(io, line, "measured", json_array(), JSON_ARRAY);
	if (io->why && json_array_size(list) != setup->nr)
		bad(io, "'measured' lists %zu tenants, but there must be %u",
		    json_array_size(list), setup->nr);
	for (unsigned int i = 0; i < setup->nr && !io->bad; i++) {
		o = io_entry(io, list, i);
		strcpy(name, setup->tenants[i].name);
		io_text(io, o, "name", name, sizeof(name));
		if (strcmp(name, setup->tenants[i].name))
			bad(io, "entry %u of 'measured' is tenant %s but must be tenant %s", i,
			    name, setup->tenants[i].name);
		io_measured(io, o, &measured[i]);
	}
	s->others_changed = io_others(io, line, &s->others, s->others_changed);
	io_state(io, line, "power_mw", &s->state.power_mw);
	io_state(io, line, "sm_mhz", &s->state.sm_mhz);
	io_state(io, line, "memory_mhz", &s->state.memory_mhz);
	io_decision(io, line, s);
}

/* Writing does not change the session. */
json_t *qos_log_begin(const struct qos_session *s)
{
	json_t *line = json_object();
	struct io io = { 0 };

	io_begin(&io, line, (struct qos_setup *)s->setup, (struct qos_session *)s);
	return line;
}

json_t *qos_log_step(const struct qos_session *s, bool swap, const struct qos_measured *measured)
{
	json_t *line = json_object();
	struct io io = { 0 };

	io_step(&io, line, (struct qos_session *)s, swap, (struct qos_measured *)measured);
	return line;
}

bool qos_log_read_begin(json_t *line, struct qos_setup *setup, struct qos_session *s, char *why)
{
	struct io io = { .why = why };

	io_begin(&io, line, setup, s);
	return !io.bad;
}

bool qos_log_read_step(json_t *line, struct qos_session *s, struct qos_measured *measured,
		       char *why)
{
	struct io io = { .why = why };

	memset(measured, 0, s->setup->nr * sizeof(*measured));
	s->state = (struct nvml_state){ -1, -1, -1 };
	io_step(&io, line, s, false, measured);
	return !io.bad;
}

/* ---------------------------------------------------------------------- differences */

/*
 * Finds the first difference between @a and @b, and describes it in @text. Both objects have the
 * path @at.
 */
static bool find_difference(const char *at, json_t *a, json_t *b, char *text, size_t len)
{
	const size_t flags = JSON_COMPACT | JSON_ENCODE_ANY | JSON_PRESERVE_ORDER;
	char below[256], *was, *is;
	const char *key;
	json_t *value;
	size_t i;

	if (json_equal(a, b))
		return false;
	json_object_foreach(json_is_object(b) ? a : NULL, key, value) {
		snprintf(below, sizeof(below), "%s%s%s", at, *at ? "." : "", key);
		if (find_difference(below, value, json_object_get(b, key), text, len))
			return true;
	}
	json_array_foreach(json_array_size(a) == json_array_size(b) ? a : NULL, i, value) {
		snprintf(below, sizeof(below), "%s[%zu]", at, i);
		if (find_difference(below, value, json_array_get(b, i), text, len))
			return true;
	}
	was = json_dumps(a, flags);
	is = json_dumps(b, flags);
	snprintf(text, len, "%s was %.300s, now it is %.300s", at, was ? was : "missing",
		 is ? is : "missing");
	free(was);
	free(is);
	return true;
}

void qos_log_difference(json_t *logged, json_t *now, char *text, size_t len)
{
	*text = 0;
	find_difference("", logged, now, text, len);
}
