// SPDX-License-Identifier: MIT
/*
 * Draws the blocks of a run as SVG or as text of 80 columns. Shows the SM and the time of each
 * block.
 */
#include <stdlib.h>
#include <string.h>
#include "cli/draw/timeline.h"
#include "cli/sim/sim.h"
#include "cli/util/alloc.h"

/*
 * The kinds of blocks. Each of the first kernels is a separate kind with its own letter. All other
 * kernels together are one kind. All copies together are also one kind.
 */
#define KINDS		(TIMELINE_KINDS - 2)
#define COPY		(KINDS + 1)
#define NO_KIND		UINT8_MAX
#define TEXT_SLICES	58
#define MAX_NAME	60
#define MOST_USES	4 /* maximum number of streams and sets in a kernel's list */
#define MOST_STREAMS	16

struct blocks {
	const struct sim_run *run;
	struct timeline t;		/* if a kind has no blocks, its name in @t is NULL */
	unsigned int kernels[KINDS], nr_kinds;	/* the kernels that have a letter */
	uint8_t *kind_of;		/* indexed by kernel */
	unsigned int row_of[PIPE_MAX_GPUS][PIPE_MAX_SMS];
	unsigned int engine_of[PIPE_MAX_GPUS];	/* row of the first copy engine */
};

static bool gpcs_known(const struct blocks *b, unsigned int gpu)
{
	return !b->run->scenario.made_up[gpu];
}

/* Describes a GPU, such as "GPU a: H200 (simulated), 132 SMs of 66 TPCs in 8 GPCs". */
static void describe_gpu(const struct blocks *b, unsigned int gpu, char *text, size_t len)
{
	const struct pipe_gpu *spec = &b->run->scenario.pipe.gpus[gpu];
	const char *name = b->run->scenario.gpu_names[gpu];

	*text = '\0';
	if (name)
		out_append(text, len, "GPU %s: ", name);
	out_append(text, len, "%s (simulated), %u SMs of %u TPCs", spec->chip.title,
		   spec->map.nr_sms, spec->map.nr_tpcs);
	if (gpcs_known(b, gpu))
		out_append(text, len, " in %u GPCs", spec->map.nr_gpcs);
}

/* -------------------------------------------------------------- rows, blocks */

/* Returns a number that sorts SMs by uGPU, GPC, TPC and number. */
static uint64_t place_of(const struct blocks *b, unsigned int gpu, unsigned int sm)
{
	const struct pipe_place *place = &b->run->scenario.pipe.gpus[gpu].map.sms[sm];
	uint64_t gpc = (uint64_t)place->ugpu << 16 | place->gpc;

	return (gpcs_known(b, gpu) ? gpc << 32 : 0) | (uint64_t)place->tpc << 16 | sm;
}

static void describe_row(const struct blocks *b, unsigned int gpu, unsigned int row)
{
	struct timeline_row *r = &b->t.rows[row];
	const struct pipe_place *place = &b->run->scenario.pipe.gpus[gpu].map.sms[r->smid];

	r->unit = place->tpc;
	r->group = gpu << 16;
	if (b->run->scenario.pipe.nr_gpus > 1)
		describe_gpu(b, gpu, r->head, sizeof(r->head));
	if (!gpcs_known(b, gpu))
		return;
	r->group |= place->gpc;
	out_append(r->head, sizeof(r->head), "%suGPU %u", *r->head ? ", " : "", place->ugpu);
	snprintf(r->name, sizeof(r->name), "GPC %u", place->gpc);
}

/*
 * Adds rows for the SMs of a GPU, and then for its copy engines. The first row is @row. Returns the
 * number of the next free row.
 */
static unsigned int add_rows(struct blocks *b, unsigned int gpu, unsigned int row)
{
	const struct pipe_gpu *spec = &b->run->scenario.pipe.gpus[gpu];
	struct timeline_row *rows = b->t.rows;
	unsigned int first = row, at;

	for (unsigned int sm = 0; sm < spec->map.nr_sms; sm++) {
		for (at = row++; at > first && place_of(b, gpu, sm) <
		     place_of(b, gpu, rows[at - 1].smid); at--)
			rows[at].smid = rows[at - 1].smid;
		rows[at].smid = sm;
	}
	for (at = first; at < row; at++) {
		b->row_of[gpu][rows[at].smid] = at;
		describe_row(b, gpu, at);
		rows[at].gpu = gpu;
	}
	b->engine_of[gpu] = row;
	for (unsigned int i = 0; b->run->copies.nr && i < spec->chip.copy_engines; i++)
		rows[row++] = (struct timeline_row){
			.gpu = gpu, .group = gpu << 16 | UINT16_MAX, .unit = i, .smid = -1,
		};
	return row;
}

/* Assigns the next letter to a kernel. */
static void add_kind(struct blocks *b, unsigned int kernel)
{
	const char *name = b->run->scenario.pipe.kernels[kernel].name;
	unsigned int kind = b->nr_kinds;

	b->t.names[kind] = kind < KINDS ? name : "all other kernels";
	b->kind_of[kernel] = kind;
	if (kind < KINDS)
		b->kernels[b->nr_kinds++] = kernel;
}

static void make_kinds(struct blocks *b)
{
	for (unsigned int i = 0; i < b->run->scenario.pipe.nr_kernels; i++) {
		b->kind_of[i] = NO_KIND;
		if (b->run->kernels[i].nr)
			add_kind(b, i);
	}
	if (b->run->copies.nr)
		b->t.names[COPY] = "copies";
}

static void take_block(void *user, const struct pipe_block *block)
{
	struct blocks *b = user;
	const struct pipe_scenario *pipe = &b->run->scenario.pipe;
	unsigned int most = pipe_occupancy(&pipe->gpus[block->gpu].chip,
					   &pipe->kernels[block->kernel]);

	/*
	 * A run may be stopped before the first launch of a kernel ends. Then this kernel has no
	 * kind.
	 */
	if (b->kind_of[block->kernel] == NO_KIND)
		add_kind(b, block->kernel);
	timeline_add(&b->t, (struct timeline_block){
		.high = (TIMELINE_UNITS + most - 1) / most,
		.start = block->start, .end = block->end, .launch = block->launch,
		.block = block->block, .row = b->row_of[block->gpu][block->smid],
		.kind = b->kind_of[block->kernel],
	});
}

static void take_launch(void *user, const struct pipe_launch *launch)
{
	struct blocks *b = user;

	if (launch->kernel == UINT32_MAX)
		timeline_add(&b->t, (struct timeline_block){
			.start = launch->start, .end = launch->end, .launch = launch->launch,
			.row = b->engine_of[launch->gpu] + launch->engine - 1,
			.kind = COPY, .high = TIMELINE_UNITS,
		});
}

static void make_blocks(struct blocks *b, unsigned int nr_slices)
{
	const struct pipe_scenario *pipe = &b->run->scenario.pipe;
	const struct pipe_watch watch = {
		.user = b, .block = take_block, .launch = take_launch,
	};
	struct pipe_result *result = alloc_zeroed(1, sizeof(*result));
	unsigned int nr = 0;

	for (unsigned int i = 0; i < pipe->nr_gpus; i++)
		nr += pipe->gpus[i].map.nr_sms +
		      (b->run->copies.nr ? pipe->gpus[i].chip.copy_engines : 0);
	b->t.nr_kinds = TIMELINE_KINDS;
	b->kind_of = alloc_zeroed(pipe->nr_kernels + 1u, 1);
	timeline_make(&b->t, nr, nr_slices);
	make_kinds(b);
	nr = 0;
	for (unsigned int i = 0; i < pipe->nr_gpus; i++)
		nr = add_rows(b, i, nr);
	/* The same run has already succeeded, so this run also succeeds. */
	pipe_run(pipe, &watch, result);
	free(result);
}

static void free_blocks(struct blocks *b)
{
	free(b->kind_of);
	timeline_free(&b->t);
}

/* ---------------------------------------------------------------- the legend */

struct use {
	unsigned int stream;
	const struct pipe_set *set;	/* NULL: all TPCs */
};

struct uses {
	const struct pipe_scenario *pipe;
	unsigned int kernel, nr;
	struct use list[MOST_USES + 1];	/* the entry after MOST_USES means that there are more */
};

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

/* ---------------------------------------------------------- uses of a kernel */

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

static void use_words(const struct blocks *b, unsigned int kernel, char *text, size_t len)
{
	const struct pipe_scenario *pipe = &b->run->scenario.pipe;
	struct uses uses = { .pipe = pipe, .kernel = kernel };

	for (unsigned int i = 0; i < pipe->nr_programs; i++)
		find_uses(&uses, pipe->programs[i].steps, pipe->programs[i].nr_steps);
	for (unsigned int i = 0; i < uses.nr && i < MOST_USES; i++) {
		const struct pipe_stream *stream = &pipe->streams[uses.list[i].stream];

		out_append(text, len, "; stream %s, ", stream->name);
		set_words(pipe, stream->gpu, uses.list[i].set, text, len);
	}
	if (uses.nr > MOST_USES)
		out_append(text, len, "; and others");
}

static void kind_words(const struct blocks *b, unsigned int kind, char *text, size_t len)
{
	bool copies = kind == COPY;
	const struct sim_kind *sum = &b->run->copies;
	char from[32], to[32];
	uint64_t nr;

	*text = '\0';
	if (kind == KINDS)
		return;
	if (!copies && !b->run->kernels[b->kernels[kind]].nr) {
		out_append(text, len, "no launch ended");
		return;
	}
	if (!copies)
		sum = &b->run->kernels[b->kernels[kind]];
	sim_time(from, sum->first);
	sim_time(to, sum->last);
	out_append(text, len, copies ? "%llu" : sum->nr == 1 ? "%llu launch" : "%llu launches",
		   (unsigned long long)sum->nr);
	if (!copies) {
		nr = b->run->scenario.pipe.kernels[b->kernels[kind]].blocks;
		out_append(text, len, " of %llu block%s on %u SM%s", (unsigned long long)nr,
			   nr == 1 ? "" : "s", sim_nr_sms(sum), sim_nr_sms(sum) == 1 ? "" : "s");
	}
	out_append(text, len, ", %s to %s", from, to);
	if (!copies)
		use_words(b, b->kernels[kind], text, len);
}

/* Describes the streams, such as "A: TPCs 0-3, priority 5, process P; B: ..". */
static void describe_streams(const struct blocks *b, char *text, size_t len)
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

/* ----------------------------------------------------------------------- SVG */

static void draw_legend(const struct blocks *b, struct page *page)
{
	char text[4096], list[GPUPART_TPCSET_STRLEN];
	const struct scenario *scenario = &b->run->scenario;
	const struct pipe_scenario *pipe = &scenario->pipe;
	bool in_turn = false, made_up = false;

	for (unsigned int i = 0; i < TIMELINE_KINDS; i++)
		if (b->t.names[i]) {
			kind_words(b, i, text, sizeof(text));
			page_legend(page, i, b->t.names[i], text);
		}
	strcpy(text, "Streams: ");
	describe_streams(b, text + strlen(text), sizeof(text) - strlen(text));
	page_text(page, MARGIN, SMALL, "", text);
	timeline_words(&b->t, page, "simulated blocks");
	for (unsigned int i = 0; i < pipe->nr_gpus; i++) {
		struct gpupart_tpcset idle = timeline_idle(&b->t, i);

		in_turn |= pipe->nr_processes > 1 && !pipe->gpus[i].mps;
		made_up |= !gpcs_known(b, i);
		gpupart_tpcset_format_list(&idle, list, sizeof(list));
		snprintf(text, sizeof(text), "No block%s%s on TPCs %s",
			 pipe->nr_gpus > 1 ? " of GPU " : "",
			 pipe->nr_gpus > 1 ? scenario->gpu_names[i] : "", list);
		if (*list)
			page_text(page, MARGIN, SMALL, "", text);
	}
	if (in_turn)
		page_text(page, MARGIN, SMALL, "",
			   "Processes use the GPU in turn: a box "
			   "continues while its process waits for its turn.");
	if (made_up)
		page_text(page, MARGIN, SMALL, "", "The GPCs of this board are not known: "
			   "rows are in the order of TPCs.");
}

static void draw(struct blocks *b, struct page *page, const char *title)
{
	char text[512];

	page->y = MARGIN - 4;
	if (title && *title)
		page_text(page, MARGIN, 18, BOLD, title);
	if (b->run->name) {
		snprintf(text, sizeof(text), "run %s", b->run->name);
		page_text(page, MARGIN, NORMAL, BOLD, text);
	}
	for (unsigned int i = 0; i < b->run->scenario.pipe.nr_gpus; i++) {
		describe_gpu(b, i, text, sizeof(text));
		page_text(page, MARGIN, NORMAL, "", text);
	}
	page->y += 10;
	timeline_svg(&b->t, page);
	draw_legend(b, page);
}

void sim_svg(struct out *out, const struct sim_run *run, const char *title, uint64_t from,
	     uint64_t to)
{
	struct blocks b = { .run = run, .t = { .from = from, .to = to } };
	struct page page = { .width = TIMELINE_WIDTH };

	b.t.when = "(simulated) since the start of the scenario";
	make_blocks(&b, TIMELINE_SVG_SLICES);
	page_begin(&page);
	draw(&b, &page, title);
	page_end(&page, out, "Blocks on SMs over time (simulated)", TIMELINE_KINDS);
	free_blocks(&b);
}

/* ---------------------------------------------------------------------- text */

static void print_kind(struct out *out, const struct blocks *b, unsigned int kind)
{
	char name[4 * MAX_NAME + 1], text[2048], tag[PICTURE_TAG_LEN];

	picture_line(b->t.names[kind], MAX_NAME, name, sizeof(name));
	fprintf(out->file, "%s%-3s%s%s\n", out->bold, picture_tag(kind, tag), out_clean(name),
		out->plain);
	kind_words(b, kind, text, sizeof(text));
	if (*text)
		out_wrap(out, 2, "", out_clean(text));
}

static void print(struct out *out, const struct blocks *b)
{
	struct gpupart_tpcset idle;
	unsigned int row = 0, end;
	char text[2048];

	for (unsigned int i = 0; i < TIMELINE_KINDS; i++)
		if (b->t.names[i])
			print_kind(out, b, i);
	describe_streams(b, text, sizeof(text));
	if (*text)
		out_wrap(out, 0, "Streams", out_clean(text));
	for (unsigned int i = 0; i < b->run->scenario.pipe.nr_gpus; i++, row = end) {
		for (end = row; end < b->t.nr_rows && b->t.rows[end].gpu == i; end++)
			;
		describe_gpu(b, i, text, sizeof(text));
		fprintf(out->file, "\n%s\n", out_clean(text));
		timeline_text(&b->t, out, row, end);
		idle = timeline_idle(&b->t, i);
		gpupart_tpcset_format_list(&idle, text, sizeof(text));
		if (*text)
			out_wrap(out, 0, "No block on TPCs", text);
	}
}

void sim_rows(struct out *out, const struct sim_run *run, uint64_t from, uint64_t to)
{
	struct blocks b = { .run = run, .t = { .from = from, .to = to } };

	b.t.lists = true;
	b.t.when = "of simulated time; a row is a TPC, or several equal ones";
	make_blocks(&b, TEXT_SLICES);
	print(out, &b);
	free_blocks(&b);
}
