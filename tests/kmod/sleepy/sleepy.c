// SPDX-License-Identifier: MIT
/*
 * A driver that owns the emulated GPUs and lets them sleep, as NVIDIA's does: the
 * module under test must wake them. Guest only.
 *
 *   stubborn=	they do not wake
 *   slow=	milliseconds that a wake-up takes
 */
#include <linux/delay.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/pm_runtime.h>

static bool stubborn;
module_param(stubborn, bool, 0644);
static unsigned int slow;
module_param(slow, uint, 0644);

static int sleepy_suspend(struct device *dev)
{
	return 0;
}

static int sleepy_resume(struct device *dev)
{
	msleep(slow);
	return stubborn ? -EBUSY : 0;
}

static int sleepy_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	/* A wake-up that failed before is forgotten only so. */
	pm_runtime_set_active(&pdev->dev);
	pm_runtime_allow(&pdev->dev);
	pm_runtime_put_noidle(&pdev->dev);
	return 0;
}

static void sleepy_remove(struct pci_dev *pdev)
{
	pm_runtime_get_noresume(&pdev->dev);
	pm_runtime_forbid(&pdev->dev);
}

static const struct dev_pm_ops sleepy_pm = {
	SET_RUNTIME_PM_OPS(sleepy_suspend, sleepy_resume, NULL)
};

static const struct pci_device_id sleepy_ids[] = {
	{ PCI_DEVICE(PCI_VENDOR_ID_NVIDIA, 0x2335) },
	{ }
};
MODULE_DEVICE_TABLE(pci, sleepy_ids);

static struct pci_driver sleepy_driver = {
	.name = "sleepy",
	.id_table = sleepy_ids,
	.probe = sleepy_probe,
	.remove = sleepy_remove,
	.driver.pm = &sleepy_pm,
};

module_pci_driver(sleepy_driver);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("lets the emulated GPUs sleep");
