#!/bin/sh
# SPDX-License-Identifier: MIT
# gpupart bench peers on the simulated GPU, with programs that do not use a GPU: each way is started
# correctly, its lines are counted, programs that end or print nothing are named, nothing remains.
. "$(dirname "$0")/tap.subr"
mkdir "$tmp/x"
TMPDIR=$tmp/x
export TMPDIR
cat >"$tmp/a" <<'E2'
#!/bin/sh
env | grep '^GPUPART_SET=\|^GPUPART_DISABLE=\|^CUDA_MPS_ACTIVE' | sort | paste -sd' ' >>"$LOG.${0##*/}"
while :; do echo "${MS-2.5}"; echo "no number"; sleep 0.05; done
E2
chmod +x "$tmp/a"
cp "$tmp/a" "$tmp/b"
LOG=$tmp/log
export LOG
peers() { try bench peers -i sample:h200 --a "$tmp/a" --b "MS=7 $tmp/b" --seconds 1 --rounds 2 "$@"; }
peers --only alone,slices,mps,mps-percent,packed,overlap -o "$tmp/results"
is "$status" 0 "it runs"
has "$out" "(simulated): times mean nothing" "it says simulated"
ask() { python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$@"; }
rows='{r[0]: r[1:] for r in d["tables"][0]["rows"]}'
times='{r[0]: r[1:] for r in d["tables"][1]["rows"]}'
names='A alone,B alone,MPS,MPS 30% / 70%,MPS 50% / 50%,MPS 70% / 30%,overlap 58 / 66,overlap 62 / 66,overlap 66 / 62,overlap 66 / 64,overlap 66 / 66,packed 16 / 50,packed 20 / 46,packed 24 / 42,packed 33 / 33,packed 4 / 62,packed 45 / 21,time slices'
if python3 -c '' 2>/dev/null; then
	is "$(ask "$tmp/results/peers.json" "','.join(sorted($rows))")" "$names" "all ways"
	is "$(ask "$tmp/results/peers.json" "[k for k, r in $rows.items() if k != 'B alone' and not (4 < r[0] < 25 and $times[k][0] == $times[k][3] == $times[k][7] == 2.5)]")" "[]" \
		"A's units a second and latencies"
	is "$(ask "$tmp/results/peers.json" "'B alone' in $times")" False "B alone has no latency of A"
	is "$(ask "$tmp/results/peers.json" "[k for k, r in $rows.items() if k != 'A alone' and not 4 < r[4] < 25]")" "[]" "B's units"
	is "$(ask "$tmp/results/peers.json" "$rows['A alone'][4]")" 0.0 "B does not run while A is alone"
	is "$(ask "$tmp/results/peers.json" "[c['result'] for c in d['checks']], len(d['tables'])")" "([], 2)" "so few seconds are not judged"
	is "$(ask "$tmp/results/peers.json" "sorted(p[2] for s in d['charts'][0]['series'] if s['label'] in ('overlap', 'packed') for p in s['points'])")" \
		"['16', '20', '24', '33', '4', '45', '58/66', '62/66', '66/62', '66/64', '66/66']" "in the picture, sets that overlap have both numbers"
	has "$out" "packed 16 / 50 " "the table is printed"
	is "$(ask "$tmp/results/peers.json" "[m for m in d['meaning'] if 'Not compared' in m]")" \
		"['(simulated) Not compared: overlap 66 / 66, which shows what gpupart itself costs.']" "plain MPS is no way of gpupart"
else
	skip "peers.json: no python3"
fi
is "$(grep -c . "$tmp/log.a") $(grep -c '^$' "$tmp/log.a")" "30 4" "A was started twice a way; alone and in time slices with nothing"
is "$(grep 'GPUPART_DISABLE' "$tmp/log.a" | grep -c 'GPUPART_SET=0-65')" "8" "under MPS gpupart only starts the daemon"
is "$(grep -v DISABLE "$tmp/log.a" | grep -c 'GPUPART_SET=0-65') $(grep -v DISABLE "$tmp/log.b" | grep -c 'GPUPART_SET=0-65')" \
	"6 6" "sets that overlap: at least one program has all TPCs"
is "$(grep 'GPUPART_DISABLE=1' "$tmp/log.a" | sed 's/ GPUPART_SET.*//' | sort | uniq -c | xargs)" \
	"2 CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=30 GPUPART_DISABLE=1 2 CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=50 GPUPART_DISABLE=1 2 CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=70 GPUPART_DISABLE=1 2 GPUPART_DISABLE=1" \
	"and is off in the programs"
is "$(grep -c '^gpupart bench: peers (simulated): packed 33 / 33: A [0-9.]* a second, p99 2.5[0]* ms; B [0-9.]* a second$' "$tmp/err")" \
	2 "the figures of each round are printed at once"
try bench peers -i sample:h200 --a "$tmp/a" --b "$tmp/b" --seconds 1 --rounds 1 --only slices
is "$(awk '$1 == "time" && $2 == "slices" && NF == 10 { print $6, $NF }' "$tmp/out")" "- -" "without solo speeds there is no part of them"
peers --only balanced --rounds 1
is "$(grep -c ', way [0-9]* of' "$tmp/err") $(sed -n 's/.* way [0-9]* of [0-9]*: //p' "$tmp/err" | sort -u | grep -c .)" \
	"4 4" "a set that is the nearest to two sizes is measured once"
grep -q '>simulated</text>' "$tmp/results/peers.svg"
ok $? "a picture, which says simulated"

try bench peers -i sample:h200 --a "$tmp/a" --b 'echo it is broken >&2; exit 3' --seconds 1 --rounds 1 --only slices,mps
is "$status" 1 "a program that ends"
has "$err" "time slices is not measured: B ended: it is broken" "is named, with its last line"
has "$out" "nothing could be measured: B ended: it is broken" "and nothing is left to tell"

try bench peers -i sample:h200 --a "$tmp/a" --b 'exit 3' --seconds 1 --rounds 1 --only mps
has "$err" "MPS is not measured: B ended: without a message" "a remark of gpupart run is no reason"
try bench peers -i sample:h200 --a "$tmp/a" --b 'echo it is broken >&2; kill -USR1 $$' --seconds 1 --rounds 1 --only mps
has "$err" "MPS is not measured: B ended: it is broken" "the last line of the program is"
try bench peers -i sample:h200 --a "$tmp/a" --b "exec $gpupart run -i sample:h200 -t 999 -- true" --seconds 1 --rounds 1 --only slices
has "$err" "time slices is not measured: B ended: gpupart run: -t 999" "if gpupart run fails, its message is"
try bench peers -i sample:h200 --a "$tmp/a" --b "[ -z \"\$GPUPART_DISABLE\" ] || { echo it needs gpupart >&2; exit 3; }; $tmp/b" \
	--seconds 1 --rounds 1 --only slices,mps -o "$tmp/partly"
has "$(tr -s ' \n' '  ' <"$tmp/out")" "(simulated) Not measured: MPS: B ended: it needs gpupart." "a way that is not measured is named on stdout"
has "$(cat "$tmp/partly/peers.md")" "Not measured: MPS: B ended: it needs gpupart." "and in the Markdown"

cp "$tmp/a" "$tmp/stays"
sed -i "2i trap '' TERM" "$tmp/stays"
try bench peers -i sample:h200 --a "MS='1e300\\n2.5' $tmp/a" --b "$tmp/stays; :" --seconds 1 --rounds 1 --only slices
ok "$(pgrep -fc "^/bin/sh $tmp/stays\$")" "a grandchild that ignores SIGTERM does not run beside the next way"
is "$(awk '$1 == "time" && $2 == "slices" && NF == 13 { print $3, $6 }' "$tmp/out")" "2.500 2.500" \
	"a number that is too large is left out, and its way is named"
cat >"$tmp/numbers" <<'E2'
#!/bin/sh
for value; do echo "$value"; done
while :; do for value; do echo "$value"; done; echo 5; sleep 0.05; done
E2
chmod +x "$tmp/numbers"
for bad in 0 -0 0.0 -1.5 nan -nan inf -inf 1e300 1e999 1e-60 NaN infinity; do
	try bench peers -i sample:h200 --a "$tmp/numbers $bad" --b "$tmp/numbers $bad $bad" --seconds 1 --rounds 1 --only slices
	is "$status $(awk '$1 == "time" && $2 == "slices" { print NF == 10 ? ($3 < 25) " " ($7 < 25) : $3 " " $6 }' "$tmp/out" | xargs)" "0 1 1 5.000 5.000" \
		"a line '$bad' is no unit of work of A and of B"
	for n in A B; do
		is "$(grep -cF "peers: time slices: $n printed '$bad', which is not a positive time in ms: such lines are ignored" "$tmp/err")" 1 \
			"and $n's is named once"
	done
done
try bench peers -i sample:h200 --a "$tmp/numbers 2,5 no" --b "$tmp/b" --seconds 1 --rounds 1 --only slices
is "$(grep -c ignored "$tmp/err")" 0 "lines that are no numbers may be anything"
try bench peers -i sample:h200 --a "$tmp/a" --b "$tmp/b" --both 'for f; do :; done; echo 1 >"$f"; sleep 9; :' --seconds 1 --rounds 1 --only slices,nosuch
is "$status" 2 "a way that there is not"
has "$err" "--only slices,nosuch: 'nosuch' is not one of alone,slices" "is named"
for bad in "--seconds 0" "--rounds x" "--a x"; do
	# shellcheck disable=SC2086 # two words
	try bench peers -i sample:h200 $bad
	is "$status" 2 "peers $bad: refused"
done
try bench peers -i sample:h200 --a "$tmp/a" --b "$tmp/b" --goal 'latency: 8ms' --seconds 1 --rounds 1 --only qos,lending -o "$tmp/lending"
is "$status" 0 "qos, and qos with lending"
if python3 -c '' 2>/dev/null; then
	is "$(ask "$tmp/lending/peers.json" "sorted($rows)")" "['lending', 'qos']" "are both measured"
fi
try bench peers -i sample:h200 --a "$tmp/a" --b "$tmp/b" --goal 'rate: 8' --seconds 1 --rounds 1 --only lending
is "$status" 2 "without a latency goal nothing can be lent"
has "$err" "lending needs a latency goal, and --goal 'rate: 8' is not one" "and that is the reason"
for bad in nan '' 'latency: 0' 'rate: -1' 'bogus: 3' 'latency: 8ms }, x: {' 'latency: 8ms # }' 'alpha: 0.5'; do
	: >"$tmp/log.a"
	try bench peers -i sample:h200 --a "$tmp/a" --b "$tmp/b" --goal "$bad" --seconds 1 --rounds 1 --only slices,qos
	is "$status $(grep -c . "$tmp/log.a")" "2 0" "--goal '$bad' is refused before anything is measured"
	has "$err" "--goal '$bad'" "and named"
done
while read -r only wanted; do
	try bench peers -i sample:h200 --a "$tmp/a" --b "$tmp/b" --seconds 1 --rounds 1 --only "$only"
	is "$status" 2 "--only $only without the option that it needs"
	has "$err" "--only $only: $wanted" "which is named"
done <<'E2'
qos qos needs --goal GOAL
alone,lending lending needs --goal GOAL
priority,green priority needs --both PROGRAM
alone,green green needs --both PROGRAM
E2

# A program that ends does not end qos run.
for n in a b; do
	other=$(echo $n | tr ab ba)
	try bench peers -i sample:h200 "--$n" 'sleep 1; echo broken >&2; exit 3' "--$other" "$tmp/$other" --goal 'latency: 8ms' \
		--seconds 1 --rounds 1 --only qos
	is "$status" 1 "qos: program $n ends"
	has "$err" "qos is not measured: $(echo $n | tr ab AB) ended: broken" "and is named at once, with its last line"
done
"$gpupart" qos run -i sample:h200 --tenant other:latency=1ms -- sleep 100 >"$tmp/none" 2>&1 &
other=$!
until_true pgrep -P "$other" sleep >"$tmp/none"
try bench peers -i sample:h200 --a "$tmp/a" --b "$tmp/b" --goal 'latency: 8ms' --seconds 1 --rounds 1 --only qos
has "$err" "qos is not measured: 'gpupart qos run' ended: gpupart qos" "qos run ends: so does the way, for the reason of qos run"
# Its program would run on, and the next qos run would adopt it.
kill "$(pgrep -xP "$other" sleep)" "$other" && wait "$other"
try bench isolation --seconds 3
has "$status $err" "2 gpupart bench: --a, --b" "options of peers without peers"

: >"$tmp/log.b"
(
	trap '' HUP
	exec "$gpupart" bench peers -i sample:h200 --a "$tmp/a" --b "$tmp/b" --only packed --seconds 60
) >"$tmp/out" 2>&1 &
pid=$!
until_true test -s "$tmp/log.b"
part=$(pgrep -xP $pid gpupart)
ok $((1 - (0x$(sed -n 's/^SigIgn:.*\(.\)$/\1/p' "/proc/$part/status") & 1))) "under nohup SIGHUP stays ignored"
kill -TERM $pid
wait $pid
none_left() { ! pgrep -f "^/bin/sh $tmp/[ab]\$" >/dev/null; }
until_true none_left
ok $? "whoever ends it ends the programs"
left() { ! ls -d "$tmp"/x/gpupart-peers-* >/dev/null 2>&1; }
until_true left
ok $? "and nothing is left in TMPDIR"

# Two programs that print millions of lines in a second.
timeout 40 "$gpupart" bench peers -i sample:h200 --a 'yes 1' --b 'yes 2' --seconds 2 --rounds 1 --only slices >"$tmp/out" 2>&1
is "$? $(awk '$1 == "time" && $2 == "slices" { print NF == 10 ? ($3 > 2000) " " ($7 > 2000) : $3 " " $6 }' "$tmp/out" | xargs)" "0 1 1 1.000 1.000" \
	"fast programs: all lines are counted, and the figures are computed at once"
"$gpupart" bench peers -i sample:h200 --a 'yes 1' --b 'yes 2' --seconds 1 --rounds 60 --only slices >"$tmp/out" 2>&1 &
pid=$!
sleep 3
part=$(pgrep -xP $pid gpupart)
kill -TERM $pid
wait $pid
gone() { ! grep -qs '^State:.[^Z]' "/proc/$part/status" && left; }
for _ in $(seq 40); do
	gone && break
	sleep 0.05
done
gone
ok $? "and whoever ends it ends it at once"

"$gpupart" bench peers -i sample:h200 --a ": >$tmp/began; sleep 100" --b "sleep 100" --only slices >"$tmp/out" 2>&1 &
pid=$!
until_true test -e "$tmp/began"
kill -TERM "$(pgrep -xP $pid gpupart)"
wait $pid
is "$(grep -c 'is not measured' "$tmp/out") $(grep -c 'stopped by a signal' "$tmp/out")" "0 1" \
	"stopped before the programs print times: this is no fault of a program"

# setsid() takes a second, so the signal arrives while the first program is not yet in its session.
cat >"$tmp/slow.c" <<'E2'
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <unistd.h>
pid_t setsid(void)
{
	sleep(1);
	return syscall(SYS_setsid);
}
E2
if emulated "cannot preload what the native compiler builds"; then
	:
elif ! ${CC:-cc} -shared -fPIC -o "$tmp/slow.so" "$tmp/slow.c" 2>"$tmp/err"; then
	skip "a signal just after the fork: no C compiler"
else
	LD_PRELOAD=$tmp/slow.so "$gpupart" bench peers -i sample:h200 --a "$tmp/a" --b "$tmp/b" --only slices >"$tmp/out" 2>&1 &
	pid=$!
	until_true grep -q 'round 1 of' "$tmp/out"
	part=$(pgrep -xP $pid gpupart)
	kill -TERM "$part"
	all_gone() { ! grep -qs '^State:.[^Z]' "/proc/$part/status" && left && none_left; }
	for _ in $(seq 200); do
		all_gone && break
		sleep 0.05
	done
	all_gone
	gone=$?
	ok $gone "a signal just after the fork ends the command and its programs"
	[ $gone -eq 0 ] || pgrep -f "^/bin/sh $tmp/[ab]\$" | xargs kill -KILL "$part"
	wait $pid
	has "$(cat "$tmp/out")" "stopped by a signal" "which says so"
fi
tap_done
