// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The provider of integrated GPUs (Tegra). These GPUs are platform devices. The provider finds the
 * GPUs, maps their registers for reads, and follows their drivers. It was never tried on hardware.
 * A device belongs to its driver. So this file takes references to a device. It never binds or
 * enables a device, requests a region or writes to a device.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/device.h>
#include <linux/io.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/of.h>
#include <linux/platform_device.h>
#include <linux/pm_runtime.h>
#include <linux/slab.h>
#include "device.h"
#include "regs.h"

struct platform_gpu {
	struct list_head node;
	struct platform_device *pdev;
	const struct resource *regs;	/* the first memory window is BAR0 */
	void __iomem *bar0;		/* NULL until the first read */
	/*
	 * True if a driver is bound to the device. Without a driver, the power rail may be off. A
	 * read would then stop the machine. Protected by gpu->lock.
	 */
	bool bound;
	bool holds_power;
	struct gpu *gpu;
};

/*
 * Sources: Linux Documentation/devicetree/bindings/gpu/nvidia,gk20a; for ga10b and tegraN, nvgpu's
 * table. GK20A is left out, because its machine has 32 bits.
 */
static const struct of_device_id compatibles[] __maybe_unused = {
	{ .compatible = "nvidia,gm20b" },
	{ .compatible = "nvidia,tegra210-gm20b" },
	{ .compatible = "nvidia,gp10b" },
	{ .compatible = "nvidia,tegra186-gp10b" },
	{ .compatible = "nvidia,gv11b" },
	{ .compatible = "nvidia,ga10b" },
	{ }
};

/* Names of devices without a device tree node. The names in nvdebug are the same. */
static const char *const names[] = {
	"17000000.gpu", "17000000.ga10b", "17000000.gv11b", "17000000.gp10b", "57000000.gpu",
};

static LIST_HEAD(platform_gpus);
/* Taken after the lock of a device and before gpu->lock. Never held during a wake-up. */
static DEFINE_MUTEX(platform_gpus_lock);

/* ---------------------------------------------------------- for device.c */

static int platform_gpu_map(struct platform_gpu *p)
{
	if (p->bar0)
		return 0;
	if (!p->regs || resource_size(p->regs) < NV_BAR0_USED)
		return -ENXIO;
	p->bar0 = ioremap(p->regs->start, NV_BAR0_USED);
	return p->bar0 ? 0 : -ENOMEM;
}

static void platform_gpu_end(void *private)
{
	struct platform_gpu *p = private;

	if (p->holds_power)
		pm_runtime_put(&p->pdev->dev);
	p->holds_power = false;
}

static int platform_gpu_begin(void *private, bool whole)
{
	struct platform_gpu *p = private;
	int err;

	if (whole)
		return -EOPNOTSUPP;
	if (!p->bound)
		return -EHOSTDOWN;
	err = compat_get_if_active(&p->pdev->dev);
	if (!err)
		return -EAGAIN;
	p->holds_power = err > 0;
	/* While runtime PM is disabled, the power rail may be off. */
	err = err < 0 ? -EHOSTDOWN : platform_gpu_map(p);
	if (err)
		platform_gpu_end(p);
	return err;
}

static u32 platform_gpu_rd32(void *private, u32 offset)
{
	struct platform_gpu *p = private;

	return readl(p->bar0 + offset);
}

static const char *power(const struct platform_gpu *p)
{
	if (!p->bound)
		return "unknown without a driver: it is not read";
	return pm_runtime_suspended(&p->pdev->dev) ? "asleep" : "awake";
}

static void platform_gpu_describe(void *private, struct text *text)
{
	struct platform_gpu *p = private;
	struct device *dev = &p->pdev->dev;
	const char *compatible;

	gp_text_add(text, "address     %s\n", dev_name(dev));
	if (!of_property_read_string(dev->of_node, "compatible", &compatible))
		gp_text_add(text, "compatible  %s\n", compatible);
	if (p->regs)
		gp_text_add(text, "bar0        0x%llx %llu\n", (unsigned long long)p->regs->start,
			    (unsigned long long)resource_size(p->regs));
	gp_text_add(text, "numa-node   %d\n", dev_to_node(dev));
	gp_text_add(text, "driver      %s\n", p->bound ? dev_driver_string(dev) : "none");
	gp_text_add(text, "power       %s\n", power(p));
	gp_text_add(text, "evidence    tested on an emulated machine, never on hardware\n");
}

static void platform_gpu_release(void *private)
{
	struct platform_gpu *p = private;

	if (p->bar0)
		iounmap(p->bar0);
	put_device(&p->pdev->dev);
	kfree(p);
}

static const struct gpu_ops platform_gpu_ops = {
	.bus = "platform",
	.begin = platform_gpu_begin,
	.rd32 = platform_gpu_rd32,
	.end = platform_gpu_end,
	.describe = platform_gpu_describe,
	.release = platform_gpu_release,
};

/* ---------------------------------------------------------------- hot-plug */

static bool is_gpu(struct device *dev)
{
	unsigned int i;

	if (dev->of_node)
		return of_match_node(compatibles, dev->of_node);
	for (i = 0; i < ARRAY_SIZE(names); i++)
		if (!strcmp(dev_name(dev), names[i]))
			return true;
	return false;
}

static struct platform_gpu *find_known(struct device *dev)
{
	struct platform_gpu *p;

	list_for_each_entry(p, &platform_gpus, node)
		if (&p->pdev->dev == dev)
			return p;
	return NULL;
}

/* Called with the device's lock held, so that the device's driver does not change. */
static void add_locked(struct device *dev)
{
	struct platform_gpu *p = kzalloc(sizeof(*p), GFP_KERNEL);
	struct gpu *gpu;

	if (!p)
		return;
	get_device(dev);
	p->pdev = to_platform_device(dev);
	p->regs = platform_get_resource(p->pdev, IORESOURCE_MEM, 0);
	p->bound = dev->driver;
	gpu = gp_gpu_add(&platform_gpu_ops, p, dev);
	if (IS_ERR(gpu))
		return;
	p->gpu = gpu;
	list_add_tail(&p->node, &platform_gpus);
	pr_info("%s is an integrated GPU: gpupart was never tried on such hardware\n",
		dev_name(dev));
}

static int add(struct device *dev, void *unused)
{
	if (!is_gpu(dev))
		return 0;
	device_lock(dev);
	mutex_lock(&platform_gpus_lock);
	if (!find_known(dev))
		add_locked(dev);
	mutex_unlock(&platform_gpus_lock);
	device_unlock(dev);
	gp_gpu_start_new(&platform_gpu_ops);
	return 0;
}

/* Waits until a read has ended. The new driver of the GPU may change the GPU's tables. */
static void set_bound(struct platform_gpu *p, bool bound)
{
	mutex_lock(&p->gpu->lock);
	p->bound = bound;
	mutex_unlock(&p->gpu->lock);
	gp_gpu_forget(p->gpu);
}

static void follow(unsigned long event, struct device *dev)
{
	bool removed = event == BUS_NOTIFY_DEL_DEVICE || event == BUS_NOTIFY_REMOVED_DEVICE;
	struct platform_gpu *p;
	struct gpu *gpu = NULL;

	mutex_lock(&platform_gpus_lock);
	p = find_known(dev);
	if (p && removed) {
		list_del(&p->node);
		gpu = p->gpu;
	} else if (p) {
		set_bound(p, event == BUS_NOTIFY_BOUND_DRIVER);
	}
	mutex_unlock(&platform_gpus_lock);
	/* Call gp_gpu_remove() without the lock, because it may wait for the end of a wake-up. */
	if (gpu)
		gp_gpu_remove(gpu);
}

static int on_bus_event(struct notifier_block *block, unsigned long event, void *data)
{
	struct device *dev = data;

	switch (event) {
	case BUS_NOTIFY_ADD_DEVICE:
		add(dev, NULL);
		break;
	case BUS_NOTIFY_DEL_DEVICE:
	case BUS_NOTIFY_REMOVED_DEVICE:
	case BUS_NOTIFY_BOUND_DRIVER:
	case BUS_NOTIFY_UNBIND_DRIVER:
		if (is_gpu(dev))
			follow(event, dev);
		break;
	}
	return NOTIFY_DONE;
}

static struct notifier_block bus_events = { .notifier_call = on_bus_event };

int gp_platform_gpus_init(void)
{
	int err = bus_register_notifier(&platform_bus_type, &bus_events);

	if (err)
		return err;
	bus_for_each_dev(&platform_bus_type, NULL, NULL, add);
	return 0;
}

void gp_platform_gpus_fini(void)
{
	struct platform_gpu *p, *next;

	bus_unregister_notifier(&platform_bus_type, &bus_events);
	/* Nothing else uses the list now, so no lock is needed. */
	list_for_each_entry_safe(p, next, &platform_gpus, node) {
		list_del(&p->node);
		gp_gpu_remove(p->gpu);
	}
}
