#!/bin/sh
# SPDX-License-Identifier: MIT
# gpupart topology: its exact text for two boards, its width, its colours, and captures that open
# again. UPDATE=1 rewrites the expected texts: read the diff.
. "$(dirname "$0")/tap.subr"

golden() {	# NAME ARGS
	file=tests/cli/expected/$1
	shift
	try topology "$@"
	[ -n "$UPDATE" ] && cp "$tmp/out" "$file"
	is $status 0 "topology $*: status"
	diff -u "$file" "$tmp/out" >"$tmp/diff"
	ok $? "topology $*: as in $file"
	sed 's/^/# /' "$tmp/diff"
}

golden h200-b.txt -i tests/data/gh100-h200-b/capture.txt
golden h200-e.txt -i tests/data/gh100-h200-e/capture.txt
LC_ALL=C.UTF-8
golden h200-e.utf8.txt -i tests/data/gh100-h200-e/capture.txt
LC_ALL=C

for capture in tests/data/gh100-*/capture.txt; do
	try topology -i "$capture"
	is "$(awk '{ if (length > 80) print FNR }' "$tmp/out")" "" "$capture: at most 80 columns"
	# Every TPC is in the picture once and in the lists once.
	is "$(sed -n 's/^ *TPCs //p' "$tmp/out" | tr ',' '\n' | awk -F- '
		{ for (i = $1; i <= (NF > 1 ? $2 : $1); i++) n++ } END { print n }')" \
		"$(sed -n 's/.* SMs in \([0-9]*\) TPCs.*/\1/p' "$tmp/out")" \
		"$capture: the lists hold every TPC"
done

# Made-up GPUs: no code depends on 8 or 9. Singletons follow from the capture's own rows.
for capture in "$BUILD"/tests/generated/*.capture; do
	name=made-up/${capture##*/}
	[ -e "$capture" ] || { skip "no made-up GPUs: make tests"; break; }
	try topology -i "$capture"
	is "$status $(awk 'length > 80 && !/^source:/ { print FNR }' "$tmp/out")" "0 " \
		"$name: shown in at most 80 columns"
	is "$(sed -n '/singletons:/,/^  GPC\|^$/p' "$tmp/out" | tr -d '\n' | grep -o 'TPC *[0-9]* *(virtual' |
		wc -l)" "$(awk -F'\t' '/^\[/ { rm = /^\[rm\]/ } rm && NF > 5 && $6 != "-1" {
		gpc[$2]; vgpc[$6] } END { for (g in gpc) nr++; for (v in vgpc) n += v + 0 >= nr; print n + 0 }' \
		"$capture")" "$name: its singletons"
done

has "$(cat tests/cli/expected/h200-e.txt)" "source: capture tests/data" "a captured source is named so"
case $(cat tests/cli/expected/h200-*.txt tests/cli/expected/picture-*.txt) in *simulated*) bad=1 ;; *) bad=0 ;; esac
ok $bad "a capture that is shown is not called simulated"
has "$(cat tests/cli/expected/h200-b.txt)" "physical GPCs, floorswept positions: not reported by this source" \
	"what board b's capture lacks is marked as not reported"

# A line on a terminal has colour; elsewhere, or with NO_COLOR, none.
esc=$(printf '\033')
try topology -i sample:h200
case $out in *"$esc"*) bad=1 ;; *) bad=0 ;; esac
ok $bad "no colour in a file"
if script -qec true /dev/null >/dev/null 2>&1 </dev/null; then
	has "$(TERM=xterm script -qec "'$gpupart' topology -i sample:h200" /dev/null </dev/null)" "$esc" \
		"colour on a terminal"
	case $(TERM=xterm NO_COLOR=1 script -qec "'$gpupart' topology -i sample:h200" /dev/null </dev/null) in
	*"$esc"*) ok 1 "no colour with NO_COLOR" ;;
	*SMs*) ok 0 "no colour with NO_COLOR" ;;
	*) ok 1 "no colour with NO_COLOR: nothing was shown" ;;
	esac
else
	skip "no script(1) for a terminal"
fi

try topology -i sample:h200 --gpu 5
is "$status" 2 "a capture has no GPU 5"
has "$err" 'the GPU in sample:h200 (PCI unknown, UUID unknown) is not "5"' "the message names the sample, not its file"
# A sample describes a real GPU. Only what ran on the simulated driver is simulated (gpupart(1), --json).
try topology -i sample:h200 --json
has "$out" '"simulated": false' "--json of a sample: a real GPU"

# A capture opens again as the same topology, also through -o.
try topology -i sample:h200-e --of capture -o "$tmp/copy"
is "$status$out" 0 "--of capture -o FILE"
try topology -i sample:h200-e
sed 1,/source:/d "$tmp/out" | grep -v '^captured\|^  *GPU passed\|^  *max-' >"$tmp/first"
try topology -i "$tmp/copy"
sed 1,/source:/d "$tmp/out" | grep -v '^captured\|^  *GPU passed\|^  *max-' >"$tmp/second"
[ -s "$tmp/first" ] && cmp -s "$tmp/first" "$tmp/second"
ok $? "a written capture shows the same GPU"
try topology -i sample:h200 -o "$tmp/file"
[ ! -s "$tmp/out" ] && grep -q '132 SMs in 66 TPCs in 8 GPCs' "$tmp/file"
ok $? "-o writes there and not to stdout"

tap_done
