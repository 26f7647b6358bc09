#!/bin/sh
# SPDX-License-Identifier: MIT
# gpupart top on the simulated GPU: as text, as JSON, and in a tmux terminal of several sizes.
. "$(dirname "$0")/tap.subr"
e="-i tests/data/gh100-h200-e/capture.txt"
GPUPART_SIM_FAULTS=host-clock
export GPUPART_SIM_FAULTS
unset GPUPART_JOB COLUMNS LINES TMUX

include="-Iinclude -Iinclude/uapi"
# shellcheck disable=SC2086 # a list of words
if ! ${CC:-cc} -o "$tmp/work" tests/cli/top_work.c -ldl 2>"$tmp/err" ||
	! ${CC:-cc} $include -o "$tmp/jobs" tests/cli/top_jobs.c -L"$BUILD/lib" -lgpupart \
		-Wl,-rpath,"$(readlink -f "$BUILD")/lib" 2>>"$tmp/err"; then
	cat "$tmp/err" >&2
	skip "no C compiler"
	tap_done
fi
terminal=0
go=$tmp/go
touch "$go"
name=top$$
trap 'rm -f "$go" "$go.q"; t kill-server; kill $jobs 2>/dev/null; rm -rf "$tmp"' EXIT
jobs=

# soon COMMAND: until it succeeds, for 30 s at most.
soon() {
	for _ in $(seq 600); do
		"$@" && return
		sleep 0.05
	done
	return 1
}

# work NAME NS OPTIONS: a program that launches a kernel of NS ns repeatedly.
work() {
	job=$1 ns=$2
	shift 2
	"$gpupart" run --exec $e --name "$job" "$@" -- "$tmp/work" "$go" "$ns" 20000 >/dev/null 2>&1 &
}
listed() {
	[ "$("$gpupart" ps --json | jq '.processes | length')" = "$1" ]
}

# ------------------------------------------------------------- without programs
try top --once
is "$status $out" "0 No GPU is here, and nothing runs under gpupart." "without a GPU it says so"
try top --once $e
has "$out" "simulated" "-i: a GPU on which nothing runs"
has "$out" "nothing runs under gpupart on this GPU" "and that nothing does"

# ------------------------------------------------------------- two GPUs, and NVML's values
on_two() {
	env "GPUPART_SIM=$PWD/tests/data/gh100-h200-b/capture.txt:$PWD/tests/data/gh100-h200-e/capture.txt" \
		LD_LIBRARY_PATH="$BUILD/lib/gpupart/sim" GPUPART_SIM_FAULTS=host-clock,nvml-state=412500:1980 "$gpupart" "$@"
}
on_two run --gpu all -g 0 --name "$name-two" -- "$tmp/work" "$go" 1000 20000 2>/dev/null &
soon listed 1
two=$("$gpupart" ps --json | jq '.processes[0].pid')
on_two top --once -d 0.1 >"$tmp/out"
on_two top --json -n 1 >"$tmp/json"
is "$(grep -c "^A $name-two .* $two " "$tmp/out") $(grep -c 'GPU [12] of 2$' "$tmp/out")" "2 2" \
	"a program on two GPUs: a frame of each"
is "$(grep -c '^? of 140G used  412 W  SM 1980 MHz  memory ? MHz' "$tmp/out")" 2 "with memory, power and clocks"
is "$(jq -c '[.gpus[].memory_used_bytes]' "$tmp/json")" "[null,null]" \
	"the used memory of a simulated GPU is not known"
is "$(jq -c '[.jobs[] | .set.list] | sort' "$tmp/json")" \
	'["4,12,20,28,35,42,49,56,63","6,14,22,30,37,44,51,58,60"]' "with its set on each"
is "$(jq -c '[.jobs[] | .launches > 0] | sort' "$tmp/json") $(jq '[.jobs[].job] | unique | length' "$tmp/json")" "[false,true] 1" \
	"its launches on the first alone, and one job"
kill "$two"
soon listed 0

# ------------------------------------------------------------- scores
touch "$go.q"
"$gpupart" qos run $e --tenant "$name-q:rate=1" --epoch 200ms -- "$tmp/work" "$go.q" 1000 20000 >/dev/null 2>&1 &
qos=$!
# scored JQ: evaluates it with the job in JSON.
scored() {
	"$gpupart" top --json -n 1 | jq -e ".jobs[] | select(.name == \"$name-q\") | $1" >/dev/null
}
soon scored '.qos_score > 1 and .qos_goal_met and .programs[0].qos_score > 1'
ok $? "the score of a tenant of qos run, and that its goal is met"
"$gpupart" top --once -d 0.1 >"$tmp/out"
is "$(grep -c "^  NAME  *PID  *BUSY  *GPU%  *QOS " "$tmp/out") $(grep -cE "^A $name-q .*% +[0-9]+\.?[0-9]* " "$tmp/out")" "1 1" "as a column"
kill -STOP $qos
soon scored '.qos_score == null and .qos_goal_met == null'
ok $? "a qos that hangs: its last score is not shown for ever"
kill -CONT $qos
soon scored '.qos_score > 1'
ok $? "it goes on: the score is there again"
kill -9 $qos
soon scored '.qos_score == null and .qos_goal_met == null and (.programs | length) == 1'
ok $? "qos is killed: no score, and the program runs on"
rm "$go.q"
soon listed 0
touch "$go.q"
"$gpupart" qos run $e --tenant "$name-q:rate=100000" --epoch 200ms -- "$tmp/work" "$go.q" 1000 20000 >/dev/null 2>&1 &
qos=$!
soon scored '.qos_score < 1 and .qos_goal_met == false'
ok $? "a goal that is missed"
rm "$go.q"
wait $qos
soon listed 0
is "$(find /dev/shm/gpupart-"$(id -u)" -name 'qos-*.scores')" "" "a qos that ends takes its scores away"

# ------------------------------------------------------------- text and JSON
work "$name-a" 3000000 -t 0-7 --mem 2G
a=$!
work "$name-b" 1000 -t 8-14
b=$!
GPUPART_RECORDS=0 work "$name-c" 1000 -t 20,21
c=$!
soon listed 3
try top --once -d 0.5
is "$status $(grep -c "^[A-C] $name" "$tmp/out")" "0 3" "--once: a row a job"
is "$(head -n 1 "$tmp/out" | grep -c simulated)" 1 "which says that the GPU is simulated"
is "$(LC_ALL=C grep -c "$(printf '\033')" "$tmp/out")" 0 "without escapes"
has "$(grep "^[A-C] $name-b" "$tmp/out")" " $b " "with the program's number"
letter=$(sed -n "s/^\([A-C]\) $name-b .*/\1/p" "$tmp/out")
is "$(grep 'GPC [0-9]' "$tmp/out" | grep -oE "[0-9]+ $letter( |\$)" | sort -n | tr -dc '0-9\n' | tr '\n' ' ')" "8 9 10 11 12 13 14 " \
	"the map has the job's letter in the TPCs that it has alone"
is "$(awk 'length($0) > 80' "$tmp/out" | wc -l)" 0 "in 80 columns"
COLUMNS=30 try top --once -d 0.1
is "$status $(awk 'length($0) > 30' "$tmp/out" | wc -l)" "0 0" "or in 30"
try top --json -n 2 -d 0.5
is "$status $(wc -l <"$tmp/out") $(cut -c 1-21 "$tmp/out" | sort -u)" '0 2 {"schema":"gpupart/1"' \
	"--json: a line a look, schema first"
# of NAME FILTER: of that job in the last line.
of() {
	tail -n 1 "$tmp/out" | jq -c ".jobs[] | select(.name == \"$name-$1\") | $2"
}
is "$(tail -n 1 "$tmp/out" | jq -c '[.command, .simulated, (.jobs | length), .gpus[0].nr_tpcs, .gpus[0].power_mw]')" \
	'["top",true,3,66,null]' "one GPU, all jobs; what is not told is null"
is "$(of a '[.user, .set.list, .programs[0].pid, .outside, .quota_bytes, .memory_bytes > 0]')" \
	"[\"$(id -un)\",\"0-7\",$a,0,2147483648,true]" "user, set, pid, launches outside, memory"
is "$(of a '[.busy > 0.1, .busy <= 1, (.busy * 8 / 66 - .gpu_busy | fabs) < 0.001, .launches_per_s > 1, .partial]')" \
	"[true,true,true,true,false]" "busy time of its set and of the GPU, launches a second"
is "$(of c '[.busy, .gpu_busy, .launches_per_s > 1]')" "[null,null,true]" "records off: busy time is null, not 0"
is "$(head -n 1 "$tmp/out" | jq -c '[.jobs[].busy] | unique')" "[null]" "nor is it known at the first look"
try ps --json
is "$(jq -c '[.processes[].pid]' "$tmp/out")" "$("$gpupart" top --json -n 1 | jq -c '[.jobs[].programs[].pid] | sort')" \
	"the programs of ps"
try top -n 2 -d 0.1
is "$status $(grep -c '/S' "$tmp/out") $(grep -c "^ *$a $name-a" "$tmp/out")" "0 2 2" "in a pipe: what ps prints, with launches a second"
is "$(awk -v pid=$a '$1 == pid { print ($6 == "-" ? "-" : $6 > 0) }' "$tmp/out" | tr '\n' ' ')" "- 1 " \
	"which are not known at the first look"
refused 2 "one of them" top --once -n 3
refused 2 extra top extra
refused 2 nosuch top -i sample:nosuch
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	XDG_CONFIG_HOME=/nonexistent setpriv --reuid=4720 --regid=4720 --clear-groups \
		"$gpupart" top --json -n 1 >"$tmp/out" 2>&1
	is "$(jq '.jobs | length' "$tmp/out")" 0 "another user sees none of them"
else
	skip "not root"
fi

# ------------------------------------------------------------- screens
if ! command -v tmux >/dev/null; then
	skip "no tmux"
	tap_done
fi
# open WIDTH HEIGHT COMMAND: in a new terminal, which stays open after its end.
open() {
	t kill-server
	terminal=$((terminal + 1))
	t -f /dev/null new-session -d -x "$1" -y "$2" \
		"$3; echo ENDED \$? \$(stty -a | grep -ow 'echo\|icanon'); sleep 600"
}
t() {
	tmux -S "$tmp/tmux$terminal" "$@" 2>/dev/null
}
on_screen() {
	t capture-pane -p >"$tmp/screen"
	grep -qe "$1" "$tmp/screen"
}
# shows PATTERN WORDS: the screen shows it soon.
shows() {
	soon on_screen "$1"
	ok $? "$2" || :
	on_screen "$1" || sed 's/^/# /' "$tmp/screen"
}
keys() {
	t send-keys "$@"
}
top="$gpupart top -d 0.3"
TERM=xterm-256color
export TERM
for size in 200x50 80x24 40x10; do
	open ${size%x*} ${size#*x} "$top"
	shows "^[A-C]  *$name-b .* [1-9]" "$size: rows"
	has "$(head -n 1 "$tmp/screen")" "simulated" "$size: simulated"
	has "$(tail -n 1 "$tmp/screen")" "hHelp qQuit" "$size: keys"
	[ "$(sed -n '4,6p' "$tmp/screen" | grep -o '[ABC.]' | wc -l)" -gt 8 ]
	ok $? "$size: a map"
	keys q
	shows "^ENDED 0 icanon echo" "$size: q ends it, and the terminal is as it was"
done
open 80 24 "$top"
shows "^[A-C] $name-b" "colours"
has "$(t capture-pane -e -p)" "48;5;" "are there"
for plain in NO_COLOR=1 TERM=vt100; do
	open 80 24 "env $plain $top"
	shows "^[A-C] $name-b" "$plain: rows"
	case $(t capture-pane -e -p) in *'8;5;'* | *'[3'[1-7]m*) false ;; esac
	ok $? "$plain: no colours"
done
open 80 24 "env COLUMNS=200 LINES=100 $top"
shows "^[A-C] $name-b" "COLUMNS and LINES that are wrong: rows"
has "$(tail -n 1 "$tmp/screen")" "hHelp qQuit" "the terminal's own size holds"
open 80 24 "env LC_ALL=C $top"
shows "^[A-C] $name-b" "LC_ALL=C: rows"
is "$(LC_ALL=C grep -c '[^ -~]' "$tmp/screen")" 0 "all of it ASCII"
open 80 24 "env TERM=dumb $top -n 2"
shows "^ENDED 0" "TERM=dumb: as in a pipe"
has "$(cat "$tmp/screen")" "LAUNCHES       /S" "with the columns of ps"

# ------------------------------------------------------------- small, and resized meanwhile
joined() {
	t capture-pane -p | tr -d '\n' | grep -qF -- "$1"
}
for plain in X= LC_ALL=C NO_COLOR=1 TERM=vt100; do
	open 20 5 "env $plain $top"
	shows "^20x5 is too small:\$" "$plain, 20x5: a sentence"
	has "$(cat "$tmp/screen")" "30x8 at least" "and what is wanted"
	keys q
	shows "^ENDED 0" "q ends it"
done
open 30 8 "$top"
shows "^[A-C] $name" "30x8: rows"
keys Down s
soon joined "as -g 0 or -n 8: _"
ok $? "30x8: a question is there in full"
keys -- "-t 5,66"
soon joined "as -g 0 or -n 8: -t 5,66_"
ok $? "and what is typed"
keys Escape
shows "hHelp qQuit" "Escape: the keys"
for size in 20x5 200x50 1x1 31x9 80x24 10x50 200x3 30x8 2x2 80x24; do
	t resize-window -x ${size%x*} -y ${size#*x}
	keys h
	t resize-window -x ${size#*x} -y ${size%x*}
	keys Enter
done
t resize-window -x 80 -y 24
shows "^[A-C] $name-b\|^Job . $name\|are upper bounds" "a window that is resized all the time"
keys q q q
shows "^ENDED 0" "q ends it"

# ------------------------------------------------------------- keys, sizes
open 80 24 "$top"
shows "^[A-C] $name-b" "again"
keys h
shows "are upper bounds" "h: help, which says what is an upper bound"
keys Escape
shows "^[A-C] $name-b" "Escape: back"
keys h
shows "are upper bounds" "help again"
keys PageDown '>'
shows "^[A-C] $name-b" "a key that would do what is not seen there: back"
has "$(sed -n 3p "$tmp/screen")" "by letter" "and nothing else"
keys /
shows "Only what has" "/: asks"
keys "$name-b" Enter
shows "only '$name-b'" "and filters"
is "$(grep -c "^[A-C] $name" "$tmp/screen")" 1 "to one row"
keys Down Space
shows "^    *work .* $b " "Space: the program"
keys Enter
shows "gpupart_census" "Enter: its kernels"
t resize-window -x 20 -y 5
shows "too small" "a sentence where it is too small"
t resize-window -x 130 -y 40
shows "^Job . $name-b .*, 1 program" "large again: as before"
keys Enter s
shows "Set of $name-b (1 program)" "s: asks"
keys -- "-t 5,x" Enter
shows "gpupart set: .*5,x" "a bad set is refused in the words of set"
keys s
shows "Set of $name-b" "s again"
keys -- "-t 60,61" Enter
shows "new set: 60-61" "a good one is set"
shows "^[A-C] .* 60-61 *\$" "and shown"
try ps --json
is "$(jq -r ".processes[] | select(.pid == $b) | .set.list" "$tmp/out")" 60-61 "it is set"
keys k
shows "End $name-b (1 program)?" "k: asks"
keys n
shows "hHelp" "another key: no"
kill -0 $b
ok $? "it runs on"
keys k
shows "End $name-b" "k again"
keys y
shows "SIGTERM was sent to 1 program" "y: sent"
wait $b
is $? 143 "it was ended by SIGTERM"
keys Escape
shows "^[A-C]  *$name-a" "Escape: all rows"
keys / "$name-a" Enter
shows "only '$name-a'" "a job with a quota"
keys Down s
shows "Set of $name-a" "s: asks"
keys -- "--mem 3G" Enter
shows "tenant $name-a's new quota on .*: 3 GiB" "--mem: the new quota, not the old one"
is "$("$gpupart" ps --json | jq -c "[.tenants[] | select(.tenant == \"$name-a\") | .quota_bytes]")" "[3221225472]" "it is set"
keys s
shows "Set of $name-a" "s: asks"
# Cut at 159 characters, 40 would be 4.
keys -- " -t $(printf '4,%.0s' $(seq 77))40"
soon joined "4,4,4_"
ok $? "an answer that is too long"
keys Enter
shows "too long, at most 159 characters: nothing was changed" "is refused"
is "$("$gpupart" ps --json | jq -r ".processes[] | select(.pid == $a) | .set.list")" 0-7 "and not cut and set"
keys / x Enter
shows "only '$name-ax'" "/ again: takes a character after the filter's text"
keys / BSpace Enter
shows "only '$name-a'" "and removes it"
keys Down s
shows "Set of $name-a" "s: asks"
keys -- "$(printf -- '-t 8 %.0s' $(seq 30))-t 9"
keys Enter
shows "new set: 8-9" "all words of an answer count"
keys Escape
shows "^[A-C]  *$name-c" "Escape: all rows again"
keys '>'
shows "by busy time" ">: another order"
keys I
shows "by busy time turned" "I: turned"
keys q
shows "^ENDED 0" "q"

# ------------------------------------------------------------- signals, a closed terminal
open 80 24 "exec bash --norc --noprofile -i"
keys "PS1='READY> '; $top" Enter
shows "^[A-C] $name-a" "in a shell"
keys C-z
shows "Stopped.*top" "^Z: stopped, and the shell is there"
keys "fg" Enter
shows "^[A-C] $name-a" "fg: it is back"
pid=$(pgrep -x gpupart -P "$(t list-panes -F '#{pane_pid}')")
kill -TERM "$pid"
shows "^READY> *\$" "SIGTERM: the shell's prompt"
keys "stty -a | grep -ow 'echo\|icanon'" Enter
shows "^echo" "and a terminal that echoes"
keys "$top" Enter
soon pgrep -x gpupart -P "$(t list-panes -F '#{pane_pid}')" >"$tmp/pid"
shows "^[A-C] $name-a" "once more"
t kill-server
gone() {
	! kill -0 "$(tail -n 1 "$tmp/pid")" 2>/dev/null
}
soon gone
ok $? "SIGHUP: it has ended"
python3 - "$gpupart" >"$tmp/out" 2>&1 <<'END'
import os, pty, subprocess, sys
# Without a controlling terminal only end of file shows that the terminal was closed.
master, slave = pty.openpty()
p = subprocess.Popen([sys.argv[1], "top", "-d", "600"], stdin=slave, stdout=slave, start_new_session=True)
os.close(slave)
seen = b""
while b"Help" not in seen:
    seen += os.read(master, 4096)
os.close(master)
print("ended", p.wait(timeout=60))
END
has "$(cat "$tmp/out")" "ended 0" "a terminal that is gone without a signal: it has ended"

# ------------------------------------------------------------- 500 jobs
touch "$tmp/many"
"$tmp/jobs" sample:h200 500 >"$tmp/many" &
jobs=$!
soon grep -q begun "$tmp/many"
is "$("$gpupart" top --json -n 1 | jq '[.jobs[] | select(.name | startswith("many"))] | length')" 500 "500 jobs"
open 80 24 "$top"
shows "GPU [12] of 2" "on another GPU"
many() {
	on_screen "^A *many" || ! keys g
}
soon many
ok $? "g: the other, with its jobs"
keys Down End
scrolled() {
	on_screen "many" && ! grep -q "^A *many" "$tmp/screen"
}
soon scrolled
ok $? "End: the last of them"
keys Home
shows "^A *many" "Home: the first"
keys q
shows "^ENDED 0" "q"
kill $jobs $a $c
tap_done
