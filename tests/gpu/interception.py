# SPDX-License-Identifier: MIT
"""Run by tests/gpu/interception.sh inside `gpupart run`: frameworks and ways to open the driver,
one case at a time, each unmodified. Prints "ok - ...", "not ok - ..." or "skip - ...".

interception.py CASE: each of its launches is counted as confined, and if the case can record it,
its blocks ran on exactly the SMs of the set.
"""
import ctypes
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))

import gpupart  # noqa: E402  (to read this process's state page: nothing is attached)

CENSUS = r"""
extern "C" __global__ void census(unsigned int *seen)
{
    unsigned int sm;
    long long start = clock64();
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    while (clock64() - start < 20000)
        ;
    atomicAdd(seen + sm, 1);
}
"""
PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry census(.param .u64 seen)
{
.reg .u64 at, start, now; .reg .u32 sm; .reg .pred more;
ld.param.u64 at, [seen];
mov.u32 sm, %smid;
mov.u64 start, %clock64;
wait:
mov.u64 now, %clock64;
sub.u64 now, now, start;
setp.lt.u64 more, now, 20000;
@more bra wait;
mad.wide.u32 at, sm, 4, at;
red.global.add.u32 [at], 1;
ret;
}
\0"""
BLOCKS = 2048


def own():
    return next(p for p in gpupart.processes() if p.pid == os.getpid())


def allowed():
    topology = gpupart.Topology.open("rm", own().pci)
    return {sm for tpc in own().limit for sm in topology.tpcs[tpc].sms}


def judge(name, counts, least):
    c = own().counters
    widened = c.widened_cooperative + c.widened_cluster
    where = ""
    good = c.launches >= least and c.confined + widened == c.launches
    if counts is not None:
        sms = {i for i, n in enumerate(counts) if n}
        good = good and sms == allowed()
        where = f"; its blocks saw {len(sms)} SMs of {len(allowed())}"
    print("ok" if good else "not ok", "-", f"{name}: {c.launches} launches, {c.confined} confined, "
          f"{widened} widened for a cooperative grid or cluster{where}", flush=True)
    return good


def torch():
    import torch
    import torch.nn.functional as F

    model = torch.nn.Sequential(torch.nn.Linear(1024, 4096), torch.nn.GELU(),
                                torch.nn.Linear(4096, 1024)).cuda().bfloat16()
    x = torch.randn(256, 1024, device="cuda", dtype=torch.bfloat16)
    for _ in range(10):
        F.mse_loss(model(x), x).backward()
    torch.cuda.synchronize()
    return judge(f"PyTorch {torch.__version__}", None, 100)


def cupy():
    import cupy

    seen = cupy.zeros(256, dtype=cupy.uint32)
    cupy.RawKernel(CENSUS, "census")((BLOCKS,), (32,), (seen,))
    a = cupy.random.rand(2048, 2048, dtype=cupy.float32)
    for _ in range(5):
        a = (a @ a) / 2048
    cupy.cuda.runtime.deviceSynchronize()
    return judge(f"CuPy {cupy.__version__}", seen.get().tolist(), 12)


def jax():
    import jax
    import jax.numpy as jnp

    step = jax.jit(lambda a: jnp.tanh(a @ a) + jnp.sort(a, axis=0))
    a = jnp.ones((1024, 1024))
    for _ in range(10):
        a = step(a)
    a.block_until_ready()
    if jax.devices()[0].platform != "gpu":
        print("skip - JAX has no GPU here")
        return True
    return judge(f"JAX {jax.__version__}", None, 20)


def nccl():
    import torch
    import torch.distributed as dist

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29517")
    dist.init_process_group("nccl", rank=0, world_size=1)
    x = torch.ones(1 << 20, device="cuda")
    for _ in range(5):
        dist.all_reduce(x)
    torch.cuda.synchronize()
    good = judge("NCCL " + ".".join(map(str, torch.cuda.nccl.version())) + ", one rank", None, 1)
    dist.destroy_process_group()
    return good


def driver(name, function):
    """A program that opens libcuda itself; @function finds its functions."""
    import array

    context, module, kernel = (ctypes.c_void_p() for _ in range(3))
    seen = ctypes.c_uint64()
    function("cuInit")(0)
    assert not function("cuDevicePrimaryCtxRetain")(ctypes.byref(context), 0)
    assert not function("cuCtxSetCurrent")(context)
    assert not function("cuModuleLoadData")(ctypes.byref(module), PTX)
    assert not function("cuModuleGetFunction")(ctypes.byref(kernel), module, b"census")
    assert not function("cuMemAlloc_v2")(ctypes.byref(seen), ctypes.c_size_t(1024))
    assert not function("cuMemsetD8_v2")(seen, ctypes.c_ubyte(0), ctypes.c_size_t(1024))
    arguments = (ctypes.c_void_p * 1)(ctypes.addressof(seen))
    for _ in range(4):
        assert not function("cuLaunchKernel")(kernel, BLOCKS, 1, 1, 32, 1, 1, 0, None, arguments,
                                              None)
    assert not function("cuCtxSynchronize")()
    counts = (ctypes.c_uint32 * 256)()
    assert not function("cuMemcpyDtoH_v2")(counts, seen, ctypes.c_size_t(1024))
    return judge(name, array.array("I", counts).tolist(), 4)


def opened():
    lib = ctypes.CDLL("libcuda.so.1")
    return driver("a program that opens libcuda.so.1", lambda name: getattr(lib, name))


def proc_address():
    lib = ctypes.CDLL("libcuda.so.1")

    def function(name):
        at, status = ctypes.c_void_p(), ctypes.c_int()
        plain = name.replace("_v2", "")
        assert not lib.cuGetProcAddress_v2(plain.encode(), ctypes.byref(at), 12000,
                                           ctypes.c_uint64(0), ctypes.byref(status)), name
        # By the address that it returned, with any arguments.
        call = ctypes.cast(at, ctypes.CFUNCTYPE(ctypes.c_int))
        call.argtypes = None
        return call

    return driver("one that uses cuGetProcAddress", function)


try:
    sys.exit(0 if {"torch": torch, "cupy": cupy, "jax": jax, "nccl": nccl, "opened": opened,
                   "proc_address": proc_address}[sys.argv[1]]() else 1)
except ImportError as e:
    print("skip -", e)
