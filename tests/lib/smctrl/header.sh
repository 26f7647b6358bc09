#!/bin/sh
# SPDX-License-Identifier: MIT
# libsmctrl.h in every supported version of C and C++, with and without 128-bit integers; the
# dependencies of a program that is linked with -lsmctrl; both libraries after installation. TAP.
set -u
build=${BUILD:-build}
cc=${CC:-gcc}
cxx=${CXX:-g++}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
count=0
failed=0

ok() {
	count=$((count + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $count - $2"
	else
		failed=$((failed + 1))
		echo "not ok $count - $2"
		sed 's/^/# /' "$dir/log"
	fi
}

skip() {
	count=$((count + 1))
	echo "ok $count # SKIP $1"
}

strict='-Wall -Wextra -Werror -pedantic-errors -Iinclude'

cat >"$dir/plain" <<'END'
#include <libsmctrl.h>
#include <libsmctrl.h>
void all(void *stream);
void all(void *stream)
{
	uint64_t mask = 0, *masks;
	uint32_t nr;
	void (*global)(uint64_t) = libsmctrl_set_global_mask;

	libsmctrl_set_global_mask(1);
	libsmctrl_set_global_mask(~0x1ull);
	libsmctrl_set_global_mask(mask);
	libsmctrl_set_next_mask(-1);
	libsmctrl_set_next_mask(~0x1ul);
	global(mask);
	libsmctrl_set_stream_mask(stream, ~0xffull);
	(void)libsmctrl_make_mask(&mask, 1, 2);
	(void)libsmctrl_get_gpc_info(&nr, &masks, 0);
	(void)libsmctrl_validate_stream_mask(stream, 1, 2, true);
}
END

# The undefined symbols show which function each call became.
cat >"$dir/wide" <<'END'
#include <libsmctrl.h>
void wide(void);
void wide(void)
{
	uint128_t mask = 1;

	libsmctrl_set_WHICH_mask(~mask);
	libsmctrl_set_WHICH_mask((libsmctrl_int128)mask);
}
END
cat >"$dir/narrow" <<'END'
#include <libsmctrl.h>
void narrow(void);
void narrow(void)
{
	libsmctrl_set_WHICH_mask(~0x1ull);
	libsmctrl_set_WHICH_mask(1);
	libsmctrl_set_WHICH_mask((uint64_t)1);
}
END

# becomes COMPILER OPTIONS LANGUAGE FILE WHICH SYMBOL: the program calls that function and no
# other.
becomes() {
	sed "s/WHICH/$5/" "$dir/$4" >"$dir/now.$3"
	# shellcheck disable=SC2086 # a list of options
	$1 $2 $strict -c -o "$dir/now.o" "$dir/now.$3" >"$dir/log" 2>&1 &&
		nm -u "$dir/now.o" | awk '{ print $NF }' | grep '^libsmctrl' >>"$dir/log" &&
		[ "$(grep '^libsmctrl' "$dir/log")" = "$6" ]
}

# language COMPILER LANGUAGE STANDARD
language() {
	cp "$dir/plain" "$dir/plain.$2"
	# shellcheck disable=SC2086 # a list of options
	$1 -std="$3" $strict -c -o "$dir/now.o" "$dir/plain.$2" >"$dir/log" 2>&1
	ok $? "$3: compiles without a warning"
	# shellcheck disable=SC2086 # a list of options
	$1 -std="$3" -U__SIZEOF_INT128__ $strict -c -o "$dir/now.o" "$dir/plain.$2" >"$dir/log" 2>&1
	ok $? "$3: without 128-bit integers"
	for which in global next; do
		# C++ templates leave no symbols after optimization.
		becomes "$1" "-O2 -std=$3" "$2" wide $which libsmctrl_set_${which}_mask_ext
		ok $? "$3: 128 bits call libsmctrl_set_${which}_mask_ext"
		becomes "$1" "-O2 -std=$3" "$2" narrow $which libsmctrl_set_${which}_mask
		ok $? "$3: less call libsmctrl_set_${which}_mask"
	done
}

for standard in c99 gnu99 c11 gnu11 c17 c2x; do
	language "$cc" c $standard
done
if command -v "$cxx" >/dev/null 2>&1; then
	for standard in c++11 gnu++11 c++14 c++17 c++20; do
		language "$cxx" cc $standard
	done
	printf 'extern "C" {\n#include <libsmctrl.h>\n}\n' >"$dir/inside.cc"
	# shellcheck disable=SC2086 # a list of options
	$cxx $strict -c -o "$dir/now.o" "$dir/inside.cc" >"$dir/log" 2>&1
	ok $? "C++: inside an extern \"C\" of the program"
else
	skip "C++: $cxx is not installed"
fi

cat >"$dir/program.c" <<'END'
#include <libsmctrl.h>
int main(void)
{
	uint64_t mask;

	return libsmctrl_make_mask(&mask, 0, 1) || mask != ~1ull || libsmctrl_is_init();
}
END
env -u MAKEFLAGS -u MFLAGS make -s install B="$build" DESTDIR="$dir/root" prefix=/p >"$dir/log" 2>&1
ok $? "make install"
lib=$dir/root/p/lib
$cc -I"$dir/root/p/include" -o "$dir/shared" "$dir/program.c" -L"$lib" -Wl,-rpath-link,"$lib" \
	-Wl,-rpath,"$lib" -lsmctrl >"$dir/log" 2>&1 && "$dir/shared"
ok $? "a program linked with -lsmctrl runs, with a path to libsmctrl.so alone"
readelf -d "$dir/shared" >"$dir/log" && grep -q 'NEEDED.*\[libsmctrl[.]so\]' "$dir/log"
ok $? "it records libsmctrl.so, as with the predecessor"
$cc -I"$dir/root/p/include" -o "$dir/static" "$dir/program.c" -L"$lib" -l:libsmctrl.a -lgpupart \
	-Wl,-rpath,"$lib" >"$dir/log" 2>&1 && "$dir/static"
ok $? "one linked with libsmctrl.a and -lgpupart"
cat >"$dir/mask.c" <<'END'
#include <libsmctrl.h>
int cuInit(unsigned int flags);
int main(void)
{
	uint32_t nr;

	if (cuInit(0) || libsmctrl_get_tpc_info_cuda(&nr, 0) || nr != 66)
		return 1;
	libsmctrl_set_global_mask(~0xfull);
	return libsmctrl_validate_stream_mask(0, 0, 4, false);
}
END
ln -s "$lib/gpupart/sim/libcuda.so.1" "$dir/libcuda.so"
$cc -I"$dir/root/p/include" -o "$dir/mask" "$dir/mask.c" -L"$lib" -L"$dir" -l:libsmctrl.a -lcuda \
	-Wl,-rpath,"$lib" >"$dir/log" 2>&1
ok $? "one linked with -l:libsmctrl.a -lcuda and nothing else, as with the predecessor"
for run in '' "$dir/root/p/bin/gpupart run -i sample:h200-e -t 0-40 --"; do
	# shellcheck disable=SC2086 # a list of words
	GPUPART_SIM=tests/data/gh100-h200-e/capture.txt LD_LIBRARY_PATH="$lib/gpupart/sim" XDG_CACHE_HOME="$dir" \
		$run "$dir/mask" >"$dir/log" 2>&1
	ok $? "${run:+under gpupart run }its mask of 4 TPCs holds on the simulated GPU"
done
$cc -I"$dir/root/p/include" -o "$dir/whole" "$dir/program.c" -L"$lib" -l:libsmctrl_objects.a \
	-l:libgpupart.a -lnl-genl-3 -lnl-3 -ldl -lpthread >"$dir/log" 2>&1 && "$dir/whole"
ok $? "one linked with both archives"
nm -D --defined-only "$lib/libsmctrl.so" | awk '{ print $NF }' |
	grep -vE '^(libsmctrl_[a-z0-9_]+|set_sm_mask|InitializeInjection)$' >"$dir/log"
[ ! -s "$dir/log" ]
ok $? "libsmctrl.so exports its interface and the driver's entry, no more"
for name in $(grep -oE '\<(libsmctrl|set_sm)_[a-z0-9_]+\(' include/libsmctrl.h | tr -d '(' | sort -u); do
	nm -D --defined-only "$lib/libsmctrl.so" | awk '{ print $NF }' | grep -qx "$name" || echo "$name"
done >"$dir/log"
[ ! -s "$dir/log" ]
ok $? "and all of libsmctrl.h"
grep -q '^Libs: .*-lsmctrl$' "$lib/pkgconfig/libsmctrl.pc" &&
	grep -q '^Requires.private: libgpupart$' "$lib/pkgconfig/libsmctrl.pc"
ok $? "libsmctrl.pc"

echo "1..$count"
[ $failed -eq 0 ]
