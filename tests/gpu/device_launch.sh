#!/bin/sh
# SPDX-License-Identifier: MIT
# run --no-device-launch on one GPU, in seconds: as root or not, after make, with a C compiler.
# TAP on stdout; if OUT is set, each run's output is stored in that folder. No kernel launches
# another: the kernel here only has a name as if it did. GPUPART_RUN_ARGS="-i sample:h200-e" runs
# it on the simulated GPU, where kernels have no output.
root=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
: "${BUILD:=$root/build}"
gpupart=$BUILD/bin/gpupart
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
keep=${OUT:-$tmp}
mkdir -p "$keep"
nr=0 bad=0
# shellcheck disable=SC2086 # words
run() {	# NAME ARGS: sets $status, $did, $ran
	name=$1
	shift
	timeout -k 5 60 "$gpupart" run $GPUPART_RUN_ARGS -t 0-7 "$@" -- "$tmp/prog" \
		>"$keep/device-launch-$name.out" 2>"$keep/device-launch-$name.err" </dev/null
	status=$?
	err=$keep/device-launch-$name.err
	did=" $(grep '=' "$keep/device-launch-$name.out") "
	ran=$(sed -n 's/^ran //p' "$keep/device-launch-$name.out")
}
ok() {	# STATUS WORDS
	nr=$((nr + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $nr - $2"
	else
		bad=1
		echo "not ok $nr - $2"
		echo "# status $status, did$did, ran $ran"
		sed 's/^/# /' "$err"
	fi
}
is() { [ "$1" = "$2" ]; ok $? "$3${1:+: $1}"; }
did() { # WORD LABEL
	case $did in
	*" $1 "*) ok 0 "$2: $1" ;;
	*) ok 1 "$2: $1" ;;
	esac
}
case $GPUPART_RUN_ARGS in
*-i*) all="0 0" none="0 0" ;;
*) all="5 4" none="4 0" ;;
esac

${CC:-cc} -o "$tmp/prog" "$root/tests/gpu/device_launch_prog.c" -ldl || exit 77
for lazily in LAZY EAGER; do
	export CUDA_MODULE_LOADING=$lazily
	run "$lazily"
	is "$status $(echo "$did" | grep -c "=[1-9-]")" "0 0" "$lazily, not refused: each call succeeds"
	is "$ran" "$all" "$lazily: each launch ran"
	grep -q "4 launches started kernels that can launch further kernels from the GPU" "$err"
	ok $? "$lazily: the driver's binaries have the name: 4 launches are counted"
	run "$lazily-refused" --no-device-launch
	is "$status" 0 "$lazily, --no-device-launch: the program's status"
	did module=800 "$lazily: the module is refused"
	case $did in
	*" library=0 "*)
		did launch=800 "$lazily: the library's kernel is refused at its launch"
		did again=800 "$lazily: and at the next"
		did by-function=800 "$lazily: and by its function"
		did graph-beside=800 "$lazily: graphs are refused while it is there"
		did unload=0 "$lazily: it can be unloaded"
		;;
	*) did library=800 "$lazily: the library is refused" ;;
	esac
	did graph=0 "$lazily: a graph without it is launched"
	is "$(echo "$did" | grep -o 'plain=0\|graph=0\|sync=0' | wc -l)" 5 "$lazily: all else works"
	is "${ran%% *}" "${none%% *}" "$lazily: the program's own kernel ran each time"
	is "${ran##* }" 0 "$lazily: the refused one did not run"
	grep -q "with kernel fake_LaunchDevice .* refused" "$err"
	ok $? "$lazily: run names it: $(grep refused "$err" | cut -d : -f 2)"
done
echo "1..$nr"
exit $bad
