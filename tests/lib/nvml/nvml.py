# SPDX-License-Identifier: MIT
# Prints the values that a Python program gets from NVML by ctypes, like pynvml; for nvml.sh.
import ctypes
import sys

lib = ctypes.CDLL("libnvidia-ml.so.1")
u64 = ctypes.c_ulonglong


class Memory(ctypes.Structure):
    _fields_ = [("total", u64), ("free", u64), ("used", u64)]


class Memory2(ctypes.Structure):
    _fields_ = [("version", ctypes.c_uint), ("total", u64), ("reserved", u64), ("free", u64),
                ("used", u64)]


class Process(ctypes.Structure):
    _fields_ = [("pid", ctypes.c_uint), ("used", u64), ("gi", ctypes.c_uint),
                ("ci", ctypes.c_uint)]


def call(name, *args):
    rc = getattr(lib, name)(*args)
    if rc:
        sys.exit("%s: %d" % (name, rc))


device, nr = ctypes.c_void_p(), ctypes.c_uint()
call("nvmlInit_v2")
call("nvmlDeviceGetHandleByIndex_v2", 0, ctypes.byref(device))
memory, memory2 = Memory(), Memory2(version=ctypes.sizeof(Memory2) | 2 << 24)
call("nvmlDeviceGetMemoryInfo", device, ctypes.byref(memory))
call("nvmlDeviceGetMemoryInfo_v2", device, ctypes.byref(memory2))
# Like pynvml: the number, some spare entries, the list.
rc = lib.nvmlDeviceGetComputeRunningProcesses_v3(device, ctypes.byref(nr), None)
if rc not in (0, 7):
    sys.exit("count: %d" % rc)
nr.value = nr.value * 2 + 5
processes = (Process * nr.value)()
call("nvmlDeviceGetComputeRunningProcesses_v3", device, ctypes.byref(nr), processes)
print(memory.total, memory.used, memory.free, memory2.total, memory2.used, memory2.free,
      *("%d=%d" % (p.pid, p.used) for p in processes[:nr.value]))
