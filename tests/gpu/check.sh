#!/bin/sh
# SPDX-License-Identifier: MIT
# Tests that need a real GPU, as TAP. No launch can hang: cooperative and cluster grids are made
# only if they fit. Needs an idle GPU. OUT=FOLDER stores the transcripts.
build=${BUILD:-build}
gpupart=$build/bin/gpupart
here=$(dirname "$0")
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT INT TERM
out=${OUT:-$tmp}
mkdir -p "$out"
nr=0 failed=0
ok() {	# ok STATUS WORDS
	nr=$((nr + 1))
	if [ "$1" -eq 0 ]; then echo "ok $nr - $2"; else echo "not ok $nr - $2"; failed=1; fi
}
skip() { nr=$((nr + 1)); echo "ok $nr # SKIP $1"; }
is() { [ "$1" = "$2" ]; ok $? "$3${4:+: }$1"; }

if [ ! -e /dev/nvidiactl ]; then
	echo "1..0 # SKIP no NVIDIA driver here"
	exit 77
fi
export XDG_CACHE_HOME="$tmp/cache"
unset GPUPART_SET GPUPART_GPU CUDA_INJECTION64_PATH

"$gpupart" topology >"$out/topology.txt" 2>&1
ok $? "topology"
"$gpupart" topology --of capture -o "$out/board.capture"
ok $? "topology as a capture"
"$gpupart" topology -i "$out/board.capture" >"$tmp/again.txt" && grep -q 'SMs in' "$tmp/again.txt"
ok $? "the capture opens again"
"$build/tests/gpu-rm" >"$out/rm.txt" 2>&1
ok $? "the RM source: facts and time"

{ time -p timeout 60 "$gpupart" verify; } >"$out/verify.txt" 2>&1
ok $? "verify: $(grep -E '^[0-9]+ passed' "$out/verify.txt")"
seconds=$(sed -n 's/^real *\([0-9]*\).*/\1/p' "$out/verify.txt")
[ "${seconds:-99}" -le 10 ]
ok $? "verify took ${seconds:-?} s, at most 10"
timeout 60 "$gpupart" verify --json >"$out/verify.json"
ok $? "verify --json"
timeout 60 "$gpupart" doctor >"$out/doctor.txt" 2>&1
ok $? "doctor: everything needed works"
callback=$(sed -n '/^ok  *launch-callback /,/^[a-z]/p' "$out/doctor.txt" | tr -s ' \n' ' ' | grep -Eo 'a table of [0-9]+ bytes, .*, parameters of [0-9]+ bytes')
ok $? "doctor: the callback is $callback"
timeout 60 "$gpupart" demo >"$out/demo.txt" 2>&1
ok $? "demo"
grep -qi simulated "$out"/topology.txt "$out"/verify.txt "$out"/demo.txt
[ $? -eq 1 ]
ok $? "nothing here says simulated"

# As an ordinary user, with a separate cache.
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	mkdir -m 777 "$tmp/user"
	chmod a+rx "$tmp"
	XDG_CACHE_HOME="$tmp/user" timeout 60 setpriv --reuid=65534 --regid=65534 --clear-groups \
		"$gpupart" verify >"$out/verify-user.txt" 2>&1
	ok $? "verify as an ordinary user: $(grep -E '^[0-9]+ passed' "$out/verify-user.txt")"
else
	skip "not root: cannot become another user"
fi

# A limit from outside, and the API inside it.
timeout 60 "$gpupart" run -g 1 -- "$gpupart" verify >"$out/verify-in-run.txt" 2>&1
ok $? "verify inside run -g 1: $(grep -E '^[0-9]+ passed' "$out/verify-in-run.txt")"
timeout 60 "$gpupart" run -g 0 -- sh -c 'exit 7'
is $? 7 "the program's own status" " "
timeout 60 "$gpupart" run -t 9999 -- true 2>"$tmp/err"
is $? 125 "a TPC that is not there: $(cat "$tmp/err")" " "

if python3 -c 'import torch, triton' 2>/dev/null; then
	field() { python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$@"; }
	sms_of() { "$gpupart" topology --json | python3 -c '
import json, sys
t = json.load(sys.stdin)
print(sorted(s for g in t["tpcs"] if g.get("ugpu") == 0 for s in g["smids"]))'; }
	timeout 120 python3 "$here/torch_census.py" >"$out/torch-all.json" 2>"$tmp/err"
	ok $? "PyTorch on all SMs: $(field "$out/torch-all.json" tflops) TFLOP/s"
	timeout 120 "$gpupart" run --name torch -u 0 -- python3 "$here/torch_census.py" "$gpupart" \
		>"$out/torch-ugpu0.json" 2>"$tmp/err"
	ok $? "PyTorch under run -u 0: $(field "$out/torch-ugpu0.json" tflops) TFLOP/s"
	is "$(field "$out/torch-ugpu0.json" sms)" "$(sms_of)" "every SM of uGPU 0 and no other"
	python3 - "$out/torch-all.json" "$out/torch-ugpu0.json" "$(sms_of)" <<-'END'
	import json, sys
	whole, half = (json.load(open(f)) for f in sys.argv[1:3])
	share = len(eval(sys.argv[3])) / len(whole["sms"])
	ratio = half["tflops"] / whole["tflops"]
	print("# share of the SMs %.3f, of the throughput %.3f; with random values %.3f"
	      % (share, ratio, half["tflops_random"] / whole["tflops_random"]))
	sys.exit(not abs(ratio / share - 1) <= 0.15)
	END
	ok $? "throughput within 15% of the share"
	process=$(field "$out/torch-ugpu0.json" process)
	case $process in
	*" confined, 0 widened, 0 not confined"*) true ;;
	*) false ;;
	esac
	ok $? "each launch confined: $process"
	GPUPART_DISABLE=1 timeout 120 "$gpupart" run -u 0 -- python3 "$here/torch_census.py" >"$tmp/d.json" 2>/dev/null
	is "$(field "$tmp/d.json" sms)" "$(field "$out/torch-all.json" sms)" "GPUPART_DISABLE=1 leaves it alone"
	# Another tool has the slot: both libraries are called.
	printf 'int InitializeInjection(void) { return !!system("touch %s/other"); }\n' "$tmp" >"$tmp/other.c"
	if cc -include stdlib.h -shared -fPIC -o "$tmp/other.so" "$tmp/other.c" 2>/dev/null; then
		CUDA_INJECTION64_PATH="$tmp/other.so" timeout 120 "$gpupart" run -u 0 -- \
			python3 "$here/torch_census.py" >"$tmp/p.json" 2>"$tmp/err"
		is "$(field "$tmp/p.json" sms)" "$(sms_of)" "confined beside another injected tool"
		[ -e "$tmp/other" ]
		ok $? "and the other tool was called too"
	fi
else
	skip "no PyTorch with Triton here"
fi
# Listing removes files of dead processes and job records; -n keeps its lock.
"$gpupart" ps >"$tmp/ps.txt"
left=$(find "/dev/shm/gpupart-$(id -u)" -mindepth 1 ! -name lock 2>/dev/null)
[ -z "$left" ]
ok $? "after ps no block of a process is left${left:+: }$left"
echo "1..$nr"
exit $failed
