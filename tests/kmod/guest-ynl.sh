# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154
# Tests the kernel's own client for specs, if a kernel source was available.
if [ -d /ynl ]; then
	[ -e /sys/bus/pci/devices/0000:08:00.0 ] || { echo 1 >/sys/bus/pci/rescan; sleep 1; }
	host load 0 gh100-h200-e >/dev/null
	host load 1 gh100-h200-a >/dev/null
	host load 3 ampere-ga100 >/dev/null
	host load 6 refused-0x1d2 >/dev/null
	insmod /gpupart.ko
	python3 /tests/ynl.py /ynl /tests/gpupart.yaml >/tmp/out 2>/tmp/err
	status=$?
	cat /tmp/out
	check $status "YNL: its client speaks with the module by the spec alone"
	sed 's/^/# /' /tmp/err
	rmmod gpupart
else
	echo "ok - # SKIP no kernel source with a client for specs"
fi
