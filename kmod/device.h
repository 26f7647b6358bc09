/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The GPUs that are there, their lifetime, the lock under which one is read and what
 * was read of it before. Providers (pci.c, platform.c) add and remove them; proc.c, netlink.c and
 * scheduling.c show them.
 */
#ifndef GPUPART_KMOD_DEVICE_H
#define GPUPART_KMOD_DEVICE_H

#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/xarray.h>
#include "text.h"

struct netlink_callback;
struct netlink_ext_ack;
struct nlattr;
struct sk_buff;

/* How a provider lets a GPU be read. Called under the GPU's lock. */
struct gpu_ops {
	const char *bus;	/* the name of the page of what the bus knows */
	/*
	 * Makes reads possible until end(), of the @whole BAR0 or of NV_BAR0_USED; with
	 * @wake it is woken for that. -EAGAIN it sleeps and was not to be woken, -EHOSTDOWN it
	 * does not wake, -ENXIO its registers are not decoded, -EBUSY it is being reset, -EPERM
	 * it is a virtual machine's, -ENODEV it is gone, -EOPNOTSUPP the whole is not offered.
	 */
	int (*begin)(void *private, bool wake, bool whole);
	u32 (*rd32)(void *private, u32 offset);
	void (*end)(void *private);
	/* What the bus knows of it, without a register read. */
	void (*describe)(void *private, struct text *text);
	/* The last reference is gone. */
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
	void *proc;			/* proc.c's */

	struct mutex lock;		/* what follows, and every read */
	bool gone;
	struct xarray registers;	/* by offset: value and age, see device.c */
	struct gpu_id id;
	bool identified;
	struct gpu_floorsweep fs;
	u32 fs_stamp;
	bool has_fs, known, announced;
};

/* One user of one GPU's registers at a time, from open to close. */
struct gpu_session {
	struct topo_reader reader;
	struct gpu *gpu;
	bool awake, asleep;	/* begun; not begun, since what is known suffices */
	bool no_wake;	/* reads a GPU only while it is awake, in the whole of BAR0 */
};

/*
 * -ENODEV: gone, -EINTR: the caller is being killed. Does not wake the GPU: only a read that is
 * not cached does.
 */
int gp_gpu_open(struct gpu *gpu, struct gpu_session *session);
void gp_gpu_close(struct gpu_session *session);

/* 0 with gpu->id filled in (its chip NULL if refused), or why not. */
int gp_gpu_identify(struct gpu_session *session);

/*
 * 0 with gpu->fs filled in: as known if nothing newer can be had without a wake-up. -EOPNOTSUPP:
 * refused chip.
 */
int gp_gpu_topology(struct gpu_session *session);

/* The provider's: adds a GPU, or ERR_PTR. @private is released with it, also on failure. */
struct gpu *gp_gpu_add(const struct gpu_ops *ops, void *private, const char *bus_name);
/* No read is made after it returns. */
void gp_gpu_remove(struct gpu *gpu);
/* Reads what is not known of it. */
void gp_gpu_read(struct gpu *gpu);
/* What was read may no longer hold: another driver took it. */
void gp_gpu_forget(struct gpu *gpu);

/* The first GPU of at least this @index, and of this @bus_name if not NULL, with a reference. */
struct gpu *gp_gpu_get(unsigned int index, const char *bus_name);
/* Changes, and is never 0, whenever a GPU comes or goes. */
unsigned int gp_gpu_generation(void);
void gp_gpu_put(struct gpu *gpu);

/* pci.c, platform.c. */
int gp_pci_gpus_init(void);
void gp_pci_gpus_fini(void);
int gp_platform_gpus_init(void);
void gp_platform_gpus_fini(void);

/* proc.c: /proc; see Documentation/internals/abi-proc.md. Nothing of a GPU was read yet. */
int gp_proc_init(void);
void gp_proc_fini(void);
void gp_proc_added(struct gpu *gpu);
/* The fuses are known for the first time; under gpu->lock. */
void gp_proc_known(struct gpu *gpu);
void gp_proc_removed(struct gpu *gpu);

/* netlink.c: Documentation/netlink/specs/gpupart.yaml. What could be read at once was read. */
int gp_netlink_init(void);
void gp_netlink_fini(void);
void gp_netlink_added(struct gpu *gpu);
/* After that: what is known is another, or nothing any more; under gpu->lock. */
void gp_netlink_changed(struct gpu *gpu);
void gp_netlink_removed(struct gpu *gpu);
/* The GPU that a request names, with a reference, or ERR_PTR with the sentence set. */
struct gpu *gp_netlink_named_gpu(struct nlattr *index, struct nlattr *bus_name,
				 struct netlink_ext_ack *extack);
/* A dump's next message. */
void *gp_netlink_dump_header(struct sk_buff *skb, struct netlink_callback *cb, u8 cmd);
int gp_netlink_put_number(struct sk_buff *skb, int attribute, int number);	/* none below 0 */
/* The sentence of why a session could not read. */
void gp_netlink_fault(struct netlink_ext_ack *extack, const struct topo_fault *fault);

/* scheduling.c. */
int gp_scheduling_runlists_page(struct gpu *gpu, struct text *text);
/* -EPERM without CAP_PERFMON or CAP_SYS_ADMIN. */
int gp_scheduling_runlist_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int gp_scheduling_channel_dumpit(struct sk_buff *skb, struct netlink_callback *cb);

#endif
