// SPDX-License-Identifier: MIT
/* Measures a victim three times: alone, next to a neighbour, and alone again. */
#include <string.h>
#include "cli/bench/bench.h"
#include "cli/target/nvml.h"

int meter_open(struct bench *b, struct meter *m, unsigned int nr)
{
	m->b = b;
	m->nr = nr;
	return workload_open(b, &m->work) ?:
	       neighbour_open(b, &m->neighbour) ?:
	       slots_open(b, &m->slots, nr + 1) ?:
	       bench_stream(b, NULL, &m->victim);
}

static int series(struct meter *m, const struct kernel *kernel, double *mhz)
{
	int err = bench_series(m->b, m->victim, kernel, &m->slots, m->nr, m->us);

	for (unsigned int i = 0; !err && i < m->nr; i++)
		m->clocks[i] = slot_mhz(&m->slots.host[i]);
	if (!err && mhz)
		*mhz = stats_median(m->clocks, m->nr);
	return err;
}

int meter_alone(struct meter *m, const struct kernel *kernel, const struct gpupart_tpcset *set,
		struct stats *stats, double *mhz)
{
	int err = bench_stream_set(m->b, m->victim, set) ?:
		  series(m, kernel, mhz);

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
	cell->share = neighbour_time_share(&m->neighbour, &m->slots, m->nr);
	err = meter_alone(m, victim, set, &again, NULL);
	cell->nvml[2] = clock_now(m);
	/*
	 * Use the mean of the first and the last solo time. Then a drift of the clock affects both
	 * sides of the ratio equally.
	 */
	cell->alone.median = (cell->alone.median + again.median) / 2;
	cell->slowdown = cell->alone.median > 0 ? cell->beside.median / cell->alone.median : 0;
	return err;
}
