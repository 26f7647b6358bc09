#!/bin/sh
# SPDX-License-Identifier: MIT
# run --rule: sets for kernels by name, on the simulated GPU, and refusals.
. "$(dirname "$0")/tap.subr"

cat >"$tmp/kernels.c" <<'END'
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCKS 264

/* kernels NAME..: where the blocks of each ran, as SMs; BLOCKS=N of them. DEVICE: of that GPU. */
int main(int argc, char **argv)
{
	static struct { unsigned int smid, cluster; unsigned long long start, end; } records[BLOCKS];
	void *lib = dlopen("libcuda.so.1", RTLD_NOW), *ctx, *module, *function;
	const char *blocks = getenv("BLOCKS"), *device = getenv("DEVICE");
	unsigned int ns = 1000, nr = blocks ? atoi(blocks) : BLOCKS;
	unsigned long long out;
	char text[512];
	int err;

#define CALL(name, types, args) ((int (*)types)dlsym(lib, name)) args
	if (!lib || CALL("cuInit", (unsigned int), (0)) ||
	    CALL("cuCtxCreate_v2", (void **, unsigned int, int),
		 (&ctx, 0, device ? atoi(device) : 0)) ||
	    CALL("cuMemAlloc_v2", (unsigned long long *, size_t), (&out, sizeof(records))))
		return 1;
	for (int i = 1; i < argc; i++) {
		void *args[] = { &out, &ns };
		char seen[132] = "";
		int first = -1, last = -1, nr_sms = 0;

		snprintf(text, sizeof(text), ".version 8.0\n.target sm_90\n.address_size 64\n"
			 ".visible .entry %s(.param .u64 a, .param .u32 b)\n{ ret; }\n", argv[i]);
		if (CALL("cuModuleLoadData", (void **, const void *), (&module, text)) ||
		    CALL("cuModuleGetFunction", (void **, void *, const char *),
			 (&function, module, argv[i])) ||
		    CALL("cuFuncSetAttribute", (void *, int, int), (function, 8, 200000)))
			return 2;
		err = CALL("cuLaunchKernel", (void *, unsigned int, unsigned int, unsigned int,
			   unsigned int, unsigned int, unsigned int, unsigned int, void *, void **,
			   void **), (function, nr, 1, 1, 32, 1, 1, 200000, NULL, args, NULL)) ?:
		      CALL("cuCtxSynchronize", (void), ());
		if (err) {
			printf("%s: error %d\n", argv[i], err);
			return 3;
		}
		CALL("cuMemcpyDtoH_v2", (void *, unsigned long long, size_t),
		     (records, out, sizeof(records)));
		for (unsigned int b = 0; b < nr && strstr(argv[i], "census"); b++)
			seen[records[b].smid] = 1;
		for (int sm = 0; sm < 132; sm++) {
			if (!seen[sm])
				continue;
			first = first < 0 ? sm : first;
			last = sm;
			nr_sms++;
		}
		printf("%d SMs %d to %d\n", nr_sms, first, last);
	}
	return 0;
}
END
if ! ${CC:-cc} -o "$tmp/kernels" "$tmp/kernels.c" -ldl 2>"$tmp/err"; then
	skip "no C compiler"
	tap_done
fi
b=tests/data/gh100-h200-b/capture.txt
native=_ZN2at6native14gpupart_censusILi4EEEvPvi
other=_ZN5other14gpupart_censusEPvi

# kernels OPTIONS -- NAME..: the lines, joined by commas.
kernels() {
	try run -i $b "$@" >"$tmp/none"
	is_out=$(paste -sd, "$tmp/out")
}
kernels -t 0-31 --rule 'at::native::*=-t 0-3' --rule '_ZN5other*=tpc:8-11+0' --rule '*=-n 2' -- "$tmp/kernels" $native $other gpupart_census
is "$status" 0 "run --rule: ends as the program"
is "$(echo "$is_out" | cut -d, -f1)" "8 SMs 0 to 7" "by the qualified name: 4 TPCs"
is "$(echo "$is_out" | cut -d, -f2)" "10 SMs 0 to 23" "by the mangled name, a set in words"
is "$(echo "$is_out" | cut -d, -f3 | cut -d' ' -f1)" 4 "-n 2 is picked in the run's set"
kernels -t 0-31 --rule "*census*=-t 8" --rule "$native=-t 9" -- "$tmp/kernels" $native
is "$is_out" "2 SMs 16 to 17" "the first that matches"
kernels -t 0-31 --rule "gpupart_census=-t 8" -- sh -c '"$0" gpupart_census; exec "$0" gpupart_census' "$tmp/kernels"
is "$is_out" "2 SMs 16 to 17,2 SMs 16 to 17" "children have it"
kernels --rule "gpupart_census=-t 8" -- "$tmp/kernels" gpupart_census $other
is "$is_out" "2 SMs 16 to 17,132 SMs 0 to 131" "without a SET: all TPCs for other kernels"
kernels -t 0-31 --rule "gpupart_census=-t 8" -- "$gpupart" run -t 4-15 -- "$tmp/kernels" gpupart_census
is "$is_out" "24 SMs 8 to 31" "a run inside begins without the rules around it"
kernels -t 0-31 --exec --rule "gpupart_census=-t 8" -- "$tmp/kernels" gpupart_census
is "$is_out" "2 SMs 16 to 17" "--exec"

kernels -t 0-31 --rule "gpupart_census=--sms 6" -- "$tmp/kernels" gpupart_census
is "${is_out%% *}" 6 "--sms in a rule"

two=$b:tests/data/gh100-h200-e/capture.txt
sim="env LD_LIBRARY_PATH=$BUILD/lib/gpupart/sim GPUPART_SIM=$two"
for device in 0 1; do
	got=$($sim DEVICE=$device "$gpupart" run --gpu all -t 0-31 --rule "gpupart_census=-t 5,6" -- "$tmp/kernels" gpupart_census 2>"$tmp/err")
	is "${got%% to*}" "4 SMs 10" "of several GPUs, number $device"
done

# The tenant of a plan.
cat >"$tmp/tenants.yaml" <<END
tenants:
  a:
    tpcs: 8
    rules: ["gpupart_census=-n 1", "*census*=-n 2"]
END
"$gpupart" plan -i $b -f "$tmp/tenants.yaml" --json -o "$tmp/plan.json" 2>"$tmp/err"
ok $? "plan -f with rules"
kernels --plan "$tmp/plan.json:a" -- "$tmp/kernels" gpupart_census $other
is "$(echo "$is_out" | sed 's/ SMs[^,]*//g')" "2,4" "run --plan takes the tenant's rules"
kernels --plan "$tmp/plan.json:a" --rule '*=-n 3' -- "$tmp/kernels" gpupart_census
is "${is_out%% *}" 6 "behind those of the command line"

kernels --plan "$tmp/plan.json:a" --rule 'gpupart_census=-n 3' -- "$tmp/kernels" gpupart_census
is "${is_out%% *}" 6 "also where the tenant has the same pattern"
kernels -t 0-31 --rule 'gpupart_census=-n 3' --rule 'gpupart_census=-n 1' -- "$tmp/kernels" gpupart_census
is "${is_out%% *}" 6 "the first of two with the same pattern"
try cdi -i $b --plan "$tmp/plan.json" --device sim
has "$(cat "$tmp/out")" '"GPUPART_RULES=6 gpupart_census\n6,14 *census*"' "so does its container"
sed 's/-n 1"/-t 0"/' "$tmp/plan.json" >"$tmp/outside.json"
try cdi -i $b --plan "$tmp/outside.json" --device sim
[ "$status" != 0 ] && ! [ -s "$tmp/out" ]
ok $? "a rule outside of the tenant's set: no container"
has "$(cat "$tmp/err")" "TPCs 0 are outside the" "which is reported"

# Refusals before any program starts.
bad_rule() {	# bad_rule RULE WORDS
	try run -i $b -t 0-15 --rule "$1" -- "$tmp/kernels" gpupart_census
	[ "$status" = 125 ] && ! [ -s "$tmp/out" ]
	ok $? "--rule '$1' is refused"
	has "$(cat "$tmp/err")" "$2" "and the sentence has: $2"
}
bad_rule 'census' "must be PATTERN=SET"
bad_rule '=-n 4' "must be PATTERN=SET"
bad_rule 'census=' "must be PATTERN=SET"
bad_rule 'census=-t 40' "TPCs 40 are outside the run's set (0-15)"
bad_rule 'census=gpc:9' "--rule 'census=gpc:9': GPC 9"
bad_rule 'census=-n 17' "gpupart run: --rule 'census=-n 17': -n 17: 17 TPCs: only 16 TPCs are left to choose from inside the run's set"
bad_rule 'census=-x 3' "SET must be -t, -g, -u, -n, --sms or --hex"
bad_rule "$(printf '%0256d' 0)=-n 1" "at most 255"

# A file of tenants is refused with the line and the rule.
bad_file() {	# bad_file RULES WORDS
	printf 'tenants:\n  a:\n    tpcs: 8\n    rules: [%s]\n' "$1" >"$tmp/bad.yaml"
	try plan -i $b -f "$tmp/bad.yaml"
	is "$status $err" "2 gpupart plan: $tmp/bad.yaml:4: a: rule $2" "plan -f: rule $2"
}
bad_file "'x='" "'x=': must be PATTERN=SET, such as '*copy*=-n 4'"
bad_file "'ok=-n 1', '=-n 4'" "'=-n 4': must be PATTERN=SET, such as '*copy*=-n 4'"
bad_file 3 "'3': must be PATTERN=SET, such as '*copy*=-n 4'"
bad_file "$(seq -s, -f "'k%g=-n 1'" 33)" "'k33=-n 1': at most 32 rules are possible"

try run -i $b -t 0-15 --rule 'x=--hex 3' -- true
is "$status $(grep -c "^gpupart run: --rule 'x=--hex 3': TPCs 0-1 have room" "$tmp/err")" "0 1" "a remark on a rule's set is printed once and names the rule"

# Kernels whose blocks wait for each other without being cooperative launches: this cannot be
# detected.
BLOCKS=16 kernels -t 0-31 -- "$tmp/kernels" gpupart_barrier
is "$is_out" "0 SMs -1 to -1" "16 blocks that wait for each other fit the run's set"
BLOCKS=16 kernels -t 0-31 --rule '*barrier=-n 4' -- "$tmp/kernels" gpupart_barrier
is "$status $is_out" "3 gpupart_barrier: error 702" "in a rule's set of 4 TPCs they never end"
has "$(cat "$tmp/err")" "its blocks wait for each other, but the TPCs of its mask can hold only 8 of 16 at once" "as the simulated GPU says"
BLOCKS=16 kernels -t 0-31 --rule '*barrier=-n 8' -- "$tmp/kernels" gpupart_barrier
is "$status" 0 "in one of 8 TPCs they do"
tap_done
