// SPDX-License-Identifier: MIT
/*
 * A run of the policy, live, simulated or replayed: steps it, logs, and keeps what a picture
 * needs. Knows not where measurements come from.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "cmd.h"
#include "qos.h"

static int log_line(struct qos_session *s, const char *cmd, json_t *line)
{
	bool bad_lines = s->lines && qos_log_write(s->lines, line);
	bool bad_log = s->log && qos_log_write(s->log, line);

	json_decref(line);
	if (bad_lines)
		return cmd_fail(cmd, EXIT_FAILED, "the lines of --json could not be written");
	if (!bad_log)
		return -1;
	if (!s->log_may_end)
		return cmd_fail(cmd, EXIT_FAILED, "the log could not be written");
	/* Programs that have a goal need us more than a log. What is cut stays its last line. */
	cmd_note(cmd, "the log could not be written, and ends: %s", strerror(errno));
	s->log = NULL;
	return -1;
}

static void count(struct qos_session *s)
{
	for (unsigned int i = 0; i < s->setup->nr; i++)
		s->counts[i] = s->now.tenants[i].nr_tpcs;
}

void qos_session_hold(struct qos_session *s)
{
	struct gpupart_tpcset held = { 0 };

	for (unsigned int i = 0; i < s->others.nr; i++)
		held = gpupart_tpcset_or(&held, &s->others.list[i].set);
	if (s->policy)
		qos_policy_hold(s->policy, &held);
	else
		s->board.held = held;
}

int qos_session_begin(struct qos_session *s, const char *cmd)
{
	const struct qos_setup *setup = s->setup;
	char why[QOS_WORDS];
	int err;

	err = qos_policy_new(&s->board, &setup->rules, setup->tenants, setup->nr, &s->policy,
			     &s->now, why);
	if (err)
		return cmd_fail(cmd, err == -ENOMEM ? EXIT_FAILED : EXIT_USAGE, "%s: %s",
				setup->path, why);
	count(s);
	s->state = (struct nvml_state){ -1, -1, -1 };
	return -1;
}

int qos_session_log_begin(struct qos_session *s, const char *cmd)
{
	return s->log || s->lines ? log_line(s, cmd, qos_log_begin(s)) : -1;
}

static void add_epoch(struct qos_session *s)
{
	s->nr_epochs++;
	s->nr_changed += s->now.changed || s->now.swapping;
	for (unsigned int i = 0; i < s->setup->nr; i++) {
		bool guaranteed = s->setup->tenants[i].goal != QOS_BEST_EFFORT;
		const struct qos_verdict *v = &s->now.tenants[i];
		struct qos_sum *sum = &s->sums[i];

		if (s->nr_epochs == 1 || s->counts[i] < sum->least)
			sum->least = s->counts[i];
		if (s->counts[i] > sum->most)
			sum->most = s->counts[i];
		sum->changes += v->nr_tpcs != s->counts[i];
		if (v->state != QOS_GOOD && v->state != QOS_MISSED && v->state != QOS_STUCK)
			continue;
		sum->heard++;
		sum->met += guaranteed && v->score >= 1000;
		sum->speeds += v->speed;
		sum->speed = sum->speeds / sum->heard;
	}
}

static void add(int value, uint64_t *sum, unsigned int *nr)
{
	if (value < 0)
		return;
	*sum += value;
	(*nr)++;
}

static void add_state(struct qos_gpu_sum *sum, const struct nvml_state *state)
{
	add(state->power_mw, &sum->power_mw, &sum->nr_power);
	add(state->sm_mhz, &sum->sm_mhz, &sum->nr_sm);
	add(state->memory_mhz, &sum->memory_mhz, &sum->nr_memory);
}

static int keep(struct qos_session *s, const char *cmd, uint64_t time_ns)
{
	struct qos_epoch *epochs, *epoch;

	if (s->nr_epochs == s->room) {
		s->room = s->room ? 2 * s->room : 256;
		epochs = realloc(s->epochs, s->room * sizeof(*epochs));
		if (!epochs)
			return cmd_fail(cmd, EXIT_FAILED, "no memory for %u epochs", s->room);
		s->epochs = epochs;
	}
	epoch = &s->epochs[s->nr_epochs];
	memset(epoch, 0, sizeof(*epoch));
	epoch->time_ns = time_ns;
	epoch->changed = s->now.changed || s->now.swapping;
	for (unsigned int i = 0; i < s->setup->nr; i++) {
		const struct qos_verdict *v = &s->now.tenants[i];

		epoch->tenants[i] = (struct qos_sample){
			.score = v->score, .speed = v->speed, .nr_tpcs = s->counts[i],
			.state = v->state, .changed = v->nr_tpcs != s->counts[i],
		};
	}
	return -1;
}

int qos_session_step(struct qos_session *s, const char *cmd, uint64_t time_ns,
		     const struct qos_measured *measured)
{
	bool swap = s->now.swapping;
	int status = -1;

	qos_policy_step(s->policy, measured, &s->now);
	if (!swap) {
		add_state(&s->gpu_sum, &s->state);
		if (s->picture)
			status = keep(s, cmd, time_ns);
		add_epoch(s);
	}
	count(s);
	if (status >= 0 || (!s->log && !s->lines))
		return status;
	return log_line(s, cmd, qos_log_step(s, time_ns, swap, measured));
}

void qos_session_end(struct qos_session *s)
{
	qos_policy_free(s->policy);
	free(s->epochs);
	s->policy = NULL;
	s->epochs = NULL;
}
