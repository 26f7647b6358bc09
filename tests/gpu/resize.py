# SPDX-License-Identifier: MIT
"""Run by tests/gpu/resize.sh: a PyTorch program that does not use gpupart. Multiplies matrices
until a file is removed, and prints its speed every half second.

resize.py NAME FILE
"""
import os
import sys
import time

import torch

name, file = sys.argv[1:]
a = torch.randn(4096, 4096, device="cuda", dtype=torch.bfloat16)
b = torch.empty_like(a)
torch.matmul(a, a, out=b)
torch.cuda.synchronize()
start = time.monotonic()
while os.path.exists(file):
    begin, n = time.monotonic(), 0
    while time.monotonic() - begin < 0.5:
        for _ in range(4):
            torch.matmul(a, a, out=b)
        torch.cuda.synchronize()
        n += 4
    now = time.monotonic()
    print(f"{now - start:6.1f} s  {name}: {2 * 4096 ** 3 * n / (now - begin) / 1e12:6.1f} TFLOP/s",
          flush=True)
