#!/bin/sh
# SPDX-License-Identifier: MIT
# run --sm-count on a GPU, as TAP: the numbers of SMs that programs see in sets of 33, 16 and 8
# TPCs, with it and without, and their effects; each case is a process. Figures are comments for
# readers. OUT=FOLDER stores the output of the cases; SETS=, CASES= select some of them.
build=${BUILD:-build}
gpupart=$build/bin/gpupart
here=$(dirname "$0")
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT INT TERM
out=${OUT:-$tmp}
mkdir -p "$out"
export XDG_CACHE_HOME="$tmp/cache" GPUPART_LIBRARY="$build/lib/libgpupart.so.0"
unset GPUPART_SET GPUPART_GPU GPUPART_SM_COUNT CUDA_INJECTION64_PATH
if [ ! -e /dev/nvidiactl ]; then
	echo "1..0 # SKIP no NVIDIA driver here"
	exit 77
fi
. "$here/cases.subr"
for tpcs in ${SETS-33 16 8}; do
	for name in ${CASES-driver runtime cooperative barrier told_torch told_triton told_cupy told_jax persistent cublas attention}; do
		for how in "" --sm-count; do
			# Its blocks would wait forever for others that have no room.
			[ "$name$how" != barrier ] || continue
			file=$out/sm-count-$tpcs-$name${how:+-told}.txt
			# shellcheck disable=SC2086 # no word or one
			timeout -k 5 120 "$gpupart" run -n "$tpcs" $how -- \
				python3 "$here/sm_count.py" "$name" >"$file" 2>&1
			took "$tpcs TPCs${how:+, told}, $name" $? "$file"
		done
	done
done
cases_done
