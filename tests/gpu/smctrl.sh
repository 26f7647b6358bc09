#!/bin/sh
# SPDX-License-Identifier: MIT
# libsmctrl's own test programs with gpupart's library, as TAP. SMCTRL_TESTS=FOLDER contains them
# as in their repository: they are not part of this one. Each is compiled and linked as by its
# Makefile, with other folders of headers and libraries, and run separately. OUT=FOLDER stores
# their output. With GPUPART_SIM=CAPTURE programs without kernels run on the simulated GPU.
build=$(cd "${BUILD:-build}" && pwd) || exit 1
here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM
out=${OUT:-$tmp/out}
mkdir -p "$out"
skip_all() {
	echo "1..0 # SKIP $1"
	exit 77
}
unset GPUPART_SET GPUPART_GPU GPUPART_MEM CUDA_INJECTION64_PATH LIBSMCTRL_MASK
XDG_CACHE_HOME=$tmp/cache
export XDG_CACHE_HOME
[ -e /dev/nvidiactl ] || [ -n "$GPUPART_SIM" ] || skip_all "no NVIDIA driver here"
[ -d "$SMCTRL_TESTS" ] || skip_all "SMCTRL_TESTS= names no folder with libsmctrl's tests"
PATH=$PATH:/usr/local/cuda/bin
nvcc=$(command -v nvcc) || skip_all "no nvcc here"
. "$here/cases.subr"

# Their own header and library are not copied: a quoted include searches the source's folder
# first.
mkdir "$tmp/src"
cp "$SMCTRL_TESTS"/libsmctrl_test_* "$SMCTRL_TESTS"/testbench.h "$tmp/src/"
# shellcheck disable=SC2086 # nothing, or two words
nr_tpcs=$("$build/bin/gpupart" topology ${GPUPART_SIM:+-i "${GPUPART_SIM%%:*}"} | sed -n 's/.* SMs in \([0-9]*\) TPCs.*/\1/p')
stubs=${nvcc%/bin/nvcc}/lib64/stubs
sim=${GPUPART_SIM:+:$build/lib/gpupart/sim}
compile() {
	"$nvcc" -ccbin "${CXX:-g++}" -g -I"$here/../../include" -I"$tmp/src" "$@" \
		-L"$build/lib" -L"$stubs" -l:libsmctrl.a -lcuda
}
shared=
for file in "$tmp"/src/*_shared.cu; do
	[ -e "$file" ] || break
	shared=${file%.cu}.o
	"$nvcc" -ccbin "${CXX:-g++}" -g -I"$here/../../include" -I"$tmp/src" -c -o "$shared" "$file" >"$tmp/log" 2>&1
	took "${file##*/}" $? "$tmp/log" ", compiled"
done
for file in "$tmp"/src/libsmctrl_test_*.c "$tmp"/src/libsmctrl_test_*.cu; do
	name=${file##*/libsmctrl_test_}
	name=${name%.*}
	case $file in
	*'*'* | *_shared.cu) continue ;;
	esac
	kernels=
	case $(cat "$file") in *_shared.h* | *'<<<'*) kernels=1 ;; esac
	if ! compile -o "$tmp/$name" "$file" $shared >"$tmp/log" 2>&1; then
		took "$name" 1 "$tmp/log" ", compiled and linked"
		continue
	fi
	if [ -n "$GPUPART_SIM" ] && [ -n "$kernels" ]; then
		skip "$name: compiled and linked; its kernels need a GPU"
		continue
	fi
	(cd "$tmp" && LD_LIBRARY_PATH=$build/lib$sim timeout -k 5 60 "./$name" >"$out/smctrl-$name.txt" 2>&1)
	status=$?
	sed "s/^/# $name: /" "$out/smctrl-$name.txt" | head -n 40
	# It needs a certain GPU, or masks of 64 bits, and may ignore the answer.
	if grep -q 'topology of the GPU with PCI number' "$out/smctrl-$name.txt"; then
		skip "$name: it asks for a GPU that is not here"
	elif [ "$name" = gpc_info ] && [ "$nr_tpcs" -gt 64 ] && [ $status -eq 1 ]; then
		grep -q 'out of range' "$out/smctrl-$name.txt"
		ok $? "$name: $nr_tpcs TPCs do not fit into its 64 bits: ERANGE, as from the predecessor"
	elif [ "$name" = gpc_info ] && [ "$nr_tpcs" -gt 64 ] && [ $status -ne 0 ]; then
		skip "$name: $nr_tpcs TPCs do not fit into its 64 bits, and it does not look at the error: status $status"
	else
		ok $status "$name: ends with status $status"
	fi
done
[ "$nr" -gt 0 ] || skip_all "no libsmctrl_test_* in $SMCTRL_TESTS"
cases_done
