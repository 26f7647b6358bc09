// SPDX-License-Identifier: MIT
/*
 * Emulates an integrated GPU as a platform device. The registers of the GPU are memory that the
 * kernel does not use. A driver in this file powers the device. This module is only for the
 * guest.
 *
 * "name=" and "base=" are the name of the device and the address of its registers. Without a name,
 * no device is created.
 * "stubborn=" makes wake-ups of the device fail.
 * "off=" makes the driver leave runtime PM and the power of the device off.
 *
 * One write of "OFFSET VALUE" lines to /proc/tegra_regs sets the registers. A read of
 * /proc/tegra_regs returns the number of registers that have changed since this write. While the
 * device has no power, all bits of all registers are 1. The driver gk20a binds to this device. It
 * also binds to each device whose driver_override is gk20a.
 */
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/mod_devicetable.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/pm_runtime.h>
#include <linux/proc_fs.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/version.h>
#include <linux/vmalloc.h>

#define BAR_SIZE	(16u << 20)
#define NO_SUCH_ADDRESS	0xbadf5040
#define MAX_REGS	65536

static char *name;
module_param(name, charp, 0444);
static unsigned long base;
module_param(base, ulong, 0444);
static bool stubborn;
module_param(stubborn, bool, 0644);
static bool off;
module_param(off, bool, 0644);
static unsigned int suspends;
module_param(suspends, uint, 0444);

static struct platform_device *device;
static void __iomem *bar;
static struct { u32 offset, value; } *regs;
static unsigned int nr_regs;
static bool powered = true;

/* ------------------------------------------------------------- registers */

static void power(bool on)
{
	unsigned int i;

	for (i = 0; i < nr_regs; i++)
		writel(on ? regs[i].value : 0xffffffff, bar + regs[i].offset);
	powered = on;
}

static void forget_regs(void)
{
	while (nr_regs)
		writel(NO_SUCH_ADDRESS, bar + regs[--nr_regs].offset);
}

/* One write replaces the registers of all earlier writes. */
static ssize_t regs_write(struct file *file, const char __user *from, size_t len, loff_t *pos)
{
	char *text = kvmalloc(len + 1, GFP_KERNEL), *line, *rest;

	if (!text)
		return -ENOMEM;
	if (copy_from_user(text, from, len)) {
		kvfree(text);
		return -EFAULT;
	}
	text[len] = 0;
	forget_regs();
	rest = text;
	while ((line = strsep(&rest, "\n"))) {
		u32 offset, value;

		if (sscanf(line, "%x %x", &offset, &value) != 2 || offset >= BAR_SIZE ||
		    nr_regs == MAX_REGS)
			continue;
		regs[nr_regs].offset = offset;
		regs[nr_regs++].value = value;
	}
	power(powered);
	kvfree(text);
	return len;
}

/* Returns the number of registers that no longer have the written value. */
static ssize_t regs_read(struct file *file, char __user *to, size_t len, loff_t *pos)
{
	unsigned int i, other = 0;
	char text[16];

	for (i = 0; i < nr_regs; i++)
		other += readl(bar + regs[i].offset) != (powered ? regs[i].value : 0xffffffff);
	return simple_read_from_buffer(to, len, pos, text, sprintf(text, "%u\n", other));
}

static const struct proc_ops regs_ops = { .proc_read = regs_read, .proc_write = regs_write };

/* ---------------------------------------------------------------- driver */

static int tegra_suspend(struct device *dev)
{
	suspends++;
	power(false);
	return 0;
}

static int tegra_resume(struct device *dev)
{
	if (stubborn)
		return -EBUSY;
	power(true);
	return 0;
}

static int tegra_probe(struct platform_device *pdev)
{
	power(!off);
	if (off)
		return 0;
	pm_runtime_set_active(&pdev->dev);
	pm_runtime_enable(&pdev->dev);
	pm_runtime_idle(&pdev->dev);
	return 0;
}

static void unpower(struct platform_device *pdev)
{
	if (pm_runtime_enabled(&pdev->dev)) {
		pm_runtime_disable(&pdev->dev);
		pm_runtime_set_suspended(&pdev->dev);
	}
	power(false);
}

/* Linux 6.11 changed the return type of this function. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 11, 0)
static int tegra_remove(struct platform_device *pdev)
{
	unpower(pdev);
	return 0;
}
#else
static void tegra_remove(struct platform_device *pdev)
{
	unpower(pdev);
}
#endif

static const struct dev_pm_ops tegra_pm = {
	SET_RUNTIME_PM_OPS(tegra_suspend, tegra_resume, NULL)
};

static const struct platform_device_id tegra_ids[] = {
	{ .name = "17000000.gpu" },
	{ }
};

static struct platform_driver tegra_driver = {
	.id_table = tegra_ids,
	.probe = tegra_probe,
	.remove = tegra_remove,
	.driver = { .name = "gk20a", .pm = &tegra_pm },
};

/* ---------------------------------------------------------------- device */

static int make_device(void)
{
	struct resource window = {
		.start = base, .end = base + BAR_SIZE - 1, .flags = IORESOURCE_MEM,
	};

	if (!name)
		return 0;
	device = platform_device_alloc(name, PLATFORM_DEVID_NONE);
	if (!device)
		return -ENOMEM;
	if (platform_device_add_resources(device, &window, 1) || platform_device_add(device)) {
		platform_device_put(device);
		return -EBUSY;
	}
	return 0;
}

static int __init tegra_init(void)
{
	unsigned int i;
	int err = -ENOMEM;

	bar = ioremap(base, BAR_SIZE);
	regs = vzalloc(MAX_REGS * sizeof(*regs));
	if (!bar || !regs)
		goto free;
	for (i = 0; i < BAR_SIZE; i += 4)
		writel(NO_SUCH_ADDRESS, bar + i);
	if (!proc_create("tegra_regs", 0600, NULL, &regs_ops))
		goto free;
	err = make_device();
	if (err)
		goto proc;
	err = platform_driver_register(&tegra_driver);
	if (!err)
		return 0;
	if (device)
		platform_device_unregister(device);
proc:
	remove_proc_entry("tegra_regs", NULL);
free:
	vfree(regs);
	if (bar)
		iounmap(bar);
	return err;
}

static void __exit tegra_exit(void)
{
	platform_driver_unregister(&tegra_driver);
	if (device)
		platform_device_unregister(device);
	remove_proc_entry("tegra_regs", NULL);
	vfree(regs);
	iounmap(bar);
}

module_init(tegra_init);
module_exit(tegra_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("an integrated GPU over memory, and its driver");
