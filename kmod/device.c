// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Implements the list of GPUs. Implements the lifetime, the locks and the register cache of each
 * GPU. Calls to the bus of a GPU go through struct gpu_ops. Runtime PM wakes a GPU.
 */
#include <linux/device.h>
#include <linux/err.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/pm_runtime.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include "device.h"
#include "regs.h"

#if BITS_PER_LONG < 64
#error "an xarray's entry must hold a whole register"
#endif

static LIST_HEAD(gpus);			/* sorted by index, lowest first */
static unsigned int generation = 1;
/* the innermost lock; protects the list, @generation, and @new and @again of each GPU */
static DEFINE_MUTEX(gpus_lock);

/* ---------------------------------------------------------------- sessions */

/*
 * An entry of gpu->registers contains the value of a register. The bits above the value contain the
 * time of the read, in tenths of a second since boot. If the time is 0, the value does not change.
 * A value is confirmed if a read at least one second earlier gave the same value.
 */
#define STAMP_SHIFT	32
#define STAMP_MASK	0x3fffffffu
#define CONFIRMED	BIT(62)

static u32 stamp_now(void)
{
	return (div_u64(ktime_get_boottime_ns(), NSEC_PER_SEC / 10) & STAMP_MASK) ?: 1;
}

/*
 * Every value, even a refusal, is kept for a second. So the number of refused reads per second is
 * limited.
 */
static bool is_fresh(u32 stamp)
{
	return !stamp || ((stamp_now() - stamp) & STAMP_MASK) < 10;
}

static void keep(struct gpu *gpu, u32 offset, u32 value, u32 stamp, bool confirmed)
{
	unsigned long entry = (unsigned long)stamp << STAMP_SHIFT | value;

	if (confirmed)
		entry |= CONFIRMED;
	/* If there is no memory for the entry, the next reader reads the register again. */
	xa_store(&gpu->registers, offset, xa_mk_value(entry), GFP_KERNEL | __GFP_NOWARN);
}

/*
 * If a GPU is new or in reset, a single read can be wrong. So only a confirmed value is kept for
 * ever.
 */
static void session_keep(struct topo_reader *reader, u32 offset, u32 value, bool lasts)
{
	struct gpu *gpu = container_of(reader, struct gpu_session, reader)->gpu;
	void *entry = xa_load(&gpu->registers, offset);

	if (!lasts)
		keep(gpu, offset, value, stamp_now(), false);
	else if (entry && xa_to_value(entry) & CONFIRMED)
		keep(gpu, offset, value, 0, true);
}

/*
 * Wakes the GPU. The GPU then stays awake until gp_gpu_close() is called. A wake-up can take
 * seconds. During the wake-up, gpu->lock is released, so that other readers can use the known
 * values. If the state of the GPU changes during the wake-up, this function returns an error.
 */
static int wake_unlocked(struct gpu_session *session)
{
	struct gpu *gpu = session->gpu;
	unsigned int epoch = gpu->epoch;
	int err;

	mutex_unlock(&gpu->lock);
	err = mutex_lock_killable(&gpu->wake_lock);
	if (!err) {
		err = pm_runtime_get_sync(gpu->dev);
		/*
		 * The error -EACCES means that runtime PM is disabled for the device. In this case
		 * begin() finds out whether the device is awake.
		 */
		session->woken = err >= 0 || err == -EACCES;
		if (!session->woken)
			pm_runtime_put(gpu->dev);
		err = session->woken ? 0 : -EHOSTDOWN;
		mutex_unlock(&gpu->wake_lock);
	}
	mutex_lock(&gpu->lock);
	if (gpu->gone)
		return -ENODEV;
	if (!err && epoch != gpu->epoch)
		return -EBUSY;
	return err;
}

/*
 * Makes reads possible. If the GPU sleeps, this function may wake the GPU. For a wake-up, @may_wake
 * must be true, and the session must permit wake-ups.
 */
static int session_begin(struct gpu_session *session, bool may_wake)
{
	struct gpu *gpu = session->gpu;
	int err = gpu->ops->begin(gpu->private, session->whole);

	if (err != -EAGAIN || !may_wake || session->wake == GPU_LEAVE_ASLEEP)
		return err == -EAGAIN ? -EHOSTDOWN : err;
	/* For one second after a failed wake-up, do not try again. */
	if (gpu->wake_err && is_fresh(gpu->wake_stamp))
		return gpu->wake_err;
	if (session->wake == GPU_WAKE_LATER) {
		queue_work(system_freezable_wq, &gpu->wake_work);
		return -EAGAIN;
	}
	err = wake_unlocked(session);
	if (!err)
		err = gpu->ops->begin(gpu->private, session->whole);
	if (err == -EAGAIN)
		err = -EHOSTDOWN;
	gpu->wake_err = err == -EINTR || err == -EBUSY ? 0 : err;
	gpu->wake_stamp = stamp_now();
	return err;
}

/*
 * Reads a register, or returns its known value. If the known value is older than a second, the
 * register is read again. While the GPU sleeps, the known value is used. If the value of this
 * register, or the topology, is unknown, the GPU is woken. For a register that changes all the
 * time, the GPU is never woken.
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
	if (entry && is_fresh(known >> STAMP_SHIFT & STAMP_MASK) &&
	    (!reader->live || gp_topo_bad_read(*value)))
		return 0;
	if (suffices && session->asleep)
		return 0;
	if (session->err)
		return session->err;
	if (!session->awake) {
		err = session_begin(session, !suffices && !reader->live);
		session->awake = !err;
		session->asleep = err == -EHOSTDOWN;
		if (suffices && session->asleep)
			return 0;
		session->err = err;
		if (err)
			return err;
	}
	*value = gpu->ops->rd32(gpu->private, offset);
	if (!reader->live)
		keep(gpu, offset, *value, gp_topo_bad_for_good(*value) ? 0 : stamp_now(),
		     entry && (u32)known == *value);
	return 0;
}

static void session_init(struct gpu_session *session, struct gpu *gpu)
{
	memset(session, 0, sizeof(*session));
	session->reader.rd32 = session_rd32;
	session->reader.keep = session_keep;
	session->gpu = gpu;
}

int gp_gpu_open(struct gpu *gpu, struct gpu_session *session)
{
	int err;

	session_init(session, gpu);
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
	if (session->woken)
		pm_runtime_put(gpu->dev);
	mutex_unlock(&gpu->lock);
}

int gp_gpu_identify(struct gpu_session *session)
{
	struct gpu *gpu = session->gpu;
	struct gpu_id id;
	int err;

	if (gpu->identified)
		return 0;
	err = gp_topo_identify(&session->reader, &id);
	if (err)
		return err;
	gpu->id = id;
	gpu->identified = true;
	return 0;
}

static void update_topology(struct gpu *gpu, const struct gpu_floorsweep *fs)
{
	gpu->fs_stamp = stamp_now();
	/*
	 * The GPU has unloaded its table of the TPC order. The table of the previous read is still
	 * correct.
	 */
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
	/* If a part could not be read, the fault is in @fs, and this function does not fail. */
	if (session->err) {
		err = session->err;
		session->reader.fault.err = err;
	}
	if (!err)
		update_topology(gpu, fs);
	kfree(fs);
	return (err == -EHOSTDOWN || err == -EAGAIN) && gpu->has_fs ? 0 : err;
}

/* -------------------------------------------------------------------- list */

static void gpu_free(struct kref *kref)
{
	struct gpu *gpu = container_of(kref, struct gpu, kref);

	gpu->ops->release(gpu->private);
	xa_destroy(&gpu->registers);
	mutex_destroy(&gpu->lock);
	mutex_destroy(&gpu->wake_lock);
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

/* The caller holds gpus_lock. */
static void list_changed(void)
{
	if (++generation == 0)
		generation = 1;
}

/* Reads the topology if it is not known. This can take seconds. */
static void read_topology(struct gpu *gpu)
{
	struct gpu_session session;

	if (gp_gpu_open(gpu, &session))
		return;
	gp_gpu_topology(&session);
	gp_gpu_close(&session);
}

/* Wakes the GPU. Reads all data for netlink requests. */
static void wake_and_read(struct work_struct *work)
{
	struct gpu *gpu = container_of(work, struct gpu, wake_work);
	struct gpu_engines *engines = kmalloc(sizeof(*engines), GFP_KERNEL);
	struct gpu_session session;

	if (engines && !gp_gpu_open(gpu, &session)) {
		gp_gpu_topology(&session);
		if (gpu->id.chip)
			gp_topo_read_engines(gpu->id.chip, &session.reader, engines);
		gp_gpu_close(&session);
	}
	kfree(engines);
}

struct gpu *gp_gpu_add(const struct gpu_ops *ops, void *private, struct device *dev)
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
	mutex_init(&gpu->wake_lock);
	INIT_WORK(&gpu->wake_work, wake_and_read);
	xa_init(&gpu->registers);
	gpu->ops = ops;
	gpu->private = private;
	gpu->dev = dev;
	gpu->new = true;
	strscpy(gpu->bus_name, dev_name(dev), sizeof(gpu->bus_name));

	/*
	 * Another task may find the GPU in the list. This lock makes the task wait until the GPU's
	 * directory exists.
	 */
	mutex_lock(&gpu->lock);
	/*
	 * Use the lowest free number. So a GPU that is removed and plugged in again gets its old
	 * number.
	 */
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
	return gpu;
}

static void start(struct gpu *gpu)
{
	struct gpu_session session;

	/* If the GPU cannot be read now, the first reader reads the GPU. */
	read_topology(gpu);
	mutex_lock(&gpu->lock);
	if (gpu->gone) {
		mutex_unlock(&gpu->lock);
		return;
	}
	session_init(&session, gpu);
	session.wake = GPU_LEAVE_ASLEEP;
	gp_netlink_added(&session);
	gpu->announced = true;
	gp_gpu_close(&session);
}

/*
 * Finds a GPU of the provider that must be started. If @again is true, finds a GPU that must be
 * read again. Takes a reference to the GPU and returns the GPU. If there is no such GPU, returns
 * NULL.
 */
static struct gpu *next_to_read(const struct gpu_ops *ops, bool again)
{
	struct gpu *gpu, *found = NULL;

	mutex_lock(&gpus_lock);
	list_for_each_entry(gpu, &gpus, node) {
		if (gpu->ops != ops || !(again ? gpu->again : gpu->new))
			continue;
		gpu->again = !again;
		gpu->new = false;
		kref_get(&gpu->kref);
		found = gpu;
		break;
	}
	mutex_unlock(&gpus_lock);
	return found;
}

void gp_gpu_start_new(const struct gpu_ops *ops)
{
	struct gpu *gpu;

	while ((gpu = next_to_read(ops, false))) {
		start(gpu);
		gp_gpu_put(gpu);
	}
}

void gp_gpu_read_again(const struct gpu_ops *ops)
{
	struct gpu *gpu;

	while ((gpu = next_to_read(ops, true))) {
		if (!READ_ONCE(gpu->known))
			read_topology(gpu);
		gp_gpu_put(gpu);
	}
}

void gp_gpu_remove(struct gpu *gpu)
{
	bool announced;

	mutex_lock(&gpu->lock);
	gpu->gone = true;
	announced = gpu->announced;
	gpu->announced = false;
	mutex_unlock(&gpu->lock);
	/* All callers queue the work under the lock. No caller queues work for a removed GPU. */
	cancel_work_sync(&gpu->wake_work);
	gp_proc_removed(gpu);
	if (announced)
		gp_netlink_removed(gpu);
	/* Free the GPU's number now. Until now, the name of a directory contained this number. */
	mutex_lock(&gpus_lock);
	list_del(&gpu->node);
	list_changed();
	mutex_unlock(&gpus_lock);
	gp_gpu_put(gpu);
}

void gp_gpu_forget(struct gpu *gpu)
{
	mutex_lock(&gpu->lock);
	gpu->epoch++;
	xa_destroy(&gpu->registers);
	memset(&gpu->id, 0, sizeof(gpu->id));
	gpu->identified = false;
	gpu->has_fs = false;
	gpu->wake_err = 0;
	gp_netlink_changed(gpu);
	mutex_unlock(&gpu->lock);
}
