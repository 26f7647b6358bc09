/* SPDX-License-Identifier: MIT */
/*
 * Accesses mapped files that another process may truncate: the access then fails, and the
 * process is not killed by SIGBUS. SIGBUS must not be blocked in the calling thread.
 */
#ifndef GPUPART_LIB_CORE_FAULT_H
#define GPUPART_LIB_CORE_FAULT_H

/*
 * Installs the handler of SIGBUS at the first call. The handler passes faults in other memory on
 * to the previous handler.
 */
void fault_catch(void);

/*
 * Returns what @act(@arg) returns, or -EFAULT if a file was truncated. fault_catch() must have
 * been called. @act is left at the access that fails, so it must not take locks. Calls must not
 * be nested.
 */
int fault_guard(int (*act)(void *arg), void *arg);

#endif
