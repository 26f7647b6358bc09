// SPDX-License-Identifier: MIT
/*
 * Fuzz target: a file of tenants with goals. A refusal has one line. An accepted file must be
 * within the documented bounds. The target runs the policy on an accepted file. For any
 * measurements, the decisions of the policy must be consistent. The target reads and writes each
 * line of the log again. The line must stay the same.
 */
#include "cli/qos/policy/gpupart_qos.h"
#include "cli/qos/qos.h"
#include "cli/util/message.h"
#include "tests/fuzz/fuzz.h"

#define NR_TPCS	24
#define EPOCHS	12

static void make_board(struct qos_board *board)
{
	memset(board, QOS_UNKNOWN_PLACE, sizeof(*board));
	board->nr_tpcs = NR_TPCS;
	board->held = (struct gpupart_tpcset){ 0 };
	board->cluster_tpcs = 4;
	for (unsigned int tpc = 0; tpc < NR_TPCS; tpc++) {
		board->gpc[tpc] = tpc % 6;
		board->vgpc[tpc] = tpc % 6;
		board->ugpu[tpc] = tpc % 6 / 3;
	}
}

static void check_setup(const struct qos_setup *setup)
{
	MUST(setup->nr && setup->nr <= QOS_MAX_TENANTS && setup->nr_phases <= QOS_MOST_PHASES);
	MUST(setup->rules.hysteresis <= 250 && setup->rules.dwell <= 1000);
	MUST(setup->rules.step <= GPUPART_MAX_TPCS && setup->rules.hold <= 100000);
	for (unsigned int i = 0; i < setup->nr; i++) {
		const struct qos_tenant *t = &setup->tenants[i];
		const struct qos_spec *spec = &setup->specs[i];

		MUST(t->name[0] && fuzz_printable(t->name, sizeof(t->name)));
		MUST(t->alpha <= 1000 && t->weight <= 1000);
		MUST(t->floor <= GPUPART_MAX_TPCS && t->ceiling <= GPUPART_MAX_TPCS);
		MUST(t->goal != QOS_ALPHA || t->alpha);
		MUST(t->goal != QOS_RATE || t->rate);
		MUST(t->goal != QOS_LATENCY || t->latency_ns);
		MUST(t->percentile >= 10 && t->percentile <= 999 && spec->pid >= 0);
		for (char **word = spec->program; word && *word; word++)
			MUST(strlen(*word) < YAML_TEXT);
	}
}

/*
 * Checks that the sets are disjoint, are on the board, and have the stated number of TPCs after a
 * swap. During a swap, a tenant may keep TPCs that are coming to another tenant or are held.
 */
static void check_decision(const struct qos_setup *setup, const struct qos_decision *d)
{
	struct gpupart_tpcset seen = d->reserved, coming = d->held, both;

	MUST(!gpupart_tpcset_intersects(&d->reserved, &d->held));

	for (unsigned int i = 0; i < setup->nr; i++) {
		const struct qos_verdict *v = &d->tenants[i];

		MUST(!gpupart_tpcset_intersects(&v->set, &seen));
		seen = gpupart_tpcset_or(&seen, &v->set);
		both = gpupart_tpcset_or(&v->set, &v->coming);
		MUST(!gpupart_tpcset_intersects(&v->coming, &coming));
		coming = gpupart_tpcset_or(&coming, &v->coming);
		MUST(!gpupart_tpcset_intersects(&v->set, &v->coming));
		MUST(gpupart_tpcset_count(&both) >= v->nr_tpcs);
		MUST(gpupart_tpcset_count(d->swapping ? &v->coming : &v->set) <= v->nr_tpcs);
		MUST(v->state == QOS_GONE ? gpupart_tpcset_empty(&both) :
					    !gpupart_tpcset_empty(&both));
		MUST(memchr(v->why, 0, sizeof(v->why)));
		/* If there are enough TPCs for all floors, each tenant must keep its floor. */
		if (setup->tenants[i].floor && v->state != QOS_GONE)
			MUST(v->nr_tpcs >= setup->tenants[i].floor || *d->words || *v->why);
	}
	MUST(gpupart_tpcset_next(&seen, NR_TPCS) < 0);
	MUST(memchr(d->words, 0, sizeof(d->words)));
}

/* Makes random measurements. Some measurements are extreme. */
static void measure(struct input *in, const struct qos_setup *setup, struct qos_measured *m)
{
	for (unsigned int i = 0; i < setup->nr; i++) {
		unsigned int how = input_u8(in);

		m[i] = (struct qos_measured){
			.valid = !(how & 1),
			.gone = (how & 0x70) == 0x70,
			.drained = !(how & 4),
			.disturbed = (how & 0x38) == 0x38,
			.ns = how & 8 ? input_u64(in) >> 1 : setup->epoch_ns,
			.work = how & 2 ? input_u64(in) >> 1 : 1000 * (uint64_t)how,
			.nr = how,
			.answered = how,
			.within = how / 2,
			.latency_ns = how & 128 ? input_u64(in) >> 1 : 1000000,
		};
	}
}

/* Lets other programs start and end, on any TPCs. */
static void change_others(struct input *in, struct qos_session *session)
{
	struct qos_others *others = &session->others;

	session->others_changed = input_u8(in) % 4 == 3;
	if (!session->others_changed)
		return;
	*others = (struct qos_others){ .nr = input_u8(in) % 3 };
	for (unsigned int i = 0; i < others->nr; i++) {
		struct qos_other *other = &others->list[i];

		other->pid = 1 + input_u8(in);
		snprintf(other->name, sizeof(other->name), "o%u", i);
		other->set.allowed[0] = input_u64(in);
		gpupart_tpcset_add(&other->set, i);
	}
}

static void check_others(const struct qos_others *a, const struct qos_others *b)
{
	MUST(a->nr == b->nr);
	for (unsigned int i = 0; i < a->nr; i++)
		MUST(a->list[i].pid == b->list[i].pid &&
		     !strcmp(a->list[i].name, b->list[i].name) &&
		     gpupart_tpcset_equal(&a->list[i].set, &b->list[i].set));
}

/* Reads a line of the log and writes it again. */
static void read_back(const struct qos_session *written, const char *line, bool begin,
		      const struct qos_measured *measured)
{
	static struct qos_setup again;
	static struct qos_session session;
	const struct qos_setup *setup = written->setup;
	struct qos_measured read[QOS_MAX_TENANTS];
	json_t *json = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
	char why[QOS_MESSAGE_SIZE] = "";

	MUST(json);
	if (begin) {
		memset(&again, 0, sizeof(again));
		memset(&session, 0, sizeof(session));
		fuzz_words = why;
		MUST(qos_log_read_begin(json, &again, &session, why));
		MUST(again.nr == setup->nr && again.epoch_ns == setup->epoch_ns);
		MUST(!memcmp(&again.rules, &setup->rules, sizeof(again.rules)));
		for (unsigned int i = 0; i < again.nr; i++)
			MUST(!memcmp(&again.tenants[i], &setup->tenants[i],
				     sizeof(again.tenants[i])));
	} else {
		fuzz_words = why;
		session.setup = setup;
		MUST(qos_log_read_step(json, &session, read, why));
		MUST(session.others_changed == written->others_changed);
		if (session.others_changed)
			check_others(&session.others, &written->others);
		for (unsigned int i = 0; i < setup->nr; i++)
			MUST(read[i].valid == measured[i].valid && read[i].ns == measured[i].ns &&
			     read[i].work == measured[i].work && read[i].nr == measured[i].nr &&
			     read[i].gone == measured[i].gone &&
			     read[i].drained == measured[i].drained &&
			     read[i].disturbed == measured[i].disturbed &&
			     read[i].answered == measured[i].answered &&
			     read[i].within == measured[i].within &&
			     read[i].latency_ns == measured[i].latency_ns);
	}
	fuzz_words = "";
	json_decref(json);
}

static void take_line(struct qos_session *session, char **text, size_t *len, bool begin,
		      const struct qos_measured *measured)
{
	MUST(!fflush(session->log) && *len);
	/* The end of an earlier, longer line may follow the written line. */
	(*text)[*len] = 0;
	read_back(session, *text, begin, measured);
	rewind(session->log);
}

static void run(const struct qos_setup *setup, struct input *in)
{
	static struct qos_session session;
	struct qos_measured measured[QOS_MAX_TENANTS];
	char *text = NULL;
	size_t len = 0;

	memset(&session, 0, sizeof(session));
	session.setup = setup;
	session.log = open_memstream(&text, &len);
	make_board(&session.board);
	session.board.shapes = setup->shapes;
	MUST(session.log);
	if (qos_session_begin(&session)) {
		MUST(fuzz_lines == 1);
	} else {
		MUST(!qos_session_log_begin(&session));
		take_line(&session, &text, &len, true, NULL);
		check_decision(setup, &session.now);
		for (unsigned int i = 0; i < EPOCHS; i++) {
			measure(in, setup, measured);
			change_others(in, &session);
			session.time_ns = i;
			MUST(!qos_session_step(&session, measured));
			take_line(&session, &text, &len, false, measured);
			check_decision(setup, &session.now);
		}
		MUST(!fuzz_lines);
	}
	qos_session_end(&session);
	fclose(session.log);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct qos_setup setup;
	struct input in = { data, size };
	enum qos_file kind = input_u8(&in) % 3;
	struct yaml yaml;
	bool good;

	fuzz_lines = 0;
	if (yaml_open(&yaml, "-f ", fuzz_file(in.at, in.left), "a file of tenants")) {
		MUST(fuzz_lines == 1);
		return 0;
	}
	good = qos_setup_read(&setup, &yaml, yaml_root(&yaml), kind);
	MUST(good == !fuzz_lines && fuzz_lines <= 1);
	if (good) {
		check_setup(&setup);
		run(&setup, &in);
	}
	qos_setup_free(&setup);
	yaml_close(&yaml);
	return 0;
}
