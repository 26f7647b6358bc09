/* SPDX-License-Identifier: MIT */
/* Finds the files of the package. Restarts the command with the simulated GPU. */
#ifndef GPUPART_CLI_UTIL_PATHS_H
#define GPUPART_CLI_UTIL_PATHS_H

#include <stdbool.h>
#include <stddef.h>

/* Resolves symbolic links in @path. Writes the absolute path to @full. Returns 0 or -errno. */
int paths_full(const char *path, char *full, size_t len);

/*
 * If @path is a capture of the gpupart package, writes "sample:NAME" to @text and returns @text.
 * Otherwise returns @path.
 */
const char *paths_source(const char *path, char *text, size_t len);

/*
 * Finds the file @name in LIBDIR/gpupart, and writes its path to @path. LIBDIR is the directory of
 * the library that this process uses. Therefore each build and each installation uses its own
 * files, even after a move. Returns 0 or -errno.
 */
int paths_package(const char *name, char *path, size_t len);

/*
 * If this user can read the file @name, writes its path to @path and returns NULL. Otherwise writes
 * the error to @path and returns advice.
 */
const char *paths_advice(const char *name, char *path, size_t len);

#define PATHS_INJECT "libgpupart-inject.so"

/*
 * Returns whether @path is an injected library. The library may belong to another installation of
 * gpupart.
 */
bool paths_is_inject(const char *path);

/* The audit library for the loader. This library reports a tenant's quota to NVML calls. */
#define PATHS_NVML "libgpupart-nvml.so"

#define PATHS_SIM "sim"

/* Copies main()'s @argv for paths_enter_sim(). So a command may change its argv. */
void paths_set_argv(int argc, char **argv);

/*
 * Executes this command again with the simulated driver first on the loader's path. The GPU is
 * @capture. If this command already has this driver and this capture, returns 0. If the execution
 * fails, returns an error.
 */
int paths_enter_sim(const char *capture);

/*
 * Returns whether @source is the kernel module or NVIDIA's driver. These two sources describe this
 * machine's GPUs.
 */
bool paths_is_live(const char *source);

/* Returns whether two paths refer to the same file. */
bool paths_same(const char *a, const char *b);

/*
 * Reads the first line of the file at @path, without the line feed. If reading fails, returns
 * false.
 */
bool paths_read_line(const char *path, char *text, size_t len);

#endif
