# SPDX-License-Identifier: MIT
"""split(): shapes on every capture, streams, changes between steps, and without a GPU."""
import ctypes
import errno
import glob
import itertools
import os
import random
import sys
import threading
import types

from tap import Driver, ROOT, done, ok, raises, same

import gpupart
from gpupart import Error, TpcSet, split

SHAPES = ("packed", "gpcs", "balanced", "spread")


def sets_of(topology, shape, within=None, **sizes):
    """The sets that split() computes, without a GPU."""
    return gpupart._shape_sets(topology, within or topology.all,
                               gpupart._shares(sizes, shape), shape)


def gpcs_of(topology, tpcs):
    """For each uGPU, the GPCs that contain TPCs of @tpcs."""
    found = {}
    for gpc in topology.gpcs:
        if gpc.tpcs & tpcs:
            found.setdefault(gpc.ugpu, []).append(gpc.gpc)
    return found


def whole(topology, tpcs, within):
    return all(gpc.tpcs & within <= tpcs for gpc in topology.gpcs if gpc.tpcs & tpcs)


def one_gpu():
    """Everything that needs no GPU, on the topologies of all captures."""
    captures = sorted(glob.glob(os.path.join(ROOT, "tests/data/*/capture.txt")))
    ok(len(captures) >= 7, f"{len(captures)} captures")
    for path in captures:
        topology = gpupart.Topology.open(path)
        name = os.path.basename(os.path.dirname(path))
        bad = []
        tried = 0
        for shape, share in itertools.product(SHAPES, (10, 25, 33.3, 50, 75, 90)):
            tried += 1
            made = sets_of(topology, shape, a=f"{share}%", b="rest")
            again = sets_of(topology, shape, a=f"{share}%", b="rest")
            if (made != again or made["a"] & made["b"] or made["a"] | made["b"] != topology.all):
                bad.append((shape, share, "not disjoint, not all, or not the same again"))
            if shape in ("packed", "spread"):
                if abs(len(made["a"]) - topology.nr_tpcs * share / 100) > 0.5:
                    bad.append((shape, share, len(made["a"])))
                continue
            largest = max(len(gpc.tpcs) for gpc in topology.gpcs)
            if not whole(topology, made["a"], topology.all):
                bad.append((shape, share, "no whole GPCs"))
            # The nearest: half a step, which is a GPC, or one GPC of each uGPU.
            step = largest * (topology.nr_ugpus if shape == "balanced" else 1)
            if abs(len(made["a"]) - topology.nr_tpcs * share / 100) > step * 0.75:
                bad.append((shape, share, len(made["a"])))
            each = [len(gpcs) for gpcs in gpcs_of(topology, made["a"]).values()]
            if shape == "balanced" and each != [each[0]] * topology.nr_ugpus:
                bad.append((shape, share, each))
        ok(not bad, f"{name}: {tried} splits are disjoint, cover all, and have their shape: {bad}")
        bad = []
        for nr in range(1, topology.nr_tpcs):
            for shape in SHAPES:
                try:
                    made = sets_of(topology, shape, a=nr, b="rest")
                except Error as error:
                    if error.errno != errno.ENOSPC or shape in ("packed", "spread"):
                        bad.append((shape, nr, str(error)))
                    continue
                exact = shape in ("packed", "spread")
                if len(made["a"]) < nr or (exact and len(made["a"]) != nr):
                    bad.append((shape, nr, len(made["a"])))
        ok(not bad, f"{name}: a number of TPCs is met: {bad}")
        thirds = sets_of(topology, "spread", a="33.3%", b="33.3%", c="rest")
        each = [[len(gpc.tpcs & tpcs) for gpc in topology.gpcs] for tpcs in thirds.values()]
        ok(all(max(nr) - min(nr) <= 3 for nr in each), f"{name}: spread over all GPCs: {each}")
        four = sets_of(topology, "gpcs", a="25%", b="25%", c="25%", d="25%")
        same((TpcSet(*four.values()), sum(map(len, four.values()))), (topology.all, 66),
             f"{name}: four quarters are all")
        within = topology.gpc_tpcs("0-3") - TpcSet(topology.gpcs[0].tpcs.__iter__().__next__())
        made = sets_of(topology, "gpcs", within, a="50%", b="rest")
        ok(made["a"] | made["b"] == within and whole(topology, made["a"], within),
           f"{name}: inside of a limit that has a part of a GPC")

    b = gpupart.Topology.open("sample:h200-b")
    half = sets_of(b, "balanced", a="50%", b="rest")
    same(gpcs_of(b, half["a"]), {0: [0, 1], 1: [2, 3]}, "half of it: two GPCs of each uGPU")
    same(len(sets_of(b, "balanced", a=34, b="rest")["a"]), 34, "34 TPCs: the two of 9 among them")
    same(len(sets_of(b, "balanced", a=17, b="rest")["a"]), 17, "17 TPCs: one of 9, one of 8")
    same(gpcs_of(b, sets_of(b, "packed", a=8, b="rest")["a"]), {0: [0]}, "packed: one GPC")

    def random_sets(parts, nr):
        order = random.sample(range(nr), nr)
        sets = {name: 1 << order.pop() for name in parts}
        for tpc in order:
            sets[random.choice(parts)] |= 1 << tpc
        return sets

    random.seed(1)
    bad, longest = [], 0
    for _ in range(3000):
        parts = "abcde"[:random.randint(1, 5)]
        now, new = (random_sets(parts, random.choice((5, 6, 9, 16))) for _ in range(2))
        seen = [dict(now)]
        try:
            for name, mask in gpupart._steps(dict(now), new):
                seen.append({**seen[-1], name: mask})
        except Error:
            if all(mask & (mask - 1) for mask in now.values()):
                bad.append((now, new, "refused"))
        else:
            if seen[-1] != new:
                bad.append((now, new, "the end"))
        longest = max(longest, len(seen))
        if any(one & other for sets in seen for one, other in itertools.combinations(
                sets.values(), 2)) or not all(all(sets.values()) for sets in seen):
            bad.append((now, new, seen))
    ok(not bad and longest < 16, f"changes never overlap, at most {longest} steps: {bad[:1]}")

    for words, part, sizes in (
            ("two rests", "only one can be", {"a": "rest", "b": "rest"}),
            ("more than all", "110%", {"a": "60%", "b": "50%"}),
            ("words", "'half'", {"a": "half"}), ("nothing", "0", {"a": 0}),
            ("no per cent", "'0%'", {"a": "0%"}), ("True", "True", {"a": True})):
        raises(Error, part, lambda sizes=sizes: split(**sizes), words, errno.EINVAL)
    raises(Error, "'round'", lambda: split("round", a=1), "a shape", errno.EINVAL)
    raises(TypeError, "needs parts", split, "no part")
    raises(Error, "part b: 30 of 66", lambda: sets_of(b, "packed", a=40, b=30), "too many",
           errno.ENOSPC)
    raises(Error, "part b: the rest", lambda: sets_of(b, "packed", a=66, b="rest"), "no rest",
           errno.ENOSPC)
    raises(Error, "part a: 65 of 66 TPCs, shape balanced: not possible with the 66 TPCs that are "
           "left, because part b needs some of them",
           lambda: sets_of(b, "balanced", a=65, b="rest"), "none for a later part", errno.ENOSPC)
    raises(Error, "the 66 TPCs that are left", lambda: sets_of(b, "balanced", a=67, b="rest"),
           "more than there are", errno.ENOSPC)
    raises(Error, "part b: 20 of 66 TPCs, shape balanced: not possible with the 16",
           lambda: sets_of(b, "balanced", a=50, b=20), "too many in whole GPCs", errno.ENOSPC)
    percentages(b)


def percentages(b):
    """A percentage next to a number of TPCs on @b, and percentages that need rounding."""
    for shape, nr, share, left in (
            ("packed", 60, "50%", 6), ("spread", 40, "50%", 26), ("packed", 34, "50%", 32),
            ("gpcs", 40, "50%", 26), ("balanced", 35, "50%", 18), ("packed", 2, "98%", 64)):
        for sizes, part, rest in (({"a": nr, "b": share}, f"part b: {share}", left),
                                  ({"b": share, "a": nr}, f"part a: {nr}", None)):
            raises(Error, f"{part} of 66 TPCs, shape {shape}: not possible with the {rest or ''}",
                   lambda shape=shape, sizes=sizes: sets_of(b, shape, **sizes),
                   f"{shape} {sizes}", errno.ENOSPC)
    raises(Error, "part c: 50% of 66 TPCs", lambda: sets_of(b, "packed", a=1, b="50%", c="50%"),
           "one TPC too few for two halves", errno.ENOSPC)
    for shape, within, sizes, wanted in (
            ("packed", 66, {"a": 33, "b": "50%"}, [33, 33]),
            ("spread", 66, {"a": 26, "b": "60%"}, [26, 40]),
            ("packed", 66, {"a": 2, "b": "97%"}, [2, 64]),
            ("packed", 65, {"a": "50%", "b": "50%"}, [32, 33]),
            ("packed", 65, {"a": 1, "b": "50%", "c": "49%"}, [1, 32, 32]),
            ("packed", 66, {"a": "33%", "b": "33%", "c": "34%"}, [22, 22, 22]),
            ("spread", 10, {"a": "33%", "b": "33%", "c": "34%"}, [3, 4, 3]),
            ("packed", 2, {"a": "1%", "b": "99%"}, [1, 1]),
            ("gpcs", 66, {"a": "33%", "b": "33%", "c": "33%"}, [24, 24, 18]),
            ("balanced", 66, {"a": "40%", "b": "59%"}, [32, 34]),
            ("balanced", 66, {"a": 33, "b": "50%"}, [33, 33]),
            ("balanced", 66, {"a": 10, "b": "80%"}, [16, 50])):
        made = sets_of(b, shape, TpcSet(range(within)), **sizes)
        same([len(tpcs) for tpcs in made.values()], wanted, f"{shape} of {within}: {sizes}")


class Stream:
    """Imitates PyTorch's pool: reuses a few streams."""
    made = 0
    pool = []

    def __init__(self, device=None):
        assert device == 0
        if len(Stream.pool) < 3:
            Stream.pool.append(Stream.driver.stream())
        self.cuda_stream = Stream.pool[Stream.made // 2 % 3]
        Stream.made += 1


def changed_by_two(gpu):
    """The first thread waits between its two parts until the second has ended, or waits."""
    give, inside, waits = gpupart.Part._give, threading.Event(), threading.Event()

    def second():
        inside.wait()
        try:
            parts._lock = Watched(parts._lock)
            parts.change(a=16, b="rest")
        finally:
            waits.set()

    class Watched:
        """Reports when another thread waits for it."""
        def __init__(self, lock):
            self.lock = lock

        def __enter__(self):
            waits.set()
            return self.lock.__enter__()

        def __exit__(self, *exception):
            return self.lock.__exit__(*exception)

    def slow(part, tpcs):
        give(part, tpcs)
        if threading.current_thread() is threading.main_thread() and not inside.is_set():
            inside.set()
            waits.wait()

    with split("packed", a=8, b="rest") as parts:
        thread = threading.Thread(target=second)
        thread.start()
        gpupart.Part._give = slow
        parts.change(a=32, b="rest")
        gpupart.Part._give = give
        thread.join()
        sets = {name: gpu.stream_get(part.stream) for name, part in parts.items()}
        same((sets, sets["a"] & sets["b"], len(sets["a"])),
             ({name: part.set for name, part in parts.items()}, TpcSet(), 16),
             "two threads change a split: the last one's sets hold, all of them")


def used_after_fork():
    """The driver cannot be used there."""
    child = os.fork()
    if not child:
        try:
            parts = split(a="50%", b="rest")
            os._exit(0 if parts.why and parts.a.stream is None and parts.a.set is None else 2)
        except BaseException:
            os._exit(1)
    same(os.waitpid(child, 0)[1], 0, "after a fork: no streams, and why")


def streams():
    """On the simulated driver."""
    driver = Driver()
    gpu = gpupart.attach()
    topology = gpu.topology
    with split(a="50%", b="rest") as parts:
        same((parts.why, list(parts), len(parts)), (None, ["a", "b"], 2), "two parts")
        same([gpu.census(part.stream) for part in parts.values()],
             [part.set for part in parts.values()], "launches are where the sets are")
        a, b = parts.a.set, parts.b.set
        ok(not a & b and a | b == topology.all, "disjoint")
        same(gpu.census(), topology.all, "other streams have all")
        with parts.b.thread() as tpcs:
            same((tpcs, gpu.census()), (b, b), "thread()")
        with parts.b.process() as tpcs:
            same((tpcs, gpu.census(), gpu.process), (b, b, b), "process()")
        same((gpu.census(), gpu.process), (topology.all, None), "and put back")
        seen = []
        give = gpupart.Part._give

        def watched(part, tpcs):
            give(part, tpcs)
            seen.append({p.name: gpu.stream_get(p.stream) for p in parts.values()})

        gpupart.Part._give = watched
        parts.change(a="25%", b="rest")
        parts.change(a="75%", b="rest")
        parts.change("packed", b="50%", a="rest")
        parts.change("packed", a="50%", b="rest")
        parts.change("packed", a=1, b="rest")
        parts.change("packed", b="rest", a=1)
        parts.change("packed", b=1, a="rest")
        parts.change("spread", a="75%", b="rest")
        gpupart.Part._give = give
        ok(len(seen) >= 12 and not any(now["a"] & now["b"] for now in seen),
           f"sets never overlap during a change: {len(seen)} changes")
        same((len(parts.a.set), gpu.census(parts.a.stream)), (50, parts.a.set), "then spread")
        parts.change("balanced", a="50%", b="rest")
        same((parts.a.set, parts.b.set), (a, b), "a split that was had before is the same")
        raises(TypeError, "needs a size for each of a, b", lambda: parts.change(a=3),
               "sizes of one part")
        raises(AttributeError, "part c does not exist", lambda: parts.c, "another part")
        for name in ("why", "change", "items", "_gpu"):
            raises(Error, f"{name}: a part cannot have this name",
                   lambda name=name: split(**{name: 3}), "a name of the split", errno.EINVAL)
        handle = parts.a.stream
    same(gpu.stream_get(handle), None, "its end takes the sets away")
    raises(RuntimeError, "closed", lambda: parts.change(a=3, b="rest"), "no change after it")
    changed_by_two(gpu)
    used_after_fork()
    with split(a="50%", b="rest") as parts:
        for _ in range(5):
            gpu.census(parts.a.stream)
        same([(part.outstanding, part.records().ended, part.busy_ns > 0)
              for part in parts.values()], [(0, 5, True), (0, 0, False)], "records of each part")
        same([part.records_why for part in parts.values()], [None, None], "and no reason")
    gpu.limit = "gpc:0-3"
    with split("gpcs", a="50%", b="rest") as parts:
        same(parts.a.set | parts.b.set, topology.gpc_tpcs("0-3"), "inside of the limit")
    gpu.limit = "0-9"
    for outside in ("0-10", "50"):
        raises(Error, f"within={outside}: the limit of this process is 0-9",
               lambda outside=outside: split(within=outside, a=1), "outside of the limit",
               errno.EINVAL)
    with split("spread", within="0-7", a=4, b="rest") as parts:
        gpu.limit = "2-5,8"
        same([str(part.set) for part in parts.values()], ["2-3", "4-5"], "a narrower limit: .set")
        same([gpu.census(part.stream) for part in parts.values()],
             [part.set for part in parts.values()], "launches are on these TPCs")
        gpu.limit = "5-6"
        same([str(part.set) for part in parts.values()], ["5-6", "5-6"], "none is left for a part")
        same([gpu.census(part.stream) for part in parts.values()],
             [part.set for part in parts.values()], "its launches are in the limit")
        with parts.a.thread() as tpcs:
            same((tpcs, gpu.census()), (TpcSet("5-6"), TpcSet("5-6")), "and those of thread()")
        raises(Error, "part a: 4 of 2 TPCs", parts.change, "too few TPCs for it", errno.ENOSPC)
        parts.change(a="50%", b="rest")
        same([str(part.set) for part in parts.values()], ["5", "6"], "change() divides the limit")
        gpu.limit = None
        same([str(part.set) for part in parts.values()], ["5", "6"], "a wider limit: the same sets")
        parts.change()
        same([str(part.set) for part in parts.values()], ["0-3", "4-7"], "change() follows it")
    with split("spread", a="50%", b="rest") as parts:
        gpu.limit = "0-39"
        parts.change(b="50%", a="rest")
        same([str(part.set) for part in parts.values()], ["20-39", "0-19"], "no within=")
        gpu.limit = "0-19"
        parts.change(a="rest", b=10)
        gpu.limit = None
        same([gpu.census(part.stream) for part in parts.values()], [TpcSet("10-19"), TpcSet("0-9")],
             "no TPCs of an earlier limit are in the sets")
    with split("packed", within="0-1", a=1, b=1) as parts:
        raises(Error, "part b has one TPC", lambda: parts.change(b=1, a=1), "an exchange",
               errno.EBUSY)
        same([part.set for part in parts.values()], [{0}, {1}], "nothing changes")
    with split("packed", within="0-9", a=4, b="rest") as parts:
        same(parts.a.set | parts.b.set, TpcSet("0-9"), "within=")

    Stream.driver = driver
    sys.modules["torch"] = types.SimpleNamespace(
        cuda=types.SimpleNamespace(is_available=lambda: True, is_initialized=lambda: False,
                                       Stream=Stream))
    with split(a="50%", b="25%", c="rest") as parts:
        same({type(part.stream) for part in parts.values()}, {Stream}, "streams of PyTorch")
        same(len({part.stream.cuda_stream for part in parts.values()}), 3,
             "none twice, though its pool gives them again")
        same([gpu.census(part.stream) for part in parts.values()],
             [part.set for part in parts.values()], "and their sets hold")
    raises(Error, "are in use", lambda: split(a=1, b=1, c=1, d=1), "its pool has too few",
           errno.ENOSPC)
    with split(a="50%", b="rest") as parts:
        raises(Error, "are in use", lambda: split(c=1, d=1), "nor takes another split's",
               errno.ENOSPC)
        one = split(c=1)
        ok(not {part.stream.cuda_stream for part in parts.values()} & {one.c.stream.cuda_stream},
           "two splits share no stream")
        del one
        ok(split(c=1).c.set, "a deleted split returns its stream")
    sys.modules["torch"].cuda.is_available = lambda: False
    with split(a="50%", b="rest") as parts:
        same(type(parts.a.stream), gpupart._RawStream, "a PyTorch without CUDA")
    del sys.modules["torch"]
    driver("cuCtxSetCurrent", None)
    with split(a="50%", b="rest") as parts:
        same(gpu.census(parts.a.stream), parts.a.set, "a thread without a context")
        parts.a.stream.synchronize()
        graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
        driver("cuGraphCreate", ctypes.byref(graph), 0)
        driver("cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, ctypes.c_ulonglong())
        driver("cuGraphLaunch", executable, ctypes.c_void_p(parts.a.stream.cuda_stream))
        same(parts.a.outstanding, None, "a graph was launched")
        same(parts.a.records_why, "the ends of 1 launches are unknown", "the reason")
        same((parts.b.outstanding, parts.b.records_why), (0, None), "but not on another stream")
        same((parts.a.busy_ns is None, parts.a.records_why), (False, None), "it is as busy as was")
        gpu.census(parts.a.stream)
        same((parts.a.outstanding, parts.a.records_why), (0, None), "a later kernel has ended")


def no_records():
    """GPUPART_RECORDS=0."""
    Driver()
    with split(a="50%", b="rest") as parts:
        same((parts.why, parts.a.records_why), (None, None), "not asked")
        same((parts.a.outstanding, parts.b.busy_ns), (None, None), "no records")
        ok("GPUPART_RECORDS=0" in parts.b.records_why, f"the reason: {parts.b.records_why}")


def without(reason, has_streams):
    """Cases in which launches cannot be confined."""
    with split(a="50%", b="rest") as parts:
        ok(parts.why and reason in parts.why, f"the reason: {parts.why}")
        same([part.set for part in parts.values()], [None, None], "no sets")
        same([part.stream is not None for part in parts.values()], [has_streams] * 2, "streams")
        if has_streams:
            same(len({part.stream.cuda_stream for part in parts.values()}), 2, "two of them")
            parts.a.stream.synchronize()
        same((parts.a.outstanding, parts.a.busy_ns, parts.a.records(), parts.a.records_why),
             (None, None, None, "gpupart is not available"), "no records")
        with parts.a.thread() as tpcs, parts.b.process() as others:
            same((tpcs, others), (None, None), "thread() and process() do nothing")
        parts.change(a="25%", b="rest")
        raises(Error, "110%", lambda: parts.change(a="60%", b="50%"), "what is wrong everywhere")


def device_of(stream):
    """CUDA's number of the GPU of a stream."""
    cu, context, device = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_int(-1)
    assert not cu.cuStreamGetCtx(ctypes.c_void_p(stream.cuda_stream), ctypes.byref(context))
    cu.cuCtxPushCurrent_v2(context)
    cu.cuCtxGetDevice(ctypes.byref(device))
    cu.cuCtxPopCurrent_v2(ctypes.byref(context))
    return device.value


class NumberedStream:
    """A stream of a PyTorch with several GPUs."""
    made = 0

    def __init__(self, device):
        NumberedStream.made += 1
        self.device, self.cuda_stream = device, NumberedStream.made


def at_once():
    """Splits that threads create and close at the same time."""
    interval, wrong = sys.getswitchinterval(), []

    def work():
        try:
            for _ in range(300):
                split("packed", a=8, b="rest").close()
        except RuntimeError as error:
            wrong.append(error)

    with split("packed", **{f"part{nr}": 1 for nr in range(40)}):
        sys.setswitchinterval(1e-5)
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(interval)
    same(wrong, [], "splits of four threads")


def bad_names():
    for name in ("nonsense", "cuda:x", "cuda:", "", "gpu:1", "-1", "GPU-1"):
        raises(Error, f"gpu={name!r}: must be", lambda name=name: split(gpu=name, a=1),
               f"gpu={name!r}", errno.EINVAL)
    raises(TypeError, "gpu=1: must be text", lambda: split(gpu=1, a=1), "gpu=1")


def two_gpus(confined):
    """Each split is on the GPU that it asked for, or on the current one."""
    bad_names()
    zero, one = ("0000:01:00.0", "0000:02:00.0")
    for current in (None, 0, 1):
        if current is not None:
            driver = Driver(current)
        for name, device in ((None, current or 0), ("cuda:0", 0), (zero, 0), ("cuda:1", 1),
                             (one, 1)):
            with split(gpu=name, a="50%", b="rest") as parts:
                same(([device_of(part.stream) for part in parts.values()], parts.why is None),
                     ([device] * 2, confined), f"gpu={name}, a context of {current}: {parts.why}")
                if confined:
                    gpu = gpupart.attach(f"cuda:{device}")
                    same(gpu.census(parts.a.stream), parts.a.set, "confined")
            now = ctypes.c_void_p()
            if current is None:
                ctypes.CDLL("libcuda.so.1").cuCtxSetCurrent(None)
            elif driver("cuCtxGetCurrent", ctypes.byref(now)) or now.value != driver.context.value:
                ok(False, f"the current context is still that of {current}")
    for name in ("cuda:2", "0000:99:00.0", "cuda:99999999999"):
        raises(Error, name, lambda name=name: split(gpu=name, a=1), f"no {name}", errno.EINVAL)
    if confined:
        raises(Error, "7", lambda: split(gpu="7", a=1), "no 7", errno.EINVAL)
    else:
        parts = split(gpu="1", a=1)
        ok("no streams" in parts.why if parts.a.stream is None else device_of(parts.a.stream) == 1,
           f"an index: {parts.a.stream}: {parts.why}")
    sys.modules["torch"] = types.SimpleNamespace(
        cuda=types.SimpleNamespace(is_available=lambda: True, is_initialized=lambda: True,
                                   current_device=lambda: 1, Stream=NumberedStream))
    if not confined:
        for name, device in (("cuda:0", 0), ("cuda:1", 1), (None, 1)):
            same(split(gpu=name, a=1).a.stream.device, device, f"a PyTorch stream, gpu={name}")


def no_driver():
    bad_names()
    without("libcuda.so.1", False)
    same(split(gpu="cuda:1", a=1).a.stream, None, "a GPU that may exist")


{"shapes": one_gpu, "streams": streams, "at_once": at_once,
 "no_records": no_records,
 "disabled": lambda: without("GPUPART_DISABLE", True),
 "no_table": lambda: without("", True),
 "no_streams": lambda: without("streams cannot have sets", True),
 "two_gpus": lambda: two_gpus(True), "two_without": lambda: two_gpus(False),
 "no_driver": no_driver}[sys.argv[1]]()
done()
