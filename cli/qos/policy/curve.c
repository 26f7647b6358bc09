// SPDX-License-Identifier: MIT
/*
 * Chooses the speed curve of a tenant by the shape of its set. If a speed is below the curve, finds
 * out whether GPCs shared with other tenants are the reason.
 */
#include "cli/qos/policy/internal.h"

/* limit under one load: how often shared GPCs can explain a low speed */
#define EDGES		8u

void qos_choose_curves(struct qos_policy *p)
{
	enum qos_shape others = QOS_PACKED, shape;

	for (unsigned int i = 0; i < p->nr && others == QOS_PACKED; i++)
		others = p->actors[i].shape;
	for (unsigned int i = 0; i < p->nr; i++) {
		struct qos_actor *a = &p->actors[i];

		/* The shapes of other tenants decide which TPCs best-effort tenants get. */
		shape = a->shape == QOS_PACKED && !qos_guaranteed(a) ? others : a->shape;
		a->curve = a->curves[shape];
	}
}

void qos_forget_shapes(struct qos_actor *a)
{
	memset(a->curves, 0, sizeof(a->curves));
	a->tried_shapes = 0;
	a->edge = a->nr_edges = 0;
}

/* --------------------------------------------------------------- TPCs in shared GPCs */

unsigned int qos_alone(const struct qos_policy *p, const struct qos_actor *a)
{
	struct gpupart_tpcset own = gpupart_tpcset_or(&a->set, &a->coming), all;
	bool others[QOS_UNKNOWN_PLACE + 1] = { false };
	unsigned int nr = 0;

	for (unsigned int i = 0; i < p->nr; i++) {
		all = gpupart_tpcset_or(&p->actors[i].set, &p->actors[i].coming);
		for (unsigned int t = 0; &p->actors[i] != a && t < p->board.nr_tpcs; t++)
			others[p->board.gpc[t]] |= gpupart_tpcset_has(&all, t);
	}
	for (unsigned int t = 0; t < p->board.nr_tpcs; t++)
		nr += gpupart_tpcset_has(&own, t) && !others[p->board.gpc[t]];
	return nr;
}

bool qos_find_edge(const struct qos_policy *p, struct qos_actor *a, uint64_t value, uint64_t room)
{
	unsigned int most = a->state == QOS_GOOD ? GPUPART_MAX_TPCS : a->nr, n, left;
	unsigned int alone = qos_alone(p, a);

	if (!p->board.shapes || !qos_guaranteed(a) || a->t.goal == QOS_LATENCY || room >= 1000 ||
	    alone == a->nr || alone < most_of(a->least, a->nr * 2 / 3) || a->nr_edges == EDGES)
		return false;
	/*
	 * Find out whether the tenant is slower than with fewer TPCs. If the tenant meets its goal,
	 * also find out whether it lost more speed than the loss of TPCs explains.
	 */
	for (n = 1; n <= most; n++) {
		left = n < a->nr ? 1000 - room : 800 - least_of(800, room);
		if (qos_times(a->curve[n], left * least_of(n, a->nr), 1000 * n) > value)
			break;
	}
	if (n > most)
		return false;
	a->edge = most_of(a->edge, a->nr);
	a->nr_edges++;
	return true;
}
