// SPDX-License-Identifier: MIT
/*
 * Fuzz target: what measured processes leave in the memory that they share with `gpupart stat`,
 * which they may have written anything into: taken, judged and shown. Shares are shares, and
 * what is shown as JSON is JSON.
 */
#include <sys/mman.h>
#include "lib/stat/block.h"
#include "cli/stat/stat.h"
#include "tests/fuzz/fuzz.h"

#define MOST 2

static void check_share(double value)
{
	MUST(value >= 0 && value <= 1.0001);
}

static void check(struct stat_result *r)
{
	struct out out = { .file = fuzz_nowhere(), .bold = "", .dim = "", .red = "", .plain = "" };
	json_t *root = json_object();
	char *text;

	stat_judge(r);
	for (int i = 0; i < STAT_NR_SHARES; i++)
		check_share(r->shares[i]);
	/* Of the threads of all processes: may be more than all of the time. */
	MUST(r->cpu_waits >= 0 && r->cpu_launches >= 0 && r->cost >= 0);
	MUST(*r->verdict);
	MUST(memchr(r->why, 0, sizeof(r->why)));
	stat_text(&out, r);
	stat_json(root, r);
	text = json_dumps(root, 0);
	MUST(text);
	free(text);
	json_decref(root);
}

static void make_process(struct input *in, struct gpupart_stat_process *p)
{
	memset(p, 0, sizeof(*p));
	p->pid = 1;
	strcpy(p->name, "program");
	p->kernels = input_u8(in);
	p->first_ns = 1000;
	p->last_ns = 1000000000;
	p->nr_gpus = 1;
	strcpy(p->gpus[0].pci, "0000:01:00.0");
	p->gpus[0].nr_sms = 132;
	p->gpus[0].timed = p->kernels;
	p->gpus[0].stretches_ns = 900000000;
	p->gpus[0].busy_ns = p->gpus[0].kernels_ns = 4000000ull * input_u8(in);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char *program[] = { "program", NULL };
	static struct gpupart_stat_process read[MOST], made;
	struct input in = { data, size };
	struct stat_result result = { .processes = read, .program = program, .seconds = 1 };
	struct gpupart_stat_process *place;
	struct stat_block *block;
	struct gpupart_stat *stat;
	struct gpupart *gp;
	const char *id;

	MUST(!gpupart_open(&gp) && !gpupart_stat_open(gp, &stat, &id));
	MUST(!stat_block_map(gp, id, &block));
	for (unsigned int i = input_u8(&in) % MOST; i < MOST; i++) {
		struct input part = { in.at, in.left / (MOST - i) };

		in.at += part.left;
		in.left -= part.left;
		MUST(!stat_block_join(gp, block, &place));
		make_process(&part, &made);
		input_patch(&part, &made, sizeof(made));
		memcpy(place, &made, sizeof(made));
	}
	while (result.nr_processes < MOST &&
	       !gpupart_stat_get(stat, result.nr_processes, &read[result.nr_processes]))
		result.nr_processes++;
	MUST(result.nr_processes && !gpupart_stat_lost(stat));
	check(&result);
	/* The map stays in a measured process as long as it lives: this one goes on. */
	munmap(block, sizeof(*block));
	gpupart_stat_close(stat);
	gpupart_close(gp);
	return 0;
}
