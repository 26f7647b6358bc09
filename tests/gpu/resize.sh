#!/bin/sh
# SPDX-License-Identifier: MIT
# Two PyTorch programs at the same time, under MPS, each in its own set, which are resized while
# they run. A transcript: each command and its output. TAP at the end.
build=${BUILD:-build}
PATH=$build/bin:$PATH
here=$(dirname "$0")
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT INT TERM
export XDG_CACHE_HOME="$tmp/cache"
if ! python3 -c 'import torch; torch.cuda.get_device_name()' 2>/dev/null; then
	echo "1..0 # SKIP no PyTorch with a GPU here"
	exit 77
fi
go=$tmp/go
touch "$go"
say() {
	echo "\$ $*"
	"$@" 2>&1
	echo
}
# The last figures of both.
figures() {
	sleep 2.5
	tail -q -n 2 "$tmp/left" "$tmp/right"
	echo
}
echo "\$ gpupart run --mps -u 0 --name left -- python3 resize.py left &"
gpupart run --mps -u 0 --name left -- python3 "$here/resize.py" left "$go" >"$tmp/left" 2>&1 &
left=$!
echo "\$ gpupart run --mps -u 1 --name right -- python3 resize.py right &"
gpupart run --mps -u 1 --name right -- python3 "$here/resize.py" right "$go" >"$tmp/right" 2>&1 &
right=$!
for _ in $(seq 300); do
	grep -q TFLOP "$tmp/left" && grep -q TFLOP "$tmp/right" && break
	sleep 0.1
done
figures
before_left=$(tail -n 1 "$tmp/left") before_right=$(tail -n 1 "$tmp/right")
say gpupart ps
say gpupart set left -g 0
say gpupart set right -g 1-7
say gpupart ps
figures
after_left=$(tail -n 1 "$tmp/left") after_right=$(tail -n 1 "$tmp/right")
rm "$go"
wait $left
ended_left=$?
wait $right
ended_right=$?
speed() {
	echo "$1" | sed 's/.*: *\([0-9.]*\) TFLOP.*/\1/'
}
failed=0
result() {
	[ "$1" -eq 0 ] || failed=1
	[ "$1" -eq 0 ] && echo "ok $2" || echo "not ok $2"
}
less=$(awk -v a="$(speed "$after_left")" -v b="$(speed "$before_left")" 'BEGIN { print !(a < 0.5 * b) }')
result "$less" "1 - the left one, from uGPU 0 to GPC 0: $(speed "$before_left") to $(speed "$after_left") TFLOP/s"
more=$(awk -v a="$(speed "$after_right")" -v b="$(speed "$before_right")" 'BEGIN { print !(a > 1.3 * b) }')
result "$more" "2 - the right one, from uGPU 1 to all other GPCs: $(speed "$before_right") to $(speed "$after_right") TFLOP/s"
result $((ended_left + ended_right)) "3 - both ended well"
[ "$(gpupart ps | wc -l)" = 1 ]
result $? "4 - and nothing is listed any more"
for _ in $(seq 50); do
	pgrep -f nvidia-cuda-mps-control >/dev/null || break
	sleep 0.2
done
! pgrep -f nvidia-cuda-mps-control >/dev/null
result $? "5 - nor does a daemon of ours run"
echo 1..5
exit $failed
