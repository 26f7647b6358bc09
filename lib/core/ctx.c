// SPDX-License-Identifier: MIT
/* Opens and closes contexts, and stores their error messages. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <errno.h>
#include "lib/core/ctx.h"

int gpupart_open(struct gpupart **gp)
{
	*gp = calloc(1, sizeof(**gp));
	return *gp ? 0 : -ENOMEM;
}

void gpupart_close(struct gpupart *gp)
{
	free(gp);
}

const char *gpupart_error(const struct gpupart *gp)
{
	return gp->error;
}

const char *gpupart_version(void)
{
	return GPUPART_VERSION;
}

int ctx_fail(struct gpupart *gp, int err, const char *fmt, ...)
{
	va_list ap;

	if (gp) {
		va_start(ap, fmt);
		vsnprintf(gp->error, sizeof(gp->error), fmt, ap);
		va_end(ap);
	}
	return err;
}

int ctx_fail_because(struct gpupart *gp, int err, const char *fmt, ...)
{
	char inner[sizeof(gp->error)];
	va_list ap;
	size_t len;

	if (!gp)
		return err;
	memcpy(inner, gp->error, sizeof(inner));
	va_start(ap, fmt);
	vsnprintf(gp->error, sizeof(gp->error), fmt, ap);
	va_end(ap);
	len = strlen(gp->error);
	snprintf(gp->error + len, sizeof(gp->error) - len, ": %s", inner);
	return err;
}
