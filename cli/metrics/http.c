// SPDX-License-Identifier: MIT
/*
 * Serves metrics by HTTP. This is a separate library. So the command itself does not need
 * libmicrohttpd.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <microhttpd.h>
#include "cli/metrics/metrics.h"

#define CLIENTS		64	/* maximum number of connections; one more connection closes the
				 * oldest connection */
#define LEAVING		32	/* connections that are being closed */
#define CLIENT_SECONDS	10	/* an idle connection is closed after this time */

/*
 * Descriptors plus 1, oldest first; 0: none. No thread except the server's thread uses this array.
 */
static int clients[CLIENTS];
static unsigned int next;

/*
 * If there are too many connections, closes the oldest connection. Idle connections must not block
 * new connections.
 */
static void on_connection(void *user, struct MHD_Connection *client, void **place,
			  enum MHD_ConnectionNotificationCode what)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(client, MHD_CONNECTION_INFO_CONNECTION_FD);
	int *mine = *place;

	(void)user;
	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		mine = *place = &clients[next++ % CLIENTS];
		if (*mine)
			shutdown(*mine - 1, SHUT_RDWR);
		*mine = info->connect_fd + 1;
	} else if (*mine == info->connect_fd + 1) {
		*mine = 0;
	}
}

static enum MHD_Result answer(struct MHD_Connection *client, unsigned int status, char *text,
			      enum MHD_ResponseMemoryMode mode, const char *type)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(strlen(text), text, mode);
	enum MHD_Result result;

	if (!response)
		return MHD_NO;
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	result = MHD_queue_response(client, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result on_request(void *user, struct MHD_Connection *client, const char *url,
				  const char *method, const char *version, const char *upload,
				  size_t *upload_size, void **state)
{
	const char *accept = MHD_lookup_connection_value(client, MHD_HEADER_KIND,
							 MHD_HTTP_HEADER_ACCEPT);
	bool openmetrics = accept && strstr(accept, "application/openmetrics-text");
	char *(*const *text)(bool) = user;
	bool seen = *state;
	char *page;

	(void)version;
	(void)upload;
	/* The first call is for the headers of a request. Ignore the body. */
	*state = (void *)text;
	if (!seen || *upload_size) {
		*upload_size = 0;
		return MHD_YES;
	}
	if (strcmp(url, "/metrics"))
		return answer(client, MHD_HTTP_NOT_FOUND, "only /metrics is here\n",
			      MHD_RESPMEM_PERSISTENT, "text/plain");
	if (strcmp(method, MHD_HTTP_METHOD_GET) && strcmp(method, MHD_HTTP_METHOD_HEAD))
		return answer(client, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD\n",
			      MHD_RESPMEM_PERSISTENT, "text/plain");
	page = (*text)(openmetrics);
	if (!page)
		return answer(client, MHD_HTTP_INTERNAL_SERVER_ERROR, "nothing could be read\n",
			      MHD_RESPMEM_PERSISTENT, "text/plain");
	return answer(client, MHD_HTTP_OK, page, MHD_RESPMEM_MUST_FREE,
		      openmetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8" :
				    "text/plain; version=0.0.4; charset=utf-8");
}

__attribute__((visibility("default")))
int gpupart_metrics_serve(int fd, char *(*text)(bool openmetrics), void (*look)(void))
{
	const struct timespec second = { .tv_sec = 1 };
	struct MHD_Daemon *server;
	sigset_t ending;

	/*
	 * The server's thread inherits the signal mask. So signals end the loop below, and nothing
	 * else.
	 */
	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&ending);
	sigaddset(&ending, SIGTERM);
	sigaddset(&ending, SIGINT);
	sigprocmask(SIG_BLOCK, &ending, NULL);
	server = MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL,
				  on_request, &text, MHD_OPTION_LISTEN_SOCKET, fd,
				  MHD_OPTION_CONNECTION_LIMIT, CLIENTS + LEAVING,
				  MHD_OPTION_NOTIFY_CONNECTION, on_connection, NULL,
				  MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)CLIENT_SECONDS,
				  MHD_OPTION_END);
	if (!server)
		return -EIO;
	while (sigtimedwait(&ending, NULL, &second) < 0)
		look();
	MHD_stop_daemon(server);
	return 0;
}
