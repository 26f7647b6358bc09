/* SPDX-License-Identifier: MIT */
/*
 * NVIDIA's MPS for run: makes programs clients of a running daemon, or of one that gpupart starts
 * and that ends after the last program.
 */
#ifndef GPUPART_CLI_MPS_MPS_H
#define GPUPART_CLI_MPS_MPS_H

#include <stdbool.h>
#include <gpupart_manage.h>

/*
 * Makes the program that this process will execute a client of MPS: sets its environment to a
 * daemon that answers, and leaves a keeper process, which ends a daemon that gpupart started.
 * Returns false, after a message on stderr and without changes, if MPS cannot be used.
 */
bool mps_join(bool simulated);

/*
 * Called before process @pid gets a signal that may end it. If it is a client of a daemon of this
 * user, ends its GPU work first (mps_daemon_terminate()). Takes 5 s at most.
 */
void mps_end_client(int pid);

/* Without MPS: prints on stderr if other processes also use the GPU at @pci, in time slices. */
void mps_note_turns(const char *pci);

#endif
