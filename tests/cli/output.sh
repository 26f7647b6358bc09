#!/bin/sh
# SPDX-License-Identifier: MIT
# Help, version, and writes that do not arrive: each is noticed.
. "$(dirname "$0")/tap.subr"

try --version
is "$status $out" "0 $(sed -n 's/^VERSION.*:= //p' Makefile)" "--version"
try --help
has "$status $out" "0 Usage: gpupart COMMAND" "--help"
listed=$(sed -n '/^Commands:/,/^$/s/^  \([a-z-]*\) .*/\1/p' "$tmp/out" | grep -v '^help$' | tr '\n' ' ')
is "$listed" "topology run set ps top cdi plan trace verify bench stat doctor sim qos slurm-conf slurm-node demo " "--help lists the commands there are"
try help
has "$status $out" "0 Usage: gpupart COMMAND" "help"
for command in $listed; do
	try $command --help
	cp "$tmp/out" "$tmp/first"
	has "$status $out" "0 Usage: gpupart $command" "$command --help"
	has "$out" Examples: "$command --help has examples"
	try help $command
	cmp -s "$tmp/first" "$tmp/out"
	ok $? "help $command is the same"
	is "$(awk 'length > 85' "$tmp/out")" "" "$command --help is no wider than 85 columns"
done

if [ -c /dev/full ]; then
	for args in "topology -i sample:h200" "topology -i sample:h200 --json" \
		"plan -i sample:h200 --tenant a" "plan -i sample:h200 --tenant a --json" \
		"topology -i sample:h200 --of capture" --help --version "help run"; do
		"$gpupart" $args >/dev/full 2>"$tmp/err"
		is "$? $(wc -l <"$tmp/err")" "1 1" "$args: a full disk is noticed"
	done
	try topology -i sample:h200 -o /dev/full
	is $status 1 "-o on a full disk is noticed"
	has "$err" /dev/full "-o on a full disk: the file is named"
else
	skip "no /dev/full"
fi
"$gpupart" topology -i sample:h200 >&- 2>"$tmp/err"
is "$? $(wc -l <"$tmp/err")" "1 1" "a closed stdout is noticed"
# With some of the three not open, what is opened for the work does not take their place.
"$gpupart" run -i sample:h200 -g 0 -- sh -c ': >"$0"' "$tmp/ran" <&- >&- 2>"$tmp/err"
is "$? $([ -e "$tmp/ran" ] && echo ran)" "0 ran" "run with stdin and stdout closed"
is "$(wc -l <"$tmp/err")" 1 "and its one line on stderr"

# The reader is gone before the first byte.
{ sleep 0.3; "$gpupart" topology -i sample:h200 2>"$tmp/err"; echo $? >"$tmp/status"; } | :
is "$(cat "$tmp/status") $(wc -l <"$tmp/err")" "1 0" "a closed pipe is noticed, without a word"

tap_done
