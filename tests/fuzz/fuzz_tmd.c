// SPDX-License-Identifier: MIT
/*
 * Fuzz target: any bytes instead of a TMD, on made-up GPUs of every layout. The library may write
 * only the mask. Bits that the driver set must stay set. The allowed TPCs must be the requested
 * TPCs. If the library reports a different outcome, the allowed TPCs must be the TPCs of this
 * outcome. At least one TPC must be allowed. After the mask is restored, all bytes must be the
 * same as before.
 */
#include <errno.h>
#include "lib/tmd/tmd.h"
#include "lib/tmd/layouts.h"
#include "tests/fuzz/fuzz.h"

/* The bytes of a TMD. The bits are numbered as in the layouts. */
struct bytes {
	uint8_t b[TMD_MAX_SIZE] __attribute__((aligned(16)));
};

static struct gpupart *gp;

static bool bit(const struct bytes *t, unsigned int nr)
{
	return t->b[nr / 8] >> nr % 8 & 1;
}

static void put_bit(struct bytes *t, unsigned int nr, bool value)
{
	t->b[nr / 8] = (t->b[nr / 8] & ~(1 << nr % 8)) | value << nr % 8;
}

static uint64_t field(const struct bytes *t, struct tmd_field f)
{
	uint64_t value = 0;

	for (unsigned int i = f.width; i-- > 0;)
		value = value << 1 | bit(t, f.lo + i);
	return value;
}

static uint64_t product(const struct bytes *t, const struct tmd_field dim[3])
{
	return field(t, dim[0]) * field(t, dim[1]) * field(t, dim[2]);
}

/* Returns the position of mask bit @nr in a layout, or -1. */
static int mask_at(const struct tmd_layout *layout, unsigned int nr)
{
	unsigned int at = layout->nr_words * 64;

	if (nr < at)
		return layout->word_byte[nr / 64] * 8 + nr % 64;
	for (int i = 0; i < 2; at += layout->extension[i++].width)
		if (nr >= at && nr < at + layout->extension[i].width)
			return layout->extension[i].lo + nr - at;
	return -1;
}

static unsigned int nr_mask_bits(const struct tmd_layout *layout)
{
	return layout->nr_words * 64 + layout->extension[0].width + layout->extension[1].width;
}

/* Returns the set mask bits. If the mask is not valid, returns no bits. */
static struct tmd_allow off_bits(const struct tmd_layout *layout, const struct bytes *t)
{
	struct tmd_allow off = { { 0 } };

	if (layout->valid.width && !bit(t, layout->valid.lo))
		return off;
	for (unsigned int i = 0; i < nr_mask_bits(layout); i++)
		if (bit(t, mask_at(layout, i)))
			off.tmd_bits[i / 64] |= 1ull << i % 64;
	return off;
}

/* ------------------------------------------------------------------- made-up GPUs */

static struct gpupart_topology *make_board(struct input *in)
{
	static struct topo_sm sms[TOPO_MAX_SMS];
	struct gpupart_gpu_info info = { .mig = 0 };
	struct gpupart_topology *topo;
	unsigned int nr_gpcs = input_u8(in) % 8 + 1, per_gpc = input_u8(in) % 18 + 1;
	unsigned int per_tpc = input_u8(in) % 4 + 1, singles = input_u8(in) % 5, nr = 0, tpc = 0;

	info.max_gpcs = nr_gpcs;
	info.max_tpcs_per_gpc = per_gpc + input_u8(in) % 2;
	for (unsigned int i = 0; i < nr_gpcs * per_gpc; i++, tpc++) {
		bool single = i >= nr_gpcs * per_gpc - singles && i;
		unsigned int gpc = i % nr_gpcs;

		for (unsigned int s = 0; s < per_tpc; s++)
			sms[nr++] = (struct topo_sm){
				.gpc = gpc, .local_tpc = i / nr_gpcs, .local_sm = s, .tpc = tpc,
				.vgpc = single ? (int)(nr_gpcs + nr_gpcs * per_gpc - i) : (int)gpc,
				.tpc_in_vgpc = single ? 0 : (int)(i / nr_gpcs), .ugpu = -1,
				.cpc = -1, .virtual_tpc = -1, .measured_bit = -1,
			};
	}
	return topo_build(gp, &info, sms, nr, NULL, 0, &topo) ? NULL : topo;
}

/* Reads a set of existing TPCs. If the set is empty, returns false. */
static bool make_set(struct input *in, unsigned int nr_tpcs, struct gpupart_tpcset *set)
{
	unsigned int first = input_u8(in) % nr_tpcs, step = input_u8(in) % 7 + 1;
	unsigned int nr = input_u8(in) % (nr_tpcs + 1);

	memset(set, 0, sizeof(*set));
	for (unsigned int i = 0; i < nr; i++)
		gpupart_tpcset_add(set, (first + i * step) % nr_tpcs);
	return nr;
}

/* -------------------------------------------------------------------- invariants */

struct launch {
	const struct gpupart_topology *topo;
	const struct tmd_map *map;
	const struct tmd_layout *layout;
	struct gpupart_tpcset limit, set;
	bool has_limit, has_set;
};

static struct gpupart_tpcset tpcs_on(const struct launch *l, const struct bytes *t)
{
	struct tmd_allow off = off_bits(l->layout, t);
	struct gpupart_tpcset on = { { 0 } };

	for (unsigned int tpc = 0; tpc < l->map->nr_tpcs; tpc++) {
		unsigned int b = l->map->bit_of_tpc[tpc];

		if (!(off.tmd_bits[b / 64] >> b % 64 & 1))
			gpupart_tpcset_add(&on, tpc);
	}
	return on;
}

/* Checks that @after equals @before. Ignores the mask and the valid bit. */
static void check_untouched(const struct tmd_layout *layout, const struct bytes *before,
			    struct bytes after)
{
	for (unsigned int i = 0; i < nr_mask_bits(layout); i++)
		put_bit(&after, mask_at(layout, i), bit(before, mask_at(layout, i)));
	if (layout->valid.width)
		put_bit(&after, layout->valid.lo, bit(before, layout->valid.lo));
	MUST(!memcmp(before, &after, sizeof(after)));
}

/*
 * The blocks of some launches must run at the same time. The allowed TPCs must have enough room
 * for these blocks, or must be all available TPCs.
 */
static void check_room(const struct launch *l, const struct bytes *before,
		       const struct gpupart_tpcset *on)
{
	struct gpupart_tpcset free = tpcs_on(l, before), in;
	uint64_t type = l->layout->type.width ? field(before, l->layout->type) : TMD_TYPE_GRID;
	uint64_t nr, held = 0;

	if (type == TMD_TYPE_GRID || gpupart_tpcset_equal(on, &free))
		return;
	nr = type == TMD_TYPE_CLUSTER ? 1 : product(before, l->layout->cooperative);
	if (type == TMD_TYPE_COOPERATIVE) {
		MUST(gpupart_tpcset_count(on) * l->map->sms_per_tpc >= nr);
		return;
	}
	for (unsigned int v = 0; v < l->topo->end_vgpc; v++) {
		in = gpupart_topology_vgpc(l->topo, v);
		in = gpupart_tpcset_and(&in, on);
		held += gpupart_tpcset_count(&in) * l->map->sms_per_tpc /
			product(before, l->layout->cluster);
	}
	MUST(held >= nr);
}

static void check_outcome(const struct launch *l, enum tmd_outcome outcome,
			  const struct bytes *before, const struct bytes *after)
{
	struct gpupart_tpcset all = gpupart_topology_all(l->topo), want = all;
	struct gpupart_tpcset on = tpcs_on(l, after), was_on = tpcs_on(l, before);
	struct tmd_allow off = off_bits(l->layout, after), was_off = off_bits(l->layout, before);

	check_untouched(l->layout, before, *after);
	MUST(outcome < TMD_NR_OUTCOMES);
	if (outcome == TMD_UNCONFINABLE || gpupart_tpcset_empty(&was_on)) {
		MUST(!memcmp(before, after, sizeof(*before)));
		return;
	}
	MUST(!gpupart_tpcset_empty(&on) && gpupart_tpcset_subset(&on, &was_on));
	for (int i = 0; i < GPUPART_MAX_TMD_BITS / 64; i++)
		MUST(!(was_off.tmd_bits[i] & ~off.tmd_bits[i]));
	if (l->has_limit)
		want = gpupart_tpcset_and(&want, &l->limit);
	if (l->has_set)
		want = gpupart_tpcset_and(&want, &l->set);
	if (outcome == TMD_CONFINED)
		MUST(gpupart_tpcset_subset(&on, &want));
	if (outcome == TMD_WIDENED_EMPTY)
		MUST(!gpupart_tpcset_intersects(&l->limit, &l->set) &&
		     gpupart_tpcset_subset(&on, &l->limit));
	/* If the mask was written, bits that belong to no TPC must be set. */
	if (memcmp(before, after, sizeof(*before)))
		for (unsigned int i = 0; i < nr_mask_bits(l->layout); i++)
			MUST((off.tmd_bits[i / 64] | l->map->all.tmd_bits[i / 64]) >> i % 64 & 1);
	check_room(l, before, &on);
}

static void confine(const struct launch *l, const struct bytes *before)
{
	struct tmd_allow limit, set;
	struct bytes after = *before, again;
	enum tmd_outcome outcome;
	struct tmd_mask mask;
	bool known;

	if (l->has_limit)
		tmd_map_convert(l->map, &l->limit, &limit);
	if (l->has_set)
		tmd_map_convert(l->map, &l->set, &set);
	known = tmd_mask_read(l->map, before, &mask);
	outcome = tmd_confine(l->map, &after, l->has_limit ? &limit : NULL,
			      l->has_set ? &set : NULL);
	check_outcome(l, outcome, before, &after);
	MUST(known || outcome == TMD_UNCONFINABLE);
	again = after;
	if (outcome == TMD_CONFINED) {
		MUST(tmd_confine(l->map, &again, l->has_limit ? &limit : NULL,
				 l->has_set ? &set : NULL) == TMD_CONFINED);
		MUST(!memcmp(&again, &after, sizeof(after)));
	}
	tmd_mask_restore(l->map, &after, &mask);
	MUST(!memcmp(&after, before, sizeof(after)));
}

static void leave_out(const struct launch *l, const struct bytes *before)
{
	struct gpupart_tpcset on, was_on = tpcs_on(l, before), expected;
	struct bytes after = *before;
	enum tmd_outcome outcome = tmd_leave_out(l->map, &after, &l->set);

	check_untouched(l->layout, before, after);
	MUST(outcome == TMD_CONFINED || outcome == TMD_UNCONFINABLE);
	if (outcome == TMD_UNCONFINABLE) {
		MUST(!memcmp(before, &after, sizeof(after)));
		return;
	}
	on = tpcs_on(l, &after);
	expected = gpupart_tpcset_andnot(&was_on, &l->set);
	MUST(gpupart_tpcset_equal(&on, &expected));
	MUST(gpupart_tpcset_count(&on) * 2 >= l->map->nr_tpcs);
}

/*
 * Identifies the layout from the content of the TMD. The result is a row of the table or an error
 * message.
 */
static void identify(unsigned int compute_class, const struct bytes *t)
{
	const struct tmd_layout *layout;
	int err;

	gp->error[0] = 0;
	err = tmd_identify(gp, compute_class, t, &layout);
	if (err)
		MUST(err == -EOPNOTSUPP && gp->error[0]);
	else
		MUST(!layout->refused && t->b[layout->version_byte] == layout->version);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct tmd_map map;
	struct input in = { data, size };
	struct launch l = { .map = &map };
	struct gpupart_topology *topo;
	struct bytes before;
	unsigned int how;

	if (!gp)
		MUST(!gpupart_open(&gp));
	topo = make_board(&in);
	if (!topo)
		return 0;
	l.topo = topo;
	l.layout = &tmd_layouts[input_u8(&in) % tmd_nr_layouts];
	how = input_u8(&in);
	l.has_limit = make_set(&in, topo->nr_tpcs, &l.limit) && how & 1;
	l.has_set = make_set(&in, topo->nr_tpcs, &l.set) && how & 2;
	input_bytes(&in, &before, sizeof(before));
	identify(l.layout->classes[how >> 2 & 3], &before);
	/* Usually choose a layout that the library knows. */
	if (!(how & 128))
		before.b[l.layout->version_byte] = l.layout->version;
	identify(l.layout->classes[how >> 2 & 3], &before);
	gp->error[0] = 0;
	if (l.layout->refused || tmd_map_build(gp, topo, l.layout, NULL, &map)) {
		MUST(l.layout->refused || gp->error[0]);
	} else {
		if (l.has_limit || l.has_set)
			confine(&l, &before);
		leave_out(&l, &before);
	}
	gpupart_topology_close(topo);
	return 0;
}
