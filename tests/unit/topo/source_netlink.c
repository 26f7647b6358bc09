// SPDX-License-Identifier: MIT
/*
 * Tests the source "kernel". This test gives the kernel's answers. If hot-plug interrupted a
 * list, the library must request the list again. If the parts of a topology disagree, the library
 * must refuse the topology.
 */
#include <errno.h>
#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <stdlib.h>
#include <string.h>
#include "lib/topo/topology.h"
#include "tests/tap.h"

#define FAMILY 30

/* @nr_sent: number of requests; @nr_cut: number of lists that will be interrupted */
static unsigned int nr_sent, nr_cut;
static int asked_cmd;
static const char *disagree;
static unsigned char *answer;
static size_t answer_len;

/* These replace libnl's functions. */
int genl_connect(struct nl_sock *sock)
{
	(void)sock;
	return 0;
}

int genl_ctrl_resolve(struct nl_sock *sock, const char *name)
{
	(void)sock;
	return strcmp(name, "gpupart") ? -NLE_OBJ_NOTFOUND : FAMILY;
}

static void append(struct nl_msg *msg)
{
	const struct nlmsghdr *header = nlmsg_hdr(msg);

	answer = realloc(answer, answer_len + NLMSG_ALIGN(header->nlmsg_len));
	memcpy(answer + answer_len, header, header->nlmsg_len);
	answer_len += NLMSG_ALIGN(header->nlmsg_len);
	nlmsg_free(msg);
}

static void append_gpu(const char *bus_name)
{
	struct nl_msg *msg = nlmsg_alloc();

	genlmsg_put(msg, 0, 0, FAMILY, 0, NLM_F_MULTI, GPUPART_CMD_GPU_GET, 1);
	nla_put_string(msg, GPUPART_A_GPU_BUS_NAME, bus_name);
	nla_put_u32(msg, GPUPART_A_GPU_CHIP_ID, 0x180);
	append(msg);
}

static void append_done(int flags)
{
	struct nl_msg *msg = nlmsg_alloc();
	int status = 0;

	nlmsg_put(msg, 0, 0, NLMSG_DONE, 0, NLM_F_MULTI | flags);
	nlmsg_append(msg, &status, sizeof(status), 0);
	append(msg);
}

/* A GPU with one GPC, which has two TPCs of two SMs each. */
static void append_topology(void)
{
	static const uint8_t zeros[2], tpcs[2] = { 0, 1 };
	struct nl_msg *msg = nlmsg_alloc();
	uint32_t present = 3;

	genlmsg_put(msg, 0, 0, FAMILY, 0, 0, GPUPART_CMD_TOPOLOGY_GET, 1);
	nla_put_u32(msg, GPUPART_A_TOPOLOGY_MAX_GPCS, 1);
	nla_put_u32(msg, GPUPART_A_TOPOLOGY_MAX_TPCS_PER_GPC, 2);
	nla_put_u32(msg, GPUPART_A_TOPOLOGY_SMS_PER_TPC, 2);
	nla_put_u32(msg, GPUPART_A_TOPOLOGY_PRESENT_GPCS, 1);
	nla_put(msg, GPUPART_A_TOPOLOGY_PRESENT_TPCS, 4, &present);
	nla_put(msg, GPUPART_A_TOPOLOGY_GPC_PHYS, 1, zeros);
	nla_put(msg, GPUPART_A_TOPOLOGY_GPC_UGPU, 1, zeros);
	nla_put_u32(msg, GPUPART_A_TOPOLOGY_ORDER, GPUPART_ORDER_READ);
	nla_put(msg, GPUPART_A_TOPOLOGY_TPC_GPC, 2, zeros);
	nla_put(msg, GPUPART_A_TOPOLOGY_TPC_IN_GPC, 2, tpcs);
	if (disagree)
		nla_put_string(msg, GPUPART_A_TOPOLOGY_DISAGREE, disagree);
	append(msg);
}

int nl_send_auto(struct nl_sock *sock, struct nl_msg *msg)
{
	const struct genlmsghdr *g = nlmsg_data(nlmsg_hdr(msg));

	(void)sock;
	nr_sent++;
	asked_cmd = g->cmd;
	return 1;
}

static int receive(struct nl_sock *sock, struct sockaddr_nl *from, unsigned char **buffer,
		   struct ucred **creds)
{
	size_t len;

	(void)sock;
	(void)creds;
	answer = NULL;
	answer_len = 0;
	memset(from, 0, sizeof(*from));
	from->nl_family = AF_NETLINK;
	if (asked_cmd == GPUPART_CMD_TOPOLOGY_GET) {
		append_topology();
	} else {
		append_gpu("0000:01:00.0");
		if (!nr_cut)
			append_gpu("0000:02:00.0");
	}
	append_done(nr_cut && asked_cmd == GPUPART_CMD_GPU_GET ? NLM_F_DUMP_INTR : 0);
	if (nr_cut)
		nr_cut--;
	*buffer = answer;
	len = answer_len;
	return len;
}

static int any_sequence(struct nl_msg *msg, void *user)
{
	(void)msg;
	(void)user;
	return NL_OK;
}

int nl_recvmsgs(struct nl_sock *sock, struct nl_cb *cb)
{
	int nr;

	nl_cb_set(cb, NL_CB_SEQ_CHECK, NL_CB_CUSTOM, any_sequence, NULL);
	nl_cb_overwrite_recv(cb, receive);
	nr = nl_recvmsgs_report(sock, cb);
	return nr < 0 ? nr : 0;
}

int main(void)
{
	struct gpupart_gpu_info list[4];
	struct gpupart_topology *topo;
	struct gpupart *gp;
	int nr, err;

	if (gpupart_open(&gp))
		return 1;
	nr = topo_kernel_list(gp, list, 4);
	tap_ok(nr == 2 && nr_sent == 1, "a whole list is asked for once: %d GPUs, %u requests", nr,
	       nr_sent);
	nr_cut = 3;
	nr_sent = 0;
	memset(list, 0, sizeof(list));
	nr = topo_kernel_list(gp, list, 4);
	tap_ok(nr == 2 && nr_sent == 4 && !strcmp(list[0].pci, "0000:01:00.0") &&
	       !strcmp(list[1].pci, "0000:02:00.0"),
	       "one that was cut by hot-plug again, until it is whole: %d GPUs, %u requests", nr,
	       nr_sent);
	nr_cut = 1000;
	nr_sent = 0;
	nr = topo_kernel_list(gp, list, 4);
	tap_ok(nr == -EAGAIN && nr_sent < 100 &&
		       strstr(gpupart_error(gp), "the list of GPUs changed"),
	       "but not for ever: %u requests, %s", nr_sent, gpupart_error(gp));
	nr_cut = 0;
	err = topo_kernel_open(gp, "0000:02:00.0", &topo);
	tap_ok(!err && gpupart_topology_nr_tpcs(topo) == 2, "a topology: %s",
	       err ? gpupart_error(gp) : "two TPCs");
	if (!err)
		gpupart_topology_close(topo);
	disagree = "3 TPCs there, 2 by the fuses";
	err = topo_kernel_open(gp, "0000:02:00.0", &topo);
	tap_ok(err == -EOPNOTSUPP && strstr(gpupart_error(gp), disagree),
	       "one whose order and fuses disagree is refused: %s",
	       err ? gpupart_error(gp) : "it is not");
	gpupart_close(gp);
	return tap_done();
}
