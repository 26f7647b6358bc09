/* SPDX-License-Identifier: MIT */
/*
 * What the files of `gpupart qos` share: tenants as a file describes them, the log of
 * decisions, what came of them. Knows neither how progress is measured nor how a set reaches
 * a program.
 */
#ifndef GPUPART_CLI_QOS_H
#define GPUPART_CLI_QOS_H

#include <gpupart_qos.h>
#include "args.h"
#include "nvml.h"
#include "out.h"
#include "yaml.h"

#define QOS_MOST_PHASES	64
#define QOS_MOST_OTHERS	64	/* programs that are no tenants; of more the last is their sum */

/* Which progress of a program counts. */
enum qos_signal {
	QOS_SIGNAL_AUTO,	/* what it reports, while it reports nothing its launches */
	QOS_SIGNAL_REPORTED,
	QOS_SIGNAL_LAUNCHES,
};

struct qos_spec {
	unsigned int percentile;	/* of a latency, thousandths: 990 is the 99th */
	enum qos_signal signal;
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

/* Of a tenant, as 'gpupart run --name' takes them: it becomes a job's. */
#define QOS_NAME_WANTS \
	"a name is 1 to 63 letters, digits, '.', '_' or '-', the first no '-'"
bool qos_name_good(const char *name);

/* ------------------------------------------------------------------ one run of it */

/* A tenant in an epoch, as a picture needs it. */
struct qos_sample {
	uint32_t score;
	uint64_t speed;
	uint16_t nr_tpcs;	/* in the epoch that ended */
	uint8_t state;
	bool changed;		/* at its end */
};

struct qos_epoch {
	uint64_t time_ns;	/* when it ended, since the begin */
	bool changed;
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

/* A run as it goes on, and its log. */
struct qos_session {
	const struct qos_setup *setup;
	struct qos_board board;
	bool simulated;
	char gpu[64];			/* in words */
	struct qos_policy *policy;
	struct qos_decision now;
	FILE *log;			/* JSON lines; NULL: none */
	FILE *lines;			/* the same, for who asked for JSON; NULL: nobody */
	bool log_may_end;		/* a log that cannot be written is no reason to end */
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

/* What @session->others are, for the policy: from the next epoch's end on, or its begin. */
void qos_session_hold(struct qos_session *session);
/* Makes the policy. -1 to go on, or a status with the line written. */
int qos_session_begin(struct qos_session *session, const char *cmd);
/* The first line of its log, where it has one. */
int qos_session_log_begin(struct qos_session *session, const char *cmd);
/* A step of the policy with what was measured, logged. -1 or a status. */
int qos_session_step(struct qos_session *session, const char *cmd, uint64_t time_ns,
		     const struct qos_measured *measured);
void qos_session_end(struct qos_session *session);

/* ------------------------------------------------------------------ log: qos_log.c */

/* The first line of a log, and a line a step; NULL: no memory. */
json_t *qos_log_begin(const struct qos_session *session);
json_t *qos_log_step(const struct qos_session *session, uint64_t time_ns, bool swap,
		     const struct qos_measured *measured);
/* One line, ended; 0 or -EIO. */
int qos_log_write(FILE *file, const json_t *line);

/*
 * What a line says, back, into @session what is not of tenants: false with a sentence in @why
 * of QOS_WORDS bytes: it is none of a log's. @setup's tenants point nowhere else.
 */
bool qos_log_read_begin(const json_t *line, struct qos_setup *setup, struct qos_session *session,
			char *why);
bool qos_log_read_step(const json_t *line, struct qos_session *session, uint64_t *time_ns,
		       struct qos_measured *measured, char *why);
/* Where two lines differ, as "decision.tenants[0].set", and both values; "" they do not. */
void qos_log_difference(const json_t *logged, const json_t *now, char *text, size_t len);

/* ---------------------------------------------------------------- shown: qos_show.c */

/* What came of it, a line a tenant; and, @changes, every change with its reason. */
void qos_text(struct out *out, const struct qos_session *session);
json_t *qos_json(const struct qos_session *session, const char *command);
/* What was decided at the end of an epoch, a line a tenant whose set changed. */
void qos_text_changes(struct out *out, const struct qos_session *session);
/* Goal, progress and TPCs of every tenant over time: 0 or -ENOMEM. qos_svg.c */
int qos_svg(struct out *out, const struct qos_session *session);

/* "60% of 1200/s alone", "99% within 20 ms". Returns @text. */
const char *qos_goal_words(const struct qos_tenant *tenant, const struct qos_spec *spec,
			   char *text, size_t len);
/* "1234.5" of thousandths. Returns @text. */
const char *qos_number(uint64_t thousandths, char *text, size_t len);

/* --------------------------------------------------------------------- commands */

struct qos_options {
	const char *of, *log, *file, *epoch, *epochs, *seconds;
	struct args_texts tenants;	/* in place of a file */
	bool dry_run, mps;
	bool *started;			/* a program was, or one was adopted */
};

/*
 * The document that a file with those tenants would be: --tenant, --epoch, and @program for the
 * one that has neither a job nor a pid. -1, or a status; close it where it is -1. qos_words.c
 */
int qos_words_open(struct yaml *yaml, const char *cmd, const struct qos_options *options,
		   char **program);
/* Puts @program's own words, which may be any bytes, into what was read of it. False: no memory. */
bool qos_words_program(struct qos_setup *setup, char **program);

/* Whether a picture is to be made of it. */
bool qos_wants_svg(const struct args *args, const struct qos_options *options);

int qos_replay(const struct args *args, const struct qos_options *options);
int qos_sim(const struct args *args, const struct qos_options *options);
int qos_run(const struct args *args, const struct qos_options *options);
int qos_calibrate(const struct args *args, const struct qos_options *options);

#endif
