// SPDX-License-Identifier: MIT
/*
 * Tests lending on the simulated GPU. The lender and the borrower are separate runs, and this
 * process watches the lender. For the library, kernels with the same function and grid are the
 * same kernel, even if their durations differ. So in this test, a launch can take longer than
 * expected.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include "lib/confine/lend.h"
#include "lib/driver/cuda.h"
#include "lib/private.h"
#include "lib/records/records.h"
#include "tests/lib/scenario.h"

#define OWN	"0-3"
#define LENT	"8-11"
#define BOTH	"0-3,8-11"
#define SECOND	1000000000ull
#define TRIES	400
#define CLOCK	"GPUPART_SIM_FAULTS=host-clock,host-thread"	/* kernels end even if the program
								 * makes no call */

static void say(const char *text)
{
	if (write(1, text, strlen(text)) < 0)
		_exit(3);
}

/* ------------------------------------------------------------------- the two programs */

/* The number of outstanding launches of this process. */
static U64 outstanding(void)
{
	static struct gpupart_records_reader *reader;
	struct gpupart_records r;

	if (!reader && gpupart_records_open(gp, getpid(), getenv("TEST_PCI"), &reader))
		return 999;
	return gpupart_records_read(gp, reader, &r, sizeof(r)) ? 999 : r.outstanding;
}

/*
 * Makes a launch of 4 blocks. The launch has the attribute @id with the value 1, or clusters of
 * one block.
 */
static int launch_with(struct program *p, P stream, int id)
{
	static CU (*launch)(const struct cuda_launch_config *, P, P *, P *);
	struct cuda_launch_attr attr = { .id = id, .dim = { 1, id == 4, id == 4 } };
	const struct cuda_launch_config config = {
		{ 4, 1, 1 }, { 32, 1, 1 }, 0, stream, &attr, id >= 0,
	};
	unsigned int ns = 1000;
	P args[] = { &p->out, &ns };

	if (!launch)
		*(void **)&launch = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuLaunchKernelEx");
	return launch(&config, p->function, args, NULL) ?: cuStreamSynchronize(stream);
}

/* Launches a graph with one kernel of this duration. The first call creates the graph. */
static int launch_graph(struct program *p, P stream, unsigned int ns)
{
	static P graph, exec;
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);
#define CALL(name, types, args) ((CU (*)types)dlsym(lib, name)) args

	if (!exec && (CALL("cuStreamBeginCapture_v2", (P, int), (stream, 2)) ||
		      program_launch(p, stream, 1, ns) ||
		      CALL("cuStreamEndCapture", (P, P *), (stream, &graph)) ||
		      CALL("cuGraphInstantiateWithFlags", (P *, P, U64), (&exec, graph, 0))))
		return 1;
	return CALL("cuGraphLaunch", (P, P), (exec, stream));
}

/*
 * Makes a launch in a forked child. The launch must fail there. Returns the wait status of the
 * child.
 */
static int launch_in_child(struct program *p, P stream)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid)
		_exit(!program_launch(p, stream, 1, 1000));
	waitpid(pid, &status, 0);
	return status;
}

/* Launches on the second GPU, which is not attached. */
static int launch_elsewhere(const struct program *own, unsigned int ns)
{
	static struct program p;
	static P stream;

	if (!stream && (program_start(&p, 1) || cuStreamCreate(&stream, 1)))
		return 1;
	return cuCtxSetCurrent(p.ctx) || program_launch(&p, stream, 1, ns) ||
	       cuCtxSetCurrent(own->ctx);
}

static int set_own(char what, uint64_t tpcs)
{
	struct gpupart_tpcset set = { { tpcs } };

	if (gpupart_attach(gp, "cuda:0", NULL, &gpu))
		return 1;
	return what == 'i' ? gpupart_limit_set(gp, gpu, &set) :
	       gpupart_thread_set(gp, gpu, what == 't' ? &set : NULL);
}

/* Launches in stream 1 from another thread, which may have to wait. */
static struct {
	struct program *p;
	P stream;
	unsigned int ns;
} threads;

static void *launch_other(void *none)
{
	cuCtxSetCurrent(threads.p->ctx);
	program_launch(threads.p, threads.stream, 1, threads.ns);
	return none;
}

static int launch_in_thread(struct program *p, P stream, unsigned int ns)
{
	pthread_t thread;

	threads.p = p;
	threads.stream = stream;
	threads.ns = ns;
	return pthread_create(&thread, NULL, launch_other, NULL) || pthread_detach(thread);
}

/* Makes one launch in each of 70 streams. More than 60 streams have no ring. */
static int launch_in_many(struct program *p, unsigned int ns)
{
	int err = 0;
	P stream;

	for (int n = 0; n < 70 && !err; n++)
		err = cuStreamCreate(&stream, 1) || program_launch(p, stream, 1, ns) ||
		      cuStreamSynchronize(stream);
	return err;
}

/*
 * Executes commands. A command is a character and a number, and the answer is one line. c:
 * launches a census, waits for its end, and answers with its TPCs. l NS: launches in stream 0
 * without waiting, and answers with the number of outstanding launches. m NS: does the same in
 * stream 1. w: waits for stream 1. t MASK: sets this thread's set. u: removes this thread's set.
 * i MASK: sets the program's own limit. e ID: launches with this attribute. g NS: launches a
 * graph in stream 1. f: launches in the child of a fork, and answers with the child's wait
 * status. o NS: launches on the second GPU without waiting. x: loads and unloads a module.
 * p NS: launches in stream 1 from another thread. s NS: launches in the last of many streams.
 */
static int be_program(void)
{
	struct gpupart_topology *topo;
	struct gpupart_tpcset seen;
	char line[64], list[GPUPART_TPCSET_STRLEN], *first = strdup(getenv("GPUPART_SIM"));
	static const char ptx[] = ".version 4.2\n.target sm_30\n.address_size 64\n";
	struct program p;
	P streams[2], module;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	first[strcspn(first, ":")] = 0;
	if (gpupart_open(&gp) || gpupart_topology_open(gp, first, NULL, &topo) ||
	    driver_open() || program_start(&p, 0) || cuStreamCreate(&streams[0], 1) ||
	    cuStreamCreate(&streams[1], 1))
		return 1;
	/* These launches show the library the time of the GPU's clock. */
	for (int i = 0; i < 16; i++)
		if (program_launch(&p, streams[0], 2, 1000) || cuStreamSynchronize(streams[0]))
			return 1;
	say("ready\n");
	while (fgets(line, sizeof(line), stdin)) {
		unsigned int ns = strtoul(line + 1, NULL, 10);
		bool second = *line == 'm' || *line == 'w';
		int err = 0;

		snprintf(list, sizeof(list), "-");
		if (*line == 'c' && !(err = program_census(&p, topo, streams[0], &seen)))
			gpupart_tpcset_format_list(&seen, list, sizeof(list));
		else if (*line == 'l' || *line == 'm')
			err = program_launch(&p, streams[second], 1, ns);
		else if (*line == 'w')
			err = cuStreamSynchronize(streams[1]);
		else if (*line == 't' || *line == 'u' || *line == 'i')
			err = set_own(*line, ns);
		else if (*line == 'g')
			err = launch_graph(&p, streams[1], ns);
		else if (*line == 'f')
			err = launch_in_child(&p, streams[0]);
		else if (*line == 'o')
			err = launch_elsewhere(&p, ns);
		else if (*line == 'p')
			err = launch_in_thread(&p, streams[1], ns);
		else if (*line == 's')
			err = launch_in_many(&p, ns);
		else if (*line == 'x')
			err = cuModuleLoadData(&module, ptx) || cuModuleUnload(module);
		else if (*line == 'e')
			err = launch_with(&p, streams[0], ns);
		if (*line != 'c')
			snprintf(list, sizeof(list), "%llu", outstanding());
		printf("%d %s\n", err, list);
		fflush(stdout);
	}
	return 0;
}

struct peer {
	pid_t pid;
	int in;
	FILE *out;
	struct gpupart_report *report;
	const char *id;
	const char *faults;	/* GPUPART_SIM_FAULTS of the program; NULL: those of this process */
};

/* Starts a program with the set @set, as a separate run. */
static bool start(struct peer *peer, const char *set, U64 depth, U64 limit)
{
	char inject[4096], line[64] = "";
	int to[2], from[2];

	snprintf(inject, sizeof(inject), "%s/lib/gpupart/libgpupart-inject.so",
		 getenv("TEST_BUILD"));
	if (gpupart_report_open(gp, &peer->report, &peer->id) || pipe2(to, O_CLOEXEC) ||
	    pipe2(from, O_CLOEXEC))
		return false;
	gpupart_lend_bound(peer->report, depth, limit);
	peer->pid = fork();
	if (!peer->pid) {
		dup2(to[0], 0);
		dup2(from[1], 1);
		setenv("CUDA_INJECTION64_PATH", inject, 1);
		setenv("GPUPART_SET", set, 1);
		setenv("GPUPART_REPORT", peer->id, 1);
		if (peer->faults)
			setenv("GPUPART_SIM_FAULTS", peer->faults, 1);
		execl("/proc/self/exe", "lend", "program", (char *)NULL);
		_exit(126);
	}
	close(to[0]);
	close(from[1]);
	peer->in = to[1];
	peer->out = fdopen(from[0], "r");
	return fgets(line, sizeof(line), peer->out) && !strcmp(line, "ready\n");
}

/* Sends a command and returns the answer, or "" if there is no answer. */
static const char *ask(struct peer *peer, char what, unsigned int ns)
{
	static char line[256];
	char command[32];

	snprintf(command, sizeof(command), "%c%u\n", what, ns);
	if (write(peer->in, command, strlen(command)) < 0 ||
	    !fgets(line, sizeof(line), peer->out))
		return "";
	line[strcspn(line, "\n")] = 0;
	if (getenv("TEST_SHOWS"))
		printf("# %c%u: %s\n", what, ns, line);
	return line;
}

/* ------------------------------------------------------------------- the watcher */

static struct gpupart_lender *lender;
static pthread_mutex_t looking = PTHREAD_MUTEX_INITIALIZER;
static atomic_int looked;	/* result of the last check */

static void *look_always(void *none)
{
	struct gpupart mine = { "" };

	for (;; usleep(500)) {
		pthread_mutex_lock(&looking);
		if (lender)
			atomic_store(&looked, gpupart_lender_update(&mine, lender));
		pthread_mutex_unlock(&looking);
	}
	return none;
}

/* From this call to the call of looks_go_on(), the watcher makes no check. */
static void looks_pause(void)
{
	pthread_mutex_lock(&looking);
}

static void looks_go_on(void)
{
	pthread_mutex_unlock(&looking);
}

/* Waits until a check finds @what. */
static bool finds(int what)
{
	for (int n = 0; n < 10000 && atomic_load(&looked) != what; n++)
		usleep(1000);
	return atomic_load(&looked) == what;
}

/* If the watcher gets no CPU for a while, no TPCs are lent. So try several times. */
static bool runs_lent(struct peer *peer)
{
	for (int n = 0; n < TRIES; n++)
		if (!strcmp(ask(peer, 'c', 0), "0 " BOTH))
			return true;
	return false;
}

static bool runs_unlent(struct peer *peer, int times)
{
	const char *answer = "";

	for (int n = 0; n < times; n++)
		if (strcmp(answer = ask(peer, 'c', 0), "0 " OWN)) {
			printf("# launch %d: %s\n", n, answer);
			return false;
		}
	return true;
}

static struct peer serve, batch;

static struct lend_memory *shared(const struct peer *peer)
{
	return &((struct report_memory *)((struct memfd *)peer->report)->head)->lend;
}

/* For the borrower, the lender is idle until looks_go_on(). */
static void always_idle(void)
{
	looks_pause();
	shared(&batch)->lease = UINT64_MAX;
	shared(&batch)->idle = atomic_load(&shared(&serve)->busy);
}

static bool find_pci(void)
{
	struct gpupart_process *list = calloc(64, sizeof(*list));
	int nr = gpupart_process_list(gp, list, 64, sizeof(*list));

	for (int i = 0; i < nr && i < 64; i++)
		if (list[i].pid == batch.pid)
			return !setenv("TEST_PCI", list[i].pci, 1);
	return false;
}

static int open_lender(void)
{
	return gpupart_lender_open(gp, batch.report, serve.id, getenv("TEST_PCI"), &serve.pid, 1,
				   NULL, &lender);
}

/* Both programs run, and nothing is lent yet. */
static bool both(U64 depth, U64 limit)
{
	pthread_t thread;
	bool good;

	if (!gpupart_open(&gp) && !getenv("TEST_PCI"))
		setenv("TEST_PCI", "0000:01:00.0", 1);
	good = start(&serve, LENT, 0, 0) && start(&batch, OWN, depth, limit) && find_pci();
	pthread_create(&thread, NULL, look_always, NULL);
	return tap_ok(good, "a program with TPCs " LENT ", one with " OWN);
}

/*
 * The lender's records begin with the creation of its first context. So one launch makes no
 * difference.
 */
static bool lends(U64 depth, U64 limit)
{
	if (!both(depth, limit))
		return false;
	looks_pause();
	if (!tap_ok(!open_lender(), "lends: %s", gpupart_error(gp)))
		return false;
	looks_go_on();
	return tap_ok(finds(1), "is idle");
}

/* ------------------------------------------------------------------- scenarios */

static void idle_and_busy(void)
{
	if (!lends(20 * SECOND, 20 * SECOND))
		return;
	tap_ok(runs_unlent(&batch, LEND_RUNS), "a kernel gets nothing before its time is known");
	tap_ok(runs_lent(&batch), "then it gets the idle program's TPCs, too");
	looks_pause();
	tap_ok(!strcmp(ask(&serve, 'l', 300000000), "0 1"), "the lender launches");
	tap_ok(runs_unlent(&batch, 3), "from then on it gets its own, although no process watches");
	looks_go_on();
	tap_ok(finds(0) && runs_unlent(&batch, 1), "a look finds the lender busy");
	tap_ok(finds(1) && runs_lent(&batch), "it is idle again, and lends");
	tap_ok(atomic_load(&shared(&batch)->lent) >= 2 && !shared(&batch)->revoked,
	       "%llu launches were lent TPCs", (U64)shared(&batch)->lent);
}

/* The second launch of a graph builds no node, so it has no launch callback. */
static void graph(void)
{
	if (!lends(20 * SECOND, 20 * SECOND) ||
	    !tap_ok(*ask(&serve, 'g', 300000000) == '0' && !strcmp(ask(&serve, 'w', 0), "0 0") &&
		    finds(1) && runs_lent(&batch), "the lender has launched a graph"))
		return;
	looks_pause();
	shared(&batch)->lease = UINT64_MAX;
	tap_ok(runs_lent(&batch) && !strcmp(ask(&serve, 'g', 0), "0 1") && runs_unlent(&batch, 3),
	       "it launches it again, and lends nothing from then on");
	looks_go_on();
	tap_ok(finds(0) && finds(1) && runs_lent(&batch), "until that has ended");
}

/* Returns true if the lender is busy in each of 20 checks, and had no new launch. */
static bool stays_busy(void)
{
	bool busy = true;

	looks_pause();
	for (int n = 0; busy && n < 20; n++)
		busy = gpupart_lender_update(gp, lender) == 0;
	looks_go_on();
	return busy && runs_unlent(&batch, 3);
}

/* Borrowers learn of a launch at once. It makes the lender busy for ever, because it never ends. */
static void unreadable(void)
{
	U64 before;

	serve.faults = "host-clock,host-thread,params-size=96";
	if (!both(20 * SECOND, 20 * SECOND))
		return;
	looks_pause();
	tap_ok(!open_lender(), "a lender whose launches cannot be read: %s", gpupart_error(gp));
	before = shared(&serve)->busy;
	tap_ok(*ask(&serve, 'l', 1000) == '0' && shared(&serve)->busy != before,
	       "a launch changes the number that borrowers read");
	looks_go_on();
	tap_ok(stays_busy(), "it lends nothing");
}

static void elsewhere(void)
{
	U64 before;

	if (!lends(20 * SECOND, 20 * SECOND))
		return;
	before = shared(&serve)->busy;
	tap_ok(*ask(&serve, 'o', 1000) == '0' && shared(&serve)->busy == before && finds(1) &&
	       runs_lent(&batch), "the lender launches on a GPU that is not attached: it lends");
}

/* The library does not know the driver's cuGraphLaunch(). So it stops recording. */
static void stopped(void)
{
	serve.faults = "host-clock,host-thread,renamed=514";
	if (!lends(20 * SECOND, 20 * SECOND))
		return;
	tap_ok(*ask(&serve, 'g', 1000) == '0' && stays_busy(),
	       "the lender's records stop: it lends nothing");
}

static void lease(void)
{
	U64 now;

	if (!lends(20 * SECOND, 20 * SECOND) || !tap_ok(runs_lent(&batch), "it borrows"))
		return;
	looks_pause();
	now = shared(&batch)->lease;
	while (records_counter() < now)
		usleep(1000);
	tap_ok(runs_unlent(&batch, 3), "no watcher for the time of a lease: nothing is lent");
	looks_go_on();
	tap_ok(runs_lent(&batch), "a process watches again: it borrows again");
	pthread_mutex_lock(&looking);
	gpupart_lender_close(lender);
	lender = NULL;
	tap_ok(runs_unlent(&batch, 3), "it is closed: nothing is lent");
	pthread_mutex_unlock(&looking);
}

/* Returns the number of lines of /proc/PID/maps that contain @text. */
static int nr_maps(pid_t pid, const char *text)
{
	char path[32], line[512];
	int nr = 0;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = fopen(path, "re");
	while (maps && fgets(line, sizeof(line), maps))
		nr += !!strstr(line, text);
	if (maps)
		fclose(maps);
	return nr;
}

static void again(void)
{
	bool good = true;
	int before;

	if (!lends(20 * SECOND, 20 * SECOND) || !tap_ok(runs_lent(&batch), "it borrows"))
		return;
	before = nr_maps(batch.pid, REPORT_NAME);
	for (int n = 0; good && n < 20; n++) {
		looks_pause();
		gpupart_lender_close(lender);
		good = !open_lender();
		looks_go_on();
		good = good && runs_lent(&batch);
	}
	tap_ok(good, "the lender is opened 20 times more");
	tap_ok(nr_maps(batch.pid, REPORT_NAME) == before, "the borrower has mapped no more: %d",
	       nr_maps(batch.pid, REPORT_NAME) - before);
}

static void killed(void)
{
	if (!lends(20 * SECOND, 20 * SECOND) || !tap_ok(runs_lent(&batch), "it borrows"))
		return;
	kill(serve.pid, SIGKILL);
	waitpid(serve.pid, NULL, 0);
	tap_ok(finds(-ESRCH), "the lender is killed: a look finds it gone");
	tap_ok(runs_unlent(&batch, 3), "nothing is lent");
}

/*
 * Another process truncates the lender's memory. The borrower must not read past the end of this
 * memory.
 */
static void cut(void)
{
	char file[128];
	bool good = true;
	int fd;

	if (!lends(20 * SECOND, 20 * SECOND) || !tap_ok(runs_lent(&batch), "it borrows"))
		return;
	looks_pause();
	for (int i = 0; i < 2; i++) {
		snprintf(file, sizeof(file), "truncate -s 0 /dev/shm/gpupart-%u/%d.*%s", geteuid(),
			 serve.pid, i ? "" : ".records");
		good &= !system(file);
	}
	tap_ok(good, "its page and its records are cut to nothing");
	for (int n = 0; n < 50; n++)
		good &= *ask(&batch, 'c', 0) == '0';
	tap_ok(good && !kill(batch.pid, 0), "the borrower goes on");
	fd = open(serve.id, O_RDWR | O_CLOEXEC);
	tap_ok(fd >= 0 && ftruncate(fd, 0) == -1 && errno == EPERM,
	       "what it reads launch by launch cannot be: %s", strerror(errno));
	shared(&serve)->busy = 12345;
	tap_ok(runs_unlent(&batch, 3), "a number that says nothing is a busy lender");
}

/* The user may replace the lender's report. The new file may have any set. */
static void lies(void)
{
	struct lend_memory *own;
	int fd;

	if (!lends(20 * SECOND, 20 * SECOND) || !tap_ok(runs_lent(&batch), "it borrows"))
		return;
	looks_pause();
	own = shared(&batch);
	fd = memfd_create(REPORT_NAME, MFD_ALLOW_SEALING);
	if (ftruncate(fd, sizeof(struct report_memory)) ||
	    pwrite(fd, &(struct memfd_head){ REPORT_MAGIC, sizeof(struct report_memory) },
		   sizeof(struct memfd_head), 0) < 0)
		tap_ok(false, "a report without a seal");
	for (int i = 0; i < 4; i++) {
		static const char *const what[] = {
			"a report that can be cut short", "no report", "an empty set", "TPC 200",
		};

		own->number++;
		snprintf(own->lender.report, sizeof(own->lender.report), "%s", serve.id);
		if (!i)
			snprintf(own->lender.report, sizeof(own->lender.report),
				 "/proc/%d/fd/%d", getpid(), fd);
		else if (i == 1)
			snprintf(own->lender.report, sizeof(own->lender.report), "/dev/null");
		else
			own->lender.tpcs = i == 3 ? list("8,200") :
						    (struct gpupart_tpcset){ { 0 } };
		own->number++;
		own->idle = i ? atomic_load(&shared(&serve)->busy) : 0;
		own->lease = UINT64_MAX;
		tap_ok(runs_unlent(&batch, 3), "%s: nothing is lent", what[i]);
	}
}

/* Makes the kernel of the commands l and m a known kernel. Its last run took @last ns. */
static bool make_known(unsigned int last)
{
	for (int n = 0; n < LEND_RUNS; n++) {
		ask(&batch, 'm', n == LEND_RUNS - 1 ? last : 1000);
		if (strcmp(ask(&batch, 'w', 0), "0 0"))
			return false;
	}
	return true;
}

static bool launches(int times)
{
	for (int n = 0; n < times; n++)
		if (*ask(&batch, 'm', 1000) != '0' || strcmp(ask(&batch, 'w', 0), "0 0"))
			return false;
	return true;
}

static void too_long(void)
{
	U64 lent;

	if (!lends(20 * SECOND, SECOND) || !tap_ok(runs_lent(&batch), "it borrows"))
		return;
	tap_ok(make_known(1200000000), "a kernel once took longer than the limit");
	lent = shared(&batch)->lent;
	tap_ok(launches(5) && shared(&batch)->lent == lent && !shared(&batch)->revoked &&
	       runs_lent(&batch), "it is lent nothing, another kernel is");
}

/* Without lent TPCs, the kernel takes @ns. */
static bool runs_alone(unsigned int ns)
{
	bool good;

	looks_pause();
	shared(&batch)->idle = atomic_load(&shared(&serve)->busy) + 1;
	good = *ask(&batch, 'm', ns) == '0' && !strcmp(ask(&batch, 'w', 0), "0 0");
	looks_go_on();
	return good && finds(1);
}

/* The limit is 1 s, and the times of a short kernel with lent TPCs are known. */
static bool known_lent(void)
{
	bool good;
	U64 lent;

	if (!lends(20 * SECOND, SECOND) || !tap_ok(make_known(1000), "a short kernel"))
		return false;
	always_idle();
	lent = shared(&batch)->lent;
	good = launches(LEND_RUNS) && shared(&batch)->lent == lent + LEND_RUNS;
	looks_go_on();
	return tap_ok(good, "borrows");
}

/* The times with lent TPCs are known. So on its own TPCs, the kernel may take twice the limit. */
static void longer_alone(void)
{
	U64 lent;

	if (!known_lent())
		return;
	tap_ok(runs_alone(1400000000), "takes longer than the limit without lent TPCs");
	always_idle();
	lent = shared(&batch)->lent;
	tap_ok(launches(5) && shared(&batch)->lent == lent + 5, "it borrows again");
	looks_go_on();
	tap_ok(runs_alone(2200000000u), "takes longer than twice the limit");
	always_idle();
	lent = shared(&batch)->lent;
	tap_ok(launches(5) && shared(&batch)->lent == lent && !shared(&batch)->revoked,
	       "it is lent nothing more");
	looks_go_on();
}

/* The lender has fewer TPCs, so the times with its earlier TPCs do not count. */
static void fewer_lent(void)
{
	struct lend_memory *own;
	U64 lent;

	if (!known_lent())
		return;
	tap_ok(runs_alone(1900000000), "takes nearly twice the limit without lent TPCs");
	always_idle();
	own = shared(&batch);
	own->number++;
	own->lender.tpcs = list("8");
	own->number++;
	lent = own->lent;
	tap_ok(launches(LEND_RUNS) && own->lent == lent, "fewer lent TPCs: it is lent nothing");
	tap_ok(launches(5) && own->lent == lent + 5, "its times are learned again, and it borrows");
	looks_go_on();
}

static void overrun(void)
{
	U64 lent;

	if (!lends(20 * SECOND, SECOND) || !tap_ok(make_known(1000), "a short kernel"))
		return;
	lent = shared(&batch)->lent;
	always_idle();
	tap_ok(*ask(&batch, 'm', 1200000000) == '0' && shared(&batch)->lent == lent + 1 &&
	       !strcmp(ask(&batch, 'w', 0), "0 0"), "takes long with lent TPCs");
	looks_go_on();
	launches(1);
	tap_ok(shared(&batch)->revoked == 1, "that is the last time");
	lent = shared(&batch)->lent;
	tap_ok(launches(5) && shared(&batch)->lent == lent && runs_lent(&batch),
	       "it is lent nothing more, another kernel is");
	lent = shared(&batch)->lent;
	tap_ok(!strcmp(ask(&batch, 'x', 0), "0 0") && launches(3 * LEND_RUNS) &&
	       shared(&batch)->lent == lent, "also not after a module was unloaded");
}

/* The exact time of a kernel is known. Then it runs alone, and takes longer than the limit. */
static void long_alone(void)
{
	bool good = true;
	U64 lent;

	if (!lends(20 * SECOND, SECOND))
		return;
	looks_pause();
	shared(&batch)->idle = atomic_load(&shared(&serve)->busy) + 1;
	for (int n = 0; n < LEND_RUNS; n++)
		good &= *ask(&batch, 'm', 100000000) == '0' && *ask(&batch, 'm', 1000) == '0' &&
			*ask(&batch, 'w', 0) == '0';
	lent = shared(&batch)->lent;
	tap_ok(good, "its exact time is known");
	tap_ok(*ask(&batch, 'm', 1200000000) == '0' && !strcmp(ask(&batch, 'w', 0), "0 0"),
	       "it takes long without lent TPCs");
	looks_go_on();
	tap_ok(finds(1) && launches(3 * LEND_RUNS) && shared(&batch)->lent == lent &&
	       runs_lent(&batch), "it is lent nothing, another kernel is");
}

static void bound(void)
{
	bool good = true;

	/* The kernels are long: on a busy machine, the answer can come late. */
	if (!both(2 * SECOND, 0) ||
	    !tap_ok(make_known(1200000000), "a kernel of 1.2 s, a bound of 2 s"))
		return;
	for (int n = 0; n < 4; n++)
		good &= !strcmp(ask(&batch, n % 2 ? 'm' : 'l', 1200000000), "0 1");
	tap_ok(good && !shared(&batch)->expired, "no two of them are outstanding");
	tap_ok(shared(&batch)->waited == 3, "%llu launches waited", (U64)shared(&batch)->waited);
	tap_ok(!shared(&batch)->lent, "and nothing is lent");
}

/*
 * The first kernel takes longer than its known duration. The next launch waits for the first
 * kernel, but not forever.
 */
static void waits_for_later(void)
{
	U64 lent;

	if (!lends(100000000, 100000000) || !tap_ok(make_known(60000000), "a kernel of 60 ms"))
		return;
	tap_ok(!strcmp(ask(&batch, 'l', 3600u * 1000000), "0 1"), "takes a second, and more");
	tap_ok(*ask(&batch, 'm', 1000) == '0' && !strcmp(ask(&batch, 'w', 0), "0 1") &&
	       shared(&batch)->expired == 1,
	       "the next launch waits for it, but not for ever: it ends first");
	lent = shared(&batch)->lent;
	tap_ok(*ask(&batch, 'm', 1000) == '0' && !strcmp(ask(&batch, 'w', 0), "0 1") &&
	       shared(&batch)->expired == 1, "the one after that does not wait");
	tap_ok(shared(&batch)->lent <= lent + 1, "%llu lent", (U64)lent);
}

/*
 * More launches are outstanding than the library can track. One launch waits for the maximum time,
 * and the launches after it do not wait for the outstanding launches.
 */
static void many(void)
{
	bool good = true;

	if (!both(100000000, 0) || !tap_ok(make_known(1000), "a short kernel"))
		return;
	for (int n = 0; n < 300; n++)
		good &= *ask(&batch, 'l', n < 2 ? 4200000000u : 1000) == '0';
	tap_ok(good && shared(&batch)->expired == 1,
	       "298 launches after two long ones: %llu waited for the maximum time",
	       (U64)shared(&batch)->expired);
}

/* Waits until one launch more than @before has waited. */
static bool one_waits(U64 before)
{
	for (int n = 0; n < TRIES && shared(&batch)->waited == before; n++)
		usleep(1000);
	return shared(&batch)->waited == before + 1;
}

/* Opens the lender or closes it, while it makes no check. */
static bool lender_is(bool open)
{
	bool good;

	looks_pause();
	gpupart_lender_close(lender);
	lender = NULL;
	good = !open || !open_lender();
	looks_go_on();
	return good;
}

/* The known times of kernels stay known when the lender comes or goes. */
static void bound_stays(void)
{
	bool good = true;

	if (!lends(2 * SECOND, 0) ||
	    !tap_ok(make_known(1200000000), "a kernel of 1.2 s, a bound of 2 s"))
		return;
	good = lender_is(false);
	for (int n = 0; n < 2; n++)
		good &= !strcmp(ask(&batch, n % 2 ? 'm' : 'l', 1200000000), "0 1");
	tap_ok(good, "without the lender, no two are outstanding");
	good = lender_is(true);
	for (int n = 0; n < 2; n++)
		good &= !strcmp(ask(&batch, n % 2 ? 'm' : 'l', 1200000000), "0 1");
	tap_ok(good && !shared(&batch)->expired, "with the lender again, too");
}

/* The lender goes while a launch waits for room on its TPCs. The room is not lost. */
static void goes_while_waiting(void)
{
	U64 waited, lent;

	if (!lends(20 * SECOND, 2 * SECOND) || !tap_ok(make_known(1200000000), "a kernel of 1.2 s"))
		return;
	always_idle();
	lent = shared(&batch)->lent;
	waited = shared(&batch)->waited;
	tap_ok(*ask(&batch, 'm', 1200000000) == '0' && shared(&batch)->lent == lent + 1,
	       "it runs on lent TPCs");
	ask(&batch, 'p', 1200000000);
	tap_ok(one_waits(waited), "a second one waits");
	looks_go_on();
	tap_ok(lender_is(false) && !strcmp(ask(&batch, 'c', 0), "0 " OWN), "the lender goes");
	for (int n = 0; n < TRIES && strcmp(ask(&batch, 'u', 0), "0 0"); n++)
		usleep(20000);
	waited = shared(&batch)->waited;
	tap_ok(lender_is(true) && runs_lent(&batch), "the lender comes");
	always_idle();
	tap_ok(*ask(&batch, 'm', 1200000000) == '0' && shared(&batch)->waited == waited,
	       "nothing is outstanding, so a launch does not wait");
	looks_go_on();
}

/* While a launch waits for room, an earlier launch of the same kernel takes too long. */
static void overrun_before(void)
{
	U64 waited, lent;

	if (!lends(20 * SECOND, SECOND) || !tap_ok(make_known(600000000), "a kernel of 600 ms"))
		return;
	always_idle();
	lent = shared(&batch)->lent;
	waited = shared(&batch)->waited;
	tap_ok(*ask(&batch, 'm', 1500000000) == '0' && shared(&batch)->lent == lent + 1,
	       "takes 1.5 s on lent TPCs");
	ask(&batch, 'p', 1000);
	tap_ok(one_waits(waited), "a second one waits");
	for (int n = 0; n < TRIES && (!shared(&batch)->revoked ||
				      strcmp(ask(&batch, 'u', 0), "0 0")); n++)
		usleep(20000);
	tap_ok(shared(&batch)->revoked == 1 && shared(&batch)->lent == lent + 1,
	       "and does not borrow: %llu", (U64)shared(&batch)->lent - lent);
	looks_go_on();
}

/* A kernel takes too long while the limit is 0, as when the lender missed its goal. */
static void overrun_in_pause(void)
{
	bool good = true;
	U64 lent;

	if (!lends(20 * SECOND, SECOND))
		return;
	always_idle();
	for (int n = 0; n < 2 * LEND_RUNS; n++)
		good &= *ask(&batch, 'm', 100000000) == '0' && *ask(&batch, 'm', 1000) == '0' &&
			*ask(&batch, 'w', 0) == '0';
	lent = shared(&batch)->lent;
	tap_ok(good && *ask(&batch, 'm', 2000000000) == '0' && shared(&batch)->lent == lent + 1,
	       "takes 2 s on lent TPCs");
	gpupart_lend_bound(batch.report, 20 * SECOND, 0);
	tap_ok(*ask(&batch, 'w', 0) == '0' && launches(1), "its end is seen in a pause");
	gpupart_lend_bound(batch.report, 20 * SECOND, SECOND);
	lent = shared(&batch)->lent;
	tap_ok(launches(5) && shared(&batch)->lent == lent, "it is lent nothing after the pause");
	gpupart_lend_bound(batch.report, 20 * SECOND, 0);
	tap_ok(!strcmp(ask(&batch, 'x', 0), "0 0") && launches(1), "a module goes in a pause");
	gpupart_lend_bound(batch.report, 20 * SECOND, SECOND);
	tap_ok(launches(3 * LEND_RUNS) && shared(&batch)->lent == lent, "it is lent nothing");
	looks_go_on();
}

/* A launch in a stream without a ring has no record. */
static void without_ring(void)
{
	U64 lent;

	if (!lends(20 * SECOND, SECOND) || !tap_ok(make_known(1000), "a short kernel"))
		return;
	always_idle();
	lent = shared(&batch)->lent;
	tap_ok(launches(1) && shared(&batch)->lent == lent + 1, "borrows");
	tap_ok(*ask(&batch, 's', 1000) == '0' && shared(&batch)->lent == lent + 1,
	       "but not in a stream without a record: %llu", (U64)shared(&batch)->lent - lent);
	looks_go_on();
}

static void own_sets(void)
{
	bool good;

	if (!lends(20 * SECOND, 20 * SECOND) || !tap_ok(runs_lent(&batch), "it borrows"))
		return;
	always_idle();
	tap_ok(*ask(&batch, 't', 0xffff) == '0' && runs_unlent(&batch, 3),
	       "a thread with a set of its own has that in the limit, whatever is lent");
	ask(&batch, 'u', 0);
	tap_ok(runs_lent(&batch), "and borrows again without");
	good = *ask(&batch, 'i', 4) == '0';
	for (int n = 0; n < 2 * LEND_RUNS; n++)
		good &= !strcmp(ask(&batch, 'c', 0), "0 2");
	tap_ok(good, "a program that limits itself gets no more than that");
	looks_go_on();
}

/*
 * The blocks of some launches wait for each other. Such a launch must get only the TPCs for which
 * its grid was sized.
 */
static void attributes(void)
{
	static const struct {
		int id;
		bool lent;
	} rows[] = { { 8, true }, { 4, true }, { 2, false }, { 6, false } };

	if (!lends(20 * SECOND, 20 * SECOND))
		return;
	always_idle();
	for (int n = 0; n < LEND_RUNS; n++)
		ask(&batch, 'e', 8);
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const U64 lent = shared(&batch)->lent;
		const char *answer = ask(&batch, 'e', rows[i].id);

		tap_ok(!strcmp(answer, "0 0") && shared(&batch)->lent == lent + rows[i].lent,
		       "attribute %d: %slent TPCs", rows[i].id, rows[i].lent ? "" : "not ");
	}
	looks_go_on();
}

static void forked(void)
{
	if (!both(20 * SECOND, 20 * SECOND))
		return;
	tap_ok(!strcmp(ask(&batch, 'l', 300000000), "0 1"), "a launch is outstanding");
	tap_ok(!strcmp(ask(&batch, 'f', 0), "0 1"), "the child of a fork launches in vain");
}

static void refused(void)
{
	if (!both(20 * SECOND, 20 * SECOND))
		return;
	looks_pause();
	shared(&serve)->limit_ns = 1;
	tap_ok(open_lender() == -EBUSY && !shared(&serve)->lends, "a lender that borrows: %s",
	       gpupart_error(gp));
	shared(&serve)->limit_ns = 0;
	tap_ok(gpupart_lender_open(gp, batch.report, "/dev/null", getenv("TEST_PCI"), &serve.pid, 1,
				   NULL, &lender) == -EINVAL, "no report: %s", gpupart_error(gp));
	tap_ok(gpupart_lender_open(gp, batch.report, serve.id, "0000:77:00.0", &serve.pid, 1,
				   NULL, &lender) == -ENODEV, "another GPU: %s", gpupart_error(gp));
	tap_ok(!open_lender() && gpupart_lender_update(gp, lender) == 1, "it can lend");
	shared(&serve)->limit_ns = 1;
	tap_ok(gpupart_lender_update(gp, lender) == -EBUSY && !shared(&batch)->lease,
	       "until it borrows itself");
	shared(&serve)->limit_ns = 0;
	shared(&serve)->attached++;
	tap_ok(gpupart_lender_update(gp, lender) == -EAGAIN && !shared(&batch)->lease,
	       "or has another process");
	kill(serve.pid, SIGKILL);
	waitpid(serve.pid, NULL, 0);
	gpupart_lender_close(lender);
	lender = NULL;
	tap_ok(open_lender() == -ESRCH, "a lender that is gone: %s", gpupart_error(gp));
}

static void without_records(void)
{
	if (!both(20 * SECOND, 20 * SECOND))
		return;
	looks_pause();
	tap_ok(!open_lender() && gpupart_lender_update(gp, lender) == -EINVAL &&
	       !shared(&batch)->lease, "a lender without records lends nothing");
}

/* ------------------------------------------------------------------- several borrowers */

/* Runs that borrow from the same lender. They have no programs, only watchers. */
static struct borrower {
	uint64_t depth_ns, limit_ns;
	unsigned int weight;
	struct gpupart_report *report;
	struct gpupart_lender *lender;
	bool stopped;			/* its watcher does nothing */
	bool lends;			/* its page lends now */
	uint64_t ended_ns;		/* the last time at which its page lent */
	uint64_t lent_ns;		/* total time in which its page lent */
	unsigned int turns;
} borrowers[] = {
	{ .depth_ns = 30000000, .limit_ns = 15000000, .weight = 1 },
	{ .depth_ns = 20000000, .limit_ns = 20000000, .weight = 4 },
};

/* The shortest pause so far, plus a millisecond for the clocks, less the borrower's depth. */
static uint64_t least_pause_ns;
static const struct borrower *holder;	/* the borrower whose page lent last */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * SECOND + now.tv_nsec;
}

static bool opens(struct borrower *b)
{
	return !gpupart_lender_open(gp, b->report, serve.id, getenv("TEST_PCI"), &serve.pid, 1,
				    NULL, &b->lender);
}

static bool page_lends(const struct borrower *b)
{
	const struct lend_memory *own =
		&((struct report_memory *)((struct memfd *)b->report)->head)->lend;

	return own->idle == atomic_load(&shared(&serve)->busy) && records_counter() < own->lease;
}

/* Notes a change of the page of @b. The launches of the other borrower must have ended. */
static void note(struct borrower *b, const struct borrower *other)
{
	const uint64_t now = now_ns();
	uint64_t pause = now - other->ended_ns + 1000000;
	const bool lent = b->lends;

	b->lends = page_lends(b);
	if (b->lends)
		b->ended_ns = now;
	if (!b->lends || lent)
		return;
	pause = pause > other->depth_ns ? pause - other->depth_ns : 0;
	if (holder == other && pause < least_pause_ns)
		least_pause_ns = pause;
	b->turns += holder != b;
	holder = b;
}

/* Watches for @ns, or until @wanted lends. Returns whether at most one page lent at any time. */
static bool watch(uint64_t ns, const struct borrower *wanted)
{
	const uint64_t end = now_ns() + ns;
	uint64_t last = now_ns(), now;
	bool good = true;

	while ((now = now_ns()) < end && !(wanted && wanted->lends)) {
		for (int i = 0; i < 2; i++) {
			struct borrower *b = &borrowers[i];

			if (!b->stopped)
				gpupart_lender_update(gp, b->lender);
			note(b, &borrowers[!i]);
			note(&borrowers[!i], b);
			good &= !borrowers[0].lends || !borrowers[1].lends;
			/* A longer time is one in which this thread did not run. */
			if (b->lends && now - last < 10000000)
				b->lent_ns += now - last;
		}
		last = now;
	}
	return good && (!wanted || wanted->lends);
}

/* Both borrowers open the lender, the second one after @us. */
static bool two_borrow(unsigned int us)
{
	const char *id;
	bool good = !gpupart_open(&gp) && start(&serve, LENT, 0, 0);

	batch.pid = serve.pid;
	good = good && find_pci();
	for (int i = 0; good && i < 2; i++) {
		good = !gpupart_report_open(gp, &borrowers[i].report, &id);
		gpupart_lend_bound(borrowers[i].report, borrowers[i].depth_ns,
				   borrowers[i].limit_ns);
		gpupart_lend_name(borrowers[i].report, "serve", borrowers[i].weight);
		if (i)
			usleep(us);
		good = good && opens(&borrowers[i]);
	}
	return tap_ok(good, "two runs borrow from one: %s", gpupart_error(gp));
}

static void turns(void)
{
	struct borrower *one = &borrowers[0], *two = &borrowers[1];
	bool good = two_borrow(0);

	if (!good)
		return;
	least_pause_ns = SECOND;
	/* On a busy machine, turns are rarer. */
	for (int n = 0; good && n < 15 && (one->turns <= 5 || two->turns <= 5); n++)
		good = watch(2 * SECOND, NULL);
	tap_ok(good && one->turns > 5 && two->turns > 5,
	       "no two pages lend at any time, in %u and %u turns", one->turns, two->turns);
	tap_ok(two->lent_ns > one->lent_ns,
	       "by weight: %llu and %llu us", (U64)one->lent_ns / 1000, (U64)two->lent_ns / 1000);
	tap_ok(least_pause_ns && least_pause_ns < SECOND,
	       "between two turns, the first one's launches end: %llu us more at least",
	       (U64)least_pause_ns / 1000);

	tap_ok(watch(SECOND, one), "one has the turn");
	least_pause_ns = SECOND;
	one->stopped = true;
	tap_ok(watch(2 * SECOND, two) && least_pause_ns && least_pause_ns < SECOND,
	       "its watcher stops: %llu us more",
	       (U64)least_pause_ns / 1000);
	one->stopped = false;
	tap_ok(watch(SECOND, one), "it goes on, and has another turn");

	least_pause_ns = SECOND;
	one->stopped = true;
	gpupart_lender_close(one->lender);
	tap_ok(watch(2 * SECOND, two) && least_pause_ns && least_pause_ns < SECOND,
	       "it ends in its turn: %llu us more",
	       (U64)least_pause_ns / 1000);
	tap_ok(opens(one), "it begins again");
	one->stopped = false;
	tap_ok(watch(SECOND, one), "and has a turn again");
	gpupart_lender_close(one->lender);
	tap_ok(opens(one) && watch(one->depth_ns / 2, one),
	       "the run that had the last turn does not wait for itself");
}

/* The watcher of one run is stopped for longer than its lease, and another run takes its place. */
static void place_taken(void)
{
	struct borrower *one = &borrowers[0], *two = &borrowers[1];

	if (!two_borrow(200000))
		return;
	tap_ok(gpupart_lender_update(gp, one->lender) == -EAGAIN, "one has lost its place");
	gpupart_lender_close(one->lender);
	tap_ok(gpupart_lender_update(gp, two->lender) >= 0, "the other keeps it");
	tap_ok(opens(one) && gpupart_lender_update(gp, one->lender) >= 0 &&
	       gpupart_lender_update(gp, two->lender) >= 0, "one gets another place");
}

/*
 * Proves the mask bits and the records before the tests. All later processes of this user use
 * these proofs.
 */
static void proves(void)
{
	gpupart_open(&gp);
	tap_ok(!attach("cuda:0"), "a GPU");
}

static void prepare(const struct scenario *scenario)
{
	struct scenario before = { "proves", proves, scenario->sim, { NULL }, NULL };

	tap_ok(!child_quiet(&before), "%s: proven before", scenario->name);
}

static const struct scenario scenarios[] = {
	{ "proves", proves, "@b", { NULL }, NULL },
	{ "idle-and-busy", idle_and_busy, "@b", { CLOCK }, prepare },
	{ "graph", graph, "@b", { CLOCK }, prepare },
	{ "unreadable", unreadable, "@b", { CLOCK }, prepare },
	{ "elsewhere", elsewhere, "@b:@e", { CLOCK, "GPUPART_GPU=0000:01:00.0" }, prepare },
	{ "stopped", stopped, "@b", { CLOCK }, prepare },
	{ "lease", lease, "@b", { CLOCK }, prepare },
	{ "again", again, "@b", { CLOCK }, prepare },
	{ "killed", killed, "@b", { CLOCK }, prepare },
	{ "cut", cut, "@b", { CLOCK }, prepare },
	{ "lies", lies, "@b", { CLOCK }, prepare },
	{ "too-long", too_long, "@b", { CLOCK }, prepare },
	{ "longer-alone", longer_alone, "@b", { CLOCK }, prepare },
	{ "fewer-lent", fewer_lent, "@b", { CLOCK }, prepare },
	{ "overrun", overrun, "@b", { CLOCK }, prepare },
	{ "long-alone", long_alone, "@b", { CLOCK }, prepare },
	{ "bound", bound, "@b", { CLOCK }, prepare },
	{ "waits-for-later", waits_for_later, "@b", { CLOCK }, prepare },
	{ "many", many, "@b", { CLOCK }, prepare },
	{ "bound-stays", bound_stays, "@b", { CLOCK }, prepare },
	{ "goes-while-waiting", goes_while_waiting, "@b", { CLOCK }, prepare },
	{ "overrun-before", overrun_before, "@b", { CLOCK }, prepare },
	{ "overrun-in-pause", overrun_in_pause, "@b", { CLOCK }, prepare },
	{ "without-ring", without_ring, "@b", { CLOCK }, prepare },
	{ "own-sets", own_sets, "@b", { CLOCK }, prepare },
	{ "attributes", attributes, "@b", { CLOCK }, prepare },
	{ "forked", forked, "@b", { CLOCK }, prepare },
	{ "refused", refused, "@b", { CLOCK }, prepare },
	{ "place-taken", place_taken, "@b", { CLOCK }, prepare },
	{ "turns", turns, "@b", { CLOCK }, prepare },
	{ "without-records", without_records, "@b", { CLOCK, "GPUPART_RECORDS=0" }, prepare },
};

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "program"))
		return be_program();
	return scenario_main(argc, argv, scenarios, sizeof(scenarios) / sizeof(scenarios[0]));
}
