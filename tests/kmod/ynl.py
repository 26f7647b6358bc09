#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""ynl.py LIB SPEC: in the guest, the kernel's own YNL client, LIB/lib, speaks to the module
by the spec alone. Lines "ok - ..." and "not ok - ..."; 1 if one is not ok."""
import re
import sys
import threading
import time

sys.path.insert(0, sys.argv[1])
from lib import NlError, YnlFamily  # noqa: E402

FAILED = 0


def check(good, words):
    global FAILED
    FAILED |= not good
    print("ok -" if good else "not ok -", words)


def page(index):
    """GPC and TPC of each global TPC, as the page has them."""
    gpcs, tpcs = [], []
    with open(f"/proc/gpu{index}/topology", encoding="ascii") as f:
        for line in f:
            if re.match(r" +\d+: ", line):
                for pair in line.split()[1:]:
                    gpc, tpc = pair.split(".")
                    gpcs.append(int(gpc))
                    tpcs.append(int(tpc))
    return gpcs, tpcs


def refused(family, operation, attributes, errno):
    try:
        family.do(operation, attributes)
    except NlError as e:
        check(abs(e.error) == errno, f"YNL: {operation} {attributes}: {e}")
        return str(e)
    check(False, f"YNL: {operation} {attributes} is answered")
    return ""


def main():
    family = YnlFamily(sys.argv[2], schema="")
    gpus = family.dump("gpu-get", {})
    check([g["index"] for g in gpus] == list(range(8)), f"YNL: dump of GPUs: {len(gpus)}")
    check(gpus[0]["chip-name"] == "GH100" and gpus[0]["bus-name"] == "0000:01:00.0" and
          gpus[0]["chip-id"] == 0x180, f"YNL: the first: {gpus[0]}")
    check("refused" in gpus[6], f"YNL: one that is refused: {gpus[6]}")
    one = family.do("gpu-get", {"bus-name": "0000:02:00.0"})
    check(one == gpus[1], "YNL: a GPU by its bus-name is that of the dump")
    for index in (0, 3):
        topology = family.do("topology-get", {"index": index})
        gpcs, tpcs = page(index)
        check(gpcs and list(topology["tpc-gpc"]) == gpcs and list(topology["tpc-in-gpc"]) == tpcs,
              f"YNL: GPU {index}: GPC and TPC of each of {len(gpcs)} TPCs are those of the page, "
              f"order {topology['order']}, {topology['order-tag']}")
        check(topology["max-gpcs"] == len(topology["present-tpcs"]),
              f"YNL: GPU {index}: present TPCs {[hex(m) for m in topology['present-tpcs']]}")
    engines = family.dump("engine-get", {"index": 1})
    check(len(engines) == 45, f"YNL: engines of the captured board: {len(engines)}, "
          f"the last {engines[-1]}")
    check("there is no GPU" in refused(family, "topology-get", {"index": 99}, 19),
          "YNL: with the module's own sentence")
    check("not in the table of chips" in refused(family, "topology-get", {"index": 6}, 95),
          "YNL: and for an unknown chip")

    # Its socket is bound by subscribing, which must come first.
    family = YnlFamily(sys.argv[2], schema="")
    family.ntf_subscribe("monitor")

    def go_and_come():
        time.sleep(1)
        with open("/sys/bus/pci/devices/0000:03:00.0/remove", "w", encoding="ascii") as f:
            f.write("1")
        time.sleep(1)
        with open("/sys/bus/pci/rescan", "w", encoding="ascii") as f:
            f.write("1")

    thread = threading.Thread(target=go_and_come)
    thread.start()
    notices = []
    for notice in family.poll_ntf(duration=60):
        notices.append((notice["name"], notice["msg"]["index"], notice["msg"]["bus-name"]))
        if len(notices) == 2:
            break
    thread.join()
    check(notices == [("gpu-del-ntf", 2, "0000:03:00.0"), ("gpu-add-ntf", 2, "0000:03:00.0")],
          f"YNL: notices of a GPU that is removed and added: {notices}")
    return FAILED


sys.exit(main())
