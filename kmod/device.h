/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Declares the list of GPUs. Each GPU has a lifetime, a lock for reading it, and the known
 * values of its registers. Providers (pci.c, platform.c) add and remove GPUs. proc.c, netlink.c
 * and scheduling.c show the GPUs to user space.
 */
#ifndef GPUPART_KMOD_DEVICE_H
#define GPUPART_KMOD_DEVICE_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include "text.h"

struct device;
struct netlink_callback;
struct netlink_ext_ack;
struct nlattr;
struct sk_buff;

/*
 * The functions with which a provider reads a GPU. All of them except release() are called under
 * gpu->lock.
 */
struct gpu_ops {
	const char *bus;	/* name of the page that describe() writes */
	/*
	 * Makes reads possible until end(). If @whole is true, the whole BAR0 can be read.
	 * Otherwise only its first NV_BAR0_USED bytes can be read. It never wakes the GPU.
	 * Returns 0 or: -EAGAIN: the GPU sleeps. -EHOSTDOWN: the GPU sleeps, but runtime PM does
	 * not know this. -ENXIO: its registers are not decoded. -EBUSY: it is being reset.
	 * -EPERM: it is reserved for a virtual machine. -ENODEV: it was removed. -EOPNOTSUPP:
	 * the whole BAR0 cannot be mapped.
	 */
	int (*begin)(void *private, bool whole);
	u32 (*rd32)(void *private, u32 offset);
	void (*end)(void *private);
	/* Writes what the bus knows about the GPU. It reads no register. */
	void (*describe)(void *private, struct text *text);
	/* Frees @private after the last reference was put. */
	void (*release)(void *private);
};

struct gpu {
	/* in the list, which is sorted by index; see gp_gpu_get() */
	struct list_head node;
	struct kref kref;
	unsigned int index;		/* the N of /proc/gpuN */
	char name[16];
	char bus_name[32];		/* identifies the GPU */
	const struct gpu_ops *ops;
	void *private;
	struct device *dev;		/* the provider holds a reference until release() */
	/*
	 * @new: the GPU must be started. @again: the GPU must be read again if its topology is
	 * still unknown.
	 */
	bool new, again;
	void *proc;			/* only proc.c uses it */

	/*
	 * Taken before @lock. The task that holds this lock wakes the GPU. A task that waits for
	 * this lock can be killed.
	 */
	struct mutex wake_lock;
	struct work_struct wake_work;	/* wakes the GPU and reads it for netlink */

	/* protects the members below and all reads of the GPU; never held during a wake-up */
	struct mutex lock;
	bool gone;
	unsigned int epoch;		/* number of calls of gp_gpu_forget() */
	/* result of the last wake-up, which was made at @wake_stamp */
	int wake_err;
	u32 wake_stamp;
	struct xarray registers;	/* by offset: value and time of the read, see device.c */
	struct gpu_id id;
	bool identified;
	struct gpu_floorsweep fs;
	u32 fs_stamp;
	bool has_fs, known, announced;
};

/* Says what a session does when it needs a register while the GPU sleeps. */
enum gpu_wake {
	GPU_WAKE,		/* wakes the GPU and waits */
	GPU_WAKE_LATER,		/* lets a worker wake and read the GPU, and fails with -EAGAIN */
	GPU_LEAVE_ASLEEP,	/* fails with -EHOSTDOWN */
};

/*
 * The access to a GPU's registers from gp_gpu_open() to gp_gpu_close(). The caller holds gpu->lock
 * during this time, except during a wake-up.
 */
struct gpu_session {
	struct topo_reader reader;
	struct gpu *gpu;
	enum gpu_wake wake;
	bool whole;		/* the session reads the whole of BAR0 */
	bool awake;		/* begin() succeeded */
	bool woken;		/* the GPU does not sleep until the session ends */
	/* begin() failed because the GPU sleeps, so the session uses known values */
	bool asleep;
	int err;		/* error of begin() or of a wake-up, for later reads */
};

/*
 * Returns 0 or: -ENODEV: the GPU was removed. -EINTR: the caller is being killed. The GPU is
 * woken only when the session reads a register whose value is unknown. After the call the caller
 * may change @session->wake and @session->whole.
 */
int gp_gpu_open(struct gpu *gpu, struct gpu_session *session);
void gp_gpu_close(struct gpu_session *session);

/* Fills in gpu->id. If the chip is refused, gpu->id.chip is NULL. */
int gp_gpu_identify(struct gpu_session *session);

/*
 * Fills in gpu->fs. While the GPU sleeps, the known topology is kept. Returns -EOPNOTSUPP if the
 * chip is refused.
 */
int gp_gpu_topology(struct gpu_session *session);

/*
 * Adds a GPU to the list. Returns the GPU or ERR_PTR. If this function fails, it releases
 * @private. Otherwise @private is released together with the GPU.
 */
struct gpu *gp_gpu_add(const struct gpu_ops *ops, void *private, struct device *dev);
/*
 * Reads and announces the GPUs that the provider has added. This can take seconds, so the
 * provider must hold no lock.
 */
void gp_gpu_start_new(const struct gpu_ops *ops);
/* Reads again each GPU whose topology is still unknown. */
void gp_gpu_read_again(const struct gpu_ops *ops);
/*
 * Removes a GPU. After this function has returned, no register of the GPU is read. The function
 * may wait for the end of a wake-up, so the provider must hold no lock.
 */
void gp_gpu_remove(struct gpu *gpu);
/* Drops all known values. Called when the GPU has got a driver or has lost its driver. */
void gp_gpu_forget(struct gpu *gpu);

/*
 * Returns the first GPU whose index is at least @index. If @bus_name is not NULL, the GPU must
 * also have this name. The caller gets a reference.
 */
struct gpu *gp_gpu_get(unsigned int index, const char *bus_name);
/* Returns a number that changes when a GPU is added or removed. It is never 0. */
unsigned int gp_gpu_generation(void);
void gp_gpu_put(struct gpu *gpu);

/* Functions of pci.c and platform.c. */
int gp_pci_gpus_init(void);
void gp_pci_gpus_fini(void);
int gp_platform_gpus_init(void);
void gp_platform_gpus_fini(void);

/* Functions of proc.c, see Documentation/internals/abi-proc.md. */
int gp_proc_init(void);
void gp_proc_fini(void);
/* Creates the directory of a GPU. No register of the GPU was read yet. */
void gp_proc_added(struct gpu *gpu);
/*
 * Adds the files that depend on the chip and its fuses. Called once for each GPU, under gpu->lock.
 */
void gp_proc_known(struct gpu *gpu);
void gp_proc_removed(struct gpu *gpu);

/* Functions of netlink.c, see Documentation/netlink/specs/gpupart.yaml. */
int gp_netlink_init(void);
void gp_netlink_fini(void);
/*
 * These functions send notices to the multicast group "monitor". The first two of these
 * functions are called under gpu->lock.
 */
void gp_netlink_added(struct gpu_session *session);
void gp_netlink_changed(struct gpu *gpu);
void gp_netlink_removed(struct gpu *gpu);
/*
 * Takes a reference to the GPU that a request names, and returns this GPU. If this fails,
 * returns ERR_PTR and sets the error message.
 */
struct gpu *gp_netlink_named_gpu(struct nlattr *index, struct nlattr *bus_name,
				 struct netlink_ext_ack *extack);
/* Begins the next message of a dump. */
void *gp_netlink_dump_header(struct sk_buff *skb, struct netlink_callback *cb, u8 cmd);
/*
 * Ends the message that begins with @header. If @full is true, removes the message instead and
 * returns -EMSGSIZE.
 */
int gp_netlink_end(struct sk_buff *skb, void *header, bool full);
/* Adds @number to the message. If @number is negative, adds nothing. */
int gp_netlink_put_number(struct sk_buff *skb, int attribute, int number);
/* Sets the error message for a session that could not read a register. */
void gp_netlink_fault(struct netlink_ext_ack *extack, const struct topo_fault *fault);

/* Functions of scheduling.c. */
int gp_scheduling_runlists_page(struct gpu *gpu, struct text *text);
/* These functions return -EPERM if the caller has neither CAP_PERFMON nor CAP_SYS_ADMIN. */
int gp_scheduling_runlist_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int gp_scheduling_channel_dumpit(struct sk_buff *skb, struct netlink_callback *cb);

#endif
