#!/bin/sh
# SPDX-License-Identifier: MIT
# Bad input of gpupart metrics, ps and top on the simulated GPU: totals and pages that are damaged,
# configuration with mistakes, names with control characters, thousands of names in /dev/shm.
. "$(dirname "$0")/tap.subr"
. tests/cli/metrics.subr
trap 'rm -f "$go" "$go".*; wait; rm -rf "$tmp"' EXIT
e="-i tests/data/gh100-h200-e/capture.txt"
one=one$$ two=two$$

still() {
	"$gpupart" ps --json >"$tmp/ps.json"
	sleep 0.3
	"$gpupart" ps --json | cmp -s - "$tmp/ps.json"
}
# value METRIC NAME: the sum of the samples of that name in $tmp/out.
value() {
	grep "^$1{.*name=\"$2\"" "$tmp/out" | awk '{ sum += $NF } END { printf "%.9g", sum }'
}
# not_less NEW OLD
not_less() {
	[ -n "$1" ] && awk "BEGIN { exit !($1 >= $2) }"
}

touch "$go" "$go.second"
# shellcheck disable=SC2086 # a list of words
"$gpupart" run --exec $e -t 0-3 --name "$one" --mem 2G -- "$tmp/work" "$go" 2>/dev/null &
# shellcheck disable=SC2086 # a list of words
"$gpupart" run $e -t 4-5 --name "$two" -- \
	sh -c "'$tmp/work' '$go' & exec '$tmp/work' '$go.second'" 2>/dev/null &
until_true has_rows "$one" 1 && until_true has_rows "$two" 2
ok $? "three programs run"
touch "$go.hold" "$go.second.hold"
until_true still

# ------------------------------------------------------------------------- -o -
cd "$tmp" || exit 1
"$gpupart" metrics -o - >out 2>err
is "$? $(tail -n 1 out) $(cat err)" "0 # EOF " "metrics -o -: standard output"
"$gpupart" ps -o - >out 2>err
is "$? $(grep -c "^ .*$one" out) $(cat err)" "0 1 " "so is ps -o -"
is "$(find . -name '-*')" "" "and there is no file -"
cd "$root" || exit 1

# ------------------------------------------------------------------------- damaged totals
prom=$tmp/a.prom
counters="gpupart_launches_total gpupart_busy_seconds_total gpupart_unrecorded_launches_total"
"$gpupart" metrics -o "$prom"
rm "$go.second"
until_true sh -c "[ \$('$gpupart' ps | grep -c '$two') = 1 ]"
"$gpupart" metrics -o "$prom"
cp "$prom" "$tmp/before"
cp "$prom.totals" "$tmp/totals"
for damage in "s/^[0-9]*/x/" "1s/.*/garbage/" '1d' '$d' removed; do
	cp "$tmp/before" "$prom"
	if [ "$damage" = removed ]; then
		rm "$prom.totals"
	else
		sed "$damage" "$tmp/totals" >"$prom.totals"
	fi
	for turn in first second; do
		try metrics -o "$prom"
		bad=
		for counter in $counters; do
			cp "$tmp/before" "$tmp/out"
			old=$(value "$counter" "$two")
			cp "$prom" "$tmp/out"
			not_less "$(value "$counter" "$two")" "$old" ||
				bad="$bad $counter $(value "$counter" "$two") was $old"
		done
		is "$status$bad" 0 "totals: $damage, $turn: no counter falls"
		case "$turn $damage" in
		"first "*s/*) said="1 1" ;;
		*) said="0 0" ;;
		esac
		is "$(grep -c "$prom.totals:1: " "$tmp/err") $(wc -l <"$tmp/err")" "$said" \
			"a bad line is reported once, with the file's name"
	done
done

# ------------------------------------------------------------------------- a damaged page
# damage FILE CONFINED DRIVER CLUSTER: those counters of a lane, in hexadecimal.
cat >"$tmp/damage.c" <<'END'
#include <stdio.h>
#include <stdlib.h>
#include "lib/state/state_page.h"
int main(int argc, char **argv)
{
	const int places[] = { STATE_CONFINED, STATE_WIDENED_DRIVER, STATE_WIDENED_CLUSTER };
	FILE *file = fopen(argv[1], "r+");

	for (int i = 0; file && i + 2 < argc; i++) {
		uint64_t value = strtoull(argv[i + 2], NULL, 16);

		fseek(file, offsetof(struct state_page, lanes[60].counters[places[i]]), SEEK_SET);
		fwrite(&value, sizeof(value), 1, file);
	}
	return !file || fclose(file);
}
END
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null 2>&1 &&
	${CC:-cc} -I. -Iinclude -Iinclude/uapi -D_GNU_SOURCE -o "$tmp/damage" "$tmp/damage.c" \
		2>"$tmp/err"; then
	mkdir -m 777 "$tmp/other"
	touch "$go.other" "$go.other.hold"
	XDG_CACHE_HOME=$tmp/other setpriv --reuid 4733 --clear-groups "$gpupart" run --exec \
		-i sample:h200-e -t 8-9 --name "other$$" -- "$tmp/work" "$go.other" 2>/dev/null &
	other=$!
	until_true sh -c "'$gpupart' ps | grep -q other$$"
	for values in "8000000000000000 4000000000000000 4000000000000000" \
		"ffffffffffffffff ffffffffffffffff ffffffffffffffff" "0 8000000000000001 0" "0 0 0"; do
		# shellcheck disable=SC2086 # a list of words
		"$tmp/damage" /dev/shm/gpupart-4733/$other.*[0-9a-f] $values ||
			ok 1 "the page cannot be changed"
		try metrics -o "$tmp/b.prom"
		cp "$tmp/b.prom" "$tmp/out"
		new=$(value gpupart_launches_total "other$$")
		is "$status $(grep -c '^gpupart.* -' "$tmp/out")" "0 0" \
			"$values in another user's page: no sample is negative"
		not_less "$new" "${old_launches:-0}"
		ok $? "and launches do not fall: $new, ${old_launches:-0}"
		old_launches=$new
		"$gpupart" ps --json >"$tmp/ps.json"
		"$gpupart" top --json -n 1 >>"$tmp/ps.json"
		is "$(jq '.. | numbers | select(. < 0)' "$tmp/ps.json")" "" "nor any figure of ps and top"
	done
	rm "$go.other"
else
	skip "another user's page: not root, no setpriv or no C compiler"
fi

# ------------------------------------------------------------------------- configuration
mkdir -p "$XDG_CONFIG_HOME/gpupart"
config=$XDG_CONFIG_HOME/gpupart/config
printf 'set.good = -u 0\ncolour = red\n' >"$config"
for words in ps "metrics" "top --once -d 0.1" "ps --json"; do
	# shellcheck disable=SC2086 # a list of words
	try $words
	is "$status $(grep -c "$config:2: 'colour'" "$tmp/err") $(wc -l <"$tmp/err")" "0 1 1" \
		"a configuration with an unknown key: $words says it, once"
	has "$out" "$one" "and goes on"
done
printf 'set.good = -u 0\nset.good = -u 1\n' >"$config"
try ps
is "$status $(grep -c "$config:2: 'set.good' is given twice" "$tmp/err")" "0 1" "a key twice"
printf 'no key\n' >"$config"
try metrics
is "$status $(grep -c "$config:1: 'no key' is not valid" "$tmp/err")" "0 1" "a line without ="
rm "$config"
try ps
is "$status $err" "0 " "without a configuration no message"
if [ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null; then
	mkdir "$tmp/etc"
	printf 'set.good = -u 0\nstrikt = yes\n' >"$tmp/etc/config"
	printf 'colour = red\n' >"$config"
	# shellcheck disable=SC2016 # for the inner shell
	said=$(unshare -m --propagation private sh -c 'mkdir -p /etc/gpupart &&
		mount --bind "$1" /etc/gpupart && "$0" ps' "$gpupart" "$tmp/etc" 2>&1 >/dev/null)
	has "$said" "/etc/gpupart/config:2: 'strikt'" "the node's file is reported"
	has "$said" "$config:1: 'colour'" "and the user's as well"
	printf 'strict = maybe\n' >"$tmp/etc/config"
	# shellcheck disable=SC2016 # for the inner shell
	said=$(unshare -m --propagation private sh -c '
		mount --bind "$1" /etc/gpupart && "$0" metrics' "$gpupart" "$tmp/etc" 2>&1 >/dev/null)
	has "$said" "/etc/gpupart/config:1: strict = maybe" "a bad value of strict is reported"
	rmdir /etc/gpupart 2>/dev/null
	rm "$config"
else
	skip "/etc/gpupart/config: not root, or no namespaces"
fi

# ------------------------------------------------------------------------- names
esc=$(printf '\033')
odd="$tmp/a
b$esc[2J"
cp "$tmp/work" "$odd"
touch "$go.odd" "$go.odd.hold"
# shellcheck disable=SC2086 # a list of words
"$gpupart" run --exec $e -t 10 --mem 1G -- env "GPUPART_NAME=x
y$esc[31m" "$odd" "$go.odd" 2>/dev/null &
pid=$!
until_true sh -c "'$gpupart' ps --json | jq -e '.processes[] | select(.pid == $pid)' >/dev/null"
for words in ps "metrics" "top --once -d 0.1" "top -n 1"; do
	# shellcheck disable=SC2086 # a list of words
	try $words
	is "$status $(LC_ALL=C grep -c "$(printf '[\001-\010\013-\037\177]')" "$tmp/out")" "0 0" \
		"names with control characters: $words prints none"
	is "$(grep -c -e '^y' -e '^b' "$tmp/out")" 0 "nor a line that begins in a name"
done
rm "$go.odd"

# ------------------------------------------------------------------------- a flood of names
rm -f "$go" "$go".*
wait
# Mostly folders of another user with the names of still others; in a /dev/shm of its own.
cat >"$tmp/flood" <<'END'
mount -t tmpfs -o mode=1777,nr_inodes=200000 none /dev/shm || exit
tmp=$1 gpupart=$2
touch "$tmp/go" "$tmp/go.hold"
# shellcheck disable=SC2086 # a list of words
"$gpupart" run --exec $3 -t 0-3 --name flooded -- "$tmp/work" "$tmp/go" 2>/dev/null &
for _ in $(seq 600); do
	"$gpupart" ps 2>/dev/null | grep -q flooded && break
	sleep 0.1
done
"$gpupart" ps >/dev/null
seq 100000 $((100000 + $4)) | sed 's,^,/dev/shm/gpupart-,' |
	setpriv --reuid 4733 --clear-groups xargs mkdir -m 700
for words in ps metrics "top --json -n 2 -d 0.1"; do
	# shellcheck disable=SC2086 # a list of words
	"$gpupart" $words >"$tmp/out" 2>"$tmp/err"
	echo "$words: $? $(grep -c flooded "$tmp/out" | sed 's/[1-9][0-9]*/shown/')" \
		"$(grep -c "/dev/shm has more than is looked at" "$tmp/err") $(wc -l <"$tmp/err")"
done
rm -f "$tmp/go" "$tmp/go.hold"
wait
END
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null 2>&1 && unshare -m true 2>/dev/null; then
	for nr in 1000 70000; do
		said=$((nr > 65536))
		is "$(unshare -m --propagation private sh "$tmp/flood" "$tmp" "$gpupart" "$e" $nr 2>&1)" \
			"ps: 0 shown $said $said
metrics: 0 shown $said $said
top --json -n 2 -d 0.1: 0 shown $said $said" \
			"$nr names that another user made: root's are shown; said once: $said"
	done
else
	skip "another user's folders: not root, no setpriv or no namespaces"
fi
tap_done
