#!/bin/sh
# SPDX-License-Identifier: MIT
# gpupart stat on a GPU, as TAP: programs of known kinds (stat_prog.c), two CPU-bound, two
# GPU-bound, two with copies, each way to end, and the cost relative to run. Figures are comments.
# OUT=FOLDER stores the JSON.
build=${BUILD:-build}
gpupart=$build/bin/gpupart
prog=$build/tests/gpu-stat_prog
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT INT TERM
out=${OUT:-$tmp}
mkdir -p "$out"
export XDG_CACHE_HOME="$tmp/cache"
unset GPUPART_SET GPUPART_GPU GPUPART_STAT CUDA_INJECTION64_PATH
if [ ! -e /dev/nvidiactl ]; then
	echo "1..0 # SKIP no NVIDIA driver here"
	exit 77
fi
nr=0 failed=0
ok() {
	nr=$((nr + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $nr - $2"
	else
		failed=1
		echo "not ok $nr - $2"
	fi
}
# holds NAME EXPRESSION WORDS: checks it with the JSON d of that run, its first process p, its
# kernels k.
holds() {
	python3 -c "
import json, sys
d = json.load(open(sys.argv[1]))
p = d['processes'][0]; k = p['kernels']
sys.exit(0 if ($2) else 1)" "$out/stat-$1.json"
	ok $? "$1: $3"
}
# measured NAME ARGS: runs stat, prints its figures, and checks that the program's status is
# returned.
measured() {
	name=$1
	shift
	timeout -k 5 120 "$gpupart" stat --json -o "$out/stat-$name.json" "$@"
	ok $? "$name: ran to its end"
	python3 -c "
import json, sys
d = json.load(open(sys.argv[1]))
print('# %s: %s: %s; %.2f s, CPU waits %.3f s' %
      (sys.argv[2], d['verdict'], d['why'], d['seconds'], d['wait_seconds']))
for p in d['processes']:
    if p['records']:
        print('#   %d of %d launches ended, %.0f a second, missed %d, unrecorded %d, outstanding mean %.1f max %d' %
              (p['launches_ended'], p['launches'], p['launches_per_second'], p['missed'],
               p['unrecorded'], p['outstanding_mean'], p['outstanding_max']))
    for k in p.get('kernels', []):
        print('#   %s: %d, mean %.2f to %.2f us' %
              (k['name'], k['count'], 1e6 * k['mean_seconds']['least'], 1e6 * k['mean_seconds']['most']))
" "$out/stat-$name.json" "$name"
}
# counted NAME NR: all launches ended, and all are in the table of kernels except missed ones.
counted() {
	holds "$1" "p['launches'] == p['launches_ended'] == $2 and sum(i['count'] for i in k) == $2 - p['missed']" \
		"$2 launches, all of them"
}

# CPU-bound: work on the host between launches; a wait after each empty launch.
measured host -- "$prog" host 5000
counted host 5000
holds host "d['verdict'] == 'CPU-bound' and d['busy']['most'] < 0.25" "CPU-bound, busy 20 of 200 us"
holds host "20 < 1e6 * k[0]['mean_seconds']['most'] < 40 and k[0]['name'] == 'gpupart_census'" "its kernel: 20 us"
measured wait -- "$prog" wait 50000
counted wait 50000
holds wait "d['waits'] == 50000 and d['wait_seconds'] > 0.2 * p['seconds']" "the CPU waits, too"

# GPU-bound: many long kernels in the queue; large kernels that wait for memory.
measured deep -- "$prog" deep 2000
counted deep 2000
holds deep "d['verdict'] == 'GPU-bound' and d['busy']['least'] > 0.97" "GPU-bound"
holds deep "p['outstanding_mean'] > 200 and 0.99 < 1e3 * k[0]['mean_seconds']['most'] < 1.05" "a deep queue, 2000 of 1 ms"
measured memory -- "$prog" memory 3000
counted memory 3000
holds memory "d['verdict'] == 'GPU-bound' and k[0]['name'] == 'move'" "GPU-bound"
measured poll -- "$prog" poll 500
holds poll "d['verdict'] == 'GPU-bound' and d['waits'] == 0" "GPU-bound, the CPU asks again and again"

# Copies: in a separate stream next to kernels, and between kernels.
measured beside -- "$prog" beside 300
holds beside "d['copies']['to_gpu'] == {'count': 300, 'bytes': 300 * (64 << 20)}" "its copies are counted"
holds beside "d['verdict'] == 'GPU-bound'" "GPU-bound, its copies run beside kernels"
measured serial -- "$prog" serial 300
counted serial 300
holds serial "'copies (300), which are not timed' in d['why']" "copies between kernels are reported"

# Operations that must still work: captures, threads, contexts that end, ends without waiting.
measured graph -- "$prog" graph 1000
holds graph "p['launches_ended'] == 1000 and p['graphs'] == 0 and d['verdict'] == 'GPU-bound'" "graphs"
holds graph "0.98 < sum(i['count'] * i['mean_seconds']['most'] for i in k) < 1.1" "1000 of 1 ms"
measured threads -- "$prog" threads 500
counted threads 1000
measured contexts -- "$prog" contexts 200
counted contexts 400
measured fetch -- "$prog" fetch 2000
counted fetch 2000
holds fetch "d['copies']['from_gpu'] == {'count': 2000, 'bytes': 2048000} and d['waits'] == 2000" "copies the CPU waits for"
measured exit -- "$prog" deep 200 _exit
counted exit 200
measured one -- "$prog" deep 1 _exit
counted one 1
measured two -- "$prog" deep 200 two
holds two "[q['launches_ended'] for q in d['processes']] == [200, 200]" "two processes"
timeout -k 5 60 "$gpupart" stat --json -o "$out/stat-kill.json" -- "$prog" deep 100 kill
[ $? -eq 137 ]
ok $? "kill: status 137"
counted kill 100
measured leave -- "$prog" leave 100
holds leave "p['launches'] == 100 and p['launches_ended'] + p['outstanding'] == 100" "it ends without waiting"
timeout -k 5 60 env GPUPART_RECORDS=0 "$gpupart" stat -- "$prog" deep 1 2>"$tmp/refused"
[ $? -eq 125 ] && grep -q GPUPART_RECORDS=0 "$tmp/refused"
ok $? "without records it is refused"

# In a set.
measured set -n 16 -- "$prog" memory 1000
holds set "d['set']['nr_tpcs'] == 16 and d['verdict'] == 'GPU-bound'" "in a set"

# The cost: programs that time their own work, alternately under run with records and under stat.
for kind in "wait 200000" "deep 3000" "host 10000" "fetch 100000" "graph 3000"; do
	GPUPART_RECORDS=1 python3 - "$gpupart" "$prog" "${kind% *}" "${kind#* }" <<'END_PYTHON'
import subprocess, sys
gpupart, prog, kind, nr = sys.argv[1:]
def seconds(*command):
    ran = subprocess.run([gpupart, *command, '--', prog, kind, nr, 'time'], check=True,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return float(ran.stdout)
under = [], []
for _ in range(5):
    under[0].append(seconds('run', '-n', '100%'))
    under[1].append(seconds('stat', '-n', '100%'))
run, stat = min(under[0]), min(under[1])
print('# %s %s: %.4f s under run, %.4f s under stat: %.4f of its speed' % (kind, nr, run, stat, run / stat))
sys.exit(0 if run / stat >= 0.995 else 1)
END_PYTHON
	ok $? "${kind% *}: it keeps 0.995 of its speed"
done
echo "1..$nr"
exit $failed
