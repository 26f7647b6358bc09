#!/bin/sh
# SPDX-License-Identifier: MIT
# make wheel: the wheel's metadata, and its functions in a new venv without a compiler and without
# the build's files. PYTHON names another interpreter.
root=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
cd "$root" || exit 1
: "${BUILD:=$root/build}"
: "${PYTHON:=python3}"
for tool in objdump strip dpkg unzip; do
	command -v $tool >/dev/null 2>&1 || { echo "1..0 # SKIP there is no $tool"; exit 77; }
done
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM
if ! "$PYTHON" -m venv "$tmp/venv" >"$tmp/out" 2>&1; then
	echo "1..0 # SKIP $PYTHON makes no venv, for which Debian has python3-venv"
	exit 77
fi
unset GPUPART_LIBRARY GPUPART_SET GPUPART_GPU GPUPART_SIM GPUPART_DISABLE CUDA_INJECTION64_PATH CUDA_VISIBLE_DEVICES \
	LD_LIBRARY_PATH LD_PRELOAD PYTHONPATH MAKEFLAGS MAKELEVEL MFLAGS
export XDG_CACHE_HOME="$tmp/cache" LC_ALL=C.UTF-8 PYTHONDONTWRITEBYTECODE=1
count=0 failed=0

ok() {	# ok STATUS WORDS
	count=$((count + 1))
	if [ "$1" -eq 0 ]; then echo "ok $count - $2"; else echo "not ok $count - $2"; failed=1; fi
	[ "$1" -eq 0 ] || sed 's/^/# /' "$tmp/out"
}

make_wheel() {
	"${MAKE:-make}" -s wheel B="$BUILD" PYTHON="$PYTHON" >"$tmp/out" 2>&1
}
make_wheel
ok $? "make wheel"
wheel=$(echo "$BUILD"/wheel/gpupart-*.whl)
cp "$wheel" "$tmp/first" && make_wheel && cmp "$tmp/first" "$wheel" >"$tmp/out" 2>&1
ok $? "again: the same bytes"

# The minimum glibc in its name is that of its newest symbol, and that of the page.
mkdir "$tmp/files" && (cd "$tmp/files" && unzip -q "$wheel")
find "$tmp/files/gpupart.libs" \( -name '*.so*' -o -name gpupart -type f \) ! -name '*.capture' >"$tmp/list"
while read -r file; do objdump -T "$file"; done <"$tmp/list" >"$tmp/symbols"
floor=$(grep -o 'GLIBC_[0-9.]*' "$tmp/symbols" | sed 's/GLIBC_//' | sort -Vu | tail -1)
[ "$(wc -l <"$tmp/list")" -ge 10 ] && [ -n "$floor" ]
ok $? "$(wc -l <"$tmp/list") programs and libraries, which need glibc $floor"
case ${wheel##*/} in
gpupart-*-py3-none-manylinux_"$(echo "$floor" | tr . _)"_"$(uname -m)".whl) true ;;
*) false ;;
esac
ok $? "its name says so: ${wheel##*/}"
words=$(tr '\n' ' ' <Documentation/user/python.md | grep -o 'glibc [0-9.]*[0-9] or newer')
[ "$(printf '%s\n%s\n' "glibc $floor or newer" "$words" | sort -Vu | tail -1)" = "$words" ]
ok $? "and the page does not promise less: $words"
# It contains all libraries of other packages except glibc.
while read -r file; do objdump -p "$file"; done <"$tmp/list" | awk '$1 == "NEEDED" { print $2 }' | sort -u |
	grep -vE '^(libc|libm|libdl|libpthread|librt)\.so\.[0-9]+$|^ld-linux' >"$tmp/needed"
sed 's|.*/||' "$tmp/list" | sort | comm -13 - "$tmp/needed" >"$tmp/out"
[ -s "$tmp/needed" ] && ! [ -s "$tmp/out" ]
ok $? "what they need is in it: $(tr '\n' ' ' <"$tmp/needed")"

# In a venv, without any compiler.
here=$tmp/venv/bin
PATH="$here" "$here/python" -m pip install --no-index --no-deps --no-cache-dir --disable-pip-version-check \
	"$wheel" >"$tmp/out" 2>&1
ok $? "pip install --no-index"
cd / || exit 1
site=$("$here/python" -c 'import os, gpupart; print(os.path.dirname(gpupart.__file__))' 2>"$tmp/out")
case $site in "$tmp/venv/"*) true ;; *) false ;; esac
ok $? "import gpupart"
"$here/python" -c 'import gpupart; print(gpupart._lib._name, len(gpupart.Topology.open("sample:h200-b").all))
print(open("/proc/self/maps").read())' >"$tmp/out" 2>&1
grep -q "^$site/gpupart.libs/lib/libgpupart-manage.so.0 66\$" "$tmp/out" &&
	! grep -q "$root" "$tmp/out"
ok $? "with its own libraries and samples"
version=$(sed -n 's/^__version__ = "\(.*\)"/\1/p' "$site/gpupart.py")
for command in "$here/python -m gpupart" "$here/gpupart"; do
	$command --version >"$tmp/out" 2>&1 && grep -qF "$version" "$tmp/out"
	ok $? "$command --version"
done
"$here/python" -m gpupart nosuch >"$tmp/out" 2>&1
[ $? -eq 2 ] && grep -q nosuch "$tmp/out"
ok $? "its exit status is the command's"
"$here/python" -m gpupart run -i sample:h200-b -t 0-7 -- "$here/python" -c 'import gpupart
print(gpupart.attach().census())
maps = {line.split()[-1] for line in open("/proc/self/maps") if "/libgpupart.so" in line}
print(len(maps), *maps)' >"$tmp/out" 2>&1
grep -qx "0-7" "$tmp/out" && grep -qx "1 $site/gpupart.libs/lib/libgpupart.so.0" "$tmp/out"
ok $? "python -m gpupart run confines a program, which has the library once"
build=$BUILD/bin/gpupart
"$build" run -i sample:h200-b -t 0-7 -- "$here/python" -c 'import gpupart
print(gpupart.attach().census())
print(len({line.split()[-1] for line in open("/proc/self/maps") if "/libgpupart.so" in line}))' >"$tmp/out" 2>&1
grep -qx "0-7" "$tmp/out" && grep -qx 1 "$tmp/out"
ok $? "so has one that another gpupart runs"
for run in "$here/gpupart run" "$here/gpupart run --strict" "$build run" "$build run --strict"; do
	$run -i sample:h200-b -t 0-7 -- "$here/python" -c 'import ctypes
ctypes.CDLL("libcuda.so.1").cuInit(0)
import gpupart
print(gpupart.attach().census(), bool(gpupart.jobs()))
print(len({line.split()[-1] for line in open("/proc/self/maps") if "/libgpupart.so" in line}))' >"$tmp/out" 2>&1
	grep -qx "0-7 True" "$tmp/out" && grep -qx 1 "$tmp/out"
	ok $? "so has one that imports the module after the injected library: ${run#"$tmp/"}"
done
"$build" run --strict -i sample:h200-b -t 0-7 -- "$here/gpupart" --version >"$tmp/out" 2>&1
ok $? "the wheel's command inside of a strict run"
cp "$BUILD/lib/libgpupart.so.0" "$tmp"
"$here/python" -c 'import ctypes, sys
ctypes.CDLL(sys.argv[1])
import gpupart
print(gpupart._lib._name)' "$tmp/libgpupart.so.0" >"$tmp/out" 2>&1
grep -q "^$site/gpupart.libs/lib/libgpupart-manage.so.0" "$tmp/out"
ok $? "a loaded library without its manage library: the wheel's"
"$here/python" -m pip uninstall -qy gpupart >"$tmp/out" 2>&1 &&
	[ -z "$(find "$site" -path '*gpupart*' ! -type d)" ]
ok $? "pip uninstall leaves no file"
echo "1..$count"
exit $failed
