/* SPDX-License-Identifier: MIT */
/*
 * libgpupart, for programs that manage GPUs: plans, other processes and jobs, what a node gave,
 * tenants and their memory, and the proof that sets confine. What gpupart.h says of index spaces,
 * errors, pointers and threads holds here too.
 *
 * Lists. A function that fills an array takes how many rows have room, and the size of a row of
 * the caller's, sizeof(*list): a library with a longer struct fills its beginning, one with a
 * shorter struct leaves zeros at its end. It returns how many rows there are, which may be more
 * than have room, or a negative errno: -EINVAL, a size of 0 or above 64 KiB; -ENOMEM.
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
 * @source: "kernel" (gpupart.ko), "rm" (NVIDIA's driver, no privilege needed),
 *	    "sample:NAME" (a capture that ships), a capture's path, or NULL: the
 *	    first of kernel and rm that answers; kernel's has its virtual GPCs from rm then.
 * @gpu: an index in PCI order ("0"), an address or a UUID; NULL is the first.
 *	 Captures hold one GPU: there it must match or be NULL.
 * The object is the caller's; close it. -ENODEV no such GPU, -ENOENT no such
 * file, -EACCES, -EBADMSG a capture that is cut or changed (the sentence has the
 * line), -EOPNOTSUPP a driver or chip that is not known.
 */
int gpupart_topology_open(struct gpupart *gp, const char *source, const char *gpu,
			  struct gpupart_topology **topo);
void gpupart_topology_close(struct gpupart_topology *topo);

/* The number of uGPUs; 0 where the source does not tell. */
unsigned int gpupart_topology_nr_ugpus(const struct gpupart_topology *topo);
/* One above the largest virtual GPC id; ids in between may have no TPC. 0 where not told. */
unsigned int gpupart_topology_end_vgpc(const struct gpupart_topology *topo);
/* The logical TPC that owns @smid, or -1. */
int gpupart_topology_sm_tpc(const struct gpupart_topology *topo, unsigned int smid);

/* The set of one uGPU or virtual GPC; empty where it is not there. */
struct gpupart_tpcset gpupart_topology_ugpu(const struct gpupart_topology *topo, unsigned int ugpu);
struct gpupart_tpcset gpupart_topology_vgpc(const struct gpupart_topology *topo, unsigned int vgpc);

/* -EINVAL for an empty set or a TPC that is not there, with its number in the sentence. */
int gpupart_set_check(struct gpupart *gp, const struct gpupart_topology *topo,
		      const struct gpupart_tpcset *set);

/*
 * Picks @nr TPCs that hold a cluster of @cluster blocks: all of @keep (may be empty), and the rest
 * from @from, as many of them as possible from @prefer (may be empty); the same for the same
 * arguments. -ENOSPC: there are no such TPCs; *set is as it was.
 */
int gpupart_set_pick(const struct gpupart_topology *topo, unsigned int cluster,
		     const struct gpupart_tpcset *keep, const struct gpupart_tpcset *prefer,
		     const struct gpupart_tpcset *from, unsigned int nr,
		     struct gpupart_tpcset *set);

/*
 * The GPUs that @source (as above) knows, in PCI order: up to @max of them into @list. Returns
 * how many there are. -EINVAL @source is a capture; else as gpupart_topology_open().
 */
int gpupart_gpu_list(struct gpupart *gp, const char *source, struct gpupart_gpu_info *list,
		     unsigned int max, size_t size);

/*
 * A number for "the same ids and the same membership": equal for two topologies
 * whose TPCs sit alike in GPCs, virtual GPCs and uGPUs and own the same SMs.
 */
uint64_t gpupart_topology_hash(const struct gpupart_topology *topo);

/*
 * Whether two sources say the same of one GPU, as far as both tell: which GPC, virtual
 * GPC, CPC and uGPU each TPC belongs to, which SMs it owns, which TPCs a GPC's fuses left.
 * tpc_in_gpc is not compared: sources count it each in its own way.
 */
bool gpupart_topology_agree(const struct gpupart_topology *a, const struct gpupart_topology *b);

/*
 * Writes @topo as a capture (a text format that opens again, with a checksum).
 * @captured_by goes into it and may be NULL. *text is malloc'ed, the caller's. -ENOMEM; -EINVAL a
 * text that a capture cannot hold.
 */
int gpupart_topology_capture(struct gpupart *gp, const struct gpupart_topology *topo,
			     const char *captured_by, char **text);

/* --------------------------------------------------------------------- plans */

#define GPUPART_PLAN_MAX_TENANTS 16

/* What one tenant asks of a GPU. All zero but for the name asks for one TPC and takes all. */
struct gpupart_demand {
	const char *name;	/* 1 to 63 letters, digits, '.', '_', '-', no '-' first */
	unsigned int min_tpcs;	/* at least; 0 is 1 */
	unsigned int max_tpcs;	/* at most; 0 is no bound */
	bool gpcs;		/* whole GPCs, shared with nobody */
	/* Over GPCs, for speed; else packed, for isolation. With @gpcs: as many of each uGPU. */
	bool spread;
	unsigned int cluster;	/* blocks of the largest cluster that it launches; 0 none */
	unsigned int weight;	/* of its share, 1 .. 1000; 0 is 1 */
	const char *same;	/* tenants, joined by '+', that share its uGPU; may be NULL */
	const char *apart;	/* tenants that have none of its TPCs' uGPUs; may be NULL */
};

struct gpupart_plan_tenant {
	char name[64];
	struct gpupart_tpcset set;
	int ugpu;		/* that it was bound to, by same or apart; -1 none */
};

struct gpupart_plan {
	uint64_t topology_hash;	/* gpupart_topology_hash() of what it was made for */
	bool optimal;		/* proven to be the best, see below: always, or there is no plan */
	unsigned int nr_steps;	/* of the search for it */
	unsigned int nr_tenants;
	struct gpupart_plan_tenant tenants[GPUPART_PLAN_MAX_TENANTS];	/* as given */
};

/*
 * Disjoint sets for @nr tenants (1 .. 16) out of @within (NULL: all TPCs). Pure: the same
 * for the same topology and demands, whatever their order.
 *
 * What always holds: each tenant has at least its minimum and at most its maximum; who
 * asks for whole GPCs has such and nobody else has a TPC of them, who asks for them spread the
 * same number of each uGPU; who names others in
 * `same` or `apart`, or is named there, lies in one uGPU, that of the ones in `same` and
 * of none in `apart`; who launches clusters of N blocks has a home: N / 2 TPCs (with two SMs
 * a TPC; rounded up to a power of two, so 6 blocks take the room of 8) in the largest
 * virtual GPC of one of its GPCs, so that a cluster finds an SM a block. Singletons are no
 * room for more than their own SMs. Where virtual GPCs are not told, GPCs count as such.
 *
 * Which of the plans for which this holds is made: tenants have a rank (who asks for whole
 * GPCs, then who packs, then who spreads; larger weight, minimum, cluster; name). The plan
 * is the first in the order of the following, one after the other, and inside each tenant
 * by tenant in rank order. Each is the best that the ones before leave, among the plans that
 * meet all demands: no other can be better in one without being worse in one before it.
 * 1. uGPUs of those that are bound to one: tenants joined by `same` at a time: the uGPU with
 *    the most TPCs that no minimum is promised of; the lowest.
 * 2. Whole GPCs. With d the distance of its TPCs from its fair share of what is left, and u
 *    the uGPUs it touches: the least 2d + (u - 1) * (TPCs of the GPU's largest GPC); fewer
 *    uGPUs; more TPCs; the GPCs that come first in the tenant's order.
 * 3. How many TPCs the others get: beyond the minima one by one, each to the tenant with the
 *    least for its weight who can still take one: max-min fair by weight. (A fair share in 2.
 *    is dealt likewise, as if GPCs and homes were no matter.)
 * 4. Homes of the others' clusters of more than one TPC: the GPC with the fewest homes; the
 *    first in the tenant's order.
 * 5. Their sets. Who packs: the fewest tenants in its GPCs beside its home's (homes that are
 *    reserved count, and as one more what is not @within); the fewest uGPUs; the fewest GPCs;
 *    the GPCs first in its order; of these, after its home, each as far as it goes. Who spreads:
 *    the fewest TPCs in GPCs of those who pack; there the most even; more in what is first in
 *    its order.
 * A tenant's order of GPCs: uGPUs with the fewest tenants that have TPCs at that point, then by
 * uGPU, then by GPC. In a GPC those with a home there have its lowest TPCs in the virtual GPC;
 * then the lowest of what is left, who launches clusters first from inside the virtual GPC,
 * the others from outside.
 *
 * Any kernel may launch clusters of GPUPART_PORTABLE_CLUSTER blocks. If the set of a tenant has
 * TPCs enough for one and holds none, the plan is made anew with a home for it, and for those
 * before it in rank whose sets hold one, as if their demands had said so (ranks stay). This is
 * done for one tenant after the other in rank order. If there is no such plan, the demands as
 * they are come first: gpupart_set_cluster() tells which sets hold none.
 *
 * -EINVAL a demand that contradicts itself (as GPCs of each uGPU for one that is bound to a
 * uGPU) or names nobody, -EOPNOTSUPP the source does not
 * tell GPCs, or not the uGPUs that are asked for, -ENOSPC: the sentence says whose demand
 * cannot be met and what would do: each was planned; what that would take too long for is not
 * said. -E2BIG: not decided within 100 million steps, about half a second. Never a plan that is
 * not the best instead.
 *
 * On GPUs of up to 12 GPCs that takes some milliseconds, planned or refused: of 16 tenants at
 * random none took 3, and a search for slow ones found up to 7 on boards of 8 GPCs and 25 on 12
 * with two uGPUs (tests/bench/plan.c). Only whole GPCs for many tenants on GPUs with more GPCs, of
 * many sizes, can take too many steps.
 */
int gpupart_plan_make(struct gpupart *gp, const struct gpupart_topology *topo,
		      const struct gpupart_tpcset *within, const struct gpupart_demand *demands,
		      unsigned int nr, struct gpupart_plan *plan);

/* -ESTALE where @topology_hash, a plan's, is not @topo's: both are in the sentence. */
int gpupart_plan_check(struct gpupart *gp, const struct gpupart_topology *topo,
		       uint64_t topology_hash);

/* -------------------------------------------------------------- this process */

/*
 * Shows this process in gpupart_process_list(), under @name (may be NULL). What other threads
 * launch meanwhile may not be counted. A process that is shown keeps its name: a second call
 * returns 0 and does nothing, also under another name. The child of a fork is not shown until it
 * calls this itself. -ENOMEM, -EROFS, -EACCES, .. where /dev/shm cannot be written: no harm to
 * anything else.
 */
int gpupart_process_publish(struct gpupart *gp, const char *name);

/*
 * For what caps the program that it is a part of: the limit from outside is from now on what
 * it and @set have in common, @set where there was none. Nothing in this process widens it
 * again; who sets the process's limit from outside replaces it. -EINVAL also for NULL,
 * -EPERM, and nothing changed, where they have nothing in common.
 */
int gpupart_limit_cap(struct gpupart *gp, struct gpupart_gpu *gpu,
		      const struct gpupart_tpcset *set);

/* How the mask bits of an attached GPU became trusted. */
struct gpupart_check {
	const char *layout;	/* "V04_00" */
	bool from_cache;	/* looked up, not measured now */
	unsigned int nr_proven;	/* TPCs */
	unsigned int nr_launches; /* short launches made for it, 0 if looked up */
	const char *streams;	/* "" or why stream sets are refused here */
	/*
	 * "" or why graphs keep the sets and the limit that their nodes were built with here:
	 * a later one may not reach them, and graphs_stale may not tell. As it is now: some
	 * drivers show it only when the program calls one of their functions.
	 */
	const char *graphs;
	char key[20];		/* hash of the checked map, in hexadecimal */
};
void gpupart_gpu_check(const struct gpupart_gpu *gpu, struct gpupart_check *check);

/* The driver's interface for callbacks, as an attached process found it; sizes in bytes. */
struct gpupart_driver {
	unsigned int table_bytes;
	int nr_features;		/* that a tool can declare; -1: this table does not tell */
	unsigned int params_bytes;	/* of a launch */
};
/* -EAGAIN: this process has not subscribed yet. */
int gpupart_driver_get(struct gpupart *gp, struct gpupart_driver *driver);

/* ----------------------------------------------------------------- processes */

#define GPUPART_JOB_STRLEN 64

struct gpupart_process {
	int pid;		/* 0: one that has no number in this pid namespace */
	char name[64];		/* GPUPART_NAME, or ""; what is not printable ASCII shows as '?' */
	char job[GPUPART_JOB_STRLEN];	/* id of the run that it belongs to, or "" */
	char pci[20];		/* of the first GPU with a limit, else of the first attached */
	char source[512];	/* of that GPU's topology: "rm", "kernel" or a capture's path */
	bool simulated;		/* that GPU is */
	unsigned int nr_gpus;	/* attached */
	char limit[GPUPART_TPCSET_STRLEN];	/* list form; "" where there is none */
	char problem[256];	/* why launches are not confined, or "" */
	struct gpupart_counters counters;
	/*
	 * Whose it is: all of the above but @pid is the word of that user's processes, and
	 * @source a name that another user made up.
	 */
	unsigned int uid;
	/* It runs under another version of this library: no counters, and no limit can be set. */
	bool other_version;
};

/*
 * The processes of this user (root: of all users) that confine launches now: up to
 * @max of them into @list, by pid. Returns how many there are. -EACCES, .. where /dev/shm cannot
 * be read. Of another user's folder no more than 4096 files and 4 MiB of /proc/PID/maps are
 * read, for one second of CPU time: a user that has more gets one more row, @pid 0 and no GPU,
 * whose @problem says it. So does one row of user 0 if /dev/shm has more than 65536 names, or all
 * users together take more than 4 seconds. A call for the number alone (@max 0) takes as long as
 * one for the list.
 */
int gpupart_process_list(struct gpupart *gp, struct gpupart_process *list, unsigned int max,
			 size_t size);

/*
 * Sends @signal to @process of the list, by its @pid and @uid, and to no process that got its
 * number since: a pidfd is opened, then the process is looked at again (its block's lock or
 * mapping, its uids), and @still (may be NULL) is asked with what it shows now, then the
 * signal is sent through the pidfd. -ESRCH it is gone, or is not the one that was listed;
 * -ENOSYS the kernel has no pidfd (before Linux 5.3): nothing is sent.
 */
int gpupart_process_signal(struct gpupart *gp, const struct gpupart_process *process, int signal,
			   bool (*still)(const struct gpupart_process *now, void *arg), void *arg);

/*
 * The limit of a running process of this user's, on the GPU at PCI address @pci: from its
 * next launch on (CUDA graphs included), also where that process narrowed it from inside.
 * Where the two have nothing in common the one from outside holds alone. NULL takes it
 * away. *before (may be NULL) is what was in force, empty for none. Safe against its
 * launches and against others that set it; who dies meanwhile leaves what was in force.
 * -ESRCH no such process of this user's (root too: change to that user first), -ENODEV
 * it does not use that GPU, -EAGAIN its mask bits are not proven (yet), -EINVAL an empty
 * set or a TPC that is not there, -EBUSY another sets it and does not end.
 */
int gpupart_process_limit_set(struct gpupart *gp, int pid, const char *pci,
			      const struct gpupart_tpcset *set, struct gpupart_tpcset *before);

/*
 * The same for who changes one process's limit again and again: found once, then about
 * 2 us a change. The object is the caller's; close it. _set fails with -ESRCH when the
 * process is gone. One thread at a time.
 */
struct gpupart_remote;
int gpupart_remote_open(struct gpupart *gp, int pid, const char *pci,
			struct gpupart_remote **remote);
int gpupart_remote_set(struct gpupart *gp, struct gpupart_remote *remote,
		       const struct gpupart_tpcset *set, struct gpupart_tpcset *before);
/*
 * What its limit was set to last from outside, or empty for none: who else changes it is seen.
 * No system call waits for that process. -ESRCH it is gone, -EBUSY it is changed all the time.
 */
int gpupart_remote_get(struct gpupart *gp, const struct gpupart_remote *remote,
		       struct gpupart_tpcset *set);
void gpupart_remote_close(struct gpupart_remote *remote);

/* ------------------------------------------------------------------- records */

/*
 * What the GPU itself wrote when launches ended, for one process on one GPU. A launch has a record
 * unless it is unrecorded: on a stream beyond the 64 that have a ring, in a full ring, or with no
 * release slot of its own. Times are nanoseconds of the GPU's %globaltimer. The begin of a kernel
 * is not recorded: it is taken as its submission or, if that is later, the end of the launch before
 * it on its stream. So busy times are upper bounds for a stream that waits for events, copies or a
 * time slice. All of that holds for the calling process as for others; gpupart-stat(1) measures a
 * lower bound, too, by looking again and again while launches run. Launches of graphs are launches;
 * while they follow each other their time is one: from the first one's submission to the last end.
 * A process is read by others if it was published (gpupart_process_publish()) before its first
 * context was made or attached.
 */
#define GPUPART_RECORDS_NR_FUNCTIONS 64

struct gpupart_records_function {
	char name[96];		/* as the driver has it, cut; "" if it is not known (yet) */
	uint64_t count;		/* launches that ended, or fewer: see struct gpupart_records */
	uint64_t ns;		/* all of them together */
	uint64_t longest_ns;
};

struct gpupart_records {
	char pci[20];
	bool on;		/* launches are recorded; false: all that follows is 0 */
	bool all_known;		/* no launch counts as unknown: idle if none is outstanding */
	uint64_t issued;	/* launches that have a record */
	uint64_t ended;		/* of which the GPU has written it */
	/* issued - ended - those of a lost context + graphs that are being launched right now */
	uint64_t outstanding;
	uint64_t unrecorded;	/* launches that have no record, since the process began */
	/*
	 * Launches of which nothing says whether they have ended: of a context that was lost or
	 * destroyed, unrecorded ones with no later record on their stream, and those of @graphs.
	 * Not 0: not idle.
	 */
	uint64_t unknown;
	uint64_t untimed;	/* ended, and their time was overwritten or never written */
	uint64_t last_end_ns;	/* 0: none has ended yet */
	uint64_t busy_ns;	/* one launch or more ran: the union of their times */
	uint64_t kernels_ns;	/* the sum of their times */
	uint64_t late_ns;	/* of kernels_ns: folded too late to be put into busy_ns */
	/* Launches of graphs that have no record: their last node is no kernel, for example. */
	uint64_t graphs;
	/* Those with the most time: while there are more functions counts may be too small. */
	unsigned int nr_functions;
	struct gpupart_records_function functions[GPUPART_RECORDS_NR_FUNCTIONS];
};

/*
 * The records of a process of this user (root: of any) on the GPU at PCI address @pci, found once
 * and read many times. @pid 0: the calling process. The object is the caller's; close it. One
 * thread at a time. -ESRCH no such process shows itself; -ENODEV it does not use that GPU; -EPROTO
 * it runs under another version of this library.
 */
struct gpupart_records_reader;
int gpupart_records_open(struct gpupart *gp, int pid, const char *pci,
			 struct gpupart_records_reader **reader);
/*
 * All of it as it is now. @size is the size of the caller's struct: of a larger one the rest
 * becomes 0. Nothing waits for that process, and nothing that it writes can harm the reader: its
 * pages are read by system calls. -ESRCH it is gone; -EINVAL @size 0 or above 64 KiB.
 */
int gpupart_records_read(struct gpupart *gp, struct gpupart_records_reader *reader,
			 struct gpupart_records *records, size_t size);
/*
 * Whether launches are outstanding: 1 busy, or it cannot be known; 0 idle. Up to 100 ns: no system
 * call. For processes of this user only, which the caller trusts: their pages are mapped at the
 * first call, and one that truncates its own file ends the caller with a bus error. -EPERM another
 * user's process; -EINVAL records are off in it.
 */
int gpupart_records_busy(struct gpupart *gp, struct gpupart_records_reader *reader);
void gpupart_records_close(struct gpupart_records_reader *reader);

/*
 * The same of the calling process's launches on one @stream that was created, since its first one:
 * busy_ns is their time, one after the other. What is not told by stream (untimed, late_ns,
 * graphs) is the process's, and so is what makes all_known false; functions are not told.
 * -EOPNOTSUPP there are no records, with the reason; -EINVAL a default stream, or none.
 */
int gpupart_records_stream(struct gpupart *gp, struct gpupart_gpu *gpu, void *stream,
			   struct gpupart_records *records, size_t size);

/* ---------------------------------------------------------------------- jobs */

/*
 * A job: one run of a program and of all that it starts, also later. Its id is in
 * GPUPART_JOB, which children inherit; its limit is noted below /dev/shm, and who begins
 * to use the GPU takes it from there instead of from GPUPART_SET. A job begun inside
 * another obeys that one's limit as well.
 */
struct gpupart_job {
	char id[GPUPART_JOB_STRLEN];
	char parent[GPUPART_JOB_STRLEN];	/* the job it was begun in, or "" */
	char name[64];		/* or "" */
	int pid;		/* of the process that began it; 0 elsewhere, and when it ended */
	bool elsewhere;		/* in another pid namespace: not all of it may be seen */
	char pci[20];
	char source[512];	/* of the topology, as a process has it */
	bool simulated;		/* a capture's GPU */
	char limit[GPUPART_TPCSET_STRLEN];	/* that holds now, list form */
	unsigned int uid;	/* whose it is: this user, but of a node's jobs, below */
	bool other_version;	/* another version's: its limit cannot be set */
};

/*
 * The calling process, and what it becomes by exec and starts, is a job from now on: put
 * @id (GPUPART_JOB_STRLEN long) into GPUPART_JOB. Its parent is the job that GPUPART_JOB
 * names now; jobs may be begun inside one another to any depth. A process that begins one on
 * a further GPU has a job on each; a second one on the same GPU changes the first. @name may
 * be NULL, else it is 1 to 63 letters, digits, '.', '_' or '-', the first no '-'; @pci,
 * "0000:0d:00.0", is the address of the GPU that @topo is of (of a capture the one that is
 * simulated). A job is forgotten when it has no process any more: none that began it, that
 * shows itself, or that was started (by exec) with the id of it, or of a job inside it, in
 * its environment.
 * -EINVAL for the set as gpupart_set_check() has it, another name, no PCI address; -EROFS,
 * -EACCES, -EFBIG, .. where /dev/shm cannot be written: the job is then limited by
 * GPUPART_SET alone.
 */
int gpupart_job_begin(struct gpupart *gp, const char *name, const struct gpupart_topology *topo,
		      const char *pci, const struct gpupart_tpcset *set, char *id);

/*
 * This user's jobs, and what the node gave him (root: all that it gave): up to @max of them
 * into @list. Returns how many there are; -EINVAL and -ENOMEM as all lists.
 */
int gpupart_job_list(struct gpupart *gp, struct gpupart_job *list, unsigned int max, size_t size);

/*
 * The limit of a job: of its processes now, those of jobs begun inside it included, and of
 * those that come. *before may be NULL. -ESRCH no such job, -EINVAL an empty set or a TPC
 * that is not there, -EBUSY another sets a job and does not end; else as above, for the
 * processes that could not be changed: the others are. Processes that begin to use the GPU
 * at this moment take it from the note; a second at most is waited for them.
 */
int gpupart_job_limit_set(struct gpupart *gp, const char *id, const struct gpupart_tpcset *set,
			  struct gpupart_tpcset *before);

/* ------------------------------------------------------------- a node's jobs */

/*
 * What a scheduler, as root, gives a user of one GPU of this node: TPCs, and memory. It is a
 * job like those above, with an id of its own, and no process keeps it: it is there until
 * root drops it, or the node boots. Root alone changes its limit; while a user who is not
 * root was given TPCs of a GPU, no limit of his processes there, whether by GPUPART_SET, by a
 * job or from outside, holds more than all that he was given (-EPERM), nor a tenant's quota
 * more memory, and GPUPART_DISABLE changes nothing. Any user may read it.
 */
#define GPUPART_GRANT_ROOT "/run/gpupart/jobs"

struct gpupart_grant {
	char id[GPUPART_JOB_STRLEN];	/* "0-" and hexadecimal digits or '-': for GPUPART_JOB */
	char name[64];		/* as of a job, and of its tenant */
	unsigned int uid;
	char pci[20];		/* of the GPU, as gpupart_job_begin() has it */
	char source[512];	/* of its topology: "rm", "kernel" or a capture's path */
	char key[20];		/* of its checked map, as struct gpupart_check has it, or "" */
	unsigned int nr_tpcs;	/* of the GPU */
	struct gpupart_tpcset set;	/* empty: it was given nothing, @why says why */
	uint64_t memory;	/* bytes; 0: no quota */
	char asked[128];	/* what was asked for, in the scheduler's words */
	char why[512];
	bool other_version;	/* another version gave it: it can be dropped, and not put */
	bool strict;		/* its user's processes are confined or do not use the GPU */
};

/*
 * All of the node's: up to @max into @list, by id. Returns how many there are, or a negative
 * errno: -EPERM where the folder is not root's alone, so that nothing in it counts; -EUSERS where a
 * user namespace hides which grant is the caller's, and those that may be share no TPC.
 */
int gpupart_grant_list(struct gpupart *gp, struct gpupart_grant *list, unsigned int max,
		       size_t size);

/* ------------------------------------------------------------------- memory */

/*
 * A tenant: programs of one user that share memory of GPUs. What its processes use on a
 * GPU adds up, and where it has a quota there, memory beyond that is refused to them as the
 * driver refuses it on a full GPU. Sizes are bytes; a GPU is its PCI address as
 * gpupart_gpu_info has it; a name is 1 to 63 letters, digits, '.', '_' or '-', the first no
 * '-'. A tenant is there while a process is in it, or a job lives that has its
 * name, or its name for an id: then it is forgotten, and its quotas. What is counted and
 * what is not: Documentation/user/memory.md. All of these may be called from any thread.
 */
#define GPUPART_TENANT_STRLEN 64

struct gpupart_tenant {
	char name[GPUPART_TENANT_STRLEN];
	unsigned int uid;	/* whose it is, and whose word the rest is */
	char pci[20];		/* "" where it has neither quota nor use on any GPU */
	bool simulated;		/* that GPU is */
	uint64_t quota;		/* 0: none on this GPU */
	uint64_t used;		/* by all its processes that live; may be above the quota */
	unsigned int nr_processes;	/* in it now, whether they use this GPU or not */
	bool other_version;	/* its processes are not known, and its quota cannot be set */
};

/*
 * A row a GPU of each tenant of this user (root: of all users), by user and name: up to
 * @max of them into @list. Returns how many there are; -EINVAL and -ENOMEM as all lists. Forgets
 * those that no process is in and that no job has.
 */
int gpupart_tenant_list(struct gpupart *gp, struct gpupart_tenant *list, unsigned int max,
			size_t size);

struct gpupart_tenant_process {
	char tenant[GPUPART_TENANT_STRLEN];
	unsigned int uid;
	char pci[20];		/* "" of one that has used no GPU yet */
	int pid;		/* 0: it has no number in this pid namespace */
	int inner_pid;		/* in its own */
	char program[64];	/* as it was called; printable ASCII */
	uint64_t used;		/* on this GPU */
	uint64_t uncounted;	/* its calls, on any GPU, that may have got what is not counted */
};

/*
 * The same for their processes: a row a GPU that each uses something of, or one without; -EINVAL
 * and -ENOMEM as all lists.
 */
int gpupart_tenant_process_list(struct gpupart *gp, struct gpupart_tenant_process *list,
				unsigned int max, size_t size);

/*
 * One of this user's on one GPU. @name NULL: the one that this process is in, or is to be in
 * (GPUPART_TENANT). -EINVAL no tenant's name or no PCI address; -ESRCH there is no such
 * tenant, or this process is in none; -EPERM, -EPROTO its file is not to be trusted.
 */
int gpupart_tenant_get(struct gpupart *gp, const char *name, const char *pci,
		       struct gpupart_tenant *tenant);

/*
 * Its quota on that GPU from now on, also while its programs run: @bytes, 1 or more. @pci
 * NULL: on each GPU, also on those that its programs use first later on. Less than is used
 * takes nothing away; what is asked for then fails until enough was given back. *before,
 * which may be NULL, is what it was, 0 for none and for @pci NULL. Errors as above, and
 * -EBUSY: another process holds the tenant's file and does not end.
 */
int gpupart_tenant_quota_set(struct gpupart *gp, const char *name, const char *pci,
			     uint64_t bytes, uint64_t *before);

/*
 * The same for a tenant that need not be there yet, and where @bytes is another quota than
 * was last given so, or with NULL, also for its other GPUs: what is to become its first
 * process, or to start it, is a job of that name or id. For that process GPUPART_TENANT, the
 * name, and GPUPART_MEM, the bytes, belong into the environment. -ENOSPC, -EACCES, .. where
 * /dev/shm cannot be written.
 */
int gpupart_tenant_begin(struct gpupart *gp, const char *name, const char *pci, uint64_t bytes,
			 uint64_t *before);

/*
 * This process is in a tenant from now on, and what it gets of GPUs' memory is counted there.
 * @name NULL: the one of GPUPART_TENANT, or else one of its own, which is this process's id.
 * @bytes: the quota on each GPU that the process comes to use and the tenant has none on; 0:
 * that of GPUPART_MEM, or else none. A second call may only give the same name, or NULL, and
 * does nothing. A call that would go beyond the quota is out of memory, as on a GPU that has
 * no more; cuMemGetInfo and cuDeviceTotalMem tell of the quota alone. Works before cuInit;
 * what was got before it is charged at the next allocation. A child of a fork is in no tenant
 * before it uses a GPU itself. -EINVAL no tenant's name, or no number in GPUPART_MEM; -EBUSY:
 * this process is in another tenant, another tool has the driver's one place for such, or as
 * above; -EOPNOTSUPP: this driver does not tell of its functions.
 */
int gpupart_memory_start(struct gpupart *gp, const char *name, uint64_t bytes);

/* What became of this process's calls that get memory, since it is in a tenant. */
struct gpupart_memory_counters {
	uint64_t refused;	/* out of memory by the quota */
	/* May have got memory that is not counted; others see it, too, of who is in a tenant. */
	uint64_t uncounted;
	const char *uncounted_call;	/* the last of those, or NULL; lives for ever */
};

/* Fills *counters; any thread, at any time. */
void gpupart_memory_counters_get(struct gpupart_memory_counters *counters);

/*
 * The quota of this process's tenant on one GPU, all its processes': as
 * gpupart_tenant_quota_set(), after gpupart_memory_start() of what the environment says where
 * that was not called. Where GPUPART_MEM came from outside it may only become smaller: -EPERM.
 */
int gpupart_memory_limit(struct gpupart *gp, const char *pci, uint64_t bytes);

/* ------------------------------------------------------------------- verify */

enum gpupart_verify_result {
	GPUPART_VERIFY_PASS,
	GPUPART_VERIFY_FAIL,
	GPUPART_VERIFY_SKIP,
};

struct gpupart_verify_row {
	const char *name;	/* "tpc-alone", stable */
	const char *what;	/* a sentence */
	enum gpupart_verify_result result;
	const char *detail;	/* what was seen; names the TPC where it failed */
};

#define GPUPART_VERIFY_QUICK 1	/* the rows that take under a second */

/*
 * Proves on the GPU, by launches that record %smid, that every TPC, GPC, uGPU and
 * scope confines; @row is called once a row, in order, and is needed. On @gpu the
 * process's set, a limit given by gpupart_limit_set(), and the calling thread's sets
 * (its own, its next launch's, those of its context's default streams) are taken away
 * for the time and put back; a limit from outside stays, and so do sets of functions and
 * of created streams. No other thread should launch or set meanwhile. Returns the number
 * of rows that failed (0 good) or a negative errno where it could not run: -EINVAL for
 * flags that are none or a @gpu not attached; -EBUSY, and nothing was touched, during a
 * capture of a default stream of the context or of a stream that waits for the legacy one
 * (a non-blocking one's does no harm). -EPERM, -EBUSY, .. where something could not be put
 * back, all else is: a limit when one from outside was narrowed meanwhile, a default
 * stream's set when @row began a capture.
 */
int gpupart_verify(struct gpupart *gp, struct gpupart_gpu *gpu, unsigned int flags,
		   void (*row)(const struct gpupart_verify_row *row, void *user), void *user);

/*
 * One launch on @stream (NULL: the legacy default stream) that records where its
 * blocks ran: the TPCs that were seen. It keeps every SM it may use busy for a
 * few microseconds, so on an idle GPU *seen is the set in force. -EBUSY, and nothing is
 * launched, while @stream or any blocking stream of its context is captured: reading the
 * record would spoil the capture. One that another thread begins meanwhile is not seen.
 */
int gpupart_census(struct gpupart *gp, struct gpupart_gpu *gpu, void *stream,
		   struct gpupart_tpcset *seen);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* GPUPART_MANAGE_H */
