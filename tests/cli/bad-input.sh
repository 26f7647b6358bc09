#!/bin/sh
# SPDX-License-Identifier: MIT
# Invalid values of every option: the status, nothing on stdout, one line that names the value.
. "$(dirname "$0")/tap.subr"
h200=sample:h200

refused 2 nosuch nosuch
refused 2 nosuch help nosuch
refused 2 "unexpected argument 'set'" help run set
refused 2 "unexpected argument 'x'" --help run x
refused 2 "unexpected argument 'x'" --version x
refused 2 --nosuch --nosuch

# topology
refused 2 extra topology extra
refused 2 --nosuch topology --nosuch
refused 2 -x topology -x
refused 2 -t topology -t 0
refused 2 --gpu topology --gpu
refused 2 -i topology -i
refused 2 -o topology -o
refused 2 --json=3 topology --json=3
refused 2 svgg topology -i $h200 --of svgg
refused 2 capture topology -i $h200 --json --of capture
refused 2 /nonexistent topology -i /nonexistent
refused 2 nosuch topology -i sample:nosuch
refused 2 7 topology -i $h200 --gpu 7
refused 2 GPU-1 topology -i $h200 --gpu GPU-1
refused 2 "/dev/null: is not a regular file" topology -i /dev/null
refused 2 "/: is not a regular file" topology -i /
refused 2 "--mark '': the name is empty" topology -i $h200 --mark ""
refused 2 "--mark '=gpc:0': the name is empty" topology -i $h200 --mark =gpc:0
refused 2 "--mark a=: the set is empty" topology -i $h200 --mark a=
refused 2 "'--o' is ambiguous: write --output, --of" topology --o text
refused 2 "unknown option '--ox'" topology --ox
mkfifo "$tmp/fifo"
refused 2 "$tmp/fifo: is not a regular file" topology -i "$tmp/fifo"
refused 2 "$tmp/fifo: is not a regular file" verify -i "$tmp/fifo"
# Any other file may be a pipe, but no command waits for its other end.
printf '#!/bin/sh\nexec timeout 60 "%s" "$@"\n' "$gpupart" >"$tmp/limited"
chmod +x "$tmp/limited"
command=$gpupart
gpupart=$tmp/limited
refused 125 "--plan $tmp/fifo:a: is a pipe without a writer" run -i $h200 --plan "$tmp/fifo:a" -- true
refused 2 "--plan $tmp/fifo: is a pipe without a writer" cdi -i $h200 --plan "$tmp/fifo"
refused 2 "-f $tmp/fifo: is a pipe without a writer" plan -i $h200 -f "$tmp/fifo"
refused 125 "-f $tmp/fifo: is a pipe without a writer" qos run -i $h200 -f "$tmp/fifo"
refused 2 "$tmp/fifo: is a pipe without a writer" qos replay "$tmp/fifo"
refused 2 "$tmp/fifo: is a pipe without a writer" sim "$tmp/fifo"
refused 1 "-o $tmp/fifo: is a pipe without a reader" topology -i $h200 -o "$tmp/fifo"
gpupart=$command
printf 'tenants: { llm: { tpcs: 8 } }\n' >"$tmp/tenants.yaml"
(sleep 0.3; cat "$tmp/tenants.yaml") | "$gpupart" plan -i $h200 -f /dev/stdin --json >"$tmp/plan.json"
(sleep 0.3; cat "$tmp/plan.json") | "$gpupart" cdi -i $h200 --plan /dev/stdin >"$tmp/out"
is "$? $(grep -c '"name": "llm"' "$tmp/out")" "0 1" "-f and --plan: a pipe whose writer writes later"

# Empty values are shown, with the accepted values.
refused 2 "-i '': must be" topology -i ""
refused 2 "-o '': must be" topology -i $h200 -o ""
refused 2 "--gpu '': must be" topology -i $h200 --gpu ""
refused 125 "the program's name is empty" run -i $h200 -t 0 -- ""
refused 125 "--name '': must be" run -i $h200 -t 0 --name "" -- true
refused 125 "-n '': must be" run -i $h200 -n "" -- true

# Long values leave room for the reason.
long=$(printf '%05000d' 0 | tr 0 x)
refused 1 "File name too long" topology -i "$(printf '%.3000s' "$long")"
try run -i $h200 -t 0 -- "$long"
has "$status $(tail -n 1 "$tmp/err")" "File name too long" "run -- a name of 5000 letters: the reason is there"
is "$(awk 'length > 1300' "$tmp/err")" "" "and the line is shortened"
refused 2 "is not a command" "$long"
refused 125 "must be 1 to 63" run -t 0 --name "$long" -- true
# Valid long values are accepted.
try run -i $h200 -t "$(printf '%0600d' 0 | sed 's/0/0,/g;s/,$//')" -- sh -c 'echo $GPUPART_SET'
is "$status$out" 00 "-t with 600 numbers"
try run -i $h200 --hex "$(printf '%01100d' 5)" -- sh -c 'echo $GPUPART_SET'
is "$status$out" 00,2 "--hex with 1099 zeros in front"
refused 1 /nonexistent/file topology -i $h200 -o /nonexistent/file
refused 2 'a?b' topology "a
b"

# A truncated or changed capture is reported with the line.
head -n 40 tests/data/gh100-h200-e/capture.txt >"$tmp/cut"
refused 1 "$tmp/cut" topology -i "$tmp/cut"
sed 's/^8\t/9\t/;20s/1/2/' tests/data/gh100-h200-e/capture.txt >"$tmp/changed"
refused 1 "$tmp/changed" topology -i "$tmp/changed"
has "$err" line "a changed capture: the line is named"

# run: every error before the program starts has status 125.
refused 125 "no program" run
refused 125 "no program" run -t 0
refused 125 "no program" run -t 0 --
refused 125 "no set" run -- true
refused 125 --nosuch run --nosuch -- true
refused 125 -j run -t 0 -j -- true
refused 125 --json run -t 0 --json -- true
refused 125 -t run -t
refused 125 /nonexistent run -t 0 -i /nonexistent -- true
refused 125 "-i rm" run -t 0 -i rm -- true
refused 125 "-i kernel" run -t 0 -i kernel -- true
for bad in 66 0-66 5-1 1,,2 1- -1 a 0x3 0-10:0 256 99999999999999999999 1+2 'gpc:1' '' ' 1'; do
	refused 125 "-t" run -i $h200 -t "$bad" -- true
	has "$err" "$bad" "-t '$bad': named"
done
refused 125 "GPC 8" run -i $h200 -g 8 -- true
refused 125 "uGPU 2" run -i $h200 -u 2 -- true
refused 125 "x" run -i $h200 -g x -- true
for bad in 0 -1 x 67 257 3.5 1x; do
	refused 125 "-n $bad" run -i $h200 -n "$bad" -- true
done
refused 125 "-n 1" run -i $h200 -u 0,1 -n 1 -- true
for bad in xyz 0x '' 0 40000000000000000 1+1; do
	refused 125 --hex run -i $h200 --hex "$bad" -- true
	has "$err" "$bad" "--hex '$bad': named"
done
refused 125 "--name a b" run -i $h200 -t 0 --name "a b" -- true
refused 125 7 run -i $h200 --gpu 7 -t 0 -- true

# A capture that cannot be simulated: one line, the reason, and other captures that can.
for command in verify doctor demo; do
	refused 2 "cannot be simulated: TPC 0 has no measured mask bit" $command -i sample:h200-a
	has "$err" "use sample:h200 or sample:h200-e" "$command: names a sample that can"
done
refused 125 "cannot be simulated: TPC 0 has no measured mask bit" run -i sample:h200-a -t 0 -- true

# Seconds, in all options that take them.
for bad in 0x10 0x1 0X1p1 -1 0 3601 inf nan x 1x 1,5 '' ' 1'; do
	refused 125 "--interval '$bad': must be 0.1 to 3600 seconds" stat --interval "$bad" -- true
	refused 2 "-d '$bad': must be 0.1 to 3600 seconds" top -d "$bad"
done
refused 125 "--interval '0.09'" stat --interval 0.09 -- true

# sim: one scenario, or the list of scenarios.
refused 2 "no scenario" sim
refused 2 "no scenario" sim --json
refused 2 "unexpected argument 'events'" sim copies events
refused 2 "unexpected argument 'events'" sim copies --json events
refused 2 "unexpected argument 'x'" sim --list x
refused 2 "unexpected argument 'figure-3'" sim figure-3 --list
refused 2 "--list and --of svg: use only one of them" sim --list --of svg
refused 2 "--list and --run a: use only one of them" sim --list --run a
refused 2 "--list and --span 1-2: use only one of them" sim --list --span 1-2
refused 2 "--of needs a value" sim copies --of
refused 1 /nonexistent/file sim --list -o /nonexistent/file

# set
refused 2 "you have no running job or program named 'nosuch'" set nosuch -t 0
refused 2 "--mem 1G and -a: use only one of them" set job -a --mem 1G
refused 2 "--mem 1G and -t 0: use only one of them" set job -t 0 --mem 1G

# bench
refused 2 "'nosuch' is not a part" bench isolation nosuch
refused 2 --nosuch bench --nosuch
refused 2 "'--quick=1'" bench --quick=1
refused 2 "-o needs a value" bench -o
refused 2 /nonexistent bench -i /nonexistent
refused 2 "cannot be simulated: TPC 0 has no measured mask bit" bench -i sample:h200-a
refused 1 "/nonexistent/a/b: No such file" bench -i $h200 dynamic -o /nonexistent/a/b
echo x >"$tmp/file"
refused 1 "$tmp/file/README.md: Not a directory" bench -i $h200 dynamic -o "$tmp/file"

# verify, doctor, demo
for command in verify doctor demo; do
	refused 2 extra $command extra
	refused 2 --nosuch $command --nosuch
	refused 2 /nonexistent $command -i /nonexistent
	refused 2 "-i rm" $command -i rm
	refused 2 -t $command -t 0
done
refused 2 --json=3 demo --json=3

tap_done
