# SPDX-License-Identifier: MIT
"""Code shared by the Python tests: TAP, and streams of the simulated driver."""
import ctypes
import os
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "python"))
sys.dont_write_bytecode = True
_count = _failed = 0


def ok(good, words):
    """One check."""
    global _count, _failed
    _count += 1
    _failed += not good
    print(f"{'ok' if good else 'not ok'} {_count} - {words}", flush=True)
    return good


def same(got, wanted, words):
    """One check that reports the actual value."""
    return ok(got == wanted, words if got == wanted else f"{words}: {got!r}, not {wanted!r}")


def raises(kind, part, function, words, number=None):
    """Checks that @function raises @kind, with @part in its text and @number as its errno."""
    try:
        got = function()
    except kind as error:
        good = part in str(error) and (number is None or error.errno == number)
        return ok(good, f"{words}: {error}" if good else f"{words}: {error!r}, not {part} {number}")
    except Exception as error:
        return ok(False, f"{words}: {error!r}")
    return ok(False, f"{words}: returned {got!r}")


def done():
    """Prints the plan and ends the program."""
    print(f"1..{_count}")
    sys.exit(_failed != 0)


class Driver:
    """Streams of libcuda.so.1, in the primary context of @device."""

    def __init__(self, device=0):
        self.cu = ctypes.CDLL("libcuda.so.1")
        assert hasattr(self.cu, "gpupart_sim_capture"), "this is no simulated driver"
        self.context = ctypes.c_void_p()
        self("cuInit", 0)
        self("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), device)
        self.enter()

    def __call__(self, name, *args):
        result = getattr(self.cu, name)(*args)
        assert result == 0, f"{name}: {result}"

    def enter(self):
        self("cuCtxSetCurrent", self.context)

    def stream(self):
        handle = ctypes.c_void_p()
        self("cuStreamCreate", ctypes.byref(handle), 1)
        return handle.value

    def graph_of_a_fill(self):
        """An executable graph with one node, which fills a MiB."""
        memory, graph = ctypes.c_uint64(), ctypes.c_void_p()
        node, made = ctypes.c_void_p(), ctypes.c_void_p()
        self("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(1 << 20))
        # CUDA_MEMSET_NODE_PARAMS: dst, pitch, value and element size, width, height
        fill = (ctypes.c_uint64 * 5)(memory.value, 0, 4 << 32, 1 << 18, 1)
        self("cuGraphCreate", ctypes.byref(graph), 0)
        self("cuGraphAddMemsetNode", ctypes.byref(node), graph, None, ctypes.c_size_t(0), fill,
             self.context)
        self("cuGraphInstantiateWithFlags", ctypes.byref(made), graph, ctypes.c_uint64(0))
        return made.value

    def destroy(self, handle):
        self("cuStreamDestroy_v2", ctypes.c_void_p(handle))
