#!/bin/sh
# SPDX-License-Identifier: MIT
# gpupart ps --engines with known work: two programs in time slices, first each alone, then both.
# A program's share of the engine is the fraction of its solo work that it still does, times its
# share alone; the sampled shares agree within 5 points. Root, an idle GPU, no MPS; 30 s.
# SOURCE=rm or kernel selects the source. With GPUPART_SIM=CAPTURE the programs run on the
# simulated GPU, which has no runlists: a recording is made with the shares that follow from their
# work, and one that is wrong by 10 points must fail.
build=$(cd "${BUILD:-build}" && pwd) || exit 1
skip_all() { echo "1..0 # SKIP $1"; exit 77; }
if [ -n "${GPUPART_SIM-}" ]; then
	export LD_LIBRARY_PATH="$build/lib/gpupart/sim"
else
	[ -e /dev/nvidiactl ] || skip_all "no NVIDIA driver here"
	[ "$(id -u)" -eq 0 ] || skip_all "only root sees what runs on engines"
fi
unset GPUPART_SET GPUPART_GPU CUDA_INJECTION64_PATH CUDA_MPS_PIPE_DIRECTORY
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM
count=0 failed=0
ok() {
	count=$((count + 1))
	[ "$1" -eq 0 ] || failed=$((failed + 1))
	[ "$1" -eq 0 ] && echo "ok $count - $2" || echo "not ok $count - $2"
}
work() { "$build/tests/gpu-engines_work" "$@"; }
# sampled SECONDS: prints switching and the shares of TSGs of the graphics engine, the largest
# first.
sampled() {
	"$build/bin/gpupart" ps --engines -d "$1" ${SOURCE:+-i "$SOURCE"} --json >"$tmp/json" || return 1
	awk -F'[:,]' '/"type"/ {graphics = $2 == 0 && !seen} /"runlist_id"/ {runlist = graphics}
		/"switching"/ && graphics {s = $2} /"share"/ && graphics {list = list " " $2} /^ *}/ && list {seen = 1}
		END {print s list}' "$tmp/json"
}
# agree RATE_A RATE_B ALONE_A ALONE_B SHARE_A SHARE_B SWITCHING SHARE...: compares sampled shares
# with the work's.
agree() {
	echo "$@" | awk '{
		a = $1 / $3 * $5; b = $2 / $4 * $6
		if (a < b) {c = a; a = b; b = c}
		x = $8 + 0; y = $9 + 0
		printf "by work %.3f %.3f, sampled %.3f %.3f, switching %.3f\n", a, b, x, y, $7
		exit !(a > 0 && b > 0 && x - a <= 0.05 && a - x <= 0.05 && y - b <= 0.05 && b - y <= 0.05)
	}'
}
a="${ROUNDS_A:-20000}" b="${ROUNDS_B:-200000}"
if [ -n "${GPUPART_SIM-}" ]; then
	alone_a=$(work "$a" 1) && alone_b=$(work "$b" 1)
	ok $? "the programs run on the simulated GPU: $alone_a and $alone_b kernels a second"
	# The schedule of the recording: TSG 7 in 3 of 10 samples, TSG 11 in 6, a switch in one.
	"$(dirname "$0")/../kmod/regfiles" "$tmp/regs"
	grep -E '^0x(0000(00|04)|000a00|0224fc|022[89a-f]..|023...|c0....) ' "$tmp/regs/gh100-runlists-busy.regs" >"$tmp/rec"
	awk 'BEGIN {for (i = 0; i < 1000; i++) {
		print "0xc00200 " (i % 10 < 3 ? "0x80072007" : i % 10 < 9 ? "0x800b200b" : "0x800be007"); print "sample"}}' >>"$tmp/rec"
	SOURCE=$tmp/rec
	seen=$(sampled 1)
	is_seen=$(echo "$seen" | awk '{printf "%.2f %.2f %.2f", $1, $2, $3}')
	[ "$is_seen" = "0.10 0.60 0.30" ]
	ok $? "shares of the recording (simulated): $is_seen"
	both_a=$(awk "BEGIN {print $alone_a * 0.3}") both_b=$(awk "BEGIN {print $alone_b * 0.6}")
	said=$(agree "$both_a" "$both_b" "$alone_a" "$alone_b" 1 1 $seen)
	ok $? "they agree with that work (simulated): $said"
	both_a=$(awk "BEGIN {print $alone_a * 0.4}") both_b=$(awk "BEGIN {print $alone_b * 0.5}")
	said=$(agree "$both_a" "$both_b" "$alone_a" "$alone_b" 1 1 $seen)
	[ $? -ne 0 ]
	ok $? "and not with work that is 10 points off (simulated): $said"
else
	for which in a b; do
		[ $which = a ] && rounds=$a || rounds=$b
		work "$rounds" 5 >"$tmp/alone_$which" &
		pid=$!
		sleep 1.5
		sampled 2 >"$tmp/share_$which"
		ok $? "program $which alone: switching, shares: $(cat "$tmp/share_$which")"
		wait $pid
		ok $? "it does $(cat "$tmp/alone_$which") kernels a second"
	done
	work "$a" 12 >"$tmp/both_a" &
	pid=$!
	work "$b" 12 >"$tmp/both_b" &
	sleep 2
	seen=$(sampled 8)
	wait $pid
	wait
	said=$(agree "$(cat "$tmp/both_a")" "$(cat "$tmp/both_b")" "$(cat "$tmp/alone_a")" "$(cat "$tmp/alone_b")" \
		"$(awk '{print $2}' "$tmp/share_a")" "$(awk '{print $2}' "$tmp/share_b")" $seen)
	ok $? "shares agree with work: $said"
fi
echo "1..$count"
[ "$failed" -eq 0 ]
