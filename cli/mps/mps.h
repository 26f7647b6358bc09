/* SPDX-License-Identifier: MIT */
/*
 * NVIDIA's MPS for run. Makes programs clients of a running daemon. If no daemon runs, gpupart
 * starts a daemon, which ends after the last program.
 */
#ifndef GPUPART_CLI_MPS_MPS_H
#define GPUPART_CLI_MPS_MPS_H

#include <stdbool.h>
#include <gpupart_manage.h>

/*
 * Makes the program that this process will execute a client of MPS. Sets the environment for a
 * daemon that answers. Starts a keeper process. If gpupart started the daemon, the keeper later
 * ends the daemon. If MPS cannot be used, prints a message on stderr, changes nothing and
 * returns false.
 */
bool mps_join(bool simulated);

/*
 * Call this before process @pid gets a signal that may end this process. If the process is a
 * client of a daemon of this user, ends the GPU work of the process first (see
 * mps_daemon_terminate()). Takes at most 5 s.
 */
void mps_end_client(int pid);

/*
 * If this process does not use MPS, and other processes also use the GPU at @pci, prints on stderr
 * that programs share the GPU in time slices.
 */
void mps_note_turns(const char *pci);

#endif
