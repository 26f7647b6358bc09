#!/bin/sh
# SPDX-License-Identifier: MIT
# gpupart qos run and calibrate in trouble: files that another controller writes, programs that
# fork, exec, end or do not want to end, tenants that are one program, numbers beyond all bounds.
. "$(dirname "$0")/tap.subr"
unset GPUPART_JOB

if ! ${CC:-cc} -o "$tmp/work" tests/cli/qos_work.c -ldl 2>"$tmp/err"; then
	cat "$tmp/err" >&2
	skip "no C compiler"
	tap_done
fi
e="-i tests/data/gh100-h200-e/capture.txt"
go=$tmp/go
name=trouble$$
# until COMMAND..: true within ten seconds.
until_true() {
	for _ in $(seq 500); do
		"$@" && return
		sleep 0.02
	done
	return 1
}
has_lines() {
	[ -f "$1" ] && [ "$(wc -l <"$1")" -ge "$2" ]
}
# rows NAME: how many processes ps has of that name.
rows() {
	"$gpupart" ps | awk -v n="$1" '$2 == n' | wc -l
}
has_rows() {
	[ "$(rows "$1")" = "$2" ]
}
set_of() {
	"$gpupart" ps --json | jq -r --arg n "$1" '[.processes[] | select(.name == $n).set.list][0]'
}
# tenants LINE..: a file of them, with epochs of 100 ms.
tenants() {
	printf 'epoch: 100ms\ntenants:\n' >"$tmp/t.yaml"
	printf '  %s\n' "$@" >>"$tmp/t.yaml"
}

# ------------------------------------------------------------------- files it writes
touch "$go"
tenants "$name-a: { goal: { alpha: 0.5, alone: 10000 }, program: [ $tmp/work, $go ] }"
cp "$tmp/t.yaml" "$tmp/one.yaml"
"$gpupart" qos run $e -f "$tmp/one.yaml" --log "$tmp/log" >/dev/null 2>&1 &
pid=$!
until_true has_lines "$tmp/log" 3
try qos run $e -f "$tmp/one.yaml" --log "$tmp/log" -o "$tmp/log"
is "$status $(head -n 1 "$tmp/log" | jq -r .event)" "125 begin" "a second controller leaves the first one's log as it is"
kill -9 $pid
wait $pid 2>/dev/null
cp "$tmp/log" "$tmp/old"
tenants "a: { job: no-such-job-$$ }"
try qos run $e -f "$tmp/t.yaml" --log "$tmp/log"
tenants "a: { floor: 100, program: [ true ] }"
try qos run $e -f "$tmp/t.yaml" --log "$tmp/log"
cmp -s "$tmp/log" "$tmp/old"
ok $? "and so does one whose file is wrong"
try qos run $e -f "$tmp/one.yaml" --epochs 3 --json --log "$tmp/log"
is "$status $(wc -l <"$tmp/log")" "0 $(wc -l <"$tmp/out")" "--json and --log: both"
[ -s "$tmp/out" ] && cmp -s "$tmp/log" "$tmp/out"
ok $? "with the same lines"
try qos run $e -f "$tmp/one.yaml" --epochs 3 --json -o "$tmp/lines"
is "$status $(head -n 1 "$tmp/lines" | jq -r .event) $out" "0 begin " "--json -o FILE"
try qos run $e -f "$tmp/one.yaml" --epochs 1000 -o "$tmp/none/x.svg"
is "$status $(echo "$err" | grep -c "none/x.svg: No such file")" "125 1" "-o where no folder is: said before it begins"
is "$(rows "$name-a")" 1 "and the program goes on"
try qos run $e -f "$tmp/one.yaml" --epochs 3 -o "$tmp/x.svg"
is "$status $(grep -c "3 epochs of 100 ms" "$tmp/x.svg")" "0 1" "a picture of three epochs"
(
	trap '' XFSZ
	ulimit -f 4
	exec "$gpupart" qos run $e -f "$tmp/one.yaml" --epochs 12 --log "$tmp/short" >/dev/null 2>"$tmp/err"
)
is "$? $(grep -c "the log could not be written, and ends" "$tmp/err")" "0 1" "a log that is full is no reason to end: said once"
try qos replay "$tmp/short"
is "$status $(echo "$err" | grep -c "is cut")" "0 1" "and what is in it replays"
[ "$(tail -n 1 "$tmp/out")" = "replayed: $(wc -l <"$tmp/short") decisions, all of them the same" ]
ok $? "the line that is cut is not counted: $(tail -n 1 "$tmp/out")"
rm "$go"
until_true has_rows "$name-a" 0
tenants "a: { floor: 3, program: [ true ] }"
try qos run $e -f "$tmp/t.yaml" --dry-run -o "$tmp/dry.svg"
is "$status $(grep -c "0 epochs" "$tmp/dry.svg")" "0 1" "--dry-run -o FILE.svg"

tap_done
