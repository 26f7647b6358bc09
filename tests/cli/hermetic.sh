#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/runtests.sh: no test gets variables for CUDA, gpupart or the simulated driver; parallel
# runs have the same totals as sequential ones.
. "$(dirname "$0")/tap.subr"

cat >"$tmp/test" <<'END'
#!/bin/sh
# The variables that are set, as the name of a check.
echo "ok 1 - $CUDA_VISIBLE_DEVICES$CUDA_DEVICE_ORDER$GPUPART_SIM_FAULTS$GPUPART_SET$NO_COLOR"
[ -z "$CUDA_VISIBLE_DEVICES$CUDA_DEVICE_ORDER$GPUPART_SIM_FAULTS$GPUPART_SET$NO_COLOR" ] || echo "not ok 2 - set"
echo 1..1
END
chmod +x "$tmp/test"
run() {
	env CUDA_VISIBLE_DEVICES=1 CUDA_DEVICE_ORDER=PCI_BUS_ID GPUPART_SIM_FAULTS=mps "GPUPART_SET=x
y=z" NO_COLOR=1 TEST_TOTALS= "$@" tests/runtests.sh "$tmp/test" >"$tmp/out" 2>&1
}
run TEST_ENVIRONMENT=
is "$? $(tail -n 1 "$tmp/out")" "0 1 passed, 0 failed, 0 skipped" "a test sees none of them"
run TEST_ENVIRONMENT=keep
is $? 1 "TEST_ENVIRONMENT=keep leaves them"

# Two tests that wait for each other, which is impossible sequentially; one that fails; one whose
# run is killed.
program() {
	{ echo "#!/bin/sh"; cat; } >"$tmp/$1"
	chmod +x "$tmp/$1"
}
for i in 1 2; do
	program meet$i <<-END
	touch "$tmp/here$i"
	n=300
	while [ ! -e "$tmp/here$((3 - i))" ] && [ \$n -gt 0 ]; do n=\$((n - 1)); sleep 0.1; done
	[ \$n -gt 0 ] && echo "ok 1 - met" || echo "not ok 1 - alone"
	echo 1..1
	END
done
program fails <<'END'
echo "not ok 1 - this one"
echo 1..1
END
program killed <<'END'
kill -9 "$(cut -d' ' -f4 /proc/$PPID/stat)"
END
: >"$tmp/totals"
TEST_JOBS=2 TEST_TOTALS="$tmp/totals" tests/runtests.sh "$tmp/meet1" "$tmp/meet2" >"$tmp/out" 2>&1
is "$? $(tail -n 1 "$tmp/out")" "0 2 passed, 0 failed, 0 skipped" "TEST_JOBS=2: two tests at a time"
is "$(cat "$tmp/totals")" "2 0 0" "one line of totals for both"
TEST_JOBS=2 TEST_TOTALS='' tests/runtests.sh "$tmp/fails" "$tmp/meet1" "$tmp/killed" >"$tmp/out" 2>&1
is "$? $(tail -n 1 "$tmp/out")" "1 1 passed, 2 failed, 0 skipped" "one that fails and one whose run is killed"
is "$(grep -c 'this one$\|1 tests ended without their totals' "$tmp/out")" 2 "both are reported"

# With TEST_APART, neither sees the other's files in /dev/shm.
for i in 1 2; do
	program apart$i <<-END
	mkdir /dev/shm/apart.$$.$i
	"$tmp/meet$i"
	[ -d /dev/shm/apart.$$.$i ] && [ ! -e /dev/shm/apart.$$.$((3 - i)) ] && ! pgrep -f "$tmp/apart$((3 - i))" >/dev/null
	END
done
rm "$tmp"/here?
TEST_JOBS=2 TEST_APART=1 TEST_TOTALS='' tests/runtests.sh "$tmp/apart1" "$tmp/apart2" >"$tmp/out" 2>&1
status=$?
if unshare -mpf --kill-child --mount-proc mount -t tmpfs tmpfs /dev/shm 2>/dev/null; then
	is "$status $(tail -n 1 "$tmp/out")" "0 2 passed, 0 failed, 0 skipped" "TEST_APART=1: they meet, and nowhere else"
	is "$(find /dev/shm -maxdepth 1 -name "apart.$$.*")" "" "and nothing of it is left"
else
	rmdir /dev/shm/apart.$$.?
	skip "TEST_APART=1: mount is not permitted here"
fi
tap_done
