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
	if (!s->log) {
		json_decref(line);
		return -1;
	}
	if (qos_log_write(s->log, line))
		return cmd_fail(cmd, EXIT_FAILED, "the log could not be written");
	return -1;
}

static void count(struct qos_session *s)
{
	for (unsigned int i = 0; i < s->setup->nr; i++)
		s->counts[i] = s->now.tenants[i].nr_tpcs;
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
	return log_line(s, cmd, qos_log_begin(s));
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
	epoch = &s->epochs[s->nr_epochs++];
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
		status = keep(s, cmd, time_ns);
	}
	count(s);
	if (status >= 0)
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

void qos_sum(const struct qos_session *s, unsigned int tenant, struct qos_sum *sum)
{
	bool guaranteed = s->setup->tenants[tenant].goal != QOS_BEST_EFFORT;
	uint64_t speed = 0;

	*sum = (struct qos_sum){ .least = GPUPART_MAX_TPCS };
	for (unsigned int e = 0; e < s->nr_epochs; e++) {
		const struct qos_sample *t = &s->epochs[e].tenants[tenant];

		if (t->nr_tpcs < sum->least)
			sum->least = t->nr_tpcs;
		if (t->nr_tpcs > sum->most)
			sum->most = t->nr_tpcs;
		sum->changes += t->changed;
		if (t->state != QOS_GOOD && t->state != QOS_MISSED && t->state != QOS_STUCK)
			continue;
		sum->heard++;
		sum->met += guaranteed && t->score >= 1000;
		speed += t->speed;
	}
	if (sum->heard)
		sum->speed = speed / sum->heard;
	if (!s->nr_epochs)
		sum->least = 0;
}
