# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154
# Tests a GPU of vfio-pci. The GPU is first only bound. Then a process uses it as a virtual machine
# would.
address=0000:01:00.0
gpu0=/sys/bus/pci/devices/$address
vfio=/sys/bus/pci/drivers/vfio-pci
left_alone() {
	host reads 0 >/dev/null
	sed -n 's/^unreadable *//p' /proc/gpu0/topology >/tmp/out
	same "$(cat /tmp/out)" "reserved for a virtual machine: it is not read" "$1: the page"
	cat /proc/gpu0/timer /proc/gpu0/engines /proc/gpu0/num_gpcs >/tmp/out 2>/dev/null
	same "$? $(wc -c </tmp/out)" "1 0" "$1: status and bytes of single registers"
	for what in topology runlists; do
		gpunl $what 0 >/tmp/out
		same $? 1 "$1: gpunl $what: errno"
		grep -q 'reserved for a virtual machine' /tmp/out
		check $? "$1: gpunl $what: $(cat /tmp/out)"
	done
}
noiommu=/sys/module/vfio/parameters/enable_unsafe_noiommu_mode group=""
[ -e $noiommu ] && group="noiommu-0"
[ -e $gpu0/iommu_group ] && group=$(basename "$(readlink $gpu0/iommu_group)")
if [ -n "$group" ]; then
	for module in irqbypass vfio vfio_virqfd vfio_iommu_type1 vfio-pci-core vfio-pci; do
		# The machine's IOMMU does not remap interrupts.
		unsafe=
		[ $module = vfio_iommu_type1 ] && unsafe=allow_unsafe_interrupts=1
		[ ! -e /vfio/$module.ko ] || insmod /vfio/$module.ko $unsafe
	done
	[ ! -e $noiommu ] || echo Y >$noiommu
	[ -e /sys/bus/pci/devices/0000:08:00.0 ] || { echo 1 >/sys/bus/pci/rescan; sleep 1; }
	host load 0 gh100-h200-e >/dev/null
	insmod /gpupart.ko
	cmp -s /proc/gpu0/topology /pages/gh100-h200-e.topology
	check $? "its page before"
	echo vfio-pci >$gpu0/driver_override
	echo $address >$vfio/bind
	same "$(sed -n 's/^driver *//p' /proc/gpu0/pci)" vfio-pci "its driver"
	left_alone "bound"
	same "$(host reads 0)" 0 "bound: register reads"
	same "$(cat /sys/bus/pci/devices/0000:01:00.0/power/runtime_status)" suspended "and it sleeps"
	rmmod gpupart
	insmod /gpupart.ko
	grep -q 'unreadable  reserved for a virtual machine' /proc/gpu0/topology
	check $? "a module that is loaded later does not read it either: $(host reads 0) reads"

	mkfifo /tmp/vfio-end
	vfio /dev/vfio/"$group" $address </tmp/vfio-end >/tmp/vfio 2>&1 &
	user=$!
	exec 4>/tmp/vfio-end
	until_true 300 [ -s /tmp/vfio ]
	same "$(head -n 1 /tmp/vfio)" "taken 0x180000a1" "a process has it"
	i=0
	while [ $i -lt 5 ]; do
		left_alone "in use"
		same "$(host reads 0)" 0 "in use: register reads"
		i=$((i + 1))
	done >/tmp/checks
	grep '^not ok' /tmp/checks || sort -u /tmp/checks
	[ "$(grep -c '^ok' /tmp/checks)" = 35 ]
	check $? "all of that five times: $(grep -c '^ok' /tmp/checks)"
	kill -0 $user
	check $? "and the process has it all the while"
	exec 4>&-
	wait $user
	check $? "which switched its memory and reset it: $(tail -n 1 /tmp/vfio)"

	echo $address >$vfio/unbind
	echo >$gpu0/driver_override
	until_true 30 cmp -s /proc/gpu0/topology /pages/gh100-h200-e.topology
	check $? "when vfio-pci leaves it, it is read: $(sed -n 's/^unreadable *//p' /proc/gpu0/topology)"
	[ -e /proc/gpu0/num_gpcs ] && cat /proc/gpu0/timer >/dev/null
	check $? "registers too"
	rmmod gpupart
	same "$(host writes)" 0 "register writes"
else
	echo "ok - # SKIP vfio-pci: this machine has no IOMMU, and this kernel does not do without"
fi
