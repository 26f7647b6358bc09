#!/bin/sh
# SPDX-License-Identifier: MIT
# A memory quota on two simulated GPUs: the part of tests/gpu/memory_gpus.sh that needs no
# silicon.
root=$(cd "$(dirname "$0")/../../.." && pwd) || exit 1
: "${BUILD:=$root/build}"
cd "$root" || exit 1
data=$root/tests/data
GPUPART_SIM=$data/gh100-h200-b/capture.txt:$data/gh100-h200-e/capture.txt
LD_LIBRARY_PATH=$(cd "$BUILD" && pwd)/lib/gpupart/sim${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
CASES=each
PYTHONDONTWRITEBYTECODE=1
export BUILD GPUPART_SIM LD_LIBRARY_PATH CASES PYTHONDONTWRITEBYTECODE
exec tests/gpu/memory_gpus.sh
