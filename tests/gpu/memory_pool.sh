#!/bin/sh
# SPDX-License-Identifier: MIT
# Memory that one process exports and another one imports, as TAP: which of two quotas is charged
# for a pool (cuMemPoolExportToShareableHandle) and, for comparison, for an allocation with
# cuIpcGetMemHandle. Compared with NVML's figures. OUT=FOLDER stores the output of the cases;
# CASES= selects some of "ipc pool". With GPUPART_SIM=CAPTURE it runs on the simulated GPU, which
# has no shared pools.
build=$(cd "${BUILD:-build}" && pwd) || exit 1
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM
out=${OUT:-$tmp}
mkdir -p "$out"
unset GPUPART_SET GPUPART_GPU GPUPART_MEM GPUPART_TENANT CUDA_INJECTION64_PATH LD_AUDIT
GPUPART=$build/bin/gpupart
INJECT=$build/lib/gpupart/libgpupart-inject.so
TENANT=pool-$$
SOCKET=$tmp/socket
XDG_CACHE_HOME=$tmp/cache
export GPUPART INJECT TENANT SOCKET XDG_CACHE_HOME
skip_all() {
	echo "1..0 # SKIP $1"
	exit 77
}
[ -e /dev/nvidiactl ] || [ -n "$GPUPART_SIM" ] || skip_all "no NVIDIA driver here"
python3 -c 'import socket; socket.send_fds' 2>/dev/null || skip_all "no python3 of 3.9 or later here"
. "$here/cases.subr"
for case in ${CASES-ipc pool}; do
	file=$out/memory-pool-$case.txt
	timeout -k 5 60 python3 "$here/memory_pool.py" "$case" >"$file" 2>&1
	took "$case" $? "$file"
done
cases_done
