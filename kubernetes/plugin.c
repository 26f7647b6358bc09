// SPDX-License-Identifier: MIT
/*
 * gpupart-device-plugin: offers a node's TPCs to kubelet and allocates them to containers. The
 * program has one thread. All allocations are stored in the node's grants, so the program can
 * be killed at any time.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/mps/mps_daemon.h"
#include "cli/util/alloc.h"
#include "cli/util/message.h"
#include "cli/util/process.h"
#include "kubernetes/grpc.h"
#include "kubernetes/pods.h"
#include "slurm/node_lock.h"

#define ENDPOINT "gpupart.sock"
/*
 * The plugins of a node share the node's grants. So there is one lock for all plugins of the node.
 * The lock is not in the directory of the socket, because kubelet removes all files there when it
 * starts.
 */
#define LOCK "/run/gpupart/device-plugin.lock"
#define LOCK_SECONDS 1
#define REGISTER_MS 15000
#define LIST_MS 2000
#define WATCH_MS 500		/* ms between two checks of the sockets */
#define POLL_TURNS 2		/* checks of the sockets for each read of kubelet's list */

static const char help[] =
"Usage: gpupart-device-plugin [--kubelet DIR] [--config FILE]\n"
"Offers the TPCs of this node's GPUs to kubelet as " NODE_RESOURCE ", and allocates\n"
"them to containers. Runs as root, as a service: Documentation/user/kubernetes.md.\n\n"
"      --kubelet DIR   kubelet's folder (" NODE_KUBELET ")\n"
"      --config FILE   the settings (" NODE_CONFIG ")\n"
"  -h, --help\n";

static struct grpc_server *server;
/* The sockets where kubelet registers plugins and lists pods, and the plugin's socket. */
static const char *registry, *lister, *endpoint;
static volatile sig_atomic_t ended;
static uint64_t lister_made;	/* time when kubelet made @lister; ns of CLOCK_REALTIME */

/* A signal just before poll() does not interrupt poll(). So there is one every 100 ms from now. */
static void on_end(int sig)
{
	ended = sig;
	ualarm(100000, 0);
}

static void *get_options(const void *request, struct grpc_status *status)
{
	Kubelet__Options *options = node_message(&kubelet__options__descriptor);

	(void)request;
	(void)status;
	options->preferred_allocation = true;
	return options;
}

/*
 * Lists all ids. If a GPU is lost, its ids are unhealthy. If other programs have some TPCs of a
 * GPU, an equal number of the GPU's free ids is unhealthy. So the scheduler counts free TPCs.
 */
static void *list_devices(const void *request, struct grpc_status *status)
{
	Kubelet__DeviceList *list = node_message(&kubelet__device_list__descriptor);

	(void)status;
	/* grpc_refresh() makes no request. It is called just after poll_kubelet(). */
	if (request)
		pods_read();
	for (unsigned int g = 0; g < node.boards.nr; g++) {
		struct gpupart_tpcset others = pods.taken[g], given = { 0 };
		bool healthy = node_is_healthy(g);
		unsigned int lost;

		for (unsigned int i = 0; i < pods.nr; i++)
			if (pods.list[i].gpu == g) {
				others = gpupart_tpcset_andnot(&others, &pods.list[i].grant.set);
				given = gpupart_tpcset_or(&given, &pods.list[i].ids);
			}
		lost = gpupart_tpcset_count(&others);
		for (unsigned int t = gpupart_topology_nr_tpcs(node.boards.gpus[g].topo); t--;) {
			Kubelet__Device *device = NODE_ADD(list, devices, device);
			bool is_lost = lost && !gpupart_tpcset_has(&given, t);

			lost -= is_lost;
			device->id = node_id(g, t);
			device->health = alloc_text(healthy && !is_lost ? "Healthy" : "Unhealthy");
		}
	}
	return list;
}

/*
 * Compares the GPUs with enough room. Returns the GPU with the least room. If no GPU has enough
 * room, returns the GPU with the most room.
 */
static unsigned int prefer_gpu(const struct gpupart_tpcset *ids,
			       const struct gpupart_tpcset *included, unsigned int size)
{
	unsigned int best = 0, best_rank = ~0u;

	for (unsigned int g = 0; g < node.boards.nr; g++) {
		struct gpupart_tpcset left = pods_free(g);
		unsigned int room = gpupart_tpcset_count(&left), nr = gpupart_tpcset_count(&ids[g]);
		unsigned int rank;

		room = nr < room ? nr : room;
		rank = !gpupart_tpcset_empty(&included[g]) ? 0 :
		       room >= size ? 1 + room : 2 * GPUPART_MAX_TPCS - room;
		if (rank < best_rank) {
			best = g;
			best_rank = rank;
		}
	}
	return best;
}

static void prefer_ids(const Kubelet__PreferredContainer *asked, Kubelet__Ids *chosen)
{
	struct gpupart_tpcset ids[NODE_GPUS_MAX] = { 0 }, included[NODE_GPUS_MAX] = { 0 };
	struct gpupart_tpcset order[3];
	unsigned int gpu, size = asked->size > 0 ? asked->size : 0;

	node_sort(asked->available, asked->n_available, ids);
	node_sort(asked->included, asked->n_included, included);
	gpu = prefer_gpu(ids, included, size);
	chosen->ids = alloc_zeroed(GPUPART_MAX_TPCS, sizeof(*chosen->ids));
	for (unsigned int g = 0; g < node.boards.nr; g++) {
		ids[g] = gpupart_tpcset_andnot(&ids[g], &included[g]);
		order[g == gpu] = pods_offer(g, &ids[g]);
	}
	/* Ids without a grant are second. */
	order[0] = included[gpu];
	order[2] = gpupart_tpcset_andnot(&ids[gpu], &order[1]);
	for (int pass = 0; pass < 3; pass++)
		for (int t = -1; chosen->n_ids < size &&
		     (t = gpupart_tpcset_next(&order[pass], t + 1)) >= 0;)
			chosen->ids[chosen->n_ids++] = node_id(gpu, t);
}

static void *get_preferred(const void *request, struct grpc_status *status)
{
	const Kubelet__PreferredRequest *asked = request;
	Kubelet__IdsByContainer *reply = node_message(&kubelet__ids_by_container__descriptor);

	(void)status;
	pods_read();
	for (size_t i = 0; i < asked->n_containers; i++)
		prefer_ids(asked->containers[i], NODE_ADD(reply, containers, ids));
	return reply;
}

/*
 * Finds the GPU and the set of the ids in @asked. If the ids do not belong to one GPU, returns
 * false and sets @status.
 */
static bool one_gpu(const Kubelet__Ids *asked, unsigned int *gpu, struct gpupart_tpcset *ids,
		    struct grpc_status *status)
{
	struct gpupart_tpcset sorted[NODE_GPUS_MAX] = { 0 };
	char *unknown = node_sort(asked->ids, asked->n_ids, sorted);
	unsigned int nr_gpus = 0;

	if (unknown)
		return grpc_fail(status, GRPC_INVALID_ARGUMENT, "'%.80s' is not a TPC of this node",
				 out_clean(unknown));
	for (unsigned int g = 0; g < node.boards.nr; g++)
		if (!gpupart_tpcset_empty(&sorted[g])) {
			nr_gpus++;
			*gpu = g;
			*ids = sorted[g];
		}
	if (nr_gpus == 1 && gpupart_tpcset_count(ids) == asked->n_ids)
		return true;
	if (nr_gpus < 2)
		return grpc_fail(status, GRPC_INVALID_ARGUMENT, nr_gpus ?
				 "the request contains an id twice" : "the request has no TPC");
	return grpc_fail(status, GRPC_INVALID_ARGUMENT,
		"the request has %zu TPCs of %u GPUs, but a container can have TPCs of only one GPU; %s",
		asked->n_ids, nr_gpus, pods_most());
}

/*
 * Adds the ids that kubelet lists as allocated to a set for each GPU. If that fails, returns
 * false and sets @status.
 */
static bool read_list(struct gpupart_tpcset *ids, struct grpc_status *status)
{
	static struct grpc_server *own;	/* a separate server, because the caller may be
					 * serving a request of kubelet */
	Kubelet__Empty request = KUBELET__EMPTY__INIT;
	Kubelet__PodList *list;

	own = own ?: grpc_open(NULL);
	list = grpc_call(own, lister, "/v1.PodResourcesLister/List", &request,
			 &kubelet__pod_list__descriptor, LIST_MS, status);
	for (size_t p = 0; list && p < list->n_pods; p++)
		for (size_t c = 0; c < list->pods[p]->n_containers; c++) {
			const Kubelet__PodContainer *container = list->pods[p]->containers[c];

			for (size_t d = 0; d < container->n_devices; d++)
				if (!strcmp(container->devices[d]->resource, NODE_RESOURCE))
					node_sort(container->devices[d]->ids,
						  container->devices[d]->n_ids, ids);
		}
	kubelet__pod_list__free_unpacked(list, NULL);
	return list;
}

/* Frees the TPCs of containers that have ended. */
static void poll_kubelet(void)
{
	struct gpupart_tpcset now[NODE_GPUS_MAX];
	static bool announced;
	uint64_t before;
	struct grpc_status status;
	struct stat st;
	bool listed;

	if (pods_read())
		return;
	/*
	 * A new kubelet may replace @lister before its other socket. Until the new kubelet knows
	 * its pods, its list is empty.
	 */
	do {
		memset(now, 0, sizeof(now));
		before = lister_made;
		listed = read_list(now, &status) && !stat(lister, &st);
		lister_made = listed ? PODS_NS(st.st_ctim) : before;
		if (lister_made != before)
			pods_forget_lists(0);
	} while (lister_made != before);
	if (listed)
		pods_reap(now, lister_made);
	else if (!announced && !access(lister, F_OK))
		remark("cannot find out which containers have ended: %s: %s", lister, status.why);
	announced = !listed;
	pods_follow();
}

static void give(const Kubelet__Ids *asked, Kubelet__ContainerEdits *edits,
		 struct grpc_status *status)
{
	static struct mps_daemon daemon = { .dir = MPS_DAEMON_NODE };
	char folder[PODS_FOLDER_LEN], tpcs[GPUPART_TPCSET_STRLEN];
	struct gpupart_grant grant;
	struct gpupart_tpcset ids;
	unsigned int gpu = 0;

	if (!one_gpu(asked, &gpu, &ids, status))
		return;
	/* Allocate must not wait for the daemon. So ask the kernel whether the daemon answers. */
	if (node.mps && !mps_daemon_answers(&daemon))
		grpc_fail(status, GRPC_UNAVAILABLE,
			  "%.200s has mps = yes, but no MPS daemon answers in " MPS_DAEMON_NODE
			  ": see 'systemctl status gpupart-mps'", node.config);
	else
		pods_give(gpu, &ids, &grant, folder, status);
	if (status->code == GRPC_RESOURCE_EXHAUSTED) {
		/* Containers may have ended since the last poll. */
		poll_kubelet();
		status->code = 0;
		pods_give(gpu, &ids, &grant, folder, status);
	}
	if (status->code)
		return;
	gpupart_tpcset_format_list(&grant.set, tpcs, sizeof(tpcs));
	node_edits(gpu, &grant, tpcs, folder, edits);
	remark("%s: TPCs %s of GPU %s%s", grant.name, tpcs, grant.pci,
	       node.boards.gpus[gpu].simulated ? " (simulated)" : "");
}

static void *allocate(const void *request, struct grpc_status *status)
{
	const Kubelet__IdsByContainer *asked = request;
	Kubelet__AllocateReply *reply = node_message(&kubelet__allocate_reply__descriptor);

	if (!asked->n_containers)
		grpc_fail(status, GRPC_INVALID_ARGUMENT,
			  "the request is not valid: it names no container");
	for (size_t i = 0; !status->code && i < asked->n_containers; i++)
		give(asked->containers[i], NODE_ADD(reply, containers, container_edits), status);
	if (!status->code)
		return reply;
	remark("allocation failed: %s", status->why);
	kubelet__allocate_reply__free_unpacked(reply, NULL);
	return NULL;
}

#define METHOD(name, request, handle) \
	{ "/v1beta1.DevicePlugin/" name, &kubelet__##request##__descriptor, handle, false }

static const struct grpc_method methods[] = {
	{ "/v1beta1.DevicePlugin/ListAndWatch", &kubelet__empty__descriptor, list_devices, true },
	METHOD("GetDevicePluginOptions", empty, get_options),
	METHOD("GetPreferredAllocation", preferred_request, get_preferred),
	METHOD("Allocate", ids_by_container, allocate),
	{ NULL, NULL, NULL, false },
};

/*
 * Registers the plugin with kubelet. The plugin listens at ENDPOINT. If registration fails, returns
 * false, and prints a message unless it is the same as for the last attempt.
 */
static bool register_plugin(void)
{
	Kubelet__RegisterRequest request = KUBELET__REGISTER_REQUEST__INIT;
	static struct grpc_status status, last;
	Kubelet__Empty *reply;

	request.version = (char *)"v1beta1";
	request.endpoint = (char *)ENDPOINT;
	request.resource_name = (char *)NODE_RESOURCE;
	request.options = get_options(NULL, NULL);
	/* Before its reply to this request, kubelet may call the plugin. */
	reply = grpc_call(server, registry, "/v1beta1.Registration/Register", &request,
			  &kubelet__empty__descriptor, REGISTER_MS, &status);
	if (!reply && (status.code != last.code || strcmp(status.why, last.why)))
		remark("kubelet does not register the plugin: %s: %s", registry, status.why);
	last = status;
	kubelet__options__free_unpacked(request.options, NULL);
	kubelet__empty__free_unpacked(reply, NULL);
	return reply;
}

/*
 * If the plugin's socket does not exist, creates the socket. Registers once with each kubelet that
 * starts.
 */
static void watch_sockets(void)
{
	static uint64_t registered;
	static bool is_known;
	static int waits;	/* the errno that the plugin waits for, or 0 */
	int waited = waits, made = grpc_listen(server, endpoint);
	struct stat st;
	uint64_t before = registered;

	waits = made < 0 ? -made : stat(registry, &st) ? errno : 0;
	if (waits && waits != waited && waits != ENOENT)
		remark("%s: %s", endpoint, strerror(waits));
	if (!waits != !waited)
		remark(waits ? "there is no kubelet at %s: waiting until it starts"
			     : "kubelet is at %s", registry);
	is_known &= !made;
	if (waits)
		return;
	registered = PODS_NS(st.st_ctim);
	if (registered != before)
		pods_forget_lists(registered);
	is_known = (is_known && registered == before) || register_plugin();
}

static void serve(void)
{
	long next, left;

	for (int turn = 0; !ended; turn++) {
		watch_sockets();
		if (turn % POLL_TURNS == 0) {
			poll_kubelet();
			grpc_refresh(server, &methods[0]);
		}
		next = process_now_ms() + WATCH_MS;
		while (!ended && (left = next - process_now_ms()) > 0)
			grpc_serve(server, left);
	}
}

int main(int argc, char **argv)
{
	const char *path = getenv("PATH"), *libraries = getenv("LD_LIBRARY_PATH");
	char why[256];
	int fd;

	cmd_program = "gpupart-device-plugin";
	for (int i = 1; i < argc; i++) {
		char *value = alloc_text("%s", argv[i]), *name = strsep(&value, "=");
		const char **option = !strcmp(name, "--kubelet") ? &node.kubelet :
				      !strcmp(name, "--config") ? &node.config : NULL;

		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
			return printf("%s", help) < 0;
		if (!option || !(*option = value ?: argv[++i]) || !**option)
			return usage_error("%s: %s; see --help", name,
					   option ? "needs a value" : "unknown option");
		/* Only the default file may be absent. */
		if (option == &node.config && access(*option, F_OK))
			return failure("--config %s: %s", *option, strerror(errno));
	}
	if (geteuid())
		return usage_error("must run as root: it writes the node's grants");
	registry = alloc_text("%s/device-plugins/kubelet.sock", node.kubelet);
	lister = alloc_text("%s/pod-resources/kubelet.sock", node.kubelet);
	endpoint = alloc_text("%s/device-plugins/" ENDPOINT, node.kubelet);
	/* Allocations depend on no other variables. */
	clearenv();
	if (path)
		setenv("PATH", path, 1);
	if (libraries)
		setenv("LD_LIBRARY_PATH", libraries, 1);
	cmd_gp = alloc_gpupart();
	/* Two plugins would remove each other's grants. The lock is held until the process ends. */
	fd = node_lock(LOCK, LOCK_SECONDS, why, sizeof(why));
	if (fd < 0)
		return failure("%s", fd != -EBUSY ? why :
			"another gpupart-device-plugin runs on this node and holds " LOCK
			": stop it first; lslocks(8) shows its process");
	if (node_open())
		return EXIT_FAILED;
	/* Before this, there is no socket. So a signal ends the plugin during node_open(). */
	signal(SIGTERM, on_end);
	signal(SIGINT, on_end);
	signal(SIGALRM, on_end);
	server = grpc_open(methods);
	serve();
	grpc_close(server);
	return 0;
}
