// SPDX-License-Identifier: MIT
/*
 * Draws a run of the controller over time as SVG. The picture shows the TPCs of all tenants. Below,
 * it shows the progress and the goal of each tenant.
 */
#include "cli/draw/timeline.h"
#include "cli/qos/qos.h"

#define SHARES_HEIGHT	220
#define TENANT_HEIGHT	96
#define MOST_SCORE	2000	/* end of the scale, in thousandths of a goal */

struct plot {
	struct timeline_panel panel;
	const struct qos_session *s;
};

/* The time at which an epoch begins. */
static uint64_t begin_of(const struct plot *plot, unsigned int epoch)
{
	return epoch * plot->s->setup->epoch_ns;
}

static const struct qos_sample *sample_at(const struct plot *plot, unsigned int epoch,
					  unsigned int tenant)
{
	return &plot->s->epochs[epoch].tenants[tenant];
}

/* Draws lines at round values up to @most, and writes each value to the left of its line. */
static void draw_scale(const struct plot *plot, uint64_t most, unsigned int max, bool thousandths)
{
	uint64_t step = timeline_step(most, max);
	char text[32];

	for (uint64_t value = 0; value <= most; value += step)
		timeline_panel_mark(&plot->panel, value,
				    page_number(thousandths ? value / 1000.0 : value, text), "");
}

/* ------------------------------------------------------------- TPCs, on each other */

/* Draws a box for each interval during which the tenant's place in the stack does not change. */
static void draw_share(struct plot *plot, unsigned int tenant)
{
	unsigned int first = 0, low = 0, high = 0, below, e;

	for (e = 0; e < plot->s->nr_epochs; e++) {
		below = 0;
		for (unsigned int i = 0; i < tenant; i++)
			below += sample_at(plot, e, i)->nr_tpcs;
		if (below == low && below + sample_at(plot, e, tenant)->nr_tpcs == high)
			continue;
		timeline_panel_box(&plot->panel, tenant, begin_of(plot, first), begin_of(plot, e),
				   low, high);
		first = e;
		low = below;
		high = below + sample_at(plot, e, tenant)->nr_tpcs;
	}
	timeline_panel_box(&plot->panel, tenant, begin_of(plot, first), begin_of(plot, e), low,
			   high);
}

static void draw_shares(struct plot *plot)
{
	struct timeline_panel *p = &plot->panel;

	timeline_panel(p, SHARES_HEIGHT, plot->s->board.nr_tpcs,
		       "TPCs of each tenant (hatched: TPCs that no tenant has)");
	svg_rect(p->page->file, TIMELINE_LEFT, p->top, TIMELINE_PLOT, SHARES_HEIGHT, PALETTE_OFF,
		 PALETTE_EDGE, "");
	for (unsigned int i = 0; i < plot->s->setup->nr && plot->s->nr_epochs; i++)
		draw_share(plot, i);
	draw_scale(plot, plot->s->board.nr_tpcs, 7, false);
	timeline_panel_axis(p, NULL);
}

/* --------------------------------------------------------------- a tenant's progress */

static uint64_t value_of(const struct plot *plot, unsigned int epoch, unsigned int tenant)
{
	return plot->s->setup->tenants[tenant].goal == QOS_BEST_EFFORT ?
	       sample_at(plot, epoch, tenant)->speed : sample_at(plot, epoch, tenant)->score;
}

/*
 * Draws a line for a tenant's progress. If there was no signal, the line has a gap. If the tenant
 * missed its goal, the line has a triangle.
 */
static void draw_progress(const struct plot *plot, unsigned int tenant)
{
	const struct timeline_panel *p = &plot->panel;
	FILE *file = p->page->file;
	bool pen = false;

	fputs("<path class=\"progress\" fill=\"none\" stroke=\"" PALETTE_INK "\" "
	      "stroke-width=\"1.4\" stroke-linejoin=\"round\" d=\"", file);
	for (unsigned int e = 0; e < plot->s->nr_epochs; e++) {
		if (qos_has_result(sample_at(plot, e, tenant)->state))
			fprintf(file, "%s%.1f %.1fH%.1f", pen ? "L" : "M",
				timeline_panel_x(p, begin_of(plot, e)),
				timeline_panel_y(p, value_of(plot, e, tenant)),
				timeline_panel_x(p, begin_of(plot, e + 1)));
		pen = qos_has_result(sample_at(plot, e, tenant)->state);
	}
	fputs("\"/>\n", file);
	for (unsigned int e = 0; e < plot->s->nr_epochs; e++)
		if (plot->s->setup->tenants[tenant].goal != QOS_BEST_EFFORT &&
		    qos_has_result(sample_at(plot, e, tenant)->state) &&
		    sample_at(plot, e, tenant)->score < 1000)
			fprintf(file, "<path class=\"missed\" fill=\"" PALETTE_INK
				"\" d=\"M%.1f %.1fl-4 8h8z\"/>\n",
				(timeline_panel_x(p, begin_of(plot, e)) +
				 timeline_panel_x(p, begin_of(plot, e + 1))) / 2,
				p->top + p->height - 9);
}

static void draw_tenant(struct plot *plot, unsigned int tenant)
{
	const struct qos_tenant *t = &plot->s->setup->tenants[tenant];
	const struct qos_sum *sum = &plot->s->sums[tenant];
	uint64_t most = t->goal == QOS_BEST_EFFORT ? 1 : 1200;
	char title[320], goal[96], tag[PICTURE_TAG_LEN];
	const struct timeline_panel *p = &plot->panel;

	for (unsigned int e = 0; e < plot->s->nr_epochs; e++)
		if (qos_has_result(sample_at(plot, e, tenant)->state) &&
		    value_of(plot, e, tenant) > most)
			most = value_of(plot, e, tenant);
	if (t->goal == QOS_BEST_EFFORT) {
		snprintf(title, sizeof(title), "%s  %s: best effort, units of work a second",
			 picture_tag(tenant, tag), t->name);
		timeline_panel(&plot->panel, TENANT_HEIGHT, most + most / 20, title);
		draw_scale(plot, most, 4, true);
	} else {
		qos_format_goal(t, goal, sizeof(goal));
		snprintf(title, sizeof(title),
			 "%s  %s: progress relative to its goal (%s), met in %u of %u epochs",
			 picture_tag(tenant, tag), t->name, goal, sum->met, sum->heard);
		timeline_panel(&plot->panel, TENANT_HEIGHT, most > MOST_SCORE ? MOST_SCORE : most,
			       title);
		timeline_panel_mark(p, 0, "0%", "");
		timeline_panel_mark(p, 500, "50%", "");
		if (most >= 1500)
			timeline_panel_mark(p, 1500, "150%", "");
		if (most > MOST_SCORE)
			timeline_panel_mark(p, MOST_SCORE, "over 200%", "");
		timeline_panel_mark(p, 1000, "goal", " class=\"goal\" stroke=\"" PALETTE_INK
				    "\" stroke-width=\"1\" stroke-dasharray=\"7 4\"");
	}
	draw_progress(plot, tenant);
	timeline_panel_axis(p, tenant + 1 == plot->s->setup->nr ? "since the start" : NULL);
}

/* ----------------------------------------------------------------------------- page */

static void draw_legend(const struct plot *plot)
{
	char text[OUT_SET_STRLEN], list[GPUPART_TPCSET_STRLEN], goal[96];
	const struct qos_setup *setup = plot->s->setup;

	plot->panel.page->y += 12;
	for (unsigned int i = 0; i < setup->nr; i++) {
		const struct qos_verdict *now = &plot->s->now.tenants[i];

		gpupart_tpcset_format_list(&now->set, list, sizeof(list));
		snprintf(text, sizeof(text), "%s; %s%s; TPCs at the end: %s",
			 qos_format_goal(&setup->tenants[i], goal, sizeof(goal)),
			 now->class ? qos_class_name(now->class) : "class not known",
			 now->class ? "-intensive" : "", *list ? list : "none");
		page_legend(plot->panel.page, i, setup->tenants[i].name, text);
	}
	page_text(plot->panel.page, MARGIN, SMALL, "",
		   "A triangle marks an epoch in which the goal was missed, a gap in a line one "
		   "without a signal.");
}

void qos_svg(struct out *out, const struct qos_session *session)
{
	struct page page = { .width = TIMELINE_WIDTH, .y = MARGIN - 4 };
	struct plot plot = { .s = session, .panel = { .page = &page } };
	char text[256];

	page_begin(&page);
	plot.panel.to = begin_of(&plot, session->nr_epochs ? session->nr_epochs : 1);
	page_text(&page, MARGIN, 18, BOLD, "QoS: goals, progress and TPCs over time");
	snprintf(text, sizeof(text), "%s, %u TPCs, %u epochs of %g ms", session->gpu,
		 session->board.nr_tpcs, session->nr_epochs, session->setup->epoch_ns / 1e6);
	page_text(&page, MARGIN, NORMAL, "", text);
	draw_shares(&plot);
	for (unsigned int i = 0; i < session->setup->nr; i++)
		draw_tenant(&plot, i);
	draw_legend(&plot);
	page_end(&page, out, "Goals, progress and TPCs over time", session->setup->nr);
}
