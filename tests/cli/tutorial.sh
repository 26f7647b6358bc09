#!/bin/sh
# SPDX-License-Identifier: MIT
# Documentation/user/tutorial.md: each command prints the page's output. tutorial-gpu.md and
# README: their output of a GPU is in the transcripts that they name.
. "$(dirname "$0")/tap.subr"
if ! python3 -c '' 2>/dev/null; then
	skip "no python3"
	tap_done
fi
if ! ${CC:-cc} -x c -E /dev/null >/dev/null 2>&1; then
	skip "no C compiler"
	tap_done
fi
if emulated "runs nothing that is compiled here: the tutorial"; then
	tap_done
fi
# The comparison itself: missing, additional or different lines are detected.
page() { printf '```console\n$ %s\n%s\n```\n' "$1" "$2" >"$tmp/page.md"; }
compared() { python3 tests/cli/console.py "$tmp/page.md" "$tmp" | sed -n 's/^\(ok\|not ok\) 1 .*/\1/p'; }
page "echo one; echo pid 12; echo three" "$(printf 'one\npid 4711\nthree')"
is "$(compared)" ok "the same, and a number for a process"
page "seq 9" "$(printf '1\n...\n8\n9')"
is "$(compared)" ok "lines that are left out"
page "seq 9" "$(printf '1\n...\n8')"
is "$(compared)" "not ok" "a line more than shown"
page "seq 3" "$(printf '1\n2\n3\n4')"
is "$(compared)" "not ok" "a line less"
page "echo pid x" "pid 4711"
is "$(compared)" "not ok" "no number"
page "false; exit" ""
is "$(compared)" ok "nothing"

mkdir "$tmp/folder"
for name in tests lib; do
	ln -s "$root/$name" "$tmp/folder/$name"
done
PATH=$(dirname "$(readlink -f "$gpupart")"):$PATH
export PATH
# Other programs on this machine must not appear on the page: a private /dev/shm, if possible.
# shellcheck disable=SC2016 # expanded by the inner shell
alone() {
	for how in -m -rm; do
		if unshare $how sh -c 'mount -t tmpfs none /dev/shm' 2>/dev/null; then
			unshare $how sh -c 'mount -t tmpfs none /dev/shm && exec "$@"' - "$@"
			return
		fi
	done
	"$@"
}
LC_ALL=C.UTF-8 alone python3 tests/cli/console.py Documentation/user/tutorial.md "$tmp/folder" >"$tmp/steps"
is "$?" 0 "tutorial.md: all commands do what is shown"
grep -v '^ok\|^1\.\.' "$tmp/steps" | sed 's/^not ok/# not ok/'
[ "$(grep -c '^ok' "$tmp/steps")" -ge 20 ]
ok $? "they are 20 or more"

# Quoted lines are in the named file; other lines are detected.
printf 'one\ntwo\nthree\n' >"$tmp/transcript.txt"
quoted() {
	printf '<!-- of transcript.txt -->\n```\n%s\n```\n' "$1" >"$tmp/page.md"
	python3 tests/cli/console.py "$tmp/page.md" | sed -n 's/^\(ok\|not ok\) 1 .*/\1/p'
}
is "$(quoted "$(printf '$ command\none\n...\nthree')")" ok "a quotation"
is "$(quoted "$(printf 'three\n...\none')")" "not ok" "in another order"
is "$(quoted "$(printf 'one\nthree')")" "not ok" "a line that is left out and not said"
python3 tests/cli/console.py Documentation/user/tutorial-gpu.md >"$tmp/quoted"
is "$?" 0 "tutorial-gpu.md: what is shown is in the transcripts"
sed -n 's/^not ok/# not ok/p' "$tmp/quoted"
python3 tests/cli/console.py README.md >"$tmp/readme"
is "$?" 0 "README.md: so is the demo's output"
sed -n 's/^not ok/# not ok/p' "$tmp/readme"
shown=$(grep -c '^\$ gpupart' Documentation/user/tutorial-gpu.md)
[ "$(grep -c '^ok' "$tmp/quoted")" -ge 9 ] && [ "$shown" -ge 9 ]
ok $? "of 9 commands or more"
tap_done
