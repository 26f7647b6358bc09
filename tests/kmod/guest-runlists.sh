# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154
# Tests runlists and channels: their contents, the necessary privilege, and the register reads.
host load 0 gh100-runlists-busy >/dev/null
insmod /gpupart.ko
cmp -s /proc/gpu0/runlists /pages/gh100-runlists-busy.runlists
check $? "the page of a runlist with one program on it"
same "$(stat -c %a:%u /proc/gpu0/runlists)" 400:0 "mode and owner of the page"
same "$(ls /proc/gpu*/runlists | tr '\n' ' ')" "/proc/gpu0/runlists /proc/gpu1/runlists /proc/gpu2/runlists /proc/gpu3/runlists /proc/gpu6/runlists " \
	"chips with the page: none on Turing, Kepler or GB20x"

# Each read must show the current state, because no value is kept.
host load 0 gh100-runlists-idle >/dev/null
cmp -s /proc/gpu0/runlists /pages/gh100-runlists-idle.runlists
check $? "the page a moment later, when the program has ended"
host load 0 gh100-runlists-mixed >/dev/null
cmp -s /proc/gpu0/runlists /pages/gh100-runlists-mixed.runlists
check $? "the page while engines save, load and switch"
host reads 0 >/dev/null
cat /proc/gpu0/runlists >/dev/null
a=$(host reads 0)
cat /proc/gpu0/runlists >/dev/null
same "$(host reads 0)" "$a" "register reads of a second cat, as of the first"
nr=$(gpunl engines 0 | sed -n 's/.*runlist-pri-base \(0x[0-9a-f]*\) .*/\1/p' | sort | uniq | wc -l)
[ "$a" -gt 0 ] && [ "$a" -le $((nr * 12)) ]
check $? "they are $a, of $nr runlists, at most 12 each"

# By netlink.
gpunl runlists 0 >/tmp/out
check $? "a dump of runlists"
same "$(sed -n 1p /tmp/out)" "index 0 pri-base 0xc00000 id 0 channels 2048 disabled engine 0 type 0 instance 0 context 4 tsg 7 next-tsg 11 channel 10 busy " "an engine that switches"
same "$(sed -n 2p /tmp/out)" "index 0 pri-base 0xc00000 id 0 channels 2048 disabled engine 1 type 19 instance 0 context 3 next-tsg 5 faulted " "one that loads"
same "$(sed -n 3p /tmp/out)" "index 0 pri-base 0xc00000 id 0 channels 2048 disabled engine 2 type 19 instance 1 context 2 tsg 5 " "one that saves"
same "$(sed -n 's/.*\(pri-base 0x[0-9a-f]*\) .*/\1/p' /tmp/out | sort | uniq | wc -l)" "$nr" "runlists in it"
gpunl runlists 0000:01:00.0 0xc00400 >/tmp/out
same "$(cut -d' ' -f3-7 /tmp/out)" "pri-base 0xc00400 id 1 channels" "one of them, of a GPU by its bus-name"
gpunl channels 0 0xc00000 >/tmp/out
check $? "a dump of channels"
same "$(wc -l </tmp/out) $(sed -n 1p /tmp/out)" "16 index 0 runlist-pri-base 0xc00000 channel 10 state 0xc6 " "channels in use, and the first"
same "$(sed -n '/channel 31 /s/.*state //p' /tmp/out)" "0xcce " "the state of channel 31"
# shellcheck disable=SC2046
host poke 0 0xc20000 $(awk 'BEGIN {for (i = 0; i < 1024; i++) print "0x2 0x6"}') >/dev/null
host reads 0 >/dev/null
gpunl channels 0 0xc00000 >/tmp/out
same "$(awk '{n++; if ($6 != n - 1 || $8 != (n % 2 ? "0x2" : "0x6")) bad++} END {print n, bad + 0}' /tmp/out)" \
	"2048 0" "channels when all are in use, and those out of place"
a=$(host reads 0)
[ "$a" -ge 2048 ] && [ "$a" -le 3400 ]
check $? "register reads for 2048 channels, some read again for the next message: $a"
host load 0 gh100-runlists-busy >/dev/null

# Tests gpupart ps --engines through the library, with a schedule that changes between samples.
(while [ ! -e /tmp/enough ]; do
	host poke 0 0xc00200 0x800b200b
	sleep 0.03
	host poke 0 0xc00200 0x80072007
	sleep 0.03
done >/dev/null; touch /tmp/done) &
both_seen() {
	awk 'NR == 2 {for (i = 1; i < NF; i++) if ($i == "tsg") {share[$(i + 1)] = $(i + 2)}
		exit !(share[7] > 0 && share[11] > 0 && share[7] + share[11] >= 998 && share[7] + share[11] <= 1000)}' /tmp/out
}
# On a loaded machine the schedule may not change in 4 s.
for _ in 1 2 3 4 5 6 7 8; do
	engineuse 0 4 >/tmp/out
	sampled=$?
	both_seen && break
done
check $sampled "engines sampled through the module: $(head -n 1 /tmp/out)"
touch /tmp/enough
while [ ! -e /tmp/done ]; do sleep 0.1; done
same "$(head -n 1 /tmp/out | cut -d' ' -f1-2)" "0000:01:00.0 kernel" "the GPU, the source"
same "$(wc -l </tmp/out)" 2 "lines, one of them an engine that was not idle"
both_seen
check $? "both TSGs were seen, and nothing else: $(sed -n 2p /tmp/out)"
host load 0 gh100-runlists-busy >/dev/null
engineuse 4 0.1 >/tmp/out
same "$(cat /tmp/out)" "error this chip's runlist registers are not known" "a chip without"

# Privilege.
for user in "--uid 65534" "--perfmon 65534"; do
	for what in "runlists 0" "channels 0 0xc00000"; do
		gpunl $user $what >/tmp/out
		echo "$?" >>/tmp/errnos
	done
done
same "$(tr '\n' ' ' </tmp/errnos)" "1 1 0 0 " "errnos of an ordinary user, then of one with CAP_PERFMON"
gpunl --uid 65534 runlists 0 >/tmp/out
same "$(cat /tmp/out)" "error 1: runlists and channels need CAP_PERFMON" "the message"
gpunl --uid 65534 engines 0 >/tmp/out
check $? "an ordinary user can still list the engines"
gpunl --uid 0 exec cat /proc/gpu0/runlists >/tmp/out 2>&1
[ $? -ne 0 ] && ! grep -q 'on each engine' /tmp/out
check $? "uid 0 with no capability, as in a container, has no page: $(cat /tmp/out)"
gpunl --uid 0 exec cat /proc/gpu0/topology >/tmp/out 2>&1
cmp -s /tmp/out /proc/gpu0/topology
check $? "it has the others"

# Errors.
sentence() {
	want_errno=$1 want=$2
	shift 2
	gpunl "$@" >/tmp/out
	same $? "$want_errno" "gpunl $*: errno"
	grep -q "$want" /tmp/out
	check $? "gpunl $*: $(cat /tmp/out)"
}
sentence 19 'there is no GPU' runlists 99
sentence 22 'named by its index or by its bus-name' runlists
sentence 2 'no runlist at that pri-base' runlists 0 0xc00404
sentence 2 'no runlist at that pri-base' channels 0
sentence 2 'no runlist at that pri-base' channels 0 0xffffffff
sentence 95 "chip's runlist registers" runlists 4
sentence 95 "chip's runlist registers" channels 7 0xc00000
host bad 0 0xc00008 0xbadf5040 >/dev/null
same "$(gpunl runlists 0 | sed -n 1p)" "index 0 pri-base 0xc00000 unreadable 0xc00008 reads 0xbadf5040: no such address " "a register that is refused"
grep -q '0xc00000 unreadable: 0xc00008 reads 0xbadf5040' /proc/gpu0/runlists && grep -q '^complete    no' /proc/gpu0/runlists
check $? "on the page as well"
# A refusal is valid for a second, so each request reads only the register before it.
host reads 0 >/dev/null
start=$(now) i=0
while [ $i -lt 50 ]; do
	gpunl runlists 0 0xc00000 >/dev/null
	i=$((i + 1))
done
nr=$(host reads 0) most=$((i + 2 + ($(now) - start) / 100))
[ "$nr" -ge $i ] && [ "$nr" -le $most ]
check $? "$nr reads for $i dumps of a runlist with a refused register, at most $most"
host good 0 >/dev/null
sleep 1.2
# If a register points outside the mapped range, no register is read there.
host reads 0 >/dev/null
host bad 0 0xc00004 0xfffff00b >/dev/null
same "$(gpunl runlists 0 0xc00000)" "index 0 pri-base 0xc00000 unreadable 0xc00004 reads 0xfffff00b, which cannot be " "channels outside of BAR0"
sentence 34 'cannot be' channels 0 0xc00000
host bad 0 0xc00200 0x80074007 >/dev/null
same "$(gpunl runlists 0 0xc00000)" "index 0 pri-base 0xc00000 unreadable 0xc00200 reads 0x80074007, which cannot be " "a state that the manual does not have"
host bad 0 0xc20100 0xbadf1201 >/dev/null
sentence 5 'client in reset' channels 0 0xc00000
host good 0 >/dev/null
rmmod gpupart

# A GPU that sleeps must not be woken.
status=/sys/bus/pci/devices/0000:01:00.0/power/runtime_status
insmod /sleepy.ko
insmod /gpupart.ko
n=50
while [ "$(cat $status)" != suspended ] && [ $n -gt 0 ]; do n=$((n - 1)); sleep 0.1; done
cat /proc/gpu0/engines >/dev/null
n=50
while [ "$(cat $status)" != suspended ] && [ $n -gt 0 ]; do n=$((n - 1)); sleep 0.1; done
host reads 0 >/dev/null
suspends=$(cat /sys/bus/pci/devices/0000:01:00.0/power/runtime_suspended_time)
grep -q '^unreadable  asleep' /proc/gpu0/runlists
check $? "asleep: $(sed -n 's/^unreadable *//p' /proc/gpu0/runlists)"
sentence 112 'asleep: runlists are read only while' runlists 0
sentence 112 'asleep: runlists are read only while' channels 0 0xc00000
same "$(host reads 0) $(cat $status)" "0 suspended" "register reads for these, and the GPU is still"
echo on >/sys/bus/pci/devices/0000:01:00.0/power/control
cmp -s /proc/gpu0/runlists /pages/gh100-runlists-busy.runlists
check $? "while it is awake it is read"
gpunl channels 0 0xc00000 >/tmp/out
same "$(wc -l </tmp/out)" 8 "channels then"
echo auto >/sys/bus/pci/devices/0000:01:00.0/power/control
n=50
while [ "$(cat $status)" != suspended ] && [ $n -gt 0 ]; do n=$((n - 1)); sleep 0.1; done
same "$(cat $status)" suspended "and no reference is left that keeps it awake"
rmmod gpupart
check $? "unloads"
rmmod sleepy
host load 0 gh100-h200-e >/dev/null
same "$(host writes)" 0 "register writes"
