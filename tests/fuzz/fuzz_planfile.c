// SPDX-License-Identifier: MIT
/*
 * Fuzz target: a plan in JSON for `gpupart cdi --plan` and `gpupart run --plan`. The input is any
 * bytes, or a valid plan with overwritten parts. A refusal must have one line. An accepted set
 * must not be empty. The plan has two text forms of each set, and both must be the same set.
 */
#include "cli/plan/file.h"
#include "lib/private.h"
#include "cli/target/args.h"
#include "cli/util/message.h"
#include "tests/fuzz/fuzz.h"

static const char good[] =
"{\"schema\": \"gpupart/1\", \"command\": \"plan\", \"simulated\": false,\n"
" \"gpu\": {\"pci\": \"0000:01:00.0\"}, \"topology_hash\": \"0123456789abcdef\",\n"
" \"tenants\": [\n"
"  {\"name\": \"a\", \"mem_bytes\": 21474836480,\n"
"   \"set\": {\"list\": \"0-3\", \"hex\": \"f\", \"nr_tpcs\": 4}},\n"
"  {\"name\": \"b\", \"set\": {\"list\": \"4,6\", \"hex\": \"50\", \"nr_tpcs\": 2}}]}\n";

/* Parses the content of the file without the tested reader, and compares the results. */
static void compare(const char *text, size_t len, const struct plan_file *file)
{
	json_t *root = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL), *tenants, *json;
	struct gpupart_tpcset seen = { { 0 } }, hex;
	const char *hash, *pci;
	char number[20];
	size_t i;

	MUST(root);
	hash = json_string_value(json_object_get(root, "topology_hash"));
	pci = json_string_value(json_object_get(json_object_get(root, "gpu"), "pci"));
	tenants = json_object_get(root, "tenants");
	MUST(!strcmp(json_string_value(json_object_get(root, "schema")), "gpupart/1"));
	MUST(!strcmp(json_string_value(json_object_get(root, "command")), "plan"));
	snprintf(number, sizeof(number), "%016llx", (unsigned long long)file->topology_hash);
	MUST(hash && !strcmp(hash, number));
	MUST(!strcmp(file->pci, pci ? pci : ""));
	MUST(json_array_size(tenants) == file->nr);
	json_array_foreach(tenants, i, json) {
		const struct plan_file_tenant *t = &file->tenants[i];
		json_t *set = json_object_get(json, "set");
		const char *digits = json_string_value(json_object_get(set, "hex"));

		MUST(!strcmp(t->name, json_string_value(json_object_get(json, "name"))));
		MUST(digits && !gpupart_tpcset_parse_hex(NULL, digits, &hex));
		MUST(gpupart_tpcset_equal(&hex, &t->tpcs));
		MUST(json_integer_value(json_object_get(set, "nr_tpcs")) ==
		     gpupart_tpcset_count(&hex));
		MUST((json_int_t)t->mem == json_integer_value(json_object_get(json, "mem_bytes")));
		MUST(!gpupart_tpcset_intersects(&seen, &hex));
		seen = gpupart_tpcset_or(&seen, &hex);
		for (size_t j = 0; j < i; j++)
			MUST(strcmp(t->name, file->tenants[j].name));
	}
	json_decref(root);
}

static void read_plan(const void *text, size_t len, bool must_be_good)
{
	const struct plan_file_tenant *tenant;
	const char *path = fuzz_file(text, len);
	struct gpupart_tpcset set;
	struct plan_file file;
	char words[64];
	int status;

	/* Like `gpupart cdi`, reads all tenants. */
	fuzz_lines = 0;
	status = plan_file_read(path, &file);
	MUST(!status ? !fuzz_lines : status == EXIT_USAGE && fuzz_lines == 1);
	for (unsigned int i = 0; !status && i < file.nr; i++) {
		tenant = &file.tenants[i];
		MUST(memchr(tenant->name, 0, sizeof(tenant->name)) && tenant->name[0]);
		MUST(!gpupart_tpcset_empty(&tenant->tpcs));
		MUST(!gpupart_tpcset_parse_list(NULL, tenant->set, &set));
		MUST(gpupart_tpcset_equal(&set, &tenant->tpcs));
	}
	if (!status)
		compare(text, len, &file);
	snprintf(words, sizeof(words), "%s:a", path);
	fuzz_lines = 0;
	status = plan_file_read_one(words, &file, &tenant);
	MUST(!status ? !fuzz_lines : status == EXIT_USAGE && fuzz_lines == 1);
	MUST(!status || !must_be_good);
	if (status)
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
