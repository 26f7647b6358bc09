#!/bin/sh
# SPDX-License-Identifier: MIT
# gpupart run --mem, and how ps, top and set show and change quotas: a tenant of several processes
# and runs, quotas below the memory in use, invalid sizes, runs inside runs, no files left.
. "$(dirname "$0")/tap.subr"
h200=sample:h200
unset GPUPART_JOB
name=mem-$$
folder=/dev/shm/gpupart-$(id -u)

# Joins the tenant of its environment, charges $1 bytes and waits until its file is removed.
# $UNCOUNTED is its number of calls that may have allocated more.
cat >"$tmp/use.c" <<'END_OF_C'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/ledger/ledger.h"
int main(int argc, char **argv)
{
	struct ledger *ledger;
	int gpu, err = ledger_join(getenv("GPUPART_TENANT"), &ledger);

	if (argc != 3 || err)
		return 1;
	gpu = ledger_gpu(ledger, getenv("GPUPART_GPU"));
	ledger_set_quota_first(ledger, gpu, strtoull(getenv("GPUPART_MEM"), NULL, 10));
	err = ledger_charge(ledger, gpu, strtoull(argv[1], NULL, 10));
	ledger_record_uncounted(ledger, getenv("UNCOUNTED") ? atoi(getenv("UNCOUNTED")) : 0);
	printf("%s\n", err ? strerror(-err) : "ok");
	fflush(stdout);
	while (!err && !access(argv[2], F_OK))
		usleep(2000);
	return err != 0;
}
END_OF_C
if ! ${CC:-cc} -D_GNU_SOURCE -iquote . -Iinclude -Iinclude/uapi -o "$tmp/use" "$tmp/use.c" lib/ledger/ledger.c lib/ledger/file.c lib/core/fork.c lib/core/state_dir.c \
	lib/ledger/query.c lib/core/shared_header.c -lpthread 2>"$tmp/err"; then
	cat "$tmp/err" >&2
	skip "no C compiler"
	tap_done
fi

# rows: ps's rows of this user's tenants, each "USED QUOTA PROCESSES SIMULATED".
rows() {
	"$gpupart" ps --json >"$tmp/ps" || echo "ps failed"
	python3 - "$tmp/ps" "${1-$name}" <<'END_OF_PYTHON'
import json, sys
for row in json.load(open(sys.argv[1]))["tenants"]:
    if row["tenant"] == sys.argv[2]:
        assert all(p["pid"] and p["program"] for p in row["processes"])
        print(row["used_bytes"], row["quota_bytes"], row["nr_processes"], row["simulated"],
              "".join(f" {p['program']}={p['used_bytes']}" for p in row["processes"]))
END_OF_PYTHON
}

# start NR BYTES ARGS: a program in a run with ARGS charges BYTES; its answer is in $tmp/said.NR.
start() {
	nr=$1
	bytes=$2
	shift 2
	: >"$tmp/go.$nr"
	: >"$tmp/said.$nr"
	case " $* " in *" -- "*) ;; *) set -- "$@" -- ;; esac
	"$gpupart" run --exec -i $h200 "$@" "$tmp/use" "$bytes" "$tmp/go.$nr" >"$tmp/said.$nr" 2>"$tmp/err.$nr" &
	eval "pid_$nr=$!"
	tries=0
	until [ -s "$tmp/said.$nr" ] || ! kill -0 $! 2>/dev/null || [ $tries -gt 3000 ]; do
		sleep 0.01
		tries=$((tries + 1))
	done
}
end() {
	rm -f "$tmp/go.$1"
	eval "wait \$pid_$1"
}

# ------------------------------------------------------------------ the environment
try run -i $h200 --mem 20G --name $name -- sh -c 'echo $GPUPART_TENANT $GPUPART_MEM $GPUPART_SET'
is "$status $out" "0 $name 21474836480 0-65" "--mem alone: on all TPCs, with tenant and bytes"
try run -i $h200 -g 1 --mem 512M -- sh -c '[ "$GPUPART_TENANT" = "$GPUPART_JOB" ] && echo $GPUPART_MEM'
is "$status $out" "0 536870912" "without --name the tenant is the run's own"
try run -i $h200 -g 1 -- sh -c 'echo "${GPUPART_TENANT-none} ${GPUPART_MEM-none}"'
is "$status $out" "0 none none" "without --mem there are none"
is "$("$gpupart" ps --json >/dev/null; find "$folder" -name "mem-$name*")" "" "nothing is left of it after ps"

# The driver calls another callback if a quota exists before the set.
if ${CC:-cc} -o "$tmp/census" tests/cli/census.c -ldl 2>"$tmp/err"; then
	try run -i $h200 -t 0,5 --mem 8G -- "$tmp/census" lib/confine/probe.ptx 0
	is "$status $out" "0 0 1 10 11" "a set confines a program that has a quota, too"
else
	skip "no C compiler"
fi

# ------------------------------- more than the GPU's memory, less than a context needs
small="is less than the 582 MiB that a CUDA context uses on an H200: programs may fail to start"
refused 125 "a quota of 200 GiB exceeds the memory of GPU 0000:01:00.0, which has 140.40 GiB" run -i $h200 --mem 200G --name $name -- true
is "$("$gpupart" ps --json >/dev/null; find "$folder" -name "mem-$name*")" "" "and begins no tenant"
refused 2 "a quota of 200 GiB exceeds the memory of GPU 0000:01:00.0, which has 140.40 GiB" cdi -i $h200 --mem 200G --name $name
try run -i $h200 --mem 143771M -- true
is "$status $(grep -c quota "$tmp/err")" "0 0" "all of the GPU is a quota like others"
try run -i $h200 --mem 1 -- true
is "$status $(grep quota "$tmp/err")" "0 gpupart run: a quota of 1 byte $small" "less than a context needs is accepted, with a message"
try run -i $h200 --mem 582M -- true
is "$status $(grep -c quota "$tmp/err")" "0 0" "as much is not"
try cdi -i $h200 --mem 100M --name $name
is "$status $(grep quota "$tmp/err")" "0 gpupart cdi: a quota of 100 MiB $small" "cdi says it, too"

# ---------------------------------------------------------- a tenant with several runs
start 1 600 --mem 1000 --name $name
is "$(cat "$tmp/said.1")" ok "a program uses 600 bytes of 1000"
is "$(rows)" "600 1000 1 True  use=600" "ps --json shows quota, use and who"
try ps
has "$out" "$name" "ps shows the tenant"
has "$(grep "^$name" "$tmp/out")" "600 bytes 1000 bytes  $pid_1 use (600 bytes) (simulated)" "with sizes and processes"
try top -n 1
has "$(grep "^$name" "$tmp/out")" "600 bytes 1000 bytes" "top shows it"
start 2 500 --mem 1000 --name $name
is "$(cat "$tmp/said.2")" "Cannot allocate memory" "500 more in another run of that name do not fit"
end 2
start 2 400 --mem 1000 --name $name
is "$(cat "$tmp/said.2")$(grep -v -e simulated -e "$small" "$tmp/err.2")" ok "400 do"
is "$(rows)" "1000 1000 2 True  use=600 use=400" "they share it"
UNCOUNTED=2
export UNCOUNTED
start 3 900 --mem 1000 --name $name-other
unset UNCOUNTED
is "$(cat "$tmp/said.3")" ok "another tenant has its own"
try ps
has "$(grep "^$name-other" "$tmp/out")" "use (900 bytes, 2 calls not counted) (simulated)" "ps: what may have got memory that is not counted"
has "$(grep "^$name " "$tmp/out")" "use (600 bytes), $pid_2 use (400 bytes) (simulated)" "and nothing of those who have none"
try top -n 1
has "$(grep "^$name-other" "$tmp/out")" "(900 bytes, 2 calls not counted)" "top has it"
is "$("$gpupart" ps --json | python3 -c 'import json, sys; print(sorted((p["used_bytes"], p["uncounted_calls"]) for t in json.load(sys.stdin)["tenants"] if t["tenant"].startswith(sys.argv[1]) for p in t["processes"]))' $name)" \
	"[(400, 0), (600, 0), (900, 2)]" "ps --json has it"

# ------------------------------------------------------------------------ set --mem
try set $name --mem 1.5K
is "$status $out" "0 tenant $name's current quota on 0000:01:00.0: 1000 bytes (simulated)
tenant $name's new quota on 0000:01:00.0: 1.50 KiB (simulated)" "set NAME --mem prints old and new"
is "$err" "gpupart set: a quota of 1.50 KiB $small" "and that it is little, and nothing more"
export GPUPART_SIM=$BUILD/share/gpupart/captures/h200.capture LD_LIBRARY_PATH=$BUILD/lib/gpupart/sim
refused 2 "a quota of 150 GiB exceeds the memory of GPU 0000:01:00.0, which has 140.40 GiB" set $name --mem 150G
unset GPUPART_SIM LD_LIBRARY_PATH
is "$(rows | cut -d' ' -f1-3)" "1000 1536 2" "it holds while programs run"
is "$(rows $name-other | cut -d' ' -f1-3)" "900 1000 1" "of that tenant alone"
try set -p "$pid_2" --mem 100
is "$status" 0 "set -p PID --mem"
has "$err" "tenant $name uses 1000 bytes of 0000:01:00.0, but its quota is only 100 bytes: the tenant keeps this memory" "says that more is used"
is "$(rows | cut -d' ' -f1-3)" "1000 100 2" "takes nothing away"
start 4 1 --mem 100 --name $name
is "$(cat "$tmp/said.4")" "Cannot allocate memory" "and gives nothing"
end 4
try set $name --mem 2000 --json
is "$(python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); r = d["quotas"][0]; print(d["schema"], d["simulated"], r["tenant"], r["gpu"], r["before_bytes"], r["quota_bytes"], r["used_bytes"])' "$tmp/out")" \
	"gpupart/1 True $name 0000:01:00.0 100 2000 1000" "set --mem --json"
try set $name-other --mem 2000
start 4 1600 --mem 2000 --name $name-other -- env GPUPART_GPU=0000:0e:00.0
is "$(cat "$tmp/said.4")" ok "another GPU of a tenant has 2000 bytes, too"
end 4
try set $name-other --mem 1800
start 4 1900 --mem 1800 --name $name-other -- env GPUPART_MEM=2000 GPUPART_GPU=0000:0f:00.0
is "$(cat "$tmp/said.4")" "Cannot allocate memory" "what set gives holds on GPUs that come later: 1900 bytes of 1800"
end 4
try set $name --mem 2000 --gpu 0000:01:00.0
is "$status" 0 "set --mem --gpu, an address"
refused 2 "--gpu 0000:0d:00.0: tenant $name uses GPU 0000:01:00.0" set $name --mem 5 --gpu 0000:0d:00.0

# ------------------------------------------------- another quota by another run's --mem
start 4 1 --mem 3000 --name $name
has "$(cat "$tmp/err.4")" "tenant $name on 0000:01:00.0 was 1.95 KiB and is now 2.92 KiB, for all its processes" \
	"a run with another --mem changes it and says so"
is "$(rows | cut -d' ' -f1-3)" "1001 3000 3" "for all of it"
end 4
start 4 1 --mem 900 --name $name
has "$(cat "$tmp/err.4")" "tenant $name uses 1000 bytes of 0000:01:00.0, but its quota is only 900 bytes" "also below what is used"
end 4
try run -i $h200 -g 1 --name $name -- sh -c 'echo "${GPUPART_TENANT-none}"'
is "$status $out" "0 none" "a run of that name without --mem is not in it"
has "$err" "tenant $name has a quota of 900 bytes on 0000:01:00.0: the quota does not apply to this program" "and says so"

# -------------------------------------------------------------------- deaths and ends
kill -9 "$pid_1"
wait "$pid_1" 2>/dev/null
is "$(rows | cut -d' ' -f1-3)" "400 900 1" "a killed process gives back what it had"
end 2
is "$(rows)" "" "the last one's end is the end of the tenant"
end 3
rows >/dev/null
is "$(find "$folder" -name "mem-$name*")" "" "and no file is left"

# A living job keeps its tenant's quota between its programs.
: >"$tmp/hold"
"$gpupart" run --exec -i $h200 --mem 1000 --name $name -- sh -c 'echo >"$1"; while [ -e "$2" ]; do sleep 0.01; done; echo 5 >"$3"; "$4" 1500 "$3"' \
	sh "$tmp/begun" "$tmp/hold" "$tmp/go.5" "$tmp/use" >"$tmp/said.5" 2>/dev/null &
job=$!
tries=0
until [ -s "$tmp/begun" ] || [ $tries -gt 3000 ]; do sleep 0.01; tries=$((tries + 1)); done
is "$(rows | cut -d' ' -f1-3)" "0 1000 0" "a tenant whose programs are to come is there"
try set $name --mem 2000
is "$status" 0 "and its quota can be changed"
rm "$tmp/hold"
tries=0
until [ -s "$tmp/said.5" ] || [ $tries -gt 3000 ]; do sleep 0.01; tries=$((tries + 1)); done
is "$(cat "$tmp/said.5")" ok "which holds for what begins then"
rm -f "$tmp/go.5"
wait $job
rows >/dev/null

# ---------------------------------------------------------------------- runs in runs
try run -i $h200 --mem 1000 --name $name -- "$gpupart" run --mem 500 -- true
is "$status" 125 "--mem inside of a run with a quota is refused"
has "$err" "--mem 500: this process belongs to tenant $name" "which is named"
try run -i $h200 --mem 1000 --name $name -- "$gpupart" run -g 1 --name $name-in -- sh -c 'echo $GPUPART_TENANT $GPUPART_MEM $GPUPART_NAME'
is "$status $out" "0 $name 1000 $name-in" "a run inside without --mem stays in the tenant"
try run -i $h200 -g 1 -- sh -c 'echo $GPUPART_SET'
set=$out
try run -i $h200 -g 1 -- "$gpupart" run --mem 500 -- sh -c 'echo $GPUPART_SET $GPUPART_MEM'
is "$status $out" "0 $set 500" "inside a run's set --mem alone takes that set"

# ---------------------------------------------------------------------- invalid input
refused 125 "--mem '': " run -i $h200 --mem "" -- true
refused 125 "--mem 5X: '5X' has an unknown unit" run -i $h200 --mem 5X -- true
refused 125 "--mem 0: '0' is 0 bytes" run -i $h200 --mem 0 -- true
refused 125 "--mem -1: '-1' is not a size" run -i $h200 --mem=-1 -- true
refused 125 "--mem 1.5: " run -i $h200 --mem 1.5 -- true
refused 125 "--mem 99999999T: " run -i $h200 --mem 99999999T -- true
refused 125 "--mem needs a value" run -i $h200 --mem
refused 2 "--mem 5X: " set $name --mem 5X
refused 2 "--mem 5 and -t 0" set $name --mem 5 -t 0
refused 2 "--mem 5 and -a" set $name --mem 5 -a
refused 2 "you have no running tenant named '$name'" set $name --mem 5
refused 2 "process 1 has no memory quota" set -p 1 --mem 5
refused 2 "-p 'x'" set -p x --mem 5

# ------------------------------------------------------------- files with wrong contents
mkdir -p "$folder" && chmod 700 "$folder"
ln -s "$tmp/target" "$folder/mem-$name"
try run -i $h200 --mem 1000 --name $name -- true
is "$status" 125 "a link in the place of the tenant's file"
has "$err" "--mem 1000: tenant $name: its file" "is refused, and named"
[ ! -e "$tmp/target" ]
ok $? "and not followed"
try ps
is "$status" 0 "ps goes past it"
rm "$folder/mem-$name"
head -c 5000 /dev/urandom >"$folder/mem-$name"
chmod 600 "$folder/mem-$name"
try run -i $h200 --mem 1000 --name $name -- sh -c 'echo $GPUPART_MEM'
is "$status $out" "0 1000" "garbage without processes is overwritten"
rows >/dev/null
is "$(find "$folder" -name "mem-$name*")" "" "and goes as others do"
tap_done
