/* SPDX-License-Identifier: MIT */
/*
 * The few calls by which topo_rm.c reaches the operating system. Knows nothing of
 * what is asked through them.
 */
#ifndef GPUPART_LIB_TOPO_RM_H
#define GPUPART_LIB_TOPO_RM_H

#include <stddef.h>

struct topo_rm_io {
	/* For reading and writing; the descriptor or -errno. */
	int (*open)(const char *path);
	void (*close)(int fd);
	/* 0 or -errno; what NVIDIA's driver thinks of it is in the argument. */
	int (*ioctl)(int fd, unsigned long request, void *arg);
	/* A whole small text file, 0-terminated and cut to @len: its length or -errno. */
	int (*read_text)(const char *path, char *text, size_t len);
	/* Permission bits of a file, or -errno. */
	int (*mode)(const char *path);
};

/* The one in use; at start the system's own. */
extern const struct topo_rm_io *topo_rm_io;

#endif
