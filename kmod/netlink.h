/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The face in generic netlink; see netlink.c and Documentation/netlink/specs/gpupart.yaml. */
#ifndef GPUPART_KMOD_NETLINK_H
#define GPUPART_KMOD_NETLINK_H

struct gpu;
struct netlink_ext_ack;
struct nlattr;
struct topo_fault;

int netlink_face_init(void);
void netlink_face_fini(void);

/* The GPU that a request names, with a reference, or ERR_PTR with the sentence set. */
struct gpu *netlink_named_gpu(struct nlattr *index, struct nlattr *bus_name,
			      struct netlink_ext_ack *extack);
/* The sentence of why a session could not read. */
void netlink_fault(struct netlink_ext_ack *extack, const struct topo_fault *fault);

#endif
