# SPDX-License-Identifier: MIT
"""Run by tests/gpu/sm_count.sh inside `gpupart run`, with --sm-count and without.

sm_count.py CASE: the numbers of SMs that programs see, and their effects. Prints lines "ok -
...", "not ok - ...", "skip - ..." and "# ...". The expected values follow from the limit of this
process and its GPU's topology.
"""
import ctypes
import os
import sys
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))

import gpupart  # noqa: E402  (to read this process's state page: nothing is attached)

told = os.environ.get("GPUPART_SM_COUNT") == "1"
failed = False


def ok(good, words):
    global failed
    failed = failed or not good
    print(("ok" if good else "not ok"), "-", words, flush=True)


def note(words):
    print("#", words, flush=True)


def own():
    """This process's state page, from the injected library."""
    return next(p for p in gpupart.processes() if p.pid == os.getpid())


def topology(pci):
    simulated = os.environ.get("GPUPART_SIM")
    return gpupart.Topology.open(simulated) if simulated else gpupart.Topology.open("rm", pci)


def part():
    """The TPCs of the limit, from the topology."""
    return [topology(own().pci).tpcs[tpc] for tpc in own().limit]


def sms():
    """The number of SMs that a program should see on the GPU of the limit."""
    whole = topology(own().pci)
    tpcs = part() if told else [whole.tpcs[tpc] for tpc in range(whole.nr_tpcs)]
    return sum(len(tpc.sms) for tpc in tpcs)


# ------------------------------------------------------------------ the driver, by ctypes

PTX = b"""
.version 7.0
.target sm_70
.address_size 64
.visible .entry nothing()
{
	ret;
}
// Each block adds one and waits for all; after 2 s it gives up and says so.
.visible .entry barrier(.param .u64 counter, .param .u32 blocks, .param .u64 given_up)
{
	.reg .pred	%p<4>;
	.reg .u32	%r<6>;
	.reg .u64	%rd<8>;

	ld.param.u64	%rd1, [counter];
	cvta.to.global.u64	%rd1, %rd1;
	ld.param.u32	%r1, [blocks];
	ld.param.u64	%rd2, [given_up];
	cvta.to.global.u64	%rd2, %rd2;
	mov.u32	%r2, %tid.x;
	setp.ne.u32	%p1, %r2, 0;
	@%p1 bra	DONE;
	atom.global.add.u32	%r3, [%rd1], 1;
	mov.u64	%rd3, %globaltimer;
WAIT:
	ld.volatile.global.u32	%r4, [%rd1];
	setp.ge.u32	%p2, %r4, %r1;
	@%p2 bra	DONE;
	mov.u64	%rd4, %globaltimer;
	sub.u64	%rd5, %rd4, %rd3;
	setp.lt.u64	%p3, %rd5, 2000000000;
	@%p3 bra	WAIT;
	atom.global.add.u32	%r5, [%rd2], 1;
DONE:
	ret;
}
"""

cuda = None
SHARED = 200000     # one block per SM


class Attribute(ctypes.Structure):
    _fields_ = [("id", ctypes.c_int), ("pad", ctypes.c_int), ("dim", ctypes.c_uint * 16)]


class Config(ctypes.Structure):
    _fields_ = [("grid", ctypes.c_uint * 3), ("block", ctypes.c_uint * 3),
                ("shared", ctypes.c_uint), ("stream", ctypes.c_void_p),
                ("attributes", ctypes.POINTER(Attribute)), ("nr", ctypes.c_uint)]


def call(name, *args):
    result = getattr(cuda, name)(*args)
    if result:
        sys.exit(f"{name}: {result}")


def integer(name, *args):
    """The int that a function stores where its first argument points."""
    value = ctypes.c_int(-1)
    call(name, ctypes.byref(value), *args)
    return value.value


def start():
    """The primary context of the limit's GPU, and the kernels above as functions by name."""
    global cuda
    cuda = ctypes.CDLL("libcuda.so.1")
    call("cuInit", 0)
    device, ctx, module = device_of(own().pci), ctypes.c_void_p(), ctypes.c_void_p()
    call("cuDevicePrimaryCtxRetain", ctypes.byref(ctx), device)
    call("cuCtxSetCurrent", ctx)
    call("cuModuleLoadData", ctypes.byref(module), PTX)
    functions = {}
    for name in ("nothing", "barrier"):
        functions[name] = ctypes.c_void_p()
        call("cuModuleGetFunction", ctypes.byref(functions[name]), module, name.encode())
        call("cuFuncSetAttribute", functions[name], 8, SHARED)
    return device, ctx, functions


def pci_of(device):
    text = ctypes.create_string_buffer(32)
    call("cuDeviceGetPCIBusId", text, 32, device)
    return text.value.decode().lower()


def device_of(pci):
    return next(d for d in range(integer("cuDeviceGetCount")) if pci_of(d) == pci)


def sms_by_pointer(device):
    """Calls the pointer from cuGetProcAddress, like the runtime."""
    function, status = ctypes.c_void_p(), ctypes.c_int()
    call("cuGetProcAddress_v2", b"cuDeviceGetAttribute", ctypes.byref(function), 12000,
         ctypes.c_uint64(0), ctypes.byref(status))
    value = ctypes.c_int()
    ask = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_int)
    ask(function.value)(ctypes.addressof(value), 16, device)
    return value.value


def unit(nr, whole):
    """The driver splits a GPU in units of 8 SMs."""
    return nr if nr == whole or nr < 8 else nr // 8 * 8


def resource(name, of):
    room = (ctypes.c_uint * 256)()
    call(name, of, room, 1)
    return room[24]     # byte 96


RESOURCE = ctypes.c_uint * 36       # a CUdevResource; SMs in byte 96


def parts_by(library, prefix, device):
    """From the driver or the runtime: SMs of a GPU, of its parts of 8 SMs and of the remainder, and
    the same for two requested parts; None if that function does not exist."""
    def named(name):
        return getattr(library, prefix + name)
    whole, rest, parts, nr = RESOURCE(), RESOURCE(), (RESOURCE * 32)(), ctypes.c_uint(32)
    failed = (named("DeviceGetDevResource")(device, whole, 1) or
              named("DevSmResourceSplitByCount")(parts, ctypes.byref(nr), whole, rest, 0, 8))
    if failed:
        return failed
    answers = [whole[24], [part[24] for part in parts[:nr.value]], rest[24]]
    asked = (ctypes.c_uint * 16 * 2)((8, 2), (8, 2))     # SMs, SMs that share a GPC
    try:
        failed = named("DevSmResourceSplit")(parts, 2, whole, rest, 0, asked)
    except AttributeError:
        return answers + [None]
    return answers + [failed or [part[24] for part in parts[:2]] + [rest[24]]]


def parts_by_bindings(runtime, device):
    """The same with the runtime that cuda.bindings contains."""
    failed, whole = runtime.cudaDeviceGetDevResource(
        device, runtime.cudaDevResourceType.cudaDevResourceTypeSm)
    if failed:
        return int(failed)
    failed, parts, nr, rest = runtime.cudaDevSmResourceSplitByCount(32, whole, 0, 8)
    if failed:
        return int(failed)
    answers = [whole.sm.smCount, [part.sm.smCount for part in parts[:nr]], rest.sm.smCount]
    asked = [runtime.cudaDevSmResourceGroupParams() for _ in range(2)]
    for one in asked:
        one.smCount, one.coscheduledSmCount = 8, 2
    failed, parts, rest = runtime.cudaDevSmResourceSplit(2, whole, 0, asked)
    return answers + [int(failed) or [part.sm.smCount for part in parts] + [rest.sm.smCount]]


def grid(function, shared):
    """The launch that fills the GPU: number and size of blocks."""
    blocks, size = ctypes.c_int(), ctypes.c_int()
    call("cuOccupancyMaxPotentialBlockSize", ctypes.byref(blocks), ctypes.byref(size), function,
         None, ctypes.c_size_t(shared), 0)
    return blocks.value, size.value


def per_sm(function, size, shared):
    return integer("cuOccupancyMaxActiveBlocksPerMultiprocessor", function, size,
                   ctypes.c_size_t(shared))


def clusters(function, size):
    attribute = Attribute(id=4)
    attribute.dim[:3] = [size, 1, 1]
    config = Config(block=(32, 1, 1), grid=(size, 1, 1), shared=SHARED,
                    attributes=ctypes.pointer(attribute), nr=1)
    return integer("cuOccupancyMaxActiveClusters", function, ctypes.byref(config))


def vgpcs():
    """The SMs of each virtual GPC that the program should see."""
    whole = topology(own().pci)
    sizes = {}
    for tpc in part() if told else [whole.tpcs[tpc] for tpc in range(whole.nr_tpcs)]:
        sizes[tpc.vgpc] = sizes.get(tpc.vgpc, 0) + len(tpc.sms)
    return sizes.values()


def driver():
    device, ctx, functions = start()
    want = sms()
    for number in range(integer("cuDeviceGetCount")):
        pci = pci_of(number)
        right = want if number == device else topology(pci).nr_sms
        got = integer("cuDeviceGetAttribute", 16, number)
        ok(got == right == sms_by_pointer(number) and
           resource("cuDeviceGetDevResource", number) == unit(right, topology(pci).nr_sms),
           f"driver: device {number} is {pci}: {got} SMs, {right} are right")
    affinity = (ctypes.c_uint * 2)()
    has = cuda.cuCtxGetExecAffinity(affinity, 0) == 0
    right = unit(want, topology(own().pci).nr_sms)
    ok(resource("cuCtxGetDevResource", ctx) == right and (not has or affinity[1] == want),
       f"driver: its context: {resource('cuCtxGetDevResource', ctx)} SMs, affinity "
       f"{affinity[1] if has else 'not told'}")
    for shared in (0, 100000, SHARED):
        blocks, size = grid(functions["nothing"], shared)
        held = per_sm(functions["nothing"], size, shared)
        ok(blocks == held * want,
           f"driver: the grid with {shared} bytes: {blocks} blocks, {held} an SM")
    call("cuFuncSetAttribute", functions["nothing"], 14, 1)
    numbers = {size: clusters(functions["nothing"], size) for size in (1, 2, 4, 8, 16)}
    room = {size: sum(n // size for n in vgpcs()) for size in numbers}
    ok(all(numbers[s] <= room[s] for s in numbers) and numbers[1] > 0,
       f"driver: clusters by size {numbers}, by the virtual GPCs {room}")
    config = Config(block=(32, 1, 1), grid=(1, 1, 1), shared=SHARED)
    largest = integer("cuOccupancyMaxPotentialClusterSize", functions["nothing"],
                      ctypes.byref(config))
    ok(1 <= largest <= max(vgpcs()) and largest & (largest - 1) == 0,
       f"driver: the largest cluster: {largest}, a virtual GPC has up to {max(vgpcs())} SMs")


def cooperative():
    """A grid of the reported maximum size: with the true number it is widened."""
    _, _, functions = start()
    for shared in (0, 100000, SHARED):
        blocks, size = grid(functions["nothing"], shared)
        before = own().counters
        call("cuLaunchCooperativeKernel", functions["nothing"], blocks, 1, 1, size, 1, 1, shared,
             None, None)
        call("cuCtxSynchronize")
        after = own().counters
        widened = after.widened_cooperative - before.widened_cooperative
        confined = after.confined - before.confined
        ok((confined, widened) == ((1, 0) if told else (0, 1)),
           f"a cooperative grid of {blocks} blocks of {size}, {shared} bytes: {confined} confined, "
           f"{widened} widened")


def barrier():
    """The program's own grid barrier in an ordinary grid: may hang without --sm-count."""
    if not told:
        sys.exit("never without --sm-count: it would not end")
    device, _, functions = start()
    blocks = integer("cuDeviceGetAttribute", 16, device)
    memory = ctypes.c_uint64()
    call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(8))
    call("cuMemsetD8_v2", memory, 0, ctypes.c_size_t(8))
    args = [memory, ctypes.c_uint(blocks), ctypes.c_uint64(memory.value + 4)]
    params = (ctypes.c_void_p * 3)(*(ctypes.addressof(arg) for arg in args))
    call("cuLaunchKernel", functions["barrier"], blocks, 1, 1, 32, 1, 1, SHARED, None, params, None)
    call("cuCtxSynchronize")
    got = (ctypes.c_uint * 2)()
    call("cuMemcpyDtoH_v2", got, memory, ctypes.c_size_t(8))
    ok(list(got) == [blocks, 0],
       f"a barrier of the program's own, {blocks} blocks: {got[0]} came, {got[1]} gave up waiting")


def runtime():
    """cudaDevSmResourceSplit and its related functions (CUDA 13.1) answer like the driver."""
    device = start()[0]
    want = unit(sms(), topology(own().pci).nr_sms)
    right = parts_by(cuda, "cu", device)
    ok(isinstance(right, list) and right[0] == want and right[1] and set(right[1]) == {8} and
       sum(right[1]) + right[2] <= want and
       (not isinstance(right[3], list) or
        (min(right[3][:2]) >= 8 and sum(right[3]) <= want)),
       f"driver: {want} SMs are right; SMs, parts, rest, two parts and rest: {right}")
    found = {}
    for path in libraries("libcudart.so*"):
        library = ctypes.CDLL(path)
        if hasattr(library, "cudaDevSmResourceSplit"):
            found[path] = lambda library=library: parts_by(library, "cuda", device)
    try:
        from cuda.bindings import runtime as bindings
        if hasattr(bindings, "cudaDevSmResourceSplit"):
            found["cuda.bindings"] = lambda: parts_by_bindings(bindings, device)
    except ModuleNotFoundError:
        pass
    if not found:
        print("skip - no runtime of CUDA 13.1 or later here", flush=True)
    for name, answers in found.items():
        got = answers()
        if got == 36:       # cudaErrorCallRequiresNewerDriver
            print(f"skip - {name}: it wants a newer driver", flush=True)
        elif isinstance(got, list) and not isinstance(right[3], list):
            ok(got[:3] == right[:3], f"{name}: {got}; the driver parts by count alone")
        else:
            ok(got == right, f"{name}: {got}")


def libraries(pattern):
    """In the folders of NVIDIA's packages, and by the loader."""
    import glob
    found = [path for folder in sys.path
             for path in glob.glob(os.path.join(folder, "nvidia", "*", "lib", pattern))]
    for name in ("libcudart.so.13", "libcudart.so"):
        try:
            ctypes.CDLL(name)
            found.append(name)
        except OSError:
            pass
    return found


# --------------------------------------------------------------------------- frameworks

def loaded(word):
    """The path of a library that this process has loaded."""
    with open("/proc/self/maps", encoding="ascii", errors="replace") as maps:
        return next((line.split()[-1] for line in maps if word in line), None)


def told_torch():
    import torch
    number = torch.cuda.get_device_properties(device_index()).multi_processor_count
    ok(number == sms(), f"PyTorch {torch.__version__}: {number} SMs")
    path = loaded("libcudart.so")
    if path:
        value = ctypes.c_int()
        result = ctypes.CDLL(path).cudaDeviceGetAttribute(ctypes.byref(value), 16, device_index())
        ok(result == 0 and value.value == sms(), f"cudaDeviceGetAttribute: {value.value} SMs")
    else:
        print("skip - PyTorch has no libcudart.so of its own", flush=True)


def device_index():
    """CUDA's number of the GPU of the limit."""
    global cuda
    cuda = ctypes.CDLL("libcuda.so.1")
    call("cuInit", 0)
    return device_of(own().pci)


def told_triton():
    import torch
    import triton
    torch.cuda.set_device(device_index())
    utils = triton.runtime.driver.active.utils
    number = utils.get_device_properties(device_index())["multiprocessor_count"]
    ok(number == sms(), f"Triton {triton.__version__}: {number} SMs")


def told_cupy():
    import cupy
    device = device_index()
    by_attribute = cupy.cuda.Device(device).attributes["MultiProcessorCount"]
    by_property = cupy.cuda.runtime.getDeviceProperties(device)["multiProcessorCount"]
    ok(by_attribute == by_property == sms(),
       f"CuPy {cupy.__version__}: {by_attribute} SMs by attribute, {by_property} by property")


def told_jax():
    import jax
    number = jax.devices("gpu")[device_index()].core_count
    ok(number == sms(), f"JAX {jax.__version__}: {number} SMs")


# ------------------------------------------------------------------ effects, in figures

def best_ms(work):
    """The best of some short bursts: the first runs load and tune."""
    import torch
    for _ in range(3):
        work()
    best = float("inf")
    for _ in range(5):
        torch.cuda.synchronize()
        time.sleep(0.05)
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(3):
            work()
        end.record()
        torch.cuda.synchronize()
        best = min(best, begin.elapsed_time(end) / 3)
    return best


def widened(before):
    after = own().counters
    return (after.launches - before.launches, after.confined - before.confined,
            after.widened_cooperative + after.widened_cluster - before.widened_cooperative -
            before.widened_cluster)


def small_integers(n):
    """Few elements are not 0, so that all sums are exact in bfloat16 too, in any order."""
    import torch
    torch.manual_seed(1)
    return [(torch.randint(-1, 2, (n, n), device="cuda") *
             (torch.rand(n, n, device="cuda") < 0.25)).to(torch.bfloat16) for _ in range(2)]


def exact(x, y):
    """A few rows of the product in float64."""
    import torch
    return (x[:64].double() @ y.double()).to(torch.bfloat16)


def persistent():
    """A matrix product in Triton whose grid has one program for each reported SM."""
    import torch
    import triton
    from sm_count_kernels import matmul
    torch.cuda.set_device(device_index())
    n = 8192
    x, y = small_integers(n)
    z = torch.empty_like(x)
    number = torch.cuda.get_device_properties(device_index()).multi_processor_count
    before = own().counters

    def work():
        matmul[(number,)](x, y, z, n, 128, 128, 64, num_warps=8, num_stages=3)
    ms = best_ms(work)
    launches, confined, _ = widened(before)
    ok(torch.equal(z[:64], exact(x, y)) and launches == confined,
       f"a persistent product of {number} programs is right: {confined} of {launches} launches "
       "confined")
    note(f"Triton {triton.__version__}, persistent bf16 {n}^3, {number} programs: {ms:.2f} ms, "
         f"{2 * n ** 3 / ms / 1e9:.1f} TFLOP/s")


def cublas():
    import torch
    torch.cuda.set_device(device_index())
    n = 8192
    x, y = small_integers(n)
    before = own().counters
    ms = best_ms(lambda: x @ y)
    launches, confined, wide = widened(before)
    ok(torch.equal((x @ y)[:64], exact(x, y)) and confined + wide == launches,
       f"cuBLAS is right: {launches} launches, {confined} confined, {wide} widened")
    note(f"cuBLAS bf16 {n}^3: {ms:.2f} ms, {2 * n ** 3 / ms / 1e9:.1f} TFLOP/s")


def attention():
    import torch
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel
    torch.cuda.set_device(device_index())
    torch.manual_seed(1)
    for batch, heads, length in ((4, 32, 4096), (1, 4, 8192)):
        q, k, v = (torch.randn(batch, heads, length, 128, device="cuda", dtype=torch.bfloat16)
                   for _ in range(3))
        before = own().counters
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            ms = best_ms(lambda: F.scaled_dot_product_attention(q, k, v))  # noqa: B023
            got = F.scaled_dot_product_attention(q, k, v)
        launches, confined, wide = widened(before)
        # One head, in float32.
        scores = torch.softmax(q[0, 0].float() @ k[0, 0].float().T / 128 ** 0.5, dim=-1)
        off = (scores @ v[0, 0].float() - got[0, 0].float()).abs().max().item()
        ok(off < 0.01 and confined + wide == launches,
           f"flash attention, {batch} times {heads} heads of {length}: off by {off:.4f}; "
           f"{launches} launches, {confined} confined, {wide} widened")
        note(f"flash attention {batch}x{heads}x{length}x128: {ms:.2f} ms, "
             f"{4 * batch * heads * length ** 2 * 128 / ms / 1e9:.1f} TFLOP/s")


CASES = {f.__name__: f for f in (driver, runtime, cooperative, barrier, told_torch, told_triton,
                                 told_cupy, told_jax, persistent, cublas, attention)}

if __name__ == "__main__":
    try:
        CASES[sys.argv[1]]()
    except ModuleNotFoundError as error:
        print(f"skip - no {error.name} here", flush=True)
    sys.exit(failed)
