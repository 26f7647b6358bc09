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
 * This process will execute a program. Makes the program a client of MPS: finds a daemon that
 * answers, and sets the environment. Starts a keeper process. If gpupart started the daemon, the
 * keeper later ends the daemon. If MPS cannot be used, prints a message on stderr, changes nothing
 * and returns false.
 */
bool mps_join(bool simulated);

/*
 * Call this function before process @pid gets a signal that may end @pid. If @pid is a client of a
 * daemon of this user, ends the GPU work of @pid first (see mps_daemon_terminate()). Takes at most
 * 5 s.
 */
void mps_end_client(int pid);

/*
 * If this process does not use MPS and other processes use the GPU at @pci, prints on stderr that
 * programs share the GPU in time slices.
 */
void mps_note_turns(const char *pci);

#endif
