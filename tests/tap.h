/* SPDX-License-Identifier: MIT */
/* TAP output of the tests. tests/runtests.sh adds up the results. */
#ifndef GPUPART_TESTS_TAP_H
#define GPUPART_TESTS_TAP_H

#include <stdarg.h>
#include <stdio.h>

static int tap_count, tap_failed;

__attribute__((format(printf, 2, 3), unused))
static int tap_ok(int good, const char *fmt, ...)
{
	va_list ap;

	tap_count++;
	tap_failed += !good;
	printf("%sok %d - ", good ? "" : "not ", tap_count);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
	return good;
}

/*
 * Evaluates @good before the description. As arguments of one call, C could evaluate them in any
 * order.
 */
#define tap_ok(good, ...) \
	({ int tap_good = !!(good); (tap_ok)(tap_good, __VA_ARGS__); })

__attribute__((format(printf, 1, 2), unused))
static void tap_skip(const char *fmt, ...)
{
	va_list ap;

	printf("ok %d # SKIP ", ++tap_count);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
}

/* Prints the plan at the end of the output. A test that dies before this call counts as failed. */
__attribute__((unused))
static int tap_done(void)
{
	printf("1..%d\n", tap_count);
	return tap_failed ? 1 : 0;
}

#endif
