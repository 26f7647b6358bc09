#!/bin/sh
# SPDX-License-Identifier: MIT
# First attempts of a new user: unknown words, pipes that close early, file name endings.
. "$(dirname "$0")/tap.subr"
h200="-i sample:h200"

for page in README.md Documentation/user/tutorial.md Documentation/user/tutorial-gpu.md; do
	is "$(grep -h '^scripts/bootstrap' $page | grep -vE '^scripts/bootstrap (build|check|coverage)\b')" "" "$page: bootstrap has a word behind it"
done

# A reader that closes early: no message. A full disk: a message.
for words in "doctor --no-launch $h200" "topology $h200 --json" "run --help" "help qos"; do
	mkfifo "$tmp/fifo"
	true <"$tmp/fifo" &
	# shellcheck disable=SC2086 # a list of words
	(exec 3>"$tmp/fifo"; wait $!; sleep 0.1; "$gpupart" $words >&3 2>"$tmp/err")
	is "$(cat "$tmp/err")" "" "$words: silent without a reader"
	rm "$tmp/fifo"
done
"$gpupart" run --help >/dev/full 2>"$tmp/err"
is "$? $(cut -d : -f 1-2 "$tmp/err")" "1 gpupart: cannot write to standard output" "a full disk"

for ending in png pdf jpg; do
	refused 2 "-o $tmp/x.$ending: a picture can only be .svg, not .$ending" topology $h200 -o "$tmp/x.$ending"
done
# FILE.json contains JSON, unless a form is given.
for words in "topology $h200" "plan $h200 --tenant a:min=1" "sim figure-4" "sim --list" ps "stat $h200 -- true"; do
	# shellcheck disable=SC2086 # a list of words
	try ${words%%-- *} -o "$tmp/x.json" ${words#"${words%%-- *}"}
	is "$status $(jq -r .schema "$tmp/x.json" 2>&1)" "0 gpupart/1" "${words%% *} -o FILE.json writes JSON"
done
try topology $h200 --of text -o "$tmp/x.json"
has "$(head -n 1 "$tmp/x.json")" "NVIDIA H200" "--of text into FILE.json is text"
try stat $h200 -- echo data
is "$status $out" "0 data" "stat: the program's stdout is the program's alone"
has "$err" "no CUDA call: the program made no CUDA call" "the report is on stderr"
try stat $h200 --json -- echo data
is "$status $out $(jq -r .command "$tmp/err" 2>&1)" "0 data stat" "JSON too"
# Options are not abbreviated: --sm is not --sm-count.
refused 125 "--sm-count" run $h200 --sm 8 -- true
refused 2 "unknown option '--outpu=x': write --output" topology $h200 --outpu=x
refused 2 "process 999999999 does not exist" set -p 999999999 -t 0
refused 2 "process $$ is not known to gpupart: the process has not called cuInit, runs without gpupart, or /dev/shm was full when the process started:" set -p $$ -t 0
try help qos run
is "$status $(head -n 1 "$tmp/out")" "0 $("$gpupart" help qos | head -n 1)" "help qos run: the help of qos"
try help help
is "$status $(head -n 1 "$tmp/out")" "0 Usage: gpupart COMMAND [OPTIONS] [-- PROGRAM ARGS]" "help help"
refused 2 "unexpected argument 'x'" help qos x
refused 2 "unexpected argument 'x'" help qos run x
refused 2 "there is no file and no installed scenario 'figure-33': see 'gpupart sim --list'" sim figure-33
refused 2 "there is no file and no installed scenario 'nosuch'" qos sim nosuch
refused 2 "captures that ship with gpupart are named sample:NAME" topology -i h200
refused 2 "--mark a=gpc:1: the name 'a'" topology $h200 --mark a=gpc:0 --mark a=gpc:1
refused 2 "--of svg: figure-3 has 2 runs: choose one of these with --run: unpartitioned, partitioned" sim figure-3 -o "$tmp/x.svg"
refused 2 "--run nope: figure-3 has no such run: its runs are unpartitioned, partitioned" sim figure-3 --run nope
refused 2 "--run nope: " sim figure-3 --run nope
has "$err" "its runs are unpartitioned, partitioned" "the runs are named"
tr '\n' ' ' <Documentation/man/gpupart.1 | grep -q '\.Po \.Ql - is standard input \.Pc [,.]'
ok $? "gpupart(1): the parenthesis around standard input is closed"
env -u MAKEFLAGS -u MFLAGS make -C kmod KDIR="$tmp/none" modules >"$tmp/out" 2>&1
has "$(cat "$tmp/out")" "no kernel headers in $tmp/none: apt install linux-headers-" "make modules without headers says what to install"
try topology $h200
has "$out" "source: capture sample:h200" "a sample is called by its name, not by its path"
is "$("$gpupart" topology $h200 --json | jq -r .gpu.source)" sample:h200 "in JSON too"
"$gpupart" topology $h200 >"$tmp/out"
is "$(grep -c 'not reported by this source' "$tmp/out")" 2 "what no GPC reports is printed once, not for each of them"
has "$(tail -n 1 "$tmp/out")" "physical GPCs, floorswept positions: not reported" "at the end"
cp "$BUILD/share/gpupart/captures/h200.capture" "$tmp/h200.capture"
is "$("$gpupart" topology -i "$tmp/h200.capture" --json | jq -r .gpu.source)" "$tmp/h200.capture" "a file of the same name by its path"
if command -v python3 >/dev/null; then
	env -u MAKEFLAGS -u MFLAGS make install-python prefix="$tmp/p" B="$BUILD" >"$tmp/out" 2>&1
	has "$(cat "$tmp/out")" "does not search $tmp/p/lib/python3" "install-python says where Python has to look"
fi
try run $h200 -n 8 -t 0 -- true
has "$err" "TPCs 0,4,12,20,28,35,42,49,56 (GPC 5 and 1 TPC) of" "a set of more than whole GPCs says how much more"

if ! ${CC:-cc} -o "$tmp/census" tests/cli/census.c -ldl 2>"$tmp/err"; then
	skip "no C compiler"
else
	mkfifo "$tmp/go"
	"$gpupart" run $h200 -t 0-3 --name "first$$" -- "$tmp/census" lib/confine/probe.ptx 0 wait <"$tmp/go" >"$tmp/one" 2>/dev/null &
	exec 4>"$tmp/go"
	for _ in $(seq 100); do
		"$gpupart" ps | grep -q "first$$" && break
		sleep 0.1
	done
	try run $h200 -t 2-5 -- true
	has "$err" "gpupart run: TPCs 2-3 are also in the set of process " "-t over another's set says so"
	has "$err" ", first$$" "and whose"
	try run $h200 -g 5 -- true
	is "$(wc -l <"$tmp/err")" 1 "-g beside it says nothing"
	try set "first$$" -t 3
	is "$status $(grep -c also "$tmp/err")" "0 0" "set of the job itself neither"
	echo >&4
	exec 4>&-
	wait
	# The outermost of three runs uses the GPU too.
	try run $h200 -t 0-7 --name "around$$" -- sh -c '"$1" lib/confine/probe.ptx 0 wait <"$2" >&2 &
		exec 4>"$2"
		until "$0" ps | grep -q "$GPUPART_NAME .*0-7"; do sleep 0.1; done
		"$0" run -t 0-5 -- "$0" run -t 0-3 -- echo in it
		echo >&4
		wait' "$gpupart" "$tmp/census" "$tmp/go"
	is "$status $out $(grep -c 'also in' "$tmp/err")" "0 in it 0" "-t inside two runs: neither is another program"
fi
if [ -e /dev/nvidiactl ]; then
	skip "there is a GPU here"
else
	for words in topology "run -g 0 true" "plan --tenant a:min=1" "cdi -g 0" verify "trace gpc:0" bench slurm-node; do
		# shellcheck disable=SC2086 # a list of words
		try $words
		has "$err" "${words%% *}: no NVIDIA driver here: /dev/nvidiactl is missing: see 'gpupart doctor', or try -i sample:h200, which needs no GPU" \
			"$words: what to do without a GPU"
	done
	try demo
	is "$status $err" "0 gpupart demo: there is no usable GPU (/dev/nvidiactl does not exist): using the simulated GPU" \
		"demo: why it is simulated, and no word of the kernel's module"
fi
tap_done
