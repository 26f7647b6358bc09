// SPDX-License-Identifier: MIT
/*
 * Implements libsmctrl's functions that report the GPCs and TPCs of a GPU. In the masks that these
 * functions return, a set bit means that the TPC exists.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <gpupart_manage.h>
#pragma GCC visibility push(default)
#include <libsmctrl.h>
#pragma GCC visibility pop
#include "lib/smctrl/smctrl.h"

/* This lock is also held during calls of gpupart and of the driver. */
static pthread_mutex_t gpcs_lock = PTHREAD_MUTEX_INITIALIZER;

/* Another thread may have held the lock during the fork, so initialise the lock again. */
static void in_child(void)
{
	pthread_mutex_init(&gpcs_lock, NULL);
}

__attribute__((constructor))
static void guard_forks(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

/* Returns GPU number @dev of the simulated driver's GPUs, which are sorted by PCI address. */
static int simulated_topology(struct gpupart *gp, int dev, struct gpupart_topology **topo)
{
	char pci[SMCTRL_MAX_GPUS][20];
	int count, before;

	if (smctrl_driver.init(0) || smctrl_driver.device_count(&count))
		return -ENODEV;
	if (count > SMCTRL_MAX_GPUS)
		count = SMCTRL_MAX_GPUS;
	for (int i = 0; i < count; i++)
		smctrl_device_pci(i, pci[i]);
	for (int i = 0; i < count; i++) {
		before = 0;
		for (int other = 0; other < count; other++)
			before += strcmp(pci[other], pci[i]) < 0;
		if (before == dev)
			return gpupart_topology_open(gp, smctrl_driver.sim_capture(i), NULL, topo);
	}
	return -ENODEV;
}

static int topology_of_dev(struct gpupart *gp, int dev, struct gpupart_topology **topo)
{
	char number[16];

	if (smctrl_driver_there() && smctrl_driver.sim_capture)
		return simulated_topology(gp, dev, topo);
	snprintf(number, sizeof(number), "%d", dev);
	return gpupart_topology_open(gp, NULL, number, topo);
}

static int topology_of_cuda(struct gpupart *gp, int cuda_dev, struct gpupart_topology **topo)
{
	char pci[20];
	int count;

	if (!smctrl_driver_there())
		return -ENOENT;
	if (smctrl_driver.init(0) || smctrl_driver.device_count(&count) || cuda_dev < 0 ||
	    cuda_dev >= count)
		return -ENODEV;
	if (smctrl_driver.sim_capture)
		return gpupart_topology_open(gp, smctrl_driver.sim_capture(cuda_dev), NULL, topo);
	smctrl_device_pci(cuda_dev, pci);
	return gpupart_topology_open(gp, NULL, pci, topo);
}

static int topology_failed(struct gpupart *gp, const char *which, int dev, int err)
{
	const char *why = gpupart_error(gp);

	smctrl_say("the topology of the GPU with %s number %d is unknown: %s", which, dev,
	    *why ? why : strerror(-err));
	return -err;
}

/*
 * The results of the two functions below. They are filled in once for each GPU and never
 * changed again.
 */
static struct gpcs {
	bool known, fits_64;
	unsigned int nr_gpcs, nr_tpcs;
	uint64_t masks[GPUPART_MAX_GPCS];
	uint128_t masks_ext[GPUPART_MAX_GPCS];
} gpcs_of_dev[SMCTRL_MAX_GPUS];

static int gpcs_fill(struct gpcs *gpcs, const struct gpupart_topology *topo)
{
	gpcs->nr_gpcs = gpupart_topology_nr_gpcs(topo);
	gpcs->nr_tpcs = gpupart_topology_nr_tpcs(topo);
	if (gpcs->nr_tpcs > 128)
		return -ERANGE;
	gpcs->fits_64 = gpcs->nr_tpcs <= 64;
	for (unsigned int gpc = 0; gpc < gpcs->nr_gpcs; gpc++) {
		const struct gpupart_tpcset *tpcs = &gpupart_topology_gpc(topo, gpc)->tpcs;

		gpcs->masks[gpc] = tpcs->allowed[0];
		gpcs->masks_ext[gpc] = (uint128_t)tpcs->allowed[1] << 64 | tpcs->allowed[0];
	}
	gpcs->known = true;
	return 0;
}

static int gpcs_get(int dev, const struct gpcs **got)
{
	bool there = dev >= 0 && dev < SMCTRL_MAX_GPUS;
	struct gpupart_topology *topo;
	struct gpupart *gp;
	int err = 0;

	if (gpupart_open(&gp))
		return ENOMEM;
	pthread_mutex_lock(&gpcs_lock);
	if (!there || !gpcs_of_dev[dev].known)
		err = there ? topology_of_dev(gp, dev, &topo) : -ENODEV;
	if (there && !err && !gpcs_of_dev[dev].known) {
		err = gpcs_fill(&gpcs_of_dev[dev], topo);
		gpupart_topology_close(topo);
	}
	pthread_mutex_unlock(&gpcs_lock);
	if (err)
		err = topology_failed(gp, "PCI", dev, err);
	else
		*got = &gpcs_of_dev[dev];
	gpupart_close(gp);
	return err;
}

int libsmctrl_get_gpc_info_ext(uint32_t *nr_gpcs, uint128_t **masks, int dev)
{
	const struct gpcs *gpcs;
	int err = gpcs_get(dev, &gpcs);

	*nr_gpcs = 0;	/* the original library does this too, because programs do not check the
			 * error */
	if (err)
		return err;
	*nr_gpcs = gpcs->nr_gpcs;
	*masks = (uint128_t *)gpcs->masks_ext;
	return 0;
}

int libsmctrl_get_gpc_info(uint32_t *nr_gpcs, uint64_t **masks, int dev)
{
	const struct gpcs *gpcs;
	int err = gpcs_get(dev, &gpcs);

	*nr_gpcs = 0;	/* the original library does this too, because programs do not check the
			 * error */
	if (err)
		return err;
	*nr_gpcs = gpcs->nr_gpcs;
	if (!gpcs->fits_64)
		return ERANGE;
	*masks = (uint64_t *)gpcs->masks;
	return 0;
}

int libsmctrl_get_tpc_info(uint32_t *nr_tpcs, int dev)
{
	const struct gpcs *gpcs;
	int err = gpcs_get(dev, &gpcs);

	if (!err)
		*nr_tpcs = gpcs->nr_tpcs;
	return err;
}

int libsmctrl_get_tpc_info_cuda(uint32_t *nr_tpcs, int cuda_dev)
{
	struct gpupart_topology *topo;
	struct gpupart *gp;
	int err;

	if (gpupart_open(&gp))
		return ENOMEM;
	err = topology_of_cuda(gp, cuda_dev, &topo);
	if (err) {
		err = topology_failed(gp, "CUDA", cuda_dev, err);
	} else {
		*nr_tpcs = gpupart_topology_nr_tpcs(topo);
		gpupart_topology_close(topo);
	}
	gpupart_close(gp);
	return err;
}
