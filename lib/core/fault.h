/* SPDX-License-Identifier: MIT */
/*
 * Accesses mapped files that another process may truncate. If a file was truncated, the access
 * fails, but SIGBUS does not kill the process. The calling thread must not block SIGBUS.
 */
#ifndef GPUPART_LIB_CORE_FAULT_H
#define GPUPART_LIB_CORE_FAULT_H

/*
 * The first call installs the handler of SIGBUS. If a fault is in other memory, the previously
 * installed handler handles it.
 */
void fault_catch(void);

/*
 * Calls @act(@arg) and returns its result. If a file was truncated, returns -EFAULT. The caller
 * must have called fault_catch(). If an access fails, @act ends at this access, so @act must not
 * acquire locks. Calls of this function must not be nested.
 */
int fault_guard(int (*act)(void *arg), void *arg);

#endif
