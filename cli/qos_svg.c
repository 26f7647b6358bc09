// SPDX-License-Identifier: MIT
/*
 * A run of the controller as SVG: below each other the TPCs of all tenants, and each tenant's
 * progress against its goal, over time. Must not know how anything was decided.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "page.h"
#include "qos.h"

#define LEFT		(MARGIN + 74)
#define WIDTH		840
#define SHARES_HEIGHT	220
#define TENANT_HEIGHT	96
#define GAP		46
#define MOST_TICKS	9

struct plot {
	struct page page;
	const struct qos_session *s;
	double top, height;		/* of the panel that is drawn */
	uint64_t most;			/* at its upper edge */
};

/* An epoch's left edge. */
static double x_of(const struct plot *plot, unsigned int epoch)
{
	return LEFT + (double)epoch / (plot->s->nr_epochs ? plot->s->nr_epochs : 1) * WIDTH;
}

static double y_of(const struct plot *plot, uint64_t value)
{
	double share = plot->most ? (double)value / plot->most : 0;

	return plot->top + plot->height * (1 - (share > 1 ? 1 : share));
}

/* 1, 2 or 5 times a power of ten: a step that makes at most @max of @most. */
static uint64_t step_of(uint64_t most, unsigned int max)
{
	uint64_t step = 1;

	for (unsigned int i = 0; most / step > max; i++)
		step = step / (i % 3 == 1 ? 2 : 1) * (i % 3 == 1 ? 5 : 2);
	return step;
}

/* ------------------------------------------------------------------------ a panel */

static void panel(struct plot *plot, double height, uint64_t most, const char *title)
{
	plot->page.y += GAP - 14;
	svg_text(plot->page.file, LEFT, plot->page.y - 6, NORMAL, BOLD, title);
	plot->top = plot->page.y;
	plot->height = height;
	plot->most = most ? most : 1;
	svg_rect(plot->page.file, LEFT, plot->top, WIDTH, height, "#fafafa", "#777777",
		 " stroke-width=\"0.6\"");
}

static void tick(struct plot *plot, uint64_t value, const char *text)
{
	double y = y_of(plot, value);

	fprintf(plot->page.file,
		"<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#999999\" "
		"stroke-width=\"0.5\" stroke-dasharray=\"2 3\"/>\n", LEFT, y, LEFT + WIDTH, y);
	svg_text(plot->page.file, LEFT - 6, y + SMALL * 0.35, SMALL, END, text);
}

/* Epochs, below the panel. */
static void time_axis(struct plot *plot, bool words)
{
	uint64_t step = step_of(plot->s->nr_epochs, MOST_TICKS);
	double below = plot->top + plot->height;
	char text[96];

	for (uint64_t e = 0; e <= plot->s->nr_epochs; e += step) {
		snprintf(text, sizeof(text), "%" PRIu64, e);
		svg_text(plot->page.file, x_of(plot, e), below + 13, SMALL, MIDDLE, text);
		fprintf(plot->page.file,
			"<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" "
			"stroke=\"#777777\" stroke-width=\"0.6\"/>\n",
			x_of(plot, e), below, x_of(plot, e), below + 4);
	}
	plot->page.y = below + 16;
	if (!words)
		return;
	snprintf(text, sizeof(text), "epochs of %g ms", plot->s->setup->epoch_ns / 1e6);
	svg_text(plot->page.file, LEFT + WIDTH / 2.0, below + 28, SMALL, MIDDLE, text);
	plot->page.y += 14;
}

/* ------------------------------------------------------------- TPCs, on each other */

/* TPCs of those before @tenant, in an epoch. */
static unsigned int below(const struct plot *plot, unsigned int epoch, unsigned int tenant)
{
	unsigned int nr = 0;

	for (unsigned int i = 0; i < tenant; i++)
		nr += plot->s->epochs[epoch].tenants[i].nr_tpcs;
	return nr;
}

/* A box for each stretch in which it has the same TPCs above the same others. */
static void draw_share(struct plot *plot, unsigned int tenant)
{
	const struct picture_colour *colour = picture_colour(tenant);
	char tag[PICTURE_TAG_LEN], style[96];
	unsigned int e, first = 0, nr, base;
	double left, right, top, bottom;

	snprintf(style, sizeof(style), BOLD MIDDLE " fill=\"%s\"", colour->ink);
	for (e = 1; e <= plot->s->nr_epochs; e++) {
		nr = plot->s->epochs[first].tenants[tenant].nr_tpcs;
		base = below(plot, first, tenant);
		if (e < plot->s->nr_epochs && below(plot, e, tenant) == base &&
		    plot->s->epochs[e].tenants[tenant].nr_tpcs == nr)
			continue;
		left = x_of(plot, first);
		right = x_of(plot, e);
		top = y_of(plot, base + nr);
		bottom = y_of(plot, base);
		if (nr)
			svg_rect(plot->page.file, left, top, right - left, bottom - top,
				 colour->fill, "#ffffff",
				 " stroke-width=\"0.4\" class=\"share\"");
		if (right - left > 24 && bottom - top > 12)
			svg_text(plot->page.file, (left + right) / 2, (top + bottom) / 2 + 4,
				 SMALL, style, picture_tag(tenant, tag));
		first = e;
	}
}

static void draw_shares(struct plot *plot)
{
	uint64_t step = step_of(plot->s->board.nr_tpcs, 6);
	char text[32];

	panel(plot, SHARES_HEIGHT, plot->s->board.nr_tpcs,
	      "TPCs of each tenant; hatched: off, reserved");
	svg_hatch(plot->page.file, LEFT, plot->top, WIDTH, SHARES_HEIGHT, "");
	for (unsigned int i = 0; i < plot->s->setup->nr && plot->s->nr_epochs; i++)
		draw_share(plot, i);
	for (uint64_t n = 0; n <= plot->s->board.nr_tpcs; n += step) {
		snprintf(text, sizeof(text), "%" PRIu64, n);
		tick(plot, n, text);
	}
	time_axis(plot, false);
}

/* --------------------------------------------------------------- a tenant's progress */

static bool is_heard(const struct qos_sample *sample)
{
	return sample->state == QOS_GOOD || sample->state == QOS_MISSED ||
	       sample->state == QOS_STUCK;
}

static uint64_t value_of(const struct plot *plot, unsigned int epoch, unsigned int tenant)
{
	const struct qos_sample *sample = &plot->s->epochs[epoch].tenants[tenant];

	return plot->s->setup->tenants[tenant].goal == QOS_BEST_EFFORT ? sample->speed
								       : sample->score;
}

/* The line of its progress, with holes where nothing was heard. */
static void draw_line(struct plot *plot, unsigned int tenant)
{
	bool pen = false;

	fprintf(plot->page.file, "<path class=\"progress\" fill=\"none\" stroke=\"#000000\" "
		"stroke-width=\"1.4\" stroke-linejoin=\"round\" d=\"");
	for (unsigned int e = 0; e < plot->s->nr_epochs; e++) {
		if (!is_heard(&plot->s->epochs[e].tenants[tenant])) {
			pen = false;
			continue;
		}
		fprintf(plot->page.file, "%s%.1f %.1fH%.1f", pen ? "L" : "M", x_of(plot, e),
			y_of(plot, value_of(plot, e, tenant)), x_of(plot, e + 1));
		pen = true;
	}
	fputs("\"/>\n", plot->page.file);
}

/* Where the goal was missed, a mark on the lower edge: it must not need a colour. */
static void draw_misses(struct plot *plot, unsigned int tenant)
{
	double bottom = plot->top + plot->height, x;

	for (unsigned int e = 0; e < plot->s->nr_epochs; e++) {
		const struct qos_sample *sample = &plot->s->epochs[e].tenants[tenant];

		if (!is_heard(sample) || sample->score >= 1000)
			continue;
		x = (x_of(plot, e) + x_of(plot, e + 1)) / 2;
		fprintf(plot->page.file,
			"<path class=\"missed\" fill=\"#000000\" d=\"M%.1f %.1fl-4 8h8z\"/>\n", x,
			bottom - 9);
	}
}

static uint64_t most_of(const struct plot *plot, unsigned int tenant, uint64_t least)
{
	for (unsigned int e = 0; e < plot->s->nr_epochs; e++)
		if (is_heard(&plot->s->epochs[e].tenants[tenant]) &&
		    value_of(plot, e, tenant) > least)
			least = value_of(plot, e, tenant);
	return least;
}

static void draw_guaranteed(struct plot *plot, unsigned int tenant, const char *title)
{
	uint64_t most = most_of(plot, tenant, 1200);
	double y;

	/* What is far above the goal says no more than what is above it. */
	panel(plot, TENANT_HEIGHT, most > 2000 ? 2000 : most, title);
	tick(plot, 0, "0%");
	tick(plot, 500, "50%");
	if (most >= 1500)
		tick(plot, 1500, "150%");
	y = y_of(plot, 1000);
	fprintf(plot->page.file,
		"<line class=\"goal\" x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" "
		"stroke=\"#000000\" stroke-width=\"1\" stroke-dasharray=\"7 4\"/>\n",
		LEFT, y, LEFT + WIDTH, y);
	svg_text(plot->page.file, LEFT - 6, y + SMALL * 0.35, SMALL, BOLD END, "goal");
	draw_line(plot, tenant);
	draw_misses(plot, tenant);
}

static void draw_effort(struct plot *plot, unsigned int tenant, const char *title)
{
	uint64_t most = most_of(plot, tenant, 1), step = step_of(most, 3);
	char text[48];

	panel(plot, TENANT_HEIGHT, most + most / 20, title);
	for (uint64_t v = 0; v <= most; v += step)
		tick(plot, v, qos_number(v, text, sizeof(text)));
	draw_line(plot, tenant);
}

static void draw_tenant(struct plot *plot, unsigned int tenant, bool last)
{
	const struct qos_tenant *t = &plot->s->setup->tenants[tenant];
	char title[320], goal[96], tag[PICTURE_TAG_LEN];
	const struct qos_sum *sum = &plot->s->sums[tenant];

	qos_goal_words(t, &plot->s->setup->specs[tenant], goal, sizeof(goal));
	if (t->goal == QOS_BEST_EFFORT) {
		snprintf(title, sizeof(title), "%s  %s: best effort, progress a second",
			 picture_tag(tenant, tag), t->name);
		draw_effort(plot, tenant, title);
	} else {
		snprintf(title, sizeof(title),
			 "%s  %s: progress against its goal, %s; met in %u of %u epochs",
			 picture_tag(tenant, tag), t->name, goal, sum->met, sum->heard);
		draw_guaranteed(plot, tenant, title);
	}
	time_axis(plot, last);
}

/* ----------------------------------------------------------------------------- page */

static void head(struct plot *plot)
{
	char text[256];

	plot->page.y = MARGIN - 4;
	page_words(&plot->page, MARGIN, 18, BOLD, "QoS: goals, progress and TPCs over time");
	snprintf(text, sizeof(text), "%s, %u TPCs, %u epochs of %g ms", plot->s->gpu,
		 plot->s->board.nr_tpcs, plot->s->nr_epochs, plot->s->setup->epoch_ns / 1e6);
	page_words(&plot->page, MARGIN, NORMAL, "", text);
	plot->page.y += 12;
}

static void legend(struct plot *plot)
{
	struct picture_tenant tenants[QOS_MAX_TENANTS];
	struct picture picture = { .tenants = tenants, .nr_tenants = plot->s->setup->nr };
	char text[OUT_SET_STRLEN], list[GPUPART_TPCSET_STRLEN], goal[96];

	plot->page.y += 22;
	for (unsigned int i = 0; i < plot->s->setup->nr; i++) {
		const struct qos_tenant *t = &plot->s->setup->tenants[i];

		tenants[i] = (struct picture_tenant){ t->name, plot->s->now.tenants[i].set };
		gpupart_tpcset_format_list(&tenants[i].set, list, sizeof(list));
		snprintf(text, sizeof(text), "%s; %s%s; TPCs at the end: %s",
			 qos_goal_words(t, &plot->s->setup->specs[i], goal, sizeof(goal)),
			 plot->s->now.tenants[i].class ?
				 qos_class_name(plot->s->now.tenants[i].class) : "kind not known",
			 plot->s->now.tenants[i].class ? "-intensive" : "",
			 *list ? list : "none");
		page_tenant(&plot->page, &picture, i, MARGIN, text);
	}
	page_words(&plot->page, MARGIN, SMALL, "",
		   "A triangle is an epoch in which the goal was missed. A line with a hole: there "
		   "was no signal.");
}

int qos_svg(struct out *out, const struct qos_session *session)
{
	struct plot plot = { .s = session };
	char *body;
	size_t len;
	int err;

	plot.page.width = LEFT + WIDTH + MARGIN + 10;
	err = page_begin(&plot.page, &body, &len);
	if (err)
		return err;
	head(&plot);
	draw_shares(&plot);
	for (unsigned int i = 0; i < session->setup->nr; i++)
		draw_tenant(&plot, i, i + 1 == session->setup->nr);
	legend(&plot);
	return page_end(&plot.page, out, "Goals, progress and TPCs over time", &body, &len, 0);
}
