/* SPDX-License-Identifier: MIT */
/*
 * A model of a GPU and its tenants, for tests of the QoS policy. The speed of a tenant depends on
 * its number of TPCs n. It is proportional to n (compute), proportional up to a knee (memory), or
 * proportional to n / (n + k) (saturating). Each tenant uses bandwidth in proportion to its
 * speed, and the bandwidth of other tenants slows it down. The latency of a tenant is the latency
 * of a queue with one server of this speed. The model uses integers, and noise from a seed. The
 * last part of this file is a second model, which uses tables. The tables contain measurements on
 * a GPU of 66 TPCs, in whole units of work.
 */
#ifndef GPUPART_TESTS_QOS_PLANT_H
#define GPUPART_TESTS_QOS_PLANT_H

#include <string.h>
#include "cli/qos/policy/gpupart_qos.h"

enum plant_kind { PLANT_COMPUTE, PLANT_MEMORY, PLANT_SATURATING };

struct plant_load {
	enum plant_kind kind;
	uint64_t unit;		/* speed of one TPC in thousandths per second */
	unsigned int knee;	/* MEMORY: TPCs; SATURATING: k */
	unsigned int takes;	/* bandwidth at full speed, in thousandths of the GPU's bandwidth */
	unsigned int minds;	/* if other tenants use all bandwidth: slowdown in thousandths */
	uint64_t offered;	/* for a latency: requests per second in thousandths */
};

struct plant {
	unsigned int nr, nr_tpcs;
	struct plant_load loads[QOS_MAX_TENANTS];
	unsigned int noise;	/* standard deviation of the noise, in thousandths */
	uint64_t seed;
	/*
	 * Only for the second model. If true, reports include partial units, and the speed of the
	 * first tenant sometimes dips.
	 */
	bool precise;
	unsigned int dips;	/* depth of the deepest dip in thousandths */
	unsigned int dip, dip_left;
	bool silent[QOS_MAX_TENANTS], gone[QOS_MAX_TENANTS];
};

static inline uint32_t plant_random(struct plant *plant)
{
	plant->seed = plant->seed * 6364136223846793005ull + 1442695040888963407ull;
	return plant->seed >> 33;
}

/* Returns a random number of thousandths around 1000. */
static inline int64_t plant_noise(struct plant *plant)
{
	int64_t sum = 0;

	for (int i = 0; i < 4; i++)
		sum += plant_random(plant) % 2001;
	/* The sum of four random numbers has a standard deviation of 1155. */
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

/* Computes the speeds of all tenants without noise. Tenant i has @counts[i] TPCs. */
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

/* Returns the time in ns of a request in a queue that is served at @speed. */
static inline uint64_t plant_latency(uint64_t speed, uint64_t offered)
{
	uint64_t spare = speed > offered + offered / 50 ? speed - offered : offered / 50 + 1;

	return 1000000000000ull / spare;
}

/* Computes the work of @tenants in an epoch of @ns. */
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

/* ------------------------------------------------------------------------------- tables */

struct plant_point {
	unsigned int nr_tpcs;
	uint64_t speed;			/* units per second */
};

/*
 * Requests per second of a ResNet-50 (half precision, 16 images) on an H200, by the number of its
 * TPCs. The first three columns are the speeds alone, next to training, and next to copies. The
 * training and the copies run on all other TPCs. The last two columns are the speeds of the
 * training and of the copies.
 */
static const struct plant_point served_alone[] = {
	{ 0, 0 }, { 8, 145 }, { 16, 226 }, { 24, 276 }, { 33, 474 }, { 38, 487 }, { 40, 491 },
	{ 48, 508 }, { 56, 559 }, { 60, 581 }, { 66, 665 },
};
static const struct plant_point served_beside_training[] = {
	{ 0, 0 }, { 8, 109 }, { 16, 168 }, { 24, 205 }, { 33, 384 }, { 34, 388 }, { 36, 400 },
	{ 38, 406 }, { 40, 411 }, { 42, 416 }, { 44, 425 }, { 46, 434 }, { 48, 439 }, { 52, 476 },
	{ 54, 488 }, { 56, 504 }, { 58, 513 }, { 60, 534 }, { 64, 570 }, { 66, 665 },
};
/*
 * Measurements on a second board. Near the bend of the curve, the table has every number of TPCs.
 */
static const struct plant_point served_beside_training_again[] = {
	{ 0, 0 }, { 36, 400 }, { 41, 414 }, { 42, 416 }, { 43, 423 }, { 44, 426 }, { 45, 436 },
	{ 46, 438 }, { 47, 441 }, { 48, 445 }, { 49, 463 }, { 50, 468 }, { 52, 477 }, { 54, 488 },
	{ 58, 513 }, { 60, 534 }, { 64, 570 }, { 66, 665 },
};
static const struct plant_point served_beside_copies[] = {
	{ 0, 0 }, { 16, 84 }, { 33, 260 }, { 36, 278 }, { 38, 293 }, { 40, 307 }, { 42, 320 },
	{ 44, 337 }, { 46, 350 }, { 49, 393 }, { 50, 401 }, { 51, 411 }, { 52, 423 }, { 53, 436 },
	{ 57, 477 },
	{ 58, 481 }, { 60, 511 }, { 64, 550 }, { 66, 665 },
};
static const struct plant_point steps_trained[] = {
	{ 0, 0 }, { 1, 4 }, { 2, 7 }, { 6, 19 }, { 8, 25 }, { 10, 30 }, { 12, 36 }, { 14, 41 },
	{ 18, 51 }, { 20, 54 }, { 22, 63 }, { 24, 66 }, { 26, 69 }, { 28, 71 }, { 30, 73 },
	{ 32, 84 }, { 33, 88 }, { 42, 101 }, { 50, 108 }, { 58, 111 }, { 66, 125 },
};
static const struct plant_point copies_made[] = {
	{ 0, 0 }, { 6, 91 }, { 8, 120 }, { 9, 137 }, { 13, 189 }, { 14, 201 }, { 16, 226 },
	{ 17, 237 },
	{ 20, 263 }, { 22, 283 }, { 24, 301 }, { 28, 331 }, { 32, 353 }, { 66, 380 },
};

enum plant_mode { PLANT_TRAINS, PLANT_IDLES, PLANT_COPIES };

/* Interpolates between the points of @table. Returns thousandths per second. */
static inline uint64_t plant_at(const struct plant_point *table, unsigned int n)
{
	while (table[1].nr_tpcs < n)
		table++;
	return table[0].speed * 1000 + (table[1].speed - table[0].speed) * 1000 *
	       (n - table[0].nr_tpcs) / (table[1].nr_tpcs - table[0].nr_tpcs);
}

/* Stores the speeds of two tenants in speeds[0] and speeds[1]. The second tenant is in @mode. */
static inline void plant_served(const struct plant *plant, enum plant_mode mode,
				const unsigned int *counts, uint64_t *speeds)
{
	const struct plant_point *beside = mode == PLANT_COPIES ? served_beside_copies :
					   plant->precise ? served_beside_training_again :
					   served_beside_training;
	uint64_t alone = plant_at(served_alone, counts[0]), slowed = plant_at(beside, counts[0]);

	/* A neighbour with half as many TPCs causes half the slowdown. */
	if (mode == PLANT_IDLES || counts[0] == 66)
		speeds[0] = alone;
	else
		speeds[0] = alone - (alone - slowed) * counts[1] / (66 - counts[0]);
	speeds[1] = mode == PLANT_IDLES ? 0 :
		    plant_at(mode == PLANT_COPIES ? copies_made : steps_trained, counts[1]);
}

/* A unit in progress: the finished part, and the speed. */
struct plant_unit {
	uint64_t done, speed;		/* thousandths */
	/* part of the finished work that an earlier epoch has counted */
	uint64_t counted;
};

/*
 * The tenant behaves like inference next to training on an H200. In about one of 60 epochs, a dip
 * of the speed begins. The dip takes one to sixteen epochs, and is at least half of the deepest
 * dip.
 */
static inline uint64_t plant_dip(struct plant *plant, uint64_t speed)
{
	if (!plant->dips)
		return speed;
	if (plant->dip_left) {
		plant->dip_left--;
	} else {
		plant->dip = 0;
		if (plant_random(plant) % 60 == 0) {
			plant->dip = plant->dips / 2 + plant_random(plant) % (plant->dips / 2 + 1);
			plant->dip_left = plant_random(plant) % 16;
		}
	}
	return speed * (1000 - plant->dip) / 1000;
}

/*
 * Computes an epoch of @ns. The blocks of a unit stay on their SMs, so the speed of a unit does
 * not change. Incomplete units count in the next epoch.
 */
static inline void plant_serve(struct plant *plant, enum plant_mode mode,
			       const unsigned int *counts, uint64_t ns, struct plant_unit *unit,
			       struct qos_measured *m)
{
	uint64_t speeds[2], us, first, work;

	plant_served(plant, mode, counts, speeds);
	if (mode == PLANT_TRAINS)
		speeds[0] = plant_dip(plant, speeds[0]);
	for (unsigned int i = 0; i < 2; i++) {
		us = ns / 1000;
		speeds[i] = speeds[i] * plant_noise(plant) / 1000;
		if (!unit[i].speed)
			unit[i].speed = speeds[i];
		first = unit[i].speed ? (1000 - unit[i].done) * 1000000 / unit[i].speed : us;
		if (first >= us) {
			work = unit[i].done + unit[i].speed * us / 1000000;
		} else {
			work = 1000 + speeds[i] * (us - first) / 1000000;
			unit[i].speed = speeds[i];
		}
		m[i] = (struct qos_measured){ .valid = true, .ns = ns, .work = work / 1000 * 1000 };
		if (plant->precise) {
			m[i].reports = work / 1000;
			m[i].exact = m[i].reports;
			m[i].work = m[i].reports ? work - unit[i].counted : 0;
			if (m[i].reports)
				unit[i].counted = work % 1000;
		}
		unit[i].done = work % 1000;
	}
}

#endif
