# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154
# Tests the pages that the module shows for every register file, and that nvdebug's files are
# exactly equal. Also tests the cost of a second read, refusals of every register, and loading and
# unloading.
pci=/sys/bus/pci/devices
# A kernel that checks every access is ten times slower, so tests are repeated less often on it.
loads=100 refused=999
[ -d /sys/kernel/debug/failslab ] && loads=25 refused=40
# From now on only GPU 0 exists. The others are added again at the end.
lonely() { for d in 2 3 4 5 6 7 8; do echo 1 >"$pci/0000:0$d:00.0/remove"; done; }
present() { ls -d /proc/gpu[0-9]* 2>/dev/null | wc -l; }

insmod /gpupart.ko
check $? "the module loads"
same "$(present)" 8 "GPUs found"
same "$(grep -c '^gpu  ' /proc/gpu/topology)" 8 "GPUs on the one page"
same "$(find /proc/gpu /proc/gpu[0-9]* -type f ! -perm 0444 ! -name runlists | wc -l)" 0 "files but runlists that are not 0444"
cat /proc/gpu/topology >/tmp/all
for n in 0 1 2 3 4 5 6 7; do cat "/proc/gpu$n/topology"; [ $n -lt 7 ] && echo; done >/tmp/each
cmp -s /tmp/all /tmp/each
check $? "the one page is the eight pages"

for n in 0 1 3 4 5 6 7; do
	same "$(second_reads $n cat /proc/gpu$n/topology)" 0 "register reads of a second cat of /proc/gpu$n/topology"
	same "$(second_reads $n cat /proc/gpu$n/engines /proc/gpu$n/chip)" 0 "register reads of a second cat of its engines and chip"
done

# nvdebug's files of the captured board, as raw registers in its words.
g=/proc/gpu1
for want in num_gpcs=0x8 num_tpc_per_gpc=0x9 num_ces=0xa gpc_mask=0x0 gpc0_tpc_mask=0x0 gpc1_tpc_mask=0x40 \
	gpc7_tpc_mask=0x40 CWD_GPC_TPC_ID0=0x40302010 CWD_GPC_TPC_ID16=0x1716 CWD_SM_ID0=0x1e160e06 \
	CWD_SM_ID23=0x3d pce_map=0xffff "local_memory=150754820096 bytes"; do
	file=${want%%=*}
	same "$(cat $g/$file)" "${want#*=}" "$file"
done
same "$(cat $g/CWD_FS_NUM_GPCS) $(cat $g/CWD_FS_NUM_TPCS)" "0x8 0x42" "GPCs and TPCs of its work distributor"
same "$(find $g -name partition_ctl -o -name 'CWD_CG?' | wc -l)" 0 "files of registers whose place on Hopper is not published"
same "$(head -c 18 $g/gpc1_tpc_mask | od -An -c | tr -d ' ')" '0x40\n' "the very bytes of gpc1_tpc_mask"
cat $g/CWD_GPC_TPC_ID18 2>/tmp/err >/tmp/out
grep -qi 'i.*/.*o.* error' /tmp/err && [ ! -s /tmp/out ]
check $? "a refused register is an I/O error, not a number"
same "$(cat $g/pci | sed -n 's/^address *//p')" 0000:02:00.0 "the page of the bus"
a=$(cut -d' ' -f1 $g/timer)
same "$a" 1795211991603700800 "the timer"
# Tests unusual reads, and a write.
dd if=/proc/gpu0/topology bs=7 2>/dev/null | cmp -s - /pages/gh100-h200-e.topology
check $? "a page read seven bytes at a time"
dd if=/proc/gpu0/topology bs=100 skip=9 2>/dev/null >/tmp/out
dd if=/pages/gh100-h200-e.topology bs=100 skip=9 2>/dev/null | cmp -s - /tmp/out
check $? "a page read from its middle on"
same "$(dd if=/proc/gpu0/topology bs=1M skip=4 2>/dev/null | wc -c)" 0 "bytes far behind its end"
for file in gpu/topology gpu0/topology gpu0/num_gpcs gpu0/runlists; do
	echo 0 2>/dev/null >/proc/$file && echo "$file" >>/tmp/written
done
same "$(cat /tmp/written 2>/dev/null)" "" "files that root could write"
rmmod gpupart
check $? "the module unloads"
same "$(ls -d /proc/gpu* 2>/dev/null)" "" "what is left in /proc"

lonely
wrong=0
for topology in /pages/*.topology; do
	name=$(basename "$topology" .topology)
	host load 0 "$name" >/dev/null
	insmod /gpupart.ko || wrong=1
	for file in topology chip engines device_info copy_topology runlists; do
		[ -e "/pages/$name.$file" ] || continue
		cat /proc/gpu0/$file >/tmp/page 2>/dev/null
		cmp -s /tmp/page "/pages/$name.$file"
		check $? "$name: $file"
	done
	if [ "$name" = volta-gv100 ]; then
		same "$(cd /proc/gpu0 && cat partition_ctl CWD_CG0 CWD_CG1 | tr '\n' ' ')" "0x30005 0x4044 0x0 " "$name: partition_ctl, CWD_CG0 and CWD_CG1"
		host poke 0 0x405b2c 0xa >/dev/null
		until_true 30 sh -c '[ "$(cat /proc/gpu0/partition_ctl)" = 0xa ]'
		check $? "$name: partition_ctl of another context is not the one kept"
	fi
	rmmod gpupart || wrong=1
done
same $wrong 0 "loads and unloads that failed"

# Tests refusals. If any register is refused, no page may look complete. Afterwards all pages must
# be complete again. Tests eight registers at a time, one on each GPU.
host load 0 gh100-h200-e >/dev/null
host asked 0 >/dev/null
insmod /gpupart.ko
cat /proc/gpu0/topology /proc/gpu0/engines >/dev/null
rmmod gpupart
registers=$(host asked 0 | cut -d" " -f1-$refused)
echo 1 >/sys/bus/pci/rescan
for n in 0 1 2 3 4 5 6 7; do
	until_true 50 test -e $pci/0000:0$((n + 1)):00.0/resource0
	[ $n = 0 ] || host load $n gh100-h200-e >/dev/null
	for file in topology engines; do
		sed "s/gpu0 0000:01/gpu$n 0000:0$((n + 1))/" /pages/gh100-h200-e.$file >/tmp/good.$n.$file
	done
done
is_good() { cmp -s "/proc/gpu$1/$2" "/tmp/good.$1.$2"; }
tried=0 hidden=0 stuck=0 first=
for value in 0xbadf1201 0xffffffff; do
	set -- $registers
	while [ $# -gt 0 ]; do
		n=0 taken=
		while [ $n -lt 8 ] && [ $# -gt 0 ]; do
			host bad $n "$1" $value >/dev/null
			taken="$taken $1" n=$((n + 1))
			shift
		done
		insmod /gpupart.ko
		n=0
		for register in $taken; do
			seen=
			for file in topology engines; do
				cat /proc/gpu$n/$file >/tmp/page 2>/dev/null
				status=$?
				cmp -s /tmp/page /tmp/good.$n.$file && continue
				seen=1
				if [ $status -eq 0 ] && grep -q '^complete    yes' /tmp/page; then
					hidden=$((hidden + 1))
					first=${first:-$register}
				fi
				[ $status -ne 0 ] && [ -s /tmp/page ] && hidden=$((hidden + 1))
			done
			[ "$seen" = 1 ] || { hidden=$((hidden + 1)); first=${first:-$register}; }
			tried=$((tried + 1))
			host good $n >/dev/null
			n=$((n + 1))
		done
		n=0
		for register in $taken; do
			for file in topology engines; do
				until_true 30 is_good $n $file || { stuck=$((stuck + 1)); first=${first:-$register}; }
			done
			n=$((n + 1))
		done
		rmmod gpupart
	done
	# There are already a hundred registers, so the second value is tested only for the first of
	# them.
	registers=$(echo $registers | cut -d" " -f1-20)
done
[ $tried -ge 110 ] || [ $refused = 40 ]
check $? "$tried refusals of single registers"
same "$hidden$first" 0 "refusals that were hidden"
same $stuck 0 "pages that stayed bad after the register was good again"

host load 2 gh100-h200-b >/dev/null
host load 3 ampere-ga100 >/dev/null
host load 4 turing-tu102 >/dev/null
host load 5 kepler-gk110 >/dev/null
host load 6 ada-ad102 >/dev/null
host load 7 blackwell-gb202 >/dev/null
i=0
while [ $i -lt $loads ] && insmod /gpupart.ko && [ -e /proc/gpu7/topology ] && rmmod gpupart; do
	i=$((i + 1))
done
same $i $loads "loads and unloads in a row with 8 GPUs"
same "$(host writes)" 0 "register writes"
