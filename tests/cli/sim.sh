#!/bin/sh
# SPDX-License-Identifier: MIT
# gpupart sim: every scenario that ships comes out as its file expects, and that is looked at
# from outside too; output forms; what the same file gives twice.
. "$(dirname "$0")/tap.subr"

try sim --list
is "$status $(tr '\n' ' ' <"$tmp/out")" \
	"0 copies cpu-or-gpu-bound events figure-10 figure-11 figure-12 figure-13 figure-14 figure-3 figure-4 graph million priorities processes qos-burst qos-neighbour qos-steady speed-up table-3 together turing-puzzle " \
	"--list has all that ship"
scenarios=$(cat "$tmp/out")
for name in $scenarios; do
	try sim "$name" --json
	is $status 0 "$name: status"
	is "$(jq -c '[.schema, .command, .simulated, (.expect | length > 0), ([.expect[].holds] | all)]' "$tmp/out")" \
		'["gpupart/1","sim",true,true,true]' "$name: all that it expects holds"
	cp "$tmp/out" "$tmp/$name.json"
done

# Figure 10, from outside: which SMs each launch used, against the sets in the file.
sed -n 's/.*launch: \(K[0-9]*\), on: S[12], set: "\([^"]*\)".*/\1 \2/p' share/scenarios/figure-10.yaml >"$tmp/sets"
is "$(wc -l <"$tmp/sets")" 38 "figure-10 has 38 launches"
is "$(awk '{ print $2 }' "$tmp/sets" | sort -u | wc -l)" 17 "figure-10 has 17 sets"
jq -r '.runs[0].launches[] | .kernel + " " + .sms' "$tmp/figure-10.json" >"$tmp/used"
is "$(wc -l <"$tmp/used")" 38 "figure-10: 38 launches are told of"
outside=$(awk '
	function expand(list, members,    parts, ends, i, j, n) {
		n = split(list, parts, ",")
		for (i = 1; i <= n; i++) {
			if (split(parts[i], ends, "-") == 1) ends[2] = ends[1]
			for (j = ends[1]; j <= ends[2]; j++) members[j] = 1
		}
	}
	NR == FNR { set[$1] = $2; next }
	{
		split("", allowed); split("", used)
		expand(set[$1], allowed); expand($2, used)
		for (sm in used) if (!(sm in allowed)) print $1, "on SM", sm
	}' "$tmp/sets" "$tmp/used")
is "$outside" "" "figure-10: no launch ran outside of its set"

# Table III: the shape is the paper's, 24 40 82 44.
is "$(jq -c '[.runs[] | (.programs[0].end_ns / 10000000 | round)]' "$tmp/table-3.json")" "[24,43,81,44]" \
	"table-3: ms a frame"
is "$(jq -c '[.runs[] | select(.name | startswith("many")).kernels[0] | (.sum_ns / 1000000 | round)]' "$tmp/turing-puzzle.json")" \
	"[1,1,1,2,2,2,4,4]" "turing-puzzle: steps of whole blocks"
is "$(jq -c '.runs[0].nr_launches' "$tmp/million.json")" 1000000 "million: so many launches"

# The same answer again, and in little memory.
try sim figure-12 --json
cmp -s "$tmp/out" "$tmp/figure-12.json"
ok $? "the same answer twice"
# dash and bash know it.
# shellcheck disable=SC3045
(ulimit -v 200000; "$gpupart" sim million >"$tmp/out" 2>"$tmp/err")
is $? 0 "a million launches in 200 MB of address space"

try sim figure-3
has "$out" "(simulated)" "text says simulated"
has "$out" "holds  partitioned/K1.sms = 4" "text has what was expected"
try sim figure-3 --run partitioned
is "$status $(grep -c '^run ' "$tmp/out")" "0 1" "--run: one of the runs"
try sim --run partitioned --of svg -o "$tmp/blocks.svg" figure-3
is "$status $out" "0 " "--of svg -o"
has "$(cat "$tmp/blocks.svg")" "(simulated)" "the picture says simulated"
# 74 blocks, the paper, two colours in the legend.
is "$(grep -o '<rect' "$tmp/blocks.svg" | wc -l)" 77 "the picture has every block"
if command -v xmllint >/dev/null; then
	xmllint --noout "$tmp/blocks.svg"
	ok $? "the picture is XML"
else
	python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' "$tmp/blocks.svg"
	ok $? "the picture is XML"
fi

# A file whose expectation does not hold.
sed 's/K1.sms = 9/K1.sms = 8/' share/scenarios/figure-3.yaml >"$tmp/wrong.yaml"
try sim "$tmp/wrong.yaml"
is $status 1 "what was not expected: status"
has "$out" "FAILS  unpartitioned/K1.sms = 8" "what was not expected is said"
has "$out" "9 = 8" "with the numbers"
tap_done
