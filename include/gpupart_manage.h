/* SPDX-License-Identifier: MIT */
/*
 * The part of libgpupart for programs that manage GPUs. This part of the library makes plans and
 * proves that sets confine launches. It also manages other processes, jobs, the grants of a
 * scheduler, tenants, and the memory of tenants. The rules of gpupart.h for index spaces,
 * errors, pointers and threads apply here too.
 *
 * Lists. A function that fills an array has two arguments for the size of the array. The first
 * argument is the number of rows for which the array has room. The second argument is the size of
 * one row in bytes, which is sizeof(*list) in the caller. If the library's struct is longer than
 * a row, the function fills each row with the beginning of the struct. If the library's struct is
 * shorter, the function sets the rest of each row to 0. The function returns the number of rows
 * that exist. This number may be larger than the number of rows in the array. -EINVAL: the row
 * size is 0 or above 64 KiB. -ENOMEM: there is not enough memory.
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
 * @source: "kernel" (gpupart.ko), "rm" (NVIDIA's driver, which needs no privilege), "sample:NAME"
 * (a capture that is installed with gpupart), the path of a capture, or NULL. If @source is NULL,
 * the function tries "kernel" and then "rm". If "kernel" succeeds, the function reads only the
 * virtual GPCs from "rm".
 * @gpu: an index in PCI order ("0"), an address or a UUID. NULL means the first GPU. A capture
 * describes one GPU. If @source is a capture, @gpu must be NULL or name that GPU.
 *
 * The caller must close the object. -ENODEV: no such GPU. -ENOENT: no such file. -EACCES: the
 * caller may not read the source. -EBADMSG: the capture is truncated or was changed; the error
 * sentence gives the line. -EOPNOTSUPP: the driver or the chip is unknown.
 */
int gpupart_topology_open(struct gpupart *gp, const char *source, const char *gpu,
			  struct gpupart_topology **topo);
void gpupart_topology_close(struct gpupart_topology *topo);

/* Returns the number of uGPUs, or 0 if the source does not report uGPUs. */
unsigned int gpupart_topology_nr_ugpus(const struct gpupart_topology *topo);
/*
 * Returns the largest virtual GPC number plus 1, or 0 if virtual GPCs are unknown. Some smaller
 * numbers may be unused.
 */
unsigned int gpupart_topology_end_vgpc(const struct gpupart_topology *topo);
/* Returns the logical TPC that owns the SM with number @smid, or -1 if there is no such SM. */
int gpupart_topology_sm_tpc(const struct gpupart_topology *topo, unsigned int smid);

/*
 * Return the set of TPCs of one uGPU or virtual GPC. If the uGPU or virtual GPC does not exist,
 * the set is empty.
 */
struct gpupart_tpcset gpupart_topology_ugpu(const struct gpupart_topology *topo, unsigned int ugpu);
struct gpupart_tpcset gpupart_topology_vgpc(const struct gpupart_topology *topo, unsigned int vgpc);

/*
 * Returns 0 if @set is valid for @topo. -EINVAL: @set is empty or has a TPC that does not exist.
 * The error message gives the number of this TPC.
 */
int gpupart_set_check(struct gpupart *gp, const struct gpupart_topology *topo,
		      const struct gpupart_tpcset *set);

/*
 * Selects @nr TPCs that can hold a cluster of @cluster blocks. Stores these TPCs in *set. The
 * result contains all TPCs of @keep. All other TPCs of the result are members of @from. Of these
 * other TPCs, as many as possible are also members of @prefer. @keep and @prefer may be empty.
 * The same arguments always give the same result. -ENOSPC: no such set exists; *set is unchanged.
 */
int gpupart_set_pick(const struct gpupart_topology *topo, unsigned int cluster,
		     const struct gpupart_tpcset *keep, const struct gpupart_tpcset *prefer,
		     const struct gpupart_tpcset *from, unsigned int nr,
		     struct gpupart_tpcset *set);

/*
 * Lists the GPUs of @source in PCI order. Writes at most @max GPUs to @list. @source has the same
 * values as in gpupart_topology_open(). Returns the number of GPUs. -EINVAL: @source is a
 * capture. The other errors are those of gpupart_topology_open().
 */
int gpupart_gpu_list(struct gpupart *gp, const char *source, struct gpupart_gpu_info *list,
		     unsigned int max, size_t size);

/*
 * Returns a hash of the numbers of each TPC, its GPC, its virtual GPC, its uGPU and its SMs. If
 * two topologies agree in all these numbers, they have the same hash.
 */
uint64_t gpupart_topology_hash(const struct gpupart_topology *topo);

/*
 * Returns true if @a and @b agree. @a and @b must be topologies of the same GPU from two
 * different sources. For each TPC, the function compares the GPC, the virtual GPC, the CPC, the
 * uGPU and the SMs. For each GPC, the function compares the TPCs that the fuses enable. If only
 * one of the sources reports a value, the function skips this value. The function does not
 * compare tpc_in_gpc, because the sources assign these numbers differently.
 */
bool gpupart_topology_agree(const struct gpupart_topology *a, const struct gpupart_topology *b);

/*
 * Writes @topo as a capture. A capture is a text with a checksum, and gpupart_topology_open() can
 * read this text. @captured_by is the name of the capture's author; it may be NULL. The caller
 * must free *text with free(). Errors: -ENOMEM. -EINVAL: a string contains characters that a
 * capture cannot contain.
 */
int gpupart_topology_capture(struct gpupart *gp, const struct gpupart_topology *topo,
			     const char *captured_by, char **text);

/* --------------------------------------------------------------------- plans */

#define GPUPART_PLAN_MAX_TENANTS 16

/*
 * The demand of one tenant. If a demand sets only the name, the tenant gets at least one TPC and
 * may get all TPCs.
 */
struct gpupart_demand {
	const char *name;	/* 1 to 63 characters from A-Z a-z 0-9 . _ -, not starting with
				 * '-' */
	unsigned int min_tpcs;	/* minimum; 0 means 1 */
	unsigned int max_tpcs;	/* maximum; 0 means unlimited */
	/* The tenant needs whole GPCs, in which no other tenant has a TPC. */
	bool gpcs;
	/*
	 * If this member is true, the TPCs are spread over GPCs for speed. If this member is
	 * false, the TPCs are packed into few GPCs for isolation. If @gpcs is also true, the
	 * tenant gets the same number of GPCs from each uGPU.
	 */
	bool spread;
	/* Size in blocks of the largest cluster that the tenant launches; 0: no clusters. */
	unsigned int cluster;
	unsigned int weight;	/* weight of the tenant's share, 1 to 1000; 0 means 1 */
	/*
	 * Names of the tenants that must be in the same uGPU as this tenant. The names are
	 * joined by '+'. This member may be NULL.
	 */
	const char *same;
	/*
	 * Names of the tenants that must have no TPC in this tenant's uGPU. The names are joined
	 * by '+'. This member may be NULL.
	 */
	const char *apart;
};

struct gpupart_plan_tenant {
	char name[64];
	struct gpupart_tpcset set;
	int ugpu;		/* the uGPU to which @same or @apart binds the tenant; -1: none */
};

struct gpupart_plan {
	/* gpupart_topology_hash() of the topology for which the plan was made */
	uint64_t topology_hash;
	/* Always true, because the library proves that each returned plan is the best plan. */
	bool optimal;
	unsigned int nr_steps;	/* steps that the search took */
	unsigned int nr_tenants;
	struct gpupart_plan_tenant tenants[GPUPART_PLAN_MAX_TENANTS];	/* in the order of the
									 * demands */
};

/*
 * Makes disjoint sets for @nr tenants (1 to 16). All TPCs of the sets are members of @within; if
 * @within is NULL, any TPC can be used. The result depends on the topology, @within and the
 * demands, but not on the order of the demands.
 *
 * Every plan meets the following conditions. Each tenant has at least its minimum and at most
 * its maximum number of TPCs. A tenant that asks for whole GPCs gets whole GPCs, and no other
 * tenant has a TPC in these GPCs. If a tenant asks for whole GPCs and for a spread set, it gets
 * the same number of GPCs from each uGPU. Tenants that are joined by `same` are all in one uGPU.
 * If tenant A names tenant B in `apart`, tenant B has no TPC in the uGPU of tenant A. A tenant
 * that launches clusters of N blocks gets a cluster slot, which is a reserved place for one such
 * cluster. The cluster slot is in the largest virtual GPC of one of the tenant's GPCs and has
 * one SM for each block of the cluster. So on GPUs with two SMs per TPC, the cluster slot
 * consists of N / 2 TPCs. N is rounded up to a power of two, so a cluster of 6 blocks needs as
 * many TPCs as a cluster of 8 blocks. A cluster slot in a singleton can use only the SMs of this
 * singleton. If the source does not report virtual GPCs, the function uses GPCs instead.
 *
 * From all plans that meet these conditions, the function chooses the best plan as follows.
 * Tenants are ranked: first the tenants that ask for whole GPCs, then packed tenants, then spread
 * tenants. Within each of these groups, the tenant with the larger weight ranks higher; then the
 * larger minimum decides, then the larger cluster, then the name. The criteria below are applied
 * one after the other. Each criterion is applied to one tenant after the other, in the order of
 * rank. So each step applies one criterion to one tenant. Of the remaining plans, the step keeps
 * only the plans with the best value. If a different plan is better than the chosen plan in one
 * criterion, it is worse in an earlier criterion.
 *
 * 1. The first criterion is the uGPU of each tenant that is bound to a uGPU. Tenants that are
 * joined by `same` are treated together. The best uGPU has the largest number of TPCs that no
 * tenant needs for its minimum. If several uGPUs have equally many such TPCs, the uGPU with the
 * lowest number is the best.
 *
 * 2. The second criterion is the set of each tenant that asks for whole GPCs. Let d be the
 * difference between the tenant's number of TPCs and its fair share of the remaining TPCs. Let u
 * be the number of uGPUs that the tenant uses. The best set has the smallest 2d + (u - 1) * (TPCs
 * of the GPU's largest GPC), then the fewest uGPUs, then the most TPCs, then the GPCs that are
 * first in the tenant's order.
 *
 * 3. The third criterion is the number of TPCs of each tenant that does not ask for whole GPCs.
 * First each tenant gets its minimum. Then TPCs are assigned one at a time. Of the tenants that
 * can still use a TPC, the tenant with the fewest TPCs relative to its weight gets the next TPC.
 * This rule is max-min fairness by weight. (The fair share in criterion 2 is computed in the
 * same way, but without regard to GPCs and cluster slots.)
 *
 * 4. The fourth criterion is the GPC of each cluster slot. The criterion ignores two kinds of
 * cluster slots: those with one TPC, and those of tenants that ask for whole GPCs. The best GPC
 * has the fewest cluster slots. If several GPCs have equally few cluster slots, the best GPC is
 * the one that is first in the tenant's order.
 *
 * 5. The fifth criterion is the set of each tenant that does not ask for whole GPCs. For a packed
 * tenant, the best set has the fewest tenants in its GPCs, then the fewest uGPUs, then the fewest
 * GPCs, then the GPCs that are first in the tenant's order. The count of tenants ignores the GPC
 * of the tenant's own cluster slot. The count includes the owners of reserved cluster slots. All
 * TPCs outside @within count as one more tenant. The tenant first fills the GPC of its cluster
 * slot and then the other GPCs one after the other. For a spread tenant, the best set has the
 * fewest TPCs in GPCs of packed tenants, then the most even distribution over the other GPCs. If
 * the distribution cannot be even, the GPCs that are first in the tenant's order get more TPCs.
 *
 * A tenant's order of GPCs is determined when the tenant is placed. At that moment, GPCs are
 * ordered by the number of tenants that have TPCs in the GPC's uGPU, fewest first. GPCs with the
 * same number of such tenants are ordered by uGPU number and then by GPC number. In a GPC,
 * tenants with a cluster slot get the TPCs with the lowest numbers in the GPC's virtual GPC. The
 * other tenants get the remaining TPCs with the lowest numbers. If a tenant launches clusters, it
 * gets the TPCs inside the virtual GPC before the TPCs outside the virtual GPC. If a tenant
 * launches no clusters, it gets the TPCs outside the virtual GPC first.
 *
 * Any kernel may launch clusters of GPUPART_PORTABLE_CLUSTER blocks. But a tenant's set may have
 * enough TPCs for such a cluster and still not be able to hold it. In this case, the function
 * makes the plan again with a cluster slot for this tenant. Some tenants of higher rank have sets
 * that can hold such a cluster. In the new plan, these tenants also get a cluster slot. Ranks do
 * not change. The function repeats this step for one tenant after the other, in the order of
 * rank. If no plan with the additional cluster slot exists, the function keeps the plan without
 * this slot. gpupart_set_cluster() returns the size of the largest cluster that a set can hold.
 *
 * -EINVAL: a demand contradicts itself or names a tenant that does not exist. An example of a
 * contradiction is a tenant that asks for GPCs of each uGPU but is bound to one uGPU.
 * -EOPNOTSUPP: a demand needs uGPUs and the source does not report uGPUs. -ENOSPC: a demand
 * cannot be met. The error message names the tenant, and it lists changes of the tenant's
 * demand that make a plan possible. The function has tested each listed change: it made a plan
 * with the change. The list does not contain changes for which planning takes too long. -E2BIG:
 * the search was not finished after 100 million steps, which take about half a second. If the
 * function returns a plan, the plan is always the best plan.
 *
 * On GPUs with up to 12 GPCs, a call takes a few milliseconds, even if no plan exists. Calls with
 * random demands of 16 tenants took less than 3 ms. We also searched for demands that make a call
 * slow (tests/bench/plan.c). The slowest call took 7 ms on GPUs with 8 GPCs, and 25 ms on GPUs
 * with 12 GPCs and two uGPUs. A call can reach the step limit only under two conditions: many
 * tenants ask for whole GPCs, and the GPU has more than 12 GPCs of many sizes.
 */
int gpupart_plan_make(struct gpupart *gp, const struct gpupart_topology *topo,
		      const struct gpupart_tpcset *within, const struct gpupart_demand *demands,
		      unsigned int nr, struct gpupart_plan *plan);

/*
 * Checks whether a plan was made for @topo. @topology_hash is the hash in the plan. Returns 0,
 * or -ESTALE if the hash of @topo is different; the error message gives both hashes.
 */
int gpupart_plan_check(struct gpupart *gp, const struct gpupart_topology *topo,
		       uint64_t topology_hash);

/* -------------------------------------------------------------- this process */

/*
 * Publishes this process, so that gpupart_process_list() lists it under @name. @name may be NULL.
 * Launches that other threads make during the call may not be counted. A second call does nothing
 * and returns 0, even if @name is different. After a fork, the child is not published. To be
 * published, the child must call this function itself. Errors: -ENOMEM. -EROFS, -EACCES and so
 * on: /dev/shm cannot be written. An error does not affect anything else in the process.
 */
int gpupart_process_publish(struct gpupart *gp, const char *name);

/*
 * Narrows the limit of the calling process. If the process has a limit from outside, the new
 * limit is the intersection of that limit and @set; otherwise the new limit is @set. No call in
 * this process can widen the limit again. Another process can replace the limit with
 * gpupart_process_limit_set(). -EINVAL: @set is NULL or invalid. -EPERM: the intersection is
 * empty; the limit is unchanged.
 */
int gpupart_limit_cap(struct gpupart *gp, struct gpupart_gpu *gpu,
		      const struct gpupart_tpcset *set);

/* The result of checking the mask bits of an attached GPU. */
struct gpupart_check {
	const char *layout;	/* "V04_00" */
	/* The result was found in the cache and not measured in this process. */
	bool from_cache;
	unsigned int nr_proven;	/* number of TPCs whose mask bit is proven */
	/* Number of short launches that the check made; 0 if the result was in the cache. */
	unsigned int nr_launches;
	/* "", or the reason why sets of streams are refused on this driver */
	const char *streams;
	/*
	 * "", or the reason why graphs keep the sets and the limit with which their nodes were
	 * built. In that case a later set may have no effect on a graph, and graphs_stale may not
	 * count the launches of this graph. The value can change while the program runs. On some
	 * drivers, the library can detect this problem only when the program calls a graph
	 * function of the driver.
	 */
	const char *graphs;
	char key[20];		/* hash of the checked map, in hexadecimal */
};
void gpupart_gpu_check(const struct gpupart_gpu *gpu, struct gpupart_check *check);

/*
 * Properties of the driver's callback interface. Only a process that has attached a GPU can read
 * these properties. Sizes are in bytes.
 */
struct gpupart_driver {
	unsigned int table_bytes;
	/*
	 * Number of features that a tool can declare; -1: this driver's table does not contain
	 * this number.
	 */
	int nr_features;
	unsigned int params_bytes;	/* size of the parameters of a launch */
};
/* -EAGAIN: this process has not subscribed to the driver yet. */
int gpupart_driver_get(struct gpupart *gp, struct gpupart_driver *driver);

/* ----------------------------------------------------------------- processes */

#define GPUPART_JOB_STRLEN 64

struct gpupart_process {
	int pid;		/* 0: the process is not visible in the caller's pid namespace */
	char name[64];		/* GPUPART_NAME, or ""; characters other than printable ASCII
				 * appear as '?' */
	char job[GPUPART_JOB_STRLEN];	/* id of the job that the process belongs to, or "" */
	/*
	 * PCI address of the first GPU with a limit. If no GPU has a limit, this is the PCI
	 * address of the first attached GPU.
	 */
	char pci[20];
	char source[512];	/* source of that GPU's topology, which is "rm", "kernel" or the
				 * path of a capture */
	bool simulated;		/* that GPU is simulated */
	unsigned int nr_gpus;	/* number of attached GPUs */
	char limit[GPUPART_TPCSET_STRLEN];	/* list form; "" if there is no limit */
	char problem[256];	/* reason why launches are not confined, or "" */
	struct gpupart_counters counters;
	/*
	 * The user who owns the process. Processes of that user write all members except @pid, so
	 * these members may be false. For example, @source may be any string.
	 */
	unsigned int uid;
	/*
	 * The process uses another version of this library: its counters are unknown, and its
	 * limit cannot be set.
	 */
	bool other_version;
};

/*
 * Lists the processes of this user that currently confine launches. The list is sorted by pid.
 * The function writes at most @max processes to @list. If the caller is root, it lists the
 * processes of all users. Returns the number of processes. -EACCES and so on: /dev/shm cannot be
 * read. For each user other than the caller, the call reads at most 4096 files and 4 MiB of
 * /proc/PID/maps, and uses at most one second of CPU time. If a user's directory exceeds one of
 * these bounds, the list has one more row for that user, with @pid 0 and no GPU, and @problem
 * gives the reason. The list has such a row for user 0 in two cases: /dev/shm has more than 65536
 * names, or reading the directories of all users takes more than 4 seconds. A call with @max 0
 * counts the processes and takes as long as a call that lists the processes.
 */
int gpupart_process_list(struct gpupart *gp, struct gpupart_process *list, unsigned int max,
			 size_t size);

/*
 * Sends @signal to @process, which is a row of the list. The function sends the signal only if
 * the pid in the row still belongs to the same process. The function opens a pidfd. Then it
 * checks the uids of the process again, and also the lock or mapping of the process's state
 * page. If @still is not NULL, the function calls it with the current row of the process. Then
 * the function sends the signal through the pidfd. -ESRCH: the process has ended, the pid
 * belongs to a different process, or @still returned false. -ENOSYS: the kernel is older than
 * Linux 5.3 and has no pidfd; no signal is sent.
 */
int gpupart_process_signal(struct gpupart *gp, const struct gpupart_process *process, int signal,
			   bool (*still)(const struct gpupart_process *now, void *arg), void *arg);

/*
 * Sets the outer limit of a running process on the GPU at PCI address @pci. The process must
 * belong to this user. The new limit applies from the process's next launch on, including
 * launches of CUDA graphs. The inner limit, which the process itself set, still applies too. If
 * the outer and the inner limit have no TPC in common, only the outer limit applies. A NULL @set
 * removes the outer limit. If @before is not NULL, the function stores the previous limit in
 * *before. If there was no limit, the function stores the empty set. The process may launch
 * kernels during the call, and other programs may call the function at the same time. If a caller
 * dies during the call, the previous limit stays in force.
 *
 * -ESRCH: this user has no such process. If the caller is root, it must first change its uid to
 * the uid of the process's owner. -ENODEV: the process does not use that GPU. -EAGAIN: the mask
 * bits of the GPU are not proven, or not proven yet. -EINVAL: @set is empty or has a TPC that
 * does not exist. -EBUSY: another program is setting the limit and does not finish.
 */
int gpupart_process_limit_set(struct gpupart *gp, int pid, const char *pci,
			      const struct gpupart_tpcset *set, struct gpupart_tpcset *before);

/*
 * These functions do the same as gpupart_process_limit_set(). They are for callers that change
 * the limit of one process many times. gpupart_remote_open() finds the process; each change then
 * takes about 2 us. The caller must close the object. gpupart_remote_set() fails with -ESRCH when
 * the process has ended or its state page was truncated. One thread at a time may use the object.
 * The library installs a SIGBUS handler in the calling process. For a fault in other memory, the
 * previous SIGBUS handler runs. Do not block SIGBUS in a thread that calls these functions. If
 * SIGBUS is blocked and the state page is truncated, the kernel kills the caller's process.
 */
struct gpupart_remote;
int gpupart_remote_open(struct gpupart *gp, int pid, const char *pci,
			struct gpupart_remote **remote);
int gpupart_remote_set(struct gpupart *gp, struct gpupart_remote *remote,
		       const struct gpupart_tpcset *set, struct gpupart_tpcset *before);
/*
 * Reads the current outer limit, which any program may have set. If there is no outer limit, *set
 * is empty. The function never waits for the process. -ESRCH: the process has ended. -EBUSY: the
 * limit changed again and again during the call.
 */
int gpupart_remote_get(struct gpupart *gp, const struct gpupart_remote *remote,
		       struct gpupart_tpcset *set);
void gpupart_remote_close(struct gpupart_remote *remote);

/* ------------------------------------------------------------------- records */

/*
 * Records of the launches of one process on one GPU. The GPU itself writes a record when a launch
 * ends. The process may be the calling process or another process. A launch has no record in
 * three cases: its stream is not one of the 64 streams that have a ring, the ring of its stream
 * is full, or its TMD has no free release slot. Such a launch is counted as unrecorded. Times are
 * in nanoseconds of the GPU's %globaltimer. The GPU does not record when a kernel begins. The
 * library uses the later of two times as the start of a kernel: the kernel's submission, or the
 * end of the previous launch on the same stream. If a stream waits for an event, a copy or a time
 * slice, its busy time includes the wait, so busy times are upper bounds. gpupart-stat(1) also
 * measures a lower bound, by reading the records repeatedly while launches run. A launch of a
 * graph counts as one launch. If graph launches follow each other without a gap, the library
 * measures a single duration for all these launches. This duration begins at the later of two
 * times: the submission of the first graph launch, or the end of the previous launch on the same
 * stream. On a default stream, it begins at the submission. It ends with the last graph launch.
 * Other processes can read the records of a process only under one condition: the process called
 * gpupart_process_publish() before its first context was created or attached.
 */
#define GPUPART_RECORDS_NR_FUNCTIONS 64

struct gpupart_records_function {
	/*
	 * The function's name in the driver, shortened to fit. "" means that the name is
	 * unknown, or not known yet.
	 */
	char name[96];
	/* Number of launches that ended; may be too small, see nr_functions. */
	uint64_t count;
	uint64_t ns;		/* total time of these launches */
	uint64_t longest_ns;
};

struct gpupart_records {
	char pci[20];
	bool on;		/* launches are recorded; if false, all following members are 0 */
	/* @unknown is 0. So if @outstanding is also 0, the process has no work on the GPU. */
	bool all_known;
	uint64_t issued;	/* launches that have a record */
	uint64_t ended;		/* launches whose record the GPU has written */
	/*
	 * Launches that have not ended. This number is @issued minus @ended, minus the launches
	 * of lost contexts, plus the graphs that are being launched at this moment.
	 */
	uint64_t outstanding;
	uint64_t unrecorded;	/* launches without a record, since the process started */
	/*
	 * Launches whose end cannot be known. These are the launches of a context that was lost
	 * or destroyed, unrecorded launches without a later recorded launch on the same stream,
	 * and the launches counted in @graphs. If @unknown is not 0, the process is not
	 * considered idle.
	 */
	uint64_t unknown;
	/* Launches that ended but whose time was overwritten or never written. */
	uint64_t untimed;
	uint64_t last_end_ns;	/* end of the latest launch; 0: no launch has ended yet */
	uint64_t busy_ns;	/* time in which one or more launches ran: the union of their
				 * times */
	uint64_t kernels_ns;	/* the sum of the times of all launches */
	/* Time that is in kernels_ns but not in busy_ns, because it was known too late. */
	uint64_t late_ns;
	/*
	 * Graph launches without a record whose stream is unknown. A graph has no record, for
	 * example, if its last node is not a kernel. Default streams are unknown, and all streams
	 * if streams cannot have sets or the program never called gpupart_attach(). Launches on
	 * other streams count in @unrecorded instead.
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
 * Opens the records of a process on the GPU at PCI address @pci, so that the caller can read
 * them many times. The process must belong to this user; root may open the records of any
 * process. @pid 0 means the calling process. The caller must close the object. Only one thread
 * at a time may use the object. -ESRCH: no such process is published. -ENODEV: the process does
 * not use that GPU. -EPROTO: the process uses another version of this library.
 */
struct gpupart_records_reader;
int gpupart_records_open(struct gpupart *gp, int pid, const char *pci,
			 struct gpupart_records_reader **reader);
/*
 * Reads the current state of all records. @size is the size of the caller's struct in bytes;
 * members that the library does not know are set to 0. The call never waits for the process. The
 * call reads the process's pages with system calls. Therefore the reader is safe, even if the
 * process truncates its pages or writes wrong values. -ESRCH: the process has ended. -EINVAL:
 * @size is 0 or above 64 KiB.
 */
int gpupart_records_read(struct gpupart *gp, struct gpupart_records_reader *reader,
			 struct gpupart_records *records, size_t size);
/*
 * Returns 0 if the process is idle. Returns 1 if launches are outstanding, or if the library
 * cannot know whether launches are outstanding. A call takes up to 100 ns and makes no system
 * call. The process must belong to this user, because the first call maps the process's pages.
 * The first call also installs the SIGBUS handler of gpupart_remote_open(). -EPERM: the process
 * belongs to another user. -EINVAL: the process does not record launches. -ESRCH: its files were
 * truncated.
 */
int gpupart_records_busy(struct gpupart *gp, struct gpupart_records_reader *reader);
void gpupart_records_close(struct gpupart_records_reader *reader);

/*
 * Reads the records of all launches of the calling process on @stream. The program must have
 * created @stream. busy_ns is the sum of the launches' times, because launches on one stream run
 * one after the other. busy_ns and outstanding also include launches of graphs; issued and ended do
 * not. The library does not count untimed, late_ns and graphs for each stream, so these members
 * contain the values of the whole process. all_known is false for the same reasons as for the
 * process, and while launches of one graph run on several streams. The list of functions is empty.
 * -EOPNOTSUPP: there are no records; the error message gives the reason. -EINVAL: @stream is a
 * default stream or does not exist.
 */
int gpupart_records_stream(struct gpupart *gp, struct gpupart_gpu *gpu, void *stream,
			   struct gpupart_records *records, size_t size);

/* ---------------------------------------------------------------------- jobs */

/*
 * A job is one run of a program, with all processes that descend from it. The environment
 * variable GPUPART_JOB contains the id of the job, and child processes inherit the variable. The
 * limit of the job is in a file below /dev/shm. When a process of the job begins to use the GPU,
 * it reads the limit from this file and ignores GPUPART_SET. If a job was started inside another
 * job, the limits of both jobs apply to it.
 */
struct gpupart_job {
	char id[GPUPART_JOB_STRLEN];
	/* Id of the job in which this job was started, or "". */
	char parent[GPUPART_JOB_STRLEN];
	char name[64];		/* or "" */
	/*
	 * Pid of the process that started the job; 0: that process has ended, or @elsewhere is
	 * true.
	 */
	int pid;
	/* The job is in another pid namespace, so some of its processes may not be visible. */
	bool elsewhere;
	char pci[20];
	char source[512];	/* source of the topology, as in struct gpupart_process */
	bool simulated;		/* the GPU is simulated, from a capture */
	char limit[GPUPART_TPCSET_STRLEN];	/* limit in force, list form */
	unsigned int uid;	/* the owner; if the job is not a grant, always this user */
	/* Another version of gpupart started the job: its limit cannot be set. */
	bool other_version;
};

/*
 * Creates a job. The job consists of the calling process, the program that this process executes,
 * and the descendants of this process. The function stores the id of the job in @id, which has
 * GPUPART_JOB_STRLEN bytes. Put this id into the environment variable GPUPART_JOB. If GPUPART_JOB
 * names a job at the time of the call, that job becomes the parent. Jobs can be nested to any
 * depth. A process can start one job on each GPU. If a process starts a second job on the same
 * GPU, the call changes the first job. @name is NULL, or it has 1 to 63 characters from A-Z a-z
 * 0-9 . _ - and does not start with '-'. @pci is the address of the GPU of @topo, for example
 * "0000:0d:00.0". If @topo is from a capture, @pci is the address of the simulated GPU. A job is
 * removed when it no longer has any process. A job has three kinds of processes: the process that
 * started the job, published processes of the job, and processes that were executed with the id
 * of the job in their environment. A process with the id of a job inside this job counts too.
 *
 * -EINVAL: @set, @name or @pci is invalid; gpupart_set_check() tests a set. -EROFS, -EACCES,
 * -EFBIG and so on: /dev/shm cannot be written; then only GPUPART_SET limits the job.
 */
int gpupart_job_begin(struct gpupart *gp, const char *name, const struct gpupart_topology *topo,
		      const char *pci, const struct gpupart_tpcset *set, char *id);

/*
 * Lists this user's jobs and grants. Writes at most @max jobs and grants to @list. If the caller
 * is root, it lists the grants of all users. Returns the number of jobs and grants, or -EINVAL or
 * -ENOMEM as for all lists.
 */
int gpupart_job_list(struct gpupart *gp, struct gpupart_job *list, unsigned int max, size_t size);

/*
 * Sets the limit of a job. The limit applies to the current processes of the job and of the jobs
 * inside this job. The limit also applies to later processes of all these jobs. If @before is not
 * NULL, the function stores the previous limit in *before. Processes that begin to use the GPU
 * during the call read the new limit from the job's file. The call waits at most one second for
 * these processes.
 *
 * -ESRCH: no such job. -EINVAL: @set is empty or has a TPC that does not exist. -EBUSY: another
 * program is setting the limit and does not finish. An error of gpupart_process_limit_set()
 * means that the limits of some processes could not be changed; the limits of all other
 * processes are changed.
 */
int gpupart_job_limit_set(struct gpupart *gp, const char *id, const struct gpupart_tpcset *set,
			  struct gpupart_tpcset *before);

/* ------------------------------------------------------------- a node's jobs */

/*
 * A grant gives a user TPCs of one GPU, and optionally an amount of the GPU's memory. Root makes
 * grants, usually through a scheduler. A grant is a job that needs no process. Like other jobs, a
 * grant has an id. The grant exists until root drops it or the machine boots again. Only root can
 * change the limit of a grant. If a user other than root has grants on a GPU, the limits of this
 * user's processes on the GPU can allow only TPCs of these grants. Setting a limit with any other
 * TPC fails with -EPERM. This rule applies to limits from GPUPART_SET, from a job and from
 * another program. In the same way, the user's grants limit the memory quota of a tenant.
 * GPUPART_DISABLE has no effect for a user who has such grants. Any user may read a grant.
 */
#define GPUPART_GRANT_ROOT "/run/gpupart/jobs"

struct gpupart_grant {
	/* The value for GPUPART_JOB, which is "0-" followed by hexadecimal digits or '-'. */
	char id[GPUPART_JOB_STRLEN];
	char name[64];		/* as in struct gpupart_job; also the name of the grant's tenant */
	unsigned int uid;
	char pci[20];		/* address of the GPU, as in gpupart_job_begin() */
	char source[512];	/* source of the GPU's topology, which is "rm", "kernel" or the
				 * path of a capture */
	/* Key of the GPU's checked map, as in struct gpupart_check, or "". */
	char key[20];
	unsigned int nr_tpcs;	/* number of TPCs of the GPU */
	struct gpupart_tpcset set;	/* empty: nothing was granted, for the reason in @why */
	uint64_t memory;	/* in bytes; 0: no quota */
	char asked[128];	/* the request, as the scheduler wrote it */
	char why[512];
	/* Another version of gpupart made the grant: it can be dropped but not changed. */
	bool other_version;
	/* If a process of the user cannot be confined, this process cannot use the GPU. */
	bool strict;
};

/*
 * Lists all grants on this machine, sorted by id. Writes at most @max grants to @list. Returns
 * the number of grants, or a negative errno. -EPERM: users other than root can write to the
 * directory of grants, so these grants are ignored. -EUSERS: the caller is in a user namespace
 * that hides the owners of the grants, and the grants that could belong to the caller have no TPC
 * in common.
 */
int gpupart_grant_list(struct gpupart *gp, struct gpupart_grant *list, unsigned int max,
		       size_t size);

/* ------------------------------------------------------------------- memory */

/*
 * A tenant is a group of processes of one user that share a quota of GPU memory. The library adds
 * up the memory that all processes of the tenant use on a GPU. If an allocation would exceed the
 * tenant's quota on this GPU, the allocation fails, as on a full GPU. Sizes are in bytes. A GPU
 * is identified by its PCI address, as in struct gpupart_gpu_info. A tenant's name has 1 to 63
 * characters from A-Z a-z 0-9 . _ - and does not start with '-'. A tenant exists while it has a
 * process. A tenant also exists while there is a job whose name or id is the tenant's name. The
 * quotas of a tenant exist as long as the tenant. Documentation/user/memory.md lists which memory
 * is counted. Any thread may call these functions.
 */
#define GPUPART_TENANT_STRLEN 64

struct gpupart_tenant {
	char name[GPUPART_TENANT_STRLEN];
	/*
	 * The owner. Processes of this user write all members except @uid, so those members may
	 * be false.
	 */
	unsigned int uid;
	char pci[20];		/* "" if the tenant has no quota and no memory on any GPU */
	bool simulated;		/* that GPU is simulated */
	uint64_t quota;		/* 0: no quota on this GPU */
	/* Memory used by all processes of the tenant. It may exceed @quota. */
	uint64_t used;
	/*
	 * Current number of processes in the tenant, including processes that do not use this
	 * GPU.
	 */
	unsigned int nr_processes;
	/*
	 * The tenant belongs to another version of gpupart, so its processes are unknown, and
	 * its quota cannot be set.
	 */
	bool other_version;
};

/*
 * Lists the tenants of this user, and writes at most @max rows to @list. A tenant has one row for
 * each of its GPUs. The rows are sorted by user and name. If the caller is root, it lists the
 * tenants of all users. Returns the number of rows, or -EINVAL or -ENOMEM as for all lists. The
 * function also removes each tenant that has no process and no job.
 */
int gpupart_tenant_list(struct gpupart *gp, struct gpupart_tenant *list, unsigned int max,
			size_t size);

struct gpupart_tenant_process {
	char tenant[GPUPART_TENANT_STRLEN];
	unsigned int uid;
	char pci[20];		/* "" if the process has not used a GPU yet */
	int pid;		/* 0: the process is not visible in the caller's pid namespace */
	int inner_pid;		/* pid in the process's own pid namespace */
	char program[64];	/* name of the program at its exec, in printable ASCII */
	uint64_t used;		/* on this GPU */
	/*
	 * Number of the process's calls that may have allocated uncounted memory. The number
	 * includes the calls for all GPUs.
	 */
	uint64_t uncounted;
};

/*
 * Lists the processes of the tenants in gpupart_tenant_list(), and writes at most @max rows to
 * @list. A process has one row for each GPU on which it uses memory. If a process uses no memory,
 * it has one row without a GPU. Returns the number of rows, or -EINVAL or -ENOMEM as for all
 * lists.
 */
int gpupart_tenant_process_list(struct gpupart *gp, struct gpupart_tenant_process *list,
				unsigned int max, size_t size);

/*
 * Reads a tenant's row for one GPU. The tenant must belong to this user. If @name is NULL, the
 * function reads the tenant of this process, or the tenant in GPUPART_TENANT that the process
 * will join. -EINVAL: @name is not a valid tenant name, or @pci is not a PCI address. -ESRCH:
 * there is no such tenant, or @name is NULL and this process has no tenant. -EPERM, -EPROTO: the
 * tenant's file cannot be trusted.
 */
int gpupart_tenant_get(struct gpupart *gp, const char *name, const char *pci,
		       struct gpupart_tenant *tenant);

/*
 * Sets the tenant's quota on the GPU at @pci to @bytes, which must be 1 or more. The programs of
 * the tenant may be running during the call. If @pci is NULL, the quota applies to each GPU,
 * including GPUs that the programs begin to use later. If the quota is below the current use, no
 * memory is freed; allocations fail until the programs have freed enough memory. If @before is
 * not NULL, the function stores the old quota in *before. It stores 0 if there was no quota or
 * if @pci is NULL. The errors are those of gpupart_tenant_get(). -EBUSY: another process keeps
 * the tenant's file locked.
 */
int gpupart_tenant_quota_set(struct gpupart *gp, const char *name, const char *pci,
			     uint64_t bytes, uint64_t *before);

/*
 * Sets the quota like gpupart_tenant_quota_set(). If the tenant does not exist yet, the function
 * creates the tenant. The tenant's first process, or the parent of this process, must be in a job
 * whose name or id is @name. In two cases, the quotas on the tenant's other GPUs change too: @pci
 * is NULL, or @bytes differs from the quota that the previous call of this function set. After
 * the call, put the name into the environment variable GPUPART_TENANT and the bytes into
 * GPUPART_MEM. The errors are those of gpupart_tenant_quota_set(). -ENOSPC, -EACCES and so on:
 * /dev/shm cannot be written.
 */
int gpupart_tenant_begin(struct gpupart *gp, const char *name, const char *pci, uint64_t bytes,
			 uint64_t *before);

/*
 * Makes this process a member of the tenant @name. The GPU memory that the process allocates then
 * counts as memory of the tenant. If @name is NULL, the process joins the tenant in
 * GPUPART_TENANT. If that variable is not set, the process gets a new tenant whose name is a
 * unique id of the process. The process may use GPUs on which the tenant has no quota yet. @bytes
 * is the quota on each of these GPUs. If @bytes is 0, the quota is the value of GPUPART_MEM; if
 * that variable is not set either, there is no quota. A second call does nothing; its @name must
 * be the same name or NULL.
 *
 * An allocation that would exceed the quota fails with the error "out of memory", as on a full
 * GPU. cuMemGetInfo and cuDeviceTotalMem report the quota instead of the GPU's memory. The
 * function can be called before cuInit. Memory that the process allocated before the call is
 * counted at the next allocation. After a fork, the child is in no tenant at first. The child
 * joins the tenant when it uses a GPU itself.
 *
 * -EINVAL: @name is not a valid tenant name, or GPUPART_MEM is not a number. -EBUSY: this
 * process is in another tenant, another tool is subscribed to the driver, or another process
 * keeps the tenant's file locked. -EOPNOTSUPP: the driver does not report calls of its
 * functions.
 */
int gpupart_memory_start(struct gpupart *gp, const char *name, uint64_t bytes);

/* Counts of this process's allocation calls since it joined a tenant. */
struct gpupart_memory_counters {
	uint64_t refused;	/* calls that failed with "out of memory" because of the quota */
	/*
	 * Number of calls that may have allocated uncounted memory. Other processes can read
	 * this number too.
	 */
	uint64_t uncounted;
	/*
	 * Name of the latest call that may have allocated uncounted memory, or NULL. The string
	 * is never freed.
	 */
	const char *uncounted_call;
};

/* Fills *counters. Any thread may call this function at any time. */
void gpupart_memory_counters_get(struct gpupart_memory_counters *counters);

/*
 * Sets the quota of this process's tenant on one GPU. Like gpupart_tenant_quota_set(), this
 * function affects all processes of the tenant. If gpupart_memory_start() was not called, this
 * function first calls it with the values in the environment. The quota may come from outside the
 * process, in GPUPART_MEM. In this case, the function refuses a larger @bytes with -EPERM.
 */
int gpupart_memory_limit(struct gpupart *gp, const char *pci, uint64_t bytes);

/* ------------------------------------------------------------------- verify */

enum gpupart_verify_result {
	GPUPART_VERIFY_PASS,
	GPUPART_VERIFY_FAIL,
	GPUPART_VERIFY_SKIP,
};

struct gpupart_verify_row {
	const char *name;	/* for example "tpc-alone"; the same in all versions */
	const char *what;	/* the statement that this row proves, in one sentence */
	enum gpupart_verify_result result;
	const char *detail;	/* the measured result; if the row failed, the TPC that failed */
};

#define GPUPART_VERIFY_QUICK 1	/* run only the rows that take less than a second */

/*
 * Proves on the GPU that each TPC, GPC, uGPU and scope confines launches. For this proof, the
 * function makes launches that record %smid. The function calls @row one time for each row, in
 * order. @row must not be NULL. At the beginning, the function removes some sets on @gpu, and at
 * the end it restores them. These are the set of the process, a limit that gpupart_limit_set()
 * set, the set of the calling thread, the set of this thread's next launch, and the sets of the
 * default streams of this thread's context. A limit from outside, the sets of functions, and the
 * sets of the streams that the program created stay in force. No other thread should launch
 * kernels or set sets during the call. If all statements are proven, the function returns 0. If
 * rows failed, it returns the number of failed rows. If the proof could not run, it returns a
 * negative errno.
 *
 * -EINVAL: invalid flags, or @gpu is not attached. -EBUSY: a default stream of the context is
 * being captured, or a stream that synchronizes with the legacy default stream is being captured.
 * In this case nothing was changed. A capture of a non-blocking stream does not cause this error.
 * -EPERM, -EBUSY and so on: one of the sets could not be restored, and all other sets were
 * restored. If another process narrowed a limit from outside during the call, the function cannot
 * restore this limit. If @row began a capture, the function cannot restore the set of a default
 * stream.
 */
int gpupart_verify(struct gpupart *gp, struct gpupart_gpu *gpu, unsigned int flags,
		   void (*row)(const struct gpupart_verify_row *row, void *user), void *user);

/*
 * Makes one launch on @stream. Stores the TPCs on which the launch's blocks ran in *seen. If
 * @stream is NULL, the launch is on the legacy default stream. For a few microseconds, the launch
 * occupies all SMs that it may use. So on an idle GPU, *seen is the set in force. -EBUSY: @stream
 * or a blocking stream of its context is being captured. In this case nothing was launched,
 * because reading the result would invalidate the capture. The function does not detect a capture
 * that another thread begins during the call.
 */
int gpupart_census(struct gpupart *gp, struct gpupart_gpu *gpu, void *stream,
		   struct gpupart_tpcset *seen);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* GPUPART_MANAGE_H */
