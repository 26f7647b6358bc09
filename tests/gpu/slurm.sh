#!/bin/bash
# SPDX-License-Identifier: MIT
# Jobs of two users on one GPU, allocated by Slurm's daemons (munge, slurmctld, slurmd of this
# machine as one node), as TAP with the times of each job in lines "NAME: ...": one alone, two
# without MPS, two under the node's daemon, started like share/systemd/gpupart-mps.service, and
# one that is cancelled while another runs. Root, an idle GPU, Slurm 22.05, users games and news.
# About a minute. OUT=FOLDER stores the lines and the logs.
cd "$(dirname "$0")/../.." || exit 1
build=${BUILD:-build}
unit=$PWD/share/systemd/gpupart-mps.service
skip_all() { echo "1..0 # SKIP $1"; exit 77; }
PATH=$PATH:/usr/sbin:/usr/local/nvidia/bin
[ -e /dev/nvidiactl ] || skip_all "no NVIDIA driver here"
[ -x "$build/tests/gpu-concurrency" ] || make -s build/tests/gpu-concurrency || skip_all "gpu-concurrency was not built"
tmp=$(mktemp -d /tmp/gpupart.XXXXXX) || exit 1
chmod 755 "$tmp"
# Programs for users are in a folder that users can read.
mkdir -m 755 "$tmp/b" "$tmp/b/tests"
cp -a "$build/bin" "$build/lib" "$build/share" "$tmp/b"
cp "$build/tests/gpu-concurrency" "$tmp/b/tests"
chmod -R a+rX "$tmp/b"
BUILD=$tmp/b
gpupart=$BUILD/bin/gpupart
# shellcheck source=tests/slurm/cluster.subr
. tests/slurm/cluster.subr
missing=$(cluster_missing)
[ -z "$missing" ] || { rm -rf "$tmp"; skip_all "$missing"; }
out=${OUT:-$tmp/out}
mkdir -p "$out"
: >"$out/slurm.txt"
nr=0 failed=0
ok() {	# ok STATUS WORDS
	nr=$((nr + 1))
	if [ "$1" -eq 0 ]; then echo "ok $nr - $2"; else echo "not ok $nr - $2"; failed=1; fi
}
say() { echo "$*" | tee -a "$out/slurm.txt" | sed 's/^/# /'; }
holds() { awk "BEGIN { exit !($1) }" </dev/null; }

# This machine is the only node.
cluster_nodes=n1=here
cluster_in() { shift; "$@"; }
cluster_boot() { mkdir -p "$cluster/n1.spool"; }
cluster_start_node() { slurmd -N "$1" >>"$cluster/start.log" 2>&1; }
conf_of() { shift; "$gpupart" slurm-conf --node n1 "$@"; }
control=nvidia-cuda-mps-control
pipes=$(sed -n 's/^Environment=CUDA_MPS_PIPE_DIRECTORY=//p' "$unit")
command -v $control >/dev/null || skip_all "no $control in PATH"
[ ! -e "$pipes" ] || skip_all "$pipes is there: gpupart-mps.service was started on this machine"
unset GPUPART_SET GPUPART_GPU CUDA_INJECTION64_PATH CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY \
	CUDA_DEVICE_MAX_CONNECTIONS GPUPART_MPS
ask_mps() { echo "$1" | CUDA_MPS_PIPE_DIRECTORY=$pipes timeout 10 $control 2>&1; }
# shellcheck disable=SC2317 # by the trap
cleanup() {
	scancel -u games,news 2>/dev/null
	sleep 1
	ask_mps "quit -t 5" >/dev/null
	for pid in "$cluster/n1.pid" "$cluster/slurmctld.pid" "$cluster/munge/pid"; do
		[ ! -s "$pid" ] || kill "$(cat "$pid")" 2>/dev/null
	done
	mkdir -p "$out/slurm-log"
	cp "$cluster"/*.log "$tmp/log"/* "$out/slurm-log" 2>/dev/null
	rm -rf "$pipes" "$tmp"
}
trap cleanup EXIT
trap 'exit 1' INT TERM HUP

# shellcheck disable=SC2086 # words
"$gpupart" slurm-node ${GPUPART_SLURM_ARGS-} 2>&1 | sed 's/^/# /'
cluster_start
ok $? "munge, slurmctld and slurmd of this machine"
[ $failed -eq 0 ] || { cat "$cluster"/*.log; exit 1; }
say "$(slurmd -V), $(sinfo -h -N -o '%N %G'), driver $(cat /sys/module/nvidia/version 2>/dev/null), $(date -u +%FT%TZ)"

# begin NAME USER LAUNCHES: starts a job of USER that is warm and waits for the start; $pid is its
# srun's.
begin() {
	rm -f "$tmp/go.$1"
	mkdir -p "$tmp/$2"
	chown "$2" "$tmp/$2"
	(cd "$tmp/$2" && exec setpriv --reuid="$2" --regid="$2" --clear-groups -- env HOME="$tmp/$2" XDG_CACHE_HOME="$tmp/$2/cache" \
		timeout -k 2 60 srun -w n1 -J "$1" --gpupart tpcs=24 "$BUILD/tests/gpu-concurrency" \
		"$tmp/$2/$1.ready" "$tmp/go.$1" "$3") >"$tmp/$1.out" 2>"$tmp/$1.err" &
	pid=$!
	tries=0
	until [ -s "$tmp/$2/$1.ready" ] || ! kill -0 $pid 2>/dev/null || [ $tries -ge 300 ]; do
		sleep 0.1
		tries=$((tries + 1))
	done
}
field() { tr ' ' '\n' <"$tmp/$1.out" | sed -n "/^$2\$/{n;p;}"; }
finish() {	# finish NAME PID: prints its line; its status is in $status
	wait "$2"
	status=$?
	say "$1: status $status $(cat "$tmp/$1.out" "$tmp/$1.err" | tr '\n' ' ')"
}
# both NAME: runs jobs of two users at once, as NAME-a and NAME-b; $overlap and $ratio.
both() {
	begin "$1-a" games 40; a=$pid
	begin "$1-b" news 40; b=$pid
	say "$1: held: $("$gpupart" slurm-node --list | tail -n +2 | tr -s ' ' | tr '\n' ';')"
	touch "$tmp/go.$1-a" "$tmp/go.$1-b"
	finish "$1-a" $a; a_status=$status
	finish "$1-b" $b
	ok $((a_status + status)) "$1: jobs of two users end well"
	overlap=$(awk -v a="$(field "$1-a" begin)" -v b="$(field "$1-a" end)" -v c="$(field "$1-b" begin)" -v d="$(field "$1-b" end)" 'BEGIN {
		s = a > c ? a : c; e = b < d ? b : d; l = b - a < d - c ? b - a : d - c
		printf "%.3f", (l > 0 && e > s ? (e - s) / l : 0) }' </dev/null)
	ratio=$(awk -v a="$(field "$1-a" seconds)" -v b="$(field "$1-b" seconds)" -v alone="$(field alone seconds)" 'BEGIN {
		printf "%.3f", (alone > 0 ? (a > b ? a : b) / alone : 0) }' </dev/null)
	say "$1: both run in $overlap of the shorter one's time; the longer takes $ratio times its time alone"
	bad=0
	for i in "$1-a" "$1-b"; do
		[ "$(field "$i" others)" = 0 ] && [ "$(field "$i" sms)" = 48 ] || bad=1
	done
	ok $bad "$1: every launch of both was confined to 48 SMs"
}

begin alone games 40; touch "$tmp/go.alone"; finish alone $pid
ok $status "one job alone"
[ -n "$(field alone seconds)" ] || { echo "Bail out! nothing runs"; cat "$cluster"/*.log; exit 1; }
both without
holds "$ratio >= 1.8"
ok $? "without: they take turns ($ratio)"

# Like the unit.
install -d -m "$(sed -n 's/^RuntimeDirectoryMode=//p' "$unit")" "$pipes"
install -d -m "$(sed -n 's/^LogsDirectoryMode=//p' "$unit")" "$tmp/log"
# shellcheck disable=SC2046 # words
(cd / && env -i PATH="$PATH" ${LD_LIBRARY_PATH:+LD_LIBRARY_PATH="$LD_LIBRARY_PATH"} \
	$(sed -n 's/^Environment=//p' "$unit" | sed "s|/var/log/gpupart-mps|$tmp/log|") \
	timeout 20 $control $(sed -n 's/^ExecStart=[^ ]* //p' "$unit")) >"$tmp/start" 2>&1
tries=0
until ask_mps get_server_list >/dev/null || [ $tries -ge 20 ]; do sleep 0.2; tries=$((tries + 1)); done
[ $tries -lt 20 ]
ok $? "the node's daemon starts as the unit has it: $(tr '\n' ' ' <"$tmp/start")"
both users
holds "$overlap >= 0.8 && $ratio > 0.9 && $ratio <= 1.15"
ok $? "users: at the same time, each in its time alone (overlap $overlap, $ratio)"
[ "$(field users-a mps)" != 0 ] && [ "$(field users-b mps)" != 0 ]
ok $? "users: both are clients of MPS"

begin cancelled games 400; a=$pid
begin beside news 100; b=$pid
touch "$tmp/go.cancelled" "$tmp/go.beside"
sleep 1
scancel -u games -n cancelled
finish cancelled $a
finish beside $b
say "cancelled: the other user's job ends with status $status (0: it goes on; 1: the cancelled one ended it too)"
[ "$status" -ne 124 ]
ok $? "scancel in the middle of kernels: the other user's job ends by itself"
tries=0
until [ "$("$gpupart" slurm-node --list | wc -l)" -eq 1 ] || [ $tries -ge 100 ]; do sleep 0.1; tries=$((tries + 1)); done
[ $tries -lt 100 ]
ok $? "nothing is held when all have ended"
# After a client was killed the server restarts: a new client gets 719 meanwhile.
sleep 2
both after
echo "1..$nr"
exit $failed
