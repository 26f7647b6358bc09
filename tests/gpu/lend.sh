#!/bin/sh
# SPDX-License-Identifier: MIT
# Lending on a GPU, as TAP and a table: a server with requests of 40 small kernels on 24 TPCs, and a
# program of compute kernels on 42 other TPCs, under MPS: each alone, both in fixed sets, and with
# the server's TPCs lent while it is idle, for given limits and for the slack of a goal. All phases
# use kernels of one size. Needs an idle GPU and PyTorch; takes about 170 s. OUT=FOLDER stores the
# table and all times; LIMITS=, DUTIES= and GOAL= are described in lend.py. With GPUPART_SIM=CAPTURE
# small kernels replace them on the simulated GPU, and the figures are meaningless.
build=$(cd "${BUILD:-build}" && pwd) || exit 1
here=$(cd "$(dirname "$0")" && pwd)
skip_all() { echo "1..0 # SKIP $1"; exit 77; }
if [ -z "$GPUPART_SIM" ]; then
	[ -e /dev/nvidiactl ] || skip_all "no NVIDIA driver here"
	PATH=$PATH:/usr/local/nvidia/bin
	command -v nvidia-cuda-mps-control >/dev/null || skip_all "no nvidia-cuda-mps-control here"
	python3 -c 'import torch' 2>/dev/null || skip_all "no PyTorch here"
fi
python3 -c '' 2>/dev/null || skip_all "no python3 here"
unset GPUPART_SET GPUPART_GPU CUDA_INJECTION64_PATH CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
tmp=$(mktemp -d /tmp/gpupart.XXXXXX) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM
out=${OUT:-$tmp/out}
mkdir -p "$out"
mkdir -m 700 "$tmp/run"
export XDG_RUNTIME_DIR="$tmp/run" XDG_CACHE_HOME="$tmp/cache" GPUPART="$build/bin/gpupart" GPUPART_RECORDS=1
. "$here/cases.subr"
timeout -k 5 "${SECONDS_ALL:-200}" python3 "$here/lend.py" cases "$out" >"$out/lend.txt" 2>&1
took lend $? "$out/lend.txt"
cases_done
