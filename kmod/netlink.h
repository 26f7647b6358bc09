/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The face in generic netlink; see netlink.c and Documentation/netlink/specs/gpupart.yaml. */
#ifndef GPUPART_KMOD_NETLINK_H
#define GPUPART_KMOD_NETLINK_H

int netlink_face_init(void);
void netlink_face_fini(void);

#endif
