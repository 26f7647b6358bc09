/* SPDX-License-Identifier: MIT */
/*
 * Accesses mapped files that another process may truncate. If a file was truncated, the access
 * fails, but the process is not killed by SIGBUS. SIGBUS must not be blocked in the calling
 * thread.
 */
#ifndef GPUPART_LIB_CORE_FAULT_H
#define GPUPART_LIB_CORE_FAULT_H

/*
 * The first call installs the handler of SIGBUS. If a fault is in other memory, the handler that
 * was installed before handles it.
 */
void fault_catch(void);

/*
 * Returns what @act(@arg) returns, or -EFAULT if a file was truncated. fault_catch() must have
 * been called. If an access fails, @act ends at this access, so @act must not take locks. Calls
 * of this function must not be nested.
 */
int fault_guard(int (*act)(void *arg), void *arg);

#endif
