/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The face in /proc; see proc.c and Documentation/internals/abi-proc.md. */
#ifndef GPUPART_KMOD_PROC_H
#define GPUPART_KMOD_PROC_H

int proc_face_init(void);
void proc_face_fini(void);

#endif
