#!/bin/sh
# SPDX-License-Identifier: MIT
# A job of eight processes on a GPU, whose set changes for all at once and for one that starts
# later; the same in a container's namespaces, made from the specification of `gpupart cdi`. As
# TAP.
build=${BUILD:-build}
gpupart=$build/bin/gpupart
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT INT TERM
export XDG_CACHE_HOME="$tmp/cache"
if [ ! -e /dev/nvidiactl ]; then
	echo "1..0 # SKIP no NVIDIA driver here"
	exit 77
fi
nr=0 failed=0
ok() {
	nr=$((nr + 1))
	if [ "$1" -eq 0 ]; then echo "ok $nr - $2"; else echo "not ok $nr - $2"; failed=1; fi
}
go=$tmp/go
touch "$go"
# gpc N: the TPCs of GPC N as a list.
gpc() {
	"$gpupart" topology --json | python3 -c '
import json, sys
print(*[t["tpc"] for t in json.load(sys.stdin)["tpcs"] if t["gpc"] == int(sys.argv[1])], sep=",")' "$1"
}
# inside FILE N: whether the last line of FILE has only TPCs of GPC N.
inside() {
	python3 - "$(tail -n 1 "$1" 2>/dev/null)" "$(gpc "$2")" <<-'END'
		import sys
		def tpcs(text):
		    return {t for part in text.split(",") if part
		            for a, _, b in [part.partition("-")] for t in range(int(a), int(b or a) + 1)}
		seen, wanted = tpcs(sys.argv[1]), tpcs(sys.argv[2])
		sys.exit(not (seen and seen <= wanted))
	END
}
soon() {
	for _ in $(seq 300); do
		"$@" && return 0
		sleep 0.1
	done
	return 1
}
rows() {
	[ "$("$gpupart" ps | awk -v n="$1" '$2 == n' | wc -l)" = "$2" ]
}
# shellcheck disable=SC2016 # for the inner shell
"$gpupart" run -g 0 --name eight -- sh -c '
	for i in 1 2 3 4 5 6 7 8; do "$0" launch "$1" >"$2.$i" & done
	while [ ! -e "$2.more" ]; do sleep 0.05; done
	"$0" launch "$1" >"$2.9" &
	wait' "$build/tests/gpu-live" "$go" "$tmp/p" 2>"$tmp/err" &
job=$!
soon rows eight 8
ok $? "eight processes are listed"
good=0
for i in 1 2 3 4 5 6 7 8; do soon inside "$tmp/p.$i" 0 && good=$((good + 1)); done
ok $((good != 8)) "$good of 8 launch in GPC 0"
"$gpupart" set eight -g 2 >"$tmp/set"
ok $? "set eight -g 2: $(grep -c '^pid .*new set' "$tmp/set") processes"
good=0
for i in 1 2 3 4 5 6 7 8; do soon inside "$tmp/p.$i" 2 && good=$((good + 1)); done
ok $((good != 8)) "$good of 8 launch in GPC 2"
touch "$tmp/p.more"
soon inside "$tmp/p.9" 2
ok $? "one that starts later too"
ok $(($(wc -l <"$tmp/p.9") != 1)) "from its first launch on"
rm "$go"
wait $job
ok $? "all end well"

# Separate mount and pid namespaces with the contents of cdi's specification.
if [ "$(id -u)" != 0 ] || ! unshare -m -p -f true 2>/dev/null; then
	echo "ok $((nr + 1)) # SKIP no namespaces can be made here"
	echo "1..$((nr + 1))"
	exit $failed
fi
touch "$go"
"$gpupart" cdi -g 1 --name boxed -o "$tmp/spec" 2>"$tmp/err"
ok $? "cdi writes a specification"
cat >"$tmp/contain.py" <<'END'
import json, os, subprocess, sys

spec, program, go = sys.argv[1:]
spec = json.load(open(spec))
# The common part of all devices, and that of this device.
parts = [part for part in (spec.get("containerEdits"), spec["devices"][0]["containerEdits"]) if part]
def mount(*words):
    subprocess.run(["mount", *words], check=True)
mount("--make-rprivate", "/")
mount("-t", "proc", "none", "/proc")
mount("--bind", "/dev/shm", "/mnt")
mount("-t", "tmpfs", "none", "/dev/shm")
mount("-t", "tmpfs", "none", "/usr/lib/gpupart-host")
for m in (m for part in parts for m in part.get("mounts", ())):
    host, inside = m["hostPath"], m["containerPath"]
    if host.startswith("/dev/shm/"):
        host = "/mnt/" + host[len("/dev/shm/"):]
    if os.path.isdir(host):
        os.makedirs(inside, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(inside), exist_ok=True)
        open(inside, "a").close()
    mount("--bind", host, inside)
keep = {k: v for k, v in os.environ.items() if not k.startswith(("GPUPART", "CUDA_"))}
keep.update(e.split("=", 1) for part in parts for e in part.get("env", ()))
os.execve(program, [program, "launch", go], keep)
END
made=
[ -d /usr/lib/gpupart-host ] || { mkdir /usr/lib/gpupart-host && made=1; }
unshare -m -p -f python3 "$tmp/contain.py" "$tmp/spec" "$build/tests/gpu-live" "$go" >"$tmp/box" 2>"$tmp/box.err" &
box=$!
soon rows boxed 1
ok $? "a program in it is listed outside: $("$gpupart" ps | grep ' boxed ')"
soon inside "$tmp/box" 1
ok $? "and launches in GPC 1: $(tail -n 1 "$tmp/box") $(tail -n 1 "$tmp/box.err")"
pid=$("$gpupart" ps | awk '$2 == "boxed" { print $1 }')
[ "$(tr '\0' ' ' <"/proc/$pid/cmdline")" = "$build/tests/gpu-live launch $go " ]
ok $? "by the pid that it has outside, $pid"
"$gpupart" set -p "$pid" -g 3 >"$tmp/set" 2>&1
ok $? "set -p $pid -g 3: $(tail -n 1 "$tmp/set")"
soon inside "$tmp/box" 3
ok $? "it obeys: $(tail -n 1 "$tmp/box")"
"$gpupart" set boxed -g 4 >"$tmp/set" 2>&1
ok $? "set boxed -g 4: $(tail -n 1 "$tmp/set")"
soon inside "$tmp/box" 4
ok $? "it obeys: $(tail -n 1 "$tmp/box")"
rm "$go"
wait $box
ok $? "it ends well"
rows boxed 0
ok $? "and is no longer listed"
[ -z "$made" ] || rmdir /usr/lib/gpupart-host
echo "1..$nr"
exit $failed
