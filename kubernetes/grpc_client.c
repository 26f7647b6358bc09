// SPDX-License-Identifier: MIT
/* The client's side of gRPC: one call on a connection of its own, which waits for the answer. */
#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include "cli/util/process.h"
#include "kubernetes/grpc.h"

struct client {
	const uint8_t *request;
	size_t request_len, sent;
	uint8_t *body;
	size_t len;
	int status;		/* -1: none came */
	char message[512];
	bool overflow, over;
};

static nghttp2_nv header(const char *name, const char *value)
{
	return (nghttp2_nv){ (uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value),
			     NGHTTP2_NV_FLAG_NONE };
}

static ssize_t read_request(nghttp2_session *session, int32_t id, uint8_t *to, size_t room,
			    uint32_t *flags, nghttp2_data_source *source, void *arg)
{
	struct client *client = arg;
	size_t n = client->request_len - client->sent;

	(void)session;
	(void)id;
	(void)source;
	n = n < room ? n : room;
	memcpy(to, client->request + client->sent, n);
	client->sent += n;
	if (client->sent == client->request_len)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return n;
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
		     size_t name_len, const uint8_t *value, size_t len, uint8_t flags, void *arg)
{
	struct client *client = arg;

	(void)session;
	(void)frame;
	(void)name_len;
	(void)len;
	(void)flags;
	if (!strcmp((const char *)name, "grpc-status"))
		client->status = atoi((const char *)value);
	else if (!strcmp((const char *)name, "grpc-message"))
		snprintf(client->message, sizeof(client->message), "%s", (const char *)value);
	return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data,
		   size_t len, void *arg)
{
	struct client *client = arg;
	uint8_t *body;

	(void)session;
	(void)flags;
	(void)id;
	/* Of every pod of a node, all resources together. */
	body = client->len + len > 16 * GRPC_MAX_MESSAGE ? NULL :
	       realloc(client->body, client->len + len);
	if (!body) {
		client->overflow = true;
		return 0;
	}
	memcpy(body + client->len, data, len);
	client->body = body;
	client->len += len;
	return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t error, void *arg)
{
	(void)session;
	(void)id;
	(void)error;
	((struct client *)arg)->over = true;
	return 0;
}

static int connect_to(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd, err;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	strcpy(address.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (!connect(fd, (struct sockaddr *)&address, sizeof(address)))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

/* Moves bytes both ways until the stream is over: 0 or -errno. */
static int exchange(int fd, nghttp2_session *session, struct client *client, long until)
{
	uint8_t data[16384];
	const uint8_t *out = NULL;
	ssize_t left = 0, n;

	while (!client->over) {
		struct pollfd wait = { .fd = fd, .events = POLLIN };
		long ms = until - process_now_ms();

		if (!left)
			left = nghttp2_session_mem_send(session, &out);
		if (left < 0)
			return -EPROTO;
		n = left ? send(fd, out, left, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;
		if (n < 0 && errno != EAGAIN)
			return -errno;
		left -= n > 0 ? n : 0;
		out += n > 0 ? n : 0;
		if (n > 0)
			continue;
		if (left)
			wait.events |= POLLOUT;
		if (ms <= 0 || !poll(&wait, 1, ms))
			return -ETIMEDOUT;
		if (!(wait.revents & (POLLIN | POLLHUP | POLLERR)))
			continue;
		n = recv(fd, data, sizeof(data), MSG_DONTWAIT);
		if (n < 0 && errno != EAGAIN)
			return -errno;
		if (!n || (n > 0 && nghttp2_session_mem_recv(session, data, n) != n))
			return -EPROTO;
	}
	return 0;
}

static nghttp2_session *new_session(struct client *client)
{
	nghttp2_session_callbacks *callbacks;
	nghttp2_session *session = NULL;

	if (nghttp2_session_callbacks_new(&callbacks))
		return NULL;
	nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
	if (nghttp2_session_client_new(&session, callbacks, client))
		session = NULL;
	nghttp2_session_callbacks_del(callbacks);
	return session;
}

static int take_reply(const struct client *client, struct grpc_reply *reply)
{
	const uint8_t *message;
	size_t len;

	if (client->status < 0)
		return -EPROTO;
	reply->status = client->status;
	memcpy(reply->message, client->message, sizeof(reply->message));
	if (client->status)
		return 0;
	if (client->overflow || !grpc_unframe(client->body, client->len, &message, &len))
		return -EPROTO;
	reply->data = malloc(len + 1);
	if (!reply->data)
		return -ENOMEM;
	memcpy(reply->data, message, len);
	reply->len = len;
	return 0;
}

int grpc_call(const char *socket, const char *path, const uint8_t *data, size_t len, int ms,
	      struct grpc_reply *reply)
{
	const nghttp2_nv headers[] = {
		header(":method", "POST"), header(":scheme", "http"), header(":path", path),
		header(":authority", "localhost"), header("content-type", "application/grpc"),
		header("te", "trailers"),
	};
	nghttp2_data_provider provider = { .read_callback = read_request };
	struct client client = { .status = -1, .request_len = GRPC_FRAME + len };
	uint8_t *request = malloc(GRPC_FRAME + len);
	nghttp2_session *session = request ? new_session(&client) : NULL;
	int fd = session ? connect_to(socket) : -ENOMEM, err = fd < 0 ? fd : 0;

	memset(reply, 0, sizeof(*reply));
	if (err)
		goto free_session;
	grpc_frame(len, request);
	if (len)
		memcpy(request + GRPC_FRAME, data, len);
	client.request = request;
	nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, NULL, 0);
	if (nghttp2_submit_request(session, NULL, headers, sizeof(headers) / sizeof(headers[0]),
				   &provider, NULL) < 0)
		err = -ENOMEM;
	err = err ?: exchange(fd, session, &client, process_now_ms() + ms) ?:
	      take_reply(&client, reply);
	close(fd);
free_session:
	if (session)
		nghttp2_session_del(session);
	free(client.body);
	free(request);
	return err;
}
