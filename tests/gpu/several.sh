#!/bin/sh
# SPDX-License-Identifier: MIT
# On a host with several GPUs, as TAP: each is verified, and a limit on one of them affects only
# that one, whatever number CUDA gives it.
build=${BUILD:-build}
gpupart=$build/bin/gpupart
here=$(dirname "$0")
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT INT TERM
out=${OUT:-$tmp}
mkdir -p "$out"
export XDG_CACHE_HOME="$tmp/cache"
nr=0 failed=0
ok() {
	nr=$((nr + 1))
	if [ "$1" -eq 0 ]; then echo "ok $nr - $2"; else echo "not ok $nr - $2"; failed=1; fi
}
gpus=$("$gpupart" doctor --no-launch --json 2>/dev/null | python3 -c '
import json, re, sys
for r in json.load(sys.stdin)["rows"]:
    if r["name"] == "gpus":
        print(*re.findall(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9]", r["answer"]))')
# shellcheck disable=SC2086 # one address per word
set -- $gpus
[ $# -ge 2 ] || { echo "1..0 # SKIP fewer than two GPUs here"; exit 77; }
index=0
for pci; do
	timeout 60 "$gpupart" verify --gpu "$pci" >"$out/verify-$index.txt" 2>&1
	ok $? "$pci: verify: $(grep -E '^[0-9]+ passed' "$out/verify-$index.txt")"
	timeout 60 "$gpupart" topology --gpu $index | grep -q "$pci"
	ok $? "$pci is index $index in PCI order"
	timeout 60 "$gpupart" topology --gpu $index --of capture -o "$out/board-$index.capture"
	ok $? "$pci: capture"
	timeout 120 "$gpupart" run --gpu "$pci" -g 1,2 -- python3 "$here/several.py" >"$tmp/seen.json" 2>"$tmp/err"
	ok $? "$pci: a program on all GPUs under run --gpu $pci -g 1,2"
	"$gpupart" topology --gpu "$pci" --json >"$tmp/topo.json"
	python3 - "$pci" "$tmp/seen.json" "$tmp/topo.json" <<-'END'
	import json, sys
	pci, seen, topo = sys.argv[1], json.load(open(sys.argv[2])), json.load(open(sys.argv[3]))
	want = sorted(s for t in topo["tpcs"] if t["gpc"] in (1, 2) for s in t["smids"])
	good = seen.get(pci) == want
	for other in seen:
	    good = good and (other == pci or len(seen[other]) > len(want))
	    print("#", other, len(seen[other]), "SMs")
	sys.exit(not good)
	END
	ok $? "$pci: confined there, and only there"
	index=$((index + 1))
done
timeout 60 "$gpupart" verify --gpu $index 2>"$tmp/err"
[ $? -eq 2 ]
ok $? "GPU $index is not there: $(cat "$tmp/err")"
second=$2
CUDA_VISIBLE_DEVICES=1 timeout 120 "$gpupart" run -g 0 -- python3 "$here/several.py" >"$tmp/seen.json" 2>"$tmp/err"
python3 -c 'import json,sys; d=json.load(open(sys.argv[1])); sys.exit(not (len(d)==1 and len(list(d.values())[0])<=18))' "$tmp/seen.json"
ok $? "the GPU that CUDA_VISIBLE_DEVICES leaves is the one: $(cut -c1-60 "$tmp/seen.json") $second"
echo "1..$nr"
exit $failed
