// SPDX-License-Identifier: MIT
/*
 * Fuzz target: short texts from people, files and the environment. The texts are addresses,
 * UUIDs, GPU selectors, sizes, times and names. An accepted value must be the same after a write
 * and a read. A refusal must have a message.
 */
#include <errno.h>
#include "cli/target/args.h"
#include "cli/target/tenants.h"
#include "cli/util/message.h"
#include "cli/util/out.h"
#include "cli/util/yaml.h"
#include "lib/core/state_dir.h"
#include "lib/ledger/ledger.h"
#include "lib/topo/topology.h"
#include "tests/fuzz/fuzz.h"

static bool is_uuid(const char *text)
{
	static const unsigned int groups[] = { 8, 4, 4, 4, 12 };

	if (strncmp(text, "GPU", 3))
		return false;
	text += 3;
	for (int i = 0; i < 5; i++) {
		if (*text != '-' || strspn(text + 1, "0123456789abcdefABCDEF") != groups[i])
			return false;
		text += 1 + groups[i];
	}
	return !*text;
}

static void check_address(const char *text)
{
	struct gpupart_gpu_info info = { .uuid = "GPU-01234567-89ab-cdef-0123-456789abcdef" };
	char address[20], again[20];

	MUST(topo_is_uuid(text) == is_uuid(text));
	strcpy(info.pci, "0000:0d:00.0");
	topo_selects(text, &info, 3);
	if (!topo_address_read(text, address))
		return;
	MUST(fuzz_printable(address, sizeof(address)) && address[0]);
	MUST(topo_address_read(address, again) && !strcmp(address, again));
	strcpy(info.pci, address);
	MUST(topo_selects(text, &info, 3) && topo_selects(address, &info, 3));
}

/*
 * Parses a size without the library. The precision is a millionth of the size's unit, rounded
 * down. If the text is invalid, returns 0.
 */
static uint64_t expect_size(const char *text)
{
	static const struct { const char *name; uint64_t bytes; } units[] = {
		{ "", 1 }, { "b", 1 },
		{ "k", 1ull << 10 }, { "kib", 1ull << 10 }, { "kb", 1000 },
		{ "m", 1ull << 20 }, { "mib", 1ull << 20 }, { "mb", 1000000 },
		{ "g", 1ull << 30 }, { "gib", 1ull << 30 }, { "gb", 1000000000 },
		{ "t", 1ull << 40 }, { "tib", 1ull << 40 }, { "tb", 1000000000000 },
	};
	size_t digits = strspn(text, "0123456789"), more = 0;
	unsigned __int128 millionths = 0;

	if (!digits)
		return 0;
	if (text[digits] == '.')
		more = strspn(text + digits + 1, "0123456789");
	for (size_t i = 0; i < digits && millionths < (unsigned __int128)1 << 100; i++)
		millionths = millionths * 10 + (text[i] - '0');
	for (size_t i = 0; i < 6; i++)
		millionths = millionths * 10 + (i < more ? text[digits + 1 + i] - '0' : 0);
	text += digits + (more ? more + 1 : 0);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (strcasecmp(text, units[i].name) || (more && units[i].bytes == 1))
			continue;
		if (millionths / 1000000 > 1ull << 60 ||
		    millionths * units[i].bytes / 1000000 > 1ull << 60)
			return 0;
		return millionths * units[i].bytes / 1000000;
	}
	return 0;
}

static void check_size(struct gpupart *gp, const char *text)
{
	char shown[TENANTS_SIZE_STRLEN];
	uint64_t bytes = 0, again;
	int err, status;

	gp->error[0] = 0;
	err = gpupart_memory_parse(gp, text, &bytes);
	MUST(err ? err == -EINVAL && gp->error[0] : bytes > 0);
	MUST(expect_size(text) == (err ? 0 : bytes));
	fuzz_lines = 0;
	status = args_memory(text, &again);
	MUST(err ? status == EXIT_USAGE && fuzz_lines == 1 : !status && again == bytes);
	if (err)
		return;
	/*
	 * The value with two decimals must be at most the exact value, and at least the exact
	 * value minus a hundredth.
	 */
	tenants_size(shown, bytes);
	if (strstr(shown, " byte"))
		*strstr(shown, " byte") = 0;
	if (strchr(shown, ' '))
		memmove(strchr(shown, ' '), strchr(shown, ' ') + 1, strlen(strchr(shown, ' ')));
	MUST(!gpupart_memory_parse(gp, shown, &again));
	MUST(again <= bytes && bytes - again <= bytes / 100 + 1);
}

static void check_names(const char *text)
{
	char path[80];
	uid_t uid;
	uint64_t ns;

	if (state_dir_name_valid(text))
		MUST(fuzz_printable(text, 64) && !strchr(text, '/') && *text != '-');
	if (state_dir_uid(text, &uid)) {
		snprintf(path, sizeof(path), "gpupart-%u", uid);
		MUST(!strcmp(path, text));
	}
	yaml_read_time(text, &ns);
}

/*
 * Checks the cleaning of text for a terminal. A second cleaning must change nothing. The length
 * must stay the same. No control characters may remain.
 */
static void check_clean(const char *text)
{
	char *clean = strdup(text), *again;

	MUST(clean);
	out_clean(clean);
	MUST(strlen(clean) == strlen(text));
	for (const char *c = clean; *c; c++)
		MUST((unsigned char)*c >= ' ' && *c != 0x7f);
	again = strdup(clean);
	MUST(again && !strcmp(out_clean(again), clean));
	free(clean);
	free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct gpupart *gp;
	char *text = fuzz_text(data, size);

	if (!gp)
		MUST(!gpupart_open(&gp));
	fuzz_words = gp->error;
	check_address(text);
	check_size(gp, text);
	check_names(text);
	check_clean(text);
	free(text);
	return 0;
}
