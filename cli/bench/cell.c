// SPDX-License-Identifier: MIT
/* A victim alone, beside a neighbour, alone again. Must not know which of them are compared. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "cli/bench/bench.h"
#include "cli/target/nvml.h"

int meter_open(struct bench *b, struct meter *m, unsigned int nr)
{
	int err;

	memset(m, 0, sizeof(*m));
	m->b = b;
	m->nr = nr;
	m->us = calloc(nr, sizeof(*m->us));
	if (!m->us)
		return bench_fail(b, -ENOMEM, "no memory for %u times", nr);
	err = workload_open(b, &m->work);
	if (!err)
		err = neighbour_open(b, &m->neighbour);
	if (!err)
		err = slots_open(b, &m->slots, nr + 1);
	if (!err)
		err = bench_stream(b, NULL, &m->victim);
	if (err)
		meter_close(m);
	return err;
}

void meter_close(struct meter *m)
{
	if (!m->b)
		return;
	if (m->victim)
		m->b->cu.cuStreamDestroy_v2(m->victim);
	slots_close(&m->slots);
	neighbour_close(&m->neighbour);
	if (m->work.b)
		workload_close(&m->work);
	free(m->us);
	memset(m, 0, sizeof(*m));
}

static int series(struct meter *m, const struct kernel *kernel, double *mhz)
{
	int err = bench_series(m->b, m->victim, kernel, &m->slots, m->nr, m->us);

	if (!err && mhz) {
		double *clocks = calloc(m->nr, sizeof(*clocks));

		if (!clocks)
			return bench_fail(m->b, -ENOMEM, "no memory");
		for (unsigned int i = 0; i < m->nr; i++)
			clocks[i] = slot_mhz(&m->slots.host[i]);
		*mhz = stats_median(clocks, m->nr);
		free(clocks);
	}
	return err;
}

int meter_alone(struct meter *m, const struct kernel *kernel, const struct gpupart_tpcset *set,
		struct stats *stats, double *mhz)
{
	int err = bench_stream_set(m->b, m->victim, set);

	if (!err)
		err = series(m, kernel, mhz);
	if (!err)
		*stats = stats_of(m->us, m->nr);
	return err;
}

static int clock_now(const struct meter *m)
{
	return m->b->simulated ? -1 : nvml_sm_clock(m->b->pci);
}

int meter_cell(struct meter *m, const struct kernel *victim, const struct gpupart_tpcset *set,
	       const struct kernel *neighbour, const struct gpupart_tpcset *neighbour_set,
	       struct cell *cell)
{
	struct stats again;
	int err, stopped;

	memset(cell, 0, sizeof(*cell));
	err = meter_alone(m, victim, set, &cell->alone, &cell->mhz_alone);
	cell->nvml[0] = clock_now(m);
	if (!err)
		err = neighbour_start(&m->neighbour, neighbour, neighbour_set);
	if (err)
		return err;
	err = series(m, victim, &cell->mhz_beside);
	cell->nvml[1] = clock_now(m);
	stopped = neighbour_stop(&m->neighbour);
	if (!err)
		err = stopped;
	if (err)
		return err;
	cell->beside = stats_of(m->us, m->nr);
	cell->share = neighbour_share(&m->neighbour, &m->slots, m->nr);
	err = meter_alone(m, victim, set, &again, NULL);
	cell->nvml[2] = clock_now(m);
	/* The mean of before and after: a drift of the clock meets both alike. */
	cell->alone.median = (cell->alone.median + again.median) / 2;
	cell->slowdown = cell->alone.median > 0 ? cell->beside.median / cell->alone.median : 0;
	return err;
}
