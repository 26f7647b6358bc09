// SPDX-License-Identifier: MIT
/*
 * Reads rules of the form PATTERN=SET; see rules.h. The first "=" ends PATTERN. SET is a list of
 * options of 'run', or a word such as gpc:1.
 */
#include <stdlib.h>
#include <string.h>
#include "cli/plan/demands.h"
#include "cli/start/rules.h"
#include "cli/util/alloc.h"
#include "cli/util/message.h"
#include "cli/util/out.h"

#define MAX_WORDS	32

static const char *set_of(const char *rule)
{
	return strchr(rule, '=') + 1;
}

int rules_check(const struct args_texts *texts)
{
	for (unsigned int i = 0; i < texts->nr; i++) {
		const char *rule = texts->texts[i], *fault = demands_rule_fault(rule);

		if (fault)
			return usage_error("--rule '%.80s%s': %s", rule,
					   strlen(rule) > 80 ? ".." : "", fault);
	}
	if (texts->nr > DEMANDS_MAX_RULES)
		return usage_error("--rule '%s': at most %d rules are possible",
				   texts->texts[DEMANDS_MAX_RULES], DEMANDS_MAX_RULES);
	return 0;
}

/* Parses @words as options of 'run'. Modifies @words. Returns 0 or an error. */
static int read_options(char *words, struct args *args)
{
	char *argv[MAX_WORDS + 2] = { "run" }, *next;
	int argc = 1, status;

	for (char *word = strtok_r(words, " ", &next); word; word = strtok_r(NULL, " ", &next)) {
		if (argc == MAX_WORDS)
			return usage_error("a rule can have at most %d words", MAX_WORDS);
		argv[argc++] = word;
	}
	status = args_parse(args, ARGS_SET, NULL, "", argc, argv);
	return status ? usage_error("SET must be -t, -g, -u, -n, --sms or --hex") : 0;
}

static int refuse_outside(const struct gpupart_topology *topo, const struct gpupart_tpcset *set,
			  const struct gpupart_tpcset *within)
{
	struct gpupart_tpcset outside = gpupart_tpcset_andnot(set, within);
	char text[OUT_SET_STRLEN], around[OUT_SET_STRLEN];

	if (gpupart_tpcset_empty(&outside))
		return 0;
	return usage_error("TPCs %s are outside the run's set (%s)",
			   out_set(text, sizeof(text), topo, &outside),
			   out_set(around, sizeof(around), topo, within));
}

static int set_of_options(char *words, const struct args *run, const struct gpupart_topology *topo,
			  const char *pci, const struct gpupart_tpcset *within,
			  struct gpupart_tpcset *set)
{
	struct args args = { .ignored_name = run->ignored_name, .ignored_pid = run->ignored_pid,
			     .rule = true };

	return read_options(words, &args) ?: args_set_listed(&args, topo, set) ?:
	       refuse_outside(topo, set, within) ?: args_set(&args, topo, pci, within, set);
}

/* All messages name the rule. */
static int work_out(const char *rule, const struct args *args, const struct gpupart_topology *topo,
		    const char *pci, const struct gpupart_tpcset *within,
		    struct gpupart_tpcset *set)
{
	char *words = alloc_text("%s", set_of(rule) + strspn(set_of(rule), " "));
	char *name = alloc_text("%s: --rule '%s'", cmd_name, rule);
	const char *command = cmd_name;
	int status;

	cmd_name = name;
	if (*words == '-')
		status = set_of_options(words, args, topo, pci, within, set);
	else
		status = gpupart_set_parse(cmd_gp, topo, words, set) ?
			 usage_error("%s", gpupart_error(cmd_gp)) :
			 refuse_outside(topo, set, within);
	cmd_name = command;
	free(name);
	free(words);
	return status;
}

int rules_add(struct rules *rules, const struct args_texts *texts, const struct args *args,
	      const struct gpupart_topology *topo, const char *pci,
	      const struct gpupart_tpcset *within)
{
	char list[GPUPART_TPCSET_STRLEN], *longer;
	struct gpupart_tpcset set;
	int status;

	for (unsigned int i = 0; i < texts->nr; i++) {
		status = work_out(texts->texts[i], args, topo, pci, within, &set);
		if (status)
			return status;
		gpupart_tpcset_format_list(&set, list, sizeof(list));
		longer = alloc_text("%s%s%s", rules->sets[i] ? rules->sets[i] : "",
				    rules->sets[i] ? ";" : "", list);
		free(rules->sets[i]);
		rules->sets[i] = longer;
	}
	return 0;
}

/* Returns whether an earlier rule has the pattern of rule @n. Then rule @n has no effect. */
static bool is_repeated(const struct args_texts *texts, unsigned int n)
{
	size_t len = strcspn(texts->texts[n], "=") + 1;

	for (unsigned int i = 0; i < n; i++)
		if (!strncmp(texts->texts[i], texts->texts[n], len))
			return true;
	return false;
}

char *rules_take(struct rules *rules, const struct args_texts *texts)
{
	char *all = NULL, *longer;

	for (unsigned int i = 0; i < texts->nr; i++) {
		if (!is_repeated(texts, i)) {
			longer = alloc_text("%s%s%s %.*s", all ? all : "", all ? "\n" : "",
					    rules->sets[i], (int)strcspn(texts->texts[i], "="),
					    texts->texts[i]);
			free(all);
			all = longer;
		}
		free(rules->sets[i]);
	}
	return all;
}
