/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The list of GPUs, their lifetime, the lock under which a GPU is read, and the known values of its
 * registers. Providers (pci.c, platform.c) add and remove GPUs; proc.c, netlink.c and scheduling.c
 * show them.
 */
#ifndef GPUPART_KMOD_DEVICE_H
#define GPUPART_KMOD_DEVICE_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include "text.h"

struct netlink_callback;
struct netlink_ext_ack;
struct nlattr;
struct sk_buff;

/* How a provider reads a GPU. All but wake() and release() are called under gpu->lock. */
struct gpu_ops {
	const char *bus;	/* name of the page that describe() fills */
	/*
	 * Resumes the GPU through runtime PM until rest(): 0 or -EHOSTDOWN. May sleep for seconds.
	 * Called under gpu->wake_lock only.
	 */
	int (*wake)(void *private);
	void (*rest)(void *private);
	/*
	 * Makes reads of the @whole BAR0, or of NV_BAR0_USED, possible until end(). Never wakes the
	 * GPU. -EAGAIN it sleeps, -EHOSTDOWN it sleeps and runtime PM does not know of it, -ENXIO
	 * its registers are not decoded, -EBUSY it is being reset, -EPERM it is reserved for a
	 * virtual machine, -ENODEV it is gone, -EOPNOTSUPP the whole BAR0 cannot be mapped.
	 */
	int (*begin)(void *private, bool whole);
	u32 (*rd32)(void *private, u32 offset);
	void (*end)(void *private);
	/* Writes what the bus knows of the GPU, without a register read. */
	void (*describe)(void *private, struct text *text);
	/* Frees @private after the last reference was put. */
	void (*release)(void *private);
};

struct gpu {
	struct list_head node;		/* in the list, by index; see gp_gpu_get() */
	struct kref kref;
	unsigned int index;		/* N of /proc/gpuN */
	char name[16];
	char bus_name[32];		/* its identity */
	const struct gpu_ops *ops;
	void *private;
	void *proc;			/* used by proc.c only */

	/* Taken outside of @lock: one task wakes the GPU, the others can be killed. */
	struct mutex wake_lock;
	struct work_struct wake_work;	/* wakes and reads it for netlink */

	struct mutex lock;		/* protects the rest, and every read; no wake-up under it */
	bool gone;
	unsigned int epoch;		/* counts gp_gpu_forget() */
	int wake_err;			/* of the last wake-up, made at wake_stamp */
	u32 wake_stamp;
	struct xarray registers;	/* by offset: value and age, see device.c */
	struct gpu_id id;
	bool identified;
	struct gpu_floorsweep fs;
	u32 fs_stamp;
	bool has_fs, known, announced;
};

/* What a session does if it needs a register of a GPU that sleeps. */
enum gpu_wake {
	GPU_WAKE,		/* wakes it and waits */
	GPU_WAKE_LATER,		/* has it woken and read, and fails with -EAGAIN */
	GPU_LEAVE_ASLEEP,	/* fails with -EHOSTDOWN */
};

/*
 * A user of a GPU's registers, from gp_gpu_open() to gp_gpu_close(). Holds gpu->lock, except during
 * a wake-up.
 */
struct gpu_session {
	struct topo_reader reader;
	struct gpu *gpu;
	enum gpu_wake wake;
	bool whole;		/* reads the whole of BAR0 */
	bool awake;		/* begin() succeeded */
	bool woken;		/* wake() succeeded */
	bool asleep;		/* begin() failed because it sleeps: known values are used */
	int err;		/* of begin() or wake(), for the reads that follow */
};

/*
 * -ENODEV: the GPU is gone, -EINTR: the caller is being killed. The GPU is woken only by a read of
 * a register that is not known. The caller may then change @session's wake and whole.
 */
int gp_gpu_open(struct gpu *gpu, struct gpu_session *session);
void gp_gpu_close(struct gpu_session *session);

/* Fills in gpu->id; its chip is NULL if the chip is refused. */
int gp_gpu_identify(struct gpu_session *session);

/* Fills in gpu->fs. The known one is kept while the GPU sleeps. -EOPNOTSUPP: refused chip. */
int gp_gpu_topology(struct gpu_session *session);

/* Adds a GPU to the list, or returns ERR_PTR. @private is released with it, or on failure. */
struct gpu *gp_gpu_add(const struct gpu_ops *ops, void *private, const char *bus_name);
/* Reads an added GPU and announces it. Can take seconds: the provider holds no lock. */
void gp_gpu_start(struct gpu *gpu);
/* No register is read after it returns. Waits for a wake-up: the provider holds no lock. */
void gp_gpu_remove(struct gpu *gpu);
/* Reads the topology if it is not known. Can take seconds. */
void gp_gpu_read(struct gpu *gpu);
/* Drops all known values: another driver controls the GPU now. */
void gp_gpu_forget(struct gpu *gpu);

/* The first GPU of at least this @index, and of this @bus_name if not NULL, with a reference. */
struct gpu *gp_gpu_get(unsigned int index, const char *bus_name);
/* Changes when a GPU is added or removed; never 0. */
unsigned int gp_gpu_generation(void);
void gp_gpu_hold(struct gpu *gpu);
void gp_gpu_put(struct gpu *gpu);

/* pci.c, platform.c. */
int gp_pci_gpus_init(void);
void gp_pci_gpus_fini(void);
int gp_platform_gpus_init(void);
void gp_platform_gpus_fini(void);

/* proc.c, see Documentation/internals/abi-proc.md. */
int gp_proc_init(void);
void gp_proc_fini(void);
/* Creates the directory of a GPU of which no register was read. */
void gp_proc_added(struct gpu *gpu);
/* Adds the files that depend on the chip and its fuses. Called once, under gpu->lock. */
void gp_proc_known(struct gpu *gpu);
void gp_proc_removed(struct gpu *gpu);

/* netlink.c, see Documentation/netlink/specs/gpupart.yaml. */
int gp_netlink_init(void);
void gp_netlink_fini(void);
/* Notices to the group "monitor"; the first two are sent under gpu->lock. */
void gp_netlink_added(struct gpu_session *session);
void gp_netlink_changed(struct gpu *gpu);
void gp_netlink_removed(struct gpu *gpu);
/* The GPU that a request names, with a reference, or ERR_PTR with the error message set. */
struct gpu *gp_netlink_named_gpu(struct nlattr *index, struct nlattr *bus_name,
				 struct netlink_ext_ack *extack);
/* Begins the next message of a dump. */
void *gp_netlink_dump_header(struct sk_buff *skb, struct netlink_callback *cb, u8 cmd);
/* Adds @number, or nothing if it is below 0. */
int gp_netlink_put_number(struct sk_buff *skb, int attribute, int number);
/* Sets the error message of a session that could not read. */
void gp_netlink_fault(struct netlink_ext_ack *extack, const struct topo_fault *fault);

/* scheduling.c. */
int gp_scheduling_runlists_page(struct gpu *gpu, struct text *text);
/* -EPERM without CAP_PERFMON or CAP_SYS_ADMIN. */
int gp_scheduling_runlist_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int gp_scheduling_channel_dumpit(struct sk_buff *skb, struct netlink_callback *cb);

#endif
