#!/bin/sh
# SPDX-License-Identifier: MIT
# Answers of NVML to programs of a tenant, on the simulated NVML: programs that open it, are
# linked with it, or use Python; memory and every list, in each form; and its requests to the
# kernel's driver.
. "$(dirname "$0")/../../cli/tap.subr"
nvml=$BUILD/lib/gpupart/libgpupart-nvml.so
ask=$BUILD/tests/nvml-ask
sim=$BUILD/lib/gpupart/sim
tenant=nvml-test-$$
capture=$BUILD/share/gpupart/captures/h200.capture
export LD_LIBRARY_PATH="$sim" GPUPART_SIM="$capture:$capture" GPUPART_SIM_FAULTS="nvml=$tmp/told"
unset GPUPART_TENANT GPUPART_MEM LD_AUDIT LD_BIND_NOW
G=1073741824
foreign="starts a program of this machine, which takes no library of the other:"
first=0000:01:00.0 second=0000:02:00.0
total=150754820096
trap 'exec 7>&- 8>&-; wait; "$BUILD/tests/nvml-hold" -s "$tenant"; rm -rf "$tmp"' EXIT

# told LINES: configures the values of the simulated library, in addition to the memory of both
# GPUs.
told() {
	{
		echo "memory 0 $total 500000000 30000000000"
		echo "memory 1 $total 500000000 60000000000"
		printf '%s\n' "$@"
	} >"$tmp/told"
}

# inside COMMAND: runs it as `gpupart run --mem` starts a program of the tenant.
inside() {
	LD_AUDIT=$nvml GPUPART_TENANT=$tenant GPUPART_MEM=$((8 * G)) "$@" 2>&1
}

# joined COMMAND: runs it in a tenant that has quotas in its ledger only.
joined() {
	LD_AUDIT=$nvml GPUPART_TENANT=$tenant "$@" 2>&1
}

whole="memory 0 $total 30500000000 $((total - 30500000000))"
told "process 0 compute 1 3000" "process 0 graphics 1 200"

# --------------------------------------------- without a tenant: NVML's own answers
is "$("$ask" memory 0 list nvmlDeviceGetComputeRunningProcesses 0 8 16)" "$whole
list 0 1: 1=3000" "the simulated library alone: the whole GPU and all processes"
is "$(LD_AUDIT=$nvml "$ask" memory 0)" "$whole" "without GPUPART_TENANT: the whole GPU"
is "$(GPUPART_DISABLE=1 inside "$ask" memory 0)" "$whole" "GPUPART_DISABLE=1: the whole GPU"
is "$(LD_AUDIT=$nvml GPUPART_TENANT=../x GPUPART_MEM=$G "$ask" memory 0)" "$whole" \
	"a tenant with no tenant's name: the whole GPU"
is "$(LD_AUDIT=$nvml GPUPART_TENANT=$tenant "$ask" memory 0)" "$whole" \
	"an unknown tenant, and no GPUPART_MEM: the whole GPU"
is "$(LD_AUDIT=$nvml GPUPART_TENANT=$tenant GPUPART_MEM=8G "$ask" memory 0)" "$whole" \
	"GPUPART_MEM is bytes: what is none is no quota"

# -------------------------------------------------------- before there is a ledger
is "$(inside "$ask" memory 0 memory2 0 2 list nvmlDeviceGetComputeRunningProcesses_v3 0 8 24 list nvmlDeviceGetComputeRunningProcesses_v3 0 0 24)" \
	"memory 0 $((8 * G)) 0 $((8 * G))
memory2 0 $((8 * G)) 0 0 $((8 * G))
list 0 0:
list 0 0:" "no process of the tenant yet: the quota, nothing used, no process"
is "$(inside "$ask" memory 1)" "memory 0 $((8 * G)) 0 $((8 * G))" "the same on each GPU"

# ---------------------------------------------------------------- a ledger, two processes
mkfifo "$tmp/a" "$tmp/b"
"$BUILD/tests/nvml-hold" "$tenant" $first $((8 * G)) $G <"$tmp/a" >"$tmp/a.pid" &
hold_a=$!
exec 7>"$tmp/a"
"$BUILD/tests/nvml-hold" "$tenant" $first $((8 * G)) $((2 * G)) <"$tmp/b" >"$tmp/b.pid" &
hold_b=$!
exec 8>"$tmp/b"
n=0
while [ ! -s "$tmp/a.pid" ] || [ ! -s "$tmp/b.pid" ]; do
	n=$((n + 1))
	[ $n -lt 600 ] || break
	sleep 0.05
done
a=$(cat "$tmp/a.pid") b=$(cat "$tmp/b.pid")
is "$a $b" "$hold_a $hold_b" "two processes of the tenant are there"
told "process 0 compute 1 3000" "process 0 compute $a 2000" "process 0 compute $b -" \
	"process 0 graphics 1 100" "process 0 graphics $b 500" "process 0 mps $a -" \
	"process 1 compute 1 3000" "process 1 compute $a 700"
share="memory 0 $((8 * G)) $((3 * G)) $((5 * G))"
is "$(inside "$ask" memory 0 memory2 0 2)" "$share
memory2 0 $((8 * G)) 0 $((3 * G)) $((5 * G))" "memory, both forms: the quota, what all use, the rest"
is "$(joined "$ask" memory 1 list nvmlDeviceGetComputeRunningProcesses_v3 1 8 24)" \
	"memory 0 $total 60500000000 $((total - 60500000000))
list 0 2: 1=3000 $a=700" "a GPU without a quota: the whole of it, all processes"
is "$(joined "$ask" memory 0)" "$share" "without GPUPART_MEM: the ledger's quota"
is "$(inside "$ask" memory 1 list nvmlDeviceGetComputeRunningProcesses_v3 1 8 24)" "memory 0 $((8 * G)) 0 $((8 * G))
list 0 1: $a=700" "a GPU on which GPUPART_MEM gives the first quota: that"
is "$(inside "$ask" protected 0)" "memory 0 0 0 0" "protected memory, of which the GPU has none: none"
is "$(inside "$ask" memory2 0 0x3000028)" "memory2 25 untouched" "a version of the struct that is none: refused"

# Lists: name, bytes of an entry, expected values.
while read -r name bytes wanted; do
	name=nvmlDeviceGet${name}
	is "$(inside "$ask" list "$name" 0 8 "$bytes")" "list 0 ${wanted#* }" "$name: the tenant's"
	is "$(inside "$ask" list "$name" 0 0 "$bytes")" "list 7 ${wanted%% *}:" "$name, a list of none: how many"
done <<END
ComputeRunningProcesses 16 2 2: $a=2000 $b=$((2 * G))
ComputeRunningProcesses_v2 24 2 2: $a=2000 $b=$((2 * G))
ComputeRunningProcesses_v3 24 2 2: $a=2000 $b=$((2 * G))
GraphicsRunningProcesses 16 1 1: $b=500
GraphicsRunningProcesses_v2 24 1 1: $b=500
GraphicsRunningProcesses_v3 24 1 1: $b=500
MPSComputeRunningProcesses 16 1 1: $a=$G
MPSComputeRunningProcesses_v2 24 1 1: $a=$G
MPSComputeRunningProcesses_v3 24 1 1: $a=$G
AccountingPids 4 4 4: $a $b $b $a
END
v3=nvmlDeviceGetComputeRunningProcesses_v3
is "$(inside "$ask" list $v3 0 1 24)" "list 7 2:" "a list of one for two: how many, and nothing written"
is "$(inside "$ask" list $v3 0 2 24)" "list 0 2: $a=2000 $b=$((2 * G))" "a list of just as many"
is "$(inside "$ask" list $v3 0 -1 24)" "list 2 5:" "five entries and NULL: the library's own error"
is "$(GPUPART_SIM_FAULTS="nvml=$tmp/told,nvml-wide" inside "$ask" list $v3 0 8 32)" "list 0 2: $a=2000 $b=$((2 * G))" \
	"entries of a driver that has a field more"
is "$(GPUPART_SIM_FAULTS="nvml=$tmp/told,nvml-wide" inside "$ask" list $v3 0 2 32)" "list 0 2: $a=2000 $b=$((2 * G))" \
	"and no byte more of them than there is room for"
is "$(inside "$ask" details 0 0 8 1 details 0 0 1 1 details 0 1 8 1 details 0 9 8 1 details 0 0 8 0x2000018)" \
	"details 0 2: $a=2000 $b=$((2 * G))
details 7 2:
details 0 1: $b=500
details 2 8:
details 25 8:" "the detail list: compute, too short, graphics, no such mode, no such version"
is "$(GPUPART_SIM_FAULTS="nvml=$tmp/told,nvml-newer" inside "$ask" memory2 0 0x3000028 details 0 0 8 0x2000018 utilizations 0 8 7)" "memory2 25 untouched
details 25 8:
utilizations 25 8:" "structs that only a newer driver knows: refused, as by one that does not"
is "$(inside "$ask" samples 0 8 samples 0 1 samples 0 -1)" "samples 0 4: $a $b $b $a
samples 7 4:
samples 7 1024:" "samples of use: the tenant's, too few, and the room for all"
is "$(inside "$ask" utilizations 0 8 1 utilizations 0 2 1 utilizations 0 8 7)" "utilizations 0 4: $a $b $b $a
utilizations 7 4:
utilizations 25 8:" "use by process: the tenant's, too few, no such version"
is "$(inside "$ask" stats 0 "$a" stats 0 1 stats 0 4000000)" "stats 0 50
stats 6 0
stats 6 0" "what was accounted of a process: the tenant's own alone"
is "$("$ask" stats 0 1)" "stats 0 50" "which without a tenant also lists another one"
is "$(inside "$ask" -n memory 0 list $v3 0 8 24 stats 0 "$a")" "memory 1 untouched
list 1 8:
stats 1 0" "before nvmlInit: the library's own error"
is "$(inside "$ask" memory 9 memory2 9 2 list $v3 9 8 24)" "memory 2 untouched
memory2 2 untouched
list 2 8:" "a device that is none: the library's own error"

# -------------------------------------------------------------- ways to call NVML
lines="0: $((8 * G)) $((3 * G)) $((5 * G)), $((8 * G)) 0 $((3 * G)) $((5 * G)); $a=2000 $b=$((2 * G)) $a:2000 $b:$((2 * G))"
is "$(inside "$BUILD/tests/nvml-linked-lazy" | head -n 1)" "$lines" "a program that is linked with it"
is "$(LD_BIND_NOW=1 inside "$BUILD/tests/nvml-linked-lazy" | head -n 1)" "$lines" "with LD_BIND_NOW"
is "$(inside "$BUILD/tests/nvml-linked-now" | head -n 1)" "$lines" "linked with -z now"
is "$(inside "$ask" fork memory 0)" "$share" "the child of a fork"
is "$(inside "$ask" again memory 0 again again memory 0)" "$share
$share" "the library closed and opened anew"
emulated "$foreign a shell's shell" ||
	is "$(inside sh -c "exec env sh -c '\"$ask\" memory 0; true'")" "$share" "a program that a shell's shell starts"
is "$(inside "$ask" threads 8)" "threads 8: $((8 * G)), 2 processes, 0 differ" "eight threads at once"
emulated "may stop for ever where a program with threads forks: children of one" ||
	is "$(inside "$ask" forks 200)" "forks: 0 bad" "children of a program whose other threads ask"
if emulated "$foreign Python"; then
	:
elif python3 -c 'import ctypes' 2>/dev/null; then
	is "$(inside python3 tests/lib/nvml/nvml.py)" \
		"$((8 * G)) $((3 * G)) $((5 * G)) $((8 * G)) $((3 * G)) $((5 * G)) $a=2000 $b=$((2 * G))" "Python by ctypes"
	is "$(inside sh -c 'python3 tests/lib/nvml/nvml.py')" "$(inside python3 tests/lib/nvml/nvml.py)" "Python that a shell starts"
else
	skip "no python3 with ctypes"
	skip "no python3 with ctypes"
fi

# Copies of the library: each answers for its own devices, and copies after the fourth are not
# changed.
for i in 1 2 3 4 5; do
	mkdir "$tmp/$i" && cp "$sim/libnvidia-ml.so.1" "$tmp/$i/"
done
set -- -l "$tmp/1/libnvidia-ml.so.1" memory 0
for i in 2 3 4 5; do
	set -- "$@" open "$tmp/$i/libnvidia-ml.so.1" memory 0
done
is "$(inside "$ask" "$@")" "$share
$share
$share
$share
$whole" "five copies of it in one program: four are answered, the fifth is left as it is"
set -- -l "$tmp/1/libnvidia-ml.so.1" memory 0
for i in 2 3 4 5; do
	set -- "$@" again-with "$tmp/$i/libnvidia-ml.so.1" memory 0
done
is "$(inside "$ask" "$@")" "$share
$share
$share
$share
$share" "five one after another: each"

# The library's requests to the kernel: only nvidia-smi's ways to get a list use the redirected
# ioctl.
if ! "$ask" kernel; then
	skip "a kernel's ioctl: no seccomp here"
else
	all="1,$a,$b,4000000"
	is "$("$ask" kernel control good "$all") $(inside "$ask" kernel control good "$all")" \
		"control 0 333: untouched control 0 333: $a $b" "the driver's list of processes: the tenant's, and errno as it was"
	is "$(inside "$ask" -z -l "$BUILD/tests/nvml-lazy/libnvidia-ml.so.1" kernel control good "$all" control good "$b,1")" \
		"control 0 333: $a $b
control 0 333: $b" "in a library that binds as it calls"
	is "$(LD_BIND_NOW=1 inside "$ask" -l "$BUILD/tests/nvml-lazy/libnvidia-ml.so.1" kernel control good "$all")" \
		"control 0 333: $a $b" "with LD_BIND_NOW"
	is "$(NVML_IOCTL=1 LD_PRELOAD=$BUILD/tests/nvml-ioctl.so inside "$ask" control good "$all")" "control 0 333: $a $b" \
		"where another's ioctl was preloaded"
	is "$(inside "$ask" kernel control full "$b,1,$a" control good "$a,$b" control good 1 control good "1,$a")" \
		"control 0 333: $b $a
control 0 333: untouched
control 0 333:
control 0 333: $a" "a full list, one with only the tenant's, one without them, one of one"
	for form in type many cmd request flags longer shorter status null nothing; do
		is "$(inside "$ask" kernel control $form "$all")" "control 0 333: untouched" "an answer that is not a known list ($form): as it is"
	done
	is "$(inside "$ask" kernel control fails "$all")" "control -1 19: untouched" "an ioctl that fails: its result and its errno"
	is "$(joined "$ask" kernel control good "$all")" "control 0 333: untouched" "where a GPU may have no quota: as it is"
	is "$(GPUPART_DISABLE=1 inside "$ask" kernel control good "$all")" "control 0 333: untouched" "GPUPART_DISABLE=1: as it is"
	is "$(inside "$ask" kernel fork control good "$all")" "control 0 333: $a $b" "in the child of a fork"
	controls=$BUILD/tests/nvml-controls.so
	for list in "$controls:$nvml" "$nvml:$controls"; do
		rm -f "$tmp/noted"
		is "$(NVML_CONTROLS=$tmp/noted GPUPART_TENANT=$tenant GPUPART_MEM=$G LD_AUDIT=$list "$ask" kernel control good "$all")" \
			"control 0 333: $a $b" "LD_AUDIT=${list##*/} last, and the other notes what ioctl is asked"
		case $list in
		"$nvml":*) wanted=2 ;;	# it is between the program and gpupart's library
		*) wanted=4 ;;
		esac
		is "$(cat "$tmp/noted")" "0x2080018d 3812 0: $wanted of 0x77777777" "what it notes"
	done
	is "$(inside "$ask" list nvmlSimulatedPids 0 8 4)" "list 0 6: 1 $a $b 1 $b $a" "a function of no header has all processes,"
	is "$(GPUPART_SIM_FAULTS="nvml=$tmp/told,nvml-ioctl=1000" inside "$ask" kernel list nvmlSimulatedPids 0 8 4 list nvmlSimulatedPids 1 8 4)" \
		"list 0 4: $a $b $b $a
list 0 1: $a" "and where it asks the driver the tenant's"
	is "$(GPUPART_SIM_FAULTS="nvml=$tmp/told,nvml-ioctl=1000" inside "$ask" kernel list $v3 0 8 24 list $v3 0 0 24 list $v3 0 1 24 stats 0 1 stats 0 "$a" list nvmlDeviceGetAccountingPids 0 8 4 memory 0)" \
		"list 0 2: $a=2000 $b=$((2 * G))
list 7 2:
list 7 2:
stats 6 0
stats 0 50
list 0 4: $a $b $b $a
$share" "the functions that are answered by name are then as they were"
	is "$(GPUPART_SIM_FAULTS="nvml=$tmp/told,nvml-ioctl=1001" inside "$ask" kernel list $v3 0 8 24)" "list 999 8:" "a driver that does not answer: the library's own error"
	is "$(GPUPART_SIM_FAULTS="nvml=$tmp/told,nvml-ioctl=1000" inside "$ask" kernel threads 8)" "threads 8: $((8 * G)), 2 processes, 0 differ" "eight threads at once"
	is "$(GPUPART_SIM_FAULTS="nvml=$tmp/told,nvml-ioctl=1000" inside "$ask" kernel forks 100)" "forks: 0 bad" "children of a program whose other threads ask"
	is "$(inside "$ask" kernel control fails "$all" apart "$tmp/1/libnvidia-ml.so.1" control good "$all" control fails "$all")" \
		"control -1 19: untouched
control 0 333: $a $b
control -1 333: untouched" "a second one with a libc of its own: that one's ioctl"
	set -- -l "$tmp/1/libnvidia-ml.so.1" kernel control good "$all"
	for i in 2 3 4 5; do
		set -- "$@" open "$tmp/$i/libnvidia-ml.so.1" control good "$all"
	done
	is "$(inside "$ask" "$@")" "control 0 333: $a $b
control 0 333: $a $b
control 0 333: $a $b
control 0 333: $a $b
control 0 333: untouched" "five copies of it: four are answered, the fifth is left as it is"
fi

# Another tool's audit library, before and after gpupart's.
other=$BUILD/tests/other_audit.so
for list in "$other:$nvml" "$nvml:$other"; do
	: >"$tmp/counted"
	is "$(OTHER_AUDIT_LOG=$tmp/counted GPUPART_TENANT=$tenant LD_AUDIT=$list "$ask" memory 0) $(wc -c <"$tmp/counted")" \
		"$share 1" "LD_AUDIT=${list##*/} last: the share, and the other tool counts the call"
done

# Programs that do not use NVML.
emulated "$foreign a program without NVML" ||
	is "$(inside sh -c 'echo out; echo err >&2; exit 3'; echo $?)" "out
err
3" "a program without NVML: its output and its status"
emulated "$foreign env" ||
	is "$(inside env -u LD_AUDIT -u GPUPART_TENANT "$ask" memory 0)" "$whole" "a program that is started without LD_AUDIT: outside"

# ------------------------------------------------------------------------- changes
many=$(n=0; while [ $n -lt 700 ]; do echo "process 0 compute $((1000000 + n)) 4096"; n=$((n + 1)); done)
cp "$tmp/told" "$tmp/told.few"
told "$many" "process 0 compute $b 77"
is "$(inside "$ask" list $v3 0 1 24 samples 0 1)" "list 0 1: $b=77
samples 0 1: $b" "701 processes, one of them the tenant's, in a list of one"
cp "$tmp/told.few" "$tmp/told"

"$BUILD/tests/nvml-hold" -q "$tenant" $first $((2 * G))
is "$(inside "$ask" memory 0 memory2 0 2)" "memory 0 $((2 * G)) $((3 * G)) 0
memory2 0 $((2 * G)) 0 $((3 * G)) 0" "a quota below what is used: nothing free"
"$BUILD/tests/nvml-hold" -q "$tenant" $first $((400 * G))
is "$(inside "$ask" memory 0)" "memory 0 $total $((3 * G)) $((total - 3 * G))" "a quota above what the GPU has: what it has"
"$BUILD/tests/nvml-hold" -q "$tenant" $second $((4 * G))
is "$(inside "$ask" memory 1 list $v3 1 8 24)" "memory 0 $((4 * G)) 0 $((4 * G))
list 0 1: $a=700" "a quota on the second GPU, too"
"$BUILD/tests/nvml-hold" -q "$tenant" $second 0
is "$(joined "$ask" memory 1)" "memory 0 $total 60500000000 $((total - 60500000000))" "and none any more"
"$BUILD/tests/nvml-hold" -q "$tenant" $first $((8 * G))
kill -9 "$b"
wait "$b" 2>/dev/null
is "$(inside "$ask" memory 0 list $v3 0 8 24)" "memory 0 $((8 * G)) $G $((7 * G))
list 0 1: $a=2000" "a process of the tenant was killed: its memory and itself are gone"
exec 7>&-
wait "$a"
is "$(inside "$ask" memory 0 list $v3 0 8 24 samples 0 8)" "memory 0 $((8 * G)) 0 $((8 * G))
list 0 0:
samples 6 0:" "and the last has ended"

# --------------------------------------------------------------------- the command
# doctor_with LIBRARY: doctor's row, in a build with LIBRARY in place of gpupart's, or without it.
doctor_with() {
	mkdir -p "$tmp/moved/lib/gpupart" "$tmp/moved/bin"
	cp "$gpupart" "$tmp/moved/bin/"
	cp "$BUILD"/lib/libgpupart.so.0 "$BUILD"/lib/libgpupart-manage.so.0 "$tmp/moved/lib/"
	rm -f "$tmp/moved/lib/gpupart/libgpupart-nvml.so"
	[ -z "$1" ] || cp "$1" "$tmp/moved/lib/gpupart/libgpupart-nvml.so"
	cp -r "$sim" "$tmp/moved/lib/gpupart/"
	"$tmp/moved/bin/gpupart" doctor --no-launch -i "$capture" 2>/dev/null | sed -n '/nvml-library/,/injection\|cache/p' |
		tr -s ' \n' ' ' | grep -oE '^[a-z]* nvml-library|No such file|does not load|NVML reports the quota' | tr '\n' ' '
}
emulated "$foreign doctor's" || is "$(doctor_with "$nvml")" "ok nvml-library NVML reports the quota " "doctor: the loader takes it"
is "$(doctor_with "$BUILD/tests/other_tool.so")" "note nvml-library does not load " "doctor: a library that the loader does not take"
is "$(doctor_with "")" "note nvml-library No such file " "doctor: none is there"
run() { GPUPART_SIM_FAULTS="nvml=$tmp/told" "$gpupart" run -i "$capture" --mem 8G --name "$tenant-run" "$@" 2>"$tmp/err"; }
is "$(run -- "$ask" memory 0 memory2 0 2)" "memory 0 $((8 * G)) 0 $((8 * G))
memory2 0 $((8 * G)) 0 0 $((8 * G))" "gpupart run --mem 8G: the quota"
is "$(run -t 3 -- sh -c '"$0" memory 0' "$ask")" "memory 0 $((8 * G)) 0 $((8 * G))" "with a set, and below a shell"
# shellcheck disable=SC2016 # for the inner shell
{
	is "$(run -- sh -c 'echo "$LD_AUDIT"')" "$(readlink -f "$nvml")" "LD_AUDIT is the library"
	is "$(run -- "$gpupart" run -t 1 -- sh -c 'echo "$LD_AUDIT"')" "$(readlink -f "$nvml")" "and once, in a run inside"
	is "$(LD_AUDIT=$other:$nvml run -- sh -c 'echo "$LD_AUDIT"')" "$other:$nvml" "nor a second time where it stands already"
	is "$(LD_AUDIT=$other run -- sh -c 'echo "$LD_AUDIT"')" "$other:$(readlink -f "$nvml")" "behind another tool's"
	is "$(GPUPART_SIM_FAULTS="nvml=$tmp/told" "$gpupart" run -i "$capture" -t 1 -- sh -c 'echo "$LD_AUDIT"' 2>&1 | tail -n 1)" "" \
		"without --mem there is none"
}
is "$(GPUPART_SIM_FAULTS="nvml=$tmp/told" GPUPART_DISABLE=1 "$gpupart" run -i "$capture" --mem 8G -- "$ask" memory 0 2>/dev/null)" "$whole" \
	"GPUPART_DISABLE=1: the whole GPU"

# ------------------------------------------------- GPUs of the simulated library
if command -v python3 >/dev/null; then
	is "$(python3 - <<'END'
import ctypes
lib = ctypes.CDLL("libnvidia-ml.so.1")
lib.nvmlErrorString.restype = ctypes.c_char_p
text, small = ctypes.create_string_buffer(96), ctypes.create_string_buffer(4)
gpu, nr = ctypes.c_void_p(), ctypes.c_uint()
print(lib.nvmlShutdown(), lib.nvmlSystemGetDriverVersion(text, 96), lib.nvmlDeviceGetCount(ctypes.byref(nr)))
print(lib.nvmlInit(), lib.nvmlInitWithFlags(0), lib.nvmlShutdown())
print(lib.nvmlDeviceGetCount(ctypes.byref(nr)), nr.value, lib.nvmlDeviceGetHandleByIndex(1, ctypes.byref(gpu)),
      lib.nvmlDeviceGetHandleByIndex(2, ctypes.byref(ctypes.c_void_p())))
print(lib.nvmlDeviceGetIndex(gpu, ctypes.byref(nr)), nr.value, lib.nvmlDeviceGetIndex(gpu, None))
print(lib.nvmlDeviceGetName(gpu, text, 96), text.value.decode(), lib.nvmlDeviceGetName(gpu, small, 4),
      lib.nvmlDeviceGetName(gpu, None, 96), lib.nvmlSystemGetDriverVersion(text, 96))
again = ctypes.c_void_p()
print(lib.nvmlDeviceGetUUID(gpu, text, 96), lib.nvmlDeviceGetHandleByUUID(text, ctypes.byref(again)), again.value == gpu.value,
      lib.nvmlDeviceGetHandleByUUID(b"GPU-none", ctypes.byref(again)))
for rc in 0, 1, 2, 3, 6, 7, 9, 25, 999:
    print(lib.nvmlErrorString(rc).decode(), end=";")
END
)" "1 1 1
0 0 0
0 2 0 2
0 1 2
0 NVIDIA H200 (simulated) 7 2 0
0 0 True 6
Success;Uninitialized;Invalid Argument;Not Supported;Not Found;Insufficient Size;Driver Not Loaded;Argument version mismatch;Unknown Error;" \
		"the simulated library alone: versions, names, UUIDs, errors"
fi
tap_done
