#!/bin/sh
# SPDX-License-Identifier: MIT
# run --lend and --depth on the simulated GPU: a program gets the TPCs of an idle lender, and none
# of a lender that is busy, has ended, is damaged or belongs to another user; and refusals.
. "$(dirname "$0")/tap.subr"

cat >"$tmp/work.c" <<'END'
/*
 * work FILE NS: until FILE is gone, launches for all SMs, for NS each, and writes into FILE.sms
 * which it got: "COUNT FIRST-LAST". While FILE.still is there it launches nothing. For each launch
 * that used SMs 16-23, appends "START END NOW" in ns to FILE.times: START and END by the GPU's
 * clock, and NOW by the host's clock, after the end of the launch.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BLOCKS 264
#define CALL(name, types, args) ((int (*)types)dlsym(lib, name)) args

int main(int argc, char **argv)
{
	static struct { unsigned int smid, cluster; unsigned long long start, end; } records[BLOCKS];
	static const char ptx[] = ".version 8.0\n.target sm_90\n.address_size 64\n"
		".visible .entry gpupart_census(.param .u64 a, .param .u32 b)\n{ ret; }\n";
	void *lib = dlopen("libcuda.so.1", RTLD_NOW), *ctx, *module, *function, *stream;
	unsigned int ns = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000;
	unsigned long long out;
	void *args[] = { &out, &ns };
	char still[512], to[512], new[520], times[520];

	if (argc < 3 || !lib || CALL("cuInit", (unsigned int), (0)) ||
	    CALL("cuCtxCreate_v2", (void **, unsigned int, int), (&ctx, 0, 0)) ||
	    CALL("cuMemAlloc_v2", (unsigned long long *, size_t), (&out, sizeof(records))) ||
	    CALL("cuStreamCreate", (void **, unsigned int), (&stream, 1)) ||
	    CALL("cuModuleLoadData", (void **, const void *), (&module, ptx)) ||
	    CALL("cuModuleGetFunction", (void **, void *, const char *),
		 (&function, module, "gpupart_census")) ||
	    CALL("cuFuncSetAttribute", (void *, int, int), (function, 8, 200000)))
		return 1;
	snprintf(still, sizeof(still), "%s.still", argv[1]);
	snprintf(to, sizeof(to), "%s.sms", argv[1]);
	snprintf(new, sizeof(new), "%s.new", to);
	snprintf(times, sizeof(times), "%s.times", argv[1]);
	for (; !access(argv[1], F_OK); usleep(2000)) {
		unsigned long long start = -1, end = 0, now;
		struct timespec time;
		char seen[132] = "";
		int first = -1, last = -1, nr = 0;
		FILE *file;

		if (!access(still, F_OK))
			continue;
		if (CALL("cuLaunchKernel", (void *, unsigned int, unsigned int, unsigned int,
			 unsigned int, unsigned int, unsigned int, unsigned int, void *, void **,
			 void **), (function, BLOCKS, 1, 1, 32, 1, 1, 200000, stream, args, NULL)) ||
		    CALL("cuStreamSynchronize", (void *), (stream)) ||
		    CALL("cuMemcpyDtoH_v2", (void *, unsigned long long, size_t),
			 (records, out, sizeof(records))))
			return 2;
		clock_gettime(CLOCK_MONOTONIC, &time);
		for (int b = 0; b < BLOCKS; b++) {
			seen[records[b].smid] = 1;
			if (records[b].smid < 16 || records[b].smid > 23)
				continue;
			start = records[b].start < start ? records[b].start : start;
			end = records[b].end > end ? records[b].end : end;
		}
		for (int sm = 0; sm < 132; sm++) {
			if (!seen[sm])
				continue;
			first = first < 0 ? sm : first;
			last = sm;
			nr++;
		}
		file = fopen(new, "w");
		fprintf(file, "%d %d-%d\n", nr, first, last);
		fclose(file);
		rename(new, to);
		file = end ? fopen(times, "a") : NULL;
		if (!file)
			continue;
		now = time.tv_sec * 1000000000ull + time.tv_nsec;
		fprintf(file, "%llu %llu %llu\n", start, end, now);
		fclose(file);
	}
	return 0;
}
END
if ! ${CC:-cc} -o "$tmp/work" "$tmp/work.c" -ldl 2>"$tmp/err"; then
	skip "no C compiler"
	tap_done
fi
GPUPART_SIM_FAULTS=host-clock,host-thread
export GPUPART_SIM_FAULTS

# waits COMMAND: until it succeeds, for 20 s at most.
waits() {
	n=0
	until "$@"; do
		n=$((n + 1))
		[ $n -lt 400 ] || return 1
		sleep 0.05
	done
}
got() { [ "$(cat "$tmp/$1.sms" 2>/dev/null)" = "$2" ]; }
has_nr() { [ "$(cut -d ' ' -f 1 "$tmp/$1.sms" 2>/dev/null)" = "$2" ]; }
gone() { ! "$gpupart" ps | grep -q ' \(serve\|batch\) '; }
told() { grep -q "$2" "$tmp/$1.err"; }

# begin NAME OPTIONS: starts a program of that name, with its messages in NAME.err.
begin() {
	name=$1
	shift
	rm -f "$tmp/$name.sms" "$tmp/$name.still" "$tmp/$name.times"
	: >"$tmp/$name"
	"$gpupart" run -i sample:h200 --name "$name" "$@" -- "$tmp/work" "$tmp/$name" "${NS:-1000}" \
		>"$tmp/$name.out" 2>"$tmp/$name.err" &
	eval "pid_$name=$!"
}
end() {
	rm -f "$tmp/$1"
	eval "wait \$pid_$1"
}

# begin_idle SMS OPTIONS: starts "serve", which launches nothing any more when it has got SMS.
begin_idle() {
	sms=$1
	shift
	begin serve "$@"
	waits got serve "$sms"
	: >"$tmp/serve.still"
}
# begin_qos OPTIONS: starts qos run with the programs of t.yaml.
begin_qos() {
	rm -f "$tmp/batch.sms"
	: >"$tmp/serve"
	: >"$tmp/batch"
	"$gpupart" qos run -i sample:h200 -f "$tmp/t.yaml" "$@" >"$tmp/none" 2>"$tmp/qos.err" &
	qos=$!
}
# begin_latency MS: sends latencies of the tenant "serve" until end_latency; latency MS changes them.
latency() { echo "$1" >"$tmp/latency"; }
begin_latency() {
	latency "$1"
	python3 - "$tmp/latency" <<'END' &
import glob, os, socket, sys, time
to = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
while os.path.exists(sys.argv[1]):
    ms = open(sys.argv[1]).read().strip()
    for path in glob.glob("/dev/shm/gpupart-*/qos-*.socket"):
        try:
            to.sendto(f"serve latency {ms or 1}ms".encode(), path)
        except OSError:
            pass
    time.sleep(0.01)
END
	sender=$!
}
end_latency() { rm "$tmp/latency" && wait "$sender"; }

begin serve -t 8-11
waits got serve "8 16-23"
ok $? "a program in TPCs 8-11"
: >"$tmp/serve.still"
begin batch -t 0-3 --lend serve --lend-limit 1s
waits got batch "16 0-23"
ok $? "another one in 0-3 that borrows gets 8-11, too, while the first launches nothing"
shows() { "$gpupart" ps | grep -q "borrows from serve: $1; "; }
waits shows "TPCs 8-11"
ok $? "ps names the lender and its TPCs"
if command -v jq >/dev/null; then
	# On a busy machine, the borrower's lease can expire for a moment.
	of_process() { "$gpupart" ps --json >"$tmp/ps.json" && jq -r '.processes[] | select(.name == "batch").lending |
		"\(.lender) \(.set.list) \(.limit_ns) \(.depth_ns) \(.launches > 0) \(.revoked)"' "$tmp/ps.json"; }
	of_job() { "$gpupart" top --json -n 1 >"$tmp/top.json" && jq -r '.jobs[] | select(.name == "batch") | .lending, .programs[0].lending |
		"\(.lender) \(.set.list) \(.launches > 0)"' "$tmp/top.json"; }
	says() { [ "$($1)" = "$2" ]; }
	waits says of_process "serve 8-11 1000000000 2000000000 true 0"
	ok $? "ps --json: $(of_process)"
	is "$(jq -c '.processes[] | select(.name == "serve").lending' "$tmp/ps.json")" null "which borrows nothing itself"
	waits says of_job "serve 8-11 true
serve 8-11 true"
	ok $? "top --json: the job and its program: $(of_job | head -n 1)"
	is "$(jq -c '.jobs[] | select(.name == "serve").lending' "$tmp/top.json")" null "which borrows nothing itself"
else
	skip "no jq"
fi
lent_tpcs() { "$gpupart" metrics >"$tmp/metrics" && [ "$(sed -n 's/^gpupart_lent_tpcs{.*name="batch".*lender="serve"} //p' "$tmp/metrics")" = "$1" ]; }
waits lent_tpcs 4
ok $? "metrics: lent TPCs, with the lender"
is "$(sed -n 's/^gpupart_lent_launches_total{.*name="batch".*lender="serve"} [1-9][0-9]*$/more/p' "$tmp/metrics")" more \
	"a counter of launches that used them"
is "$(sed -n 's/^gpupart_waited_launches_total{.*name="batch".*} \([0-9]*\)$/\1/p' "$tmp/metrics")" 0 "and one of launches that waited"
is "$(grep -c '^gpupart_\(lent\|waited\).*name="serve"' "$tmp/metrics")" 0 "none of which the lender has"
end batch
is $? 0 "it ends"
has "$(cat "$tmp/batch.err")" "launches could also use idle TPCs of 'serve' (simulated); 0" \
	"and run says how often it borrowed"

# The watcher of the borrower is stopped, and then killed: its lease expires.
begin batch -t 0-3 --lend serve --lend-limit 1s
waits shows "TPCs 8-11"
watcher=$(pgrep -xP "$pid_batch" gpupart)
kill -STOP "$watcher"
waits shows "nothing now"
ok $? "its watcher is stopped: ps says that nothing is lent"
kill -CONT "$watcher"
waits shows "TPCs 8-11"
ok $? "it continues: ps names the TPCs again"
kill -9 "$watcher"
waits shows "nothing now"
ok $? "its watcher is killed: ps says that nothing is lent"
if command -v jq >/dev/null; then
	is "$("$gpupart" ps --json | jq -c '.processes[] | select(.name == "batch").lending.set')" null "ps --json: so does the set"
else
	skip "no jq"
fi
is "$("$gpupart" metrics | sed -n 's/^gpupart_lent_tpcs{.*name="batch".*lender="serve"} //p')" 0 "metrics: no lent TPCs"
rm "$tmp/batch.sms"
waits got batch "8 0-7"
ok $? "and the program has its own TPCs"
end batch
begin batch -t 0-3
waits got batch "8 0-7"
ok $? "without --lend it gets its own"
end batch
end serve

# A lender that is always busy: each kernel takes 30 ms, and the next one follows.
NS=30000000 begin serve -t 8-11
waits got serve "8 16-23"
begin batch -t 0-3 --lend serve --lend-limit 1s
waits got batch "8 0-7"
rm "$tmp/batch.sms"
waits got batch "8 0-7"
ok $? "a busy program"
: >"$tmp/serve.still"
waits got batch "16 0-23"
ok $? "lends when it becomes idle"
kill -9 "$pid_serve" && wait "$pid_serve"
waits got batch "8 0-7"
ok $? "killed, it lends nothing"
waits told batch "nothing is lent (simulated): no process with this name uses the GPU"
ok $? "and that is reported"
begin_idle "4 40-43" -t 20-21
waits got batch "12 0-43"
ok $? "the next run of that name lends, what it has"
"$gpupart" set serve -t 30-31 >"$tmp/none" 2>&1
waits got batch "12 0-63"
ok $? "its set is changed: it lends that"
"$gpupart" set serve -t 30-33 >"$tmp/none" 2>&1
waits got batch "16 0-67"
ok $? "its set grows: it lends all of that"
"$gpupart" set serve -t 30-31 >"$tmp/none" 2>&1
waits got batch "12 0-63"
ok $? "its set shrinks: it lends no more than that"
for file in "/dev/shm/gpupart-$(id -u)"/[1-9]*; do
	# Only the lender's: the one whose TPCs are shown as 30-31.
	case $(tr -d '\0' <"$file" | head -c 300) in *serve*) truncate -s 0 "$file" ;; esac
done
waits told batch "nothing is lent (simulated): the state page of process [0-9]* was truncated"
ok $? "its state page is truncated: that is reported"
waits got batch "8 0-7"
ok $? "nothing is lent, and the borrower runs on"
end batch
is $? 0 "to its end"
kill -9 "$pid_serve"
wait "$pid_serve" 2>/dev/null

# Two programs that lend to each other.
begin one -t 0-3 --lend two --lend-limit 1s
begin two -t 8-11 --lend one --lend-limit 1s
waits told one "nothing is lent (simulated): the lender itself borrows TPCs" && waits told two "the lender itself borrows TPCs"
ok $? "two that borrow from each other: neither lends"
end one
end two

# A borrower that already has the TPCs of the lender.
begin_idle "8 16-23" -t 8-11
begin batch -t 8-11 --lend serve --lend-limit 1s
waits told batch "nothing is lent (simulated): its TPCs (8-11) are already in the set of 'batch' (8-11)"
ok $? "the borrower has the lender's set: run says so"
shows "nothing now"
ok $? "and so does ps"
"$gpupart" set batch -t 0-9 >"$tmp/none" 2>&1
waits shows "TPCs 8-11"
ok $? "it gets another set, which has only two of these TPCs: they are lent"
"$gpupart" set serve -t 2-3 >"$tmp/none" 2>&1
waits told batch "nothing is lent (simulated): its TPCs (2-3) are already in the set of 'batch' (0-9)"
ok $? "the lender gets another set, which the borrower has: run says so"
end batch
is "$(grep -c 'are already in' "$tmp/batch.err")" 2 "once each time"
end serve

# The lender's page claims more than the set of its job; a third program has TPCs of the lender.
if command -v python3 >/dev/null; then
	begin_idle "8 16-23" -t 8-11
	for file in "/dev/shm/gpupart-$(id -u)"/[1-9]*; do
		case $(tr -d '\0' <"$file" | head -c 300) in *serve*) python3 - "$file" <<'END' ;; esac
import mmap, sys
with open(sys.argv[1], "r+b") as file:
    page = mmap.mmap(file.fileno(), 0)
    page[:] = page[:].replace(b"\0\x0f" + bytes(6), b"\0\xff" + bytes(6))
END
	done
	has "$("$gpupart" ps)" 8-15 "a page is changed to TPCs 8-15"
	begin batch -t 0-3 --lend serve --lend-limit 1s
	waits got batch "16 0-23"
	ok $? "only 8-11, which the job has, are lent"
	begin third -t 10-11
	waits got batch "12 0-19"
	ok $? "a third program gets 10-11: they are lent no more"
	"$gpupart" set third -t 8-11 >"$tmp/none" 2>&1
	waits told batch "nothing is lent (simulated): its TPCs (8-11) are also in the sets of other programs"
	ok $? "it gets all of them: nothing is lent, and run says so"
	end third
	waits got batch "16 0-23"
	ok $? "it ends: 8-11 are lent again"
	end batch
	end serve
else
	skip "no python3"
fi

# A borrower with two processes: each has half of the limit.
if command -v jq >/dev/null; then
	begin_idle "8 16-23" -t 8-11
	: >"$tmp/batch"
	: >"$tmp/more"
	# shellcheck disable=SC2016 # the inner shell expands these
	"$gpupart" run -i sample:h200 --name batch -t 0-3 --lend serve --lend-limit 1s -- \
		sh -c '"$0" "$1" 1000 & "$0" "$2" 1000; wait' "$tmp/work" "$tmp/batch" "$tmp/more" \
		>"$tmp/none" 2>"$tmp/batch.err" &
	pid_batch=$!
	limits() { [ "$("$gpupart" ps --json | jq -c '[.processes[] | select(.name == "batch").lending.limit_ns]')" = "$1" ]; }
	waits limits "[500000000,500000000]"
	ok $? "a borrower with two processes: each has half of the limit"
	rm "$tmp/more"
	waits limits "[1000000000]"
	ok $? "one ends: the other one has the limit"
	end batch
	end serve
else
	skip "no jq"
fi

# A lender whose launches have no records.
GPUPART_RECORDS=0 begin serve -t 8-11
waits got serve "8 16-23"
begin batch -t 0-3 --lend serve --lend-limit 1s
waits told batch "nothing is lent (simulated): process [0-9]* has no records"
ok $? "a lender without records"
end batch
end serve

# Root can read the pages of others, but borrows only from itself.
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	chmod 755 "$tmp"
	: >"$tmp/other"
	: >"$tmp/other.still"
	XDG_CACHE_HOME='' HOME='' setpriv --reuid 65534 --clear-groups "$gpupart" run -i sample:h200 --name other \
		-t 8-11 -- "$tmp/work" "$tmp/other" 1000 >"$tmp/none" 2>&1 &
	other=$!
	begin batch -t 0-3 --lend other --lend-limit 1s
	waits told batch "nothing is lent (simulated): process [0-9]* belongs to another user"
	ok $? "a lender of another user's"
	end batch
	rm "$tmp/other"
	wait $other
else
	skip "only root sees programs of another user's"
fi

# Inside another run: what is lent stays inside the set of that one, as it is now.
begin_idle "8 16-23" -t 8-11
rm -f "$tmp/batch.sms"
: >"$tmp/batch"
"$gpupart" run -i sample:h200 --name around -t 0-9 -- "$gpupart" run --name batch -t 0-3 \
	--lend serve --lend-limit 1s -- "$tmp/work" "$tmp/batch" 1000 >"$tmp/none" \
	2>"$tmp/batch.err" &
pid_batch=$!
waits got batch "12 0-19"
ok $? "inside a run on 0-9, one on 0-3 borrows 8-9 of 8-11"
"$gpupart" set around -t 0-8 >"$tmp/none" 2>&1
waits got batch "10 0-17"
ok $? "and 8 alone once the run around it has 0-8"
"$gpupart" set around -t 0-5 >"$tmp/none" 2>&1
waits told batch "the limit of the outer run contains none of the lender's TPCs"
ok $? "none, with a message, once that has 0-5"
waits got batch "8 0-7"
ok $? "then it has its own"
end batch
end serve

# What a node gave a user becomes less while his programs run: lent TPCs, too.
cat >"$tmp/give.c" <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/private.h"

/* Gives user 4711 the first argv[1] TPCs; argv[2] is the checked map. */
int main(int argc, char **argv)
{
	struct gpupart_grant grant = { .uid = 4711, .nr_tpcs = 66, .id = "0-7", .name = "7",
				       .pci = "0000:01:00.0", .source = "rm" };

	grant.set = gpupart_tpcset_first(atoi(argv[1]));
	snprintf(grant.key, sizeof(grant.key), "%s", argv[argc - 1]);
	return gpupart_grant_put(NULL, &grant);
}
END
cat >"$tmp/given" <<END
mount -t tmpfs none /run && mount -t tmpfs -o mode=1777 none /dev/shm || exit 120
key=\$("$gpupart" run -i sample:h200 -t 0-65 -- sh -c 'echo "\$GPUPART_CHECKED"')
"$tmp/give" 12 "\$key" || exit 121
as() { setpriv --reuid 4711 --clear-groups env HOME= XDG_CACHE_HOME=/dev/null "$gpupart" run -i sample:h200 "\$@"; }
as --name serve -t 8-11 -- "$tmp/work" "$tmp/serve" 1000 &
as --name batch -t 0-3 --lend serve --lend-limit 1s -- "$tmp/work" "$tmp/batch" 1000 2>"$tmp/batch.err" &
until [ -e "$tmp/less" ]; do sleep 0.05; done
"$tmp/give" 10 "\$key" || exit 122
wait
END
if [ "$(id -u)" -eq 0 ] && unshare -m true 2>"$tmp/none" &&
	${CC:-cc} -iquote . -I include -I include/uapi -o "$tmp/give" "$tmp/give.c" "$BUILD/lib/libgpupart.so.0" \
		"$BUILD/lib/libgpupart-manage.so.0" -Wl,-rpath,"$BUILD/lib"; then
	chmod 1777 "$tmp"
	rm -f "$tmp/serve.sms" "$tmp/batch.sms"
	: >"$tmp/serve"
	: >"$tmp/serve.still"
	: >"$tmp/batch"
	unshare -m sh "$tmp/given" >"$tmp/given.out" 2>&1 &
	given=$!
	waits got batch "16 0-23"
	ok $? "a user whom the node gave 12 TPCs: 4 of them are lent $(head -n 2 "$tmp/given.out")"
	: >"$tmp/less"
	waits got batch "12 0-19"
	ok $? "the node takes two of them away: they are lent no more"
	rm "$tmp/serve" "$tmp/batch"
	wait $given
else
	skip "only root makes grants, in a namespace of its own"
fi

# Two borrowers take turns by weight.
begin_idle "8 16-23" -t 8-11
# On a busy machine, a process may wait for a CPU for more than 200 ms. So the turns are long (0.2
# and 0.8 s), and the limit is long, because a kernel that exceeds it once is lent no more TPCs.
begin batch -t 0-3 --lend serve --lend-limit 1s --depth 1s --lend-weight 20
begin more -t 4-7 --lend serve --lend-limit 1s --depth 1s --lend-weight 80
waits has_nr batch 16 && waits has_nr more 16
ok $? "each of two borrowers gets the lender's TPCs"
if command -v jq >/dev/null; then
	# lent: the launches of both on lent TPCs.
	lent() { "$gpupart" ps --json | jq -r '[.processes[] | select(.lending) | {(.name): .lending.launches}] | add | "\(.batch) \(.more)"'; }
	first=$(lent)
	by_weight() { [ "$1" -gt 0 ] && [ "$2" -gt $((2 * $1)) ] && [ "$2" -lt $((8 * $1)) ]; }
	# The launches since $first, of several turns.
	for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do
		sleep 5
		next=$(lent)
		turns="$((${next% *} - ${first% *})) $((${next#* } - ${first#* }))"
		# shellcheck disable=SC2086 # two numbers
		by_weight $turns && break
	done
	# shellcheck disable=SC2086 # two numbers
	by_weight $turns
	ok $? "the one with four times the weight gets more than twice as many launches, less than eight times: $turns"
else
	skip "no jq"
fi
end batch
end more
# A launch takes 17 ms with lent TPCs, and a turn of weight 20 lasts 0.2 s. The difference between
# the host's clock and the clock of a program's GPU is constant. A program may read the host's clock
# late, but never before the end of its launch. So the least difference is the right one.
NS=1000000 begin batch -t 0-3 --lend serve --lend-limit 1s --depth 1s --lend-weight 20
NS=1000000 begin more -t 4-7 --lend serve --lend-limit 1s --depth 1s --lend-weight 40
waits has_nr batch 16 && waits has_nr more 16
# many_turns: until then, collects the times of all launches.
many_turns() {
	sleep 5
	for name in batch more; do
		awk -v name=$name '{ start[NR] = $1; end[NR] = $2; late = $3 - $2 }
			NR == 1 || late < least { least = late }
			END { for (n = 1; n <= NR; n++) printf "%.0f %.0f %s\n", start[n] + least, end[n] + least, name }' \
			"$tmp/$name.times"
	done | sort -n | awk '$1 < end && $3 != owner { print "overlap: " owner " until " end ", " $0 }
		{ turns += $3 != owner; owner = $3; end = $2 > end ? $2 : end }
		END { print "turns: " (turns > 5 ? "many" : turns) }' >"$tmp/turns"
	grep -q "turns: many" "$tmp/turns"
}
for _ in 1 2 3 4 5 6 7 8 9 10 11 12; do
	many_turns && break
done
is "$(cat "$tmp/turns")" "turns: many" "no two borrowers' kernels use the lent TPCs at one time"
kill -9 "$pid_more"
end more
rm -f "$tmp/batch.sms"
waits has_nr batch 16
ok $? "one is killed: the other one goes on"
end batch
end serve

# Without a limit: the slack of the goal of the lender, a tenant of qos run. Its latencies come
# from the socket.
if command -v python3 >/dev/null && command -v jq >/dev/null; then
	begin_idle "8 16-23" -t 8-11
	begin batch -t 0-3 --lend serve
	waits told batch "nothing is lent (simulated): no running 'gpupart qos run' has a latency goal or the key lend for it: use --lend-limit"
	ok $? "no --lend-limit and a lender without a goal: nothing is lent, and run says so"
	"$gpupart" qos run -i sample:h200 --epoch 50ms --tenant serve:job=serve,latency=1s,floor=4,ceiling=4 \
		--log "$tmp/slack.log" >"$tmp/qos.out" 2>"$tmp/qos.err" &
	qos=$!
	begin_latency 100
	waits has_nr batch 16
	ok $? "a goal of 1 s and a latency of 100 ms: TPCs are lent"
	limit=$("$gpupart" ps --json | jq '.processes[] | select(.name == "batch").lending.limit_ns')
	[ "$limit" -gt 850000000 ] && [ "$limit" -le 910000000 ]
	ok $? "the limit is the slack: $limit ns"
	waits grep -q '"lent":true' "$tmp/slack.log"
	ok $? "the controller knows that TPCs were lent"
	latency 1500
	waits got batch "8 0-7"
	ok $? "the goal is missed: nothing is lent"
	latency 100
	waits has_nr batch 16
	ok $? "it is met again: TPCs are lent again"
	kill "$qos" && wait "$qos"
	waits got batch "8 0-7"
	ok $? "the controller ends: nothing is lent"
	end_latency
	end batch
	is $? 0 "the borrower ends"
	end serve
	try qos replay "$tmp/slack.log"
	is "$status" 0 "the log replays"
else
	skip "no python3 or no jq"
fi

# A borrower that qos run adopts has the watcher of its own run.
if command -v jq >/dev/null; then
	begin serve -t 8-11
	begin batch -t 0-3 --lend serve
	waits got serve "8 16-23" && waits got batch "8 0-7"
	adopts() {
		rm -f "$tmp/adopted.log"
		"$gpupart" qos run -i sample:h200 --epoch 50ms --tenant serve:job=serve,rate=1,lend=500ms,floor=4,ceiling=4 \
			--tenant batch:job=batch,floor=4,ceiling=4 --log "$tmp/adopted.log" >"$tmp/none" 2>"$tmp/adopted.err" &
		qos=$!
	}
	adopts
	waits has_nr batch 16
	ok $? "an adopted borrower gets the TPCs of a tenant with a rate and a limit"
	is "$("$gpupart" ps --json | jq '.processes[] | select(.name == "batch").lending.limit_ns')" 500000000 \
		"the limit is that of the tenant"
	waits grep -qs '"borrowed":' "$tmp/adopted.log"
	ok $? "the controller counts what it borrows"
	: >"$tmp/serve.still"
	idle_lends() { grep '"stopped":true' "$tmp/adopted.log" | tail -n 1 | jq '.decision.tenants[0] | .state == "idle" and .lend_ns > 0' | grep -q true; }
	waits idle_lends
	ok $? "the lender launches nothing: it is idle and lends on"
	rm "$tmp/serve.still"
	kill "$qos" && wait "$qos"
	is "$(jq -s '[.[] | select(.measured[1].borrowed) | .measured[0].lent] | length > 0 and all' "$tmp/adopted.log")" true \
		"what it borrowed was lent"
	lent=$("$gpupart" ps --json | jq '.processes[] | select(.name == "batch").lending.launches')
	is "$(jq -s "[.[].measured[1].borrowed // 0] | add | . > 0 and . <= $lent" "$tmp/adopted.log")" true \
		"no more than $lent launches"
	is "$(cat "$tmp/adopted.err")" "" "and says nothing about it"
	try qos replay "$tmp/adopted.log"
	is "$status" 0 "the log replays"
	adopts
	waits grep -qs '"borrowed":' "$tmp/adopted.log"
	kill "$qos" && wait "$qos"
	now=$("$gpupart" ps --json | jq '.processes[] | select(.name == "batch").lending.launches')
	is "$(jq -s "[.[].measured[1].borrowed // 0] | add | . > 0 and . <= $now - $lent" "$tmp/adopted.log")" true \
		"another controller counts only what is borrowed from then on: of $now launches, $lent were before"
	end batch
	begin batch -t 0-3 --depth 5ms
	waits got batch "8 0-7"
	adopts
	waits told adopted "batch: borrows no TPCs, because another command started it without --lend: use 'gpupart run --lend serve'"
	ok $? "an adopted program that cannot borrow: qos run says so"
	waits grep -qs '"epoch":5,' "$tmp/adopted.log"
	is "$(grep -c 'borrows no TPCs' "$tmp/adopted.err")" 1 "once"
	kill "$qos" && wait "$qos"
	end batch
	end serve
else
	skip "no jq"
fi

# qos run lends between its own programs. The latencies come from the socket, as above.
if command -v python3 >/dev/null && command -v jq >/dev/null; then
	rm -f "$tmp/serve.sms"
	: >"$tmp/serve.still"
	cat >"$tmp/t.yaml" <<END
epoch: 50ms
tenants:
  serve: { goal: { latency: 1s }, lend: auto, floor: 4, ceiling: 4, program: [$tmp/work, $tmp/serve, "1000"] }
  batch: { floor: 8, ceiling: 8, program: [$tmp/work, $tmp/batch, "1000"] }
END
	begin_qos --log "$tmp/run.log"
	waits has_nr batch 16
	ok $? "qos run: no latency is known: best effort has its own TPCs"
	begin_latency 100
	waits has_nr batch 24
	ok $? "a slack of 0.9 s: it also has those of the tenant with 'lend: auto'"
	waits shows "TPCs .*"
	ok $? "ps says so"
	rm "$tmp/serve.still"
	waits grep -q . "$tmp/serve.sms"
	: >"$tmp/serve.still"
	latency 1500
	waits has_nr batch 16
	ok $? "the goal is missed: nothing is lent"
	latency 100
	waits has_nr batch 24
	ok $? "it is met again: lending goes on"
	rm "$tmp/serve" "$tmp/batch"
	wait "$qos"
	is $? 0 "the programs end, and qos run"
	is "$(jq -sc '[.[].measured // [] | .[0].lent // false, .[1].lent // false, (.[0].borrowed // 0) > 0,
		(.[1].borrowed // 0) > 0] as $all | [range(4) as $n | [$all[range($n; $all | length; 4)]] | any]' "$tmp/run.log")" \
		"[true,false,false,true]" "the log has who lent and who borrowed"
	try qos replay "$tmp/run.log"
	is "$status" 0 "the log replays"

	# The controller is stopped: its order expires after 5 s and 3 epochs.
	begin_qos
	waits has_nr batch 24
	kill -STOP "$qos"
	waits told qos "batch: borrows from serve: nothing is lent (simulated): 'gpupart qos run' no longer renews the limit: is it stopped?"
	ok $? "the controller is stopped: its order expires, and its watcher says so"
	borrowed() { "$gpupart" ps --json | jq -c '.processes[] | select(.name == "batch").lending | [.set, .launches]'; }
	lent=$(borrowed)
	has "$lent" "[null," "ps says that nothing is lent"
	sleep 2
	is "$(borrowed)" "$lent" "no launch borrows any more"
	kill -CONT "$qos"
	waits has_nr batch 24
	ok $? "it continues: TPCs are lent again"
	rm "$tmp/serve" "$tmp/batch"
	wait "$qos"
	waits gone

	# Killed, the controller takes its watcher with it.
	begin_qos
	waits has_nr batch 24
	ok $? "another run lends again"
	kill -9 "$qos" && wait "$qos"
	waits has_nr batch 16
	ok $? "it is killed: nothing is lent"
	"$gpupart" qos run -i sample:h200 --epoch 50ms --tenant serve:job=serve,latency=1s,lend=auto,floor=4,ceiling=4 \
		--tenant batch:job=batch,floor=8,ceiling=8 >"$tmp/none" 2>"$tmp/restart.err" &
	restarted=$!
	waits told restart "batch: borrows no TPCs, because the command that started it has ended: restart the program"
	ok $? "it is started again: it says why nothing is lent"
	kill "$restarted" && wait "$restarted"
	rm "$tmp/serve" "$tmp/batch"
	waits gone

	# A lender that borrows itself.
	begin serve -t 8-11 --lend other
	waits got serve "8 16-23"
	: >"$tmp/batch"
	sed 's/program: .*serve, "1000"\]/job: serve/' "$tmp/t.yaml" >"$tmp/circle.yaml"
	"$gpupart" qos run -i sample:h200 -f "$tmp/circle.yaml" >"$tmp/none" 2>"$tmp/circle.err" &
	qos=$!
	waits told circle "batch: borrows from serve: nothing is lent (simulated): the lender itself borrows TPCs"
	ok $? "a tenant that borrows itself lends nothing"
	rm "$tmp/batch"
	end serve
	wait "$qos"
	end_latency
else
	skip "no python3 or no jq"
fi
while read -r wanted options; do
	# shellcheck disable=SC2086 # several words
	try qos run -i sample:h200 --dry-run $options -- true
	is "$status" 125 "qos run $options: refused"
	has "$err" "$(echo "$wanted" | tr _ ' ')" "for the reason"
done <<'END'
must_be_auto,_or_a_time_from_1us_to_1s --tenant a:latency=1ms,lend=0 --tenant b:pid=1
must_be_auto,_or_a_time_from_1us_to_1s --tenant a:latency=1ms,lend=0us --tenant b:pid=1
must_be_auto,_or_a_time_from_1us_to_1s --tenant a:latency=1ms,lend=2s --tenant b:pid=1
must_be_auto,_or_a_time_from_1us_to_1s --tenant a:latency=1ms,lend=yes --tenant b:pid=1
needs_program_or_job,_not_pid --tenant a:latency=1ms,lend=auto,pid=1 --tenant b
END
cat >"$tmp/sim.head" <<'END'
gpu: { chip: h200, mps: yes }
stop: 4ms
kernels: { k: { blocks: 528, threads: 256, work: 20000 } }
streams: { a: { process: a }, b: { process: b } }
programs:
  a: { process: a, steps: [ { repeat: 9, do: [ { launch: k, on: a } ] } ] }
  b: { process: b, steps: [ { repeat: 9, do: [ { launch: k, on: b } ] } ] }
END
while read -r wanted change tenants; do
	printf '%s\nqos: { epoch: 4ms, phases: [ { epochs: 2 } ], tenants: %s }\n' "$(sed "$change" "$tmp/sim.head")" "$tenants" >"$tmp/bad.yaml"
	try qos sim "$tmp/bad.yaml"
	is "$status" 2 "$tenants: refused"
	has "$err" "$(echo "$wanted" | tr _ ' ')" "for the reason"
done <<'END'
only_a_tenant_with_a_goal_lends;_best_effort_borrows b { a: { goal: { latency: 1ms }, lend: auto }, b: { lend: 1ms } }
the_value_auto_of_lend_needs_a_latency_goal;_use_a_time_as_the_value b { a: { goal: { rate: 10 }, lend: auto }, b: {} }
no_tenant_is_best_effort,_so_no_tenant_can_borrow b { a: { goal: { latency: 1ms }, lend: auto }, b: { goal: { rate: 1 } } }
TPCs_are_lent_only_under_MPS:_add_'mps:_yes'_to_gpu s/yes/no/ { a: { goal: { latency: 1ms }, lend: auto }, b: {} }
b_and_a_are_in_the_same_process,_which_cannot_lend s/\(process:.\)b/\1a/g { a: { goal: { latency: 1ms }, lend: auto }, b: {} }
END

# The simulated GPU shows lending.
if command -v jq >/dev/null; then
	try qos sim qos-lend --json --log "$tmp/sim.log"
	cp "$tmp/out" "$tmp/sim.json"
	is "$(jq -sr '[.[] | select(.event == "epoch").measured[0]] | "\(map(.requests) | add) \(map(.within // 0) | add)"' "$tmp/sim.log")" \
		"$(jq -r '.tenants[0] | "\(.requests) \(.requests_within)"' "$tmp/sim.json")" "the sums of requests and of those within the goal"
	is "$(jq '.tenants[0] | .requests_within >= 0.99 * .requests and .requests > 900' "$tmp/sim.json")" true "at least 99 % are within the goal"
	try qos replay "$tmp/sim.log"
	has "$(cat "$tmp/out")" "requests within 150 us (" "the report has them"
	sed 's/, lend: auto//' "$root/share/scenarios/qos-lend.yaml" >"$tmp/fixed.yaml"
	try qos sim "$tmp/fixed.yaml" --json
	is "$(jq -s '.[0].tenants[0].epochs_met == .[0].epochs and .[0].tenants[1].speed_milli > 1.3 * .[1].tenants[1].speed_milli and
		.[0].tenants[1].launches_borrowed > 1000 and .[1].tenants[1].launches_borrowed == null' "$tmp/sim.json" "$tmp/out")" true \
		"qos-lend: the goal is kept, and best effort is faster than without lending"
	is "$(jq -s '[.[] | select(.measured[1].borrowed) | .measured[0].lent] | length > 40 and all' "$tmp/sim.log")" true \
		"what is borrowed was lent"
	try qos replay "$tmp/sim.log"
	is "$status" 0 "its log replays"
	sed -e 's/blocks: 528/blocks: 132/' -e 's/^\( *\)train: {}/&\n\1more: { weight: 3 }/' -e 's/^  train: \(.*\)train }$/&\n  more: \1more }/' \
		-e 's/^  train: \(.*process: \)train\(.*on: \)train \(.*\)/&\n  more: \1more\2more \3/' \
		"$root/share/scenarios/qos-lend.yaml" >"$tmp/turns.yaml"
	try qos sim "$tmp/turns.yaml" --log "$tmp/turns.log"
	is "$(jq -sr '[.[] | select(.measured) | [.measured[1, 2] | (.borrowed // 0) > 0]] |
		"\(map(select(all)) | length) \((map(select(.[0])) | length) as $one | (map(select(.[1])) | length) as $more |
			$one >= 8 and $more >= 2.5 * $one and $more <= 3.5 * $one)"' "$tmp/turns.log")" "0 true" \
		"two borrowers with weights 1 and 3 never borrow in one epoch, and take turns by weight"
	try qos replay "$tmp/turns.log"
	is "$status" 0 "its log replays"
	sed 's/"lend_ns":86[0-9]*/"lend_ns":86/' "$tmp/sim.log" >"$tmp/changed.log"
	try qos replay "$tmp/changed.log"
	has "$err" "lend_ns" "with another limit it does not"
else
	skip "no jq"
fi

begin batch -t 0-3 --depth 5ms
waits got batch "8 0-7"
ok $? "--depth alone"
has "$("$gpupart" ps)" "bounds outstanding launches to 5 ms: 0 launches waited" "ps shows the bound"
end batch
is "$(grep -c lent "$tmp/batch.err")" 0 "lends nothing"
is "$(grep -c 'not bounded' "$tmp/batch.err")" 0 "all launches were bounded"

# The program's /dev/shm has room for a state page, but not for records.
cat >"$tmp/full" <<END
mount -t tmpfs -o mode=1777 none /dev/shm || exit 120
"$gpupart" run -i sample:h200 -t 0-3 -- true
mount -o remount,size=600k none /dev/shm
exec "$gpupart" run -i sample:h200 --name batch -t 0-3 --depth 5ms -- "$tmp/work" "$tmp/batch" 1000
END
if unshare -r -m true 2>"$tmp/none"; then
	rm -f "$tmp/batch.sms"
	: >"$tmp/batch"
	unshare -r -m sh "$tmp/full" >"$tmp/none" 2>"$tmp/batch.err" &
	pid_batch=$!
	waits got batch "8 0-7"
	ok $? "/dev/shm is full: the program runs"
	has "$(nsenter -U -m -t "$pid_batch" "$gpupart" ps)" "bounds outstanding launches to 5 ms: 0 launches waited, " \
		"ps counts launches that are not bounded"
	end batch
	has "$(cat "$tmp/batch.err")" "launches had no completion record, so their time was not bounded (simulated): see 'gpupart doctor'" \
		"and run reports them"
else
	skip "no user namespace can be made here"
fi

while read -r wanted options; do
	# shellcheck disable=SC2086 # several words
	try run -i sample:h200 -t 0-3 $options -- true
	is "$status" 125 "run $options: refused"
	has "$err" "$(echo "$wanted" | tr _ ' ')" "for the reason"
done <<'END'
needs_--lend_JOB --lend-limit 1ms
needs_--lend_JOB --lend-weight 2
must_be_a_number_from_1_to_1000 --lend serve --lend-weight 0
must_be_a_number_from_1_to_1000 --lend serve --lend-weight 1001
must_be_a_time_from_1us_to_1s --lend serve --lend-limit 0
must_be_a_time_from_1us_to_1s --lend serve --lend-limit 0us
must_be_a_time_from_1us_to_1s --lend serve --lend-limit 2s
must_be_a_time_from_1us_to_1s --lend serve --lend-limit -1ms
must_be_a_time_from_1us_to_1s --depth 5
must_be_a_time_from_1us_to_1s --depth us
must_remain_as_the_program's_parent --depth 1ms --exec
--lend_a,b:_must_be_1_to_63_characters --lend a,b
--lend_'':_must_be_1_to_63_characters --lend=
a_run_cannot_borrow_from_itself --name serve --lend serve --lend-limit 1ms
works_on_one_GPU --gpu 0,1 --lend serve --lend-limit 1ms
END
GPUPART_RECORDS=0 try run -i sample:h200 -t 0-3 --depth 1ms -- true
has "$err" "GPUPART_RECORDS=0: --depth needs completion records" "records switched off: refused"
tap_done
