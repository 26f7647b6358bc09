#!/bin/sh
# SPDX-License-Identifier: MIT
# gpupart topology --of svg and --of picture: every unit is there once, what is floorswept is
# hatched, sets are told apart by letter, colour and grey, no text is cut or covered. UPDATE=1
# writes the expected texts anew: read the diff.
. "$(dirname "$0")/tap.subr"
unset COLUMNS
e=tests/data/gh100-h200-e/capture.txt

golden() {	# NAME ARGS
	file=tests/cli/expected/$1
	shift
	try topology "$@"
	[ -n "$UPDATE" ] && cp "$tmp/out" "$file"
	is "$status$err" 0 "topology $*: status"
	diff -u "$file" "$tmp/out" >"$tmp/diff"
	ok $? "topology $*: as in $file"
	sed 's/^/# /' "$tmp/diff"
}

golden picture-e.txt -i $e --of picture
golden picture-e-marks.txt -i $e --mark web=gpc:0,2+5 --mark 'a <&"> b=ugpu:1' --mark 0-3
LC_ALL=C.UTF-8
golden picture-e.utf8.txt -i $e --of picture --mark web=gpc:0 --mark train=gpc:1,5
LC_ALL=C

for capture in tests/data/gh100-*/capture.txt "$BUILD"/tests/generated/*.capture; do
	try topology -i "$capture" --of picture --mark some=0
	is "$status$(awk 'length > 80 && !/^source:/ { print FNR }' "$tmp/out")" 0 \
		"$capture: a text picture of at most 80 columns"
	# Numbers of TPCs are in the first line of a box, those of SMs in the second.
	numbers=$(awk '/[|]/ && ++n % 2 { sub(/^[^|]*/, ""); gsub(/[^0-9]/, " ");
		for (i = 1; i <= NF; i++) print $i }' "$tmp/out" | sort -n | tr '\n' ' ')
	nr=$(sed -n 's/.* in \([0-9]*\) TPCs.*/\1/p' "$tmp/out")
	is "$numbers" "$(seq -s ' ' 0 $((nr - 1))) " "$capture: every TPC is there once"
done

# In colour on a terminal, of the 256 that all have; elsewhere letters alone.
esc=$(printf '\033')
try topology -i $e --mark web=gpc:0
case $out in *"$esc"*) bad=1 ;; *) bad=0 ;; esac
ok $bad "no colour in a file"
if script -qec true /dev/null >/dev/null 2>&1 </dev/null; then
	on_terminal() { script -qec "'$gpupart' topology -i $e --mark web=gpc:0 --mark b=gpc:1" /dev/null </dev/null; }
	shown=$(TERM=xterm on_terminal)
	has "$shown" "$esc[48;5;24;38;5;231m" "the first set's colour on a terminal"
	has "$shown" "$esc[48;5;221;38;5;16m" "the second set's"
	is "$(printf '%s\n' "$shown" | sed "s/$esc\[[0-9;]*m//g" | tr -d '\r')" \
		"$("$gpupart" topology -i $e --mark web=gpc:0 --mark b=gpc:1)" "without its colours it is the same picture"
	case $(TERM=xterm NO_COLOR=1 on_terminal) in
	*"$esc"*) ok 1 "no colour with NO_COLOR" ;;
	*SMs*) ok 0 "no colour with NO_COLOR" ;;
	*) ok 1 "no colour with NO_COLOR: nothing was shown" ;;
	esac
else
	skip "no script(1) for a terminal"
fi

# What is refused, and what cannot be written.
refused 2 "--mark 99" topology -i $e --of svg --mark 99
refused 2 "--mark a=gpc:9" topology -i $e --mark a=gpc:9
refused 2 "--mark a=" topology -i $e --mark a=
refused 2 "--mark x" topology -i $e --mark x
refused 2 "--mark 0-3: needs --of picture or --of svg" topology -i $e --json --mark 0-3
refused 2 "--mark 0-3: needs --of picture or --of svg" topology -i $e --of capture --mark 0-3
set --
for i in $(seq 65); do set -- "$@" --mark 0; done
refused 2 "--mark 0: can be given at most 64 times" topology -i $e "$@"
refused 2 "--of png" topology -i $e --of png
refused 2 "--json and --of svg" topology -i $e --json --of svg
refused 1 "-o $tmp: Is a directory" topology -i $e --of svg -o "$tmp"
refused 1 "-o $tmp/none/x.svg: No such file" topology -i $e --of svg -o "$tmp/none/x.svg"
if [ -e /dev/full ]; then
	refused 1 "No space left" topology -i $e --of svg -o /dev/full
fi

is "$(BUILD="$BUILD" scripts/pictures --check 2>&1)" "" "Documentation's pictures are as they would be drawn now"

python3 -c 'import xml.etree.ElementTree' 2>/dev/null || { skip "no python3"; tap_done; }

# svg ARGS: the picture into $tmp/svg, what is in it into $tmp/facts.
svg() {
	"$gpupart" topology --of svg -o "$tmp/svg" "$@" 2>"$tmp/err" &&
		python3 tests/cli/picture.py "$tmp/svg" >"$tmp/facts" 2>>"$tmp/err"
	ok $? "topology --of svg $*: well-formed"
	sed 's/^/# /' "$tmp/err"
}

fact() { sed -n "s/^$1 //p" "$tmp/facts"; }

# sound WORDS: legible.
sound() {
	is "$(fact cut)$(fact small)$(fact overlap)$(fact outside)" "[][][]" \
		"$1: no text cut, too small, over another, out of its box"
}

for capture in tests/data/gh100-*/capture.txt "$BUILD"/tests/generated/*.capture; do
	"$gpupart" topology -i "$capture" --json >"$tmp/json"
	"$gpupart" topology -i "$capture" --of svg --mark a=0 --mark b=0 >"$tmp/svg"
	python3 tests/cli/picture.py "$tmp/svg" "$tmp/json" "$capture" >"$tmp/facts" 2>"$tmp/err"
	is "$?$(cat "$tmp/err")" 0 "$capture: a well-formed picture"
	for key in tpcs ugpus gpcs off off-gpcs; do
		is "$(fact $key)" "$(fact want-$key)" "$capture: $key as the capture has them, each once"
	done
	is "$(fact font)" monospace "$capture: a generic font"
	sound "$capture"
done
svg -i $e
is "$(fact off)" 6 "board e: 6 TPCs are hatched"
is "$(fact tenants)" 0 "no sets, no legend of them"

# Eight sets: each has its colour, on its TPCs alone, and in grey they are apart.
svg -i $e --mark a=0-7 --mark b=8-9 --mark c=10 --mark d=11 --mark e=12 --mark f=13 --mark g=14 --mark h=15
is "$(fact tenants)" 8 "a line in the legend for each set"
is "$(fact fill | awk '{ print $2 }' | tr '\n' ' ')" "0,1,2,3,4,5,6,7 8,9 10 11 12 13 14 15 " \
	"each set's TPCs have its colour"
steps=$(fact grey-steps)
[ "$steps" -ge 15 ]
ok $? "their greys, and that of no set, are 15 of 255 apart or more ($steps)"
sound "eight sets"

# Many sets, long names, names that mean something in XML, TPCs in several.
set --
for i in $(seq 0 59); do
	set -- "$@" --mark "tenant with a name that is long, number $i=$i,$(((i + 1) % 66))"
done
svg -i $e "$@" --mark "$(printf '<&">%s' "'")=0-2" --mark "$(printf '\001\377\357\277\276x')=3" \
	--mark "$(printf 'W%.0s' $(seq 300))=4"
is "$(fact tenants)" 63 "63 sets: a line for each"
sound "63 sets"
has "$(cat "$tmp/svg")" '>&lt;&amp;&quot;&gt;&#39;<' "a name that means something in XML is a name"
has "$(cat "$tmp/svg")" 'in several sets: TPCs 0-59' "what is in several sets is said"
"$gpupart" topology --of svg -i $e "$@" >"$tmp/first"
cmp -s "$tmp/first" "$tmp/svg"
is $? 1 "another picture is another file"
svg -i $e --mark x=0-3
cp "$tmp/svg" "$tmp/first"
svg -i $e --mark x=0-3
cmp -s "$tmp/svg" "$tmp/first"
ok $? "the same picture is the same file"

# Renderers that people have read it.
if xmllint --version >/dev/null 2>&1; then
	xmllint --noout "$tmp/svg"
	ok $? "xmllint finds nothing"
else
	skip "no xmllint"
fi

# A narrow terminal: words go on below, whole and in order; a word alone may be wider.
"$gpupart" topology -i $e --of picture --mark 'a name of many words=0-7,9,11,13,20' >"$tmp/wide"
COLUMNS=40 "$gpupart" topology -i $e --of picture --mark 'a name of many words=0-7,9,11,13,20' >"$tmp/narrow"
is "$(grep -vE '^.{7}[|+]|^[^ ]*$' "$tmp/narrow" | grep -E '.{41}')" "" "COLUMNS=40: no line of words is wider"
is "$(tr -s ' \n' ' ' <"$tmp/narrow")" "$(tr -s ' \n' ' ' <"$tmp/wide")" "and they are the same words"
tap_done
