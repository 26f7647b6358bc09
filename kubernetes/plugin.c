// SPDX-License-Identifier: MIT
/*
 * gpupart-device-plugin: offers a node's TPCs to kubelet, and gives containers theirs. One thread;
 * what it gave is in the node's grants, so that it may be killed at any time.
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cli/mps/mps_daemon.h"
#include "cli/util/alloc.h"
#include "cli/util/message.h"
#include "cli/util/process.h"
#include "kubernetes/grpc.h"
#include "kubernetes/kubelet.h"
#include "kubernetes/pods.h"

#define FOLDER "/var/lib/kubelet"
#define WATCH_MS 500	/* of kubelet's socket and our own */
#define POLL_MS 1000	/* of what kubelet has given */

static const char help[] =
"Usage: gpupart-device-plugin [--kubelet DIR] [--config FILE]\n"
"Offers the TPCs of this node's GPUs to kubelet as " NODE_RESOURCE ", and gives each\n"
"container its own. As root; a service: see Documentation/user/kubernetes.md.\n"
"\n"
"      --kubelet DIR   kubelet's folder, in place of " FOLDER "\n"
"      --config FILE   the settings, in place of " NODE_CONFIG "\n"
"  -h, --help\n";

static struct node node;
static struct grpc_server *server;
static char plugins[PATH_MAX], lister[PATH_MAX];
static volatile sig_atomic_t ended;

static void on_end(int sig)
{
	ended = sig;
}

/* ------------------------------------------------------------------- replies */

#define UNPACK(type, data, len) kubelet__##type##__unpack(NULL, len, data)

static void fail(struct grpc_reply *reply, int status, const char *why)
{
	reply->status = status;
	snprintf(reply->message, sizeof(reply->message), "%s", why);
}

static void pack(const ProtobufCMessage *message, struct grpc_reply *reply)
{
	reply->data = alloc_zeroed(1, protobuf_c_message_get_packed_size(message) + 1);
	reply->len = protobuf_c_message_pack(message, reply->data);
}

static void get_options(const uint8_t *data, size_t len, struct grpc_reply *reply)
{
	Kubelet__Options options = KUBELET__OPTIONS__INIT;

	(void)data;
	(void)len;
	options.preferred_allocation = true;
	pack(&options.base, reply);
}

static void pre_start(const uint8_t *data, size_t len, struct grpc_reply *reply)
{
	(void)data;
	(void)len;
	(void)reply;
}

/*
 * All ids. Those of a lost GPU are unhealthy. So are, of each GPU, as many that no container has as
 * other programs have TPCs: the scheduler then counts what is there.
 */
static void list_devices(struct grpc_reply *reply)
{
	Kubelet__DeviceList list = KUBELET__DEVICE_LIST__INIT;
	unsigned int nr = 0, total = 0;
	struct pods pods = { 0 };
	Kubelet__Device *devices, **at;
	char (*ids)[NODE_ID_LEN];

	pods_read(&node, -1, &pods);
	for (unsigned int g = 0; g < node.boards.nr; g++)
		total += gpupart_topology_nr_tpcs(node.boards.gpus[g].topo);
	devices = alloc_zeroed(total, sizeof(*devices));
	ids = alloc_zeroed(total, sizeof(*ids));
	at = alloc_zeroed(total, sizeof(Kubelet__Device *));
	for (unsigned int g = 0; g < node.boards.nr; g++) {
		unsigned int nr_tpcs = gpupart_topology_nr_tpcs(node.boards.gpus[g].topo);
		struct gpupart_tpcset others = pods.taken[g], given = { 0 };
		bool healthy = node_is_healthy(&node, g);
		unsigned int lost;

		for (unsigned int i = 0; i < pods.nr; i++)
			if (pods.list[i].gpu == g) {
				others = gpupart_tpcset_andnot(&others, &pods.list[i].grant.set);
				given = gpupart_tpcset_or(&given, &pods.list[i].ids);
			}
		lost = gpupart_tpcset_count(&others);
		for (unsigned int t = nr_tpcs; t--; nr++) {
			bool is_lost = lost && !gpupart_tpcset_has(&given, t);

			lost -= is_lost;
			kubelet__device__init(&devices[nr]);
			node_id(&node, g, t, ids[nr]);
			devices[nr].id = ids[nr];
			devices[nr].health = (char *)(healthy && !is_lost ? "Healthy" :
									    "Unhealthy");
			at[nr] = &devices[nr];
		}
	}
	list.n_devices = nr;
	list.devices = at;
	pack(&list.base, reply);
	free(pods.list);
	free(at);
	free(ids);
	free(devices);
}

static struct grpc_reply listed;	/* what kubelet was told last */

static void watch_devices(const uint8_t *data, size_t len, struct grpc_reply *reply)
{
	(void)data;
	(void)len;
	list_devices(reply);
	free(listed.data);
	listed = *reply;
	listed.data = alloc_zeroed(1, reply->len + 1);
	memcpy(listed.data, reply->data, reply->len);
}

/* ----------------------------------------------------------------- allocation */

static unsigned int count_ids(const struct gpupart_tpcset *ids)
{
	return gpupart_tpcset_count(ids);
}

/* Ids of each GPU; false: one is none of this node's. */
static bool sort_ids(char **list, size_t nr, struct gpupart_tpcset *ids, char *why, size_t len)
{
	unsigned int gpu, tpc;

	for (size_t i = 0; i < nr; i++) {
		if (!node_find(&node, list[i], &gpu, &tpc)) {
			snprintf(why, len, "'%.80s' is no TPC of this node",
				 out_clean(list[i]));
			return false;
		}
		gpupart_tpcset_add(&ids[gpu], tpc);
	}
	return true;
}

/* The GPU with room that this leaves the least of; where none has room, the one with the most. */
static unsigned int prefer_gpu(const struct pods *pods, const struct gpupart_tpcset *ids,
			       const struct gpupart_tpcset *included, unsigned int size)
{
	unsigned int best = 0, best_room = 0;

	for (unsigned int g = 0; g < node.boards.nr; g++) {
		struct gpupart_tpcset left = pods_free(&node, pods, g);
		unsigned int room = gpupart_tpcset_count(&left), nr = count_ids(&ids[g]);

		if (count_ids(&included[g]))
			return g;
		room = nr < room ? nr : room;
		if (room >= size ? best_room < size || room < best_room :
				   best_room < size && room > best_room) {
			best = g;
			best_room = room;
		}
	}
	return best;
}

static void prefer_ids(const Kubelet__PreferredContainer *asked, const struct pods *pods,
		       Kubelet__Ids *chosen)
{
	struct gpupart_tpcset ids[NODE_GPUS_MAX] = { 0 }, included[NODE_GPUS_MAX] = { 0 };
	unsigned int gpu, size = asked->size > 0 ? asked->size : 0;
	char why[256], id[NODE_ID_LEN];

	kubelet__ids__init(chosen);
	if (!sort_ids(asked->available, asked->n_available, ids, why, sizeof(why)) ||
	    !sort_ids(asked->included, asked->n_included, included, why, sizeof(why)))
		return;
	gpu = prefer_gpu(pods, ids, included, size);
	chosen->ids = alloc_zeroed(GPUPART_MAX_TPCS, sizeof(*chosen->ids));
	ids[gpu] = gpupart_tpcset_andnot(&ids[gpu], &included[gpu]);
	for (int pass = 0; pass < 2; pass++)
		for (int t = -1; chosen->n_ids < size &&
		     (t = gpupart_tpcset_next(pass ? &ids[gpu] : &included[gpu], t + 1)) >= 0;) {
			node_id(&node, gpu, t, id);
			chosen->ids[chosen->n_ids++] = alloc_text("%s", id);
		}
}

static void get_preferred(const uint8_t *data, size_t len, struct grpc_reply *reply)
{
	Kubelet__PreferredRequest *request = UNPACK(preferred_request, data, len);
	Kubelet__IdsByContainer *answer;
	struct pods pods = { 0 };

	if (!request) {
		fail(reply, GRPC_INVALID_ARGUMENT, "the request is not understood");
		return;
	}
	answer = alloc_zeroed(1, sizeof(*answer));
	kubelet__ids_by_container__init(answer);
	answer->containers = alloc_zeroed(request->n_containers + 1, sizeof(Kubelet__Ids *));
	pods_read(&node, -1, &pods);
	for (size_t i = 0; i < request->n_containers; i++) {
		Kubelet__Ids *chosen = alloc_zeroed(1, sizeof(*chosen));

		prefer_ids(request->containers[i], &pods, chosen);
		answer->containers[answer->n_containers++] = chosen;
	}
	pack(&answer->base, reply);
	free(pods.list);
	kubelet__ids_by_container__free_unpacked(answer, NULL);
	kubelet__preferred_request__free_unpacked(request, NULL);
}

/* The one GPU of @asked: its ids, or false. */
static bool one_gpu(const Kubelet__Ids *asked, unsigned int *gpu, struct gpupart_tpcset *ids,
		    char *why, size_t len)
{
	struct gpupart_tpcset sorted[NODE_GPUS_MAX] = { 0 };
	unsigned int nr_gpus = 0, most, best;
	struct pods pods = { 0 };

	if (!sort_ids(asked->ids, asked->n_ids, sorted, why, len))
		return false;
	for (unsigned int g = 0; g < node.boards.nr; g++)
		if (count_ids(&sorted[g])) {
			nr_gpus++;
			*gpu = g;
			*ids = sorted[g];
		}
	if (nr_gpus == 1 && count_ids(ids) == asked->n_ids)
		return true;
	snprintf(why, len, asked->n_ids ? "an id is there twice" : "no TPC is asked for");
	if (nr_gpus < 2)
		return false;
	pods_read(&node, -1, &pods);
	most = pods_most(&node, &pods, &best);
	snprintf(why, len,
		 "%zu TPCs of %u GPUs: a container has TPCs of one GPU; the most that one GPU of this node has free is %u, on GPU %s",
		 asked->n_ids, nr_gpus, most, node.boards.gpus[best].pci);
	free(pods.list);
	return false;
}

static void poll_kubelet(void);

/* Asks no daemon, only the kernel: it is to take no time. */
static bool mps_is_there(char *why, size_t len)
{
	static struct mps_daemon daemon = { .dir = MPS_DAEMON_NODE };

	if (!node.mps || mps_daemon_answers(&daemon))
		return true;
	snprintf(why, len, "mps = yes in " NODE_CONFIG ", and no MPS daemon answers in "
		 MPS_DAEMON_NODE ": see 'systemctl status gpupart-mps'");
	return false;
}

static int give(const Kubelet__Ids *asked, Kubelet__ContainerEdits *edits, char *why, size_t len)
{
	struct gpupart_tpcset ids;
	char folder[PODS_FOLDER_LEN], list[GPUPART_TPCSET_STRLEN];
	struct gpupart_grant grant;
	unsigned int gpu;
	int err;

	if (!one_gpu(asked, &gpu, &ids, why, len))
		return GRPC_INVALID_ARGUMENT;
	if (!mps_is_there(why, len))
		return GRPC_UNAVAILABLE;
	err = pods_give(&node, gpu, &ids, &grant, folder, why, len);
	if (err == -ENOSPC) {
		/* Perhaps of containers that have ended. */
		poll_kubelet();
		err = pods_give(&node, gpu, &ids, &grant, folder, why, len);
	}
	if (err)
		return err == -ENOSPC ? GRPC_RESOURCE_EXHAUSTED : GRPC_UNAVAILABLE;
	node_edits(&node, gpu, &grant, folder, edits);
	gpupart_tpcset_format_list(&grant.set, list, sizeof(list));
	remark("%s: TPCs %s of GPU %s%s", grant.name, list, grant.pci,
	       node.boards.gpus[gpu].simulated ? " (simulated)" : "");
	return 0;
}

static void allocate(const uint8_t *data, size_t len, struct grpc_reply *reply)
{
	Kubelet__IdsByContainer *request = UNPACK(ids_by_container, data, len);
	Kubelet__AllocateReply *answer;
	char why[480] = "the request is not understood";
	int status = request && request->n_containers ? 0 : GRPC_INVALID_ARGUMENT;

	answer = alloc_zeroed(1, sizeof(*answer));
	kubelet__allocate_reply__init(answer);
	answer->containers = alloc_zeroed(request ? request->n_containers + 1 : 1,
					  sizeof(Kubelet__ContainerEdits *));
	for (size_t i = 0; !status && i < request->n_containers; i++) {
		Kubelet__ContainerEdits *edits = alloc_zeroed(1, sizeof(*edits));

		kubelet__container_edits__init(edits);
		answer->containers[answer->n_containers++] = edits;
		status = give(request->containers[i], edits, why, sizeof(why));
	}
	if (status) {
		remark("nothing is given: %s", why);
		fail(reply, status, why);
	} else {
		pack(&answer->base, reply);
	}
	kubelet__allocate_reply__free_unpacked(answer, NULL);
	if (request)
		kubelet__ids_by_container__free_unpacked(request, NULL);
}

#define SERVICE "/v1beta1.DevicePlugin/"

static const struct grpc_method methods[] = {
	{ SERVICE "GetDevicePluginOptions", get_options, false },
	{ SERVICE "GetPreferredAllocation", get_preferred, false },
	{ SERVICE "Allocate", allocate, false },
	{ SERVICE "PreStartContainer", pre_start, false },
	{ SERVICE "ListAndWatch", watch_devices, true },
	{ NULL, NULL, false },
};

/* --------------------------------------------------------------------- kubelet */

/* Takes back what has ended, and tells kubelet of what became of the GPUs. */
static void poll_kubelet(void)
{
	struct gpupart_tpcset now[NODE_GPUS_MAX] = { 0 }, noted[NODE_GPUS_MAX] = { 0 };
	static bool told;
	struct pods pods;
	char why[256];

	if (pods_read(&node, -1, &pods))
		return;
	if (kubelet_list(lister, &node, now, why, sizeof(why))) {
		if (!told && !access(lister, F_OK))
			remark("what containers have ended is not known: %s", why);
		told = true;
	} else {
		told = false;
		kubelet_noted(plugins, &node, noted);
		pods_reap(&pods, now, noted);
	}
	pods_follow(&pods);
	free(pods.list);
}

static void tell_devices(void)
{
	struct grpc_reply reply = { 0 };

	list_devices(&reply);
	if (listed.data && (reply.len != listed.len ||
			    memcmp(reply.data, listed.data, reply.len))) {
		grpc_send(server, &methods[4], reply.data, reply.len);
		free(listed.data);
		listed = reply;
	} else {
		free(reply.data);
	}
}

/* In a child: kubelet may ask us before it answers. */
static pid_t register_anew(void)
{
	pid_t pid = fork();

	if (!pid)
		_exit(kubelet_register(plugins) ? EXIT_FAILURE : 0);
	return pid;
}

/* Our socket and kubelet's are there: the plugin is registered once with each kubelet. */
static void watch_sockets(void)
{
	static struct timespec registered;
	static bool waits, is_known;
	static pid_t child;
	char path[PATH_MAX + 32];
	struct stat st;
	int status, err;

	if (child > 0 && waitpid(child, &status, WNOHANG) == child) {
		child = 0;
		is_known = !status;
	}
	if (!grpc_listens(server)) {
		snprintf(path, sizeof(path), "%s/" KUBELET_ENDPOINT, plugins);
		err = grpc_listen(server, path);
		is_known = false;
		if (err && err != -ENOENT)
			remark("%s: %s", path, strerror(-err));
	}
	snprintf(path, sizeof(path), "%s/kubelet.sock", plugins);
	if (stat(path, &st) || !grpc_listens(server)) {
		if (!waits)
			remark("no kubelet at %s: waiting for it", path);
		waits = true;
		is_known = false;
		return;
	}
	if (child > 0 || (is_known && !memcmp(&registered, &st.st_ctim, sizeof(registered))))
		return;
	if (waits)
		remark("kubelet is at %s", path);
	waits = false;
	if (memcmp(&registered, &st.st_ctim, sizeof(registered)))
		pods_forget_lists();
	registered = st.st_ctim;
	child = register_anew();
}

static int serve(void)
{
	long now = process_now_ms(), watch = now, poll = now;

	while (!ended) {
		now = process_now_ms();
		if (now >= watch) {
			watch_sockets();
			watch = now + WATCH_MS;
		}
		if (now >= poll) {
			poll_kubelet();
			tell_devices();
			poll = process_now_ms() + POLL_MS;
		}
		grpc_serve(server, watch > now ? watch - now : 0);
	}
	grpc_close(server);
	return 0;
}

int main(int argc, char **argv)
{
	const char *folder = FOLDER, *config = NODE_CONFIG;
	struct sigaction end = { .sa_handler = on_end };

	cmd_name = "device-plugin";
	for (int i = 1; i < argc; i++) {
		const char **value = !strcmp(argv[i], "--kubelet") ? &folder :
				     !strcmp(argv[i], "--config") ? &config : NULL;

		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
			return printf("%s", help) < 0;
		if (!value || i + 1 == argc)
			return usage_error("%s: %s; see --help", argv[i],
					   value ? "wants a value" : "is no option");
		*value = argv[++i];
	}
	if (geteuid())
		return usage_error("must be root: it notes what root gives");
	snprintf(plugins, sizeof(plugins), "%s/device-plugins", folder);
	snprintf(lister, sizeof(lister), "%s/pod-resources/kubelet.sock", folder);
	sigaction(SIGTERM, &end, NULL);
	sigaction(SIGINT, &end, NULL);
	cmd_gp = alloc_gpupart();
	if (node_open(&node, config))
		return EXIT_FAILED;
	server = grpc_open(methods);
	if (!server)
		alloc_failed();
	return serve();
}
