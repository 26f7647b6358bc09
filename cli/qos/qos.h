/* SPDX-License-Identifier: MIT */
/*
 * Declarations that the files of `gpupart qos` share: tenants of a file, a run of the policy,
 * its log and its results. One thread.
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
/* programs that are not tenants; if there are more, the last entry is their sum */
#define QOS_MOST_OTHERS	64

/* Which signal counts as a program's progress. */
enum qos_signal {
	QOS_SIGNAL_AUTO,	/* its reports; if it makes none, its launches */
	QOS_SIGNAL_REPORTED,
	QOS_SIGNAL_LAUNCHES,
	QOS_SIGNAL_KERNELS,	/* completed launches, weighted by their solo time: experimental */
};

struct qos_spec {
	unsigned int percentile; /* of a latency, in thousandths: 990 is the 99th percentile */
	enum qos_signal signal;
	char durations[256];		/* file with solo times of kernels; "": learn them */
	char **program;	/* with arguments, ends with NULL; NULL: do not start one */
	int pid;			/* pid to adopt; 0: none */
	char job[64];			/* name of the job to adopt; "": none */
	char stream[64];		/* stream of a scenario */
	int line;			/* line of the file, for later messages */
};

struct qos_phase {
	unsigned int run;		/* index into the runs of the scenario */
	unsigned int epochs;
	int line;			/* line of the file */
};

/* The contents of a file of tenants. */
struct qos_setup {
	const char *path;
	uint64_t epoch_ns;
	struct qos_rules rules;
	bool shapes;		/* try other shapes than packed, if the GPU's layout is known */
	unsigned int nr;
	struct qos_tenant tenants[QOS_MAX_TENANTS];
	struct qos_spec specs[QOS_MAX_TENANTS];
	unsigned int nr_phases;
	struct qos_phase phases[QOS_MOST_PHASES];
};

enum qos_file {
	QOS_FILE_PROGRAMS,
	QOS_FILE_CALIBRATE,	/* the same, without solo speeds */
	QOS_FILE_SCENARIO,	/* the "qos" part of a scenario */
};

/*
 * Reads tenants from the mapping @node, of a scenario or of a whole file. Returns false after
 * printing a message. Call qos_setup_free() in both cases.
 */
bool qos_setup_read(struct qos_setup *setup, struct yaml *yaml, yaml_node_t *node,
		    enum qos_file kind);
void qos_setup_free(struct qos_setup *setup);
/*
 * Gives best-effort tenants without a floor a tenth of the GPU together as their floors, if all
 * floors fit in the GPU.
 */
void qos_setup_floors(struct qos_setup *setup, const struct qos_board *board);

/* The same rule as for 'gpupart run --name', because it becomes the name of a job. */
#define QOS_NAME_RULE \
	"must be 1 to 63 characters from A-Z a-z 0-9 . _ -, and must not start with '-'"

#define qos_fail(...)	cmd_fail("qos", __VA_ARGS__)
#define qos_note(...)	cmd_note("qos", __VA_ARGS__)

/* ------------------------------------------------------------------ one run of it */

/* A tenant in one epoch, for the picture. */
struct qos_sample {
	uint32_t score;
	uint64_t speed;
	uint16_t nr_tpcs;	/* in the epoch that ended */
	uint8_t state;
};

struct qos_epoch {
	uint64_t time_ns;	/* its end, since the start */
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
	int pid;		/* 0: no process that this user can see */
	struct gpupart_tpcset set;
};

struct qos_others {
	unsigned int nr;
	struct qos_other list[QOS_MOST_OTHERS];
};

/* Sums of a tenant over all epochs. */
struct qos_sum {
	unsigned int heard, met;	/* epochs */
	unsigned __int128 speeds;	/* sum over the epochs with a signal */
	uint64_t speed;			/* mean of those */
	unsigned int changes;
	unsigned int least, most;	/* TPCs */
};

/* An output file, or standard output. */
struct qos_sink {
	const char *option, *path;	/* path NULL: none, or standard output */
	FILE *file;
	struct pump *pump;		/* writes the file on a thread; NULL: direct */
	bool made;			/* this command created it, and it is still empty */
};

struct qos_session;

/* The source of measurements and the receiver of decisions: programs, a scenario or a log. */
struct qos_driver {
	const char *command;		/* name for the JSON result, such as "qos sim" */
	/*
	 * The run continues if its log fails, and readers do not delay it. --json prints the
	 * lines of the log.
	 */
	bool live;
	/*
	 * Called after the first decision and before any output. NULL: nothing to do. Returns 0
	 * or an exit status.
	 */
	int (*start)(struct qos_session *session);
	/*
	 * Waits for the end of an epoch, or of a step of a swap. Sets session->time_ns and
	 * @measured, which still has the contents of the last call. Sets session->over after
	 * the last epoch. Returns 0 or an exit status.
	 */
	int (*measure)(struct qos_session *session, struct qos_measured *measured);
	/*
	 * Carries out session->now, whose log line is @line. NULL: nothing to do. Returns 0 or
	 * an exit status.
	 */
	int (*decided)(struct qos_session *session, json_t *line);
};

/* A run in progress, and its log. */
struct qos_session {
	const struct args *args;
	const struct qos_options *options;
	const struct qos_driver *driver;
	void *user;			/* private data of the driver */
	const struct qos_setup *setup;
	struct qos_board board;
	bool simulated;
	char gpu[64];			/* a description */
	struct qos_policy *policy;
	struct qos_decision now;
	uint64_t time_ns;		/* since the start */
	bool over;
	struct qos_sink log_to, result_to, shown_to;
	struct out out;			/* for the result; file NULL: none */
	FILE *log;			/* lines of JSON; NULL: none */
	FILE *lines;			/* the same lines for --json; NULL: none */
	unsigned int nr_replayed;	/* decisions that were the same as in the log */
	unsigned int counts[QOS_MAX_TENANTS];	/* TPCs in this epoch */
	bool picture;	/* keep all epochs for a picture; memory grows with each */
	struct qos_epoch *epochs;	/* completed epochs, or NULL */
	unsigned int nr_epochs, nr_changed, room;
	struct qos_sum sums[QOS_MAX_TENANTS];
	struct qos_others others;
	bool others_changed;		/* since the last step */
	struct nvml_state state;	/* read in this epoch; -1: not read */
	struct qos_gpu_sum gpu_sum;
};

/*
 * Runs all of a session whose args, options, driver, setup and board are set. Returns 0 or an
 * exit status.
 */
int qos_session_run(struct qos_session *session);

/* Creates the policy. Returns 0 or an exit status. */
int qos_session_begin(struct qos_session *session);
/* Writes the first line of the log. Returns 0 or an exit status. */
int qos_session_log_begin(struct qos_session *session);
/* One step of the policy with @measured, and its log line. Returns 0 or an exit status. */
int qos_session_step(struct qos_session *session, const struct qos_measured *measured);
void qos_session_end(struct qos_session *session);

/* ----------------------------------------------------------- files: results.c */

/*
 * Opens the output files but keeps their contents, because it is not known yet whether there
 * will be a result. Fails if another controller writes a file. Returns 0 or an exit status.
 */
int qos_results_open(struct qos_session *session);
/*
 * Empties the log. From here on writing does not delay a live run. Returns 0 or an exit status.
 */
int qos_results_begin(struct qos_session *session);
/*
 * The file for the table of decisions. NULL: none, or, if @whole, the last table is not written
 * yet.
 */
FILE *qos_results_shown(struct qos_session *session, bool whole);
/*
 * Writes the summary or the picture, and waits until everything is written. Returns 0 or an
 * exit status.
 */
int qos_results_end(struct qos_session *session);
/* Closes the files. A file that this command created and did not write to is removed. */
void qos_results_close(struct qos_session *session);

/* ------------------------------------------------------------------ log: log.c */

json_t *qos_set_json(const struct gpupart_tpcset *set);
/* The first line of a log; then one line for each step. NULL: no memory. */
json_t *qos_log_begin(const struct qos_session *session);
json_t *qos_log_step(const struct qos_session *session, bool swap,
		     const struct qos_measured *measured);

/*
 * Reads a line of a log into @session, except its tenants. Returns false with a message in
 * @why, of QOS_MESSAGE_SIZE bytes, if it is not a line of a log. The strings of @setup's tenants
 * are part of @setup.
 */
bool qos_log_read_begin(json_t *line, struct qos_setup *setup, struct qos_session *session,
			char *why);
bool qos_log_read_step(json_t *line, struct qos_session *session,
		       struct qos_measured *measured, char *why);
/*
 * Writes the first difference of two lines, such as "decision.tenants[0].set", and both values.
 * "": they are equal.
 */
void qos_log_difference(json_t *logged, json_t *now, char *text, size_t len);

/* ---------------------------------------------------------------- shown: show.c */

/* The summary, with a line for each tenant; the same as JSON. */
void qos_text(struct out *out, const struct qos_session *session);
json_t *qos_json(const struct qos_session *session);
/* The decision at the end of an epoch, with a line for each tenant whose set changed. */
void qos_text_changes(struct out *out, const struct qos_session *session);
/* Draws goal, progress and TPCs of every tenant over time. svg.c */
void qos_svg(struct out *out, const struct qos_session *session);

/* "60% of 1200/s alone", "99% within 20 ms". Returns @text. */
const char *qos_format_goal(const struct qos_tenant *tenant, const struct qos_spec *spec,
			   char *text, size_t len);
/* Thousandths as a number: "1234.5". Returns @text. */
const char *qos_format_thousandths(uint64_t thousandths, char *text, size_t len);

/* --------------------------------------------------------------------- commands */

struct qos_options {
	const char *of, *log, *file, *epoch, *epochs, *seconds;
	struct args_texts tenants;	/* --tenant, instead of a file */
	const char *words_from;		/* option that gave the tenants; NULL: --tenant */
	bool dry_run, mps;
	bool *started;			/* set when a program was started or adopted */
};

/*
 * Writes the options --tenant and --epoch, and @program for the tenant without a job or pid, as
 * the YAML of a file of tenants. Returns 0 or an exit status; if 0, close @yaml. words.c
 */
int qos_options_open(struct yaml *yaml, const struct qos_options *options, char **program);
/* Copies the arguments of @program, which may be any bytes, into @setup. */
void qos_options_program(struct qos_setup *setup, char **program);

int qos_replay(const struct args *args, const struct qos_options *options);
int qos_sim(const struct args *args, const struct qos_options *options);
int qos_run(const struct args *args, const struct qos_options *options);
int qos_calibrate(const struct args *args, const struct qos_options *options);

#endif
