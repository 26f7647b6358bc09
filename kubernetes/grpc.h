/* SPDX-License-Identifier: MIT */
/* gRPC on Unix sockets: a server for one thread, and a client that waits. */
#ifndef GPUPART_KUBERNETES_GRPC_H
#define GPUPART_KUBERNETES_GRPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Status codes of gRPC (grpc/doc/statuscodes.md) that are used here. */
enum {
	GRPC_OK = 0,
	GRPC_INVALID_ARGUMENT = 3,
	GRPC_RESOURCE_EXHAUSTED = 8,
	GRPC_UNIMPLEMENTED = 12,
	GRPC_INTERNAL = 13,
	GRPC_UNAVAILABLE = 14,
};

#define GRPC_MAX_MESSAGE (1u << 20)	/* bytes of a request, or of a reply to the client */

struct grpc_reply {
	int status;
	char message[512];	/* the error's text */
	uint8_t *data;		/* malloc'ed, or NULL: an empty message */
	size_t len;
};

struct grpc_method {
	const char *path;	/* "/PACKAGE.SERVICE/METHOD" */
	/* Fills @reply, which is zero; @data is the request's message. */
	void (*handle)(const uint8_t *data, size_t len, struct grpc_reply *reply);
	bool streams;		/* the reply is the first of several: grpc_send() adds more */
};

struct grpc_server;

/* @methods ends with a NULL path and outlives the server. NULL: no memory. */
struct grpc_server *grpc_open(const struct grpc_method *methods);
void grpc_close(struct grpc_server *server);

/*
 * Listens at @path, in the place of a socket that is there: 0 or -errno. Only the owner connects.
 * A socket that it listened at before is closed; connections stay.
 */
int grpc_listen(struct grpc_server *server, const char *path);

/* Whether the socket at the path is still the one that grpc_listen() made. */
bool grpc_listens(const struct grpc_server *server);

/* Serves what comes in @ms milliseconds. */
void grpc_serve(struct grpc_server *server, int ms);

/* One more message for each open stream of @method. */
void grpc_send(struct grpc_server *server, const struct grpc_method *method, const uint8_t *data,
	       size_t len);

/* Feeds @len bytes of a peer to a connection of its own, without a socket. */
void grpc_feed(struct grpc_server *server, const uint8_t *data, size_t len);

/*
 * The message in @data, the body of a request or reply that has exactly one: false if it is cut,
 * compressed, or followed by more.
 */
bool grpc_unframe(const uint8_t *data, size_t len, const uint8_t **message, size_t *message_len);

/* Five bytes before a message of @len: no compression, and the length. */
#define GRPC_FRAME 5
void grpc_frame(size_t len, uint8_t frame[GRPC_FRAME]);

/*
 * Calls @path of the server at @socket: 0, and *@reply has the status and the message, which the
 * caller frees; or -errno: no answer within @ms milliseconds, or none of gRPC's.
 */
int grpc_call(const char *socket, const char *path, const uint8_t *data, size_t len, int ms,
	      struct grpc_reply *reply);

#endif
