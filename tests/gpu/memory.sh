#!/bin/sh
# SPDX-License-Identifier: MIT
# A memory quota on a GPU, as TAP: every way to allocate memory compared with NVML's figure,
# kills, and PyTorch, CuPy and JAX inside 8 GiB, with nvidia-smi's figure from outside at the same
# time. OUT=FOLDER stores the output of the cases; KILLS=1000 sets the number of kills, CASES=
# selects some of the programs. Without KILLS it ends within SECONDS_ALL (190); cases that did not
# run have failed. With GPUPART_SIM=CAPTURE it runs on the simulated GPU, without frameworks.
build=$(cd "${BUILD:-build}" && pwd) || exit 1
here=$(dirname "$0")
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT INT TERM
out=${OUT:-$tmp}
mkdir -p "$out"
unset GPUPART_SET GPUPART_GPU GPUPART_MEM GPUPART_TENANT CUDA_INJECTION64_PATH LD_AUDIT
libcuda=libcuda.so.1
[ -z "$GPUPART_SIM" ] || libcuda=
if [ ! -e /dev/nvidiactl ] && [ -n "$libcuda" ]; then
	echo "1..0 # SKIP no NVIDIA driver here"
	exit 77
fi
. "$here/cases.subr"
end=$(($(date +%s) + ${SECONDS_ALL:-190} + ${KILLS:+570} + 0))
# within_time SECONDS PROGRAM ARGS: runs it for that time at most, and not beyond the end of the
# whole test.
within_time() {
	left=$((end - $(date +%s)))
	[ "$left" -lt "$1" ] || left=$1
	shift
	[ "$left" -gt 0 ] || { echo "no time left"; return 124; }
	timeout -k 5 "$left" "$@"
}
time_left() { echo ", $((end - $(date +%s))) s are left"; }
# limited TENANT BYTES PROGRAM ARGS
limited() {
	tenant=$1 bytes=$2
	shift 2
	within_time 60 env GPUPART_TENANT="$tenant" GPUPART_MEM="$bytes" \
		CUDA_INJECTION64_PATH="$build/lib/gpupart/libgpupart-inject.so" "$@"
}
# watch FILE: records the figures of nvidia-smi for all processes, one line each time, until
# FILE.stop exists. One call of it lists all of them.
watch() {
	while [ ! -e "$1.stop" ]; do
		nvidia-smi --query-compute-apps=used_memory --format=csv,noheader,nounits 2>/dev/null |
			awk '{ sum += $1 } END { if (NR) print sum + 0 }' >>"$1"
	done
}
# most FILE: the maximum of these figures; 0 if there was none.
most() {
	awk '$1 > most { most = $1 } END { print most + 0 }' "$1"
}
# within FILE WHAT: there were figures, and none exceeded the quota.
within() {
	if [ -z "$libcuda" ]; then
		skip "$2: the simulated GPU is not shown from outside"
		return
	fi
	mib=$(most "$1")
	[ "$mib" -gt 0 ] && [ "$mib" -le 8192 ]
	ok $? "$2: nvidia-smi shows something, and never more than 8192 MiB from outside: $mib"
}

[ -z "$libcuda" ] || export TEST_LIBCUDA=$libcuda
TEST_KILLS=${TEST_KILLS:-20} BUILD=$build within_time 120 "$build/tests/lib-memory-memory" >"$out/memory-ways.txt" 2>&1
took "ways" $? "$out/memory-ways.txt" "$(time_left)"
if [ -n "$KILLS" ]; then
	TEST_KILLS=$KILLS TEST_ONLY=kills BUILD=$build timeout -k 5 570 "$build/tests/lib-memory-memory" >"$out/memory-kills.txt" 2>&1
	took "kills" $? "$out/memory-kills.txt" "$(time_left)"
fi

eight=$((8 << 30))
for name in ${CASES-torch torch_async torch_segments cupy cupy_async jax cudnn nccl}; do
	file=$out/memory-$name.txt
	watch "$tmp/$name" &
	watcher=$!
	limited "gpu-$name-$$" $eight python3 "$here/memory.py" "$name" >"$file" 2>&1
	status=$?
	touch "$tmp/$name.stop"
	wait $watcher
	took "$name" $status "$file" "$(time_left)"
	within "$tmp/$name" "$name"
done

# Two processes of one tenant share the quota: memory that one frees is available to the other.
file=$out/memory-two.txt
watch "$tmp/two" &
watcher=$!
limited "gpu-two-$$" $eight python3 "$here/memory.py" share "$tmp/go" >"$file.1" 2>&1 &
one=$!
limited "gpu-two-$$" $eight python3 "$here/memory.py" share "$tmp/go" >"$file.2" 2>&1 &
two=$!
wait $one
took "one of two" $? "$file.1" "$(time_left)"
wait $two
took "the other" $? "$file.2" "$(time_left)"
touch "$tmp/two.stop"
wait $watcher
within "$tmp/two" "the two together"
cases_done
