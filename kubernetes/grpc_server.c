// SPDX-License-Identifier: MIT
/*
 * The server's side of gRPC over HTTP/2 (grpc/doc/PROTOCOL-HTTP2.md), for one thread. What a peer
 * can make it hold is bounded: connections, streams and bytes.
 */
#include <errno.h>
#include <fcntl.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "kubernetes/grpc.h"

#define MAX_CONNECTIONS 64
#define MAX_STREAMS 16
#define MAX_BYTES (16u << 20)	/* of requests, all connections together */
#define MAX_UNSENT (4u << 20)	/* of a stream whose peer does not read */

/* A stream: a request, and its reply. */
struct call {
	struct call *next;
	int32_t id;
	const struct grpc_method *method;	/* NULL: none that is served */
	bool is_grpc, is_begun, overflow;
	uint8_t *in, *out;
	size_t in_len, out_len, out_at;
	int status;
	char message[512];
};

struct connection {
	struct connection *next;
	struct grpc_server *server;
	int fd;			/* -1: grpc_feed()'s, whose answers are nobody's */
	nghttp2_session *session;
	struct call *calls;
};

struct grpc_server {
	const struct grpc_method *methods;
	nghttp2_session_callbacks *callbacks;
	nghttp2_option *option;
	struct connection *connections;	/* the latest first */
	unsigned int nr_connections;
	size_t bytes;
	int fd;
	struct sockaddr_un address;
	struct stat made;
};

void grpc_frame(size_t len, uint8_t frame[GRPC_FRAME])
{
	frame[0] = 0;
	for (int i = 0; i < 4; i++)
		frame[1 + i] = len >> (24 - 8 * i);
}

bool grpc_unframe(const uint8_t *data, size_t len, const uint8_t **message, size_t *message_len)
{
	size_t wanted = 0;

	if (len < GRPC_FRAME || data[0])
		return false;
	for (int i = 0; i < 4; i++)
		wanted = wanted << 8 | data[1 + i];
	*message = data + GRPC_FRAME;
	*message_len = wanted;
	return wanted == len - GRPC_FRAME;
}

/* ------------------------------------------------------------------ replies */

static nghttp2_nv header(const char *name, const char *value)
{
	return (nghttp2_nv){ (uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value),
			     NGHTTP2_NV_FLAG_NONE };
}

/* grpc-message is percent-encoded: what is not printable ASCII, and the percent sign. */
static void encode(const char *text, char *to, size_t len)
{
	size_t at = 0;

	for (const unsigned char *c = (const unsigned char *)text; *c && at + 4 < len; c++)
		if (*c >= ' ' && *c <= '~' && *c != '%')
			to[at++] = *c;
		else
			at += snprintf(to + at, len - at, "%%%02X", *c);
	to[at] = 0;
}

static ssize_t read_out(nghttp2_session *session, int32_t id, uint8_t *to, size_t room,
			uint32_t *flags, nghttp2_data_source *source, void *arg)
{
	struct call *call = source->ptr;
	size_t n = call->out_len - call->out_at;
	nghttp2_nv trailer = header("grpc-status", "0");

	(void)arg;
	n = n < room ? n : room;
	memcpy(to, call->out + call->out_at, n);
	call->out_at += n;
	if (call->out_at < call->out_len)
		return n;
	if (call->method->streams)
		return n ? (ssize_t)n : NGHTTP2_ERR_DEFERRED;
	*flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
	nghttp2_submit_trailer(session, id, &trailer, 1);
	return n;
}

/* One message behind those that wait; false: no memory, or the peer does not read. */
static bool append(struct call *call, const uint8_t *data, size_t len)
{
	size_t unsent = call->out_len - call->out_at;
	uint8_t *out;

	if (unsent + len > MAX_UNSENT)
		return false;
	out = malloc(unsent + GRPC_FRAME + len);
	if (!out)
		return false;
	if (unsent)
		memcpy(out, call->out + call->out_at, unsent);
	grpc_frame(len, out + unsent);
	if (len)
		memcpy(out + unsent + GRPC_FRAME, data, len);
	free(call->out);
	call->out = out;
	call->out_len = unsent + GRPC_FRAME + len;
	call->out_at = 0;
	return true;
}

static int reply_error(nghttp2_session *session, const struct call *call)
{
	char status[12], message[3 * sizeof(call->message)];
	nghttp2_nv headers[4] = { header(":status", "200"),
				  header("content-type", "application/grpc") };

	snprintf(status, sizeof(status), "%d", call->status);
	encode(call->message, message, sizeof(message));
	headers[2] = header("grpc-status", status);
	headers[3] = header("grpc-message", message);
	return nghttp2_submit_response(session, call->id, headers, 4, NULL);
}

static int reply_other(nghttp2_session *session, const struct call *call)
{
	const nghttp2_nv headers[] = { header(":status", "415") };

	return nghttp2_submit_response(session, call->id, headers, 1, NULL);
}

static void handle(struct call *call)
{
	struct grpc_reply reply = { 0 };
	const uint8_t *message;
	size_t len;

	if (!call->method) {
		reply.status = GRPC_UNIMPLEMENTED;
		strcpy(reply.message, "no such method");
	} else if (call->overflow) {
		reply.status = GRPC_RESOURCE_EXHAUSTED;
		strcpy(reply.message, "the request is too long");
	} else if (!grpc_unframe(call->in, call->in_len, &message, &len)) {
		reply.status = GRPC_INTERNAL;
		strcpy(reply.message, "the request is not one whole message");
	} else {
		call->method->handle(message, len, &reply);
	}
	if (!reply.status && !append(call, reply.data, reply.len)) {
		reply.status = GRPC_RESOURCE_EXHAUSTED;
		strcpy(reply.message, "no memory");
	}
	free(reply.data);
	call->status = reply.status;
	strcpy(call->message, reply.message);
}

static int answer(nghttp2_session *session, struct call *call)
{
	const nghttp2_nv headers[] = { header(":status", "200"),
				       header("content-type", "application/grpc") };
	nghttp2_data_provider provider = { .source.ptr = call, .read_callback = read_out };

	if (call->is_begun)
		return 0;
	call->is_begun = true;
	if (!call->is_grpc)
		return reply_other(session, call);
	handle(call);
	if (call->status)
		return reply_error(session, call);
	return nghttp2_submit_response(session, call->id, headers, 2, &provider);
}

/* ----------------------------------------------------------------- requests */

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct connection *connection = arg;
	struct call *call;

	if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	call = calloc(1, sizeof(*call));
	if (!call)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	call->id = frame->hd.stream_id;
	call->next = connection->calls;
	connection->calls = call;
	return nghttp2_session_set_stream_user_data(session, call->id, call);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_len, const uint8_t *value, size_t len, uint8_t flags, void *arg)
{
	struct call *call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	const struct connection *connection = arg;
	const char *text = (const char *)value;

	(void)flags;
	(void)name_len;
	/* nghttp2 ends both with a 0. */
	if (!call || strlen(text) != len)
		return 0;
	if (!strcmp((const char *)name, "content-type"))
		call->is_grpc = !strcmp(text, "application/grpc") ||
				!strncmp(text, "application/grpc+", 17) ||
				!strncmp(text, "application/grpc;", 17);
	if (strcmp((const char *)name, ":path"))
		return 0;
	for (const struct grpc_method *method = connection->server->methods; method->path; method++)
		if (!strcmp(text, method->path))
			call->method = method;
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
		   size_t len, void *arg)
{
	struct call *call = nghttp2_session_get_stream_user_data(session, id);
	struct grpc_server *server = ((struct connection *)arg)->server;
	uint8_t *in;

	(void)flags;
	if (!call || call->overflow || !call->method)
		return 0;
	in = call->in_len + len > GRPC_MAX_MESSAGE || server->bytes + len > MAX_BYTES ?
	     NULL : realloc(call->in, call->in_len + len);
	if (!in) {
		call->overflow = true;
		return 0;
	}
	memcpy(in + call->in_len, data, len);
	call->in = in;
	call->in_len += len;
	server->bytes += len;
	return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct call *call;

	(void)arg;
	if ((frame->hd.type != NGHTTP2_DATA && frame->hd.type != NGHTTP2_HEADERS) ||
	    !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
		return 0;
	call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	return call ? answer(session, call) : 0;
}

static void free_call(struct grpc_server *server, struct call *call)
{
	server->bytes -= call->in_len;
	free(call->in);
	free(call->out);
	free(call);
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t error, void *arg)
{
	struct connection *connection = arg;

	(void)session;
	(void)error;
	for (struct call **at = &connection->calls; *at; at = &(*at)->next)
		if ((*at)->id == id) {
			struct call *call = *at;

			*at = call->next;
			free_call(connection->server, call);
			break;
		}
	return 0;
}

static ssize_t on_send(nghttp2_session *session, const uint8_t *data, size_t len, int flags,
		       void *arg)
{
	const struct connection *connection = arg;
	ssize_t n;

	(void)session;
	(void)flags;
	if (connection->fd < 0)
		return len;
	n = send(connection->fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? NGHTTP2_ERR_WOULDBLOCK :
							   NGHTTP2_ERR_CALLBACK_FAILURE;
	return n;
}

/* -------------------------------------------------------------- connections */

static void drop(struct connection *connection)
{
	struct grpc_server *server = connection->server;

	for (struct connection **at = &server->connections; *at; at = &(*at)->next)
		if (*at == connection) {
			*at = connection->next;
			server->nr_connections--;
			break;
		}
	nghttp2_session_del(connection->session);
	while (connection->calls) {
		struct call *call = connection->calls;

		connection->calls = call->next;
		free_call(server, call);
	}
	if (connection->fd >= 0)
		close(connection->fd);
	free(connection);
}

/* Room for one more: the oldest that waits for no answer goes. False: all of them do. */
static bool make_room(struct grpc_server *server)
{
	struct connection *oldest = NULL;

	if (server->nr_connections < MAX_CONNECTIONS)
		return true;
	for (struct connection *c = server->connections; c; c = c->next)
		if (!c->calls)
			oldest = c;
	if (oldest)
		drop(oldest);
	return oldest;
}

static struct connection *add(struct grpc_server *server, int fd)
{
	const nghttp2_settings_entry most = { NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS,
					      MAX_STREAMS };
	struct connection *connection = make_room(server) ? calloc(1, sizeof(*connection)) : NULL;

	if (!connection)
		return NULL;
	connection->server = server;
	connection->fd = fd;
	if (nghttp2_session_server_new2(&connection->session, server->callbacks, connection,
					server->option)) {
		free(connection);
		return NULL;
	}
	connection->next = server->connections;
	server->connections = connection;
	server->nr_connections++;
	nghttp2_submit_settings(connection->session, NGHTTP2_FLAG_NONE, &most, 1);
	return connection;
}

/* Sends what there is to send; false: the connection is over. */
static bool flush(struct connection *connection)
{
	return !nghttp2_session_send(connection->session) &&
	       (nghttp2_session_want_read(connection->session) ||
		nghttp2_session_want_write(connection->session));
}

static bool receive(struct connection *connection)
{
	uint8_t data[16384];
	ssize_t n = recv(connection->fd, data, sizeof(data), MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	return n && nghttp2_session_mem_recv(connection->session, data, n) == n;
}

void grpc_feed(struct grpc_server *server, const uint8_t *data, size_t len)
{
	struct connection *connection = add(server, -1);

	if (!connection)
		return;
	if (nghttp2_session_mem_recv(connection->session, data, len) >= 0)
		flush(connection);
	drop(connection);
}

void grpc_send(struct grpc_server *server, const struct grpc_method *method, const uint8_t *data,
	       size_t len)
{
	struct connection *next;

	for (struct connection *c = server->connections; c; c = next) {
		bool lost = false;

		next = c->next;
		for (struct call *call = c->calls; call; call = call->next) {
			if (call->method != method || !call->is_begun || call->status)
				continue;
			lost |= !append(call, data, len);
			nghttp2_session_resume_data(c->session, call->id);
		}
		if (lost || !flush(c))
			drop(c);
	}
}

void grpc_serve(struct grpc_server *server, int ms)
{
	struct pollfd fds[MAX_CONNECTIONS + 1] = { { .fd = server->fd, .events = POLLIN } };
	struct connection *list[MAX_CONNECTIONS + 1] = { NULL };
	unsigned int nr = 1;

	for (struct connection *c = server->connections; c; c = c->next, nr++) {
		list[nr] = c;
		fds[nr].fd = c->fd;
		fds[nr].events = POLLIN |
				 (nghttp2_session_want_write(c->session) ? POLLOUT : 0);
	}
	if (poll(fds, nr, ms) <= 0)
		return;
	for (unsigned int i = 1; i < nr; i++) {
		bool good = true;

		if (fds[i].revents & (POLLIN | POLLHUP | POLLERR))
			good = receive(list[i]);
		if (fds[i].revents && (!flush(list[i]) || !good))
			drop(list[i]);
	}
	if (fds[0].revents & POLLIN) {
		int fd = accept4(server->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		struct connection *connection = fd >= 0 ? add(server, fd) : NULL;

		if (fd >= 0 && !connection)
			close(fd);
		else if (connection && !flush(connection))
			drop(connection);
	}
}

/* ------------------------------------------------------------------- server */

struct grpc_server *grpc_open(const struct grpc_method *methods)
{
	struct grpc_server *server = calloc(1, sizeof(*server));

	if (!server || nghttp2_session_callbacks_new(&server->callbacks) ||
	    nghttp2_option_new(&server->option)) {
		free(server);
		return NULL;
	}
	/* Kubelet's gRPC sends the socket's path as :authority, which nghttp2 takes for a fault. */
	nghttp2_option_set_no_http_messaging(server->option, 1);
	server->methods = methods;
	server->fd = -1;
	nghttp2_session_callbacks_set_on_begin_headers_callback(server->callbacks,
								on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(server->callbacks, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(server->callbacks, on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(server->callbacks, on_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(server->callbacks,
							       on_stream_close);
	nghttp2_session_callbacks_set_send_callback(server->callbacks, on_send);
	return server;
}

void grpc_close(struct grpc_server *server)
{
	while (server->connections)
		drop(server->connections);
	if (grpc_listens(server))
		unlink(server->address.sun_path);
	if (server->fd >= 0)
		close(server->fd);
	nghttp2_session_callbacks_del(server->callbacks);
	nghttp2_option_del(server->option);
	free(server);
}

int grpc_listen(struct grpc_server *server, const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	mode_t mask;
	int fd, err;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	unlink(path);
	mask = umask(077);
	err = bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 128) ||
	      stat(path, &server->made) ? -errno : 0;
	umask(mask);
	if (err) {
		close(fd);
		return err;
	}
	if (server->fd >= 0)
		close(server->fd);
	server->fd = fd;
	server->address = address;
	return 0;
}

bool grpc_listens(const struct grpc_server *server)
{
	struct stat st;

	return server->fd >= 0 && !stat(server->address.sun_path, &st) &&
	       st.st_ino == server->made.st_ino && st.st_dev == server->made.st_dev &&
	       st.st_ctim.tv_sec == server->made.st_ctim.tv_sec &&
	       st.st_ctim.tv_nsec == server->made.st_ctim.tv_nsec;
}
