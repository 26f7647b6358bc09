// SPDX-License-Identifier: MIT
/*
 * Fuzz target: the demands of tenants, in a file and in the text of --tenant. Accepted demands
 * must equal the text and be within the documented bounds. The target makes a plan for these
 * demands on a small GPU. The result is either a valid plan or a message. A refusal has one line.
 */
#include <errno.h>
#include <string.h>
#include <strings.h>
#include "lib/topo/topology.h"
#include "cli/plan/demands.h"
#include "cli/util/message.h"
#include "tests/fuzz/fuzz.h"

#define NR_GPCS 6
#define NR_TPCS 30		/* GPC i has TPCs i, i + 6, ..; the GPU has two uGPUs */

static struct gpupart *gp;
static struct gpupart_topology *topo;

static void set_up(void)
{
	static const struct gpupart_gpu_info info = { .mig = -1 };
	static struct topo_sm sms[2 * NR_TPCS];

	for (int i = 0; i < 2 * NR_TPCS; i++) {
		int tpc = i / 2, gpc = tpc % NR_GPCS;

		sms[i] = (struct topo_sm){ gpc, tpc / NR_GPCS, i % 2, tpc, -1, -1,
					   gpc * 2 / NR_GPCS, -1, -1, -1 };
	}
	MUST(!gpupart_open(&gp));
	MUST(!topo_build(gp, &info, sms, 2 * NR_TPCS, NULL, 0, &topo));
}

static void check_sets(const struct demands *demands, const struct gpupart_plan *plan)
{
	struct gpupart_tpcset seen = { 0 };

	MUST(plan->nr_tenants == demands->nr && plan->optimal);
	for (unsigned int i = 0; i < demands->nr; i++) {
		const struct gpupart_demand *d = &demands->list[i];
		const struct gpupart_tpcset *set = &plan->tenants[i].set;

		MUST(!strcmp(plan->tenants[i].name, d->name));
		MUST(!gpupart_set_check(gp, topo, set) && !gpupart_tpcset_intersects(set, &seen));
		MUST(gpupart_tpcset_count(set) >= d->min_tpcs);
		MUST(!d->max_tpcs || gpupart_tpcset_count(set) <= d->max_tpcs);
		for (unsigned int gpc = 0; gpc < NR_GPCS && d->gpcs; gpc++) {
			const struct gpupart_tpcset *of = &gpupart_topology_gpc(topo, gpc)->tpcs;

			MUST(!gpupart_tpcset_intersects(set, of) ||
			     gpupart_tpcset_subset(of, set));
		}
		seen = gpupart_tpcset_or(&seen, set);
	}
}

static void check(const struct demands *demands, int status)
{
	struct gpupart_plan plan;
	int err;

	MUST(!status ? !fuzz_lines : status == EXIT_USAGE && fuzz_lines == 1);
	if (status)
		return;
	MUST(demands->nr <= GPUPART_PLAN_MAX_TENANTS);
	for (unsigned int i = 0; i < demands->nr; i++) {
		const struct gpupart_demand *d = &demands->list[i];

		MUST(d->name && *d->name && strlen(d->name) < 64);
		MUST(d->min_tpcs <= GPUPART_MAX_TPCS && d->max_tpcs <= GPUPART_MAX_TPCS);
		MUST(d->cluster <= 128 && d->weight <= 1000);
	}
	gp->error[0] = 0;
	err = gpupart_plan_make(gp, topo, NULL, demands->list, demands->nr, &plan);
	if (!err)
		check_sets(demands, &plan);
	else
		MUST((err == -EINVAL || err == -ENOSPC) && gpupart_error(gp)[0]);
}

/*
 * Applies the expected effect of an accepted "KEY=VALUE" to @d. This code does not use the
 * parser.
 */
static void expect_key(struct gpupart_demand *d, const char *key, const char *value)
{
	const struct {
		const char *name;
		unsigned int *to, *also, most;
	} numbers[] = {
		{ "min", &d->min_tpcs, NULL, GPUPART_MAX_TPCS },
		{ "max", &d->max_tpcs, NULL, GPUPART_MAX_TPCS },
		{ "tpcs", &d->min_tpcs, &d->max_tpcs, GPUPART_MAX_TPCS },
		{ "cluster", &d->cluster, NULL, 128 }, { "weight", &d->weight, NULL, 1000 },
	};
	static const char *const yes[] = { "true", "yes", "on", "y" };
	static const char *const no[] = { "false", "no", "off", "n" };
	int is = value ? -1 : 1;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (strcmp(key, numbers[i].name))
			continue;
		MUST(value && *value >= '1' && *value <= '9' && strlen(value) < 6);
		MUST(strspn(value, "0123456789") == strlen(value));
		*numbers[i].to = atoi(value);
		MUST(*numbers[i].to <= numbers[i].most);
		if (numbers[i].also)
			*numbers[i].also = *numbers[i].to;
		return;
	}
	if (!strcmp(key, "same") || !strcmp(key, "apart")) {
		const char *names = *key == 's' ? d->same : d->apart;

		/* If a key has several values, they are joined. */
		MUST(names && value && *value && strstr(names, value));
		return;
	}
	if (!strcmp(key, "mem"))
		return;
	if (!strcmp(key, "shape")) {
		MUST(value && strstr("packed gpcs balanced spread", value));
		d->gpcs = *value == 'g' || *value == 'b';
		d->spread = *value == 's' || *value == 'b';
		return;
	}
	for (int i = 0; i < 4 && value; i++)
		is = !strcasecmp(value, yes[i]) ? 1 : !strcasecmp(value, no[i]) ? 0 : is;
	MUST(is >= 0);
	if (!strcmp(key, "gpcs"))
		d->gpcs = is;
	else if (!strcmp(key, "spread"))
		d->spread = is;
	else
		MUST(!strcmp(key, "pack") && ((d->spread = !is), true));
}

static void check_words(const struct gpupart_demand *d, const char *line)
{
	char *copy = strdup(line), *rest = copy, *word;
	struct gpupart_demand expected = { .same = d->same, .apart = d->apart };

	MUST(copy && !strcmp(strsep(&rest, ":"), d->name));
	while (rest && *rest && (word = strsep(&rest, ","))) {
		char *value = word;

		strsep(&value, "=");
		expect_key(&expected, word, value);
	}
	MUST(d->min_tpcs == expected.min_tpcs && d->max_tpcs == expected.max_tpcs);
	MUST(d->cluster == expected.cluster && d->weight == expected.weight);
	MUST(d->gpcs == expected.gpcs && d->spread == expected.spread);
	free(copy);
}

static void read_file(const uint8_t *data, size_t size)
{
	static struct demands demands;
	memset(&demands, 0, sizeof(demands));
	fuzz_lines = 0;
	check(&demands, demands_read(&demands, fuzz_file(data, size)));
}

/* Each line of the input is the text of one --tenant option. */
static void read_words(const uint8_t *data, size_t size)
{
	static struct demands demands;
	char *text = fuzz_text(data, size), *line, *rest = text, before[256];
	int status = 0;

	memset(&demands, 0, sizeof(demands));
	fuzz_lines = 0;
	while (!status && (line = strsep(&rest, "\n"))) {
		snprintf(before, sizeof(before), "%s", line);
		status = demands_add(&demands, line);
		if (!status && strlen(line) < sizeof(before))
			check_words(&demands.list[demands.nr - 1], before);
	}
	check(&demands, status);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!gp)
		set_up();
	read_file(data, size);
	read_words(data, size);
	return 0;
}
