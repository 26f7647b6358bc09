#!/bin/sh
# SPDX-License-Identifier: MIT
# Green contexts under gpupart run and without it, as TAP: tests/gpu/green.c in several limits,
# alone, at the same time as a second program under MPS, and those of PyTorch and cuda-bindings,
# whose own tests are run by upstream.sh. About a minute. OUT=FOLDER stores the transcripts;
# GPUPART_GREEN_ARGS="-i CAPTURE" runs it on the simulated GPU.
root=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
cd "$root" || exit 1
build=${BUILD:-$root/build}
gpupart=$build/bin/gpupart
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT INT TERM
out=${OUT:-$tmp}
mkdir -p "$out"
export XDG_CACHE_HOME="$tmp/cache"
unset GPUPART_SET GPUPART_GPU CUDA_INJECTION64_PATH
if [ ! -e /dev/nvidiactl ] && [ -z "$GPUPART_GREEN_ARGS" ]; then
	echo "1..0 # SKIP no NVIDIA driver here"
	exit 77
fi
. tests/gpu/cases.subr
# shellcheck disable=SC2086 # words
run() { timeout -k 5 120 "$gpupart" run $GPUPART_GREEN_ARGS "$@"; }

if [ -z "$GPUPART_GREEN_ARGS" ]; then
	timeout -k 5 120 "$build/tests/gpu-green" all >"$out/green-alone.txt" 2>&1
	took "without gpupart" $? "$out/green-alone.txt"
fi
for set in 0-65 0-32 0-15 3,40 17 33-65 60-65; do
	run -t "$set" -- "$build/tests/gpu-green" "$([ "$set" = 0-65 ] && echo all || echo "$set")" >"$out/green-$set.txt" 2>&1
	took "-t $set" $? "$out/green-$set.txt"
done
for set in 0-32 0-15; do
	run -t "$set" --sm-count -- "$build/tests/gpu-green" "$set" told >"$out/green-told-$set.txt" 2>&1
	took "--sm-count, -t $set" $? "$out/green-told-$set.txt"
done
run -t 0-32 -- "$build/tests/gpu-green" 0-32 apart 0.2 >"$out/green-alone-apart.txt" 2>&1
took "apart, -t 0-32" $? "$out/green-alone-apart.txt"
if [ -z "$GPUPART_GREEN_ARGS" ] && command -v nvidia-cuda-mps-control >/dev/null; then
	run --mps -t 33-65 -- "$build/tests/gpu-green" 33-65 count >"$out/green-mps-other.txt" 2>&1 &
	other=$!
	run --mps -t 0-32 -- "$build/tests/gpu-green" 0-32 count >"$out/green-mps.txt" 2>&1
	took "MPS, -t 0-32" $? "$out/green-mps.txt"
	wait $other
	took "MPS, -t 33-65" $? "$out/green-mps-other.txt"
	run --mps -t 33-65 -- "$build/tests/gpu-green" 33-65 apart 2 >"$out/green-apart-other.txt" 2>&1 &
	other=$!
	run --mps -t 0-32 -- "$build/tests/gpu-green" 0-32 apart 2 >"$out/green-apart.txt" 2>&1
	took "MPS, apart, -t 0-32" $? "$out/green-apart.txt"
	wait $other
	took "MPS, apart, -t 33-65" $? "$out/green-apart-other.txt"
	at_once=$(awk '!/^all from/ { next } FNR == NR { from[++n] = $3; to[n] = $5; next }
		{ for (i = 1; i <= n; i++) if (from[i] < $5 && $3 < to[i]) { k++; break } }
		END { print k + 0 }' "$out/green-apart.txt" "$out/green-apart-other.txt")
	[ "$at_once" -gt 0 ]
	ok $? "MPS: all contexts of both programs held their SMs at one time, $at_once times"
else
	skip "MPS: not here"
fi
if [ -z "$GPUPART_GREEN_ARGS" ] && python3 -c 'import torch.cuda.green_contexts, triton' 2>/dev/null; then
	for set in 0-65 0-32 0-15; do
		run -t "$set" -- python3 tests/gpu/green.py "$set" >"$out/green-torch-$set.txt" 2>&1
		took "PyTorch, -t $set" $? "$out/green-torch-$set.txt"
	done
else
	skip "PyTorch with green contexts and Triton: not here"
fi
if [ -z "$GPUPART_GREEN_ARGS" ] && python3 -c 'import cuda.bindings.driver' 2>/dev/null; then
	run -t 0-15 -- python3 tests/gpu/green_bindings.py >"$out/green-bindings.txt" 2>&1
	took "cuda.bindings, -t 0-15" $? "$out/green-bindings.txt"
else
	skip "cuda.bindings: not here"
fi
cases_done
