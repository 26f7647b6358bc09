/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Hides the differences between the kernel versions 5.10 to 7.3. Some files are built for the
 * kernel and for user space. For these files, this header also hides the differences between the
 * kernel and user space. No other file checks the version of the kernel.
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

/* Linux 5.17 renamed this function. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 17, 0)
#define pde_data(inode) PDE_DATA(inode)
#endif

/* Before Linux 6.2, the message of an extended ack must be a constant string. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 2, 0)
#define compat_extack(extack, constant, fmt, ...) do { \
	if (extack) \
		(extack)->_msg = (constant); \
} while (0)
#else
#define compat_extack(extack, constant, fmt, ...) NL_SET_ERR_MSG_FMT(extack, fmt, ##__VA_ARGS__)
#endif

/* In Linux 6.6, the attributes of a dump moved to a different struct. */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 6, 0)
#define compat_dump_attrs(cb) (genl_dumpit_info(cb)->attrs)
#else
#define compat_dump_attrs(cb) (genl_info_dump(cb)->attrs)
#endif

/*
 * Some drivers can give their device to user space or to a guest. Since Linux 5.19, such drivers
 * have a flag.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(5, 19, 0)
#define compat_managed_dma(driver) false
#else
#define compat_managed_dma(driver) (to_pci_driver(driver)->driver_managed_dma)
#endif

/*
 * Since Linux 6.1, the kernel compares the command number of a request with this number. If the
 * command number is not smaller, the reserved bytes of the request must be 0.
 */
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 1, 0)
#define COMPAT_RESV_START_OP(cmd)
#else
#define COMPAT_RESV_START_OP(cmd) .resv_start_op = (cmd),
#endif

/*
 * In Linux 6.12 and in some older stable kernels, genlmsg_multicast_allns() has no flags and takes
 * the RCU lock itself. In all other kernels, the caller takes the RCU lock for the list of
 * namespaces. Kbuild reads the kernel's header and finds out which rule applies.
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
 * Linux 6.9 removed the second argument. Before, the argument true meant that a device with the
 * usage count 0 is accepted, too.
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
