/* SPDX-License-Identifier: MIT */
/* Finds the files of the package, and restarts the command on the simulated GPU. */
#ifndef GPUPART_CLI_UTIL_PATHS_H
#define GPUPART_CLI_UTIL_PATHS_H

#include <stdbool.h>
#include <stddef.h>

/* Writes the absolute path without symbolic links to @full. Returns 0 or -errno. */
int paths_full(const char *path, char *full, size_t len);

/*
 * If @path is a capture that ships with gpupart, writes "sample:NAME" to @text and returns @text.
 * Otherwise returns @path.
 */
const char *paths_source(const char *path, char *text, size_t len);

/*
 * Writes the path of file @name in LIBDIR/gpupart to @path. LIBDIR is the directory of the
 * library that this process uses. Therefore a build, an installation and a moved installation
 * each use their own files. Returns 0 or -errno.
 */
int paths_package(const char *name, char *path, size_t len);

/*
 * If this user can read the file @name, returns NULL and the path. Otherwise returns advice, and
 * the error in @path.
 */
const char *paths_advice(const char *name, char *path, size_t len);

#define PATHS_INJECT "libgpupart-inject.so"

/* Returns whether @path has the name of the injected library, of this or another gpupart. */
bool paths_is_inject(const char *path);

/* The audit library for the loader. This library answers NVML calls with a tenant's quota. */
#define PATHS_NVML "libgpupart-nvml.so"

#define PATHS_SIM "sim"

/* Stores main()'s @argv for paths_enter_sim(). Keeps the pointer. */
void paths_set_argv(char **argv);

/*
 * Executes this command again. The new command has the simulated driver first on the loader's path,
 * and @capture is its GPU. Returns 0 if this command already has this driver and this capture.
 * Otherwise returns an error.
 */
int paths_enter_sim(const char *capture);

/*
 * Returns whether @source is the kernel module or NVIDIA's driver, which read this machine's
 * GPUs.
 */
bool paths_is_live(const char *source);

/* Returns whether two paths refer to the same file. */
bool paths_same(const char *a, const char *b);

/* Reads the first line of the file at @path, without the line feed. Returns false on failure. */
bool paths_read_line(const char *path, char *text, size_t len);

#endif
