#!/bin/sh
# SPDX-License-Identifier: MIT
# gpupart is upgraded and rolled back in place while 20 jobs run, half of them of a version whose
# files have another layout after the header: nothing is lost, no TPC is allocated twice, and
# files of the other version do not change. Then the same with the grants of the Slurm plugin.
. "$(dirname "$0")/tap.subr"
e="-i $root/tests/data/gh100-h200-e/capture.txt"
unset GPUPART_JOB
own="/dev/shm/gpupart-$(id -u)"
files() { find "$own" -name '[1-9]*' -o -name 'job-*' -o -name 'mem-up-*'; }
# Processes that another test left alive.
files 2>/dev/null | sort >"$tmp/files-before"

# Allocates as many pieces of 256 MiB as its file says, and reports their number.
cat >"$tmp/work.c" <<'END'
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
#define CALL(name, types, args) ((int (*)types)dlsym(lib, name)) args
int main(int argc, char **argv)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW), *ctx;
	int wanted, got = 0, told = -1;
	unsigned long long piece;
	FILE *file;

	if (argc != 3 || !lib || CALL("cuInit", (unsigned int), (0)) ||
	    CALL("cuCtxCreate_v2", (void **, unsigned int, int), (&ctx, 0, 0)))
		return 1;
	while ((file = fopen(argv[1], "r"))) {
		if (fscanf(file, "%d", &wanted) == 1)
			while (got < wanted && !CALL("cuMemAlloc_v2", (unsigned long long *, size_t),
						     (&piece, 256 << 20)))
				got++;
		fclose(file);
		if (got != told) {
			file = fopen(argv[2], "w");
			fprintf(file, "%d\n", got);
			fclose(file);
		}
		told = got;
		usleep(20000);
	}
	return 0;
}
END
if ! ${CC:-cc} -o "$tmp/work" "$tmp/work.c" -ldl 2>"$tmp/err"; then
	cat "$tmp/err" >&2
	skip "no C compiler"
	tap_done
fi

# The other version: each layout has another number, and more data after the header.
mkdir "$tmp/src" "$tmp/a"
ln -s "$root"/* "$tmp/src"
rm "$tmp/src/lib"
cp -R "$root/lib" "$tmp/src/lib"
change() {
	sed "$2" "$root/lib/$1" >"$tmp/src/lib/$1"
	[ "$(diff "$root/lib/$1" "$tmp/src/lib/$1" | grep -c '^>')" -eq "$3" ]
	ok $? "another layout: $1"
}
bump='/^#define [A-Z]*_LAYOUT/s/[0-9][0-9]*/77/'
change state/state_page.h "$bump;s/^	char problem\[256\];/	char before[4096];&/;s/^	struct limit limit;/	char inserted[320];&/" 3
change ledger/file.h "$bump;s/^	struct ledger_account gpus/	char inserted[512];&/" 2
change state/job_record.h "$bump;s/^	char source\[512\];/	char inserted[64];&/" 2
change state/grant.h "$bump;/^struct grant_file/,/^}/s/^	struct gpupart_grant grant;/	char inserted[64];&/" 2
build_other() {
	make -s -j2 -C "$tmp/src" B="$tmp/b" CFLAGS=-O0 CROSS_COMPILE= "$tmp/b/lib/libgpupart.so" "$tmp/b/lib/gpupart/libgpupart-inject.so" \
		"$tmp/b/lib/libgpupart.a" >"$tmp/log" 2>&1
}
# Objects that do not use the layouts are reused, unless they were built for another way of
# linking.
for object in $(cd "$BUILD/obj" && find lib -name '*.d' -exec grep -LE 'lib/(state/state_page|state/grant|ledger/file)\.h|lib/state/job\.c' {} + |
	sed 's/\.d$/.o/'); do
	mkdir -p "$tmp/b/obj/${object%/*}"
	cp "$BUILD/obj/$object" "$tmp/b/obj/$object"
done
build_other || { rm -rf "$tmp/b"; build_other; }
status=$?
ok $status "it is built"
[ $status -eq 0 ] || sed 's/^/# /' "$tmp/log"
for version in a b; do
	mkdir -p "$tmp/$version/bin" "$tmp/$version/lib/gpupart" "$tmp/$version/share"
	cp "$BUILD/bin/gpupart" "$tmp/$version/bin"
	cp -R "$BUILD/lib/gpupart/sim" "$tmp/$version/lib/gpupart"
done
cp "$BUILD/lib/libgpupart.so.0" "$BUILD/lib/libgpupart-manage.so.0" "$tmp/a/lib"
cp "$BUILD/lib/gpupart/libgpupart-inject.so" "$tmp/a/lib/gpupart"

# install VERSION: replaces the installed version, like a package.
install() {
	mkdir -p "$tmp/inst/bin" "$tmp/inst/lib/gpupart"
	for file in bin/gpupart lib/libgpupart.so.0 lib/libgpupart-manage.so.0 lib/gpupart/libgpupart-inject.so; do
		cp "$tmp/$1/$file" "$tmp/inst/$file.new"
		mv "$tmp/inst/$file.new" "$tmp/inst/$file"
	done
	[ -d "$tmp/inst/lib/gpupart/sim" ] || cp -R "$tmp/$1/lib/gpupart/sim" "$tmp/inst/lib/gpupart"
}

# within SECONDS COMMAND: whether it succeeds in that time.
within() {
	until_when=$(($(date +%s) + $1))
	shift
	until "$@"; do
		[ "$(date +%s)" -lt $until_when ] || return 1
		sleep 0.05
	done
}

# sets VERSION: "NAME LIST" of each process of this test, as that version lists them.
sets() {
	"$tmp/$1/bin/gpupart" ps --json | jq -r '.processes[] | select((.name // "") | startswith("up-")) | "\(.name) \(.set.list)"' | sort
}

others() {
	"$tmp/$1/bin/gpupart" ps --json | jq '[.processes[] | select(((.name // "") | startswith("up-")) and .other_version)] | length'
}

nr_sets() {
	sets "$1" | wc -l
}

lists() {
	[ "$(nr_sets "$1")" -eq "$2" ]
}

# disjoint: whether no TPC of standard input is in two sets; prints their number.
disjoint() {
	awk '{
		n = split($2, parts, ",")
		for (i = 1; i <= n; i++) {
			last = split(parts[i], ends, "-")
			for (t = ends[1]; t <= ends[last]; t++)
				if (seen[t + 0]++) { print "TPC " t " twice"; exit }
		}
	} END { print length(seen) }'
}

# start NAME OPTIONS..: a job of the installed version, on 2 free TPCs.
start() {
	start_name=$1
	shift
	echo 1 >"$tmp/go-$start_name"
	# shellcheck disable=SC2086 # options
	"$tmp/inst/bin/gpupart" run $e -n 2 --name "$start_name" "$@" -- "$tmp/work" "$tmp/go-$start_name" "$tmp/got-$start_name" 2>>"$tmp/run.log" &
}

quota_of() {
	"$tmp/$1/bin/gpupart" ps --json | jq -r ".tenants[] | select(.tenant == \"$2\") | \"\(.quota_bytes) \(.used_bytes > 0)\""
}

got() {
	[ "$(cat "$tmp/got-$1" 2>/dev/null)" = "$2" ]
}

# not_changed VERSION PART ARGS..: that version's gpupart ARGS fails with a reason.
not_changed() {
	version=$1
	part=$2
	shift 2
	"$tmp/$version/bin/gpupart" "$@" >"$tmp/out" 2>"$tmp/err"
	status=$?
	[ $status -ne 0 ] && [ $status -lt 126 ] && grep -q "$part" "$tmp/err" && grep -q 'version' "$tmp/err"
	ok $? "$version: gpupart $*: status $status: $(head -n 1 "$tmp/err" | sed "s,$tmp,,g")"
}

# ------------------------------------------------------------------------ jobs

install a
for i in 1 2 3 4 5 6 7 8 9; do
	start "up-a$i"
done
start up-a10 --mem 2G
# Its program begins when another version is installed.
# shellcheck disable=SC2016,SC2086 # expanded by the shell; options
"$tmp/inst/bin/gpupart" run $e -n 2 --name up-late -- sh -c 'until [ -e "$1" ]; do sleep 0.05; done; exec "$2" "$1" "$3"' sh \
	"$tmp/go-up-late" "$tmp/work" "$tmp/got-up-late" 2>>"$tmp/run.log" &
late_job=$!
within 60 lists a 10
ok $? "ten jobs of version a run, and one whose program has not begun"

install b
for i in 1 2 3 4 5 6 7 8 9; do
	start "up-b$i"
done
start up-b10 --mem 2G
within 60 lists b 20
status=$?
ok $status "upgraded: ten of version b run beside them: version b lists 20"
if [ $status -ne 0 ]; then
	kill $late_job
	rm "$tmp"/go-*
	wait
	tap_done
fi
is "$(nr_sets a) $(others a) $(others b)" "20 10 10" "version a lists 20 as well; each sees ten of the other"
is "$(sets a)" "$(sets b)" "both list the same sets"
is "$(sets b | disjoint)" 40 "-n gave each two TPCs of its own, whichever version came first"
sets b >"$tmp/before"
within 60 got up-a10 1 && within 60 got up-b10 1
ok $? "two hold 256 MiB each"
is "$(quota_of a up-a10) / $(quota_of a up-b10)" "2147483648 true / 2147483648 true" "version a knows both quotas, and that something is used"
is "$(quota_of b up-a10) / $(quota_of b up-b10)" "2147483648 true / 2147483648 true" "so does version b"
simulated_of() {
	"$tmp/$1/bin/gpupart" ps --json | jq -r '[.tenants[] | select(.tenant | startswith("up-")) | .simulated] | map(tostring) | join(" ")'
}
is "$(simulated_of a) / $(simulated_of b)" "true true / true true" "and that both are the simulated GPU's"

pid_a=$("$tmp/a/bin/gpupart" ps --json | jq '.processes[] | select(.name == "up-a3") | .pid')
not_changed b "up-a1 " set up-a1 -t 0
not_changed b "$pid_a" set -p "$pid_a" -t 0
not_changed b up-a10 set up-a10 --mem 3G
pid_a10=$("$tmp/a/bin/gpupart" ps --json | jq '.processes[] | select(.name == "up-a10") | .pid')
not_changed b "$pid_a10" set -p "$pid_a10" --mem 3G
# shellcheck disable=SC2086 # options
row=$("$tmp/b/bin/gpupart" doctor --no-launch $e --json | jq -r ".rows[] | select(.name == \"processes\" and (.answer | startswith(\"$pid_a \"))) | .answer")
is "$(echo "$row" | grep -c 'another version') $(echo "$row" | grep -c launches)" "1 0" "doctor: $row"
# shellcheck disable=SC2086 # options
not_changed b up-a10 run $e -t 0 --name up-a10 --mem 3G -- true
not_changed a "up-b1 " set up-b1 -t 0
not_changed a up-b10 set up-b10 --mem 3G
is "$(sets a; quota_of b up-a10; quota_of a up-b10)" "$(cat "$tmp/before"; echo 2147483648 true; echo 2147483648 true)" \
	"no set and no quota is another one now"

echo 1 >"$tmp/go-up-late"
within 60 lists b 21
ok $? "the program of the job that version a began runs with version b"
late=$("$tmp/b/bin/gpupart" ps --json | jq -r '.processes[] | select(.name == "up-late") | "\(.other_version) \(.set.nr_tpcs)"')
is "$late" "false 2" "it has the set that its job was given"
is "$(sets a | disjoint)" 42 "which no other job got meanwhile"
not_changed b "up-late " set up-late -t 0
not_changed a "another version" set up-late -t "$(sets a | sed -n 's/^up-late //p')"

set_of() {
	sets "$1" | sed -n "s/^$2 //p"
}
"$tmp/a/bin/gpupart" set up-a1 -t "$(set_of a up-a1 | sed 's/[-,].*//')" >"$tmp/out" 2>&1
is "$?" 0 "version a changes its own job up-a1"
is "$(set_of b up-a1)" "$(set_of a up-a1)" "version b lists the new set"
"$tmp/b/bin/gpupart" set up-b1 -t "$(set_of b up-b1 | sed 's/[-,].*//')" >"$tmp/out" 2>&1
is "$? $(set_of a up-b1)" "0 $(set_of b up-b1)" "and the other way round"
sets a >"$tmp/before"

install a
start up-c1
within 60 lists a 22
ok $? "rolled back: one more job of version a begins"
is "$(sets b | disjoint)" 42 "on TPCs that no other has"
is "$(sets a | grep -v up-c1)" "$(cat "$tmp/before")" "no set of the others is another one"
echo 20 >"$tmp/go-up-a10"
echo 20 >"$tmp/go-up-b10"
tried() {
	[ "$(cat "$tmp/got-$1")" -gt 1 ]
}
within 60 tried up-a10 && within 60 tried up-b10
[ "$(cat "$tmp/got-up-a10")" -lt 8 ] && [ "$(cat "$tmp/got-up-b10")" -lt 8 ]
ok $? "both quotas of 2 GiB hold: of 20 pieces of 256 MiB up-a10 got $(cat "$tmp/got-up-a10"), up-b10 $(cat "$tmp/got-up-b10")"

kill -9 "$("$tmp/a/bin/gpupart" ps --json | jq '.processes[] | select(.name == "up-b2") | .pid')"
within 60 lists a 21
ok $? "a process of version b that was killed is not listed by version a"
rm "$tmp"/go-*
wait
is "$("$tmp/a/bin/gpupart" ps --json | jq '.processes | length'), $("$tmp/b/bin/gpupart" ps --json | jq '.processes | length')" \
	"0, 0" "all have ended: neither version lists one"
files | sort >"$tmp/files-after"
is "$(comm -13 "$tmp/files-before" "$tmp/files-after")" "" "and no file of either is left"

# -------------------------------------------------------------- a node's grants

cat >"$tmp/give.c" <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "slurm/allocate.h"
int main(int argc, char **argv)
{
	struct allocate_job job = { .uid = 4711, .gpu = 0, .strict = argc > 3 };
	char list[GPUPART_TPCSET_STRLEN], why[1024] = "";
	struct gpupart_grant grant;
	struct words words;

	job.job = atoi(argv[1]);
	job.words = &words;
	job.asked = argv[2];
	if (!strcmp(argv[2], "back")) {
		printf("%s\n", give_back(job.job, why, sizeof(why)) ? why : "back");
		return 0;
	}
	if (words_read(argv[2], &words, why, sizeof(why)) ||
	    allocate_job(&job, &grant, why, sizeof(why))) {
		printf("failed: %s\n", why);
		return 1;
	}
	gpupart_tpcset_format_list(&grant.set, list, sizeof(list));
	printf("%u %s %llu\n", job.job, *list ? list : grant.why,
	       (unsigned long long)grant.memory >> 20);
	return 0;
}
END
for version in a b; do
	lib=$BUILD/lib/libgpupart.a
	[ $version = a ] || lib=$tmp/b/lib/libgpupart.a
	# shellcheck disable=SC2086 # flags
	${CC:-cc} ${CFLAGS-} -D_GNU_SOURCE -I"$root/include" -I"$root/include/uapi" -iquote "$root" -o "$tmp/$version/give" "$tmp/give.c" \
		"$root/slurm/allocate.c" "$root/slurm/node_file.c" "$root/slurm/orphans.c" "$root/slurm/node_gpu.c" "$root/slurm/options.c" \
		"$root/cli/mps/mps_daemon.c" "$root/cli/util/process.c" \
		"$lib" -lnl-genl-3 -lnl-3 -ldl -lpthread -lm 2>"$tmp/err" || sed 's/^/# /' "$tmp/err"
done
if ! [ -x "$tmp/a/give" ] || ! [ -x "$tmp/b/give" ]; then
	skip "Slurm's part cannot be linked with this library"
	tap_done
fi
${CC:-cc} -o "$tmp/census" "$root/tests/cli/census.c" -ldl
chmod 755 "$tmp"
cat >"$tmp/node.sh" <<END
mkdir -p /run/gpupart && mount -t tmpfs -o mode=755 tmpfs /run/gpupart && mount -t tmpfs -o mode=1777 tmpfs /dev/shm || exit 9
# inside VERSION JOB VARIABLE...: the number of SMs of a program of that version in the job.
inside() {
	version=\$1
	job=\$2
	shift 2
	setpriv --reuid 4711 --clear-groups env -i LD_LIBRARY_PATH="$tmp/\$version/lib/gpupart/sim" GPUPART_SIM="${e#-i }" XDG_CACHE_HOME=/dev/null \
		CUDA_INJECTION64_PATH="$tmp/\$version/lib/gpupart/libgpupart-inject.so" GPUPART_JOB="\$(printf 0-%x \$job)" \
		GPUPART_SET="\$(sed -n "s/^\$job \([^ ]*\) .*/\1/p;T;q" "$tmp/node")" GPUPART_STRICT=0 "\$@" \
		"$tmp/census" "$root/lib/confine/probe.ptx" 0 2>>"$tmp/node.err" | wc -w
}
"$tmp/a/bin/gpupart" slurm-node $e >/dev/null 2>"$tmp/node.err" || exit 8
for job in 1 3 5 7; do
	"$tmp/a/give" \$job tpcs=6,mem=1G
	"$tmp/b/give" \$((job + 1)) tpcs=6,mem=1G
done
"$tmp/a/give" 9 tpcs=6,mem=1G strict
"$tmp/b/give" 10 tpcs=6,mem=1G strict
echo again
"$tmp/b/give" 1 tpcs=6,mem=1G
"$tmp/b/give" 3 tpcs=12
"$tmp/a/give" 2 tpcs=12
echo full
"$tmp/a/give" 11 tpcs=8
"$tmp/b/give" 12 tpcs=8
"$tmp/b/give" 13 tpcs=1,mem=140G
echo listed
for version in a b; do
	"$tmp/\$version/bin/gpupart" slurm-node --list --json | jq -r '"\([.jobs[] | select(.nr_tpcs > 0)] | length) \([.jobs[] | select(.other_version)] | length) \(.simulated)"'
done
echo inside
for program in "a 1" "b 1" "a 2" "b 2" "b 9" "a 10"; do
	echo "\$(inside \$program) \$(inside \$program GPUPART_SIM_FAULTS=no-table)"
done
echo back
"$tmp/b/give" 1 back
"$tmp/a/give" 2 back
"$tmp/b/give" 11 tpcs=8
"$tmp/a/give" 14 tpcs=8
END
unshare -m --propagation private sh "$tmp/node.sh" >"$tmp/node" 2>>"$tmp/node.err"
status=$?
if [ $status -eq 9 ] || [ "$(id -u)" -ne 0 ] || ! [ -s "$tmp/node" ]; then
	sed 's/^/# /' "$tmp/node.err"
	skip "who is not root, in a place of its own, makes no grants"
	tap_done
fi
part() {
	sed -n "/^$1\$/,/^[a-z]*\$/p" "$tmp/node" | grep -v '^[a-z]*$'
}
is "$(sed '/^again/,$d' "$tmp/node" | disjoint)" 60 "ten jobs, of two versions in turn, were given six TPCs each, none twice"
is "$(part again)" "$(sed -n '/^[132] /p' "$tmp/node" | sed '/^again/,$d' | sort -k1,1 | awk '{ row[$1] = $0 } END { print row[1]; print row[3]; print row[2] }')" \
	"a job that begins anew under the other version keeps what it has, whatever it asks for"
is "$(part full | grep -c 'are free')" 3 "what does not fit beside all ten is refused by both, TPCs and memory"
is "$(part listed | tr '\n' ' ')" "10 7 true 10 6 true " "both list the ten, and what the other version refused, as of the other version"
is "$(part inside | tr '\n' ' ')" "12 132 12 132 12 132 12 132 12 0 12 0 " \
	"a program of either version has the job's six TPCs, and in a strict job no CUDA where it cannot be confined, whatever its environment says"
is "$(sed -n '/^back$/,$p' "$tmp/node" | grep -c '^back$')" 3 "each gives back what the other version gave, when its job has ended"
is "$(sed -n '/^back$/,$p' "$tmp/node" | awk '$1 == 11 || $1 == 14 { print $1, $3 }' | tr '\n' ' ')" "11 0 14 0 " \
	"then others get it, also a job that the other version refused before"
sed '/^again/,$d' "$tmp/node" | sed 1,2d >"$tmp/held"
is "$(sed -n '/^back$/,$p' "$tmp/node" | grep '^1[14] ' | cat - "$tmp/held" | disjoint)" 64 "and nothing that another job has"
sed 's/^/# /' "$tmp/node"
tap_done
