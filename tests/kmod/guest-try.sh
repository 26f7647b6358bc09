# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154
# Tests scripts/try-module for a short time on emulated GPUs, and the cases that it refuses.
pci=/sys/bus/pci/devices
host load 0 gh100-runlists-busy >/dev/null
try() { /try-module "$@" >/tmp/out 2>&1; }
refuses() {
	want=$1
	shift
	try "$@"
	status=$?
	[ $status -ne 0 ] && grep -q "$want" /tmp/out && [ ! -e /tmp/report ] && [ ! -e /sys/module/gpupart ]
	check $? "refused: $(tail -n 1 /tmp/out)"
}
refuses 'usage:' -t 5 -k /gpupart.ko /tmp/report
refuses 'nosuch.ko does not exist' -y -k /nosuch.ko /tmp/report
echo no >/tmp/no
refuses 'not started' -k /gpupart.ko /tmp/report </tmp/no
echo 1 >/proc/sys/kernel/panic_on_warn
refuses 'panic_on_warn' -y -k /gpupart.ko /tmp/report
echo 0 >/proc/sys/kernel/panic_on_warn
gpunl --uid 65534 exec /try-module -y -k /gpupart.ko /tmp/report >/tmp/out 2>&1
[ $? -ne 0 ] && grep -q 'only root' /tmp/out
check $? "refused: $(tail -n 1 /tmp/out)"
insmod /gpupart.ko
try -y -k /gpupart.ko /tmp/report
[ $? -ne 0 ] && grep -q 'loaded already' /tmp/out
check $? "refused: $(tail -n 1 /tmp/out)"
rmmod gpupart
mkdir /tmp/report
try -y -k /gpupart.ko /tmp/report
[ $? -ne 0 ] && grep -q 'exists already' /tmp/out && [ ! -e /sys/module/gpupart ]
check $? "refused: $(tail -n 1 /tmp/out)"
rmdir /tmp/report

try -y -k /tmp/no /tmp/report
[ $? -ne 0 ] && grep -q '^FAILED: the module does not load: .*/tmp/no' /tmp/report/report.txt
check $? "a module that does not load: $(grep FAILED /tmp/report/report.txt)"
rm -r /tmp/report

echo yes | /try-module -t "${TRY_SECONDS:-10}" -k /gpupart.ko -l 'while :; do :; done' /tmp/report >/tmp/out 2>&1
check $? "a whole run"
sed 's/^/# /' /tmp/report/report.txt
same "$(sed -n 's/.*; \([0-9]* GPUs\)$/\1/p' /tmp/report/report.txt)" "8 GPUs" "GPUs in the report"
same "$(tail -n 1 /tmp/report/report.txt)" "result: no fault was found" "its last line"
cmp -s /tmp/report/pages/gpu0.runlists /pages/gh100-runlists-busy.runlists
check $? "the pages are in the folder"
grep -q 'the load ran to the end' /tmp/report/report.txt
check $? "the load ran all the while"
same "$(ls -d /sys/module/gpupart /proc/gpu* 2>/dev/null)" "" "what is left"
rm -r /tmp/report
# If the script is ended early, the load must end with all processes that it started.
/try-module -y -t 600 -k /gpupart.ko -l 'sh -c "sleep 4321; true" & sleep 4321; true' /tmp/report >/tmp/out 2>&1 &
running=$!
nr_sleeps() { ps | grep -c '[s]leep 4321$'; }
until_true 300 sh -c '[ $(ps | grep -c "[s]leep 4321\$") = 2 ]'
check $? "a load of several programs: $(nr_sleeps)"
kill -TERM $running
wait $running
grep -q '^ended early' /tmp/report/report.txt
check $? "a run that is ended early"
same "$(nr_sleeps)" 0 "programs of the load that are left"
rm -r /tmp/report
# Writes a line to the kernel's log that should not be there, after the script has begun.
(until_true 600 test -e /sys/module/gpupart; echo 'NVRM: Xid (PCI:0000:01:00): 31' >/dev/kmsg) &
try -y -t 10 -k /gpupart.ko /tmp/report
[ $? -ne 0 ] && grep -q '^FAILED: 1 error lines in the kernel' /tmp/report/report.txt
check $? "an Xid meanwhile: $(grep FAILED /tmp/report/report.txt)"
wait
host load 0 gh100-h200-e >/dev/null
same "$(host writes)" 0 "register writes"
