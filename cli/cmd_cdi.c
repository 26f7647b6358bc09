// SPDX-License-Identifier: MIT
/*
 * gpupart cdi: writes devices of the Container Device Interface (CDI). A container with such a
 * device runs inside a set. A child process checks the GPU. The parent process does not use CUDA.
 * The specification of CDI is SPEC.md in github.com/cncf-tags/container-device-interface.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/target/args.h"
#include "cli/target/state_dir.h"
#include "cli/target/check.h"
#include "cli/target/clusters.h"
#include "cli/target/container_grant.h"
#include "cli/cmd.h"
#include "cli/mps/mps_daemon.h"
#include "cli/start/rules.h"
#include "cli/util/out.h"
#include "cli/util/paths.h"
#include "cli/plan/file.h"
#include "cli/target/tenants.h"
#include "cli/util/atomic_file.h"
#include "cli/util/tunables_value.h"

/*
 * The lowest version of CDI that permits all features used here. Earlier versions do not permit a
 * device name that begins with a digit. Current container runtimes, such as podman 4.3, reject
 * higher versions.
 */
#define CDI_VERSION "0.5.0"
#define VENDOR "gpupart.dev"
#define CLASS "set"
/* Simulated devices have a separate kind, so no container gets a simulated set by mistake. */
#define CLASS_SIMULATED "simulated"
#define KIND VENDOR "/" CLASS
#define KIND_SIMULATED VENDOR "/" CLASS_SIMULATED

/* A path in the container. No package uses this path, so an image may have its own gpupart. */
#define INSIDE "/usr/lib/gpupart-host"
#define INSIDE_PACKAGE INSIDE "/gpupart"
#define INSIDE_SIM INSIDE_PACKAGE "/" PATHS_SIM

#define LIBGPUPART "libgpupart.so.0"
#define LIBCUDA "libcuda.so.1"
#define LIBNVML "libnvidia-ml.so.1"
#define DEVICE_NAME_LEN (GPUPART_TPCSET_STRLEN + 72)

const char cdi_help[] =
"Usage: gpupart cdi [SET] [-i CAPTURE] [--gpu GPU] [--device NAME]\n"
"                   [--name NAME [--mem SIZE]] [--strict] [--hold] [--mps]\n"
"                   [--uid UID[:INSIDE]] [-o FILE]\n"
"       gpupart cdi --plan FILE [-i CAPTURE] [--gpu GPU] [--device PREFIX]\n"
"                   [--strict] [--hold] [--mps] [--uid UID[:INSIDE]] [-o FILE]\n"
"Writes a specification of the Container Device Interface (CDI) for containers that\n"
"run inside a set of TPCs. docker, podman, containerd and CRI-O read such files from\n"
"/etc/cdi. The device adds the limit, the injected library and the state directory to\n"
"a container. NVIDIA's own CDI device, which must also be given, adds the driver.\n"
"\n"
"SET is given as for run: -t, -g, -u, -n, --sms, --hex, --shape. Without SET the\n"
"device has all TPCs. --plan writes one device for each tenant of a plan, with its\n"
"rules.\n"
"  -i, --input CAPTURE make the device for the simulated GPU of CAPTURE\n"
"                      (sample:h200 or a file); its kind is then " KIND_SIMULATED "\n"
"      --gpu GPU       an index in PCI order, a PCI address or a UUID\n"
"      --plan FILE     output of 'plan --json', or - for stdin: one device for each\n"
"                      tenant, with its name, set and quota\n"
"      --device NAME   the device's name. The default is made of the set, with an\n"
"                      underscore for each comma: tpc0-7_16, or all. With --plan it is\n"
"                      a prefix: PREFIX-TENANT\n"
"      --name NAME     a name for the job, in GPUPART_NAME\n"
"      --mem SIZE      a quota of the GPU's memory for all containers of that name\n"
"      --strict        a process that cannot be confined finds no GPU; after the first\n"
"                      launch outside the set, later launches of the process fail. The\n"
"                      default if the node's /etc/gpupart/config has strict = yes\n"
"      --hold          the set, the quota and --strict apply to all users of the\n"
"                      container, even if a program changes its environment; needs\n"
"                      root\n"
"      --mps           programs in the container use the node's MPS daemon in\n"
"                      " MPS_DAEMON_NODE ", which must be running\n"
"      --uid UID[:INSIDE]\n"
"                      user of the container's processes on the host and, if the\n"
"                      container has a user namespace, inside it (default: the caller)\n"
"  -o, --output FILE   write FILE instead of stdout, all of it or nothing; a FILE with\n"
"                      the same content is not written again\n"
"\n"
"Run cdi again after the driver, gpupart or the GPU has changed. The state directory\n"
"below " STATE_DIR_PARENT " must be created again after a reboot: see gpupart(1), Containers.\n"
"\n"
"Exit status: 0 written, 1 failed, 2 bad usage or not supported here.\n"
"\n"
"Examples:\n"
"  gpupart cdi -g 0,1 --device half -o /etc/cdi/gpupart-half.json\n"
"  docker run --device nvidia.com/gpu=0 --device " KIND "=half IMAGE\n"
"  gpupart cdi -n 16 --name batch --uid 1000:0 -o /etc/cdi/batch.json\n"
"  gpupart plan -f tenants.yaml --json | gpupart cdi --plan - -o /etc/cdi/plan.json\n";

/* The settings of one device. Only containers with this device get these settings. */
struct share {
	char device[DEVICE_NAME_LEN];
	const char *name;		/* GPUPART_NAME, or NULL */
	char list[GPUPART_TPCSET_STRLEN];
	struct gpupart_tpcset set;
	uint64_t mem;			/* bytes; 0: no quota */
	const struct args_texts *texts;	/* rules by kernel name, from the plan's tenant */
	char *rules;			/* GPUPART_RULES, or NULL */
	bool is_new;			/* no grant existed before this command */
};

struct cdi {
	const struct args *args;
	const char *device, *name, *mem, *plan;	/* options, or NULL */
	bool strict, hold, mps;
	uid_t uid, uid_inside;
	unsigned int nr_tpcs;		/* number of TPCs of the GPU */
	char pci[20], key[20];
	struct plan_file *file;		/* content of @plan */
	unsigned int nr;
	struct share shares[GPUPART_PLAN_MAX_TENANTS];
	/* Common to all devices. A container gets these settings only once. */
	json_t *env, *nodes, *mounts;
};

/* ------------------------------------------------------------------- options */

/*
 * The rules of CDI for device names. A name of one character is rejected, because podman crashes.
 */
#define DEVICE_NAME_MOST 250	/* characters, with the tenant's name that a plan appends */

static bool is_device_name(const char *name)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				      "0123456789_-.:";
	size_t len = strlen(name), nr_alnum = strlen(letters) - 4;

	return len >= 2 && len <= DEVICE_NAME_MOST && strspn(name, letters) == len &&
	       memchr(letters, name[0], nr_alnum) && memchr(letters, name[len - 1], nr_alnum);
}

static bool parse_uid(const char *text, char end, const char **rest, uid_t *uid)
{
	unsigned long value;
	char *after;

	errno = 0;
	value = strtoul(text, &after, 10);
	/* System calls use (uid_t)-1 for "none", so this value is not a user id. */
	if (*text < '0' || *text > '9' || errno || value >= (uid_t)-1 || (*after && *after != end))
		return false;
	*rest = after;
	*uid = value;
	return true;
}

static int take_uid(struct cdi *cdi, const char *text)
{
	const char *rest;

	cdi->uid = cdi->uid_inside = geteuid();
	if (!text)
		return 0;
	if (parse_uid(text, ':', &rest, &cdi->uid)) {
		cdi->uid_inside = cdi->uid;
		if (!*rest || parse_uid(rest + 1, 0, &rest, &cdi->uid_inside))
			return 0;
	}
	return usage_error("--uid '%s': must be a user id, or OUTSIDE:INSIDE", text);
}

#define DEVICE_NAME_RULE \
	"must be 2 to 250 letters, digits, '_', '-', '.' or ':', and begin and end with a letter or digit"

/* Reads --mem. It needs --name, because a quota belongs to a tenant. Returns 0 or an error. */
static int take_mem(struct cdi *cdi)
{
	if (!cdi->name)
		return usage_error("--mem %s: needs --name, the tenant that the quota applies to",
				   cdi->mem);
	return args_memory(cdi->mem, &cdi->shares[0].mem);
}

/* Adds a device for a tenant of the plan. Returns 0 or an error. */
static int take_tenant(struct cdi *cdi, const struct plan_file_tenant *tenant)
{
	struct share *share = &cdi->shares[cdi->nr++];

	snprintf(share->device, sizeof(share->device), "%s%s%s", cdi->device ? cdi->device : "",
		 cdi->device ? "-" : "", tenant->name);
	if (!is_device_name(share->device))
		return usage_error("--plan %s: '%s' cannot be a device's name: " DEVICE_NAME_RULE
				   "; --device PREFIX adds a prefix to all of them",
				   cdi->plan, share->device);
	share->name = tenant->name;
	share->set = tenant->tpcs;
	share->mem = tenant->mem;
	share->texts = &tenant->rules;
	return rules_check(share->texts);
}

/* Call this after args_simulate(), which may restart this process. Stdin can be read only once. */
static int take_plan(struct cdi *cdi, struct args *args)
{
	int status = plan_file_read(cdi->plan, cdi->file);

	for (unsigned int i = 0; i < cdi->file->nr && !status; i++)
		status = take_tenant(cdi, &cdi->file->tenants[i]);
	/* The code in cmd_run.c handles the GPU of a plan in the same way. */
	if (!args->gpu && !args->simulated && *cdi->file->pci)
		args->gpu = cdi->file->pci;
	return status;
}

static int take_options(struct cdi *cdi, const struct args *args, const char *uid)
{
	int status = take_uid(cdi, uid);

	if (!status && cdi->name)
		status = check_name("--name", cdi->name);
	if (!status && cdi->device && !is_device_name(cdi->device))
		status = usage_error("--device '%s': " DEVICE_NAME_RULE, cdi->device);
	if (status)
		return status;
	if (cdi->hold && geteuid())
		return usage_error("--hold: only root can force a set on a container's programs");
	if (cdi->plan && (args->nr_terms || cdi->name || cdi->mem))
		return usage_error("--plan %s and %s: use only one of them", cdi->plan,
				   args->nr_terms ? args->terms[0].option :
				   cdi->name	  ? "--name" :
						    "--mem");
	if (cdi->plan)
		return 0;
	cdi->nr = 1;
	cdi->shares[0].name = cdi->name;
	return cdi->mem ? take_mem(cdi) : 0;
}

/* --------------------------------------------------------------- the pieces */

__attribute__((format(printf, 2, 3)))
static void add_env(json_t *env, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	json_array_append_new(env, json_vsprintf(fmt, ap));
	va_end(ap);
}

static json_t *mount_of(const char *path, const char *inside, bool written)
{
	json_t *options = written ? json_pack("[s,s,s,s,s]", "rw", "nosuid", "nodev", "noexec",
					      "bind") :
				    json_pack("[s,s,s,s]", "ro", "nosuid", "nodev", "bind");

	return json_pack("{s:s, s:s, s:o}", "hostPath", path, "containerPath", inside, "options",
			 options);
}

/* Mounts the host's @path at @inside. If @written is true, the container can write to @inside. */
static int add_mount(struct cdi *cdi, const char *path, const char *inside, bool written)
{
	if (!json_array_append_new(cdi->mounts, mount_of(path, inside, written)))
		return 0;
	return failure("%s: a path that is not UTF-8 cannot be written as JSON", path);
}

/* Mounts the file @name of this package. */
static int add_package(struct cdi *cdi, const char *name, const char *inside)
{
	char path[PATH_MAX];
	int err = paths_package(name, path, sizeof(path));

	if (err)
		return failure("%.*s is not installed: %s", (int)strcspn(name, "/"), name,
			       strerror(-err));
	return add_mount(cdi, path, inside, false);
}

static int add_node(struct cdi *cdi, const char *path)
{
	/* The container runtime itself reads the type and the numbers of the device node. */
	if (access(path, F_OK))
		return failure("%s: %s", path, strerror(errno));
	json_array_append_new(cdi->nodes, json_pack("{s:s, s:s}", "path", path,
						    "permissions", "rw"));
	return 0;
}

/*
 * Adds the device nodes through which the library reads the topology from NVIDIA's driver. NVIDIA's
 * CDI device may add the same nodes, but a runtime creates each node only once.
 */
static int add_nodes(struct cdi *cdi)
{
	char path[80], line[128];
	unsigned int minor = 0;
	bool found = false;
	FILE *file;
	int status;

	snprintf(path, sizeof(path), "/proc/driver/nvidia/gpus/%s/information", cdi->pci);
	file = fopen(path, "re");
	while (file && !found && fgets(line, sizeof(line), file))
		found = sscanf(line, "Device Minor: %u", &minor) == 1;
	if (file)
		fclose(file);
	if (!found)
		return failure("%s does not contain the minor number of the GPU's device node",
			       path);
	status = add_node(cdi, "/dev/nvidiactl");
	snprintf(path, sizeof(path), "/dev/nvidia%u", minor);
	return status ?: add_node(cdi, path);
}

/* Mounts the injected library and libgpupart. The injected library needs libgpupart. */
static int add_libraries(struct cdi *cdi)
{
	char path[PATH_MAX];
	int status = add_package(cdi, PATHS_INJECT, INSIDE_PACKAGE "/" PATHS_INJECT);
	Dl_info info;

	if (status)
		return status;
	if (!dladdr((void *)(uintptr_t)gpupart_version, &info) || !realpath(info.dli_fname, path))
		return failure(LIBGPUPART ": not found: %s", strerror(errno));
	return add_mount(cdi, path, INSIDE "/" LIBGPUPART, false);
}

static int add_blocks(struct cdi *cdi)
{
	char outside[STATE_DIR_PATH_LEN], inside[STATE_DIR_PATH_LEN], why[160];

	if (state_dir_create(cdi->uid, why, sizeof(why)))
		return failure(
			"%s; without this directory, programs in the container would not be listed on the host",
			why);
	return add_mount(cdi, state_dir_path(cdi->uid, outside),
			 state_dir_path(cdi->uid_inside, inside), true);
}

/*
 * Adds the simulated driver and its captures, in the same way as 'gpupart run -i'. A capture has
 * the same path in the container, because state pages name the GPU of a process by that path.
 */
static int add_simulated(struct cdi *cdi)
{
	const char *captures = getenv("GPUPART_SIM");
	char path[PATH_MAX], one[PATH_MAX];
	char *sim = NULL, *before;
	int err, status = add_package(cdi, PATHS_SIM "/" LIBCUDA, INSIDE_SIM "/" LIBCUDA);

	/*
	 * The position of a capture determines its GPU's PCI address. So keep all, in this order.
	 */
	while (captures && *captures && !status) {
		snprintf(one, sizeof(one), "%.*s", (int)strcspn(captures, ":"), captures);
		captures += strcspn(captures, ":");
		captures += *captures == ':';
		err = paths_full(one, path, sizeof(path));
		if (err)
			return failure("%s: %s", one, strerror(-err));
		before = sim;
		sim = alloc_text("%s%s%s", before ?: "", before ? ":" : "", path);
		free(before);
		status = add_mount(cdi, path, path, false);
	}
	add_env(cdi->env, "GPUPART_SIM=%s", sim ?: "");
	free(sim);
	add_env(cdi->env, "LD_LIBRARY_PATH=" INSIDE_SIM);
	return status;
}

static bool has_quota(const struct cdi *cdi)
{
	for (unsigned int i = 0; i < cdi->nr; i++)
		if (cdi->shares[i].mem)
			return true;
	return false;
}

/* Adds the directory of the node's MPS daemon, and a variable with its path for clients. */
static int add_mps(struct cdi *cdi)
{
	struct mps_daemon daemon = { .why = "" };

	if (mps_daemon_find_node(&daemon))
		return failure("--mps: %s", daemon.why);
	add_env(cdi->env, MPS_DAEMON_PIPES "=" MPS_DAEMON_NODE);
	return add_mount(cdi, MPS_DAEMON_NODE, MPS_DAEMON_NODE, false);
}

/* Adds the library that reports the quota of a tenant in place of the GPU's memory size. */
static int add_nvml(struct cdi *cdi)
{
	int status = add_package(cdi, PATHS_NVML, INSIDE_PACKAGE "/" PATHS_NVML);

	if (status || !cdi->args->simulated)
		return status;
	return add_package(cdi, PATHS_SIM "/" LIBNVML, INSIDE_SIM "/" LIBNVML);
}

static int add_all(struct cdi *cdi)
{
	char *tls = tunables_join(NULL, has_quota(cdi) ? TUNABLES_TLS_AUDIT : TUNABLES_TLS);
	int status;

	if (!tls)
		alloc_failed();
	add_env(cdi->env, "GPUPART_GPU=%s", cdi->pci);
	add_env(cdi->env, "GPUPART_CHECKED=%s", cdi->key);
	/* A container cannot read the node's configuration file, so pass the setting. */
	if (cdi->strict)
		add_env(cdi->env, "GPUPART_STRICT=1");
	add_env(cdi->env, "CUDA_INJECTION64_PATH=" INSIDE_PACKAGE "/" PATHS_INJECT);
	/* If the image sets this variable, the runtime replaces the value. */
	add_env(cdi->env, TUNABLES "=%s", tls);
	free(tls);
	status = add_libraries(cdi);
	if (!status && has_quota(cdi))
		status = add_nvml(cdi);
	if (!status)
		status = cdi->args->simulated ? add_simulated(cdi) : add_nodes(cdi);
	if (!status && cdi->mps)
		status = add_mps(cdi);
	/* Call add_blocks() last, because it creates a directory. */
	return status ?: add_blocks(cdi);
}

static const char *class_of(const struct cdi *cdi)
{
	return cdi->args->simulated ? CLASS_SIMULATED : CLASS;
}

static void hold_path(const struct cdi *cdi, const struct share *share, char folder[PATH_MAX])
{
	snprintf(folder, PATH_MAX, HOLD_ROOT "/%s/%s", class_of(cdi), share->device);
}

/* Writes the grant that confines containers of @share. Returns 0 or an error. */
static int hold_share(const struct cdi *cdi, struct share *share)
{
	struct gpupart_grant grant = {
		.uid = cdi->uid, .nr_tpcs = cdi->nr_tpcs, .set = share->set,
		.memory = share->mem, .strict = cdi->strict, .source = "rm",
	};
	char folder[PATH_MAX];
	int err = 0;

	snprintf(grant.name, sizeof(grant.name), "%s", share->name ?: "container");
	snprintf(grant.pci, sizeof(grant.pci), "%s", cdi->pci);
	snprintf(grant.key, sizeof(grant.key), "%s", cdi->key);
	if (cdi->args->simulated)
		err = paths_full(cdi->args->source, grant.source, sizeof(grant.source));
	if (err)
		return failure("--hold: %s: %s", cdi->args->source, strerror(-err));
	hold_path(cdi, share, folder);
	share->is_new = access(folder, F_OK) != 0;
	return hold_container(folder, &grant);
}

/* Returns 0, or -ECANCELED after an error message. */
static int hold_shares(void *arg)
{
	struct cdi *cdi = arg;
	int status = 0;

	for (unsigned int i = 0; cdi->hold && i < cdi->nr && !status; i++)
		status = hold_share(cdi, &cdi->shares[i]);
	return status ? -ECANCELED : 0;
}

static void release_shares(const struct cdi *cdi)
{
	char folder[PATH_MAX];

	for (unsigned int i = 0; i < cdi->nr; i++) {
		hold_path(cdi, &cdi->shares[i], folder);
		if (cdi->shares[i].is_new)
			hold_remove(folder);
	}
}

/* Adds the device of one share to @devices. */
static void add_device(const struct cdi *cdi, const struct share *share, json_t *devices)
{
	json_t *env = json_array(), *edits = json_pack("{s:o}", "env", env);
	char folder[PATH_MAX];

	add_env(env, "GPUPART_SET=%s", share->list);
	if (share->rules)
		add_env(env, "GPUPART_RULES=%s", share->rules);
	if (share->name)
		add_env(env, "GPUPART_NAME=%s", share->name);
	if (share->mem) {
		add_env(env, "GPUPART_TENANT=%s", share->name);
		add_env(env, "GPUPART_MEM=%llu", (unsigned long long)share->mem);
		add_env(env, "LD_AUDIT=" INSIDE_PACKAGE "/" PATHS_NVML);
	}
	hold_path(cdi, share, folder);
	if (cdi->hold)
		json_object_set_new(edits, "mounts",
				    json_pack("[o]", mount_of(folder, GPUPART_GRANT_ROOT, false)));
	json_array_append_new(devices, json_pack("{s:s, s:o}", "name", share->device,
						 "containerEdits", edits));
}

/* ---------------------------------------------------------------- the whole */

static char *text_of(const struct cdi *cdi, json_t *devices)
{
	json_t *edits = json_pack("{s:O}", "env", cdi->env), *root;
	char *text, *line;

	if (json_array_size(cdi->nodes))
		json_object_set(edits, "deviceNodes", cdi->nodes);
	json_object_set(edits, "mounts", cdi->mounts);
	root = json_pack("{s:s, s:s, s:o, s:o}", "cdiVersion", CDI_VERSION,
			 "kind", cdi->args->simulated ? KIND_SIMULATED : KIND,
			 "containerEdits", edits, "devices", devices);
	text = json_dumps(root, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
	json_decref(root);
	line = alloc_text("%s\n", text);
	free(text);
	return line;
}

/* Writes the file, and then writes the grants. If a step fails, removes the new grants. */
static int write_out(struct cdi *cdi)
{
	const char *path = cdi->args->output;
	json_t *devices = json_array();
	struct out out;
	int err, status;
	char *text;

	for (unsigned int i = 0; i < cdi->nr; i++) {
		add_device(cdi, &cdi->shares[i], devices);
		free(cdi->shares[i].rules);
	}
	text = text_of(cdi, devices);
	if (path) {
		/* Do not replace an unchanged file, because runtimes watch the directory. */
		err = atomic_file_has(path, text) ? hold_shares(cdi) :
					       atomic_file_write_with(path, text, hold_shares, cdi);
		status = err == -ECANCELED ? EXIT_FAILED :
			 err ? failure("-o %s: %s", path, atomic_file_strerror(err)) : 0;
	} else {
		out_open(&out, NULL);
		fputs(text, out.file);
		status = out_close(&out) ?: hold_shares(cdi) ? EXIT_FAILED : 0;
	}
	free(text);
	if (status)
		release_shares(cdi);
	return status;
}

/*
 * Sets the device name. The default is "tpc" followed by the list of TPCs. Device names may not
 * contain a comma, so the name contains '_' instead.
 */
static void name_device(const struct cdi *cdi, struct share *share)
{
	if (cdi->device)
		snprintf(share->device, sizeof(share->device), "%s", cdi->device);
	else if (!cdi->args->nr_terms)
		snprintf(share->device, sizeof(share->device), "all");
	else
		snprintf(share->device, sizeof(share->device), "tpc%s", share->list);
	for (char *c = share->device; *c; c++)
		if (*c == ',')
			*c = '_';
}

/* Fills in the sets of all devices, from the plan or from the options. Returns 0 or an error. */
static int work_out_shares(struct cdi *cdi, const struct gpupart_topology *topo, const char *gpu)
{
	struct gpupart_tpcset left = gpupart_topology_all(topo);
	char whose[96];
	int status = 0;

	if (cdi->plan) {
		status = plan_file_check(cdi->plan, topo, cdi->file);
	} else {
		cdi->shares[0].set = gpupart_topology_all(topo);
		/*
		 * The container is not a child of this process, so ignore the limit of this
		 * process.
		 */
		if (cdi->args->nr_terms)
			status = args_set(cdi->args, topo, gpu, NULL, &cdi->shares[0].set);
	}
	for (unsigned int i = 0; i < cdi->nr; i++) {
		gpupart_tpcset_format_list(&cdi->shares[i].set, cdi->shares[i].list,
					   sizeof(cdi->shares[i].list));
		left = gpupart_tpcset_andnot(&left, &cdi->shares[i].set);
	}
	for (unsigned int i = 0; i < cdi->nr && cdi->plan && !status; i++) {
		struct share *share = &cdi->shares[i];
		struct rules rules = { 0 };

		status = rules_add(&rules, share->texts, cdi->args, topo, gpu, &share->set);
		if (status)
			break;
		share->rules = rules_take(&rules, share->texts);
		snprintf(whose, sizeof(whose), "tenant %s: ", share->name);
		clusters_note(whose, topo, &share->set, &left);
	}
	if (!status && !cdi->plan)
		name_device(cdi, &cdi->shares[0]);
	return status;
}

static void note_simulated(const struct cdi *cdi, const struct gpupart_topology *topo)
{
	char text[OUT_SET_STRLEN];

	if (cdi->plan)
		remark(
			"wrote %u simulated device%s for %s: containers with these devices use no GPU",
		       cdi->nr, cdi->nr == 1 ? "" : "s", cdi->pci);
	else
		remark("TPCs %s of %s, simulated: containers with this device use no GPU",
		       out_set(text, sizeof(text), topo, &cdi->shares[0].set), cdi->pci);
}

static int specify(struct cdi *cdi, const struct gpupart_topology *topo)
{
	const struct args *args = cdi->args;
	/*
	 * A capture may lack the PCI address of the simulated GPU. The code in cmd_run.c handles
	 * this case in the same way.
	 */
	const char *gpu = !args->simulated ? gpupart_topology_info(topo)->pci :
			  args->gpu ? args->gpu : "0";
	struct check check = { 0 };
	int status = work_out_shares(cdi, topo, gpu) ?: check_in_child(gpu, &check);

	if (status)
		return status;
	snprintf(cdi->pci, sizeof(cdi->pci), "%s", *check.pci ? check.pci : gpu);
	for (unsigned int i = 0; i < cdi->nr && !status; i++)
		if (cdi->shares[i].mem)
			status = tenants_check_size(cdi->pci, check.memory, cdi->shares[i].mem);
	if (status)
		return status;
	snprintf(cdi->key, sizeof(cdi->key), "%s", check.key);
	cdi->nr_tpcs = gpupart_topology_nr_tpcs(topo);
	out_json_alloc();
	cdi->env = json_array();
	cdi->nodes = json_array();
	cdi->mounts = json_array();
	status = add_all(cdi) ?: write_out(cdi);
	json_decref(cdi->env);
	json_decref(cdi->nodes);
	json_decref(cdi->mounts);
	if (!status && args->simulated)
		note_simulated(cdi, topo);
	return status;
}

int cmd_cdi(int argc, char **argv)
{
	const char *uid = NULL, *node = NULL;
	struct args args = { 0 };
	static struct plan_file file;
	static struct cdi cdi = { .file = &file };
	const struct args_option own[] = { { .name = "device", .value = &cdi.device },
					   { .name = "name", .value = &cdi.name },
					   { .name = "mem", .value = &cdi.mem },
					   { .name = "plan", .value = &cdi.plan },
					   { .name = "strict", .given = &cdi.strict },
					   { .name = "hold", .given = &cdi.hold },
					   { .name = "mps", .given = &cdi.mps },
					   { .name = "uid", .value = &uid }, { 0 } };
	struct gpupart_topology *topo;
	int status;

	cdi.args = &args;
	status = args_parse(&args, ARGS_SET | ARGS_SIM | ARGS_GPU | ARGS_OUTPUT, own, cdi_help,
			    argc, argv) ?:
		 take_options(&cdi, &args, uid) ?:
		 check_node_strict(false, &node) ?:
		 args_simulate(&args);
	cdi.strict |= node != NULL;
	if (!status && cdi.plan)
		status = take_plan(&cdi, &args);
	if (status)
		return status;
	status = args_topology(&args, &topo);
	if (!status) {
		status = specify(&cdi, topo);
		gpupart_topology_close(topo);
	}
	return status;
}
