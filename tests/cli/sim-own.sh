#!/bin/sh
# SPDX-License-Identifier: MIT
# gpupart sim: scenarios of this test, with the results that a reader would expect: events recorded
# twice, several GPUs, processes, a run that is stopped, expectations.
. "$(dirname "$0")/tap.subr"

# own WORDS: the scenario on stdin runs and meets all its expectations.
own() {
	cat >"$tmp/own.yaml"
	timeout 60 "$gpupart" sim "$tmp/own.yaml" --json >"$tmp/own.json" 2>"$tmp/err" </dev/null
	is "$?$(cat "$tmp/err")" 0 "$1"
	jq -r '.expect[] | select(.holds | not) | "# " + .text + ": " + .found' "$tmp/own.json"
	text=$("$gpupart" sim "$tmp/own.yaml" 2>&1)
}

# bad PART WORDS: the scenario on stdin is refused in a line with PART in it.
bad() {
	cat >"$tmp/own.yaml"
	timeout 60 "$gpupart" sim "$tmp/own.yaml" >"$tmp/out" 2>"$tmp/err" </dev/null
	is "$? $(wc -l <"$tmp/err") $(wc -c <"$tmp/out")" "2 1 0" "$2: refused, one line"
	has "$(cat "$tmp/err")" "$1" "$2"
}

# field FILTER: of the JSON of the last scenario.
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

# A cycle of 40 streams with long names: it does not fit into a line.
awk 'BEGIN {
	print "gpu: h200\nstreams:"
	for (i = 0; i < 40; i++) print "  a_stream_whose_name_is_long_" i ": {}"
	print "programs:\n  main:"
	for (i = 0; i < 40; i++) {
		print "    - { wait: an_event_whose_name_is_long_" (i + 1) % 40 ", on: a_stream_whose_name_is_long_" i " }"
		print "    - { record: an_event_whose_name_is_long_" i ", on: a_stream_whose_name_is_long_" i " }"
	}
}' >"$tmp/own.yaml"
try sim "$tmp/own.yaml"
is "$status $(wc -l <"$tmp/err")" "1 1" "a deadlock of 40 streams: one line"
is "$(grep -c 'event an_event_whose_name_is_long_[0-9]*; and so on; and so back to stream a_stream_whose_name_is_long_[0-9]*$' "$tmp/err")" 1 \
	"and what does not fit is left out from link to link"

# ------------------------------------------------------------------------------ graphs
own "a graph: who comes after whom" <<'END'
gpu: h200
kernels: { A: { time: 10us }, B: { time: 20us }, C: { time: 1us }, D: { time: 1us }, E: { time: 1us } }
graphs:
  G:
    - { node: a, kernel: A }
    - { node: b, kernel: B }
    - { node: c, kernel: C, after: [a, a] }
    - { node: d, kernel: D, after: [b, c] }
    - { kernel: E, after: [a, d] }
streams: { S: {} }
programs: { main: [ { graph: G, on: S }, { sync: S } ] }
expect: [ B.start < A.end, C.start > A.end, C.end < B.end, D.start > B.end, E.start > D.end ]
END
bad ":3: after: there is no node ''" "a node without a name has none" <<'END'
gpu: h200
kernels: { K: { time: 1us } }
graphs: { G: [ { kernel: K }, { kernel: K, after: [''] } ] }
programs: {}
END
# This took minutes when each completion searched all nodes.
awk 'BEGIN {
	print "gpu: h200\nkernels: { K: { time: 1us } }\ngraphs:\n  G:"
	for (i = 0; i < 2000; i++) {
		print "    - { node: a" i ", kernel: K }"
		list = list (i ? ", a" : "a") i
	}
	for (i = 0; i < 2000; i++)
		print "    - { kernel: K, after: " (i ? "*all" : "&all [" list "]") " }"
	print "streams: { S: {} }\nprograms: { main: [ { repeat: 10, do: [ { graph: G, on: S } ] }, { sync: S } ] }"
	print "expect: [ K.launches = 40000 ]"
}' >"$tmp/dense.yaml"
own "a graph of 4000 nodes, 2000 of them after all others" <"$tmp/dense.yaml"

# ----------------------------------------------------------------------------- contention
own "wave after wave, DRAM is read as fast as it is: 100 waves of 2112 blocks, 4.75 TB/s" <<'END'
gpu: h200
kernels: { K: { blocks: 211200, threads: 128, reads: 100K } }
streams: { S: {} }
programs: { main: [ { launch: K, on: S }, { sync: S } ] }
expect: [ K.time > 4.55ms, K.time < 4.6ms ]
END

# --------------------------------------------------------------------- a stopped run
own "a stopped run counts what was under way" <<'END'
gpu: h200
kernels: { K: { blocks: 132, time: 10ms } }
streams: { S: {} }
programs: { main: [ { launch: K, on: S }, { launch: K, on: S }, { copy: 1G, to: host, on: S }, { sync: S } ] }
stop: 15ms
expect: [ gpu.busy > 14.9ms, gpu.idle < 0.1ms, K.launches = 1, main.sync > 14.9ms ]
END
has "$text" "busy 14.99" "stopped: text has the GPU busy to the end"
has "$text" "SMs 100 %" "stopped: all SMs"
has "$text" "program main: had not ended; waited 14.99" "stopped: a program that had not ended"
has "$text" "GPU-bound" "stopped: and waited for the GPU"
is "$(field '.runs[0].programs[0].end_ns')" null "stopped: JSON has no end of it"
own "a stopped copy counts as far as it came" <<'END'
gpu: h200
streams: { S: {} }
programs: { main: [ { copy: 1G, to: host, on: S }, { sync: S } ] }
stop: 1ms
END
is "$(field '.runs[0].gpus[0].copy_ns > 990000')" true "stopped: of a copy"
cat >"$tmp/own.yaml" <<'END'
gpu: h200
kernels: { K: { time: 10ms }, never: { time: 1us } }
streams: { S: {} }
programs: { main: [ { launch: K, on: S }, { sync: S } ] }
stop: 1ms
expect: [ main.end < 1ms, main.end > 1ms, never.start < 1us, never.time = 0ns, never.total = 0ns, copies.end < 1s ]
END
try sim "$tmp/own.yaml" --json
is "$status $(jq -c '[.expect[].holds]' "$tmp/out")" "1 [false,false,false,false,true,false]" \
	"nothing holds of a time that never came"
has "$(jq -r '.expect[2].found' "$tmp/out")" "never < 1.000 us" "and the output says so"
is "$(jq -c '.runs[0].kernels[1].start_ns' "$tmp/out")" null "a kernel that was not launched has no start"

# --------------------------------------------------------------------------- several GPUs
own "two GPUs: SMs and time of both" <<'END'
gpus: [ { name: big, chip: h200 }, { name: small, chip: gtx1060 } ]
kernels: { K: { blocks: 200, time: 1ms }, L: { blocks: 9, time: 1ms } }
streams: { S: { gpu: small }, T: { gpu: big }, U: { gpu: small } }
programs: { main: [ { launch: K, on: S }, { launch: K, on: T }, { sync: all }, { launch: L, on: U }, { sync: all } ] }
expect: [ K.sms = 141, L.sms = 9, gpu.busy < 3.1ms, gpu.busy > 2ms, gpu.idle < 0.1ms ]
END
is "$(field '[.runs[0].kernels[] | [.nr_sms, .gpus]]')" \
	'[[141,[{"gpu":0,"sms":"0-131"},{"gpu":1,"sms":"0-8"}]],[9,[{"gpu":1,"sms":"0-8"}]]]' "two GPUs: JSON has whose SMs"
is "$(field '[.runs[0].gpus[].name]')" '["big","small"]' "two GPUs: and their names"
has "$text" "SMs of big  0-131" "two GPUs: text"
bad ":1: gpus: GPU number 2 has no name" "a GPU that cannot be named" <<'END'
gpus: [ { name: a, chip: h200 }, h200 ]
programs: {}
END
own "slices: SMs are idle while their process has not the GPU" <<'END'
gpu: h200
kernels: { K: { blocks: 132, time: 20ms } }
streams: { S: { process: a }, T: { process: b } }
programs:
  a: { process: a, steps: [ { launch: K, on: S }, { sync: all } ] }
  b: { process: b, steps: [ { launch: K, on: T }, { sync: all } ] }
END
try sim "$tmp/own.yaml" --of svg
has "$out" "Processes use the GPU in turn: a box continues while its process waits" "slices: the picture says what a box is"
is "$(field '.runs[0].gpus[0] | .sm_ns <= 132 * .busy_ns')" true "slices: no more SMs than there are"

# --------------------------------------------------------------------- limits of a chip
# CUDA's programming guide: 48 KiB per block for compute capability 6.x, half of an SM's memory.
for chip in gtx1060 p100; do
	bad ":5: kernel K: a block with 49153 bytes of shared memory fits on no SM of the $chip, which allows 49152 bytes" \
		"more shared memory than a block of the $chip has" <<END
gpu: $chip
kernels: { K: { shared: 49153, time: 1us } }
streams: { S: {} }
programs:
  main: [ { launch: K, on: S } ]
END
	own "as much as it has" <<END
gpu: $chip
kernels: { K: { shared: 48K, time: 1us } }
streams: { S: {} }
programs: { main: [ { launch: K, on: S } ] }
END
done

# ------------------------------------------------------------------------------ processes
bad ":1: slice: 1ns is too short: a switch between processes takes 100us" "a slice that would take for ever" <<'END'
gpu: { chip: h200, slice: 1ns }
programs: {}
END
bad ":5: on: stream S belongs to process p, but program main belongs to process main" "another process's stream" <<'END'
gpu: h200
kernels: { K: { time: 1us } }
streams: { S: { process: p } }
programs:
  main: [ { repeat: 2, do: [ { launch: K, on: S } ] } ]
END
bad ":4: sync: stream S belongs to process p, but program main belongs to process q" "waiting for another process's stream" <<'END'
gpu: h200
streams: { S: { process: p } }
programs:
  main: { process: q, steps: [ { sync: S } ] }
END
bad ":4: set: GPC 99 does not exist: the GPU has 8" "a GPC that is not there among others" <<'END'
gpu: h200
kernels: { K: { time: 1us } }
streams:
  S: { set: "gpc:1,99" }
programs: {}
END
bad ":3: set: uGPU 2 does not exist: the GPU has 2" "a uGPU that is not there" <<'END'
gpu: h200
streams:
  S: { set: "ugpu:0-2" }
programs: {}
END

# ---------------------------------------------------------------------------- expectations
expects() {
	cat <<'END'
gpu: h200
runs: { short: { time: 1ms, most: 1.1ms }, long: { time: 3ms, most: 3.1ms } }
kernels: { K: { time: $time } }
streams: { S: {} }
programs: { main: [ { launch: K, on: S }, { sync: S } ], K: [] }
expect:
END
}
# told PART TEXT: the expectation is refused with PART.
told() {
	{ expects; echo "  - $2"; } >"$tmp/told.yaml"
	bad ":7: expect: cannot read '$2': $1" "$2" <"$tmp/told.yaml"
}
told "a time cannot be compared with a number" "main.end < 5"
told "a time cannot be compared with a number" "K.sms = 132ns"
told "there is no kernel or program 'Q'" "Q.end < 5ms"
told "main has no 'speed'" "main.speed < 5"
told "a kernel and a program are named 'K'" "K.end < 5ms"
told "there is no run 'middle'" "middle/main.end < 5ms"
{ expects; echo '  - main.end < $least'; } >"$tmp/told.yaml"
bad ":7: expect: '\$least': this variable is not defined" "a variable that is not there" <"$tmp/told.yaml"
told "an expectation must have one of < <= > >= = between two values" "main.end"
told "'5 5': must be a number, a time or NAME.WHAT" "main.end < 5 5"
{ expects; echo "  - main.end < \$most"; echo "  - short/main.end < 1.1ms"; echo "  - K.launches = 1"; } >"$tmp/told.yaml"
own "an expectation has each run's variables, and equal names that differ in what they have" <"$tmp/told.yaml"
is "$(field '.expect[0].found')" '"3.007 ms < 3.100 ms"' "with the numbers of the last"
{ expects; echo "  - main.end < 2ms"; echo "  - short/main.end < 1us"; } >"$tmp/own.yaml"
try sim "$tmp/own.yaml" --run long --json
is "$status $(jq -c '[.expect[] | [.text, .holds]]' "$tmp/out")" '1 [["main.end < 2ms",false]]' \
	"--run: what is expected of that run, and not of others"
try sim "$tmp/own.yaml" --run short
is "$status $(grep -c holds "$tmp/out") $(grep -c FAILS "$tmp/out")" "1 1 1" "--run: and of the other"
{ expects; echo "  - main.end <"; } >"$tmp/own.yaml"
try sim "$tmp/own.yaml" --run short
is "$status" 2 "--run: what cannot be read is refused there too"

# ------------------------------------------------------------------------------- text
own "about: of several lines" <<'END'
title: A title
about: |
  first line
  second line

  last line
gpu: h200
programs: { main: [] }
END
is "$(printf '%s\n' "$text" | head -4 | tr '\n' '|')" " A title| first line| second line| last line|" "all lines are shown"

# -------------------------------------------------------------------------- JSON output
try sim figure-12 --json
is "$(jq -c '[.runs[] | [([.launches[].evicted] | add), ([.kernels[].evicted] | add), .launches_left_out]]' "$tmp/out" | tr -d ' ')" \
	'[[0,0,0],[1,1,0]]' "JSON: evictions of launches are those of kernels"
try sim million --json
is "$(jq -c '.runs[0] | [(.launches | length), .launches_left_out]' "$tmp/out")" '[10000,990000]' "JSON: how many launches are left out"
tap_done
