# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154
# Tests a load, a read and a dump. In each of these, every allocation fails once. Needs a kernel
# with fault injection.
if [ -d /sys/kernel/debug/failslab ]; then
	for what in failslab fail_page_alloc; do
		echo N >/sys/kernel/debug/$what/ignore-gfp-wait
		# The kernel reports each injected failure in a form that looks like an error, but
		# this is not an error.
		echo 0 >/sys/kernel/debug/$what/verbose
	done
	echo N >/sys/kernel/debug/fail_page_alloc/ignore-gfp-highmem 2>/dev/null
	echo 0 >/sys/kernel/debug/fail_page_alloc/min-order
	# One GPU is enough, because each register that is kept is an allocation.
	for d in 2 3 4 5 6 7 8; do echo 1 >/sys/bus/pci/devices/0000:0$d:00.0/remove 2>/dev/null; done
	host load 0 gh100-runlists-busy >/dev/null
	failnth load /gpupart.ko >/tmp/out
	check $? "load: $(cat /tmp/out)"
	insmod /gpupart.ko
	for file in gpu/topology gpu0/topology gpu0/engines gpu0/device_info gpu0/gpc_mask gpu0/runlists gpu0/timer; do
		failnth read /proc/$file >/tmp/out
		check $? "$file: $(cat /tmp/out)"
	done
	failnth dump >/tmp/out
	check $? "dump: $(cat /tmp/out)"
	cmp -s /proc/gpu0/topology /pages/gh100-runlists-busy.topology
	check $? "afterwards the page is whole"
	rmmod gpupart
	check $? "unloads"
	host load 0 gh100-h200-e >/dev/null
fi
