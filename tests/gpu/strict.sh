#!/bin/sh
# SPDX-License-Identifier: MIT
# run's report and --strict on one GPU, under 2 minutes: as root or not, after make, with a C
# compiler. TAP on stdout; if OUT is set, it and each run's output are stored in that folder.
# GPUPART_STRICT_ARGS="-i sample:h200-e" runs it on the simulated GPU.
root=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
: "${BUILD:=$root/build}"
gpupart=$BUILD/bin/gpupart
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
keep=${OUT:-$tmp}
mkdir -p "$keep"
nr=0 bad=0
# shellcheck disable=SC2086 # words
run() {	# ARGS: sets $status, $tmp/out, $tmp/err
	timeout -k 5 20 "$gpupart" run $GPUPART_STRICT_ARGS "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
	status=$?
	runs=$((${runs:-0} + 1))
	{ echo "run $*: $status"; cat "$tmp/out" "$tmp/err"; } >"$keep/strict-$runs.txt"
}
ok() {	# STATUS WORDS
	nr=$((nr + 1))
	if [ "$1" -eq 0 ]; then
		echo "ok $nr - $2"
	else
		bad=1
		echo "not ok $nr - $2"
		sed 's/^/# /' "$tmp/out" "$tmp/err"
	fi
}
is() { [ "$1" = "$2" ]; ok $? "$3${1:+: $1}"; }
has() { grep -qF -- "$2" "$1"; ok $? "$3"; }

${CC:-cc} -o "$tmp/prog" "$root/tests/gpu/strict_prog.c" -ldl || exit 77
{
	run -t 0-7 -- "$tmp/prog" kernel x2 legacy sync
	is "$status $(grep -c outside "$tmp/err")" "0 0" "what fits its set is not reported"
	run -t 0-7 -- "$tmp/prog" x8 x2 x8 kernel sync
	has "$tmp/err" "2 launches outside TPCs 0-7" "clusters of 8 in TPCs 0-7: counted"
	has "$tmp/err" "work_cluster: no virtual GPC of the set has room for its clusters of 8 blocks" "with the kernel's name and why"
	set=$(sed -n 's/.*; -t \([0-9,-]*\).*, with the same number of TPCs, would fit$/\1/p' "$tmp/err")
	[ -n "$set" ]
	ok $? "a set is proposed: $set"
	run -t "${set:-0-7}" -- "$tmp/prog" x8 x2 x8 kernel sync
	is "$status $(grep -c outside "$tmp/err")" "0 0" "it holds them: nothing is reported"
	run -t 0-7 -- "$tmp/prog" graph graph sync
	has "$tmp/err" "1 launch outside TPCs 0-7" "a graph's node counts once"
	run -t 0-7 -- "$tmp/prog" x8 sync kill9
	is $status 137 "a killed program's status"
	has "$tmp/err" "work_cluster: no virtual GPC of the set has room for its clusters of 8 blocks" "its launches are reported, by name"
	run -t 0-7 -- "$tmp/prog" coop200 sync
	has "$tmp/err" "work_plain: its cooperative grid" "a cooperative grid that does not fit"

	run -t 0-7 --strict -- "$tmp/prog" kernel x8 sleep15000
	is $status 123 "--strict: status"
	run -t 0-7 --strict -- sh -c '"$0" x8 sleep15000; sleep 15' "$tmp/prog"
	is $status 123 "--strict: a child's launch"
	# One kind of call per run, so that its effect on the context does not reach the others.
	for word in kernel legacy x2 coop4 graph; do
		before=$([ $word = graph ] && echo capture)
		run -t 0-7 --strict --exec -- "$tmp/prog" $before x8 $word $word
		is "$(tail -n 1 "$tmp/out")" "$word=800" "--strict --exec: $word is refused later"
	done
	run -t 0-7 --strict --exec -- "$tmp/prog" x8 kernel sync
	is "$(tail -n 1 "$tmp/out")" "sync=0" "and the context goes on"

	run -t 0-7 --strict --exec -- env GPUPART_GPU=nosuch "$tmp/prog" kernel
	is "$(head -n 1 "$tmp/out")" "cuInit=100 context=100" "--strict: a refused attach: cuInit fails"
	run -t 0-7 --strict -- env GPUPART_DISABLE=1 "$tmp/prog" kernel
	is "$(head -n 1 "$tmp/out")" "cuInit=100 context=100" "--strict: GPUPART_DISABLE=1 inside: cuInit fails"
	run -t 0-7 --strict -- env -u CUDA_INJECTION64_PATH -u LD_PRELOAD "$tmp/prog" kernel sleep15000
	is $status 123 "--strict: the library kept out: /dev/nvidia-uvm and libcuda.so are seen"
	run -t 0-7 -- env -u CUDA_INJECTION64_PATH "$tmp/prog" kernel sleep4000
	has "$tmp/err" "was never confined: libgpupart-inject.so was not loaded" "and reported without --strict"
	run -t 0-7 -- "$tmp/prog" kernel sleep4000 sync
	is "$(grep -c 'never confined' "$tmp/err")" 0 "a confined program is not taken for one"

	# Another tool is attached to the driver before gpupart: the attach is refused, and so is
	# its API.
	cat >"$tmp/tool.c" <<'END'
int (*subscribe)(unsigned int *, void (*)(void *, int, int, const void *), void *);
int cuGetExportTable(const void **table, const void *id);
static void told(void *user, int domain, int cbid, const void *params)
{
	(void)user; (void)domain; (void)cbid; (void)params;
}
int InitializeInjection(void);
int InitializeInjection(void) { return 1; }
__attribute__((constructor)) static void first(void)
{
	static const unsigned char id[16] = { 0x2c, 0x8e, 0x0a, 0xd8, 0x07, 0x10, 0xab, 0x4e,
					      0x90, 0xdd, 0x54, 0x71, 0x9f, 0xe5, 0xf7, 0x4b };
	const void *const *table;
	unsigned int handle;

	if (!cuGetExportTable((const void **)&table, id)) {
		*(const void **)&subscribe = table[3];
		subscribe(&handle, told, 0);
	}
}
END
	libcuda=$(ldconfig -p | sed -n 's/.*libcuda.so.1.*x86-64.*=> //p' | head -n 1)
	[ -n "$GPUPART_STRICT_ARGS" ] && libcuda=$BUILD/lib/gpupart/sim/libcuda.so.1
	if ${CC:-cc} -shared -fPIC -o "$tmp/tool.so" "$tmp/tool.c" "$libcuda"; then
		run -t 0-7 --strict --exec -- sh -c 'LD_PRELOAD=$LD_PRELOAD:$1 exec "$0" kernel' "$tmp/prog" "$tmp/tool.so"
		is "$(head -n 1 "$tmp/out")" "cuInit=100 context=100" "--strict: another tool has the place: cuInit fails"
	fi
	echo "1..$nr"
	echo $bad >"$tmp/bad"
} | tee "$keep/strict.tap"
exit "$(cat "$tmp/bad")"
