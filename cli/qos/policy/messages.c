// SPDX-License-Identifier: MIT
/*
 * Formats the texts of a decision: the reason why a tenant has its TPCs, and the events of an
 * epoch.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "cli/qos/policy/internal.h"

void qos_set_reason(struct qos_actor *a, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(a->why, sizeof(a->why), fmt, ap);
	va_end(ap);
}

void qos_add_message(struct qos_policy *p, const char *fmt, ...)
{
	size_t len = strlen(p->words);
	va_list ap;

	if (len && len + 2 < sizeof(p->words)) {
		strcpy(p->words + len, "; ");
		len += 2;
	}
	va_start(ap, fmt);
	vsnprintf(p->words + len, sizeof(p->words) - len, fmt, ap);
	va_end(ap);
}
