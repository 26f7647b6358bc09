#!/bin/sh
# SPDX-License-Identifier: MIT
# gpupart.py with PyTorch and Triton on a real GPU, as TAP; PYTHON names an interpreter that has
# them. OUT=FOLDER stores the transcript.
here=$(cd "$(dirname "$0")" && pwd) || exit 1
: "${BUILD:=$here/../../build}" "${PYTHON:=python3}"
if [ ! -e /dev/nvidiactl ] || ! "$PYTHON" -c 'import torch, triton' 2>/dev/null; then
	echo "1..0 # SKIP no NVIDIA driver, or no PyTorch with Triton for $PYTHON"
	exit 77
fi
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
export XDG_CACHE_HOME="$tmp/cache" GPUPART_LIBRARY="$BUILD/lib/libgpupart.so.0"
unset GPUPART_SET GPUPART_GPU GPUPART_DISABLE CUDA_INJECTION64_PATH
timeout 300 "$PYTHON" "$here/python.py" >"$tmp/out" 2>"$tmp/err"
status=$?
cat "$tmp/out"
[ $status -le 1 ] || sed 's/^/# /' "$tmp/err"
[ -z "${OUT-}" ] || cp "$tmp/out" "$OUT/python.txt"
exit $status
