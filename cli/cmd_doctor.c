// SPDX-License-Identifier: MIT
/*
 * gpupart doctor: what works on this machine, what does not, what to do. Nothing it asks
 * may hang or crash it. Must not change anything.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "args.h"
#include "audit.h"
#include "blocks.h"
#include "child.h"
#include "cmd.h"
#include "cuda.h"
#include "namespaces.h"
#include "out.h"
#include "paths.h"

#define ASK_SECONDS 60

const char doctor_help[] =
"Usage: gpupart doctor [--no-launch] [-i CAPTURE] [--gpu GPU] [--json] [-o FILE]\n"
"What works on this machine, what does not, and what to do about it: a row a question.\n"
"ok works, bad is needed and does not, note is good to know, skip was not asked.\n"
"\n"
"Whether launches can be confined is found out by trying, in a process of its own: the\n"
"first time on a GPU and driver that takes the few short launches that the first run\n"
"would make; later none.\n"
"\n"
"      --no-launch     do not try: those rows are skipped\n"
"  -i, --input CAPTURE on the simulated GPU made of it (sample:h200 or a file)\n"
"      --gpu GPU       an index in PCI order, a PCI address or a UUID\n"
"      --json          as JSON, schema gpupart/1\n"
"  -o, --output FILE   write there\n"
"\n"
"Exit status: 0 all that is needed works, 1 something does not.\n"
"\n"
"Examples:\n"
"  gpupart doctor\n"
"  gpupart doctor --json | jq '.rows[] | select(.result == \"bad\")'\n";

enum result { OK, BAD, NOTE, SKIP };

static const char *const words[] = { [OK] = "ok", [BAD] = "bad", [NOTE] = "note", [SKIP] = "skip" };

struct doctor {
	const struct args *args;
	struct gpupart *gp;
	const char *gpu;	/* a selector or NULL */
	struct out out;
	json_t *rows;		/* NULL: rows go out as they come */
	json_t *launching;	/* processes that may launch from the GPU; NULL likewise */
	char launching_text[512];
	unsigned int nr[4];
	bool simulated;
};

/* @advice is "" where there is nothing to do. */
__attribute__((format(printf, 5, 6)))
static void row(struct doctor *doctor, enum result result, const char *name, const char *advice,
		const char *fmt, ...)
{
	char answer[1024];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(answer, sizeof(answer), fmt, ap);
	va_end(ap);
	/* Much of it is other people's: names of processes, the environment, paths. */
	out_clean(answer);
	doctor->nr[result]++;
	if (doctor->rows) {
		json_array_append_new(doctor->rows, json_pack("{s:s, s:s, s:o, s:o}", "name", name,
			"result", words[result], "answer", out_json_text(answer),
			"advice", out_json_text(advice)));
		return;
	}
	out_row(&doctor->out, words[result], result == BAD, name, answer, "");
	if (*advice)
		out_advice(&doctor->out, advice);
}

static bool read_line(const char *path, char *text, size_t len)
{
	FILE *file = fopen(path, "re");
	bool good = file && fgets(text, len, file);

	if (file)
		fclose(file);
	if (good)
		text[strcspn(text, "\n")] = 0;
	return good;
}

/* What opening /dev/nvidiactl failed with, and what to do. */
static void tell_no_node(struct doctor *doctor, int err)
{
	struct cuda_probe probe;

	if (err != ENOENT)
		row(doctor, BAD, "device-node",
		    "have an administrator let this user read and write /dev/nvidia*",
		    "/dev/nvidiactl: %s", strerror(err));
	/* A container's image may bring the library; the nodes are passed in or not. */
	else if (cuda_probe(&probe) != -ENOENT)
		row(doctor, BAD, "device-node",
		    "start the container with NVIDIA's CDI device (--device nvidia.com/gpu=0) or with --gpus, beside gpupart's; outside of one run 'nvidia-modprobe'",
		    "/dev/nvidiactl: %s, and libcuda.so.1 is there: no GPU was passed in",
		    strerror(err));
	else
		row(doctor, BAD, "device-node",
		    "run 'nvidia-modprobe', or in a container pass the GPU in",
		    "/dev/nvidiactl: %s", strerror(err));
}

static void ask_driver(struct doctor *doctor)
{
	char version[64];
	int fd;

	if (doctor->simulated) {
		row(doctor, SKIP, "driver", "", "simulated: no kernel driver is needed");
		row(doctor, SKIP, "device-node", "", "simulated: no device node is needed");
		return;
	}
	if (read_line("/sys/module/nvidia/version", version, sizeof(version)))
		row(doctor, OK, "driver", "", "NVIDIA's kernel driver %s is loaded", version);
	else if (!access("/proc/driver/nvidia/version", F_OK))
		row(doctor, OK, "driver", "",
		    "NVIDIA's kernel driver is loaded; it does not tell its version here");
	else
		row(doctor, BAD, "driver",
		    "install NVIDIA's driver and 'modprobe nvidia'; without a GPU try 'gpupart demo'",
		    "NVIDIA's kernel driver is not loaded");

	fd = open("/dev/nvidiactl", O_RDWR | O_CLOEXEC);
	if (fd >= 0)
		row(doctor, OK, "device-node", "", "/dev/nvidiactl can be opened");
	else
		tell_no_node(doctor, errno);
	if (fd >= 0)
		close(fd);
}

static void ask_gpus(struct doctor *doctor)
{
	struct gpupart_gpu_info list[64];
	char text[1024] = "";
	int nr;

	if (doctor->simulated) {
		row(doctor, SKIP, "gpus", "", "simulated: the one GPU of the capture");
		return;
	}
	nr = gpupart_gpu_list(doctor->gp, NULL, list, 64);
	if (nr < 0) {
		row(doctor, BAD, "gpus", "see the rows above", "%s", gpupart_error(doctor->gp));
		return;
	}
	for (int i = 0; i < nr && i < 64; i++)
		out_append(text, sizeof(text), "%s%s %s", i ? ", " : "", list[i].name, list[i].pci);
	if (nr)
		row(doctor, OK, "gpus", "", "%d: %s", nr, text);
	else
		row(doctor, BAD, "gpus", "without a GPU try 'gpupart demo'", "no GPU");
}

static void ask_mig(struct doctor *doctor, const struct gpupart_gpu_info *info)
{
	if (info->mig > 0)
		row(doctor, BAD, "mig", "'nvidia-smi -mig 0' as root, with the GPU idle",
		    "MIG is on: sets are refused");
	else if (info->mig < 0)
		row(doctor, NOTE, "mig", "", "not told by this source");
	else
		row(doctor, OK, "mig", "", "MIG is off");
}

static void ask_topology(struct doctor *doctor)
{
	struct gpupart_topology *topo, *second;
	const struct gpupart_gpu_info *info;
	const char *other;

	if (gpupart_topology_open(doctor->gp, doctor->args->source,
				  doctor->simulated ? NULL : doctor->gpu, &topo)) {
		row(doctor, BAD, "topology", "see the rows above", "%s", gpupart_error(doctor->gp));
		row(doctor, SKIP, "mig", "", "no topology");
		return;
	}
	info = gpupart_topology_info(topo);
	other = !strcmp(info->source, "kernel") ? "rm" : "kernel";
	if (doctor->simulated || !*info->pci ||
	    gpupart_topology_open(doctor->gp, other, info->pci, &second)) {
		row(doctor, OK, "topology", "", "%s%s tells %u SMs in %u TPCs in %u GPCs",
		    doctor->simulated ? "simulated: capture " : "", info->source,
		    gpupart_topology_nr_sms(topo), gpupart_topology_nr_tpcs(topo),
		    gpupart_topology_nr_gpcs(topo));
	} else {
		if (gpupart_topology_agree(topo, second))
			row(doctor, OK, "topology", "", "%s and %s agree", info->source, other);
		else
			row(doctor, BAD, "topology",
			    "compare 'gpupart topology -i rm' with '-i kernel' and report both",
			    "%s and %s disagree about %s", info->source, other, info->pci);
		gpupart_topology_close(second);
	}
	ask_mig(doctor, info);
	gpupart_topology_close(topo);
}

static void ask_libcuda(struct doctor *doctor)
{
	struct cuda_probe probe;
	int err = cuda_probe(&probe);

	if (!err)
		row(doctor, OK, "libcuda", "", "%s%s, CUDA %d.%d, %d GPUs",
		    doctor->simulated ? "simulated: " : "", probe.path, probe.version / 1000,
		    probe.version % 1000 / 10, probe.nr_devices);
	else if (err == -ENOENT)
		row(doctor, BAD, "libcuda",
		    "install the user part of NVIDIA's driver (libcuda.so.1)", "%s", probe.why);
	else
		row(doctor, BAD, "libcuda",
		    "see that the kernel driver and libcuda.so.1 are of one version", "%s",
		    probe.why);
}

struct attached {
	int err;
	char why[512];
	char layout[32], streams[256], graphs[256];
	bool from_cache;
	unsigned int nr_proven, nr_launches;
	bool called_back;	/* the driver told of a launch */
};

static void attach(void *arg, void *result)
{
	struct attached *found = result;
	struct gpupart_counters counters;
	struct gpupart_check check;
	struct gpupart_gpu *gpu;
	struct gpupart *gp;

	/* The GPU is asked about, not the limit this may run in. */
	unsetenv("GPUPART_SET");
	unsetenv("CUDA_INJECTION64_PATH");
	found->err = gpupart_open(&gp);
	if (found->err)
		return;
	found->err = gpupart_attach(gp, arg, &gpu);
	snprintf(found->why, sizeof(found->why), "%s", gpupart_error(gp));
	gpupart_counters_get(&counters);
	found->called_back = counters.launches;
	if (found->err)
		return;
	gpupart_gpu_check(gpu, &check);
	snprintf(found->layout, sizeof(found->layout), "%s", check.layout);
	snprintf(found->streams, sizeof(found->streams), "%s", check.streams);
	snprintf(found->graphs, sizeof(found->graphs), "%s", check.graphs);
	found->from_cache = check.from_cache;
	found->nr_proven = check.nr_proven;
	found->nr_launches = check.nr_launches;
}

/* Which of the rows it is that failed, and what to do. */
static void tell_failure(struct doctor *doctor, const struct attached *found)
{
	const char *why = *found->why ? found->why : strerror(-found->err);
	/* The sentence is all there is to know it by: no launch was told of, or in another form. */
	bool callback = strstr(why, "call back") ||
			(!found->called_back && strstr(why, "callback"));
	const char *advice =
		"sets cannot be used here; report it with the output of scripts/capture-gpu";

	if (doctor->nr[BAD])
		advice = "see the rows above; sets cannot be used here";
	else if (found->err == -EPROTO)
		advice = "try again with the GPU idle; if it stays, report it with the output "
			 "of scripts/capture-gpu";
	if (callback)
		row(doctor, BAD, "launch-callback", advice, "launches cannot be confined: %s", why);
	else if (found->called_back)
		row(doctor, OK, "launch-callback", "", "offered by the driver");
	else
		row(doctor, SKIP, "launch-callback", "", "it did not come to that");
	if (callback)
		row(doctor, SKIP, "mask-bits", "", "not attached");
	else
		row(doctor, BAD, "mask-bits", advice, "launches cannot be confined: %s", why);
	row(doctor, SKIP, "streams", "", "not attached");
	row(doctor, SKIP, "graphs", "", "not attached");
}

static void ask_launches(struct doctor *doctor, bool may_launch)
{
	struct attached found = { 0 };
	char why[128];

	if (!may_launch) {
		row(doctor, SKIP, "launch-callback", "", "--no-launch: not tried");
		row(doctor, SKIP, "mask-bits", "", "--no-launch: not tried");
		row(doctor, SKIP, "streams", "", "--no-launch: not tried");
		row(doctor, SKIP, "graphs", "", "--no-launch: not tried");
		return;
	}
	if (child_call(attach, (void *)doctor->gpu, &found, sizeof(found), ASK_SECONDS, why,
		       sizeof(why))) {
		found.err = -EIO;
		snprintf(found.why, sizeof(found.why), "attaching to the GPU: %s", why);
	}
	if (found.err) {
		tell_failure(doctor, &found);
		return;
	}
	row(doctor, OK, "launch-callback", "", "offered by the driver");
	if (found.from_cache)
		row(doctor, OK, "mask-bits", "", "layout %s, %u TPCs proven before", found.layout,
		    found.nr_proven);
	else
		row(doctor, OK, "mask-bits", "", "layout %s, %u TPCs proven now with %u launches",
		    found.layout, found.nr_proven, found.nr_launches);
	if (*found.streams)
		row(doctor, NOTE, "streams", "use process and next-launch sets",
		    "no stream sets: %s", found.streams);
	else
		row(doctor, OK, "streams", "", "streams can have sets of their own");
	if (*found.graphs)
		row(doctor, NOTE, "graphs", "set limits before a program launches its graphs",
		    "graphs keep their first set: %s", found.graphs);
	else
		row(doctor, OK, "graphs", "", "graphs follow sets that change");
}

static bool mps_runs(void)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	bool found = false;

	while (proc && !found && (entry = readdir(proc))) {
		char path[300], comm[64];

		if (*entry->d_name < '0' || *entry->d_name > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		/* The kernel keeps 15 letters of nvidia-cuda-mps-control and -server. */
		found = read_line(path, comm, sizeof(comm)) && !strcmp(comm, "nvidia-cuda-mps");
	}
	if (proc)
		closedir(proc);
	return found;
}

/* @own: our injected library or NULL. */
static void ask_slot(struct doctor *doctor, const char *own)
{
	const char *taken = getenv("CUDA_INJECTION64_PATH"), *set = getenv("GPUPART_SET");

	if (!taken || !*taken)
		row(doctor, OK, "injection-slot", "", "CUDA_INJECTION64_PATH is free");
	else if (strchr(taken, '/') && access(taken, F_OK) && set && *set)
		row(doctor, BAD, "injection-slot",
		    "in a container: start it with the device that 'gpupart cdi' writes, which mounts the library; or start programs in it with 'gpupart run'",
		    "CUDA_INJECTION64_PATH is %s: %s. The driver goes on without it: programs started from here run unconfined, whatever GPUPART_SET says",
		    taken, strerror(errno));
	else if (strchr(taken, '/') && access(taken, F_OK))
		row(doctor, NOTE, "injection-slot", "unset it, or bring back what it names",
		    "CUDA_INJECTION64_PATH is taken by %s, which is not there: %s", taken,
		    strerror(errno));
	else if (own && paths_same(taken, own))
		row(doctor, OK, "injection-slot", "",
		    "CUDA_INJECTION64_PATH is gpupart's: this is inside a run");
	else if (paths_is_inject(taken))
		row(doctor, OK, "injection-slot", "",
		    "CUDA_INJECTION64_PATH is another gpupart's, %s: this is in a container with its device",
		    taken);
	else
		row(doctor, NOTE, "injection-slot",
		    "nothing: run comes in by LD_PRELOAD and calls that tool in turn",
		    "CUDA_INJECTION64_PATH is taken by %s", taken);
}

static void ask_injection(struct doctor *doctor)
{
	char path[PATH_MAX];
	int err = paths_package(PATHS_INJECT, path, sizeof(path));

	if (err)
		row(doctor, BAD, "inject-library", "reinstall gpupart", PATHS_INJECT ": %s",
		    strerror(-err));
	else if (access(path, R_OK))
		row(doctor, BAD, "inject-library", "let this user read it", "%s: %s", path,
		    strerror(errno));
	else
		row(doctor, OK, "inject-library", "", "%s", path);
	ask_slot(doctor, err ? NULL : path);
}

/* What a quota of memory needs beyond the injected library. */
static void ask_nvml(struct doctor *doctor)
{
	const char *advice, *others = getenv("LD_AUDIT");
	char text[PATH_MAX + 256];
	bool works = audit_works(text, sizeof(text), &advice);

	if (works && others && *others && !strstr(others, PATHS_NVML))
		row(doctor, OK, "nvml-library", "", "%s, beside LD_AUDIT=%s", text, others);
	else
		row(doctor, works ? OK : NOTE, "nvml-library", advice, "%s", text);
}

static void ask_environment(struct doctor *doctor)
{
	static const char *const names[] = {
		"GPUPART_SET", "GPUPART_GPU", "GPUPART_NAME", "GPUPART_DISABLE", "GPUPART_LOG",
		"GPUPART_SIM", "GPUPART_CHECKED", "GPUPART_NEXT_INJECTION", "GPUPART_JOB",
		"GPUPART_LATE", "GPUPART_SM_COUNT", "GPUPART_STAT", "GPUPART_TENANT",
		"GPUPART_MEM", "CUDA_VISIBLE_DEVICES", "CUDA_MPS_PIPE_DIRECTORY",
	};
	char text[1024] = "";

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (getenv(names[i]))
			out_append(text, sizeof(text), "%s%s=%s", *text ? " " : "", names[i],
				   getenv(names[i]));
	if (*text)
		row(doctor, NOTE, "environment", "", "%s", text);
	else
		row(doctor, OK, "environment", "",
		    "no GPUPART_* variable, no CUDA_VISIBLE_DEVICES and no CUDA_MPS_PIPE_DIRECTORY is set");
}

/* Where the library remembers which maps were checked, or would make the folder. */
static void ask_cache(struct doctor *doctor)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	const char *advice =
		"without it every run checks the mask bits anew: set XDG_CACHE_HOME to a folder of yours";
	char path[PATH_MAX], folder[PATH_MAX];

	if (cache && *cache == '/')
		snprintf(path, sizeof(path), "%s/gpupart/checked", cache);
	else if (home && *home == '/')
		snprintf(path, sizeof(path), "%s/.cache/gpupart/checked", home);
	else {
		row(doctor, NOTE, "cache-folder", advice, "neither XDG_CACHE_HOME nor HOME is set");
		return;
	}
	/* A home is not the library's to make. */
	if (!(cache && *cache == '/') && access(home, F_OK)) {
		row(doctor, NOTE, "cache-folder", advice, "HOME=%s: %s", home, strerror(errno));
		return;
	}
	strcpy(folder, path);
	while (access(folder, F_OK) && errno == ENOENT && strrchr(folder, '/') > folder)
		*strrchr(folder, '/') = 0;
	if (access(folder, W_OK | X_OK))
		row(doctor, NOTE, "cache-folder", advice, "%s: %s", folder, strerror(errno));
	else
		row(doctor, OK, "cache-folder", "", "%s can be written", path);
}

/* Where processes show themselves. Without it they run, confined all the same. */
static void ask_blocks(struct doctor *doctor)
{
	const char *advice;
	char why[256];

	if (blocks_usable(why, sizeof(why), &advice))
		row(doctor, OK, "blocks-folder", "", "%s", why);
	else
		row(doctor, NOTE, "blocks-folder", advice,
		    "%s: programs run and are confined, but nobody sees or changes it: not doctor, ps or set",
		    why);
}

/* What a container has of its own, as far as it matters here. */
static void ask_namespaces(struct doctor *doctor)
{
	char users[80] = "";
	struct namespaces ns;

	namespaces_find(&ns);
	if (!ns.pids_known || !ns.users_known) {
		row(doctor, NOTE, "namespaces", "mount /proc", "/proc does not tell of them here");
		return;
	}
	if (!ns.users_mapped) {
		row(doctor, NOTE, "namespaces",
		    "map them: 'unshare -r' does, or write /proc/PID/uid_map and gid_map from outside",
		    "this has users of its own, and none of them is one outside (/proc/self/uid_map is empty): user %u here owns no file",
		    geteuid());
		return;
	}
	if (ns.own_users && ns.uid_outside >= 0)
		snprintf(users, sizeof(users), "users of its own (%u here is %ld outside)",
			 geteuid(), ns.uid_outside);
	else if (ns.own_users)
		snprintf(users, sizeof(users), "users of its own (%u here is nobody outside)",
			 geteuid());
	if (!ns.own_pids && !ns.own_users)
		row(doctor, OK, "namespaces", "", "pids and users are the machine's");
	else
		row(doctor, NOTE, "namespaces",
		    "name jobs (--name) and set by name; 'gpupart cdi --uid' gives a container the folder of blocks of the user that it is outside",
		    "this has %s%s%s: ps and set here reach what runs in here, and outside what has the same folder of blocks; a pid in here is another one outside",
		    ns.own_pids ? "pids of its own" : "",
		    ns.own_pids && ns.own_users ? " and " : "", users);
}

#define DEVICE_LAUNCHES_ADVICE "gpupart-device-launches(7) says what to do"

/* For the row about such launches, which comes last. */
static void remember_launching(struct doctor *doctor, const struct gpupart_process *p)
{
	if (!p->counters.device_launches)
		return;
	out_append(doctor->launching_text, sizeof(doctor->launching_text),
		   "%s%d%s%s (%" PRIu64 " launches)", *doctor->launching_text ? ", " : "", p->pid,
		   *p->name ? " " : "", p->name, p->counters.device_launches);
	if (doctor->launching)
		json_array_append_new(doctor->launching,
			json_pack("{s:i, s:o, s:I}", "pid", p->pid, "name", out_json_text(p->name),
				  "device_launches", (json_int_t)p->counters.device_launches));
}

static void tell_device_launches(struct doctor *doctor)
{
	if (*doctor->launching_text)
		row(doctor, NOTE, "device-launches", DEVICE_LAUNCHES_ADVICE,
		    "kernels launched from the GPU (dynamic parallelism) are not confined; these ran kernels that can: %s",
		    doctor->launching_text);
	else
		row(doctor, NOTE, "device-launches", "",
		    "kernels launched from the GPU (dynamic parallelism) are not confined; no process here was seen to run any that can");
}

/*
 * The worst that became of @p's launches and what to do about it, in the order of what
 * matters: a launch that ran on the whole GPU, one that was widened, none at all.
 */
static enum result judge(const struct gpupart_process *p, const char **advice)
{
	const struct gpupart_counters *c = &p->counters;

	*advice = "";
	if (c->unconfinable_version) {
		*advice =
			"its launches have a TMD version or a launch type that is not known: report it with the output of scripts/capture-gpu";
		return BAD;
	}
	if (c->unconfinable_map) {
		*advice = "the mask bits of its GPU are not proven: 'gpupart verify' says why";
		return BAD;
	}
	if (c->graphs_stale)
		*advice =
			"its graphs with conditional or memory nodes keep the set of their first launch: set the limit before that";
	else if (c->device_launches)
		*advice = DEVICE_LAUNCHES_ADVICE;
	else if (c->widened_cluster || c->widened_cooperative)
		*advice = "larger sets, or whole GPCs, hold its grids";
	else if (c->widened_empty)
		*advice = "the sets it makes itself lie outside its limit: choose them inside";
	else if (c->widened_driver)
		*advice = "the driver masks TPCs itself: choose a set beside these";
	else if (c->unconfinable_gpu)
		*advice =
			"a limit is for one GPU: leave it only that one with CUDA_VISIBLE_DEVICES";
	else if (!c->launches)
		*advice =
			"if it works on the GPU already, the driver does not tell of its launches and they are not confined: 'gpupart verify' finds out";
	return **advice ? NOTE : OK;
}

/* A process's limit with the GPCs that it covers whole, where its GPU's topology is there. */
static const char *limit_text(struct doctor *doctor, const struct gpupart_process *p, char *text,
			      size_t len)
{
	const char *source = doctor->simulated ? doctor->args->source : NULL;
	struct gpupart_topology *topo;
	struct gpupart_tpcset limit;

	snprintf(text, len, "%s", *p->limit ? p->limit : "all");
	if (!*p->limit || (doctor->simulated && (!doctor->gpu || strcmp(p->pci, doctor->gpu))) ||
	    gpupart_topology_open(doctor->gp, source, source ? NULL : p->pci, &topo))
		return text;
	if (!gpupart_set_parse(NULL, topo, p->limit, &limit))
		out_set(text, len, topo, &limit);
	gpupart_topology_close(topo);
	return text;
}

/* What runs confined now, and whether each launch of it was. */
static void ask_processes(struct doctor *doctor)
{
	struct gpupart_process list[64];
	int nr = gpupart_process_list(doctor->gp, list, 64);

	if (nr < 0)
		row(doctor, NOTE, "processes", "", "%s", gpupart_error(doctor->gp));
	if (!nr)
		row(doctor, OK, "processes", "", "none runs confined now");
	for (int i = 0; i < nr && i < 64; i++) {
		const struct gpupart_process *p = &list[i];
		const struct gpupart_counters *c = &p->counters;
		uint64_t widened = c->widened_empty + c->widened_driver + c->widened_cluster +
				   c->widened_cooperative;
		char limit[OUT_SET_STRLEN], stale[64] = "", device[64] = "";
		enum result result;
		const char *advice;

		if (*p->problem) {
			row(doctor, BAD, "processes", "see what it says",
			    "%d%s%s is not confined: %s", p->pid, *p->name ? " " : "", p->name,
			    p->problem);
			continue;
		}
		remember_launching(doctor, p);
		if (c->graphs_stale)
			snprintf(stale, sizeof(stale), ", %" PRIu64 " graphs with an earlier set",
				 c->graphs_stale);
		if (c->device_launches)
			snprintf(device, sizeof(device), ", %" PRIu64 " can launch from the GPU",
				 c->device_launches);
		result = judge(p, &advice);
		row(doctor, result, "processes", advice,
		    "%d%s%s on TPCs %s of %s: %" PRIu64 " launches, %" PRIu64 " confined, %" PRIu64
		    " widened, %" PRIu64 " could not be, %" PRIu64 " on other GPUs%s%s",
		    p->pid, *p->name ? " " : "", p->name,
		    limit_text(doctor, p, limit, sizeof(limit)), p->pci, c->launches, c->confined,
		    widened, c->unconfinable_version + c->unconfinable_map, c->unconfinable_gpu,
		    stale, device);
	}
	if (nr > 64)
		row(doctor, NOTE, "processes", "", "and %d more", nr - 64);
}

static void ask_all(struct doctor *doctor, bool may_launch)
{
	ask_driver(doctor);
	ask_gpus(doctor);
	ask_topology(doctor);
	ask_libcuda(doctor);
	ask_launches(doctor, may_launch);
	ask_injection(doctor);
	ask_nvml(doctor);
	ask_cache(doctor);
	ask_blocks(doctor);
	ask_namespaces(doctor);
	if (mps_runs())
		row(doctor, NOTE, "mps", "set CUDA_DEVICE_MAX_CONNECTIONS=8 for its clients",
		    "MPS runs: %%smid is renumbered in its clients, so mask bits are looked up and not checked");
	else
		row(doctor, OK, "mps", "",
		    "MPS does not run: programs share the GPU in time slices");
	ask_environment(doctor);
	ask_processes(doctor);
	row(doctor, NOTE, "green-contexts",
	    "run --late SECONDS confines it after it has made them; GPUPART_DISABLE=1 not at all",
	    "green contexts cannot be made once launches are confined: the driver refuses them");
	row(doctor, NOTE, "profilers", "profile with GPUPART_DISABLE=1",
	    "the driver has one place for a tool: under run it is ours, and CUPTI and ncu are refused; started by ncu, run is");
	tell_device_launches(doctor);
}

static int examine(struct doctor *doctor, bool may_launch)
{
	const struct args *args = doctor->args;
	json_t *root = NULL;
	int status;

	status = out_open(&doctor->out, args);
	if (status >= 0)
		return status;
	if (args->json) {
		root = out_json_new(args->cmd, doctor->simulated);
		doctor->rows = json_array();
		doctor->launching = json_array();
		json_object_set_new(root, "version", json_string(gpupart_version()));
		json_object_set_new(root, "rows", doctor->rows);
		json_object_set_new(root, "device_launches", doctor->launching);
	} else {
		fprintf(doctor->out.file, "gpupart %s%s\n", gpupart_version(),
			doctor->simulated ? ", on the simulated GPU" : "");
	}
	ask_all(doctor, may_launch);
	if (root) {
		json_object_set_new(root, "nr_bad", json_integer(doctor->nr[BAD]));
		json_object_set_new(root, "good", json_boolean(!doctor->nr[BAD]));
		out_json_write(&doctor->out, root);
	} else if (doctor->nr[BAD]) {
		fprintf(doctor->out.file, "\n%u of what is needed does not work\n",
			doctor->nr[BAD]);
	} else {
		fputs("\nall that is needed works\n", doctor->out.file);
	}
	status = out_close(&doctor->out, args->cmd);
	return doctor->nr[BAD] ? EXIT_FAILED : status;
}

int cmd_doctor(int argc, char **argv)
{
	bool no_launch = false;
	const struct args_option own[] = { { .name = "no-launch", .given = &no_launch }, { 0 } };
	struct args args = { 0 };
	struct doctor doctor = { .args = &args };
	int status;

	status = args_parse(&args, ARGS_SIM | ARGS_GPU | ARGS_JSON | ARGS_OUTPUT, own, doctor_help,
			    argc, argv);
	if (status < 0)
		status = args_simulate(&args);
	if (status >= 0)
		return status;
	doctor.simulated = args.simulated;
	if (gpupart_open(&doctor.gp))
		return cmd_fail(args.cmd, EXIT_FAILED, "no memory");
	/* CUDA_VISIBLE_DEVICES that leaves no GPU is told by the rows. */
	doctor.gpu = args.gpu;
	if (args.gpu || !getenv("CUDA_VISIBLE_DEVICES") ||
	    args_gpu(&args, doctor.gp, &doctor.gpu) < 0)
		status = examine(&doctor, !no_launch);
	else
		status = EXIT_FAILED;
	gpupart_close(doctor.gp);
	return status;
}
