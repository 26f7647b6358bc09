#!/bin/sh
# SPDX-License-Identifier: MIT
# The command when one of its allocations fails, in its own code or in a library: it either has
# the same result, or reports the error and exits with its own status. No signal ends it, and it
# prints no partial result. The first 40 allocations one by one, and then with growing distances.
# TAP.
# shellcheck source-path=SCRIPTDIR
. "$(dirname "$0")/tap.subr"
shim=$BUILD/tests/fail_alloc.so
emulated "runs no preloaded library of this kind" && tap_done

# walk ARGS: gpupart ARGS with one failure after the other.
walk() {
	try "$@"
	cp "$tmp/out" "$tmp/wanted"
	is "$status" 0 "gpupart $*: without a failure"
	at=1 tried=0 bad=
	while [ $at -lt 100000 ]; do
		rm -f "$tmp/mark"
		LD_PRELOAD=$shim FAIL_AT=$at FAIL_MARK=$tmp/mark "$gpupart" "$@" \
			>"$tmp/out" 2>"$tmp/err" </dev/null
		status=$?
		[ -e "$tmp/mark" ] || break
		tried=$((tried + 1))
		case $status in
		0)	cmp -s "$tmp/out" "$tmp/wanted" || [ -s "$tmp/err" ] || bad="$bad $at:another-output" ;;
		1 | 2 | 125)	[ -s "$tmp/err" ] || bad="$bad $at:says-nothing" ;;
		*)	bad="$bad $at:status-$status" ;;
		esac
		[ $at -lt 40 ] && at=$((at + 1)) || at=$((at + at / 12))
	done
	[ -z "$bad" ] && [ $tried -gt 3 ]
	ok $? "gpupart $*: $tried allocations failed, one at a time"
	[ -z "$bad" ] || echo "# wrong:$bad"
}

printf 'tenants:\n  a: {min: 8, gpcs: true, apart: [b]}\n  b: min=4,spread\n' >"$tmp/demands.yaml"
"$gpupart" qos sim share/scenarios/qos-steady.yaml --log "$tmp/log" >"$tmp/out" 2>&1
head -n 4 "$tmp/log" >"$tmp/short.log"

walk topology -i sample:h200
walk topology -i sample:h200 --json
walk plan -i sample:h200 -f "$tmp/demands.yaml"
walk plan -i sample:h200 -f "$tmp/demands.yaml" --json
walk plan -i sample:h200 -f "$tmp/demands.yaml" --of svg
walk sim share/scenarios/figure-3.yaml
walk qos replay "$tmp/short.log"
walk run -i sample:h200 -t 0-3 -- true
tap_done
