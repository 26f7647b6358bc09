// SPDX-License-Identifier: MIT
/*
 * Server and client of gRPC over HTTP/2; see grpc.h. The protocol is described in
 * grpc/doc/PROTOCOL-HTTP2.md. The number of connections is limited. Each peer has a limited number
 * of streams and bytes.
 */
#include <ctype.h>
#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "cli/util/alloc.h"
#include "cli/util/process.h"
#include "kubernetes/grpc.h"

#define MAX_CONNECTIONS 16
#define MAX_STREAMS 16
#define MAX_REQUEST (1u << 20)	/* maximum bytes of a request, and of queued data for a peer */
#define MAX_REPLY (16u << 20)	/* same for a reply: kubelet lists all resources of all pods */
#define FRAME 5			/* bytes before a message: compression flag and length */

struct buffer {
	uint8_t *data;
	size_t len;
};

/* A stream of a server or client. A stream has a request and its reply. */
struct call {
	int32_t id;		/* 0: this entry is free */
	const struct grpc_method *method;	/* NULL: unknown, or this is a client's stream */
	bool is_begun, is_over, overflow;
	struct buffer in, out;	/* when the request was handled, @in contains the last reply */
	struct grpc_status status;
};

struct connection {
	nghttp2_session *session;	/* NULL: this entry is free */
	int fd;
	struct grpc_server *server;
	struct call calls[MAX_STREAMS];
	struct call *own;	/* the stream of grpc_call(); NULL in a server's connection */
};

struct grpc_server {
	const struct grpc_method *methods;
	nghttp2_session_callbacks *callbacks;
	nghttp2_option *option;
	struct connection connections[MAX_CONNECTIONS];
	int fd;			/* -1: there is no socket */
	const char *path;	/* path of the socket */
	struct stat made;
};

void *grpc_fail(struct grpc_status *status, int code, const char *fmt, ...)
{
	va_list ap;

	status->code = code;
	va_start(ap, fmt);
	vsnprintf(status->why, sizeof(status->why), fmt, ap);
	va_end(ap);
	return NULL;
}

uint8_t *grpc_pack(const ProtobufCMessage *message, size_t *len)
{
	size_t packed = protobuf_c_message_get_packed_size(message);
	uint8_t *data = alloc_zeroed(1, FRAME + packed);

	for (int i = 0; i < 4; i++)
		data[1 + i] = packed >> (24 - 8 * i);
	protobuf_c_message_pack(message, data + FRAME);
	*len = FRAME + packed;
	return data;
}

void *grpc_unpack(const ProtobufCMessageDescriptor *type, const uint8_t *data, size_t len)
{
	size_t wanted = 0;

	if (len < FRAME || data[0])
		return NULL;
	for (int i = 0; i < 4; i++)
		wanted = wanted << 8 | data[1 + i];
	return wanted == len - FRAME ? protobuf_c_message_unpack(type, NULL, wanted, data + FRAME) :
				       NULL;
}

/* Appends data to a buffer. If the buffer would become longer than @most, returns false. */
static bool append(struct buffer *buffer, const uint8_t *data, size_t len, size_t most)
{
	if (buffer->len + len > most)
		return false;
	buffer->data = alloc_resized(buffer->data, buffer->len + len + 1, 1);
	memcpy(buffer->data + buffer->len, data, len);
	buffer->len += len;
	return true;
}

/*
 * If @reply differs from the last reply, queues @reply. Frees @reply. If the peer does not read,
 * returns false.
 */
static bool queue(struct call *call, ProtobufCMessage *reply)
{
	size_t len;
	uint8_t *data = grpc_pack(reply, &len);
	bool good = true;

	if (call->in.len != len || memcmp(call->in.data, data, len)) {
		good = append(&call->out, data, len, MAX_REQUEST);
		call->in.len = 0;
		append(&call->in, data, len, len);
	}
	free(data);
	protobuf_c_message_free_unpacked(reply, NULL);
	return good;
}

static nghttp2_nv header(const char *name, const char *value)
{
	return (nghttp2_nv){ (uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value), 0 };
}

static ssize_t read_out(nghttp2_session *session, int32_t id, uint8_t *to, size_t room,
			uint32_t *flags, nghttp2_data_source *source, void *arg)
{
	struct call *call = source->ptr;
	size_t n = call->out.len < room ? call->out.len : room;
	nghttp2_nv trailer = header("grpc-status", "0");

	(void)arg;
	memcpy(to, call->out.data, n);
	call->out.len -= n;
	memmove(call->out.data, call->out.data + n, call->out.len);
	if (call->out.len)
		return n;
	if (call->method && call->method->streams)
		return n ? (ssize_t)n : NGHTTP2_ERR_DEFERRED;
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (call->method) {
		*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
		nghttp2_submit_trailer(session, id, &trailer, 1);
	}
	return n;
}

static void handle(struct call *call)
{
	ProtobufCMessage *request = NULL, *reply = NULL;

	memset(&call->status, 0, sizeof(call->status));
	if (!call->method)
		grpc_fail(&call->status, GRPC_UNIMPLEMENTED, "no such method");
	else if (call->overflow)
		grpc_fail(&call->status, GRPC_RESOURCE_EXHAUSTED, "the request is too long");
	else
		request = grpc_unpack(call->method->request, call->in.data, call->in.len);
	if (request)
		reply = call->method->handle(request, &call->status);
	else if (!call->status.code)
		grpc_fail(&call->status, GRPC_INVALID_ARGUMENT,
			  "the request is not valid, or is not exactly one message");
	protobuf_c_message_free_unpacked(request, NULL);
	call->in.len = 0;
	if (reply && !queue(call, reply))
		grpc_fail(&call->status, GRPC_RESOURCE_EXHAUSTED, "the reply is too long");
}

static int answer(nghttp2_session *session, struct call *call)
{
	nghttp2_data_provider provider = { .source.ptr = call, .read_callback = read_out };
	nghttp2_nv headers[4] = { header(":status", "200"),
				  header("content-type", "application/grpc") };
	char code[12], why[3 * sizeof(call->status.why)] = "", *to = why;

	call->is_begun = true;
	handle(call);
	if (!call->status.code)
		return nghttp2_submit_response(session, call->id, headers, 2, &provider);
	snprintf(code, sizeof(code), "%d", call->status.code);
	/* Percent-encodes the percent sign and all bytes that are not printable ASCII. */
	for (const unsigned char *c = (const unsigned char *)call->status.why; *c; c++)
		to += sprintf(to, isprint(*c) && *c != '%' ? "%c" : "%%%02X", *c);
	headers[2] = header("grpc-status", code);
	headers[3] = header("grpc-message", why);
	return nghttp2_submit_response(session, call->id, headers, 4, NULL);
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct connection *connection = arg;
	struct call *call = connection->calls, *end = call + MAX_STREAMS;

	if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	while (call < end && call->id)
		call++;
	if (call == end)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	call->id = frame->hd.stream_id;
	return nghttp2_session_set_stream_user_data(session, call->id, call);
}

/* nghttp2 terminates the name and the value with a 0. */
static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_len, const uint8_t *value, size_t len, uint8_t flags, void *arg)
{
	struct call *call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
	const struct grpc_method *method = ((struct connection *)arg)->server->methods;
	const char *key = (const char *)name, *text = (const char *)value;

	(void)flags;
	if (!call || strlen(key) != name_len || strlen(text) != len)
		return 0;
	if (!strcmp(key, "grpc-status"))
		call->status.code = atoi(text);
	else if (!strcmp(key, "grpc-message"))
		snprintf(call->status.why, sizeof(call->status.why), "%s", text);
	for (; !strcmp(key, ":path") && method && method->path; method++)
		if (!strcmp(text, method->path))
			call->method = method;
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
		   size_t len, void *arg)
{
	struct call *call = nghttp2_session_get_stream_user_data(session, id);
	size_t most = ((struct connection *)arg)->own ? MAX_REPLY : MAX_REQUEST;

	(void)flags;
	if (call && !call->is_begun)
		call->overflow |= !append(&call->in, data, len, most);
	return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
	struct call *call = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

	if ((frame->hd.type != NGHTTP2_DATA && frame->hd.type != NGHTTP2_HEADERS) ||
	    !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM))
		return 0;
	return !call || call->is_begun || ((struct connection *)arg)->own ? 0 :
									    answer(session, call);
}

static void end_call(struct call *call)
{
	free(call->in.data);
	free(call->out.data);
	memset(call, 0, sizeof(*call));
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t error, void *arg)
{
	struct call *call = nghttp2_session_get_stream_user_data(session, id);

	(void)error;
	if (call && call == ((struct connection *)arg)->own)
		call->is_over = true;
	else if (call)
		end_call(call);
	return 0;
}

static ssize_t on_send(nghttp2_session *session, const uint8_t *data, size_t len, int flags,
		       void *arg)
{
	ssize_t n = send(((struct connection *)arg)->fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);

	(void)session;
	(void)flags;
	return n >= 0 ? n : errno == EAGAIN || errno == EINTR ? NGHTTP2_ERR_WOULDBLOCK :
								NGHTTP2_ERR_CALLBACK_FAILURE;
}

static void drop(struct connection *connection)
{
	nghttp2_session_del(connection->session);
	for (int i = 0; i < MAX_STREAMS; i++)
		end_call(&connection->calls[i]);
	close(connection->fd);
	memset(connection, 0, sizeof(*connection));
}

/*
 * Adds a connection. For a client's connection, @own is its call. For a server's connection, @own
 * is NULL. The connection owns @fd. If all entries are in use, returns NULL.
 */
static struct connection *add(struct grpc_server *server, int fd, struct call *own)
{
	const nghttp2_settings_entry max = { NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, MAX_STREAMS };
	struct connection *connection = server->connections, *end = connection + MAX_CONNECTIONS;

	while (connection < end && connection->session)
		connection++;
	if (connection == end) {
		close(fd);
		return NULL;
	}
	*connection = (struct connection){ .fd = fd, .server = server, .own = own };
	if ((own ? nghttp2_session_client_new2 : nghttp2_session_server_new2)(
		    &connection->session, server->callbacks, connection, server->option))
		alloc_failed();
	nghttp2_submit_settings(connection->session, NGHTTP2_FLAG_NONE, &max, 1);
	return connection;
}

/* Sends queued data. If the connection has ended, or if @good is false, drops the connection. */
static void flush(struct connection *connection, bool good)
{
	if (nghttp2_session_send(connection->session) || !good ||
	    (!nghttp2_session_want_read(connection->session) &&
	     !nghttp2_session_want_write(connection->session)))
		drop(connection);
}

static bool receive(struct connection *connection)
{
	uint8_t data[16384];
	ssize_t n = recv(connection->fd, data, sizeof(data), MSG_DONTWAIT);

	if (n < 0)
		return errno == EAGAIN || errno == EINTR;
	return n && nghttp2_session_mem_recv(connection->session, data, n) == n;
}

void grpc_refresh(struct grpc_server *server, const struct grpc_method *method)
{
	for (int i = 0; i < MAX_CONNECTIONS; i++) {
		struct connection *c = &server->connections[i];
		bool good = true;

		for (int j = 0; j < MAX_STREAMS; j++) {
			struct call *call = &c->calls[j];

			if (call->method != method || !call->is_begun || call->status.code)
				continue;
			good &= queue(call, method->handle(NULL, &call->status));
			nghttp2_session_resume_data(c->session, call->id);
		}
		if (c->session)
			flush(c, good);
	}
}

bool grpc_serve(struct grpc_server *server, int ms)
{
	struct pollfd fds[MAX_CONNECTIONS + 1], *own = &fds[MAX_CONNECTIONS];
	struct connection *c = server->connections;
	int fd;

	for (int i = 0; i < MAX_CONNECTIONS; i++)
		fds[i] = (struct pollfd){ c[i].session ? c[i].fd : -1, POLLIN | (c[i].session &&
			nghttp2_session_want_write(c[i].session) ? POLLOUT : 0), 0 };
	*own = (struct pollfd){ server->fd, POLLIN, 0 };
	if (poll(fds, MAX_CONNECTIONS + 1, ms) < 0)
		return false;
	for (int i = 0; i < MAX_CONNECTIONS; i++)
		if (fds[i].revents)
			flush(&c[i], !(fds[i].revents & ~POLLOUT) || receive(&c[i]));
	fd = own->revents ? accept4(server->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) : -1;
	if (fd >= 0)
		add(server, fd, NULL);
	return true;
}

/*
 * Creates a socket. If @listens is true, binds it to @path, and only this user can connect.
 * Otherwise connects it to @path. Returns the socket or -errno.
 */
static int open_socket(const char *path, bool listens)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd, err;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* Linux creates the file at @path with the mode of the socket. */
	if (fd >= 0 && !fchmod(fd, 0700) &&
	    !(listens ? bind(fd, (void *)&address, sizeof(address)) || listen(fd, 128) :
			connect(fd, (void *)&address, sizeof(address))))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

void *grpc_call(struct grpc_server *server, const char *socket, const char *path,
		const void *request, const ProtobufCMessageDescriptor *type, int ms,
		struct grpc_status *status)
{
	const nghttp2_nv headers[] = {
		header(":method", "POST"), header(":scheme", "http"), header(":path", path),
		header(":authority", "localhost"), header("content-type", "application/grpc"),
		header("te", "trailers"),
	};
	struct call own = { .status.code = GRPC_UNAVAILABLE, .status.why = "no answer" };
	nghttp2_data_provider provider = { .source.ptr = &own, .read_callback = read_out };
	long until = process_now_ms() + ms, left;
	struct connection *connection;
	void *reply = NULL;
	int fd = open_socket(socket, false);

	if (fd < 0)
		return grpc_fail(status, GRPC_UNAVAILABLE, "%s", strerror(-fd));
	own.out.data = grpc_pack(request, &own.out.len);
	connection = add(server, fd, &own);
	if (connection)
		nghttp2_submit_request(connection->session, NULL, headers,
				       sizeof(headers) / sizeof(headers[0]), &provider, &own);
	while (connection && connection->own == &own && !own.is_over &&
	       (left = until - process_now_ms()) > 0 && grpc_serve(server, left))
		;
	if (connection && connection->own == &own)
		drop(connection);
	if (!own.status.code && !own.overflow)
		reply = grpc_unpack(type, own.in.data, own.in.len);
	if (!own.status.code && !reply)
		grpc_fail(&own.status, GRPC_UNAVAILABLE, "the reply is not valid");
	*status = own.status;
	end_call(&own);
	return reply;
}

struct grpc_server *grpc_open(const struct grpc_method *methods)
{
	struct grpc_server *server = alloc_zeroed(1, sizeof(*server));
	nghttp2_session_callbacks *callbacks;

	if (nghttp2_session_callbacks_new(&callbacks) || nghttp2_option_new(&server->option))
		alloc_failed();
	/* For nghttp2, kubelet's :authority is an error: it is the path of the socket. */
	nghttp2_option_set_no_http_messaging(server->option, 1);
	nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
	nghttp2_session_callbacks_set_send_callback(callbacks, on_send);
	server->callbacks = callbacks;
	server->methods = methods;
	server->fd = -1;
	return server;
}

/* Returns true if grpc_listen() created the socket that is now at the path. */
static bool is_in_place(const struct grpc_server *server)
{
	struct stat st;

	return server->path && !stat(server->path, &st) &&
	       st.st_ino == server->made.st_ino &&
	       !memcmp(&st.st_ctim, &server->made.st_ctim, sizeof(st.st_ctim));
}

void grpc_close(struct grpc_server *server)
{
	for (int i = 0; i < MAX_CONNECTIONS; i++)
		if (server->connections[i].session)
			drop(&server->connections[i]);
	if (is_in_place(server))
		unlink(server->path);
	close(server->fd);
	nghttp2_session_callbacks_del(server->callbacks);
	nghttp2_option_del(server->option);
	free(server);
}

int grpc_listen(struct grpc_server *server, const char *path)
{
	int fd;

	if (is_in_place(server))
		return 0;
	unlink(path);
	fd = open_socket(path, true);
	if (fd < 0)
		return fd;
	close(server->fd);
	server->fd = fd;
	server->path = path;
	return stat(path, &server->made) ? -errno : 1;
}
