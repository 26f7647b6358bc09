// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * /proc/gpu and /proc/gpuN: pages for people and the files nvdebug's users read. All
 * 0444. Knows no bus; what is said is text.c's. A page is whole or an error, or it
 * ends with "complete no".
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/namei.h>
#include <linux/path.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include "device.h"
#include "regs.h"

#define PAGE_START	16384	/* most pages fit at once; seq_file doubles it where one does not */
#define MAX_REG_FILES	128

/* A file that is one register, or two OR'ed, or @bits of one from bit @shift on. */
struct reg_file {
	struct gpu *gpu;
	u32 at, at2;
	u32 guard;		/* where this one is refused the others would be too; 0 none */
	u8 shift, bits;		/* bits 0: all */
};

struct proc_gpu {
	struct proc_dir_entry *dir;
	unsigned int nr;
	struct reg_file files[MAX_REG_FILES];
};

static struct proc_dir_entry *gpu_dir;

/* ------------------------------------------------------------------- pages */

static void add_state(struct text *text, struct gpu *gpu, const struct topo_fault *fault)
{
	text_add(text, "gpu         %s %s\nunreadable  ", gpu->name, gpu->bus_name);
	text_fault(text, fault);
	text_add(text, "\n\ncomplete    no\n");
}

/*
 * What the topology page says, in an open session. A GPU that sleeps, is not enabled or is
 * not to be read has a page that says so; a register that is refused is an error.
 */
static int topology_page(struct gpu_session *session, struct text *text)
{
	struct gpu *gpu = session->gpu;
	struct text_topology page = {
		.name = gpu->name, .bus_name = gpu->bus_name, .id = &gpu->id, .fs = &gpu->fs,
	};
	struct gpu_memory memory;
	u64 bytes;
	int err;

	err = gpu_topology(session);
	if (err == -EHOSTDOWN || err == -ENXIO || err == -EBUSY || err == -EPERM) {
		add_state(text, gpu, &session->reader.fault);
		return 0;
	}
	if (err == -EOPNOTSUPP) {
		text_add(text, "gpu         %s %s\n", gpu->name, gpu->bus_name);
		text_refused(text, &gpu->id);
		return 0;
	}
	if (err)
		return err;
	err = topo_read_memory(gpu->id.chip, &session->reader, &memory);
	if (!err)
		page.memory = &memory;
	else if (err != -EOPNOTSUPP)
		page.memory_fault = session->reader.fault;
	err = topo_read_local_memory(gpu->id.chip, &session->reader, &bytes);
	if (!err)
		page.local_memory = &bytes;
	else if (err != -EOPNOTSUPP)
		page.local_memory_fault = session->reader.fault;
	text_topology(text, &page);
	return 0;
}

static int show_topology(struct gpu_session *session, struct text *text)
{
	return topology_page(session, text);
}

/* 0 and a chip that has a row, or why not. */
static int known_chip(struct gpu_session *session)
{
	int err = gpu_identify(session);

	if (err)
		return err;
	return session->gpu->id.chip ? 0 : -EOPNOTSUPP;
}

static int show_chip(struct gpu_session *session, struct text *text)
{
	int err = known_chip(session);

	if (err == -EOPNOTSUPP)
		text_refused(text, &session->gpu->id);
	else if (!err)
		text_chip(text, &session->gpu->id);
	else
		return err;
	return 0;
}

static int show_bus(struct gpu_session *session, struct text *text)
{
	session->gpu->ops->describe(session->gpu->private, text);
	return 0;
}

static int show_engines(struct gpu_session *session, struct text *text)
{
	struct gpu *gpu = session->gpu;
	struct text_engines page = { 0 };
	struct gpu_engines *engines;
	struct gpu_copy copy;
	int err = known_chip(session);

	if (err)
		return err;
	engines = kmalloc(sizeof(*engines), GFP_KERNEL);
	if (!engines)
		return -ENOMEM;
	err = topo_read_engines(gpu->id.chip, &session->reader, engines);
	if (err)
		goto free;
	page.chip = gpu->id.chip;
	page.engines = engines;
	err = topo_read_copy(gpu->id.chip, &session->reader, &copy);
	if (!err)
		page.copy = &copy;
	else if (err != -EOPNOTSUPP)
		page.copy_fault = session->reader.fault;
	err = 0;
	text_engines(text, &page);
free:
	kfree(engines);
	return err;
}

static int show_timer(struct gpu_session *session, struct text *text)
{
	u64 ns;
	int err = known_chip(session);

	if (!err)
		err = topo_read_timer(session->gpu->id.chip, &session->reader, &ns);
	if (!err)
		text_add(text, "%llu ns\n", (unsigned long long)ns);
	return err;
}

/* nvdebug's three that are not one register. */

static int show_device_info(struct gpu_session *session, struct text *text)
{
	const struct chip *chip;
	struct gpu_engines *engines;
	int err = known_chip(session);

	if (err)
		return err;
	engines = kmalloc(sizeof(*engines), GFP_KERNEL);
	if (!engines)
		return -ENOMEM;
	chip = session->gpu->id.chip;
	err = topo_read_engines(chip, &session->reader, engines);
	if (!err)
		text_device_info(text, chip, engines);
	kfree(engines);
	return err;
}

static int show_copy_topology(struct gpu_session *session, struct text *text)
{
	struct gpu_copy copy;
	int err = known_chip(session);

	if (!err)
		err = topo_read_copy(session->gpu->id.chip, &session->reader, &copy);
	if (!err)
		text_copy_topology(text, &copy);
	return err;
}

static int show_local_memory(struct gpu_session *session, struct text *text)
{
	u64 bytes;
	int err = known_chip(session);

	if (!err)
		err = topo_read_local_memory(session->gpu->id.chip, &session->reader, &bytes);
	if (!err)
		text_add(text, "%llu bytes\n", (unsigned long long)bytes);
	return err;
}

/* ------------------------------------------------------------------- files */

/* seq_file's own buffer as a text; it makes a larger one and asks again where one does not fit. */
static struct text text_of(struct seq_file *m)
{
	struct text text = { 0 };

	text.size = seq_get_buf(m, &text.buf);
	text.overflow = text.size == 0;
	return text;
}

static void text_done(struct seq_file *m, const struct text *text)
{
	seq_commit(m, text->overflow ? -1 : (int)text->len);
}

/* What a reader is told: a register that is refused, a GPU that cannot be read, is EIO. */
static int file_errno(int err)
{
	return err == -ENOMEM || err == -EOPNOTSUPP ? err : -EIO;
}

static int show_page(struct seq_file *m, int (*show)(struct gpu_session *, struct text *))
{
	struct text text = text_of(m);
	struct gpu_session session;
	int err = gpu_open(m->private, &session);

	if (err)
		return file_errno(err);
	err = show(&session, &text);
	gpu_close(&session);
	if (err)
		return file_errno(err);
	text_done(m, &text);
	return 0;
}

#define PAGE_FILE(page) \
static int page ## _seq_show(struct seq_file *m, void *v) \
{ \
	return show_page(m, show_ ## page); \
} \
static int page ## _seq_open(struct inode *inode, struct file *file) \
{ \
	return single_open_size(file, page ## _seq_show, pde_data(inode), PAGE_START); \
} \
static const struct proc_ops page ## _ops = { \
	.proc_open = page ## _seq_open, \
	.proc_read = seq_read, \
	.proc_lseek = seq_lseek, \
	.proc_release = single_release, \
}

PAGE_FILE(topology);
PAGE_FILE(chip);
PAGE_FILE(bus);
PAGE_FILE(engines);
PAGE_FILE(timer);
PAGE_FILE(device_info);
PAGE_FILE(copy_topology);
PAGE_FILE(local_memory);

static int reg_show(struct seq_file *m, void *v)
{
	const struct reg_file *file = m->private;
	struct gpu_session session;
	u32 value, more = 0;
	int err = gpu_open(file->gpu, &session);

	if (err)
		return file_errno(err);
	err = file->guard ? topo_rd32(&session.reader, file->guard, &value) : 0;
	if (!err)
		err = topo_rd32(&session.reader, file->at, &value);
	if (!err && file->at2)
		err = topo_rd32(&session.reader, file->at2, &more);
	gpu_close(&session);
	if (err)
		return file_errno(err);
	value |= more;
	seq_printf(m, "%#0x\n",
		   file->bits ? value >> file->shift & topo_mask(file->bits) : value);
	return 0;
}

static int reg_open(struct inode *inode, struct file *file)
{
	return single_open(file, reg_show, pde_data(inode));
}

static const struct proc_ops reg_ops = {
	.proc_open = reg_open,
	.proc_read = seq_read,
	.proc_lseek = seq_lseek,
	.proc_release = single_release,
};

/* All GPUs on one page. One that cannot be read does not hide the others. */
static int all_seq_show(struct seq_file *m, void *v)
{
	struct text text = text_of(m);
	unsigned int index = 0;
	struct gpu *gpu;

	while ((gpu = gpu_get(index, NULL))) {
		struct gpu_session session;
		int err;

		index = gpu->index + 1;
		err = gpu_open(gpu, &session);
		if (!err) {
			if (text.len)
				text_add(&text, "\n");
			err = topology_page(&session, &text);
			if (err)
				add_state(&text, gpu, &session.reader.fault);
			gpu_close(&session);
		}
		gpu_put(gpu);
	}
	text_done(m, &text);
	return 0;
}

static int all_seq_open(struct inode *inode, struct file *file)
{
	return single_open_size(file, all_seq_show, NULL, PAGE_START);
}

static const struct proc_ops all_ops = {
	.proc_open = all_seq_open,
	.proc_read = seq_read,
	.proc_lseek = seq_lseek,
	.proc_release = single_release,
};

/* ------------------------------------------------------------- directories */

__printf(5, 6)
static void add_reg_file(struct proc_gpu *p, struct gpu *gpu, u32 at, u32 at2, const char *fmt, ...)
{
	struct reg_file *file = &p->files[p->nr];
	char name[32];
	va_list ap;

	if (WARN_ON_ONCE(p->nr == MAX_REG_FILES))
		return;
	va_start(ap, fmt);
	vsnprintf(name, sizeof(name), fmt, ap);
	va_end(ap);
	file->gpu = gpu;
	file->at = at;
	file->at2 = at2;
	if (proc_create_data(name, 0444, p->dir, &reg_ops, file))
		p->nr++;
}

/* A file of the @bits from bit @shift on. */
static void add_field_file(struct proc_gpu *p, struct gpu *gpu, u32 at, u8 shift, u8 bits,
			   const char *name)
{
	p->files[p->nr].shift = shift;
	p->files[p->nr].bits = bits;
	add_reg_file(p, gpu, at, 0, "%s", name);
}

/* By nvdebug: of a name that is there proc_mkdir() warns with a stack, where some machines end. */
static bool is_taken(const char *name)
{
	char file[32];
	struct path path;

	snprintf(file, sizeof(file), "/proc/%s", name);
	if (kern_path(file, 0, &path))
		return false;
	path_put(&path);
	return true;
}

void proc_added(struct gpu *gpu)
{
	struct proc_gpu *p = kzalloc(sizeof(*p), GFP_KERNEL);

	if (!p)
		return;
	if (!is_taken(gpu->name))
		p->dir = proc_mkdir(gpu->name, NULL);
	if (!p->dir) {
		pr_err("no /proc/%s: another module has it, or no memory\n", gpu->name);
		kfree(p);
		return;
	}
	gpu->proc = p;
	proc_create_data("topology", 0444, p->dir, &topology_ops, gpu);
	proc_create_data("chip", 0444, p->dir, &chip_ops, gpu);
	proc_create_data(gpu->ops->bus, 0444, p->dir, &bus_ops, gpu);
	proc_create_data("engines", 0444, p->dir, &engines_ops, gpu);
	proc_create_data("timer", 0444, p->dir, &timer_ops, gpu);
}

/* nvdebug's files, of which it has those the chip has registers for. */
void proc_known(struct gpu *gpu)
{
	const struct chip *chip = gpu->id.chip;
	const struct chip_cell *fuse = chip_cell(chip, CHIP_FUSE_GPC);
	const struct chip_cell *tpc_fuse = chip_cell(chip, CHIP_FUSE_TPC);
	const struct chip_cell *cwd = chip_cell(chip, CHIP_CWD);
	const struct chip_cell *ctl = chip_cell(chip, CHIP_CWD_CTL);
	struct proc_gpu *p = gpu->proc;
	unsigned int i, guarded;

	if (!p)
		return;
	add_reg_file(p, gpu, NV_PTOP_SCAL_NUM_GPCS, 0, "num_gpcs");
	add_reg_file(p, gpu, NV_PTOP_SCAL_NUM_TPC_PER_GPC, 0, "num_tpc_per_gpc");
	add_reg_file(p, gpu, NV_PTOP_SCAL_NUM_CES, 0, "num_ces");
	add_reg_file(p, gpu, fuse->at, fuse->at2, "gpc_mask");
	for (i = 0; i < gpu->fs.max_gpcs; i++)
		if (gpu->fs.present_gpcs & 1u << i)
			add_reg_file(p, gpu, tpc_fuse->at + 4 * i,
				     tpc_fuse->at2 ? tpc_fuse->at2 + 4 * i : 0, "gpc%u_tpc_mask",
				     i);
	guarded = p->nr;
	for (i = 0; cwd && i < cwd->nr; i++) {
		add_reg_file(p, gpu, cwd->at + 4 * i, 0, "CWD_GPC_TPC_ID%u", i);
		add_reg_file(p, gpu, cwd->at2 + 4 * i, 0, "CWD_SM_ID%u", i);
	}
	if (cwd) {
		add_field_file(p, gpu, NV_PGRAPH_PRI_CWD_FS, 0, 8, "CWD_FS_NUM_GPCS");
		add_field_file(p, gpu, NV_PGRAPH_PRI_CWD_FS, 8, 8, "CWD_FS_NUM_TPCS");
	}
	if (ctl) {
		add_reg_file(p, gpu, ctl->at, 0, "partition_ctl");
		add_reg_file(p, gpu, ctl->at2, 0, "CWD_CG0");
		add_reg_file(p, gpu, ctl->at2 + 4, 0, "CWD_CG1");
	}
	for (i = guarded; i < p->nr; i++)
		p->files[i].guard = NV_PGRAPH_PRI_CWD_FS;
	if (chip_cell(chip, CHIP_ENGINES))
		proc_create_data("device_info", 0444, p->dir, &device_info_ops, gpu);
	if (chip_cell(chip, CHIP_RUNLISTS))
		proc_create_data("runlists", 0400, p->dir, &scheduling_runlists_ops, gpu);
	if (chip_cell(chip, CHIP_PCE)) {
		add_reg_file(p, gpu, NV_CE_PCE_MAP, 0, "pce_map");
		proc_create_data("copy_topology", 0444, p->dir, &copy_topology_ops, gpu);
	}
	if (chip_cell(chip, CHIP_MEMORY))
		proc_create_data("local_memory", 0444, p->dir, &local_memory_ops, gpu);
}

/* proc_remove() waits for reads under way; a file that is still open reads EIO after it. */
void proc_removed(struct gpu *gpu)
{
	struct proc_gpu *p = gpu->proc;

	if (!p)
		return;
	proc_remove(p->dir);
	gpu->proc = NULL;
	kfree(p);
}

int proc_init(void)
{
	gpu_dir = proc_mkdir("gpu", NULL);
	if (!gpu_dir)
		return -ENOMEM;
	if (!proc_create("topology", 0444, gpu_dir, &all_ops)) {
		proc_remove(gpu_dir);
		return -ENOMEM;
	}
	return 0;
}

void proc_fini(void)
{
	proc_remove(gpu_dir);
}
