#!/bin/sh
# SPDX-License-Identifier: MIT
# gpupart qos: scenarios on the simulated GPU keep their goals, logs replay byte for byte and a
# changed log does not; pictures; invalid files.
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
		"0 replayed: $(wc -l <"$tmp/$name.log") decisions, all the same as in the log" "$name: its log replays"
	is "$(jq -s '[.[] | .decision.tenants | map(.set), map(.coming) | [.[] | split(",")[] |
		split("-") | if length == 2 then range(.[0] | tonumber; (.[1] | tonumber) + 1) else (.[0] | tonumber) end] |
		length == (unique | length)] | all' "$tmp/$name.log")" true "$name: no TPC is given twice"
	is "$(jq -s '[.[] | .decision.tenants[] | .set != ""] | all' "$tmp/$name.log")" true "$name: no set is empty"
done
# met NAME TENANT FIRST: thousandths of the epochs from FIRST on that met the goal.
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
# The neighbour is harmless again at the end: best effort has more than half of the GPU.
[ "$(jq '[.tenants[] | select(.name == "other") | .nr_tpcs][0]' "$tmp/qos-neighbour.json")" -gt 33 ]
ok $? "qos-neighbour: what was taken for a bad time is given back"
try qos sim qos-steady --log "$tmp/again.log" --json
cmp -s "$tmp/again.log" "$tmp/qos-steady.log"
ok $? "the same log again"

# The solo speed is that of the stream alone: kernels of its programs on other streams are left
# out, but kernels that it waits for are not.
# shared STREAM... : one process with these streams, the first with a goal; prints its solo speed.
shared() {
	{
		printf '%s\n' "title: t" "gpu: { chip: h200, mps: yes }" "stop: 4ms" \
			"kernels: { k: { blocks: 528, threads: 256, work: 20000 } }" "streams:"
		printf '  %s: {}\n' "$@"
		printf '%s\n' "programs:" "  main:" "    - repeat: 100000" "      do:"
		for stream; do
			printf '        - { launch: k, on: %s }\n' "$stream"
			[ "$stream" = "$1" ] || printf '        - repeat: 1\n          do: [ { launch: k, on: %s } ]\n' "$stream"
		done
		printf '%s\n' "qos:" "  epoch: 4ms" "  phases: [ { epochs: 5 } ]" "  tenants:" "    $1: { goal: { alpha: 0.5 } }"
		for stream; do
			[ "$stream" = "$1" ] || [ "$stream" = none ] || printf '    %s: {}\n' "$stream"
		done
	} >"$tmp/shared.yaml"
	try qos sim "$tmp/shared.yaml" --log "$tmp/shared.log"
	said=$status.$(sed 1q "$tmp/shared.log" | jq '.tenants[0].alone_milli')
}
shared infer
alone=$said
is "${alone%%.*}" 0 "one process, one tenant: its speed alone is measured"
shared infer other
is "$said" "$alone" "one process, two tenants: alone is its stream alone"
shared infer other none
is "$said" "$alone" "and without a stream of no tenant"
cat >"$tmp/waits.yaml" <<END
gpu: { chip: h200, mps: yes }
stop: 4ms
kernels: { k: { blocks: 528, threads: 256, work: 20000 } }
streams: { infer: { process: infer }, feed: { process: feed } }
programs:
  infer: { process: infer, steps: [ { wait: E, on: infer }, { repeat: 100000, do: [ { launch: k, on: infer } ] } ] }
  feed: { process: feed, steps: [ { launch: k, on: feed }, { cpu: 1ms }, { record: E, on: feed } ] }
qos:
  epoch: 4ms
  phases: [ { epochs: 5 } ]
  tenants: { infer: { goal: { alpha: 0.5 } }, feed: {} }
END
try qos sim "$tmp/waits.yaml" --json
is "$status $(jq '.tenants[0].epochs_met' "$tmp/out")" "0 5" "what another process records is waited for alone too"

# A launch whose cluster fits into no virtual GPC of its set gets more TPCs; otherwise it would be
# refused.
cat >"$tmp/clusters.yaml" <<END
gpu: { chip: h200, mps: yes }
stop: 4ms
kernels: { k: { blocks: 64, threads: 256, work: 20000, cluster: 16 }, o: { blocks: 528, threads: 256, work: 20000 } }
streams: { serve: { process: serve }, train: { process: train } }
graphs: { g: [ { node: A, kernel: o }, { node: B, kernel: k, after: [A] } ] }
programs:
  serve: { process: serve, steps: [ { repeat: 9, do: [ { launch: k, on: serve }, { graph: g, on: serve } ] } ] }
  train: { process: train, steps: [ { repeat: 100000, do: [ { launch: o, on: train } ] } ] }
qos:
  epoch: 4ms
  shapes: yes
  phases: [ { epochs: 5 } ]
  tenants: { serve: { goal: { rate: 1000 }, ceiling: 4 }, train: { floor: 60 } }
END
try qos sim "$tmp/clusters.yaml" --json
is "$status $(jq -c '[.tenants[0] | .nr_tpcs, .epochs_met]' "$tmp/out")" "0 [4,5]" "a cluster of 16 blocks in a set of 4 TPCs runs"

# ------------------------------------------------------------------------- shapes
# A tenant that reads DRAM meets its goal with fewer TPCs in another shape, and best effort gets
# the rest.
is "$(jq -s '[.[] | .decision.tenants[0].shape] | last != "packed"' "$tmp/qos-neighbour.log")" true \
	"qos-neighbour: a tenant that reads from DRAM is not packed at the end"
[ "$(jq '[.tenants[] | select(.name == "infer").nr_tpcs][0]' "$tmp/qos-neighbour.json")" -lt 33 ]
ok $? "qos-neighbour: and has fewer TPCs than the 35 that it needs packed"
is "$(jq -rs '[.[] | .decision.tenants[0].shape] | last' "$tmp/qos-steady.log")" packed "qos-steady: what computes is packed"
is "$(sed 1q "$tmp/qos-steady.log" | jq -c '[.tenants[].floor]') $(sed 1q "$tmp/qos-burst.log" | jq -c '[.tenants[].floor]')" \
	"[0,6] [0,3,3]" "best effort without a floor has a tenth of the GPU"
is "$(jq -s '[.[] | .decision.tenants[] | select(.name != "serve").nr_tpcs] | min >= 3' "$tmp/qos-burst.log")" true \
	"and never less"

# ------------------------------------------------------------------------ replay
# Written before there were shapes.
try qos replay tests/data/qos/packed.log
is "$status $(tail -n 1 "$tmp/out")" "0 replayed: 12 decisions, all the same as in the log" "a log of before replays"
sed '1s/"cluster_tpcs":4/"cluster_tpcs":4,"shapes":true/' tests/data/qos/packed.log >"$tmp/other.log"
refused 1 "other.log:1: the decision differs: decision." qos replay "$tmp/other.log"
sed '1s/,"shapes":true//' "$tmp/qos-neighbour.log" >"$tmp/other.log"
refused 1 "other.log:1: the decision differs: decision." qos replay "$tmp/other.log"
try qos replay "$tmp/qos-steady.log" --json
is "$status $(jq -c '[.schema, .command, .same, .epochs]' "$tmp/out")" '0 ["gpupart/1","qos replay",true,150]' \
	"replay --json"
sed '10s/"score_milli":[0-9]*/"score_milli":1/' "$tmp/qos-steady.log" >"$tmp/other.log"
refused 1 "other.log:10: the decision differs: decision.tenants[0].score_milli was 1, now it is" qos replay "$tmp/other.log"
sed '3s/"work_milli":[0-9]*/"work_milli":1000/' "$tmp/qos-steady.log" >"$tmp/other.log"
refused 1 "other.log:3: the decision differs: decision." qos replay "$tmp/other.log"
sed '1s/"weight":0/"weight": 0/' "$tmp/qos-steady.log" >"$tmp/other.log"
refused 1 "other.log:1: the decision differs: the same values" qos replay "$tmp/other.log"
sed '7s/^{/{{/' "$tmp/qos-steady.log" >"$tmp/other.log"
refused 2 "other.log:7: is not JSON" qos replay "$tmp/other.log"
sed '7s/"valid":true/"valid":1/' "$tmp/qos-steady.log" >"$tmp/other.log"
refused 2 "other.log:7: valid is of the wrong type" qos replay "$tmp/other.log"
sed '1s/gpupart.1/gpupart\/2/' "$tmp/qos-steady.log" >"$tmp/other.log"
refused 2 "'schema' is 'gpupart/2' but must be 'gpupart/1'" qos replay "$tmp/other.log"
sed 1d "$tmp/qos-steady.log" >"$tmp/other.log"
refused 2 "'event' is 'epoch' but must be 'begin'" qos replay "$tmp/other.log"
: >"$tmp/other.log"
refused 2 "the file is empty" qos replay "$tmp/other.log"
refused 2 "No such file" qos replay "$tmp/none.log"
head -c 20000 "$tmp/qos-steady.log" >"$tmp/other.log"
try qos replay "$tmp/other.log"
is "$status $(grep -c "ignoring an incomplete last line" "$tmp/err")" "0 1" "a log of a controller that was killed: what is whole"
# A zero byte is the end of nothing: what comes after it is looked at, or refused.
sed '51s/"event"/\x00event"/' "$tmp/qos-steady.log" >"$tmp/other.log"
refused 2 "other.log:51: contains a zero byte" qos replay "$tmp/other.log"
sed '51s/./\x00/g' "$tmp/qos-steady.log" >"$tmp/other.log"
refused 2 "other.log:51: contains a zero byte" qos replay "$tmp/other.log"
sed '51s/$/\x00garbage/' "$tmp/qos-steady.log" >"$tmp/other.log"
refused 2 "other.log:51: contains a zero byte" qos replay "$tmp/other.log"
{ sed 50q "$tmp/qos-steady.log"; head -c 1048577 /dev/zero | tr '\0' ' '; } >"$tmp/other.log"
refused 2 "other.log:51: is longer than 1048576 bytes" qos replay "$tmp/other.log"
cat "$tmp/qos-steady.log" "$tmp/qos-steady.log" >"$tmp/other.log"
refused 2 "other.log:$(($(wc -l <"$tmp/qos-steady.log") + 1)): another run begins here, but a log has only one run" qos replay "$tmp/other.log"
sed '2s/"event":"epoch"/"event":"lunch"/' "$tmp/qos-steady.log" >"$tmp/other.log"
refused 2 "other.log:2: 'event' is 'lunch' but must be 'epoch' or 'swap'" qos replay "$tmp/other.log"
# What a log says in letters comes to the terminal: names as a file may have them, no controls.
for name in '' '\\u001B[31m' 'a\\nb' '-x' 'a b'; do
	sed "s/\"name\":\"train\"/\"name\":\"$name\"/g" "$tmp/qos-steady.log" >"$tmp/other.log"
	refused 2 "other.log:1: is not the first line of a log of 'gpupart qos': name" qos replay "$tmp/other.log"
done
for gpu in 'evil\\u001B]0;x\\u0007' 'a\\nb' '\\u009b31m'; do
	sed "1s/\"gpu\":\"[^\"]*\"/\"gpu\":\"$gpu\"/" "$tmp/qos-steady.log" >"$tmp/other.log"
	refused 2 "other.log:1: is not the first line of a log of 'gpupart qos': gpu contains a control character" qos replay "$tmp/other.log"
done

# A failed replay or simulation does not change its results.
echo old >"$tmp/kept.svg"
sed '10s/"score_milli":[0-9]*/"score_milli":1/' "$tmp/qos-steady.log" >"$tmp/other.log"
refused 1 "the decision differs" qos replay "$tmp/other.log" -o "$tmp/kept.svg"
refused 1 "the decision differs" qos replay "$tmp/other.log" -o "$tmp/made.svg"
sed 's/train: {}/train: { floor: 70 }/' share/scenarios/qos-steady.yaml >"$tmp/wrong.yaml"
refused 2 "floor 70" qos sim "$tmp/wrong.yaml" --log "$tmp/kept.svg"
refused 2 "floor 70" qos sim "$tmp/wrong.yaml" --log "$tmp/made.svg"
is "$(cat "$tmp/kept.svg") $(ls "$tmp/made.svg" 2>/dev/null)" "old " "what fails leaves -o and --log as they were"

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

# -------------------------------------------------------------------- invalid files
# wrong SED VALUE: the changed scenario is refused with that value.
wrong() {
	sed "$1" share/scenarios/qos-steady.yaml >"$tmp/wrong.yaml"
	refused 2 "$2" qos sim "$tmp/wrong.yaml"
}
wrong 's/alpha: 0.6/alpha: 1.2/' "alpha: '1.2': must be a share"
wrong 's/alpha: 0.6/alpha: x/' "alpha: 'x'"
wrong 's/alpha: 0.6/alpha: 0.6, rate: 5/' "must have exactly one of alpha, rate and latency"
wrong 's/alpha: 0.6/latency: 5/' "latency: '5' is not a time"
wrong 's/alpha: 0.6/rate: 5, percentile: 9/' "percentile: only a latency goal can have a percentile"
wrong 's/alpha: 0.6/beta: 0.6/' "the key 'beta' is not known"
wrong 's/train: {}/train: { floor: 70 }/' "train: floor 70: the GPU has 66"
wrong 's/train: {}/train: { floor: 9, ceiling: 4 }/' "the floor of 9 TPCs is above the ceiling of 4"
wrong 's/train: {}/train: { weight: 0 }/' "weight: 0"
wrong 's/train: {}/-x: {}/' "'-x': must be 1 to 63 characters"
wrong 's/train: {}/train: { stream: gone }/' "there is no stream 'gone'"
wrong 's/train: {}/train: { stream: infer }/' "train: stream 'infer' already belongs to infer: one stream cannot belong to two tenants"
wrong 's/alpha: 0.6/alpha: $x/' "this variable is not defined"
wrong 's/epoch: 4ms/epoch: 4/' "epoch: '4' is not a time"
wrong 's/epoch: 4ms/epoch: 1ns/' "epoch: 1ns: must be 1us to 1s"
wrong 's/epochs: 150/epochs: 0/' "epochs: 0"
wrong 's/  epoch: 4ms/  epoch: 4ms\n  hysteresis: 3/' "hysteresis: '3': must be 0.1% to 25%"
# A digit more than is kept is not cut off.
wrong 's/  epoch: 4ms/  epoch: 4ms\n  hysteresis: 3.05%/' "hysteresis: '3.05%': must be 0.1% to 25%, with the percent sign"
wrong 's/alpha: 0.6/alpha: 0.6001/' "alpha: '0.6001': must be a share"
wrong 's/alpha: 0.6/latency: 0us/' "latency: 0us: must be a time such as 20ms"
wrong 's/alpha: 0.6/latency: 1ms, percentile: 99.95/' "percentile: '99.95': must be 1 to 99.9, with at most one decimal"
wrong 's/train: {}/train: {}\n    infer: {}/' "tenants: the key 'infer' is given twice"
wrong 's/  tenants:/  tenants: []\n  tenant:/' "qos: the key 'tenant' is not known"
# Octal to some, in every number of the file.
wrong 's/alpha: 0.6/alpha: 00.6/' "alpha: '00.6': must be a share, more than 0 and up to 1, without a leading 0"
wrong 's/alpha: 0.6/rate: 010/' "rate: '010': must be units a second, 0.001 to 1000000000000000, in digits with at most three decimals, without a leading 0"
wrong 's/alpha: 0.6/alpha: 0.6, alone: 010/' "alone: '010': must be units a second, 0.001 to 1000000000000000, in digits with at most three decimals, without a leading 0"
wrong 's/alpha: 0.6/latency: 1ms, percentile: 090/' "percentile: '090': must be 1 to 99.9, with at most one decimal, without a leading 0"
wrong 's/  epoch: 4ms/  epoch: 4ms\n  hysteresis: 02%/' "hysteresis: '02%': must be 0.1% to 25%, with the percent sign, without a leading 0"
wrong 's/train: {}/train: { weight: 02 }/' "weight: '02' is not a whole number from 1 to 1000 without a leading 0"
wrong 's/train: {}/train: { floor: 010 }/' "floor: '010' is not a whole number"
wrong 's/tenants:/lodgers:/' "the key 'lodgers'"
# Phases are on one GPU: sets and learned properties of TPCs continue from one to the next.
sed 's/chip: h200/chip: $c/; s/^kernels:/runs: { first: { c: a100 }, then: { c: h200 }, small: { c: p100 } }\n&/
	s/- { epochs: 150 }/- { run: first, epochs: 2 }\n    - { run: first }\n    - { run: then, epochs: 2 }/' share/scenarios/qos-steady.yaml \
	>"$tmp/chips.yaml"
refused 2 "chips.yaml:23: phase 3 runs on H200 with 66 TPCs, but phase 1 runs on A100 with 54 TPCs: all phases must use one GPU" \
	qos sim "$tmp/chips.yaml" --log "$tmp/chips.log"
[ ! -s "$tmp/chips.log" ]
ok $? "before the first phase runs"
sed -i 's/run: first/run: small/; s/run: then/run: small/' "$tmp/chips.yaml"
try qos sim "$tmp/chips.yaml" --json
is "$status $(jq .epochs "$tmp/out")" "0 5" "phases on the same chip by a variable"
sed 's/chip: h200/chip: h200, topology: $t/
	s/^kernels:/runs: { first: { t: tests\/data\/gh100-h200-a\/capture.txt }, then: { t: tests\/data\/gh100-h200-e\/capture.txt } }\n&/
	s/- { epochs: 150 }/- { run: first }\n    - { run: then }/' share/scenarios/qos-steady.yaml >"$tmp/chips.yaml"
refused 2 "chips.yaml:22: phase 2 has TPCs in other GPCs than phase 1: all phases must use one GPU" qos sim "$tmp/chips.yaml"
refused 2 "has no 'qos:' part" qos sim figure-3
refused 2 "no SCENARIO" qos sim
refused 2 "no LOG" qos replay
refused 2 "'frobnicate'" qos frobnicate
refused 2 "no command" qos
refused 2 "--of png" qos sim qos-steady --of png

# ------------------------------------------------------------- programs, simulated GPU
. tests/cli/qos.subr
e="-i tests/data/gh100-h200-e/capture.txt"
name=qos$$
cat >"$tmp/two.yaml" <<END
epoch: 100ms
tenants:
  $name-a: { goal: { alpha: 0.5, alone: 10000 }, program: [ $tmp/work, $go ] }
  $name-b: { program: [ $tmp/work, $go ] }
END

try qos run $e -f "$tmp/two.yaml" --dry-run
is "$status $(grep -c TPCs "$tmp/out") $(rows "$name-a")" "0 2 0" "--dry-run says the first sets and starts nothing"

touch "$go"
"$gpupart" qos run $e -f "$tmp/two.yaml" --log "$tmp/live.log" >"$tmp/live.out" 2>"$tmp/live.err" &
pid=$!
until_true has_rows "$name-a" 1
until_true has_rows "$name-b" 1
until_true has_lines "$tmp/live.log" 8
is "$(rows "$name-a") $(rows "$name-b")" "1 1" "run starts its programs"
refused 125 "another 'gpupart qos' or 'gpupart tune' runs on this GPU" qos run $e -f "$tmp/two.yaml"
"$gpupart" qos run $e -f "$tmp/two.yaml" --dry-run --epochs 1 >"$tmp/dry" 2>&1
is $? 0 "a dry run beside it is let by"
has "$(cat "$tmp/dry")" " TPCs: " "and says what it would do"
jq -s '[.[] | select(.event == "epoch").measured[].work_milli > 0] | any' "$tmp/live.log" >"$tmp/any"
is "$(cat "$tmp/any")" true "their progress is read"
is "$(jq -s '[.[] | .simulated] | all' "$tmp/live.log")" true "the log says simulated"
# A log is written line by line: its last set is in force, or will be soon.
for _ in $(seq 100); do
	a=$(set_of "$name-a")
	decided=$(tail -n 1 "$tmp/live.log" | jq -r '.decision.tenants[0].set')
	[ -n "$decided" ] && [ "$a" = "$decided" ] && break
	sleep 0.02
done
is "$a" "$decided" "ps has the set that was decided"

# When it is killed, the sets stay; another one takes over programs and sets.
kill -9 $pid
wait $pid 2>/dev/null
before="$(set_of "$name-a") $(set_of "$name-b")"
is "$(rows "$name-a") $(rows "$name-b")" "1 1" "killed: the programs go on"
try qos replay "$tmp/live.log"
is "$status" 0 "killed: its log replays"
sleep 0.3
is "$(set_of "$name-a") $(set_of "$name-b")" "$before" "killed: the sets stay"
try qos run $e -f "$tmp/two.yaml" --epochs 3 --log "$tmp/next.log"
is "$status $(grep -c "already runs and was adopted" "$tmp/err")" "0 2" "a new controller adopts them"
# TPCs that were draining when it was killed have no owner, and go to best effort.
is "$(head -n 1 "$tmp/next.log" | jq -r '[.tenants[].adopted] | join(" ")')" "$before" "with their sets"
is "$(head -n 1 "$tmp/next.log" | jq -r '.decision.tenants[0].set')" "${before% *}" "of which a guaranteed one stays as it is"
is "$(rows "$name-a") $(rows "$name-b")" "1 1" "--epochs: it ends, and they go on"

# Power and clocks, from NVML; the clock of memory is not known.
GPUPART_SIM_FAULTS=nvml-state=412500:1980 try qos run $e -f "$tmp/two.yaml" --epochs 4 --log "$tmp/power.log" --of text
is "$(jq -s -c '[.[] | select(.event == "epoch") | .power_mw, .sm_mhz, .memory_mhz] | unique' "$tmp/power.log")" \
	"[null,1980,412500]" "power and clocks are in the log"
has "$(cat "$tmp/out")" "of the GPU, mean: 412.5 W, SMs at 1980 MHz" "and the means are in the table"
try qos replay "$tmp/power.log" --json
is "$status $(jq -c '[.mean_power_mw, .mean_sm_mhz, .mean_memory_mhz]' "$tmp/out")" "0 [412500,1980,null]" "a log with power replays"
sed 's/"power_mw":412500/"power_mw":-5/' "$tmp/power.log" >"$tmp/power.bad"
refused 2 "power_mw is -5" qos replay "$tmp/power.bad"

# A message reports a tenant that dies; the other one keeps its TPCs.
"$gpupart" qos run $e -f "$tmp/two.yaml" --log "$tmp/dies.log" >"$tmp/live.out" 2>"$tmp/live.err" &
pid=$!
until_true has_lines "$tmp/dies.log" 5
kill -9 "$("$gpupart" ps | awk -v n="$name-b" '$2 == n { print $1 }')"
for _ in $(seq 250); do
	grep -q "$name-b: it ended" "$tmp/live.out" && break
	sleep 0.02
done
has "$(cat "$tmp/live.out")" "$name-b: it ended" "a message for a tenant that dies"
is "$(rows "$name-a")" 1 "and the other goes on"
rm "$go"
wait $pid
is "$?" 0 "it ends when the last program does"
is "$(tail -n 1 "$tmp/dies.log" | jq -c '[.decision.tenants[].state]')" '["gone","gone"]' "and says that they are gone"
is "$(find "/dev/shm/gpupart-$(id -u)" -name 'qos-*.socket' | wc -l)" 0 "its socket is gone"

# Lines on the socket; a status; programs that cannot be started.
cat >"$tmp/lines.yaml" <<END
epoch: 100ms
tenants:
  $name-s:
    goal: { latency: 20ms, percentile: 90 }
    program:
      - python3
      - -c
      - |
        import os, socket, time
        s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        for _ in range(60):
            s.sendto(b"$name-s latency 5ms", os.environ["GPUPART_QOS"])
            time.sleep(0.01)
        os._exit(3)
END
try qos run $e -f "$tmp/lines.yaml" --json
is "$status" 3 "the program's exit status"
is "$(jq -s 'map(select(.event == "epoch").measured[0] | select(.requests > 0).latency_ns / 1e6 | . > 4.6 and . < 5.4) | length > 2 and all' \
	"$tmp/out")" true "latencies come by the socket, to a tenth"
sed 's/latency 5ms", /latency %dms" % (5 if _ % 10 else 50), /; s/os._exit(3)/time.sleep(0.5)/' "$tmp/lines.yaml" >"$tmp/tenth.yaml"
try qos run $e -f "$tmp/tenth.yaml" --log "$tmp/tenth.log" --of text
is "$(grep requests "$tmp/out")" "$name-s: 54 of 60 requests within 20 ms (90.00%)" "each request counts, also in the first epoch"
try qos replay "$tmp/tenth.log" --json
is "$(jq -c '.tenants[0] | [.requests, .requests_within]' "$tmp/out")" "[60,54]" "and in the JSON of a replay"
jq -c 'del(.measured[]?.answered, .measured[]?.within)' "$tmp/tenth.log" >"$tmp/tenth.old"
try qos replay "$tmp/tenth.old" --json
is "$status $(jq -c '.tenants[0].requests' "$tmp/out")" "0 null" "in a log of an older version, the number is not known"
sed 's/- python3/- no-such-program/' "$tmp/lines.yaml" >"$tmp/none.yaml"
try qos run $e -f "$tmp/none.yaml"
is "$status $(grep -c "no-such-program" "$tmp/err")" "127 1" "a program that is missing"

# By pid, a program without reports: launches count; calibrate.
touch "$go"
"$gpupart" run --exec $e -t 0-7 --name "$name-p" -- "$tmp/work" "$go" 2>/dev/null &
pid=$!
until_true has_rows "$name-p" 1
cat >"$tmp/pid.yaml" <<END
epoch: 100ms
tenants: { $name-q: { pid: $pid, signal: launches } }
END
try qos run $e -f "$tmp/pid.yaml" --epochs 4 --json
is "$status $(jq -s '[.[] | select(.event == "epoch").measured[0].work_milli > 0] | any' "$tmp/out")" "0 true" \
	"adopted by pid, by its launches"
[ "$(set_of "$name-p")" != 0-7 ]
ok $? "and its set was changed: $(set_of "$name-p")"
before=$(set_of "$name-p")
try qos run $e -f "$tmp/pid.yaml" --epochs 12 --dry-run --json
is "$status $(jq -s '[.[] | select(.event == "epoch").measured[0].work_milli > 0] | any' "$tmp/out")" "0 true" \
	"--dry-run watches it"
is "$(jq -s '[.[] | .measured // [] | .[] | (.work_milli % 1000 == 0) and (has("reports") | not)] | all' "$tmp/out")" \
	true "launches are whole"
is "$(set_of "$name-p")" "$before" "and changes nothing"
rm "$go"
wait $pid
refused 125 "process $pid does not confine launches" qos run $e -f "$tmp/pid.yaml"
touch "$go"
try qos calibrate $e -f "$tmp/two.yaml" --seconds 1 --json
is "$status $(jq -c '[.schema, .simulated, (.tenants | length), ([.tenants[].alone_milli > 0] | all)]' "$tmp/out")" \
	'0 ["gpupart/1",true,2,true]' "calibrate"
rm "$go"

# Invalid files and arguments.
file() {
	printf '%s\n' "$@" >"$tmp/bad.yaml"
}
file "tenants: { a: { goal: { alpha: 0.5 }, program: [ true ] } }"
refused 125 "alpha needs the solo speed" qos run $e -f "$tmp/bad.yaml"
file ""
refused 125 "the file is empty: it must have 'tenants:'" qos run $e -f "$tmp/bad.yaml"
file "tenants: { a: {} }"
refused 125 "a: must have exactly one of program, pid and job" qos run $e -f "$tmp/bad.yaml"
file "tenants: { a: { program: [ true ], pid: 5 } }"
refused 125 "a: must have exactly one of program, pid and job" qos run $e -f "$tmp/bad.yaml"
file "tenants: { a: { program: sleep } }"
refused 125 "bad.yaml:1: program: must be a list" qos run $e -f "$tmp/bad.yaml"
file "tenants: { a: { job: no-such-job-$$ } }"
refused 125 "no job 'no-such-job-$$' runs" qos run $e -f "$tmp/bad.yaml"
file "tenants: { a: { program: [ true ], signal: smoke } }"
refused 125 "signal: 'smoke'" qos run $e -f "$tmp/bad.yaml"
file "tenants: { a: { program: [ true ], signal: ipc } }"
refused 125 "signal: 'ipc': must be auto, reported, launches or kernels" qos run $e -f "$tmp/bad.yaml"
file "epoch: 1ms" "tenants: { a: { program: [ true ] } }"
refused 125 "bad.yaml:1: epoch: 1ms: must be 10ms to 60s" qos run $e -f "$tmp/bad.yaml"
file "tenants: { $name-a: { floor: 40, program: [ true ] }, $name-b: { floor: 40, program: [ true ] } }"
refused 125 "the floors of all tenants (each at least 1 TPC) need 80 TPCs" qos run $e -f "$tmp/bad.yaml"
file "# empty"
refused 125 "bad.yaml: the file is empty" qos run $e -f "$tmp/bad.yaml"
refused 2 "bad.yaml: the file is empty" qos calibrate $e -f "$tmp/bad.yaml"
refused 125 "none.yaml" qos run $e -f "$tmp/none.such/none.yaml"
refused 125 "no file (-f)" qos run $e
refused 125 "--epochs '0'" qos run $e -f "$tmp/two.yaml" --epochs 0
refused 2 "--seconds" qos sim qos-steady --seconds 1
refused 2 "--dry-run" qos calibrate -f "$tmp/two.yaml" --dry-run

# ------------------------------------------------------------ tenants as arguments
touch "$go"
try qos run $e --tenant "w$$:rate=100,floor=3" --epoch 50ms --epochs 4 --json -o "$tmp/words.log" -- "$tmp/work" "$go"
is "$status $(head -n 1 "$tmp/words.log" | jq -c '[.epoch_ns, (.tenants[] | .goal, .rate_milli, .floor)]')" '0 [50000000,"rate",100000,3]' \
	"--tenant is what a file says"
ps -eo args | grep -q "^$tmp/work $go\$"
ok $? "and PROGRAM is started as it stands"
try qos run $e --tenant "a:latency=20ms,percentile=95" --tenant "b:job=w$$,weight=3" --dry-run --epochs 1 --json -- "$tmp/work"
is "$status $(head -n 1 "$tmp/out" | jq -c '[.tenants[] | .latency_ns, .percentile_milli, .weight, .adopted != ""]')" \
	'0 [20000000,950,0,false,0,990,3,true]' "of several, who has no job has the program"
rm "$go"
refused 125 "--tenant:2: alpha: '2': must be a share" qos run $e --tenant a:job=x --tenant b:alpha=2,alone=1 true
refused 125 "--tenant:1: a: the key 'color' is not known" qos run $e --tenant a:color=red true
refused 125 "--tenant a:rate: 'rate': must be KEY=VALUE" qos run $e --tenant a:rate true
refused 125 "--tenant:2: tenants: the key 'a' is given twice" qos run $e --tenant a:rate=1 --tenant a:job=x true
refused 125 "no tenant can run the program 'true': each --tenant names a job or a pid" qos run $e --tenant a:job=x true
refused 125 "--tenant:1: a: must have exactly one of program, pid and job" qos run $e --tenant a:rate=1
refused 125 "-f f and --tenant a: use only one of them" qos run $e -f f --tenant a true
refused 125 "--epoch 1s: cannot be used with -f, because the file sets the epoch" qos run $e -f f --epoch 1s
refused 2 "--tenant is not an option of 'gpupart qos replay'" qos replay x --tenant a
cp "$tmp/words.log" "$tmp/kept.log"
refused 2 "-o $tmp/kept.log: this file is also the input" qos replay "$tmp/kept.log" -o "$tmp/kept.log"
cp share/scenarios/qos-steady.yaml "$tmp/kept.yaml"
refused 2 "--log $tmp/kept.yaml: this file is also the input" qos sim "$tmp/kept.yaml" --log "$tmp/kept.yaml"
refused 2 "are the same file" qos sim "$tmp/kept.yaml" --log "$tmp/one" -o "$tmp/one"
cmp -s share/scenarios/qos-steady.yaml "$tmp/kept.yaml" && cmp -s "$tmp/words.log" "$tmp/kept.log"
ok $? "and what is read is as it was"
refused 2 "-o x.svg: calibrate cannot draw a picture" qos calibrate $e --tenant a -o x.svg true
refused 2 "--tenant: no tenant has a program" qos calibrate $e --tenant a:job=x

tap_done
