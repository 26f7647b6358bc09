// SPDX-License-Identifier: MIT
/*
 * Fuzz target: a log of decisions. The target replays the log and shows the log in one of three
 * forms. Either all replayed decisions equal the decisions in the log, or one line reports the
 * error.
 */
#include "cli/qos/qos.h"
#include "cli/util/message.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char *names[2];
	static const char *const forms[] = { NULL, "svg" };
	struct args args = { .cmd = "qos", .output = "/dev/null",
			     .program = names, .json = size % 3 == 0 };
	struct qos_options options = { .of = forms[size % 3 == 1] };
	int status;

	names[0] = (char *)fuzz_file(data, size);
	fuzz_lines = 0;
	status = qos_replay(&args, &options);
	MUST(!status || status == EXIT_FAILED || status == EXIT_USAGE);
	MUST(fuzz_lines == (status != 0));
	return 0;
}
