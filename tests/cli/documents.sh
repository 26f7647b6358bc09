#!/bin/sh
# SPDX-License-Identifier: MIT
# The man page knows every option that the commands take, every variable that the code
# reads and the files it makes.
. "$(dirname "$0")/tap.subr"
man=Documentation/man/gpupart.1

for command in topology run cdi plan trace verify bench stat doctor sim demo; do
	synopsis=$(sed -n "/^\.Sh SYNOPSIS/,/^\.Sh DESC/{/^\.Cm $command/,/^\.Nm/p;}" $man)
	try $command --help
	for option in $(sed -n '/^Examples/q;s/^  *\(-[a-z], \)*--\([a-z-]*\).*/\2/p' "$tmp/out"); do
		grep -qE "(Fl|,) -$option( |$)" $man
		ok $? "man page: $command --$option"
		case $option in json | gpu | quick | no-launch | of | name | device | uid | mark | launches | blocks | threads | ns | iterations)
			has "$synopsis" "-$option" "man page: $command --$option in the synopsis" ;;
		esac
	done
done
variables=$(cat cli/*.c cli/bench/*.c lib/*.c lib/inject/*.c | grep -o '"GPUPART_[A-Z_]*"' | tr -d '"' | sort -u)
for variable in $variables XDG_CACHE_HOME; do
	grep -q "$variable" $man
	ok $? "man page: $variable"
done
for file in .cache/gpupart/checked /dev/shm/gpupart-UID; do
	has "$(sed -n '/^\.Sh FILES/,/^\.Sh EXIT/p' $man)" "$file" "man page: FILES has $file"
done
if mandoc -T lint $man >/dev/null 2>&1 || command -v mandoc >/dev/null; then
	for page in Documentation/man/*.[1-9]; do
		is "$(mandoc -T lint -W warning "$page" 2>&1)" "" "$page: mandoc finds nothing"
	done
else
	skip "no mandoc"
fi
# Pages that are named are there; tests/cli/installed.sh has whether they are installed.
for page in $(cat Documentation/man/*.[1-9] | sed -n 's/^\.Xr \(gpupart[a-z_-]*\) \([0-9]\).*/\1.\2/p' | sort -u) \
	$(cat cli/*.c lib/inject/*.c | grep -oE 'gpupart-[a-z-]+\([0-9]\)' | tr '(' . | tr -d ')' | sort -u); do
	[ -e "Documentation/man/$page" ] || grep -q "^int ${page%.3}(\|[ *]${page%.3}(" include/gpupart.h
	ok $? "man page $page is there, or made of the header"
done
tap_done
