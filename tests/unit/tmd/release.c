// SPDX-License-Identifier: MIT
/*
 * Tests release slots in every layout. Compares the rows of lib/tmd/layouts.c with NVIDIA's
 * headers. The test makes a TMD from the headers' fields. It compares every bit that
 * lib/tmd/release.c writes with this TMD.
 */
#include <string.h>
#include "lib/tmd/layouts.h"
#include "lib/tmd/tmd.h"
#include "tests/tap.h"

#define BYTES 384

/* MW(hi:lo) */
struct bits {
	uint16_t hi, lo;
};

/*
 * NVIDIA/open-gpu-doc, classes/compute/cl*qmd.h: RELEASE<i>_* or RELEASE_*(i) of each version,
 * the same in all classes. Not included: RELEASE_RESERVED_INFO(i), and RELEASE_MEMBAR_TYPE of
 * V01_06 to V02_04, which is one bit for both slots. V03_00's trap is NON_BLOCKING_INTR_TYPE in
 * clc6c0qmd.h.
 */
static const struct header {
	const char *versions;
	struct bits enable[3], size[3], membar[3], reduction[3], operation[3], format[3], trap[3],
		payload64[3], address_lower[3], address_upper[3], payload_lower[3],
		payload_upper[3];
} headers[] = {
	{
		.versions = "V01_06 V01_07 V02_00",
		.enable = { { 202, 202 }, { 203, 203 } },
		.size = { { 799, 799 }, { 895, 895 } },
		.reduction = { { 794, 794 }, { 890, 890 } },
		.operation = { { 790, 788 }, { 886, 884 } },
		.format = { { 793, 792 }, { 889, 888 } },
		.address_lower = { { 767, 736 }, { 863, 832 } },
		.address_upper = { { 775, 768 }, { 871, 864 } },
		.payload_lower = { { 831, 800 }, { 927, 896 } },
	},
	{
		.versions = "V02_01 V02_02 V02_03 V02_04",
		.enable = { { 138, 138 }, { 139, 139 } },
		.size = { { 799, 799 }, { 895, 895 } },
		.reduction = { { 794, 794 }, { 890, 890 } },
		.operation = { { 790, 788 }, { 886, 884 } },
		.format = { { 793, 792 }, { 889, 888 } },
		.address_lower = { { 767, 736 }, { 863, 832 } },
		.address_upper = { { 775, 768 }, { 871, 864 } },
		.payload_lower = { { 831, 800 }, { 927, 896 } },
	},
	{
		.versions = "V03_00",
		.enable = { { 823, 823 }, { 951, 951 }, { 1719, 1719 } },
		.size = { { 831, 830 }, { 959, 958 }, { 1727, 1726 } },
		.membar = { { 819, 819 }, { 947, 947 }, { 1715, 1715 } },
		.reduction = { { 826, 826 }, { 954, 954 }, { 1722, 1722 } },
		.operation = { { 822, 820 }, { 950, 948 }, { 1718, 1716 } },
		.format = { { 825, 824 }, { 953, 952 }, { 1721, 1720 } },
		.trap = { { 828, 827 }, { 956, 955 }, { 1724, 1723 } },
		.payload64 = { { 829, 829 }, { 957, 957 }, { 1725, 1725 } },
		.address_lower = { { 799, 768 }, { 927, 896 }, { 1695, 1664 } },
		.address_upper = { { 807, 800 }, { 935, 928 }, { 1703, 1696 } },
		.payload_lower = { { 863, 832 }, { 991, 960 }, { 1759, 1728 } },
		.payload_upper = { { 895, 864 }, { 1023, 992 }, { 1791, 1760 } },
	},
	{
		.versions = "V04_00 V04_01",
		.enable = { { 320, 320 }, { 336, 336 }, { 352, 352 } },
		.size = { { 322, 321 }, { 338, 337 }, { 354, 353 } },
		.membar = { { 323, 323 }, { 339, 339 }, { 355, 355 } },
		.reduction = { { 324, 324 }, { 340, 340 }, { 356, 356 } },
		.operation = { { 327, 325 }, { 343, 341 }, { 359, 357 } },
		.format = { { 329, 328 }, { 345, 344 }, { 361, 360 } },
		.trap = { { 331, 330 }, { 347, 346 }, { 363, 362 } },
		.payload64 = { { 332, 332 }, { 348, 348 }, { 364, 364 } },
		.address_lower = { { 671, 640 }, { 799, 768 }, { 927, 896 } },
		.address_upper = { { 696, 672 }, { 824, 800 }, { 952, 928 } },
		.payload_lower = { { 735, 704 }, { 863, 832 }, { 991, 960 } },
		.payload_upper = { { 767, 736 }, { 895, 864 }, { 1023, 992 } },
	},
	{
		.versions = "V05_00",
		.enable = { { 288, 288 }, { 304, 304 }, { 320, 320 } },
		.size = { { 290, 289 }, { 306, 305 }, { 322, 321 } },
		.membar = { { 291, 291 }, { 307, 307 }, { 323, 323 } },
		.reduction = { { 292, 292 }, { 308, 308 }, { 324, 324 } },
		.operation = { { 295, 293 }, { 311, 309 }, { 327, 325 } },
		.format = { { 297, 296 }, { 313, 312 }, { 329, 328 } },
		.trap = { { 299, 298 }, { 315, 314 }, { 331, 330 } },
		.payload64 = { { 300, 300 }, { 316, 316 }, { 332, 332 } },
		.address_lower = { { 511, 480 }, { 799, 768 }, { 927, 896 } },
		.address_upper = { { 536, 512 }, { 824, 800 }, { 952, 928 } },
		.payload_lower = { { 575, 544 }, { 863, 832 }, { 991, 960 } },
		.payload_upper = { { 607, 576 }, { 895, 864 }, { 1023, 992 } },
	},
};

static const struct header *header_of(const struct tmd_layout *row)
{
	for (unsigned int i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
		if (strstr(headers[i].versions, row->name))
			return &headers[i];
	return NULL;
}

/* -------------------------------------------------------------------- rows */

/* A missing field is 0:0 in this table, and has width 0 in the row. */
static bool is(struct tmd_field f, struct bits lower, struct bits upper)
{
	unsigned int hi = upper.hi ? upper.hi : lower.hi;

	if (!lower.hi)
		return !f.width && !f.lo;
	return f.lo == lower.lo && f.lo + f.width == hi + 1u &&
	       (!upper.hi || upper.lo == lower.hi + 1);
}

static void check_row(const struct tmd_layout *row)
{
	static const struct bits none;
	const struct header *h = header_of(row);

	if (!tap_ok(!h == !!row->refused, "%s: a header with slots, or refused", row->name))
		return;
	for (int i = 0; i < TMD_RELEASES; i++) {
		const struct tmd_release_fields *f = &row->release[i];
		static const struct tmd_release_fields empty;

		if (!h) {
			tap_ok(!memcmp(f, &empty, sizeof(empty)), "%s: no slot %d", row->name, i);
			continue;
		}
#define ROLE(role) tap_ok(is(f->role, h->role[i], none), \
		"%s: slot %d: " #role " is %u:%u, the row has %u bits from %u on", row->name, i, \
		h->role[i].hi, h->role[i].lo, f->role.width, f->role.lo)
		ROLE(enable);
		ROLE(size);
		ROLE(membar);
		ROLE(reduction);
		ROLE(operation);
		ROLE(format);
		ROLE(trap);
		ROLE(payload64);
#undef ROLE
		tap_ok(is(f->address, h->address_lower[i], h->address_upper[i]),
		       "%s: slot %d: address", row->name, i);
		tap_ok(is(f->payload, h->payload_lower[i], h->payload_upper[i]),
		       "%s: slot %d: payload", row->name, i);
	}
	tap_ok(!row->release_tested_on == !!strcmp(row->name, "V04_00"),
	       "%s: tried on: %s", row->name,
	       row->release_tested_on ? row->release_tested_on : "nothing");
}

/* ------------------------------------------------------------------- bytes */

static uint64_t put(unsigned char *tmd, struct bits b, uint64_t value)
{
	if (b.hi)
		for (unsigned int i = b.lo; i <= b.hi; i++, value >>= 1)
			tmd[i / 8] = (tmd[i / 8] & ~(1 << i % 8)) | (value & 1) << i % 8;
	return value;
}

/*
 * Sets the fields of a slot to the values for record @r of @kind. If @r is NULL, sets all fields
 * to 0.
 */
static void put_slot(unsigned char *tmd, const struct header *h, int i, const struct tmd_release *r)
{
	bool add = r && r->kind == TMD_RELEASE_ADD;

	put(tmd, h->enable[i], !!r);
	put(tmd, h->size[i], add);
	put(tmd, h->membar[i], 0);
	put(tmd, h->reduction[i], add);
	put(tmd, h->operation[i], 0);
	put(tmd, h->format[i], 0);
	put(tmd, h->trap[i], 0);
	put(tmd, h->payload64[i], r && !add);
	put(tmd, h->address_upper[i], put(tmd, h->address_lower[i], r ? r->address : 0));
	put(tmd, h->payload_upper[i], put(tmd, h->payload_lower[i], r ? r->payload : 0));
}

static bool same(const unsigned char *a, const unsigned char *b)
{
	for (int i = 0; i < BYTES; i++)
		if (a[i] != b[i]) {
			printf("# byte %d is %#x, not %#x\n", i, a[i], b[i]);
			return false;
		}
	return true;
}

/* Returns whether the slot exists and is not enabled. */
static bool is_free(const struct tmd_map *map, const void *tmd, unsigned int slot)
{
	struct tmd_release_seen seen;

	return slot < tmd_release_slots(map) && tmd_release_read(map, tmd, slot, &seen) &&
	       !seen.enabled;
}

/* Tests all cases of one slot and kind. The TMD's bytes are @filler, and the slot is free. */
static void check_slot(const struct tmd_map *map, const struct header *h, unsigned int slot,
		       enum tmd_release_kind kind, int filler)
{
	const struct tmd_layout *row = map->layout;
	const char *name = kind == TMD_RELEASE_ADD ? "add" : "time";
	bool wide = h->payload_upper[slot].hi;
	struct tmd_release r = { kind == TMD_RELEASE_ADD ? 0x9a87654324 : 0x9a87654320,
				 0xfedcba9876543210, kind };
	struct tmd_release wrong = r;
	unsigned char before[BYTES], want[BYTES], tmd[BYTES];
	struct tmd_release_seen seen;

	memset(before, filler, BYTES);
	before[row->version_byte] = row->version;
	put(before, h->enable[slot], 0);
	memcpy(tmd, before, BYTES);
	memcpy(want, before, BYTES);
	put_slot(want, h, slot, &r);

	wrong.address |= kind == TMD_RELEASE_ADD ? 2 : 8;
	tap_ok(!tmd_release_write(map, tmd, slot, &wrong) && same(tmd, before),
	       "%s: slot %u: %s: %#x: misaligned: refused", row->name, slot, name, filler);
	wrong.address = r.address | 1ull << (row->release[slot].address.width);
	tap_ok(!tmd_release_write(map, tmd, slot, &wrong) && same(tmd, before),
	       "%s: slot %u: %s: %#x: an address too wide: refused", row->name, slot, name, filler);
	tmd[row->version_byte] ^= 1;
	memcpy(want, tmd, BYTES);
	tap_ok(!is_free(map, tmd, slot) && !tmd_release_write(map, tmd, slot, &r) &&
		       !tmd_release_read(map, tmd, slot, &seen) && same(tmd, want),
	       "%s: slot %u: %s: %#x: another version: refused", row->name, slot, name, filler);
	memcpy(tmd, before, BYTES);
	memcpy(want, before, BYTES);
	put_slot(want, h, slot, &r);
	tap_ok(is_free(map, tmd, slot) && tmd_release_write(map, tmd, slot, &r) &&
		       same(tmd, want) && !is_free(map, tmd, slot),
	       "%s: slot %u: %s: %#x: written bit by bit", row->name, slot, name, filler);
	tap_ok(tmd_release_read(map, tmd, slot, &seen) && seen.enabled && !seen.zero &&
		       !seen.membar && !seen.trap && !seen.operation && !seen.format &&
		       seen.words == (kind == TMD_RELEASE_ADD ? 1 : 4) &&
		       seen.reduction == (kind == TMD_RELEASE_ADD) &&
		       seen.payload64 == (wide && kind == TMD_RELEASE_TIME) &&
		       seen.address == r.address &&
		       seen.payload == (wide ? r.payload : (uint32_t)r.payload),
	       "%s: slot %u: %s: %#x: read again", row->name, slot, name, filler);
	wrong.address = r.address + 16;
	tap_ok(!tmd_release_write(map, tmd, slot, &wrong) && same(tmd, want),
	       "%s: slot %u: %s: %#x: in use: refused", row->name, slot, name, filler);
	tap_ok(!tmd_release_clear(map, tmd, slot, wrong.address) && same(tmd, want),
	       "%s: slot %u: %s: %#x: another's address: kept", row->name, slot, name, filler);
	put_slot(want, h, slot, NULL);
	tap_ok(tmd_release_clear(map, tmd, slot, r.address) && same(tmd, want) &&
		       tmd_release_read(map, tmd, slot, &seen) && seen.zero,
	       "%s: slot %u: %s: %#x: cleared", row->name, slot, name, filler);
	tap_ok(!tmd_release_clear(map, tmd, slot, 0) && same(tmd, want),
	       "%s: slot %u: %s: %#x: not enabled: nothing to clear", row->name, slot, name,
	       filler);
	/* The slot is all 0 now. */
	tap_ok(tmd_release_write(map, tmd, slot, &r) &&
		       tmd_release_clear(map, tmd, slot, r.address) && same(tmd, want),
	       "%s: slot %u: %s: %#x: every byte restored", row->name, slot, name, filler);
}

/* Tests targets, which write like tmd_release_write() if all control fields of the slot are 0. */
static void check_target(const struct tmd_map *map, const struct header *h, unsigned int slot,
			 int filler)
{
	static const char notes[64];
	const struct tmd_release r = { 0x9a87654320, 0xfedcba9876543210, TMD_RELEASE_TIME };
	const struct tmd_release_place *p = tmd_release_place(map, slot, TMD_RELEASE_TIME);
	const uint64_t limit = 1ull << map->layout->release[slot].address.width;
	unsigned char before[BYTES], want[BYTES], tmd[BYTES];
	const bool wide = h->payload_upper[slot].hi;
	struct tmd_release_target t = tmd_release_target(p, tmd, notes, r.address - 32, 64);

	memset(before, filler, BYTES);
	before[map->layout->version_byte] = map->layout->version;
	put(before, h->enable[slot], 0);
	memcpy(tmd, before, BYTES);
	memcpy(want, before, BYTES);
	if (wide && !filler)
		put_slot(want, h, slot, &r);
	tap_ok(tmd_release_aim(&t, notes + 32, r.payload) == (wide && !filler) && same(tmd, want),
	       "%s: slot %u: %#x: a target writes the same, or nothing", map->layout->name, slot,
	       filler);
	tap_ok(!tmd_release_aim(&t, notes, 1) && same(tmd, want),
	       "%s: slot %u: %#x: in use", map->layout->name, slot, filler);
	memcpy(tmd, before, BYTES);
	tmd[map->layout->version_byte] ^= 1;
	memcpy(want, tmd, BYTES);
	tap_ok(!tmd_release_aim(&t, notes, 1) && same(tmd, want),
	       "%s: slot %u: %#x: a target of another version", map->layout->name, slot, filler);
	memcpy(tmd, before, BYTES);
	t = tmd_release_target(p, tmd, notes, limit - 32, 64);
	tap_ok(!tmd_release_aim(&t, notes, 1) && same(tmd, before),
	       "%s: slot %u: %#x: an array with addresses that are too wide", map->layout->name,
	       slot, filler);
	t = tmd_release_target(p, tmd, notes, r.address + 8, 64);
	tap_ok(!tmd_release_aim(&t, notes, 1) && same(tmd, before),
	       "%s: slot %u: %#x: a misaligned array", map->layout->name, slot, filler);
}

/* Tests one field at a time. If one field of a slot is set, the slot must not count as zero. */
static void check_zero(const struct tmd_map *map, const struct header *h, unsigned int slot)
{
	const struct bits *fields[] = {
		h->enable, h->size, h->membar, h->reduction, h->operation, h->format, h->trap,
		h->payload64, h->address_lower, h->address_upper, h->payload_lower,
		h->payload_upper,
	};
	struct tmd_release_seen seen;

	for (unsigned int i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		unsigned char tmd[BYTES] = { 0 };

		tmd[map->layout->version_byte] = map->layout->version;
		put(tmd, fields[i][slot], ~0ull);
		tap_ok(tmd_release_read(map, tmd, slot, &seen) && seen.zero == !fields[i][slot].hi,
		       "%s: slot %u: field %u alone is seen", map->layout->name, slot, i);
	}
}

static void check_layout(const struct tmd_layout *row)
{
	static const int fillers[] = { 0, 0xff, 0xa5, 0x5a };
	const struct header *h = header_of(row);
	struct tmd_release r = { .kind = TMD_RELEASE_TIME };
	static struct tmd_map map;
	unsigned char tmd[BYTES] = { 0 };
	unsigned int nr = 0;

	memset(&map, 0, sizeof(map));
	map.layout = row;
	release_places(&map);
	while (h && nr < 3 && h->enable[nr].hi)
		nr++;
	tap_ok(tmd_release_slots(&map) == nr, "%s: %u slots", row->name, nr);
	tap_ok(row->release[0].payload.width == (!h ? 0u : h->payload_upper[0].hi ? 64u : 32u),
	       "%s: a payload of %u bits", row->name, row->release[0].payload.width);
	tap_ok(row->release[0].address.width == (!h ? 0u : row->version < 0x40 ? 40u : 57u),
	       "%s: an address of %u bits", row->name, row->release[0].address.width);
	tmd[row->version_byte] = row->version;
	for (unsigned int slot = nr; slot < nr + 2; slot++)
		tap_ok(!is_free(&map, tmd, slot) &&
			       !tmd_release_write(&map, tmd, slot, &r) &&
			       !tmd_release_place(&map, slot, TMD_RELEASE_ADD),
		       "%s: no slot %u", row->name, slot);
	for (unsigned int slot = 0; slot < nr; slot++) {
		check_zero(&map, h, slot);
		for (int i = 0; i < 4; i++) {
			check_slot(&map, h, slot, TMD_RELEASE_TIME, fillers[i]);
			check_slot(&map, h, slot, TMD_RELEASE_ADD, fillers[i]);
			check_target(&map, h, slot, fillers[i]);
		}
	}
}

/* A map that was checked with different slots counts as a different map. */
static void hash_of_slots(void)
{
	struct gpupart_topology *topo = NULL;
	struct tmd_layout row;
	static struct tmd_map map;
	struct gpupart *gp;
	uint64_t hash;

	if (gpupart_open(&gp))
		return;
	for (unsigned int i = 0; i < tmd_nr_layouts; i++)
		if (!strcmp(tmd_layouts[i].name, "V04_00"))
			memcpy(&row, &tmd_layouts[i], sizeof(row));
	tap_ok(!gpupart_topology_open(gp, "tests/data/gh100-h200-b/capture.txt", NULL, &topo) &&
		       !tmd_map_build(gp, topo, &row, NULL, &map) && map.nr_releases == 3 &&
		       !strcmp(map.layout->release_tested_on, row.release_tested_on),
	       "a map that is built has its layout's slots");
	hash = tmd_map_hash(&map, &topo->info);
	for (int i = 0; i < TMD_RELEASES; i++) {
		struct tmd_field *fields = (struct tmd_field *)&row.release[i];

		for (unsigned int k = 0; k < sizeof(row.release[i]) / sizeof(fields[0]); k++) {
			fields[k].lo++;
			tap_ok(tmd_map_hash(&map, &topo->info) != hash,
			       "slot %d: field %u moved: another hash", i, k);
			fields[k].lo--;
		}
	}
	gpupart_topology_close(topo);
	gpupart_close(gp);
}

int main(void)
{
	for (unsigned int i = 0; i < tmd_nr_layouts; i++) {
		check_row(&tmd_layouts[i]);
		check_layout(&tmd_layouts[i]);
	}
	hash_of_slots();
	return tap_done();
}
