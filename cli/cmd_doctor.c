// SPDX-License-Identifier: MIT
/* gpupart doctor: checks this machine. A check that may hang runs in a child. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/cmd.h"
#include "cli/mps/mps_daemon.h"
#include "cli/target/args.h"
#include "cli/target/audit.h"
#include "cli/target/state_dir.h"
#include "cli/target/check.h"
#include "cli/target/cuda.h"
#include "cli/target/process_list.h"
#include "cli/util/child.h"
#include "cli/util/namespaces.h"
#include "cli/util/out.h"
#include "cli/util/paths.h"
#include "lib/private.h"

#define ASK_SECONDS 60

const char doctor_help[] =
"Usage: gpupart doctor [--no-launch] [-i CAPTURE] [--gpu GPU] [--json] [-o FILE]\n"
"Shows what works on this machine, what does not work, and what to do about it, with\n"
"one row for each check. A row begins with ok (it works), bad (it is needed, but does\n"
"not work), note (for information) or skip (it was not checked).\n"
"\n"
"A child process tests whether launches can be confined. The first test on a GPU and\n"
"driver makes the short launches that the first run would make; later tests make none.\n"
"\n"
"      --no-launch     make no launches; the rows that need them are skipped\n"
"  -i, --input CAPTURE check the simulated GPU of CAPTURE (sample:h200 or a file)\n"
"      --gpu GPU       an index in PCI order, a PCI address or a UUID\n"
"      --json          print JSON, schema gpupart/1\n"
"  -o, --output FILE   write FILE instead of stdout; FILE.json: as with --json\n"
"\n"
"Exit status: 0 everything needed works, 1 something needed does not work.\n"
"\n"
"Examples:\n"
"  gpupart doctor\n"
"  gpupart doctor --json | jq '.rows[] | select(.result == \"bad\")'\n";

enum result { OK, BAD, NOTE, SKIP };

static const char *const words[] = { [OK] = "ok", [BAD] = "bad", [NOTE] = "note", [SKIP] = "skip" };

struct doctor {
	const struct args *args;
	struct gpupart *gp;
	const char *gpu;	/* --gpu, or NULL */
	struct out out;
	json_t *rows;		/* for JSON; NULL: rows are printed at once */
	json_t *launching;	/* for JSON: processes that may launch from the GPU; or NULL */
	char launching_text[512];
	const struct question *question;	/* the question of the current row */
	struct check check;	/* result of attaching to the GPU */
	int mig;		/* as in struct gpupart_gpu_info, or INT_MIN without a topology */
	unsigned int nr[4];
	bool simulated, may_launch;
};

struct question {
	const char *name;
	void (*ask)(struct doctor *d);	/* NULL: print @note */
	const char *advice;		/* for rows "bad" and "note" */
	const char *simulated;		/* reason to skip on a simulated GPU, or NULL */
	bool launches;			/* skipped with --no-launch */
	const char *note, *good;
	size_t lack; /* offset in struct check: reason for a missing feature, or "" */
};

/*
 * Adds a row for the current question. If @advice is "", the row has no advice. If @advice is NULL,
 * the row has the question's advice.
 */
__attribute__((format(printf, 4, 5)))
static void say(struct doctor *d, enum result result, const char *advice, const char *fmt, ...)
{
	const char *name = d->question->name;
	char answer[1024];
	va_list ap;

	if (!advice && (result == BAD || result == NOTE))
		advice = d->question->advice;
	va_start(ap, fmt);
	vsnprintf(answer, sizeof(answer), fmt, ap);
	va_end(ap);
	/* Process names, environment variables and paths may contain any byte. */
	out_clean(answer);
	d->nr[result]++;
	if (d->rows) {
		json_array_append_new(d->rows, json_pack("{s:s, s:s, s:o, s:o}", "name", name,
			"result", words[result], "answer", out_json_text(answer),
			"advice", out_json_text(advice ? advice : "")));
		return;
	}
	out_row(&d->out, words[result], result == BAD, name, answer, "");
	if (advice && *advice)
		out_advice(&d->out, advice);
}

/* ------------------------------------------------------------------ driver and GPU */

static void ask_driver(struct doctor *d)
{
	char version[64];

	if (paths_read_line("/sys/module/nvidia/version", version, sizeof(version)))
		say(d, OK, NULL, "NVIDIA's kernel driver %s is loaded", version);
	else if (!access("/proc/driver/nvidia/version", F_OK))
		say(d, OK, NULL,
		    "NVIDIA's kernel driver is loaded; its version cannot be read here");
	else
		say(d, BAD, NULL, "NVIDIA's kernel driver is not loaded");
}

static void ask_node(struct doctor *d)
{
	int fd = open("/dev/nvidiactl", O_RDWR | O_CLOEXEC), err = errno;
	struct cuda_probe probe;

	if (fd >= 0) {
		say(d, OK, NULL, "/dev/nvidiactl can be opened");
		close(fd);
	} else if (err != ENOENT) {
		say(d, BAD, "ask an administrator to let this user read and write /dev/nvidia*",
		    "/dev/nvidiactl: %s", strerror(err));
	/* A container image can contain the library even if there are no device nodes. */
	} else if (cuda_probe(&probe) != -ENOENT) {
		say(d, BAD,
		    "start the container with gpupart's device and also with NVIDIA's CDI device (--device nvidia.com/gpu=0) or --gpus; outside a container run 'nvidia-modprobe'",
		    "/dev/nvidiactl: %s, but libcuda.so.1 exists: the container has no GPU",
		    strerror(err));
	} else {
		say(d, BAD, NULL, "/dev/nvidiactl: %s", strerror(err));
	}
}

static void ask_gpus(struct doctor *d)
{
	static struct gpupart_gpu_info list[64];	/* too large for a small stack */
	int nr = gpupart_gpu_list(d->gp, NULL, list, 64, sizeof(struct gpupart_gpu_info));
	char text[1024] = "";

	for (int i = 0; i < nr && i < 64; i++)
		out_append(text, sizeof(text), "%s%s %s", i ? ", " : "", list[i].name, list[i].pci);
	if (nr > 0)
		say(d, OK, NULL, "%d: %s", nr, text);
	else
		say(d, BAD, nr ? NULL : "without a GPU try 'gpupart demo'", "%s",
		    nr ? gpupart_error(d->gp) : "no GPU");
}

static void ask_topology(struct doctor *d)
{
	struct gpupart_topology *topo, *second = NULL;
	const struct gpupart_gpu_info *info;
	char source[280], class[40] = "";
	const char *other, *untried = "";

	d->mig = INT_MIN;
	if (gpupart_topology_open(d->gp, d->args->source, d->simulated ? NULL : d->gpu, &topo)) {
		say(d, BAD, "see the rows above", "%s", gpupart_error(d->gp));
		return;
	}
	info = gpupart_topology_info(topo);
	d->mig = info->mig;
	if (gpupart_topology_compute_class(topo))
		snprintf(class, sizeof(class), "; compute class 0x%x",
			 gpupart_topology_compute_class(topo));
	other = !strcmp(info->source, "kernel") ? "rm" : "kernel";
	if (!d->simulated && *info->pci &&
	    gpupart_topology_open(d->gp, other, info->pci, &second))
		second = NULL;
	if (second || !strcmp(info->source, "kernel"))
		untried = "; the module gpupart was not yet tried beside a real GPU";
	if (!second)
		say(d, OK, NULL, "%s%s reports %u SMs in %u TPCs in %u GPCs%s%s",
		    d->simulated ? "simulated: capture " : "",
		    paths_source(info->source, source, sizeof(source)),
		    gpupart_topology_nr_sms(topo), gpupart_topology_nr_tpcs(topo),
		    gpupart_topology_nr_gpcs(topo), class,
		    untried);
	else if (gpupart_topology_agree(topo, second))
		say(d, OK, NULL, "%s and %s agree%s%s", info->source, other, class, untried);
	else
		say(d, BAD, NULL, "%s and %s disagree about %s", info->source, other, info->pci);
	gpupart_topology_close(second);
	gpupart_topology_close(topo);
}

static void ask_mig(struct doctor *d)
{
	if (d->mig < 0)
		say(d, d->mig == INT_MIN ? SKIP : NOTE, "", "%s",
		    d->mig == INT_MIN ? "no topology" : "not reported by this source");
	else
		say(d, d->mig ? BAD : OK, NULL, "MIG is %s",
		    d->mig ? "on: sets are refused" : "off");
}

static void ask_libcuda(struct doctor *d)
{
	struct cuda_probe probe;
	int err = cuda_probe(&probe);

	if (!err)
		say(d, OK, NULL, "%s%s, CUDA %d.%d, %d GPUs", d->simulated ? "simulated: " : "",
		    probe.path, probe.version / 1000, probe.version % 1000 / 10, probe.nr_devices);
	else
		say(d, BAD, err != -ENOENT ? NULL :
		    "install the user part of NVIDIA's driver (libcuda.so.1)", "%s", probe.why);
}

static void say_unconfined(struct doctor *d)
{
	say(d, BAD, d->nr[BAD] ? "see the rows above; sets cannot be used on this machine" :
	    d->check.err != -EPROTO ? NULL :
	    "try again while the GPU is idle; if it fails again, report the output of scripts/capture-gpu",
	    "launches cannot be confined: %s", d->check.why);
}

static void ask_callback(struct doctor *d)
{
	struct check *found = &d->check;
	char why[128], features[32] = "no count of features";

	if (child_call(check_attach_tools, (void *)d->gpu, found, sizeof(*found), ASK_SECONDS,
		       why, sizeof(why))) {
		found->err = -EIO;
		snprintf(found->why, sizeof(found->why), "attaching to the GPU: %s", why);
	}
	if (found->err && !*found->why)
		snprintf(found->why, sizeof(found->why), "%s", strerror(-found->err));
	if (found->driver.nr_features >= 0)
		snprintf(features, sizeof(features), "%d features", found->driver.nr_features);
	if (!found->err)
		say(d, OK, NULL,
		    "offered by the driver: a table of %u bytes, %s, parameters of %u bytes",
		    found->driver.table_bytes, features, found->driver.params_bytes);
	else if (found->no_callback)
		say_unconfined(d);
	else if (found->called_back)
		say(d, OK, NULL, "offered by the driver");
	else
		say(d, SKIP, NULL, "not reached");
}

static void ask_mask_bits(struct doctor *d)
{
	const struct check *check = &d->check;

	if (check->no_callback)
		say(d, SKIP, NULL, "not attached");
	else if (check->err)
		say_unconfined(d);
	else if (check->from_cache)
		say(d, OK, NULL, "layout %s; %u TPCs were proven earlier", check->layout,
		    check->nr_proven);
	else
		say(d, OK, NULL, "layout %s; %u TPCs were proven now with %u launches",
		    check->layout, check->nr_proven, check->nr_launches);
}

/* Reports whether the feature of the row works. Before, check_attach_tools() tried the feature. */
static void ask_feature(struct doctor *d)
{
	const char *lack = (const char *)&d->check + d->question->lack;

	if (d->check.err)
		say(d, SKIP, NULL, "not attached");
	else
		say(d, *lack ? NOTE : OK, NULL, "%s%s%s",
		    *lack ? d->question->note : d->question->good, *lack ? ": " : "", lack);
}

static void ask_config(struct doctor *d)
{
	int strict = gpupart_config_strict(d->gp);
	bool refused = strict == -EINVAL || strict == -EFBIG;

	if (strict < 0)
		say(d, refused ? BAD : NOTE, NULL, "%s%s", gpupart_error(d->gp), refused ?
		    ": run refuses to start" : strict == -EPERM ? "" : ": every run is strict");
	else
		say(d, OK, NULL, "%s", strict ? "strict = yes: every run is strict" :
		    "a run is strict only with --strict or GPUPART_STRICT=1");
}

static void ask_injection(struct doctor *d)
{
	char path[PATH_MAX + 64];
	const char *advice = paths_advice(PATHS_INJECT, path, sizeof(path));

	say(d, advice ? BAD : OK, advice, "%s", path);
}

static void ask_slot(struct doctor *d)
{
	const char *taken = getenv("CUDA_INJECTION64_PATH"), *set = getenv("GPUPART_SET");
	int err = taken && strchr(taken, '/') && access(taken, F_OK) ? errno : 0;
	char own[PATH_MAX];

	if (!taken || !*taken)
		say(d, OK, NULL, "CUDA_INJECTION64_PATH is not set");
	else if (err && set && *set)
		say(d, BAD,
		    "start the container with a device of 'gpupart cdi', which mounts the library; or start the container's programs with 'gpupart run'",
		    "CUDA_INJECTION64_PATH is %s: %s. The driver ignores a missing library: programs started from here run unconfined, even with GPUPART_SET",
		    taken, strerror(err));
	else if (err)
		say(d, NOTE, "unset this variable, or restore the file",
		    "CUDA_INJECTION64_PATH is set to %s, which cannot be used: %s", taken,
		    strerror(err));
	else if (!paths_package(PATHS_INJECT, own, sizeof(own)) && paths_same(taken, own))
		say(d, OK, NULL,
		    "CUDA_INJECTION64_PATH is set by gpupart: this process was started by 'gpupart run'");
	else if (paths_is_inject(taken))
		say(d, OK, NULL,
		    "CUDA_INJECTION64_PATH is set by another installation of gpupart, %s: this process is in a container with a device of that installation",
		    taken);
	else
		say(d, NOTE, NULL, "CUDA_INJECTION64_PATH is set to %s by another tool", taken);
}

/* Checks the library for memory quotas. A quota needs this library and the injected library. */
static void ask_nvml(struct doctor *d)
{
	const char *others = getenv("LD_AUDIT");
	char path[PATH_MAX + 64], text[PATH_MAX + 256];
	const char *advice = paths_advice(PATHS_NVML, path, sizeof(path));

	if (advice)
		say(d, NOTE, advice, "%s: inside 'run --mem' " AUDIT_WHOLE, path);
	else if (!audit_works(path, text, sizeof(text)))
		say(d, NOTE, NULL, "%s", text);
	else if (others && *others && !strstr(others, PATHS_NVML))
		say(d, OK, NULL, "%s, in addition to LD_AUDIT=%s", text, others);
	else
		say(d, OK, NULL, "%s", text);
}

/* Checks the cache directory. The library stores checked maps in this directory. */
static void ask_cache(struct doctor *d)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	bool named = cache && *cache == '/';
	char path[PATH_MAX], folder[PATH_MAX];
	struct stat st;

	if (!named && (!home || *home != '/')) {
		say(d, NOTE, NULL, "XDG_CACHE_HOME and HOME are not set");
		return;
	}
	/* The library does not create a home directory. */
	if (!named && access(home, F_OK)) {
		say(d, NOTE, NULL, "HOME=%s: %s", home, strerror(errno));
		return;
	}
	snprintf(path, sizeof(path), "%s%s/gpupart/checked", named ? cache : home,
		 named ? "" : "/.cache");
	strcpy(folder, path);
	while (stat(folder, &st) && errno == ENOENT && strrchr(folder, '/') > folder)
		*strrchr(folder, '/') = 0;
	if (access(folder, W_OK | X_OK))
		say(d, NOTE, NULL, "%s: %s", folder, strerror(errno));
	else if (!geteuid() && st.st_uid)
		say(d, NOTE, NULL, "root does not write to %s, which belongs to user %u", folder,
		    st.st_uid);
	else
		say(d, OK, NULL, "%s can be written", path);
}

/* Checks the state directory. Even if this directory cannot be used, programs run confined. */
static void ask_state_dir(struct doctor *d)
{
	char why[256];
	const char *advice = state_dir_advice(why, sizeof(why));

	say(d, advice ? NOTE : OK, advice, "%s%s", why, !advice ? "" :
	    ": programs run confined, but doctor and ps do not list them, and set cannot change them");
}

static void ask_namespaces(struct doctor *d)
{
	char how[384];
	const char *advice = namespaces_advice(how, sizeof(how));

	say(d, advice ? NOTE : OK, advice, "%s", how);
}

static void ask_mps(struct doctor *d)
{
	bool runs = false;
	char comm[64];
	glob_t found;

	if (!glob("/proc/[0-9]*/comm", GLOB_NOSORT, NULL, &found)) {
		/* The kernel shortens the name of a process to 15 characters. */
		for (size_t i = 0; i < found.gl_pathc && !runs; i++)
			runs = paths_read_line(found.gl_pathv[i], comm, sizeof(comm)) &&
			       !strcmp(comm, "nvidia-cuda-mps");
		globfree(&found);
	}
	say(d, runs ? NOTE : OK, NULL, "%s", !runs ?
	    "MPS does not run: programs share the GPU in time slices" :
	    "MPS runs: %smid has other values in clients of MPS, so gpupart takes mask bits from its table without a check");
}

/* Checks the node's MPS daemon. This daemon serves all users and all Slurm jobs. */
static void ask_node_mps(struct doctor *d)
{
	static struct mps_daemon daemon;
	int err = mps_daemon_find_node(&daemon);

	if (!err)
		say(d, OK, NULL,
		    "the node's MPS daemon runs in %s: Slurm's jobs and 'run --mps' of all users use this daemon",
		    daemon.dir);
	else if (err == -ENOENT)
		say(d, NOTE, NULL,
		    "this node has no MPS daemon for all users: their programs share a GPU in time slices");
	else
		say(d, BAD, "see 'systemctl status gpupart-mps', then restart this service",
		    "%s: programs share a GPU in time slices", daemon.why);
}

static void ask_environment(struct doctor *d)
{
	char text[1024] = "";

	for (char **word = environ; *word; word++)
		if (!strncmp(*word, "GPUPART_", 8) ||
		    !strncmp(*word, "CUDA_VISIBLE_DEVICES=", 21) ||
		    !strncmp(*word, MPS_DAEMON_PIPES "=", sizeof(MPS_DAEMON_PIPES)))
			out_append(text, sizeof(text), "%s%s", *text ? " " : "", *word);
	say(d, *text ? NOTE : OK, NULL, "%s", *text ? text :
	    "not set: GPUPART_*, CUDA_VISIBLE_DEVICES, CUDA_MPS_PIPE_DIRECTORY");
}

#define DEVICE_LAUNCHES_ADVICE "see gpupart-device-launches(7)"

/* Stores @p for the last row. The last row lists processes that may launch kernels from the GPU. */
static void remember_launching(struct doctor *d, const struct gpupart_process *p)
{
	if (!p->counters.device_launches)
		return;
	out_append(d->launching_text, sizeof(d->launching_text),
		   "%s%d%s%s (%" PRIu64 " launches)", *d->launching_text ? ", " : "", p->pid,
		   *p->name ? " " : "", p->name, p->counters.device_launches);
	if (d->launching)
		json_array_append_new(d->launching,
			json_pack("{s:i, s:o, s:I}", "pid", p->pid, "name", out_json_text(p->name),
				  "device_launches", (json_int_t)p->counters.device_launches));
}

#define COUNTER(name)	offsetof(struct gpupart_counters, name)

/*
 * These counters determine the result of a process. The list begins with the worst result. The
 * first counter that is not 0 gives the result.
 */
static const struct {
	size_t counter;
	enum result result;
	const char *advice;
} verdicts[] = {
	{ COUNTER(unconfinable_version), BAD,
	  "the TMD version or type of its launches is not known: report it with the output of scripts/capture-gpu"
	},
	{ COUNTER(unconfinable_map), BAD,
	  "the mask bits of its GPU are not proven: run 'gpupart verify'" },
	{ COUNTER(graphs_stale), NOTE,
	  "its graphs with conditional or memory nodes keep the set of their first launch: set the limit before it"
	},
	{ COUNTER(device_launches), NOTE, DEVICE_LAUNCHES_ADVICE },
	{ COUNTER(widened_cluster), NOTE, "use a larger set, or whole GPCs" },
	{ COUNTER(widened_cooperative), NOTE, "use a larger set, or whole GPCs" },
	{ COUNTER(widened_empty), NOTE,
	  "its own sets are outside its limit: choose sets inside the limit" },
	{ COUNTER(widened_driver), NOTE,
	  "the driver itself disables some of its TPCs: choose other TPCs" },
	{ COUNTER(unconfinable_gpu), NOTE,
	  "a limit is for one GPU: set CUDA_VISIBLE_DEVICES to that GPU" },
};

static enum result judge(const struct gpupart_counters *counters, const char **advice)
{
	for (size_t i = 0; i < sizeof(verdicts) / sizeof(verdicts[0]); i++) {
		*advice = verdicts[i].advice;
		if (*(const uint64_t *)((const char *)counters + verdicts[i].counter))
			return verdicts[i].result;
	}
	*advice = counters->launches ? "" :
		"if it has used the GPU already, the driver does not report its launches, and they are not confined: run 'gpupart verify'";
	return counters->launches ? OK : NOTE;
}

/* Formats the limit of a process. If the topology can be read, adds the whole GPCs in the limit. */
static const char *limit_text(struct doctor *d, const struct gpupart_process *p, char *text,
			      size_t len)
{
	const char *source = d->simulated ? d->args->source : NULL;
	struct gpupart_topology *topo;
	struct gpupart_tpcset limit;

	snprintf(text, len, "%s", *p->limit ? p->limit : "all");
	if (!*p->limit || (d->simulated && (!d->gpu || strcmp(p->pci, d->gpu))) ||
	    gpupart_topology_open(d->gp, source, source ? NULL : p->pci, &topo))
		return text;
	if (!gpupart_set_parse(NULL, topo, p->limit, &limit))
		out_set(text, len, topo, &limit);
	gpupart_topology_close(topo);
	return text;
}

static void say_process(struct doctor *d, const struct gpupart_process *p)
{
	const struct gpupart_counters *c = &p->counters;
	char limit[OUT_SET_STRLEN], stale[64] = "", device[64] = "";
	const char *advice, *blank = *p->name ? " " : "";
	enum result result;

	if (*p->problem || p->other_version) {
		say(d, *p->problem ? BAD : NOTE, *p->problem ? "see the reason in this row" : "",
		    "%d%s%s %s%s", p->pid, blank, p->name, *p->problem ? "is not confined: " :
		    "runs under another version of gpupart, on TPCs ",
		    *p->problem ? p->problem : limit_text(d, p, limit, sizeof(limit)));
		return;
	}
	remember_launching(d, p);
	if (c->graphs_stale)
		snprintf(stale, sizeof(stale), ", %" PRIu64 " graphs with an earlier set",
			 c->graphs_stale);
	if (c->device_launches)
		snprintf(device, sizeof(device), ", %" PRIu64 " can launch from the GPU",
			 c->device_launches);
	result = judge(c, &advice);
	say(d, result, advice,
	    "%d%s%s on TPCs %s of %s: %" PRIu64 " launches, %" PRIu64 " confined, %" PRIu64
	    " widened, %" PRIu64 " not confined, %" PRIu64 " on other GPUs%s%s",
	    p->pid, blank, p->name, limit_text(d, p, limit, sizeof(limit)), p->pci, c->launches,
	    c->confined,
	    c->widened_empty + c->widened_driver + c->widened_cluster + c->widened_cooperative,
	    c->unconfinable_version + c->unconfinable_map, c->unconfinable_gpu, stale, device);
}

static void ask_processes(struct doctor *d)
{
	struct gpupart_process *list;
	int nr = shown_processes(d->gp, &list);

	if (nr <= 0)
		say(d, nr ? NOTE : OK, NULL, "%s",
		    nr ? gpupart_error(d->gp) : "no program runs confined now");
	for (int i = 0; i < nr; i++)
		say_process(d, &list[i]);
	free(list);
}

static void ask_device_launches(struct doctor *d)
{
	say(d, NOTE, *d->launching_text ? NULL : "",
	    "kernels launched from the GPU (dynamic parallelism) are not confined; %s%s",
	    *d->launching_text ? "these processes have kernels that launch other kernels: " :
	    "no running process is known to have such kernels", d->launching_text);
}

#define REPORT "sets cannot be used here; report it with the output of scripts/capture-gpu"

static const struct question questions[] = {
	{ "driver", ask_driver,
	  .advice = "install NVIDIA's driver, 'modprobe nvidia'; without a GPU: 'gpupart demo'",
	  .simulated = "no kernel driver is needed" },
	{ "device-node", ask_node,
	  .advice = "run 'nvidia-modprobe', or start the container with the GPU",
	  .simulated = "no device node is needed" },
	{ "gpus", ask_gpus, .advice = "see the rows above", .simulated = "the GPU of the capture" },
	{ "topology", ask_topology,
	  .advice = "run 'gpupart topology -i rm' and '-i kernel', and report both outputs" },
	{ "mig", ask_mig, .advice = "run 'nvidia-smi -mig 0' as root while the GPU is idle" },
	{ "libcuda", ask_libcuda,
	  .advice = "check that the kernel driver and libcuda.so.1 have the same version" },
	{ "launch-callback", ask_callback, .advice = REPORT, .launches = true },
	{ "mask-bits", ask_mask_bits, .advice = REPORT, .launches = true },
	{ "streams", ask_feature, .advice = "use process and next-launch sets", .launches = true,
	  .note = "streams cannot have their own sets", .good = "streams can have their own sets",
	  .lack = offsetof(struct check, streams) },
	{ "graphs", ask_feature, .advice = "set limits before a program launches its graphs",
	  .launches = true, .note = "graphs keep the set of their first launch",
	  .good = "graphs use the current set", .lack = offsetof(struct check, graphs) },
	{ "records", ask_feature, .advice = "nothing to do: programs are confined without them",
	  .launches = true, .note = "the GPU writes no completion records",
	  .good = "the GPU writes a completion record for each launch",
	  .lack = offsetof(struct check, records) },
	{ .name = "inject-library", .ask = ask_injection },
	{ "injection-slot", ask_slot,
	  .advice = "nothing to do: run uses LD_PRELOAD and then loads that tool" },
	{ "nvml-library", ask_nvml,
	  .advice = "nothing to do: CUDA reports the quota; with glibc 2.35 NVML does too" },
	{ "cache-folder", ask_cache,
	  .advice = "to store results of checks, set XDG_CACHE_HOME to your own directory" },
	{ .name = "state-folder", .ask = ask_state_dir },
	{ .name = "namespaces", .ask = ask_namespaces },
	{ "node-config", ask_config,
	  .advice = "as root, correct the file or make it readable: see gpupart(1)" },
	{ "mps", ask_mps, .advice = "set CUDA_DEVICE_MAX_CONNECTIONS=8 for its clients" },
	{ "node-mps", ask_node_mps,
	  .advice = "for several users or Slurm: 'systemctl enable --now gpupart-mps'" },
	{ .name = "environment", .ask = ask_environment },
	{ .name = "processes", .ask = ask_processes },
	{ "green-contexts", ask_feature, .launches = true,
	  .advice = "use driver 550 or later, or run such programs with GPUPART_DISABLE=1",
	  .note = "programs cannot create green contexts", .lack = offsetof(struct check, green),
	  .good = "programs can create green contexts: each is part of the set" },
	{ "profilers", ask_feature, .advice = "profile with GPUPART_DISABLE=1", .launches = true,
	  .note = "profilers that use CUPTI cannot attach, even with run --profile",
	  .good = "with run --profile CUPTI (torch.profiler) can attach; ncu cannot",
	  .lack = offsetof(struct check, profilers) },
	{ "device-launches", ask_device_launches, .advice = DEVICE_LAUNCHES_ADVICE },
};

static void ask_all(struct doctor *d)
{
	for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
		const struct question *q = d->question = &questions[i];

		if (q->simulated && d->simulated)
			say(d, SKIP, NULL, "simulated: %s", q->simulated);
		else if (q->launches && !d->may_launch)
			say(d, SKIP, NULL, "--no-launch: not tried");
		else if (q->ask)
			q->ask(d);
		else
			say(d, NOTE, NULL, "%s", q->note);
	}
}

static int examine(struct doctor *d)
{
	const struct args *args = d->args;
	json_t *root = NULL;
	int status;

	status = out_open(&d->out, args);
	if (status)
		return status;
	if (args->json) {
		root = out_json_new(args->cmd, d->simulated);
		d->rows = json_array();
		d->launching = json_array();
		json_object_update_new(root, json_pack("{s:s, s:o, s:o}", "version",
			gpupart_version(), "rows", d->rows, "device_launches", d->launching));
	} else {
		fprintf(d->out.file, "gpupart %s%s\n", gpupart_version(),
			d->simulated ? ", on the simulated GPU" : "");
	}
	ask_all(d);
	if (root) {
		json_object_set_new(root, "nr_bad", json_integer(d->nr[BAD]));
		json_object_set_new(root, "good", json_boolean(!d->nr[BAD]));
		out_json_write(&d->out, root);
	} else if (d->nr[BAD]) {
		fprintf(d->out.file, "\n%u needed checks failed\n", d->nr[BAD]);
	} else {
		fputs("\neverything needed works\n", d->out.file);
	}
	status = out_close(&d->out);
	return d->nr[BAD] ? EXIT_FAILED : status;
}

int cmd_doctor(int argc, char **argv)
{
	bool no_launch = false;
	const struct args_option own[] = { { .name = "no-launch", .given = &no_launch }, { 0 } };
	struct args args = { .lenient = true };
	struct doctor doctor = { .args = &args, .gp = cmd_gp };
	int status;

	status = args_parse(&args, ARGS_SIM | ARGS_GPU | ARGS_JSON | ARGS_OUTPUT, own, doctor_help,
			    argc, argv) ?: args_simulate(&args);
	if (status)
		return status;
	doctor.simulated = args.simulated;
	doctor.may_launch = !no_launch;
	/* If CUDA_VISIBLE_DEVICES hides all GPUs, the rows report this fact. */
	doctor.gpu = args.gpu;
	status = EXIT_FAILED;
	if (args.gpu || !getenv("CUDA_VISIBLE_DEVICES") || !args_gpu(&args, &doctor.gpu))
		status = examine(&doctor);
	return status;
}
