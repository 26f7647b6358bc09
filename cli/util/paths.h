/* SPDX-License-Identifier: MIT */
/* Where the package's own files lie, and how to go on on the simulated GPU. */
#ifndef GPUPART_CLI_UTIL_PATHS_H
#define GPUPART_CLI_UTIL_PATHS_H

#include <stdbool.h>
#include <stddef.h>

/* @path with no link and nothing relative in it: 0 or -errno. */
int paths_full(const char *path, char *full, size_t len);

/* "sample:NAME" in @text where the topology's source @path is a capture that ships, else @path. */
const char *paths_source(const char *path, char *text, size_t len);

/*
 * @name below LIBDIR/gpupart of the library this process runs with, so that a build
 * folder, an installed package and a moved one all find their own: 0 or -errno.
 */
int paths_package(const char *name, char *path, size_t len);

/* Whether this user can read it: NULL and its path, or what to do and what is wrong in @path. */
const char *paths_advice(const char *name, char *path, size_t len);

#define PATHS_INJECT "libgpupart-inject.so"

/* Whether @path has the injected library's name: ours, or of a gpupart elsewhere. */
bool paths_is_inject(const char *path);

/* The loader's audit library, for what programs of a tenant are told by NVML. */
#define PATHS_NVML "libgpupart-nvml.so"

#define PATHS_SIM "sim"

/* main()'s @argv, with which paths_enter_sim() starts this command anew. It stays the caller's. */
void paths_set_argv(char **argv);

/*
 * Starts this command anew, the simulated driver first on the loader's path and the capture
 * @capture under it. Returns 0 where that is so already, else an error.
 */
int paths_enter_sim(const char *capture);

/* Whether two paths are one file. */
bool paths_same(const char *a, const char *b);

/* Reads the first line of file @path, without its end; false where there is none. */
bool paths_read_line(const char *path, char *text, size_t len);

#endif
