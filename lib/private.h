/* SPDX-License-Identifier: MIT */
/*
 * What gpupart's own programs need of libgpupart beyond its public headers: the command, the
 * injected library, Slurm's plugin and libsmctrl, each of the same build. Exported as
 * GPUPART_PRIVATE; changes without notice.
 */
#ifndef GPUPART_LIB_PRIVATE_H
#define GPUPART_LIB_PRIVATE_H

#include <errno.h>
#include <string.h>
#include <gpupart_manage.h>

/* Part @n, from 0, of @list, whose parts @separator parts, and its length; NULL after the last. */
static inline const char *gpupart_list_part(const char *list, char separator, unsigned int n,
					    size_t *len)
{
	const char *end = strchr(list, separator);

	for (; n && end; n--) {
		list = end + 1;
		end = strchr(list, separator);
	}
	*len = end ? (size_t)(end - list) : strlen(list);
	return n ? NULL : list;
}

#pragma GCC visibility push(default)

/*
 * The same for a library that the driver loads at cuInit: makes no launch and no
 * CUDA context, so the mask bits must have been checked before, by this user's cache
 * or as @key says (struct gpupart_check, from a process that checked; may be NULL), with
 * GPUPART_KEY_RECORDS behind it where that process proved that the GPU writes records, too.
 * Stream sets need a gpupart_attach() later. -EOPNOTSUPP where they were not checked.
 */
#define GPUPART_KEY_LEN 16
#define GPUPART_KEY_RECORDS "1"
int gpupart_attach_early(struct gpupart *gp, const char *gpu, const char *key,
			 struct gpupart_gpu **attached);

/*
 * Of libgpupart-manage.so.0. From now on, where the formula of a TMD layout does not hold on a GPU,
 * gpupart_attach() of this process finds the mask bits by launches, proves them and keeps them for
 * this user; where they cannot be kept, gpupart_attach() fails with the reason. *@nr_launches
 * counts these launches. Call it before other threads attach.
 */
void gpupart_learn(unsigned int *nr_launches);

/*
 * What an engine was seen to do, in samples. A TSG is the driver's time slice group, of which each
 * process has one or more on the runlist.
 */
#define GPUPART_ENGINE_MAX_TSGS 32
#define GPUPART_MAX_ENGINES 96

struct gpupart_engine_tsg {
	unsigned int tsg, samples;
	int channel;			/* the last one seen with this TSG, -1 none */
};

struct gpupart_engine_use {
	char name[48];			/* "" if the type has none */
	unsigned int runlist;		/* its pri-base */
	unsigned int id;		/* the runlist's, in a work-submit token */
	unsigned int type, instance;
	unsigned int samples;		/* of these: */
	unsigned int idle, switching, others;	/* others: TSGs that did not fit into @tsgs */
	unsigned int nr_tsgs;
	struct gpupart_engine_tsg tsgs[GPUPART_ENGINE_MAX_TSGS];	/* most samples first */
};

/*
 * Of libgpupart-manage.so.0. Samples the engines of a GPU for @seconds: the graphics runlist 1000
 * times a second, or as often as the source can, the others in turn; 0: one sample. @source is
 * "kernel" (the module), "rm" (NVIDIA's driver), the path of a file with recorded registers, or
 * NULL for the first of kernel and rm that works; these two need root. Fills in pci and source of
 * @info and returns the number of engines in @list.
 */
int gpupart_engine_uses(struct gpupart *gp, const char *gpu, const char *source, double seconds,
			struct gpupart_gpu_info *info,
			struct gpupart_engine_use list[GPUPART_MAX_ENGINES]);

/*
 * Of libgpupart-manage.so.0. The process that owns all TSGs of users on the graphics engine of the
 * GPU at @pci; 0: there are several or none, or it is not known. Asks NVIDIA's driver, which may
 * hang. Only in the machine's own pid namespace, where no process is hidden.
 */
int gpupart_engine_owner(struct gpupart *gp, const char *pci);

/* The compute class that the driver, or the capture, tells: 0xcbc0 is GH100's; 0 unknown. */
unsigned int gpupart_topology_compute_class(const struct gpupart_topology *topo);

/* The id of the grant of a container, which binds each user of it. No job of a node has it. */
#define GPUPART_GRANT_CONTAINER "0-0"

/*
 * Writes one, or another in its place: whole or not at all, whenever the caller dies. Who
 * plans around others must take turns. Into @folder, of which a container gets a view that is read
 * only in place of the node's folder: there root is not exempt. NULL: the node's.
 * -EINVAL another id, name or address; -EPERM others can write to @folder; -EACCES, .. who is not
 * root.
 */
int gpupart_grant_put_in(struct gpupart *gp, const char *folder, const struct gpupart_grant *grant);

static inline int gpupart_grant_put(struct gpupart *gp, const struct gpupart_grant *grant)
{
	return gpupart_grant_put_in(gp, NULL, grant);
}

/* No error where there is none. -EINVAL another id; -EACCES, .. who is not root. */
int gpupart_grant_drop(struct gpupart *gp, const char *id);

/*
 * Whether @uid is the machine's root, whom no grant binds. User 0 of a user namespace without the
 * machine's root is not, nor is one who has the folder of grants read only.
 */
bool gpupart_grant_exempts(unsigned int uid);

/*
 * What the processes of a run leave for it: which of them used CUDA, and which launches ran
 * outside of the run's limit, with more TPCs than it or on another GPU.
 */
#define GPUPART_REPORT_NR_KERNELS 16

/* Why: the counters of struct gpupart_counters that may leave a limit, in their order. */
enum gpupart_outside {
	GPUPART_OUTSIDE_DRIVER = 2,
	GPUPART_OUTSIDE_CLUSTER,
	GPUPART_OUTSIDE_COOPERATIVE,
	GPUPART_OUTSIDE_VERSION,
	GPUPART_OUTSIDE_MAP,
	GPUPART_OUTSIDE_GPU,
	/* No launch: @count modules with this kernel were refused (GPUPART_NO_DEVICE_LAUNCH=1). */
	GPUPART_REFUSED_MODULE,
};

struct gpupart_report_kernel {
	char name[160];		/* as the driver has it; "" where it was not found out */
	unsigned int outside;	/* enum gpupart_outside */
	uint64_t count;		/* launches; nodes of graphs count when they are built */
	unsigned int cluster;	/* blocks of one cluster, or 0 */
	unsigned int nr_tpcs;	/* that the first such launch was given; 0: not known */
	struct gpupart_tpcset limit;	/* that it left; empty: not known */
};

enum gpupart_report_state {
	GPUPART_REPORT_BEGUN,	/* it began to use CUDA, and is not confined, for @why */
	GPUPART_REPORT_CONFINED,	/* on the GPU at @pci */
	GPUPART_REPORT_REFUSED,	/* strict: calls of the driver fail, for @why */
	GPUPART_REPORT_NOT_REFUSED,	/* strict: the driver cannot be made to fail them */
};

struct gpupart_report_process {
	int pid;		/* in @pid_namespace */
	unsigned int state;	/* enum gpupart_report_state */
	bool simulated;
	uint64_t start;		/* clock ticks since boot */
	uint64_t pid_namespace;	/* the inode of its /proc/PID/ns/pid */
	char name[16];
	char pci[20];
	char source[512];	/* of that GPU's topology, as struct gpupart_process has it */
	char why[256];
	struct gpupart_report_kernel kernels[GPUPART_REPORT_NR_KERNELS];	/* @count 0: none */
	uint64_t others;	/* launches outside of further kernels */
};

struct gpupart_report;

/*
 * A place for such reports, gone with the calling process. @id is for GPUPART_REPORT, and holds for
 * processes of this user while the caller lives. There is room for 256 processes that live or
 * left something to report.
 */
int gpupart_report_open(struct gpupart *gp, struct gpupart_report **report, const char **id);

/*
 * What the @n'th process has left up to now, from 0: -ENOENT after the last. It is that process's
 * word; texts are printable ASCII. By any thread.
 */
int gpupart_report_get(const struct gpupart_report *report, unsigned int n,
		       struct gpupart_report_process *process);

/* Processes that found no room, *nr_refused of them strict ones that were kept from CUDA. */
unsigned int gpupart_report_lost(const struct gpupart_report *report, unsigned int *nr_refused);

/*
 * The calling process began to use CUDA, and reports to the place that @id names: for the library
 * that the driver loads at cuInit, before gpupart_attach_early(). -EINVAL, -ENOENT, .. for @id, or
 * -ENOSPC where there is no room: the report stays in this process then. So it does where @id is
 * NULL.
 */
int gpupart_report_start(struct gpupart *gp, const char *id);

/*
 * Of libgpupart-manage.so.0: lending between runs, whose processes find in their report what they
 * need of it. Before the program starts: no process of the run has launches outstanding that take
 * more than @depth_ns by what is known, and those that use lent TPCs no more than @limit_ns
 * (0: none does).
 */
void gpupart_lend_bound(struct gpupart_report *report, uint64_t depth_ns, uint64_t limit_ns);

/* What came of it: launches with lent TPCs, kernels that get none any more, waits in vain. */
struct gpupart_lend_counts {
	uint64_t lent, revoked, expired;
};
void gpupart_lend_counts(const struct gpupart_report *report, struct gpupart_lend_counts *counts);

/*
 * From now on the run of @report borrows the TPCs on the GPU at @pci of the @nr processes @pids,
 * whose report is @id, whenever gpupart_lender_look() has found them idle. One thread, and one
 * lender at a time. -EBUSY they borrow themselves; -EINVAL they have no set of their own; -EPERM
 * this node gave this user none of their TPCs; and as gpupart_remote_open() and
 * gpupart_records_open().
 */
#define GPUPART_LENDER_MAX 16	/* processes */
struct gpupart_lender;
int gpupart_lender_open(struct gpupart *gp, struct gpupart_report *report, const char *id,
			const char *pci, const int *pids, unsigned int nr,
			struct gpupart_lender **lender);

/*
 * To be called all the time: what it finds holds for 50 ms at most. 1 idle, 0 busy. -EAGAIN they
 * became others, or have other TPCs: open it again; -EBUSY, -ESRCH, -EINVAL: they cannot lend.
 */
int gpupart_lender_look(struct gpupart *gp, struct gpupart_lender *lender);

/* Nothing is lent any more. Also in a signal's handler. */
void gpupart_lender_stop(struct gpupart_lender *lender);
void gpupart_lender_close(struct gpupart_lender *lender);

/* From now on the process tells readers of its run's report of each launch. */
void gpupart_remote_lends(struct gpupart_remote *remote);

/*
 * Finds the names of kernels that are still missing, where the process ends normally. Returns its
 * report if that stayed in this process, else NULL.
 */
const struct gpupart_report_process *gpupart_report_end(void);

/*
 * Whether a tool that subscribes from now on is let in (GPUPART_PROFILE=1, or the option of
 * gpupart_attach()): 0; -ENOENT nobody asked, or nothing is attached; -EACCES with why not. Any
 * thread.
 */
int gpupart_profilers(struct gpupart *gp);

/* Why launches on @gpu have no records, or "". */
void gpupart_records_lack(const struct gpupart_gpu *gpu, char *why, size_t len);

/*
 * Of libgpupart-manage.so.0. What the launches of a process that were recorded did from the first
 * call of gpupart_records_watch(), or its first launch if it had no records then, up to the last
 * call but one, or its end. Of the offset between the clocks of CPU and GPU two bounds are known,
 * so that the time of a launch, from its submission or the end before it on its stream until its
 * end, is between two values: for the calling process as for others.
 */
struct gpupart_records_kernel {
	char name[96];			/* "": the process did not tell it */
	uint64_t count;			/* launches that ended */
	uint64_t least_ns, most_ns;	/* all of them together */
	uint64_t longest_ns;		/* at most */
};

struct gpupart_records_watched {
	uint64_t ns;			/* how long it was watched */
	uint64_t least_ns, most_ns;	/* of which launches were outstanding: the union */
	uint64_t missed;		/* launches that ended unseen: none of those below */
	unsigned int nr_kernels;
	struct gpupart_records_kernel kernels[GPUPART_RECORDS_NR_FUNCTIONS];	/* most first */
};

/*
 * Reads @reader's records into @now, and looks for what has ended since the last call; takes up to
 * a millisecond. The next call is due after *pause_us. 0; -ESRCH the process is gone, and @now is
 * what it left, if there was a call before; -ENOMEM.
 */
int gpupart_records_watch(struct gpupart *gp, struct gpupart_records_reader *reader,
			  struct gpupart_records *now, unsigned int *pause_us);
void gpupart_records_watched(struct gpupart_records_reader *reader,
			     struct gpupart_records_watched *watched);

/*
 * Of libgpupart-manage.so.0. When launches that began before a process's set changed have ended:
 * gpupart_records_drain() after the change, and then gpupart_records_drained() now and then. That
 * returns 1 once no launch with TPCs outside of the new set is outstanding, 0 if one is, -ENODATA
 * with the reason if it cannot be known, -ESRCH if the process is gone, and with it its launches.
 * Launches that were not confined to the new set, as a graph that cannot be built again, count as
 * ones from before.
 */
void gpupart_records_drain(struct gpupart_records_reader *reader);
int gpupart_records_drained(struct gpupart *gp, struct gpupart_records_reader *reader);

/*
 * A strict process: after the first launch that ran outside of its limit each call of the driver
 * that launches fails with 800 (operation not permitted). @refuse: each of them fails from now
 * on, and so does what initializes CUDA or makes a context: for one that cannot be confined.
 * -EBUSY where another tool has the driver's callback; -EOPNOTSUPP where this driver does not
 * tell of its functions.
 */
int gpupart_strict_start(struct gpupart *gp, bool refuse);

/*
 * Of libgpupart-manage.so.0. How @nr TPCs of @from lie:
 * packed: in the smallest uGPU that holds them, there in whole GPCs as far as they go;
 * gpcs: whole GPCs of any uGPU as far as they go, the rest packed;
 * balanced: whole GPCs, the same number of each uGPU;
 * spread: as even over GPCs as @from allows, and of 4 TPCs or more a cluster of
 * GPUPART_PORTABLE_CLUSTER blocks fits in one, where @from allows it; even over uGPUs next.
 * The same for the same arguments. -ENOSPC where @from has no such set, and the sentence says
 * which numbers would do; -EOPNOTSUPP GPCs or uGPUs are not told.
 */
enum gpupart_shape {
	GPUPART_SHAPE_PACKED,
	GPUPART_SHAPE_GPCS,
	GPUPART_SHAPE_BALANCED,
	GPUPART_SHAPE_SPREAD,
};
#define GPUPART_NR_SHAPES (GPUPART_SHAPE_SPREAD + 1)
int gpupart_set_shape(struct gpupart *gp, const struct gpupart_topology *topo,
		      enum gpupart_shape shape, const struct gpupart_tpcset *from, unsigned int nr,
		      struct gpupart_tpcset *set);

const char *gpupart_shape_name(enum gpupart_shape shape);
/* The shape called @text. -EINVAL: the sentence has those there are. */
int gpupart_shape_parse(struct gpupart *gp, const char *text, enum gpupart_shape *shape);

/* A configuration file that is read line by line. */
#define GPUPART_CONFIG "/etc/gpupart/config"
struct gpupart_config {
	const char *path;
	bool own;		/* this user may have written it; else root alone */
	unsigned int line;
	char *key, *value, *rest;
	char text[4096];	/* the stack of a thread that begins to use CUDA may be small */
};

/* Reads nothing as yet. */
static inline void gpupart_config_open(struct gpupart_config *config, const char *path, bool own)
{
	config->path = path;
	config->own = own;
	config->line = 0;
}

/*
 * The next line that has a key, and its value, valid as long as @config: 1, 0 after the last (or
 * where there is no such file), or a negative errno. -EPERM: another user could have written the
 * file, which is to be ignored. -EINVAL a line without a key, -EFBIG 4096 bytes or more; -EACCES,
 * -EISDIR, .. where it cannot be read.
 */
int gpupart_config_next(struct gpupart *gp, struct gpupart_config *config);

/*
 * Whether /etc/gpupart/config, which root writes, has the line "strict = yes": 1 or 0. -EPERM
 * where another user could have written it, which is then ignored. Else it may ask for that, and
 * counts as if it did: -EINVAL for another key or value, -EFBIG; -EACCES, -EISDIR, .. where it
 * cannot be read.
 */
int gpupart_config_strict(struct gpupart *gp);

/* Whether what it returned makes a process strict: a file that is not understood may ask for it. */
static inline bool config_is_strict(int found)
{
	return found && found != -EPERM;
}

/* Hexadecimal form, bit i allows TPC i; "0x" and commas between groups are allowed. */
int gpupart_tpcset_parse_hex(struct gpupart *gp, const char *text, struct gpupart_tpcset *set);

/* -ENOSPC where @len is too small; GPUPART_TPCSET_STRLEN always fits. */
int gpupart_tpcset_format_hex(const struct gpupart_tpcset *set, char *text, size_t len);

/*
 * The GPUs of one of those: up to @max rows like @process into @list, each with pci, source,
 * simulated and limit of another GPU, by PCI address. Returns how many there are (of one in
 * another pid namespace the GPU that @process tells), or -ENOMEM.
 */
int gpupart_process_gpu_list(struct gpupart *gp, const struct gpupart_process *process,
			     struct gpupart_process *list, unsigned int max, size_t size);

#define GPUPART_NR_LATENCIES 512

/* Since the process began to use the library. */
struct gpupart_progress {
	uint64_t units;
	uint64_t reports;	/* calls in which they were told */
	/* CLOCK_MONOTONIC of the last report of units, and of a latency; 0: there was none. */
	uint64_t told_ns, answered_ns;
	uint64_t launches;	/* struct gpupart_counters */
	/* Requests by how long they took: see gpupart_latency_least(). */
	uint64_t latencies[GPUPART_NR_LATENCIES];
};

/* The least nanoseconds that latencies[@place] counts: 6 % apart, the last one 32 s. */
uint64_t gpupart_latency_least(unsigned int place);

/* -ESRCH when the process is gone. Each number is whole; together they may be torn. */
int gpupart_remote_progress(struct gpupart *gp, const struct gpupart_remote *remote,
			    struct gpupart_progress *progress);

/*
 * A size in words: a number, with a fraction where a unit follows, and K, M, G or T (or KiB,
 * MiB, ..: of 1024) or KB, MB, .. (of 1000) or B behind it, in letters of any size; "20G" is
 * 20 * 2^30. -EINVAL: it is none, 0 bytes, or more than 2^60.
 */
int gpupart_memory_parse(struct gpupart *gp, const char *text, uint64_t *bytes);

/* A process under `gpupart stat`: what its records, which the command reads, tell nothing of. */
enum gpupart_stat_direction {
	GPUPART_STAT_TO_GPU,
	GPUPART_STAT_FROM_GPU,
	GPUPART_STAT_INSIDE,	/* from a GPU's memory into the same GPU's */
	GPUPART_STAT_OTHER,	/* the function's name does not tell */
	GPUPART_STAT_NR_DIRECTIONS,
};

#define GPUPART_STAT_MAX_GPUS	16
#define GPUPART_STAT_MAX_PROCESSES 64

struct gpupart_stat_process {
	uint64_t pid;
	char name[16];
	uint64_t copies[GPUPART_STAT_NR_DIRECTIONS], bytes[GPUPART_STAT_NR_DIRECTIONS];
	uint64_t waits;		/* calls in which the CPU waits, those of copies included */
	uint64_t wait_ns;	/* in them, of all threads */
	uint64_t nr_gpus;	/* 0: it cannot be measured */
	char pci[GPUPART_STAT_MAX_GPUS][20];	/* for gpupart_records_open() */
};

struct gpupart_stat;

/*
 * A place where processes show themselves to be measured, gone with gpupart_stat_close(). @id is
 * to be put into GPUPART_STAT; it holds for processes of this user and PID namespace, while the
 * caller lives.
 */
int gpupart_stat_open(struct gpupart *gp, struct gpupart_stat **stat, const char **id);
void gpupart_stat_close(struct gpupart_stat *stat);

/*
 * What the @n'th process has left up to now, from 0: -ENOENT after the last, -EAGAIN it is about to
 * begin. Of a process that still runs, counts are whole one by one. By any thread.
 */
int gpupart_stat_get(const struct gpupart_stat *stat, unsigned int n,
		     struct gpupart_stat_process *process);

/* Its records are open: it need not wait for that any longer. */
void gpupart_stat_seen(const struct gpupart_stat *stat, unsigned int n);

/* Processes that found no room. */
unsigned int gpupart_stat_lost(const struct gpupart_stat *stat);

/*
 * From now on the calling process is measured for the place that @id names; for the library that
 * the driver loads at cuInit, after gpupart_process_publish() and gpupart_attach_early(). Waits
 * until gpupart_stat_seen(), or for 2 s. -EOPNOTSUPP where this driver does not tell of its
 * functions; -EINVAL, -ENOENT, .. for @id; -ENOSPC where there is no room.
 */
int gpupart_stat_start(struct gpupart *gp, const char *id);

#pragma GCC visibility pop

#endif
