#!/bin/sh
# SPDX-License-Identifier: MIT
# Sets and thread block clusters of 8 blocks: -n and plan choose sets that can run one. For a set
# by number that cannot, run, set, cdi and plan warn and name a set of the same size that can.
. "$(dirname "$0")/tap.subr"
h200=sample:h200
note() { grep "have room for clusters of" "$tmp/err"; }
run() { try run -i $h200 "$@" -- true; }

# Sets by number. GPC 1 of this board is TPCs 0,8,16,24 and four singletons.
run -t 1,2,3,4
is "$status $(note)" "0 gpupart run: TPCs 1-4 have room for clusters of at most 2 blocks: a kernel with larger clusters gets more TPCs; TPCs 1,9,17,25 have room for clusters of 8" \
	"four TPCs of four GPCs"
run -t 62-65,9,17
is "$(note | cut -d ';' -f 2)" " TPCs 1,9,17,25,62-63 have room for clusters of 8" "the other set has most of the TPCs that were asked for"
run -t 62-65,9,17,25,1
is "$status $(note)" "0 " "4 TPCs of one virtual GPC hold one"
run -t 0-2
is "$status $(note | cut -d ' ' -f 3-)" "0 TPCs 0-2 have room for clusters of at most 2 blocks: a kernel with larger clusters gets more TPCs; no set of 3 TPCs has room for clusters of 8" \
	"no set of 3 TPCs does"
run -t 0
is "$status $(note | cut -d ';' -f 2)" "0  no set of 1 TPC has room for clusters of 8" "nor one TPC"
run -n 3
is "$status $(note)" "0 " "-n 3: not a set by number, no message"
run -g 1
is "$status $(note)" "0 " "a GPC does"
run --hex 0x1e
is "$(note | cut -d ' ' -f 4)" "1-4" "--hex"
try run -i $h200 -t 0-3,62-65 -- "$gpupart" run -t 62-65 -- true
is "$status $(note | tail -1 | cut -d ';' -f 2)" "0  no 4 free TPCs have room for clusters of 8" "within a limit of which no 4 TPCs do"
try cdi -i $h200 -t 1-4 -o "$tmp/spec"
is "$status $(note | cut -d ' ' -f 2-4)" "0 cdi: TPCs 1-4" "cdi"

# -n: every number, together with every GPC that a run has; the rest by number.
sleep_in() {
	mkfifo "$tmp/hold"
	"$gpupart" run -i $h200 "$@" -- sh -c 'echo there; read x' <"$tmp/hold" >"$tmp/there" 2>/dev/null &
	exec 9>"$tmp/hold"
	until grep -qs there "$tmp/there"; do sleep 0.1; done
}
wake() {
	exec 9>&-
	wait
	rm "$tmp/hold" "$tmp/there"
}
set_of_run() { sed -n 's/^gpupart run: TPCs \([0-9,-]*\) .*simulated$/\1/p' "$tmp/err"; }
# 2 TPCs of each of 7 GPCs are free, and all 9 of GPC 7: without clusters, -n 4 packs into the
# smallest.
sleep_in -t 0-65 --name all >/dev/null
"$gpupart" set all -t 16,24,62-65,17,25,32,39,46,53,18,26,33,40,47,54,19,27,34,41,48,55,20,28,35,42,49,56,21,29,36,43,50,57,14,22,30,37,44,51,58,60 \
	>/dev/null 2>&1
is $? 0 "a run that leaves 2 TPCs of a GPC, and one GPC"
run -n 4
is "$(set_of_run) $(note)" "7,15,23,31 " "-n 4: of the GPC that has 4"
run -t 1 -n 4
is "$(set_of_run) $(note)" "1,7,15,23,31 " "-n 4 beside -t"
run -t 1 -n 3
is "$(note | cut -d ';' -f 2)" " TPCs 7,15,23,31 have room for clusters of 8" "-n 3 and a TPC of a GPC with two: reported"
wake

# set: a running job.
sleep_in -g 0 --name job
try set job -t 1-4
is "$status $(note | cut -d ';' -f 1)" "0 gpupart set: TPCs 1-4 have room for clusters of at most 2 blocks: a kernel with larger clusters gets more TPCs" "set"
try set job -g 2
is "$status $(note)" "0 " "set to a GPC"
wake

# plan: a tenant that spreads can run one; if a demand prevents that, it is reported.
try plan -i $h200 --tenant a:tpcs=20,spread --json
is "$status $err" "0 " "20 spread TPCs hold a cluster"
is "$(python3 - "$tmp/out" "$BUILD/share/gpupart/captures/h200.capture" <<'END'
import json, sys
vgpc = {}
section = ""
for words in (line.split() for line in open(sys.argv[2])):
    if words and words[0].startswith("["):
        section = words[0]
    elif section == "[rm]" and words and words[0].isdigit():
        vgpc[int(words[4])] = words[5]
text = json.load(open(sys.argv[1]))["tenants"][0]["set"]["list"]
tpcs = [t for part in text.split(",") for t in range(int(part.split("-")[0]), int(part.split("-")[-1]) + 1)]
counts = sorted([vgpc[t] for t in tpcs].count(v) for v in set(vgpc[t] for t in tpcs))
print(len(tpcs), counts[-1], counts[-2])
END
)" "20 4 3" "20 TPCs, 4 of one virtual GPC, 3 of others at most"
try plan -i $h200 --tenant a:tpcs=33,apart=b,gpcs --tenant b:min=9 --tenant c:min=20,spread,apart=a
is "$status $(note)" "0 " "beside others' demands"
# Each of the 8 GPCs has 4 TPCs of one virtual GPC and 5 singletons.
wants=$(for i in a b c d e f g h; do printf -- '--tenant %s:tpcs=4,cluster=8,weight=2 ' $i; done)
# shellcheck disable=SC2086 # words
try plan -i "$BUILD/tests/generated/05.capture" $wants --tenant i:tpcs=4
is "$status $(note | cut -d ' ' -f 3,4,8- | cut -d ':' -f 1,3)" \
	"0 tenant i: a kernel with larger clusters gets more TPCs; no 4 free TPCs have room for clusters of 8" \
	"the TPCs left by other demands have no room: reported"
tap_done
