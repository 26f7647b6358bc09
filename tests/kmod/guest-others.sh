# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154
# What other processes, other drivers and the machine notice of the module.
pci=/sys/bus/pci/devices
gpu0=$pci/0000:01:00.0
power_is() { [ "$(cat $gpu0/power/runtime_status)" = "$1" ]; }
host load 0 gh100-h200-e >/dev/null

# A GPU that takes long to wake: only whoever asked for it waits.
insmod /sleepy.ko
insmod /gpupart.ko
cmp -s /proc/gpu0/topology /pages/gh100-h200-e.topology
check $? "a GPU whose driver lets it sleep is read"
until_true 50 power_is suspended
echo 8000 >/sys/module/sleepy/parameters/slow
gpunl engines 0 >/tmp/slow &
slow=$!
until_true 50 power_is resuming
check $? "a request waits for a slow wake-up"
gpunl family
check $? "meanwhile a family is looked up"
gpunl gpu 1 >/tmp/out
same "$(head -n 1 /tmp/out)" "index 1" "and another GPU answers"
cat /proc/gpu0/timer >/tmp/out 2>&1 &
reader=$!
sleep 0.3
kill -9 $reader
wait $reader 2>/dev/null
power_is resuming && kill -0 $slow
check $? "a reader behind it can be killed: all of this before the wake-up ends"
wait $slow
same "$(wc -l </tmp/slow)" "$(gpunl engines 0 | wc -l)" "engines that the slow request was answered"
echo 0 >/sys/module/sleepy/parameters/slow
rmmod gpupart
rmmod sleepy
