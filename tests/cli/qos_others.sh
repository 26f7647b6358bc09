#!/bin/sh
# SPDX-License-Identifier: MIT
# gpupart qos run next to programs that are not tenants: their TPCs are excluded from the start and
# when programs start and end; a set that another program gives a tenant is replaced.
. "$(dirname "$0")/tap.subr"
. tests/cli/qos.subr

# A GPU of its own: another capture file makes another GPU, which no other test uses.
cp tests/data/gh100-h200-e/capture.txt "$tmp/board.txt"
e="-i $tmp/board.txt"
name=others$$
trap 'rm -f "$go" "$go".*; wait; rm -rf "$tmp"' EXIT
pid_of() {
	"$gpupart" ps | awk -v n="$1" '$2 == n { print $1 }'
}
two() {
	tenants "$name-a: { goal: { alpha: 0.5, alone: 10000 }, program: [ $tmp/work, $go ] }" \
		"$name-b: { program: [ $tmp/work, $go ] }"
}
# others LOG: the TPCs of others, from each line that has them.
others() {
	jq -s -c '[.[] | select(.others) | [.others[].set]]' "$1"
}
has_others() {
	[ "$(others "$1")" = "$2" ]
}
# kept LOG: no decision of an epoch gives a tenant TPCs of others.
kept() {
	jq -s 'def members: if . == "" then [] else split(",") | map(split("-") | map(tonumber) | if length == 2 then range(.[0]; .[1] + 1) else .[0] end) end;
		reduce .[] as $l ({ held: [], good: true, nr: 0 }; (if $l.others then .held = [$l.others[].set | members] else . end) |
		if $l.event == "swap" then . else .nr += 1 | .good = .good and
		((.held | flatten) as $h | [$l.decision.tenants[].set | members] | flatten | all(. as $t | $h | index($t) | not)) end) |
		.good and .nr > 1' "$1"
}

# ------------------------------------------------------------------------ from the begin
touch "$go" "$go.first"
two
"$gpupart" run --exec $e -t 10-20 --name "$name-works" -- "$tmp/work" "$go" 2>/dev/null &
"$gpupart" run --exec $e -t 30-31 --name "$name-sleeps" -- sh -c "while [ -e $go.first ]; do sleep 0.1; done" 2>/dev/null &
# In no job any more, and not using the GPU: only its environment has the set.
"$gpupart" run $e -t 40-42 --name "$name-env" -- \
	sh -c "env -u GPUPART_JOB sh -c 'while [ -e $go.first ]; do sleep 0.1; done; touch $go.gone' & exit 0" 2>/dev/null
until_true has_rows "$name-works" 1
try qos run $e -f "$tmp/t.yaml" --dry-run
is "$status $(grep -c "TPCs 10-20,30-31,40-42 are used by other programs" "$tmp/out")" "0 1" "a dry run reports the TPCs of others"
said=$(echo "$err" | grep "which tenants do not get:")
has "$said" "10-20 ($name-works, pid $(pid_of "$name-works"))" "in one line, with who has it"
has "$said" "30-31 ($name-sleeps, pid" "also what is not on the GPU"
has "$said" "40-42 ($name-env, pid" "and what only its environment names"
try qos run $e -f "$tmp/t.yaml" --epochs 5 --log "$tmp/begin.log"
is "$status $(others "$tmp/begin.log" | jq -c '.[0] | sort') $(kept "$tmp/begin.log")" '0 ["10-20","30-31","40-42"] true' \
	"no tenant gets them, nor the programs that it starts"
try qos replay "$tmp/begin.log" --json
is "$status $(jq -r .held "$tmp/out")" "0 10-20,30-31,40-42" "and the log replays"
sed '1s/"set":"10-20"/"set":"10-21"/' "$tmp/begin.log" >"$tmp/other.log"
refused 1 "other.log:1: the decision differs: decision." qos replay "$tmp/other.log"
sed '1s/"set":"10-20"/"set":"ten"/' "$tmp/begin.log" >"$tmp/other.log"
refused 2 "other.log:1: is not the first line of a log of 'gpupart qos': set is 'ten'" qos replay "$tmp/other.log"
sed '1s/"others":\[/"others":[5,/' "$tmp/begin.log" >"$tmp/other.log"
refused 2 "name is missing" qos replay "$tmp/other.log"
sed '1s/"others":\[[^]]*\]/"others":7/' "$tmp/begin.log" >"$tmp/other.log"
refused 2 "others is of the wrong type" qos replay "$tmp/other.log"
rm "$go" "$go.first"
until_true has_rows "$name-a" 0
until_true has_rows "$name-b" 0
until_true test -e "$go.gone"
wait

# ------------------------------------------------------------------- while it runs
touch "$go" "$go.late"
"$gpupart" qos run $e -f "$tmp/t.yaml" --log "$tmp/live.log" >"$tmp/live.out" 2>"$tmp/live.err" &
pid=$!
until_true has_lines "$tmp/live.log" 6
"$gpupart" run --exec $e -t 5-14,50 --name "$name-late" -- "$tmp/work" "$go.late" 2>/dev/null &
late=$!
until_true has_others "$tmp/live.log" '[["5-14,50"]]'
ok $? "one that comes is seen: $(others "$tmp/live.log")"
is "$(jq -s '[.[] | select(.others)][0] | [.decision.tenants[].state] | index("disturbed") != null' "$tmp/live.log")" true \
	"who had its TPCs: that epoch does not count"
nr=$(wc -l <"$tmp/live.log")
until_true has_lines "$tmp/live.log" $((nr + 5))
"$gpupart" ps --json | jq -e --arg n "$name-" '[.processes[] | select(.name | startswith($n)).set.list] | length == 3' >/dev/null
ok $? "all of them run"
rm "$go.late"
wait $late
until_true has_others "$tmp/live.log" '[["5-14,50"],[]]'
ok $? "one that goes as well: $(others "$tmp/live.log")"
is "$(kept "$tmp/live.log")" true "no tenant has its TPCs meanwhile"
has "$(cat "$tmp/live.out")" "TPCs 5-14,50 are free again" "with a message"
is "$(grep -c "do not get: 5-14,50 ($name-late, pid $late)" "$tmp/live.err") $(grep -c "do not get: none" "$tmp/live.err")" "1 1" \
	"with who it was, each once"

# ------------------------------------------------------------ a set from another program
# given NAME: what its last decision says is in force.
given() {
	a=$(tail -n 1 "$tmp/live.log" | jq -r --arg n "$1" '.decision.tenants[] | select(.name == $n).set')
	[ -n "$a" ] && [ "$(set_of "$1")" = "$a" ]
}
is_disturbed() {
	jq -s -e --arg n "$1" '[.[] | .measured // [] | .[] | select(.name == $n and .disturbed)] | length > 0' "$tmp/live.log" >/dev/null
}
# disturb NAME ARGS: changes its set; again if the controller was about to change it at that
# moment.
disturb() {
	who=$1
	shift
	for _ in $(seq 20); do
		"$gpupart" set "$@" >/dev/null 2>&1
		for _ in $(seq 25); do
			is_disturbed "$who" && return
			sleep 0.02
		done
	done
	return 1
}
disturb "$name-b" "$name-b" -t 60-63
ok $? "a job that another program sets: that epoch does not count"
until_true given "$name-b"
ok $? "and it is given its own set again: $(set_of "$name-b")"
disturb "$name-a" -p "$(pid_of "$name-a")" -t 3
ok $? "a process that another program sets, too"
until_true given "$name-a"
ok $? "has its own set again: $(set_of "$name-a")"
is "$(grep -c "$name-b: another program changed this tenant's set to 60-63" "$tmp/live.err") $(grep -c "$name-a: another program changed this tenant's set to 3:" "$tmp/live.err")" \
	"1 1" "with one message each"
is "$(jq -s '[.[] | .decision.tenants[] | select(.state == "disturbed") | .score_milli, .speed_milli] | unique == [0]' "$tmp/live.log")" true \
	"and nothing is learnt of it"
rm "$go"
wait $pid
is "$?" 0 "it ends with its tenants"
try qos replay "$tmp/live.log"
is "$status $(tail -n 1 "$tmp/out")" "0 replayed: $(wc -l <"$tmp/live.log") decisions, all the same as in the log" "the log replays"
sed 's/"disturbed":true/"disturbed":1/' "$tmp/live.log" >"$tmp/other.log"
refused 2 "disturbed is of the wrong type" qos replay "$tmp/other.log"
sed 's/,"disturbed":true//' "$tmp/live.log" >"$tmp/other.log"
refused 1 "the decision differs: decision." qos replay "$tmp/other.log"
touch "$go"
"$gpupart" qos run $e -f "$tmp/t.yaml" --epochs 12 --log "$tmp/quiet.log" >/dev/null 2>&1
is "$(grep -c disturbed "$tmp/quiet.log") $(grep -c '"others"' "$tmp/quiet.log")" "0 0" "without other programs there are no messages"
rm "$go"
until_true has_rows "$name-b" 0

# A process that has not used the GPU yet: its job record has its future set.
touch "$go"
tenants "$name-n: { program: [ sh, -c, 'while [ -e $go ]; do sleep 0.1; done' ] }"
"$gpupart" qos run $e -f "$tmp/t.yaml" --log "$tmp/note.log" >/dev/null 2>"$tmp/note.err" &
pid=$!
# Its share does not change then.
until_true has_lines "$tmp/note.log" 16
for _ in $(seq 20); do
	"$gpupart" set "$name-n" -t 3 >/dev/null 2>&1
	sleep 0.5
	! grep -q '"disturbed":true' "$tmp/note.log" || break
done
nr=$(wc -l <"$tmp/note.log")
until_true has_lines "$tmp/note.log" $((nr + 3))
is "$("$gpupart" set "$name-n" -t 3 | sed -n 's/.*current set: \([^ ]*\).*/\1/p') $(grep -c "another program changed this tenant's set to 3:" "$tmp/note.err")" \
	"$(sed -n "${nr}p" "$tmp/note.log" | jq -r '.decision.tenants[0].set') 1" "one that is not on the GPU yet: its job has its own set again"
rm "$go"
wait $pid

# ------------------------------------------------------------ programs that do not count
two
touch "$go"
"$gpupart" run --exec $e -t 0-65 --name "$name-all" -- "$tmp/work" "$go" 2>/dev/null &
until_true has_rows "$name-all" 1
try qos run $e -f "$tmp/t.yaml" --dry-run
is "$status $(echo "$err" | grep -c "$name-all (pid .*) runs on all TPCs") $(grep -c "used by other programs" "$tmp/out")" "0 1 0" \
	"one that runs everywhere holds nothing: said"
rm "$go"
until_true has_rows "$name-all" 0
touch "$go"
"$gpupart" run $e -t 0-40 --name "$name-around" -- "$gpupart" qos run $e -f "$tmp/t.yaml" --epochs 4 --log "$tmp/around.log" >/dev/null 2>"$tmp/err"
is "$? $(others "$tmp/around.log")" '0 [["41-65"]]' "inside a run: what is around it is no other, and it stays inside"
rm "$go"
until_true has_rows "$name-a" 0
until_true has_rows "$name-b" 0
touch "$go"
# One of two processes of a job, by its pid: the other one has the same set and is not a tenant.
"$gpupart" run --exec $e -t 3-9 --name "$name-pair" -- sh -c "$tmp/work $go & $tmp/work $go & wait" 2>/dev/null &
until_true has_rows "$name-pair" 2
tenants "x: { goal: { rate: 5 }, pid: $(pid_of "$name-pair" | head -n 1) }"
try qos run $e -f "$tmp/t.yaml" --epochs 2 --log "$tmp/pair.log"
is "$status $(others "$tmp/pair.log") $(kept "$tmp/pair.log")" '0 [["3-9"]] true' "a process of a tenant's job that is not the tenant is another"
tenants "x: { goal: { rate: 5 }, job: $name-pair }"
try qos run $e -f "$tmp/t.yaml" --epochs 2 --log "$tmp/job.log"
is "$status $(others "$tmp/job.log")" "0 []" "the whole job: there is no other"
rm "$go"
wait
touch "$go"
"$gpupart" run --exec $e -t 7 --name "$name-beside" -- "$tmp/work" "$go" 2>/dev/null &
until_true has_rows "$name-beside" 1
tenants "$name-c: { program: [ $tmp/work, $go ] }"
try qos calibrate $e -f "$tmp/t.yaml" --seconds 1
is "$status $(echo "$err" | grep -c "solo speeds may be too low: 7 ($name-beside")" "0 1" "calibrate says who runs beside"

# ------------------------------------------------------------- grants of other users
cat >"$tmp/give.c" <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/private.h"
int main(int argc, char **argv)
{
	struct gpupart_grant grant = { .uid = atoi(argv[1]), .nr_tpcs = 66 };
	struct gpupart *gp;

	if (argc != 5 || gpupart_open(&gp))
		return 1;
	snprintf(grant.id, sizeof(grant.id), "0-%s", argv[1]);
	strcpy(grant.name, "slurm7");
	strcpy(grant.pci, argv[2]);
	strcpy(grant.source, argv[3]);
	if (gpupart_tpcset_parse_list(gp, argv[4], &grant.set) || gpupart_grant_put(gp, &grant)) {
		fprintf(stderr, "%s\n", gpupart_error(gp));
		return 1;
	}
	return 0;
}
END
${CC:-cc} -iquote . -I include -I include/uapi -o "$tmp/give" "$tmp/give.c" "$BUILD/lib/libgpupart.so.0" "$BUILD/lib/libgpupart-manage.so.0" -Wl,-rpath,"$BUILD/lib" || exit 1
if [ "$(id -u)" != 0 ] || ! unshare -m true 2>/dev/null; then
	skip "not root, or no namespaces of mounts"
else
	pci=$("$gpupart" ps --json | jq -r --arg n "$name-beside" '[.processes[] | select(.name == $n).gpu][0]')
	two
	unshare -m sh -c "mount -t tmpfs none /run && $tmp/give 4711 $pci $tmp/board.txt 20-29 && $gpupart qos run $e -f $tmp/t.yaml --dry-run" \
		>"$tmp/out" 2>"$tmp/err"
	is "$? $(grep -c "TPCs 7,20-29 are used by other programs" "$tmp/out") $(grep -c "20-29 (slurm7)" "$tmp/err")" "0 1 1" "what root granted another user is excluded"
	chmod 755 "$tmp"
	unshare -m sh -c "mount -t tmpfs none /run && mount -t tmpfs none /dev/shm && $tmp/give 4711 $pci $tmp/board.txt 0-29 && $tmp/give 4712 $pci $tmp/board.txt 30-39 && exec \
		setpriv --reuid 4711 --clear-groups env XDG_CACHE_HOME=/dev/null $gpupart qos run $e -f $tmp/t.yaml --dry-run" >"$tmp/out" 2>"$tmp/err"
	is "$? $(grep -c "TPCs 30-65 are used by other programs" "$tmp/out") $(grep -c "30-65 (not granted by this node)" "$tmp/err")" "0 1 1" \
		"and for a user all that was not given to him"
fi
rm "$go"
wait

# ------------------------------------------------------------- arguments for a shell
# shellcheck disable=SC2016 # expanded by the program's shell
tenants "$name-s: { program: [ sh, -c, 'echo \"\$0 \$PORT \$\$\" >$tmp/said', 'x' ] }"
PORT=80 try qos run $e -f "$tmp/t.yaml"
is "$status $(sed 's/ [0-9]*$/ pid/' "$tmp/said")" "0 x 80 pid" "a dollar sign in a program's words is the program's"
tap_done
