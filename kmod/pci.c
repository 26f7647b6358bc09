// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The PCI provider. It finds NVIDIA display devices, maps BAR0 for reads, and follows hot-plug. A
 * device belongs to its driver. So this file takes references to a device. It never binds or
 * enables a device, requests a region or writes to a device.
 */
#include <linux/io.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/pci.h>
#include <linux/pm_runtime.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include "device.h"
#include "regs.h"

struct pci_gpu {
	struct list_head node;
	struct pci_dev *pdev;
	void __iomem *bar0;	/* NULL until the first read */
	resource_size_t start;	/* address at which BAR0 was mapped */
	unsigned long len;	/* number of bytes that are mapped */
	bool holds_power, holds_config;
	struct gpu *gpu;
};

static LIST_HEAD(pci_gpus);
static DEFINE_MUTEX(pci_gpus_lock);	/* taken before gpu->lock; never held during a wake-up */

/* ---------------------------------------------------------- for device.c */

static int pci_gpu_map(struct pci_gpu *p, unsigned long len)
{
	struct resource *bar = &p->pdev->resource[0];

	if (p->bar0 && p->start == bar->start && p->len >= len)
		return 0;
	if (p->bar0)
		iounmap(p->bar0);
	p->bar0 = NULL;
	if (!(bar->flags & IORESOURCE_MEM) || bar->flags & IORESOURCE_UNSET || !bar->start ||
	    resource_size(bar) < len)
		return -ENXIO;
	p->start = bar->start;
	p->len = len;
	p->bar0 = ioremap(bar->start, len);
	return p->bar0 ? 0 : -ENOMEM;
}

static void pci_gpu_end(void *private)
{
	struct pci_gpu *p = private;

	if (p->holds_config)
		pci_cfg_access_unlock(p->pdev);
	p->holds_config = false;
	if (p->holds_power)
		pm_runtime_put(&p->pdev->dev);
	p->holds_power = false;
}

/*
 * Returns whether the device's driver can give the device to a virtual machine. The virtual machine
 * can change the power state and the decoding of the device at any time. Called under gpu->lock.
 * When a driver is unbound, gp_gpu_forget() waits for this lock. So the driver is not unloaded
 * while the lock is held.
 */
static bool is_reserved(struct pci_dev *pdev)
{
	static const char *const names[] = { "vfio-pci", "pciback", "xen-pciback", "pci-stub" };
	struct device_driver *driver = pdev->dev.driver;
	unsigned int i;

	for (i = 0; driver && i < ARRAY_SIZE(names); i++)
		if (!strcmp(driver->name, names[i]))
			return true;
	return driver && compat_managed_dma(driver);
}

/*
 * Checks the state of the GPU, and locks config space. The lock is held until the last read. A
 * reset waits for the lock for a few microseconds. User space or a guest can turn off the GPU's
 * registers by a config write. Such a write also waits.
 */
static int lock_awake(struct pci_gpu *p, unsigned long len)
{
	struct pci_dev *pdev = p->pdev;
	u16 word;

	/* The power state of a device without a driver is PCI_UNKNOWN. */
	if (pdev->current_state != PCI_D0 && pdev->current_state != PCI_UNKNOWN)
		return -EHOSTDOWN;
	if (pci_channel_offline(pdev) || !pci_cfg_access_trylock(pdev))
		return -EBUSY;
	p->holds_config = true;
	/*
	 * A driver may have bound the device since the last check. While this lock is held, a guest
	 * cannot use the device.
	 */
	if (is_reserved(pdev))
		return -EPERM;
	if (pci_read_config_word(pdev, PCI_COMMAND, &word) || word == 0xffff)
		return -ENODEV;
	if (!(word & PCI_COMMAND_MEMORY))
		return -ENXIO;
	if (pdev->pm_cap &&
	    (pci_read_config_word(pdev, pdev->pm_cap + PCI_PM_CTRL, &word) ||
	     word & PCI_PM_CTRL_STATE_MASK))
		return -EHOSTDOWN;
	return pci_gpu_map(p, len);
}

static int pci_gpu_begin(void *private, bool whole)
{
	struct pci_gpu *p = private;
	int err;

	if (is_reserved(p->pdev))
		return -EPERM;
	err = compat_get_if_active(&p->pdev->dev);
	if (!err)
		return -EAGAIN;
	p->holds_power = err > 0;
	/* -EINVAL: runtime PM is disabled for the device, so the device is awake. */
	if (err < 0 && err != -EINVAL)
		err = -EHOSTDOWN;
	else
		err = lock_awake(p, whole ? NV_BAR0_SIZE : NV_BAR0_USED);
	if (err)
		pci_gpu_end(p);
	return err;
}

static u32 pci_gpu_rd32(void *private, u32 offset)
{
	struct pci_gpu *p = private;

	return readl(p->bar0 + offset);
}

static void pci_gpu_describe(void *private, struct text *text)
{
	struct pci_gpu *p = private;
	struct pci_dev *pdev = p->pdev;

	gp_text_add(text, "address     %s\n", pci_name(pdev));
	gp_text_add(text, "id          %04x:%04x\n", pdev->vendor, pdev->device);
	gp_text_add(text, "subsystem   %04x:%04x\n", pdev->subsystem_vendor,
		    pdev->subsystem_device);
	gp_text_add(text, "class       %06x\n", pdev->class);
	gp_text_add(text, "revision    %02x\n", pdev->revision);
	gp_text_add(text, "bar0        0x%llx %llu\n",
		    (unsigned long long)pci_resource_start(pdev, 0),
		    (unsigned long long)pci_resource_len(pdev, 0));
	gp_text_add(text, "numa-node   %d\n", dev_to_node(&pdev->dev));
	gp_text_add(text, "driver      %s\n",
		    pdev->dev.driver ? dev_driver_string(&pdev->dev) : "none");
	gp_text_add(text, "power       %s\n", pm_runtime_suspended(&pdev->dev) ? "asleep" :
		    pci_power_name(pdev->current_state));
}

static void pci_gpu_release(void *private)
{
	struct pci_gpu *p = private;

	if (p->bar0)
		iounmap(p->bar0);
	pci_dev_put(p->pdev);
	kfree(p);
}

static const struct gpu_ops pci_gpu_ops = {
	.bus = "pci",
	.begin = pci_gpu_begin,
	.rd32 = pci_gpu_rd32,
	.end = pci_gpu_end,
	.describe = pci_gpu_describe,
	.release = pci_gpu_release,
};

/* ---------------------------------------------------------------- hot-plug */

/* BAR0 of a virtual function does not have the layout of a GPU's BAR0. */
static bool is_gpu(struct pci_dev *pdev)
{
	return pdev->vendor == PCI_VENDOR_ID_NVIDIA &&
	       pdev->class >> 16 == PCI_BASE_CLASS_DISPLAY && !pdev->is_virtfn;
}

static struct pci_gpu *find_known(struct pci_dev *pdev)
{
	struct pci_gpu *p;

	list_for_each_entry(p, &pci_gpus, node)
		if (p->pdev == pdev)
			return p;
	return NULL;
}

/* Returns false if there is no memory. The next scan then tries again. */
static bool add_one(struct pci_dev *pdev)
{
	struct pci_gpu *p = kzalloc(sizeof(*p), GFP_KERNEL);
	struct gpu *gpu;

	if (!p)
		return false;
	p->pdev = pci_dev_get(pdev);
	gpu = gp_gpu_add(&pci_gpu_ops, p, &pdev->dev);
	if (IS_ERR(gpu))
		return false;
	p->gpu = gpu;
	list_add_tail(&p->node, &pci_gpus);
	return true;
}

/*
 * Removes the GPU of @pdev from the list. The caller calls gp_gpu_remove() later, without the lock,
 * because gp_gpu_remove() may wait for the end of a wake-up.
 */
static struct gpu *unlist(struct pci_dev *pdev)
{
	struct pci_gpu *p;
	struct gpu *gpu = NULL;

	mutex_lock(&pci_gpus_lock);
	p = pdev ? find_known(pdev) : list_first_entry_or_null(&pci_gpus, struct pci_gpu, node);
	if (p) {
		list_del(&p->node);
		gpu = p->gpu;
	}
	mutex_unlock(&pci_gpus_lock);
	return gpu;
}

/* Compares devices by domain, bus and device. The order is the same as in lspci. */
static bool comes_before(struct pci_dev *a, struct pci_dev *b)
{
	if (pci_domain_nr(a->bus) != pci_domain_nr(b->bus))
		return pci_domain_nr(a->bus) < pci_domain_nr(b->bus);
	return pci_dev_id(a) < pci_dev_id(b);
}

/*
 * Finds the GPU with the lowest address that is not in the list. Takes a reference to this GPU and
 * returns the GPU. If all GPUs are in the list, returns NULL. The kernel's own list has another
 * order: a device that was plugged in later is at the end.
 */
static struct pci_dev *first_unknown(void)
{
	struct pci_dev *pdev = NULL, *first = NULL;

	for_each_pci_dev(pdev) {
		if (!is_gpu(pdev) || find_known(pdev) || (first && !comes_before(pdev, first)))
			continue;
		pci_dev_put(first);
		first = pci_dev_get(pdev);
	}
	return first;
}

/*
 * A new GPU may not be ready at once. The known refusals of this GPU are now too old, so its
 * registers are read again.
 */
static void read_again(struct work_struct *work)
{
	gp_gpu_read_again(&pci_gpu_ops);
}

static DECLARE_DELAYED_WORK(again_work, read_again);

/*
 * Adds all GPUs that are not in the list, and then reads these GPUs. If a GPU is removed during
 * this time, BUS_NOTIFY_REMOVED_DEVICE arrives after the GPU was added to the list.
 */
static void scan(struct work_struct *work)
{
	struct pci_dev *pdev;
	bool added = true;

	mutex_lock(&pci_gpus_lock);
	while (added && (pdev = first_unknown())) {
		added = add_one(pdev);
		pci_dev_put(pdev);
	}
	mutex_unlock(&pci_gpus_lock);
	gp_gpu_start_new(&pci_gpu_ops);
	mod_delayed_work(system_freezable_wq, &again_work, msecs_to_jiffies(1500));
}

static DECLARE_DELAYED_WORK(scan_work, scan);

static int on_bus_event(struct notifier_block *block, unsigned long event, void *data)
{
	struct pci_dev *pdev = to_pci_dev(data);
	struct pci_gpu *p;
	struct gpu *gpu;

	if (!is_gpu(pdev))
		return NOTIFY_DONE;
	switch (event) {
	case BUS_NOTIFY_ADD_DEVICE:
		/* After this notice, the BARs of the device get their addresses. */
		queue_delayed_work(system_freezable_wq, &scan_work, msecs_to_jiffies(100));
		break;
	case BUS_NOTIFY_DEL_DEVICE:
	case BUS_NOTIFY_REMOVED_DEVICE:
		gpu = unlist(pdev);
		if (gpu)
			gp_gpu_remove(gpu);
		break;
	case BUS_NOTIFY_BOUND_DRIVER:
	case BUS_NOTIFY_UNBOUND_DRIVER:
		/* The new driver of the GPU may change the GPU's tables. */
		mutex_lock(&pci_gpus_lock);
		p = find_known(pdev);
		if (p)
			gp_gpu_forget(p->gpu);
		mutex_unlock(&pci_gpus_lock);
		break;
	}
	return NOTIFY_DONE;
}

static struct notifier_block bus_events = { .notifier_call = on_bus_event };

int gp_pci_gpus_init(void)
{
	int err = bus_register_notifier(&pci_bus_type, &bus_events);

	if (err)
		return err;
	scan(NULL);
	return 0;
}

void gp_pci_gpus_fini(void)
{
	struct gpu *gpu;

	bus_unregister_notifier(&pci_bus_type, &bus_events);
	cancel_delayed_work_sync(&scan_work);
	cancel_delayed_work_sync(&again_work);
	while ((gpu = unlist(NULL)))
		gp_gpu_remove(gpu);
}
