# SPDX-License-Identifier: MIT
"""How a process is charged that imports another one's memory. memory_pool.sh runs it.

memory_pool.py ipc | pool: from outside, two processes, each in its own tenant; the first has 1
GiB, and
    the second opens it. The first quota is charged, and the second is not.
memory_pool.py inside: such a process; executes the commands, lines of JSON, on stdin.

$GPUPART is the command, $INJECT its injected library, $TENANT the common part of the tenants'
names,
$SOCKET the path of a socket.
"""
import ctypes
import os
import socket
import sys
import threading
import time

import memory_gpus
from memory_gpus import GIB, MIB, QUOTA, SPARE, Calls, Inside, Nvml, byref, gpupart, ok, u64

POSIX_FD = 1
RESERVED = 5  # CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT


class Sharing(Calls):
    """The driver's functions that share memory: the first return value of each is the error."""

    def has(self, name):
        return hasattr(self.cuda, name)

    def pool_export(self, size):
        """A pool that can be shared, and an allocation in it. Its descriptor is sent to $SOCKET."""
        properties = self.properties(0)
        properties[1] = POSIX_FD
        pool, stream, address = ctypes.c_void_p(), ctypes.c_void_p(), u64()
        fd, data = ctypes.c_int(-1), (ctypes.c_ubyte * 64)()
        error = self.cuda.cuStreamCreate(byref(stream), 1) or \
            self.cuda.cuMemPoolCreate(byref(pool), properties) or \
            self.cuda.cuMemAllocFromPoolAsync(byref(address), ctypes.c_size_t(size), pool,
                                              stream) or \
            self.cuda.cuMemsetD8_v2(address, ctypes.c_ubyte(0x5a), ctypes.c_size_t(4096)) or \
            self.cuda.cuCtxSynchronize() or \
            self.cuda.cuMemPoolExportToShareableHandle(byref(fd), pool, POSIX_FD, u64(0)) or \
            self.cuda.cuMemPoolExportPointer(data, address)
        self.got = pool, stream, address
        if not error:
            server = socket.socket(socket.AF_UNIX)
            server.bind(os.environ["SOCKET"])
            server.listen()
            threading.Thread(target=lambda: socket.send_fds(server.accept()[0], [b"x"],
                                                            [fd.value]), daemon=True).start()
        return error, bytes(data).hex()

    def pool_import(self):
        """Imports the pool from $SOCKET."""
        client = socket.socket(socket.AF_UNIX)
        client.connect(os.environ["SOCKET"])
        fds = socket.recv_fds(client, 1, 1)[1]
        self.shared = ctypes.c_void_p()
        return self.cuda.cuMemPoolImportFromShareableHandle(
            byref(self.shared), ctypes.c_void_p(fds[0]), POSIX_FD, u64(0))

    def pool_open(self, data):
        """Its allocation: the error, and one byte."""
        self.address = u64()
        error = self.cuda.cuMemPoolImportPointer(byref(self.address), self.shared,
                                                 (ctypes.c_ubyte * 64)(*bytes.fromhex(data)))
        return error, error or self.first_byte()

    def pool_close(self):
        return self.cuda.cuMemFree_v2(self.address) or self.cuda.cuMemPoolDestroy(self.shared)

    def pool_reserved(self):
        """The driver's figure for the imported pool."""
        value = u64()
        return self.cuda.cuMemPoolGetAttribute(self.shared, RESERVED, byref(value)), value.value

    def first_byte(self):
        byte = ctypes.c_ubyte()
        error = self.cuda.cuMemcpyDtoH_v2(byref(byte), self.address, ctypes.c_size_t(1))
        return -error if error else byte.value

    def ipc_export(self, size):
        handle = (ctypes.c_ubyte * 64)()
        error = self.alloc(0, size)
        if not error:
            address = self.held[0][0]
            error = self.cuda.cuMemsetD8_v2(address, ctypes.c_ubyte(0x5a),
                                            ctypes.c_size_t(4096)) or \
                self.cuda.cuCtxSynchronize() or self.cuda.cuIpcGetMemHandle(handle, address)
        return error, bytes(handle).hex()

    def ipc_open(self, data):
        class Handle(ctypes.Structure):
            """CUipcMemHandle, by value."""
            _fields_ = [("reserved", ctypes.c_ubyte * 64)]
        self.address = u64()
        error = self.cuda.cuIpcOpenMemHandle_v2(byref(self.address), Handle(
            (ctypes.c_ubyte * 64)(*bytes.fromhex(data))), 1)
        return error, error or self.first_byte()

    def ipc_close(self):
        return self.cuda.cuIpcCloseMemHandle(self.address)

    def settle(self):
        """Small allocations, during which the library sometimes reads NVML's figure."""
        for _ in range(20):
            if self.alloc(0, 4 * MIB):
                return 1
            self.free(0)
            time.sleep(0.005)
        return 0


def program(end):
    """The command that starts a process of the tenant with that suffix."""
    return ["env", f"GPUPART_TENANT={os.environ['TENANT']}-{end}", f"GPUPART_MEM={QUOTA}",
            f"CUDA_INJECTION64_PATH={os.environ['INJECT']}"]


def charged(end):
    """Bytes charged to this tenant."""
    name = f"{os.environ['TENANT']}-{end}"
    return sum(t["used_bytes"] for t in gpupart("ps")["tenants"] if t["tenant"] == name)


class Figures:
    """Growth of NVML's figure for all processes, and of the second's charge."""

    def __init__(self, used):
        self.used, self.before, self.had = used, used(), charged("b")

    def grown(self, what):
        """The growth of the second's charge."""
        there, told = self.used() - self.before, charged("b") - self.had
        print(f"# {what}: processes have {there / MIB:+.0f} MiB, charged to the second: "
              f"{told / MIB:+.0f} MiB", flush=True)
        return told


def shared(kind):
    """The first allocates 1 GiB, and the second opens it."""
    nvml = Nvml()
    first, second = Inside(program("a")), Inside(program("b"))
    pci = first.begin()[0]
    second.begin()
    simulated = first.simulated() is not None
    if kind == "pool" and not first.has("cuMemPoolImportPointer"):
        print("skip - this driver, " + ("simulated" if simulated else "a real one") +
              ", has no pools that are shared")
        return
    if not simulated:
        nvml.begin(pci)
    ok(not first.context(0) and not second.context(0), "two processes, each with a quota")
    before = charged("a")
    error, data = first.pool_export(GIB) if kind == "pool" else first.ipc_export(GIB)
    if not ok(not error, f"the first exports 1 GiB, error {error}"):
        return
    more = charged("a") - before
    ok(GIB <= more <= GIB + SPARE, f"it is charged for {more // MIB} MiB more")
    second.settle()
    figures = Figures(lambda: second.simulated()[0] if simulated else nvml.used(pci))
    if kind == "pool":
        error = second.pool_import()
        ok(not error, f"the second imports the pool, error {error}")
        ok(figures.grown("imported") <= SPARE, "and is not charged for it")
    error, byte = second.pool_open(data) if kind == "pool" else second.ipc_open(data)
    # The simulated driver opens memory of its own instead.
    ok(not error and (simulated or byte == 0x5a),
       f"it opens the allocation and reads what the first wrote: error {error}, {byte}")
    ok(figures.grown("opened") <= SPARE, "and is not charged for it")
    second.settle()
    ok(figures.grown("after more allocations") <= SPARE, "nor when NVML is looked at later")
    if kind == "pool":
        print("# the driver says that the imported pool has reserved: error %d, %d bytes" %
              tuple(second.pool_reserved()), flush=True)
    # The second's own use is still counted: its quota still applies.
    nr = error = 0
    while not error and nr < 1000:
        error = second.alloc(0, 256 * MIB)
        nr += not error
    ok(error == memory_gpus.OUT_OF_MEMORY and 24 <= nr <= 31,
       f"the second gets {nr} of 256 MiB of its own, then error {error}")
    second.free(0)
    error = second.pool_close() if kind == "pool" else second.ipc_close()
    ok(not error, f"it closes what it opened, error {error}")
    second.settle()
    ok(abs(figures.grown("closed")) <= SPARE, "and is charged as before")
    ok(second.end() == 0 and first.end() == 0, "both end")
    ok(not charged("a") and not charged("b"), "and nothing is left")


if __name__ == "__main__":
    if sys.argv[1] == "inside":
        memory_gpus.serve(Sharing())
    else:
        shared(sys.argv[1])
