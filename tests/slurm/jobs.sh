#!/bin/bash
# SPDX-License-Identifier: MIT
# Jobs with --gpupart, one topic after the other, on two nodes of simulated GPUs: what a job gets,
# shares and may not do; refusals; and what remains after kills and restarts.
. "$(dirname "$0")/../cli/tap.subr"
. tests/slurm/cluster.subr

declare -A started	# pid of srun, by the job's name
missing=$(cluster_missing)
if [ -n "$missing" ]; then
	skip "$missing"
	tap_done
	exit
fi
cluster_nodes="n1=h200-e n2=h200-c,h200-d"
trap 'cluster_stop; rm -rf "$tmp"' EXIT
cluster_start
status=$?
ok $status "munge, slurmctld and two slurmd, three simulated GPUs"
# Without this, the commands below would wait forever.
[ $status -eq 0 ] || { sed 's/^/# /' "$cluster/start.log"; tap_done; }
cp "$BUILD/tests/slurm-job" lib/confine/probe.ptx "$tmp"
mkdir -m 1777 "$tmp/out"
job="$tmp/slurm-job $tmp/probe.ptx"

# Users of every Debian system that are not root.
as() {
	as_user=$1
	shift
	(cd "$tmp/out" && exec setpriv --reuid="$as_user" --regid="$as_user" --clear-groups -- env HOME="$tmp/out" XDG_CACHE_HOME="$tmp/out/cache-$as_user" "$@")
}

held() {
	cluster_in "$1" "$gpupart" slurm-node --list --json
}

nr_held() {
	held "$1" | jq '[.jobs[] | select(.nr_tpcs > 0)] | length'
}

nothing_held() {
	[ "$(nr_held n1)$(nr_held n2)" = 00 ]
}

holds() {
	[ "$(nr_held "$1")" = "$2" ]
}

# is_state NAME WORDS: the job's state and reason, as squeue prints them, begin with WORDS.
is_state() {
	case $(squeue -h -n "$1" -o '%T %r') in
	"$2"*) return 0 ;;
	*) return 1 ;;
	esac
}

# begin NAME USER OPTIONS..: starts a job that runs until $tmp/out/NAME.hold is removed.
begin() {
	begin_name=$1 begin_user=$2
	shift 2
	touch "$tmp/out/$begin_name.hold"
	as "$begin_user" srun -J "$begin_name" "$@" "$tmp/slurm-job" "$tmp/probe.ptx" 0 0 "$tmp/out/$begin_name.hold" \
		>"$tmp/out/$begin_name" 2>"$tmp/out/$begin_name.err" &
	started[$begin_name]=$!
}

# none_lives PID..
none_lives() {
	! ps -o pid= -p "$(echo "$@" | tr ' ' ,)" >/dev/null
}

# none_holds ID..: none of these jobs has TPCs of a node.
none_holds() {
	! { held n1; held n2; } | jq -r '.jobs[].job' | grep -Fxq "$(printf '%s\n' "$@")"
}

# end NAME..: ends these jobs, and waits for their end and the release of their TPCs.
end() {
	end_pids=() end_ids=$(squeue -h -n "$(echo "$@" | tr ' ' ,)" -o %A)
	for name in "$@"; do
		rm -f "$tmp/out/$name.hold"
		end_pids+=("${started[$name]}")
	done
	until_true none_lives "${end_pids[@]}"
	until_true none_holds $end_ids
	kill "${end_pids[@]}" 2>/dev/null
}

# id_of NAME: the id of its job.
id_of() {
	squeue -h -n "$1" -o %A
}

set_of() {
	held "$1" | jq -r ".jobs[] | select(.job == \"$2\") | .list"
}

# count LIST: the number of its TPCs.
count() {
	echo "$1" | tr , '\n' | awk -F- '/./ { n += ($2 == "" ? 1 : $2 - $1 + 1) } END { print n + 0 }'
}

spread_list() {
	echo "$1" | tr , '\n' | awk -F- '/./ { for (i = $1; i <= ($2 == "" ? $1 : $2); i++) print i }' | sort -n | paste -sd,
}

# ------------------------------------------------------------------ allocation
out=$(as games srun -w n1 --gpupart tpcs=16,mem=1G sh -c "$job 2048 0; echo \$GPUPART_SET \$SLURM_JOB_ID \$GPUPART_NAME; echo \$GLIBC_TUNABLES" 2>&1 | grep -v '^srun: job\|^job:')
seen=$(echo "$out" | head -1)
is "$(count "${seen% *}")" 16 "a job of 16 TPCs is seen on 16"
is "${seen% *}" "$(spread_list "$(echo "$out" | sed -n '2s/ .*//p')")" "on those of its set"
[ "${seen#* }" -lt 1024 ] && [ "${seen#* }" -gt 256 ]
ok $? "of 2048 MiB that it asks the driver for it gets its quota of 1 GiB (${seen#* })"
is "$(echo "$out" | sed -n 2p | awk '{ print ($2 == $3) }')" 1 "its name is the job's number"
is "$(echo "$out" | sed -n 3p)" glibc.rtld.optional_static_tls=163840 "its libraries have room for static TLS"
until_true nothing_held
ok $? "it holds nothing when it has ended"
is "$(as games srun -w n1 sh -c 'echo "${GPUPART_SET-none}"' 2>/dev/null)" none "a job without the option has no set"

# Another job of the same user, with a quota: it applies to that job only, and to a run inside it.
begin quota games -w n1 --gpupart tpcs=4,mem=1G
until_true holds n1 1
as games srun -w n1 --gpupart tpcs=4 sh -c "$job 2048 0; $gpupart run -t \$GPUPART_SET -- $job 2048 0" >"$tmp/out/free" 2>"$tmp/err"
is "$(sed 's/.* //' "$tmp/out/free" | paste -sd' ')" "2048 2048" "beside a job with a quota, one of the same user without has none" ||
	sed 's/^/# /' "$tmp/err"
end quota

as games srun -w n1 --gpupart tpcs=16,gpcs sh -c 'echo $GPUPART_SET' >"$tmp/out/gpcs" 2>/dev/null
is "$(count "$(cat "$tmp/out/gpcs")")" 16 "whole GPCs: 16 TPCs"
set_words=$("$gpupart" plan -i sample:h200-e --tenant a:min=16,max=16,gpcs --json | jq -r '.tenants[0].set.list // .tenants[0].set')
is "$(cat "$tmp/out/gpcs")" "$set_words" "those that 'gpupart plan' takes"
as games srun -w n1 --gpupart tpcs=20,ugpu sh -c 'echo $GPUPART_SET' >"$tmp/out/ugpu" 2>/dev/null
inside=$("$gpupart" topology -i sample:h200-e --json | jq -r --argjson s "[$(spread_list "$(cat "$tmp/out/ugpu")")]" \
	'[.tpcs[] | select(.tpc as $t | $s | index($t)) | .ugpu] | unique | length')
is "$(count "$(cat "$tmp/out/ugpu")") $inside" "20 1" "20 TPCs of one uGPU"

# ------------------------------------------------------------------ submission
never() {
	as games srun --gpupart "$1" true 2>"$tmp/err"
	status=$?
	[ $status -ne 0 ] && grep -q "$2" "$tmp/err"
	ok $? "--gpupart $1 is refused when it is submitted: $2" || sed 's/^/# /' "$tmp/err"
}
never tpcs=67 "can never run here: h200 has 66 TPCs"
never tpcs=8,mem=200G "h200 has 143771 MiB"
never tpcs=40,ugpu "TPCs in its largest uGPU"
never tpcs=16,cluster=32 "has room for clusters of at most 16 blocks"
never tpcs=2,gpcs "has no GPC of fewer than 6 TPCs"
never tpcs=0 "must be a number"
never gpcs "tpcs=N is missing"
never tpcs=4,colour=red "colour=red"
never tpcs=4,tpcs=8 "tpcs=8: is given twice"
never "tpcs=8,mem=$(printf '%0130d' 1)G" "must have at most 127 characters"
for gres in shard:4 shard tpcmem; do
	as games srun --gres=$gres true 2>"$tmp/err"
	has "$(cat "$tmp/err")" "tpcmem with --gpupart" "--gres=$gres without --gpupart is refused"
done
as games srun --gpupart tpcs=4 --exclusive true 2>"$tmp/err"
has "$(cat "$tmp/err")" "--exclusive, which allocates whole GPUs: use only one of them" "an exclusive node and a part of its GPU are refused"
as games srun --gpupart tpcs=4 --gres=gpu:1 true 2>"$tmp/err"
has "$(cat "$tmp/err")" "use only one of them" "so are they with a whole GPU"
is "$(squeue -h | wc -l)" 0 "nothing of these waits"

# ------------------------------------------------------------------ two users
begin one games -w n1 --gpupart tpcs=40
until_true holds n1 1
begin two news -w n1 --gpupart tpcs=20
until_true holds n1 2
ok $? "jobs of two users on one GPU"
one=$(spread_list "$(set_of n1 "$(id_of one)")") two=$(spread_list "$(set_of n1 "$(id_of two)")")
is "$(printf '%s,%s' "$one" "$two" | tr , '\n' | sort | uniq -d | wc -l)" 0 "have no TPC in common"
SQUEUE_PARTITION=none SQUEUE_USERS=root cluster_in n1 "$gpupart" slurm-node --check
ok $? "what root's environment has squeue leave out is no job that ended"
begin three news -w n1 --gpupart tpcs=10
until_true is_state three "PENDING Resources"
is "$(squeue -h -n three -o '%T %r')" "PENDING Resources" "a third, for which TPCs are short, waits and says why"
until_true sh -c "grep -q queued '$tmp/out/three.err'"
has "$(cat "$tmp/out/three.err")" "queued and waiting for resources" "its user gets the message"
until_true sh -c "$(declare -f cluster_in); cluster=$cluster; [ \$(cluster_in n1 $gpupart ps --json | jq '.processes | length') = 2 ]"
shown=$(cluster_in n1 "$gpupart" ps)
has "$shown" "$(id_of one)" "gpupart ps shows the job"
has "$shown" games "and its user"
pid=$(cluster_in n1 "$gpupart" ps --json | jq -r ".processes[] | select(.name == \"$(id_of one)\") | .pid")
cluster_in n1 "$gpupart" set "$(id_of one)" -t "${one%%,*}" >"$tmp/changed" 2>&1
ok $? "an operator changes a job" || sed 's/^/# /' "$tmp/changed"
is "$(cluster_in n1 "$gpupart" ps --json | jq -r ".processes[] | select(.pid == $pid) | .set.list")" "${one%%,*}" "its process has that set"
is "$(set_of n1 "$(id_of one)")" "${one%%,*}" "and its note"
# A run inside a job is a job of the user, bounded by this one.
cat >"$tmp/out/nested" <<E
#!/bin/sh
exec $gpupart run -t \$GPUPART_SET --name inner -- $job 0 0 $tmp/out/four.hold
E
chmod 755 "$tmp/out/nested"
touch "$tmp/out/four.hold"
as games srun -J four -w n2 --gpupart tpcs=6 "$tmp/out/nested" >"$tmp/out/four" 2>/dev/null &
started[four]=$!
inner_list() {
	cluster_in n2 "$gpupart" ps --json | jq -r '.processes[] | select(.name == "inner") | .set.list'
}
inner_runs() {
	[ -n "$(inner_list)" ]
}
until_true inner_runs
four=$(spread_list "$(set_of n2 "$(id_of four)")")
cluster_in n2 "$gpupart" set "$(id_of four)" -t "${four%%,*}" >"$tmp/changed" 2>&1
is "$(inner_list)" "${four%%,*}" "a run inside a job follows it"
end one two three four
is "$(count "$(sed 's/ .*//' "$tmp/out/three")")" 10 "the one that waited has run"

# ------------------------------------------------------------------ steps, arrays, het jobs
cat >"$tmp/out/batch" <<E
#!/bin/sh
echo batch \$GPUPART_SET
srun sh -c 'echo step \$GPUPART_SET'
srun --gpupart tpcs=60 sh -c 'echo wide \$GPUPART_SET'
E
as games sbatch -W -w n1 --gpupart tpcs=12 -o "$tmp/out/steps" "$tmp/out/batch" >/dev/null 2>&1
is "$(awk '/^(batch|step|wide)/ { print $2 }' "$tmp/out/steps" | sort | uniq -c | awk '{ print $1 }')" 3 \
	"the script and its steps have one set, whatever a step asks for"
cat >"$tmp/out/forged" <<'E'
#!/bin/sh
srun --gpupart tpcs=60 true
E
as games sbatch -W -w n1 -o "$tmp/out/forged.out" "$tmp/out/forged" >/dev/null 2>&1
forged=$(cat "$tmp/out/forged.out")
has "$forged" "the job has no TPCs on this node" "a step gets nothing that the job did not ask for"
has "$forged" "--gpupart was used for a step but not for its job" "its message names this cause"
has "$forged" "or slurmd ran no prolog for the job" "and the other one"
cat >"$tmp/out/array" <<'E'
#!/bin/sh
echo "$SLURM_JOB_ID $GPUPART_SET"
sleep 1
E
as games sbatch -W -w n1 --array=1-3 --gpupart tpcs=10 -o "$tmp/out/array.%a" "$tmp/out/array" >/dev/null 2>&1
is "$(cat "$tmp/out"/array.[123] | while read -r id list; do spread_list "$list" | tr , '\n'; done | sort -n | uniq | wc -l)" 30 \
	"an array's three tasks have ten TPCs each, none twice"
as games srun -w n1 --gpupart tpcs=10 sh -c 'echo $GPUPART_SET >a; sleep 1' : -w n2 --gpupart tpcs=20 sh -c 'echo $GPUPART_SET >b; sleep 1' >"$tmp/het" 2>&1
is "$(count "$(cat "$tmp/out/a")") $(count "$(cat "$tmp/out/b")")" "10 20" "the parts of a heterogeneous job have their own"
until_true nothing_held
ok $? "nothing is held after them"

# ------------------------------------------------------------------ from inside
cat >"$tmp/out/widen" <<E
#!/bin/sh
echo "set \$GPUPART_SET"
echo "run \$($gpupart run -t 0-65 -- true 2>&1 | tail -1)"
echo "note \$($gpupart set \$SLURM_JOB_ID -t 0-65 2>&1 | tail -1)"
echo "mem \$($gpupart set \$SLURM_JOB_ID --mem 100G 2>&1 | tail -1)"
touch $tmp/out/widen.hold
$job 2048 0 $tmp/out/widen.hold >$tmp/out/widen.seen &
for try in \$(seq 100); do
	sleep 0.2
	pid=\$($gpupart ps --json | jq -r '.processes[0].pid')
	[ "\$pid" != null ] && break
done
echo "pid \$($gpupart set -p \$pid -t 0-65 2>&1 | tail -1)"
echo "quota \$($gpupart set \$SLURM_JOB_ID --mem 100G 2>&1 | tail -1)"
rm $tmp/out/widen.hold
wait
echo "seen \$(cat $tmp/out/widen.seen)"
echo "env \$(GPUPART_SET=0-65 GPUPART_MEM=90000000000 $job 2048 0)"
echo "job \$(GPUPART_SET=0-65 GPUPART_JOB= $job 0 0)"
echo "none \$(unset GPUPART_SET GPUPART_JOB GPUPART_GPU GPUPART_CHECKED GPUPART_TENANT GPUPART_MEM; $job 2048 0)"
echo "off \$(GPUPART_DISABLE=1 $job 2048 0)"
E
chmod 755 "$tmp/out/widen"
as games srun -w n1 --gpupart tpcs=6,mem=1G "$tmp/out/widen" >"$tmp/inside" 2>/dev/null
said() { sed -n "s/^$1 //p" "$tmp/inside"; }
six=$(spread_list "$(said set)")
is "$(count "$six")" 6 "a job of six TPCs, of a user who wants more"
has "$(said run)" "outside the limit" "he cannot by a run"
has "$(said note)" "only root can change it" "nor by its job"
has "$(said pid)" "can have only the TPCs that were granted to its user" "nor by its process"
has "$(said quota)" "exceeds the" "nor has his quota changed"
is "$(said seen | sed 's/ .*//')" "$six" "the program stayed inside"
is "$(said env | sed 's/ .*//')" "$six" "another GPUPART_SET is cut down"
[ "$(said env | sed 's/.* //')" -lt 1024 ]
ok $? "so is another GPUPART_MEM ($(said env | sed 's/.* //'))"
is "$(said job | sed 's/ .*//')" "$six" "also where the job is forgotten"
is "$(said none | sed 's/ .*//')" "$six" "and where all of the environment is"
is "$(said off | sed 's/ .*//')" "$six" "GPUPART_DISABLE=1 changes nothing"
[ "$(said none | sed 's/.* //')" -lt 1024 ] && [ "$(said off | sed 's/.* //')" -lt 1024 ]
ok $? "nor do they help to more memory"
sed 's/^/# /' "$tmp/inside"

# ------------------------------------------------------------------ fragments
for i in 1 2 3 4 5 6 7 8; do
	begin "f$i" games -w n1 --gpupart tpcs=2
	until_true holds n1 $i
done
as games srun -w n1 --gpupart tpcs=8,gpcs true 2>"$tmp/err"
is $? 75 "no whole GPC is free: the job ends with 75, for RequeueExit"
has "$(cat "$tmp/err")" "free TPCs in whole GPCs on GPU" "its output has the sentence"
has "$(cat "$tmp/err")" "tpcs=8 without conditions would be possible now" "and says what would do"
sed 's/^/# /' "$tmp/err"
begin waits games -w n1 --gpupart tpcs=8,gpcs,wait=60
until_true is_state waits RUNNING
sleep 1
is "$(squeue -h -n waits -o %T)" RUNNING "one that may wait waits on the node"
end f1 f2 f3 f4 f5 f6 f7 f8 waits
# Which one that is, of 6 or 8 TPCs, depends on the order of their ends.
waits=$(sed 's/ .*//' "$tmp/out/waits")
whole=$("$gpupart" topology -i sample:h200-e --json | jq -c --argjson s "[$waits]" \
	'[.gpcs[].tpcs | select(any(.[]; IN($s[])))] | add | sort')
is "[$waits]" "$whole" "and gets its GPC when one is free"

# Five whole GPCs, and at most one GPC of each other one's 3 TPCs: no 4 can run a cluster of 8
# blocks.
begin most games -w n1 --gpupart tpcs=40
until_true holds n1 1
for i in 1 2 3 4 5 6 7; do
	begin "t$i" games -w n1 --gpupart tpcs=3
	until_true holds n1 $((i + 1))
done
as games srun -w n1 -n 2 --overcommit --gpupart tpcs=4 sh -c 'echo $GPUPART_SET' >"$tmp/out/poor" 2>"$tmp/err"
is "$? $(wc -l <"$tmp/out/poor")" "0 2" "4 TPCs that hold no cluster are given"
is "$(grep -c "have room for clusters of at most [246] blocks: .*; no 4 free TPCs had room for clusters of 8; cluster=8 requests such a set" "$tmp/err")" 1 \
	"one line says so, of the first task"
sed 's/^/# /' "$tmp/err"
as games srun -w n1 --gpupart tpcs=4,cluster=8 true 2>"$tmp/err"
is $? 75 "cluster=8 refuses it"
end t1 t2 t3 t4 t5 t6 t7
as games srun -w n1 --gpupart tpcs=4 true 2>"$tmp/err"
is "$? $(grep -c "hold clusters" "$tmp/err")" "0 0" "4 that hold one are chosen where there are such"
end most

# ------------------------------------------------------------------ several GPUs
begin g1 games -w n2 --gpupart tpcs=40
until_true holds n2 1
begin g2 news -w n2 --gpupart tpcs=40
until_true holds n2 2
ok $? "two jobs of 40 TPCs on a node of two GPUs"
is "$(held n2 | jq '[.jobs[].gpu] | unique | length')" 2 "are on one each"
begin g3 news -w n2 --gpupart tpcs=40
until_true is_state g3 PENDING
sleep 1
is "$(squeue -h -n g3 -o %T)" PENDING "a third waits, though 52 are free"
end g1 g2 g3
for name in g1 g2 g3; do
	is "$(count "$(sed 's/ .*//' "$tmp/out/$name")")" 40 "$name is seen on 40"
done

# ------------------------------------------------------------------ a broken node
# Otherwise it would fail job after job, because it is always free.
cluster_in n2 sh -c 'mount -t tmpfs -o size=4k,mode=755 none /run/gpupart/jobs && head -c 8192 /dev/zero >/run/gpupart/jobs/fill' 2>/dev/null
as games sbatch -W --requeue -J full -w n2 --gpupart tpcs=5 -o "$tmp/out/full" --wrap 'echo $GPUPART_SET' >/dev/null 2>&1 &
started[full]=$!
until_true sh -c 'sinfo -h -n n2 -N -o "%t %E" | grep -q "^drain Prolog error"'
ok $? "where nothing can be noted the node is drained"
has "$(cat "$cluster/n2.log")" "cannot be written below /run/gpupart/jobs: No space left on device" "slurmd's log says why"
cluster_in n2 umount /run/gpupart/jobs
cluster_in n2 chown games /run/gpupart/jobs
cluster_in n2 "$gpupart" slurm-node --check 2>"$tmp/err"
is "$? $(grep -c "users other than root can write to this" "$tmp/err")" "1 1" "--check says so where anybody could have noted jobs"
cluster_in n2 chown root /run/gpupart/jobs
scontrol update nodename=n2 state=resume
until_true sh -c 'squeue -h -o "%T %r" | grep -q "^PENDING launch failed requeued held"'
id=$(squeue -h -o %A)
# slurmd 22.05 checks at most every two seconds which job credentials it can drop. A requeued job
# that it starts before it dropped the old credential has no prolog, and is then refused.
sleep 3
scontrol release "$id"
scontrol update jobid="$id" starttime=now
end full
is "$(count "$(cat "$tmp/out/full")")" 5 "and the job runs when that is mended" ||
	{ cat "$tmp/out/full"; squeue -o "%A %T %r"; sinfo -N -o "%n %t %E"; tail -n 30 "$cluster/n2.log"; } | sed 's/^/# /'

# ------------------------------------------------------------------ kills and restarts
begin k1 games -w n1 --gpupart tpcs=30
until_true holds n1 1
scancel -s KILL -n k1
until_true nothing_held
ok $? "a job killed gives everything back"
rm -f "$tmp/out/k1.hold"
begin k2 games -w n1 --gpupart tpcs=30
until_true holds n1 1
id=$(id_of k2)
kill -KILL $(pgrep -f "slurmstepd: \[$id\.")
is "$(nr_held n1)" 1 "its slurmstepd killed: it has what its program uses"
scancel -n k2
until_true nothing_held
ok $? "and gives it back when Slurm ends it"
is "$(cluster_in n1 "$gpupart" ps --json | jq '.processes | length')" 0 "and its program has ended, without a kill"
rm -f "$tmp/out/k2.hold"
begin k3 games -w n1 --gpupart tpcs=30
until_true holds n1 1
kill -KILL "$(cat "$cluster/n1.pid")"
is "$(nr_held n1)" 1 "slurmd killed: the job has its TPCs"
rm -f "$tmp/out/k3.hold"
sleep 0.5
cluster_start_node n1
until_true nothing_held
ok $? "it ended meanwhile: slurmd is started and gives them back"
begin k4 games -w n1 --gpupart tpcs=30
until_true holds n1 1
# State that slurmctld has not saved before a kill is lost, and job ids are reused.
sleep 7
until_true [ "$cluster/state/job_state" -nt "$tmp/out/k4.hold" ]
# A health check gets no answer if slurmctld is killed during its squeue: such checks are
# excluded.
failed_checks() {
	grep -c 'health_check failed' "$cluster/n1.log"
}
failed_before=$(failed_checks)
kill -KILL "$(cat "$cluster/slurmctld.pid")"
sleep 0.5
cluster_start_ctl
until_true sh -c 'scontrol ping | grep -q UP'
until_true sh -c '! sinfo -h -N -o %t | grep -q "[*]"'
# Until n1 has registered again, slurmctld does not know its TPCs, and refuses jobs instead of
# queueing.
until_true as news srun --test-only -w n1 --gpupart tpcs=40 true 2>"$tmp/err"
begin k5 news -w n1 --gpupart tpcs=40
until_true is_state k5 PENDING
sleep 1
is "$(squeue -h -n k5 -o %T)" PENDING "slurmctld killed and restarted: what runs is counted"
sed 's/^/# /' "$tmp/out/k5.err"
rm -f "$tmp/out/k4.hold"
until_true holds n1 0
# Nodes that slurmctld lost get no jobs before it has contacted them.
scontrol reconfigure
end k4 k5
is "$(count "$(sed 's/ .*//' "$tmp/out/k5")")" 40 "and what waited runs"
failed_without=$(($(failed_checks) - failed_before))
begin k6 games -w n1 --gpupart tpcs=30
until_true holds n1 1
id=$(id_of k6)
cluster_kill_node n1
scontrol update nodename=n1 state=down reason=crash
sleep 0.5
scontrol update nodename=n1 state=resume
is "$(nr_held n1)" 1 "a node that crashed and did not boot has a note of a job that is none"
cluster_in n1 "$gpupart" slurm-node --check 2>"$tmp/err"
is "$? $(grep -c 'does not run on this node' "$tmp/err")" "1 1" "slurm-node --check finds it"
cluster_start_node n1
until_true holds n1 0
ok $? "slurmd begins, and takes it away"
rm -f "$tmp/out/k6.hold"
# State that remains while slurmd lives is removed by its health check.
begin k7 games -w n1 --gpupart tpcs=30
until_true holds n1 1
id=$(id_of k7)
note=0-$(printf %x "$id")
cluster_in n1 cp -a "/run/gpupart/jobs/$note" /run/gpupart/left
end k7
# With a program in a run inside the job, so that its page has another name.
cluster_in n1 setpriv --reuid=games --regid=games --clear-groups -- env HOME="$tmp/out" XDG_CACHE_HOME="$tmp/out/cache-games" \
	SLURM_JOB_ID="$id" "$gpupart" run -i "$cluster/h200-e.capture" -t 0-3 -- "$tmp/slurm-job" "$tmp/probe.ptx" 0 100 >"$tmp/out/own" 2>&1 &
own=$!
nr_processes() {
	cluster_in n1 "$gpupart" ps --json | jq '.processes | length'
}
one_process() {
	[ "$(nr_processes)" = 1 ]
}
until_true one_process
# slurmd is stopped until the record was seen: its health check may come earlier on a busy
# machine.
slurmd=$(cat "$cluster/n1.pid")
no_health_check() {
	[ -z "$(pgrep -P "$slurmd" -r D,R,S)" ]
}
kill -STOP "$slurmd"
until_true no_health_check
cluster_in n1 mv /run/gpupart/left "/run/gpupart/jobs/$note"
is "$(nr_held n1)" 1 "a note that was left while slurmd runs"
kill -CONT "$slurmd"
until_true holds n1 0
ok $? "goes by Slurm's health check"
wait $own
is "$? $(nr_processes)" "137 0" "and a program of that job, in a set of its own"
is $(($(failed_checks) - failed_without)) 0 "which never failed, though slurmd tells it no SLURM_CONF"
grep -A3 'health_check failed' "$cluster/n1.log" | sed 's/^/# /'
cluster_wait_idle
ok $? "all nodes are idle"
cluster_in n1 "$gpupart" slurm-node --check && cluster_in n2 "$gpupart" slurm-node --check
ok $? "slurm-node --check finds nothing"
is "$(grep -hc 'gpupart: ' "$cluster"/n1.log | paste -sd' ')" 0 "the plugin reported no error"
tap_done
