#!/bin/sh
# SPDX-License-Identifier: MIT
# Two programs with a fixed amount of work on disjoint sets of one GPU, as TAP: each alone, both
# at once under run --mps, both at once without it. Needs an idle GPU. OUT=FOLDER stores the
# figures; SET_A and SET_B select other sets.
build=${BUILD:-build}
gpupart=$build/bin/gpupart
set_a=${SET_A:--g 0,1,2} set_b=${SET_B:--g 3,4,5}
nr=0 failed=0
ok() {	# ok STATUS WORDS
	nr=$((nr + 1))
	if [ "$1" -eq 0 ]; then echo "ok $nr - $2"; else echo "not ok $nr - $2"; failed=1; fi
}
skip_all() { echo "1..0 # SKIP $1"; exit 77; }

[ -e /dev/nvidiactl ] || skip_all "no NVIDIA driver here"
PATH=$PATH:/usr/local/nvidia/bin
command -v nvidia-cuda-mps-control >/dev/null || skip_all "no nvidia-cuda-mps-control here"
unset GPUPART_SET GPUPART_GPU CUDA_INJECTION64_PATH CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY \
	CUDA_DEVICE_MAX_CONNECTIONS
echo get_server_list | timeout 10 nvidia-cuda-mps-control >/dev/null 2>&1 &&
	skip_all "an MPS daemon runs already: nothing here would be without MPS"

tmp=$(mktemp -d /tmp/gpupart.XXXXXX) || exit 1
a='' b=''
# shellcheck disable=SC2086 # pids
trap 'kill $a $b 2>/dev/null; rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM
out=${OUT:-$tmp}
mkdir -p "$out"
mkdir -m 700 "$tmp/run"
export XDG_RUNTIME_DIR="$tmp/run" XDG_CACHE_HOME="$tmp/cache"
pipes=$tmp/run/gpupart-mps

soon() {	# soon COMMAND: waits until it succeeds, for a minute at most
	for i in $(seq 600); do
		"$@" && return 0
		sleep 0.1
	done
	echo "# $* does not hold after a minute"
	return 1
}
# begin NAME OPTIONS: starts a program that is warm and waits for the start; its pid is in $pid.
begin() {
	name=$1
	shift
	rm -f "$tmp/$name.ready"
	timeout 120 "$gpupart" run "$@" -- "$build/tests/gpu-concurrency" "$tmp/$name.ready" "$tmp/go" \
		>"$tmp/$name.out" 2>"$tmp/$name.err" &
	pid=$!
	soon ready_or_gone "$tmp/$name.ready" $pid
}
ready_or_gone() { [ -e "$1" ] || ! kill -0 "$2" 2>/dev/null; }
field() { tr ' ' '\n' <"$tmp/$1.out" | sed -n "/^$2\$/{n;p;}"; }
# measure NAME OPTIONS: runs one program alone.
measure() {
	rm -f "$tmp/go"
	begin "$@"
	a=$pid
	: >"$tmp/go"
	wait "$a"
	ok $? "$1: $(cat "$tmp/$1.out" "$tmp/$1.err" | tr '\n' ' ')"
	echo "$1: $(cat "$tmp/$1.out")" >>"$out/concurrency.txt"
	a=''
}
# both NAME OPTION: runs both at once, as NAME-a and NAME-b.
both() {
	rm -f "$tmp/go"
	# shellcheck disable=SC2086 # options
	begin "$1-a" $2 $set_a
	a=$pid
	# shellcheck disable=SC2086
	begin "$1-b" $2 $set_b
	b=$pid
	"$gpupart" doctor --no-launch >"$out/doctor-$1.txt" 2>&1
	[ -z "$2" ] || echo get_server_list | CUDA_MPS_PIPE_DIRECTORY=$pipes timeout 10 nvidia-cuda-mps-control >"$tmp/servers"
	: >"$tmp/go"
	wait "$a"
	ok $? "$1-a: $(cat "$tmp/$1-a.out" "$tmp/$1-a.err" | tr '\n' ' ')"
	wait "$b"
	ok $? "$1-b: $(cat "$tmp/$1-b.out" "$tmp/$1-b.err" | tr '\n' ' ')"
	for i in "$1-a" "$1-b"; do
		echo "$i: $(cat "$tmp/$i.out")" >>"$out/concurrency.txt"
	done
	a='' b=''
}
# longer NAME NAME: the larger of two times.
longer() { printf '%s\n%s\n' "$(field "$1" seconds)" "$(field "$2" seconds)" | sort -n | tail -n 1; }
holds() { awk "BEGIN { exit !($1) }" </dev/null; }
# The kernel stores only 15 letters of nvidia-cuda-mps-control and -server.
daemons() {
	for i in /proc/[0-9]*; do
		case $(cat "$i/stat" 2>/dev/null) in
		*'(nvidia-cuda-mps) Z'* | *'(gpupart-mps) Z'*) ;;
		*'(nvidia-cuda-mps) '* | *'(gpupart-mps) '*) printf '%s ' "${i#/proc/}" ;;
		esac
	done
}

: >"$out/concurrency.txt"
before=$(daemons)
# shellcheck disable=SC2086 # options
measure alone-a $set_a
# shellcheck disable=SC2086
measure alone-b $set_b
both mps --mps
[ "$(wc -l <"$tmp/servers")" -eq 1 ]
ok $? "under run --mps there is one server: $(cat "$tmp/servers")"
[ ! -s "$tmp/mps-a.err" ] && [ ! -s "$tmp/mps-b.err" ]
ok $? "under run --mps there is no message"
gone() { [ ! -e "$pipes/gpupart.started" ] && [ "$(daemons)" = "$before" ]; }
soon gone
ok $? "no daemon, server or keeper is left: '$(daemons)' as before '$before'"
both without ''
grep -q 'run on it in time slices' "$tmp/without-b.err"
ok $? "without --mps the second gets a message about time slices: $(cat "$tmp/without-b.err")"
[ ! -s "$tmp/without-a.err" ]
ok $? "and the first, which is alone, is not"

bad=0
for i in alone-a alone-b mps-a mps-b without-a without-b; do
	[ "$(field $i others)" = 0 ] && [ "$(field $i confined)" -ge 40 ] || bad=1
done
ok $bad "every launch of all of them was confined"
# -1: the driver does not report it.
case "$(field mps-a mps)$(field mps-b mps)$(field without-a mps)$(field without-b mps)" in
1100 | -1-1-1-1) bad=0 ;;
*) bad=1 ;;
esac
ok $bad "clients of MPS: $(field mps-a mps) $(field mps-b mps), without: $(field without-a mps) $(field without-b mps)"

alone=$(longer alone-a alone-b)
for i in mps without; do
	together=$(longer $i-a $i-b)
	ratio=$(awk "BEGIN { printf \"%.3f\", ${together:-0} / ${alone:-1} }" </dev/null)
	echo "$i: together $together s, the longer alone $alone s: $ratio" >>"$out/concurrency.txt"
	case $i in
	mps) holds "$ratio > 0.9 && $ratio <= 1.1" ;;
	*) holds "$ratio >= 1.8" ;;
	esac
	ok $? "$i: $together s together, $alone s the longer alone: $ratio ($([ $i = mps ] && echo 'at most 1.1' || echo 'at least 1.8'))"
done
echo "1..$nr"
exit $failed
