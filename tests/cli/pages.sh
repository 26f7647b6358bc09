#!/bin/sh
# SPDX-License-Identifier: MIT
# All pages: links and their anchors have targets, commands in code blocks exist and have the
# options, and every command is in the man page and in the index.
. "$(dirname "$0")/tap.subr"
if ! python3 -c '' 2>/dev/null; then
	skip "no python3"
	tap_done
fi
pages=$(find README.md CONTRIBUTING.md Documentation tests scripts -name '*.md')
# shellcheck disable=SC2086
is "$(python3 tests/cli/pages.py links $pages)" "" "links and anchors lead somewhere"

# The check itself: a page with a heading of each kind.
printf '# A page\n\n## Why: `that` & [this](b.md)?\n\n## Two\n\n## Two\n' >"$tmp/a.md"
printf '[1](a.md#why-that--this) [2](a.md#two-1) [3](a.md) [4](https://example.org/x) `[5](none.md)`\n' >"$tmp/b.md"
is "$(python3 tests/cli/pages.py links "$tmp/a.md" "$tmp/b.md")" "" "good links are good"
printf '```\n[0](none.md)\n```\n[1](none.md)\n[2](a.md#three)\n[3](a.md#two-2)\n' >"$tmp/b.md"
is "$(python3 tests/cli/pages.py links "$tmp/b.md" | sed "s,.*b.md:,,")" "4: none.md: there is no such file
5: a.md#three: there is no such heading
6: a.md#two-2: there is no such heading" "bad ones are found"

# The abbreviations in the public headers, without errors and commonly known ones.
known=" GPU CPU CUDA PCI NVIDIA ASCII NULL SPDX MIT GPL WITH OR AND LIST MASK SIGBUS MAJOR MINOR PATCH NAME PID KB MB "
unexplained=$(python3 -c "import errno, re
text = ' '.join(open(f).read() for f in ('include/gpupart.h', 'include/gpupart_manage.h', 'include/gpupart_tpcset.h', 'include/uapi/linux/gpupart.h'))
words = {w for c in re.findall(r'/[*].*?[*]/', text, re.S) for w in re.findall(r'\b[A-Z][A-Z]+\b', c)}
print(*sorted(w for w in words if ' ' + w + ' ' not in '$known' and not hasattr(errno, w)))" | tr ' ' '\n' | while read -r word; do
	grep -qE "^\|[^|]*\b$word\b" Documentation/internals/vocabulary.md || echo "$word"; done)
is "$unexplained" "" "the vocabulary has the abbreviations of the public headers"

commands=$("$gpupart" --help | sed -n 's,^  \([a-z-]*\)  *[a-zA-Z].*,\1,p' | grep -vx -e help -e '--.*')
for command in $commands; do
	"$gpupart" "$command" --help >"$tmp/help.$command"
	grep -q "^\.It Cm $command" Documentation/man/gpupart.1
	ok $? "gpupart(1) has a place for $command"
	grep -q "^| \`$command\`\|^| .*\`$command\`.* |" Documentation/README.md
	ok $? "the index of pages has $command"
done
# "COMMAND WORDS": prints its unknown parts, or nothing.
strange() {
	# shellcheck disable=SC2086
	set -- $1
	command=$1
	[ -e "$tmp/help.$command" ] || { echo "$command"; return; }
	shift
	for word; do
		case $word in
		--help | --version) ;;
		--*) grep -qE -- "(^|[^a-z-])${word%%=*}([^a-z-]|$)" "$tmp/help.$command" || echo "$word" ;;
		-[a-zA-Z]) grep -qE -- "(^|[^a-z-])$word([^a-z-]|$)" "$tmp/help.$command" || echo "$word" ;;
		esac
	done
}
is "$(strange "run -g 0 --nosuch"; strange nosuch; strange "plan --tenant a:b -f x --json")" "--nosuch
nosuch" "an option and a command that there are not are found"
# shellcheck disable=SC2086
python3 tests/cli/pages.py commands $pages Documentation/man/*.[1-9] >"$tmp/shown"
[ "$(wc -l <"$tmp/shown")" -gt 60 ]
ok $? "commands are shown in the pages"
while IFS=: read -r file line words; do
	found=$(strange "$words")
	[ -z "$found" ] || echo "$file:$line: $found"
done <"$tmp/shown" >"$tmp/strange"
is "$(cat "$tmp/strange")" "" "each command that a page shows, and its options, are there"
tap_done
