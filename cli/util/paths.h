/* SPDX-License-Identifier: MIT */
/* Finds the package's own files, and restarts the command on the simulated GPU. */
#ifndef GPUPART_CLI_UTIL_PATHS_H
#define GPUPART_CLI_UTIL_PATHS_H

#include <stdbool.h>
#include <stddef.h>

/* Writes the absolute path without symbolic links to @full. Returns 0 or -errno. */
int paths_full(const char *path, char *full, size_t len);

/* Returns "sample:NAME" in @text if @path is a capture that ships with gpupart, else @path. */
const char *paths_source(const char *path, char *text, size_t len);

/*
 * Writes the path of file @name in LIBDIR/gpupart to @path. LIBDIR is the directory of the library
 * that this process uses, so that a build, an installation and a moved one each use their own
 * files. Returns 0 or -errno.
 */
int paths_package(const char *name, char *path, size_t len);

/* Returns NULL and the path if this user can read @name, else advice, with the error in @path. */
const char *paths_advice(const char *name, char *path, size_t len);

#define PATHS_INJECT "libgpupart-inject.so"

/* Whether @path has the injected library's name, of this or another gpupart. */
bool paths_is_inject(const char *path);

/* The audit library for the loader; it answers NVML calls with a tenant's quota. */
#define PATHS_NVML "libgpupart-nvml.so"

#define PATHS_SIM "sim"

/* Stores main()'s @argv for paths_enter_sim(); keeps the pointer. */
void paths_set_argv(char **argv);

/*
 * Executes this command again, with the simulated driver first on the loader's path and @capture as
 * its GPU. Returns 0 if that is the case already, else an error.
 */
int paths_enter_sim(const char *capture);

/* Whether @source is this machine: the kernel module or NVIDIA's driver. */
bool paths_is_live(const char *source);

/* Whether two paths refer to the same file. */
bool paths_same(const char *a, const char *b);

/* Reads the first line of file @path, without the line feed; false on failure. */
bool paths_read_line(const char *path, char *text, size_t len);

#endif
