// SPDX-License-Identifier: MIT
/*
 * Runs a neighbour, and records when the neighbour ran. The neighbour makes launches during the
 * measurement of a victim. Its kernels do not poll host memory. Instead, the length of each launch
 * is limited.
 */
#include <errno.h>
#include <unistd.h>
#include "cli/bench/bench.h"

int neighbour_open(struct bench *b, struct neighbour *n)
{
	int err = 0;

	n->b = b;
	n->nr_streams = NEIGHBOUR_STREAMS;
	for (int s = 0; !err && s < NEIGHBOUR_STREAMS; s++) {
		err = bench_stream(b, NULL, &n->streams[s]);
		for (int d = 0; !err && d < NEIGHBOUR_DEPTH; d++)
			err = CU(b, cuEventCreate, &n->events[s][d], DRIVER_EVENT_WAITED);
	}
	return err ?: slots_open(b, &n->slots, NEIGHBOUR_SLOTS);
}

/*
 * Runs in the neighbour's thread. If @result is an error, stores an error message about @call in
 * n->why.
 */
static bool good(struct neighbour *n, const char *call, int result)
{
	n->err = driver_check(&n->b->cu, call, result, n->why, sizeof(n->why));
	return !n->err;
}

static bool launch(struct neighbour *n, unsigned int nr)
{
	const struct driver *cu = &n->b->cu;
	unsigned int s = nr % n->nr_streams, d = nr / n->nr_streams % NEIGHBOUR_DEPTH;
	cuda_ptr at = n->slots.device + nr * sizeof(struct slot);
	uint32_t first = n->kernel.first + nr * n->kernel.step;
	void *params[] = { &at, &n->kernel.n, &n->kernel.buffer, &n->kernel.mask, &first };

	if (nr >= n->nr_streams * NEIGHBOUR_DEPTH) {
		if (!good(n, "cuEventSynchronize", cu->cuEventSynchronize(n->events[s][d])))
			return false;
		atomic_fetch_add(&n->nr_done, 1);
	}
	return good(n, "cuLaunchKernel",
		    cu->cuLaunchKernel(n->b->function[n->kernel.code], n->kernel.blocks, 1, 1,
				       n->kernel.threads, 1, 1, 0, n->streams[s], params, NULL)) &&
	       good(n, "cuEventRecord", cu->cuEventRecord(n->events[s][d], n->streams[s]));
}

static void *be_neighbour(void *arg)
{
	struct neighbour *n = arg;
	const struct driver *cu = &n->b->cu;
	unsigned int nr = 0;

	if (!good(n, "cuCtxSetCurrent", cu->cuCtxSetCurrent(cu->ctx)))
		goto leave;
	while (nr < NEIGHBOUR_SLOTS && !atomic_load(&n->stop) && launch(n, nr))
		atomic_store(&n->nr_launched, ++nr);
	for (int s = 0; !n->err && s < NEIGHBOUR_STREAMS; s++)
		good(n, "cuStreamSynchronize", cu->cuStreamSynchronize(n->streams[s]));
leave:
	/*
	 * Another thread may wait for the first launches. Wake this thread, so that it sees the
	 * error.
	 */
	atomic_fetch_add(&n->nr_done, 1);
	return NULL;
}

int neighbour_start(struct neighbour *n, const struct kernel *kernel,
		    const struct gpupart_tpcset *set)
{
	int err = slots_clear(&n->slots);

	n->kernel = *kernel;
	n->err = 0;
	atomic_store(&n->nr_launched, 0);
	atomic_store(&n->nr_done, 0);
	atomic_store(&n->stop, false);
	for (int s = 0; !err && s < NEIGHBOUR_STREAMS; s++)
		err = bench_stream_set(n->b, n->streams[s], set);
	if (err)
		return err;
	if (pthread_create(&n->thread, NULL, be_neighbour, n))
		return bench_fail(n->b, -EAGAIN, "cannot create a thread for the neighbour");
	while (!atomic_load(&n->nr_done))
		usleep(50);
	return 0;
}

int neighbour_stop(struct neighbour *n)
{
	unsigned int nr;
	int err;

	atomic_store(&n->stop, true);
	pthread_join(n->thread, NULL);
	if (n->err)
		return bench_fail(n->b, n->err, "the neighbour: %s", n->why);
	err = slots_fetch(&n->slots);
	nr = atomic_load(&n->nr_launched);
	for (unsigned int i = 0; i < nr; i++)
		n->spans[i] = (struct stats_span){ n->slots.host[i].start, n->slots.host[i].end };
	n->nr_spans = stats_join(n->spans, nr);
	return err;
}

double neighbour_time_share(const struct neighbour *n, const struct slots *slots, unsigned int nr)
{
	double least = 1;

	for (unsigned int i = 0; i < nr; i++) {
		struct stats_span span = { slots->host[i].start, slots->host[i].end };
		double share = stats_covered(n->spans, n->nr_spans, &span);

		if (share < least)
			least = share;
	}
	return least;
}
