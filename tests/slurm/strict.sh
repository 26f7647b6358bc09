#!/bin/bash
# SPDX-License-Identifier: MIT
# Strict jobs on a node of a simulated GPU: by plugstack.conf, and by the node's
# /etc/gpupart/config. A job that stays inside its TPCs runs; one that leaves them or cannot be
# confined is refused; and changes of its environment have only the effects in
# Documentation/user/slurm.md.
. "$(dirname "$0")/../cli/tap.subr"
. tests/slurm/cluster.subr

prog=$tmp/strict_prog
missing=$(cluster_missing)
[ -n "$missing" ] || ${CC:-cc} -o "$prog" tests/gpu/strict_prog.c -ldl || missing="no C compiler"
if [ -n "$missing" ]; then
	skip "$missing"
	tap_done
fi
cluster_nodes="n1=h200-e"
trap 'cluster_stop; rm -rf "$tmp"' EXIT
mkdir -m 1777 "$tmp/out"
cluster_start
status=$?
ok $status "munge, slurmctld and slurmd, a simulated GPU"
[ $status -eq 0 ] || { sed 's/^/# /' "$cluster/start.log"; tap_done; }
cp "$BUILD/tests/slurm-job" lib/confine/probe.ptx "$tmp"
# A private /etc of the node.
cluster_in n1 sh -c 'cp -a /etc /run/etc && mkdir -p /run/etc/gpupart && mount --bind /run/etc /etc'
ok $? "the node has an /etc of its own"

# node WORDS TEXT: sets the plugin's arguments in plugstack.conf, and the node's settings.
node() {
	sed -i "s|\(gpupart_spank.so\).*|\1 $1|" "$cluster/plugstack.conf"
	printf "$2" | cluster_in n1 sh -c 'cat >/etc/gpupart/config'
}

# job OPTIONS COMMAND..: a job of a user who is not root. Sets $status, $err, and $out in one
# line.
job() {
	(cd "$tmp/out" && exec setpriv --reuid=games --regid=games --clear-groups -- \
		env HOME="$tmp/out" srun -w n1 "$@" >"$tmp/job.out" 2>"$tmp/job.err")
	status=$?
	out=$(paste -sd' ' "$tmp/job.out")
	err=$(cat "$tmp/job.err")
}

# Two TPCs have no room for a cluster of 8 blocks: x8 gets more.
small="--gpupart tpcs=2"
begun="cuInit=0 context=0"
left="$begun x8=0 kernel=800"
refused="cuInit=100 context=100 begin=100"
no_cuda="gpupart: strict: this process cannot use CUDA, because its launches are not confined"

# ------------------------------------------------------------------ a node that is not strict
node "" ""
job $small "$prog" x8 kernel
is "$status $out" "0 $begun x8=0 kernel=0" "not strict: a job that left its TPCs goes on"
has "$err" "gpupart: 1 launch ran outside of TPCs" "and says so at its end"
job $small sh -c "$gpupart run -t \$GPUPART_SET --strict -- $prog x8 kernel"
is "$status $out" "123 $begun x8=0 kernel=800" "run --strict in a job asks for one program"
job $small env GPUPART_SIM_FAULTS=no-table "$prog" kernel
is "$status $out" "0 $begun kernel=0" "and one that cannot be confined uses the GPU"
has "$err" "gpupart: this program's launches are not confined" "and gets a message"

# ------------------------------------------------------------------ by plugstack.conf
node strict ""
job --gpupart tpcs=8,cluster=8 "$prog" kernel x8 graph coop8 legacy sync
is "$status $out" "0 $begun kernel=0 x8=0 graph=0 coop8=0 legacy=0 sync=0" \
	"strict: a job that stays inside of its TPCs ends with 0"
is "$(grep -c "outside of" "$tmp/job.err")" 0 "and says nothing"
job $small sh -c "$tmp/slurm-job $tmp/probe.ptx 0 0; echo \$GPUPART_SET"
is "$status $out" "0 ${out##* } 0 ${out##* }" "and is seen on its TPCs alone"
job $small "$prog" capture x8 kernel legacy x2 coop4 graph sync
is "$status $out" "1 $begun capture=0 x8=0 kernel=800 legacy=800 x2=800 coop4=800 graph=800 sync=0" \
	"after a launch outside of them all later ones are refused, and the program has its own status"
has "$err" " (simulated): the first kernel was work_cluster; strict: later launches failed with error 800" "and says at its end why"
job $small -n 2 --overcommit "$prog" x8 kernel
is "$(sort "$tmp/job.out" | uniq -c | tr -s ' ' | paste -sd,)" " 2 $begun, 2 kernel=800, 2 x8=0" \
	"each process has a first launch of its own"

# The counters of a refused process, while it lives.
(cd "$tmp/out" && exec setpriv --reuid=games --regid=games --clear-groups -- \
	env HOME="$tmp/out" srun -w n1 -J held $small "$prog" x8 x8 kernel legacy sleep600000 >held 2>/dev/null) &
held=$!
tries=0
until grep -q legacy "$tmp/out/held" || [ $tries -ge 300 ]; do
	tries=$((tries + 1))
	sleep 0.1
done
is "$(cluster_in n1 "$gpupart" ps --json | jq -c '.processes[].counters | [.launches, .confined, .widened_cluster]')" "[1,0,1]" \
	"nothing was launched after the first one"
scancel -n held
wait $held

for fault in no-table table-size=48; do
	job $small env GPUPART_SIM_FAULTS=$fault "$prog" kernel
	is "$status $out" "4 $refused" "$fault: it cannot be confined: cuInit fails"
	has "$err" "$no_cuda: " "and gets the reason"
done

# ------------------------------------------------------------------ a job's own environment
cat >"$tmp/out/ways" <<'E'
#!/bin/sh
# ways PROGRAM ARGS..: runs it in one environment after the other, one line each.
way() {
	name=$1
	shift
	echo "$name: $("$@" 2>&1 | paste -sd' ')"
}
sim="LD_LIBRARY_PATH=$LD_LIBRARY_PATH GPUPART_SIM=$GPUPART_SIM"
way GPUPART_STRICT env -u GPUPART_STRICT "$@"
way GPUPART_STRICT=0 env GPUPART_STRICT=0 "$@"
way GPUPART_DISABLE=1 env GPUPART_DISABLE=1 "$@"
way GPUPART_SET env -u GPUPART_SET -u GPUPART_JOB -u GPUPART_STRICT "$@"
way LD_PRELOAD env -u LD_PRELOAD "$@"
way CUDA_INJECTION64_PATH env -u CUDA_INJECTION64_PATH "$@"
way "CUDA_INJECTION64_PATH alone" env -i $sim "CUDA_INJECTION64_PATH=$CUDA_INJECTION64_PATH" "$@"
way "LD_PRELOAD alone" env -i $sim "LD_PRELOAD=$LD_PRELOAD" "$@"
way "another tool" env -i $sim "LD_PRELOAD=$LD_PRELOAD" CUDA_INJECTION64_PATH=/nonexistent/tool.so "$@"
way both env -u LD_PRELOAD -u CUDA_INJECTION64_PATH "$@"
way none env -i $sim "$@"
E
chmod 755 "$tmp/out/ways"
said() { sed -n "s/^$1: //p" "$tmp/job.out" | sed 's/TPCs [0-9,-]* /TPCs LIST /'; }
reported="$left gpupart: 1 launch ran outside of TPCs LIST (simulated): the first kernel was work_cluster; strict: later launches failed with error 800"
# try_ways ORIGIN: the effects of a job's changes to its environment, if ORIGIN makes the job
# strict.
try_ways() {
	job $small "$tmp/out/ways" "$prog" x8 kernel
	for way in GPUPART_STRICT GPUPART_STRICT=0 GPUPART_DISABLE=1 GPUPART_SET LD_PRELOAD CUDA_INJECTION64_PATH; do
		is "$(said $way)" "$reported" "a job changes or removes $way: strict by $1"
	done
	for way in CUDA_INJECTION64_PATH LD_PRELOAD; do
		is "$(said "$way alone")" "$reported" "an environment of the job's own with $way alone: strict by $1"
	done
	is "$(said "another tool" | sed 's/.*\(cuInit=\)/\1/')" "$reported" "and with another tool in the driver's place"
	for way in both none; do
		is "$(said $way)" "$begun x8=0 kernel=0" "without both variables ($way): not confined, as slurm.md says"
	done
	job $small --export=LD_PRELOAD=,CUDA_INJECTION64_PATH=,GPUPART_STRICT=0,GPUPART_DISABLE=1 "$prog" x8 kernel
	is "$status $out" "1 $left" "what srun --export brings is replaced"
}
try_ways plugstack.conf

# ------------------------------------------------------------------ by the node's settings
node "" "strict = yes\n"
job --gpupart tpcs=8,cluster=8 "$prog" kernel x8 sync
is "$status $out" "0 $begun kernel=0 x8=0 sync=0" "strict = yes: a job that stays inside ends with 0"
job $small "$prog" x8 kernel
is "$status $out" "1 $left" "one that left its TPCs is refused"
job $small env GPUPART_SIM_FAULTS=no-table "$prog" kernel
is "$status $out" "4 $refused" "one that cannot be confined gets no CUDA"
has "$err" "$no_cuda: " "and gets the reason"
try_ways "strict = yes"
is "$(grep -c /etc/gpupart/config "$cluster/n1.log")" 0 "slurmd's log has nothing of it"
node "" "strict = maybe\n"
job $small "$prog" x8 kernel
is "$status $out" "1 $left" "a setting that is not understood may ask for it: strict"
grep -q "/etc/gpupart/config:1: strict = maybe: must be yes or no" "$cluster/n1.log"
ok $? "and slurmd's log has it"
node "" "strict = yes\n"
cluster_in n1 chmod 666 /etc/gpupart/config
job $small "$prog" x8 kernel
is "$status $out" "0 $begun x8=0 kernel=0" "a file that others can write is ignored"
grep -q "/etc/gpupart/config is ignored" "$cluster/n1.log"
ok $? "and slurmd's log has it, too"
tap_done
