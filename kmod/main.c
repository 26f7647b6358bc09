// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Loads the parts of the module in order, and unloads them in reverse order. */
#include <linux/module.h>
#include "device.h"

static int __init gpupart_init(void)
{
	int err;

	err = gp_proc_init();
	if (err)
		return err;
	err = gp_netlink_init();
	if (err)
		goto proc;
	/* Integrated GPUs come first, because nvdebug numbers them first. */
	err = gp_platform_gpus_init();
	if (err)
		goto netlink;
	err = gp_pci_gpus_init();
	if (err)
		goto platform;
	return 0;
platform:
	gp_platform_gpus_fini();
netlink:
	gp_netlink_fini();
proc:
	gp_proc_fini();
	return err;
}

static void __exit gpupart_exit(void)
{
	gp_pci_gpus_fini();
	gp_platform_gpus_fini();
	gp_netlink_fini();
	gp_proc_fini();
}

module_init(gpupart_init);
module_exit(gpupart_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_AUTHOR("The gpupart authors");
MODULE_DESCRIPTION("Shows the GPCs and TPCs of NVIDIA GPUs in /proc and by netlink; read only");
MODULE_VERSION("0.2.0");
