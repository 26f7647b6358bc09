/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#ifndef GPUPART_KMOD_SCHEDULING_H
#define GPUPART_KMOD_SCHEDULING_H

#include <linux/proc_fs.h>

struct netlink_callback;
struct sk_buff;

extern const struct proc_ops scheduling_runlists_ops;	/* a file's data is its struct gpu */

/* -EPERM without CAP_PERFMON or CAP_SYS_ADMIN. */
int scheduling_runlist_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int scheduling_channel_dumpit(struct sk_buff *skb, struct netlink_callback *cb);

#endif
