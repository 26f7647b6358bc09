#!/bin/sh
# SPDX-License-Identifier: MIT
# run --sm-count: the driver reports the SMs of its set to a program.
. "$(dirname "$0")/tap.subr"

cat >"$tmp/ask.c" <<'END'
#include <dlfcn.h>
#include <stdio.h>

#define CALL(name, types, args) ((int (*)types)dlsym(lib, name)) args
#define U unsigned int

static const char ptx[] = ".version 4.2\n.target sm_30\n.address_size 64\n"
	".visible .entry gpupart_census(.param .u64 out, .param .u32 spin_ns)\n{ ret; }\n";

/* Prints the values reported for each device, and for the grid that fills the first. */
int main(int argc, char **argv)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW), *ctx, *module, *function;
	int count, sms, grid, block, result = 0;
	unsigned long long out;
	U spin = 1000;
	void *params[] = { &out, &spin };

	(void)argv;
	if (!lib || CALL("cuInit", (U), (0)) || CALL("cuDeviceGetCount", (int *), (&count)))
		return 1;
	for (int i = 0; i < count; i++) {
		if (CALL("cuDeviceGetAttribute", (int *, int, int), (&sms, 16, i)))
			return 1;
		printf("%d ", sms);
	}
	if (CALL("cuCtxCreate_v2", (void **, U, int), (&ctx, 0, 0)) ||
	    CALL("cuModuleLoadData", (void **, const void *), (&module, ptx)) ||
	    CALL("cuModuleGetFunction", (void **, void *, const char *),
		 (&function, module, "gpupart_census")) ||
	    CALL("cuMemAlloc_v2", (unsigned long long *, size_t), (&out, 24 * 4096)) ||
	    CALL("cuOccupancyMaxPotentialBlockSize", (int *, int *, void *, void *, size_t, int),
		 (&grid, &block, function, NULL, 0, 0)))
		return 1;
	printf("%d\n", grid);
	/* A cooperative grid of that size. */
	if (argc > 1)
		result = CALL("cuLaunchCooperativeKernel",
			      (void *, U, U, U, U, U, U, U, void *, void **),
			      (function, grid, 1, 1, block, 1, 1, 0, NULL, params)) ||
			 CALL("cuStreamSynchronize", (void *), (NULL));
	return result;
}
END
if ! ${CC:-cc} -o "$tmp/ask" "$tmp/ask.c" -ldl 2>"$tmp/err"; then
	skip "no C compiler"
	tap_done
fi
e="-i tests/data/gh100-h200-e/capture.txt"
try run $e -t 0-7 -- "$tmp/ask"
is "$status $out" "0 132 264" "without it: the whole GPU"
try run $e -t 0-7 --sm-count -- "$tmp/ask"
is "$status $out" "0 16 32" "--sm-count: the set's SMs, and a grid for them"
is "$(grep -vc "have room for clusters of" "$tmp/err")" 1 "there is no message about it"
try run $e -g 2 --sm-count -- "$tmp/ask"
is "$status $out" "0 16 32" "a GPC"
try run $e -u 0 --sm-count -- "$tmp/ask"
is "$status $out" "0 66 132" "a uGPU"
try run $e -t 0-65 --sm-count -- "$tmp/ask"
is "$status $out" "0 132 264" "all of it"

# The environment can request it too; a run inside inherits it.
GPUPART_SM_COUNT=1
export GPUPART_SM_COUNT
try run $e -t 0-7 -- "$tmp/ask"
is "$status $out" "0 16 32" "GPUPART_SM_COUNT=1 in the environment of run"
GPUPART_SM_COUNT=0
try run $e -t 0-7 -- "$tmp/ask"
is "$status $out" "0 132 264" "GPUPART_SM_COUNT=0 is no such wish"
unset GPUPART_SM_COUNT
try run $e -t 0-7 --sm-count -- "$gpupart" run -t 2,3 -- "$tmp/ask"
is "$status $out" "0 4 8" "a run inside a run with --sm-count: its set's"
try run $e -t 0-7 --sm-count -- env GPUPART_SM_COUNT=0 "$gpupart" run -t 2,3 -- "$tmp/ask"
is "$status $out" "0 132 264" "unless it is taken away"
try run $e -t 0-7 --sm-count -- "$gpupart" run -t 2,3 --sm-count -- "$tmp/ask"
is "$status $out" "0 4 8" "both: the inner set's"
GPUPART_DISABLE=1
export GPUPART_DISABLE
try run $e -t 0-7 --sm-count -- "$tmp/ask"
is "$status $out" "0 132 264" "GPUPART_DISABLE=1: the truth"
unset GPUPART_DISABLE

try run $e -t 0-7 --sm-count -- "$tmp/ask" cooperative
is "$status $out" "0 16 32" "a cooperative grid of that size runs"
try run $e -t 0-7 --sm-count=1 -- "$tmp/ask"
is "$status" 125 "it takes no value"
tap_done
