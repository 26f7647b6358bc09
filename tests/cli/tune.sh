#!/bin/sh
# SPDX-License-Identifier: MIT
# gpupart tune on the simulated GPU: the best sets of programs whose speeds are known functions of
# their sets; old sets are restored however it ends; plans, pictures, refused input.
. "$(dirname "$0")/tap.subr"
. tests/cli/qos.subr
if ! ${CC:-cc} -o "$tmp/tuned" tests/cli/tune_work.c -ldl 2>"$tmp/err"; then
	cat "$tmp/err" >&2
	skip "no C compiler"
	tap_done
fi

# A GPU of its own: another capture file makes another GPU, which no other test uses.
cp tests/data/gh100-h200-e/capture.txt "$tmp/board.txt"
e="-i $tmp/board.txt"
a=tune$$a
b=tune$$b
trap 'rm -f "$go" "$go".*; wait; rm -rf "$tmp"' EXIT
# job NAME SET WORK..: a job of that name, until $go.NAME is removed.
job() {
	touch "$go.$1"
	job_name=$1
	job_set=$2
	shift 2
	"$gpupart" run --exec $e -t "$job_set" --name "$job_name" -- "$tmp/tuned" "$go.$job_name" "$@" 2>/dev/null &
	until_true has_rows "$job_name" 1
}
# ended NAME..
ended() {
	for one; do
		rm -f "$go.$one"
	done
	for one; do
		until_true has_rows "$one" 0
	done
}
has_set() {
	[ "$(set_of "$1")" = "$2" ]
}
lacks_set() {
	[ "$(set_of "$1")" != "$2" ]
}
# column NR FILTER: this column of the table's rows that match the filter.
column() {
	jq -r "[.report.tables[0].rows[] | select($2)[$1]] | map(tostring) | join(\" \")" "$tmp/out"
}

# ------------------------------------------------------------------------- two programs
job "$a" 0-32 linear
job "$b" 33-65 most 20
try tune "$a" "$b" --seconds 6 --json
cp "$tmp/out" "$tmp/two.json"
is "$status $(jq -c '[.schema, .command, .simulated, .goal, .met, .applied]' "$tmp/out")" \
	'0 ["gpupart/1","tune",true,"sum",true,false]' "two jobs: the result says that it is simulated"
nr=$(jq --arg n "$b" '.best[$n].nr_tpcs' "$tmp/out")
[ "$nr" -ge 14 ] && [ "$nr" -le 40 ]
ok $? "sum: the one that gains nothing beyond 20 TPCs has $nr, not 4 and not all"
is "$(jq --arg a "$a" --arg b "$b" '.best[$a].nr_tpcs + .best[$b].nr_tpcs' "$tmp/out")" 66 "and the other the rest"
is "$(set_of "$a") $(set_of "$b")" "0-32 33-65" "without --apply old sets are back"
is "$(jq -r '.report.meaning[-1]' "$tmp/out")" "(simulated) Not applied: the programs have their old sets again." "and it says so"
is "$(echo "$err" | grep -c "$a has TPCs 0-32; if tune does not restore this set, run 'gpupart set $a -t 0-32'")" 1 \
	"and the old sets are printed before anything changes"
# Speeds are what the sets make of them: a thousand units a TPC, each second. On a busy machine, the
# programs do not always run.
proportional() {
	jq -e '[.report.tables[0].rows[] | select(.[-1] == "" or .[-1] == "the best") | .[2] / .[1] > 800 and .[2] / .[1] < 1200] | length >= 4 and (map(select(.)) | length) * 10 >= length * 8' \
		"$tmp/out" >/dev/null
}
for _ in 1 2 3 4 5; do
	proportional && break
	try tune "$a" "$b" --seconds 6 --json
done
proportional
ok $? "speeds are those of the sets: $(jq -c '[.report.tables[0].rows[][1:3]]' "$tmp/out" | cut -c 1-70).."
[ "$(column 5 '.[6] != null and .[6] >= 10' | wc -w)" -ge 1 ] && [ "$(column 5 '.[6] != null' | wc -w)" -le 3 ]
ok $? "at most three have a percentile: $(column 5 '.[6] != null') ms"
has "$(jq -r '.report.meaning[]' "$tmp/out")" "noise" "the noise is stated"
try tune "$b" "$a" --goal "$b:rate=15000" --seconds 5 -o "$tmp/plan.json" -o "$tmp/tune.svg" --apply
is "$status" 0 "a rate for one of them, applied"
has "$out" "(simulated)" "the table says simulated"
has "$out" "Applied" "and that it is applied"
want=$(jq -r --arg n "$b" '.tenants[] | select(.name == $n).set.list' "$tmp/plan.json")
is "$(set_of "$b") $(set_of "$a")" "$want $(jq -r --arg n "$a" '.tenants[] | select(.name == $n).set.list' "$tmp/plan.json")" \
	"the programs have the sets of the plan: $want"
nr=$(jq --arg n "$b" '.tenants[] | select(.name == $n).set.nr_tpcs' "$tmp/plan.json")
[ "$nr" -ge 15 ] && [ "$nr" -le 40 ]
ok $? "which has enough for the rate, and not much more: $nr"
try run $e --plan "$tmp/plan.json:$b" -- true
is "$status" 0 "'gpupart run' takes the plan"
python3 -c 'import sys, xml.etree.ElementTree as t; print(t.parse(sys.argv[1]).getroot().tag[-3:])' "$tmp/tune.svg" >"$tmp/tag"
is "$(cat "$tmp/tag") $(grep -c simulated "$tmp/tune.svg" | sed 's/^[1-9].*/some/')" "svg some" "the picture is SVG and says simulated"
"$gpupart" set "$a" -t 0-32 >/dev/null
"$gpupart" set "$b" -t 33-65 >/dev/null
rm "$tmp/plan.json"
try tune "$a" --goal alpha=0.1 --seconds 2 --apply -o /dev/full
is "$status $(echo "$err" | grep -c "the programs have the best sets, although an output failed")" "1 1" \
	"the sets are applied, and then the plan cannot be written: the message says both"
"$gpupart" set "$a" -t 0-32 >/dev/null
try tune "$a" "$b" --goal rate=9000000 --seconds 2 --apply -o "$tmp/plan.json"
is "$status $(echo "$err" | grep -c "no candidate reaches rate=9000000: the best candidate gives $a")" "1 1" \
	"a goal that no set reaches: the best is named"
is "$(set_of "$a") $(set_of "$b") $(ls "$tmp/plan.json" 2>/dev/null)" "0-32 33-65 " "nothing is applied, no plan is written"
try tune "$a" "$b" --goal "$b:rate=9000000" --seconds 2 --json
nr=$(jq --arg n "$b" '.best[$n].nr_tpcs' "$tmp/out")
speed=$(column 8 '.[-1] == "the best"')
is "$status $(echo "$err" | grep -c "no candidate reaches $b:rate=9000000: the best candidate gives $b $nr TPCs and $(printf %.4g "$speed") units per second")" \
	"1 1" "a goal of the second program: its TPCs and its speed: $(echo "$err" | tail -1)"
part=$(echo "$err" | sed -n 's/.* units per second, and reaches \([0-9.e-]*\)% of the goal$/\1/p')
[ "$(echo "$part $speed" | awk '{ print ($1 > $2 / 9e4 * 0.99 && $1 < $2 / 9e4 * 1.01) }')" = 1 ]
ok $? "and the part of the goal: $part%"

# ------------------------------------------------------------------ however it ends
# tuning ARGS..: in the background, until sets are changed.
tuning() {
	"$gpupart" tune "$a" "$b" --seconds 60 >"$tmp/bg.out" 2>"$tmp/bg.err" &
	pid=$!
	until_true lacks_set "$a" 0-32
}
tuning
refused 1 "another 'gpupart qos' or 'gpupart tune' runs on this GPU" tune $e -- true
tenants "$a: { job: $a }"
refused 125 "another 'gpupart qos' or 'gpupart tune' runs on this GPU" qos run $e -f "$tmp/t.yaml"
"$gpupart" set "$a" -t 0-1 >/dev/null
until_true grep -q "another program changed" "$tmp/bg.err"
is "$(sed -n 's/^.*: another program changed/changed/p' "$tmp/bg.err")" \
	"changed this tenant's set to 0-1: this measurement is discarded, and the set is changed again" \
	"another command changes a set: a message"
until_true lacks_set "$a" 0-1
ok $? "and the next candidate changes it again"
kill -TERM $pid
wait $pid
is "$? $(set_of "$a") $(set_of "$b")" "143 0-32 33-65" "SIGTERM: old sets are back when it has ended"
tuning
guard=$(ps -o pid= --ppid $pid)
kill -KILL $guard
until_true sh -c "ps -o pid= --ppid $pid | grep -qv '^ *$guard\$'"
ok $? "if the process that restores the sets is killed, another one starts"
kill -KILL $pid
wait $pid 2>/dev/null
until_true has_set "$a" 0-32
until_true has_set "$b" 33-65
is "$(set_of "$a") $(set_of "$b")" "0-32 33-65" "SIGKILL: old sets come back"
tuning
ended "$b"
wait $pid
is "$? $(grep -c "$b ended before all candidates were measured" "$tmp/bg.err") $(set_of "$a")" "1 1 0-32" \
	"a program that ends: said, and the other has its old set"
touch "$go.$b" "$go.second"
"$gpupart" run $e -t 33-65 --name "$b" -- sh -c \
	"'$tmp/tuned' '$go.$b' linear & '$tmp/tuned' '$go.second' linear & wait" 2>/dev/null &
until_true has_rows "$b" 2
tuning
rm -f "$go.second"
wait $pid
is "$? $(grep -c "a process of $b ended before all candidates were measured" "$tmp/bg.err") $(set_of "$a")" "1 1 0-32" \
	"one of two processes of a program ends: also"
ended "$b"
touch "$go.$b" "$go.second"
"$gpupart" run $e -t 33-65 --name "$b" -- sh -c "'$tmp/tuned' '$go.$b' linear &
	until [ -e '$tmp/more' ]; do sleep 0.05; done; '$tmp/tuned' '$go.second' linear & wait" 2>/dev/null &
until_true has_rows "$b" 1
tuning
touch "$tmp/more"
wait $pid
is "$? $(grep -c "a process of $b started before all candidates were measured" "$tmp/bg.err") $(set_of "$a")" "1 1 0-32" \
	"a program starts another process: also"
rm -f "$go.second"
ended "$b"

# ------------------------------------------------------------------------ one program
for _ in 1 2 3 4 5; do
	try tune "$a" --seconds 4 --json
	[ "$(jq --arg n "$a" '.best[$n].nr_tpcs' "$tmp/out")" -lt 62 ] || break
done
is "$status $(jq -r '.goal, .met' "$tmp/out" | tr '\n' ' ')" "0 alpha=0.95 true " "one program: 95% of its speed alone"
[ "$(jq --arg n "$a" '.best[$n].nr_tpcs' "$tmp/out")" -ge 62 ]
ok $? "which a program that gains by each TPC has with nearly all"
ended "$a"
job "$a" 0-65 needs 30
# On a loaded machine fewer TPCs may seem sufficient: then measure again.
for _ in 1 2 3 4 5; do
	try tune "$a" --goal rate=35000 --seconds 6 --json
	moved=$(jq '[.report.tables[0].rows[] | select(.[1] < 30 and
		(.[-1] | startswith("no progress") | not))] | length' "$tmp/out")
	[ -z "$(column 1 '.[-1] | startswith("no progress")')" ] || [ "$moved" != 0 ] || break
done
# On a loaded machine more may seem better.
is "$status $moved" "0 0" \
	"a program that stands still with fewer than 30 TPCs"
[ "$(column 1 '.[-1] | startswith("no progress")' | wc -w)" -ge 1 ]
ok $? "has its old set back each time: with $(column 1 '.[-1] | startswith("no progress")') TPCs"
is "$(set_of "$a")" 0-65 "and at the end"
ended "$a"
# Programs that say how long they slept: on a loaded machine they sleep longer, and are measured again.
# tune_until LEAST MOST ARGS: until the best set has LEAST to MOST TPCs, in $nr.
tune_until() {
	least=$1 most=$2
	shift 2
	for _ in 1 2 3 4 5 6; do
		try tune "$@"
		nr=$(jq --arg n "$a" '.best[$n].nr_tpcs' "$tmp/out")
		[ "$status" = 0 ] && [ "$nr" -ge "$least" ] && [ "$nr" -le "$most" ] && return
	done
	return 1
}
# A program that needs both uGPUs is not packed into one.
left=$("$gpupart" topology $e --json | jq -r '[.tpcs[] | select(.ugpu == 0).smids[]] | map(tostring) | join(",")')
job "$a" 0-65 even "$left"
tune_until 1 46 "$a" --goal rate=25000 --seconds 5 --json
few=$?
is "$status $(jq -r '.report.meaning[1]' "$tmp/out" | grep -cE ' is (spread|balanced|gpcs)[.]')" "0 1" \
	"one that is fast on both uGPUs: $(jq -r '.report.meaning[1]' "$tmp/out")"
ok $few "with few TPCs: $nr"
ended "$a"
# Each slice has a report: without one, its speed would be 0, and that of the next one too high.
job "$a" 0-65 slow 100
for _ in 1 2 3; do
	try tune "$a" --seconds 11 --json
	speeds=$(jq -r '[.report.tables[0].rows[] | .[2] / .[1] * 66 | tostring] | join(" ")' "$tmp/out")
	! echo "$speeds" | tr ' ' '\n' | awk '$1 < 8 || $1 > 12.5 { bad = 1 } END { exit !bad }' || continue
	break
done
is "$status $(echo "$speeds" | tr ' ' '\n' | awk '$1 < 8 || $1 > 12.5 { nr++ } END { print nr + 0 }')" "0 0" \
	"one that reports every 0.1 s with 66 TPCs: 10 units a second for 66 TPCs: $speeds"
[ "$(echo "$speeds" | wc -w)" -ge 9 ]
ok $? "and at least eight are tried, and the old set"
try tune "$a" --seconds 3
is "$status $(echo "$err" | grep -cE "$a reports only every 0[.][0-9]+ s, so a candidate needs [0-9.]+ s: use --seconds [0-9]+ or more")" \
	"1 1" "too few seconds for it: refused: $(echo "$err" | tail -1)"
ended "$a"
job "$a" 0-65 late 6
try tune "$a" --seconds 5
is "$status" 0 "the first reports come rarely, the later ones often: $(echo "$err" | tail -1)"
ended "$a"
job "$a" 0-65 times
tune_until 25 45 "$a" --goal latency=8ms,percentile=90 --seconds 5 --json
ok $? "requests of 200 ms over its TPCs within 8 ms: $nr TPCs"
# Nearly the goal: less than 100% of it. The second goal is a little less than the shortest time.
try tune "$a" --goal latency=1us,percentile=50 --seconds 2 --json
least=$(column 5 '.[-1] == "the best"' | awk '{ printf "%.0f", $1 * 1e6 * 0.9997 }')
try tune "$a" --goal "latency=${least}ns,percentile=50" --seconds 2
is "$status $(echo "$err" | sed -n 's/.* units per second, and reaches \(99[.]9\)% of the goal$/\1/p')" "1 99.9" \
	"a goal that is missed by less than 0.1%: $(echo "$err" | tail -1)"
ended "$a"
job "$a" 0-65 records
try tune "$a" --goal alpha=0.1 --seconds 2 --json
has "$status $(jq -r '.report.meaning[0]' "$tmp/out")" "measured by its completed launches" "one that reports nothing: its launches"
ended "$a"
"$gpupart" run --exec $e -t 0-9 --name "$a" -- sh -c "touch $go.sleeps; while [ -e $go.sleeps ]; do sleep 0.1; done" 2>/dev/null &
until_true test -e "$go.sleeps"
try tune "$a" --wait 1 --seconds 1
is "$status $(echo "$err" | grep -c "$a made no report in 1 s, and none of its launches was recorded")" "1 1" \
	"one that does nothing at all: refused"

# ------------------------------------------------- limits, other programs, programs started
job "$b" 0-15 linear
ended "$b"
rm "$go.sleeps"
wait
touch "$go.$b"
"$gpupart" run --exec $e -t 0-29 --name outer$$ -- \
	sh -c "'$gpupart' run --exec -t 0-19 --name $b -- '$tmp/tuned' '$go.$b' linear; exit" 2>/dev/null &
until_true has_rows "$b" 1
job "$a" 20-24 linear
try tune "$b" --seconds 2 --json
is "$status $(jq -r .report.title "$tmp/out" | grep -c "on 25 TPCs")" "0 1" \
	"inside a limit of 30 TPCs, 5 of them another program's: $(jq -r .report.title "$tmp/out")"
has "$err" "20-24 ($a, pid" "and a message says so"
case $err in *"(outer$$"*) false ;; esac
ok $? "the limit itself is not another program: $(echo "$err" | tail -1)"
is "$(set_of "$a") $(set_of "$b")" "20-24 0-19" "neither has another set afterwards"
"$gpupart" tune "$b" --seconds 5 --json >"$tmp/out" 2>"$tmp/bg.err" &
pid=$!
until_true lacks_set "$b" 0-19
"$gpupart" set outer$$ -t 0-9 >/dev/null
wait $pid
nr=$(jq --arg n "$b" '.best[$n].nr_tpcs' "$tmp/out")
[ "${nr:-0}" -le 10 ]
ok $? "then a limit of 10 TPCs: the best has not more: ${nr:-none}"
[ "$(cat "$tmp/out" "$tmp/bg.err" | grep -c "not measured: an outer limit leaves fewer TPCs")" -ge 1 ]
ok $? "what does not fit in it is not measured: $(tail -1 "$tmp/bg.err")"
ended "$a" "$b"
touch "$go.x"
try tune $e --name "$a" --name "$b" --goal fair --seconds 3 --json -- "$tmp/tuned" "$go.x" linear : "$tmp/tuned" "$go.x" most 20
is "$status $(jq -r '.best | keys | join(" ")' "$tmp/out") $(rows "$a") $(rows "$b")" "0 $a $b 0 0" \
	"programs that it starts are measured and ended"
is "$(jq -r '.report.meaning[-1]' "$tmp/out")" "(simulated) Not applied: tune ended the programs that it started." "and it says so"
# On a loaded machine it may have got no CPU with the sets that are enough: measured again then.
for _ in 1 2 3 4 5; do
	try tune $e --name "$a" --seconds 2 --goal alpha=0.1 --apply -- "$tmp/tuned" "$go.x" linear
	nr=$("$gpupart" ps --json | jq --arg n "$a" '.processes[] | select(.name == $n).set.nr_tpcs')
	[ "${nr:-0}" -gt 20 ] || break
	rm -f "$go.x"
	until_true has_rows "$a" 0
	touch "$go.x"
done
is "$status $(rows "$a")" "0 1" "--apply: it goes on"
[ "$nr" -le 20 ]
ok $? "with the best set: $(set_of "$a")"
ended x "$a"
touch "$go.x"
"$gpupart" tune $e --name "$a" -- sh -c "trap '' TERM; exec '$tmp/tuned' '$go.x' linear" >/dev/null 2>&1 &
pid=$!
until_true has_rows "$a" 1
sleep 1
kill -KILL $pid
wait $pid 2>/dev/null
until_true has_rows "$a" 0
ok $? "SIGKILL: programs that it started are ended, also if they ignore SIGTERM"
rm "$go.x"
# The first program kills tune while tune starts the second one. The second one may not begin.
touch "$go.x"
for nr in 1 2 3; do
	try tune $e --name "$a" --name "$b" -- sh -c \
		"echo \$\$ >'$tmp/first'; kill -KILL \$PPID; exec '$tmp/tuned' '$go.x' linear" : \
		sh -c "echo \$\$ >'$tmp/second'; exec '$tmp/tuned' '$go.x' linear"
	sleep 1
	for one in first second; do
		[ ! -e "$tmp/$one" ] || until_true sh -c "! kill -0 $(cat "$tmp/$one") 2>/dev/null"
		is "$status $?" "137 0" "SIGKILL while it starts programs, time $nr: the $one one is ended"
	done
	rm -f "$tmp/first" "$tmp/second"
done
rm "$go.x"

# The second program stands still in the candidate that gives nearly all TPCs to the first.
job "$a" 0-32 linear
job "$b" 33-65 needs 20
try tune "$a" "$b" --goal "$a:alpha=0.9" --seconds 24 --json
jq -e '.report.meaning[0] | capture("solo speed (?<v>[0-9.e+]+)/s").v | tonumber > 52000' "$tmp/out" >/dev/null
ok $? "the solo speed is measured while the other program stands still: $(jq -r '.report.meaning[0]' "$tmp/out" | cut -c 1-90)"
is "$(jq '[.report.tables[0].rows[] | .[3], .[9] | select(. != null and . > 100.001)] | length' "$tmp/out")" 0 \
	"no program is faster than alone"
is "$(column 9 '.[7] < 20 and (.[-1] | startswith("no progress"))' | tr -d 'null ')" "" "no share of what stood still"
is "$status $(jq .met "$tmp/out")" "1 false" "so 90% of it is not reached"
ended "$a" "$b"

# Several jobs of one name: the command that restores the set changes only the job that is tuned.
job "$a" 0-9 linear
"$gpupart" run --exec $e -t 10-19 --name "$a" -- "$tmp/tuned" "$go.$a" linear 2>/dev/null &
until_true has_rows "$a" 2
sets_of() {
	"$gpupart" ps --json | jq -r --arg n "$a" '[.processes[] | select(.name == $n).set.list] | sort | join(" ")'
}
try tune "$a" --goal alpha=0.1 --seconds 2
is "$status $(sets_of)" "0 0-9 10-19" "two jobs of one name: one is tuned, and its set restored"
command=$(echo "$err" | sed -n "s/.*if tune does not restore this set, run 'gpupart \(set .*\)'\$/\1/p")
try $command
is "$status $(sets_of)" "0 0-9 10-19" "and the printed command changes only this one: $command"
ended "$a"

# A borrower's speed is not the speed of its set.
job "$b" 33-65 linear
touch "$go.$a"
"$gpupart" run $e -t 0-32 --name "$a" --lend "$b" --lend-limit 1s -- "$tmp/tuned" "$go.$a" linear 2>/dev/null &
until_true has_rows "$a" 1
refused_borrower() {
	is "$status $(echo "$err" | grep -c "$a borrows TPCs of $b, so its speed is not the speed of its set: start it without --lend")" \
		"1 1" "$1"
	is "$(set_of "$a") $(set_of "$b")" "0-32 33-65" "and no set changes"
}
try tune "$a" --seconds 2
refused_borrower "a program that borrows TPCs: refused"
try tune "$b" "$a" --seconds 2
refused_borrower "also as the second program"
try tune "$b" --goal alpha=0.1 --seconds 2
is "$status" 0 "its lender can be tuned"
ended "$a" "$b"

# ----------------------------------------------------------------------------- refusals
job "$a" 0-9 linear
cp "$tmp/board.txt" "$tmp/other.txt"
refused 2 "job '$a' runs on GPU 0000:01:00.0 of $tmp/board.txt, not on GPU 0000:01:00.0 of $tmp/other.txt" tune "$a" -i "$tmp/other.txt"
refused 2 "you have no running job named 'none$$' under this version of gpupart: see 'gpupart ps'" \
	tune "none$$"
refused 2 "no job was given: use the names of one or two jobs" tune
refused 2 "tune can measure at most two jobs or programs" tune "$a" "$a" "$a"
refused 2 "name two different jobs" tune "$a" "$a"
refused 2 "cannot be used with a program after --" tune "$a" -- true
refused 2 "one of the programs is missing" tune $e -- true :
refused 2 "two programs are named true: name two different jobs, or use --name" tune $e -- true : true
refused 2 "there are more names than programs" tune $e --name x --name y -- true
refused 2 "no job was given" tune $e --
refused 2 "one of the programs is missing" tune $e -- : true
refused 2 "tune can measure at most two jobs or programs" tune $e -- true : false : sh
refused 2 "--mps: needs a program after --" tune "$a" --mps
for goal in sum fair; do
	refused 2 "--goal '$goal': must be [NAME:]alpha=, rate= or latency=, or for two programs, sum or fair" tune "$a" --goal $goal
done
for name in "''" "a b" "a:b" "a,b" -x; do
	refused 2 "--name $name: must be 1 to 63 characters" tune $e "--name=${name#"''"}" -- true
done
cp "$tmp/tuned" "$tmp/tu:ned"
refused 2 "without --name, the name tu:ned: must be 1 to 63 characters" tune $e -- "$tmp/tu:ned"
for goal in lend=1ms lend=auto job=x pid=4 weight=2 floor=3 ceiling=3 alone=3 signal=auto durations=x program=x; do
	for where in "" "$a:"; do
		refused 2 "--goal ${where}rate=5,$goal: must be alpha=, rate= or latency=; latency= can also have percentile=" \
			tune "$a" --goal "${where}rate=5,$goal"
	done
done
refused 2 "--goal 'frobnicate': must be" tune "$a" --goal frobnicate
refused 2 "--goal '': must be" tune $e --goal '' -- true : false
refused 2 "there are more names than programs" tune "$a" --name x
refused 2 "none of the programs has this name" tune "$a" --goal "b:rate=5"
for goal in rate=0 alpha=0 latency=0ms alpha=2 floor=3 pid=4 rate=5,alone=3; do
	try tune "$a" --goal "$goal"
	is "$status $(echo "$err" | grep -c "^gpupart tune: --goal")" "2 1" "--goal $goal: $err"
done
for rate in 1e9 99999999999999999999 1000000000000000.1 0.0001; do
	refused 2 "rate: '$rate': must be units a second, 0.001 to 1000000000000000, in digits with at most three decimals" \
		tune "$a" --goal "rate=$rate"
done
refused 1 "-o '': " tune "$a" -o ''
for option in --lend-limit --depth --lend-weight; do
	refused 125 "$option '': must be a" run $e -t 0 --lend x $option '' -- true
done
refused 2 "--seconds '0': must be 1 to 3600 seconds" tune "$a" --seconds 0
refused 2 "--wait '0': must be 1 to 3600 seconds" tune "$a" --wait 0
for file in "$tmp/none/plan.json" "$tmp/none/tune.svg" "$tmp"; do
	refused 1 "-o $file: " tune "$a" --seconds 2 --apply -o "$tmp/new.json" -o "$file"
done
refused 2 "-o $tmp/new.png: a picture can only be .svg" tune "$a" --seconds 2 -o "$tmp/new.png"
is "$(ls "$tmp"/new.* 2>/dev/null)" "" "a file that cannot be written: nothing is measured or written"
job "$b" 10-65 linear
try tune $e -- true
is "$status $(echo "$err" | grep -c "true: the outer limit and other programs leave only 0 TPCs for this program")" \
	"2 1" "no TPC is left: refused"
ended "$b"
try tune $e -- "$tmp/none"
is "$status" 127 "a program that does not exist"
is "$(set_of "$a")" 0-9 "the set is not changed"
if [ "$(id -u)" = 0 ] && setpriv --reuid 1234 --clear-groups "$gpupart" --version >/dev/null 2>&1; then
	err=$(setpriv --reuid 1234 --clear-groups env HOME=/ "$gpupart" tune "$a" 2>&1)
	is "$? $(echo "$err" | grep -c "you have no running job named '$a'")" "2 1" "another user's job: refused"
else
	skip "another user's job: not root"
fi
ended "$a"
tap_done
