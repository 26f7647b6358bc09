// SPDX-License-Identifier: MIT
/*
 * A netlink client for the guest. It uses plain sockets, so that it can also send messages that no
 * library sends. Usage:
 *   gpunl gpus | gpu NAME | topology NAME | engines [INDEX] | monitor SECONDS
 *   gpunl exec PROGRAM ARGS
 *   gpunl runlists NAME [PRI-BASE] | channels NAME PRI-BASE
 *   gpunl fuzz COUNT SEED | bench COUNT | family | cut COMMAND
 *   gpunl user COMMAND.. | userns COMMAND..
 * Each request is repeated until the GPU is awake. With --once before the request, the request is
 * not repeated. "cut" begins a dump of engines, runs COMMAND during the dump, and reports whether
 * the kernel marked the dump. NAME is an index or a bus-name. Options before the command: --netns
 * uses a new network namespace; --uid N runs as that user without capabilities; --perfmon N runs
 * as that user with only CAP_PERFMON. "user" runs as uid 65534, and "userns" runs as that user,
 * who is root of a new user namespace.
 */
#include <errno.h>
#include <linux/capability.h>
#include <linux/genetlink.h>
#include <linux/gpupart.h>
#include <linux/netlink.h>
#include <linux/securebits.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define HEADER (NLMSG_HDRLEN + GENL_HDRLEN)

static int sock;
static uint16_t family_id;
static uint32_t monitor_group, next_seq = 1;
static unsigned char out[1 << 16], in[1 << 17];
static size_t out_len;
static bool once, waking;
static FILE *to;

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static void begin(uint16_t type, uint16_t flags, uint8_t cmd)
{
	struct nlmsghdr *n = (void *)out;
	struct genlmsghdr *g = (void *)(out + NLMSG_HDRLEN);

	memset(out, 0, HEADER);
	n->nlmsg_type = type;
	n->nlmsg_flags = NLM_F_REQUEST | flags;
	n->nlmsg_seq = next_seq++;
	g->cmd = cmd;
	g->version = 1;
	out_len = HEADER;
}

static void put(uint16_t type, const void *data, size_t len)
{
	struct nlattr *a = (void *)(out + out_len);

	a->nla_type = type;
	a->nla_len = NLA_HDRLEN + len;
	memcpy(out + out_len + NLA_HDRLEN, data, len);
	memset(out + out_len + NLA_HDRLEN + len, 0, NLA_ALIGN(len) - len);
	out_len += NLA_HDRLEN + NLA_ALIGN(len);
}

static void put_name(uint16_t index, uint16_t bus_name, const char *name)
{
	uint32_t number = strtoul(name, NULL, 0);

	if (strncmp(name, "0x", 2) && name[strspn(name, "0123456789")])
		put(bus_name, name, strlen(name) + 1);
	else
		put(index, &number, sizeof(number));
}

static void send_out(void)
{
	((struct nlmsghdr *)out)->nlmsg_len = out_len;
	if (send(sock, out, out_len, 0) < 0)
		die("send");
}

static const struct nlattr *find(const void *attrs, size_t len, uint16_t type)
{
	const unsigned char *p = attrs;

	while (len >= NLA_HDRLEN) {
		const struct nlattr *a = (const void *)p;

		if (a->nla_len < NLA_HDRLEN || a->nla_len > len)
			return NULL;
		if ((a->nla_type & NLA_TYPE_MASK) == type)
			return a;
		if ((size_t)NLA_ALIGN(a->nla_len) >= len)
			return NULL;
		p += NLA_ALIGN(a->nla_len);
		len -= NLA_ALIGN(a->nla_len);
	}
	return NULL;
}

static const void *data_of(const struct nlattr *a)
{
	return (const char *)a + NLA_HDRLEN;
}

static size_t len_of(const struct nlattr *a)
{
	return a->nla_len - NLA_HDRLEN;
}

/* ------------------------------------------------------------------ printing */

enum form { NUMBER, HEX, STRING, BYTES, WORDS, FLAG };

struct field {
	uint16_t type;
	const char *name;
	enum form form;
};

static const struct field gpu_fields[] = {
	{ GPUPART_A_GPU_INDEX, "index", NUMBER }, { GPUPART_A_GPU_BUS_NAME, "bus-name", STRING },
	{ GPUPART_A_GPU_CHIP_ID, "chip-id", HEX }, { GPUPART_A_GPU_CHIP_NAME, "chip-name", STRING },
	{ GPUPART_A_GPU_FAMILY, "family", STRING }, { GPUPART_A_GPU_REFUSED, "refused", STRING },
	{ GPUPART_A_GPU_UNREADABLE, "unreadable", STRING }, { 0 },
};

static const struct field topology_fields[] = {
	{ GPUPART_A_TOPOLOGY_INDEX, "index", NUMBER },
	{ GPUPART_A_TOPOLOGY_BUS_NAME, "bus-name", STRING },
	{ GPUPART_A_TOPOLOGY_CHIP_ID, "chip-id", HEX },
	{ GPUPART_A_TOPOLOGY_MAX_GPCS, "max-gpcs", NUMBER },
	{ GPUPART_A_TOPOLOGY_MAX_TPCS_PER_GPC, "max-tpcs-per-gpc", NUMBER },
	{ GPUPART_A_TOPOLOGY_SMS_PER_TPC, "sms-per-tpc", NUMBER },
	{ GPUPART_A_TOPOLOGY_PRESENT_GPCS, "present-gpcs", HEX },
	{ GPUPART_A_TOPOLOGY_PRESENT_TPCS, "present-tpcs", WORDS },
	{ GPUPART_A_TOPOLOGY_FUSE_TAG, "fuse-tag", NUMBER },
	{ GPUPART_A_TOPOLOGY_GPC_PHYS, "gpc-phys", BYTES },
	{ GPUPART_A_TOPOLOGY_GPC_UGPU, "gpc-ugpu", BYTES },
	{ GPUPART_A_TOPOLOGY_ORDER, "order", NUMBER },
	{ GPUPART_A_TOPOLOGY_ORDER_TAG, "order-tag", NUMBER },
	{ GPUPART_A_TOPOLOGY_ORDER_WHY, "order-why", STRING },
	{ GPUPART_A_TOPOLOGY_TPC_GPC, "tpc-gpc", BYTES },
	{ GPUPART_A_TOPOLOGY_TPC_IN_GPC, "tpc-in-gpc", BYTES },
	{ GPUPART_A_TOPOLOGY_DISAGREE, "disagree", STRING },
	{ GPUPART_A_TOPOLOGY_COMPLETE, "complete", FLAG }, { 0 },
};

static const struct field engine_fields[] = {
	{ GPUPART_A_ENGINE_INDEX, "index", NUMBER },
	{ GPUPART_A_ENGINE_TYPE, "type", NUMBER },
	{ GPUPART_A_ENGINE_INSTANCE, "instance", NUMBER },
	{ GPUPART_A_ENGINE_DIE, "die", NUMBER },
	{ GPUPART_A_ENGINE_PRI_BASE, "pri-base", HEX },
	{ GPUPART_A_ENGINE_RUNLIST, "runlist", NUMBER },
	{ GPUPART_A_ENGINE_RUNLIST_PRI_BASE, "runlist-pri-base", HEX },
	{ GPUPART_A_ENGINE_RUNLIST_ENGINE, "runlist-engine", NUMBER },
	{ GPUPART_A_ENGINE_RESET_ID, "reset-id", NUMBER },
	{ GPUPART_A_ENGINE_FAULT_ID, "fault-id", NUMBER },
	{ GPUPART_A_ENGINE_INTR_ID, "intr-id", NUMBER },
	{ GPUPART_A_ENGINE_NAME, "name", STRING },
	{ GPUPART_A_ENGINE_UNREADABLE, "unreadable", STRING },
	{ 0 },
};

static const struct field runlist_fields[] = {
	{ GPUPART_A_RUNLIST_INDEX, "index", NUMBER },
	{ GPUPART_A_RUNLIST_PRI_BASE, "pri-base", HEX },
	{ GPUPART_A_RUNLIST_ID, "id", NUMBER },
	{ GPUPART_A_RUNLIST_CHANNELS, "channels", NUMBER },
	{ GPUPART_A_RUNLIST_IDLE, "idle", FLAG },
	{ GPUPART_A_RUNLIST_ENGINES_IDLE, "engines-idle", FLAG },
	{ GPUPART_A_RUNLIST_DISABLED, "disabled", FLAG },
	{ GPUPART_A_RUNLIST_ENGINE, "engine", NUMBER },
	{ GPUPART_A_RUNLIST_TYPE, "type", NUMBER },
	{ GPUPART_A_RUNLIST_INSTANCE, "instance", NUMBER },
	{ GPUPART_A_RUNLIST_CONTEXT, "context", NUMBER },
	{ GPUPART_A_RUNLIST_TSG, "tsg", NUMBER },
	{ GPUPART_A_RUNLIST_NEXT_TSG, "next-tsg", NUMBER },
	{ GPUPART_A_RUNLIST_CHANNEL, "channel", NUMBER },
	{ GPUPART_A_RUNLIST_BUSY, "busy", FLAG },
	{ GPUPART_A_RUNLIST_FAULTED, "faulted", FLAG },
	{ GPUPART_A_RUNLIST_UNREADABLE, "unreadable", STRING },
	{ 0 },
};

static const struct field channel_fields[] = {
	{ GPUPART_A_CHANNEL_INDEX, "index", NUMBER },
	{ GPUPART_A_CHANNEL_RUNLIST_PRI_BASE, "runlist-pri-base", HEX },
	{ GPUPART_A_CHANNEL_CHANNEL, "channel", NUMBER },
	{ GPUPART_A_CHANNEL_STATE, "state", HEX },
	{ 0 },
};

static void print_fields(const struct nlmsghdr *n, const struct field *fields, char between)
{
	const void *attrs = (const char *)n + HEADER;
	size_t len = n->nlmsg_len - HEADER, i;

	for (; fields->name; fields++) {
		const struct nlattr *a = find(attrs, len, fields->type);
		uint32_t word;

		if (!a)
			continue;
		fprintf(to, "%s", fields->name);
		switch (fields->form) {
		case NUMBER:
		case HEX:
			memcpy(&word, data_of(a), 4);
			fprintf(to, fields->form == HEX ? " 0x%x" : " %u", word);
			break;
		case STRING:
			fprintf(to, " %s", (const char *)data_of(a));
			waking |= !strcmp(data_of(a), "asleep and being woken: ask again");
			break;
		case BYTES:
			for (i = 0; i < len_of(a); i++)
				fprintf(to, " %u", ((const uint8_t *)data_of(a))[i]);
			break;
		case WORDS:
			for (i = 0; i < len_of(a) / 4; i++) {
				memcpy(&word, (const char *)data_of(a) + 4 * i, 4);
				fprintf(to, " 0x%x", word);
			}
			break;
		case FLAG:
			break;
		}
		fputc(between, to);
	}
	if (between != '\n')
		fputc('\n', to);
}

/* Prints an error with its message. Returns the errno. */
static int print_error(const struct nlmsghdr *n)
{
	int code = *(const int *)NLMSG_DATA(n);
	size_t head = NLMSG_HDRLEN + 4;
	const struct nlattr *text;

	if (n->nlmsg_type == NLMSG_ERROR) {
		const struct nlmsghdr *inner = (const void *)((const char *)n + head);

		head += n->nlmsg_flags & NLM_F_CAPPED ? NLMSG_HDRLEN
						      : NLMSG_ALIGN(inner->nlmsg_len);
	}
	if (!code)
		return 0;
	text = n->nlmsg_flags & NLM_F_ACK_TLVS && n->nlmsg_len > head ?
	       find((const char *)n + head, n->nlmsg_len - head, NLMSGERR_ATTR_MSG) : NULL;
	fprintf(to, "error %d: %s\n", -code, text ? (const char *)data_of(text) : "(no sentence)");
	return -code;
}

/* Receives until the answer is complete. Returns 0 or an errno. */
static int receive(const struct field *fields, char between, bool dump)
{
	for (;;) {
		ssize_t got = recv(sock, in, sizeof(in), 0);
		const struct nlmsghdr *n = (const void *)in;

		if (got < 0)
			die("recv");
		for (; NLMSG_OK(n, (size_t)got); n = NLMSG_NEXT(n, got)) {
			if (n->nlmsg_type == NLMSG_ERROR || n->nlmsg_type == NLMSG_DONE)
				return print_error(n);
			print_fields(n, fields, between);
			if (!dump)
				return 0;
		}
	}
}

/* Prints the answer. Returns 0 or an errno. */
static int answer(const struct field *fields, char between, bool dump)
{
	int err;

	for (;;) {
		char *text;
		size_t len;

		to = open_memstream(&text, &len);
		if (!to)
			die("open_memstream");
		waking = false;
		err = receive(fields, between, dump);
		fclose(to);
		to = stdout;
		if (once || (err != EAGAIN && !waking)) {
			fputs(text, stdout);
			free(text);
			return err;
		}
		free(text);
		usleep(50000);
		send_out();
	}
}

/* ------------------------------------------------------------------- family */

static void get_family(void)
{
	const struct nlattr *a, *groups;
	const struct nlmsghdr *n = (const void *)in;
	ssize_t got;

	begin(GENL_ID_CTRL, 0, CTRL_CMD_GETFAMILY);
	put(CTRL_ATTR_FAMILY_NAME, GPUPART_FAMILY_NAME, sizeof(GPUPART_FAMILY_NAME));
	send_out();
	got = recv(sock, in, sizeof(in), 0);
	if (got < (ssize_t)HEADER)
		die("recv");
	if (n->nlmsg_type == NLMSG_ERROR) {
		print_error(n);
		exit(3);
	}
	a = find(in + HEADER, n->nlmsg_len - HEADER, CTRL_ATTR_FAMILY_ID);
	memcpy(&family_id, data_of(a), 2);
	groups = find(in + HEADER, n->nlmsg_len - HEADER, CTRL_ATTR_MCAST_GROUPS);
	a = groups ? find(data_of(groups), len_of(groups), 1) : NULL;
	a = a ? find(data_of(a), len_of(a), CTRL_ATTR_MCAST_GRP_ID) : NULL;
	if (a)
		memcpy(&monitor_group, data_of(a), 4);
}

static void monitor(double seconds)
{
	struct timespec end, now;
	struct pollfd p = { .fd = sock, .events = POLLIN };

	if (setsockopt(sock, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &monitor_group, 4))
		die("membership");
	puts("listening");
	fflush(stdout);
	clock_gettime(CLOCK_MONOTONIC, &end);
	for (;;) {
		const struct nlmsghdr *n = (const void *)in;
		double left;
		ssize_t got;

		clock_gettime(CLOCK_MONOTONIC, &now);
		left = seconds - (now.tv_sec - end.tv_sec) - (now.tv_nsec - end.tv_nsec) / 1e9;
		if (left <= 0 || poll(&p, 1, left * 1000) == 0)
			return;
		got = recv(sock, in, sizeof(in), 0);
		for (; got > 0 && NLMSG_OK(n, (size_t)got); n = NLMSG_NEXT(n, got)) {
			const struct genlmsghdr *g = NLMSG_DATA(n);

			printf("%s ", g->cmd == GPUPART_CMD_GPU_ADD_NTF ? "add" :
			       g->cmd == GPUPART_CMD_GPU_DEL_NTF ? "del" :
			       g->cmd == GPUPART_CMD_GPU_CHANGE_NTF ? "change" : "?");
			print_fields(n, gpu_fields, ' ');
			fflush(stdout);
		}
	}
}

/* --------------------------------------------------------------------- fuzz */

static uint64_t state;

static uint32_t rnd(uint32_t below)
{
	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(state >> 33) % below;
}

/* Sends a nearly valid request, or random bytes with the number of the family. */
static void fuzz_message(void)
{
	static const uint16_t flags[] = { 0, NLM_F_ACK, NLM_F_DUMP, NLM_F_DUMP | NLM_F_ACK,
					  NLM_F_ROOT };
	unsigned int i, nr = rnd(5);

	begin(family_id, flags[rnd(5)], rnd(4) ? 1 + rnd(GPUPART_CMD_MAX) : rnd(256));
	if (!rnd(8))
		out[NLMSG_HDRLEN + 1] = rnd(256);		/* version */
	if (!rnd(16))
		out[NLMSG_HDRLEN + 2] = rnd(256);		/* reserved */
	for (i = 0; i < nr; i++) {
		unsigned char data[300];
		uint32_t len = rnd(4) ? 4 : rnd(sizeof(data)), j;

		for (j = 0; j < len; j++)
			data[j] = rnd(2) ? 0 : rnd(256);
		if (!rnd(3) && len >= 13) {
			memcpy(data, "0000:01:00.0", 13);
			data[rnd(13)] ^= rnd(2) ? 0 : 1 << rnd(8);
		}
		put(rnd(6) ? 1 + rnd(3) : rnd(65536), data, len);
		if (!rnd(6)) {	/* the length is wrong */
			struct nlattr *a = (void *)(out + out_len - NLA_HDRLEN - NLA_ALIGN(len));

			a->nla_len = rnd(2) ? rnd(8) : rnd(65536);
		}
	}
	if (!rnd(5))
		out[NLMSG_HDRLEN + rnd(out_len - NLMSG_HDRLEN)] ^= 1 << rnd(8);
	if (!rnd(6))
		out_len -= rnd(out_len - NLMSG_HDRLEN);
}

static int fuzz(unsigned long count, uint64_t seed)
{
	unsigned long i, answers = 0, errors = 0;
	int size = 1 << 20;

	state = seed;
	setsockopt(sock, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	for (i = 0; i < count; i++) {
		ssize_t got;

		fuzz_message();
		((struct nlmsghdr *)out)->nlmsg_len = out_len;
		send(sock, out, out_len, 0);
		/* Some answers are not read immediately. So dumps accumulate and are cut off. */
		while (rnd(8) && (got = recv(sock, in, sizeof(in), MSG_DONTWAIT)) > 0) {
			const struct nlmsghdr *n = (const void *)in;

			answers++;
			errors += n->nlmsg_type == NLMSG_ERROR && *(const int *)NLMSG_DATA(n) != 0;
		}
		/* Sometimes opens a new socket while a dump on the old socket is not complete. */
		if (!rnd(200)) {
			struct sockaddr_nl self = { .nl_family = AF_NETLINK };

			close(sock);
			sock = socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC);
			if (sock < 0 || bind(sock, (struct sockaddr *)&self, sizeof(self)))
				die("socket");
		}
	}
	printf("sent %lu answers %lu errors %lu\n", count, answers, errors);
	return answers > 0 && errors > 0 ? 0 : 1;
}

/* -------------------------------------------------------------------- bench */

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/*
 * Measures two kinds of requests. The two kinds alternate in one run, so that other load slows
 * both kinds. The results are medians.
 */
static void bench(unsigned int count)
{
	double *family = calloc(count, sizeof(double)), *topology = calloc(count, sizeof(double));
	unsigned int i;
	uint32_t zero = 0;

	for (i = 0; i < count; i++) {
		double start = now_us();

		begin(GENL_ID_CTRL, 0, CTRL_CMD_GETFAMILY);
		put(CTRL_ATTR_FAMILY_NAME, GPUPART_FAMILY_NAME, sizeof(GPUPART_FAMILY_NAME));
		send_out();
		if (recv(sock, in, sizeof(in), 0) < 0)
			die("recv");
		family[i] = now_us() - start;
		start = now_us();
		begin(family_id, 0, GPUPART_CMD_TOPOLOGY_GET);
		put(GPUPART_A_TOPOLOGY_INDEX, &zero, 4);
		send_out();
		if (recv(sock, in, sizeof(in), 0) < 0)
			die("recv");
		topology[i] = now_us() - start;
	}
	qsort(family, count, sizeof(double), by_value);
	qsort(topology, count, sizeof(double), by_value);
	printf("getfamily %.1f us topology %.1f us ratio %.2f\n", family[count / 2],
	       topology[count / 2], topology[count / 2] / family[count / 2]);
}

/* Becomes user @uid without capabilities. If @perfmon is true, keeps CAP_PERFMON (38). */
static void become(unsigned int uid, bool perfmon)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2] = { 0 };

	if (perfmon)
		caps[1].effective = caps[1].permitted = 1u << (38 - 32);
	if (prctl(PR_SET_SECUREBITS, SECBIT_NOROOT | SECBIT_KEEP_CAPS, 0, 0, 0) ||
	    setresgid(uid, uid, uid) || setresuid(uid, uid, uid) ||
	    syscall(SYS_capset, &head, caps))
		die("become");
}

/* Returns 0 if the rest of the dump has the mark of an interrupted dump. */
static int cut(const char *command)
{
	bool done = false, first = true, marked = false;
	struct sockaddr_nl self = { .nl_family = AF_NETLINK };

	/*
	 * Uses a new socket. The kernel does not know yet that the new socket accepts large
	 * messages.
	 */
	close(sock);
	sock = socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC);
	if (sock < 0 || bind(sock, (struct sockaddr *)&self, sizeof(self)))
		die("socket");
	begin(family_id, NLM_F_DUMP, GPUPART_CMD_ENGINE_GET);
	send_out();
	while (!done) {
		/*
		 * The size of the previous read's buffer limits the amount of data that the
		 * kernel writes at a time.
		 */
		ssize_t got = recv(sock, in, 4096, 0);
		const struct nlmsghdr *n = (const void *)in;

		if (got < 0)
			die("recv");
		for (; NLMSG_OK(n, (size_t)got); n = NLMSG_NEXT(n, got)) {
			done |= n->nlmsg_type == NLMSG_DONE;
			marked |= n->nlmsg_flags & NLM_F_DUMP_INTR;
		}
		if (first && system(command))
			return 2;
		first = false;
	}
	puts(marked ? "marked" : "whole");
	return 0;
}

int main(int argc, char **argv)
{
	struct sockaddr_nl self = { .nl_family = AF_NETLINK };
	int one = 1;

	to = stdout;
	if (argc > 1 && !strcmp(argv[1], "--once")) {
		once = true;
		argc--;
		argv++;
	}
	if (argc > 1 && !strcmp(argv[1], "--netns")) {
		if (unshare(CLONE_NEWNET))
			die("unshare");
		argc--;
		argv++;
	}
	if (argc > 3 && (!strcmp(argv[1], "--uid") || !strcmp(argv[1], "--perfmon"))) {
		become(strtoul(argv[2], NULL, 0), !strcmp(argv[1], "--perfmon"));
		argc -= 2;
		argv += 2;
	}
	if (argc < 2)
		return 2;
	if (argc > 2 && !strncmp(argv[1], "user", 4)) {
		become(65534, false);
		if (argv[1][4] && unshare(CLONE_NEWUSER | CLONE_NEWNET))
			die(argv[1]);
		execvp(argv[2], argv + 2);
		die(argv[2]);
	}
	if (!strcmp(argv[1], "exec") && argc > 2) {
		execvp(argv[2], argv + 2);
		die(argv[2]);
	}
	sock = socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC);
	if (sock < 0 || bind(sock, (struct sockaddr *)&self, sizeof(self)))
		die("socket");
	setsockopt(sock, SOL_NETLINK, NETLINK_EXT_ACK, &one, sizeof(one));
	setsockopt(sock, SOL_NETLINK, NETLINK_CAP_ACK, &one, sizeof(one));
	get_family();
	if (!strcmp(argv[1], "family"))
		return 0;
	if (!strcmp(argv[1], "gpus")) {
		begin(family_id, NLM_F_DUMP, GPUPART_CMD_GPU_GET);
		send_out();
		return answer(gpu_fields, ' ', true);
	}
	if (!strcmp(argv[1], "gpu")) {
		begin(family_id, 0, GPUPART_CMD_GPU_GET);
		if (argc > 2)
			put_name(GPUPART_A_GPU_INDEX, GPUPART_A_GPU_BUS_NAME, argv[2]);
		send_out();
		return answer(gpu_fields, '\n', false);
	}
	if (!strcmp(argv[1], "topology")) {
		begin(family_id, 0, GPUPART_CMD_TOPOLOGY_GET);
		put_name(GPUPART_A_TOPOLOGY_INDEX, GPUPART_A_TOPOLOGY_BUS_NAME, argv[2]);
		send_out();
		return answer(topology_fields, '\n', false);
	}
	if (!strcmp(argv[1], "engines")) {
		begin(family_id, NLM_F_DUMP, GPUPART_CMD_ENGINE_GET);
		if (argc > 2)
			put_name(GPUPART_A_ENGINE_INDEX, GPUPART_A_ENGINE_INDEX, argv[2]);
		send_out();
		return answer(engine_fields, ' ', true);
	}
	if (!strcmp(argv[1], "runlists") || !strcmp(argv[1], "channels")) {
		bool runlists = argv[1][0] == 'r';

		begin(family_id, NLM_F_DUMP,
		      runlists ? GPUPART_CMD_RUNLIST_GET : GPUPART_CMD_CHANNEL_GET);
		if (argc > 2)
			put_name(GPUPART_A_RUNLIST_INDEX, GPUPART_A_RUNLIST_BUS_NAME, argv[2]);
		if (argc > 3)
			put_name(GPUPART_A_RUNLIST_PRI_BASE, GPUPART_A_RUNLIST_PRI_BASE, argv[3]);
		send_out();
		return answer(runlists ? runlist_fields : channel_fields, ' ', true);
	}
	if (!strcmp(argv[1], "cut"))
		return cut(argv[2]);
	if (!strcmp(argv[1], "monitor"))
		monitor(atof(argv[2]));
	else if (!strcmp(argv[1], "fuzz"))
		return fuzz(strtoul(argv[2], NULL, 0), strtoull(argv[3], NULL, 0));
	else if (!strcmp(argv[1], "bench"))
		bench(strtoul(argv[2], NULL, 0));
	else
		return 2;
	return 0;
}
