// SPDX-License-Identifier: MIT
/*
 * What the pictures of a run say in words: of GPUs, of streams, of each kernel and where it
 * was launched. Knows not how they are drawn.
 */
#include <string.h>
#include "sim_blocks.h"

#define MOST_USES	4	/* streams and sets of a kernel that are named */
#define MOST_STREAMS	16

struct use {
	unsigned int stream;
	const struct pipe_set *set;	/* NULL: all */
};

struct uses {
	const struct pipe_scenario *pipe;
	unsigned int kernel, nr;
	struct use list[MOST_USES + 1];	/* the last: there are more */
};

const char *sim_blocks_name(const struct sim_blocks *b, unsigned int kind)
{
	if (kind == SIM_BLOCKS_COPY)
		return "copies";
	return kind < b->nr_kinds ? b->kinds[kind].kernel->name : "all other kernels";
}

static void set_words(const struct pipe_scenario *pipe, unsigned int gpu,
		      const struct pipe_set *set, char *text, size_t len)
{
	char list[512];

	if (!set) {
		out_append(text, len, "all TPCs");
		return;
	}
	sim_list(list, sizeof(list), set->allowed, pipe->gpus[gpu].map.nr_tpcs);
	out_append(text, len, "TPC%s %s", strpbrk(list, ",-") ? "s" : "", list);
}

/* ------------------------------------------------------------------ where it is launched */

static bool is_same(const struct use *x, const struct use *y)
{
	return x->stream == y->stream &&
	       (x->set == y->set || (x->set && y->set && !memcmp(x->set, y->set, sizeof(*x->set))));
}

static void add_use(struct uses *uses, const struct pipe_step *step)
{
	const struct pipe_set *own = uses->pipe->streams[step->stream].set;
	struct use use = { step->stream, step->set ? step->set : own };

	for (unsigned int i = 0; i < uses->nr; i++)
		if (is_same(&uses->list[i], &use))
			return;
	if (uses->nr <= MOST_USES)
		uses->list[uses->nr++] = use;
}

static bool has_node(const struct pipe_graph *graph, unsigned int kernel)
{
	for (unsigned int i = 0; i < graph->nr_nodes; i++)
		if (graph->nodes[i].kernel == kernel)
			return true;
	return false;
}

static void find_uses(struct uses *uses, const struct pipe_step *steps, unsigned int nr)
{
	for (unsigned int i = 0; i < nr && uses->nr <= MOST_USES; i++)
		if (steps[i].kind == PIPE_LOOP && steps[i].amount)
			find_uses(uses, steps[i].body, steps[i].nr_body);
		else if ((steps[i].kind == PIPE_LAUNCH && steps[i].what == uses->kernel) ||
			 (steps[i].kind == PIPE_GRAPH &&
			  has_node(&uses->pipe->graphs[steps[i].what], uses->kernel)))
			add_use(uses, &steps[i]);
}

static void use_words(const struct sim_blocks *b, const struct pipe_kernel *kernel, char *text,
		      size_t len)
{
	const struct pipe_scenario *pipe = &b->run->scenario.pipe;
	struct uses uses = { .pipe = pipe, .kernel = kernel - pipe->kernels };

	for (unsigned int i = 0; i < pipe->nr_programs; i++)
		find_uses(&uses, pipe->programs[i].steps, pipe->programs[i].nr_steps);
	for (unsigned int i = 0; i < uses.nr && i < MOST_USES; i++) {
		const struct pipe_stream *stream = &pipe->streams[uses.list[i].stream];

		out_append(text, len, "; stream %s, ", stream->name);
		set_words(pipe, stream->gpu, uses.list[i].set, text, len);
	}
	if (uses.nr > MOST_USES)
		out_append(text, len, "; and more");
}

void sim_blocks_words(const struct sim_blocks *b, unsigned int kind, char *text, size_t len)
{
	const struct sim_kind *sum;
	char from[32], to[32];

	*text = '\0';
	if (kind == SIM_BLOCKS_KINDS)
		return;
	sum = kind == SIM_BLOCKS_COPY ? &b->run->copies : b->kinds[kind].sum;
	sim_time(from, sum->first);
	sim_time(to, sum->last);
	if (kind == SIM_BLOCKS_COPY) {
		out_append(text, len, "%llu, %s to %s", (unsigned long long)sum->nr, from, to);
		return;
	}
	out_append(text, len, "%llu launch%s of %llu block%s on %u SM%s, %s to %s",
		   (unsigned long long)sum->nr, sum->nr == 1 ? "" : "es",
		   (unsigned long long)b->kinds[kind].kernel->blocks,
		   b->kinds[kind].kernel->blocks == 1 ? "" : "s", sim_nr_sms(sum),
		   sim_nr_sms(sum) == 1 ? "" : "s", from, to);
	use_words(b, b->kinds[kind].kernel, text, len);
}

/* ----------------------------------------------------------------------- GPUs, streams */

void sim_blocks_gpu(const struct sim_blocks *b, unsigned int gpu, char *text, size_t len)
{
	const struct pipe_gpu *spec = &b->run->scenario.pipe.gpus[gpu];
	const char *name = b->run->scenario.gpu_names[gpu];

	*text = '\0';
	if (name)
		out_append(text, len, "GPU %s: ", name);
	out_append(text, len, "%s (simulated), %u SMs of %u TPCs", spec->chip.title,
		   spec->map.nr_sms, spec->map.nr_tpcs);
	if (sim_blocks_gpcs_known(b, gpu))
		out_append(text, len, " in %u GPCs", spec->map.nr_gpcs);
}

void sim_blocks_streams(const struct sim_blocks *b, char *text, size_t len)
{
	const struct pipe_scenario *pipe = &b->run->scenario.pipe;

	*text = '\0';
	for (unsigned int i = 0; i < pipe->nr_streams && i < MOST_STREAMS; i++) {
		const struct pipe_stream *stream = &pipe->streams[i];

		out_append(text, len, "%s%s: ", i ? "; " : "", stream->name);
		set_words(pipe, stream->gpu, stream->set, text, len);
		if (stream->priority)
			out_append(text, len, ", priority %u", stream->priority);
		if (pipe->nr_processes > 1)
			out_append(text, len, ", process %s", pipe->processes[stream->process]);
		if (pipe->nr_gpus > 1 && b->run->scenario.gpu_names[stream->gpu])
			out_append(text, len, ", GPU %s",
				   b->run->scenario.gpu_names[stream->gpu]);
	}
	if (pipe->nr_streams > MOST_STREAMS)
		out_append(text, len, "; and %u more", pipe->nr_streams - MOST_STREAMS);
}
