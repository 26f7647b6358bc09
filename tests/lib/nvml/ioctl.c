// SPDX-License-Identifier: MIT
/*
 * A preloaded ioctl() for tests. Tools that trace the calls of a program have a similar function.
 * If NVML_IOCTL is set, this function answers for descriptors from 1000 on. Otherwise the kernel
 * answers. The library does not use gpupart.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...)
{
	const char *who = getenv("NVML_IOCTL");
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	return who && fd >= 1000 ? 0 : (int)syscall(SYS_ioctl, fd, request, arg);
}
