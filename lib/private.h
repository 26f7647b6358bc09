/* SPDX-License-Identifier: MIT */
/*
 * Functions of libgpupart that are not in its public headers. They are for gpupart's own
 * programs of the same build, which are the command, the injected library, Slurm's plugin and
 * libsmctrl. The functions are exported as GPUPART_PRIVATE and change without notice.
 */
#ifndef GPUPART_LIB_PRIVATE_H
#define GPUPART_LIB_PRIVATE_H

#include <errno.h>
#include <string.h>
#include <gpupart_manage.h>

/*
 * Returns item number @n of @list, counted from 0, and its length in *len. The items are
 * separated by @separator. Returns NULL if @list has no such item.
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
 * Attaches a GPU. The caller is a library that the driver loads at cuInit. The function makes no
 * launch and creates no CUDA context, so the mask bits must already have been checked. The
 * result of that check is in this user's cache, or another process passes it in @key, which may
 * be NULL. @key is the key in that process's struct gpupart_check. The key ends with
 * GPUPART_KEY_RECORDS if that process also proved that the GPU writes completion records. Stream
 * sets work only after a later call of gpupart_attach(). -EOPNOTSUPP: the mask bits were not
 * checked.
 */
#define GPUPART_KEY_LEN 16
#define GPUPART_KEY_RECORDS "1"
int gpupart_attach_early(struct gpupart *gp, const char *gpu, const char *key,
			 struct gpupart_gpu **attached);

/*
 * Returns true if an attach of this process failed because the driver's launch callback is
 * missing or has an unknown form.
 */
bool gpupart_callback_unusable(void);

/*
 * In libgpupart-manage.so.0. Makes later calls of gpupart_attach() in this process learn mask
 * bits. If the formula of a TMD layout is wrong for a GPU, gpupart_attach() finds the mask bits
 * by launches, proves them and stores them in this user's cache. If it cannot store the bits,
 * gpupart_attach() fails with the reason. *@nr_launches is incremented for each of these
 * launches. Call this function before other threads attach a GPU.
 */
void gpupart_learn(unsigned int *nr_launches);

/*
 * The results of sampling the state of an engine. A TSG is a time slice group of the driver;
 * each process has one or more TSGs on the runlist.
 */
#define GPUPART_ENGINE_MAX_TSGS 32
#define GPUPART_MAX_ENGINES 96

struct gpupart_engine_tsg {
	unsigned int tsg, samples;
	int channel;			/* the channel in the latest sample of this TSG; -1: none */
};

struct gpupart_engine_use {
	char name[48];			/* "" if the type has no name */
	unsigned int runlist;		/* pri-base of its runlist */
	unsigned int id;		/* number of the runlist in a work-submit token */
	unsigned int type, instance;
	/* Total number of samples. This number includes the samples in the next three members. */
	unsigned int samples;
	/* @others is the number of samples of TSGs for which @tsgs has no room. */
	unsigned int idle, switching, others;
	unsigned int nr_tsgs;
	struct gpupart_engine_tsg tsgs[GPUPART_ENGINE_MAX_TSGS];	/* sorted by samples, most
									 * first */
};

/*
 * In libgpupart-manage.so.0. Samples the engines of a GPU for @seconds seconds, 1000 times per
 * second if the source is fast enough. Each sample includes the graphics runlist and one of the
 * other runlists, in turn. @source is "kernel" (the module), "rm" (NVIDIA's driver), the path of
 * a file with recorded registers, or NULL. If @source is NULL, the function tries "kernel" and
 * then "rm". Both sources need root. The function sets the members pci and source of @info and
 * returns the number of engines in @list. If @begun is not NULL, the function calls
 * @begun(@user) after the first sample. At that time @info is set, and the GPU is not asleep.
 */
int gpupart_engine_uses(struct gpupart *gp, const char *gpu, const char *source, double seconds,
			void (*begun)(void *user), void *user, struct gpupart_gpu_info *info,
			struct gpupart_engine_use list[GPUPART_MAX_ENGINES]);

/*
 * In libgpupart-manage.so.0. Returns the pid of the process that owns all user TSGs on the
 * graphics engine of the GPU at @pci. Returns 0 if several processes own TSGs, if no process
 * does, or if the owner is unknown. The function queries NVIDIA's driver, and this query may
 * hang. It works only in the machine's initial pid namespace, where no process is hidden.
 */
int gpupart_engine_owner(struct gpupart *gp, const char *pci);

/*
 * Returns the compute class that the driver or the capture reports, for example 0xcbc0 for
 * GH100, or 0 if it is unknown.
 */
unsigned int gpupart_topology_compute_class(const struct gpupart_topology *topo);

/*
 * The id of the grant of a container. This grant limits all users in the container. No other
 * grant has this id.
 */
#define GPUPART_GRANT_CONTAINER "0-0"

/*
 * Writes a new grant or replaces an existing one. The write is atomic, even if the caller dies
 * during the call. If a caller first reads the existing grants and then writes a new one, it
 * must hold a lock against other such callers, because this function takes no lock. @folder is
 * the directory of grants; NULL means the machine's directory. The grants of a container are in
 * another @folder, which the container mounts read-only at the path of the machine's directory.
 * In such a container the grant also limits root.
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
 * Removes a grant. Returns 0 even if the grant does not exist. -EINVAL: @id is not the id of a
 * grant. -EACCES and so on: the caller is not root.
 */
int gpupart_grant_drop(struct gpupart *gp, const char *id);

/*
 * Returns true if no grant limits user @uid, because this is the machine's root. User 0 of a
 * user namespace that does not map the machine's root is limited like other users. A caller that
 * can only read the directory of grants is limited too.
 */
bool gpupart_grant_exempts(unsigned int uid);

/*
 * A report for `gpupart run`. It lists the processes of the run that used CUDA. It also lists
 * launches that ran outside the run's limit. Such a launch ran on TPCs that the limit does not
 * allow, or on another GPU.
 */
#define GPUPART_REPORT_NR_KERNELS 16

/*
 * Reasons why a launch was outside the limit. Each reason belongs to a counter of struct
 * gpupart_counters. The reasons and the counters have the same order.
 */
enum gpupart_outside {
	GPUPART_OUTSIDE_DRIVER = 2,
	GPUPART_OUTSIDE_CLUSTER,
	GPUPART_OUTSIDE_COOPERATIVE,
	GPUPART_OUTSIDE_VERSION,
	GPUPART_OUTSIDE_MAP,
	GPUPART_OUTSIDE_GPU,
	/*
	 * An entry with this value does not count launches. @count is the number of modules with
	 * this kernel that were refused because of GPUPART_NO_DEVICE_LAUNCH=1.
	 */
	GPUPART_REFUSED_MODULE,
};

struct gpupart_report_kernel {
	char name[160];		/* the name in the driver; "" if unknown */
	unsigned int outside;	/* enum gpupart_outside */
	uint64_t count;		/* number of launches; a graph node is counted when it is built */
	unsigned int cluster;	/* blocks in one cluster, or 0 */
	unsigned int nr_tpcs;	/* number of TPCs of the first such launch; 0: unknown */
	/* The limit that applied to this launch; empty: unknown. */
	struct gpupart_tpcset limit;
};

enum gpupart_report_state {
	/* The process began to use CUDA and is not confined, for the reason in @why. */
	GPUPART_REPORT_BEGUN,
	GPUPART_REPORT_CONFINED,	/* confined on the GPU at @pci */
	GPUPART_REPORT_REFUSED,	/* strict: calls of the driver fail, for the reason in @why */
	GPUPART_REPORT_NOT_REFUSED,	/* strict, but its calls of the driver cannot be made to
					 * fail */
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
	/* Number of launches outside the limit by kernels that have no entry. */
	uint64_t others;
};

struct gpupart_report;

/*
 * Opens a report, which exists until the calling process ends. Put @id into the environment
 * variable GPUPART_REPORT of the program. Processes of this user can use the id while the caller
 * lives. The report has room for 256 processes; a process that has ended needs room only if it
 * reported something.
 */
int gpupart_report_open(struct gpupart *gp, struct gpupart_report **report, const char **id);

/*
 * Reads the report of process number @n, counted from 0, in its current state. -ENOENT: the
 * report has at most @n processes. The process writes these values itself, so they may be false.
 * All strings are printable ASCII. Any thread may call this function.
 */
int gpupart_report_get(const struct gpupart_report *report, unsigned int n,
		       struct gpupart_report_process *process);

/*
 * Returns the number of processes for which the report had no room. *nr_refused is the number of
 * these processes that are strict and therefore could not use CUDA.
 */
unsigned int gpupart_report_lost(const struct gpupart_report *report, unsigned int *nr_refused);

/*
 * Starts to report the calling process's use of CUDA in the report @id. The library that the
 * driver loads at cuInit calls this function before gpupart_attach_early(). If the call fails,
 * or if @id is NULL, the process keeps its report in its own memory. -EINVAL, -ENOENT and so on:
 * @id cannot be used. -ENOSPC: the report is full.
 */
int gpupart_report_start(struct gpupart *gp, const char *id);

/*
 * In libgpupart-manage.so.0. Sets bounds for the outstanding launches of a run. Lending between
 * runs requires these bounds. The processes of the run read the bounds in their report. Call
 * this function before the program starts. While the program runs, only the run's watcher may
 * call this function again, to change the bounds. In each process of the run, the outstanding
 * launches together take at most @depth_ns nanoseconds, and the outstanding launches that use
 * lent TPCs at most @limit_ns nanoseconds. This applies to launches whose times are known. If
 * @limit_ns is 0, no launch may use lent TPCs.
 */
void gpupart_lend_bound(struct gpupart_report *report, uint64_t depth_ns, uint64_t limit_ns);

/*
 * The results of lending. @lent: the number of launches that used lent TPCs. @revoked: the
 * number of kernels that may no longer use lent TPCs. @waited: the number of launches that
 * waited because of a bound. @expired: the number of these waits that timed out. @unbounded: the
 * number of launches without a record, to which no bound applies.
 */
struct gpupart_lend_counts {
	uint64_t lent, revoked, waited, expired, unbounded;
};

/*
 * Stores the name of the lender's job in the report of a borrower, for gpupart_lending_get(). If
 * the lender has several borrowers, the length of a borrower's turns is proportional to @weight,
 * which is 1 or more. Call this before the program starts.
 */
void gpupart_lend_name(struct gpupart_report *report, const char *job, unsigned int weight);

/* What the processes of a run may borrow. The run writes these values itself. */
struct gpupart_lending {
	char lender[64];	/* the lender's job, printable ASCII; "": the run does not borrow */
	char pci[20];		/* the GPU of @tpcs */
	/*
	 * TPCs that may be borrowed while the lender is idle; empty: none at present, for
	 * example because the run's watcher was killed
	 */
	struct gpupart_tpcset tpcs;
	uint64_t depth_ns, limit_ns;	/* see gpupart_lend_bound(); 0: no bound */
	struct gpupart_lend_counts counts;
	unsigned int nr_borrowers;	/* runs that may borrow TPCs of this run now */
};

/*
 * Reads the state of lending from the report @id, the value of GPUPART_REPORT of a process.
 * -EPROTO, -EINVAL, -ENOENT and so on: @id is not a report of this version.
 */
int gpupart_lending_get(struct gpupart *gp, const char *id, struct gpupart_lending *lending);

/*
 * Makes the run of @report a borrower of TPCs on the GPU at @pci. The TPCs belong to the lender,
 * which is the @nr processes with the pids @pids. @id is the report of these processes. The run
 * may use these TPCs if the latest call of gpupart_lender_update() found the lender idle. A TPC is
 * lent only if it is in @within, in the current set of the job in the caller's environment, and
 * in this user's grants. A NULL @within allows all TPCs. Only one thread may use the object, and
 * a run has only one lender at a time. Several borrowers of a lender take turns. -EBUSY: the
 * lender's processes borrow TPCs themselves. -EINVAL: the lender's processes have no set.
 * -EPERM: the limits allow none of their TPCs. -ENOSPC: the lender has too many borrowers. Other
 * errors are those of gpupart_remote_open() and gpupart_records_open().
 */
#define GPUPART_LENDER_MAX 16	/* processes */
struct gpupart_lender;
int gpupart_lender_open(struct gpupart *gp, struct gpupart_report *report, const char *id,
			const char *pci, const int *pids, unsigned int nr,
			const struct gpupart_tpcset *within, struct gpupart_lender **lender);

/*
 * Checks whether the lender is idle. Call this function repeatedly, because a result is valid
 * for at most 50 ms. Returns 1 if the lender's processes are idle and it is this borrower's
 * turn, and 0 otherwise.
 * -EAGAIN: the processes or their TPCs have changed; open the lender again. -EBUSY, -ESRCH,
 * -EINVAL, -EPERM: the processes cannot lend TPCs.
 */
int gpupart_lender_update(struct gpupart *gp, struct gpupart_lender *lender);

void gpupart_lender_close(struct gpupart_lender *lender);

/*
 * Makes the process of @remote write the start of each launch into the report of its run, where
 * other processes can read it.
 */
void gpupart_remote_lends(struct gpupart_remote *remote);

/*
 * Finds the kernel names that are still missing in the report. This function is called when the
 * process ends normally. Returns the report if it is in this process's own memory, and NULL if
 * it is in the memory of a run.
 */
const struct gpupart_report_process *gpupart_report_end(void);

/*
 * Returns 0 if a tool that subscribes to the driver after this call will get its callbacks.
 * GPUPART_PROFILE=1 or the option profilers of gpupart_attach() requests this. -ENOENT: this was
 * not requested, or no GPU is attached. -EACCES: the library cannot pass callbacks to tools; the
 * error message gives the reason. Any thread may call this function.
 */
int gpupart_profilers(struct gpupart *gp);

/* Writes to @why the reason why launches on @gpu have no records, or "" if they have records. */
void gpupart_records_lack(const struct gpupart_gpu *gpu, char *why, size_t len);

/*
 * In libgpupart-manage.so.0. The recorded launches of a process, which may be the calling
 * process or another one. The list starts at the first call of gpupart_records_watch(), or at
 * the first launch if the process had no records at that call. The list ends at the call before
 * the last one, or at the end of the process. The time of a launch is measured from its
 * submission, or from the end of the previous launch on its stream, to its own end. The offset
 * between the clocks of the CPU and the GPU is known only within two bounds. So the time of a
 * launch is also known only within a lower and an upper bound.
 */
struct gpupart_records_kernel {
	char name[96];			/* "" if the process did not report it */
	uint64_t count;			/* number of launches that ended */
	uint64_t least_ns, most_ns;	/* lower and upper bound of their total time */
	uint64_t longest_ns;		/* upper bound of the longest time of one launch */
};

struct gpupart_records_watched {
	uint64_t ns;			/* time during which the process was watched */
	/* Lower and upper bound of the time in which at least one launch was outstanding. */
	uint64_t least_ns, most_ns;
	/* Number of launches whose end was missed; they are not in @kernels. */
	uint64_t missed;
	unsigned int nr_kernels;
	/* Sorted by time, most first. */
	struct gpupart_records_kernel kernels[GPUPART_RECORDS_NR_FUNCTIONS];
};

/*
 * Reads the records of @reader into @now and processes the launches that have ended since the
 * last call. The call takes up to a millisecond. The caller should make the next call after
 * *pause_us microseconds. -ESRCH: the process has ended; if there was an earlier call, @now
 * contains the last records of the process. -ENOMEM.
 */
int gpupart_records_watch(struct gpupart *gp, struct gpupart_records_reader *reader,
			  struct gpupart_records *now, unsigned int *pause_us);
void gpupart_records_watched(struct gpupart_records_reader *reader,
			     struct gpupart_records_watched *watched);

/*
 * In libgpupart-manage.so.0. Finds out when all launches that began before a change of a
 * process's set have ended. Call gpupart_records_drain() after the change, and then
 * gpupart_records_drained() repeatedly. gpupart_records_drained() returns 1 if no outstanding
 * launch can use TPCs outside the new set, and 0 if there is such a launch. It returns -ENODATA,
 * with the reason in the error message, if the library cannot know this. It returns -ESRCH if
 * the process has ended, because its launches have then ended too. Some launches after the
 * change can use TPCs outside the new set, for example launches of a graph that cannot be built
 * again. The functions treat such launches like launches before the change.
 */
void gpupart_records_drain(struct gpupart_records_reader *reader);
int gpupart_records_drained(struct gpupart *gp, struct gpupart_records_reader *reader);

/*
 * Makes the process strict: after the first launch outside its limit, all launch functions of
 * the driver fail with CUDA error 800 (operation not permitted). If @refuse is true, the launch
 * functions fail from this call on, and so do the functions that initialise CUDA or create a
 * context. @refuse is for a process that cannot be confined. -EBUSY: another tool is subscribed
 * to the driver's callbacks. -EOPNOTSUPP: the driver does not report calls of its functions.
 */
int gpupart_strict_start(struct gpupart *gp, bool refuse);

/*
 * In libgpupart-manage.so.0. Selects @nr TPCs of @from, so that the set has the shape @shape.
 * "packed" selects TPCs in the smallest uGPU that has enough TPCs. In this uGPU, it first
 * selects as many whole GPCs as possible. "gpcs" first selects whole GPCs of any uGPU, and then
 * selects the rest as "packed" does. "balanced" selects the same number of whole GPCs in each
 * uGPU. "spread" distributes the TPCs as evenly over GPCs as @from allows, and then as evenly as
 * possible over uGPUs. If @nr is at least 4 and @from allows it, the set of "spread" has room
 * for a cluster of GPUPART_PORTABLE_CLUSTER blocks, even if the TPCs are then less evenly
 * distributed. The same arguments always give the same result. -ENOSPC: @from has no such set.
 * The error message gives the numbers of TPCs that are possible. -EOPNOTSUPP: the source does
 * not report uGPUs.
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
/*
 * Converts the name of a shape to its value. -EINVAL: there is no such shape; the error message
 * lists the names.
 */
int gpupart_shape_parse(struct gpupart *gp, const char *text, enum gpupart_shape *shape);

/* The state of reading a configuration file line by line. */
#define GPUPART_CONFIG "/etc/gpupart/config"
struct gpupart_config {
	const char *path;
	bool own;		/* true: this user may own the file; false: only root may */
	unsigned int line;
	char *key, *value, *rest;
	size_t keys_len;	/* bytes at the start of text[] that contain the keys so far */
	char text[4096];	/* not on the stack, because a thread that begins to use CUDA may
				 * have a small stack */
};

/* Prepares to read @path. Does not open it yet. */
static inline void gpupart_config_open(struct gpupart_config *config, const char *path, bool own)
{
	config->path = path;
	config->own = own;
	config->line = 0;
	config->keys_len = 0;
}

/*
 * Reads the next line that has a key. The key and the value are valid as long as @config exists.
 * Returns 1 if the function read a line. Returns 0 if there is no further line or no such file,
 * or a negative errno. -EPERM: another user could have written the file, so the caller must
 * ignore the file. -EINVAL: a line has no key, or the key of an earlier line. -EFBIG: the file
 * has 4096 bytes or more. -EACCES, -EISDIR and so on: the file cannot be read.
 */
int gpupart_config_next(struct gpupart *gp, struct gpupart_config *config);

/*
 * Returns 1 if /etc/gpupart/config, which belongs to root, has the line "strict = yes".
 * Otherwise returns 0. -EPERM: another user could have written the file, so the caller must
 * ignore the file. All other errors mean that the file may contain "strict = yes", so the caller
 * must treat the process as strict. -EINVAL: the file has another key or value. -EFBIG: the file
 * is too large. -EACCES, -EISDIR and so on: the file cannot be read.
 */
int gpupart_config_strict(struct gpupart *gp);

/*
 * Returns true if @found, the result of gpupart_config_strict(), makes a process strict. Most
 * errors make the process strict, because a file that cannot be read or parsed may contain
 * "strict = yes".
 */
static inline bool config_is_strict(int found)
{
	return found && found != -EPERM;
}

/*
 * Parses the hexadecimal form of a set. In this form bit i allows TPC i. "0x" and commas between
 * groups are allowed.
 */
int gpupart_tpcset_parse_hex(struct gpupart *gp, const char *text, struct gpupart_tpcset *set);

/*
 * Writes the hexadecimal form of @set. -ENOSPC: @len is too small. GPUPART_TPCSET_STRLEN bytes
 * are always enough.
 */
int gpupart_tpcset_format_hex(const struct gpupart_tpcset *set, char *text, size_t len);

/*
 * Lists the GPUs of a process, sorted by PCI address, and writes at most @max rows to @list.
 * Each row is a copy of @process in which the members pci, source, simulated and limit are those
 * of one GPU. Returns the number of GPUs, or -ENOMEM. For a process in another pid namespace,
 * the list has only the GPU in @process.
 */
int gpupart_process_gpu_list(struct gpupart *gp, const struct gpupart_process *process,
			     struct gpupart_process *list, unsigned int max, size_t size);

#define GPUPART_NR_LATENCIES 512

/* The progress that a process has reported since it began to use the library. */
struct gpupart_progress {
	uint64_t units;
	uint64_t reports;	/* calls of gpupart_progress_add() */
	/*
	 * Time of the last report of units, and time of the last report of a latency, by
	 * CLOCK_MONOTONIC. 0 means that there was no such report.
	 */
	uint64_t reported_ns, answered_ns;
	uint64_t launches;	/* as in struct gpupart_counters */
	/*
	 * Number of requests in each class of latency. gpupart_latency_least() returns the lower
	 * bound of a class.
	 */
	uint64_t latencies[GPUPART_NR_LATENCIES];
};

/*
 * Returns the lower bound, in ns, of the latencies that latencies[@place] counts. Each bound is
 * 6 % larger than the bound before it. The last bound is 32 s.
 */
uint64_t gpupart_latency_least(unsigned int place);

/*
 * Reads the progress of a process. -ESRCH: the process has ended. Each number is consistent, but
 * different numbers may be from different moments.
 */
int gpupart_remote_progress(struct gpupart *gp, const struct gpupart_remote *remote,
			    struct gpupart_progress *progress);

/*
 * Parses a size, which is a number with an optional unit. K, M, G, T (or KiB, MiB and so on) are
 * powers of 1024; KB, MB and so on are powers of 1000; B is bytes. Units can be in upper or
 * lower case. A fraction needs a unit. "20G" is 20 * 2^30. -EINVAL: a syntax error, 0 bytes, or
 * more than 2^60.
 */
int gpupart_memory_parse(struct gpupart *gp, const char *text, uint64_t *bytes);

/*
 * Values that `gpupart stat` measures in a process in addition to the records of the process.
 * The command reads the records separately.
 */
enum gpupart_stat_direction {
	GPUPART_STAT_TO_GPU,
	GPUPART_STAT_FROM_GPU,
	GPUPART_STAT_INSIDE,	/* within one GPU's memory */
	GPUPART_STAT_OTHER,	/* the function's name does not give the direction */
	GPUPART_STAT_NR_DIRECTIONS,
};

#define GPUPART_STAT_MAX_GPUS	16
#define GPUPART_STAT_MAX_PROCESSES 64

struct gpupart_stat_process {
	uint64_t pid;
	char name[16];
	uint64_t copies[GPUPART_STAT_NR_DIRECTIONS], bytes[GPUPART_STAT_NR_DIRECTIONS];
	uint64_t waits;		/* calls in which the CPU waits, including copy calls */
	uint64_t wait_ns;	/* time of all threads in these calls */
	uint64_t nr_gpus;	/* 0: the process cannot be measured */
	char pci[GPUPART_STAT_MAX_GPUS][20];	/* for gpupart_records_open() */
};

struct gpupart_stat;

/*
 * Opens a measurement in which processes can register. gpupart_stat_close() ends the
 * measurement. Put @id into the environment variable GPUPART_STAT. The id is valid for processes
 * of this user and pid namespace while the caller lives.
 */
int gpupart_stat_open(struct gpupart *gp, struct gpupart_stat **stat, const char **id);
void gpupart_stat_close(struct gpupart_stat *stat);

/*
 * Reads the current values of process number @n, counted from 0. -ENOENT: the measurement has at
 * most @n processes. -EAGAIN: the process is about to start. If the process is running, each
 * value is consistent, but different values may be from different moments. Any thread may call
 * this function.
 */
int gpupart_stat_get(const struct gpupart_stat *stat, unsigned int n,
		     struct gpupart_stat_process *process);

/*
 * Signals to process number @n that its records are open. The process then stops waiting in
 * gpupart_stat_start().
 */
void gpupart_stat_seen(const struct gpupart_stat *stat, unsigned int n);

/* Returns the number of processes for which the measurement had no room. */
unsigned int gpupart_stat_lost(const struct gpupart_stat *stat);

/*
 * Registers the calling process in the measurement @id. The library that the driver loads at
 * cuInit calls this function after gpupart_process_publish() and gpupart_attach_early(). The
 * function waits at most 2 s for gpupart_stat_seen(). -EOPNOTSUPP: the driver does not report
 * calls of its functions. -EINVAL, -ENOENT and so on: @id cannot be used. -ENOSPC: the
 * measurement has no room for another process.
 */
int gpupart_stat_start(struct gpupart *gp, const char *id);

#pragma GCC visibility pop

#endif
