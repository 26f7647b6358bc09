// SPDX-License-Identifier: MIT
/*
 * Running programs as tenants: finds the processes of each tenant, measures them and sets their
 * TPCs.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "cli/qos/live.h"
#include "cli/target/state_dir.h"
#include "cli/target/process_list.h"
#include "cli/util/number.h"
#include "lib/private.h"

/*
 * For programs without completion records. After this number of reports since a change, reports
 * show the speed in the new set. The second report is about a unit that began after the change. The
 * number of launches would not show which launches have ended, because programs submit launches
 * ahead of time.
 */
#define DRAINED_BY	2

#define LOOK_NS		1000000000ull	/* time between two searches for new processes */
#define LOOK_SOON_NS	50000000ull	/* time between two searches if a tenant has no process */
#define SAID_NS		60000000000ull	/* time between two warnings about a set that another
					 * program changed */

/* ----------------------------------------------------------- processes of tenants */

/* Work that the removed process has reported still counts. */
static void remove_member(struct live_tenant *t, unsigned int m)
{
	for (unsigned int k = 0; k < LIVE_NR_KINDS; k++)
		t->rest[k] = pace_add(t->rest[k], pace_remaining(&t->members[m].paces[k]));
	gpupart_remote_close(t->members[m].remote);
	gpupart_records_close(t->members[m].records);
	t->members[m] = t->members[--t->nr_members];
}

static void take_member(struct live *live, struct live_tenant *t, const struct gpupart_process *p)
{
	struct live_member *m;

	for (unsigned int i = 0; i < t->nr_members; i++)
		if (t->members[i].pid == p->pid) {
			t->members[i].seen = true;
			return;
		}
	if (t->nr_members == LIVE_MAX_MEMBERS) {
		if (!t->many)
			remark(
				"%s has more than %u processes: the work of the further processes is "
			       "not counted",
			       t->name, LIVE_MAX_MEMBERS);
		t->many = true;
		return;
	}
	m = &t->members[t->nr_members];
	*m = (struct live_member){ .pid = p->pid, .seen = true, .drained = true };
	/* The process may not be ready yet. The next search finds it. */
	if (gpupart_remote_open(cmd_gp, p->pid, live->pci, &m->remote))
		return;
	t->nr_members++;
	process_variable(p->pid, "GPUPART_REPORT", m->report, sizeof(m->report));
	if (gpupart_records_open(cmd_gp, p->pid, live->pci, &m->records))
		m->records = NULL;
	if (!t->adopted || gpupart_remote_progress(cmd_gp, m->remote, &m->last))
		return;
	m->paces[LIVE_UNITS].reported_ns = m->last.reported_ns;
	m->paces[LIVE_ANSWERS].reported_ns = m->last.answered_ns;
}

/* Reads the set of the tenant's job. New processes inherit this set. */
static void read_job_set(struct live_tenant *t, const struct gpupart_job *job)
{
	if (*t->note && strcmp(t->note, job->limit)) {
		t->changed = true;
		gpupart_tpcset_parse_list(NULL, job->limit, &t->found);
	}
	snprintf(t->note, sizeof(t->note), "%s", job->limit);
}

static void find_members(struct live *live, struct live_tenant *t,
			 const struct gpupart_process *processes, int nr_processes,
			 const struct gpupart_job *jobs, int nr_jobs)
{
	bool job_lives = false;
	int i;

	for (i = 0; i < nr_jobs; i++) {
		if (!*t->job && t->child && jobs[i].pid == t->child)
			snprintf(t->job, sizeof(t->job), "%s", jobs[i].id);
		if (!*t->job || strcmp(jobs[i].id, t->job))
			continue;
		job_lives = true;
		read_job_set(t, &jobs[i]);
	}
	for (unsigned int m = 0; m < t->nr_members; m++)
		t->members[m].seen = false;
	for (i = 0; i < nr_processes; i++)
		if (processes[i].pid && processes[i].uid == geteuid() &&
		    (t->pid ? processes[i].pid == t->pid :
			      *t->job && shown_is_inside(jobs, nr_jobs, processes[i].job, t->job)))
			take_member(live, t, &processes[i]);
	for (unsigned int m = t->nr_members; m-- > 0; )
		if (!t->members[m].seen)
			remove_member(t, m);
	t->gone = !t->child && !t->nr_members && !job_lives;
}

void live_find(struct live *live, bool now)
{
	struct gpupart_process *processes = NULL;
	struct gpupart_job *jobs = NULL;
	uint64_t since = process_now_ns() - live->found_ns;
	int nr_processes, nr_jobs;
	bool awaited = false;

	/*
	 * Each line on the socket wakes this process. So do not search each time, even for a tenant
	 * without processes.
	 */
	for (unsigned int i = 0; i < live->nr; i++)
		awaited |= !live->tenants[i].nr_members && !live->tenants[i].gone;
	if (!now && !live->look && since < (awaited ? LOOK_SOON_NS : LOOK_NS))
		return;
	live->look = false;
	live->found_ns = process_now_ns();
	nr_processes = shown_processes(cmd_gp, &processes);
	nr_jobs = shown_jobs(cmd_gp, &jobs);
	if (nr_processes >= 0 && nr_jobs >= 0) {
		for (unsigned int i = 0; i < live->nr; i++)
			find_members(live, &live->tenants[i], processes, nr_processes, jobs,
				     nr_jobs);
		live_find_others(live, processes, nr_processes, jobs, nr_jobs);
	} else if (!live->reported_unlisted) {
		remark("cannot list running programs: tenants may get TPCs that other programs "
		       "use");
		live->reported_unlisted = true;
	}
	free(processes);
	free(jobs);
}

/* ------------------------------------------------------------------------ progress */

static uint64_t milli(uint64_t units)
{
	return __builtin_mul_overflow(units, 1000, &units) ? UINT64_MAX : units;
}

static void report_units(struct live_tenant *t, uint64_t work, uint64_t reports)
{
	t->reported_milli = pace_add(t->reported_milli, work);
	t->reports = pace_add(t->reports, reports);
	t->ever_units |= !!work;
}

/* @nr reports arrived in @ns. Adds all of them to the bin of their mean interval. */
static void count_pauses(struct live_tenant *t, uint64_t ns, uint64_t nr)
{
	unsigned int b = GPUPART_NR_LATENCIES - 1;

	while (b && gpupart_latency_least(b) > ns / nr)
		b--;
	t->pauses[b] += nr;
}

/* At @now_ns, @nr reports or completed launches were found. */
static void note_progress(struct live_tenant *t, uint64_t now_ns, uint64_t nr)
{
	t->since_change += nr;
	if (nr)
		t->moved_ns = now_ns;
}

static void read_records(struct live_tenant *t, struct live_member *m, uint64_t read_ns)
{
	struct kernels_look *now = &m->looks[1];
	uint64_t came;

	if (!m->records || gpupart_records_read(cmd_gp, m->records, &now->records,
						sizeof(now->records)))
		return;
	now->at_ns = process_now_ns();
	if (!m->looks[0].at_ns)
		m->looks[0] = *now;
	came = m->ended ? pace_increase(now->records.ended, m->ended) : 0;
	m->ended = now->records.ended;
	t->ended += came;
	note_progress(t, read_ns, came);
}

static void read_member(struct live_tenant *t, struct live_member *m,
			const struct gpupart_progress *now, uint64_t read_ns)
{
	struct gpupart_progress *last = &m->last;
	uint64_t answers = 0, units = pace_increase(now->units, last->units);
	uint64_t reports = pace_increase(now->reports, last->reports), came;

	for (unsigned int b = 0; b < GPUPART_NR_LATENCIES; b++) {
		came = pace_increase(now->latencies[b], last->latencies[b]);
		answers = pace_add(answers, came);
		t->latencies[b] = pace_add(t->latencies[b], came);
	}
	pace_report(&m->paces[LIVE_UNITS], milli(units), reports, now->reported_ns);
	pace_report(&m->paces[LIVE_ANSWERS], milli(answers), answers, now->answered_ns);
	report_units(t, milli(units), reports);
	t->launches += pace_increase(now->launches, last->launches);
	if (reports && !now->answered_ns && last->reported_ns &&
	    now->reported_ns > last->reported_ns)
		count_pauses(t, now->reported_ns - last->reported_ns, reports);
	if (t->by_records || t->alone)
		read_records(t, m, read_ns);
	else
		note_progress(t, read_ns, !!units + answers);
	t->ever_told |= answers || units;
	*last = *now;
}

static void read_lines(struct live_tenant *t)
{
	for (unsigned int k = 0; k < LIVE_NR_KINDS; k++) {
		pace_report(&t->paces[k], t->lines[k].milli, t->lines[k].reports,
			  t->lines[k].reported_ns);
		t->lines[k] = (struct live_lines){ 0 };
	}
}

void live_read(struct live *live)
{
	struct gpupart_progress now;

	live_listen(live);
	live->read_ns = process_now_ns();
	for (unsigned int i = 0; i < live->nr; i++) {
		struct live_tenant *t = &live->tenants[i];

		for (unsigned int m = t->nr_members; m-- > 0; ) {
			if (!gpupart_remote_progress(cmd_gp, t->members[m].remote, &now)) {
				read_member(t, &t->members[m], &now, live->read_ns);
				continue;
			}
			/*
			 * The process has executed a different program. The next search finds
			 * this program.
			 */
			remove_member(t, m);
			live->look = true;
		}
		read_lines(t);
	}
}

static uint64_t nr_requests(const struct live_tenant *t)
{
	uint64_t nr = 0;

	for (unsigned int b = 0; b < GPUPART_NR_LATENCIES; b++)
		nr += t->latencies[b];
	return nr;
}

uint64_t live_percentile(const uint64_t latencies[GPUPART_NR_LATENCIES], uint64_t nr,
			 unsigned int thousandths)
{
	uint64_t rank = (nr * thousandths + 999) / 1000, below = 0, least, width;
	unsigned int b;

	for (b = 0; b + 1 < GPUPART_NR_LATENCIES && below + latencies[b] < rank; b++)
		below += latencies[b];
	least = gpupart_latency_least(b);
	width = b + 1 < GPUPART_NR_LATENCIES ? gpupart_latency_least(b + 1) - least : 0;
	return latencies[b] ? least + width * (rank - below) / latencies[b] : least;
}

/*
 * Returns the number of requests that took at most @goal_ns. Makes the same assumption as
 * live_percentile().
 */
static uint64_t nr_within(const uint64_t latencies[GPUPART_NR_LATENCIES], uint64_t goal_ns)
{
	uint64_t nr = 0, least, width;
	unsigned int b;

	for (b = 0; b + 1 < GPUPART_NR_LATENCIES && gpupart_latency_least(b + 1) <= goal_ns; b++)
		nr += latencies[b];
	least = gpupart_latency_least(b);
	width = gpupart_latency_least(b + 1) - least;
	return width ? nr + (unsigned __int128)latencies[b] * (goal_ns - least) / width : nr;
}

static void begin_anew(struct live_tenant *t)
{
	if (t->goal_ns) {
		t->answered = pace_add(t->answered, nr_requests(t));
		t->in_goal = pace_add(t->in_goal, nr_within(t->latencies, t->goal_ns));
	}
	t->reported_milli = t->reports = t->launches = t->ended = 0;
	memset(t->pauses, 0, sizeof(t->pauses));
	memset(t->rest, 0, sizeof(t->rest));
	memset(t->latencies, 0, sizeof(t->latencies));
	for (unsigned int m = 0; t->alone && m < t->nr_members; m++)
		t->members[m].looks[0] = t->members[m].looks[1];
}

/* Returns the sum of the work of all sources. If at least one source reported, sets *any. */
static uint64_t take_work(struct live_tenant *t, enum live_kind kind, uint64_t now_ns, bool any,
			  bool *exact)
{
	uint64_t work = pace_add(t->rest[kind], pace_take(&t->paces[kind], now_ns, any, exact));

	for (unsigned int m = 0; m < t->nr_members; m++)
		work = pace_add(work, pace_take(&t->members[m].paces[kind], now_ns, any, exact));
	return work;
}

/* The unit is a thousandth of a ms of solo time. */
static uint64_t take_kernels(struct live_tenant *t)
{
	uint64_t work = 0;

	for (unsigned int m = 0; m < t->nr_members; m++)
		work = pace_add(work, kernels_work(t->alone, t->to_learn, t->members[m].looks));
	t->to_learn -= t->to_learn && work;
	return work / 1000;
}

/* Returns whether the tenant launched nothing since the last call and has no outstanding launch. */
static bool has_stopped(const struct live_tenant *t)
{
	bool stopped = t->nr_members && !t->launches;

	for (unsigned int m = 0; stopped && m < t->nr_members; m++)
		stopped = t->members[m].records &&
			  !gpupart_records_busy(cmd_gp, t->members[m].records);
	return stopped;
}

/* JSON numbers of the log are signed. */
static uint64_t signed_most(uint64_t value)
{
	return value > INT64_MAX ? INT64_MAX : value;
}

void live_take(struct live *live, unsigned int i, const struct qos_tenant *tenant,
	       const struct qos_spec *spec, uint64_t ns, struct qos_measured *measured)
{
	struct live_tenant *t = &live->tenants[i];
	bool launches = t->by_records || spec->signal == QOS_SIGNAL_LAUNCHES ||
			(spec->signal == QOS_SIGNAL_AUTO && !t->ever_told);
	enum live_kind kind = t->ever_units ? LIVE_UNITS : LIVE_ANSWERS;
	uint64_t work[LIVE_NR_KINDS], nr = nr_requests(t);
	const uint64_t reports = kind == LIVE_UNITS ? t->reports : nr;
	bool exact[LIVE_NR_KINDS] = { true, true };

	/*
	 * Take both kinds of work. Otherwise the kind that does not count now would count in the
	 * next epoch.
	 */
	work[LIVE_UNITS] = take_work(t, LIVE_UNITS, live->read_ns, t->reported_milli,
				     &exact[LIVE_UNITS]);
	work[LIVE_ANSWERS] = take_work(t, LIVE_ANSWERS, live->read_ns, nr, &exact[LIVE_ANSWERS]);
	*measured = (struct qos_measured){
		.gone = t->gone, .ns = ns, .nr = signed_most(nr),
		.stopped = tenant->lend && has_stopped(t),
	};
	if (t->alone) {
		measured->work = signed_most(take_kernels(t));
		measured->reported = signed_most(work[kind]);
	} else if (launches) {
		measured->work = signed_most(milli(t->by_records ? t->ended : t->launches));
	} else {
		measured->work = signed_most(work[kind]);
		measured->reports = signed_most(reports);
		measured->exact = reports && exact[kind];
	}
	if (tenant->goal == QOS_LATENCY && nr)
		measured->latency_ns = live_percentile(t->latencies, nr, tenant->percentile);
	measured->valid = !t->gone && (t->nr_members || t->reported_milli || nr);
	begin_anew(t);
	measured->answered = signed_most(t->answered);
	measured->within = signed_most(t->in_goal);
	t->answered = t->in_goal = 0;
}

static void forget_paces(struct pace *paces, uint64_t now_ns)
{
	for (unsigned int k = 0; k < LIVE_NR_KINDS; k++)
		pace_discard(&paces[k], now_ns);
}

void live_restart(struct live *live)
{
	live_read(live);
	for (unsigned int i = 0; i < live->nr; i++) {
		struct live_tenant *t = &live->tenants[i];

		begin_anew(t);
		forget_paces(t->paces, live->read_ns);
		for (unsigned int m = 0; m < t->nr_members; m++)
			forget_paces(t->members[m].paces, live->read_ns);
	}
}

/*
 * Calls gpupart_records_drained() for each process of the tenant. If one process has not drained,
 * continues with the other processes.
 */
static int records_drained(struct live_tenant *t)
{
	int result = 1;

	for (unsigned int m = 0; m < t->nr_members && result >= 0; m++) {
		struct live_member *member = &t->members[m];
		int one = member->drained ? 1 : !member->records ? -ENODATA :
			  gpupart_records_drained(cmd_gp, member->records);

		member->drained = one == 1 || one == -ESRCH;
		if (!member->drained)
			result = one;
	}
	return result;
}

bool live_settled(const struct live *live, unsigned int i, uint64_t drain_ns)
{
	const struct live_tenant *t = &live->tenants[i];

	return t->gone || !t->nr_members || t->since_change >= DRAINED_BY ||
	       process_now_ns() - t->changed_ns >= drain_ns;
}

bool live_drained(struct live *live, unsigned int i, uint64_t drain_ns, uint64_t most_ns)
{
	struct live_tenant *t = &live->tenants[i];
	int result;

	if (t->gone || !t->nr_members)
		return true;
	if (t->keeps)
		return false;
	if (process_now_ns() - t->changed_ns >= most_ns)
		return true;
	result = records_drained(t);
	return result >= 0 ? result : live_settled(live, i, drain_ns);
}

/* ---------------------------------------------------------------------------- sets */

/* Stores the sets that the next search should find in the tenant's processes. */
static void expect_set(struct live_tenant *t)
{
	t->changed = false;
	t->note[0] = 0;
	for (unsigned int m = 0; m < t->nr_members; m++)
		if (gpupart_remote_get(cmd_gp, t->members[m].remote, &t->members[m].given))
			t->members[m].given = (struct gpupart_tpcset){ 0 };
}

static void say_changed(struct live_tenant *t)
{
	char list[GPUPART_TPCSET_STRLEN];
	uint64_t now = process_now_ns();

	if (t->said_ns && now - t->said_ns < SAID_NS)
		return;
	t->said_ns = now;
	gpupart_tpcset_format_list(&t->found, list, sizeof(list));
	remark("%s: another program changed this tenant's set to %.300s: this measurement is "
	       "discarded, and the set is changed again", t->name, *list ? list : "none");
}

bool live_is_changed(struct live *live, unsigned int i)
{
	struct live_tenant *t = &live->tenants[i];
	struct gpupart_tpcset now;

	for (unsigned int m = 0; m < t->nr_members; m++) {
		struct gpupart_tpcset *given = &t->members[m].given;

		if (gpupart_remote_get(cmd_gp, t->members[m].remote, &now))
			continue;
		if (gpupart_tpcset_empty(given)) {
			*given = now;
		} else if (!gpupart_tpcset_equal(given, &now)) {
			t->changed = true;
			t->found = now;
		}
	}
	if (t->changed && !t->gone)
		say_changed(t);
	return t->changed && !t->gone;
}

int live_set(struct live *live, unsigned int i, const struct gpupart_tpcset *set)
{
	struct live_tenant *t = &live->tenants[i];
	int err = 0, failed = 0;

	t->since_change = 0;
	t->changed_ns = t->moved_ns = process_now_ns();
	t->keeps = gpupart_tpcset_empty(set);
	if (t->gone || t->keeps)
		return 0;
	if (*t->job)
		failed = gpupart_job_limit_set(cmd_gp, t->job, set, NULL);
	for (unsigned int m = 0; !*t->job && m < t->nr_members; m++) {
		err = gpupart_remote_set(cmd_gp, t->members[m].remote, set, NULL);
		if (err && err != -ESRCH)
			failed = err;
	}
	for (unsigned int m = 0; m < t->nr_members; m++) {
		t->members[m].drained = false;
		if (t->members[m].records)
			gpupart_records_drain(t->members[m].records);
	}
	expect_set(t);
	return failed == -ESRCH ? 0 : failed;
}

/* -------------------------------------------------------------------------- socket */

/* Parses "12" or "0.5" into thousandths. */
static bool read_milli(const char *text, uint64_t *milli)
{
	double value;

	errno = 0;
	if (!number_decimal(text, &value) || errno || !(value >= 0 && value < 1e15))
		return false;
	*milli = value * 1000 + 0.5;
	return true;
}

/* Warns once about an unusable line. The writer of the line gets no answer. */
static void warn_ignored_line(struct live *live, const char *line)
{
	if (live->passed_over || !*line)
		return;
	live->passed_over = true;
	remark("the socket: ignoring \"%.47s\" and similar lines: the form of a line is "
	       "'TENANT units NUMBER' or 'TENANT latency TIME'",
	       line);
}

static void note_line(struct live_lines *lines, uint64_t work)
{
	lines->milli = pace_add(lines->milli, work);
	lines->reports++;
	lines->reported_ns = process_now_ns();
}

/* Handles "NAME units 12" or "NAME latency 3.5ms". Returns false for any other line. */
static bool take_line(struct live *live, char *line)
{
	char *save = NULL, *name = strtok_r(line, " \t\r\n", &save);
	char *what = strtok_r(NULL, " \t\r\n", &save), *value = strtok_r(NULL, " \t\r\n", &save);
	struct live_tenant *t = NULL;
	uint64_t amount, ns;
	unsigned int b;

	for (unsigned int i = 0; name && i < live->nr; i++)
		if (!strcmp(name, live->tenants[i].name))
			t = &live->tenants[i];
	if (!t || !what || !value)
		return false;
	if (!strcmp(what, "units") && read_milli(value, &amount)) {
		report_units(t, amount, !!amount);
		if (amount)
			note_line(&t->lines[LIVE_UNITS], amount);
	} else if (!strcmp(what, "latency") && yaml_read_time(value, &ns)) {
		for (b = GPUPART_NR_LATENCIES - 1; b && gpupart_latency_least(b) > ns; b--)
			;
		t->latencies[b]++;
		note_line(&t->lines[LIVE_ANSWERS], 1000);
	} else {
		return false;
	}
	t->ever_told = true;
	note_progress(t, process_now_ns(), !t->by_records);
	return true;
}

void live_listen(struct live *live)
{
	char line[256], copy[256];
	ssize_t len;

	/*
	 * Limit the number of lines, so that a program cannot stop the controller by flooding
	 * the socket.
	 */
	for (int i = 0; live->socket >= 0 && i < 10000; i++) {
		len = recv(live->socket, line, sizeof(line) - 1, MSG_DONTWAIT | MSG_TRUNC);
		if (len < 0)
			return;
		/* The number may have been truncated. */
		if ((size_t)len >= sizeof(line)) {
			line[sizeof(line) - 1] = 0;
			warn_ignored_line(live, line);
			continue;
		}
		line[len] = 0;
		for (char *rest = line, *one; (one = strsep(&rest, "\n")); ) {
			snprintf(copy, sizeof(copy), "%s", one);
			if (!take_line(live, one))
				warn_ignored_line(live, copy);
		}
	}
}

void live_open_socket(struct live *live)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	char folder[STATE_DIR_PATH_LEN], why[160];

	live->socket = -1;
	if (state_dir_create(geteuid(), why, sizeof(why))) {
		remark("cannot open the socket for progress: %s", why);
		return;
	}
	snprintf(address.sun_path, sizeof(address.sun_path), "%s/qos-%s.socket",
		 state_dir_path(geteuid(), folder), live->pci);
	live->socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* This process holds the lock, so the old socket belongs to a killed controller. */
	unlink(address.sun_path);
	if (live->socket < 0 || bind(live->socket, (void *)&address, sizeof(address)) ||
	    chmod(address.sun_path, 0600)) {
		remark("cannot open the socket for progress: %s: %s",
		       address.sun_path, strerror(errno));
		if (live->socket >= 0)
			close(live->socket);
		live->socket = -1;
		return;
	}
	snprintf(live->socket_path, sizeof(live->socket_path), "%s", address.sun_path);
	setenv("GPUPART_QOS", live->socket_path, 1);
}

void live_close(struct live *live)
{
	for (unsigned int i = 0; i < live->nr; i++) {
		while (live->tenants[i].nr_members)
			remove_member(&live->tenants[i], 0);
		free(live->tenants[i].members);
		free(live->tenants[i].alone);
	}
	if (live->socket >= 0) {
		close(live->socket);
		unlink(live->socket_path);
	}
}
