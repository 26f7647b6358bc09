#!/bin/sh
# SPDX-License-Identifier: MIT
# Profilers inside a partition, as TAP: torch.profiler under `run --profile`, and for comparison
# the same program without gpupart in a green context of the same TPCs; CUPTI's callbacks, a
# hundred subscriptions; CUPTI before gpupart; and without --profile. Needs an idle GPU with
# PyTorch and Triton; takes a minute. OUT=FOLDER stores the measurements.
build=$(cd "${BUILD:-build}" && pwd) || exit 1
here=$(cd "$(dirname "$0")" && pwd)
skip_all() { echo "1..0 # SKIP $1"; exit 77; }
[ -e /dev/nvidiactl ] || skip_all "no NVIDIA driver here"
python3 -c 'import torch.cuda.green_contexts, triton' 2>/dev/null ||
	skip_all "no PyTorch with green contexts and Triton here"
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM
out=${OUT:-$tmp/out}
mkdir -p "$out"
export XDG_CACHE_HOME="$tmp/cache" TRACE="$tmp/trace.json" GPUPART_PYTHON="$here/../../python"
export GPUPART_LIBRARY="$build/lib/libgpupart-manage.so.0"
unset GPUPART_SET GPUPART_GPU GPUPART_PROFILE CUDA_INJECTION64_PATH
gpupart=$build/bin/gpupart
. "$here/cases.subr"
profile() { timeout -k 5 100 "$@" >"$tmp/json" 2>"$tmp/err" || { cat "$tmp/err" >&2; return 1; }; }

profile python3 "$here/profiled.py" profile 32
ok $? "torch.profiler without gpupart, in a green context of 32 SMs"
cp "$tmp/json" "$out/profile-green.json"
# The TPCs of those SMs.
"$gpupart" topology --json >"$tmp/topology.json"
tpcs=$(python3 -c '
import json, sys
sms = set(json.load(open(sys.argv[1]))["sms"])
tpcs = [t for t in json.load(open(sys.argv[2]))["tpcs"] if sms & set(t["smids"])]
print(",".join(str(t["tpc"]) for t in tpcs))' "$out/profile-green.json" "$tmp/topology.json")
[ -n "$tpcs" ]
ok $? "its TPCs: $tpcs"
for turn in 1 2; do
	profile "$gpupart" run --profile -t "$tpcs" -- python3 "$here/profiled.py" profile
	ok $? "torch.profiler under run --profile -t $tpcs, turn $turn"
	cp "$tmp/json" "$out/profile-run-$turn.json"
	cp "$tmp/err" "$out/profile-run-$turn.err"
	python3 - "$out/profile-green.json" "$out/profile-run-$turn.json" >"$tmp/compared" 2>&1 <<-'END'
	import json, sys
	green, run = (json.load(open(name)) for name in sys.argv[1:])
	def ok(good, words):
	    print(f"{'ok' if good else 'not ok'} - {words}")
	ok(run["sms"] == green["sms"], f"the same {len(run['sms'])} SMs")
	counts = [{k: v["count"] for k, v in one["kernels"].items()} for one in (green, run)]
	ok(counts[0] and counts[0] == counts[1], f"the same kernels and counts: {sorted(counts[1].values())}")
	for name, of in green["kernels"].items():
	    ratio = run["kernels"].get(name, {"median_ns": 0})["median_ns"] / of["median_ns"]
	    ok(0.98 <= ratio <= 1.02, f"{ratio:.4f} of its median of {of['median_ns']:.0f} ns: {name[:60]}")
	END
	took "against the green context, turn $turn" $? "$tmp/compared"
done
timeout -k 5 100 "$gpupart" run -t "$tpcs" -- python3 "$here/profiled.py" profile >"$tmp/json" 2>"$tmp/err"
[ "$(python3 -c 'import json, sys; print(len(json.load(open(sys.argv[1]))["kernels"]))' "$tmp/json")" = 0 ]
ok $? "without --profile the trace has no kernel"
sms=$(python3 -c 'import json, sys; print(*json.load(open(sys.argv[1]))["sms"], sep=",")' "$out/profile-green.json")
timeout -k 5 100 "$gpupart" run --profile -t "$tpcs" -- python3 "$here/profiled.py" callbacks "$sms" >"$out/profile-callbacks.txt" 2>&1
took "CUPTI's callbacks" $? "$out/profile-callbacks.txt"
timeout -k 5 100 python3 "$here/profiled.py" first >"$out/profile-first.txt" 2>&1
took "CUPTI before gpupart" $? "$out/profile-first.txt"
"$gpupart" doctor >"$out/profile-doctor.txt" 2>&1
grep -qE '^ok +profilers ' "$out/profile-doctor.txt"
ok $? "doctor: $(grep -E '^[a-z]+ +profilers ' "$out/profile-doctor.txt")"
cases_done
