// SPDX-License-Identifier: MIT
/* Reads the list of confined processes. Prints the list as a table or as JSON. */
#include <malloc.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/target/cgroup.h"
#include "cli/target/lending.h"
#include "cli/target/process_table.h"
#include "cli/target/nvml.h"
#include "cli/target/process_list.h"
#include "cli/util/alloc.h"
#include "cli/util/process.h"

void process_table_save_memory(void)
{
	/* Allocate large lists as memory mappings. The unused part of a mapping costs no memory. */
	mallopt(M_MMAP_THRESHOLD, 1 << 20);
	mallopt(M_ARENA_MAX, 1);
}

/*
 * Returns whether the lists of jobs and tenants are recent. The lists must also contain all jobs of
 * this user.
 */
static bool is_recent(const struct process_table *table, double age)
{
	bool recent = table->listed_ns && table->at_ns - table->listed_ns < age * 1e9;

	for (int i = 0; recent && i < table->nr; i++) {
		const struct gpupart_process *p = &table->list[i];
		int n = 0;

		while (n < table->nr_jobs && strcmp(table->jobs[n].id, p->job))
			n++;
		recent = n < table->nr_jobs || !*p->job || p->uid != geteuid();
	}
	return recent;
}

/* Prints which files of other users root did not read. Prints this once. */
static void say_rest(const struct process_table *table)
{
	static bool said;
	bool found = false;

	for (int i = 0; i < table->nr && !said; i++) {
		const struct gpupart_process *p = &table->list[i];

		if (p->pid || *p->pci || *p->name || !*p->problem)
			continue;
		remark("%s", p->problem);
		found = true;
	}
	said |= found;
}

int process_table_read(struct process_table *table, double age)
{
	free(table->list);
	nvml_forget();
	table->at_ns = process_now_ns();
	table->nr = shown_processes(cmd_gp, &table->list);
	if (table->nr < 0)
		return failure("%s", gpupart_error(cmd_gp));
	say_rest(table);
	if (is_recent(table, age))
		return 0;
	free(table->jobs);
	tenants_drop(&table->tenants);
	table->listed_ns = table->at_ns;
	table->nr_jobs = shown_jobs(cmd_gp, &table->jobs);
	return tenants_take(&table->tenants);
}

const char *look_user(unsigned int uid)
{
	static struct {
		unsigned int uid;
		char name[33];
	} known[64];
	static unsigned int nr;
	const struct passwd *user;
	unsigned int i = 0;

	while (i < nr && known[i].uid != uid)
		i++;
	if (i < nr)
		return known[i].name;
	/* If there are too many users, the last entry is for several users. */
	i = nr < 64 ? nr++ : 63;
	user = getpwuid(uid);
	known[i].uid = uid;
	if (user)
		snprintf(known[i].name, sizeof(known[i].name), "%s", user->pw_name);
	else
		snprintf(known[i].name, sizeof(known[i].name), "%u", uid);
	for (char *c = known[i].name; *c; c++)
		if (*c <= ' ' || *c > '~')
			*c = '?';
	return known[i].name;
}

static uint64_t nr_widened(const struct gpupart_counters *c)
{
	return c->widened_empty + c->widened_driver + c->widened_cluster + c->widened_cooperative;
}

static uint64_t nr_unconfined(const struct gpupart_counters *c)
{
	return c->unconfinable_version + c->unconfinable_map + c->unconfinable_gpu;
}

static const char *memory_text(char *text, size_t len, const struct gpupart_process *p)
{
	int64_t bytes = p->simulated ? -1 : nvml_memory(p->pci, p->pid);

	if (bytes < 0)
		snprintf(text, len, "-");
	else
		snprintf(text, len, "%lld MiB", (long long)(bytes >> 20));
	return text;
}

/*
 * Returns the launches per second since @before. If @before does not contain the process, returns a
 * value below 0.
 */
static double rate_of(const struct gpupart_process *p, const struct process_table *now,
		      const struct process_table *before)
{
	double seconds = (now->at_ns - before->at_ns) / 1e9;

	for (int i = 0; before->list && i < before->nr; i++)
		if (before->list[i].pid == p->pid && !strcmp(before->list[i].job, p->job) &&
		    p->counters.launches >= before->list[i].counters.launches && seconds > 0)
			return (p->counters.launches - before->list[i].counters.launches) / seconds;
	return -1;
}

/*
 * The topologies of known GPUs. Each topology is opened once. If opening failed, the topology is
 * NULL.
 */
#define MAX_GPUS 64

const struct gpupart_topology *look_topology(const struct gpupart_process *p)
{
	static struct {
		char pci[20], source[512];
		unsigned int uid;
		struct gpupart_topology *topo;
	} known[MAX_GPUS];
	const struct shown_gpu gpu = {
		.source = p->source, .pci = p->pci, .simulated = p->simulated, .uid = p->uid,
	};
	static unsigned int nr;
	unsigned int i = 0;
	char why[160];

	if (!*p->pci)
		return NULL;
	while (i < nr && (strcmp(known[i].pci, p->pci) || strcmp(known[i].source, p->source) ||
			  known[i].uid != p->uid))
		i++;
	if (i < nr)
		return known[i].topo;
	if (nr == MAX_GPUS)
		return NULL;
	snprintf(known[nr].pci, sizeof(known[nr].pci), "%s", p->pci);
	snprintf(known[nr].source, sizeof(known[nr].source), "%s", p->source);
	known[nr].uid = p->uid;
	known[nr].topo = NULL;
	/*
	 * Do not store a failure for another user's GPU, because such failures could fill the
	 * table.
	 */
	if (shown_topology(&gpu, false, &known[nr].topo, why, sizeof(why)) && p->uid != geteuid())
		return NULL;
	return known[nr++].topo;
}

const char *look_set(char text[OUT_SET_STRLEN], const struct gpupart_topology *topo,
		     const struct gpupart_tpcset *set, const char *problem)
{
	if (!set)
		return *problem ? "not confined" : "all";
	if (topo)
		return out_set(text, OUT_SET_STRLEN, topo, set);
	gpupart_tpcset_format_list(set, text, OUT_SET_STRLEN);
	return text;
}

static const char *set_text(char text[OUT_SET_STRLEN], const struct gpupart_process *p)
{
	struct gpupart_tpcset set;

	if (*p->limit && gpupart_tpcset_parse_list(NULL, p->limit, &set))
		return p->limit;
	return look_set(text, look_topology(p), *p->limit ? &set : NULL, p->problem);
}

static const char *pid_text(char *text, size_t len, int pid)
{
	/* A process of another pid namespace has pid 0. */
	if (pid)
		snprintf(text, len, "%d", pid);
	else
		snprintf(text, len, "?");
	return text;
}

/*
 * Returns whether to print the column USER. The column is printed if there are both grants and
 * processes of other users.
 */
static bool has_others(const struct process_table *now)
{
	if (gpupart_grant_list(NULL, NULL, 0, sizeof(struct gpupart_grant)) <= 0)
		return false;
	for (int i = 0; i < now->nr; i++)
		if (now->list[i].uid != geteuid())
			return true;
	return false;
}

static bool any_in_container(const struct process_table *now)
{
	struct cgroup_ids ids = { .container = "" };

	for (int i = 0; !*ids.container && i < now->nr; i++)
		cgroup_read(now->list[i].pid, &ids);
	return *ids.container;
}

/*
 * Formats the container's id in 13 columns. As in docker and podman, the text has the first 12
 * digits of the id.
 */
static const char *container_text(char text[16], const struct gpupart_process *p)
{
	struct cgroup_ids ids;

	cgroup_read(p->pid, &ids);
	snprintf(text, 16, "%-12.12s ", *ids.container ? ids.container : "-");
	return text;
}

/* If a process uses another version of gpupart, its counters are not known. */
static const char *count_text(char text[24], const struct gpupart_process *p, uint64_t nr)
{
	snprintf(text, 24, p->other_version ? "-" : "%llu", (unsigned long long)nr);
	return text;
}

/* Prints all columns. The last column, SET, may be long. */
static void print_rows(struct out *out, const struct process_table *now,
		       const struct process_table *before)
{
	bool users = has_others(now), containers = any_in_container(now);

	fprintf(out->file, "%s%7s %s%s%-16s %-12s %9s %12s%s %8s %10s  SET%s\n", out->bold, "PID",
		users ? "USER     " : "", containers ? "CONTAINER    " : "", "NAME", "GPU",
		"MEMORY", "LAUNCHES", before ? "       /S" : "", "WIDENED", "UNCONFINED",
		out->plain);
	for (int i = 0; i < now->nr; i++) {
		const struct gpupart_process *p = &now->list[i];
		char launches[24], widened[24], unconfined[24], lent[LENDING_STRLEN];
		struct gpupart_lending lending;
		char pid[16], user[32] = "", memory[32], rate[32] = "", set[OUT_SET_STRLEN];
		char container[16] = "";
		double per_second = before ? rate_of(p, now, before) : -1;

		if (before && per_second >= 0)
			snprintf(rate, sizeof(rate), " %8.0f", per_second);
		else if (before)
			snprintf(rate, sizeof(rate), " %8s", "-");
		if (users)
			snprintf(user, sizeof(user), "%-8.16s ", look_user(p->uid));
		if (containers)
			container_text(container, p);
		fprintf(out->file, "%7s %s%s%-16s %-12s %9s %12s%s %8s %10s  %s%s%s%s\n",
			pid_text(pid, sizeof(pid), p->pid), user, container,
			*p->name ? p->name : "-", *p->pci ? p->pci : "-",
			memory_text(memory, sizeof(memory), p),
			count_text(launches, p, p->counters.launches), rate,
			count_text(widened, p, nr_widened(&p->counters)),
			count_text(unconfined, p, nr_unconfined(&p->counters)),
			set_text(set, p),
			p->nr_gpus > 1 ? ", and other GPUs" : "",
			p->other_version ? ", of another version" : "",
			p->simulated ? " (simulated)" : "");
		if (*p->problem)
			fprintf(out->file, "%7s %s\n", "", p->problem);
		if (lending_of(p, &lending))
			fprintf(out->file, "%7s %s\n", "",
				lending_text(lent, look_topology(p), &lending));
	}
}

void process_table_print(struct out *out, const struct process_table *now,
			 const struct process_table *before)
{
	print_rows(out, now, before);
	tenants_print(out, &now->tenants);
}

void process_table_free(struct process_table *table)
{
	free(table->list);
	free(table->jobs);
	tenants_drop(&table->tenants);
	memset(table, 0, sizeof(*table));
}

static json_t *json_process(const struct gpupart_process *p)
{
	int64_t bytes = p->simulated ? -1 : nvml_memory(p->pci, p->pid);
	struct gpupart_tpcset set = { { 0 } };
	struct gpupart_lending lending;
	struct cgroup_ids ids;

	if (*p->limit && gpupart_tpcset_parse_list(NULL, p->limit, &set))
		memset(&set, 0, sizeof(set));
	cgroup_read(p->pid, &ids);
	return json_pack("{s:o, s:I, s:o, s:o, s:o, s:o, s:b, s:i, s:o, s:o, s:o, s:o, s:b, s:o}",
			 "pid", p->pid ? json_integer(p->pid) : json_null(),
			 "uid", (json_int_t)p->uid,
			 "container", out_json_text(ids.container),
			 "name", out_json_text(p->name), "job", out_json_text(p->job),
			 "gpu", out_json_text(p->pci), "simulated", p->simulated,
			 "nr_gpus", p->nr_gpus, "set", out_json_tpcs(&set),
			 "memory_bytes", bytes < 0 ? json_null() : json_integer(bytes),
			 "problem", out_json_text(p->problem),
			 "counters", p->other_version ? json_null() :
							out_json_counters(&p->counters),
			 "other_version", p->other_version,
			 "lending", lending_json(lending_of(p, &lending) ? &lending : NULL));
}

void process_table_json(struct out *out, const struct process_table *table)
{
	json_t *root, *list = json_array();
	bool simulated = false;

	for (int i = 0; i < table->nr; i++) {
		simulated |= table->list[i].simulated;
		json_array_append_new(list, json_process(&table->list[i]));
	}
	for (int i = 0; i < table->tenants.nr; i++)
		simulated |= table->tenants.list[i].simulated;
	root = out_json_new("ps", simulated);
	json_object_set_new(root, "processes", list);
	json_object_set_new(root, "tenants", tenants_json(&table->tenants));
	out_json_write(out, root);
}
