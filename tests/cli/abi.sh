#!/bin/sh
# SPDX-License-Identifier: MIT
# The library's binary interface: its symbols are those of debian/libgpupart0.symbols and the
# functions of the public headers; its types have the layouts of debian/libgpupart*0.abi (written
# by make abi); and the version is the same in all files that contain it.
. "$(dirname "$0")/tap.subr"
lib=$BUILD/lib/libgpupart.so.0
manage=$BUILD/lib/libgpupart-manage.so.0

# public LIBRARY: its public functions, with the soname, without symbols for libraries of the same
# build.
public() {
	readelf --dyn-syms -W "$1" |
		awk -v lib="${1##*/}" '$4 == "FUNC" && $7 != "UND" && $8 !~ /@GPUPART_PRIVATE/ { sub(/@@/, "@", $8); print lib, $8 }'
}
{ public "$lib"; public "$manage"; } | sort >"$tmp/built"
awk '/^lib/ { lib = $1 } /^ gpupart_/ { print lib, $1 }' debian/libgpupart0.symbols | sort >"$tmp/listed"
sed 's/.* //; s/@.*//' "$tmp/built" | sort >"$tmp/names"
# A prototype begins a line, and its name is before the first bracket.
sed -n '/visibility push/,/visibility pop/s/^[a-z].*[ *]\(gpupart_[a-z0-9_]*\)(.*/\1/p' include/gpupart.h include/gpupart_manage.h | sort >"$tmp/declared"
[ "$(wc -l <"$tmp/built")" -gt 50 ]
ok $? "the library has functions: $(wc -l <"$tmp/built")"
is "$(comm -13 "$tmp/built" "$tmp/listed" | tr '\n' ' ')" "" \
	"no symbol of debian/libgpupart0.symbols went: programs need it; a new soname then"
is "$(comm -23 "$tmp/built" "$tmp/listed" | tr '\n' ' ')" "" \
	"every symbol is in debian/libgpupart0.symbols, below its library, with the version that it came in"
is "$(comm -3 "$tmp/names" "$tmp/declared" | tr -s '\t\n' ' ')" "" "and is declared in a public header"
is "$(sed 1q debian/libgpupart0.symbols | cut -d ' ' -f 1)" "$(readelf -d "$lib" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')" \
	"the soname"

# abidiff's exit status: 4 is a change, 8 an incompatible change.
machine=$(readelf -h "$lib" | sed -n 's/^ *Machine: *//p')
layouts() {
	abidiff --no-added-syms --suppressions debian/private.abignore "$1" "$2" >"$tmp/diff" 2>&1
}
# same_layouts STORED LIBRARY CHANGE: compares; a library that is changed by sed's CHANGE must be
# detected.
same_layouts() {
	layouts "$1" "$2"
	is $? 0 "types are laid out as in $1: $(grep -c . "$tmp/diff") lines of abidiff"
	grep -q '0 Changed' "$tmp/diff" || sed 's/^/# /' "$tmp/diff"
	sed "$3" "$1" >"$tmp/other.abi"
	cmp -s "$1" "$tmp/other.abi"
	is $? 1 "another layout: $3"
	layouts "$tmp/other.abi" "$2"
	[ $(($? & 4)) -ne 0 ] && grep -qE "size changed|type .*changed" "$tmp/diff"
	ok $? "is seen"
}
if ! command -v abidiff >/dev/null 2>&1; then
	skip "layouts: no abidiff"
elif [ "$machine" != "Advanced Micro Devices X86-64" ]; then
	skip "layouts: those stored are of x86-64, this is $machine"
elif ! readelf -S "$lib" | grep -q '\.debug_info'; then
	skip "layouts: built without debugging information"
else
	# The size of a type, and the type of a member.
	same_layouts debian/libgpupart0.abi "$lib" "/class-decl name='gpupart_tpc'/s/size-in-bits='[0-9]*'/size-in-bits='640'/"
	same_layouts debian/libgpupart-manage0.abi "$manage" \
		"/layout-offset-in-bits/{n;/name='optimal'/{x;s/.*/1/;x;s/type-id='[^']*'/type-id='$(sed -n "s/.*name='unsigned long int'.* id='\([^']*\)'.*/\1/p" debian/libgpupart-manage0.abi)'/}}"
fi

version=$(sed -n 's/^VERSION	*:= //p' Makefile)
is "$("$gpupart" --version)" "$version" "the version of Makefile is the command's"
is "$(sed -n '1s/.*(\(.*\)-[^-]*).*/\1/p' debian/changelog)" "$version" "and debian/changelog's"
is "$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' kmod/dkms.conf)" "$version" "and dkms.conf's"
built_for=$(sed -n 's/^BUILD_EXCLUSIVE_KERNEL="\(.*\)"/\1/p' kmod/dkms.conf)
is "$(printf '%s\n' 4.19.0-27 5.4.0-150 5.9.1 5.10.0-32 6.1.0-56 6.12.117 7.3.4 10.0.1 | grep -cE "$built_for")" 5 "kernels that dkms.conf takes"
is "$(sed -n 's/^MODULE_VERSION("\(.*\)");/\1/p' kmod/main.c)" "$version" "and the module's"
is "$(sed -n 's/^__version__ = "\(.*\)"/\1/p' python/gpupart.py)" "$version" "and the Python module's"
tap_done
