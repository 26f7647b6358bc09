# SPDX-License-Identifier: MIT
"""Run by tests/gpu/green.sh inside `gpupart run`: green contexts through cuda.bindings.

Created, made current, with a stream, and destroyed. Prints one line for each check.
"""
from cuda.bindings import driver


def call(name, *args):
    result, *values = getattr(driver, name)(*args)
    print(f"{'not ok' if int(result) else 'ok'} - {name}: {int(result)}", flush=True)
    return values[0] if len(values) == 1 else values


call("cuInit", 0)
primary = call("cuDevicePrimaryCtxRetain", 0)
call("cuCtxSetCurrent", primary)
sms = call("cuDeviceGetDevResource", 0, driver.CUdevResourceType.CU_DEV_RESOURCE_TYPE_SM)
groups, nr, rest = call("cuDevSmResourceSplitByCount", 4, sms, 0, 16)
for group in groups[:nr]:
    desc = call("cuDevResourceGenerateDesc", [group], 1)
    green = call("cuGreenCtxCreate", desc, 0,
                 driver.CUgreenCtxCreate_flags.CU_GREEN_CTX_DEFAULT_STREAM)
    stream = call("cuGreenCtxStreamCreate", green,
                  driver.CUstream_flags.CU_STREAM_NON_BLOCKING, 0)
    memory = call("cuMemAlloc", 1 << 20)
    call("cuMemsetD8Async", memory, 1, 1 << 20, stream)
    call("cuStreamSynchronize", stream)
    call("cuCtxSetCurrent", call("cuCtxFromGreenCtx", green))
    call("cuCtxSynchronize")
    call("cuCtxSetCurrent", primary)
    call("cuStreamDestroy", stream)
    call("cuGreenCtxDestroy", green)
