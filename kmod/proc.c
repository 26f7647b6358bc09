// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Creates /proc/gpu and /proc/gpuN, with pages for people and the files of nvdebug. All files
 * except "runlists" have mode 0444. If a page is not complete, the page ends with "complete no", or
 * reading the page fails.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/capability.h>
#include <linux/namei.h>
#include <linux/path.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include "device.h"
#include "regs.h"

/* This buffer is large enough for most pages. For longer pages, seq_file doubles the size. */
#define PAGE_START	16384
#define MAX_FILES	160

/*
 * A file shows a page, a register, the OR of two registers, or a field of a register. The field has
 * @bits bits and begins at bit @shift.
 */
struct proc_file {
	struct gpu *gpu;
	int (*page)(struct gpu_session *session, struct text *text);
	bool any_chip;		/* the page also exists for a refused chip */
	/* Writes a page that needs CAP_PERFMON. This function opens its own sessions. */
	int (*live)(struct gpu *gpu, struct text *text);
	u32 at, at2;
	/* read this register first; if it is refused, all others are refused; 0: none */
	u32 guard;
	u8 shift, bits;		/* if @bits is 0, the file shows the whole register */
};

struct proc_gpu {
	struct proc_dir_entry *dir;
	unsigned int nr;
	struct proc_file files[MAX_FILES];
};

static struct proc_dir_entry *gpu_dir;

/* ------------------------------------------------------------------- pages */

static void add_state(struct text *text, struct gpu *gpu, const struct topo_fault *fault)
{
	gp_text_add(text, "gpu         %s %s\nunreadable  ", gpu->name, gpu->bus_name);
	gp_text_fault(text, fault);
	gp_text_add(text, "\n\ncomplete    no\n");
}

/*
 * Shows the topology page. If the GPU sleeps, is not enabled or is reserved, the page contains the
 * reason. If a register is refused, reading the page fails.
 */
static int topology_page(struct gpu_session *session, struct text *text)
{
	struct gpu *gpu = session->gpu;
	struct text_topology page = {
		.name = gpu->name, .bus_name = gpu->bus_name, .id = &gpu->id, .fs = &gpu->fs,
	};
	int err = gp_gpu_topology(session);

	if (err == -EHOSTDOWN || err == -ENXIO || err == -EBUSY || err == -EPERM) {
		add_state(text, gpu, &session->reader.fault);
		return 0;
	}
	if (err == -EOPNOTSUPP) {
		gp_text_add(text, "gpu         %s %s\n", gpu->name, gpu->bus_name);
		gp_text_refused(text, &gpu->id);
		return 0;
	}
	if (err)
		return err;
	gp_text_topology_memory(&page, &session->reader);
	gp_text_topology(text, &page);
	return 0;
}

static int chip_page(struct gpu_session *session, struct text *text)
{
	int err = gp_gpu_identify(session);

	if (err)
		return err;
	if (session->gpu->id.chip)
		gp_text_chip(text, &session->gpu->id);
	else
		gp_text_refused(text, &session->gpu->id);
	return 0;
}

static int bus_page(struct gpu_session *session, struct text *text)
{
	session->gpu->ops->describe(session->gpu->private, text);
	return 0;
}

/* The pages below are shown only if the chip is known. */
static int show_engines(struct gpu_session *session, struct text *text, bool as_nvdebug)
{
	struct text_engines page = { .chip = session->gpu->id.chip };
	struct gpu_engines *engines = kmalloc(sizeof(*engines), GFP_KERNEL);
	int err = engines ? gp_topo_read_engines(page.chip, &session->reader, engines) : -ENOMEM;

	page.engines = engines;
	if (!err && as_nvdebug) {
		gp_text_device_info(text, page.chip, engines);
	} else if (!err) {
		gp_text_engines_copy(&page, &session->reader);
		gp_text_engines(text, &page);
	}
	kfree(engines);
	return err;
}

static int engines_page(struct gpu_session *session, struct text *text)
{
	return show_engines(session, text, false);
}

static int device_info_page(struct gpu_session *session, struct text *text)
{
	return show_engines(session, text, true);
}

static int timer_page(struct gpu_session *session, struct text *text)
{
	u64 ns;
	int err = gp_topo_read_timer(session->gpu->id.chip, &session->reader, &ns);

	if (!err)
		gp_text_add(text, "%llu ns\n", (unsigned long long)ns);
	return err;
}

static int copy_topology_page(struct gpu_session *session, struct text *text)
{
	struct gpu_copy copy;
	int err = gp_topo_read_copy(session->gpu->id.chip, &session->reader, &copy);

	if (!err)
		gp_text_copy_topology(text, &copy);
	return err;
}

static int local_memory_page(struct gpu_session *session, struct text *text)
{
	u64 bytes;
	int err = gp_topo_read_local_memory(session->gpu->id.chip, &session->reader, &bytes);

	if (!err)
		gp_text_add(text, "%llu bytes\n", (unsigned long long)bytes);
	return err;
}

static int show_register(const struct proc_file *file, struct topo_reader *reader,
			 struct text *text)
{
	u32 value, more = 0;
	int err = file->guard ? gp_topo_rd32(reader, file->guard, &value) : 0;

	if (!err)
		err = gp_topo_rd32(reader, file->at, &value);
	if (!err && file->at2)
		err = gp_topo_rd32(reader, file->at2, &more);
	if (err)
		return err;
	value |= more;
	gp_text_add(text, "%#0x\n",
		    file->bits ? value >> file->shift & topo_mask(file->bits) : value);
	return 0;
}

/* Shows all GPUs on one page. If a GPU cannot be read, the page still shows the other GPUs. */
static int show_all(struct text *text)
{
	struct gpu_session session;
	unsigned int index = 0;
	struct gpu *gpu;

	while ((gpu = gp_gpu_get(index, NULL))) {
		index = gpu->index + 1;
		if (!gp_gpu_open(gpu, &session)) {
			if (text->len)
				gp_text_add(text, "\n");
			if (topology_page(&session, text))
				add_state(text, gpu, &session.reader.fault);
			gp_gpu_close(&session);
		}
		gp_gpu_put(gpu);
	}
	return 0;
}

/* ------------------------------------------------------------------- files */

static int show(const struct proc_file *file, struct text *text)
{
	struct gpu_session session;
	int err;

	if (!file)
		return show_all(text);
	if (file->live)
		return file->live(file->gpu, text);
	err = gp_gpu_open(file->gpu, &session);
	if (err)
		return err;
	/* A read of the timer never wakes the GPU, even if the chip is not identified. */
	if (file->page == timer_page)
		session.wake = GPU_LEAVE_ASLEEP;
	if (file->page && !file->any_chip) {
		err = gp_gpu_identify(&session);
		if (!err && !file->gpu->id.chip)
			err = -EOPNOTSUPP;
	}
	if (!err)
		err = file->page ? file->page(&session, text) :
				   show_register(file, &session.reader, text);
	gp_gpu_close(&session);
	return err;
}

/*
 * Writes into seq_file's buffer. If the buffer is too small, seq_file calls the function again
 * with a larger buffer.
 */
static int file_show(struct seq_file *m, void *v)
{
	struct text text = { 0 };
	int err;

	text.size = seq_get_buf(m, &text.buf);
	text.overflow = text.size == 0;
	err = show(m->private, &text);
	/* If a register is refused, or the GPU cannot be read, the error is EIO. */
	if (err)
		return err == -ENOMEM || err == -EOPNOTSUPP ? err : -EIO;
	seq_commit(m, text.overflow ? -1 : (int)text.len);
	return 0;
}

static int file_open(struct inode *inode, struct file *file)
{
	const struct proc_file *shown = pde_data(inode);

	/*
	 * Check the capability, because the file mode would also admit the root user of a
	 * container.
	 */
	if (shown && shown->live && !perfmon_capable())
		return -EPERM;
	return single_open_size(file, file_show, pde_data(inode), PAGE_START);
}

static const struct proc_ops file_ops = {
	.proc_open = file_open,
	.proc_read = seq_read,
	.proc_lseek = seq_lseek,
	.proc_release = single_release,
};

/* ------------------------------------------------------------- directories */

__printf(3, 4)
static void add_file(struct gpu *gpu, struct proc_file file, const char *fmt, ...)
{
	struct proc_gpu *p = gpu->proc;
	char name[32];
	va_list ap;

	if (WARN_ON_ONCE(p->nr == MAX_FILES))
		return;
	va_start(ap, fmt);
	vsnprintf(name, sizeof(name), fmt, ap);
	va_end(ap);
	file.gpu = gpu;
	p->files[p->nr] = file;
	if (proc_create_data(name, file.live ? 0400 : 0444, p->dir, &file_ops, &p->files[p->nr]))
		p->nr++;
}

#define PAGE(function, any)	((struct proc_file){ .page = (function), .any_chip = (any) })
#define REGISTER(...)		((struct proc_file){ __VA_ARGS__ })
#define CWD(...)		REGISTER(.guard = NV_PGRAPH_PRI_CWD_FS, __VA_ARGS__)

/*
 * Returns whether nvdebug has already created an entry with this name. If a name exists,
 * proc_mkdir() prints a warning with a stack trace. If panic_on_warn is set, this warning stops the
 * machine.
 */
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

void gp_proc_added(struct gpu *gpu)
{
	struct proc_gpu *p = kzalloc(sizeof(*p), GFP_KERNEL);

	if (!p)
		return;
	if (!is_taken(gpu->name))
		p->dir = proc_mkdir(gpu->name, NULL);
	if (!p->dir) {
		pr_err("/proc/%s cannot be created: it exists already, or there is no memory\n",
		       gpu->name);
		kfree(p);
		return;
	}
	gpu->proc = p;
	add_file(gpu, PAGE(topology_page, true), "topology");
	add_file(gpu, PAGE(chip_page, true), "chip");
	add_file(gpu, PAGE(bus_page, true), "%s", gpu->ops->bus);
	add_file(gpu, PAGE(engines_page, false), "engines");
	add_file(gpu, PAGE(timer_page, false), "timer");
}

/* Adds the files of nvdebug. If the chip lacks the registers for a file, omits the file. */
void gp_proc_known(struct gpu *gpu)
{
	const struct chip *chip = gpu->id.chip;
	const struct chip_cell *fuse = gp_chip_cell(chip, CHIP_FUSE_GPC);
	const struct chip_cell *tpc_fuse = gp_chip_cell(chip, CHIP_FUSE_TPC);
	const struct chip_cell *cwd = gp_chip_cell(chip, CHIP_CWD);
	const struct chip_cell *ctl = gp_chip_cell(chip, CHIP_CWD_CTL);
	unsigned int i;

	if (!gpu->proc)
		return;
	add_file(gpu, REGISTER(.at = NV_PTOP_SCAL_NUM_GPCS), "num_gpcs");
	add_file(gpu, REGISTER(.at = NV_PTOP_SCAL_NUM_TPC_PER_GPC), "num_tpc_per_gpc");
	add_file(gpu, REGISTER(.at = NV_PTOP_SCAL_NUM_CES), "num_ces");
	add_file(gpu, REGISTER(.at = fuse->at, .at2 = fuse->at2), "gpc_mask");
	for (i = 0; i < gpu->fs.max_gpcs; i++)
		if (gpu->fs.present_gpcs & 1u << i)
			add_file(gpu, REGISTER(.at = tpc_fuse->at + 4 * i,
					       .at2 = tpc_fuse->at2 ? tpc_fuse->at2 + 4 * i : 0),
				 "gpc%u_tpc_mask", i);
	for (i = 0; cwd && i < cwd->nr; i++) {
		add_file(gpu, CWD(.at = cwd->at + 4 * i), "CWD_GPC_TPC_ID%u", i);
		add_file(gpu, CWD(.at = cwd->at2 + 4 * i), "CWD_SM_ID%u", i);
	}
	if (cwd) {
		add_file(gpu, CWD(.at = NV_PGRAPH_PRI_CWD_FS, .bits = 8), "CWD_FS_NUM_GPCS");
		add_file(gpu, CWD(.at = NV_PGRAPH_PRI_CWD_FS, .shift = 8, .bits = 8),
			 "CWD_FS_NUM_TPCS");
	}
	if (ctl) {
		add_file(gpu, CWD(.at = ctl->at), "partition_ctl");
		add_file(gpu, CWD(.at = ctl->at2), "CWD_CG0");
		add_file(gpu, CWD(.at = ctl->at2 + 4), "CWD_CG1");
	}
	if (gp_chip_cell(chip, CHIP_ENGINES))
		add_file(gpu, PAGE(device_info_page, false), "device_info");
	if (gp_chip_cell(chip, CHIP_RUNLISTS))
		add_file(gpu, (struct proc_file){ .live = gp_scheduling_runlists_page },
			 "runlists");
	if (gp_chip_cell(chip, CHIP_PCE)) {
		add_file(gpu, REGISTER(.at = NV_CE_PCE_MAP), "pce_map");
		add_file(gpu, PAGE(copy_topology_page, false), "copy_topology");
	}
	if (gp_chip_cell(chip, CHIP_MEMORY))
		add_file(gpu, PAGE(local_memory_page, false), "local_memory");
}

/*
 * The function proc_remove() waits until all reads have ended. After that, reading an open file
 * returns EIO.
 */
void gp_proc_removed(struct gpu *gpu)
{
	struct proc_gpu *p = gpu->proc;

	if (!p)
		return;
	proc_remove(p->dir);
	gpu->proc = NULL;
	kfree(p);
}

int gp_proc_init(void)
{
	gpu_dir = proc_mkdir("gpu", NULL);
	if (!gpu_dir)
		return -ENOMEM;
	if (!proc_create("topology", 0444, gpu_dir, &file_ops)) {
		proc_remove(gpu_dir);
		return -ENOMEM;
	}
	return 0;
}

void gp_proc_fini(void)
{
	proc_remove(gpu_dir);
}
