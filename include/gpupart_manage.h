/* SPDX-License-Identifier: MIT */
/*
 * libgpupart for programs that manage GPUs: plans, other processes and jobs, grants of a
 * scheduler, tenants and their memory, and the proof that sets confine launches. The rules of
 * gpupart.h for index spaces, errors, pointers and threads apply here too.
 *
 * Lists. A function that fills an array takes the number of rows that the array has room for,
 * and the size of a row, sizeof(*list) in the caller. If the library's struct is longer, only
 * its beginning is filled in; if it is shorter, the rest of each row is set to 0. The function
 * returns the number of rows that exist, which may be larger than the array, or a negative
 * errno: -EINVAL for a row size of 0 or above 64 KiB, or -ENOMEM.
 */
#ifndef GPUPART_MANAGE_H
#define GPUPART_MANAGE_H

#include <gpupart.h>

#ifdef __cplusplus
extern "C" {
#endif

#pragma GCC visibility push(default)

/* ---------------------------------------------------------------- topologies */

/*
 * Opens the topology of a GPU.
 *
 * @source: "kernel" (gpupart.ko), "rm" (NVIDIA's driver, needs no privilege), "sample:NAME" (a
 * capture that is installed with gpupart), the path of a capture, or NULL. NULL tries kernel,
 * then rm; kernel then reads the virtual GPCs from rm.
 * @gpu: an index in PCI order ("0"), an address or a UUID; NULL is the first GPU. A capture
 * holds one GPU: for a capture @gpu must match it or be NULL.
 *
 * The caller must close the object. -ENODEV: no such GPU. -ENOENT: no such file. -EACCES.
 * -EBADMSG: the capture is truncated or was changed; the error sentence gives the line.
 * -EOPNOTSUPP: the driver or the chip is unknown.
 */
int gpupart_topology_open(struct gpupart *gp, const char *source, const char *gpu,
			  struct gpupart_topology **topo);
void gpupart_topology_close(struct gpupart_topology *topo);

/* The number of uGPUs; 0 if the source does not report them. */
unsigned int gpupart_topology_nr_ugpus(const struct gpupart_topology *topo);
/* The largest virtual GPC number plus 1; numbers below may have no TPC. 0 if unknown. */
unsigned int gpupart_topology_end_vgpc(const struct gpupart_topology *topo);
/* The logical TPC that owns @smid, or -1. */
int gpupart_topology_sm_tpc(const struct gpupart_topology *topo, unsigned int smid);

/* The set of one uGPU or virtual GPC; empty if it does not exist. */
struct gpupart_tpcset gpupart_topology_ugpu(const struct gpupart_topology *topo, unsigned int ugpu);
struct gpupart_tpcset gpupart_topology_vgpc(const struct gpupart_topology *topo, unsigned int vgpc);

/*
 * Returns 0 if @set is valid for @topo. -EINVAL: @set is empty or has a TPC that does not
 * exist; the error sentence gives its number.
 */
int gpupart_set_check(struct gpupart *gp, const struct gpupart_topology *topo,
		      const struct gpupart_tpcset *set);

/*
 * Selects @nr TPCs that can hold a cluster of @cluster blocks: all TPCs of @keep (may be empty)
 * and the rest from @from, as many as possible of those in @prefer (may be empty). The same
 * arguments always give the same result. -ENOSPC: no such TPCs exist; *set is unchanged.
 */
int gpupart_set_pick(const struct gpupart_topology *topo, unsigned int cluster,
		     const struct gpupart_tpcset *keep, const struct gpupart_tpcset *prefer,
		     const struct gpupart_tpcset *from, unsigned int nr,
		     struct gpupart_tpcset *set);

/*
 * Lists the GPUs that @source (as in gpupart_topology_open()) reports, in PCI order: up to @max
 * of them into @list. Returns the number of GPUs. -EINVAL: @source is a capture. Other errors
 * are those of gpupart_topology_open().
 */
int gpupart_gpu_list(struct gpupart *gp, const char *source, struct gpupart_gpu_info *list,
		     unsigned int max, size_t size);

/*
 * A hash of the ids and the membership of TPCs. It is equal for two topologies whose TPCs are
 * in the same GPCs, virtual GPCs and uGPUs and own the same SMs.
 */
uint64_t gpupart_topology_hash(const struct gpupart_topology *topo);

/*
 * Whether two sources agree about one GPU, as far as both report it: the GPC, virtual GPC, CPC
 * and uGPU of each TPC, the SMs that it owns, and the TPCs of each GPC that the fuses enable.
 * tpc_in_gpc is not compared, because sources number it differently.
 */
bool gpupart_topology_agree(const struct gpupart_topology *a, const struct gpupart_topology *b);

/*
 * Writes @topo as a capture: a text format with a checksum, which gpupart_topology_open()
 * reads. @captured_by becomes part of it and may be NULL. The caller must free *text with
 * free(). -ENOMEM. -EINVAL: a string contains characters that a capture cannot hold.
 */
int gpupart_topology_capture(struct gpupart *gp, const struct gpupart_topology *topo,
			     const char *captured_by, char **text);

/* --------------------------------------------------------------------- plans */

#define GPUPART_PLAN_MAX_TENANTS 16

/*
 * The demand of one tenant. A demand with only a name asks for at least one TPC and accepts all
 * of them.
 */
struct gpupart_demand {
	const char *name;	/* 1 to 63 characters from A-Z a-z 0-9 . _ -, not starting with
				 * '-' */
	unsigned int min_tpcs;	/* minimum; 0 means 1 */
	unsigned int max_tpcs;	/* maximum; 0 means unlimited */
	bool gpcs;		/* whole GPCs, not shared with other tenants */
	/*
	 * True: spread over GPCs, for speed; false: packed, for isolation. With @gpcs: the same
	 * number of GPCs of each uGPU.
	 */
	bool spread;
	unsigned int cluster;	/* size in blocks of the largest cluster it launches; 0: none */
	unsigned int weight;	/* of its share, 1 to 1000; 0 means 1 */
	const char *same;	/* tenants, joined by '+', that must share its uGPU; may be NULL */
	const char *apart;	/* tenants that must have no TPC of its uGPU; may be NULL */
};

struct gpupart_plan_tenant {
	char name[64];
	struct gpupart_tpcset set;
	int ugpu;		/* the uGPU that same or apart bound it to; -1: none */
};

struct gpupart_plan {
	uint64_t topology_hash;	/* gpupart_topology_hash() of the topology that was planned */
	bool optimal;		/* always true for a plan that was made: proven to be the best,
				 * see below */
	unsigned int nr_steps;	/* steps that the search took */
	unsigned int nr_tenants;
	struct gpupart_plan_tenant tenants[GPUPART_PLAN_MAX_TENANTS];	/* in the order of the
									 * demands */
};

/*
 * Makes disjoint sets for @nr tenants (1 to 16) out of @within (NULL: all TPCs). The result
 * depends only on the topology and the demands, not on the order of the demands.
 *
 * Every plan meets these demands. Each tenant has at least its minimum and at most its maximum
 * of TPCs. A tenant that asks for whole GPCs gets whole GPCs, and no other tenant has a TPC of
 * them; if it asks for them spread, it gets the same number of each uGPU. Tenants that are
 * joined by `same` are all in one uGPU, and a tenant in `apart` is in another one. A tenant
 * that launches clusters of N blocks has a reserved place for one, a cluster slot: N / 2 TPCs
 * (with two SMs per TPC) in the largest virtual GPC of one of its GPCs, so that each block of
 * the cluster finds an SM. N is rounded up to a power of two, so 6 blocks need the room of 8. A
 * singleton only has room for its own SMs. If the source does not report virtual GPCs, GPCs are
 * used instead.
 *
 * The best of these plans is chosen as follows. Tenants have a rank: tenants that ask for whole
 * GPCs, then packed tenants, then spread tenants; among these larger weight, then larger
 * minimum, then larger cluster, then name. The criteria below are applied one after the other,
 * and each criterion tenant by tenant in the order of rank. Each value is the best that the
 * values before it allow, among the plans that meet all demands. So no other plan is better in
 * one criterion without being worse in an earlier one.
 * 1. The uGPU of tenants that are bound to one; tenants joined by `same` together. The uGPU
 * with the most TPCs that are not needed for minimums, then the one with the lowest number.
 * 2. Whole GPCs. Let d be the difference between the tenant's TPCs and its fair share of the
 * TPCs that are left, and u the number of uGPUs it uses. The smallest 2d + (u - 1) * (TPCs of
 * the GPU's largest GPC), then fewer uGPUs, then more TPCs, then the GPCs that are first in the
 * tenant's order.
 * 3. The number of TPCs of the other tenants. After the minimums, TPCs are assigned one at a
 * time, each to the tenant that has the fewest for its weight and can still use one: max-min
 * fairness by weight. (A fair share in 2. is computed in the same way, ignoring GPCs and
 * cluster slots.)
 * 4. Cluster slots of more than one TPC of the other tenants. The GPC with the fewest cluster
 * slots, then the first in the tenant's order.
 * 5. Sets of the other tenants. For a packed tenant: the fewest tenants in its GPCs other than
 * that of its cluster slot (reserved cluster slots count, and TPCs outside @within count as one
 * more tenant), then the fewest uGPUs, then the fewest GPCs, then the GPCs that are first in
 * its order. It fills its cluster slot's GPC first, and then these GPCs one after the other.
 * For a spread tenant: the fewest TPCs in GPCs of packed tenants, then the most even
 * distribution over the other GPCs, with more TPCs in those that are first in its order.
 *
 * A tenant's order of GPCs: the GPCs of uGPUs in which the fewest tenants have TPCs at that
 * point, then by uGPU number, then by GPC number. In a GPC, tenants with a cluster slot get its
 * lowest TPCs in the virtual GPC. The other tenants get the lowest TPCs that are left: tenants
 * that launch clusters first from inside the virtual GPC, the others first from outside.
 *
 * Any kernel may launch clusters of GPUPART_PORTABLE_CLUSTER blocks. If a tenant's set has
 * enough TPCs for such a cluster but cannot hold one, the plan is made again with a cluster
 * slot for this tenant, and for the tenants of higher rank whose sets hold one, as if their
 * demands had asked for it (ranks do not change). This is done for one tenant after the other,
 * in the order of rank. If no such plan exists, the plan without it is used;
 * gpupart_set_cluster() tells which sets hold no cluster.
 *
 * -EINVAL: a demand contradicts itself (for example GPCs of each uGPU for a tenant that is
 * bound to one uGPU) or names a tenant that does not exist. -EOPNOTSUPP: the source does not
 * report GPCs, or the uGPUs that a demand needs. -ENOSPC: a demand cannot be met. The error
 * sentence names the tenant and changes that would make a plan possible; each of these was
 * planned, and changes that take too long to plan are left out. -E2BIG: not decided within 100
 * million steps, which take about half a second. A plan that is not the best is never returned.
 *
 * On GPUs with up to 12 GPCs a call takes a few milliseconds, whether or not a plan exists.
 * Random demands of 16 tenants took less than 3 ms. A search for slow demands found up to 7 ms
 * on GPUs with 8 GPCs, and 25 ms on GPUs with 12 GPCs and two uGPUs (tests/bench/plan.c). Only
 * whole GPCs for many tenants, on GPUs with more GPCs of many sizes, can need too many steps.
 */
int gpupart_plan_make(struct gpupart *gp, const struct gpupart_topology *topo,
		      const struct gpupart_tpcset *within, const struct gpupart_demand *demands,
		      unsigned int nr, struct gpupart_plan *plan);

/*
 * Returns -ESTALE if @topology_hash, that of a plan, differs from that of @topo; the error
 * sentence gives both.
 */
int gpupart_plan_check(struct gpupart *gp, const struct gpupart_topology *topo,
		       uint64_t topology_hash);

/* -------------------------------------------------------------- this process */

/*
 * Publishes this process, so that gpupart_process_list() lists it under @name (may be NULL).
 * Launches that other threads make during the call may not be counted. A second call returns 0
 * and does nothing, also with another name. The child of a fork must call it again to be
 * published. -ENOMEM, or -EROFS, -EACCES and so on if /dev/shm cannot be written; then nothing
 * else is affected.
 */
int gpupart_process_publish(struct gpupart *gp, const char *name);

/*
 * Caps the limit of the program that the caller is a part of: the limit from outside becomes
 * the intersection of the old one and @set, or @set if there was none. Nothing in this process
 * can widen it again; setting the process's limit from outside replaces it. -EINVAL: @set is
 * NULL or invalid. -EPERM: the intersection is empty; nothing is changed.
 */
int gpupart_limit_cap(struct gpupart *gp, struct gpupart_gpu *gpu,
		      const struct gpupart_tpcset *set);

/* How the mask bits of an attached GPU were proven. */
struct gpupart_check {
	const char *layout;	/* "V04_00" */
	bool from_cache;	/* found in the cache, not measured in this process */
	unsigned int nr_proven;	/* TPCs whose bit is proven */
	unsigned int nr_launches; /* short launches made for the check; 0 if found in the cache */
	const char *streams;	/* "", or why sets of streams are refused on this driver */
	/*
	 * "", or why graphs keep the sets and the limit that their nodes were built with. A
	 * later set may not reach them, and graphs_stale may not count them. The value can
	 * change: some drivers show this only when the program calls one of their functions.
	 */
	const char *graphs;
	char key[20];		/* hash of the checked map, in hexadecimal */
};
void gpupart_gpu_check(const struct gpupart_gpu *gpu, struct gpupart_check *check);

/* The driver's callback interface, as an attached process found it. Sizes are in bytes. */
struct gpupart_driver {
	unsigned int table_bytes;
	int nr_features;		/* features that a tool can declare; -1: not in this
					 * driver's table */
	unsigned int params_bytes;	/* size of the parameters of a launch */
};
/* -EAGAIN: this process has not subscribed to the driver yet. */
int gpupart_driver_get(struct gpupart *gp, struct gpupart_driver *driver);

/* ----------------------------------------------------------------- processes */

#define GPUPART_JOB_STRLEN 64

struct gpupart_process {
	int pid;		/* 0: the process has no number in the caller's pid namespace */
	char name[64];		/* GPUPART_NAME, or ""; characters other than printable ASCII
				 * appear as '?' */
	char job[GPUPART_JOB_STRLEN];	/* id of the job that it belongs to, or "" */
	char pci[20];		/* of the first GPU with a limit, else of the first attached GPU */
	char source[512];	/* source of that GPU's topology: "rm", "kernel" or the path of a
				 * capture */
	bool simulated;		/* that GPU is simulated */
	unsigned int nr_gpus;	/* number of attached GPUs */
	char limit[GPUPART_TPCSET_STRLEN];	/* list form; "" if there is no limit */
	char problem[256];	/* why launches are not confined, or "" */
	struct gpupart_counters counters;
	/*
	 * The owner. All members except @pid are the claims of that user's processes. @source
	 * is a name that another user may have invented.
	 */
	unsigned int uid;
	/*
	 * It uses another version of this library: its counters are unknown, and its limit
	 * cannot be set.
	 */
	bool other_version;
};

/*
 * Lists the processes of this user (root: of all users) that confine launches now, sorted by
 * pid: up to @max of them into @list. Returns the number of processes. -EACCES and so on if
 * /dev/shm cannot be read. In another user's directory the call reads at most 4096 files and 4
 * MiB of /proc/PID/maps, for at most one second of CPU time. A user with more than that gets
 * one more row, with @pid 0 and no GPU, whose @problem says so. User 0 gets such a row if /dev/shm
 * has more than 65536 names, or if all users together take more than 4 seconds. A call for the
 * number alone (@max 0) takes as long as one for the list.
 */
int gpupart_process_list(struct gpupart *gp, struct gpupart_process *list, unsigned int max,
			 size_t size);

/*
 * Sends @signal to @process, a row of the list, only if its pid still belongs to the same
 * process. The function opens a pidfd, checks the process again by its @pid and @uid (its state
 * page's lock or mapping, its uids), calls @still (may be NULL) with its current row, and then
 * sends the signal through the pidfd. -ESRCH: the process has ended, is a different one, or
 * @still returned false. -ENOSYS: the kernel has no pidfd (before Linux 5.3); no signal is
 * sent.
 */
int gpupart_process_signal(struct gpupart *gp, const struct gpupart_process *process, int signal,
			   bool (*still)(const struct gpupart_process *now, void *arg), void *arg);

/*
 * Sets the outer limit of a running process of this user, on the GPU at PCI address @pci, from
 * its next launch on (CUDA graphs included). The process's inner limit still applies; if the
 * two have no TPC in common, the outer limit applies alone. A NULL @set removes the limit.
 * *before (may be NULL) is the limit that was in force, empty for none. The call is safe
 * against launches of the process and against other callers; if a caller dies during the call,
 * the previous limit stays.
 *
 * -ESRCH: this user has no such process (root must change to the user first). -ENODEV: the
 * process does not use that GPU. -EAGAIN: its mask bits are not proven (yet). -EINVAL: @set is
 * empty or has a TPC that does not exist. -EBUSY: another program is setting the limit and does
 * not finish.
 */
int gpupart_process_limit_set(struct gpupart *gp, int pid, const char *pci,
			      const struct gpupart_tpcset *set, struct gpupart_tpcset *before);

/*
 * The same for callers that change the limit of one process many times: the process is found
 * once, and a change then takes about 2 us. The caller must close the object.
 * gpupart_remote_set() fails with -ESRCH when the process has ended or its state page was
 * truncated. One thread at a time may use the object. The library installs a SIGBUS handler in the
 * calling process, which passes faults in other memory on to the previous handler. Do not block
 * SIGBUS in a thread that calls these functions: a truncated page would then end the process.
 */
struct gpupart_remote;
int gpupart_remote_open(struct gpupart *gp, int pid, const char *pci,
			struct gpupart_remote **remote);
int gpupart_remote_set(struct gpupart *gp, struct gpupart_remote *remote,
		       const struct gpupart_tpcset *set, struct gpupart_tpcset *before);
/*
 * The outer limit that was last set, or empty for none; shows changes by other programs. No
 * system call waits for the process. -ESRCH: the process has ended. -EBUSY: the limit is
 * changing all the time.
 */
int gpupart_remote_get(struct gpupart *gp, const struct gpupart_remote *remote,
		       struct gpupart_tpcset *set);
void gpupart_remote_close(struct gpupart_remote *remote);

/* ------------------------------------------------------------------- records */

/*
 * What the GPU itself wrote when launches ended, for one process on one GPU. A launch has a
 * record unless it is on a stream beyond the 64 that have a ring, its ring is full, or its TMD
 * has no free release slot; then it is unrecorded. Times are in nanoseconds of the GPU's
 * %globaltimer. The begin of a kernel is not recorded. It is assumed to be its submission or,
 * if that is later, the end of the previous launch on its stream. So busy times are upper
 * bounds for a stream that waits for events, copies or a time slice. All of this applies to the
 * calling process and to others. gpupart-stat(1) also measures a lower bound, by reading again
 * and again while launches run. Launches of graphs are launches; the time of graph launches
 * that follow each other is measured as one, from the submission of the first to the end of the
 * last. Other processes can read the records of a process only if it was published
 * (gpupart_process_publish()) before its first context was created or attached.
 */
#define GPUPART_RECORDS_NR_FUNCTIONS 64

struct gpupart_records_function {
	char name[96];		/* the name in the driver, cut to fit; "" if it is not known
				 * (yet) */
	uint64_t count;		/* launches that ended, or fewer: see nr_functions */
	uint64_t ns;		/* total time of these launches */
	uint64_t longest_ns;
};

struct gpupart_records {
	char pci[20];
	bool on;		/* launches are recorded; if false, all that follows is 0 */
	bool all_known;		/* no launch counts as unknown: the GPU is idle if none is
				 * outstanding */
	uint64_t issued;	/* launches that have a record */
	uint64_t ended;		/* launches whose record the GPU has written */
	/*
	 * issued - ended - those of a lost context + graphs that are being launched right now
	 */
	uint64_t outstanding;
	uint64_t unrecorded;	/* launches without a record, since the process started */
	/*
	 * Launches whose end cannot be known: those of a context that was lost or destroyed,
	 * unrecorded ones with no later record on their stream, and those in @graphs. If it is
	 * not 0, the process does not count as idle.
	 */
	uint64_t unknown;
	uint64_t untimed;	/* ended, but the time was overwritten or never written */
	uint64_t last_end_ns;	/* end of the latest launch; 0: none has ended yet */
	uint64_t busy_ns;	/* time in which one or more launches ran: the union of their
				 * times */
	uint64_t kernels_ns;	/* the sum of their times */
	uint64_t late_ns;	/* part of kernels_ns that was added too late to be part of
				 * busy_ns */
	/*
	 * Launches of graphs that have no record, for example because their last node is not a
	 * kernel.
	 */
	uint64_t graphs;
	/*
	 * The functions with the most time. If the process has more functions than this array
	 * holds, counts may be too small.
	 */
	unsigned int nr_functions;
	struct gpupart_records_function functions[GPUPART_RECORDS_NR_FUNCTIONS];
};

/*
 * Opens the records of a process of this user (root: of any user) on the GPU at PCI address
 * @pci, to be read many times. @pid 0 is the calling process. The caller must close the object.
 * One thread at a time may use it. -ESRCH: no such process is published. -ENODEV: the process
 * does not use that GPU. -EPROTO: the process uses another version of this library.
 */
struct gpupart_records_reader;
int gpupart_records_open(struct gpupart *gp, int pid, const char *pci,
			 struct gpupart_records_reader **reader);
/*
 * Reads all records as they are now. @size is the size of the caller's struct; members beyond
 * the library's struct are set to 0. The call never waits for the process, and nothing that the
 * process writes can harm the reader, because its pages are read by system calls. -ESRCH: the
 * process has ended. -EINVAL: @size is 0 or above 64 KiB.
 */
int gpupart_records_read(struct gpupart *gp, struct gpupart_records_reader *reader,
			 struct gpupart_records *records, size_t size);
/*
 * Whether launches are outstanding. 1: busy, or unknown; 0: idle. Takes up to 100 ns and makes
 * no system call. It is for processes of this user only, which the caller must trust: the first
 * call maps their pages, and a process that truncates its own file ends the caller with a bus
 * error. -EPERM: another user's process. -EINVAL: the process does not record launches.
 */
int gpupart_records_busy(struct gpupart *gp, struct gpupart_records_reader *reader);
void gpupart_records_close(struct gpupart_records_reader *reader);

/*
 * The records of the calling process's launches on one @stream that the program created, since
 * the first launch on it. busy_ns is the sum of their times, because they run one after the
 * other. Values that are not counted by stream (untimed, late_ns, graphs) are those of the
 * process, and all_known is false for the same reasons as for the process. The functions are
 * left empty. -EOPNOTSUPP: there are no records; the error sentence gives the reason. -EINVAL:
 * @stream is a default stream or does not exist.
 */
int gpupart_records_stream(struct gpupart *gp, struct gpupart_gpu *gpu, void *stream,
			   struct gpupart_records *records, size_t size);

/* ---------------------------------------------------------------------- jobs */

/*
 * A job: one run of a program and all its descendants. Its id is in the environment variable
 * GPUPART_JOB, which children inherit. Its limit is recorded in a file below /dev/shm, and a
 * process that begins to use the GPU reads it there instead of from GPUPART_SET. A job that was
 * started inside another job also obeys the limit of the outer one.
 */
struct gpupart_job {
	char id[GPUPART_JOB_STRLEN];
	char parent[GPUPART_JOB_STRLEN];	/* the job it was started in, or "" */
	char name[64];		/* or "" */
	int pid;		/* of the process that started it; 0: @elsewhere, or it has ended */
	bool elsewhere;		/* in another pid namespace: some of its processes may not be
				 * visible */
	char pci[20];
	char source[512];	/* of the topology, as in struct gpupart_process */
	bool simulated;		/* the GPU is that of a capture */
	char limit[GPUPART_TPCSET_STRLEN];	/* limit in force, list form */
	unsigned int uid;	/* the owner: this user, except for grants, below */
	bool other_version;	/* of another version of gpupart: its limit cannot be set */
};

/*
 * Makes the calling process a job, together with the program that it executes and its
 * descendants. Put @id (GPUPART_JOB_STRLEN bytes long) into the environment variable
 * GPUPART_JOB. The parent job is the one that GPUPART_JOB names now; jobs can be nested to any
 * depth. A process that starts a job on another GPU has a job on each; a second job on the same
 * GPU changes the first. @name may be NULL, else it is 1 to 63 characters from A-Z a-z 0-9 . _
 * -, not starting with '-'. @pci, for example "0000:0d:00.0", is the address of the GPU of
 * @topo (for a capture, of the simulated GPU). A job is removed when it has no process any
 * more: not the one that started it, not one that is published, and not one that was executed
 * with the id of this job, or of a job inside it, in its environment.
 *
 * -EINVAL: @set is invalid as in gpupart_set_check(), or @name or @pci is. -EROFS, -EACCES,
 * -EFBIG and so on: /dev/shm cannot be written; then only GPUPART_SET limits the job.
 */
int gpupart_job_begin(struct gpupart *gp, const char *name, const struct gpupart_topology *topo,
		      const char *pci, const struct gpupart_tpcset *set, char *id);

/*
 * Lists this user's jobs and the grants that this user has (root: all grants): up to @max of
 * them into @list. Returns the number of jobs; -EINVAL and -ENOMEM as for all lists.
 */
int gpupart_job_list(struct gpupart *gp, struct gpupart_job *list, unsigned int max, size_t size);

/*
 * Sets the limit of a job: of its current processes, including those of jobs inside it, and of
 * its later processes. *before (may be NULL) is the limit that was in force. Processes that
 * begin to use the GPU during the call read the new limit from the job's file; the call waits
 * at most one second for them.
 *
 * -ESRCH: no such job. -EINVAL: @set is empty or has a TPC that does not exist. -EBUSY: another
 * program is setting the limit and does not finish. Errors of gpupart_process_limit_set() mean
 * that some processes could not be changed; the others are changed.
 */
int gpupart_job_limit_set(struct gpupart *gp, const char *id, const struct gpupart_tpcset *set,
			  struct gpupart_tpcset *before);

/* ------------------------------------------------------------- a node's jobs */

/*
 * A grant: the TPCs, and optionally the memory, of one GPU that root gives a user, usually
 * through a scheduler. A grant is a job with an id of its own, which needs no process: it
 * exists until root drops it or the machine boots. Only root can change its limit. While a user
 * other than root has a grant on a GPU, no limit of that user's processes there can allow more
 * than all of the user's grants together (-EPERM), whether it comes from GPUPART_SET, a job or
 * another program. The same holds for the memory quota of a tenant, and GPUPART_DISABLE has no
 * effect. Any user may read a grant.
 */
#define GPUPART_GRANT_ROOT "/run/gpupart/jobs"

struct gpupart_grant {
	char id[GPUPART_JOB_STRLEN];	/* "0-" and then hexadecimal digits or '-': for
					 * GPUPART_JOB */
	char name[64];		/* as in struct gpupart_job; also the name of its tenant */
	unsigned int uid;
	char pci[20];		/* of the GPU, as in gpupart_job_begin() */
	char source[512];	/* source of its topology: "rm", "kernel" or the path of a
				 * capture */
	char key[20];		/* of its checked map, as in struct gpupart_check, or "" */
	unsigned int nr_tpcs;	/* number of TPCs of the GPU */
	struct gpupart_tpcset set;	/* empty: nothing was granted, for the reason in @why */
	uint64_t memory;	/* in bytes; 0: no quota */
	char asked[128];	/* what was asked for, as the scheduler wrote it */
	char why[512];
	bool other_version;	/* from another version of gpupart: it can be dropped, not
				 * changed */
	bool strict;		/* the user's processes are confined, or cannot use the GPU */
};

/*
 * Lists all grants on this machine, sorted by id: up to @max of them into @list. Returns the
 * number of grants, or a negative errno. -EPERM: users other than root can write to the
 * directory, so the grants in it do not count. -EUSERS: a user namespace hides which grant is
 * the caller's, and the candidates have no TPC in common.
 */
int gpupart_grant_list(struct gpupart *gp, struct gpupart_grant *list, unsigned int max,
		       size_t size);

/* ------------------------------------------------------------------- memory */

/*
 * A tenant: programs of one user that share a quota of GPU memory. The memory that its
 * processes use on a GPU is added up. If the tenant has a quota there, an allocation beyond it
 * fails as it does on a full GPU. Sizes are in bytes; a GPU is given by its PCI address, as in
 * gpupart_gpu_info; a name is 1 to 63 characters from A-Z a-z 0-9 . _ -, not starting with '-'.
 * A tenant and its quotas exist while a process is in it, or while a job exists whose name or
 * id is the tenant's name. Documentation/user/memory.md lists what is counted. Any thread may
 * call these functions.
 */
#define GPUPART_TENANT_STRLEN 64

struct gpupart_tenant {
	char name[GPUPART_TENANT_STRLEN];
	unsigned int uid;	/* the owner; all other members are that user's claims */
	char pci[20];		/* "" if it has neither a quota nor memory on any GPU */
	bool simulated;		/* that GPU is simulated */
	uint64_t quota;		/* 0: no quota on this GPU */
	uint64_t used;		/* by all its living processes; may exceed the quota */
	unsigned int nr_processes;	/* in the tenant now, whether or not they use this GPU */
	bool other_version;	/* of another version: its processes are unknown, its quota
				 * cannot be set */
};

/*
 * Lists the tenants of this user (root: of all users), sorted by user and name, one row for
 * each GPU of a tenant: up to @max rows into @list. Returns the number of rows;
 * -EINVAL and -ENOMEM as for all lists. Removes tenants that have neither a process nor a job.
 */
int gpupart_tenant_list(struct gpupart *gp, struct gpupart_tenant *list, unsigned int max,
			size_t size);

struct gpupart_tenant_process {
	char tenant[GPUPART_TENANT_STRLEN];
	unsigned int uid;
	char pci[20];		/* "" if it has not used a GPU yet */
	int pid;		/* 0: it has no number in the caller's pid namespace */
	int inner_pid;		/* pid in its own namespace */
	char program[64];	/* its name when it was executed; printable ASCII */
	uint64_t used;		/* on this GPU */
	uint64_t uncounted;	/* its calls, on any GPU, that may have allocated memory that is
				 * not counted */
};

/*
 * Lists the processes of these tenants: one row for each GPU on which a process uses memory, or
 * one row without a GPU; -EINVAL and -ENOMEM as for all lists.
 */
int gpupart_tenant_process_list(struct gpupart *gp, struct gpupart_tenant_process *list,
				unsigned int max, size_t size);

/*
 * Reads the row of one of this user's tenants on one GPU. @name NULL: the tenant that this
 * process is in, or will be in (GPUPART_TENANT). -EINVAL: @name is not a tenant's name, or @pci
 * is not a PCI address. -ESRCH: there is no such tenant, or this process is in none. -EPERM,
 * -EPROTO: the tenant's file cannot be trusted.
 */
int gpupart_tenant_get(struct gpupart *gp, const char *name, const char *pci,
		       struct gpupart_tenant *tenant);

/*
 * Sets the tenant's quota on that GPU, also while its programs run: @bytes, 1 or more. @pci
 * NULL: on every GPU, also on GPUs that its programs use later. A quota below the current use
 * frees nothing; allocations then fail until enough memory has been freed. *before (may be
 * NULL) is the old quota, 0 for none or if @pci is NULL. Errors as in gpupart_tenant_get(), and
 * -EBUSY: another process keeps the tenant's file locked.
 */
int gpupart_tenant_quota_set(struct gpupart *gp, const char *name, const char *pci,
			     uint64_t bytes, uint64_t *before);

/*
 * The same for a tenant that may not exist yet. Its first process, or the process that starts
 * it, must be a job whose name or id is @name. If @bytes differs from the quota that this
 * function last set, or @pci is NULL, the quotas on the tenant's other GPUs change too. Put the
 * name into the environment variable GPUPART_TENANT and the bytes into GPUPART_MEM. -ENOSPC,
 * -EACCES and so on if /dev/shm cannot be written.
 */
int gpupart_tenant_begin(struct gpupart *gp, const char *name, const char *pci, uint64_t bytes,
			 uint64_t *before);

/*
 * Makes this process a member of a tenant, which is charged for the GPU memory that the process
 * allocates. @name NULL: the tenant in GPUPART_TENANT, or else a tenant of its own whose name
 * is this process's id. @bytes: the quota on each GPU that the process uses and on which the
 * tenant has no quota yet; 0: the quota in GPUPART_MEM, or else none. A second call does
 * nothing; it must pass the same name or NULL.
 *
 * An allocation beyond the quota fails with out of memory, as on a full GPU. cuMemGetInfo and
 * cuDeviceTotalMem report the quota instead of the GPU's memory. The function can be called
 * before cuInit. Memory that was allocated before the call is charged at the next allocation.
 * The child of a fork is in no tenant until it uses a GPU itself.
 *
 * -EINVAL: @name is not a tenant's name, or GPUPART_MEM is not a number. -EBUSY: this process
 * is in another tenant, another tool is subscribed to the driver, or another process keeps the
 * tenant's file locked. -EOPNOTSUPP: the driver does not report calls of its functions.
 */
int gpupart_memory_start(struct gpupart *gp, const char *name, uint64_t bytes);

/* Counts of this process's allocation calls since it joined a tenant. */
struct gpupart_memory_counters {
	uint64_t refused;	/* failed with out of memory because of the quota */
	/*
	 * May have allocated memory that is not counted. Other processes can read this count
	 * too.
	 */
	uint64_t uncounted;
	const char *uncounted_call;	/* name of the latest of those calls, or NULL; never
					 * freed */
};

/* Fills *counters. Any thread may call it at any time. */
void gpupart_memory_counters_get(struct gpupart_memory_counters *counters);

/*
 * Sets the quota of this process's tenant on one GPU, for all processes of the tenant, like
 * gpupart_tenant_quota_set(). If gpupart_memory_start() was not called, this function first
 * calls it with the values in the environment. A quota in GPUPART_MEM that came from outside
 * can only be made smaller: -EPERM.
 */
int gpupart_memory_limit(struct gpupart *gp, const char *pci, uint64_t bytes);

/* ------------------------------------------------------------------- verify */

enum gpupart_verify_result {
	GPUPART_VERIFY_PASS,
	GPUPART_VERIFY_FAIL,
	GPUPART_VERIFY_SKIP,
};

struct gpupart_verify_row {
	const char *name;	/* for example "tpc-alone"; does not change between versions */
	const char *what;	/* the statement to prove, one sentence */
	enum gpupart_verify_result result;
	const char *detail;	/* what was measured; names the TPC if it failed */
};

#define GPUPART_VERIFY_QUICK 1	/* only the rows that take less than a second */

/*
 * Proves on the GPU, by launches that record %smid, that every TPC, GPC, uGPU and scope
 * confines launches. Calls @row, which must not be NULL, once for each row, in order. On @gpu
 * the function removes these sets and restores them at the end: the process's set, a limit set
 * by gpupart_limit_set(), and the calling thread's sets (its own, its next launch's, and those
 * of the default streams of its context). A limit from outside stays in force, and so do the
 * sets of functions and of streams that the program created. No other thread should launch or
 * set sets during the call. Returns the number of rows that failed (0: success), or a negative
 * errno if it could not run.
 *
 * -EINVAL: invalid flags, or @gpu is not attached. -EBUSY: a default stream of the context, or
 * a stream that waits for the legacy default stream, is being captured (a capture of a
 * non-blocking stream is harmless); nothing was changed. -EPERM, -EBUSY and so on: one of the
 * sets could not be restored; all others were. This happens to a limit if a limit from outside
 * was narrowed during the call, and to a default stream's set if @row began a capture.
 */
int gpupart_verify(struct gpupart *gp, struct gpupart_gpu *gpu, unsigned int flags,
		   void (*row)(const struct gpupart_verify_row *row, void *user), void *user);

/*
 * Makes one launch on @stream (NULL: the legacy default stream) that records the TPCs on which
 * its blocks ran. It keeps every SM that it may use busy for a few microseconds, so on an idle
 * GPU *seen is the set in force. -EBUSY: @stream or a blocking stream of its context is being
 * captured, and reading the record would invalidate the capture; nothing was launched. A
 * capture that another thread begins during the call is not detected.
 */
int gpupart_census(struct gpupart *gp, struct gpupart_gpu *gpu, void *stream,
		   struct gpupart_tpcset *seen);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* GPUPART_MANAGE_H */
