// SPDX-License-Identifier: MIT
/*
 * Fuzz target: what a peer may send to the device plugin's socket. The first byte says what the
 * rest is: HTTP/2 behind the preface; or the body of a request, whose frame and message are read as
 * for kubelet's. What is one whole message is the same when it is packed and read again.
 */
#include <stdlib.h>
#include <string.h>
#include "kubelet.pb-c.h"
#include "kubernetes/grpc.h"
#include "tests/fuzz/fuzz.h"

/* The client's preface and empty SETTINGS (RFC 9113, 3.4). */
#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0"

static void read_ids(const uint8_t *data, size_t len, struct grpc_reply *reply)
{
	Kubelet__IdsByContainer *ids = kubelet__ids_by_container__unpack(NULL, len, data), *again;
	size_t nr;

	MUST(len <= GRPC_MAX_MESSAGE && !reply->status && !reply->data);
	if (!ids) {
		reply->status = GRPC_INVALID_ARGUMENT;
		memset(reply->message, 0xff, sizeof(reply->message) - 1);
		return;
	}
	reply->data = malloc(kubelet__ids_by_container__get_packed_size(ids) + 1);
	MUST(reply->data);
	reply->len = kubelet__ids_by_container__pack(ids, reply->data);
	again = kubelet__ids_by_container__unpack(NULL, reply->len, reply->data);
	MUST(again && again->n_containers == ids->n_containers);
	for (nr = 0; nr < ids->n_containers; nr++)
		MUST(again->containers[nr]->n_ids == ids->containers[nr]->n_ids);
	kubelet__ids_by_container__free_unpacked(again, NULL);
	kubelet__ids_by_container__free_unpacked(ids, NULL);
}

static const struct grpc_method methods[] = {
	{ "/v1beta1.DevicePlugin/Allocate", read_ids, false },
	{ "/v1beta1.DevicePlugin/ListAndWatch", read_ids, true },
	{ NULL, NULL, false },
};

static void feed(const uint8_t *data, size_t size)
{
	struct grpc_server *server = grpc_open(methods);
	size_t len = sizeof(PREFACE) + size;
	uint8_t *bytes = malloc(len);

	MUST(server && bytes);
	memcpy(bytes, PREFACE, sizeof(PREFACE));
	memcpy(bytes + sizeof(PREFACE), data, size);
	grpc_feed(server, bytes, len);
	grpc_send(server, &methods[1], (const uint8_t *)"x", 1);
	grpc_close(server);
	free(bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct grpc_reply reply = { 0 };
	uint8_t frame[GRPC_FRAME];
	const uint8_t *message;
	size_t len;

	if (!size)
		return 0;
	if (data[0] & 1) {
		feed(data + 1, size - 1);
	} else if (grpc_unframe(data + 1, size - 1, &message, &len)) {
		MUST(message == data + 1 + GRPC_FRAME && len == size - 1 - GRPC_FRAME);
		grpc_frame(len, frame);
		MUST(!memcmp(frame, data + 1, GRPC_FRAME));
		read_ids(message, len, &reply);
		free(reply.data);
	}
	return 0;
}
