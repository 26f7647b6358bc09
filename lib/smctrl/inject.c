// SPDX-License-Identifier: MIT
/*
 * Applies LIBSMCTRL_MASK in a program that calls no function of libsmctrl. If a program links or
 * preloads libsmctrl.so, the driver calls this code in cuInit(), before the first launch. This file
 * is not part of libsmctrl.a, because the driver cannot load an executable as a library.
 */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/smctrl/smctrl.h"

#define SLOT "CUDA_INJECTION64_PATH"
#define NEXT "LIBSMCTRL_NEXT_INJECTION"	/* The driver's variable contains the name of a tool. This
					 * variable keeps the name that was there before libsmctrl
					 * changed the driver's variable. */

int InitializeInjection(void) __attribute__((visibility("default")));

static bool wanted(void)
{
	const char *mask = getenv("LIBSMCTRL_MASK");

	return mask && mask[0] && !smctrl_stands_aside();
}

__attribute__((constructor))
static void loaded(void)
{
	const char *slot = getenv(SLOT);
	static char found, own[PATH_MAX];
	Dl_info info;

	/* The program may change its current directory before it calls cuInit(). */
	if (!wanted() || !dladdr(&found, &info) || !realpath(info.dli_fname, own) ||
	    (slot && !strcmp(slot, own)))
		return;
	if (slot && slot[0])
		setenv(NEXT, slot, 1);
	setenv(SLOT, own, 1);
}

static void call_next(void)
{
	const char *path = getenv(NEXT);
	int (*initialize)(void);
	void *next;

	if (!path || !path[0])
		return;
	next = dlopen(path, RTLD_NOW);
	if (!next) {
		fprintf(stderr, "libsmctrl: the other injected tool cannot be loaded: %s\n",
			dlerror());
		return;
	}
	*(void **)&initialize = dlsym(next, "InitializeInjection");
	if (initialize)
		initialize();
}

int InitializeInjection(void)
{
	static bool done;

	if (!done) {
		done = true;
		/*
		 * Call the other tool first. If the tool sets the limit of `gpupart run`, the mask
		 * then reduces this limit.
		 */
		call_next();
		if (wanted())
			smctrl_cap_early();
	}
	return 1;
}
