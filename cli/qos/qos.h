/* SPDX-License-Identifier: MIT */
/*
 * Declarations for all files of `gpupart qos`: the tenants in a file, a run of the policy, its log
 * and its results. Call all functions from one thread.
 */
#ifndef GPUPART_CLI_QOS_QOS_H
#define GPUPART_CLI_QOS_QOS_H

#include "cli/qos/policy/gpupart_qos.h"
#include "cli/target/args.h"
#include "cli/target/nvml.h"
#include "cli/util/alloc.h"
#include "cli/util/out.h"
#include "cli/util/yaml.h"

#define QOS_MOST_PHASES	64
/*
 * maximum number of listed programs that are not tenants; the last entry stands for all further
 * programs
 */
#define QOS_MOST_OTHERS	64

/* A program's progress comes from a signal of one of these kinds. */
enum qos_signal {
	QOS_SIGNAL_AUTO,	/* reports, or launches if the program makes no reports */
	QOS_SIGNAL_REPORTED,
	QOS_SIGNAL_LAUNCHES,
	QOS_SIGNAL_KERNELS,	/* completed launches, weighted by their solo time: experimental */
};

struct qos_spec {
	enum qos_signal signal;
	char durations[256];	/* the file with solo times of kernels; "": learn the times */
	char **program;		/* the program and its arguments, or NULL: start no program */
	int pid;			/* the pid to adopt; 0: none */
	char job[64];			/* the name of the job to adopt; "": none */
	char stream[64];		/* the name of a stream in a scenario */
	int line;			/* its line number in the file, for messages */
};

struct qos_phase {
	unsigned int run;		/* index into the runs of the scenario */
	unsigned int epochs;
	int line;			/* the line of the file */
};

/* The contents of a file of tenants. */
struct qos_setup {
	const char *path;
	uint64_t epoch_ns;
	struct qos_rules rules;
	bool shapes;	/* if the GPU's layout is known, try shapes other than "packed" */
	unsigned int nr;
	struct qos_tenant tenants[QOS_MAX_TENANTS];
	struct qos_spec specs[QOS_MAX_TENANTS];
	unsigned int nr_phases;
	struct qos_phase phases[QOS_MOST_PHASES];
};

enum qos_file {
	QOS_FILE_PROGRAMS,
	QOS_FILE_CALIBRATE,	/* a file of programs, which may lack solo speeds */
	QOS_FILE_SCENARIO,	/* the "qos" part of a scenario */
};

/*
 * Reads tenants from the mapping @node, which is a whole file or a part of a scenario. On an error,
 * prints a message and returns false. Always call qos_setup_free() afterwards.
 */
bool qos_setup_read(struct qos_setup *setup, struct yaml *yaml, yaml_node_t *node,
		    enum qos_file kind);
void qos_setup_free(struct qos_setup *setup);
/* Replaces the program of @spec by a copy of @program, or by NULL. */
void qos_spec_program(struct qos_spec *spec, char **program);
/*
 * Sets the floors of best-effort tenants without a floor. Together these floors are a tenth of the
 * GPU. If the floors of all tenants would not fit in the GPU, sets no floor.
 */
void qos_setup_floors(struct qos_setup *setup, const struct qos_board *board);

/*
 * Returns the lender of tenant @i. If there is no lender, returns QOS_MAX_TENANTS. The best-effort
 * tenants are assigned to the lenders in turn.
 */
unsigned int qos_lender_of(const struct qos_setup *setup, unsigned int i);

/*
 * A tenant's name becomes the name of a job, so the rule is the same as for 'gpupart run --name'.
 */
#define QOS_NAME_RULE \
	"must be 1 to 63 characters from A-Z a-z 0-9 . _ -, and must not start with '-'"

#define qos_fail(...)	cmd_fail("qos", __VA_ARGS__)
#define qos_note(...)	cmd_note("qos", __VA_ARGS__)

/* ------------------------------------------------------------------ one run of it */

/* A tenant in one epoch, for the picture. */
struct qos_sample {
	uint32_t score;
	uint64_t speed;
	uint16_t nr_tpcs;	/* number of TPCs in the epoch that ended */
	uint8_t state;
};

struct qos_epoch {
	uint64_t time_ns;	/* time from the start of the run to the end of this epoch */
	struct qos_sample tenants[QOS_MAX_TENANTS];
};

/* Sums of power and clocks over the epochs in which they were read. */
struct qos_gpu_sum {
	uint64_t power_mw, sm_mhz, memory_mhz;
	unsigned int nr_power, nr_sm, nr_memory;
};

/* A program that is not a tenant, and its TPCs. */
struct qos_other {
	char name[64];		/* "": not known */
	int pid;		/* 0: this user cannot see the process */
	struct gpupart_tpcset set;
};

struct qos_others {
	unsigned int nr;
	struct qos_other list[QOS_MOST_OTHERS];
};

/* Sums of a tenant over all epochs. */
struct qos_sum {
	unsigned int heard, met;	/* epochs with a signal; epochs that met the goal */
	unsigned __int128 speeds;	/* sum of the speeds in the epochs with a signal */
	uint64_t speed;			/* mean speed in the epochs with a signal */
	unsigned int changes;
	unsigned int least, most;	/* smallest and largest number of TPCs */
	uint64_t answered, within;	/* requests; requests within the latency goal */
	uint64_t borrowed;		/* launches on lent TPCs */
	unsigned int lent;		/* number of epochs in which its TPCs were lent */
};

/* An output file, or standard output. */
struct qos_sink {
	const char *option, *path;	/* @path NULL: no file, or standard output */
	FILE *file;
	struct pump *pump;		/* a thread that writes the file; NULL: no thread */
	bool made;			/* this command created the file, and the file is still
					 * empty */
};

struct qos_session;

/*
 * A driver provides measurements and receives decisions. There are drivers for programs, a scenario
 * and a log.
 */
struct qos_driver {
	const char *command;		/* the name in the JSON result, such as "qos sim" */
	/*
	 * True for running programs. The run continues if the log cannot be written. A slow reader
	 * of the output does not delay the run. The option --json prints the lines of the log.
	 */
	bool live;
	/*
	 * Called after the first decision and before any output. May be NULL. Returns 0 or an
	 * exit status.
	 */
	int (*start)(struct qos_session *session);
	/*
	 * Waits until an epoch ends or a step of a swap ends. Then sets session->time_ns and
	 * @measured. When measure() is called, @measured still has the values of the previous call.
	 * Sets session->over after the last epoch. Returns 0 or an exit status.
	 */
	int (*measure)(struct qos_session *session, struct qos_measured *measured);
	/*
	 * Carries out the decision session->now. The line of this decision in the log is @line. May
	 * be NULL. Returns 0 or an exit status.
	 */
	int (*decided)(struct qos_session *session, json_t *line);
};

/* A run in progress, and its log. */
struct qos_session {
	const struct args *args;
	const struct qos_options *options;
	const struct qos_driver *driver;
	void *user;			/* the driver's private data */
	const struct qos_setup *setup;
	struct qos_board board;
	bool simulated;
	char gpu[64];			/* a description of the GPU */
	struct qos_policy *policy;
	struct qos_decision now;
	uint64_t time_ns;		/* time since the start of the run */
	bool over;
	struct qos_sink log_to, result_to, shown_to;
	struct out out;			/* for the result; out.file NULL: no result is written */
	FILE *log;			/* the log, as lines of JSON; NULL: no log */
	FILE *lines;			/* the same lines for --json; NULL: not requested */
	unsigned int nr_replayed;	/* number of decisions that agree with the log */
	unsigned int counts[QOS_MAX_TENANTS];	/* each tenant's TPCs in this epoch */
	bool picture;	/* keep all epochs for a picture; the memory grows with each epoch */
	struct qos_epoch *epochs;	/* completed epochs, or NULL */
	unsigned int nr_epochs, nr_changed, room;
	struct qos_sum sums[QOS_MAX_TENANTS];
	struct qos_others others;
	bool others_changed;		/* true if @others changed since the last step */
	struct nvml_state state;	/* values read in this epoch; -1: not read */
	struct qos_gpu_sum gpu_sum;
};

/*
 * Runs a whole session. The caller has set its args, options, driver, setup and board. Returns 0
 * or an exit status.
 */
int qos_session_run(struct qos_session *session);

/* Creates the policy. Returns 0 or an exit status. */
int qos_session_begin(struct qos_session *session);
/* Writes the first line of the log. Returns 0 or an exit status. */
int qos_session_log_begin(struct qos_session *session);
/*
 * Does one step of the policy with @measured, and writes its log line. Returns 0 or an exit
 * status.
 */
int qos_session_step(struct qos_session *session, const struct qos_measured *measured);
void qos_session_end(struct qos_session *session);

/* ----------------------------------------------------------- files: results.c */

/*
 * Opens the output files. Keeps the contents of the files, because the run may still end without a
 * result. If another controller is writing one of the files, fails. Returns 0 or an exit status.
 */
int qos_results_open(struct qos_session *session);
/*
 * Empties the log. After this call, writes to files do not delay a live run. Returns 0 or an
 * exit status.
 */
int qos_results_begin(struct qos_session *session);
/*
 * Returns the file for the table of decisions, or NULL if there is no file. If @whole is true, also
 * returns NULL while the previous table is being written.
 */
FILE *qos_results_shown(struct qos_session *session, bool whole);
/*
 * Writes the summary or the picture, and waits until all output is written. Returns 0 or an exit
 * status.
 */
int qos_results_end(struct qos_session *session);
/* Closes the files. Removes each file that this command created and did not write to. */
void qos_results_close(struct qos_session *session);

/* ------------------------------------------------------------------ log: log.c */

json_t *qos_set_json(const struct gpupart_tpcset *set);
/*
 * qos_log_begin() returns the first line of a log, and qos_log_step() the line of one step. Both
 * return NULL if there is not enough memory.
 */
json_t *qos_log_begin(const struct qos_session *session);
json_t *qos_log_step(const struct qos_session *session, bool swap,
		     const struct qos_measured *measured);

/*
 * These functions read a line of a log. The function qos_log_read_begin() stores the tenants and
 * their strings in @setup, and all other values in @session. If @line is not a line of a log, both
 * functions store a message in @why and return false. The size of @why is QOS_MESSAGE_SIZE bytes.
 */
bool qos_log_read_begin(json_t *line, struct qos_setup *setup, struct qos_session *session,
			char *why);
bool qos_log_read_step(json_t *line, struct qos_session *session,
		       struct qos_measured *measured, char *why);
/*
 * Finds the first difference between two lines. Writes its name, such as "decision.tenants[0].set",
 * and both values to @text. If the lines are equal, @text is "".
 */
void qos_log_difference(json_t *logged, json_t *now, char *text, size_t len);

/* ---------------------------------------------------------------- shown: show.c */

/*
 * qos_text() prints the summary, with a line for each tenant. The function qos_json() returns the
 * summary as JSON.
 */
void qos_text(struct out *out, const struct qos_session *session);
json_t *qos_json(const struct qos_session *session);
/* Prints the decision at the end of an epoch, with a line for each tenant whose set changed. */
void qos_text_changes(struct out *out, const struct qos_session *session);
/* svg.c: draws the goal, the progress and the TPCs of every tenant over time. */
void qos_svg(struct out *out, const struct qos_session *session);

/* Writes a goal to @text: "60% of 1200/s alone", "99% within 20 ms". Returns @text. */
const char *qos_format_goal(const struct qos_tenant *tenant, char *text, size_t len);
/* Writes @thousandths as a number of units: "1234.5". Returns @text. */
const char *qos_format_thousandths(uint64_t thousandths, char *text, size_t len);

/* --------------------------------------------------------------------- commands */

struct qos_options {
	const char *of, *log, *file, *epoch, *epochs, *seconds;
	struct args_texts tenants;	/* --tenant, instead of a file */
	/*
	 * For `gpupart tune`: the value of --goal. The tenants are running jobs, and have no keys
	 * but those of the goal. NULL: the user gave tenants with --tenant.
	 */
	const char *goal;
	bool dry_run, mps;
	bool *started;			/* true after a program was started or adopted */
};

/*
 * Converts the options --tenant and --epoch into the YAML of a file of tenants. If a tenant has no
 * job and no pid, @program becomes its program. Returns 0 or an exit status. If the result is 0,
 * the caller must close @yaml.
 */
int qos_options_open(struct yaml *yaml, const struct qos_options *options, char **program);
/* Copies the arguments of @program into @setup. An argument may contain any bytes. */
void qos_options_program(struct qos_setup *setup, char **program);

int qos_replay(const struct args *args, const struct qos_options *options);
int qos_sim(const struct args *args, const struct qos_options *options);
int qos_run(const struct args *args, const struct qos_options *options);
int qos_calibrate(const struct args *args, const struct qos_options *options);

#endif
