/* SPDX-License-Identifier: MIT */
/*
 * Implements gRPC on Unix sockets: a server, and blocking calls of other servers. Only one thread
 * may use these functions. If memory is out, the program ends.
 */
#ifndef GPUPART_KUBERNETES_GRPC_H
#define GPUPART_KUBERNETES_GRPC_H

#include <stdbool.h>
#include <protobuf-c/protobuf-c.h>

/* Some of gRPC's status codes (grpc/doc/statuscodes.md). */
enum {
	GRPC_INVALID_ARGUMENT = 3,
	GRPC_RESOURCE_EXHAUSTED = 8,
	GRPC_UNIMPLEMENTED = 12,
	GRPC_UNAVAILABLE = 14,
};

struct grpc_status {
	int code;		/* 0: there was no error */
	char why[512];
};

/* Fills in @status and returns NULL. */
__attribute__((format(printf, 3, 4)))
void *grpc_fail(struct grpc_status *status, int code, const char *fmt, ...);

struct grpc_method {
	const char *path;	/* "/PACKAGE.SERVICE/METHOD" */
	const ProtobufCMessageDescriptor *request;
	/*
	 * Returns the reply. The server frees the reply like an unpacked message. If the method
	 * fails, it returns the result of grpc_fail(), which is NULL.
	 */
	void *(*handle)(const void *request, struct grpc_status *status);
	bool streams;		/* grpc_refresh() sends more replies to the same request */
};

struct grpc_server;

/*
 * Creates a server. @methods: an array that ends with a NULL path. The array must exist as long
 * as the server.
 */
struct grpc_server *grpc_open(const struct grpc_method *methods);
void grpc_close(struct grpc_server *server);

/*
 * Listens at @path, and replaces another socket at @path. Only this user can connect. The string
 * @path must exist as long as the server. If the socket of an earlier call is still at @path,
 * returns 0. Otherwise closes the earlier socket, but its connections stay open. Returns 1 if the
 * function created a socket, or -errno.
 */
int grpc_listen(struct grpc_server *server, const char *path);

/* Serves the requests that arrive during @ms milliseconds. Returns false if a signal arrived. */
bool grpc_serve(struct grpc_server *server, int ms);

/*
 * Calls @method without a request. If the reply differs from the last reply on a stream, sends
 * the reply to this stream.
 */
void grpc_refresh(struct grpc_server *server, const struct grpc_method *method);

/*
 * Calls @path of the server at @socket, and serves @server during the call. Returns the reply.
 * The caller must free the reply like an unpacked message. If the call fails or takes more than
 * @ms milliseconds, returns NULL and sets @status.
 */
void *grpc_call(struct grpc_server *server, const char *socket, const char *path,
		const void *request, const ProtobufCMessageDescriptor *reply, int ms,
		struct grpc_status *status);

/* Packs @message with its frame. The caller frees the result. */
uint8_t *grpc_pack(const ProtobufCMessage *message, size_t *len);

/* Unpacks @data. If it is not exactly one message without compression, returns NULL. */
void *grpc_unpack(const ProtobufCMessageDescriptor *type, const uint8_t *data, size_t len);

#endif
