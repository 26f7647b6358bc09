// SPDX-License-Identifier: MIT
/*
 * Reads the value of --gpupart, for example tpcs=16,gpcs,mem=20G. In slurmctld, gpupart.lua reads
 * the same value.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/private.h"
#include "slurm/options.h"

#define MAX_CLUSTER 32
#define MAX_WAIT 86400
#define MIB (1ull << 20)

/*
 * Reject a repeated word. Otherwise the scheduler could use the first value, and the node could
 * use the second value.
 */
static int read_twice(const char *word, char *why, size_t len)
{
	snprintf(why, len, "%s: is given twice", word);
	return -EINVAL;
}

static int read_number(const char *word, const char *value, unsigned long max, unsigned int *number,
		       char *why, size_t len)
{
	char *end = NULL;
	unsigned long found;

	errno = 0;
	found = value && *value >= '0' && *value <= '9' ? strtoul(value, &end, 10) : 0;
	if (!end || *end || errno || !found || found > max) {
		snprintf(why, len, "%s: must be a number from 1 to %lu", word, max);
		return -EINVAL;
	}
	if (*number)
		return read_twice(word, why, len);
	*number = found;
	return 0;
}

static int read_memory(const char *word, const char *value, struct words *words, char *why,
		       size_t len)
{
	struct gpupart *gp;
	int err;

	if (words->memory)
		return read_twice(word, why, len);
	err = gpupart_open(&gp);
	if (err) {
		snprintf(why, len, "no memory");
		return err;
	}
	err = gpupart_memory_parse(gp, value ? value : "", &words->memory);
	if (err)
		snprintf(why, len, "%s: %s", word, gpupart_error(gp));
	/* Slurm counts memory in MiB. */
	words->memory = (words->memory + MIB - 1) / MIB * MIB;
	gpupart_close(gp);
	return err;
}

static int read_flag(const char *word, const char *value, bool *flag, char *why, size_t len)
{
	if (value) {
		snprintf(why, len, "%s: must not have a value", word);
		return -EINVAL;
	}
	if (*flag)
		return read_twice(word, why, len);
	*flag = true;
	return 0;
}

static int read_word(const char *word, struct words *words, char *why, size_t len)
{
	const char *equals = strchr(word, '='), *value = equals ? equals + 1 : NULL;
	size_t name = equals ? (size_t)(equals - word) : strlen(word);

	if (name == 4 && !strncmp(word, "tpcs", name))
		return read_number(word, value, GPUPART_MAX_TPCS, &words->tpcs, why, len);
	if (name == 7 && !strncmp(word, "cluster", name))
		return read_number(word, value, MAX_CLUSTER, &words->cluster, why, len);
	if (name == 4 && !strncmp(word, "wait", name))
		return read_number(word, value, MAX_WAIT, &words->wait, why, len);
	if (name == 3 && !strncmp(word, "mem", name))
		return read_memory(word, value, words, why, len);
	if (name == 4 && !strncmp(word, "gpcs", name))
		return read_flag(word, value, &words->gpcs, why, len);
	if (name == 4 && !strncmp(word, "ugpu", name))
		return read_flag(word, value, &words->ugpu, why, len);
	snprintf(why, len,
		 "'%.40s': must be tpcs=N, gpcs, ugpu, cluster=BLOCKS, mem=SIZE or wait=SECONDS, separated by commas",
		 word);
	return -EINVAL;
}

static int read_all(const char *text, struct words *words, char *why, size_t len)
{
	char copy[WORDS_LEN], *rest = copy, *word;
	int err = 0;

	if (strlen(text) >= sizeof(copy)) {
		snprintf(why, len, "'%.40s..': must have at most %zu characters", text,
			 sizeof(copy) - 1);
		return -EINVAL;
	}
	strcpy(copy, text);
	while (!err && (word = strsep(&rest, ",")))
		err = read_word(word, words, why, len);
	if (err || words->tpcs)
		return err;
	snprintf(why, len, "'%.100s': tpcs=N is missing", text);
	return -EINVAL;
}

int words_read(const char *text, struct words *words, char *why, size_t len)
{
	int err;

	memset(words, 0, sizeof(*words));
	err = read_all(text ? text : "", words, why, len);
	/* The user's text may become a line of root's log. */
	for (char *c = why; err && *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	return err;
}
