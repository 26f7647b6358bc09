#!/bin/sh
# SPDX-License-Identifier: MIT
# gpupart run on the simulated GPU: the program's environment and status, unions of sets, -n, a
# run inside a run, another tool in the injection slot.
. "$(dirname "$0")/tap.subr"
e="-i tests/data/gh100-h200-e/capture.txt"

cat >"$tmp/show" <<'END'
#!/bin/sh
echo "set=$GPUPART_SET name=$GPUPART_NAME"
echo "gpu=$GPUPART_GPU"
echo "checked=$GPUPART_CHECKED"
echo "inject=$CUDA_INJECTION64_PATH"
echo "preload=$LD_PRELOAD"
echo "next=$GPUPART_NEXT_INJECTION"
echo "args=$#:$1:$2"
exit 42
END
chmod +x "$tmp/show"
value() { sed -n "s/^$1=//p" "$tmp/out"; }

try run $e -t 0,5,8-11 --name job.1 -- "$tmp/show" "a b" -t
is $status 42 "the program's own status"
is "$(value set)" "0,5,8-11 name=job.1" "GPUPART_SET and GPUPART_NAME"
is "$(value args)" "2:a b:-t" "its arguments are its own"
[ "$(value inject)" -ef "$BUILD/lib/gpupart/libgpupart-inject.so" ]
ok $? "CUDA_INJECTION64_PATH is the injected library"
is "$(value preload)" "" "LD_PRELOAD is left alone"
gpu=$(value gpu)
case $gpu in
*:*:*.*) ok 0 "GPUPART_GPU is a PCI address" ;;
*) ok 1 "GPUPART_GPU is a PCI address: $(value gpu)" ;;
esac
[ -n "$(value checked)" ]
ok $? "GPUPART_CHECKED is the key of the checked map"
is "$(wc -l <"$tmp/err") $(grep -c "have room for clusters of at most 4 blocks" "$tmp/err")" "2 1" "two lines on stderr, one of the cluster it holds"
has "$err" simulated "it says simulated"
has "$err" "0,5,8-11" "it names the set"
has "$err" "simulated" "it says that the GPU is simulated"
try run $e -g 0,2 -- "$tmp/show"
has "$err" "(GPC 0,2)" "it names the GPCs that the set covers whole"

# Without "--" the first word that is not an option is the program.
try run $e -t 3 "$tmp/show" -t 9
is "$status $(value set)" "42 3 name=" "without --: the program's options stay its own"

# A program that uses the GPU loads the library, with the limit; gpupart itself is such a program.
GPUPART_LOG=$tmp/log
export GPUPART_LOG
try run $e -t 4,12,20,28 -- "$gpupart" verify --quick
is "$(cat "$tmp/log" 2>&1)" "gpupart: confined to TPCs 4,12,20,28 of $gpu (simulated)" \
	"in a program that uses the GPU the limit is in force"
is "$(grep -c '^FAIL' "$tmp/out") $(wc -l <"$tmp/err")" "0 1" "and says nothing of its own"
unset GPUPART_LOG

# Statuses.
try run $e -t 0 -- "$tmp/nosuch"
is "$status $(grep -c "$tmp/nosuch" "$tmp/err")" "127 1" "a program that is not there"
try run $e -t 0 -- nosuch-program-anywhere
is $status 127 "a program that is not on PATH"
: >"$tmp/plain"
try run $e -t 0 -- "$tmp/plain"
is "$status $(grep -c "$tmp/plain" "$tmp/err")" "126 1" "a program that may not run"
try run $e -t 0 -- "$tmp"
is $status 126 "a folder"
try run $e -t 0 -- sh -c 'exit 0'
is "$status$out" 0 "status 0"
try run $e -t 0 -- sh -c 'kill -TERM $$'
is $status 143 "a signal stays a signal"
pid=$(sh -c 'echo $$; exec "$0" run '"$e"' --exec -t 0 -- sh -c "echo \$\$"' "$gpupart" 2>/dev/null | uniq | wc -l)
is "$pid" 1 "--exec: the pid stays"
is "$(echo in | "$gpupart" run $e -t 0 -- cat 2>/dev/null)" in "stdin is the program's"
"$gpupart" run $e -t 0 -- sh -c 'kill -PIPE $$' 2>/dev/null
is $? 141 "SIGPIPE is the program's as it was"

# A HOME that does not exist is not created.
is "$(env -u XDG_CACHE_HOME HOME="$tmp/nohome/user" "$gpupart" run $e -t 0 -- echo ran 2>&1 | tail -n 1)" ran \
	"a home that is not there: it runs"
[ ! -e "$tmp/nohome" ]
ok $? "and is not made"
has "$(env -u XDG_CACHE_HOME HOME="$tmp/nohome/user" "$gpupart" doctor --no-launch $e --json)" \
	"nohome/user: No such file or directory" "doctor says so"
mkdir "$tmp/home"
is "$(env -u XDG_CACHE_HOME HOME="$tmp/home" "$gpupart" run $e -t 0 -- echo ran 2>&1 | tail -n 1)" ran "a home that is there"
[ -d "$tmp/home/.cache/gpupart/checked" ]
ok $? "has the cache"

# Unions of several options.
set_of() {
	try run $e "$@" -- "$tmp/show"
	value set | sed 's/ name=.*//'
}
is "$(set_of -t 1,0)" 0-1 "order does not matter"
is "$(set_of -t 0-10:2)" 0,2,4,6,8,10 "a stride"
is "$(set_of --hex 0x30f)" 0-3,8-9 "--hex"
is "$(set_of -g 1)" 0,8,16,24,62,65 "-g, the GPC of 6 TPCs"
is "$(set_of -u 0 | tr ',' '\n' | awk -F- '{ n += (NF > 1 ? $2 - $1 : 0) + 1 } END { print n }')" 33 "-u"
is "$(set_of -t 3 -g 1 --hex 4)" 0,2-3,8,16,24,62,65 "several add up"
# -n: whole GPCs of the first uGPU with room; board e's uGPU 0 has GPCs of 9, 8, 8, 8 TPCs.
is "$(set_of -n 9)" 4,12,20,28,35,42,49,56,63 "-n 9 is GPC 0"
is "$(set_of -n 8)" 1,9,17,25,32,39,46,53 "-n 8 is GPC 2"
is "$(set_of -n 10)" 1,4,12,20,28,35,42,49,56,63 "-n 10 is GPC 0 and one TPC"
is "$(set_of -n 33)" "$(set_of -u 0)" "-n 33 is uGPU 0"
is "$(set_of -n 66)" 0-65 "-n 66 is all"
is "$(set_of -n 4 -n 5)" "$(set_of -n 9)" "two -n add up"
is "$(set_of -g 0 -n 8)" "$(set_of -g 0,2)" "-n leaves the others' TPCs alone"
is "$(set_of -g 2 -n 8)" "$(set_of -g 2,3)" "-n does not count what is there already"
is "$(set_of -n 17)" "$(set_of -n 17)" "-n is the same each time"

# -n avoids TPCs of running programs, or reports that the sets overlap.
mkfifo "$tmp/hold"
hold() {	# hold ARGS: a run that has started and lasts until release
	rm -f "$tmp/held"
	"$gpupart" run "$@" -- sh -c 'echo "$GPUPART_SET" >"$0.new"; mv "$0.new" "$0"; read x <"$1"' \
		"$tmp/held" "$tmp/hold" 2>/dev/null &
	for i in $(seq 300); do
		[ -e "$tmp/held" ] && break
		sleep 0.2
	done
}
release() {
	echo >"$tmp/hold"
	wait
}
hold $e -n 8
is "$(cat "$tmp/held") $(set_of -n 8)" "1,9,17,25,32,39,46,53 2,10,18,26,33,40,47,54" \
	"a second -n 8 is clear of the first"
is "$(grep -c "also used by" "$tmp/err")" 0 "and has nothing to say"
is "$(set_of -n 66)" 0-65 "-n 66 beside a run of 8"
has "$(cat "$tmp/err")" "TPCs 1,9,17,25,32,39,46,53 are also used by" "-n 66 beside a run of 8: says which overlap"
is "$(set_of -t 1)" 1 "what is named is what is taken"
try run -i tests/data/gh100-h200-b/capture.txt -n 66 -- true
case $err in *overlap*) bad=1 ;; *) bad=0 ;; esac
ok $bad "another simulated GPU's runs do not count"
release
is "$(set_of -n 8)" 1,9,17,25,32,39,46,53 "-n 8 after it"
# Three at once: none ends before all have a set.
for i in 1 2 3; do
	"$gpupart" run $e -n 8 -- sh -c 'echo "$GPUPART_SET" >>"$0"
		for try in $(seq 300); do [ "$(wc -l <"$0")" -ge 3 ] && break; sleep 0.1; done' "$tmp/both" 2>/dev/null &
done
wait
is "$(sort -u "$tmp/both" | wc -l)" 3 "three -n 8 at once: three sets"

# A run inside a run.
inside() { try run $e -g 0 -- "$gpupart" run "$@" -- "$tmp/show"; }
inside -t 4,12
is "$status $(value set)" "42 4,12 name=" "inside a run: a smaller set"
inside -n 2
is "$status $(value set)" "42 4,12 name=" "inside a run: -n takes from the limit"
inside -t 4,5
is "$status $(value set)" "125 " "inside a run: a TPC outside the limit is refused"
has "$err" "TPCs 5 are outside the limit 4,12,20,28,35,42,49,56,63 (GPC 0)" "inside a run: both are named"
# Both outer runs stay, with more TPCs than there are to choose from.
cat >"$tmp/two" <<'END'
#!/bin/sh
# two GPUPART FILE: two runs at the same time; their sets are written to FILE.
"$1" run -n 8 -- sh -c 'echo "$GPUPART_SET" >>"$0"; exec sleep 60' "$2" &
tries=0
until [ -s "$2" ] || [ $tries -ge 300 ]; do tries=$((tries + 1)); sleep 0.1; done
"$1" run -n 8 -- sh -c 'echo "$GPUPART_SET" >>"$0"' "$2"
kill $!
wait
END
chmod +x "$tmp/two"
try run $e -t 0-40 -- "$gpupart" run -t 0-30 -- "$tmp/two" "$gpupart" "$tmp/nested"
is "$(sort -u "$tmp/nested" | wc -l)" 2 "inside two runs: a second -n 8 is clear of the first"
inside -n 10
is $status 125 "inside a run: more than the limit has is refused"
try run $e -g 0 -- env XDG_CACHE_HOME="$tmp/other" "$gpupart" run -t 4 -- "$tmp/show"
is "$status $(value set)" "42 4 name=" "inside a run: the map is checked on the whole GPU"
try run $e -g 0 --name outer -- "$gpupart" run -t 4 -- "$tmp/show"
is "$(value set)" "4 name=outer" "inside a run: the name stays"
GPUPART_SET=x
export GPUPART_SET
refused 125 GPUPART_SET=x run $e -t 0 -- "$tmp/show"
unset GPUPART_SET

# The address that run prints identifies the GPU, even if the capture has none.
try run -i sample:h200 -t 0-9 -- sh -c '"$0" run --gpu "$GPUPART_GPU" -t 3 -- "$1"' "$gpupart" "$tmp/show"
is "$status $(value set) $(value gpu)" "42 3 name= 0000:01:00.0" "inside a run: --gpu \$GPUPART_GPU"
for command in verify doctor; do
	try run -i sample:h200 -t 0-9 -- sh -c '"$0" $1 --gpu "$GPUPART_GPU"' "$gpupart" $command
	is $status 0 "inside a run: $command --gpu \$GPUPART_GPU"
done

# Several simulated GPUs: --gpu chooses, and a run does not leave its own GPU.
sim() {
	env LD_LIBRARY_PATH="$BUILD/lib/gpupart/sim" \
		GPUPART_SIM="$PWD/tests/data/gh100-h200-b/capture.txt:$PWD/tests/data/gh100-h200-e/capture.txt" \
		"$gpupart" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
	status=$?
	err=$(cat "$tmp/err")
}
for gpu in 1 0000:02:00.0; do
	sim run --gpu $gpu -g 1 -- "$tmp/show"
	is "$status $(value gpu) $(value set)" "42 0000:02:00.0 0,8,16,24,62,65 name=" \
		"two simulated GPUs: --gpu $gpu is the second"
	sim run --gpu 0 -t 0-9 -- "$gpupart" run --gpu $gpu -t 0 -- "$tmp/show"
	is "$status $(value set)" "125 " "two simulated GPUs: a run cannot leave its own for $gpu"
	has "$err" "cannot use GPU 0000:02:00.0 instead" "two simulated GPUs: and says so"
done
sim run --gpu 1 -t 0-9 -- "$gpupart" run -t 3 -- "$tmp/show"
is "$status $(value gpu)" "42 0000:02:00.0" "two simulated GPUs: inside a run the GPU is the limited one"
sim run --gpu 2 -t 0 -- "$tmp/show"
is "$status $(grep -c 'no simulated GPU matches 2' "$tmp/err")" "125 1" "two simulated GPUs: there is no third"

# GPUPART_SIM alone has no effect: the set is not computed from it.
GPUPART_SIM=$PWD/tests/data/gh100-h200-e/capture.txt
export GPUPART_SIM
if [ ! -e /dev/nvidiactl ]; then
	try run -t 0 -- "$tmp/show"
	is "$status $(value set)" "125 " "GPUPART_SIM without its driver: run wants a GPU"
	case $err in *simulated*) bad=1 ;; *) bad=0 ;; esac
	ok $bad "GPUPART_SIM without its driver: nothing is simulated"
	GPUPART_SIM=
	try demo
	is $status 0 "an empty GPUPART_SIM: demo is simulated as without it"
else
	skip "there is a GPU"
fi
unset GPUPART_SIM

# The check runs without another tool's library, which only the program loads.
cat >"$tmp/tool.c" <<'END'
#include <stdio.h>
#include <stdlib.h>
int InitializeInjection(void)
{
	FILE *file = fopen(getenv("TOOL_LOG"), "a");

	fputs("called\n", file);
	fclose(file);
	return 1;
}
END
if ${CC:-cc} -shared -fPIC -o "$tmp/tool.so" "$tmp/tool.c" 2>/dev/null; then
	: >"$tmp/tool.log"
	CUDA_INJECTION64_PATH=$tmp/tool.so TOOL_LOG=$tmp/tool.log XDG_CACHE_HOME=$tmp/unchecked \
		"$gpupart" run $e -t 0 -- true 2>/dev/null
	is "$? $(cat "$tmp/tool.log")" "0 " "another tool is not called for our check"
	CUDA_INJECTION64_PATH=$tmp/tool.so TOOL_LOG=$tmp/tool.log \
		"$gpupart" run $e -t 0-7 -- "$gpupart" verify --quick >/dev/null 2>&1
	is "$? $(cat "$tmp/tool.log")" "0 called" "and is called in the program"
else
	skip "no C compiler"
fi

# Another tool's library in the slot.
CUDA_INJECTION64_PATH=/lib/other.so
export CUDA_INJECTION64_PATH
case $BUILD in
*[[:blank:]:]*)
	refused 125 "LD_PRELOAD takes no path with a blank or colon" run $e -t 0 -- "$tmp/show" ;;
*)
	try run $e -t 0 -- "$tmp/show"
	emulated "starts a shell of this machine, which takes no library of the other: the slot is taken" ||
		is "$status $(value next)" "42 /lib/other.so" "the slot is taken: that tool comes after ours"
	[ "$(value preload)" -ef "$BUILD/lib/gpupart/libgpupart-inject.so" ]
	ok $? "the slot is taken: LD_PRELOAD"
	LD_PRELOAD=libm.so.6
	export LD_PRELOAD
	try run $e -t 0 -- "$tmp/show"
	has "$(value preload)" "libgpupart-inject.so:libm.so.6" "the slot is taken: LD_PRELOAD keeps what it had"
	unset LD_PRELOAD
	try run $e -g 0 -- "$gpupart" run -t 4 -- "$tmp/show"
	is "$status $(value set) $(value preload | tr ':' '\n' | grep -c inject)" "42 4 name= 1" \
		"the slot is taken, a run inside a run: preloaded once" ;;
esac
unset CUDA_INJECTION64_PATH

# The slot is not changed.
GPUPART_DISABLE=1
export GPUPART_DISABLE
try run $e -t 0 -- "$tmp/show"
is "$status $(value set)$(value inject)" "42  name=" "GPUPART_DISABLE=1: nothing is set"
has "$err" "GPUPART_DISABLE=1" "GPUPART_DISABLE=1: it says so"
has "$err" simulated "GPUPART_DISABLE=1: it says simulated"
try run -t 0 -- "$tmp/show"
is $status 42 "GPUPART_DISABLE=1: runs without a GPU too"
unset GPUPART_DISABLE

# Green contexts, cooperative grids and clusters in limits with singletons, here TPCs 62 to 65.
for set in 60-65 65 33-65 0,8,16,24,62-65; do
	try run -i sample:h200-e -t $set -- "$BUILD/tests/gpu-green" $set
	is "$status $(grep -c '^not ok' "$tmp/out")" "0 0" "green contexts in $set: $(grep '^not ok' "$tmp/out" | head -n 3)"
done

tap_done
