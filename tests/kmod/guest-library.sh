# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154
# Compares the library's source "kernel" with the values that RM reported for the same boards.
host load 0 gh100-h200-e >/dev/null
host load 1 gh100-h200-a >/dev/null
host load 6 ada-ad102 >/dev/null
kerneltopo >/tmp/out
grep -q 'the module gpupart is not loaded' /tmp/out
check $? "without the module: $(cat /tmp/out)"
insmod /gpupart.ko
for gpu in 0000:01:00.0=e 1=a; do
	board=gh100-h200-${gpu#*=}
	kerneltopo "${gpu%=*}" >/tmp/out
	check $? "$board opens: $(head -n 1 /tmp/out)"
	awk '$1 == "tpc"{print $2, $3, $NF}' /tmp/out >/tmp/have
	awk '$1 == "tpc"{print $2, $3, $NF}' "/expected/$board" >/tmp/want
	[ "$(wc -l </tmp/have)" = 66 ] && cmp -s /tmp/have /tmp/want
	check $? "$board: GPC and SMs of each TPC are RM's"
done
# The map of board e was also read from RM.
kerneltopo 0 >/tmp/out
awk '$1 == "tpc"{print $2, $4}' /tmp/out >/tmp/have
awk '$1 == "tpc"{print $2, $8}' /expected/gh100-h200-e >/tmp/want
cmp -s /tmp/have /tmp/want
check $? "gh100-h200-e: uGPU of each TPC is RM's"
same "$(awk '$1 == "gpc"{printf "%s=%s ", $2, $3}' /tmp/out)" "0=0 1=5 2=1 3=6 4=7 5=2 6=3 7=4 " "its GPCs' physical ones"
kerneltopo 6 >/tmp/out
grep -q 'does not know the order' /tmp/out
check $? "no order, no topology: $(cat /tmp/out)"
kerneltopo 0000:99:00.0 >/tmp/out
grep -q 'has no GPU 0000:99:00.0' /tmp/out
check $? "a GPU that is not there: $(cat /tmp/out)"
rmmod gpupart
