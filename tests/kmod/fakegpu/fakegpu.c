// SPDX-License-Identifier: MIT
/*
 * Emulates PCI GPUs for two kinds of guests: guests without x-pci-proxy-dev (QEMU's virt
 * machine), and guests that cannot use x-pci-proxy-dev (several processors). Each GPU has a host
 * bridge. This module answers accesses to config space. BAR0 is in memory that the kernel does
 * not use (base=). /proc/fakegpu accepts the same lines as tests/kmod/vm on x86. A read of the
 * file returns the answer to each line. A probe on pci_gpu_rd32() of the tested module counts the
 * reads of registers. At the start, the integrated GPU of the device tree has no device. The line
 * "node" creates this GPU's device, and the line "nonode" removes the device. This module is only
 * for the guest.
 */
#include <linux/delay.h>
#include <linux/io.h>
#include <linux/kprobes.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/of.h>
#include <linux/of_platform.h>
#include <linux/pci.h>
#include <linux/platform_device.h>
#include <linux/proc_fs.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#define NR_GPUS		8
#define BAR_SIZE	(16u << 20)
#define NO_SUCH_ADDRESS	0xbadf5040
#define MAX_REGS	65536

static unsigned long base;
module_param(base, ulong, 0444);

struct reg {
	u32 offset, value;
};

struct fake {
	struct pci_host_bridge *bridge;
	struct resource buses, window;
	u8 config[256];
	bool present, dead;
	void __iomem *bar;
	struct reg *regs;
	unsigned int nr_regs;
	struct reg bad;
	bool has_bad;
	unsigned long nr_reads, nr_slept, nr_resets;
	unsigned int nr_silent;		/* number of reads of config space that get no answer */
	unsigned long *asked;		/* a bit for each word */
};

static struct fake fakes[NR_GPUS];
static char answer[65536];
static DEFINE_MUTEX(lock);

/* ------------------------------------------------------------- registers */

static bool asleep(const struct fake *f)
{
	return f->config[0x64] & 3 || !(f->config[0x04] & PCI_COMMAND_MEMORY);
}

static bool silent(const struct fake *f)
{
	return f->dead || asleep(f);
}

static u32 shown(const struct fake *f, const struct reg *reg)
{
	if (silent(f))
		return 0xffffffff;
	return f->has_bad && f->bad.offset == reg->offset ? f->bad.value : reg->value;
}

static void show(struct fake *f)
{
	unsigned int i;

	if (f->has_bad)
		writel(shown(f, &f->bad), f->bar + f->bad.offset);
	for (i = 0; i < f->nr_regs; i++)
		writel(shown(f, &f->regs[i]), f->bar + f->regs[i].offset);
}

static void good(struct fake *f)
{
	if (f->has_bad)
		writel(NO_SUCH_ADDRESS, f->bar + f->bad.offset);
	f->has_bad = false;
	show(f);
}

static void put(struct fake *f, u32 offset, u32 value)
{
	unsigned int i;

	for (i = 0; i < f->nr_regs && f->regs[i].offset != offset; i++)
		;
	if (i == MAX_REGS || offset >= BAR_SIZE)
		return;
	f->nr_regs += i == f->nr_regs;
	f->regs[i].offset = offset;
	f->regs[i].value = value;
}

static void poke(struct fake *f, char *words, u32 offset)
{
	char *word;
	u32 value;
	int i;

	for (i = 0; i < 3; i++)
		strsep(&words, " ");
	for (; (word = strsep(&words, " ")) && !kstrtou32(word, 0, &value); offset += 4)
		put(f, offset, value);
	show(f);
}

static void load(struct fake *f, char *rest)
{
	char *line;
	u32 offset, value;

	while (f->nr_regs)
		writel(NO_SUCH_ADDRESS, f->bar + f->regs[--f->nr_regs].offset);
	while ((line = strsep(&rest, "\n")))
		if (sscanf(line, "%x %x", &offset, &value) == 2)
			put(f, offset, value);
	show(f);
}

static unsigned int nr_written(void)
{
	unsigned int n, i, nr = 0;

	for (n = 0; n < NR_GPUS; n++)
		for (i = 0; i < fakes[n].nr_regs; i++)
			nr += readl(fakes[n].bar + fakes[n].regs[i].offset) !=
			      shown(&fakes[n], &fakes[n].regs[i]);
	return nr;
}

/* ---------------------------------------------------------------- counts */

/* The private data begins with a list node, and the device follows (kmod/pci.c). */
struct under_test {
	struct list_head node;
	struct pci_dev *pdev;
};

static int on_read(struct kprobe *probe, struct pt_regs *regs)
{
	const struct under_test *private = (const void *)regs_get_kernel_argument(regs, 0);
	u32 offset = regs_get_kernel_argument(regs, 1);
	struct fake *f = &fakes[(private->pdev->bus->number - 1) % NR_GPUS];

	f->nr_reads++;
	f->nr_slept += asleep(f);
	if (offset < BAR_SIZE)
		set_bit(offset / 4, f->asked);
	return 0;
}

static struct kprobe probe;
static bool probed;

/*
 * Delays the creation of a GPU's folder. So other processes can request the GPU before the folder
 * exists.
 */
static int on_mkdir(struct kprobe *probe, struct pt_regs *regs)
{
	const char *name = (const void *)regs_get_kernel_argument(regs, 0);

	if (!strncmp(name, "gpu", 3))
		mdelay(20);
	return 0;
}

static struct kprobe mkdirs = { .symbol_name = "proc_mkdir", .pre_handler = on_mkdir };

/* The tested module is loaded many times. Each unload of the module ends the probe. */
static int on_module(struct notifier_block *block, unsigned long event, void *data)
{
	struct module *module = data;

	if (strcmp(module->name, "gpupart"))
		return NOTIFY_DONE;
	if (event == MODULE_STATE_COMING) {
		probe = (struct kprobe){
			.symbol_name = "gpupart:pci_gpu_rd32", .pre_handler = on_read,
		};
		probed = !register_kprobe(&probe);
		if (!probed)
			pr_err("fakegpu: WARNING: no probe, so no read is counted\n");
	} else if (event == MODULE_STATE_GOING && probed) {
		unregister_kprobe(&probe);
		probed = false;
	}
	return NOTIFY_DONE;
}

static struct notifier_block modules = { .notifier_call = on_module };

static void tell_asked(struct fake *f)
{
	size_t len = 0;
	unsigned long bit;

	for_each_set_bit(bit, f->asked, BAR_SIZE / 4)
		len += scnprintf(answer + len, sizeof(answer) - len, "%s%#lx", len ? " " : "",
				 4 * bit);
	if (!len)
		strscpy(answer, "none", sizeof(answer));
	bitmap_zero(f->asked, BAR_SIZE / 4);
}

/* ---------------------------------------------------------- config space */

static void reset(struct fake *f)
{
	static const u8 head[] = {
		0xde, 0x10, 0x35, 0x23, 0, 0, 0x10, 0,	/* 10de:2335, capabilities */
		0xa1, 0x00, 0x02, 0x03,			/* 3D controller */
	};

	memset(f->config, 0, sizeof(f->config));
	memcpy(f->config, head, sizeof(head));
	memcpy(f->config + 0x2c, "\xde\x10\xbe\x18", 4);
	f->config[0x34] = 0x60;
	memcpy(f->config + 0x60, "\x01\x68\x03\x00", 4);	/* power management */
	memcpy(f->config + 0x68, "\x13\x00\x06\x03", 4);	/* function level reset */
}

static struct fake *fake_at(struct pci_bus *bus, unsigned int devfn)
{
	struct fake *f = &fakes[(bus->number - 1) % NR_GPUS];

	return devfn || !f->present ? NULL : f;
}

static int config_read(struct pci_bus *bus, unsigned int devfn, int at, int size, u32 *value)
{
	struct fake *f = fake_at(bus, devfn);
	int i;

	*value = ~0u >> (32 - 8 * size);
	if (!f)
		return PCIBIOS_DEVICE_NOT_FOUND;
	f->nr_silent -= f->nr_silent > 0;
	if (f->dead || f->nr_silent || at + size > sizeof(f->config))
		return PCIBIOS_SUCCESSFUL;
	for (*value = 0, i = 0; i < size; i++)
		*value |= f->config[at + i] << 8 * i;
	return PCIBIOS_SUCCESSFUL;
}

static int config_write(struct pci_bus *bus, unsigned int devfn, int at, int size, u32 value)
{
	struct fake *f = fake_at(bus, devfn);
	int i;

	if (!f)
		return PCIBIOS_DEVICE_NOT_FOUND;
	for (i = 0; i < size; i++) {
		u8 byte = value >> 8 * i;

		switch (at + i) {
		case 0x04:
			f->config[0x04] = byte & 7;
			show(f);
			break;
		case 0x05:
			f->config[0x05] = byte & 4;
			break;
		case 0x13:	/* The size is 16 MiB, so a write sets only the top byte of BAR0. */
		case 0x3c:
			f->config[at + i] = byte;
			break;
		case 0x64:
			f->config[0x64] = byte & 3;
			show(f);
			break;
		case 0x6c:
			if (!(byte & 1))
				break;
			/* A reset takes some time, so two reads of config space get no answer. */
			reset(f);
			show(f);
			f->nr_resets++;
			f->nr_silent = 3;
			break;
		}
	}
	return PCIBIOS_SUCCESSFUL;
}

static struct pci_ops config_ops = { .read = config_read, .write = config_write };

/* ----------------------------------------------------------- device tree */

static void node_device(bool there)
{
	struct device_node *node = of_find_compatible_node(NULL, NULL, "nvidia,ga10b");
	struct platform_device *pdev = node ? of_find_device_by_node(node) : NULL;

	if (there && node && !pdev)
		of_platform_device_create(node, NULL, NULL);
	if (!there && pdev)
		of_platform_device_destroy(&pdev->dev, NULL);
	if (pdev)
		put_device(&pdev->dev);
	of_node_put(node);
}

/* -------------------------------------------------------------- commands */

static void unplug(struct fake *f)
{
	struct pci_dev *pdev;

	pci_lock_rescan_remove();
	pdev = pci_get_slot(f->bridge->bus, 0);
	if (pdev)
		pci_stop_and_remove_bus_device(pdev);
	pci_dev_put(pdev);
	f->present = false;
	pci_unlock_rescan_remove();
}

static void plug(struct fake *f)
{
	reset(f);
	f->present = true;
	show(f);
	pci_lock_rescan_remove();
	pci_rescan_bus(f->bridge->bus);
	pci_unlock_rescan_remove();
}

static void command(char *text)
{
	char *rest = text, *line = strsep(&rest, "\n"), word[16];
	unsigned int n = 0, at, value;
	int nr = sscanf(line, "%15s %u %x %x", word, &n, &at, &value);
	struct fake *f = &fakes[n % NR_GPUS];

	strscpy(answer, "ok", sizeof(answer));
	if (nr < 1) {
		strscpy(answer, "what?", sizeof(answer));
	} else if (!strcmp(word, "load")) {
		load(f, rest);
	} else if (!strcmp(word, "poke") && nr == 4) {
		poke(f, line, at);
	} else if (!strcmp(word, "bad") && nr == 4 && at < BAR_SIZE) {
		good(f);
		f->bad = (struct reg){ at, value };
		f->has_bad = true;
		show(f);
	} else if (!strcmp(word, "good")) {
		good(f);
	} else if (!strcmp(word, "dead") || !strcmp(word, "alive")) {
		f->dead = word[0] == 'd';
		show(f);
	} else if (!strcmp(word, "reads")) {
		snprintf(answer, sizeof(answer), "%lu", xchg(&f->nr_reads, 0));
	} else if (!strcmp(word, "slept")) {
		snprintf(answer, sizeof(answer), "%lu", f->nr_slept);
	} else if (!strcmp(word, "resets")) {
		snprintf(answer, sizeof(answer), "%lu", f->nr_resets);
	} else if (!strcmp(word, "asked")) {
		tell_asked(f);
	} else if (!strcmp(word, "writes")) {
		snprintf(answer, sizeof(answer), "%u", nr_written());
	} else if (!strcmp(word, "unplug")) {
		unplug(f);
	} else if (!strcmp(word, "plug")) {
		plug(f);
	} else if (!strcmp(word, "node") || !strcmp(word, "nonode")) {
		node_device(!strcmp(word, "node"));
	} else {
		strscpy(answer, "what?", sizeof(answer));
	}
}

static ssize_t fakegpu_write(struct file *file, const char __user *from, size_t len, loff_t *pos)
{
	char *text = kvmalloc(len + 1, GFP_KERNEL);

	if (!text)
		return -ENOMEM;
	if (copy_from_user(text, from, len)) {
		kvfree(text);
		return -EFAULT;
	}
	text[len] = 0;
	mutex_lock(&lock);
	command(text);
	mutex_unlock(&lock);
	kvfree(text);
	return len;
}

static ssize_t fakegpu_read(struct file *file, char __user *to, size_t len, loff_t *pos)
{
	return simple_read_from_buffer(to, len, pos, answer, strlen(answer));
}

static const struct proc_ops proc_ops = { .proc_read = fakegpu_read, .proc_write = fakegpu_write };

/* --------------------------------------------------------------- machine */

#ifdef CONFIG_X86
/* Use domain 0. The machine's own bus 0 also belongs to domain 0. */
static struct pci_sysdata sysdata = { .node = NUMA_NO_NODE };
#endif

static int make_bus(struct fake *f, unsigned int n)
{
	resource_size_t start = base + (resource_size_t)n * BAR_SIZE;
	int err;

	f->bridge = pci_alloc_host_bridge(0);
	if (!f->bridge)
		return -ENOMEM;
	f->buses = (struct resource){
		.name = "fakegpu bus", .start = n + 1, .end = n + 1, .flags = IORESOURCE_BUS,
	};
	f->window = (struct resource){
		.name = "fakegpu", .start = start, .end = start + BAR_SIZE - 1,
		.flags = IORESOURCE_MEM,
	};
	err = request_resource(&iomem_resource, &f->window);
	if (err)
		return err;
	pci_add_resource(&f->bridge->windows, &f->buses);
	pci_add_resource(&f->bridge->windows, &f->window);
	f->bridge->busnr = n + 1;
#ifdef CONFIG_X86
	f->bridge->sysdata = &sysdata;
#else
	f->bridge->domain_nr = 0;
#endif
	f->bridge->ops = &config_ops;
	err = pci_scan_root_bus_bridge(f->bridge);
	if (err)
		return err;
	pci_bus_size_bridges(f->bridge->bus);
	pci_bus_assign_resources(f->bridge->bus);
	/* Firmware leaves a device in this state. */
	f->config[0x04] |= PCI_COMMAND_MEMORY;
	show(f);
	pci_bus_add_devices(f->bridge->bus);
	return 0;
}

static int make(struct fake *f, unsigned int n)
{
	unsigned int at;

	f->bar = ioremap(base + (resource_size_t)n * BAR_SIZE, BAR_SIZE);
	f->regs = vzalloc(MAX_REGS * sizeof(*f->regs));
	f->asked = vzalloc(BAR_SIZE / 4 / 8);
	if (!f->bar || !f->regs || !f->asked)
		return -ENOMEM;
	for (at = 0; at < BAR_SIZE; at += 4)
		writel(NO_SUCH_ADDRESS, f->bar + at);
	reset(f);
	f->present = true;
	return make_bus(f, n);
}

static int __init fakegpu_init(void)
{
	unsigned int n;
	int err = 0;

	pci_lock_rescan_remove();
	for (n = 0; n < NR_GPUS && !err; n++)
		err = make(&fakes[n], n);
	pci_unlock_rescan_remove();
	if (err)
		return err;
	node_device(false);
	register_module_notifier(&modules);
	err = register_kprobe(&mkdirs);
	if (err)
		return err;
	return proc_create("fakegpu", 0600, NULL, &proc_ops) ? 0 : -ENOMEM;
}

/* The module stays loaded until the machine ends, so it has no exit function. */
module_init(fakegpu_init);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("PCI GPUs over memory");
