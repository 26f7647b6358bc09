#!/bin/sh
# SPDX-License-Identifier: MIT
# The man page has every option of the commands, every variable that the code reads, and the files
# that it creates.
. "$(dirname "$0")/tap.subr"
man=Documentation/man/gpupart.1

commands=$("$gpupart" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z-]*\) .*/\1/p' | grep -vx help)
[ "$(echo "$commands" | wc -w)" -ge 17 ]
ok $? "there are commands"
for command in $commands; do
	synopsis=$(sed -n "/^\.Sh SYNOPSIS/,/^\.Sh DESC/{/^\.Cm $command/,/^\.Nm/p;}" $man)
	try $command --help
	# "-o --output", or "- --json" without a short form.
	sed -nE '/^Examples/q; s/^  (-[a-z]), (--[a-z-]*).*/\1 \2/p; s/^      (--[a-z-]*).*/- \1/p' "$tmp/out" >"$tmp/options"
	while read -r short long; do
		grep -qE "(Fl|,) $(echo "$long" | cut -c 2-)( |$)" $man
		ok $? "man page: $command $long"
		case $long in
		--tpcs | --gpcs | --ugpus | --nr-tpcs | --hex | --sms | --shape) echo "$synopsis" | grep -q '^\.\(Op \)*Ar SET' ;;
		*) echo "$synopsis" | grep -qE "Fl (${short#-}|$(echo "$long" | cut -c 2-))( |$)" ;;
		esac
		ok $? "man page: $command $long in the synopsis"
	done <"$tmp/options"
done
# Variables that it reads, without those of all programs and of Slurm's daemons.
variables=$(find cli lib -name '*.c' ! -path 'lib/nvml/*' -exec cat {} + |
	grep -oE '"GPUPART_[A-Z_]+"|getenv\("[A-Z_]*"' | grep -oE '[A-Z_]{2,}' |
	grep -vxE 'HOME|PATH|SLURM_CONF|SLURMD_NODENAME' | sort -u)
for variable in $variables; do
	sed -n '/^\.Sh ENV/,/^\.Sh FILES/p' $man | grep -qE "Ev (.* , )?$variable( |$)"
	ok $? "man page: $variable"
done
for file in .cache/gpupart/checked /dev/shm/gpupart-UID mem-NAME job-ID qos-PCI.lock qos-PCI.socket; do
	has "$(sed -n '/^\.Sh FILES/,/^\.Sh EXIT/p' $man)" "$file" "man page: FILES has $file"
done
if mandoc -T lint $man >/dev/null 2>&1 || command -v mandoc >/dev/null; then
	for page in Documentation/man/*.[1-9]; do
		is "$(mandoc -T lint -W warning "$page" 2>&1)" "" "$page: mandoc finds nothing"
	done
else
	skip "no mandoc"
fi
# Referenced pages exist; tests/cli/installed.sh checks whether they are installed.
for page in $(cat Documentation/man/*.[1-9] | sed -n 's/^\.Xr \(gpupart[a-z_-]*\) \([0-9]\).*/\1.\2/p' | sort -u) \
	$(find cli lib/inject -name '*.c' -exec cat {} + | grep -oE 'gpupart-[a-z-]+\([0-9]\)' | tr '(' . | tr -d ')' | sort -u); do
	[ -e "Documentation/man/$page" ] || grep -q "^int ${page%.3}(\|[ *]${page%.3}(" include/gpupart.h include/gpupart_manage.h
	ok $? "man page $page is there, or made of the header"
done
tap_done
