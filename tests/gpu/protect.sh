#!/bin/sh
# SPDX-License-Identifier: MIT
# Table III of "Hardware Compute Partitioning on NVIDIA GPUs" and its figure 14 with a real
# network, as TAP and a table: ResNet-50 alone, next to a second one and next to a program that
# floods the GPU, without sets and on half of the GPU each; then two of them in splits from 1:7 to
# 7:1. Two processes under MPS, whose sets are changed while they run. Needs an idle GPU, PyTorch
# and torchvision; takes about 90 s. OUT=FOLDER stores the table and all times. With
# GPUPART_SIM=CAPTURE small kernels replace the network on the simulated GPU, and the figures are
# meaningless.
build=$(cd "${BUILD:-build}" && pwd) || exit 1
here=$(cd "$(dirname "$0")" && pwd)
skip_all() { echo "1..0 # SKIP $1"; exit 77; }
if [ -z "$GPUPART_SIM" ]; then
	[ -e /dev/nvidiactl ] || skip_all "no NVIDIA driver here"
	PATH=$PATH:/usr/local/nvidia/bin
	command -v nvidia-cuda-mps-control >/dev/null || skip_all "no nvidia-cuda-mps-control here"
	python3 -c 'import torch, torchvision' 2>/dev/null || skip_all "no PyTorch with torchvision here"
fi
python3 -c '' 2>/dev/null || skip_all "no python3 here"
unset GPUPART_SET GPUPART_GPU CUDA_INJECTION64_PATH CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
tmp=$(mktemp -d /tmp/gpupart.XXXXXX) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM
out=${OUT:-$tmp/out}
mkdir -p "$out"
mkdir -m 700 "$tmp/run"
export XDG_RUNTIME_DIR="$tmp/run" XDG_CACHE_HOME="$tmp/cache" GPUPART="$build/bin/gpupart"
. "$here/cases.subr"
timeout -k 5 "${SECONDS_ALL:-170}" python3 "$here/protect.py" cases "$out" >"$out/protect.txt" 2>&1
took protect $? "$out/protect.txt"
cases_done
