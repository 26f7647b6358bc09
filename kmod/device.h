/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Declares the list of GPUs. A GPU has a lifetime, a lock for reads, and the known values of its
 * registers. Providers (pci.c, platform.c) add and remove GPUs. The files proc.c, netlink.c and
 * scheduling.c show the GPUs to user space.
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

/* The functions of a provider. The caller holds gpu->lock for all functions except release(). */
struct gpu_ops {
	const char *bus;	/* name of the page that describe() writes */
	/*
	 * Makes reads possible until end(). If @whole is true, the whole BAR0 can be read.
	 * Otherwise the first NV_BAR0_USED bytes can be read. Never wakes the GPU. Returns 0 or an
	 * error. Error -EAGAIN: the GPU sleeps. Error -EHOSTDOWN: the GPU sleeps, but runtime PM
	 * does not know this. Error -ENXIO: the GPU does not decode its registers. Error -EBUSY:
	 * the GPU is being reset. Error -EPERM: the GPU is reserved for a virtual machine. Error
	 * -ENODEV: the GPU was removed. Error -EOPNOTSUPP: the whole BAR0 cannot be mapped.
	 */
	int (*begin)(void *private, bool whole);
	u32 (*rd32)(void *private, u32 offset);
	void (*end)(void *private);
	/* Writes a page with the data of the bus about the GPU. Reads no register. */
	void (*describe)(void *private, struct text *text);
	/* Frees @private. Called when the last reference is put. */
	void (*release)(void *private);
};

struct gpu {
	/* in the list, sorted by index; see gp_gpu_get() */
	struct list_head node;
	struct kref kref;
	unsigned int index;		/* the N of /proc/gpuN */
	char name[16];
	char bus_name[32];		/* identifies the GPU */
	const struct gpu_ops *ops;
	void *private;
	struct device *dev;		/* the provider holds a reference until release() */
	/*
	 * If @new is true, the GPU must be started. If @again is true and the topology is still
	 * unknown, the GPU must be read again.
	 */
	bool new, again;
	void *proc;			/* only proc.c uses it */

	/*
	 * This lock is taken before @lock. The task that holds this lock wakes the GPU. If a task
	 * waits for this lock, the task can be killed.
	 */
	struct mutex wake_lock;
	struct work_struct wake_work;	/* wakes the GPU and reads it for netlink */

	/* protects all reads and the members below; not held during a wake-up */
	struct mutex lock;
	bool gone;
	unsigned int epoch;		/* number of calls of gp_gpu_forget() */
	/* result and time of the last wake-up */
	int wake_err;
	u32 wake_stamp;
	struct xarray registers;	/* by offset: value and time of the read, see device.c */
	struct gpu_id id;
	bool identified;
	struct gpu_floorsweep fs;
	u32 fs_stamp;
	bool has_fs, known, announced;
};

/* If a session needs a register and the GPU sleeps, this value says what happens. */
enum gpu_wake {
	GPU_WAKE,		/* the session wakes the GPU and waits */
	GPU_WAKE_LATER,		/* a worker wakes and reads the GPU; the read fails with -EAGAIN */
	GPU_LEAVE_ASLEEP,	/* the read fails with -EHOSTDOWN */
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
	bool woken;		/* the GPU stays awake until the session ends */
	/* the GPU sleeps, so the session uses known values */
	bool asleep;
	int err;		/* error of begin() or of a wake-up, for later reads */
};

/*
 * Opens a session. If the GPU was removed, returns -ENODEV. If the caller is being killed, returns
 * -EINTR. Otherwise returns 0. Does not wake the GPU: a later read of a register with an unknown
 * value may wake it. After the call, the caller may change @session->wake and @session->whole.
 */
int gp_gpu_open(struct gpu *gpu, struct gpu_session *session);
void gp_gpu_close(struct gpu_session *session);

/* Fills in gpu->id. If the chip is refused, sets gpu->id.chip to NULL. */
int gp_gpu_identify(struct gpu_session *session);

/*
 * Fills in gpu->fs. While the GPU sleeps, keeps the known topology. If the chip is refused, returns
 * -EOPNOTSUPP.
 */
int gp_gpu_topology(struct gpu_session *session);

/*
 * Adds a GPU to the list. Returns the GPU. After an error, releases @private and returns ERR_PTR.
 * Otherwise @private is released together with the GPU.
 */
struct gpu *gp_gpu_add(const struct gpu_ops *ops, void *private, struct device *dev);
/*
 * Reads and announces the GPUs that the provider has added. This function can take seconds, so the
 * provider must hold no lock.
 */
void gp_gpu_start_new(const struct gpu_ops *ops);
/* If the topology of a GPU is still unknown, reads the GPU again. */
void gp_gpu_read_again(const struct gpu_ops *ops);
/*
 * Removes a GPU. After this function returns, no register of the GPU is read. This function may
 * wait for the end of a wake-up, so the provider must hold no lock.
 */
void gp_gpu_remove(struct gpu *gpu);
/* Drops all known values. Called after a driver was bound to the GPU or unbound from the GPU. */
void gp_gpu_forget(struct gpu *gpu);

/*
 * Returns the GPU with the lowest index that is not below @index. If @bus_name is not NULL, the GPU
 * must also have this name. The caller gets a reference.
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
/* Creates the directory of a GPU. At this time, no register of the GPU was read. */
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
 * Finds the GPU that a request names. Takes a reference to this GPU and returns the GPU. After an
 * error, sets the error message and returns ERR_PTR.
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
/*
 * The caller needs CAP_PERFMON or CAP_SYS_ADMIN. Without these capabilities, the functions return
 * -EPERM.
 */
int gp_scheduling_runlist_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int gp_scheduling_channel_dumpit(struct sk_buff *skb, struct netlink_callback *cb);

#endif
