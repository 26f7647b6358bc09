# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154
# Tests an integrated GPU, which is a platform device over memory (TEGRA of the kernel's command
# line) with a driver that powers it. First tests a device without a device tree, by its name. Then
# tests a device of a device tree, if this machine has one.
drivers=/sys/bus/platform/drivers/gk20a

# integrated ADDRESS: tests the facts that hold for each integrated GPU. The GPU is bound to its
# driver.
integrated() {
	address=$1 device=/sys/bus/platform/devices/$1
	asleep() {
		tries=50
		while [ "$(cat "$device/power/runtime_status")" != suspended ] && [ $tries -gt 0 ]; do
			tries=$((tries - 1))
			sleep 0.1
		done
		[ "$(cat "$device/power/runtime_status")" = suspended ]
	}
	registers() { dd if="$1" of=/proc/tegra_regs bs=4M 2>/dev/null; }
	# The page must equal the page of the register file, with this address.
	page_is() {
		sed "s/0000:01:00.0/$address/" "/pages/ampere-ga10b.topology" >/tmp/want
		cmp -s /proc/gpu0/topology /tmp/want
	}
	registers /regs/ampere-ga10b.regs
	asleep
	check $? "$address sleeps"
	same "$(cat /proc/tegra_regs)" 0 "its registers that are not all ones"
	insmod /gpupart.ko
	page_is
	check $? "it was woken and read: $(sed -n 's/^chip *//p' /proc/gpu0/topology)"
	asleep
	check $? "and sleeps again"
	same "$(sed -n 's/^driver *//p' /proc/gpu0/platform)" gk20a "its driver"
	same "$(sed -n 's/^address *//p' /proc/gpu0/platform)" "$address" "its address"
	same "$(sed -n 's/^power *//p' /proc/gpu0/platform)" asleep "its power on the page of the bus"
	grep -q '^evidence.*never on hardware' /proc/gpu0/platform
	check $? "and that it was never tried on hardware"
	[ ! -e /proc/gpu0/pci ]
	check $? "it has no page of PCI"
	dmesg | grep -q "gpupart: $address is an integrated GPU: gpupart was never tried on such hardware"
	check $? "the kernel's log has that as well"
	page_is && [ "$(cat "$device/power/runtime_status")" = suspended ]
	check $? "its page again, and the GPU is still"
	same "$(sed -n 's/^gpu  *//p' /proc/gpu1/topology)" "gpu1 0000:01:00.0" "PCI comes after it"
	same "$(find /proc/gpu0 -type f ! -perm 0444 | wc -l)" 0 "files that are not 0444"
	gpunl gpu "$address" >/tmp/out
	same "$(head -n 1 /tmp/out)" "index 0" "netlink: a GPU by its bus-name"
	kerneltopo "$address" >/tmp/out
	same "$? $(grep -c '^tpc' /tmp/out)" "0 7" "the library: TPCs of $address"

	# Tests a register that is refused, a register that does not exist, and the GPU in the
	# middle of a change.
	rmmod gpupart
	sed 's/^0x820c1c .*/0x820c1c 0xbadf5120/' /regs/ampere-ga10b.regs >/tmp/regs
	registers /tmp/regs
	insmod /gpupart.ko
	cat /proc/gpu0/topology >/tmp/out 2>/dev/null
	[ $? -ne 0 ] && [ ! -s /tmp/out ]
	check $? "a register that refuses is an error"
	gpunl topology 0 >/tmp/out
	grep -q 'privilege level violation' /tmp/out
	check $? "netlink names it: $(cat /tmp/out)"
	registers /regs/ampere-ga10b.regs
	until_true 30 page_is
	check $? "its page when the register answers"

	echo 1 >/sys/module/tegra/parameters/stubborn
	asleep
	cat /proc/gpu0/timer >/tmp/out 2>/dev/null
	[ $? -ne 0 ] && [ ! -s /tmp/out ]
	check $? "a GPU that does not wake is an error"
	page_is
	check $? "but the known values are still shown"
	echo 0 >/sys/module/tegra/parameters/stubborn

	# Without its driver the GPU's power rail may be off, so the GPU must not be read.
	echo "$address" >$drivers/unbind
	same "$(sed -n 's/^driver *//p' /proc/gpu0/platform)" none "without its driver"
	grep -q 'unreadable  asleep' /proc/gpu0/topology && grep -q '^complete    no' /proc/gpu0/topology
	check $? "it is not read: $(sed -n 's/^unreadable *//p' /proc/gpu0/topology)"
	same "$(sed -n 's/^power *//p' /proc/gpu0/platform)" "unknown without a driver: it is not read" "its power"
	cat /proc/gpu0/gpc_mask >/tmp/out 2>/dev/null
	[ $? -ne 0 ] && [ ! -s /tmp/out ]
	check $? "nor are single registers"
	rmmod gpupart
	insmod /gpupart.ko
	grep -q 'unreadable  asleep' /proc/gpu0/topology && [ ! -e /proc/gpu0/gpc_mask ]
	check $? "nor if the module is loaded later"
	echo "$address" >$drivers/bind
	page_is
	check $? "with its driver it is"
	[ -e /proc/gpu0/gpc_mask ]
	check $? "and has nvdebug's files"

	# If a driver leaves runtime PM off, the power rail may be off.
	echo "$address" >$drivers/unbind
	echo 1 >/sys/module/tegra/parameters/off
	echo "$address" >$drivers/bind
	grep -q 'unreadable  asleep' /proc/gpu0/topology && ! cat /proc/gpu0/timer >/dev/null 2>&1
	check $? "without runtime PM it is not read: $(sed -n 's/^unreadable *//p' /proc/gpu0/topology)"
	echo "$address" >$drivers/unbind
	echo 0 >/sys/module/tegra/parameters/off
	echo "$address" >$drivers/bind

	# Tests readers while the GPU loses its driver and gets it back.
	rm -f /tmp/stop /tmp/cut.*
	for i in 1 2 3 4; do
		(while [ ! -e /tmp/stop ]; do
			cat /proc/gpu0/topology >"/tmp/reader.$i" 2>/dev/null || continue
			tail -n 1 "/tmp/reader.$i" | grep -q '^complete' || cp "/tmp/reader.$i" "/tmp/cut.$i"
			cat /proc/gpu0/timer >/dev/null 2>&1
		done) &
	done
	i=0
	while [ $i -lt 20 ]; do
		echo "$address" >$drivers/unbind
		echo "$address" >$drivers/bind
		i=$((i + 1))
	done
	touch /tmp/stop
	wait
	same "$(ls /tmp/cut.* 2>/dev/null)" "" "pages without their last line"
	page_is
	check $? "its page after all that"
	same "$(cat /proc/tegra_regs)" 0 "its registers that are not as they were"
}

if [ -n "$TEGRA" ]; then
	[ -e /sys/bus/pci/devices/0000:08:00.0 ] || { echo 1 >/sys/bus/pci/rescan; sleep 1; }
	host load 0 gh100-h200-e >/dev/null
	insmod /tegra.ko name=17000000.gpu base="$TEGRA"
	check $? "an integrated GPU, by its name"
	integrated 17000000.gpu

	# The device itself is removed and added.
	exec 4</proc/gpu0/topology
	rmmod tegra
	check $? "the device is removed while its page is open"
	[ ! -e /proc/gpu0 ]
	check $? "it has no folder"
	cat <&4 2>/dev/null >/tmp/out
	[ $? -ne 0 ] && [ ! -s /tmp/out ]
	check $? "a file of it that was open is an error"
	exec 4<&-
	same "$(gpunl gpus | head -n 1 | cut -d' ' -f1-4)" "index 1 bus-name 0000:01:00.0" "the others keep their numbers"
	insmod /tegra.ko name=17000000.gpu base="$TEGRA"
	same "$(sed -n 's/^address *//p' /proc/gpu0/platform)" 17000000.gpu "it has its old number again"
	rmmod gpupart
	check $? "unloads before the device is removed"
	rmmod tegra
	insmod /tegra.ko name=17000001.gpu base="$TEGRA"
	insmod /gpupart.ko
	[ ! -e /proc/gpu0/platform ]
	check $? "a device of another name is not added"
	rmmod gpupart
	rmmod tegra
else
	echo "ok - # SKIP an integrated GPU: this machine keeps no memory for one"
fi

# If this machine has a device tree, does the same with the GPU's node, which is added while the
# module is loaded.
if [ -d /proc/device-tree ]; then
	insmod /gpupart.ko
	host node >/dev/null
	for node in /sys/bus/platform/devices/*.gpu; do node=$(basename "$node"); done
	same "$(ls -d /proc/gpu[0-9]* | wc -l)" 9 "a GPU more, by the device tree"
	same "$(sed -n 's/^address *//p' /proc/gpu8/platform)" "$node" "with its address"
	same "$(sed -n 's/^compatible *//p' /proc/gpu8/platform)" nvidia,ga10b "and compatible"
	grep -q 'unreadable  asleep' /proc/gpu8/topology
	check $? "without a driver it is not read"
	rmmod gpupart
	insmod /tegra.ko base="0x${node%.gpu}"
	echo gk20a >"/sys/bus/platform/devices/$node/driver_override"
	echo "$node" >$drivers/bind
	integrated "$node"
	exec 4</proc/gpu0/topology
	host nonode >/dev/null
	[ ! -e /proc/gpu0 ] && ! cat <&4 >/dev/null 2>&1
	check $? "the device is removed while its page is open"
	exec 4<&-
	rmmod gpupart
	rmmod tegra
else
	echo "ok - # SKIP an integrated GPU of a device tree: this machine has none"
fi
