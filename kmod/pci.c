// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The PCI provider: finds NVIDIA display devices, maps BAR0 to read it, wakes what
 * sleeps, and follows hot-plug. Beside whatever driver owns the device: it takes
 * references, and never binds, enables, requests a region or writes.
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
	resource_size_t start;	/* where it was mapped */
	unsigned long len;	/* how much of it */
	bool holds_power, holds_config;
	bool again;		/* it could not be read when it came */
	struct gpu *gpu;
};

static LIST_HEAD(pci_gpus);
static DEFINE_MUTEX(pci_gpus_lock);	/* taken before a GPU's lock */

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

/* A driver that hands it to a virtual machine: from then on nothing is known of its state. */
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
 * From the look at its state to the last read config space is locked: a reset, and what user
 * space or a guest write to turn its registers off, wait for those microseconds.
 */
static int lock_awake(struct pci_gpu *p, unsigned long len)
{
	struct pci_dev *pdev = p->pdev;
	u16 word;

	/* Unknown is what a device without a driver has. */
	if (pdev->current_state != PCI_D0 && pdev->current_state != PCI_UNKNOWN)
		return -EHOSTDOWN;
	if (pci_channel_offline(pdev) || !pci_cfg_access_trylock(pdev))
		return -EBUSY;
	p->holds_config = true;
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

static int pci_gpu_begin(void *private, bool wake, bool whole)
{
	struct pci_gpu *p = private;
	struct pci_dev *pdev = p->pdev;
	int err;

	if (is_reserved(pdev))
		return -EPERM;
	/* -EACCES, -EINVAL: runtime PM is off for it, so it is as awake as it gets. */
	if (wake) {
		err = pm_runtime_get_sync(&pdev->dev);
		p->holds_power = true;
	} else {
		err = compat_get_if_active(&pdev->dev);
		if (!err)
			return -EAGAIN;
		p->holds_power = err > 0;
	}
	if (err < 0 && err != (wake ? -EACCES : -EINVAL))
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

/* A virtual function's BAR0 is not laid out as a GPU's. */
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

/* Not if there is no memory: then the next scan tries again. */
static bool add_one(struct pci_dev *pdev)
{
	struct pci_gpu *p = kzalloc(sizeof(*p), GFP_KERNEL);
	struct gpu *gpu;

	if (!p)
		return false;
	p->pdev = pci_dev_get(pdev);
	gpu = gp_gpu_add(&pci_gpu_ops, p, pci_name(pdev));
	if (IS_ERR(gpu))
		return false;
	p->gpu = gpu;
	p->again = !READ_ONCE(gpu->known);
	list_add_tail(&p->node, &pci_gpus);
	return true;
}

static void remove_one(struct pci_gpu *p)
{
	list_del(&p->node);
	gp_gpu_remove(p->gpu);
}

/* Domain, bus, device, function: the order that a user knows from lspci. */
static bool comes_before(struct pci_dev *a, struct pci_dev *b)
{
	if (pci_domain_nr(a->bus) != pci_domain_nr(b->bus))
		return pci_domain_nr(a->bus) < pci_domain_nr(b->bus);
	return pci_dev_id(a) < pci_dev_id(b);
}

/*
 * The first that is not known yet, with a reference, or NULL. The kernel's own list has
 * a device that was plugged in later at its end, whatever its address.
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

/* A GPU that has just come may not be ready: once more, after what it refused is forgotten. */
static void read_again(struct work_struct *work)
{
	struct pci_gpu *p;

	mutex_lock(&pci_gpus_lock);
	list_for_each_entry(p, &pci_gpus, node) {
		if (p->again)
			gp_gpu_read(p->gpu);
		p->again = false;
	}
	mutex_unlock(&pci_gpus_lock);
}

static DECLARE_DELAYED_WORK(again_work, read_again);

/*
 * All that are there and not known yet. A GPU that goes away meanwhile is either no
 * longer found, or its BUS_NOTIFY_REMOVED_DEVICE comes later and waits for the lock.
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
	mod_delayed_work(system_freezable_wq, &again_work, msecs_to_jiffies(1500));
}

static DECLARE_DELAYED_WORK(scan_work, scan);

static int on_bus_event(struct notifier_block *block, unsigned long event, void *data)
{
	struct pci_dev *pdev = to_pci_dev(data);
	struct pci_gpu *p;

	if (!is_gpu(pdev))
		return NOTIFY_DONE;
	switch (event) {
	case BUS_NOTIFY_ADD_DEVICE:
		/* Its BARs get their addresses after this. */
		queue_delayed_work(system_freezable_wq, &scan_work, msecs_to_jiffies(100));
		break;
	case BUS_NOTIFY_DEL_DEVICE:
	case BUS_NOTIFY_REMOVED_DEVICE:
		mutex_lock(&pci_gpus_lock);
		p = find_known(pdev);
		if (p)
			remove_one(p);
		mutex_unlock(&pci_gpus_lock);
		break;
	case BUS_NOTIFY_BOUND_DRIVER:
	case BUS_NOTIFY_UNBOUND_DRIVER:
		/* Who takes a GPU may load its tables anew. */
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
	struct pci_gpu *p, *next;

	bus_unregister_notifier(&pci_bus_type, &bus_events);
	cancel_delayed_work_sync(&scan_work);
	cancel_delayed_work_sync(&again_work);
	mutex_lock(&pci_gpus_lock);
	list_for_each_entry_safe(p, next, &pci_gpus, node)
		remove_one(p);
	mutex_unlock(&pci_gpus_lock);
}
