// SPDX-License-Identifier: MIT
/*
 * Tests the names of kernels. The names are compared with the output of c++filt, after arguments
 * and template arguments were removed.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "lib/confine/kernel_name.h"
#include "tests/tap.h"

static const char *const names[][2] = {
	{ "_Z11copy_kernelPfPKfi", "copy_kernel" },
	{ "_ZL6hiddenPf", "hidden" },
	{ "_ZSt4swapIiEvRT_S1_", "std::swap" },
	{ "_ZN4mine3addIfLi4EEEvPT_S2_i", "mine::add" },
	{ "_ZN3BoxIiE6launchEPi", "Box::launch" },
	{ "_ZN3BoxIN3foo5ShapeELNS1_4KindE1ELb0EE6launchEPi", "Box::launch" },
	{ "_ZN12_GLOBAL__N_14kernEPf", "(anonymous namespace)::kern" },
	{ "_ZN2at6native57_GLOBAL__N__e658eeb9_24_ForeachBinaryOpScalar_cu_86b9896c4kernILi4EEEvPf",
	  "at::native::(anonymous namespace)::kern" },
	{ "_ZN9_GLOBAL__4kernEPf", "_GLOBAL__::kern" },
	{ "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_11FillFunctorIfEESt5arrayIPcLm1EEE"
	  "EviT0_T1_", "at::native::vectorized_elementwise_kernel" },
	{ "_ZN2at6native29vectorized_elementwise_kernelILi4EZZZNS0_15exp_kernel_cudaERNS_18TensorI"
	  "teratorBaseEENKUlvE_clEvENKUlvE0_clEvEUldE_St5arrayIPcLm2EEEEviT0_T1_",
	  "at::native::vectorized_elementwise_kernel" },
	{ "_ZN7cutlass13device_kernelINS_4gemm6kernel13GemmUniversalIN4cute5tupleIJiiiiEEEEEEEvNT_6"
	  "ParamsE", "cutlass::device_kernel" },
	{ "_ZN1A1fIXadL_ZN1B1gEvEEEEvv", "A::f" },
	{ "_ZN5flash16flash_fwd_kernelI23Flash_fwd_kernel_traitsILi128ELi64ELi64ELi4ELb0ELb0EN7cut"
	  "lass10bfloat16_tEELb1ELb0EEEv16Flash_fwd_params", "flash::flash_fwd_kernel" },
	{ "_ZNK3FooclEi", NULL },		/* an operator */
	{ "ampere_bf16_s16816gemm", NULL },	/* C */
	{ "_Z", NULL }, { "_Z999x", NULL }, { "_ZN", NULL }, { "_ZN3foo", NULL }, { "", NULL },
	{ "_ZN1aID", NULL },
	{ "_ZN3fooIE", NULL }, { "_ZN3fooILi", NULL }, { "_ZN99999999999999999999x", NULL },
	{ "_ZN3fooIL3barE", NULL }, { "_ZN3fooIT", NULL }, { "_Z0x", NULL },
};

static void of_table(void)
{
	char name[256], deep[4096] = "_ZN1a";

	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		bool good = kernel_name_read(names[i][0], name, sizeof(name));

		tap_ok(good == !!names[i][1] && (!good || !strcmp(name, names[i][1])),
		       "%.60s: %s", names[i][0], good ? name : "not understood");
	}
	tap_ok(!kernel_name_read("_ZN4mine3addEv", name, 9) &&
	       kernel_name_read("_ZN4mine3addEv", name, 12), "a name that does not fit");
	for (int i = 0; i < 2000; i++)
		strcat(deep, "I");
	tap_ok(!kernel_name_read(deep, name, sizeof(name)), "brackets 2000 deep");
}

/* Reduces "void a::b<c>(d) const" to "a::b": removes brackets and everything before a blank. */
static void strip(char *line)
{
	char *to = line;
	int depth = 0;

	for (char *p = line; *p && *p != '\n'; p++) {
		if (!strncmp(p, "(anonymous namespace)", 21) && !depth) {
			to = stpcpy(to, "(anonymous_namespace)");
			p += 20;
		} else if (*p == '<') {
			depth++;
		} else if (*p == '>') {
			depth--;
		} else if (!depth && *p == '(') {
			break;
		} else if (!depth && *p == '[') {
			break;
		} else if (!depth && *p == ' ') {
			to = line;
		} else if (!depth) {
			*to++ = *p;
		}
	}
	*to = 0;
	to = strstr(line, "(anonymous_");
	if (to)
		to[10] = ' ';
}

/* For all functions of libstdc++, the parsed names must equal the names from c++filt. */
static void of_library(void)
{
	char mangled[4096], line[16384], name[1024];
	unsigned int nr = 0, read = 0, bad = 0;
	FILE *f = popen("lib=$(ls /usr/lib/*/libstdc++.so.6 2>/dev/null | head -1)\n"
			"[ -n \"$lib\" ] && command -v nm c++filt >/dev/null || exit\n"
			"nm -D --defined-only \"$lib\" |"
			" sed -n 's/@.*//; s/.* [TWVi] \\(_Z\\)/\\1/p' | grep -v '^_Z\\(T\\|GV\\)' | sort -u >names-$$\n"
			"c++filt <names-$$ | paste names-$$ - ; rm names-$$", "r");

	while (f && fscanf(f, "%4095[^\t]\t", mangled) == 1 && fgets(line, sizeof(line), f)) {
		nr++;
		if (!kernel_name_read(mangled, name, sizeof(name)))
			continue;
		read++;
		strip(line);
		if (strcmp(line, name) && bad++ < 5)
			printf("# %s: %s, not %s\n", mangled, name, line);
	}
	if (f)
		pclose(f);
	if (nr < 1000)
		tap_skip("there is no libstdc++.so.6, nm or c++filt");
	else
		tap_ok(!bad && read > nr / 3,
		       "of libstdc++'s %u functions %u are read, %u of them not as by c++filt",
		       nr, read, bad);
}

int main(void)
{
	char folder[] = "/tmp/kernel-name-XXXXXX";

	of_table();
	if (mkdtemp(folder) && !chdir(folder))
		of_library();
	rmdir(folder);
	return tap_done();
}
