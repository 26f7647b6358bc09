# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154
# Tests GPUs that sleep under their driver.
status=/sys/bus/pci/devices/0000:01:00.0/power/runtime_status
asleep() {
	tries=50
	while [ "$(cat $status)" != suspended ] && [ $tries -gt 0 ]; do
		tries=$((tries - 1))
		sleep 0.1
	done
	[ "$(cat $status)" = suspended ]
}
host load 0 gh100-h200-e >/dev/null
insmod /sleepy.ko
check $? "a driver that lets GPUs sleep"
asleep
check $? "GPU 0 sleeps"
insmod /gpupart.ko
cmp -s /proc/gpu0/topology /pages/gh100-h200-e.topology
check $? "it was woken and read"
same "$(sed -n 's/^driver *//p' /proc/gpu0/pci)" sleepy "its driver"
asleep
check $? "and sleeps again"
same "$(sed -n 's/^power *//p' /proc/gpu0/pci)" asleep "its power on the page of the bus"
host reads 0 >/dev/null
cmp -s /proc/gpu0/topology /pages/gh100-h200-e.topology
check $? "its page again"
same "$(host reads 0) $(cat $status)" "0 suspended" "register reads for it, and the GPU is still"
# If a value were read anew each time, the GPU would stay awake.
wakes=$(cat /sys/module/sleepy/parameters/wakes) i=0
while [ $i -lt 20 ]; do
	gpunl user cat /proc/gpu0/timer >/tmp/out 2>/dev/null && echo "it is read"
	[ ! -s /tmp/out ] || echo "it is $(cat /tmp/out)"
	i=$((i + 1))
done >/tmp/said
same "$(cat /tmp/said)" "" "reads of the timer of a GPU that sleeps, as an ordinary user"
same "$(cat $status) $(host reads 0) $(($(cat /sys/module/sleepy/parameters/wakes) - wakes))" "suspended 0 0" \
	"the GPU, its register reads and its wake-ups after $i reads of the timer"
echo on >/sys/bus/pci/devices/0000:01:00.0/power/control
cat /proc/gpu0/timer >/dev/null
check $? "awake, its timer is read"
echo auto >/sys/bus/pci/devices/0000:01:00.0/power/control
asleep
check $? "and it sleeps again"

echo 1 >/sys/module/sleepy/parameters/stubborn
cat /proc/gpu0/timer >/tmp/out 2>/dev/null
[ $? -ne 0 ] && [ ! -s /tmp/out ]
check $? "a GPU that does not wake is an error"
cmp -s /proc/gpu0/topology /pages/gh100-h200-e.topology
check $? "but the known values are still shown"
rmmod gpupart
insmod /gpupart.ko
grep -q 'unreadable  asleep' /proc/gpu0/topology && grep -q '^complete    no' /proc/gpu0/topology
check $? "nothing known of it: $(sed -n 's/^unreadable *//p' /proc/gpu0/topology)"
gpunl gpu 0 >/tmp/out
same "$(grep '^unreadable' /tmp/out)" "unreadable asleep, and could not be woken" "by netlink"
gpunl topology 0 >/tmp/out
same $? 112 "errno of its topology"
grep -q asleep /tmp/out
check $? "its sentence: $(cat /tmp/out)"
# The kernel does not try again until a driver is bound.
rmmod sleepy
insmod /sleepy.ko
cmp -s /proc/gpu0/topology /pages/gh100-h200-e.topology
check $? "when it wakes again it is read"
[ -e /proc/gpu0/gpc_mask ]
check $? "and has nvdebug's files"

# A driver that is bound can load the GPU's tables.
asleep
host poke 0 0x405000 0x40302001 >/dev/null
host poke 0 0x40502c 0x00000000 >/dev/null
cmp -s /proc/gpu0/topology /pages/gh100-h200-e.topology
check $? "a table that changed is not seen while nothing happens"
rmmod sleepy
grep -q '^order       read' /proc/gpu0/topology
[ $? -ne 0 ]
check $? "but is after the driver was unbound: $(sed -n 's/^order *//p' /proc/gpu0/topology)"
host load 0 gh100-h200-e >/dev/null
until_true 30 cmp -s /proc/gpu0/topology /pages/gh100-h200-e.topology
check $? "and when it is good again"
insmod /sleepy.ko
asleep
wakes=$(cat /sys/module/sleepy/parameters/wakes)
cat /proc/gpu0/timer >/tmp/out 2>/dev/null
[ $? -ne 0 ] && [ ! -s /tmp/out ]
check $? "the timer of a GPU that sleeps and whose chip is not known is an error"
same "$(cat $status) $(($(cat /sys/module/sleepy/parameters/wakes) - wakes))" "suspended 0" "the GPU and its wake-ups after that"
rmmod sleepy
rmmod gpupart
check $? "unloads"
same "$(host writes)" 0 "register writes"
