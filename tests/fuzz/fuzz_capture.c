// SPDX-License-Identifier: MIT
/*
 * Fuzz target: a capture that the reader takes is written, read back to the same topology and
 * written again to the same bytes; what it refuses it refuses with a sentence. The input is
 * read as it is, and once more with first line and checksum mended, so that the fuzzer gets
 * behind them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <hash.h>
#include <topo.h>
#include "fuzz.h"

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
