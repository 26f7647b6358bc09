#!/bin/sh
# SPDX-License-Identifier: MIT
# gpupart plan: the sets of tenants on boards and generated GPUs, what is refused and why, saved
# plans in run, lines for a shell, YAML files and their errors.
. "$(dirname "$0")/tap.subr"
h200=sample:h200
e=sample:h200-e

# set NAME: that tenant's list in the plan on stdout.
set_of() { python3 -c "import json, sys
d = json.load(open('$tmp/out'))
print(*(t['set']['list'] for t in d['tenants'] if t['name'] == '$1'))"; }
get() { python3 -c "import json; d = json.load(open('$tmp/out')); print($1)"; }

# Known results.
try plan -i $h200 --tenant a:gpcs --json
is "$status $(get "d['schema'], d['command'], d['optimal'], d['tenants'][0]['set']['nr_tpcs']")" \
	"0 gpupart/1 plan True 66" "one tenant has all"
try plan -i $h200 --tenant a:gpcs,apart=b --tenant b:gpcs --json
is "$(get "[(t['set']['whole_gpcs'], t['ugpus']) for t in d['tenants']], d['left']['nr_tpcs']")" \
	"[([0, 1, 5, 6], [0]), ([2, 3, 4, 7], [1])] 0" "two apart: a uGPU each, whole"
try plan -i $e --tenant a:tpcs=6,gpcs --json
is "$(set_of a)" 0,8,16,24,62,65 "board e: six TPCs in whole GPCs are its GPC of six"
try plan -i $e --tenant a:tpcs=6,gpcs,cluster=8 --json
is "$(set_of a)" 0,8,16,24,62,65 "board e: its virtual GPC of four holds a cluster of 8"
refused 2 "tenant a: cluster=16 needs 8 TPCs in one GPC, but max=6 allows fewer" \
	plan -i $e --tenant a:tpcs=6,gpcs,cluster=16
# GPC 1 of board b has 8 TPCs, of which 4 are singletons; GPC 5 is the next with 8.
try plan -i $h200 --tenant a:tpcs=8,gpcs --json
is "$(set_of a)" 0,8,16,24,62-65 "board b: eight TPCs are GPC 1"
try plan -i $h200 --tenant a:tpcs=8,gpcs,cluster=16 --json
is "$(set_of a)" 4,12,20,28,35,42,49,56 "but not for a cluster of 16, which singletons do not hold"
refused 1 "would do" plan -i $e --tenant a:cluster=32
try plan -i $h200 --tenant a:tpcs=8,spread --tenant b:tpcs=8 --json
is "$(get "[len(t['ugpus']) for t in d['tenants']]")" "[2, 1]" "who spreads is in both uGPUs, who packs in one"
try plan -i $h200 --tenant a:min=8 --tenant b:min=8,weight=2 --json
is "$(get "[t['set']['nr_tpcs'] for t in d['tenants']]")" "[22, 44]" "shares go by weight"
try plan -i $h200 --tenant a:min=8 --tenant b:min=8,weight=2 --json
cp "$tmp/out" "$tmp/first"
try plan -i $h200 --tenant b:weight=2,min=8 --tenant a:min=8 --json
is "$(set_of a) $(set_of b)" "$(cp "$tmp/out" "$tmp/second"; cp "$tmp/first" "$tmp/out"; set_of a) $(set_of b)" \
	"the order of tenants makes no difference"

# Text: every set is in it, at most 80 columns, and no mention of simulation for a capture.
try plan -i $e --tenant llm:min=16,max=33,gpcs,cluster=8,apart=batch --tenant batch:min=8,max=20
is "$(awk 'length > 80 && !/^source:/ { print FNR }' "$tmp/out")" "" "text: at most 80 columns"
has "$out" "llm: 33 TPCs, 66 SMs in 4 GPCs, uGPU 0" "text: a tenant's line"
has "$out" "left over: 13 TPCs" "text: the TPCs that are left"

# Every made-up GPU has a plan for two small demands, or a message with the reason.
for capture in "$BUILD"/tests/generated/*.capture; do
	[ -e "$capture" ] || { skip "no made-up GPUs: make tests"; break; }
	try plan -i "$capture" --tenant a --tenant b:spread
	case "$status $err" in "0 " | "2 gpupart plan: tenant "* | "1 gpupart plan: tenant "*"would do") ok 0 "${capture##*/}" ;;
	*) ok 1 "${capture##*/}: $status $err" ;;
	esac
done

# Refused: the message names the demand and a possible value, which then works.
refused 1 "tenant b: min=30 cannot be met beside a on 66 TPCs: min=26 would do" \
	plan -i $h200 --tenant a:min=40 --tenant b:min=30
refused 1 "min=33, or no tie to others by same or apart would do" plan -i $h200 --tenant a:min=34,apart=b --tenant b
try plan -i $h200 --tenant a:min=40 --tenant b:min=26
is $status 0 "what would do does"
for bad in "a:min=0" "a:min=x" "a:min=257" "a:min=-1" "a:max=" "a:cluster=129" "a:weight=1001" "a:nosuch" \
	"a:min=1,min=2" "a:gpcs=2" "a:min=1," "a:apart=" ":min=1" "" "a b:min=1" "a:same=zz" "a:apart=a" \
	"a:min=3,max=2" "a:gpcs,spread" "a:cluster=8,max=3" "-a" "a:pack,spread" "a:spread,pack" "a:tpcs=2,max=4" \
	"a:min=2,tpcs=2" "a:min=010" "a:min=00" "a:mem" "a:mem=" "a:mem=0" "a:mem=20Q" "a:mem=-1G" "a:mem=1G,mem=1G"; do
	refused 2 "${bad%%:*}" plan -i $h200 "--tenant=$bad"
done
refused 2 "two tenants have the same name a" plan -i $h200 --tenant a --tenant a
refused 2 "no tenants" plan -i $h200
# The free home of 8 blocks leaves the GPC of the bound home of 4, which looks larger than it is.
try plan -i sample:h200-e --tenant t0:cluster=7 --tenant t1:cluster=3,weight=2 --tenant t2:min=18,gpcs \
	--tenant t3:min=26,gpcs --tenant t4:cluster=5 --tenant t5:cluster=3,same=t3
is "$status" 0 "homes that anybody's TPCs hold beside homes bound to a uGPU"
try plan -i $h200 --tenant llm:min=16,gpcs --tenant batch:min=8 --of picture
is "$status $(grep -c '^ A    llm: \| B    batch: ' "$tmp/out")" "0 2" "plan --of picture: a line of the legend each"
has "$(cat "$tmp/out")" " 0    A" "and TPCs in boxes"
"$gpupart" plan -i $h200 --tenant llm:min=16,gpcs --tenant b.2:min=8 --of svg -o "$tmp/plan.svg" 2>"$tmp/err" ||
	cat "$tmp/err"
if command -v python3 >/dev/null; then
	is "$(python3 - "$tmp/plan.svg" <<'END'
import sys, xml.dom.minidom
texts = ["".join(n.data for n in t.childNodes if n.data)
         for t in xml.dom.minidom.parse(sys.argv[1]).getElementsByTagName("text")]
print(texts.count("llm"), texts.count("b.2"))
END
)" "1 1" "plan --of svg: is XML and names each tenant once"
else
	skip "no python3"
fi
try plan -i $h200 --tenant a -o "$tmp/named.svg"
is "$status $(head -c 5 "$tmp/named.svg")" "0 <?xml" "plan -o FILE.svg: a drawing"
try plan -i $h200 --tenant a --of text -o "$tmp/named.svg"
is "$status $(head -c 6 "$tmp/named.svg")" "0 NVIDIA" "but not where another form is given"
try topology -i $h200 -o "$tmp/named.svg"
is "$status $(head -c 5 "$tmp/named.svg")" "0 <?xml" "topology -o FILE.svg: a drawing"
try topology -i $h200 --json -o "$tmp/named.svg"
is "$status $(head -c 1 "$tmp/named.svg")" "0 {" "and with --json JSON"
refused 2 svgg plan -i $h200 --tenant a --of svgg
refused 2 "--json and --of env: use only one of them" plan -i $h200 --tenant a --of env --json
refused 2 "--only b" plan -i $h200 --tenant a --only b
refused 2 "nothing runs on a capture" plan -i $h200 --tenant a --beside
# shellcheck disable=SC2046 # words
refused 2 "at most 16" plan -i $h200 $(printf -- '--tenant t%s ' 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17)
refused 2 "does not report uGPUs" plan -i "$BUILD/tests/generated/10.capture" --tenant a:apart=b --tenant b

# A file, equal to options; errors are reported with line and key.
yaml() { printf "$1" >"$tmp/y"; }
yaml 'tenants:\n  a:\n    min: 8\n  b: {min: 8, weight: 2, same: [a]}\n  c: tpcs=2,spread\n  d:\n'
try plan -i $h200 -f "$tmp/y" --json
is "$status $(get "[t['name'] for t in d['tenants']]")" "0 ['a', 'b', 'c', 'd']" "a file of four tenants"
cp "$tmp/out" "$tmp/plan.json"
one=$(set_of b)
try plan -i $h200 --tenant a:min=8 --tenant b:min=8,weight=2,same=a --tenant c:tpcs=2,spread --tenant d --json
is "$(set_of b)" "$one" "the same as with options"
wrong() {	# TEXT WANTED
	yaml "$1"
	refused 2 "$2" plan -i $h200 -f "$tmp/y"
}
wrong 'tenants:\n  a:\n    min: x\n' "y:3: a.min: min=x: must be a number from 1 to 256"
wrong 'tenants:\n  a:\n    nosuch: 1\n' "y:3: a: 'nosuch' is not a key"
wrong 'tenants:\n  a:\n    min: [1]\n' "y:3: a.min: must have one value"
wrong 'tenants:\n  a:\n    min:\n' "y:3: a.min: has no value"
wrong 'tenants:\n  a:\n    min: 1\n    min: 2\n' "y:4: a.min: the key min is given twice"
wrong 'tenants:\n  a: {}\n  a: {}\n' "y:3: a: this tenant is defined twice"
wrong 'tenants:\n  a: [1]\n' "y:2: a: this tenant must have keys"
wrong 'tenants: [a]\n' "y:1: tenants: below this key, list the name of each tenant"
wrong 'tennants:\n  a:\n' "y:1: 'tennants' is not a key of the file"
wrong 'tenants:\n  a: {min: 1\n' "y:3: not valid YAML"
wrong '' "the file is empty"
wrong '{}' "the file is empty"
wrong 'tenants:\n  a:\n    gpcs: perhaps\n' "y:3: a.gpcs: gpcs=perhaps: must be true or false"
wrong 'tenants:\n  a:\n    apart: [{}]\n' "y:3: a.apart: the value must be a list"
wrong 'tenants: &x\n  a: *x\n' "y:"
wrong 'tenants:\n  a:\n---\ntenants:\n  b:\n' "y:4: a second document: only one is allowed"
wrong 'tenants:\n  a:\n...\nrubbish\n' "y:4: not valid YAML"
wrong 'tenants:\n  a: {min: 010}\n' "y:2: a.min: min=010: must be a number from 1 to 256 without a leading 0"
wrong 'tenants:\n  a: {gpcs: tRue}\n' "gpcs=tRue: must be true or false"
wrong 'tenants:\n  a: {min: ~}\n' "y:2: a.min: has no value"
wrong 'tenants:\n  a: {min: Null}\n' "y:2: a.min: has no value"
wrong 'tenants:\n  a: "null"\n' "'null' is not a key"
wrong 'tenants:\n  a: {pack: true, spread: true}\n' "y:2: a.spread: pack and spread: use only one of them"
yaml '%%YAML 1.1\n---\ntenants:\n  a: {tpcs: 9, gpcs: True}\n  b: {min: 1, gpcs: OFF}\n  c: Null\n  d: ~\n  e: NULL\n...\n# words\n'
try plan -i $h200 -f "$tmp/y" --json
is "$status $(get "[len(t['set']['whole_gpcs']) for t in d['tenants']][0], len(d['tenants'])")" "0 1 5" \
	"true, false and null in YAML's spellings; an end and words after it"
{ printf 'tenants:\n  a:\n'; head -c 1100000 /dev/zero | tr '\0' '#'; } >"$tmp/long"
refused 2 "-f $tmp/long: must be a file of demands of at most 1048576 bytes" plan -i $h200 -f "$tmp/long"
cat "$tmp/long" | "$gpupart" plan -i $h200 -f /dev/stdin >"$tmp/out" 2>"$tmp/err"
is "$? $(grep -c "at most 1048576 bytes" "$tmp/err")" "2 1" "and from a pipe"
refused 2 /nonexistent plan -f /nonexistent
refused 2 "is not a file" plan -f /
head -c 4096 /dev/urandom >"$tmp/y"
try plan -i $h200 -f "$tmp/y"
is "$status $(wc -l <"$tmp/err")" "2 1" "a file of noise is refused in one line"

# A saved plan in run: the set, the name; refused if the membership of TPCs differs.
try run -i $h200 --plan "$tmp/plan.json:b" -- sh -c 'echo $GPUPART_SET $GPUPART_NAME'
is "$status $out" "0 $one b" "run --plan: the tenant's set and name"
try run -i $h200 --plan "$tmp/plan.json:b" --name other -- sh -c 'echo $GPUPART_NAME'
is "$out" other "run --plan --name: the name that was given"
refused 125 "made for topology $(python3 -c "import json; print(json.load(open('$tmp/plan.json'))['topology_hash'])")" \
	run -i $e --plan "$tmp/plan.json:b" -- true
has "$err" "h200-e.capture has topology $("$gpupart" topology -i $e --json | sed -n 's/.*"hash": "\([0-9a-f]*\)".*/\1/p')" \
	"and the board's hash is there too"
refused 125 "this plan has no tenant with this name: zz" run -i $h200 --plan "$tmp/plan.json:zz" -- true
refused 125 "use only one of them" run -i $h200 --plan "$tmp/plan.json:b" -t 0 -- true
refused 125 "must be FILE:NAME" run -i $h200 --plan plan.json -- true
"$gpupart" topology -i $h200 --json >"$tmp/t.json"
refused 125 "this is not a plan: the file must be the output of 'gpupart plan --json'" run -i $h200 --plan "$tmp/t.json:b" -- true
refused 125 ": not JSON" run -i $h200 --plan "$tmp/y:b" -- true
{ cat "$tmp/plan.json"; head -c 1100000 /dev/zero | tr '\0' ' '; } >"$tmp/long.json"
refused 125 "--plan $tmp/long.json:b: a plan must have at most 1048575 bytes" run -i $h200 --plan "$tmp/long.json:b" -- true
edited() {	# WANTED PYTHON: the plan changed so is refused
	python3 -c "import json, sys
d = json.load(open('$tmp/plan.json')); a, b = d['tenants'][0], d['tenants'][1]
$2
json.dump(d, open('$tmp/bad.json', 'w'))"
	refused 125 "--plan $tmp/bad.json:b: $1" run -i $h200 --plan "$tmp/bad.json:b" -- true
}
edited "'list', 'hex' and 'nr_tpcs' of a tenant's set contradict each other: b" "b['set']['list'] = '0-99'"
edited "'list', 'hex' and 'nr_tpcs' of a tenant's set contradict each other: b" "b['set']['nr_tpcs'] += 1"
edited "'list', 'hex' and 'nr_tpcs' of a tenant's set contradict each other: a" "a['set']['hex'] = '0x1'"
edited "'list', 'hex' and 'nr_tpcs' of a tenant's set contradict each other: b" "b['set'] = 3"
edited "a tenant has TPCs of another tenant: b" "b['set'] = a['set']"
edited "the plan has this tenant twice: b" "a['name'] = 'b'"
edited "a tenant has no name" "a['name'] = 1"
edited "this is not a valid name of a tenant: -a" "a['name'] = '-a'"
edited "'mem_bytes' is not a number of bytes: a" "a['mem_bytes'] = '20G'"
edited "'mem_bytes' is not a number of bytes: a" "a['mem_bytes'] = 0"
edited "the file has too many tenants for one plan" "d['tenants'] *= 5"
edited "TPC 70" "b['set'] = dict(list='70', hex=hex(1 << 70), nr_tpcs=1)"

# A quota: as text, in the file, in the program's environment; --mem takes precedence.
try plan -i $h200 --tenant a:gpcs,min=8,mem=1.5G --tenant b
has "$out" "a: 33 TPCs, 66 SMs in 4 GPCs, uGPU 0, 1.50 GiB" "mem=: in the tenant's line"
try plan -i $h200 --tenant a:gpcs,min=8,mem=1.5G --tenant b --json
is "$(get "[t['mem_bytes'] for t in d['tenants']]")" "[1610612736, None]" "mem=: in the file"
cp "$tmp/out" "$tmp/mem.json"
env_of='echo $GPUPART_TENANT $GPUPART_MEM'
try run -i $h200 --plan "$tmp/mem.json:a" -- sh -c "$env_of"
is "$status $out" "0 a 1610612736" "run --plan: the tenant's quota"
try run -i $h200 --plan "$tmp/mem.json:a" --name other --mem 512 -- sh -c "$env_of"
is "$status $out" "0 other 512" "--name and --mem go before the plan's"
try run -i $h200 --plan "$tmp/mem.json:b" -- sh -c "$env_of"
is "$status $out" "0 " "a tenant without one has none"
python3 -c "import json; d = json.load(open('$tmp/mem.json')); [t.pop('mem_bytes') for t in d['tenants']]
json.dump(d, open('$tmp/old.json', 'w'))"
try run -i $h200 --plan "$tmp/old.json:a" -- sh -c "$env_of"
is "$status $out" "0 " "a plan of an earlier version has none"
yaml 'tenants:\n  a: {min: 8, mem: 20G}\n'
try plan -i $h200 -f "$tmp/y" --json
is "$(get "d['tenants'][0]['mem_bytes']")" 21474836480 "mem: in a file of demands"
wrong 'tenants:\n  a:\n    mem: much\n' "y:3: a.mem: mem=much: 'much' is not a size"
refused 2 "cannot set the tenant's mem=" plan -i $h200 --tenant a:mem=1G --only a --of env
refused 125 "must be a file" run -i $h200 --plan "-:a" -- true

# For a shell: all tenants, and one whose lines confine a program as run does.
try plan -i $h200 --tenant a.1:tpcs=8,gpcs --tenant b --of env
is "$(eval "$out"; echo "$SET_a_1")" "0,8,16,24,62-65" "env: SET_NAME for each"
refused 2 "would both set the variable SET_a_1" plan -i $h200 --tenant a.1 --tenant a_1 --of env
sim() { LD_LIBRARY_PATH=$BUILD/lib/gpupart/sim GPUPART_SIM=$BUILD/share/gpupart/captures/h200.capture "$@"; }
for args in "--tenant a --tenant b:mem=500G" "--gpu 0 --tenant a:mem=500G --json"; do
	sim "$gpupart" plan $args >"$tmp/out" 2>"$tmp/err"
	is "$? $(cat "$tmp/out" "$tmp/err")" \
		"2 gpupart plan: a quota of 500 GiB exceeds the memory of GPU 0000:01:00.0, which has 140.40 GiB" \
		"$args: more memory than the GPU here has"
done
sim "$gpupart" plan --tenant a:mem=140G --tenant b:mem=140G >"$tmp/out" 2>"$tmp/err"
is "$?" 0 "quotas of more than that in all: planned"
sim "$gpupart" plan --tenant a:tpcs=8,gpcs --tenant b --only a --of env >"$tmp/env" 2>"$tmp/err"
is "$?" 0 "env of the GPU that is here"
is "$(. "$tmp/env"; env | grep -c '^GPUPART_\(SET\|GPU\|NAME\|CHECKED\)=\|^CUDA_INJECTION64_PATH=')" 5 \
	"env: all that run sets"
if ${CC:-cc} -o "$tmp/census" tests/cli/census.c -ldl 2>"$tmp/err"; then
	# An unmodified program, started by that shell: it sees the SMs of GPC 1's TPCs.
	smids=$(. "$tmp/env"; sim "$tmp/census" lib/confine/probe.ptx 0)
	is "$(echo "$smids" | tr ' ' '\n' | sed '/^$/d' | sort -n | uniq | tr '\n' ' ')" \
		"0 1 16 17 32 33 48 49 124 125 126 127 128 129 130 131 " "eval env; PROGRAM: it is confined"
else
	skip "no compiler here"
fi

# Inside a run: plans are made within its limit, and the lines apply there.
in_run() { "$gpupart" run -i $e -t 0-3 -- "$gpupart" plan "$@" >"$tmp/out" 2>"$tmp/err"; }
in_run --tenant a --json
is "$? $(set_of a) $(get "d['limit']['list'], d['simulated']")" "0 0-3 0-3 True" "in a run: the plan is inside its limit"
in_run --tenant a
has "$(cat "$tmp/out")" "inside TPCs 0-3, the limit of this process (GPUPART_SET)" "and it says so"
has "$(cat "$tmp/out")" "simulated" "and that it is simulated"
in_run --tenant a --of svg
has "$(cat "$tmp/err")" "a plan for 0000:01:00.0, simulated" "in a drawing's place stderr says simulated"
in_run --beside --tenant a:min=4 --json
is "$? $(set_of a)" "0 0-3" "--beside: the run's own limit is no neighbour"
in_run --tenant a:tpcs=8
is "$?" 1 "more than the limit: refused"
has "$(cat "$tmp/err")" "cannot be met on 4 TPCs: min=4 would do; this process has the limit 0-3 (GPUPART_SET)" \
	"with the limit"
in_run --gpu 9 --tenant a
is "$?" 2 "in a run: another GPU is refused"
in_run -i $h200 --tenant a --only a --of env
is "$?$(cat "$tmp/out")" 2 "in a run: no lines of another GPU"
has "$(cat "$tmp/err")" "-i $h200: this process has the limit 0-3" "and why"
in_run -i $h200 --tenant a --json
is "$? $(set_of a)" "0 0-65" "but a capture's plan is of all of it"
if [ -x "$tmp/census" ]; then
	smids=$("$gpupart" run -i $e -t 0-65 -- sh -c 'eval "$("$1" plan --tenant a:max=4 --tenant b --only a --of env)"
		"$2" lib/confine/probe.ptx 0' sh "$gpupart" "$tmp/census" 2>"$tmp/err")
	is "$smids" "8 9 24 25 40 41 56 57" "in a run, eval env; PROGRAM: it is confined to the tenant's set"
else
	skip "no compiler here"
fi

# Running programs are left out only with --beside.
mkfifo "$tmp/hold"
"$gpupart" run -i $h200 -g 0 -- sh -c 'echo there; read x' <"$tmp/hold" >"$tmp/there" 2>/dev/null &
exec 9>"$tmp/hold"
for _ in $(seq 300); do
	grep -q there "$tmp/there" && break
	sleep 0.2
done
sim "$gpupart" plan --tenant a --json >"$tmp/out" 2>&1
is "$(get "d['tenants'][0]['set']['nr_tpcs']")" 66 "a plan is of the whole GPU, whoever is on it"
sim "$gpupart" plan --tenant a --beside --json >"$tmp/out" 2>&1
is "$(get "d['tenants'][0]['set']['nr_tpcs'], d['tenants'][0]['set']['whole_gpcs']")" \
	"57 [1, 2, 3, 4, 5, 6, 7]" "with --beside without the TPCs of what runs"
exec 9>&-
wait
tap_done
