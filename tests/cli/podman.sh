#!/bin/sh
# SPDX-License-Identifier: MIT
# Containers with a CDI device of gpupart, run by podman and crun: set, quota, records and MPS
# work inside, ps outside lists them, and neither user 0 nor a rootless container can leave the
# set. All in separate mount and pid namespaces. make check-podman installs podman, so nothing is
# skipped.
if [ -z "${PODMAN_TEST-}" ] && [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
	exec unshare -mpf --kill-child --mount-proc env PODMAN_TEST=1 "$0"
fi
. "$(dirname "$0")/tap.subr"
e="-i tests/data/gh100-h200-e/capture.txt"
# impossible WORDS: ends the test; a failure in make check-podman.
impossible() {
	if [ -n "${PODMAN_REQUIRED-}" ]; then
		ok 1 "$1"
	else
		skip "$1"
	fi
	tap_done
}
emulated "runs no podman" && tap_done
[ -n "${PODMAN_TEST-}" ] || impossible "only root can run containers here, in namespaces of the test's own"
for program in podman crun python3 "${CC:-cc}"; do
	command -v "$program" >/dev/null 2>&1 || impossible "no $program: 'make check-podman' installs podman and crun"
done
mount -t tmpfs none /run && mount -t tmpfs -o mode=1777 none /dev/shm || impossible "nothing can be mounted here"
mkdir -p /run/cdi
chmod 711 "$tmp"
# crun refuses cgroups version 1 together with a version 2 that has controllers.
if [ "$(stat -f -c %T /sys/fs/cgroup)" = tmpfs ] && [ -d /sys/fs/cgroup/unified ]; then
	umount -l /sys/fs/cgroup/unified
fi
[ -e /sys/fs/cgroup/cpu/libpod_parent ] || \
	trap 'find /sys/fs/cgroup/*/libpod_parent -depth -type d -exec rmdir {} \; 2>/dev/null; rm -rf "$tmp"' EXIT

# ------------------------------------------------- an image: the C library, and programs
image=$tmp/image
mkdir -p "$image/proc" "$image/sys" "$image/dev" "$image/tmp" "$image/run" "$image/etc" "$image/lib64"
cat >"$tmp/pipes.c" <<'EOF'
/* Whether a client of MPS finds its daemon where the variable says. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
	char *pipes = getenv("CUDA_MPS_PIPE_DIRECTORY");
	return printf("%s\n", pipes) < 0 || chdir(pipes) || access("control", R_OK) ? 1 : 42;
}
EOF
cat >"$tmp/records.c" <<'EOF'
/* records PID ADDRESS: of that process's launches on that GPU. */
#include <stdio.h>
#include <stdlib.h>
#include <gpupart_manage.h>
int main(int argc, char **argv)
{
	struct gpupart_records_reader *reader;
	struct gpupart_records r;
	struct gpupart *gp;

	if (argc < 3 || gpupart_open(&gp))
		return 1;
	if (gpupart_records_open(gp, atoi(argv[1]), argv[2], &reader) ||
	    gpupart_records_read(gp, reader, &r, sizeof(r)))
		return puts(gpupart_error(gp)) < 0;
	printf("on %d issued %llu ended %llu unrecorded %llu\n", r.on, (long long)r.issued,
	       (long long)r.ended, (long long)r.unrecorded);
	return 0;
}
EOF
built() {
	${CC:-cc} -o "$image/census" tests/cli/census.c -ldl && ${CC:-cc} -o "$image/memory" tests/cli/memory_seen.c -ldl &&
		${CC:-cc} -o "$image/pipes" "$tmp/pipes.c" &&
		${CC:-cc} -I include -I include/uapi -o "$tmp/records" "$tmp/records.c" "$BUILD/lib/libgpupart-manage.so.0" \
			"$BUILD/lib/libgpupart.so.0" -Wl,-rpath,"$BUILD/lib"
}
built 2>"$tmp/err" || impossible "no C compiler that works"
cp lib/confine/probe.ptx "$image/"
for library in $(ldd "$image/census" | grep -o '/[^ ]*'); do
	# The C library's folder has the dependencies of the injected libraries too.
	for name in "${library##*/}" libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1 ld-linux-x86-64.so.2; do
		mkdir -p "$image${library%/*}" "$image/lib/x86_64-linux-gnu"
		cp -L "${library%/*}/$name" "$image${library%/*}/" 2>/dev/null
		cp -L "${library%/*}/$name" "$image/lib/x86_64-linux-gnu/" 2>/dev/null
	done
done

# Root's podman, with its files in folders of the test.
engine() {
	podman --root "$tmp/store" --runroot /run/store --tmpdir /run/tmp --storage-driver vfs \
		--cgroup-manager cgroupfs --events-backend none --runtime crun "$@"
}
# contained OPTIONS PROGRAM..: runs it in a container: $status, $out, $err.
cgroups=
contained() {
	# shellcheck disable=SC2086 # one word, or none
	engine run --rm --network none $cgroups "$@" >"$tmp/out" 2>"$tmp/err"
	status=$?
	out=$(cat "$tmp/out")
	err=$(cat "$tmp/err")
}
contained --rootfs "$image" /census
if [ $status != 100 ]; then
	echo "# podman uses no cgroups here: $(head -n 1 "$tmp/err")"
	cgroups="--cgroups=disabled"
	contained --rootfs "$image" /census
fi
[ $status = 100 ] || impossible "podman runs no container here: $(head -n 1 "$tmp/err")"
echo "# $(podman --version), $(crun --version | head -n 1)"
device="--device gpupart.dev/simulated=half"
census="--rootfs $image /census /probe.ptx"

# ------------------------------------------------------------------- set, quota, status
"$gpupart" cdi $e -t 0-7 --name inside --mem 2G --device half -o /run/cdi/gpupart.json 2>/dev/null
smids="0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15"
contained $device $census 42
is "$status $out $err" "42 $smids " "a container of the device: its status, on the SMs of the set, without a message"
contained $census 42
is "$status $out" "100 " "without the device: no GPU"
contained $device --rootfs "$image" /memory
is "$status $out $err" "42 2048 MiB, 0 2 " "the quota is the memory that there is, and no more is to be had"
contained $device --user 4711 $census 42
is "$status $out" "42 $smids" "as another user than the device's: on the SMs of the set"

# ------------------------------------------------------------- visible from outside
# seen EXPRESSION: evaluates it with the only process p in ps.
seen() {
	"$gpupart" ps --json | python3 -c "
import json, sys
for p in json.load(sys.stdin)['processes']:
    print($1)"
}
# until COMMAND..: waits until it succeeds, for a minute at most.
until_it() {
	for _ in $(seq 600); do
		"$@" && return
		sleep 0.1
	done
	return 1
}
mkfifo "$tmp/in"
contained --interactive --name box $device $census 42 wait <"$tmp/in" &
child=$!
exec 3>"$tmp/in"
until_it grep -q 15 "$tmp/out" 2>/dev/null
ok $? "a container runs"
pid=$(engine inspect --format '{{.State.Pid}}' box)
id=$(engine inspect --format '{{.Id}}' box)
is "$(seen 'p["pid"], p["name"], p["uid"], p["set"]["list"], p["simulated"]')" "$pid inside 0 0-7 True" \
	"ps outside: its pid outside, its name, its set"
if [ -z "$cgroups" ]; then
	is "$(seen 'p["container"]')" "$id" "and which container it is"
	has "$("$gpupart" ps)" "$pid $(echo "$id" | cut -c 1-12) inside " "in the table, too"
else
	is "$(seen 'p["container"]')" None "no cgroup: its container is not known"
fi
is "$("$tmp/records" "$pid" "$(seen 'p["gpu"]')")" "on 1 issued 1 ended 1 unrecorded 0" "its launch has a record"
try set inside -t 4-5
is "$status $(seen 'p["set"]["list"]')" "0 4-5" "set outside changes its set"
exec 3>&-
wait $child
is "$(seen 'p["pid"]')$(find /dev/shm/gpupart-0 -name '[0-9]*')" "" "after its end nothing is left of it"

# ------------------------------------------------------------------- held
"$gpupart" cdi $e -t 0-7 --name inside --device half --hold -o /run/cdi/gpupart.json 2>/dev/null
contained $device --env GPUPART_DISABLE=1 $census 42
is "$status $out" "42 $smids" "--hold: user 0 does not leave the set by a variable"
contained $device --user 4711 --env GPUPART_DISABLE=1 $census 42
is "$status $out" "42 $smids" "--hold: nor does another user"

# ------------------------------------------------------------------- two shares of a plan
"$gpupart" plan $e --tenant one:tpcs=8,gpcs --tenant two:tpcs=5 --json | "$gpupart" cdi $e --plan - -o /run/cdi/gpupart.json 2>/dev/null
for share in one two; do
	contained --device gpupart.dev/simulated=$share $census 42
	echo "$out" | tr ' ' '\n' >"$tmp/$share"
done
is "$(cat "$tmp/one" "$tmp/two" | wc -l) $(cat "$tmp/one" "$tmp/two" | sort | uniq -d | wc -l)" "26 0" "two shares: no SM of both"

# ------------------------------------------------------------------- MPS
mkdir -p "$tmp/bin" "$tmp/fake" /run/gpupart/mps
ln -s "$root/tests/other_mps.sh" "$tmp/bin/nvidia-cuda-mps-control"
(
	PATH=$tmp/bin:$PATH CUDA_MPS_PIPE_DIRECTORY=/run/gpupart/mps FAKE_MPS=$tmp/fake
	export PATH CUDA_MPS_PIPE_DIRECTORY FAKE_MPS
	nvidia-cuda-mps-control -d
	until_it test -e /run/gpupart/mps/control
	unset CUDA_MPS_PIPE_DIRECTORY
	exec "$gpupart" cdi $e -t 0-7 --device half --mps -o /run/cdi/gpupart.json 2>/dev/null
)
ok $? "the node has a daemon (not NVIDIA's)"
contained $device --rootfs "$image" /pipes
is "$status $out" "42 /run/gpupart/mps" "--mps: the container's programs find it"
contained $device --env GPUPART_SIM_FAULTS=no-mps-attribute $census 42
is "$status $out $err" "42 $smids " "and clients are confined by what was checked without MPS"
kill "$(cat /run/gpupart/mps/*.pid)"

# ------------------------------------------------------------------- rootless
cp /etc/passwd "$tmp/passwd"
echo "gpupart-test:x:4711:4711::$tmp/home:/bin/sh" >>"$tmp/passwd"
mount --bind "$tmp/passwd" /etc/passwd
mkdir -m 700 "$tmp/home" "$tmp/runtime"
mv "$image" "$tmp/home/image"
image=$tmp/home/image
census="--rootfs $image /census /probe.ptx"
chown -R 4711:4711 "$tmp/home" "$tmp/runtime"
cgroups=--cgroups=disabled
engine() {
	(cd / && exec setpriv --reuid 4711 --regid 4711 --clear-groups env -u XDG_CACHE_HOME -u XDG_CONFIG_HOME HOME="$tmp/home" XDG_RUNTIME_DIR="$tmp/runtime" \
		podman --root "$tmp/home/store" --runroot "$tmp/runtime/store" --tmpdir "$tmp/runtime/tmp" --storage-driver vfs \
		--cgroup-manager cgroupfs --events-backend none --log-level fatal --runtime crun "$@")
}
contained --rootfs "$image" /census
[ $status = 100 ] || impossible "podman runs no rootless container here: $(head -n 1 "$tmp/err")"
"$gpupart" cdi $e -t 0-7 --name rootless --uid 4711:0 --device half -o /run/cdi/gpupart.json 2>/dev/null
contained --interactive --name box $device $census 42 wait <"$tmp/in" &
child=$!
exec 3>"$tmp/in"
until_it grep -q 15 "$tmp/out" 2>/dev/null
is "$? $(cat "$tmp/out")" "0 $smids" "rootless: on the SMs of the set"
pid=$(engine inspect --format '{{.State.Pid}}' box)
is "$(seen 'p["pid"], p["name"], p["uid"], p["set"]["list"]')" "$pid rootless 4711 0-7" \
	"rootless: ps outside, root's, shows its pid, its user and its set"
is "$("$tmp/records" "$pid" "$(seen 'p["gpu"]')")" "on 1 issued 1 ended 1 unrecorded 0" "rootless: its launch has a record"
exec 3>&-
wait $child
contained $device --env GPUPART_DISABLE=1 $census 42
is "$status $(echo "$out" | wc -w)" "42 132" "rootless, not held: GPUPART_DISABLE=1 leaves the set"
"$gpupart" cdi $e -t 0-7 --name rootless --uid 4711:0 --device half --hold -o /run/cdi/gpupart.json 2>/dev/null
contained $device --env GPUPART_DISABLE=1 $census 42
is "$status $out" "42 $smids" "rootless, held: user 0 does not"
tap_done
