#!/bin/sh
# SPDX-License-Identifier: MIT
# gpupart qos: scenarios on the simulated GPU keep their goals, logs replay byte for byte and a
# changed one does not, pictures, files that are wrong.
. "$(dirname "$0")/tap.subr"
unset GPUPART_JOB

# ------------------------------------------------------------- on the simulated GPU
for name in qos-steady qos-burst qos-neighbour; do
	try qos sim "$name" --log "$tmp/$name.log" --json
	cp "$tmp/out" "$tmp/$name.json"
	is "$status $(jq -c '[.schema, .command, .simulated, .nr_tpcs]' "$tmp/out")" \
		'0 ["gpupart/1","qos sim",true,66]' "$name: runs, and says that it is simulated"
	is "$(jq -rs '[.[] | .schema == "gpupart/1" and .simulated] | all' "$tmp/$name.log")" true \
		"$name: every line of its log too"
	try qos replay "$tmp/$name.log"
	is "$status $(tail -n 1 "$tmp/out")" \
		"0 replayed: $(wc -l <"$tmp/$name.log") decisions, all of them the same" "$name: its log replays"
	is "$(jq -s '[.[] | [.decision.tenants[] | (.set + (if .coming == "" then "" else "," + .coming end)) | split(",")[] |
		split("-") | if length == 2 then range(.[0] | tonumber; (.[1] | tonumber) + 1) else (.[0] | tonumber) end] |
		length == (unique | length)] | all' "$tmp/$name.log")" true "$name: no TPC is given twice"
	is "$(jq -s '[.[] | .decision.tenants[] | .set != ""] | all' "$tmp/$name.log")" true "$name: no set is empty"
done
# met NAME TENANT FIRST: in how many of 1000 epochs from FIRST on.
met() {
	jq -s --arg t "$2" --argjson first "$3" '[.[] | select(.event == "epoch" and .decision.epoch > $first) |
		.decision.tenants[] | select(.name == $t) | .score_milli >= 1000] |
		(map(select(.)) | length) * 1000 / length | floor' "$tmp/$1.log"
}
[ "$(met qos-steady infer 5)" -ge 990 ]
ok $? "qos-steady: the goal is met in $(met qos-steady infer 5) of 1000 epochs after the first five"
[ "$(met qos-burst serve 5)" -ge 980 ]
ok $? "qos-burst: in $(met qos-burst serve 5)"
[ "$(met qos-neighbour infer 5)" -ge 960 ]
ok $? "qos-neighbour: in $(met qos-neighbour infer 5)"
[ "$(jq '.epochs_changed' "$tmp/qos-steady.json")" -le 5 ]
ok $? "qos-steady: it settles"
[ "$(jq '[.tenants[] | select(.name == "train").nr_tpcs][0]' "$tmp/qos-steady.json")" -ge 20 ]
ok $? "qos-steady: best effort has the rest"
# The neighbour is good again at the end: best effort has more than half of the GPU.
[ "$(jq '[.tenants[] | select(.name == "other") | .nr_tpcs][0]' "$tmp/qos-neighbour.json")" -gt 33 ]
ok $? "qos-neighbour: what was taken for a bad time is given back"
try qos sim qos-steady --log "$tmp/again.log" --json
cmp -s "$tmp/again.log" "$tmp/qos-steady.log"
ok $? "the same log again"

# ------------------------------------------------------------------------ replay
try qos replay "$tmp/qos-steady.log" --json
is "$status $(jq -c '[.schema, .command, .same, .epochs]' "$tmp/out")" '0 ["gpupart/1","qos replay",true,150]' \
	"replay --json"
sed '10s/"score_milli":[0-9]*/"score_milli":1/' "$tmp/qos-steady.log" >"$tmp/other.log"
refused 1 "other.log:10: another decision: decision.tenants[0].score_milli was 1 and is now" qos replay "$tmp/other.log"
sed '3s/"work_milli":[0-9]*/"work_milli":1000/' "$tmp/qos-steady.log" >"$tmp/other.log"
refused 1 "other.log:3: another decision: decision." qos replay "$tmp/other.log"
sed '1s/"weight":0/"weight": 0/' "$tmp/qos-steady.log" >"$tmp/other.log"
refused 1 "other.log:1: another decision: the same values" qos replay "$tmp/other.log"
sed '7s/^{/{{/' "$tmp/qos-steady.log" >"$tmp/other.log"
refused 2 "other.log:7: is no JSON" qos replay "$tmp/other.log"
sed '7s/"valid":true/"valid":1/' "$tmp/qos-steady.log" >"$tmp/other.log"
refused 2 "other.log:7: valid is of another kind" qos replay "$tmp/other.log"
sed '1s/gpupart.1/gpupart\/2/' "$tmp/qos-steady.log" >"$tmp/other.log"
refused 2 "schema is 'gpupart/2'" qos replay "$tmp/other.log"
sed 1d "$tmp/qos-steady.log" >"$tmp/other.log"
refused 2 "event is 'epoch', not begin" qos replay "$tmp/other.log"
: >"$tmp/other.log"
refused 2 "nothing is in it" qos replay "$tmp/other.log"
refused 2 "No such file" qos replay "$tmp/none.log"
head -c 20000 "$tmp/qos-steady.log" >"$tmp/other.log"
try qos replay "$tmp/other.log"
is "$status $(grep -c "is cut, and passed over" "$tmp/err")" "0 1" "a log of a controller that was killed: what is whole"

# ----------------------------------------------------------------------- pictures
try qos replay "$tmp/qos-neighbour.log" -o "$tmp/run.svg"
is "$status $out" "0 " "replay -o FILE.svg"
python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' "$tmp/run.svg"
ok $? "the picture is XML"
has "$(cat "$tmp/run.svg")" "(simulated)" "it says simulated"
is "$(grep -o 'class="missed"' "$tmp/run.svg" | wc -l)" \
	"$(jq '[.tenants[] | select(.name == "infer") | .epochs_heard - .epochs_met][0]' "$tmp/qos-neighbour.json")" \
	"it marks every epoch in which the goal was missed"
is "$(grep -o 'class="goal"' "$tmp/run.svg" | wc -l) $(grep -o 'class="progress"' "$tmp/run.svg" | wc -l)" "1 2" \
	"it has the goal and each tenant's progress"

# ----------------------------------------------------------------------- bad files
# wrong SED VALUE: the scenario, changed, is refused with that.
wrong() {
	sed "$1" share/scenarios/qos-steady.yaml >"$tmp/wrong.yaml"
	refused 2 "$2" qos sim "$tmp/wrong.yaml"
}
wrong 's/alpha: 0.6/alpha: 1.2/' "alpha: '1.2': wants a share"
wrong 's/alpha: 0.6/alpha: x/' "alpha: 'x'"
wrong 's/alpha: 0.6/alpha: 0.6, rate: 5/' "wants one of alpha, rate and latency"
wrong 's/alpha: 0.6/latency: 5/' "latency: '5' is no time"
wrong 's/alpha: 0.6/rate: 5, percentile: 9/' "percentile: is for a latency"
wrong 's/alpha: 0.6/beta: 0.6/' "the key 'beta' is not known"
wrong 's/train: {}/train: { floor: 70 }/' "train: floor 70: the GPU has 66"
wrong 's/train: {}/train: { floor: 9, ceiling: 4 }/' "the floor of 9 TPCs is above the ceiling of 4"
wrong 's/train: {}/train: { weight: 0 }/' "weight: 0"
wrong 's/train: {}/-x: {}/' "'-x': a name is"
wrong 's/train: {}/train: { stream: gone }/' "no stream is named 'gone'"
wrong 's/epoch: 4ms/epoch: 4/' "epoch: '4' is no time"
wrong 's/epoch: 4ms/epoch: 1ns/' "epoch: wants 1us to 1s"
wrong 's/epochs: 150/epochs: 0/' "epochs: 0"
wrong 's/  epoch: 4ms/  epoch: 4ms\n  hysteresis: 3/' "hysteresis: '3': wants 0.1% to 25%"
wrong 's/tenants:/lodgers:/' "the key 'lodgers'"
refused 2 "has no qos" qos sim figure-3
refused 2 "no SCENARIO" qos sim
refused 2 "no LOG" qos replay
refused 2 "'frobnicate'" qos frobnicate
refused 2 "no command" qos
refused 2 "--of png" qos sim qos-steady --of png

tap_done
