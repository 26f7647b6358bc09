#!/bin/sh
# SPDX-License-Identifier: MIT
# gpupart.py: runs each program in this folder in the environment that it needs, on the simulated
# driver, and adds up their TAP. PYTHON names another interpreter.
root=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
cd "$root" || exit 1
: "${BUILD:=$root/build}"
: "${PYTHON:=python3}"
if ! command -v "$PYTHON" >/dev/null 2>&1; then
	echo "1..0 # SKIP there is no $PYTHON"
	exit 77
fi
if ! "$PYTHON" -c 'import ctypes, doctest, sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
	echo "1..0 # SKIP $PYTHON is older than 3.9 or has no ctypes, which Debian's python3 brings"
	exit 77
fi
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM
unset GPUPART_SET GPUPART_GPU GPUPART_TENANT GPUPART_MEM GPUPART_NAME GPUPART_DISABLE GPUPART_SIM GPUPART_CHECKED \
	CUDA_INJECTION64_PATH CUDA_VISIBLE_DEVICES LD_PRELOAD PYTHONPATH MAKEFLAGS MAKELEVEL MFLAGS
export XDG_CACHE_HOME="$tmp/cache" LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1
export GPUPART_LIBRARY="$BUILD/lib/libgpupart.so.0"
count=0 failed=0

ok() {	# ok STATUS WORDS
	count=$((count + 1))
	if [ "$1" -eq 0 ]; then echo "ok $count - $2"; else echo "not ok $count - $2"; failed=1; fi
}

# program NAME [VARIABLE=VALUE...] [-- ARGS]: passes its lines on; a missing or wrong plan is a
# failure.
program() {
	name=$1
	shift
	: >"$tmp/env"
	while [ $# -gt 0 ] && [ "$1" != -- ]; do
		printf '%s\n' "$1" >>"$tmp/env"
		shift
	done
	[ $# -eq 0 ] || shift
	set -- "$PYTHON" "tests/python/$name.py" "$@"
	while IFS= read -r variable; do
		set -- "$variable" "$@"
	done <"$tmp/env"
	env "$@" >"$tmp/out" 2>&1
	status=$?
	sed -n "s/^\(ok\|not ok\) [0-9]* - /\1 - $name: /p" "$tmp/out" >"$tmp/lines"
	nr=$(wc -l <"$tmp/lines")
	while IFS= read -r line; do
		case $line in
		ok*) ok 0 "${line#*- }" ;;
		*) ok 1 "${line#*- }" ;;
		esac
	done <"$tmp/lines"
	grep -qx "1\.\.$nr" "$tmp/out" && [ "$nr" -gt 0 ] &&
		{ [ $status -eq 0 ] || grep -q '^not ok' "$tmp/lines"; }
	ok $? "$name $*: ended with status $status after $nr checks"
	[ $status -eq 0 ] || grep -v '^ok' "$tmp/out" | sed 's/^/# /'
}

b=tests/data/gh100-h200-b/capture.txt
e=tests/data/gh100-h200-e/capture.txt
sim=LD_LIBRARY_PATH=$BUILD/lib/gpupart/sim
# Programs that read busy times need the clock host-clock. The other clock stands still while the
# GPU is idle.
program layout
program sets
program doctests "$sim" GPUPART_SIM=$b GPUPART_SIM_FAULTS=host-clock
at=$(realpath --relative-to=. "$BUILD")/lib
program doctests "LD_LIBRARY_PATH=$at/gpupart/sim:$at" GPUPART_LIBRARY= GPUPART_SIM=$b \
	GPUPART_SIM_FAULTS=host-clock
program scopes "$sim" GPUPART_SIM=$b
program split -- shapes
program split "$sim" GPUPART_SIM=$b GPUPART_SIM_FAULTS=host-clock -- streams
program split "$sim" GPUPART_SIM=$b -- at_once
program split "$sim" GPUPART_SIM=$b GPUPART_RECORDS=0 -- no_records
program split "$sim" GPUPART_SIM=$b GPUPART_DISABLE=1 -- disabled
program split "$sim" GPUPART_SIM=$b GPUPART_SIM_FAULTS=no-table -- no_table
program split "$sim" GPUPART_SIM=$b GPUPART_SIM_FAULTS=no-stream-pointer -- no_streams
program split "$sim" GPUPART_SIM=$b:$e -- two_gpus
program split "$sim" GPUPART_SIM=$b:$e GPUPART_DISABLE=1 -- two_without
program split "$sim" GPUPART_SIM=$b:$e GPUPART_SIM_FAULTS=no-table -- two_without
program split "$sim" GPUPART_SIM=$b:$e GPUPART_SIM_FAULTS=no-stream-pointer -- two_without
for first in library driver; do
	program injected "$sim" GPUPART_SIM=$b GPUPART_SET=5-9 CUDA_INJECTION64_PATH="$BUILD/lib/gpupart/libgpupart-inject.so" -- $first
done
program faults "$sim" GPUPART_SIM=$b:$e -- two_gpus
program faults "$sim" GPUPART_SIM=$b GPUPART_SET=0-7 -- outer
program faults "$sim" GPUPART_SIM=$b GPUPART_TENANT=python-$$ GPUPART_MEM=8000 -- memory
program faults "$sim" GPUPART_SIM=$b GPUPART_DISABLE=1 -- disabled
program faults "$sim" GPUPART_SIM=$b GPUPART_SET=0-7 -- options
program faults "$sim" GPUPART_SIM=$b -- options_late
rm -rf "$tmp/cache"
program faults "$sim" GPUPART_SIM=$b GPUPART_SIM_FAULTS=move-bit=17:120 -- moved
program faults "$sim" GPUPART_SIM=$b GPUPART_SIM_FAULTS=no-table -- no_table
program faults "$sim" GPUPART_SIM=$b GPUPART_SIM_FAULTS=no-stream-pointer -- no_streams
program faults "$sim" GPUPART_SIM=$b GPUPART_SIM_FAULTS=no-api -- no_calls
if [ -e /dev/nvidiactl ]; then
	count=$((count + 1))
	echo "ok $count # SKIP no_driver: there is a driver here"
else
	program faults -- no_driver
	program split -- no_driver
fi
program engine_policy
if "$PYTHON" -c 'import torch' 2>/dev/null; then
	program engine_model
else
	count=$((count + 1))
	echo "ok $count # SKIP engine_model: $PYTHON has no PyTorch"
fi
program library -- "$root/python" "$BUILD/lib/libgpupart.so.0" "$tmp"

# Types, if a type checker is installed.
count=$((count + 1))
if command -v mypy >/dev/null 2>&1; then
	if mypy --strict --cache-dir="$tmp/mypy" python/gpupart.py >"$tmp/out" 2>&1; then
		echo "ok $count - mypy --strict finds nothing"
	else
		echo "not ok $count - mypy --strict finds nothing"
		sed 's/^/# /' "$tmp/out"
		failed=1
	fi
else
	echo "ok $count # SKIP there is no mypy"
fi

# Installed in a separate prefix, it finds its library without a setting.
${MAKE:-make} -s B="$BUILD" PYTHON="$PYTHON" prefix="$tmp/p" install-python >"$tmp/out" 2>&1
ok $? "make install-python"
at=$(find "$tmp/p" -name gpupart.py)
[ -n "$at" ] && cmp -s "$at" python/gpupart.py
ok $? "installs the file below its prefix: ${at#"$tmp/"}"
cp "$BUILD/lib/libgpupart.so.0" "$BUILD/lib/libgpupart-manage.so.0" "$tmp/p/lib/"
where=$(cd / && env -u GPUPART_LIBRARY PYTHONPATH="${at%/*}" "$PYTHON" -c \
	'import gpupart; print(gpupart._lib._name)' 2>&1)
[ "$(readlink -f -- "$where")" = "$(readlink -f -- "$tmp/p/lib/libgpupart-manage.so.0")" ] ||
	[ "$where" = libgpupart-manage.so.0 ]
ok $? "and finds the library that was installed with it"
${MAKE:-make} -s B="$BUILD" PYTHON="$PYTHON" DESTDIR="$tmp/d" prefix=/opt/x install-python >"$tmp/out" 2>&1
at=$(find "$tmp/d" -name gpupart.py)
case $at in
"$tmp/d/opt/x/lib/python3"*/gpupart.py) true ;;
*) false ;;
esac
ok $? "DESTDIR comes before the prefix: ${at#"$tmp/"}"
${MAKE:-make} -s B="$BUILD" PYTHON="$PYTHON" DESTDIR="$tmp/f" pythondir=/here install-python >"$tmp/out" 2>&1
[ -e "$tmp/f/here/gpupart.py" ]
ok $? "pythondir= says where"
echo "1..$count"
exit $failed
