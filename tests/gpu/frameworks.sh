#!/bin/sh
# SPDX-License-Identifier: MIT
# Unmodified PyTorch under `gpupart run`, each case in a separate process, as TAP: every launch is
# confined. OUT=FOLDER stores the output of the cases; CASES= selects some of them.
build=${BUILD:-build}
gpupart=$build/bin/gpupart
here=$(dirname "$0")
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT INT TERM
out=${OUT:-$tmp}
mkdir -p "$out"
export XDG_CACHE_HOME="$tmp/cache" GPUPART_LIBRARY="$build/lib/libgpupart.so.0"
export NCCL_NVLS_ENABLE=0 TORCH_SYMM_MEM_DISABLE_MULTICAST=1 NVSHMEM_DISABLE_NVLS=1
if ! python3 -c 'import torch, triton; torch.cuda.get_device_name()' 2>/dev/null; then
	echo "1..0 # SKIP no PyTorch with Triton and a GPU here"
	exit 77
fi
. "$here/cases.subr"
for name in ${CASES-eager compiled graphs cublas cudnn attention}; do
	timeout 120 "$gpupart" run -g 1 -- python3 "$here/frameworks.py" "$name" >"$out/$name.txt" 2>&1
	took "$name" $? "$out/$name.txt"
done
# Kernels that launch kernels are found and counted.
if [ -z "${CASES-x}" ]; then
	true
elif command -v nvcc >/dev/null && nvcc -arch=native -rdc=true -w -o "$tmp/parent" "$here/parent.cu" -lcudadevrt 2>"$tmp/err"; then
	timeout 60 "$gpupart" run -g 1 -- "$tmp/parent" >"$out/parent.txt" 2>&1
	status=$?
	[ $status -eq 0 ] && grep -q 'launches started kernels that can launch further kernels from the GPU' "$out/parent.txt"
	ok $? "dynamic parallelism is seen: status $status, $(paste -sd' ' "$out/parent.txt")"
	timeout 60 "$gpupart" run --no-device-launch -g 1 -- "$tmp/parent" >"$out/parent-refused.txt" 2>&1
	grep -q ' refused: ' "$out/parent-refused.txt" && ! grep -q ' on [1-9]' "$out/parent-refused.txt"
	ok $? "dynamic parallelism is refused: $(paste -sd' ' "$out/parent-refused.txt")"
else
	skip "dynamic parallelism: no nvcc here"
fi
# One rank per GPU, each in two separate GPCs.
gpus=$("$gpupart" doctor --no-launch --json 2>/dev/null | grep -oE '[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9]' |
	sort -u | head -n 2)
# shellcheck disable=SC2086 # one address per word
set -- $gpus
if [ $# -ge 2 ]; then
	export MASTER_ADDR=127.0.0.1 MASTER_PORT=29511 WORLD_SIZE=2 CUDA_DEVICE_ORDER=PCI_BUS_ID
	RANK=0 timeout 120 "$gpupart" run --gpu "$1" -g 1,2 -- python3 "$here/frameworks.py" nccl >"$out/nccl-0.txt" 2>&1 &
	RANK=1 timeout 120 "$gpupart" run --gpu "$2" -g 1,2 -- python3 "$here/frameworks.py" nccl >"$out/nccl-1.txt" 2>&1
	second=$?
	wait $!
	took nccl-0 $? "$out/nccl-0.txt"
	took nccl-1 $second "$out/nccl-1.txt"
else
	skip "NCCL: fewer than two GPUs here"
fi
cases_done
