#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/runtests.sh: no test sees what is set for CUDA, gpupart or the simulated driver.
. "$(dirname "$0")/tap.subr"

cat >"$tmp/test" <<'END'
#!/bin/sh
# What is set, as the name of a check.
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
tap_done
