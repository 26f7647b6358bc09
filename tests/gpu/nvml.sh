#!/bin/sh
# SPDX-License-Identifier: MIT
# The output of nvidia-smi and other programs that use NVML inside `gpupart run --mem`, on a GPU,
# as TAP: the share of the tenant, only its processes, and that frameworks work at full speed.
# OUT=FOLDER stores the output; MEM= sets the quota in GiB (8).
build=${BUILD:-build}
gpupart=$build/bin/gpupart
here=$(dirname "$0")
tmp=$(mktemp -d) || exit 1
trap 'exec 7>&- 8>&- 9>&-; wait; rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM
out=${OUT:-$tmp}
mem=${MEM:-8}
mkdir -p "$out"
export XDG_CACHE_HOME="$tmp/cache" XLA_PYTHON_CLIENT_PREALLOCATE=false
if [ ! -e /dev/nvidiactl ]; then
	echo "1..0 # SKIP no NVIDIA driver here"
	exit 77
fi
if ! command -v python3 >/dev/null; then
	echo "1..0 # SKIP no python3 here"
	exit 77
fi
nr=0 failed=0
result() {
	nr=$((nr + 1))
	case $1 in
	0) echo "ok $nr - $2" ;;
	skip) echo "ok $nr # SKIP $2" ;;
	*) failed=1; echo "not ok $nr - $2" ;;
	esac
}
tenant=nvml-$$
inside() { timeout 150 "$gpupart" run --mem "${mem}G" --name "$tenant" -- "$@" 2>"$tmp/err"; }
# value FILE EXPRESSION: evaluates it with JSON as t.
value() { python3 -c 'import json, sys; t = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$@"; }
mib=$((mem * 1024))

"$gpupart" doctor --no-launch >"$out/doctor.txt" 2>&1
grep -q '^ok *nvml-library' "$out/doctor.txt"
result $? "doctor: the loader takes the library: $(grep -A1 nvml-library "$out/doctor.txt" | tr -s ' \n' ' ')"
ldd --version 2>&1 | head -n 1 >"$out/glibc.txt"
timeout 60 python3 "$here/nvml.py" protocol 0 >"$out/protocol.txt" 2>&1
result $? "how NVML answers short and odd questions is in protocol.txt"

# ------------------------------------------------------------------- without programs
if command -v nvidia-smi >/dev/null; then
	inside nvidia-smi >"$out/smi-empty.txt"
	grep -q "/ *${mib}MiB" "$out/smi-empty.txt"
	result $? "nvidia-smi: $(grep -o '[0-9]*MiB */ *[0-9]*MiB' "$out/smi-empty.txt" | head -n 1)"
	line=$(inside nvidia-smi --query-gpu=memory.total,memory.used,memory.free --format=csv,noheader,nounits | head -n 1)
	[ "$line" = "$mib, 0, $mib" ]
	result $? "nvidia-smi --query-gpu=memory.*, no process of the tenant: $line"
	# pynvml and nvidia-smi agree.
	inside python3 "$here/nvml.py" ask 0 >"$out/ask-empty.json"
	line=$(value "$out/ask-empty.json" '[v >> 20 for v in t["memory"][1:] + t["memory2"][1:]]')
	[ "$line" = "[$mib, 0, $mib, $mib, 0, 0, $mib]" ]
	result $? "the same by ctypes, MemoryInfo and MemoryInfo_v2: $line"
else
	result skip "no nvidia-smi here"
fi

# ------------------------------- one process of the tenant, and one of another program
mkfifo "$tmp/own" "$tmp/other"
timeout 300 "$gpupart" run --mem "${mem}G" --name "$tenant" -- python3 "$here/nvml.py" hold 1024 <"$tmp/own" >"$tmp/own.pid" 2>"$tmp/own.err" &
exec 7>"$tmp/own"
timeout 300 python3 "$here/nvml.py" hold 2048 <"$tmp/other" >"$tmp/other.pid" 2>"$tmp/other.err" &
exec 8>"$tmp/other"
n=0
while { [ ! -s "$tmp/own.pid" ] || [ ! -s "$tmp/other.pid" ]; } && [ $n -lt 600 ]; do
	n=$((n + 1))
	sleep 0.1
done
own=$(cat "$tmp/own.pid") other=$(cat "$tmp/other.pid")
[ -n "$own" ] && [ -n "$other" ]
result $? "a process of the tenant with 1 GiB ($own) and a stranger with 2 GiB ($other): $(cat "$tmp/own.err" "$tmp/other.err" | tail -n 1)"
timeout 60 python3 "$here/nvml.py" ask 0 >"$out/ask-outside.json"
inside python3 "$here/nvml.py" ask 0 >"$out/ask-inside.json"
listed='sorted({p[0] for p in t["nvmlDeviceGetComputeRunningProcesses_v3"][2]})'
outside=$(value "$out/ask-outside.json" "$listed")
case $outside in
*"$own"*) tells=yes ;;
*) tells=no ;;	# NVML's pids are of another namespace, or it reports none
esac
if [ $tells = yes ]; then
	line=$(value "$out/ask-inside.json" "$listed")
	[ "$line" = "[$own]" ]
	result $? "the list of compute processes: $line inside, $outside outside"
	line=$(value "$out/ask-inside.json" 'sorted({k for k, v in t.items() if k[:4] == "nvml" for p in v[2] if p[0] != '"$own"'} | {k for k in ("details", "samples", "uses") for p in t.get(k, (0, 0, []))[2] if p != '"$own"'})')
	[ "$line" = "[]" ]
	result $? "no list has another process: $line"
	line=$(value "$out/ask-inside.json" '[p[1] >> 20 for p in t["nvmlDeviceGetComputeRunningProcesses_v3"][2] if p[1]]')
	same=$(value "$out/ask-outside.json" "[p[1] >> 20 for p in t['nvmlDeviceGetComputeRunningProcesses_v3'][2] if p[0] == $own and p[1]]")
	[ "$line" = "$same" ]
	result $? "what it uses, MiB: $line inside, $same outside"
else
	result skip "NVML does not list $own here, but $outside: nothing to tell apart"
	result skip "the same of the other lists"
	result skip "the same of what it uses"
fi
line=$(value "$out/ask-inside.json" '[v >> 20 for v in t["memory"][1:]]')
value "$out/ask-inside.json" 't["memory"][1] == '"$mem"' << 30 and 1 << 30 <= t["memory"][2] < 2 << 30 and t["memory"][3] == t["memory"][1] - t["memory"][2]' |
	grep -q True
result $? "memory, MiB total, used (1 GiB and a context), free: $line"
if command -v nvidia-smi >/dev/null; then
	inside nvidia-smi >"$out/smi-inside.txt"
	timeout 60 nvidia-smi >"$out/smi-outside.txt"
	grep -q "/ *${mib}MiB" "$out/smi-inside.txt"
	result $? "nvidia-smi inside: $(grep -o '[0-9]*MiB */ *[0-9]*MiB' "$out/smi-inside.txt" | head -n 1), outside: $(grep -o '[0-9]*MiB */ *[0-9]*MiB' "$out/smi-outside.txt" | head -n 1)"
	inside nvidia-smi --query-compute-apps=pid,used_memory --format=csv,noheader >"$out/smi-apps.txt"
	timeout 60 nvidia-smi --query-compute-apps=pid,used_memory --format=csv,noheader >"$out/smi-apps-outside.txt"
	if grep -q "^$other," "$out/smi-apps-outside.txt"; then
		[ "$(cut -d, -f1 "$out/smi-apps.txt")" = "$own" ]
		result $? "nvidia-smi --query-compute-apps: $(tr '\n' ';' <"$out/smi-apps.txt") outside $(tr '\n' ';' <"$out/smi-apps-outside.txt")"
		inside nvidia-smi pmon -c 1 >"$out/smi-pmon.txt"
		timeout 60 nvidia-smi pmon -c 1 >"$out/smi-pmon-outside.txt"
		! grep -qE "^ *[0-9]+ +$other " "$out/smi-pmon.txt" && ! grep -q " $other " "$out/smi-inside.txt"
		result $? "nvidia-smi's table and pmon do not show the stranger"
		grep -q " $own " "$out/smi-inside.txt" && grep -qE "^ *[0-9]+ +$own " "$out/smi-pmon.txt"
		result $? "and show the tenant's process"
		# A busy process is also in the driver's samples.
		mkfifo "$tmp/busy"
		timeout 120 python3 "$here/nvml.py" hold 512 busy <"$tmp/busy" >"$tmp/busy.pid" 2>"$tmp/busy.err" &
		exec 9>"$tmp/busy"
		n=0
		while [ ! -s "$tmp/busy.pid" ] && [ $n -lt 600 ]; do
			n=$((n + 1))
			sleep 0.1
		done
		busy=$(cat "$tmp/busy.pid")
		inside nvidia-smi pmon -c 4 >"$out/smi-pmon-busy.txt"
		timeout 60 nvidia-smi pmon -c 4 >"$out/smi-pmon-busy-outside.txt"
		exec 9>&-
		if [ -n "$busy" ] && grep -qE "^ *[0-9]+ +$busy " "$out/smi-pmon-busy-outside.txt"; then
			! grep -qE "^ *[0-9]+ +($busy|$other) " "$out/smi-pmon-busy.txt"
			result $? "pmon does not show one at work, either ($busy)"
		else
			result skip "pmon outside does not show one at work: $(tail -n 1 "$tmp/busy.err")"
		fi
	else
		result skip "nvidia-smi outside does not list $other: nothing to tell apart"
		result skip "the same of its table"
		result skip "the same of the tenant's process"
		result skip "the same of one at work"
	fi
	# The control that lists processes; unfiltered, because gpupart's library is behind the
	# one that records.
	for how in "" "--query-compute-apps=pid --format=csv" "pmon -c 1"; do
		export NVML_CONTROLS="$out/controls${how:+-${how%%[ =]*}}.txt"
		rm -f "$NVML_CONTROLS"
		# shellcheck disable=SC2086 # several words
		LD_AUDIT=$build/tests/nvml-controls.so inside nvidia-smi $how >/dev/null
		grep -qs '^0x2080018d 3812 0: ' "$NVML_CONTROLS"
		result $? "nvidia-smi $how asks the driver by the control that is answered: $(grep -s '^0x2080018d ' "$NVML_CONTROLS" | sort | uniq -c | tr -s ' \n' ' ')"
	done
	unset NVML_CONTROLS
	inside nvidia-smi -q >"$out/smi-q.txt"
	line=$(sed -n '/FB Memory Usage/,/Free/p' "$out/smi-q.txt" | tr -s ' \n' ' ')
	case $line in
	*"Total : $mib MiB"*) result 0 "nvidia-smi -q: $line" ;;
	*) result 1 "nvidia-smi -q: $line" ;;
	esac
else
	result skip "no nvidia-smi here"
fi
exec 7>&- 8>&-
wait

# -------------------------------------------------------------------------- frameworks
# Alternately with and without only the audit library, without a quota or a set.
audit=$build/lib/gpupart/libgpupart-nvml.so
for name in torch cupy jax; do
	inside python3 "$here/nvml.py" "$name" >"$out/$name-inside.json"
	status=$?
	case $(cat "$out/$name-inside.json") in
	*skip*) result skip "$name: not here"; result skip "$name's speed: not here"; continue ;;
	esac
	line=$(value "$out/$name-inside.json" 't["good"] and (t["total"] or 0) <= '"$mem"' << 30') && [ "$line" = True ]
	result $? "$name inside: works, total $(value "$out/$name-inside.json" 't["total"] and t["total"] >> 20') MiB (status $status: $(tail -n 1 "$tmp/err"))"
	: >"$tmp/plain" && : >"$tmp/audited"
	for _ in 1 2 3 4; do
		timeout 150 python3 "$here/nvml.py" "$name" 2>/dev/null >"$tmp/one" && value "$tmp/one" 't["us"]' >>"$tmp/plain"
		LD_AUDIT=$audit GPUPART_TENANT=$tenant timeout 150 python3 "$here/nvml.py" "$name" 2>/dev/null >"$tmp/one" &&
			value "$tmp/one" 't["us"]' >>"$tmp/audited"
	done
	line=$(python3 -c '
import sys
plain, audited = (min(float(x) for x in open(f)) for f in sys.argv[1:])
print("%.3f: %.3f us, %.3f us without" % (audited / plain, audited, plain))
sys.exit(audited / plain > 1.05)' "$tmp/audited" "$tmp/plain")
	result $? "$name: a call with the audit library $line"
done
# A run without --mem does not load it.
# shellcheck disable=SC2016 # for the inner shell
! timeout 60 "$gpupart" run -n 4 -- sh -c 'echo "$LD_AUDIT"; cat /proc/self/maps' | grep -q libgpupart-nvml
result $? "a run without --mem: no audit library"
echo "1..$nr"
exit $failed
