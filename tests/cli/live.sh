#!/bin/sh
# SPDX-License-Identifier: MIT
# gpupart ps, top and set on programs that run on the simulated GPU: one process, a job of eight,
# later processes, -n with other programs, invalid arguments, other users' processes.
. "$(dirname "$0")/tap.subr"
e="-i tests/data/gh100-h200-e/capture.txt"
unset GPUPART_JOB

# Launches until its file is removed; prints a line whenever its number of SMs changes.
cat >"$tmp/launch.c" <<'END'
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
#define CALL(name, types, args) ((int (*)types)dlsym(lib, name)) args
static const char ptx[] = ".version 4.2\n.target sm_30\n.address_size 64\n"
	".visible .entry gpupart_census(.param .u64 out, .param .u32 ns)\n{ ret; }\n";
static struct { unsigned int smid, zero; unsigned long long start, end; } records[1024];
int main(int argc, char **argv)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW), *ctx, *module, *function;
	unsigned int ns = 1000, last = 0;
	unsigned long long out;
	void *params[] = { &out, &ns };

	if (argc != 2 || !lib || CALL("cuInit", (unsigned int), (0)) ||
	    CALL("cuCtxCreate_v2", (void **, unsigned int, int), (&ctx, 0, 0)) ||
	    CALL("cuModuleLoadData", (void **, const void *), (&module, ptx)) ||
	    CALL("cuModuleGetFunction", (void **, void *, const char *),
		 (&function, module, "gpupart_census")) ||
	    CALL("cuMemAlloc_v2", (unsigned long long *, size_t), (&out, sizeof(records))))
		return 1;
	while (!access(argv[1], F_OK)) {
		char seen[1024] = { 0 };
		unsigned int nr = 0;

		if (CALL("cuLaunchKernel", (void *, unsigned int, unsigned int, unsigned int,
					    unsigned int, unsigned int, unsigned int, unsigned int,
					    void *, void **, void **),
			 (function, 1024, 1, 1, 1024, 1, 1, 0, NULL, params, NULL)) ||
		    CALL("cuCtxSynchronize", (void), ()) ||
		    CALL("cuMemcpyDtoH_v2", (void *, unsigned long long, size_t),
			 (records, out, sizeof(records))))
			return 2;
		for (int i = 0; i < 1024; i++) {
			nr += !seen[records[i].smid];
			seen[records[i].smid] = 1;
		}
		if (nr != last) {
			printf("%u\n", nr);
			fflush(stdout);
		}
		last = nr;
		usleep(2000);
	}
	return 0;
}
END
if ! ${CC:-cc} -o "$tmp/launch" "$tmp/launch.c" -ldl 2>"$tmp/err"; then
	cat "$tmp/err" >&2
	skip "no C compiler"
	tap_done
fi
name=live-$$
go=$tmp/go
touch "$go"
trap 'rm -rf "$tmp"' EXIT

# rows NAME: the number of processes of that name in ps.
rows() {
	"$gpupart" ps | awk -v n="$1" '$2 == n' | wc -l
}

wait_rows() {
	for _ in $(seq 500); do
		[ "$(rows "$1")" = "$2" ] && return
		sleep 0.02
	done
}

# wait_locked FILE: until another process has locked it.
wait_locked() {
	for _ in $(seq 500); do
		flock -n "$1" true || return
		sleep 0.02
	done
}

# last FILE WANTED: waits until that is the last line of FILE.
last() {
	for _ in $(seq 1500); do
		[ "$(tail -n 1 "$1" 2>/dev/null)" = "$2" ] && break
		sleep 0.02
	done
	is "$(tail -n 1 "$1" 2>/dev/null)" "$2" "$3"
}

# ------------------------------------------------------------- one process
"$gpupart" run --exec $e -t 0-3 --name "$name" -- "$tmp/launch" "$go" >"$tmp/one" 2>/dev/null &
pid=$!
wait_rows "$name" 1
last "$tmp/one" 8 "a program starts in its set"
try ps
has "$out" "$pid $name" "ps names it"
has "$(grep " $name " "$tmp/out")" "0-3 (simulated)" "with its set, and that it is simulated"
try set -p $pid -t 5,7
is "$status $out" "0 pid $pid's current set: 0-3 (simulated)
pid $pid's new set: 5,7 (simulated)" "set -p prints the old and the new"
last "$tmp/one" 4 "its launches obey"
try set "$name" -g 0
is "$(sed -n 1,2p "$tmp/out" | cut -d' ' -f1-2)" "job $name's
job $name's" "set NAME prints the job's"
has "$out" "pid $pid's current set: 5,7 (simulated)" "and the process's"
has "$out" "new set: 4,12,20,28,35,42,49,56,63 (GPC 0) (simulated)" "with the GPCs that it covers whole"
try ps
has "$(grep " $name " "$tmp/out")" "63 (GPC 0) (simulated)" "so does ps"
try ps --json
is "$(python3 -c '
import json, sys
d = json.load(open(sys.argv[1]))
p = [p for p in d["processes"] if p["name"] == sys.argv[2]][0]
print(d["schema"], d["command"], d["simulated"], p["pid"], p["simulated"], p["set"]["nr_tpcs"], p["problem"],
      p["counters"]["launches"] > 0, p["memory_bytes"])' "$tmp/out" "$name" 2>&1)" \
	"gpupart/1 ps True $pid True 9 None True None" "ps --json"
try set -p $pid -a --json
is "$(python3 -c '
import json, sys
d = json.load(open(sys.argv[1]))
c, = d["changes"]
print(d["schema"], d["command"], c["pid"], c["before"], c["set"])' "$tmp/out" 2>&1)" \
	"gpupart/1 set $pid {'list': '4,12,20,28,35,42,49,56,63', 'nr_tpcs': 9} {'list': '0-65', 'nr_tpcs': 66}" "set --json; -a is all TPCs, more than it was started with"
last "$tmp/one" 132 "and it has them"
try top -n 2 -d 0.2
is "$status $(grep -c "$pid $name" "$tmp/out") $(grep -c '/S' "$tmp/out")" "0 2 2" "top looks twice"
# shellcheck disable=SC2046 # a row's words
set -- $(grep "$pid $name" "$tmp/out" | tail -n 1)
[ "$6" -gt 0 ]
ok $? "and says launches a second: $6"
try set -p $pid -n 4
is "$status" 0 "-n takes TPCs of its own too"
last "$tmp/one" 8 "eight"

# ------------------------------------------------------------- invalid arguments
bad() {
	wanted=$1 words=$2
	shift 2
	try "$@"
	is "$status $(wc -l <"$tmp/err") $(wc -l <"$tmp/out")" "$wanted 1 0" "$*: refused"
	has "$err" "$words" "$*: $words"
}
before=$("$gpupart" ps --json | grep -c launches)
bad 2 "no-such-job" set no-such-job -t 1
bad 2 "4194305" set -p 4194305 -t 1
bad 2 "'1x'" set -p 1x -t 1
bad 2 "'-3'" set -p -3 -t 1
bad 2 "''" set -p "" -t 1
bad 2 "TPC 66" set -p $pid -t 0,66
bad 2 "GPC 9" set "$name" -g 9
try set -p $pid
is "$status $err" "0 " "set -p $pid without a set changes nothing"
has "$out" "pid $pid's current set: " "and shows the one there is"
try set "$name" --json
is "$status $(echo "$out" | jq -r '.command, (.sets | length), .sets[0].set.nr_tpcs > 0, (.sets[] | select(.pid == '$pid') | .name)' | sort -u | tr '\n' ' ')" \
	"0 $(printf '%s\n' set "$("$gpupart" set "$name" | wc -l)" true "$name" | sort -u | tr '\n' ' ')" "the same of a job, as JSON"
bad 2 "no process or job" set -t 1
bad 2 "one of them" set "$name" -p $pid -t 1
bad 2 "one of them" set -p $pid -a -t 1
bad 2 "'extra'" set -p $pid -t 1 extra
bad 2 "must be 0.1 to 3600 seconds" top -d 0
bad 2 "must be a number" top -n 0
bad 2 "must be a number" top -n x
bad 2 "unknown option" ps --bogus
is "$("$gpupart" ps | grep -c "$pid $name")" 1 "none of these ended it"
[ -n "$before" ]
last "$tmp/one" 8 "or changed it"

# ------------------------------------------------------------- -n with other programs
try run $e -n 40 -- sh -c 'echo $GPUPART_SET'
mine=$("$gpupart" ps --json | python3 -c '
import json, sys
print([p["set"]["list"] for p in json.load(sys.stdin)["processes"] if p["name"] == sys.argv[1]][0])' "$name")
is "$(python3 -c '
import sys
def tpcs(text):
    return {t for part in text.split(",") for a, _, b in [part.partition("-")] for t in range(int(a), int(b or a) + 1)}
print(len(tpcs(sys.argv[1]) & tpcs(sys.argv[2])), len(tpcs(sys.argv[2])))' "$mine" "$out")" "0 40" \
	"run -n is clear of what set gave others"

rm "$go"
wait $pid
is $? 0 "it ends well"
is "$(rows "$name")" 0 "and is no longer listed"

# ------------------------------------------------------------- a job of eight
touch "$go"
"$gpupart" run --exec $e -g 1 --name "$name" -- sh -c '
	for i in 1 2 3 4 5 6 7 8; do "$0" "$1" >"$2.$i" & done
	while [ ! -e "$2.more" ]; do sleep 0.02; done
	"$0" "$1" >"$2.9" &
	wait' "$tmp/launch" "$go" "$tmp/eight" 2>/dev/null &
job=$!
wait_rows "$name" 8
is "$(rows "$name")" 8 "a job of eight processes"
try set "$name" -t 10-12
is "$status $(grep -c "^pid .*new set: 10-12" "$tmp/out") $(grep -c "^job .*new set: 10-12" "$tmp/out")" \
	"0 8 1" "set NAME changes all of them"
for i in 1 2 3 4 5 6 7 8; do
	last "$tmp/eight.$i" 6 "process $i obeys"
done
touch "$tmp/eight.more"
last "$tmp/eight.9" 6 "so does one that starts later"
is "$(cat "$tmp/eight.9")" 6 "from its first launch on"
# A program that has not started yet can be set by its run's id.
is "$("$gpupart" run $e -t 1 -- sh -c '"$0" set -p $$ -t 2,3 >/dev/null && "$0" run -t 2 -- true; "$0" set -p $$ -t 2,3' \
	"$gpupart" 2>"$tmp/err" | tail -n 1 | cut -d: -f2)" " 2-3 (simulated)" "set -p of a run that has not called cuInit"
kill -9 "$("$gpupart" ps | awk -v n="$name" '$2 == n { print $1; exit }')"
wait_rows "$name" 8
is "$(rows "$name")" 8 "one that is killed is no longer listed"
rm "$go"
wait $job
is "$(find "/dev/shm/gpupart-$(id -u)" -name "job-$job-*" | wc -l)" 1 "its record stays until a process lists it"
try set "$name" -t 1
is "$status" 2 "then it is gone"
is "$(find "/dev/shm/gpupart-$(id -u)" -name "job-$job-*" | wc -l)" 0 "and its note with it"

job=$(sh -c 'echo $$; exec "$0" run --exec "$@" -t 1 -- true' "$gpupart" $e 2>"$tmp/err")
before=$(find "/dev/shm/gpupart-$(id -u)" -name "job-$job-*" | wc -l)
"$gpupart" ps >"$tmp/out"
is "$before, $(find "/dev/shm/gpupart-$(id -u)" -name "job-$job-*" | wc -l)" "1, 0" "ps looks, too"

# ------------------------------------------------- processes left by the first program
# background SECONDS: a job whose first program ends after that time; its child uses CUDA later.
background() {
	touch "$go"
	"$gpupart" run $e -t 0-3 --name "$name" -- sh -c '
		(while [ -e "$2.wait" ]; do sleep 0.05; done; exec "$0" "$1" >"$2") &
		sleep "$3"' "$tmp/launch" "$go" "$tmp/later" "$1" 2>/dev/null
}
touch "$tmp/later.wait"
background 0
is "$("$gpupart" run $e -t 60 -- echo ran 2>/dev/null)" ran "another run looks at the notes"
try set "$name" -t 10-14
is "$status $out" "0 job $name's current set: 0-3 (simulated)
job $name's new set: 10-14 (simulated)" "a job whose first program ended, and its child did not"
is "$("$gpupart" run $e -t 60 -- echo ran 2>/dev/null)" ran "and another run"
rm "$tmp/later.wait"
last "$tmp/later" 10 "the child begins in the new set"
rm "$go"
wait_rows "$name" 0
try set "$name" -t 1
is "$status" 2 "when it has ended too, the job is forgotten"
touch "$tmp/later.wait"
background 0.5 &
job=$!
for _ in $(seq 100); do
	"$gpupart" set "$name" -t 20-21 >/dev/null 2>&1 && break
	sleep 0.02
done
wait $job
is "$("$gpupart" run $e -t 60 -- echo ran 2>/dev/null)" ran "set while the first program runs, which then ends"
rm "$tmp/later.wait"
last "$tmp/later" 4 "the child begins in that set"
rm "$go"
wait_rows "$name" 0

# ------------------------------------------------------------- runs inside runs
# nest DEPTH NAME PROGRAM ARG: that many runs inside each other, each with a shell around it.
cat >"$tmp/nest" <<'END'
[ "$1" = 0 ] && exec "$3" "$4"
"$GPUPART" run -t 0-3 --name "$2" -- sh "$0" $(($1 - 1)) "$2" "$3" "$4"
exit
END
touch "$go"
GPUPART=$gpupart "$gpupart" run --exec $e -t 0-3 --name "$name" -- sh "$tmp/nest" 20 "$name-in" "$tmp/launch" \
	"$go" >"$tmp/deep" 2>"$tmp/err" &
job=$!
wait_rows "$name-in" 1
try set "$name" -t 2
is "$status $(grep -c "^pid .*new set: 2 " "$tmp/out")" "0 1" \
	"twenty runs deep: set of the outermost names the program's new set"
last "$tmp/deep" 2 "the program obeys"
try set "$name" -t 2-3
try set "$name-in" -t 2-3
is "$status $(grep -c "^job " "$tmp/out") $(grep -c "^pid " "$tmp/out")" "0 40 2" \
	"twenty jobs of one name: the program is named once"
rm "$go"
wait $job
touch "$go"
"$gpupart" run --exec $e -t 0-7 --name "$name" -- "$gpupart" run -t 0-3 --name "$name-in" -- \
	"$tmp/launch" "$go" >"$tmp/one" 2>"$tmp/err" &
job=$!
wait_rows "$name-in" 1
try set "$name-in" -t 0-1 -n 3
new=$(sed -n "s/^job .* new set: \([0-9,-]*\) .*/\1/p" "$tmp/out")
is "$status $(echo "$new" | tr ',' '\n' | awk -F- '{ to = NF > 1 ? $2 : $1; n += to - $1 + 1; out += to > 7 } END { print n, out }')" \
	"0 5 0" "-n of a job inside a job is chosen inside the outer one's set: $new"
last "$tmp/one" 10 "and holds"
bad 2 "-n 9: 9 TPCs: only 8 TPCs are left to choose from inside the set of the outer run" set "$name-in" -n 9
bad 2 "TPCs 8-9 are outside the set 0-7 of the outer run" set "$name-in" -t 6-9
bad 2 "TPCs 12,20,28,35,42,49,56,63 are outside the set 0-7 of the outer run" set "$name-in" -g 0
bad 2 "TPCs 8-65 are outside the set 0-7 of the outer run" set "$name-in" -a
last "$tmp/one" 10 "and nothing was changed"
try set "$name" -t 4-9
try set "$name-in" -t 6-9
is "$status $(sed -n "s/^job .* new set: //p" "$tmp/out")" "0 6-9 (simulated)" "inside the outer one's new set it may be"
last "$tmp/one" 8 "and holds"
rm "$go"
wait $job
touch "$go"
"$gpupart" run --exec $e -t 0-3 --name "$name" -- "$gpupart" run -t 0-3 --name "$name" -- \
	"$tmp/launch" "$go" >"$tmp/one" 2>"$tmp/err" &
job=$!
wait_rows "$name" 1
try set "$name" -t 8-13
is "$status $(grep -c "^job .*new set: 8-13" "$tmp/out")" "0 2" "two jobs of one name, one inside the other: both are changed"
last "$tmp/one" 12 "and the program obeys"
rm "$go"
wait $job

# ------------------------------------------------------------- waits and limits
touch "$go"
"$gpupart" run --exec $e -t 0-3 --name "$name" -- "$tmp/launch" "$go" >"$tmp/one" 2>/dev/null &
pid=$!
wait_rows "$name" 1
if command -v flock >/dev/null; then
	flock -F "/dev/shm/gpupart-$(id -u)" sleep 600 &
	holder=$!
	wait_locked "/dev/shm/gpupart-$(id -u)"
	bad 1 "has kept the jobs' directory locked for 5 s" set "$name" -g 5
	kill $holder
	ok $? "set NAME does not wait until it is free"
	wait $holder 2>/dev/null
else
	skip "no flock(1)"
fi
try set "$name" -t 0-3
if ! emulated "ends at the limit of a file's size itself: ulimit -f 0"; then
	# Pipes, because the limit would apply to files of the shell too.
	limited=$(ulimit -f 0
		"$gpupart" set "$name" -t 5 2>&1 | cat
		"$gpupart" run $e -t 0-3 -- echo ran 2>/dev/null | cat)
	has "$limited" "File too large" "ulimit -f 0: set says that the note cannot be written"
	has "$limited" ran "and run goes on"
fi
is "$(find "/dev/shm/gpupart-$(id -u)" -name ".job-*" | wc -l)" 0 "no half note is left"
last "$tmp/one" 8 "and nothing was changed"
rm "$go"
wait $pid

# ------------------------------------------------------------- names
refused 125 "must not begin with '-'" run $e -t 0 --name -x -- true
GPUPART_NAME=$(printf 'a\033[31m\303\244')
export GPUPART_NAME
try run $e -t 1 -- sh -c '"$0" set -p $$ -t 2' "$gpupart"
is "$status $(printf %s "$out" | tr -d '\n -~' | wc -c) $(printf %s "$err" | tr -dc '\033' | wc -c)" "0 0 0" \
	"an inherited name that is none: nothing of it steers the terminal"
has "$err" "is not a valid name" "and run says so"
unset GPUPART_NAME

# ------------------------------------------------------------- --gpu
cat >"$tmp/two.c" <<'END'
#include <stdio.h>
#include <unistd.h>
#include <gpupart_manage.h>
static void show(struct gpupart_gpu *gpu)
{
	struct gpupart_tpcset set;
	char text[GPUPART_TPCSET_STRLEN];

	gpupart_limit_get(gpu, &set);
	gpupart_tpcset_format_list(&set, text, sizeof(text));
	printf("%s ", text);
}
int main(int argc, char **argv)
{
	struct gpupart_gpu *one, *two;
	struct gpupart *gp;

	if (argc != 3 || gpupart_open(&gp) || gpupart_attach(gp, "cuda:0", NULL, &one) ||
	    gpupart_attach(gp, "cuda:1", NULL, &two) || gpupart_process_publish(gp, argv[2]))
		return 1;
	while (!access(argv[1], F_OK))
		usleep(10000);
	show(one);
	show(two);
	return 0;
}
END
touch "$go"
${CC:-cc} -Iinclude -Iinclude/uapi -o "$tmp/two" "$tmp/two.c" -L"$BUILD/lib" -lgpupart -Wl,-rpath,"$(readlink -f "$BUILD")/lib"
env LD_LIBRARY_PATH="$BUILD/lib/gpupart/sim" \
	GPUPART_SIM="$PWD/tests/data/gh100-h200-b/capture.txt:$PWD/tests/data/gh100-h200-e/capture.txt" \
	"$tmp/two" "$go" "$name" >"$tmp/both" &
pid=$!
wait_rows "$name" 1
try set -p $pid --gpu 1 -g 0
is "$status $(sed -n 2p "$tmp/out")" "0 pid $pid's new set: 4,12,20,28,35,42,49,56,63 (GPC 0) (simulated)" \
	"two simulated GPUs: --gpu 1 is the second, with its own GPCs"
try set -p $pid --gpu 0000:01:00.0 -t 5
is "$status" 0 "two simulated GPUs: by address"
try set "$name" --gpu 01:00.0 -t 6
is "$status $(sed -n 1p "$tmp/out")" "0 pid $pid's current set: 5 (simulated)" "two simulated GPUs: by name"
bad 2 "0000:01:00.0, 0000:02:00.0" set -p $pid --gpu 2 -t 1
bad 2 "0000:01:00.0, 0000:02:00.0" set -p $pid --gpu 100000000:01:00.0 -t 1
bad 2 "0000:01:00.0, 0000:02:00.0" set "$name" --gpu 0000:03:00.0 -t 1
bad 2 "100000000:01:00.0" set "$name" --gpu 100000000:01:00.0 -t 1
bad 2 "+01:00.0" set "$name" --gpu +01:00.0 -t 1
rm "$go"
wait $pid
is "$(cat "$tmp/both")" "6 4,12,20,28,35,42,49,56,63 " "two simulated GPUs: each has the set that it was given"
touch "$go"
"$gpupart" run --exec $e -t 0-3 --name "$name" -- "$tmp/launch" "$go" >"$tmp/one" 2>/dev/null &
pid=$!
wait_rows "$name" 1
bad 2 "runs on GPU" set "$name" --gpu 1 -t 9
try set "$name" --gpu 0 -t 9
is "$status" 0 "a job on the one GPU of a capture: --gpu 0"
last "$tmp/one" 2 "it obeys"
rm "$go"
wait $pid

# A capture whose path does not fit into a job record.
deep=$tmp/$(printf 'd%0200d/d%0200d/d%0200d' 0 0 0)
mkdir -p "$deep"
cp tests/data/gh100-h200-e/capture.txt "$deep"
touch "$go"
"$gpupart" run --exec -i "$deep/capture.txt" -t 0-3 --name "$name" -- "$tmp/launch" "$go" >"$tmp/one" 2>/dev/null &
pid=$!
wait_rows "$name" 1
bad 2 "longer than 511 characters" set "$name" -t 1
rm "$go"
wait $pid
# ------------------------------------------------------------- -n: other processes
touch "$go"
"$gpupart" run --exec $e -t 0-3 --name "$name" -- sh -c 'GPUPART_SET=0-300 exec "$0" "$1"' "$tmp/launch" "$go" >"$tmp/one" 2>/dev/null &
wait_rows "$name" 1
has "$("$gpupart" ps | grep " $name ")" "not confined" "a set in the environment that is bad confines nothing"
pid=$("$gpupart" ps | awk -v n="$name" '$2 == n { print $1 }')
try set -p "$pid" -t 20-40
last "$tmp/one" 42 "one from outside does"
has "$("$gpupart" ps | grep " $name ")" " 20-40 " "and ps says so"
try run $e -n 45 -- sh -c 'echo $GPUPART_SET'
is "$out" "0-19,41-65" "-n leaves its TPCs alone"
rm "$go"
wait

cat >"$tmp/many.c" <<'END'
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);
	for (int n = atoi(argv[2]); n > 1 && fork(); n--)
		;
	if (argc != 3 || !lib || ((int (*)(unsigned int))dlsym(lib, "cuInit"))(0))
		return 1;
	while (!access(argv[1], F_OK))
		usleep(100000);
	return 0;
}
END
${CC:-cc} -o "$tmp/many" "$tmp/many.c" -ldl
touch "$go"
"$gpupart" run --exec $e -t 0 --name "$name" -- "$tmp/many" "$go" 270 2>/dev/null &
wait_rows "$name" 270
is "$(rows "$name")" 270 "270 processes"
for pid in $("$gpupart" ps | awk -v n="$name" '$2 == n { print $1 }' | sed -n '1p;135p;270p'); do
	"$gpupart" set -p "$pid" -t $((nth += 10)) >"$tmp/out"
done
try run $e -n 62 -- sh -c 'echo $GPUPART_SET'
is "$out" "1-9,11-19,21-29,31-65" "-n knows all of them"
rm "$go"
wait

# Reading the files of another user may take root a second.
cat >"$tmp/passes.c" <<'END'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
#include <unistd.h>
#define COUNTED(name) \
int name(void *gp, void *list, unsigned int max, size_t size) \
{ \
	int (*real)(void *, void *, unsigned int, size_t) = dlsym(RTLD_NEXT, #name); \
\
	return write(9, #name "\n", sizeof(#name)) < 0 ? -1 : real(gp, list, max, size); \
}
COUNTED(gpupart_process_list)
COUNTED(gpupart_tenant_list)
COUNTED(gpupart_tenant_process_list)
END
${CC:-cc} -shared -fPIC -o "$tmp/passes.so" "$tmp/passes.c" -ldl
LD_PRELOAD=$tmp/passes.so "$gpupart" ps 9>"$tmp/passes" >"$tmp/out"
is "$(sort "$tmp/passes" | tr '\n' ' ')" "gpupart_process_list gpupart_tenant_list gpupart_tenant_process_list " \
	"ps makes each of its lists in one pass"

try run $e -n 2 -- true
lock=/dev/shm/gpupart-$(id -u)/lock
if command -v flock >/dev/null; then
	inject=${gpupart%/bin/gpupart}/lib/gpupart/libgpupart-inject.so
	flock -F "$inject" sleep 600 &
	other=$!
	wait_locked "$inject"
	try run $e -n 2 -- true
	kill $other
	is "$? $status $(echo "$err" | grep -c "no lock")" "0 0 0" "who holds a file that all can read holds no -n up"
	flock -F "$lock" sleep 600 &
	other=$!
	wait_locked "$lock"
	# Pauses of a minute are skipped.
	echo 'int usleep(unsigned int us) { return us - us; }' >"$tmp/hasty.c"
	${CC:-cc} -shared -fPIC -o "$tmp/hasty.so" "$tmp/hasty.c"
	out=$(LD_PRELOAD=$tmp/hasty.so "$gpupart" run $e -n 2 -- echo started 2>"$tmp/err")
	is "$? $out" "125 " "a lock that is not had: the program is not started"
	has "$(cat "$tmp/err")" "gpupart run: -n: another run has kept $lock locked for 60 s" "which is reported"
	try run $e -t 2 -- true
	is "$status" 0 "a set by numbers does not wait"
	kill $other
else
	skip "no flock"
fi
long=$(head -c 100000 /dev/zero | tr '\0' x)
if env A="$long" B="$long" C="$long" D="$long" E="$long" F="$long" G="$long" H="$long" I="$long" J="$long" K="$long" \
	sleep 600 2>/dev/null & then
	# Until its exec its environment is the shell's.
	for _ in $(seq 500); do
		[ "$(tr '\0' ' ' <"/proc/$!/cmdline")" = "sleep 600 " ] && break
		sleep 0.02
	done
	try run $e -n 2 -- true
	has "$status $err" "0 gpupart run: -n: the environments of 1 processes were not read: each environment is longer" \
		"an environment of more than 1 MiB is not read"
	kill $!
fi
# ------------------------------------------------------------- a namespace that has ended
if [ "$(id -u)" = 0 ] && unshare -p -f true 2>/dev/null; then
	unshare -p -f --mount-proc "$gpupart" run $e -t 1 --name "$name-box" -- true 2>/dev/null
	try set "$name-box" -t 2
	# In a namespace of processes that is not the machine's first one that cannot be known.
	[ "$(readlink /proc/self/ns/pid)" = "pid:[4026531836]" ] && gone=2 || gone=0
	is "$status" $gone "a job of a pid namespace that is gone is gone"
else
	skip "no pid namespace can be made here"
fi

# ------------------------------------------------------------- other users
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	touch "$go"
	chmod 711 "$tmp" && chmod 755 "$tmp/launch"
	mkdir -p "$tmp/theirs" && chmod 777 "$tmp/theirs"
	as() {
		(
			XDG_CACHE_HOME=$tmp/theirs
			setpriv --reuid=4720 --regid=4720 --clear-groups "$@"
		)
	}
	if as "$gpupart" run $e -t 0-3 -- true 2>/dev/null; then
		as "$gpupart" run --exec $e -t 0-3 --name "$name" -- "$tmp/launch" "$go" >"$tmp/other" 2>/dev/null &
		wait_rows "$name" 1
		pid=$("$gpupart" ps | awk -v n="$name" '$2 == n { print $1 }')
		"$gpupart" run --exec $e -t 8 --name "$name-root" -- "$tmp/launch" "$go" >"$tmp/one" 2>/dev/null &
		wait_rows "$name-root" 1
		root_pid=$("$gpupart" ps | awk -v n="$name-root" '$2 == n { print $1 }')
		as "$gpupart" ps >"$tmp/out" 2>&1
		is "$(grep -c " $name " "$tmp/out") $(grep -c " $name-root " "$tmp/out")" "1 0" \
			"a user sees his own"
		as "$gpupart" set -p "$root_pid" -t 9 >"$tmp/out" 2>"$tmp/err"
		is "$? $(wc -l <"$tmp/out")" "2 0" "and changes no other's"
		as "$gpupart" set "$name-root" -t 9 >"$tmp/out" 2>"$tmp/err"
		is "$? $(wc -l <"$tmp/out")" "2 0" "nor by name"
		last "$tmp/one" 2 "root's is as it was"
		try set -p "$pid" -t 9
		is "$status" 0 "root changes another's: $err"
		last "$tmp/other" 2 "and it obeys"
		try set -p "$pid" -g 0
		has "$status $out" "0 pid $pid's current set: 9 (simulated)" "a GPC, by that user's capture: $err"
		last "$tmp/other" 18 "and it obeys"
		rm -f "$go"
		wait

		# Root opens no path from another user's page: a pipe would block it forever.
		touch "$go"
		cp tests/data/gh100-h200-e/capture.txt "$tmp/theirs/capture"
		chmod 644 "$tmp/theirs/capture"
		as "$gpupart" run --exec -i "$tmp/theirs/capture" -t 0-3 --name "$name" -- "$tmp/launch" "$go" \
			>"$tmp/other" 2>/dev/null &
		wait_rows "$name" 1
		pid=$("$gpupart" ps | awk -v n="$name" '$2 == n { print $1 }')
		rm "$tmp/theirs/capture"
		mkfifo -m 666 "$tmp/theirs/capture"
		timeout 60 "$gpupart" ps >"$tmp/out" 2>"$tmp/err"
		has "$? $(grep " $name " "$tmp/out")" " 0-3 (simulated)" "ps goes on"
		timeout 60 "$gpupart" set -p "$pid" -g 0 >"$tmp/out" 2>"$tmp/err"
		is "$? $(wc -l <"$tmp/err") $(grep -c "a pipe" "$tmp/err")" "2 1 1" "set -p refuses it"
		rm -f "$go" "$tmp/theirs/capture"
		wait

		# A program in a run of root that becomes another user.
		touch "$go"
		"$gpupart" run --exec -i sample:h200 -t 0-3 --name "$name" -- sh -c \
			'setpriv --reuid=4720 --regid=4720 --clear-groups "$0" "$1"; exit $?' "$tmp/launch" "$go" \
			>"$tmp/other" 2>/dev/null &
		wait_rows "$name" 1
		try set "$name" -t 20
		is "$status" 0 "set NAME of a job whose program is another user's: $err"
		last "$tmp/other" 2 "reaches it"
		rm -f "$go"
		wait
	else
		skip "another user cannot use this build"
	fi
	rm -rf /dev/shm/gpupart-4720
else
	skip "other users: only as root"
fi
tap_done
