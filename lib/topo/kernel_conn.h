/* SPDX-License-Identifier: MIT */
/*
 * Declares a generic netlink connection to the kernel module gpupart, and functions that send
 * requests and receive answers.
 */
#ifndef GPUPART_LIB_TOPO_KERNEL_CONN_H
#define GPUPART_LIB_TOPO_KERNEL_CONN_H

#include <netlink/genl/genl.h>
#include <netlink/netlink.h>
#include <stdbool.h>

struct gpupart;
struct gpupart_gpu_info;

struct kernel_conn {
	struct gpupart *gp;
	struct nl_sock *sock;
	int family;
	char sentence[200];	/* error message of the kernel's last refusal */
	int refused;		/* negative errno of this refusal */
	bool finished;
};

/*
 * Opens the connection, finds the GPU that @gpu selects, and fills in @info. This function wakes no
 * GPU. Returns 0 or -errno. If the result is 0, the caller must free @conn->sock with
 * nl_socket_free().
 */
int kernel_conn_select(struct gpupart *gp, const char *gpu, struct gpupart_gpu_info *info,
		       struct kernel_conn *conn);
/*
 * Creates a request for kernel_ask(). If @pci is not NULL, the request contains @pci as the
 * attribute @attr. Returns NULL if the request cannot be created.
 */
struct nl_msg *kernel_request(struct kernel_conn *conn, int flags, int cmd, int attr,
			      const char *pci);
/*
 * Sends and frees @msg, and passes each answer to @parse. If an error occurs, sets the error
 * message and returns -errno. Otherwise returns 0.
 */
int kernel_ask(struct kernel_conn *conn, struct nl_msg *msg,
	       int (*parse)(struct nl_msg *msg, void *user), void *user);

#endif
