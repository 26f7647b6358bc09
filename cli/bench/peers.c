// SPDX-License-Identifier: MIT
/*
 * Runs two programs of the user at the same time, and compares ways to share a GPU. A way is a pair
 * of command lines that a user could type. A round measures each way once. After each unit of work,
 * a program prints the duration of the unit in ms.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "cli/bench/bench.h"
#include "cli/bench/peers.h"
#include "cli/util/alloc.h"
#include "cli/util/message.h"
#include "cli/util/process.h"
#include "lib/private.h"

#define MAX_WAYS	48
#define PATH_LEN	600
#define BEGIN_NS	120000000000	/* maximum time to load and compile the model */
/* warm-up after both programs have completed a unit of work */
#define WARM_NS		2000000000
#define QOS_WARM_NS	10000000000	/* time for the controller to learn */
#define END_NS		10000000000
#define SECOND_NS	1000000000
#define LEAST_SECONDS	10		/* with fewer seconds, the interval is useless */

struct peers {
	struct bench *b;
	const struct peers_options *options;
	char dir[512];			/* directory of the pipes and of the qos file */
	struct peers_way ways[MAX_WAYS];
	unsigned int nr;
};

/* ---------------------------------------------------------------------- the ways */

/* The simulated GPU needs no warm-up. */
static uint64_t warm(const struct peers *p, uint64_t ns)
{
	return p->b->simulated ? ns / 10 : ns;
}

/*
 * Returns NULL if the user did not select the family, or if there is such a way already: two sizes
 * of a shape may have the same nearest set.
 */
static struct peers_way *add_way(struct peers *p, enum peers_kind kind, const char *family,
				 const char *name)
{
	struct peers_way *way = &p->ways[p->nr];

	if (p->nr == MAX_WAYS || (p->options->only && !peers_is_in(p->options->only, family)))
		return NULL;
	for (unsigned int i = 0; i < p->nr; i++)
		if (!strcmp(p->ways[i].name, name))
			return NULL;
	*way = (struct peers_way){ .family = family, .kind = kind, .warm_ns = warm(p, WARM_NS) };
	snprintf(way->name, sizeof(way->name), "%s", name);
	p->nr++;
	return way;
}

/*
 * Returns a shell command that runs $PEERS_A or $PEERS_B. The output of the command goes to the
 * program's pipe.
 */
static char *plain_command(unsigned int n)
{
	return alloc_text("eval \"$PEERS_%c\" >\"$PEERS_DIR/%c\"", 'A' + n, 'a' + n);
}

/*
 * Returns the shell command for program @n as a tenant of `qos run`, which continues after the end
 * of one tenant. When the program ends, the file of its messages is renamed to ended-X.
 */
static char *tenant_command(unsigned int n)
{
	char *program = plain_command(n), *command;

	command = alloc_text("(%s) 2>\"$PEERS_DIR/running-%c\"; mv \"$PEERS_DIR/running-%c\" "
			     "\"$PEERS_DIR/ended-%c\"", program, 'a' + n, 'a' + n, 'a' + n);
	free(program);
	return command;
}

/* Formats a prefix. Returns the prefix, followed by the command of plain_command(). */
__attribute__((format(printf, 2, 3)))
static char *command_with_prefix(unsigned int n, const char *fmt, ...)
{
	char before[GPUPART_TPCSET_STRLEN + 128], *program = plain_command(n), *command;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(before, sizeof(before), fmt, ap);
	va_end(ap);
	command = alloc_text("exec %s sh -c '%s'", before, program);
	free(program);
	return command;
}

static void add_alone(struct peers *p)
{
	for (unsigned int n = 0; n < 2; n++) {
		struct peers_way *way = add_way(p, PEERS_ALONE, "alone", n ? "B alone" : "A alone");

		if (way)
			way->command[n] = plain_command(n);
	}
}

/* MPS without sets. `gpupart run` starts the daemon and does not confine the programs. */
static void add_mps(struct peers *p, const char *name, unsigned int percent)
{
	struct peers_way *way = add_way(p, PEERS_PEER, percent ? "mps-percent" : "mps", name);
	char words[64] = "";

	if (way && percent)
		snprintf(way->size, sizeof(way->size), "%u%%", percent);
	for (unsigned int n = 0; way && n < 2; n++) {
		if (percent)
			snprintf(words, sizeof(words), "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=%u ",
				 n ? 100 - percent : percent);
		way->command[n] =
			command_with_prefix(n,
					    "\"$PEERS_GPUPART\" run --mps -t 0-%u -- env "
					    "GPUPART_DISABLE=1 %s",
					    gpupart_topology_nr_tpcs(p->b->topo) - 1, words);
	}
}

static void add_peers(struct peers *p)
{
	static const unsigned int percents[] = { 30, 50, 70 };
	struct peers_way *way = add_way(p, PEERS_PEER, "slices", "time slices");
	char name[48];

	for (unsigned int n = 0; way && n < 2; n++)
		way->command[n] = plain_command(n);
	add_mps(p, "MPS", 0);
	for (unsigned int i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "MPS %u%% / %u%%", percents[i], 100 - percents[i]);
		add_mps(p, name, percents[i]);
	}
	for (unsigned int i = 0; p->options->both && i < 2; i++) {
		const char *how = i ? "green" : "priority";

		way = add_way(p, PEERS_PEER, how, i ? "green contexts" : "priorities");
		if (way)
			way->command[0] = alloc_text("exec %s %s \"$PEERS_DIR/a\" "
						     "\"$PEERS_DIR/b\"", p->options->both, how);
	}
}

/* Returns the available set of this shape whose size is nearest to @nr TPCs. */
static bool nearest_set(const struct bench *b, enum gpupart_shape shape, unsigned int nr,
			struct gpupart_tpcset *set)
{
	const struct gpupart_tpcset all = gpupart_topology_all(b->topo);
	unsigned int most = gpupart_tpcset_count(&all);

	for (unsigned int by = 0; by <= most / 8; by++)
		for (int sign = -1; sign <= 1; sign += 2)
			if (nr + sign * (int)by > 0 && nr + sign * (int)by < most &&
			    !gpupart_set_shape(cmd_gp, b->topo, shape, &all, nr + sign * (int)by,
					       set))
				return true;
	return false;
}

/*
 * Adds a way with fixed sets. The option --sm-count reports the number of SMs in the set. MPS
 * percentages and green contexts also report this number.
 */
static void add_sets(struct peers *p, const char *family, const struct gpupart_tpcset sets[2])
{
	const unsigned int nr[] = {
		gpupart_tpcset_count(&sets[0]), gpupart_tpcset_count(&sets[1]),
	};
	bool overlap = gpupart_tpcset_intersects(&sets[0], &sets[1]);
	char list[GPUPART_TPCSET_STRLEN], name[48];
	struct peers_way *way;

	snprintf(name, sizeof(name), "%s %u / %u", family, nr[0], nr[1]);
	way = add_way(p, gpupart_tpcset_equal(&sets[0], &sets[1]) ? PEERS_COST : PEERS_OURS,
		      family, name);
	if (way)
		snprintf(way->size, sizeof(way->size), overlap ? "%u/%u" : "%u", nr[0], nr[1]);
	for (unsigned int n = 0; way && n < 2; n++) {
		gpupart_tpcset_format_list(&sets[n], list, sizeof(list));
		way->command[n] = command_with_prefix(
			n, "\"$PEERS_GPUPART\" run --mps --sm-count -t %s --", list);
	}
}

/*
 * Disjoint sets of several sizes in each shape, also of the sizes of the MPS percentages. The
 * smallest size leaves nearly the whole GPU to B, as plain MPS does if B's kernels are large.
 */
static void add_shapes(struct peers *p)
{
	static const unsigned int sixteenths[] = { 1, 4, 5, 6, 8, 11 };
	const unsigned int nr_sizes = sizeof(sixteenths) / sizeof(sixteenths[0]);
	const struct gpupart_tpcset all = gpupart_topology_all(p->b->topo);
	struct gpupart_tpcset sets[2];

	for (unsigned int i = 0; i < GPUPART_NR_SHAPES * nr_sizes; i++) {
		if (!nearest_set(p->b, i / nr_sizes, gpupart_tpcset_count(&all) *
						     sixteenths[i % nr_sizes] / 16, &sets[0]))
			continue;
		sets[1] = gpupart_tpcset_andnot(&all, &sets[0]);
		add_sets(p, gpupart_shape_name(i / nr_sizes), sets);
	}
}

/*
 * Sets that overlap: one program can use the whole GPU, and the other one all TPCs but a few. So
 * the first one has some TPCs of its own, and both can use the others, as with plain MPS. If no
 * TPCs are kept, the two programs share the GPU as with plain MPS. Plain MPS is a peer, so a peer
 * is not compared with this way.
 */
static void add_overlap(struct peers *p)
{
	static const struct {
		unsigned int owner, part;
	} kept[] = { { 0, 0 }, { 0, 32 }, { 0, 16 }, { 1, 16 }, { 1, 8 } };
	const struct gpupart_tpcset all = gpupart_topology_all(p->b->topo);
	struct gpupart_tpcset sets[2], own = { 0 };

	for (unsigned int i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		if (kept[i].part &&
		    !nearest_set(p->b, GPUPART_SHAPE_SPREAD,
				 gpupart_tpcset_count(&all) / kept[i].part, &own))
			continue;
		sets[kept[i].owner] = all;
		sets[!kept[i].owner] = gpupart_tpcset_andnot(&all, &own);
		add_sets(p, "overlap", sets);
	}
}

/*
 * Adds the way @family, which uses `gpupart qos` with the settings @keys for tenant A. By default,
 * the limit of lending is the slack of a latency goal. Only a tenant with a floor has slack.
 */
static void add_qos(struct peers *p, const char *family, const char *keys)
{
	struct peers_way *way = p->options->goal ? add_way(p, PEERS_OURS, family, family) : NULL;
	char *a, *b, *path;
	FILE *file;

	if (!way)
		return;
	path = alloc_text("%s/%s.yaml", p->dir, family);
	a = tenant_command(0);
	b = tenant_command(1);
	file = fopen(path, "we");
	if (file) {
		fprintf(file, "tenants:\n  a: { goal: { %s }, %sprogram: [sh, -c, '%s'] }\n"
			"  b: { program: [sh, -c, '%s'] }\n", p->options->goal, keys, a, b);
		fclose(file);
	}
	way->command[0] = alloc_text("exec \"$PEERS_GPUPART\" qos run --mps -f "
				     "\"$PEERS_DIR/%s.yaml\" -o \"$PEERS_DIR/%s\"", family,
				     family);
	way->has_tenants = true;
	way->warm_ns = warm(p, QOS_WARM_NS);
	free(a);
	free(b);
	free(path);
}

/* ---------------------------------------------------------------------- a round */

struct stream {
	int fd;
	char line[64];
	unsigned int len;
};

/* One measurement of one way. */
struct round {
	struct peers *p;
	struct peers_way *way;
	struct stream streams[2];
	pid_t pids[2];
	uint64_t begin;			/* start of the measurement; 0: not started */
	bool seen[2], wanted[2], refused[2];
	unsigned int first;		/* index of the first second of this round */
};

static volatile sig_atomic_t is_stopped;

static void note_stop(int signal)
{
	(void)signal;
	is_stopped = 1;
}

/* If a signal is ignored, does not handle it. For example, nohup ignores SIGHUP. */
static void handle_stops(void (*handler)(int))
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };

	for (unsigned int i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		if (signal(signals[i], handler) == SIG_IGN)
			signal(signals[i], SIG_IGN);
}

/*
 * Starts the shell command @command in a session of its own. Returns when the shell is executed,
 * which closes the pipe. Before, the session may not exist, and stop() could not end its processes.
 */
static pid_t start(const char *command, const char *errors)
{
	int fds[2], fd;
	ssize_t len;
	pid_t pid;
	char byte;

	if (pipe2(fds, O_CLOEXEC))
		return -1;
	pid = fork();
	if (pid) {
		close(fds[1]);
		do
			len = read(fds[0], &byte, 1);
		while (len < 0 && errno == EINTR);
		close(fds[0]);
		return pid;
	}
	setsid();
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
	fd = open(errors, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd >= 0) {
		dup2(fd, STDOUT_FILENO);
		dup2(fd, STDERR_FILENO);
	}
	execl("/bin/sh", "sh", "-c", command, NULL);
	_exit(127);
}

/*
 * Does not reap an ended process. So no other session gets its number. If the process has ended,
 * stores its exit status in *status.
 */
static bool has_ended(pid_t pid, int *status)
{
	siginfo_t info = { 0 };
	bool ended = pid < 0 || (pid && !waitid(P_PID, pid, &info, WEXITED | WNOHANG | WNOWAIT) &&
				 info.si_pid);

	*status = info.si_status;
	return ended;
}

/*
 * Sends @signal to all processes of the session. If @signal is 0, sends no signal. Only setsid()
 * removes a process from the session. Returns whether the session has a process that is not a
 * zombie.
 */
static bool signal_session(pid_t session, int signal)
{
	bool is_there = false;
	DIR *proc = session > 0 ? opendir("/proc") : NULL;
	struct process process;
	int pid;

	while (proc && (pid = process_next(proc))) {
		if (getsid(pid) == session && process_find(pid, &process)) {
			is_there = true;
			if (signal)
				process_signal(&process, signal);
		}
	}
	if (proc)
		closedir(proc);
	return is_there;
}

/*
 * Ends the programs and all their descendants. These processes would disturb the next measurement.
 * Sends SIGTERM first, because an MPS daemon ends after its last client.
 */
static void stop(struct round *r)
{
	uint64_t until = process_now_ns() + END_NS;

	for (unsigned int n = 0; n < 2; n++)
		if (r->pids[n] > 0)
			kill(-r->pids[n], SIGTERM);
	while ((signal_session(r->pids[0], 0) | signal_session(r->pids[1], 0)) &&
	       process_now_ns() < until)
		usleep(20000);
	until += END_NS;
	for (unsigned int n = 0; n < 2; n++)
		if (r->pids[n] > 0) {
			kill(-r->pids[n], SIGKILL);
			while (signal_session(r->pids[n], SIGKILL) && process_now_ns() < until)
				usleep(1000);
			waitpid(r->pids[n], NULL, 0);
		}
}

static void take_line(struct round *r, unsigned int n)
{
	struct peers_second *second;
	unsigned long at;
	float ms;

	if (!peers_read_time(r->streams[n].line, r->way->name, 'A' + n, &r->refused[n], &ms))
		return;
	r->seen[n] = true;
	at = (process_now_ns() - r->begin) / SECOND_NS;
	if (!r->begin || process_now_ns() < r->begin || at >= r->p->options->seconds)
		return;
	second = &r->way->seconds[r->first + at];
	if (n)
		second->nr_b++;
	else
		peers_add_time(second, ms);
}

static void take(struct round *r, unsigned int n)
{
	struct stream *s = &r->streams[n];
	char text[4096];
	ssize_t len = read(s->fd, text, sizeof(text));

	for (ssize_t i = 0; i < len; i++) {
		if (text[i] != '\n') {
			s->line[s->len] = text[i];
			s->len += s->len + 1 < sizeof(s->line);
			continue;
		}
		s->line[s->len] = 0;
		s->len = 0;
		take_line(r, n);
	}
}

/*
 * Stores the reason why @what ended early, which is the last line of its messages in @path. If the
 * exit status @status is EXIT_RUN_FAILED, this may be an error message of `gpupart run`. With any
 * other status, lines of `gpupart run` are remarks, which are ignored.
 */
static void store_end_reason(struct round *r, const char *what, const char *path, int status)
{
	char line[2048], last[160] = "";
	FILE *file = fopen(path, "re");

	while (file && fgets(line, sizeof(line), file))
		if (*line != '\n' && (status == EXIT_RUN_FAILED ||
				      strncmp(line, "gpupart run: ", strlen("gpupart run: "))))
			snprintf(last, sizeof(last), "%.*s", (int)strcspn(line, "\n"), line);
	if (file)
		fclose(file);
	snprintf(r->way->why, sizeof(r->way->why), "%s ended: %.160s", what,
		 *last ? last : "without a message");
}

/* If program @n or the command that started it has ended, stores the reason and returns true. */
static bool take_end(struct round *r, unsigned int n)
{
	const char *program = n ? "B" : "A";
	char path[PATH_LEN];
	int status;

	snprintf(path, sizeof(path), "%s/ended-%c", r->p->dir, 'a' + n);
	if (!access(path, F_OK)) {
		store_end_reason(r, program, path, 0);
		return true;
	}
	if (!has_ended(r->pids[n], &status))
		return false;
	snprintf(path, sizeof(path), "%s/error-%c", r->p->dir, 'a' + n);
	store_end_reason(r, r->way->has_tenants ? "'gpupart qos run'" : program, path, status);
	return true;
}

/*
 * Waits until the round is over. If a program ends early, stores the reason in the way's message.
 */
static void watch(struct round *r)
{
	uint64_t until = process_now_ns() + BEGIN_NS;
	struct pollfd fds[2] = { { .fd = r->streams[0].fd, .events = POLLIN },
				 { .fd = r->streams[1].fd, .events = POLLIN } };

	while (process_now_ns() < until && !is_stopped) {
		poll(fds, 2, 100);
		for (unsigned int n = 0; n < 2; n++) {
			if (fds[n].revents & POLLIN)
				take(r, n);
			if (take_end(r, n))
				return;
		}
		if (!r->begin && r->seen[0] >= r->wanted[0] && r->seen[1] >= r->wanted[1]) {
			r->begin = process_now_ns() + r->way->warm_ns;
			until = r->begin + r->p->options->seconds * (uint64_t)SECOND_NS;
		}
	}
	if (!r->begin && !is_stopped)
		snprintf(r->way->why, sizeof(r->way->why), "%s printed no time in ms for %d s",
			 r->seen[0] >= r->wanted[0] ? "B" : "A", (int)(BEGIN_NS / SECOND_NS));
}

static void measure(struct peers *p, struct peers_way *way)
{
	struct round r = { .p = p, .way = way, .first = way->nr_seconds };
	char path[PATH_LEN];

	for (unsigned int n = 0; n < 2; n++) {
		/*
		 * Open both ends of the pipe. Then the pipe always has a reader, and this process
		 * never reads an end of file.
		 */
		snprintf(path, sizeof(path), "%s/%c", p->dir, 'a' + n);
		r.streams[n].fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
		r.wanted[n] = way->command[n] || way->kind != PEERS_ALONE;
		snprintf(path, sizeof(path), "%s/ended-%c", p->dir, 'a' + n);
		unlink(path);
	}
	way->nr_seconds += p->options->seconds;
	way->seconds = alloc_resized(way->seconds, way->nr_seconds, sizeof(*way->seconds));
	memset(way->seconds + r.first, 0, p->options->seconds * sizeof(*way->seconds));
	for (unsigned int n = 0; n < 2; n++) {
		snprintf(path, sizeof(path), "%s/error-%c", p->dir, 'a' + n);
		if (way->command[n])
			r.pids[n] = start(way->command[n], path);
	}
	watch(&r);
	stop(&r);
	for (unsigned int n = 0; n < 2; n++)
		close(r.streams[n].fd);
}

static int make_pipes(struct peers *p)
{
	char path[PATH_LEN], exe[4096], *folder = getenv("TMPDIR");
	ssize_t len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	snprintf(p->dir, sizeof(p->dir), "%s/gpupart-peers-XXXXXX",
		 folder && *folder ? folder : "/tmp");
	if (len < 0 || !mkdtemp(p->dir))
		return bench_fail(p->b, -errno, "%s: %s", p->dir, strerror(errno));
	exe[len] = 0;
	setenv("PEERS_GPUPART", exe, 1);
	setenv("PEERS_DIR", p->dir, 1);
	setenv("PEERS_A", p->options->programs[0], 1);
	setenv("PEERS_B", p->options->programs[1], 1);
	for (unsigned int n = 0; n < 2; n++) {
		snprintf(path, sizeof(path), "%s/%c", p->dir, 'a' + n);
		if (mkfifo(path, 0600))
			return bench_fail(p->b, -errno, "%s: %s", path, strerror(errno));
	}
	return 0;
}

static void remove_all(const struct peers *p)
{
	static const char *const names[] = {
		"a", "b", "error-a", "error-b", "running-a", "running-b", "ended-a", "ended-b",
		"qos.yaml", "qos", "lending.yaml", "lending"
	};
	char path[PATH_LEN];

	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", p->dir, names[i]);
		unlink(path);
	}
	rmdir(p->dir);
}

/* Prints the figures of the last round of a way, which remain if the user stops the command. */
static void tell_round(const struct peers *p, const struct peers_way *way)
{
	unsigned int nr = p->options->seconds;
	struct peers_value figures[PEERS_NR];
	char a[32], ms[32], b[32];

	peers_figures(way->seconds + way->nr_seconds - nr, nr, false, figures);
	remark("peers%s: %s: A %s a second, p99 %s ms; B %s a second",
	       p->b->simulated ? " (simulated)" : "", way->name,
	       report_number(figures[PEERS_RATE].value, a),
	       report_number(figures[PEERS_P99].value, ms),
	       report_number(figures[PEERS_OTHER].value, b));
}

/*
 * Runs the ways in a different order in each round. Then a drift of a clock affects all ways
 * equally.
 */
static void measure_all(struct peers *p)
{
	unsigned int order[MAX_WAYS], seed = 1, nr_rounds = p->options->rounds;

	for (unsigned int i = 0; i < p->nr; i++)
		order[i] = i;
	for (unsigned int round = 0; round < nr_rounds; round++)
		for (unsigned int i = 0; i < p->nr && !is_stopped; i++) {
			unsigned int k = i + rand_r(&seed) % (p->nr - i), way = order[k];

			order[k] = order[i];
			order[i] = way;
			if (*p->ways[way].why)
				continue;
			remark("peers: round %u of %u, way %u of %u: %s", round + 1, nr_rounds,
			       i + 1, p->nr, p->ways[way].name);
			measure(p, &p->ways[way]);
			if (*p->ways[way].why)
				remark("peers: %s is not measured: %s", p->ways[way].name,
				       out_clean(p->ways[way].why));
			else if (!is_stopped)
				tell_round(p, &p->ways[way]);
		}
}

int bench_peers(struct bench *b, json_t *report)
{
	bool is_judged, is_measured = false;
	static struct peers p;
	char lending[64];
	int err;

	p.b = b;
	p.options = b->peers;
	snprintf(lending, sizeof(lending), "lend: auto, floor: %u, ",
		 (gpupart_topology_nr_tpcs(b->topo) + 1) / 2);
	handle_stops(note_stop);
	/* If this command is killed, its programs also end. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	err = make_pipes(&p);
	if (err)
		return err;
	add_alone(&p);
	add_peers(&p);
	add_shapes(&p);
	add_overlap(&p);
	add_qos(&p, "qos", "");
	if (p.options->has_latency)
		add_qos(&p, "lending", lending);
	measure_all(&p);
	remove_all(&p);
	/* The computation may take long. From here on, a signal ends this command. */
	handle_stops(SIG_DFL);
	if (is_stopped)
		return bench_fail(b, -EINTR, "stopped by a signal");
	for (unsigned int i = 0; i < p.nr; i++) {
		peers_figures(p.ways[i].seconds, p.ways[i].nr_seconds, true, p.ways[i].figures);
		is_measured |= !*p.ways[i].why;
	}
	if (!is_measured)
		return bench_fail(b, -ECHILD, "nothing could be measured: %s",
				  p.nr ? p.ways[0].why : "--only selects no way to share the GPU");
	report_mean(report, "A: %s. B: %s. Each row is measured %u times for %u s. The ways to "
		    "share the GPU have a different order each time. The columns 'from' and 'to' "
		    "are the bounds of the 95%% interval of the figure to their left.",
		    p.options->programs[0], p.options->programs[1], p.options->rounds,
		    p.options->seconds);
	is_judged = p.options->rounds * p.options->seconds >= LEAST_SECONDS;
	peers_report(report, p.ways, p.nr, is_judged, !b->simulated);
	if (!is_judged)
		report_note(
			report,
			"If a way to share the GPU was measured for less than %d s, it is not judged.",
			LEAST_SECONDS);
	return 0;
}
