// SPDX-License-Identifier: MIT
/*
 * Fuzz target: the memory that processes share with `gpupart stat`. The processes may have
 * written any values into this memory. Names from this memory must be text. The number of GPUs
 * must not exceed the size of the table. The JSON output must be valid JSON.
 */
#include <errno.h>
#include <sys/mman.h>
#include "lib/stat/shared_memory.h"
#include "cli/stat/stat.h"
#include "tests/fuzz/fuzz.h"

#define MOST 2

static void check_text(const char *text, size_t len)
{
	MUST(memchr(text, 0, len));
	for (; *text; text++)
		MUST(*text >= 0x20 && *text <= 0x7e);
}

static void take(struct stat_program *program, const struct gpupart_stat_process *p)
{
	check_text(p->name, sizeof(p->name));
	MUST(p->nr_gpus <= GPUPART_STAT_MAX_GPUS);
	for (unsigned int g = 0; g < GPUPART_STAT_MAX_GPUS; g++)
		check_text(p->pci[g], sizeof(p->pci[g]));
	program->nr_processes++;
	program->sum = *p;
}

static void show(const struct stat_program *program)
{
	struct args args = { 0 };
	struct stat_report report = { .args = &args, .program = program };
	struct out out = { .bold = "", .dim = "", .red = "", .plain = "" };
	char *text = NULL;
	size_t len;

	for (int json = 0; json <= 1; json++) {
		args.json = json;
		out.file = open_memstream(&text, &len);
		MUST(out.file);
		stat_show(&out, &report);
		fclose(out.file);
		MUST(len);
		if (json) {
			json_t *root = json_loads(text, 0, NULL);

			MUST(root);
			json_decref(root);
		}
		free(text);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char *argv[] = { "program", NULL };
	struct stat_program program = { .argv = argv, .seconds = 1 };
	struct input in = { data, size };
	static struct stat_memory made;
	struct gpupart_stat_process p;
	struct memfd_head *head;
	struct stat_memory *memory;
	struct gpupart_stat *stat;
	struct gpupart *gp;
	const char *id;
	int err;

	MUST(!gpupart_open(&gp) && !gpupart_stat_open(gp, &stat, &id));
	MUST(!memfd_map(gp, id, STAT_NAME, STAT_MAGIC, sizeof(*memory), &head));
	memory = (struct stat_memory *)head;
	made = *memory;
	made.nr_processes = input_u8(&in) % (MOST + 1);
	for (unsigned int n = 0; n < MOST; n++) {
		struct input part = { in.at, in.left / (MOST - n) };

		in.at += part.left;
		in.left -= part.left;
		made.places[n].whole = true;
		made.places[n].process = (struct gpupart_stat_process){
			.pid = 1, .name = "program", .nr_gpus = 1, .pci = { "0000:01:00.0" },
		};
		input_patch(&part, &made.places[n], sizeof(made.places[n]));
	}
	memcpy(memory, &made, sizeof(made));
	for (unsigned int n = 0; (err = gpupart_stat_get(stat, n, &p)) != -ENOENT; n++) {
		if (!err)
			take(&program, &p);
		gpupart_stat_seen(stat, n);
	}
	program.nr_lost = gpupart_stat_lost(stat);
	show(&program);
	munmap(memory, sizeof(*memory));
	gpupart_stat_close(stat);
	gpupart_close(gp);
	return 0;
}
