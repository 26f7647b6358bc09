#!/bin/sh
# SPDX-License-Identifier: MIT
# run's report at the end of its program, and --strict: on the simulated GPU.
. "$(dirname "$0")/tap.subr"
e="-i tests/data/gh100-h200-e/capture.txt"
prog=$tmp/strict_prog
if ! ${CC:-cc} -o "$prog" tests/gpu/strict_prog.c -ldl 2>"$tmp/err"; then
	skip "no C compiler"
	tap_done
fi
# The sufficient set named by FILE's report, as a list.
proposed() { sed -n 's/.*; -t \([0-9,-]*\).*, with the same number of TPCs, would fit$/\1/p' "$1"; }

# Nothing to report.
try run $e -g 0 -- "$prog" kernel x2 legacy sync
is "$status $(wc -l <"$tmp/err")" "0 1" "all confined: one line on stderr, that of the start"

# Launches outside the set.
try run $e -t 0-7 -- "$prog" x8 x2 x8 kernel sync
is $status 0 "a program whose clusters do not fit: its status"
has "$err" "2 launches outside TPCs 0-7 (simulated): work_cluster: no virtual GPC of the set has room for its clusters of 8 blocks" \
	"how many, of which kernel, why"
is "$(wc -l <"$tmp/err")" 3 "in one line, behind the start's two: the set, and which clusters it holds"
set=$(proposed "$tmp/err")
[ -n "$set" ]
ok $? "a set is proposed: $set"
is "$(echo "$set" | tr ',' '\n' | awk -F- '{ n += (NF > 1 ? $2 - $1 : 0) + 1 } END { print n }')" 8 "of the same size"
try run $e -t "$set" -- "$prog" x8 x2 x8 kernel sync
is "$status $(wc -l <"$tmp/err")" "0 1" "the same program in it: nothing to report"
try run $e -t 0-2 -- "$prog" x8
has "$err" "no set of 3 TPCs fits" "three TPCs: no set of that size would do"
# beside LIST: the program on TPCs 0-7 while another run has LIST, which a proposal may name.
beside() {
	mkfifo "$tmp/hold"
	"$gpupart" run $e -t "$1" -- sh -c 'echo there; read x' <"$tmp/hold" >"$tmp/there" 2>/dev/null &
	exec 9>"$tmp/hold"
	until grep -qs there "$tmp/there"; do sleep 0.1; done
	try run $e -t 0-7 -- "$prog" x8
	exec 9>&-
	wait $!
	rm "$tmp/hold" "$tmp/there"
}
beside "$set"
other=$(proposed "$tmp/err")
spread() { echo "$1" | tr ',' '\n' | awk -F- '{ for (t = $1; t <= $NF; t++) print t }' | sort; }
is "$(spread "$other" | wc -l)" 8 "beside a program on those TPCs others are proposed: $other"
spread "$set" >"$tmp/set"
is "$(spread "$other" | comm -12 - "$tmp/set" | wc -l)" 0 "which no other program has"
beside 8-65
has "$err" "no 8 free TPCs fit; TPCs $set would, but other programs use some of them" "if other programs use those, that is reported"
try run $e -t 0-7,9,10 -- "$gpupart" run -t 0-7 -- "$prog" x8
has "$err" "no set of 8 TPCs inside GPUPART_SET fits" "in a run inside a run: none outside of the outer one's set"
try run $e -t 0-7 -- "$prog" coop100
has "$err" "work_plain: its cooperative grid needs 25 TPCs at once" "a cooperative grid: what it needs"
try run $e -t 0-7 -- "$prog" graph graph graph
has "$err" "1 launch outside TPCs 0-7 (simulated): work_cluster" "a graph's node counts when it is built"
try run $e -t 0-7 -- "$prog" x8 sync unload load x8 x8
has "$err" "1 launch outside TPCs 0-7 (simulated): work_cluster" "a module that goes: its kernel keeps its name"
has "$err" "2 launches outside TPCs 0-7 (simulated): other_cluster" "and lends it to no other"
try run $e -t 0-7 -- "$prog" x8 unload load x8
has "$err" "a kernel of unknown name" "unloaded before its name was found out: said so"
try run $e -t 0-7 -- "$prog" x8 sync kill9
is $status 137 "a killed program's status"
has "$err" "1 launch outside TPCs 0-7 (simulated): work_cluster" "a killed program's launches count"
try run $e -t 0-7 -- "$prog" fork x8 sync exec x8 x8
has "$err" "3 launches outside TPCs 0-7 (simulated): work_cluster" \
	"a child's, and those after an exec, are one line"
try run $e -t 0-7 -- env GPUPART_SIM_FAULTS=tmd-version=0x41 "$prog" kernel kernel
has "$err" "2 launches outside the set (simulated): work_plain: gpupart does not support this type of launch" \
	"an unknown TMD"
LD_LIBRARY_PATH=$BUILD/lib/gpupart/sim GPUPART_SIM=$PWD/tests/data/gh100-h200-b/capture.txt:$PWD/tests/data/gh100-h200-e/capture.txt \
	"$gpupart" run --gpu 1 -t 0-7 -- "$prog" kernel >"$tmp/out" 2>"$tmp/err"
has "$(cat "$tmp/err")" "1 launch outside the set (simulated): work_plain: it ran on a GPU without a set" \
	"another GPU than the set's"
try run $e -t 0-7 -- "$gpupart" run -t 0-6 -- "$prog" x8
is "$(grep -c 'outside TPCs 0-6' "$tmp/err") $(grep -c outside "$tmp/err")" "1 1" \
	"a run inside a run: the inner one reports, once"
# shellcheck disable=SC3045 # dash and bash have it
(ulimit -s 64; try run $e -t 0-7 -- "$prog" x8; echo "$status" >"$tmp/status")
is "$(cat "$tmp/status") $(grep -c "1 launch outside TPCs 0-7" "$tmp/err")" "0 1" "a stack of 64 KiB is enough"
try run $e -t 0-7 --exec -- "$prog" x8
is "$status $(grep -c outside "$tmp/err")" "0 1" "--exec: no parent is left to report, one line all the same"
has "$err" "gpupart: 1 launch ran outside of TPCs 0-7 (simulated): the first kernel was work_cluster" "of the process itself"
try run $e -t 0-7 --exec -- "$prog" kernel x2
is "$status $(grep -c outside "$tmp/err")" "0 0" "where all was confined none"
try run $e -t 0-7 -- env -u GPUPART_REPORT "$prog" x8 sync unload load x8 x8
has "$err" "gpupart: 3 launches ran outside of TPCs 0-7 (simulated): the first kernel was work_cluster" \
	"without the name of the report in its environment, too"
try run $e -t 0-7 --exec -- env GPUPART_SIM_FAULTS=tmd-version=0x41 "$prog" kernel kernel
has "$err" "gpupart: 2 launches ran outside of the set (simulated): the first kernel was work_plain" "launches of an unknown kind"

# Used CUDA and was never confined.
try run $e -t 0-7 -- env GPUPART_DISABLE=1 "$prog" kernel
is $status 0 "GPUPART_DISABLE=1 inside: it runs"
has "$err" "(strict_prog) used CUDA (simulated) and was never confined: GPUPART_DISABLE=1" "and is reported"
try run $e -t 0-7 -- env -u GPUPART_SET "$prog" kernel
has "$err" "was never confined: GPUPART_SET is not in its environment" "without GPUPART_SET: reported"
try run $e -t 0-7 -- env GPUPART_SIM_FAULTS=no-table "$prog" kernel
has "$err" "was never confined: this driver offers no launch callback" "a refused attach: reported with its reason"
try run $e -t 0-7 -- env -i LD_LIBRARY_PATH="$BUILD/lib/gpupart/sim" GPUPART_SIM="$PWD/tests/data/gh100-h200-e/capture.txt" \
	sh -c '"$0" kernel sleep4000' "$prog"
has "$err" "was never confined: libgpupart-inject.so was not loaded into it" "an empty environment: seen from outside"
# The checks at fixed times are 1.5 and 3.1 s after the start.
try run $e -t 0-7 -- sh -c 'sleep 1.6; env -u CUDA_INJECTION64_PATH -u LD_PRELOAD "$0" kernel sleep1000' "$prog"
has "$err" "was never confined: libgpupart-inject.so was not loaded into it" "one between two of the looks is seen, too"

# --strict.
try run $e -t 0-7 --strict -- "$prog" kernel x2 coop8 legacy sync
is "$(grep -c "=0$" "$tmp/out")" 6 "--strict: what stays inside runs"
try run $e -t 0-7 --strict -- sh -c 'exit 7'
is $status 7 "--strict: the program's own status"
try run $e -t 0-7 --strict -- sh -c 'truncate -s 0 "$GPUPART_REPORT" || exit 7'
is $status 7 "a program cannot shorten the report, which would end the run"
# late PROGRAM ARGS: the program ignores SIGTERM. On a busy machine, SIGTERM can come before the
# program's next launch.
printf '#!/bin/sh\ntrap "" TERM\nexec "$@"\n' >"$tmp/late"
chmod +x "$tmp/late"
try run $e -t 0-7 --strict -- "$tmp/late" "$prog" kernel x8 kernel legacy x2 coop4 capture
is "$status $(tr '\n' ' ' <"$tmp/out")" "123 cuInit=0 context=0 kernel=0 x8=0 kernel=800 legacy=800 x2=800 coop4=800 capture=800 " \
	"--strict: launches after one outside of the set are refused, however they are launched, 123"
try run $e -t 0-7 --strict -- "$prog" x8 sleep60000
is $status 123 "--strict: a launch outside of the set ends the program, 123"
has "$err" "1 launch outside TPCs 0-7 (simulated): work_cluster" "it is reported"
has "$err" "strict: $prog was ended" "and said"
try run $e -t 0-7 --strict -- "$prog" x8
is $status 123 "--strict: also where the program ends by itself at once"
try run $e -t 0-7 --strict -- sh -c '"$0" x8 sleep60000; exec sleep 60' "$prog"
is $status 123 "--strict: a child's launch ends it and the program"
try run $e -t 0-7 --strict -- sh -c 'i=0; while [ $i -lt 256 ]; do "$0" init; i=$((i + 1)); done >/dev/null; "$0" kernel' "$prog"
is "$status $(tail -n 1 "$tmp/out")" "0 kernel=0" "processes one after the other, of which nothing is to report: no end of room"
full='i=0; while [ $i -lt 256 ]; do GPUPART_DISABLE=1 "$0" init; i=$((i + 1)); done >/dev/null; "$0" x8'
try run $e -t 0-7 -- sh -c "$full" "$prog"
is "$status $(cat "$tmp/out")" "0 cuInit=0 context=0
x8=0" "more processes than the report has room for: they run"
has "$err" "1 further process used CUDA (simulated): it is not known whether its launches were confined" "and are counted"
is "$(grep -c "^gpupart: 1 launch ran outside of TPCs 0-7 (simulated): the first kernel was work_cluster" "$tmp/err")" 1 "and say themselves what became of them"
try run $e -t 0-7 --strict -- sh -c "$full" "$prog"
is "$status $(cat "$tmp/out")" "123 cuInit=100 context=100
begin=100" "--strict: they are kept from CUDA, 123"
has "$err" "strict: this process cannot use CUDA, because its launches are not confined: the report is full: it already contains 256 processes" "the reason is reported"
has "$err" "1 further process could not use CUDA (simulated): the report was full" "and run counts them"
is "$(grep -c "what became of" "$tmp/err")" 0 "and does not say that they used it"
try run $e -t 0-7 --strict --exec -- "$prog" kernel capture x8 kernel graph x2
is "$status $(tr '\n' ' ' <"$tmp/out")" "1 cuInit=0 context=0 kernel=0 capture=0 x8=0 kernel=800 graph=800 x2=800 " \
	"--strict --exec: later launches are refused, graphs too"
has "$err" "gpupart: 1 launch ran outside of TPCs 0-7 (simulated): the first kernel was work_cluster; strict: later launches failed with error 800" \
	"and the process says at its end why"
for why in GPUPART_SIM_FAULTS=no-table GPUPART_SIM_FAULTS=table-size=48 GPUPART_CHECKED=0; do
	try run $e -t 0-7 --strict --exec -- env XDG_CACHE_HOME="$tmp/none" $why "$prog" kernel
	is "$status $(head -n 1 "$tmp/out")" "4 cuInit=100 context=100" "--strict, $why: cuInit fails"
	has "$err" "gpupart: strict: this process cannot use CUDA" "and the reason is reported"
done
try run $e -t 0-7 --strict -- sh -c 'trap "" TERM; "$0" x8 sleep300 kernel; sleep 2.2; exit 5' "$prog"
is "$status $(tail -n 1 "$tmp/out")" "123 kernel=800" "--strict: a program that ignores the signal"
# On a loaded machine it may be more than 2 s.
is "$(echo "$err" | grep -c "strict: sh got SIGTERM and ended only after [2-9] s\|ran on for [1-9][0-9] s")" 1 "is reported"
try run $e -t 0-7 --strict -- sh -c 'trap "" TERM; "$0" x8
	(trap - TERM; exec env -u CUDA_INJECTION64_PATH -u LD_PRELOAD "$0" kernel sleep60000); exit 3' "$prog"
is "$status $(grep -c sleep60000 "$tmp/out")" "123 0" "and what it starts then is ended, too"
has "$err" "was never confined: libgpupart-inject.so was not loaded into it" "and reported"
try run $e -t 0-7 --strict -- env GPUPART_CHECKED=0 XDG_CACHE_HOME="$tmp/none" "$prog" kernel
is $status 4 "--strict: the program whose cuInit failed ends as it likes"
has "$err" "(strict_prog) could not use CUDA (simulated)" "and run says so"
try run $e -t 0-7 --strict -- env GPUPART_DISABLE=1 "$prog" kernel
is "$(head -n 1 "$tmp/out")" "cuInit=100 context=100" "--strict: GPUPART_DISABLE=1 inside keeps the program from CUDA"
try run $e -t 0-7 --strict -- env -u CUDA_INJECTION64_PATH -u LD_PRELOAD "$prog" kernel sleep60000
is $status 123 "--strict: the library is kept out: seen from outside, and ended"
# An ordinary user sees nothing of a process that forbids it, like the kernel for setuid programs.
cat >"$tmp/hide.c" <<'END'
#include <sys/prctl.h>
int prog_main(int argc, char **argv);
int main(int argc, char **argv)
{
	prctl(PR_SET_DUMPABLE, 0);
	return prog_main(argc, argv);
}
END
${CC:-cc} -Dmain=prog_main -c -o "$tmp/prog.o" tests/gpu/strict_prog.c && ${CC:-cc} -o "$tmp/hide" "$tmp/hide.c" "$tmp/prog.o" -ldl || exit 1
chmod 755 "$tmp"
user=
[ "$(id -u)" != 0 ] || user="setpriv --reuid 4711 --clear-groups"
$user "$gpupart" run $e -t 0-7 --strict -- env -u CUDA_INJECTION64_PATH -u LD_PRELOAD "$tmp/hide" kernel sleep1000 >"$tmp/out" 2>"$tmp/err" </dev/null
has "$? $(cat "$tmp/err")" "(hide) cannot be examined by this user: this process may have used CUDA (simulated) without a limit" \
	"an unreadable process is reported as such"
$user "$gpupart" run $e -t 0-7 --strict -- "$tmp/hide" kernel sleep1000 >"$tmp/out" 2>"$tmp/err" </dev/null
is "$? $(tr '\n' ' ' <"$tmp/out")$(grep -c 'looked into' "$tmp/err")" "0 cuInit=0 context=0 kernel=0 sleep1000=0 0" "unless it is confined and reports so"
# Its parent has ended: found by its environment.
orphan='(exec 5>"$1"; env -u CUDA_INJECTION64_PATH -u LD_PRELOAD "$0" kernel "$2" >&5 &); exec sleep "$3"'
mkfifo "$tmp/alive"
cat "$tmp/alive" >"$tmp/orphan" &
try run $e -t 0-7 -- sh -c "$orphan" "$prog" "$tmp/alive" sleep4000 4
has "$err" "(strict_prog) used CUDA (simulated) and was never confined: libgpupart-inject.so was not loaded into it" \
	"without the library, and its parent ended: reported"
wait $!
cat "$tmp/alive" >"$tmp/orphan" &
try run $e -t 0-7 --strict -- sh -c "$orphan" "$prog" "$tmp/alive" sleep60000 60
wait $!
is "$status $(tail -n 1 "$tmp/orphan")" "123 kernel=0" "--strict: it is ended, and the program"
# Out of reach of the report: a violation there would not be detected.
try run $e -t 0-7 --strict -- env GPUPART_REPORT=/proc/self/fd/999 "$prog" x8
is "$status $(head -n 1 "$tmp/out")" "4 cuInit=100 context=100" "--strict: a report that is not there: cuInit fails"
has "$err" "gpupart: strict: this process cannot use CUDA, because its launches are not confined: they cannot be reported to its run: /proc/self/fd/999" \
	"and the reason is reported"
try run $e -t 0-7 --strict --exec -- env GPUPART_REPORT= "$prog" kernel
is $status 0 "--strict --exec: there is no run to tell"
# apart WORDS COMMAND..: runs the program after that command, with and without --strict.
apart() {
	words=$1
	shift
	if ! "$@" true 2>/dev/null; then
		skip "$words: cannot be done here"
		return
	fi
	try run $e -t 0-7 --strict -- "$@" "$prog" x8
	is "$status $(head -n 1 "$tmp/out")" "4 cuInit=100 context=100" "--strict: $words: cuInit fails"
	has "$err" "they cannot be reported to its run: /proc/" "$words: with the reason"
	try run $e -t 0-7 -- "$@" "$prog" kernel
	is "$status $(tail -n 1 "$tmp/out")" "0 kernel=0" "without --strict: $words: it runs"
	has "$err" "gpupart: this process itself will report its launches outside of the set: they cannot be reported to its run: /proc/" "$words: it says that it is not reported"
	is "$(grep -c "[0-9] launch.* outside" "$tmp/err")" 0 "and no more where there was none"
	try run $e -t 0-7 -- "$@" "$prog" x8 kernel x8
	has "$err" "gpupart: 2 launches ran outside of TPCs 0-7 (simulated): the first kernel was work_cluster" "$words: it reports its launches itself"
	try run $e -t 0-7 -- "$@" "$prog" x8 sync kill9
	has "$err" "gpupart: this process itself will report its launches outside of the set: they cannot be reported to its run: /proc/" "$words: one that was killed said so before"
}
apart "another pid namespace" unshare -pf --mount-proc
apart "no /proc" unshare -m sh -c 'mount -t tmpfs none /proc && exec "$0" "$@"'
chmod 755 "$tmp"
apart "another user" setpriv --reuid 1234 --clear-groups
# after PROGRAM ARGS: execs from a confined process, without the library.
cat >"$tmp/after" <<'END'
#!/bin/sh
"$@" init &
confined=$!
wait $confined
sleep 0.1
exec 3>/proc/sys/kernel/ns_last_pid
echo $((confined - 1)) >&3
env -u CUDA_INJECTION64_PATH -u LD_PRELOAD "$@" kernel sleep4000 &
[ $! = $confined ] && echo same number
wait $!
END
chmod +x "$tmp/after"
if unshare -pf --mount-proc true 2>/dev/null; then
	for wanted in 0 123; do
		strict=
		[ $wanted = 0 ] || strict=--strict
		LD_LIBRARY_PATH=$BUILD/lib/gpupart/sim unshare -pf --mount-proc \
			sh -c 'mount -t tmpfs shm /dev/shm && exec "$@"' sh \
			"$gpupart" run $e -t 0-7 $strict -- "$tmp/after" "$prog" >"$tmp/out" 2>"$tmp/err"
		status=$?
		has "$(cat "$tmp/out")" "same number" "an unconfined process has a confined one's number"
		has "$(cat "$tmp/err")" "was never confined: libgpupart-inject.so was not loaded into it" "it is seen"
		is $status $wanted "its status${strict:+ with }$strict"
	done
	if unshare -T --boottime 100000 true 2>/dev/null; then
		LD_LIBRARY_PATH=$BUILD/lib/gpupart/sim unshare -pf --mount-proc -T --boottime 100000 \
			sh -c 'mount -t tmpfs shm /dev/shm && exec "$@"' sh \
			"$gpupart" run $e -t 0-7 -- "$tmp/after" "$prog" >"$tmp/out" 2>"$tmp/err"
		has "$(cat "$tmp/err")" "may never have been confined: libgpupart-inject.so was not loaded" \
			"in another time namespace their start times tell nothing"
	else
		skip "no time namespaces"
	fi
else
	skip "numbers of processes: needs root"
fi
cat >"$tmp/tls.c" <<'END'
__thread char big[1600] __attribute__((tls_model("initial-exec")));
char *tls(void) { return big; }
END
# The program itself, with a library that leaves no thread-local memory for later libraries.
sed 's/lib = dlopen("libcuda.so.1", RTLD_NOW);/dlopen(getenv("TLS"), RTLD_NOW); lib = dlopen("libcuda.so.1", RTLD_NOW);/' \
	tests/gpu/strict_prog.c >"$tmp/full.c"
${CC:-cc} -shared -fPIC -o "$tmp/tls.so" "$tmp/tls.c" && ${CC:-cc} -o "$tmp/full" "$tmp/full.c" -ldl
ok $? "a program without room for the library's thread-local memory"
try run $e -t 0-7 --strict -- "$tmp/late" env TLS="$tmp/tls.so" "$tmp/full" kernel x8 kernel
is $status 123 "--strict: the library is there from the start"
has "$(cat "$tmp/out")" "kernel=800" "and confines"

# The user's own MPS daemon ends a client's work before the client is ended.
mkdir "$tmp/bin" "$tmp/fake"
mkdir -m 700 "$tmp/mps"
ln -s "$root/tests/other_mps.sh" "$tmp/bin/nvidia-cuda-mps-control"
PATH=$tmp/bin:$PATH
FAKE_MPS=$tmp/fake
CUDA_MPS_PIPE_DIRECTORY=$tmp/mps
export PATH FAKE_MPS CUDA_MPS_PIPE_DIRECTORY
echo 501 >"$tmp/fake/servers"
nvidia-cuda-mps-control -d
tries=0
until [ -e "$tmp/mps/control" ] || [ $tries -ge 300 ]; do tries=$((tries + 1)); sleep 0.1; done
try run $e -t 0-7 --strict -- sh -c '"$0" x8 sleep60000; exec sleep 60' "$prog"
is "$status $(sed -n 's/ [0-9]* lives$/ PID lives/p' "$tmp/fake/log" | tr '\n' ' ')" \
	"123 terminate_client 501 PID lives terminate_client 501 PID lives " \
	"--strict: a daemon of MPS ends the work of the process and of the program before they are ended"
is "$(grep '^terminate' "$tmp/fake/log" | sort -u | wc -l)" 2 "which are two processes"
rm -r "$tmp/mps"
unset CUDA_MPS_PIPE_DIRECTORY

GPUPART_DISABLE=1
export GPUPART_DISABLE
refused 125 "GPUPART_DISABLE=1: --strict" run $e -t 0 --strict -- true
unset GPUPART_DISABLE
GPUPART_STRICT=1
export GPUPART_STRICT
try run $e -t 0-7 -- "$prog" x8 kernel
is $status 123 "GPUPART_STRICT=1 in the environment is --strict"
for value in yes 2 "1 "; do
	GPUPART_STRICT=$value
	refused 125 "GPUPART_STRICT='$value': must be 1 or 0" run $e -t 0-7 -- "$prog" kernel
done
for value in 0 ""; do
	GPUPART_STRICT=$value
	try run $e -t 0-7 -- "$prog" x8 kernel
	is "$status $(tail -n 1 "$tmp/out")" "0 kernel=0" "GPUPART_STRICT='$value': not strict"
done
unset GPUPART_STRICT
for value in yes 2 "1 "; do
	try run $e -t 0-7 --exec -- env GPUPART_STRICT="$value" "$prog" x8 kernel
	has "$out" "kernel=800" "GPUPART_STRICT='$value' in a program's environment: counts as strict"
done

# A node's setting: /etc is private to this test.
if [ "$(id -u)" -ne 0 ] || ! unshare -m true 2>/dev/null; then
	skip "/etc/gpupart/config: needs root"
	tap_done
fi
mkdir -p "$tmp/etc/gpupart"
cp -a /etc/ld.so.* /etc/passwd /etc/group "$tmp/etc/" 2>/dev/null
# node TEXT MODE ARGS: gpupart ARGS on a node with that file.
node() {
	printf "$1" >"$tmp/etc/gpupart/config"
	chmod "$2" "$tmp/etc/gpupart/config"
	shift 2
	unshare -m sh -c 'mount --bind "$0" /etc && exec "$@"' "$tmp/etc" "$gpupart" "$@" \
		>"$tmp/out" 2>"$tmp/err" </dev/null
	status=$?
	err=$(cat "$tmp/err")
}
node '# ours\n strict=yes # all\n\n' 644 run $e -t 0-7 -- "$tmp/late" "$prog" x8 kernel
is "$status $(tail -n 1 "$tmp/out")" "123 kernel=800" "strict = yes of a node"
for text in 'strict = no\n' '#strict = yes\n' ''; do
	node "$text" 644 run $e -t 0-7 -- "$prog" x8 kernel
	is "$status $(tail -n 1 "$tmp/out")" "0 kernel=0" "not strict: $(echo "$text" | wc -c) bytes of another text"
done
node 'strict = maybe\n' 644 run $e -t 0-7 -- true
is $status 125 "strict = maybe: refused"
has "$err" "/etc/gpupart/config:1: strict = maybe: must be yes or no" "by name"
node 'strict yes\n' 644 run $e -t 0-7 -- true
has "$status $err" "125 gpupart run: /etc/gpupart/config:1: 'strict yes' is not valid: must be KEY = VALUE" "a line without =: refused"
node 'strict = no\n\nstrictly = yes\n' 644 run $e -t 0-7 -- true
has "$status $err" "125 gpupart run: /etc/gpupart/config:3: 'strictly' is not a key: the only key is 'strict'" "another key: refused"
for text in 'strict = yes\nstrict = no\n' 'strict = no\nStrict = yes\n' 'strict = yes\nstrict = yes\n'; do
	node "$text" 644 run $e -t 0-7 -- true
	has "$status $err" "125 gpupart run: /etc/gpupart/config:2: '" "a key that is given twice: refused, with its line"
	has "$err" "rict' is given twice" "and why"
done
node 'strict = no\nstrict = no\n' 644 stat $e -t 0-7 -- "$prog" x8 kernel
has "$(cat "$tmp/out" "$tmp/err")" "kernel=800" "a key twice: a process that another command confines is strict"
node 'strictly = yes\n' 644 stat $e -t 0-7 -- "$prog" x8 kernel
has "$(cat "$tmp/out" "$tmp/err")" "kernel=800" "another key: a process that another command confines is strict"
has "$err" "'strictly' is not a key: the only key is 'strict': treated as strict = yes" "and says so"
node "$(printf '%04100d' 0)" 644 run $e -t 0-7 -- true
has "$status $err" "125 gpupart run: /etc/gpupart/config: has 4096 bytes or more" "a large file: refused"
node '\000strict = yes\n' 644 run $e -t 0-7 -- true
has "$status $err" "125 gpupart run: /etc/gpupart/config: has a NUL byte" "a NUL byte: refused"
# row TEXT MODE: doctor's row about that file.
row() {
	node "$1" "$2" doctor --no-launch $e
	sed -n 's/ node-config  */ /p' "$tmp/out" | tr -s ' '
}
is "$(row 'strict = yes\n' 644)" "ok strict = yes: every run is strict" "doctor: strict = yes"
is "$(row '' 644)" "ok a run is strict only with --strict or GPUPART_STRICT=1" "doctor: nothing set"
has "$(row 'trict = yes\n' 644)" "bad /etc/gpupart/config:1: 'trict' is not a key: the only key is 'strict'" "doctor: another key"
has "$(row 'strict = yes\n' 666)" "note /etc/gpupart/config is ignored" "doctor: a file that others may write"
rm "$tmp/etc/gpupart/config"
mkdir "$tmp/etc/gpupart/config"
for words in "Is a directory" "Permission denied"; do
	user=
	[ "$words" = "Is a directory" ] || user="setpriv --reuid 1234 --clear-groups"
	# shellcheck disable=SC2086 # a command or nothing
	unshare -m sh -c 'mount --bind "$0" /etc && exec "$@"' "$tmp/etc" $user "$gpupart" run $e -t 0-7 -- "$tmp/late" "$prog" x8 kernel \
		>"$tmp/out" 2>"$tmp/err" </dev/null
	is "$? $(tail -n 1 "$tmp/out")" "123 kernel=800" "$words: counts as strict"
	is "$(grep -c "^gpupart run: /etc/gpupart/config: $words: treated as strict = yes" "$tmp/err")" 1 "and run says so, once"
	# shellcheck disable=SC2086 # as above
	unshare -m sh -c 'mount --bind "$0" /etc && exec "$@"' "$tmp/etc" $user "$gpupart" doctor --no-launch $e >"$tmp/out" 2>"$tmp/err"
	has "$(sed -n 's/ node-config  */ /p' "$tmp/out" | tr -s ' ')" "note /etc/gpupart/config: $words: every run is strict" "so does doctor"
	rmdir "$tmp/etc/gpupart/config" 2>/dev/null && (umask 077 && echo 'strict = no' >"$tmp/etc/gpupart/config")
done
rm "$tmp/etc/gpupart/config"
ln -s missing "$tmp/etc/gpupart/config"
unshare -m sh -c 'mount --bind "$0" /etc && exec "$@"' "$tmp/etc" "$gpupart" run $e -t 0-7 -- "$tmp/late" "$prog" x8 kernel >"$tmp/out" 2>"$tmp/err" </dev/null
is "$? $(tail -n 1 "$tmp/out")" "123 kernel=800" "a link that leads nowhere: counts as strict"
rm "$tmp/etc/gpupart/config"
node 'Strict = yes\n' 644 run $e -t 0-7 -- "$tmp/late" "$prog" x8 kernel
is "$status $(tail -n 1 "$tmp/out")" "123 kernel=800" "a capital letter is no way around it"
node 'strict = yes\n' 666 run $e -t 0-7 -- "$prog" x8 kernel
is "$status $(tail -n 1 "$tmp/out")" "0 kernel=0" "a file that others may write is ignored"
is "$(grep -c "/etc/gpupart/config is ignored" "$tmp/err")" 1 "and run says so, once"
node 'strict = yes\n' 666 run $e -t 0-7 --exec -- "$prog" kernel
is "$(grep -c "/etc/gpupart/config is ignored" "$tmp/err")" 1 "the same with --exec"
node 'strict = yes\n' 666 stat $e -t 0-7 -- "$prog" kernel
is "$(grep -c "/etc/gpupart/config is ignored" "$tmp/err")" 1 "another command leaves it to the process"
node 'strict = yes\n' 644 stat $e -t 0-7 -- "$prog" x8 kernel
has "$(cat "$tmp/out")" "kernel=800" "a node's setting holds in a program that another command confines"

cat >"$tmp/many.py" <<'END'
import signal, subprocess, sys
signal.signal(signal.SIGTERM, lambda number, frame: None)
many = [subprocess.Popen([sys.argv[1], "x8", "sleep60000"], stdout=subprocess.DEVNULL) for i in range(80)]
print([p.wait() for p in many].count(-signal.SIGTERM))
END
if python3 -c '' 2>/dev/null; then
	try run $e -t 0-7 --strict -- python3 "$tmp/many.py" "$prog"
	is "$status $(cat "$tmp/out")" "123 80" "each of 80 processes that left the set is ended"
else
	skip "no python3"
fi

# In a user namespace, root's files have another owner.
if ! setpriv --reuid 4711 --clear-groups unshare -Ur true 2>/dev/null; then
	skip "no user namespaces"
	tap_done
fi
chmod 755 "$tmp"
# as_user COMMAND...: the same node for user 4711, started by COMMAND.
as_user() {
	unshare -m sh -c 'mount --bind "$0" /etc && exec setpriv --reuid 4711 --clear-groups "$@"' "$tmp/etc" "$@" \
		"$gpupart" stat $e -t 0-7 -- "$prog" x8 kernel 2>&1 </dev/null
}
for map in -Ur -U; do
	has "$(as_user unshare $map)" "kernel=800" "strict = yes holds in a user namespace: unshare $map"
done
chmod 777 "$tmp/etc/gpupart"
has "$(as_user unshare -Ur)" "kernel=0" "not in a folder that another user may write"
chmod 755 "$tmp/etc/gpupart"
chown 65534 "$tmp/etc/gpupart" "$tmp/etc/gpupart/config"
has "$(as_user env)" "/etc/gpupart/config is ignored" "nor, outside of one, for a file of the overflow user"
# A run of another version: its report has another size. As with --exec, CUDA is not disabled.
if command -v python3 >/dev/null; then
	try run $e -t 0-7 --strict -- python3 -c 'import os, subprocess, sys
fd = os.memfd_create("gpupart-report")
os.write(fd, b"x" * 4096)
env = dict(os.environ, GPUPART_REPORT=f"/proc/{os.getpid()}/fd/{fd}")
sys.exit(subprocess.run([sys.argv[1], "kernel", "x8", "kernel"], env=env).returncode)' "$prog"
	is "$status $(tr '\n' ' ' <"$tmp/out")" "1 cuInit=0 context=0 kernel=0 x8=0 kernel=800 " \
		"a run of another version: the process has CUDA until it leaves the set"
	has "$err" "is from another version of gpupart" "and says why the run does not know"
	has "$err" "gpupart: 1 launch ran outside of TPCs 0-7 (simulated): the first kernel was work_cluster; strict: later launches failed with error 800" "and at its end"
else
	skip "no python3"
fi

tap_done
