// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * List, lifetime, lock and cache. A GPU is {name, rd32, private}; nothing here knows
 * PCI, and of /proc and netlink only what is to be told of a GPU's life.
 */
#include <linux/err.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/slab.h>
#include "device.h"
#include "regs.h"

#if BITS_PER_LONG < 64
#error "an xarray's entry must hold a whole register"
#endif

static LIST_HEAD(gpus);			/* by ascending index */
static unsigned int generation = 1;
static DEFINE_MUTEX(gpus_lock);		/* both; no other lock is taken inside it */

/* ---------------------------------------------------------------- sessions */

/*
 * A register in gpu->registers: its value, and above it when it was read, in tenths of a second
 * since the machine started; 0 is a value that does not change.
 */
#define STAMP_SHIFT	32
#define STAMP_MASK	0x3fffffffu

static u32 stamp_now(void)
{
	return (div_u64(ktime_get_boottime_ns(), NSEC_PER_SEC / 10) & STAMP_MASK) ?: 1;
}

/* For a second whatever was read stands, so that readers cannot make a GPU refuse at will. */
static bool is_fresh(u32 stamp)
{
	return !stamp || ((stamp_now() - stamp) & STAMP_MASK) < 10;
}

static void keep(struct gpu *gpu, u32 offset, u32 value, u32 stamp)
{
	unsigned long entry = (unsigned long)stamp << STAMP_SHIFT | value;

	/* No memory to remember it costs another read, no more. */
	xa_store(&gpu->registers, offset, xa_mk_value(entry), GFP_KERNEL | __GFP_NOWARN);
}

static void session_keep(struct topo_reader *reader, u32 offset, u32 value, bool lasts)
{
	struct gpu_session *session = container_of(reader, struct gpu_session, reader);

	keep(session->gpu, offset, value, lasts ? 0 : stamp_now());
}

/*
 * What may have changed is read anew, but while the GPU sleeps what was read last stands: it
 * is woken only where nothing is known, of this register or of its topology.
 */
static int session_rd32(struct topo_reader *reader, u32 offset, u32 *value)
{
	struct gpu_session *session = container_of(reader, struct gpu_session, reader);
	struct gpu *gpu = session->gpu;
	void *entry = xa_load(&gpu->registers, offset);
	unsigned long known = entry ? xa_to_value(entry) : 0;
	bool suffices = entry && gpu->has_fs && !reader->live;
	int err;

	*value = known;
	if (entry && (is_fresh(known >> STAMP_SHIFT) || (suffices && session->asleep)))
		return 0;
	if (!session->awake) {
		err = gpu->ops->begin(gpu->private, !suffices && !session->no_wake,
				      session->no_wake);
		session->awake = !err;
		session->asleep = err && suffices;
		if (err && suffices)
			return 0;
		if (err)
			return err == -EAGAIN ? -EHOSTDOWN : err;
	}
	*value = gpu->ops->rd32(gpu->private, offset);
	if (!reader->live)
		keep(gpu, offset, *value, gp_topo_bad_for_good(*value) ? 0 : stamp_now());
	return 0;
}

int gp_gpu_open(struct gpu *gpu, struct gpu_session *session)
{
	int err;

	memset(session, 0, sizeof(*session));
	session->reader.rd32 = session_rd32;
	session->reader.keep = session_keep;
	session->gpu = gpu;
	/* Whoever has it may wait for a GPU that does not wake. */
	err = mutex_lock_killable(&gpu->lock);
	if (!err) {
		if (!gpu->gone)
			return 0;
		mutex_unlock(&gpu->lock);
		err = -ENODEV;
	}
	session->reader.fault.err = err;
	return err;
}

void gp_gpu_close(struct gpu_session *session)
{
	struct gpu *gpu = session->gpu;

	if (session->awake)
		gpu->ops->end(gpu->private);
	mutex_unlock(&gpu->lock);
}

int gp_gpu_identify(struct gpu_session *session)
{
	struct gpu *gpu = session->gpu;
	int err;

	if (gpu->identified)
		return 0;
	err = gp_topo_identify(&session->reader, &gpu->id);
	if (err)
		memset(&gpu->id, 0, sizeof(gpu->id));
	else
		gpu->identified = true;
	return err;
}

static void take_topology(struct gpu *gpu, const struct gpu_floorsweep *fs)
{
	gpu->fs_stamp = stamp_now();
	/* Where no table is loaded now, the last one that was stands. */
	if (gpu->has_fs && gpu->fs.order == TOPO_ORDER_READ && fs->unloaded)
		return;
	if (gpu->has_fs && !memcmp(&gpu->fs, fs, sizeof(*fs)))
		return;
	memcpy(&gpu->fs, fs, sizeof(*fs));
	gpu->has_fs = true;
	if (!gpu->known)
		gp_proc_known(gpu);
	gpu->known = true;
	gp_netlink_changed(gpu);
}

int gp_gpu_topology(struct gpu_session *session)
{
	struct gpu *gpu = session->gpu;
	struct gpu_floorsweep *fs;
	int err;

	err = gp_gpu_identify(session);
	if (err)
		return err;
	if (!gpu->id.chip)
		return -EOPNOTSUPP;
	if (gpu->has_fs && is_fresh(gpu->fs_stamp))
		return 0;
	fs = kmalloc(sizeof(*fs), GFP_KERNEL);
	err = fs ? gp_topo_read(gpu->id.chip, &session->reader, fs) : -ENOMEM;
	if (!err)
		take_topology(gpu, fs);
	kfree(fs);
	return gpu->has_fs ? 0 : err;
}

/* -------------------------------------------------------------------- list */

static void gpu_free(struct kref *kref)
{
	struct gpu *gpu = container_of(kref, struct gpu, kref);

	gpu->ops->release(gpu->private);
	xa_destroy(&gpu->registers);
	mutex_destroy(&gpu->lock);
	kfree(gpu);
}

void gp_gpu_put(struct gpu *gpu)
{
	kref_put(&gpu->kref, gpu_free);
}

struct gpu *gp_gpu_get(unsigned int index, const char *bus_name)
{
	struct gpu *gpu, *found = NULL;

	mutex_lock(&gpus_lock);
	list_for_each_entry(gpu, &gpus, node) {
		if (gpu->index < index || (bus_name && strcmp(gpu->bus_name, bus_name)))
			continue;
		kref_get(&gpu->kref);
		found = gpu;
		break;
	}
	mutex_unlock(&gpus_lock);
	return found;
}

unsigned int gp_gpu_generation(void)
{
	unsigned int now;

	mutex_lock(&gpus_lock);
	now = generation;
	mutex_unlock(&gpus_lock);
	return now;
}

/* With gpus_lock held. */
static void list_changed(void)
{
	if (++generation == 0)
		generation = 1;
}

void gp_gpu_read(struct gpu *gpu)
{
	struct gpu_session session;

	if (gp_gpu_open(gpu, &session))
		return;
	gp_gpu_topology(&session);
	gp_gpu_close(&session);
}

struct gpu *gp_gpu_add(const struct gpu_ops *ops, void *private, const char *bus_name)
{
	struct gpu *gpu = kzalloc(sizeof(*gpu), GFP_KERNEL);
	struct list_head *after = &gpus;
	struct gpu *other;

	if (!gpu) {
		ops->release(private);
		return ERR_PTR(-ENOMEM);
	}
	kref_init(&gpu->kref);
	mutex_init(&gpu->lock);
	xa_init(&gpu->registers);
	gpu->ops = ops;
	gpu->private = private;
	strscpy(gpu->bus_name, bus_name, sizeof(gpu->bus_name));

	/* Whoever finds it in the list waits until it has its folder. */
	mutex_lock(&gpu->lock);
	/* The lowest number that is free, so that a GPU that comes back has its own again. */
	mutex_lock(&gpus_lock);
	list_for_each_entry(other, &gpus, node) {
		if (other->index != gpu->index)
			break;
		gpu->index++;
		after = &other->node;
	}
	snprintf(gpu->name, sizeof(gpu->name), "gpu%u", gpu->index);
	list_add(&gpu->node, after);
	list_changed();
	mutex_unlock(&gpus_lock);
	gp_proc_added(gpu);
	mutex_unlock(&gpu->lock);

	/* What cannot be read now is read when somebody asks. */
	gp_gpu_read(gpu);
	gp_netlink_added(gpu);
	mutex_lock(&gpu->lock);
	gpu->announced = true;
	mutex_unlock(&gpu->lock);
	return gpu;
}

void gp_gpu_remove(struct gpu *gpu)
{
	mutex_lock(&gpu->lock);
	gpu->gone = true;
	gpu->announced = false;
	mutex_unlock(&gpu->lock);
	gp_proc_removed(gpu);
	gp_netlink_removed(gpu);
	/* Its number is free only now that nobody shows it. */
	mutex_lock(&gpus_lock);
	list_del(&gpu->node);
	list_changed();
	mutex_unlock(&gpus_lock);
	gp_gpu_put(gpu);
}

void gp_gpu_forget(struct gpu *gpu)
{
	mutex_lock(&gpu->lock);
	xa_destroy(&gpu->registers);
	memset(&gpu->id, 0, sizeof(gpu->id));
	gpu->identified = false;
	gpu->has_fs = false;
	gp_netlink_changed(gpu);
	mutex_unlock(&gpu->lock);
}
