#!/bin/sh
# SPDX-License-Identifier: MIT
# Help, version, and failed writes, which are all detected.
. "$(dirname "$0")/tap.subr"

try --version
is "$status $out" "0 $(sed -n 's/^VERSION.*:= //p' Makefile)" "--version"
try --help
has "$status $out" "0 Usage: gpupart COMMAND" "--help"
listed=$(sed -n '/^Commands:/,/^$/s/^  \([a-z-]*\) .*/\1/p' "$tmp/out" | grep -v '^help$' | tr '\n' ' ')
is "$listed" "topology run set ps top metrics cdi plan trace verify bench stat doctor sim qos tune slurm-conf slurm-node demo " "--help lists the commands there are"
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
# -o follows links of this user and of root, never another user's.
mkdir "$tmp/links" "$tmp/folder"
ln -s ../file "$tmp/links/link"
ln -s ../folder "$tmp/links/report"
try topology -i sample:h200 -o "$tmp/links/link"
has "$status $(cat "$tmp/file")" "0 NVIDIA H200" "-o this user's link: where it leads is written"
if chown -h 1002 "$tmp/links/link" "$tmp/links/report" 2>/dev/null; then
	echo old >"$tmp/file"
	for args in "topology -i sample:h200" "plan -i sample:h200 --tenant a" "verify -i sample:h200" "sim copies" \
		"qos sim qos-steady" "ps" "stat -i sample:h200"; do
		program=
		wanted=1
		[ "${args%% *}" != stat ] || program="-- true" wanted=125
		refused $wanted "-o $tmp/links/link: is a symbolic link of another user" $args -o "$tmp/links/link" $program
	done
	refused 1 "--log $tmp/links/link: is a symbolic link of another user" qos sim qos-steady --log "$tmp/links/link"
	refused 1 "-o $tmp/links/report: is a symbolic link of another user" bench overlap --quick -i sample:h200 -o "$tmp/links/report"
	is "$(head -c 50 "$tmp/file") $(ls "$tmp/folder")" "old " "and nothing is written where it leads"
else
	skip "no link of another user can be made here"
fi
ln -s loop "$tmp/links/loop"
refused 1 "-o $tmp/links/loop: " topology -i sample:h200 -o "$tmp/links/loop"
if setpriv --reuid 1234 --clear-groups unshare -r "$gpupart" --version >/dev/null 2>&1; then
	setpriv --reuid 1234 --clear-groups sh -c 'unshare -r "$0" topology -i sample:h200 -o /dev/stdout 2>&1 | cat' \
		"$gpupart" >"$tmp/out"
	has "$(cat "$tmp/out")" "NVIDIA H200" "-o root's link in a user namespace that does not have root"
else
	skip "no user namespace can be made here"
fi
# The file's ending decides the form, in upper or lower case.
for ending in svg SVG json JSON; do
	try topology -i sample:h200 -o "$tmp/file.$ending"
	is "$status $(head -c 1 "$tmp/file.$ending")" "0 $(case $ending in svg | SVG) echo '<' ;; *) echo '{' ;; esac)" \
		"-o FILE.$ending"
done
for ending in png PNG Pdf; do
	refused 2 "a picture can only be .svg, not .$ending" topology -i sample:h200 -o "$tmp/file.$ending"
done

"$gpupart" topology -i sample:h200 >&- 2>"$tmp/err"
is "$? $(wc -l <"$tmp/err")" "1 1" "a closed stdout is noticed"
# If some of stdin, stdout and stderr are closed, files that are opened do not take their place.
"$gpupart" run -i sample:h200 -g 0 -- sh -c ': >"$0"' "$tmp/ran" <&- >&- 2>"$tmp/err"
is "$? $([ -e "$tmp/ran" ] && echo ran)" "0 ran" "run with stdin and stdout closed"
is "$(wc -l <"$tmp/err")" 1 "and its one line on stderr"

# The reader has closed the pipe before the first byte.
{ sleep 0.3; "$gpupart" topology -i sample:h200 2>"$tmp/err"; echo $? >"$tmp/status"; } | :
is "$(cat "$tmp/status") $(wc -l <"$tmp/err")" "1 0" "a closed pipe is noticed, without a word"

tap_done
