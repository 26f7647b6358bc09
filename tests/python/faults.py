# SPDX-License-Identifier: MIT
"""Other machines and environments; the first argument selects one."""
import dataclasses
import errno
import os
import sys
from ctypes import byref, c_void_p

from tap import Driver, done, ok, raises, same

import gpupart
from gpupart import Error, TpcSet, attach, partition


def two_gpus():
    zero, one = attach("cuda:0"), attach("cuda:1")
    ok(zero is not one and zero.topology.info.pci != one.topology.info.pci, f"{zero} and {one}")
    same((attach() is zero, attach(one.topology.info.pci) is one,
          attach(one.topology.info.uuid) is one), (True, True, True), "each by its names")
    all0, all1 = zero.topology.all, one.topology.all
    with partition(tpcs="0-3", gpu=one), partition(tpcs=9, gpu="cuda:0"):
        same((zero.census(), one.census()), (TpcSet(9), TpcSet("0-3")), "each has its own set")
        same((zero.process, one.process), (TpcSet(9), TpcSet("0-3")), "and tells it")
    same((zero.census(), one.census()), (all0, all1), "both put back")
    driver = Driver(1)

    class Device:
        index = 1

    class Torch:
        cuda_stream = driver.stream()
        device = Device

    class CuPy:
        ptr = Torch.cuda_stream
        device_id = 1

    for stream in Torch(), CuPy():
        with partition(gpcs=1, stream=stream) as tpcs:
            same((tpcs, one.census(stream), one.census(), zero.census()),
                 (one.topology.gpcs[1].tpcs, tpcs, all1, all0),
                 f"a stream of {type(stream).__name__} tells its GPU")
    raises(Error, hex(Torch.cuda_stream), lambda: zero.stream_set(Torch(), 1),
           "a stream of the other GPU", errno.EINVAL)
    CuPy.device_id = -1
    raises(Error, zero.topology.info.pci, lambda: partition(tpcs=1, stream=CuPy()).__enter__(),
           "a stream that does not tell is one of CUDA's device 0", errno.EINVAL)


def memory():
    """Inside `gpupart run --mem`, with 8000 bytes."""
    gpu = attach()
    raises(Error, "8001 bytes exceeds", lambda: attach(memory=8001), "a quota of outside's stays",
           errno.EPERM)
    same(attach(memory="7K").memory, 7168, "smaller it may be")
    raises(TypeError, "memory=True", lambda: attach(memory=True), "no size")
    raises(Error, "'-5'", lambda: attach(memory=-5), "less than nothing", errno.EINVAL)
    row = [t for t in gpupart.tenants() if t.name == os.environ["GPUPART_TENANT"]]
    same([(t.pci, t.simulated, t.quota, t.nr_processes) for t in row],
         [(gpu.topology.info.pci, True, 7168, 1)], "its tenant is shown")
    same((row[0].set_quota("9K"), gpu.memory), (7168, 9216), "and given another, as from outside")
    same([p.uncounted for p in gpupart.tenant_processes() if p.pid == os.getpid()], [0],
         "none of its calls got memory that is not counted")
    raises(Error, "no tenant", lambda: dataclasses.replace(row[0], name="unknown").set_quota(5),
           "one that is not there", errno.ESRCH)


def outer():
    gpu = attach()
    same((gpu.limit, gpu.census()), (TpcSet("0-7"), TpcSet("0-7")), "the limit from outside")
    raises(Error, "0-7", lambda: setattr(gpu, "limit", "0-8"), "it cannot be widened", errno.EPERM)
    gpu.limit = "1-2"
    same((gpu.limit, gpu.census()), (TpcSet("1-2"), TpcSet("1-2")), "made smaller")
    gpu.limit = None
    same(gpu.limit, TpcSet("0-7"), "and back, not away")
    with partition(tpcs="6-9"):
        same(gpu.census(), TpcSet("6-7"), "a partition stays inside of it")
    gpu.cap("4-9")
    same((gpu.limit, gpu.census()), (TpcSet("4-7"), TpcSet("4-7")), "a cap narrows it")
    gpu.limit = None
    same((gpu.limit, gpu.census()), (TpcSet("4-7"), TpcSet("4-7")), "for good")
    raises(Error, "no TPC in common", lambda: gpu.cap("0-3"), "a cap beside it", errno.EPERM)
    raises(Error, "the set for the cap", lambda: gpu.cap(None), "a cap of nothing", errno.EINVAL)
    same(gpu.census(), TpcSet("4-7"), "what was refused changed nothing")


def disabled():
    raises(Error, "GPUPART_DISABLE", attach, "GPUPART_DISABLE=1", errno.ECANCELED)


def moved():
    raises(Error, "TPC 17 ", attach, "mask bits that are not the table's", errno.EPROTO)


def no_table():
    raises(Error, "no launch callback", lambda: partition(tpcs=0).__enter__(),
           "a driver without the callback", errno.EOPNOTSUPP)


def no_streams():
    gpu = attach()
    ok("stream object" in gpu.check.streams, f"check tells: {gpu.check.streams}")
    raises(Error, "stream object", lambda: gpu.stream_set(Driver().stream(), 1),
           "stream sets are refused", errno.EOPNOTSUPP)


def no_calls():
    check = attach().check
    ok("a graph is launched" in check.graphs, f"check tells: {check.graphs}")
    raises(Error, "GPUPART_NO_DEVICE_LAUNCH", lambda: attach(no_device_launch=True),
           "calls that are not told of cannot be refused", errno.EOPNOTSUPP)


def options():
    gpu = attach(profilers=True, no_device_launch=True)
    ok(attach() is gpu and attach(strict=True) is gpu and attach("cuda:0", profilers=True) is gpu,
       "options of one that is attached: the same object")
    same(gpu.census(), TpcSet("0-7"), "and its limit")
    driver = Driver()
    module = c_void_p()
    image = b".version 8.0\n.target sm_90\n.address_size 64\n" \
            b".visible .entry parent() { call cudaLaunchDeviceV2; ret; }\n"
    same(driver.cu.cuModuleLoadData(byref(module), image), 800, "no_device_launch: refused")


def options_late():
    attach()
    raises(Error, "attached", lambda: attach(profilers=True), "profilers, too late", errno.EBUSY)


def no_driver():
    raises(Error, "libcuda.so.1", attach, "no driver", errno.ENOENT)
    same(gpupart.processes(), [], "and no process confines")


globals()[sys.argv[1]]()
done()
