// SPDX-License-Identifier: MIT
/*
 * Fuzz target: data from a peer on the device plugin's socket. The first byte selects the kind of
 * the other bytes: HTTP/2 data after the preface, or the body of a request. The frame and the
 * message of a body are parsed like data from kubelet. A complete message must be the same after
 * packing and parsing.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "kubelet.pb-c.h"
#include "kubernetes/grpc.h"
#include "tests/fuzz/fuzz.h"

/* The client's preface and empty SETTINGS (RFC 9113, 3.4). */
#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0"
#define FRAME 5

/* Packs and parses the message. Checks that the result is the same message. */
static void *again(const Kubelet__IdsByContainer *ids)
{
	size_t len, len_again, nr;
	uint8_t *data = grpc_pack(&ids->base, &len), *data_again;
	Kubelet__IdsByContainer *copy = grpc_unpack(&kubelet__ids_by_container__descriptor, data,
						    len);

	MUST(copy && copy->n_containers == ids->n_containers);
	for (nr = 0; nr < ids->n_containers; nr++)
		MUST(copy->containers[nr]->n_ids == ids->containers[nr]->n_ids);
	data_again = grpc_pack(&copy->base, &len_again);
	MUST(len == len_again && len >= FRAME && !memcmp(data, data_again, len));
	MUST(!grpc_unpack(&kubelet__ids_by_container__descriptor, data, len - 1));
	free(data_again);
	free(data);
	return copy;
}

static void *give(const void *request, struct grpc_status *status)
{
	const Kubelet__IdsByContainer *ids = request;

	MUST(!status->code);
	if (ids->n_containers)
		return again(ids);
	memset(status->why, 0xff, sizeof(status->why) - 1);
	status->code = GRPC_INVALID_ARGUMENT;
	return NULL;
}

/* Returns a different list at each call. */
static void *watch(const void *request, struct grpc_status *status)
{
	static unsigned int nr;
	Kubelet__DeviceList *list = calloc(1, sizeof(*list));

	(void)request;
	MUST(list && !status->code);
	kubelet__device_list__init(list);
	list->n_devices = nr++ % 2;
	list->devices = calloc(1, sizeof(*list->devices));
	MUST(list->devices);
	if (list->n_devices) {
		list->devices[0] = malloc(sizeof(**list->devices));
		MUST(list->devices[0]);
		kubelet__device__init(list->devices[0]);
	}
	return list;
}

static const struct grpc_method methods[] = {
	{ "/v1beta1.DevicePlugin/Allocate", &kubelet__ids_by_container__descriptor, give, false },
	{ "/v1beta1.DevicePlugin/ListAndWatch", &kubelet__empty__descriptor, watch, true },
	{ NULL, NULL, NULL, false },
};

/* Sends @data, as long as the server reads data. */
static void feed(struct grpc_server *server, int fd, const uint8_t *data, size_t size)
{
	ssize_t n = 1;

	for (; size && n > 0; size -= n > 0 ? n : 0) {
		n = send(fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
		data += n > 0 ? n : 0;
		grpc_serve(server, 0);
	}
}

static void feed_all(const uint8_t *data, size_t size)
{
	struct grpc_server *server = grpc_open(methods);
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "/tmp/fuzz-grpc.%d", getpid());
	MUST(server && grpc_listen(server, address.sun_path) == 1);
	MUST(!connect(fd, (struct sockaddr *)&address, sizeof(address)) && grpc_serve(server, 0));
	feed(server, fd, (const uint8_t *)PREFACE, sizeof(PREFACE));
	feed(server, fd, data, size);
	/* The server reads the remaining data in the socket in pieces of 16 KiB. */
	for (size_t i = 0; i < 2 + size / 16384; i++)
		grpc_serve(server, 0);
	grpc_refresh(server, &methods[1]);
	grpc_close(server);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Kubelet__IdsByContainer *ids;

	if (!size)
		return 0;
	if (data[0] & 1) {
		feed_all(data + 1, size - 1);
	} else {
		ids = grpc_unpack(&kubelet__ids_by_container__descriptor, data + 1, size - 1);
		if (ids) {
			MUST(size - 1 >= FRAME && !data[1]);
			kubelet__ids_by_container__free_unpacked(again(ids), NULL);
			kubelet__ids_by_container__free_unpacked(ids, NULL);
		}
	}
	return 0;
}
