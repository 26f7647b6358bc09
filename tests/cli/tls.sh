#!/bin/sh
# SPDX-License-Identifier: MIT
# Libraries with static TLS together with those of gpupart: loaded before and after cuInit, linked
# and preloaded, with run and run --mem; and the resulting GLIBC_TUNABLES.
. "$(dirname "$0")/tap.subr"
h200=sample:h200-e
unset GLIBC_TUNABLES GPUPART_JOB
name=glibc.rtld.optional_static_tls

# The census with a library that is loaded before, and one that is loaded after it.
cat >"$tmp/program.c" <<'END_OF_C'
#define main census
#include "tests/cli/census.c"
#undef main
int main(int argc, char **argv)
{
	const char *first = getenv("FIRST"), *last = getenv("LAST");
	int status;

	if (first && !dlopen(first, RTLD_NOW))
		return 101;
	status = census(argc, argv);
	if (last && !dlopen(last, RTLD_NOW))
		return 102;
	return status;
}
END_OF_C
cat >"$tmp/spaces.c" <<'END_OF_C'
#include <dlfcn.h>
int main(void)
{
	for (int i = 1; i <= 5; i++) {
		void *lib = dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW);

		if (!lib || ((int (*)(unsigned int))dlsym(lib, "cuInit"))(0))
			return i;
	}
	return 0;
}
END_OF_C
cat >"$tmp/thread.c" <<'END_OF_C'
#include <pthread.h>
static void *run(void *unused) { return unused; }
int main(void)
{
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	return pthread_attr_setstacksize(&attr, 256 << 10) ||
	       pthread_create(&thread, &attr, run, NULL) || pthread_join(thread, NULL);
}
END_OF_C
library() {
	printf '__thread char big[%s] __attribute__((tls_model("initial-exec")));\nchar *touch(void) { return big; }\n' "$1" |
		${CC:-cc} -shared -fPIC -o "$tmp/lib$1.so" -x c -
}
if ! ${CC:-cc} -D_GNU_SOURCE -I. -o "$tmp/program" "$tmp/program.c" -ldl 2>"$tmp/err" ||
	! ${CC:-cc} -D_GNU_SOURCE -o "$tmp/spaces" "$tmp/spaces.c" -ldl 2>>"$tmp/err" ||
	! ${CC:-cc} -o "$tmp/thread" "$tmp/thread.c" -lpthread 2>>"$tmp/err"; then
	cat "$tmp/err" >&2
	skip "no C compiler"
	tap_done
	exit
fi

# sms PROGRAM ARGS: the number of SMs that the program sees in a run with ARGS.
sms() {
	program=$1
	shift
	"$gpupart" run -i "$h200" -t 0-7 "$@" -- "$program" lib/confine/probe.ptx 0 2>"$tmp/err" | wc -w
}

for bytes in 1100 1200 1400 1600; do
	library $bytes
	is "$(FIRST=$tmp/lib$bytes.so sms "$tmp/program")" 16 \
		"confined beside a library with $bytes bytes that was loaded before cuInit"
	LAST=$tmp/lib$bytes.so "$gpupart" run -i "$h200" -t 0-7 -- "$tmp/program" lib/confine/probe.ptx 0 >/dev/null 2>"$tmp/err"
	is $? 0 "one with $bytes bytes can be loaded after cuInit"
done
for bytes in 1600 2048 4096 65536; do
	library $bytes
	${CC:-cc} -D_GNU_SOURCE -I. -o "$tmp/linked" "$tmp/program.c" -Wl,--no-as-needed "$tmp/lib$bytes.so" -ldl
	is "$(sms "$tmp/linked" --mem 2G)" 16 \
		"run --mem: a program that is linked with $bytes bytes starts and is confined"
done
is "$(LD_PRELOAD=$tmp/lib65536.so sms "$tmp/program" --mem 2G)" 16 \
	"run --mem: one that preloads 65536 bytes"
if emulated "runs no sanitizer"; then
	:
elif ! printf 'int main(void) { return 0; }\n' | ${CC:-cc} -fsanitize=thread -o "$tmp/tsan" -x c - 2>/dev/null ||
	! setarch -R "$tmp/tsan" 2>/dev/null; then
	skip "no ThreadSanitizer"
else
	setarch -R "$gpupart" run -i "$h200" -t 0-7 --mem 2G -- "$tmp/tsan" 2>"$tmp/err"
	is $? 0 "run --mem: one that is built with -fsanitize=thread"
	(cd "$tmp" && PATH=$tmp:$PATH && setarch -R "$gpupart" run -i "$h200" -t 0-7 --mem 2G -- tsan) 2>"$tmp/err"
	is $? 0 "also where it is found on PATH"
fi
"$gpupart" run -i "$h200" -t 0-7 --mem 2G -- "$tmp/thread" 2>"$tmp/err"
is $? 0 "run --mem: a thread with a stack of 256 KiB can be created"
"$gpupart" run -i "$h200" -t 0-7 -- "$tmp/spaces" 2>"$tmp/err"
is $? 0 "libcuda in five namespaces of the loader"

# told VALUE ARGS: GLIBC_TUNABLES of a program in a run with ARGS, if it was VALUE before.
told() {
	GLIBC_TUNABLES=$1
	shift
	export GLIBC_TUNABLES
	# shellcheck disable=SC2016	# the program's shell expands it
	"$gpupart" run -i "$h200" -t 0-7 "$@" -- sh -c 'echo "$GLIBC_TUNABLES"' 2>"$tmp/err"
	unset GLIBC_TUNABLES
}
is "$(told '')" $name=4096 "run sets the tunable"
is "$(told '' --mem 2G)" $name=163840 "run --mem a larger one"
is "$(told glibc.malloc.check=1:)" glibc.malloc.check=1:$name=4096 "another tunable stays, no empty one is left"
is "$(told $name=512:glibc.malloc.check=1)" glibc.malloc.check=1:$name=4096 "a smaller one is replaced"
is "$(told $name=0x10000:glibc.malloc.check=1)" glibc.malloc.check=1:$name=65536 "a larger one stays"
is "$(told $name=9999:$name=100)" $name=4096 "of two the last one holds"
is "$(told $name=many)" $name=4096 "what is no number is replaced"
is "$(told '' -- "$gpupart" run -t 0-3)" $name=4096 "a run in a run does not set it twice"
is "$(told '' --mem 2G -- "$gpupart" run -t 0-3)" $name=163840 "nor make it smaller"
tap_done
