# SPDX-License-Identifier: MIT
"""Run by tests/gpu/nvml.sh, inside `gpupart run --mem` and outside it.

nvml.py ask GPU: prints NVML's answers as JSON, by ctypes like pynvml.
nvml.py protocol GPU: how it answers questions with too little room or an unknown struct version;
    one line each, to be compared with sim/nvml.
nvml.py hold MIB [busy]: allocates that much memory of device 0, prints its pid, waits for the end
of
    stdin; busy: and keeps the GPU busy meanwhile.
nvml.py torch | cupy | jax: starts, works, prints the memory figures that it saw and the time of a
call.
"""
import ctypes
import json
import os
import select
import sys
import time

u32, u64 = ctypes.c_uint, ctypes.c_ulonglong
NONE = 2 ** 64 - 1


class Memory(ctypes.Structure):
    _fields_ = [("total", u64), ("free", u64), ("used", u64)]


class Memory2(ctypes.Structure):
    _fields_ = [("version", u32), ("total", u64), ("reserved", u64), ("free", u64), ("used", u64)]


class Process1(ctypes.Structure):
    _fields_ = [("pid", u32), ("used", u64)]


class Process(ctypes.Structure):
    _fields_ = [("pid", u32), ("used", u64), ("gi", u32), ("ci", u32)]


class Detail(ctypes.Structure):
    _fields_ = [("pid", u32), ("used", u64), ("gi", u32), ("ci", u32), ("protected", u64)]


class Details(ctypes.Structure):
    _fields_ = [("version", u32), ("mode", u32), ("nr", u32), ("list", ctypes.POINTER(Detail))]


class Sample(ctypes.Structure):
    _fields_ = [("pid", u32), ("time", u64), ("sm", u32), ("mem", u32), ("enc", u32), ("dec", u32)]


class Use(ctypes.Structure):
    _fields_ = [("time", u64), ("pid", u32), ("sm", u32), ("mem", u32), ("enc", u32), ("dec", u32),
                ("jpg", u32), ("ofa", u32)]


class Uses(ctypes.Structure):
    _fields_ = [("version", u32), ("nr", u32), ("last", u64), ("list", ctypes.POINTER(Use))]


def version(struct, number):
    return ctypes.sizeof(struct) | number << 24


def opened(index):
    lib = ctypes.CDLL("libnvidia-ml.so.1")
    device = ctypes.c_void_p()
    rc = lib.nvmlInit_v2() or lib.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device))
    if rc:
        sys.exit("nvml: %d" % rc)
    return lib, device


def lists():
    for kind in "Compute", "Graphics", "MPSCompute":
        for suffix in "", "_v2", "_v3":
            yield ("nvmlDeviceGet%sRunningProcesses%s" % (kind, suffix),
                   Process if suffix else Process1)


def processes(lib, device, name, struct, room=256):
    nr, entries = u32(room), (struct * max(room, 1))()
    rc = getattr(lib, name)(device, ctypes.byref(nr), entries if room else None)
    return rc, nr.value, [] if rc else [(p.pid, p.used if p.used != NONE else None)
                                        for p in entries[:nr.value]]


def ask(index):
    lib, device = opened(index)
    memory, memory2, protected = Memory(), Memory2(version=version(Memory2, 2)), Memory()
    told = {
        "memory": (lib.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory)),
                   memory.total, memory.used, memory.free),
        "memory2": (lib.nvmlDeviceGetMemoryInfo_v2(device, ctypes.byref(memory2)),
                    memory2.total, memory2.reserved, memory2.used, memory2.free),
    }
    if hasattr(lib, "nvmlDeviceGetConfComputeProtectedMemoryUsage"):
        rc = lib.nvmlDeviceGetConfComputeProtectedMemoryUsage(device, ctypes.byref(protected))
        told["protected"] = rc, protected.total, protected.used, protected.free
    for name, struct in lists():
        if hasattr(lib, name):
            told[name] = processes(lib, device, name, struct)
    details = Details(version(Details, 1), 0, 256, (Detail * 256)())
    rc = lib.nvmlDeviceGetRunningProcessDetailList(device, ctypes.byref(details))
    told["details"] = rc, details.nr, [] if rc else [p.pid for p in details.list[:details.nr]]
    samples, nr = (Sample * 1024)(), u32(1024)
    rc = lib.nvmlDeviceGetProcessUtilization(device, samples, ctypes.byref(nr), u64(0))
    told["samples"] = rc, nr.value, [] if rc else [p.pid for p in samples[:nr.value]]
    if hasattr(lib, "nvmlDeviceGetProcessesUtilizationInfo"):
        uses = Uses(version(Uses, 1), 1024, 0, (Use * 1024)())
        rc = lib.nvmlDeviceGetProcessesUtilizationInfo(device, ctypes.byref(uses))
        told["uses"] = rc, uses.nr, [] if rc else [p.pid for p in uses.list[:uses.nr]]
    print(json.dumps(told))


def protocol(index):
    lib, device = opened(index)
    nr = u32(0)
    for name, struct in lists():
        if not hasattr(lib, name):
            print(name, "is not there")
            continue
        _, all_of_them, _ = processes(lib, device, name, struct, 64)
        f = getattr(lib, name)
        entries = (struct * 64)()
        ctypes.memset(entries, 0x5A, ctypes.sizeof(entries))
        nr.value = 64
        rc = f(device, ctypes.byref(nr), entries)
        written = len(bytes(entries).rstrip(b"\x5a"))
        print(name, "rc", rc, "of", nr.value, "bytes written", written, "each",
              written / nr.value if nr.value else None)
        nr.value = 0
        rc = f(device, ctypes.byref(nr), None)
        print("  count 0, NULL:", rc, nr.value)
        nr.value = 5
        rc = f(device, ctypes.byref(nr), None)
        print("  count 5, NULL:", rc, nr.value)
        print("  no count:", f(device, None, entries))
        if all_of_them > 1:
            ctypes.memset(entries, 0x5A, ctypes.sizeof(entries))
            nr.value = 1
            rc = f(device, ctypes.byref(nr), entries)
            print("  count 1 of %d:" % all_of_them, rc, nr.value, "bytes written",
                  len(bytes(entries).rstrip(b"\x5a")))
    for number in 0, version(Memory2, 1), version(Memory2, 3), 2:
        memory2 = Memory2(version=number)
        print("memory_v2 version %#x:" % number,
              lib.nvmlDeviceGetMemoryInfo_v2(device, ctypes.byref(memory2)))
    memory2 = Memory2(version=version(Memory2, 2))
    lib.nvmlDeviceGetMemoryInfo_v2(device, ctypes.byref(memory2))
    print("memory_v2: total - reserved - used - free =",
          memory2.total - memory2.reserved - memory2.used - memory2.free, "reserved",
          memory2.reserved)
    memory = Memory()
    lib.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory))
    print("memory: total - used - free =", memory.total - memory.used - memory.free)
    for mode in range(4):
        for room in 0, 1, 64:
            details = Details(version(Details, 1), mode, room, (Detail * 64)() if room else None)
            rc = lib.nvmlDeviceGetRunningProcessDetailList(device, ctypes.byref(details))
            print("details mode", mode, "room", room, "rc", rc, "nr", details.nr)
    details = Details(version(Details, 2), 0, 0, None)
    print("details version 2:", lib.nvmlDeviceGetRunningProcessDetailList(
        device, ctypes.byref(details)))
    nr.value = 0
    rc = lib.nvmlDeviceGetProcessUtilization(device, None, ctypes.byref(nr), u64(0))
    print("samples NULL:", rc, nr.value)
    nr.value = 1
    rc = lib.nvmlDeviceGetProcessUtilization(device, (Sample * 1)(), ctypes.byref(nr), u64(0))
    print("samples room 1:", rc, nr.value)
    nr.value = 0
    rc = lib.nvmlDeviceGetAccountingPids(device, ctypes.byref(nr), None)
    print("accounting pids count 0:", rc, nr.value)
    stats = ctypes.create_string_buffer(256)
    print("accounting stats of pid 1:", lib.nvmlDeviceGetAccountingStats(device, 1, stats))
    for name in "nvmlDeviceGetMemoryInfo", "nvmlDeviceGetComputeRunningProcesses_v3":
        f, memory, nr.value = getattr(lib, name), (ctypes.c_char * 8192)(), 64
        args = (memory,) if name.endswith("Info") else (ctypes.byref(nr), memory)
        f(device, *args)
        start = time.perf_counter()
        for _ in range(2000):
            nr.value = 64
            f(device, *args)
        print(name, "%.2f us a call" % ((time.perf_counter() - start) / 2000 * 1e6))


def hold(mib, how=""):
    cuda = ctypes.CDLL("libcuda.so.1")
    context, address = ctypes.c_void_p(), u64()
    rc = cuda.cuInit(0) or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) or \
        cuda.cuCtxSetCurrent(context) or \
        cuda.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(mib << 20))
    if rc:
        sys.exit("CUDA: %d" % rc)
    print(os.getpid(), flush=True)
    while how == "busy" and not select.select([sys.stdin], [], [], 0)[0]:
        if cuda.cuMemsetD8_v2(address, 1, ctypes.c_size_t(mib << 20)) or cuda.cuCtxSynchronize():
            sys.exit("CUDA: no work")
    sys.stdin.read()


def timed(call, nr=20000):
    """us per call, the minimum of several pieces."""
    least = 1e9
    for _ in range(8):
        start = time.perf_counter()
        for _ in range(nr // 8):
            call()
        least = min(least, (time.perf_counter() - start) / (nr // 8) * 1e6)
    return least


def framework(name):
    if name == "torch":
        import torch
        a = torch.ones(64, device="cuda")
        call, free_total = (lambda: a.add_(1)), torch.cuda.mem_get_info()
        good = bool((torch.ones(512, 512, device="cuda") @ torch.ones(512, 512, device="cuda")
                     == 512).all())
    elif name == "cupy":
        import cupy
        a = cupy.ones(64)
        call, free_total = (lambda: cupy.add(a, 1, a)), cupy.cuda.runtime.memGetInfo()
        good = bool((cupy.ones((512, 512)) @ cupy.ones((512, 512)) == 512).all())
    else:
        import jax
        import jax.numpy as jnp
        a, f = jnp.ones(64), jax.jit(lambda x: x + 1)
        call, stats = (lambda: f(a)), jax.devices()[0].memory_stats() or {}
        free_total = None, stats.get("bytes_limit")
        good = bool((jnp.ones((512, 512)) @ jnp.ones((512, 512)) == 512).all())
    call()
    print(json.dumps({"good": good, "free": free_total[0], "total": free_total[1],
                      "us": timed(call)}))


def main():
    what, rest = sys.argv[1], sys.argv[2:]
    if what in ("torch", "cupy", "jax"):
        try:
            __import__(what)
        except ImportError:
            print(json.dumps({"skip": "no %s here" % what}))
            return
        framework(what)
    else:
        {"ask": ask, "protocol": protocol, "hold": hold}[what](int(rest[0]), *rest[1:])


main()
