# SPDX-License-Identifier: MIT
"""A memory quota on two GPUs, each with separate accounting. memory_gpus.sh runs it.

memory_gpus.py each PROGRAM..: from outside, a process (PROGRAM.. inside the quota) that allocates
    memory on both; compared with NVML's figures at the same time, or the simulated driver's.
memory_gpus.py inside: that process; executes the commands, lines of JSON, on stdin.
memory_gpus.py ranks COMMAND..: two ranks of PyTorch, one per GPU, that reduce by NCCL; COMMAND is
    `gpupart run` with its quota.
memory_gpus.py gpus: prints the addresses of all GPUs, in CUDA's order.
memory_gpus.py rank N PORT: one of the ranks.

$GPUPART is the command, $TENANT the tenant, whose quota is QUOTA on each GPU.
"""
import ctypes
import json
import os
import subprocess
import sys
import time

MIB = 1 << 20
GIB = 1 << 30
QUOTA = 8 * GIB
# Maximum charge beyond the real use: for code, and for slabs kept for later
# (lib/memory/account.c).
SPARE = 80 * MIB
OUT_OF_MEMORY = 2
u64 = ctypes.c_uint64
byref = ctypes.byref


def ok(good, what):
    """One check."""
    print(("ok - " if good else "not ok - ") + what, flush=True)
    return good


# ------------------------------------------------------------------------------ outside

class Process(ctypes.Structure):
    """nvmlProcessInfo_t."""
    _fields_ = [("pid", ctypes.c_uint), ("used", ctypes.c_ulonglong), ("gi", ctypes.c_uint),
                ("ci", ctypes.c_uint)]


class Memory(ctypes.Structure):
    """nvmlMemory_t."""
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong),
                ("used", ctypes.c_ulonglong)]


class Nvml:
    """The memory of processes on a GPU, seen from outside."""

    def __init__(self):
        try:
            self.lib = ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            self.lib = None
            return
        self.lib.nvmlInit_v2()
        self.before = {}

    def look(self, pci):
        """Bytes of all processes (in a container their pids may be of another namespace), and of
        the whole GPU, where memory shared by two processes counts once."""
        device, nr, infos = ctypes.c_void_p(), ctypes.c_uint(256), (Process * 256)()
        memory = Memory()
        if self.lib.nvmlDeviceGetHandleByPciBusId_v2(pci.encode(), byref(device)) or \
                self.lib.nvmlDeviceGetMemoryInfo(device, byref(memory)) or \
                self.lib.nvmlDeviceGetComputeRunningProcesses_v3(device, byref(nr), infos):
            raise RuntimeError(f"NVML tells nothing of {pci}")
        return sum(p.used for p in infos[:nr.value] if p.used < 1 << 60), memory.used

    def begin(self, pci):
        """Stores the memory that other programs use."""
        self.before[pci] = self.look(pci)

    def used(self, pci):
        """Bytes of processes since begin()."""
        return self.look(pci)[0] - self.before[pci][0]

    def taken(self, pci):
        """Bytes of the GPU since begin()."""
        return self.look(pci)[1] - self.before[pci][1]


def gpupart(*args):
    """The JSON output of the command."""
    text = subprocess.run([os.environ["GPUPART"], *args, "--json"], check=True,
                          stdout=subprocess.PIPE, timeout=30).stdout
    return json.loads(text)


def rows():
    """The tenant's rows in ps, by GPU."""
    return {t["gpu"]: t for t in gpupart("ps")["tenants"] if t["tenant"] == os.environ["TENANT"]}


def charged(pci):
    """Bytes charged to the tenant there."""
    row = rows().get(pci)
    return row["used_bytes"] if row else 0


class Inside:
    """The process inside: each method of Calls by its name."""

    def __init__(self, program):
        self.process = subprocess.Popen(program + [sys.executable, sys.argv[0], "inside"],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __getattr__(self, name):
        def call(*args):
            self.process.stdin.write(json.dumps([name, *args]) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError(f"it ended in {name}{args}: {self.process.wait()}")
            return json.loads(line)
        return call

    def end(self):
        """Its exit status."""
        self.process.stdin.close()
        return self.process.wait(timeout=60)


def real(inside, pcis):
    """Bytes of the process on each GPU, as others report them."""
    simulated = inside.simulated()
    return simulated if simulated is not None else [nvml.used(pci) for pci in pcis]


def balanced(inside, pcis, what):
    """On each GPU the charge is never less than the real use, and not much more."""
    for device in (0, 1):
        inside.info(device)
    there = real(inside, pcis)
    told = [charged(pci) for pci in pcis]
    return ok(all(h <= t <= h + SPARE for h, t in zip(there, told)),
              f"{what}: charged for {told[0] // MIB} and {told[1] // MIB} MiB, there are "
              f"{there[0] // MIB} and {there[1] // MIB}")


def fill(inside, device, piece):
    """Allocates pieces until it fails: their number, and the error."""
    nr = error = 0
    while not error and nr < 1000:
        error = inside.alloc(device, piece)
        nr += not error
    return nr, error


def fills(inside, pcis):
    """Each up to its quota, independent of the other."""
    full = []
    for device in (0, 1):
        nr, error = fill(inside, device, 256 * MIB)
        full.append(nr)
        ok(26 <= nr <= 31 and error == OUT_OF_MEMORY,
           f"GPU {device}: {nr} of 256 MiB, then error {error}")
        there = real(inside, pcis)
        ok(there[device] <= QUOTA and (device or there[1] < GIB),
           f"GPU {device} has {there[device] // MIB} MiB, the other {there[1 - device] // MIB}")
    balanced(inside, pcis, "both full")
    inside.free(0)
    free = [inside.info(device)[1] for device in (0, 1)]
    ok(free[0] > 6 * GIB and free[1] < 256 * MIB,
       f"freed on GPU 0: {free[0] // MIB} MiB free there, {free[1] // MIB} on GPU 1")
    nr, error = fill(inside, 0, 256 * MIB)
    ok(nr == full[0], f"and {nr} again")
    inside.free(0)
    inside.free(1)
    balanced(inside, pcis, "all freed")


def others(inside, pcis):
    """Memory of the GPU that does not belong to the current context."""
    before = [charged(pci) for pci in pcis]
    error, handle = inside.create(0, 1, GIB)
    now = [charged(pci) for pci in pcis]
    ok(not error and now[0] == before[0] and now[1] == before[1] + GIB,
       f"cuMemCreate on GPU 1 while 0 is current: {(now[0] - before[0]) // MIB} and "
       f"{(now[1] - before[1]) // MIB} MiB more, error {error}")
    ok(inside.create(0, 1, QUOTA)[0] == OUT_OF_MEMORY, "8 GiB more there are out of memory")
    reach = [0, 1] if inside.simulated() or inside.can_peer(0, 1) else [1]
    error = inside.map(handle, GIB, reach)
    ok(not error and [charged(pci) for pci in pcis] == now,
       f"mapped for GPUs {reach} it is counted once, error {error}")
    balanced(inside, pcis, "mapped")
    inside.unmap()
    balanced(inside, pcis, "unmapped")
    error = inside.pool(0, 1, GIB)
    now = [charged(pci) for pci in pcis]
    ok(not error and now[0] < before[0] + SPARE and before[1] + GIB <= now[1] <= QUOTA,
       f"out of a pool of GPU 1 in a stream of 0: {(now[0] - before[0]) // MIB} and "
       f"{(now[1] - before[1]) // MIB} MiB more, error {error}")
    inside.pool_end()
    balanced(inside, pcis, "without the pool")


def peers(inside, pcis):
    """Peer access does not charge the other GPU."""
    if not inside.can_peer(0, 1):
        print("skip - these GPUs cannot reach each other's memory")
        return
    inside.alloc(0, GIB)
    inside.alloc(1, GIB)
    ok(inside.peer(0, 1) == 0 and inside.peer(1, 0) == 0, "each may reach the other's memory")
    ok(inside.copy(0, 1, GIB) == 0 and inside.copy(1, 0, GIB) == 0, "1 GiB there and back")
    balanced(inside, pcis, "after peer copies")
    ok(fill(inside, 1, 256 * MIB)[1] == OUT_OF_MEMORY and inside.alloc(0, 2 * GIB) == 0,
       "GPU 1 is full, and GPU 0 gives 2 GiB")
    balanced(inside, pcis, "after that")
    inside.free(0)
    inside.free(1)


def one_alone(inside, pcis):
    """A quota of one GPU is changed, and the other's stays."""
    done = gpupart("set", os.environ["TENANT"], "--mem", "3G", "--gpu", pcis[1])["quotas"]
    ok([q["gpu"] for q in done] == [pcis[1]] and done[0]["quota_bytes"] == 3 * GIB,
       "gpupart set --mem 3G --gpu: GPU 1 alone")
    ok([rows()[pci]["quota_bytes"] for pci in pcis] == [QUOTA, 3 * GIB], "ps shows 8 and 3 GiB")
    ok([inside.total(device) // GIB for device in (0, 1)] == [8, 3] and
       [inside.info(device)[2] // GIB for device in (0, 1)] == [8, 3], "the program sees it")
    nr = [fill(inside, device, 256 * MIB)[0] for device in (1, 0)]
    ok(6 <= nr[0] <= 11 and 26 <= nr[1] <= 31, f"{nr[0]} of 256 MiB fit there, {nr[1]} on GPU 0")
    balanced(inside, pcis, "both full again")


def each(program):
    """One process on both."""
    inside = Inside(program)
    pcis = inside.begin()
    if len(pcis) < 2:
        print(f"skip - {len(pcis)} GPU here: two are wanted")
        return
    pcis = pcis[:2]
    if inside.simulated() is None:
        for pci in pcis:
            nvml.begin(pci)
    ok(not inside.context(0) and not inside.context(1), "a context on each GPU")
    balanced(inside, pcis, "two contexts")
    ok([inside.total(device) for device in (0, 1)] == [QUOTA, QUOTA] and
       [inside.info(device)[2] for device in (0, 1)] == [QUOTA, QUOTA],
       "each is reported with 8 GiB")
    fills(inside, pcis)
    others(inside, pcis)
    peers(inside, pcis)
    one_alone(inside, pcis)
    ok(inside.destroy(0) == 0, "GPU 0's context goes")
    ok(charged(pcis[0]) <= SPARE < charged(pcis[1]), f"with its account: {charged(pcis[0]) // MIB} "
       f"MiB are left, {charged(pcis[1]) // MIB} on GPU 1")
    processes = [p for row in rows().values() for p in row["processes"]]
    ok(processes and not any(p["uncounted_calls"] for p in processes),
       "no call got what is not counted")
    ok(inside.end() == 0, "it ends")
    ok(not any(row["used_bytes"] for row in rows().values()), "and nothing is left")


# ------------------------------------------------------------------------------- inside

class Calls:
    """The driver's functions, called on request: the first return value of each is the error."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.contexts = {}
        self.held = {0: [], 1: []}
        self.mapped = self.got = None

    def begin(self):
        """The addresses of all GPUs."""
        count = ctypes.c_int()
        self.cuda.cuInit(0)
        self.cuda.cuDeviceGetCount(byref(count))
        text = ctypes.create_string_buffer(32)
        found = []
        for device in range(count.value):
            self.cuda.cuDeviceGetPCIBusId(text, 32, device)
            found.append(text.value.decode().lower())
        return found

    def simulated(self):
        """The simulated driver's figures for this process on each GPU; None for a real driver."""
        if not hasattr(self.cuda, "gpupart_sim_memory"):
            return None
        own, everything = u64(), u64()
        found = []
        for device in (0, 1):
            self.cuda.gpupart_sim_memory(device, byref(own), byref(everything))
            found.append(own.value)
        return found

    def context(self, device):
        self.contexts[device] = ctypes.c_void_p()
        return self.cuda.cuCtxCreate_v2(byref(self.contexts[device]), 0, device)

    def destroy(self, device):
        self.held[device] = []
        return self.cuda.cuCtxDestroy_v2(self.contexts.pop(device))

    def current(self, device):
        self.cuda.cuCtxSetCurrent(self.contexts[device])

    def alloc(self, device, size):
        self.current(device)
        address = u64()
        error = self.cuda.cuMemAlloc_v2(byref(address), ctypes.c_size_t(size))
        if not error:
            self.held[device].append(address)
        return error

    def free(self, device):
        self.current(device)
        while self.held[device]:
            self.cuda.cuMemFree_v2(self.held[device].pop())

    def info(self, device):
        self.current(device)
        free, total = u64(), u64()
        return self.cuda.cuMemGetInfo_v2(byref(free), byref(total)), free.value, total.value

    def total(self, device):
        total = u64()
        self.cuda.cuDeviceTotalMem_v2(byref(total), device)
        return total.value

    @staticmethod
    def properties(device):
        """CUmemAllocationProp and CUmemPoolProps: pinned memory of a device, no handles."""
        words = (ctypes.c_int * 32)()
        words[0] = 1
        words[2], words[3] = 1, device
        return words

    def create(self, current, device, size):
        self.current(current)
        handle = u64()
        error = self.cuda.cuMemCreate(byref(handle), ctypes.c_size_t(size),
                                      self.properties(device), u64(0))
        return error, handle.value

    def map(self, handle, size, devices):
        """Releases the handle: the mapping keeps the memory."""
        address = u64()
        access = (ctypes.c_int * (3 * len(devices)))()
        for i, device in enumerate(devices):
            access[3 * i], access[3 * i + 1], access[3 * i + 2] = 1, device, 3
        size = ctypes.c_size_t(size)
        error = self.cuda.cuMemAddressReserve(byref(address), size, ctypes.c_size_t(0), u64(0),
                                              u64(0)) or \
            self.cuda.cuMemMap(address, size, ctypes.c_size_t(0), u64(handle), u64(0)) or \
            self.cuda.cuMemSetAccess(address, size, access, ctypes.c_size_t(len(devices)))
        self.cuda.cuMemRelease(u64(handle))
        self.mapped = address, size
        return error

    def unmap(self):
        self.cuda.cuMemUnmap(*self.mapped)
        self.cuda.cuMemAddressFree(*self.mapped)

    def pool(self, current, device, size):
        self.current(current)
        pool, stream, address = ctypes.c_void_p(), ctypes.c_void_p(), u64()
        error = self.cuda.cuStreamCreate(byref(stream), 1) or \
            self.cuda.cuMemPoolCreate(byref(pool), self.properties(device)) or \
            self.cuda.cuMemAllocFromPoolAsync(byref(address), ctypes.c_size_t(size), pool, stream)
        self.got = pool, stream, address
        return error

    def pool_end(self):
        pool, stream, address = self.got
        return self.cuda.cuMemFreeAsync(address, stream) or \
            self.cuda.cuStreamSynchronize(stream) or self.cuda.cuMemPoolDestroy(pool) or \
            self.cuda.cuStreamDestroy_v2(stream)

    def can_peer(self, device, peer):
        can = ctypes.c_int()
        return hasattr(self.cuda, "cuDeviceCanAccessPeer") and \
            not self.cuda.cuDeviceCanAccessPeer(byref(can), device, peer) and bool(can.value)

    def peer(self, device, peer):
        self.current(device)
        return self.cuda.cuCtxEnablePeerAccess(self.contexts[peer], 0)

    def copy(self, to, source, size):
        return self.cuda.cuMemcpyPeer(self.held[to][0], self.contexts[to], self.held[source][0],
                                      self.contexts[source], ctypes.c_size_t(size)) or \
            self.cuda.cuCtxSynchronize()


def serve(calls):
    """Runs until stdin ends."""
    for line in sys.stdin:
        name, *args = json.loads(line)
        print(json.dumps(getattr(calls, name)(*args)), flush=True)


# --------------------------------------------------------------------------------- NCCL

def rank(number, port):
    """Reports each step on stdout, and continues when a line arrives."""
    import torch
    import torch.distributed as dist

    def step(**what):
        print(json.dumps(what), flush=True)
        sys.stdin.readline()

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    torch.cuda.set_device(number)
    dist.init_process_group("nccl", rank=number, world_size=2)
    x = torch.full((64 << 20,), float(number + 1), device="cuda")
    dist.all_reduce(x)
    for _ in range(10):
        dist.all_reduce(x, op=dist.ReduceOp.MAX)
    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    bus = torch.cuda.get_device_properties(number)
    step(sum=float(x[12345]), free=free, total=total,
         pci="%04x:%02x:%02x.0" % (bus.pci_domain_id, bus.pci_bus_id, bus.pci_device_id))
    words, held = "it never failed", []
    try:
        while number == 0 and len(held) < 100:
            held.append(torch.empty(256 << 20, dtype=torch.uint8, device="cuda"))
    except torch.OutOfMemoryError as e:
        words = str(e).splitlines()[0]
    torch.cuda.mem_get_info()
    step(nr=len(held), words=words)
    del held
    torch.cuda.empty_cache()
    dist.all_reduce(x, op=dist.ReduceOp.SUM)
    torch.cuda.synchronize()
    step(sum=float(x[54321]))
    dist.destroy_process_group()


def answers(processes, go):
    """The next report of each rank; @go: after a command to continue."""
    for process in processes if go else []:
        process.stdin.write("\n")
        process.stdin.flush()
    said = []
    for process in processes:
        line = process.stdout.readline()
        while line and not line.startswith("{"):  # output of a library
            line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"a rank ended: {[p.poll() for p in processes]}")
        said.append(json.loads(line))
    return said


def seen(pcis, what):
    """From outside: the charge on each GPU, and its memory in use."""
    told = [charged(pci) for pci in pcis]
    there = [nvml.taken(pci) for pci in pcis]
    each_had = [nvml.used(pci) // MIB for pci in pcis]
    ok(all(0 < h <= t <= min(h + 2 * SPARE, QUOTA) for h, t in zip(there, told)),
       f"{what}: charged for {told[0] // MIB} and {told[1] // MIB} MiB, by NVML the GPUs have "
       f"{there[0] // MIB} and {there[1] // MIB} more, their processes {each_had}")


def ranks(program):
    """Two processes of one tenant."""
    port = str(20000 + os.getpid() % 10000)
    found = gpus()[:2]
    for pci in found:
        nvml.begin(pci)
    processes = [subprocess.Popen(program + ["--gpu", pci, "--", sys.executable, __file__, "rank",
                                             str(n), port],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
                 for n, pci in enumerate(found)]
    try:
        first = answers(processes, False)
        pcis = [said["pci"] for said in first]
        ok([said["sum"] for said in first] == [3.0, 3.0], "all_reduce of 256 MiB by NCCL is right")
        ok(len(set(pcis)) == 2 and [said["total"] for said in first] == [QUOTA, QUOTA],
           f"a GPU each, told of as 8 GiB; free {[said['free'] // MIB for said in first]} MiB")
        seen(pcis, "two ranks")
        second = answers(processes, True)
        ok(15 <= second[0]["nr"] <= 31 and "out of memory" in second[0]["words"],
           f"rank 0 gets {second[0]['nr']} of 256 MiB more, then: {second[0]['words'][:80]}")
        seen(pcis, "rank 0 full")
        third = answers(processes, True)
        ok([said["sum"] for said in third] == [6.0, 6.0], "they go on to reduce after that")
        for process in processes:
            process.stdin.write("\n")
            process.stdin.close()
        ok([process.wait(timeout=60) for process in processes] == [0, 0], "both end")
        ok(not any(row["used_bytes"] for row in rows().values()), "and nothing is left")
    finally:
        for process in processes:
            process.kill()
            process.wait()


def gpus():
    """Addresses of all GPUs, from a separate process: this one must not use CUDA."""
    inside = Inside([])
    found = inside.begin()
    inside.end()
    return found


if __name__ == "__main__":
    nvml = Nvml()
    if sys.argv[1] == "each":
        each(sys.argv[2:])
    elif sys.argv[1] == "inside":
        serve(Calls())
    elif sys.argv[1] == "gpus":
        print(*gpus())
    elif sys.argv[1] == "ranks":
        ranks(sys.argv[2:])
    else:
        rank(int(sys.argv[2]), sys.argv[3])
