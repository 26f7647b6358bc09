// SPDX-License-Identifier: MIT
/*
 * Checks that the fields of a TMD match the launch for which the TMD was built. Some fields
 * determine how many TPCs a launch needs. If a layout row was never tried, this check proves
 * these fields before the library uses the row.
 */
#include "lib/tmd/field.h"

#define SHARED_MORE	4096	/* the TMD's value may be larger by less than this number of
				 * bytes */
#define REGISTERS_MORE	16	/* the TMD's value may be larger by less than this number of
				 * registers */
#define MOST_BARRIERS	16	/* maximum number of barriers of a block; source: PTX ISA, "bar" */

bool tmd_layout_needs_shapes(const struct tmd_layout *layout)
{
	return !layout->tested_on && layout->type.width;
}

static bool shows(const void *tmd, struct tmd_field f, unsigned int least, unsigned int more)
{
	return field_read(tmd, f) - least < more;
}

const char *tmd_shape_differs(const struct tmd_layout *layout, const void *tmd,
			      const struct tmd_shape *shape)
{
	bool cluster = shape->cluster[0];
	unsigned int type = shape->cooperative ? TMD_TYPE_COOPERATIVE : TMD_TYPE_GRID;
	const struct tmd_field *grid = shape->cooperative ? layout->cooperative : layout->grid;
	unsigned int unit = 1u << layout->shared_shift;

	if (!shows(tmd, layout->type, type + cluster, 1))
		return "type";
	for (int i = 0; i < 3; i++) {
		if (cluster && !shows(tmd, layout->cluster[i], shape->cluster[i], 1))
			return "cluster";
		if (!shows(tmd, grid[i], shape->grid[i] / (cluster ? shape->cluster[i] : 1), 1))
			return shape->cooperative ? "cooperative" : "grid";
		if (!shows(tmd, layout->threads[i], shape->block[i], 1))
			return "threads";
	}
	if (!shows(tmd, layout->registers, shape->registers, REGISTERS_MORE))
		return "registers";
	if (!shows(tmd, layout->barriers, 0, MOST_BARRIERS + 1))
		return "barriers";
	if (!shows(tmd, layout->shared, shape->shared / unit, SHARED_MORE / unit))
		return "shared memory";
	return NULL;
}
