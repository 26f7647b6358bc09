// SPDX-License-Identifier: MIT
/*
 * Fuzz target: texts of sets. An accepted set must be the same after a write and a read. A
 * refusal must have a message and must leave the set unchanged.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "lib/core/ctx.h"
#include "lib/topo/topology.h"
#include "tests/fuzz/fuzz.h"

static struct gpupart *gp;
static struct gpupart_topology *topo;

/* 3 GPCs of 22 TPCs, 2 uGPUs, one SM per TPC. */
static void set_up(void)
{
	static const struct gpupart_gpu_info info = { .mig = -1 };
	static struct topo_sm sms[66];
	int i;

	for (i = 0; i < 66; i++)
		sms[i] = (struct topo_sm){ i % 3, i / 3, 0, i, -1, -1, i % 3 / 2, -1, -1, -1 };
	MUST(!gpupart_open(&gp));
	MUST(!topo_build(gp, &info, sms, 66, NULL, 0, &topo));
}

static void check(int err, const struct gpupart_tpcset *set, const struct gpupart_tpcset *before)
{
	struct gpupart_tpcset again;
	char text[GPUPART_TPCSET_STRLEN];
	int len;

	if (err) {
		MUST(err == -EINVAL && gpupart_error(gp)[0] && gpupart_tpcset_equal(set, before));
		return;
	}
	len = gpupart_tpcset_format_hex(set, text, sizeof(text));
	MUST(len > 0 && (size_t)len == strlen(text));
	MUST(!gpupart_tpcset_parse_hex(gp, text, &again) && gpupart_tpcset_equal(set, &again));
	len = gpupart_tpcset_format_list(set, text, sizeof(text));
	MUST(len >= 0 && (size_t)len == strlen(text));
	MUST(gpupart_tpcset_empty(set) == !len);
	if (len)
		MUST(!gpupart_tpcset_parse_list(gp, text, &again) &&
		     gpupart_tpcset_equal(set, &again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct gpupart_tpcset set, before;
	char *text;
	int err;

	if (!gp)
		set_up();
	text = fuzz_text(data, size);
	memset(&before, 0xa5, sizeof(before));

	gp->error[0] = 0;
	set = before;
	check(gpupart_tpcset_parse_list(gp, text, &set), &set, &before);
	gp->error[0] = 0;
	set = before;
	check(gpupart_tpcset_parse_hex(gp, text, &set), &set, &before);
	gp->error[0] = 0;
	set = before;
	err = gpupart_set_parse(gp, topo, text, &set);
	check(err, &set, &before);
	if (!err)
		MUST(!gpupart_set_check(gp, topo, &set));
	free(text);
	return 0;
}
