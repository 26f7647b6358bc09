# SPDX-License-Identifier: MIT
"""Run by tests/gpu/green.sh inside `gpupart run`: PyTorch's green contexts, unmodified.

The argument is the limit, for example "0-32". Prints one line for each check.
"""
import sys

import torch
from torch.cuda.green_contexts import GreenContext

from sms import ok, seen

SMS_ALL = 132
NUM_SMS = 32


def main():
    first, last = (int(word) for word in sys.argv[1].split("-"))
    sms = 2 * (last - first + 1)
    before = seen()
    ok(len(before) == sms, f"before: {len(before)} SMs")
    green = GreenContext.create(num_sms=NUM_SMS, device_id=0)
    ok(True, f"GreenContext.create(num_sms={NUM_SMS})")
    want = max(1, NUM_SMS // 2 * (sms // 2) // (SMS_ALL // 2)) * 2
    for turn in range(2):
        green.set_context()
        part = seen()
        ok(len(part) == want and part <= before,
           f"in it, turn {turn}: {len(part)} SMs of the limit's, wanted {want}")
        a = torch.randn(1024, 1024, device="cuda")
        ok(torch.isfinite(a @ a).all().item(), "a product in it")
        green.pop_context()
        after = seen()
        ok(after == before, f"outside of it again: {len(after)} SMs")


main()
