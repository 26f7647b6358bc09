#!/bin/sh
# SPDX-License-Identifier: MIT
# run's report at its end about kernels that can launch others from the GPU, on the simulated GPU,
# and doctor's report while it runs.
. "$(dirname "$0")/tap.subr"

cat >"$tmp/parent.c" <<'END'
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* parent NR WORD [LINE]: NR launches of a module that has WORD in it; 3: -NR loads of it failed. */
int main(int argc, char **argv)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW), *ctx, *module, *function;
	char text[256], line[8];
	int i, err;

#define CALL(name, types, args) ((int (*)types)dlsym(lib, name)) args
	snprintf(text, sizeof(text), ".version 8.0\n.target sm_90\n.address_size 64\n"
		 ".visible .entry parent()\n{ call %s; }\n", argv[2]);
	if (!lib || CALL("cuInit", (unsigned int), (0)) ||
	    CALL("cuCtxCreate_v2", (void **, unsigned int, int), (&ctx, 0, 0)))
		return 1;
	i = atoi(argv[1]);
	do {
		err = CALL("cuModuleLoadData", (void **, const void *), (&module, text));
		if (err)
			printf("load=%d\n", err);
	} while (err && ++i < 0);
	if (err)
		return 3;
	if (CALL("cuModuleGetFunction", (void **, void *, const char *),
		 (&function, module, "parent")))
		return 1;
	for (i = 0; i < atoi(argv[1]); i++)
		if (CALL("cuLaunchKernel", (void *, unsigned int, unsigned int, unsigned int,
			 unsigned int, unsigned int, unsigned int, unsigned int, void *, void **,
			 void **), (function, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL)))
			return 1;
	if (argc > 3) {
		puts("launched");
		fflush(stdout);
		if (!fgets(line, sizeof(line), stdin))
			return 1;
	}
	if (!fork())
		exit(0);
	wait(NULL);
	return 7;
}
END
if ! ${CC:-cc} -o "$tmp/parent" "$tmp/parent.c" -ldl 2>"$tmp/err"; then
	skip "no C compiler"
	tap_done
fi
e="-i tests/data/gh100-h200-e/capture.txt"
said() { grep "launch further kernels from the GPU" "$tmp/err"; }

try run $e -g 0 -- "$tmp/parent" 3 cudaLaunchDeviceV2
is "$status $(wc -l <"$tmp/err")" "7 2" "a program that may launch from the GPU: its status, a line more"
is "$(said)" "gpupart: 3 launches started kernels that can launch further kernels from the GPU: these further kernels are not confined, see gpupart-device-launches(7)" \
	"the line has their number and says where to read on"
try run $e -g 0 -- "$tmp/parent" 3 nothing
is "$status $(wc -l <"$tmp/err")" "7 1" "a program that does not: no line"
try run $e -g 0 -- "$tmp/parent" 0 cudaLaunchDeviceV2
is "$status $(wc -l <"$tmp/err")" "7 1" "one that could and launches nothing: no line"
try run $e -g 0 -- sh -c '"$0" 1 cudaGraphLaunch; "$0" 2 cudaLaunchDevice; "$0" 3 nothing' "$tmp/parent"
is "$(said | sed 's/ launches.*//' | tr '\n' ,)" "gpupart: 1,gpupart: 2," "a line a process"
GPUPART_LOG=$tmp/log
export GPUPART_LOG
try run $e -g 0 -- "$tmp/parent" 3 cudaLaunchDeviceV2
is "$(said) $(grep -c 'launch further kernels from the GPU' "$tmp/log") $(wc -l <"$tmp/log")" " 1 2" \
	"with GPUPART_LOG: it is there, and not on stderr"
unset GPUPART_LOG
GPUPART_DISABLE=1
export GPUPART_DISABLE
try run $e -g 0 -- "$tmp/parent" 3 cudaLaunchDeviceV2
is "$status$(said)" 7 "GPUPART_DISABLE=1: no message"
unset GPUPART_DISABLE

# --no-device-launch.
refused() { grep refused "$tmp/err"; }
why="kernels of such a module can launch further kernels from the GPU: see gpupart-device-launches(7)"
try run $e -g 0 --no-device-launch -- "$tmp/parent" 3 cudaLaunchDeviceV2
is "$status $(cat "$tmp/out")" "3 load=800" "--no-device-launch: such a module is not loaded, the call says that it is not permitted"
is "$(refused) $(wc -l <"$tmp/err")" "gpupart run: 1 module with kernel parent was refused (simulated): $why 2" \
	"run says which, and nothing else"
try run $e -g 0 --no-device-launch -- "$tmp/parent" 3 nothing
is "$status $(refused)$(wc -l <"$tmp/err")" "7 1" "a program without such a module: as before"
try run $e -g 0 --no-device-launch -- sh -c '"$0" 1 cudaGraphLaunch; "$0" 2 cudaLaunchDevice; "$0" 3 nothing' "$tmp/parent"
is "$status $(refused | cut -d : -f 2)" "7  2 modules with kernel parent were refused (simulated)" "of several processes: one line"
try run $e -g 0 --no-device-launch --strict -- "$tmp/parent" 3 cudaLaunchDeviceV2
is "$status $(refused | cut -d : -f 2)" "3  1 module with kernel parent was refused (simulated)" \
	"--strict: nothing ran outside, the program's status"
try run $e -g 0 --no-device-launch --exec -- "$tmp/parent" 3 cudaLaunchDeviceV2
is "$status $(cat "$tmp/out") $(refused)" "3 load=800 gpupart: refused 1 module with kernels that can launch other kernels (simulated)" \
	"--exec: refused, and the process says it"
is "$(grep -c outside "$tmp/err")" 0 "which is no launch outside of the set"
try run $e -g 0 --no-device-launch -- "$gpupart" run -g 0 -- "$tmp/parent" 3 cudaLaunchDeviceV2
is "$status $(refused | wc -l)" "3 1" "a run inside such a run refuses them"
try run $e -g 0 --mem 1G --no-device-launch -- "$tmp/parent" -8 'cudaLaunchDeviceV2; .global .align 4 .b8 room[300000000]'
is "$status $(uniq -c "$tmp/out" | tr -s ' ') $(refused | cut -d : -f 2)" "3  8 load=800  8 modules with kernel parent were refused (simulated)" \
	"a quota gets their memory back"
try run $e -g 0 --profile --no-device-launch -- "$tmp/parent" 1 cudaLaunchDeviceV2
is "$status $(refused | wc -l)" "3 1" "--profile beside it"
GPUPART_NO_DEVICE_LAUNCH=1
export GPUPART_NO_DEVICE_LAUNCH
try run $e -g 0 -- "$tmp/parent" 3 cudaLaunchDeviceV2
is "$status $(refused | wc -l)" "3 1" "GPUPART_NO_DEVICE_LAUNCH=1: the same"
try run $e -g 0 -- env GPUPART_NO_DEVICE_LAUNCH=0 "$tmp/parent" 3 cudaLaunchDeviceV2
is "$status $(refused | wc -l)" "7 0" "GPUPART_NO_DEVICE_LAUNCH=0 inside: loaded"
unset GPUPART_NO_DEVICE_LAUNCH
GPUPART_SIM_FAULTS=no-stream-events
export GPUPART_SIM_FAULTS
try run $e -g 0 --no-device-launch -- "$tmp/parent" 3 nothing
is "$status" 125 "a driver that does not tell of modules: nothing is started"
has "$err" "this driver does not report modules" "and the reason is reported"
unset GPUPART_SIM_FAULTS

# The commands for a test on a GPU.
for lazily in "" lazy-libraries; do
	GPUPART_SIM_FAULTS=$lazily GPUPART_RUN_ARGS=$e tests/gpu/device_launch.sh >"$tmp/out" 2>"$tmp/err"
	is "$? $(grep -c "^not ok" "$tmp/out")" "0 0" "tests/gpu/device_launch.sh, $(wc -l <"$tmp/out") lines${lazily:+, $lazily}"
done

# A process in which it is not possible.
try run $e -g 0 --no-device-launch -- env GPUPART_SIM_FAULTS=no-stream-events "$tmp/parent" 1 nothing
is "$status" 7 "the driver does not tell a process of modules: it runs"
has "$err" "was never confined: GPUPART_NO_DEVICE_LAUNCH=1: this driver does not report modules" "and is reported"
try run $e -g 0 --no-device-launch --strict -- env GPUPART_SIM_FAULTS=no-stream-events "$tmp/parent" 1 nothing
has "$err" "could not use CUDA (simulated): GPUPART_NO_DEVICE_LAUNCH=1" "--strict: it gets no CUDA"

# doctor, while it runs.
mkfifo "$tmp/in" "$tmp/out.parent"
"$gpupart" run --exec $e -t 0-7 --name sorter -- "$tmp/parent" 5 cudaLaunchDeviceV2 wait \
	<"$tmp/in" >"$tmp/out.parent" 2>/dev/null &
pid=$!
exec 8>"$tmp/in" 9<"$tmp/out.parent"
read -r line <&9
is "$line" launched "a program that stays"
try doctor --no-launch $e
has "$(tr -s '\n ' ' ' <"$tmp/out")" "$pid sorter on TPCs 0-7 of 0000:01:00.0: 5 launches, 5 confined, 0 widened, 0 not confined, 0 on other GPUs, 5 can launch from the GPU" \
	"doctor: its row"
has "$(sed -n '/^note  device-launches/,$p' "$tmp/out" | tr -s '\n ' ' ')" "launch other kernels: $pid sorter (5 launches)" \
	"doctor: the row about such launches names it"
try doctor --no-launch $e --json
if jq --version >/dev/null 2>&1; then
	is "$(jq -c ".device_launches[] | select(.pid == $pid)" "$tmp/out")" \
		"{\"pid\":$pid,\"name\":\"sorter\",\"device_launches\":5}" "doctor --json: the same"
else
	skip "no jq"
fi
echo >&8
exec 8>&- 9<&-
wait
try verify --quick -i sample:h200 --json
if jq --version >/dev/null 2>&1; then
	is "$(jq .counters.device_launches "$tmp/out")" 0 "verify --json: the counter"
else
	skip "no jq"
fi
tap_done
