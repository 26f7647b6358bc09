#!/bin/sh
# SPDX-License-Identifier: MIT
# gpupart run on several simulated GPUs: each GPU in --gpu has a set, the others are free and
# named, set changes all of them, runs inside runs, invalid lists.
. "$(dirname "$0")/tap.subr"
GPUPART_SIM=$PWD/tests/data/gh100-h200-b/capture.txt:$PWD/tests/data/gh100-h200-e/capture.txt
LD_LIBRARY_PATH=$BUILD/lib/gpupart/sim
export GPUPART_SIM LD_LIBRARY_PATH
name=gpus-test-$$
a=0000:01:00.0 b=0000:02:00.0

# A program that does not use gpupart: at its start and for each line on stdin it prints, in one
# line, the SMs of a launch on each GPU.
cat >"$tmp/gpus.c" <<'END'
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#define NR_BLOCKS 4096
#define RECORD_WORDS 6
#define CALL(name, types, args) ((int (*)types)dlsym(lib, name)) args

static unsigned int records[NR_BLOCKS * RECORD_WORDS];

static int launch(void *lib, void *function, unsigned long long out)
{
	unsigned int spin_ns = 200000;
	void *params[] = { &out, &spin_ns };
	unsigned char seen[1024] = { 0 };

	if (CALL("cuLaunchKernel", (void *, unsigned int, unsigned int, unsigned int,
		 unsigned int, unsigned int, unsigned int, unsigned int, void *, void **,
		 void **), (function, NR_BLOCKS, 1, 1, 32, 1, 1, 0, NULL, params, NULL)) ||
	    CALL("cuCtxSynchronize", (void), ()) ||
	    CALL("cuMemcpyDtoH_v2", (void *, unsigned long long, size_t),
		 (records, out, sizeof(records))))
		return 1;
	for (int i = 0; i < NR_BLOCKS; i++)
		if (records[i * RECORD_WORDS] < sizeof(seen))
			seen[records[i * RECORD_WORDS]] = 1;
	for (unsigned int sm = 0; sm < sizeof(seen); sm++)
		if (seen[sm])
			printf("%u ", sm);
	return 0;
}

int main(int argc, char **argv)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW), *ctx[8], *module, *function[8];
	unsigned long long out[8];
	static char ptx[1 << 16];
	FILE *file = argc > 1 ? fopen(argv[1], "r") : NULL;
	char line[8];
	int nr, i;

	if (!lib || !file || !fread(ptx, 1, sizeof(ptx) - 1, file) ||
	    CALL("cuInit", (unsigned int), (0)) || CALL("cuDeviceGetCount", (int *), (&nr)))
		return 100;
	for (i = 0; i < nr && i < 8; i++)
		if (CALL("cuCtxCreate_v2", (void **, unsigned int, int), (&ctx[i], 0, i)) ||
		    CALL("cuModuleLoadData", (void **, const void *), (&module, ptx)) ||
		    CALL("cuModuleGetFunction", (void **, void *, const char *),
			 (&function[i], module, "gpupart_census")) ||
		    CALL("cuMemAlloc_v2", (unsigned long long *, size_t),
			 (&out[i], sizeof(records))))
			return 101;
	do {
		for (i = 0; i < nr && i < 8; i++) {
			if (CALL("cuCtxSetCurrent", (void *), (ctx[i])) ||
			    launch(lib, function[i], out[i]))
				return 102;
			printf("%s", i + 1 < nr ? "| " : "\n");
		}
		fflush(stdout);
	} while (fgets(line, sizeof(line), stdin));
	return 0;
}
END
if ! ${CC:-cc} -o "$tmp/gpus" "$tmp/gpus.c" -ldl 2>"$tmp/err"; then
	skip "no compiler for the program: $(head -1 "$tmp/err")"
	tap_done
	exit
fi
ptx=lib/confine/probe.ptx
sms() { "$tmp/gpus" $ptx <"/dev/null" 2>"$tmp/err.sms"; }
# one GPU SET: the SMs of SET, from a run on that GPU only.
one() {
	"$gpupart" run --gpu "$1" $2 -- "$tmp/gpus" $ptx </dev/null 2>/dev/null | cut -d'|' -f$(($1 + 1)) | xargs
}
# both SET: the SMs of SET on each GPU, as the program prints them.
both() { echo "$(one 0 "$1") | $(one 1 "${2-$1}")"; }
said() { xargs <"$tmp/out"; }
run() { try run "$@" -- "$tmp/gpus" $ptx </dev/null; }

free="$(sms | xargs)"
run --gpu 0 -g 0
wanted="$(one 0 "-g 0") | $(echo "$free" | cut -d'|' -f2 | xargs)"
is "$status $(said)" "0 $wanted" "--gpu 0: the other GPU is free"
has "$(cat "$tmp/err")" "GPU $b (simulated) is not named by --gpu: launches on this GPU are not confined" \
	"and run says so"
has "$(cat "$tmp/err")" "it ran on a GPU without a set" "and counts launches there at the end"
run -g 0
is "$(grep -c 'not named' "$tmp/err")" 0 "without --gpu there is no message about it"
GPUPART_LOG=$tmp/log
export GPUPART_LOG
run --gpu 0,1 -g 0,1
unset GPUPART_LOG
is "$status $(said)" "0 $(both "-g 0,1")" "--gpu 0,1: each is confined to its own GPCs 0 and 1"
is "$(grep -c "confined to TPCs .* of $a" "$tmp/log") $(grep -c "confined to TPCs .* of $b" "$tmp/log")" "1 1" \
	"the log has a line for each"
is "$(grep -c 'not named\|outside' "$tmp/err") $(grep -c simulated "$tmp/err")" "0 2" "nothing is left out, each is simulated"
run --gpu all -t 3,7
is "$status $(said)" "0 $(both "-t 3,7")" "--gpu all"
run --gpu $b,0 -n 8
is "$status $(said)" "0 $(both "-n 8")" "-n 8: of each, in any order, by address"
run --gpu 0,1 --strict -t 0-3
is "$status $(said)" "0 $(both "-t 0-3")" "--strict"
env CUDA_VISIBLE_DEVICES=0 "$gpupart" run --gpu 0 -t 3 -- true 2>"$tmp/err"
is "$? $(grep -c 'not named' "$tmp/err")" "0 0" "a GPU that the program cannot see is not spoken of"
try run --gpu 0,1 -g 0 --name "$name" --mem 1G -- env
is "$(sed -n 's/^GPUPART_GPU=//p' "$tmp/out")" "$a,$b" "GPUPART_GPU has both"
is "$(sed -n 's/^GPUPART_SET=//p' "$tmp/out" | tr ';' '\n' | grep -c .)" 2 "GPUPART_SET has a set for each"

# An older library takes the list as the name of a GPU; this one must treat an invalid name the
# same way.
GPUPART_GPU=$a,nosuch GPUPART_SET="0;0" CUDA_INJECTION64_PATH=$BUILD/lib/gpupart/libgpupart-inject.so "$tmp/gpus" $ptx \
	</dev/null >"$tmp/out" 2>"$tmp/err"
has "$(cat "$tmp/err")" "not confined: nosuch is not a simulated GPU" "a word that names no GPU is reported"
for sets in "0;" "0" ";"; do
	GPUPART_GPU=$a,$b GPUPART_SET=$sets CUDA_INJECTION64_PATH=$BUILD/lib/gpupart/libgpupart-inject.so "$tmp/gpus" $ptx \
		</dev/null >"$tmp/out" 2>"$tmp/err"
	case $sets in
	0) is "$(said)" "$(both "-t 0")" "GPUPART_SET=$sets: one set is for each GPU" ;;
	*) has "$(cat "$tmp/err")" "not confined: GPUPART_SET=$sets" "GPUPART_SET=$sets: a missing set is reported" ;;
	esac
done

for bad in 0,2 0,,1 "," "0," nosuch,0; do
	run --gpu "$bad" -t 0
	is "$status" 125 "--gpu $bad is refused"
done
run --gpu 0,1 -t 66
is "$status" 125 "a TPC that is not there"
run --gpu 1,$b -t 0
has "$(cat "$tmp/err")" "GPU $b is given twice" "a GPU that is given twice"

# Runs inside runs.
try run --gpu 0,1 -t 0-7 -- "$gpupart" run -t 2,3 -- "$tmp/gpus" $ptx </dev/null
is "$status $(said)" "0 $(both "-t 2,3")" "a run inside: on both, without --gpu"
try run --gpu 0,1 -t 0-7 -- "$gpupart" run --gpu 0 -t 2 -- true
is "$status" 125 "it cannot leave one out"
has "$(cat "$tmp/err")" "a run inside it must use all of these GPUs" "and says so"
try run --gpu 0,1 -t 0-7 -- "$gpupart" run -t 8 -- true
has "$(cat "$tmp/err")" "TPCs 8 are outside the limit 0-7" "it stays inside the set"
try run --gpu 0 -t 0-7 -- "$gpupart" run --gpu 0,1 -t 2 -- true
has "$(cat "$tmp/err")" "cannot use GPU $b instead" "inside a run on one GPU there is no other"
try run --exec --gpu 0,1 -t 0-7 -- "$gpupart" run --exec --gpu 1,0 -t 2,3 -- "$tmp/gpus" $ptx </dev/null
is "$status $(said)" "0 $(both "-t 2,3")" "a run that becomes a run"

# set NAME, while it runs and for later processes.
mkfifo "$tmp/in"
"$gpupart" run --gpu 0,1 -g 0 --name "$name" -- sh -c "'$tmp/gpus' $ptx; exec '$tmp/gpus' $ptx </dev/null" \
	<"$tmp/in" >"$tmp/lines" 2>"$tmp/err" &
pid=$!
exec 9>"$tmp/in"
lines() {
	for _ in $(seq 600); do
		[ "$(grep -c . "$tmp/lines")" -ge "$1" ] && return
		kill -0 $pid 2>/dev/null || return
		sleep 0.1
	done
}
lines 1
is "$(sed -n 1p "$tmp/lines" | xargs)" "$(both "-g 0")" "as it began"
try set "$name" -g 1
is "$status $(grep -c "^job .* new set" "$tmp/out")" "0 2" "set NAME: both GPUs' sets"
is "$(grep -c "^job .* new set on $a: .*" "$tmp/out") $(grep -c "^job .* current set on $b: .*" "$tmp/out")" "1 1" \
	"each line names its GPU"
try set "$name"
is "$status $(sed 's/^pid [0-9]*/pid/;s/: .*//' "$tmp/out" | sort | paste -sd,)" \
	"0 job $name's current set on $a,job $name's current set on $b,pid's current set on $a,pid's current set on $b" \
	"the sets there are: of the job and of its process on each GPU"
try set "$name" --gpu $b
is "$status $(grep -c "^job .* current set: " "$tmp/out")" "0 1" "of one GPU none is named"
echo >&9
lines 2
is "$(sed -n 2p "$tmp/lines" | xargs)" "$(both "-g 1")" "the program obeys on both"
try set "$name" --gpu $b -t 5
is "$status $(grep -c '^job .* new set: 5 ' "$tmp/out") $(grep -c '^pid .* new set: 5 ' "$tmp/out")" "0 1 1" \
	"set NAME --gpu: one of them, and its process there"
echo >&9
lines 3
is "$(sed -n 3p "$tmp/lines" | xargs)" "$(both "-g 1" "-t 5")" "it obeys on that one"
try run --gpu 1 -n 64 -- true
has "$(cat "$tmp/err")" "TPCs 0-4,6-64 " "-n knows what runs on the second GPU"
exec 9>&-
wait $pid
is "$(sed -n 4p "$tmp/lines" | xargs)" "$(both "-g 1" "-t 5")" "what starts later has the same"
try set "$name" -g 0
is "$status" 2 "the job ended with its program"
tap_done
