#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/gpu/inside.c on the simulated driver. TAP.
build=${BUILD:-build}
here=$(cd "$(dirname "$0")/../../.." && pwd)
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT INT TERM
cd "$here" || exit 1
export LD_LIBRARY_PATH="$build/lib/gpupart/sim" XDG_CACHE_HOME="$tmp/cache"
export GPUPART_SIM=tests/data/gh100-h200-b/capture.txt:tests/data/gh100-h200-e/capture.txt

"$build/tests/gpu-inside" | sed '/^1\.\./d' | tee "$tmp/first"
nr=$(grep -c '^\(not \)\?ok ' "$tmp/first")
grep -q '^ok 121 ' "$tmp/first" || { echo "not ok $((nr += 1)) - it came to its end"; }

# A driver that does not report its functions: graphs keep their sets, which is reported, and
# everything else works.
GPUPART_SIM_FAULTS=no-api "$build/tests/gpu-inside" >"$tmp/without" 2>"$tmp/err"
grep -q '^1\.\.' "$tmp/without" &&
	! grep -v 'a launch of a graph into a stream that is captured is not simulated' "$tmp/err" &&
	grep -q "^not ok .* graphs follow sets: this driver does not report when a graph is launched: " "$tmp/without" &&
	grep -q "^ok .* graph: the process's set$" "$tmp/without" &&
	grep -q "^ok .* thread: goes before the process's$" "$tmp/without" &&
	grep -q "^not ok .* graph: the process's next set$" "$tmp/without"
status=$?
nr=$((nr + 1))
if [ $status -eq 0 ]; then
	echo "ok $nr - without callbacks of calls: each graph keeps its first set, which is reported; all else works"
else
	echo "not ok $nr - without callbacks of calls: each graph keeps its first set, which is reported; all else works"
	sed 's/^/# /' "$tmp/without" "$tmp/err"
fi
echo "1..$nr"
! grep -q '^not ok' "$tmp/first" && [ $status -eq 0 ]
