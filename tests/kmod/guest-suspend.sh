# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154
# Tests a machine that sleeps and is woken by its clock, with readers and with a GPU that was not
# read yet. The machine uses S3, because QEMU 7.2 wakes no machine from s2idle.
alarm=/sys/class/rtc/rtc0/wakealarm
# On a machine without S3, s2idle has the same name.
if grep -qs '\[deep\]' /sys/power/mem_sleep && [ -e $alarm ]; then
	# machine_sleeps SECONDS: returns 0 if the machine slept and was woken.
	machine_sleeps() {
		before=$(cat /sys/power/suspend_stats/success 2>/dev/null || sed -n 's/^success: //p' /sys/kernel/debug/suspend_stats)
		echo 0 >$alarm
		echo "+$1" >$alarm
		echo mem >/sys/power/state
		after=$(cat /sys/power/suspend_stats/success 2>/dev/null || sed -n 's/^success: //p' /sys/kernel/debug/suspend_stats)
		[ "$after" -gt "$before" ]
	}
	host load 0 gh100-h200-e >/dev/null
	insmod /sleepy.ko shows=/proc/gpu0/gpc_mask
	insmod /gpupart.ko
	# The timer does not wake the GPU.
	echo on >/sys/bus/pci/devices/0000:01:00.0/power/control
	slept=$(host slept 0)
	rm -f /tmp/suspend-over /tmp/suspend-reads
	for i in 1 2 3; do
		(while [ ! -e /tmp/suspend-over ]; do
			cat /proc/gpu0/timer >/dev/null 2>&1 && echo x >>/tmp/suspend-reads
			cat /proc/gpu0/topology >/tmp/suspend-page.$i
			cmp -s /tmp/suspend-page.$i /pages/gh100-h200-e.topology || cp /tmp/suspend-page.$i /tmp/suspend-bad
		done) &
	done
	for i in 1 2 3; do
		machine_sleeps 4
		check $? "the machine slept and woke under three readers"
		reads=$(wc -l </tmp/suspend-reads)
		until_true 300 sh -c "[ \$(wc -l </tmp/suspend-reads) -gt $reads ]"
		check $? "and the GPU is read afterwards"
	done
	touch /tmp/suspend-over
	wait
	same "$(host slept 0)" "$slept" "reads that came while it was in D3"
	[ ! -e /tmp/suspend-bad ]
	check $? "pages that are not the GPU's: $(tr '\n' '|' </tmp/suspend-bad 2>/dev/null)"
	echo auto >/sys/bus/pci/devices/0000:01:00.0/power/control
	rmmod gpupart

	# A GPU that was not ready is tried again after 1.5 seconds, but not while the machine falls
	# asleep. If it was read before that, the host was slow: try once more.
	echo 4000 >/sys/module/sleepy/parameters/nap
	tries=8 slept=1 early=1
	while [ $tries -gt 0 ] && [ "$slept $early" != "0 0" ]; do
		rmmod gpupart 2>/dev/null
		echo 0 >/sys/module/sleepy/parameters/early
		echo 0 >/sys/module/sleepy/parameters/naps
		host bad 0 0x0 0 >/dev/null
		insmod /gpupart.ko
		host good 0 >/dev/null
		machine_sleeps 20
		slept=$?
		early=$(cat /sys/module/sleepy/parameters/early)
		tries=$((tries - 1))
	done
	same "$slept $early $(cat /sys/module/sleepy/parameters/naps)" "0 0 1" "a machine that sleeps at once: status, GPUs read before, naps"
	same "$(cat /sys/module/sleepy/parameters/appeared)" 0 "GPUs that were read while the machine fell asleep"
	until_true 100 [ -e /proc/gpu0/gpc_mask ]
	check $? "the GPU is read when the machine is awake"
	rmmod gpupart
	rmmod sleepy
	same "$(host writes)" 0 "register writes"
else
	echo "ok - # SKIP suspend: this kernel or machine has none, or no clock that wakes it"
fi
