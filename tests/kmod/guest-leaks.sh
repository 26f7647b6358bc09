# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154
# Tests that no maps and references are left after several requests of each kind and an unload.
maps() { grep -c 'gpupart\|ioremap' /proc/vmallocinfo; }
pci=/sys/bus/pci/devices
[ -e $pci/0000:08:00.0 ] || { echo 1 >/sys/bus/pci/rescan; sleep 1; }
before=$(maps)
insmod /gpupart.ko
[ "$(maps)" -gt "$before" ]
check $? "$(maps) maps of registers with the module, $before without"
for i in 1 2 3; do
	for n in 0 1 2 3 4 5 6 7; do
		gpunl gpu $n
		gpunl topology $n
		gpunl engines $n
		gpunl runlists $n
		cat /proc/gpu$n/*
	done
	gpunl gpus
	gpunl engines
	gpunl topology 0000:01:00.0
	gpunl topology 99
	cat /proc/gpu/topology
done >/dev/null 2>&1
# The map of a GPU that is removed is freed at once.
loaded=$(maps)
echo 1 >$pci/0000:03:00.0/remove
until_true 30 sh -c "[ \$(grep -c 'gpupart\|ioremap' /proc/vmallocinfo) -lt $loaded ]"
check $? "the map of a GPU that is removed: $(maps) maps of $loaded"
echo 1 >/sys/bus/pci/rescan
rmmod gpupart
same "$(maps)" "$before" "maps after the module was unloaded"

# If the kernel has kmemleak, checks for leaks of all previous parts.
if [ -e /sys/kernel/debug/kmemleak ]; then
	echo scan >/sys/kernel/debug/kmemleak
	sleep 6
	echo scan >/sys/kernel/debug/kmemleak
	cat /sys/kernel/debug/kmemleak >/tmp/leaks
	same "$(grep -c 'unreferenced object' /tmp/leaks)" 0 "leaks"
	sed 's/^/# /' /tmp/leaks | head -n 60
fi
