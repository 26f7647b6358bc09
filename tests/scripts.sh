#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests scripts/bootstrap, demo, check, coverage-table, support-matrix and capture-gpu with fake
# programs for apt-get, dpkg-query, id, make, gcovr and gpupart: nothing is installed or built.
# TAP.
set -u
top=$(readlink -f -- "$(dirname -- "$(readlink -f -- "$0")")/..")
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
fake=$tmp/bin
mkdir "$fake"
count=0
failed=0

ok() {
	good=$?
	count=$((count + 1))
	if [ $good -eq 0 ]; then
		echo "ok $count - $1"
	else
		failed=$((failed + 1))
		echo "not ok $count - $1: $(tr '\n' ' ' <"$tmp/said" | cut -c 1-200)"
	fi
}

program() {
	cat >"$fake/$1"
	chmod +x "$fake/$1"
}

program dpkg-query <<END
#!/bin/sh
# dpkg-query -W -f FORMAT PACKAGE
for package in "\$@"; do :; done
grep -x "\$package .*" $tmp/packages | sed 's/^[^ ]* //'
END
program apt-get <<END
#!/bin/sh
echo "\$* frontend=\${DEBIAN_FRONTEND-}" >>$tmp/apt
case "\$*" in
*update*) exit \$(cat $tmp/update) ;;
*install*)
	[ "\$(cat $tmp/install)" = 0 ] || { echo "E: no such thing"; exit 100; }
	for word in "\$@"; do
		case \$word in -*|*=*|install) ;; *) echo "\$word installed" >>$tmp/packages ;; esac
	done ;;
esac
END
program id <<END
#!/bin/sh
cat $tmp/uid
END

all='gcc make libc6-dev libnl-3-dev libnl-genl-3-dev libjansson-dev libncurses-dev libyaml-dev libmicrohttpd-dev'
# given UID PACKAGE...: a user on a machine with these packages.
given() {
	echo "$1" >"$tmp/uid"
	shift
	: >"$tmp/packages"
	for package in "$@"; do
		echo "$package installed" >>"$tmp/packages"
	done
	: >"$tmp/apt"
	echo 0 >"$tmp/update"
	echo 0 >"$tmp/install"
}
boot() {
	env -u DEBIAN_FRONTEND PATH="$fake:$PATH" "$top/scripts/bootstrap" "$@" >"$tmp/said" 2>&1
}

# shellcheck disable=SC2086 # a list of words, here and below
given 0 $all
boot build </dev/null && [ ! -s "$tmp/apt" ] && [ ! -s "$tmp/said" ]
ok "bootstrap: with all packages: no call of apt, no output"
# shellcheck disable=SC2086
given 1000 $all
boot build </dev/null && [ ! -s "$tmp/said" ]
ok "bootstrap: with all packages, as an ordinary user: no output"
given 1000 gcc make libc6-dev
boot build </dev/null
[ $? -eq 2 ] && [ "$(wc -l <"$tmp/said")" -eq 1 ] && [ ! -s "$tmp/apt" ] &&
	grep -q 'apt-get install -y --no-install-recommends libnl-3-dev libnl-genl-3-dev libjansson-dev libncurses-dev libyaml-dev libmicrohttpd-dev$' "$tmp/said"
ok "bootstrap: an ordinary user gets one line and status 2"
given 0 gcc make
boot build <&- && [ "$(sed -n 1p "$tmp/apt" | grep -c update)" -eq 1 ] &&
	sed -n 2p "$tmp/apt" | grep -q 'install -y --no-install-recommends libc6-dev libnl-3-dev libnl-genl-3-dev libjansson-dev libncurses-dev libyaml-dev libmicrohttpd-dev frontend=noninteractive'
ok "bootstrap: root, standard input closed: update, then install what is missing"
boot build <&- && [ "$(wc -l <"$tmp/apt")" -eq 2 ]
ok "bootstrap: a second time apt is not called"
given 0 gcc make
echo 100 >"$tmp/update"
boot build </dev/null && grep -q install "$tmp/apt" && grep -q 'update failed' "$tmp/said"
ok "bootstrap: a failed update is reported, and the install is tried"
given 0 gcc make
echo 1 >"$tmp/install"
boot build </dev/null
[ $? -eq 2 ] && grep -q 'E: no such thing' "$tmp/said" && grep -q 'could not install' "$tmp/said"
ok "bootstrap: an install that fails prints apt's message and returns status 2"
# shellcheck disable=SC2086
given 0 $all
sed -i 's/^make installed/make config-files/' "$tmp/packages"
boot build </dev/null && grep -q 'recommends make frontend' "$tmp/apt"
ok "bootstrap: a removed package with remaining settings counts as missing"
# shellcheck disable=SC2086
given 0 $all
boot check </dev/null && grep -q 'valgrind' "$tmp/apt" && grep -q ' clang ' "$tmp/apt"
ok "bootstrap check installs more than bootstrap build"
# shellcheck disable=SC2086
given 0 $all
boot check </dev/null && ! grep -q gcovr "$tmp/apt" && boot coverage </dev/null && grep -q 'recommends gcovr frontend' "$tmp/apt"
ok "only bootstrap coverage installs gcovr"
boot
[ $? -eq 2 ] && grep -q usage "$tmp/said"
ok "bootstrap without a job: usage"

given 1000
PATH="$fake:$PATH" GPUPART_PACKAGES="$tmp/store" "$top/scripts/packages" >"$tmp/said" 2>&1
[ $? -eq 2 ] && grep -qx 'packages: chroot needs root: run this as root' "$tmp/said" && [ ! -e "$tmp/store" ]
ok "packages: refuses an ordinary user and creates nothing"
GPUPART_PACKAGES="$tmp/store" "$top/scripts/packages" --frobnicate >"$tmp/said" 2>&1
[ $? -eq 2 ] && grep -q '^usage: packages' "$tmp/said" && [ ! -e "$tmp/store" ]
ok "packages: usage"

# Output of gcovr for three files, one of them below 90 %.
program gcovr <<'END'
#!/bin/sh
echo filename,line_total,line_covered,line_percent,branch_total,branch_covered,branch_percent
printf '%s\n' lib/a.c,10,9,0.9,4,1,0.25 lib/b.c,1000,899,0.899,4,1,0.25 lib/c.c,7,7,1.0,0,0,
END
table() {
	printf '%b' "$1" >"$tmp/reasons"
	PATH="$fake:$PATH" "$top/scripts/coverage-table" "$tmp" "$tmp/reasons" >"$tmp/table" 2>"$tmp/said"
}
table '# a comment\n'
[ $? -eq 1 ] && [ "$(wc -l <"$tmp/said")" -eq 1 ] && grep -q '^coverage: lib/b.c: 89.9% of lines: add a reason to ' "$tmp/said"
ok "coverage-table: a file below 90% of lines without a reason is named, status 1"
# shellcheck disable=SC2016 # Markdown's, not the shell's
table 'lib/b.c\tits words\n' && [ ! -s "$tmp/said" ] &&
	grep -qx '| `lib/b.c` | 1000 | 899 | 89.9 | 4 | 1 | 25.0 | its words |' "$tmp/table" &&
	grep -qx '| `lib/a.c` | 10 | 9 | 90.0 | 4 | 1 | 25.0 |  |' "$tmp/table" &&
	grep -qx '| \*\*all\*\* | 1017 | 915 | 90.0 | 8 | 2 | 25.0 | |' "$tmp/table"
ok "coverage-table: with a reason: status 0, a row for each file and the total"
table 'lib/b.c\tits words\nlib/a.c\tof old\n' && grep -q '^coverage: lib/a.c: 90.0% of lines: remove the reason' "$tmp/said"
ok "coverage-table: an unnecessary reason is named"
table 'lib/b.c\tits words\nlib/gone.c\tof old\n'
[ $? -eq 1 ] && grep -q '^coverage: lib/gone.c: no such file' "$tmp/said"
ok "coverage-table: a reason for a file that does not exist: status 1"

# Runs bootstrap on a terminal with an answer.
on_terminal() {
	printf '%s\n' "$1" | PATH=$fake:$PATH CI='' script -qec "'$top/scripts/bootstrap' build" /dev/null \
		>"$tmp/said" 2>&1
}
if script -qec true /dev/null >/dev/null 2>&1; then
	given 0 gcc make
	on_terminal n
	[ $? -eq 2 ] && [ ! -s "$tmp/apt" ] && grep -q 'Y/n' "$tmp/said"
	ok "bootstrap on a terminal asks first; n installs nothing"
	given 0 gcc make
	on_terminal y && grep -q install "$tmp/apt"
	ok "bootstrap on a terminal: y installs"
else
	count=$((count + 1))
	echo "ok $count # SKIP no terminal can be made here"
fi

# A tree with the scripts and a fake make, in a path with a blank.
tree="$tmp/a tree"
mkdir -p "$tree/build/bin" "$tree/build/tests" "$tree/.ci"
cp -a "$top/scripts" "$tree/"
cp -a "$top/.ci/run" "$tree/.ci/"
program make <<END
#!/bin/sh
for target in "\$@"; do
	case \$target in all|check|check-kmod-both|lint|fuzz) break ;; esac
done
echo "\$target in \$(pwd)" >>$tmp/made
[ ! -s "$tmp/\$target.totals" ] || cat $tmp/\$target.totals >>"\$TEST_TOTALS"
[ \$target != fuzz ] || { mkdir -p build/fuzz; cp $tmp/fuzzed/* build/fuzz; } 2>/dev/null
exit \$(cat $tmp/\$target.status 2>/dev/null || echo 0)
END
program clang </dev/null
# shellcheck disable=SC2046,SC2086
given 1000 $all valgrind jq xz-utils clang libclang-rt-dev cppcheck shellcheck munge slurmctld slurmd slurm-client libslurm-dev gcc-aarch64-linux-gnu qemu-user-static mandoc bash-completion zsh tmux abigail-tools prometheus curl libnghttp2-dev libprotobuf-c-dev protobuf-c-compiler protobuf-compiler python3-grpcio python3-protobuf \
	$(sed 's/#.*//' "$top/scripts/packages-kmod")
check() {
	: >"$tmp/made"
	(cd / && PATH=$fake:$PATH "$tree/${1:-scripts/check}") >"$tmp/said" 2>&1
}
last() {
	[ "$(tail -n 1 "$tmp/said")" = "$1" ]
}
echo '10 0 1' >"$tmp/check.totals"
echo '4 0 0' >"$tmp/check-slurm.totals"
echo '5 0 0' >"$tmp/lint.totals"
echo '4 0 0' >"$tmp/check-kmod-both.totals"
mkdir "$tmp/fuzzed"
touch "$tmp/fuzzed/a.log" "$tmp/fuzzed/b.log"
check && last '26 passed, 0 failed, 1 skipped'
ok "check adds up the build, tests, lint and fuzz targets"
made() {
	[ "$(grep -xE "($1) in .*" "$tmp/made")" = "$(echo "$1" | tr '|' '\n' | sed "s|\$| in $tree|")" ]
}
made 'all|check|check-kmod-both|fuzz' && made 'all|check-slurm' && made 'all|check-kmod-both-build|fuzz-build|lint|check-kmod-both' &&
	[ "$(wc -l <"$tmp/made")" -eq 8 ]
ok "check makes each target in its own tree, from any folder; Slurm's and lint at the same time"
check .ci/run && last '26 passed, 0 failed, 1 skipped'
ok ".ci/run runs scripts/check"
echo '9 2 1' >"$tmp/check.totals"
echo 2 >"$tmp/check.status"
check
[ $? -eq 1 ] && last '25 passed, 2 failed, 1 skipped' && grep -q fuzz "$tmp/made"
ok "check: failed tests are counted once, the rest still runs, status 1"
rm "$tmp/check.status"
echo '10 0 1' >"$tmp/check.totals"
: >"$tmp/check-slurm.totals"
echo 2 >"$tmp/check-slurm.status"
check
[ $? -eq 1 ] && last '22 passed, 1 failed, 1 skipped' && grep -q 'slurm made no check (status 2)' "$tmp/said"
ok "check: a background stage that dies counts as one failed check"
echo '4 0 0' >"$tmp/check-slurm.totals"
rm "$tmp/check-slurm.status"
echo '9 1 1' >"$tmp/check.totals"
check
[ $? -eq 1 ]
ok "check: a failed test gives status 1 even if make succeeds"
: >"$tmp/check.totals"
echo 2 >"$tmp/check.status"
check
[ $? -eq 1 ] && last '16 passed, 1 failed, 0 skipped'
ok "check: a stage that dies without a total counts as one failed check"
rm -r "$tmp/fuzzed"
rm "$tmp/check.status"
check
[ $? -eq 1 ] && last '14 passed, 2 failed, 0 skipped' && grep -q 'fuzz made no check' "$tmp/said"
ok "check: a stage without checks, or a fuzz target that did not run, is a failure"
echo 2 >"$tmp/all.status"
check
[ $? -eq 1 ] && last '0 passed, 1 failed, 0 skipped'
ok "check: after a failed build only the last line follows"
# shellcheck disable=SC2086
given 1000 $all
check
[ $? -eq 2 ] && [ ! -s "$tmp/made" ]
ok "check: missing packages: status 2, nothing is made"
rm -f "$tmp"/*.status

# shellcheck disable=SC2086
given 1000 $all
cat >"$tree/build/bin/gpupart" <<'END'
#!/bin/sh
echo "gpupart $*"
case "$*" in
*verify*--learn*GPU-order*)
	mkdir -p "$XDG_CACHE_HOME/gpupart/checked" || exit
	echo learnt >"$XDG_CACHE_HOME/gpupart/checked/V05_00-GPU-order" ;;
*verify*GPU-order*)
	echo "no launch is confined: try \`gpupart verify --learn\`" >&2
	exit 1 ;;
*verify*GPU-known*) ;;
*verify*) echo "no GPU" >&2; exit 1 ;;
*GPU-none*capture*) exit 2 ;;
*GPU-*capture*) echo "$*" | sed -n 's/.*--gpu \([^ ]*\).*/pci = 0000:0e:00.0\nuuid = \1/p' ;;
*capture*) echo "pci = 0000:0e:00.0" ;;
doctor*) exit 1 ;;
esac
END
printf '#!/bin/sh\necho "launches of $*"\n' >"$tree/build/tests/gpu-launch_dump"
chmod +x "$tree/build/bin/gpupart" "$tree/build/tests/gpu-launch_dump"
(cd / && PATH=$fake:$PATH "$tree/scripts/demo" --fast) >"$tmp/said" 2>&1 && last 'gpupart demo --fast'
ok "demo builds and runs gpupart demo with its arguments"
(cd "$tmp" && "$tree/scripts/capture-gpu" 0000:0d:00.0 "$tmp/captured") >"$tmp/said" 2>&1
[ $? -eq 1 ] && grep -q -- '--of capture' "$tmp/captured/capture.txt" && grep -q 'no GPU' "$tmp/captured/verify.json.err" &&
	grep -q 'verify.json: status 1: no GPU' "$tmp/said" && grep -q 'doctor.txt: status 1$' "$tmp/said"
ok "capture-gpu stores all output and reports failures"
grep -qx 'launches of 0000:0e:00.0' "$tmp/captured/launches.txt"
ok "capture-gpu dumps launches on the GPU of its topology"
grep -qx 'gpupart doctor --gpu 0000:0d:00.0' "$tmp/captured/doctor.txt" && ! grep -q learn "$tmp/said"
ok "capture-gpu calls doctor for that GPU, and learns no order if the proof did not fail"
(cd "$tmp" && "$tree/scripts/capture-gpu" GPU-none) >"$tmp/said" 2>&1
grep -qx 'launches of GPU-none' "$tmp/gpupart-capture-GPU-none/launches.txt"
ok "capture-gpu without a topology dumps launches on the GPU of its argument"
mkdir -p "$tmp/cache/gpupart/checked"
(cd "$tmp" && XDG_CACHE_HOME=$tmp/cache "$tree/scripts/capture-gpu" GPU-order) >"$tmp/said" 2>&1
[ "$(cat "$tmp/gpupart-capture-GPU-order/V05_00-GPU-order")" = learnt ] && [ -s "$tmp/gpupart-capture-GPU-order/learn.json" ] &&
	! [ -e "$tmp/gpupart-capture-GPU-order/cache" ] && [ -z "$(ls "$tmp/cache/gpupart/checked")" ] &&
	grep -qx '  V05_00-GPU-order' "$tmp/said"
ok "capture-gpu stores the learned map and does not change the user's cache"
echo before >"$tmp/cache/gpupart/checked/V05_00-GPU-known"
(cd "$tmp" && XDG_CACHE_HOME=$tmp/cache "$tree/scripts/capture-gpu" GPU-known) >"$tmp/said" 2>&1
[ "$(cat "$tmp/gpupart-capture-GPU-known/V05_00-GPU-known")" = before ] && ! [ -e "$tmp/gpupart-capture-GPU-known/learn.json" ]
ok "capture-gpu stores a map that this user had learned before"
(cd "$tmp" && "$tree/scripts/capture-gpu" 0 "$tmp/captured") >"$tmp/said" 2>&1
[ $? -eq 2 ] && grep -q 'exists already' "$tmp/said"
ok "capture-gpu does not write into an existing folder"
"$tree/scripts/capture-gpu" "$tmp/folder" >"$tmp/said" 2>&1
[ $? -eq 2 ] && grep -q '^usage' "$tmp/said"
ok "capture-gpu refuses a folder as its GPU argument"

cat >"$tree/build/tests/list-layouts" <<'END'
#!/bin/sh
printf 'GH100, GH200\tcbc0\tV04_00\tH200\tcl|cbc0\n'
END
chmod +x "$tree/build/tests/list-layouts"
page=$tree/Documentation/user/support.md
mkdir -p "${page%/*}"
printf '%s\n' '# T' '<!-- support-matrix -->' 'old' '<!-- /support-matrix -->' 'after' >"$page"
"$tree/scripts/support-matrix" --check >"$tmp/said" 2>&1
[ $? -eq 1 ] && "$tree/scripts/support-matrix" >"$tmp/said" 2>&1 && "$tree/scripts/support-matrix" --check &&
	grep -qF '| GH100, GH200 | cbc0 | V04_00 | H200 | cl\|cbc0 |' "$page" &&
	! grep -q old "$page" && grep -q after "$page"
ok "support-matrix replaces what is between its markers, and then finds it good"
printf 'cbc0\tH200\n' >"$tmp/rows"
printf '#!/bin/sh\ncat %s\n' "$tmp/rows" >"$tree/build/tests/list-layouts"
"$tree/scripts/support-matrix" >"$tmp/said" 2>&1
[ $? -eq 1 ] && grep -q 'has 2 columns' "$tmp/said" && grep -q V04_00 "$page"
ok "support-matrix refuses a row with a column too few and leaves the page as it was"

mkdir -p "$tmp/words/cli"
cat >"$tmp/words/cli/a.c" <<'END'
__attribute__((format(printf, 3, 4)))
int command_fail(const char *cmd, int error, const char *fmt, ...);
#define failure(...)	command_fail(name, 1, __VA_ARGS__)

int a(const char *file)
{
	puts("no message");
	/* failure("a comment"); */
	if (!file)
		return failure("%s (%" PRIu64 " bytes): \"cut\" "
			       "in two", file, (uint64_t)0);
	slurm_error("job %u", 0);
	return failure("%s: %s", file, b() ? "a file" : "a folder");
}
END
messages() {
	(cd "$tmp/words" && "$top/scripts/messages.py" "$@") >"$tmp/said" 2>&1
}
messages && printf '%s\n' 'cli/a.c:10: "%s (% bytes): \"cut\" in two"' 'cli/a.c:12: "job %u"' \
	'cli/a.c:13: "a file"' 'cli/a.c:13: "a folder"' | cmp -s - "$tmp/said"
ok "messages lists the literals of message functions, with file and line"
messages cli/a.c && [ "$(wc -l <"$tmp/said")" -eq 4 ] && messages lib && [ ! -s "$tmp/said" ]
ok "messages takes files and folders"
(cd "$top" && scripts/messages.py cli/cmd_run.c) >"$tmp/said" 2>&1 && grep -q '^cli/cmd_run.c:' "$tmp/said"
ok "messages finds those of the command"

# "make -j2" is the first target, and words with "=" are variables.
(cd "$top" && make -s help) >"$tmp/said" 2>&1 && grep -q '^make check ' "$tmp/said" &&
	(for target in $(sed 's/#.*//; s/^make//' "$tmp/said"); do
		case $target in
		-* | *=*) ;;
		*) grep -q "^\([a-z-]* \)*$target\( [a-z-]*\)*:" "$top/Makefile" "$top"/*/*.mk "$top/tests/Makefile.inc" || exit 1 ;;
		esac
	done)
ok "make help lists targets, and each one exists"

echo "1..$count"
[ $failed -eq 0 ]
