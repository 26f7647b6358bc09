/* SPDX-License-Identifier: MIT */
/*
 * What the files of `gpupart qos` share: tenants as a file describes them, a run of the policy
 * over them, its log and what came of it.
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
#define QOS_MOST_OTHERS	64	/* programs that are no tenants; of more the last is their sum */

/* Which progress of a program counts. */
enum qos_signal {
	QOS_SIGNAL_AUTO,	/* what it reports, while it reports nothing its launches */
	QOS_SIGNAL_REPORTED,
	QOS_SIGNAL_LAUNCHES,
	QOS_SIGNAL_KERNELS,	/* launches that ended, by their time alone: experimental */
};

struct qos_spec {
	unsigned int percentile;	/* of a latency, thousandths: 990 is the 99th */
	enum qos_signal signal;
	char durations[256];		/* a file with kernels' times alone; "" they are learnt */
	char **program;			/* with its arguments, NULL behind; NULL: none is started */
	int pid;			/* adopted; 0 none */
	char job[64];			/* adopted by name; "" none */
	char stream[64];		/* of a scenario */
	int line;			/* of the file, for what is wrong with it later */
};

struct qos_phase {
	unsigned int run;		/* of the scenario's runs */
	unsigned int epochs;
	int line;			/* of the file */
};

/* A file of tenants. */
struct qos_setup {
	const char *path;
	uint64_t epoch_ns;
	struct qos_rules rules;
	bool shapes;		/* other shapes than packed are tried, where the GPU's are known */
	unsigned int nr;
	struct qos_tenant tenants[QOS_MAX_TENANTS];
	struct qos_spec specs[QOS_MAX_TENANTS];
	unsigned int nr_phases;
	struct qos_phase phases[QOS_MOST_PHASES];
};

enum qos_file {
	QOS_FILE_PROGRAMS,
	QOS_FILE_CALIBRATE,	/* the same, whose speeds alone are not known */
	QOS_FILE_SCENARIO,	/* a scenario's "qos" */
};

/*
 * Reads tenants from the mapping @node: of a scenario or of a whole file. False: a line was
 * written. Free it with qos_setup_free() either way.
 */
bool qos_setup_read(struct qos_setup *setup, struct yaml *yaml, yaml_node_t *node,
		    enum qos_file kind);
void qos_setup_free(struct qos_setup *setup);
/*
 * Gives best effort that has no floor a tenth of the GPU together, as its floors, where all floors
 * fit in the GPU.
 */
void qos_setup_floors(struct qos_setup *setup, const struct qos_board *board);

/* Of a tenant, as 'gpupart run --name' takes them: it becomes a job's. */
#define QOS_NAME_WANTS \
	"a name is 1 to 63 letters, digits, '.', '_' or '-', the first no '-'"

#define qos_fail(...)	cmd_fail("qos", __VA_ARGS__)
#define qos_note(...)	cmd_note("qos", __VA_ARGS__)

/* ------------------------------------------------------------------ one run of it */

/* A tenant in an epoch, as a picture needs it. */
struct qos_sample {
	uint32_t score;
	uint64_t speed;
	uint16_t nr_tpcs;	/* in the epoch that ended */
	uint8_t state;
};

struct qos_epoch {
	uint64_t time_ns;	/* when it ended, since the begin */
	struct qos_sample tenants[QOS_MAX_TENANTS];
};

/* Power and clocks, of all epochs in which they were looked at. */
struct qos_gpu_sum {
	uint64_t power_mw, sm_mhz, memory_mhz;
	unsigned int nr_power, nr_sm, nr_memory;
};

/* A program that is no tenant, and the TPCs that it has. */
struct qos_other {
	char name[64];		/* or "" */
	int pid;		/* 0: of none that is seen here */
	struct gpupart_tpcset set;
};

struct qos_others {
	unsigned int nr;
	struct qos_other list[QOS_MOST_OTHERS];
};

/* What came of a tenant, of all epochs. */
struct qos_sum {
	unsigned int heard, met;	/* epochs */
	unsigned __int128 speeds;	/* of those heard: no count of epochs is too much */
	uint64_t speed;			/* their mean */
	unsigned int changes;
	unsigned int least, most;	/* TPCs */
};

/* A file that is written, or standard output. */
struct qos_sink {
	const char *option, *path;	/* path NULL: not asked for, or standard output */
	FILE *file;
	struct pump *pump;		/* what writes it behind the controller's back, or NULL */
	bool made;			/* it was not there, and nothing is in it yet */
};

struct qos_session;

/* Where measurements come from and where decisions go: programs, a scenario or a log. */
struct qos_driver {
	const char *command;		/* "qos sim", of the result as JSON */
	/*
	 * A run goes on whatever becomes of its log, and no reader holds it up; --json is the
	 * lines of the log.
	 */
	bool live;
	/* After the first decision, before anything is written; NULL: nothing. 0, or an error. */
	int (*start)(struct qos_session *session);
	/*
	 * The end of an epoch, or of a part of a swap: session->time_ns and, in @measured, which
	 * has what the last call left in it, what came of it; session->over: there is none any
	 * more. 0, or an error.
	 */
	int (*measure)(struct qos_session *session, struct qos_measured *measured);
	/* session->now is decided, and @line is the log's; NULL: nothing. 0, or an error. */
	int (*decided)(struct qos_session *session, json_t *line);
};

/* A run as it goes on, and its log. */
struct qos_session {
	const struct args *args;
	const struct qos_options *options;
	const struct qos_driver *driver;
	void *user;			/* the driver's */
	const struct qos_setup *setup;
	struct qos_board board;
	bool simulated;
	char gpu[64];			/* in words */
	struct qos_policy *policy;
	struct qos_decision now;
	uint64_t time_ns;		/* since the begin */
	bool over;
	struct qos_sink log_to, result_to, shown_to;
	struct out out;			/* of the result; file NULL: none is asked for */
	FILE *log;			/* JSON lines; NULL: none */
	FILE *lines;			/* the same, for --json; NULL: not asked for */
	unsigned int nr_replayed;	/* decisions of a log that were the same */
	unsigned int counts[QOS_MAX_TENANTS];	/* in force in this epoch */
	bool picture;			/* epochs are kept: it grows with each */
	struct qos_epoch *epochs;	/* those that ended, or NULL */
	unsigned int nr_epochs, nr_changed, room;
	struct qos_sum sums[QOS_MAX_TENANTS];
	struct qos_others others;
	bool others_changed;		/* before this step */
	struct nvml_state state;	/* of the GPU, looked at in this epoch; -1: not */
	struct qos_gpu_sum gpu_sum;
};

/* All of a run with @args, @options, @driver, @setup and @board: 0, or an error. */
int qos_session_run(struct qos_session *session);

/* Makes the policy. 0, or an error. */
int qos_session_begin(struct qos_session *session);
/* The first line of its log: 0, or an error. */
int qos_session_log_begin(struct qos_session *session);
/* A step of the policy with what was measured, logged. 0, or an error. */
int qos_session_step(struct qos_session *session, const struct qos_measured *measured);
void qos_session_end(struct qos_session *session);

/* ----------------------------------------------------------- files: results.c */

/*
 * Opens what is asked for, and leaves what is in it: it is not known yet whether there will be a
 * result. Refuses a file that another controller writes. 0, or an error.
 */
int qos_results_open(struct qos_session *session);
/* Empties the log; from here on no writing holds up a run that is live. 0, or an error. */
int qos_results_begin(struct qos_session *session);
/* Where decisions are shown; NULL: nowhere, or for @whole the last was not taken yet. */
FILE *qos_results_shown(struct qos_session *session, bool whole);
/* Writes the summary or the picture, and waits until all is written: 0, or an error. */
int qos_results_end(struct qos_session *session);
/* A file that nothing was written to is as it was before. */
void qos_results_close(struct qos_session *session);

/* ------------------------------------------------------------------ log: log.c */

json_t *qos_set_json(const struct gpupart_tpcset *set);
/* The first line of a log, and a line a step; NULL: no memory. */
json_t *qos_log_begin(const struct qos_session *session);
json_t *qos_log_step(const struct qos_session *session, bool swap,
		     const struct qos_measured *measured);

/*
 * Reads a line back, into @session all but tenants. False with a sentence in @why of QOS_WORDS
 * bytes: it is no line of a log. @setup's tenants point nowhere else.
 */
bool qos_log_read_begin(json_t *line, struct qos_setup *setup, struct qos_session *session,
			char *why);
bool qos_log_read_step(json_t *line, struct qos_session *session,
		       struct qos_measured *measured, char *why);
/* Where two lines differ, as "decision.tenants[0].set", and both values; "" they do not. */
void qos_log_difference(json_t *logged, json_t *now, char *text, size_t len);

/* ---------------------------------------------------------------- shown: show.c */

/* What came of it, a line a tenant; the same as JSON. */
void qos_text(struct out *out, const struct qos_session *session);
json_t *qos_json(const struct qos_session *session);
/* What was decided at the end of an epoch, a line a tenant whose set changed. */
void qos_text_changes(struct out *out, const struct qos_session *session);
/* Goal, progress and TPCs of every tenant over time. svg.c */
void qos_svg(struct out *out, const struct qos_session *session);

/* "60% of 1200/s alone", "99% within 20 ms". Returns @text. */
const char *qos_goal_words(const struct qos_tenant *tenant, const struct qos_spec *spec,
			   char *text, size_t len);
/* "1234.5" of thousandths. Returns @text. */
const char *qos_number(uint64_t thousandths, char *text, size_t len);

/* --------------------------------------------------------------------- commands */

struct qos_options {
	const char *of, *log, *file, *epoch, *epochs, *seconds;
	struct args_texts tenants;	/* in place of a file */
	const char *words_from;		/* the option that gave them; NULL: --tenant */
	bool dry_run, mps;
	bool *started;			/* a program was, or one was adopted */
};

/*
 * The document that a file with those tenants would be: --tenant, --epoch, and @program for the
 * one that has neither a job nor a pid. 0, or an error; close it where it is 0. words.c
 */
int qos_words_open(struct yaml *yaml, const struct qos_options *options, char **program);
/* Puts @program's own words, which may be any bytes, into what was read of it. */
void qos_words_program(struct qos_setup *setup, char **program);

int qos_replay(const struct args *args, const struct qos_options *options);
int qos_sim(const struct args *args, const struct qos_options *options);
int qos_run(const struct args *args, const struct qos_options *options);
int qos_calibrate(const struct args *args, const struct qos_options *options);

#endif
