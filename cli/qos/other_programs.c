// SPDX-License-Identifier: MIT
/*
 * Finds the TPCs of this user's programs that are not tenants, and the TPCs that the node granted
 * to other users.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include "cli/qos/live.h"
#include "cli/target/neighbours.h"
#include "cli/target/process_list.h"
#include "cli/util/paths.h"

/* time between two reads of all environments, as a multiple of the time of one read */
#define ENVIRONMENTS_SHARE 500

/* One search. */
struct search {
	struct live *live;
	struct neighbours n;
	const char *own_job;		/* the job in which this command runs, or "" */
	struct qos_others *to;
};

/* ------------------------------------------------------ processes of tenants */

static bool job_is_inside(const struct search *s, const char *id, const char *around)
{
	return *around && shown_is_inside(s->n.jobs, s->n.nr_jobs, id, around);
}

/*
 * Returns whether a process belongs to a tenant. If the process uses the GPU, @runs is true. If a
 * process does not use the GPU and is in the job of an adopted process, or in an outer run of a
 * tenant, the process belongs to the tenant.
 */
static bool is_tenants(const struct search *s, int pid, const char *job, bool runs)
{
	for (unsigned int i = 0; i < s->live->nr; i++) {
		const struct live_tenant *t = &s->live->tenants[i];

		if ((pid && (pid == t->pid || pid == t->child)) ||
		    job_is_inside(s, job, t->job) ||
		    (!runs && (job_is_inside(s, job, t->within) ||
			       (*t->job && job_is_inside(s, t->job, job)))))
			return true;
	}
	return false;
}

static bool is_around(const struct search *s, const char *job, const struct gpupart_tpcset *set)
{
	return (s->live->has_around && gpupart_tpcset_equal(set, &s->live->around)) ||
	       (*job && job_is_inside(s, s->own_job, job));
}

/* --------------------------------------------------------------------- other programs */

static void add(struct search *s, int pid, const char *name, const struct gpupart_tpcset *set)
{
	struct gpupart_tpcset all = gpupart_topology_all(s->n.topo);
	struct qos_other *last;
	char clean[sizeof(last->name)];

	snprintf(clean, sizeof(clean), "%.63s", name);
	/* The name comes from an environment, so it may contain any bytes. */
	out_clean(clean);
	/* The program runs on all TPCs, so no TPC is reserved for it. */
	if (gpupart_tpcset_equal(set, &all)) {
		if (!s->live->reported_everywhere)
			remark("%s (pid %d) runs on all TPCs, also on the tenants' TPCs, and may "
			       "slow the tenants down",
			       *clean ? clean : "a program", pid);
		s->live->reported_everywhere = true;
		return;
	}
	/* If a program has several processes, list the first process. */
	for (unsigned int i = 0; i < s->to->nr; i++)
		if (!strcmp(s->to->list[i].name, clean) &&
		    gpupart_tpcset_equal(&s->to->list[i].set, set))
			return;
	if (s->to->nr == QOS_MOST_OTHERS) {
		last = &s->to->list[QOS_MOST_OTHERS - 1];
		*last = (struct qos_other){
			.name = "and others", .set = gpupart_tpcset_or(&last->set, set),
		};
		return;
	}
	last = &s->to->list[s->to->nr++];
	*last = (struct qos_other){ .pid = pid, .set = *set };
	strcpy(last->name, clean);
}

static void found_shown(void *user, const struct neighbour *found)
{
	struct search *s = user;

	if (!is_tenants(s, found->pid, found->job, true) && !is_around(s, "", &found->set))
		add(s, found->pid, found->name, &found->set);
}

/*
 * Handles a process that is known only from its environment. Listed jobs are the task of
 * look_at_jobs().
 */
static void found_by_environment(void *user, const struct neighbour *found)
{
	struct search *s = user;

	for (int i = 0; i < s->n.nr_jobs; i++)
		if (!strcmp(s->n.jobs[i].id, found->job))
			return;
	if (!is_tenants(s, found->pid, found->job, false) && !is_around(s, found->job, &found->set))
		add(s, found->pid, found->name, &found->set);
}

/* Returns whether the job has a listed process, or its process has begun an inner job. */
static bool job_is_listed(const struct search *s, const struct gpupart_job *job)
{
	for (int i = 0; i < s->n.nr_processes; i++)
		if (!strcmp(s->n.processes[i].job, job->id) && !*s->n.processes[i].problem)
			return true;
	for (int i = 0; i < s->n.nr_jobs; i++)
		if (job->pid && s->n.jobs[i].pid == job->pid &&
		    !strcmp(s->n.jobs[i].parent, job->id))
			return true;
	return false;
}

/*
 * Returns whether the job is a grant of the node. Such a job has no processes. Grants to other
 * users are the task of found_given().
 */
static bool is_node_job(const struct gpupart_job *job)
{
	return !strncmp(job->id, "0-", 2);
}

static void look_at_jobs(struct search *s)
{
	struct gpupart_tpcset set;

	for (int i = 0; i < s->n.nr_jobs; i++) {
		const struct gpupart_job *job = &s->n.jobs[i];

		if (!is_node_job(job) &&
		    neighbours_is_here(&s->n, job->pci, job->source, job->simulated) &&
		    !job_is_listed(s, job) && !is_tenants(s, job->pid, job->id, false) &&
		    !gpupart_set_parse(NULL, s->n.topo, job->limit, &set) &&
		    !is_around(s, job->id, &set))
			add(s, job->pid, job->name, &set);
	}
}

/* -------------------------------------------------------- grants of the node */

static void look_at_grants(struct search *s)
{
	struct gpupart_tpcset all = gpupart_topology_all(s->n.topo), own = { 0 }, set;
	struct gpupart_grant *list;
	int nr = shown_grants(cmd_gp, &list);

	for (int i = 0; i < nr; i++) {
		set = gpupart_tpcset_and(&list[i].set, &all);
		if (gpupart_tpcset_empty(&set) ||
		    !neighbours_is_here(&s->n, list[i].pci, list[i].source,
					!paths_is_live(list[i].source)))
			continue;
		if (list[i].uid == geteuid())
			own = gpupart_tpcset_or(&own, &set);
		else if (!is_tenants(s, 0, list[i].id, false) && !is_around(s, list[i].id, &set))
			add(s, 0, list[i].name, &set);
	}
	free(list);
	/* If the user is not root, the user has the granted TPCs and no others. */
	set = gpupart_tpcset_andnot(&all, &own);
	if (geteuid() && !gpupart_tpcset_empty(&own) && !gpupart_tpcset_empty(&set))
		add(s, 0, "not granted by this node", &set);
}

/* This command may run in a set. The programs that it starts are confined to this set, too. */
static void find_outer_limit(struct search *s)
{
	struct gpupart_tpcset set = gpupart_topology_all(s->n.topo);

	set = gpupart_tpcset_andnot(&set, &s->live->around);
	if (s->live->has_around && !gpupart_tpcset_empty(&set))
		add(s, 0, "outside the set of the surrounding 'gpupart run'", &set);
}

/* ------------------------------------------------------------------------- one search */

static bool shows_itself(const struct search *s, int pid)
{
	for (int i = 0; i < s->n.nr_processes; i++)
		if (s->n.processes[i].pid == pid)
			return true;
	return false;
}

/*
 * Only some calls read all environments, because a read takes long. The other calls keep programs
 * that were found earlier and still run.
 */
static void read_environments(struct search *s)
{
	struct qos_others *found = &s->live->to_be, *to = s->to;
	uint64_t now = process_now_ns();

	if (now >= s->live->next_environments_ns) {
		found->nr = 0;
		s->to = found;
		s->n.found = found_by_environment;
		neighbours_to_be(&s->n, 1);
		s->to = to;
		s->live->next_environments_ns = now + ENVIRONMENTS_SHARE * (process_now_ns() - now);
	}
	for (unsigned int i = 0; i < found->nr; i++)
		if (!shows_itself(s, found->list[i].pid) &&
		    (!found->list[i].pid || !kill(found->list[i].pid, 0) || errno == EPERM))
			add(s, found->list[i].pid, found->list[i].name, &found->list[i].set);
}

static int by_pid(const void *a, const void *b)
{
	const struct qos_other *x = a, *y = b;

	return x->pid != y->pid ? (x->pid > y->pid) - (x->pid < y->pid) : strcmp(x->name, y->name);
}

static bool are_same(const struct qos_others *a, const struct qos_others *b)
{
	bool same = a->nr == b->nr;

	for (unsigned int i = 0; same && i < a->nr; i++)
		same = a->list[i].pid == b->list[i].pid &&
		       !strcmp(a->list[i].name, b->list[i].name) &&
		       gpupart_tpcset_equal(&a->list[i].set, &b->list[i].set);
	return same;
}

void live_find_others(struct live *live, const struct gpupart_process *processes,
		      int nr_processes, const struct gpupart_job *jobs, int nr_jobs)
{
	const char *own_job = getenv("GPUPART_JOB"), *words = getenv("GPUPART_SET");
	const char *gpu = getenv("GPUPART_GPU");
	struct qos_others found = { 0 };
	struct search s = {
		.live = live, .own_job = own_job ? own_job : "", .to = &found,
		.n = {
			.args = live->args, .topo = live->topo, .pci = live->pci,
			.processes = processes, .nr_processes = nr_processes, .jobs = jobs,
			.nr_jobs = nr_jobs, .found = found_shown, .user = &s,
		},
	};

	/* If a program has exactly the set of this command, the same run started the program. */
	live->has_around = words && *words && (!gpu || !*gpu || !strcasecmp(gpu, live->pci)) &&
			   !gpupart_set_parse(NULL, live->topo, words, &live->around);
	find_outer_limit(&s);
	neighbours_shown(&s.n);
	look_at_jobs(&s);
	look_at_grants(&s);
	read_environments(&s);
	if (found.nr)
		qsort(found.list, found.nr, sizeof(found.list[0]), by_pid);
	if (are_same(&found, &live->others))
		return;
	live->others = found;
	live->others_changed = true;
}

struct gpupart_tpcset live_available(const struct live *live, unsigned int i)
{
	struct gpupart_tpcset room = gpupart_topology_all(live->topo), around = { 0 };
	struct qos_others others = live->others;
	const struct gpupart_job *job = NULL;
	struct gpupart_job *jobs;
	int nr = shown_jobs(cmd_gp, &jobs);

	for (int j = 0; j < nr; j++)
		if (!strcmp(jobs[j].id, live->tenants[i].job))
			job = &jobs[j];
	/* A job around the tenant does not compete with the tenant. */
	while (job && (job = shown_job_on(jobs, nr, job->parent, live->pci))) {
		if (!gpupart_tpcset_parse_list(NULL, job->limit, &around))
			room = gpupart_tpcset_and(&room, &around);
		for (unsigned int n = 0; n < others.nr; n++)
			if (job->pid && others.list[n].pid == job->pid)
				others.list[n].set = (struct gpupart_tpcset){ 0 };
	}
	for (unsigned int n = 0; n < others.nr; n++)
		room = gpupart_tpcset_andnot(&room, &others.list[n].set);
	free(jobs);
	return room;
}

bool live_print_new_others(struct live *live, const char *what)
{
	char text[2 * GPUPART_TPCSET_STRLEN] = "", list[GPUPART_TPCSET_STRLEN], pid[24];
	size_t len = 0;

	if (!live->others_changed)
		return false;
	live->others_changed = false;
	for (unsigned int i = 0; i < live->others.nr && len < 400; i++) {
		const struct qos_other *o = &live->others.list[i];

		gpupart_tpcset_format_list(&o->set, list, sizeof(list));
		pid[0] = '\0';
		if (o->pid)
			snprintf(pid, sizeof(pid), ", pid %d", o->pid);
		len += snprintf(text + len, sizeof(text) - len, "%s%.200s (%s%s)", i ? "; " : "",
				list, *o->name ? o->name : "a program", pid);
	}
	remark("%s %s", what, *text ? text : "none");
	return true;
}
