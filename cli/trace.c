// SPDX-License-Identifier: MIT
/* What a trace says in words and numbers. Must not know how it is made or drawn. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "axis.h"
#include "trace.h"

void trace_words(const struct trace *trace, unsigned int set, char *text, size_t len)
{
	const struct gpupart_topology *topo = trace->picture.topo;
	unsigned int nr_outside = 0, nr_sms = gpupart_topology_nr_sms(topo), nr = 0;
	bool *seen = calloc(nr_sms, sizeof(*seen));
	uint64_t first = UINT64_MAX, last = 0, unit_ns;
	char from[32], to[32];
	const char *unit;

	for (unsigned int i = 0; i < trace->nr_records; i++) {
		const struct trace_block *b = &trace->records[i];

		if (b->set != set)
			continue;
		first = b->start_ns < first ? b->start_ns : first;
		last = b->end_ns > last ? b->end_ns : last;
		nr_outside += !gpupart_tpcset_has(&trace->picture.tenants[set].set, b->tpc);
		if (seen && !seen[b->smid]) {
			seen[b->smid] = true;
			nr++;
		}
	}
	free(seen);
	axis_step(trace->span_ns, 10, &unit, &unit_ns);
	snprintf(text, len, "%u launch%s of %u block%s on %u SM%s, %s to %s %s, ",
		 trace->nr_launches, trace->nr_launches == 1 ? "" : "es", trace->blocks[set],
		 trace->blocks[set] == 1 ? "" : "s", nr, nr == 1 ? "" : "s",
		 axis_number(from, sizeof(from), first, unit_ns),
		 axis_number(to, sizeof(to), last, unit_ns), unit);
	if (nr_outside)
		out_append(text, len, "%u blocks OUTSIDE of its TPCs", nr_outside);
	else
		out_append(text, len, "all inside its TPCs");
}

const char *trace_tags(const struct trace *trace, unsigned int tpc, char tags[8])
{
	unsigned int last = TRACE_MAX_SETS;
	char tag[PICTURE_TAG_LEN];

	*tags = 0;
	for (unsigned int i = 0; i < trace->nr_records; i++) {
		const struct trace_block *b = &trace->records[i];

		/* By sets: one is added where its records begin. */
		if (b->tpc != tpc || b->set == last)
			continue;
		last = b->set;
		if (strlen(tags) + strlen(picture_tag(b->set, tag)) > 2) {
			strcat(tags, "+");
			break;
		}
		strcat(tags, tag);
	}
	return tags;
}
