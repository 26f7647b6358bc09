#!/bin/sh
# SPDX-License-Identifier: MIT
# Completion records on a GPU, as TAP: the records of PyTorch's launches and graphs, compared with
# the launches, CUDA's events and torch.profiler; `stat -p`; the cost of reading and writing
# records; programs killed in the middle of kernels. An idle GPU; two and a half minutes.
# OUT=FOLDER stores the output and the figures, records.json. CASES= selects some of the parts;
# NR_KILLS= (40; NR_AT_ONCE= (8) of them at once) NR_PAIRS= (12) NR_LAUNCHES= (2000000; for order, by each of 8 programs)
# COST_SECONDS= (45) SET= (-t 0-59). With GPUPART_SIM=CAPTURE the parts without PyTorch run on the
# simulated GPU: their figures are meaningless.
build=$(cd "${BUILD:-build}" && pwd) || exit 1
here=$(cd "$(dirname "$0")" && pwd)
gpupart=$build/bin/gpupart
prog=$build/tests/gpu-records_cost
skip_all() { echo "1..0 # SKIP $1"; exit 77; }
sim=${GPUPART_SIM-}
[ -n "$sim" ] || [ -e /dev/nvidiactl ] || skip_all "no NVIDIA driver here"
tmp=$(mktemp -d) || exit 1
pids='' canaries=''
# shellcheck disable=SC2086 # several words
cleanup() {
	[ -z "$pids" ] || kill -KILL $pids 2>/dev/null
	rm -rf "$tmp" $canaries
}
trap cleanup EXIT
trap 'exit 1' INT TERM
out=${OUT:-$tmp/out}
mkdir -p "$out"
unset GPUPART_SIM GPUPART_SET GPUPART_GPU GPUPART_MPS GPUPART_PROFILE CUDA_INJECTION64_PATH CUDA_MPS_PIPE_DIRECTORY
export XDG_CACHE_HOME="$tmp/cache" GPUPART_RECORDS=1
# On the simulated GPU a kernel takes time, in parallel to the program.
[ -z "$sim" ] || export GPUPART_SIM_FAULTS=host-clock,host-thread
export GPUPART_LIBRARY="$build/lib/libgpupart.so.0" PYTHONPATH="$here/../../python"
PATH=$PATH:/usr/local/nvidia/bin
. "$here/cases.subr"
set_args="${sim:+-i $sim }${SET--t 0-59}"
# run ARGS: runs a program with records, in a set. runs SECONDS ARGS: the same with a time limit.
# shellcheck disable=SC2086 # several words
run() { "$gpupart" run $set_args "$@"; }
# shellcheck disable=SC2086 # several words
runs() { seconds=$1; shift; timeout -k 5 "$seconds" "$gpupart" run $set_args "$@"; }
figure() { echo "figure $1 $2" >>"$out/records-shell.txt"; echo "# $1: $2"; }
# until_said PATTERN FILE: waits until a line of the file matches; a minute at most.
until_said() {
	for _ in $(seq 600); do
		grep -q "$1" "$2" 2>/dev/null && return 0
		sleep 0.1
	done
	return 1
}
: >"$out/records-shell.txt"

python_case() {
	profile=''
	[ "$1" != profiler ] || profile=--profile
	runs 120 $profile -- python3 "$here/records.py" "$1" >"$out/records-$1.txt" 2>&1
	took "$1" $? "$out/records-$1.txt"
}

stat_case() {
	# On the simulated GPU another loop, of kernels of 1 ms.
	if [ -n "$sim" ]; then set -- "$prog" hold 60; else set -- python3 "$here/records.py" train 60; fi
	run -- "$@" >"$out/records-train.txt" 2>&1 &
	job=$!
	until_said '^training\|^holding' "$out/records-train.txt"
	ok $? "stat -p: a training loop: $(tail -n 1 "$out/records-train.txt")"
	pid=$(sed -n 's/^[a-z]*ing \([0-9]*\)$/\1/p' "$out/records-train.txt")
	pids=$pid
	timeout -k 5 60 "$gpupart" stat -p "$pid" -d 3 --json >"$out/records-stat.json" 2>"$out/records-stat.err"
	ok $? "stat -p: it ran to its end $(head -n 1 "$out/records-stat.err")"
	python3 - "$out/records-stat.json" >"$tmp/stat" <<-'END'
	import json, sys
	p = json.load(open(sys.argv[1]))["processes"][0]
	good = p["records"] and 0.5 < p["busy"]["least"] <= p["busy"]["most"] <= 1
	print(f"{'ok' if good else 'not ok'} - busy {p.get('busy')} {p['why'] or ''}")
	print("figure stat", json.dumps({k: v for k, v in p.items() if k != "kernels"}))
	END
	took "stat -p" $? "$tmp/stat"
	grep '^figure' "$tmp/stat" >>"$out/records-shell.txt"
	kill -KILL "$pid"
	wait $job 2>/dev/null
	pids=''
}

# steady_begin FILE ARGS: starts a program that runs during other tests: $steady, its $pci.
steady_begin() {
	steady_out=$1
	shift
	run "$@" -- "$prog" steady 600 counts >"$steady_out" 2>&1 &
	steady_run=$!
	until_said '^steady' "$steady_out" || return 1
	steady=$(sed -n 's/^steady \([0-9]*\) .*/\1/p' "$steady_out")
	pci=$(sed -n 's/^steady [0-9]* //p' "$steady_out")
	pids=$steady
}
# steady_end: ends it and compares its counts with its launches.
steady_end() {
	kill -TERM "$steady"
	wait "$steady_run"
	steady_status=$? pids=''
	said=$(grep '^counts' "$steady_out" || tail -n 2 "$steady_out")
	# shellcheck disable=SC2086 # words
	set -- $said
	[ $steady_status -eq 0 ] && [ "${3-}" -gt 0 ] && [ "$said" = \
		"counts launched $3 on 1 issued $3 ended $3 outstanding 0 unrecorded 0 unknown 0 graphs 0" ]
}

reading_case() {
	steady_begin "$tmp/steady"
	ok $? "reading: a program that launches: $(tail -n 1 "$tmp/steady")"
	timeout 60 "$prog" busy "$steady" "$pci" 200000 >"$tmp/busy" 2>&1 && ! grep -q ', 0 of' "$tmp/busy"
	ok $? "reading: gpupart_records_busy(): $(cat "$tmp/busy")"
	figure busy_call_ns "$(sed -n 's/^busy \([0-9.]*\) ns.*/\1/p' "$tmp/busy")"
	steady_end
	ok $? "reading: status $steady_status, $said"
}

# Processes with and without records take turns, and so does the order of the two.
cost_case() {
	: >"$out/records-cost.txt"
	work='launch 20000 5 graph 500 40 5 counted 30 700 5 counts'
	[ -z "$sim" ] || work='launch 500 3 graph 50 4 3 counted 30 7 3 counts'
	good=0
	for pair in $(seq "${NR_PAIRS:-12}"); do
		[ $(($(date +%s) - part_began)) -lt "${COST_SECONDS:-45}" ] || break
		[ $((pair % 2)) -eq 0 ] && order="0 1" || order="1 0"
		for records in $order; do
			# shellcheck disable=SC2086 # several words
			GPUPART_RECORDS=$records runs 30 -- "$prog" $work >"$tmp/cost" 2>"$tmp/err" || { good=1; cat "$tmp/err"; }
			sed "s/^/$pair $records /" "$tmp/cost" >>"$out/records-cost.txt"
		done
	done
	ok $good "cost: programs with records and without"
	python3 - "$out/records-cost.txt" >"$tmp/cost" 2>&1 <<-'END'
	import json, random, statistics, sys
	random.seed(1)
	times, counts = {}, {"0": [], "1": []}
	for line in open(sys.argv[1]):
	    pair, records, what, value, *rest = line.split()
	    if what == "counts":
	        counts[records].append([value, *rest])
	    else:
	        times.setdefault(what, {}).setdefault(pair, {}).setdefault(records, []).append(float(value))
	def ratio(pairs):
	    with_, without = (statistics.median(p[r] for p in pairs) for r in "10")
	    return with_ / without, with_, without
	for what, pairs in times.items():
	    pairs = [{r: statistics.median(v) for r, v in p.items()} for p in pairs.values() if len(p) == 2]
	    middle, with_, without = ratio(pairs)
	    many = sorted(ratio(random.choices(pairs, k=len(pairs)))[0] for _ in range(4000))
	    bound = many[int(0.95 * len(many))]
	    said = "within" if bound <= 1.01 else "ABOVE"
	    print(f"# ratio {what}: {middle:.4f}, upper 95% bound {bound:.4f}, {said} 1.01; "
	          f"{with_:.1f} ns with records, {without:.1f} without, {len(pairs)} pairs")
	    print("figure", f"cost_{what}", json.dumps({"ratio": middle, "upper95": bound, "with_ns": with_,
	          "without_ns": without, "pairs": len(pairs)}))
	# launched N on 1 issued N ended N outstanding 0 unrecorded 0 unknown 0 graphs 0
	exact = all(c[3] == "1" and c[1] == c[5] == c[7] and c[9:] == "0 unrecorded 0 unknown 0 graphs 0".split()
	            for c in counts["1"])
	off = all(c[3] == "0" for c in counts["0"])
	print(f"{'ok' if counts['1'] and exact else 'not ok'} - each launch and graph had a record:",
	      *(counts["1"] or [[]])[-1])
	print(f"{'ok' if counts['0'] and off else 'not ok'} - and none with GPUPART_RECORDS=0")
	END
	took cost $? "$tmp/cost"
	grep '^figure' "$tmp/cost" >>"$out/records-shell.txt"
}

# files: the files in the folder of state pages, except those of killed processes.
files() {
	"$gpupart" ps >/dev/null 2>&1		# listing removes the files of dead processes
	(cd "/dev/shm/gpupart-$(id -u)" 2>/dev/null && stat -c '%n %i %s %U %a' ./* 2>/dev/null)
}
# Zeros in pages that may have been those of records: late writes are detected.
canary() {
	file=$(mktemp "/dev/shm/gpupart-canary.XXXXXX") || return
	canaries="$canaries $file"
	head -c 4194304 /dev/zero >"$file" 2>/dev/null
}
# kills NAME ARGS: kills programs of run.
kills() {
	name=$1
	shift
	steady_begin "$tmp/steady-$name" "$@" || { ok 1 "$name: $(cat "$tmp/steady-$name")"; return; }
	before=$(files)
	left=${NR_KILLS:-40} killed=0 bad=0
	while [ "$left" -gt 0 ]; do
		batch=$((left < ${NR_AT_ONCE:-8} ? left : ${NR_AT_ONCE:-8})) holders='' jobs=''
		for i in $(seq $batch); do
			rm -f "$tmp/hold-$i"
			run "$@" -- "$prog" hold 60 >"$tmp/hold-$i" 2>&1 &
			jobs="$jobs $!"
		done
		for i in $(seq $batch); do
			until_said '^holding' "$tmp/hold-$i" || { bad=$((bad + 1)); sed 's/^/# | /' "$tmp/hold-$i"; }
			holders="$holders $(sed -n 's/^holding //p' "$tmp/hold-$i")"
		done
		for i in $holders; do
			sleep "0.00$((killed % 10))"
			kill -KILL "$i" && killed=$((killed + 1))
		done
		canary
		for i in $jobs; do
			wait "$i" 2>/dev/null
			[ $? -eq 137 ] || bad=$((bad + 1))
		done
		canary
		left=$((left - batch))
	done
	[ $bad -eq 0 ] && [ $killed -eq "${NR_KILLS:-40}" ]
	ok $? "$name: $killed programs killed in the middle of kernels"
	files >"$tmp/after"
	echo "$before" | diff - "$tmp/after" >"$tmp/diff"
	ok $? "$name: files of others are as they were, those of the dead are gone: $(wc -l <"$tmp/after") files$(sed 's/^/; /' "$tmp/diff" | tr -d '\n')"
	good=0
	for file in $canaries; do
		# tr prints the bytes that are not zero.
		[ "$(tr -d '\0' <"$file" | wc -c)" -eq 0 ] || good=1
	done
	# shellcheck disable=SC2086 # files
	rm -f $canaries
	canaries=''
	ok $good "$name: nothing was written into memory that was freed"
	steady_end
	ok $? "$name: the program beside them: status $steady_status, $said"
	figure "$name" "$killed"
	[ $steady_status -eq 0 ] && return
	tail -n 3 "$steady_out" | sed 's/^/# | /'
}
kills_case() {
	kills kills
}
kills_mps_case() {
	if [ -z "$sim" ] && command -v nvidia-cuda-mps-control >/dev/null; then
		kills kills_mps --mps
		# The effect of MPS itself on the other program.
		[ "$steady_status" -eq 0 ] ||
			(GPUPART_RECORDS=0; kills kills_mps_off --mps) | sed 's/^/# GPUPART_RECORDS=0: /'
	else
		skip "kills under MPS: no nvidia-cuda-mps-control here"
	fi
}

# In each process a thread watches the cells; MPS, so that all run at once.
order_case() {
	launches=${NR_LAUNCHES:-2000000} jobs='' mps='' good=0
	[ -n "$sim" ] || ! command -v nvidia-cuda-mps-control >/dev/null || mps=--mps
	[ -z "$sim" ] || launches=2000
	for i in 1 2 3 4 5 6 7 8; do
		runs 300 $mps -- "$prog" order "$launches" counts >"$tmp/order-$i" 2>&1 &
		jobs="$jobs $!"
	done
	for i in $jobs; do
		wait "$i" || good=1
	done
	cat "$tmp"/order-[1-8] >"$out/records-order.txt"
	[ $good -eq 0 ] && [ "$(grep -c '^order' "$out/records-order.txt")" -eq 8 ]
	ok $? "order: 8 programs with $launches launches each $(grep -v '^order\|^counts' "$out/records-order.txt" | head -n 2)"
	# shellcheck disable=SC2046 # words
	set -- $(awk '/^order/ { l += $3; s += $5; a += $7; w += $9 } END { printf "%d %d %d %d", l, s, a, w }' "$out/records-order.txt")
	[ "$2" -gt 0 ] && [ "$3" -gt 0 ] && [ "$4" -eq 0 ]
	ok $? "order: of $1 launches $2 records were seen, $3 of them awaited; in $4 the time came after the payload"
	figure order "{\"launched\": $1, \"seen\": $2, \"awaited\": $3, \"wrong\": $4}"
}

# If records are not possible, this prints the reason; it proves them for all later parts.
# shellcheck disable=SC2086 # several words
timeout -k 5 60 "$gpupart" doctor ${sim:+-i $sim} >"$out/records-doctor.txt" 2>&1
grep -qE '^ok +records ' "$out/records-doctor.txt"
ok $? "doctor: $(grep -E '^[a-z]+ +records ' "$out/records-doctor.txt")"
torch=$(python3 -c 'import torch; print(torch.__version__)' 2>/dev/null)
for part in ${CASES-${PARTS-counts graphs parts times profiler stat reading cost order kills kills_mps}}; do
	part_began=$(date +%s)
	case $part in
	counts|graphs|parts|times|profiler)
		if [ -z "$sim" ] && [ -n "$torch" ]; then
			python_case "$part"
		else
			skip "$part: no PyTorch here"
		fi
		;;
	stat)
		if [ -n "$sim$torch" ]; then
			stat_case
		else
			skip "stat: no PyTorch here"
		fi
		;;
	reading|cost|order|kills|kills_mps) "${part}_case" ;;
	*) ok 1 "$part is no part" ;;
	esac
	echo "# $part took $(($(date +%s) - part_began)) s"
done
cat "$out"/records-*.txt | sed -n 's/^figure //p' | python3 -c '
import json, sys
figures = {}
for line in sys.stdin:
    name, value = line.split(None, 1) if " " in line.strip() else (line.strip(), "null")
    figures[name] = json.loads(value)
json.dump(figures, open(sys.argv[1], "w"), indent=1)' "$out/records.json"
ok $? "figures: records.json"
cases_done
