// SPDX-License-Identifier: MIT
/*
 * Fuzz target: the file of a node's GPUs that `gpupart slurm-node` writes for the Slurm plugin.
 * For an accepted file, `gpupart slurm-node` must write the same bytes again. The plugin has a
 * separate parser. For each GPU, this parser must read the same values.
 */
#include <errno.h>
#include <sys/stat.h>
#include "lib/topo/topology.h"
#include "cli/slurm/node_gpus.h"
#include "cli/util/message.h"
#include "slurm/node_file.h"
#include "tests/fuzz/fuzz.h"

static struct gpupart *gp;
/* @capture is the capture of every GPU; @list is the content of the file */
static char *capture, *list;
static size_t list_len;

/* The linker option --wrap replaces these functions. So two files can exist at the same time. */
int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __real_stat(const char *path, struct stat *st);
int __wrap_stat(const char *path, struct stat *st);
FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);

/* All GPUs have the same capture. */
static const char *instead(const char *path)
{
	return strncmp(path, "/run/gpupart/gpu-", 17) ? path :
							fuzz_file(capture, strlen(capture));
}

int __wrap_open(const char *path, int flags, ...)
{
	return __real_open(instead(path), flags, 0600);
}

int __wrap_stat(const char *path, struct stat *st)
{
	return __real_stat(instead(path), st);
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
	if (strcmp(path, NODE_GPU_FILE))
		return __real_fopen(path, mode);
	MUST(!strcmp(mode, "re"));
	/* fmemopen() cannot create an empty file. */
	return list_len ? fmemopen(list, list_len, "r") : __real_fopen("/dev/null", "r");
}

static void set_up(void)
{
	static const struct gpupart_gpu_info info = { .mig = -1 };
	struct topo_sm sms[2] = {
		{ 0, 0, 0, 0, -1, -1, -1, -1, -1, -1 }, { 0, 1, 0, 1, -1, -1, -1, -1, -1, -1 },
	};
	struct gpupart_topology *topo;

	MUST(!gpupart_open(&gp) && !topo_build(gp, &info, sms, 2, NULL, 0, &topo));
	MUST(!gpupart_topology_capture(gp, topo, NULL, &capture));
	gpupart_topology_close(topo);
}

static bool same(const struct node_gpu *gpu, const struct node_gpu *board)
{
	return gpu->number == board->number && !strcmp(gpu->pci, board->pci) &&
	       !strcmp(gpu->key, board->key) && gpu->simulated == board->simulated &&
	       gpu->memory == board->memory && !strcmp(gpu->source, board->source);
}

/* Returns the first GPU with this address or this number. */
static const struct node_gpu *first(const struct node_gpus *node, const char *pci, unsigned int nr)
{
	for (unsigned int i = 0; i < node->nr; i++)
		if (pci ? !strcmp(node->gpus[i].pci, pci) : node->gpus[i].number == nr)
			return &node->gpus[i];
	return NULL;
}

static void check_taken(const struct node_gpus *node)
{
	char *text = NULL, why[256], *captures;
	struct node_gpu board;
	size_t len = 0;
	FILE *file = open_memstream(&text, &len);

	MUST(file);
	for (unsigned int i = 0; i < node->nr; i++) {
		const struct node_gpu *gpu = &node->gpus[i];

		MUST(gpupart_topology_nr_tpcs(gpu->topo) == 2);
		fprintf(file, "%u %s %s %d %llu %s\n", gpu->number, gpu->pci, gpu->key,
			gpu->simulated, (unsigned long long)gpu->memory, gpu->source);
		MUST(!boards_find(gpu->pci, &board, why, sizeof(why)));
		MUST(same(first(node, gpu->pci, 0), &board));
		MUST(!boards_open(gpu->number, &board, why, sizeof(why)));
		MUST(same(first(node, NULL, gpu->number), &board));
		boards_close(&board);
	}
	fclose(file);
	MUST(len == list_len && !memcmp(text, list, len));
	free(text);
	*why = 0;
	MUST(boards_find("no address", &board, why, sizeof(why)) == -ENODEV && *why);
	/* Entries are not empty, and are separated by colons. */
	captures = boards_simulated();
	MUST(!captures == !node->nr);
	MUST(!captures || strlen(captures) >= 2 * node->nr - 1);
	free(captures);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct node_gpus node;
	struct node_gpu board;
	char why[256] = "";
	int status;

	if (!gp)
		set_up();
	list = (char *)data;
	list_len = size;
	memset(&node, 0, sizeof(node));
	fuzz_lines = 0;
	status = node_gpus_read(&node);
	MUST(!status ? !fuzz_lines : status == EXIT_FAILED && fuzz_lines == 1);
	if (!status) {
		check_taken(&node);
	} else if (!boards_find("0000:01:00.0", &board, why, sizeof(why))) {
		/* If one row is invalid, the other rows stay valid. */
		MUST(fuzz_printable(board.key, sizeof(board.key)) &&
		     strnlen(board.source, sizeof(board.source)) < sizeof(board.source));
	} else {
		MUST(*why);
	}
	node_gpus_close(&node);
	return 0;
}
