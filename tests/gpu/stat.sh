#!/bin/sh
# SPDX-License-Identifier: MIT
# gpupart stat on a GPU, as TAP: programs of known kinds (stat_prog.c), two CPU-bound, two
# GPU-bound, two with copies, and what is not to be broken; the same without stat beside it.
# Figures are comments. OUT=FOLDER keeps the JSON.
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
# holds NAME EXPRESSION WORDS: of the JSON d of that run.
holds() {
	python3 -c "
import json, sys
d = json.load(open(sys.argv[1]))
t = d['total']; s = d['shares']; g = d['processes'][0]['gpus'][0]
sys.exit(0 if ($2) else 1)" "$out/stat-$1.json"
	ok $? "$1: $3"
}
# measured NAME ARGS: stat of them, its figures, and that the program's status came through.
measured() {
	name=$1
	shift
	timeout -k 5 120 "$gpupart" stat --json -o "$out/stat-$name.json" "$@"
	ok $? "$name: ran to its end"
	python3 -c "
import json, sys
d = json.load(open(sys.argv[1]))
t = d['total']; s = d['shares']
print('# %s: %s: %s' % (sys.argv[2], d['verdict'], d['why']))
print('#   %.2f s, %.0f launches/s, depth median %d mean %.1f max %d, CPU waits %.3f launches %.3f, measuring %.3f' %
      (d['seconds'], d['launches_per_second'], s['depth_median'], s['depth_mean'], s['depth_max'],
       s['cpu_waits'], s['cpu_launches'], s['measuring']))
print('#   ' + ', '.join('%s %.3f' % (k, s[k]) for k in
      ('busy', 'kernels', 'copies', 'kernels_and_copies', 'starved', 'starved_while_cpu_waits', 'held', 'queue_full')))
for p in d['processes']:
    for g in p['gpus']:
        print('#   timed %d untimed %d in %.3f s, unresolved %d' %
              (g['timed'], g['untimed'], g['stretches_seconds'], p['unresolved']))
for a in d['advice']:
    print('#   - ' + a)" "$out/stat-$name.json" "$name"
}

# CPU-bound: work on the host between launches; a wait after each launch of nothing.
measured host -- "$prog" host 5000
holds host "d['verdict'] == 'CPU-bound' and t['kernels'] == 5000" "CPU-bound"
holds host "0.05 < s['busy'] < 0.2 and s['depth_median'] == 0" "busy 20 of 200 us"
measured wait -- "$prog" wait 50000
holds wait "d['verdict'] == 'CPU-bound' and t['waits'] == 50000" "CPU-bound"
holds wait "s['cpu_waits'] > 0.2 and s['measuring'] < 0.1" "the CPU waits, too; measuring costs little"

# GPU-bound: long kernels queued deep; big ones that wait for memory.
measured deep -- "$prog" deep 2000
holds deep "d['verdict'] == 'GPU-bound' and s['busy'] > 0.97" "GPU-bound"
holds deep "s['depth_median'] > 200 and 1.8 < g['kernels_seconds'] < 2.2" "a deep queue, 2000 of 1 ms, most of them timed"
holds deep "s['cpu_waits'] + s['queue_full'] + s['cpu_launches'] > 0.9" "the CPU waits for it"
measured memory -- "$prog" memory 3000
holds memory "d['verdict'] == 'GPU-bound' and s['busy'] > 0.95" "GPU-bound"
measured poll -- "$prog" poll 500
holds poll "d['verdict'] == 'GPU-bound' and t['queries'] > 1000 and s['cpu_waits'] > 0.8" \
	"GPU-bound, the CPU asks again and again"

# Copies: in a stream of their own beside kernels, and between kernels.
measured beside -- "$prog" beside 300
holds beside "t['copies']['to_gpu'] == {'count': 300, 'bytes': 300 * (64 << 20)}" "its copies are counted"
holds beside "d['verdict'] == 'GPU-bound' and s['kernels_and_copies'] > 0.8 * s['copies'] > 0.1" \
	"GPU-bound, its copies run beside kernels"
measured serial -- "$prog" serial 300
holds serial "d['verdict'] == 'copy-bound' and s['kernels_and_copies'] < 0.05 * s['copies']" \
	"copy-bound, no copy runs beside a kernel"
holds serial "any('stream of their own' in a for a in d['advice'])" "and it is told"

# What is not to be broken: captures, threads, contexts that end, ends without waiting.
measured graph -- "$prog" graph 1000
holds graph "t['graphs'] == 1000 and t['kernels'] == 0 and d['verdict'] == 'GPU-bound'" "graphs"
holds graph "0.85 < g['kernels_seconds'] < 1.1" "1000 of 1 ms, most of them timed"
measured threads -- "$prog" threads 500
holds threads "t['kernels'] == 1000 and d['verdict'] == 'GPU-bound'" "two threads"
measured contexts -- "$prog" contexts 200
holds contexts "t['kernels'] == 400 and sum(g['timed'] for g in d['processes'][0]['gpus']) == 400" \
	"two contexts, one after the other"
measured fetch -- "$prog" fetch 2000
holds fetch "t['copies']['from_gpu'] == {'count': 2000, 'bytes': 2048000}" "copies the CPU waits for"
measured exit -- "$prog" deep 200 _exit
holds exit "t['kernels'] == 200 and d['verdict'] == 'GPU-bound'" "_exit"
measured two -- "$prog" deep 200 two
holds two "len(d['processes']) == 2 and t['kernels'] == 400" "two processes"
timeout -k 5 60 "$gpupart" stat --json -o "$out/stat-kill.json" -- "$prog" deep 100 kill
[ $? -eq 137 ]
ok $? "kill: status 137"
holds kill "d['signal'] == 9 and t['kernels'] == 100" "a signal that cannot be caught"

# In a set: half of the TPCs, and what the advice says of it.
measured set -n 16 -- "$prog" memory 1000
holds set "d['nr_tpcs'] == 16 and d['verdict'] == 'GPU-bound'" "in a set"

# What measuring costs: programs timed by themselves, without and with, three times each.
for kind in "wait 50000" "deep 1000" "host 3000"; do
	python3 - "$gpupart" "$prog" "${kind% *}" "${kind#* }" <<'END_PYTHON'
import subprocess, sys, time
gpupart, prog, kind, nr = sys.argv[1:]
def seconds(command):
    best = 1e9
    for _ in range(3):
        start = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        best = min(best, time.monotonic() - start)
    return best
empty = seconds([prog, 'host', '1']), seconds([gpupart, 'stat', '--', prog, 'host', '1'])
plain = seconds([prog, kind, nr]) - empty[0]
stat = seconds([gpupart, 'stat', '--', prog, kind, nr]) - empty[1]
print('# %s %s: %.3f s without, %.3f s with: %+.1f%%' % (kind, nr, plain, stat, 100 * (stat / plain - 1)))
sys.exit(0 if stat < 1.25 * plain + 0.05 else 1)
END_PYTHON
	ok $? "${kind% *}: measuring costs less than a quarter"
done
echo "1..$nr"
exit $failed
