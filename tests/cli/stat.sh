#!/bin/sh
# SPDX-License-Identifier: MIT
# gpupart stat on the simulated GPU, whose clock is the host's for it: counts, verdicts,
# how the program ends, sets, processes, and what cannot be measured.
. "$(dirname "$0")/tap.subr"
GPUPART_SIM_FAULTS=host-clock
export GPUPART_SIM_FAULTS
prog=$BUILD/tests/gpu-stat_prog
sim="-i tests/data/gh100-h200-b/capture.txt"
if ! python3 -c '' 2>/dev/null; then
	skip "no python3"
	tap_done
fi
if emulated "takes ten times as long as what is measured: stat"; then
	tap_done
fi
# ask EXPRESSION: of the JSON d in $tmp/json.
ask() {
	python3 -c "
import json, sys
d = json.load(open(sys.argv[1]))
t = d['total']; s = d['shares']
print($1)" "$tmp/json"
}
# measure ARGS: stat --json of them into $tmp/json, apart from what the program prints.
measure() {
	rm -f "$tmp/json"
	# shellcheck disable=SC2086 # several words
	try stat $sim --json -o "$tmp/json" "$@"
}

# measure_until EXPRESSION ARGS: until it is true, and stat has left no launch out, as it does where
# the host has other things to do while the program launches: then it is not known what the GPU did.
measure_until() {
	wanted=$1
	shift
	for _ in $(seq 20); do
		measure "$@"
		[ "$(ask "$wanted and not sum(g['untimed'] for p in d['processes'] for g in p['gpus'])")" = True ] && break
	done
}
measure_whole() {
	measure_until True "$@"
}
# measure_deep NR ARGS: of a program that has more than NR launches in the queue at once. A loaded
# machine is late with some of them, and the GPU has nothing to do: it is measured again.
measure_deep() {
	deep="s['depth_max'] > $1 and s['starved'] < 0.1"
	shift
	measure_until "$deep" "$@"
}

measure -- "$prog" host 300
is "$status$out$err" 0 "a program with work on the host: its status, and nothing else is printed"
is "$(ask '[d["schema"], d["command"], d["simulated"], d["verdict"]]')" \
	"['gpupart/1', 'stat', True, 'CPU-bound']" "it is CPU-bound"
is "$(ask '[t["kernels"], t["graphs"], t["fills"], t["waits"], d["status"], d["signal"]]')" \
	"[300, 0, 0, 1, 0, None]" "its launches and its wait are counted"
# A loaded machine makes the host slower, and so the GPU less busy.
is "$(ask '0 < s["busy"] < 0.3 and s["starved"] > 0.6 and s["depth_median"] == 0')" True \
	"a tenth of the time at most the GPU is busy, and its queue is empty"
is "$(ask '"more work before each wait" in d["advice"][0] and len(d["advice"]) == 1')" True "and there is advice"
is "$(ask '[len(d["processes"]), d["processes"][0]["name"], d["processes_left_out"]]')" \
	"[1, 'gpu-stat_prog', 0]" "one process"
measure -- "$prog" wait 300
is "$(ask '[d["verdict"], t["kernels"], t["waits"]]')" "['CPU-bound', 300, 300]" \
	"a wait after each tiny kernel: CPU-bound"

# As many as a queue holds. What the CPU does is only known where most of them were in it at once.
measure_deep 400 -- "$prog" deep 500
is "$(ask '[d["verdict"], t["kernels"], d["advice"][0].startswith("its speed depends")]')" \
	"['GPU-bound', 500, True]" "500 kernels of 1 ms queued at once: GPU-bound"
is "$(ask 's["busy"] > 0.95 and s["depth_max"] > 150 and s["depth_median"] > 50')" True \
	"its queue is deep"
is "$(ask 's["cpu_waits"] > 0.8 and 0.475 < d["processes"][0]["gpus"][0]["busy_seconds"] < 0.625')" \
	True "busy for as long as the kernels take, and the CPU waits"

measure_deep 200 -- "$prog" poll 300
is "$(ask '[d["verdict"], t["queries"] > 10, t["waits"], s["cpu_waits"] > 0.6]')" \
	"['GPU-bound', True, 0, True]" "who asks again and again waits"

measure_whole -- "$prog" late_wait 300
is "$(ask 'd["span_seconds"] > 0.6 and s["busy"] * d["span_seconds"] < 0.4 and s["starved"] > 0.4')" True \
	"after its last kernel it works on the host, and waits: the GPU has nothing to do"

measure_deep 90 -- "$prog" graph 100
is "$(ask '[d["verdict"], t["kernels"], t["graphs"]]')" "['GPU-bound', 0, 100]" \
	"graphs are counted, and what is captured is not"
is "$(ask '0.09 < d["processes"][0]["gpus"][0]["kernels_seconds"] < 0.14')" True \
	"graphs are timed: 100 of 1 ms"

measure -- "$prog" fetch 40
is "$(ask '[t["copies"]["from_gpu"], t["kernels"], t["waits"]]')" \
	"[{'count': 40, 'bytes': 40960}, 40, 40]" "copies by direction, with their bytes and waits"

measure_deep 44 -- "$prog" long_threads 30
is "$(ask '[d["verdict"], t["kernels"], t["waits"]]')" "['GPU-bound', 60, 2]" "two threads"
measure_deep 200 -- "$prog" contexts 300
is "$(ask '[d["verdict"], t["kernels"], sum(g["timed"] for g in d["processes"][0]["gpus"])]')" \
	"['GPU-bound', 600, 600]" "a context, its end, and another: all of it is timed"

GPUPART_SIM_FAULTS=host-clock,reuse-contexts
measure_deep 40 -- "$prog" contexts 50
is "$(ask '[d["verdict"], t["kernels"], [g["timed"] for g in d["processes"][0]["gpus"]]]')" \
	"['GPU-bound', 100, [50, 50]]" "also where the other one is at the same address"
GPUPART_SIM_FAULTS=host-clock

# ---------------------------------------------------------------- how it ends
measure -- "$prog" deep 20 7
is "$status $(ask '[d["status"], t["kernels"]]')" "7 [7, 20]" "the program's status"
measure -- "$prog" deep 20 _exit
is "$status $(ask 't["kernels"]')" "0 20" "_exit: counts are there"
measure -- "$prog" deep 20 kill
is "$status $(ask '[d["signal"], t["kernels"]]')" "137 [9, 20]" \
	"a signal that cannot be caught: 128 and its number; counts are there"
measure_deep 20 -- "$prog" leave 30
is "$status $(ask '[t["kernels"], t["unresolved"], d["verdict"]]')" "0 [30, 0, 'GPU-bound']" \
	"it ends without waiting: what still ran is waited for"
measure -- "$prog" deep 20 nothing
is "$status $(ask '[d["verdict"], d["why"], d["processes"]]')" \
	"0 ['no CUDA call', 'the program made no CUDA call', []]" "a program without CUDA"
try stat $sim -- sh -c 'echo printed; exit 3'
is "$status" 3 "text: the program's status"
is "$out" "printed" "what the program prints comes through, alone"
has "$err" "no CUDA call: the program made no CUDA call" "and the text on stderr"
has "$err" "simulated" "which says simulated"

"$gpupart" stat $sim -o "$tmp/text" -- sh -c 'echo >"$0"; exec sleep 60' "$tmp/begun" &
pid=$!
for _ in $(seq 300); do
	[ -s "$tmp/begun" ] && break
	sleep 0.1
done
kill -TERM $pid
wait $pid
is "$?" 143 "SIGTERM reaches the program"
has "$(cat "$tmp/text")" "ended by signal 15" "and it is told"

# ------------------------------------------------------------------------- sets
measure_deep 10 -n 8 -- "$prog" deep 20
is "$status $(ask '[d["set"]["nr_tpcs"], len(d["set"]["list"]) > 0, d["verdict"]]')" "0 [8, True, 'GPU-bound']" \
	"in a set: its TPCs are counted"
if ${CC:-cc} -o "$tmp/census" tests/cli/census.c -ldl 2>/dev/null; then
	try stat $sim -t 0,5 -o "$tmp/text" -- "$tmp/census" lib/confine/probe.ptx 0
	is "$out" "0 1 10 11" "in a set it is confined"
	has "$(cat "$tmp/text")" "on TPCs 0,5" "and the set is told"
	has "$(cat "$tmp/text")" "from it 1 (96.0 KiB)" "its copy is counted"
	try run $sim -t 4 -- "$gpupart" stat -o "$tmp/text" -- "$tmp/census" lib/confine/probe.ptx 0
	is "$out" "8 9" "inside a run: that run's set"
	has "$(cat "$tmp/text")" "1 kernels" "and it is measured"
	try stat $sim -o "$tmp/text" -- "$gpupart" run -t 3 -- "$tmp/census" lib/confine/probe.ptx 0
	is "$out" "6 7" "a run inside stat"
	has "$(cat "$tmp/text")" "1 kernels" "is measured, without the run's own check"
else
	skip "no C compiler"
fi

# -------------------------------------------------------------------- processes
# On a loaded machine one may begin when the other has nearly ended: then they are measured again.
for _ in 1 2 3 4 5 6 7 8; do
	measure_deep 200 -- "$prog" deep 300 two
	[ "$(ask 'd["span_seconds"] < 1.15 * max(g["stretches_seconds"] for p in d["processes"] for g in p["gpus"])')" = True ] && break
done
is "$status $(ask '[len(d["processes"]), t["kernels"], sorted(p["kernels"] for p in d["processes"])]')" \
	"0 [2, 600, [300, 300]]" "two processes: a row each, and their sum"

is "$(ask '0.02 < d["span_seconds"] <= d["seconds"] and s["busy"] <= 1 and s["starved"] + s["held"] < 0.2')" True \
	"at once, so no longer than the program took, and a GPU is busy once"
# On a loaded machine they may run one after the other.
measure_until "s['busy'] > 1.5 * max(p['gpus'][0]['busy_seconds'] for p in d['processes']) / d['span_seconds']" \
	-- sh -c "for i in 1 2 3 4; do $prog host 300 & done; wait"
is "$(ask '[len(d["processes"]), t["kernels"], d["span_seconds"] <= d["seconds"], d["launches_per_second"] >= 1200 / d["seconds"]]')" \
	"[4, 1200, True, True]" "four at once: launches a second by the clock on the wall"
is "$(ask 'abs(s["busy"] + s["starved"] + s["held"] - 1) < 0.01 and
	s["busy"] > 1.5 * max(p["gpus"][0]["busy_seconds"] for p in d["processes"]) / d["span_seconds"]')" \
	True "what they have of the GPU adds up"
measure_whole -- sh -c "$prog deep 100; $prog host 300"
# The GPU has 106 ms to do, however long the host takes for its part of it: a process's idle time is
# no other's.
is "$(ask 'len(d["processes"]) == 2 and d["span_seconds"] > 0.15 and s["busy"] * d["span_seconds"] > 0.09 and
	abs(s["busy"] * d["span_seconds"] - sum(p["gpus"][0]["busy_seconds"] for p in d["processes"])) <
	0.02 * d["span_seconds"] + t["measuring_seconds"]')" True \
	"one after the other: each counts for its time"

# One inside another: nobody would be measured.
try stat $sim -- "$gpupart" stat -- "$prog" deep 3
is "$status" 125 "stat inside stat is refused"
has "$err" "what runs here is measured by another gpupart stat already" "and why"
GPUPART_STAT=/proc/1/fd/9 "$gpupart" stat $sim -- "$prog" deep 3 >"$tmp/out" 2>&1
is "$? $(grep -c "[^0-9]3 kernels" "$tmp/out")" "0 1" "but not by the name of one that has ended"

# ------------------------------------------------------------------- intervals
# Intervals after the one with the launches, where it is known what the GPU did: a loaded machine
# may have the program begin later, and what is asked for come too late for one of them. All kernels
# fit into the queue: a launch that waits for room may come while stat does not look at launches,
# and where it is the last, nothing is known of what follows.
running='[i for n, i in enumerate(d["intervals"]) if i["busy"] is not None and not i["launches"] and any(b["launches"] for b in d["intervals"][:n])][:3]'
measure_whole --interval 0.1 -- "$prog" long_poll 200
is "$(ask "(lambda seen: len(seen) >= 2 and all(i['busy'] > 0.9 for i in seen))($running)")" True \
	"--interval: as it runs"
for _ in 1 2 3 4 5 6 7 8; do
	try stat $sim --interval 0.1 -o "$tmp/text" -- "$prog" deep 500
	grep -q '500 of 500 launches' "$tmp/text" && break
done
has "$err" "launches/s, GPU busy 100.0%" "--interval: lines on stderr"

# Long enough that intervals are left where a loaded machine is late with the launches.
measure_whole --interval 0.1 -- "$prog" long 200
is "$(ask "(lambda seen: len(seen) >= 2 and all(i['busy'] > 0.9 for i in seen) and sum(i['wait_seconds'] for i in seen) > 0.05 * len(seen))($running)")" \
	True "in one long wait: what the GPU has done, and that the CPU waits"
is "$(ask '0.3 < sum(i["wait_seconds"] for i in d["intervals"]) <= t["wait_seconds"] + 0.01')" True \
	"no more than in the end"
# The long kernel comes while stat does not look at launches, most times.
for _ in 1 2 3 4 5 6 7 8; do
	measure --interval 0.1 -- "$prog" fast_then_long 800
	[ "$(ask 'd["processes"][0]["gpus"][0]["untimed"] > 0')" = True ] && break
done
is "$(ask '[i["busy"] for n, i in enumerate(d["intervals"][:-1]) if not i["launches"] and any(b["launches"] for b in d["intervals"][:n])].count(0)')" \
	0 "a kernel runs whose time is not taken: the GPU is not said to be idle"
measure --interval 0.1 -- sh -c "$prog deep 150; sleep 0.5"
is "$(ask '[i["busy"] for i in d["intervals"]][-1]')" 0.0 "after its process an interval is idle"

# ------------------------------------------------------- what cannot be measured
GPUPART_SIM_FAULTS=host-clock,tmd-version=0x41
measure_deep 10 -- "$prog" deep 20
is "$status $(ask '[d["verdict"], t["kernels"]]')" "0 ['GPU-bound', 20]" \
	"a TMD that is not known is no hindrance"
GPUPART_SIM_FAULTS=host-clock,no-api
measure -- "$prog" deep 20
is "$status $(ask '[d["verdict"], d["processes_left_out"]]')" "0 ['not measured', 1]" \
	"a driver that tells of no functions: the program runs"
has "$err" "gpupart: this program is not measured: this driver does not tell of its functions" \
	"and says why it is not measured"
GPUPART_SIM_FAULTS=host-clock
GPUPART_DISABLE=1
export GPUPART_DISABLE
try stat $sim -- "$prog" deep 20 5
is "$status$out" 5 "GPUPART_DISABLE=1: run untouched"
has "$err" "is not measured" "and it says so"
unset GPUPART_DISABLE

# -------------------------------------------------------------------- bad input
refused 125 "no program" stat
refused 125 "''" stat -- ''
refused 125 "'x'" stat --interval x -- true
refused 125 "'0'" stat --interval 0 -- true
refused 125 "'nan'" stat --interval nan -- true
refused 125 "$tmp/none/file" stat $sim -o "$tmp/none/file" -- "$prog" deep 1
refused 125 "99" stat $sim -t 99 -- true
refused 127 "$tmp/none" stat $sim -- "$tmp/none"
refused 126 "$tmp/text" stat $sim -- "$tmp/text"
tap_done
