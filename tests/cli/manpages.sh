#!/bin/sh
# SPDX-License-Identifier: MIT
# Manual pages: every public function has one, generated from the headers; mandoc finds nothing;
# and all examples run on the simulated GPU, or on the pages of the module.
. "$(dirname "$0")/tap.subr"
man3=$BUILD/man/man3
b=$root/tests/data/gh100-h200-b/capture.txt

if [ ! -e "$man3/.made" ]; then
	skip "the pages of man 3 are not made: make check does"
	tap_done
fi

# ------------------------------------------------------- man 3: pages and examples
functions=$(nm -D --defined-only "$BUILD/lib/libgpupart.so.0" "$BUILD/lib/libgpupart-manage.so.0" |
	sed -n 's/.* T \(gpupart_[^@]*\)@@LIBGPUPART_.*/\1/p')
missing=
for function in $functions; do
	grep -qs "^\.Nm $function\( ,\)*\$" "$man3/$function.3" && grep -q "^\.Fo $function\$" "$man3/$function.3" &&
		grep -qE "^\.(It )?Fn $function( ,)?\$" "$man3/$function.3" || missing="$missing $function"
done
is "$missing" "" "every public function has a page with its name, prototype and words: $(echo "$functions" | wc -w)"
is "$(cd "$man3" && for page in *.3; do [ -e "$page" ] || echo "$page"; done)" "" "no link leads nowhere"
if command -v mandoc >/dev/null 2>&1; then
	is "$(cd "$man3" && find . -type f -name '*.3' -exec mandoc -T lint -W warning {} + 2>&1)" "" "mandoc finds nothing in them"
else
	skip "no mandoc"
fi
mkdir "$tmp/new"
sed '/visibility push/a /* New. */\nint gpupart_novel_thing(void);' include/gpupart.h >"$tmp/new.h"
"${PYTHON:-python3}" scripts/man3.py Documentation/man/examples "$tmp/new" "$tmp/new.h" include/gpupart_manage.h include/gpupart_tpcset.h 2>"$tmp/err"
has "$? $(cat "$tmp/err")" "1 man3: gpupart_novel_thing belongs to no page" "a function that has no page is an error"

# Each example belongs to a page, compiles without warnings, and has the documented output.
for source in Documentation/man/examples/*.c; do
	name=$(basename "$source" .c)
	[ -f "$man3/$name.3" ] && [ ! -L "$man3/$name.3" ]
	ok $? "$name: the example is a page's"
	${CC:-gcc} -std=gnu11 -Wall -Wextra -Werror -Wmissing-prototypes -Wshadow -Iinclude -Iinclude/uapi -o "$tmp/$name" \
		"$source" -L"$BUILD/lib" -lgpupart -Wl,-rpath-link,"$BUILD/lib" 2>"$tmp/err"
	ok $? "$name: it compiles $(head -n 2 "$tmp/err" | tr '\n' ' ')"
	sed -n '/^\/\* Prints:/,$s/^ \* //p' "$source" >"$tmp/wanted"
	env -u GPUPART_JOB LD_LIBRARY_PATH="$BUILD/lib/gpupart/sim:$BUILD/lib" GPUPART_SIM="$b" \
		timeout 60 "$tmp/$name" >"$tmp/out" 2>"$tmp/err"
	is "$? $(cat "$tmp/out" "$tmp/err")" "0 $(cat "$tmp/wanted")" "$name: it prints what the page says"
	# In the page here, with mdoc's escapes removed.
	sed -n '/^\.Sh EXAMPLES/,/^\.Sh SEE/p' "$man3/$name.3" | sed -n '/^\.Bd/,/^\.Ed/{/^\.[BE]d/!p;}' |
		sed 's/^\\&//; s/\\e/\\/g' >"$tmp/page"
	sed '1d; /^\/\* Prints:/d; s/^ \* //; /^ \*\/$/d' "$source" | expand | cat -s >"$tmp/program"
	has "$(grep -v '^ *$' "$tmp/page")" "$(grep -v '^ *$' "$tmp/program" | head -n 12)" "$name: the page has it"
done

# ------------------------------------------------------------------- man 1, 7 and 4
# Runs the commands of a page's section EXAMPLES, in a separate folder.
examples() {
	sed -n '/^\.Sh EXAMPLES/,/^\.Sh SEE/p' "$1" | sed -n '/^\.Bd/,/^\.Ed/{/^\.[BE]d/!p;}' | sed 's/\\e/\\/g'
}
mkdir "$tmp/bin" "$tmp/dir" "$tmp/etc"
ln -s "$gpupart" "$tmp/bin/gpupart"
# Replaces the programs of the examples by one that uses the GPU for a moment.
for program in bin/python3 bin/make dir/serve; do
	printf '#!/bin/sh\necho "ran in $GPUPART_SET"\n' >"$tmp/$program"
	chmod +x "$tmp/$program"
done
# run_example COMMAND: on the simulated GPU, also if its text does not say so.
run_example() {
	line=$(echo "$1" | sed -E 's/gpupart (run|stat|cdi|verify) /&-i sample:h200 /g; s/-i sample:h200 (.*)-i sample:h200/\1-i sample:h200/;
		s|/etc/cdi/|'"$tmp"'/etc/|')
	(cd "$tmp/dir" && PATH=$tmp/bin:$PATH timeout 100 sh -c "set -e; $line; wait" >"$tmp/out" 2>"$tmp/err" </dev/null)
}
examples Documentation/man/gpupart.1 >"$tmp/lines"
[ "$(wc -l <"$tmp/lines")" -ge 10 ]
ok $? "gpupart.1 has examples"
while IFS= read -r line; do
	case $line in
	*'gpupart set train'*)
		# The tenant must exist, as the previous line says.
		"$gpupart" run --exec -i sample:h200 --name train --mem 20G -- sleep 600 2>/dev/null &
		pid=$!
		for _ in $(seq 100); do
			"$gpupart" ps | grep -q '^train ' && break
			sleep 0.5
		done
		run_example "$line"
		status=$?
		kill $pid
		is "$status" 0 "gpupart.1: $line: $(head -n 1 "$tmp/err")" ;;
	*'gpupart bench'*) skip "gpupart.1: $line: minutes; tests/cli/bench.sh has it" ;;
	*' --mps '*) skip "gpupart.1: $line: there is no MPS here; tests/cli/mps.sh has it" ;;
	*jq*) if command -v jq >/dev/null 2>&1; then
			run_example "$line"
			is "$? $(cat "$tmp/out")" "0 0" "gpupart.1: $line"
		else
			skip "no jq"
		fi ;;
	*)	run_example "$line"
		is $? 0 "gpupart.1: $line: $(head -n 1 "$tmp/err")"
		case $line in
		*'run '*) has "$(cat "$tmp/out")" "ran in " "gpupart.1: and its program ran" ;;
		esac ;;
	esac
done <"$tmp/lines"
has "$(cat "$tmp/dir/stat.txt")" "simulated" "gpupart.1: stat's file"
[ -s "$tmp/etc/batch.json" ]
ok $? "gpupart.1: cdi's file"

examples Documentation/man/gpupart.7 >"$tmp/lines"
[ "$(wc -l <"$tmp/lines")" -ge 5 ]
ok $? "gpupart.7 has examples"
while IFS= read -r line; do
	run_example "$line"
	is $? 0 "gpupart.7: $line: $(head -n 1 "$tmp/err")"
	[ -s "$tmp/out" ] || [ -s "$tmp/dir/plan.json" ]
	ok $? "gpupart.7: it shows something"
done <"$tmp/lines"

# The module's page, as for one of the boards.
page=tests/kmod/golden/gh100-h200-e.topology
examples Documentation/man/gpupart.4 | sed "s|/proc/gpu0/topology|$page|" >"$tmp/lines"
is "$(wc -l <"$tmp/lines")" 3 "gpupart.4 has examples"
is "$(sh -c "$(sed -n 1p "$tmp/lines")")" "8 GPCs 66 TPCs" "gpupart.4: how many"
is "$(sh -c "$(sed -n 2p "$tmp/lines")" | grep -cE '^ *[0-9]+: ')" 9 "gpupart.4: which GPC"
is "$(sh -c "$(sed -n 3p "$tmp/lines")")" "complete" "gpupart.4: complete"
for file in $(sed -n 's/^\.It Pa //p; s/^\.Pa \([A-Za-z_]*\) [.,]$/\1/p' Documentation/man/gpupart.4 | tr ' ,' '\n\n' | sed '/^$/d; /^Pa$/d; s|.*/||; /^gpu/!s/[KN]$//'); do
	case $file in
	pci | platform) file=bus ;;
	gpcK_tpc_mask) file=_tpc_mask ;;
	CWD*) file=CWD_ ;;
	esac
	grep -q "$file" kmod/proc.c kmod/chip.c kmod/device.c
	ok $? "gpupart.4: the module has the file $file"
done
tap_done
