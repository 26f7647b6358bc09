#!/bin/sh
# SPDX-License-Identifier: MIT
# gpupart verify, doctor and demo on the simulated GPU: rows, totals, statuses, and that each says
# simulated.
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
# GB10 has no row: the capture has the classes of its driver, and all outputs name them.
awk '/^checksum/ { exit } { sub(/^chip-id = .*/, "chip-id = 0x1bb\ncompute-class = 0xcec0"); print }' \
	tests/data/gh100-h200-e/capture.txt >"$tmp/gb10"
hash=-3750763034362895579	# scripts/capture-from-tables
for byte in $(od -An -v -tu1 "$tmp/gb10"); do
	hash=$(((hash ^ byte) * 1099511628211))
done
printf 'checksum = %016x\n' "$hash" >>"$tmp/gb10"
with() {	# VARIABLE=VALUE ARGS
	variable=$1
	shift
	env "$variable" "$gpupart" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
	status=$?
	out=$(cat "$tmp/out")
	err=$(cat "$tmp/err")
}
with GPUPART_SIM_FAULTS=tmd-version=0x50 verify --quick -i "$tmp/gb10"
is $status 0 "verify of a chip without a row, by the capture's class: status"
has "$out" ", chip 0x1bb, class 0xcec0" "verify tells the class"
with GPUPART_SIM_FAULTS=tmd-version=0x50 doctor -i "$tmp/gb10"
has "$(tr -s ' \n' ' ' <"$tmp/out")" "8 GPCs; compute class 0xcec0" "doctor tells the class"
try topology -i "$tmp/gb10" --of capture
is "$(sed -n 's/^compute-class = //p' "$tmp/out")" 0xcec0 "topology --of capture keeps the class"
if jq --version >/dev/null 2>&1; then
	with GPUPART_SIM_FAULTS=tmd-version=0x50 verify --quick -i "$tmp/gb10" --json
	is "$(jq .compute_class "$tmp/out")" 52928 "verify --json tells the class"
	try topology -i "$tmp/gb10" --json
	is "$(jq .compute_class "$tmp/out")" 52928 "topology --json tells the class"
	try topology -i sample:h200-e --json
	is "$(jq .compute_class "$tmp/out")" null "topology --json of a capture without the class"
else
	skip "no jq"
fi
"$gpupart" verify --quick -i sample:h200 >/dev/full 2>"$tmp/err"
is $? 1 "verify: a full disk is noticed"

# Failures are detected: the bit of TPC 7 is another GPC's, after the map was checked.
with GPUPART_SIM_FAULTS=move-bit=7:0 verify -i sample:h200
is $status 1 "verify with a bit moved: status"
has "$(grep -A 1 ^FAIL "$tmp/out" | head -n 2)" "TPC 7 " "verify with a bit moved: names the TPC"
is "$(grep -c ^FAIL "$tmp/out")" "$(sed -n 's/.* passed, \([0-9]*\) failed.*/\1/p' "$tmp/out")" \
	"verify with a bit moved: the total counts what failed"
with GPUPART_SIM_FAULTS=move-bit=7:0 demo -i sample:h200
is $status 1 "demo with a bit moved: status"
has "$out" "proof (simulated): 6 of 9" "demo with a bit moved: not all on their set"
has "$out" "65 TPCs seen inside, 1 outside" "demo with a bit moved: the TPC is seen outside"

# Checks that cannot run here are reported in a line, by each command with its status.
for fault in no-table:callback tmd-version=80:0x50 move-bit=7:0:TPC\ 7; do
	export XDG_CACHE_HOME="$tmp/empty"
	case $fault in
	move-bit*) want=1 ;;	# a failed check
	*) want=2 ;;		# not supported here
	esac
	with "GPUPART_SIM_FAULTS=${fault%:*}" verify -i sample:h200
	is "$status $(wc -l <"$tmp/err")$out" "$want 1" "verify with ${fault%:*}: $want and a line"
	has "$err" "${fault##*:}" "verify with ${fault%:*}: says what"
	with "GPUPART_SIM_FAULTS=${fault%:*}" run -i sample:h200 -g 0 -- true
	is "$status $(wc -l <"$tmp/err")" "125 1" "run with ${fault%:*}: 125 and a line"
	with "GPUPART_SIM_FAULTS=${fault%:*}" doctor -i sample:h200
	is "$status $(grep -c '^bad ' "$tmp/out")" "1 1" "doctor with ${fault%:*}: 1 and a bad row"
	has "$(sed -n '/^bad /,/->/p' "$tmp/out" | tr -s '\n ' ' ')" "${fault##*:}" "doctor with ${fault%:*}: says what"
	XDG_CACHE_HOME=$tmp/cache
done
# A bit order that no table has: refused, learned on request, and known from then on.
export XDG_CACHE_HOME="$tmp/learnt" GPUPART_SIM_FAULTS=order=holes:3
try verify --quick -i sample:h200-e
is "$status $(wc -l <"$tmp/err")$out" "1 1" "verify with another order: 1 and a line"
has "$err" "no launch is confined; try \`gpupart verify --learn\`" "verify with another order: says what to do"
try run -i sample:h200-e -g 0 -- true
is $status 125 "run with another order: 125"
try verify --learn -i sample:h200-e --json
is "$status $(jq -c '[.nr_failed, .nr_skipped, .check.from_cache, .check.nr_learn_launches > 3 * 66]' "$tmp/out")" \
	"0 [0,0,false,true]" "verify --learn with another order: every row holds"
try verify --learn -i sample:h200-e
is "$status $(grep -c 'order was learnt' "$tmp/out")" "0 0" "verify --learn again: nothing to learn"
has "$out" "66 TPCs proven, checked earlier" "verify --learn again: the map is known"
try run -i sample:h200-e -t 3-6 -- "$gpupart" verify --quick
is "$status $(sed -n 's/.*, \([0-9]* failed\), .*/\1/p' "$tmp/out")" "0 0 failed" "run with a learnt order: its set holds"
try run -i sample:h200-e -t 3-6 -- env XDG_CACHE_HOME="$tmp/other" HOME=/nonexistent "$gpupart" verify --quick
is "$status $(sed -n 's/.*, \([0-9]* failed\), .*/\1/p' "$tmp/out")" "0 0 failed" "run with a learnt order, of a program with a home of its own: its set holds"
try doctor -i sample:h200-e
has "$out" "layout V04_00; 66 TPCs were proven earlier" "doctor with a learnt order: good"
rm -r "$tmp/learnt"
try verify --learn -i sample:h200-e
has "$out" "mask bits: order found with " "verify --learn: says so"
has "$(head -n 1 "$tmp/out")" simulated "verify --learn: says simulated"
# A map that cannot be stored is useless: no rows, and the reason.
map=$(cd "$XDG_CACHE_HOME/gpupart/checked" && echo V04_00-GPU-*)
key=$(cd "$XDG_CACHE_HOME/gpupart/checked" && echo [0-9a-f]*)
for name in "$map" "$key"; do
	rm -rf "$tmp/learnt"
	mkdir -p "$tmp/learnt/gpupart/checked/$name"
	try verify --learn -i sample:h200-e
	is "$status $(wc -l <"$tmp/err")$out" "1 1" "verify --learn with a folder named $name: 1 and a line"
	has "$err" "learnt, but cannot be stored for other programs: $tmp/learnt/gpupart/checked/$name: Is a directory" \
		"verify --learn with a folder named $name: says why"
done
rm -r "$tmp/learnt"
: >"$tmp/learnt"
try verify --learn -i sample:h200-e
is "$status $(wc -l <"$tmp/err")$out" "1 1" "verify --learn where the cache is a file: 1 and a line"
has "$err" "cannot be stored for other programs: $tmp/learnt/gpupart: Not a directory" "verify --learn where the cache is a file: says why"
rm "$tmp/learnt"
env -u XDG_CACHE_HOME HOME=/nonexistent "$gpupart" verify --learn -i sample:h200-e >"$tmp/out" 2>"$tmp/err"
is "$? $(wc -l <"$tmp/err")$(cat "$tmp/out")" "2 1" "verify --learn without a home: 2 and a line"
has "$(cat "$tmp/err")" "HOME=/nonexistent is not a directory" "verify --learn without a home: says why"
GPUPART_SIM_FAULTS=move-bit=5:0
try verify --learn -i sample:h200-e
is "$status $(wc -l <"$tmp/err")$out" "1 1" "verify --learn where two TPCs obey one bit: 1 and a line"
has "$err" "mask bit 0 of TMD V04_00 does not belong to exactly one TPC: in 9 launches with this bit set, 2 of 66 " "verify --learn: names the bit"
unset GPUPART_SIM_FAULTS
XDG_CACHE_HOME=$tmp/cache
# The bad row is the one with the fault, and it does not refer to good rows.
for fault in no-table:launch-callback drop-callback:launch-callback table-size=8:launch-callback \
	table-size=48:launch-callback params-size=32:launch-callback params-size=520:launch-callback tmd-pointer=4096:launch-callback \
	tmd-version=80:mask-bits move-bit=7.0:mask-bits mps:mask-bits; do
	setting=$(echo "${fault%:*}" | tr . :)
	row=${fault##*:}
	export XDG_CACHE_HOME="$tmp/empty"
	with "GPUPART_SIM_FAULTS=$setting" doctor -i sample:h200
	is "$status $(sed -n 's/^bad *\([a-z-]*\) .*/\1/p' "$tmp/out")" "1 $row" \
		"doctor with $setting: the bad row is $row"
	is "$(grep -c 'see the rows above' "$tmp/out")" 0 "doctor with $setting: the advice is its own"
	[ $row = launch-callback ] || is "$(grep -c '^ok    launch-callback' "$tmp/out")" 1 \
		"doctor with $setting: the callback is good"
	XDG_CACHE_HOME=$tmp/cache
done
with GPUPART_SIM_FAULTS=no-stream-pointer verify --quick -i sample:h200
has "$out" "stream sets: not possible here" "verify where streams cannot be told apart: says so"
for args in "verify --quick" "doctor --no-launch"; do
	try $args -i sample:h200 --json
	is "$status $(grep '132 SMs' "$tmp/out" | grep -c '/')" "0 0" "$args: a shipped capture is shown by its name"
done
# As under sudo with HOME kept: root's files in a user's folder would block that user.
mkdir -p "$tmp/theirs/.cache" "$tmp/root"
in_home() {
	(
		unset XDG_CACHE_HOME
		export HOME="$1"
		shift
		"$gpupart" "$@" 2>&1
	)
}
if [ "$(id -u)" = 0 ] && chown -R 1002 "$tmp/theirs" 2>/dev/null; then
	XDG_CACHE_HOME=$tmp/theirs/new try run -i sample:h200 -n 8 -- true
	is "$status $(in_home "$tmp/theirs" run -i sample:h200 -n 8 -- echo ran | tail -n 1) $(find "$tmp/theirs" -user 0)" \
		"0 ran " "root leaves nothing in a folder of another user's"
	has "$(in_home "$tmp/theirs" doctor --no-launch -i sample:h200 | tr -s '\n ' ' ')" \
		"root does not write to $tmp/theirs/.cache, which belongs to user 1002" "and doctor says so"
	in_home "$tmp/root" run -i sample:h200 -n 8 -- true >/dev/null
	is "$(cd "$tmp/root/.cache/gpupart/checked" && echo * | sed 's/[0-9a-f]\{16\}/KEY/g')" "KEY records-KEY" \
		"in root's own it remembers what was checked: a map, and records"
else
	skip "root under another user's HOME: only as root"
fi
with GPUPART_SIM_FAULTS=no-stream-pointer doctor -i sample:h200
is "$status $(grep -c '^note  streams ' "$tmp/out")" "0 1" "doctor where streams cannot be told apart: a note"
for setting in no-api no-stream-events; do
	with GPUPART_SIM_FAULTS=$setting verify --quick -i sample:h200
	has "$out" "graphs: keep the set of their first launch here" "verify with $setting: says so of graphs"
	with GPUPART_SIM_FAULTS=$setting doctor -i sample:h200
	is "$status $(grep -c '^note  graphs ' "$tmp/out")" "0 1" "doctor with $setting: a note on graphs"
done

try doctor -i sample:h200
is $status 0 "doctor on the simulated GPU: status"
has "$(head -n 1 "$tmp/out")" simulated "doctor: the first line says simulated"
for row in driver device-node gpus topology mig libcuda launch-callback mask-bits streams graphs records \
	inject-library injection-slot nvml-library cache-folder state-folder namespaces node-config mps node-mps environment green-contexts device-launches; do
	is "$(grep -c "^[a-z]*  *$row " "$tmp/out")" 1 "doctor: $row"
done
for sizes in 72:88:no.count.of 80:40:no.count.of 88:104:11 96:88:11; do
	IFS=: read -r table params features <<-END
		$sizes
	END
	export XDG_CACHE_HOME="$tmp/empty-$table"
	with GPUPART_SIM_FAULTS="table-size=$table,params-size=$params" doctor -i sample:h200 --json
	XDG_CACHE_HOME=$tmp/cache
	is "$status" 0 "doctor with a table of $table bytes and parameters of $params"
	has "$(jq -r '.rows[] | select(.name == "launch-callback") | .answer' "$tmp/out")" \
		"a table of $table bytes, $(echo "$features" | tr . ' ') features, parameters of $params bytes" "doctor says so"
done
for features in 7 8; do
	with GPUPART_SIM_FAULTS=features=$features doctor -i sample:h200
	is "$status $(grep -o '^[a-z]*  *green-contexts' "$tmp/out" | tr -s ' ')" \
		"0 $([ $features = 8 ] && echo ok || echo note) green-contexts" "doctor with $features features"
done
# A row is wrapped, and no text is lost.
for command in "verify --quick" doctor; do
	try $command -i sample:h200
	is "$(awk 'length > 100 && !/\//' "$tmp/out")" "" "$command: at most 100 columns"
done
with GPUPART_SIM_FAULTS=move-bit=7:0 verify -i sample:h200
is "$(awk 'length > 100' "$tmp/out")" "" "verify with a bit moved: at most 100 columns"
GPUPART_NAME=0,$(printf '%0150d' 0)
export GPUPART_NAME
try doctor --no-launch -i sample:h200
has "$(tr -d '\n ' <"$tmp/out")" "GPUPART_NAME=${GPUPART_NAME}GPUPART_SIM=" \
	"a row too wide to be folded is whole"
unset GPUPART_NAME
try doctor --no-launch -i sample:h200
is "$(grep -c '^skip.*--no-launch' "$tmp/out")" 7 "doctor --no-launch: seven rows are skipped"
try doctor -i sample:h200 --json
if jq --version >/dev/null 2>&1; then
	is "$(jq -c '[.schema, .simulated, .good, .nr_bad]' "$tmp/out")" '["gpupart/1",true,true,0]' \
		"doctor --json"
else
	skip "no jq"
fi
# The folder for writing is checked/: if it is a file, no user can write.
mkdir -p "$tmp/broken/gpupart"
: >"$tmp/broken/gpupart/checked"
with XDG_CACHE_HOME="$tmp/broken" doctor --no-launch -i sample:h200
has "$(grep '^note  cache-folder' "$tmp/out")" "$tmp/broken/gpupart/checked: " "doctor: checked/ cannot be written"
CUDA_INJECTION64_PATH=/lib/other.so
export CUDA_INJECTION64_PATH
try doctor --no-launch -i sample:h200
has "$out" "CUDA_INJECTION64_PATH is set to /lib/other.so, which cannot be used" "doctor: another tool in the injection slot"
unset CUDA_INJECTION64_PATH
# Without a GPU it reports that, quickly, with status 1.
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

if jq --version >/dev/null 2>&1; then
	try demo -i sample:h200-e --json
	is "$status $(jq -c '[.schema, .command, .simulated, .good, .nr_exact, .nr_confined]' "$tmp/out")" \
		'0 ["gpupart/1","demo",true,true,9,9]' "demo --json"
	is "$(jq -c '[.launches[] | select(.label == "GPC 1") | .set.list, .seen.list, .seen.whole_gpcs]' \
		"$tmp/out")" '["0,8,16,24,62,65","0,8,16,24,62,65",[1]]' "demo --json: a launch"
	is "$(jq -c '[.launches[0].set, .launches[0].seen.nr_tpcs]' "$tmp/out")" '[null,66]' \
		"demo --json: the launch without a set"
	with GPUPART_SIM_FAULTS=move-bit=7:0 demo -i sample:h200 --json
	is "$status $(jq -c '[.good, .nr_exact, .seen_outside.nr_tpcs]' "$tmp/out")" '1 [false,6,1]' \
		"demo --json with a bit moved"
else
	skip "no jq"
fi

# A package in a path longer than the library's buffer: reported, and -i FILE works.
deep=$tmp/$(printf '%0150d/%0150d/%0150d/%0150d' 0 0 0 0)
mkdir -p "$deep/bin"
cp "$gpupart" "$deep/bin/gpupart"
cp -r "$BUILD/lib" "$deep/lib"
cp -r "$BUILD/share" "$deep/share"
"$deep/bin/gpupart" demo -i sample:h200 >"$tmp/out" 2>"$tmp/err"
is "$? $(wc -l <"$tmp/err")" "2 1" "a sample below a long path: 2 and a line"
has "$(cat "$tmp/err")" "sample:h200: the path of this file is too long" "a sample below a long path: says so"
"$deep/bin/gpupart" demo -i tests/data/gh100-h200-e/capture.txt >"$tmp/out" 2>&1
is $? 0 "a package below a long path works on a capture"

tap_done
