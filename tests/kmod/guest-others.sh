# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154
# Tests the module's effects on other processes, other drivers and the machine.
pci=/sys/bus/pci/devices
gpu0=$pci/0000:01:00.0
power_is() { [ "$(cat $gpu0/power/runtime_status)" = "$1" ]; }
host load 0 gh100-h200-e >/dev/null

# A GPU takes long to wake. Only a request that needs this GPU may wait. The kernel that checks every
# access needs more time for the requests.
slowly=8000
[ -n "${FUZZ-}" ] && slowly=40000
insmod /sleepy.ko
insmod /gpupart.ko
cmp -s /proc/gpu0/topology /pages/gh100-h200-e.topology
check $? "a GPU whose driver lets it sleep is read"
until_true 50 power_is suspended
# Use GPU 1 without its driver, because the driver would wake it just as slowly when it is removed.
echo 0000:02:00.0 >/sys/bus/pci/drivers/sleepy/unbind
echo $slowly >/sys/module/sleepy/parameters/slow
gpunl engines 0 >/tmp/slow &
slow=$!
until_true 50 power_is resuming
check $? "a request waits for a slow wake-up"
gpunl family
check $? "meanwhile a family is looked up"
gpunl gpu 1 >/tmp/out
same "$(head -n 1 /tmp/out)" "index 1" "and another GPU answers"
same "$(gpunl gpus | grep -c chip-id)" 8 "and a dump tells the chip of all GPUs"
gpunl topology 0 >/tmp/out
same "$? $(grep -c '^complete' /tmp/out)" "0 1" "and this GPU's known topology is sent"
same "$(gpunl --once engines 0)" "index 0 unreadable asleep and being woken: ask again " "and its engines are answered at once"
sh -c "echo 1 >/sys/module/sleepy/parameters/family"
check $? "and another family is registered"
gpunl family
check $? "after which one is looked up again"
# The lock of the bus must be free as well.
echo 1 >$pci/0000:02:00.0/remove
until_true 20 sh -c '[ ! -e /proc/gpu1 ]'
check $? "and another GPU is removed"
cat /proc/gpu0/engines >/tmp/out 2>&1 &
reader=$!
sleep 0.3
kill -9 $reader
wait $reader 2>/dev/null
power_is resuming && kill -0 $slow
check $? "a reader behind it can be killed: all of this before the wake-up ends"
wait $slow
same "$(wc -l </tmp/slow)" "$(gpunl engines 0 | wc -l)" "engines that the slow request was answered"
# A GPU that is plugged in is read, which wakes it. Meanwhile it must be possible to remove other
# GPUs.
echo 0 >/sys/module/sleepy/parameters/slow
echo 1 >$gpu0/remove
echo 1 >/sys/bus/pci/rescan
until_true 50 test -e /proc/gpu0/gpc_mask
until_true 50 test -e /proc/gpu1/gpc_mask
echo 0000:02:00.0 >/sys/bus/pci/drivers/sleepy/unbind
echo 1 >$gpu0/remove
echo $slowly >/sys/module/sleepy/parameters/slow
echo 1 >/sys/bus/pci/rescan
until_true 100 power_is resuming
echo 1 >$pci/0000:02:00.0/remove
[ ! -e /proc/gpu1 ] && power_is resuming
check $? "a GPU is removed while a new one wakes"
echo 0 >/sys/module/sleepy/parameters/slow
echo 1 >/sys/bus/pci/rescan
until_true 200 sh -c '[ -e /proc/gpu0/gpc_mask ] && [ -e /proc/gpu1/gpc_mask ]'
check $? "both are read"
# If no value of a GPU is known, the GPU is woken for a request, and answers when it is awake.
rmmod sleepy
rmmod gpupart
insmod /gpupart.ko
insmod /sleepy.ko
until_true 50 power_is suspended
echo $slowly >/sys/module/sleepy/parameters/slow
gpunl --once topology 0 >/tmp/out
same "$? $(sed 's/the GPU is //' /tmp/out)" "11 error 11: asleep and being woken: ask again" \
	"errno and message of the first request"
same "$(gpunl --once gpu 0 | tail -n 1)" "unreadable asleep and being woken: ask again" "gpu-get of it"
same "$(engineuse 4 0.1)" "error asleep: runlists are read only while something else keeps the GPU awake" \
	"the engines of another GPU that sleeps"
power_is resuming
check $? "this is answered before the first one is awake"
kerneltopo 0000:01:00.0 >/tmp/out
same "$? $(grep -c '^tpc' /tmp/out)" "0 66" "the library waits for it: TPCs"
echo 0 >/sys/module/sleepy/parameters/slow
rmmod gpupart
rmmod sleepy

# Tests requests that need no privilege, from an ordinary user and from root in a user namespace.
insmod /gpupart.ko
[ -e /proc/self/ns/user ] && who=userns || who=
[ -n "$who" ] || echo "ok - # SKIP root in a user namespace: this kernel has none"
for who in user $who; do
	gpunl $who gpunl gpus >/tmp/out
	same "$? $(wc -l </tmp/out)" "0 8" "$who: GPUs by netlink"
	gpunl $who gpunl topology 0 >/tmp/out
	same "$? $(grep -c '^complete' /tmp/out)" "0 1" "$who: a topology"
	gpunl $who cat /proc/gpu0/topology >/tmp/out
	cmp -s /tmp/out /pages/gh100-h200-e.topology
	check $? "$who: the page"
	gpunl $who gpunl runlists 0 >/tmp/out
	same $? 1 "$who: runlists are refused, errno"
	gpunl $who cat /proc/gpu0/runlists >/tmp/out 2>&1
	[ $? -ne 0 ]
	check $? "$who: their page too: $(cat /tmp/out)"
	gpunl $who rmmod gpupart 2>/dev/null
	[ $? -ne 0 ] && [ -e /proc/gpu0 ]
	check $? "$who: cannot unload the module"
done
rmmod gpupart

# Another module that has the name of a folder.
insmod /sleepy.ko entry=gpu0
insmod /gpupart.ko
dmesg | grep -q 'gpupart: /proc/gpu0 cannot be created'
check $? "a folder that another module has is left to it"
[ ! -e /proc/gpu0/topology ] && [ -e /proc/gpu1/topology ]
check $? "the other GPUs have theirs"
same "$(gpunl topology 0 | head -n 1)" "index 0" "and netlink has this one"
rmmod gpupart
rmmod sleepy
grep -q 'genl_family\|family-gpupart' /gpupart.ko
[ $? -ne 0 ]
check $? "looking a family up, which any user can do, does not load the module"

# A GPU that is reserved for a virtual machine must not be read, whether it is asleep or awake.
for how in as=vfio-pci as=pci-stub as=pciback managed=1; do
	# The name is taken: see guest-vfio.sh.
	[ $how = as=vfio-pci ] && [ -d /sys/bus/pci/drivers/vfio-pci ] && continue
	# driver_managed_dma is 5.19's.
	[ $how = managed=1 ] && uname -r | grep -q '^5[.]1[0-8]' && continue
	insmod /sleepy.ko $how
	until_true 50 power_is suspended
	insmod /gpupart.ko
	host reads 0 >/dev/null
	grep -q 'unreadable  reserved for a virtual machine' /proc/gpu0/topology && ! cat /proc/gpu0/timer 2>/dev/null
	check $? "$how: $(sed -n 's/^unreadable *//p' /proc/gpu0/topology)"
	gpunl topology 0 >/tmp/out
	same "$? $(host reads 0) $(cat $gpu0/power/runtime_status)" "1 0 suspended" "$how: errno by netlink, reads, power"
	rmmod sleepy
	cmp -s /proc/gpu0/topology /pages/gh100-h200-e.topology
	check $? "$how: when it leaves the GPU, that is read"
	insmod /sleepy.ko $how
	! cmp -s /proc/gpu0/topology /pages/gh100-h200-e.topology
	check $? "$how: and the known values are not shown after it was bound"
	rmmod sleepy
	rmmod gpupart
done

# Tests D3 outside of runtime PM. First only the device is in D3, and then only the kernel's state
# says so.
insmod /gpupart.ko
cat /proc/gpu0/topology >/dev/null
config() { printf "\\$2" | dd of=$gpu0/config bs=1 seek=$1 conv=notrunc 2>/dev/null; }
config 100 003
cat /proc/gpu0/timer >/tmp/out 2>/dev/null
[ $? -ne 0 ] && [ ! -s /tmp/out ] && [ "$(host slept 0)" = 0 ]
check $? "a GPU that was put into D3hot by hand is not read"
cmp -s /proc/gpu0/topology /pages/gh100-h200-e.topology
check $? "its known values are shown"
config 100 000
cat /proc/gpu0/timer >/dev/null
check $? "in D0 it is read"
config 4 000
sleep 1.2
grep -q 'unreadable  not enabled' /proc/gpu0/topology && grep -q '^complete    no' /proc/gpu0/topology
check $? "not decoded any more: $(sed -n 's/^unreadable *//p' /proc/gpu0/topology)"
gpunl topology 0 >/tmp/out
same $? 6 "errno of its topology"
config 4 002
until_true 30 cmp -s /proc/gpu0/topology /pages/gh100-h200-e.topology
check $? "and when it is decoded again"
insmod /sleepy.ko d3=1
config 100 000
cat /proc/gpu0/timer >/tmp/out 2>/dev/null
[ $? -ne 0 ] && [ ! -s /tmp/out ]
check $? "nor one that the kernel believes in D3hot"
grep -q 'unreadable  asleep' /proc/gpu0/topology
check $? "its page: $(sed -n 's/^unreadable *//p' /proc/gpu0/topology)"
rmmod sleepy
cmp -s /proc/gpu0/topology /pages/gh100-h200-e.topology
check $? "and is read after its driver woke it and was unbound"

# Tests an error of the bus while the kernel recovers from it.
insmod /sleepy.ko frozen=1
host reads 0 >/dev/null
grep -q 'unreadable  being reset or configured' /proc/gpu0/topology && ! cat /proc/gpu0/timer 2>/dev/null
check $? "a GPU whose bus has an error: $(sed -n 's/^unreadable *//p' /proc/gpu0/topology)"
same "$(host reads 0)" 0 "register reads of it"
rmmod sleepy
cmp -s /proc/gpu0/topology /pages/gh100-h200-e.topology
check $? "and when it was recovered"

# Resets the GPU while it is read, by the reset of the PCI function, and by D3hot and back. The
# emulated bus has none. One reader gets an error with the reason while a reset is in progress.
resets_by() {
	rm -f /tmp/reset-*
	slept=$(host slept 0) before=$(host resets 0)
	(while [ ! -e /tmp/reset-over ]; do cat /proc/gpu0/timer /proc/gpu0/topology /proc/gpu0/pci; done >/dev/null 2>&1) &
	(while [ ! -e /tmp/reset-over ]; do cat /proc/gpu0/timer && echo x >>/tmp/reset-reads; done >/dev/null 2>&1) &
	(while [ ! -e /tmp/reset-over ]; do gpunl runlists 0 | grep -v '^index'; done >/tmp/reset-said) &
	i=0
	while [ $i -lt 100 ] && echo 1 >$gpu0/reset; do
		i=$((i + 1))
		until_true 100 sh -c "[ \$(wc -l </tmp/reset-reads) -gt $i ]" 2>/dev/null
		[ $i -ge 10 ] && { [ $1 != af_flr ] || [ -s /tmp/reset-said ]; } && break
	done
	touch /tmp/reset-over
	wait
	[ $i -ge 10 ] && [ "$(wc -l </tmp/reset-reads)" -gt $i ]
	check $? "$1: $i resets under three readers, $(wc -l </tmp/reset-reads) reads between them"
	same "$(host slept 0)" "$slept" "$1: reads that came while it was in D3 or not enabled"
	cmp -s /proc/gpu0/topology /pages/gh100-h200-e.topology
	check $? "$1: its page afterwards"
	[ $1 = af_flr ] || return
	same "$(($(host resets 0) - before))" $i "$1: resets that the GPU saw"
	# Before Linux 6.2 the beginning of the message is missing.
	same "$(sed 's/the GPU is //' /tmp/reset-said | sort -u)" "error 16: being reset or configured: ask again" "$1: in the midst of one"
}
if [ -e $gpu0/reset_method ]; then
	for method in af_flr pm; do
		echo "$method" >$gpu0/reset_method
		resets_by "$method"
	done
	echo default >$gpu0/reset_method
elif [ -e $gpu0/reset ]; then
	# Before Linux 5.15 the kernel uses the first reset method that exists.
	resets_by af_flr
else
	echo "ok - # SKIP this machine's GPUs cannot be reset"
fi
rmmod gpupart
same "$(host writes)" 0 "register writes"
