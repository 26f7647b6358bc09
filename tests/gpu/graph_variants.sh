#!/bin/sh
# SPDX-License-Identifier: MIT
# Graphs with builds for several sets, with PyTorch on a GPU, as TAP: census, order, cost and
# memory; then the same with each graph rebuilt at every change. Figures are comments. OUT=FOLDER
# stores the output of the cases.
build=${BUILD:-build}
here=$(dirname "$0")
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT INT TERM
out=${OUT:-$tmp}
mkdir -p "$out"
export XDG_CACHE_HOME="$tmp/cache" GPUPART_LIBRARY="$build/lib/libgpupart.so.0" PYTHONPATH="$here/../../python"
unset GPUPART_SET GPUPART_GPU GPUPART_GRAPH_SETS CUDA_INJECTION64_PATH
if ! python3 -c 'import torch, triton; torch.cuda.get_device_name()' 2>/dev/null; then
	echo "1..0 # SKIP no PyTorch with Triton and a GPU here"
	exit 77
fi
. "$here/cases.subr"
for sets in 4 1; do
	file=$out/graph-variants-$sets.txt
	GPUPART_GRAPH_SETS=$sets timeout -k 5 60 python3 "$here/graph_variants.py" >"$file" 2>&1
	took "GPUPART_GRAPH_SETS=$sets" $? "$file"
done
cases_done
