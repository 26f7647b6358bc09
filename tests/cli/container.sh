#!/bin/sh
# SPDX-License-Identifier: MIT
# Containers that lack something or have something of their own: the program runs confined and
# returns its status, and doctor reports the state and what to do.
. "$(dirname "$0")/tap.subr"
e="-i tests/data/gh100-h200-e/capture.txt"

# row NAME: doctor's row and its advice, in one line with single blanks.
row() { sed -n "/^[a-z]*  *$1 /,/^[a-z]/{/^[a-z]*  *$1 /p;/^  /p;}" "$tmp/doctor" | tr -s '\n ' ' '; }
doctor_in() { "$@" "$gpupart" doctor --no-launch $e >"$tmp/doctor" 2>"$tmp/err"; }

# The slot for an injected library: a missing library, and one of a gpupart outside.
doctor_in env CUDA_INJECTION64_PATH="$tmp/none/libgpupart-inject.so" GPUPART_SET=0-7
is "$? $(row injection-slot | cut -d ' ' -f 1)" "1 bad" "the injected library is not there: bad, and 1"
has "$(row injection-slot)" "programs started from here run unconfined, even with GPUPART_SET" "it says what that means"
has "$(row injection-slot)" "$tmp/none/libgpupart-inject.so: No such file" "and what is not there"
has "$(row injection-slot)" "-> start the container with a device of 'gpupart cdi'" "and what to do"
doctor_in env CUDA_INJECTION64_PATH="$tmp/none/tool.so"
is "$? $(row injection-slot | cut -d ' ' -f 1)" "0 note" "another tool's library is not there: a note"
mkdir "$tmp/outside"
cp "$BUILD/lib/gpupart/libgpupart-inject.so" "$tmp/outside/"
doctor_in env CUDA_INJECTION64_PATH="$tmp/outside/libgpupart-inject.so"
has "$(row injection-slot)" "ok injection-slot CUDA_INJECTION64_PATH is set by another installation of gpupart" "the library of another gpupart: ok"
for there in outside none; do
	CUDA_INJECTION64_PATH=$tmp/$there/libgpupart-inject.so "$gpupart" run $e -t 0 -- \
		sh -c 'echo "$CUDA_INJECTION64_PATH:$LD_PRELOAD"' >"$tmp/out" 2>/dev/null
	is "$(cat "$tmp/out")" "$(readlink -f "$BUILD/lib/gpupart/libgpupart-inject.so"):" \
		"run takes the place of another gpupart's library ($there)"
done

# A libcuda without device files: a GPU that was not passed in.
cat >"$tmp/nodevice.c" <<'END'
int cuInit(unsigned int flags) { return flags ? 1 : 100; }
int cuDriverGetVersion(int *version) { *version = 12080; return 0; }
END
if [ -e /dev/nvidiactl ]; then
	skip "there is a GPU here: it cannot be missing"
elif ! ${CC:-cc} -shared -fPIC -o "$tmp/libcuda.so.1" "$tmp/nodevice.c" 2>"$tmp/err"; then
	skip "no C compiler"
else
	LD_LIBRARY_PATH=$tmp "$gpupart" doctor --no-launch >"$tmp/doctor" 2>&1
	has "$(row device-node)" "bad device-node /dev/nvidiactl: No such file or directory, but libcuda.so.1 exists: the container has no GPU -> start the container with gpupart's device and also with NVIDIA's CDI device" \
		"libcuda without /dev/nvidiactl: what to do"
	"$gpupart" doctor --no-launch >"$tmp/doctor" 2>&1
	has "$(row device-node)" "/dev/nvidiactl: No such file or directory -> run 'nvidia-modprobe'" "neither: the driver is missing"
fi

doctor_in env
case $(row namespaces) in
"ok namespaces this process uses the machine's pids and users "*) own= ;;
"note namespaces this process has "*) own=1 ;;
*) own=2 ;;
esac
[ "$own" != 2 ]
ok $? "the machine's own part is reported"

if ! unshare -r -m true 2>/dev/null; then
	skip "no namespaces can be made here: nothing tried in one"
	tap_done
fi
if ! ${CC:-cc} -o "$tmp/census" tests/cli/census.c -ldl 2>"$tmp/err"; then
	skip "no C compiler"
	tap_done
fi
smids="0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15"

# in_state WORDS SCRIPT RESULT PART ADVICE: in new namespaces, prepared by SCRIPT, the program
# runs confined, and the row about the state directory has these.
self=$(id -u)
in_state() {
	cat >"$tmp/state" <<END
mount -t tmpfs -o mode=1777 none /dev/shm || exit 120
mine=/dev/shm/gpupart-0
$2
"$gpupart" doctor --no-launch $e >"$tmp/doctor" 2>"$tmp/err"
exec "$gpupart" run $e -t 0-7 -- "$tmp/census" lib/confine/probe.ptx 42
END
	unshare -r -m sh "$tmp/state" >"$tmp/out" 2>"$tmp/err"
	is "$? $(cat "$tmp/out")" "42 $smids" "$1: the program runs, confined"
	has "$(row state-folder)" "$3 state-folder $4" "$1: doctor"
	has "$(row state-folder)" "$5" "$1: what to do"
	is "$(grep -c '^bad' "$tmp/doctor")" 0 "$1: nothing that is needed is missing"
}
unseen="programs run confined, but doctor and ps do not list them, and set cannot change them"
in_state "a /dev/shm" : ok "/dev/shm/gpupart-0 can be created" ""
in_state "a folder that is there" 'mkdir -m 700 $mine' ok "/dev/shm/gpupart-0 can be written" ""
in_state "/dev/shm read only" 'mount -o remount,ro none /dev/shm' note "/dev/shm: Read-only file system: $unseen" \
	"-> in a container mount it writable: a device of 'gpupart cdi'"
in_state "its folder read only" 'mkdir -m 700 $mine; mount --bind $mine $mine; mount -o remount,bind,ro $mine' \
	note "/dev/shm/gpupart-0: Read-only file system: $unseen" "a device of 'gpupart cdi'"
in_state "no /dev/shm" 'mkdir /dev/shm/dev; for n in null zero urandom; do : >/dev/shm/dev/$n
	mount --bind /dev/$n /dev/shm/dev/$n; done; mount --rbind /dev/shm/dev /dev; [ ! -e /dev/shm ] || exit 121' \
	note "/dev/shm: No such file or directory: $unseen" "-> mount a tmpfs there"
in_state "/dev/shm is full" 'mount -o remount,size=4k none /dev/shm; head -c 4096 /dev/zero >/dev/shm/full' \
	note "/dev/shm is full: $unseen" "--shm-size"
has "$(cat "$tmp/err")" "'gpupart ps' and 'gpupart set' will not find the program: /dev/shm/gpupart-0 is full: free space there" \
	"/dev/shm is full: run says who does not see it"
in_state "/dev/shm is nearly full" 'mount -o remount,size=24k none /dev/shm' ok "/dev/shm/gpupart-0 can be created" ""
has "$(cat "$tmp/err")" "gpupart: 'gpupart ps' and 'gpupart set' do not find this process: the state page of this process cannot be created in /dev/shm: No space left on device" \
	"/dev/shm is nearly full: the program's process says it, because its job could be recorded"
in_state "no more files" 'mount -o remount,nr_inodes=3 none /dev/shm; mkdir -m 700 $mine; : >/dev/shm/full' \
	note "/dev/shm/gpupart-0 is full: $unseen" "--shm-size"
has "$(cat "$tmp/err")" "will not find the program: /dev/shm/gpupart-0 is full" "no more files: run says it, too"
in_state "a folder for all" 'mkdir -m 755 $mine' note "/dev/shm/gpupart-0 has mode 0755" "-> change its mode to 0700"
in_state "a file in its place" ': >$mine' note "/dev/shm/gpupart-0 is not a directory" "-> remove it"

# A user namespace and a pid namespace.
unshare -r -m "$gpupart" doctor --no-launch $e >"$tmp/doctor" 2>&1
has "$(row namespaces)" "its own users (user 0 is $self outside)" "a user namespace: who it is outside"
unshare -U "$gpupart" doctor --no-launch $e >"$tmp/doctor" 2>&1
has "$(row namespaces)" "without a mapping (/proc/self/uid_map is empty)" "a user namespace without a map: that is reported"
unshare -r -m "$gpupart" doctor --no-launch $e >"$tmp/doctor" 2>&1
if setpriv --reuid 1234 --clear-groups "$gpupart" --version >/dev/null 2>&1 &&
	setpriv --reuid 1234 --clear-groups unshare -r true 2>/dev/null; then
	setpriv --reuid 1234 --clear-groups unshare -r "$gpupart" doctor --no-launch $e >"$tmp/other" 2>&1
	has "$(tr -s '\n ' ' ' <"$tmp/other")" "its own users (user 0 is 1234 outside)" "another user's: who it is outside"
else
	skip "no user namespace can be made as another user here"
fi
has "$(row namespaces)" "-> use names (--name) instead of pids; 'gpupart cdi --uid'" "what to do"
unshare -r -m -p -f --mount-proc "$gpupart" doctor --no-launch $e >"$tmp/doctor" 2>&1
has "$(row namespaces)" "this process has its own pids and its own users" "a pid namespace too"
unshare -r -m -p -f --mount-proc "$gpupart" run $e -t 0-7 -- "$tmp/census" lib/confine/probe.ptx 42 >"$tmp/out" 2>"$tmp/err"
is "$? $(cat "$tmp/out")" "42 $smids" "in both: the program runs, confined"

# Another user's folder, in a user namespace: only root can create one.
if [ "$self" != 0 ]; then
	skip "no root: no folder of another user can be made"
	tap_done
fi
for owner in 1234 0; do
	cat >"$tmp/state" <<END
mount -t tmpfs none /dev/shm && mkdir -m 700 /dev/shm/gpupart-0 && chown 1234 /dev/shm/gpupart-0 || exit 120
\$1 "$gpupart" doctor --no-launch $e >"$tmp/doctor" 2>"$tmp/err"
exec \$1 "$gpupart" run $e -t 0-7 -- "$tmp/census" lib/confine/probe.ptx 42
END
	case $owner in
	1234) words="another user's folder" inside='' part="belongs to user 1234, and this is user 0: $unseen" advice="-> ask its owner or root to remove it" ;;
	0) words="a folder from outside the user namespace" inside="unshare -r -m"
		part="belongs to a user outside this user namespace (shown as 65534): $unseen"
		advice="'gpupart cdi --uid OUTSIDE:INSIDE'" ;;
	esac
	unshare -m sh "$tmp/state" "$inside" >"$tmp/out" 2>"$tmp/err"
	is "$? $(cat "$tmp/out")" "42 $smids" "$words: the program runs, confined"
	has "$(row state-folder)" "note state-folder /dev/shm/gpupart-0 $part" "$words: doctor"
	has "$(row state-folder)" "$advice" "$words: what to do"
	has "$(tr '\n' ' ' <"$tmp/err")" "'gpupart ps' and 'gpupart set' will not find the program: /dev/shm/gpupart-0 belongs" \
		"$words: run says who does not see it"
done
tap_done
