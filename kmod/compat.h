/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Differences between the kernels from 5.10 to 7.3, and between the kernel and user space for the
 * files that are built for both. No other file checks the version of the kernel.
 */
#ifndef GPUPART_KMOD_COMPAT_H
#define GPUPART_KMOD_COMPAT_H

#ifdef __KERNEL__

#include <linux/bitops.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/pm_runtime.h>
#include <linux/string.h>
#include <linux/types.h>
#include <linux/version.h>

#define popcount32(x) hweight32(x)

/* Renamed in 5.17. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 17, 0)
#define pde_data(inode) PDE_DATA(inode)
#endif

/* Before 6.2 the message of an extended ack must be a constant. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define compat_extack(extack, constant, fmt, ...) do { \
	if (extack) \
		(extack)->_msg = (constant); \
} while (0)
#else
#define compat_extack(extack, constant, fmt, ...) NL_SET_ERR_MSG_FMT(extack, fmt, ##__VA_ARGS__)
#endif

/* 6.6 moved the attributes of a dump to another struct. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
#define compat_dump_attrs(cb) (genl_dumpit_info(cb)->attrs)
#else
#define compat_dump_attrs(cb) (genl_info_dump(cb)->attrs)
#endif

/* Since 5.19 a flag marks drivers that can give their device to user space or to a guest. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 19, 0)
#define compat_managed_dma(driver) false
#else
#define compat_managed_dma(driver) (to_pci_driver(driver)->driver_managed_dma)
#endif

/* Since 6.1: in requests with this command or a later one, the reserved bytes must be 0. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#define COMPAT_RESV_START_OP(cmd)
#else
#define COMPAT_RESV_START_OP(cmd) .resv_start_op = (cmd),
#endif

/*
 * 6.12, and some stable kernels before it, removed the flags, and take the RCU lock themselves. In
 * other kernels the caller takes this lock for the list of namespaces. Kbuild looks at the header
 * to find out which of the two applies.
 */
#ifdef COMPAT_MULTICAST_HAS_FLAGS
#define compat_multicast_allns(family, skb, group) do { \
	rcu_read_lock(); \
	genlmsg_multicast_allns(family, skb, 0, group, GFP_ATOMIC); \
	rcu_read_unlock(); \
} while (0)
#else
#define compat_multicast_allns(family, skb, group) genlmsg_multicast_allns(family, skb, 0, group)
#endif

/*
 * 6.9 removed the second argument. With true, the function also accepted a device whose usage count
 * is 0.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 9, 0)
#define compat_get_if_active(dev) pm_runtime_get_if_active(dev, true)
#else
#define compat_get_if_active(dev) pm_runtime_get_if_active(dev)
#endif

#else /* user space */

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef int16_t s16;
typedef uint32_t u32;
typedef uint64_t u64;

#define popcount32(x) ((unsigned int)__builtin_popcount(x))
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#ifndef __printf
#define __printf(fmt, args) __attribute__((format(printf, fmt, args)))
#endif

#endif

#endif
