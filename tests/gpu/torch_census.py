# SPDX-License-Identifier: MIT
"""Run by tests/gpu/check.sh inside `gpupart run`: an unmodified PyTorch program.

Prints the bf16 throughput of an 8192^3 product (of ones, and of random values: the latter reach
the power limit of the whole board, so use the ones to compare SMs), the SMs on which a Triton
kernel's programs ran, and on request the output of `gpupart doctor` about this process.
"""
import json
import os
import subprocess
import sys
import time

import torch
import triton
import triton.language as tl


@triton.jit
def census(out, n: tl.constexpr):
    pid = tl.program_id(0)
    sm = tl.inline_asm_elementwise("mov.u32 $0, %smid;", "=r", [], dtype=tl.int32,
                                   is_pure=False, pack=1)
    tl.store(out + pid, sm)


def tflops(a, b):
    """The best of some short bursts."""
    n = len(a)
    best = 0.0
    for _ in range(3):
        a @ b
    for _ in range(8):
        torch.cuda.synchronize()
        time.sleep(0.1)
        start = time.perf_counter()
        for _ in range(5):
            a @ b
        torch.cuda.synchronize()
        best = max(best, 5 * 2 * n**3 / (time.perf_counter() - start) / 1e12)
    return round(best, 1)


def main():
    n = 8192
    a = torch.randn(n, n, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(n, n, device="cuda", dtype=torch.bfloat16)
    ones = torch.ones(n, n, device="cuda", dtype=torch.bfloat16)
    result = {"tflops": tflops(ones, ones), "tflops_random": tflops(a, b)}
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        c = a @ b
    for _ in range(5):
        graph.replay()
    seen = set()
    out = torch.full((8192,), -1, device="cuda", dtype=torch.int32)
    for _ in range(20):
        census[(8192,)](out, 0)
        seen |= set(out.tolist())
    torch.cuda.synchronize()
    result.update(sms=sorted(seen), checksum=bool(torch.isfinite(c).all()))
    if len(sys.argv) > 1:
        doctor = subprocess.run([sys.argv[1], "doctor", "--no-launch", "--json"],
                                capture_output=True, text=True,
                                env={k: v for k, v in os.environ.items()
                                     if k not in ("CUDA_INJECTION64_PATH", "LD_PRELOAD")})
        rows = json.loads(doctor.stdout)["rows"]
        result["process"] = [r["answer"] for r in rows if r["name"] == "processes"]
    print(json.dumps(result))


main()
