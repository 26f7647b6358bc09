#!/bin/sh
# SPDX-License-Identifier: MIT
# gpupart sim: every installed scenario meets the expectations in its file, checked independently as
# well; output forms; the same file gives the same result twice.
. "$(dirname "$0")/tap.subr"

try sim --list
is "$status $(cut -d ' ' -f 1 "$tmp/out" | tr '\n' ' ')" \
	"0 $(cd share/scenarios && LC_ALL=C && export LC_ALL && printf '%s\n' *.yaml | sed 's/[.]yaml$//' | tr '\n' ' ')" \
	"--list has all of share/scenarios"
has "$out" "$(printf '\nfigure-3          Two kernels on a GTX 1060, unpartitioned and split into 4 and 5 SMs\n')" "and their titles"
listed=$out
scenarios=$(cut -d ' ' -f 1 "$tmp/out")
try sim --list -o "$tmp/list"
is "$status $out $(cat "$tmp/list")" "0  $listed" "--list -o: written there"
try sim --list --json
is "$status $(jq -c '[keys_unsorted, .schema, .command, .simulated, .scenarios]' "$tmp/out")" \
	"0 $(echo "$scenarios" | jq -cRn '[["schema", "command", "simulated", "scenarios"], "gpupart/1", "sim", true, [inputs]]')" \
	"--list --json: the same as JSON"
try sim --json copies -o "$tmp/copies"
is "$status $(jq -c "[.expect[].holds] | all" "$tmp/copies")" "0 true" "SCENARIO may stand among the options"
for name in $scenarios; do
	try sim "$name" --json
	is $status 0 "$name: status"
	is "$(jq -c '[.schema, .command, .simulated, .scenario, (.expect | length > 0), ([.expect[].holds] | all)]' "$tmp/out")" \
		'["gpupart/1","sim",true,"'"$name"'",true,true]' "$name: all that it expects holds"
	cp "$tmp/out" "$tmp/$name.json"
done

# Figure 10, checked independently: the SMs of each launch, compared with the sets in the file.
sed -n 's/.*launch: \(K[0-9]*\), on: S[12], set: "\([^"]*\)".*/\1 \2/p' share/scenarios/figure-10.yaml >"$tmp/sets"
is "$(wc -l <"$tmp/sets")" 38 "figure-10 has 38 launches"
is "$(awk '{ print $2 }' "$tmp/sets" | sort -u | wc -l)" 17 "figure-10 has 17 sets"
jq -r '.runs[0].launches[] | .kernel + " " + .sms' "$tmp/figure-10.json" >"$tmp/used"
is "$(wc -l <"$tmp/used")" 38 "figure-10: 38 launches are listed"
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

# Table III: the shape of the paper's values, 24 40 82 44.
is "$(jq -c '[.runs[] | (.programs[0].end_ns / 10000000 | round)]' "$tmp/table-3.json")" "[24,43,81,44]" \
	"table-3: ms a frame"
is "$(jq -c '[.runs[] | select(.name | startswith("many")).kernels[0] | (.sum_ns / 1000000 | round)]' "$tmp/turing-puzzle.json")" \
	"[1,1,1,2,2,2,4,4]" "turing-puzzle: steps of whole blocks"
is "$(jq -c '.runs[0].nr_launches' "$tmp/million.json")" 1000000 "million: 1000000 launches"

# The same result again, with little memory.
try sim figure-12 --json
cmp -s "$tmp/out" "$tmp/figure-12.json"
ok $? "the same answer twice"
# dash and bash support it.
# shellcheck disable=SC3045
(ulimit -v 200000; "$gpupart" sim million >"$tmp/out" 2>"$tmp/err")
is $? 0 "a million launches in 200 MB of address space"

try sim figure-3
has "$out" "(simulated)" "text says simulated"
has "$out" "holds  partitioned/K1.sms = 4" "text has what was expected"
try sim figure-3 --run partitioned
is "$status $(grep -c '^run ' "$tmp/out")" "0 1" "--run: one of the runs"
# Drawings, compared with the launches in the JSON.
picture() {
	name=$1 run=$2 what=$3
	try sim "$name" ${run:+--run "$run"} --json
	cp "$tmp/out" "$tmp/picture.json"
	try sim ${run:+--run "$run"} -o "$tmp/blocks.svg" "$name"
	is "$status$out$err" 0 "$name $run: is drawn by -o FILE.svg"
	is "$(python3 tests/cli/sim_picture.py "$tmp/picture.json" "$tmp/blocks.svg" $what 2>&1)" "" "$name $run: the drawing is right"
}
picture figure-3 partitioned
is "$(grep -c 'class="block"' "$tmp/blocks.svg")" 74 "the picture has every block"
has "$(cat "$tmp/blocks.svg")" ">The GPCs of this board are not known" "the picture says that GPCs are not known"
picture figure-3 unpartitioned
picture figure-10
is "$(grep 'class="block"' "$tmp/blocks.svg" | grep -o 'url(#k[0-9]*)' | sort -u | wc -l)" 38 "figure-10: each of 38 kernels has a colour with lines of its own"
is "$(grep '<pattern id="k' "$tmp/blocks.svg" | sed 's/ id="[^"]*"//' | sort -u | wc -l)" 40 "of 40 that differ"
picture figure-12 slots-full
picture together
has "$(cat "$tmp/blocks.svg")" ">GPC 7</text>" "together: GPCs of a capture are named"
picture copies engines-by-stream
has "$(cat "$tmp/blocks.svg")" ">copy engine 1</text>" "copies: copy engines have rows"
picture table-3 beside-faulty sums
has "$(cat "$tmp/blocks.svg")" ">No block on TPCs 8-39</text>" "idle TPCs of a large GPU are named, not drawn"
picture million "" sums
try sim figure-3 --run partitioned --of svg --span 6.5ms-7ms
is "$status $(grep -c 'class="block"' "$tmp/out")" "0 6" "--span: what there was in that time"
try sim figure-3 --of svg --run partitioned --span 8ms-9ms
has "$status $err" "2 gpupart sim: --span 8ms-9ms: partitioned ends earlier, at 7.0" "--span after the end"
try sim figure-3 --of svg --span 2ms-1ms
is "$status" 2 "--span backwards"
try sim figure-3 --of text --span 2ms
is "$status" 2 "--span that is none"
try sim figure-3 --span 1ms-2ms
is "$status" 2 "--span of no picture"
# UPDATE=1 rewrites it: read the diff.
for name in figure-3 figure-11 together copies figure-10; do
	echo "== $name"
	"$gpupart" sim $name --of text | sed -n '/^A  /,$p'
done >"$tmp/text"
[ -n "$UPDATE" ] && cp "$tmp/text" tests/cli/expected/sim.txt
diff -u tests/cli/expected/sim.txt "$tmp/text" >"$tmp/diff"
ok $? "--of text is as in tests/cli/expected/sim.txt"
sed 's/^/# /' "$tmp/diff"
is "$(awk 'length > 80 { print FNR }' "$tmp/text")" "" "at most 80 columns"
if command -v script >/dev/null; then
	TERM=xterm-256color script -qec "'$gpupart' sim figure-3 --run partitioned --of text" /dev/null >"$tmp/out" 2>&1
	has "$(cat "$tmp/out")" "$(printf '\033[48;5;24;38;5;231m')AAAA" "in colour on a terminal"
fi

# A file whose expectation is not met.
sed 's/K1.sms = 9/K1.sms = 8/' share/scenarios/figure-3.yaml >"$tmp/wrong.yaml"
try sim "$tmp/wrong.yaml"
is $status 1 "what was not expected: status"
has "$out" "FAILS  unpartitioned/K1.sms = 8" "an expectation that fails is reported"
has "$out" "9 = 8" "with the numbers"
tap_done
