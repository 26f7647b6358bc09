# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154
# Tests the netlink family: answers, errors with their messages, notices, random input, and speed.
pci=/sys/bus/pci/devices
[ -e $pci/0000:08:00.0 ] || { echo 1 >/sys/bus/pci/rescan; sleep 1; }
host load 0 gh100-h200-e >/dev/null
host load 1 gh100-h200-a >/dev/null
host load 3 ampere-ga100 >/dev/null
host load 6 refused-0x1d2 >/dev/null
gpunl gpus >/tmp/out
same $? 3 "without the module there is no family, exit status"
insmod /gpupart.ko
gpunl gpus >/tmp/out
check $? "a dump of GPUs"
same "$(wc -l </tmp/out)" 8 "GPUs in it"
same "$(head -n 1 /tmp/out)" "index 0 bus-name 0000:01:00.0 chip-id 0x180 chip-name GH100 family Hopper " "the first"
same "$(sed -n 7p /tmp/out)" "index 6 bus-name 0000:07:00.0 chip-id 0x1d2 refused not in the table of chips " "one that is refused"
gpunl gpu 0000:02:00.0 >/tmp/out
same "$(head -n 1 /tmp/out)" "index 1" "a GPU by its bus-name"
gpunl --netns gpus >/tmp/out
same "$(wc -l </tmp/out)" 8 "GPUs seen from another network namespace"

# The answer must contain the same values as the page of the same GPU.
same_topology() {
	gpunl topology "$1" >/tmp/out
	awk '/^ +[0-9]+: /{for (i = 2; i <= NF; i++) {split($i, x, "."); g = g " " x[1]; t = t " " x[2]}}
	     END {print "tpc-gpc" g; print "tpc-in-gpc" t}' "/proc/gpu$1/topology" >/tmp/want
	grep '^tpc-' /tmp/out >/tmp/have
	cmp -s /tmp/have /tmp/want
	check $? "GPU $1: GPC and TPC of each of $(sed -n 's/^tpc-gpc//p' /tmp/out | wc -w) TPCs are those of the page"
	awk -v n="$(sed -n 's/^max-gpcs //p' /tmp/out)" '/floorswept$/{v[$1] = "0x0"} /0x[0-9a-f]+ +[0-9]+$|0x[0-9a-f]+$/{if ($1 ~ /^[0-9]+$/) v[$1] = $5}
	     END {s = "present-tpcs"; for (i = 0; i < n; i++) s = s " " v[i]; print s}' "/proc/gpu$1/topology" >/tmp/want
	same "$(grep '^present-tpcs' /tmp/out)" "$(cat /tmp/want)" "GPU $1"
}
same_topology 0
same_topology 1
same_topology 3
same_topology 4
gpunl topology 0 >/tmp/out
same "$(grep '^gpc-phys' /tmp/out)" "gpc-phys 0 5 1 6 7 2 3 4" "physical GPC of each logical one, board e"
same "$(grep -c '^complete' /tmp/out)" 1 "it is complete"
gpunl topology 3 >/tmp/out
same "$(grep '^order-why' /tmp/out)" "order-why 0x405b00 reads 0xbadf1201: client in reset" "why it was computed"
same "$(grep '^order ' /tmp/out) $(grep '^order-tag' /tmp/out)" "order 2 order-tag 1" "computed, verified"
gpunl topology 7 >/tmp/out
same "$(grep '^order ' /tmp/out) $(grep -c '^tpc-gpc' /tmp/out)" "order 0 0" "no order is invented where there is none"

gpunl engines 1 >/tmp/out
same "$(wc -l </tmp/out)" 45 "engines of the captured board"
same "$(sed -n 28p /tmp/out)" 'index 1 type 21 instance 2 die 0 pri-base 0x9d0000 runlist-pri-base 0xc06800 runlist-engine 0 reset-id 32 fault-id 29 name NVJPG: NVIDIA JPEG Decoder ' "one of them"
gpunl engines >/tmp/out
same "$(cut -d' ' -f2 /tmp/out | sort -u | tr '\n' ' ')" "0 1 2 3 4 5 7 " "GPUs in the dump of all engines"

# Errors have a message.
sentence() {
	want_errno=$1 want=$2
	shift 2
	gpunl "$@" >/tmp/out
	same $? "$want_errno" "gpunl $*: errno"
	grep -q "$want" /tmp/out
	check $? "gpunl $*: $(cat /tmp/out)"
}
sentence 19 'there is no GPU' topology 99
sentence 19 'there is no GPU' gpu 0000:ff:00.0
sentence 22 'named by its index or by its bus-name' gpu
sentence 95 'not in the table of chips' topology 6
sentence 19 'there is no GPU' engines 99
rmmod gpupart
host bad 0 0x820c1c 0xbadf5120 >/dev/null
insmod /gpupart.ko
sentence 5 'privilege level violation' topology 0
host good 0 >/dev/null
until_true 30 sh -c 'gpunl topology 0 >/tmp/out'
check $? "and it answers when the register does"

# Tests GPUs that are removed and added.
gpunl monitor 6 >/tmp/events &
listener=$!
n=50
while ! grep -q listening /tmp/events && [ $n -gt 0 ]; do n=$((n - 1)); sleep 0.1; done
gpunl --netns monitor 6 >/tmp/events2 &
sleep 0.3
echo 1 >$pci/0000:03:00.0/remove
sleep 0.3
echo 1 >/sys/bus/pci/rescan
wait $listener
same "$(sed -n 2p /tmp/events | cut -d' ' -f1-5)" "del index 2 bus-name 0000:03:00.0" "the notice of a GPU that is removed"
same "$(sed -n 3p /tmp/events | cut -d' ' -f1-7)" "add index 2 bus-name 0000:03:00.0 chip-id 0x180" "the notice of a GPU that is added"
sleep 0.5
cmp -s /tmp/events /tmp/events2
check $? "in another network namespace as well"

# A GPU must have all its files, even if other processes request it while it is added.
files=$(ls /proc/gpu0 | wc -l)
whole() { [ "$(ls /proc/gpu0 2>/dev/null | wc -l)" = "$files" ]; }
gpunl bench 500000 >/dev/null &
readers=$!
gpunl bench 500000 >/dev/null &
readers="$readers $!"
i=0 lacking=0
while [ $i -lt 10 ]; do
	echo 1 >$pci/0000:01:00.0/remove
	echo 1 >/sys/bus/pci/rescan
	until_true 30 whole || lacking=$((lacking + 1))
	i=$((i + 1))
done
kill $readers
same $lacking 0 "of $i times that a GPU was added while two processes asked for it, those without all $files files"

# Tests a GPU that is not ready when it is added, an order that changes, and drivers.
gpunl monitor 60 >/tmp/events &
listener=$!
until_true 50 grep -q listening /tmp/events
host bad 2 0x0 0xbadf1201 >/dev/null
echo 1 >$pci/0000:03:00.0/remove
echo 1 >/sys/bus/pci/rescan
until_true 100 grep -q '^add index 2 .* unreadable 0x0 reads 0xbadf1201' /tmp/events
check $? "a GPU that is not ready when it is added: $(grep '^add' /tmp/events)"
host good 2 >/dev/null
until_true 100 grep -q '^change index 2 bus-name 0000:03:00.0 chip-id 0x180' /tmp/events
check $? "is read a second time, with a notice: $(grep -m1 '^change' /tmp/events)"
host poke 0 0x405000 0x40301020 >/dev/null
until_true 30 sh -c 'cat /proc/gpu0/topology >/dev/null; grep -q "^change index 0 .* chip-id 0x180" /tmp/events'
check $? "a reader finds another order, with a notice: $(grep '^change index 0' /tmp/events)"
insmod /sleepy.ko
until_true 50 sh -c '[ $(grep -c "^change index [0-7] bus-name [0-9.:]* $" /tmp/events) = 8 ]'
check $? "notices of a driver that binds to the GPUs: $(grep -c '^change index [0-7] bus-name [0-9.:]* $' /tmp/events) times"
kill $listener
rmmod sleepy
host load 0 gh100-h200-e >/dev/null

# Only a dump during which a GPU is removed has the kernel's mark.
rmmod gpupart
for n in 3 4 5 6; do host load $n gh100-h200-a >/dev/null; done
insmod /gpupart.ko
same "$(gpunl cut true)" whole "a dump of engines"
same "$(gpunl cut "echo 1 >$pci/0000:03:00.0/remove")" marked "one during which a GPU is removed"
echo 1 >/sys/bus/pci/rescan
until_true 50 test -e /proc/gpu2/topology
check $? "the GPU is back"
rmmod gpupart
host load 3 ampere-ga100 >/dev/null
host load 4 turing-tu102 >/dev/null
host load 5 kepler-gk110 >/dev/null
host load 6 refused-0x1d2 >/dev/null
insmod /gpupart.ko

# Tests dumps while GPUs are removed and added.
for i in 1 2 3 4; do (while [ ! -e /tmp/enough ]; do gpunl gpus; gpunl engines; gpunl topology 2; done >/dev/null) & done
for i in 1 2 3 4 5; do
	echo 1 >$pci/0000:03:00.0/remove
	echo 1 >$pci/0000:05:00.0/remove
	sleep 0.2
	echo 1 >/sys/bus/pci/rescan
	sleep 0.3
done
touch /tmp/enough
wait
rm /tmp/enough
same "$(gpunl gpus | wc -l)" 8 "GPUs after dumps while some were removed and added"

same "$(second_reads 0 gpunl topology 0)" 0 "register reads of another topology request"
gpunl fuzz "${FUZZ:-100000}" 1 >/tmp/out
check $? "noise: $(cat /tmp/out)"
# The kernel found GPUs 3 and 5 last, but the PCI order counts.
rmmod gpupart
insmod /gpupart.ko
same "$(gpunl gpus | cut -d' ' -f2,4 | tr '\n' ' ')" "$(for i in 0 1 2 3 4 5 6 7; do printf '%d 0000:0%d:00.0 ' $i $((i + 1)); done)" \
	"GPUs by address, not by the time they were added"
gpunl topology 0 >/tmp/out && same_topology 0
gpunl bench 2000 >/tmp/out
awk '{exit !($NF <= 3)}' /tmp/out
check $? "at most 3: $(cat /tmp/out)"
rmmod gpupart
check $? "unloads"
host load 6 ada-ad102 >/dev/null
