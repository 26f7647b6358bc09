#!/bin/sh
# SPDX-License-Identifier: MIT
# gpupart verify, doctor and demo on the simulated GPU: rows, totals, statuses, and that
# each says simulated.
. "$(dirname "$0")/tap.subr"

for board in h200 h200-e; do
	try verify --quick -i sample:$board
	is $status 0 "verify --quick on $board: status"
	has "$(head -n 1 "$tmp/out")" simulated "verify on $board: the first line says simulated"
	rows=$(grep -c '^PASS  [a-z]' "$tmp/out")
	[ "$rows" -gt 0 ] && has "$out" "$rows passed, 0 failed" "verify on $board: rows and total agree"
	[ "$rows" -gt 0 ]
	ok $? "verify on $board: there are rows that passed"
done
try verify --quick -i sample:h200 --json
if jq --version >/dev/null 2>&1; then
	is "$(jq -c '[.schema, .command, .simulated]' "$tmp/out")" '["gpupart/1","verify",true]' \
		"verify --json: the head"
	is "$(jq -c '[([.rows[] | select(.result == "pass")] | length) == .nr_passed, .nr_failed, .error]' \
		"$tmp/out")" '[true,0,null]' "verify --json: rows and totals agree"
	is "$(jq '.counters.launches > 0' "$tmp/out")" true "verify --json: launches were counted"
else
	skip "no jq"
fi
"$gpupart" verify --quick -i sample:h200 >/dev/full 2>"$tmp/err"
is $? 1 "verify: a full disk is noticed"

try doctor -i sample:h200
is $status 0 "doctor on the simulated GPU: status"
has "$(head -n 1 "$tmp/out")" simulated "doctor: the first line says simulated"
for row in driver device-node gpus topology mig libcuda launch-callback mask-bits streams \
	inject-library injection-slot cache-folder mps environment green-contexts device-launches; do
	is "$(grep -c "^[a-z]*  *$row " "$tmp/out")" 1 "doctor: $row"
done
try doctor --no-launch -i sample:h200
is "$(grep -c '^skip.*--no-launch' "$tmp/out")" 3 "doctor --no-launch: three rows are skipped"
try doctor -i sample:h200 --json
if jq --version >/dev/null 2>&1; then
	is "$(jq -c '[.schema, .simulated, .good, .nr_bad]' "$tmp/out")" '["gpupart/1",true,true,0]' \
		"doctor --json"
else
	skip "no jq"
fi
CUDA_INJECTION64_PATH=/lib/other.so
export CUDA_INJECTION64_PATH
try doctor --no-launch -i sample:h200
has "$out" "taken by /lib/other.so" "doctor: another tool in the injection slot"
unset CUDA_INJECTION64_PATH
# Without a GPU it says so, in time, and with 1.
if [ ! -e /dev/nvidiactl ]; then
	try doctor
	is $status 1 "doctor without a GPU: status"
	has "$out" "driver is not loaded" "doctor without a GPU: says so"
	try verify
	is "$status $(wc -l <"$tmp/err")" "2 1" "verify without a GPU: cannot run here"
	try run -t 0 -- true
	is "$status $(wc -l <"$tmp/err")" "125 1" "run without a GPU: 125"
	try demo
	is $status 0 "demo without a GPU: status"
	has "$(head -n 1 "$tmp/out")" simulated "demo without a GPU: the first line says simulated"
else
	skip "there is a GPU"
fi

for board in h200 h200-e; do
	try demo -i sample:$board
	is $status 0 "demo on $board: status"
	has "$out" "9 of 9 confined launches ran on exactly their set" "demo on $board: the proof"
	has "$out" "66 TPCs seen inside, 0 outside" "demo on $board: all TPCs, none outside"
	is "$(awk 'length > 80 && !/source:/' "$tmp/out")" "" "demo on $board: at most 80 columns"
	# A TPC is in the picture of its own GPC and of no other: each column once.
	is "$(sed -n 's/^GPC [0-9]  //p' "$tmp/out" | tr -d ' ' | awk '
		{ for (i = 1; i <= length; i++) n[i] += substr($0, i, 1) == "#" }
		END { for (i in n) if (n[i] != 1) bad++; print bad + 0, length(n) }')" "0 66" \
		"demo on $board: the picture has every TPC once"
done

tap_done
