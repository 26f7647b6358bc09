// SPDX-License-Identifier: MIT
/* Runs the policy for any driver: steps, log and sums. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "cli/qos/qos.h"
#include "cli/util/message.h"

static bool is_written(FILE *file, const json_t *line)
{
	int bad = json_dumpf(line, file, JSON_COMPACT | JSON_PRESERVE_ORDER);

	fputc('\n', file);
	return !bad && !fflush(file) && !ferror(file);
}

/* Writes @line to the outputs and frees it. Then the driver carries out the decision. */
static int decided(struct qos_session *s, json_t *line)
{
	const struct qos_driver *driver = s->driver;
	int status = 0;

	if (s->lines && !is_written(s->lines, line))
		status = failure("cannot write the lines of --json");
	if (s->log && !is_written(s->log, line)) {
		if (!driver->live) {
			status = failure("cannot write the log");
		} else {
			/*
			 * For programs with a goal, the controller is more important than the
			 * log. So the run continues.
			 */
			remark("cannot write the log, which ends here: %s", strerror(errno));
			s->log = NULL;
		}
	}
	if (!status && driver && driver->decided)
		status = driver->decided(s, line);
	json_decref(line);
	return status;
}

static void count(struct qos_session *s)
{
	for (unsigned int i = 0; i < s->setup->nr; i++)
		s->counts[i] = s->now.tenants[i].nr_tpcs;
}

/* Returns the TPCs of other programs for the next decision of the policy. */
static struct gpupart_tpcset held_by_others(const struct qos_session *s)
{
	struct gpupart_tpcset held = { 0 };

	for (unsigned int i = 0; i < s->others.nr; i++)
		held = gpupart_tpcset_or(&held, &s->others.list[i].set);
	return held;
}

int qos_session_begin(struct qos_session *s)
{
	const struct qos_setup *setup = s->setup;
	char why[QOS_MESSAGE_SIZE];
	int err;

	s->board.held = held_by_others(s);
	err = qos_policy_new(&s->board, &setup->rules, setup->tenants, setup->nr, &s->policy,
			     &s->now, why);
	if (err)
		return cmd_fail(cmd_name, err == -ENOMEM ? EXIT_FAILED : EXIT_USAGE, "%s: %s",
				setup->path, why);
	count(s);
	s->state = (struct nvml_state){ -1, -1, -1 };
	return 0;
}

int qos_session_log_begin(struct qos_session *s)
{
	return decided(s, qos_log_begin(s));
}

/* An epoch has ended. Adds the result of tenant @i to its sums. */
static void add_tenant(struct qos_session *s, unsigned int i,
		       const struct qos_measured *measured)
{
	const struct qos_verdict *v = &s->now.tenants[i];
	unsigned int nr_tpcs = s->counts[i];
	struct qos_sum *sum = &s->sums[i];

	if (s->epochs)
		s->epochs[s->nr_epochs].tenants[i] = (struct qos_sample){
			.score = v->score, .speed = v->speed, .nr_tpcs = nr_tpcs,
			.state = v->state,
		};
	if (!s->nr_epochs || nr_tpcs < sum->least)
		sum->least = nr_tpcs;
	if (nr_tpcs > sum->most)
		sum->most = nr_tpcs;
	sum->changes += v->nr_tpcs != nr_tpcs;
	sum->answered += measured->answered;
	sum->within += measured->within;
	sum->borrowed += measured->borrowed;
	sum->lent += measured->lent;
	if (!qos_has_result(v->state))
		return;
	sum->heard++;
	sum->met += s->setup->tenants[i].goal != QOS_BEST_EFFORT && v->score >= 1000;
	sum->speeds += v->speed;
	sum->speed = sum->speeds / sum->heard;
}

static void add_value(int value, uint64_t *sum, unsigned int *nr)
{
	*sum += value < 0 ? 0 : value;
	*nr += value >= 0;
}

static int add_epoch(struct qos_session *s, const struct qos_measured *measured)
{
	struct qos_gpu_sum *sum = &s->gpu_sum;

	if (s->picture && s->nr_epochs == s->room) {
		s->room = s->room ? 2 * s->room : 256;
		s->epochs = reallocarray(s->epochs, s->room, sizeof(*s->epochs));
		if (!s->epochs)
			return failure("no memory for %u epochs", s->room);
	}
	if (s->epochs)
		s->epochs[s->nr_epochs] = (struct qos_epoch){ .time_ns = s->time_ns };
	for (unsigned int i = 0; i < s->setup->nr; i++)
		add_tenant(s, i, &measured[i]);
	s->nr_epochs++;
	s->nr_changed += s->now.changed || s->now.swapping;
	add_value(s->state.power_mw, &sum->power_mw, &sum->nr_power);
	add_value(s->state.sm_mhz, &sum->sm_mhz, &sum->nr_sm);
	add_value(s->state.memory_mhz, &sum->memory_mhz, &sum->nr_memory);
	return 0;
}

int qos_session_step(struct qos_session *s, const struct qos_measured *measured)
{
	struct gpupart_tpcset held = held_by_others(s);
	bool swap = s->now.swapping;
	int status = 0;

	if (s->others_changed)
		qos_policy_hold(s->policy, &held);
	qos_policy_step(s->policy, measured, &s->now);
	if (!swap)
		status = add_epoch(s, measured);
	count(s);
	return status ?: decided(s, qos_log_step(s, swap, measured));
}

void qos_session_end(struct qos_session *s)
{
	qos_policy_free(s->policy);
	free(s->epochs);
	s->policy = NULL;
	s->epochs = NULL;
}

int qos_session_run(struct qos_session *s)
{
	struct qos_measured measured[QOS_MAX_TENANTS] = { 0 };
	int status;

	s->picture = !s->args->json && (s->options->of ? !strcmp(s->options->of, "svg")
						       : out_is_svg(s->args->output));
	status = qos_session_begin(s) ?: qos_results_open(s);
	if (!status && s->driver->start)
		status = s->driver->start(s);
	if (!status)
		status = qos_results_begin(s) ?: qos_session_log_begin(s);
	while (!status && !s->over) {
		s->state = (struct nvml_state){ -1, -1, -1 };
		s->others_changed = false;
		status = s->driver->measure(s, measured);
		if (!status && !s->over)
			status = qos_session_step(s, measured);
	}
	if (!status)
		status = qos_results_end(s);
	qos_results_close(s);
	qos_session_end(s);
	return status;
}
