/* SPDX-License-Identifier: MIT */
/*
 * NVIDIA's MPS for run: joining a daemon or having one of our own, which ends after the last
 * program that needed it.
 */
#ifndef GPUPART_CLI_MPS_MPS_H
#define GPUPART_CLI_MPS_MPS_H

#include <stdbool.h>
#include <gpupart_manage.h>

/*
 * Makes what this process becomes a client of MPS: its environment names a daemon that
 * answers, and a keeper stays behind that ends the daemon if we started it. Where there
 * can be no MPS the environment is left alone and a line on stderr says why.
 */
bool mps_join(bool simulated);

/*
 * Before process @pid gets a signal that may end it: if it is a client of one of this user's own
 * daemons, that ends its GPU work first (mps_daemon_terminate()). Takes 5 s at most.
 */
void mps_end_client(int pid);

/*
 * Without MPS: says it where other processes use the GPU at @pci too and so take turns
 * with this one.
 */
void mps_note_turns(const char *pci);

#endif
