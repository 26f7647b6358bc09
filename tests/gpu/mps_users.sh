#!/bin/sh
# SPDX-License-Identifier: MIT
# Two ordinary users on disjoint sets of 24 TPCs of one GPU, as TAP with the times of each in
# lines "NAME: ...": alone, without MPS, under a daemon of one user, and under the node's daemon,
# started like share/systemd/gpupart-mps.service. Then failures: a client, the server, the control
# daemon, and a client with a bad address next to a healthy one. NVIDIA's behaviour is printed,
# not checked. Root, an idle GPU, no Slurm, no accounts. Two to four minutes. OUT=FOLDER stores
# the lines and the daemon's logs.
build=${BUILD:-build}
unit=$(readlink -f "$(dirname "$0")/../../share/systemd/gpupart-mps.service")
nr=0 failed=0
ok() {	# ok STATUS WORDS
	nr=$((nr + 1))
	if [ "$1" -eq 0 ]; then echo "ok $nr - $2"; else echo "not ok $nr - $2"; failed=1; fi
}
skip_all() { echo "1..0 # SKIP $1"; exit 77; }

[ "$(id -u)" -eq 0 ] || skip_all "root is needed"
[ -e /dev/nvidiactl ] || skip_all "no NVIDIA driver here"
command -v setpriv >/dev/null || skip_all "no setpriv here"
[ -x "$build/tests/gpu-concurrency" ] || make -s build/tests/gpu-concurrency || skip_all "gpu-concurrency was not built"
PATH=$PATH:/usr/local/nvidia/bin
control=$(command -v nvidia-cuda-mps-control) || skip_all "no nvidia-cuda-mps-control in PATH"
# The processes of MPS, NAME:PID; the kernel stores only 15 letters of nvidia-cuda-mps-control and
# -server.
mps() {
	for i in /proc/[0-9]*; do
		[ "$(cat "$i/comm" 2>/dev/null)" = nvidia-cuda-mps ] && ! grep -q '^State:.Z' "$i/status" 2>/dev/null &&
			echo "$(tr '\0' ' ' <"$i/cmdline" | sed 's/.*nvidia-cuda-mps-\([a-z]*\).*/\1/'):${i#/proc/}"
	done
}
pids() { mps | sed -n "s/^$1.*://p"; }
[ -z "$(mps)" ] || skip_all "MPS runs already: $(mps | tr '\n' ' ')"
node_pipes=$(sed -n 's/^Environment=CUDA_MPS_PIPE_DIRECTORY=//p' "$unit")
[ ! -e "$node_pipes" ] || skip_all "$node_pipes is there: gpupart-mps.service was started on this machine"
unset GPUPART_SET GPUPART_GPU CUDA_INJECTION64_PATH CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY \
	CUDA_DEVICE_MAX_CONNECTIONS GPUPART_MPS

tmp=$(mktemp -d /tmp/gpupart.XXXXXX) || exit 1
chmod 755 "$tmp"
began=$(date +%s)
out=${OUT:-$tmp/out}
mkdir -p "$out"
lines=$out/mps_users.txt
: >"$lines"
say() { echo "$*" | tee -a "$lines" | sed 's/^/# /'; }
stop_mps() {
	[ -z "$(pids control)" ] || echo quit -t 5 | CUDA_MPS_PIPE_DIRECTORY=$node_pipes timeout 15 "$control" >/dev/null 2>&1
	for i in TERM KILL; do
		# shellcheck disable=SC2046 # pids
		[ -z "$(mps)" ] || kill -$i $(mps | sed 's/.*://') 2>/dev/null
		tries=0
		while [ -n "$(mps)" ] && [ $tries -lt 30 ]; do sleep 0.1; tries=$((tries + 1)); done
	done
}
started=''
# shellcheck disable=SC2317 # by the trap
cleanup() {
	# shellcheck disable=SC2086 # pids
	[ -z "$started" ] || kill $started 2>/dev/null
	stop_mps
	cp -r "$tmp/log" "$out/mps-log" 2>/dev/null
	rm -rf "$node_pipes" "$tmp"
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP

# Programs for users are in a folder that users can read.
mkdir -m 755 "$tmp/b" "$tmp/b/tests"
cp -a "$build/bin" "$build/lib" "$build/share" "$tmp/b"
cp "$build/tests/gpu-concurrency" "$tmp/b/tests"
chmod -R a+rX "$tmp/b"
gpupart=$tmp/b/bin/gpupart
for user in 12345 12346; do
	mkdir -m 700 "$tmp/$user" "$tmp/$user/run"
	chown -R $user:$user "$tmp/$user"
done
sets() { [ "$1" = 12345 ] && echo 0-23 || echo 24-47; }
exec=''
as() {	# as USER COMMAND..: with $exec this shell becomes it
	as_user=$1
	shift
	$exec setpriv --reuid="$as_user" --regid="$as_user" --clear-groups -- env HOME="$tmp/$as_user" \
		XDG_RUNTIME_DIR="$tmp/$as_user/run" XDG_CACHE_HOME="$tmp/$as_user/cache" "$@"
}
# begin NAME USER WORK HOW: starts a program of USER that is warm and waits for the start; $pid.
# HOW: plain, plugin (the variable that the Slurm plugin sets) or mps (run --mps). WORK: launches,
# or fault.
begin() {
	rm -f "$tmp/go.$1"
	set_of=${5:-$(sets "$2")}
	case $4 in
	plugin) set -- "$1" "$2" "$3" "" "CUDA_MPS_PIPE_DIRECTORY=$node_pipes" ;;
	mps) set -- "$1" "$2" "$3" --mps MPS_USERS= ;;
	*) set -- "$1" "$2" "$3" "" MPS_USERS= ;;
	esac
	# shellcheck disable=SC2086 # no word, or one
	{
		exec='exec'
		as "$2" "$5" timeout -k 2 40 "$gpupart" run $4 -t "$set_of" -- "$tmp/b/tests/gpu-concurrency" \
			"$tmp/$2/$1.ready" "$tmp/go.$1" "$3"
	} >"$tmp/$1.out" 2>"$tmp/$1.err" &
	pid=$!
	started="$started $pid"
	tries=0
	until [ -s "$tmp/$2/$1.ready" ] || ! kill -0 $pid 2>/dev/null || [ $tries -ge 200 ]; do
		sleep 0.1
		tries=$((tries + 1))
	done
}
go() { for i in "$@"; do : >"$tmp/go.$i"; done; }
# program NAME USER: the pid of the program itself.
program() { cat "$tmp/$2/$1.ready" 2>/dev/null; }
field() { tr ' ' '\n' <"$tmp/$1.out" | sed -n "/^$2\$/{n;p;}"; }
# finish NAME PID: waits; prints its line; its status is in $status.
finish() {
	wait "$2" 2>/dev/null
	status=$?
	say "$1: status $status $(cat "$tmp/$1.out" "$tmp/$1.err" | tr '\n' ' ')"
}
# both NAME HOW HOW [SECOND USER]: runs two users at once, as NAME-a and NAME-b.
both() {
	second=${4:-12346}
	begin "$1-a" 12345 40 "$2"; a=$pid
	begin "$1-b" "$second" 40 "$3" 24-47; b=$pid
	go "$1-a" "$1-b"
	finish "$1-a" $a; a_status=$status
	finish "$1-b" $b
	ok $((a_status + status)) "$1: both end well"
}
holds() { awk "BEGIN { exit !($1) }" </dev/null; }
# The fraction of the shorter of two runs in which both ran, and the longer time relative to its
# solo time.
overlap() {
	awk -v a="$(field "$1" begin)" -v b="$(field "$1" end)" -v c="$(field "$2" begin)" -v d="$(field "$2" end)" 'BEGIN {
		s = a > c ? a : c; e = b < d ? b : d; l = b - a < d - c ? b - a : d - c
		printf "%.3f", (l > 0 && e > s ? (e - s) / l : 0) }' </dev/null
}
ratio() {
	awk -v a="$(field "$1" seconds)" -v b="$(field "$2" seconds)" -v alone="$(field alone-a seconds)" 'BEGIN {
		printf "%.3f", (alone > 0 ? (a > b ? a : b) / alone : 0) }' </dev/null
}
# together NAME: both ran at the same time, each within its solo time.
together() {
	o=$(overlap "$1-a" "$1-b") t=$(ratio "$1-a" "$1-b")
	say "$1: both run in $o of the shorter one's time; the longer takes $t times its time alone"
	holds "$o >= 0.8 && $t > 0.9 && $t <= 1.15"
	ok $? "$1: at the same time, each in its time alone (overlap $o, $t)"
}
# Like the unit: returns 0 if it answers.
start_node() {
	install -d -m "$(sed -n 's/^RuntimeDirectoryMode=//p' "$unit")" "$node_pipes"
	install -d -m "$(sed -n 's/^LogsDirectoryMode=//p' "$unit")" "$tmp/log"
	# shellcheck disable=SC2046,SC2086 # words
	(umask "$(sed -n 's/^UMask=//p' "$unit")" && cd / && env -i PATH="$PATH" ${LD_LIBRARY_PATH:+LD_LIBRARY_PATH="$LD_LIBRARY_PATH"} \
		$(sed -n 's/^Environment=//p' "$unit" | sed "s|/var/log/gpupart-mps|$tmp/log|") \
		timeout 20 "$control" $(sed -n 's/^ExecStart=[^ ]* //p' "$unit")) >>"$tmp/start" 2>&1
	started_status=$?
	tries=0
	until node_answers || [ $tries -ge 20 ]; do sleep 0.2; tries=$((tries + 1)); done
	say "control daemon: status $started_status, $(tr '\n' ' ' <"$tmp/start") processes: $(mps | tr '\n' ' ')"
	node_answers
}
node_answers() { echo get_server_list | CUDA_MPS_PIPE_DIRECTORY=$node_pipes timeout 5 "$control" >"$tmp/servers" 2>&1; }
in_time() {
	[ $(($(date +%s) - began)) -lt 190 ] && return
	nr=$((nr + 1))
	echo "ok $nr # SKIP $1: the time is up"
	return 1
}

say "driver $(cat /sys/module/nvidia/version 2>/dev/null), $control, $(date -u +%FT%TZ)"
# ------------------------------------------------------------------ alone, and without a node's daemon
for user in 12345 12346; do
	as $user timeout 60 "$gpupart" run -t 0 -- true >"$tmp/check" 2>&1
	ok $? "user $user can use the GPU: $(tr '\n' ' ' <"$tmp/check")"
done
begin alone-a 12345 40 plain; go alone-a; finish alone-a $pid
ok $status "alone: user 12345"
begin alone-b 12346 40 plain; go alone-b; finish alone-b $pid
ok $status "alone: user 12346"
[ -n "$(field alone-a seconds)" ] || { echo "Bail out! nothing runs"; exit 1; }
both without plain plain
t=$(ratio without-a without-b)
say "without: the longer takes $t times its time alone"
holds "$t >= 1.8"
ok $? "without MPS they take turns: $t times the time alone"
both one-user mps mps 12345
together one-user
tries=0
while [ -n "$(mps)" ] && [ $tries -lt 100 ]; do sleep 0.1; tries=$((tries + 1)); done
[ -z "$(mps)" ]
ok $? "the one user's daemon ends after them"

# ------------------------------------------------------------------ the node's daemon
start_node
ok $? "the node's daemon starts as the unit has it"
# shellcheck disable=SC2012 # the modes are part of the output
ls -la "$node_pipes" | sed 's/^/pipes: /' >>"$lines"
[ "$(cat "$node_pipes/nvidia-cuda-mps-control.pid" 2>/dev/null)" = "$(pids control)" ]
ok $? "the pid file that the unit names has its pid: $(cat "$node_pipes/nvidia-cuda-mps-control.pid" 2>&1)"
echo get_server_list | as 12345 CUDA_MPS_PIPE_DIRECTORY="$node_pipes" timeout 5 "$control" >"$tmp/asked" 2>&1
say "a user's own nvidia-cuda-mps-control: status $? $(tr '\n' ' ' <"$tmp/asked")"
both users plugin plugin
together users
[ ! -s "$tmp/users-a.err" ] && [ ! -s "$tmp/users-b.err" ]
ok $? "run says nothing of turns to a client"
both joined mps plugin
together joined
[ ! -s "$tmp/joined-a.err" ]
ok $? "run --mps joins the node's daemon, and says nothing: $(tr '\n' ' ' <"$tmp/joined-a.err")"
node_answers
[ "$(wc -l <"$tmp/servers")" -eq 1 ] && [ "$(pids server | wc -l)" -eq 1 ]
ok $? "one server for both: $(mps | tr '\n' ' '), of user $(stat -c %u "/proc/$(pids server | head -n 1)" 2>/dev/null)"
bad=0
for i in users-a users-b joined-a joined-b; do
	[ "$(field $i others)" = 0 ] && [ "$(field $i sms)" = 48 ] && [ "$(field $i mps)" != 0 ] || bad=1
done
ok $bad "all four are clients of MPS, and every launch of theirs was confined to 48 SMs"

# ------------------------------------------------------------------ failures
# A client is killed while it works.
if in_time client; then
	begin client-a 12345 400 plugin; a=$pid
	begin client-b 12346 400 plugin; b=$pid
	go client-a client-b
	sleep 1
	say "client: client-a killed at $(date +%s.%3N)"
	kill -KILL "$(program client-a 12345)"
	finish client-a $a
	finish client-b $b
	say "client: the other user's client ends with status $status (0: it goes on; 1: the death ended it too)"
	[ "$status" -ne 124 ]
	ok $? "a client is killed: the other user's ends by itself, with status $status"
	both after-client plugin plugin
	together after-client
fi
# The same, but the control daemon first ends the client's work on the GPU.
if in_time terminate; then
	begin ended-a 12345 400 plugin; a=$pid
	begin ended-b 12346 400 plugin; b=$pid
	go ended-a ended-b
	sleep 1
	victim=$(program ended-a 12345)
	asked=$(echo "terminate_client $(pids server | head -n 1) $victim" |
		CUDA_MPS_PIPE_DIRECTORY=$node_pipes timeout 20 "$control" 2>&1)
	say "terminate: terminate_client: status $? '$asked', then killed at $(date +%s.%3N)"
	kill -KILL "$victim" 2>/dev/null
	finish ended-a $a
	finish ended-b $b
	say "terminate: the other user's client ends with status $status (0: it goes on; 1: the death ended it too)"
	[ "$status" -ne 124 ]
	ok $? "a client is terminated, then killed: the other user's ends by itself, with status $status"
	both after-terminate plugin plugin
	together after-terminate
fi
# The server is killed, with two clients.
if in_time server; then
	begin server-a 12345 400 plugin; a=$pid
	begin server-b 12346 400 plugin; b=$pid
	go server-a server-b
	sleep 1
	say "server: killed at $(date +%s.%3N): $(mps | tr '\n' ' ')"
	# shellcheck disable=SC2046 # pids
	kill -KILL $(pids server)
	finish server-a $a; a_status=$status
	finish server-b $b
	[ $a_status -ne 124 ] && [ "$status" -ne 124 ]
	ok $? "the server is killed: its clients end by themselves, with status $a_status and $status"
	node_answers
	ok $? "the control daemon goes on"
	both after-server plugin plugin
	together after-server
fi
# The control daemon is killed, with a client; its server stays at first.
if in_time control; then
	begin control-a 12345 1200 plugin; a=$pid
	go control-a
	sleep 1
	say "control: killed at $(date +%s.%3N): $(mps | tr '\n' ' ')"
	# shellcheck disable=SC2046 # pids
	kill -KILL $(pids control)
	sleep 0.5
	say "control: left are $(mps | tr '\n' ' ')"
	begin lost-b 12346 40 mps; go lost-b; finish lost-b $pid
	ok $status "it is killed: run --mps of another user starts all the same"
	grep -q "does not answer in $node_pipes" "$tmp/lost-b.err"
	ok $? "and says so: $(tr '\n' ' ' <"$tmp/lost-b.err")"
	begin stale-b 12346 40 plugin; go stale-b; finish stale-b $pid
	say "control: a program that the variable sends to the stale pipes ends with status $status"
	start_node
	say "control: started anew beside the old server: status $?"
	begin beside-b 12346 40 plugin; go beside-b; finish beside-b $pid
	say "control: a new client beside the old server's: status $status, $(ratio beside-b beside-b) times its time alone"
	finish control-a $a
	[ "$status" -ne 124 ]
	ok $? "the control daemon's client ends by itself, with status $status"
	# Like systemd: all processes of the unit are ended, and it starts again.
	stop_mps
	start_node
	ok $? "nothing left of it, it starts again in the same directory"
	both after-control plugin plugin
	together after-control
fi
# A client that reads a bad address, next to a healthy one of the other user.
if in_time fault; then
	begin fault-a 12345 fault plugin; a=$pid
	begin fault-b 12346 400 plugin; b=$pid
	go fault-b
	sleep 1
	say "fault: at $(date +%s.%3N)"
	go fault-a
	finish fault-a $a
	[ "$status" -eq 1 ]
	ok $? "the client with the bad address has an error"
	finish fault-b $b
	say "fault: the other user's healthy client ends with status $status (1: the fault ended it too)"
	[ "$status" -ne 124 ]
	ok $? "the other user's client ends by itself, with status $status"
	both after-fault plugin plugin
	together after-fault
fi
stop_mps
[ -z "$(mps)" ]
ok $? "no process of MPS is left"
begin last 12345 40 plain; go last; finish last $pid
ok $status "the GPU works without MPS as at the beginning: $(ratio last last) times the time alone"
say "$(($(date +%s) - began)) s"
echo "1..$nr"
exit $failed
