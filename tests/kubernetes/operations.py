# SPDX-License-Identifier: MIT
"""operations.py TMP NUMBER SEED: see operations.sh. Prints TAP."""
import os
import random
import signal
import subprocess
import sys
import threading
import time

import grpc

import peer
from peer import until

tmp, number, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
random.seed(seed)
pb = peer.messages(tmp)
folder = tmp + "/kubelet"
os.mkdir(folder)
plugin, kubelet = peer.Plugin(folder), peer.Kubelet(folder, pb)
plugin.start()
kubelet.start()
faults, most, kinds, refused = [], 0, {}, []
times = []  # durations of Allocate, in ms
containers = {}  # name: (GPU, its TPCs, its process or None)


def ready():
    return plugin.process.poll() is None and len(kubelet.devices) == 132


def check():
    """The TPCs of living containers, from outside, by their variables."""
    global most
    used = {}
    for name, (gpu, tpcs, process) in containers.items():
        both = used.setdefault(gpu, set()) & tpcs
        if both:
            faults.append("%s has %s of %s with another" % (name, sorted(both), gpu))
        used[gpu] |= tpcs
    most = max([most] + [len(tpcs) for tpcs in used.values()])


def begin(name):
    free = kubelet.free_ids()
    size = random.choice((1, 2, 4, 8, 16, 24, 33, 40, 66))
    if len(free) < size:
        return
    try:
        ids = kubelet.preferred(free, size) if random.random() < 0.9 else random.sample(free, size)
    except (grpc.RpcError, ValueError):  # a channel that a registration replaced
        return
    # Kubelet takes preferred ids first, and other ids if there are too few.
    ids = ids[:size] + [i for i in free if i not in ids][: max(0, size - len(ids))]
    one = len({i.rpartition("/")[0] for i in ids}) == 1
    lost = random.random() < 0.03
    began = time.monotonic()
    try:
        edits = kubelet.allocate(ids).containers[0]
        times.append((time.monotonic() - began) * 1000)
    except grpc.RpcError as error:
        # Free ids of one GPU in kubelet can be allocated, unless a container's end is in
        # progress.
        if error.code() == grpc.StatusCode.RESOURCE_EXHAUSTED:
            refused.append((one, error.details()))
        elif one and error.code() == grpc.StatusCode.INVALID_ARGUMENT:
            faults.append(error.details())
        return
    except ValueError:
        return
    if lost:
        # Kubelet was killed before it stored the allocation.
        kubelet.stop()
        kubelet.start()
        return
    env = peer.variables(edits)
    tpcs = peer.tpcs(env["GPUPART_SET"])
    if len(tpcs) != size or not one:
        faults.append("%s asked for %d TPCs and got %s" % (name, size, sorted(tpcs)))
    process = None
    if random.random() < 0.15:
        process = peer.container(edits, ["sleep", "1000"])
    kubelet.given[name] = set(ids)
    kubelet.note()
    containers[name] = (env["GPUPART_GPU"], tpcs, process)


def end():
    # kubelet finds out once a second which containers have ended. So it lists each one before.
    names = sorted(set(containers) & kubelet.shown)
    while not names:
        seen = kubelet.lists_seen
        until(lambda: kubelet.lists_seen > seen, 1)
        names = sorted(set(containers) & kubelet.shown)
    name = random.choice(names)
    process = containers[name][2]
    if process:
        process.kill()
        process.wait()
    del containers[name], kubelet.given[name]
    if random.random() < 0.5:
        kubelet.note()


until(ready)
print("# seed %d" % seed)
for step in range(number):
    kind = random.choices(("begin", "end", "plugin", "kubelet", "socket"), (50, 46, 1, 1, 0.5))[0]
    if kind == "end" and not containers:
        kind = "begin"
    kinds[kind] = kinds.get(kind, 0) + 1
    if kind == "begin":
        begin("c%d" % step)
    elif kind == "end":
        end()
    elif kind == "plugin":
        plugin.stop(random.choice((signal.SIGKILL, signal.SIGTERM)))
        kubelet.devices = {}
        plugin.start()
    elif kind == "kubelet":
        kubelet.stop()
        kubelet.knows_pods = random.random() < 0.5
        kubelet.start()
    else:
        try:
            os.unlink(folder + "/device-plugins/gpupart.sock")
        except FileNotFoundError:
            pass
    if kind not in ("begin", "end") or not ready():
        if not until(ready):
            faults.append("step %d, %s: the plugin did not come back" % (step, kind))
            break
        kubelet.knows_pods = True
    if kind == "plugin":
        # The plugin forgot which containers kubelet has listed. For 3 s after such a container
        # got its ids, it refuses to give them again.
        time.sleep(3)
    check()
print(
    "# %s; %d refused; %d TPCs of one GPU at most; %d containers at the end"
    % (kinds, len(refused), most, len(containers))
)
times.sort()
print(
    "# Allocate: %d times, half of them in %.1f ms, 99 of 100 in %.1f ms, all in %.1f ms"
    % (len(times), times[len(times) // 2], times[len(times) * 99 // 100], times[-1])
)
good = not faults
print(
    "%sok 1 - no two live containers have a TPC in common, in %d operations"
    % ("" if good else "not ", number)
)
for fault in faults[:10]:
    print("# " + fault)
full = most <= 66 and most >= 60
print("%sok 2 - no more are given than there are, and nearly all were" % ("" if full else "not "))
spurious = [words for one, words in refused if one]
few = len(spurious) <= number / 100
print("%sok 3 - ids of one GPU that kubelet has free are given" % ("" if few else "not "))
for words in spurious[:5]:
    print("# " + words)
lists = kubelet.lists_seen
for name in sorted(containers):
    process = containers[name][2]
    if process:
        process.kill()
        process.wait()
containers.clear()
kubelet.given.clear()
kubelet.note()
gone = until(lambda: not [f for f in os.listdir("/run/gpupart/jobs") if f.startswith("0-0-")], 60)
print("%sok 4 - when all have ended nothing is given" % ("" if gone else "not "))
print("1..4")
sys.stdout.flush()
plugin.stop()
os._exit(not (good and full and few and gone))
