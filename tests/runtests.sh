#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs TAP tests (programs or scripts, as arguments), each with a time limit, and adds them up. A
# test that dies, hangs or prints no plan counts as one failure; exit status 77 as one skipped
# check. Prints the failures, then the totals. Environment variables of CUDA, gpupart and the
# simulated driver are removed, except with TEST_ENVIRONMENT=keep (tests on a GPU). TEST_JOBS
# tests run at a time (1), each in a separate run of this script whose output is shown at its end.
# With TEST_APART=1 they get separate pid namespaces and separate folders for shared files; if
# that is not possible, they run one at a time.
if [ "$1" = --apart ]; then
	shift
	mount -t tmpfs -o mode=1777 tmpfs /dev/shm && mkdir -p /run/gpupart &&
		mount -t tmpfs -o mode=755 tmpfs /run/gpupart && exec "$0" "$@"
	exit 1
fi
if [ "$TEST_ENVIRONMENT" != keep ]; then
	for name in $(env | sed -n 's/^\(CUDA_[A-Za-z0-9_]*\|GPUPART_[A-Za-z0-9_]*\)=.*/\1/p'); do
		unset "$name"
	done
	unset LD_PRELOAD NO_COLOR
fi
limit=${TEST_TIMEOUT:-600}
passed=0 failed=0 skipped=0
apart=
if [ "$TEST_APART" = 1 ]; then
	apart='unshare -mpf --kill-child --mount-proc'
	$apart mount -t tmpfs tmpfs /dev/shm 2>/dev/null || TEST_JOBS=1
fi
if [ "${TEST_JOBS:-1}" -gt 1 ]; then
	totals=$(mktemp) || exit 1
	trap 'rm -f "$totals"' EXIT INT TERM
	# shellcheck disable=SC2016
	printf '%s\n' "$@" | TEST_TOTALS=$totals APART=$apart xargs -d '\n' -n 1 -P "$TEST_JOBS" \
		sh -c 'said=$(TEST_APART="" TEST_JOBS=1 $APART "$0" ${APART:+--apart} "$1"); printf "%s\n" "$said" | sed "\$d"' "$0"
	while read -r p f s; do
		passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	done <"$totals"
	lost=$(($# - $(wc -l <"$totals")))
	[ $lost -eq 0 ] || echo "  $lost tests ended without their totals"
	failed=$((failed + lost))
	rm -f "$totals"
	set --
fi
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT INT TERM
for test in "$@"; do
	begun=$(date +%s)
	timeout -k 5 "$limit" "$test" >"$log" 2>&1
	status=$?
	took=$(($(date +%s) - begun))
	p=$(grep -c '^ok ' "$log")
	f=$(grep -c '^not ok ' "$log")
	s=$(grep -c '^ok .*# SKIP' "$log")
	p=$((p - s))
	why=
	if [ $status -eq 77 ]; then
		s=$((s + 1))
	elif [ $status -eq 124 ]; then
		why="no end after $limit s"
	elif ! grep -q "^1\.\.$((p + f + s))\$" "$log"; then
		why="ended with status $status without its plan"
	elif [ $status -ne 0 ] && [ $f -eq 0 ]; then
		why="status $status although no check failed"
	elif [ $((p + f + s)) -eq 0 ]; then
		why="checked nothing"
	fi
	[ -n "$why" ] && f=$((f + 1))
	printf '  %-34s %4d passed %3d failed %3d skipped %4d s%s\n' "$(basename "$test")" $p $f $s $took "${why:+  $why}"
	[ $f -gt 0 ] && { awk '/^#/ && n < 3 { print; n++; next } { n = 3 } /^not ok / { print; n = 0 }' "$log" | cut -c 1-500 | sed 's/^/      /'; [ -n "$why" ] && tail -n 20 "$log" | sed 's/^/      | /'; }
	grep '# SKIP' "$log" | sed 's/^.*# SKIP/      skipped:/'
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
done
# For a caller that adds up several runs.
[ -n "$TEST_TOTALS" ] && echo "$passed $failed $skipped" >>"$TEST_TOTALS"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
