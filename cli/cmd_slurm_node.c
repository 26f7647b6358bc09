// SPDX-License-Identifier: MIT
/* gpupart slurm-node: examines this node's GPUs for Slurm's plugin. Lists and releases grants. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/target/args.h"
#include "cli/cmd.h"
#include "cli/mps/mps_daemon.h"
#include "cli/slurm/node_gpus.h"
#include "cli/util/out.h"
#include "cli/util/paths.h"
#include "cli/target/process_list.h"
#include "cli/util/atomic_file.h"
#include "slurm/orphans.h"
#include "lib/private.h"

#define SLURMD_FILE "/run/gpupart/slurmd"

const char slurm_node_help[] =
"Usage: gpupart slurm-node [-i CAPTURE]\n"
"       gpupart slurm-node --clean | --check | --list [--json]\n"
"Reads the topology and memory size of this node's GPUs and checks their mask bits,\n"
"for Slurm's plugin. As root it writes the result to /run/gpupart. Slurm's plugin runs\n"
"this command when slurmd starts, so that no job has to wait for it.\n"
"\n"
"  -i, --input CAPTURE use the simulated GPU of CAPTURE as the node's GPU\n"
"      --boot          what the plugin runs when slurmd starts: also does --clean, and\n"
"                      keeps simulated GPUs unchanged\n"
"      --clean         release the grants of jobs that Slurm no longer runs here,\n"
"                      after a crash of the node's daemons; squeue lists the jobs\n"
"      --check         for a prolog or epilog: fail if there are grants for a job that\n"
"                      Slurm does not run here, if a process of such a job uses a GPU\n"
"                      and its user has no other job here, or if the node's MPS daemon\n"
"                      does not answer; changes nothing\n"
"      --list          list the grants on this node, with their jobs and users\n"
"      --json          print JSON, schema gpupart/1\n"
"\n"
"Exit status: 0 done, 1 a GPU could not be read, squeue failed, --check found\n"
"a problem, or with --clean the node's MPS daemon does not answer, 2 bad values.\n"
"\n"
"Examples:\n"
"  gpupart slurm-node\n"
"  gpupart slurm-node --check || scontrol update nodename=$(hostname -s) state=drain \\\n"
"    reason='gpupart: something is left'\n";

struct held {
	struct gpupart_grant *list;
	int nr;
};

static int take_held(struct held *held)
{
	held->nr = shown_grants(cmd_gp, &held->list);
	return held->nr < 0 ? failure("%s", gpupart_error(cmd_gp)) : 0;
}

/*
 * Returns whether @id belongs to a job of Slurm. Such an id consists of "0-" and a number. The
 * id of a pod has more hyphens.
 */
static bool is_slurms(const char *id)
{
	return !strncmp(id, "0-", 2) && !strchr(id + 2, '-');
}

static int take_jobs(struct held *held)
{
	int status = take_held(held), nr = 0;

	for (int i = 0; i < held->nr; i++)
		if (is_slurms(held->list[i].id))
			held->list[nr++] = held->list[i];
	held->nr = status ? held->nr : nr;
	return status;
}

/* ------------------------------------------------------------ Slurm's jobs */

/* The Slurm jobs on this node, and the users of these jobs. */
struct running {
	unsigned int *jobs, *uids, nr;
};

static bool runs(const struct running *running, const char *name)
{
	unsigned int job = strtoul(name, NULL, 10);

	for (unsigned int i = 0; i < running->nr; i++)
		if (running->jobs[i] == job)
			return true;
	return false;
}

static bool has_job(const struct running *running, unsigned int uid)
{
	for (unsigned int i = 0; i < running->nr; i++)
		if (running->uids[i] == uid)
			return true;
	return false;
}

static void running_free(struct running *running)
{
	free(running->jobs);
	free(running->uids);
}

static bool name_is_plain(const char *name)
{
	return *name && *name != '-' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz" "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
			    "0123456789._-") == strlen(name);
}

/*
 * With these variables, squeue finds the Slurm cluster of this slurmd. HealthCheckProgram does not
 * get the variables from slurmd. So this command stores the variables when slurmd starts.
 */
static const char *const slurmd_variables[] = { "SLURM_CONF", "SLURMD_NODENAME", "PATH" };

#define NR_VARIABLES (sizeof(slurmd_variables) / sizeof(slurmd_variables[0]))

static int note_slurmd(void)
{
	char *text = NULL;
	size_t len;
	FILE *file = alloc_file(&text, &len);
	int err;

	for (size_t i = 0; i < NR_VARIABLES; i++) {
		const char *value = getenv(slurmd_variables[i]);

		if (value && *value && !strchr(value, '\n'))
			fprintf(file, "%s=%s\n", slurmd_variables[i], value);
	}
	alloc_file_close(file);
	err = atomic_file_write(SLURMD_FILE, text);
	free(text);
	return err ? failure(SLURMD_FILE ": %s", strerror(-err)) : 0;
}

/*
 * If the variable is not set, sets the variable. For PATH, always appends @value, because perhaps
 * only the PATH of slurmd contains squeue.
 */
static void take_variable(const char *name, const char *value)
{
	const char *own = getenv(name);
	char *both;

	if (strcmp(name, "PATH") || !own) {
		setenv(name, value, 0);
	} else if (asprintf(&both, "%s:%s", own, value) >= 0) {
		setenv(name, both, 1);
		free(both);
	}
}

static void take_slurmd(void)
{
	FILE *file = getenv("SLURM_CONF") ? NULL : fopen(SLURMD_FILE, "re");
	char *line = NULL;
	size_t room = 0;

	while (file && getline(&line, &room, file) > 0) {
		char *value = line;

		line[strcspn(line, "\n")] = 0;
		strsep(&value, "=");
		for (size_t i = 0; value && i < NR_VARIABLES; i++)
			if (!strcmp(line, slurmd_variables[i]))
				take_variable(line, value);
	}
	free(line);
	if (file)
		fclose(file);
}

/* Removes the variables that could make squeue omit jobs or query another cluster. */
static void forget_squeue_variables(void)
{
	for (char **at = environ; *at; ) {
		char name[64];

		snprintf(name, sizeof(name), "%.*s", (int)strcspn(*at, "="), *at);
		if ((!strncmp(name, "SQUEUE_", 7) || !strcmp(name, "SLURM_CLUSTERS")) &&
		    !unsetenv(name))
			at = environ;
		else
			at++;
	}
}

/* Reads a number at *text. Moves *text past the number and the blanks after the number. */
static bool read_number(char **text, unsigned int *number)
{
	unsigned long value;

	if (**text < '0' || **text > '9')
		return false;
	errno = 0;
	value = strtoul(*text, text, 10);
	*text += strspn(*text, " ");
	*number = value;
	return !errno && value <= UINT_MAX;
}

/*
 * Reads lines that consist of a job number and a user id. Returns false if a line has another form.
 */
static bool read_jobs(FILE *file, struct running *running)
{
	unsigned int job, uid;
	char line[64], *at;

	while ((at = fgets(line, sizeof(line), file))) {
		if (!read_number(&at, &job) || !job || !read_number(&at, &uid) || strcmp(at, "\n"))
			return false;
		running->jobs = alloc_resized(running->jobs, running->nr + 1,
					      sizeof(*running->jobs));
		running->uids = alloc_resized(running->uids, running->nr + 1,
					      sizeof(*running->uids));
		running->jobs[running->nr] = job;
		running->uids[running->nr++] = uid;
	}
	return !ferror(file);
}

/*
 * Asks squeue for the jobs that are starting, running or ending on this node. Returns 0 or an
 * error.
 */
static int ask_slurm(struct running *running)
{
	char name[256], command[320];
	const char *node;
	FILE *pipe;
	bool good;
	int status;

	take_slurmd();
	node = getenv("SLURMD_NODENAME");
	if (!node || !*node) {
		if (gethostname(name, sizeof(name)))
			return failure("cannot read this node's name: %s", strerror(errno));
		name[sizeof(name) - 1] = 0;
		name[strcspn(name, ".")] = 0;
		node = name;
	}
	if (!name_is_plain(node))
		return failure("'%s' is not a valid node name", node);
	/* The name was checked, so it contains no special characters of the shell. */
	snprintf(command, sizeof(command),
		 "exec squeue -a -h -o '%%A %%U' -t PD,CF,R,S,ST,RS,SI,SO,CG -w %.200s", node);
	forget_squeue_variables();
	pipe = popen(command, "re");
	good = pipe && read_jobs(pipe, running);
	status = pipe ? pclose(pipe) : -1;
	if (good && !status)
		return 0;
	/* The answer is missing or incomplete. Return an error, so that no grant is released. */
	return failure("squeue did not list the jobs on %s", node);
}

/* Returns whether the node has an MPS daemon that does not answer. */
static bool mps_is_lost(void)
{
	static struct mps_daemon daemon;
	int err = mps_daemon_find_node(&daemon);

	if (!err || err == -ENOENT)
		return false;
	remark(
		"%s: jobs share a GPU in time slices: see 'systemctl status gpupart-mps', then restart this service",
		daemon.why);
	return true;
}

static int clean(void)
{
	struct running running = { 0 };
	struct held held;
	struct left left = { NULL, 0 };
	const char *why;
	unsigned int nr_left;
	int status = take_jobs(&held);

	if (!status && held.nr)
		status = ask_slurm(&running);
	for (int i = 0; !status && i < held.nr; i++) {
		if (runs(&running, held.list[i].name))
			continue;
		nr_left = left_kill(&left, strtoul(held.list[i].name, NULL, 10), &held.list[i],
				    &why);
		/*
		 * Keep the grant until these processes have ended. A later call then releases the
		 * grant.
		 */
		if (nr_left) {
			remark("job %s no longer runs on this node: %u of its processes %s",
			       held.list[i].name, nr_left, why);
			continue;
		}
		if (gpupart_grant_drop(cmd_gp, held.list[i].id))
			status = failure("%s", gpupart_error(cmd_gp));
		else
			remark(
				"job %s no longer runs on this node: the grant of this job is released",
			       held.list[i].name);
	}
	free(left.list);
	running_free(&running);
	free(held.list);
	/* If a health check succeeds, slurmd does not log its output. */
	if (mps_is_lost() && !status)
		status = EXIT_FAILED;
	return status;
}

/*
 * Counts processes of jobs that do not run on this node. The job id is in the process's state page,
 * and a user can write any id to a state page. Therefore the function ignores processes of users
 * who have another job on this node.
 */
static int check_processes(const struct running *running)
{
	struct gpupart_process *list;
	int nr = shown_processes(cmd_gp, &list), found = 0;

	for (int i = 0; i < nr; i++)
		if (is_slurms(list[i].job) && !runs(running, list[i].name) &&
		    !has_job(running, list[i].uid)) {
			remark(
				"pid %d of user %u still uses %s, but its job %s has ended",
				list[i].pid, list[i].uid, list[i].pci, list[i].name);
			found++;
		}
	free(list);
	return found;
}

static int check(void)
{
	struct running running = { 0 };
	struct held held;
	int found = 0, status = take_jobs(&held) ?: ask_slurm(&running);

	for (int i = 0; !status && i < held.nr; i++)
		if (!runs(&running, held.list[i].name)) {
			remark(
				"job %s of user %u does not run on this node, but has a grant for TPCs of %s",
			       held.list[i].name, held.list[i].uid, held.list[i].pci);
			found++;
		}
	if (!status)
		found += check_processes(&running) + mps_is_lost();
	running_free(&running);
	free(held.list);
	return status ?: found ? EXIT_FAILED : 0;
}

/* --------------------------------------------------------------------- list */

static bool is_simulated(const struct gpupart_grant *grant)
{
	return (*grant->source || grant->other_version) && !paths_is_live(grant->source);
}

static json_t *json_held(const struct gpupart_grant *grant)
{
	char list[GPUPART_TPCSET_STRLEN];

	gpupart_tpcset_format_list(&grant->set, list, sizeof(list));
	return json_pack("{s:o, s:I, s:o, s:o, s:i, s:I, s:o, s:o, s:b, s:b}",
			 "job", out_json_text(grant->name), "uid", (json_int_t)grant->uid,
			 "gpu", out_json_text(grant->pci), "list", out_json_text(list),
			 "nr_tpcs", (int)gpupart_tpcset_count(&grant->set),
			 "memory_bytes", (json_int_t)grant->memory,
			 "asked", out_json_text(grant->asked), "refused", out_json_text(grant->why),
			 "simulated", is_simulated(grant), "other_version", grant->other_version);
}

static void print_held(struct out *out, const struct gpupart_grant *grant)
{
	char list[GPUPART_TPCSET_STRLEN];

	gpupart_tpcset_format_list(&grant->set, list, sizeof(list));
	fprintf(out->file, "%-10s %6u %-12s %5u %6llu MiB  %s%s%s\n", grant->name, grant->uid,
		*grant->pci ? grant->pci : "-", gpupart_tpcset_count(&grant->set),
		(unsigned long long)(grant->memory >> 20), *list ? list : grant->why,
		grant->other_version ? ", of another version" : "",
		is_simulated(grant) ? " (simulated)" : "");
}

static int list_held(const struct args *args)
{
	json_t *rows;
	bool simulated = false;
	struct held held;
	struct out out;
	int status = take_held(&held) ?: out_open(&out, args);

	if (status)
		goto free_list;
	rows = args->json ? json_array() : NULL;
	if (!rows)
		fprintf(out.file, "%s%-10s %6s %-12s %5s %10s  SET%s\n", out.bold, "JOB", "UID",
			"GPU", "TPCS", "MEMORY", out.plain);
	for (int i = 0; i < held.nr; i++) {
		simulated |= is_simulated(&held.list[i]);
		if (rows)
			json_array_append_new(rows, json_held(&held.list[i]));
		else
			print_held(&out, &held.list[i]);
	}
	out_json_list(&out, "slurm-node", simulated, "jobs", rows);
	status = out_close(&out);
free_list:
	free(held.list);
	return status;
}

/* ------------------------------------------------------------------ the GPUs */

static int look(struct args *args)
{
	static struct node_gpus node;
	int status = node_gpus_examine(args, &node) ?: node_gpus_write(&node);

	for (unsigned int i = 0; !status && i < node.nr; i++)
		remark("GPU %u is %s with %u TPCs and %llu MiB%s", node.gpus[i].number,
		       node.gpus[i].pci, gpupart_topology_nr_tpcs(node.gpus[i].topo),
		       (unsigned long long)(node.gpus[i].memory >> 20),
		       node.gpus[i].simulated ? ", simulated" : "");
	node_gpus_close(&node);
	return status;
}

static int boot(struct args *args)
{
	int status = (node_gpus_simulated() ? 0 : look(args)) ?: note_slurmd();

	/*
	 * If slurmctld does not answer, this call may fail. In this case a later allocation that
	 * lacks TPCs releases the old grants.
	 */
	clean();
	return status;
}

int cmd_slurm_node(int argc, char **argv)
{
	bool wants_boot = false, wants_clean = false, wants_check = false, wants_list = false;
	const struct args_option own[] = { { .name = "boot", .given = &wants_boot },
					   { .name = "clean", .given = &wants_clean },
					   { .name = "check", .given = &wants_check },
					   { .name = "list", .given = &wants_list },
					   { 0 } };
	struct args args = { 0 };
	int status;

	status = args_parse(&args, ARGS_SIM | ARGS_JSON, own, slurm_node_help, argc, argv);
	if (status)
		return status;
	if (wants_boot + wants_clean + wants_check + wants_list > 1)
		return usage_error("--boot, --clean, --check and --list: use only one of them");
	if (args.json && !wants_list)
		return usage_error("--json: needs --list");
	if (args.source && (wants_clean || wants_check || wants_list))
		return usage_error("-i %s: cannot be used with --clean, --check or --list",
				   args.source);
	return wants_clean ? clean() : wants_check ? check() : wants_list ? list_held(&args) :
	       wants_boot ? boot(&args) : look(&args);
}
