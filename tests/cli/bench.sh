#!/bin/sh
# SPDX-License-Identifier: MIT
# gpupart bench on the simulated GPU: every part runs, files and JSON exist and say simulated,
# meaningless figures are not judged, and a part that fails does not affect the others.
. "$(dirname "$0")/tap.subr"
parts="isolation scaling overlap slots dynamic protect software overhead criteria"
dir=$tmp/results

try bench -i sample:h200-e --quick -o "$dir"
is "$status$err" 0 "bench --quick: status"
has "$(head -n 1 "$tmp/out")" "(simulated): times mean nothing" "the first line says simulated"
has "$(tail -n 1 "$tmp/out")" "9 parts (simulated): 0 failed, 0 skipped; 0 figures did not hold" "the totals"
for part in $parts; do
	grep -q "^$part: " "$tmp/out"
	ok $? "$part: in the text"
	head -n 6 "$dir/$part.md" | grep -q '^\*\*simulated\*\*'
	ok $? "$part.md says simulated"
	has "$(cat "$dir/README.md")" "[$part]($part.md)" "the index names $part.md"
done
has "$(head -n 1 "$dir/README.md")" "(simulated)" "the index says simulated"
is "$(for target in $(cat "$dir"/*.md | grep -oE '\]\([^)]*' | cut -c 3-); do
	[ -s "$dir/$target" ] || echo "$target"; done)" "" "every link leads to a file"
nr=0
for svg in "$dir"/*.svg; do
	nr=$((nr + 1))
	grep -q '>simulated</text>' "$svg" && [ "$(tail -n 1 "$svg")" = "</svg>" ]
	ok $? "$(basename "$svg") is whole and says simulated"
	if command -v xmllint >/dev/null; then
		xmllint --noout "$svg" 2>"$tmp/err"
		is "$?$(cat "$tmp/err")" 0 "$(basename "$svg") is XML"
	fi
done
[ $nr -ge 9 ]
ok $? "there are pictures: $nr"
grep -q '^ok  .*launches with a block outside their set: 0' "$tmp/out"
ok $? "where launches ran is judged"
is "$(grep '^\(ok\|not ok\)  ' "$tmp/out" | grep -cE 'slowdown|a set of everything|alone|part of')" 0 \
	"and no time is"

if ! python3 -c '' 2>/dev/null; then
	skip "no python3"
	tap_done
fi

# ask FILE EXPRESSION: evaluates it with the JSON object as d.
ask() {
	python3 -c "
import json, sys
d = json.load(open(sys.argv[1]))
print($2)" "$1" 2>&1
}
for part in $parts; do
	is "$(ask "$dir/$part.json" '[list(d)[0], d["schema"], d["command"], d["simulated"], d["name"], d["status"],
		d["why"], len(d["tables"]) > 0, len(d["meaning"]) > 0,
		all(len(r) == len(t["columns"]) for t in d["tables"] for r in t["rows"])]')" \
		"['schema', 'gpupart/1', 'bench', True, '$part', 'done', None, True, True, True]" "$part.json"
done
is "$(ask "$dir/criteria.json" '[[c["what"].split(": worst")[0], c["limit"], c["result"]] for c in d["checks"] if " next to " in c["what"]]')" \
	"[['compute next to any neighbour', 1.05, 'not judged'], ['L2 reads next to any neighbour', 1.05, 'not judged'], ['pointer chase next to compute and L2 reads', 1.05, 'not judged'], ['DRAM stream next to any neighbour', 1.05, 'not judged']]" \
	"criteria: each kind next to a neighbour is judged, except a chase next to a DRAM stream"
is "$(ask "$dir/bench.json" '[w for p in d["parts"] for w in p["meaning"] if w[:12] != "(simulated) "]')" "[]" "every sentence says simulated"
grep -q '>no value: see the report<' "$dir/slots.svg"
ok $? "a chart without a bar says so"
is "$(ask "$dir/bench.json" '[p["name"] for p in d["parts"]] == "'"$parts"'".split()')" True "bench.json has them all"
is "$(ask "$dir/isolation.json" '[len(t["rows"]) for t in d["tables"]]')" "[12, 5, 60]" "isolation: every cell"
is "$(ask "$dir/dynamic.json" '[len(d["tables"][0]["rows"]), len({r[2] for r in d["tables"][0]["rows"]}),
	sum(r[5] for r in d["tables"][0]["rows"])]')" "[38, 17, 0]" "dynamic: 38 launches, 17 sets, none outside"
is "$(ask "$dir/software.json" '[[r[0], r[6] <= r[1], r[8]] for r in d["tables"][0]["rows"]][:2]')" \
	"[['mask', True, 0], ['loops inside the mask', True, 0]]" "software: the mask leaks nothing"
is "$(ask "$dir/software.json" '[r[8] > 0 for r in d["tables"][0]["rows"]][2:]')" "[True, True]" \
	"and without one the neighbour has the same SMs"
is "$(ask "$dir/scaling.json" '[[r[1] >= s[1], r[2] >= s[2]] for r, s in zip(d["tables"][0]["rows"], d["tables"][0]["rows"][1:])].count([True, True]) == len(d["tables"][0]["rows"]) - 1')" \
	True "scaling: more TPCs are never slower there"

is "$(ask "$dir/protect.json" '(lambda rows: [sorted(set(r[0].split(" / ")[1] for r in rows)), len(rows) % 3,
	"and its time without sets next to a good neighbour. Here the quotient is interleaved" in " ".join(d["meaning"])])(d["tables"][0]["rows"])')" \
	"[['alone', 'faulty neighbour', 'good neighbour'], 0, True]" "protect: each of three in every shape, and as the paper compares"

# Some parts, in any order among the options, as JSON.
try bench dynamic --json -i sample:h200 criteria --quick
is "$status$err" 0 "bench NAME NAME --json: status"
is "$(ask "$tmp/out" '[list(d)[0], d["schema"], d["command"], d["simulated"], d["quick"], [p["name"] for p in d["parts"]],
	d["nr_failed"], d["nr_not_held"], d["gpu"]["simulated"]]')" \
	"['schema', 'gpupart/1', 'bench', True, True, ['dynamic', 'criteria'], 0, 0, True]" "and no other part"

try bench dynamic -i sample:h200 --quick
has "$(tail -n 1 "$tmp/out")" "1 part (simulated): 0 failed, 0 skipped; 0 figures did not hold" "and of one"

# Wrong mask bits: nothing is measured; and bits that became wrong are detected.
moved() {
	GPUPART_SIM_FAULTS=move-bit=7:0 "$gpupart" bench dynamic criteria -i sample:h200 --quick >"$tmp/out" 2>"$tmp/err"
	status=$?
}
moved
is "$status $(grep -c '^not ok  .*outside their set: [1-9]' "$tmp/out")" "1 1" \
	"blocks outside of the set are a figure that does not hold"
rm -rf "$XDG_CACHE_HOME"
moved
is "$status $(wc -c <"$tmp/out")" "1 0" "wrong mask bits: refused"
has "$(cat "$tmp/err")" "TPC" "wrong mask bits: names the TPC"

# Sets of streams are refused: parts that need them fail with the message, others run.
GPUPART_SIM_FAULTS=no-stream-pointer "$gpupart" bench dynamic overlap -i sample:h200 --quick --json >"$tmp/out" 2>"$tmp/err"
status=$?
is "$(ask "$tmp/out" '[[p["name"], p["status"], bool(p["why"])] for p in d["parts"]]')" \
	"[['overlap', 'skipped', True], ['dynamic', 'done', False]]" "a part that cannot leaves the others alone"
is "$status" 0 "and is no failure"

# A GPU with one TPC: parts that need two sets are skipped, with a message.
try bench -i "$BUILD/tests/generated/15.capture" --quick
is "$status $(grep -c '^skipped: .*\(only one TPC\|too few TPCs\|only one GPC\)' "$tmp/out")" "0 7" "one TPC: parts are skipped"
has "$(tail -n 1 "$tmp/out")" "0 failed, 7 skipped" "and none fails"

# Inside a run: bench does not measure the set of that run.
try run -i sample:h200 -t 0-3 -- "$gpupart" bench dynamic
is "$status" 2 "inside a limit: refused"
has "$err" "0-3" "inside a limit: says which"

if [ -c /dev/full ]; then
	"$gpupart" bench dynamic --quick -i sample:h200 >/dev/full 2>"$tmp/err"
	is "$?" 1 "a full disk is noticed"
fi
for name in dynamic.json .dynamic.json.new; do
	mkdir -p "$tmp/no-$name/$name/x"
	try bench dynamic --quick -i sample:h200 -o "$tmp/no-$name"
	is "$status" 1 "a file that cannot be written is noticed: $name"
	has "$err" "$tmp/no-$name/dynamic.json: " "and named: $name"
done

# An existing folder: a repeated part keeps the files of others; an interrupted run keeps all.
links() { grep -c '^## \[' "$dir/README.md"; }
before=$(cksum <"$dir/scaling.json")
try bench overlap --quick -i sample:h200 -o "$dir"
is "$status$err $(links) $(cksum <"$dir/scaling.json")" "0 9 $before" "overlap alone: the index has all nine"
is "$(grep -c '^From an earlier run: .*(simulated)' "$dir/README.md")" 8 "and says of eight that they are older"
is "$(sed -n '/^## \[overlap/,/^## \[slots/p' "$dir/README.md" | grep -c earlier)" 0 \
	"not of the one that is new"
is "$(find "$dir" -name '.*.new')" "" "nothing is left over"
echo '{"command": "bench", "name": "else"}' >"$dir/slots.json"
echo broken >"$dir/scaling.json"
echo '{"command": "bench", "name": "protect", "gpu": [], "meaning": [1, null], "charts": [7]}' >"$dir/protect.json"
try bench overlap --quick -i sample:h200 -o "$dir"
is "$status$err $(links)" "0 7" "what is no report of a part is not listed"
is "$(grep -c null "$dir/README.md")" 0 "and of an unknown GPU only the text is shown"
cp "$dir/README.md" "$dir/bench.json" "$tmp"
# It waits at the end of its first part: the pipe is full and has no reader.
# shellcheck disable=SC2216
sh -c 'echo $$ >"$1"; head -c 65536 /dev/zero; exec "$2" bench -i sample:h200 -o "$3"' sh \
	"$tmp/pid" "$gpupart" "$dir" 2>/dev/null | sleep 600 &
reader=$!
for _ in $(seq 300); do
	[ "$(tr '\0' ' ' <"/proc/$(cat "$tmp/pid")/cmdline" | cut -d' ' -f2)" = bench ] && break
	sleep 0.1
done 2>/dev/null
sleep 1
kill -TERM "$(cat "$tmp/pid")"
ok $? "a run is there to be ended"
for _ in $(seq 300); do
	grep -qs '^State:.[^Z]' "/proc/$(cat "$tmp/pid")/status" || break
	sleep 0.1
done
kill $reader
wait $reader 2>/dev/null
cmp "$dir/README.md" "$tmp/README.md" && cmp "$dir/bench.json" "$tmp/bench.json"
ok $? "a run that was ended early changed nothing"

ptxas=$(command -v ptxas || echo /usr/local/cuda/bin/ptxas)
if [ -x "$ptxas" ]; then
	"$ptxas" -arch=sm_90 -o "$tmp/cubin" cli/bench/kernels.ptx >"$tmp/err" 2>&1
	is "$?$(cat "$tmp/err")" 0 "the kernels assemble for sm_90"
else
	skip "no ptxas"
fi
tap_done
