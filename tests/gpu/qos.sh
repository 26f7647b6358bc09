#!/bin/sh
# SPDX-License-Identifier: MIT
# `gpupart qos` on a GPU, as TAP: PyTorch inference must keep a fraction of its solo speed (ALPHA,
# 0.65) next to training under MPS, with three loads; without control, half and half, the best
# fixed split and the controller in one run, with the same two processes; and the power of a
# memory-intensive program, with reserved TPCs and without. OUT=FOLDER stores all of it; LOADS=
# selects some of "steady bursts bad power", SECONDS_EACH= sets the duration of each under control
# (64), SPLITS= gives the TPCs of fixed splits instead of a search.
build=$(cd "${BUILD:-build}" && pwd) || exit 1
gpupart=$build/bin/gpupart
here=$(cd "$(dirname "$0")" && pwd)
loads=${LOADS:-steady bursts bad power} length=${SECONDS_EACH:-64} alpha=${ALPHA:-0.65}
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
mode=$tmp/mode serve=$tmp/serve
echo train >"$mode"
echo serve >"$serve"
rm -f "$out/marks"
mark() { python3 -c "import time; print('%.6f $1' % time.monotonic())" >>"$out/marks"; }
tpcs=$("$gpupart" topology --json | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["tpcs"]))')
# begin NAME ARGS: starts a program on all TPCs and waits until it is warm.
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
split() {	# split N: inference gets the first N
	"$gpupart" set train -t "$1-$((tpcs - 1))" >/dev/null
	"$gpupart" set infer -t "0-$(($1 - 1))" >/dev/null
}
# fits WHAT N [SECONDS]: whether a fixed split with N TPCs for inference meets the goal, in all
# except one of seven epochs; with a hundred epochs, as often as the controller must.
fits() {
	split "$2"
	mark "fixed-$1-$2"
	sleep "${3:-1.6}"
	mark -
	python3 "$here/qos.py" fits "$out" "$goal" "fixed-$1-$2"
}
# Finds the fewest sufficient TPCs for inference: by bisection, and then the four below one by
# one, because speed does not rise smoothly; of these the first that is sufficient for 20 s. best=
# the number, or empty.
search() {
	low=8 high=$((tpcs - 2)) best=
	while [ $low -le $high ]; do
		middle=$(((low + high) / 2))
		if fits "$1" $middle; then
			best=$middle high=$((middle - 1))
		else
			low=$((middle + 1))
		fi
	done
	[ -n "$best" ] || return
	for n in $((best - 1)) $((best - 2)) $((best - 3)) $((best - 4)); do
		grep -q " fixed-$1-$n\$" "$out/marks" || ! fits "$1" $n || best=$n
	done
	until fits "$1" "$best" 20.4; do
		best=$((best + 1))
		[ "$best" -lt "$tpcs" ] || { best= ; return; }
	done
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

# power_of NAME: the mean power of a segment is that of its samples.
power_of() { mark "power-$1"; sleep 7; mark -; }
# A memory-intensive program, the copies, alone and next to inference: with its unneeded TPCs
# given away, kept, and reserved; and with the controller.
power() {
	echo copy >"$mode"
	echo idle >"$serve"
	"$gpupart" set train -a >/dev/null
	power_of "alone-all"
	"$gpupart" set train -t "0-$((tpcs / 2 - 1))" >/dev/null
	power_of "alone-half"
	# The other program runs and is idle: an absent program's TPCs would be left out.
	"$gpupart" set infer -a >/dev/null
	# From a quarter on, so that more TPCs are measured on the way up.
	"$gpupart" set train -t "0-$((tpcs / 4 - 1))" >/dev/null
	printf 'epoch: 200ms\ntenants:\n  train: { job: train, signal: reported }\n' \
		>"$tmp/power.yaml"
	mark "power-alone-controlled"
	"$gpupart" qos run -f "$tmp/power.yaml" --mps --epochs 50 --log "$out/power.log" \
		-o "$out/power.svg" >"$out/power.txt" 2>&1
	mark -
	echo serve >"$serve"
	few=$((tpcs * 2 / 5)) half=$((tpcs / 2))
	"$gpupart" set infer -t "0-$((few - 1))" >/dev/null
	"$gpupart" set train -t "$few-$((tpcs - 1))" >/dev/null
	power_of "beside-kept"
	"$gpupart" set train -t "$half-$((tpcs - 1))" >/dev/null
	power_of "beside-reserved"
	"$gpupart" set infer -t "0-$((half - 1))" >/dev/null
	power_of "beside-given-away"
	echo train >"$mode"
}

python3 "$here/qos.py" power "$out/power" &
pids="$pids $!"
begin infer "$serve"
mark alone
sleep 3
mark -
alone=$(python3 "$here/qos.py" alone "$out/marks" "$out/infer.times")
goal=$(python3 -c "print('%.1f' % ($alone * $alpha))")
echo "# alone $alone/s, the goal $goal/s"
begin train "$mode"
both=
[ "$loads" = power ] || both='train copy'
case " $loads " in *" bad "*) ;; *) both=${both%copy} ;; esac
for what in $both; do
	echo "$what" >"$mode"
	if [ -n "${SPLITS:-}" ]; then
		for n in $SPLITS; do
			[ "$n" -ge "$tpcs" ] || fits "$what" "$n" || :
		done
		continue
	fi
	search "$what"
	echo "# $what: the best fixed split has ${best:-none} TPCs for inference"
	# The best number for one program alone is also measured next to the other.
	[ "$what" != train ] || best_train=$best
	if [ "$what" = copy ] && [ -n "$best" ]; then
		grep -q " fixed-copy-$best_train\$" "$out/marks" || fits copy "$best_train" || :
		echo train >"$mode"
		grep -q " fixed-train-$best\$" "$out/marks" || fits train "$best" || :
	fi
done
echo train >"$mode"
cat >"$tmp/tenants.yaml" <<YAML
epoch: 200ms
tenants:
  infer: { goal: { alpha: $alpha, alone: $alone }, job: infer, signal: reported }
  train: { job: train, signal: reported }
YAML
for l in $loads; do
	[ "$l" != power ] || continue
	[ "$l" = steady ] && short=6 || short=20
	whole
	load "$l" "$short" "none-$l"
	halves
	load "$l" "$short" "half-$l"
	echo train >"$mode"
	whole
	# shellcheck disable=SC2016 # for the inner shell
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
	"$gpupart" qos replay "$out/$l.log" >"$out/$l.replay" 2>&1
done
cp "$tmp/tenants.yaml" "$out/"
case " $loads " in *" power "*) power ;; esac
python3 "$here/qos.py" judge "$out" "$goal"
