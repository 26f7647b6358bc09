// SPDX-License-Identifier: MIT
/* gpupart metrics: writes Prometheus metrics of running programs once, or serves the metrics. */
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "cli/cmd.h"
#include "cli/metrics/metrics.h"
#include "cli/target/args.h"
#include "cli/target/settings.h"
#include "cli/util/atomic_file.h"
#include "cli/util/number.h"
#include "cli/util/out.h"
#include "cli/util/paths.h"

const char metrics_help[] =
"Usage: gpupart metrics [--of FORM] [-o FILE]\n"
"       gpupart metrics --listen WHERE\n"
"Reports your jobs, or as root those of all users, in a text format for Prometheus.\n"
"\n"
"      --of FORM       openmetrics (the default) or prometheus, the older text format\n"
"                      that node_exporter reads (the default for -o FILE.prom)\n"
"  -o, --output FILE   replace FILE as a whole; FILE.totals keeps the counts of ended\n"
"                      processes\n"
"      --listen WHERE  serve HTTP at ADDRESS:PORT (127.0.0.1:19400, [::1]:19400) to\n"
"                      every client that can connect, or at the path of a socket, to\n"
"                      this user only\n"
"\n"
"The systemd unit gpupart-metrics serves at /run/gpupart/metrics.sock. There is no\n"
"default port: 9400 is the port of NVIDIA's dcgm-exporter. When a process ends, its\n"
"last known counts are added to the counts of its job. The counts of processes are\n"
"read each second while metrics are served, and at each run with -o. If neither is\n"
"done, the counts of ended processes are lost.\n"
"\n"
"Documentation/user/metrics.md explains each metric and label.\n"
"\n"
"Exit status: 0 done, 1 reading, writing or serving failed, 2 a bad option.\n"
"\n"
"Examples:\n"
"  gpupart metrics\n"
"  sudo gpupart metrics -o /var/lib/prometheus/node-exporter/gpupart.prom\n"
"  gpupart metrics --listen 127.0.0.1:19400\n";

static struct metrics metrics;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/*
 * The maximum ages, in seconds, of a process list that is used again. LIST_AGE applies between
 * requests. LIST_MOST applies during a request.
 */
#define LIST_AGE	5
#define LIST_MOST	60

/* Collects the metrics. If @text is not NULL, the caller must free *text. Returns 0 or an error. */
static int look_now(char **text, bool openmetrics, int age)
{
	int status;

	pthread_mutex_lock(&lock);
	status = metrics_collect(&metrics, age);
	if (text)
		*text = metrics_text(&metrics, openmetrics);
	pthread_mutex_unlock(&lock);
	return status;
}

/*
 * Compares each counter with its value in the file at @path. If the value in the file is larger,
 * sets the counter to that value.
 */
static void raise_to_last(const char *path)
{
	FILE *file = metrics_open(path);
	char *text = NULL;
	size_t room = 0;

	/*
	 * The file contains no zero byte. So this call, which reads up to a zero byte, reads the
	 * whole file.
	 */
	if (file && getdelim(&text, &room, 0, file) > 0)
		metrics_raise(&metrics, text);
	free(text);
	if (file)
		fclose(file);
}

static int write_once(const struct args *args, bool openmetrics)
{
	struct stat st;
	/* If FILE is a regular file, FILE.totals stores the counts of ended processes. */
	bool keep = args->output && (stat(args->output, &st) ? errno == ENOENT :
							      S_ISREG(st.st_mode));
	char *totals = alloc_text("%s.totals", args->output ?: ""), *text;
	int err = keep ? metrics_totals_read(totals) : 0, status;
	struct out out;

	if (err > 0)
		remark("%s:%d: ignoring a line that is not a line of totals", totals, err);
	else if (err)
		remark("%s: %s: counts of ended processes are lost", totals,
		       err == -EPERM ? "is not a file of this user" : atomic_file_strerror(err));
	/* In this case, do not write FILE.totals. It may be a FIFO without a reader. */
	keep = keep && err != -EPERM;
	status = look_now(NULL, openmetrics, 0);
	if (!status && keep)
		raise_to_last(args->output);
	text = metrics_text(&metrics, openmetrics);
	err = !status && keep ? metrics_totals_write(totals) : 0;
	if (err)
		status = failure("-o %s: %s", totals, atomic_file_strerror(err));
	err = !status && args->output ? atomic_file_write(args->output, text) : 0;
	if (err)
		status = failure("-o %s: %s", args->output, atomic_file_strerror(err));
	if (!status && !args->output) {
		out_open(&out, args);
		fputs(text, out.file);
		status = out_close(&out);
	}
	free(text);
	free(totals);
	return status;
}

/* ----------------------------------------------------------------------- served */

static void look(void)
{
	look_now(NULL, false, LIST_AGE);
}

/* Returns the metrics. If the metrics cannot be read, returns NULL. */
static char *text_now(bool openmetrics)
{
	char *text;

	if (!look_now(&text, openmetrics, LIST_MOST))
		return text;
	free(text);
	return NULL;
}

static bool is_path(const char *where)
{
	return *where == '/' || *where == '.';
}

/*
 * Returns true if no server answers at the socket. In this case the server was killed and left the
 * socket file.
 */
static bool is_stale(const struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct stat st;
	bool stale = !lstat(address->sun_path, &st) && S_ISSOCK(st.st_mode) &&
		     connect(fd, (const struct sockaddr *)address, sizeof(*address)) &&
		     errno == ECONNREFUSED;

	close(fd);
	return stale;
}

/* Creates a socket that listens at @path. Returns the descriptor, or -errno. */
static int listen_path(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const struct sockaddr *at = (const struct sockaddr *)&address;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), err;
	mode_t mask = umask(0177);
	struct stat st;

	if (snprintf(address.sun_path, sizeof(address.sun_path), "%s", path) >=
	    (int)sizeof(address.sun_path)) {
		err = -ENAMETOOLONG;
	} else {
		err = bind(fd, at, sizeof(address)) ? -errno : 0;
		if (err == -EADDRINUSE && is_stale(&address) && !unlink(path))
			err = bind(fd, at, sizeof(address)) ? -errno : 0;
		if (err == -EADDRINUSE && !stat(path, &st) && S_ISDIR(st.st_mode))
			err = -EISDIR;
	}
	umask(mask);
	if (!err && listen(fd, SOMAXCONN))
		err = -errno;
	if (err)
		close(fd);
	return err ?: fd;
}

static int listen_address(const struct addrinfo *at)
{
	int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1, err;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (!bind(fd, at->ai_addr, at->ai_addrlen) && !listen(fd, SOMAXCONN))
		return fd;
	err = -errno;
	close(fd);
	return err;
}

/* Listens at ADDRESS:PORT, [ADDRESS]:PORT or a path. Returns 0 or an error. */
static int listen_at(const char *where, int *fd)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV };
	char *host = alloc_text("%s", where), *colon = strrchr(host, ':'), *end = colon;
	struct addrinfo *found = NULL;
	unsigned long port;
	int err = 0;

	if (is_path(where)) {
		*fd = listen_path(where);
	} else if (!colon || colon == host || !number_whole(colon + 1, 65535, &port) ||
		   (*host == '[' ? *--end != ']' : strchr(host, ':') != colon)) {
		err = usage_error(
			"--listen %s: must be ADDRESS:PORT, [IPV6-ADDRESS]:PORT or a path", where);
	} else {
		*end = 0;
		err = getaddrinfo(host + (*host == '['), colon + 1, &hints, &found);
		if (err)
			err = usage_error("--listen %s: %s", where, gai_strerror(err));
		else
			*fd = listen_address(found);
	}
	if (found)
		freeaddrinfo(found);
	free(host);
	return err ?: *fd < 0 ? failure("--listen %s: %s", where, strerror(-*fd)) : 0;
}

static int serve_at(const char *where)
{
	char path[512];
	int err = paths_package(METRICS_HTTP, path, sizeof(path)), status, fd = -1;
	void *lib = err || access(path, F_OK) ? NULL : dlopen(path, RTLD_NOW);
	metrics_serve *serve = NULL;

	if (lib)
		*(void **)&serve = dlsym(lib, "gpupart_metrics_serve");
	if (!serve)
		return usage_error("cannot serve metrics: %s",
				   err || access(path, F_OK) ? METRICS_HTTP
					   " was not built: the build needs libmicrohttpd-dev"
							     : dlerror());
	/* Do this before listening. Then no client has connected yet if this step fails. */
	status = look_now(NULL, false, 0) ?: listen_at(where, &fd);
	if (status)
		return status;
	remark("serving HTTP at %s", where);
	err = serve(fd, text_now, look);
	if (is_path(where))
		unlink(where);
	return err ? failure("serving at %s: %s", where, strerror(-err)) : 0;
}

int cmd_metrics(int argc, char **argv)
{
	const char *form = NULL, *where = NULL;
	bool openmetrics = true;
	const struct args_option own[] = { { .name = "of", .value = &form },
					   { .name = "listen", .value = &where }, { 0 } };
	struct args args = { 0 };
	int status = args_parse(&args, ARGS_OUTPUT, own, metrics_help, argc, argv);
	size_t len = args.output ? strlen(args.output) : 0;

	if (status)
		return status;
	if (form ? !strcmp(form, "prometheus") : len > 5 && !strcmp(args.output + len - 5, ".prom"))
		openmetrics = false;
	else if (form && strcmp(form, "openmetrics"))
		return usage_error("--of %s: must be openmetrics or prometheus", form);
	if (where && (form || args.output))
		return usage_error(
			"%s cannot be used with --listen: each client requests its own format",
			form ? "--of" : "-o");
	settings_report();
	model_begin(&metrics.model, NULL, NULL);
	return where ? serve_at(where) : write_once(&args, openmetrics);
}
