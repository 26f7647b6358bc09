#!/bin/sh
# SPDX-License-Identifier: MIT
# gpupart stat of a program on the simulated GPU with the clock of the host: counts from records,
# verdicts, how the program ends, sets, processes, and what cannot be measured.
. "$(dirname "$0")/tap.subr"
GPUPART_SIM_FAULTS=host-clock,host-thread
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
# ask EXPRESSION: evaluates it with the JSON d in $tmp/json and its first process p.
ask() {
	python3 -c "
import json, sys
d = json.load(open(sys.argv[1]))
p = d['processes'][0] if d['processes'] else None
k = p.get('kernels') if p else None
print($1)" "$tmp/json"
}
# measure ARGS: runs stat --json into $tmp/json, separate from the program's output.
measure() {
	rm -f "$tmp/json"
	# shellcheck disable=SC2086 # several words
	try stat $sim --json -o "$tmp/json" "$@"
}
# measure_until EXPRESSION ARGS: on a busy machine it is unknown when the program and the
# simulated GPU run, so shares of time are measured until the expression is true.
measure_until() {
	wanted=$1
	shift
	for _ in $(seq 20); do
		measure "$@"
		[ "$(ask "$wanted")" = True ] && break
	done
}

# ------------------------------------------------------------- counts and verdicts
measure_until 'd["verdict"] == "CPU-bound"' -- "$prog" host 1000
is "$status$out$err" 0 "a program with work on the host: its status, and nothing else is printed"
is "$(ask '[d["schema"], d["command"], d["simulated"], d["verdict"]]')" \
	"['gpupart/1', 'stat', True, 'CPU-bound']" "it is CPU-bound"
is "$(ask '[p["launches"], p["launches_ended"], p["graphs"], p["outstanding"], d["waits"], d["status"], d["signal"]]')" \
	"[1000, 1000, 0, 0, 1, 0, None]" "its launches and its wait are counted, all of them"
is "$(ask '[[(i["name"], i["count"], i["share"]) for i in k], p["missed"], k[0]["mean_seconds"]["most"] >= 20e-6]')" \
	"[[('gpupart_census', 1000, 1.0)], 0, True]" "its kernel: the name, and each launch"
is "$(ask '[d["busy"] == p["busy"], 0 < d["busy"]["least"] <= d["busy"]["most"] <= 0.5, d["wait_seconds"] < d["seconds"]]')" \
	"[True, True, True]" "half of the time at most the GPU is busy"
is "$(ask '"more work before each wait" in d["advice"][0] and len(d["advice"]) == 1')" True "and there is advice"
is "$(ask '[len(d["processes"]), p["name"], p["ended"], p["records"], d["processes_left_out"]]')" \
	"[1, 'gpu-stat_prog', True, True, 0]" "one process"

measure_until 'd["verdict"] == "GPU-bound" and 0.4 < d["wait_seconds"] and
	p["launches_per_second"] > 400 and k[0]["mean_seconds"]["most"] < 0.002' -- "$prog" deep 500
is "$(ask '[d["verdict"], p["launches"], d["advice"][0].startswith("a smaller partition makes it slower")]')" \
	"['GPU-bound', 500, True]" "500 kernels of 1 ms queued at once: GPU-bound"
is "$(ask '[p["busy"]["least"] >= 0.9, p["outstanding_max"] > 50, p["outstanding_mean"] > 10, k[0]["count"], 0.0009 < k[0]["mean_seconds"]["most"] < 0.002]')" \
	"[True, True, True, 500, True]" "busy all the time, its queue deep, the kernel's time"
is "$(ask '[0.4 < d["wait_seconds"] <= d["seconds"], 0.4 < p["seconds"] <= d["seconds"], 400 < p["launches_per_second"] < 1250]')" \
	"[True, True, True]" "the CPU waits; the time begins with the first launch"

measure_until '0.4 < p["busy"]["least"] and p["busy"]["most"] < 0.6' -- "$prog" late_wait 300
is "$(ask '[0.4 < p["busy"]["least"] <= p["busy"]["most"] < 0.6, p["seconds"] > 0.6]')" "[True, True]" \
	"after its last kernel it works on the host: the GPU has nothing to do, up to its end"

measure_until 'd["verdict"] == "GPU-bound" and
	sum(i["count"] * i["mean_seconds"]["most"] for i in k) < 0.6' -- "$prog" graph 500
is "$(ask '[d["verdict"], p["launches"], p["all_known"], [i["name"] for i in k]]')" \
	"['GPU-bound', 500, True, ['(CUDA graphs)']]" "graphs are counted and timed, and what is captured is not"
is "$(ask '0.45 < sum(i["count"] * i["mean_seconds"]["most"] for i in k) < 0.6')" True "500 of 1 ms"

measure -- "$prog" fetch 40
is "$(ask '[d["copies"]["from_gpu"], p["launches"], k[0]["count"], d["waits"]]')" \
	"[{'count': 40, 'bytes': 40960}, 40, 40, 40]" "copies by direction, with their bytes and waits"
# A program that waits each time is hardly GPU-bound, so its copies may dominate.
measure_until 'd["verdict"] != "GPU-bound"' -- "$prog" fetch 40
has "$(ask 'd["why"]')" "the rest may be copies (40), which are not timed" "of which it says that they are not timed"

measure -- "$prog" threads 100
is "$(ask '[p["launches"], k[0]["count"], d["waits"]]')" "[200, 200, 2]" "two threads"
measure -- "$prog" contexts 200
is "$(ask '[p["launches"], p["launches_ended"], k[0]["count"]]')" "[400, 400, 400]" \
	"a context, its end, and another"
GPUPART_SIM_FAULTS=host-clock,host-thread,reuse-contexts
measure -- "$prog" contexts 50
is "$(ask '[p["launches"], p["launches_ended"], k[0]["count"]]')" "[100, 100, 100]" \
	"also where the other one is at the same address"
GPUPART_SIM_FAULTS=host-clock,host-thread

# ---------------------------------------------------------------- how it ends
# However short the program is and however it ends: it started after stat had opened its records.
measure -- "$prog" deep 20 7
is "$status $(ask '[d["status"], p["launches_ended"], k[0]["count"], k[0]["name"]]')" \
	"7 [7, 20, 20, 'gpupart_census']" "the program's status"
measure -- "$prog" deep 1
is "$status $(ask '[p["launches_ended"], k[0]["count"]]')" "0 [1, 1]" "one launch"
measure -- "$prog" deep 20 _exit
is "$status $(ask '[p["launches_ended"], k[0]["count"], k[0]["name"]]')" "0 [20, 20, 'gpupart_census']" \
	"_exit: nothing is missing"
measure -- "$prog" deep 20 kill
is "$status $(ask '[d["signal"], p["launches_ended"], k[0]["count"], k[0]["name"], d["waits"]]')" \
	"137 [9, 20, 20, 'gpupart_census', 1]" \
	"a signal that cannot be caught: 128 and its number; nothing is missing"
measure_until 'p["busy"]["most"] > 0.99' -- "$prog" leave 300
is "$status $(ask '[p["launches"], p["launches_ended"] + p["outstanding"], p["outstanding"] > 0, d["waits"], p["busy"]["most"] > 0.99]')" \
	"0 [300, 300, True, 0, True]" "it ends without waiting: outstanding launches are reported, and kept the GPU busy"
try stat $sim -o "$tmp/text" -- "$prog" leave 300
has "$(cat "$tmp/text")" " at its end, " "in the text, too"
measure -- "$prog" deep 20 nothing
is "$status $(ask '[d["verdict"], d["why"], d["processes"]]')" \
	"0 ['no CUDA call', 'the program made no CUDA call', []]" "a program without CUDA"
try stat $sim -- sh -c 'echo printed; exit 3'
is "$status" 3 "text: the program's status"
is "$out" "printed" "what the program prints comes through, alone"
has "$err" "no CUDA call: the program made no CUDA call" "and the text on stderr"
has "$err" "simulated" "which says simulated"

"$gpupart" stat $sim -o "$tmp/text" -- sh -c 'echo >"$0"; exec sleep 60' "$tmp/begun" 2>"$tmp/err" &
pid=$!
for _ in $(seq 300); do
	[ -s "$tmp/begun" ] && break
	sleep 0.1
done
kill -TERM $pid
wait $pid
is "$?" 143 "SIGTERM reaches the program"
has "$(cat "$tmp/text")" "ended by signal 15" "and the text says so"

# ------------------------------------------------------------------------- sets
measure -n 8 -- "$prog" deep 20
is "$status $(ask '[d["set"]["nr_tpcs"], len(d["set"]["list"]) > 0, k[0]["count"]]')" "0 [8, True, 20]" \
	"in a set: its TPCs are counted"
if ${CC:-cc} -o "$tmp/census" tests/cli/census.c -ldl 2>/dev/null; then
	try stat $sim -t 0,5 -o "$tmp/text" -- "$tmp/census" lib/confine/probe.ptx 0
	is "$out" "0 1 10 11" "in a set it is confined"
	has "$(cat "$tmp/text")" "on TPCs 0,5" "and the text has the set"
	has "$(cat "$tmp/text")" "from it 1 (96.0 KiB)" "its copy is counted"
	try run $sim -t 4 -- "$gpupart" stat -o "$tmp/text" -- "$tmp/census" lib/confine/probe.ptx 0
	is "$out" "8 9" "inside a run: that run's set"
	has "$(cat "$tmp/text")" "on TPCs 4" "and the text has it"
	has "$(cat "$tmp/text")" "; 1 of them ended" "and it is measured"
	try stat $sim -o "$tmp/text" -- "$gpupart" run -t 3 -- "$tmp/census" lib/confine/probe.ptx 0
	is "$out" "6 7" "a run inside stat"
	has "$(cat "$tmp/text")" "; 1 of them ended" "is measured, without the run's own check"
	is "$(grep -c '^process' "$tmp/text")" 1 "which is no process of it"
else
	skip "no C compiler"
fi

# ---------------------------------------------------------------- several GPUs
# A program that may use two GPUs uses the first, or the first in CUDA_VISIBLE_DEVICES.
GPUPART_SIM=$PWD/tests/data/gh100-h200-b/capture.txt:$PWD/tests/data/gh100-h200-e/capture.txt
export GPUPART_SIM
for visible in 0,1 1,0; do
	LD_LIBRARY_PATH=$BUILD/lib/gpupart/sim CUDA_VISIBLE_DEVICES=$visible \
		"$gpupart" stat --json -o "$tmp/json" -- "$prog" deep 20 >"$tmp/out" 2>"$tmp/err"
	is "$? $(ask '[(q["gpu"], q["launches_ended"]) for q in d["processes"]]')$(cat "$tmp/err")" \
		"0 [('0000:0$((${visible%,*} + 1)):00.0', 20)]" "of two GPUs, without a set, the one that is used"
done
unset GPUPART_SIM

# -------------------------------------------------------------------- processes
measure -- "$prog" deep 300 two
is "$status $(ask '[len(d["processes"]), sorted(q["launches_ended"] for q in d["processes"]), [len(q["kernels"]) for q in d["processes"]]]')" \
	"0 [2, [300, 300], [1, 1]]" "two processes: a row each"
measure -- sh -c "for i in 1 2 3 4; do $prog host 300 & done; wait"
is "$(ask '[sorted(q["launches_ended"] for q in d["processes"]), d["busy"]["most"] <= max(q["busy"]["most"] for q in d["processes"]), d["busy"]["least"] >= min(q["busy"]["least"] for q in d["processes"])]')" \
	"[[300, 300, 300, 300], True, True]" "four at once, and what they have together"
measure -- sh -c "$prog deep 1; $prog deep 1 kill; $prog deep 20"
is "$(ask '[q["kernels"][0]["count"] for q in d["processes"]]')" "[1, 1, 20]" \
	"one after the other, however short: each is there"
measure -- sh -c "i=0; while [ \$i -lt 66 ]; do $prog deep 1; i=\$((i + 1)); done"
is "$status $(ask '[len(d["processes"]), d["processes_left_out"], {q["launches_ended"] for q in d["processes"]}]')" \
	"0 [64, 2, {1}]" "there is room for 64"

# One inside another: neither could measure.
try stat $sim -- "$gpupart" stat -- "$prog" deep 3
is "$status" 125 "stat inside stat is refused"
has "$err" "another gpupart stat already measures this process" "and why"
GPUPART_STAT=/proc/1/fd/9 "$gpupart" stat $sim -- "$prog" deep 3 >"$tmp/out" 2>&1
is "$? $(grep -c "; 3 of them ended" "$tmp/out")" "0 1" "but not by the name of one that has ended"

# ------------------------------------------------------------------- intervals
measure_until 'len(d["intervals"]) >= 3' --interval 0.1 -- "$prog" deep 800
is "$(ask 'sum(i["launches"] for i in d["intervals"]) <= 800 and all(i["pid"] == p["pid"] for i in d["intervals"])')" \
	True "--interval: as it runs, by process"
is "$(ask 'all(0 <= i["busy"]["least"] <= i["busy"]["most"] <= 1 for i in d["intervals"])')" True "shares of that time"
# A kernel of 4 s.
measure_until 'len([i for i in d["intervals"] if i["busy"]["least"] > 0.9]) >= 3' --interval 0.5 -- "$prog" fast_then_long 4000
is "$(ask 'len([i for i in d["intervals"] if i["busy"]["least"] > 0.9]) >= 3')" True \
	"in one long kernel: the GPU is busy"
try stat $sim --interval 0.1 -o "$tmp/text" -- "$prog" deep 500
has "$err" " launches/s, GPU busy " "--interval: lines on stderr"

# A process that is killed from outside, after a first report.
"$gpupart" stat $sim --json -o "$tmp/json" --interval 0.2 -- sh -c 'echo $$ >"$0"; exec "$@"' "$tmp/pid" \
	"$prog" deep 100000 2>"$tmp/err" &
stat=$!
for _ in $(seq 500); do
	"$gpupart" ps | grep -q "^ *$(cat "$tmp/pid" 2>/dev/null) .*0000:" && break
	sleep 0.02
done
until [ "$("$gpupart" stat -p "$(cat "$tmp/pid")" -d 0.1 --json 2>/dev/null |
		python3 -c 'import json, sys; print(json.load(sys.stdin)["processes"][0].get("launches_ended", 0) > 0)')" = True ]; do
	kill -0 $stat || break
done
kill -KILL "$(cat "$tmp/pid")"
wait $stat
is "$? $(ask '[d["signal"], p["ended"], p["outstanding"] > 0, 0 < k[0]["count"] == p["launches_ended"] - p["missed"], p["launches"] == p["launches_ended"] + p["outstanding"]]')" \
	"137 [9, True, True, True, True]" "killed while it is busy: all that ended is there"

# -------------------------------------------------------------- unmeasurable cases
GPUPART_RECORDS=0 "$gpupart" stat $sim -- sh -c "echo begun" >"$tmp/out" 2>"$tmp/err"
is "$? $(cat "$tmp/out")" "125 " "GPUPART_RECORDS=0: refused, and nothing is started"
has "$(cat "$tmp/err")" "GPUPART_RECORDS=0: stat needs completion records" "and why"
GPUPART_SIM_FAULTS=host-clock,tmd-version=0x41
refused 125 "the TMD version of this driver is unknown" stat $sim -- "$prog" deep 20
GPUPART_SIM_FAULTS=host-clock,no-api
refused 125 "writes no completion records: see the row 'records' of 'gpupart doctor' for the reason" stat $sim -- "$prog" deep 20
GPUPART_SIM_FAULTS=host-clock,host-thread
measure -- env GPUPART_RECORDS=0 "$prog" deep 20
is "$status $(ask '[p["records"], d["verdict"], d["busy"]]')" "0 [False, 'no work', {'least': 0.0, 'most': 0.0}]" \
	"a program that switches records off for itself"
measure -- env -u GPUPART_SET GPUPART_CHECKED=0 XDG_CACHE_HOME="$tmp" "$prog" deep 20
is "$status $(ask '[d["verdict"], d["processes_left_out"], d["processes"]]')" "0 ['not measured', 1, []]" \
	"a process that is not confined is not measured"
GPUPART_DISABLE=1
export GPUPART_DISABLE
try stat $sim -- "$prog" deep 20 5
is "$status$out" 5 "GPUPART_DISABLE=1: run untouched"
has "$err" "is not measured" "and it says so"
unset GPUPART_DISABLE

# -------------------------------------------------------------------- invalid input
refused 125 "no program" stat
refused 125 "the program's name is empty" stat -- ''
refused 125 "'x'" stat --interval x -- true
refused 125 "'0'" stat --interval 0 -- true
refused 125 "'nan'" stat --interval nan -- true
refused 125 "$tmp/none/file" stat $sim -o "$tmp/none/file" -- "$prog" deep 1
refused 125 "99" stat $sim -t 99 -- true
refused 127 "$tmp/none" stat $sim -- "$tmp/none"
refused 126 "$tmp/text" stat $sim -- "$tmp/text"
tap_done
