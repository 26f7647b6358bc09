// SPDX-License-Identifier: MIT
/*
 * Tests the rows that `gpupart doctor` prints about other processes and the environment. The
 * command finds the state page of this process, into which the test writes many values.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/state/state_page.h"
#include "tests/tap.h"

static char doctor[1 << 16];	/* output of the last run of doctor */
static int doctor_status;

static void ask(const char *options)
{
	char command[4096];
	FILE *pipe;
	size_t len;

	snprintf(command, sizeof(command),
		 "'%s/bin/gpupart' doctor --no-launch -i sample:h200-e %s 2>&1 </dev/null",
		 getenv("BUILD") ? getenv("BUILD") : "build", options);
	pipe = popen(command, "r");
	len = pipe ? fread(doctor, 1, sizeof(doctor) - 1, pipe) : 0;
	doctor[len] = 0;
	doctor_status = pipe ? pclose(pipe) : -1;
}

/*
 * Returns the row about this process and the lines below this row, as one line. If there is no
 * such row, returns "".
 */
static const char *own_row(void)
{
	static char row[4096];
	char pid[32], *line, *end;

	*row = 0;
	snprintf(pid, sizeof(pid), "processes             %d ", getpid());
	line = strstr(doctor, pid);
	if (!line)
		return row;
	while (line > doctor && line[-1] != '\n')
		line--;
	end = strchr(line, '\n');
	while (end && end[1] == ' ')
		end = strchr(end + 1, '\n');
	for (char *to = row; end && line < end; *to = 0) {
		*to++ = *line == '\n' ? ' ' : *line;
		line += *line == '\n' ? 1 + strspn(line + 1, " ") : 1;
	}
	return row;
}

/* Counts the bytes that are control characters or broken UTF-8. */
static int nr_harmful(const char *text)
{
	int nr = 0;

	for (const unsigned char *c = (const unsigned char *)text; *c; c++)
		nr += (*c < ' ' && *c != '\n') || *c == 0x7f || *c >= 0x80;
	return nr;
}

static void test_foreign_text(void)
{
	static const char bad[] = "x\033]0;t\007\r\nok  \xff\xc3(\xc2\x9b" "2J\xed\xa0\x80";

	snprintf(state_page_own->header.name, sizeof(state_page_own->header.name), "%s", bad);
	snprintf(state_page_own->problem, sizeof(state_page_own->problem), "%s", bad);
	setenv("GPUPART_NAME", bad, 1);
	setenv("CUDA_INJECTION64_PATH", bad, 1);
	ask("");
	tap_ok(!nr_harmful(doctor), "text: no control character, no broken UTF-8");
	tap_ok(strstr(own_row(), "x?]0;t???ok  "), "text: the name is there, harmless: %s",
	       own_row());
	tap_ok(strstr(doctor, "GPUPART_NAME=x?]0;t???ok  "), "text: the environment is there");
	ask("--json");
	tap_ok(!nr_harmful(doctor), "JSON: no control character, no broken UTF-8");
	tap_ok(!strstr(doctor, "\\u00") && !strstr(doctor, "\\n"), "JSON: none escaped either");
	tap_ok(!strstr(doctor, "\"answer\": null"), "JSON: no answer is lost");
	tap_ok(strstr(doctor, "GPUPART_NAME=x?]0;t???ok  "), "JSON: the environment is there");
	setenv("GPUPART_NAME", "caf\xc3\xa9", 1);
	ask("");
	tap_ok(strstr(doctor, "GPUPART_NAME=caf\xc3\xa9"), "letters beyond ASCII stay");
	unsetenv("GPUPART_NAME");
	unsetenv("CUDA_INJECTION64_PATH");
	state_page_own->header.name[0] = 0;
	state_page_own->problem[0] = 0;
}

/*
 * Sets one counter at a time. Tests the word in the row, the status of the command, and the
 * advice.
 */
static void test_counters(void)
{
	static const struct {
		enum state_counter counter;
		const char *word, *advice;
	} wanted[] = {
		{ STATE_CONFINED, "ok ", NULL },
		{ STATE_UNCONFINABLE_VERSION, "bad ", "TMD version" },
		{ STATE_UNCONFINABLE_MAP, "bad ", "not proven" },
		{ STATE_UNCONFINABLE_GPU, "note ", "one GPU" },
		{ STATE_WIDENED_EMPTY, "note ", "outside its limit" },
		{ STATE_WIDENED_DRIVER, "note ", "driver itself disables" },
		{ STATE_WIDENED_CLUSTER, "note ", "a larger set, or whole GPCs" },
		{ STATE_WIDENED_COOPERATIVE, "note ", "a larger set, or whole GPCs" },
		{ STATE_DEVICE_LAUNCHES, "note ", "gpupart-device-launches(7)" },
	};

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		const char *word = wanted[i].word, *advice = wanted[i].advice, *found;
		bool bad = !strcmp(word, "bad ");

		state_page_own->lanes[0].counters[wanted[i].counter] = 3;
		ask("");
		found = own_row();
		tap_ok(!strncmp(found, word, strlen(word)), "counter %d: a row with %s: %s",
		       wanted[i].counter, word, found);
		tap_ok(advice ? !!strstr(found, advice) : !strstr(found, "->"),
		       "counter %d: the advice for it", wanted[i].counter);
		tap_ok(!doctor_status == !bad, "counter %d: status", wanted[i].counter);
		state_page_own->lanes[0].counters[wanted[i].counter] = 0;
	}
	ask("");
	tap_ok(!strncmp(own_row(), "note ", 5) &&
		       strstr(own_row(), "does not report its launches"),
	       "no launch at all is not called good: %s", own_row());
}

/* Returns the names in the last row as one line without blanks. */
static const char *row_of(const char *name)
{
	static char row[4096];
	char *to = row;

	for (const char *c = strstr(doctor, name); c && *c; c++)
		if (*c != '\n' && *c != ' ' && to < row + sizeof(row) - 1)
			*to++ = *c;
	*to = 0;
	return row;
}

static void test_device_launches(void)
{
	char wanted[128];

	state_page_own->lanes[0].counters[STATE_CONFINED] = 9;
	ask("");
	tap_ok(strstr(row_of("device-launches"), "norunningprocess"),
	       "no launches of such kernels: none is named: %s", row_of("device-launches"));
	ask("--json");
	tap_ok(strstr(row_of("\"device_launches\""), "\"device_launches\":[]"),
	       "JSON: none is named");
	state_page_own->lanes[0].counters[STATE_DEVICE_LAUNCHES] = 7;
	snprintf(state_page_own->header.name, sizeof(state_page_own->header.name), "sorter");
	ask("");
	snprintf(wanted, sizeof(wanted), "kernelsthatlaunchotherkernels:%dsorter(7launches)",
		 getpid());
	tap_ok(strstr(row_of("device-launches"), wanted), "such launches: the process is named: %s",
	       row_of("device-launches"));
	tap_ok(strstr(own_row(), "9 launches, 9 confined") &&
		       strstr(own_row(), ", 7 can launch from the GPU"),
	       "its row has their number, which is none of its launches: %s", own_row());
	tap_ok(!doctor_status, "it is no failure");
	ask("--json");
	snprintf(wanted, sizeof(wanted), "{\"pid\":%d,\"name\":\"sorter\",\"device_launches\":7}",
		 getpid());
	tap_ok(strstr(row_of("\"device_launches\""), wanted), "JSON: the process and the number");
	state_page_own->header.name[0] = 0;
	state_page_own->lanes[0].counters[STATE_DEVICE_LAUNCHES] = 0;
	state_page_own->lanes[0].counters[STATE_CONFINED] = 0;
}

static struct state_gpu *shown;

static void test_limit(void)
{
	struct gpupart_tpcset limit;
	struct limit_sets before;

	/* The set has GPC 1 of board e and one more TPC. */
	gpupart_tpcset_parse_list(NULL, "0,1,8,16,24,62,65", &limit);
	limit_set_outside(&shown->limit, shown->bit_of_tpc, &limit, &before);
	ask("");
	tap_ok(strstr(own_row(), "on TPCs 0-1,8,16,24,62,65 (GPC 1 and 1 TPC) of 0000:01:00.0"),
	       "a limit has its whole GPCs after it: %s", own_row());
	limit_set_outside(&shown->limit, shown->bit_of_tpc, NULL, &before);
}

int main(void)
{
	static const struct gpupart_gpu_info info = { .pci = "0000:01:00.0" };

	if (state_page_publish(NULL, NULL)) {
		tap_skip("no block of this process can be made below /dev/shm");
		return tap_done();
	}
	shown = state_add_gpu(&info, 0);
	test_foreign_text();
	test_counters();
	test_device_launches();
	test_limit();
	return tap_done();
}
