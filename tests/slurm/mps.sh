#!/bin/bash
# SPDX-License-Identifier: MIT
# Jobs with --gpupart and the node's MPS daemon, which is tests/other_mps.sh started like NVIDIA's
# by the unit: which jobs join it, and the messages without it. tests/gpu/mps_users.sh tests
# NVIDIA's own program.
. "$(dirname "$0")/../cli/tap.subr"
. tests/slurm/cluster.subr

missing=$(cluster_missing)
if [ -n "$missing" ]; then
	skip "$missing"
	tap_done
	exit
fi
cluster_nodes="n1=h200-e"
pipes=/run/gpupart/mps
trap 'cluster_stop; rm -rf "$tmp"' EXIT
# The plugin inherits slurmd's environment: FAKE_MPS controls the fake daemon.
mkdir "$tmp/bin" "$tmp/bad" "$tmp/out"
mkdir -m 755 "$tmp/fake"
chmod 1777 "$tmp/out"
install -m 755 tests/other_mps.sh "$tmp/bin/nvidia-cuda-mps-control"
PATH=$tmp/bin:$PATH
FAKE_MPS=$tmp/fake
export PATH FAKE_MPS
unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY GPUPART_MPS
cluster_start
status=$?
ok $status "munge, slurmctld and slurmd, a simulated GPU"
[ $status -eq 0 ] || { sed 's/^/# /' "$cluster/start.log"; tap_done; }

# job USER COMMAND..: its output in $out, its stderr in $err.
job() {
	job_user=$1
	shift
	out=$(cd "$tmp/out" && setpriv --reuid="$job_user" --regid="$job_user" --clear-groups -- \
		env HOME="$tmp/out" srun -w n1 --gpupart tpcs=4 "$@" 2>"$tmp/err")
	status=$?
	err=$(grep -v '^srun: job' "$tmp/err")
}
show='echo "${CUDA_MPS_PIPE_DIRECTORY-none} ${CUDA_MPS_LOG_DIRECTORY-none} ${CUDA_DEVICE_MAX_CONNECTIONS-none}"'
unit() {
	sed -n "s/^$1=//p" share/systemd/gpupart-mps.service
}
# The actions of the unit, without systemd.
start_daemon() {
	cluster_in n1 install -d -m "$(unit RuntimeDirectoryMode)" "/run/$(unit RuntimeDirectory)" "$tmp/log"
	# shellcheck disable=SC2046 # words
	cluster_in n1 env $(unit Environment | sed "s|/var/log/gpupart-mps|$tmp/log|") \
		"$tmp/bin/$(unit ExecStart | sed 's|.*/\(nvidia\)|\1|;s/ .*//')" $(unit ExecStart | cut -d' ' -f2-)
	# The pipes are not sufficient: those of a killed daemon still exist.
	tries=0
	until cluster_in n1 sh -c "echo get_server_list | CUDA_MPS_PIPE_DIRECTORY=$pipes $tmp/bin/nvidia-cuda-mps-control" || [ $tries -ge 300 ]; do
		tries=$((tries + 1))
		sleep 0.1
	done
}
kill_daemon() {
	cluster_in n1 sh -c "kill -KILL \$(cat $pipes/nvidia-cuda-mps-control.pid)"
}
doctor() {
	cluster_in n1 "$gpupart" doctor --no-launch -i sample:h200-e --json | jq -r '.rows[] | select(.name == "node-mps") | .result + " " + .answer'
}
# Until no job has TPCs: a job releases them in its epilog.
check() {
	tries=0
	until cluster_in n1 "$gpupart" slurm-node --list --json | jq -e '.jobs == []' >/dev/null || [ $tries -ge 300 ]; do
		tries=$((tries + 1))
		sleep 0.1
	done
	cluster_in n1 "$gpupart" slurm-node --check 2>"$tmp/err"
	status=$?
	err=$(cat "$tmp/err")
}

# ------------------------------------------------------------------ a node without a daemon
job games sh -c "$show"
is "$status $out$err" "0 none none none" "a node without a daemon: no variable is set, no message"
check
is "$status$err" 0 "slurm-node --check: nothing"
has "$(doctor)" "note this node has no MPS daemon for all users" "doctor: a note"

# ------------------------------------------------------------------ joined
start_daemon
is "$(cluster_in n1 stat -c '%a %u' $pipes)" "755 0" "the daemon as the unit starts it: a directory of root's that all can read"
for user in games news; do
	job "$user" sh -c "$show"
	is "$status $out$err" "0 $pipes none none" "a job of $user joins it: one variable, no message"
done
check
is "$status$err" 0 "slurm-node --check: nothing"
has "$(doctor)" "ok the node's MPS daemon runs in" "doctor: ok"
GPUPART_MPS=0 job games sh -c "$show"
is "$status $out$err" "0 none none none" "GPUPART_MPS=0: no variable is set, no message"
CUDA_MPS_PIPE_DIRECTORY=/tmp/own CUDA_MPS_LOG_DIRECTORY=/tmp/log CUDA_DEVICE_MAX_CONNECTIONS=2 job games sh -c "$show"
is "$status $out" "0 /tmp/own /tmp/log 2" "a daemon of the user's own stays: nothing of these is touched"
has "$err" "its CUDA_MPS_PIPE_DIRECTORY=/tmp/own excludes it from the node's MPS daemon" "and that is reported"
has "$err" "run on the GPU, simulated, in time slices" "with what it means"
GPUPART_MPS=0 CUDA_MPS_PIPE_DIRECTORY=/tmp/own job games sh -c "$show"
is "$status $out$err" "0 /tmp/own none none" "GPUPART_MPS=0 confirms it: no message"
job games -n 3 sh -c "$show"
is "$(echo "$out" | sort | uniq -c | tr -s ' ')" " 3 $pipes none none" "three tasks of a job join it"
# A user's PATH differs from root's.
cat >"$tmp/bad/nvidia-cuda-mps-control" <<E2
#!/bin/sh
touch $tmp/out/bad
E2
chmod 755 "$tmp/bad" "$tmp/bad/nvidia-cuda-mps-control"
PATH=$tmp/bad:$PATH job games sh -c "$show"
[ "$out" = "$pipes none none" ] && [ ! -e "$tmp/out/bad" ]
ok $? "what the user's PATH has of the daemon's name is not run by root"

# ------------------------------------------------------------------ a daemon that hangs
touch "$tmp/fake/hangs"
CUDA_MPS_PIPE_DIRECTORY=$pipes job games -n 2 sh -c "$show"
is "$status $(echo "$out" | sort -u)" "0 none none none" "one that hangs: the job starts, and does not join it though its script did"
is "$(echo "$err" | grep -c "the node's MPS daemon does not answer in $pipes: this job and others run on the GPU")" 1 "and says so, once for all tasks of a node"
check
is "$status $(echo "$err" | grep -c 'does not answer.*systemctl status gpupart-mps')" "1 1" "slurm-node --check fails and says so"
has "$(doctor)" "bad the node's MPS daemon does not answer" "doctor: bad"
rm "$tmp/fake/hangs"

# ------------------------------------------------------------------ killed, restarted
kill_daemon
job games sh -c "$show"
is "$status $out" "0 none none none" "killed: a job starts, and does not join what is left of it"
has "$err" "does not answer in $pipes" "it says so"
has "$err" "in time slices" "and what that means"
cluster_in n1 test -e $pipes/control
ok $? "the stale pipes are there still"
check
is $status 1 "slurm-node --check fails"
cluster_in n1 "$gpupart" slurm-node --clean 2>"$tmp/err"
is "$? $(grep -c 'does not answer' "$tmp/err")" "1 1" "slurm-node --clean fails and says so"
tries=0
until grep -q "health_check failed.*the node's MPS daemon does not answer" "$cluster/n1.log" || [ $tries -ge 300 ]; do
	tries=$((tries + 1))
	sleep 0.1
done
[ $tries -lt 300 ]
ok $? "and so slurmd's log has it, from its health check"
is "$(sinfo -h -n n1 -o %t)" idle "which does not drain the node"
start_daemon
job news sh -c "$show"
is "$status $out$err" "0 $pipes none none" "started anew in the same directory: the next job joins it"

# ------------------------------------------------------------------ another user's directory
cluster_in n1 chown games $pipes
job news sh -c "$show"
is "$status $out" "0 none none none" "a directory that another user owns: not joined"
has "$err" "$pipes must be a directory that only root can write to" "it says so"
cluster_in n1 chown root $pipes
cluster_in n1 sh -c "touch $pipes/quit; while test -e $pipes/control; do sleep 0.1; done; rm -r $pipes"
job news sh -c "$show"
is "$status $out$err" "0 none none none" "the directory removed: the node is to have none again"
tap_done
