// SPDX-License-Identifier: MIT
/*
 * Collects the parts of a GPU for a picture, in the order of drawing. Gives each tenant a letter.
 */
#include <string.h>
#include "cli/draw/picture.h"
#include "cli/draw/topology.h"

static void add_panel(struct picture_layout *layout, const struct gpupart_topology *topo,
		      unsigned int gpc)
{
	const struct gpupart_gpc *g = gpupart_topology_gpc(topo, gpc);
	unsigned int max = gpupart_topology_info(topo)->max_tpcs_per_gpc, nr;
	struct picture_panel *panel = &layout->panels[layout->nr_panels++];

	panel->gpc = gpc;
	panel->ugpu = g->ugpu;
	panel->tpcs = g->tpcs;
	if (g->present_tpcs && max && max <= 32)
		panel->floorswept = ~g->present_tpcs & (uint32_t)((1ull << max) - 1);
	else
		layout->floorswept_known = false;
	nr = __builtin_popcount(panel->floorswept);
	layout->nr_floorswept += nr;
	nr += gpupart_tpcset_count(&g->tpcs);
	if (nr > layout->max_boxes)
		layout->max_boxes = nr;
}

void picture_layout(struct picture_layout *layout, const struct gpupart_topology *topo)
{
	unsigned int order[GPUPART_MAX_GPCS], nr = topology_order_gpcs(topo, order);

	memset(layout, 0, sizeof(*layout));
	layout->floorswept_known = true;
	for (unsigned int i = 0; i < nr; i++)
		add_panel(layout, topo, order[i]);
	for (unsigned int tpc = 0; tpc < gpupart_topology_nr_tpcs(topo); tpc++) {
		const struct gpupart_tpc *t = gpupart_topology_tpc(topo, tpc);

		layout->singletons |= topology_is_singleton(topo, tpc);
		if (t->nr_sms > layout->max_sms)
			layout->max_sms = t->nr_sms;
		for (unsigned int i = 0; i < t->nr_sms; i++)
			if (t->sms[i] > layout->last_sm)
				layout->last_sm = t->sms[i];
	}
	layout->vgpcs = gpupart_topology_end_vgpc(topo) > 0;
	layout->nr_floorswept_gpcs = topology_floorswept_gpcs(topo, layout->floorswept_gpcs,
							      &layout->nr_known_gpcs);
}

const char *picture_tag(unsigned int tenant, char tag[PICTURE_TAG_LEN])
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
	unsigned int round = tenant / PICTURE_SHORT_TAGS;

	tag[0] = letters[tenant % PICTURE_SHORT_TAGS];
	tag[1] = !round ? 0 : round < 9 ? '1' + round : '*';
	tag[2] = 0;
	return tag;
}

unsigned int picture_owners(const struct picture *picture, unsigned int tpc,
			    unsigned int *owners, unsigned int max)
{
	unsigned int nr = 0;

	for (unsigned int i = 0; i < picture->nr_tenants; i++) {
		if (!gpupart_tpcset_has(&picture->tenants[i].set, tpc))
			continue;
		if (nr < max)
			owners[nr] = i;
		nr++;
	}
	return nr;
}

struct gpupart_tpcset picture_free(const struct picture *picture)
{
	struct gpupart_tpcset set = gpupart_topology_all(picture->topo);

	for (unsigned int i = 0; i < picture->nr_tenants; i++)
		set = gpupart_tpcset_andnot(&set, &picture->tenants[i].set);
	return set;
}

struct gpupart_tpcset picture_shared(const struct picture *picture)
{
	struct gpupart_tpcset seen = { { 0 } }, shared = { { 0 } };

	for (unsigned int i = 0; i < picture->nr_tenants; i++) {
		struct gpupart_tpcset again =
			gpupart_tpcset_and(&seen, &picture->tenants[i].set);

		shared = gpupart_tpcset_or(&shared, &again);
		seen = gpupart_tpcset_or(&seen, &picture->tenants[i].set);
	}
	return shared;
}

unsigned int picture_tags_columns(const struct picture *picture)
{
	if (!picture->nr_tenants)
		return 0;
	return picture->nr_tenants > PICTURE_SHORT_TAGS ? 3 : 2;
}

const char *picture_tags(const struct picture *picture, unsigned int tpc, char tags[8])
{
	char first[PICTURE_TAG_LEN], second[PICTURE_TAG_LEN];
	unsigned int owners[2], nr = picture_owners(picture, tpc, owners, 2);

	*tags = 0;
	if (!nr)
		return tags;
	strcpy(tags, picture_tag(owners[0], first));
	if (nr == 1)
		return tags;
	picture_tag(owners[1], second);
	strcat(tags, nr == 2 && strlen(tags) + strlen(second) == 2 ? second : "+");
	return tags;
}

const char *picture_size(char *text, size_t len, const struct gpupart_topology *topo,
			 const struct gpupart_tpcset *set)
{
	unsigned int nr = gpupart_tpcset_count(set), nr_sms = topology_nr_sms(topo, set);

	snprintf(text, len, "%u TPC%s, %u SM%s", nr, nr == 1 ? "" : "s", nr_sms,
		 nr_sms == 1 ? "" : "s");
	return text;
}

/*
 * Returns the number of bytes of the character at @c. Stores the width of the character in
 * *columns.
 */
static unsigned int character(const char *c, unsigned int *columns)
{
	unsigned int len = 1;

	while ((c[len] & 0xc0) == 0x80)
		len++;
	/*
	 * A character of three bytes or more can be two columns wide. Such characters begin at
	 * U+1100.
	 */
	*columns = len >= 3 ? 2 : 1;
	return len;
}

unsigned int picture_columns(const char *text)
{
	unsigned int nr = 0, columns;

	for (; *text; nr += columns)
		text += character(text, &columns);
	return nr;
}

const char *picture_line(const char *text, unsigned int columns, char *line, size_t len)
{
	const char *end = text, *cut = NULL;
	unsigned int used = 0, more;

	while (*end) {
		unsigned int bytes = character(end, &more);

		if (used + more > columns || (size_t)(end - text) + bytes >= len)
			break;
		used += more;
		end += bytes;
		if (end[-1] == ' ' || end[-1] == ',')
			cut = end;
	}
	if (*end && cut)
		end = cut;
	if (end == text && *end)	/* the width is less than one character */
		end += character(end, &more);
	snprintf(line, len, "%.*s", (int)(end - text), text);
	return end;
}
