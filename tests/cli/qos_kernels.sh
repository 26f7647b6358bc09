#!/bin/sh
# SPDX-License-Identifier: MIT
# gpupart qos, signal: kernels: a program without reports is measured alone, and then keeps its goal
# by its completed kernels, on the simulated GPU. Invalid files.
. "$(dirname "$0")/tap.subr"
. tests/cli/qos.subr
e="-i tests/data/gh100-h200-e/capture.txt"
name=kernels$$
# On the simulated GPU a kernel takes time, in parallel to the program; kernels of 1024 blocks
# take less with more SMs.
export GPUPART_SIM_FAULTS=host-clock,host-thread GPUPART_RECORDS=1
touch "$go"

# ------------------------------------------------------------------------------- solo
serve="program: [ $tmp/work, $go, 4000000 ]"
tenants "$name: { goal: { alpha: 0.5 }, signal: kernels, $serve }"
try qos calibrate $e -f "$tmp/t.yaml" --seconds 4 --json -o "$tmp/alone.json"
is "$status" 0 "calibrate: a program that reports nothing"
has "$err" "$name: 'signal: kernels' is experimental" "it says that this is experimental"
alone=$(jq '.tenants[0].alone_milli / 1000' "$tmp/alone.json")
is "$(jq -c '.tenants[0].kernels_ns | keys' "$tmp/alone.json")" '["gpupart_census"]' "its kernels"
jq -e '.tenants[0].kernels_ns[] | . > 12e6 and . < 60e6' "$tmp/alone.json" >/dev/null
ok $? "and their time: $(jq -c '.tenants[0].kernels_ns' "$tmp/alone.json")"
jq -e '.tenants[0].alone_milli > 300000 and .tenants[0].alone_milli < 1100000' "$tmp/alone.json" >/dev/null
ok $? "alone it does $alone ms of them a second"

# --------------------------------------------------------------------------------- run
sed -i "s/alpha: 0.5/alpha: 0.5, alone: $alone/; s|signal: kernels|&, durations: $tmp/alone.json|; s/100ms/300ms/" "$tmp/t.yaml"
printf '  %s-be: { program: [ %s ] }\n' "$name" "$tmp/work, $go" >>"$tmp/t.yaml"
try qos run $e -f "$tmp/t.yaml" --epochs 40 --log "$tmp/log"
is "$status" 0 "run: beside another program"
jq -c --arg n "$name" 'select(.event == "epoch" and .decision.epoch > 20) | [(.decision.tenants[] | select(.name == $n) |
	.score_milli, .nr_tpcs), (.measured[] | select(.name == $n) | .work_milli, .reported_milli)]' "$tmp/log" >"$tmp/rows"
jq -se 'map(select(.[0] >= 1000)) | length >= 14' "$tmp/rows" >/dev/null
ok $? "it keeps half of its speed: $(jq -sc '[.[] | .[0]]' "$tmp/rows")"
jq -se 'map(.[1]) | add / length | . > 24 and . < 60' "$tmp/rows" >/dev/null
ok $? "with about half of the TPCs: $(jq -sc '[.[] | .[1]]' "$tmp/rows")"
is "$(jq -s 'map(select(.[3])) | length' "$tmp/rows")" 0 "and no report"
try qos replay "$tmp/log"
is "$status" 0 "its log replays"
rm "$go"
until_true has_rows "$name" 0

# ------------------------------------------------------------------------------- files
# wrong TENANT WORDS: refused with that message.
wrong() {
	tenants "$name: { $1, signal: kernels, program: [ true ] }"
	refused 125 "$2" qos run $e -f "$tmp/t.yaml" --epochs 1
}
wrong "goal: { alpha: 0.5, alone: 900 }" "$name: 'signal: kernels' needs alpha or rate, and 'durations: FILE'"
wrong "goal: { rate: 500 }" "$name: 'signal: kernels' needs alpha or rate, and 'durations: FILE'"
wrong "goal: { latency: 5ms }, durations: $tmp/alone.json" "$name: 'signal: kernels' needs alpha or rate, and 'durations: FILE'"
tenants "$name: { goal: { rate: 5 }, durations: $tmp/alone.json, program: [ true ] }"
refused 125 "$name: 'signal: kernels' needs alpha or rate, and 'durations: FILE'" qos run $e -f "$tmp/t.yaml" --epochs 1
wrong "durations: $tmp/none.json" "$tmp/none.json: unable to open"
echo '{"tenants": [{"name": "other", "kernels_ns": {"k": 5}}]}' >"$tmp/other.json"
wrong "durations: $tmp/other.json" "$tmp/other.json has no kernels of $name: it must be a file that 'gpupart qos calibrate --json' wrote"
for times in '{}' '[]' 5 '{"k": 0}' '{"k": -5}' '{"k": "5"}'; do
	echo "{\"tenants\": [{\"name\": \"$name\", \"kernels_ns\": $times}]}" >"$tmp/bad.json"
	wrong "durations: $tmp/bad.json" "$tmp/bad.json has no kernels of $name"
done
try qos run $e --tenant "$name:alpha=0.5,alone=900,signal=kernels,durations=$tmp/alone.json" --dry-run -- true
is "$status $(echo "$err" | grep -c experimental)" "0 1" "the same in words, also for a dry run"
tap_done
