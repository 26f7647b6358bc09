#!/bin/sh
# SPDX-License-Identifier: MIT
# Plans that are made for this GPU apply to it: each tenant's set under verify, and all of them at
# once in a trace. As TAP. OUT=FOLDER stores the plan, its picture and the trace.
build=${BUILD:-build}
gpupart=$build/bin/gpupart
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT INT TERM
out=${OUT:-$tmp}
mkdir -p "$out"
export XDG_CACHE_HOME="$tmp/cache"
unset GPUPART_SET GPUPART_GPU GPUPART_NAME GPUPART_JOB CUDA_INJECTION64_PATH
if [ ! -e /dev/nvidiactl ]; then
	echo "1..0 # SKIP no NVIDIA driver here"
	exit 77
fi
nr=0 failed=0
ok() {
	nr=$((nr + 1))
	if [ "$1" -eq 0 ]; then echo "ok $nr - $2"; else echo "not ok $nr - $2"; failed=1; fi
}
set -- --tenant llm:min=8,max=17,gpcs,cluster=8,weight=2 --tenant batch:min=8,apart=llm \
	--tenant video:min=4,max=6,spread --tenant small:max=2
"$gpupart" plan "$@" >"$out/plan.txt" && "$gpupart" plan "$@" --json -o "$out/plan.json"
ok $? "four tenants: a plan"
"$gpupart" plan "$@" --of svg -o "$out/plan.svg"
ok $? "its picture"
# These two differ, so at least one is not this board's.
for board in c e; do
	"$gpupart" plan -i sample:h200-$board "$@" --json -o "$tmp/$board.json" &&
		! "$gpupart" run --plan "$tmp/$board.json:llm" -- true 2>"$tmp/err" &&
		sed "s#$tmp/##" "$tmp/err" >"$out/refused.txt"
done
grep -q 'was made for topology' "$out/refused.txt"
ok $? "another board's plan is refused: $(cat "$out/refused.txt" 2>/dev/null)"
for tenant in llm batch video small; do
	"$gpupart" run --plan "$out/plan.json:$tenant" -- "$gpupart" verify \
		>"$out/verify-$tenant.txt" 2>&1
	ok $? "verify in the set of $tenant: $(grep -E '^[0-9]+ passed' "$out/verify-$tenant.txt")"
done
sets=$(python3 -c '
import json, sys
print(*[t["name"] + "=" + t["set"]["list"] for t in json.load(open(sys.argv[1]))["tenants"]])' \
	"$out/plan.json")
# shellcheck disable=SC2086
"$gpupart" trace $sets >"$out/trace.txt" && "$gpupart" trace $sets -o "$out/trace.svg"
ok $? "all sets at once: $(grep -c 'all inside its TPCs' "$out/trace.txt") of 4 keep to theirs"
[ "$(grep -c 'all inside its TPCs' "$out/trace.txt")" = 4 ]
ok $? "each of the four"
echo "1..$nr"
exit $failed
