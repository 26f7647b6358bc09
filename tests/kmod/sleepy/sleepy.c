// SPDX-License-Identifier: MIT
/*
 * A driver that owns the emulated GPUs. Like NVIDIA's driver, it lets the GPUs sleep. The tested
 * module must wake the GPUs. This driver is only for the guest.
 *
 * "stubborn=" makes wake-ups of the GPUs fail. "slow=" is the duration of a wake-up in
 * milliseconds. "wakes" is the number of wake-ups so far. "d3=" puts the GPUs into D3, without
 * runtime PM, and leaves the GPUs there. "frozen=" sets the kernel's state of the GPUs' bus to an
 * error without a recovery. "entry=" names a folder of /proc, which this driver creates like
 * nvdebug. A write to "family=" registers a separate generic netlink family. "nap=" is the time
 * in milliseconds that the first GPU takes to suspend during a suspend of the machine. "naps"
 * shows that the GPU was suspended. "shows=" names a file. "appeared" shows that the file was
 * created during the suspend of the machine. "early" shows that the file existed before the
 * suspend. "as=" is the driver's name. "managed=" makes the driver behave like vfio-pci, which
 * passes GPUs to a virtual machine.
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/namei.h>
#include <linux/path.h>
#include <linux/pci.h>
#include <linux/pm_runtime.h>
#include <linux/proc_fs.h>
#include <linux/version.h>
#include <net/genetlink.h>

static bool stubborn;
module_param(stubborn, bool, 0644);
static bool d3, frozen, managed;
module_param(d3, bool, 0444);
module_param(frozen, bool, 0444);
module_param(managed, bool, 0444);
static char *entry;
module_param(entry, charp, 0444);
static char *as = "sleepy";
module_param(as, charp, 0444);
static unsigned int slow, wakes, nap, naps, appeared, early;
module_param(slow, uint, 0644);
module_param(wakes, uint, 0644);
module_param(nap, uint, 0644);
module_param(naps, uint, 0644);
module_param(appeared, uint, 0644);
module_param(early, uint, 0644);
static char *shows;
module_param(shows, charp, 0444);

static struct genl_family sleepy_family = {
	.name = "sleepy",
	.version = 1,
	.module = THIS_MODULE,
};
static bool has_family;

static int set_family(const char *text, const struct kernel_param *param)
{
	int err = has_family ? -EEXIST : genl_register_family(&sleepy_family);

	has_family |= !err;
	return err;
}

static const struct kernel_param_ops family_ops = { .set = set_family };
module_param_cb(family, &family_ops, NULL, 0200);

static int sleepy_suspend(struct device *dev)
{
	return 0;
}

static bool is_there(void)
{
	struct path path;

	if (!shows || kern_path(shows, 0, &path))
		return false;
	path_put(&path);
	return true;
}

/*
 * Called during the suspend of the machine. At this time, processes are frozen, but the GPU still
 * answers.
 */
static int sleepy_machine_suspend(struct device *dev)
{
	bool before = is_there();

	if (!nap || naps)
		return 0;
	naps = 1;
	early = before;
	msleep(nap);
	appeared = !before && is_there();
	return 0;
}

static int sleepy_machine_resume(struct device *dev)
{
	return 0;
}

static int sleepy_resume(struct device *dev)
{
	wakes++;
	msleep(slow);
	return stubborn ? -EBUSY : 0;
}

static int sleepy_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	if (d3) {
		/*
		 * If the state of a device is unknown, Linux 5.10 ignores the requested state and
		 * puts the device into D0.
		 */
		pci_set_power_state(pdev, PCI_D0);
		return pci_set_power_state(pdev, PCI_D3hot);
	}
	if (frozen) {
		pdev->error_state = pci_channel_io_frozen;
		return 0;
	}
	/*
	 * Without this flag, the suspend of the machine would skip a device that already sleeps.
	 */
	if (shows)
		dev_pm_set_driver_flags(&pdev->dev, DPM_FLAG_NO_DIRECT_COMPLETE);
	/* After a failed wake-up, only this call can clear the error. */
	pm_runtime_set_active(&pdev->dev);
	pm_runtime_allow(&pdev->dev);
	pm_runtime_put_noidle(&pdev->dev);
	return 0;
}

static void sleepy_remove(struct pci_dev *pdev)
{
	if (d3) {
		pci_set_power_state(pdev, PCI_D0);
		return;
	}
	if (frozen) {
		pdev->error_state = pci_channel_io_normal;
		return;
	}
	pm_runtime_get_noresume(&pdev->dev);
	pm_runtime_forbid(&pdev->dev);
}

static const struct dev_pm_ops sleepy_pm = {
	SET_SYSTEM_SLEEP_PM_OPS(sleepy_machine_suspend, sleepy_machine_resume)
	SET_RUNTIME_PM_OPS(sleepy_suspend, sleepy_resume, NULL)
};

static const struct pci_device_id sleepy_ids[] = {
	{ PCI_DEVICE(PCI_VENDOR_ID_NVIDIA, 0x2335) },
	{ }
};
MODULE_DEVICE_TABLE(pci, sleepy_ids);

static struct pci_driver sleepy_driver = {
	.id_table = sleepy_ids,
	.probe = sleepy_probe,
	.remove = sleepy_remove,
	.driver.pm = &sleepy_pm,
};

static int __init sleepy_init(void)
{
	sleepy_driver.name = as;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(5, 19, 0)
	sleepy_driver.driver_managed_dma = managed;
#endif
	if (entry)
		proc_mkdir(entry, NULL);
	return pci_register_driver(&sleepy_driver);
}

static void __exit sleepy_exit(void)
{
	pci_unregister_driver(&sleepy_driver);
	if (has_family)
		genl_unregister_family(&sleepy_family);
	if (entry)
		remove_proc_entry(entry, NULL);
}

module_init(sleepy_init);
module_exit(sleepy_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("lets the emulated GPUs sleep");
