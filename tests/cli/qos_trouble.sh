#!/bin/sh
# SPDX-License-Identifier: MIT
# gpupart qos run and calibrate with problems: files that another controller writes, programs that
# fork, exec, end early or ignore signals, two tenants of one program, huge numbers.
. "$(dirname "$0")/tap.subr"
. tests/cli/qos.subr

e="-i tests/data/gh100-h200-e/capture.txt"
name=trouble$$

# ------------------------------------------------------------------- output files
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
# Programs' output does not appear between the lines of JSON.
says() { tenants "$1-$name: { program: [sh, -c, 'echo said; exec \"$tmp/work\" \"$go\"'] }"; }
says one
try qos run $e -f "$tmp/t.yaml" --epochs 3 --json
is "$status $(jq -r .event "$tmp/out" 2>&1 | sort -u | tr '\n' ' ') $(grep -c said "$tmp/err")" "0 begin epoch  1" \
	"--json: what a program writes is on stderr"
says two
try qos run $e -f "$tmp/t.yaml" --epochs 3 --json -o "$tmp/lines"
is "$status $out" "0 said" "--json -o FILE: on stdout"
says three
try qos calibrate $e -f "$tmp/t.yaml" --seconds 1 --json
is "$status $(jq -r .command "$tmp/out" 2>&1 | tail -n 1) $(grep -c said "$tmp/err")" "0 qos calibrate 1" \
	"calibrate --json: as run"
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
is "$? $(grep -c "cannot write the log, which ends here" "$tmp/err")" "0 1" "a log that is full is no reason to end: said once"
try qos replay "$tmp/short"
# The file may become full exactly at the end of a line.
[ -z "$(tail -c 1 "$tmp/short")" ]
cut=$?
is "$status $(echo "$err" | grep -c "ignoring an incomplete")" "0 $cut" "and what is in it replays"
[ "$(tail -n 1 "$tmp/out")" = "replayed: $(wc -l <"$tmp/short") decisions, all the same as in the log" ]
ok $? "the line that is cut is not counted: $(tail -n 1 "$tmp/out")"
rm "$go"
until_true has_rows "$name-a" 0
tenants "$name-d: { floor: 3, program: [ true ] }"
try qos run $e -f "$tmp/t.yaml" --dry-run -o "$tmp/dry.svg"
is "$status $(grep -c "0 epochs" "$tmp/dry.svg")" "0 1" "--dry-run -o FILE.svg"

# --------------------------------------------------------------------- slow readers
touch "$go"
cp "$tmp/one.yaml" "$tmp/again.yaml"
try qos run $e -f "$tmp/again.yaml" --epochs 1 --log "$tmp/again.yaml"
is "$status $(echo "$err" | grep -c -- "--log $tmp/again.yaml: this file is also the input")" "125 1" "--log on the file of tenants"
cmp -s "$tmp/one.yaml" "$tmp/again.yaml"
ok $? "which stays as it is"
try qos run $e -f "$tmp/one.yaml" --epochs 1 --log "$tmp/both" -o "$tmp/both"
is "$status $(echo "$err" | grep -c "are the same file") $(ls "$tmp/both" 2>/dev/null)" "125 1 " "--log and -o on one file"
echo old >"$tmp/old.svg"
echo old >"$tmp/old.log"
tenants "$name-n: { program: [ $tmp/not-there ] }"
try qos run $e -f "$tmp/t.yaml" -o "$tmp/old.svg" --log "$tmp/old.log"
is "$status $(cat "$tmp/old.svg" "$tmp/old.log" | tr '\n' ' ')" "127 old old " "nothing started: files are as they were"
try qos run $e -f "$tmp/t.yaml" -o "$tmp/new.svg" --log "$tmp/new.log"
is "$status $(ls "$tmp"/new.* 2>/dev/null)" "127 " "and none are made"
mkfifo "$tmp/fifo"
try qos run $e -f "$tmp/one.yaml" --log "$tmp/fifo"
is "$status $(echo "$err" | grep -c -- "--log $tmp/fifo: is a pipe without a reader")" "125 1" "--log FIFO without a reader: refused"
tenants "$name-a: { goal: { alpha: 0.5, alone: 10000 }, program: [ $tmp/work, $go ] }"
sed -i 's/100ms/10ms/' "$tmp/t.yaml"
# shellcheck disable=SC2217 # it reads nothing on purpose
sleep 60 <"$tmp/fifo" &
reader=$!
"$gpupart" qos run $e -f "$tmp/t.yaml" --json --log "$tmp/stalled" >"$tmp/fifo" 2>"$tmp/err" &
pid=$!
# A pipe holds about fifty lines.
until_true has_lines "$tmp/stalled" 150
ok $? "a reader that reads nothing does not hold it up"
kill $pid
wait $pid
is "$? $(grep -c "writing to standard output: the reader is too slow or has stopped" "$tmp/err")" "1 1" "neither is its end, which is reported"
kill $reader
try qos replay "$tmp/stalled"
is "$status" 0 "and its log replays"
"$gpupart" qos run $e -f "$tmp/t.yaml" --epochs 3 >/dev/full 2>"$tmp/err"
is "$? $(grep -c "writing to standard output: No space left" "$tmp/err")" "1 1" "decisions that cannot be written: an error"
"$gpupart" qos run $e -f "$tmp/t.yaml" --epochs 3 -o "$tmp/whole.svg" >/dev/full 2>/dev/null
is "$? $(grep -c "3 epochs of 10 ms" "$tmp/whole.svg")" "1 1" "the picture has nothing to do with it"
"$gpupart" qos run $e -f "$tmp/t.yaml" --epochs 3 --log "$tmp/mixed" >"$tmp/mixed" 2>"$tmp/err"
is "$? $(grep -c -- "--log $tmp/mixed: this is the same file as standard output" "$tmp/err")" "125 1" "a log that is standard output: refused"
"$gpupart" qos run $e -f "$tmp/t.yaml" --log "$tmp/used" >/dev/null 2>&1 &
pid=$!
until_true has_lines "$tmp/used" 5
try qos run $e -f "$tmp/one.yaml" --dry-run --epochs 1 --log "$tmp/used"
is "$status $(echo "$err" | grep -c "another 'gpupart qos' is writing to it") $(head -n 1 "$tmp/used" | jq .epoch_ns)" "125 1 10000000" \
	"a dry run leaves the log of one that runs as it is"
kill $pid
wait $pid
# read_some NONBLOCK: the lines of a reader that begins late and reads slowly.
read_some() {
	python3 - "$1" "$gpupart" qos run $e -f "$tmp/t.yaml" --epochs 120 --json --log "$tmp/read.log" <<'END'
import os, subprocess, sys, time
r, w = os.pipe()
os.set_blocking(w, sys.argv[1] == "no")
p = subprocess.Popen(sys.argv[2:], stdout=w)
os.close(w)
time.sleep(1)
got = b""
while more := os.read(r, 2048):
    got += more
    time.sleep(0.04)
sys.stdout.buffer.write(got)
sys.exit(p.wait())
END
}
read_some no >"$tmp/got" 2>/dev/null
is $? 0 "one who reads slowly gets all of it"
cmp -s "$tmp/got" "$tmp/read.log"
ok $? "though it takes longer than the run"
read_some yes >"$tmp/got" 2>/dev/null
is "$? $(cmp "$tmp/got" "$tmp/read.log" 2>&1)" "0 " "and so does one whose pipe does not block"
"$gpupart" qos run $e -f "$tmp/t.yaml" --epochs 3 --log /dev/full >/dev/null 2>"$tmp/err"
is "$? $(grep -c "No space left" "$tmp/err")" "0 1" "the same for a log"
rm "$go"
until_true has_rows "$name-a" 0
touch "$go"
"$gpupart" run --exec $e -t 0-65 --name "$name-all" -- "$tmp/work" "$go" 2>/dev/null &
until_true has_rows "$name-all" 1
try qos run $e --tenant "$name-s:rate=100,floor=8" --tenant "$name-all:job=$name-all" --epoch 50ms --epochs 4 --json -- "$tmp/work" "$go"
is "$status $(tail -n 1 "$tmp/out" | jq -c '.decision.tenants[0] | .nr_tpcs >= 8 and .set != ""')" "0 true" \
	"one begins beside one that has all TPCs"
"$gpupart" qos run $e --tenant "$name-b" --epoch 50ms --epochs 1 -- sh -c 'printf %s "$0" >"$1"' "$(printf 'f\351')" "$tmp/bytes" >/dev/null 2>&1
is "$(until_true test -s "$tmp/bytes"; od -An -tx1 "$tmp/bytes" | tr -d ' ')" 66e9 "a program's words are bytes"
refused 125 "is not UTF-8" qos run $e --tenant "$(printf 'f\351')" true
rm "$go"
until_true has_rows "$name-all" 0
tenants "$name-c: { program: [ sh, -c, 'exit 7' ] }"
(
	trap '' CHLD
	exec timeout 60 "$gpupart" qos run $e -f "$tmp/t.yaml" >/dev/null 2>&1
)
is $? 7 "started with SIGCHLD ignored, it sees its programs end"

# ---------------------------------------------------- programs with several processes
touch "$go"
# The second takes a while to start: by then the first process of the other has ended.
tenants "$name-f: { program: [ sh, -c, '$tmp/work $go & $tmp/work $go & exit 0' ] }" \
	"$name-g: { goal: { rate: 1000 }, program: [ $tmp/work, $go ] }"
"$gpupart" qos run $e -f "$tmp/t.yaml" --log "$tmp/fork.log" >/dev/null 2>&1 &
pid=$!
until_true has_lines "$tmp/fork.log" 9
is "$(tail -n 1 "$tmp/fork.log" | jq -r '.decision.tenants[0].state') $(rows "$name-f")" "good 2" \
	"what an ended program has started is the tenant"
rm "$go"
wait $pid
is "$? $(tail -n 1 "$tmp/fork.log" | jq -c '[.decision.tenants[].state]')" '0 ["gone","gone"]' "until it ends as well"
cat >"$tmp/again.py" <<'END'
import ctypes, os, sys, time
cuda = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
cuda.cuInit(0)
cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0)
part = ctypes.CDLL("libgpupart.so.0")
part.gpupart_progress_add.argtypes = [ctypes.c_uint64]
while not os.path.exists(sys.argv[1] + sys.argv[2]):
    part.gpupart_progress_add(100)
    time.sleep(0.01)
if sys.argv[2] == "1":
    os.execvp("python3", ["python3", sys.argv[0], sys.argv[1], "2"])
END
tenants "$name-e: { goal: { rate: 1000 }, program: [ python3, $tmp/again.py, $tmp/now, '1' ] }"
"$gpupart" qos run $e -f "$tmp/t.yaml" --log "$tmp/exec.log" >/dev/null 2>&1 &
pid=$!
# heard FILE: work was done in its last epoch.
heard() {
	[ "$(tail -n 1 "$1" | jq '.measured[0].work_milli > 0')" = true ]
}
until_true heard "$tmp/exec.log"
touch "$tmp/now1"
deaf() {
	! heard "$1"
}
until_true deaf "$tmp/exec.log"
until_true heard "$tmp/exec.log"
ok $? "one that becomes another program by exec is heard again"
touch "$tmp/now2"
wait $pid
is "$?" 0 "and its end is seen"

# ------------------------------------------------------- tenants that share a program
touch "$go"
"$gpupart" run --exec $e -t 0-9 --name "$name-j" -- "$tmp/work" "$go" 2>/dev/null &
pid=$!
# Its process is listed before it has its set.
has_its_set() { [ "$(set_of "$name-j")" = 0-9 ]; }
until_true has_its_set
tenants "x: { goal: { rate: 5 }, job: $name-j }" "y: { job: $name-j }"
refused 125 "t.yaml:4: y: tenant x already has this program" qos run $e -f "$tmp/t.yaml"
tenants "x: { goal: { rate: 5 }, pid: $pid }" "y: { pid: $pid }"
refused 125 "t.yaml:4: y: tenant x already has this program" qos run $e -f "$tmp/t.yaml"
tenants "x: { goal: { rate: 5 }, pid: $pid }" "y: { job: $name-j }"
refused 125 "t.yaml:4: y: tenant x already has this program" qos run $e -f "$tmp/t.yaml"
is "$(set_of "$name-j")" 0-9 "and nothing was changed"
"$gpupart" run --exec $e -t 0-31 --name "$name-o" -- sh -c "'$gpupart' run $e -t 0-7 --name '$name-i' -- '$tmp/work' '$go'" 2>/dev/null &
until_true has_rows "$name-i" 1
tenants "o: { goal: { rate: 5 }, job: $name-o }" "i: { job: $name-i }"
refused 125 "t.yaml:4: i: tenant o already has this program" qos run $e -f "$tmp/t.yaml"
tenants "i: { job: $name-i }" "o: { goal: { rate: 5 }, job: $name-o }"
refused 125 "t.yaml:4: o: tenant i already has this program" qos run $e -f "$tmp/t.yaml"
tenants "i: { goal: { rate: 5 }, job: $name-i }"
refused 125 "i: the outer run '$name-o' limits this program to TPCs 0-31: use the outer run as the job" qos run $e -f "$tmp/t.yaml"
is "$(set_of "$name-i")" 0-7 "and its set is as before"
"$gpupart" run --exec $e -t 30-31 --name "$name-j" -- "$tmp/work" "$go" 2>/dev/null &
until_true has_rows "$name-j" 2
tenants "x: { goal: { rate: 5 }, job: $name-j }"
try qos run $e -f "$tmp/t.yaml" --epochs 1
is "$status $(echo "$err" | grep -c "several jobs are named '$name-j'")" "0 1" "two jobs of one name: said"
rm "$go"
wait

# --------------------------------------------------------------------------- calibrate
# said NAME UNITS [TIMES]: a program that writes lines with UNITS units, TIMES of them in one
# datagram, at most a hundred datagrams a second, while $go is there.
said() {
	cat <<END
$1:
    program:
      - python3
      - -c
      - |
        import os, socket, time
        s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        while os.path.exists("$go"):
            s.sendto(b"$1 units $2" * ${3:-1}, os.environ["GPUPART_QOS"])
            time.sleep(0.01)
END
}
# heard NR: NR epochs had work in them.
heard() {
	[ "$(jq -s '[.[] | .measured // [] | .[] | select(.work_milli > 0)] | length' "$tmp/out")" -ge "$1" ]
}
# Runs the tenants until NR epochs had work, because programs take a while to start.
try_heard() {
	touch "$go"
	timeout 120 "$gpupart" qos run $e -f "$tmp/t.yaml" --json >"$tmp/out" 2>"$tmp/err" </dev/null &
	until_true heard "$1"
	rm "$go"
	wait $!
	status=$?
	err=$(cat "$tmp/err")
}
# Ten lines are more than the number of units, so that an epoch may hear one message only.
tenants "$(said h '999999999999999\n' 10)"
try_heard 5
is "$status $(jq -s '[.[] | .measured // [] | .[].work_milli] | (min >= 0 and max == 9223372036854775807)' "$tmp/out")" "0 true" \
	"more units than there are numbers: as many as there are"
cp "$tmp/out" "$tmp/huge.log"
try qos replay "$tmp/huge.log"
is "$status" 0 "and the log replays"
tenants "$(said two '1\ntwo units 2\n')"
try_heard 8
# Of the next two a part may be in the work.
is "$status $(jq -s '[.[] | .measured // [] | .[] | [.work_milli, .reports // 0]] |
	(map(.[0]) | add) as $work | (map(.[1]) | add) as $nr |
	$nr > 20 and (map(.[1] % 2) | max == 0) and ($work - $nr * 1500 | fabs) < 3000' "$tmp/out")" \
	"0 true" "two lines at once: both count"
is "$(jq -s '[.[] | .measured // [] | .[].work_milli % 1000 != 0] | any' "$tmp/out")" true \
	"and a part of those that are under way"
tenants "$(said told '1\nabsent units 2\ntold latency soon\n')"
try_heard 25
is "$status $(echo "$err" | grep -c 'the socket: ignoring "absent units 2"')$(echo "$err" | grep -c 'the socket: ignoring')" "0 11" \
	"one message for a line without a tenant"
touch "$go"
tenants "$(said big 10000000000)"
# On a busy machine a program takes longer than a second to start.
for seconds in 1 5 25; do
	try qos calibrate $e -f "$tmp/t.yaml" --seconds $seconds --json
	jq -e '.tenants[0].alone_milli > 2e13' "$tmp/out" >"$tmp/heard" && break
done
is "$status $(jq '.tenants[0].alone_milli / 1e15 | . > 0.02 and . < 1.1' "$tmp/out")" "0 true" \
	"calibrate: 1e12 units a second: $(jq '.tenants[0].alone_milli' "$tmp/out") thousandths"
tenants "a: { program: [ sh, -c, 'exit 3' ] }"
try qos calibrate $e -f "$tmp/t.yaml" --seconds 1
is "$status $out" "1 a            ended with status 3 before it was measured" "calibrate: one that ends"
tenants "a: { program: [ sh, -c, 'echo on >$tmp/deaf; trap : TERM; while :; do sleep 7$$; done' ] }"
timeout 60 "$gpupart" qos calibrate $e -f "$tmp/t.yaml" --seconds 1 >"$tmp/out" 2>&1
is "$? $(grep -c "reported nothing" "$tmp/out") $(ps -eo args | grep -c "^sleep 7$$")" "1 1 0" \
	"calibrate: one that does not want to end, and what it has started"

tap_done
