// SPDX-License-Identifier: MIT
/*
 * Gives a set to each function whose name matches a rule. See rules.h. Any thread may call the
 * functions of this file.
 */
#include <errno.h>
#include <fnmatch.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "lib/confine/kernel_name.h"
#include "lib/confine/rules.h"
#include "lib/confine/stream.h"
#include "lib/core/fork.h"
#include "lib/state/state_page.h"

#define SEEN_SIZE	((1u << RULES_SEEN_BITS) + RULES_SEEN_PROBES)
#define SEEN_MOST	(1u << (RULES_SEEN_BITS - 1))

struct rules {
	unsigned int nr;
	struct rule {
		char pattern[RULES_PATTERN];
		struct gpupart_tpcset set;
	} list[RULES_MAX];
};

atomic_bool rules_used;
atomic_uint rules_generation;
_Atomic uint64_t *_Atomic rules_seen;
static unsigned int nr_seen;

static pthread_mutex_t rules_lock = PTHREAD_MUTEX_INITIALIZER;
FORK_TAKES(rules_lock, 1);

void rules_forget(void)
{
	atomic_fetch_add_explicit(&rules_generation, 1, memory_order_release);
}

/* ------------------------------------------------------------------- matching */

/*
 * Returns the set of the rule that matches @name. If no rule matches, returns NULL. The caller
 * holds the lock.
 */
static const struct gpupart_tpcset *set_of_name(const struct rules *rules, const char *name)
{
	char read[512];
	bool has_read = kernel_name_read(name, read, sizeof(read));

	for (unsigned int n = 0; n < rules->nr; n++)
		if (!fnmatch(rules->list[n].pattern, name, 0) ||
		    (has_read && !fnmatch(rules->list[n].pattern, read, 0)))
			return &rules->list[n].set;
	return NULL;
}

static void mark_seen(uint64_t key)
{
	_Atomic uint64_t *at = rules_seen + (key >> (64 - RULES_SEEN_BITS));
	unsigned int n = 0;

	while (n < RULES_SEEN_PROBES && atomic_load(&at[n]) && atomic_load(&at[n]) != key)
		n++;
	/*
	 * If a thread does not find a key, the thread matches the function again. This is
	 * harmless.
	 */
	if (n == RULES_SEEN_PROBES || nr_seen == SEEN_MOST) {
		for (unsigned int i = 0; i < SEEN_SIZE; i++)
			atomic_store(&rules_seen[i], 0);
		nr_seen = n = 0;
	}
	nr_seen++;
	atomic_store_explicit(&at[n], key, memory_order_relaxed);
}

/*
 * Reports that a function has no name, so a rule may not have been applied. Other processes must
 * be able to read this report.
 */
static void unnamed(const char *why)
{
	snprintf(state_page_own->problem, sizeof(state_page_own->problem),
		 STATE_RULE_PROBLEM " may not apply: %.190s", why);
}

__attribute__((cold))
void rules_match(const struct cuda_api *cuda, void *function, void *ctx)
{
	struct gpupart_gpu *gpu = scope_gpu_of_context(ctx);
	/* If a rule changes from now on, this key is outdated and the function is matched again. */
	uint64_t key = rules_key(function, ctx);
	const struct gpupart_tpcset *set;
	const char *name = NULL;
	void *module;
	int result;

	if (!gpu) {
		FORK_HOLD(&rules_lock);
		mark_seen(key);
		return;
	}
	/* This function does not exist, so the launch will fail. */
	if (!function || stream_module(cuda, &function, &module))
		return;
	result = cuda->func_name(&name, function);
	FORK_HOLD(&rules_lock);
	if (result || !name)
		unnamed(cuda_strerror(cuda, result));
	set = name && gpu->rules ? set_of_name(gpu->rules, name) : NULL;
	if (scope_set_by_rule(gpu, function, module, set))
		unnamed("too many functions have sets");
	mark_seen(key);
}

/*
 * Matches the function of a node, and returns the driver's result. A CUkernel has one function in
 * each context. The code uses the function in the node's context, even if that context is not
 * current.
 */
static int match_node(const struct cuda_api *cuda, void *node, int type, void *none)
{
	struct cuda_kernel_node kernel;
	void *function;
	int result;

	(void)none;
	if (type == CUDA_NODE_CONDITIONAL)
		unnamed("the driver does not list the kernels of conditional nodes");
	if (type != CUDA_NODE_KERNEL)
		return 0;
	result = cuda->kernel_get(node, &kernel);
	if (result || (!kernel.ctx && cuda->ctx_current(&kernel.ctx)))
		return result;
	function = kernel.function ? kernel.function : kernel.kernel;
	if (!rules_known(function, kernel.ctx) && !cuda->ctx_push(kernel.ctx)) {
		rules_match(cuda, function, kernel.ctx);
		cuda->ctx_pop(&kernel.ctx);
	}
	return 0;
}

__attribute__((cold))
void rules_match_graph(const struct cuda_api *cuda, void *graph)
{
	int result = cuda_graph_walk(cuda, graph, match_node, NULL);

	if (result)
		unnamed(cuda_strerror(cuda, result));
}

/* ------------------------------------------------------------------- setting */

/* The caller holds the lock. */
static int change(struct gpupart *gp, struct rules *rules, const char *pattern,
		  const struct gpupart_tpcset *set)
{
	unsigned int n = 0;

	if (!pattern) {
		rules->nr = 0;
		return 0;
	}
	while (n < rules->nr && strcmp(rules->list[n].pattern, pattern))
		n++;
	if (!set) {
		rules->nr -= n < rules->nr;
		if (n < rules->nr)
			memmove(&rules->list[n], &rules->list[n + 1],
				(rules->nr - n) * sizeof(rules->list[0]));
		return 0;
	}
	if (n == RULES_MAX)
		return ctx_fail(gp, -ENOSPC,
				"rule %.100s cannot be added: there are %d rules already",
				pattern, RULES_MAX);
	strcpy(rules->list[n].pattern, pattern);
	rules->list[n].set = *set;
	rules->nr += n == rules->nr;
	return 0;
}

static int begin(struct gpupart *gp, struct gpupart_gpu *gpu)
{
	if (!rules_seen)
		rules_seen = calloc(SEEN_SIZE, sizeof(*rules_seen));
	if (!gpu->rules)
		gpu->rules = calloc(1, sizeof(*gpu->rules));
	return rules_seen && gpu->rules ? 0 : ctx_fail(gp, -ENOMEM, "out of memory for rules");
}

__attribute__((cold))
int rules_set(struct gpupart *gp, struct gpupart_gpu *gpu, const char *pattern,
	      const struct gpupart_tpcset *set)
{
	int err;

	if (pattern && (!*pattern || strlen(pattern) >= RULES_PATTERN))
		return ctx_fail(gp, -EINVAL, "the pattern has %zu bytes but must have 1 to %d",
				strlen(pattern), RULES_PATTERN - 1);
	if (!pattern && set)
		return ctx_fail(gp, -EINVAL, "the rule has no pattern");
	FORK_HOLD(&rules_lock);
	err = begin(gp, gpu);
	if (!err)
		err = change(gp, gpu->rules, pattern, set);
	if (err)
		return err;
	rules_forget();
	/* Set this flag after a removal too. */
	atomic_store_explicit(&rules_used, true, memory_order_release);
	return 0;
}
