// SPDX-License-Identifier: MIT
/*
 * Fuzz target: answers of the kernel module over generic netlink. libnl parses these answers. The
 * answers are messages with attributes from the input, or raw bytes of the input. The result is
 * either an error message or the GPU of one message. A capture of this GPU can be written and
 * read.
 */
#include <errno.h>
#include <linux/genetlink.h>
#include <linux/gpupart.h>
#include <netlink/genl/ctrl.h>
#include <netlink/genl/genl.h>
#include <netlink/netlink.h>
#include "lib/topo/topology.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/topology.h"

#define FAMILY 0x20

/*
 * The linker option --wrap replaces the kernel. A connection always succeeds, and the answers
 * come from the input.
 */
#pragma GCC visibility push(default)
int __wrap_genl_connect(struct nl_sock *sock);
int __wrap_genl_ctrl_resolve(struct nl_sock *sock, const char *name);
int __wrap_nl_send_auto(struct nl_sock *sock, struct nl_msg *msg);
int __wrap_nl_recvmsgs(struct nl_sock *sock, struct nl_cb *cb);
int __real_nl_recvmsgs(struct nl_sock *sock, struct nl_cb *cb);
#pragma GCC visibility pop

static struct gpupart *gp;
static struct input said;
static bool topology_asked;

int __wrap_genl_connect(struct nl_sock *sock)
{
	MUST(sock);
	return 0;
}

int __wrap_genl_ctrl_resolve(struct nl_sock *sock, const char *name)
{
	MUST(sock && !strcmp(name, GPUPART_FAMILY_NAME));
	return FAMILY;
}

int __wrap_nl_send_auto(struct nl_sock *sock, struct nl_msg *msg)
{
	struct genlmsghdr *head = nlmsg_data(nlmsg_hdr(msg));

	(void)sock;
	topology_asked = head->cmd == GPUPART_CMD_TOPOLOGY_GET;
	return 1;
}

/* ------------------------------------------------------------------ one answer */

static void put(char *room, size_t *len, const void *what, size_t nr)
{
	memcpy(room + *len, what, nr);
	memset(room + *len + nr, 0, NLMSG_ALIGN(nr) - nr);
	*len += NLMSG_ALIGN(nr);
}

/*
 * The values of each topology message. If several attributes have one type, the last attribute
 * counts.
 */
#define MOST_TOLD 64
static struct told {
	struct {
		unsigned int len;
		uint8_t bytes[256];
		bool there;
	} a[GPUPART_A_TOPOLOGY_MAX + 1];
} told[MOST_TOLD];
static unsigned int nr_told;
static bool told_raw;	/* a message of raw input bytes may have any content */

static void put_attribute(char *room, size_t *len, unsigned int type, const void *what, size_t nr)
{
	struct nlattr head = { .nla_len = NLA_HDRLEN + nr, .nla_type = type };
	struct told *last = nr_told ? &told[nr_told - 1] : NULL;

	if (topology_asked && last && type <= GPUPART_A_TOPOLOGY_MAX) {
		last->a[type].there = true;
		last->a[type].len = nr;
		if (nr)
			memcpy(last->a[type].bytes, what, nr);
	}
	put(room, len, &head, sizeof(head));
	put(room, len, what, nr);
}

/*
 * Adds an attribute with a type, a length and a value. The value is raw bytes or ascending bytes.
 */
static void put_attributes(char *room, size_t *len)
{
	unsigned int nr = input_u8(&said) % 16;

	for (unsigned int i = 0; i < nr; i++) {
		unsigned int type = input_u8(&said), n = input_u8(&said);
		uint8_t bytes[256];

		input_bytes(&said, bytes, n);
		put_attribute(room, len, type, bytes, n);
	}
}

/*
 * Adds the attributes of a small GPU. Later attributes replace these values, because the last
 * attribute of a type counts.
 */
static void put_gpu(char *room, size_t *len)
{
	uint32_t chip = 0x180;

	put_attribute(room, len, GPUPART_A_GPU_BUS_NAME, "0000:01:00.0", 13);
	put_attribute(room, len, GPUPART_A_GPU_CHIP_ID, &chip, 4);
}

static void put_topology(char *room, size_t *len)
{
	static const uint32_t four = 4, three = 3, two = 2, present = 15;
	static const uint32_t tpcs[4] = { 7, 7, 3, 3 };
	static const uint8_t phys[4] = { 1, 0, 3, 2 }, ugpu[4] = { 0, 0, 1, 1 };
	static const uint8_t gpc[10] = { 0, 1, 2, 3, 0, 1, 2, 3, 0, 1 };
	static const uint8_t in_gpc[10] = { 0, 0, 0, 0, 1, 1, 1, 1, 2, 2 };
	static const uint32_t order = GPUPART_ORDER_UNKNOWN + 1;

	put_attribute(room, len, GPUPART_A_TOPOLOGY_MAX_GPCS, &four, 4);
	put_attribute(room, len, GPUPART_A_TOPOLOGY_MAX_TPCS_PER_GPC, &three, 4);
	put_attribute(room, len, GPUPART_A_TOPOLOGY_SMS_PER_TPC, &two, 4);
	put_attribute(room, len, GPUPART_A_TOPOLOGY_PRESENT_GPCS, &present, 4);
	put_attribute(room, len, GPUPART_A_TOPOLOGY_PRESENT_TPCS, tpcs, sizeof(tpcs));
	put_attribute(room, len, GPUPART_A_TOPOLOGY_GPC_PHYS, phys, sizeof(phys));
	put_attribute(room, len, GPUPART_A_TOPOLOGY_GPC_UGPU, ugpu, sizeof(ugpu));
	put_attribute(room, len, GPUPART_A_TOPOLOGY_TPC_GPC, gpc, sizeof(gpc));
	put_attribute(room, len, GPUPART_A_TOPOLOGY_TPC_IN_GPC, in_gpc, sizeof(in_gpc));
	put_attribute(room, len, GPUPART_A_TOPOLOGY_ORDER, &order, 4);
}

/* The kernel refuses the request with an errno, and sometimes with a message. */
static void put_error(char *room, size_t *len, struct nlmsghdr *head)
{
	struct nlmsgerr error = { .msg.nlmsg_len = sizeof(error.msg) };
	unsigned int how = input_u8(&said);
	char text[64];

	error.error = how & 1 ? -(int)(input_u8(&said) % 134) : (int)input_u64(&said);
	if (how & 2)
		error.msg.nlmsg_len = input_u64(&said);
	head->nlmsg_type = NLMSG_ERROR;
	head->nlmsg_flags = how & 4 ? NLM_F_CAPPED : 0;
	put(room, len, &error, sizeof(error));
	if (!(how & 8))
		return;
	head->nlmsg_flags |= NLM_F_ACK_TLVS;
	input_bytes(&said, text, sizeof(text));
	put_attribute(room, len, NLMSGERR_ATTR_MSG, text, input_u8(&said) % sizeof(text));
}

static size_t make_message(char *room)
{
	struct genlmsghdr genl = { .version = GPUPART_FAMILY_VERSION };
	struct nlmsghdr head = { .nlmsg_type = FAMILY, .nlmsg_flags = NLM_F_MULTI };
	unsigned int kind = input_u8(&said) % 5;
	size_t len = NLMSG_HDRLEN;

	if (kind == 0) {
		told_raw = true;
		len = input_u16(&said) % 2048;
		input_bytes(&said, room, len);
		return len;
	}
	if (kind == 1) {
		head.nlmsg_type = NLMSG_DONE;
	} else if (kind == 2) {
		put_error(room, &len, &head);
	} else {
		put(room, &len, &genl, sizeof(genl));
		told_raw |= nr_told == MOST_TOLD;
		if (topology_asked && nr_told < MOST_TOLD)
			memset(&told[nr_told++], 0, sizeof(told[0]));
		if (kind == 3)
			topology_asked ? put_topology(room, &len) : put_gpu(room, &len);
		put_attributes(room, &len);
	}
	head.nlmsg_len = len;
	memcpy(room, &head, sizeof(head));
	return len;
}

static int receive(struct nl_sock *sock, struct sockaddr_nl *from, unsigned char **buffer,
		   struct ucred **creds)
{
	static char room[16384];
	size_t len, nr;

	(void)sock;
	(void)creds;
	if (!said.left)
		return -NLE_AGAIN;
	/* One to three messages in a datagram. */
	len = make_message(room);
	for (nr = 0; nr < 2 && said.left && input_u8(&said) & 1; nr++) {
		len = NLMSG_ALIGN(len);
		len += make_message(room + len);
	}
	if (!len)
		return -NLE_AGAIN;
	memset(from, 0, sizeof(*from));
	from->nl_family = AF_NETLINK;
	*buffer = malloc(len);
	MUST(*buffer);
	memcpy(*buffer, room, len);
	return len;
}

static int any_sequence(struct nl_msg *msg, void *user)
{
	(void)msg;
	(void)user;
	return NL_OK;
}

int __wrap_nl_recvmsgs(struct nl_sock *sock, struct nl_cb *cb)
{
	nl_cb_set(cb, NL_CB_SEQ_CHECK, NL_CB_CUSTOM, any_sequence, NULL);
	nl_cb_overwrite_recv(cb, receive);
	return __real_nl_recvmsgs(sock, cb);
}

/* -------------------------------------------------------------------- invariants */

static unsigned int u32_of(const struct told *t, unsigned int type)
{
	uint32_t value = 0;

	if (t->a[type].there)
		memcpy(&value, t->a[type].bytes, sizeof(value));
	return value;
}

/* Returns true if this message has the values of @topo. */
static bool says(const struct told *t, const struct gpupart_topology *topo)
{
	static const unsigned int numbers[] = {
		GPUPART_A_TOPOLOGY_MAX_GPCS, GPUPART_A_TOPOLOGY_MAX_TPCS_PER_GPC,
		GPUPART_A_TOPOLOGY_SMS_PER_TPC, GPUPART_A_TOPOLOGY_PRESENT_GPCS,
		GPUPART_A_TOPOLOGY_ORDER,
	};
	unsigned int nr = t->a[GPUPART_A_TOPOLOGY_TPC_GPC].len;
	unsigned int per_tpc = u32_of(t, GPUPART_A_TOPOLOGY_SMS_PER_TPC);

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		if (t->a[numbers[i]].there && t->a[numbers[i]].len < 4)
			return false;
	if (u32_of(t, GPUPART_A_TOPOLOGY_ORDER) == GPUPART_ORDER_UNKNOWN ||
	    t->a[GPUPART_A_TOPOLOGY_TPC_IN_GPC].len != nr ||
	    t->a[GPUPART_A_TOPOLOGY_GPC_UGPU].len != t->a[GPUPART_A_TOPOLOGY_GPC_PHYS].len ||
	    topo->nr_sms != nr * per_tpc ||
	    topo->info.max_gpcs != u32_of(t, GPUPART_A_TOPOLOGY_MAX_GPCS))
		return false;
	for (unsigned int i = 0; i < topo->nr_sms; i++) {
		const struct topo_sm *sm = &topo->sms[i];
		unsigned int tpc = i / per_tpc, gpc = t->a[GPUPART_A_TOPOLOGY_TPC_GPC].bytes[tpc];

		if (sm->tpc != (int)tpc || sm->gpc != (int)gpc ||
		    sm->virtual_tpc != t->a[GPUPART_A_TOPOLOGY_TPC_IN_GPC].bytes[tpc])
			return false;
		if (gpc < t->a[GPUPART_A_TOPOLOGY_GPC_UGPU].len &&
		    (uint8_t)sm->ugpu != t->a[GPUPART_A_TOPOLOGY_GPC_UGPU].bytes[gpc])
			return false;
	}
	return true;
}

static void check_told(const struct gpupart_topology *topo)
{
	bool any = told_raw;

	for (unsigned int i = 0; i < nr_told && !any; i++)
		any = says(&told[i], topo);
	MUST(any);
}

static void check_topology(struct gpupart_topology *topo)
{
	check_told(topo);
	fuzz_check_topology(gp, topo);
	gpupart_topology_close(topo);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct gpupart_gpu_info list[4];
	struct gpupart_topology *topo;
	char address[20];
	int nr, err;

	if (!gp)
		MUST(!gpupart_open(&gp));
	fuzz_words = gp->error;
	said = (struct input){ data, size };
	gp->error[0] = 0;
	nr = topo_kernel_list(gp, list, 4);
	MUST(nr >= 0 ? nr <= 64 : nr > -4096 && gp->error[0]);
	for (int i = 0; i < nr && i < 4; i++)
		MUST(fuzz_printable(list[i].pci, sizeof(list[i].pci)) &&
		     topo_address_read(list[i].pci, address));

	said = (struct input){ data, size };
	gp->error[0] = 0;
	err = topo_kernel_open(gp, size % 2 ? "0" : NULL, &topo);
	if (err)
		MUST(err < 0 && err > -4096 && gp->error[0]);
	else
		check_topology(topo);
	nr_told = 0;
	told_raw = false;
	return 0;
}
