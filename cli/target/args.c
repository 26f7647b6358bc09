// SPDX-License-Identifier: MIT
/* Parses the options that commands share. Finds the GPU, the source and the set. */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cli/target/amount.h"
#include "cli/target/args.h"
#include "cli/target/clusters.h"
#include "cli/target/cuda.h"
#include "cli/target/neighbours.h"
#include "cli/target/settings.h"
#include "cli/util/alloc.h"
#include "cli/util/message.h"
#include "cli/util/number.h"
#include "cli/util/out.h"
#include "cli/util/paths.h"
#include "lib/private.h"

#define MAX_OPTIONS 32
#define OPT_HELP 256
#define OPT_GPU 257
#define OPT_JSON 258
#define OPT_HEX 259
#define OPT_SMS 260
#define OPT_SHAPE 261
#define NOT_OWN (-2)
#define OPT_OWN 300	/* OPT_OWN + i is option i of the command itself */

/* The shared options. If a command accepts an option, the command has the option's flag. */
static const struct {
	unsigned int takes;
	const char *short_form;	/* for getopt_long() */
	struct option option;
} shared[] = {
	{ ARGS_SET, "t:", { "tpcs", required_argument, NULL, 't' } },
	{ ARGS_SET, "g:", { "gpcs", required_argument, NULL, 'g' } },
	{ ARGS_SET, "u:", { "ugpus", required_argument, NULL, 'u' } },
	{ ARGS_SET, "n:", { "nr-tpcs", required_argument, NULL, 'n' } },
	{ ARGS_SET, "", { "sms", required_argument, NULL, OPT_SMS } },
	{ ARGS_SET, "", { "hex", required_argument, NULL, OPT_HEX } },
	{ ARGS_SET, "", { "shape", required_argument, NULL, OPT_SHAPE } },
	{ ARGS_GPU, "", { "gpu", required_argument, NULL, OPT_GPU } },
	{ ARGS_SOURCE | ARGS_SIM, "i:", { "input", required_argument, NULL, 'i' } },
	{ ARGS_JSON, "", { "json", no_argument, NULL, OPT_JSON } },
	{ ARGS_OUTPUT, "o:", { "output", required_argument, NULL, 'o' } },
	{ ~0u, "h", { "help", no_argument, NULL, OPT_HELP } },
};

static int add_term(struct args *args, const char *option, const char *text)
{
	if (args->nr_terms == ARGS_MAX_TERMS)
		return usage_error(
			"%s %s: more than %d options for a set: combine lists with commas", option,
			text, ARGS_MAX_TERMS);
	args->terms[args->nr_terms].option = option;
	args->terms[args->nr_terms].text = text;
	args->nr_terms++;
	return 0;
}

static int print_help(const char *help)
{
	struct out out;

	/* Print the help without the command's name, in the same way as main(). */
	cmd_name = NULL;
	out_open(&out, NULL);
	fputs(help, out.file);
	return CMD_ENDED | out_close(&out);
}

/* Rejects an empty value, because it probably comes from an unset shell variable. */
static int take_text(const char *option, const char *wants, const char **value)
{
	if (!*optarg)
		return usage_error("%s '': must be %s", option, wants);
	*value = optarg;
	return 0;
}

/* Reads --shape or its default in the configuration files. Returns 0 or an error. */
static int find_shape(const struct args *args, enum gpupart_shape *shape)
{
	const struct setting *setting = NULL;
	int status = args->shape ? 0 : settings_default("shape", &setting);

	*shape = GPUPART_SHAPE_PACKED;
	if (status || (!args->shape && !setting))
		return status;
	if (gpupart_shape_parse(cmd_gp, args->shape ? args->shape : setting->value, shape))
		status = usage_error("%s%s %s: %s", setting ? setting->from : "",
				     setting ? "default.shape =" : "--shape",
				     args->shape ? args->shape : setting->value,
				     gpupart_error(cmd_gp));
	return status;
}

static int take(struct args *args, int opt, const char *help)
{
	enum gpupart_shape shape;

	switch (opt) {
	case 't':
		return add_term(args, "-t", optarg);
	case 'g':
		return add_term(args, "-g", optarg);
	case 'u':
		return add_term(args, "-u", optarg);
	case 'n':
		return add_term(args, "-n", optarg);
	case OPT_SMS:
		return add_term(args, "--sms", optarg);
	case OPT_HEX:
		return add_term(args, "--hex", optarg);
	case OPT_SHAPE:
		args->shape = optarg;
		return find_shape(args, &shape);
	case OPT_GPU:
		return take_text("--gpu", "an index, a PCI address or a UUID", &args->gpu);
	case OPT_JSON:
		args->json = true;
		return 0;
	case 'i':
		return take_text("-i", "sample:NAME or a capture's path", &args->source);
	case 'o':
		if (!strcmp(optarg, "-")) {
			args->output = NULL;
			return 0;
		}
		return take_text("-o", "a file to write to", &args->output);
	default:
		return print_help(help);
	}
}

/* Lists the long options that begin with @word. Returns the number of these options. */
static unsigned int list_matches(const struct option *options, const char *word, char *text,
				 size_t len)
{
	size_t word_len = strcspn(word + 2, "=");
	unsigned int nr = 0;

	*text = 0;
	for (; options->name; options++)
		if (!strncmp(options->name, word + 2, word_len))
			out_append(text, len, "%s--%s", nr++ ? ", " : "", options->name);
	return nr;
}

static int bad_option(const struct args *args, int opt, char **argv, const struct option *options)
{
	/* For a short option, optopt has the letter. A long option is the previous argument. */
	const char *word = argv[optind - 1];
	char letter[3] = { '-', (char)optopt, 0 };
	bool is_long = !strncmp(word, "--", 2);
	char matches[256];

	if (opt == ':')
		return usage_error("%s needs a value: see 'gpupart %s --help'",
				   is_long ? word : letter, args->cmd);
	if (is_long && optopt && strchr(word, '='))
		return usage_error("'%s': this option takes no value: see 'gpupart %s --help'",
				   word, args->cmd);
	if (is_long && !optopt && list_matches(options, word, matches, sizeof(matches)) > 1)
		return usage_error("'%s' is ambiguous: write %s", word, matches);
	return usage_error("unknown option '%s': see 'gpupart %s --help'",
			   is_long || !optopt ? word : letter, args->cmd);
}

/* Stores an option of the command itself. Returns 0, an error, or NOT_OWN. */
static int take_own(const struct args_option *own, int opt)
{
	for (int i = 0; own && own[i].name; i++) {
		if (opt != OPT_OWN + i && (!own[i].letter || opt != own[i].letter))
			continue;
		if (own[i].values && own[i].values->nr == ARGS_MAX_TERMS)
			return usage_error("--%s %s: can be given at most %d times", own[i].name,
					   optarg, ARGS_MAX_TERMS);
		if (own[i].values)
			own[i].values->texts[own[i].values->nr++] = optarg;
		else if (own[i].value)
			*own[i].value = optarg;
		if (own[i].given)
			*own[i].given = true;
		return 0;
	}
	return NOT_OWN;
}

/* Returns whether --of is absent and the file name of -o ends with ".json". */
static bool output_is_json(const struct args *args, const struct args_option *own)
{
	const char *ending = args->output ? strrchr(args->output, '.') : NULL;

	for (; own && own->name; own++)
		if (!strcmp(own->name, "of") && *own->value)
			return false;
	return ending && !strcasecmp(ending, ".json");
}

/* Rejects abbreviations, because getopt_long() would read --sm as --sm-count. */
static int check_whole(char **argv, const char *option)
{
	/* The value may be a separate argument. */
	const char *word = argv[optind - (optarg == argv[optind - 1] ? 2 : 1)];

	if (strcspn(word + 2, "=") == strlen(option))
		return 0;
	return usage_error("unknown option '%s': write --%s", word, option);
}

/* Collects the shared options of a command. Appends their letters. Returns their number. */
static unsigned int take_shared(unsigned int takes, char *letters, struct option *options)
{
	unsigned int nr = 0;

	for (size_t i = 0; i < sizeof(shared) / sizeof(shared[0]); i++) {
		if (!(shared[i].takes & takes) && shared[i].option.val != OPT_HELP)
			continue;
		strcat(letters, shared[i].short_form);
		options[nr++] = shared[i].option;
	}
	return nr;
}

/* Parses the options of the named set @name. At this time, getopt_long() is at "@NAME". */
static int take_named(struct args *args, const char *name)
{
	struct option options[MAX_OPTIONS] = { 0 };
	const struct setting *setting;
	char letters[MAX_OPTIONS] = "+:", *words[ARGS_MAX_TERMS] = { (char *)name }, *text, *word;
	int argc = 1, at = optind + 1, opt, is = -1, status = settings_set(name, &setting);

	if (status)
		return status;
	args->named = setting;
	/* The options point into this text, so do not free the text. */
	text = alloc_text("%s", setting->value);
	while ((word = strsep(&text, " \t")) && argc < ARGS_MAX_TERMS - 1)
		if (*word)
			words[argc++] = word;
	take_shared(ARGS_SET, letters, options);
	optind = 0;
	while (!status && (opt = getopt_long(argc, words, letters, options, &is)) != -1) {
		if (opt == '?' || opt == ':' || opt == 'h' || opt == OPT_HELP)
			status = usage_error(
				"%s%s = %s: must be options for a set, such as -t, -n, --sms or --shape",
				setting->from, setting->key, setting->value);
		else
			status = (is >= 0 ? check_whole(words, options[is].name) : 0) ?:
				 take(args, opt, "");
		is = -1;
	}
	if (!status && (optind < argc || word))
		status = usage_error("%s%s = %s: '%s' is not an option for a set", setting->from,
				     setting->key, setting->value, word ? word : words[optind]);
	/* Continue with the argument after the name. */
	optind = at;
	return status;
}

int args_parse(struct args *args, unsigned int takes, const struct args_option *own,
	       const char *help, int argc, char **argv)
{
	struct option options[MAX_OPTIONS] = { 0 };
	char letters[2 * MAX_OPTIONS];
	unsigned int nr;
	int opt, status, at = -1;

	/* After PROGRAM, there are no more options. Names and options may be in any order. */
	strcpy(letters, takes & ARGS_NAMES ? ":" : "+:");
	args->cmd = argv[0];
	nr = take_shared(takes, letters, options);
	for (int i = 0; own && own[i].name; i++) {
		bool has_value = own[i].value || own[i].values;

		options[nr++] = (struct option){ own[i].name, !has_value ? no_argument :
						 own[i].given ? optional_argument :
						 required_argument, NULL, OPT_OWN + i };
		if (own[i].letter)
			sprintf(letters + strlen(letters), "%c%s", own[i].letter,
				has_value ? ":" : "");
	}
	opterr = 0;
	/*
	 * A command may parse its arguments twice. If optind is 0, glibc begins again and reads the
	 * leading "+".
	 */
	optind = 0;
	for (;;) {
		opt = getopt_long(argc, argv, letters, options, &at);
		if (opt == -1 && takes & ARGS_SET && optind < argc && argv[optind][0] == '@' &&
		    (optind < 2 || strcmp(argv[optind - 1], "--"))) {
			status = take_named(args, argv[optind] + 1);
			if (status)
				return status;
			continue;
		}
		if (opt == -1)
			break;
		if (opt == '?' || opt == ':')
			return bad_option(args, opt, argv, options);
		status = at >= 0 ? check_whole(argv, options[at].name) : 0;
		at = -1;
		if (!status)
			status = take_own(own, opt);
		if (status == NOT_OWN)
			status = take(args, opt, help);
		if (status)
			return status;
	}
	if (takes & ARGS_JSON && output_is_json(args, own))
		args->json = true;
	if (takes & (ARGS_PROGRAM | ARGS_NAMES))
		args->program = argv + optind;
	else if (optind < argc)
		return usage_error("unexpected argument '%s': see 'gpupart %s --help'",
				   argv[optind], args->cmd);
	return 0;
}

/*
 * Checks that -i names an existing regular file. Rejects a pipe, because the simulated driver reads
 * the capture again. Returns 0 or an error.
 */
static int check_file(const struct args *args)
{
	const char *from = args_source_from(args);
	struct stat st;
	int err;

	if (paths_is_live(args->source) || !strncmp(args->source, "sample:", 7))
		return 0;
	if (stat(args->source, &st)) {
		err = errno;
		return error_of(
			-err, "%s%s: %s%s", from, args->source, strerror(err),
			strchr(args->source, '/') ?
				"" :
				"; captures that ship with gpupart are named sample:NAME, such as sample:h200");
	}
	if (S_ISREG(st.st_mode))
		return 0;
	return usage_error(
		"%s%s: is not a regular file: write the capture into a file first, because gpupart reads the capture twice",
		from, args->source);
}

/* The simulated driver has 128 mask bits, like TMD V04_00. */
#define SIM_MASK_BITS 128

/* Checks that the capture has a measured mask bit for every TPC. Returns 0 or an error. */
static int check_bits(const struct args *args, const struct gpupart_topology *topo)
{
	unsigned int tpc, other;
	char why[80] = "";

	for (tpc = 0; tpc < gpupart_topology_nr_tpcs(topo) && !*why; tpc++) {
		int bit = gpupart_topology_tpc(topo, tpc)->measured_bit;

		if (bit < 0)
			snprintf(why, sizeof(why), "TPC %u has no measured mask bit", tpc);
		else if (bit >= SIM_MASK_BITS)
			snprintf(why, sizeof(why), "TPC %u has mask bit %d, above %d", tpc, bit,
				 SIM_MASK_BITS - 1);
		for (other = 0; other < tpc && bit >= 0; other++)
			if (gpupart_topology_tpc(topo, other)->measured_bit == bit)
				snprintf(why, sizeof(why),
					 "TPCs %u and %u have the same mask bit, %d", other, tpc,
					 bit);
	}
	if (!*why)
		return 0;
	return usage_error(
		"%s%s: this capture cannot be simulated: %s; use sample:h200 or sample:h200-e",
		args_source_from(args), args->source, why);
}

/* Checks the capture of -i. Writes its full path to @path. Returns 0 or an error. */
static int capture_path(const struct args *args, char *path, size_t len)
{
	const char *from = args_source_from(args);
	struct gpupart_topology *topo;
	const char *found;
	int err, status = check_file(args);

	if (status)
		return status;
	/* Ignore --gpu here, because the capture may lack the address of the simulated GPU. */
	err = gpupart_topology_open(cmd_gp, args->source, NULL, &topo);
	if (err) {
		status = error_of(err, "%s%s: %s", from, args->source, gpupart_error(cmd_gp));
		goto close_gp;
	}
	/* Get the path from the library. The library shortens a long path to "...end". */
	found = strncmp(args->source, "sample:", 7) ? args->source :
		gpupart_topology_info(topo)->source;
	err = strncmp(found, "...", 3) ? paths_full(found, path, len) : -ENAMETOOLONG;
	if (err == -ENAMETOOLONG)
		status = usage_error(
			"%s%s: the path of this file is too long: use the path of a capture instead",
			from, args->source);
	else if (err)
		status = usage_error("%s%s: %s", from, args->source, strerror(-err));
	else
		status = check_bits(args, topo);
	gpupart_topology_close(topo);
close_gp:
	return status;
}

/* Finds the simulated GPU that --gpu selects. Returns 0 or an error. */
static int choose_simulated(struct args *args, const char *captures)
{
	static struct cuda_simulated found;
	static char first[4096];
	int err = cuda_find_simulated(args->gpu, &found);

	if (!found.simulated && !args->source && !args->wants_sim)
		return 0;
	if (!found.simulated)
		return usage_error("the simulated driver is not used: %s",
				   *found.why ? found.why :
						"the loader finds another libcuda.so.1");
	if (err && args->gpu)
		return usage_error("--gpu %s: %s", args->gpu, found.why);
	args->simulated = true;
	if (err) {	/* gpupart_attach() will report the error */
		snprintf(first, sizeof(first), "%.*s", (int)strcspn(captures, ":"), captures);
		args->source = first;
		return 0;
	}
	args->source = found.capture;
	args->gpu = found.pci;
	return 0;
}

int args_fail_gpu(const struct args *args, int err, const char *why)
{
	if (args->source || !access("/dev/nvidiactl", F_OK))
		return error_of(err, "%s", why);
	return error_of(
		err,
		"no NVIDIA driver here: /dev/nvidiactl is missing: see 'gpupart doctor', or try -i sample:h200, which needs no GPU");
}

const char *args_source_from(const struct args *args)
{
	return args->source_from ? args->source_from : "-i ";
}

int args_input(struct args *args)
{
	const char *source = getenv("GPUPART_INPUT"), *from = "GPUPART_INPUT=";
	const char *sim = getenv("GPUPART_SIM");
	const struct setting *setting = NULL;
	int status = 0;

	if (args->source || args->has_defaults)
		return 0;
	args->has_defaults = true;
	if (!source || !*source) {
		status = settings_default("input", &setting);
		/* Remove an invalid setting. The restarted command must not report it again. */
		setting = status ? NULL : setting;
		source = setting ? setting->value : NULL;
		from = setting ? alloc_text("%s%s = ", setting->from, setting->key) : NULL;
	}
	if (status && !args->lenient)
		return status;
	args->wants_sim = source && !paths_is_live(source);
	if (sim && *sim)
		return 0;
	args->source = source;
	args->source_from = from;
	return 0;
}

int args_simulate(struct args *args)
{
	static char path[4096];
	const char *sim = getenv("GPUPART_SIM");
	int status = args_input(args);

	if (status)
		return status;
	/* The default "kernel" or "rm" means the real GPU here. */
	if (args->source_from && args->source && paths_is_live(args->source))
		args->source = NULL;
	if (!args->source)
		return sim && *sim ? choose_simulated(args, sim) : 0;
	if (paths_is_live(args->source))
		return usage_error(
			"-i %s: must be a capture (sample:h200 or a file) for the simulated GPU; without -i the real GPU is used",
			args->source);
	status = capture_path(args, path, sizeof(path)) ?: paths_enter_sim(path);
	settings_note();
	return status ?: choose_simulated(args, path);
}

int args_gpu(struct args *args, const char **gpu)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	struct cuda_probe probe;
	int err;

	*gpu = args->gpu;
	if (args->gpu || !visible || args->source)
		return 0;
	if (!strncmp(visible, "GPU-", 4)) {
		/*
		 * A UUID needs no translation. If the variable has a list of UUIDs, use the first
		 * UUID.
		 */
		snprintf(args->visible, sizeof(args->visible), "%.*s",
			 (int)strcspn(visible, ","), visible);
		*gpu = args->visible;
		return 0;
	}
	/*
	 * If there is one GPU, the index needs no translation. Without a GPU, opening the topology
	 * fails.
	 */
	if (*visible && *visible != '-' &&
	    gpupart_gpu_list(cmd_gp, NULL, NULL, 0, sizeof(struct gpupart_gpu_info)) <= 1)
		return 0;
	err = cuda_probe(&probe);
	if (!err && probe.nr_devices > 0) {
		snprintf(args->visible, sizeof(args->visible), "%s", probe.pci[0]);
		*gpu = args->visible;
		return 0;
	}
	return usage_error("CUDA_VISIBLE_DEVICES=%s: %s: choose a GPU with --gpu", visible,
			   err ? probe.why : "no GPU is visible");
}

int args_topology(struct args *args, struct gpupart_topology **topo)
{
	const char *gpu;
	int status, err;

	status = args_input(args) ?:
		 (args->source && !args->simulated ? check_file(args) : 0) ?:
		 args_gpu(args, &gpu);
	if (status)
		return status;
	settings_note();
	err = gpupart_topology_open(cmd_gp, args->source, args->simulated ? NULL : gpu, topo);
	if (err && args->source && args->source_from)
		return error_of(err, "%s%s: %s", args->source_from, args->source,
				gpupart_error(cmd_gp));
	if (err)
		return args_fail_gpu(args, err, gpupart_error(cmd_gp));
	return 0;
}

int args_memory(const char *text, uint64_t *bytes)
{
	int status = 0;

	if (gpupart_memory_parse(cmd_gp, text, bytes))
		status = usage_error("--mem %s: %s", *text ? text : "''", gpupart_error(cmd_gp));
	return status;
}

int args_pid(const char *text, int *pid)
{
	unsigned long value;

	if (!number_whole(text, INT_MAX, &value))
		return usage_error("-p '%s': must be a process id", text);
	*pid = value;
	return 0;
}

int args_seconds(const char *option, const char *text, double least, double *seconds)
{
	if (!text || (number_decimal(text, seconds) && *seconds >= least && *seconds <= 3600))
		return 0;
	return usage_error("%s '%s': must be %g to 3600 seconds", option, text, least);
}

int args_inside(const struct args *args, const struct gpupart_topology *topo,
		const struct gpupart_tpcset *set, const struct gpupart_tpcset *within)
{
	struct gpupart_tpcset outside = gpupart_tpcset_andnot(set, within);
	char text[OUT_SET_STRLEN], limit[OUT_SET_STRLEN];

	if (gpupart_tpcset_empty(&outside))
		return 0;
	return usage_error("TPCs %s are outside the %s %s %s",
			   out_set(text, sizeof(text), topo, &outside), args->job ? "set" : "limit",
			   out_set(limit, sizeof(limit), topo, within),
			   args->job ? "of the outer run" : "of this process (GPUPART_SET)");
}

int args_set_listed(const struct args *args, const struct gpupart_topology *topo,
		    struct gpupart_tpcset *set)
{
	static const struct { const char *option, *word; } words[] = {
		{ "-t", "tpc" }, { "-g", "gpc" }, { "-u", "ugpu" }, { "--hex", "hex" },
	};
	struct gpupart_tpcset part = { { 0 } };
	int status = 0;
	char *text;

	memset(set, 0, sizeof(*set));
	for (unsigned int i = 0; !status && i < args->nr_terms; i++) {
		const char *option = args->terms[i].option, *value = args->terms[i].text;
		const char *word = NULL;

		for (size_t j = 0; j < sizeof(words) / sizeof(words[0]); j++)
			if (!strcmp(words[j].option, option))
				word = words[j].word;
		if (!word)
			continue;
		/* Reject "+", because it would begin another term in the library. */
		if (strchr(value, '+') || strchr(value, ' ') || !*value) {
			status = usage_error("%s '%s': must be %s", option, value,
					     word[0] == 'h' ? "a hexadecimal number" :
							      "a list such as 0,5,8-11 or 0-10:2");
			continue;
		}
		text = alloc_text("%s:%s", word, value);
		if (gpupart_set_parse(cmd_gp, topo, text, &part))
			status = usage_error("%s %s: %s", option, value, gpupart_error(cmd_gp));
		free(text);
		*set = gpupart_tpcset_or(set, &part);
	}
	return status;
}

int args_set(const struct args *args, const struct gpupart_topology *topo, const char *pci,
	     const struct gpupart_tpcset *within, struct gpupart_tpcset *set)
{
	const struct gpupart_tpcset around = within ? *within : gpupart_topology_all(topo);
	struct gpupart_tpcset others, free_tpcs;
	enum gpupart_shape shape = GPUPART_SHAPE_PACKED;
	unsigned int nr = 0, more = 0;
	char asked[128] = "";
	int status;

	settings_note();
	if (!args->nr_terms)
		return usage_error("no set: use -t, -g, -u, -n, --sms or --hex");
	status = args_set_listed(args, topo, set);
	for (unsigned int i = 0; !status && i < args->nr_terms; i++) {
		const char *option = args->terms[i].option, *value = args->terms[i].text;

		if (strcmp(option, "-n") && strcmp(option, "--sms"))
			continue;
		status = amount_parse(option, value, topo, &around, &more);
		nr += more;
		snprintf(asked + strlen(asked), sizeof(asked) - strlen(asked), "%s%s %s",
			 *asked ? " " : "", option, value);
	}
	if (status && args->named)
		remark("the set includes %s%s = %s", args->named->from, args->named->key,
		       args->named->value);
	status = status ?: args_inside(args, topo, set, &around);
	if (!status && args->shape && !nr)
		status = usage_error("--shape %s: needs -n or --sms", args->shape);
	if (!status && nr)
		status = find_shape(args, &shape);
	if (status)
		return status;
	free_tpcs = gpupart_tpcset_andnot(&around, set);
	if (nr > gpupart_tpcset_count(&free_tpcs))
		return usage_error("%s: %u TPCs: only %u TPCs are left to choose from%s", asked,
				   nr, gpupart_tpcset_count(&free_tpcs),
				   !within    ? "" :
				   args->rule ? " inside the run's set" :
				   args->job  ? " inside the set of the outer run" :
						" inside GPUPART_SET");
	if (!nr)
		neighbours_note(args, topo, pci, within, set);
	if (!nr && !clusters_lacks(topo, set)) {
		clusters_note_size(topo, set);
		return 0;
	}
	status = nr ? neighbours_lock() : 0;
	if (status)
		return status;
	others = neighbours_tpcs(args, topo, pci, within);
	if (nr)
		status = amount_choose(topo, shape, &free_tpcs, &others, nr, set);
	if (status)
		return status;
	free_tpcs = gpupart_tpcset_andnot(&around, &others);
	clusters_note("", topo, set, &free_tpcs);
	return 0;
}
