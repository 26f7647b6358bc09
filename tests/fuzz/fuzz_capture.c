// SPDX-License-Identifier: MIT
/*
 * Fuzz target: captures. If the reader accepts a capture, the topology has the rows of the text.
 * The target writes the topology as a capture and reads this capture. The result must be the same
 * topology. A capture of the result must have the same bytes. A refusal has a message. The target
 * first reads the unchanged input. Then it corrects the first line and the checksum, and reads
 * the corrected input. So the fuzzer also reaches code after these two checks.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/core/hash.h"
#include "lib/topo/topology.h"
#include "tests/fuzz/fuzz.h"

/* ---------------------------------------------------------- the rows, by another reader */

/* Parses a field of a row. The field "-" has the value -1. */
static long number(const char *field)
{
	return strcmp(field, "-") ? strtol(field, NULL, 0) : -1;
}

static void check_sm(const struct gpupart_topology *topo, char *const *f, unsigned int nr)
{
	const struct topo_sm *sm = &topo->sms[nr];

	MUST(number(f[0]) == (long)nr && nr < topo->nr_sms);
	MUST(sm->gpc == number(f[1]) && sm->local_tpc == number(f[2]));
	MUST(sm->local_sm == number(f[3]) && sm->tpc == number(f[4]));
	MUST(sm->vgpc == number(f[5]) && sm->tpc_in_vgpc == number(f[6]));
	MUST(sm->ugpu == number(f[7]) && sm->cpc == number(f[8]));
	MUST(sm->virtual_tpc == number(f[9]));
}

static void check_gpc(const struct gpupart_topology *topo, char *const *f, unsigned int nr)
{
	const struct topo_gpc *gpc = &topo->gpc_map[nr];

	MUST(nr < topo->nr_gpc_map && gpc->gpc_phys == number(f[0]));
	MUST(gpc->present_tpcs == (strcmp(f[1], "-") ? number(f[1]) : 0));
	MUST(gpc->gpc == number(f[2]));
}

static void check_register(const struct gpupart_topology *topo, char *const *f, unsigned int nr)
{
	const struct topo_register *reg = &topo->registers[nr];

	MUST(nr < topo->nr_registers && reg->offset == number(f[0]) && reg->value == number(f[1]));
	MUST(!nr || reg->offset > reg[-1].offset);
}

static void check_bit(const struct gpupart_topology *topo, char *const *f, unsigned int nr)
{
	MUST(number(f[0]) < topo->nr_sms && topo->sms[number(f[0])].measured_bit == number(f[1]));
	(void)nr;
}

static const struct rows {
	const char *section;
	unsigned int nr_fields;
	void (*check)(const struct gpupart_topology *topo, char *const *field, unsigned int nr);
} rows[] = {
	{ "[rm]", 10, check_sm }, { "[gpc-map]", 3, check_gpc },
	{ "[registers]", 2, check_register }, { "[measured-bits]", 2, check_bit },
};

#define NR_ROWS (sizeof(rows) / sizeof(rows[0]))

/* Checks that each row is in its place and has its values. There must be no other row. */
static void check_rows(const struct gpupart_topology *topo, const char *text, size_t len)
{
	char *copy = strndup(text, len), *rest = copy, *line, *save, *f[11];
	unsigned int nr[NR_ROWS] = { 0 }, nr_bits = 0, at = NR_ROWS, n;

	MUST(copy && strlen(copy) == len);
	while ((line = strsep(&rest, "\n"))) {
		if (*line == '[') {
			for (at = 0; at < NR_ROWS && strcmp(line, rows[at].section); at++)
				;
			/* Each one once. */
			MUST(at == NR_ROWS || !nr[at]);
			continue;
		}
		if (at == NR_ROWS || !*line || *line == '#' || strchr(line, '='))
			continue;
		for (n = 0; n < 11 && (f[n] = strtok_r(n ? NULL : line, " \t", &save)); n++)
			;
		MUST(n == rows[at].nr_fields);
		rows[at].check(topo, f, nr[at]++);
	}
	for (unsigned int i = 0; i < topo->nr_sms; i++)
		nr_bits += topo->sms[i].measured_bit >= 0;
	MUST(nr[0] == topo->nr_sms && nr[1] == topo->nr_gpc_map);
	MUST(nr[2] == topo->nr_registers && nr[3] == nr_bits);
	free(copy);
}

/* The last line of a capture has the checksum of all text before this line. */
static void check_sum(const char *text, size_t len)
{
	const char *last = text + len - 1;
	char expected[40];

	while (last > text && last[-1] != '\n')
		last--;
	snprintf(expected, sizeof(expected), "checksum = %016llx\n",
		 (unsigned long long)hash_bytes(HASH_INIT, text, last - text));
	MUST(strlen(expected) == (size_t)(text + len - last));
	MUST(!memcmp(last, expected, text + len - last));
}

static void read_back(struct gpupart *gp, const char *text, size_t len)
{
	struct gpupart_topology *topo, *again;
	struct gpupart_tpcset all;
	char *first, *second;
	int err;

	gp->error[0] = 0;
	err = topo_file_parse(gp, "it", text, len, &topo);
	if (err) {
		MUST((err == -EINVAL || err == -EBADMSG || err == -ENODATA) && gp->error[0]);
		return;
	}
	check_sum(text, len);
	check_rows(topo, text, len);
	all = gpupart_topology_all(topo);
	MUST(!gpupart_set_check(gp, topo, &all));
	MUST(!gpupart_topology_capture(gp, topo, NULL, &first));
	MUST(!topo_file_parse(gp, "it", first, strlen(first), &again));
	MUST(gpupart_topology_hash(topo) == gpupart_topology_hash(again));
	MUST(!memcmp(&topo->info, &again->info, sizeof(topo->info)));
	MUST(!memcmp(topo->sms, again->sms, sizeof(topo->sms)));
	MUST(!gpupart_topology_capture(gp, again, NULL, &second));
	MUST(!strcmp(first, second));
	free(first);
	free(second);
	gpupart_topology_close(topo);
	gpupart_topology_close(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char first_line[] = "# gpupart capture 1\n";
	static struct gpupart *gp;
	char *text;
	size_t len;

	if (!gp)
		MUST(!gpupart_open(&gp));
	read_back(gp, (const char *)data, size);

	text = malloc(sizeof(first_line) + size + 64);
	MUST(text);
	len = strlen(first_line);
	memcpy(text, first_line, len);
	memcpy(text + len, data, size);
	len += size;
	text[len++] = '\n';
	len += sprintf(text + len, "checksum = %016llx\n",
		       (unsigned long long)hash_bytes(HASH_INIT, text, len));
	read_back(gp, text, len);
	free(text);
	return 0;
}
