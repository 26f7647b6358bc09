#!/bin/sh
# SPDX-License-Identifier: MIT
# Third parties' tests of green contexts, as TAP: each has the same result under gpupart run as
# without it. UPSTREAM_TESTS=FOLDER contains them unmodified, as FOLDER/DISTRIBUTION/VERSION: a
# copy of their files, and pytest's arguments in a file `tests`. The tests of the installed
# version are run, else the newest that load. About 45 s. OUT=FOLDER stores the transcripts;
# GPUPART_UPSTREAM_ARGS="-i CAPTURE" runs it on the simulated GPU.
build=${BUILD:-build}
build=$(cd "$build" && pwd) || exit 1
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT INT TERM
out=${OUT:-$tmp}
mkdir -p "$out"
out=$(cd "$out" && pwd) || exit 1
export XDG_CACHE_HOME="$tmp/cache" PYTHONDONTWRITEBYTECODE=1
unset GPUPART_SET GPUPART_GPU GPUPART_SM_COUNT CUDA_INJECTION64_PATH
if [ ! -e /dev/nvidiactl ] && [ -z "$GPUPART_UPSTREAM_ARGS" ]; then
	echo "1..0 # SKIP no NVIDIA driver here"
	exit 77
fi
if [ ! -d "$UPSTREAM_TESTS" ]; then
	echo "1..0 # SKIP no tests of others: UPSTREAM_TESTS names no folder"
	exit 77
fi
if ! python3 -c 'import pytest' 2>/dev/null; then
	echo "1..0 # SKIP no pytest here"
	exit 77
fi
. "$(dirname "$0")/cases.subr"

# tests FOLDER FILE BEFORE..: runs its tests with BEFORE.. and python3; output to FILE.
tests() {
	folder=$1 file=$2
	shift 2
	(cd "$folder" || exit 1
	eval "set -- \"\$@\" python3 -m pytest -v -p no:cacheprovider --tb=short $(cat tests)"
	timeout -k 5 60 "$@") >"$file" 2>&1
}

# The result of each test, one line each.
outcomes() {
	sed -nE 's/^([^ ]*::.*) (PASSED|FAILED|SKIPPED|ERROR|XFAIL|XPASS)( .*)?$/\1 \2/p' "$1" | sort -u
}

# Sorts versions by the length of the match with the installed one, then by age.
versions() {
	for folder in "$1"/*/; do
		version=$(basename "$folder")
		case $2. in
		"$version".*) echo "0 $version" ;;
		*) echo "1 $version" ;;
		esac
	done | sort -k1,1n -k2,2Vr | cut -d' ' -f2
}

# compare NAME ALONE INSIDE: compares files of results.
compare() {
	while read -r line; do
		grep -Fxq "$line" "$3"
		ok $? "$1: $line"
	done <"$2"
	while read -r line; do
		grep -Fxq "$line" "$2" || ok 1 "$1: $line, not by itself"
	done <"$3"
}

for distribution in "$UPSTREAM_TESTS"/*/; do
	distribution=$(cd "$distribution" && pwd)
	name=$(basename "$distribution")
	installed=$(python3 -c "import sys, importlib.metadata as m; print(m.version(sys.argv[1]))" \
		"$name" 2>/dev/null)
	if [ -z "$installed" ]; then
		skip "$name: not here"
		continue
	fi
	for version in $(versions "$distribution" "$installed"); do
		alone=$out/upstream-$name-$version.txt
		tests "$distribution/$version" "$alone"
		outcomes "$alone" >"$tmp/alone"
		[ ! -s "$tmp/alone" ] || break
		echo "# $name $installed: tests of $version do not load: $(tail -n 1 "$alone")"
	done
	if [ ! -s "$tmp/alone" ]; then
		skip "$name $installed: no tests that load"
		continue
	fi
	for set in "-n 60" "-t 0-23"; do
		words="$name $installed, tests of $version, $set"
		file=$out/upstream-$name-$version-$(echo "$set" | tr -d ' ').txt
		rm -f "$tmp/log"
		# shellcheck disable=SC2086 # words
		GPUPART_LOG="$tmp/log" tests "$distribution/$version" "$file" \
			"$build/bin/gpupart" run $GPUPART_UPSTREAM_ARGS $set --
		outcomes "$file" >"$tmp/inside"
		compare "$words" "$tmp/alone" "$tmp/inside"
		grep -q '^gpupart: confined to TPCs' "$tmp/log" 2>/dev/null
		ok $? "$words: confined"
	done
done
cases_done
