# SPDX-License-Identifier: MIT
"""Run by tests/gpu/several.sh: prints the SMs of each CUDA device on which a Triton kernel ran."""
import json

import torch

from sms import seen


def main():
    result = {}
    for device in range(torch.cuda.device_count()):
        with torch.cuda.device(device):
            pci = torch.cuda.get_device_properties(device)
            address = "%04x:%02x:%02x.0" % (pci.pci_domain_id, pci.pci_bus_id, pci.pci_device_id)
            result[address] = sorted(seen(20))
    print(json.dumps(result))


main()
