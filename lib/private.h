/* SPDX-License-Identifier: MIT */
/*
 * Functions of libgpupart that are not in its public headers. gpupart's own programs of the
 * same build use them: the command, the injected library, Slurm's plugin and libsmctrl. They
 * are exported as GPUPART_PRIVATE and change without notice.
 */
#ifndef GPUPART_LIB_PRIVATE_H
#define GPUPART_LIB_PRIVATE_H

#include <errno.h>
#include <string.h>
#include <gpupart_manage.h>

/*
 * Returns item @n (from 0) of @list, whose items are separated by @separator, and its length in
 * *len; NULL after the last item.
 */
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
 * Attaches a GPU from a library that the driver loads at cuInit. It makes no launch and creates
 * no CUDA context, so the mask bits must have been checked before: in this user's cache, or by
 * the process that @key (may be NULL) comes from. @key is that process's struct gpupart_check
 * key, followed by GPUPART_KEY_RECORDS if that process also proved that the GPU writes
 * completion records. Stream sets need a later gpupart_attach(). -EOPNOTSUPP: the mask bits
 * were not checked.
 */
#define GPUPART_KEY_LEN 16
#define GPUPART_KEY_RECORDS "1"
int gpupart_attach_early(struct gpupart *gp, const char *gpu, const char *key,
			 struct gpupart_gpu **attached);

/*
 * In libgpupart-manage.so.0. After this call, if the formula of a TMD layout is wrong for a
 * GPU, gpupart_attach() of this process finds the mask bits by launches, proves them and stores
 * them in this user's cache. If they cannot be stored, gpupart_attach() fails with the reason.
 * *@nr_launches counts these launches. Call it before other threads attach.
 */
void gpupart_learn(unsigned int *nr_launches);

/*
 * Samples of what an engine was doing. A TSG is the driver's time slice group; each process has
 * one or more of them on the runlist.
 */
#define GPUPART_ENGINE_MAX_TSGS 32
#define GPUPART_MAX_ENGINES 96

struct gpupart_engine_tsg {
	unsigned int tsg, samples;
	int channel;			/* the latest channel sampled with it; -1: none */
};

struct gpupart_engine_use {
	char name[48];			/* "" if the type has no name */
	unsigned int runlist;		/* pri-base of its runlist */
	unsigned int id;		/* number of the runlist in a work-submit token */
	unsigned int type, instance;
	unsigned int samples;		/* total; of these: */
	unsigned int idle, switching, others;	/* others: TSGs beyond the
						 * GPUPART_ENGINE_MAX_TSGS that are counted */
	unsigned int nr_tsgs;
	struct gpupart_engine_tsg tsgs[GPUPART_ENGINE_MAX_TSGS];	/* sorted by samples, most
									 * first */
};

/*
 * In libgpupart-manage.so.0. Samples the engines of a GPU for @seconds, 1000 times per second
 * if the source is fast enough: the graphics runlist each time, the others in turn; 0 takes one
 * sample. @source is "kernel" (the module), "rm" (NVIDIA's driver), the path of a file with
 * recorded registers, or NULL, which tries the first two in this order. The first two need root.
 * Fills in pci and source of @info and returns the number of engines in @list.
 */
int gpupart_engine_uses(struct gpupart *gp, const char *gpu, const char *source, double seconds,
			struct gpupart_gpu_info *info,
			struct gpupart_engine_use list[GPUPART_MAX_ENGINES]);

/*
 * In libgpupart-manage.so.0. Returns the process that owns all TSGs of users on the graphics
 * engine of the GPU at @pci, or 0 if there are several, if there is none, or if it is unknown.
 * Asks NVIDIA's driver, which may hang. Works only in the machine's own pid namespace, where no
 * process is hidden.
 */
int gpupart_engine_owner(struct gpupart *gp, const char *pci);

/*
 * The compute class that the driver or the capture reports, for example 0xcbc0 for GH100; 0:
 * unknown.
 */
unsigned int gpupart_topology_compute_class(const struct gpupart_topology *topo);

/*
 * The id of the grant of a container, which limits every user in it. No other grant has this
 * id.
 */
#define GPUPART_GRANT_CONTAINER "0-0"

/*
 * Writes a grant, or replaces one, atomically, even if the caller dies. Callers that plan
 * around existing grants must use a lock of their own. @folder NULL is the machine's directory
 * of grants. A container gets a read-only view of another @folder in its place, and in that
 * container root is not exempt.
 *
 * -EINVAL: the id, name or address is invalid. -EPERM: users other than root can write to
 * @folder. -EACCES and so on: the caller is not root.
 */
int gpupart_grant_put_in(struct gpupart *gp, const char *folder, const struct gpupart_grant *grant);

static inline int gpupart_grant_put(struct gpupart *gp, const struct gpupart_grant *grant)
{
	return gpupart_grant_put_in(gp, NULL, grant);
}

/*
 * Removes a grant. Returns 0 also if it does not exist. -EINVAL: @id is not the id of a grant.
 * -EACCES and so on: the caller is not root.
 */
int gpupart_grant_drop(struct gpupart *gp, const char *id);

/*
 * Whether @uid is the machine's root, whom no grant limits. User 0 of a user namespace that
 * does not map the machine's root is not exempt, and neither is a user who can only read the
 * directory of grants.
 */
bool gpupart_grant_exempts(unsigned int uid);

/*
 * A report for `gpupart run`: which processes of the run used CUDA, and which of their launches
 * ran outside the run's limit, with more TPCs or on another GPU.
 */
#define GPUPART_REPORT_NR_KERNELS 16

/*
 * Reasons why a launch was outside the limit: counters of struct gpupart_counters, in the same
 * order.
 */
enum gpupart_outside {
	GPUPART_OUTSIDE_DRIVER = 2,
	GPUPART_OUTSIDE_CLUSTER,
	GPUPART_OUTSIDE_COOPERATIVE,
	GPUPART_OUTSIDE_VERSION,
	GPUPART_OUTSIDE_MAP,
	GPUPART_OUTSIDE_GPU,
	/*
	 * Not a launch: @count modules with this kernel were refused
	 * (GPUPART_NO_DEVICE_LAUNCH=1).
	 */
	GPUPART_REFUSED_MODULE,
};

struct gpupart_report_kernel {
	char name[160];		/* the name in the driver; "" if unknown */
	unsigned int outside;	/* enum gpupart_outside */
	uint64_t count;		/* launches; nodes of graphs are counted when they are built */
	unsigned int cluster;	/* blocks in one cluster, or 0 */
	unsigned int nr_tpcs;	/* given to the first such launch; 0: unknown */
	struct gpupart_tpcset limit;	/* the limit that this launch left; empty: unknown */
};

enum gpupart_report_state {
	GPUPART_REPORT_BEGUN,	/* began to use CUDA and is not confined, for the reason in @why */
	GPUPART_REPORT_CONFINED,	/* confined on the GPU at @pci */
	GPUPART_REPORT_REFUSED,	/* strict: calls of the driver fail, for the reason in @why */
	GPUPART_REPORT_NOT_REFUSED,	/* strict, but the driver cannot be made to fail its
					 * calls */
};

struct gpupart_report_process {
	int pid;		/* in @pid_namespace */
	unsigned int state;	/* enum gpupart_report_state */
	bool simulated;
	uint64_t start;		/* clock ticks since boot */
	uint64_t pid_namespace;	/* the inode of its /proc/PID/ns/pid */
	char name[16];
	char pci[20];
	char source[512];	/* source of that GPU's topology, as in struct gpupart_process */
	char why[256];
	/* Entries with @count 0 are unused. */
	struct gpupart_report_kernel kernels[GPUPART_REPORT_NR_KERNELS];
	uint64_t others;	/* launches outside the limit, of kernels that have no entry */
};

struct gpupart_report;

/*
 * Opens a report, which ends with the calling process. Put @id into the environment variable
 * GPUPART_REPORT; it is valid for processes of this user while the caller lives. The report has
 * room for 256 processes that are alive or have reported something.
 */
int gpupart_report_open(struct gpupart *gp, struct gpupart_report **report, const char **id);

/*
 * Reads what process number @n (from 0) has reported so far; -ENOENT after the last. The values
 * are that process's claims; strings are printable ASCII. Any thread may call it.
 */
int gpupart_report_get(const struct gpupart_report *report, unsigned int n,
		       struct gpupart_report_process *process);

/*
 * The number of processes for which the report had no room. *nr_refused of them are strict and
 * were kept from using CUDA.
 */
unsigned int gpupart_report_lost(const struct gpupart_report *report, unsigned int *nr_refused);

/*
 * Starts reporting the calling process's use of CUDA to the report @id. For the library that
 * the driver loads at cuInit, before gpupart_attach_early(). If it fails, or @id is NULL, the
 * report stays in this process. -EINVAL, -ENOENT and so on: @id cannot be used. -ENOSPC: the
 * report is full.
 */
int gpupart_report_start(struct gpupart *gp, const char *id);

/*
 * In libgpupart-manage.so.0. Lending between runs: the processes of a run find what they need
 * for it in their report. Call this before the program starts. No process of the run then has
 * outstanding launches that take more than @depth_ns in total, as far as their times are known,
 * and no more than @limit_ns for launches that use lent TPCs (0: none may use them).
 */
void gpupart_lend_bound(struct gpupart_report *report, uint64_t depth_ns, uint64_t limit_ns);

/* Results: launches with lent TPCs, kernels that no longer get any, waits that timed out. */
struct gpupart_lend_counts {
	uint64_t lent, revoked, expired;
};
void gpupart_lend_counts(const struct gpupart_report *report, struct gpupart_lend_counts *counts);

/*
 * The run of @report borrows TPCs on the GPU at @pci from now on. They belong to the @nr
 * processes @pids, whose report is @id, and are lent whenever gpupart_lender_look() has found
 * these processes idle. Only TPCs in @within (NULL: all), in the current set of the job of the
 * caller's environment, and in this user's grants are lent. One thread may use the object, and
 * there is one lender at a time. -EBUSY: these processes borrow TPCs themselves. -EINVAL: they
 * have no set of their own. -EPERM: the limits allow none of their TPCs. Other errors are those
 * of gpupart_remote_open() and gpupart_records_open().
 */
#define GPUPART_LENDER_MAX 16	/* processes */
struct gpupart_lender;
int gpupart_lender_open(struct gpupart *gp, struct gpupart_report *report, const char *id,
			const char *pci, const int *pids, unsigned int nr,
			const struct gpupart_tpcset *within, struct gpupart_lender **lender);

/*
 * Call it continuously: a result is valid for at most 50 ms. Returns 1 if the processes are
 * idle, 0 if they are busy. -EAGAIN: the processes or their TPCs have changed; open the lender
 * again. -EBUSY, -ESRCH, -EINVAL, -EPERM: they cannot lend.
 */
int gpupart_lender_look(struct gpupart *gp, struct gpupart_lender *lender);

/* Stops lending. May be called from a signal handler. */
void gpupart_lender_stop(struct gpupart_lender *lender);
void gpupart_lender_close(struct gpupart_lender *lender);

/* Makes the process report the start of each launch to readers of its run's report. */
void gpupart_remote_lends(struct gpupart_remote *remote);

/*
 * Finds the names of kernels that are still missing, when the process ends normally. Returns
 * the report if it stayed in this process, else NULL.
 */
const struct gpupart_report_process *gpupart_report_end(void);

/*
 * Whether a tool that subscribes to the driver from now on gets its callbacks
 * (GPUPART_PROFILE=1, or the option of gpupart_attach()). Returns 0 if so. -ENOENT: it was not
 * requested, or no GPU is attached. -EACCES: it is not possible; the error sentence says why.
 * Any thread may call it.
 */
int gpupart_profilers(struct gpupart *gp);

/* The reason why launches on @gpu have no records, or "". */
void gpupart_records_lack(const struct gpupart_gpu *gpu, char *why, size_t len);

/*
 * In libgpupart-manage.so.0. The recorded launches of a process, from the first call of
 * gpupart_records_watch() (or the first launch, if there were no records then) to the last call
 * but one, or the end of the process. The offset between the clocks of CPU and GPU is known
 * only within two bounds. So the time of a launch, from its submission or the end of the
 * previous launch on its stream to its own end, is between a least and a most value. This
 * applies to the calling process and to others.
 */
struct gpupart_records_kernel {
	char name[96];			/* "" if the process did not report it */
	uint64_t count;			/* launches that ended */
	uint64_t least_ns, most_ns;	/* total time, two bounds */
	uint64_t longest_ns;		/* an upper bound */
};

struct gpupart_records_watched {
	uint64_t ns;			/* time during which the process was watched */
	uint64_t least_ns, most_ns;	/* time in which launches were outstanding: the union of
					 * their times */
	uint64_t missed;		/* launches whose end was missed; they are not counted
					 * below */
	unsigned int nr_kernels;
	/* Sorted by time, most first. */
	struct gpupart_records_kernel kernels[GPUPART_RECORDS_NR_FUNCTIONS];
};

/*
 * Reads @reader's records into @now and processes the launches that have ended since the last
 * call. Takes up to a millisecond. Make the next call after *pause_us microseconds. -ESRCH: the
 * process has ended; if there was an earlier call, @now holds its last records. -ENOMEM.
 */
int gpupart_records_watch(struct gpupart *gp, struct gpupart_records_reader *reader,
			  struct gpupart_records *now, unsigned int *pause_us);
void gpupart_records_watched(struct gpupart_records_reader *reader,
			     struct gpupart_records_watched *watched);

/*
 * In libgpupart-manage.so.0. Finds out when all launches that began before a change of a
 * process's set have ended. Call gpupart_records_drain() after the change, and then
 * gpupart_records_drained() repeatedly. It returns 1 if no launch with TPCs outside the new set
 * is outstanding, 0 if there is one, -ENODATA with the reason if that cannot be known, and
 * -ESRCH if the process, and with it its launches, has ended. Launches that were not confined
 * to the new set, such as those of a graph that cannot be built again, count as launches from
 * before the change.
 */
void gpupart_records_drain(struct gpupart_records_reader *reader);
int gpupart_records_drained(struct gpupart *gp, struct gpupart_records_reader *reader);

/*
 * Makes the process strict: after the first launch outside its limit, every driver call that
 * launches fails with CUDA error 800 (operation not permitted). With @refuse such calls fail
 * from now on, and so do calls that initialise CUDA or create a context: this is for a process
 * that cannot be confined. -EBUSY: another tool is subscribed to the driver's callbacks.
 * -EOPNOTSUPP: the driver does not report calls of its functions.
 */
int gpupart_strict_start(struct gpupart *gp, bool refuse);

/*
 * In libgpupart-manage.so.0. Selects @nr TPCs of @from in a shape. packed: in the smallest uGPU
 * that holds them; there first in whole GPCs, as far as possible. gpcs: first in whole GPCs of
 * any uGPU, the rest packed. balanced: whole GPCs, the same number of each uGPU. spread: as
 * evenly over GPCs as @from allows, then as evenly over uGPUs; from 4 TPCs on, room for a
 * cluster of GPUPART_PORTABLE_CLUSTER blocks has priority if @from allows it. The same
 * arguments always give the same result. -ENOSPC: @from has no such set; the error sentence
 * says which numbers are possible. -EOPNOTSUPP: the source does not report GPCs or uGPUs.
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
/* Converts the name of a shape. -EINVAL: no such shape; the error sentence lists the names. */
int gpupart_shape_parse(struct gpupart *gp, const char *text, enum gpupart_shape *shape);

/* The state of reading a configuration file line by line. */
#define GPUPART_CONFIG "/etc/gpupart/config"
struct gpupart_config {
	const char *path;
	bool own;		/* true: this user may own the file; false: only root may */
	unsigned int line;
	char *key, *value, *rest;
	char text[4096];	/* part of the struct: the stack of a thread that begins to use
				 * CUDA may be small */
};

/* Prepares to read @path. Does not open it yet. */
static inline void gpupart_config_open(struct gpupart_config *config, const char *path, bool own)
{
	config->path = path;
	config->own = own;
	config->line = 0;
}

/*
 * Reads the next line that has a key. Key and value are valid as long as @config is. Returns 1,
 * 0 after the last line or if there is no such file, or a negative errno. -EPERM: another user
 * could have written the file, which must then be ignored. -EINVAL: a line without a key.
 * -EFBIG: the file has 4096 bytes or more. -EACCES, -EISDIR and so on: it cannot be read.
 */
int gpupart_config_next(struct gpupart *gp, struct gpupart_config *config);

/*
 * Whether /etc/gpupart/config, which belongs to root, has the line "strict = yes": 1 or 0.
 * -EPERM: another user could have written the file, which is then ignored. All other errors
 * count as "strict = yes", because the file may ask for it: -EINVAL for another key or value,
 * -EFBIG, or -EACCES, -EISDIR and so on if it cannot be read.
 */
int gpupart_config_strict(struct gpupart *gp);

/*
 * Whether the result of gpupart_config_strict() makes a process strict. A file that cannot be
 * understood may ask for that, so most errors do.
 */
static inline bool config_is_strict(int found)
{
	return found && found != -EPERM;
}

/*
 * Parses the hexadecimal form: bit i allows TPC i. "0x" and commas between groups are allowed.
 */
int gpupart_tpcset_parse_hex(struct gpupart *gp, const char *text, struct gpupart_tpcset *set);

/* -ENOSPC: @len is too small. GPUPART_TPCSET_STRLEN bytes are always enough. */
int gpupart_tpcset_format_hex(const struct gpupart_tpcset *set, char *text, size_t len);

/*
 * Lists the GPUs of a process, sorted by PCI address: up to @max rows into @list, copies of
 * @process with the pci, source, simulated and limit of one GPU each. Returns the number of
 * GPUs, or -ENOMEM. For a process in another pid namespace that is the one GPU in @process.
 */
int gpupart_process_gpu_list(struct gpupart *gp, const struct gpupart_process *process,
			     struct gpupart_process *list, unsigned int max, size_t size);

#define GPUPART_NR_LATENCIES 512

/* The progress that a process has reported since it began to use the library. */
struct gpupart_progress {
	uint64_t units;
	uint64_t reports;	/* calls of gpupart_progress_add() */
	/* CLOCK_MONOTONIC of the last report of units and of a latency; 0: there was none. */
	uint64_t reported_ns, answered_ns;
	uint64_t launches;	/* as in struct gpupart_counters */
	/* Number of requests by latency; gpupart_latency_least() gives the bounds. */
	uint64_t latencies[GPUPART_NR_LATENCIES];
};

/*
 * The lower bound in ns of what latencies[@place] counts. The bounds are 6 % apart; the last is
 * 32 s.
 */
uint64_t gpupart_latency_least(unsigned int place);

/*
 * Reads the progress of a process. -ESRCH: the process has ended. Each number is consistent by
 * itself, but they may be from different moments.
 */
int gpupart_remote_progress(struct gpupart *gp, const struct gpupart_remote *remote,
			    struct gpupart_progress *progress);

/*
 * Parses a size: a number and an optional unit. K, M, G, T (or KiB, MiB and so on) are powers
 * of 1024; KB, MB and so on are powers of 1000; B is bytes. Case does not matter, and a
 * fraction needs a unit. "20G" is 20 * 2^30. -EINVAL: a syntax error, 0 bytes, or more than
 * 2^60.
 */
int gpupart_memory_parse(struct gpupart *gp, const char *text, uint64_t *bytes);

/*
 * A process under `gpupart stat`: the values that its records do not contain. The command reads
 * the records separately.
 */
enum gpupart_stat_direction {
	GPUPART_STAT_TO_GPU,
	GPUPART_STAT_FROM_GPU,
	GPUPART_STAT_INSIDE,	/* within one GPU's memory */
	GPUPART_STAT_OTHER,	/* unknown from the function's name */
	GPUPART_STAT_NR_DIRECTIONS,
};

#define GPUPART_STAT_MAX_GPUS	16
#define GPUPART_STAT_MAX_PROCESSES 64

struct gpupart_stat_process {
	uint64_t pid;
	char name[16];
	uint64_t copies[GPUPART_STAT_NR_DIRECTIONS], bytes[GPUPART_STAT_NR_DIRECTIONS];
	uint64_t waits;		/* calls in which the CPU waits, including those of copies */
	uint64_t wait_ns;	/* time in these calls, all threads together */
	uint64_t nr_gpus;	/* 0: the process cannot be measured */
	char pci[GPUPART_STAT_MAX_GPUS][20];	/* for gpupart_records_open() */
};

struct gpupart_stat;

/*
 * Opens a measurement, which gpupart_stat_close() ends; processes register in it. Put @id into
 * the environment variable GPUPART_STAT. It is valid for processes of this user and pid
 * namespace while the caller lives.
 */
int gpupart_stat_open(struct gpupart *gp, struct gpupart_stat **stat, const char **id);
void gpupart_stat_close(struct gpupart_stat *stat);

/*
 * Reads the values of process number @n (from 0) so far. -ENOENT: after the last. -EAGAIN: the
 * process is about to start. For a running process each value is consistent by itself. Any
 * thread may call it.
 */
int gpupart_stat_get(const struct gpupart_stat *stat, unsigned int n,
		     struct gpupart_stat_process *process);

/* Tells process number @n that its records are open, so that it can stop waiting for that. */
void gpupart_stat_seen(const struct gpupart_stat *stat, unsigned int n);

/* The number of processes for which there was no room. */
unsigned int gpupart_stat_lost(const struct gpupart_stat *stat);

/*
 * Registers the calling process in the measurement @id. For the library that the driver loads
 * at cuInit, after gpupart_process_publish() and gpupart_attach_early(). Waits for
 * gpupart_stat_seen(), at most 2 s. -EOPNOTSUPP: the driver does not report calls of its
 * functions. -EINVAL, -ENOENT and so on: @id cannot be used. -ENOSPC: there is no room.
 */
int gpupart_stat_start(struct gpupart *gp, const char *id);

#pragma GCC visibility pop

#endif
