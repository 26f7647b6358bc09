// SPDX-License-Identifier: MIT
/*
 * gpupart qos run: measures the progress of programs in each epoch, and gives them the TPCs that
 * the policy chooses.
 */
#include <string.h>
#include <unistd.h>
#include "cli/qos/lend.h"
#include "cli/start/run.h"
#include "cli/target/state_dir.h"
#include "cli/target/scores.h"
#include "cli/util/message.h"

#define SWAP_POLLS 8	/* reads per epoch while TPCs drain */
#define DRAIN_EPOCHS 5	/* time limit for a tenant to drain, in epochs */
/* time between two reads of power and clocks, as a multiple of the time of one read */
#define LOOK_SHARE 300

struct run {
	struct control c;
	struct qos_session session;
	struct out out;			/* the terminal */
	bool screen;
	bool forget;			/* an epoch begins: discard all earlier measurements */
	bool all_gone;			/* all programs have ended; the epoch still gets a log
					 * line */
	uint64_t begin_ns, epoch_began_ns;
	uint64_t next_look_ns;		/* time of the next read of power and clocks */
	bool unwritten;			/* a warning about a failure to write scores was printed */
};

/*
 * If another user's controller runs on this GPU, prints a warning. Users do not see each other's
 * programs, so both controllers may give the same TPCs to their tenants. Finds the other controller
 * by the path of its socket in /proc.
 */
static void warn_other_users(const struct live *live)
{
	FILE *file = fopen("/proc/net/unix", "re");
	char line[512], end[64], own[STATE_DIR_PATH_LEN];
	const char *path;

	snprintf(end, sizeof(end), "/qos-%.19s.socket\n", live->pci);
	state_dir_path(geteuid(), own);
	while (file && fgets(line, sizeof(line), file)) {
		path = strstr(line, STATE_DIR_PARENT "/gpupart-");
		if (!path || strlen(path) < strlen(end) ||
		    strcmp(path + strlen(path) - strlen(end), end) ||
		    (!strncmp(path, own, strlen(own)) && path[strlen(own)] == '/'))
			continue;
		remark("another user's 'gpupart qos' runs on this GPU (uid %lu): the two programs "
		       "ignore each other, so their tenants may get the same TPCs",
		       strtoul(path + strlen(STATE_DIR_PARENT "/gpupart-"), NULL, 10));
	}
	if (file)
		fclose(file);
}

/* -------------------------------------------------------------------------- start */

/*
 * Restores the signal mask. Then a signal ends this command, even if the command waits for a reader
 * of the summary.
 */
static void end(struct qos_session *s)
{
	const struct run *run = s->user;

	s->over = true;
	sigprocmask(SIG_SETMASK, &run->c.before, NULL);
}

/*
 * Returns the first set of a tenant. If all its TPCs are still in use, the tenant starts on the
 * TPCs that it will get. The tenant shares these TPCs with their present owners until the owners
 * have drained.
 */
static const struct gpupart_tpcset *first_set(const struct qos_verdict *verdict)
{
	return gpupart_tpcset_empty(&verdict->set) ? &verdict->coming : &verdict->set;
}

static int start(struct qos_session *s)
{
	struct run *run = s->user;
	struct control *c = &run->c;
	bool dry = c->options->dry_run, adopted = false;
	int status = control_take_signals(c);
	struct nvml_state unused;
	unsigned int i;

	for (i = 0; i < c->setup.nr && !status; i++) {
		adopted |= c->live.tenants[i].adopted;
		if (!dry && c->setup.specs[i].program && !c->live.tenants[i].adopted)
			status = control_start(c, i, first_set(&s->now.tenants[i]));
	}
	/* If a program failed to start, end the other programs. */
	for (i = 0; i < c->setup.nr && status; i++)
		if (c->live.tenants[i].child)
			kill(c->live.tenants[i].child, SIGTERM);
	if (status)
		return status;
	if (!dry)
		lend_begin(c);
	*c->options->started = !dry || adopted;
	if (dry && !adopted)
		end(s);
	/* Load the library before an epoch begins. */
	nvml_state(c->live.pci, &unused);
	run->begin_ns = process_now_ns();
	run->forget = true;
	live_find(&c->live, true);
	return 0;
}

/* ------------------------------------------------------------------------ measure */

/* Reads power and clocks once an epoch. If reading takes long, reads them less often. */
static void read_gpu_state(struct run *run, uint64_t now)
{
	if (now < run->next_look_ns)
		return;
	run->next_look_ns = nvml_state(run->c.live.pci, &run->session.state) ?
			    now + LOOK_SHARE * (process_now_ns() - now) : UINT64_MAX;
}

/* Checks whether programs that are not tenants started, ended or changed their TPCs. */
static void update_others(struct run *run)
{
	struct live *live = &run->c.live;

	if (!live_print_new_others(live, "TPCs of programs that are not tenants, which tenants do "
					 "not get:"))
		return;
	run->session.others = live->others;
	run->session.others_changed = true;
}

/* Waits until one more tenant has drained, or until all tenants have drained. */
static void measure_swap(struct run *run, struct qos_measured *measured)
{
	struct control *c = &run->c;
	uint64_t epoch_ns = c->setup.epoch_ns;
	bool any = false;

	memset(measured, 0, c->setup.nr * sizeof(*measured));
	while (!any && !c->ended_by) {
		control_wait(c, process_now_ns() + epoch_ns / SWAP_POLLS);
		live_read(&c->live);
		for (unsigned int i = 0; i < c->setup.nr; i++) {
			measured[i].gone = c->live.tenants[i].gone;
			measured[i].drained = live_drained(&c->live, i, epoch_ns,
							   DRAIN_EPOCHS * epoch_ns);
			any |= measured[i].drained;
		}
	}
	run->forget = true;
}

static void measure_epoch(struct run *run, struct qos_measured *measured)
{
	struct control *c = &run->c;
	uint64_t now;

	if (run->forget) {
		live_restart(&c->live);
		run->epoch_began_ns = c->live.read_ns;
		run->forget = false;
	}
	control_wait(c, run->epoch_began_ns + c->setup.epoch_ns);
	live_read(&c->live);
	/* Use the time of the read, because programs continue to run during the search. */
	now = c->live.read_ns;
	live_find(&c->live, false);
	for (unsigned int i = 0; i < c->setup.nr; i++) {
		live_take(&c->live, i, &c->setup.tenants[i], &c->setup.specs[i],
			  now - run->epoch_began_ns, &measured[i]);
		lend_take(c, i, &measured[i]);
		measured[i].disturbed = !c->options->dry_run && live_is_changed(&c->live, i);
	}
	update_others(run);
	run->epoch_began_ns = now;
	run->all_gone = control_all_gone(c);
	read_gpu_state(run, now);
}

static int measure(struct qos_session *s, struct qos_measured *measured)
{
	struct run *run = s->user;

	if (s->now.swapping)
		measure_swap(run, measured);
	else if (!run->all_gone && (!run->c.number || s->nr_epochs < run->c.number))
		measure_epoch(run, measured);
	else
		end(s);
	if (run->c.ended_by)
		end(s);
	s->time_ns = process_now_ns() - run->begin_ns;
	return 0;
}

/* ---------------------------------------------------------------------- decisions */

static void show(struct run *run)
{
	const struct qos_decision *now = &run->session.now;

	if (!run->screen && !now->changed && !*now->words)
		return;
	run->out.file = qos_results_shown(&run->session, run->screen);
	if (!run->out.file)
		return;
	if (run->screen) {
		fputs("\033[H\033[J", run->out.file);
		qos_text(&run->out, &run->session);
	} else {
		qos_text_changes(&run->out, &run->session);
	}
	fflush(run->out.file);
}

/*
 * Publishes scores for top, metrics and run --lend. A best-effort tenant never has a score. A
 * waiting or idle tenant has no score at the moment.
 */
static void publish(struct run *run)
{
	struct score scores[SCORES_MAX];
	unsigned int nr = 0;
	int err;

	_Static_assert(SCORES_MAX >= QOS_MAX_TENANTS, "each has a place");
	for (unsigned int i = 0; i < run->c.live.nr; i++) {
		const struct qos_verdict *v = &run->session.now.tenants[i];
		const struct live_tenant *t = &run->c.live.tenants[i];
		bool missed = v->state == QOS_MISSED || v->state == QOS_STUCK;

		if (!missed && v->state != QOS_IDLE && (v->state != QOS_GOOD || !v->score))
			continue;
		scores[nr] = (struct score){
			.pid = t->pid, .milli = v->score, .met = !missed,
			.idle = v->state == QOS_IDLE, .lend_ns = v->lend_ns,
			.has_limit = run->c.setup.tenants[i].goal == QOS_LATENCY ||
				     run->c.setup.tenants[i].lend,
		};
		strcpy(scores[nr++].job, t->pid ? "" : t->job);
	}
	err = scores_write(run->c.live.pci, scores, nr, control_hold_ms(&run->c));
	if (err && !run->unwritten)
		remark("'gpupart top' and 'gpupart metrics' show no scores: %s", strerror(-err));
	run->unwritten |= !!err;
}

/* Sets the TPCs of each tenant, and prints the decision. */
static int carry_out(struct qos_session *s, json_t *line)
{
	struct run *run = s->user;
	struct live *live = &run->c.live;

	(void)line;
	for (unsigned int i = 0; i < live->nr && !s->options->dry_run; i++)
		if ((s->now.tenants[i].changed || live->tenants[i].changed) &&
		    live_set(live, i, &s->now.tenants[i].set))
			remark("%s: %s", live->tenants[i].name, gpupart_error(cmd_gp));
	lend_order(&run->c, &s->now);
	/* A swap is still in progress, so no epoch has ended. */
	if (!s->options->dry_run && !s->now.swapping)
		publish(run);
	show(run);
	return 0;
}

/* ---------------------------------------------------------------------------- run */

static int run_tenants(struct run *run, const struct args *args)
{
	struct qos_session *s = &run->session;
	struct live *live = &run->c.live;
	int status;

	snprintf(s->gpu, sizeof(s->gpu), "%.30s, %.19s%s", gpupart_topology_info(live->topo)->name,
		 live->pci, args->simulated ? " (simulated)" : "");
	qos_board_of(live->topo, &s->board);
	s->board.shapes &= run->c.setup.shapes;
	qos_setup_floors(&run->c.setup, &s->board);
	if (!s->options->dry_run) {
		warn_other_users(live);
		live_open_socket(live);
	}
	/* TPCs of other programs are excluded from the start. */
	live_find(live, true);
	update_others(run);
	run->out.bold = run->out.plain = run->out.dim = run->out.red = "";
	run->screen = isatty(1) && !s->options->dry_run;
	status = qos_session_run(s);
	if (!s->options->dry_run)
		scores_remove(live->pci);
	if (status)
		return status;
	if (run->c.ended_by)
		return CMD_ENDED | (128 + run->c.ended_by);
	for (unsigned int i = 0; i < live->nr && !s->options->dry_run; i++)
		if (live->tenants[i].status)
			return CMD_ENDED | live->tenants[i].status;
	return 0;
}

int qos_run(const struct args *args, const struct qos_options *options)
{
	static const struct qos_driver driver = {
		.live = true, .start = start, .measure = measure, .decided = carry_out,
	};
	static struct run run;
	int status;

	run.session = (struct qos_session){
		.args = args, .options = options, .driver = &driver, .user = &run,
		.setup = &run.c.setup, .simulated = args->simulated,
	};
	status = control_open(&run.c, args, options) ?:
		 control_adopt(&run.c) ?:
		 run_tenants(&run, args);
	control_close(&run.c);
	return status;
}
