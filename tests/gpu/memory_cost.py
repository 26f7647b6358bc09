# SPDX-License-Identifier: MIT
"""Run by memory_cost.sh: children, one for each build of the library, that take turns.

A child is this file with a workload as its argument. It reads the number of a kind from each line
and answers with ns, or 0 if it cannot run it.
"""
import ctypes
import itertools
import os
import statistics
import subprocess
import sys
import time

LOOPS = [("cuMemAlloc 1 KiB", 0, 1 << 10, 1000), ("cuMemAlloc 1 MiB", 0, 1 << 20, 1000),
         ("cuMemAlloc 2 MiB", 0, 2 << 20, 50),
         ("cuMemAllocAsync 1 KiB, pool hit", 1, 1 << 10, 2000),
         ("cuMemAllocAsync 1 MiB, pool hit", 1, 1 << 20, 2000)]
KINDS = {
    "loops": [row[0] for row in LOOPS],
    "cupy": ["CuPy pool, 4 KiB array", "CuPy cudaMallocAsync, 4 KiB array"],
    "torch": ["PyTorch training step, own allocator"],
    "torch-async": ["PyTorch training step, cudaMallocAsync"],
}
# Sets of new processes, because two equal ones differ; rounds in each.
PLAN = {"loops": (4, 30), "cupy": (2, 20), "torch": (1, 25), "torch-async": (1, 25)}
QUOTA = 60 << 30
NUMBER = itertools.count()
END = time.monotonic() + float(os.environ.get("SECONDS_ALL") or 170)


def loops():
    lib = ctypes.CDLL(os.environ["LOOPS"])
    lib.loops_run.restype = ctypes.c_double
    error = lib.loops_begin()
    if error:
        raise RuntimeError(f"no context: step {error}")

    def run(kind):
        _, use_async, size, calls = LOOPS[kind]
        lib.loops_run(use_async, ctypes.c_size_t(size), calls // 4)
        return lib.loops_run(use_async, ctypes.c_size_t(size), calls)
    return run


def cupy():
    import cupy as cp
    pools = [cp.cuda.MemoryPool(), cp.cuda.MemoryAsyncPool()]

    def run(kind):
        cp.cuda.set_allocator(pools[kind].malloc)
        for calls in (500, 3000):
            begun = time.perf_counter_ns()
            for _ in range(calls):
                cp.cuda.alloc(4096)
            ended = time.perf_counter_ns()
        cp.cuda.Stream.null.synchronize()
        return (ended - begun) / calls
    return run


def torch():
    import torch as t
    layers = [t.nn.Linear(512, 512) for _ in range(24)]
    model = t.nn.Sequential(*[m for layer in layers for m in (layer, t.nn.GELU())]).cuda()
    optimizer = t.optim.AdamW(model.parameters(), lr=1e-4)
    data = t.randn(64, 512, device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        model(data).square().mean().backward()
        optimizer.step()

    def run(_):
        for steps in (3, 15):
            t.cuda.synchronize()
            begun = time.perf_counter_ns()
            for _ in range(steps):
                step()
            t.cuda.synchronize()
        return (time.perf_counter_ns() - begun) / steps
    return run


def check_quota():
    """With a quota the reported memory is the quota, without one it is the whole GPU."""
    total, left = ctypes.c_size_t(), ctypes.c_size_t()
    error = ctypes.CDLL("libcuda.so.1").cuMemGetInfo_v2(ctypes.byref(left), ctypes.byref(total))
    if error or (total.value == QUOTA) != ("GPUPART_MEM" in os.environ):
        raise RuntimeError(f"{total.value} bytes in all, error {error}: the quota is not as meant")


def serve(workload):
    try:
        run = {"loops": loops, "cupy": cupy}.get(workload, torch)()
        ready = run(0)
        check_quota()
    except Exception as error:
        print(f"{workload}: {error}", file=sys.stderr)
        ready = 0
    print(ready, flush=True)
    for line in sys.stdin:
        print(run(int(line)), flush=True)


def start(workload, build):
    env = dict(os.environ)
    if workload == "torch-async":
        env["PYTORCH_CUDA_ALLOC_CONF"] = "backend:cudaMallocAsync"
    if build:
        env["CUDA_INJECTION64_PATH"] = os.path.abspath(f"{build}/lib/gpupart/libgpupart-inject.so")
        env["GPUPART_MEM"] = str(QUOTA)
        env["GPUPART_TENANT"] = f"cost-{os.getpid()}-{next(NUMBER)}"
    return subprocess.Popen([sys.executable, __file__, workload], env=env, text=True,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def answer(child):
    return float(child.stdout.readline().strip() or 0)


def ask(child, kind):
    child.stdin.write(f"{kind}\n")
    child.stdin.flush()
    return answer(child)


def one_round(children, kind, ratios, plain):
    """Runs each of the others between two blocks of the first."""
    before = ask(children[0], kind)
    for i, child in enumerate(children[1:]):
        is_now = ask(child, kind)
        after = ask(children[0], kind)
        if not before or not is_now or not after:
            return False
        ratios[i].append(is_now * 2 / (before + after))
        plain.append((before + after) / 2)
        before = after
    return True


def measure(workload, builds):
    """{kind: (ns, [ratio for each build])}, medians over sets of medians over rounds."""
    nr_sets, rounds = PLAN[workload]
    found = {}
    for _ in range(nr_sets):
        children = [start(workload, build) for build in builds]
        try:
            if not all([answer(child) for child in children]):
                return found
            for kind, name in enumerate(KINDS[workload]):
                ratios, plain = [[] for _ in builds[1:]], []
                for _ in range(rounds):
                    if time.monotonic() > END or not one_round(children, kind, ratios, plain):
                        break
                if ratios[-1]:
                    found.setdefault(name, []).append(
                        (statistics.median(plain), [statistics.median(r) for r in ratios]))
        finally:
            for child in children:
                child.stdin.close()
            for child in children:
                child.wait(20)
    return found


def main():
    variants = [v.split("=", 1) for v in os.environ["VARIANTS"].split()]
    for name, build in variants:
        if not os.path.exists(f"{build}/lib/gpupart/libgpupart-inject.so"):
            sys.exit(f"VARIANTS: {name}={build}: no lib/gpupart/libgpupart-inject.so there")
    builds = [None, None] + [build for _, build in variants]
    heads = ["control"] + [name for name, _ in variants]
    simulated = "GPUPART_SIM" in os.environ
    print(("simulated: " if simulated else "") + "ratio to a process without a quota\n")
    print(f"{'':40} {'ns':>11}" + "".join(f" {head:>9}" for head in heads))
    for workload in ["loops"] if simulated else KINDS:
        found = measure(workload, builds)
        for name in KINDS[workload]:
            if name not in found:
                print(f"{name:40} not measured")
                continue
            sets = found[name]
            ns = statistics.median(s[0] for s in sets)
            ratios = [statistics.median(s[1][i] for s in sets) for i in range(len(heads))]
            print(f"{name:40} {ns:11.0f}" + "".join(f" {ratio:9.4f}" for ratio in ratios),
                  flush=True)


if len(sys.argv) > 1:
    serve(sys.argv[1])
else:
    main()
