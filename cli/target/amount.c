// SPDX-License-Identifier: MIT
/* Computes the number of TPCs for the options -n and --sms, and chooses these TPCs. */
#include <stdio.h>
#include <string.h>
#include "cli/target/amount.h"
#include "cli/target/clusters.h"
#include "cli/util/alloc.h"
#include "cli/util/message.h"
#include "cli/util/number.h"

static unsigned int fewest_sms(const struct gpupart_topology *topo)
{
	unsigned int fewest = GPUPART_MAX_SMS_PER_TPC;

	for (unsigned int tpc = 0; tpc < gpupart_topology_nr_tpcs(topo); tpc++)
		if (gpupart_topology_tpc(topo, tpc)->nr_sms < fewest)
			fewest = gpupart_topology_tpc(topo, tpc)->nr_sms;
	return fewest;
}

static int parse_sms(const char *text, const struct gpupart_topology *topo, unsigned int *nr)
{
	unsigned int sms = fewest_sms(topo);
	unsigned long value;

	if (!number_whole(text, GPUPART_MAX_TPCS * GPUPART_MAX_SMS_PER_TPC, &value))
		return usage_error("--sms %s: must be a number of SMs, 1 to %d",
				   *text ? text : "''", GPUPART_MAX_TPCS * GPUPART_MAX_SMS_PER_TPC);
	if (!sms)
		return usage_error("--sms %s: %s does not report the SMs of each TPC: use -n", text,
				   gpupart_topology_info(topo)->source);
	*nr = (value + sms - 1) / sms;
	if (value % sms)
		remark("--sms %lu: rounded up to %u whole TPCs, %u SMs", value, *nr, *nr * sms);
	return 0;
}

/*
 * Reads a share of @of TPCs, such as "12.5%". Rounds the number of TPCs down, so that two halves
 * fit.
 */
static bool parse_share(const char *text, unsigned int of, unsigned int *nr)
{
	size_t len = strspn(text, "0123456789.");
	char number[16];
	double share;

	if (strcmp(text + len, "%") || len >= sizeof(number))
		return false;
	snprintf(number, sizeof(number), "%.*s", (int)len, text);
	if (!number_decimal(number, &share) || !(share > 0 && share <= 100))
		return false;
	*nr = of * share / 100 + 1e-6;
	return true;
}

int amount_parse(const char *option, const char *text, const struct gpupart_topology *topo,
		 const struct gpupart_tpcset *around, unsigned int *nr)
{
	unsigned int of = gpupart_tpcset_count(around);
	unsigned long value;

	if (strcmp(option, "-n"))
		return parse_sms(text, topo, nr);
	if (number_whole(text, GPUPART_MAX_TPCS, &value))
		*nr = value;
	else if (!parse_share(text, of, nr))
		return usage_error(
			"-n %s: must be a number of TPCs, 1 to %d, or a share such as 50%%",
			*text ? text : "''", GPUPART_MAX_TPCS);
	else if (!*nr)
		return usage_error("-n %s: this share is less than 1 of %u TPCs", text, of);
	return 0;
}

static void note_overlap(unsigned int nr, const struct gpupart_tpcset *part, const char *why)
{
	char text[GPUPART_TPCSET_STRLEN];

	gpupart_tpcset_format_list(part, text, sizeof(text));
	remark("-n %u: TPCs %s are also used by running programs: %s", nr, text, why);
}

/*
 * Chooses all free TPCs. If there are fewer than @nr free TPCs, adds packed TPCs that other
 * programs use.
 */
static void choose_packed(const struct gpupart_topology *topo, const struct gpupart_tpcset *from,
			  const struct gpupart_tpcset *unused, unsigned int nr,
			  struct gpupart_tpcset *set)
{
	unsigned int nr_unused = gpupart_tpcset_count(unused);
	struct gpupart_tpcset left, part;
	char why[48];

	*set = gpupart_tpcset_or(set, unused);
	left = gpupart_tpcset_andnot(from, set);
	gpupart_set_shape(cmd_gp, topo, GPUPART_SHAPE_PACKED, &left, nr - nr_unused, &part);
	clusters_add(topo, &part, &left, set);
	part = gpupart_tpcset_and(set, &left);
	snprintf(why, sizeof(why), "only %u of them were free", nr_unused);
	note_overlap(nr, &part, why);
}

int amount_choose(const struct gpupart_topology *topo, enum gpupart_shape shape,
		  const struct gpupart_tpcset *from, const struct gpupart_tpcset *others,
		  unsigned int nr, struct gpupart_tpcset *set)
{
	struct gpupart_tpcset unused = gpupart_tpcset_andnot(from, others), part;
	int err = gpupart_set_shape(cmd_gp, topo, shape, &unused, nr, &part);

	if (err && shape == GPUPART_SHAPE_PACKED) {
		choose_packed(topo, from, &unused, nr, set);
		return 0;
	}
	if (err) {
		unused = *from;
		err = gpupart_set_shape(cmd_gp, topo, shape, from, nr, &part);
	}
	if (err)
		return error_of(err, "--shape %s with -n %u: %s", gpupart_shape_name(shape), nr,
				gpupart_error(cmd_gp));
	/*
	 * Do not call clusters_add() here. Whole GPCs have room for clusters, and more TPCs would
	 * change the shape.
	 */
	if (shape == GPUPART_SHAPE_BALANCED)
		*set = gpupart_tpcset_or(set, &part);
	else
		clusters_add(topo, &part, &unused, set);
	part = gpupart_tpcset_and(set, others);
	part = gpupart_tpcset_and(&part, from);
	if (!gpupart_tpcset_empty(&part))
		note_overlap(nr, &part, "the free TPCs contain no set of this shape");
	return 0;
}
