# SPDX-License-Identifier: MIT
"""Run by tests/gpu/several.sh: on which SMs of each CUDA device a Triton kernel ran."""
import json

import torch
import triton
import triton.language as tl


@triton.jit
def census(out, n: tl.constexpr):
    pid = tl.program_id(0)
    sm = tl.inline_asm_elementwise("mov.u32 $0, %smid;", "=r", [], dtype=tl.int32,
                                   is_pure=False, pack=1)
    tl.store(out + pid, sm)


def main():
    result = {}
    for device in range(torch.cuda.device_count()):
        with torch.cuda.device(device):
            out = torch.full((8192,), -1, device="cuda", dtype=torch.int32)
            seen = set()
            for _ in range(20):
                census[(8192,)](out, 0)
                seen |= set(out.tolist())
            pci = torch.cuda.get_device_properties(device)
            address = "%04x:%02x:%02x.0" % (pci.pci_domain_id, pci.pci_bus_id, pci.pci_device_id)
            result[address] = sorted(seen)
    print(json.dumps(result))


main()
