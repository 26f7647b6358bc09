#!/bin/sh
# SPDX-License-Identifier: MIT
# `gpupart qos` on a GPU, as TAP: PyTorch inference that is to keep a share of its speed alone
# (ALPHA, 0.6) beside training under MPS, with three loads; without control, half and half, fixed
# splits and the controller in one run, on the same two processes. OUT=FOLDER keeps all of it;
# LOADS= some of "steady bursts bad", SECONDS_EACH= of each under control (64).
build=$(cd "${BUILD:-build}" && pwd) || exit 1
gpupart=$build/bin/gpupart
here=$(cd "$(dirname "$0")" && pwd)
loads=${LOADS:-steady bursts bad} length=${SECONDS_EACH:-64} alpha=${ALPHA:-0.6}
skip_all() { echo "1..0 # SKIP $1"; exit 77; }
[ -e /dev/nvidiactl ] || skip_all "no NVIDIA driver here"
PATH=$PATH:/usr/local/nvidia/bin
command -v nvidia-cuda-mps-control >/dev/null || skip_all "no nvidia-cuda-mps-control here"
python3 -c 'import torch, torchvision' 2>/dev/null || skip_all "no PyTorch here"
unset GPUPART_SET GPUPART_GPU CUDA_INJECTION64_PATH CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
tmp=$(mktemp -d /tmp/gpupart.XXXXXX) || exit 1
pids=''
# shellcheck disable=SC2086 # pids
trap 'kill $pids 2>/dev/null; wait; rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM
out=${OUT:-$tmp}
mkdir -p "$out"
mkdir -m 700 "$tmp/run"
export XDG_RUNTIME_DIR="$tmp/run" XDG_CACHE_HOME="$tmp/cache" PYTHONPATH="$here/../../python" \
	GPUPART_LIBRARY="$build/lib/libgpupart.so.0"
mode=$tmp/mode
echo train >"$mode"
rm -f "$out/marks"
mark() { python3 -c "import time; print('%.6f $1' % time.monotonic())" >>"$out/marks"; }
tpcs=$("$gpupart" topology --json | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["tpcs"]))')
# begin NAME ARGS: a program that has all TPCs, once it is warm.
begin() {
	name=$1
	shift
	rm -f "$out/$name.times"
	"$gpupart" run --mps -t "0-$((tpcs - 1))" --name "$name" -- \
		python3 "$here/qos.py" "$name" "$out/$name.times" "$@" >"$out/$name.err" 2>&1 &
	pids="$pids $!"
	for _ in $(seq 600); do
		grep -q ready "$out/$name.times" 2>/dev/null && return 0
		kill -0 $! 2>/dev/null || break
		sleep 0.1
	done
	echo "# $name does not begin:"
	tail -n 5 "$out/$name.err" | sed 's/^/# /'
	exit 1
}
split() {	# split N: inference has the first N
	"$gpupart" set train -t "$1-$((tpcs - 1))" >/dev/null
	"$gpupart" set infer -t "0-$(($1 - 1))" >/dev/null
}
whole() { "$gpupart" set infer -a >/dev/null; "$gpupart" set train -a >/dev/null; }
halves() { "$gpupart" set train -u 1 >/dev/null; "$gpupart" set infer -u 0 >/dev/null; }
load() {	# load NAME SECONDS LABEL
	python3 "$here/qos.py" phases "$mode" "$1" "$2" &
	mark "$3"
	wait $!
	mark -
	echo train >"$mode"
}

begin infer
mark alone
sleep 3
mark -
alone=$(python3 "$here/qos.py" alone "$out/marks" "$out/infer.times")
goal=$(python3 -c "print('%.1f' % ($alone * $alpha))")
echo "# alone $alone/s, the goal $goal/s"
begin train "$mode"
for what in train copy; do
	echo $what >"$mode"
	for n in ${SPLITS:-34 36 38 40 42 44 48 52 54 56 58 60}; do
		[ "$n" -lt "$tpcs" ] || continue
		split "$n"
		mark "fixed-$what-$n"
		sleep 1.6
	done
	mark -
done
echo train >"$mode"
cat >"$tmp/tenants.yaml" <<YAML
epoch: 200ms
tenants:
  infer: { goal: { alpha: $alpha, alone: $alone }, job: infer, signal: reported }
  train: { job: train, signal: reported }
YAML
for l in $loads; do
	[ "$l" = steady ] && short=6 || short=20
	whole
	load "$l" "$short" "none-$l"
	halves
	load "$l" "$short" "half-$l"
	echo train >"$mode"
	whole
	# shellcheck disable=SC2016 # for the shell inside
	sh -c 'echo $$ >"$1"; shift; exec "$@"' sh "$tmp/pid" \
		"$gpupart" qos run -f "$tmp/tenants.yaml" --mps --log "$out/$l.log" -o "$out/$l.svg" \
		>"$out/$l.txt" 2>&1 &
	controller=$!
	sleep 0.3
	load "$l" "$length" "qos-$l"
	awk -v hz="$(getconf CLK_TCK)" -v s="$length" '{ print ($14 + $15) / hz / s }' \
		"/proc/$(cat "$tmp/pid")/stat" >"$out/$l.cpu"
	kill -INT "$(cat "$tmp/pid")"
	wait $controller
	"$gpupart" qos replay "$out/$l.log" >"$out/$l.replay" 2>&1 ||
		echo "not ok - $l: the log does not replay: $(tail -n 1 "$out/$l.replay")"
done
cp "$tmp/tenants.yaml" "$out/"
python3 "$here/qos.py" judge "$out" "$goal"
