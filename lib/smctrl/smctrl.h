/* SPDX-License-Identifier: MIT */
/* Declarations that the files of libsmctrl share. */
#ifndef GPUPART_LIB_SMCTRL_SMCTRL_H
#define GPUPART_LIB_SMCTRL_SMCTRL_H

#include <stdbool.h>

/* True if GPUPART_DISABLE is 1. The program then runs as if libsmctrl did nothing. */
bool smctrl_stands_aside(void);

/*
 * Applies LIBSMCTRL_MASK to all GPUs whose mask bits were checked before. This function is called
 * inside cuInit(). At that time, the program cannot call driver functions yet.
 */
void smctrl_cap_early(void);

/* Prints a line on stderr. */
__attribute__((format(printf, 1, 2)))
void smctrl_say(const char *fmt, ...);

#define SMCTRL_MAX_GPUS 64

/*
 * These driver functions find the GPUs of the process and the GPU of a thread. The code of
 * libsmctrl needs no other driver functions, because gpupart confines the launches.
 */
struct smctrl_driver {
	int (*init)(unsigned int);
	int (*device_count)(int *);
	int (*device_pci)(char *, int, int);
	int (*ctx_current)(void **);
	int (*ctx_device)(int *);
	int (*ctx_push)(void *);
	int (*ctx_pop)(void **);
	int (*primary_retain)(void **, int);
	int (*primary_release)(int);
	int (*primary_state)(int, unsigned int *, int *);
	/* Exists only in gpupart's simulated driver. */
	const char *(*sim_capture)(int device);
};

/* These function pointers become valid when smctrl_driver_there() returns true. */
extern struct smctrl_driver smctrl_driver;
bool smctrl_driver_there(void);

/* Writes the PCI address of CUDA's device @device. If the device has no PCI address, writes "". */
void smctrl_device_pci(int device, char pci[20]);

#endif
