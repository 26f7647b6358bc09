/* SPDX-License-Identifier: MIT */
/*
 * A GPU and its tenants as a few formulas, to hold the QoS policy against. Speed by TPCs is
 * in proportion (compute), in proportion up to a knee (memory), or n / (n + k) (saturating);
 * each takes bandwidth for its speed, and each is slowed down by what others take. A latency
 * is that of a queue with one server of that speed. Whole numbers, and noise from a seed.
 */
#ifndef GPUPART_TESTS_QOS_PLANT_H
#define GPUPART_TESTS_QOS_PLANT_H

#include <string.h>
#include <gpupart_qos.h>

enum plant_kind { PLANT_COMPUTE, PLANT_MEMORY, PLANT_SATURATING };

struct plant_load {
	enum plant_kind kind;
	uint64_t unit;		/* speed of one TPC, thousandths a second */
	unsigned int knee;	/* MEMORY: TPCs; SATURATING: k */
	unsigned int takes;	/* bandwidth, thousandths of the GPU's, at full speed */
	unsigned int minds;	/* how much all bandwidth taken by others slows it, thousandths */
	uint64_t offered;	/* requests a second, thousandths: of a latency */
};

struct plant {
	unsigned int nr, nr_tpcs;
	struct plant_load loads[QOS_MAX_TENANTS];
	unsigned int noise;	/* thousandths, about a standard deviation */
	uint64_t seed;
	bool silent[QOS_MAX_TENANTS], gone[QOS_MAX_TENANTS];
};

static inline uint32_t plant_random(struct plant *plant)
{
	plant->seed = plant->seed * 6364136223846793005ull + 1442695040888963407ull;
	return plant->seed >> 33;
}

/* Thousandths around 1000. */
static inline int64_t plant_noise(struct plant *plant)
{
	int64_t sum = 0;

	for (int i = 0; i < 4; i++)
		sum += plant_random(plant) % 2001;
	/* Four of them have a standard deviation of 1155. */
	return 1000 + (sum - 4000) * (int64_t)plant->noise / 1155;
}

static inline uint64_t plant_alone(const struct plant_load *l, unsigned int n)
{
	switch (l->kind) {
	case PLANT_MEMORY:
		return l->unit * (n < l->knee ? n : l->knee);
	case PLANT_SATURATING:
		return l->unit * n * l->knee / (n + l->knee);
	default:
		return l->unit * n;
	}
}

/* Speeds of all, without noise, with @counts TPCs each. */
static inline void plant_speeds(const struct plant *plant, const unsigned int *counts,
				uint64_t *speeds)
{
	uint64_t taken[QOS_MAX_TENANTS], sum = 0, full;
	unsigned int i;

	for (i = 0; i < plant->nr; i++) {
		full = plant_alone(&plant->loads[i], plant->nr_tpcs);
		taken[i] = counts[i] && full ? plant->loads[i].takes *
			   plant_alone(&plant->loads[i], counts[i]) / full : 0;
		sum += taken[i];
	}
	for (i = 0; i < plant->nr; i++)
		speeds[i] = plant_alone(&plant->loads[i], counts[i]) * 1000 /
			    (1000 + plant->loads[i].minds * (sum - taken[i]) / 1000);
}

/* A request's time in a queue that is emptied at @speed; ns. */
static inline uint64_t plant_latency(uint64_t speed, uint64_t offered)
{
	uint64_t spare = speed > offered + offered / 50 ? speed - offered : offered / 50 + 1;

	return 1000000000000ull / spare;
}

/* What @tenants did in an epoch of @ns. */
static inline void plant_epoch(struct plant *plant, const struct qos_tenant *tenants,
			       const unsigned int *counts, uint64_t ns, struct qos_measured *m)
{
	uint64_t speeds[QOS_MAX_TENANTS], speed;

	plant_speeds(plant, counts, speeds);
	for (unsigned int i = 0; i < plant->nr; i++) {
		speed = speeds[i] * plant_noise(plant) / 1000;
		m[i] = (struct qos_measured){
			.valid = !plant->silent[i], .gone = plant->gone[i], .ns = ns,
		};
		if (plant->gone[i])
			m[i].valid = false;
		else if (tenants[i].goal == QOS_LATENCY) {
			m[i].nr = plant->loads[i].offered * ns / 1000000000000ull;
			m[i].latency_ns = plant_latency(speed, plant->loads[i].offered);
		} else {
			m[i].work = speed * ns / 1000000000;
		}
	}
}

#endif
