/* SPDX-License-Identifier: MIT */
/* What the files of libsmctrl share. */
#ifndef GPUPART_LIB_SMCTRL_SMCTRL_H
#define GPUPART_LIB_SMCTRL_SMCTRL_H

#include <stdbool.h>

/* GPUPART_DISABLE=1: the program runs as if libsmctrl did nothing. */
bool smctrl_stands_aside(void);

/*
 * Called inside cuInit, where driver functions cannot be called yet: applies LIBSMCTRL_MASK to
 * all GPUs whose mask bits were checked before.
 */
void smctrl_cap_early(void);

/* Prints a line on stderr. */
__attribute__((format(printf, 1, 2)))
void smctrl_say(const char *fmt, ...);

#define SMCTRL_MAX_GPUS 64

/* Only to find the GPUs and the thread's GPU; gpupart confines launches. */
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
	/* Only in gpupart's simulated driver. */
	const char *(*sim_capture)(int device);
};

/* Valid once smctrl_driver_there() has returned true. */
extern struct smctrl_driver smctrl_driver;
bool smctrl_driver_there(void);

/* The PCI address of CUDA's @device; "" if there is none. */
void smctrl_device_pci(int device, char pci[20]);

#endif
