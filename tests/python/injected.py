# SPDX-License-Identifier: MIT
"""The injected library and the program's library share one subscription, page and count.

Argument: library or driver, the one that the program loads first.
"""
import ctypes
import os
import sys

from tap import done, same


def init():
    cuda = ctypes.CDLL("libcuda.so.1")
    same(cuda.cuInit(0), 0, "cuInit")


if sys.argv[1] == "library":
    import gpupart
    init()
else:
    init()
    import gpupart
gpu = gpupart.Gpu.attach()
same(str(gpu.limit), "5-9", "the limit that the injected library took")
same([p.pid for p in gpupart.processes()], [os.getpid()], "one page")
before = gpupart.counters().launches
same(str(gpu.census()), "5-9", "a launch of the program's own library is confined")
same(gpupart.counters().launches, before + 1, "and counted once")
with open("/proc/self/maps", encoding="utf-8") as maps:
    files = [line.split("/")[-1].strip() for line in maps
             if "libgpupart" in line and " r-xp " in line]
same(sorted(files), ["libgpupart-inject.so", "libgpupart-manage.so.0", "libgpupart.so.0"],
     "each library once")
done()
