# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154
# Tests GPUs that are added and removed while they are read.
pci=/sys/bus/pci/devices
count() { ls -d /proc/gpu[0-9]* 2>/dev/null | wc -l; }
gone() { [ ! -e "$1" ]; }
there() { [ -e "$1" ]; }
echo 1 >/sys/bus/pci/rescan
until_true 50 there $pci/0000:08:00.0
insmod /gpupart.ko
same "$(count)" 8 "GPUs to begin with"

# The kernel itself removes the GPU while files are open.
exec 4</proc/gpu3/topology 5</proc/gpu3/num_gpcs
echo 1 >$pci/0000:04:00.0/remove
until_true 20 gone /proc/gpu3
check $? "a GPU that is removed has no folder"
cat <&4 2>/dev/null >/tmp/open
[ $? -ne 0 ] && [ ! -s /tmp/open ]
check $? "a file of it that was open is an error"
cat <&5 2>/dev/null >/tmp/open
[ $? -ne 0 ] && [ ! -s /tmp/open ]
check $? "so is a register file"
exec 4<&- 5<&-
same "$(grep -c '^gpu  ' /proc/gpu/topology)" 7 "GPUs on the one page"
echo 1 >/sys/bus/pci/rescan
until_true 50 there /proc/gpu3/gpc_mask
check $? "it has its old number again"
same "$(sed -n 's/^gpu  *//p' /proc/gpu3/topology)" "gpu3 0000:04:00.0" "with its address"

# By the machine's: ACPI.
same "$(host unplug 5)" ok "unplugging GPU 5"
until_true 80 gone /proc/gpu5
check $? "an unplugged GPU has no folder"
same "$(count)" 7 "GPUs left"
same "$(host plug 5)" ok "plugging it in again"
until_true 80 there $pci/0000:06:00.0/resource0
until_true 80 there /proc/gpu5
check $? "a plugged GPU has one"
# It is not enabled, and the module does not enable it.
if [ "$(cat $pci/0000:06:00.0/enable)" = 0 ]; then
	cat /proc/gpu5/topology >/tmp/page
	grep -q 'not enabled' /tmp/page && grep -q '^complete    no' /tmp/page
	check $? "the page of a GPU whose registers are not decoded: $(sed -n 's/^unreadable *//p' /tmp/page)"
	echo 1 >$pci/0000:06:00.0/enable
fi
until_true 20 grep -q '^complete    yes' /proc/gpu5/topology
check $? "once enabled it is read"
[ -e /proc/gpu5/gpc_mask ]
check $? "and has nvdebug's files"

# Tests a GPU that disappears from the bus without a notice.
host load 2 gh100-h200-c >/dev/null
host dead 4 >/dev/null
cat /proc/gpu4/timer >/tmp/page 2>/dev/null
[ $? -ne 0 ] && [ ! -s /tmp/page ]
check $? "a GPU off the bus gives errors"
host alive 4 >/dev/null
cat /proc/gpu4/timer >/dev/null
check $? "back on it, it is read again"

# Sixteen readers read all files while GPUs and a driver are added and removed.
cat >/tmp/reader <<'END'
while [ ! -e /tmp/stop ]; do
	for f in /proc/gpu/topology /proc/gpu*/topology /proc/gpu*/engines /proc/gpu*/gpc_mask /proc/gpu*/timer; do
		cat $f >/tmp/reader.$1 2>/dev/null || continue
		case $f in
		*/topology|*/engines)
			[ -s /tmp/reader.$1 ] || continue
			tail -n 1 /tmp/reader.$1 | grep -q '^complete    \|^chip ' || cp /tmp/reader.$1 /tmp/cut.$1 ;;
		esac
	done
	echo x >>/tmp/rounds.$1
done
END
reading() { ps | grep -q '[/]tmp/reader'; }
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do sh /tmp/reader $i & done
for i in 1 2 3; do
	for d in 2 4 7; do echo 1 >$pci/0000:0$d:00.0/remove; done
	insmod /sleepy.ko
	echo 1 >/sys/bus/pci/rescan
	rmmod sleepy
	until_true 50 there /proc/gpu6/topology
	until_true 50 there /proc/gpu3/topology
	until_true 50 there /proc/gpu1/topology
done
host unplug 7 >/dev/null
until_true 80 gone /proc/gpu7
check $? "unplugged under sixteen readers"
reading
check $? "which are there"
rmmod gpupart
check $? "unloaded under sixteen readers"
insmod /gpupart.ko
check $? "and loaded"
# On a busy host sixteen readers take their time.
until_true 300 sh -c '[ "$(cat /tmp/rounds.* 2>/dev/null | wc -l)" -ge 16 ]'
touch /tmp/stop
# The command wait would also wait for processes that the shell keeps open.
none_reads() { ! reading; }
until_true 300 none_reads
check $? "the readers end"
same "$(ls /tmp/cut.* 2>/dev/null)" "" "pages without their last line"
[ "$(cat /tmp/rounds.* | wc -l)" -ge 16 ]
check $? "$(cat /tmp/rounds.* | wc -l) rounds of all files"
# Down to two.
for d in 3 4 5 6 7; do echo 1 >$pci/0000:0$d:00.0/remove; done
until_true 20 gone /proc/gpu6
same "$(count)" 2 "GPUs left"
same "$(grep -c '^gpu  ' /proc/gpu/topology)" 2 "GPUs on the one page"
exec 4</proc/gpu0/topology
rmmod gpupart
check $? "unloads with a file open"
cat <&4 >/dev/null 2>&1
[ $? -ne 0 ]
check $? "which is an error from then on"
exec 4<&-
same "$(host writes)" 0 "register writes"
# Restore the GPUs for the next parts.
echo 1 >/sys/bus/pci/rescan
same "$(host plug 7)" ok "plugging in the last one"
# Its folder exists before its BAR has an address; this file exists afterwards.
until_true 80 there $pci/0000:08:00.0/resource0
echo 1 >$pci/0000:08:00.0/enable
same "$(cat $pci/0000:08:00.0/enable)" 1 "enabled by hand"
