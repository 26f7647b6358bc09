// SPDX-License-Identifier: MIT
/*
 * failnth load MODULE | read FILE | dump: repeats this operation. In repetition N, allocation N
 * fails. The program ends when every allocation has failed one time. The program is for the guest
 * with fault injection.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/genetlink.h>
#include <linux/gpupart.h>
#include <linux/netlink.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static int knob;

static void arm(unsigned int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u", n);

	if (pwrite(knob, text, len, 0) != len) {
		perror("fail-nth");
		exit(1);
	}
}

/* Returns the number of allocations before the failure. If the failure has happened, returns 0. */
static unsigned int left(void)
{
	char text[16] = "";

	if (pread(knob, text, sizeof(text) - 1, 0) < 0)
		perror("fail-nth");
	return strtoul(text, NULL, 0);
}

static int load(const char *path)
{
	int fd = open(path, O_RDONLY), ret;

	ret = syscall(SYS_finit_module, fd, "", 0) ? -errno : 0;
	close(fd);
	return ret;
}

static int read_all(const char *path)
{
	static char buffer[1 << 16];
	int fd = open(path, O_RDONLY), ret = 0;
	ssize_t got;

	if (fd < 0)
		return -errno;
	while ((got = read(fd, buffer, sizeof(buffer))) > 0)
		;
	if (got < 0)
		ret = -errno;
	close(fd);
	return ret;
}

static int family_id;

/*
 * Requests all dumps and a topology on a new socket. A request that needs a GPU names the first
 * GPU.
 */
static int dump(void)
{
	struct {
		struct nlmsghdr n;
		struct genlmsghdr g;
		struct {
			struct nlattr a;
			uint32_t value;
		} attrs[2];
	} m;
	static char buffer[1 << 16];
	static const struct {
		uint8_t command, nr_attrs;
	} requests[] = {
		{ GPUPART_CMD_GPU_GET, 0 }, { GPUPART_CMD_ENGINE_GET, 0 },
		{ GPUPART_CMD_TOPOLOGY_GET, 1 }, { GPUPART_CMD_RUNLIST_GET, 1 },
		{ GPUPART_CMD_CHANNEL_GET, 2 },
	};
	int sock = socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC), ret = 0;
	unsigned int i;

	if (sock < 0)
		return -errno;
	for (i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
		int one = requests[i].command == GPUPART_CMD_TOPOLOGY_GET;

		memset(&m, 0, sizeof(m));
		m.n.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN) +
				requests[i].nr_attrs * sizeof(m.attrs[0]);
		m.n.nlmsg_type = family_id;
		m.n.nlmsg_flags = NLM_F_REQUEST | (one ? NLM_F_ACK : NLM_F_DUMP);
		m.g.cmd = requests[i].command;
		m.g.version = 1;
		m.attrs[0].a = (struct nlattr){ 8, GPUPART_A_TOPOLOGY_INDEX };
		m.attrs[1].a = (struct nlattr){ 8, GPUPART_A_CHANNEL_RUNLIST_PRI_BASE };
		m.attrs[1].value = 0xc00000;
		if (send(sock, &m, m.n.nlmsg_len, 0) < 0) {
			ret = -errno;
			continue;
		}
		for (;;) {
			ssize_t got = recv(sock, buffer, sizeof(buffer), MSG_DONTWAIT);
			struct nlmsghdr *n = (struct nlmsghdr *)buffer;

			if (got <= 0)
				break;
			if ((n->nlmsg_type == NLMSG_ERROR || n->nlmsg_type == NLMSG_DONE) &&
			    *(int *)NLMSG_DATA(n))
				ret = *(int *)NLMSG_DATA(n);
		}
	}
	close(sock);
	return ret;
}

/*
 * Finds the family in the dump of the control family. Without a library, this is the shortest
 * way.
 */
static void find_family(void)
{
	struct {
		struct nlmsghdr n;
		struct genlmsghdr g;
		struct nlattr a;
		char name[8];
	} m = {
		.n = { sizeof(m), GENL_ID_CTRL, NLM_F_REQUEST, 1, 0 },
		.g = { CTRL_CMD_GETFAMILY, 1, 0 },
		.a = { NLA_HDRLEN + 8, CTRL_ATTR_FAMILY_NAME },
		.name = GPUPART_FAMILY_NAME,
	};
	char buffer[8192], *p = buffer + NLMSG_LENGTH(GENL_HDRLEN);
	int sock = socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC);
	ssize_t got;

	if (send(sock, &m, sizeof(m), 0) < 0 || (got = recv(sock, buffer, sizeof(buffer), 0)) < 0)
		exit(1);
	while (p < buffer + got) {
		struct nlattr *a = (struct nlattr *)p;

		if (a->nla_type == CTRL_ATTR_FAMILY_ID)
			family_id = *(uint16_t *)(p + NLA_HDRLEN);
		p += NLA_ALIGN(a->nla_len);
	}
	close(sock);
}

int main(int argc, char **argv)
{
	unsigned int n, failed = 0, quiet = 0;

	knob = open("/proc/thread-self/fail-nth", O_RDWR);
	if (knob < 0 || argc < 2) {
		perror("fail-nth");
		return 1;
	}
	if (!strcmp(argv[1], "dump"))
		find_family();
	for (n = 1; n < 20000; n++) {
		unsigned int rest;
		int ret;

		arm(n);
		ret = !strcmp(argv[1], "load") ? load(argv[2]) :
		      !strcmp(argv[1], "read") ? read_all(argv[2]) : dump();
		rest = left();
		arm(0);
		if (!strcmp(argv[1], "load") && !ret && syscall(SYS_delete_module, "gpupart", 0)) {
			perror("delete_module");
			return 1;
		}
		if (rest) {
			printf("%u allocations failed once: %u errors, %u did without\n", n - 1,
			       failed, quiet);
			return ret != 0 || n < 2;
		}
		if (ret)
			failed++;
		else
			quiet++;
	}
	puts("no end");
	return 1;
}
