// SPDX-License-Identifier: MIT
/*
 * Fuzz target: a plan as JSON, as `cdi --plan` and `run --plan` read it: any bytes, and a good
 * plan with pieces of it written over. What is refused is refused in one line; what is taken is
 * a set that is not empty, in two forms that are the same.
 */
#include "../../cli/args.h"
#include "../../cli/cmd.h"
#include "../../cli/plan_file.h"
#include "fuzz.h"

static const char good[] =
"{\"schema\": \"gpupart/1\", \"command\": \"plan\", \"simulated\": false,\n"
" \"gpu\": {\"pci\": \"0000:01:00.0\"}, \"topology_hash\": \"0123456789abcdef\",\n"
" \"tenants\": [\n"
"  {\"name\": \"a\", \"mem_bytes\": 21474836480,\n"
"   \"set\": {\"list\": \"0-3\", \"hex\": \"f\", \"nr_tpcs\": 4}},\n"
"  {\"name\": \"b\", \"set\": {\"list\": \"4,6\", \"hex\": \"50\", \"nr_tpcs\": 2}}]}\n";

static void read_plan(const void *text, size_t len, bool must_be_good)
{
	struct args args = { .cmd = "run", .usage_status = EXIT_RUN_FAILED };
	const struct plan_file_tenant *tenant;
	const char *path = fuzz_file(text, len);
	struct gpupart_tpcset set;
	struct plan_file file;
	char words[64];
	int status;

	/* All of it, as cdi takes it. */
	fuzz_lines = 0;
	status = plan_file_read(&args, path, &file);
	MUST(status == -1 ? !fuzz_lines : status == EXIT_RUN_FAILED && fuzz_lines == 1);
	for (unsigned int i = 0; status == -1 && i < file.nr; i++) {
		tenant = &file.tenants[i];
		MUST(memchr(tenant->name, 0, sizeof(tenant->name)) && tenant->name[0]);
		MUST(!gpupart_tpcset_empty(&tenant->tpcs));
		MUST(!gpupart_tpcset_parse_list(NULL, tenant->set, &set));
		MUST(gpupart_tpcset_equal(&set, &tenant->tpcs));
	}
	snprintf(words, sizeof(words), "%s:a", path);
	fuzz_lines = 0;
	status = plan_file_read_one(&args, words, &file, &tenant);
	MUST(status == -1 ? !fuzz_lines : status == EXIT_RUN_FAILED && fuzz_lines == 1);
	MUST(status == -1 || !must_be_good);
	if (status != -1)
		return;
	MUST(!strcmp(tenant->name, "a") && memchr(file.pci, 0, sizeof(file.pci)));
	if (must_be_good)
		MUST(!strcmp(tenant->set, "0-3") && tenant->mem == 20ull << 30 &&
		     file.topology_hash == 0x123456789abcdef);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	char text[sizeof(good)];

	read_plan(data, size, false);
	memcpy(text, good, sizeof(good));
	read_plan(text, sizeof(good) - 1, true);
	input_patch(&in, text, sizeof(good) - 1);
	read_plan(text, sizeof(good) - 1, false);
	return 0;
}
