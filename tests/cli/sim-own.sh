#!/bin/sh
# SPDX-License-Identifier: MIT
# gpupart sim: scenarios of a reader's own, with what a stranger would expect of them: events
# recorded twice, several GPUs, processes, a run that is stopped, expectations.
. "$(dirname "$0")/tap.subr"

# own WORDS: the scenario on stdin runs and all that it expects holds.
own() {
	cat >"$tmp/own.yaml"
	timeout 60 "$gpupart" sim "$tmp/own.yaml" --json >"$tmp/own.json" 2>"$tmp/err" </dev/null
	is "$?$(cat "$tmp/err")" 0 "$1"
	jq -r '.expect[] | select(.holds | not) | "# " + .text + ": " + .found' "$tmp/own.json"
	text=$("$gpupart" sim "$tmp/own.yaml" 2>&1)
}

# bad PART WORDS: the one on stdin is refused in a line with PART in it.
bad() {
	cat >"$tmp/own.yaml"
	timeout 60 "$gpupart" sim "$tmp/own.yaml" >"$tmp/out" 2>"$tmp/err" </dev/null
	is "$? $(wc -l <"$tmp/err") $(wc -c <"$tmp/out")" "2 1 0" "$2: refused, one line"
	has "$(cat "$tmp/err")" "$1" "$2"
}

# field FILTER: of the scenario that was run last.
field() {
	jq -c "$1" "$tmp/own.json"
}

# ------------------------------------------------------------------------------ events
own "a wait is for its own record, though a later one is done earlier" <<'END'
gpu: h200
kernels: { slow: { blocks: 66, time: 1ms }, fast: { time: 1us }, after: { time: 1us }, late: { time: 1us } }
streams: { S: { set: 0-32 }, T: { set: 33-60 }, U: { set: 61-63 }, V: { set: 64-65 } }
programs:
  main:
    - { launch: slow, on: S }
    - { record: E, on: S }
    - { wait: E, on: U }
    - { launch: after, on: U }
    - { record: E, on: T }
    - { wait: E, on: V }
    - { launch: late, on: V }
    - { sync: all }
expect: [ after.start > slow.end, late.start < 0.1ms ]
END
own "and so is the CPU's" <<'END'
gpu: h200
kernels: { slow: { blocks: 66, time: 1ms } }
streams: { S: { set: 0-32 }, T: { set: 33-60 } }
programs:
  main:
    - { launch: slow, on: S }
    - { record: E, on: S }
    - { await: E }
  other: { start: 10us, steps: [ { record: E, on: T }, { await: E } ] }
expect: [ main.end > 1ms, other.end < 0.1ms ]
END
tap_done
