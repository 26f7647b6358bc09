// SPDX-License-Identifier: MIT
/*
 * Compares the rows of lib/tmd/layouts.c with NVIDIA's headers, in both directions. Each field of
 * a row has the header's bits. Each field of the header is in the row.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include "lib/tmd/layouts.h"
#include "tests/tap.h"

#define MAX_FIELDS 24

/*
 * NVIDIA/open-gpu-doc, classes/compute/cl<class>qmd.h: for each version, the classes whose
 * headers agree, and the possible fields of a row as MW(hi:lo). If a field has numbered copies,
 * this is the first copy.
 */
static const struct header {
	const char *version;
	uint16_t classes[8];
	struct header_field {
		const char *name;
		uint16_t hi, lo;
	} fields[MAX_FIELDS];
} headers[] = {
	{ "V00_06", { 0xa0c0, 0xa1c0, 0xb0c0, 0xb1c0 }, {
		{ "QMD_MAJOR_VERSION", 583, 580 }, { "QMD_VERSION", 579, 576 },
	} },
	{ "V01_06", { 0xa0c0 }, {
		{ "CTA_RASTER_DEPTH", 447, 432 }, { "CTA_RASTER_HEIGHT", 431, 416 },
		{ "CTA_RASTER_WIDTH", 415, 384 }, { "QMD_MAJOR_VERSION", 583, 580 },
		{ "QMD_VERSION", 579, 576 }, { "SM_DISABLE_MASK_LOWER", 703, 672 },
		{ "SM_DISABLE_MASK_UPPER", 735, 704 },
	} },
	{ "V01_07", { 0xa0c0, 0xa1c0, 0xb0c0, 0xb1c0, 0xc0c0, 0xc1c0 }, {
		{ "CTA_RASTER_DEPTH", 447, 432 }, { "CTA_RASTER_HEIGHT", 431, 416 },
		{ "CTA_RASTER_WIDTH", 415, 384 }, { "QMD_MAJOR_VERSION", 583, 580 },
		{ "QMD_VERSION", 579, 576 }, { "SM_DISABLE_MASK_LOWER", 703, 672 },
		{ "SM_DISABLE_MASK_UPPER", 735, 704 },
	} },
	{ "V02_00", { 0xc0c0, 0xc1c0 }, {
		{ "CTA_RASTER_DEPTH", 463, 448 }, { "CTA_RASTER_HEIGHT", 431, 416 },
		{ "CTA_RASTER_WIDTH", 415, 384 }, { "QMD_MAJOR_VERSION", 583, 580 },
		{ "QMD_VERSION", 579, 576 }, { "SM_DISABLE_MASK_LOWER", 703, 672 },
		{ "SM_DISABLE_MASK_UPPER", 735, 704 },
	} },
	{ "V02_01", { 0xc0c0, 0xc1c0 }, {
		{ "CTA_RASTER_DEPTH", 463, 448 }, { "CTA_RASTER_HEIGHT", 431, 416 },
		{ "CTA_RASTER_WIDTH", 415, 384 }, { "QMD_MAJOR_VERSION", 583, 580 },
		{ "QMD_VERSION", 579, 576 }, { "SM_DISABLE_MASK_LOWER", 703, 672 },
		{ "SM_DISABLE_MASK_UPPER", 735, 704 },
	} },
	{ "V02_02", { 0xc3c0, 0xc4c0 }, {
		{ "CTA_RASTER_DEPTH", 463, 448 }, { "CTA_RASTER_HEIGHT", 431, 416 },
		{ "CTA_RASTER_WIDTH", 415, 384 }, { "QMD_MAJOR_VERSION", 583, 580 },
		{ "QMD_VERSION", 579, 576 }, { "SM_DISABLE_MASK_LOWER", 703, 672 },
		{ "SM_DISABLE_MASK_UPPER", 735, 704 },
	} },
	{ "V02_03", { 0xc5c0, 0xc6c0, 0xc7c0 }, {
		{ "CTA_RASTER_DEPTH", 463, 448 }, { "CTA_RASTER_HEIGHT", 431, 416 },
		{ "CTA_RASTER_WIDTH", 415, 384 }, { "QMD_MAJOR_VERSION", 583, 580 },
		{ "QMD_VERSION", 579, 576 }, { "SM_DISABLE_MASK_LOWER", 703, 672 },
		{ "SM_DISABLE_MASK_UPPER", 735, 704 },
	} },
	{ "V02_04", { 0xc6c0, 0xc7c0, 0xc9c0 }, {
		{ "CTA_RASTER_DEPTH", 463, 448 }, { "CTA_RASTER_HEIGHT", 431, 416 },
		{ "CTA_RASTER_WIDTH", 415, 384 }, { "QMD_MAJOR_VERSION", 583, 580 },
		{ "QMD_VERSION", 579, 576 }, { "SM_DISABLE_MASK_LOWER", 703, 672 },
		{ "SM_DISABLE_MASK_UPPER", 735, 704 },
	} },
	{ "V03_00", { 0xc9c0 }, {
		{ "CTA_RASTER_DEPTH", 463, 448 }, { "CTA_RASTER_HEIGHT", 431, 416 },
		{ "CTA_RASTER_WIDTH", 415, 384 }, { "QMD_MAJOR_VERSION", 583, 580 },
		{ "QMD_VERSION", 579, 576 }, { "SM_DISABLE_MASK_EXT_LOWER", 377, 372 },
		{ "SM_DISABLE_MASK_EXT_UPPER", 380, 379 },
		{ "SM_DISABLE_MASK_LOWER", 703, 672 },
		{ "SM_DISABLE_MASK_UPPER", 735, 704 },
	} },
	{ "V03_00", { 0xc6c0, 0xc7c0, 0xcbc0 }, {
		{ "CTA_RASTER_DEPTH", 463, 448 }, { "CTA_RASTER_HEIGHT", 431, 416 },
		{ "CTA_RASTER_WIDTH", 415, 384 }, { "QMD_MAJOR_VERSION", 583, 580 },
		{ "QMD_VERSION", 579, 576 }, { "SM_DISABLE_MASK_LOWER", 703, 672 },
		{ "SM_DISABLE_MASK_UPPER", 735, 704 },
	} },
	{ "V04_00", { 0xcbc0 }, {
		{ "BARRIER_COUNT", 1215, 1211 }, { "CTA_THREAD_DIMENSION0", 1167, 1152 },
		{ "CTA_THREAD_DIMENSION1", 1183, 1168 },
		{ "CTA_THREAD_DIMENSION2", 1199, 1184 }, { "GPC_CGA_DEPTH", 2165, 2160 },
		{ "GPC_CGA_HEIGHT", 2157, 2152 }, { "GPC_CGA_WIDTH", 2149, 2144 },
		{ "GPU_CGA_DEPTH", 2255, 2240 }, { "GPU_CGA_HEIGHT", 2239, 2224 },
		{ "GPU_CGA_WIDTH", 2223, 2208 }, { "GRID_DEPTH", 1103, 1088 },
		{ "GRID_HEIGHT", 1071, 1056 }, { "GRID_WIDTH", 1055, 1024 },
		{ "QMD_MAJOR_VERSION", 583, 580 }, { "QMD_MINOR_VERSION", 579, 576 },
		{ "QMD_TYPE", 25, 23 }, { "REGISTER_COUNT", 1208, 1200 },
		{ "SHARED_MEMORY_SIZE", 601, 584 }, { "TPC_DISABLE_MASK", 2463, 2432 },
		{ "TPC_DISABLE_MASK_VALID", 31, 31 },
	} },
	{ "V04_01", { 0xcdc0, 0xcec0 }, {
		{ "BARRIER_COUNT", 1215, 1211 }, { "CTA_THREAD_DIMENSION0", 1167, 1152 },
		{ "CTA_THREAD_DIMENSION1", 1183, 1168 },
		{ "CTA_THREAD_DIMENSION2", 1191, 1184 }, { "GPC_CGA_DEPTH", 2165, 2160 },
		{ "GPC_CGA_HEIGHT", 2157, 2152 }, { "GPC_CGA_WIDTH", 2149, 2144 },
		{ "GPU_CGA_DEPTH", 2255, 2240 }, { "GPU_CGA_HEIGHT", 2239, 2224 },
		{ "GPU_CGA_WIDTH", 2223, 2208 }, { "GRID_DEPTH", 1103, 1088 },
		{ "GRID_HEIGHT", 1071, 1056 }, { "GRID_WIDTH", 1055, 1024 },
		{ "QMD_MAJOR_VERSION", 583, 580 }, { "QMD_MINOR_VERSION", 579, 576 },
		{ "QMD_TYPE", 25, 23 }, { "REGISTER_COUNT", 1208, 1200 },
		{ "SHARED_MEMORY_SIZE", 601, 584 }, { "TPC_DISABLE_MASK", 2463, 2432 },
		{ "TPC_DISABLE_MASK_UPPER", 2719, 2688 },
		{ "TPC_DISABLE_MASK_VALID", 31, 31 },
	} },
	{ "V05_00", { 0xcdc0, 0xcec0 }, {
		{ "BARRIER_COUNT", 1141, 1137 }, { "CTA_THREAD_DIMENSION0", 1103, 1088 },
		{ "CTA_THREAD_DIMENSION1", 1119, 1104 },
		{ "CTA_THREAD_DIMENSION2", 1127, 1120 }, { "GPC_CGA_DEPTH", 2069, 2064 },
		{ "GPC_CGA_HEIGHT", 2061, 2056 }, { "GPC_CGA_WIDTH", 2053, 2048 },
		{ "GPU_CGA_DEPTH", 2159, 2144 }, { "GPU_CGA_HEIGHT", 2143, 2128 },
		{ "GPU_CGA_WIDTH", 2127, 2112 }, { "GRID_DEPTH", 1327, 1312 },
		{ "GRID_HEIGHT", 1295, 1280 }, { "GRID_WIDTH", 1279, 1248 },
		{ "QMD_MAJOR_VERSION", 471, 468 }, { "QMD_MINOR_VERSION", 467, 464 },
		{ "QMD_TYPE", 153, 151 }, { "REGISTER_COUNT", 1136, 1128 },
		{ "SHARED_MEMORY_SIZE_SHIFTED7", 1162, 1152 },
		{ "TPC_DISABLE_MASK", 2271, 2240 }, { "TPC_DISABLE_MASK_VALID", 159, 159 },
	} },
	{ "V05_01", { 0xcdc0, 0xcec0 }, {
		{ "QMD_MAJOR_VERSION", 471, 468 }, { "QMD_MINOR_VERSION", 467, 464 },
		{ "TPC_DISABLE_MASK_VALID", 159, 159 },
	} },
};

/* The fields of a row by their names in headers. The second name is the name in older headers. */
static const struct role {
	const char *name, *older;
	size_t at;
} roles[] = {
#define ROLE(member, ...) { __VA_ARGS__, offsetof(struct tmd_layout, member) }
	ROLE(grid[0], "GRID_WIDTH", "CTA_RASTER_WIDTH"),
	ROLE(grid[1], "GRID_HEIGHT", "CTA_RASTER_HEIGHT"),
	ROLE(grid[2], "GRID_DEPTH", "CTA_RASTER_DEPTH"),
	ROLE(extension[0], "SM_DISABLE_MASK_EXT_LOWER", NULL),
	ROLE(extension[1], "SM_DISABLE_MASK_EXT_UPPER", NULL),
	ROLE(valid, "TPC_DISABLE_MASK_VALID", NULL),
	ROLE(type, "QMD_TYPE", NULL),
	ROLE(cluster[0], "GPC_CGA_WIDTH", NULL),
	ROLE(cluster[1], "GPC_CGA_HEIGHT", NULL),
	ROLE(cluster[2], "GPC_CGA_DEPTH", NULL),
	ROLE(cooperative[0], "GPU_CGA_WIDTH", NULL),
	ROLE(cooperative[1], "GPU_CGA_HEIGHT", NULL),
	ROLE(cooperative[2], "GPU_CGA_DEPTH", NULL),
	ROLE(threads[0], "CTA_THREAD_DIMENSION0", NULL),
	ROLE(threads[1], "CTA_THREAD_DIMENSION1", NULL),
	ROLE(threads[2], "CTA_THREAD_DIMENSION2", NULL),
	ROLE(registers, "REGISTER_COUNT", NULL),
	ROLE(barriers, "BARRIER_COUNT", NULL),
	ROLE(shared, "SHARED_MEMORY_SIZE", "SHARED_MEMORY_SIZE_SHIFTED7"),
};

static bool has_class(const uint16_t classes[8], unsigned int compute_class)
{
	for (int i = 0; i < 8; i++)
		if (classes[i] && classes[i] == compute_class)
			return true;
	return false;
}

static const struct header *header_of(const struct tmd_layout *row)
{
	for (unsigned int i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
		if (!strcmp(headers[i].version, row->name) &&
		    has_class(headers[i].classes, row->classes[0]))
			return &headers[i];
	return NULL;
}

static const struct header_field *find(const struct header *header, const char *name)
{
	for (int i = 0; name && i < MAX_FIELDS && header->fields[i].name; i++)
		if (!strcmp(header->fields[i].name, name))
			return &header->fields[i];
	return NULL;
}

/* The major number is in the upper half of a byte, the minor number in the lower half. */
static void version(const struct tmd_layout *row, const struct header *header)
{
	const struct header_field *major = find(header, "QMD_MAJOR_VERSION");
	const struct header_field *minor = find(header, "QMD_MINOR_VERSION");
	unsigned int at = row->version_byte * 8, nr_major, nr_minor;

	if (!minor)
		minor = find(header, "QMD_VERSION");
	tap_ok(minor->lo == at && minor->hi == at + 3 && major->lo == at + 4 &&
		       major->hi == at + 7,
	       "%s: its version is in byte %u", row->name, row->version_byte);
	tap_ok(sscanf(row->name, "V%2u_%2u", &nr_major, &nr_minor) == 2 &&
		       row->version == (nr_major << 4 | nr_minor),
	       "%s: its version is %#x", row->name, row->version);
}

/* The words of 64 bits are consecutive. The header gives the position of the upper words. */
static void mask(const struct tmd_layout *row, const struct header *header)
{
	const struct header_field *first = find(header, "TPC_DISABLE_MASK");
	const struct header_field *upper = find(header, "TPC_DISABLE_MASK_UPPER");
	const struct header_field *second = find(header, "SM_DISABLE_MASK_UPPER");
	unsigned int nr_upper = 0;

	if (!first)
		first = find(header, "SM_DISABLE_MASK_LOWER");
	tap_ok(!first == !row->nr_words && !row->nr_words == !!row->refused,
	       "%s: it has mask words exactly where the header has", row->name);
	if (!first || !row->nr_words)
		return;
	for (unsigned int w = 0; w < row->nr_words; w++) {
		unsigned int bit = w ? row->word_byte[w - 1] * 8 + 64 : first->lo;

		if (upper && w && row->word_byte[w] * 8 == upper->lo) {
			bit = upper->lo;
			nr_upper++;
		}
		tap_ok(row->word_byte[w] * 8 == bit, "%s: mask word %u is at bit %u", row->name, w,
		       bit);
	}
	tap_ok(nr_upper == !!upper, "%s: upper mask words where the header has them", row->name);
	if (second)
		tap_ok(first->hi + 1 == second->lo && second->hi == first->lo + 63 &&
			       row->nr_words == 1,
		       "%s: its mask is of two words of 32 bits", row->name);
}

static void fields(const struct tmd_layout *row, const struct header *header)
{
	for (unsigned int i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
		const struct role *role = &roles[i];
		const struct header_field *h = find(header, role->name);
		struct tmd_field f;

		if (!h)
			h = find(header, role->older);
		memcpy(&f, (const char *)row + role->at, sizeof(f));
		if (!h)
			tap_ok(!f.width, "%s: no %s in it", row->name, role->name);
		else
			tap_ok(f.lo == h->lo && f.width == h->hi - h->lo + 1,
			       "%s: %s is %u:%u, the row has %u bits from %u on", row->name,
			       h->name, h->hi, h->lo, f.width, f.lo);
	}
	tap_ok(row->shared_shift == (find(header, "SHARED_MEMORY_SIZE_SHIFTED7") ? 7 : 0),
	       "%s: shared memory is in units of %u bytes", row->name, 1u << row->shared_shift);
}

static void check_row(const struct tmd_layout *row)
{
	const struct header *header = header_of(row);
	bool same = true;

	if (!tap_ok(header != NULL, "%s of class %#x has a header", row->name, row->classes[0]))
		return;
	for (int i = 0; i < 8; i++)
		same &= !row->classes[i] == !header->classes[i] &&
			(!row->classes[i] || has_class(header->classes, row->classes[i]));
	tap_ok(same, "%s: its classes are those whose headers have it", row->name);
	version(row, header);
	mask(row, header);
	if (!row->refused)
		fields(row, header);
}

int main(void)
{
	tap_ok(tmd_nr_layouts == sizeof(headers) / sizeof(headers[0]), "a row for each header");
	for (unsigned int i = 0; i < tmd_nr_layouts; i++)
		check_row(&tmd_layouts[i]);
	return tap_done();
}
