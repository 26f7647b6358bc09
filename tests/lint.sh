#!/bin/sh
# SPDX-License-Identifier: MIT
# Shows that every lint rule can fail. A small clean tree passes all rules; then each planted
# violation fails its rule and is named. TAP.
set -u
top=$(dirname -- "$(readlink -f -- "$0")")/..
tree=$(mktemp -d) || exit 1
trap 'rm -rf "$tree"' EXIT
count=0
failed=0

ok() {
	count=$((count + 1))
	if [ "$1" = 0 ]; then
		echo "ok $count - $2"
	else
		failed=$((failed + 1))
		echo "not ok $count - $2"
	fi
}

put() {
	mkdir -p "$tree/$(dirname "$1")"
	cat >>"$tree/$1"
}

compile() {
	mkdir -p "$tree/build/lib"
	for source in "$tree"/lib/*/*.c; do
		object=${source#"$tree/"}
		object=$tree/build/obj/${object%.c}.o
		mkdir -p "${object%/*}"
		${CC:-gcc} -fPIC -iquote "$tree" -I"$tree/include" -c -o "$object" "$source" || return 1
	done
	echo '{ global: gpupart_*; local: *; };' >"$tree/build/map"
	${CC:-gcc} -shared -Wl,--version-script,"$tree/build/map" \
		-o "$tree/build/lib/libgpupart.so.0" "$tree"/build/obj/lib/*/*.o
}

mit='/* SPDX-License-Identifier: MIT */'
gpl='// SPDX-License-Identifier: GPL-2.0 OR MIT'

clean() {
	rm -rf "${tree:?}"/*
	put include/gpupart.h <<-END
		$mit
		/* The public face. */

		/* -ENODEV: no such GPU. */
		int gpupart_topology_open(int gpu);
		int gpupart_process_set(int set);
	END
	put include/uapi/linux/gpupart.h <<-END
		/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR MIT */
		/* The contract. */
	END
	put lib/tmd/tmd.h <<-END
		$mit
		/* Writing a TMD. */
		void tmd_apply(unsigned int *tmd, unsigned int allowed);
	END
	put lib/tmd/layouts.h <<-END
		$mit
		/* Rows. */
	END
	put lib/tmd/tmd.c <<-END
		$mit
		/* Writes a TMD; the only place that knows a disabled bit. */
		#include "lib/tmd/layouts.h"
		#include "lib/tmd/tmd.h"
		void tmd_apply(unsigned int *tmd, unsigned int allowed)
		{
			unsigned int disabled = ~allowed;

			tmd[76] |= disabled;
		}
	END
	put lib/topo/topology.c <<-END
		$mit
		/* The topology. Says "disabled" and printf( in a comment only. */
		#include <gpupart.h>
		int gpupart_topology_open(int gpu)
		{
			const char *text = "a disabled TPC, printf(), exit(1)";

			return gpu ? text[0] : 0;
		}
	END
	put lib/confine/scope.c <<-END
		$mit
		/* Sets of a process. */
		#include <gpupart.h>
		int gpupart_process_set(int set)
		{
			return set;
		}
	END
	put cli/main.c <<-END
		$mit
		/* The command. */
		#include <gpupart.h>
	END
	printf '%s\n' '# SPDX-License-Identifier: MIT' '# What is built.' 'SRC := lib/tmd/tmd.c lib/topo/topology.c' \
		'SRC += lib/confine/scope.c cli/main.c' | put lib/sources.mk
	put kmod/topo.c <<-END
		$gpl
		/* Fuses to a topology. */
		unsigned int topo_present(unsigned int fuses);
	END
	put scripts/tool <<-'END'
		#!/bin/sh
		# SPDX-License-Identifier: MIT
		# A tool that does nothing.
		exit 0
	END
	chmod +x "$tree/scripts/tool"
	mkdir -p "$tree/Documentation/results/h200-spine" "$tree/Documentation/user"
	echo '# A project' >"$tree/README.md"
	printf '%s\n' '# Support' '' '<!-- support-matrix -->' \
		'| GPUs | compute class | TMD layouts | tried on | refused |' \
		'|---|---|---|---|---|' '| GH100 | cbc0 | V04_00 | H200 | - |' \
		'<!-- /support-matrix -->' >"$tree/Documentation/user/support.md"
	mkdir -p "$tree/build/tests"
	printf '#!/bin/sh\nprintf "GH100\\tcbc0\\tV04_00\\tH200\\t\\n"\n' \
		>"$tree/build/tests/list-layouts"
	chmod +x "$tree/build/tests/list-layouts"
	cp "$top/scripts/support-matrix" "$tree/scripts/"
	cp "$top/scripts/confined" "$tree/scripts/"
	cp -r "$top/Documentation/results/green" "$tree/Documentation/results/"
	cp -r "$top/Documentation/results/h200-inside" "$tree/Documentation/results/"
	cp -r "$top/Documentation/results/h200-live" "$tree/Documentation/results/"
	cp "$top/Documentation/results/h200-spine/verify.txt" "$tree/Documentation/results/h200-spine/"
	printf '%s\n' '' '<!-- confined -->' '<!-- /confined -->' >"$tree/Documentation/user/isolation.md"
	"$tree/scripts/confined"
}

# caught PROGRAM RULE PLACE: the rule fails and names the place. Skipped if the checker is not
# installed.
caught() {
	said=$("$top/scripts/$1" -r "$2" "$tree" 2>&1)
	status=$?
	case $said in
	*"# SKIP $2:"*" is not installed"*)
		count=$((count + 1))
		echo "ok $count # SKIP $2: ${said##*SKIP }" | tr '\n' ' ' | sed 's/ 1\.\..*//'
		echo ;;
	*)
		[ $status -eq 1 ] && printf '%s\n' "$said" | grep -q "^not ok .*$2: .*$3"
		ok $? "$1 $2 catches $3${4:+: $4}" ;;
	esac
	clean
}

# plant PROGRAM RULE FILE CODE [CODE...]: adds lines to a file of the clean tree.
plant() {
	program=$1 rule=$2 file=$3
	shift 3
	case $file in
	*/new*.[ch]) printf '%s\n' "$mit" '/* New. */' "$@" ;;
	*) printf '%s\n' "$@" ;;
	esac | put "$file"
	caught "$program" "$rule" "$file" "$1"
}

clean
compile || ok 1 "the clean tree compiles"
for program in lint check-layering; do
	said=$("$top/scripts/$program" "$tree" 2>&1)
	ok $? "$program passes a clean tree$(printf '%s\n' "$said" | sed -n 's/^not ok/: not ok/p' | tr '\n' ' ')"
done
clean

printf '/* No licence. */\n' | put lib/new.c
caught lint spdx lib/new.c
printf '%s\n' "$mit" '/* Module. */' | put kmod/new.c
caught lint licence kmod/new.c MIT
printf '%s\n' "$gpl" '/* Library. */' | put lib/new.c
caught lint licence lib/new.c GPL
printf '%s\nint x;\n' "$mit" | put lib/new.c
caught lint first_comment lib/new.c
printf '#!/bin/sh\n# SPDX-License-Identifier: MIT\ntrue\n' | put scripts/new
caught lint first_comment scripts/new
printf 'x = 1\n' | put python/new.py
caught lint spdx python/new.py
printf '# SPDX-License-Identifier: MIT\nimport os\n' | put python/new.py
caught lint first_comment python/new.py
plant lint width python/new.py "$(printf '# %0100d' 0)"
plant lint width lib/new.c "$(printf '/* %0100d */' 0)"
plant lint width lib/new.c "$(printf '\t\t\t\t\t\t/* %050d */' 0)"
plant lint width lib/new.c "f(1, \"$(printf '%0100d' 0)\");"
plant lint trailing lib/new.c 'int x; '
plant lint trailing README.md "$(printf 'words\t')"
plant lint documented include/gpupart.h '' 'int gpupart_more(void);'
plant lint documented include/gpupart_new.h '/* More. */' 'int gpupart_more(void);'
plant lint documented include/gpupart.h '/* -EIO. */' 'int gpupart_more(void);' '' 'void gpupart_most(void);'
plant lint leftovers lib/new.c "/* TO""DO: all of it */"
plant lint leftovers lib/new.c "// FIX""ME"
plant lint leftovers README.md "XX""X later"
plant lint machine_path scripts/tool "cd /wor""k/main"
plant lint machine_path README.md "see /hom""e/developer/file"
chmod -x "$tree/scripts/tool"
caught lint run_bit scripts/tool
plant lint links README.md '[a picture](Documentation/none.md)'
plant lint sources lib/tmd/new.c 'int x;'
plant lint support_matrix Documentation/user/support.md '<!-- support-matrix -->'
sed -i 's/V04_00/V04_01/' "$tree/Documentation/user/support.md"
caught lint support_matrix support.md stale
printf '#!/bin/sh\n' >"$tree/build/tests/list-layouts"
caught lint support_matrix 'no rows'
plant lint confined Documentation/user/isolation.md '<!-- confined -->'
sed -i 's/^ok [0-9]* - graph: once/not &/' "$tree/Documentation/results/h200-inside/inside.txt"
caught lint confined '1 failed'
plant lint words lib/new.c '/* No''body reads this. */'
plant lint words README.md 'a launch that is to''ld of'
plant lint words Documentation/man/gpupart.1 'A set that No''body reads.'
plant lint words lib/new.c '/* The caller mu''st' ' * not know the layout. */'
plant lint words README.md 'A launch that is' 'to''ld of its set.'
plant lint words scripts/tool '# The caller mu''st' '# not know the layout.'
plant lint words lib/new.c 'static int maps_no''body;'
plant lint words lib/new.c '/* Ou''rs where the name is NULL. */'
plant lint words lib/new.c 'static void un''make(void);'
printf 'int l_wh''ence;\n' | put lib/tmd/layouts.h
"$top/scripts/lint" -r words "$tree" >/dev/null 2>&1
ok $? "lint words allows l_wh""ence"
clean
printf 'Some''body reads this.\n' | put Documentation/internals/vocabulary.md
"$top/scripts/lint" -r words "$tree" >/dev/null 2>&1
ok $? "lint words allows them in vocabulary.md"
clean
# shellcheck disable=SC2016 # planted unchanged
plant lint shellcheck scripts/tool 'cd $1; rm -r $undefined/*'
plant lint cppcheck lib/new.c 'int new_bad(void);' 'int new_bad(void) { int a[2]; return a[2]; }'

plant check-layering polarity lib/confine/scope.c 'int scope_disabled;'
plant check-layering polarity cli/main.c 'unsigned int disable_mask;'
plant check-layering polarity include/gpupart.h '#define GPUPART_DISABLED 1'
plant check-layering tmd_layout lib/confine/scope.c '#include "lib/tmd/layouts.h"'
plant check-layering tmd_write lib/confine/scope.c 'static void f(unsigned int *tmd) { tmd[76] = 1; }'
plant check-layering tmd_write lib/confine/scope.c 'void f(char *tmd) { *(unsigned int *)(tmd + 304) |= 1; }'
plant check-layering tmd_write lib/confine/scope.c 'static void f(char *tmd) { memcpy(tmd, "x", 1); }'
plant check-layering tmd_write lib/confine/scope.c 'static void f(char *tmd) { ((p)->tmd)[3] |= 1; p->tmd[3] |= 1; }'
plant check-layering sim_own_decoder sim/cuda/new.c '#include "lib/tmd/tmd.h"'
plant check-layering pipe_integers sim/pipe/sm.c 'static double rate(void) { return 1; }'
plant check-layering pipe_integers sim/pipe/sm.c 'static unsigned int rate(int x) { return x * 0.5; }'
plant check-layering cli_public cli/main.c '#include "lib/topo/topology.h"'
plant check-layering cli_public cli/main.c '#include "topo.h"'
plant check-layering cli_public cli/bench/new.c '#include "lib/topo/topology.h"'
plant check-layering include_path lib/confine/scope.c '#include "scope.h"'
plant check-layering include_path tests/new.c '#include "../lib/core/ctx.h"'
plant check-layering inject_public lib/inject/new.c '#include "lib/confine/scope.h"'
plant check-layering nvml_alone lib/nvml/new.c '#include "lib/confine/scope.h"'
plant check-layering nvml_alone lib/nvml/share.c '#include "lib/core/ctx.h"'
plant check-layering slurm_public slurm/new.c '#include "lib/topo/topology.h"'
plant check-layering slurm_public slurm/new.c '#include <slurm/slurm.h>'
plant check-layering kubernetes_public kubernetes/new.c '#include "lib/topo/topology.h"'
plant check-layering smctrl_public lib/smctrl/new.c '#include "lib/confine/scope.h"'
plant check-layering smctrl_polarity lib/confine/scope.c 'int scope_forbidden;'
plant check-layering smctrl_polarity cli/main.c '#include <libsmctrl.h>'
plant check-layering folders lib/topo/topology.c '#include "lib/confine/scope.h"'
plant check-layering folders lib/tmd/tmd.c '#include "lib/confine/launch.h"'
plant check-layering folders lib/driver/new.c '#include "lib/state/limit.h"'
plant check-layering lib_down lib/topo/topology.c '#include "sim/board.h"'
for call in 'printf("x")' 'fprintf(f, "x")' 'perror("x")' 'puts("x")' 'exit(1)' '_exit(1)' 'abort()' 'assert(x)'; do
	plant check-layering silent lib/topo/topology.c "void f(void) { $call; }"
done
plant check-layering silent lib/topo/topology.c 'void f(void) { fputs("x", stderr); }'
plant check-layering exact_versions lib/topo/topology.c 'if (driver_major >= 535) f();'
plant check-layering exact_versions lib/topo/topology.c 'if (info->chip_id < 0x180) f();'
plant check-layering exact_versions lib/topo/topology.c 'if (compute_class > HOPPER_COMPUTE_A) f();'
plant check-layering exact_versions lib/topo/topology.c 'if (535 <= driver) f();'
plant check-layering exact_versions kmod/topo.c 'if (chip >= 0x170) f();'
plant check-layering rm_reads lib/topo/topology.c 'void f(void) { reg_op.regOp = 1; }'
plant check-layering rm_reads lib/topo/topology.c '#define GR_SET_TPC_PARTITION_MODE 0x2080122C'
plant check-layering rm_reads lib/topo/topology.c '#define MODIFY_SW_STATE_PERSISTENCE 0x800287'
plant check-layering rm_reads lib/topo/topology.c 'void f(void) { x.op = REG_OP_WRITE_32; }'
for call in 'writel(1, x)' 'iowrite32(1, x)' 'pci_request_regions(p, "x")' 'pci_enable_device(p)' 'pci_set_master(p)' 'pci_register_driver(&d)' 'pci_write_config_word(p, 4, 0)'; do
	plant check-layering kmod_reads kmod/topo.c "void f(void) { $call; }"
done
plant check-layering kmod_pure kmod/topo.c '#include <linux/pci.h>'
plant check-layering qos_pure cli/qos/policy/policy.c 'long f(void) { return clock_gettime(0, 0); }'
plant check-layering qos_pure cli/qos/policy/place.c '#include <time.h>'
plant check-layering qos_pure cli/qos/policy/effort.c 'static double f(void);'
plant check-layering test_in_product lib/topo/topology.c '#ifdef GPUPART_TEST' '#endif'

# planted OBJECT RULE PLACE CODE...: plants code in an object, for rules that read objects.
planted() {
	object=$1 rule=$2 place=$3
	shift 3
	mkdir -p "$tree/lib/${object%/*}"
	printf '%s\n' "$mit" '/* Planted. */' "$@" >"$tree/lib/$object.c"
	compile
	caught check-layering "$rule" "$place"
}

planted topo/topology folders 'lib/topo/topology needs lib/tmd/tmd for tmd_apply' 'void tmd_apply(void);' \
	'void topo_bad(void); void topo_bad(void) { tmd_apply(); }'
put lib/driver/new.c <<-END
	$mit
	/* Beside lib/state. */
	void driver_x(void);
	void driver_x(void) {}
END
planted state/new folders 'lib/state/new needs lib/driver/new for driver_x' 'void driver_x(void);' \
	'void state_bad(void); void state_bad(void) { driver_x(); }'
# Cycles of two files, and of two folders that are not in the layers.
put lib/tmd/new.c <<-END
	$mit
	/* Calls tmd.c. */
	void tmd_y(void); void tmd_x(void);
	void tmd_x(void) { tmd_y(); }
END
planted tmd/tmd folders 'a cycle of files: lib/tmd/new needs lib/tmd/tmd for tmd_y' \
	'void tmd_x(void); void tmd_y(void); void tmd_y(void) { tmd_x(); }'
put cli/target/new.c <<-END
	$mit
	/* Calls another folder. */
	void util_x(void); void target_x(void);
	void target_x(void) { util_x(); }
END
put cli/util/new.c <<-END
	$mit
	/* Calls it back. */
	void util_x(void); void target_x(void);
	void util_x(void) { target_x(); }
END
for folder in target util; do
	mkdir -p "$tree/build/obj/cli/$folder"
	${CC:-gcc} -c -o "$tree/build/obj/cli/$folder/new.o" "$tree/cli/$folder/new.c"
done
caught check-layering folders 'a cycle of the folders cli/target cli/util'
planted topo/topology silent_symbols 'topo/topology.o: printf' '#include <stdio.h>' \
	'void topo_bad(int x); void topo_bad(int x) { printf("%d", x); }'
planted topo/topology silent_symbols 'topo/topology.o: abort' '#include <stdlib.h>' \
	'void topo_bad(void); void topo_bad(void) { abort(); }'
# Symbols in the objects of the audit library.
for code in 'int f(void); int f(void) { return printf("x"); }' 'void f(void); void f(void) { abort(); }' \
	'static _Thread_local int here; int *f(void); int *f(void) { return &here; }'; do
	mkdir -p "$tree/build/obj/lib/nvml"
	printf '%s\n' '#include <stdio.h>' '#include <stdlib.h>' "$code" >"$tree/new.c"
	${CC:-gcc} -O0 -fPIC -c -o "$tree/build/obj/lib/nvml/new.o" "$tree/new.c"
	caught check-layering nvml_silent 'new.o:'
done
planted confine/new exports 'gpupart_more is exported' \
	'int gpupart_more(void); int gpupart_more(void) { return 1; }'
echo 'int gpupart_less(void);' >>"$tree/include/gpupart.h"
compile
caught check-layering exports 'gpupart_less is in a public header'
# The injected library: a dependency on another library, a function that it must not contain, its
# size.
injected() {
	compile
	mkdir -p "$tree/build/lib/gpupart"
	echo "$1" | ${CC:-gcc} -shared -fPIC -Wl,--no-as-needed -o "$tree/build/lib/gpupart/libgpupart-inject.so" -x c - ${3:-}
	caught check-layering injected "$2"
}
injected '' 'libgpupart-inject.so: .*libm' -lm
injected 'void gpupart_plan_make(void); void gpupart_plan_make(void) {}' 'gpupart_plan_make'
injected 'void nl_recv(void); void f(void) { nl_recv(); }' 'nl_recv'
injected 'const char room[256 << 10] = "x";' 'bytes of text, 262144 at most'
compile
mkdir -p "$tree/cuda"
echo 'int cuInit(unsigned int x); int cuInit(unsigned int x) { return x; }' >"$tree/cuda/cuda.c"
${CC:-gcc} -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$tree/cuda/libcuda.so.1" "$tree/cuda/cuda.c"
${CC:-gcc} -shared -Wl,--no-as-needed -o "$tree/build/lib/libgpupart.so.0" "$tree"/build/obj/lib/*/*.o "$tree/cuda/libcuda.so.1"
caught check-layering no_libcuda 'libgpupart.so'
compile
plant check-layering no_libcuda lib/topo/topology.c '#include <cuda.h>'
compile
plant check-layering no_libcuda lib/topo/topology.c '#include "cuda.h"'
compile
plant check-layering no_libcuda lib/topo/topology.c '#include <nvml.h>'

# A rule without a planted violation is a failed check.
for program in lint check-layering; do
	for rule in $(sed -nE 's/^rule ([a-z_]+) .*/\1/p' "$top/scripts/$program"); do
		grep -qE "(plant|caught) $program $rule |planted [a-z/]+ $rule " "$0"
		ok $? "$program: a violation of $rule is planted here"
	done
done

echo "1..$count"
[ $failed -eq 0 ]
