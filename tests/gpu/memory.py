# SPDX-License-Identifier: MIT
"""Programs that do not use gpupart, inside a memory quota of 8 GiB.

Tests the values reported to them, how they fail, and that they continue. One case per process;
memory.sh runs them.
"""
import os
import sys
import time

GIB = 1 << 30
QUOTA = 8 * GIB


def ok(good, what):
    """One check."""
    print(("ok - " if good else "not ok - ") + what, flush=True)


def fill_torch(torch):
    """Allocates blocks of 256 MiB until it fails: their number, and the error."""
    held = []
    try:
        while len(held) < 1000:
            held.append(torch.empty(256 << 20, dtype=torch.uint8, device="cuda"))
    except torch.OutOfMemoryError as e:
        return len(held), str(e).splitlines()[0]
    return len(held), "it never failed"


def work_torch(torch):
    """A training step that fits."""
    model = torch.nn.Sequential(torch.nn.Linear(4096, 4096), torch.nn.ReLU(),
                                torch.nn.Linear(4096, 4096)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(20):
        loss = model(torch.randn(512, 4096, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return float(loss)


def torch_case(conf=None):
    """PyTorch with one of its allocators."""
    if conf:
        os.environ["PYTORCH_CUDA_ALLOC_CONF"] = conf
    import torch
    free, total = torch.cuda.mem_get_info()
    ok(total == QUOTA, f"mem_get_info says {total >> 20} MiB in all")
    ok(QUOTA - 2 * GIB < free < QUOTA, f"and {free >> 20} free")
    ok(torch.cuda.get_device_properties(0).total_memory == QUOTA, "properties say the same")
    nr, words = fill_torch(torch)
    ok(24 <= nr <= 31 and "out of memory" in words, f"{nr} blocks of 256 MiB, then: {words[:100]}")
    torch.cuda.empty_cache()
    nr, words = fill_torch(torch)
    ok(24 <= nr <= 31, f"after empty_cache {nr} again")
    # Small cached blocks are freed before it fails: PyTorch tries again.
    held = [torch.empty(20 << 20, dtype=torch.uint8, device="cuda") for _ in range(300)]
    del held
    big = torch.empty(5 * GIB, dtype=torch.uint8, device="cuda")
    ok(big.numel() == 5 * GIB, "5 GiB fit when 6 are cached")
    del big
    # Cached memory is charged, and cuBLAS allocates from the driver and not from PyTorch.
    torch.cuda.empty_cache()
    ok(work_torch(torch) < 10, "training that fits runs")


def fill_cupy(cupy):
    """The same in CuPy."""
    held = []
    try:
        while len(held) < 1000:
            held.append(cupy.empty(256 << 20, dtype=cupy.uint8))
    except cupy.cuda.memory.OutOfMemoryError as e:
        return len(held), str(e)
    return len(held), "it never failed"


def cupy_case(pool=False):
    """CuPy with its own pool, or with the driver's."""
    import cupy
    if pool:
        cupy.cuda.set_allocator(cupy.cuda.MemoryAsyncPool().malloc)
    free, total = cupy.cuda.Device(0).mem_info
    ok(total == QUOTA and free < QUOTA, f"mem_info says {free >> 20} of {total >> 20} MiB")
    ok(cupy.cuda.runtime.getDeviceProperties(0)["totalGlobalMem"] == QUOTA, "properties too")
    try:
        nr, words = fill_cupy(cupy)
    except cupy.cuda.runtime.CUDARuntimeError as e:
        nr, words = 30, str(e)
    ok(24 <= nr <= 31 and "emory" in words, f"{nr} blocks of 256 MiB, then: {words[:100]}")
    cupy.get_default_memory_pool().free_all_blocks()
    cupy.cuda.Device().synchronize()
    a = cupy.random.random((8192, 8192), dtype=cupy.float32)
    ok(float((a @ a).mean()) > 0, "a product that fits runs")


def jax_case():
    """JAX, which allocates three quarters of the reported free memory."""
    import jax
    import jax.numpy as jnp
    device = jax.devices()[0]
    limit = device.memory_stats()["bytes_limit"]
    ok(4 * GIB < limit <= QUOTA * 3 // 4, f"its limit is {limit >> 20} MiB")
    try:
        x = jnp.zeros((10 * GIB // 4,), dtype=jnp.float32)
        x.block_until_ready()
        words = "it never failed"
    except Exception as e:
        words = str(e)
    ok("RESOURCE_EXHAUSTED" in words or "out of memory" in words.lower(), f"10 GiB: {words[:100]}")
    a = jnp.ones((8192, 8192), dtype=jnp.float32)
    ok(float(jax.jit(lambda m: (m @ m).mean())(a)) == 8192.0, "a product that fits runs")


def cudnn_case():
    """Workspaces whose size is found by trying."""
    import torch
    torch.backends.cudnn.benchmark = True
    convolution = torch.nn.Conv2d(64, 64, 3, padding=1).cuda()
    for size in (64, 128, 224, 256, 320):
        y = convolution(torch.randn(16, 64, size, size, device="cuda"))
    torch.cuda.synchronize()
    ok(y.shape[-1] == 320, "convolutions of five sizes, cuDNN tries its algorithms")
    before = torch.cuda.mem_get_info()[0]
    del y, convolution
    torch.cuda.empty_cache()
    ok(torch.cuda.mem_get_info()[0] >= before, "and what they had is given back")


def nccl_case():
    """A communicator with one rank, which allocates memory in its own ways."""
    import torch
    import torch.distributed as dist
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29517", NCCL_CUMEM_ENABLE="1")
    dist.init_process_group("nccl", rank=0, world_size=1)
    x = torch.ones(64 << 20, device="cuda")
    for _ in range(10):
        dist.all_reduce(x)
    torch.cuda.synchronize()
    ok(float(x[0]) == 1.0, "all_reduce with NCCL runs")
    dist.destroy_process_group()


def share_case(go):
    """One of two processes: each needs 5 GiB, and only one at a time gets them."""
    import torch
    torch.cuda.init()
    torch.empty(1, device="cuda")
    deadline = time.time() + 45
    got = refused = 0
    while time.time() < deadline and not (got and (refused or os.path.exists(go))):
        try:
            x = torch.empty(5 * GIB, dtype=torch.uint8, device="cuda")
            got += 1
            time.sleep(3)
            del x
            torch.cuda.empty_cache()
            time.sleep(1)
        except torch.OutOfMemoryError:
            refused += 1
            with open(go, "w", encoding="utf-8"):
                pass
            time.sleep(0.2)
    ok(got > 0, f"5 of 8 GiB are had {got} times")
    ok(refused > 0 or os.path.exists(go), f"and refused {refused} times while the other has them")


CASES = {
    "torch": torch_case,
    "torch_async": lambda: torch_case("backend:cudaMallocAsync"),
    "torch_segments": lambda: torch_case("expandable_segments:True"),
    "cupy": cupy_case,
    "cupy_async": lambda: cupy_case(True),
    "jax": jax_case,
    "cudnn": cudnn_case,
    "nccl": nccl_case,
    "share": lambda: share_case(sys.argv[2]),
}

try:
    CASES[sys.argv[1]]()
except ImportError as e:
    print(f"skip - {e}")
