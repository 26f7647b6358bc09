// SPDX-License-Identifier: MIT
/* gpupart qos calibrate: measures the speed of each program while it runs alone on all TPCs. */
#include <errno.h>
#include "cli/qos/control.h"

#define LOOKS		4		/* number of reads in each half of the measurement */

struct alone {
	bool ended;
	int status;			/* exit status of the program after its end */
	struct qos_measured m;
	uint64_t milli;			/* units a second; 0: not measured */
};

/* Measures one program on all TPCs. Only the second half of the time counts. */
static int calibrate_one(struct control *c, unsigned int i, struct alone *alone)
{
	struct gpupart_tpcset all = gpupart_topology_all(c->live.topo);
	struct live_tenant *t = &c->live.tenants[i];
	struct qos_measured *m = &alone->m;
	int status = control_start(c, i, &all);
	uint64_t from;

	if (status)
		return status;
	for (unsigned int half = 0; half < 2 && !c->ended_by; half++) {
		from = half ? c->live.read_ns : process_now_ns();
		if (half && t->alone)
			*t->alone = (struct gpupart_records){ .on = false };
		/*
		 * Read several times. Then the time between reports is known at the end of the
		 * first half.
		 */
		for (unsigned int look = 1; look <= LOOKS && !c->ended_by; look++) {
			control_wait(c, from + c->number * 500000000ull / LOOKS * look);
			live_find(&c->live, true);
			live_read(&c->live);
		}
		live_take(&c->live, i, &c->setup.tenants[i], &c->setup.specs[i],
			  c->live.read_ns - from, m);
	}
	alone->ended = t->gone;
	alone->status = t->status;
	control_end(c, i);
	if (c->ended_by)
		return CMD_ENDED | (128 + c->ended_by);
	if (m->work == INT64_MAX)
		remark(
			"%s reports too many units to count: its real speed is higher than this figure",
		       t->name);
	/*
	 * A count of tokens or bytes fits in 64 bits, but its product with another number may not.
	 */
	if (!alone->ended)
		alone->milli = (unsigned __int128)m->work * 1000000000 / (m->ns ? m->ns : 1);
	return 0;
}

static int show(const struct control *c, const struct args *args, const struct alone *alone)
{
	json_t *root = out_json_new("qos calibrate", args->simulated), *list = json_array();
	unsigned int nr_unmeasured = 0;
	char text[48];
	struct out out;
	int status = out_open(&out, args);

	for (unsigned int i = 0; i < c->setup.nr && !status; i++, alone++) {
		const char *name = c->setup.tenants[i].name;

		if (!c->setup.specs[i].program)
			continue;
		json_array_append_new(list, json_pack(
			"{s:s, s:o, s:I, s:o}", "name", name, "alone_milli",
			alone->milli ? json_integer(alone->milli) : json_null(),
			"requests", (json_int_t)alone->m.nr, "ended_with",
			alone->ended ? json_integer(alone->status) : json_null()));
		if (c->live.tenants[i].alone)
			json_object_set_new(json_array_get(list, json_array_size(list) - 1),
					    "kernels_ns", kernels_json(c->live.tenants[i].alone));
		nr_unmeasured += !alone->milli;
		if (args->json)
			continue;
		if (alone->ended)
			fprintf(out.file, "%-12s ended with status %d before it was measured\n",
				name, alone->status);
		else if (!alone->milli)
			fprintf(out.file, "%-12s reported nothing\n", name);
		else
			fprintf(out.file, "%-12s alone: %s%s\n", name,
				qos_format_thousandths(alone->milli, text, sizeof(text)),
				args->simulated ? "  # simulated" : "");
	}
	json_object_set_new(root, "tenants", list);
	if (!status && args->json)
		out_json_write(&out, json_incref(root));
	json_decref(root);
	if (!status)
		status = out_close(&out);
	return status ?: nr_unmeasured ? EXIT_FAILED : 0;
}

static int calibrate_all(struct control *c, const struct args *args)
{
	struct alone alone[QOS_MAX_TENANTS] = { 0 };
	unsigned int nr = 0;
	int status = control_begin(c, "these programs also use TPCs, so the solo speeds may be "
				   "too low:");

	for (unsigned int i = 0; i < c->setup.nr && !status; i++)
		if (c->setup.specs[i].program) {
			status = calibrate_one(c, i, &alone[i]);
			nr++;
		}
	if (!status && !nr)
		return usage_error("%s: no tenant has a program", c->setup.path);
	return status ?: show(c, args, alone);
}

int qos_calibrate(const struct args *args, const struct qos_options *options)
{
	static struct control c = { .calibrating = true, .number = 10 };
	int status = control_open(&c, args, options) ?: calibrate_all(&c, args);

	control_close(&c);
	return status;
}
