#!/bin/sh
# SPDX-License-Identifier: MIT
# run --late: a program makes its green contexts first, and is confined then.
. "$(dirname "$0")/tap.subr"

cat >"$tmp/green.c" <<'END'
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CALL(name, types, args) ((int (*)types)dlsym(lib, name)) args
/* green MS: a green context, MS milliseconds, another one: prints what became of them. */
int main(int argc, char **argv)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW), *ctx, *green;
	int first, second;

	if (argc < 2 || !lib || CALL("cuInit", (unsigned int), (0)) ||
	    CALL("cuDevicePrimaryCtxRetain", (void **, int), (&ctx, 0)))
		return 1;
	first = CALL("cuGreenCtxCreate", (void **, void *, int, unsigned int),
		     (&green, NULL, 0, 1));
	usleep(atoi(argv[1]) * 1000);
	second = CALL("cuGreenCtxCreate", (void **, void *, int, unsigned int),
		      (&green, NULL, 0, 1));
	printf("%d %d\n", first, second);
	return 0;
}
END
if ! ${CC:-cc} -o "$tmp/green" "$tmp/green.c" -ldl 2>"$tmp/err"; then
	skip "no C compiler"
	tap_done
fi
e="-i tests/data/gh100-h200-e/capture.txt"
try run $e -t 0-7 -- "$tmp/green" 0
is "$status $(cat "$tmp/out")" "0 801 801" "confined at once: green contexts are refused"
try run $e -t 0-7 --late 0.5 -- "$tmp/green" 4000
is "$status $(cat "$tmp/out")" "0 0 801" "--late: made before, refused once it is confined"
grep -q "launches in its first 0.5 s is not confined" "$tmp/err"
ok $? "run says so"
try run $e -t 0-7 --late 600 -- "$tmp/green" 0
is "$status $(cat "$tmp/out")" "0 0 0" "a program that ends before is left alone"
for bad in 0 -1 3601 x 1x '' nan; do
	try run $e -t 0-7 --late "$bad" -- "$tmp/green" 0
	is "$status $(grep -c -- "--late '$bad': wants seconds" "$tmp/err")" "125 1" "--late '$bad' is refused"
done
log=$tmp/log
for bad in oops 0x10; do
	rm -f "$log"
	GPUPART_LOG=$log GPUPART_LATE=$bad GPUPART_SET=0-7 GPUPART_SIM=tests/data/gh100-h200-e/capture.txt \
		LD_LIBRARY_PATH="$BUILD/lib/gpupart/sim" CUDA_INJECTION64_PATH="$BUILD/lib/gpupart/libgpupart-inject.so" \
		"$tmp/green" 0 >"$tmp/out" 2>"$tmp/err"
	grep -q "GPUPART_LATE=$bad: 0 to 3600 seconds are wanted" "$log"
	ok $? "GPUPART_LATE=$bad is said, and confines at once: $(cat "$tmp/out")"
done
tap_done
