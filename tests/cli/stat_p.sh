#!/bin/sh
# SPDX-License-Identifier: MIT
# gpupart stat -p PID and stat NAME on the simulated GPU: counts from records of running programs,
# programs without records, and invalid input.
. "$(dirname "$0")/tap.subr"
. "$(dirname "$0")/running.subr"
GPUPART_SIM_FAULTS=host-clock,host-thread,clock-drift=50
export GPUPART_SIM_FAULTS
prog=$BUILD/tests/gpu-stat_prog
sim="-i tests/data/gh100-h200-b/capture.txt -t 0-65"
if ! python3 -c '' 2>/dev/null; then
	skip "no python3"
	tap_done
fi
if emulated "takes ten times as long as what is measured: stat -p"; then
	tap_done
fi
name=stat-$$

# -------------------------------------------------------------- a busy program
begin "$prog" threads 100000
# On a loaded machine the GPU's thread catches up after a pause, in which it wrote no record.
# If the program itself gets no CPU its queue is not full, which is not a fault of stat.
stat_until '100 < p["launches_ended"] < 2200 * p["seconds"] and p["outstanding"] > 100 and
	p["outstanding_max"] >= p["outstanding_mean"] > 100 and p["busy"]["least"] > 0.9' \
	-p $pid -d 0.5
is "$status$out$err" 0 "-p: nothing but the report"
is "$(ask '[d["schema"], d["command"], d["simulated"], p["pid"], p["name"], p["records"], p["why"], p["ended"]]')" \
	"['gpupart/1', 'stat', True, $pid, '$name', True, None, False]" "of that process"
# Two streams with kernels of 1 ms, their queues full.
is "$(ask '[p["busy"]["least"] > 0.9, p["busy"]["most"] <= 1, p["all_known"], p["idle"]["most"] < 0.1, p["unknown"], p["graphs"]]')" \
	"[True, True, True, True, 0, 0]" "kernels are queued all the time: busy"
is "$(ask '[0.5 <= p["seconds"] < 60, 100 < p["launches_ended"] < 2200 * p["seconds"], p["outstanding"] > 100 and p["outstanding_max"] >= p["outstanding_mean"] > 100]')" \
	"[True, True, True]" "launches that ended in this time, and its queue"
is "$(ask '[len(p["kernels"]), 0 < p["kernels"][0]["count"] <= p["launches_ended"], p["kernels"][0]["share"], 0.0009 < p["kernels"][0]["mean_seconds"]["least"] <= p["kernels"][0]["mean_seconds"]["most"] < 0.01, p["kernels"][0]["longest_seconds"] >= p["kernels"][0]["mean_seconds"]["most"]]')" \
	"[1, True, 1.0, True, True]" "the kernel: count, share, mean, longest"
try stat "$name" -d 0.4 --interval 0.1
is "$status" 0 "NAME, and options behind it"
has "$out" "process       $pid $name, GPU 0000:" "text: the process"
has "$out" "GPU busy" "how busy"
has "$out" "The start of a kernel is not recorded" "and what that means"
[ "$(grep -c " s: $pid: .* launches/s, GPU busy .*, .* outstanding" "$tmp/err")" -ge 2 ]
ok $? "--interval: lines on stderr"
stat_until 'len(d["intervals"]) >= 2 and all(i["busy"]["most"] > 0.5 for i in d["intervals"])' \
	"$name" -d 0.5 --interval 0.1
is "$(ask '[len(d["intervals"]) >= 2, d["intervals"][0]["pid"], all(i["busy"]["most"] > 0.5 for i in d["intervals"])]')" \
	"[True, $pid, True]" "with --json in intervals"
"$gpupart" stat -p $pid -d 60 --json -o "$tmp/json" &
stat=$!
sleep 0.5
stop
wait $stat
is "$? $(ask '[p["ended"], p["records"], p["seconds"] < 50]')" "0 [True, True, True]" \
	"it ends meanwhile: what was seen until then"

# ------------------------------------------------- a kernel that never ends
begin "$prog" fast_then_long 4000
stat_until 'p["launches"] == 0 and p["outstanding"] > 0' -p $pid -d 0.3
is "$(ask '[p["launches_ended"], p["busy"]["least"] > 0.9, p["kernels"]]')" "[0, True, []]" \
	"one long kernel runs, and none ends: busy"
stop

# ------------------------------------------------------------- an idle program
# Kernels for 4 s, then host work for 4 s.
begin "$prog" late_wait 4000
stat_until 'p["outstanding"] > 0' -p $pid -d 0.1
stat_until 'not p["outstanding"] and not p["launches_ended"]' -p $pid -d 0.3
is "$(ask '[p["all_known"], p["busy"], p["idle"], p["cpus"] > 0, p["kernels"]]')" \
	"[True, {'least': 0.0, 'most': 0.0}, {'least': 1.0, 'most': 1.0}, True, []]" "it works on the host: idle, and how many CPUs it uses"
stop
# A kernel of 20 us every 220 us. On a busy machine it is unknown when the program runs: a launch
# is outstanding from its submission on, for at least 20 us.
begin "$prog" host 1000000
stat_until 'p["launches_ended"] > 20 and p["busy"]["most"] < 0.9' -p $pid -d 1
is "$(ask '[p["kernels"][0]["mean_seconds"]["most"] >= 20e-6, p["busy"]["most"] >= 20e-6 * (p["launches_ended"] - p["missed"] - 2) / p["seconds"] * 0.98, 0 <= p["busy"]["least"] <= p["busy"]["most"] < 0.9]')" \
	"[True, True, True]" "kernels of 20 us: no shorter, and the GPU is not busy all the time"
stop
begin sh -c "$prog deep 20; exec sleep 60"
try stat "$name" -d 0.1
is "$status" 125 "a job without a process on the GPU"
has "$err" "no process named '$name' has called cuInit" "which is what it says"
stop

# --------------------------------------------------------------------- graphs
begin "$prog" graph 100000
stat_until 'p["launches_ended"] > 0 and p["busy"]["most"] > 0' -p $pid -d 0.3
is "$(ask '[p["all_known"], p["busy"]["most"] <= 1, p["unknown"], p["graphs"], p["launches"] > 0]')" \
	"[True, True, 0, 0, True]" "graphs have records: busy as they are"
try stat -p $pid -d 0.2
is "$(grep -c 'GPU idle' "$tmp/out") $(grep -c unknown "$tmp/out")" "1 0" \
	"text: and for the rest of the time idle"
stop

# --------------------------------------------------------------- no records
GPUPART_RECORDS=0
export GPUPART_RECORDS
begin "$prog" deep 100000
unset GPUPART_RECORDS
try stat -p $pid -d 0.2
has "$status $out" "no records    it was started with GPUPART_RECORDS=0: remove that variable" "off by the environment: it says so"
try stat -p $pid -d 0.2 --json -o "$tmp/json"
is "$(ask '[p["records"], p["why"], "busy" in p]')" \
	"[False, 'it was started with GPUPART_RECORDS=0: remove that variable', False]" "with --json too"
stop

# ------------------------------------------------------------------- invalid input
refused 125 "process 999999999 does not exist" stat -p 999999999
refused 125 "process $$ has no records" stat -p $$
refused 125 "'x'" stat -p x
refused 125 "'nosuch-$$'" stat "nosuch-$$"
refused 125 "'$name'" stat -p 1 "$name"
refused 125 "'b'" stat a b
refused 125 "'0'" stat -p $$ -d 0
refused 125 "'nan'" stat -p $$ --interval nan
refused 125 "-d 3" stat -d 3 -- true
refused 125 "-t" stat -p $$ -t 0
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null &&
		setpriv --reuid=4720 --regid=4720 --clear-groups "$gpupart" --version >/dev/null 2>&1; then
	setpriv --reuid=4720 --regid=4720 --clear-groups "$gpupart" stat -p $$ >"$tmp/out" 2>"$tmp/err"
	is "$? $(grep -c "process $$ belongs to another user" "$tmp/err")" "125 1" "another user's process"
else
	skip "another user's process: only as root"
fi
tap_done
