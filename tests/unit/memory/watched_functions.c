// SPDX-License-Identifier: MIT
/*
 * Tests the functions that count memory. If CUPTI's header is installed, compares the numbers of
 * the functions with the header.
 */
#include <stdio.h>
#include <string.h>
#include "lib/memory/watched_functions.h"
#include "tests/tap.h"

#define HEADER "/usr/local/cuda/include/cupti_driver_cbid.h"

static const struct memory_call *find(int cbid)
{
	for (const struct memory_call *call = memory_calls; call->fn.cbid; call++)
		if (call->fn.cbid == cbid)
			return call;
	return NULL;
}

/*
 * These functions need a watch. Otherwise the library would wait for the GPU inside a capture,
 * and the wait would end the capture.
 */
static void test_captures(void)
{
	static const int begins[] = { 495, 496, 539, 540, 720, 721 }, ends[] = { 497, 498 };

	for (unsigned int i = 0; i < sizeof(begins) / sizeof(begins[0]); i++)
		tap_ok(find(begins[i]) && find(begins[i])->fn.kind == MEMORY_CAPTURE_BEGINS &&
		       !strncmp(driver_function_name(begins[i]), "cuStreamBeginCapture", 20),
		       "%d begins a capture", begins[i]);
	for (unsigned int i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		tap_ok(find(ends[i]) && find(ends[i])->fn.kind == MEMORY_CAPTURE_ENDS,
		       "%d ends one", ends[i]);
}

/*
 * Tests the stream of a stream-ordered allocation. If the stream is 0, the "ptsz" forms use the
 * per-thread stream.
 */
static void test_streams(void)
{
	static const struct {
		int cbid, at;
		void *zero;
	} calls[] = {
		{ 598, 2, NULL }, { 599, 2, CUDA_STREAM_PER_THREAD },
		{ 611, 3, NULL }, { 612, 3, CUDA_STREAM_PER_THREAD },
	};
	uint64_t words[4] = { 7, 7, 7, 7 };

	for (unsigned int i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		bool named = memory_calls_stream(find(calls[i].cbid), words) == (void *)7;

		words[calls[i].at] = 0;
		tap_ok(named && memory_calls_stream(find(calls[i].cbid), words) == calls[i].zero,
		       "the stream of %s", driver_function_name(calls[i].cbid));
		words[calls[i].at] = 7;
	}
}

/* "CUPTI_DRIVER_TRACE_CBID_cuMemAlloc_v2 = 243," */
static void test_header(FILE *header)
{
	char line[256], name[128];
	int cbid, wrong = 0, found = 0;

	while (fgets(line, sizeof(line), header)) {
		if (sscanf(line, " CUPTI_DRIVER_TRACE_CBID_%127[^ =] = %d", name, &cbid) != 2)
			continue;
		if (find(cbid)) {
			found++;
			wrong += !!strcmp(driver_function_name(cbid), name);
		} else if (!strncmp(name, "cuStreamBeginCapture", 20)) {
			wrong++;
		}
	}
	tap_ok(found > 70 && !wrong, "%d numbers are those of CUPTI's header, %d are not", found,
	       wrong);
}

int main(void)
{
	FILE *header = fopen(HEADER, "r");
	unsigned int n, twice = 0;

	for (n = 0; memory_calls[n].fn.cbid; n++)
		twice += find(memory_calls[n].fn.cbid) != &memory_calls[n];
	tap_ok(n > 70 && !twice, "%u functions, none twice", n);
	test_captures();
	test_streams();
	if (header) {
		test_header(header);
		fclose(header);
	}
	return tap_done();
}
