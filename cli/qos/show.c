// SPDX-License-Identifier: MIT
/* Prints the summary of a run of the controller as text and as JSON. */
#include <inttypes.h>
#include "cli/qos/qos.h"

const char *qos_format_thousandths(uint64_t thousandths, char *text, size_t len)
{
	uint64_t whole = thousandths / 1000, rest = thousandths % 1000;

	/* Four significant digits. */
	if (whole >= 1000 || !thousandths)
		snprintf(text, len, "%" PRIu64, whole + (rest >= 500));
	else if (whole >= 100)
		snprintf(text, len, "%" PRIu64 ".%" PRIu64, whole, rest / 100);
	else
		snprintf(text, len, "%" PRIu64 ".%02" PRIu64, whole, rest / 10);
	return text;
}

static const char *time_words(uint64_t ns, char *text, size_t len)
{
	static const struct { const char *name; uint64_t ns; } units[] = {
		{ "s", 1000000000 }, { "ms", 1000000 }, { "us", 1000 }, { "ns", 1 },
	};
	unsigned int i = 0;

	while (i < 3 && ns < units[i].ns)
		i++;
	snprintf(text, len, "%g %s", (double)ns / units[i].ns, units[i].name);
	return text;
}

const char *qos_format_goal(const struct qos_tenant *t, char *text, size_t len)
{
	char number[48];

	switch (t->goal) {
	case QOS_ALPHA:
		snprintf(text, len, "%u.%u%% of %s/s", t->alpha / 10, t->alpha % 10,
			 qos_format_thousandths(t->alone, number, sizeof(number)));
		break;
	case QOS_RATE:
		snprintf(text, len, "%s/s",
			 qos_format_thousandths(t->rate, number, sizeof(number)));
		break;
	case QOS_LATENCY:
		snprintf(text, len, "%u.%u%% in %s", t->percentile / 10, t->percentile % 10,
			 time_words(t->latency_ns, number, sizeof(number)));
		break;
	default:
		snprintf(text, len, "best effort");
	}
	return text;
}

static const char *met_words(const struct qos_tenant *t, const struct qos_sum *sum, char *text,
			     size_t len)
{
	unsigned int share = sum->heard ? (uint64_t)sum->met * 1000 / sum->heard : 0;

	if (t->goal == QOS_BEST_EFFORT)
		snprintf(text, len, "-");
	else
		snprintf(text, len, "%u of %u (%u.%u%%)", sum->met, sum->heard, share / 10,
			 share % 10);
	return text;
}

static void tenant_row(struct out *out, const struct qos_session *s, unsigned int i)
{
	const struct qos_tenant *t = &s->setup->tenants[i];
	char goal[96], met[64], speed[48], list[GPUPART_TPCSET_STRLEN];
	const struct qos_verdict *v = &s->now.tenants[i];
	const struct qos_sum *sum = &s->sums[i];

	qos_format_thousandths(sum->speed, speed, sizeof(speed));
	gpupart_tpcset_format_list(&v->set, list, sizeof(list));
	fprintf(out->file, "%-12s %-20s %-19s %9s %3u %3u-%-3u %-7s %s\n", t->name,
		qos_format_goal(t, goal, sizeof(goal)),
		met_words(t, sum, met, sizeof(met)), t->goal == QOS_LATENCY ? "-" : speed,
		v->nr_tpcs, sum->least, sum->most, qos_class_name(v->class), list);
}

static void show_set(struct out *out, const char *what, const struct gpupart_tpcset *set)
{
	unsigned int nr = gpupart_tpcset_count(set);
	char list[GPUPART_TPCSET_STRLEN];

	gpupart_tpcset_format_list(set, list, sizeof(list));
	fprintf(out->file, "%s: %u TPC%s%s%s\n", what, nr, nr == 1 ? "" : "s", nr ? ": " : "",
		list);
}

static void show_gpu(struct out *out, const struct qos_gpu_sum *sum)
{
	const char *between = "of the GPU, mean: ";

	if (sum->nr_power) {
		fprintf(out->file, "%s%.1f W", between, sum->power_mw / 1e3 / sum->nr_power);
		between = ", ";
	}
	if (sum->nr_sm) {
		fprintf(out->file, "%sSMs at %.0f MHz", between, (double)sum->sm_mhz / sum->nr_sm);
		between = ", ";
	}
	if (sum->nr_memory) {
		fprintf(out->file, "%smemory at %.0f MHz", between,
			(double)sum->memory_mhz / sum->nr_memory);
		between = ", ";
	}
	if (*between == ',')
		fputc('\n', out->file);
}

static void show_requests(struct out *out, const struct qos_session *s, unsigned int i)
{
	const struct qos_sum *sum = &s->sums[i];
	unsigned int share;
	char time[48];

	if (!sum->answered)
		return;
	share = (unsigned __int128)sum->within * 10000 / sum->answered;
	fprintf(out->file, "%s: %" PRIu64 " of %" PRIu64 " requests within %s (%u.%02u%%)\n",
		s->setup->tenants[i].name, sum->within, sum->answered,
		time_words(s->setup->tenants[i].latency_ns, time, sizeof(time)), share / 100,
		share % 100);
}

static void show_lending(struct out *out, const struct qos_session *s, unsigned int i)
{
	const char *name = s->setup->tenants[i].name;
	unsigned int lender = qos_lender_of(s->setup, i);

	if (s->setup->tenants[i].lend)
		fprintf(out->file, "%s: lent its TPCs in %u epochs, now %s %g us\n", name,
			s->sums[i].lent, s->now.tenants[i].lend_ns ? "up to" : "for",
			s->now.tenants[i].lend_ns / 1e3);
	if (lender < QOS_MAX_TENANTS)
		fprintf(out->file, "%s: %" PRIu64 " launches also used TPCs of %s\n", name,
			s->sums[i].borrowed, s->setup->tenants[lender].name);
}

void qos_text(struct out *out, const struct qos_session *s)
{
	char epoch[48];

	fprintf(out->file, "%s, %u TPCs: %u epochs of %s, %u with a change\n\n", s->gpu,
		s->board.nr_tpcs, s->nr_epochs,
		time_words(s->setup->epoch_ns, epoch, sizeof(epoch)), s->nr_changed);
	fprintf(out->file, "%s%-12s %-20s %-19s %9s %3s %-7s %-7s %s%s\n", out->bold, "tenant",
		"goal", "met in epochs", "mean/s", "now", "TPCs", "kind", "set now", out->plain);
	for (unsigned int i = 0; i < s->setup->nr; i++)
		tenant_row(out, s, i);
	for (unsigned int i = 0; i < s->setup->nr; i++)
		show_requests(out, s, i);
	show_set(out, "reserved", &s->now.reserved);
	if (!gpupart_tpcset_empty(&s->now.held))
		show_set(out, "of others", &s->now.held);
	show_gpu(out, &s->gpu_sum);
	/* If the set and the counts of a tenant do not show its state, print a remark. */
	for (unsigned int i = 0; i < s->setup->nr; i++)
		if (s->now.tenants[i].state == QOS_STUCK ||
		    s->now.tenants[i].state == QOS_DISTURBED)
			fprintf(out->file, "%s: %s\n", s->setup->tenants[i].name,
				s->now.tenants[i].why);
	for (unsigned int i = 0; i < s->setup->nr; i++)
		show_lending(out, s, i);
	if (*s->now.words)
		out_wrap(out, 0, "", s->now.words);
	if (s->nr_replayed)
		fprintf(out->file, "replayed: %u decisions, all the same as in the log\n",
			s->nr_replayed);
}

void qos_text_changes(struct out *out, const struct qos_session *s)
{

	for (unsigned int i = 0; i < s->setup->nr; i++) {
		const struct qos_verdict *v = &s->now.tenants[i];

		if (!v->changed)
			continue;
		fprintf(out->file, "%6" PRIu64 " %-12s %3u TPCs: %s\n", s->now.epoch,
			s->setup->tenants[i].name, v->nr_tpcs, v->why);
	}
	if (*s->now.words)
		fprintf(out->file, "%6" PRIu64 " %s\n", s->now.epoch, s->now.words);
}

static json_t *mean_json(uint64_t sum, unsigned int nr)
{
	return nr ? json_integer((sum + nr / 2) / nr) : json_null();
}

json_t *qos_json(const struct qos_session *s)
{
	json_t *root = out_json_new(s->driver->command, s->simulated), *tenants = json_array();
	const struct qos_gpu_sum *gpu = &s->gpu_sum;

	for (unsigned int i = 0; i < s->setup->nr; i++) {
		const struct qos_tenant *t = &s->setup->tenants[i];
		const struct qos_verdict *v = &s->now.tenants[i];
		const struct qos_sum *sum = &s->sums[i];

		json_array_append_new(tenants, json_pack(
			"{s:s, s:s, s:i, s:o, s:I, s:i, s:i, s:i, s:i, s:s, s:s, s:o}",
			"name", t->name, "goal", qos_goal_name(t->goal),
			"epochs_heard", sum->heard, "epochs_met",
			t->goal == QOS_BEST_EFFORT ? json_null() : json_integer(sum->met),
			"speed_milli", (json_int_t)sum->speed, "changes", sum->changes,
			"nr_tpcs", v->nr_tpcs, "least_tpcs", sum->least, "most_tpcs", sum->most,
			"class", qos_class_name(v->class), "state", qos_state_name(v->state),
			"set", qos_set_json(&v->set)));
		if (sum->answered)
			json_object_update_new(json_array_get(tenants, i), json_pack(
				"{s:I, s:I}", "requests", (json_int_t)sum->answered,
				"requests_within", (json_int_t)sum->within));
		if (t->lend)
			json_object_update_new(json_array_get(tenants, i), json_pack(
				"{s:i, s:I}", "epochs_lent", sum->lent, "lend_ns",
				(json_int_t)v->lend_ns));
		if (qos_lender_of(s->setup, i) < QOS_MAX_TENANTS)
			json_object_set_new(json_array_get(tenants, i), "launches_borrowed",
					    json_integer(sum->borrowed));
	}
	json_object_update_new(root, json_pack(
		"{s:s, s:i, s:I, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:s}", "gpu", s->gpu,
		"nr_tpcs", s->board.nr_tpcs, "epoch_ns", (json_int_t)s->setup->epoch_ns,
		"epochs", s->nr_epochs, "epochs_changed", s->nr_changed, "tenants", tenants,
		"mean_power_mw", mean_json(gpu->power_mw, gpu->nr_power),
		"mean_sm_mhz", mean_json(gpu->sm_mhz, gpu->nr_sm),
		"mean_memory_mhz", mean_json(gpu->memory_mhz, gpu->nr_memory),
		"reserved", qos_set_json(&s->now.reserved), "held", qos_set_json(&s->now.held),
		"words", s->now.words));
	if (s->nr_replayed)
		json_object_update_new(root, json_pack("{s:i, s:b}", "decisions", s->nr_replayed,
						       "same", true));
	return root;
}
