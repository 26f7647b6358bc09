// SPDX-License-Identifier: MIT
/*
 * Draws frames of `gpupart top`. A frame has the GPU, its map, the kernels of a job, the keys, and
 * a row for each job or program.
 */
#include <stdlib.h>
#include <string.h>
#include "cli/draw/palette.h"
#include "cli/draw/picture.h"
#include "cli/top/top.h"
#include "cli/util/alloc.h"
#include "cli/util/process.h"

#define HEAD	3	/* lines about the GPU */
#define TEXT	24	/* maximum bytes of a formatted figure */
#define WIDE	120	/* with this many columns, the terminal shows a wide table */

static const char *const sort_names[TOP_NR_SORTS] = {
	"letter", "busy time", "launches", "memory", "QoS score", "name", "user",
};

static const char *const help[] = {
	"Up Down PgUp PgDn Home End   choose a job or a program",
	"Enter    its details and its ten top kernels; again: back",
	"Space    show a job's programs, or hide them; + and - those of all jobs",
	"F4 /     show what has a text in its name, user, pid or set; Esc: all again",
	"F6 > <   the order: letter, busy time, launches, memory, QoS score, name, user",
	"I        turns the order",
	"s        change the set of a job or a program: words as for 'gpupart set'",
	"k        end a program, or all of a job: asks first",
	"g Tab    the next GPU          h F1  this help          q F10  ends",
	"",
	"The map has a job's letter in each of its TPCs: AB two jobs, A+ more.",
	"BUSY  share of the time in which a kernel of it ran: of its set",
	"GPU%  the same of the whole GPU: BUSY times the set's share of its TPCs",
	"      Both are upper bounds: a kernel begins, for them, when it was launched",
	"      or when the one before it on its stream ended. + is launches without",
	"      a record, as those of some graphs. A job's is the sum, 100% at most.",
	"MEM   of the GPU; the bar is of the quota, or else of the GPU's memory",
	"/S    launches a second      OUT  launches outside of the set",
	"QOS   progress against the goal of 'gpupart qos run': 1 meets it, red: missed",
	"-     not known: records are off; 'gpupart doctor' says why",
};

/* ------------------------------------------------------------------- figures */

/* If the size is not known, it is below 0, and the text is @unknown. */
static const char *size_text(char text[TEXT], int64_t bytes, const char *unknown)
{
	double value = bytes;
	int unit = 0;

	for (; value >= 1000 && unit < 4; unit++)
		value /= 1024;
	if (bytes < 0)
		return unknown;
	snprintf(text, TEXT, "%.*f%c", unit > 2 && value < 100, value, "BKMGT"[unit]);
	return text;
}

static void share_text(char text[TEXT], double share, bool partial)
{
	snprintf(text, TEXT, share < 0 ? "-" : "%.*f%%%s", share > 0 && share < 0.0995, share * 100,
		 partial ? "+" : "");
}

/* Formats text such as "[||| ] 12.3G". If there is room, adds "/" and the limit. */
static void memory_text(char *text, size_t len, bool wide, int64_t bytes, int64_t all)
{
	char buffer[TEXT], of[TEXT];
	const char *is = size_text(buffer, bytes, "-");
	int bar = wide ? 12 : 4, filled;

	filled = all <= 0 ? 0 : bytes >= all ? bar : bar * (double)bytes / all + 0.5;
	if (bytes < 0 || all <= 0)
		snprintf(text, len, "%s", is);
	else
		snprintf(text, len, "[%.*s%*s]%5s%s%s", filled, "||||||||||||", bar - filled, "",
			 is, wide ? "/" : "", wide ? size_text(of, all, "") : "");
}

static const char *sensor_text(char text[TEXT], int value, int unit)
{
	snprintf(text, TEXT, value < 0 ? "?" : "%d", value / unit);
	return text;
}

static const char *set_text(char text[OUT_SET_STRLEN], const struct top *top,
			    const struct model_row *row)
{
	return look_set(text, top->model.gpus[row->gpu].topo, row->limited ? &row->set : NULL,
			row->problem);
}

/*
 * Returns the name of a row. If a program has no name, returns the name of the program's
 * executable.
 */
static const char *name_text(char name[64], const struct model_row *row)
{
	struct process_parent found = { .name = "" };

	if (row->process && (row->job >= 0 || !*row->name))
		process_find_parent(row->process->pid, &found);
	snprintf(name, 64, "%s", *found.name ? found.name : *row->name ? row->name : "-");
	for (char *c = name; *c; c++)
		*c = *c < ' ' || *c > '~' ? '?' : *c;
	return name;
}

/* ------------------------------------------------------------------- which rows */

static int compare(const void *a, const void *b, void *arg)
{
	const struct top_view *view = arg;
	const struct model_row *x = *(const struct model_row *const *)a;
	const struct model_row *y = *(const struct model_row *const *)b;
	double less = 0;

	switch (view->sort) {
	case TOP_BY_BUSY:	less = y->busy - x->busy; break;
	case TOP_BY_LAUNCHES:	less = y->launches_per_s - x->launches_per_s; break;
	case TOP_BY_MEMORY:	less = y->memory - x->memory; break;
	case TOP_BY_SCORE:	less = y->score - x->score; break;
	case TOP_BY_NAME:	less = strcmp(x->name, y->name); break;
	case TOP_BY_USER:	less = strcmp(look_user(x->uid), look_user(y->uid)); break;
	default:		break;
	}
	if (!less)
		less = (double)x->letter - y->letter;
	return ((less > 0) - (less < 0)) * (view->reverse ? -1 : 1);
}

static bool has_text(const struct top *top, const struct model_row *row, const char *text)
{
	char set[OUT_SET_STRLEN], pid[TEXT];

	snprintf(pid, sizeof(pid), "%d", row->process ? row->process->pid : 0);
	return strcasestr(row->name, text) || strcasestr(look_user(row->uid), text) ||
	       strstr(pid, text) || strcasestr(set_text(set, top, row), text);
}

unsigned int top_shown(const struct top_view *view, const struct top *top,
		       const struct model_row ***shown)
{
	const struct model_row *rows = top->model.rows, *end = rows + top->model.nr_rows, *row;
	const struct model_row **jobs = alloc_zeroed(end - rows + 1, sizeof(*jobs));
	unsigned int nr_jobs = 0, nr = 0;

	*shown = alloc_zeroed(end - rows + 1, sizeof(**shown));
	/*
	 * Returns whether to show a job. The text must be in the row of the job or in the row of
	 * one of its programs.
	 */
	for (const struct model_row *job = rows; job < end; job++) {
		for (row = rows; row < end && *view->filter; row++)
			if ((row == job || row->job == job - rows) &&
			    has_text(top, row, view->filter))
				break;
		if (row < end && job->job < 0 && job->gpu == view->gpu)
			jobs[nr_jobs++] = job;
	}
	qsort_r(jobs, nr_jobs, sizeof(*jobs), compare, (void *)view);
	for (unsigned int n = 0; n < nr_jobs; n++) {
		(*shown)[nr++] = jobs[n];
		for (row = rows; jobs[n]->open && row < end; row++)
			if (row->job == jobs[n] - rows)
				(*shown)[nr++] = row;
	}
	free(jobs);
	return nr;
}

/* ------------------------------------------------------------------- the list */

/*
 * If the terminal has at least @least columns, the column is shown. The last column gets the
 * remaining width.
 */
enum { LETTER, NAME, USER, PID, BUSY, GPU, QOS, MEMORY, RATE, OUTSIDE, SET, NR_COLUMNS };
static const struct {
	char title[8];
	unsigned char width, wide, least;
	bool left;
} columns[NR_COLUMNS] = {
	{ "", 2, 3, 0, true }, { "NAME", 12, 24, 0, true }, { "USER", 8, 12, 66, true },
	{ "PID", 7, 8, 56, false }, { "BUSY", 6, 6, 0, false }, { "GPU%", 5, 6, 74, false },
	{ "QOS", 5, 5, 46, false }, { "MEM", 11, 26, 70, false },
	{ "/S", 6, 8, 0, false }, { "OUT", 5, 8, 78, false },
	{ "SET", 0, 0, 0, true },
};

/* If @texts is NULL, prints the titles. */
static void put_columns(struct top_view *view, unsigned int y, const unsigned char *styles,
			char texts[NR_COLUMNS][OUT_SET_STRLEN])
{
	unsigned int x = 0;

	for (int i = 0; i < NR_COLUMNS; i++) {
		int width = view->width >= WIDE ? columns[i].wide : columns[i].width;
		const char *text = texts ? texts[i] : columns[i].title;

		if (view->width < columns[i].least || (i == QOS && !view->has_scores) ||
		    (i == USER && view->has_scores && view->width < WIDE))
			continue;
		if (i == SET)
			width = view->width - x;
		/* Text that was shortened ends with '+'. */
		if (texts && strlen(text) > (size_t)width)
			texts[i][width - 1] = '+';
		top_put(view, y, x, texts ? styles[i] : TOP_BOLD, "%*.*s",
			columns[i].left ? -width : width, width, text);
		x += width + (i != LETTER);
	}
}

static void put_row(struct top_view *view, const struct top *top, const struct model_row *row,
		    unsigned int y)
{
	const struct gpupart_process *p = row->nr == 1 ? row->process : NULL;
	char texts[NR_COLUMNS][OUT_SET_STRLEN] = { "" }, set[OUT_SET_STRLEN], name[64];
	unsigned char styles[NR_COLUMNS];

	memset(styles, row->job < 0 ? TOP_PLAIN : TOP_DIM, sizeof(styles));
	if (row->job < 0) {
		picture_tag(row->letter, texts[LETTER]);
		styles[LETTER] = TOP_TENANT + row->letter % PALETTE_TENANTS;
	}
	snprintf(texts[NAME], 80, "%s%s", row->job < 0 ? "" : "  ", name_text(name, row));
	snprintf(texts[USER], 64, "%s", look_user(row->uid));
	snprintf(texts[PID], TEXT, !p ? (row->nr ? "(%u)" : "-") : p->pid ? "%u" : "?",
		 p ? (unsigned int)p->pid : row->nr);
	share_text(texts[BUSY], row->busy, row->partial);
	share_text(texts[GPU], row->gpu_busy, row->partial);
	memory_text(texts[MEMORY], 64, view->width >= WIDE, row->memory,
		    row->quota >= 0 ? row->quota : top->gpus[row->gpu].memory);
	snprintf(texts[RATE], TEXT, row->launches_per_s < 0 ? "-" : row->launches_per_s < 1e6 ?
		 "%.0f" : "%.2g", row->launches_per_s);
	snprintf(texts[OUTSIDE], TEXT, row->outside < 0 ? "-" : "%lld", (long long)row->outside);
	snprintf(texts[QOS], TEXT, row->score < 0 ? "-" : "%.*f", row->score < 100 ? 2 : 0,
		 row->score);
	snprintf(texts[SET], OUT_SET_STRLEN, "%s", set_text(set, top, row));
	styles[OUTSIDE] = row->outside > 0 ? TOP_RED : styles[OUTSIDE];
	styles[QOS] = row->score >= 0 && !row->goal_met ? TOP_RED : styles[QOS];
	styles[SET] = *row->problem ? TOP_RED : styles[SET];
	put_columns(view, y, styles, texts);
	for (unsigned int x = 2; x < view->width && !strcmp(row->key, view->key); x++)
		view->cells[y * view->width + x].style = TOP_REVERSE;
}

static void put_list(struct top_view *view, const struct top *top, unsigned int y)
{
	const struct model_row **shown;
	unsigned int nr = top_shown(view, top, &shown), last = nr ? nr - 1 : 0;

	view->has_scores = false;
	for (unsigned int i = 0; i < nr; i++)
		view->has_scores |= shown[i]->score >= 0;
	put_columns(view, y++, NULL, NULL);
	view->room = view->height - 1 - y;
	/* If the chosen row no longer exists, choose the row at the same position. */
	for (unsigned int i = 0; i < nr; i++)
		if (!strcmp(shown[i]->key, view->key))
			view->row = i;
	if (view->row > last)
		view->row = last;
	if (*view->key)
		strcpy(view->key, nr ? shown[view->row]->key : "");
	if (view->row >= view->first + view->room)
		view->first = view->row - view->room + 1;
	if (view->first + view->room > nr)
		view->first = nr > view->room ? nr - view->room : 0;
	if (view->first > view->row)
		view->first = view->row;
	for (unsigned int i = view->first; i < nr && i < view->first + view->room; i++)
		put_row(view, top, shown[i], y++);
	if (!nr)
		top_put(view, y, 0, TOP_DIM, *view->filter ? "nothing here has that text" :
			"nothing runs under gpupart on this GPU");
	free(shown);
}

/* ------------------------------------------------------------------- details */

static int by_ns(const void *a, const void *b)
{
	const struct gpupart_records_function *x = a, *y = b;

	return (x->ns < y->ns) - (x->ns > y->ns);
}

static void put_kernels(struct top_view *view, const struct top *top, const struct model_row *of,
			unsigned int y)
{
	struct gpupart_records_function *list =
		alloc_zeroed(of->nr + 1, GPUPART_RECORDS_NR_FUNCTIONS * sizeof(*list));
	unsigned int nr = 0, nr_recorded = 0;
	uint64_t ns = 0;

	for (unsigned int i = 0; i < top->model.nr_rows; i++) {
		const struct model_row *row = &top->model.rows[i];
		const struct gpupart_records *records = row->job < 0 ? NULL : &row->usage->records;

		if (!records || !records->on || (row != of && &top->model.rows[row->job] != of))
			continue;
		nr_recorded++;
		ns += records->kernels_ns;
		for (unsigned int f = 0; f < records->nr_functions; f++) {
			const struct gpupart_records_function *from = &records->functions[f];
			unsigned int n = 0;

			while (n < nr && strcmp(list[n].name, from->name))
				n++;
			if (n == nr)
				strcpy(list[nr++].name, from->name);
			list[n].count += from->count;
			list[n].ns += from->ns;
			if (from->longest_ns > list[n].longest_ns)
				list[n].longest_ns = from->longest_ns;
		}
	}
	qsort(list, nr, sizeof(*list), by_ns);
	top_put(view, y, 0, TOP_BOLD, nr_recorded ? "  TIME   LAUNCHES   MEAN us  LONGEST  KERNEL" :
		of->nr ? "Its kernels are not known: its records are off." :
		"No program of it has used this GPU yet.");
	for (unsigned int i = 0; i < nr && i < 10 && y + 2 < view->height; i++)
		top_put(view, ++y, 0, TOP_PLAIN, "%5.1f%% %10llu %9.1f %8.1f  %s",
			ns ? 100.0 * list[i].ns / ns : 0, (unsigned long long)list[i].count,
			list[i].ns / 1e3 / list[i].count, list[i].longest_ns / 1e3,
			*list[i].name ? list[i].name : "(name not known)");
	free(list);
}

/*
 * Writes @text, beginning in line @y. Writes @label before each line. Returns the number of the
 * line below the text.
 */
static unsigned int put_text(struct top_view *view, unsigned int y, const char *label,
			     const char *text)
{
	char line[1024];

	do {
		text = picture_line(text, view->width - strlen(label), line, sizeof(line));
		top_put(view, y++, 0, TOP_PLAIN, "%s%s", label, line);
	} while (*text && y + 5 < view->height);
	return y;
}

static void put_details(struct top_view *view, const struct top *top, unsigned int y)
{
	const struct model_row *row = model_find(&top->model, view->key);
	char text[LENDING_STRLEN], set[OUT_SET_STRLEN], tag[PICTURE_TAG_LEN], name[64];

	if (!row) {
		top_put(view, y, 0, TOP_DIM, "It has ended.");
		return;
	}
	if (row->job < 0)
		top_put(view, y++, 0, TOP_BOLD, "Job %s %s of %s, %u program%s",
			picture_tag(row->letter, tag), name_text(name, row), look_user(row->uid),
			row->nr, row->nr == 1 ? "" : "s");
	else
		top_put(view, y++, 0, TOP_BOLD, "Program %d %s of %s", row->process->pid,
			name_text(name, row), look_user(row->uid));
	if (row->launches >= 0)
		top_put(view, y++, 0, TOP_PLAIN, "%lld launches, %lld outside of the set",
			(long long)row->launches, (long long)row->outside);
	if (row->score >= 0)
		top_put(view, y++, 0, row->goal_met ? TOP_PLAIN : TOP_RED,
			"QoS score %.2f: the goal is %s", row->score,
			row->goal_met ? "met" : "missed");
	snprintf(text, sizeof(text), "%s%s%s", set_text(set, top, row), *row->problem ? ": " : "",
		 row->problem);
	y = put_text(view, y, "Set: ", text);
	if (row->lending)
		y = put_text(view, y, "",
			     lending_text(text, top->model.gpus[row->gpu].topo, row->lending));
	put_kernels(view, top, row, y + 1);
}

static void put_help(struct top_view *view, unsigned int y)
{
	unsigned int nr = sizeof(help) / sizeof(help[0]), room = view->height - 1 - y;

	if (view->first + room > nr)
		view->first = nr > room ? nr - room : 0;
	for (unsigned int n = view->first; n < nr && n < view->first + room; n++)
		top_put(view, y++, 0, TOP_PLAIN, "%s", help[n]);
}

/* ------------------------------------------------------------------- all of it */

static void put_head(struct top_view *view, const struct top *top)
{
	const struct top_gpu *gpu = &top->gpus[view->gpu];
	const struct model_gpu *of = &top->model.gpus[view->gpu];
	const struct gpupart_gpu_info *info = of->topo ? gpupart_topology_info(of->topo) : NULL;
	char used[TEXT], all[TEXT], watts[TEXT], sm[TEXT], memory[TEXT];
	struct gpupart_tpcset taken = { { 0 } };
	unsigned int nr_jobs = 0, nr = 0, x;

	x = top_put(view, 0, 0, TOP_BOLD, "%s %s ", info && *info->name ? info->name : "GPU",
		    *of->pci ? of->pci : "none: programs that are on no GPU");
	if (of->simulated)
		x = top_put(view, 0, x, TOP_RED, "simulated ");
	if (top->model.nr_gpus > 1)
		top_put(view, 0, x, TOP_PLAIN, "GPU %u of %u", view->gpu + 1, top->model.nr_gpus);
	top_put(view, 1, 0, TOP_PLAIN, "%s of %s used  %s W  SM %s MHz  memory %s MHz  driver %s",
		size_text(used, gpu->memory_used, "?"), size_text(all, gpu->memory, "?"),
		sensor_text(watts, gpu->state.power_mw, 1000),
		sensor_text(sm, gpu->state.sm_mhz, 1),
		sensor_text(memory, gpu->state.memory_mhz, 1),
		info && *info->driver ? info->driver : "?");
	for (unsigned int i = 0; i < top->model.nr_rows; i++) {
		const struct model_row *row = &top->model.rows[i];

		if (row->gpu != view->gpu || row->job >= 0)
			continue;
		nr_jobs++;
		nr += row->nr;
		if (row->limited)
			taken = gpupart_tpcset_or(&taken, &row->set);
	}
	x = top_put(view, 2, 0, TOP_PLAIN, "%u job%s, %u program%s", nr_jobs,
		    nr_jobs == 1 ? "" : "s", nr, nr == 1 ? "" : "s");
	if (of->topo)
		x = top_put(view, 2, x, TOP_PLAIN, ", %u of %u TPCs in sets",
			    gpupart_tpcset_count(&taken), gpupart_topology_nr_tpcs(of->topo));
	if (*view->filter)
		x = top_put(view, 2, x, TOP_RED, ", only '%s'", view->filter);
	top_put(view, 2, x, TOP_PLAIN, ", by %s%s", sort_names[view->sort],
		view->reverse ? " turned" : "");
}

/*
 * Prints the keys, a question or a message. If a question or a message needs several lines, it
 * overwrites other lines.
 */
static void put_footer(struct top_view *view)
{
	static const char *const keys[][2] = {
		{ "h", "Help" }, { "q", "Quit" }, { "Enter", "Kernels" }, { "Spc", "Open" },
		{ "s", "Set" }, { "k", "End" }, { "/", "Filter" }, { ">", "Sort" }, { "g", "GPU" },
	};
	unsigned int x = 0, y = view->height - 1;
	unsigned int nr = (strlen(view->footer) + view->width - 1) / view->width;

	nr = nr < view->height ? nr : view->height;
	for (unsigned int n = 0; n < nr; n++)
		top_put(view, view->height - nr + n, 0, TOP_BOLD, "%-*s", (int)view->width,
			view->footer + n * view->width);
	for (unsigned int i = 0; !nr && i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (x + strlen(keys[i][0]) + strlen(keys[i][1]) > view->width)
			break;
		x = top_put(view, y, x, TOP_BOLD, "%s", keys[i][0]);
		x = top_put(view, y, x, TOP_REVERSE, "%s", keys[i][1]) + 1;
	}
}

void top_frame(struct top_view *view, const struct top *top, unsigned int width,
	       unsigned int height)
{
	unsigned int y;

	free(view->cells);
	view->cells = alloc_zeroed(width * height + 1, sizeof(*view->cells));
	view->width = width;
	view->height = height;
	if (width < TOP_LEAST_WIDTH || height < TOP_LEAST_HEIGHT) {
		top_put(view, 0, 0, TOP_PLAIN, "%ux%u is too small:", width, height);
		top_put(view, 1, 0, TOP_PLAIN, "%ux%u at least", TOP_LEAST_WIDTH, TOP_LEAST_HEIGHT);
		return;
	}
	if (top->model.nr_gpus)
		put_head(view, top);
	else
		top_put(view, 0, 0, TOP_PLAIN, "No GPU is here, and nothing runs under gpupart.");
	if (view->page == TOP_HELP) {
		put_help(view, HEAD);
	} else if (top->model.nr_gpus) {
		/* The map takes at most a third of the screen. */
		y = HEAD + top_map(view, top, HEAD, height < 12 ? 2 : height / 3);
		(view->page == TOP_DETAILS ? put_details : put_list)(view, top, y);
	}
	put_footer(view);
}
