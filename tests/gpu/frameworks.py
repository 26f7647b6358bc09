# SPDX-License-Identifier: MIT
"""Run by tests/gpu/frameworks.sh inside `gpupart run`: unmodified PyTorch, one case at a time.

frameworks.py CASE: runs it and prints lines "ok - ..." and "not ok - ...". The injected library
counts launches; a Triton kernel records the SMs of its own blocks, before, during and after those
of the case.
"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))

import gpupart  # noqa: E402  (to read this process's state page: nothing is attached)
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
import triton  # noqa: E402
import triton.language as tl  # noqa: E402


@triton.jit
def census(out, n: tl.constexpr):
    sm = tl.inline_asm_elementwise("mov.u32 $0, %smid;", "=r", [], dtype=tl.int32,
                                   is_pure=False, pack=1)
    tl.atomic_add(out + sm, 1)


failed = False


def ok(good, words):
    global failed
    failed = failed or not good
    print(("ok" if good else "not ok"), "-", words, flush=True)


def own():
    """This process's state page, from the injected library."""
    return next(p for p in gpupart.processes() if p.pid == os.getpid())


def allowed():
    topology = gpupart.Topology.open("rm", own().pci)
    return {sm for tpc in own().limit for sm in topology.tpcs[tpc].sms}


def witness(histogram):
    """In a separate stream, so that it runs at the same time as the case."""
    with torch.cuda.stream(torch.cuda.Stream()):
        for _ in range(8):
            census[(2048,)](histogram, 0)


def case(name, work, least, times=5):
    histogram = torch.zeros(256, dtype=torch.int32, device="cuda")
    work()                      # loads and tunes at the first call
    torch.cuda.synchronize()
    before = own().counters
    witness(histogram)
    for _ in range(times):
        result = work()
    witness(histogram)
    torch.cuda.synchronize()
    after = own().counters
    launches = after.launches - before.launches
    confined = after.confined - before.confined
    widened = after.widened_cooperative - before.widened_cooperative
    sms = {i for i, n in enumerate(histogram.tolist()) if n}
    good = torch.isfinite(result.float()).all().item()
    ok(launches >= least + 16 and confined + widened == launches and after.graphs_stale == 0 and
       sms == allowed() and good,
       f"{name}: {launches} launches, {confined} confined, {widened} widened for a cooperative "
       f"grid, {after.graphs_stale} stale graphs; a witness saw {len(sms)} SMs")


def eager():
    x = torch.randn(1 << 20, device="cuda")
    case("eager", lambda: torch.relu(x * 2 + 1).sum(), 15)


def compiled():
    model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.GELU(),
                                torch.nn.Linear(512, 512)).cuda()
    fast = torch.compile(model)
    x = torch.randn(256, 512, device="cuda")
    with torch.no_grad():
        case("torch.compile", lambda: fast(x), 15)
        fast = torch.compile(model, mode="reduce-overhead")
        fast(x)
        fast(x)
        case("torch.compile with graphs", lambda: fast(x).clone(), 0)


def graphs():
    model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU()).cuda()
    x = torch.randn(256, 512, device="cuda")
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            model(x)
    torch.cuda.synchronize()
    histogram = torch.zeros(256, dtype=torch.int32, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = model(x)
        census[(2048,)](histogram, 0)
        y = y * 2

    def replay():
        graph.replay()
        return y
    case("CUDA graph", replay, 0)
    histogram.zero_()
    graph.replay()
    torch.cuda.synchronize()
    sms = {i for i, n in enumerate(histogram.tolist()) if n}
    ok(sms == allowed(), f"CUDA graph: its own nodes saw {len(sms)} SMs")
    graphed = torch.cuda.make_graphed_callables(model, (x.clone().requires_grad_(),))
    case("make_graphed_callables, and back", lambda: _backward(graphed(x)), 0)


def _backward(y):
    y.sum().backward()
    return y


def cublas():
    for dtype in (torch.bfloat16, torch.float32, torch.float64):
        a = torch.randn(4096, 4096, device="cuda", dtype=dtype)
        case(f"cuBLAS {dtype}", lambda: a @ a, 5)  # noqa: B023
    b = torch.randn(32, 512, 512, device="cuda", dtype=torch.bfloat16)
    case("cuBLAS batched", lambda: torch.bmm(b, b), 5)


def cudnn():
    x = torch.randn(16, 64, 56, 56, device="cuda", dtype=torch.float16)
    w = torch.randn(64, 64, 3, 3, device="cuda", dtype=torch.float16)
    case("cuDNN convolution", lambda: F.conv2d(x, w, padding=1), 5)
    rnn = torch.nn.LSTM(256, 256, 2).cuda()
    steps = torch.randn(32, 16, 256, device="cuda")
    with torch.no_grad():
        case("cuDNN LSTM", lambda: rnn(steps)[0], 5)


def attention():
    from torch.nn.attention import SDPBackend, sdpa_kernel
    q = torch.randn(4, 16, 1024, 64, device="cuda", dtype=torch.bfloat16)
    for backend in (SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH,
                    SDPBackend.CUDNN_ATTENTION):
        with sdpa_kernel(backend):
            case(f"attention, {backend.name}",
                 lambda: F.scaled_dot_product_attention(q, q, q, is_causal=True), 5)


def nccl():
    import torch.distributed as dist
    rank = int(os.environ["RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
    world = dist.get_world_size()
    x = torch.ones(1 << 24, device="cuda")
    parts = [torch.empty_like(x) for _ in range(world)]

    def reduce():
        y = x * (rank + 1)
        dist.all_reduce(y)
        return y

    def gather():
        dist.all_gather(parts, x * (rank + 1))
        return parts[world - 1]
    case(f"NCCL all_reduce, rank {rank}", reduce, 10)
    ok(bool((reduce() == world * (world + 1) / 2).all()), f"NCCL all_reduce is right, rank {rank}")
    case(f"NCCL all_gather, rank {rank}", gather, 10)
    ok(bool((gather() == world).all()), f"NCCL all_gather is right, rank {rank}")

    from torch.cuda.green_contexts import GreenContext
    from sms import seen
    green = GreenContext.create(num_sms=32, device_id=rank)
    a = torch.ones(1024, 1024, device="cuda")
    products = []
    torch.cuda.synchronize()

    def beside():
        """A product in a green context while NCCL reduces."""
        y = x * (rank + 1)
        reducing = dist.all_reduce(y, async_op=True)
        green.set_context()
        products.append(a @ a)
        green.pop_context()
        reducing.wait()
        return y
    case(f"NCCL beside a green context, rank {rank}", beside, 15)
    y = beside()
    torch.cuda.synchronize()
    ok(bool((y == world * (world + 1) / 2).all()) and all((p == 1024).all() for p in products),
       f"both are right, rank {rank}")
    green.set_context()
    part = seen()
    green.pop_context()
    ok(part < allowed(), f"the context has {len(part)} SMs of the limit's, rank {rank}")
    dist.destroy_process_group()


if __name__ == "__main__":
    {f.__name__: f for f in (eager, compiled, graphs, cublas, cudnn, attention,
                             nccl)}[sys.argv[1]]()
    sys.exit(failed)
