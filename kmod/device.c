// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * List, lifetime, lock and cache. A GPU is {name, rd32, private}; nothing here knows
 * PCI, /proc or netlink.
 */
#include <linux/err.h>
#include <linux/slab.h>
#include "device.h"
#include "regs.h"

#if BITS_PER_LONG < 64
#error "an xarray's entry must hold a whole register"
#endif

#define MAX_FACES 2

static const struct gpu_face *faces[MAX_FACES];
static unsigned int nr_faces;

static LIST_HEAD(gpus);			/* by ascending index */
static unsigned int generation = 1;
static DEFINE_MUTEX(gpus_lock);		/* both; no other lock is taken inside it */

void gpu_register_face(const struct gpu_face *face)
{
	faces[nr_faces++] = face;
}

/* ---------------------------------------------------------------- sessions */

static bool in_table(u32 offset, const struct chip_cell *cell, u32 at)
{
	return cell && offset >= at && offset < at + 4u * cell->nr;
}

/*
 * Time goes on, and what graphics firmware loads can be loaded anew: only topo.c can
 * tell if it is good.
 */
static bool changes(const struct gpu *gpu, u32 offset)
{
	const struct chip_cell *cwd, *ctl, *map;

	if (offset == NV_PTIMER_TIME_0 || offset == NV_PTIMER_TIME_1 ||
	    offset == NV_PGRAPH_PRI_CWD_FS)
		return true;
	if (!gpu->id.chip)
		return false;
	ctl = chip_cell(gpu->id.chip, CHIP_CWD_CTL);
	if (ctl && (offset == ctl->at || offset == ctl->at2 || offset == ctl->at2 + 4))
		return true;
	cwd = chip_cell(gpu->id.chip, CHIP_CWD);
	map = chip_cell(gpu->id.chip, CHIP_GPC_MAP);
	return in_table(offset, cwd, cwd ? cwd->at : 0) ||
	       in_table(offset, cwd, cwd ? cwd->at2 : 0) ||
	       (map && map->at && offset >= map->at && offset < map->at + 4 * GPUPART_MAX_GPCS);
}

static int session_rd32(struct topo_reader *reader, u32 offset, u32 *value)
{
	struct gpu_session *session = container_of(reader, struct gpu_session, reader);
	struct gpu *gpu = session->gpu;
	void *known = xa_load(&gpu->good, offset);
	int err;

	if (known && !session->live) {
		*value = xa_to_value(known);
		return 0;
	}
	if (!session->awake) {
		if (!session->no_wake)
			err = gpu->ops->begin(gpu->private);
		else
			err = gpu->ops->begin_awake ? gpu->ops->begin_awake(gpu->private) :
						      -EOPNOTSUPP;
		if (err)
			return err;
		session->awake = true;
	}
	*value = gpu->ops->rd32(gpu->private, offset);
	/* No memory to remember it costs another read, no more. */
	if (!session->live && !changes(gpu, offset) &&
	    (!topo_bad_read(*value) || topo_bad_for_good(*value)))
		xa_store(&gpu->good, offset, xa_mk_value(*value), GFP_KERNEL | __GFP_NOWARN);
	return 0;
}

int gpu_open(struct gpu *gpu, struct gpu_session *session)
{
	int err;

	memset(session, 0, sizeof(*session));
	session->reader.rd32 = session_rd32;
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

void gpu_close(struct gpu_session *session)
{
	struct gpu *gpu = session->gpu;

	if (session->awake)
		gpu->ops->end(gpu->private);
	mutex_unlock(&gpu->lock);
}

int gpu_identify(struct gpu_session *session)
{
	struct gpu *gpu = session->gpu;
	int err;

	if (gpu->identified)
		return 0;
	err = topo_identify(&session->reader, &gpu->id);
	if (err)
		gpu->id.chip = NULL;
	else
		gpu->identified = true;
	return err;
}

int gpu_topology(struct gpu_session *session)
{
	struct gpu *gpu = session->gpu;
	unsigned int i;
	int err;

	err = gpu_identify(session);
	if (err)
		return err;
	if (!gpu->id.chip)
		return -EOPNOTSUPP;
	if (gpu->has_fs && !gpu->fs.retry)
		return 0;
	err = topo_read(gpu->id.chip, &session->reader, &gpu->fs);
	gpu->has_fs = !err;
	if (err || gpu->known)
		return err;
	gpu->known = true;
	for (i = 0; i < nr_faces; i++)
		if (faces[i]->known)
			faces[i]->known(gpu);
	return 0;
}

/* -------------------------------------------------------------------- list */

static void gpu_free(struct kref *kref)
{
	struct gpu *gpu = container_of(kref, struct gpu, kref);

	gpu->ops->release(gpu->private);
	xa_destroy(&gpu->good);
	mutex_destroy(&gpu->lock);
	kfree(gpu);
}

void gpu_put(struct gpu *gpu)
{
	kref_put(&gpu->kref, gpu_free);
}

struct gpu *gpu_get(unsigned int index)
{
	struct gpu *gpu, *found = NULL;

	mutex_lock(&gpus_lock);
	list_for_each_entry(gpu, &gpus, node) {
		if (gpu->index < index)
			continue;
		kref_get(&gpu->kref);
		found = gpu;
		break;
	}
	mutex_unlock(&gpus_lock);
	return found;
}

unsigned int gpu_generation(void)
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

struct gpu *gpu_get_by_bus_name(const char *bus_name)
{
	struct gpu *gpu, *found = NULL;

	mutex_lock(&gpus_lock);
	list_for_each_entry(gpu, &gpus, node) {
		if (strcmp(gpu->bus_name, bus_name))
			continue;
		kref_get(&gpu->kref);
		found = gpu;
		break;
	}
	mutex_unlock(&gpus_lock);
	return found;
}

struct gpu *gpu_add(const struct gpu_ops *ops, void *private, const char *bus_name)
{
	struct gpu *gpu = kzalloc(sizeof(*gpu), GFP_KERNEL);
	struct gpu_session session;
	struct list_head *after = &gpus;
	struct gpu *other;
	unsigned int i;

	if (!gpu) {
		ops->release(private);
		return ERR_PTR(-ENOMEM);
	}
	kref_init(&gpu->kref);
	mutex_init(&gpu->lock);
	xa_init(&gpu->good);
	gpu->ops = ops;
	gpu->private = private;
	strscpy(gpu->bus_name, bus_name, sizeof(gpu->bus_name));

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

	for (i = 0; i < nr_faces; i++)
		if (faces[i]->added)
			faces[i]->added(gpu);
	/* What cannot be read now is read when somebody asks. */
	if (!gpu_open(gpu, &session)) {
		gpu_topology(&session);
		gpu_close(&session);
	}
	for (i = 0; i < nr_faces; i++)
		if (faces[i]->present)
			faces[i]->present(gpu);
	return gpu;
}

void gpu_remove(struct gpu *gpu)
{
	unsigned int i;

	mutex_lock(&gpu->lock);
	gpu->gone = true;
	mutex_unlock(&gpu->lock);
	for (i = 0; i < nr_faces; i++)
		if (faces[i]->removed)
			faces[i]->removed(gpu);
	/* Its number is free only now that nobody shows it. */
	mutex_lock(&gpus_lock);
	list_del(&gpu->node);
	list_changed();
	mutex_unlock(&gpus_lock);
	gpu_put(gpu);
}

void gpu_forget(struct gpu *gpu)
{
	mutex_lock(&gpu->lock);
	xa_destroy(&gpu->good);
	gpu->fs.retry = true;
	mutex_unlock(&gpu->lock);
}
