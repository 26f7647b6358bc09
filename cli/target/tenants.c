// SPDX-License-Identifier: MIT
/* Prints and changes the memory quotas of tenants. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/target/cuda.h"
#include "cli/target/process_list.h"
#include "cli/target/tenants.h"
#include "cli/target/which_gpu.h"
#include "cli/util/alloc.h"
#include "cli/util/message.h"

/*
 * Memory for a CUDA context and code, measured on an H200. See Documentation/internals/hardware.md,
 * "Memory".
 */
#define CONTEXT_BYTES ((518ull + 64) << 20)

int tenants_take(struct tenants *tenants)
{
	memset(tenants, 0, sizeof(*tenants));
	tenants->nr = shown_tenants(cmd_gp, &tenants->list);
	if (tenants->nr >= 0)
		tenants->nr_processes = shown_tenant_processes(cmd_gp, &tenants->processes);
	if (tenants->nr >= 0 && tenants->nr_processes >= 0)
		return 0;
	tenants_drop(tenants);
	return failure("%s", gpupart_error(cmd_gp));
}

void tenants_drop(struct tenants *tenants)
{
	free(tenants->list);
	free(tenants->processes);
	memset(tenants, 0, sizeof(*tenants));
}

const char *tenants_size(char text[TENANTS_SIZE_STRLEN], uint64_t bytes)
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB" };
	uint64_t unit = 1024;
	int i = 0;

	if (bytes < 1024) {
		snprintf(text, TENANTS_SIZE_STRLEN, "%llu byte%s", (unsigned long long)bytes,
			 bytes == 1 ? "" : "s");
		return text;
	}
	for (; i < 3 && bytes / unit >= 1024; i++)
		unit *= 1024;
	/* Round down, so that the number is never larger than the size. */
	if (bytes % unit < unit / 100)
		snprintf(text, TENANTS_SIZE_STRLEN, "%llu %s", (unsigned long long)(bytes / unit),
			 units[i]);
	else
		snprintf(text, TENANTS_SIZE_STRLEN, "%llu.%02llu %s",
			 (unsigned long long)(bytes / unit),
			 (unsigned long long)(bytes % unit * 100 / unit), units[i]);
	return text;
}

static bool is_same(const struct gpupart_tenant *a, const struct gpupart_tenant *b)
{
	return a->uid == b->uid && !strcmp(a->name, b->name);
}

static bool is_of(const struct gpupart_tenant_process *process,
		  const struct gpupart_tenant *tenant)
{
	return process->uid == tenant->uid && !strcmp(process->tenant, tenant->name);
}

/* Prints nothing, or text such as " (7.5 GiB)" or " (7.5 GiB, 2 calls not counted)". */
static void print_use(struct out *out, const struct gpupart_tenant_process *process)
{
	char size[TENANTS_SIZE_STRLEN];

	if (!process->used && !process->uncounted)
		return;
	fprintf(out->file, " (%s", tenants_size(size, process->used));
	if (process->uncounted)
		fprintf(out->file, ", %llu call%s not counted",
			(unsigned long long)process->uncounted, process->uncounted > 1 ? "s" : "");
	fputc(')', out->file);
}

/*
 * Prints the tenant's processes on the GPU. Example: "4711 python3 (7.5 GiB), 4712 python3 (2
 * GiB)".
 */
static void print_users(struct out *out, const struct tenants *tenants,
			const struct gpupart_tenant *tenant)
{
	const char *before = "";

	for (int i = 0; i < tenants->nr_processes; i++) {
		const struct gpupart_tenant_process *process = &tenants->processes[i];
		char pid[16];

		if (!is_of(process, tenant) || strcmp(process->pci, tenant->pci))
			continue;
		snprintf(pid, sizeof(pid), process->pid ? "%d" : "?", process->pid);
		fprintf(out->file, "%s%s %s", before, pid, process->program);
		print_use(out, process);
		before = ", ";
	}
	if (!*before)
		fputs("-", out->file);
}

void tenants_print(struct out *out, const struct tenants *tenants)
{
	char used[TENANTS_SIZE_STRLEN], quota[TENANTS_SIZE_STRLEN];

	if (!tenants->nr)
		return;
	fprintf(out->file, "\n%s%-16s %-12s %10s %10s  USED BY%s\n", out->bold, "TENANT", "GPU",
		"USED", "QUOTA", out->plain);
	for (int i = 0; i < tenants->nr; i++) {
		const struct gpupart_tenant *tenant = &tenants->list[i];
		bool above = tenant->quota && tenant->used > tenant->quota;

		fprintf(out->file, "%-16s %-12s %s%10s%s %10s  ", tenant->name,
			*tenant->pci ? tenant->pci : "-", above ? out->red : "",
			tenants_size(used, tenant->used), above ? out->plain : "",
			tenant->quota ? tenants_size(quota, tenant->quota) : "-");
		print_users(out, tenants, tenant);
		fprintf(out->file, "%s%s\n", tenant->other_version ? ", of another version" : "",
			tenant->simulated ? " (simulated)" : "");
	}
}

static json_t *json_users(const struct tenants *tenants, const struct gpupart_tenant *tenant)
{
	json_t *list = json_array();

	for (int i = 0; i < tenants->nr_processes; i++) {
		const struct gpupart_tenant_process *process = &tenants->processes[i];

		if (is_of(process, tenant) && !strcmp(process->pci, tenant->pci))
			json_array_append_new(list, json_pack("{s:o, s:o, s:I, s:I}", "pid",
				process->pid ? json_integer(process->pid) : json_null(),
				"program", out_json_text(process->program), "used_bytes",
				(json_int_t)process->used, "uncounted_calls",
				(json_int_t)process->uncounted));
	}
	return list;
}

json_t *tenants_json(const struct tenants *tenants)
{
	json_t *list = json_array();

	for (int i = 0; i < tenants->nr; i++) {
		const struct gpupart_tenant *tenant = &tenants->list[i];

		json_array_append_new(list, json_pack("{s:s, s:o, s:b, s:b, s:o, s:I, s:i, s:o}",
			"tenant", tenant->name, "gpu", out_json_text(tenant->pci),
			"simulated", tenant->simulated, "other_version", tenant->other_version,
			"quota_bytes", tenant->quota ? json_integer(tenant->quota) : json_null(),
			"used_bytes", (json_int_t)tenant->used,
			"nr_processes", tenant->nr_processes,
			"processes", json_users(tenants, tenant)));
	}
	return list;
}

void tenants_note_above(const struct gpupart_tenant *tenant)
{
	char used[TENANTS_SIZE_STRLEN], quota[TENANTS_SIZE_STRLEN];

	if (tenant->quota && tenant->used > tenant->quota)
		remark(
			"tenant %s uses %s of %s, but its quota is only %s: the tenant keeps this memory, but allocations fail until it has freed enough",
			tenant->name, tenants_size(used, tenant->used), tenant->pci,
			tenants_size(quota, tenant->quota));
}

int tenants_check_size(const char *pci, uint64_t memory, uint64_t bytes)
{
	char wanted[TENANTS_SIZE_STRLEN], there[TENANTS_SIZE_STRLEN];

	tenants_size(wanted, bytes);
	if (memory && bytes > memory)
		return usage_error("a quota of %s exceeds the memory of GPU %s, which has %s",
				   wanted, pci, tenants_size(there, memory));
	if (bytes < CONTEXT_BYTES)
		remark(
			"a quota of %s is less than the %s that a CUDA context uses on an H200: programs may fail to start",
			wanted, tenants_size(there, CONTEXT_BYTES));
	return 0;
}

/* ------------------------------------------------------------------------- changing */

struct change {
	const struct gpupart_tenant *tenant;
	const char *pci;	/* NULL: the change is for GPUs that the tenant will use later */
	uint64_t bytes;
	int pid;		/* a process of the tenant, or 0 */
};

struct changed {
	struct shown_result result;
	uint64_t before;
	struct gpupart_tenant now;
};

static void change(const void *arg, void *result)
{
	const struct change *change = arg;
	const struct gpupart_tenant *tenant = change->tenant;
	struct changed *changed = result;

	changed->result.err = gpupart_tenant_quota_set(cmd_gp, tenant->name, change->pci,
						       change->bytes, &changed->before);
	if (!changed->result.err && change->pci)
		changed->result.err = gpupart_tenant_get(cmd_gp, tenant->name, tenant->pci,
							 &changed->now);
	if (changed->result.err)
		snprintf(changed->result.why, sizeof(changed->result.why), "%s",
			 gpupart_error(cmd_gp));
}

/* Changes a quota with the rights of the tenant's user. Returns 0 or an error. */
static int change_by_owner(const struct change *wanted, struct changed *changed)
{
	if (wanted->tenant->uid == geteuid())
		change(wanted, changed);
	else
		shown_as(wanted->tenant->uid, wanted->pid, change, wanted, &changed->result,
			 sizeof(*changed));
	return changed->result.err ? failure("%s", changed->result.why) : 0;
}

static int change_one(const struct change *wanted, struct out *out, json_t *rows)
{
	const struct gpupart_tenant *tenant = wanted->tenant;
	char old[TENANTS_SIZE_STRLEN], new[TENANTS_SIZE_STRLEN];
	struct changed changed = { 0 };
	int status = change_by_owner(wanted, &changed);

	if (status)
		return status;
	if (rows)
		json_array_append_new(rows, json_pack("{s:s, s:s, s:o, s:I, s:I}",
			"tenant", tenant->name, "gpu", tenant->pci,
			"before_bytes", changed.before ? json_integer(changed.before) : json_null(),
			"quota_bytes", (json_int_t)wanted->bytes,
			"used_bytes", (json_int_t)changed.now.used));
	else
		fprintf(out->file,
			"tenant %s's current quota on %s: %s%s\ntenant %s's new quota on %s: %s%s\n",
			tenant->name, tenant->pci,
			changed.before ? tenants_size(old, changed.before) : "none",
			tenant->simulated ? " (simulated)" : "", tenant->name, tenant->pci,
			tenants_size(new, wanted->bytes), tenant->simulated ? " (simulated)" : "");
	tenants_note_above(&changed.now);
	return 0;
}

/*
 * If @pid is 0, returns the first row of the tenant @name. Otherwise returns the first row of the
 * tenant that contains process @pid. If there is no such row, returns NULL.
 */
static const struct gpupart_tenant *find(const struct tenants *tenants, const char *name, int pid)
{
	const struct gpupart_tenant_process *process = NULL;

	for (int i = 0; pid && !process && i < tenants->nr_processes; i++)
		if (tenants->processes[i].pid == pid)
			process = &tenants->processes[i];
	for (int i = 0; i < tenants->nr; i++) {
		const struct gpupart_tenant *tenant = &tenants->list[i];

		if (pid ? process && is_of(process, tenant) :
			  tenant->uid == geteuid() && !strcmp(tenant->name, name))
			return tenant;
	}
	return NULL;
}

/*
 * Returns the first row of the tenant of the job @id of this user. If the job has no tenant,
 * returns NULL.
 */
static const struct gpupart_tenant *find_job(const struct tenants *tenants, const char *id)
{
	const struct gpupart_tenant *found = NULL;
	const struct gpupart_job *job = NULL, *on;
	struct gpupart_process *list;
	struct gpupart_job *jobs;
	int nr_jobs = shown_jobs(cmd_gp, &jobs), nr = shown_processes(cmd_gp, &list);

	for (int i = 0; !job && i < nr_jobs; i++)
		if (jobs[i].uid == geteuid() && !strcmp(jobs[i].id, id))
			job = &jobs[i];
	if (job)
		found = find(tenants, job->name, 0);
	/* Without a name, or inside another job, its programs may be in another tenant. */
	for (int i = 0; job && !found && i < nr; i++) {
		on = shown_job_on(jobs, nr_jobs, list[i].job, job->pci);
		if (on && !strcmp(on->id, id) && list[i].uid == job->uid && list[i].pid)
			found = find(tenants, "", list[i].pid);
	}
	free(list);
	free(jobs);
	return found;
}

/*
 * Returns whether process @pid uses another version of gpupart. In this case the tenant of the
 * process is not known.
 */
static bool is_other_version(int pid)
{
	struct gpupart_process *list;
	int nr = shown_processes(cmd_gp, &list);
	bool found = false;

	for (int i = 0; i < nr; i++)
		found |= pid && list[i].pid == pid && list[i].other_version;
	free(list);
	return found;
}

/* Changes the quota for GPUs that the tenant will use later. Returns 0 or an error. */
static int change_others(const struct gpupart_tenant *tenant, int pid, uint64_t bytes)
{
	struct change wanted = { .tenant = tenant, .bytes = bytes, .pid = pid };
	struct changed changed = { 0 };

	return change_by_owner(&wanted, &changed);
}

/* Checks that each selected GPU has @bytes of memory. Returns 0 or an error. */
static int check_sizes(const struct args *args, const struct tenants *tenants,
		       const struct gpupart_tenant *meant, uint64_t bytes)
{
	struct which_gpu which = { .selector = args->gpu };
	uint64_t memory, least = 0;
	const char *pci = NULL;

	for (int i = 0; i < tenants->nr; i++) {
		const struct gpupart_tenant *tenant = &tenants->list[i];

		if (!is_same(tenant, meant) || !*tenant->pci ||
		    (args->gpu && !which_gpu_is(&which, tenant->pci, "", tenant->simulated,
						tenant - meant)))
			continue;
		memory = cuda_memory(tenant->pci, tenant->simulated);
		if (!pci || (memory && (!least || memory < least))) {
			least = memory;
			pci = tenant->pci;
		}
	}
	return pci ? tenants_check_size(pci, least, bytes) : 0;
}

static int change_all(const struct args *args, const struct tenants *tenants,
		      const struct gpupart_tenant *meant, int pid, uint64_t bytes)
{
	struct which_gpu which = { .selector = args->gpu };
	json_t *rows = args->json ? json_array() : NULL;
	int status, failed = 0, nr = 0;
	char others[256] = "";
	struct out out;

	status = out_open(&out, args);
	for (int i = 0; !status && i < tenants->nr; i++) {
		const struct gpupart_tenant *tenant = &tenants->list[i];
		struct change wanted = { .tenant = tenant, .pci = tenant->pci, .bytes = bytes,
					 .pid = pid };

		if (!is_same(tenant, meant) || !*tenant->pci)
			continue;
		if (args->gpu && !which_gpu_is(&which, tenant->pci, "", tenant->simulated,
					       tenant - meant)) {
			out_append(others, sizeof(others), "%s%s", *others ? ", " : "",
				   tenant->pci);
			continue;
		}
		failed |= change_one(&wanted, &out, rows);
		nr++;
	}
	if (nr && !failed && !args->gpu)
		failed = change_others(meant, pid, bytes);
	if (!status) {
		out_json_list(&out, "set", meant->simulated, "quotas", rows);
		status = out_close(&out);
	}
	if (nr)
		return failed ?: status;
	return *others ? usage_error("--gpu %s: tenant %s uses GPU %s", args->gpu, meant->name,
				     others)
		       : usage_error("tenant %s uses no GPU so far", meant->name);
}

int tenants_set(const struct args *args, const char *name, const char *pid, uint64_t bytes)
{
	const struct gpupart_tenant *meant;
	struct tenants tenants;
	int status = 0, number = 0;

	if (pid)
		status = args_pid(pid, &number);
	if (status)
		return status;
	status = tenants_take(&tenants);
	if (status)
		return status;
	meant = find(&tenants, name, number);
	if (!meant && !pid)
		meant = find_job(&tenants, name);
	if (meant && meant->other_version)
		status = failure(
			"tenant %s was created by another version of gpupart: only 'gpupart set' of that version can change its quota",
			meant->name);
	else if (meant)
		status = check_sizes(args, &tenants, meant, bytes);
	if (meant && !status)
		status = change_all(args, &tenants, meant, number, bytes);
	else if (!meant && is_other_version(number))
		status = failure(
			"process %d runs under another version of gpupart: only 'gpupart set' of that version can change its quota",
			number);
	else if (!meant && pid)
		status = usage_error(
			"process %d has no memory quota: the process was started without --mem, or has not called cuInit: see 'gpupart ps'",
			number);
	else if (!meant)
		status = usage_error(
			"you have no running tenant named '%s', or it was started without --mem: see 'gpupart ps'",
			name);
	tenants_drop(&tenants);
	return status;
}
