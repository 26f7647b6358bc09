#!/bin/sh
# SPDX-License-Identifier: MIT
# A memory quota on two GPUs, as TAP: a process on both, with separate accounting for each; memory
# of one that is allocated from the other, peer access, a quota of one GPU only; two ranks of
# PyTorch that reduce by NCCL. Compared with NVML's figures from outside, or the simulated
# driver's (GPUPART_SIM with two captures). OUT=FOLDER stores the output of the cases; CASES=
# selects some of "each ranks". Needs idle GPUs.
build=$(cd "${BUILD:-build}" && pwd) || exit 1
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM
out=${OUT:-$tmp}
mkdir -p "$out"
unset GPUPART_SET GPUPART_GPU GPUPART_MEM GPUPART_TENANT CUDA_INJECTION64_PATH LD_AUDIT CUDA_VISIBLE_DEVICES
GPUPART=$build/bin/gpupart
TENANT=gpus-$$
XDG_CACHE_HOME=$tmp/cache
# No multicast over NVSwitch, because all GPUs of a host share it.
NCCL_NVLS_ENABLE=0 TORCH_SYMM_MEM_DISABLE_MULTICAST=1 NVSHMEM_DISABLE_NVLS=1
export GPUPART TENANT XDG_CACHE_HOME NCCL_NVLS_ENABLE TORCH_SYMM_MEM_DISABLE_MULTICAST NVSHMEM_DISABLE_NVLS
skip_all() {
	echo "1..0 # SKIP $1"
	exit 77
}
[ -e /dev/nvidiactl ] || [ -n "$GPUPART_SIM" ] || skip_all "no NVIDIA driver here"
python3 -c '' 2>/dev/null || skip_all "no python3 here"
count=$(python3 "$here/memory_gpus.py" gpus 2>"$tmp/err" | wc -w)
[ "$count" -ge 2 ] || skip_all "$count GPUs here, two are wanted: $(tail -n 1 "$tmp/err")"
. "$here/cases.subr"
for case in ${CASES-each ranks}; do
	file=$out/memory-gpus-$case.txt
	if [ "$case" = ranks ] && { [ -n "$GPUPART_SIM" ] || ! python3 -c 'import torch' 2>/dev/null; }; then
		skip "ranks: no PyTorch on real GPUs here"
		continue
	fi
	# The ranks as users start them; on the simulator they also need only the other rank's
	# environment.
	if [ "$case" = ranks ]; then
		timeout -k 5 60 python3 "$here/memory_gpus.py" ranks "$GPUPART" run --name "$TENANT" --mem 8G >"$file" 2>&1
	else
		timeout -k 5 60 python3 "$here/memory_gpus.py" "$case" env GPUPART_TENANT="$TENANT" GPUPART_MEM=$((8 << 30)) \
			CUDA_INJECTION64_PATH="$build/lib/gpupart/libgpupart-inject.so" >"$file" 2>&1
	fi
	took "$case" $? "$file"
done
cases_done
