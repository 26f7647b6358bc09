#!/bin/sh
# SPDX-License-Identifier: MIT
# Ways to open the driver under `gpupart run`, as TAP: the driver's slot for injected libraries
# reaches each process, and each of its launches is confined. Nothing is preloaded. OUT=FOLDER
# stores the output of the cases; CASES= selects some of them.
build=${BUILD:-build}
gpupart=$build/bin/gpupart
here=$(dirname "$0")
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT INT TERM
out=${OUT:-$tmp}
mkdir -p "$out"
export XDG_CACHE_HOME="$tmp/cache" GPUPART_LIBRARY="$build/lib/libgpupart.so.0" XLA_PYTHON_CLIENT_PREALLOCATE=false
export NCCL_NVLS_ENABLE=0 TORCH_SYMM_MEM_DISABLE_MULTICAST=1 NVSHMEM_DISABLE_NVLS=1
if [ ! -e /dev/nvidiactl ]; then
	echo "1..0 # SKIP no NVIDIA driver here"
	exit 77
fi
nr=0 failed=0
result() {
	nr=$((nr + 1))
	case $1 in
	0) echo "ok $nr - $2" ;;
	skip) echo "ok $nr # SKIP $2" ;;
	*) failed=1; echo "not ok $nr - $2" ;;
	esac
}
for name in ${CASES-opened proc_address torch cupy jax nccl}; do
	timeout 150 "$gpupart" run -g 1 -- python3 "$here/interception.py" "$name" >"$out/way-$name.txt" 2>&1
	status=$?
	line=$(grep -E '^(ok|not ok|skip) - ' "$out/way-$name.txt" | tail -n 1)
	case $line in
	"skip - "*) result skip "$name: ${line#skip - }" ;;
	*) result $status "$name: ${line#*ok - }" ;;
	esac
	[ $status -eq 0 ] || tail -n 15 "$out/way-$name.txt" | sed 's/^/# /'
done
# The runtime inside the program: there is no libcudart.so that a preload could replace.
runtime=$build/tests/gpu-runtime
[ -x "$runtime" ] || ! command -v nvcc >/dev/null ||
	nvcc -arch=native -cudart static -w -o "$runtime" "$here/runtime.cu" 2>"$tmp/err"
if [ -x "$runtime" ]; then
	all=$("$runtime")
	part=$("$gpupart" run -g 1 -- "$runtime" 2>&1)
	inside=$("$gpupart" topology --json | python3 -c '
import json, sys
print(2 * len([t for t in json.load(sys.stdin)["tpcs"] if t["gpc"] == 1]), "SMs")')
	[ "$part" = "$inside" ] && [ "$all" != "$part" ]
	result $? "a program with CUDA's runtime linked statically: $part in GPC 1 ($inside), $all without"
else
	result skip "a program with CUDA's runtime linked statically: no nvcc here"
fi
# A process that never calls cuInit loads no library of gpupart.
maps=$("$gpupart" run -g 1 -- cat /proc/self/maps)
case $maps in
*gpupart*) result 1 "a program that never calls cuInit has nothing of ours in it" ;;
*) result 0 "a program that never calls cuInit has nothing of ours in it" ;;
esac
# A process that calls cuInit has none before that call: nothing is preloaded.
# shellcheck disable=SC2016 # for the inner shell
preload=$("$gpupart" run -g 1 -- sh -c 'echo "$LD_PRELOAD"')
[ -z "$preload" ]
result $? "LD_PRELOAD is left alone: '$preload'"
echo "1..$nr"
exit $failed
