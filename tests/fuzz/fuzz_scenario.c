// SPDX-License-Identifier: MIT
/*
 * Fuzz target: scenario files. Either a file is refused with one line, or each of its runs ends.
 * A run ends in three cases: it is completed, the pipeline refuses it, or it makes no progress
 * and is stopped with a message. A completed run is drawn as SVG and as text. This target
 * searches for errors, not for slow cases. So runs are stopped after some simulated time, and
 * long programs are not run.
 */
#include <errno.h>
#include <string.h>
#include "cli/sim/sim.h"
#include "cli/util/message.h"
#include "tests/fuzz/fuzz.h"

#define MOST_STEPS	2000
#define MOST_BLOCKS	200000
#define MOST_SHAPES	20000	/* maximum product of the numbers of kernels, processes and
				 * GPUs */
#define STOP_NS		2000000

/* Maximum number of steps. */
static uint64_t walked(const struct pipe_scenario *pipe, const struct pipe_step *steps,
		       unsigned int nr, uint64_t *blocks)
{
	uint64_t sum = 0, body, inside;
	unsigned int i;

	for (i = 0; i < nr && sum <= MOST_STEPS; i++) {
		sum++;
		if (steps[i].kind == PIPE_LOOP) {
			inside = 0;
			body = walked(pipe, steps[i].body, steps[i].nr_body, &inside);
			sum += steps[i].amount > MOST_STEPS ? MOST_STEPS + 1 :
			       steps[i].amount * (body + 1);
			*blocks += steps[i].amount > MOST_STEPS ? 0 : steps[i].amount * inside;
		} else if (steps[i].kind == PIPE_LAUNCH) {
			*blocks += pipe->kernels[steps[i].what].blocks;
		} else if (steps[i].kind == PIPE_GRAPH) {
			sum += pipe->graphs[steps[i].what].nr_nodes;
		}
	}
	return sum;
}

static bool is_short(const struct pipe_scenario *pipe)
{
	uint64_t steps = 0, blocks = 0;
	unsigned int i;

	for (i = 0; i < pipe->nr_programs; i++)
		steps += walked(pipe, pipe->programs[i].steps, pipe->programs[i].nr_steps,
				&blocks);
	for (i = 0; i < pipe->nr_graphs; i++)
		if (pipe->graphs[i].nr_nodes > 50)
			return false;
	return steps <= MOST_STEPS && blocks <= MOST_BLOCKS &&
	       (uint64_t)pipe->nr_kernels * pipe->nr_processes * pipe->nr_gpus <= MOST_SHAPES &&
	       pipe->nr_processes * pipe->nr_gpus <= 16;
}

static void draw(struct sim_run *run)
{
	struct out out = { .file = fuzz_nowhere(), .bold = "", .dim = "", .red = "", .plain = "" };
	uint64_t end = run->result.end ? run->result.end : 1;
	const struct pipe_scenario *pipe = &run->scenario.pipe;

	/* Runs with many SMs take long, so use many SMs only sometimes. */
	if (pipe->gpus[0].map.nr_sms * pipe->nr_gpus < 20 || !(end % 16))
		sim_svg(&out, run, "title", 0, end);
	sim_rows(&out, run, end / 3, end);
}

/*
 * Makes one run of the scenario. If there are no more runs, or if the run was refused, returns
 * false.
 */
static bool run_one(struct yaml *yaml, unsigned int i)
{
	struct sim sim = { .path = "it", .nr_runs = 1 };
	struct sim_outcome *outcomes = NULL;
	struct sim_run run = { 0 };
	bool good;
	int err;

	if (i > 3 || !scenario_run_name(yaml, i, &run.name))
		return false;
	good = scenario_make(&run.scenario, yaml, i);
	MUST(good == !fuzz_lines);
	if (good && is_short(&run.scenario.pipe)) {
		if (!run.scenario.pipe.stop_ns || run.scenario.pipe.stop_ns > STOP_NS)
			run.scenario.pipe.stop_ns = STOP_NS;
		err = sim_run(&run);
		MUST(!err || ((err == -EINVAL || err == -EDEADLK || err == -EOVERFLOW) &&
			      run.result.why[0] && run.result.line >= 0));
		if (!err)
			draw(&run);
		sim.yaml = *yaml;
		sim.runs = &run;
		if (!err)
			sim_expect(&sim, &outcomes);
		MUST(fuzz_lines == sim.yaml.failed);
		free(outcomes);
		good = !sim.yaml.failed;
	}
	sim_run_free(&run);
	return good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct yaml yaml;
	unsigned int i;

	fuzz_lines = 0;
	if (yaml_open(&yaml, "", fuzz_file(data, size), "a scenario")) {
		MUST(fuzz_lines == 1);
		return 0;
	}
	MUST(!fuzz_lines);
	for (i = 0; yaml_root(&yaml) && run_one(&yaml, i); i++)
		;
	yaml_close(&yaml);
	return 0;
}
