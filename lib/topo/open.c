// SPDX-License-Identifier: MIT
/*
 * Opens a topology from a live source, a sample or a file. The caller can select a live source by
 * its name. If there is no name, all live sources are tried in turn.
 */
#include <errno.h>
#include <string.h>
#include "lib/core/rows.h"
#include "lib/topo/topology.h"

/* The live sources, in the order in which they are tried. */
static const struct source {
	const char *name;
	int (*open)(struct gpupart *gp, const char *gpu, struct gpupart_topology **topo);
	int (*list)(struct gpupart *gp, struct gpupart_gpu_info *list, unsigned int max);
} sources[] = {
	{ "kernel", topo_kernel_open, topo_kernel_list },
	{ "rm", topo_rm_open, topo_rm_list },
};

#define NR_SOURCES (sizeof(sources) / sizeof(sources[0]))

/*
 * Asks the live source @name. If @name is NULL, asks each live source in turn until a source
 * answers. If @topo is not NULL, opens the topology. If @topo is NULL, lists the GPUs. If @name is
 * not a live source, returns -ENOENT and sets no error message.
 */
static int ask_sources(struct gpupart *gp, const char *name, const char *gpu,
		       struct gpupart_topology **topo, struct gpupart_gpu_info *list,
		       unsigned int max)
{
	char said[600] = "";
	unsigned int i, tried = 0;
	size_t at = 0;
	int ret = -ENOENT;

	for (i = 0; i < NR_SOURCES; i++) {
		if (name && strcmp(name, sources[i].name))
			continue;
		ret = topo ? sources[i].open(gp, gpu, topo) : sources[i].list(gp, list, max);
		if (ret >= 0)
			return ret;
		tried++;
		topo_append(said, sizeof(said), &at, "%s%s: %s", at ? "; " : "", sources[i].name,
			    gp ? gp->error : "");
	}
	if (tried > 1)
		ctx_fail(gp, ret, "%s", said);
	return ret;
}

static bool is_source(const char *name)
{
	unsigned int i;

	for (i = 0; i < NR_SOURCES; i++)
		if (!strcmp(name, sources[i].name))
			return true;
	return false;
}

/* Opens the capture in a file, or "sample:NAME". A capture has one GPU, which has the index 0. */
static int open_capture(struct gpupart *gp, const char *source, const char *gpu,
			struct gpupart_topology **topo)
{
	static const char sample[] = "sample:";
	struct gpupart_topology *t;
	char path[4096];
	bool shipped = !strncmp(source, sample, strlen(sample));
	int err = shipped ? topo_file_sample(gp, source + strlen(sample), path, sizeof(path)) : 0;

	err = err ? err : topo_file_open(gp, shipped ? path : source, &t);
	if (err)
		return err;
	if (gpu && !topo_selects(gpu, &t->info, 0)) {
		err = ctx_fail(gp, -ENODEV, "the GPU in %s (PCI %s, UUID %s) is not \"%s\"", source,
			       t->info.pci[0] ? t->info.pci : "unknown",
			       t->info.uuid[0] ? t->info.uuid : "unknown", gpu);
		gpupart_topology_close(t);
		return err;
	}
	*topo = t;
	return 0;
}

int gpupart_topology_open(struct gpupart *gp, const char *source, const char *gpu,
			  struct gpupart_topology **topo)
{
	struct gpupart_topology *rm;
	int err;

	if (!source || is_source(source)) {
		err = ask_sources(gp, source, gpu, topo, NULL, 0);
		/*
		 * The kernel module does not report virtual GPCs. The library needs them, because
		 * they determine where clusters run.
		 */
		if (!err && !source && !(*topo)->end_vgpc &&
		    !topo_rm_open(NULL, (*topo)->info.pci, &rm)) {
			topo_take_vgpcs(*topo, rm);
			(*topo)->compute_class = rm->compute_class;
			gpupart_topology_close(rm);
		}
		return err;
	}
	return open_capture(gp, source, gpu, topo);
}

static int list_gpus(struct gpupart *gp, const void *source, void *rows, unsigned int max)
{
	if (!source || is_source(source))
		return ask_sources(gp, source, NULL, NULL, rows, max);
	return ctx_fail(gp, -EINVAL,
			"%s is a capture of one GPU: only \"kernel\" and \"rm\" can list GPUs",
			(const char *)source);
}

int gpupart_gpu_list(struct gpupart *gp, const char *source, struct gpupart_gpu_info *list,
		     unsigned int max, size_t size)
{
	return rows_resized(gp, list, max, size, sizeof(*list), list_gpus, source);
}
