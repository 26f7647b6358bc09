#!/bin/sh
# SPDX-License-Identifier: MIT
# gpupart sim: invalid files are refused with line and key; what can never finish is refused or
# reported with its cycle; nothing hangs.
. "$(dirname "$0")/tap.subr"

# The beginning of all files: 8 lines.
base() {
	cat <<'END'
gpu: h200
kernels:
  K: { blocks: 10, threads: 128, time: 1us }
  big: { blocks: 10, threads: 1024, registers: 128, time: 1us }
streams:
  S: {}
  T: {}
programs:
END
}

# refused STATUS PART WORDS: the file on stdin, after base.
refused() {
	{ base; cat; } >"$tmp/bad.yaml"
	said "$@"
}

# The same with the whole file on stdin.
refused_file() {
	cat >"$tmp/bad.yaml"
	said "$@"
}

said() {
	timeout 60 "$gpupart" sim "$tmp/bad.yaml" >"$tmp/out" 2>"$tmp/err"
	status=$?
	is "$status $(wc -l <"$tmp/err") $(wc -c <"$tmp/out")" "$1 1 0" "$3: status $1, one line"
	has "$(cat "$tmp/err")" "$2" "$3"
}

# -------------------------------------------------------- programs that never finish
refused 2 ":9: kernel big: a block of 1024 threads, 128 registers a thread and 0 bytes of shared memory fits on no SM of the h200" \
	"a block that fits on no SM" <<'END'
  main: [ { launch: big, on: S } ]
END
sed 's/^gpu: .*/gpu: gtx1060/; s/threads: 128, time/threads: 128, shared: 100K, time/' >"$tmp/base2" <<END
$(base)
END
refused_file 2 "fits on no SM of the gtx1060" "shared memory that no SM has" <<END
$(cat "$tmp/base2")
  main: [ { launch: K, on: S } ]
END
refused 2 ":9: set: TPC 70 does not exist: the GPU has 66" "a set with a TPC that is not there" <<'END'
  main: [ { launch: K, on: S, set: "70" } ]
END
refused 2 ":9: set: GPC 9 does not exist: the GPU has 8" "an empty set" <<'END'
  main: [ { launch: K, on: S, set: "gpc:9" } ]
END
refused 2 ":9: set: " "a set that is no list" <<'END'
  main: [ { launch: K, on: S, set: "1-" } ]
END
refused 2 ":10: event E is waited for, but no program records it" "a wait for an event without a record" <<'END'
  main:
    - { wait: E, on: S }
    - { launch: K, on: S }
END
refused 2 ":9: event E is waited for, but no program records it" "a loop of no rounds signals nothing" <<'END'
  main: [ { wait: E, on: S }, { repeat: 0, do: [ { record: E, on: T } ] } ]
END
sed 's/time: 1us }$/time: 1us, cooperative: yes }/; s/blocks: 10/blocks: 2113/' >"$tmp/base2" <<END
$(base)
END
refused_file 2 "kernel K on stream S: it is cooperative, but its set can hold only 2112 of its 2113 blocks at once" \
	"a cooperative grid that cannot be resident" <<END
$(cat "$tmp/base2")
  main: [ { launch: K, on: S } ]
END
sed 's/blocks: 10, threads: 128/blocks: 32, cluster: 16, threads: 128/' >"$tmp/base2" <<END
$(base)
END
refused_file 2 "a cluster of 16 blocks fits into no virtual GPC of its set" "a cluster that no virtual GPC holds" <<END
$(cat "$tmp/base2")
  main: [ { launch: K, on: S, set: 0-7 } ]
END
refused 1 "deadlock at" "two streams that wait for each other" <<'END'
  main:
    - { wait: A, on: S }
    - { record: B, on: S }
    - { wait: B, on: T }
    - { record: A, on: T }
    - { sync: all }
END
has "$(cat "$tmp/err")" "stream S (line 10) waits for event A; stream T (line 12) waits for event B; and so back to stream S" \
	"the cycle is named"
refused 1 "program main (line 10) waits for event A; and so back to program main" \
	"a program that waits for what it would do next" <<'END'
  main:
    - { await: A }
    - { record: A, on: S }
END
{ base; cat; } >"$tmp/bad.yaml" <<'END'
  main:
    - { wait: A, on: S }
    - { record: A, on: T }
END
try sim "$tmp/bad.yaml"
is $status 0 "a wait in front of what ends it, in a channel of its own"
sed -i 's/^gpu: .*/gpu: { chip: h200, one-queue: yes }/' "$tmp/bad.yaml"
said 1 "stream T (line 11) waits behind stream S in the same channel" "with one queue that is a deadlock"
has "$(cat "$tmp/err")" "and so back to stream S" "with one queue: the cycle"
refused 1 "program b (line 10) waits for event B; program a (line 9) waits for event A; and so back to program b" \
	"two programs that wait for what the other would record" <<'END'
  a: [ { await: A }, { record: B, on: S } ]
  b: [ { await: B }, { record: A, on: T } ]
END
refused 1 "waits for space in the channel of stream S; and so back to stream S" "a full buffer before what would empty it" <<'END'
  a: [ { wait: A, on: S }, { repeat: 2000, do: [ { launch: K, on: S } ] }, { record: A, on: T } ]
END
refused 2 ":9: program main: it takes longer than 19 hours" "longer than the clock" <<'END'
  main: [ { repeat: 1000000, do: [ { cpu: 100000s } ] } ]
END
refused 2 ":9: program main: it takes longer than 19 hours" "loops in loops" <<'END'
  main: [ { repeat: 1000000000, do: [ { repeat: 1000000000, do: [ { launch: K, on: S } ] } ] } ]
END
refused 2 ":9: program main: more than 1000000000 steps" "steps that take no time, without end" <<'END'
  main: [ { repeat: 1000000000, do: [ { repeat: 1000000000, do: [ { cpu: 0ns } ] } ] } ]
END
refused 2 ":9: program main: more than 1000000000 steps" "and with one that never comes" <<'END'
  main: [ { repeat: 1000000000, do: [ { repeat: 1000000000, do: [ { cpu: 0ns } ] } ] } ]
stop: 1ms
END
{ base; cat; } >"$tmp/bad.yaml" <<'END'
  main: [ { repeat: 1000000000, do: [ { repeat: 1000000000, do: [ { launch: K, on: S } ] } ] } ]
stop: 1ms
END
timeout 60 "$gpupart" sim "$tmp/bad.yaml" >"$tmp/out" 2>&1
is $? 0 "a program without end, stopped"
sed 's/blocks: 10, threads: 128, time: 1us/blocks: 2147483647, time: 1s/' >"$tmp/base2" <<END
$(base)
END
refused_file 2 ":9: kernel K on stream S: it takes longer than 19 hours" "more waves than the clock has" <<END
$(cat "$tmp/base2")
  main: [ { launch: K, on: S } ]
END

# ------------------------------------------------------------------ invalid files
refused 2 ":9: a step must have one of" "a step that is none" <<'END'
  main: [ { launhc: K, on: S } ]
END
refused 2 ":9: launch: 'Q' is not one of the kernels" "a kernel that is not there" <<'END'
  main: [ { launch: Q, on: S } ]
END
refused 2 ":9: on: 'Q' is not one of the streams" "a stream that is not there" <<'END'
  main: [ { launch: K, on: Q } ]
END
refused 2 ":9: on: is missing" "no stream" <<'END'
  main: [ { launch: K } ]
END
refused 2 ":9: launch: the key 'to' is not known" "a key that is not known" <<'END'
  main: [ { launch: K, on: S, to: gpu } ]
END
refused 2 ":9: launch: the key 'on' is given twice" "a key twice" <<'END'
  main: [ { launch: K, on: S, on: T } ]
END
refused 2 ":9: cpu: '10' is not a time such as 10us" "a time without a unit" <<'END'
  main: [ { cpu: 10 } ]
END
refused 2 ":9: copy: '1Q' must be a size of at most" "a size that is none" <<'END'
  main: [ { copy: 1Q, to: gpu, on: S } ]
END
# value WORDS KEY VALUE: replaces K's blocks.
value() {
	base | sed "s/K: { blocks: 10, threads: 128, time: 1us/K: { threads: 128, $2: $3/" >"$tmp/base2"
	refused_file 2 ":3: $2: $1" "$2: $3" <<END
$(cat "$tmp/base2")
  main: [ { launch: K, on: S } ]
END
}
value "'-1' is not a whole number from 1 to 2147483647" blocks -1
value "'18446744073709551616' is not a whole number" blocks 18446744073709551616
value "'1.5' is not a whole number" blocks 1.5
value "'0x10' is not a whole number" blocks 0x10
value "'.nan' is not a whole number" blocks .nan
value "'010' is not a whole number from 1 to 2147483647 without a leading 0" blocks 010
value "'' is not a whole number" blocks ""
value "must be a single value" blocks "[1]"
value "must be a single value" blocks "{ a: 1 }"
value "contains a zero byte" blocks '"1\\0"'
value "0: must be at least 1" blocks 0
value "0 is too small: must be at least 1" cluster 0
value "'nan' must be a size of at most" shared nan
value "'-5' must be a size of at most" shared -5
value "'1e300' must be a size of at most" reads 1e300
value "'infus' is not a time" time infus
value "'1e400s' is not a time" time 1e400s
value "'-1us' is not a time" time -1us
value "'maybe' must be yes or no" cooperative maybe
value "'l3': must be l2 or dram" from l3
refused 2 ":9: repeat: '-1' is not a whole number" "a number below 0" <<'END'
  main: [ { repeat: -1, do: [] } ]
END
refused 2 ":9: launch: '\$x': this variable is not defined" "a variable that is not there" <<'END'
  main: [ { launch: $x, on: S } ]
END
refused 2 ":10: not valid YAML: did not find" "no YAML" <<'END'
  main: [ { launch: K, on: S
END
refused 2 ":10: expect: cannot read 'K.speed < 1'" "an expectation that cannot be read" <<'END'
  main: [ { launch: K, on: S } ]
expect: [ K.speed < 1 ]
END
i=0 loops='{ launch: K, on: S }'
while [ $i -lt 40 ]; do loops="{ repeat: 2, do: [ $loops ] }" i=$((i + 1)); done
refused 2 "nested loops" "loops in loops in loops" <<END
  main: [ $loops ]
END
{ base; cat; } >"$tmp/bad.yaml" <<'END'
  main: [ { repeat: 1000000000, do: [ { repeat: 1000000000, do: [ { repeat: 1000000000, do: [] } ] } ] } ]
END
timeout 60 "$gpupart" sim "$tmp/bad.yaml" >"$tmp/out" 2>&1
is $? 0 "loops of loops of nothing end"
sed 's/time: 1us }$/work: 100000000000, every: 10000 }/' >"$tmp/base2" <<END
$(base)
END
refused_file 2 "it takes longer than 19 hours" "a block that takes longer than the clock" <<END
$(cat "$tmp/base2")
  main: [ { launch: K, on: S } ]
END
refused 2 "there are more than 1000000 steps" "aliases of aliases" <<'END'
  main:
    - &a { repeat: 1, do: [ { launch: K, on: S }, { launch: K, on: S }, { launch: K, on: S }, { launch: K, on: S } ] }
    - &b { repeat: 1, do: [ *a, *a, *a, *a, *a, *a, *a, *a ] }
    - &c { repeat: 1, do: [ *b, *b, *b, *b, *b, *b, *b, *b ] }
    - &d { repeat: 1, do: [ *c, *c, *c, *c, *c, *c, *c, *c ] }
    - &e { repeat: 1, do: [ *d, *d, *d, *d, *d, *d, *d, *d ] }
    - &f { repeat: 1, do: [ *e, *e, *e, *e, *e, *e, *e, *e ] }
    - { repeat: 1, do: [ *f, *f, *f, *f, *f, *f, *f, *f ] }
END
refused_file 2 "gpu: 'h300' is not known: must be one of gtx1060, p100" "a chip that is not there" <<'END'
gpu: h300
programs: {}
END
refused_file 2 "is empty" "an empty file" </dev/null
refused_file 2 ":3: a second document: only one is allowed" "two documents" <<'END'
gpu: h200
---
gpu: h200
END
refused_file 2 ":4: kernels: the key 'K' is given twice" "a kernel twice" <<'END'
gpu: h200
kernels:
  K: { time: 1us }
  K: { time: 2us }
programs: {}
END
refused_file 2 ":3: scenario: the key 'gpu' is given twice" "a section twice" <<'END'
gpu: h200
programs: {}
gpu: h200
END
refused_file 2 ":3: scenario: the key 'kernel' is not known" "a section that is not known" <<'END'
gpu: h200
programs: {}
kernel: {}
END
refused_file 2 ":2: B: the key '<<' is not known" "a merge" <<'END'
gpu: h200
kernels: { A: &a { time: 1us }, B: { <<: *a } }
programs: {}
END
refused_file 2 ":1: not valid YAML: found undefined alias" "an alias of nothing" <<'END'
gpu: *x
END
refused_file 2 ":4: repeat: there are more than 15 nested loops" "an alias of what it stands in" <<'END'
gpu: h200
programs:
  main: &a
    - { repeat: 2, do: *a }
END
refused_file 2 ":3: after: there is no node 'B'" "a cycle in a graph" <<'END'
gpu: h200
kernels: { K: { time: 1us } }
graphs: { G: [ { node: A, kernel: K, after: [B] }, { node: B, kernel: K, after: [A] } ] }
programs: {}
END
refused_file 2 ":3: node: 'A' is given twice" "a node twice" <<'END'
gpu: h200
kernels: { K: { time: 1us } }
graphs: { G: [ { node: A, kernel: K }, { node: A, kernel: K } ] }
programs: {}
END
refused_file 2 ":1: gpus: two GPUs have the name 'a'" "two GPUs of a name" <<'END'
gpus: [ { name: a, chip: h200 }, { name: a, chip: h200 } ]
programs: {}
END
refused_file 2 ":2: kernels: a name must have 1 to 60 characters and no control character" "a name with an escape" <<'END'
gpu: h200
kernels: { "K\e[31m": { time: 1us } }
programs: {}
END
refused_file 2 ":2: runs: a name must have 1 to 60 characters" "a run's name with a line's end" <<'END'
gpu: h200
runs: { "r\n": {} }
programs: {}
END
refused_file 2 "the list 'runs' is empty" "no runs" <<'END'
gpu: h200
runs: {}
programs: {}
END
refused_file 2 ":3: stop: 0ns: must be more than 0" "a stop at once" <<'END'
gpu: h200
programs: {}
stop: 0ns
END
refused_file 2 ":3: expect: cannot read 'nan * gpu.end < inf'" "an expectation of no number" <<'END'
gpu: h200
programs: {}
expect: [ 'nan * gpu.end < inf' ]
END
# Nested as deeply as the file allows: libyaml alone would take minutes.
for open in '[' '{ a: ' '- '; do
	{ printf 'gpu: h200\nabout:\n  '; head -c 900000 /dev/zero | sed "s/\\x0/$open/g" | head -c 1000000; } >"$tmp/deep"
	refused_file 2 ":3: " "nested deeply by $open" <"$tmp/deep"
	has "$(cat "$tmp/err")" "lists and mappings are nested too deeply" "nested deeply by $open: why"
done
{
	echo "kernels:"
	i=0
	while [ $i -lt 5000 ]; do echo "  K$i: { time: 1us }"; i=$((i + 1)); done
} >"$tmp/keys"
refused_file 2 ":2: kernels: has more than 4096 keys" "more kernels than there may be" <<END
$(cat "$tmp/keys")
gpu: h200
programs: {}
END
refused_file 2 "has no 'programs:'" "no programs" <<'END'
gpu: h200
END
refused_file 2 ":2: kernel K: must have the key time, work or reads" "a kernel that does nothing" <<'END'
gpu: h200
kernels: { K: { blocks: 1 } }
programs: {}
END
printf 'gpu: h200\nprograms:\n  main: [ { sync: \001 } ]\n' >"$tmp/bytes"
refused_file 2 "bad.yaml" "a byte that is no text" <"$tmp/bytes"
head -c 1100000 /dev/zero | tr '\0' '#' >"$tmp/long"
refused_file 2 "bad.yaml: must be a scenario of at most 1048576 bytes" "a file that is too long" <"$tmp/long"
try sim /nonexistent
is "$status $err" "2 gpupart sim: /nonexistent: No such file or directory" "a file that is not there"
try sim
is "$status" 2 "no file"
try sim figure-3 --of svg
has "$status $err" "2 gpupart sim: --of svg: " "--of svg of two runs"
has "$err" "has 2 runs: choose one of these with --run" "--of svg of two runs: what to do"
try sim figure-3 --run none
is "$status" 2 "--run with no such run"
try sim figure-3 --of png
is "$status" 2 "--of png"
try sim figure-3 --json --of svg
is "$status" 2 "--json and --of"
tap_done
