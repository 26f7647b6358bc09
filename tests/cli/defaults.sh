#!/bin/sh
# SPDX-License-Identifier: MIT
# Defaults and familiar units: GPUPART_INPUT, the configuration files and their named sets,
# shares, SMs, shapes, and gpupart without a command.
. "$(dirname "$0")/tap.subr"
unset GPUPART_JOB
h200="-i sample:h200"
config=$XDG_CONFIG_HOME/gpupart/config
mkdir -p "${config%/*}"

# set_of ARGS: the TPCs of a program in run ARGS.
# shellcheck disable=SC2016 # expanded by the program
set_of() {
	try run "$@" -- sh -c 'echo "$GPUPART_SET"'
	echo "$out"
}
# count LIST: its number of TPCs; nr_of ARGS: the number of TPCs of a program in run ARGS.
count() {
	echo "$1" | tr ',' '\n' | awk -F - '{ nr += $NF - $1 + 1 } END { print nr }'
}
nr_of() {
	count "$(set_of "$@")"
}

# ---------------------------------------------------------------- GPUPART_INPUT
export GPUPART_INPUT=sample:h200-e
for command in topology verify "run -n 4 -- true" "cdi -n 4" "plan --tenant a" "stat -- true" "trace gpc:0" demo slurm-node; do
	# shellcheck disable=SC2086 # words
	try $command
	is "$status" 0 "GPUPART_INPUT: $command"
done
is "$("$gpupart" topology | head -n 4)" "$("$gpupart" topology -i sample:h200-e | head -n 4)" "it is what -i would be"
is "$("$gpupart" topology -i sample:h200 | sed -n 2p)" "$(GPUPART_INPUT='' "$gpupart" topology -i sample:h200 | sed -n 2p)" "-i holds before it"
try ps
is "$status $err" "0 " "ps has no use for it"
try slurm-node --list
is "$(echo "$err" | grep -c 'h200-e')" 0 "nor slurm-node --list"
# shellcheck disable=SC2016 # expanded by the program
try run -t 0-7 -- sh -c 'GPUPART_INPUT=sample:h200 "$0" run -t 3 -- sh -c "echo \$GPUPART_SET \$GPUPART_SIM"' "$gpupart"
has "$status $out" "0 3 " "inside a simulated run it is no way out of its set"
has "$out" "/h200-e.capture" "and that run's GPU is used"
for source in nosuch sample:nosuch /dev/null; do
	export GPUPART_INPUT=$source
	for command in topology verify "plan --tenant a" "cdi -n 4"; do
		# shellcheck disable=SC2086 # words
		refused 2 "GPUPART_INPUT=$source: " $command
	done
	refused 125 "GPUPART_INPUT=$source: " run -n 4 -- true
done
export GPUPART_INPUT=rm
refused 2 "GPUPART_INPUT=rm: there is no NVIDIA driver" topology
refused 125 "no NVIDIA driver here" run -n 4 -- true
has "$err" "see 'gpupart doctor', or try -i sample:h200" "without a GPU: what to do"
unset GPUPART_INPUT

# -------------------------------------------------------------------- named sets
printf '# ours\nset.serve = -u 0\nset.mix=-t 0 --sms 4 # two more\nset.a.b-c = --gpcs=1,2\ndefault.input = sample:h200\n' >"$config"
is "$(set_of @serve)" "$(set_of $h200 -u 0)" "@serve, on the GPU that the file names"
is "$(set_of @serve -t 1)" "$(set_of $h200 -u 0 -t 1)" "with more beside it"
is "$(set_of -t 1 @a.b-c)" "$(set_of $h200 -g 1,2 -t 1)" "behind an option, too"
is "$(set_of @serve @a.b-c --name x)" "$(set_of $h200 -u 0 -g 1,2)" "two, and an option behind them"
is "$(set_of @mix | tr ',' '\n' | wc -l)" "$(set_of $h200 -t 0 -n 2 | tr ',' '\n' | wc -l)" "of several options"
try run @serve sh -c 'echo "$1"' sh @nope
is "$status $out" "0 @nope" "a program's own words are left alone"
printf '#!/bin/sh\necho "ran $*"\n' >"$tmp/@serve"
chmod +x "$tmp/@serve"
# shellcheck disable=SC2097,SC2098 # for that one command
PATH=$tmp:$PATH "$gpupart" run -t 0 -- @serve @mix >"$tmp/out" 2>/dev/null
is "$(cat "$tmp/out")" "ran @mix" "behind -- it is the program"
refused 125 "@nope: no such set: the named sets are @serve, @mix, @a.b-c" run @nope -- true
refused 2 "@: no such set" cdi @
try cdi @serve
is "$status" 0 "cdi takes one"
try stat @serve -- true
is "$status" 0 "so does stat"
try run @serve -i sample:h200-e -- true
is "$status" 0 "-i holds before the file's"
printf 'default.input = nosuch\n' >"$config"
refused 2 "$config:1: default.input = nosuch: No such file" topology
GPUPART_INPUT=sample:h200 try topology
is "$status" 0 "GPUPART_INPUT holds before the file's"

# bad LINE WORDS: such a file is an error, with its name and line.
bad() {
	printf 'set.x = -t 0\n%b\n' "$1" >"$config"
	refused 125 "$config:2: $2" run $h200 @x -- true
	refused 2 "$config:2: $2" cdi $h200 @x
}
bad 'sets.y = -t 0' "'sets.y' is not a key: must be set.NAME, default.input or default.shape"
bad 'set. = -t 0' "'set.' is not a key"
bad 'set.a b = -t 0' "'set.a b' is not a key"
bad 'strict = yes' "'strict' is not a key"
bad 'default.gpu = 0' "'default.gpu' is not a key"
bad 'set.x = -t 1' "'set.x' is given twice"
printf 'set.x = -t 0\n#set.z = -t 0\n set.z = -t 1 # 1\nset.zz=-t 2\n\n\tset.z=-t 3\n' >"$config"
refused 125 "$config:6: 'set.z' is given twice" run $h200 @x -- true
printf 'set.x = -t 0\n#set.z = -t 0\n set.Z = -t 1 # 1\nset.zz=-t 2\n\n\tset.z=-t 3\n' >"$config"
try run $h200 @zz -- true
is "$status" 0 "keys that begin with another one, or differ in case, are other keys"
bad 'set.y =' "'set.y' has no value"
bad 'set.y' "'set.y' is not valid: must be KEY = VALUE"
for words in "--nosuch" "-i sample:h200" "--json" "-t" "5" "-t 0 -- true" "@x" "-h" "--tpc 0"; do
	printf 'set.y = %s\n' "$words" >"$config"
	refused 125 "" run $h200 @y -- true
done
printf 'set.y = --json\n' >"$config"
refused 125 "$config:1: set.y = --json: must be options for a set" run $h200 @y -- true
printf 'set.y = -t 0 5\n' >"$config"
refused 125 "$config:1: set.y = -t 0 5: '5' is not an option for a set" run $h200 @y -- true
for value in "-n 500%" "-g 99" "-t 0+1"; do
	printf 'set.y = %s\n' "$value" >"$config"
	try run $h200 @y -- true
	is "$status $(tail -n 1 "$tmp/err")" "125 gpupart run: the set includes $config:1: set.y = $value" "@y: $value: says where that is"
done
printf 'default.shape = round\n' >"$config"
refused 125 "$config:1: default.shape = round: the shape must be packed, gpcs, balanced or spread" run $h200 -n 4 -- true
try run $h200 -n 4 --shape packed -- true
is "$status" 0 "which --shape has no need of"
try run $h200 -t 4 -- true
is "$status" 0 "nor -t"
printf 'nosuch = 1\n' >"$config"
try doctor --no-launch
has "$err" "$config:1: 'nosuch' is not a key" "doctor says what is wrong with the file"
has "$out" "node-config" "and goes on"

printf 'set.serve = -u 0\n' >"$config"
for mode in 666 664 622; do
	chmod $mode "$config"
	try run $h200 @serve -- true
	is "$status $(echo "$err" | grep -c "^gpupart run: $config is ignored: other users can write it$")" "125 1" "mode $mode: ignored, and said"
done
chmod 600 "$config"
is "$(set_of $h200 @serve)" "$(set_of $h200 -u 0)" "mode 600 is right"
mv "$config" "$tmp/kept"
for kind in folder pipe link; do
	case $kind in
	folder) mkdir "$config" && why="Is a directory" ;;
	pipe) mkfifo "$config" && why="is not a regular file" ;;
	link) ln -s nowhere "$config" && why="No such file or directory" ;;
	esac
	refused 125 "$config: $why" run $h200 -n 4 -- true
	rm -rf "$config"
done
mv "$tmp/kept" "$config"
unset XDG_CONFIG_HOME
mkdir -p "$tmp/home/.config"
mv "${config%/*}" "$tmp/home/.config/"
is "$(HOME=$tmp/home set_of $h200 @serve)" "$(set_of $h200 -u 0)" "HOME/.config without XDG_CONFIG_HOME"
HOME=relative try run $h200 @serve -- true
is "$status" 125 "a HOME that is no full path has none"
export XDG_CONFIG_HOME="$tmp/home/.config"
config=$XDG_CONFIG_HOME/gpupart/config

if [ "$(id -u)" -ne 0 ] || ! unshare -m true 2>/dev/null; then
	skip "/etc/gpupart/config, other users: needs root"
else
	chmod 644 "$config"
	# Root reads no other user's file, and this user no third user's.
	chown 1234 "$config"
	try run $h200 @serve -- true
	has "$status $err" "125 gpupart run: $config is ignored: other users can write it" "root reads no other user's file"
	mkdir -p "$tmp/etc/gpupart"
	cp -a /etc/ld.so.* /etc/passwd /etc/group "$tmp/etc/" 2>/dev/null
	chmod 755 "$tmp" "$tmp/home" "$tmp/home/.config" "$tmp/home/.config/gpupart"
	# node USER ARGS: as that user, with a private /etc.
	node() {
		user=$1
		shift
		# shellcheck disable=SC2016 # expanded by the inner shell
		unshare -m sh -c 'mount --bind "$0" /etc && user=$1 && shift && exec setpriv --reuid "$user" --clear-groups "$@"' "$tmp/etc" "$user" \
			env HOME=/ "$gpupart" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
		status=$?
		out=$(cat "$tmp/out")
		err=$(cat "$tmp/err")
	}
	printf 'strict = no\nset.serve = -u 1\nset.node = -t 9\n' >"$tmp/etc/gpupart/config"
	node 1234 run $h200 @serve -- printenv GPUPART_SET
	is "$status $out" "0 $(set_of $h200 -u 0)" "a name in both files: the user's"
	node 1234 run $h200 @node -- printenv GPUPART_SET
	is "$status $out" "0 9" "a name of the node's"
	node 1234 run $h200 @nope -- true
	has "$err" "the named sets are @serve, @node" "both are listed, each name once"
	node 1235 run $h200 @serve -- printenv GPUPART_SET
	is "$(echo "$err" | grep -c "$config is ignored")" 1 "a third user's file is not read, which is reported once"
	is "$status $out" "0 $(set_of $h200 -u 1)" "and the node's holds"
	printf 'set.serve = -u 1\nsets = 1\n' >"$tmp/etc/gpupart/config"
	node 1234 run $h200 @node -- true
	has "$status $err" "125 gpupart run: /etc/gpupart/config:2: 'sets' is not a key: must be strict" "another key in the node's"
	printf 'strict = yes\nset.serve = -u 1\ndefault.shape = spread\n' >"$tmp/etc/gpupart/config"
	node 1234 run $h200 @serve -- printenv GPUPART_STRICT
	is "$status $out" "0 1" "strict holds beside named sets"
	chmod 666 "$tmp/etc/gpupart/config"
	node 1235 run $h200 @serve -- true
	has "$status $err" "125 gpupart run: $config is ignored" "neither file may be read"
	has "$err" "/etc/gpupart/config is ignored: other users can write it" "and both are named"
fi
rm -f "$config"

# ----------------------------------------------------------- shares, SMs and shapes
for pair in "50%:33" "100%:66" "1.6%:1" "12.5%:8" "33.4%:22" "99%:65"; do
	is "$(nr_of $h200 -n "${pair%:*}")" "${pair#*:}" "-n ${pair%:*}"
done
# shellcheck disable=SC2016 # expanded by the program
try run $h200 -t 0-15 -- sh -c '"$0" run -n 50% -- printenv GPUPART_SET' "$gpupart"
is "$(count "$out") $status" "8 0" "inside a run: of its set"
for share in 0% 101% -5% % 5%% 5%x x% 1e400% 1e2% 1.2.3% .% 'nan%' ' 5%'; do
	refused 125 "-n $share: must be a number of TPCs, 1 to 256, or a share such as 50%" run $h200 -n "$share" -- true
done
for share in 0.1% 1.5%; do
	refused 125 "-n $share: this share is less than 1 of 66 TPCs" run $h200 -n "$share" -- true
done
is "$(nr_of $h200 --sms 32) $(nr_of $h200 --sms 31) $(nr_of $h200 --sms 1) $(nr_of $h200 --sms 2 -n 3)" "16 16 1 4" "--sms: whole TPCs, rounded up, and added to -n"
try run $h200 --sms 31 -- true
has "$err" "--sms 31: rounded up to 16 whole TPCs, 32 SMs" "and says so"
try run $h200 --sms 32 -- true
is "$(echo "$err" | grep -c rounded)" 0 "but not of an even number"
refused 125 "--sms 0: must be a number of SMs" run $h200 --sms 0 -- true
refused 125 "--sms 50%: must be a number of SMs" run $h200 --sms 50% -- true
refused 125 "--sms 134: 67 TPCs: only 66 TPCs are left to choose from" run $h200 --sms 134 -- true
refused 125 "-n 50% --sms 100: 83 TPCs: only 66 TPCs are left to choose from" run $h200 -n 50% --sms 100 -- true
refused 125 "-n 67: 67 TPCs: only 66 TPCs are left to choose from" run $h200 -n 67 -- true

is "$(set_of $h200 -n 20 --shape packed)" "$(set_of $h200 -n 20)" "--shape packed is what -n does"
is "$(set_of $h200 -n 34 --shape gpcs)" "$(set_of $h200 -g 0-2,7)" "--shape gpcs: four whole GPCs of both uGPUs"
is "$(set_of $h200 -n 33 --shape balanced)" "$(set_of $h200 -g 0-3)" "--shape balanced: two of each uGPU"
refused 125 "--shape balanced with -n 30: no choice of equally many whole GPCs from each uGPU has 30 TPCs in total: 18 or 32 would do" run $h200 -n 30 --shape balanced -- true
refused 125 "has 1 TPC in total: 16 would do" run $h200 -n 1 --shape balanced -- true
is "$(set_of $h200 -n 8 --shape spread | tr ',-' '\n\n' | wc -l)" 7 "--shape spread: 4 TPCs of one GPC, and the rest elsewhere"
refused 125 "--shape round: the shape must be packed, gpcs, balanced or spread" run $h200 -n 4 --shape round -- true
refused 125 "--shape spread: needs -n or --sms" run $h200 -t 4 --shape spread -- true
refused 2 "--shape spread: needs -n or --sms" set -p 1 --shape spread
printf 'default.shape = balanced\n' >"$config"
is "$(set_of $h200 -n 33)" "$(set_of $h200 -g 0-3)" "default.shape"
rm "$config"
# TPCs of other programs are avoided if the shape is possible without them, and named if not.
# shellcheck disable=SC2016 # expanded by the program
try run $h200 -n 33 --shape balanced --name one -- sh -c '"$0" run -i sample:h200 --exec -n 2 -- true; env -u GPUPART_SET -u GPUPART_GPU -u GPUPART_JOB "$0" run -n 33 --shape balanced -- printenv GPUPART_SET
	env -u GPUPART_SET -u GPUPART_GPU -u GPUPART_JOB "$0" run -n 34 --shape balanced -- true' "$gpupart"
is "$(echo "$out" | tail -n 1)" "$(set_of $h200 -g 4-7)" "the second half is the other four GPCs"
has "$err" "are also used by running programs: the free TPCs contain no set of this shape" "what cannot be had without others' TPCs takes them, and says so"

plan_of() {
	"$gpupart" plan $h200 "$@" --json | python3 -c 'import json, sys
for t in json.load(sys.stdin)["tenants"]: print(t["name"], t["set"]["list"])'
}
is "$(plan_of --tenant a:tpcs=33,shape=balanced)" "a $(set_of $h200 -g 0-3)" "plan: shape=balanced"
is "$(plan_of --tenant a:min=20,shape=gpcs --tenant b:tpcs=9,shape=spread)" "$(plan_of --tenant a:min=20,gpcs --tenant b:tpcs=9,spread)" "shape=gpcs and shape=spread are gpcs and spread"
is "$(plan_of --tenant a:tpcs=9,shape=packed)" "$(plan_of --tenant a:tpcs=9)" "shape=packed is neither"
printf 'tenants:\n  a: {tpcs: 33, shape: balanced}\n  b: min=8\n' >"$tmp/plan.yaml"
is "$(plan_of -f "$tmp/plan.yaml" | head -n 1)" "a $(set_of $h200 -g 0-3)" "the same in a file"
refused 1 "tenant a: min=30,max=30,shape=balanced cannot be met on 66 TPCs" plan $h200 --tenant a:tpcs=30,shape=balanced
has "$err" "max=32" "and what would do is tried"
refused 2 "shape=round: the shape must be packed, gpcs, balanced or spread" plan $h200 --tenant a:shape=round
for keys in shape=gpcs,gpcs spread,shape=packed pack,shape=spread; do
	refused 2 "use only one of them" plan $h200 --tenant "a:$keys"
done
refused 2 "gpcs and spread: use only one of them, or use shape=balanced" plan $h200 --tenant a:gpcs,spread
refused 2 "shape=balanced needs GPCs of every uGPU" plan $h200 --tenant a:shape=balanced,apart=b --tenant b

# ------------------------------------------------------------- without a command
try
is "$status $err" "0 " "gpupart alone is no error"
[ "$(wc -l <"$tmp/out")" -le 12 ]
ok $? "and says what is here in 12 lines at most"
if [ ! -e /dev/nvidiactl ]; then
	is "$(sed -n 's/^  gpupart \([a-z]* *[-a-z0-9: ]*[a-z0-9]\)  .*/\1/p' "$tmp/out" | head -n 2 | tr '\n' '/')" "doctor/demo -i sample:h200/" "without a GPU: doctor first, then sample:h200"
	has "$out" "no NVIDIA driver: /dev/nvidiactl does not exist" "and why"
fi
GPUPART_INPUT=sample:h200 try
has "$out" "GPU NVIDIA H200, 66 TPCs in 8 GPCs" "of the GPU that is meant"
GPUPART_INPUT=nosuch try
has "$status $out" "0 gpupart" "a missing GPU is reported"
has "$out" "nosuch: No such file" "by name"
is "$(echo "$out" | grep -c 'doctor')" 1 "with what to do"
${CC:-gcc} -o "$tmp/hold" tests/cli/hold.c -ldl || exit 1
# running: the number of programs that it reports.
running() {
	try
	echo "$out" | sed -n 's/^\([0-9]*\) program.* confined: see .gpupart ps.$/\1/p; s/^no program runs confined$/0/p'
}
before=$(running)
mkfifo "$tmp/in" "$tmp/out.fifo"
# shellcheck disable=SC2086 # words
"$gpupart" run --exec $h200 -t 3-9 -- "$tmp/hold" <"$tmp/in" >"$tmp/out.fifo" 2>/dev/null &
exec 8>"$tmp/in" 9<"$tmp/out.fifo"
read -r ready <&9
is "$ready $(running)" "ready $((before + 1))" "a program that runs is counted"
exec 8>&-
wait
tap_done
