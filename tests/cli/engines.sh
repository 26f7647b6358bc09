#!/bin/sh
# SPDX-License-Identifier: MIT
# gpupart ps --engines with made-up registers: shares of known schedules, JSON, and refusals.
. "$(dirname "$0")/tap.subr"
tests/kmod/regfiles "$tmp/regs" || exit 1
# The device table and the runlists of a board; the words of channels are not read.
board() {
	awk '$1 == "0x000000" || $1 == "0x000004" || $1 == "0x000a00" || $1 == "0x0224fc" || $1 ~ /^0x022[89a-f]/ ||
	     $1 ~ /^0x023/ || $1 ~ /^0xc0[0-9]/' "$tmp/regs/$1.regs"
}
# As seen on an H200 with two programs in time slices: TSG 7 in 1462 samples, TSG 11 in 451,
# switching in 87 (in another order here).
slices() {
	awk 'BEGIN {
		for (i = 0; i < 2000; i++) {
			if (i * 451 % 2000 < 451) print "0xc00200 0x800b200b\n0xc00208 0x001f801f"
			else if (++rest <= 1462) print "0xc00200 0x80072007\n0xc00208 0x000a800a"
			else print "0xc00200 0x800be007\n0xc00208 0"
			print "sample"
		}
	}'
}
{ board gh100-runlists-busy; slices; } >"$tmp/slices"
"$gpupart" ps --engines -i "$tmp/slices" >"$tmp/out" 2>"$tmp/err"
is $? 0 "two programs in time slices"
has "$(head -n 1 "$tmp/out")" "registers of $tmp/slices (simulated)" "it says that it is simulated"
is "$(awk '/Graphics/ {print $2, $3, $4, $5, $6, $7, $8} /^ / {print $1, $2}' "$tmp/out" | tr '\n' ' ')" \
	"0 0xc00000 2000 0.0% 4.3% 7 73.1% 11 22.6% " "samples, idle, switching, and the share of each TSG"
is "$(tail -n 1 "$tmp/out")" "33 of 34 engines were idle in every sample" "engines that did nothing"
"$gpupart" ps --engines -i "$tmp/slices" --json >"$tmp/json"
is "$(python3 -c '
import json, sys
d = json.load(open(sys.argv[1]))
e = d["engines"][0]
print(d["schema"], d["simulated"], d["seconds"], e["name"], e["samples"], e["switching"],
      [(t["tsg"], t["samples"], t["share"], t["channel"], t["owner"]) for t in e["tsgs"]])' "$tmp/json")" \
	"gpupart/1 True None Graphics/Compute 2000 0.0435 [(7, 1462, 0.731, 10, None), (11, 451, 0.2255, 31, None)]" "the same as JSON"

# The graphics runlist is in each sample, the others in turn; a refused runlist is left out.
{ board gh100-runlists-mixed; awk 'BEGIN {for (i = 0; i < 310; i++) print "sample"}'; } >"$tmp/mixed"
"$gpupart" ps --engines -i "$tmp/mixed" --json >"$tmp/json"
is "$(python3 -c '
import json, sys
e = json.load(open(sys.argv[1]))["engines"]
print(sorted({(x["runlist"] == 0xc00000, x["samples"]) for x in e}), [x["switching"] for x in e[:3]])' "$tmp/json")" \
	"[(False, 10), (True, 310)] [1.0, 1.0, 1.0]" "310 samples of the graphics runlist, 10 of each of the 31 others; all of its engines switch"
{ board gh100-runlists-busy | sed 's/^0xc00408 .*/0xc00408 0xbadf5040/'; echo sample; echo sample; } >"$tmp/refused"
"$gpupart" ps --engines -i "$tmp/refused" --json >"$tmp/json"
is "$(grep -c '"runlist": 12583936' "$tmp/json")" 0 "a runlist whose registers are refused"

refused() {
	want=$1 say=$2
	shift 2
	"$gpupart" ps "$@" >"$tmp/out" 2>"$tmp/err"
	is $? "$want" "ps $*: exit status" && has "$(cat "$tmp/err")" "$say" "ps $*: $(cat "$tmp/err")"
}
{ board turing-tu102; echo sample; } >"$tmp/turing"
{ board gh100-runlists-busy | sed 's/^0xc00004 .*/0xc00004 0xbadf5040/'; echo sample; } >"$tmp/first"
refused 1 "a register of the runlist at 0xc00000 cannot be read" --engines -i "$tmp/first"
refused 1 "chip 0x162: the addresses of the chip's runlist registers are not known" --engines -i "$tmp/turing"
echo hello >"$tmp/words"
refused 1 'must be "0xOFFSET 0xVALUE" or "sample", not: hello' --engines -i "$tmp/words"
board gh100-runlists-busy >"$tmp/none"
refused 1 'has no line "sample"' --engines -i "$tmp/none"
refused 1 "No such file" --engines -i "$tmp/nosuch"
refused 2 "can be used only with --engines" -d 1
refused 2 "-d '0'" --engines -d 0
if [ ! -e /dev/nvidiactl ]; then
	refused 1 "the module gpupart is not loaded; rm: there is no NVIDIA driver" --engines
	refused 1 "no NVIDIA driver" --engines -i rm
	refused 1 "the module gpupart is not loaded" --engines -i kernel
fi
# The part of the comparison for a real GPU that runs on the simulated one.
GPUPART_SIM=$PWD/tests/data/gh100-h200-e/capture.txt tests/gpu/engines.sh >"$tmp/out" 2>&1
is "$? $(grep -c '^ok' "$tmp/out")" "0 4" "tests/gpu/engines.sh with programs on the simulated GPU" || sed 's/^/# /' "$tmp/out"
tap_done
