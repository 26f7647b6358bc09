#!/bin/sh
# SPDX-License-Identifier: MIT
# gpupart set --wait on the simulated GPU: when the launches from before a change of the set have
# ended, and when that is unknown.
. "$(dirname "$0")/tap.subr"
. "$(dirname "$0")/running.subr"
GPUPART_SIM_FAULTS=host-clock,host-thread
export GPUPART_SIM_FAULTS
unset GPUPART_JOB
prog=$BUILD/tests/gpu-stat_prog
sim="-i tests/data/gh100-h200-b/capture.txt -t 0-65"
if ! python3 -c '' 2>/dev/null; then
	skip "no python3"
	tap_done
fi
if emulated "has no membarrier() of other processes: set --wait"; then
	tap_done
fi
name=drained-$$

json() {
	try set "$@" --json
	printf '%s' "$out" >"$tmp/json"
}

# ------------------------------------------------------ kernels of 1 ms in full queues
begin "$prog" threads 1000000
stat_until 'p["outstanding"] > 100' -p "$pid" -d 0.1
try set "$name" -t 0-7 --wait=60s
is "$status" 0 "a busy program: it is waited for"
has "$out" "drained after " "which took a while"
is "$(echo "$out" | grep -c "new set: 0-7")" 2 "beside what has changed"
ms=$(echo "$out" | sed -n 's/^drained after \([0-9]*\)\..* ms: .*/\1/p')
[ "${ms:-0}" -ge 50 ]
ok $? "no less than 100 kernels on two streams take: $ms ms"
json -p $pid -t 0-15 --wait
is "$status $(ask '[w["seconds"] > 0.05, [[x["pid"], x["drained"], x["why"]] for x in w["processes"]], len(d["changes"])]')" \
	"0 [True, [[$pid, 'yes', None]], 1]" "-p, without a limit of time, with --json"
stop

# ---------------------------------------------------------- kernels that run for a minute
begin "$prog" fast_then_long 60000
stat_until 'p["launches"] == 0 and p["outstanding"] > 0' -p "$pid" -d 0.1
try set "$name" -t 0-7 --wait=50ms
is "$status" 1 "a kernel runs on: it fails"
has "$err" "process $pid: earlier launches have not ended after " "and says so"
is "$(echo "$out" | grep -c "new set: 0-7") $(echo "$out" | grep -c "drained after")" "2 0" \
	"the set has changed all the same"
json "$name" -t 0-7 --wait=50ms
is "$status $(ask '[[x["drained"] for x in w["processes"]], w["seconds"] >= 0.05]')" "1 [['no'], True]" "the same in JSON"
if [ -c /dev/full ]; then
	"$gpupart" set "$name" -t 0-15 --wait=50ms >/dev/full 2>"$tmp/err"
	is "$?" 1 "a full disk"
	has "$(cat "$tmp/err")" "cannot write to standard output: No space left on device" "is named, though it was full before the wait"
else
	skip "no /dev/full"
fi
stop

# ------------------------------------------------------------------- graphs
begin "$prog" graph 1000000
stat_until 'p["launches_ended"] > 0' -p "$pid" -d 0.1
try set "$name" -t 0-7 --wait=60s
is "$status" 0 "a program that launches a graph all the time"
has "$out" "drained after " "is drained"
stop

# ------------------------------------------------------------------- unknown
GPUPART_RECORDS=0
export GPUPART_RECORDS
begin "$prog" threads 1000000
unset GPUPART_RECORDS
try set -p $pid -t 0-7 --wait
is "$status" 1 "a program without records: unknown, at once"
has "$err" "cannot find out when earlier launches have ended: process $pid: it has no records of launches" "and why"
json "$name" -t 0-7 --wait
is "$status $(ask '[[x["drained"], "no records" in x["why"]] for x in w["processes"]]')" \
	"1 [['unknown', True]]" "the same in JSON"

# ------------------------------------------------------------------- other users
stop
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	chmod 711 "$tmp"
	mkdir "$tmp/theirs" && chmod 777 "$tmp/theirs"
	cp "$prog" "$tmp/theirs/prog"
	# another: waits until the queues of user 4720's program are full: $other
	another() {
		for _ in $(seq 500); do
			other=$("$gpupart" ps --json | python3 -c "
import json, sys
print(*[p['pid'] for p in json.load(sys.stdin)['processes'] if p['uid'] == 4720])")
			[ -n "$other" ] && pid=$other && break
			sleep 0.02
		done
		stat_until 'p["outstanding"] > 100' -p "$pid" -d 0.1
	}
	begin "$prog" threads 1000000
	mine=$pid
	XDG_CACHE_HOME=$tmp/theirs setpriv --reuid=4720 --regid=4720 --clear-groups \
		"$gpupart" run --exec $sim --name theirs -- "$tmp/theirs/prog" threads 1000000 >/dev/null 2>&1 &
	another
	kill -STOP "$other"
	# Its page has the id, after the first 96 bytes of the header.
	tr '\0' '\n' <"/proc/$mine/environ" | sed -n 's/^GPUPART_JOB=//p' | tr '\n' '\0' |
		dd of="$(echo /dev/shm/gpupart-4720/"$other".*[!s])" bs=1 seek=96 conv=notrunc 2>/dev/null
	try set "$name" -t 0-7 --wait=20s
	is "$status ${other:+there}" "0 there" "another user's process says that it is of root's job"
	has "$err" "process $other of user 4720 claims to belong to this job, but the job did not start" \
		"it is not waited for, which is reported"
	stop
	pid=$mine
	stop
	XDG_CACHE_HOME=$tmp/theirs "$gpupart" run --exec $sim --name "$name" -- sh -c \
		'setpriv --reuid=4720 --regid=4720 --clear-groups "$0" threads 1000000; exit $?' \
		"$tmp/theirs/prog" >/dev/null 2>&1 &
	another
	try set "$name" -t 0-7 --wait=50ms
	is "$status" 1 "a process of the job's own that is another user now"
	has "$err" "process $other: earlier launches have not ended after " "is waited for"
	stop
	rm -rf /dev/shm/gpupart-4720
else
	skip "other users: only as root"
fi

# ------------------------------------------------------------------- invalid arguments
refused 2 "--wait: needs a SET" set "$name" --wait
refused 2 "--wait=5: must be a time above 0" set "$name" -t 0-7 --wait=5
refused 2 "--wait=0s: must be a time above 0" set "$name" -t 0-7 --wait=0s
refused 2 "unexpected argument '5s'" set "$name" -t 0-7 --wait 5s
tap_done
