#!/bin/sh
# SPDX-License-Identifier: MIT
# `signal: kernels` of gpupart qos on a GPU, as TAP: the difference between progress by completion
# records and by the reports of three programs, epoch by epoch, while their sets change: a decode
# loop of CUDA graphs, an eager training loop, matrix products and convolutions of changing sizes.
# Needs an idle GPU and PyTorch; takes about 55 s. OUT=FOLDER stores the logs and signal.json.
# With GPUPART_SIM=CAPTURE one program of small kernels replaces them on the simulated GPU, and
# the figures are meaningless.
build=$(cd "${BUILD:-build}" && pwd) || exit 1
here=$(cd "$(dirname "$0")" && pwd)
skip_all() { echo "1..0 # SKIP $1"; exit 77; }
if [ -z "$GPUPART_SIM" ]; then
	[ -e /dev/nvidiactl ] || skip_all "no NVIDIA driver here"
	python3 -c 'import torch' 2>/dev/null || skip_all "no PyTorch here"
fi
python3 -c '' 2>/dev/null || skip_all "no python3 here"
unset GPUPART_SET GPUPART_GPU GPUPART_JOB CUDA_INJECTION64_PATH CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM
out=${OUT:-$tmp/out}
mkdir -p "$out"
export XDG_CACHE_HOME="$tmp/cache" GPUPART="$build/bin/gpupart" GPUPART_RECORDS=1 \
	GPUPART_LIBRARY="$build/lib/libgpupart.so.0" PYTHONPATH="$here/../../python"
# On the simulated GPU a kernel takes time, in parallel to the program.
[ -z "$GPUPART_SIM" ] || export GPUPART_SIM_FAULTS=host-clock,host-thread
. "$here/cases.subr"
timeout -k 5 "${SECONDS_ALL:-150}" python3 "$here/signal_kinds.py" cases "$out" >"$out/signal.txt" 2>&1
took signal $? "$out/signal.txt"
cases_done
