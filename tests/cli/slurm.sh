#!/bin/sh
# SPDX-License-Identifier: MIT
# gpupart slurm-conf and slurm-node without Slurm: output for captures, and refusals. tests/slurm
# tests jobs.
. "$(dirname "$0")/tap.subr"

conf() {
	"$gpupart" slurm-conf --node n7 --mem 141G "$@" 2>"$tmp/err"
}

is "$(conf --of gres -i sample:h200 -i sample:h200-e)" "NodeName=n7 Name=gpu Type=h200 File=/dev/nvidia0
NodeName=n7 Name=gpu Type=h200 File=/dev/nvidia1
NodeName=n7 Name=shard Count=66 File=/dev/nvidia0
NodeName=n7 Name=shard Count=66 File=/dev/nvidia1
NodeName=n7 Name=tpcmem Count=288768" "gres.conf: a line a GPU, its TPCs, all memory in MiB"
has "$(conf --of node -i sample:h200 -i sample:h200-e)" "Gres=gpu:h200:2,shard:132,tpcmem:288768" "slurm.conf: the same in sum"
is "$(conf --of boards -i sample:h200-e)" \
	'board { node = "n7", gpu = "h200", tpcs = 66, memory = 144384, ugpu = 33, gpc = 6, home = 8 }' "what fits a board"
has "$(conf --of cluster -i sample:h200)" "GresTypes=gpu,shard,tpcmem" "the cluster's lines"
has "$(conf --of plugstack -i sample:h200)" "gpupart_spank.so" "plugstack.conf names the plugin"
has "$(conf --of submit -i sample:h200)" "gpupart.submit(job_desc)" "job_submit.lua calls it"
is "$(conf --json -i sample:h200-e | jq -c '[.schema, .node, .gres, .simulated, .gpus[0].nr_tpcs]')" \
	'["gpupart/1","n7","gpu:h200:1,shard:66,tpcmem:144384",true,66]' "--json"
for piece in cluster plugstack submit; do
	is "$("$gpupart" slurm-conf --of $piece 2>&1)" "$(conf --of $piece -i sample:h200)" "--of $piece: also on a host without a GPU"
done
is "$(conf -i sample:h200 | grep -cE '^(#|--) (gres.conf|slurm.conf|gpupart-boards.lua|plugstack.conf|job_submit.lua)$')" 6 \
	"all of it, under the files' names"

# bad STATUS PART OPTIONS..
bad() {
	bad_status=$1
	bad_part=$2
	shift 2
	"$gpupart" "$@" >"$tmp/out" 2>"$tmp/err"
	is "$? $(wc -l <"$tmp/err")" "$bad_status 1" "$*: status $bad_status, a line"
	has "$(cat "$tmp/err")" "$bad_part" "it says $bad_part"
}
bad 2 "--of blue" slurm-conf --of blue -i sample:h200 --mem 1G
bad 2 "use --mem" slurm-conf -i sample:h200
bad 2 "--mem is only for captures" slurm-conf --mem 1G
bad 2 "--mem x" slurm-conf -i sample:h200 --mem x
bad 2 "--node 'a b'" slurm-conf --node 'a b' -i sample:h200 --mem 1G
bad 2 "nosuch" slurm-conf -i sample:nosuch --mem 1G
bad 2 "use only one of them" slurm-node --check --list
bad 2 "--json: needs --list" slurm-node --check --json
bad 2 "cannot be used with --clean, --check or --list" slurm-node --list -i sample:h200
is "$("$gpupart" slurm-node --list --json | jq -r .schema)" gpupart/1 "what jobs hold, as JSON"

# squeue, as --check calls it: a complete answer has jobs and their users; with any other answer
# nothing is changed.
mkdir "$tmp/bin"
squeue_says() {
	printf '#!/bin/sh\nprintf "%s"\nexit %d\n' "$1" "${2:-0}" >"$tmp/bin/squeue"
	chmod +x "$tmp/bin/squeue"
	PATH="$tmp/bin:$PATH" "$gpupart" slurm-node --check >"$tmp/out" 2>"$tmp/err"
	echo "$? $(grep -c 'did not list' "$tmp/err")"
}
is "$(squeue_says '17 1002\n4711 0\n')" "0 0" "squeue: two jobs"
is "$(squeue_says '')" "0 0" "squeue: none"
is "$(squeue_says '17 1002\n' 1)" "1 1" "squeue: fails in the middle"
is "$(squeue_says 'slurm_load_jobs error: Unable to contact slurm controller\n')" "1 1" "squeue: words"
is "$(squeue_says '17 1002\n47 10')" "1 1" "squeue: half a line"
is "$(squeue_says '99999999999 1002\n')" "1 1" "squeue: a number beyond any job's"
is "$(squeue_says '17\n')" "1 1" "squeue: a job without its user"

# A process's own value of its job is not trusted.
if ${CC:-cc} -o "$tmp/census" tests/cli/census.c -ldl 2>"$tmp/err"; then
	mkfifo "$tmp/hold"
	"$gpupart" run -i sample:h200-e -t 0-7 -- env GPUPART_JOB=0-3e7 GPUPART_NAME=999 \
		"$tmp/census" lib/confine/probe.ptx 0 wait <"$tmp/hold" >"$tmp/seen" 2>/dev/null &
	exec 9>"$tmp/hold"
	until [ -s "$tmp/seen" ]; do sleep 0.1; done
	is "$(squeue_says "17 $(id -u)\n") $(grep -c 'its job 999 has ended' "$tmp/err")" "0 0 0" \
		"a process that says it is of an ended job, of a user with a job here, fails nothing"
	is "$(squeue_says "17 $(($(id -u) + 1))\n") $(grep -c 'its job 999 has ended' "$tmp/err")" "1 0 1" \
		"of a user without one it is found"
	exec 9>&-
	wait $!
else
	skip "no C compiler"
fi

# slurmctld counts the words in the same way as the plugin (tests/fuzz/fuzz_slurm.c).
counted() {
	echo "$1" | lua -e 'local want, why = dofile("slurm/gpupart.lua").read(io.read())
		print(want and want.tpcs .. " " .. want.mem or "no: " .. why)'
}
if command -v lua >/dev/null 2>&1; then
	is "$(counted tpcs=16,mem=1.5G,gpcs,wait=60)" "16 1536" "job_submit.lua: TPCs and MiB"
	is "$(counted tpcs=16,mem=1)" "16 1" "a byte is counted as a MiB"
	has "$(counted tpcs=16,tpcs=3)" "no: " "a word twice is refused"
	has "$(counted mem=1G,tpcs=3,gpcs,gpcs)" "no: " "and one without a value"
	has "$(counted tpcs=16,mem=1Q)" "no: " "and a size that is none"
else
	skip "no lua"
fi
tap_done
