// SPDX-License-Identifier: MIT
/*
 * Reads the topology from the kernel module gpupart by generic netlink. The module reads fuses and
 * the table of the work distributor. From this data the module computes the GPCs, the TPCs and the
 * order of the TPCs. Only NVIDIA's driver knows the numbers of virtual GPCs and CPCs, so the module
 * does not report them.
 */
#include <errno.h>
#include <linux/genetlink.h>
#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "lib/topo/kernel_conn.h"
#include "lib/topo/topology.h"

#define KERNEL_MAX_GPUS 64

/*
 * While a GPU wakes up, the query is repeated. These are the interval and the maximum number of
 * queries.
 */
#define WAKE_POLL_NS	20000000L
#define WAKE_POLLS	3000

struct kernel_gpu {
	struct gpupart_gpu_info info;
	bool unreadable;
	char trouble[120];	/* the reason why the GPU cannot be opened, or "" */
};

struct kernel_gpus {
	struct kernel_gpu gpus[KERNEL_MAX_GPUS];
	unsigned int nr;
};

/* The contents of a topology message, with wider types. */
struct kernel_topology {
	unsigned int max_gpcs, max_tpcs_per_gpc, sms_per_tpc, order;
	unsigned int nr_phys, nr_map, nr_tpcs;
	uint32_t present_gpcs, present_tpcs[GPUPART_MAX_GPCS];
	uint8_t gpc_phys[GPUPART_MAX_GPCS], gpc_ugpu[GPUPART_MAX_GPCS];
	uint8_t tpc_gpc[GPUPART_MAX_TPCS], tpc_in_gpc[GPUPART_MAX_TPCS];
	char order_why[160], disagree[160];
	bool malformed;
};

/*
 * Stores the kernel's error message, because libnl would drop it. The error message is at offset
 * @at in the netlink message.
 */
static void keep_refusal(struct kernel_conn *conn, struct nlmsghdr *whole, int error, size_t at)
{
	struct nlattr *text;

	conn->refused = error < 0 && error > -4096 ? error : -EBADMSG;
	if (whole->nlmsg_flags & NLM_F_ACK_TLVS && whole->nlmsg_len > at) {
		text = nla_find((struct nlattr *)((char *)whole + at), whole->nlmsg_len - at,
				NLMSGERR_ATTR_MSG);
		if (text)
			snprintf(conn->sentence, sizeof(conn->sentence), "%.*s", nla_len(text),
				 (const char *)nla_data(text));
	}
}

static int on_error(struct sockaddr_nl *from, struct nlmsgerr *error, void *user)
{
	struct nlmsghdr *whole = (struct nlmsghdr *)((char *)error - NLMSG_HDRLEN);
	size_t head = NLMSG_HDRLEN + sizeof(*error);

	(void)from;
	if (!(whole->nlmsg_flags & NLM_F_CAPPED))
		head += error->msg.nlmsg_len - sizeof(error->msg);
	keep_refusal(user, whole, error->error, NLMSG_ALIGN(head));
	return NL_STOP;
}

/* Handles the message at the end of a dump. This message contains the error of the dump, if any. */
static int on_finish(struct nl_msg *msg, void *user)
{
	struct nlmsghdr *whole = nlmsg_hdr(msg);
	struct kernel_conn *conn = user;
	int error = 0;

	conn->finished = true;
	if (whole->nlmsg_type == NLMSG_DONE && nlmsg_datalen(whole) >= (int)sizeof(error))
		memcpy(&error, nlmsg_data(whole), sizeof(error));
	if (error)
		keep_refusal(conn, whole, error, NLMSG_HDRLEN + sizeof(error));
	return NL_STOP;
}

static int conn_open(struct gpupart *gp, struct kernel_conn *conn)
{
	int on = 1, err;

	memset(conn, 0, sizeof(*conn));
	conn->gp = gp;
	conn->sock = nl_socket_alloc();
	if (!conn->sock)
		return ctx_fail(gp, -ENOMEM, "no memory for a netlink socket");
	err = genl_connect(conn->sock);
	if (err) {
		nl_socket_free(conn->sock);
		return ctx_fail(gp, -EOPNOTSUPP,
				"generic netlink is not available: %s",
				nl_geterror(err));
	}
	setsockopt(nl_socket_get_fd(conn->sock), SOL_NETLINK, NETLINK_EXT_ACK, &on, sizeof(on));
	conn->family = genl_ctrl_resolve(conn->sock, GPUPART_FAMILY_NAME);
	if (conn->family < 0) {
		nl_socket_free(conn->sock);
		return ctx_fail(gp, -ENODEV,
				"the kernel has no netlink family %s: the module gpupart is not loaded",
				GPUPART_FAMILY_NAME);
	}
	return 0;
}

int kernel_ask(struct kernel_conn *conn, struct nl_msg *msg,
	       int (*parse)(struct nl_msg *msg, void *user), void *user)
{
	struct nl_cb *cb = nl_cb_alloc(NL_CB_DEFAULT);
	int err = -NLE_NOMEM;

	if (!cb || !msg)
		goto free;
	conn->refused = 0;
	conn->finished = false;
	conn->sentence[0] = 0;
	nl_cb_set(cb, NL_CB_VALID, NL_CB_CUSTOM, parse, user);
	nl_cb_set(cb, NL_CB_FINISH, NL_CB_CUSTOM, on_finish, conn);
	nl_cb_set(cb, NL_CB_ACK, NL_CB_CUSTOM, on_finish, conn);
	nl_cb_err(cb, NL_CB_CUSTOM, on_error, conn);
	err = nl_send_auto(conn->sock, msg);
	while (err >= 0 && !conn->finished && !conn->refused)
		err = nl_recvmsgs(conn->sock, cb);
free:
	nl_cb_put(cb);
	nlmsg_free(msg);
	if (conn->refused)
		return ctx_fail(conn->gp, conn->refused, "%s",
				conn->sentence[0] ? conn->sentence : strerror(-conn->refused));
	if (err == -NLE_DUMP_INTR)
		return ctx_fail(conn->gp, -EAGAIN,
				"the list of GPUs changed while the kernel sent it");
	if (err < 0)
		return ctx_fail(conn->gp, -EIO, "netlink: %s", nl_geterror(err));
	return 0;
}

struct nl_msg *kernel_request(struct kernel_conn *conn, int flags, int cmd, int attr,
			      const char *pci)
{
	struct nl_msg *msg = nlmsg_alloc();

	if (msg && genlmsg_put(msg, NL_AUTO_PORT, NL_AUTO_SEQ, conn->family, 0, flags, cmd,
			       GPUPART_FAMILY_VERSION) &&
	    (!pci || !nla_put_string(msg, attr, pci)))
		return msg;
	nlmsg_free(msg);
	return NULL;
}

static int parse_gpu(struct nl_msg *msg, void *user)
{
	static const struct nla_policy policy[GPUPART_A_GPU_MAX + 1] = {
		[GPUPART_A_GPU_BUS_NAME] = { .type = NLA_STRING },
		[GPUPART_A_GPU_CHIP_ID] = { .type = NLA_U32 },
		[GPUPART_A_GPU_REFUSED] = { .type = NLA_STRING },
		[GPUPART_A_GPU_UNREADABLE] = { .type = NLA_STRING },
	};
	struct nlattr *a[GPUPART_A_GPU_MAX + 1], *trouble;
	struct kernel_gpus *list = user;
	struct kernel_gpu *gpu = &list->gpus[list->nr];
	char address[sizeof(gpu->info.pci)];

	if (list->nr == KERNEL_MAX_GPUS ||
	    genlmsg_parse(nlmsg_hdr(msg), 0, a, GPUPART_A_GPU_MAX, policy) ||
	    !a[GPUPART_A_GPU_BUS_NAME] ||
	    !topo_address_read(nla_get_string(a[GPUPART_A_GPU_BUS_NAME]), address))
		return NL_SKIP;
	memset(gpu, 0, sizeof(*gpu));
	snprintf(gpu->info.pci, sizeof(gpu->info.pci), "%s",
		 nla_get_string(a[GPUPART_A_GPU_BUS_NAME]));
	snprintf(gpu->info.source, sizeof(gpu->info.source), "kernel");
	gpu->info.mig = -1;
	/* If the value is larger than any chip id, the chip is unknown. */
	if (a[GPUPART_A_GPU_CHIP_ID] && nla_get_u32(a[GPUPART_A_GPU_CHIP_ID]) <= TOPO_MAX_CHIP_ID)
		gpu->info.chip_id = nla_get_u32(a[GPUPART_A_GPU_CHIP_ID]);
	gpu->unreadable = a[GPUPART_A_GPU_UNREADABLE];
	trouble = a[GPUPART_A_GPU_REFUSED];
	if (!trouble)
		trouble = a[GPUPART_A_GPU_UNREADABLE];
	if (trouble)
		snprintf(gpu->trouble, sizeof(gpu->trouble), "%s", nla_get_string(trouble));
	list->nr++;
	return NL_OK;
}

/*
 * Reads an array of at most @max bytes. Returns the number of bytes. If there are more than @max
 * bytes, the message is malformed.
 */
static unsigned int take_bytes(struct kernel_topology *t, struct nlattr *a, uint8_t *bytes,
			       unsigned int max)
{
	if (!a)
		return 0;
	if ((unsigned int)nla_len(a) > max) {
		t->malformed = true;
		return 0;
	}
	memcpy(bytes, nla_data(a), nla_len(a));
	return nla_len(a);
}

static unsigned int take_u32(struct nlattr *a)
{
	return a ? nla_get_u32(a) : 0;
}

static int parse_topology(struct nl_msg *msg, void *user)
{
	static const struct nla_policy policy[GPUPART_A_TOPOLOGY_MAX + 1] = {
		[GPUPART_A_TOPOLOGY_MAX_GPCS] = { .type = NLA_U32 },
		[GPUPART_A_TOPOLOGY_MAX_TPCS_PER_GPC] = { .type = NLA_U32 },
		[GPUPART_A_TOPOLOGY_SMS_PER_TPC] = { .type = NLA_U32 },
		[GPUPART_A_TOPOLOGY_PRESENT_GPCS] = { .type = NLA_U32 },
		[GPUPART_A_TOPOLOGY_ORDER] = { .type = NLA_U32 },
		[GPUPART_A_TOPOLOGY_ORDER_WHY] = { .type = NLA_STRING },
		[GPUPART_A_TOPOLOGY_DISAGREE] = { .type = NLA_STRING },
	};
	struct nlattr *a[GPUPART_A_TOPOLOGY_MAX + 1];
	struct kernel_topology *t = user;
	unsigned int nr;

	if (genlmsg_parse(nlmsg_hdr(msg), 0, a, GPUPART_A_TOPOLOGY_MAX, policy)) {
		t->malformed = true;
		return NL_STOP;
	}
	t->max_gpcs = take_u32(a[GPUPART_A_TOPOLOGY_MAX_GPCS]);
	t->max_tpcs_per_gpc = take_u32(a[GPUPART_A_TOPOLOGY_MAX_TPCS_PER_GPC]);
	t->sms_per_tpc = take_u32(a[GPUPART_A_TOPOLOGY_SMS_PER_TPC]);
	t->present_gpcs = take_u32(a[GPUPART_A_TOPOLOGY_PRESENT_GPCS]);
	t->order = take_u32(a[GPUPART_A_TOPOLOGY_ORDER]);
	if (a[GPUPART_A_TOPOLOGY_ORDER_WHY])
		snprintf(t->order_why, sizeof(t->order_why), "%s",
			 nla_get_string(a[GPUPART_A_TOPOLOGY_ORDER_WHY]));
	if (a[GPUPART_A_TOPOLOGY_DISAGREE])
		snprintf(t->disagree, sizeof(t->disagree), "%s",
			 nla_get_string(a[GPUPART_A_TOPOLOGY_DISAGREE]));
	t->nr_phys = take_bytes(t, a[GPUPART_A_TOPOLOGY_PRESENT_TPCS], (uint8_t *)t->present_tpcs,
				sizeof(t->present_tpcs)) / sizeof(uint32_t);
	t->nr_map = take_bytes(t, a[GPUPART_A_TOPOLOGY_GPC_PHYS], t->gpc_phys, GPUPART_MAX_GPCS);
	nr = take_bytes(t, a[GPUPART_A_TOPOLOGY_GPC_UGPU], t->gpc_ugpu, GPUPART_MAX_GPCS);
	t->malformed |= nr != t->nr_map;
	t->nr_tpcs = take_bytes(t, a[GPUPART_A_TOPOLOGY_TPC_GPC], t->tpc_gpc, GPUPART_MAX_TPCS);
	nr = take_bytes(t, a[GPUPART_A_TOPOLOGY_TPC_IN_GPC], t->tpc_in_gpc, GPUPART_MAX_TPCS);
	t->malformed |= nr != t->nr_tpcs;
	return NL_OK;
}

static int by_pci(const void *a, const void *b)
{
	const struct kernel_gpu *x = a, *y = b;

	return strcmp(x->info.pci, y->info.pci);
}

/*
 * If the GPU sleeps, the module begins to wake it, and answers -EAGAIN until the GPU is awake.
 */
static int get_topology(struct kernel_conn *conn, const char *pci, struct kernel_topology *t)
{
	const struct timespec pause = { .tv_nsec = WAKE_POLL_NS };
	unsigned int polls = WAKE_POLLS;
	int err;

	do {
		memset(t, 0, sizeof(*t));
		err = kernel_ask(conn, kernel_request(conn, NLM_F_ACK, GPUPART_CMD_TOPOLOGY_GET,
						      GPUPART_A_TOPOLOGY_BUS_NAME, pci),
				 parse_topology, t);
	} while (err == -EAGAIN && --polls && !nanosleep(&pause, NULL));
	return err;
}

static int list_gpus(struct kernel_conn *conn, struct kernel_gpus *list)
{
	unsigned int tries = 16;
	int err;

	do {
		list->nr = 0;
		err = kernel_ask(conn,
				 kernel_request(conn, NLM_F_DUMP, GPUPART_CMD_GPU_GET, 0, NULL),
				 parse_gpu, list);
	} while (err == -EAGAIN && --tries);
	return err;
}

/* Waits until all sleeping GPUs of the list are awake. If no GPU was asleep, returns false. */
static bool wait_for_gpus(struct kernel_conn *conn, const struct kernel_gpus *list)
{
	struct kernel_topology t;
	bool waited = false;

	for (unsigned int i = 0; i < list->nr; i++) {
		if (!list->gpus[i].unreadable)
			continue;
		get_topology(conn, list->gpus[i].info.pci, &t);
		waited = true;
	}
	return waited;
}

/*
 * Opens a connection and lists the GPUs that the kernel knows. If @wake is true, wakes the GPUs
 * that the module has not identified. If the result is 0, the caller must free conn->sock and
 * *@gpus.
 */
static int open_gpus(struct gpupart *gp, struct kernel_conn *conn, struct kernel_gpus **gpus,
		     bool wake)
{
	struct kernel_gpus *list = calloc(1, sizeof(*list));
	int err;

	if (!list)
		return ctx_fail(gp, -ENOMEM, "no memory for a list of GPUs");
	err = conn_open(gp, conn);
	if (err)
		goto free;
	err = list_gpus(conn, list);
	if (!err && wake && wait_for_gpus(conn, list))
		err = list_gpus(conn, list);
	if (err)
		goto close;
	qsort(list->gpus, list->nr, sizeof(list->gpus[0]), by_pci);
	*gpus = list;
	return 0;
close:
	nl_socket_free(conn->sock);
free:
	free(list);
	return err;
}

/* Converts the kernel's answer to rows of SMs and a map of GPCs. */
static int build(struct gpupart *gp, struct gpupart_gpu_info *info, const struct kernel_topology *t,
		 struct gpupart_topology **topo)
{
	struct topo_gpc map[GPUPART_MAX_GPCS];
	struct topo_sm *sms, *sm;
	unsigned int tpc, i, gpc, nr_map = 0, gpc_phys;
	int err;

	if (t->malformed || !t->max_gpcs || t->max_gpcs > GPUPART_MAX_GPCS ||
	    t->max_tpcs_per_gpc > GPUPART_MAX_TPCS)
		return ctx_fail(gp, -EBADMSG, "%s: the module's answer is malformed", info->pci);
	if (t->order == GPUPART_ORDER_UNKNOWN)
		return ctx_fail(gp, -EOPNOTSUPP,
				"%s: the module does not know the order of the TPCs: %s", info->pci,
				t->order_why);
	if (t->disagree[0])
		return ctx_fail(gp, -EOPNOTSUPP,
				"%s: the order of the TPCs and the fuses disagree: %s", info->pci,
				t->disagree);
	if (!t->sms_per_tpc || t->sms_per_tpc > GPUPART_MAX_SMS_PER_TPC)
		return ctx_fail(gp, -EOPNOTSUPP, "%s: the module reports %u SMs per TPC", info->pci,
				t->sms_per_tpc);
	sms = calloc((size_t)t->nr_tpcs * t->sms_per_tpc + 1, sizeof(*sms));
	if (!sms)
		return ctx_fail(gp, -ENOMEM, "no memory for %u TPCs", t->nr_tpcs);
	sm = sms;
	for (tpc = 0; tpc < t->nr_tpcs; tpc++) {
		gpc = t->tpc_gpc[tpc];
		for (i = 0; i < t->sms_per_tpc; i++, sm++) {
			/* If a chip has two SMs in each TPC, adjacent SMs are in the same TPC. */
			sm->gpc = gpc;
			sm->tpc = tpc;
			sm->local_sm = i;
			sm->virtual_tpc = t->tpc_in_gpc[tpc];
			sm->ugpu =
				gpc < t->nr_map && t->gpc_ugpu[gpc] != 0xff ? t->gpc_ugpu[gpc] : -1;
			sm->local_tpc = -1;
			sm->vgpc = -1;
			sm->tpc_in_vgpc = -1;
			sm->cpc = -1;
			sm->measured_bit = -1;
		}
	}
	for (gpc_phys = 0; gpc_phys < t->nr_phys; gpc_phys++) {
		if (!(t->present_gpcs & UINT32_C(1) << gpc_phys))
			continue;
		map[nr_map].gpc = -1;
		for (gpc = 0; gpc < t->nr_map; gpc++)
			if (t->gpc_phys[gpc] == gpc_phys)
				map[nr_map].gpc = gpc;
		map[nr_map].gpc_phys = gpc_phys;
		map[nr_map++].present_tpcs = t->present_tpcs[gpc_phys];
	}
	info->max_gpcs = t->max_gpcs;
	info->max_tpcs_per_gpc = t->max_tpcs_per_gpc;
	err = topo_build(gp, info, sms, sm - sms, map, nr_map, topo);
	free(sms);
	return err;
}

/* Opens a connection, and finds the GPU that @gpu selects. The caller must free the connection. */
static int open_gpu(struct gpupart *gp, const char *gpu, bool wake, struct kernel_conn *conn,
		    struct kernel_gpu *found)
{
	struct kernel_gpus *list;
	unsigned int i = 0;
	int err = open_gpus(gp, conn, &list, wake);

	if (err)
		return err;
	while (i < list->nr && gpu && !topo_selects(gpu, &list->gpus[i].info, i))
		i++;
	if (i < list->nr) {
		*found = list->gpus[i];
	} else {
		err = gpu ? ctx_fail(gp, -ENODEV,
				     "the module has no GPU %s (the module has %u GPUs and does not know UUIDs)",
				     gpu, list->nr)
			  : ctx_fail(gp, -ENODEV, "the module found no NVIDIA GPU");
		nl_socket_free(conn->sock);
	}
	free(list);
	return err;
}

int kernel_conn_select(struct gpupart *gp, const char *gpu, struct gpupart_gpu_info *info,
		       struct kernel_conn *conn)
{
	struct kernel_gpu found;
	int err = open_gpu(gp, gpu, false, conn, &found);

	if (!err)
		*info = found.info;
	return err;
}

int topo_kernel_open(struct gpupart *gp, const char *gpu, struct gpupart_topology **topo)
{
	struct kernel_conn conn;
	struct kernel_topology t;
	struct kernel_gpu found;
	int err = open_gpu(gp, gpu, true, &conn, &found);

	if (err)
		return err;
	if (found.trouble[0])
		err = ctx_fail(gp, -EOPNOTSUPP, "%s: %s", found.info.pci, found.trouble);
	else
		err = get_topology(&conn, found.info.pci, &t);
	if (!err)
		err = build(gp, &found.info, &t, topo);
	nl_socket_free(conn.sock);
	return err;
}

int topo_kernel_list(struct gpupart *gp, struct gpupart_gpu_info *list, unsigned int max)
{
	struct kernel_gpus *gpus;
	struct kernel_conn conn;
	int ret = open_gpus(gp, &conn, &gpus, true);

	if (ret)
		return ret;
	for (unsigned int i = 0; i < gpus->nr && i < max; i++)
		list[i] = gpus->gpus[i].info;
	ret = gpus->nr;
	nl_socket_free(conn.sock);
	free(gpus);
	return ret;
}
