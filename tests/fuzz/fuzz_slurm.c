// SPDX-License-Identifier: MIT
/*
 * Fuzz target: the argument of --gpupart of a Slurm job. A user can send an argument that the
 * plugin has not checked. An accepted argument must equal its words, and each word must occur one
 * time. A write and a read of an accepted argument must give the same result. A refusal has a
 * message.
 */
#include <errno.h>
#include <gpupart_manage.h>
#include "lib/private.h"
#include "slurm/options.h"
#include "tests/fuzz/fuzz.h"

#define MIB (1ull << 20)

/* Parses the words without the plugin's code. If a word is invalid, returns false. */
static bool expect(const char *text, struct words *words)
{
	static const char *const names[] = { "tpcs=", "cluster=", "wait=", "mem=", "gpcs", "ugpu" };
	unsigned int seen = 0;

	memset(words, 0, sizeof(*words));
	for (;;) {
		size_t len = strcspn(text, ",");
		char word[256], *value;
		unsigned int i = 0;

		if (len >= sizeof(word))
			return false;
		memcpy(word, text, len);
		word[len] = 0;
		while (i < 6 && strncmp(word, names[i], strlen(names[i])))
			i++;
		if (i == 6 || seen >> i & 1)
			return false;
		seen |= 1u << i;
		value = word + strlen(names[i]);
		if (i >= 4) {
			if (*value)
				return false;
			*(i == 4 ? &words->gpcs : &words->ugpu) = true;
		} else if (i == 3) {
			struct gpupart *gp;
			int err;

			MUST(!gpupart_open(&gp));
			err = gpupart_memory_parse(gp, value, &words->memory);
			gpupart_close(gp);
			if (err)
				return false;
			words->memory += (MIB - words->memory % MIB) % MIB;
		} else {
			static const unsigned int most[] = { GPUPART_MAX_TPCS, 32, 86400 };
			unsigned int nr = 0;

			if (!*value || strspn(value, "0123456789") != strlen(value))
				return false;
			for (; *value && nr <= most[i]; value++)
				nr = nr * 10 + *value - '0';
			if (!nr || nr > most[i])
				return false;
			*(i == 0 ? &words->tpcs : i == 1 ? &words->cluster : &words->wait) = nr;
		}
		if (!text[len])
			return words->tpcs;
		text += len + 1;
	}
}

static bool same(const struct words *a, const struct words *b)
{
	return a->tpcs == b->tpcs && a->gpcs == b->gpcs && a->ugpu == b->ugpu &&
	       a->cluster == b->cluster && a->memory == b->memory && a->wait == b->wait;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), canonical[200], why[256] = "";
	struct words words, expected, again;
	bool good;
	int err;

	err = words_read(text, &words, why, sizeof(why));
	good = expect(text, &expected);
	if (err) {
		/*
		 * There is one valid reason for the refusal of a good text: the text does not fit
		 * into a job's record.
		 */
		MUST(err == -EINVAL && *why && fuzz_printable(why, sizeof(why)));
		MUST(!good || strlen(text) >= sizeof(((struct gpupart_grant *)0)->asked));
		free(text);
		return 0;
	}
	MUST(good && same(&words, &expected) && !*why);
	MUST(strlen(text) < sizeof(((struct gpupart_grant *)0)->asked));
	MUST(words.memory % MIB == 0 && words.memory <= 1ull << 60);
	snprintf(canonical, sizeof(canonical), "tpcs=%u%s%s", words.tpcs,
		 words.gpcs ? ",gpcs" : "", words.ugpu ? ",ugpu" : "");
	if (words.cluster)
		sprintf(canonical + strlen(canonical), ",cluster=%u", words.cluster);
	if (words.wait)
		sprintf(canonical + strlen(canonical), ",wait=%u", words.wait);
	if (words.memory)
		sprintf(canonical + strlen(canonical), ",mem=%lluM",
			(unsigned long long)(words.memory / MIB));
	MUST(!words_read(canonical, &again, why, sizeof(why)) && same(&words, &again));
	free(text);
	return 0;
}
