# SPDX-License-Identifier: MIT
"""The Triton kernel of tests/gpu/sm_count.py, which must be importable without Triton too."""
import triton
import triton.language as tl


@triton.jit
def matmul(x, y, z, n, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """z = x @ y of n times n, n a multiple of all three: the programs process tiles in turn."""
    across = n // BN
    for tile in range(tl.program_id(0), (n // BM) * across, tl.num_programs(0)):
        row = (tile // across) * BM + tl.arange(0, BM)
        column = (tile % across) * BN + tl.arange(0, BN)
        total = tl.zeros((BM, BN), tl.float32)
        for at in range(0, n, BK):
            inner = at + tl.arange(0, BK)
            total = tl.dot(tl.load(x + row[:, None] * n + inner[None, :]),
                           tl.load(y + inner[:, None] * n + column[None, :]), total)
        tl.store(z + row[:, None] * n + column[None, :], total.to(tl.bfloat16))
