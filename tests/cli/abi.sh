#!/bin/sh
# SPDX-License-Identifier: MIT
# The library's binary interface: its symbols are those of debian/libgpupart0.symbols and the
# functions of gpupart.h; its types are laid out as in debian/libgpupart0.abi (make abi writes
# that anew); and everything that has the version has the same.
. "$(dirname "$0")/tap.subr"
lib=$BUILD/lib/libgpupart.so.0

readelf --dyn-syms -W "$lib" | awk '$4 == "FUNC" && $7 != "UND" { sub(/@@/, "@", $8); print $8 }' | sort >"$tmp/built"
sed -n 's/^ \(gpupart_[^ ]*\) [0-9].*/\1/p' debian/libgpupart0.symbols | sort >"$tmp/listed"
sed 's/@.*//' "$tmp/built" >"$tmp/names"
# A prototype begins a line, its name stands before the first bracket.
sed -n '/visibility push/,/visibility pop/s/^[a-z].*[ *]\(gpupart_[a-z0-9_]*\)(.*/\1/p' include/gpupart.h | sort >"$tmp/declared"
[ "$(wc -l <"$tmp/built")" -gt 50 ]
ok $? "the library has functions: $(wc -l <"$tmp/built")"
is "$(comm -13 "$tmp/built" "$tmp/listed" | tr '\n' ' ')" "" \
	"no symbol of debian/libgpupart0.symbols went: programs need it; a new soname then"
is "$(comm -23 "$tmp/built" "$tmp/listed" | tr '\n' ' ')" "" \
	"every symbol is in debian/libgpupart0.symbols, with the version that it came in"
is "$(comm -3 "$tmp/names" "$tmp/declared" | tr -s '\t\n' ' ')" "" "and is declared in gpupart.h"
is "$(sed 1q debian/libgpupart0.symbols | cut -d ' ' -f 1)" "$(readelf -d "$lib" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')" \
	"the soname"

# abidiff: 4 is a change, 8 one that breaks programs, in its exit status.
stored=debian/libgpupart0.abi
machine=$(readelf -h "$lib" | sed -n 's/^ *Machine: *//p')
if ! command -v abidiff >/dev/null 2>&1; then
	skip "layouts: no abidiff"
elif [ "$machine" != "Advanced Micro Devices X86-64" ]; then
	skip "layouts: $stored is of x86-64, this is $machine"
elif ! readelf -S "$lib" | grep -q '\.debug_info'; then
	skip "layouts: built without debugging information"
else
	layouts() {
		abidiff --no-added-syms "$1" "$lib" >"$tmp/diff" 2>&1
	}
	layouts "$stored"
	is $? 0 "types are laid out as in $stored: $(grep -c . "$tmp/diff") lines of abidiff"
	grep -q '0 Changed' "$tmp/diff" || sed 's/^/# /' "$tmp/diff"
	# A library from which ours differs in one member's place, or one type's size.
	for change in "/class-decl name='gpupart_tpc'/s/size-in-bits='[0-9]*'/size-in-bits='640'/" \
		"/layout-offset-in-bits/{n;/name='optimal'/{x;s/.*/1/;x;s/type-id='[^']*'/type-id='type-id-1'/}}"; do
		sed "$change" "$stored" >"$tmp/other.abi"
		cmp -s "$stored" "$tmp/other.abi"
		is $? 1 "another layout: $change"
		layouts "$tmp/other.abi"
		[ $(($? & 4)) -ne 0 ] && grep -qE "size changed|type .*changed" "$tmp/diff"
		ok $? "is seen"
	done
fi

version=$(sed -n 's/^VERSION	*:= //p' Makefile)
is "$("$gpupart" --version)" "$version" "the version of Makefile is the command's"
is "$(sed -n '1s/.*(\(.*\)-[^-]*).*/\1/p' debian/changelog)" "$version" "and debian/changelog's"
is "$(sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' kmod/dkms.conf)" "$version" "and dkms.conf's"
is "$(sed -n 's/^MODULE_VERSION("\(.*\)");/\1/p' kmod/main.c)" "$version" "and the module's"
is "$(sed -n 's/^__version__ = "\(.*\)"/\1/p' python/gpupart.py)" "$version" "and the Python module's"
tap_done
