#!/bin/sh
# SPDX-License-Identifier: MIT
# run --mps when no daemon may be started: on the simulated GPU, and with GPUPART_DISABLE=1. The
# mask bits are also checked under a daemon's variables. unit-cli-mps tests starting and ending
# daemons.
. "$(dirname "$0")/tap.subr"
e="-i tests/data/gh100-h200-e/capture.txt"
mkdir -m 700 "$tmp/bin" "$tmp/fake" "$tmp/run" "$tmp/pipes"
ln -s "$root/tests/other_mps.sh" "$tmp/bin/nvidia-cuda-mps-control"
PATH=$tmp/bin:$PATH
FAKE_MPS=$tmp/fake
XDG_RUNTIME_DIR=$tmp/run
export PATH FAKE_MPS XDG_RUNTIME_DIR
unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY CUDA_DEVICE_MAX_CONNECTIONS

# shellcheck disable=SC2016 # expanded by the program
show='env | grep -c "^CUDA_MPS_\|^CUDA_DEVICE_MAX_CONNECTIONS"; exit 42'
try run $e -g 0 --mps -- sh -c "$show"
is "$status $out" "42 0" "simulated: the program runs, no variable of MPS is set"
is "$(wc -l <"$tmp/err")" 2 "simulated: a line on stderr more than without --mps"
has "$err" "gpupart run: --mps: the simulated driver has no MPS" "simulated: it says why"
has "$err" "run in time slices" "simulated: it says what one gets"
is "$(ls "$tmp/fake" "$tmp/run")" "$tmp/fake:

$tmp/run:" "simulated: nothing is started"
try run $e -g 0 -- sh -c "$show"
is "$status $out $(wc -l <"$tmp/err")" "42 0 1" "without --mps there is no message about it"

GPUPART_DISABLE=1
export GPUPART_DISABLE
try run -t 0 --mps -- sh -c "$show"
is "$status $out" "42 0" "GPUPART_DISABLE=1: the program runs, no variable of MPS is set"
is "$(ls "$tmp/fake" "$tmp/run")" "$tmp/fake:

$tmp/run:" "GPUPART_DISABLE=1: nothing is started"
unset GPUPART_DISABLE

refused 125 "takes no value" run $e -t 0 --mps=1 -- true
try run --help
is "$(awk 'length($0) > 85' "$tmp/out")" "" "no line of run --help is wider than 85 columns"

# A driver that does not report MPS: a client is a process with a daemon's pipes.
: >"$tmp/pipes/control"
GPUPART_SIM_FAULTS=no-mps-attribute
CUDA_MPS_PIPE_DIRECTORY=$tmp/pipes
XDG_CACHE_HOME=$tmp/unchecked
export GPUPART_SIM_FAULTS CUDA_MPS_PIPE_DIRECTORY XDG_CACHE_HOME
try verify $e --quick
has "$out$err" "cannot be checked under MPS" "the mask bits are not checked as a client of MPS"
try run $e -t 0 -- sh -c "$show"
is "$status $out" "42 1" "run has them checked without MPS, and the program is a client"
try verify $e --quick
is $status 0 "then they are known to clients"
tap_done
