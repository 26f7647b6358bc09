# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2154
# What all the parts before have left behind. Needs a kernel that looks.
if [ -e /sys/kernel/debug/kmemleak ]; then
	echo scan >/sys/kernel/debug/kmemleak
	sleep 6
	echo scan >/sys/kernel/debug/kmemleak
	cat /sys/kernel/debug/kmemleak >/tmp/leaks
	same "$(grep -c 'unreferenced object' /tmp/leaks)" 0 "leaks"
	sed 's/^/# /' /tmp/leaks | head -n 60
fi
