#!/bin/sh
# SPDX-License-Identifier: MIT
# gpupart trace on the simulated driver: blocks of a set run only on its SMs, launches of a stream in
# order, one block on an SM at a time; the drawing shows the data of the JSON and says simulated.
. "$(dirname "$0")/tap.subr"
h200=sample:h200

try trace -i $h200 web=gpc:0 7-9
is "$status$err" 0 "trace: status"
has "$out" "NVIDIA H200 (simulated)" "trace says simulated"
has "$out" "3 launches of 36 blocks on 18 SMs, 0 to 123.9 us, all inside its TPCs" "the set's words"
is "$(awk 'length > 80 && !/^source/ { print FNR }' "$tmp/out")" "" "at most 80 columns"
# A row has the set's letter and no other.
is "$(awk '$NF ~ /^[AB.]*$/ && length($NF) == 64 { print $(NF - 1) }' "$tmp/out" | sort -n | tr '\n' ' ')" \
	"6 7 8 9 14 22 30 37 44 51 58 60 " "a row for each TPC that had a block"
is "$(awk '$NF ~ /A/ && length($NF) == 64 { print $(NF - 1) }' "$tmp/out" | tr '\n' ' ')" \
	"6 14 22 30 37 44 51 58 60 " "the first set's rows"
has "$out" "No block on TPCs 0-5,10-13,15-21," "the others are named"
# Overlapping sets: the exact text. UPDATE=1 rewrites it: read the diff.
try trace -i tests/data/gh100-h200-e/capture.txt --ns 1300 --blocks 11 a=gpc:1 'name "b"=0-3,62' gpc:1,2
sed '/^source:/d' "$tmp/out" >"$tmp/text"
[ -n "$UPDATE" ] && cp "$tmp/text" tests/cli/expected/trace.txt
diff -u tests/cli/expected/trace.txt "$tmp/text" >"$tmp/diff"
ok $? "as in tests/cli/expected/trace.txt"
sed 's/^/# /' "$tmp/diff"
try trace -i $h200 --launches 1 --blocks 1 --ns 1500 3
has "$out" "1 launch of 1 block on 1 SM, 0 to 1.5 us" "one block"
try trace -i $h200 --launches 1 --iterations 1000 3
has "$out" "1 launch of 4 blocks on 2 SMs, 0 to 4.6 us" "counted work"
try trace -i $h200 -o "$tmp/x.svg" 3
is "$status$out$err$(head -c 5 "$tmp/x.svg")" "0<?xml" "-o FILE.svg is a drawing"
has "$(cat "$tmp/x.svg")" ">NVIDIA H200 (simulated)," "which says simulated"
try trace -i $h200 -o "$tmp/x.svg" --of text 3
is "$(head -c 6 "$tmp/x.svg")" NVIDIA "--of text has the last word"

if script -qec true /dev/null >/dev/null 2>&1 </dev/null; then
	esc=$(printf '\033')
	on_terminal() { script -qec "'$gpupart' trace -i $h200 --launches 1 0 1" /dev/null </dev/null; }
	has "$(TERM=xterm on_terminal)" "$esc[48;5;24;38;5;231mAA" "colour on a terminal"
	case $(TERM=xterm NO_COLOR=1 on_terminal) in
	*"$esc"*) ok 1 "no colour with NO_COLOR" ;;
	*AAAA*) ok 0 "no colour with NO_COLOR" ;;
	*) ok 1 "no colour with NO_COLOR: nothing was shown" ;;
	esac
else
	skip "no script(1) for a terminal"
fi

refused 2 "no SET" trace
refused 2 "'99': TPC 99" trace -i $h200 99
refused 2 "'a=gpc:9'" trace -i $h200 0 a=gpc:9
try trace -i $h200 0 -o "$tmp/y.svg" --launches 1 1
is "$status$out$err$(head -c 5 "$tmp/y.svg")" "0<?xml" "options may stand among the sets"
refused 2 "unknown option '-x'" trace -i $h200 0 -x
refused 2 "--blocks 0" trace --blocks 0 0
refused 2 "--blocks 1x" trace --blocks 1x 0
refused 2 "--launches 1001" trace --launches 1001 0
refused 2 "--threads ''" trace --threads '' 0
refused 2 "--threads 1025" trace --threads 1025 0
refused 2 "--ns -1" trace --ns -1 0
refused 2 "--ns 10000001" trace --ns 10000001 0
refused 2 "--iterations 1000001" trace --iterations 1000001 0
refused 2 "--ns 5 and --iterations 6" trace --ns 5 --iterations 6 0
refused 2 "--of png" trace --of png 0
refused 2 "--json and --of svg" trace --json --of svg 0
refused 2 "40000 blocks with 1 launches" trace -i $h200 --launches 1 --blocks 20000 0 u=1
set --
for i in $(seq 53); do set -- "$@" 0; done
refused 2 "53 sets: at most 52" trace "$@"
refused 2 "'=0-3': the name is empty" trace -i $h200 1 =0-3
refused 2 "'a=0' and 'a=1': two sets have the name 'a'" trace -i $h200 a=0 ab=2 a=1
refused 2 "'0' and '0': two sets have the name '0'" trace -i $h200 0 1 0
try trace -i $h200 --launches 1 a=0 ab=0 b=0
is "$status$err" 0 "names that begin alike, and a set twice, are fine"
refused 1 "-o $tmp/none/x: No such file" trace -i $h200 -o "$tmp/none/x" 0
if [ -e /dev/full ]; then
	refused 1 "No space left" trace -i $h200 -o /dev/full 0
fi
try run -i $h200 -t 0-3 -- "$gpupart" trace 0
is "$status" 2 "inside of a run it is refused"
has "$err" "the limit 0-3" "and says so"

python3 -c 'import json, xml.etree.ElementTree' 2>/dev/null || { skip "no python3"; tap_done; }

# sound CAPTURE ARGS: the JSON is consistent, and the drawing shows the same.
sound() {
	capture=$1
	shift
	"$gpupart" topology -i "$capture" --json >"$tmp/topology"
	"$gpupart" trace -i "$capture" --json "$@" >"$tmp/json" 2>"$tmp/err" &&
		"$gpupart" trace -i "$capture" -o "$tmp/t.svg" "$@" 2>>"$tmp/err"
	is "$?$(cat "$tmp/err")" 0 "$capture: trace $*"
	is "$(python3 tests/cli/trace.py "$tmp/json" "$tmp/topology" "$tmp/t.svg" 2>&1)" good \
		"$capture: trace $*: blocks are where and when they should be"
	is "$(python3 tests/cli/picture.py "$tmp/t.svg" | grep -E '^(cut|small|overlap|font) ' | tr '\n' ' ')" \
		"font monospace cut [] small [] overlap [] " "$capture: trace $*: no text cut or covered"
}

sound $h200 web=0-7 train=8-65
sound sample:h200-e --launches 5 --blocks 7 '<&">=gpc:1' b=gpc:1 2-40 ugpu:1
sound sample:h200-e --iterations 300 --threads 512 gpc:0 4,12
sound $h200 --launches 1 --blocks 1 --ns 1 0
set --
for i in $(seq 0 51); do set -- "$@" "set number $i=$i,$((i + 1))"; done
sound $h200 --blocks 3 "$@"
for name in 03 07 13 15 18; do
	capture=$BUILD/tests/generated/$name.capture
	[ -e "$capture" ] || { skip "no made-up GPUs: make tests"; continue; }
	sound "$capture" --ns 700 --launches 2 0 gpc:0
done
tap_done
