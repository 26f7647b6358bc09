# SPDX-License-Identifier: MIT
"""TpcSet and Topology, which need no driver."""
import copy
import errno
import gc
import os
import pickle
import random
import tempfile
import threading
import weakref

from tap import done, ok, raises, same

import gpupart
from gpupart import Demand, Error, Gpu, Topology, TpcSet

# Compared with Python's own sets.
rng = random.Random(7)
good = True
for _ in range(500):
    a, b = (frozenset(rng.sample(range(256), rng.randrange(40))) for _ in range(2))
    x, y = TpcSet(a), TpcSet(b)
    good = good and all((
        x & y == a & b, x | y == a | b, x - y == a - b, x ^ y == a ^ b, x & b == a & b,
        a - y == a - b, b ^ x == a ^ b, list(x) == sorted(a), len(x) == len(a),
        (x <= y) == (a <= b), (x < y) == (a < b), x.issubset(y) == a.issubset(b),
        x.issuperset(b) == a.issuperset(b), x.isdisjoint(y) == a.isdisjoint(b),
        hash(x) == hash(a), bool(x) == bool(a), not a or TpcSet(str(x)) == x,
        TpcSet.from_hex(x.hex) == x, all((t in x) == (t in a) for t in range(-3, 300))))
ok(good, "500 pairs: algebra, order, hash and both texts as Python's own sets")
same(type(TpcSet(1) | {2}), TpcSet, "a union with a set of Python's is a TpcSet")
same(str(TpcSet("0-7,16")), "0-7,16", "str() is the list form")
same(TpcSet("0-3", 8, range(10, 14, 2), {20}, TpcSet(30)), {0, 1, 2, 3, 8, 10, 12, 20, 30},
     "made from texts, numbers, ranges, sets")
same(TpcSet(range(256)).hex, "0x" + "f" * 64, "all 256")
same((TpcSet(), len(TpcSet()), str(TpcSet()), repr(TpcSet())), (set(), 0, "", "TpcSet()"),
     "the empty set")
same({TpcSet("1-3"): 1}[TpcSet(1, 2, 3)], 1, "equal sets are one key")
a = TpcSet("5-9")
same((pickle.loads(pickle.dumps(a)), copy.copy(a), copy.deepcopy([a])), (a, a, [a]),
     "it can be pickled and copied")
ok("5" not in a and 5.0 not in a and None not in a, "what is no number is in no set")
raises(AttributeError, "cannot be changed", lambda: setattr(a, "_mask", 1), "immutable")
raises(AttributeError, "", lambda: setattr(a, "new", 1), "no new attribute")
for text, part in (("", "empty"), ("0,5-", "5-"), ("300", "300"), ("9-5", "9-5"), ("0 1", "0 1"),
                   ("-1", "-1"), ("1\0002", "zero byte")):
    raises(Error, part, lambda: TpcSet(text), f"list {text!r}", errno.EINVAL)
raises(Error, "-1", lambda: TpcSet(-1), "TPC -1", errno.EINVAL)
raises(Error, "256", lambda: TpcSet([3, 256]), "TPC 256", errno.EINVAL)
raises(Error, "0xzz", lambda: TpcSet.from_hex("0xzz"), "hex", errno.EINVAL)
for value in (1.5, None, True, [1, "2"]):
    raises(TypeError, "", lambda: TpcSet(value), f"a set of {value!r}")
for value in (b"0-3", bytearray(b"0-3"), memoryview(b"0-3")):
    raises(TypeError, "text", lambda: TpcSet(value), f"a set of {value!r}")
raises(TypeError, "", lambda: a | [1], "| with a list")
raises(OSError, "300", lambda: TpcSet("300"), "an Error is an OSError")

# A capture compared with its own text.
path = "tests/data/gh100-h200-b/capture.txt"
topo = Topology.open(path)
same((topo.info.name, topo.info.source, topo.info.simulated), ("NVIDIA H200", path, False),
     "info")
ok(topo.info.pci == "" or len(topo.info.pci) == 12, f"info.pci is {topo.info.pci!r}")
same((topo.info.chip_id, topo.info.mig), (0x180, False), "chip and MIG")
same((topo.nr_tpcs, topo.nr_sms, len(topo.tpcs), len(topo.gpcs)),
     (66, 132, topo.nr_tpcs, topo.nr_gpcs), "counts")
same([t.tpc for t in topo.tpcs], list(range(66)), "a TPC knows its own index")
ok(all(topo.sm_tpc(sm) == t.tpc for t in topo.tpcs for sm in t.sms) and topo.sm_tpc(132) is None and
   topo.sm_tpc(-1) is None, "SMs belong to the TPCs that own them")
for name, key in (("gpcs", "gpc"), ("ugpus", "ugpu"), ("vgpcs", "vgpc")):
    groups = getattr(topo, name)
    ok(len(groups) > 1 and all(
        g.tpcs == {t.tpc for t in topo.tpcs if getattr(t, key) == getattr(g, key)} == getattr(
            topo, key + "_tpcs")(getattr(g, key)) for g in groups) and
       sum(len(g.tpcs) for g in groups) == 66, f"{len(groups)} {name} hold the TPCs that say so")
same(topo.all, TpcSet(range(66)), "all")
same(topo.gpc_tpcs("1,2"), topo.gpcs[1].tpcs | topo.gpcs[2].tpcs, "gpc_tpcs() of a list")
same(topo.gpc_tpcs(range(1, 3)), topo.gpc_tpcs([2, 1]), "gpc_tpcs() of numbers")
same(topo.set("gpc:1+hex:0x3"), topo.gpcs[1].tpcs | {0, 1}, "a set in words")
same(topo.set([4, 5]), TpcSet("4,5"), "a set in numbers")
for words, part in (("gpc:9", "9"), ("66", "66"), ("ugpu:2", "2"), ("tpc:", "TPCs is empty"),
                    ("", "")):
    raises(Error, part, lambda: topo.set(words), f"words {words!r}", errno.EINVAL)
raises(Error, "66", lambda: topo.set(TpcSet(66)), "a TPC that is not there", errno.EINVAL)
raises(Error, "empty", lambda: topo.set(TpcSet()), "an empty set", errno.EINVAL)
raises(Error, "63", lambda: topo.vgpc_tpcs(63), "a virtual GPC that is not there", errno.EINVAL)
raises(Error, "-1", lambda: topo.gpc_tpcs(-1), "GPC -1", errno.EINVAL)
raises(Error, "GPCs is empty", lambda: topo.gpc_tpcs([]), "no GPC at all", errno.EINVAL)
raises(TypeError, "", lambda: topo.gpc_tpcs([1.5]), "half a GPC")
raises(TypeError, "Topology.open()", lambda: Topology("sample:h200"),
       "a topology made by its class")
raises(TypeError, "attach()", lambda: Gpu(1), "a GPU made by its class")
raises(TypeError, "text", lambda: topo.gpc_tpcs(b"\1"), "GPCs in bytes")
raises(TypeError, "text", lambda: topo.set(b"0-3"), "words in bytes")
with tempfile.TemporaryDirectory() as folder:
    again = os.path.join(folder, "capture é.txt")
    with open(again, "w", encoding="utf-8") as f:
        f.write(topo.capture("the test"))
    copied = Topology.open(again)
    same((copied.hash, copied.tpcs, copied.info.source), (topo.hash, topo.tpcs, again),
         "a capture of it opens again and is the same")
    ok(topo.agrees(copied), "and agrees")
same(repr(topo), "<Topology of NVIDIA H200: 8 GPCs, 66 TPCs, 132 SMs>",
     "a capture has no address to show")
made = gpupart.plan(topo, {"a": Demand(1)})
same((topo.hash, made.topology_hash), ("b750cf4a1a267bb7",) * 2, "the hash as a plan's JSON has it")
made.check(topo)
other_board = Topology.open("tests/data/gh100-h200-e/capture.txt")
ok(not topo.agrees(other_board), "another board does not")
raises(Error, "/nowhere", lambda: Topology.open("/nowhere"), "no such capture", errno.ENOENT)
raises(Error, "nosuch", lambda: Topology.open("sample:nosuch"), "no such sample", errno.ENOENT)
raises(Error, "7", lambda: Topology.open(path, "7"), "no such GPU", errno.ENODEV)
raises(Error, path, lambda: gpupart.gpus(path), "a capture lists no GPUs", errno.EINVAL)

# Each thread has a context, which is closed with the thread.
seen = []


def other():
    try:
        TpcSet("299")
    except Error as error:
        seen.append(error.strerror)
    barrier.wait()
    barrier.wait()
    seen.append(gpupart._fail(-errno.EINVAL).strerror)
    contexts.append(weakref.ref(gpupart._thread.owner))


contexts = []
barrier = threading.Barrier(2)
thread = threading.Thread(target=other)
thread.start()
barrier.wait()
raises(Error, "298", lambda: TpcSet("298"), "the main thread's own sentence")
barrier.wait()
thread.join()
ok(len(seen) == 2 and seen[0] == seen[1] and "299" in seen[0], f"and the other's: {seen}")
del thread
gc.collect()
ok(len(contexts) == 1 and contexts[0]() is None, "a thread's context goes with it")
done()
