/* SPDX-License-Identifier: MIT */
/*
 * gRPC on Unix sockets, for one thread: a server, and blocking calls. The program ends if no memory
 * is left.
 */
#ifndef GPUPART_KUBERNETES_GRPC_H
#define GPUPART_KUBERNETES_GRPC_H

#include <stdbool.h>
#include <protobuf-c/protobuf-c.h>

/* Status codes of gRPC (grpc/doc/statuscodes.md) that are used here. */
enum {
	GRPC_INVALID_ARGUMENT = 3,
	GRPC_RESOURCE_EXHAUSTED = 8,
	GRPC_UNIMPLEMENTED = 12,
	GRPC_UNAVAILABLE = 14,
};

struct grpc_status {
	int code;		/* 0: no error */
	char why[512];
};

/* Fills in @status; returns NULL. */
__attribute__((format(printf, 3, 4)))
void *grpc_fail(struct grpc_status *status, int code, const char *fmt, ...);

struct grpc_method {
	const char *path;	/* "/PACKAGE.SERVICE/METHOD" */
	const ProtobufCMessageDescriptor *request;
	/* Returns the reply, which is freed like an unpacked message, or NULL by grpc_fail(). */
	void *(*handle)(const void *request, struct grpc_status *status);
	bool streams;		/* grpc_refresh() sends more replies */
};

struct grpc_server;

/* @methods ends with a NULL path and outlives the server. */
struct grpc_server *grpc_open(const struct grpc_method *methods);
void grpc_close(struct grpc_server *server);

/*
 * Listens at @path, and replaces a socket there: 0 or -errno. Only this user can connect. The
 * socket of an earlier call is closed; connections stay.
 */
int grpc_listen(struct grpc_server *server, const char *path);

/* Whether the socket at the path is still the one that grpc_listen() made. */
bool grpc_listens(const struct grpc_server *server);

/* Serves requests that arrive in @ms milliseconds; false: a signal arrived. */
bool grpc_serve(struct grpc_server *server, int ms);

/* Calls @method with no request, and sends its reply to each stream whose last one differs. */
void grpc_refresh(struct grpc_server *server, const struct grpc_method *method);

/* Serves the peer of @fd, and takes @fd. */
void grpc_add(struct grpc_server *server, int fd);

/*
 * Calls @path of the server at @socket, and serves @server meanwhile. Returns the reply, which the
 * caller frees like an unpacked message; NULL and @status if it fails or takes more than @ms
 * milliseconds.
 */
void *grpc_call(struct grpc_server *server, const char *socket, const char *path,
		const void *request, const ProtobufCMessageDescriptor *reply, int ms,
		struct grpc_status *status);

/* Packs @message with its frame; the caller frees it. */
uint8_t *grpc_pack(const ProtobufCMessage *message, size_t *len);

/* Unpacks @data; NULL if it is not exactly one message, or is compressed. */
void *grpc_unpack(const ProtobufCMessageDescriptor *type, const uint8_t *data, size_t len);

#endif
